//! Knowing that all is in effect.

use std::collections::BTreeSet;

use super::{Checked, Going, Model, Number, Want};
use crate::world::recorder::Recorder;

impl Model {
    pub(super) fn sync(&mut self, client: u32, number: u64) {
        let state = self.clients.get(&client);
        let offers: BTreeSet<u64> = state.map_or_else(BTreeSet::new, |state| {
            state.waiting.iter().map(|offer| offer.number).collect()
        });
        if offers.is_empty() {
            self.want(client, number, Want::Done(0));
        } else {
            self.go_on(client, number, Going::Sync(offers));
        }
    }

    /// A sync is answered in the event in which the last offer that it waits for is, and after that.
    pub(super) fn answer_syncs(&mut self, recorder: &Recorder) -> Checked {
        let waits = |client: u32, offers: &BTreeSet<u64>| {
            let state = self.clients.get(&client);
            state.is_some_and(|state| state.waiting.iter().any(|offer| offers.contains(&offer.number)))
        };
        let due: Vec<(Number, BTreeSet<u64>)> = self
            .going
            .iter()
            .filter_map(|(&number, going)| match going {
                Going::Sync(offers) if !waits(number.0, offers) => Some((number, offers.clone())),
                _ => None,
            })
            .collect();
        for (number, offers) in due {
            let said = |request: u64| {
                let is_it = |(client, about, _): &(u32, u64, _)| (*client, *about) == (number.0, request);
                recorder.said.iter().position(is_it)
            };
            let answered = said(number.1);
            if answered.is_some() && offers.iter().any(|&offer| said(offer) > answered) {
                return Err(format!("sync {number:?} is answered before an offer that it waits for"));
            }
            self.end(number);
            self.want(number.0, number.1, Want::Done(0));
        }
        // A second answer, of a durable offer, may come before or after that of the sync.
        let clients = &self.clients;
        for ((client, _), going) in &mut self.going {
            if let (Going::Sync(offers), Some(state)) = (going, clients.get(client)) {
                offers.retain(|&offer| state.waiting.iter().any(|waiting| waiting.number == offer));
            }
        }
        Ok(())
    }
}
