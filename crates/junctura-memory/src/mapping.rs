//! The client's side of a segment: maps of descriptors that the server made.
//!
//! A descriptor is mapped only after its seals and its size were checked, because reading past the end of a file that
//! a peer has truncated kills the reader. It is closed once it is mapped, for a producer once it has used the last slot. A
//! consumer gets a [`SegmentMapping`], which reads; a producer a [`WritableMapping`], which hands out each slot as a [`SlotMut`]
//! to one owner at a time.
//!
//! Memory that was never used has no pages. A fault for each page, in which the system zeroes and maps it, costs ten times
//! as much as the copy into it. So [`SlotMut::write`] writes to such a slot by its descriptor, which does neither, and
//! access to its bytes first makes all its pages by one call.
//!
//! Not visible to the compiler: other processes map the same pages. The protocol requires that a producer does not touch a
//! slot from `offer` until the pool has freed it, and every process of the user is trusted to follow it (mode `trusted`).
//! Under that assumption delivered bytes are exposed as plain slices.

use std::ffi::c_void;
use std::ops::{Deref, DerefMut};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use junctura_model::{Code, Error, Result};
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags};
use rustix::process::{Resource, getrlimit};

use crate::classes::PAGE_BYTES;
use crate::segment::SEALS;

/// Slots of at least this size are whole pages, and fewer bytes are copied: a system call would save too little.
const WRITE_BYTES_MIN: usize = 16 << 10;
/// All pages of an unused slot of at most this size are made at once. Threads that fill a larger one make its pages
/// beside each other, each in memory of its own part of the machine.
const POPULATE_BYTES_MAX: usize = 4 << 20;

/// A segment, mapped for reading. Unmapped when dropped; share it by `Arc`.
#[derive(Debug)]
pub struct SegmentMapping(MappedRegion);

impl SegmentMapping {
    /// Maps the segment of `bytes` behind `fd`, and closes `fd`.
    ///
    /// # Errors
    /// `Corrupt` when `fd` is no sealed segment of exactly that size; `Denied` when it may not be read; `Io` when the
    /// system has no room for the map.
    pub fn readonly(fd: OwnedFd, bytes: u64) -> Result<Self> {
        MappedRegion::map(fd, bytes, ProtFlags::READ).map(Self)
    }

    /// Maps the segment of `bytes` behind `fd` for a producer that leases it.
    ///
    /// # Errors
    /// Those of [`WritableMapping::new`].
    pub fn writable(fd: OwnedFd, bytes: u64, slot_bytes: u64) -> Result<WritableMapping> {
        WritableMapping::new(fd, bytes, slot_bytes)
    }

    /// Bytes of the whole segment.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.0.bytes as u64
    }

    /// The bytes of a range.
    ///
    /// # Errors
    /// `Corrupt` when the range reaches over the end.
    pub fn slice(&self, offset: u64, length: u64) -> Result<&[u8]> {
        self.0.slice(offset, length)
    }

    /// Touches every page now, so that a measurement does not pay for it later.
    ///
    /// # Errors
    /// `Io` when the system refuses.
    pub fn prefault(&self) -> Result<()> {
        self.0.advise(Advice::LinuxPopulateRead)
    }
}

/// The first bytes of a file, mapped for reading. Unmapped when dropped; share it by `Arc`.
///
/// Not visible to the compiler: a process that may write the file could change these bytes, or cut them off, and then
/// reading them kills the reader, as does a disk error. It is for files whose owners promise to do neither.
#[derive(Debug)]
pub struct FileMap(MappedRegion);

impl FileMap {
    /// Maps the first `bytes` of a file, which it has.
    ///
    /// # Errors
    /// `InvalidArgument` when there are none, or the file has fewer; `Denied` when it may not be read; `Io` when the system has no
    /// room for the map, or cannot map such a file.
    pub fn new(file: BorrowedFd<'_>, bytes: u64) -> Result<Self> {
        let stat = rustix::fs::fstat(file).map_err(|errno| Error::new(Code::Io, "file", errno.to_string()))?;
        if bytes == 0 || u64::try_from(stat.st_size).is_ok_and(|there| there < bytes) {
            let cause = format!("{bytes} bytes to be mapped of a file of {}", stat.st_size);
            return Err(Error::new(Code::InvalidArgument, "file", cause));
        }
        MappedRegion::of(file, bytes, ProtFlags::READ).map(Self)
    }

    /// Returns the number of bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.0.bytes as u64
    }

    /// The bytes of a range.
    ///
    /// # Errors
    /// `Corrupt` when the range reaches over the end.
    pub fn slice(&self, offset: u64, length: u64) -> Result<&[u8]> {
        self.0.slice(offset, length)
    }
}

/// A leased segment, mapped for writing. Unmapped when it and its last [`SlotMut`] are dropped.
#[derive(Debug)]
pub struct WritableMapping {
    region: MappedRegion,
    slot_bytes: u64,
    slots: u32,
    taken: Box<[AtomicU64]>,
    /// Slots from here on were never taken; none where slots are small.
    unused: AtomicU32,
    /// The segment, until its last slot was taken.
    file: Mutex<Option<Arc<OwnedFd>>>,
}

impl WritableMapping {
    /// Maps the segment of `bytes` behind `fd`, divided into slots. `fd` is closed when the last slot was taken and written,
    /// and at once where slots are smaller than 16 KiB.
    ///
    /// # Errors
    /// `Corrupt` when `fd` is no sealed segment of exactly that size, or not even one slot fits into it; `Denied` when
    /// it may not be written; `Io` when the system has no room for the map.
    pub fn new(fd: OwnedFd, bytes: u64, slot_bytes: u64) -> Result<Self> {
        let slots = bytes
            .checked_div(slot_bytes)
            .and_then(|slots| u32::try_from(slots).ok())
            .filter(|&slots| slots > 0);
        let slots = slots.ok_or_else(|| corrupt(format!("slots of {slot_bytes} bytes in {bytes} bytes")))?;
        check(&fd, bytes)?;
        let region = MappedRegion::of(&fd, bytes, ProtFlags::READ | ProtFlags::WRITE)?;
        let taken = (0..slots.div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        let file = (slot_bytes >= WRITE_BYTES_MIN as u64).then(|| Arc::new(fd));
        let unused = if file.is_some() { 0 } else { slots };
        Ok(Self {
            region,
            slot_bytes,
            slots,
            taken,
            unused: AtomicU32::new(unused),
            file: Mutex::new(file),
        })
    }

    /// Bytes of the whole segment.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.region.bytes as u64
    }

    /// Bytes of each slot.
    #[must_use]
    pub fn slot_bytes(&self) -> u64 {
        self.slot_bytes
    }

    /// The number of slots.
    #[must_use]
    pub fn slots(&self) -> u32 {
        self.slots
    }

    /// The first `length` bytes of a slot, for one owner. They hold whatever was there before.
    ///
    /// # Errors
    /// `InvalidArgument` when there is no such slot or it is shorter; `Conflict` when it has an owner.
    pub fn take(self: &Arc<Self>, slot: u32, length: u64) -> Result<SlotMut> {
        if slot >= self.slots || length > self.slot_bytes {
            let cause = format!(
                "{length} bytes asked of {} slots of {} bytes",
                self.slots, self.slot_bytes
            );
            return Err(Error::new(Code::InvalidArgument, format!("slot {slot}"), cause));
        }
        let start = self.region.range(u64::from(slot) * self.slot_bytes, length)?;
        let (word, bit) = self.taken_bit(slot);
        // Acquire, with the release in `SlotMut::drop`: the former owner's writes happen before ours.
        if word.fetch_or(bit, Ordering::Acquire) & bit != 0 {
            return Err(Error::new(Code::Conflict, format!("slot {slot}"), "it has an owner"));
        }
        Ok(SlotMut {
            mapping: Arc::clone(self),
            start,
            length: length as usize,
            slot,
            file: self.file_of(slot),
        })
    }

    /// Returns the segment's descriptor for a slot that was never taken. A slot below one that was taken counts as taken.
    fn file_of(&self, slot: u32) -> Option<Arc<OwnedFd>> {
        if slot < self.unused.load(Ordering::Relaxed) {
            return None;
        }
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if slot < self.unused.load(Ordering::Relaxed) {
            return None;
        }
        self.unused.store(slot + 1, Ordering::Relaxed);
        if slot + 1 == self.slots {
            file.take()
        } else {
            file.clone()
        }
    }

    /// Touches every page now, so that a measurement does not pay for it later.
    ///
    /// # Errors
    /// `Io` when the system refuses.
    pub fn prefault(&self) -> Result<()> {
        self.region.advise(Advice::LinuxPopulateWrite)
    }

    fn taken_bit(&self, slot: u32) -> (&AtomicU64, u64) {
        (&self.taken[slot as usize / 64], 1 << (slot % 64))
    }
}

/// A slot's bytes, with the right to write them. Dropping it ends that right; whether the slot is offered or free is
/// not its business.
#[derive(Debug)]
pub struct SlotMut {
    mapping: Arc<WritableMapping>,
    start: NonNull<u8>,
    length: usize,
    slot: u32,
    /// The segment, where the slot's memory was never accessed through the map.
    file: Option<Arc<OwnedFd>>,
}

impl SlotMut {
    /// The slot's place in its segment.
    #[must_use]
    pub fn slot(&self) -> u32 {
        self.slot
    }

    /// Returns the map that contains the bytes; a caller that exports their address keeps it alive.
    #[must_use]
    pub fn mapping(&self) -> &Arc<WritableMapping> {
        &self.mapping
    }

    /// The address of the bytes, for other languages; valid while [`Self::mapping`] lives.
    pub fn as_mut_ptr(&mut self) -> *mut u8 {
        self.populate();
        self.start.as_ptr()
    }

    /// Copies bytes into the slot, from its byte `at` on: the fastest way into memory that was never used.
    ///
    /// # Errors
    /// `InvalidArgument` when the bytes reach over the end; nothing is written then.
    pub fn write(&mut self, at: usize, bytes: &[u8]) -> Result<()> {
        if at.checked_add(bytes.len()).is_none_or(|end| end > self.length) {
            let cause = format!("{} bytes at {at} reach over its end at {}", bytes.len(), self.length);
            return Err(Error::new(Code::InvalidArgument, format!("slot {}", self.slot), cause));
        }
        let written = self.write_to_file(at, bytes);
        let rest = &bytes[written..];
        // SAFETY: the bytes are within the slot, as checked above, whose memory is ours alone (see `deref_mut`). The caller's are
        // elsewhere, since it could get those of the slot only by a borrow of `self`.
        unsafe { std::ptr::copy_nonoverlapping(rest.as_ptr(), self.start.add(at + written).as_ptr(), rest.len()) };
        Ok(())
    }

    /// Writes to the segment's descriptor where the slot is unused; returns the number of bytes that were written.
    fn write_to_file(&self, at: usize, bytes: &[u8]) -> usize {
        let Some(file) = self.file.as_ref().filter(|_| bytes.len() >= WRITE_BYTES_MIN) else {
            return 0;
        };
        let start = u64::from(self.slot) * self.mapping.slot_bytes + at as u64;
        let mut written = 0;
        // A write beyond the limit of the size of files would kill the process.
        if getrlimit(Resource::Fsize)
            .current
            .is_some_and(|most| start + bytes.len() as u64 > most)
        {
            return 0;
        }
        while written < bytes.len() {
            match rustix::io::pwrite(file, &bytes[written..], start + written as u64) {
                Err(Errno::INTR) => {}
                Ok(0) | Err(_) => break,
                Ok(count) => written += count,
            }
        }
        written
    }

    /// Makes the pages of an unused slot, by one call instead of a fault for each.
    fn populate(&mut self) {
        if self.file.take().is_none() || !(WRITE_BYTES_MIN..=POPULATE_BYTES_MAX).contains(&self.length) {
            return;
        }
        let bytes = self.length.next_multiple_of(PAGE_BYTES as usize);
        // SAFETY: such a slot is whole pages of our map, and populating changes no byte. Where the system refuses, pages are made
        // by faults.
        let _ = unsafe { rustix::mm::madvise(self.start.as_ptr().cast(), bytes, Advice::LinuxPopulateWrite) };
    }

    /// Keeps only the first `length` bytes; more than there are changes nothing.
    pub fn truncate(&mut self, length: usize) {
        self.length = self.length.min(length);
    }

    /// Divides the bytes from `from` on into parts of `part_bytes`, the last one with the rest, so that several threads may
    /// write at once. The right to write the slot ends with the last part. Returns none when nothing follows `from`, or
    /// parts have no bytes.
    #[must_use]
    pub fn divide(self, from: usize, part_bytes: usize) -> Vec<SlotPart> {
        let (start, length) = (self.start, self.length);
        if part_bytes == 0 {
            return Vec::new();
        }
        let whole = Arc::new(self);
        let parts = (from..length).step_by(part_bytes).map(|at| SlotPart {
            // SAFETY: `at` is less than the length of the slot, so the address stays within it.
            start: unsafe { start.add(at) },
            length: part_bytes.min(length - at),
            _whole: Arc::clone(&whole),
        });
        parts.collect()
    }
}

impl Deref for SlotMut {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: `take` has shown that the bytes are within the map, which `mapping` keeps alive; the slot's bit in
        // `taken` is ours, so no other `SlotMut` covers them.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.length) }
    }
}

impl DerefMut for SlotMut {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.populate();
        // SAFETY: as in `deref`, and `&mut self` makes this the only borrow; the map is writable.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.length) }
    }
}

impl Drop for SlotMut {
    fn drop(&mut self) {
        let (word, bit) = self.mapping.taken_bit(self.slot);
        word.fetch_and(!bit, Ordering::Release);
    }
}

// SAFETY: a `SlotMut` owns its bytes alone, as a `Box<[u8]>` would; the map behind it is shared by `Arc`.
unsafe impl Send for SlotMut {}
// SAFETY: `&SlotMut` only reads.
unsafe impl Sync for SlotMut {}

/// A part of a slot's bytes, with the right to write them; the others have other owners.
#[derive(Debug)]
pub struct SlotPart {
    start: NonNull<u8>,
    length: usize,
    /// Its bytes are not accessed: it keeps the map, and the slot's bit.
    _whole: Arc<SlotMut>,
}

impl Deref for SlotPart {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the bytes are within the slot, which `_whole` keeps; `divide` has given no two parts the same ones, and
        // has taken the slot itself from all other code.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.length) }
    }
}

impl DerefMut for SlotPart {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`, and `&mut self` makes this the only borrow; the map is writable.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.length) }
    }
}

// SAFETY: a `SlotPart` owns its bytes alone, as a `Box<[u8]>` would; what keeps the map is shared by `Arc`, and `Sync`.
unsafe impl Send for SlotPart {}
// SAFETY: `&SlotPart` only reads.
unsafe impl Sync for SlotPart {}

/// Mapped bytes; unmapped when dropped.
#[derive(Debug)]
pub(crate) struct MappedRegion {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the region is plain memory that belongs to no thread; its wrappers control write access.
unsafe impl Send for MappedRegion {}
// SAFETY: as above; a `&MappedRegion` gives out addresses and never writes.
unsafe impl Sync for MappedRegion {}

impl MappedRegion {
    pub(crate) fn map(fd: OwnedFd, bytes: u64, rights: ProtFlags) -> Result<Self> {
        check(&fd, bytes)?;
        Self::of(fd, bytes, rights)
    }

    /// Maps the first bytes of what stays at least as long: by its seals, or by the promise of its owners.
    fn of(fd: impl AsFd, bytes: u64, rights: ProtFlags) -> Result<Self> {
        let size = usize::try_from(bytes).map_err(|_| corrupt(format!("{bytes} bytes do not fit into an address")))?;
        // SAFETY: a new map at an address that the system chooses overlaps no memory that Rust knows; the file stays at least
        // at its size, so every byte of the map stays backed.
        let start = unsafe { rustix::mm::mmap(null_mut(), size, rights, MapFlags::SHARED, fd.as_fd(), 0) };
        let start = start.map_err(|errno| match errno {
            Errno::ACCESS | Errno::PERM => {
                Error::new(Code::Denied, "segment", format!("mapping {bytes} bytes: {errno}"))
            }
            _ => Error::new(Code::Io, "segment", format!("mapping {bytes} bytes: {errno}")),
        })?;
        let start = NonNull::new(start.cast()).ok_or_else(|| corrupt("mapped at no address"))?;
        Ok(Self { start, bytes: size })
    }

    /// Returns the start of a range that is completely within the region.
    fn range(&self, offset: u64, length: u64) -> Result<NonNull<u8>> {
        if offset.checked_add(length).is_none_or(|end| end > self.bytes as u64) {
            return Err(corrupt(format!(
                "{length} bytes at {offset} reach over the end of {} bytes",
                self.bytes
            )));
        }
        // SAFETY: the offset is at most the size of the map, so the address stays within it or at its end.
        Ok(unsafe { self.start.add(offset as usize) })
    }

    /// Returns the bytes of an immutable range: delivered ones, or those of a file whose owners do not change them.
    fn slice(&self, offset: u64, length: u64) -> Result<&[u8]> {
        let start = self.range(offset, length)?;
        // SAFETY: `range` has shown that the bytes are within the map, which lives as long as `self` and is always
        // initialised; no process writes to them (see the assumptions of the module, and of `FileMap`).
        Ok(unsafe { std::slice::from_raw_parts(start.as_ptr(), length as usize) })
    }

    /// Returns the number of whole words of 64 bits.
    pub(crate) fn words(&self) -> usize {
        self.bytes / size_of::<AtomicU64>()
    }

    /// Returns a word that other processes may access at the same time.
    pub(crate) fn word(&self, index: usize) -> Option<&AtomicU64> {
        let at = (index < self.words()).then_some(index)?;
        // SAFETY: the word is within the map, which begins at a page, so it is aligned, and lives as long as `self`. The users
        // of a region access it by words alone, or by slices alone; every access of every process to a word is atomic, and
        // where the map is read-only, `words` loads relaxed only, which such memory allows.
        Some(unsafe { &*self.address().cast::<AtomicU64>().add(at) })
    }

    fn advise(&self, advice: Advice) -> Result<()> {
        // SAFETY: the range is exactly our map, and populating changes no byte.
        unsafe { rustix::mm::madvise(self.address(), self.bytes, advice) }
            .map_err(|errno| Error::new(Code::Io, "segment", format!("touching its pages: {errno}")))
    }

    fn address(&self) -> *mut c_void {
        self.start.as_ptr().cast()
    }
}

impl Drop for MappedRegion {
    fn drop(&mut self) {
        // SAFETY: the range is exactly our map; slices of it borrow the wrapper or hold its `Arc`, so none is left.
        let result = unsafe { rustix::mm::munmap(self.address(), self.bytes) };
        debug_assert!(result.is_ok(), "unmapping what was mapped");
    }
}

/// Checks that the descriptor is a segment that cannot shrink, of the announced size.
fn check(fd: &OwnedFd, bytes: u64) -> Result<()> {
    let seals = rustix::fs::fcntl_get_seals(fd).map_err(|errno| corrupt(format!("no seals: {errno}")))?;
    if !seals.contains(SEALS) {
        return Err(corrupt(format!("it lacks the seals {:?}", SEALS.difference(seals))));
    }
    let stat = rustix::fs::fstat(fd).map_err(|errno| corrupt(format!("no size: {errno}")))?;
    if bytes == 0 || u64::try_from(stat.st_size) != Ok(bytes) {
        return Err(corrupt(format!(
            "it has {} bytes, announced were {bytes}",
            stat.st_size
        )));
    }
    Ok(())
}

fn corrupt(cause: impl Into<String>) -> Error {
    Error::new(Code::Corrupt, "segment", cause)
}
