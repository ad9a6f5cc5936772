//! SET_TRAP_HANDLER and SET_SCRATCH_BACKING_VA: kernel-rules section 2. The
//! driver keeps the addresses and looks at none of them.

use hsakmt_core::errno::Errno;

use super::dispatch::Request;

/// Addresses that the driver was told for a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Addresses {
    /// The trap handler's code and its data.
    pub trap_handler: Option<(u64, u64)>,
    /// Scratch memory; it matters on gfx7 and gfx8.
    pub scratch: Option<u64>,
}

/// tba_addr at 0, tma_addr at 8, gpu_id u32 at 16; without a VM ESRCH.
pub(super) fn set_trap_handler(request: &mut Request<'_, '_, '_>) -> Result<u32, Errno> {
    let arguments = &request.arguments;
    let (code, data, gpu_id) = (arguments.u64(0), arguments.u64(8), arguments.u32(16));
    told(request, gpu_id, Errno::ESRCH)?.trap_handler = Some((code, data));
    Ok(0)
}

/// va_addr at 0, gpu_id u32 at 8; without a VM ENODEV.
pub(super) fn set_scratch(request: &mut Request<'_, '_, '_>) -> Result<u32, Errno> {
    let (address, gpu_id) = (request.arguments.u64(0), request.arguments.u32(8));
    told(request, gpu_id, Errno::ENODEV)?.scratch = Some(address);
    Ok(0)
}

fn told<'s>(
    request: &'s mut Request<'_, '_, '_>,
    gpu_id: u32,
    without_vm: Errno,
) -> Result<&'s mut Addresses, Errno> {
    let record = request.object_mut()?.record_mut(gpu_id).ok_or(Errno::EINVAL)?;
    if record.file.is_none() {
        return Err(without_vm);
    }
    Ok(&mut record.addresses)
}

#[cfg(test)]
mod tests {
    use hsakmt_core::errno::Errno;
    use hsakmt_core::uapi::kfd::{SetScratchBackingVa, SetTrapHandler};

    use crate::fixture::{acquire, ask, boot, broken, gpu_id, kfd, render};

    #[test]
    fn they_need_a_vm_and_look_at_no_address() {
        let sim = boot("rx7900");
        let device = kfd(&sim);
        let trap = |gpu_id| {
            let tba_addr = u64::MAX;
            ask(&sim, &device, &mut SetTrapHandler { tba_addr, gpu_id, ..Default::default() })
        };
        let scratch = |gpu_id| {
            let va_addr = u64::MAX;
            ask(&sim, &device, &mut SetScratchBackingVa { va_addr, gpu_id, ..Default::default() })
        };
        let id = gpu_id(&sim, 0);
        assert_eq!([trap(0), scratch(0)], [Err(Errno::EINVAL); 2]);
        assert_eq!([trap(id), scratch(id)], [Err(Errno::ESRCH), Err(Errno::ENODEV)]);
        assert_eq!(acquire(&sim, &device, &render(&sim, 0), 0), Ok(0));
        for _ in 0..2 {
            assert_eq!([trap(id), scratch(id)], [Ok(0); 2]);
        }
        assert_eq!(broken(&sim), []);
    }
}
