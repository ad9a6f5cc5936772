//! Devices: descriptors, blocks with arrays on real drivers, device memory.
//!
//! # Safety
//!
//! Descriptors are closed and replaced in children only, which have no other
//! threads. Device nodes are made in a mount namespace of the child's own.

use std::ffi::CStr;
use std::os::fd::AsRawFd;

use hsakmt_core::errno::Errno;
use hsakmt_core::seam::{
    Array, ArrayDirection, Call, DeviceNode, DeviceToken, Driver, EndOfFile, MapDevice, Os,
    Placement, Protection,
};
use hsakmt_core::uapi::{ArraySlot, Request};
use hsakmt_linux_shim::Linux;
use hsakmt_linux_shim::fd::OwnedFd;
use hsakmt_shim_tests::child::{self, FINE, forked};
use hsakmt_shim_tests::{not_checked, open_descriptors, system_calls};

fn is_open(fd: i32) -> bool {
    // SAFETY: asks about a number.
    unsafe { libc::fcntl(fd, libc::F_GETFD) != -1 }
}

/// A descriptor of `/dev/null`, the lowest that is free.
fn null() -> i32 {
    // SAFETY: opens a file.
    let fd = unsafe { libc::open(c"/dev/null".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC) };
    assert!(fd >= 0);
    fd
}

/// Runs `work` in a child whose `/dev` has only these character devices, with
/// their major and minor numbers. `false` where that is not allowed.
#[must_use]
fn with_devices(devices: &[(&CStr, u32, u32)], work: impl FnOnce()) -> bool {
    const NOT_ALLOWED: i32 = 77;
    let end = forked(|| {
        // SAFETY: a new mount namespace, in which nothing reaches the outside,
        // and new nodes in a file system of its own.
        unsafe {
            let none = std::ptr::null();
            let slash = c"/".as_ptr();
            if libc::unshare(libc::CLONE_NEWNS) == -1
                || libc::mount(none, slash, none, libc::MS_REC | libc::MS_PRIVATE, none.cast())
                    == -1
                || libc::mount(
                    c"none".as_ptr(),
                    c"/dev".as_ptr(),
                    c"tmpfs".as_ptr(),
                    0,
                    none.cast(),
                ) == -1
                || libc::mkdir(c"/dev/dri".as_ptr(), 0o755) == -1
                || devices.iter().any(|(path, major, minor)| {
                    let device = libc::makedev(*major, *minor);
                    libc::mknod(path.as_ptr(), libc::S_IFCHR | 0o666, device) == -1
                })
            {
                libc::_exit(NOT_ALLOWED);
            }
        }
        work();
    });
    if end == child::End::Exit(NOT_ALLOWED) {
        not_checked("no devices of our own here");
        return false;
    }
    assert_eq!(end, FINE);
    true
}

/// `/dev/null`, `/dev/zero` and `/dev/full` by other names.
const DEVICES: [(&CStr, u32, u32); 4] = [
    (c"/dev/kfd", 1, 3),
    (c"/dev/dri/renderD128", 1, 5),
    (c"/dev/dri/renderD4294967295", 1, 7),
    (c"/dev/udmabuf", 1, 7),
];

#[test]
fn devices_that_are_not_there_are_enoent() {
    if !with_devices(&[], || {
        for node in [DeviceNode::Kfd, DeviceNode::Render(128), DeviceNode::Udmabuf] {
            assert_eq!(Linux.open(node).map(drop), Err(Errno::ENOENT));
        }
    }) && !std::fs::exists("/dev/kfd").unwrap()
    {
        assert_eq!(Linux.open(DeviceNode::Kfd).map(drop), Err(Errno::ENOENT));
    }
}

#[test]
fn devices_open_by_their_names_read_write_and_close_on_exec() {
    let _ = with_devices(&DEVICES, || {
        for (node, path) in [
            (DeviceNode::Kfd, "/dev/kfd"),
            (DeviceNode::Render(128), "/dev/dri/renderD128"),
            (DeviceNode::Render(u32::MAX), "/dev/dri/renderD4294967295"),
            (DeviceNode::Udmabuf, "/dev/udmabuf"),
        ] {
            let device = Linux.open(node).unwrap();
            let fd = device.number();
            assert_eq!(Linux.token(&device), DeviceToken(fd as u32));
            let link = std::fs::read_link(format!("/proc/self/fd/{fd}")).unwrap();
            assert_eq!(link.to_str(), Some(path));
            // SAFETY: asks about a descriptor.
            unsafe {
                assert_eq!(libc::fcntl(fd, libc::F_GETFL) & libc::O_ACCMODE, libc::O_RDWR);
                assert_eq!(libc::fcntl(fd, libc::F_GETFD), libc::FD_CLOEXEC);
            }
            drop(device);
            assert!(!is_open(fd));
        }
        assert_eq!(Linux.open(DeviceNode::Render(5)).map(drop), Err(Errno::ENOENT));
    });
}

#[test]
fn descriptor_zero_is_a_device_like_any_other() {
    let ran = with_devices(&DEVICES, || {
        // SAFETY: the child needs no standard input.
        unsafe { libc::close(0) };
        let device = Linux.open(DeviceNode::Kfd).unwrap();
        assert_eq!(Linux.token(&device), DeviceToken(0));
        assert_eq!(Linux.release(device), DeviceToken(0));
        assert!(is_open(0));
        drop(Linux.adopt(DeviceToken(0)));
        assert!(!is_open(0));

        // And files are read through it.
        let mut into = Vec::new();
        Linux.read_file(c"/proc/version", &mut into, 4096, EndOfFile::EmptyRead).unwrap();
        assert!(into.starts_with(b"Linux"));
        assert!(!is_open(0));
    });
    if !ran {
        let end = forked(|| {
            // SAFETY: the child needs no standard input.
            unsafe { libc::close(0) };
            assert_eq!(null(), 0);
            let device = Linux.adopt(DeviceToken(0));
            assert_eq!(Linux.token(&device), DeviceToken(0));
            drop(device);
            assert!(!is_open(0));
        });
        assert_eq!(end, FINE);
    }
}

#[test]
fn owned_descriptors_have_a_niche_and_close_once() {
    assert_eq!(size_of::<Option<OwnedFd>>(), size_of::<i32>());
    let end = forked(|| {
        let fd = null();
        let device = Linux.adopt(DeviceToken(fd as u32));
        assert_eq!(device.borrow().number(), fd);
        assert_eq!(format!("{device:?}"), format!("fd {fd}"));
        assert_eq!(Linux.release(device), DeviceToken(fd as u32));
        assert!(is_open(fd));
        drop(Some(Linux.adopt(DeviceToken(fd as u32))));
        assert!(!is_open(fd));
    });
    assert_eq!(end, FINE);
}

#[test]
fn numbers_that_no_descriptor_has_are_ebadf() {
    for token in [DeviceToken(u32::MAX), DeviceToken(1 << 31)] {
        let calls = system_calls::numbers_of(|| {
            let device = Linux.adopt(token);
            let mut block = [0u8; 8];
            assert_eq!(execute(&device, 0x541b, &mut block, &[], &mut []), Err(Errno::EBADF));
        });
        if let Some(calls) = calls {
            assert_eq!(calls, [libc::SYS_ioctl], "nothing is closed");
        }
    }
}

#[test]
fn nothing_leaves_a_descriptor_behind() {
    let end = forked(|| {
        let before = open_descriptors();
        let mut into = Vec::new();
        for _ in 0..3 {
            let _ = Linux.open(DeviceNode::Kfd);
            let _ = Linux.open(DeviceNode::Render(1));
            let _ = Linux.read_file(c"/proc/version", &mut into, 10, EndOfFile::EmptyRead);
            let _ = Linux.read_file(c"/proc/version", &mut into, 4096, EndOfFile::EmptyRead);
            let _ = Linux.read_file(c"/proc", &mut into, 4096, EndOfFile::EmptyRead);
            let _ = Linux.list_folder(c"/proc", &mut |_, _| std::ops::ControlFlow::Break(()));
            let _ = Linux.list_folder(c"/sys", &mut |_, _| std::ops::ControlFlow::Continue(()));
        }
        assert_eq!(open_descriptors(), before);
    });
    assert_eq!(end, FINE);
}

fn execute(
    device: &OwnedFd,
    request: u32,
    block: &mut [u8],
    slots: &'static [ArraySlot],
    arrays: &mut [Array<'_>],
) -> Result<u32, Errno> {
    let request = Request(request);
    let mut call = Call { request, name: "TEST", fields: &[], block, slots, arrays };
    Linux.execute(device, &mut call)
}

/// The ends of a pipe, for reading and for writing.
fn pipe() -> (OwnedFd, OwnedFd) {
    let mut ends = [0; 2];
    // SAFETY: writes two numbers.
    assert_eq!(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) }, 0);
    let [reader, writer] = ends.map(|fd| Linux.adopt(DeviceToken(fd as u32)));
    (reader, writer)
}

/// A pipe with these bytes in it; the device is its reading end.
fn pipe_with(bytes: &[u8]) -> (OwnedFd, OwnedFd) {
    let (reader, writer) = pipe();
    // SAFETY: reads the bytes.
    let written = unsafe { libc::write(writer.number(), bytes.as_ptr().cast(), bytes.len()) };
    assert_eq!(written, bytes.len() as isize);
    (reader, writer)
}

#[test]
fn a_block_without_arrays_is_filled() {
    let (device, _writer) = pipe_with(b"seven..");
    let mut block = [0xffu8; 4];
    // FIONREAD: how many bytes can be read.
    assert_eq!(execute(&device, 0x541b, &mut block, &[], &mut []), Ok(0));
    assert_eq!(u32::from_ne_bytes(block), 7);
    // A request that pipes do not have.
    let unknown = if child::emulated() { Errno::ENOSYS } else { Errno::ENOTTY };
    assert_eq!(execute(&device, 0xdead, &mut block, &[], &mut []), Err(unknown));
}

fn socket() -> OwnedFd {
    // SAFETY: makes a socket.
    let fd = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
    assert!(fd >= 0);
    Linux.adopt(DeviceToken(fd as u32))
}

/// `struct ifconf`: a length, 4 bytes of padding, the address of a list.
static INTERFACES: [ArraySlot; 1] =
    [ArraySlot { name: "ifc_buf", pointer_at: 8, direction: ArrayDirection::Out }];

#[test]
fn an_array_is_written_where_it_lies_and_its_address_does_not_stay() {
    const SIOCGIFCONF: u32 = 0x8912;
    const ENTRY: usize = 40;
    let device = socket();
    let mut list = [0u8; 64 * ENTRY];
    let mut block = [0u8; 16];
    block[..4].copy_from_slice(&(list.len() as u32).to_ne_bytes());
    let answer =
        execute(&device, SIOCGIFCONF, &mut block, &INTERFACES, &mut [Array::Out(&mut list)]);
    assert_eq!(answer, Ok(0));
    assert_eq!(block[8..], [0; 8]);
    let length = u32::from_ne_bytes(block[..4].try_into().unwrap()) as usize;
    assert_eq!(length % ENTRY, 0);
    for entry in list[..length].chunks_exact(ENTRY) {
        assert_ne!(entry[0], 0, "an interface has a name");
    }
    assert!(list[length..].iter().all(|&byte| byte == 0));

    // Without an array the kernel sees a null pointer, and tells the length.
    for absent in [Array::Absent, Array::Out(&mut [])] {
        let mut block = [0xffu8; 16];
        let answer = execute(&device, SIOCGIFCONF, &mut block, &INTERFACES, &mut [absent]);
        assert_eq!(answer, Ok(0));
        assert_eq!(u32::from_ne_bytes(block[..4].try_into().unwrap()) as usize, length);
        assert_eq!(block[8..], [0; 8]);
    }
}

/// `struct ifreq` as SIOCETHTOOL takes it: a name of 16 bytes, an address.
static ETHTOOL: [ArraySlot; 1] =
    [ArraySlot { name: "ifr_data", pointer_at: 16, direction: ArrayDirection::InOut }];

#[test]
fn an_array_is_read_and_written() {
    const SIOCETHTOOL: u32 = 0x8946;
    const ETHTOOL_GLINK: u32 = 10;
    let device = socket();
    let mut value = [0u8; 8];
    value[..4].copy_from_slice(&ETHTOOL_GLINK.to_ne_bytes());
    value[4..].copy_from_slice(&[0xff; 4]);
    let mut block = [0u8; 40];
    block[..2].copy_from_slice(b"lo");
    let answer =
        execute(&device, SIOCETHTOOL, &mut block, &ETHTOOL, &mut [Array::InOut(&mut value)]);
    if let Err(errno @ (Errno::ENOTTY | Errno::ENODEV | Errno::ENOSYS)) = answer {
        not_checked(&format!("ethtool answers {errno} for the loopback interface"));
        return;
    }
    assert_eq!(answer, Ok(0));
    assert!(u32::from_ne_bytes(value[4..].try_into().unwrap()) <= 1, "the link is up or down");
    assert_eq!(block[16..24], [0; 8]);

    // The same after an error.
    block[..4].copy_from_slice(b"none");
    let answer =
        execute(&device, SIOCETHTOOL, &mut block, &ETHTOOL, &mut [Array::InOut(&mut value)]);
    assert_eq!(answer, Err(Errno::ENODEV));
    assert_eq!(block[16..24], [0; 8]);
    // An array that the driver only reads is passed as well; it may not write there.
    let command = [0xffu8; 8];
    let answer = execute(&device, SIOCETHTOOL, &mut block, &ETHTOOL, &mut [Array::In(&command)]);
    assert_eq!(answer, Err(Errno::ENODEV));
    assert_eq!(block[16..24], [0; 8]);
}

static TOO_FAR: [ArraySlot; 2] = [
    ArraySlot { name: "near", pointer_at: 0, direction: ArrayDirection::In },
    ArraySlot { name: "far", pointer_at: 12, direction: ArrayDirection::In },
];

#[test]
fn malformed_calls_reach_no_driver() {
    let (device, _writer) = pipe_with(b"");
    let calls = system_calls::numbers_of(|| {
        let mut block = [1u8; 16];
        let refused = Err(Errno::EINVAL);
        // As many arrays as slots.
        assert_eq!(execute(&device, 0x541b, &mut block, &INTERFACES, &mut []), refused);
        assert_eq!(execute(&device, 0x541b, &mut block, &[], &mut [Array::Absent]), refused);
        // A block as long as its request says: 17 bytes here.
        assert_eq!(execute(&device, 0xc011_4b01, &mut block, &[], &mut []), refused);
        // A slot within the block.
        let mut arrays = [Array::In(b"x"), Array::In(b"y")];
        assert_eq!(execute(&device, 0x541b, &mut block, &TOO_FAR, &mut arrays), refused);
        assert_eq!(block, [1; 16]);
    });
    match calls {
        Some(calls) => assert_eq!(calls, []),
        None => not_checked("no ptrace here"),
    }
}

#[test]
fn a_block_is_sent_once() {
    let (device, _writer) = pipe_with(b"");
    let mut block = [0u8; 4];
    let calls = system_calls::numbers_of(|| {
        let _ = execute(&device, 0x541b, &mut block, &[], &mut []);
    });
    match calls {
        Some(calls) => assert_eq!(calls, [libc::SYS_ioctl]),
        None => not_checked("no ptrace here"),
    }
}

#[test]
fn device_memory_is_mapped_shared_where_asked_and_from_where_asked() {
    let path = std::env::temp_dir().join(format!("hsakmt-shim-map-{}", std::process::id()));
    let page = Linux.page_size();
    let mut contents = vec![1u8; page];
    contents.resize(2 * page, 2);
    std::fs::write(&path, &contents).unwrap();
    let end = forked(|| {
        let file = std::fs::File::options().read(true).write(true).open(&path).unwrap();
        let device = Linux.adopt(DeviceToken(file.as_raw_fd() as u32));
        std::mem::forget(file);
        let mapping = MapDevice {
            placement: Placement::Anywhere,
            length: page,
            protection: Protection::READ | Protection::WRITE,
            offset: page as u64,
        };
        let at = Driver::map(&Linux, &device, mapping).unwrap();
        let byte = std::ptr::with_exposed_provenance_mut::<u8>(at);
        // SAFETY: mapped above; nobody else has the file mapped.
        unsafe {
            assert_eq!(byte.read(), 2);
            byte.write(3);
        }
        assert_eq!(std::fs::read(&path).unwrap()[page], 3, "shared");
        let again = MapDevice { placement: Placement::Free(at), ..mapping };
        assert_eq!(Driver::map(&Linux, &device, again), Err(Errno::EEXIST));
        let again = MapDevice { placement: Placement::Replace(at), offset: 0, ..mapping };
        assert_eq!(Driver::map(&Linux, &device, again), Ok(at));
        // SAFETY: mapped above.
        assert_eq!(unsafe { byte.read() }, 1);
        let odd = MapDevice { offset: 1, ..mapping };
        assert_eq!(Driver::map(&Linux, &device, odd), Err(Errno::EINVAL));
        drop(device);
        // SAFETY: a mapping outlives its descriptor.
        assert_eq!(unsafe { byte.read() }, 1);
    });
    std::fs::remove_file(&path).unwrap();
    assert_eq!(end, FINE);
}

#[test]
fn an_inherited_device_is_closed_only_while_its_number_still_names_it() {
    let _ = with_devices(&DEVICES, || {
        let token = Linux.release(Linux.open(DeviceNode::Kfd).unwrap());
        let fd = token.0 as i32;
        // Another device under the number stays, and so does something that is
        // no device at all.
        for other in [DeviceNode::Render(128), DeviceNode::Udmabuf] {
            Linux.close_inherited(other, token);
            assert!(is_open(fd));
        }
        Linux.close_inherited(DeviceNode::Kfd, token);
        assert!(!is_open(fd));
        Linux.close_inherited(DeviceNode::Kfd, token);

        let (reader, _writer) = pipe();
        Linux.close_inherited(DeviceNode::Kfd, Linux.token(&reader));
        assert!(is_open(reader.number()));
    });
}

#[test]
fn a_file_in_memory_has_zeros_and_its_length_for_good() {
    let file = Linux.memory_file(0x3000).unwrap();
    let fd = file.number();
    // SAFETY: asks about a descriptor, and tries to change its length.
    unsafe {
        assert_eq!(libc::fcntl(fd, libc::F_GETFD), libc::FD_CLOEXEC);
        let seals = libc::fcntl(fd, libc::F_GET_SEALS);
        let length = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW;
        assert_eq!(seals & (length | libc::F_SEAL_WRITE), length);
        assert_eq!((libc::ftruncate(fd, 0x1000), libc::ftruncate(fd, 0x4000)), (-1, -1));
    }
    let mapping = MapDevice {
        placement: Placement::Anywhere,
        length: 0x3000,
        protection: Protection::READ | Protection::WRITE,
        offset: 0,
    };
    let [one, two] = [0; 2].map(|_| Driver::map(&Linux, &file, mapping).unwrap());
    drop(file);
    assert!(!is_open(fd));
    let at = |start: usize| std::ptr::with_exposed_provenance_mut::<u32>(start + 0x2ffc);
    // SAFETY: mapped just now, for reading and writing.
    unsafe {
        assert_eq!(at(one).read_volatile(), 0);
        at(one).write_volatile(0x5eed);
        assert_eq!(at(two).read_volatile(), 0x5eed);
    }
    for address in [one, two] {
        Os::unmap(&Linux, address, 0x3000).unwrap();
    }
    assert_eq!(Linux.memory_file(u64::MAX).map(drop), Err(Errno::EINVAL));
}
