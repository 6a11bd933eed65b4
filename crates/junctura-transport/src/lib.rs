//! Carries frames and descriptors between processes.
//!
//! The wire format defines the content; this crate only moves it. A [`Carrier`] is one connection: it fills an [`Inbox`]
//! with arrived data and empties an [`Outbox`] of data to send, as far as that is possible without blocking. Nothing here
//! ever waits, except [`wait`] and [`WakeTimer::wait`], which do nothing else: the owner of many connections waits for
//! them all in its own way. [`UnixCarrier`] is a unix stream socket, [`LocalCarrier`] one that continues through rings
//! in
//! shared memory; every carrier passes the same checks (module `conformance`, feature `conformance`).
//!
//! Promises: frames arrive whole, once and in order, each with the descriptor that was sent with it, or the connection
//! ends; frames are read where they were received, without a copy; memory follows what has really arrived, not what a
//! header claims; another user is refused on both sides. Refused: a stream out of step (`Protocol`), an address whose
//! directory others could write to (`Denied`), a second server on one address (`AlreadyExists`).
//!
//! In the order in which a user meets them: [`ServerAddress`], [`ServerListener`], [`UnixCarrier`], [`LocalCarrier`], [`Outbox`], [`Inbox`], [`wait`],
//! [`WakeTimer`], [`ConnectionWatch`].

mod buffers;
mod carrier;
#[cfg(feature = "conformance")]
pub mod conformance;
mod heap;
#[cfg(feature = "conformance")]
pub mod hostile;
mod listening;
mod local;
mod peer;
mod ring;
mod text;
mod unix;
mod waiting;

pub use buffers::inbox::Inbox;
pub use buffers::outbox::Outbox;
pub use carrier::{Carrier, PeerCredentials, ReceiveResult, SendResult};
pub use heap::join_small_blocks_at_once;
pub use listening::address::{ServerAddress, ServerName};
pub use listening::listener::ServerListener;
pub use listening::served::{is_served, served_in};
pub use local::{IncomingSide, LocalCarrier, OutgoingSide};
#[cfg(feature = "conformance")]
pub use ring::HostileWriter;
pub use ring::{ConnectionRings, Parts, RING_BYTES, ReceivedRings};
pub use text::{TEXT_BYTES_MAX, near_file, read_bytes, read_text, read_text_of};
pub use unix::UnixCarrier;
pub use waiting::patience::LookPatience;
pub use waiting::poll::{PollInterest, PollResult, wait};
pub use waiting::timer::WakeTimer;
pub use waiting::watch::ConnectionWatch;

use junctura_model::{Code, Error};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

/// Makes an error of a refusal by the operating system.
fn refused(code: Code, subject: impl Into<String>, action: &str, errno: Errno) -> Error {
    match no_descriptors("this process", errno) {
        Some(cause) => Error::new(Code::LimitExceeded, subject, format!("{action}: {cause}")),
        None => Error::new(code, subject, format!("{action}: {errno}")),
    }
}

/// An error of this process as its clients read it, which are other processes: "this process" is "the server" there.
#[must_use]
pub fn for_clients(error: &Error) -> Error {
    let cause = match error.cause().split_once("this process") {
        Some((_, rest)) => format!("the server{rest}"),
        None => error.cause().to_owned(),
    };
    Error::new(error.code(), error.subject(), cause)
}

/// The cause of an error of a process, `whose`, that can open no more file descriptors, with the limit and the remedy. `None`
/// for any other refusal.
#[must_use]
pub fn no_descriptors(whose: &str, errno: Errno) -> Option<String> {
    match errno {
        Errno::MFILE => {
            let limit = getrlimit(Resource::Nofile).current;
            let limit = limit.map_or_else(|| "unlimited".to_owned(), |limit| limit.to_string());
            Some(format!(
                "{whose} cannot open more file descriptors (limit {limit}); raise it with `ulimit -n`"
            ))
        }
        Errno::NFILE => Some(format!(
            "{whose} cannot open more files, because its host has too many open (fs.file-max)"
        )),
        _ => None,
    }
}
