//! The position of a message's values, and whether its claims about them agree with its bytes.

pub(crate) mod ccsds;
pub(crate) mod packed;
pub(crate) mod simple;
pub(crate) mod templates;
