//! Two indexes over one schema: from an object to the standing selectors that match it ([`InterestIndex`]), and from a selector
//! to the objects that it may match ([`ObjectIndex`]).
//!
//! Both answer a little too much at most, never too little, and end with [`Selector::matches`](crate::Selector::matches):
//! [`InterestIndex`] does that itself, [`ObjectIndex`] leaves it to who holds the records. What an answer costs follows what
//! matches, not what is there. Neither has a clock, threads or a source of randomness: the same calls give the same
//! answers in the same order.

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
