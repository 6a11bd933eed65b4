//! The end of bundles: they become visible, or are aborted.

use std::collections::BTreeSet;

use hashbrown::HashMap;
use junctura_model::{Code, Error, Result};
use junctura_wire::Reply;
use junctura_wire::body::{WireFailure, events};
use junctura_wire::fixed::{CompletedHead, MemberVersion};
use junctura_wire::frame::BODY_BYTES_MAX;

use super::dropped::{DroppedMembers, drop_later, drop_member};
use super::{BundlePhase, StagedMember};
use crate::Effects;
use crate::core::bundles::BundleTable;
use crate::core::clients::requests::ClientRequests;
use crate::core::engine::Core;
use crate::core::exchange::ObjectExchange;
use crate::core::objects::object::{ObjectRetention, ObjectState, RetainedUntil};

/// The number of versions that fit into a frame.
const VERSIONS_PER_FRAME: usize = BODY_BYTES_MAX / size_of::<MemberVersion>() - 2;

/// The versions to report to each stager, by its client and the request that has the bundle open.
type Told = HashMap<(u32, u64), Vec<MemberVersion>>;

impl Core {
    /// Seals a bundle for its opener: it has all its members.
    pub(in crate::core) fn seal(&mut self, client: u32, request: u64, which: u64, fx: &mut impl Effects) -> Result<()> {
        let exchange = &mut self.exchange;
        let number = exchange.asked.clients.bundle_of(client, which)?;
        let bundle = exchange.bundles.open_one(number)?;
        let conflict = |cause: String| Err(Error::new(Code::Conflict, bundle.subject(), cause));
        if let Some(declared) = bundle.terms.declared {
            return conflict(format!("{} of {declared} members are there", bundle.there()));
        }
        let is_open = |number: &&u64| {
            exchange
                .bundles
                .get(**number)
                .is_some_and(|one| one.phase == BundlePhase::Open)
        };
        if let Some(inner) = bundle.nested.iter().find(is_open) {
            let inner = exchange
                .bundles
                .get(*inner)
                .map_or_else(String::new, super::BundleRow::subject);
            return conflict(format!("{inner} is nested in it and is not complete"));
        }
        let objects = exchange.bundles.objects_within(number);
        exchange.complete(number, Some(client), fx);
        exchange
            .durability
            .answer_completing(&mut exchange.asked, (client, request), number, objects, fx);
        Ok(())
    }

    /// Aborts a bundle for its opener.
    pub(in crate::core) fn abort(
        &mut self,
        client: u32,
        request: u64,
        which: u64,
        fx: &mut impl Effects,
    ) -> Result<()> {
        let exchange = &mut self.exchange;
        let number = exchange.asked.clients.bundle_of(client, which)?;
        exchange.bundles.open_one(number)?;
        let objects = exchange.bundles.objects_within(number);
        exchange.abort_bundle(number, Some((client, which)), "a producer aborted it", fx);
        fx.reply(client, request, &Reply::Done(objects));
        Ok(())
    }

    /// Aborts a bundle that no producer has had open for its orphan timeout.
    pub(in crate::core) fn orphan(&mut self, number: u64, fx: &mut impl Effects) {
        if let Some(bundle) = self.exchange.bundles.table.get_mut(&number) {
            bundle.orphaned = None;
            self.exchange
                .abort_bundle(number, None, "all its producers have disconnected", fx);
        }
    }
}

impl ObjectExchange {
    /// A bundle that has the number of members that was declared is complete.
    pub(in crate::core) fn complete_if_whole(&mut self, number: u64, by: Option<u32>, fx: &mut impl Effects) {
        let whole = |bundle: &super::BundleRow| bundle.phase == BundlePhase::Open && bundle.is_whole();
        if self.bundles.get(number).is_some_and(whole) {
            self.complete(number, by, fx);
        }
    }

    pub(in crate::core) fn complete(&mut self, number: u64, by: Option<u32>, fx: &mut impl Effects) {
        let Some(bundle) = self.bundles.table.get_mut(&number) else {
            return;
        };
        bundle.phase = BundlePhase::Complete;
        let parent = bundle.parent;
        self.bundles.watch_bundle(&mut self.asked.timers, number);
        match parent {
            None => self.reveal(number, by, fx),
            Some(above) => {
                if let Some(parent) = self.bundles.table.get_mut(&above) {
                    parent.nested_complete += 1;
                }
                self.complete_if_whole(above, by, fx);
            }
        }
    }

    /// Makes all objects of a tree visible, at one point in the order.
    pub(in crate::core) fn reveal(&mut self, root: u64, by: Option<u32>, fx: &mut impl Effects) {
        let tree = self.bundles.tree(root);
        let members = self.bundles.members_in_order(&self.objects, root);
        let first = if members.is_empty() {
            0
        } else {
            self.objects.sequence + 1
        };
        let mut told = Told::new();
        let mut rest = members.len() as u32;
        for (key, member) in &members {
            self.bundles.unpin(&self.objects, &self.memory, *key, member);
            rest -= 1;
            self.objects[member.object].rest = rest;
            let sequence = self.reveal_one(*key, member, fx);
            told.entry(member.by).or_default().push(MemberVersion {
                request: member.request.into(),
                sequence: sequence.into(),
            });
        }
        let durable = members.iter().filter(|(_, member)| member.is_durable);
        self.durability
            .await_members(&self.objects, root, &tree, durable.map(|(_, member)| member.object));
        for number in tree {
            self.became_visible(number, first, members.len() as u64, &told, by, fx);
        }
        self.bundles.forget_surplus_bundles();
    }

    pub(in crate::core) fn reveal_one(&mut self, key: u128, member: &StagedMember, fx: &mut impl Effects) -> u64 {
        self.see_off_key(key, fx);
        if let Some(earlier) = self.objects.find_key(key) {
            self.supersede(earlier, fx);
        }
        self.objects.sequence += 1;
        let sequence = self.objects.sequence;
        let object = &mut self.objects[member.object];
        object.state = ObjectState::Visible;
        object.sequence = sequence;
        match self.bundles.table.get_mut(&member.bundle) {
            Some(bundle) if bundle.path.is_some() => {
                bundle.visible += 1;
                if member.keep == ObjectRetention::Together {
                    bundle.together.insert(sequence, member.object);
                } else {
                    bundle.first_key.get_or_insert(key);
                }
            }
            _ => object.bundle = 0,
        }
        self.appear(member.object, member.keep, fx);
        sequence
    }

    /// Notifies every client that has a bundle open, and every subscriber, that it is visible.
    pub(in crate::core) fn became_visible(
        &mut self,
        number: u64,
        first: u64,
        objects: u64,
        told: &Told,
        by: Option<u32>,
        fx: &mut impl Effects,
    ) {
        self.bundles.open -= 1;
        self.bundles.completed += 1;
        self.asked
            .tell_about_bundle(self.bundles.bundle_name(number), events::COMPLETED, by, "", fx);
        let Some(bundle) = self.bundles.table.get_mut(&number) else {
            return;
        };
        bundle.phase = BundlePhase::Visible;
        bundle.first = first;
        bundle.bytes = 0;
        let openers = std::mem::take(&mut bundle.openers);
        bundle.openers_below = 0;
        let is_over = bundle.visible == 0;
        if bundle.path.is_none() {
            self.bundles.table.remove(&number);
        } else if is_over {
            self.bundles.past.push_back((self.asked.timers.now, number));
        }
        for opener in openers {
            let versions = told.get(&opener).map_or(&[][..], Vec::as_slice);
            self.durability
                .tell_completed(number, opener, (first, objects), versions, fx);
        }
    }

    /// Aborts a bundle and all that are nested in it: its objects are freed, in turns if they are many, and their keys
    /// are not remembered.
    pub(in crate::core) fn abort_bundle(
        &mut self,
        number: u64,
        by: Option<(u32, u64)>,
        why: &str,
        fx: &mut impl Effects,
    ) {
        let tree = self.bundles.tree(number);
        let Some(bundle) = self.bundles.get(number) else {
            return;
        };
        let (root, parent, openers) = (bundle.root, bundle.parent, bundle.openers_below);
        for &one in &tree {
            self.asked.tell_about_bundle(
                self.bundles.bundle_name(one),
                events::ABORTED,
                by.map(|(client, _)| client),
                why,
                fx,
            );
            self.bundles.end_openers(&mut self.asked, one, by, why, fx);
        }
        drop_members(self, root, &tree, fx);
        for one in tree {
            self.bundles.forget_aborted(&mut self.asked.timers, one);
        }
        if let Some(above) = parent {
            if let Some(parent) = self.bundles.table.get_mut(&above) {
                parent.nested.remove(&number);
            }
            self.bundles
                .count_openers(&mut self.asked.timers, above, -(openers as i32));
        }
        self.memory.came_free = true;
    }

    /// Aborts all bundles of a draining pool: an incomplete bundle can no longer be completed.
    pub(in crate::core) fn abort_all_bundles(&mut self, fx: &mut impl Effects) {
        let table = self.bundles.table.iter();
        let roots = table.filter(|(number, bundle)| bundle.root == **number && bundle.phase != BundlePhase::Visible);
        let roots: Vec<u64> = roots.map(|(&number, _)| number).collect();
        for number in roots {
            self.abort_bundle(number, None, "the pool drains", fx);
        }
    }

    /// Removes the objects that stay as long as the others of their bundle, when these have been removed.
    pub(in crate::core) fn let_the_rest_go(&mut self, number: u64, fx: &mut impl Effects) {
        let bundle = self.bundles.table.get_mut(&number);
        let rest = bundle.map(|bundle| std::mem::take(&mut bundle.together));
        for (sequence, id) in rest.into_iter().flatten() {
            let Some(object) = self.objects.get_mut(id) else {
                continue;
            };
            if object.sequence == sequence && object.until == RetainedUntil::Together {
                object.until = RetainedUntil::Over;
                self.settle_in_turn(id, fx);
            }
        }
    }
}

/// Drops the staged objects of a tree, or of a part of one; in turns if they are many.
fn drop_members(exchange: &mut ObjectExchange, root: u64, tree: &[u64], fx: &mut impl Effects) {
    let is_whole = tree.first() == Some(&root);
    let sums = exchange.bundles.sums_of(tree);
    let is_much = !exchange.deferred.may_drop(sums.objects);
    let Some(top) = exchange.bundles.table.get_mut(&root) else {
        return;
    };
    if is_much && is_whole {
        let (members, sorted) = (std::mem::take(&mut top.members), std::mem::take(&mut top.sorted));
        return drop_later(exchange, &sums, DroppedMembers::of_tree(members, sorted));
    }
    let within: BTreeSet<u64> = tree.iter().copied().collect();
    let mut staged = top.members.take_if(|member| within.contains(&member.bundle));
    staged.sort_unstable_by_key(|(_, member)| member.object);
    if is_much {
        staged.reverse();
        return drop_later(exchange, &sums, DroppedMembers::of(staged));
    }
    exchange.memory.freed.gathers = true;
    for (key, member) in staged {
        drop_member(exchange, key, &member, fx);
    }
    exchange.memory.freed.gathers = false;
    exchange.memory.freed.tell(fx);
}

impl BundleTable {
    pub(in crate::core) fn end_openers(
        &mut self,
        asked: &mut ClientRequests,
        number: u64,
        by: Option<(u32, u64)>,
        why: &str,
        fx: &mut impl Effects,
    ) {
        let Some(bundle) = self.table.get_mut(&number) else {
            return;
        };
        let openers = std::mem::take(&mut bundle.openers);
        let error = Error::new(Code::Closed, bundle.subject(), format!("it was aborted: {why}"));
        for (client, request) in openers {
            asked.settle(client, request);
            if by != Some((client, request)) {
                fx.reply(client, request, &Reply::Ended(WireFailure::from(&error)));
            }
        }
    }
}

pub(super) fn send_completed(
    (client, request): (u32, u64),
    first: u64,
    objects: u64,
    versions: &[MemberVersion],
    fx: &mut impl Effects,
) {
    let mut rest = versions;
    loop {
        let (members, later) = rest.split_at(rest.len().min(VERSIONS_PER_FRAME));
        rest = later;
        let head = CompletedHead {
            first: first.into(),
            objects: objects.into(),
            more: u32::from(!rest.is_empty()).into(),
            reserved: 0.into(),
        };
        fx.reply(client, request, &Reply::Completed { head, members });
        if rest.is_empty() {
            return;
        }
    }
}
