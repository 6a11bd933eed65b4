//! The end of a run: everything is read and released, everyone leaves, and nothing may be left.

use crate::clients::client::Doing;
use crate::clients::reader::Chain;
use crate::clients::requests::{Ask, Share};
use crate::run::rng::Rng;
use crate::run::universe::Query;
use crate::world::{Checked, World, note};

/// Rounds of reading and writing after which a run that still talks is stuck.
const ROUNDS_MAX: usize = 10_000;

impl World {
    /// Ends the run.
    ///
    /// # Errors
    /// What is lost, or left.
    pub fn end(&mut self, rng: &mut Rng) -> Checked {
        note!(self, "the run ends: everything is read and released");
        self.come_to_rest(rng)?;
        self.read_requirements();
        self.come_to_rest(rng)?;
        self.read_named();
        self.come_to_rest(rng)?;
        self.model.check_named()?;
        self.note_what_is_read();
        self.chains
            .iter_mut()
            .try_for_each(|chain: &mut Chain| chain.check(&self.model))?;
        self.wishes.iter().try_for_each(|wish| wish.check(&self.model))?;
        self.shares.check(&self.model, &self.terms)?;
        self.model.compare(&self.core.stat())?;
        if rng.percent(50) {
            // Offers that waited for memory may follow.
            self.clear_pool(rng)?;
        }
        self.everyone_leaves(rng)?;
        self.orphans_go(rng)?;
        self.clear_pool(rng)?;
        self.nothing_is_left()?;
        self.tombstones_go(rng)
    }

    /// Everyone reads, releases and answers until nothing is on its way.
    pub(crate) fn come_to_rest(&mut self, rng: &mut Rng) -> Checked {
        self.rests = true;
        let rested = self.everybody_rests(rng);
        self.rests = false;
        rested
    }

    fn everybody_rests(&mut self, rng: &mut Rng) -> Checked {
        for _ in 0..ROUNDS_MAX {
            let mut is_quiet = true;
            for place in 0..self.clients.len() {
                self.release_all(place);
                while self.clients[place]
                    .as_ref()
                    .is_some_and(|client| client.dead || !client.up.is_empty())
                {
                    is_quiet = false;
                    self.serve(place, rng)?;
                }
                while self.receive(place, rng, false)? {
                    is_quiet = false;
                }
            }
            if self.is_behind() {
                is_quiet = false;
                self.let_go(rng)?;
            }
            while !self.recorder.jobs.is_empty() {
                is_quiet = false;
                self.write_spilled(true, rng)?;
            }
            if is_quiet {
                return Ok(());
            }
        }
        Err("the clients and the server never become idle".to_owned())
    }

    pub(crate) fn release_all(&mut self, place: usize) {
        let Some(client) = self.clients[place]
            .as_mut()
            .filter(|client| !client.leaving && !client.dead)
        else {
            return;
        };
        let batch: Vec<_> = client
            .held
            .drain(..)
            .map(|held| (held.holding, held.sequence))
            .collect();
        if !batch.is_empty() {
            self.ask(place, Ask::Release(batch), Doing::Loose);
        }
    }

    /// Reads the objects that a requirement is still owed through a follow.
    pub(crate) fn read_requirements(&mut self) {
        for place in 0..self.clients.len() {
            let Some(client) = &self.clients[place] else { continue };
            let id = client.id;
            let read: Vec<usize> = self
                .chains
                .iter()
                .filter(|chain| chain.session.as_ref().is_some_and(|session| session.client == id))
                .filter_map(|chain| chain.wish)
                .collect();
            let unread: Vec<u64> =
                client.requests(|doing| matches!(doing, Doing::Require(wish) if !read.contains(wish)));
            if client_is_leaving(self, place) {
                continue;
            }
            for requirement in unread {
                self.follow_through(place, requirement, 4);
            }
        }
    }

    /// Reads the objects that named requirements are owed, by the first client.
    pub(crate) fn read_named(&mut self) {
        let is_there = |place: &usize| !client_is_leaving(self, *place);
        let Some(place) = (0..self.clients.len()).find(is_there) else {
            return;
        };
        for name in 0..self.terms.len() {
            match self.model.is_unread(name) {
                Some(true) => self.share(place, Share { name, terms: None }, 4, false),
                Some(false) => self.follow_named(place, (None, Some(name)), 4, false),
                None => {}
            }
        }
    }

    /// A limit may have refused the follow: then the requirement's promise is not checked.
    fn note_what_is_read(&mut self) {
        for wish in &mut self.wishes {
            wish.read = false;
        }
        for chain in self.chains.iter().filter(|chain| chain.session.is_some()) {
            if let Some(wish) = chain.wish {
                self.wishes[wish].read = true;
            }
        }
    }

    fn everyone_leaves(&mut self, rng: &mut Rng) -> Checked {
        for place in 0..self.clients.len() {
            if self.clients[place].is_none() {
                continue;
            }
            if rng.percent(50) && !client_is_leaving(self, place) {
                self.ask(place, Ask::Goodbye, Doing::Loose);
            } else {
                self.die(place, rng);
            }
        }
        self.come_to_rest(rng)?;
        if self.clients.iter().any(Option::is_some) {
            return Err("a client is still connected".to_owned());
        }
        Ok(())
    }

    /// Lets time pass until bundles that no client completed are removed.
    fn orphans_go(&mut self, rng: &mut Rng) -> Checked {
        while let Some(at) = self.model.next_orphan() {
            self.pass_until(at, rng)?;
        }
        Ok(())
    }

    /// One more client takes everything out.
    fn clear_pool(&mut self, rng: &mut Rng) -> Checked {
        self.clients.push(None);
        let place = self.clients.len() - 1;
        self.be_welcomed(place, rng)?;
        for name in 0..self.terms.len() {
            self.ask(place, Ask::Retract(name), Doing::Withdraw);
        }
        self.come_to_rest(rng)?;
        if self.model.is_draining() {
            // Nothing is owed by name now: only a visitor is welcomed, which may do all.
            self.ask(place, Ask::Goodbye, Doing::Loose);
            self.come_to_rest(rng)?;
            self.be_welcomed(place, rng)?;
        }
        let withdraw = Ask::WithdrawAll {
            query: Query::All,
            timeout_ms: None,
            force: true,
        };
        self.ask(place, withdraw, Doing::Withdraw);
        self.come_to_rest(rng)?;
        self.ask(place, Ask::Goodbye, Doing::Loose);
        self.come_to_rest(rng)
    }

    /// Connects until a client is welcomed.
    fn be_welcomed(&mut self, place: usize, rng: &mut Rng) -> Checked {
        while !self.clients[place].as_ref().is_some_and(|client| client.welcomed) {
            if self.clients[place].is_none() {
                self.join(place, rng)?;
            }
            self.come_to_rest(rng)?;
            if self.clients[place].as_ref().is_some_and(|client| client.numbers == 0) {
                self.die(place, rng);
                self.come_to_rest(rng)?;
            }
        }
        Ok(())
    }

    fn nothing_is_left(&self) -> Checked {
        self.model.is_empty()?;
        let stat = self.core.stat();
        self.model.compare(&stat)?;
        let (objects, memory, interests) = (&stat.objects, &stat.memory, &stat.interests);
        let left = [
            ("visible objects", objects.visible),
            ("kept versions", objects.kept),
            ("deliveries", objects.held),
            ("bytes", memory.used_bytes),
            ("segments", memory.segments),
            ("slots", memory.slots_occupied),
            ("leases", memory.leases_waiting),
            ("interests", interests.standing),
            ("selectors without an index", interests.unindexed),
            ("requirements", interests.requirements),
            ("withdraws", interests.withdrawals),
            ("bundles", stat.bundles.open),
            ("staged objects", stat.bundles.staged),
            ("clients", stat.clients_connected),
            ("segments of the world", self.recorder.segments.len() as u64),
            ("payloads in the file", self.recorder.file.len() as u64),
            ("payloads to be written", self.recorder.jobs.len() as u64),
        ];
        match left.iter().find(|(_, count)| *count > 0) {
            Some((what, count)) => Err(format!("{count} {what} are left")),
            None if !self.core.is_deserted() => Err("the pool is empty and does not know it".to_owned()),
            None => Ok(()),
        }
    }

    fn tombstones_go(&mut self, rng: &mut Rng) -> Checked {
        let age = self.plan.rules.tombstone_age_ns.max(crate::model::DISK_PAUSE);
        self.pass_until(self.now + age, rng)?;
        let (stat, deadline) = (self.core.stat(), self.core.deadline());
        if stat.objects.tombstones > 0 || deadline.is_some() {
            return Err(format!(
                "{} tombstones are left, and a deadline: {deadline:?}",
                stat.objects.tombstones
            ));
        }
        Ok(())
    }
}

fn client_is_leaving(world: &World, place: usize) -> bool {
    world.clients[place]
        .as_ref()
        .is_none_or(|client| client.leaving || client.dead)
}
