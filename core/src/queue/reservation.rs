//! Places in a ring of packets, taken by several producers at once without a lock.

use super::pointers::SharedNumber;

/// Takes `count` places in a row of a ring with `capacity` places, all or none:
/// the index of the first, `None` where so many are not free.
///
/// `written` is the index of the next place that nobody has taken, `read` that of
/// the oldest which the engine has not given back; both only grow, and the
/// engine raises `read` with Release after it is done with a place.
///
/// `read` is loaded first: the load of `written` then sees at least that number,
/// because the engine read no place before it was taken. `None` means that there
/// was a moment without so many free places: `read` did not change meanwhile. A
/// thread that has to try again lost to one that took places, or to the engine
/// that freed some, so somebody always gets on.
#[inline]
pub fn take_places<N: SharedNumber>(
    written: &N,
    read: &N,
    capacity: u64,
    count: u64,
) -> Option<u64> {
    let mut freed = read.load();
    loop {
        let first = written.load();
        let used = first.wrapping_sub(freed);
        let fits = used.checked_add(count).is_some_and(|sum| sum <= capacity);
        if !fits {
            let now = read.load();
            if now == freed {
                return None;
            }
            freed = now;
            continue;
        }
        if written.replace(first, first.wrapping_add(count)).is_ok() {
            return Some(first);
        }
        freed = read.load();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::AtomicU64;

    fn take(written: u64, read: u64, count: u64) -> (Option<u64>, u64) {
        let (written, read) = (AtomicU64::new(written), AtomicU64::new(read));
        let taken = take_places(&written, &read, 8, count);
        (taken, written.into_inner())
    }

    #[test]
    fn all_or_none() {
        assert_eq!(take(0, 0, 1), (Some(0), 1));
        assert_eq!(take(0, 0, 8), (Some(0), 8));
        assert_eq!(take(0, 0, 9), (None, 0));
        assert_eq!(take(8, 0, 1), (None, 8));
        assert_eq!(take(8, 1, 1), (Some(8), 9));
        assert_eq!(take(8, 1, 2), (None, 8));
        assert_eq!(take(5, 5, 0), (Some(5), 5));
        assert_eq!(take(5, 5, u64::MAX), (None, 5));
    }

    #[test]
    fn numbers_that_no_engine_gives_free_nothing() {
        assert_eq!(take(5, 6, 1), (None, 5));
        assert_eq!(take(5, u64::MAX, 1), (Some(5), 6));
        assert_eq!(take(0, 1, 0), (None, 0));
        assert_eq!(take(u64::MAX, u64::MAX, 3), (Some(u64::MAX), 2));
    }
}
