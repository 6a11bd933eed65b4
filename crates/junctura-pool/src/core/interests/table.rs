//! The interests of a pool: demands, follows, requirements and subscriptions, indexed so that an offer finds them, and
//! the objects that requirements are owed.
//!
//! The table delivers nothing: its callers notify clients.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::sync::Arc;

use junctura_model::index::InterestIndex;
use junctura_model::limits::REQUIREMENT_NAME_BYTES_MAX;
use junctura_model::requirements::check_name;
use junctura_model::selector::SelectorSet;
use junctura_model::{Code, Error, RecordRef, Result, nearest};
use junctura_wire::Reply;
use junctura_wire::body::{EventBody, RequireRequest};
use slab::Slab;

use crate::core::clients::client::{PendingAnswer, milliseconds};
use crate::core::clients::table::ClientTable;
use crate::core::containers::ordered_ids::OrderedIds;
use crate::core::deferred::beginning::WaitingAsker;
use crate::core::engine::timers::{Nanoseconds, TimerQueue};
use crate::core::interests::follow::FollowInterest;
use crate::core::interests::group::GroupState;
use crate::core::interests::interest::{PreparedSelector, StandingInterest, typed};
use crate::core::interests::interest_id::InterestId;
use crate::core::interests::named_requirement::{NamedRequirement, seconds, subject};
use crate::core::interests::requirement::{RequirementOwner, RequirementState};
use crate::core::interests::stuck::{StuckBounds, StuckCandidates};
use crate::core::interests::subscribe::{LATER, SubscriptionState};
use crate::core::memory::weight::INTEREST_BYTES;
use crate::{Effects, PoolConfig};

/// Names among which an error looks for the nearest one.
const SUGGESTED_FROM: usize = 64;

/// The interest of a number, or its last one.
pub(in crate::core) struct InterestSlot {
    /// The number of earlier interests with this number, plus one.
    pub(in crate::core) birth: NonZeroU32,
    pub(in crate::core) client: u32,
    pub(in crate::core) bytes: usize,
    /// The number of news that it has yet to receive ([`crate::core::interests::untold`]).
    pub(in crate::core) untold: u32,
}

/// The interests; see the module.
pub(in crate::core) struct InterestTable {
    pub(in crate::core) config: Arc<PoolConfig>,
    pub(in crate::core) table: Slab<StandingInterest>,
    /// By the number of an interest.
    pub(in crate::core) standing: Vec<InterestSlot>,
    /// Per schema: the standing selectors that an offer could match.
    pub(in crate::core) matching: Vec<InterestIndex<u32>>,
    /// The selector of the next request, if it was parsed before.
    pub(in crate::core) prepared: Option<PreparedSelector>,
    /// Requirements among the interests.
    pub(in crate::core) requirements: OrderedIds,
    /// The part with a name.
    pub(in crate::core) named: BTreeMap<String, u32>,
    /// The sum of objects that requirements are owed.
    pub(in crate::core) owed: usize,
    /// Requirements were owed as much as they may be, and are owed less since this event.
    pub(in crate::core) came_free: bool,
    /// Bytes of the names in stored gaps.
    pub(in crate::core) gap_bytes: usize,
    pub(in crate::core) breakers: StuckCandidates,
    /// Demands that match staged objects.
    pub(in crate::core) lookers: BTreeSet<u32>,
    /// Subscriptions to events of clients or of requirements.
    pub(in crate::core) watchers: OrderedIds,
    /// Subscriptions to events of objects after their offer.
    pub(in crate::core) later_subscriptions: u32,
    /// Groups whose waiting objects have changed in this event.
    pub(in crate::core) stirred: Vec<u32>,
    /// A buffer for the interests that match an offer.
    pub(in crate::core) matched: Vec<u32>,
    /// The number of times that the objects of a requirement were read.
    #[cfg(test)]
    pub(in crate::core) looks: std::cell::Cell<u64>,
}

impl InterestTable {
    pub(in crate::core) fn new(config: &Arc<PoolConfig>) -> Self {
        Self {
            config: Arc::clone(config),
            table: Slab::new(),
            standing: Vec::new(),
            matching: config.schemas.iter().map(|_| InterestIndex::default()).collect(),
            prepared: None,
            requirements: OrderedIds::default(),
            named: BTreeMap::new(),
            owed: 0,
            came_free: false,
            gap_bytes: 0,
            breakers: StuckCandidates::default(),
            lookers: BTreeSet::new(),
            watchers: OrderedIds::default(),
            later_subscriptions: 0,
            stirred: Vec::new(),
            matched: Vec::new(),
            #[cfg(test)]
            looks: std::cell::Cell::default(),
        }
    }

    pub(in crate::core) fn get(&self, id: u32) -> Option<&StandingInterest> {
        self.table.get(id as usize)
    }
}

impl InterestTable {
    /// Returns a reference to an interest that stays valid beyond its end.
    pub(in crate::core) fn refer(&self, number: u32) -> InterestId {
        let birth = self.standing[number as usize].birth;
        InterestId { number, birth }
    }

    /// Returns the number of an interest, while it exists.
    pub(in crate::core) fn still(&self, id: Option<InterestId>) -> Option<u32> {
        id.filter(|id| self.standing[id.number as usize].birth == id.birth)
            .map(|id| id.number)
    }

    /// Matches offers with an interest from now on; if this fails, nothing has changed.
    pub(in crate::core) fn match_with(&mut self, id: u32, interest: &StandingInterest) -> Result<()> {
        let Some(selectors) = interest.selectors() else {
            return Ok(());
        };
        for (schema, selector) in typed(selectors, self.matching.len()) {
            self.matching[schema].insert(id, selector);
        }
        let limit = self.config.limits.unindexed_interests;
        if self.unindexed_interests() > limit {
            self.match_no_more(id, selectors);
            let cause = format!("{limit} selectors that no index helps with stand already; add an equality");
            return Err(Error::new(Code::LimitExceeded, "selectors", cause));
        }
        Ok(())
    }

    pub(in crate::core) fn match_no_more(&mut self, id: u32, selectors: &SelectorSet) {
        for (schema, selector) in typed(selectors, self.matching.len()) {
            self.matching[schema].remove(id, selector);
        }
    }

    /// Returns the number of standing selectors that are checked against every offer.
    pub(in crate::core) fn unindexed_interests(&self) -> usize {
        self.matching.iter().map(InterestIndex::unindexed_len).sum()
    }

    pub(in crate::core) fn requirement_mut(&mut self, id: u32) -> Option<&mut RequirementState> {
        match self.table.get_mut(id as usize) {
            Some(StandingInterest::Requirement(requirement)) => Some(requirement),
            _ => None,
        }
    }

    pub(in crate::core) fn requirement_ref(&self, id: u32) -> Option<&RequirementState> {
        match self.table.get(id as usize) {
            Some(StandingInterest::Requirement(requirement)) => Some(requirement),
            _ => None,
        }
    }

    /// Returns the number of versions that a requirement is owed.
    pub(in crate::core) fn owed_len(&self, id: u32) -> usize {
        self.requirement_ref(id).map_or(0, |requirement| requirement.owed.len())
    }

    pub(in crate::core) fn following(&mut self, id: u32) -> Option<&mut FollowInterest> {
        match self.table.get_mut(id as usize) {
            Some(StandingInterest::Follow(following)) => Some(following),
            _ => None,
        }
    }

    pub(in crate::core) fn following_ref(&self, id: u32) -> Option<&FollowInterest> {
        match self.table.get(id as usize) {
            Some(StandingInterest::Follow(following)) => Some(following),
            _ => None,
        }
    }

    pub(in crate::core) fn group_mut(&mut self, id: u32) -> Option<&mut GroupState> {
        self.requirement_mut(id)?.group.as_deref_mut()
    }

    pub(in crate::core) fn group_ref(&self, id: u32) -> Option<&GroupState> {
        self.requirement_ref(id)?.group.as_deref()
    }

    pub(in crate::core) fn named_mut(&mut self, id: u32) -> Option<&mut NamedRequirement> {
        match &mut self.requirement_mut(id)?.whose {
            RequirementOwner::Named(named) => Some(named),
            RequirementOwner::Client { .. } => None,
        }
    }

    /// Returns the requirement of a name.
    pub(in crate::core) fn find_named(&self, name: &str) -> Result<u32> {
        self.named.get(name).copied().ok_or_else(|| {
            let name: String = name
                .chars()
                .filter(|c| !c.is_control())
                .take(REQUIREMENT_NAME_BYTES_MAX)
                .collect();
            let names = self.named.keys().map(String::as_str).take(SUGGESTED_FROM);
            let near = nearest(names, &name).map_or_else(String::new, |near| format!("; did you mean {near}?"));
            let cause = format!("no requirement or group has this name; `junctura pool stat` lists them{near}");
            Error::new(Code::NotFound, subject(&name), cause)
        })
    }

    /// Returns the requirement of this client's request, or of a name.
    pub(in crate::core) fn requirement_of(
        &self,
        clients: &ClientTable,
        client: u32,
        number: Option<u64>,
        name: Option<&str>,
    ) -> Result<Option<u32>> {
        if let Some(name) = name {
            return self.find_named(name).map(Some);
        }
        let Some(number) = number else { return Ok(None) };
        match clients.pending(client, number) {
            Some(PendingAnswer::Requirement(id) | PendingAnswer::Use(id)) => Ok(Some(*id)),
            _ => Err(Error::new(
                Code::NotFound,
                format!("requirement {number}"),
                "this client has none of this number",
            )),
        }
    }

    pub(in crate::core) fn selectors(&self, text: &str) -> Result<SelectorSet> {
        match &self.prepared {
            Some(prepared) if prepared.text == text => prepared.selectors.clone(),
            _ => SelectorSet::parse(text, &self.config.schemas),
        }
    }

    pub(in crate::core) fn bounds(&self, require: &RequireRequest<'_>) -> Result<StuckBounds> {
        let wrong = |subject: &str, cause: &str| Err(Error::new(Code::InvalidArgument, subject, cause));
        if require.quota_bytes.is_some() && !require.breaks_on_full {
            return wrong("quota", "only a requirement that breaks on full has one");
        }
        if require.stuck_after_ms == Some(0) {
            return wrong("stuck after", "it is 0");
        }
        let default = self.config.stuck_after.as_nanos() as u64;
        Ok(StuckBounds {
            breaks_on_full: require.breaks_on_full,
            quota: require.quota_bytes,
            stuck_after: require.stuck_after_ms.map_or(default, milliseconds),
        })
    }

    /// Builds a named requirement from a request.
    pub(in crate::core) fn named_requirement(
        &self,
        timers: &TimerQueue,
        name: &str,
        require: &RequireRequest<'_>,
    ) -> Result<RequirementState> {
        check_name(name)?;
        if require.time_to_live_ms == Some(0) {
            return Err(Error::new(Code::InvalidArgument, "time to live", "it is 0"));
        }
        let selectors = self.selectors(&require.selector)?;
        let named = NamedRequirement::new(name, require.time_to_live_ms.map(milliseconds), timers.now);
        let whose = RequirementOwner::Named(Box::new(named));
        let mut asked = RequirementState::new(whose, selectors, require.newest_only, self.bounds(require)?);
        asked.group = require.group.then(Box::default);
        Ok(asked)
    }

    pub(in crate::core) fn agree_on_requirement(&self, id: u32, asked: &RequirementState) -> Result<()> {
        let (Some(ours), Some(theirs)) = (self.requirement_ref(id), asked.named()) else {
            return Ok(());
        };
        let Some(named) = ours.named() else { return Ok(()) };
        let kinds = ["a requirement for one reader", "a group"];
        let (our_kind, their_kind) = (ours.group.is_some(), asked.group.is_some());
        let cause = if our_kind != their_kind {
            format!(
                "it is {}, not {}",
                kinds[usize::from(our_kind)],
                kinds[usize::from(their_kind)]
            )
        } else if !ours.selectors.asks_the_same(&asked.selectors) {
            format!(
                "it stands for {:?}, not {:?}: choose another name, or retract that requirement",
                ours.selectors.text(),
                asked.selectors.text()
            )
        } else if ours.newest_only != asked.newest_only {
            let versions = ["all versions", "the newest versions"];
            let (ours, theirs) = (usize::from(ours.newest_only), usize::from(asked.newest_only));
            format!("it keeps {}, not {}", versions[ours], versions[theirs])
        } else if named.time_to_live != theirs.time_to_live {
            let text = |time: Option<Nanoseconds>| {
                time.map_or_else(|| "none".to_owned(), |time| format!("{} s", seconds(time)))
            };
            let (ours, theirs) = (text(named.time_to_live), text(theirs.time_to_live));
            format!("its time to live is {ours}, not {theirs}")
        } else if ours.bounds != asked.bounds {
            format!("it {}; this would be one that {}", ours.bounds, asked.bounds)
        } else {
            return Ok(());
        };
        Err(Error::new(Code::Conflict, subject(&named.name), cause))
    }

    /// Counts the interests that would receive an object of this record.
    pub(in crate::core) fn count_wanting(&mut self, schema: u16, record: &[u8]) -> u64 {
        let mut matched = std::mem::take(&mut self.matched);
        matched.clear();
        self.matching[usize::from(schema)].matches(RecordRef::trusted(record), &mut matched);
        let wants = |id: &&u32| match self.table.get(**id as usize) {
            Some(StandingInterest::Demand(_)) => !self.is_met(**id),
            Some(StandingInterest::Follow(_)) => true,
            Some(StandingInterest::Requirement(requirement)) => requirement.broken.is_none(),
            Some(StandingInterest::Subscription(_)) | None => false,
        };
        let count = matched.iter().filter(wants).count() as u64;
        self.matched = matched;
        count
    }

    /// Sends an event to a subscription; returns false if there is none.
    pub(in crate::core) fn tell(&self, id: u32, happened: EventBody<'_>, fx: &mut impl Effects) -> bool {
        let Some(StandingInterest::Subscription(subscription)) = self.table.get(id as usize) else {
            return false;
        };
        fx.reply(subscription.client, subscription.request, &Reply::Event(happened));
        true
    }

    pub(in crate::core) fn end_subscription(&mut self, id: u32, subscription: &SubscriptionState) {
        if subscription.events & LATER != 0 {
            self.later_subscriptions -= 1;
        }
        self.watchers.remove(id);
    }

    /// Adds the bytes of an interest with this number.
    ///
    /// # Errors
    /// As [`ClientTable::weigh_asked`].
    pub(in crate::core) fn weigh_interest(
        &mut self,
        clients: &mut ClientTable,
        number: u32,
        interest: &StandingInterest,
    ) -> Result<()> {
        let client = interest.client();
        let bytes = INTEREST_BYTES + interest.selector_bytes() + interest.queue_bytes();
        clients.weigh_asked(client, bytes)?;
        match self.standing.get_mut(number as usize) {
            Some(standing) => (standing.client, standing.bytes, standing.untold) = (client, bytes, 0),
            None => self.standing.push(InterestSlot {
                birth: NonZeroU32::MIN,
                client,
                bytes,
                untold: 0,
            }),
        }
        Ok(())
    }

    /// Subtracts the bytes of an ended interest; the next one with its number differs.
    pub(in crate::core) fn weigh_interest_no_more(&mut self, clients: &mut ClientTable, number: u32) {
        let standing = &mut self.standing[number as usize];
        standing.birth = standing.birth.checked_add(1).unwrap_or(NonZeroU32::MIN);
        let (client, bytes) = (standing.client, std::mem::take(&mut standing.bytes));
        clients.weigh_asked_no_more(client, bytes);
    }

    /// Subtracts the bytes of a follow's first phase, which is over.
    pub(in crate::core) fn weigh_queue_no_more(&mut self, clients: &mut ClientTable, number: u32) {
        let Some(interest) = self.table.get(number as usize) else {
            return;
        };
        let bytes = INTEREST_BYTES + interest.selector_bytes();
        let standing = &mut self.standing[number as usize];
        let (client, before) = (standing.client, std::mem::replace(&mut standing.bytes, bytes));
        clients.weigh_asked_no_more(client, before - bytes);
    }

    /// Whether a request is answered only when its requirement has begun.
    pub(in crate::core) fn begins_later(&mut self, id: u32, asker: (u32, u64)) -> bool {
        let beginning = self.requirement_mut(id).and_then(|one| one.beginning.as_mut());
        let asker = WaitingAsker {
            client: asker.0,
            request: asker.1,
            joins: None,
        };
        beginning.map(|beginning| beginning.askers.push(asker)).is_some()
    }
}
