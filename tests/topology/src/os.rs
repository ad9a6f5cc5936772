//! An operating system that knows one tree of files and nothing else.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ffi::CStr;
use std::fs;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use hsakmt_core::errno::Errno;
use hsakmt_core::seam::{
    Advice, Clock, EndOfFile, FileKind, Mapping, MemoryPolicy, Os, Protection, Wake,
};

use crate::Tree;

/// Where files come from.
#[derive(Debug)]
pub enum Source {
    /// Memory.
    Tree(Tree),
    /// A folder of the real file system; `/` of the reader is here.
    Folder(PathBuf),
}

/// What a file answers instead of its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// An error number, when it is opened or read.
    Refused(Errno),
    /// Another content.
    Content(Vec<u8>),
}

/// What happens at a read: the path and how often it was read before.
type Hook = Box<dyn Fn(&str, u32) -> Option<Answer>>;

/// Reads files of a [`Source`], counts, and answers something else where it is
/// told to.
///
/// Whatever the topology has no business with (memory, futexes) is refused and
/// counted in [`TreeOs::other_calls`].
pub struct TreeOs {
    source: Source,
    hook: Option<Hook>,
    reads: RefCell<BTreeMap<String, u32>>,
    listed: RefCell<BTreeMap<String, u32>>,
    missing: Cell<u32>,
    other: AtomicU32,
    slept: Cell<u64>,
    word: AtomicU32,
}

impl TreeOs {
    /// Over files in memory.
    #[must_use]
    pub fn new(tree: Tree) -> TreeOs {
        TreeOs::over(Source::Tree(tree))
    }

    /// Over any source.
    #[must_use]
    pub fn over(source: Source) -> TreeOs {
        TreeOs {
            source,
            hook: None,
            reads: RefCell::default(),
            listed: RefCell::default(),
            missing: Cell::new(0),
            other: AtomicU32::new(0),
            slept: Cell::new(0),
            word: AtomicU32::new(1),
        }
    }

    /// With answers that are not the source's.
    #[must_use]
    pub fn with_hook(mut self, hook: impl Fn(&str, u32) -> Option<Answer> + 'static) -> TreeOs {
        self.hook = Some(Box::new(hook));
        self
    }

    /// How often each file was opened, those included that are not there.
    #[must_use]
    pub fn reads(&self) -> BTreeMap<String, u32> {
        self.reads.borrow().clone()
    }

    /// How often each folder was listed.
    #[must_use]
    pub fn listed(&self) -> BTreeMap<String, u32> {
        self.listed.borrow().clone()
    }

    /// System calls: three for a file, one for a file that is not there, four
    /// for a folder.
    #[must_use]
    pub fn system_calls(&self) -> u32 {
        let reads: u32 = self.reads.borrow().values().sum();
        let folders: u32 = self.listed.borrow().values().sum();
        (reads - self.missing.get()) * 3 + self.missing.get() + folders * 4
    }

    /// Nanoseconds slept.
    #[must_use]
    pub fn slept(&self) -> u64 {
        self.slept.get()
    }

    /// Calls that have nothing to do with files.
    #[must_use]
    pub fn other_calls(&self) -> u32 {
        self.other.load(Ordering::Relaxed)
    }

    /// Forgets what was counted.
    pub fn forget_counts(&self) {
        self.reads.borrow_mut().clear();
        self.listed.borrow_mut().clear();
        self.missing.set(0);
        self.slept.set(0);
        self.other.store(0, Ordering::Relaxed);
    }

    fn refuse<T>(&self) -> Result<T, Errno> {
        self.other.fetch_add(1, Ordering::Relaxed);
        Err(Errno::ENOSYS)
    }

    fn content(&self, path: &str) -> Result<Vec<u8>, Errno> {
        match &self.source {
            Source::Tree(tree) => tree.files.get(path).cloned().ok_or(Errno::ENOENT),
            Source::Folder(folder) => fs::read(folder.join(path.trim_start_matches('/')))
                .map_err(|error| errno_of(&error)),
        }
    }
}

fn errno_of(error: &std::io::Error) -> Errno {
    Errno(error.raw_os_error().and_then(|number| u16::try_from(number).ok()).unwrap_or(5))
}

impl Os for TreeOs {
    fn page_size(&self) -> usize {
        4096
    }

    fn map(&self, _: Mapping) -> Result<usize, Errno> {
        self.refuse()
    }

    fn unmap(&self, _: usize, _: usize) -> Result<(), Errno> {
        self.refuse()
    }

    fn protect(&self, _: usize, _: usize, _: Protection) -> Result<(), Errno> {
        self.refuse()
    }

    fn advise(&self, _: usize, _: usize, _: Advice) -> Result<(), Errno> {
        self.refuse()
    }

    fn bind(&self, _: usize, _: usize, _: MemoryPolicy, _: &[u64]) -> Result<(), Errno> {
        self.refuse()
    }

    fn read_file(
        &self,
        path: &CStr,
        into: &mut Vec<u8>,
        limit: usize,
        _: EndOfFile,
    ) -> Result<(), Errno> {
        let path = path.to_str().expect("a path of the tests");
        let earlier = {
            let mut reads = self.reads.borrow_mut();
            let count = reads.entry(path.into()).or_insert(0);
            *count += 1;
            *count - 1
        };
        let content = match self.hook.as_ref().and_then(|hook| hook(path, earlier)) {
            Some(Answer::Content(content)) => Ok(content),
            Some(Answer::Refused(errno)) => Err(errno),
            None => self.content(path),
        };
        let content = content.inspect_err(|errno| {
            if *errno == Errno::ENOENT {
                self.missing.set(self.missing.get() + 1);
            }
        })?;
        if content.len() > limit {
            return Err(Errno::EFBIG);
        }
        into.try_reserve(content.len()).map_err(|_| Errno::ENOMEM)?;
        into.extend_from_slice(&content);
        Ok(())
    }

    fn list_folder(
        &self,
        path: &CStr,
        visit: &mut dyn FnMut(&[u8], FileKind) -> ControlFlow<()>,
    ) -> Result<(), Errno> {
        let path = path.to_str().expect("a path of the tests");
        let earlier = {
            let mut listed = self.listed.borrow_mut();
            let count = listed.entry(path.into()).or_insert(0);
            *count += 1;
            *count - 1
        };
        if let Some(Answer::Refused(errno)) =
            self.hook.as_ref().and_then(|hook| hook(path, earlier))
        {
            return Err(errno);
        }
        let mut names: Vec<String> = Vec::new();
        match &self.source {
            Source::Tree(tree) => {
                let below = format!("{path}/");
                for file in tree.files.keys().filter_map(|file| file.strip_prefix(&below)) {
                    let name = file.split('/').next().unwrap_or_default().to_string();
                    if !names.contains(&name) {
                        names.push(name);
                    }
                }
                if names.is_empty() && !tree.empty_folders.iter().any(|empty| empty == path) {
                    return Err(Errno::ENOENT);
                }
                // Any order will do; sysfs has none, either.
                names.reverse();
            }
            Source::Folder(folder) => {
                let entries = fs::read_dir(folder.join(path.trim_start_matches('/')))
                    .map_err(|error| errno_of(&error))?;
                names.extend(
                    entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()),
                );
            }
        }
        for name in names {
            if visit(name.as_bytes(), FileKind::Other).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn now(&self, _: Clock) -> u64 {
        self.slept.get()
    }

    fn sleep(&self, ns: u64) {
        self.slept.set(self.slept.get() + ns);
    }

    fn futex_wait(&self, _: &AtomicU32, _: u32, _: Option<u64>) -> Result<Wake, Errno> {
        self.refuse()
    }

    fn futex_wake(&self, _: &AtomicU32, _: u32) {
        self.other.fetch_add(1, Ordering::Relaxed);
    }

    fn thread_id(&self) -> u32 {
        1
    }

    fn process_id(&self) -> u32 {
        1
    }

    fn fork_word(&self) -> &AtomicU32 {
        &self.word
    }

    fn wmb_device(&self) {}

    fn rmb_device(&self) {}

    fn flush_wc(&self) {}
}
