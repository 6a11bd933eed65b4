//! Files and standard input, read piece by piece, so that a file may be larger than memory.
//!
//! ```text
//!   read before            in the buffer                not read yet
//!  ─────────────┼──────────────────────────────────┼─────────────────────
//!             position
//! ```
//! A read from a pipe may take for ever: before it waits, `idle` is called (what was offered is sent), and Ctrl-C ends it.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::fd::AsFd;
use std::path::Path;

use junctura::{Code, Error, Result};
use junctura_terminal::interrupt::InterruptFlag;
use junctura_transport::near_file;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// So many of the first bytes are kept, to name what a file is.
const HEAD: usize = 64;
/// At most so much is read at once; Ctrl-C is looked at in between.
const PIECE: usize = 4 << 20;
/// At most so much of the buffer is made ready for one read: a pipe gives little at a time.
const FILLED: usize = 256 << 10;
/// How long a wait for a pipe takes until Ctrl-C is looked at again.
const ROUND: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 200_000_000,
};
const AT_ONCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// Called before a read waits.
pub(crate) type Idle<'a> = &'a mut dyn FnMut() -> Result<()>;

/// Something to read from, from front to back.
pub(crate) struct InputSource {
    name: String,
    file: File,
    /// Of a regular file.
    bytes: Option<u64>,
    buffer: Vec<u8>,
    begin: usize,
    position: u64,
    /// The first bytes of all.
    head: Vec<u8>,
    ended: bool,
    interrupt: InterruptFlag,
}

impl InputSource {
    /// Opens a file; `-` is standard input.
    pub(crate) fn open(path: &Path, interrupt: &InterruptFlag) -> Result<InputSource> {
        let is_stdin = path.as_os_str() == "-";
        let name = if is_stdin {
            "standard input".to_owned()
        } else {
            path.display().to_string()
        };
        let opened = if is_stdin {
            std::io::stdin().as_fd().try_clone_to_owned().map(File::from)
        } else {
            File::open(path)
        };
        let about = opened.and_then(|file| file.metadata().map(|about| (file, about)));
        let (file, about) = about.map_err(|error| {
            let near = match error.kind() {
                ErrorKind::NotFound if !is_stdin => near_file(path),
                _ => String::new(),
            };
            Error::new(Code::Io, name.as_str(), format!("{error}{near}"))
        })?;
        if about.is_dir() {
            return Err(Error::new(
                Code::InvalidArgument,
                name,
                "is a directory; name its files, such as DIR/*.grib",
            ));
        }
        // A file that the shell opened may have been read in part, and some that seem empty are not (those in /proc).
        let bytes = Some(about.len()).filter(|&bytes| about.is_file() && !is_stdin && bytes > 0);
        Ok(InputSource {
            name,
            file,
            bytes,
            buffer: Vec::new(),
            begin: 0,
            position: 0,
            head: Vec::new(),
            ended: false,
            interrupt: interrupt.clone(),
        })
    }

    /// Its name in messages.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// How many bytes it has in all, where that is known.
    pub(crate) fn bytes(&self) -> Option<u64> {
        self.bytes
    }

    /// Position of the next byte.
    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    /// The content of the buffer.
    pub(crate) fn buffered(&self) -> &[u8] {
        &self.buffer[self.begin..]
    }

    /// Has at least so many bytes in the buffer, fewer only at the end.
    pub(crate) fn fill(&mut self, bytes: usize, idle: Idle<'_>) -> Result<&[u8]> {
        if self.begin > 0 && self.begin + bytes > self.buffer.len() {
            self.buffer.drain(..self.begin);
            self.begin = 0;
        }
        while self.buffered().len() < bytes && !self.ended {
            let old = self.buffer.len();
            let wanted = self.begin.saturating_add(bytes.max(64 << 10));
            self.reserve(wanted)?;
            self.buffer.resize(wanted.min(old + FILLED), 0);
            let got = read_some(
                &mut self.file,
                self.bytes.is_some(),
                &mut self.buffer[old..],
                &self.interrupt,
                idle,
            );
            self.buffer.truncate(old + *got.as_ref().unwrap_or(&0));
            self.ended = got.map_err(|error| self.about(&error))? == 0;
        }
        if self.position == 0 && self.head.len() < HEAD {
            self.head = self.buffered()[..self.buffered().len().min(HEAD)].to_vec();
        }
        Ok(self.buffered())
    }

    /// The first bytes, as far as they were read.
    pub(crate) fn head(&self) -> &[u8] {
        &self.head
    }

    /// # Errors
    /// `TooLarge` where there is not so much memory.
    fn reserve(&mut self, bytes: usize) -> Result<()> {
        let more = bytes.saturating_sub(self.buffer.len());
        self.buffer.try_reserve_exact(more).map_err(|_| {
            let cause = format!("there is no memory for {bytes} bytes");
            Error::new(Code::TooLarge, self.name.as_str(), cause)
        })
    }

    /// Advances by so many bytes, which must be in the buffer.
    pub(crate) fn skip(&mut self, bytes: usize) {
        let bytes = bytes.min(self.buffer.len() - self.begin);
        self.begin += bytes;
        self.position += bytes as u64;
    }

    /// Reads into a place of the caller's until it is full or the end is reached; returns how much was read.
    pub(crate) fn read_into(&mut self, place: &mut [u8], idle: Idle<'_>) -> Result<usize> {
        let mut filled = self.buffered().len().min(place.len());
        place[..filled].copy_from_slice(&self.buffered()[..filled]);
        self.begin += filled;
        let is_begin = self.position == 0;
        while filled < place.len() && !self.ended {
            let end = place.len().min(filled + PIECE);
            let got = read_some(
                &mut self.file,
                self.bytes.is_some(),
                &mut place[filled..end],
                &self.interrupt,
                idle,
            )
            .map_err(|error| self.about(&error))?;
            self.ended = got == 0;
            filled += got;
        }
        self.position += filled as u64;
        if is_begin {
            self.head = place[..filled.min(HEAD)].to_vec();
        }
        Ok(filled)
    }

    /// Gives back bytes that were read: they are read again.
    pub(crate) fn unread(&mut self, bytes: &[u8]) {
        self.buffer.splice(..self.begin, bytes.iter().copied());
        self.begin = 0;
        self.position -= bytes.len() as u64;
    }

    fn about(&self, error: &Error) -> Error {
        let subject = if error.subject().is_empty() {
            self.name.as_str()
        } else {
            error.subject()
        };
        Error::new(error.code(), subject, error.cause())
    }
}

fn read_some(
    file: &mut File,
    is_regular: bool,
    place: &mut [u8],
    interrupt: &InterruptFlag,
    idle: Idle<'_>,
) -> Result<usize> {
    if !is_regular && !is_ready(file, AT_ONCE)? {
        idle()?;
        while !is_ready(file, ROUND)? {
            interrupt.check()?;
        }
    }
    loop {
        interrupt.check()?;
        match file.read(place) {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            other => return other.map_err(|error| Error::new(Code::Io, "", error.to_string())),
        }
    }
}

fn is_ready(file: &File, patience: Timespec) -> Result<bool> {
    let mut files = [PollFd::new(file, PollFlags::IN)];
    match poll(&mut files, Some(&patience)) {
        Ok(ready) => Ok(ready > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(errno) => Err(Error::new(Code::Io, "", errno.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn input(bytes: &[u8]) -> InputSource {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        InputSource::open(file.path(), &InterruptFlag::never()).unwrap()
    }

    fn never() -> Result<()> {
        panic!("a file does not wait")
    }

    #[test]
    fn reads_skips_and_reads_again() {
        let mut input = input(b"0123456789");
        assert_eq!(input.bytes(), Some(10));
        assert_eq!(&input.fill(4, &mut never).unwrap()[..4], b"0123");
        input.skip(3);
        let mut place = [0; 4];
        assert_eq!(input.read_into(&mut place, &mut never).unwrap(), 4);
        assert_eq!((&place, input.position()), (b"3456", 7));
        input.unread(b"456");
        assert_eq!(input.fill(100, &mut never).unwrap(), b"456789");
        assert_eq!(input.position(), 4);
        assert_eq!(input.read_into(&mut [0; 100], &mut never).unwrap(), 6);
        assert_eq!(input.fill(1, &mut never).unwrap(), b"");
    }

    #[test]
    fn more_than_there_is_memory_for_is_too_large() {
        let mut input = input(b"0123456789");
        let error = input.fill(usize::MAX >> 1, &mut never).unwrap_err();
        assert_eq!(error.code(), Code::TooLarge);
        assert_eq!(input.fill(10, &mut never).unwrap(), b"0123456789");
    }

    #[test]
    fn a_missing_file_and_a_folder_are_named() {
        let interrupt = InterruptFlag::never();
        let missing = InputSource::open(Path::new("no/such.grib"), &interrupt).err().unwrap();
        assert!(missing.to_string().contains("no/such.grib"), "{missing}");
        let folder = InputSource::open(Path::new("/"), &interrupt).err().unwrap();
        assert_eq!(folder.code(), Code::InvalidArgument);
    }
}
