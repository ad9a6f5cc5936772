//! The shim against the real kernel, and what such tests need: children of
//! every kind, a counter of system calls, a view of the address space.
//!
//! # Safety
//!
//! Children are made by fork and clone in a process with threads. Each child
//! runs one closure and ends by `_exit`, so no destructor and no exit handler
//! runs twice.

pub mod address_space;
pub mod child;
pub mod freestanding;
pub mod random;
pub mod system_calls;

/// Tells that a check could not be made. On a real kernel that counts as a
/// skipped test; an emulator is known to lack what some checks need.
pub fn not_checked(reason: &str) {
    if child::emulated() {
        println!("not checked under emulation: {reason}");
    } else {
        println!("skipped: {reason}");
    }
}

/// The numbers of the calling process's open descriptors, in order, without the
/// one that reads the list.
#[must_use]
pub fn open_descriptors() -> Vec<i32> {
    let mut all: Vec<i32> = std::fs::read_dir("/proc/self/fd")
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok())
        .collect();
    // SAFETY: asks about a number only. The list's own descriptor is closed by now.
    all.retain(|&fd| unsafe { libc::fcntl(fd, libc::F_GETFD) } != -1);
    all.sort_unstable();
    all
}
