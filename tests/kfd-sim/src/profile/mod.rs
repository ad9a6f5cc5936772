//! Machines by name.
//!
//! A profile's text is `NAME[:OPTION,…]`. `mi300x:gpus=4,vram=64G` is four
//! GPUs, `mi300x:cpx` eight devices in eight partitions each. Parts of a mixed
//! machine are joined by `+`: `mi50:vram=8G+rx7900:gpus=2` is three GPUs of two
//! kinds.
//!
//! | name | machine |
//! |---|---|
//! | `cpu-only` | no GPU |
//! | `mi300x` | 8 gfx942 in one XGMI hive; `spx`, `dpx`, `qpx`, `cpx` choose the partitions |
//! | `mi210x8` | 8 gfx90a in two hives of four |
//! | `mi210` | one gfx90a |
//! | `mi50`, `rx6800`, `rx7900`, `rx9070` | one gfx906, gfx1030, gfx1100, gfx1201 |
//! | `apu` | one gfx1103 in the CPU |
//!
//! | option | meaning |
//! |---|---|
//! | `gpus=N` | devices (not partitions) |
//! | `cus=N` | active compute units of a die: fewer have fewer caches to read |
//! | `cpus=N`, `cores=N` | sockets, logical processors of each |
//! | `vram=SIZE`, `bar=SIZE`, `ram=SIZE` | memory of a device, what of it the CPU reaches, memory of a socket |
//! | `kernel=6.1`, `6.12`, `7.2` | whose rules |
//! | `kfd=N` | reported KFD minor |
//! | `svm=0\|1`, `p2p=0\|1`, `xgmi=0\|1`, `secondary=0\|1`, `dkms=0\|1`, `ipc=0\|1` | switches |
//! | `udmabuf=SIZE` | the module udmabuf is loaded; the largest buffer that it makes |
//! | `fault=NAME` | something is broken, see the crate's documentation; more than once is possible |
//!
//! `gpus`, `cus`, `vram`, `bar`, `xgmi` and the partitions are each part's own; the other
//! options are the machine's, in whichever part they stand. An option that is given
//! twice is an error, as is an empty one.
//!
//! Sizes end with `K`, `M`, `G` or `T` or are bytes.

use alloc::borrow::ToOwned;
use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

use crate::defect::Defect;
use crate::kernel::{Kernel, KernelProfile};
use crate::topology::Topology;

mod captured;
mod chips;
mod layout;

pub use captured::CapturedTreeError;
use chips::Chip;
use layout::{Part, Plan};

/// What a machine is made of: hardware and kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// The kernel and its switches.
    pub kernel: KernelProfile,
    /// The hardware.
    pub topology: Topology,
    /// What is broken.
    pub defects: BTreeSet<Defect>,
    /// Files that are served as they are instead of being generated.
    pub(crate) captured: captured::Files,
}

/// Why a profile's text names no machine.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProfileError {
    /// No machine of this name.
    UnknownName(String),
    /// No option of this name, or not for this machine.
    UnknownOption(String),
    /// The option's value is not what the option takes.
    BadValue {
        /// The option.
        option: String,
        /// What was given.
        value: String,
        /// What it takes.
        expected: &'static str,
    },
    /// The option is given twice for the same part, or for the same machine.
    Repeated(&'static str),
    /// Nothing stands before, between or after commas, or after a colon.
    EmptyOption,
    /// The parts do not make a machine.
    Impossible(&'static str),
}

impl fmt::Display for ProfileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProfileError::UnknownName(name) => {
                write!(f, "no machine is called \"{name}\"; there are")?;
                for (n, (known, _)) in NAMES.iter().enumerate() {
                    write!(f, "{} {known}", if n == 0 { "" } else { "," })?;
                }
                Ok(())
            }
            ProfileError::UnknownOption(option) => write!(f, "no option \"{option}\""),
            ProfileError::BadValue { option, value, expected } => {
                write!(f, "{option}={value}: expected {expected}")
            }
            ProfileError::Repeated(option) => write!(f, "{option} is given twice"),
            ProfileError::EmptyOption => {
                f.write_str("an option is empty: a comma or a colon without one")
            }
            ProfileError::Impossible(reason) => f.write_str(reason),
        }
    }
}

impl core::error::Error for ProfileError {}

/// What a name stands for before its options apply.
#[derive(Clone, Copy)]
struct Base {
    chip: Option<&'static Chip>,
    devices: u32,
    sockets: u32,
    cores: u32,
}

const fn base(chip: Option<&'static Chip>, devices: u32, sockets: u32, cores: u32) -> Base {
    Base { chip, devices, sockets, cores }
}

const NAMES: &[(&str, Base)] = &[
    ("cpu-only", base(None, 0, 1, 4)),
    ("mi300x", base(Some(&chips::MI300X), 8, 2, 96)),
    ("mi210x8", base(Some(&chips::MI210), 8, 2, 64)),
    ("mi210", base(Some(&chips::MI210), 1, 1, 64)),
    ("mi50", base(Some(&chips::MI50), 1, 1, 16)),
    ("rx6800", base(Some(&chips::RX_6800), 1, 1, 16)),
    ("rx7900", base(Some(&chips::RX_7900), 1, 1, 16)),
    ("rx9070", base(Some(&chips::RX_9070), 1, 1, 16)),
    ("apu", base(Some(&chips::APU_780M), 1, 1, 16)),
];

impl Profile {
    /// The names that [`Profile::from_str`] knows.
    pub fn names() -> impl Iterator<Item = &'static str> {
        NAMES.iter().map(|(name, _)| *name)
    }

    /// The machine of this text, on the kernel that Debian 13 has unless the text
    /// names another.
    ///
    /// # Errors
    /// See [`ProfileError`].
    pub fn parse(text: &str) -> Result<Profile, ProfileError> {
        Profile::parse_on(KernelProfile::debian(Kernel::V6_12), text)
    }

    /// The machine of this text, on this kernel unless the text names another.
    ///
    /// # Errors
    /// See [`ProfileError`].
    pub fn parse_on(kernel: KernelProfile, text: &str) -> Result<Profile, ProfileError> {
        let mut parts = Vec::new();
        let mut kernel = kernel;
        for part in text.split('+') {
            let (name, options) = match part.split_once(':') {
                Some((name, options)) => (name, Some(options)),
                None => (part, None),
            };
            let options = move || options.into_iter().flat_map(|options| options.split(','));
            let Some((_, base)) = NAMES.iter().find(|(known, _)| *known == name) else {
                return Err(ProfileError::UnknownName(name.to_owned()));
            };
            // The kernel comes first: it sets the defaults that the switches change.
            for value in options().filter_map(|option| option.strip_prefix("kernel=")) {
                kernel = KernelProfile::debian(match value {
                    "6.1" => Kernel::V6_1,
                    "6.12" => Kernel::V6_12,
                    "7.2" => Kernel::V7_2,
                    _ => return Err(bad("kernel", value, "6.1, 6.12 or 7.2")),
                });
            }
            parts.push((base, options));
        }
        let most = |number: fn(&Base) -> u32| parts.iter().map(|(base, _)| number(base)).max();
        let sockets = most(|base| base.sockets).unwrap_or(1);
        let cores = most(|base| base.cores).unwrap_or(1);
        let has_gpus = parts.iter().any(|(base, _)| base.chip.is_some());
        let mut plan = Plan::new(sockets, cores, has_gpus);
        let mut given_for_machine = Given::default();
        let mut defects = BTreeSet::new();
        for (base, options) in parts {
            let mut given_for_part = Given::default();
            let mut part = base.chip.map(|chip| Part::new(*chip, base.devices));
            for option in options() {
                if option.is_empty() {
                    return Err(ProfileError::EmptyOption);
                }
                let (key, value) = option.split_once('=').unwrap_or((option, ""));
                if key == "fault" {
                    let defect = Defect::from_name(value);
                    defects.insert(defect.ok_or_else(|| bad(key, value, "the name of a fault"))?);
                    continue;
                }
                let known = match &mut part {
                    Some(part) => apply_to_part(part, key, value)?,
                    None => None,
                };
                if let Some(known) = known {
                    given_for_part.note(known)?;
                } else if let Some(known) = apply_to_machine(&mut plan, &mut kernel, key, value)? {
                    given_for_machine.note(known)?;
                } else {
                    return Err(ProfileError::UnknownOption(option.to_owned()));
                }
            }
            plan.parts.extend(part);
        }
        let topology = plan.build(kernel)?;
        Ok(Profile { kernel, topology, defects, captured: captured::Files::default() })
    }

    /// The machine of a captured topology folder, `/sys/class/kfd/kfd/topology`.
    ///
    /// `files` are the paths below that folder with their contents; they are
    /// served as they are. What a capture leaves out and the driver has
    /// (`gpu_id`, `name`, `generation_id`, `system_properties`) is generated.
    ///
    /// # Errors
    /// See [`CapturedTreeError`].
    pub fn from_captured<P: AsRef<str>, C: AsRef<[u8]>>(
        kernel: KernelProfile,
        files: impl IntoIterator<Item = (P, C)>,
    ) -> Result<Profile, CapturedTreeError> {
        let captured = captured::Files::new(files)?;
        let topology = captured.topology()?;
        Ok(Profile { kernel, topology, defects: BTreeSet::new(), captured })
    }
}

/// Which options were given.
#[derive(Default)]
struct Given(Vec<&'static str>);

impl Given {
    fn note(&mut self, option: &'static str) -> Result<(), ProfileError> {
        if self.0.contains(&option) {
            return Err(ProfileError::Repeated(option));
        }
        self.0.push(option);
        Ok(())
    }
}

/// Applies the option if it is one of a kind of GPU; answers what it sets.
fn apply_to_part(
    part: &mut Part,
    key: &str,
    value: &str,
) -> Result<Option<&'static str>, ProfileError> {
    Ok(Some(match key {
        "gpus" => {
            part.devices = number(key, value, 0..=64)?;
            "gpus"
        }
        "vram" => {
            part.vram = size(key, value)?;
            "vram"
        }
        "bar" => {
            part.visible_vram = Some(size(key, value)?);
            "bar"
        }
        "cus" => {
            part.chip.compute_units = number(key, value, 1..=1024)?;
            "cus"
        }
        "xgmi" => {
            part.xgmi = switch(key, value)?;
            "xgmi"
        }
        "spx" | "dpx" | "qpx" | "cpx" if part.dies() > 1 && value.is_empty() => {
            part.partitions = match key {
                "spx" => 1,
                "dpx" => 2,
                "qpx" => 4,
                _ => part.dies(),
            };
            "the partition mode"
        }
        _ => return Ok(None),
    }))
}

/// Applies the option if it is one of the machine or the kernel; answers what it
/// sets.
fn apply_to_machine(
    plan: &mut Plan,
    kernel: &mut KernelProfile,
    key: &str,
    value: &str,
) -> Result<Option<&'static str>, ProfileError> {
    Ok(Some(match key {
        "kernel" => "kernel",
        "cpus" => {
            plan.sockets = number(key, value, 1..=64)?;
            "cpus"
        }
        "cores" => {
            plan.cores = number(key, value, 1..=1024)?;
            "cores"
        }
        "ram" => {
            plan.ram = size(key, value)?;
            "ram"
        }
        "kfd" => {
            kernel.kfd_minor = number(key, value, 0..=u32::from(u16::MAX))?;
            "kfd"
        }
        "svm" => {
            kernel.svm = switch(key, value)?;
            "svm"
        }
        "p2p" => {
            kernel.p2p = switch(key, value)?;
            "p2p"
        }
        "secondary" => {
            kernel.secondary_contexts = switch(key, value)?;
            "secondary"
        }
        "dkms" => {
            kernel.out_of_tree = switch(key, value)?;
            kernel.svm |= kernel.out_of_tree;
            kernel.p2p |= kernel.out_of_tree;
            kernel.ipc |= kernel.out_of_tree;
            "dkms"
        }
        "ipc" => {
            kernel.ipc = switch(key, value)?;
            "ipc"
        }
        "udmabuf" => {
            kernel.udmabuf = Some(size(key, value)?);
            "udmabuf"
        }
        _ => return Ok(None),
    }))
}

impl FromStr for Profile {
    type Err = ProfileError;

    fn from_str(text: &str) -> Result<Profile, ProfileError> {
        Profile::parse(text)
    }
}

fn bad(option: &str, value: &str, expected: &'static str) -> ProfileError {
    ProfileError::BadValue { option: option.to_owned(), value: value.to_owned(), expected }
}

fn number(
    key: &str,
    value: &str,
    range: core::ops::RangeInclusive<u32>,
) -> Result<u32, ProfileError> {
    match value.parse() {
        Ok(number) if range.contains(&number) => Ok(number),
        _ => Err(bad(key, value, "a number in range")),
    }
}

fn switch(key: &str, value: &str) -> Result<bool, ProfileError> {
    match value {
        "0" => Ok(false),
        "1" | "" => Ok(true),
        _ => Err(bad(key, value, "0 or 1")),
    }
}

fn size(key: &str, value: &str) -> Result<u64, ProfileError> {
    let (digits, shift) = match value.as_bytes().last() {
        Some(b'K') => (&value[..value.len() - 1], 10),
        Some(b'M') => (&value[..value.len() - 1], 20),
        Some(b'G') => (&value[..value.len() - 1], 30),
        Some(b'T') => (&value[..value.len() - 1], 40),
        _ => (value, 0),
    };
    let bytes = digits.parse::<u64>().ok().and_then(|n| n.checked_mul(1 << shift));
    match bytes {
        // A thousand terabytes keeps every later sum far from overflow.
        Some(bytes) if bytes > 0 && bytes <= 1 << 50 && bytes % 4096 == 0 => Ok(bytes),
        _ => Err(bad(key, value, "a size such as 512M, a multiple of 4096 bytes")),
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;
    use alloc::vec::Vec;

    use super::{Profile, ProfileError};
    use crate::kernel::Kernel;

    #[test]
    fn every_name_is_a_machine() {
        for name in Profile::names() {
            let profile = Profile::parse(name).unwrap();
            assert_eq!(name == "cpu-only", profile.topology.gpus().count() == 0, "{name}");
        }
    }

    #[test]
    fn options_apply() {
        let profile = Profile::parse(
            "mi300x:kernel=7.2,gpus=2,cpus=1,cores=3,vram=64G,bar=1G,ram=512M,kfd=25,svm=0,p2p=1",
        )
        .unwrap();
        let gpus: Vec<_> = profile.topology.gpus().map(|(_, gpu)| gpu).collect();
        assert_eq!((gpus.len(), profile.topology.nodes.len()), (2, 3));
        assert_eq!((gpus[0].vram, gpus[0].visible_vram), (64 << 30, 1 << 30));
        let socket = &profile.topology.nodes[0];
        assert_eq!(socket.cpu.as_ref().unwrap().cores, 3);
        assert_eq!(socket.banks[0].size_in_bytes, 512 << 20);
        assert_eq!((profile.kernel.kernel, profile.kernel.kfd_minor), (Kernel::V7_2, 25));
        assert_eq!((profile.kernel.svm, profile.kernel.p2p), (false, true));
    }

    #[test]
    fn fewer_compute_units_have_fewer_caches() {
        let topology = Profile::parse("rx7900:cus=1").unwrap().topology;
        let node = &topology.nodes[1];
        // Vector, instruction, scalar, the array's, and two for all.
        assert_eq!(node.caches.len(), 6);
        assert_eq!(node.gpu.as_ref().unwrap().properties.simd_count, 2);
    }

    #[test]
    fn options_of_a_part_are_its_own_and_others_the_machines() {
        let profile =
            Profile::parse("mi50:vram=8G,cpus=2+rx7900:gpus=2,kernel=7.2+cpu-only:cores=3")
                .unwrap();
        assert_eq!(profile.kernel.kernel, Kernel::V7_2);
        assert_eq!(profile.topology.nodes.len(), 2 + 3);
        let vram: Vec<u64> = profile.topology.gpus().map(|(_, gpu)| gpu.vram >> 30).collect();
        assert_eq!(vram, [8, 24, 24]);
        assert_eq!(profile.topology.nodes[1].cpu.as_ref().unwrap().cores, 3);
        assert!(Profile::parse("mi50+").is_err());
        assert!(Profile::parse("mi50:cpx+mi300x").is_err());
    }

    #[test]
    fn an_option_is_given_once_and_is_not_empty() {
        let message = |text| Profile::parse(text).unwrap_err().to_string();
        for (text, option) in [
            ("rx7900:gpus=2,gpus=3", "gpus"),
            ("rx7900:vram=8G,gpus=2,vram=8G", "vram"),
            ("mi300x:cpx,spx", "the partition mode"),
            ("mi300x:cpx,cpx", "the partition mode"),
            ("apu:kernel=6.1,kernel=7.2", "kernel"),
            ("apu:svm=1,svm", "svm"),
            // Of the machine, wherever it stands.
            ("mi50:cpus=1+rx7900:cpus=2", "cpus"),
        ] {
            assert_eq!(message(text), alloc::format!("{option} is given twice"), "{text}");
        }
        for text in ["mi300x:", "mi300x:,", "mi300x:gpus=2,", "mi300x:,gpus=2", "apu:cpus=1,,svm"] {
            assert_eq!(Profile::parse(text), Err(ProfileError::EmptyOption), "{text}");
        }
        assert!(Profile::parse("mi50:gpus=2+rx7900:gpus=2").is_ok());
        // A switch of the kernel may follow one that sets it too.
        assert!(Profile::parse("apu:dkms,svm=0").is_ok());
    }

    #[test]
    fn the_kernel_may_come_after_its_switches() {
        let profile = Profile::parse("rx7900:svm=0,kernel=7.2").unwrap();
        assert!(!profile.kernel.svm);
    }

    #[test]
    fn partitions_share_a_device_and_have_a_node_each() {
        for (mode, partitions, dies) in [("spx", 1, 8), ("dpx", 2, 4), ("qpx", 4, 2), ("cpx", 8, 1)]
        {
            let profile = Profile::parse(&alloc::format!("mi300x:{mode},gpus=2")).unwrap();
            let gpus: Vec<_> = profile.topology.gpus().map(|(_, gpu)| gpu).collect();
            assert_eq!(gpus.len(), 2 * partitions, "{mode}");
            assert!(gpus.iter().all(|gpu| gpu.properties.num_xcc == dies), "{mode}");
            assert_eq!(gpus.iter().map(|gpu| gpu.vram).sum::<u64>(), 2 * (192 << 30), "{mode}");
            let minors: Vec<_> = gpus.iter().map(|gpu| gpu.render_minor()).collect();
            assert_eq!(minors, (128..).take(gpus.len()).collect::<Vec<_>>(), "{mode}");
        }
    }

    #[test]
    fn what_makes_no_machine_says_why() {
        let message = |text| Profile::parse(text).unwrap_err().to_string();
        assert_eq!(
            message("mi300"),
            "no machine is called \"mi300\"; there are cpu-only, mi300x, mi210x8, mi210, mi50, \
             rx6800, rx7900, rx9070, apu"
        );
        assert_eq!(message("rx7900:cpx"), "no option \"cpx\"");
        assert_eq!(message("cpu-only:gpus=1"), "no option \"gpus=1\"");
        assert_eq!(message("rx7900:svm=2"), "svm=2: expected 0 or 1");
        assert_eq!(message("rx7900:gpus=65"), "gpus=65: expected a number in range");
        for size in ["0", "1", "-1G", "G", "99999999999999999999", "2048T", "1g"] {
            let error = Profile::parse(&alloc::format!("rx7900:vram={size}")).unwrap_err();
            assert!(matches!(error, ProfileError::BadValue { .. }), "{size}");
        }
        assert_eq!(message("rx7900:vram=1M"), "a GPU has at least 256 MiB");
        assert_eq!(message("rx7900:cus=97"), "the chip has fewer compute units");
        assert_eq!(message("mi50:cpus=64,cores=65"), "at most 4096 processors");
        assert_eq!(message("mi300x:cpx,gpus=17"), "at most 128 GPUs have a render node");
    }
}
