//! `/proc/cpuinfo` of every architecture.
//!
//! Blocks of `key : value` lines, one block per processor, each beginning with
//! the key `processor`. What follows differs:
//!
//! | architecture | name of the CPU | APIC id |
//! |---|---|---|
//! | x86 | `model name` | `apicid` |
//! | arm64 | `model name` in some kernels, else made of `CPU implementer` and `CPU part` | none |
//! | riscv | `uarch` | none |
//! | ppc64le | `cpu` | none |
//! | loongarch | `Model Name` | none |
//!
//! Where there is no APIC id KFD counts processors instead
//! (`kfd_numa_node_to_apic_id` in `kfd_crat.c`), and so does this reader. The
//! style is told by the keys, not by the machine that reads.

use alloc::vec::Vec;

use super::Name;
use super::properties::split_line;
use crate::error::Error;
use crate::fallible::try_push;
use crate::sort::sort_by_key;

/// An online processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Processor {
    number: u32,
    apic_id: u32,
    /// Place in `models`.
    model: usize,
}

/// The processors of the machine.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct CpuInfo {
    /// Ascending by number.
    processors: Vec<Processor>,
    /// The names, each once in a row.
    models: Vec<Name>,
}

/// A processor whose block is being read.
#[derive(Default)]
struct Block {
    number: u32,
    apic_id: Option<u32>,
    model: Name,
    other_name: Name,
    implementer: u32,
    part: u32,
}

impl CpuInfo {
    /// Reads the text; lines that it does not understand are skipped.
    pub(super) fn read(text: &[u8]) -> Result<CpuInfo, Error> {
        let mut info = CpuInfo::default();
        let mut block: Option<Block> = None;
        let mut rest = text;
        while !rest.is_empty() {
            let (line, next) = split_line(rest);
            rest = next;
            let Some((key, value)) = wanted(line) else {
                continue;
            };
            if key == Key::Processor {
                if let Some(number) = decimal(value) {
                    if let Some(done) = block.take() {
                        info.add(&done)?;
                    }
                    block = Some(Block { number, ..Block::default() });
                }
                continue;
            }
            let Some(block) = block.as_mut() else {
                continue;
            };
            match key {
                Key::ApicId => block.apic_id = decimal(value),
                Key::ModelName => block.model = Name::from_text(value),
                Key::OtherName => block.other_name = Name::from_text(value),
                Key::Implementer => block.implementer = hexadecimal(value),
                Key::Part => block.part = hexadecimal(value),
                Key::Processor => {}
            }
        }
        if let Some(done) = block {
            info.add(&done)?;
        }
        if !info.processors.is_sorted_by_key(|processor| processor.number) {
            sort_by_key(&mut info.processors, |processor| processor.number);
        }
        Ok(info)
    }

    fn add(&mut self, block: &Block) -> Result<(), Error> {
        let name = if !block.model.is_empty() {
            block.model
        } else if !block.other_name.is_empty() {
            block.other_name
        } else {
            Name::from(arm_core(block.implementer, block.part))
        };
        if self.models.last() != Some(&name) {
            try_push(&mut self.models, name)?;
        }
        let processor = Processor {
            number: block.number,
            apic_id: block.apic_id.unwrap_or(block.number),
            model: self.models.len().saturating_sub(1),
        };
        try_push(&mut self.processors, processor)
    }

    /// The name of the CPU that the processor with this APIC id belongs to.
    pub(super) fn model_of(&self, apic_id: u32) -> Option<Name> {
        let processor = self.processors.iter().find(|processor| processor.apic_id == apic_id)?;
        self.models.get(processor.model).copied()
    }

    /// The APIC id of a processor; its number where the text says nothing.
    pub(super) fn apic_id_of(&self, number: u32) -> u32 {
        let place = self.processors.binary_search_by_key(&number, |processor| processor.number);
        let found = place.ok().and_then(|place| self.processors.get(place));
        found.map_or(number, |processor| processor.apic_id)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Key {
    Processor,
    ApicId,
    ModelName,
    OtherName,
    Implementer,
    Part,
}

/// Takes a line apart if its key matters.
fn wanted(line: &[u8]) -> Option<(Key, &[u8])> {
    // Most lines are told apart by their first byte.
    if !matches!(line.first(), Some(b'p' | b'a' | b'm' | b'M' | b'c' | b'C' | b'u')) {
        return None;
    }
    let colon = line.iter().position(|&byte| byte == b':')?;
    let (key, value) = line.split_at_checked(colon)?;
    let key = match key.trim_ascii() {
        b"processor" => Key::Processor,
        b"apicid" => Key::ApicId,
        b"model name" | b"Model Name" => Key::ModelName,
        b"cpu" | b"uarch" => Key::OtherName,
        b"CPU implementer" => Key::Implementer,
        b"CPU part" => Key::Part,
        _ => return None,
    };
    Some((key, value.get(1..)?.trim_ascii()))
}

fn decimal(text: &[u8]) -> Option<u32> {
    let value = super::properties::number(text)?;
    u32::try_from(value).ok()
}

/// A number written as `0xd0c`; 0 for anything else.
fn hexadecimal(text: &[u8]) -> u32 {
    let mut value: u32 = 0;
    for &byte in text.strip_prefix(b"0x").unwrap_or_default() {
        let digit = match byte {
            b'0'..=b'9' => byte & 15,
            b'a'..=b'f' | b'A'..=b'F' => (byte & 15).wrapping_add(9),
            _ => return 0,
        };
        if value >> 28 != 0 {
            return 0;
        }
        value = value << 4 | u32::from(digit);
    }
    value
}

/// The name of an Arm core by the fields of its MIDR register (Arm ARM, and the
/// implementers' manuals), for the cores that servers with GPUs have.
fn arm_core(implementer: u32, part: u32) -> &'static str {
    match (implementer, part) {
        (0x41, 0xd07) => "Cortex-A57",
        (0x41, 0xd08) => "Cortex-A72",
        (0x41, 0xd0b) => "Cortex-A76",
        (0x41, 0xd0c) => "Neoverse-N1",
        (0x41, 0xd40) => "Neoverse-V1",
        (0x41, 0xd49) => "Neoverse-N2",
        (0x41, 0xd4f) => "Neoverse-V2",
        (0x41, 0xd84) => "Neoverse-V3",
        (0x41, 0xd8e) => "Neoverse-N3",
        (0x43, 0x0a1) => "ThunderX",
        (0x43, 0x0af) => "ThunderX2",
        (0x46, 0x001) => "A64FX",
        (0x48, 0xd01) => "Kunpeng 920",
        (0x50, 0x000) => "X-Gene",
        (0xc0, 0xac3) => "Ampere-1",
        (0xc0, 0xac4) => "Ampere-1a",
        (0xc0, 0xac5) => "Ampere-1b",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use alloc::string::String;

    fn name(info: &CpuInfo, apic_id: u32) -> String {
        info.model_of(apic_id).map_or(String::new(), |name| format!("{name}"))
    }

    #[test]
    fn x86() {
        let info = CpuInfo::read(
            b"processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 1\n\
              model name\t: AMD EPYC 7713 64-Core Processor\nstepping\t: 1\n\
              physical id\t: 0\ncpu cores\t: 64\napicid\t\t: 0\ninitial apicid\t: 0\n\
              flags\t\t: fpu vme : de\npower management: ts ttp\n\n\
              processor\t: 1\nvendor_id\t: AuthenticAMD\n\
              model name\t: AMD EPYC 7713 64-Core Processor\napicid\t\t: 128\n\n",
        )
        .unwrap();
        assert_eq!(info.models.len(), 1);
        assert_eq!(name(&info, 0), "AMD EPYC 7713 64-Core Processor");
        assert_eq!(name(&info, 128), "AMD EPYC 7713 64-Core Processor");
        assert_eq!(name(&info, 1), "");
        assert_eq!((info.apic_id_of(0), info.apic_id_of(1), info.apic_id_of(2)), (0, 128, 2));
    }

    #[test]
    fn arm64() {
        let block = "processor\t: N\nBogoMIPS\t: 50.00\nFeatures\t: fp asimd evtstrm\n\
                     CPU implementer\t: 0x41\nCPU architecture: 8\nCPU variant\t: 0x3\n\
                     CPU part\t: 0xd0c\nCPU revision\t: 1\n\n";
        let text = block.replace('N', "0") + &block.replace('N', "1");
        let info = CpuInfo::read(text.as_bytes()).unwrap();
        assert_eq!(name(&info, 1), "Neoverse-N1");
        assert_eq!(info.apic_id_of(1), 1);
        let unknown = text.replace("0xd0c", "0x123");
        assert_eq!(name(&CpuInfo::read(unknown.as_bytes()).unwrap(), 0), "");
        let named = text.replace("BogoMIPS\t: 50.00", "model name\t: ARMv8 Processor rev 1 (v8l)");
        assert_eq!(
            name(&CpuInfo::read(named.as_bytes()).unwrap(), 0),
            "ARMv8 Processor rev 1 (v8l)"
        );
    }

    #[test]
    fn riscv() {
        let info = CpuInfo::read(
            b"processor\t: 0\nhart\t\t: 1\nisa\t\t: rv64imafdc\nmmu\t\t: sv39\n\
              uarch\t\t: sifive,u74-mc\nmvendorid\t: 0x489\n\n\
              processor\t: 1\nhart\t\t: 2\nisa\t\t: rv64imafdc\nmmu\t\t: sv39\n\n",
        )
        .unwrap();
        assert_eq!((name(&info, 0).as_str(), name(&info, 1).as_str()), ("sifive,u74-mc", ""));
    }

    #[test]
    fn ppc64le() {
        let info = CpuInfo::read(
            b"processor\t: 0\ncpu\t\t: POWER9, altivec supported\nclock\t\t: 3800.000000MHz\n\
              revision\t: 2.3 (pvr 004e 1203)\n\n\
              processor\t: 4\ncpu\t\t: POWER9, altivec supported\nclock\t\t: 3800.000000MHz\n\n\
              timebase\t: 512000000\nplatform\t: PowerNV\nmodel\t\t: 9006-22P\n\
              machine\t\t: PowerNV 9006-22P\nMMU\t\t: Radix\n",
        )
        .unwrap();
        assert_eq!(name(&info, 4), "POWER9, altivec supported");
        assert_eq!(info.processors.len(), 2);
    }

    #[test]
    fn loongarch() {
        let info = CpuInfo::read(
            b"system type\t\t: generic-loongson-machine\n\nprocessor\t\t: 0\npackage\t\t\t: 0\n\
              CPU Family\t\t: Loongson-64bit\nModel Name\t\t: Loongson-3A5000-HV\n\n",
        )
        .unwrap();
        assert_eq!(name(&info, 0), "Loongson-3A5000-HV");
    }

    #[test]
    fn order_gaps_and_nonsense() {
        let info = CpuInfo::read(
            b"apicid : 3\nprocessor : 9\napicid : 5\nmodel name : B\n\
              Processor : ARMv7\nprocessor : x\nprocessor : 2\r\napicid : 1\r\nmodel name : A\r\n\
              processor : 99999999999\nmodel name :\nprocessor : 4000000000\nmodel name",
        )
        .unwrap();
        let numbers: Vec<u32> = info.processors.iter().map(|processor| processor.number).collect();
        assert_eq!(numbers, [2, 9, 4_000_000_000]);
        assert_eq!((name(&info, 5).as_str(), name(&info, 1).as_str()), ("B", ""));
        assert_eq!(CpuInfo::read(b"").unwrap(), CpuInfo::default());
    }

    #[test]
    fn hexadecimal_numbers() {
        assert_eq!(hexadecimal(b"0xd0c"), 0xd0c);
        assert_eq!(hexadecimal(b"0xFFFFFFFF"), u32::MAX);
        for bad in [&b""[..], b"0x", b"d0c", b"0x1g", b"0x100000000"] {
            assert_eq!(hexadecimal(bad), 0);
        }
    }
}
