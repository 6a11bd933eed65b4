//! Standing interests: requests that wait for objects that match a selector, indexed so that an offer finds them.

use junctura_model::Result;
use junctura_model::selector::{Selector, SelectorSet};

use crate::core::engine::timers::NOBODY;
use crate::core::interests::demand::WaitingDemand;
use crate::core::interests::follow::FollowInterest;
use crate::core::interests::requirement::{RequirementOwner, RequirementState};
use crate::core::interests::subscribe::SubscriptionState;

/// A selector of a request that was parsed before the request, for the pool's schemas: compiling its regular
/// expressions takes long.
#[derive(Debug)]
pub struct PreparedSelector {
    /// Its text in the request.
    pub text: String,
    /// The parsed selectors, or the error.
    pub selectors: Result<SelectorSet>,
}

/// One standing interest.
pub(in crate::core) enum StandingInterest {
    Demand(WaitingDemand),
    Follow(Box<FollowInterest>),
    Requirement(Box<RequirementState>),
    Subscription(SubscriptionState),
}

impl StandingInterest {
    /// Returns the bytes of the objects that a new follow begins with.
    pub(in crate::core) fn queue_bytes(&self) -> usize {
        match self {
            Self::Follow(following) => following.queued() * size_of::<u32>(),
            _ => 0,
        }
    }

    /// Returns its client; that of a named requirement is [`NOBODY`].
    pub(in crate::core) fn client(&self) -> u32 {
        match self {
            Self::Demand(waiting) => waiting.client,
            Self::Follow(following) => following.client,
            Self::Subscription(subscription) => subscription.client,
            Self::Requirement(requirement) => match requirement.whose {
                RequirementOwner::Client { client, .. } => client,
                RequirementOwner::Named(_) => NOBODY,
            },
        }
    }

    /// Returns the request of its client; that of a named requirement is 0.
    pub(in crate::core) fn request(&self) -> u64 {
        match self {
            Self::Demand(waiting) => waiting.request,
            Self::Follow(following) => following.request,
            Self::Subscription(subscription) => subscription.request,
            Self::Requirement(requirement) => match requirement.whose {
                RequirementOwner::Client { request, .. } => request,
                RequirementOwner::Named(_) => 0,
            },
        }
    }

    /// Returns the bytes of its standing selector.
    pub(in crate::core) fn selector_bytes(&self) -> usize {
        let selectors = match self {
            Self::Demand(waiting) => &waiting.selectors,
            Self::Follow(following) => &following.selectors,
            Self::Requirement(requirement) => &requirement.selectors,
            Self::Subscription(subscription) => &subscription.selectors,
        };
        selectors.standing_bytes()
    }

    pub(in crate::core) fn selectors(&self) -> Option<&SelectorSet> {
        match self {
            Self::Demand(waiting) => Some(&waiting.selectors),
            Self::Follow(following) if following.requirement.is_some() => None,
            Self::Follow(following) => Some(&following.selectors),
            Self::Requirement(requirement) => Some(&requirement.selectors),
            Self::Subscription(subscription) => Some(&subscription.selectors),
        }
    }
}

/// See [`InterestTable::aim`](crate::core::interests::table::InterestTable::aim).
pub(in crate::core) enum InterestAim {
    Selectors(SelectorSet),
    Key {
        identity: u128,
        text: String,
        selectors: SelectorSet,
    },
}

/// Iterates over the selectors of a set, each with the number of its schema.
pub(in crate::core) fn typed(selectors: &SelectorSet, schemas: usize) -> impl Iterator<Item = (usize, &Selector)> {
    (0..schemas).filter_map(|schema| Some((schema, selectors.of(schema)?)))
}
