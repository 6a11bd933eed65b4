//! Commands that look at a store: what it has, how much, and what two have in common.

pub(crate) mod axes;
pub(crate) mod compare;
pub(crate) mod following;
pub(crate) mod inspect;
pub(crate) mod order;
pub(crate) mod retrieve;
pub(crate) mod stat;
pub(crate) mod values;
pub(crate) mod watch;
