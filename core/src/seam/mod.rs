//! The two seams through which `core` knows the outside.
//!
//! [`Os`] is the operating system: address space, files, clocks, futex, fork.
//! [`Driver`] is the GPU driver: open a device, execute one typed block, map
//! device memory. A [`Platform`] is a pair of both. Everything above this
//! module is generic over a `Platform`, so the same code runs on Linux, on the
//! simulated machine and behind the wrappers below.
//!
//! # Wrappers
//! Each wraps an [`Os`], a [`Driver`], or both at once, and is then a
//! [`Platform`] itself. They stack in any order; an outer one sees what enters,
//! an inner one what the wrappers around it let through.
//! - [`Traced`]: each operation becomes an event with the decoded block.
//! - [`Counted`]: counts per operation and block, and of system calls.
//! - [`Faulty`]: fails operations by index or name.
//! - [`Copied`]: the driver gets copies of all bytes at other addresses.

mod copying;
mod counting;
mod device;
mod driver;
#[cfg(test)]
mod fake;
mod fault;
mod forward;
mod operation;
mod os;
#[cfg(test)]
mod stacking;
mod tracing;

pub use copying::{Copied, CopyAudit};
pub use counting::{CountClose, Counted, Counters, Counts};
pub use device::{CloseObserver, ObservedDevice};
pub use driver::{Array, ArrayDirection, Call, DeviceNode, DeviceToken, Driver, MapDevice};
pub use fault::{Fault, FaultPlan, FaultSyntax, Faulty, Selector, SyntaxFlaw};
pub use operation::OperationKind;
pub use os::{
    Advice, Clock, EndOfFile, FileKind, Mapping, MemoryPolicy, Os, Placement, Protection, Wake,
};
pub use tracing::{Answer, Journal, Operation, TraceClose, TraceEvent, Traced, TracedBlock};

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
