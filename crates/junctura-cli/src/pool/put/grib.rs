//! GRIB messages out of a stream, one at a time.
//!
//! ```text
//!   anything │ GRIB … 7777 │ GRIB … 7777 │ anything │ GRIB …
//!            └ small: looked at in the buffer       └ large: read straight to where it will stay
//! ```
//! The sizes in a header are trusted only as far as there are bytes. A damaged message is an error that names it and
//! the byte; after it the search continues behind its first four bytes, and only complete, sound messages are taken
//! until one is found, so that chance bytes inside packed values are not reported. Before the first message a `GRIB`
//! may be a word.

use std::ops::DerefMut;

use junctura::Result;
use junctura_grib::{GribError, Message, MessageFault};

use super::input::{Idle, InputSource};

/// Messages up to this size are looked at in the buffer.
const BUFFERED_MAX: u64 = 256 << 10;
/// The bytes that are read of a message first: more than any fixed part of a header.
const HEAD: usize = 64;
/// Maximum distance of the first message from the begin of a file, to distinguish GRIB from other files; bulletin headers are shorter.
const LOOK: usize = 4096;
/// The same for regular files, some of which begin with a header of another format.
const LOOK_FILE: usize = 64 << 10;

/// Is this a file of GRIB messages? Looks at its first bytes.
pub(crate) fn is_grib(input: &mut InputSource, idle: Idle<'_>) -> Result<bool> {
    // From a pipe, bytes beyond the first message may not arrive for long.
    if input.fill(4, idle)?.starts_with(b"GRIB") {
        return Ok(true);
    }
    let look = if input.bytes().is_some() { LOOK_FILE } else { LOOK };
    let head = input.fill(look, idle)?;
    let begins = |bytes: &[u8]| bytes.starts_with(b"GRIB") && matches!(bytes.get(7), Some(1 | 2));
    Ok((0..head.len().min(look)).any(|at| begins(&head[at..])))
}

/// Whether a `GRIB` is a word in a text, as in a page that explains why there is no file. Only before the first
/// message.
fn is_a_word(fault: &MessageFault) -> bool {
    match fault {
        MessageFault::Edition(next) => next.is_ascii_graphic() || next.is_ascii_whitespace(),
        // The text ends here.
        MessageFault::Truncated { needed, .. } => *needed == 8,
        _ => false,
    }
}

/// Finds messages, one after the other.
pub(crate) struct MessageSplitter {
    input: InputSource,
    number: u64,
    start: u64,
    damaged: bool,
}

/// The next part of the input.
pub(crate) enum NextMessage<A> {
    /// A message of so many bytes, in the buffer: see [`MessageSplitter::message`]; [`MessageSplitter::take`] continues
    /// after it.
    Buffered(usize),
    /// A message in a place that was asked for.
    Placed(A),
    Damaged(GribError),
    End,
}

/// Result of a look at a position: a message, or its fault.
type Looked<A> = std::result::Result<NextMessage<A>, GribError>;

impl MessageSplitter {
    pub(crate) fn new(input: InputSource) -> MessageSplitter {
        MessageSplitter {
            input,
            number: 0,
            start: 0,
            damaged: false,
        }
    }

    /// Its input.
    pub(crate) fn input(&self) -> &InputSource {
        &self.input
    }

    /// Which message was found last, counted from 1; damaged ones count.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Finds the next message; `place` gives room for one that is too large for the buffer.
    ///
    /// # Errors
    /// Errors of reading and of `place`. A further call continues behind the message.
    pub(crate) fn next<A: DerefMut<Target = [u8]>>(
        &mut self,
        idle: Idle<'_>,
        place: &mut dyn FnMut(u64) -> Result<A>,
    ) -> Result<NextMessage<A>> {
        while self.seek_mark(idle)? {
            self.start = self.input.position();
            let looked = self.look(idle, place);
            if self.number == 0 && self.start > 0 && matches!(&looked, Ok(Err(error)) if is_a_word(&error.fault)) {
                self.input.skip(4);
                continue;
            }
            let was_damaged = self.damaged;
            self.damaged = !matches!(looked, Ok(Ok(_)));
            if self.damaged {
                self.input.skip(4);
            }
            if was_damaged && matches!(looked, Ok(Err(_))) {
                continue;
            }
            self.number += 1;
            return Ok(looked?.unwrap_or_else(|error| NextMessage::Damaged(self.numbered(error))));
        }
        Ok(NextMessage::End)
    }

    /// The message of [`NextMessage::Buffered`].
    pub(crate) fn message(&self, bytes: usize) -> std::result::Result<Message<'_>, GribError> {
        Message::new(&self.input.buffered()[..bytes]).map_err(|error| self.numbered(error))
    }

    /// Continues behind the message of [`NextMessage::Buffered`].
    pub(crate) fn take(&mut self, bytes: usize) {
        self.input.skip(bytes);
    }

    /// An error about the message that was found last, which knew nothing of the others.
    pub(crate) fn numbered(&self, error: GribError) -> GribError {
        GribError {
            message: self.number,
            start: self.start + error.start,
            offset: self.start + error.offset,
            fault: error.fault,
        }
    }

    /// Advances to the next `GRIB`; false at the end.
    fn seek_mark(&mut self, idle: Idle<'_>) -> Result<bool> {
        loop {
            let bytes = self.input.fill(4, idle)?;
            let found = bytes.windows(4).position(|window| window == b"GRIB");
            let (there, ended) = (bytes.len(), bytes.len() < 4);
            self.input.skip(found.unwrap_or(if ended { there } else { there - 3 }));
            if found.is_some() || ended {
                return Ok(found.is_some());
            }
        }
    }

    fn look<A: DerefMut<Target = [u8]>>(
        &mut self,
        idle: Idle<'_>,
        place: &mut dyn FnMut(u64) -> Result<A>,
    ) -> Result<Looked<A>> {
        let mut want = HEAD;
        loop {
            let bytes = self.input.fill(want, idle)?;
            let present = bytes.len() as u64;
            let error = match Message::new(bytes) {
                Ok(message) => return Ok(Ok(NextMessage::Buffered(message.bytes().len()))),
                Err(error) => error,
            };
            let MessageFault::Truncated { needed, .. } = error.fault else {
                return Ok(Err(error));
            };
            let there = self
                .input
                .bytes()
                .map_or(u64::MAX, |bytes| bytes.saturating_sub(self.start));
            if present < want as u64 || needed > there {
                let fault = MessageFault::Truncated {
                    needed,
                    present: present.max(there.min(needed)),
                };
                return Ok(Err(GribError { fault, ..error }));
            }
            if needed > BUFFERED_MAX {
                return self.read_large(needed, idle, place);
            }
            // If as much is there as was needed, the header itself is longer.
            want = if needed > present { needed as usize } else { want * 2 };
            if want as u64 > 2 * BUFFERED_MAX {
                return Ok(Err(error));
            }
        }
    }

    fn read_large<A: DerefMut<Target = [u8]>>(
        &mut self,
        bytes: u64,
        idle: Idle<'_>,
        place: &mut dyn FnMut(u64) -> Result<A>,
    ) -> Result<Looked<A>> {
        let mut room = place(bytes)?;
        let read = self.input.read_into(&mut room, idle)?;
        match Message::new(&room[..read]) {
            Ok(message) if message.bytes().len() == room.len() => Ok(Ok(NextMessage::Placed(room))),
            Ok(message) => {
                // It was announced in a way that more bytes made clear; this is the exception, and copies.
                let length = message.bytes().len();
                self.input.unread(&room[..read]);
                self.input.fill(length, idle)?;
                Ok(Ok(NextMessage::Buffered(length)))
            }
            Err(error) => {
                self.input.unread(&room[..read]);
                Ok(Err(error))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use junctura_terminal::interrupt::InterruptFlag;

    /// A message of edition 1 that is as long as asked: sound sections around a data section of any bytes.
    fn message(bytes: usize) -> Vec<u8> {
        let mut message = b"GRIB".to_vec();
        message.extend_from_slice(&(bytes as u32).to_be_bytes()[1..]);
        message.push(1);
        message.extend([0, 0, 28]);
        message.extend([0; 25]);
        let data = bytes - message.len() - 4;
        message.extend_from_slice(&(data as u32).to_be_bytes()[1..]);
        message.extend(vec![b'G'; data - 3]);
        message.extend(b"7777");
        message
    }

    fn splitter(bytes: &[u8]) -> MessageSplitter {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        MessageSplitter::new(InputSource::open(file.path(), &InterruptFlag::never()).unwrap())
    }

    /// Lengths of messages, and what was damaged.
    fn all(bytes: &[u8]) -> Vec<std::result::Result<usize, (u64, u64, u64)>> {
        let mut splitter = splitter(bytes);
        let mut found = Vec::new();
        loop {
            let next = splitter.next(&mut || Ok(()), &mut |bytes| Ok(vec![0; bytes as usize]));
            found.push(match next.unwrap() {
                NextMessage::Buffered(bytes) => {
                    splitter.take(bytes);
                    Ok(bytes)
                }
                NextMessage::Placed(room) => Ok(room.len()),
                NextMessage::Damaged(error) => Err((error.message, error.start, error.offset)),
                NextMessage::End => return found,
            });
        }
    }

    #[test]
    fn small_and_large_messages_come_with_anything_between() {
        let (small, large) = (message(100), message(300_000));
        let bytes = [b"noise GRI", &small[..], b"\0\0\0", &large, &small, b"GRI"].concat();
        assert_eq!(all(&bytes), [Ok(100), Ok(300_000), Ok(100)]);
        assert_eq!(all(b""), []);
        assert_eq!(all(b"nothing here"), []);
    }

    #[test]
    fn before_the_first_message_it_may_be_a_word() {
        let page = b"<html>The GRIB file is gone; GRIB2 and GRIB.";
        assert_eq!(all(page), []);
        assert_eq!(all(&[page, &message(100)[..]].concat()), [Ok(100)]);
        // Not behind a message, and not at the beginning of a file.
        let behind = [&message(100)[..], page].concat();
        assert_eq!(all(&behind), [Ok(100), Err((2, 110, 117))]);
        assert_eq!(all(b"GRIB is a word"), [Err((1, 0, 7))]);
        // Of an edition that never was, it is a damaged message.
        let mut damaged = message(100);
        damaged[7] = 200;
        assert_eq!(all(&[b"noise", &damaged[..]].concat()), [Err((1, 5, 12))]);
    }

    #[test]
    fn a_damaged_message_is_named_and_the_next_sound_one_is_found() {
        for size in [100, 300_000] {
            let mut damaged = message(size);
            let end = damaged.len() - 1;
            damaged[end] = b'8';
            damaged[60..64].copy_from_slice(b"GRIB");
            let bytes = [&message(100)[..], &damaged, &message(200)].concat();
            let offset = 100 + size as u64 - 4;
            assert_eq!(all(&bytes), [Ok(100), Err((2, 100, offset)), Ok(200)]);
        }
    }

    #[test]
    fn what_is_announced_beyond_the_end_is_not_believed() {
        for size in [100, 300_000] {
            let whole = message(size);
            for cut in [4, 7, 8, 20, 40, size - 1] {
                let bytes = [&message(100)[..], &whole[..cut]].concat();
                let found = all(&bytes);
                assert!(matches!(found[..], [Ok(100), Err((2, 100, _))]), "{cut}: {found:?}");
            }
        }
    }

    #[test]
    fn other_files_are_told_from_grib() {
        let is = |bytes: &[u8]| is_grib(&mut splitter(bytes).input, &mut || Ok(())).unwrap();
        assert!(is(b"GRIB"));
        assert!(is(&[b"bulletin\r\n", &message(100)[..]].concat()));
        assert!(!is(b"a text about GRIB files"));
        assert!(!is(b""));
    }
}
