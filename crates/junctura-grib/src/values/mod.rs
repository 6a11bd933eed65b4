//! Where the values of a message are, and whether its claims of them agree with the bytes that it has.

pub(crate) mod ccsds;
pub(crate) mod packed;
pub(crate) mod simple;
pub(crate) mod templates;
