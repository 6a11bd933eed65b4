//! References to interests that stay valid beyond their end: a number and its use.

use std::num::NonZeroU32;

/// A reference to an interest; a later interest with the same number differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::core) struct InterestId {
    pub(in crate::core) number: u32,
    pub(in crate::core) birth: NonZeroU32,
}
