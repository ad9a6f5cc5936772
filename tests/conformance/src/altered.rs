//! A platform some of whose operations are answered otherwise.

use std::ffi::CStr;
use std::ops::ControlFlow;
use std::sync::atomic::AtomicU32;

use hsakmt_core::errno::Errno;
use hsakmt_core::seam::{
    Advice, Call, Clock, DeviceNode, DeviceToken, Driver, EndOfFile, FileKind, MapDevice, Mapping,
    MemoryPolicy, Os, Platform, Protection, Wake,
};

/// How operations are answered; each as the platform below does, unless it is
/// written otherwise.
pub trait Alteration {
    /// [`Os::page_size`].
    fn page_size(&self, os: &impl Os) -> usize {
        os.page_size()
    }

    /// [`Os::map`].
    ///
    /// # Errors
    /// As there.
    fn map(&self, os: &impl Os, mapping: Mapping) -> Result<usize, Errno> {
        os.map(mapping)
    }

    /// [`Os::bind`].
    ///
    /// # Errors
    /// As there.
    fn bind(
        &self,
        os: &impl Os,
        (address, length): (usize, usize),
        policy: MemoryPolicy,
        nodes: &[u64],
    ) -> Result<(), Errno> {
        os.bind(address, length, policy, nodes)
    }

    /// [`Os::read_file`].
    ///
    /// # Errors
    /// As there.
    fn read_file(
        &self,
        os: &impl Os,
        path: &CStr,
        into: &mut Vec<u8>,
        (limit, end): (usize, EndOfFile),
    ) -> Result<(), Errno> {
        os.read_file(path, into, limit, end)
    }

    /// [`Os::flush_wc`].
    fn flush_wc(&self, os: &impl Os) {
        os.flush_wc();
    }

    /// [`Driver::execute`].
    ///
    /// # Errors
    /// As there.
    fn execute<D: Driver>(
        &self,
        driver: &D,
        device: &D::Device,
        call: &mut Call<'_, '_>,
    ) -> Result<u32, Errno> {
        driver.execute(device, call)
    }
}

/// A platform with an [`Alteration`].
#[derive(Debug)]
pub struct Altered<'a, P, A> {
    inner: P,
    alteration: &'a A,
}

impl<'a, P: Platform, A: Alteration> Altered<'a, P, A> {
    /// Answers for `inner` as `alteration` says.
    pub const fn new(inner: P, alteration: &'a A) -> Self {
        Altered { inner, alteration }
    }

    /// What is wrapped.
    pub const fn inner(&self) -> &P {
        &self.inner
    }
}

impl<P: Platform, A: Alteration> Platform for Altered<'_, P, A> {
    type Os = Self;
    type Driver = Self;

    fn os(&self) -> &Self {
        self
    }

    fn driver(&self) -> &Self {
        self
    }
}

impl<P: Platform, A: Alteration> Os for Altered<'_, P, A> {
    fn page_size(&self) -> usize {
        self.alteration.page_size(self.inner.os())
    }

    fn map(&self, mapping: Mapping) -> Result<usize, Errno> {
        self.alteration.map(self.inner.os(), mapping)
    }

    fn unmap(&self, address: usize, length: usize) -> Result<(), Errno> {
        self.inner.os().unmap(address, length)
    }

    fn protect(&self, address: usize, length: usize, allow: Protection) -> Result<(), Errno> {
        self.inner.os().protect(address, length, allow)
    }

    fn advise(&self, address: usize, length: usize, advice: Advice) -> Result<(), Errno> {
        self.inner.os().advise(address, length, advice)
    }

    fn bind(
        &self,
        address: usize,
        length: usize,
        policy: MemoryPolicy,
        nodes: &[u64],
    ) -> Result<(), Errno> {
        self.alteration.bind(self.inner.os(), (address, length), policy, nodes)
    }

    fn read_file(
        &self,
        path: &CStr,
        into: &mut Vec<u8>,
        limit: usize,
        end: EndOfFile,
    ) -> Result<(), Errno> {
        self.alteration.read_file(self.inner.os(), path, into, (limit, end))
    }

    fn list_folder(
        &self,
        path: &CStr,
        visit: &mut dyn FnMut(&[u8], FileKind) -> ControlFlow<()>,
    ) -> Result<(), Errno> {
        self.inner.os().list_folder(path, visit)
    }

    fn now(&self, clock: Clock) -> u64 {
        self.inner.os().now(clock)
    }

    fn sleep(&self, ns: u64) {
        self.inner.os().sleep(ns);
    }

    fn futex_wait(
        &self,
        word: &AtomicU32,
        expected: u32,
        timeout: Option<u64>,
    ) -> Result<Wake, Errno> {
        self.inner.os().futex_wait(word, expected, timeout)
    }

    fn futex_wake(&self, word: &AtomicU32, count: u32) {
        self.inner.os().futex_wake(word, count);
    }

    fn thread_id(&self) -> u32 {
        self.inner.os().thread_id()
    }

    fn process_id(&self) -> u32 {
        self.inner.os().process_id()
    }

    fn fork_word(&self) -> &AtomicU32 {
        self.inner.os().fork_word()
    }

    fn wmb_device(&self) {
        self.inner.os().wmb_device();
    }

    fn rmb_device(&self) {
        self.inner.os().rmb_device();
    }

    fn flush_wc(&self) {
        self.alteration.flush_wc(self.inner.os());
    }
}

impl<P: Platform, A: Alteration> Driver for Altered<'_, P, A> {
    type Device = <P::Driver as Driver>::Device;

    fn open(&self, node: DeviceNode) -> Result<Self::Device, Errno> {
        self.inner.driver().open(node)
    }

    fn memory_file(&self, size: u64) -> Result<Self::Device, Errno> {
        self.inner.driver().memory_file(size)
    }

    fn execute(&self, device: &Self::Device, call: &mut Call<'_, '_>) -> Result<u32, Errno> {
        self.alteration.execute(self.inner.driver(), device, call)
    }

    fn map(&self, device: &Self::Device, mapping: MapDevice) -> Result<usize, Errno> {
        self.inner.driver().map(device, mapping)
    }

    fn token(&self, device: &Self::Device) -> DeviceToken {
        self.inner.driver().token(device)
    }

    fn close_inherited(&self, node: DeviceNode, token: DeviceToken) {
        self.inner.driver().close_inherited(node, token);
    }

    fn adopt(&self, token: DeviceToken) -> Self::Device {
        self.inner.driver().adopt(token)
    }

    fn release(&self, device: Self::Device) -> DeviceToken {
        self.inner.driver().release(device)
    }
}
