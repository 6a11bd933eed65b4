//! Authentication: the proof of each end of a link before the first frame.
//!
//! A `handshake` has a `token` and names; `token_authority` makes, checks and revokes tokens, with a `token_key` and a
//! `token_list` in a `token_file`; `tls` proves the server, with a `certificate`. On loopback, `peer_user` finds the user of the other end.

#[cfg(feature = "tls")]
pub(crate) mod certificate;
pub(crate) mod handshake;
pub(crate) mod peer_user;
#[cfg(feature = "tls")]
pub(crate) mod tls;
#[cfg(not(feature = "tls"))]
#[path = "without_tls.rs"]
pub(crate) mod tls;
pub(crate) mod token;
#[cfg(feature = "tls")]
pub(crate) mod token_authority;
#[cfg(feature = "tls")]
pub(crate) mod token_file;
#[cfg(feature = "tls")]
pub(crate) mod token_key;
pub(crate) mod token_list;
