//! Judges each reply of the core: is it due, and is it right?

use junctura_model::Code;
use junctura_wire::body::events;
use junctura_wire::fixed;

use super::{Checked, Fate, Going, Held, Model, Number, Want};
use crate::clients::replies::{Delivered, Named, Said};
use crate::clients::requests::{Place, payload_bytes, requirement_name};
use crate::world::recorder::Recorder;
use crate::world::spilled_checksum;

pub(super) fn expect(holds: bool, otherwise: &str) -> Checked {
    if holds { Ok(()) } else { Err(otherwise.to_owned()) }
}

impl Model {
    pub(super) fn observe(&mut self, client: u32, request: u64, said: &Said, recorder: &Recorder) -> Checked {
        let number = (client, request);
        match said {
            Said::Welcome { client: told } => {
                expect(*told == client, "another client's number")?;
                self.wanted(number, &Want::Welcome)
            }
            Said::Offered(sequence) => self.wanted(number, &Want::Offered(*sequence)),
            Said::Done(count) if self.was_late(client, request, *count) => Ok(()),
            Said::Done(count) => self.wanted(number, &Want::Done(*count)),
            Said::Began(sequence) => self.wanted(number, &Want::Began(*sequence)),
            Said::Stats => self.wanted(number, &Want::Stats),
            Said::Tallied(tallied) => self.tallied(number, tallied),
            Said::Completed {
                first,
                objects,
                versions,
            } => self.wanted(
                number,
                &Want::Completed {
                    first: *first,
                    objects: *objects,
                    versions: versions.clone(),
                },
            ),
            Said::Bundled => Err("bundles were not requested".to_owned()),
            Said::Reasons => Err("reasons were not requested".to_owned()),
            Said::Failed(code) if self.durable_failed(number, *code) => Ok(()),
            Said::Failed(code) => {
                let is_it = |want: &Want| matches!(want, Want::Failed(due) if due.is_none() || due == code);
                match self.take_want(client, request, is_it) {
                    Some(_) => Ok(()),
                    None => self.lease_failed(client, request, *code, recorder),
                }
            }
            Said::Segment(head) if head.writable.get() != 0 => self.granted(client, request, head),
            Said::Segment(head) if head.segment.get() == fixed::FILE_TIER => expect(
                request == 0 && self.rules.spill_bytes.is_some(),
                "there is no file tier",
            ),
            Said::Segment(head) => expect(
                request == 0 && recorder.segment_bytes.contains_key(&head.segment.get()),
                "there is no such segment",
            ),
            Said::Freed(slots) => slots
                .iter()
                .try_for_each(|&(segment, slot)| self.wanted((client, 0), &Want::Freed(segment, slot))),
            Said::Recall(segment) => expect(
                self.segments
                    .get(segment)
                    .is_some_and(|known| known.owner == Some(client)),
                "the client does not lease it",
            ),
            Said::Dropped(segment) => expect(!self.segments.contains_key(segment), "the segment is still there"),
            Said::Delivered(delivered) => self.delivered(number, delivered),
            Said::Gap { items, reason } => self.gap(number, items, reason),
            Said::Broken { .. } | Said::Left(_) => Ok(()),
            Said::Live => self.live(number),
            Said::Ended(code) if self.opener_failed(number, *code) => Ok(()),
            Said::Ended(code) => self.ended(number, *code, recorder),
            Said::Listed { last, items } => self.listed(number, *last, items),
            // It was stuck when this was reported; this client receives the report later.
            Said::Event { event, .. } if *event == events::STUCK && self.was_untold(number, *event) => Ok(()),
            Said::Event { event, requirement, .. } if *event == events::STUCK => {
                self.reported_stuck(requirement.as_deref())
            }
            Said::Event {
                event,
                sequence,
                record,
                length,
                client: about,
                requirement,
                bundle,
            } => {
                if let Some(sequence) = sequence.filter(|&sequence| sequence > 0) {
                    let object = self.known_object(sequence)?;
                    expect(*record == *object.offer.record, "another record")?;
                    expect(*length == object.offer.length, "another length")?;
                    expect(about.is_none_or(|client| client == object.producer), "another producer")?;
                }
                let is_it = |want: &Want| {
                    matches!(want, Want::Event { event: due, sequence: what, client, name, bundle: which } if due == event
                        && what == sequence && (about.is_none() && sequence.is_some() || about == client)
                        && name.map(requirement_name) == *requirement && which == bundle)
                };
                expect(
                    self.take_want(client, request, is_it).is_some(),
                    "nothing of this happened",
                )
            }
        }
    }

    fn wanted(&mut self, number: Number, want: &Want) -> Checked {
        if self.take_want(number.0, number.1, |due| due == want).is_some() {
            return Ok(());
        }
        let due: Vec<_> = self.wants.iter().filter(|(c, r, _)| (*c, *r) == number).collect();
        Err(format!("not due; due were {due:?}"))
    }

    fn known_object(&self, sequence: u64) -> Result<&super::Object, String> {
        let at = (sequence as usize).wrapping_sub(1);
        self.objects
            .get(at)
            .ok_or_else(|| format!("no offer got number {sequence}"))
    }

    fn delivered(&mut self, number: Number, delivered: &Delivered) -> Checked {
        let sequence = delivered.sequence();
        self.is_what_was_offered(delivered)?;
        let held = if let Some(Going::Follow(_)) = self.going.get(&number) {
            self.followed(number, sequence, delivered.is_first_phase())?
        } else {
            let want = self.take_want(
                number.0,
                number.1,
                |want| matches!(want, Want::Delivered { sequence: due, .. } if *due == sequence),
            );
            let Some(Want::Delivered { requirement, .. }) = want else {
                return Err("not due".to_owned());
            };
            expect(!delivered.is_first_phase(), "a demand has no first phase")?;
            Held {
                sequence,
                follow: None,
                requirement,
                is_released: false,
            }
        };
        let mut is_again = false;
        if let Some(Going::Require(one)) = held.requirement.and_then(|which| self.going.get_mut(&which)) {
            is_again = one.again.contains(&sequence);
            let account = one.owed.get_mut(&sequence).or(one.forfeited.get_mut(&sequence));
            *account.unwrap_or(&mut 0) += 1;
        }
        expect(delivered.is_redelivered() == is_again, "its mark is wrong")?;
        self.object_mut(sequence).holders += 1;
        self.totals.delivered += 1;
        let earlier = self.held.insert((number.0, delivered.holding()), held);
        expect(earlier.is_none(), "the holding is in use")
    }

    fn is_what_was_offered(&self, delivered: &Delivered) -> Checked {
        let object = self.known_object(delivered.sequence())?;
        let (offer, head) = (&object.offer, &delivered.head);
        expect(*delivered.record == *offer.record, "another record")?;
        expect(head.length.get() == offer.length, "another length")?;
        expect(head.producer.get() == object.producer, "another producer")?;
        expect(
            head.schema.get() == self.universe.keys[offer.key].schema,
            "another schema",
        )?;
        expect(!object.freed, "its payload was given back")?;
        let flagged = head.flags.get() & fixed::CHECKSUM != 0;
        let checksum = flagged.then_some(head.checksum.get());
        let in_file = self.disk.place_of(offer.payload);
        let spilled = head.flags.get() & fixed::SPILLED != 0;
        expect(spilled == in_file.is_some(), "in the file tier or not, as it is not")?;
        if let Some(at) = in_file {
            let due = offer.checksum.unwrap_or(spilled_checksum(offer.payload));
            expect(checksum == Some(due), "another checksum")?;
            let place = (head.segment.get(), head.slot.get(), &delivered.inline);
            return expect(place == (0, at, &None), "another place of the file tier");
        }
        expect(checksum == offer.checksum, "another checksum")?;
        match (offer.place, &delivered.inline) {
            (Place::Inline, Some(bytes)) => {
                expect(*bytes == payload_bytes(offer.payload, offer.length), "another payload")
            }
            (Place::Slot(segment, slot), None) => {
                expect((head.segment.get(), head.slot.get()) == (segment, slot), "another slot")
            }
            _ => Err("in a message or in a slot, not as it was offered".to_owned()),
        }
    }

    /// A delivery of a follow: the next of its queue that can be given.
    fn followed(&mut self, number: Number, sequence: u64, is_first: bool) -> Result<Held, String> {
        if matches!(self.going.get(&number), Some(Going::Follow(follow)) if follow.joined.is_some()) {
            return self.shared(number, sequence, is_first);
        }
        let held = self.held_by(number.0);
        self.pass_over(number, Some(sequence))?;
        let limit = self.rules.held_per_client;
        let Some(Going::Follow(follow)) = self.going.get_mut(&number) else {
            return Err("nothing follows".to_owned());
        };
        expect(follow.in_flight < follow.window, "more than the window")?;
        expect(held < limit, "more than a client may hold")?;
        expect(follow.missed.is_empty(), "missed objects are to be reported first")?;
        let queue = if is_first { &mut follow.first } else { &mut follow.live };
        expect(queue.pop_front() == Some(sequence), "not the next of its phase")?;
        expect(is_first != follow.said_live, "in the wrong phase")?;
        expect(follow.given.insert(sequence), "twice in one session")?;
        follow.in_flight += 1;
        let via = follow.via;
        let object = self.object(sequence);
        let is_there = object.touched_in == self.event
            || match via {
                Some(via) => self.owes(via, sequence),
                None => object.fate == Fate::Visible && !self.is_out_of_sight(sequence),
            };
        expect(is_there, "it is not there any more")?;
        Ok(Held {
            sequence,
            follow: Some(number.1),
            requirement: via,
            is_released: false,
        })
    }

    /// Drops from the front of a follow's queue what is passed over in silence: superseded versions, for a look; what is
    /// not owed any more, for a requirement.
    pub(super) fn pass_over(&mut self, number: Number, until: Option<u64>) -> Checked {
        loop {
            let Some(Going::Follow(follow)) = self.going.get(&number) else {
                return Ok(());
            };
            let is_first = !follow.first.is_empty();
            let queue = if is_first { &follow.first } else { &follow.live };
            let Some(&next) = queue.front() else { return Ok(()) };
            if Some(next) == until {
                return Ok(());
            }
            if !self.is_silent(follow, next) {
                return match until {
                    Some(_) => Err(format!("{next} was passed over: {:?}", self.object(next).fate)),
                    None => Ok(()),
                };
            }
            if let Some(Going::Follow(follow)) = self.going.get_mut(&number) {
                let queue = if is_first { &mut follow.first } else { &mut follow.live };
                queue.pop_front();
            }
        }
    }

    fn is_silent(&self, follow: &super::Following, sequence: u64) -> bool {
        match follow.via {
            Some(via) => !self.owes(via, sequence) || follow.perhaps.contains(&sequence),
            None => self.object(sequence).fate == Fate::Superseded && self.newer_comes(follow, sequence),
        }
    }

    /// The number of a follow that read a requirement and has ended in this event.
    fn reader_ended(&self, requirement: Number) -> Option<u64> {
        self.readers_ended
            .iter()
            .find(|(number, _)| *number == requirement)
            .map(|&(_, reader)| reader)
    }

    /// Whether a newer version of the key is to be delivered in the same follow, or was delivered.
    fn newer_comes(&self, follow: &super::Following, sequence: u64) -> bool {
        let key = self.object(sequence).offer.key;
        let is_newer = |&other: &u64| other > sequence && self.object(other).offer.key == key;
        follow.live.iter().any(is_newer) || follow.first.iter().any(is_newer) || follow.given.iter().any(is_newer)
    }

    fn gap(&mut self, number: Number, items: &[Named], reason: &str) -> Checked {
        expect(!items.is_empty(), "it names nothing")?;
        for item in items {
            let object = self.known_object(item.sequence)?;
            expect(item.record == *object.offer.record, "another record")?;
            expect(
                item.schema == self.universe.keys[object.offer.key].schema,
                "another schema",
            )?;
            let sequence = item.sequence;
            let is_it = |want: &Want| matches!(want, Want::Gap(due, why) if *due == sequence && *why == reason);
            // A follow that ends in this very event may or may not get the gap in place of its requirement. One that
            // begins in this very event may, for an object that was removed when the follow reached it.
            let told = match self.going.get(&number) {
                Some(Going::Require(_)) => self.reader_ended(number),
                Some(Going::Follow(follow)) => follow.via.filter(|via| via.0 == number.0).map(|via| via.1),
                _ => None,
            };
            if self.take_want(number.0, number.1, is_it).is_some()
                || told.is_some_and(|reader| self.take_want(number.0, reader, is_it).is_some())
            {
                continue;
            }
            expect(self.end_of(sequence).name() == reason, "for another reason")?;
            expect(self.end_of(sequence) != Fate::Visible, "it is not removed")?;
            if self.object(sequence).fate == Fate::Superseded
                && let Some(Going::Follow(follow)) = self.going.get(&number)
            {
                // An object that became visible in this very event may have done so after this reply.
                let newest = self.visible.get(&self.object(sequence).offer.key);
                let is_there = newest.is_some_and(|&newest| newest <= self.newest_before);
                let comes = is_there && !follow.is_closing && self.newest_matches(&follow.query, sequence);
                expect(!comes, "the newer version replaces it")?;
            }
            if let Some(Going::Follow(follow)) = self.going.get_mut(&number)
                && follow.missed.front() == Some(&sequence)
            {
                follow.missed.pop_front();
                continue;
            }
            self.pass_over(number, Some(sequence))?;
            let Some(Going::Follow(follow)) = self.going.get_mut(&number) else {
                return Err("nothing follows".to_owned());
            };
            let queue = if follow.first.is_empty() {
                &mut follow.live
            } else {
                &mut follow.first
            };
            expect(
                follow.via.is_none() && queue.pop_front() == Some(sequence),
                "not in its place",
            )?;
        }
        Ok(())
    }

    fn live(&mut self, number: Number) -> Checked {
        let Some(Going::Follow(follow)) = self.going.get(&number) else {
            return Err("nothing follows".to_owned());
        };
        let missing = follow
            .first
            .iter()
            .find(|&&next| !self.is_silent(follow, next))
            .copied();
        let missing = missing.or_else(|| self.oldest_to_wait_for(follow));
        if let Some(missing) = missing {
            return Err(format!("{missing} of the first phase is missing"));
        }
        let Some(Going::Follow(follow)) = self.going.get_mut(&number) else {
            return Ok(());
        };
        expect(!follow.said_live, "said before")?;
        follow.first.clear();
        follow.said_live = true;
        if follow.until_live && follow.joined.is_none() {
            // An object that became visible in this event did so after this reply.
            let newest = self.newest_before;
            follow.is_closing = true;
            follow.live.retain(|&sequence| sequence <= newest);
            follow.perhaps.clone_from(&self.came_back);
        } else if follow.until_live {
            self.end(number);
            self.want(number.0, number.1, Want::Ended(Code::Closed));
        }
        Ok(())
    }

    fn ended(&mut self, number: Number, code: Option<Code>, recorder: &Recorder) -> Checked {
        if self
            .take_want(
                number.0,
                number.1,
                |want| matches!(want, Want::Ended(due) if Some(*due) == code),
            )
            .is_some()
        {
            return Ok(());
        }
        if code == Some(Code::Closed) && matches!(self.going.get(&number), Some(Going::Follow(one)) if one.is_closing) {
            self.pass_over(number, None)?;
            let left = match self.going.get(&number) {
                Some(Going::Follow(follow)) => follow.live.front().copied(),
                _ => None,
            };
            self.end(number);
            return expect(left.is_none(), &format!("{left:?} is still due"));
        }
        expect(code == Some(Code::LimitExceeded), "there is no reason for it")?;
        let is_due = match self.going.get(&number) {
            Some(Going::Follow(follow)) => follow.live.len() > self.rules.queued_per_follow,
            Some(Going::Subscribe { .. }) => {
                let backlog = recorder.lines.get(&number.0).map_or(0, |line| line.bytes);
                self.wants
                    .retain(|(c, r, want)| (*c, *r) != number || !matches!(want, Want::Event { .. }));
                backlog > self.rules.event_backlog_bytes
            }
            _ => false,
        };
        self.end(number);
        expect(is_due, "no limit was reached")
    }

    fn listed(&mut self, number: Number, last: bool, items: &[Named]) -> Checked {
        self.wanted(number, &Want::Page)?;
        let Some(Going::List { rest }) = self.going.get_mut(&number) else {
            return Err("nothing is listed".to_owned());
        };
        for item in items {
            let due = rest.pop_front();
            expect(
                due == Some(item.sequence),
                &format!("due was {due:?}, listed is {}", item.sequence),
            )?;
        }
        expect(
            last == rest.is_empty(),
            "the last page is the one that empties the list",
        )?;
        expect(last || !items.is_empty(), "an empty page")?;
        for item in items {
            let offer = &self.known_object(item.sequence)?.offer;
            expect(item.record == *offer.record, "another record")?;
            expect(item.length == offer.length, "another length")?;
        }
        if last {
            self.end(number);
        }
        Ok(())
    }

    /// Whether a want may stay open: there is no receiver.
    pub(super) fn is_moot(&self, client: u32, want: &Want) -> bool {
        self.leaving.contains(&client)
            || matches!(want, Want::Event { event, .. } if *event == events::LEFT)
                && !self.clients.contains_key(&client)
    }
}
