//! The one thin place where a typed block meets the driver.
//!
//! [`execute`] turns a [`Block`] into a [`Call`], obeys the block's restart
//! policy, and nothing else. Rolling back is the business of whoever planned
//! the block.

use crate::errno::Errno;
use crate::seam::{Array, Call, Driver, Os, Platform};
use crate::uapi::{Block, Restart};

/// The first pause after EAGAIN, in nanoseconds; each further one doubles.
const PAUSE_FIRST: u64 = 50_000;
/// The longest pause, in nanoseconds.
const PAUSE_LONGEST: u64 = 10_000_000;
/// All pauses together, in nanoseconds; then EAGAIN is the answer.
const PAUSE_TOTAL: u64 = 5_000_000_000;

/// Executes `block` on `device` and returns the driver's non-negative answer.
///
/// After EINTR or EAGAIN the block goes out again as the driver returned it, so
/// that counters of partial success and remaining times carry on.
///
/// # Errors
/// The driver's errno; EAGAIN only where it is an answer, or after five seconds
/// of it. `block` and `arrays` hold what the driver wrote in either case.
pub fn execute<P: Platform, B: Block>(
    platform: &P,
    device: &<P::Driver as Driver>::Device,
    block: &mut B,
    arrays: &mut [Array<'_>],
) -> Result<u32, Errno> {
    let mut call = Call {
        request: B::REQUEST,
        name: B::NAME,
        fields: B::FIELDS,
        block: block.as_mut_bytes(),
        slots: B::ARRAYS,
        arrays,
    };
    send(platform, device, &mut call, B::RESTART)
}

/// Executes a block whose elements follow it in the same memory (`svm_args`).
///
/// `block` is a `B` and then whole elements; the request's size grows with it.
///
/// # Errors
/// As [`execute`]; EINVAL when `block` is shorter than a `B` or longer than the
/// 14 bits of a request can say.
pub fn execute_with_tail<P: Platform, B: Block>(
    platform: &P,
    device: &<P::Driver as Driver>::Device,
    block: &mut [u8],
) -> Result<u32, Errno> {
    if block.len() < size_of::<B>() {
        return Err(Errno::EINVAL);
    }
    let request = B::REQUEST.with_size(block.len()).ok_or(Errno::EINVAL)?;
    let mut call = Call {
        request,
        name: B::NAME,
        fields: B::FIELDS,
        block,
        slots: B::ARRAYS,
        arrays: &mut [],
    };
    send(platform, device, &mut call, B::RESTART)
}

fn send<P: Platform>(
    platform: &P,
    device: &<P::Driver as Driver>::Device,
    call: &mut Call<'_, '_>,
    restart: Restart,
) -> Result<u32, Errno> {
    let mut pause = PAUSE_FIRST;
    let mut paused: u64 = 0;
    loop {
        match (platform.driver().execute(device, call), restart) {
            (Err(Errno::EINTR), Restart::Eintr | Restart::EintrEagain) => {}
            (Err(Errno::EAGAIN), Restart::EintrEagain) if paused < PAUSE_TOTAL => {
                platform.os().sleep(pause);
                paused = paused.saturating_add(pause);
                pause = pause.saturating_mul(2).min(PAUSE_LONGEST);
            }
            (answer, _) => return answer,
        }
    }
}
