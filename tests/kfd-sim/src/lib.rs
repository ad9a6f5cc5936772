//! A simulated machine with AMD GPUs, as strict as the kernel.
//!
//! Tests run the library against it in place of Linux: [`SimPlatform`]
//! implements the library's seams `Os` and `Driver`.
//!
//! ```
//! use kfd_sim::{AddressesOnly, Machine, Profile};
//! use hsakmt_core::seam::{DeviceNode, Driver};
//!
//! let machine = Machine::new(&Profile::parse("mi300x:gpus=2")?);
//! let process = machine.spawn(AddressesOnly::new());
//! let kfd = process.open(DeviceNode::Kfd).unwrap();
//! assert_eq!(process.process().descriptors(), [(3, Some(DeviceNode::Kfd))]);
//! drop(kfd);
//! machine.assert_no_violations();
//! # Ok::<(), kfd_sim::ProfileError>(())
//! ```
//!
//! # What it is
//! A [`Machine`] is hardware (a [`Profile`]'s topology) and a kernel; it has
//! processes, each with descriptors, an address space and, once `/dev/kfd` was
//! opened, a process object. The rules are those of the facts folder's
//! `kernel-rules` and `kernel-truth`, which were read from the driver's source
//! and measured on the real driver; every file here names the section it
//! models. It is a model of the kernel, not of the library: it has its own
//! table of requests and its own offsets.
//!
//! # Strictness
//! The simulator answers as the kernel does, errno for errno. What the kernel
//! would let pass and a library must never do is noted as a [`Violation`], and
//! so is a request that the kernel has and the simulator does not model yet
//! (it answers ENOTTY). Tests end with [`Machine::assert_no_violations`] and
//! compare [`Machine::leftovers`] with a baseline.
//!
//! # Memory of the process
//! The driver looks at the memory of the process for user pages and SVM. The
//! simulator knows what was mapped through the platform and takes the rest for
//! memory of the host, unless [`Process::set_memory_is_complete`] says that there
//! is none. Changes of mappings reach the driver: SVM ranges go with an
//! unmapping, and what a GPU has mapped is evicted, which [`Process::evictions`]
//! counts.
//!
//! # Contents
//! With [`Machine::set_host_memory`] all CPU mappings of a buffer, in any process and
//! context, and the accesses of GPUs ([`GpuView::read`], [`GpuView::write`]) have the
//! same contents. Without it (a host that only hands out addresses) each CPU mapping
//! has its own, or none.
//!
//! With [`Machine::set_host_data_path`] what the CPU stores to video memory reaches GPUs
//! only by the flushes that real hardware needs, and a GPU's access that comes before
//! them is [`Rule::HostWriteNotFlushed`].
//!
//! # GPU address spaces
//! [`Process::gpu`] shows what a GPU sees, and lets it access an address:
//! [`GpuView`].
//!
//! # Events
//! Events are set by requests and by what [`Process`] lets GPUs and the system do
//! (`gpu_events`). A wait sleeps on the host's futex without the machine's lock;
//! [`SimPlatform::advance`] is for a platform that has locks of its own.
//!
//! # Broken machines
//! `fault=NAME` in a profile, once or more, or [`Machine::set_defect`] breaks
//! something of the kernel or of the last GPU. The names:
//!
//! | name | what is broken |
//! |---|---|
//! | `no-permission` | every open of a device is EACCES |
//! | `vm-busy` | ACQUIRE_VM is EBUSY |
//! | `vram-short` | three quarters of the VRAM cannot be had |
//! | `map-partial` | MAP stops with ENOMEM before the GPU, and n_success is short |
//! | `link-missing` | no links with other GPUs in sysfs, and no peer mappings |
//! | `events-exhausted` | there are slots for seven events |
//! | `cwsr-size` | sysfs tells another save area than CREATE_QUEUE wants |
//! | `wrong-data` | copies change a bit of their last byte |
//! | `stuck-engine` | copy engine 0 never progresses |
//! | `lost-interrupt` | packets are executed, their interrupts lost |
//! | `memory-fault` | copies fault at their destination |
//! | `doorbell-dead` | doorbells reach nobody |
//! | `reset-midway` | the GPU is reset after six packets |
//! | `slow-copy` | copies take a second for 16 MiB |
//!
//! # Engines
//! Rings that have contents are executed: AQL barriers and buffers of PM4 packets, the
//! PM4 packets of compute queues and the packets of copy engines, as each generation
//! encodes them. There is no thread: engines go on when the program of their queues
//! comes by ([`SimPlatform::run_engines`]: barriers, clocks, sleeps, waits for events)
//! or when a test says so ([`Machine::run_engines`]). Their interrupts set events,
//! their faults are memory events, an eviction or a reset stops them. Kernels of
//! compute units are not executed: a dispatch is noted as [`Rule::NotSimulated`].
//!
//! # Layers
//! `platform` (the seams) calls `device` (open, ioctl, mmap up to the driver),
//! which calls `kfd` and `drm`; files come from `sysfs`. `engines` reach memory through
//! `gpu_port`, as [`GpuView`] does. All of them work on
//! one `State` behind one lock, which is never held across a call of the host.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod address_space;
mod cpu_mapping;
mod defect;
mod descriptor;
mod device;
mod dma_buf;
mod drm;
mod engines;
#[cfg(test)]
mod fixture;
mod gpu_events;
mod gpu_memory;
mod gpu_port;
mod gpu_view;
mod gpu_vm;
mod host;
mod host_data_path;
mod host_memory;
mod intervals;
mod kernel;
mod kfd;
mod leftovers;
mod log;
mod machine;
mod platform;
mod process;
mod profile;
mod svm_ranges;
mod sysfs;
mod topology;
mod udmabuf;
mod user_memory;
mod violation;

pub use defect::Defect;
pub use descriptor::{Descriptor, FileId};
pub use gpu_events::EventView;
pub use gpu_view::{GpuView, Seen, Sight, SvmView};
pub use host::AddressesOnly;
pub use host_memory::HostMemory;
pub use kernel::{Kernel, KernelProfile};
pub use kfd::{Fault, MemoryFault};
pub use leftovers::{Held, Leftovers};
pub use log::{Execution, Operation, Record};
pub use machine::{Change, Condition, Machine};
pub use platform::{SimDevice, SimPlatform, Wait};
pub use process::{Pid, Process};
pub use profile::{CapturedTreeError, Profile, ProfileError};
pub use topology::{
    Bank, Cache, Cpu, Gpu, GpuProperties, Link, Node, RenderNumbers, SaveArea, SdmaQueues, Topology,
};
pub use violation::{Rule, Violation};
