//! The file tier: payloads that memory has no room for, in one file of the server.
//!
//! The file has no name: no other process can open or truncate it, and however the server ends, its room on the disk is
//! free again once the last descriptor is closed. A consumer gets a read-only descriptor, and reads its payloads by itself,
//! so that a slow disk blocks no other client. It reads rather than maps: on a disk error a reader gets an error, a map a
//! signal.
//!
//! Every payload has a CRC-32C (Castagnoli), computed while it is written and compared by its reader.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

use junctura_model::{Code, Error, Result};
use rustix::fs::{FallocateFlags, Mode, OFlags};
use rustix::io::Errno;

use crate::classes::PAGE_BYTES;
use crate::segment::SealedSegment;

/// How much is copied at once, so that it is still in the processor's cache when it is written.
const CHUNK_BYTES: usize = 256 << 10;

/// The server's side of the file tier.
#[derive(Debug)]
pub struct SpillFile {
    rw: OwnedFd,
    ro: OwnedFd,
}

impl SpillFile {
    /// Makes an empty file in a directory, and the directory (for its owner alone) if there is none.
    ///
    /// # Errors
    /// `Io` naming the directory when the system refuses.
    pub fn create(directory: &Path) -> Result<Self> {
        let failed = |errno: Errno| io(&format!("making a file in {}", directory.display()), errno);
        make_directory(directory).map_err(failed)?;
        Self::without_name(directory)
            .or_else(|errno| match errno {
                // The file system cannot make files without names.
                Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL => Self::with_name_taken_away(directory),
                other => Err(other),
            })
            .map_err(failed)
    }

    fn without_name(directory: &Path) -> rustix::io::Result<Self> {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC | OFlags::EXCL;
        let rw = rustix::fs::open(directory, flags, Mode::RUSR)?;
        Self::reopened(rw)
    }

    fn with_name_taken_away(directory: &Path) -> rustix::io::Result<Self> {
        let name = format!("junctura-{}.spill", std::process::id());
        let path = directory.join(name);
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::CLOEXEC;
        let rw = rustix::fs::open(&path, flags, Mode::RUSR)?;
        let made = Self::reopened(rw);
        rustix::fs::unlink(&path)?;
        made
    }

    fn reopened(rw: OwnedFd) -> rustix::io::Result<Self> {
        let path = format!("/proc/self/fd/{}", rw.as_raw_fd());
        let ro = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Self { rw, ro })
    }

    /// The descriptor for consumers.
    #[must_use]
    pub fn readonly(&self) -> BorrowedFd<'_> {
        self.ro.as_fd()
    }

    /// Copies a payload out of a segment to `at`; gives its checksum. Waits for the disk as long as that takes.
    ///
    /// # Errors
    /// `Io` when the segment has not so many bytes, or the disk does not take them: it may be full.
    pub fn copy(&self, segment: &SealedSegment, offset: u64, length: u64, at: u64) -> Result<u32> {
        let mut buffer = vec![0; CHUNK_BYTES.min(length as usize)];
        let (mut done, mut checksum) = (0, 0);
        while done < length {
            let size = buffer.len().min((length - done) as usize);
            let chunk = &mut buffer[..size];
            read_all(segment.readonly(), chunk, offset + done)?;
            checksum = crc32c::crc32c_append(checksum, chunk);
            write_all(self.rw.as_fd(), chunk, at + done)?;
            done += size as u64;
        }
        Ok(checksum)
    }

    /// Writes a payload to `at`; gives its checksum. Waits for the disk as long as that takes.
    ///
    /// # Errors
    /// `Io` when the disk does not take it: it may be full.
    pub fn write(&self, payload: &[u8], at: u64) -> Result<u32> {
        write_all(self.rw.as_fd(), payload, at)?;
        Ok(crc32c::crc32c(payload))
    }

    /// Gives the room of a payload back to the disk, where the file system can do so; elsewhere it is used again.
    ///
    /// # Errors
    /// `Io` when the system refuses for another reason.
    pub fn punch(&self, at: u64, length: u64) -> Result<()> {
        let (first, last) = (at.next_multiple_of(PAGE_BYTES), (at + length) / PAGE_BYTES * PAGE_BYTES);
        if first >= last {
            return Ok(());
        }
        let how = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        match rustix::fs::fallocate(&self.rw, how, first, last - first) {
            Ok(()) | Err(Errno::OPNOTSUPP) => Ok(()),
            Err(errno) => Err(io("punching a hole", errno)),
        }
    }

    /// Bytes that the file takes on its disk now.
    ///
    /// # Errors
    /// `Io` when the system refuses.
    pub fn disk_bytes(&self) -> Result<u64> {
        let stat = rustix::fs::fstat(&self.ro).map_err(|errno| io("asking for its size", errno))?;
        Ok(stat.st_blocks as u64 * 512)
    }
}

/// Reads a payload of `length` bytes from `at` in a file tier into memory of the caller. Waits for the disk.
///
/// # Errors
/// `Io` when the disk does not give it, `Corrupt` when the file ends before it, `TooLarge` when there is no memory for it.
pub fn read(file: BorrowedFd<'_>, at: u64, length: u64) -> Result<Vec<u8>> {
    let stat = rustix::fs::fstat(file).map_err(|errno| io("asking for its size", errno))?;
    if at.checked_add(length).is_none_or(|end| end > stat.st_size as u64) {
        return Err(Error::new(
            Code::Corrupt,
            "spilled payload",
            "the file ends before its last byte",
        ));
    }
    let mut payload = Vec::new();
    if payload.try_reserve_exact(length as usize).is_err() {
        let cause = format!("there is no memory for {length} bytes");
        return Err(Error::new(Code::TooLarge, "spilled payload", cause));
    }
    payload.resize(length as usize, 0);
    read_all(file, &mut payload, at)?;
    Ok(payload)
}

fn make_directory(directory: &Path) -> rustix::io::Result<()> {
    match rustix::fs::mkdir(directory, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(errno) => Err(errno),
    }
}

fn read_all(file: BorrowedFd<'_>, mut bytes: &mut [u8], mut at: u64) -> Result<()> {
    while !bytes.is_empty() {
        match rustix::io::pread(file, &mut *bytes, at) {
            Ok(0) => {
                return Err(Error::new(
                    Code::Corrupt,
                    "spilled payload",
                    "the file ends before its last byte",
                ));
            }
            Ok(count) => {
                bytes = &mut bytes[count..];
                at += count as u64;
            }
            Err(Errno::INTR) => {}
            Err(errno) => return Err(io("reading a payload", errno)),
        }
    }
    Ok(())
}

fn write_all(file: BorrowedFd<'_>, mut bytes: &[u8], mut at: u64) -> Result<()> {
    while !bytes.is_empty() {
        match rustix::io::pwrite(file, bytes, at) {
            Ok(0) => return Err(io("writing a payload", Errno::NOSPC)),
            Ok(count) => {
                bytes = &bytes[count..];
                at += count as u64;
            }
            Err(Errno::INTR) => {}
            Err(errno) => return Err(io("writing a payload", errno)),
        }
    }
    Ok(())
}

fn io(doing: &str, errno: Errno) -> Error {
    Error::new(Code::Io, "file tier", format!("{doing}: {errno}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mapping::WritableMapping;

    fn directory(name: &str) -> std::path::PathBuf {
        std::env::temp_dir().join(format!("junctura-tier-{}-{name}", std::process::id()))
    }

    fn names_in(directory: &Path) -> usize {
        std::fs::read_dir(directory).unwrap().count()
    }

    #[test]
    fn payloads_come_back_as_they_went_and_leave_nothing() {
        let directory = directory("back");
        let file = SpillFile::create(&directory).unwrap();
        assert_eq!(names_in(&directory), 0);
        let payload: Vec<u8> = (0..1_000_003u32).map(|i| ((i * 7) >> 3) as u8).collect();
        let segment = SealedSegment::create(1 << 21).unwrap();
        let fd = segment.writable().try_clone_to_owned().unwrap();
        let mapping = std::sync::Arc::new(WritableMapping::new(fd, 1 << 21, 1 << 20).unwrap());
        let mut slot = mapping.take(1, payload.len() as u64).unwrap();
        slot.copy_from_slice(&payload);
        drop(slot);
        let checksum = file.copy(&segment, 1 << 20, payload.len() as u64, 4096).unwrap();
        assert_eq!(checksum, crc32c::crc32c(&payload));
        assert_eq!(file.write(b"small", 512).unwrap(), crc32c::crc32c(b"small"));
        let from = file.readonly();
        assert_eq!(read(from, 4096, payload.len() as u64).unwrap(), payload);
        assert_eq!(read(from, 512, 5).unwrap(), b"small");
        let before = file.disk_bytes().unwrap();
        file.punch(4096, payload.len() as u64).unwrap();
        assert!(file.disk_bytes().unwrap() < before);
        drop(file);
        std::fs::remove_dir(directory).unwrap();
    }

    #[test]
    fn what_is_not_there_is_an_error() {
        let directory = directory("not-there");
        let file = SpillFile::create(&directory).unwrap();
        file.write(&[1; 100], 0).unwrap();
        for (at, length) in [(0, 101), (100, 1), (u64::MAX, 1), (1, u64::MAX)] {
            assert_eq!(read(file.readonly(), at, length).unwrap_err().code(), Code::Corrupt);
        }
        let segment = SealedSegment::create(4096).unwrap();
        assert!(file.copy(&segment, 4000, 97, 0).is_err());
        let mut byte = [0];
        assert!(rustix::io::pwrite(file.readonly(), &byte, 0).is_err());
        assert_eq!(rustix::io::pread(file.readonly(), &mut byte, 0), Ok(1));
        drop(file);
        std::fs::remove_dir(directory).unwrap();
    }

    #[test]
    fn a_file_system_that_makes_only_files_with_names_will_do() {
        let directory = directory("named");
        make_directory(&directory).unwrap();
        let file = SpillFile::with_name_taken_away(&directory).unwrap();
        assert_eq!(names_in(&directory), 0);
        file.write(b"bytes", 0).unwrap();
        assert_eq!(read(file.readonly(), 0, 5).unwrap(), b"bytes");
        std::fs::remove_dir(&directory).unwrap();
        let missing = directory.join("no/where");
        let error = SpillFile::create(&missing).unwrap_err();
        assert_eq!(error.code(), Code::Io);
        assert!(error.to_string().contains("no/where"), "{error}");
    }
}
