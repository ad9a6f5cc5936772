//! What the fuzz targets share.

use hsakmt_core::error::Error;
use hsakmt_core::topology::{MajorChange, Settings, Snapshot, Unopened, read_snapshot};
use hsakmt_topology_tests::{SETTINGS, Tree, TreeOs};

/// Cuts the input into `N` files at its first NULs; the last keeps the others.
#[must_use]
pub fn files<const N: usize>(input: &[u8]) -> [&[u8]; N] {
    let mut parts = input.splitn(N, |&byte| byte == 0);
    std::array::from_fn(|_| parts.next().unwrap_or_default())
}

/// Reads a tree, and checks what holds of every snapshot.
///
/// # Errors
/// As [`read_snapshot`].
pub fn read(tree: Tree, settings: &Settings<'_>) -> Result<Snapshot, Error> {
    let os = TreeOs::new(tree);
    let snapshot = read_snapshot(&os, settings, &mut Unopened)?;
    assert_eq!(os.other_calls(), 0);
    assert_holds_together(&snapshot);
    Ok(snapshot)
}

/// The same with the settings of the tests, where overrides hold.
///
/// # Errors
/// As [`read_snapshot`].
pub fn read_plainly(tree: Tree) -> Result<Snapshot, Error> {
    read(tree, &Settings { major_change: MajorChange::Allow, ..SETTINGS })
}

/// Checks what holds of every snapshot, whatever the files say.
///
/// # Panics
/// When it does not hold.
pub fn assert_holds_together(snapshot: &Snapshot) {
    let nodes = snapshot.nodes();
    assert_eq!(nodes.len() + snapshot.hidden().len(), snapshot.sysfs_node_count());
    for (id, node) in (0u32..).zip(nodes) {
        assert_eq!(snapshot.by_sysfs_node(node.sysfs_node), Some(id));
        for link in &node.links {
            assert_eq!(link.node_from, id);
            assert!(link.node_to != id && (link.node_to as usize) < nodes.len());
        }
        assert!(node.links.len() < nodes.len().max(1));
        if node.is_gpu() {
            assert!(node.drm_render_minor != 0);
            let found = snapshot.by_gpu_id(node.gpu_id).and_then(|id| snapshot.node(id));
            assert_eq!(found.map(|node| node.gpu_id), Some(node.gpu_id));
            let found = snapshot.by_render_minor(node.drm_render_minor);
            let found = found.and_then(|id| snapshot.node(id));
            assert_eq!(found.map(|other| other.drm_render_minor), Some(node.drm_render_minor));
        } else {
            assert_eq!(node.simd_count, 0);
        }
        for name in [&node.asic_name, &node.marketing_name, &node.amd_name] {
            assert!(name.as_bytes().len() <= 63 && !name.as_bytes().contains(&0));
        }
    }
}

/// What a file of `key number` lines says of a key, read the slow way: the last
/// line of the key that holds a number and nothing else.
#[must_use]
pub fn value_of(content: &[u8], key: &str) -> u64 {
    let value = |line: &[u8]| -> Option<u64> {
        let text = line.strip_prefix(key.as_bytes())?.strip_prefix(b" ")?;
        let end = text.iter().rposition(|byte| !matches!(byte, b' ' | b'\t' | b'\r'));
        let digits = &text[..end.map_or(0, |last| last + 1)];
        let all_digits = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
        all_digits.then(|| std::str::from_utf8(digits).ok()?.parse().ok())?
    };
    content.split(|&byte| byte == b'\n').filter_map(value).next_back().unwrap_or(0)
}
