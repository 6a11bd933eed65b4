//! The server's messages.

use junctura_model::{Code, Error, Result};
use zerocopy::byteorder::little_endian::U32;
use zerocopy::{FromBytes, IntoBytes};

use crate::body::{BundlesPage, EventBody, GapBody, Welcome, WireFailure};
use crate::fixed::{
    self, BoardPageHead, CompletedHead, DeliveredHead, ListedHead, MemberVersion, PackedHead, RingsHead, SegmentHead,
    SlotAddress,
};
use crate::frame::{FrameKind, WireFrame};
use crate::look::TalliedBody;
use crate::reasons::{ExplainedObject, MemoryKeepers, WaitsPage};
use crate::request::{broken, cbor, frame, number, put, read};

/// A server's reply, borrowed from the frame it arrived in (or from the server that is about to send it).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply<'a> {
    /// The answer to `Hello`.
    Welcome(Welcome<'a>),
    /// The request failed.
    Failed(WireFailure<'a>),
    /// The object is visible under this sequence number; 0: it is staged, and becomes visible with its bundle.
    Offered(u64),
    /// A segment; its descriptor accompanies the frame.
    Segment(SegmentHead),
    /// Slots of the client's segments that are free again.
    Freed(&'a [SlotAddress]),
    /// An object; `request` names the demand or the follow.
    Delivered {
        /// Where and how.
        head: DeliveredHead,
        /// Its attributes (`docs/formats/key.md`).
        record: &'a [u8],
        /// Its payload, when it travels inside the message.
        inline: &'a [u8],
    },
    /// A follow has given what was there; from here on it is live.
    Live,
    /// Objects that a follow or a requirement will not get.
    Gap(GapBody<'a>),
    /// A page of a list.
    Listed(ListedPage<'a>),
    /// Something happened in the pool.
    Event(EventBody<'a>),
    /// The request is done; the number is that of the objects concerned.
    Done(u64),
    /// The server's counters, as JSON.
    Stats(&'a str),
    /// The server wants this leased segment back if it is empty.
    Recall(u32),
    /// This segment was dropped: the client unmaps it.
    Dropped(u32),
    /// A follow, list, subscription or requirement began when the server's newest sequence number was this.
    Began(u64),
    /// A follow, a subscription or the use of a requirement was ended by the server.
    Ended(WireFailure<'a>),
    /// A part of the rings for the rest of the connection; its descriptor accompanies the frame.
    Rings(RingsHead),
    /// A bundle is visible: the versions of the members that this client staged.
    Completed {
        /// The versions of its objects.
        head: CompletedHead,
        /// The visible ones; a member that was offered again later in the same bundle has no version.
        members: &'a [MemberVersion],
    },
    /// A page of a list of bundles.
    Bundled(BundlesPage<'a>),
    /// A part of what a rank wants of pieces of an array.
    Packed {
        /// Whether more follows.
        head: PackedHead,
        /// Elements, one behind the other.
        bytes: &'a [u8],
    },
    /// How many objects match.
    Tallied(TalliedBody<'a>),
    /// The page of the server's numbers; its descriptor accompanies the frame.
    BoardPage(BoardPageHead),
    /// A part of the requests that wait.
    Waiting(WaitsPage),
    /// Why an object is in memory, or was removed.
    Explained(Box<ExplainedObject>),
    /// A part of what keeps memory.
    Kept(Box<MemoryKeepers>),
}

/// A page of a list: objects one after the other, each a [`ListedHead`] and its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListedPage<'a> {
    /// This is the last page.
    pub last: bool,
    /// The objects.
    pub entries: &'a [u8],
}

impl<'a> ListedPage<'a> {
    /// The objects of the page, in order.
    pub fn iter(&self) -> impl Iterator<Item = Result<(ListedHead, &'a [u8])>> + use<'a> {
        let mut rest = self.entries;
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let entry = ListedHead::read_from_prefix(rest).ok().and_then(|(head, tail)| {
                let (record, tail) = tail.split_at_checked(head.record_length.get() as usize)?;
                Some((head, record, tail))
            });
            let Some((head, record, tail)) = entry else {
                rest = &[];
                return Some(Err(broken(FrameKind::Listed, "torn entry")));
            };
            rest = tail;
            Some(Ok((head, record)))
        })
    }
}

impl<'a> Reply<'a> {
    /// Reads a reply from a frame.
    ///
    /// # Errors
    /// `Unsupported` for a kind that this version does not know; `Protocol` for a body that does not hold what its kind
    /// needs.
    pub fn decode(frame: &WireFrame<'a>) -> Result<Self> {
        let kind = FrameKind::from_number(frame.kind).ok_or_else(|| {
            Error::new(
                Code::Unsupported,
                format!("frame kind {}", frame.kind),
                "this client does not support it",
            )
        })?;
        let body = frame.body;
        Ok(match kind {
            FrameKind::Welcome => Self::Welcome(cbor(kind, body)?),
            FrameKind::Failed => Self::Failed(cbor(kind, body)?),
            FrameKind::Offered => Self::Offered(number(kind, body)?),
            FrameKind::Segment => Self::Segment(read(kind, body)?),
            FrameKind::Freed => Self::Freed(<[SlotAddress]>::ref_from_bytes(body).map_err(|_| broken(kind, "length"))?),
            FrameKind::Delivered => Self::delivered(body)?,
            FrameKind::Live => Self::Live,
            FrameKind::Gap => Self::Gap(cbor(kind, body)?),
            FrameKind::Listed => Self::listed(body)?,
            FrameKind::Event => Self::Event(cbor(kind, body)?),
            FrameKind::Done => Self::Done(number(kind, body)?),
            FrameKind::Stats => Self::Stats(std::str::from_utf8(body).map_err(|_| broken(kind, "not UTF-8"))?),
            FrameKind::Recall => Self::Recall(read::<U32>(kind, body)?.get()),
            FrameKind::Dropped => Self::Dropped(read::<U32>(kind, body)?.get()),
            FrameKind::Began => Self::Began(number(kind, body)?),
            FrameKind::Ended => Self::Ended(cbor(kind, body)?),
            FrameKind::Rings => Self::Rings(read(kind, body)?),
            FrameKind::Completed => Self::completed(body)?,
            FrameKind::Bundled => Self::Bundled(cbor(kind, body)?),
            FrameKind::Packed => {
                let (head, bytes) = PackedHead::read_from_prefix(body).map_err(|_| broken(kind, "too short"))?;
                Self::Packed { head, bytes }
            }
            FrameKind::Tallied => Self::Tallied(cbor(kind, body)?),
            FrameKind::BoardPage => Self::BoardPage(read(kind, body)?),
            FrameKind::Waiting => Self::Waiting(cbor(kind, body)?),
            FrameKind::Explained => Self::Explained(cbor(kind, body)?),
            FrameKind::Kept => Self::Kept(cbor(kind, body)?),
            _ => return Err(broken(kind, "not a reply")),
        })
    }

    fn delivered(body: &'a [u8]) -> Result<Self> {
        let kind = FrameKind::Delivered;
        let (head, rest) = DeliveredHead::read_from_prefix(body).map_err(|_| broken(kind, "too short"))?;
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
        Ok(Self::Delivered { head, record, inline })
    }

    fn completed(body: &'a [u8]) -> Result<Self> {
        let kind = FrameKind::Completed;
        let (head, rest) = CompletedHead::read_from_prefix(body).map_err(|_| broken(kind, "too short"))?;
        let members = <[MemberVersion]>::ref_from_bytes(rest).map_err(|_| broken(kind, "length"))?;
        Ok(Self::Completed { head, members })
    }

    fn listed(body: &'a [u8]) -> Result<Self> {
        match body.split_first() {
            Some((&last @ (0 | 1), entries)) => Ok(Self::Listed(ListedPage {
                last: last == 1,
                entries,
            })),
            _ => Err(broken(FrameKind::Listed, "no flag")),
        }
    }

    /// The kind of frame it travels in.
    #[must_use]
    pub fn kind(&self) -> FrameKind {
        match self {
            Self::Welcome(_) => FrameKind::Welcome,
            Self::Failed(_) => FrameKind::Failed,
            Self::Offered(_) => FrameKind::Offered,
            Self::Segment(_) => FrameKind::Segment,
            Self::Freed(_) => FrameKind::Freed,
            Self::Delivered { .. } => FrameKind::Delivered,
            Self::Live => FrameKind::Live,
            Self::Gap(_) => FrameKind::Gap,
            Self::Listed(_) => FrameKind::Listed,
            Self::Event(_) => FrameKind::Event,
            Self::Done(_) => FrameKind::Done,
            Self::Stats(_) => FrameKind::Stats,
            Self::Recall(_) => FrameKind::Recall,
            Self::Dropped(_) => FrameKind::Dropped,
            Self::Began(_) => FrameKind::Began,
            Self::Ended(_) => FrameKind::Ended,
            Self::Rings(_) => FrameKind::Rings,
            Self::Completed { .. } => FrameKind::Completed,
            Self::Bundled(_) => FrameKind::Bundled,
            Self::Packed { .. } => FrameKind::Packed,
            Self::Tallied(_) => FrameKind::Tallied,
            Self::BoardPage(_) => FrameKind::BoardPage,
            Self::Waiting(_) => FrameKind::Waiting,
            Self::Explained(_) => FrameKind::Explained,
            Self::Kept(_) => FrameKind::Kept,
        }
    }

    /// Appends the reply as a frame.
    pub fn encode(&self, request: u64, out: &mut Vec<u8>) {
        frame(self.kind(), request, out, |out| match self {
            Self::Welcome(body) => put(body, out),
            Self::Failed(body) | Self::Ended(body) => put(body, out),
            Self::Offered(number) | Self::Done(number) | Self::Began(number) => {
                out.extend_from_slice(&number.to_le_bytes());
            }
            Self::Segment(head) => out.extend_from_slice(head.as_bytes()),
            Self::Rings(head) => out.extend_from_slice(head.as_bytes()),
            Self::BoardPage(head) => out.extend_from_slice(head.as_bytes()),
            Self::Freed(slots) => out.extend_from_slice(slots.as_bytes()),
            Self::Delivered { head, record, inline } => {
                out.extend_from_slice(head.as_bytes());
                out.extend_from_slice(record);
                out.extend_from_slice(inline);
            }
            Self::Live => {}
            Self::Gap(body) => put(body, out),
            Self::Listed(page) => {
                out.push(u8::from(page.last));
                out.extend_from_slice(page.entries);
            }
            Self::Event(body) => put(body, out),
            Self::Stats(text) => out.extend_from_slice(text.as_bytes()),
            Self::Recall(segment) | Self::Dropped(segment) => out.extend_from_slice(&segment.to_le_bytes()),
            Self::Completed { head, members } => {
                out.extend_from_slice(head.as_bytes());
                out.extend_from_slice(members.as_bytes());
            }
            Self::Bundled(body) => put(body, out),
            Self::Packed { head, bytes } => {
                out.extend_from_slice(head.as_bytes());
                out.extend_from_slice(bytes);
            }
            Self::Tallied(body) => put(body, out),
            Self::Waiting(body) => put(body, out),
            Self::Explained(body) => put(body, out),
            Self::Kept(body) => put(body, out),
        });
    }
}

impl<'a> From<&'a Error> for WireFailure<'a> {
    fn from(error: &'a Error) -> Self {
        Self {
            code: error.code().number(),
            subject: error.subject().into(),
            cause: error.cause().into(),
            position: error.position().map(|at| at as u64),
        }
    }
}

impl From<WireFailure<'_>> for Error {
    fn from(failure: WireFailure<'_>) -> Self {
        let code = Code::from_number(failure.code).unwrap_or(Code::Io);
        let error = Error::new(code, failure.subject.into_owned(), failure.cause.into_owned());
        match failure.position {
            Some(at) => error.at(at as usize),
            None => error,
        }
    }
}
