//! What a client says.

use std::borrow::Cow;

use junctura_model::{Code, Error, Result};
use zerocopy::{FromBytes, IntoBytes};

use crate::body::{
    Archived, Bundle, Bundles, Consumers, Demand, Drain, Follow, Hello, Lease, List, Pack, Require, Retract, Subscribe,
    Target, Wanted, Withdraw,
};
use crate::fixed::{self, Holding, OfferHead};
use crate::frame::{Frame, HEADER_BYTES, Header, Kind};
use crate::shape;

/// A client's request, borrowed from the frame it came in (or from the caller who is about to send it).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request<'a> {
    /// Who is there; the first frame of a client.
    Hello(Hello<'a>),
    /// An object; `inline` is its payload, unless it lies in a slot.
    Offer {
        /// Where and how.
        head: OfferHead,
        /// Its attributes (`docs/formats/key.md`).
        record: &'a [u8],
        /// Its payload, when it travels inside the message.
        inline: &'a [u8],
    },
    /// Asks for a segment.
    Lease(Lease),
    /// Gives a leased segment back.
    Return(u32),
    /// Asks for one object.
    Demand(Demand<'a>),
    /// Gives up a request that still waits.
    Cancel(u64),
    /// Asks which objects match.
    List(List<'a>),
    /// Asks for everything that matches.
    Follow(Follow<'a>),
    /// The next page of this list.
    More(u64),
    /// Gives delivered objects back.
    Release(&'a [Holding]),
    /// Says early what will be wanted.
    Require(Require<'a>),
    /// Takes one object out of the pool.
    Withdraw(Withdraw<'a>),
    /// Takes all objects that match out of the pool.
    WithdrawAll(Withdraw<'a>),
    /// Asks for events.
    Subscribe(Subscribe<'a>),
    /// Ends a follow, a list, a subscription or a requirement.
    Stop(u64),
    /// Asks for the server's counters.
    Stat,
    /// Leaves in good order.
    Goodbye,
    /// Ends a requirement that has a name.
    Retract(Retract<'a>),
    /// See [`Wanted`].
    Wanted(Wanted<'a>),
    /// Asks the server to end in good order.
    Drain(Drain),
    /// Opens a bundle, or joins those who have it open.
    Bundle(Bundle<'a>),
    /// Says that the bundle of this request has all its members.
    Seal(u64),
    /// Gives the bundle of this request up, with all its members.
    Abort(u64),
    /// An object that becomes visible with its bundle.
    Stage {
        /// The request with which this client opened the bundle.
        bundle: u64,
        /// As in an offer.
        head: OfferHead,
        /// Its attributes (`docs/formats/key.md`).
        record: &'a [u8],
        /// Its payload, when it travels inside the message.
        inline: &'a [u8],
    },
    /// Asks which bundles there are.
    Bundles(Bundles<'a>),
    /// Numbers the names that offers of this client may then be retained for.
    Consumers(Consumers),
    /// Asks to be told when everything that this client said before is in effect.
    Sync,
    /// See [`Archived`].
    Archived(Archived<'a>),
    /// See [`Pack`].
    Pack(Pack<'a>),
}

impl<'a> Request<'a> {
    /// Reads a request from a frame.
    ///
    /// # Errors
    /// `Unsupported` for a kind that this version does not know (the request can be refused and the stream goes on);
    /// `Protocol` for a body that does not hold what its kind needs.
    pub fn decode(frame: &Frame<'a>) -> Result<Self> {
        let kind = Kind::from_number(frame.kind).ok_or_else(|| {
            Error::new(
                Code::Unsupported,
                format!("frame kind {}", frame.kind),
                "this server does not know it",
            )
        })?;
        let body = frame.body;
        Ok(match kind {
            Kind::Hello => Self::Hello(cbor(kind, body)?),
            Kind::Offer => {
                let (head, record, inline) = offer(kind, body)?;
                Self::Offer { head, record, inline }
            }
            Kind::Lease => Self::Lease(cbor(kind, body)?),
            Kind::Return => Self::Return(read::<zerocopy::byteorder::little_endian::U32>(kind, body)?.get()),
            Kind::Demand => Self::Demand(cbor(kind, body)?),
            Kind::Cancel => Self::Cancel(number(kind, body)?),
            Kind::List => Self::List(cbor(kind, body)?),
            Kind::Follow => Self::Follow(cbor(kind, body)?),
            Kind::More => Self::More(number(kind, body)?),
            Kind::Release => Self::Release(<[Holding]>::ref_from_bytes(body).map_err(|_| broken(kind, "length"))?),
            Kind::Require => Self::Require(cbor(kind, body)?),
            Kind::Withdraw => Self::Withdraw(cbor(kind, body)?),
            Kind::WithdrawAll => Self::WithdrawAll(cbor(kind, body)?),
            Kind::Subscribe => Self::Subscribe(cbor(kind, body)?),
            Kind::Stop => Self::Stop(number(kind, body)?),
            Kind::Stat => Self::Stat,
            Kind::Goodbye => Self::Goodbye,
            Kind::Retract => Self::Retract(cbor(kind, body)?),
            Kind::Wanted => Self::Wanted(cbor(kind, body)?),
            Kind::Drain => Self::Drain(cbor(kind, body)?),
            Kind::Bundle => Self::Bundle(cbor(kind, body)?),
            Kind::Seal => Self::Seal(number(kind, body)?),
            Kind::Abort => Self::Abort(number(kind, body)?),
            Kind::Stage => Self::stage(body)?,
            Kind::Bundles => Self::Bundles(cbor(kind, body)?),
            Kind::Consumers => Self::Consumers(cbor(kind, body)?),
            Kind::Sync => Self::Sync,
            Kind::Archived => Self::Archived(cbor(kind, body)?),
            Kind::Pack => Self::Pack(cbor(kind, body)?),
            _ => return Err(broken(kind, "not a request")),
        })
    }

    fn stage(body: &'a [u8]) -> Result<Self> {
        let (bundle, rest) = body
            .split_first_chunk()
            .ok_or_else(|| broken(Kind::Stage, "too short"))?;
        let (head, record, inline) = offer(Kind::Stage, rest)?;
        Ok(Self::Stage {
            bundle: u64::from_le_bytes(*bundle),
            head,
            record,
            inline,
        })
    }

    /// The text of the selector that it asks by.
    #[must_use]
    pub fn selector(&self) -> Option<&str> {
        fn target<'t>(target: &'t Target<'_>) -> Option<&'t str> {
            match target {
                Target::Selector(text) => Some(text),
                Target::Key { .. } => None,
            }
        }
        match self {
            Self::Demand(body) => target(&body.target),
            Self::Withdraw(body) | Self::WithdrawAll(body) => target(&body.target),
            Self::List(body) => Some(&body.selector),
            Self::Follow(body) => Some(&body.selector),
            Self::Require(body) => Some(&body.selector),
            Self::Subscribe(body) => Some(&body.selector),
            Self::Bundles(body) => Some(&body.selector),
            _ => None,
        }
    }

    /// The kind of frame it travels in.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            Self::Hello(_) => Kind::Hello,
            Self::Offer { .. } => Kind::Offer,
            Self::Lease(_) => Kind::Lease,
            Self::Return(_) => Kind::Return,
            Self::Demand(_) => Kind::Demand,
            Self::Cancel(_) => Kind::Cancel,
            Self::List(_) => Kind::List,
            Self::Follow(_) => Kind::Follow,
            Self::More(_) => Kind::More,
            Self::Release(_) => Kind::Release,
            Self::Require(_) => Kind::Require,
            Self::Withdraw(_) => Kind::Withdraw,
            Self::WithdrawAll(_) => Kind::WithdrawAll,
            Self::Subscribe(_) => Kind::Subscribe,
            Self::Stop(_) => Kind::Stop,
            Self::Stat => Kind::Stat,
            Self::Goodbye => Kind::Goodbye,
            Self::Retract(_) => Kind::Retract,
            Self::Wanted(_) => Kind::Wanted,
            Self::Drain(_) => Kind::Drain,
            Self::Bundle(_) => Kind::Bundle,
            Self::Seal(_) => Kind::Seal,
            Self::Abort(_) => Kind::Abort,
            Self::Stage { .. } => Kind::Stage,
            Self::Bundles(_) => Kind::Bundles,
            Self::Consumers(_) => Kind::Consumers,
            Self::Sync => Kind::Sync,
            Self::Archived(_) => Kind::Archived,
            Self::Pack(_) => Kind::Pack,
        }
    }

    /// Appends the request as a frame.
    pub fn encode(&self, request: u64, out: &mut Vec<u8>) {
        frame(self.kind(), request, out, |out| match self {
            Self::Hello(body) => put(body, out),
            Self::Offer { head, record, inline } => {
                out.extend_from_slice(head.as_bytes());
                out.extend_from_slice(record);
                out.extend_from_slice(inline);
            }
            Self::Lease(body) => put(body, out),
            Self::Return(segment) => out.extend_from_slice(&segment.to_le_bytes()),
            Self::Demand(body) => put(body, out),
            Self::Cancel(number)
            | Self::More(number)
            | Self::Stop(number)
            | Self::Seal(number)
            | Self::Abort(number) => {
                out.extend_from_slice(&number.to_le_bytes());
            }
            Self::List(body) => put(body, out),
            Self::Follow(body) => put(body, out),
            Self::Release(holdings) => out.extend_from_slice(holdings.as_bytes()),
            Self::Require(body) => put(body, out),
            Self::Withdraw(body) | Self::WithdrawAll(body) => put(body, out),
            Self::Subscribe(body) => put(body, out),
            Self::Stat | Self::Goodbye | Self::Sync => {}
            Self::Retract(body) => put(body, out),
            Self::Wanted(body) => put(body, out),
            Self::Drain(body) => put(body, out),
            Self::Bundle(body) => put(body, out),
            Self::Stage {
                bundle,
                head,
                record,
                inline,
            } => {
                out.extend_from_slice(&bundle.to_le_bytes());
                out.extend_from_slice(head.as_bytes());
                out.extend_from_slice(record);
                out.extend_from_slice(inline);
            }
            Self::Bundles(body) => put(body, out),
            Self::Consumers(body) => put(body, out),
            Self::Archived(body) => put(body, out),
            Self::Pack(body) => put(body, out),
        });
    }
}

fn offer(kind: Kind, body: &[u8]) -> Result<(OfferHead, &[u8], &[u8])> {
    let (head, rest) = OfferHead::read_from_prefix(body).map_err(|_| broken(kind, "too short"))?;
    let (record, inline) = rest
        .split_at_checked(head.record_length.get() as usize)
        .ok_or_else(|| broken(kind, "record longer than the body"))?;
    let inline_length = if head.flags.get() & fixed::INLINE == 0 {
        0
    } else {
        head.length.get()
    };
    if inline.len() as u64 != inline_length {
        return Err(broken(kind, "payload and its length differ"));
    }
    Ok((head, record, inline))
}

impl<'a> Target<'a> {
    /// The object with exactly this key.
    #[must_use]
    pub fn key(schema: u16, record: &'a [u8]) -> Self {
        Self::Key {
            schema,
            record: Cow::Borrowed(record),
        }
    }

    /// What this selector matches.
    #[must_use]
    pub fn selector(text: &'a str) -> Self {
        Self::Selector(Cow::Borrowed(text))
    }
}

/// Appends a frame whose body `write` appends.
pub(crate) fn frame(kind: Kind, request: u64, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(Header::new(kind, request, 0).as_bytes());
    write(out);
    let length = (out.len() - start - HEADER_BYTES) as u32;
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
}

pub(crate) fn put(body: &impl minicbor::Encode<()>, out: &mut Vec<u8>) {
    let result = minicbor::encode(body, out);
    debug_assert!(result.is_ok(), "writing to a vector does not fail");
}

pub(crate) fn cbor<'a, T: minicbor::Decode<'a, ()>>(kind: Kind, body: &'a [u8]) -> Result<T> {
    shape::check(body).map_err(|cause| broken(kind, cause))?;
    minicbor::decode(body).map_err(|error| broken(kind, &error.to_string()))
}

pub(crate) fn number(kind: Kind, body: &[u8]) -> Result<u64> {
    Ok(read::<zerocopy::byteorder::little_endian::U64>(kind, body)?.get())
}

pub(crate) fn read<T: FromBytes>(kind: Kind, body: &[u8]) -> Result<T> {
    T::read_from_bytes(body).map_err(|_| broken(kind, "length"))
}

pub(crate) fn broken(kind: Kind, cause: &str) -> Error {
    Error::new(Code::Protocol, format!("{kind:?} frame"), cause)
}
