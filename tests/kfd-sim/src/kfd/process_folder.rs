//! `/sys/class/kfd/kfd/proc/<pid>`: kernel-rules section 5.

use alloc::format;
use alloc::string::String;

use super::{KfdObject, Kind, ObjectId};
use crate::machine::State;
use crate::sysfs::{Attribute, KFD};

/// Makes the folder of an object; it appears with the object.
pub(super) fn put(state: &mut State, id: ObjectId) {
    let Some(object) = state.objects.get(&id) else { return };
    let folder = folder(object);
    // 7.2 shows no PASID any more.
    let pasid = if state.kernel.has_pasid_per_object() { 0x8000 + id.0 } else { 0 };
    let svm = state.kernel.svm;
    let gpus: alloc::vec::Vec<u32> = object.records.iter().map(|record| record.gpu_id).collect();
    let tree = &mut state.tree;
    tree.put_folder(&folder);
    if object.kind == Kind::Primary {
        tree.put_bytes(&format!("{folder}/pasid"), format!("{pasid}\n").into_bytes());
    }
    tree.put_folder(&format!("{folder}/queues"));
    for gpu in gpus {
        tree.put_generated(&format!("{folder}/vram_{gpu}"), Attribute::VramOf(id, gpu));
        tree.put_bytes(&format!("{folder}/sdma_{gpu}"), *b"0\n");
        tree.put_bytes(&format!("{folder}/stats_{gpu}/evicted_ms"), *b"0\n");
        for name in ["faults", "page_in", "page_out"].iter().filter(|_| svm) {
            tree.put_bytes(&format!("{folder}/counters_{gpu}/{name}"), *b"0\n");
        }
    }
}

/// Where an object's folder is.
pub(crate) fn folder(object: &KfdObject) -> String {
    match object.kind {
        Kind::Primary => format!("{KFD}/proc/{}", object.lead),
        Kind::Secondary(id) => format!("{KFD}/proc/{}/context_{id}", object.lead),
    }
}
