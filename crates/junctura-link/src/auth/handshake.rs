//! The greeting on a link, before any frame: the client's proof, and the server's decision.
//!
//! ```text
//!  0            8         10       12
//!  | "JUNCTURA" | version | length |  CBOR (length bytes)
//! ```
//! Each side sends this once; the client first. Numbers are little-endian. No state is kept for a client that sends
//! anything else, more than [`BYTES_MAX`], or takes longer than [`TIME_MAX`].

use std::borrow::Cow;
use std::io::{IoSlice, IoSliceMut};
use std::time::{Duration, Instant};

use junctura_model::{Code, Error, Result};
use junctura_wire::body::WireFailure;
use junctura_wire::shape;
use minicbor::bytes::ByteArray;
use minicbor::{Decode, Encode};
use rustix::event::{PollFlags, Timespec};

use crate::refused;
use crate::stream::{LinkStream, ReadOutcome};

/// The version of the link protocol.
pub(crate) const VERSION: u16 = 1;
/// The first bytes; no TLS stream begins with these.
pub(crate) const MAGIC: &[u8; 8] = b"JUNCTURA";
/// The most bytes that one side sends here.
pub(crate) const BYTES_MAX: usize = 8 << 10;
/// Everything here, TLS included, takes at most this long.
pub(crate) const TIME_MAX: Duration = Duration::from_secs(5);
const HEAD_BYTES: usize = 12;

/// The client's proof.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub(crate) struct ClientProof<'a> {
    /// Its token, if it has one.
    #[n(0)]
    pub(crate) token: Option<Cow<'a, str>>,
    /// The most bytes of unheld payloads that it keeps.
    #[n(1)]
    pub(crate) mirror_bytes: u64,
    /// It speaks for several clients, each with a channel of its own.
    #[n(2)]
    #[cbor(default)]
    pub(crate) is_shared: bool,
    /// How many streams it would like its link to have; `None`: one.
    #[n(3)]
    pub(crate) streams: Option<u8>,
    /// This is one more stream of a link that it has already.
    #[n(4)]
    pub(crate) joins: Option<LinkJoin>,
}

/// Which link a further stream belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub(crate) struct LinkJoin {
    /// The link's identifier from the gate.
    #[n(0)]
    pub(crate) link: LinkId,
    /// Which of its streams this one is; the first is 1.
    #[n(1)]
    pub(crate) number: u8,
}

/// The gate's identifier of a link: only a client that got it from the gate can send it.
pub(crate) type LinkId = ByteArray<16>;

/// Makes an identifier that cannot be guessed.
pub(crate) fn link_id() -> Result<LinkId> {
    let mut random = [0; 16];
    rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())
        .map_err(|errno| refused(Code::Io, "link", "no random numbers", errno))?;
    Ok(random.into())
}

/// The server's answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub(crate) struct HandshakeAnswer<'a> {
    /// Why the client is not let in.
    #[n(0)]
    pub(crate) failure: Option<WireFailure<'a>>,
    /// The time of its lease.
    #[n(1)]
    pub(crate) lease_ms: u64,
    /// How a client of the same machine may reach the server without a network.
    #[n(2)]
    pub(crate) offered: Option<LocalOffer>,
    /// The identifier of a link of several streams.
    #[n(3)]
    pub(crate) link: Option<LinkId>,
    /// How many streams it is to have.
    #[n(4)]
    pub(crate) streams: Option<u8>,
}

/// How a client of the same machine may reach the server without a network.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct LocalOffer {
    /// The server's address there, `unix:…`.
    #[n(0)]
    pub address: String,
    /// Which machine it is.
    #[n(1)]
    pub machine: String,
    /// Which server it is; another one may have the same address in another container.
    #[n(2)]
    pub identity: ServerIdentity,
}

/// Which server it is, on its machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct ServerIdentity {
    /// Its process.
    #[n(0)]
    pub pid: u32,
    /// Its incarnation.
    #[n(1)]
    pub incarnation: u64,
}

/// Returns the identity of this machine, from one boot to the next; empty where it is unknown (random(4)).
pub(crate) fn machine() -> String {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    id.trim().to_owned()
}

/// One side's words.
pub(crate) fn encode(words: &impl Encode<()>) -> Result<Vec<u8>> {
    let body = minicbor::to_vec(words).map_err(|error| refused(Code::Io, "greeting", "cannot be written", error))?;
    if body.len() > BYTES_MAX - HEAD_BYTES {
        return Err(Error::new(Code::TooLarge, "greeting", format!("{} bytes", body.len())));
    }
    let mut bytes = Vec::with_capacity(HEAD_BYTES + body.len());
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    bytes.extend_from_slice(&(body.len() as u16).to_le_bytes());
    bytes.extend_from_slice(&body);
    Ok(bytes)
}

/// The CBOR of the other side's words: `None` while they are not whole.
///
/// # Errors
/// `Protocol` when they cannot be ours, `Unsupported` for another version.
pub(crate) fn split(bytes: &[u8]) -> Result<Option<&[u8]>> {
    let wrong = |cause: &str| Error::new(Code::Protocol, "greeting", cause);
    let begin = &bytes[..bytes.len().min(MAGIC.len())];
    if begin != &MAGIC[..begin.len()] {
        return Err(wrong("the other side does not speak Junctura's protocol"));
    }
    let Some((head, rest)) = bytes.split_at_checked(HEAD_BYTES) else {
        return Ok(None);
    };
    let version = u16::from_le_bytes([head[8], head[9]]);
    if version != VERSION {
        let cause = format!("the other side speaks version {version}, this one {VERSION}");
        return Err(Error::new(Code::Unsupported, "greeting", cause));
    }
    let length = usize::from(u16::from_le_bytes([head[10], head[11]]));
    if length > BYTES_MAX - HEAD_BYTES {
        return Err(wrong("it is too long"));
    }
    if rest.len() > length {
        return Err(wrong("it is followed by unexpected bytes"));
    }
    Ok((rest.len() == length).then_some(rest))
}

/// Reads one side's words.
pub(crate) fn decode<'a, T: Decode<'a, ()>>(body: &'a [u8]) -> Result<T> {
    let wrong = |cause: String| Error::new(Code::Protocol, "greeting", cause);
    shape::check(body).map_err(|cause| wrong(cause.to_owned()))?;
    minicbor::decode(body).map_err(|error| wrong(error.to_string()))
}

/// A conversation that must be over by a certain time.
pub(crate) struct TimedExchange<'a> {
    pub(crate) stream: &'a mut LinkStream,
    pub(crate) until: Instant,
    /// Called when a signal arrives.
    pub(crate) interrupted: &'a mut dyn FnMut() -> Result<()>,
}

impl TimedExchange<'_> {
    /// Sends everything.
    pub(crate) fn say(&mut self, bytes: &[u8]) -> Result<()> {
        let mut said = 0;
        while said < bytes.len() {
            let count = self.stream.write(&[IoSlice::new(&bytes[said..])])?;
            said += count;
            if count == 0 {
                self.wait(PollFlags::OUT)?;
            }
        }
        while !self.stream.flush()? {
            self.wait(PollFlags::OUT)?;
        }
        Ok(())
    }

    /// Receives everything: the CBOR.
    pub(crate) fn hear(&mut self) -> Result<Vec<u8>> {
        let mut bytes = vec![0; BYTES_MAX + 1];
        let mut heard = 0;
        loop {
            if let Some(body) = split(&bytes[..heard])? {
                return Ok(body.to_vec());
            }
            // Not a byte too much: the rest is for other readers.
            let wanted = wanted(&bytes[..heard]);
            match self
                .stream
                .read(&mut [IoSliceMut::new(&mut bytes[heard..heard + wanted])])?
            {
                ReadOutcome::Bytes(count) => heard += count,
                ReadOutcome::Nothing => self.wait(PollFlags::IN)?,
                ReadOutcome::End => {
                    let cause = "the other side closed the connection before the handshake was over";
                    return Err(Error::new(Code::Disconnected, "greeting", cause));
                }
            }
        }
    }

    fn wait(&mut self, flags: PollFlags) -> Result<()> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(Error::new(Code::Timeout, "greeting", "it took too long"));
        }
        let timeout = Timespec::try_from(left).map_err(|error| refused(Code::Io, "greeting", "time", error))?;
        match self.stream.wait(flags | self.stream.interest(false), &timeout) {
            Err(error) if error.code() == Code::Interrupted => (self.interrupted)(),
            other => other,
        }
    }
}

/// How many bytes the words still need, as far as that is known.
fn wanted(heard: &[u8]) -> usize {
    match heard.get(10..HEAD_BYTES) {
        None => HEAD_BYTES - heard.len(),
        Some(length) => HEAD_BYTES + usize::from(u16::from_le_bytes([length[0], length[1]])) - heard.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_heard_however_they_come() {
        let shown = ClientProof {
            token: Some("secret".into()),
            mirror_bytes: 7,
            is_shared: true,
            streams: Some(3),
            joins: Some(LinkJoin {
                link: link_id().unwrap(),
                number: 2,
            }),
        };
        let bytes = encode(&shown).unwrap();
        for end in 0..bytes.len() {
            assert_eq!(split(&bytes[..end]).unwrap(), None);
            assert!(wanted(&bytes[..end]) > 0 && end + wanted(&bytes[..end]) <= bytes.len());
        }
        let body = split(&bytes).unwrap().unwrap();
        assert_eq!(decode::<ClientProof<'_>>(body).unwrap(), shown);
    }

    #[test]
    fn other_words_are_refused_at_the_first_wrong_byte() {
        let good = encode(&ClientProof::default()).unwrap();
        for at in 0..MAGIC.len() {
            let mut bytes = good.clone();
            bytes[at] ^= 1;
            assert_eq!(split(&bytes[..=at]).unwrap_err().code(), Code::Protocol);
        }
        let mut other = good.clone();
        other[8] = 2;
        assert_eq!(split(&other).unwrap_err().code(), Code::Unsupported);
        let mut long = good.clone();
        long[10..12].copy_from_slice(&u16::MAX.to_le_bytes());
        assert_eq!(split(&long).unwrap_err().code(), Code::Protocol);
        let mut more = good;
        more.push(0);
        assert_eq!(split(&more).unwrap_err().code(), Code::Protocol);
        assert_eq!(decode::<ClientProof<'_>>(&[0xff]).unwrap_err().code(), Code::Protocol);
    }
}
