//! The commit log of a store on a local file system: one file that every writer appends to, in an order that is everybody's.
//!
//! A kernel's lock is held while a record is written, and not while it is made last: any sync covers all that stands before. A
//! death gives the lock back, and may leave a torn record at the end, which the next writer cuts off. Readers take no lock; they
//! end at the first record that is not whole, and sync before they believe what they have read: nothing is visible that could
//! still be lost. Flushes of one process that meet are written, and synced, together.
//!
//! Beside it a mark says up to where the log has been synced, at least. A record before it that is not whole was never torn: it is
//! damaged, and so nothing is cut off, and nobody takes what stands before it for all that there is.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use junctura_model::{Code, Error, Result};

use super::{Failed, Order, Position, Record, Said, Take, Written};
use crate::disk::{Disk, File, read_full, refused, sync_range, write_all};
use crate::frame::{self, FRAME_BYTES, Found};

/// Where it lies.
const LOG: &str = "log/00000000000000000001";
const MARK: &str = "log/00000000000000000001.synced";
/// Up to which byte (u64), and the CRC-32C of that (u32).
const MARK_BYTES: usize = 12;
/// What is read at once.
const PIECE_BYTES: usize = 1 << 20;

/// See the module.
#[derive(Debug)]
pub(super) struct Appended {
    name: Arc<str>,
    file: Arc<dyn File>,
    mark: Arc<dyn File>,
    known: Mutex<Known>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Known {
    /// The last end that is known here.
    tail: Position,
    /// Up to here it was synced by this process.
    synced: u64,
}

impl Appended {
    /// Makes an empty one, if there is none.
    ///
    /// # Errors
    /// What the system refuses.
    pub(super) fn create(disk: &dyn Disk) -> Result<()> {
        for name in [LOG, MARK] {
            let made = disk.create(name).and_then(|file| file.sync());
            match made {
                Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                    return Err(refused(name, "cannot be made", &error));
                }
                _ => {}
            }
        }
        disk.sync_names("log")
            .map_err(|error| refused("log", "cannot be synced", &error))
    }

    /// # Errors
    /// What the system refuses.
    pub(super) fn open(disk: &dyn Disk) -> Result<Self> {
        let open = |name: &str| {
            disk.open(name)
                .map_err(|error| refused(name, "cannot be opened", &error))
        };
        Ok(Self {
            name: LOG.into(),
            file: open(LOG)?,
            mark: open(MARK)?,
            known: Mutex::default(),
        })
    }

    fn write_locked(&self, batch: Vec<Record>, known: Position) -> Result<Position> {
        let mut tail = known;
        let marked = self.marked()?;
        let length = self.length()?;
        self.walk_until(&mut tail, length, &mut |_| Ok(()))?;
        self.check_tail(tail, marked)?;
        if length > tail.end {
            self.cut(tail.end)?;
        }
        let mut bytes = Vec::new();
        let number = tail.number + batch.len() as u64;
        for mut record in batch {
            let place = tail.end + bytes.len() as u64;
            frame::close(&mut record.bytes, 0, record.kind, place)?;
            if bytes.is_empty() {
                bytes = record.bytes;
            } else {
                bytes.extend_from_slice(&record.bytes);
            }
        }
        if let Err(error) = write_all(&*self.file, &bytes, tail.end) {
            // What is left of it is no record; the next writer would cut it off, too.
            let _ = self.cut(tail.end);
            return Err(self.refused("cannot be written", &error));
        }
        let end = tail.end + bytes.len() as u64;
        Ok(Position { end, number })
    }

    /// Reads whole records, up to byte `end`.
    fn walk_until(&self, from: &mut Position, end: u64, take: Take<'_>) -> Result<()> {
        let mut buffer = Vec::new();
        let mut wanted = PIECE_BYTES;
        loop {
            let left = end.saturating_sub(from.end).min(wanted as u64) as usize;
            if left < FRAME_BYTES {
                return Ok(());
            }
            buffer.resize(left, 0);
            let read = read_full(&*self.file, &mut buffer, from.end);
            let read = read.map_err(|error| self.refused("cannot be read", &error))?;
            let start = from.end;
            wanted = match take_whole(&buffer[..read], from, &self.name, take)? {
                // The buffer is walked through; what it ends in is read again.
                Some(needs) if from.end > start => needs.max(PIECE_BYTES),
                Some(needs) if needs > left && (left as u64) < end - from.end => needs,
                _ => return Ok(()),
            };
        }
    }

    /// Notes up to where the log has been synced. Without that nothing is lost but what it would tell of damage.
    fn set_mark(&self, end: u64) {
        let end = end.to_le_bytes();
        let mut mark = [0; MARK_BYTES];
        mark[..8].copy_from_slice(&end);
        mark[8..].copy_from_slice(&crate::checksum(&end).to_le_bytes());
        let _ = write_all(&*self.mark, &mark, 0);
    }

    /// Up to which byte the log has been synced, at least. To be asked before the log's length is.
    fn marked(&self) -> Result<u64> {
        let mut mark = [0; MARK_BYTES];
        let read = read_full(&*self.mark, &mut mark, 0);
        read.map_err(|error| refused(MARK, "cannot be read", &error))?;
        let (end, check) = mark.split_at(8);
        let is_whole = crate::checksum(end).to_le_bytes() == check;
        Ok(match end.try_into() {
            Ok(end) if is_whole => u64::from_le_bytes(end),
            _ => 0,
        })
    }

    /// # Errors
    /// `Corrupt` when no record can be read where one was.
    fn check_tail(&self, tail: Position, marked: u64) -> Result<()> {
        if tail.end >= marked {
            return Ok(());
        }
        let cause = format!(
            "the record at byte {}, behind commit {}, is damaged or gone; the log was good up to byte {marked}",
            tail.end, tail.number
        );
        Err(Error::new(Code::Corrupt, &*self.name, cause))
    }

    fn cut(&self, end: u64) -> Result<()> {
        let cut = self.file.set_len(end);
        cut.map_err(|error| self.refused("cannot be cut where its last record ends", &error))
    }

    fn length(&self) -> Result<u64> {
        self.file
            .len()
            .map_err(|error| self.refused("cannot be looked at", &error))
    }

    fn refused(&self, what: &str, error: &std::io::Error) -> Error {
        refused(&*self.name, what, error)
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn learn(&mut self, tail: Position) {
        self.synced = self.synced.max(tail.end);
        if self.tail.end < tail.end {
            self.tail = tail;
        }
    }
}

impl Order for Appended {
    fn write(&self, batch: Vec<Record>) -> Written {
        let known = *self.known();
        self.file
            .lock()
            .map_err(|error| Failed::Clean(self.refused("cannot be locked", &error)))?;
        let written = self.write_locked(batch, known.tail).map_err(Failed::Clean);
        let unlocked = self.file.unlock();
        let tail = written?;
        unlocked.map_err(|error| Failed::Unknown(self.refused("cannot be unlocked", &error)))?;
        let made_last = sync_range(&*self.file, known.synced, tail.end);
        made_last.map_err(|error| Failed::Unknown(self.refused("cannot be synced", &error)))?;
        self.known().learn(tail);
        self.set_mark(tail.end);
        Ok(tail)
    }

    fn read(&self, from: &mut Position, take: Take<'_>) -> Result<()> {
        let marked = self.marked()?;
        let length = self.length()?;
        if length < from.end {
            let cause = format!("{length} bytes, and it had {}", from.end);
            return Err(Error::new(Code::Corrupt, &*self.name, cause));
        }
        let began = from.end;
        self.walk_until(from, length, take)?;
        self.check_tail(*from, marked)?;
        // Synced after it was read: what was there by then is on the disk now.
        let synced = self.known().synced;
        if from.end > synced {
            let made_last = sync_range(&*self.file, began, from.end);
            made_last.map_err(|error| self.refused("cannot be synced", &error))?;
        }
        self.known().learn(*from);
        Ok(())
    }

    fn check(&self, _number: u64) -> Result<()> {
        // What follows the last whole record was never whole.
        Ok(())
    }

    fn name(&self) -> &str {
        &self.name
    }
}

/// Hands over the whole records in front. What the next one needs; none, when there is none.
fn take_whole(bytes: &[u8], from: &mut Position, file: &Arc<str>, take: Take<'_>) -> Result<Option<usize>> {
    let mut done = 0;
    loop {
        match frame::read(&bytes[done..], from.end) {
            Found::Needs(bytes) => return Ok(Some(bytes)),
            Found::Torn => return Ok(None),
            Found::Whole(record) => {
                take(&Said {
                    number: from.number + 1,
                    kind: record.kind,
                    payload: record.payload,
                    file,
                    at: from.end + FRAME_BYTES as u64,
                })?;
                let bytes = FRAME_BYTES + record.payload.len();
                done += bytes;
                from.end += bytes as u64;
                from.number += 1;
            }
        }
    }
}
