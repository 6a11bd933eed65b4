//! The messages between clients and a pool server, as bytes.
//!
//! A stream of **frames** flows each way; a frame is a 16-byte header and a body ([`frame`]). The frequent messages of an
//! object (offer, delivery, release, their answers) have bodies of fixed little-endian layout ([`fixed`]); everything else
//! is CBOR with numbered fields, which may grow without breaking older readers ([`body`], [`look`]). [`Request`] is a client's
//! message, [`Reply`] a server's; both borrow from the buffer they were read from.
//!
//! Guarantees: the format does not depend on the carrier; decoding never panics, allocates in proportion to the actual size
//! of the frame and not to its claims ([`shape`]), and an unknown kind of frame is distinguished from a broken one.
//! `docs/formats/wire.md` is the format's page, with golden bytes that the tests of this crate reproduce.

pub mod body;
pub mod fixed;
pub mod frame;
pub mod look;
pub mod reasons;
mod reply;
mod request;
pub mod rights;
pub mod shape;

pub use frame::{FrameHeader, FrameKind, WireFrame};
pub use reply::{ListedPage, Reply};
pub use request::Request;

/// The version of the wire format that this crate speaks. A server refuses another one by name.
pub const VERSION: u16 = 1;
