//! Files and folders: contents, limits, errors, and the exact system calls.
//!
//! # Safety
//!
//! Signal handlers do nothing; descriptors are the test's own.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString};
use std::io::Write;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use hsakmt_core::errno::Errno;
use hsakmt_core::seam::{EndOfFile, FileKind, Os};
use hsakmt_linux_shim::Linux;
use hsakmt_shim_tests::not_checked;
use hsakmt_shim_tests::system_calls;

/// A folder of this test's own, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("hsakmt-shim-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn file(&self, name: &str, contents: &[u8]) -> CString {
        let path = self.0.join(name);
        std::fs::write(&path, contents).unwrap();
        c_path(&path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).unwrap();
    }
}

fn c_path(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).unwrap()
}

fn read(path: &CStr, limit: usize, end: EndOfFile) -> Result<Vec<u8>, Errno> {
    let mut into = Vec::new();
    Linux.read_file(path, &mut into, limit, end)?;
    Ok(into)
}

#[test]
fn a_file_comes_whole_whatever_its_size_and_the_room() {
    let folder = Folder::new("sizes");
    let largest = if hsakmt_shim_tests::child::emulated() { 10_000 } else { 100_000 };
    for size in [0usize, 1, 4095, 4096, 4097, 8192, largest] {
        let contents: Vec<u8> = (0..size).map(|index| (index / 7) as u8).collect();
        let path = folder.file("file", &contents);
        for end in [EndOfFile::ShortRead, EndOfFile::EmptyRead] {
            for room in [0, 1, 4096, 5000, 2 * largest] {
                let mut into = Vec::with_capacity(room + 3);
                into.extend_from_slice(b"abc");
                Linux.read_file(&path, &mut into, usize::MAX, end).unwrap();
                assert_eq!(&into[..3], b"abc");
                assert_eq!(&into[3..], contents, "{size} bytes, room {room}, {end:?}");
            }
        }
    }
}

#[test]
fn the_limit_is_exact_and_an_error_leaves_the_vector_alone() {
    let folder = Folder::new("limit");
    let path = folder.file("file", &[5; 10_000]);
    for end in [EndOfFile::ShortRead, EndOfFile::EmptyRead] {
        assert_eq!(read(&path, 10_000, end).unwrap().len(), 10_000);
        for limit in [0, 1, 4096, 9_999] {
            let mut into = b"abc".to_vec();
            assert_eq!(Linux.read_file(&path, &mut into, limit, end), Err(Errno::EFBIG));
            assert_eq!(into, b"abc");
        }
    }
    let empty = folder.file("empty", b"");
    assert_eq!(read(&empty, 0, EndOfFile::ShortRead), Ok(Vec::new()));
}

#[test]
fn errors_are_those_of_the_kernel() {
    let folder = Folder::new("errors");
    let loop_path = folder.0.join("loop");
    std::os::unix::fs::symlink("loop", &loop_path).unwrap();
    let file = folder.file("file", b"x");
    let through_file = c_path(&folder.0.join("file/x"));
    let long = CString::new(vec![b'x'; 5000]).unwrap();
    for (path, errno) in [
        (c"/nonexistent/name".to_owned(), Errno::ENOENT),
        (c_path(&loop_path), Errno::ELOOP),
        (through_file, Errno::ENOTDIR),
        (c_path(&folder.0), Errno::EISDIR),
        (long, Errno::ENAMETOOLONG),
        (c"".to_owned(), Errno::ENOENT),
    ] {
        assert_eq!(read(&path, 100, EndOfFile::ShortRead), Err(errno), "{path:?}");
        let listed = Linux.list_folder(&path, &mut |_, _| ControlFlow::Continue(()));
        if errno != Errno::EISDIR {
            assert_eq!(listed, Err(errno), "{path:?}");
        }
    }
    let listed = Linux.list_folder(&file, &mut |_, _| ControlFlow::Continue(()));
    assert_eq!(listed, Err(Errno::ENOTDIR));
}

#[test]
fn a_full_heap_is_enomem() {
    if hsakmt_shim_tests::child::emulated() {
        not_checked("an emulator does not limit the address space");
        return;
    }
    // A terabyte of zeroes; the vector cannot follow.
    let folder = Folder::new("enomem");
    let path = folder.file("huge", b"");
    let file = std::fs::File::options().write(true).open(folder.0.join("huge")).unwrap();
    let end = hsakmt_shim_tests::child::forked(|| {
        file.set_len(1 << 40).unwrap();
        let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
        let pages: u64 = statm.split(' ').next().unwrap().parse().unwrap();
        let most = pages * Linux.page_size() as u64 + (64 << 20);
        let limit = libc::rlimit { rlim_cur: most, rlim_max: most };
        // SAFETY: reads the limit.
        assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const limit) }, 0);
        let mut into = b"abc".to_vec();
        let answer = Linux.read_file(&path, &mut into, usize::MAX, EndOfFile::ShortRead);
        assert_eq!(answer, Err(Errno::ENOMEM));
        assert_eq!(into, b"abc");
    });
    assert_eq!(end, hsakmt_shim_tests::child::FINE);
}

#[test]
fn proc_files_need_the_empty_read() {
    let maps = read(c"/proc/self/smaps", 1 << 24, EndOfFile::EmptyRead).unwrap();
    assert!(!maps.is_empty());
    let text = read(c"/proc/sys/kernel/ostype", 100, EndOfFile::ShortRead).unwrap();
    assert_eq!(text, b"Linux\n");
}

#[test]
fn system_calls_are_counted() {
    let folder = Folder::new("calls");
    let small = folder.file("small", &[1; 4000]);
    let exact = folder.file("exact", &[1; 4096]);
    let sysfs = c"/sys/devices/system/cpu/online";
    use libc::{SYS_close as CLOSE, SYS_getdents64 as LIST, SYS_openat as OPEN, SYS_read as READ};
    let count = |path: &CStr, room: usize, end| {
        let mut into = Vec::with_capacity(room);
        system_calls::numbers_of(|| Linux.read_file(path, &mut into, 1 << 20, end).unwrap())
    };
    let Some(calls) = count(&small, 4096, EndOfFile::ShortRead) else {
        not_checked("no ptrace here");
        return;
    };
    assert_eq!(calls, [OPEN, READ, CLOSE]);
    assert_eq!(count(sysfs, 4096, EndOfFile::ShortRead).unwrap(), [OPEN, READ, CLOSE]);
    assert_eq!(count(&small, 4096, EndOfFile::EmptyRead).unwrap(), [OPEN, READ, READ, CLOSE]);
    assert_eq!(count(&exact, 4097, EndOfFile::ShortRead).unwrap(), [OPEN, READ, CLOSE]);
    let without_heap = |calls: Vec<libc::c_long>| -> Vec<libc::c_long> {
        calls.into_iter().filter(|call| [OPEN, READ, CLOSE].contains(call)).collect()
    };
    let full = without_heap(count(&exact, 4096, EndOfFile::ShortRead).unwrap());
    assert_eq!(full, [OPEN, READ, READ, CLOSE]);
    let missing = system_calls::numbers_of(|| {
        let mut into = Vec::new();
        let answer = Linux.read_file(c"/nonexistent", &mut into, 1, EndOfFile::ShortRead);
        assert_eq!(answer, Err(Errno::ENOENT));
    });
    assert_eq!(missing.unwrap(), [OPEN]);

    let path = c_path(&folder.0);
    let list = |stop: bool| {
        system_calls::numbers_of(|| {
            let flow = if stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
            Linux.list_folder(&path, &mut |_, _| flow).unwrap();
        })
    };
    assert_eq!(list(false).unwrap(), [OPEN, LIST, LIST, CLOSE]);
    assert_eq!(list(true).unwrap(), [OPEN, LIST, CLOSE]);
}

#[test]
fn descriptors_are_closed_on_exec() {
    let calls = system_calls::of(|| {
        let mut into = Vec::with_capacity(8192);
        let _ = Linux.read_file(
            c"/sys/devices/system/cpu/online",
            &mut into,
            100,
            EndOfFile::ShortRead,
        );
        let _ = Linux.list_folder(c"/sys", &mut |_, _| ControlFlow::Break(()));
    });
    let Some(calls) = calls else {
        not_checked("no ptrace here");
        return;
    };
    let opens: Vec<_> = calls.iter().filter(|call| call.number == libc::SYS_openat).collect();
    assert_eq!(opens.len(), 2);
    for open in opens {
        assert_ne!(open.arguments[2] & libc::O_CLOEXEC as u64, 0);
    }
}

#[test]
fn every_name_is_visited_once_with_its_kind() {
    let folder = Folder::new("list");
    let mut expected = BTreeMap::new();
    for index in 0..600 {
        let name = format!("{index:0width$}", width = 1 + index % 250);
        match index % 3 {
            0 => {
                std::fs::create_dir(folder.0.join(&name)).unwrap();
                expected.insert(name.into_bytes(), FileKind::Folder);
            }
            1 => {
                std::fs::write(folder.0.join(&name), b"").unwrap();
                expected.insert(name.into_bytes(), FileKind::File);
            }
            _ => {
                std::os::unix::fs::symlink("x", folder.0.join(&name)).unwrap();
                expected.insert(name.into_bytes(), FileKind::Other);
            }
        }
    }
    let path = c_path(&folder.0);
    let mut found = BTreeMap::new();
    Linux
        .list_folder(&path, &mut |name, kind| {
            assert!(found.insert(name.to_vec(), kind).is_none(), "twice");
            ControlFlow::Continue(())
        })
        .unwrap();
    assert_eq!(found, expected);

    let mut visits = 0;
    Linux
        .list_folder(&path, &mut |_, _| {
            visits += 1;
            if visits == 5 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
        .unwrap();
    assert_eq!(visits, 5);
}

#[test]
fn signals_do_not_end_a_read() {
    extern "C" fn nothing(_: libc::c_int) {}
    // SAFETY: the handler does nothing; without SA_RESTART calls are interrupted.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = nothing as extern "C" fn(libc::c_int) as usize;
        assert_eq!(libc::sigaction(libc::SIGUSR2, &raw const action, std::ptr::null_mut()), 0);
    }
    let folder = Folder::new("signals");
    let pipe = folder.0.join("pipe");
    let path = c_path(&pipe);
    // SAFETY: makes a named pipe.
    assert_eq!(unsafe { libc::mkfifo(path.as_ptr(), 0o600) }, 0);
    let (id, done) = (std::sync::mpsc::channel(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            // SAFETY: this thread's own id.
            id.0.send(unsafe { libc::pthread_self() }).unwrap();
            let answer = read(&path, 100, EndOfFile::EmptyRead);
            done.store(true, Ordering::Release);
            answer
        });
        let thread = id.1.recv().unwrap();
        let pester = || {
            for _ in 0..if hsakmt_shim_tests::child::emulated() { 50 } else { 1000 } {
                if done.load(Ordering::Acquire) {
                    return;
                }
                // SAFETY: the scope keeps the thread joinable.
                unsafe { libc::pthread_kill(thread, libc::SIGUSR2) };
                std::thread::yield_now();
            }
        };
        pester();
        let mut writer = std::fs::File::options().write(true).open(&pipe).unwrap();
        pester();
        writer.write_all(b"hel").unwrap();
        pester();
        writer.write_all(b"lo").unwrap();
        drop(writer);
        assert_eq!(reader.join().unwrap(), Ok(b"hello".to_vec()));
    });
}
