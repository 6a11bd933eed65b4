//! Queries of a store: the objects visible at one commit, their order, and derived results.
//!
//! A `snapshot` is the state at one commit. Its `listing` has the objects that a selector matches; other modules derive
//! results from it: `axes`, `columns` of Arrow, `stats`, a comparison, a retrieval that is complete or fails. `wait`
//! and `follow` return objects that are committed later.

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
