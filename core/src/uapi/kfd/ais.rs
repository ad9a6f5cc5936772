//! Files to and from video memory without a detour (AIS). Only the out-of-tree
//! driver (DKMS) has it; others answer ENOTTY.

use zerocopy::transmute;

use crate::uapi::scalar::open_enum;
use crate::uapi::{block, record};

open_enum! {
    /// Which way an [`AisOp`] goes.
    pub struct AisOperation: u32 {
        /// From the file to memory.
        const READ = 1;
        /// From memory to the file.
        const WRITE = 2;
    }
}

block! {
    /// Reads a file into a buffer or writes one from it. The answer is written
    /// over the question, see [`AisOp::answer`].
    ///
    /// Sent again after EINTR it would be the driver's answer that is sent, so
    /// EINTR is an answer to the caller.
    pub struct AisOp: ReadWrite b'K' 0x87 "AIS_OP", 40 bytes, Never {
        /// The buffer.
        pub handle: u64,
        /// Bytes from its start.
        pub handle_offset: u64,
        /// Bytes from the start of the file.
        pub file_offset: i64,
        /// Bytes to copy.
        pub size: u64,
        /// Which way.
        pub op: AisOperation,
        /// The file's descriptor.
        pub fd: i32,
    }
}

record! {
    /// What the driver answers to an [`AisOp`].
    pub struct AisAnswer: "kfd_ais_out_args", 16 bytes {
        /// Bytes copied.
        pub size_copied: u64,
        /// 0 or a negative errno.
        pub status: i32,
        /// Zero.
        pub pad: i32,
    }
}

impl AisOp {
    /// The block as the driver's answer.
    #[must_use]
    pub fn answer(&self) -> AisAnswer {
        transmute!([self.handle, self.handle_offset])
    }

    /// Puts an answer in place of the question, as the driver does.
    pub fn set_answer(&mut self, answer: AisAnswer) {
        [self.handle, self.handle_offset] = transmute!(answer);
    }
}

#[cfg(test)]
mod tests {
    use super::{AisAnswer, AisOp};

    #[test]
    fn the_answer_is_over_the_question() {
        let mut block = AisOp { handle: 1, size: 4096, ..Default::default() };
        let answer = AisAnswer { size_copied: 512, status: -5, pad: 0 };
        block.set_answer(answer);
        assert_eq!((block.answer(), block.size), (answer, 4096));
    }
}
