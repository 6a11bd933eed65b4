//! The commit log of a store on a local file system: one file that every writer appends to, in an order that is everybody's.
//!
//! A kernel's lock is held while a record is written, and not while it is made last: any sync covers all that stands before. A
//! death gives the lock back, and may leave a torn record at the end, which the next writer cuts off. Readers take no lock; they
//! end at the first record that is not whole, and sync before they believe what they have read: nothing is visible that could
//! still be lost. Flushes of one process that meet are written, and synced, together.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use junctura_model::{Code, Error, Result};

use crate::disk::{Disk, File, read_full, refused, sync_range, write_all};
use crate::frame::{self, FRAME_BYTES, Found};

/// Where it lies.
pub(crate) const LOG: &str = "log/00000000000000000001";
/// What is read at once.
const PIECE_BYTES: usize = 1 << 20;

/// See the module.
#[derive(Debug)]
pub(crate) struct Log {
    name: Arc<str>,
    file: Arc<dyn File>,
    state: Mutex<State>,
    done: Condvar,
}

/// A place between two records, and the number of the one before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) end: u64,
    pub(crate) number: u64,
}

/// A record as a reader is given it.
#[derive(Debug)]
pub(crate) struct Said<'a> {
    pub(crate) number: u64,
    pub(crate) kind: u32,
    pub(crate) payload: &'a [u8],
    /// Byte of the file where the payload begins.
    pub(crate) at: u64,
}

#[derive(Debug, Default)]
struct State {
    /// The last end that is known here.
    tail: Position,
    /// Up to here it was synced by this process.
    synced: u64,
    waiting: Vec<Waiting>,
    answers: Vec<(u64, Result<u64>)>,
    is_writing: bool,
    tickets: u64,
    /// A sync has failed: what is on the disk is not known any more.
    broken: Option<Error>,
}

#[derive(Debug)]
struct Waiting {
    ticket: u64,
    kind: u32,
    /// With room for the header in front.
    record: Vec<u8>,
}

/// The new end, or why there is none.
type Appended = std::result::Result<Position, Failed>;

/// Why an append failed, and whether it is known to have left nothing.
#[derive(Debug)]
enum Failed {
    Clean(Error),
    Unknown(Error),
}

impl Log {
    /// Makes an empty one, if there is none.
    ///
    /// # Errors
    /// What the system refuses.
    pub(crate) fn create(disk: &dyn Disk) -> Result<()> {
        let made = disk.create(LOG).and_then(|file| file.sync());
        match made {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                return Err(refused(LOG, "cannot be made", &error));
            }
            _ => {}
        }
        disk.sync_names("log")
            .map_err(|error| refused("log", "cannot be synced", &error))
    }

    /// # Errors
    /// What the system refuses.
    pub(crate) fn open(disk: &dyn Disk) -> Result<Self> {
        let file = disk
            .open(LOG)
            .map_err(|error| refused(LOG, "cannot be opened", &error))?;
        Ok(Self {
            name: LOG.into(),
            file,
            state: Mutex::default(),
            done: Condvar::new(),
        })
    }

    /// The file that it is in, by its name in the store.
    pub(crate) fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Whether a sync has failed, so that it is not known what is on the disk.
    pub(crate) fn is_broken(&self) -> bool {
        self.state().broken.is_some()
    }

    /// A record's beginning: what is said goes behind it.
    pub(crate) fn begin() -> Vec<u8> {
        let mut record = Vec::new();
        frame::open(&mut record);
        record
    }

    /// Appends a record, and waits until it is on the disk. Says its number.
    ///
    /// # Errors
    /// `TooLarge`; what the system refuses. After a failed sync it is not known whether the record is there, and the log takes
    /// no more until the store is opened again.
    pub(crate) fn append(&self, kind: u32, record: Vec<u8>) -> Result<u64> {
        // By itself, so that it fails none of those that are written with it.
        frame::check_length(&record)?;
        let mut state = self.state();
        let ticket = state.tickets;
        state.tickets += 1;
        state.waiting.push(Waiting { ticket, kind, record });
        loop {
            if let Some(at) = state.answers.iter().position(|(answered, _)| *answered == ticket) {
                return state.answers.swap_remove(at).1;
            }
            if state.is_writing {
                state = self.done.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            state.is_writing = true;
            let batch = std::mem::take(&mut state.waiting);
            let (tail, synced, broken) = (state.tail, state.synced, state.broken.clone());
            drop(state);
            let tickets: Vec<u64> = batch.iter().map(|waiting| waiting.ticket).collect();
            let written = match broken {
                Some(error) => Err(Failed::Unknown(error)),
                None => self.write(batch, tail, synced),
            };
            state = self.state();
            state.is_writing = false;
            state.answer(&tickets, written);
            self.done.notify_all();
        }
    }

    /// Writes records behind whatever others have written meanwhile, and syncs.
    fn write(&self, batch: Vec<Waiting>, known: Position, synced: u64) -> Appended {
        self.file
            .lock()
            .map_err(|error| Failed::Clean(self.refused("cannot be locked", &error)))?;
        let written = self.write_locked(batch, known).map_err(Failed::Clean);
        let unlocked = self.file.unlock();
        let tail = written?;
        unlocked.map_err(|error| Failed::Unknown(self.refused("cannot be unlocked", &error)))?;
        let made_last = sync_range(&*self.file, synced, tail.end);
        made_last.map_err(|error| Failed::Unknown(self.refused("cannot be synced", &error)))?;
        Ok(tail)
    }

    fn write_locked(&self, batch: Vec<Waiting>, known: Position) -> Result<Position> {
        let mut tail = known;
        let length = self.length()?;
        self.walk_until(&mut tail, length, &mut |_| Ok(()))?;
        if length > tail.end {
            self.cut(tail.end)?;
        }
        let mut bytes = Vec::new();
        let number = tail.number + batch.len() as u64;
        for Waiting { kind, mut record, .. } in batch {
            let place = tail.end + bytes.len() as u64;
            frame::close(&mut record, 0, kind, place)?;
            if bytes.is_empty() {
                bytes = record;
            } else {
                bytes.extend_from_slice(&record);
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

    /// Hands over all records behind a position, and moves it behind them. When it returns, all of them are on the disk; before, and
    /// when it fails, they are not to be believed.
    ///
    /// # Errors
    /// What the system refuses; `Corrupt` when the log is shorter than it was; what `take` says.
    pub(crate) fn read(&self, from: &mut Position, take: &mut dyn FnMut(&Said<'_>) -> Result<()>) -> Result<()> {
        let length = self.length()?;
        if length < from.end {
            let cause = format!("{length} bytes, and it had {}", from.end);
            return Err(Error::new(Code::Corrupt, &*self.name, cause));
        }
        let began = from.end;
        self.walk_until(from, length, take)?;
        // Synced after it was read: what was there by then is on the disk now.
        let synced = self.state().synced;
        if from.end > synced {
            let made_last = sync_range(&*self.file, began, from.end);
            made_last.map_err(|error| self.refused("cannot be synced", &error))?;
        }
        let mut state = self.state();
        state.synced = state.synced.max(from.end);
        if state.tail.end < from.end {
            state.tail = *from;
        }
        Ok(())
    }

    /// Reads whole records, up to byte `end`.
    fn walk_until(&self, from: &mut Position, end: u64, take: &mut dyn FnMut(&Said<'_>) -> Result<()>) -> Result<()> {
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
            wanted = match take_whole(&buffer[..read], from, take)? {
                // The buffer is walked through; what it ends in is read again.
                Some(needs) if from.end > start => needs.max(PIECE_BYTES),
                Some(needs) if needs > left && (left as u64) < end - from.end => needs,
                _ => return Ok(()),
            };
        }
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

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The outcome of what was written together, for each who waits for it.
    fn answer(&mut self, tickets: &[u64], written: Appended) {
        let answers = match written {
            Ok(tail) => {
                let first = tail.number + 1 - tickets.len() as u64;
                self.synced = self.synced.max(tail.end);
                if tail.end > self.tail.end {
                    self.tail = tail;
                }
                tickets
                    .iter()
                    .zip(first..)
                    .map(|(&ticket, number)| (ticket, Ok(number)))
                    .collect::<Vec<_>>()
            }
            Err(failed) => {
                let (Failed::Clean(error) | Failed::Unknown(error)) = &failed;
                if let Failed::Unknown(error) = &failed {
                    self.broken = Some(error.clone());
                }
                tickets.iter().map(|&ticket| (ticket, Err(error.clone()))).collect()
            }
        };
        self.answers.extend(answers);
    }
}

/// Hands over the whole records in front. What the next one needs; none, when there is none.
fn take_whole(
    bytes: &[u8],
    from: &mut Position,
    take: &mut dyn FnMut(&Said<'_>) -> Result<()>,
) -> Result<Option<usize>> {
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
