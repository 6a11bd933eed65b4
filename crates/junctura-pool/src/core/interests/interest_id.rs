//! Interests by number and birth, beyond their end.

use std::num::NonZeroU32;

/// A standing interest, which another one that gets its number later is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::core) struct InterestId {
    pub(in crate::core) number: u32,
    pub(in crate::core) birth: NonZeroU32,
}
