//! What C passes by value, Rust receives, and the other way round.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use hsakmt::types::*;
use hsakmt_abi_tests::c::COMPILERS;

unsafe extern "C" {
    fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
}

const RTLD_NOW: c_int = 2;

/// Each function tells what it received, then passes something else to a function of Rust.
const SOURCE: &str = "
#include \"hsakmtctx.h\"

HSAuint64 take_mem_flags(HsaMemFlags flags, HSAuint64 (*back)(HsaMemFlags))
{
    HSAuint64 received = flags.ui32.HostAccess | (HSAuint64)flags.ui32.PageSize << 8;
    flags.Value = 0;
    flags.ui32.CoarseGrain = 1;
    return received | back(flags) << 32;
}

HSAuint64 take_register_flags(HSA_REGISTER_MEM_FLAGS flags,
                              HSAuint64 (*back)(HSA_REGISTER_MEM_FLAGS))
{
    HSAuint64 received = flags.ui32.requiresVAddr;
    flags.ui32.requiresVAddr = 0;
    flags.ui32.kmtHandle = 1;
    return received | back(flags) << 32;
}

HSAuint64 take_semaphore(HSA_EXTERNAL_SEMAPHORE_HANDLE handle,
                         HSAuint64 (*back)(HSA_EXTERNAL_SEMAPHORE_HANDLE))
{
    HSA_EXTERNAL_SEMAPHORE_HANDLE other = {handle.handle + 1};
    return back(other);
}

HSA_QUEUE_PRIORITY take_priority(HSA_QUEUE_PRIORITY priority,
                                 HSA_QUEUE_PRIORITY (*back)(HSA_QUEUE_PRIORITY))
{
    if (priority != HSA_QUEUE_PRIORITY_MINIMUM)
        return HSA_QUEUE_PRIORITY_SIZE;
    return back(HSA_QUEUE_PRIORITY_LOW);
}

HSAKMT_STATUS take_mixed(bool yes, HSA_QUEUE_TYPE type, HsaAisFlags flags, HsaMemoryMapFlags access,
                         HSAKMT_STATUS (*back)(bool, HSA_QUEUE_TYPE, HsaMemFlags, HSAuint64))
{
    HsaMemFlags memory = {{{0}}};
    if (!yes || type != HSA_QUEUE_TYPE_SIZE || flags != HSA_AIS_WRITE
        || access != HSA_MEMORY_ACCESS_RW)
        return HSAKMT_STATUS_ERROR;
    memory.ui32.QueueObject = 1;
    return back(false, HSA_QUEUE_DMA_AQL_XGMI, memory, 0x123456789abcdef0ULL);
}
";

/// What the generations before 2026 pass where that passes `HsaMemFlags`.
const SOURCE_OF_2025: &str = "
#include \"hsakmt.h\"

HSAuint64 take_map_flags(HsaMemMapFlags flags, HSAuint64 (*back)(HsaMemMapFlags))
{
    HSAuint64 received = flags.ui32.HostAccess | (HSAuint64)flags.ui32.PageSize << 8;
    flags.Value = 0;
    flags.ui32.Probe = 1;
    return received | back(flags) << 32;
}
";

fn library(generation: u32, source: &str) -> *mut c_void {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let name = format!("by-value-{generation}");
    let path = folder.join(format!("lib{name}.so"));
    let compiler = COMPILERS[0];
    let mut command = compiler.strict(generation);
    command.args(["-shared", "-fPIC", "-o"]).arg(&path);
    compiler.run(command, folder, &name, source).unwrap_or_else(|e| panic!("{e}"));
    let path = CString::new(path.as_os_str().as_bytes()).unwrap();
    // SAFETY: a library without constructors, made above.
    let library = unsafe { dlopen(path.as_ptr(), RTLD_NOW) };
    assert!(!library.is_null(), "the library does not load");
    library
}

/// The function of the library with this name.
///
/// # Safety
///
/// `F` is a pointer to a function of the signature that `SOURCE` gives it.
unsafe fn function<F: Copy>(library: *mut c_void, name: &CStr) -> F {
    // SAFETY: the library is loaded, and stays so.
    let address = unsafe { dlsym(library, name.as_ptr()) };
    assert!(!address.is_null(), "no {name:?}");
    assert_eq!(size_of::<F>(), size_of_val(&address));
    // SAFETY: not NULL, and a function of this type by the caller's promise.
    unsafe { std::mem::transmute_copy(&address) }
}

#[test]
fn flags_handles_and_enumerations_pass_unharmed() {
    let library = library(2026, SOURCE);

    extern "C" fn mem_flags(flags: HsaMemFlags) -> u64 {
        flags.Value.into()
    }
    type TakeMemFlags = extern "C" fn(HsaMemFlags, extern "C" fn(HsaMemFlags) -> u64) -> u64;
    // SAFETY: the signature is that of the source.
    let take: TakeMemFlags = unsafe { function(library, c"take_mem_flags") };
    let flags = HsaMemFlags::default()
        .with(HsaMemFlags::HOST_ACCESS, 1)
        .with(HsaMemFlags::PAGE_SIZE, HSA_PAGE_SIZE::MIB_2.0);
    let back = HsaMemFlags::default().with(HsaMemFlags::COARSE_GRAIN, 1);
    assert_eq!(take(flags, mem_flags), 1 | 2 << 8 | u64::from(back.Value) << 32);

    extern "C" fn register_flags(flags: HSA_REGISTER_MEM_FLAGS) -> u64 {
        flags.Value.into()
    }
    type Register = HSA_REGISTER_MEM_FLAGS;
    type TakeRegister = extern "C" fn(Register, extern "C" fn(Register) -> u64) -> u64;
    // SAFETY: the signature is that of the source.
    let take: TakeRegister = unsafe { function(library, c"take_register_flags") };
    let flags = Register::default().with(Register::REQUIRES_VADDR, 1);
    assert_eq!(take(flags, register_flags), 1 | 2 << 32);

    extern "C" fn semaphore(handle: HSA_EXTERNAL_SEMAPHORE_HANDLE) -> u64 {
        handle.handle
    }
    type Semaphore = HSA_EXTERNAL_SEMAPHORE_HANDLE;
    type TakeSemaphore = extern "C" fn(Semaphore, extern "C" fn(Semaphore) -> u64) -> u64;
    // SAFETY: the signature is that of the source.
    let take: TakeSemaphore = unsafe { function(library, c"take_semaphore") };
    let handle = Semaphore { handle: 0xfedc_ba98_7654_3210 };
    assert_eq!(take(handle, semaphore), 0xfedc_ba98_7654_3211);

    extern "C" fn priority(priority: HSA_QUEUE_PRIORITY) -> HSA_QUEUE_PRIORITY {
        assert_eq!(priority, HSA_QUEUE_PRIORITY::LOW);
        HSA_QUEUE_PRIORITY::BELOW_NORMAL
    }
    type Priority = HSA_QUEUE_PRIORITY;
    type TakePriority = extern "C" fn(Priority, extern "C" fn(Priority) -> Priority) -> Priority;
    // SAFETY: the signature is that of the source.
    let take: TakePriority = unsafe { function(library, c"take_priority") };
    assert_eq!(take(Priority::MINIMUM, priority), Priority::BELOW_NORMAL);

    extern "C" fn mixed(
        yes: bool,
        kind: HSA_QUEUE_TYPE,
        flags: HsaMemFlags,
        number: u64,
    ) -> HSAKMT_STATUS {
        assert!(!yes);
        assert_eq!(kind, HSA_QUEUE_TYPE::DMA_AQL_XGMI);
        assert_eq!(flags.Value, 1 << HsaMemFlags::QUEUE_OBJECT.first());
        assert_eq!(number, 0x1234_5678_9abc_def0);
        HSAKMT_STATUS::WAIT_TIMEOUT
    }
    type Mixed = extern "C" fn(bool, HSA_QUEUE_TYPE, HsaMemFlags, u64) -> HSAKMT_STATUS;
    type TakeMixed =
        extern "C" fn(bool, HSA_QUEUE_TYPE, HsaAisFlags, HsaMemoryMapFlags, Mixed) -> HSAKMT_STATUS;
    // SAFETY: the signature is that of the source.
    let take: TakeMixed = unsafe { function(library, c"take_mixed") };
    let status =
        take(true, HSA_QUEUE_TYPE::SIZE, HsaAisFlags::WRITE, HsaMemoryMapFlags::READ_WRITE, mixed);
    assert_eq!(status, HSAKMT_STATUS::WAIT_TIMEOUT);
}

#[test]
fn the_flags_of_a_mapping_pass_unharmed() {
    extern "C" fn map_flags(flags: HsaMemMapFlags) -> u64 {
        flags.Value.into()
    }
    type TakeMapFlags = extern "C" fn(HsaMemMapFlags, extern "C" fn(HsaMemMapFlags) -> u64) -> u64;
    let library = library(2025, SOURCE_OF_2025);
    // SAFETY: the signature is that of the source.
    let take: TakeMapFlags = unsafe { function(library, c"take_map_flags") };
    let flags = HsaMemMapFlags::default()
        .with(HsaMemMapFlags::HOST_ACCESS, 1)
        .with(HsaMemMapFlags::PAGE_SIZE, HSA_PAGE_SIZE::MIB_2.0);
    let back = HsaMemMapFlags::default().with(HsaMemMapFlags::PROBE, 1);
    assert_eq!(take(flags, map_flags), 1 | 2 << 8 | u64::from(back.Value) << 32);
}
