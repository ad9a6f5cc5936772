//! The C functions, without a context, with the primary and with a secondary one.
//!
//! # Safety
//! The functions get NULL, memory that they allocated, or structures and arrays of
//! this module's own, as long as the counts say.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::mem::{MaybeUninit, zeroed};
use std::ptr;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use hsakmt::generation::{Current, Generation};
use hsakmt::types::{
    HSA_POINTER_TYPE, HSAKMT_STATUS, HsaKFDContext, HsaMemFlags, HsaPointerInfo,
    HsaSystemProperties,
};
use hsakmt::{Host, Library};
use hsakmt_conformance::{Simulated, machine};
use hsakmt_core::error::Status;
use hsakmt_core::memory::{AllocationRequest, MemoryFlags, PointerKind};
use hsakmt_core::seam::Platform;
use hsakmt_linux_shim::Linux;
use kfd_sim::Machine;

use crate::caller::{Caller, Info};

/// A kernel with secondary contexts; without the SVM calls, so that primary and
/// secondary contexts are alike.
const PROFILE: &str = "mi300x:gpus=2,cus=4,cpus=1,cores=2,kernel=7.2,svm=0";

/// The one process of the C library's, from its first use on.
struct Later(OnceLock<(Machine, Simulated)>);

impl Later {
    fn get(&self) -> &(Machine, Simulated) {
        self.0.get_or_init(|| {
            let machine = machine(PROFILE);
            let simulated = machine.spawn(Linux);
            (machine, simulated)
        })
    }
}

impl Platform for Later {
    type Os = Simulated;
    type Driver = Simulated;

    fn os(&self) -> &Simulated {
        &self.get().1
    }

    fn driver(&self) -> &Simulated {
        &self.get().1
    }
}

struct Program;

impl Host for Program {
    type Platform = &'static Later;
    type Generation = Current;

    fn variables(&self, _: &mut dyn FnMut(&[u8])) {}

    fn write_log(&self, _: &[u8]) {}
}

static PROCESS: Later = Later(OnceLock::new());
static LIBRARY: Library<Program> = Library::new(Program, &PROCESS);
static TURN: Mutex<()> = Mutex::new(());

#[allow(non_snake_case, reason = "the names of the C ABI")]
mod exported {
    use super::{Current, LIBRARY};
    hsakmt::export!(LIBRARY, Current);
}

/// Which functions are called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Those without a context.
    Legacy,
    /// Those with one, on the primary context.
    Primary,
    /// The same on a secondary context.
    Secondary,
}

/// The C library. There is one, so that its users take turns.
pub struct CFunctions {
    form: Form,
    context: *mut HsaKFDContext,
    _turn: MutexGuard<'static, ()>,
}

fn checked(status: HSAKMT_STATUS) -> Result<(), Status> {
    if status == HSAKMT_STATUS::SUCCESS { Ok(()) } else { Err(Status(status.0)) }
}

fn pointer(address: u64) -> *mut c_void {
    ptr::without_provenance_mut(address as usize)
}

/// Calls a function without a context, or its twin with one.
macro_rules! call {
    ($caller:expr, $legacy:ident, $twin:ident, $($argument:expr),* $(,)?) => {
        checked(match $caller.form {
            // SAFETY: see the head of the file.
            Form::Legacy => unsafe { exported::$legacy($($argument),*) },
            // SAFETY: see the head of the file.
            _ => unsafe { exported::$twin($caller.context, $($argument),*) },
        })
    };
}

impl CFunctions {
    /// The library, closed, on a machine that has everything that outlives a close.
    pub fn new(form: Form) -> CFunctions {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let mut caller = CFunctions { form, context: ptr::null_mut(), _turn: turn };
        caller.open().unwrap();
        caller.acquire().unwrap();
        caller.close().unwrap();
        caller
    }
}

impl Caller for CFunctions {
    fn open(&mut self) -> Result<(), Status> {
        // SAFETY: the variable is this object's own.
        checked(unsafe {
            match self.form {
                Form::Legacy => exported::hsaKmtOpenKFD(),
                _ => exported::hsaKmtOpenKFDCtx(&mut self.context),
            }
        })?;
        if self.form == Form::Secondary {
            // SAFETY: the variable is this object's own.
            checked(unsafe { exported::hsaKmtOpenSecondaryKFDCtx(&mut self.context) })?;
        }
        Ok(())
    }

    fn close(&mut self) -> Result<(), Status> {
        // SAFETY: no pointer but the handle.
        unsafe {
            if self.form == Form::Secondary {
                checked(exported::hsaKmtCloseSecondaryKFDCtx(self.context))?;
            }
            checked(match self.form {
                Form::Legacy => exported::hsaKmtCloseKFD(),
                _ => exported::hsaKmtCloseKFDCtx(),
            })
        }
    }

    fn acquire(&self) -> Result<Vec<u32>, Status> {
        // SAFETY: the C structures hold numbers only.
        let (mut system, mut node): (HsaSystemProperties, <Current as Generation>::NodeProperties) =
            unsafe { zeroed() };
        call!(self, hsaKmtAcquireSystemProperties, hsaKmtAcquireSystemPropertiesCtx, &mut system)?;
        let mut gpus = Vec::new();
        for id in 0..system.NumNodes {
            call!(self, hsaKmtGetNodeProperties, hsaKmtGetNodePropertiesCtx, id, &mut node)?;
            if node.KFDGpuID != 0 {
                gpus.push(id);
            }
        }
        Ok(gpus)
    }

    fn registers(&self) -> bool {
        self.form != Form::Secondary
    }

    fn allocate(&self, request: &AllocationRequest) -> Result<u64, Status> {
        let &AllocationRequest { node, size, alignment, flags, .. } = request;
        let flags = HsaMemFlags { Value: flags.bits() };
        let mut address = pointer(1);
        let result = match alignment {
            0 => call!(
                self,
                hsaKmtAllocMemory,
                hsaKmtAllocMemoryCtx,
                node,
                size,
                flags,
                &mut address
            ),
            _ => call!(
                self,
                hsaKmtAllocMemoryAlign,
                hsaKmtAllocMemoryAlignCtx,
                node,
                size,
                alignment,
                flags,
                &mut address,
            ),
        };
        result.map(|()| address.addr() as u64)
    }

    fn free(&self, address: u64, size: u64) -> Result<(), Status> {
        call!(self, hsaKmtFreeMemory, hsaKmtFreeMemoryCtx, pointer(address), size)
    }

    fn map(&self, address: u64, size: u64) -> Result<u64, Status> {
        let (address, mut alternate) = (pointer(address), 1);
        call!(self, hsaKmtMapMemoryToGPU, hsaKmtMapMemoryToGPUCtx, address, size, &mut alternate)?;
        Ok(alternate)
    }

    fn map_to_nodes(&self, address: u64, size: u64, nodes: &[u32]) -> Result<u64, Status> {
        let (address, mut alternate) = (pointer(address), 1);
        let mut nodes = nodes.to_vec();
        call!(
            self,
            hsaKmtMapMemoryToGPUNodes,
            hsaKmtMapMemoryToGPUNodesCtx,
            address,
            size,
            &mut alternate,
            HsaMemFlags { Value: 0 },
            nodes.len() as u64,
            nodes.as_mut_ptr(),
        )?;
        Ok(alternate)
    }

    fn unmap(&self, address: u64) -> Result<(), Status> {
        call!(self, hsaKmtUnmapMemoryToGPU, hsaKmtUnmapMemoryToGPUCtx, pointer(address))
    }

    fn info(&self, address: u64) -> Result<Info, Status> {
        // SAFETY: the C structure holds numbers and pointers that may be NULL.
        let mut info: HsaPointerInfo = unsafe { zeroed() };
        let address = pointer(address);
        call!(self, hsaKmtQueryPointerInfo, hsaKmtQueryPointerInfoCtx, address, &mut info)?;
        let (count, first) = (info.NMappedNodes as usize, info.MappedNodes);
        let mapped = if count == 0 {
            assert!(first.is_null());
            Vec::new()
        } else {
            // SAFETY: the library's array of as many entries.
            unsafe { std::slice::from_raw_parts(first, count) }.to_vec()
        };
        Ok(Info {
            kind: match info.Type {
                HSA_POINTER_TYPE::ALLOCATED => PointerKind::Allocated,
                HSA_POINTER_TYPE::REGISTERED_USER => PointerKind::RegisteredUser,
                HSA_POINTER_TYPE::RESERVED_ADDR => PointerKind::ReservedAddress,
                other => panic!("{other:?}"),
            },
            node: info.Node,
            flags: MemoryFlags::from_bits_retain(info.MemFlags.Value),
            cpu_address: info.CPUAddress.addr() as u64,
            gpu_address: info.GPUAddress,
            size: info.SizeInBytes,
            mapped,
            user_data: info.UserData.addr() as u64,
        })
    }

    fn attach(&self, address: u64, data: u64) -> Result<(), Status> {
        let (address, data) = (pointer(address).cast_const(), pointer(data));
        call!(self, hsaKmtSetMemoryUserData, hsaKmtSetMemoryUserDataCtx, address, data)
    }

    fn register(&self, address: u64, size: u64) -> Result<(), Status> {
        let flags = MemoryFlags::HOST_ACCESS | MemoryFlags::COARSE_GRAIN;
        call!(
            self,
            hsaKmtRegisterMemoryWithFlags,
            hsaKmtRegisterMemoryWithFlagsCtx,
            pointer(address),
            size,
            HsaMemFlags { Value: flags.bits() },
        )
    }

    fn deregister(&self, address: u64) -> Result<(), Status> {
        call!(self, hsaKmtDeregisterMemory, hsaKmtDeregisterMemoryCtx, pointer(address))
    }

    fn available(&self, node: u32) -> Result<u64, Status> {
        let mut bytes = 0;
        call!(self, hsaKmtAvailableMemory, hsaKmtAvailableMemoryCtx, node, &mut bytes)?;
        Ok(bytes)
    }

    fn context(&self) -> usize {
        self.context.addr()
    }

    fn set_context(&mut self, context: usize) {
        self.context = ptr::without_provenance_mut(context);
    }

    fn machine(&self) -> &Machine {
        &PROCESS.get().0
    }

    fn platform(&self) -> &Simulated {
        &PROCESS.get().1
    }

    fn object(&self) -> *mut [MaybeUninit<u8>] {
        let size = size_of::<Library<Program>>();
        ptr::slice_from_raw_parts_mut((&raw const LIBRARY).cast_mut().cast(), size)
    }
}
