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
#[inline(always)]
pub fn execute<P: Platform, B: Block>(
    platform: &P,
    device: &<P::Driver as Driver>::Device,
    block: &mut B,
    arrays: &mut [Array<'_>],
) -> Result<u32, Errno> {
    let answer = platform.driver().execute(device, &mut call_of(block, arrays));
    match (answer, B::RESTART) {
        (Err(errno @ (Errno::EINTR | Errno::EAGAIN)), Restart::Eintr | Restart::EintrEagain) => {
            restart(platform, device, &mut call_of(block, arrays), B::RESTART, errno)
        }
        (answer, _) => answer,
    }
}

#[inline]
fn call_of<'c, 'a, B: Block>(block: &'c mut B, arrays: &'c mut [Array<'a>]) -> Call<'c, 'a> {
    Call {
        request: B::REQUEST,
        name: B::NAME,
        fields: B::FIELDS,
        block: block.as_mut_bytes(),
        slots: B::ARRAYS,
        arrays,
    }
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
    match platform.driver().execute(device, &mut call) {
        Err(errno) => restart(platform, device, &mut call, B::RESTART, errno),
        answer => answer,
    }
}

/// Sends a call again for as long as its policy says, beginning with the errno of
/// the first time.
#[cold]
fn restart<P: Platform>(
    platform: &P,
    device: &<P::Driver as Driver>::Device,
    call: &mut Call<'_, '_>,
    policy: Restart,
    errno: Errno,
) -> Result<u32, Errno> {
    let mut pause = PAUSE_FIRST;
    let mut paused: u64 = 0;
    let mut answer = Err(errno);
    loop {
        match (answer, policy) {
            (Err(Errno::EINTR), Restart::Eintr | Restart::EintrEagain) => {}
            (Err(Errno::EAGAIN), Restart::EintrEagain) if paused < PAUSE_TOTAL => {
                platform.os().sleep(pause);
                paused = paused.saturating_add(pause);
                pause = pause.saturating_mul(2).min(PAUSE_LONGEST);
            }
            (answer, _) => return answer,
        }
        answer = platform.driver().execute(device, call);
    }
}
