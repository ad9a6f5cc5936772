//! The two seams through which `core` knows the outside.
//!
//! [`Os`] is the operating system: address space, files, clocks, futex, fork.
//! [`Driver`] is the GPU driver: open a device, execute one typed block, map
//! device memory. A [`Platform`] is a pair of both. Everything above this
//! module is generic over a `Platform`, so the same code runs on Linux, on the
//! simulated machine and behind the wrappers below.

mod driver;
mod os;

pub use driver::{Array, ArrayDirection, Call, DeviceNode, DeviceToken, Driver, MapDevice};
pub use os::{
    Advice, Clock, EndOfFile, FileKind, Mapping, MemoryPolicy, Os, Placement, Protection, Wake,
};

/// An operating system and a driver: all that `core` needs to run.
pub trait Platform {
    /// The operating system below.
    type Os: Os;
    /// The GPU driver below.
    type Driver: Driver;

    /// The operating system.
    fn os(&self) -> &Self::Os;
    /// The driver.
    fn driver(&self) -> &Self::Driver;
}

/// A [`Platform`] made of any two halves; wrappers are put together with it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Pair<O, D> {
    /// The operating system half.
    pub os: O,
    /// The driver half.
    pub driver: D,
}

impl<O: Os, D: Driver> Platform for Pair<O, D> {
    type Os = O;
    type Driver = D;

    fn os(&self) -> &O {
        &self.os
    }

    fn driver(&self) -> &D {
        &self.driver
    }
}

impl<P: Platform> Platform for &P {
    type Os = P::Os;
    type Driver = P::Driver;

    fn os(&self) -> &P::Os {
        (**self).os()
    }

    fn driver(&self) -> &P::Driver {
        (**self).driver()
    }
}
