//! What clients and a pool server say to each other, as bytes.
//!
//! A stream of **frames** goes each way; a frame is a 16-byte header and a body ([`frame`]). What an object's way needs
//! thousands of times a second (offer, delivery, release, their answers) has bodies of fixed little-endian layout
//! ([`fixed`]); everything else is CBOR with numbered fields, which may grow without breaking older readers ([`body`]).
//! [`Request`] is what a client says, [`Reply`] what a server answers; both borrow from the buffer they were read from.
//!
//! Promises: the format does not depend on what carries it; decoding never panics, allocates in proportion to what the
//! frame holds and not to what it claims ([`shape`]), and an unknown kind of frame is told apart from a broken one.
//! `docs/formats/wire.md` is the format's page, with golden bytes that the tests of this crate reproduce.

pub mod body;
pub mod fixed;
pub mod frame;
mod reply;
mod request;
pub mod rights;
pub mod shape;

pub use frame::{FrameHeader, FrameKind, WireFrame};
pub use reply::{ListedPage, Reply};
pub use request::Request;

/// The version of the wire format that this crate speaks. A server refuses another one by name.
pub const VERSION: u16 = 1;
