//! The words that a forked child finds zeroed, both where the kernel wipes them
//! and where we compare process ids.
//!
//! # Safety
//!
//! Children end by `_exit`; see `hsakmt_shim_tests::child`.

use std::sync::atomic::{AtomicU32, Ordering};

use hsakmt_core::seam::{Mapping, Os, Placement, Protection};
use hsakmt_linux_shim::Linux;
use hsakmt_linux_shim::fork::{Detector, Words, words};
use hsakmt_shim_tests::child::{self, FINE, cloned, forked, sharing_memory};
use hsakmt_shim_tests::not_checked;
use hsakmt_shim_tests::system_calls;

fn get(words: &Words) -> [u32; 3] {
    [&words.core, &words.heap_lock, &words.heap_epoch].map(|word| word.load(Ordering::Relaxed))
}

fn set(words: &Words, value: u32) {
    for word in [&words.core, &words.heap_lock, &words.heap_epoch] {
        word.store(value, Ordering::Relaxed);
    }
}

/// Runs the check with a detector of each kind, each used by this test alone.
macro_rules! with_both_kinds {
    ($check:expr) => {{
        static WIPED: Detector = Detector::new();
        static COMPARED: Detector = Detector::comparing_process_ids();
        let check: fn(&'static Detector) = $check;
        assert!(!COMPARED.kernel_wipes());
        check(&COMPARED);
        if !WIPED.kernel_wipes() {
            println!("this kernel does not wipe pages");
        }
        check(&WIPED);
    }};
}

#[test]
fn this_kernel_wipes() {
    static DETECTOR: Detector = Detector::new();
    assert_eq!(DETECTOR.kernel_wipes(), !child::emulated());
}

#[test]
fn words_are_zero_at_first_and_stay_in_place() {
    with_both_kinds!(|detector| {
        let first = detector.words();
        assert_eq!(get(first), [0; 3]);
        set(first, 7);
        assert!(std::ptr::eq(first, detector.words()));
        assert_eq!(get(detector.words()), [7; 3]);
    });
}

#[test]
fn a_forked_child_finds_them_zeroed_and_the_parent_keeps_them() {
    with_both_kinds!(|detector| {
        set(detector.words(), 7);
        for make in [forked, cloned] as [fn(fn()) -> child::End; 2] {
            // The closures capture nothing, so the detector goes by a static.
            static IN_USE: std::sync::atomic::AtomicPtr<Detector> =
                std::sync::atomic::AtomicPtr::new(std::ptr::null_mut());
            IN_USE.store(std::ptr::from_ref(detector).cast_mut(), Ordering::Relaxed);
            let end = make(|| {
                // SAFETY: a static.
                let detector: &'static Detector = unsafe { &*IN_USE.load(Ordering::Relaxed) };
                assert_eq!(get(detector.words()), [0; 3]);
                set(detector.words(), 8);
                assert_eq!(get(detector.words()), [8; 3]);
            });
            assert_eq!(end, FINE);
            assert_eq!(get(detector.words()), [7; 3]);
        }
    });
}

#[test]
fn a_chain_of_fifty_children_finds_them_zeroed_each_time() {
    fn next(detector: &'static Detector, depth: u32) {
        assert_eq!(get(detector.words()), [0; 3], "at depth {depth}");
        set(detector.words(), depth + 1);
        if depth < 50 {
            assert_eq!(forked(|| next(detector, depth + 1)), FINE);
        }
        assert_eq!(get(detector.words()), [depth + 1; 3]);
    }
    with_both_kinds!(|detector| next(detector, 0));
}

#[test]
fn a_child_that_shares_memory_changes_nothing() {
    with_both_kinds!(|detector| {
        set(detector.words(), 7);
        for flags in [libc::CLONE_VFORK, 0] {
            let end = sharing_memory(flags, || {
                assert_eq!(get(detector.words()), [7; 3]);
                assert_eq!(get(detector.words()), [7; 3]);
            });
            let Some(end) = end else {
                not_checked("an emulator cannot share memory");
                return;
            };
            assert_eq!(end, FINE);
            assert_eq!(get(detector.words()), [7; 3]);
        }
        // The same in a forked child, which has a witness of its own.
        let end = forked(|| {
            set(detector.words(), 8);
            let end = sharing_memory(libc::CLONE_VFORK, || {
                assert_eq!(get(detector.words()), [8; 3]);
            });
            assert_eq!(end, Some(FINE));
            assert_eq!(get(detector.words()), [8; 3]);
        });
        assert_eq!(end, FINE);
    });
}

#[test]
fn a_child_of_a_sharing_child_is_forked() {
    with_both_kinds!(|detector| {
        set(detector.words(), 7);
        let _ = sharing_memory(libc::CLONE_VFORK, || {
            assert_eq!(cloned(|| assert_eq!(get(detector.words()), [0; 3])), FINE);
            assert_eq!(get(detector.words()), [7; 3]);
        })
        .map(|end| assert_eq!(end, FINE));
        assert_eq!(get(detector.words()), [7; 3]);
    });
}

#[test]
fn a_witness_is_not_mistaken_for_what_is_mapped_in_its_place() {
    with_both_kinds!(|detector| {
        set(detector.words(), 7);
        let end = forked(|| {
            // Fill every hole of a page that the child has, the witness's among
            // them, before the first look.
            for protection in [Protection::READ, Protection::empty()] {
                for _ in 0..100 {
                    let page = Mapping {
                        placement: Placement::Anywhere,
                        length: Linux.page_size(),
                        protection,
                        reserve: true,
                        shared: false,
                    };
                    Linux.map(page).unwrap();
                }
            }
            assert_eq!(get(detector.words()), [0; 3]);
        });
        assert_eq!(end, FINE);
    });
}

#[test]
fn threads_of_a_forked_child_agree() {
    with_both_kinds!(|detector| {
        set(detector.words(), 7);
        let end = forked(|| {
            let wiped = AtomicU32::new(0);
            std::thread::scope(|scope| {
                for _ in 0..8 {
                    scope.spawn(|| {
                        for _ in 0..100 {
                            // Only one thread can find the zero and replace it.
                            let order = (Ordering::Relaxed, Ordering::Relaxed);
                            let core = &detector.words().core;
                            if core.compare_exchange(0, 1, order.0, order.1).is_ok() {
                                wiped.fetch_add(1, Ordering::Relaxed);
                            }
                        }
                    });
                }
            });
            assert_eq!(wiped.load(Ordering::Relaxed), 1);
            assert_eq!(detector.words().core.load(Ordering::Relaxed), 1);
        });
        assert_eq!(end, FINE);
    });
}

#[test]
fn threads_choose_one_place() {
    with_both_kinds!(|detector| {
        let places: Vec<usize> = std::thread::scope(|scope| {
            let all: Vec<_> = (0..8)
                .map(|_| scope.spawn(|| std::ptr::from_ref(detector.words()).addr()))
                .collect();
            all.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(places.iter().all(|&place| place == places[0]));
    });
}

#[test]
fn the_processs_word_is_the_first_of_its_words() {
    assert!(std::ptr::eq(Linux.fork_word(), &raw const words().core));
}

#[test]
fn a_look_costs_no_call_where_the_kernel_wipes_and_one_elsewhere() {
    static WIPED: Detector = Detector::new();
    static COMPARED: Detector = Detector::comparing_process_ids();
    let looks = |detector: &'static Detector| {
        system_calls::numbers_of(|| {
            // The traced child is a forked one; its first look settles that.
            let _ = detector.words();
            // SAFETY: changes nothing.
            unsafe { libc::syscall(libc::SYS_gettid) };
            for _ in 0..5 {
                let _ = detector.words();
            }
        })
        .map(|calls| {
            let settled = calls.iter().position(|&call| call == libc::SYS_gettid).unwrap();
            calls[settled + 1..].to_vec()
        })
    };
    let Some(calls) = looks(&WIPED) else {
        not_checked("no ptrace here");
        return;
    };
    assert_eq!(calls, []);
    assert_eq!(looks(&COMPARED).unwrap(), [libc::SYS_getpid; 5]);
}
