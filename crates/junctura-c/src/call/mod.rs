//! The frame of every exported function: checked arguments, handles, options in text, and errors as numbers.

pub(crate) mod argument;
pub(crate) mod codes;
pub(crate) mod error;
pub(crate) mod handle;
pub(crate) mod options;
