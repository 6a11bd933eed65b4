//! The appearance and removal of objects.

pub(in crate::model) mod archive;
pub(in crate::model) mod bundles;
pub(in crate::model) mod deferred_removal;
pub(in crate::model) mod durable_bundles;
pub(in crate::model) mod retention_by_name;
pub(in crate::model) mod unfinished;

use std::collections::BTreeSet;

use junctura_wire::body::events;

use crate::clients::requests::{Offer, Place, Stays};
use crate::model::objects::unfinished::LateRetire;
use crate::model::{Fate, Going, Model, Number, Object, Tombstone, Want, is_slot};

impl Model {
    /// An object is offered and becomes visible.
    pub(in crate::model) fn publish(&mut self, client: u32, offer: &Offer) -> u64 {
        self.occupy(self.sequence + 1, offer);
        self.appear(client, offer)
    }

    /// Makes an object visible: matching interests are owed it from now on.
    pub(in crate::model) fn appear(&mut self, client: u32, offer: &Offer) -> u64 {
        if let Some(&earlier) = self.visible.get(&offer.key) {
            self.supersede(earlier);
        }
        self.tombstones.retain(|stone| stone.key != offer.key);
        self.sequence += 1;
        let sequence = self.sequence;
        let stays = match offer.stays {
            Stays::AsSchemaSays => self.default_stay(offer.key),
            given => given,
        };
        let mut absent = 0;
        let (releases_left, until) = match stays {
            Stays::ByNames(names) => {
                absent = names & !self.standing_names();
                ((absent == 0).then_some(0), None)
            }
            Stays::UntilReleased(count) => (Some(count), None),
            Stays::For(milliseconds) => (None, Some(self.now + u64::from(milliseconds) * 1_000_000)),
            _ => (None, None),
        };
        self.objects.push(Object {
            sequence,
            offer: offer.clone(),
            producer: client,
            fate: Fate::Visible,
            touched_in: 0,
            is_archived: false,
            releases_left,
            absent,
            until,
            released_by: BTreeSet::new(),
            holders: 0,
            owed: 0,
            freed: false,
        });
        self.unfreed.insert(sequence);
        self.visible.insert(offer.key, sequence);
        let who: Vec<Number> = self.going.keys().copied().collect();
        for number in who {
            self.offer_to(number, sequence);
        }
        sequence
    }

    fn supersede(&mut self, earlier: u64) {
        self.hide(earlier, Fate::Superseded);
        self.tell(events::SUPERSEDED, earlier);
        let who: Vec<Number> = self.going.keys().copied().collect();
        for number in who {
            let gives_up = match self.going.get(&number) {
                Some(Going::Require(one)) => {
                    one.terms.newest_only
                        && one.owed.get(&earlier) == Some(&0)
                        && !self.arrives_through(number, one, earlier)
                }
                _ => false,
            };
            if gives_up {
                self.disown(number, earlier);
            }
        }
    }

    fn hide(&mut self, sequence: u64, fate: Fate) {
        let (key, event) = (self.object(sequence).offer.key, self.event);
        self.visible.remove(&key);
        let object = self.object_mut(sequence);
        object.fate = fate;
        object.touched_in = event;
        match fate {
            Fate::Superseded => self.totals.superseded += 1,
            Fate::Withdrawn => self.totals.withdrawn += 1,
            Fate::Expired => self.totals.expired += 1,
            Fate::Archived => self.totals.dropped_archived += 1,
            Fate::Visible => {}
        }
    }

    /// Removes a visible object. Interests that are owed it and have not received it get a gap.
    pub(in crate::model) fn remove(&mut self, sequence: u64, why: Fate) {
        self.hide(sequence, why);
        self.gone.push(sequence);
        self.tell(
            if why == Fate::Withdrawn {
                events::WITHDRAWN
            } else {
                events::EXPIRED
            },
            sequence,
        );
        self.disappoint(sequence, why);
        let key = self.object(sequence).offer.key;
        self.tombstones.push_back(Tombstone {
            key,
            sequence,
            buried: self.now,
            size: None,
        });
        self.limit_tombstones(key);
    }

    /// A version is taken out, be it visible or only kept.
    pub(in crate::model) fn take_out(&mut self, sequence: u64) {
        if self.takes_out_later(sequence) {
            return;
        }
        if self.object(sequence).fate == Fate::Visible {
            self.remove(sequence, Fate::Withdrawn);
        } else {
            self.disappoint(sequence, Fate::Withdrawn);
        }
    }

    /// Requirements that wait for a removed version get a gap in its place; those that hold it continue to hold it.
    fn disappoint(&mut self, sequence: u64, why: Fate) {
        let waiting: Vec<(Number, Option<Number>)> = self
            .going
            .iter()
            .filter_map(|(&number, going)| match going {
                Going::Require(one) if one.owed.get(&sequence) == Some(&0) => {
                    (!self.arrives_through(number, one, sequence)).then_some((number, one.hears()))
                }
                _ => None,
            })
            .collect();
        for (number, reader) in waiting {
            self.let_down(number, reader, sequence, why.name());
        }
    }

    /// Whether a version is delivered through a requirement in this very event.
    pub(in crate::model) fn arrives_through(
        &self,
        requirement: Number,
        one: &crate::model::Requirement,
        sequence: u64,
    ) -> bool {
        let through_demand = Want::Delivered {
            sequence,
            requirement: Some(requirement),
        };
        self.arriving.iter().any(|&(reached, arriving)| {
            let (client, request) = reached;
            arriving == sequence
                && (Some(reached) == one.reader
                    || one.members.contains(&reached)
                    || self.wants.contains(&(client, request, through_demand.clone())))
        })
    }

    pub(in crate::model) fn limit_tombstones(&mut self, key: usize) {
        let dataset = |key: usize| {
            let key = &self.universe.keys[key];
            (key.schema, key.dataset)
        };
        let same: Vec<usize> = (0..self.tombstones.len())
            .filter(|&at| dataset(self.tombstones[at].key) == dataset(key))
            .collect();
        if same.len() > self.rules.tombstones_per_dataset {
            self.tombstones.remove(same[0]);
        }
        if self.tombstones.len() > self.rules.tombstones {
            self.tombstones.pop_front();
        }
    }

    pub(in crate::model) fn forget_old_tombstones(&mut self) {
        let (now, age) = (self.now, self.rules.tombstone_age_ns);
        self.tombstones.retain(|stone| stone.buried + age > now);
    }

    pub(in crate::model) fn tell(&mut self, event: u32, sequence: u64) {
        let subscribed: Vec<Number> = self
            .going
            .iter()
            .filter(|(_, going)| {
                matches!(going, Going::Subscribe { query, events }
                    if events & event != 0 && self.matches(query, sequence))
            })
            .map(|(&number, _)| number)
            .collect();
        let client = self.object(sequence).producer;
        for (reader, request) in subscribed {
            self.want(
                reader,
                request,
                Want::Event {
                    event,
                    sequence: Some(sequence),
                    client: Some(client),
                    name: None,
                    bundle: None,
                },
            );
        }
    }

    /// Sends subscribers the event that a client joined or left.
    pub(in crate::model) fn tell_of_client(&mut self, event: u32, client: u32) {
        let want = Want::Event {
            event,
            sequence: None,
            client: Some(client),
            name: None,
            bundle: None,
        };
        self.want_of_watchers(event, &want);
    }

    pub(in crate::model) fn want_of_watchers(&mut self, event: u32, want: &Want) {
        let subscribed: Vec<Number> = self
            .going
            .iter()
            .filter(|(_, going)| matches!(going, Going::Subscribe { events, .. } if events & event != 0))
            .map(|(&number, _)| number)
            .collect();
        for (reader, request) in subscribed {
            self.want(reader, request, want.clone());
        }
    }

    /// Matches a new visible object with one open request.
    fn offer_to(&mut self, number: Number, sequence: u64) {
        let Some(going) = self.going.get(&number) else { return };
        let matches = match going {
            Going::Demand { aim, .. } => self.is_aimed_at(aim, sequence),
            Going::Follow(follow) => follow.via.is_none() && self.matches(&follow.query, sequence),
            Going::Require(one) => self.matches(&one.terms.query, sequence),
            Going::Subscribe { query, events } => events & events::OFFERED != 0 && self.matches(query, sequence),
            _ => false,
        };
        if !matches {
            return;
        }
        let (client, now) = (self.object(sequence).producer, self.now);
        let mut reader = None;
        match self.going.get_mut(&number) {
            Some(Going::Demand { requirement, .. }) => {
                let requirement = *requirement;
                self.going.remove(&number);
                self.want(number.0, number.1, Want::Delivered { sequence, requirement });
            }
            Some(Going::Follow(follow)) if follow.is_closing => {}
            Some(Going::Follow(follow)) => follow.live.push_back(sequence),
            Some(Going::Require(one)) if one.broken => one.lost.push((sequence, "broken")),
            Some(Going::Require(one)) => {
                if one.owed.is_empty() {
                    one.progress = now;
                }
                one.owed.insert(sequence, 0);
                reader = one.reader;
                self.object_mut(sequence).owed += 1;
            }
            Some(Going::Subscribe { .. }) => {
                let event = events::OFFERED;
                self.want(
                    number.0,
                    number.1,
                    Want::Event {
                        event,
                        sequence: Some(sequence),
                        client: Some(client),
                        name: None,
                        bundle: None,
                    },
                );
            }
            _ => {}
        }
        if let Some(Going::Follow(follow)) = reader.and_then(|reader| self.going.get_mut(&reader))
            && !follow.is_closing
        {
            follow.live.push_back(sequence);
        }
    }

    /// Applies follow-ups until there is none.
    pub(in crate::model) fn settle(&mut self) {
        loop {
            let changed = self.end_retentions() | self.finish_withdraws() | self.give_back_payloads();
            if !changed {
                return;
            }
        }
    }

    fn finish_withdraws(&mut self) -> bool {
        // Where several are removed in one event: in the order in which requirements gave them up.
        let turn_of = |sequence: u64| self.disowned.iter().position(|&one| one == sequence);
        let mut free: Vec<(Option<usize>, u64, Number)> = Vec::new();
        for (&number, going) in &self.going {
            let Going::Withdraw { waits, .. } = going else { continue };
            for (&sequence, blockers) in waits {
                let is_left = self.is_to_be_let_go(sequence) && turn_of(sequence).is_none();
                if !is_left && !blockers.iter().any(|&blocker| self.owes(blocker, sequence)) {
                    free.push((turn_of(sequence), sequence, number));
                }
            }
        }
        free.sort_unstable();
        for &(_, sequence, number) in &free {
            self.take_out(sequence);
            let Some(Going::Withdraw {
                waits, done, retiring, ..
            }) = self.going.get_mut(&number)
            else {
                continue;
            };
            waits.remove(&sequence);
            *done += 1;
            let has_left = retiring.as_ref().is_some_and(LateRetire::has_left);
            let (is_over, done) = (waits.is_empty() && !has_left, *done);
            if is_over {
                self.going.remove(&number);
                self.want(number.0, number.1, Want::Done(done));
            }
        }
        !free.is_empty()
    }

    pub(in crate::model) fn end_retentions(&mut self) -> bool {
        let mut ended: Vec<u64> = self
            .visible
            .values()
            .copied()
            .filter(|&sequence| {
                let object = self.object(sequence);
                object.releases_left == Some(0) && object.owed == 0 && !self.departing.has_object(sequence)
            })
            .collect();
        // Each ends with the last requirement that gave it up.
        let turn_of = |sequence: u64| self.disowned.iter().rposition(|&one| one == sequence);
        ended.sort_unstable_by_key(|&sequence| (turn_of(sequence), sequence));
        for &sequence in &ended {
            self.remove(sequence, Fate::Expired);
        }
        !ended.is_empty()
    }

    /// Handles the passing of time: the retention of some objects ends, the earliest first. A requirement that is owed
    /// one keeps it.
    pub(in crate::model) fn end_times(&mut self) {
        let now = self.now;
        let left = &self.leaving_early.now;
        let mut over: Vec<(u64, u64)> = self
            .visible
            .values()
            .filter_map(|&sequence| Some((self.object(sequence).until?, sequence)))
            .filter(|&(until, sequence)| {
                until <= now && !self.departing.has_time(sequence) && !left.contains(&sequence)
            })
            .collect();
        over.sort_unstable();
        for (_, sequence) in over {
            self.end_time(sequence);
        }
    }

    /// It is noticed that the time of a version is over.
    pub(in crate::model) fn end_time(&mut self, sequence: u64) {
        let object = self.object_mut(sequence);
        object.until = None;
        object.releases_left = Some(0);
        if object.owed == 0 && !self.departing.has_object(sequence) {
            self.remove(sequence, Fate::Expired);
        }
    }

    fn give_back_payloads(&mut self) -> bool {
        let free: Vec<u64> = self
            .unfreed
            .iter()
            .copied()
            .filter(|&sequence| {
                let object = self.object(sequence);
                object.fate != Fate::Visible
                    && !self.departing.has_payload(sequence)
                    && object.holders == 0
                    && !self.is_pinned(sequence)
                    && object.owed == 0
                    && !self.arriving.iter().any(|&(_, arriving)| arriving == sequence)
            })
            .collect();
        for &sequence in &free {
            self.unfreed.remove(&sequence);
            self.object_mut(sequence).freed = true;
            let offer = self.object(sequence).offer.clone();
            self.give_back_place(&offer);
        }
        !free.is_empty()
    }

    pub(in crate::model) fn occupy(&mut self, sequence: u64, offer: &Offer) {
        match offer.place {
            Place::Inline => self.inline_bytes += offer.length,
            Place::Slot(segment, slot) => {
                if let Some(segment) = self.segments.get_mut(&segment) {
                    segment.occupied.insert(slot, sequence);
                }
            }
        }
        debug_assert!(is_slot(offer.place) || offer.length <= self.rules.inline_bytes_max);
    }
}
