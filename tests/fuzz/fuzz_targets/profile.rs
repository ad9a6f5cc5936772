//! The text that names a simulated machine.
#![no_main]

use kfd_sim::Profile;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &str| {
    match Profile::parse(input) {
        Ok(profile) => {
            let nodes = profile.topology.nodes.len();
            assert!(nodes > 0 && nodes <= 64 + 128, "{nodes} nodes");
            let mut ids: Vec<u32> = profile.topology.gpus().map(|(_, gpu)| gpu.id).collect();
            let count = ids.len();
            ids.sort_unstable();
            ids.dedup();
            assert!(ids.len() == count && !ids.contains(&0));
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
