//! Waits on file descriptors: a blocking poll, a timer beside it, and a descriptor for loops of other libraries.

pub(crate) mod poll;
pub(crate) mod timer;
pub(crate) mod watch;
