//! The terminal: output, progress, text that is safe to show, Ctrl-C.

pub(crate) mod interrupt;
#[macro_use]
pub(crate) mod output;
pub(crate) mod progress;
pub(crate) mod visible;
