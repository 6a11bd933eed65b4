//! The rights of clients: which request needs which one.
//!
//! A client of the server's own user has all rights. A client behind a gate that asks for tokens has the rights of its token; the
//! gate states them in `Hello` ([`crate::body::Hello::rights`]), and the server refuses every other request ([`needed`]).
//! `docs/guide/security.md` has the same table; `tests/rights.rs` compares the two.

use std::fmt;
use std::str::FromStr;

use junctura_model::{Code, Error, Result};

use crate::FrameKind;

/// A right of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum AccessRight {
    /// Reads objects, lists, events and counters; makes and uses requirements.
    Read = 1,
    /// Offers and withdraws objects, and reports that they are archived.
    Offer = 2,
    /// Stops the server, and removes requirements that have a name. Includes the other rights.
    Admin = 4,
}

/// A set of rights that is not empty. The right `admin` includes the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessRights(u8);

/// The rights that a request needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NeededRight {
    /// No right: it is about the connection, or about what the client itself has begun.
    Nothing,
    /// This right.
    One(AccessRight),
    /// Either of these rights.
    Either(AccessRight, AccessRight),
}

impl AccessRight {
    /// All rights, the least first.
    pub const ALL: [Self; 3] = [Self::Read, Self::Offer, Self::Admin];

    /// The name of the right.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Offer => "offer",
            Self::Admin => "admin",
        }
    }
}

impl AccessRights {
    /// Every right.
    pub const ALL: Self = Self(7);
    /// The right to read.
    pub const READ: Self = Self(1);

    /// Returns the rights of these bits, as [`Self::bits`] returns them; `None` for all other bits.
    #[must_use]
    pub fn from_bits(bits: u8) -> Option<Self> {
        matches!(bits, 1..=3 | 7).then_some(Self(bits))
    }

    /// Returns the rights as bits: 1 is `read`, 2 is `offer`, 4 is `admin`.
    #[must_use]
    pub fn bits(self) -> u8 {
        self.0
    }

    /// Returns whether the right is one of these.
    #[must_use]
    pub fn has(self, right: AccessRight) -> bool {
        self.0 & right as u8 != 0
    }

    /// Returns the rights that are in both sets; `None` if there are none.
    #[must_use]
    pub fn and(self, other: Self) -> Option<Self> {
        Self::from_bits(self.0 & other.0)
    }

    /// Returns whether these rights are enough.
    #[must_use]
    pub fn allow(self, needed: NeededRight) -> bool {
        match needed {
            NeededRight::Nothing => true,
            NeededRight::One(right) => self.has(right),
            NeededRight::Either(one, other) => self.has(one) || self.has(other),
        }
    }
}

impl fmt::Display for AccessRights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = AccessRight::ALL.into_iter().filter(|right| self.has(*right));
        f.write_str(&names.map(AccessRight::name).collect::<Vec<_>>().join(","))
    }
}

impl FromStr for AccessRights {
    type Err = Error;

    /// Reads names of rights with commas between them: `read,offer`.
    fn from_str(text: &str) -> Result<Self> {
        let mut bits = 0;
        for name in text.split(',') {
            let known = AccessRight::ALL.into_iter().find(|right| right.name() == name.trim());
            let right = known.ok_or_else(|| {
                let cause = "rights are read, offer and admin, with commas between them";
                Error::new(Code::InvalidArgument, format!("right {name:?}"), cause)
            })?;
            bits |= match right {
                AccessRight::Admin => Self::ALL.0,
                other => other as u8,
            };
        }
        Ok(Self(bits))
    }
}

impl NeededRight {
    /// The names of the rights, for people.
    #[must_use]
    pub fn text(self) -> String {
        match self {
            Self::Nothing => "none".to_owned(),
            Self::One(right) => right.name().to_owned(),
            Self::Either(one, other) => format!("{} or {}", one.name(), other.name()),
        }
    }
}

/// Returns what a request of this kind needs. A frame that no client sends needs nothing: the server refuses it anyway.
///
/// One exception is the server's: a client retracts a requirement with a name without `admin` if the same token made it.
#[must_use]
pub fn needed(kind: FrameKind) -> NeededRight {
    use AccessRight::{Admin, Offer, Read};
    match kind {
        FrameKind::Demand
        | FrameKind::List
        | FrameKind::Follow
        | FrameKind::Subscribe
        | FrameKind::Require
        | FrameKind::Bundles
        | FrameKind::Stat
        | FrameKind::Pack
        | FrameKind::Tally
        | FrameKind::Board
        | FrameKind::Waits
        | FrameKind::Explain
        | FrameKind::Keepers => NeededRight::One(Read),
        FrameKind::Wanted => NeededRight::Either(Read, Offer),
        FrameKind::Offer
        | FrameKind::Stage
        | FrameKind::Lease
        | FrameKind::Bundle
        | FrameKind::Seal
        | FrameKind::Abort
        | FrameKind::Consumers
        | FrameKind::Withdraw
        | FrameKind::WithdrawAll
        | FrameKind::Forget
        | FrameKind::Archived => NeededRight::One(Offer),
        FrameKind::Drain | FrameKind::Retract => NeededRight::One(Admin),
        FrameKind::Hello
        | FrameKind::Goodbye
        | FrameKind::Cancel
        | FrameKind::More
        | FrameKind::Release
        | FrameKind::Return
        | FrameKind::Stop
        | FrameKind::Sync
        | FrameKind::Note
        // The kinds of a server.
        | FrameKind::Welcome
        | FrameKind::Failed
        | FrameKind::Offered
        | FrameKind::Segment
        | FrameKind::Freed
        | FrameKind::Delivered
        | FrameKind::Live
        | FrameKind::Gap
        | FrameKind::Listed
        | FrameKind::Event
        | FrameKind::Done
        | FrameKind::Stats
        | FrameKind::Recall
        | FrameKind::Dropped
        | FrameKind::Began
        | FrameKind::Ended
        | FrameKind::Rings
        | FrameKind::Completed
        | FrameKind::Bundled
        | FrameKind::Packed
        | FrameKind::Tallied
        | FrameKind::BoardPage
        | FrameKind::Waiting
        | FrameKind::Explained
        | FrameKind::Kept => NeededRight::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_needs_no_rights() {
        for kind in FrameKind::ALL.iter().filter(|kind| (**kind as u8) >= 64) {
            assert_eq!(needed(*kind), NeededRight::Nothing, "{kind:?}");
        }
    }

    #[test]
    fn rights_are_read_as_they_are_written() {
        for bits in 0..=u8::MAX {
            let Some(rights) = AccessRights::from_bits(bits) else {
                continue;
            };
            assert_eq!(rights.to_string().parse::<AccessRights>(), Ok(rights));
            assert_eq!(rights.bits(), bits);
        }
        assert_eq!("admin".parse(), Ok(AccessRights::ALL));
        assert_eq!("offer, read".parse::<AccessRights>().unwrap().to_string(), "read,offer");
        for text in ["", "write", "read,", "READ"] {
            let error = text.parse::<AccessRights>().unwrap_err();
            assert_eq!(error.code(), Code::InvalidArgument, "{text:?}");
        }
    }

    #[test]
    fn sets_of_rights_shrink() {
        let (read, both) = (AccessRights::READ, AccessRights::from_bits(3).unwrap());
        assert_eq!(both.and(read), Some(read));
        assert_eq!(AccessRights::ALL.and(both), Some(both));
        assert_eq!(read.and("offer".parse().unwrap()), None);
        assert!(both.allow(needed(FrameKind::Wanted)) && !both.allow(needed(FrameKind::Drain)));
    }
}
