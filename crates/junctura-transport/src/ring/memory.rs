//! The memory of a connection's two rings, mapped by both ends.
//!
//! ```text
//! 0            256                4096                 4096 + bytes
//! | words of 0 | words of 1 | … | ring 0: to server   | ring 1: to client |
//! ```
//! The peer may write anything here at any time. So no value read from here is trusted: positions are checked before they
//! are used, and bytes are copied out before they are examined.

#![allow(
    unsafe_code,
    reason = "memory that another process writes to as well; each use explains why it is sound"
)]

use std::os::fd::{AsFd, OwnedFd};
use std::ptr::{NonNull, null_mut};

use junctura_model::{Code, Error, Result};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use super::RING_BYTES_MAX;
use super::words::RingWords;
use crate::refused;

const WORDS_BYTES: usize = 256;
const RINGS_AT: usize = 4096;
/// Neither side can make the memory smaller under the other.
const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

/// Which of the two rings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RingLane {
    ToServer = 0,
    ToClient = 1,
}

#[derive(Debug)]
pub(super) struct RingMemory {
    base: NonNull<u8>,
    ring_bytes: usize,
}

// SAFETY: the map is shared with another process in any case; what is reached through it are atomic words and bytes that
// are copied in and out, each ring's by one writer and one reader (see `copy_in`).
unsafe impl Send for RingMemory {}
// SAFETY: as above.
unsafe impl Sync for RingMemory {}

impl RingMemory {
    /// New memory for two rings of `ring_bytes`, and the descriptor by which the peer maps it.
    pub(super) fn create(ring_bytes: usize) -> Result<(Self, OwnedFd)> {
        let fd = memfd_create("junctura-rings", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)
            .map_err(|errno| refused(Code::Io, "rings", "cannot make memory", errno))?;
        ftruncate(&fd, total(ring_bytes) as u64)
            .map_err(|errno| refused(Code::Io, "rings", "cannot make memory", errno))?;
        fcntl_add_seals(&fd, SEALS).map_err(|errno| refused(Code::Io, "rings", "cannot seal memory", errno))?;
        Ok((Self::map(&fd, ring_bytes)?, fd))
    }

    /// Maps the memory of the peer.
    ///
    /// # Errors
    /// `Protocol` for invalid ring sizes; `Corrupt` when `fd` is not sealed memory of this size; `Io` when it cannot be
    /// mapped.
    pub(super) fn map(fd: &OwnedFd, ring_bytes: usize) -> Result<Self> {
        if !ring_bytes.is_power_of_two() || !(RINGS_AT..=RING_BYTES_MAX).contains(&ring_bytes) {
            let cause = format!("{ring_bytes} bytes are not a valid ring size");
            return Err(Error::new(Code::Protocol, "rings", cause));
        }
        let seals = fcntl_get_seals(fd).unwrap_or(SealFlags::empty());
        let bytes = fstat(fd).map_or(0, |stat| stat.st_size);
        if !seals.contains(SEALS) || u64::try_from(bytes) != Ok(total(ring_bytes) as u64) {
            let cause = format!("{bytes} bytes, sealed as {seals:?}, are not the memory of rings");
            return Err(Error::new(Code::Corrupt, "rings", cause));
        }
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new shared map at an address that the kernel chooses overlaps nothing; it is unmapped in `drop` alone.
        // Its file can neither shrink nor grow (seals), so every byte stays mapped.
        let base = unsafe {
            mmap(
                null_mut(),
                total(ring_bytes),
                protection,
                MapFlags::SHARED,
                fd.as_fd(),
                0,
            )
        };
        let base = base.map_err(|errno| refused(Code::Io, "rings", "cannot map memory", errno))?;
        let base = NonNull::new(base.cast()).ok_or_else(|| Error::new(Code::Io, "rings", "mapped nowhere"))?;
        Ok(Self { base, ring_bytes })
    }

    pub(super) fn ring_bytes(&self) -> usize {
        self.ring_bytes
    }

    pub(super) fn words(&self, lane: RingLane) -> &RingWords {
        // SAFETY: the words are within the map, which lives as long as `self` and begins at a page; they are atomic, and
        // any bits are a valid value.
        unsafe { self.base.add(lane as usize * WORDS_BYTES).cast().as_ref() }
    }

    /// Copies bytes into the ring from `position` on, counted from the ring's origin; not more than it has.
    pub(super) fn copy_in(&self, lane: RingLane, position: u64, bytes: &[u8]) {
        let (at, first) = self.place(position, bytes.len());
        let (before, after) = bytes.split_at(first);
        let ring = self.ring(lane);
        // SAFETY: `place` keeps both pieces within the ring, and the ring is within the map. The one writer of this lane
        // (the only caller, behind `&mut`) writes where the reader does not read, unless the peer is broken; then the
        // received data is garbage, and is checked as such.
        unsafe {
            ring.add(at)
                .copy_from_nonoverlapping(NonNull::from(before).cast(), before.len());
            ring.copy_from_nonoverlapping(NonNull::from(after).cast(), after.len());
        }
    }

    /// Copies bytes out of the ring from `position` on, counted from the ring's origin; not more than it has.
    pub(super) fn copy_out(&self, lane: RingLane, position: u64, into: &mut [u8]) {
        let (at, first) = self.place(position, into.len());
        let (before, after) = into.split_at_mut(first);
        let ring = self.ring(lane);
        // SAFETY: as in `copy_in`; `into` is private memory. A peer that writes here during the copy tears the copied bytes,
        // which are then treated as any other untrusted input.
        unsafe {
            ring.add(at)
                .copy_to_nonoverlapping(NonNull::from(&mut *before).cast(), before.len());
            ring.copy_to_nonoverlapping(NonNull::from(&mut *after).cast(), after.len());
        }
    }

    /// Writes anywhere, as a broken peer may; bytes outside of the memory are left out.
    #[cfg(feature = "conformance")]
    pub(super) fn scribble(&self, at: usize, bytes: &[u8]) {
        let at = at.min(total(self.ring_bytes));
        let count = bytes.len().min(total(self.ring_bytes) - at);
        // SAFETY: as in `copy_in`: within the map, and its readers trust nothing.
        unsafe {
            self.base
                .add(at)
                .copy_from_nonoverlapping(NonNull::from(bytes).cast(), count);
        }
    }

    /// Returns where a position is in the ring, and how many of `length` bytes are before its end.
    fn place(&self, position: u64, length: usize) -> (usize, usize) {
        assert!(length <= self.ring_bytes, "no more than the ring holds");
        let at = position as usize & (self.ring_bytes - 1);
        (at, length.min(self.ring_bytes - at))
    }

    fn ring(&self, lane: RingLane) -> NonNull<u8> {
        // SAFETY: both rings are within the map.
        unsafe { self.base.add(RINGS_AT + lane as usize * self.ring_bytes) }
    }
}

impl Drop for RingMemory {
    fn drop(&mut self) {
        // SAFETY: this map was made in `map`, and nothing borrows from it any more.
        let unmapped = unsafe { munmap(self.base.as_ptr().cast(), total(self.ring_bytes)) };
        debug_assert!(unmapped.is_ok(), "a map can be unmapped");
    }
}

fn total(ring_bytes: usize) -> usize {
    RINGS_AT + 2 * ring_bytes
}
