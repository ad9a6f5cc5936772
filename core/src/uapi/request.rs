//! Request numbers as `asm-generic/ioctl.h` builds them.

use core::fmt;

/// Which way the kernel's header says a block travels. The KFD dispatcher
/// itself ignores it (kfd_chardev.c).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// No argument.
    None,
    /// From user space to the driver.
    Write,
    /// From the driver to user space.
    Read,
    /// Both.
    ReadWrite,
}

/// A request number: direction, size of the block, driver's letter, number.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Request(pub u32);

impl Request {
    /// The size field has 14 bits.
    pub const SIZE_MAX: usize = (1 << 14) - 1;

    /// Builds a request number.
    ///
    /// # Panics
    /// At compile time, when `size` does not fit into 14 bits.
    #[must_use]
    pub const fn new(direction: Direction, letter: u8, number: u8, size: usize) -> Request {
        assert!(size <= Self::SIZE_MAX, "the size field of a request has 14 bits");
        let direction = match direction {
            Direction::None => 0,
            Direction::Write => 1,
            Direction::Read => 2,
            Direction::ReadWrite => 3,
        };
        Request(direction << 30 | (size as u32) << 16 | (letter as u32) << 8 | number as u32)
    }

    /// The same request for a block of another size; `None` past 14 bits.
    #[must_use]
    pub const fn with_size(self, size: usize) -> Option<Request> {
        if size > Self::SIZE_MAX {
            return None;
        }
        Some(Request(self.0 & !((Self::SIZE_MAX as u32) << 16) | (size as u32) << 16))
    }

    /// The size of the block, in bytes.
    #[must_use]
    pub const fn size(self) -> usize {
        (self.0 >> 16) as usize & Self::SIZE_MAX
    }

    /// The driver's letter: `K` is KFD, `d` is DRM.
    #[must_use]
    pub const fn letter(self) -> u8 {
        (self.0 >> 8) as u8
    }

    /// The number within the driver.
    #[must_use]
    pub const fn number(self) -> u8 {
        self.0 as u8
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#010x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::{Direction, Request};

    #[test]
    fn parts_come_back() {
        let request = Request::new(Direction::ReadWrite, b'K', 0x16, 40);
        assert_eq!(request, Request(0xc028_4b16));
        assert_eq!((request.size(), request.letter(), request.number()), (40, b'K', 0x16));
        assert_eq!(request.with_size(24 + 8), Some(Request(0xc020_4b16)));
        assert_eq!(request.with_size(1 << 14), None);
    }
}
