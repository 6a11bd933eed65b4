//! One file of an appended log.

use std::io;
use std::sync::Arc;

use junctura_model::{Code, Error, Result};

use super::{AppendError, LogPosition, ReadRecord, Take};
use crate::log::frame::{self, FRAME_BYTES, FrameState};
use crate::storage::{StorageDisk, StorageFile, read_full, refused, sync_range, write_all};

/// The folder of the files.
pub(crate) const FOLDER: &str = "log";
/// The offset (u64), and its CRC-32C (u32).
const MARK_BYTES: usize = 12;
/// Number of bytes that are read at once.
const PIECE_BYTES: usize = 1 << 20;
/// The kind of the last record of a file that is continued elsewhere. It is not a commit, and has the number of the
/// next commit (u64), which names the file that contains it.
const CONTINUED: u32 = 4;

/// See the module.
#[derive(Debug)]
pub(super) struct LogFile {
    pub(super) name: Arc<str>,
    /// The number of its first commit.
    pub(super) first: u64,
    file: Arc<dyn StorageFile>,
    mark: Arc<dyn StorageFile>,
}

/// The end of a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WalkEnd {
    /// Behind the last whole record.
    pub(super) end: u64,
    /// The position at which the log continues in another file.
    pub(super) next: Option<LogPosition>,
}

/// The name of the file whose first commit has a number.
pub(crate) fn name_of(first: u64) -> String {
    format!("{FOLDER}/{first:020}")
}

/// Returns the number of the first commit in the name of a file.
pub(crate) fn first_of(name: &str) -> Option<u64> {
    let leaf = name.strip_prefix(FOLDER)?.strip_prefix('/')?;
    let is_one = leaf.len() == 20 && leaf.bytes().all(|byte| byte.is_ascii_digit());
    leaf.parse()
        .ok()
        .filter(|first| is_one && (1..=u64::MAX / 2).contains(first))
}

pub(super) fn mark_of(name: &str) -> String {
    format!("{name}.synced")
}

impl LogFile {
    /// Makes an empty one, if there is none.
    ///
    /// # Errors
    /// What the system refuses.
    pub(super) fn create(disk: &dyn StorageDisk, first: u64) -> Result<()> {
        let name = name_of(first);
        for name in [&mark_of(&name), &name] {
            let made = disk.create(name).and_then(|file| file.sync());
            match made {
                Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                    return Err(refused(name, "cannot be made", &error));
                }
                _ => {}
            }
        }
        disk.sync_names(FOLDER)
            .map_err(|error| refused(FOLDER, "cannot be synced", &error))
    }

    /// # Errors
    /// `NotFound` where there is none; what the system refuses.
    pub(super) fn open(disk: &dyn StorageDisk, first: u64) -> Result<Self> {
        let name = name_of(first);
        let open = |name: &str| {
            disk.open(name)
                .map_err(|error| refused(name, "cannot be opened", &error))
        };
        Ok(Self {
            file: open(&name)?,
            mark: open(&mark_of(&name))?,
            name: name.into(),
            first,
        })
    }

    pub(super) fn lock(&self) -> Result<()> {
        let locked = self.file.lock();
        locked.map_err(|error| self.refused("cannot be locked", &error))
    }

    pub(super) fn unlock(&self) -> Result<()> {
        let unlocked = self.file.unlock();
        unlocked.map_err(|error| self.refused("cannot be unlocked", &error))
    }

    /// Writes complete records at this offset, all or none: concurrent readers see the first record only after the
    /// others are written.
    ///
    /// # Errors
    /// Errors of system calls; the outcome is unknown if a part may have been written and could not be truncated.
    pub(super) fn write(&self, records: &[u8], at: u64) -> std::result::Result<(), AppendError> {
        let (magic, rest) = records.split_at(records.len().min(frame::MAGIC.len()));
        let refused = |error: io::Error| self.refused("cannot be written", &error);
        if let Err(error) = write_all(&*self.file, rest, at + magic.len() as u64) {
            // The rest is not a record; the next writer would truncate it, too.
            let _ = self.cut(at);
            return Err(AppendError::Clean(refused(error)));
        }
        write_all(&*self.file, magic, at).map_err(|error| match self.cut(at) {
            Ok(()) => AppendError::Clean(refused(error)),
            Err(_) => AppendError::Unknown(refused(error)),
        })
    }

    /// Writes the record at this offset that the log continues elsewhere, with this commit; nothing is written after
    /// it. Returns its end.
    pub(super) fn close(&self, at: u64, next: u64) -> Result<u64> {
        let mut record = Vec::new();
        frame::open(&mut record);
        record.extend_from_slice(&next.to_le_bytes());
        frame::close(&mut record, 0, CONTINUED, at)?;
        self.write(&record, at).map_err(AppendError::into_error)?;
        Ok(at + record.len() as u64)
    }

    /// Makes last what was written between two places.
    pub(super) fn sync(&self, from: u64, end: u64) -> Result<()> {
        let synced = sync_range(&*self.file, from, end);
        synced.map_err(|error| self.refused("cannot be synced", &error))
    }

    /// Reads whole records, up to byte `end`.
    pub(super) fn walk_until(&self, from: &mut LogPosition, end: u64, take: Take<'_>) -> Result<WalkEnd> {
        let mut buffer = Vec::new();
        let mut wanted = PIECE_BYTES;
        loop {
            let here = |from: &LogPosition| WalkEnd {
                end: from.end,
                next: None,
            };
            let left = end.saturating_sub(from.end).min(wanted as u64) as usize;
            if left < FRAME_BYTES {
                return Ok(here(from));
            }
            buffer.resize(left, 0);
            let read = read_full(&*self.file, &mut buffer, from.end);
            let read = read.map_err(|error| self.refused("cannot be read", &error))?;
            let start = from.end;
            wanted = match self.take_whole(&buffer[..read], from, take)? {
                PieceRead::All(walked) => return Ok(walked),
                // The buffer is walked through; what it ends in is read again.
                PieceRead::Needs(needs) if from.end > start => needs.max(PIECE_BYTES),
                PieceRead::Needs(needs) if needs > left && (left as u64) < end - from.end => needs,
                _ => return Ok(here(from)),
            };
        }
    }

    /// Hands over the whole records in front.
    fn take_whole(&self, bytes: &[u8], from: &mut LogPosition, take: Take<'_>) -> Result<PieceRead> {
        let mut done = 0;
        loop {
            match frame::read(&bytes[done..], from.end) {
                FrameState::Needs(bytes) => return Ok(PieceRead::Needs(bytes)),
                FrameState::Torn => return Ok(PieceRead::Torn),
                FrameState::Whole(record) if record.kind == CONTINUED => {
                    let next = record.payload.first_chunk().map(|next| u64::from_le_bytes(*next));
                    // A file has at least one commit before it is continued: otherwise it would be continued by itself.
                    if next != Some(from.number + 1) || from.number < self.first {
                        return Err(Error::new(
                            Code::Corrupt,
                            &*self.name,
                            "it continues with another commit",
                        ));
                    }
                    return Ok(PieceRead::All(WalkEnd {
                        end: from.end + (FRAME_BYTES + record.payload.len()) as u64,
                        next: Some(LogPosition {
                            log: from.number + 1,
                            end: 0,
                            number: from.number,
                            as_of: None,
                        }),
                    }));
                }
                FrameState::Whole(record) => {
                    take(&ReadRecord {
                        number: from.number + 1,
                        kind: record.kind,
                        payload: record.payload,
                        file: &self.name,
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

    /// Records the offset up to which the file has been synced. Without it, only the detection of damage is lost.
    pub(super) fn set_mark(&self, end: u64) {
        let end = end.to_le_bytes();
        let mut mark = [0; MARK_BYTES];
        mark[..8].copy_from_slice(&end);
        mark[8..].copy_from_slice(&crate::checksum(&end).to_le_bytes());
        let _ = write_all(&*self.mark, &mark, 0);
    }

    /// Up to which byte it has been synced, at least. To be asked before its length is.
    pub(super) fn marked(&self) -> Result<u64> {
        let mut mark = [0; MARK_BYTES];
        let read = read_full(&*self.mark, &mut mark, 0);
        read.map_err(|error| refused(mark_of(&self.name), "cannot be read", &error))?;
        let (end, check) = mark.split_at(8);
        let is_whole = crate::checksum(end).to_le_bytes() == check;
        Ok(match end.try_into() {
            Ok(end) if is_whole => u64::from_le_bytes(end),
            _ => 0,
        })
    }

    /// # Errors
    /// `Corrupt` when no record can be read where one was.
    pub(super) fn check_tail(&self, walked: WalkEnd, number: u64, marked: u64) -> Result<()> {
        if walked.end >= marked {
            return Ok(());
        }
        let cause = format!(
            "the record at byte {}, behind commit {number}, is damaged or missing; the log was valid up to byte {marked}",
            walked.end
        );
        Err(Error::new(Code::Corrupt, &*self.name, cause))
    }

    pub(super) fn cut(&self, end: u64) -> Result<()> {
        let cut = self.file.set_len(end);
        cut.map_err(|error| self.refused("cannot be cut where its last record ends", &error))
    }

    /// How many bytes it has, which had so many.
    ///
    /// # Errors
    /// `Corrupt` when it has fewer; what the system refuses.
    pub(super) fn length_from(&self, known: u64) -> Result<u64> {
        let length = self.file.len();
        let length = length.map_err(|error| self.refused("cannot be looked at", &error))?;
        if length < known {
            let cause = format!("{length} bytes, and it had {known}");
            return Err(Error::new(Code::Corrupt, &*self.name, cause));
        }
        Ok(length)
    }

    fn refused(&self, what: &str, error: &std::io::Error) -> Error {
        refused(&*self.name, what, error)
    }
}

/// The result of reading a piece of a file.
enum PieceRead {
    /// All that there is.
    All(WalkEnd),
    /// The next record needs so many bytes.
    Needs(usize),
    /// There is no next record.
    Torn,
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use crate::storage::MemoryDisk;

    use super::*;

    /// A file of a disk that is full after so many bytes, and of which nothing can be cut off.
    #[derive(Debug)]
    struct Full(Arc<dyn StorageFile>, AtomicU64);

    impl StorageFile for Full {
        fn len(&self) -> io::Result<u64> {
            self.0.len()
        }

        fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<usize> {
            self.0.read_at(into, at)
        }

        fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<usize> {
            let left = self.1.load(Ordering::Relaxed).min(bytes.len() as u64);
            self.1.fetch_sub(left, Ordering::Relaxed);
            if left == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.0.write_at(&bytes[..left as usize], at)
        }

        fn set_len(&self, _bytes: u64) -> io::Result<()> {
            Err(io::ErrorKind::PermissionDenied.into())
        }

        fn sync(&self) -> io::Result<()> {
            Ok(())
        }

        fn lock(&self) -> io::Result<()> {
            Ok(())
        }

        fn unlock(&self) -> io::Result<()> {
            Ok(())
        }
    }

    fn records(count: usize) -> Vec<u8> {
        let mut all = Vec::new();
        for number in 0..count {
            let start = frame::open(&mut all);
            all.extend_from_slice(b"a commit");
            frame::close(&mut all, start, number as u32, start as u64).unwrap();
        }
        all
    }

    #[test]
    fn commits_that_are_written_together_are_there_together() {
        let all = records(3);
        for room in 0..=all.len() as u64 {
            let disk = MemoryDisk::default();
            LogFile::create(&disk, 1).unwrap();
            let mut log = LogFile::open(&disk, 1).unwrap();
            log.file = Arc::new(Full(Arc::clone(&log.file), room.into()));
            let written = log.write(&all, 0);
            let is_written = written.is_ok();
            assert_eq!(is_written, room == all.len() as u64);
            // Only of what was begun with is it not known.
            let is_begun = room >= (all.len() - frame::MAGIC.len()) as u64;
            assert_eq!(matches!(written, Err(AppendError::Unknown(_))), is_begun && !is_written);
            let mut seen = LogPosition::default();
            log.walk_until(&mut seen, log.length_from(0).unwrap(), &mut |_| Ok(()))
                .unwrap();
            assert_eq!(seen.number, if is_written { 3 } else { 0 }, "room for {room} bytes");
        }
    }

    #[test]
    fn a_log_that_has_become_shorter_is_damaged() {
        let disk = MemoryDisk::default();
        LogFile::create(&disk, 1).unwrap();
        let log = LogFile::open(&disk, 1).unwrap();
        log.write(&records(2), 0).unwrap();
        assert_eq!(log.length_from(10).unwrap(), records(2).len() as u64);
        log.cut(20).unwrap();
        assert_eq!(log.length_from(21).unwrap_err().code(), Code::Corrupt);
    }
}
