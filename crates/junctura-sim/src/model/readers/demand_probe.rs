//! Wanted objects, and the markers of offers that nothing wanted.

use junctura_model::Code;
use junctura_wire::body::events;

use crate::clients::requests::{Aim, Offer};
use crate::model::{Going, Model, Number, Tombstone, Want};

impl Model {
    /// Whether a key was visible, and has a tombstone.
    pub(in crate::model) fn is_gone(&self, key: usize) -> bool {
        self.tombstones
            .iter()
            .any(|stone| stone.key == key && stone.sequence > 0)
    }

    /// Whether an offer of a key is remembered that nothing wanted.
    pub(in crate::model) fn is_declined(&self, key: usize) -> bool {
        self.tombstones
            .iter()
            .any(|stone| stone.key == key && stone.sequence == 0)
    }

    /// Counts the interests that would receive an object.
    pub(in crate::model) fn count_wanting(&self, key: usize, size: Option<i64>) -> u64 {
        let one = &self.universe.keys[key];
        let wants = |going: &&Going| match going {
            Going::Demand { aim: Aim::Key(aim), .. } => *aim == key,
            Going::Demand {
                aim: Aim::Query(query), ..
            } => query.matches(one, size),
            Going::Follow(follow) => follow.via.is_none() && !follow.is_over && follow.query.matches(one, size),
            Going::Require(one_of_them) => !one_of_them.broken && one_of_them.terms.query.matches(one, size),
            _ => false,
        };
        self.going.values().filter(wants).count() as u64
    }

    pub(in crate::model) fn asked_if_wanted(
        &mut self,
        client: u32,
        number: u64,
        (key, size): (usize, Option<i64>),
        declines: bool,
    ) {
        let count = self.count_wanting(key, size);
        if count == 0 && declines {
            self.decline(client, (key, size));
        }
        self.want(client, number, Want::Done(count));
    }

    pub(in crate::model) fn decline_offer(&mut self, client: u32, number: u64, offer: &Offer) {
        self.decline(client, (offer.key, offer.size));
        self.fail(client, number, Some(Code::NotWanted));
    }

    fn decline(&mut self, client: u32, (key, size): (usize, Option<i64>)) {
        self.totals.declined += 1;
        self.tell_of_declined(events::DECLINED, client, key, size);
        if self.visible.contains_key(&key) || self.is_gone(key) {
            return;
        }
        self.tombstones.retain(|stone| stone.key != key);
        self.tombstones.push_back(Tombstone {
            key,
            sequence: 0,
            buried: self.now,
            size,
        });
        self.limit_tombstones(key);
    }

    pub(in crate::model) fn refuse_declined(&mut self, client: u32, number: u64, key: usize) {
        let size = self
            .tombstones
            .iter()
            .find(|stone| stone.key == key)
            .and_then(|stone| stone.size);
        self.tell_of_declined(events::MISSED, client, key, size);
        self.fail(client, number, Some(Code::NotWanted));
    }

    fn tell_of_declined(&mut self, event: u32, client: u32, key: usize, size: Option<i64>) {
        let one = &self.universe.keys[key];
        let is_told = |going: &Going| matches!(going, Going::Subscribe { query, events } if events & event != 0 && query.matches(one, size));
        let told: Vec<Number> = self
            .going
            .iter()
            .filter(|(_, going)| is_told(going))
            .map(|(&number, _)| number)
            .collect();
        for (reader, request) in told {
            let want = Want::Event {
                event,
                sequence: Some(0),
                client: Some(client),
                name: None,
                bundle: None,
            };
            self.want(reader, request, want);
        }
    }
}
