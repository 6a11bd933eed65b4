//! Two indexes over one schema: from an object to the registered selectors that match it ([`InterestIndex`]), and from
//! a selector to the objects that it may match ([`ObjectIndex`]).
//!
//! Both may return false candidates, but never miss a match, and are completed by
//! [`Selector::matches`](crate::Selector::matches): [`InterestIndex`] calls it itself, [`ObjectIndex`] leaves it to the
//! owner of the records. The cost of a query depends on the number of matches, not on the size of the index. Neither
//! has a clock, threads or a source of randomness: the same calls return the same results in the same order.

mod census;
mod column;
mod filed;
mod filing;
mod interests;
mod keys;
mod learning;
mod lone;
mod objects;
mod posting;
mod split;
mod tokens;
mod tree;

pub use interests::{FilingKind, InterestIndex};
pub use objects::ObjectIndex;
pub use split::SplitTable;
