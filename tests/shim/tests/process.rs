//! Page size, clocks, futex, ids, barriers, environment.
//!
//! # Safety
//!
//! Signal handlers do nothing; environments are changed in children only.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use hsakmt_core::errno::Errno;
use hsakmt_core::seam::{Clock, Os, Wake};
use hsakmt_linux_shim::environment::Environment;
use hsakmt_linux_shim::{Linux, host, page_size};
use hsakmt_shim_tests::{child, not_checked, system_calls};

#[test]
fn the_page_size_is_the_systems() {
    // SAFETY: asks for numbers.
    let (sysconf, auxv) =
        unsafe { (libc::sysconf(libc::_SC_PAGESIZE), libc::getauxval(libc::AT_PAGESZ)) };
    assert_eq!(Linux.page_size() as i64, sysconf);
    assert_eq!(page_size::probe() as u64, auxv);
    for nonsense in [0, 1, 4095, 8192, usize::MAX] {
        page_size::set(nonsense);
        assert_eq!(Linux.page_size() as i64, sysconf);
    }
}

#[test]
fn the_page_size_is_asked_once_and_nothing_else_is_asked_at_all() {
    let _ = Linux.page_size();
    let _ = Linux.fork_word();
    let calls = system_calls::numbers_of(|| {
        for _ in 0..10 {
            let _ = Linux.page_size();
            Linux.fork_word().fetch_add(1, Ordering::Relaxed);
            Linux.wmb_device();
            Linux.rmb_device();
            Linux.flush_wc();
        }
    });
    let Some(calls) = calls else {
        not_checked("no ptrace here");
        return;
    };
    assert_eq!(calls, []);
    let calls = system_calls::of(|| {
        let _ = page_size::probe();
    })
    .unwrap();
    assert!((1..=3).contains(&calls.len()), "{calls:?}");
    for call in calls {
        assert_eq!((call.number, call.arguments[1]), (libc::SYS_madvise, 0));
    }
}

fn clock(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes the time.
    assert_eq!(unsafe { libc::clock_gettime(clock, &raw mut time) }, 0);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[test]
fn clocks_are_the_c_librarys() {
    for (ours, theirs) in [
        (Clock::Monotonic, libc::CLOCK_MONOTONIC),
        (Clock::MonotonicRaw, libc::CLOCK_MONOTONIC_RAW),
        (Clock::Boot, libc::CLOCK_BOOTTIME),
    ] {
        let before = clock(theirs);
        let now = Linux.now(ours);
        let after = clock(theirs);
        assert!((before..=after).contains(&now), "{ours:?}: {before} {now} {after}");
    }
}

#[test]
fn sleep_lasts_unless_a_signal_comes() {
    let before = Linux.now(Clock::Monotonic);
    Linux.sleep(2_000_000);
    assert!(Linux.now(Clock::Monotonic) - before >= 2_000_000);
    Linux.sleep(0);
}

#[test]
fn ids_are_the_kernels() {
    assert_eq!(Linux.process_id(), std::process::id());
    // SAFETY: asks for a number.
    let gettid = || unsafe { libc::gettid() as u32 };
    assert_eq!(Linux.thread_id(), gettid());
    std::thread::spawn(move || assert_eq!(Linux.thread_id(), gettid())).join().unwrap();
    let parent = std::process::id();
    let end = child::forked(|| {
        assert_ne!(Linux.process_id(), parent);
        assert_eq!(Linux.process_id(), std::process::id());
    });
    assert_eq!(end, child::FINE);
}

#[test]
fn a_futex_wait_ends_at_once_if_the_word_differs_and_else_in_time() {
    let word = AtomicU32::new(5);
    assert_eq!(Linux.futex_wait(&word, 4, None), Ok(Wake::Again));
    assert_eq!(Linux.futex_wait(&word, 5, Some(0)), Ok(Wake::TimedOut));
    assert_eq!(Linux.futex_wait(&word, 5, Some(1_000_000)), Ok(Wake::TimedOut));
    Linux.futex_wake(&word, u32::MAX);
}

#[test]
fn a_futex_wake_wakes_as_many_as_asked() {
    let (word, woken) = (AtomicU32::new(0), AtomicU32::new(0));
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                assert_eq!(Linux.futex_wait(&word, 0, None), Ok(Wake::Again));
                woken.fetch_add(1, Ordering::Release);
            });
        }
        // One at a time: with the word unchanged nobody leaves unwoken.
        while woken.load(Ordering::Acquire) < 2 {
            Linux.futex_wake(&word, 1);
            std::thread::yield_now();
        }
        while woken.load(Ordering::Acquire) < 3 {
            Linux.futex_wake(&word, u32::MAX);
            std::thread::yield_now();
        }
    });
}

#[test]
fn a_signal_ends_a_futex_wait() {
    extern "C" fn nothing(_: libc::c_int) {}
    // SAFETY: the handler does nothing; without SA_RESTART calls are interrupted.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = nothing as extern "C" fn(libc::c_int) as usize;
        assert_eq!(libc::sigaction(libc::SIGUSR1, &raw const action, std::ptr::null_mut()), 0);
    }
    let (word, done) = (AtomicU32::new(0), AtomicBool::new(false));
    let id = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            // SAFETY: this thread's own id.
            id.0.send(unsafe { libc::pthread_self() }).unwrap();
            let answer = Linux.futex_wait(&word, 0, None);
            done.store(true, Ordering::Release);
            answer
        });
        let thread = id.1.recv().unwrap();
        while !done.load(Ordering::Acquire) {
            // SAFETY: the scope keeps the thread joinable.
            unsafe { libc::pthread_kill(thread, libc::SIGUSR1) };
            std::thread::yield_now();
        }
        assert_eq!(waiter.join().unwrap(), Err(Errno::EINTR));
    });
}

#[test]
fn the_environment_is_the_c_librarys_as_it_is_now() {
    // SAFETY: nobody changes this process's environment.
    let path = unsafe { Environment::of_process() }.get(c"PATH");
    assert_eq!(path, std::env::var_os("PATH").as_ref().map(|path| path.as_encoded_bytes()));
    let end = child::forked(|| {
        // SAFETY: the only thread of this child.
        unsafe {
            assert_eq!(libc::setenv(c"HSAKMT_SHIM".as_ptr(), c"later".as_ptr(), 1), 0);
            let value = Environment::of_process().get(c"HSAKMT_SHIM");
            assert_eq!(value, Some(&b"later"[..]));

            let block = [c"ONE=1".as_ptr().cast(), std::ptr::null()];
            host::set_environment(block.as_ptr());
            let environment = Environment::of_process();
            assert_eq!(environment.get(c"ONE"), Some(&b"1"[..]));
            assert_eq!(environment.get(c"PATH"), None);
        }
    });
    assert_eq!(end, child::FINE);
}

hsakmt_linux_shim::weak_symbol! {
    "hsakmt_shim_nobody_defines_this",
    fn absent
}

hsakmt_linux_shim::weak_symbol! {
    "getpid",
    fn present
}

#[test]
fn weak_symbols_are_found_where_they_exist() {
    assert_eq!(absent(), None);
    let address = present().unwrap();
    // SAFETY: the C library's getpid.
    let getpid: extern "C" fn() -> i32 = unsafe { std::mem::transmute(address.as_ptr()) };
    assert_eq!(getpid() as u32, std::process::id());
}
