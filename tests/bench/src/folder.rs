//! A machine whose topology is a folder and whose driver is simulated.
//!
//! Everything else, CPUs included, is the running Linux.

use std::ffi::CStr;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::AtomicU32;

use hsakmt_core::errno::Errno;
use hsakmt_core::seam::{
    Advice, Call, Clock, DeviceNode, DeviceToken, Driver, EndOfFile, FileKind, MapDevice, Mapping,
    MemoryPolicy, Os, Platform, Protection, Wake,
};
use hsakmt_core::topology::Settings;
use hsakmt_linux_shim::Linux;
use kfd_sim::{Machine, Profile, SimDevice, SimPlatform};

/// Room for a path; longer ones do not exist.
const LONGEST_PATH: usize = 512;

/// Linux, with another folder in the place of the topology.
#[derive(Debug)]
pub struct FolderOs {
    folder: Vec<u8>,
}

impl FolderOs {
    /// With this folder, which has `nodes` in it.
    #[must_use]
    pub fn new(folder: &Path) -> FolderOs {
        FolderOs { folder: folder.as_os_str().as_bytes().to_vec() }
    }

    /// Hands the path on, or the one in the folder that stands for it.
    fn redirect<R>(
        &self,
        path: &CStr,
        use_path: impl FnOnce(&CStr) -> Result<R, Errno>,
    ) -> Result<R, Errno> {
        let root = Settings::KERNEL.root.to_bytes();
        let Some(below) = path.to_bytes_with_nul().strip_prefix(root) else {
            return use_path(path);
        };
        let mut buffer = [0; LONGEST_PATH];
        let (folder, length) = (self.folder.len(), self.folder.len() + below.len());
        buffer.get_mut(..folder).ok_or(Errno::ENAMETOOLONG)?.copy_from_slice(&self.folder);
        buffer.get_mut(folder..length).ok_or(Errno::ENAMETOOLONG)?.copy_from_slice(below);
        use_path(CStr::from_bytes_with_nul(&buffer[..length]).map_err(|_| Errno::EINVAL)?)
    }
}

impl Os for FolderOs {
    fn page_size(&self) -> usize {
        Linux.page_size()
    }

    fn map(&self, mapping: Mapping) -> Result<usize, Errno> {
        Os::map(&Linux, mapping)
    }

    fn unmap(&self, address: usize, length: usize) -> Result<(), Errno> {
        Linux.unmap(address, length)
    }

    fn protect(&self, address: usize, length: usize, allow: Protection) -> Result<(), Errno> {
        Linux.protect(address, length, allow)
    }

    fn advise(&self, address: usize, length: usize, advice: Advice) -> Result<(), Errno> {
        Linux.advise(address, length, advice)
    }

    fn bind(
        &self,
        address: usize,
        length: usize,
        policy: MemoryPolicy,
        nodes: &[u64],
    ) -> Result<(), Errno> {
        Linux.bind(address, length, policy, nodes)
    }

    fn read_file(
        &self,
        path: &CStr,
        into: &mut Vec<u8>,
        limit: usize,
        end: EndOfFile,
    ) -> Result<(), Errno> {
        self.redirect(path, |path| Linux.read_file(path, into, limit, end))
    }

    fn list_folder(
        &self,
        path: &CStr,
        visit: &mut dyn FnMut(&[u8], FileKind) -> ControlFlow<()>,
    ) -> Result<(), Errno> {
        self.redirect(path, |path| Linux.list_folder(path, visit))
    }

    fn now(&self, clock: Clock) -> u64 {
        Linux.now(clock)
    }

    fn sleep(&self, ns: u64) {
        Linux.sleep(ns);
    }

    fn futex_wait(
        &self,
        word: &AtomicU32,
        expected: u32,
        timeout: Option<u64>,
    ) -> Result<Wake, Errno> {
        Linux.futex_wait(word, expected, timeout)
    }

    fn futex_wake(&self, word: &AtomicU32, count: u32) {
        Linux.futex_wake(word, count);
    }

    fn thread_id(&self) -> u32 {
        Linux.thread_id()
    }

    fn process_id(&self) -> u32 {
        Linux.process_id()
    }

    fn fork_word(&self) -> &AtomicU32 {
        Linux.fork_word()
    }

    fn wmb_device(&self) {
        Linux.wmb_device();
    }

    fn rmb_device(&self) {
        Linux.rmb_device();
    }

    fn flush_wc(&self) {
        Linux.flush_wc();
    }
}

/// The simulated driver. In a real process its work is done in the kernel, so
/// [`instructions`](crate::instructions) leaves it out.
#[derive(Debug)]
pub struct SimulatedDriver(SimPlatform<Linux>);

impl Driver for SimulatedDriver {
    type Device = SimDevice;

    fn open(&self, node: DeviceNode) -> Result<SimDevice, Errno> {
        outside::open(&self.0, node)
    }

    fn memory_file(&self, size: u64) -> Result<SimDevice, Errno> {
        self.0.memory_file(size)
    }

    fn execute(&self, device: &SimDevice, call: &mut Call<'_, '_>) -> Result<u32, Errno> {
        outside::execute(&self.0, device, call)
    }

    fn map(&self, device: &SimDevice, mapping: MapDevice) -> Result<usize, Errno> {
        Driver::map(&self.0, device, mapping)
    }

    fn token(&self, device: &SimDevice) -> DeviceToken {
        self.0.token(device)
    }

    fn close_inherited(&self, node: DeviceNode, token: DeviceToken) {
        self.0.close_inherited(node, token);
    }

    fn adopt(&self, token: DeviceToken) -> SimDevice {
        self.0.adopt(token)
    }

    fn release(&self, device: SimDevice) -> DeviceToken {
        self.0.release(device)
    }
}

/// What is not counted, under names that an instruction counter can be given.
///
/// # Safety
/// No other function of a program has these names.
#[allow(unsafe_code, reason = "functions with names of their own")]
mod outside {
    use hsakmt_core::errno::Errno;
    use hsakmt_core::seam::{Call, DeviceNode, Driver};
    use hsakmt_linux_shim::Linux;
    use kfd_sim::{SimDevice, SimPlatform};

    // SAFETY: see the module's text.
    #[unsafe(export_name = "hsakmt_bench_outside_open")]
    #[inline(never)]
    pub(super) fn open(sim: &SimPlatform<Linux>, node: DeviceNode) -> Result<SimDevice, Errno> {
        sim.open(node)
    }

    // SAFETY: see the module's text.
    #[unsafe(export_name = "hsakmt_bench_outside_execute")]
    #[inline(never)]
    pub(super) fn execute(
        sim: &SimPlatform<Linux>,
        device: &SimDevice,
        call: &mut Call<'_, '_>,
    ) -> Result<u32, Errno> {
        sim.execute(device, call)
    }
}

/// A process on a machine whose topology is a folder.
#[derive(Debug)]
pub struct FolderMachine {
    os: FolderOs,
    driver: SimulatedDriver,
}

impl FolderMachine {
    /// A process on the machine of `profile`, which reads its topology in
    /// `folder`.
    #[must_use]
    pub fn new(folder: &Path, profile: &Profile) -> FolderMachine {
        let machine = Machine::new(profile);
        machine.keep_log(false);
        FolderMachine { os: FolderOs::new(folder), driver: SimulatedDriver(machine.spawn(Linux)) }
    }
}

impl Platform for FolderMachine {
    type Os = FolderOs;
    type Driver = SimulatedDriver;

    fn os(&self) -> &FolderOs {
        &self.os
    }

    fn driver(&self) -> &SimulatedDriver {
        &self.driver
    }
}
