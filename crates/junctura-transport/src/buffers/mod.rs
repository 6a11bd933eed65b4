//! Buffers of a connection: bytes received and not yet read, bytes to send and not yet sent.

pub(crate) mod high_water;
pub(crate) mod inbox;
pub(crate) mod outbox;
