//! Captured trees, in `../shared/captures` beside the repository, or in the
//! folder that HSAKMT_CAPTURES names.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{ScratchFolder, Tree};

/// A captured tree.
pub struct Capture {
    /// Which.
    pub name: String,
    /// Its files, below `/topology`.
    pub tree: Tree,
}

/// The folder of the captures, if it is there.
fn folder() -> Option<PathBuf> {
    let folder = match std::env::var_os("HSAKMT_CAPTURES") {
        Some(folder) => PathBuf::from(folder),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/captures"),
    };
    folder.is_dir().then_some(folder)
}

/// Unpacks an archive of captures; `None`, and a line that says so, without them.
///
/// An archive may hold several trees; each is a folder with `nodes` in it.
#[must_use]
pub fn captures(archive: &str) -> Option<(Vec<Capture>, PathBuf)> {
    let Some(folder) = folder() else {
        println!("skipped: captures absent");
        return None;
    };
    let scratch = ScratchFolder::new();
    let status = Command::new("tar")
        .arg("-xJf")
        .arg(folder.join(format!("{archive}.tar.xz")))
        .arg("-C")
        .arg(scratch.path())
        .status()
        .expect("tar runs");
    assert!(status.success(), "tar: {status}");
    let mut found = Vec::new();
    find_trees(scratch.path(), scratch.path(), &mut found);
    assert!(!found.is_empty(), "{archive} holds no tree");
    Some((found, folder))
}

fn find_trees(root: &Path, folder: &Path, found: &mut Vec<Capture>) {
    if folder.join("nodes").is_dir() {
        let name = folder.strip_prefix(root).unwrap_or(folder).display().to_string();
        found.push(Capture { name, tree: Tree::read_from(folder, "/topology") });
        return;
    }
    let mut folders: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("a folder")
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.is_dir())
        .collect();
    folders.sort();
    for folder in folders {
        find_trees(root, &folder, found);
    }
}

/// Adds to a captured tree what the capture lacks: kernel ids, names, banks,
/// caches. By the same rules as the machine on which the expected values were
/// taken.
pub fn complete(tree: &mut Tree) {
    for (path, content) in [
        ("/topology/generation_id", "1\n"),
        ("/topology/system_properties", "platform_oem 1\nplatform_id 1\nplatform_rev 1\n"),
    ] {
        if !tree.files.contains_key(path) {
            tree.put(path, content);
        }
    }
    let mut numbers: Vec<u32> = tree
        .files
        .keys()
        .filter_map(|path| path.strip_prefix("/topology/nodes/")?.split('/').next()?.parse().ok())
        .collect();
    numbers.sort_unstable();
    numbers.dedup();
    let mut given = Vec::new();
    for number in numbers {
        let folder = format!("/topology/nodes/{number}");
        let properties = tree.files[&format!("{folder}/properties")].clone();
        let text = String::from_utf8(properties).expect("a text");
        let value = |key: &str| -> u64 {
            let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' '));
            line.map_or(0, |value| value.parse().expect("a number"))
        };
        let is_gpu = value("simd_count") > 0;
        if !tree.files.contains_key(&format!("{folder}/gpu_id")) {
            let mut gpu_id = 0;
            if is_gpu {
                let mut bytes = Vec::new();
                for word in [value("unique_id"), value("location_id"), u64::from(number)] {
                    bytes.extend_from_slice(&word.to_le_bytes());
                }
                gpu_id = crc16(&bytes);
                while gpu_id == 0 || given.contains(&gpu_id) {
                    gpu_id = gpu_id.wrapping_add(1);
                }
                given.push(gpu_id);
            }
            tree.put(&format!("{folder}/gpu_id"), format!("{gpu_id}\n"));
        }
        if !tree.files.contains_key(&format!("{folder}/name")) {
            tree.put(&format!("{folder}/name"), "\n");
        }
        for bank in 0..value("mem_banks_count") {
            let path = format!("{folder}/mem_banks/{bank}/properties");
            if !tree.files.contains_key(&path) {
                let (heap, bytes, width, clock) =
                    if is_gpu { (1, 64u64 << 30, 4096, 1600) } else { (0, 256u64 << 30, 64, 3200) };
                tree.put(
                    &path,
                    format!(
                        "heap_type {heap}\nsize_in_bytes {bytes}\nflags 0\nwidth {width}\nmem_clk_max {clock}\n"
                    ),
                );
            }
        }
        for cache in 0..value("caches_count") {
            let path = format!("{folder}/caches/{cache}/properties");
            if !tree.files.contains_key(&path) {
                let processor = value("simd_id_base") + cache * 4;
                tree.put(
                    &path,
                    format!(
                        "processor_id_low {processor}\nlevel 1\nsize 16\ncache_line_size 64\n\
                         cache_lines_per_tag 1\nassociation 16\nlatency 1\ntype 9\nsibling_map 1\n"
                    ),
                );
            }
        }
    }
}

fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        (0..8).fold(
            crc ^ u16::from(*byte),
            |crc, _| {
                if crc & 1 == 1 { crc >> 1 ^ 0xa001 } else { crc >> 1 }
            },
        )
    })
}
