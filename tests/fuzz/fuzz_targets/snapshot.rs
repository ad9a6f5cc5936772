//! A whole tree that the input changes, file by file, also while it is read.
#![no_main]

use std::sync::LazyLock;

use hsakmt_core::errno::Errno;
use hsakmt_core::topology::{Unopened, read_snapshot};
use hsakmt_fuzz::assert_holds_together;
use hsakmt_topology_tests::{Answer, SETTINGS, Tree, TreeOs};
use libfuzzer_sys::fuzz_target;

static MACHINE: LazyLock<Tree> = LazyLock::new(|| Tree::of_gpus(3, true));

/// The bytes of the input, zero when they are used up.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn byte(&mut self) -> u8 {
        self.take(1).first().copied().unwrap_or(0)
    }

    fn take(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        taken
    }

    /// A text that ends with a NUL or with the input.
    fn text(&mut self) -> &'a [u8] {
        let end = self.0.iter().position(|&byte| byte == 0).unwrap_or(self.0.len());
        let text = self.take(end);
        self.take(1);
        text
    }
}

const ERRNOS: [Errno; 8] = [
    Errno::ENOENT,
    Errno::ENODEV,
    Errno::EPERM,
    Errno::EACCES,
    Errno::EIO,
    Errno::EMFILE,
    Errno::ENOMEM,
    Errno::EFBIG,
];

fuzz_target!(|input: &[u8]| {
    let mut input = Input(input);
    let mut tree = MACHINE.clone();
    // (path, from which read on, answer)
    let mut later: Vec<(String, u32, Answer)> = Vec::new();
    for _ in 0..64 {
        if input.0.is_empty() {
            break;
        }
        let (what, place) = (input.byte(), usize::from(input.byte()));
        let path = tree.files.keys().nth(place % tree.files.len().max(1)).cloned();
        let Some(path) = path else { break };
        match what % 8 {
            0 => tree.remove(&path),
            1 => {
                let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder).to_owned();
                tree.remove(&folder);
            }
            2 => tree.put(&path, input.text()),
            3 => {
                let mut content = tree.files[&path].clone();
                content.extend_from_slice(input.text());
                tree.put(&path, content);
            }
            4 => {
                let mut content = tree.files[&path].clone();
                content.truncate(usize::from(input.byte()));
                tree.put(&path, content);
            }
            5 => {
                let errno = ERRNOS[usize::from(input.byte()) % ERRNOS.len()];
                later.push((path, u32::from(what / 8 % 4), Answer::Refused(errno)));
            }
            6 => {
                let content = Answer::Content(input.text().to_vec());
                later.push((path, u32::from(what / 8 % 4), content));
            }
            _ => {
                // A copy under another name: a node or entry more.
                let from = path.clone();
                let name = String::from_utf8_lossy(input.text()).replace(['/', '\0'], "");
                let Some((folder, file)) = path.rsplit_once('/') else { continue };
                let Some((above, _)) = folder.rsplit_once('/') else { continue };
                let content = tree.files[&from].clone();
                tree.put(&format!("{above}/{name}/{file}"), content);
            }
        }
    }
    let os = TreeOs::new(tree).with_hook(move |path, earlier| {
        let answers = later.iter().filter(|(of, from, _)| of == path && earlier >= *from);
        answers.map(|(_, _, answer)| answer.clone()).next_back()
    });
    if let Ok(snapshot) = read_snapshot(&os, &SETTINGS, &mut Unopened) {
        assert_holds_together(&snapshot);
    }
    assert_eq!(os.other_calls(), 0);
    // However often it changes: ten walks, none of which reads a file twice.
    for (path, reads) in os.reads() {
        let most = if path == "/topology/generation_id" { 11 } else { 10 };
        assert!(reads <= most, "{path} was read {reads} times");
    }
});
