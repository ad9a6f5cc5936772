//! The dispatcher (kfd_ioctl of kfd_chardev.c): which request, what is copied.

use alloc::format;
use alloc::vec;

use hsakmt_core::errno::Errno;
use hsakmt_core::seam::{Call, Clock};
use hsakmt_core::uapi::Direction;

use super::requests::{self, Known, Origin};
use super::{
    KfdObject, ObjectId, apertures, check_owner, clocks, context, memory, policy, runtime, tile,
    version, vm,
};
use crate::descriptor::FileId;
use crate::machine::State;
use crate::process::Pid;
use crate::user_memory::{Arguments, Arrays};
use crate::violation::Rule;

/// A request on its way through the driver.
pub(crate) struct Request<'s, 'r, 'a> {
    pub state: &'s mut State,
    pub pid: Pid,
    /// The open file of `/dev/kfd` that carries the request.
    pub file: FileId,
    pub id: ObjectId,
    pub arguments: Arguments,
    pub arrays: Arrays<'r, 'a>,
    pub clock: &'s dyn Fn(Clock) -> u64,
}

impl Request<'_, '_, '_> {
    /// The process object.
    pub(crate) fn object(&self) -> Result<&KfdObject, Errno> {
        self.state.objects.get(&self.id).ok_or(Errno::EBADF)
    }

    pub(crate) fn object_mut(&mut self) -> Result<&mut KfdObject, Errno> {
        self.state.objects.get_mut(&self.id).ok_or(Errno::EBADF)
    }
}

/// Executes a request on `/dev/kfd`.
///
/// kernel-truth "plumbing": the number alone decides, letter and direction are
/// not looked at; a short block is cut, a long one filled with zeros; what is
/// not known is ENOTTY, the old debugger's requests EPERM. kernel-rules section
/// 2, "Common": in-out blocks come back also on failure.
pub(crate) fn ioctl(
    state: &mut State,
    pid: Pid,
    file: FileId,
    id: ObjectId,
    call: &mut Call<'_, '_>,
    clock: &dyn Fn(Clock) -> u64,
) -> Result<u32, Errno> {
    let number = call.request.number();
    let known = requests::find(state.kernel, number).ok_or(Errno::ENOTTY)?;
    check_form(state, pid, call, known);
    check_owner(state, pid, id, known.name)?;

    let sent = call.request.size();
    let mut bytes = vec![0; sent.max(known.size)];
    let copied_in = matches!(known.direction, Direction::Write | Direction::ReadWrite);
    let copied_out = matches!(known.direction, Direction::Read | Direction::ReadWrite);
    if copied_in {
        // A null or bad pointer in place of the block.
        let from = call.block.get(..sent).ok_or(Errno::EFAULT)?;
        bytes[..sent].copy_from_slice(from);
    }
    let (block, arrays) = Arrays::split(call);
    let mut request = Request { state, pid, file, id, arguments: Arguments(bytes), arrays, clock };
    let mut result = handle(&mut request, known);
    if copied_out {
        match (block.get_mut(..sent), request.arguments.0.get(..sent)) {
            (Some(to), Some(from)) => to.copy_from_slice(from),
            _ => result = Err(Errno::EFAULT),
        }
    }
    for detail in core::mem::take(&mut request.arrays.beyond) {
        request.state.violation(pid, Rule::ShortArray, format!("{}: {detail}", known.name));
    }
    result
}

/// The driver looks at neither; a header with such a request is wrong.
fn check_form(state: &mut State, pid: Pid, call: &Call<'_, '_>, known: &Known) {
    if call.request.letter() != b'K' || !known.has_size(call.request.size()) {
        let detail = format!("{} sent as {:?}", known.name, call.request);
        state.violation(pid, Rule::RequestForm, detail);
    }
}

fn handle(request: &mut Request<'_, '_, '_>, known: &Known) -> Result<u32, Errno> {
    if known.origin == Origin::Deprecated {
        return Err(Errno::EPERM);
    }
    match known.number {
        0x01 => version::get(request),
        0x04 => policy::set(request),
        0x05 => clocks::get(request),
        0x06 => apertures::get(request),
        0x12 => tile::get(request),
        0x14 => apertures::get_new(request),
        0x15 => vm::acquire(request),
        0x21 => runtime::set_xnack(request),
        0x23 => memory::available(request),
        0x25 => runtime::enable(request),
        0x27 => context::create(request),
        _ => {
            let detail = format!("{} ({:#04x})", known.name, known.number);
            request.state.violation(request.pid, Rule::NotSimulated, detail);
            Err(Errno::ENOTTY)
        }
    }
}
