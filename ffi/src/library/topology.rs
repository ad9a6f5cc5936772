//! The machine: system, nodes, banks, caches, links.
//!
//! # Safety
//! Out-parameters are the caller's structures and arrays, written only through
//! `caller_memory`, in the layout and with the stride of the caller's generation.
#![allow(unsafe_code)]

use hsakmt_core::context::Machine;
use hsakmt_core::error::Error;
use hsakmt_core::process::{ContextHandle, Guard};
use hsakmt_core::topology::Node;

use super::{Handle, Host, Library, handle_of, no_context};
use crate::conversion;
use crate::generation::{Encode, Generation, caller_memory};
use crate::types::{
    HSAKMT_STATUS, HsaGpuTileConfig, HsaKFDContext, HsaMemoryProperties, HsaSystemProperties,
};

/// The primary context, which functions without a context argument mean.
const PRIMARY: Handle = Some(ContextHandle::PRIMARY);

/// The structures of the library's generation.
type NodeProperties<H> = <<H as Host>::Generation as Generation>::NodeProperties;
type CacheProperties<H> = <<H as Host>::Generation as Generation>::CacheProperties;
type IoLinkProperties<H> = <<H as Host>::Generation as Generation>::IoLinkProperties;

impl<H: Host> Library<H> {
    /// `hsaKmtAcquireSystemProperties`
    ///
    /// # Safety
    /// `properties` is NULL or writable.
    pub unsafe fn acquire_system(&self, properties: *mut HsaSystemProperties) -> HSAKMT_STATUS {
        // SAFETY: the caller's promise.
        unsafe { self.acquire_system_in(PRIMARY, properties, 1) }
    }

    /// `hsaKmtAcquireSystemPropertiesCtx`
    ///
    /// # Safety
    /// `properties` is NULL or writable.
    pub unsafe fn acquire_system_of(
        &self,
        context: *mut HsaKFDContext,
        properties: *mut HsaSystemProperties,
    ) -> HSAKMT_STATUS {
        // SAFETY: the caller's promise.
        unsafe { self.acquire_system_in(handle_of(context), properties, 2) }
    }

    /// # Safety
    /// `properties` is NULL or writable.
    unsafe fn acquire_system_in(
        &self,
        handle: Handle,
        properties: *mut HsaSystemProperties,
        position: u32,
    ) -> HSAKMT_STATUS {
        self.inside(handle, |guard| {
            if properties.is_null() {
                return Err(Error::argument(position));
            }
            let answer = guard.acquire_and_look(|machine| {
                let snapshot = machine.snapshot();
                let system = snapshot.system();
                Ok(HsaSystemProperties {
                    NumNodes: conversion::count(snapshot.nodes().len()),
                    PlatformOem: system.platform_oem as u32,
                    PlatformId: system.platform_id as u32,
                    PlatformRev: system.platform_rev as u32,
                })
            })?;
            // SAFETY: the caller's promise.
            Ok(unsafe { caller_memory::write(properties, answer) }?)
        })
    }

    /// `hsaKmtReleaseSystemProperties`: succeeds even when nothing is open, as
    /// callers rely on.
    pub fn release_system(&self) -> HSAKMT_STATUS {
        self.release_system_in(PRIMARY)
    }

    /// `hsaKmtReleaseSystemPropertiesCtx`
    pub fn release_system_of(&self, context: *mut HsaKFDContext) -> HSAKMT_STATUS {
        match handle_of(context) {
            None => self.fail(None, &no_context()),
            handle => self.release_system_in(handle),
        }
    }

    fn release_system_in(&self, handle: Handle) -> HSAKMT_STATUS {
        if let Some(Ok(guard)) = handle.map(|handle| self.process.enter(handle)) {
            // Refused only to a vfork child, whose parent's books stay as they are.
            let _ = guard.release_machine();
        }
        HSAKMT_STATUS::SUCCESS
    }

    /// `hsaKmtGetNodeProperties`
    ///
    /// # Safety
    /// `properties` is NULL or writable.
    pub unsafe fn node_properties(
        &self,
        node: u32,
        properties: *mut NodeProperties<H>,
    ) -> HSAKMT_STATUS {
        // SAFETY: the caller's promise.
        unsafe { self.node_properties_in(PRIMARY, node, properties, 2) }
    }

    /// `hsaKmtGetNodePropertiesCtx`
    ///
    /// # Safety
    /// `properties` is NULL or writable.
    pub unsafe fn node_properties_of(
        &self,
        context: *mut HsaKFDContext,
        node: u32,
        properties: *mut NodeProperties<H>,
    ) -> HSAKMT_STATUS {
        // SAFETY: the caller's promise.
        unsafe { self.node_properties_in(handle_of(context), node, properties, 3) }
    }

    /// # Safety
    /// `properties` is NULL or writable.
    unsafe fn node_properties_in(
        &self,
        handle: Handle,
        node: u32,
        properties: *mut NodeProperties<H>,
        position: u32,
    ) -> HSAKMT_STATUS {
        self.inside(handle, |guard| {
            if properties.is_null() {
                return Err(Error::argument(position));
            }
            let answer = guard.machine(|machine| {
                let node = machine.node(node)?;
                let banks = node.memory_bank_count(&machine.apertures_of(node));
                Ok(NodeProperties::<H>::encode(&conversion::node(node, banks)))
            })?;
            // SAFETY: the caller's promise.
            Ok(unsafe { caller_memory::write(properties, answer) }?)
        })
    }

    /// `hsaKmtGetNodeMemoryProperties`
    ///
    /// # Safety
    /// `properties` is NULL or an array of `count` writable structures.
    pub unsafe fn memory_properties(
        &self,
        node: u32,
        count: u32,
        properties: *mut HsaMemoryProperties,
    ) -> HSAKMT_STATUS {
        // SAFETY: the caller's promise.
        unsafe { self.memory_properties_in(PRIMARY, node, count, properties, 3) }
    }

    /// `hsaKmtGetNodeMemoryPropertiesCtx`
    ///
    /// # Safety
    /// As [`Library::memory_properties`].
    pub unsafe fn memory_properties_of(
        &self,
        context: *mut HsaKFDContext,
        node: u32,
        count: u32,
        properties: *mut HsaMemoryProperties,
    ) -> HSAKMT_STATUS {
        // SAFETY: the caller's promise.
        unsafe { self.memory_properties_in(handle_of(context), node, count, properties, 4) }
    }

    /// A shorter array gets the first banks; what is left of a longer one is
    /// zeroed.
    ///
    /// # Safety
    /// As [`Library::memory_properties`].
    unsafe fn memory_properties_in(
        &self,
        handle: Handle,
        node: u32,
        count: u32,
        properties: *mut HsaMemoryProperties,
        position: u32,
    ) -> HSAKMT_STATUS {
        self.inside(handle, |guard| {
            if properties.is_null() {
                return Err(Error::argument(position));
            }
            guard.machine(|machine| {
                let node = machine.node(node)?;
                let capacity = count as usize;
                let apertures = machine.apertures_of(node);
                let banks = node.memory_banks(&apertures).map(|bank| conversion::bank(&bank));
                // SAFETY: the caller's promise.
                let written = unsafe { caller_memory::write_array(properties, capacity, banks) }?;
                let rest = properties.wrapping_add(written);
                // SAFETY: the caller's promise, less what was written.
                Ok(unsafe { caller_memory::write_zeros(rest, capacity.saturating_sub(written)) }?)
            })
        })
    }

    /// `hsaKmtGetNodeCacheProperties`: all caches of the node, whatever the
    /// processor.
    ///
    /// # Safety
    /// `properties` is NULL or an array of `count` writable structures.
    pub unsafe fn cache_properties(
        &self,
        node: u32,
        _processor: u32,
        count: u32,
        properties: *mut CacheProperties<H>,
    ) -> HSAKMT_STATUS {
        // SAFETY: the caller's promise.
        unsafe { self.cache_properties_in(PRIMARY, node, count, properties, 3) }
    }

    /// `hsaKmtGetNodeCachePropertiesCtx`
    ///
    /// # Safety
    /// As [`Library::cache_properties`].
    pub unsafe fn cache_properties_of(
        &self,
        context: *mut HsaKFDContext,
        node: u32,
        _processor: u32,
        count: u32,
        properties: *mut CacheProperties<H>,
    ) -> HSAKMT_STATUS {
        // SAFETY: the caller's promise.
        unsafe { self.cache_properties_in(handle_of(context), node, count, properties, 4) }
    }

    /// # Safety
    /// As [`Library::cache_properties`].
    unsafe fn cache_properties_in(
        &self,
        handle: Handle,
        node: u32,
        count: u32,
        properties: *mut CacheProperties<H>,
        position: u32,
    ) -> HSAKMT_STATUS {
        self.inside(handle, |guard| {
            self.list(
                guard,
                node,
                count,
                position,
                |node| node.caches.len(),
                |node, capacity| {
                    let caches = node
                        .caches
                        .iter()
                        .map(|cache| CacheProperties::<H>::encode(&conversion::cache(cache)));
                    // SAFETY: the caller's promise.
                    unsafe { caller_memory::write_array(properties, capacity, caches) }
                },
            )
        })
    }

    /// `hsaKmtGetNodeIoLinkProperties`
    ///
    /// # Safety
    /// `properties` is NULL or an array of `count` writable structures.
    pub unsafe fn link_properties(
        &self,
        node: u32,
        count: u32,
        properties: *mut IoLinkProperties<H>,
    ) -> HSAKMT_STATUS {
        // SAFETY: the caller's promise.
        unsafe { self.link_properties_in(PRIMARY, node, count, properties, 2) }
    }

    /// `hsaKmtGetNodeIoLinkPropertiesCtx`
    ///
    /// # Safety
    /// As [`Library::link_properties`].
    pub unsafe fn link_properties_of(
        &self,
        context: *mut HsaKFDContext,
        node: u32,
        count: u32,
        properties: *mut IoLinkProperties<H>,
    ) -> HSAKMT_STATUS {
        // SAFETY: the caller's promise.
        unsafe { self.link_properties_in(handle_of(context), node, count, properties, 3) }
    }

    /// # Safety
    /// As [`Library::link_properties`].
    unsafe fn link_properties_in(
        &self,
        handle: Handle,
        node: u32,
        count: u32,
        properties: *mut IoLinkProperties<H>,
        position: u32,
    ) -> HSAKMT_STATUS {
        self.inside(handle, |guard| {
            self.list(
                guard,
                node,
                count,
                position,
                |node| node.links.len(),
                |node, capacity| {
                    let links = node
                        .links
                        .iter()
                        .map(|link| IoLinkProperties::<H>::encode(&conversion::link(link)));
                    // SAFETY: the caller's promise.
                    unsafe { caller_memory::write_array(properties, capacity, links) }
                },
            )
        })
    }

    /// Writes the first `count` entries of a node's list; more than there are is
    /// INVALID_PARAMETER, at the argument with this position.
    fn list(
        &self,
        guard: &Guard<'_, H::Platform>,
        node: u32,
        count: u32,
        position: u32,
        length: impl FnOnce(&Node) -> usize,
        write: impl FnOnce(&Node, usize) -> Result<usize, HSAKMT_STATUS>,
    ) -> Result<(), Error> {
        guard.machine(|machine: &Machine| {
            let node = machine.node(node)?;
            let capacity = count as usize;
            if capacity > length(node) {
                return Err(Error::argument(position));
            }
            write(node, capacity).map(drop).map_err(|_| Error::argument(position.saturating_add(1)))
        })
    }

    /// `hsaKmtGetNodeWallclockFrequency`: ticks per second of a GPU's counter.
    ///
    /// # Safety
    /// `frequency` is NULL or writable.
    pub unsafe fn wallclock_frequency(&self, node: u32, frequency: *mut u64) -> HSAKMT_STATUS {
        self.inside(PRIMARY, |guard| {
            if frequency.is_null() {
                return Err(Error::argument(2));
            }
            let khz = guard.machine(|machine| machine.gpu(node).map(|gpu| gpu.wall_clock_khz))?;
            let hertz = khz.saturating_mul(1000);
            // SAFETY: the caller's promise.
            Ok(unsafe { caller_memory::write(frequency, hertz) }?)
        })
    }

    /// `hsaKmtGetTileConfig`
    ///
    /// # Safety
    /// `config` is NULL or writable, and each of its arrays is NULL or has as many
    /// writable entries as it says.
    pub unsafe fn tile_config(&self, node: u32, config: *mut HsaGpuTileConfig) -> HSAKMT_STATUS {
        // SAFETY: the caller's promise.
        unsafe { self.tile_config_in(PRIMARY, node, config, 2) }
    }

    /// `hsaKmtGetTileConfigCtx`
    ///
    /// # Safety
    /// As [`Library::tile_config`].
    pub unsafe fn tile_config_of(
        &self,
        context: *mut HsaKFDContext,
        node: u32,
        config: *mut HsaGpuTileConfig,
    ) -> HSAKMT_STATUS {
        // SAFETY: the caller's promise.
        unsafe { self.tile_config_in(handle_of(context), node, config, 3) }
    }

    /// # Safety
    /// As [`Library::tile_config`].
    unsafe fn tile_config_in(
        &self,
        handle: Handle,
        node: u32,
        config: *mut HsaGpuTileConfig,
        position: u32,
    ) -> HSAKMT_STATUS {
        self.inside(handle, |guard| {
            // SAFETY: the caller's promise.
            let asked =
                unsafe { caller_memory::read(config) }.map_err(|_| Error::argument(position))?;
            let (tiles, macros) = (asked.NumTileConfigs, asked.NumMacroTileConfigs);
            if asked.TileConfig.is_null() && tiles != 0
                || asked.MacroTileConfig.is_null() && macros != 0
            {
                return Err(Error::argument(position));
            }
            let found = guard.tile_config(node, tiles, macros)?;
            // What the driver does not have is zero, as far as the caller's arrays go.
            let fill = |array: *mut u32, length: u32, modes: &[u32], used: u32| {
                if array.is_null() {
                    return Ok(0);
                }
                let modes = modes.iter().copied().take(used as usize);
                let modes = modes.chain(core::iter::repeat(0));
                // SAFETY: the caller's promise.
                unsafe { caller_memory::write_array(array, length as usize, modes) }
            };
            fill(asked.TileConfig, tiles, &found.tile_modes, found.tile_modes_used)?;
            let used = found.macro_tile_modes_used;
            fill(asked.MacroTileConfig, macros, &found.macro_tile_modes, used)?;
            let answer = HsaGpuTileConfig {
                NumTileConfigs: found.tile_modes_used,
                NumMacroTileConfigs: used,
                GbAddrConfig: found.gb_addr_config,
                NumBanks: found.num_banks,
                NumRanks: found.num_ranks,
                ..asked
            };
            // SAFETY: the caller's promise.
            Ok(unsafe { caller_memory::write(config, answer) }?)
        })
    }
}
