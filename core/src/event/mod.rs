//! Events: what programs, GPUs and the driver tell the threads that wait.
//!
//! # The page
//! A GPU sets an event by writing its slot of 8 bytes in the *event page* before it
//! interrupts. Where a GPU has memory of its own the page is a buffer of ours that
//! every GPU has mapped, and the driver is given it with the first event that has a
//! slot; elsewhere it is the driver's own page, mapped from `/dev/kfd`. Either way a
//! kernel process object has one page for good (kfd_events.c, `kfd_kmap_event_page`),
//! so it is kept with the object's files: a reopened primary context finds it again.
//! It lies outside all regions that memory is cut from.
//!
//! The page's length is the limit of events with a slot: 4,095 of them, or 255 with a
//! driver that shows one small page only.
//!
//! # Books
//! A context knows its events by id and by a number of whoever created them. What is
//! left at a close is destroyed with it, which ends every wait. The driver gives ids
//! anew, and the number tells a stale event from its successor.
//!
//! # Waiting
//! One request, whatever the number of events; the only books that it touches are the
//! driver's. The array of the request is the caller's, so nothing is allocated here.
//!
//! # Callbacks
//! [`Guard::pump_events`](crate::process::Guard::pump_events) waits for the events
//! that have a callback and tells which are due; its caller runs them, without a lock
//! and outside of the context.
//!
//! # Layers
//! `calls` is the face; `page` makes the event page, `books` remember, `pump` waits for
//! callbacks.

mod books;
mod calls;
mod page;
mod pump;

pub(crate) use books::Events;
pub(crate) use calls::destroy_all;
pub(crate) use page::EventPage;

use crate::uapi::kfd::{EventType, MemoryErrorType, ResetCause, ResetType};

/// What event is to be created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventRequest {
    /// What sets it.
    pub kind: EventType,
    /// The node that it is about; the driver does not look at it.
    pub node: u32,
    /// Whether it stays set until it is reset. Otherwise a wait that sees it set
    /// resets it.
    pub manual_reset: bool,
    /// Whether it is set from the start; only for kinds that a program may set.
    pub is_set: bool,
    /// The creator's own number for it, by which it is destroyed.
    pub owner: u64,
}

/// An event that was created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// The driver's number.
    pub id: u32,
    /// The address of its slot; 0 for kinds without one.
    pub slot: u64,
    /// What a GPU sends with the interrupt.
    pub trigger: u32,
}

/// How a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waited {
    /// One event was set, or all.
    Complete,
    /// The time was up.
    TimedOut,
}

/// A memory fault, with the GPU as a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryFault {
    /// The node of the GPU.
    pub node: u32,
    /// The page, by its first byte.
    pub address: u64,
    /// No page is mapped there.
    pub not_present: bool,
    /// The page may not be written.
    pub read_only: bool,
    /// The page may not be executed.
    pub no_execute: bool,
    /// The address may not be exact.
    pub imprecise: bool,
    /// What stands behind it.
    pub error_type: MemoryErrorType,
}

/// A GPU that was reset, as a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HwException {
    /// The node of the GPU.
    pub node: u32,
    /// How much was reset.
    pub reset_type: ResetType,
    /// Why.
    pub reset_cause: ResetCause,
    /// Whether video memory is lost.
    pub memory_lost: bool,
}

/// How many events with a slot there are in a context, and how many there can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventUse {
    /// Events with a slot.
    pub in_use: u32,
    /// The most of them; 0 while no event with a slot was ever created.
    pub limit: u32,
}

/// Whether events of a kind have a slot in the page.
pub(crate) fn has_slot(kind: EventType) -> bool {
    kind == EventType::SIGNAL || kind == EventType::DEBUG_EVENT
}
