//! Commands that read a store: its contents, its size, and the differences between two.

pub(crate) mod axes;
pub(crate) mod compare;
pub(crate) mod following;
pub(crate) mod inspect;
pub(crate) mod order;
pub(crate) mod retrieve;
pub(crate) mod stat;
pub(crate) mod values;
pub(crate) mod watch;
