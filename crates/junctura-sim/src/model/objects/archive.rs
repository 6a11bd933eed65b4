//! Objects that are put into a store, and offers that wait for that.

use junctura_model::Code;
use junctura_wire::body::events;

use crate::clients::requests::Offer;
use crate::model::{Checked, Going, Model, NOBODY, Number, Want};

impl Model {
    /// A durable offer has made its object visible, or completed the bundle of this request.
    pub(in crate::model) fn await_archive(
        &mut self,
        client: u32,
        number: u64,
        bundle: Option<u64>,
        offer: &Offer,
        sequence: u64,
    ) {
        if let Some(through) = bundle {
            if offer.durable
                && sequence > 0
                && let Some(&Going::Bundle(which)) = self.going.get(&(client, through))
            {
                self.answer_completing(client, number, which, 0);
            }
        } else if offer.durable {
            let timeout = self.clients.get(&client).and_then(|state| state.offer_timeout);
            let deadline = timeout.map(|timeout| self.now + timeout);
            self.going
                .insert((client, number), Going::Durable { sequence, deadline });
            *self.went_on.entry(client).or_default() += 1;
        }
    }

    pub(in crate::model) fn archived(&mut self, client: u32, number: u64, name: usize, sequences: &[u64], fails: bool) {
        let Some(Going::Require(one)) = self.going.get(&(NOBODY, name as u64)) else {
            return self.fail(client, number, Some(Code::NotFound));
        };
        let owed: Vec<u64> = sequences
            .iter()
            .copied()
            .filter(|sequence| one.owed.contains_key(sequence))
            .collect();
        let (event, answer) = if fails {
            (events::UNARCHIVED, Want::Failed(Some(Code::Io)))
        } else {
            (events::ARCHIVED, Want::Done(0))
        };
        for &sequence in &owed {
            self.tell(event, sequence);
            self.object_mut(sequence).is_archived |= !fails;
            if let Some(offer) = self.durable_offer_of(sequence) {
                self.end(offer);
                self.want(offer.0, offer.1, answer.clone());
            }
        }
        self.note_members(&owed, fails);
        self.want(client, number, Want::Done(owed.len() as u64));
    }

    fn durable_offer_of(&self, of: u64) -> Option<Number> {
        let mut all = self.going.iter();
        all.find_map(|(&number, going)| {
            matches!(going, Going::Durable { sequence, .. } if *sequence == of).then_some(number)
        })
    }

    pub(in crate::model) fn count_requests(&mut self) {
        self.went_on.clear();
        for (client, _) in self.going.keys() {
            *self.went_on.entry(*client).or_default() += 1;
        }
    }

    /// Whether the failure of a durable offer is allowed: its object is not archived, and will not be, which is checked
    /// after all effects of the event; it has timed out; its client exceeds a limit.
    pub(in crate::model) fn durable_failed(&mut self, number: Number, code: Option<Code>) -> bool {
        let Some(&(Going::Durable { deadline, .. } | Going::Lasting { deadline, .. })) = self.going.get(&number) else {
            return false;
        };
        let may_be = match code {
            Some(Code::Io) => {
                match self.going.get(&number) {
                    Some(&Going::Durable { sequence, .. }) => self.forsaken.push(sequence),
                    Some(&Going::Lasting { root, .. }) => self.asker_gave_up(root),
                    _ => {}
                }
                true
            }
            Some(Code::Timeout) => deadline.is_some_and(|deadline| deadline <= self.now),
            Some(Code::LimitExceeded) => {
                let went_on = self.went_on.get(&number.0).copied().unwrap_or_default();
                went_on > self.rules.requests_per_client
            }
            _ => false,
        };
        if may_be {
            self.end(number);
        }
        may_be
    }

    /// Checks that exactly the requests that wait for an archive that will not be made get an answer, within their
    /// timeouts.
    pub(in crate::model) fn check_durable(&self) -> Checked {
        // With a tick one requirement may have ceased to be owed it, and another be owed it then.
        let may_still = |&&sequence: &&u64| self.object(sequence).owed > 0 && !self.unrequired.contains(&sequence);
        if let Some(owed) = self.forsaken.iter().find(may_still) {
            return Err(format!("{owed} may still be archived, but its offer has failed"));
        }
        for (number, going) in &self.going {
            if let &Going::Lasting { root, deadline, .. } = going
                && deadline.is_some_and(|deadline| deadline <= self.now)
            {
                return Err(format!(
                    "{number:?} has waited long enough until bundle {root} is archived"
                ));
            }
            let &Going::Durable { sequence, deadline } = going else {
                continue;
            };
            if self.object(sequence).owed == 0 {
                return Err(format!(
                    "offer {number:?} waits until {sequence} is archived, which no client does"
                ));
            }
            if deadline.is_some_and(|deadline| deadline <= self.now) {
                return Err(format!(
                    "offer {number:?} has waited long enough until {sequence} is archived"
                ));
            }
        }
        Ok(())
    }
}
