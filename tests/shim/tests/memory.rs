//! The address space, judged by what the kernel shows of it.
//!
//! What the system shows is read in a child: an emulator leaves out a whole
//! mapping when another thread unmaps its neighbour meanwhile.
//!
//! # Safety
//!
//! The tests touch only ranges that they have just mapped.

use hsakmt_core::errno::Errno;
use hsakmt_core::seam::{Advice, Mapping, MemoryPolicy, Os, Placement, Protection};
use hsakmt_linux_shim::Linux;
use hsakmt_shim_tests::address_space::area;
use hsakmt_shim_tests::child::{FINE, emulated, forked};
use hsakmt_shim_tests::not_checked;

fn mapping(pages: usize) -> Mapping {
    Mapping {
        placement: Placement::Anywhere,
        length: pages * Linux.page_size(),
        protection: Protection::READ | Protection::WRITE,
        reserve: true,
        shared: false,
    }
}

fn byte(address: usize) -> *mut u8 {
    std::ptr::with_exposed_provenance_mut(address)
}

/// Asserts a flag where the system tells flags.
#[track_caller]
fn assert_flag(address: usize, flag: &str, set: bool) {
    let told = area(address).expect("mapped").flag(flag);
    assert!(told.is_none_or(|told| told == set), "{flag} should be {set} at {address:#x}");
    assert!(told.is_some() || emulated(), "no VmFlags");
}

#[test]
fn a_private_mapping_is_zeroed_and_writable_until_unmapped() {
    // In a child, where no other thread maps into a hole.
    let end = forked(|| {
        let mapping = mapping(3);
        let at = Linux.map(mapping).unwrap();
        let end = at + mapping.length - 1;
        // SAFETY: mapped above.
        unsafe {
            assert_eq!((byte(at).read(), byte(end).read()), (0, 0));
            byte(end).write(7);
            assert_eq!(byte(end).read(), 7);
        }
        assert_eq!(area(at).unwrap().access, "rw-p");
        Linux.unmap(at, mapping.length).unwrap();
        assert_eq!(area(at), None);
        if !emulated() {
            assert_eq!(Linux.advise(at, mapping.length, Advice::DontNeed), Err(Errno::ENOMEM));
        }
    });
    assert_eq!(end, FINE);
}

#[test]
fn sharing_and_reservation_are_as_asked() {
    let end = forked(|| {
        for (shared, reserve) in [(false, false), (false, true), (true, false), (true, true)] {
            let mapping = Mapping { shared, reserve, ..mapping(1) };
            let at = Linux.map(mapping).unwrap();
            assert_eq!(area(at).unwrap().access, if shared { "rw-s" } else { "rw-p" });
            // Without overcommit the kernel accounts for everything.
            let strict = std::fs::read("/proc/sys/vm/overcommit_memory").is_ok_and(|m| m == b"2\n");
            assert_flag(at, "nr", !reserve && !strict);
            assert_flag(at, "sh", shared);
            Linux.unmap(at, mapping.length).unwrap();
        }
    });
    assert_eq!(end, FINE);
}

#[test]
fn a_large_reservation_costs_no_memory() {
    let end = forked(|| {
        let reservation = Mapping {
            length: 64 << 30,
            protection: Protection::empty(),
            reserve: false,
            ..mapping(1)
        };
        let at = Linux.map(reservation).unwrap();
        assert_eq!(area(at).unwrap().access, "---p");
        Linux.unmap(at, reservation.length).unwrap();
    });
    assert_eq!(end, FINE);
}

#[test]
fn placements_hint_refuse_and_replace() {
    // In a child, where no other thread maps into a hole.
    let end = forked(|| {
        let page = Linux.page_size();
        let three = mapping(3);
        let at = Linux.map(three).unwrap();
        let middle = at + page;
        let one = |placement| Mapping { placement, ..mapping(1) };

        // Taken: a hint goes elsewhere, `Free` refuses and leaves the range alone.
        // SAFETY: mapped above.
        unsafe { byte(middle).write(1) };
        let elsewhere = Linux.map(one(Placement::Hint(middle))).unwrap();
        assert_ne!(elsewhere, middle);
        assert_eq!(Linux.map(one(Placement::Free(middle))), Err(Errno::EEXIST));
        // SAFETY: still mapped.
        assert_eq!(unsafe { byte(middle).read() }, 1);
        assert_eq!(Linux.map(one(Placement::Replace(middle))), Ok(middle));
        // SAFETY: mapped anew.
        assert_eq!(unsafe { byte(middle).read() }, 0);

        // A range that hangs over into a taken one is refused as well.
        Linux.unmap(at, page).unwrap();
        let two = Mapping { placement: Placement::Free(at), ..mapping(2) };
        assert_eq!(Linux.map(two), Err(Errno::EEXIST));
        assert_eq!(Linux.map(one(Placement::Free(at))), Ok(at));
        Linux.unmap(at, three.length).unwrap();
        Linux.unmap(elsewhere, page).unwrap();
        assert_eq!(Linux.map(one(Placement::Hint(middle + 1))).map(|at| at % page), Ok(0));
    });
    assert_eq!(end, FINE);
}

#[test]
fn impossible_mappings_are_errors() {
    assert_eq!(Linux.map(Mapping { length: 0, ..mapping(1) }), Err(Errno::EINVAL));
    assert_eq!(Linux.map(Mapping { length: 1 << 60, ..mapping(1) }), Err(Errno::ENOMEM));
    assert_eq!(
        Linux.map(Mapping { placement: Placement::Replace(1), ..mapping(1) }),
        Err(Errno::EINVAL)
    );
    assert_eq!(Linux.unmap(1, Linux.page_size()), Err(Errno::EINVAL));
}

#[test]
fn protection_changes() {
    // In a child, where no other thread maps into a hole.
    let end = forked(|| {
        let one = mapping(1);
        let at = Linux.map(one).unwrap();
        for (allow, access) in [
            (Protection::empty(), "---p"),
            (Protection::READ, "r--p"),
            (Protection::READ | Protection::EXECUTE, "r-xp"),
            (Protection::READ | Protection::WRITE, "rw-p"),
        ] {
            Linux.protect(at, one.length, allow).unwrap();
            assert_eq!(area(at).unwrap().access, access);
        }
        Linux.unmap(at, one.length).unwrap();
        assert_eq!(Linux.protect(at, one.length, Protection::READ), Err(Errno::ENOMEM));
    });
    assert_eq!(end, FINE);
}

#[test]
fn advice_shows_in_the_flags() {
    let end = forked(|| {
        let two = mapping(2);
        let at = Linux.map(two).unwrap();
        for (advice, flag, set) in [
            (Advice::DontFork, "dc", true),
            (Advice::DoFork, "dc", false),
            (Advice::DontDump, "dd", true),
        ] {
            Linux.advise(at, two.length, advice).unwrap();
            assert_flag(at, flag, set);
        }
        // A kernel built without huge pages does not know these two.
        for (advice, flag) in [(Advice::HugePage, "hg"), (Advice::NoHugePage, "nh")] {
            match Linux.advise(at, two.length, advice) {
                Ok(()) => assert_flag(at, flag, true),
                Err(errno) => {
                    assert_eq!(errno, Errno::EINVAL);
                    assert!(!std::fs::exists("/sys/kernel/mm/transparent_hugepage").unwrap());
                }
            }
        }
        Linux.unmap(at, two.length).unwrap();
    });
    assert_eq!(end, FINE);
}

#[test]
fn dropped_contents_are_gone() {
    let private = mapping(1);
    let at = Linux.map(private).unwrap();
    // SAFETY: mapped above, throughout.
    unsafe { byte(at).write(9) };
    Linux.advise(at, private.length, Advice::DontNeed).unwrap();
    // SAFETY: as above.
    assert_eq!(unsafe { byte(at).read() }, 0);
    assert_eq!(Linux.advise(at + 1, 1, Advice::DontNeed), Err(Errno::EINVAL));
    // Removing the backing store is for shared mappings.
    if !emulated() {
        assert_eq!(Linux.advise(at, private.length, Advice::Remove), Err(Errno::EINVAL));
    }
    Linux.unmap(at, private.length).unwrap();

    let shared = Mapping { shared: true, ..mapping(1) };
    let at = Linux.map(shared).unwrap();
    // SAFETY: mapped above, throughout.
    unsafe { byte(at).write(9) };
    if !emulated() {
        Linux.advise(at, shared.length, Advice::DontNeed).unwrap();
        // SAFETY: as above.
        assert_eq!(unsafe { byte(at).read() }, 9, "shared contents outlive their pages");
        Linux.advise(at, shared.length, Advice::Remove).unwrap();
        // SAFETY: as above.
        assert_eq!(unsafe { byte(at).read() }, 0);
    }
    Linux.unmap(at, shared.length).unwrap();
}

/// The policy of the memory at an address, and its nodes.
fn policy(address: usize) -> Option<(i32, u64)> {
    let (mut mode, mut nodes) = (0i32, [0u64; 16]);
    let bits = nodes.len() * 64;
    const OF_ADDRESS: libc::c_ulong = 2;
    // SAFETY: writes the mode and the mask.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_get_mempolicy,
            &raw mut mode,
            nodes.as_mut_ptr(),
            bits,
            address,
            OF_ADDRESS,
        )
    };
    (answer == 0).then_some((mode, nodes[0]))
}

#[test]
fn numa_policy_is_set_and_reset() {
    const STATIC_NODES: i32 = 1 << 15;
    const BIND: i32 = 2;
    const PREFERRED: i32 = 1;
    const PREFERRED_MANY: i32 = 5;
    let one = mapping(1);
    let at = Linux.map(one).unwrap();
    let bind = |policy, nodes: &[u64]| Linux.bind(at, one.length, policy, nodes);
    match bind(MemoryPolicy::Bind, &[1]) {
        Ok(()) => {}
        Err(errno @ (Errno::ENOSYS | Errno::EPERM)) => {
            not_checked(&format!("mbind answers {errno}"));
            return;
        }
        Err(errno) => panic!("{errno}"),
    }
    assert_eq!(policy(at), Some((BIND | STATIC_NODES, 1)));
    bind(MemoryPolicy::Preferred, &[1]).unwrap();
    assert_eq!(policy(at), Some((PREFERRED | STATIC_NODES, 1)));
    // Longer masks than the kernel has nodes are fine while the rest is zero.
    bind(MemoryPolicy::Preferred, &[1, 0]).unwrap();
    assert_eq!(policy(at), Some((PREFERRED | STATIC_NODES, 1)));
    bind(MemoryPolicy::Preferred, &[3]).unwrap();
    let (mode, _) = policy(at).unwrap();
    assert!(
        mode == PREFERRED_MANY | STATIC_NODES || mode == PREFERRED | STATIC_NODES,
        "mode {mode:#x}"
    );
    bind(MemoryPolicy::Default, &[1]).unwrap();
    assert_eq!(policy(at), Some((0, 0)));
    assert_eq!(bind(MemoryPolicy::Bind, &[]), Err(Errno::EINVAL));
    Linux.unmap(at, one.length).unwrap();
}
