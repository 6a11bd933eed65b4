//! After an event: is an answer due that was not sent, and do the sums agree?

use junctura_model::Code;
use junctura_pool::core::PoolStat;

use super::memory::Verdict;
use super::{Checked, Fate, Going, Model, Number};
use crate::world::recorder::Recorder;

impl Model {
    pub(super) fn finish(&mut self, recorder: &Recorder) -> Checked {
        self.put_answers_off()?;
        self.put_news_off();
        if let Some((client, request, want)) = self.wants.iter().find(|(client, _, want)| !self.is_moot(*client, want))
        {
            return Err(format!(
                "client {client}, request {request}: {want:?} is due and was not sent"
            ));
        }
        for client in &self.leaving {
            self.clients.remove(client);
        }
        self.wind_clocks();
        self.check_departing()?;
        self.check_memory(recorder)?;
        self.check_disk()?;
        self.check_room()?;
        self.check_waiting()?;
        self.check_patience()?;
        self.check_durable()?;
        self.check_lasting()?;
        let follows: Vec<Number> = self
            .going
            .iter()
            .filter(|(_, going)| matches!(going, Going::Follow(_)))
            .map(|(&number, _)| number)
            .collect();
        follows.into_iter().try_for_each(|number| self.check_follow(number))
    }

    fn check_memory(&self, recorder: &Recorder) -> Checked {
        if self.used_bytes() > self.rules.budget_bytes {
            return Err(format!("{} bytes are in use", self.used_bytes()));
        }
        if !self.segments.keys().eq(recorder.segment_bytes.keys()) {
            let there: Vec<_> = recorder.segment_bytes.keys().collect();
            let due: Vec<_> = self.segments.keys().collect();
            return Err(format!("segments {there:?} are there, due are {due:?}"));
        }
        Ok(())
    }

    /// No request waits for an existing object.
    fn check_waiting(&mut self) -> Checked {
        self.put_first_lease_last(self.passing.is_over);
        let in_vain = self.leases.iter().find(|lease| {
            matches!(self.going.get(lease), Some(&Going::Lease { bytes, staged: true, .. })
                if self.is_in_vain(bytes, self.pinned_bytes()))
        });
        if let Some((client, request)) = in_vain {
            return Err(format!("lease {request} of client {client} waits in vain"));
        }
        let first = self.first_lease();
        let fits = self.leases.iter().find_map(|lease| match self.going.get(lease) {
            Some(&Going::Lease { bytes, .. }) if self.fits(bytes) => Some((lease, bytes)),
            _ => None,
        });
        if let (Some(first), Some((lease, bytes))) = (first, fits)
            && (first == *lease || self.may_pass(first))
        {
            let (client, request) = lease;
            return Err(format!(
                "lease {request} of client {client} waits, and there is memory for {bytes} bytes"
            ));
        }
        for (&client, state) in &self.clients {
            if let Some(first) = state.waiting.front() {
                let verdict = self.verdict_of(client, first.bundle, &first.offer);
                // One that can only fail gets its answer in its turn; at once, where only a bundle's end could help.
                let is_hopeless = first.bundle.is_some() && verdict == Verdict::Fails(Some(Code::PoolFull));
                if verdict == Verdict::Visible || is_hopeless {
                    return Err(format!(
                        "offer {} of client {client} waits; it should be: {verdict:?}",
                        first.number
                    ));
                }
            }
        }
        Ok(())
    }

    /// A follow with an open window has been given all there is.
    fn check_follow(&mut self, number: Number) -> Checked {
        let may_hold = self.held_by(number.0) < self.rules.held_per_client;
        let is_open = |follow: &super::Following| follow.in_flight < follow.window && may_hold;
        if matches!(self.going.get(&number), Some(Going::Follow(follow)) if is_open(follow)) && !self.is_untold(number)
        {
            self.pass_over(number, None)?;
        }
        let Some(Going::Follow(follow)) = self.going.get(&number) else {
            return Ok(());
        };
        if self.is_untold(number) {
            return Ok(());
        }
        let (client, request) = number;
        if !follow.missed.is_empty() {
            return Err(format!(
                "follow {request} of client {client} gets no gap for {:?}",
                follow.missed
            ));
        }
        if follow.joined.is_some() {
            return self.check_member(number, follow, is_open(follow));
        }
        if follow.is_closing && follow.live.is_empty() {
            return Err(format!("follow {request} of client {client} is over, without a reply"));
        }
        if follow.first.is_empty() && !follow.said_live {
            return Err(format!(
                "follow {request} of client {client} gets no notice that it is live"
            ));
        }
        if is_open(follow) && !(follow.first.is_empty() && follow.live.is_empty()) {
            return Err(format!(
                "follow {request} of client {client} makes no progress: {:?} and {:?} wait",
                follow.first, follow.live
            ));
        }
        Ok(())
    }

    /// The earliest time at which something is due.
    #[must_use]
    pub fn deadline(&self) -> Option<u64> {
        let requests = self.going.values().filter_map(|going| match going {
            Going::Demand { deadline, .. }
            | Going::Lease { deadline, .. }
            | Going::Withdraw { deadline, .. }
            | Going::Durable { deadline, .. }
            | Going::Lasting { deadline, .. } => *deadline,
            _ => None,
        });
        let offers = self
            .clients
            .values()
            .flat_map(|state| state.waiting.iter().filter_map(|offer| offer.deadline));
        let tombstones = self
            .tombstones
            .iter()
            .map(|stone| stone.buried + self.rules.tombstone_age_ns);
        let times = self
            .visible
            .values()
            .filter_map(|&sequence| self.object(sequence).until);
        let lapses = self.going.values().filter_map(|going| match going {
            Going::Require(one) => one.lapses.map(|(at, _)| at),
            _ => None,
        });
        requests
            .chain(offers)
            .chain(tombstones)
            .chain(times)
            .chain(lapses)
            .chain(self.drain_deadline())
            .chain(self.last_follows_due())
            .chain(self.bundle_deadlines())
            .chain(self.disk.paused_until())
            .min()
    }

    /// Compares the core's own figures with the model.
    ///
    /// # Errors
    /// The first that differs.
    pub fn compare(&self, stat: &PoolStat) -> Checked {
        let visible_bytes: u64 = self
            .visible
            .values()
            .map(|&sequence| self.object(sequence).offer.length)
            .sum();
        let standing = self.going.values().filter(|going| {
            !matches!(
                going,
                Going::Lease { .. }
                    | Going::Withdraw { .. }
                    | Going::List { .. }
                    | Going::Drain
                    | Going::Sync(_)
                    | Going::Durable { .. }
                    | Going::Lasting { .. }
                    | Going::Use(_)
                    | Going::Bundle(_)
            )
        });
        let count = |is_it: fn(&Going) -> bool| self.going.values().filter(|going| is_it(going)).count() as u64;
        let slots: u64 = self
            .segments
            .values()
            .map(|segment| segment.occupied.len() as u64)
            .sum();
        let pairs = [
            ("sequence", stat.sequence, self.sequence),
            ("objects.visible", stat.objects.visible, self.visible.len() as u64),
            ("objects.visible_bytes", stat.objects.visible_bytes, visible_bytes),
            (
                "objects.tombstones",
                stat.objects.tombstones,
                self.tombstones.len() as u64,
            ),
            ("objects.held", stat.objects.held, self.held.len() as u64),
            ("totals.offered", stat.totals.offered, self.objects.len() as u64),
            ("totals.superseded", stat.totals.superseded, self.totals.superseded),
            ("totals.withdrawn", stat.totals.withdrawn, self.totals.withdrawn),
            ("totals.expired", stat.totals.expired, self.totals.expired),
            (
                "totals.dropped_archived",
                stat.totals.dropped_archived,
                self.totals.dropped_archived,
            ),
            ("totals.declined", stat.totals.declined, self.totals.declined),
            ("totals.broken", stat.totals.broken, self.totals.broken),
            ("totals.released", stat.totals.released, self.totals.released),
            ("totals.delivered", stat.totals.delivered, self.totals.delivered),
            ("memory.used_bytes", stat.memory.used_bytes, self.used_bytes()),
            ("memory.inline_bytes", stat.memory.inline_bytes, self.inline_bytes),
            (
                "spill.used_bytes",
                stat.spill.as_ref().map_or(0, |spill| spill.used_bytes),
                self.disk.bytes(),
            ),
            ("memory.segments", stat.memory.segments, self.segments.len() as u64),
            ("memory.slots_occupied", stat.memory.slots_occupied, slots),
            (
                "memory.leases_waiting",
                stat.memory.leases_waiting,
                count(|going| matches!(going, Going::Lease { .. })),
            ),
            (
                "interests.standing",
                stat.interests.standing,
                (standing.count() + self.met_demands()) as u64,
            ),
            (
                "interests.requirements",
                stat.interests.requirements,
                count(|going| matches!(going, Going::Require(_))),
            ),
            (
                "interests.withdrawals",
                stat.interests.withdrawals,
                count(|going| matches!(going, Going::Withdraw { .. })),
            ),
            ("clients_connected", stat.clients_connected, self.clients.len() as u64),
        ];
        match pairs.iter().find(|(_, said, due)| said != due) {
            Some((name, said, due)) => Err(format!("stat: {name} is {said}, due is {due}")),
            None => self.compare_bundles(stat),
        }
    }

    fn compare_bundles(&self, stat: &PoolStat) -> Checked {
        let said = &stat.bundles;
        let said = [
            said.open,
            said.remembered,
            said.staged,
            said.staged_bytes,
            said.completed + said.aborted,
        ];
        let figures = self.bundle_figures();
        match figures.iter().zip(said).find(|((_, due), said)| due != said) {
            Some(((name, due), said)) => Err(format!("stat: {name} is {said}, due is {due}")),
            None => self.compare_named(stat).and_then(|()| self.compare_awaited(stat)),
        }
    }

    /// Whether a version was superseded.
    #[must_use]
    pub fn fate(&self, sequence: u64) -> Fate {
        self.object(sequence).fate
    }

    /// Nothing is left but tombstones.
    ///
    /// # Errors
    /// What is left.
    pub fn is_empty(&self) -> Checked {
        let left = [
            ("visible objects", self.visible.len()),
            ("payloads", self.unfreed.len()),
            ("deliveries", self.held.len()),
            ("requests", self.going.len()),
            ("segments", self.segments.len()),
            ("inline bytes", self.inline_bytes as usize),
            ("bytes in the file tier", self.disk.bytes() as usize),
        ];
        match left.iter().find(|(_, count)| *count > 0) {
            Some((what, count)) => Err(format!("{count} {what} are left in the model")),
            None => Ok(()),
        }
    }
}
