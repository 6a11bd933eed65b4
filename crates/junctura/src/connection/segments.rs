//! The segments that this client has mapped: those from which it reads objects, and those that it leases for payloads.
//!
//! A mapping exists as long as it is used: an object that is held keeps the mapping of its segment even if the server
//! has dropped the segment, and an allocation keeps the leased segment.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use hashbrown::HashMap;
use junctura_memory::{SegmentMapping, SlotAllocator, SlotMut, SlotReuse, WritableMapping};
use junctura_model::{Code, Error, Result};
use junctura_wire::fixed::{FILE_TIER, SegmentHead};

use crate::connection::in_flight::SlotId;

/// A segment to read from.
#[derive(Debug)]
struct ReadableSegment {
    mapping: Arc<SegmentMapping>,
    slot_bytes: u64,
}

/// All maps of one connection.
#[derive(Debug)]
pub(crate) struct SegmentMaps {
    readable: HashMap<u32, ReadableSegment>,
    /// The file tier of the server.
    file: Option<Arc<OwnedFd>>,
    leased: HashMap<u32, Arc<WritableMapping>>,
    slots: SlotAllocator,
}

impl SegmentMaps {
    pub(crate) fn new(reuse: SlotReuse) -> Self {
        Self {
            readable: HashMap::new(),
            file: None,
            leased: HashMap::new(),
            slots: SlotAllocator::with_reuse(reuse),
        }
    }

    /// Maps a segment that the server announced, or records the file tier.
    pub(crate) fn add(&mut self, head: &SegmentHead, fd: OwnedFd) -> Result<()> {
        if head.segment.get() == FILE_TIER {
            self.file = Some(Arc::new(fd));
            return Ok(());
        }
        let (segment, bytes, slot_bytes) = (head.segment.get(), head.bytes.get(), head.slot_bytes.get());
        if head.writable.get() == 0 {
            let mapping = Arc::new(SegmentMapping::readonly(fd, bytes)?);
            self.readable.insert(segment, ReadableSegment { mapping, slot_bytes });
            return Ok(());
        }
        let mapping = Arc::new(SegmentMapping::writable(fd, bytes, slot_bytes)?);
        self.slots.add_segment(segment, slot_bytes, mapping.slots())?;
        self.leased.insert(segment, mapping);
        Ok(())
    }

    /// Returns the location of a delivered payload: the mapping and the offset within it.
    pub(crate) fn find(&self, segment: u32, slot: u32, length: u64) -> Result<(Arc<SegmentMapping>, u64)> {
        let Some(readable) = self.readable.get(&segment) else {
            let cause = "it has an object, but was never announced";
            return Err(Error::new(Code::Protocol, format!("segment {segment}"), cause));
        };
        let offset = u64::from(slot).saturating_mul(readable.slot_bytes);
        readable.mapping.slice(offset, length)?;
        Ok((Arc::clone(&readable.mapping), offset))
    }

    /// Returns the file of spilled payloads.
    pub(crate) fn file(&self) -> Result<Arc<OwnedFd>> {
        let unknown = || {
            let cause = "it has an object, but was never announced";
            Error::new(Code::Protocol, "file tier", cause)
        };
        self.file.clone().ok_or_else(unknown)
    }

    /// Takes a free slot for a payload; `None`: a segment must be leased, or slots must become free.
    pub(crate) fn take(&mut self, bytes: u64) -> Option<Result<(u32, SlotMut)>> {
        let (segment, slot) = self.slots.allocate(bytes)?;
        let taken = match self.leased.get(&segment) {
            Some(mapping) => mapping.take(slot, bytes),
            None => Err(Error::new(
                Code::Protocol,
                format!("segment {segment}"),
                "it has slots but no map",
            )),
        };
        Some(taken.map(|taken| (segment, taken)))
    }

    /// Frees a slot for this client. An invalid slot from the server has no effect.
    pub(crate) fn free(&mut self, slot: SlotId) {
        let _known = self.slots.free(slot.segment, slot.slot);
    }

    /// Removes a leased segment without used slots; returns whether it may be returned to the server.
    pub(crate) fn give_up(&mut self, segment: u32) -> bool {
        let idle = self.slots.remove_segment(segment);
        if idle {
            self.leased.remove(&segment);
        }
        idle
    }

    /// Returns whether any segment is leased.
    pub(crate) fn is_producing(&self) -> bool {
        !self.leased.is_empty()
    }

    /// Returns leased segments that have been idle for some time.
    pub(crate) fn surplus(&mut self) -> Vec<u32> {
        self.slots.surplus()
    }

    /// Removes a segment that the server has dropped.
    pub(crate) fn dropped(&mut self, segment: u32) {
        self.readable.remove(&segment);
    }
}
