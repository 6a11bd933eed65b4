//! Bodies of fixed layout: the messages of every object. Little-endian, no padding, any alignment.

use zerocopy::byteorder::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The payload follows the record in the body; otherwise it is in a slot of a segment.
pub const INLINE: u16 = 1;
/// `checksum` holds the payload's CRC-32C.
pub const CHECKSUM: u16 = 2;
/// `releases` is to be taken from the schema's default retention.
pub const DEFAULT_RETENTION: u16 = 4;
/// The object was there when the follow began (its first phase).
pub const FIRST_PHASE: u16 = 8;
/// `releases` holds milliseconds: the object stays for so long from when it became visible.
pub const FOR_A_TIME: u16 = 16;
/// The object is a member of a bundle that is not complete: it has no sequence number yet.
pub const STAGED: u16 = 32;
/// `releases` holds a number from the answer to `Consumers`: the object stays until all these consumers have had it.
pub const BY_CONSUMERS: u16 = 256;
/// Flag of an offer: it is made only if it is wanted.
pub const IF_WANTED: u16 = 128;
/// Flag of an offer: it is answered when the object is in a store, or when it is known that it will not be.
pub const DURABLE: u16 = 512;
/// Flag of an offer into a bundle: the object stays as long as another one of the bundle without this flag does.
pub const TOGETHER: u16 = 1024;
/// Flag of an offer into a bundle: a second one of the same key is refused, and does not take the place of the first.
pub const ONCE: u16 = 2048;
/// The object was delivered through the same requirement before, to a client that was lost, or gave it back undone.
pub const REDELIVERED: u16 = 64;

/// Of an entry of a list: the payload is in the file tier. Of a delivery: it is there at the byte whose number has
/// `segment` as its high and `slot` as its low half; `checksum` holds its CRC-32C.
pub const SPILLED: u16 = 256;

/// Among segments, the number of the file tier: the other fields of [`SegmentHead`] have no meaning then, and the
/// descriptor is read-only.
pub const FILE_TIER: u32 = 0;

/// Of a [`ReleasedHolding`]: the object was not seen. A requirement through which it was delivered is owed it again, as if
/// it had never been delivered.
pub const UNREAD: u32 = 1;
/// Of a [`ReleasedHolding`]: its holder did not finish with it, so it does not count as released. A requirement through
/// which it was delivered is owed it again.
pub const UNDONE: u32 = 2;
/// Of a [`ReleasedHolding`]: the client releases the object, and still reads its payload. The memory is not reused until a second
/// release of the same holding, without this flag.
pub const MAPPED: u32 = 4;

/// ```text
///  0        2       4          8            12         16        20     24       32
///  | schema | flags | releases | record len | checksum | segment | slot | length | record … | payload if INLINE …
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct OfferHead {
    /// The schema's place in the list that `Welcome` gave.
    pub schema: U16,
    /// [`INLINE`], [`CHECKSUM`], [`DEFAULT_RETENTION`], [`FOR_A_TIME`], [`BY_CONSUMERS`], [`IF_WANTED`], [`DURABLE`], [`TOGETHER`],
    /// [`ONCE`].
    pub flags: U16,
    /// Consumers that must release it before its retention ends; 0: it stays until withdrawn. With [`FOR_A_TIME`] a time in
    /// milliseconds, from 1; with [`BY_CONSUMERS`] a number of this client's.
    pub releases: U32,
    /// Bytes of the record that follows.
    pub record_length: U32,
    /// CRC-32C of the payload, with [`CHECKSUM`].
    pub checksum: U32,
    /// The payload's segment, unless [`INLINE`].
    pub segment: U32,
    /// The slot within the segment.
    pub slot: U32,
    /// Bytes of the payload.
    pub length: U64,
}

/// ```text
///  0          8        10      12           16         20         24        28     32       40        44      48
///  | sequence | schema | flags | record len | checksum | producer | segment | slot | length | holding | rest  | record … | payload if INLINE …
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct DeliveredHead {
    /// The object's sequence number.
    pub sequence: U64,
    /// The schema's place in the list that `Welcome` gave.
    pub schema: U16,
    /// [`INLINE`], [`CHECKSUM`], [`FIRST_PHASE`], [`STAGED`], [`REDELIVERED`], [`SPILLED`].
    pub flags: U16,
    /// Bytes of the record that follows.
    pub record_length: U32,
    /// CRC-32C of the payload, with [`CHECKSUM`].
    pub checksum: U32,
    /// The client that offered it.
    pub producer: U32,
    /// The payload's segment, unless [`INLINE`]; see [`SPILLED`].
    pub segment: U32,
    /// The slot within the segment.
    pub slot: U32,
    /// Bytes of the payload.
    pub length: U64,
    /// The number with which the client releases the object.
    pub holding: U32,
    /// How many objects became visible with it, as members of its bundle, under the numbers that follow its own.
    pub rest: U32,
}

/// One released object; a `Release` frame holds any number of these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct ReleasedHolding {
    /// From the delivery.
    pub holding: U32,
    /// [`UNREAD`] or [`UNDONE`], and [`MAPPED`]; or zero.
    pub flags: U32,
    /// The object's sequence number, from the delivery.
    pub sequence: U64,
}

/// Of a [`PackedHead`]: nothing more follows.
pub const LAST: u32 = 1;
/// Of a [`PackedHead`]: `checksum` is set.
pub const SUMMED: u32 = 2;

/// A part of what a rank wants of pieces of an array; its bytes follow.
///
/// ```text
///  0       4          8
///  | flags | checksum | bytes …
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct PackedHead {
    /// [`LAST`], [`SUMMED`].
    pub flags: U32,
    /// CRC-32C of the bytes, with [`SUMMED`].
    pub checksum: U32,
}

/// A slot of a segment; a `Freed` frame holds any number of these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct SlotAddress {
    /// The segment.
    pub segment: U32,
    /// The slot within it.
    pub slot: U32,
}

/// A segment that the client may map; its descriptor accompanies the frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct SegmentHead {
    /// Its number.
    pub segment: U32,
    /// 1: leased to this client, to be mapped writable; 0: to be mapped read-only.
    pub writable: U32,
    /// Bytes of the whole segment.
    pub bytes: U64,
    /// Bytes of each slot: slot `i` is at `i * slot_bytes`.
    pub slot_bytes: U64,
}

/// A part of a connection's rings; its descriptor accompanies the frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct RingsHead {
    /// 0: the memory; 1: the bell that wakes the server; 2: the bell that wakes the client.
    pub part: U32,
    /// Bytes of each of the two rings.
    pub ring_bytes: U32,
}

/// The page of a server's numbers; its descriptor accompanies the frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct BoardPageHead {
    /// Bytes of the page.
    pub bytes: U64,
}

/// One object of a page of a list; its record follows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct ListedHead {
    /// The object's sequence number; with [`STAGED`] the number of its bundle.
    pub sequence: U64,
    /// The schema's place in the list that `Welcome` gave.
    pub schema: U16,
    /// [`STAGED`], [`SPILLED`].
    pub flags: U16,
    /// Bytes of the record that follows.
    pub record_length: U32,
    /// Bytes of the payload.
    pub length: U64,
}

/// The notice of a bundle that became visible; any number of [`MemberVersion`] follow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct CompletedHead {
    /// The sequence number of the first of its objects, in the order of their keys; 0: it has none.
    pub first: U64,
    /// How many objects became visible together, those of other bundles of its tree included.
    pub objects: U64,
    /// 1: another frame with more versions follows.
    pub more: U32,
    /// Zero.
    pub reserved: U32,
}

/// The version of one member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct MemberVersion {
    /// The request with which it was staged.
    pub request: U64,
    /// Its sequence number.
    pub sequence: U64,
}
