//! What one process has of the library: its residue in the kernel, the primary
//! context with its count of opens, the secondary contexts, and the fork rule.
//!
//! [`Process`] is a plain value without a global; the C library keeps one in a
//! static, a Rust program wherever it likes. It owns the process's residue
//! rather than borrowing it, because residue and contexts have to be forgotten
//! together in a forked child.
//!
//! # Fork
//! Every call first compares the [fork word](crate::seam::Os::fork_word), before
//! it takes any lock. In a forked child the word is zero, so every call answers
//! NOT_OPENED until [`Process::open_primary`], whose first caller closes the
//! inherited devices from a fixed list and starts over with a new state. The
//! old one, and all that hangs on it, is abandoned unvisited: another thread of
//! the parent may have been half-way through any of it.
//!
//! A vfork or CLONE_VM child shares memory with its parent, so it must change
//! nothing, and the kernel refuses it anyway (EBADF, kfd_chardev.c). Opens,
//! closes and acquires compare the process id and answer NOT_OPENED; any other
//! call that reaches the driver gets EBADF there and answers the same. A query
//! that is answered from memory alone is answered: telling the child apart would
//! cost each of them a system call.
//!
//! # Lock order
//! `State::opens`, then a context's own locks (`context`).
//!
//! # Safety
//! This is one of the few modules of `core` with `unsafe` code. The argument:
//! `state` is shared and never written as a whole, except by the one thread that
//! moved the fork word from zero to CLAIMED. A zero word means that this process
//! has not used `state` since its birth: in a fresh process nobody has, and in a
//! forked child only the parent has; whoever sees CLAIMED waits, and whoever
//! sees READY comes after the write. A [`Guard`] that was alive in the parent's
//! forking thread may still be alive in the child: it keeps pointing into boxes
//! that are never freed there, and its drop compares the birth number before it
//! touches the state.
#![allow(unsafe_code)]

mod descriptors;
mod files;
pub(crate) mod io_buffer;
pub(crate) mod mmio;
mod residue;
mod slot;

use core::cell::UnsafeCell;
use core::num::NonZeroUsize;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

pub(crate) use descriptors::Descriptors;
pub(crate) use files::{Device, Files, GPUS_MAX, Opened, Render};
use residue::ProcessResidue;
use slot::Slot;

use crate::context::{
    Channel, ClockCounters, Context, Machine, Options, TileConfig, Version, clock_counters,
    tile_config,
};
use crate::error::{Error, Failure, Failures, Object, Operation, Status};
use crate::fallible::try_box;
use crate::lock::Lock;
use crate::log::{error, info};
use crate::memory::{Access, Memory};
use crate::seam::{DeviceNode, Driver, Os, Platform};

/// The fork word of a process that has not opened the library yet.
const FRESH: u32 = 0;
/// Somebody is starting over.
const CLAIMED: u32 = 1;
/// The state belongs to this process.
const READY: u32 = 2;

/// How many contexts a process can have open: the primary and 15 others.
pub const CONTEXTS_MAX: usize = 16;

/// What [`Process::open_primary`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opening {
    /// Opened it.
    First,
    /// It was open; the opening is counted.
    Again,
}

/// Names an open context. A handle of a closed context is recognised and refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ContextHandle(NonZeroUsize);

impl ContextHandle {
    /// The handle of the primary context, in every process.
    pub const PRIMARY: ContextHandle = ContextHandle::new(0, 0);

    /// Bits: generation (24 of them), slot number (4), and 1000 so that it is
    /// never null and never looks like an aligned small pointer.
    const fn new(slot: usize, generation: u32) -> ContextHandle {
        let bits = (generation as usize & 0xff_ffff) << 8 | (slot & 0xf) << 4 | 8;
        match NonZeroUsize::new(bits) {
            Some(bits) => ContextHandle(bits),
            None => ContextHandle(NonZeroUsize::MAX),
        }
    }

    fn slot(self) -> usize {
        self.0.get() >> 4 & 0xf
    }

    /// Whether it is that of the secondary context in a slot.
    fn names(self, slot: usize, generation: u32) -> bool {
        slot != 0 && self == ContextHandle::new(slot, generation)
    }

    /// The number that stands for it in the C ABI.
    #[must_use]
    pub const fn into_raw(self) -> usize {
        self.0.get()
    }

    /// The handle with this number; `None` for 0.
    #[must_use]
    pub const fn from_raw(raw: usize) -> Option<ContextHandle> {
        match NonZeroUsize::new(raw) {
            Some(raw) => Some(ContextHandle(raw)),
            None => None,
        }
    }
}

/// Everything that a forked child must not look at.
struct State<P: Platform> {
    /// The process that this belongs to; 0 before the first open.
    owner: AtomicU32,
    /// How often the primary context is open. The lock orders every open and close.
    opens: Lock<u32>,
    /// The primary context in the first, secondary ones in the others.
    slots: [Slot<Context<P>>; CONTEXTS_MAX],
    residue: ProcessResidue<P>,
    /// Failures without a context.
    failures: Failures,
}

impl<P: Platform> State<P> {
    const fn new() -> State<P> {
        State {
            owner: AtomicU32::new(0),
            opens: Lock::new(0),
            slots: [const { Slot::new() }; CONTEXTS_MAX],
            residue: ProcessResidue::new(),
            failures: Failures::new(),
        }
    }

    /// The slot of a handle.
    #[inline(never)]
    fn slot(&self, handle: ContextHandle) -> Option<&Slot<Context<P>>> {
        self.slots.get(handle.slot())
    }
}

/// The library in one process. One for each [fork word](Os::fork_word).
pub struct Process<P: Platform> {
    platform: P,
    /// Outside `state`, because a forked child does read it.
    descriptors: Descriptors,
    /// How many failures were remembered since the process, or its parent, began.
    failed: AtomicU64,
    state: UnsafeCell<State<P>>,
}

// SAFETY: `state` is shared by reference except for the one write described in the module's
// argument, and everything in it is shared safely if devices and platform are.
unsafe impl<P: Platform + Sync> Sync for Process<P> where Device<P>: Send + Sync {}

impl<P: Platform> Process<P> {
    /// A process that has opened nothing yet.
    pub const fn new(platform: P) -> Process<P> {
        Process {
            platform,
            descriptors: Descriptors::new(),
            failed: AtomicU64::new(0),
            state: UnsafeCell::new(State::new()),
        }
    }

    /// The platform below.
    pub fn platform(&self) -> &P {
        &self.platform
    }

    fn os(&self) -> &P::Os {
        self.platform.os()
    }

    fn state(&self) -> &State<P> {
        // SAFETY: nobody holds a `&mut`; the one write comes before READY (module's argument), and
        // before that only atomics that are zero in either version are looked at.
        unsafe { &*self.state.get() }
    }

    /// Whether the state belongs to this process.
    #[inline]
    fn is_ready(&self) -> bool {
        self.os().fork_word().load(Ordering::Acquire) == READY
    }

    /// The state, if it belongs to this process or to the parent of a vfork child.
    #[inline]
    fn ready(&self) -> Result<&State<P>, Error> {
        if self.is_ready() { Ok(self.state()) } else { Err(Error::not_open()) }
    }

    /// The same, and not in a child that shares memory with its parent.
    fn owned(&self) -> Result<&State<P>, Error> {
        let state = self.ready()?;
        if state.owner.load(Ordering::Acquire) != self.os().process_id() {
            return Err(Error::not_open());
        }
        Ok(state)
    }

    /// Makes the state this process's own, if it is not yet.
    fn claim(&self) {
        let word = self.os().fork_word();
        loop {
            match word.compare_exchange(FRESH, CLAIMED, Ordering::Acquire, Ordering::Acquire) {
                Ok(_) => break,
                Err(READY) => return,
                Err(_) => {
                    let _ = self.os().futex_wait(word, CLAIMED, None);
                }
            }
        }
        for (node, token) in self.descriptors.drain() {
            self.platform.driver().close_inherited(node, token);
        }
        // Where nobody was the owner yet, nothing but failures can have been written.
        if self.state().owner.load(Ordering::Acquire) != 0 {
            // SAFETY: the fork word was zero and is CLAIMED by this thread alone; nothing of the
            // old state is dropped (module's argument).
            unsafe { self.state.get().write(State::new()) };
        }
        self.state().owner.store(self.os().process_id(), Ordering::Release);
        word.store(READY, Ordering::Release);
        self.os().futex_wake(word, u32::MAX);
    }

    /// Makes this process the owner of a state in which nothing was ever open: a
    /// vfork child may have been the first to try, in vain. The caller holds the
    /// lock of opens.
    fn take_over(&self, state: &State<P>, opens: u32) -> Result<(), Error> {
        let process = self.os().process_id();
        if state.owner.load(Ordering::Acquire) == process {
            return Ok(());
        }
        if opens != 0 || state.residue.files.kfd().is_some() {
            return Err(Error::not_open());
        }
        state.owner.store(process, Ordering::Release);
        Ok(())
    }

    /// Opens the primary context, or counts one more opening of it.
    ///
    /// `options` is asked only by the first.
    ///
    /// # Errors
    /// NOT_OPENED when `/dev/kfd` does not open (NO_MEMORY after ENOMEM), and in a
    /// vfork child; ERROR when GET_VERSION fails; DRIVER_MISMATCH for another major
    /// version. Nothing is open and nothing is counted then.
    pub fn open_primary(
        &self,
        options: impl FnOnce() -> Result<Options, Error>,
    ) -> Result<Opening, Error> {
        self.claim();
        let state = self.ready()?;
        let mut opens = state.opens.acquire(self.os());
        self.take_over(state, *opens)?;
        if *opens > 0 {
            *opens = opens.checked_add(1).ok_or(Error::library(
                Status::OUT_OF_RESOURCES,
                Operation::OpenDevice,
                Object::Device(DeviceNode::Kfd),
            ))?;
            return Ok(Opening::Again);
        }
        let options = options()?;
        let logger = options.logger;
        let context =
            Context::open_primary(&self.platform, &state.residue.files, &self.descriptors, options)
                .inspect_err(|error| error!(logger, "{}", error))?;
        let Version { major, minor } = context.version();
        info!(logger, "KFD interface {}.{}", major, minor);
        state.slots[0].publish(try_box(context)?);
        *opens = 1;
        Ok(Opening::First)
    }

    /// Takes one opening of the primary context back; with the last one it closes.
    ///
    /// # Errors
    /// NOT_OPENED when it is not open in this process.
    pub fn close_primary(&self) -> Result<(), Error> {
        let state = self.owned()?;
        let mut opens = state.opens.acquire(self.os());
        match *opens {
            0 => return Err(Error::not_open()),
            1 => self.retire(&state.slots[0]),
            _ => {}
        }
        *opens = opens.saturating_sub(1);
        Ok(())
    }

    /// Opens a secondary context; the primary one must be open.
    ///
    /// # Errors
    /// NOT_OPENED; NOT_SUPPORTED when the kernel has no CREATE_PROCESS;
    /// OUT_OF_RESOURCES when [`CONTEXTS_MAX`] contexts are open. Nothing is open then.
    pub fn open_secondary(&self, options: Options) -> Result<ContextHandle, Error> {
        let state = self.owned()?;
        let opens = state.opens.acquire(self.os());
        if *opens == 0 {
            return Err(Error::not_open());
        }
        let free = state.slots.iter().enumerate().skip(1).find(|(_, slot)| !slot.is_taken());
        let Some((number, slot)) = free else {
            return Err(Error::library(
                Status::OUT_OF_RESOURCES,
                Operation::OpenDevice,
                Object::Device(DeviceNode::Kfd),
            ));
        };
        let context = Context::open_secondary(&self.platform, &self.descriptors, options, number)?;
        Ok(ContextHandle::new(number, slot.publish(try_box(context)?)))
    }

    /// Closes a secondary context.
    ///
    /// # Errors
    /// NOT_OPENED in another process than the opener's; INVALID_PARAMETER for the
    /// primary context and for a handle that names no open one.
    pub fn close_secondary(&self, handle: ContextHandle) -> Result<(), Error> {
        let state = self.owned()?;
        let _opens = state.opens.acquire(self.os());
        let number = handle.slot();
        let slot = state.slots.get(number).ok_or(Error::argument(1))?;
        if number == 0 || !slot.is_taken() || !handle.names(number, slot.generation()) {
            return Err(Error::argument(1));
        }
        self.retire(slot);
        Ok(())
    }

    /// Closes the context in a slot. The caller holds the lock of opens.
    fn retire(&self, slot: &Slot<Context<P>>) {
        let files = &self.state().residue.files;
        let shut_down = |context: &Context<P>| {
            context.shut_down(&self.platform, files, &self.descriptors);
        };
        if let Some(context) = slot.retire(self.os(), shut_down) {
            for context in context {
                context.close(&self.platform, files, &self.descriptors);
            }
        }
    }

    /// Enters the primary context for one call.
    ///
    /// # Errors
    /// NOT_OPENED.
    #[inline]
    pub fn primary(&self) -> Result<Guard<'_, P>, Error> {
        self.enter(ContextHandle::PRIMARY)
    }

    /// Enters a context for one call.
    ///
    /// # Errors
    /// NOT_OPENED when nothing is open in this process; INVALID_PARAMETER for a
    /// handle that names no open context.
    #[inline]
    pub fn enter(&self, handle: ContextHandle) -> Result<Guard<'_, P>, Error> {
        self.enter_if_open(handle).ok_or_else(|| self.closed(handle))
    }

    /// Enters a context for one call, if it is open; if not, [`Process::closed`] tells
    /// why.
    #[inline(always)]
    pub fn enter_if_open(&self, handle: ContextHandle) -> Option<Guard<'_, P>> {
        if !self.is_ready() {
            return None;
        }
        let state = self.state();
        let primary = handle == ContextHandle::PRIMARY;
        let slot = if primary { &state.slots[0] } else { state.slot(handle)? };
        let context = slot.enter(self.os())?;
        let owner = state.owner.load(Ordering::Relaxed);
        let guard = Guard { process: self, slot, context, owner };
        if !primary && !handle.names(handle.slot(), slot.generation()) {
            return None;
        }
        Some(guard)
    }

    /// The failure of a call on a handle that names no open context: as of
    /// [`Process::enter`].
    #[cold]
    pub fn closed(&self, handle: ContextHandle) -> Error {
        if handle.slot() == 0 || !self.is_ready() { Error::not_open() } else { Error::argument(1) }
    }

    /// Remembers a failure of the calling thread, in the context if it has one.
    ///
    /// Returns whether there was a context, which has told its log of the failure.
    pub fn record(&self, handle: Option<ContextHandle>, error: &Error) -> bool {
        let thread = self.os().thread_id();
        // A vfork child, too, may write here: atomics, keyed by thread.
        let state = self.state();
        let sequence = self.failed.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        match handle.and_then(|handle| self.enter(handle).ok()) {
            Some(guard) => {
                error!(guard.context.options().logger, "{}", error);
                guard.context.failures().record(thread, sequence, error);
                true
            }
            None => {
                state.failures.record(thread, sequence, error);
                false
            }
        }
    }

    /// The calling thread's newest failure in the context, or outside any.
    #[must_use]
    pub fn newest_failure(&self, handle: Option<ContextHandle>) -> Option<Failure> {
        let thread = self.os().thread_id();
        match handle {
            Some(handle) => self.enter(handle).ok()?.context.failures().newest(thread),
            None => self.state().failures.newest(thread),
        }
    }
}

/// The right to use an open context for one call; it cannot close meanwhile.
pub struct Guard<'a, P: Platform> {
    process: &'a Process<P>,
    slot: &'a Slot<Context<P>>,
    context: &'a Context<P>,
    /// The process that entered.
    owner: u32,
}

impl<P: Platform> Drop for Guard<'_, P> {
    fn drop(&mut self) {
        // Not in a child that was forked meanwhile: the count is the parent's.
        if self.process.is_ready()
            && self.process.state().owner.load(Ordering::Relaxed) == self.owner
        {
            self.slot.leave(self.process.os());
        }
    }
}

impl<'a, P: Platform> Guard<'a, P> {
    pub(crate) fn os(&self) -> &P::Os {
        self.process.os()
    }

    /// What the context knows of its memory.
    pub(crate) fn memory_books(&self) -> &Memory {
        self.context.memory()
    }

    /// The context's memory, for one call.
    #[inline]
    pub(crate) fn memory(&self) -> Access<'_, P> {
        Access::new(self.channel(), self.context)
    }

    /// The context itself.
    #[inline]
    pub(crate) fn context(&self) -> &'a Context<P> {
        self.context
    }

    /// The way to the driver.
    #[inline]
    pub(crate) fn channel(&self) -> Channel<'_, P> {
        let state = self.process.state();
        self.context.channel(
            &self.process.platform,
            &state.residue.files,
            &self.process.descriptors,
        )
    }

    /// Fails in a child that shares memory with its parent. Requests of render nodes need
    /// it: their driver, unlike KFD, serves whoever has the file.
    pub(crate) fn owned(&self) -> Result<(), Error> {
        self.process.owned().map(drop)
    }

    /// The version of the driver's interface, as the open found it.
    #[must_use]
    pub fn version(&self) -> Version {
        self.context.version()
    }

    /// Reads the topology and binds the address space of every GPU that the
    /// context uses; does nothing while what it knows is unchanged.
    ///
    /// Five system calls at most when nothing has changed.
    ///
    /// # Errors
    /// ERROR or NO_MEMORY with the reason; NOT_OPENED in a vfork child. What was
    /// known before stays known.
    pub fn acquire_machine(&self) -> Result<(), Error> {
        self.acquire_and_look(|_| Ok(()))
    }

    /// The same, and a look at what was acquired, before another thread can
    /// release it. `look` is bound as in [`Guard::machine`].
    ///
    /// # Errors
    /// As [`Guard::acquire_machine`], and what `look` answers.
    pub fn acquire_and_look<R>(
        &self,
        look: impl FnOnce(&Machine) -> Result<R, Error>,
    ) -> Result<R, Error> {
        self.process.owned()?;
        let memory = self.context.memory();
        self.context.machine().acquire(self.channel(), self.context.options(), |machine| {
            memory.learn(machine);
            look(machine)
        })
    }

    /// Forgets the topology. Render nodes stay open, their GPUs bound.
    ///
    /// # Errors
    /// NOT_OPENED in a vfork child.
    pub fn release_machine(&self) -> Result<(), Error> {
        self.process.owned()?;
        self.context.machine().release(self.channel());
        Ok(())
    }

    /// Looks at the machine, without a system call. `look` runs under a lock: it
    /// copies what it needs and calls nothing of the library.
    ///
    /// # Errors
    /// INVALID_NODE_UNIT when none was acquired; what `look` answers.
    pub fn machine<R>(&self, look: impl FnOnce(&Machine) -> Result<R, Error>) -> Result<R, Error> {
        self.context.machine().look(self.channel(), look)
    }

    /// The render node of a GPU, by its minor number, to whose file its address space is
    /// bound.
    ///
    /// # Errors
    /// INVALID_NODE_UNIT, also for a CPU node.
    pub fn render_minor(&self, node: u32) -> Result<u32, Error> {
        self.machine(|machine| machine.gpu(node).map(|gpu| gpu.drm_render_minor))
    }

    /// Reads the clocks of a node, the GPU's clock 0 for a CPU node.
    ///
    /// # Errors
    /// INVALID_NODE_UNIT; ERROR with the driver's errno.
    pub fn clock_counters(&self, node: u32) -> Result<ClockCounters, Error> {
        let gpu_id = self.machine(|machine| Ok(machine.node(node)?.gpu_id))?;
        clock_counters(&self.channel(), gpu_id)
    }

    /// A GPU's tiling modes, at most so many of each kind, and its address
    /// configuration.
    ///
    /// # Errors
    /// INVALID_NODE_UNIT, also for a CPU node; ERROR with the driver's errno.
    pub fn tile_config(
        &self,
        node: u32,
        tile_modes: u32,
        macro_tile_modes: u32,
    ) -> Result<TileConfig, Error> {
        let gpu_id = self.machine(|machine| machine.gpu(node).map(|gpu| gpu.gpu_id))?;
        tile_config(&self.channel(), gpu_id, tile_modes, macro_tile_modes)
    }
}
