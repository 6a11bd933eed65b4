//! The client's messages.

use std::borrow::Cow;

use junctura_model::{Code, Error, Result};
use zerocopy::{FromBytes, IntoBytes};

use crate::body::{
    ArchivedBody, BundleRequest, BundlesRequest, ConsumerNames, DemandRequest, DrainRequest, FollowRequest,
    ForgetRequest, Hello, LeaseRequest, ListRequest, NoteRequest, PackBody, RequireRequest, RetractRequest,
    SubscribeRequest, TargetBody, WantedRequest, WithdrawRequest,
};
use crate::fixed::{self, OfferHead, ReleasedHolding};
use crate::frame::{FrameHeader, FrameKind, HEADER_BYTES, WireFrame};
use crate::look::TallyRequest;
use crate::reasons::{ExplainRequest, KeepersRequest, WaitsRequest};
use crate::shape;

/// A client's request, borrowed from the frame it arrived in (or from the caller that is about to send it).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request<'a> {
    /// A client introduces itself; its first frame.
    Hello(Hello<'a>),
    /// An object; `inline` is its payload, unless it is in a slot.
    Offer {
        /// Where and how.
        head: OfferHead,
        /// Its attributes (`docs/formats/key.md`).
        record: &'a [u8],
        /// Its payload, when it travels inside the message.
        inline: &'a [u8],
    },
    /// Asks for a segment.
    Lease(LeaseRequest),
    /// Gives a leased segment back.
    Return(u32),
    /// Asks for one object.
    Demand(DemandRequest<'a>),
    /// Gives up a request that still waits.
    Cancel(u64),
    /// Asks which objects match.
    List(ListRequest<'a>),
    /// Asks for everything that matches.
    Follow(FollowRequest<'a>),
    /// The next page of this list.
    More(u64),
    /// Gives delivered objects back.
    Release(&'a [ReleasedHolding]),
    /// Announces future needs.
    Require(RequireRequest<'a>),
    /// Takes one object out of the pool.
    Withdraw(WithdrawRequest<'a>),
    /// Takes all objects that match out of the pool.
    WithdrawAll(WithdrawRequest<'a>),
    /// Asks for events.
    Subscribe(SubscribeRequest<'a>),
    /// Ends a follow, a list, a subscription or a requirement.
    Stop(u64),
    /// Asks for the server's counters.
    Stat,
    /// Leaves in good order.
    Goodbye,
    /// Ends a requirement that has a name.
    Retract(RetractRequest<'a>),
    /// See [`WantedRequest`].
    Wanted(WantedRequest<'a>),
    /// Asks the server to end in good order.
    Drain(DrainRequest),
    /// Opens a bundle, or joins its openers.
    Bundle(BundleRequest<'a>),
    /// Declares that the bundle of this request has all its members.
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
    Bundles(BundlesRequest<'a>),
    /// Numbers the names that offers of this client may then be retained for.
    Consumers(ConsumerNames),
    /// Requests an answer when all earlier requests of this client are in effect.
    Sync,
    /// See [`ArchivedBody`].
    Archived(ArchivedBody<'a>),
    /// Frees the keys of objects that are gone.
    Forget(ForgetRequest<'a>),
    /// See [`PackBody`].
    Pack(PackBody<'a>),
    /// Asks how many objects match.
    Tally(TallyRequest<'a>),
    /// Asks for the page of the server's numbers (`docs/formats/board.md`).
    Board,
    /// Asks what waits, and why.
    Waits(WaitsRequest),
    /// Asks why an object is in memory, or was removed.
    Explain(ExplainRequest<'a>),
    /// Asks what keeps memory.
    Keepers(KeepersRequest),
    /// See [`NoteRequest`].
    Note(NoteRequest<'a>),
}

impl<'a> Request<'a> {
    /// Reads a request from a frame.
    ///
    /// # Errors
    /// `Unsupported` for a kind that this version does not know (the request can be refused and the stream continues);
    /// `Protocol` for a body that does not contain what its kind needs.
    pub fn decode(frame: &WireFrame<'a>) -> Result<Self> {
        let kind = FrameKind::from_number(frame.kind).ok_or_else(|| {
            Error::new(
                Code::Unsupported,
                format!("frame kind {}", frame.kind),
                "this server does not support it",
            )
        })?;
        let body = frame.body;
        Ok(match kind {
            FrameKind::Hello => Self::Hello(cbor(kind, body)?),
            FrameKind::Offer => {
                let (head, record, inline) = offer(kind, body)?;
                Self::Offer { head, record, inline }
            }
            FrameKind::Lease => Self::Lease(cbor(kind, body)?),
            FrameKind::Return => Self::Return(read::<zerocopy::byteorder::little_endian::U32>(kind, body)?.get()),
            FrameKind::Demand => Self::Demand(cbor(kind, body)?),
            FrameKind::Cancel => Self::Cancel(number(kind, body)?),
            FrameKind::List => Self::List(cbor(kind, body)?),
            FrameKind::Follow => Self::Follow(cbor(kind, body)?),
            FrameKind::More => Self::More(number(kind, body)?),
            FrameKind::Release => {
                Self::Release(<[ReleasedHolding]>::ref_from_bytes(body).map_err(|_| broken(kind, "length"))?)
            }
            FrameKind::Require => Self::Require(cbor(kind, body)?),
            FrameKind::Withdraw => Self::Withdraw(cbor(kind, body)?),
            FrameKind::WithdrawAll => Self::WithdrawAll(cbor(kind, body)?),
            FrameKind::Subscribe => Self::Subscribe(cbor(kind, body)?),
            FrameKind::Stop => Self::Stop(number(kind, body)?),
            FrameKind::Stat => Self::Stat,
            FrameKind::Goodbye => Self::Goodbye,
            FrameKind::Retract => Self::Retract(cbor(kind, body)?),
            FrameKind::Wanted => Self::Wanted(cbor(kind, body)?),
            FrameKind::Drain => Self::Drain(cbor(kind, body)?),
            FrameKind::Bundle => Self::Bundle(cbor(kind, body)?),
            FrameKind::Seal => Self::Seal(number(kind, body)?),
            FrameKind::Abort => Self::Abort(number(kind, body)?),
            FrameKind::Stage => Self::stage(body)?,
            FrameKind::Bundles => Self::Bundles(cbor(kind, body)?),
            FrameKind::Consumers => Self::Consumers(cbor(kind, body)?),
            FrameKind::Sync => Self::Sync,
            FrameKind::Archived => Self::Archived(cbor(kind, body)?),
            FrameKind::Forget => Self::Forget(cbor(kind, body)?),
            FrameKind::Pack => Self::Pack(cbor(kind, body)?),
            FrameKind::Tally => Self::Tally(cbor(kind, body)?),
            FrameKind::Board => Self::Board,
            FrameKind::Waits => Self::Waits(cbor(kind, body)?),
            FrameKind::Explain => Self::Explain(cbor(kind, body)?),
            FrameKind::Keepers => Self::Keepers(cbor(kind, body)?),
            FrameKind::Note => Self::Note(cbor(kind, body)?),
            _ => return Err(broken(kind, "not a request")),
        })
    }

    fn stage(body: &'a [u8]) -> Result<Self> {
        let (bundle, rest) = body
            .split_first_chunk()
            .ok_or_else(|| broken(FrameKind::Stage, "too short"))?;
        let (head, record, inline) = offer(FrameKind::Stage, rest)?;
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
        fn target<'t>(target: &'t TargetBody<'_>) -> Option<&'t str> {
            match target {
                TargetBody::Selector(text) => Some(text),
                TargetBody::Key { .. } => None,
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
            Self::Tally(body) => Some(&body.selector),
            _ => None,
        }
    }

    /// The kind of frame it travels in.
    #[must_use]
    pub fn kind(&self) -> FrameKind {
        match self {
            Self::Hello(_) => FrameKind::Hello,
            Self::Offer { .. } => FrameKind::Offer,
            Self::Lease(_) => FrameKind::Lease,
            Self::Return(_) => FrameKind::Return,
            Self::Demand(_) => FrameKind::Demand,
            Self::Cancel(_) => FrameKind::Cancel,
            Self::List(_) => FrameKind::List,
            Self::Follow(_) => FrameKind::Follow,
            Self::More(_) => FrameKind::More,
            Self::Release(_) => FrameKind::Release,
            Self::Require(_) => FrameKind::Require,
            Self::Withdraw(_) => FrameKind::Withdraw,
            Self::WithdrawAll(_) => FrameKind::WithdrawAll,
            Self::Subscribe(_) => FrameKind::Subscribe,
            Self::Stop(_) => FrameKind::Stop,
            Self::Stat => FrameKind::Stat,
            Self::Goodbye => FrameKind::Goodbye,
            Self::Retract(_) => FrameKind::Retract,
            Self::Wanted(_) => FrameKind::Wanted,
            Self::Drain(_) => FrameKind::Drain,
            Self::Bundle(_) => FrameKind::Bundle,
            Self::Seal(_) => FrameKind::Seal,
            Self::Abort(_) => FrameKind::Abort,
            Self::Stage { .. } => FrameKind::Stage,
            Self::Bundles(_) => FrameKind::Bundles,
            Self::Consumers(_) => FrameKind::Consumers,
            Self::Sync => FrameKind::Sync,
            Self::Archived(_) => FrameKind::Archived,
            Self::Forget(_) => FrameKind::Forget,
            Self::Pack(_) => FrameKind::Pack,
            Self::Tally(_) => FrameKind::Tally,
            Self::Board => FrameKind::Board,
            Self::Waits(_) => FrameKind::Waits,
            Self::Explain(_) => FrameKind::Explain,
            Self::Keepers(_) => FrameKind::Keepers,
            Self::Note(_) => FrameKind::Note,
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
            Self::Stat | Self::Goodbye | Self::Sync | Self::Board => {}
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
            Self::Forget(body) => put(body, out),
            Self::Pack(body) => put(body, out),
            Self::Tally(body) => put(body, out),
            Self::Waits(body) => put(body, out),
            Self::Explain(body) => put(body, out),
            Self::Keepers(body) => put(body, out),
            Self::Note(body) => put(body, out),
        });
    }
}

fn offer(kind: FrameKind, body: &[u8]) -> Result<(OfferHead, &[u8], &[u8])> {
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

impl<'a> TargetBody<'a> {
    /// The object with exactly this key.
    #[must_use]
    pub fn key(schema: u16, record: &'a [u8]) -> Self {
        Self::Key {
            schema,
            record: Cow::Borrowed(record),
        }
    }

    /// Matches the objects of this selector.
    #[must_use]
    pub fn selector(text: &'a str) -> Self {
        Self::Selector(Cow::Borrowed(text))
    }
}

/// Appends a frame whose body `write` appends.
pub(crate) fn frame(kind: FrameKind, request: u64, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(FrameHeader::new(kind, request, 0).as_bytes());
    write(out);
    let length = (out.len() - start - HEADER_BYTES) as u32;
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
}

pub(crate) fn put(body: &impl minicbor::Encode<()>, out: &mut Vec<u8>) {
    let result = minicbor::encode(body, out);
    debug_assert!(result.is_ok(), "writing to a vector does not fail");
}

pub(crate) fn cbor<'a, T: minicbor::Decode<'a, ()>>(kind: FrameKind, body: &'a [u8]) -> Result<T> {
    shape::check(body).map_err(|cause| broken(kind, cause))?;
    minicbor::decode(body).map_err(|error| broken(kind, &error.to_string()))
}

pub(crate) fn number(kind: FrameKind, body: &[u8]) -> Result<u64> {
    Ok(read::<zerocopy::byteorder::little_endian::U64>(kind, body)?.get())
}

pub(crate) fn read<T: FromBytes>(kind: FrameKind, body: &[u8]) -> Result<T> {
    T::read_from_bytes(body).map_err(|_| broken(kind, "length"))
}

pub(crate) fn broken(kind: FrameKind, cause: &str) -> Error {
    Error::new(Code::Protocol, format!("{kind:?} frame"), cause)
}
