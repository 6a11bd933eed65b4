//! Actions that a client takes by itself.

use crate::INCARNATION;
use crate::clients::client::{Client, Doing};
use crate::clients::reader::{Chain, Wish};
use crate::clients::requests::{Aim, Ask, Back, NAMES, Offer, Place, Resume, Share, Stays, Terms};
use crate::run::plan::Deed;
use crate::run::rng::Rng;
use crate::run::universe::{Order, Query};
use crate::world::{Checked, World, own_fault};

/// More requests than this are not left open.
const REQUESTS_MAX: usize = 24;

impl World {
    pub(crate) fn act(&mut self, place: usize, rng: &mut Rng) -> Checked {
        let Some(client) = &self.clients[place] else {
            return Ok(());
        };
        if client.dead || client.leaving || client.up.len() >= REQUESTS_MAX {
            return Ok(());
        }
        if !client.welcomed && !rng.percent(1) {
            return Ok(());
        }
        let going = client.doing.values().filter(|doing| **doing != Doing::Loose).count();
        let mut deed = self.plan.deed(rng);
        if going >= REQUESTS_MAX && !matches!(deed, Deed::Cancel | Deed::Stop | Deed::Release | Deed::Return) {
            deed = Deed::Release;
        }
        match deed {
            Deed::OfferInline => return self.offer(place, rng, false, None),
            Deed::OfferSlot => return self.offer(place, rng, true, None),
            Deed::Open | Deed::Stage | Deed::StageSlot | Deed::Seal | Deed::Abort => {
                return self.act_on_bundle(place, deed, rng);
            }
            Deed::Lease => {
                let bytes = self.payload_bytes(rng);
                let (timeout_ms, staged) = (timeout(rng), rng.percent(30));
                let ask = Ask::Lease {
                    bytes,
                    timeout_ms,
                    staged,
                };
                self.ask(place, ask, Doing::Lease);
            }
            Deed::Demand => self.demand(place, rng),
            Deed::Cancel => {
                let waiting = |doing: &Doing| matches!(doing, Doing::Demand(_) | Doing::Lease | Doing::Withdraw);
                if let Some(which) = self.one_of(place, rng, waiting) {
                    self.ask(place, Ask::Cancel(which), Doing::Loose);
                }
            }
            Deed::List => {
                let (query, order) = (self.query(rng), order(rng));
                let doing = Doing::List {
                    began: false,
                    items: Vec::new(),
                };
                self.ask(place, Ask::List { query, order }, doing);
            }
            Deed::Tally => self.tally(place, rng),
            Deed::Follow => self.follow(place, rng),
            Deed::Require if rng.percent(50) => self.require_named(place, rng),
            Deed::Require => self.require(place, rng),
            Deed::Wanted => return self.ask_if_wanted(place, rng),
            Deed::Retract => {
                let name = rng.below(self.terms.len());
                self.ask(place, Ask::Retract(name), Doing::Withdraw);
            }
            Deed::Withdraw => {
                let (key, force) = (rng.below(self.universe.keys.len()), rng.percent(30));
                let timeout_ms = timeout(rng);
                self.ask(place, Ask::Withdraw { key, timeout_ms, force }, Doing::Withdraw);
            }
            Deed::WithdrawAll if rng.percent(30) => self.forget(place, rng),
            Deed::WithdrawAll => {
                let (query, force) = (self.query(rng), rng.percent(30));
                let timeout_ms = timeout(rng);
                self.ask(
                    place,
                    Ask::WithdrawAll {
                        query,
                        timeout_ms,
                        force,
                    },
                    Doing::Withdraw,
                );
            }
            Deed::Subscribe => self.subscribe(place, rng),
            Deed::Stop => self.stop(place, rng),
            Deed::Release => self.release_some(place, rng),
            Deed::Return => self.give_back_segment(place, rng),
            Deed::Name => {
                let bits = rng.below(1 << NAMES) as u8;
                self.ask(place, Ask::Consumers(bits), Doing::Withdraw);
            }
            Deed::Sync => {
                self.ask(place, Ask::Sync, Doing::Withdraw);
            }
            Deed::Archived => self.say_archived(place, rng),
            Deed::Stat => {
                self.ask(place, Ask::Stat, Doing::Stat);
            }
            Deed::Drain if self.plan.drains => {
                let timeout_ms = timeout(rng);
                self.ask(place, Ask::Drain { timeout_ms }, Doing::Withdraw);
            }
            Deed::Drain => {}
            Deed::Nonsense => self.nonsense(place, rng),
        }
        Ok(())
    }

    fn query(&self, rng: &mut Rng) -> Query {
        Query::random(rng, &self.universe, false)
    }

    fn payload_bytes(&self, rng: &mut Rng) -> u64 {
        if rng.percent(3) {
            self.plan.rules.budget_bytes + rng.between(0, 1)
        } else {
            rng.between(0, self.plan.payload_bytes_max)
        }
    }

    pub(crate) fn one_of(&self, place: usize, rng: &mut Rng, is_it: impl Fn(&Doing) -> bool) -> Option<u64> {
        rng.pick(&self.clients[place].as_ref()?.requests(is_it))
    }

    pub(crate) fn offer(&mut self, place: usize, rng: &mut Rng, in_slot: bool, bundle: Option<u64>) -> Checked {
        let universe = std::rc::Rc::clone(&self.universe);
        let key = rng.below(universe.keys.len());
        let size = rng.percent(60).then(|| rng.below(4) as i64);
        let record = universe
            .record(&universe.keys[key], size)
            .map_err(|error| own_fault(&error))?;
        self.payloads += 1;
        let payload = self.payloads;
        let Some(client) = &mut self.clients[place] else {
            return Ok(());
        };
        let too_long = u64::from(rng.percent(5));
        let mut length = rng.between(0, self.plan.rules.inline_bytes_max + too_long);
        if self.plan.rules.spill_bytes.is_some() && length > 0 {
            // Bytes written to the file tier identify their payload.
            length = length.max(8);
        }
        let mut at = Place::Inline;
        if in_slot {
            let Some(found) = free_slot(client, rng) else {
                let bytes = self.payload_bytes(rng);
                let timeout_ms = timeout(rng);
                let ask = Ask::Lease {
                    bytes,
                    timeout_ms,
                    staged: bundle.is_some(),
                };
                self.ask(place, ask, Doing::Lease);
                return Ok(());
            };
            let (segment, slot, slot_bytes) = found;
            length = rng.between(1, slot_bytes);
            at = Place::Slot(segment, slot);
            match self.recorder.segments.get_mut(&segment) {
                // Bytes sent over a link have arrived when it has delivered them.
                Some(_) if client.road.is_some() => {}
                Some(memory) => _ = memory.insert(slot, payload),
                None => {
                    return Err(format!(
                        "client {} leases segment {segment}, which is dropped",
                        client.id
                    ));
                }
            }
            self.recorder.writes(segment, slot, payload, client.road.is_some());
        }
        let is_long = self.plan.archives > 0 && rng.percent(60);
        let stays = if is_long { Stays::UntilWithdrawn } else { stays(rng) };
        let malformed = rng.percent(1);
        let if_wanted = rng.percent(self.plan.if_wanted);
        let durable = rng.percent(self.plan.durable);
        let id = &universe.keys[key].text;
        let n = client.numbers + 1;
        let path = bundle.map_or_else(|| "null".to_owned(), |bundle| format!("\"{bundle}\""));
        let row = format!(r#"{{"op":"offering","n":{n},"id":{id:?},"sum":"{payload}","bundle":{path}}}"#);
        client.rows.push_str(&row);
        client.rows.push('\n');
        let checksum = rng.percent(20).then(|| rng.next() as u32);
        let offer = Offer {
            key,
            size,
            record,
            payload,
            length,
            place: at,
            stays,
            if_wanted,
            durable,
            malformed,
            checksum,
        };
        match bundle {
            None => self.ask(place, Ask::Offer(offer), Doing::Offer(at, durable)),
            Some(bundle) => self.ask(place, Ask::Stage { bundle, offer }, Doing::Stage(at, bundle, durable)),
        };
        Ok(())
    }

    fn subscribe(&mut self, place: usize, rng: &mut Rng) {
        let query = self.query(rng);
        let mut events = if rng.percent(5) { 2048 } else { rng.below(2048) as u32 };
        if events & junctura_wire::body::events::BROKEN != 0 {
            events |= junctura_wire::body::events::STUCK;
        }
        if self.plan.rules.spill_bytes.is_some() && rng.percent(40) {
            events |= junctura_wire::body::events::SPILLED;
        }
        if self.plan.durable > 0 && rng.percent(40) {
            events |= junctura_wire::body::events::ARCHIVED | junctura_wire::body::events::UNARCHIVED;
        }
        self.ask(place, Ask::Subscribe { query, events }, Doing::Subscribe);
    }

    /// A holder may report its object as archived, or as one that could not be.
    fn say_archived(&mut self, place: usize, rng: &mut Rng) {
        let Some(client) = &self.clients[place] else { return };
        let held: Vec<u64> = client.held.iter().map(|held| held.sequence).collect();
        let sequences = held.into_iter().filter(|_| rng.percent(60)).collect();
        let (name, fails) = (rng.below(self.terms.len()), rng.percent(20));
        self.ask(place, Ask::Archived { name, sequences, fails }, Doing::Withdraw);
    }

    fn ask_if_wanted(&mut self, place: usize, rng: &mut Rng) -> Checked {
        let key = rng.below(self.universe.keys.len());
        let size = rng.percent(60).then(|| rng.below(4) as i64);
        let record = self.universe.record(&self.universe.keys[key], size);
        let record = record.map_err(|error| own_fault(&error))?;
        let ask = Ask::Wanted {
            key,
            size,
            record,
            declines: rng.percent(60),
        };
        self.ask(place, ask, Doing::Withdraw);
        Ok(())
    }

    fn demand(&mut self, place: usize, rng: &mut Rng) {
        let aim = if rng.percent(60) {
            Aim::Key(rng.below(self.universe.keys.len()))
        } else {
            Aim::Query(self.query(rng))
        };
        let (mut requirement, mut wish) = (None, None);
        if rng.percent(20)
            && let Some(number) = self.one_of(place, rng, |doing| matches!(doing, Doing::Require(_)))
        {
            requirement = Some(number);
            if let Some(Some(Doing::Require(one))) =
                self.clients[place].as_ref().map(|client| client.doing.get(&number))
            {
                wish = Some(*one);
            }
        }
        if rng.percent(1) {
            requirement = Some(99_999);
        }
        let mut name = None;
        if requirement.is_none() && rng.percent(15) {
            (requirement, name) = self.named_or_its_number(place, rng);
        }
        let timeout_ms = timeout(rng);
        self.ask(
            place,
            Ask::Demand {
                aim,
                timeout_ms,
                requirement,
                name,
            },
            Doing::Demand(wish),
        );
    }

    fn tally(&mut self, place: usize, rng: &mut Rng) {
        let ask = Ask::Tally {
            query: self.query(rng),
            by_size: rng.percent(50),
            limit: [1, 1000][rng.below(2)],
            filed_only: rng.percent(30),
        };
        self.ask(place, ask, Doing::Stat);
    }

    fn follow(&mut self, place: usize, rng: &mut Rng) {
        let window = rng.between(1, 8) as u32;
        if rng.percent(30)
            && let Some(number) = self.one_of(place, rng, |doing| matches!(doing, Doing::Require(_)))
        {
            return self.follow_through(place, number, window);
        }
        if rng.percent(self.plan.through_names) {
            let through = self.named_or_its_number(place, rng);
            let until_live = rng.percent(10);
            let name = rng.below(self.terms.len());
            // Some take what is no group for one, or the other way round.
            if self.terms[name].is_group != rng.percent(5) {
                let terms = rng.percent(50).then(|| self.terms_of(name, rng));
                return self.share(place, Share { name, terms }, window, until_live);
            }
            return self.follow_named(place, through, window, until_live);
        }
        let resumable = self
            .chains
            .iter()
            .position(|chain| chain.session.is_none() && !chain.over && chain.cursor.is_some());
        if let Some(chain) = resumable.filter(|_| rng.percent(70)) {
            // The judges of histories know of no reader that stops before the end of a run in good order.
            let until_live = rng.percent(30) && !self.recorded;
            return self.resume(place, chain, window, until_live);
        }
        let (query, order) = (self.query(rng), order(rng));
        let (only_new, until_live) = (rng.percent(10), rng.percent(10));
        let foreign = rng.percent(2).then(|| Resume {
            text: junctura_model::Cursor {
                incarnation: INCARNATION + 1,
                phase: junctura_model::Phase::Live { last: 0 },
            }
            .to_string(),
            foreign: true,
            since: 0,
            first: None,
        });
        self.chains
            .push(Chain::new(query.clone(), order, only_new, until_live, None));
        let chain = self.chains.len() - 1;
        let window = if rng.percent(1) { 0 } else { window };
        let ask = Ask::Follow {
            query,
            order,
            window,
            cursor: foreign,
            only_new,
            until_live,
            requirement: None,
            name: None,
            group: None,
        };
        self.ask_to_follow(place, chain, ask);
    }

    fn ask_to_follow(&mut self, place: usize, chain: usize, ask: Ask) {
        let request = self.ask(place, ask, Doing::Follow(chain));
        if let Some(client) = &self.clients[place] {
            self.chains[chain].asked_by(client.id, request);
        }
    }

    fn resume(&mut self, place: usize, chain: usize, window: u32, until_live: bool) {
        self.chains[chain].until_live = until_live;
        let one = &self.chains[chain];
        let ask = Ask::Follow {
            query: one.query.clone(),
            order: one.order,
            window,
            cursor: one.cursor.clone(),
            only_new: false,
            until_live,
            requirement: None,
            name: None,
            group: None,
        };
        self.ask_to_follow(place, chain, ask);
    }

    pub(crate) fn follow_through(&mut self, place: usize, requirement: u64, window: u32) {
        let Some(Some(&Doing::Require(wish))) = self.clients[place]
            .as_ref()
            .map(|client| client.doing.get(&requirement))
        else {
            return;
        };
        self.wishes[wish].read = true;
        let query = self.wishes[wish].query.clone();
        self.chains
            .push(Chain::new(query.clone(), Order::Key, false, false, Some(wish)));
        let ask = Ask::Follow {
            query,
            order: Order::Key,
            window,
            cursor: None,
            only_new: false,
            until_live: false,
            requirement: Some(requirement),
            name: None,
            group: None,
        };
        self.ask_to_follow(place, self.chains.len() - 1, ask);
    }

    fn require(&mut self, place: usize, rng: &mut Rng) {
        let terms = Terms {
            query: self.query(rng),
            ..Terms::random(rng, &self.universe)
        };
        self.require_on(place, terms);
    }

    pub(crate) fn require_on(&mut self, place: usize, terms: Terms) -> u64 {
        let (query, newest_only) = (terms.query.clone(), terms.newest_only);
        let wish = self.wishes.len();
        let request = self.ask(place, Ask::Require { terms, name: None }, Doing::Require(wish));
        let client = self.clients[place].as_ref().map_or(0, |client| client.id);
        self.wishes.push(Wish {
            query,
            newest_only,
            client,
            request,
            over: false,
            read: false,
            began: None,
            came: std::collections::BTreeSet::new(),
            made: 0,
        });
        request
    }

    /// Most clients agree on the terms of a name.
    fn require_named(&mut self, place: usize, rng: &mut Rng) {
        let name = rng.below(self.terms.len());
        let terms = self.terms_of(name, rng);
        let ask = Ask::Require {
            terms,
            name: Some(name),
        };
        self.ask(place, ask, Doing::Use(name));
    }

    fn terms_of(&self, name: usize, rng: &mut Rng) -> Terms {
        let mut terms = self.terms[name].clone();
        if rng.percent(10) {
            match rng.below(5) {
                4 => terms.stuck_after_ms = Some(999),
                0 => terms.newest_only = !terms.newest_only,
                1 => terms.time_to_live_ms = Some(1000),
                2 => terms.query = Query::Sized,
                _ => terms.is_group = !terms.is_group,
            }
        }
        terms
    }

    /// A requirement by its name; or, if the client uses it, by the number of its own request.
    fn named_or_its_number(&self, place: usize, rng: &mut Rng) -> (Option<u64>, Option<usize>) {
        let name = rng.below(self.terms.len());
        let number = self.one_of(place, rng, |doing| *doing == Doing::Use(name));
        match number.filter(|_| rng.percent(50)) {
            Some(number) => (Some(number), None),
            None => (None, Some(name)),
        }
    }

    pub(crate) fn follow_named(
        &mut self,
        place: usize,
        (requirement, name): (Option<u64>, Option<usize>),
        window: u32,
        until_live: bool,
    ) {
        let mut chain = Chain::new(Query::All, Order::Key, false, until_live, None);
        chain.named = true;
        // The number may be that of a group.
        chain.shared = requirement.is_some();
        self.chains.push(chain);
        let ask = Ask::Follow {
            query: Query::All,
            order: Order::Key,
            window,
            cursor: None,
            only_new: false,
            until_live,
            requirement,
            name,
            group: None,
        };
        self.ask_to_follow(place, self.chains.len() - 1, ask);
    }

    pub(crate) fn share(&mut self, place: usize, share: Share, window: u32, until_live: bool) {
        let mut chain = Chain::new(Query::All, Order::Key, false, until_live, None);
        (chain.named, chain.shared) = (true, true);
        self.chains.push(chain);
        // A member's terms name it as a group.
        let terms = share.terms.map(|terms| Terms {
            is_group: true,
            ..terms.of_follow()
        });
        let ask = Ask::Follow {
            query: Query::All,
            order: Order::Key,
            window,
            cursor: None,
            only_new: false,
            until_live,
            requirement: None,
            name: None,
            group: Some(Share { terms, ..share }),
        };
        self.ask_to_follow(place, self.chains.len() - 1, ask);
    }

    fn stop(&mut self, place: usize, rng: &mut Rng) {
        let goes_on = |doing: &Doing| {
            matches!(
                doing,
                Doing::Follow(_)
                    | Doing::Subscribe
                    | Doing::Require(_)
                    | Doing::Use(_)
                    | Doing::List { .. }
                    | Doing::Bundle
            )
        };
        let Some(client) = &self.clients[place] else { return };
        let stopping: Vec<u64> = client
            .doing
            .values()
            .filter_map(|doing| {
                if let Doing::Stop(which) = doing {
                    Some(*which)
                } else {
                    None
                }
            })
            .collect();
        let Some(which) = self
            .one_of(place, rng, goes_on)
            .filter(|which| !stopping.contains(which))
        else {
            return;
        };
        self.ask(place, Ask::Stop(which), Doing::Stop(which));
    }

    fn release_some(&mut self, place: usize, rng: &mut Rng) {
        let Some(client) = &mut self.clients[place] else { return };
        let count = rng.between(1, 4) as usize;
        let mut batch = Vec::new();
        if rng.percent(15) {
            return self.give_back_some(place, rng, count);
        }
        if rng.percent(15) {
            return self.release_mapped(place, rng, count);
        }
        for _ in 0..count.min(client.held.len()) {
            let held = client.held.swap_remove(rng.below(client.held.len()));
            batch.push((held.holding, held.sequence));
        }
        if rng.percent(1) {
            batch.push((rng.below(5) as u32, 1_000_000 + rng.below(20) as u64));
        }
        if !batch.is_empty() {
            self.archive(place, &batch, rng);
            self.ask(place, Ask::Release(batch), Doing::Loose);
        }
    }

    fn forget(&mut self, place: usize, rng: &mut Rng) {
        let aim = if rng.percent(50) {
            Aim::Key(rng.below(self.universe.keys.len()))
        } else {
            Aim::Query(self.query(rng))
        };
        self.ask(place, Ask::Forget(aim), Doing::Withdraw);
    }

    /// Releases some, and continues to read them.
    fn release_mapped(&mut self, place: usize, rng: &mut Rng, count: usize) {
        let Some(client) = &mut self.clients[place] else { return };
        let is_wrong = rng.percent(2);
        let unreleased = client.held.iter_mut().filter(|held| is_wrong || !held.is_released);
        let mut batch = Vec::new();
        for held in unreleased.take(count) {
            held.is_released = true;
            batch.push((held.holding, held.sequence));
        }
        if !batch.is_empty() {
            self.archive(place, &batch, rng);
            self.ask(place, Ask::ReleaseMapped(batch), Doing::Loose);
        }
    }

    /// In runs of archivers: objects that are about to be released are archived, for their requirement.
    pub(crate) fn archive(&mut self, place: usize, batch: &[(u32, u64)], rng: &mut Rng) {
        if self.plan.archives == 0 || !rng.percent(self.plan.archives) {
            return;
        }
        for name in 0..self.terms.len() {
            let sequences = batch.iter().map(|&(_, sequence)| sequence).collect();
            let fails = rng.percent(5);
            self.ask(place, Ask::Archived { name, sequences, fails }, Doing::Withdraw);
        }
    }

    /// Returns, without a release, objects delivered by named requirements, or by queries: these have no claim.
    fn give_back_some(&mut self, place: usize, rng: &mut Rng, count: usize) {
        let Some(client) = &mut self.clients[place] else { return };
        let mut batch = Vec::new();
        for _ in 0..count.min(client.held.len()) {
            let at = rng.below(client.held.len());
            let Some(chain) = client.held[at].chain.filter(|&chain| self.chains[chain].wish.is_none()) else {
                continue;
            };
            let held = client.held.swap_remove(at);
            self.chains[chain].gives_back(held.sequence);
            batch.push((held.holding, held.sequence));
        }
        if !batch.is_empty() {
            let back = [Back::Unread, Back::Undone][rng.below(2)];
            self.ask(place, Ask::GiveBack(batch, back), Doing::Loose);
        }
    }

    fn give_back_segment(&mut self, place: usize, rng: &mut Rng) {
        let Some(client) = &mut self.clients[place] else { return };
        let idle: Vec<u32> = client
            .leased
            .iter()
            .filter(|(_, one)| one.busy.is_empty())
            .map(|(&number, _)| number)
            .collect();
        let others = self.model.segments_of_others(client.id);
        let any = rng.percent(3).then(|| rng.pick(&others).unwrap_or(1_000_000));
        if let Some(segment) = any.or_else(|| rng.pick(&idle)) {
            client.leased.remove(&segment);
            self.ask(place, Ask::Return(segment), Doing::Loose);
        }
    }

    fn nonsense(&mut self, place: usize, rng: &mut Rng) {
        // An invalid message ends a link at its first end.
        let is_linked = self.clients[place].as_ref().is_some_and(|client| client.road.is_some());
        match rng.below(4) {
            0 if !is_linked => self.ask(place, Ask::Garbage { fatal: true }, Doing::Loose),
            0 | 1 => self.ask(place, Ask::Garbage { fatal: false }, Doing::Loose),
            2 => self.ask(place, Ask::Stop(77_777), Doing::Loose),
            _ => self.ask(
                place,
                Ask::Hello {
                    wrong_version: false,
                    offer_timeout_ms: None,
                    visits: false,
                    component: None,
                },
                Doing::Hello,
            ),
        };
    }
}

fn free_slot(client: &mut Client, rng: &mut Rng) -> Option<(u32, u32, u64)> {
    let segments: Vec<u32> = client.leased.keys().copied().collect();
    let segment = rng.pick(&segments)?;
    let leased = client.leased.get_mut(&segment)?;
    let slot = leased.take()?;
    Some((segment, slot, leased.slot_bytes))
}

fn timeout(rng: &mut Rng) -> Option<u64> {
    [None, None, Some(0), Some(rng.between(1, 50))][rng.below(4)]
}

fn stays(rng: &mut Rng) -> Stays {
    match rng.below(10) {
        8 | 9 => Stays::By(rng.below(4) as u32),
        0 => Stays::AsSchemaSays,
        1 | 2 => Stays::UntilWithdrawn,
        count @ 3..=5 => Stays::UntilReleased(count as u32 - 2),
        _ if rng.percent(2) => Stays::For(0),
        _ => Stays::For(rng.between(1, 60) as u32),
    }
}

fn order(rng: &mut Rng) -> Order {
    [Order::Key, Order::Key, Order::Size, Order::Number][rng.below(4)]
}
