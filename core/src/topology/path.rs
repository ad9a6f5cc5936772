//! A file path that is written in place.

use alloc::vec::Vec;
use core::ffi::CStr;

use crate::error::Error;
use crate::fallible::{try_extend_from_slice, try_push};

/// Room for what follows the root: `/nodes/4294967295/p2p_links/…/properties`
/// and the cache folders of a CPU.
const ROOM: usize = 128;

/// A path with its final NUL. A walk builds thousands of them that differ in a
/// few digits, so they share one buffer.
#[derive(Debug)]
pub(crate) struct Path {
    bytes: Vec<u8>,
}

/// A length to go back to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mark(usize);

impl Path {
    /// The path of `root`.
    pub(crate) fn new(root: &CStr) -> Result<Path, Error> {
        let root = root.to_bytes_with_nul();
        let mut bytes = Vec::new();
        bytes.try_reserve(root.len().saturating_add(ROOM))?;
        try_extend_from_slice(&mut bytes, root)?;
        Ok(Path { bytes })
    }

    /// Replaces the whole path.
    pub(crate) fn start(&mut self, root: &CStr) -> Result<(), Error> {
        self.bytes.clear();
        try_push(&mut self.bytes, 0)?;
        self.push(root.to_bytes())
    }

    /// Appends text, up to its first NUL.
    pub(crate) fn push(&mut self, text: &[u8]) -> Result<(), Error> {
        self.bytes.try_reserve(text.len())?;
        self.bytes.pop();
        try_extend_from_slice(&mut self.bytes, text)?;
        try_push(&mut self.bytes, 0)
    }

    /// Appends a number in decimal.
    pub(crate) fn push_number(&mut self, number: u32) -> Result<(), Error> {
        let mut digits = [0; 10];
        let mut first = digits.len();
        let mut rest = number;
        for digit in digits.iter_mut().rev() {
            *digit = b'0' | (rest % 10) as u8;
            first = first.wrapping_sub(1);
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        self.push(digits.get(first..).unwrap_or_default())
    }

    /// The place to come back to with [`Path::back_to`].
    pub(crate) fn mark(&self) -> Mark {
        Mark(self.bytes.len().saturating_sub(1))
    }

    /// Removes what was appended since the mark.
    pub(crate) fn back_to(&mut self, mark: Mark) {
        if let Some(end) = self.bytes.get_mut(mark.0) {
            *end = 0;
            self.bytes.truncate(mark.0.saturating_add(1));
        }
    }

    /// The path.
    pub(crate) fn as_c_str(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.bytes).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::Path;

    #[test]
    fn folders_and_numbers() {
        let mut path = Path::new(c"/topology").unwrap();
        assert_eq!(path.as_c_str(), c"/topology");
        path.push(b"/nodes/").unwrap();
        let node = path.mark();
        for (number, expected) in [
            (0, c"/topology/nodes/0/gpu_id"),
            (10, c"/topology/nodes/10/gpu_id"),
            (u32::MAX, c"/topology/nodes/4294967295/gpu_id"),
            (7, c"/topology/nodes/7/gpu_id"),
        ] {
            path.back_to(node);
            path.push_number(number).unwrap();
            path.push(b"/gpu_id").unwrap();
            assert_eq!(path.as_c_str(), expected);
        }
        path.start(c"/proc/cpuinfo").unwrap();
        assert_eq!(path.as_c_str(), c"/proc/cpuinfo");
    }

    #[test]
    fn longer_than_its_room() {
        let mut path = Path::new(c"").unwrap();
        for _ in 0..100 {
            path.push(b"/folder").unwrap();
        }
        assert_eq!(path.as_c_str().to_bytes().len(), 700);
    }
}
