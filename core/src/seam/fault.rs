//! Failing operations on purpose.
//!
//! A [`FaultPlan`] says which operations fail with which errno; [`Faulty`]
//! obeys it on both seams with one numbering. Only operations that can answer
//! an error are numbered ([`OperationKind::is_fallible`]). To fail each
//! operation of a run in turn:
//!
//! ```text
//! for k in 1.. {
//!     let plan = FaultPlan::with(Fault::nth(Selector::Any, k, Errno::ENOMEM))?;
//!     run(Faulty::new(machine(), &plan));
//!     if plan.operations() < k {
//!         break;
//!     }
//! }
//! ```
//!
//! # Faults as text
//! `OP#N=ERRNO` fails the N-th operation (from 1) that `OP` selects,
//! `OP#N+=ERRNO` that one and all later ones, `OP#*=ERRNO` all. `ERRNO` is a
//! name or a number from 1 to 4095; `after:` before it lets the operation
//! happen first. `OP` is `any`, `open`, the name of an [`OperationKind`] (`map`,
//! `read_file`, `open-kfd`, `open-render`, `ioctl`, `map-device`, …), or the name
//! of a block (`GET_VERSION`, see [`uapi::ALL`](crate::uapi::ALL)). Several faults are separated by
//! commas or blanks.
//!
//! # A failure after the effect
//! A driver may have acted, wholly or in part, before it answers an error: a
//! signal ends a wait that had made progress, or the copy back to user space
//! fails. This is legal for `ioctl` (any block), for `protect`, `advise` and
//! `bind`, which stop in the middle of a range, for `list_folder`, which fails
//! between two buffers, and for `futex_wait`. It is not legal for operations
//! that would leave behind something nobody knows of (`open`, `map`,
//! `map-device`), promise to have changed nothing (`read_file`), or act wholly or
//! not at all (`unmap`): there such a fault is an ordinary one, and the text
//! form refuses it.
//!
//! A permanent EINTR on a block that is restarted never ends; that is what the
//! kernel's contract says, too.

use alloc::vec::Vec;
use core::ffi::CStr;
use core::fmt;
use core::ops::{ControlFlow, Deref};
use core::sync::atomic::{
    AtomicBool, AtomicU32, AtomicU64,
    Ordering::{Relaxed, SeqCst},
};

use super::Platform;
use super::driver::{Call, DeviceNode, DeviceToken, Driver, MapDevice};
use super::forward::platform_of_itself;
use super::operation::OperationKind;
use super::os::{Advice, Clock, EndOfFile, FileKind, Mapping, MemoryPolicy, Os, Protection, Wake};
use crate::errno::Errno;
use crate::uapi;

/// Which operations a fault is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Selector<'n> {
    /// Every operation that can fail, of both seams.
    Any,
    /// Opening any device.
    Open,
    /// Operations of one kind.
    Kind(OperationKind),
    /// The block of this name, as [`Block::NAME`](crate::uapi::Block::NAME) has
    /// it. A name that no block has selects nothing.
    Block(&'n str),
}

impl<'n> Selector<'n> {
    /// Reads a selector's name; `None` when it can never select anything.
    #[must_use]
    pub fn from_name(name: &'n str) -> Option<Selector<'n>> {
        match name {
            "any" => return Some(Selector::Any),
            "open" => return Some(Selector::Open),
            _ => {}
        }
        if let Some(kind) = OperationKind::from_name(name) {
            return kind.is_fallible().then_some(Selector::Kind(kind));
        }
        let block = uapi::ALL.iter().find(|block| block.name == name)?;
        Some(Selector::Block(block.name))
    }

    fn selects(&self, kind: OperationKind, block: Option<&str>) -> bool {
        match *self {
            Selector::Any => true,
            Selector::Open => kind.is_open(),
            Selector::Kind(selected) => kind == selected,
            Selector::Block(name) => block == Some(name),
        }
    }

    fn allows_effect(&self) -> bool {
        match *self {
            Selector::Any | Selector::Block(_) => true,
            Selector::Open => false,
            Selector::Kind(kind) => may_fail_after_effect(kind),
        }
    }
}

impl fmt::Display for Selector<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match *self {
            Selector::Any => "any",
            Selector::Open => "open",
            Selector::Kind(kind) => kind.name(),
            Selector::Block(name) => name,
        })
    }
}

const fn may_fail_after_effect(kind: OperationKind) -> bool {
    matches!(
        kind,
        OperationKind::Execute
            | OperationKind::Protect
            | OperationKind::Advise
            | OperationKind::Bind
            | OperationKind::ListFolder
            | OperationKind::FutexWait
    )
}

/// One thing that goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault<'n> {
    selector: Selector<'n>,
    first: u64,
    lasting: bool,
    after_effect: bool,
    errno: Errno,
}

impl<'n> Fault<'n> {
    /// The `n`-th selected operation fails, counted from 1. None does for 0.
    #[must_use]
    pub const fn nth(selector: Selector<'n>, n: u64, errno: Errno) -> Self {
        Fault { selector, first: n, lasting: false, after_effect: false, errno }
    }

    /// The `n`-th selected operation, counted from 1, and all later ones fail.
    #[must_use]
    pub const fn from_nth(selector: Selector<'n>, n: u64, errno: Errno) -> Self {
        Fault { selector, first: n, lasting: true, after_effect: false, errno }
    }

    /// Every selected operation fails.
    #[must_use]
    pub const fn always(selector: Selector<'n>, errno: Errno) -> Self {
        Fault::from_nth(selector, 1, errno)
    }

    /// The same fault, but the operation is carried out before the error is
    /// answered in place of its result. For which operations that is legal, and
    /// what happens with the others, see the module's text.
    #[must_use]
    pub const fn after_effect(mut self) -> Self {
        self.after_effect = true;
        self
    }

    /// Reads one fault in the form that the module's text describes.
    ///
    /// # Errors
    /// What is wrong with which text.
    pub fn parse(text: &'n str) -> Result<Self, FaultSyntax<'n>> {
        let wrong = |what| FaultSyntax { text, what };
        let (name, rest) = text.split_once('#').ok_or(wrong(SyntaxFlaw::Form))?;
        let (count, errno) = rest.split_once('=').ok_or(wrong(SyntaxFlaw::Form))?;
        let selector = Selector::from_name(name).ok_or(wrong(SyntaxFlaw::Operation))?;
        let (first, lasting) = match (count, count.strip_suffix('+')) {
            ("*", _) => (1, true),
            (_, Some(first)) => (number(first).ok_or(wrong(SyntaxFlaw::Count))?, true),
            (first, None) => (number(first).ok_or(wrong(SyntaxFlaw::Count))?, false),
        };
        let (errno, after_effect) = match errno.strip_prefix("after:") {
            Some(errno) => (errno, true),
            None => (errno, false),
        };
        let errno = errno_from(errno).ok_or(wrong(SyntaxFlaw::Errno))?;
        if after_effect && !selector.allows_effect() {
            return Err(wrong(SyntaxFlaw::AfterEffect));
        }
        Ok(Fault { selector, first, lasting, after_effect, errno })
    }

    fn strikes(&self, occurrence: u64) -> bool {
        occurrence == self.first || (self.lasting && occurrence > self.first)
    }
}

/// The text form again.
impl fmt::Display for Fault<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.selector, self.first)?;
        f.write_str(if self.lasting { "+=" } else { "=" })?;
        f.write_str(if self.after_effect { "after:" } else { "" })?;
        match self.errno.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "{}", self.errno.0),
        }
    }
}

/// Decimal digits only, not 0.
fn number(text: &str) -> Option<u64> {
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    text.parse().ok().filter(|number| *number != 0)
}

fn errno_from(text: &str) -> Option<Errno> {
    if let Some(errno) = Errno::from_name(text) {
        return Some(errno);
    }
    let number = u16::try_from(number(text)?).ok()?;
    (number <= 4095).then_some(Errno(number))
}

/// What is wrong with the text of a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SyntaxFlaw {
    /// It is not of the form `OP#N=ERRNO`.
    Form,
    /// There is no such operation, or it cannot fail.
    Operation,
    /// The count is neither `*` nor a number from 1, with or without `+`.
    Count,
    /// The errno has no known name and is not a number from 1 to 4095.
    Errno,
    /// The operation cannot have happened when it answers an error.
    AfterEffect,
    /// There is no memory to hold it.
    NoMemory,
}

/// A fault that could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FaultSyntax<'n> {
    /// The text of the one fault.
    pub text: &'n str,
    /// What is wrong with it.
    pub what: SyntaxFlaw,
}

impl fmt::Display for FaultSyntax<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.what {
            SyntaxFlaw::Form => "not of the form OP#N=ERRNO, OP#N+=ERRNO or OP#*=ERRNO",
            SyntaxFlaw::Operation => "no operation of this name can fail",
            SyntaxFlaw::Count => "the count is not * or a number from 1",
            SyntaxFlaw::Errno => "unknown errno",
            SyntaxFlaw::AfterEffect => "this operation cannot fail after its effect",
            SyntaxFlaw::NoMemory => "out of memory",
        };
        write!(f, "fault {:?}: {what}", self.text)
    }
}

impl core::error::Error for FaultSyntax<'_> {}

#[derive(Debug)]
struct Planned<'n> {
    fault: Fault<'n>,
    /// How many selected operations have passed.
    occurrences: AtomicU64,
}

/// The faults of one run and its numbering. Shared by any number of threads and
/// wrappers. When several faults strike one operation, the first planned one
/// does.
#[derive(Debug, Default)]
pub struct FaultPlan<'n> {
    faults: Vec<Planned<'n>>,
    operations: AtomicU64,
    struck: AtomicU64,
    suspended: AtomicBool,
}

impl<'n> FaultPlan<'n> {
    /// Nothing goes wrong.
    #[must_use]
    pub const fn new() -> Self {
        FaultPlan {
            faults: Vec::new(),
            operations: AtomicU64::new(0),
            struck: AtomicU64::new(0),
            suspended: AtomicBool::new(false),
        }
    }

    /// One thing goes wrong.
    ///
    /// # Errors
    /// ENOMEM when the plan cannot grow.
    pub fn with(fault: Fault<'n>) -> Result<Self, Errno> {
        let mut plan = FaultPlan::new();
        plan.add(fault)?;
        Ok(plan)
    }

    /// Plans one more fault.
    ///
    /// # Errors
    /// ENOMEM when the plan cannot grow.
    pub fn add(&mut self, fault: Fault<'n>) -> Result<(), Errno> {
        self.faults.try_reserve(1).map_err(|_| Errno::ENOMEM)?;
        self.faults.push(Planned { fault, occurrences: AtomicU64::new(0) });
        Ok(())
    }

    /// Reads any number of faults, separated by commas or blanks.
    ///
    /// # Errors
    /// What is wrong with the first fault that cannot be read.
    pub fn parse(text: &'n str) -> Result<Self, FaultSyntax<'n>> {
        let mut plan = FaultPlan::new();
        let separator = |letter: char| letter == ',' || letter.is_ascii_whitespace();
        for text in text.split(separator).filter(|text| !text.is_empty()) {
            let fault = Fault::parse(text)?;
            plan.add(fault).map_err(|_| FaultSyntax { text, what: SyntaxFlaw::NoMemory })?;
        }
        Ok(plan)
    }

    /// How many operations that can fail have passed, failed ones included.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.operations.load(Relaxed)
    }

    /// How many operations were made to fail.
    #[must_use]
    pub fn struck(&self) -> u64 {
        self.struck.load(Relaxed)
    }

    /// From now on everything passes, uncounted, until [`resume`](Self::resume).
    pub fn suspend(&self) {
        self.suspended.store(true, SeqCst);
    }

    /// Goes on counting and failing.
    pub fn resume(&self) {
        self.suspended.store(false, SeqCst);
    }

    /// Counts the operation and tells which fault strikes it.
    fn pass(&self, kind: OperationKind, block: Option<&str>) -> Option<Fault<'n>> {
        if self.suspended.load(SeqCst) {
            return None;
        }
        self.operations.fetch_add(1, Relaxed);
        let mut striking = None;
        for planned in &self.faults {
            if planned.fault.selector.selects(kind, block) {
                let occurrence = planned.occurrences.fetch_add(1, Relaxed).wrapping_add(1);
                if planned.fault.strikes(occurrence) {
                    striking = striking.or(Some(planned.fault));
                }
            }
        }
        if striking.is_some() {
            self.struck.fetch_add(1, Relaxed);
        }
        striking
    }

    fn carry_out<R>(
        &self,
        kind: OperationKind,
        block: Option<&str>,
        operation: impl FnOnce() -> Result<R, Errno>,
    ) -> Result<R, Errno> {
        let Some(fault) = self.pass(kind, block) else { return operation() };
        if fault.after_effect && may_fail_after_effect(kind) {
            let _ = operation();
        }
        Err(fault.errno)
    }
}

/// Makes operations fail as a [`FaultPlan`] says.
///
/// It wraps an `Os`, a `Driver`, or both at once (then it is a `Platform`). `F`
/// is a reference to the plan or an `Arc` of it, so halves that are wrapped
/// apart can still share one numbering.
#[derive(Debug, Clone, Copy)]
pub struct Faulty<T, F> {
    inner: T,
    plan: F,
}

impl<T, F: Deref> Faulty<T, F> {
    /// Fails what passes to `inner`.
    pub const fn new(inner: T, plan: F) -> Self {
        Faulty { inner, plan }
    }

    /// What is wrapped.
    pub const fn inner(&self) -> &T {
        &self.inner
    }
}

platform_of_itself!([T, F] Faulty<T, F>);

impl<'n, T: Os, F: Deref<Target = FaultPlan<'n>>> Os for Faulty<T, F> {
    fn page_size(&self) -> usize {
        self.inner.page_size()
    }

    fn map(&self, mapping: Mapping) -> Result<usize, Errno> {
        self.plan.carry_out(OperationKind::Map, None, || self.inner.map(mapping))
    }

    fn unmap(&self, address: usize, length: usize) -> Result<(), Errno> {
        self.plan.carry_out(OperationKind::Unmap, None, || self.inner.unmap(address, length))
    }

    fn protect(&self, address: usize, length: usize, allow: Protection) -> Result<(), Errno> {
        self.plan
            .carry_out(OperationKind::Protect, None, || self.inner.protect(address, length, allow))
    }

    fn advise(&self, address: usize, length: usize, advice: Advice) -> Result<(), Errno> {
        self.plan
            .carry_out(OperationKind::Advise, None, || self.inner.advise(address, length, advice))
    }

    fn bind(
        &self,
        address: usize,
        length: usize,
        policy: MemoryPolicy,
        nodes: &[u64],
    ) -> Result<(), Errno> {
        self.plan.carry_out(OperationKind::Bind, None, || {
            self.inner.bind(address, length, policy, nodes)
        })
    }

    fn read_file(
        &self,
        path: &CStr,
        into: &mut Vec<u8>,
        limit: usize,
        end: EndOfFile,
    ) -> Result<(), Errno> {
        self.plan.carry_out(OperationKind::ReadFile, None, || {
            self.inner.read_file(path, into, limit, end)
        })
    }

    fn list_folder(
        &self,
        path: &CStr,
        visit: &mut dyn FnMut(&[u8], FileKind) -> ControlFlow<()>,
    ) -> Result<(), Errno> {
        self.plan.carry_out(OperationKind::ListFolder, None, || self.inner.list_folder(path, visit))
    }

    fn now(&self, clock: Clock) -> u64 {
        self.inner.now(clock)
    }

    fn sleep(&self, ns: u64) {
        self.inner.sleep(ns);
    }

    fn futex_wait(
        &self,
        word: &AtomicU32,
        expected: u32,
        timeout: Option<u64>,
    ) -> Result<Wake, Errno> {
        self.plan.carry_out(OperationKind::FutexWait, None, || {
            self.inner.futex_wait(word, expected, timeout)
        })
    }

    fn futex_wake(&self, word: &AtomicU32, count: u32) {
        self.inner.futex_wake(word, count);
    }

    fn thread_id(&self) -> u32 {
        self.inner.thread_id()
    }

    fn process_id(&self) -> u32 {
        self.inner.process_id()
    }

    fn fork_word(&self) -> &AtomicU32 {
        self.inner.fork_word()
    }

    fn wmb_device(&self) {
        self.inner.wmb_device();
    }

    fn rmb_device(&self) {
        self.inner.rmb_device();
    }

    fn flush_wc(&self) {
        self.inner.flush_wc();
    }
}

impl<'n, T: Driver, F: Deref<Target = FaultPlan<'n>>> Driver for Faulty<T, F> {
    type Device = T::Device;

    fn open(&self, node: DeviceNode) -> Result<Self::Device, Errno> {
        self.plan.carry_out(OperationKind::open(node), None, || self.inner.open(node))
    }

    fn memory_file(&self, size: u64) -> Result<Self::Device, Errno> {
        self.plan.carry_out(OperationKind::MemoryFile, None, || self.inner.memory_file(size))
    }

    fn execute(&self, device: &Self::Device, call: &mut Call<'_, '_>) -> Result<u32, Errno> {
        self.plan
            .carry_out(OperationKind::Execute, Some(call.name), || self.inner.execute(device, call))
    }

    fn map(&self, device: &Self::Device, mapping: MapDevice) -> Result<usize, Errno> {
        self.plan.carry_out(OperationKind::MapDevice, None, || self.inner.map(device, mapping))
    }

    fn token(&self, device: &Self::Device) -> DeviceToken {
        self.inner.token(device)
    }

    fn close_inherited(&self, node: DeviceNode, token: DeviceToken) {
        self.inner.close_inherited(node, token);
    }

    fn adopt(&self, token: DeviceToken) -> Self::Device {
        self.inner.adopt(token)
    }

    fn release(&self, device: Self::Device) -> DeviceToken {
        self.inner.release(device)
    }
}

#[cfg(test)]
mod tests {
    use super::super::fake::{
        Fake, assert_transparent, execute_version, exercise, mapping, open_kfd,
    };
    use super::super::{DeviceNode, Driver, EndOfFile, OperationKind, Os, Pair, Platform};
    use super::{Fault, FaultPlan, Faulty, Selector, SyntaxFlaw};
    use crate::errno::Errno;

    use alloc::string::ToString;
    use alloc::sync::Arc;
    use alloc::vec::Vec;
    use core::ops::ControlFlow;

    /// Operations of `exercise` that can fail, in its order.
    const FALLIBLE: [&str; 15] = [
        "map",
        "unmap",
        "protect",
        "advise",
        "bind",
        "read_file",
        "list_folder",
        "futex_wait",
        "open-kfd",
        "open-render",
        "open-udmabuf",
        "memory_file",
        "GET_VERSION",
        "ARRAYS_LIKE",
        "map-device",
    ];

    #[test]
    fn hands_everything_on_without_faults() {
        assert_transparent(|fake| Faulty::new(fake, Arc::new(FaultPlan::new())));
        let plan = FaultPlan::parse("SVM#*=EIO, any#16=EIO map#0002=EIO").unwrap();
        let faulty = Faulty::new(Fake::new(), &plan);
        exercise(&faulty, &faulty);
        assert_eq!((plan.operations(), plan.struck()), (FALLIBLE.len() as u64, 0));
    }

    /// Does what `FALLIBLE` lists, in that order, and tells which failed.
    fn failures(platform: &Faulty<Pair<Fake, Fake>, &FaultPlan<'_>>) -> Vec<(usize, Errno)> {
        let (os, driver) = (platform.os(), platform.driver());
        let fake = &platform.inner().driver;
        let word = core::sync::atomic::AtomicU32::new(0);
        let node = |node| driver.open(node).map(drop);
        let mut results = [Ok(()); FALLIBLE.len()];
        results[0] = Os::map(os, mapping()).map(drop);
        results[1] = os.unmap(0, 1);
        results[2] = os.protect(0, 1, super::Protection::READ);
        results[3] = os.advise(0, 1, super::Advice::DoFork);
        results[4] = os.bind(0, 1, super::MemoryPolicy::Default, &[]);
        results[5] = os.read_file(c"/f", &mut Vec::new(), 9, EndOfFile::ShortRead);
        results[6] = os.list_folder(c"/f", &mut |_, _| ControlFlow::Break(()));
        results[7] = os.futex_wait(&word, 0, None).map(drop);
        results[8] = node(DeviceNode::Kfd);
        results[9] = node(DeviceNode::Render(128));
        results[10] = node(DeviceNode::Udmabuf);
        results[11] = driver.memory_file(0x5000).map(drop);
        let device = fake.adopt(super::DeviceToken(9));
        results[12] = execute_version(driver, &device).0.map(drop);
        let mut block = super::super::fake::ArraysLike::default();
        results[13] = super::super::fake::execute(driver, &device, &mut block, &mut []).map(drop);
        let mapping = super::MapDevice {
            placement: super::super::Placement::Anywhere,
            length: 1,
            protection: super::Protection::READ,
            offset: 0,
        };
        results[14] = Driver::map(driver, &device, mapping).map(drop);
        let failed = results.iter().enumerate();
        failed.filter_map(|(index, result)| result.err().map(|errno| (index, errno))).collect()
    }

    fn platform<'p>(plan: &'p FaultPlan<'p>) -> Faulty<Pair<Fake, Fake>, &'p FaultPlan<'p>> {
        let fake = Fake::new();
        Faulty::new(Pair { os: fake.clone(), driver: fake }, plan)
    }

    #[test]
    fn each_operation_of_both_seams_fails_by_its_index() {
        let mut failed = Vec::new();
        let mut k = 1;
        loop {
            let plan = FaultPlan::with(Fault::nth(Selector::Any, k, Errno::EIO)).unwrap();
            let platform = platform(&plan);
            failed.extend(failures(&platform));
            assert_eq!(plan.operations(), FALLIBLE.len() as u64);
            if plan.operations() < k {
                assert_eq!(plan.struck(), 0);
                break;
            }
            assert_eq!(plan.struck(), 1);
            k += 1;
        }
        let expected: Vec<_> = (0..FALLIBLE.len()).map(|index| (index, Errno::EIO)).collect();
        assert_eq!(failed, expected);
    }

    #[test]
    fn each_operation_fails_by_its_name_and_is_not_carried_out() {
        for (index, name) in FALLIBLE.iter().enumerate() {
            let selector = Selector::from_name(name).unwrap_or(Selector::Block(name));
            let plan = FaultPlan::with(Fault::nth(selector, 1, Errno::ENOMEM)).unwrap();
            let platform = platform(&plan);
            assert_eq!(failures(&platform), [(index, Errno::ENOMEM)]);

            let unharmed = FaultPlan::new();
            let bare = Faulty::new(Pair { os: Fake::new(), driver: Fake::new() }, &unharmed);
            failures(&bare);
            let asked = bare.inner().os.calls().len() + bare.inner().driver.calls().len();
            let missing = asked - platform.inner().os.calls().len();
            // An opening that failed has nothing to close, a listing nothing to stop.
            let expected = match *name {
                name if name.starts_with("open") => 2,
                "list_folder" | "memory_file" => 2,
                _ => 1,
            };
            assert_eq!(missing, expected, "{name}");
        }
    }

    #[test]
    fn classes_of_operations_fail_together() {
        for (text, expected) in [
            ("open#*=EMFILE", &[8, 9, 10][..]),
            ("open#2=EMFILE", &[9]),
            ("open#2+=EMFILE", &[9, 10]),
            ("memory_file#1=EMFILE", &[11]),
            ("ioctl#*=EMFILE", &[12, 13]),
            ("ioctl#2=EMFILE", &[13]),
            ("any#14+=EMFILE", &[13, 14]),
            ("unmap#1=EMFILE,ioctl#1=24 map-device#1+=EMFILE", &[1, 12, 14]),
        ] {
            let plan = FaultPlan::parse(text).unwrap();
            let expected: Vec<_> = expected.iter().map(|index| (*index, Errno::EMFILE)).collect();
            assert_eq!(failures(&platform(&plan)), expected, "{text}");
        }
    }

    #[test]
    fn a_fault_that_lasts_goes_on_and_one_that_does_not_ends() {
        let fake = Fake::new();
        for (text, expected) in [
            ("GET_VERSION#2=EIO", [Ok(0), Err(Errno::EIO), Ok(0), Ok(0)]),
            ("GET_VERSION#3+=EIO", [Ok(0), Ok(0), Err(Errno::EIO), Err(Errno::EIO)]),
            ("GET_VERSION#*=EIO", [Err(Errno::EIO); 4]),
        ] {
            let plan = FaultPlan::parse(text).unwrap();
            let faulty = Faulty::new(&fake, &plan);
            let device = open_kfd(&faulty);
            let results = [(); 4].map(|()| execute_version(&faulty, &device).0);
            assert_eq!(results, expected, "{text}");
        }
    }

    #[test]
    fn the_first_planned_fault_strikes_and_all_of_them_count() {
        let plan = FaultPlan::parse("any#1=EIO ioctl#1=EINTR ioctl#2=EAGAIN").unwrap();
        let faulty = Faulty::new(Fake::new(), &plan);
        let device = faulty.adopt(super::DeviceToken(0));
        assert_eq!(execute_version(&faulty, &device).0, Err(Errno::EIO));
        assert_eq!(execute_version(&faulty, &device).0, Err(Errno::EAGAIN));
        assert_eq!(execute_version(&faulty, &device).0, Ok(0));
        assert_eq!((plan.operations(), plan.struck()), (3, 2));
    }

    #[test]
    fn an_effect_happens_before_the_failure_where_that_is_legal() {
        for (after, minor) in [("", 0), ("after:", 0x1200_0000)] {
            let text = alloc::format!("GET_VERSION#1={after}EINTR");
            let plan = FaultPlan::parse(&text).unwrap();
            let faulty = Faulty::new(Fake::new(), &plan);
            let device = open_kfd(&faulty);
            let (result, block) = execute_version(&faulty, &device);
            assert_eq!((result, block.minor_version), (Err(Errno::EINTR), minor), "{text}");
            let executed = faulty.inner().calls().len() - 1;
            assert_eq!(executed, usize::from(minor != 0));
        }

        let plan = FaultPlan::parse("list_folder#1=after:EIO").unwrap();
        let faulty = Faulty::new(Fake::new(), &plan);
        let mut names = 0;
        let listed = faulty.list_folder(c"/f", &mut |_, _| {
            names += 1;
            ControlFlow::Continue(())
        });
        assert_eq!((listed, names), (Err(Errno::EIO), 3));
    }

    #[test]
    fn an_effect_that_nobody_could_undo_never_happens() {
        let fault = Fault::always(Selector::Any, Errno::EINTR).after_effect();
        let plan = FaultPlan::with(fault).unwrap();
        let faulty = Faulty::new(Fake::new(), &plan);
        assert_eq!(Os::map(&faulty, mapping()), Err(Errno::EINTR));
        assert_eq!(faulty.unmap(0, 1), Err(Errno::EINTR));
        assert_eq!(faulty.open(DeviceNode::Kfd).err(), Some(Errno::EINTR));
        let mut into = Vec::new();
        let read = faulty.read_file(c"/f", &mut into, 9, EndOfFile::ShortRead);
        assert_eq!((read, into.len()), (Err(Errno::EINTR), 0));
        assert_eq!(faulty.inner().calls(), Vec::<alloc::string::String>::new());
    }

    #[test]
    fn a_suspended_plan_neither_counts_nor_strikes() {
        let plan = FaultPlan::parse("unmap#1=EIO").unwrap();
        let faulty = Faulty::new(Fake::new(), &plan);
        plan.suspend();
        assert_eq!(faulty.unmap(0, 1), Ok(()));
        assert_eq!(plan.operations(), 0);
        plan.resume();
        assert_eq!(faulty.unmap(0, 1), Err(Errno::EIO));
        assert_eq!(plan.operations(), 1);
    }

    #[test]
    fn halves_wrapped_apart_share_one_numbering() {
        let fake = Fake::new();
        let plan = FaultPlan::parse("any#2=EIO").unwrap();
        let pair = Pair { os: Faulty::new(&fake, &plan), driver: Faulty::new(&fake, &plan) };
        assert_eq!(pair.os().unmap(0, 1), Ok(()));
        assert_eq!(pair.driver().open(DeviceNode::Kfd).err(), Some(Errno::EIO));
        assert_eq!(pair.os().unmap(0, 1), Ok(()));
    }

    #[test]
    fn text_goes_both_ways() {
        for (text, shown) in [
            ("GET_VERSION#1=EINTR", "GET_VERSION#1=EINTR"),
            ("open-kfd#3+=EMFILE", "open-kfd#3+=EMFILE"),
            ("ioctl#*=after:524", "ioctl#1+=after:524"),
            ("any#18446744073709551615=5", "any#18446744073709551615=EIO"),
        ] {
            let fault = Fault::parse(text).unwrap();
            assert_eq!(fault.to_string(), shown);
            assert_eq!(Fault::parse(shown), Ok(fault));
        }
        let fault = Fault::nth(Selector::Kind(OperationKind::ReadFile), 2, Errno::EIO);
        assert_eq!(Fault::parse("read_file#2=EIO"), Ok(fault));
        assert_eq!(
            Fault::parse("SVM#*=after:EIO"),
            Ok(Fault::always(Selector::Block("SVM"), Errno::EIO).after_effect())
        );
    }

    #[test]
    fn nonsense_is_refused_with_its_reason() {
        for (text, what) in [
            ("map", SyntaxFlaw::Form),
            ("map#1", SyntaxFlaw::Form),
            ("map=EIO", SyntaxFlaw::Form),
            ("#1=EIO", SyntaxFlaw::Operation),
            ("mop#1=EIO", SyntaxFlaw::Operation),
            ("now#1=EIO", SyntaxFlaw::Operation),
            ("close#1=EIO", SyntaxFlaw::Operation),
            ("Get_Version#1=EIO", SyntaxFlaw::Operation),
            ("GET_VERSIONS#1=EIO", SyntaxFlaw::Operation),
            ("map#=EIO", SyntaxFlaw::Count),
            ("map#0=EIO", SyntaxFlaw::Count),
            ("map#+=EIO", SyntaxFlaw::Count),
            ("map#+1=EIO", SyntaxFlaw::Count),
            ("map#1++=EIO", SyntaxFlaw::Count),
            ("map#*+=EIO", SyntaxFlaw::Count),
            ("map#-1=EIO", SyntaxFlaw::Count),
            ("map#18446744073709551616=EIO", SyntaxFlaw::Count),
            ("map#1=", SyntaxFlaw::Errno),
            ("map#1=ENOSUCH", SyntaxFlaw::Errno),
            ("map#1=0", SyntaxFlaw::Errno),
            ("map#1=4096", SyntaxFlaw::Errno),
            ("map#1=70000", SyntaxFlaw::Errno),
            ("map#1=EIO=EIO", SyntaxFlaw::Errno),
            ("map#1=after:", SyntaxFlaw::Errno),
            ("map#1=after:EINTR", SyntaxFlaw::AfterEffect),
            ("open#1=after:EINTR", SyntaxFlaw::AfterEffect),
            ("unmap#1=after:EINTR", SyntaxFlaw::AfterEffect),
        ] {
            let wrong = Fault::parse(text).unwrap_err();
            assert_eq!((wrong.text, wrong.what), (text, what));
        }
        let wrong = FaultPlan::parse("map#1=EIO, mop#1=EIO").unwrap_err();
        assert_eq!(wrong.to_string(), r#"fault "mop#1=EIO": no operation of this name can fail"#);
        assert!(FaultPlan::parse(" ,\n, ").is_ok());
    }

    #[test]
    fn any_text_is_read_or_refused() {
        // Every text of five pieces.
        let pieces = ["map", "SVM", "#", "*", "+", "=", "1", "EIO", "after:", "\u{fe0f}", ",", " "];
        let mut accepted = 0;
        for index in 0..pieces.len().pow(5) {
            let mut rest = index;
            let text: alloc::string::String = core::iter::repeat_with(|| {
                let piece = pieces[rest % pieces.len()];
                rest /= pieces.len();
                piece
            })
            .take(5)
            .collect();
            accepted += usize::from(Fault::parse(&text).is_ok());
        }
        // map and SVM; 1 and *; 1 and EIO.
        assert_eq!(accepted, 2 * 2 * 2);
    }
}
