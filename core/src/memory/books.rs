//! The books of a context's memory: objects, registrations, free addresses.
//!
//! One lock guards them. It is held for look-ups and changes of the books, never
//! across a system call. A thread that changes what an object is mapped on makes
//! it [`State::Busy`], drops the lock, calls the driver, and takes the lock again
//! to write down what has become of it. Others that want the same object wait on
//! [`Memory::turn`]; others that want another one do not.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::free_space::FreeSpace;
use super::gem::Gem;
use super::gpu_set::GpuSet;
use super::node_sets::NodeSets;
use super::object::{Draft, Handles, Home, Object, Span, State};
use super::objects::{Objects, Placed};
use super::regions::Regions;
use super::tree::{Place, Summary, Tree};
use crate::context::{Machine, Options, UdmabufPolicy};
use crate::error::Error;
use crate::lock::{Guard, Lock};
use crate::process::GPUS_MAX;
use crate::seam::{Advice, Os};
use crate::set_once::SetOnce;

/// Where the windows of handles begin: above every address of a process
/// (5-level paging ends at 2^56).
const WINDOWS: u64 = 1 << 56;

/// The length of a context's window of handles. No two contexts share one, so
/// one's handle is never another's.
const WINDOW: u64 = 1 << 47;

/// Memory of the caller that was registered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum User {
    /// Under a buffer of the driver: the key of its object.
    Pinned(u64),
    /// By attributes of the driver.
    Attributed(Attributed),
}

/// A registration by attributes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Attributed {
    /// When it was made: where several overlap, the newest counts.
    pub(super) order: u64,
    /// Register calls that an equal number of deregister calls must meet.
    pub(super) count: u32,
    pub(super) coherent: bool,
    pub(super) extended_coherent: bool,
    /// The GPUs that were let in.
    pub(super) granted: GpuSet,
}

/// The highest address that a registration below ends at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct End(pub(super) u64);

impl Summary<(u64, u64), User> for End {
    const NONE: End = End(0);

    fn of(&(address, size): &(u64, u64), _: &User) -> End {
        End(address.saturating_add(size))
    }

    fn join(self, other: End) -> End {
        End(u64::max(self.0, other.0))
    }
}

/// The scratch addresses of a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Scratch {
    pub(super) span: Span,
    pub(super) size: u64,
    /// Nobody may put memory behind it any more.
    pub(super) dying: bool,
}

/// The aperture of a GPU that no CPU sees.
#[derive(Debug)]
pub(super) struct Gpuvm {
    /// What the GPU's addresses are relative to.
    pub(super) base: u64,
    pub(super) space: FreeSpace,
}

/// Everything that the lock guards.
#[derive(Debug)]
pub(super) struct Books {
    pub(super) objects: Objects,
    /// By address and size, as the caller gave them.
    pub(super) users: Tree<(u64, u64), User, End>,
    pub(super) device: Regions,
    pub(super) host: Regions,
    pub(super) window: FreeSpace,
    /// The apertures of GPUs that do not share the process's addresses.
    pub(super) gpuvm: [Option<Gpuvm>; GPUS_MAX],
    pub(super) scratch: [Option<Scratch>; GPUS_MAX],
    /// Registrations by attributes so far.
    pub(super) orders: u64,
    /// Threads that wait for an object.
    waiters: u32,
    /// Mappings of device memory that only a debugger needs.
    pub(super) debugger_mappings: u32,
    /// Mappings that a free could not take down; tried again by later ones.
    pub(super) aside: Vec<(u64, u64)>,
}

/// A context's memory.
#[derive(Debug)]
pub(crate) struct Memory {
    books: Lock<Books>,
    /// Changes whenever an object is free again and somebody waits.
    turn: AtomicU32,
    pub(super) node_sets: NodeSets,
    /// Lock order: before the books; held while attributes of the caller's pages are
    /// changed, across the request. Registrations share pages, so the driver must
    /// hear of them in the order of the books; it takes one request after the other
    /// anyway (svm_range_set_attr, kfd_svm.c). Queries never wait for it.
    pub(super) attributing: Lock<()>,
    /// Lock order: last; held while an array of nodes is made.
    pub(super) making_sets: Lock<()>,
    /// The kernel's ids of the GPUs, in the kernel's order.
    pub(super) gpu_ids: SetOnce<[u32; GPUS_MAX]>,
    /// The topology that public node ids are of.
    pub(super) generation: AtomicU64,
    /// The driver refused memory of the process once: it is not tried again.
    pub(super) userptr_refused: AtomicU32,
    /// Buffer objects, which have a lock of their own.
    pub(super) gem: Gem,
    /// Whether memory of a GPU may have to be something else.
    pub(super) diverted: bool,
}

impl Memory {
    /// The memory of the context in this slot of the process.
    pub(crate) fn new(slot: usize, options: &Options) -> Result<Memory, Error> {
        let mut window = FreeSpace::new();
        window.add(WINDOWS.saturating_add(WINDOW.saturating_mul(slot as u64)), WINDOW)?;
        Ok(Memory {
            books: Lock::new(Books {
                objects: Objects::new(),
                users: Tree::new(),
                device: Regions::new(&[]),
                host: Regions::new(&[Advice::DontFork, Advice::NoHugePage]),
                window,
                gpuvm: [const { None }; GPUS_MAX],
                scratch: [None; GPUS_MAX],
                orders: 0,
                waiters: 0,
                debugger_mappings: 0,
                aside: Vec::new(),
            }),
            turn: AtomicU32::new(0),
            node_sets: NodeSets::new(),
            attributing: Lock::new(()),
            making_sets: Lock::new(()),
            gpu_ids: SetOnce::new(),
            generation: AtomicU64::new(0),
            userptr_refused: AtomicU32::new(0),
            gem: Gem::new(slot),
            diverted: options.zero_frame_buffer || options.udmabuf != UdmabufPolicy::Off,
        })
    }

    /// Notes what an acquire found.
    pub(crate) fn learn(&self, machine: &Machine) {
        let mut gpu_ids = [0; GPUS_MAX];
        for (gpu_id, gpu) in gpu_ids.iter_mut().zip(machine.gpus()) {
            *gpu_id = gpu.gpu_id;
        }
        // The kernel's list never changes: a later acquire would find the same.
        let _ = self.gpu_ids.set(gpu_ids);
        self.generation.store(machine.snapshot().generation(), Ordering::Relaxed);
    }

    #[inline]
    pub(super) fn lock<'a, O: Os>(&'a self, os: &'a O) -> Guard<'a, Books, O> {
        self.books.acquire(os)
    }

    /// Finds an object and waits until nobody changes it.
    #[inline]
    pub(super) fn settled<'a, O: Os>(
        &'a self,
        os: &'a O,
        books: Guard<'a, Books, O>,
        find: impl Fn(&Books) -> Option<Place>,
    ) -> (Guard<'a, Books, O>, Option<Place>) {
        let place = find(&books);
        self.settled_from(os, books, place, find)
    }

    /// The same for an object that was found already.
    #[inline]
    pub(super) fn settled_from<'a, O: Os>(
        &'a self,
        os: &'a O,
        books: Guard<'a, Books, O>,
        place: Option<Place>,
        find: impl Fn(&Books) -> Option<Place>,
    ) -> (Guard<'a, Books, O>, Option<Place>) {
        match place.map(|place| books.state_of(place)) {
            Some(State::Live) | None => (books, place),
            // Being made: not there yet for anybody else.
            Some(State::Reserved | State::Vacant) => (books, None),
            Some(State::Busy) => self.wait_for_turn(os, books, find),
        }
    }

    #[cold]
    fn wait_for_turn<'a, O: Os>(
        &'a self,
        os: &'a O,
        mut books: Guard<'a, Books, O>,
        find: impl Fn(&Books) -> Option<Place>,
    ) -> (Guard<'a, Books, O>, Option<Place>) {
        loop {
            let turn = self.turn.load(Ordering::Relaxed);
            books.waiters = books.waiters.saturating_add(1);
            drop(books);
            let _ = os.futex_wait(&self.turn, turn, None);
            books = self.lock(os);
            books.waiters = books.waiters.saturating_sub(1);
            let place = find(&books);
            match place.map(|place| books.state_of(place)) {
                Some(State::Live) | None => return (books, place),
                Some(State::Reserved | State::Vacant) => return (books, None),
                Some(State::Busy) => {}
            }
        }
    }

    /// Lets go of the books, and wakes those who wait for an object.
    #[inline]
    pub(super) fn unlock<O: Os>(&self, os: &O, books: Guard<'_, Books, O>) {
        let waiters = books.waiters;
        if waiters != 0 {
            self.turn.fetch_add(1, Ordering::Relaxed);
        }
        drop(books);
        if waiters != 0 {
            os.futex_wake(&self.turn, u32::MAX);
        }
    }

    /// The kernel's ids of the GPUs of a set, ascending by place. `room` is used
    /// where they do not lie side by side in the kernel's list.
    #[inline(always)]
    pub(super) fn gpu_ids_of<'a>(&'a self, gpus: GpuSet, room: &'a mut GpuIds) -> &'a [u32] {
        let Some(all) = self.gpu_ids.get() else { return &[] };
        if let Some(run) = gpus.run() {
            return all.get(run).unwrap_or_default();
        }
        scattered(all, gpus, room.get_or_insert([0; GPUS_MAX]))
    }
}

/// Writes the ids of a set into `room`.
#[cold]
fn scattered<'a>(all: &[u32], gpus: GpuSet, room: &'a mut [u32; GPUS_MAX]) -> &'a [u32] {
    let mut count = 0_usize;
    for (place, to) in gpus.places().zip(&mut *room) {
        *to = all.get(usize::from(place)).copied().unwrap_or(0);
        count = count.saturating_add(1);
    }
    room.get(..count).unwrap_or_default()
}

/// Room for the ids of any set of GPUs.
pub(super) type GpuIds = Option<[u32; GPUS_MAX]>;

impl Books {
    /// How far an object has come.
    fn state_of(&self, place: Place) -> State {
        self.objects.at(place).map_or(State::Vacant, |(_, object)| object.state)
    }

    fn space(&mut self, home: Home) -> Option<&mut FreeSpace> {
        match home {
            Home::Device => Some(&mut self.device.space),
            Home::Host => Some(&mut self.host.space),
            Home::Window => Some(&mut self.window),
            Home::Gpuvm(place) => {
                let gpuvm = self.gpuvm.get_mut(usize::from(place))?.as_mut()?;
                Some(&mut gpuvm.space)
            }
            Home::Own | Home::Borrowed => None,
        }
    }

    /// Gives addresses back to where they came from. Not for mappings of their own.
    fn give(&mut self, span: Span) {
        if let Some(space) = self.space(span.home) {
            space.give(span.start, span.length);
        }
    }

    /// Puts an object at free addresses of a home; none when it has no such.
    ///
    /// # Errors
    /// NO_MEMORY for the books.
    pub(super) fn place(
        &mut self,
        home: Home,
        length: u64,
        alignment: u64,
        draft: &Draft,
    ) -> Result<Option<Placed>, Error> {
        if let Some(placed) = self.objects.revive(home, length, alignment, draft) {
            return Ok(Some(placed));
        }
        self.objects.reserve_one()?;
        let Some(space) = self.space(home) else { return Ok(None) };
        let start = match space.take(length, alignment)? {
            Some(start) => start,
            None => {
                self.vacate_all();
                let Some(space) = self.space(home) else { return Ok(None) };
                let Some(start) = space.take(length, alignment)? else { return Ok(None) };
                start
            }
        };
        Ok(Some(self.objects.insert(draft.at(Span::of(home, start, length)))?))
    }

    /// Puts an object at exactly these addresses of a home, if they are free.
    ///
    /// # Errors
    /// NO_MEMORY for the books.
    pub(super) fn place_at(&mut self, span: Span, draft: &Draft) -> Result<Option<Placed>, Error> {
        self.objects.reserve_one()?;
        self.vacate_all();
        let Some(space) = self.space(span.home) else { return Ok(None) };
        if !space.take_at(span.start, span.length)? {
            return Ok(None);
        }
        Ok(Some(self.objects.insert(draft.at(span))?))
    }

    /// Ends an object whose addresses can be used again. Not for those with a
    /// mapping of their own.
    #[inline(always)]
    pub(super) fn retire(&mut self, place: Place) {
        if let Some(span) = self.objects.retire(place) {
            self.give(span);
        }
    }

    /// Gives the addresses of all vacancies back.
    pub(super) fn vacate_all(&mut self) {
        for span in self.objects.vacate_all() {
            self.give(span);
        }
    }

    /// Makes an object busy and takes its handles, for one thread.
    #[inline(always)]
    pub(super) fn take_handles(&mut self, place: Place) -> Handles {
        match self.objects.value_mut(place) {
            Some(object) => {
                object.state = State::Busy;
                core::mem::replace(&mut object.handles, Handles::None)
            }
            None => Handles::None,
        }
    }

    /// Ends what [`Books::take_handles`] began.
    #[inline(always)]
    pub(super) fn put_handles(&mut self, place: Place, handles: Handles) -> Option<&mut Object> {
        let object = self.objects.value_mut(place)?;
        object.handles.replace(handles);
        object.state = State::Live;
        Some(object)
    }

    /// The object with this first address, or with its GPU address in the page
    /// where registered memory begins.
    #[inline]
    pub(super) fn starting_at(&self, address: u64, page: u64) -> Option<Place> {
        self.objects.find(address & !page.wrapping_sub(1))
    }

    /// The registration of this address: of exactly this size if there is one,
    /// else the largest.
    #[inline]
    pub(super) fn user_at(&self, address: u64, size: u64) -> Option<((u64, u64), User)> {
        if self.users.len() == 0 {
            return None;
        }
        let exact = self.users.find((address, size)).filter(|_| size != 0);
        let place = match exact {
            Some(place) => place,
            None => self.users.floor((address, u64::MAX))?,
        };
        let (key, &user) = self.users.at(place)?;
        (key.0 == address).then_some((key, user))
    }

    /// The object under memory of the caller that is registered with this size.
    pub(super) fn pinned(&self, address: u64, size: u64) -> Option<Place> {
        match *self.users.at(self.users.find((address, size))?)?.1 {
            User::Pinned(key) => self.objects.find(key),
            User::Attributed(_) => None,
        }
    }

    /// The object around an address, by the caller's or the GPU's addresses.
    pub(super) fn around(&self, address: u64) -> Option<Place> {
        if self.users.len() != 0 {
            if let Some(place) = self.registered_around(address) {
                return Some(place);
            }
        }
        self.objects.containing(address).map(|(place, ..)| place)
    }

    /// The object of the smallest registration by a buffer around an address of the
    /// caller.
    #[inline(never)]
    pub(super) fn registered_around(&self, address: u64) -> Option<Place> {
        let mut found = None;
        let mut least = u64::MAX;
        self.users.each(
            |End(end)| end > address,
            |(start, _)| start <= address,
            |_, (start, size), user| {
                let User::Pinned(key) = *user else { return };
                if address < start.saturating_add(size) && size < least {
                    (least, found) = (size, Some(key));
                }
            },
        );
        self.objects.find(found?)
    }
}
