//! The library's sizes are the kernel's, for every version and every number of
//! compute units in the table.

use std::collections::BTreeSet;

use hsakmt_core::queue::sizes::{SaveArea, end_of_pipe_bytes};
use hsakmt_core::topology::{GfxVersion, Node};
use hsakmt_core::uapi::kfd::QueueType;
use hsakmt_save_area::{
    ENGINES, LOCAL_DATA, MOST_DIES, MOST_UNITS, Row, TABLE, sections, simd_per_unit,
};

fn node(target: u32, row: &Row, local: u32, engines: u32, dies: u32) -> Node {
    let per_unit = simd_per_unit(target);
    Node {
        gfx_version: GfxVersion::from_target_version(target),
        simd_count: row.units * per_unit * dies,
        simd_per_cu: per_unit,
        num_xcc: dies,
        array_count: engines * 2 * dies,
        shader_engines: engines * dies,
        simd_arrays_per_engine: 2,
        lds_size_in_kb: local,
        ..Node::default()
    }
}

fn check(kernel: &str, target: u32, row: &Row, node: &Node) {
    let area = SaveArea::of(node).unwrap_or_else(|| panic!("{kernel} {target} {row}"));
    let expected = (row.sizes.control_stack, row.sizes.per_die, row.sizes.debug);
    assert_eq!(
        (area.control_stack, area.per_die, area.debug_per_die),
        expected,
        "{kernel} {target} {row}"
    );
    assert_eq!(area.dies.get(), node.num_xcc);
    let buffer = end_of_pipe_bytes(node.gfx_version, QueueType::COMPUTE);
    assert_eq!(buffer, row.sizes.end_of_pipe, "{kernel} {target}");
}

#[test]
fn every_size_is_the_kernels() {
    let mut checked = 0;
    for section in sections(TABLE) {
        for (kernel, target) in &section.targets {
            for row in &section.rows {
                let local = row.local_data.map_or(LOCAL_DATA.to_vec(), |one| vec![one]);
                let engines = row.engines.map_or(ENGINES.to_vec(), |one| vec![one]);
                for (&local, &engines) in
                    local.iter().flat_map(|local| engines.iter().map(move |e| (local, e)))
                {
                    for dies in 1..=MOST_DIES {
                        check(kernel, *target, row, &node(*target, row, local, engines, dies));
                        checked += 1;
                    }
                }
            }
        }
    }
    // 2 kernels, each with 30 versions or more.
    let shapes = LOCAL_DATA.len() * ENGINES.len() * MOST_UNITS as usize * MOST_DIES as usize;
    assert!(checked >= 60 * shapes, "{checked}");
    assert_eq!(checked % shapes, 0);
}

#[test]
fn the_table_has_every_generation_of_both_kernels() {
    let sections = sections(TABLE);
    let targets: BTreeSet<(&str, u32)> = sections
        .iter()
        .flat_map(|section| section.targets.iter().map(|(kernel, target)| (&kernel[..], *target)))
        .collect();
    for kernel in ["6.12", "7.2"] {
        let majors: BTreeSet<u32> = targets
            .iter()
            .filter(|(k, _)| *k == kernel)
            .map(|(_, target)| target / 10_000)
            .collect();
        assert_eq!(majors, BTreeSet::from([8, 9, 10, 11, 12]), "{kernel}");
    }
    for target in [90_500, 120_500, 120_501] {
        assert!(targets.contains(&("7.2", target)), "{target}");
    }
    // Each version of a kernel is in one section, with every number of units.
    let listed: usize = sections.iter().map(|section| section.targets.len()).sum();
    assert_eq!(listed, targets.len());
    for section in &sections {
        let units: BTreeSet<u32> = section.rows.iter().map(|row| row.units).collect();
        assert_eq!(units, (1..=MOST_UNITS).collect());
    }
}
