//! A file system in memory: folders, links, and files whose contents are made
//! when they are read.

use alloc::borrow::{Cow, ToOwned};
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use hsakmt_core::errno::Errno;
use hsakmt_core::seam::FileKind;

use crate::kfd::ObjectId;

/// What a name stands for.
#[derive(Debug, Clone)]
pub(crate) enum Entry {
    Folder(Folder),
    /// A link to an absolute path.
    Link(String),
    File(Content),
    /// A device node.
    Device,
}

/// What a file holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Content {
    /// These bytes.
    Bytes(Vec<u8>),
    /// Made at the time of reading.
    Generated(Attribute),
    /// Opening succeeds and reading fails.
    Unreadable(Errno),
}

/// A generated file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Attribute {
    GenerationId,
    SystemProperties,
    GpuId(usize),
    Name(usize),
    Properties(usize),
    Bank(usize, usize),
    Cache(usize, usize),
    IoLink(usize, usize),
    P2pLink(usize, usize),
    CpuInfo,
    /// `vram_<gpu>` of a process object.
    VramOf(ObjectId, u32),
}

/// A folder.
#[derive(Debug, Clone, Default)]
pub(crate) struct Folder(BTreeMap<String, Entry>);

/// Links that a path may pass through (path_resolution(7)).
const LINK_LIMIT: usize = 40;

impl Folder {
    /// Puts an entry, making the folders above it.
    pub(crate) fn put(&mut self, path: &str, entry: Entry) {
        let path = path.trim_matches('/');
        match path.rsplit_once('/') {
            Some((folder, name)) => self.folder(folder).put(name, entry),
            None => {
                self.0.insert(path.to_owned(), entry);
            }
        }
    }

    /// The folder at a path, made if it is not one, with those above it.
    pub(crate) fn folder(&mut self, path: &str) -> &mut Folder {
        let (first, rest) = split(path);
        if !matches!(self.0.get(first), Some(Entry::Folder(_))) {
            self.0.insert(first.to_owned(), Entry::Folder(Folder::default()));
        }
        let Some(Entry::Folder(folder)) = self.0.get_mut(first) else {
            unreachable!("it was just made")
        };
        if rest.is_empty() { folder } else { folder.folder(rest) }
    }

    pub(crate) fn put_bytes(&mut self, path: &str, bytes: impl Into<Vec<u8>>) {
        self.put(path, Entry::File(Content::Bytes(bytes.into())));
    }

    pub(crate) fn put_generated(&mut self, path: &str, attribute: Attribute) {
        self.put(path, Entry::File(Content::Generated(attribute)));
    }

    pub(crate) fn put_folder(&mut self, path: &str) {
        self.put(path, Entry::Folder(Folder::default()));
    }

    pub(crate) fn put_link(&mut self, path: &str, target: &str) {
        self.put(path, Entry::Link(target.to_owned()));
    }

    /// Takes an entry away with all below it.
    pub(crate) fn remove(&mut self, path: &str) -> Option<Entry> {
        let (first, rest) = split(path);
        if rest.is_empty() {
            return self.0.remove(first);
        }
        match self.0.get_mut(first)? {
            Entry::Folder(folder) => folder.remove(rest),
            _ => None,
        }
    }

    /// The entry at an absolute path, links followed, and the path without links.
    pub(crate) fn resolve<'p>(&self, path: &'p str) -> Result<(&Entry, Cow<'p, str>), Errno> {
        let mut path = Cow::Borrowed(path);
        for _ in 0..LINK_LIMIT {
            match self.walk(&path)? {
                Walk::Arrived(entry) => return Ok((entry, path)),
                Walk::Redirected(target) => path = Cow::Owned(target),
            }
        }
        Err(Errno::ELOOP)
    }

    fn walk(&self, path: &str) -> Result<Walk<'_>, Errno> {
        let mut folder = self;
        let mut parts = path.split('/').filter(|part| !part.is_empty()).peekable();
        while let Some(part) = parts.next() {
            let entry = folder.0.get(part).ok_or(Errno::ENOENT)?;
            match entry {
                Entry::Link(target) => {
                    let mut path = target.clone();
                    for part in parts {
                        path.push('/');
                        path.push_str(part);
                    }
                    return Ok(Walk::Redirected(path));
                }
                _ if parts.peek().is_none() => return Ok(Walk::Arrived(entry)),
                Entry::Folder(next) => folder = next,
                _ => return Err(Errno::ENOTDIR),
            }
        }
        Err(Errno::ENOENT)
    }

    /// The names in the folder with their kinds, in the order in which sysfs
    /// lists them: by a hash of the name (fs/kernfs/dir.c), so never sorted.
    pub(crate) fn list(&self) -> Vec<(String, FileKind)> {
        let mut names: Vec<_> = self
            .0
            .iter()
            .map(|(name, entry)| {
                let kind = match entry {
                    Entry::Folder(_) => FileKind::Folder,
                    Entry::File(_) => FileKind::File,
                    Entry::Link(_) | Entry::Device => FileKind::Other,
                };
                (name.clone(), kind)
            })
            .collect();
        names.sort_by_key(|(name, _)| {
            name.bytes().fold(0x811c_9dc5_u32, |hash, byte| {
                (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
            })
        });
        names
    }
}

enum Walk<'a> {
    Arrived(&'a Entry),
    Redirected(String),
}

fn split(path: &str) -> (&str, &str) {
    let path = path.trim_matches('/');
    path.split_once('/').unwrap_or((path, ""))
}

#[cfg(test)]
mod tests {
    use alloc::string::String;
    use alloc::vec::Vec;

    use hsakmt_core::errno::Errno;
    use hsakmt_core::seam::FileKind;

    use super::{Content, Entry, Folder};

    #[test]
    fn links_are_followed_in_the_middle_and_at_the_end() {
        let mut root = Folder::default();
        root.put_bytes("devices/a/file", *b"x");
        root.put_link("class/a", "/devices/a");
        root.put_link("link", "/class/a/file");
        for path in ["/class/a/file", "/link"] {
            let (entry, real) = root.resolve(path).unwrap();
            assert!(matches!(entry, Entry::File(Content::Bytes(bytes)) if bytes == b"x"));
            assert_eq!(real, "/devices/a/file");
        }
    }

    #[test]
    fn errnos_of_path_resolution() {
        let mut root = Folder::default();
        root.put_bytes("a/file", *b"x");
        root.put_link("loop", "/loop");
        let errno = |path| root.resolve(path).map(|_| ()).unwrap_err();
        assert_eq!(errno("/b"), Errno::ENOENT);
        assert_eq!(errno("/a/file/c"), Errno::ENOTDIR);
        assert_eq!(errno("/loop"), Errno::ELOOP);
    }

    #[test]
    fn a_folder_is_not_listed_in_order() {
        let mut root = Folder::default();
        let names: Vec<String> = (0..10).map(|n| alloc::format!("{n}")).collect();
        for name in &names {
            root.put_folder(name);
        }
        let listed: Vec<String> = root.list().into_iter().map(|(name, _)| name).collect();
        assert_ne!(listed, names);
        assert_eq!(listed.len(), 10);
        assert!(root.list().iter().all(|(_, kind)| *kind == FileKind::Folder));
    }
}
