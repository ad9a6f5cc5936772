//! Performance counters, streaming performance monitors, sampling of program
//! counters.
//!
//! Two requests are named PROFILER: number 0x28 in drivers from 1.23 on, and
//! 0x86 with a larger block in the out-of-tree driver (DKMS) before. Which one
//! to send is [`crate::uapi::gate::profiler`]'s to say.

use crate::uapi::scalar::{flags, open_enum};
use crate::uapi::{block, record};

/// The version a PROFILER answers today.
pub const PROFILER_VERSION_NUM: u32 = 1;

open_enum! {
    /// What a PROFILER request does.
    pub struct ProfilerOp: u32 {
        /// Locks a GPU's performance counters.
        const PMC = 0;
        /// Samples program counters; DKMS only.
        const PC_SAMPLE = 1;
        /// Answers the version.
        const VERSION = 2;
        /// Switches the power and thermal limiter; 0x28 only.
        const PTL_CONTROL = 3;
    }
}

block! {
    /// Locks the performance counters of a GPU for this process, or gives them
    /// back; they come back by themselves when the process object ends.
    ///
    /// EPERM: neither CAP_PERFMON nor CAP_SYS_ADMIN. EINVAL: unknown GPU, not
    /// locked. EALREADY: locked by this process. EBUSY: by another.
    pub struct ProfilerPmc: ReadWrite b'K' 0x28 "PROFILER_PMC", 16 bytes, Eintr {
        /// Always [`ProfilerOp::PMC`].
        pub op: ProfilerOp = ProfilerOp::PMC,
        /// The GPU.
        pub gpu_id: u32,
        /// 1 locks, 0 gives back.
        pub lock: u32,
        /// 1: the counters of all queues run.
        pub perfcount_enable: u32,
    }
}

block! {
    /// The version of the profiler interface.
    pub struct ProfilerVersion: ReadWrite b'K' 0x28 "PROFILER_VERSION", 16 bytes, Eintr {
        /// Always [`ProfilerOp::VERSION`].
        pub op: ProfilerOp = ProfilerOp::VERSION,
        /// Answer: [`PROFILER_VERSION_NUM`] or later.
        pub version: u32,
        /// Zero.
        pub reserved: [u32; 2],
    }
}

block! {
    /// Switches the power and thermal limiter of a GPU, which disturbs
    /// measurements.
    ///
    /// EINVAL: unknown GPU. EOPNOTSUPP.
    pub struct ProfilerPtlControl: ReadWrite b'K' 0x28 "PROFILER_PTL_CONTROL", 16 bytes, Eintr {
        /// Always [`ProfilerOp::PTL_CONTROL`].
        pub op: ProfilerOp = ProfilerOp::PTL_CONTROL,
        /// The GPU.
        pub gpu_id: u32,
        /// 1 on, 0 off.
        pub enable: u32,
        /// Zero.
        pub reserved: u32,
    }
}

block! {
    /// [`ProfilerPmc`] of the out-of-tree driver.
    pub struct DkmsProfilerPmc: ReadWrite b'K' 0x86 "PROFILER_PMC", 40 bytes, Eintr {
        /// Always [`ProfilerOp::PMC`].
        pub op: ProfilerOp = ProfilerOp::PMC,
        /// Zero.
        pub reserved: u32,
        /// The GPU.
        pub gpu_id: u32,
        /// 1 locks, 0 gives back.
        pub lock: u32,
        /// 1: the counters of all queues run.
        pub perfcount_enable: u32,
        /// Zero.
        pub reserved1: [u32; 5],
    }
}

block! {
    /// [`PcSample`] within the profiler request of the out-of-tree driver.
    pub struct DkmsProfilerPcSample: ReadWrite b'K' 0x86 "PROFILER_PC_SAMPLE", 40 bytes, Eintr {
        /// Always [`ProfilerOp::PC_SAMPLE`].
        pub profiler_op: ProfilerOp = ProfilerOp::PC_SAMPLE,
        /// Zero.
        pub reserved: u32,
        /// An array of [`PcSampleInfo`].
        pub sample_info_ptr: u64 => InOut,
        /// Elements in it; answer: elements there are.
        pub num_sample_info: u32,
        /// What to do.
        pub op: PcSampleOp,
        /// The GPU.
        pub gpu_id: u32,
        /// The session.
        pub trace_id: u32,
        /// How to ask.
        pub flags: PcSampleFlags,
        /// Zero.
        pub reserved1: u32,
    }
}

block! {
    /// [`ProfilerVersion`] of the out-of-tree driver.
    pub struct DkmsProfilerVersion: ReadWrite b'K' 0x86 "PROFILER_VERSION", 40 bytes, Eintr {
        /// Always [`ProfilerOp::VERSION`].
        pub op: ProfilerOp = ProfilerOp::VERSION,
        /// Zero.
        pub reserved: u32,
        /// Answer: [`PROFILER_VERSION_NUM`] or later.
        pub version: u32,
        /// Zero.
        pub reserved1: [u32; 7],
    }
}

open_enum! {
    /// What an [`RlcSpm`] does.
    pub struct SpmOp: u32 {
        /// Takes the monitors for this process.
        const ACQUIRE = 0;
        /// Gives them back.
        const RELEASE = 1;
        /// Hands the next buffer in, and the last one back.
        const SET_DEST_BUF = 2;
    }
}

block! {
    /// Streaming performance monitors (DKMS only).
    pub struct RlcSpm: ReadWrite b'K' 0x84 "RLC_SPM", 32 bytes, Eintr {
        /// Address of the next buffer, or 0. Not an array: the driver keeps it
        /// and writes to it until the next SET_DEST_BUF or RELEASE.
        pub dest_buf: u64,
        /// Bytes of it.
        pub buf_size: u32,
        /// What to do.
        pub op: SpmOp,
        /// Milliseconds to wait for the last buffer; answer: those left.
        pub timeout: u32,
        /// The GPU.
        pub gpu_id: u32,
        /// Answer: bytes in the last buffer.
        pub bytes_copied: u32,
        /// Answer: 1 when data was lost.
        pub has_data_loss: u32,
    }
}

record! {
    /// What stands at the start of a buffer of [`RlcSpm`].
    pub struct SpmBufferHeader: "kfd_ioctl_spm_buffer_header", 32 bytes {
        /// Of this header.
        pub version: u32,
        /// Bytes that follow.
        pub bytes_copied: u32,
        /// 1 when data was lost.
        pub has_data_loss: u32,
        /// Zero.
        pub reserved: [u32; 5],
    }
}

open_enum! {
    /// What a [`PcSample`] does.
    pub struct PcSampleOp: u32 {
        /// Answers the methods there are.
        const QUERY_CAPABILITIES = 0;
        /// Makes a session.
        const CREATE = 1;
        /// Ends it.
        const DESTROY = 2;
        /// Lets it sample.
        const START = 3;
        /// Lets it rest.
        const STOP = 4;
    }
}

flags! {
    /// How a [`PcSample`] asks.
    pub struct PcSampleFlags: u32 {
        /// QUERY_CAPABILITIES: all there are, whether in use or not.
        const QUERY_TYPE_FULL = 1 << 0;
    }
}

open_enum! {
    /// How program counters are sampled.
    pub struct PcSampleMethod: u32 {
        /// By traps the host asks for.
        const HOSTTRAP = 1;
        /// By the hardware.
        const STOCHASTIC = 2;
    }
}

open_enum! {
    /// The unit of an interval.
    pub struct PcSampleType: u32 {
        /// Microseconds.
        const TIME_US = 0;
        /// Clock cycles.
        const CLOCK_CYCLES = 1;
        /// Instructions.
        const INSTRUCTIONS = 2;
    }
}

flags! {
    /// What is special about a method.
    pub struct PcSampleInfoFlags: u64 {
        /// The interval is a power of two.
        const POWER_OF_2 = 1 << 0;
    }
}

record! {
    /// A method of sampling.
    pub struct PcSampleInfo: "kfd_pc_sample_info", 40 bytes {
        /// Between samples; 0 in the answer when none is in use.
        pub interval: u64,
        /// The shortest.
        pub interval_min: u64,
        /// The longest.
        pub interval_max: u64,
        /// What is special.
        pub flags: PcSampleInfoFlags,
        /// How.
        pub method: PcSampleMethod,
        /// The unit of the intervals.
        pub r#type: PcSampleType,
    }
}

block! {
    /// Samples program counters (DKMS only).
    pub struct PcSample: ReadWrite b'K' 0x85 "PC_SAMPLE", 32 bytes, Eintr {
        /// An array of [`PcSampleInfo`]: an answer to QUERY_CAPABILITIES, for
        /// CREATE the one chosen.
        pub sample_info_ptr: u64 => InOut,
        /// Elements in it; answer: elements there are.
        pub num_sample_info: u32,
        /// What to do.
        pub op: PcSampleOp,
        /// The GPU.
        pub gpu_id: u32,
        /// The session; an answer to CREATE.
        pub trace_id: u32,
        /// How to ask.
        pub flags: PcSampleFlags,
        /// Zero.
        pub reserved: u32,
    }
}
