//! The way from a context to the driver.

use crate::errno::Errno;
use crate::error::{Error, Object, Operation, Status};
use crate::execute::execute;
use crate::process::{Descriptors, Device, Files, Render};
use crate::seam::{Array, Driver, MapDevice, Os, Platform};
use crate::uapi::Block;
use crate::uapi::gate::{Feature, supports};
use crate::uapi::kfd::GetVersion;

/// The driver's interface version, as GET_VERSION told it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Version {
    /// 1 in every driver so far; another one is refused at open.
    pub major: u32,
    /// Grows with each addition.
    pub minor: u32,
}

impl Version {
    /// Whether a driver of this version has a feature for certain.
    #[must_use]
    pub const fn supports(self, feature: Feature) -> bool {
        let version = GetVersion { major_version: self.major, minor_version: self.minor };
        supports(&version, feature)
    }
}

/// What every part of a context needs to reach the driver: the platform, the
/// open devices of its process object.
pub(crate) struct Channel<'a, P: Platform> {
    pub(crate) platform: &'a P,
    pub(crate) files: &'a Files<P>,
    pub(crate) descriptors: &'a Descriptors,
    /// `/dev/kfd`, as it was when the call began.
    kfd: Option<&'a Device<P>>,
}

impl<P: Platform> Clone for Channel<'_, P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P: Platform> Copy for Channel<'_, P> {}

impl<'a, P: Platform> Channel<'a, P> {
    #[inline]
    pub(crate) fn new(
        platform: &'a P,
        files: &'a Files<P>,
        descriptors: &'a Descriptors,
    ) -> Channel<'a, P> {
        Channel { platform, files, descriptors, kfd: files.kfd() }
    }

    /// The operating system.
    #[inline]
    pub(crate) fn os(&self) -> &'a P::Os {
        self.platform.os()
    }

    #[inline]
    pub(crate) fn kfd(&self) -> Result<&'a Device<P>, Error> {
        self.kfd.ok_or_else(Error::not_open)
    }

    /// Executes a block on `/dev/kfd`.
    ///
    /// # Errors
    /// `status` with the driver's errno and `object`. EBADF, which KFD answers to
    /// a process that is not the descriptor's own, is NOT_OPENED.
    #[inline(always)]
    pub(crate) fn execute<B: Block>(
        &self,
        block: &mut B,
        arrays: &mut [Array<'_>],
        status: Status,
        object: Object,
    ) -> Result<u32, Error> {
        execute(self.platform, self.kfd()?, block, arrays)
            .map_err(|errno| refused::<B>(errno, status, object))
    }

    /// Executes a block on a bound render node. EBADF is an answer of its driver.
    ///
    /// # Errors
    /// `status` with the driver's errno and `object`.
    pub(crate) fn execute_render<B: Block>(
        &self,
        render: &Render<P>,
        block: &mut B,
        arrays: &mut [Array<'_>],
        status: Status,
        object: Object,
    ) -> Result<u32, Error> {
        execute(self.platform, &render.device, block, arrays)
            .map_err(|errno| Error::system(status, Operation::Execute(B::REQUEST), errno, object))
    }

    /// Maps memory of `/dev/kfd`.
    ///
    /// # Errors
    /// `status` with the errno and `object`.
    pub(crate) fn map(
        &self,
        mapping: MapDevice,
        status: Status,
        object: Object,
    ) -> Result<usize, Error> {
        self.platform
            .driver()
            .map(self.kfd()?, mapping)
            .map_err(|errno| Error::system(status, Operation::MapDevice, errno, object))
    }

    /// Maps memory of the GPU behind a bound render node.
    ///
    /// # Errors
    /// `status` with the errno and `object`.
    pub(crate) fn map_render(
        &self,
        minor: u32,
        mapping: MapDevice,
        status: Status,
        object: Object,
    ) -> Result<usize, Error> {
        let render = self.files.render(minor).ok_or(Error::not_open())?;
        self.platform
            .driver()
            .map(&render.device, mapping)
            .map_err(|errno| Error::system(status, Operation::MapDevice, errno, object))
    }

    /// Removes a mapping of ours.
    ///
    /// # Errors
    /// ERROR with the errno and the address.
    pub(crate) fn unmap(&self, address: usize, length: usize) -> Result<(), Error> {
        self.os().unmap(address, length).map_err(|errno| {
            let object = Object::Address(address as u64);
            Error::system(Status::ERROR, Operation::UnmapMemory, errno, object)
        })
    }
}

/// The error of a block that KFD refused.
#[cold]
pub(crate) fn refused<B: Block>(errno: Errno, status: Status, object: Object) -> Error {
    let status = match errno {
        Errno::EBADF => Status::KERNEL_IO_CHANNEL_NOT_OPENED,
        _ => status,
    };
    Error::system(status, Operation::Execute(B::REQUEST), errno, object)
}
