//! Carries a pool's frames and payloads between machines.
//!
//! ```text
//!  client's process                                     server's process
//!  Pool <--socket, rings--> Link ====== TCP, TLS ====== Gate <--socket, rings--> Server
//!                           mirror of the segments      the segments themselves
//! ```
//! Each end is a thread that acts towards its own side like any process of the same machine: frames through rings,
//! payloads in shared memory. So the pool's client and server need no network code. The stream between the two ends
//! carries the same frames; the payload of a frame precedes it, from the segment directly into the same place of the
//! other end's *mirror* of that segment. So the received frame is valid there, too.
//!
//! Promises:
//!
//! - A client may do no more than a process of the server's machine may.
//! - Only loopback addresses are opened without TLS and tokens ([`Gate::open`]).
//! - A token's client has the rights of its token, which the server enforces.
//! - On loopback both ends refuse a peer of another user, unless a token or TLS proves more ([`LoopbackUsers`]).
//! - A client that sends no heartbeat within its lease is disconnected; one that ends its connection is removed at
//!   once.
//! - Memory on either side is bounded, whatever the other end sends.
//!
//! [`record`] is the format of the stream; `docs/formats/link.md` is its page.
//!
//! Without the feature `tls` (default) there is neither TLS nor a key for tokens: links carry plain TCP on loopback
//! only, and [`ServerTls`], [`ClientTls`] and [`TokenAuthority`] have no values. Fuzz targets are built so.

mod auth;
mod endpoint;
mod gate;
mod link;
mod mirror;
pub mod record;
mod relay;
#[cfg(any(test, feature = "stepped"))]
pub mod stepped;
mod stream;
mod streams;
mod upstream;

#[cfg(feature = "tls")]
pub use auth::certificate::CertificateTimes;
pub use auth::handshake::{LocalOffer, ServerIdentity};
pub use auth::peer_user::LoopbackUsers;
#[cfg(not(feature = "tls"))]
pub use auth::tls::TokenAuthority;
pub use auth::tls::{ClientTls, ServerTls};
pub use auth::token::{ClientToken, TokenClaims};
#[cfg(feature = "tls")]
pub use auth::token_authority::TokenAuthority;
pub use endpoint::Endpoint;
pub use gate::{Gate, GateOptions};
pub use junctura_wire::rights::{AccessRight, AccessRights};
pub use link::{DialOptions, DialedGate, RelayThread};
pub use streams::STREAMS_MAX;
pub use upstream::{UpstreamOptions, UpstreamProxy};

use junctura_model::{Code, Error, Result};

/// For fuzzing: untrusted first bytes are read as each side reads them.
///
/// # Errors
/// As a gate would refuse it, or a client.
#[doc(hidden)]
pub fn read_greeting(bytes: &[u8]) -> Result<()> {
    if let Some(body) = auth::handshake::split(bytes)? {
        auth::handshake::decode::<auth::handshake::ClientProof<'_>>(body).map(drop)?;
        auth::handshake::decode::<auth::handshake::HandshakeAnswer<'_>>(body).map(drop)?;
    }
    Ok(())
}

/// For fuzzing: reads a token as a gate reads it before it decrypts, its claims as a gate reads them afterwards, and a list of
/// tokens. Returns the canonical text of the token.
///
/// # Errors
/// As a gate refuses it.
#[doc(hidden)]
pub fn read_token(text: &str, plain: &[u8]) -> Result<String> {
    if let Ok(claims) = auth::token::TokenClaims::read(plain) {
        assert_eq!(claims.to_bytes(), plain);
    }
    if let Ok(listed) = auth::token_list::parse(text) {
        assert_eq!(auth::token_list::to_text(&listed), text);
    }
    auth::token::SealedToken::parse(text).map(|sealed| sealed.to_text())
}

/// Makes an error of a refusal by the operating system.
fn refused(code: Code, subject: impl Into<String>, action: &str, cause: impl std::fmt::Display) -> Error {
    Error::new(code, subject, format!("{action}: {cause}"))
}
