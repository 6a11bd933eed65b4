//! Questions to a store: what is visible at one commit, in which order, and what it adds up to.
//!
//! A `snapshot` is the state at one commit. Its `listing` has the objects that a selector matches; the other modules derive
//! something of it: `axes`, `columns` of Arrow, `stats`, a comparison, a retrieval that is complete or fails. `wait` and `follow`
//! return what is committed later.

pub(crate) mod axes;
#[cfg(feature = "parquet")]
pub(crate) mod columns;
pub(crate) mod compare;
pub(crate) mod follow;
pub(crate) mod listing;
pub(crate) mod retrieve;
pub(crate) mod snapshot;
pub(crate) mod stats;
pub(crate) mod wait;
