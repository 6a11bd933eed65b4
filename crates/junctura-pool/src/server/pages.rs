//! The thread that gives leased segments their pages, ahead of the producers that fill them.
//!
//! Half of the time of a write into memory that was never used is spent on finding a page for each 4 KiB. The budget counts
//! a segment from its lease on, so the thread takes no memory that the pool may not have. It begins behind the first slot,
//! which its producer fills meanwhile, and makes few pages at a time, since a write waits for it.
//!
//! Nothing is prepared on a machine with several memory nodes, since pages are placed near the process that makes them, and
//! where it would leave little memory.

use std::fs;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;

use junctura_memory::{SealedSegment, SegmentDraft};

use super::ready::ReadyFiles;

/// Less is not worth it.
pub(super) const PREPARED_BYTES_MIN: u64 = 1 << 20;
/// Pages that are made by one call.
const STEP_BYTES: u64 = 256 << 10;
/// A part of the machine's memory that stays available.
const AVAILABLE_PART: u64 = 8;

/// An order to the thread.
pub(super) enum PageOrder {
    /// Makes the pages of a segment from a byte on.
    Leased { segment: Weak<SealedSegment>, from: u64 },
    /// Makes a file that a later lease takes.
    Ready { files: Arc<ReadyFiles>, bytes: u64 },
    /// Gives files back to the system.
    Free(Vec<SegmentDraft>),
}

/// The thread, which starts with the first order.
#[derive(Default)]
pub(super) struct PageThread {
    orders: Option<Sender<PageOrder>>,
    thread: Option<JoinHandle<()>>,
    is_refused: bool,
}

impl PageThread {
    /// Prepares a segment that is leased, from a byte on. Does not block.
    pub(super) fn prepare(&mut self, segment: &Arc<SealedSegment>, from: u64) {
        if segment.bytes().saturating_sub(from) >= PREPARED_BYTES_MIN {
            let segment = Arc::downgrade(segment);
            self.order(PageOrder::Leased { segment, from });
        }
    }

    /// Gives an order to the thread; returns whether there is one. Does not block.
    pub(super) fn order(&mut self, order: PageOrder) -> bool {
        if self.thread.is_none() && !self.is_refused {
            self.start();
        }
        let sent = self.orders.as_ref().map(|orders| orders.send(order));
        debug_assert!(
            sent.as_ref().is_none_or(Result::is_ok),
            "the thread takes orders until its end"
        );
        sent.is_some()
    }

    fn start(&mut self) {
        let nodes = fs::read_to_string("/sys/devices/system/node/online");
        if nodes.is_ok_and(|nodes| nodes.trim() != "0") {
            self.is_refused = true;
            return;
        }
        let (orders, incoming) = channel();
        let thread = std::thread::Builder::new().name("junctura-pages".to_owned());
        match thread.spawn(move || incoming.into_iter().for_each(carry_out)) {
            Ok(thread) => (self.orders, self.thread) = (Some(orders), Some(thread)),
            Err(error) => {
                tracing::warn!(%error, "memory is not prepared ahead of producers");
                self.is_refused = true;
            }
        }
    }
}

impl Drop for PageThread {
    fn drop(&mut self) {
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            debug_assert!(ended.is_ok(), "the thread does not panic");
        }
    }
}

fn carry_out(order: PageOrder) {
    match order {
        PageOrder::Leased { segment, from } => make_pages(&segment, from),
        PageOrder::Ready { files, bytes } => files.make(bytes),
        PageOrder::Free(files) => drop(files),
    }
}

fn make_pages(segment: &Weak<SealedSegment>, from: u64) {
    let rest = segment.upgrade().map_or(0, |segment| segment.bytes() - from);
    if !leaves_memory(&fs::read_to_string("/proc/meminfo").unwrap_or_default(), rest) {
        return;
    }
    for at in (from..from + rest).step_by(STEP_BYTES as usize) {
        let Some(segment) = segment.upgrade() else {
            return;
        };
        if let Err(error) = segment.make_pages(at, STEP_BYTES) {
            tracing::debug!(%error, "memory could not be prepared");
            return;
        }
    }
}

/// Whether so many bytes leave enough available memory, by the text of `/proc/meminfo` (proc(5)).
pub(super) fn leaves_memory(text: &str, bytes: u64) -> bool {
    let kib_of = |name: &str| -> Option<u64> {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().strip_suffix("kB")?.trim().parse().ok()
    };
    match (kib_of("MemTotal:"), kib_of("MemAvailable:")) {
        (Some(total), Some(available)) => available.saturating_sub(bytes >> 10) > total / AVAILABLE_PART,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(segment: &Arc<SealedSegment>, from: u64) -> PageOrder {
        let segment = Arc::downgrade(segment);
        PageOrder::Leased { segment, from }
    }

    #[test]
    fn a_segment_gets_its_pages_behind_the_first_slot() {
        let segment = Arc::new(SealedSegment::create(5 << 20).unwrap());
        carry_out(order(&segment, 1 << 20));
        let resident = segment.resident_bytes().unwrap();
        assert!(
            resident == 4 << 20 || resident == 0,
            "{resident}: a machine with little memory prepares none"
        );
    }

    #[test]
    fn a_dropped_segment_is_not_prepared() {
        let segment = Arc::new(SealedSegment::create(2 << 20).unwrap());
        let order = order(&segment, 0);
        let file = segment.readonly().try_clone_to_owned().unwrap();
        drop(segment);
        carry_out(order);
        assert_eq!(rustix::fs::fstat(file).unwrap().st_blocks, 0);
    }

    #[test]
    fn small_segments_start_no_thread_and_its_end_carries_out_the_rest() {
        let mut pages = PageThread::default();
        let small = Arc::new(SealedSegment::create(1 << 20).unwrap());
        pages.prepare(&small, 4096);
        assert!(pages.thread.is_none());
        let large = Arc::new(SealedSegment::create(4 << 20).unwrap());
        pages.prepare(&large, 1 << 20);
        let has_thread = pages.thread.is_some();
        drop(pages);
        assert!(
            large.resident_bytes().unwrap() <= 3 << 20,
            "the first slot is its producer's"
        );
        assert!(has_thread || large.resident_bytes().unwrap() == 0);
        assert_eq!(small.resident_bytes().unwrap(), 0);
    }

    #[test]
    fn memory_that_would_leave_little_is_not_taken() {
        let text = "MemTotal:       8000 kB\nMemFree:         10 kB\nMemAvailable:   2000 kB\n";
        assert!(leaves_memory(text, 999 << 10));
        assert!(!leaves_memory(text, 1000 << 10));
        assert!(!leaves_memory(text, u64::MAX));
        assert!(!leaves_memory("MemTotal: 8000 kB\n", 0));
        assert!(!leaves_memory("", 0));
    }
}
