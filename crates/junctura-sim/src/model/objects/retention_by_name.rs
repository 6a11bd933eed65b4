//! Objects that are retained for names: they wait for absent names. For existing ones, requirements keep them.

use junctura_model::Code;
use junctura_pool::core::PoolStat;

use crate::clients::requests::{NAMES, Offer, Stays, requirement_name};
use crate::model::{Checked, Fate, Model, Want};
use crate::run::universe;

impl Model {
    pub(in crate::model) fn number_names(&mut self, client: u32, number: u64, bits: u8) {
        if bits == 0 {
            return self.fail(client, number, Some(Code::InvalidArgument));
        }
        let Some(state) = self.clients.get_mut(&client) else {
            return;
        };
        let known = state.consumers.iter().position(|&one| one == bits);
        let place = known.unwrap_or_else(|| {
            state.consumers.push(bits);
            state.consumers.len() - 1
        });
        self.want(client, number, Want::Done(place as u64));
    }

    /// An offer with the names for which its client gave a number, if it did.
    pub(in crate::model) fn named(&self, client: u32, offer: &Offer) -> Offer {
        let mut offer = offer.clone();
        if let (Stays::By(number), Some(state)) = (offer.stays, self.clients.get(&client))
            && let Some(&bits) = state.consumers.get(number as usize)
        {
            offer.stays = Stays::ByNames(bits);
        }
        offer
    }

    pub(in crate::model) fn default_stay(&self, key: usize) -> Stays {
        let key = &self.universe.keys[key];
        universe::default_stay(key.schema, key.dataset)
    }

    /// Bits of the existing names.
    pub(in crate::model) fn standing_names(&self) -> u8 {
        let names = self.names().into_iter().filter(|&named| !self.is_beginning(named));
        names.fold(0, |bits, (_, name)| bits | 1 << name)
    }

    /// Takes a name: no object waits for it any longer.
    pub(in crate::model) fn come(&mut self, name: usize) {
        let later = self.comes_later(name);
        let visible = self.objects.iter_mut().filter(|object| object.fate == Fate::Visible);
        for object in visible.filter(|object| !later.contains(&object.sequence)) {
            if object.absent & 1 << name != 0 {
                object.absent &= !(1 << name);
                if object.absent == 0 {
                    object.releases_left = Some(0);
                }
            }
        }
    }

    pub(in crate::model) fn compare_awaited(&self, stat: &PoolStat) -> Checked {
        let due = (0..NAMES).filter_map(|name| {
            let of_name = |&&sequence: &&u64| self.object(sequence).absent & 1 << name != 0;
            let objects = self.visible.values().filter(of_name);
            let lengths: Vec<u64> = objects.map(|&sequence| self.object(sequence).offer.length).collect();
            let sums = (lengths.len() as u64, lengths.iter().sum::<u64>());
            (sums.0 > 0).then(|| (requirement_name(name), sums.0, sums.1))
        });
        let due: Vec<_> = due.collect();
        let said: Vec<_> = stat
            .awaited
            .iter()
            .map(|one| (one.name.clone(), one.objects, one.bytes))
            .collect();
        if said == due {
            return Ok(());
        }
        Err(format!("stat: {said:?} are awaited, due is {due:?}"))
    }
}
