//! Authentication: the proof of each end of a link before the first frame.
//!
//! A `handshake` has a `token` and names; `token_key` makes and verifies tokens, `tls` proves the server. On loopback,
//! `peer_user` finds the user of the other end.

pub(crate) mod handshake;
pub(crate) mod peer_user;
#[cfg(feature = "tls")]
pub(crate) mod tls;
#[cfg(not(feature = "tls"))]
#[path = "without_tls.rs"]
pub(crate) mod tls;
pub(crate) mod token;
#[cfg(feature = "tls")]
pub(crate) mod token_key;
