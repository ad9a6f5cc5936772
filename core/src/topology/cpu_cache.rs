//! Caches of CPUs, from the CPU folders of sysfs.
//!
//! Since Linux gives KFD no caches of CPU nodes, they are read from
//! `node<N>/cpu<C>/cache/index<I>/`, or from `cpu<C>/cache/index<I>/` where the
//! kernel knows no NUMA. They are decoration: whatever is missing or odd there
//! leaves caches out and never fails a snapshot. CPUs may differ from each other.
//!
//! A cache is listed once, by the first CPU that shares it.

use alloc::vec::Vec;
use core::ops::ControlFlow;

use super::Cache;
use super::cache::SiblingMap;
use super::cpuinfo::CpuInfo;
use super::files::Files;
use super::settings::Settings;
use crate::error::Error;
use crate::fallible::try_push;
use crate::seam::{FileKind, Os};
use crate::sort::sort;

/// `HsaCacheType`: holds data.
const DATA: u32 = 1;
/// `HsaCacheType`: holds instructions.
const INSTRUCTION: u32 = 2;
/// `HsaCacheType`: a CPU's.
const CPU: u32 = 4;

/// The most caches that one CPU is asked for; real ones have three to five.
const INDEXES: u32 = 16;

/// The highest processor number that is looked at in a list.
const LAST_PROCESSOR: u32 = 0xffff;

/// Where the CPUs of a node are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CpuFolder {
    /// The folder of a NUMA node, by its number.
    Numa(u32),
    /// The folder of all CPUs.
    All,
}

/// The NUMA nodes that have CPUs, ascending. KFD makes its CPU nodes of these, in
/// this order (`kfd_create_vcrat_image_cpu`), but numbers them without gaps.
/// Empty where the kernel does not say.
pub(super) fn numa_nodes_with_cpus<O: Os>(
    files: &mut Files<'_, O>,
    settings: &Settings<'_>,
) -> Result<Vec<u32>, Error> {
    let mut nodes = Vec::new();
    if let Some(root) = settings.numa_nodes {
        files.path.start(root)?;
        files.path.push(b"/has_cpu")?;
        if let Some(text) = files.read_decoration()? {
            for number in processors(text) {
                try_push(&mut nodes, number)?;
            }
        }
    }
    Ok(nodes)
}

/// Reads the caches of all CPUs of a folder, by ascending CPU; `None` if there is
/// no such folder.
pub(super) fn read_cpu_caches<O: Os>(
    files: &mut Files<'_, O>,
    settings: &Settings<'_>,
    folder: CpuFolder,
    cpuinfo: &CpuInfo,
) -> Result<Option<Vec<Cache>>, Error> {
    let named = match (folder, settings.numa_nodes, settings.cpus) {
        (CpuFolder::Numa(node), Some(root), _) => {
            files.path.start(root)?;
            files.path.push(b"/node")?;
            files.path.push_number(node)?;
            true
        }
        (CpuFolder::All, _, Some(root)) => {
            files.path.start(root)?;
            true
        }
        _ => false,
    };
    if !named {
        return Ok(None);
    }
    let Some(cpus) = list_cpus(files)? else {
        return Ok(None);
    };
    let mut caches = Vec::new();
    files.path.push(b"/cpu")?;
    let base = files.path.mark();
    for cpu in cpus {
        files.path.back_to(base);
        files.path.push_number(cpu)?;
        files.path.push(b"/cache/index")?;
        let index_base = files.path.mark();
        for index in 0..INDEXES {
            files.path.back_to(index_base);
            files.path.push_number(index)?;
            files.path.push(b"/")?;
            match read_cache(files, cpu, cpuinfo)? {
                ControlFlow::Continue(Some(cache)) => try_push(&mut caches, cache)?,
                ControlFlow::Continue(None) => {}
                ControlFlow::Break(()) => break,
            }
        }
    }
    Ok(Some(caches))
}

/// The numbers of the entries `cpu<number>` of the folder at the path, ascending;
/// `None` if there is no such folder.
fn list_cpus<O: Os>(files: &mut Files<'_, O>) -> Result<Option<Vec<u32>>, Error> {
    let mut cpus: Vec<u32> = Vec::new();
    let mut refused = Ok(());
    let visit = &mut |name: &[u8], _: FileKind| {
        let digits = name.strip_prefix(b"cpu").filter(|digits| !digits.is_empty());
        match digits.and_then(super::properties::number).map(u32::try_from) {
            Some(Ok(cpu)) => match try_push(&mut cpus, cpu) {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => {
                    refused = Err(error);
                    ControlFlow::Break(())
                }
            },
            _ => ControlFlow::Continue(()),
        }
    };
    if files.os.list_folder(files.path.as_c_str(), visit).is_err() {
        return Ok(None);
    }
    refused?;
    sort(&mut cpus);
    cpus.dedup();
    Ok(Some(cpus))
}

/// Reads the cache at the path (`…/index<I>/`). `Break`: there are no more;
/// `None`: another CPU lists it, or it does not say what it is.
fn read_cache<O: Os>(
    files: &mut Files<'_, O>,
    cpu: u32,
    cpuinfo: &CpuInfo,
) -> Result<ControlFlow<(), Option<Cache>>, Error> {
    let base = files.path.mark();
    let mut sibling_map = SiblingMap::default();
    let mut first = None;
    files.path.push(b"shared_cpu_list")?;
    if let Some(text) = files.read_decoration()? {
        for processor in processors(text) {
            first.get_or_insert(processor);
            sibling_map.insert(apic_place(cpuinfo, processor));
        }
    }
    if first.is_some_and(|first| first != cpu) {
        return Ok(ControlFlow::Continue(None));
    }
    if first.is_none() {
        sibling_map.insert(apic_place(cpuinfo, cpu));
    }
    let mut text_of = |name: &[u8]| -> Result<Option<Word>, Error> {
        files.path.back_to(base);
        files.path.push(name)?;
        Ok(files.read_decoration()?.map(Word::from_text))
    };
    let Some(level) = text_of(b"level")? else {
        // Without a sharing list either there is no such folder.
        return Ok(match first {
            None => ControlFlow::Break(()),
            Some(_) => ControlFlow::Continue(None),
        });
    };
    let Some(level) = level.number() else {
        return Ok(ControlFlow::Continue(None));
    };
    let kind = match text_of(b"type")?.as_ref().map(Word::as_bytes) {
        Some(b"Data") => DATA,
        Some(b"Instruction") => INSTRUCTION,
        Some(b"Unified") => DATA | INSTRUCTION,
        _ => 0,
    };
    let mut number_of = |name: &[u8]| -> Result<u32, Error> {
        Ok(text_of(name)?.and_then(|word| word.number()).unwrap_or(0))
    };
    let cache = Cache {
        processor_id_low: cpuinfo.apic_id_of(cpu),
        level,
        cache_line_size: number_of(b"coherency_line_size")?,
        cache_lines_per_tag: number_of(b"physical_line_partition")?,
        association: number_of(b"ways_of_associativity")?,
        size: text_of(b"size")?.map_or(0, |word| bytes_of(word.as_bytes())),
        cache_type: kind | CPU,
        sibling_map,
        ..Cache::default()
    };
    Ok(ControlFlow::Continue(Some(cache)))
}

/// Where a processor stands in a sibling map.
fn apic_place(cpuinfo: &CpuInfo, processor: u32) -> usize {
    usize::try_from(cpuinfo.apic_id_of(processor)).unwrap_or(usize::MAX)
}

/// The first word of a file, long enough for what these files say.
struct Word {
    bytes: [u8; 16],
    length: usize,
}

impl Word {
    fn from_text(text: &[u8]) -> Word {
        let mut word = Word { bytes: [0; 16], length: 0 };
        for (to, from) in word.bytes.iter_mut().zip(text.trim_ascii()) {
            *to = *from;
            word.length = word.length.saturating_add(1);
        }
        word
    }

    fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }

    fn number(&self) -> Option<u32> {
        super::properties::number(self.as_bytes()).and_then(|number| u32::try_from(number).ok())
    }
}

/// A size such as `32K`, in bytes; sizes beyond 32 bits stop there.
fn bytes_of(text: &[u8]) -> u32 {
    let (digits, unit) = match text {
        [digits @ .., b'K'] => (digits, 1 << 10),
        [digits @ .., b'M'] => (digits, 1 << 20),
        [digits @ .., b'G'] => (digits, 1 << 30),
        _ => (text, 1u64),
    };
    let bytes = super::properties::number(digits).unwrap_or(0).saturating_mul(unit);
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

/// The numbers of a kernel list such as `0-3,64,66-67`; ends at the first thing
/// that is no range, or does not ascend as the kernel's lists do. So however long
/// a text is, it gives each number once.
fn processors(text: &[u8]) -> impl Iterator<Item = u32> + '_ {
    let mut least = 0;
    text.trim_ascii()
        .split(|&byte| byte == b',')
        .map_while(move |range| {
            let mut ends = range.split(|&byte| byte == b'-').map(super::properties::number);
            let first = u32::try_from(ends.next()??).ok()?;
            let last = match ends.next() {
                None => first,
                Some(last) => u32::try_from(last?).ok()?,
            };
            let range = first..=last.min(LAST_PROCESSOR);
            if first < least {
                return None;
            }
            least = range.end().saturating_add(1).max(least);
            Some(range)
        })
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &[u8]) -> Vec<u32> {
        processors(text).collect()
    }

    #[test]
    fn kernel_lists() {
        assert_eq!(list(b"0\n"), [0]);
        assert_eq!(list(b"0-3,64,66-67\n"), [0, 1, 2, 3, 64, 66, 67]);
        assert_eq!(list(b"\n"), []);
        assert_eq!(list(b"5-3"), []);
        assert_eq!(list(b"2,0-1,3"), [2]);
        assert_eq!(list(b"0-2,2-3"), [0, 1, 2]);
        assert_eq!(list(b"1,x,2"), [1]);
        assert_eq!(list(b"1-"), []);
        assert_eq!(list(b"70000"), []);
        assert_eq!(list(b"65534-4294967295"), [65534, 65535]);
    }

    #[test]
    fn sizes() {
        assert_eq!(bytes_of(b"32K"), 32 << 10);
        assert_eq!(bytes_of(b"16M"), 16 << 20);
        assert_eq!(bytes_of(b"1G"), 1 << 30);
        assert_eq!(bytes_of(b"512"), 512);
        assert_eq!(bytes_of(b"8G"), u32::MAX);
        for bad in [&b""[..], b"K", b"x", b"32KB", b"-1K"] {
            assert_eq!(bytes_of(bad), 0);
        }
    }
}
