//! Both seams through references and through a [`Pair`].
//!
//! A wrapper implements [`Os`] when what it wraps does, [`Driver`] when what it
//! wraps does, and is a [`Platform`] when it is both. So that any platform can
//! be wrapped as one thing, a pair is itself an `Os` and a `Driver`, and so are
//! references: `Counted::new(Pair::of(&platform), &counters)`.

use alloc::vec::Vec;
use core::ffi::CStr;
use core::ops::ControlFlow;
use core::sync::atomic::AtomicU32;

use super::driver::{Call, DeviceNode, DeviceToken, Driver, MapDevice};
use super::os::{Advice, Clock, EndOfFile, FileKind, Mapping, MemoryPolicy, Os, Protection, Wake};
use super::{Pair, Platform};
use crate::errno::Errno;

/// Writes every method of `Os` as a call of the same method of `$inner`.
macro_rules! forward_os {
    (|$this:ident| $inner:expr) => {
        fn page_size(&$this) -> usize {
            Os::page_size($inner)
        }

        fn map(&$this, mapping: Mapping) -> Result<usize, Errno> {
            Os::map($inner, mapping)
        }

        fn unmap(&$this, address: usize, length: usize) -> Result<(), Errno> {
            Os::unmap($inner, address, length)
        }

        fn protect(
            &$this,
            address: usize,
            length: usize,
            allow: Protection,
        ) -> Result<(), Errno> {
            Os::protect($inner, address, length, allow)
        }

        fn advise(&$this, address: usize, length: usize, advice: Advice) -> Result<(), Errno> {
            Os::advise($inner, address, length, advice)
        }

        fn bind(
            &$this,
            address: usize,
            length: usize,
            policy: MemoryPolicy,
            nodes: &[u64],
        ) -> Result<(), Errno> {
            Os::bind($inner, address, length, policy, nodes)
        }

        fn read_file(
            &$this,
            path: &CStr,
            into: &mut Vec<u8>,
            limit: usize,
            end: EndOfFile,
        ) -> Result<(), Errno> {
            Os::read_file($inner, path, into, limit, end)
        }

        fn list_folder(
            &$this,
            path: &CStr,
            visit: &mut dyn FnMut(&[u8], FileKind) -> ControlFlow<()>,
        ) -> Result<(), Errno> {
            Os::list_folder($inner, path, visit)
        }

        fn now(&$this, clock: Clock) -> u64 {
            Os::now($inner, clock)
        }

        fn sleep(&$this, ns: u64) {
            Os::sleep($inner, ns);
        }

        fn futex_wait(
            &$this,
            word: &AtomicU32,
            expected: u32,
            timeout: Option<u64>,
        ) -> Result<Wake, Errno> {
            Os::futex_wait($inner, word, expected, timeout)
        }

        fn futex_wake(&$this, word: &AtomicU32, count: u32) {
            Os::futex_wake($inner, word, count);
        }

        fn locked(&$this) {
            Os::locked($inner);
        }

        fn thread_id(&$this) -> u32 {
            Os::thread_id($inner)
        }

        fn process_id(&$this) -> u32 {
            Os::process_id($inner)
        }

        fn fork_word(&$this) -> &AtomicU32 {
            Os::fork_word($inner)
        }

        fn wmb_device(&$this) {
            Os::wmb_device($inner);
        }

        fn rmb_device(&$this) {
            Os::rmb_device($inner);
        }

        fn flush_wc(&$this) {
            Os::flush_wc($inner);
        }
    };
}
pub(super) use forward_os;

/// Writes every method of `Driver` as a call of the same method of `$inner`.
macro_rules! forward_driver {
    (|$this:ident| $inner:expr, $device:ty) => {
        type Device = $device;

        fn open(&$this, node: DeviceNode) -> Result<Self::Device, Errno> {
            Driver::open($inner, node)
        }

        fn memory_file(&$this, size: u64) -> Result<Self::Device, Errno> {
            Driver::memory_file($inner, size)
        }

        fn execute(
            &$this,
            device: &Self::Device,
            call: &mut Call<'_, '_>,
        ) -> Result<u32, Errno> {
            Driver::execute($inner, device, call)
        }

        fn map(&$this, device: &Self::Device, mapping: MapDevice) -> Result<usize, Errno> {
            Driver::map($inner, device, mapping)
        }

        fn token(&$this, device: &Self::Device) -> DeviceToken {
            Driver::token($inner, device)
        }

        fn close_inherited(&$this, node: DeviceNode, token: DeviceToken) {
            Driver::close_inherited($inner, node, token);
        }

        fn adopt(&$this, token: DeviceToken) -> Self::Device {
            Driver::adopt($inner, token)
        }

        fn release(&$this, device: Self::Device) -> DeviceToken {
            Driver::release($inner, device)
        }
    };
}

impl<O: Os + ?Sized> Os for &O {
    forward_os!(|self| &**self);
}

impl<D: Driver + ?Sized> Driver for &D {
    forward_driver!(|self| &**self, D::Device);
}

impl<O: Os, D> Os for Pair<O, D> {
    forward_os!(|self| &self.os);
}

impl<O, D: Driver> Driver for Pair<O, D> {
    forward_driver!(|self| &self.driver, D::Device);
}

impl<'p, O: Os, D: Driver> Pair<&'p O, &'p D> {
    /// The two halves of any platform, borrowed, to put wrappers around.
    #[must_use]
    pub fn of<P: Platform<Os = O, Driver = D>>(platform: &'p P) -> Self {
        Pair { os: platform.os(), driver: platform.driver() }
    }
}

/// Makes a wrapper that is both an `Os` and a `Driver` a [`Platform`] whose
/// halves are itself: what it observes of both is then one sequence.
macro_rules! platform_of_itself {
    ([$($parameter:tt)*] $wrapper:ty) => {
        impl<$($parameter)*> Platform for $wrapper
        where
            $wrapper: Os + Driver,
        {
            type Os = Self;
            type Driver = Self;

            fn os(&self) -> &Self {
                self
            }

            fn driver(&self) -> &Self {
                self
            }
        }
    };
}
pub(super) use platform_of_itself;

#[cfg(test)]
mod tests {
    use super::super::fake::{Fake, assert_transparent, exercise};
    use super::super::{Pair, Platform};

    #[test]
    fn pairs_hand_everything_on() {
        assert_transparent(|fake| Pair { os: fake.clone(), driver: fake });
    }

    #[test]
    fn borrowed_halves_hand_everything_on() {
        let bare = Fake::new();
        let expected = exercise(&bare, &bare);
        let pair = || {
            let fake = Fake::new();
            (Pair { os: fake.clone(), driver: fake.clone() }, fake)
        };

        let (apart, fake) = pair();
        let halves = Pair::of(&apart);
        assert_eq!(exercise(halves.os(), halves.driver()), expected);
        assert_eq!(fake.calls(), bare.calls());

        let (whole, fake) = pair();
        let halves = Pair::of(&whole);
        assert_eq!(exercise(&halves, &halves), expected);
        assert_eq!(fake.calls(), bare.calls());
    }
}
