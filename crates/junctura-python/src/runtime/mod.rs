//! The Python runtime: the interpreter and its end, signals, exceptions, and values that are kept for the process.

pub(crate) mod ending;
pub(crate) mod error;
pub(crate) mod interpreter;
pub(crate) mod interrupt;
pub(crate) mod lazy_value;
pub(crate) mod patience;
pub(crate) mod turns;
