//! Memory whose pages are made before a producer leases it.
//!
//! A first write spends most of its time on new pages. Making them while the producer writes helps only a producer that
//! pauses: else both wait for the lock of the same file. So a server that has nothing to do keeps some files ready. Their
//! sizes double, as the segments of a client do. A lease takes the file that is nearest in size, which becomes its segment.
//! No process has written to it or mapped it before.
//!
//! Ready memory is a part of the budget that is not leased. When leases take that part, it is given back.

use std::fs;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use junctura_memory::{SealedSegment, SegmentDraft};
use junctura_model::Result;

use super::pages::{PREPARED_BYTES_MIN, PageOrder, PageThread, leaves_memory};

/// The files are these parts of all ready memory.
const PARTS: [u64; 6] = [32, 32, 16, 8, 4, 2];
const PAGE_BYTES: u64 = junctura_memory::classes::PAGE_BYTES;

/// A segment, and how many of its bytes have pages since it was created.
pub(super) struct LeasedSegment {
    pub(super) memory: Arc<SealedSegment>,
    pub(super) made_bytes: u64,
}

/// Ready memory, and what of the budget is left for it.
#[derive(Default)]
pub(super) struct ReadyMemory {
    sizes: Vec<u64>,
    budget_bytes: u64,
    leased_bytes: u64,
    files: Arc<ReadyFiles>,
    /// Something may be missing.
    is_due: bool,
}

impl ReadyMemory {
    /// Keeps up to `bytes` ready, once [`ReadyMemory::refill`] is called.
    pub(super) fn new(bytes: u64, budget_bytes: u64) -> Self {
        let size = |part| bytes / part / PAGE_BYTES * PAGE_BYTES;
        let sizes: Vec<u64> = PARTS
            .into_iter()
            .map(size)
            .filter(|&size| size >= PREPARED_BYTES_MIN)
            .collect();
        let files = Arc::new(ReadyFiles::default());
        files.lock().room_bytes = budget_bytes;
        Self {
            is_due: !sizes.is_empty(),
            sizes,
            budget_bytes,
            leased_bytes: 0,
            files,
        }
    }

    /// Whether [`ReadyMemory::refill`] should be called in a moment without other work.
    pub(super) fn is_due(&self) -> bool {
        self.is_due
    }

    /// Orders what is missing. Does not block.
    pub(super) fn refill(&mut self, pages: &mut PageThread) {
        if !std::mem::take(&mut self.is_due) {
            return;
        }
        let mut stock = self.files.lock();
        for bytes in stock.missing(&self.sizes) {
            stock.ordered.push(bytes);
            let files = Arc::clone(&self.files);
            if !pages.order(PageOrder::Ready { files, bytes }) {
                stock.ordered.pop();
            }
        }
    }

    /// Creates a segment that is leased.
    ///
    /// # Errors
    /// Those of [`SealedSegment::create`].
    pub(super) fn create(&mut self, bytes: u64, pages: &mut PageThread) -> Result<LeasedSegment> {
        let taken = self.files.lock().take(bytes);
        let made_bytes = taken.as_ref().map_or(0, |draft| draft.bytes().min(bytes));
        let memory = match taken {
            Some(draft) => {
                self.is_due = true;
                draft.seal(bytes)
            }
            None => SealedSegment::create(bytes),
        };
        let memory = Arc::new(memory?);
        self.leased_bytes += bytes;
        let surplus = self
            .files
            .lock()
            .limit(self.budget_bytes.saturating_sub(self.leased_bytes));
        if !surplus.is_empty() {
            pages.order(PageOrder::Free(surplus));
        }
        Ok(LeasedSegment { memory, made_bytes })
    }

    /// Notes that a segment has ended.
    pub(super) fn note_end(&mut self, bytes: u64) {
        self.leased_bytes = self.leased_bytes.saturating_sub(bytes);
        let surplus = self
            .files
            .lock()
            .limit(self.budget_bytes.saturating_sub(self.leased_bytes));
        debug_assert!(surplus.is_empty(), "there is more room than before");
        self.is_due = !self.sizes.is_empty();
    }
}

impl Drop for ReadyMemory {
    fn drop(&mut self) {
        // Files that the thread has yet to make are not made.
        drop(self.files.lock().limit(0));
    }
}

/// The files, which the thread fills and leases take.
#[derive(Default)]
pub(super) struct ReadyFiles(Mutex<ReadyStock>);

#[derive(Default)]
struct ReadyStock {
    files: Vec<SegmentDraft>,
    /// Sizes that the thread has yet to make.
    ordered: Vec<u64>,
    /// How much all files may have.
    room_bytes: u64,
}

impl ReadyFiles {
    fn lock(&self) -> MutexGuard<'_, ReadyStock> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a file, where there is memory for it.
    pub(super) fn make(&self, bytes: u64) {
        let has_memory = || leaves_memory(&fs::read_to_string("/proc/meminfo").unwrap_or_default(), bytes);
        let made = (self.lock().has_room(bytes) && has_memory()).then(|| SegmentDraft::create(bytes));
        let mut stock = self.lock();
        if let Some(at) = stock.ordered.iter().position(|&ordered| ordered == bytes) {
            stock.ordered.swap_remove(at);
        }
        match made {
            Some(Ok(draft)) if stock.has_room(bytes) => stock.files.push(draft),
            Some(Err(error)) => tracing::debug!(%error, "no memory was made ready"),
            _ => {}
        }
    }
}

impl ReadyStock {
    fn bytes(&self) -> u64 {
        self.files.iter().map(SegmentDraft::bytes).sum()
    }

    fn has_room(&self, bytes: u64) -> bool {
        self.bytes() + bytes <= self.room_bytes
    }

    /// The sizes that are neither there nor ordered.
    fn missing(&self, sizes: &[u64]) -> Vec<u64> {
        let mut there: Vec<u64> = self.files.iter().map(SegmentDraft::bytes).collect();
        there.extend(&self.ordered);
        let mut missing = sizes.to_vec();
        missing.retain(|size| match there.iter().position(|other| other == size) {
            Some(at) => {
                there.swap_remove(at);
                false
            }
            None => true,
        });
        missing
    }

    /// Takes the smallest file for so many bytes, of which at least half is used, else the largest that has fewer bytes.
    fn take(&mut self, bytes: u64) -> Option<SegmentDraft> {
        if bytes < PREPARED_BYTES_MIN {
            return None;
        }
        let fitting = |&size: &u64| size >= bytes && size / 2 <= bytes;
        let sizes = || self.files.iter().map(SegmentDraft::bytes);
        let size = sizes()
            .filter(fitting)
            .min()
            .or_else(|| sizes().filter(|&size| size < bytes).max())?;
        let at = self.files.iter().position(|draft| draft.bytes() == size)?;
        Some(self.files.swap_remove(at))
    }

    /// Sets how much all files may have, and returns them if that is less than they have.
    fn limit(&mut self, bytes: u64) -> Vec<SegmentDraft> {
        self.room_bytes = bytes;
        if self.bytes() > bytes {
            std::mem::take(&mut self.files)
        } else {
            Vec::new()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn sizes(ready: &ReadyMemory) -> Vec<u64> {
        let mut sizes: Vec<u64> = ready
            .files
            .lock()
            .files
            .iter()
            .map(|draft| draft.bytes() / MIB)
            .collect();
        sizes.sort_unstable();
        sizes
    }

    /// Makes every missing file, for any amount of memory.
    fn filled(bytes: u64, budget_bytes: u64) -> ReadyMemory {
        let ready = ReadyMemory::new(bytes, budget_bytes);
        let mut stock = ready.files.lock();
        for size in stock.missing(&ready.sizes) {
            let draft = SegmentDraft::create(size).unwrap();
            if stock.has_room(size) {
                stock.files.push(draft);
            }
        }
        drop(stock);
        ready
    }

    #[test]
    fn sizes_double_up_to_half_and_small_ones_are_left_out() {
        assert_eq!(sizes(&filled(64 * MIB, 1 << 30)), [2, 2, 4, 8, 16, 32]);
        assert_eq!(sizes(&filled(16 * MIB, 1 << 30)), [1, 2, 4, 8]);
        assert!(!ReadyMemory::new(MIB, 1 << 30).is_due());
        assert!(!ReadyMemory::new(0, 1 << 30).is_due());
    }

    #[test]
    fn a_lease_takes_the_nearest_file_and_gets_its_own_size() {
        let mut ready = filled(64 * MIB, 1 << 30);
        let mut pages = PageThread::default();
        let mut lease = |bytes| {
            let leased = ready.create(bytes, &mut pages).unwrap();
            assert_eq!(leased.memory.bytes(), bytes);
            assert_eq!(leased.memory.resident_bytes().unwrap(), leased.made_bytes);
            leased.made_bytes
        };
        assert_eq!(lease(7 * MIB), 7 * MIB);
        assert_eq!(lease(7 * MIB), 4 * MIB, "16 MiB would be too many");
        assert_eq!(lease(40 * MIB), 32 * MIB);
        assert_eq!(lease(MIB / 2), 0);
        assert_eq!(lease(2 * MIB), 2 * MIB);
        assert_eq!(sizes(&ready), [2, 16]);
        assert!(ready.is_due());
    }

    #[test]
    fn ready_memory_is_given_back_when_leases_need_its_part_of_the_budget() {
        let (mut ready, mut pages) = (filled(16 * MIB, 40 * MIB), PageThread::default());
        ready.create(25 * MIB, &mut pages).unwrap();
        assert_eq!(sizes(&ready), [1, 2, 4], "the lease took 8, and 15 are left for 7");
        ready.create(9 * MIB, &mut pages).unwrap();
        assert_eq!(sizes(&ready), [1, 2]);
        ready.create(4 * MIB, &mut pages).unwrap();
        assert_eq!(sizes(&ready), [1]);
        ready.create(2 * MIB, &mut pages).unwrap();
        assert_eq!(sizes(&ready), Vec::<u64>::new());
        ready.files.make(MIB);
        assert_eq!(sizes(&ready), Vec::<u64>::new(), "nothing is left");
        ready.note_end(25 * MIB);
        assert!(ready.is_due());
        assert_eq!(ready.files.lock().room_bytes, 25 * MIB);
    }

    #[test]
    fn a_refill_orders_what_is_missing_once() {
        let (mut ready, mut pages) = (ReadyMemory::new(4 * MIB, 1 << 30), PageThread::default());
        ready.refill(&mut pages);
        assert!(!ready.is_due());
        drop(pages); // the thread has carried out its orders
        let made = sizes(&ready);
        assert!(
            made == [1, 2] || made.is_empty(),
            "{made:?}: a machine with little memory makes none"
        );
        let mut stock = ready.files.lock();
        assert!(stock.ordered.is_empty());
        stock.ordered.push(2 * MIB);
        stock.files.clear();
        assert_eq!(stock.missing(&ready.sizes), [MIB]);
    }
}
