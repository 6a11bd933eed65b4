//! The server's side of a segment: memory that every client may read and no process may shrink.
//!
//! A segment is a memfd of a fixed size. Seals forbid every process, the server included, to change the size or the seals,
//! so no peer can make another one fault; its mode lets only the owner read. Two descriptors stay with the server: one for
//! writing, which is sent to the producer that leases the segment and through which holes are punched, and one that was
//! opened again for reading only, which is sent to consumers. The second can neither be mapped writable nor truncated, and
//! another user cannot open it again.
//!
//! `F_SEAL_FUTURE_WRITE` would protect more, but it also forbids punching holes; so that seal is not used.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use junctura_model::{Code, Error, Result};
use rustix::fs::{FallocateFlags, MemfdFlags, Mode, OFlags, SealFlags};
use rustix::io::Errno;

use crate::classes::PAGE_BYTES;

/// The seals that every segment has, and that every client checks.
pub(crate) const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

/// A sealed segment. Its memory lives until this value and every map are dropped.
#[derive(Debug)]
pub struct SealedSegment {
    rw: OwnedFd,
    ro: OwnedFd,
    bytes: u64,
}

impl SealedSegment {
    /// Makes a segment of `bytes` zeros, of which none takes memory before it is touched.
    ///
    /// # Errors
    /// `InvalidArgument` unless `bytes` is a positive multiple of a page; `LimitExceeded` when the process or the
    /// system has no descriptors left; `Io` for whatever else the system refuses.
    pub fn create(bytes: u64) -> Result<Self> {
        check_size(bytes)?;
        let made = memfd().and_then(|file| Self::sealed(file, bytes));
        made.map_err(|errno| refused(bytes, errno))
    }

    fn sealed(rw: OwnedFd, bytes: u64) -> rustix::io::Result<Self> {
        rustix::fs::ftruncate(&rw, bytes)?;
        rustix::fs::fchmod(&rw, Mode::RUSR)?;
        rustix::fs::fcntl_add_seals(&rw, SEALS)?;
        let path = format!("/proc/self/fd/{}", rw.as_raw_fd());
        let ro = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Self { rw, ro, bytes })
    }

    /// Bytes of the whole segment.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The descriptor for the producer that leases the segment.
    #[must_use]
    pub fn writable(&self) -> BorrowedFd<'_> {
        self.rw.as_fd()
    }

    /// The descriptor for consumers.
    #[must_use]
    pub fn readonly(&self) -> BorrowedFd<'_> {
        self.ro.as_fd()
    }

    /// Gives the memory of the whole pages within a range back to the system; the range reads as zeros from then on,
    /// at once and in every map. A range that reaches over the end is cut.
    ///
    /// # Errors
    /// `Io` when the system refuses.
    pub fn punch(&self, offset: u64, length: u64) -> Result<()> {
        let end = offset.saturating_add(length).min(self.bytes);
        let (first, last) = (
            offset.div_ceil(PAGE_BYTES).saturating_mul(PAGE_BYTES),
            end - end % PAGE_BYTES,
        );
        if first >= last {
            return Ok(());
        }
        let how = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        rustix::fs::fallocate(&self.rw, how, first, last - first).map_err(|errno| io("punching a hole", errno))
    }

    /// Makes the pages of a range, which read as zeros until they are written. A range that reaches over the end is cut.
    ///
    /// # Errors
    /// `Io` when the system refuses.
    pub fn make_pages(&self, offset: u64, length: u64) -> Result<()> {
        let end = offset.saturating_add(length).min(self.bytes);
        if offset >= end {
            return Ok(());
        }
        rustix::fs::fallocate(&self.rw, FallocateFlags::KEEP_SIZE, offset, end - offset)
            .map_err(|errno| io("making its pages", errno))
    }

    /// Gives all memory of the segment back to the system, even where a slow client still maps it.
    ///
    /// # Errors
    /// `Io` when the system refuses.
    pub fn punch_all(&self) -> Result<()> {
        self.punch(0, self.bytes)
    }

    /// Bytes of memory that the segment takes now.
    ///
    /// # Errors
    /// `Io` when the system refuses.
    pub fn resident_bytes(&self) -> Result<u64> {
        let stat = rustix::fs::fstat(&self.ro).map_err(|errno| io("asking for its size", errno))?;
        Ok(stat.st_blocks as u64 * 512)
    }
}

/// Memory of a segment to come: its pages are made before it is known how large the segment will be.
#[derive(Debug)]
pub struct SegmentDraft {
    file: OwnedFd,
    bytes: u64,
}

impl SegmentDraft {
    /// Makes the pages of `bytes`, which read as zeros. Takes about 0.2 ms for each MiB.
    ///
    /// # Errors
    /// Those of [`SealedSegment::create`].
    pub fn create(bytes: u64) -> Result<Self> {
        check_size(bytes)?;
        let made = memfd().and_then(|file| {
            rustix::fs::ftruncate(&file, bytes)?;
            rustix::fs::fallocate(&file, FallocateFlags::KEEP_SIZE, 0, bytes)?;
            Ok(file)
        });
        let file = made.map_err(|errno| refused(bytes, errno))?;
        Ok(Self { file, bytes })
    }

    /// Its bytes, all of which take memory.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Makes the segment of `bytes`. Pages beyond are given back to the system; those that are missing are made when they
    /// are touched.
    ///
    /// # Errors
    /// Those of [`SealedSegment::create`].
    pub fn seal(self, bytes: u64) -> Result<SealedSegment> {
        check_size(bytes)?;
        SealedSegment::sealed(self.file, bytes).map_err(|errno| refused(bytes, errno))
    }
}

fn check_size(bytes: u64) -> Result<()> {
    if bytes == 0 || !bytes.is_multiple_of(PAGE_BYTES) || i64::try_from(bytes).is_err() {
        let cause = format!("{bytes} bytes are not a positive multiple of {PAGE_BYTES}");
        return Err(Error::new(Code::InvalidArgument, "segment", cause));
    }
    Ok(())
}

fn refused(bytes: u64, errno: Errno) -> Error {
    let code = match errno {
        Errno::MFILE | Errno::NFILE => Code::LimitExceeded,
        _ => Code::Io,
    };
    let cause = format!("making {bytes} bytes of shared memory: {errno}");
    Error::new(code, "segment", cause)
}

/// An empty memfd that may be sealed and, where the kernel knows it (6.3), never be executed.
fn memfd() -> rustix::io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    match rustix::fs::memfd_create("junctura", flags | MemfdFlags::NOEXEC_SEAL) {
        Err(Errno::INVAL) => rustix::fs::memfd_create("junctura", flags),
        other => other,
    }
}

fn io(doing: &str, errno: Errno) -> Error {
    Error::new(Code::Io, "segment", format!("{doing}: {errno}"))
}
