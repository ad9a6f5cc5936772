//! `HSA_OVERRIDE_GFX_VERSION`, and the kernel's decimal version.
#![no_main]

use hsakmt_core::topology::{GfxVersion, MajorChange, Settings};
use hsakmt_fuzz::{files, read};
use hsakmt_topology_tests::{SETTINGS, Tree};
use libfuzzer_sys::fuzz_target;

/// An override, read the slow way.
fn version(text: &[u8]) -> Option<GfxVersion> {
    let text = std::str::from_utf8(text).ok()?;
    let parts: Vec<&str> = text.split('.').collect();
    let [major, minor, stepping] = parts[..] else { return None };
    let part = |text: &str| -> Option<u8> {
        let plain = text.bytes().all(|byte| byte.is_ascii_digit()) && text.len() <= 3;
        plain.then(|| text.parse().ok())?
    };
    let major = part(major).filter(|major| *major <= 63)?;
    Some(GfxVersion { major, minor: part(minor)?, stepping: part(stepping)? })
}

fuzz_target!(|input: &[u8]| {
    let [all, second, target] = files(input);
    let mut tree = Tree::of_gpus(2, true);
    let node = "/topology/nodes/2/properties";
    let text = String::from_utf8(tree.files[node].clone()).expect("a text");
    let target = String::from_utf8_lossy(target).into_owned();
    tree.put(node, text.replace("gfx_target_version 110000", &target));
    let settings = Settings {
        gfx_override: Some(all),
        node_gfx_overrides: &[(3, second)],
        major_change: MajorChange::Allow,
        ..SETTINGS
    };
    assert_eq!(GfxVersion::from_override(all), version(all));
    match (version(all), version(second), read(tree, &settings)) {
        (Some(first), Some(second), Ok(snapshot)) => {
            for (node, expected) in snapshot.nodes()[2..].iter().zip([first, second]) {
                assert_eq!(node.gfx_override, Some(expected));
                assert_eq!(node.effective_gfx_version(), expected);
            }
        }
        (Some(_), Some(_), Err(error)) => panic!("{error}"),
        // One of them is refused unless the GPU that it is for is hidden.
        (_, _, read) => assert!(read.is_err() || read.is_ok_and(|read| read.nodes().len() < 4)),
    }
});
