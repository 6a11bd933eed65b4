//! Waits on file descriptors: a look before it, a blocking poll, a timer beside it, and a descriptor for loops of other libraries.

pub(crate) mod patience;
pub(crate) mod poll;
pub(crate) mod timer;
pub(crate) mod watch;
