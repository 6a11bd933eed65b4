//! Unfinished partial work, for checks.

use super::DeferredPart;
use crate::core::engine::Core;
use crate::core::interests::interest::StandingInterest;

/// Work that is done in parts, as far as it is unfinished; for checks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnfinishedWork {
    /// Its unique number.
    pub number: u64,
    /// Its turns so far.
    pub turns: u64,
    /// The kind of work.
    pub change: UnfinishedChange,
    /// The objects whose turn has yet to be reached, the next last; 0 for a removed one.
    pub left: Vec<u64>,
}

/// See [`UnfinishedWork`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnfinishedChange {
    /// The withdraw-all with this client and number.
    WithdrawAll(u32, u64),
    /// A requirement begins to be owed visible objects: its client and number, or its name.
    Begin(std::result::Result<(u32, u64), String>),
    /// A requirement has ended.
    End,
    /// Requirements have taken these names.
    Come(Vec<String>),
    /// A bundle was aborted: the members that have yet to be dropped, each with the client and its request that had the
    /// bundle open, and the request that staged it.
    Drop(Vec<((u32, u64), u64)>),
    /// The pool drains: the demands of these clients and requests have yet to be refused.
    Refuse(Vec<(u32, u64)>),
    /// Work without an effect that a client can see.
    Nothing,
}

impl UnfinishedWork {
    pub(super) fn of(core: &Core, number: u64, turns: u64, part: &DeferredPart) -> Self {
        let (change, left) = what_is_left(core, part).unwrap_or((UnfinishedChange::Nothing, Vec::new()));
        Self {
            number,
            turns,
            change,
            left,
        }
    }
}

fn what_is_left(core: &Core, part: &DeferredPart) -> Option<(UnfinishedChange, Vec<u64>)> {
    let numbers = |left: &[u32], newest: u64| {
        let sequence = |&id: &u32| core.exchange.objects.get(id).map_or(0, |one| one.sequence);
        let there = |sequence: u64| if sequence <= newest { sequence } else { 0 };
        left.iter().map(|id| there(sequence(id))).collect()
    };
    match part {
        &DeferredPart::TakeOut { id, client, request } => {
            let withdrawal = core.exchange.withdrawals.table.get(id as usize)?;
            let (left, newest) = withdrawal.left(client, request)?;
            Some((UnfinishedChange::WithdrawAll(client, request), numbers(left, newest)))
        }
        &DeferredPart::Owe(id) => {
            let requirement = core
                .exchange
                .asked
                .interests
                .requirement_ref(core.exchange.asked.interests.still(Some(id))?)?;
            let beginning = requirement.beginning.as_ref()?;
            let of = requirement.named().map(|named| named.name.clone());
            let change = UnfinishedChange::Begin(of.map_or_else(|| Ok(requirement.client()), Err));
            Some((change, numbers(&beginning.left, beginning.newest)))
        }
        DeferredPart::Disown(disowned) => Some((UnfinishedChange::End, disowned.left())),
        DeferredPart::Await(coming) => Some((
            UnfinishedChange::Come(coming.names.clone()),
            coming.left(&core.exchange.objects, &core.exchange.retention),
        )),
        DeferredPart::Drop(members) => Some((UnfinishedChange::Drop(members.left()), Vec::new())),
        &DeferredPart::Refuse(next) => {
            let interests = &core.exchange.asked.interests;
            let left = (next..interests.standing.len()).filter_map(|id| match interests.get(id as u32) {
                Some(StandingInterest::Demand(waiting)) if !interests.is_met(id as u32) => {
                    Some((waiting.client, waiting.request))
                }
                _ => None,
            });
            Some((UnfinishedChange::Refuse(left.collect()), Vec::new()))
        }
        DeferredPart::Unwatch(_) => None,
    }
}
