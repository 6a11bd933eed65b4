//! Frames: a header of 16 bytes, then the body.
//!
//! ```text
//!  0        4      5      6        8                16
//!  +--------+------+------+--------+----------------+------------- - -
//!  | length | kind | fds  |   0    |    request     |  body (length bytes)
//!  +--------+------+------+--------+----------------+------------- - -
//! ```
//! All numbers are little-endian. `fds` counts the descriptors that travel with the frame (0 or 1), attached to its first
//! byte. `request` is chosen by the client; answers carry the number of what they answer.

use junctura_model::{Code, Error, Result};
use zerocopy::byteorder::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Bytes of a frame's header.
pub const HEADER_BYTES: usize = 16;

/// The longest body, from any sender.
pub const BODY_BYTES_MAX: usize = 1 << 20;

/// The header in the stream.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct FrameHeader {
    /// Bytes of the body.
    pub length: U32,
    /// One of [`FrameKind`], or something newer.
    pub kind: u8,
    /// Descriptors that accompany this frame.
    pub descriptors: u8,
    reserved: U16,
    /// The client's number for what is asked.
    pub request: U64,
}

impl FrameHeader {
    /// A header without descriptors.
    #[must_use]
    pub fn new(kind: FrameKind, request: u64, length: usize) -> Self {
        Self {
            length: U32::new(length as u32),
            kind: kind as u8,
            descriptors: kind.descriptors(),
            reserved: U16::ZERO,
            request: U64::new(request),
        }
    }

    /// The header of a frame that was read, whatever its kind.
    #[must_use]
    pub fn of(frame: &WireFrame<'_>) -> Self {
        Self {
            length: U32::new(frame.body.len() as u32),
            kind: frame.kind,
            descriptors: frame.descriptors,
            reserved: U16::ZERO,
            request: U64::new(frame.request),
        }
    }
}

/// One whole frame, borrowed from a receive buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WireFrame<'a> {
    /// The raw kind: a newer peer may send one that [`FrameKind`] does not name.
    pub kind: u8,
    /// Descriptors that accompany this frame.
    pub descriptors: u8,
    /// The client's number for what is asked or answered.
    pub request: u64,
    /// The body.
    pub body: &'a [u8],
}

impl<'a> WireFrame<'a> {
    /// Reads the first frame of `bytes`: `None` while it is not whole yet; otherwise the frame and its length in bytes.
    ///
    /// # Errors
    /// `Protocol` when the header cannot belong to a frame of ours: nothing after it can be understood either.
    pub fn split(bytes: &'a [u8]) -> Result<Option<(Self, usize)>> {
        let Ok((header, rest)) = FrameHeader::read_from_prefix(bytes) else {
            return Ok(None);
        };
        let length = header.length.get() as usize;
        if length > BODY_BYTES_MAX || header.reserved.get() != 0 || header.descriptors > 1 {
            return Err(Error::new(
                Code::Protocol,
                "frame header",
                format!(
                    "kind {}, {length} bytes, {} descriptors",
                    header.kind, header.descriptors
                ),
            ));
        }
        let Some(body) = rest.get(..length) else {
            return Ok(None);
        };
        let frame = Self {
            kind: header.kind,
            descriptors: header.descriptors,
            request: header.request.get(),
            body,
        };
        Ok(Some((frame, HEADER_BYTES + length)))
    }
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $number:literal,)*) => {
        /// The kind of a frame. Below 64: from client to server; from 64 on: from server to client.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum FrameKind { $($(#[$doc])* $name = $number,)* }

        impl FrameKind {
            /// Every kind, in the order of their numbers.
            pub const ALL: &[FrameKind] = &[$(FrameKind::$name,)*];

            /// The kind of this number, unless it is newer than this crate.
            #[must_use]
            pub fn from_number(number: u8) -> Option<Self> {
                match number { $($number => Some(FrameKind::$name),)* _ => None }
            }
        }
    };
}

kinds! {
    /// A client introduces itself; its first frame.
    Hello = 1,
    /// An object: attributes and payload, or the payload's place.
    Offer = 2,
    /// Asks for a segment to allocate payloads in.
    Lease = 3,
    /// Gives a leased segment back.
    Return = 4,
    /// Asks for one object, waiting for it if need be.
    Demand = 5,
    /// Gives up a request that still waits.
    Cancel = 6,
    /// Asks which objects match.
    List = 7,
    /// Requests everything that matches: existing objects, then future ones.
    Follow = 8,
    /// Asks for the next page of a list.
    More = 9,
    /// Gives delivered objects back.
    Release = 10,
    /// Announces future needs.
    Require = 11,
    /// Takes one object out of the pool.
    Withdraw = 12,
    /// Takes all objects that match out of the pool.
    WithdrawAll = 13,
    /// Asks for events.
    Subscribe = 14,
    /// Ends a follow, a list, a subscription or a requirement.
    Stop = 15,
    /// Asks for the server's counters.
    Stat = 16,
    /// The client disconnects normally.
    Goodbye = 17,
    /// Ends a requirement that has a name.
    Retract = 18,
    /// Asks whether an object is wanted.
    Wanted = 19,
    /// Asks the server to end in good order.
    Drain = 20,
    /// Opens a bundle, or joins its openers.
    Bundle = 22,
    /// Declares that a bundle has all its members.
    Seal = 23,
    /// Gives a bundle up, with all its members.
    Abort = 24,
    /// An object that becomes visible with its bundle.
    Stage = 25,
    /// Asks which bundles there are.
    Bundles = 26,
    /// Numbers the names that offers of this client may then be retained for.
    Consumers = 27,
    /// Requests an answer when all earlier requests of its client are in effect.
    Sync = 28,
    /// Reports the result for objects that were to be put into a store.
    Archived = 29,
    /// Asks for what one rank wants of pieces of an array; for gates.
    Pack = 30,
    /// Frees the keys of objects that are gone.
    Forget = 31,
    /// Asks how many objects match.
    Tally = 32,
    /// Asks what waits, and why.
    Waits = 33,
    /// Asks why an object is in memory, or was removed.
    Explain = 34,
    /// Asks what keeps memory.
    Keepers = 35,
    /// Asks for the page of shared memory on which the server writes its numbers.
    Board = 36,
    /// States what the client works on.
    Note = 37,

    /// The answer to `Hello`.
    Welcome = 64,
    /// The request failed.
    Failed = 65,
    /// The object is visible.
    Offered = 66,
    /// A segment, with its descriptor.
    Segment = 67,
    /// Slots of the client's leased segments that are free again.
    Freed = 68,
    /// An object.
    Delivered = 69,
    /// A follow has given what was there; from here on it is live.
    Live = 70,
    /// Objects that a follow or a requirement will not get, and why.
    Gap = 71,
    /// A page of a list.
    Listed = 72,
    /// Something happened in the pool.
    Event = 73,
    /// The request is done.
    Done = 74,
    /// The server's counters.
    Stats = 75,
    /// The server wants this leased segment back if it is empty.
    Recall = 76,
    /// This segment was dropped: the client unmaps it.
    Dropped = 77,
    /// A follow, list, subscription or requirement began.
    Began = 78,
    /// A follow, a subscription or the use of a requirement was ended by the server.
    Ended = 79,
    /// A part of the rings for the rest of the connection, with its descriptor.
    Rings = 80,
    /// A bundle is visible: the versions of its members.
    Completed = 84,
    /// A page of a list of bundles.
    Bundled = 85,
    /// A part of what a rank wants of pieces of an array.
    Packed = 86,
    /// How many objects match.
    Tallied = 87,
    /// A part of the requests that wait.
    Waiting = 88,
    /// Why an object is in memory, or was removed.
    Explained = 89,
    /// A part of what keeps memory.
    Kept = 90,
    /// The page of the server's numbers, with its descriptor.
    BoardPage = 91,
}

impl FrameKind {
    /// Returns the number of descriptors that accompany a frame of this kind.
    #[must_use]
    pub fn descriptors(self) -> u8 {
        u8::from(matches!(
            self,
            FrameKind::Segment | FrameKind::Rings | FrameKind::BoardPage
        ))
    }
}
