//! A libdrm_amdgpu in the process, if the program brings one.
//!
//! Its functions are weak symbols: where the program is linked with libdrm_amdgpu the
//! linker, or the loader of the shared library, puts their addresses into a table, and
//! zeros otherwise. Nothing is ever loaded by us; a libdrm that the program loads later
//! by dlopen(3) is not seen.
//!
//! With `amdgpu_device_initialize2` (libdrm 2.4.121) each GPU gets a private device on our
//! own file, of which libdrm keeps another number. The older `amdgpu_device_initialize`
//! hands out the device that somebody in the process has already, on that one's file: so
//! its file is bound, by a number of our own.
//!
//! A device lives as long as the process, as the binding does. A forked child has none
//! of its parent's: their files are bound to the parent's process object.
//!
//! # Safety
//! The table's entries are functions of libdrm with the types of `amdgpu.h`, or zero;
//! only entries that are not are called. Devices come from libdrm and are given back to
//! it alone. Offers are made by one thread at a time (the acquire of the primary context
//! has a lock); entries are read by any.

use core::ffi::{c_int, c_void};
use core::mem::transmute;
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use hsakmt::Libdrm;
use hsakmt_core::context::RenderFiles;
use hsakmt_core::seam::{DeviceToken, Driver, Os};
use hsakmt_linux_shim::Linux;

core::arch::global_asm!(
    ".weak amdgpu_device_initialize2",
    ".weak amdgpu_device_initialize",
    ".weak amdgpu_device_deinitialize",
    ".weak amdgpu_device_get_fd",
    ".pushsection .data.rel.ro.hsakmt_libdrm,\"aw\",@progbits",
    ".balign 8",
    ".globl hsakmt_libdrm",
    ".hidden hsakmt_libdrm",
    "hsakmt_libdrm:",
    ".8byte amdgpu_device_initialize2",
    ".8byte amdgpu_device_initialize",
    ".8byte amdgpu_device_deinitialize",
    ".8byte amdgpu_device_get_fd",
    ".popsection",
);

unsafe extern "C" {
    /// Addresses of the functions, in the order above.
    safe static hsakmt_libdrm: [usize; 4];
}

type Initialize2 = unsafe extern "C" fn(c_int, bool, *mut u32, *mut u32, *mut *mut c_void) -> c_int;
type Initialize = unsafe extern "C" fn(c_int, *mut u32, *mut u32, *mut *mut c_void) -> c_int;
type OfDevice = unsafe extern "C" fn(*mut c_void) -> c_int;

fn initialize2() -> Option<Initialize2> {
    // SAFETY: a function of this type, or zero, which is `None`.
    unsafe { transmute::<usize, Option<Initialize2>>(hsakmt_libdrm[0]) }
}

fn initialize() -> Option<Initialize> {
    // SAFETY: as above.
    unsafe { transmute::<usize, Option<Initialize>>(hsakmt_libdrm[1]) }
}

fn deinitialize() -> Option<OfDevice> {
    // SAFETY: as above.
    unsafe { transmute::<usize, Option<OfDevice>>(hsakmt_libdrm[2]) }
}

fn get_fd() -> Option<OfDevice> {
    // SAFETY: as above.
    unsafe { transmute::<usize, Option<OfDevice>>(hsakmt_libdrm[3]) }
}

/// The kernel's limit of GPUs in one process object (`kfd_priv.h`, MAX_GPU_INSTANCE).
const GPUS_MAX: usize = 64;

/// The device of one render node.
#[derive(Debug)]
struct Entry {
    /// The process that it was made in; 0 for none. Stored last.
    process: AtomicU32,
    render_minor: AtomicU32,
    device: AtomicPtr<c_void>,
}

/// The libdrm of the process.
#[derive(Debug)]
pub(crate) struct Weak {
    entries: [Entry; GPUS_MAX],
}

impl Weak {
    pub(crate) const fn new() -> Weak {
        Weak {
            entries: [const {
                Entry {
                    process: AtomicU32::new(0),
                    render_minor: AtomicU32::new(0),
                    device: AtomicPtr::new(ptr::null_mut()),
                }
            }; GPUS_MAX],
        }
    }

    /// Whether the program has brought one.
    pub(crate) fn is_there(&self) -> bool {
        get_fd().is_some() && (initialize2().is_some() || initialize().is_some())
    }

    fn of_process(&self) -> impl Iterator<Item = &Entry> {
        let process = Linux.process_id();
        let mut entries = self.entries.iter();
        core::iter::from_fn(move || {
            entries.find(|entry| entry.process.load(Ordering::Acquire) == process)
        })
    }

    fn find(&self, render_minor: u32) -> Option<&Entry> {
        self.of_process().find(|entry| entry.render_minor.load(Ordering::Relaxed) == render_minor)
    }

    fn of_device(&self, device: *mut c_void) -> Option<&Entry> {
        self.of_process().find(|entry| entry.device.load(Ordering::Relaxed) == device)
    }

    /// Keeps a device; whether there was room.
    fn keep(&self, render_minor: u32, device: *mut c_void) -> bool {
        let process = Linux.process_id();
        let free = |entry: &&Entry| entry.process.load(Ordering::Relaxed) != process;
        let Some(entry) = self.entries.iter().find(free) else { return false };
        entry.process.store(0, Ordering::Relaxed);
        entry.render_minor.store(render_minor, Ordering::Relaxed);
        entry.device.store(device, Ordering::Relaxed);
        entry.process.store(process, Ordering::Release);
        true
    }
}

fn give_back(device: *mut c_void) {
    if let Some(deinitialize) = deinitialize() {
        // SAFETY: a device of libdrm's that nobody has any more.
        let _ = unsafe { deinitialize(device) };
    }
}

impl RenderFiles for Weak {
    fn offer(&self, render_minor: u32, opened: DeviceToken) -> Option<DeviceToken> {
        // Of an acquire that failed afterwards.
        self.refused(render_minor);
        let fd = c_int::try_from(opened.0).ok()?;
        let (mut major, mut minor, mut device) = (0, 0, ptr::null_mut());
        let private = initialize2();
        let answer = match (private, initialize()) {
            // SAFETY: the types of `amdgpu.h`; the places live during the call.
            (Some(initialize2), _) => unsafe {
                initialize2(fd, false, &mut major, &mut minor, &mut device)
            },
            // SAFETY: as above.
            (None, Some(initialize)) => unsafe {
                initialize(fd, &mut major, &mut minor, &mut device)
            },
            (None, None) => return None,
        };
        if answer != 0 || device.is_null() {
            return None;
        }
        let theirs = match private {
            Some(_) => Ok(None),
            // SAFETY: a device of libdrm's.
            None => match get_fd().map(|get_fd| unsafe { get_fd(device) }) {
                Some(fd) => Linux.duplicate(fd).map(Some).map_err(drop),
                None => Err(()),
            },
        };
        match theirs {
            Ok(token) if self.keep(render_minor, device) => token,
            Ok(Some(token)) => {
                drop(Driver::adopt(&Linux, token));
                give_back(device);
                None
            }
            Ok(None) | Err(()) => {
                give_back(device);
                None
            }
        }
    }

    fn refused(&self, render_minor: u32) {
        if let Some(entry) = self.find(render_minor) {
            entry.process.store(0, Ordering::Relaxed);
            give_back(entry.device.swap(ptr::null_mut(), Ordering::Relaxed));
        }
    }
}

impl Libdrm for Weak {
    fn render_files(&self) -> &dyn RenderFiles {
        self
    }

    fn device(&self, render_minor: u32) -> Option<NonNull<c_void>> {
        NonNull::new(self.find(render_minor)?.device.load(Ordering::Relaxed))
    }

    fn file_of(&self, device: *mut c_void) -> Option<i32> {
        let get_fd = get_fd()?;
        self.of_device(device)?;
        // SAFETY: a device of libdrm's, which lives as long as the process.
        Some(unsafe { get_fd(device) }).filter(|fd| *fd >= 0)
    }

    fn render_minor(&self, device: *mut c_void) -> Option<u32> {
        self.of_device(device).map(|entry| entry.render_minor.load(Ordering::Relaxed))
    }
}
