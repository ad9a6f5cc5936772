//! What a snapshot is read from, and how.

use core::ffi::CStr;

/// What becomes of an override that changes the major gfx version.
///
/// Code for another major version does not run on the GPU; it faults or hangs
/// it. Such overrides are mostly left over from another machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MajorChange {
    /// The snapshot fails and says so.
    #[default]
    Refuse,
    /// The override holds.
    Allow,
}

/// Where the topology is read from and how.
#[derive(Debug, Clone, Copy)]
pub struct Settings<'a> {
    /// The topology folder.
    pub root: &'a CStr,
    /// `/proc/cpuinfo`; `None`: the CPUs have no names.
    pub cpuinfo: Option<&'a CStr>,
    /// The folder with one folder per NUMA node; its CPUs' caches are read when
    /// the tree has none.
    pub numa_nodes: Option<&'a CStr>,
    /// The folder with one folder per CPU, where the kernel knows no NUMA.
    pub cpus: Option<&'a CStr>,
    /// `HSA_OVERRIDE_GFX_VERSION`, as written.
    pub gfx_override: Option<&'a [u8]>,
    /// `HSA_OVERRIDE_GFX_VERSION_<node>`, as written, by public node id.
    /// Such an entry comes before `gfx_override`.
    pub node_gfx_overrides: &'a [(u32, &'a [u8])],
    /// What becomes of an override that changes the major version.
    pub major_change: MajorChange,
    /// Whether the GPUs may say that they support the SVM calls.
    pub svm_api: bool,
    /// Whether the GPUs get their product names from the built-in table.
    pub marketing_names: bool,
    /// How often the tree is walked before a topology that keeps changing is
    /// given up; at least once.
    pub walks: u32,
}

impl Settings<'static> {
    /// The running kernel's topology.
    pub const KERNEL: Settings<'static> = Settings {
        root: c"/sys/devices/virtual/kfd/kfd/topology",
        cpuinfo: Some(c"/proc/cpuinfo"),
        numa_nodes: Some(c"/sys/devices/system/node"),
        cpus: Some(c"/sys/devices/system/cpu"),
        gfx_override: None,
        node_gfx_overrides: &[],
        major_change: MajorChange::Refuse,
        svm_api: true,
        marketing_names: true,
        walks: 10,
    };
}

impl Default for Settings<'static> {
    fn default() -> Settings<'static> {
        Settings::KERNEL
    }
}
