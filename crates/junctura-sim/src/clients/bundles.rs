//! Actions of a client with bundles.

use crate::clients::client::Doing;
use crate::clients::requests::{Ask, BUNDLE_PATHS};
use crate::run::plan::Deed;
use crate::run::rng::Rng;
use crate::world::{Checked, World};

impl World {
    pub(crate) fn act_on_bundle(&mut self, place: usize, deed: Deed, rng: &mut Rng) -> Checked {
        let Some(which) = self.some_bundle(place, rng).filter(|_| deed != Deed::Open) else {
            if matches!(deed, Deed::Open | Deed::Stage | Deed::StageSlot) {
                self.open_bundle(place, rng);
            }
            return Ok(());
        };
        match deed {
            Deed::Seal => _ = self.ask(place, Ask::Seal(which), Doing::Withdraw),
            Deed::Abort => _ = self.ask(place, Ask::Abort(which), Doing::Abort(which)),
            _ => return self.offer(place, rng, deed == Deed::StageSlot, Some(which)),
        }
        Ok(())
    }

    fn open_bundle(&mut self, place: usize, rng: &mut Rng) {
        let path = (!rng.percent(15)).then(|| rng.below(BUNDLE_PATHS.len()));
        // Most agree on the number of members of each path.
        let members = match path {
            Some(path) if rng.percent(60) => Some(path as u64 + 1),
            _ => rng.percent(10).then(|| rng.between(0, 3)),
        };
        let orphan_ms = rng.percent(10).then(|| rng.between(0, 2) * 20);
        let ask = Ask::Bundle {
            path,
            members,
            orphan_ms,
        };
        self.ask(place, ask, Doing::Bundle);
    }

    /// A bundle that the client opened; now and then one that it did not.
    fn some_bundle(&self, place: usize, rng: &mut Rng) -> Option<u64> {
        if rng.percent(1) {
            return Some(88_888);
        }
        self.one_of(place, rng, |doing| *doing == Doing::Bundle)
    }
}
