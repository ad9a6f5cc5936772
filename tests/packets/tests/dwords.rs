//! The library's packets are, dword for dword, what the kernel's field macros make
//! of the same inputs (`src/case.h`).

use std::collections::BTreeSet;

use hsakmt_core::queue::packets::pm4::{self, Pm4Generation, Release};
use hsakmt_core::queue::packets::sdma::{self, CacheRequest, SdmaVersion};
use hsakmt_packets::lines;

const FROM: u64 = 0x1234_5678_9abc_def1;
const TO: u64 = 0xfedc_ba98_7654_3217;
const DWORD_AT: u64 = 0x0000_7fed_cba9_8764;
const QWORD_AT: u64 = 0x0000_8123_4567_8af8;
const QWORD: u64 = 0x89ab_cdef_0123_4567;
const VALUE: u32 = 0xdead_beef;
const EVENT: u32 = 0x0abc_def1;

const SDMA: [(&str, SdmaVersion); 10] = [
    ("sdma1", SdmaVersion::V1),
    ("sdma2.4", SdmaVersion::V2_4),
    ("sdma3", SdmaVersion::V3),
    ("sdma4.0", SdmaVersion::V4_0),
    ("sdma4.4", SdmaVersion::V4_4),
    ("sdma5.0", SdmaVersion::V5_0),
    ("sdma5.2", SdmaVersion::V5_2),
    ("sdma6", SdmaVersion::V6),
    ("sdma7", SdmaVersion::V7),
    ("sdma7.1", SdmaVersion::V7_1),
];

const PM4: [(&str, Pm4Generation); 7] = [
    ("gfx7", Pm4Generation::Gfx7),
    ("gfx8", Pm4Generation::Gfx8),
    ("gfx9", Pm4Generation::Gfx9),
    ("gfx10", Pm4Generation::Gfx10),
    ("gfx11", Pm4Generation::Gfx11),
    ("gfx12", Pm4Generation::Gfx12),
    ("gfx12.5", Pm4Generation::Gfx12_5),
];

fn words<const N: usize>(packet: Option<[u32; N]>) -> Option<Vec<u32>> {
    packet.map(Vec::from)
}

fn sdma_packet(version: SdmaVersion, case: &str) -> Option<Vec<u32>> {
    let (name, number) = case.split_once('-').unwrap_or((case, "0"));
    let number = u32::from_str_radix(number, 16).expect("a number");
    let cache = |request| sdma::cache(version, request).map(|packet| packet.as_ref().to_vec());
    match name {
        "nop" => Some(sdma::NOP.to_vec()),
        "write" => words(sdma::write_head(version, DWORD_AT, number)),
        "copy" => words(sdma::copy(version, FROM, TO, number)),
        "fill" => words(sdma::fill(version, DWORD_AT, VALUE, number)),
        "fence" => words(sdma::fence(version, DWORD_AT, VALUE)),
        "trap" => Some(sdma::trap(if number == 0 { EVENT } else { number }).to_vec()),
        "wait" => words(sdma::wait_until_equal(DWORD_AT, VALUE)),
        "acquire" => cache(CacheRequest::Acquire),
        "release" => cache(CacheRequest::Release),
        _ => panic!("a case {case}"),
    }
}

fn pm4_packet(generation: Pm4Generation, case: &str) -> Option<Vec<u32>> {
    let release =
        |what, event| pm4::release(generation, what, event).map(|packet| packet.as_ref().to_vec());
    match case {
        "nop-1" => pm4::nop(1).map(|word| vec![word]),
        "nop-2" => pm4::nop(2).map(|word| vec![word]),
        "nop-16384" => pm4::nop(16384).map(|word| vec![word]),
        "write-3" => words(pm4::write_head(generation, DWORD_AT, 3)),
        "release-dword-event" => release(Release::Dword(DWORD_AT, VALUE), Some(EVENT)),
        "release-dword" => release(Release::Dword(DWORD_AT, VALUE), None),
        "release-qword-event" => release(Release::Qword(QWORD_AT, QWORD), Some(EVENT)),
        "release-clock" => release(Release::Clock(QWORD_AT), None),
        "release-event" => release(Release::Nothing, Some(EVENT)),
        "release" => release(Release::Nothing, None),
        "acquire" => Some(pm4::acquire(generation).as_ref().to_vec()),
        "shaders" => Some(pm4::wait_for_shaders(generation).to_vec()),
        "wait" => words(pm4::wait_until_equal(generation, DWORD_AT, VALUE)),
        "copy-12345" => words(pm4::copy(generation, FROM, TO, 0x1_2345)),
        "fill-1ffffc" => words(pm4::fill(generation, DWORD_AT, VALUE, 0x1f_fffc)),
        "buffer" => words(pm4::indirect_buffer(generation, DWORD_AT, 0x5_4321)),
        _ => panic!("a case {case}"),
    }
}

#[test]
fn every_packet_is_the_headers() {
    for line in lines() {
        let sdma = SDMA.iter().find(|(name, _)| *name == line.generation);
        let pm4 = PM4.iter().find(|(name, _)| *name == line.generation);
        let packet = match (sdma, pm4) {
            (Some(&(_, version)), _) => sdma_packet(version, line.case),
            (_, Some(&(_, generation))) => pm4_packet(generation, line.case),
            _ => panic!("a generation {}", line.generation),
        };
        assert_eq!(packet.as_ref(), Some(&line.dwords), "{} {}", line.generation, line.case);
    }
}

#[test]
fn every_generation_has_every_case() {
    let lines = lines();
    let cases = |generation: &str| -> BTreeSet<&str> {
        lines.iter().filter(|line| line.generation == generation).map(|line| line.case).collect()
    };
    for (name, _) in PM4 {
        assert_eq!(cases(name).len(), 16, "{name}");
    }
    for (name, version) in SDMA {
        for case in ["nop", "write-5", "copy-1", "copy-1fffff", "fill-4", "fence", "trap", "wait"] {
            assert!(cases(name).contains(case), "{name} {case}");
        }
        for request in [CacheRequest::Acquire, CacheRequest::Release] {
            let has = sdma::cache(version, request).is_some();
            assert_eq!(has, cases(name).contains("acquire") && cases(name).contains("release"));
        }
    }
}
