//! Causes: why one request waits.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use junctura_wire::reasons::ReasonReference;

use super::references::{on_bundle, on_client};
use super::{LOOKS_EACH, LookBudget, PoolReasons, REFERENCES_MAX, WaitCause};
use crate::core::durability::{ArchiveWaiter, AwaitedTree};
use crate::core::interests::demand::WaitingDemand;
use crate::core::interests::requirement::RequirementState;
use crate::core::memory::shortage::MemoryShortage;
use crate::core::objects::offer::WaitingOffer;
use crate::core::objects::withdrawals::PendingWithdrawal;

impl PoolReasons<'_> {
    /// Nothing visible matches: what matches may be staged, or wait itself.
    pub(super) fn cause_of_demand(&self, waiting: &WaitingDemand, budget: &mut LookBudget) -> WaitCause {
        let exchange = &self.exchange;
        let matches = |schema: u16, record: junctura_model::RecordRef<'_>| {
            let selector = waiting.selectors.of(usize::from(schema));
            selector.is_some_and(|selector| selector.matches(record))
        };
        let looks = budget.for_one();
        let (staged, looked) = exchange.bundles.staged_among(looks, |object| {
            let object = &exchange.objects[object];
            matches(object.schema, object.record())
        });
        budget.spend(looked);
        if let Some(bundle) = staged {
            let bundle = exchange.bundles.why_open(bundle).map_or(bundle, |(_, other)| other);
            let bundle = exchange
                .bundles
                .bundle_reference(&exchange.asked.clients, &exchange.asked.timers, bundle);
            return WaitCause::on("staged", bundle.map(on_bundle));
        }
        let is_it = |offer: &WaitingOffer| {
            let record = junctura_model::RecordRef::trusted(&offer.record);
            matches(offer.head.schema.get(), record)
        };
        let mut left = budget.for_one();
        for client in exchange.memory.stalled.clients() {
            let offers = exchange.asked.clients.get(client).map(|state| &state.waiting_offers);
            for offer in offers.into_iter().flatten().take(left) {
                budget.spend(1);
                left -= 1;
                if is_it(offer) {
                    let client = exchange.asked.clients.client_reference(client);
                    return WaitCause::on("offer_waits", [on_client(client)]);
                }
            }
        }
        WaitCause::of("nothing_matches")
    }

    pub(super) fn cause_of_offer(&self, client: u32, budget: &mut LookBudget) -> WaitCause {
        let shortage = self.exchange.memory.stalled.shortage_of(client);
        self.cause_of_shortage(client, shortage.unwrap_or(MemoryShortage::Payload), budget)
    }

    pub(super) fn cause_of_lease(&self, turn: u64, client: u32, budget: &mut LookBudget) -> WaitCause {
        let leases = &self.exchange.memory.waiting_leases;
        let first = leases.first().filter(|&first| first != turn && !leases.may_be_passed());
        match first.and_then(|first| leases.get(first)) {
            Some(first) => {
                let first = self.exchange.asked.clients.client_reference(first.client);
                WaitCause::on("behind", [on_client(first)])
            }
            None => self.cause_of_shortage(client, MemoryShortage::Payload, budget),
        }
    }

    fn cause_of_shortage(&self, client: u32, shortage: MemoryShortage, budget: &mut LookBudget) -> WaitCause {
        let exchange = &self.exchange;
        let memory = &exchange.memory;
        let comes_free = match shortage {
            MemoryShortage::Payload => memory.is_spilling() || memory.eviction.has_spare(),
            MemoryShortage::Records => memory.eviction.has_spare(),
            MemoryShortage::Owed => false,
        };
        if exchange.is_behind() || comes_free {
            return WaitCause::of("working");
        }
        match shortage {
            MemoryShortage::Payload => {
                let mut on = self.most_owed(budget, true, |one| one.owed_bytes);
                on.extend(self.unused_by_others(client));
                WaitCause::on("memory", on)
            }
            MemoryShortage::Records => {
                WaitCause::on("records", self.most_owed(budget, true, |one| one.owed_len() as u64))
            }
            MemoryShortage::Owed => {
                WaitCause::on("owed_limit", self.most_owed(budget, true, |one| one.owed_len() as u64))
            }
        }
    }

    /// Requirements that are owed most, the most first.
    fn most_owed(
        &self,
        budget: &mut LookBudget,
        is_short: bool,
        amount: impl Fn(&RequirementState) -> u64,
    ) -> Vec<ReasonReference> {
        let asked = &self.exchange.asked;
        let mut found: Vec<(u64, u32)> = Vec::new();
        for id in asked.interests.requirements.iter().take(budget.left) {
            budget.spend(1);
            let amount = asked.interests.requirement_ref(id).map_or(0, &amount);
            found.extend((amount > 0).then_some((amount, id)));
        }
        found.sort_unstable_by_key(|&(amount, id)| (Reverse(amount), id));
        let ids: Vec<u32> = found.into_iter().map(|(_, id)| id).take(REFERENCES_MAX).collect();
        asked.on_requirements(&ids, is_short)
    }

    /// Other clients that lease memory in which nothing was put, or that were asked for memory in which nothing is.
    fn unused_by_others(&self, client: u32) -> Vec<ReasonReference> {
        let memory = &self.exchange.memory;
        let unused = memory.unused.values().take(LOOKS_EACH);
        let others: BTreeSet<u32> = memory.recalled.keys().chain(unused).copied().collect();
        let clients = &self.exchange.asked.clients;
        let is_other = |&other: &u32| other != client && clients.get(other).is_some();
        let others = others.into_iter().filter(is_other);
        others
            .take(REFERENCES_MAX)
            .map(|other| on_client(clients.client_reference(other)))
            .collect()
    }

    pub(super) fn withdrawn_text(&self, withdrawal: &PendingWithdrawal) -> String {
        let first = withdrawal
            .waits
            .keys()
            .next()
            .and_then(|&id| self.exchange.objects.get(id));
        first.map_or_else(String::new, |object| {
            self.exchange.objects.key_text(object.schema, &object.record)
        })
    }

    pub(super) fn cause_of_withdrawal(&self, withdrawal: &PendingWithdrawal) -> WaitCause {
        let asked = &self.exchange.asked;
        let blockers = withdrawal.waits.values().next();
        let standing = |&blocker| asked.interests.still(Some(blocker));
        let ids: Vec<u32> = blockers.into_iter().flatten().filter_map(standing).collect();
        if ids.is_empty() {
            return WaitCause::of("working");
        }
        WaitCause::on("owed", asked.on_requirements(&ids, false))
    }

    pub(super) fn cause_of_drain(&self, budget: &mut LookBudget) -> WaitCause {
        let owed = |one: &RequirementState| (one.owed_len() + one.to_be_owed()) as u64;
        let requirements = self.most_owed(budget, false, owed);
        if requirements.is_empty() && !self.drain.follows.is_empty() {
            let followers = self.last_followers(budget);
            if followers.is_empty() {
                // They have ended, which the next event notes.
                return WaitCause::of("working");
            }
            return WaitCause::on("followers", followers);
        }
        WaitCause::on("owed", requirements)
    }

    /// Clients whose follows have yet to receive objects before the pool ends.
    fn last_followers(&self, budget: &mut LookBudget) -> Vec<ReasonReference> {
        let asked = &self.exchange.asked;
        let follows = self.drain.last_follows(&asked.interests).take(budget.left);
        let follows = follows.inspect(|_| budget.spend(1));
        let following = follows.filter_map(|(id, _)| asked.interests.following_ref(id));
        let clients: BTreeSet<u32> = following.map(|following| following.client).collect();
        let reference = |client| on_client(asked.clients.client_reference(client));
        clients.into_iter().take(REFERENCES_MAX).map(reference).collect()
    }

    pub(super) fn cause_of_sync(&self, client: u32) -> WaitCause {
        let client = self.exchange.asked.clients.client_reference(client);
        WaitCause::on("offers", [on_client(client)])
    }

    /// Returns the text of the awaited object or bundle, and the requirements that could archive it.
    pub(super) fn cause_of_durable(&self, awaited: AwaitedTree, budget: &mut LookBudget) -> (String, WaitCause) {
        let exchange = &self.exchange;
        let (what, object) = match awaited {
            AwaitedTree::Object(id) => {
                let object = &exchange.objects[id];
                (exchange.objects.key_text(object.schema, &object.record), Some(id))
            }
            AwaitedTree::Bundle(root) => (exchange.bundles.path_of(root), self.unarchived_member(root, budget)),
        };
        let ids = object.map_or_else(Vec::new, |id| self.owing(id, REFERENCES_MAX, budget));
        (
            what,
            WaitCause::on("unarchived", exchange.asked.on_requirements(&ids, false)),
        )
    }

    /// A durable member of a tree of bundles that is not archived.
    fn unarchived_member(&self, root: u64, budget: &mut LookBudget) -> Option<u32> {
        let waiting = self.exchange.durability.waiting.iter().take(budget.for_one());
        let mut members = waiting.inspect(|_| budget.spend(1));
        members.find_map(|(&id, waiter)| match waiter {
            ArchiveWaiter::Bundle(its) if *its == root => Some(id),
            ArchiveWaiter::Bundle(_) | ArchiveWaiter::Offer(..) => None,
        })
    }

    /// Requirements that are owed an object, in the order in which they were made.
    pub(super) fn owing(&self, object: u32, most: usize, budget: &mut LookBudget) -> Vec<u32> {
        let interests = &self.exchange.asked.interests;
        let (sequence, owed) = self
            .exchange
            .objects
            .get(object)
            .map_or((0, 0), |object| (object.sequence, object.owed as usize));
        let all = interests.requirements.iter().take(budget.left);
        let looked = all.inspect(|_| budget.spend(1));
        let is_owed = |&id: &u32| {
            let one = interests.requirement_ref(id);
            one.is_some_and(|one| one.owed.contains_key(&sequence))
        };
        looked.filter(is_owed).take(owed.min(most)).collect()
    }

    /// Returns nothing where the bundle waits for nothing any more.
    pub(super) fn cause_of_bundle(&self, number: u64, budget: &mut LookBudget) -> Option<(String, WaitCause)> {
        let exchange = &self.exchange;
        let Some((because, other)) = exchange.bundles.why_open(number) else {
            let root = exchange.durability.root_of(number)?;
            return Some(self.cause_of_durable(AwaitedTree::Bundle(root), budget));
        };
        let (clients, timers) = (&exchange.asked.clients, &exchange.asked.timers);
        let on = exchange.bundles.bundle_reference(clients, timers, other);
        Some((
            exchange.bundles.path_of(number),
            WaitCause::on(because, on.map(on_bundle)),
        ))
    }
}
