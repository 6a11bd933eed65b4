//! Shared memory: sealed segments, maps, size classes and the owners of slots.
//!
//! Producer and consumer map the same pages, so a payload is written once and never copied. The server makes every
//! [`SealedSegment`] and its [`MemoryLedger`] decides how much each client may have; a producer leases whole segments,
//! fills slots that its [`SlotAllocator`] returns without a request, and consumers read through a [`SegmentMapping`].
//!
//! ```text
//!  segment: one sealed memfd of fixed size         slot i lies at i * slot_bytes
//!  | slot 0       | slot 1       | slot 2       | … | slot n-1     | unused |
//!  | payload |pad | payload |pad | free         |   | payload |pad |        |
//! ```
//!
//! Promised: no descriptor is mapped before its seals and size were checked, no slot is given out twice, and memory
//! that is leased or kept never exceeds the budget. Not promised: a process of the same user that sets out to change
//! bytes behind the backs of others can do so (mode `trusted`).
//!
//! [`classes`], [`allocator`] and [`ledger`] are pure; [`segment`], [`mapping`] and [`process`] make the system calls.

#![allow(
    unsafe_code,
    reason = "maps shared memory; every block is in `mapping` or `process` and explains why it holds"
)]

pub mod allocator;
pub mod classes;
pub mod extents;
pub mod ledger;
pub mod mapping;
mod number;
pub mod process;
pub mod segment;
pub mod tier;
pub mod view;
pub mod words;

pub use allocator::{SlotAllocator, SlotReuse};
pub use extents::FileExtents;
pub use ledger::{LeaseRefusal, LedgerLimits, MemoryLedger, SegmentError, SegmentGrant, VacatedSlot};
pub use mapping::{FileMap, SegmentMapping, SlotMut, SlotPart, WritableMapping};
pub use process::ProcessMark;
pub use segment::{SealedSegment, SegmentDraft};
pub use tier::SpillFile;
pub use view::Payload;
pub use words::{SharedWords, WrittenWords};
