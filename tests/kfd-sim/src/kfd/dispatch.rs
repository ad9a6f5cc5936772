//! The dispatcher (kfd_ioctl of kfd_chardev.c): which request, what is copied.

use alloc::format;
use alloc::vec;

use hsakmt_core::errno::Errno;
use hsakmt_core::seam::{Call, Clock};
use hsakmt_core::uapi::Direction;

use super::requests::{self, Known, Origin};
use super::{
    KfdObject, ObjectId, addresses, apertures, buffers, check_owner, clocks, context, dma_buf,
    events, gpu_mapping, ipc, memory, policy, queues, runtime, svm, tile, version, vm,
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

/// The driver looks at none of these: letter and size of the request, whose
/// header is then wrong, and padding that a later kernel may give a meaning.
fn check_form(state: &mut State, pid: Pid, call: &Call<'_, '_>, known: &Known) {
    for &at in known.padding {
        if call.block.get(at..at + 4).is_some_and(|bytes| bytes != [0; 4]) {
            let detail = format!("{}: padding at {at} is not zero", known.name);
            state.violation(pid, Rule::PaddingNotZero, detail);
        }
    }
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
        0x02 => queues::create(request),
        0x03 => queues::destroy(request),
        0x04 => policy::set(request),
        0x05 => clocks::get(request),
        0x06 => apertures::get(request),
        0x07 => queues::update(request),
        0x08 => events::create(request),
        0x09 => events::destroy(request),
        0x0a => events::set(request),
        0x0b => events::reset(request),
        0x0c => events::wait(request),
        0x11 => addresses::set_scratch(request),
        0x12 => tile::get(request),
        0x13 => addresses::set_trap_handler(request),
        0x14 => apertures::get_new(request),
        0x15 => vm::acquire(request),
        0x16 => buffers::alloc(request),
        0x17 => buffers::free(request),
        0x18 => gpu_mapping::map(request),
        0x19 => gpu_mapping::unmap(request),
        0x1a => queues::set_cu_mask(request),
        0x1b => queues::wave_state(request),
        0x1c => dma_buf::info(request),
        0x1d => dma_buf::import(request),
        0x1e => queues::alloc_gws(request),
        0x1f => events::open_smi(request),
        0x20 => svm::call(request),
        0x21 => runtime::set_xnack(request),
        0x23 => memory::available(request),
        0x24 => dma_buf::export(request),
        0x25 => runtime::enable(request),
        0x27 => context::create(request),
        0x80 => ipc::import(request),
        0x81 => ipc::export(request),
        _ => {
            let detail = format!("{} ({:#04x})", known.name, known.number);
            request.state.violation(request.pid, Rule::NotSimulated, detail);
            Err(Errno::ENOTTY)
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::vec;
    use alloc::vec::Vec;

    use hsakmt_core::errno::Errno;
    use hsakmt_core::uapi::{Direction, Request};

    use crate::fixture::{boot, broken, kfd, raw};
    use crate::violation::Rule;

    fn version_request(direction: Direction, letter: u8, size: usize) -> Request {
        Request::new(direction, letter, 1, size)
    }

    #[test]
    fn the_number_alone_decides() {
        let sim = boot("rx7900");
        let device = kfd(&sim);
        for request in [
            version_request(Direction::ReadWrite, b'K', 8),
            version_request(Direction::Write, b'K', 8),
            version_request(Direction::Read, b'Z', 8),
        ] {
            let mut block = [0xff; 8];
            assert_eq!(raw(&sim, &device, request, &mut block), Ok(0));
            assert_eq!(block, [1, 0, 0, 0, 17, 0, 0, 0]);
        }
        assert_eq!(broken(&sim), [Rule::RequestForm]);
    }

    #[test]
    fn a_short_block_is_cut() {
        let sim = boot("rx7900");
        let mut block = [0xff; 8];
        let request = version_request(Direction::Read, b'K', 4);
        assert_eq!(raw(&sim, &kfd(&sim), request, &mut block), Ok(0));
        assert_eq!(block, [1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff]);
        assert_eq!(broken(&sim), [Rule::RequestForm]);
    }

    #[test]
    fn a_long_block_is_filled_with_zeros() {
        let sim = boot("rx7900");
        let mut block = [0xff; 12];
        let request = version_request(Direction::Read, b'K', 12);
        assert_eq!(raw(&sim, &kfd(&sim), request, &mut block), Ok(0));
        assert_eq!(block, [1, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(broken(&sim), [Rule::RequestForm]);
    }

    #[test]
    fn a_bad_block_is_efault() {
        let sim = boot("rx7900");
        let request = version_request(Direction::Read, b'K', 8);
        assert_eq!(raw(&sim, &kfd(&sim), request, &mut []), Err(Errno::EFAULT));
        // GET_CLOCK_COUNTERS is copied in as well.
        let request = Request::new(Direction::ReadWrite, b'K', 5, 40);
        assert_eq!(raw(&sim, &kfd(&sim), request, &mut []), Err(Errno::EFAULT));
    }

    #[test]
    fn a_block_without_a_size_reaches_the_driver_as_zeros() {
        let sim = boot("rx7900");
        let request = Request::new(Direction::None, b'K', 1, 0);
        assert_eq!(raw(&sim, &kfd(&sim), request, &mut []), Ok(0));
        assert_eq!(broken(&sim), [Rule::RequestForm]);
    }

    /// B62: nothing unknown succeeds, nothing known is silently not there.
    #[test]
    fn all_256_numbers_of_each_kernel() {
        // Deliberately not the table of `requests.rs`: numbers by kernel.
        let last = |kernel: &str| match kernel {
            "6.1" => 0x23,
            "6.12" => 0x26,
            _ => 0x28,
        };
        for kernel in ["6.1", "6.12", "7.2"] {
            for dkms in [0, 1] {
                let sim = boot(&format!("rx7900:kernel={kernel},dkms={dkms}"));
                let device = kfd(&sim);
                for number in 0..=255_u8 {
                    let exists = match number {
                        0 => false,
                        0x82 => false,
                        0x86 => dkms == 1 && kernel != "7.2",
                        0x80..=0x87 => dkms == 1,
                        _ => number <= last(kernel),
                    };
                    let request = Request::new(Direction::ReadWrite, b'K', number, 512);
                    let answer = raw(&sim, &device, request, &mut vec![0; 512]);
                    let rules: Vec<Rule> = broken(&sim)
                        .into_iter()
                        .filter(|rule| *rule != Rule::RequestForm)
                        .collect();
                    match number {
                        _ if !exists => {
                            assert_eq!(
                                (answer, rules),
                                (Err(Errno::ENOTTY), vec![]),
                                "{number:#x}"
                            );
                        }
                        0x0d..=0x10 => {
                            assert_eq!((answer, rules), (Err(Errno::EPERM), vec![]), "{number:#x}");
                        }
                        _ if rules == [Rule::NotSimulated] => {
                            assert_eq!(answer, Err(Errno::ENOTTY), "{number:#x}");
                        }
                        _ => {
                            assert_eq!(rules, [], "{number:#x}");
                            assert_ne!(answer, Err(Errno::ENOTTY), "{number:#x}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn the_numbers_follow_the_reported_minor() {
        for minor in 1..=28 {
            let sim = boot(&format!("rx7900:kernel=7.2,svm=1,kfd={minor}"));
            let device = kfd(&sim);
            let ask = |number, size| {
                let request = Request::new(Direction::ReadWrite, b'K', number, size);
                raw(&sim, &device, request, &mut vec![0xff; size]) != Err(Errno::ENOTTY)
            };
            assert_eq!(ask(0x23, 16), minor >= 9, "AVAILABLE_MEMORY, 1.{minor}");
            assert_eq!(ask(0x25, 16), minor >= 13, "RUNTIME_ENABLE, 1.{minor}");
            assert_eq!(ask(0x27, 0), minor >= 19, "CREATE_PROCESS, 1.{minor}");
        }
    }

    #[test]
    fn padding_that_is_not_zero_is_noted() {
        let sim = boot("rx7900");
        let request = Request::new(Direction::ReadWrite, b'K', 0x05, 40);
        let mut block = [0; 40];
        block[36] = 1;
        assert_eq!(raw(&sim, &kfd(&sim), request, &mut block), Ok(0));
        assert_eq!(broken(&sim), [Rule::PaddingNotZero]);
    }

    #[test]
    fn a_forked_child_is_told_of_an_unknown_number_first() {
        let sim = boot("rx7900");
        let device = kfd(&sim);
        sim.enter_fork_child();
        let ask = |number| {
            let request = Request::new(Direction::ReadWrite, b'K', number, 8);
            raw(&sim, &device, request, &mut [0; 8])
        };
        assert_eq!(ask(0x7f), Err(Errno::ENOTTY));
        assert_eq!(ask(0x0d), Err(Errno::EBADF));
        broken(&sim);
    }

    #[test]
    fn what_is_not_simulated_is_loud() {
        let sim = boot("rx7900");
        let request = Request::new(Direction::ReadWrite, b'K', 0x26, 32);
        assert_eq!(raw(&sim, &kfd(&sim), request, &mut [0; 32]), Err(Errno::ENOTTY));
        assert_eq!(broken(&sim), [Rule::NotSimulated]);
    }
}
