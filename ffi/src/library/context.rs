//! Opening, closing, version, clocks.
//!
//! # Safety
//! Out-parameters are the caller's structures, written only through
//! `caller_memory`.
#![allow(unsafe_code)]

use core::ptr;

use hsakmt_core::context::Options;
use hsakmt_core::error::{Error, Status};
use hsakmt_core::process::{ContextHandle, Opening};

use super::environment::{Environment, apply};
use super::{Handle, Host, Libdrm, Library, handle_of, no_context};
use crate::generation::{Generation, caller_memory};
use crate::types::{HSAKMT_STATUS, HsaClockCounters, HsaKFDContext, HsaVersionInfo};

/// The C pointer that stands for a context. It is a number, never followed.
fn pointer_to(handle: ContextHandle) -> *mut HsaKFDContext {
    ptr::without_provenance_mut(handle.into_raw())
}

impl<H: Host> Library<H> {
    /// The options of a context that opens now.
    fn options(&'static self) -> Result<Options, Error> {
        let mut environment = Environment::default();
        let mut result = Ok(());
        self.host.variables(&mut |variable| {
            if result.is_ok() {
                result = apply(&mut environment, variable);
            }
        });
        result?;
        let Environment { options, log_level } = environment;
        self.set_environment_level(log_level);
        Ok(Options {
            logger: self.logger(),
            register_by_attributes: H::Generation::REGISTERS_BY_ATTRIBUTES,
            all_memory_executable: H::Generation::ALL_MEMORY_EXECUTABLE,
            ..options
        })
    }

    /// The same of the primary context, whose GPUs share their files with libdrm.
    fn primary_options(&'static self) -> Result<Options, Error> {
        let libdrm = self.host.libdrm();
        Ok(Options { render_files: libdrm.map(Libdrm::render_files), ..self.options()? })
    }

    /// `hsaKmtOpenKFD`
    pub fn open(&'static self) -> HSAKMT_STATUS {
        match self.process.open_primary(|| self.primary_options()) {
            Ok(Opening::First) => HSAKMT_STATUS::SUCCESS,
            Ok(Opening::Again) => HSAKMT_STATUS::KERNEL_ALREADY_OPENED,
            Err(error) => self.finish(None, Err(error)),
        }
    }

    /// `hsaKmtOpenKFDCtx`
    ///
    /// # Safety
    /// `context` is NULL or writable.
    pub unsafe fn open_context(&'static self, context: *mut *mut HsaKFDContext) -> HSAKMT_STATUS {
        if context.is_null() {
            return self.finish(None, Err(Error::argument(1)));
        }
        let status = self.open();
        let opened =
            status == HSAKMT_STATUS::SUCCESS || status == HSAKMT_STATUS::KERNEL_ALREADY_OPENED;
        let handle = if opened { pointer_to(ContextHandle::PRIMARY) } else { ptr::null_mut() };
        // SAFETY: the caller's promise.
        let _ = unsafe { caller_memory::write(context, handle) };
        status
    }

    /// `hsaKmtCloseKFD` and `hsaKmtCloseKFDCtx`
    pub fn close(&self) -> HSAKMT_STATUS {
        self.without_context(|| self.process.close_primary())
    }

    /// `hsaKmtOpenSecondaryKFDCtx`
    ///
    /// # Safety
    /// `context` is NULL or writable.
    pub unsafe fn open_secondary(&'static self, context: *mut *mut HsaKFDContext) -> HSAKMT_STATUS {
        self.without_context(|| {
            // SAFETY: the caller's promise.
            unsafe { caller_memory::write(context, ptr::null_mut()) }
                .map_err(|_| Error::argument(1))?;
            let handle = self.process.open_secondary(self.options()?)?;
            // SAFETY: the caller's promise; not NULL, as the write above found.
            Ok(unsafe { caller_memory::write(context, pointer_to(handle)) }?)
        })
    }

    /// `hsaKmtCloseSecondaryKFDCtx`
    pub fn close_secondary(&self, context: *mut HsaKFDContext) -> HSAKMT_STATUS {
        self.without_context(|| {
            self.process.close_secondary(handle_of(context).ok_or_else(no_context)?)
        })
    }

    /// `hsaKmtGetVersion`
    ///
    /// # Safety
    /// `version` is NULL or writable.
    pub unsafe fn version(&self, version: *mut HsaVersionInfo) -> HSAKMT_STATUS {
        self.inside(Some(ContextHandle::PRIMARY), |guard| {
            let found = guard.version();
            let answer = HsaVersionInfo {
                KernelInterfaceMajorVersion: found.major,
                KernelInterfaceMinorVersion: found.minor,
            };
            // SAFETY: the caller's promise.
            unsafe { caller_memory::write(version, answer) }.map_err(|_| Error::argument(1))
        })
    }

    /// `hsaKmtModelEnabled`: there is no software model in this library.
    ///
    /// # Safety
    /// `enabled` is NULL or writable.
    pub unsafe fn model_enabled(&self, enabled: *mut bool) -> HSAKMT_STATUS {
        self.without_context(|| {
            // SAFETY: the caller's promise.
            unsafe { caller_memory::write(enabled, false) }.map_err(|_| Error::argument(1))
        })
    }

    /// `hsaKmtGetClockCounters`, `hsaKmtGetClockCountersPrecise`
    ///
    /// # Safety
    /// `counters` is NULL or writable.
    pub unsafe fn clock_counters(
        &self,
        node: u32,
        counters: *mut HsaClockCounters,
    ) -> HSAKMT_STATUS {
        // SAFETY: the caller's promise.
        unsafe { self.clock_counters_in(Some(ContextHandle::PRIMARY), node, counters, 2) }
    }

    /// `hsaKmtGetClockCountersCtx`
    ///
    /// # Safety
    /// `counters` is NULL or writable.
    pub unsafe fn clock_counters_of(
        &self,
        context: *mut HsaKFDContext,
        node: u32,
        counters: *mut HsaClockCounters,
    ) -> HSAKMT_STATUS {
        // SAFETY: the caller's promise.
        unsafe { self.clock_counters_in(handle_of(context), node, counters, 3) }
    }

    /// # Safety
    /// `counters` is NULL or writable.
    unsafe fn clock_counters_in(
        &self,
        handle: Handle,
        node: u32,
        counters: *mut HsaClockCounters,
        position: u32,
    ) -> HSAKMT_STATUS {
        self.inside(handle, |guard| {
            if counters.is_null() {
                return Err(Error::argument(position));
            }
            let found = guard.clock_counters(node)?;
            let answer = HsaClockCounters {
                GPUClockCounter: found.gpu,
                CPUClockCounter: found.cpu,
                SystemClockCounter: found.system,
                SystemClockFrequencyHz: found.system_frequency,
            };
            // SAFETY: the caller's promise.
            unsafe { caller_memory::write(counters, answer) }
                .map_err(|_| Error::argument(position).with_status(Status::INVALID_PARAMETER))
        })
    }
}
