//! Numbers of objects, between those in sight and those that are visible.

use std::collections::BTreeMap;

use crate::clients::replies::Tallied;
use crate::model::observe::expect;
use crate::model::{Checked, Model, Number, Want};
use crate::run::universe::{Order, Query};

/// The objects that a tally may count: it may be prepared, so it has objects up to an earlier number, and some that have left sight since.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TallyBounds {
    /// Those that match and are in sight.
    in_sight: Vec<u64>,
    /// Those that match and are visible.
    visible: Vec<u64>,
    by_size: bool,
    filed_only: bool,
    /// The newest number.
    newest: u64,
}

type SizeCounts = BTreeMap<(u16, Option<i64>), u64>;

impl Model {
    pub(super) fn tally(&mut self, client: u32, number: u64, query: &Query, by_size: bool, filed_only: bool) {
        let bounds = TallyBounds {
            in_sight: self.visible_matches(query, Order::Key),
            visible: self.all_matches(query).into_iter().collect(),
            by_size,
            filed_only,
            newest: self.sequence,
        };
        self.want(client, number, Want::Tallied(Box::new(bounds)));
    }

    pub(super) fn tallied(&mut self, (client, request): Number, tallied: &Tallied) -> Checked {
        let is_it = |want: &Want| matches!(want, Want::Tallied(_));
        let Some(Want::Tallied(bounds)) = self.take_want(client, request, is_it) else {
            return Err("no tally was asked for".to_owned());
        };
        expect(tallied.sequence <= bounds.newest, "a number of the future")?;
        expect(tallied.newer == 0 || bounds.filed_only, "it was to look at all")?;
        let up_to = |all: &[u64]| -> Vec<u64> {
            let all = all.iter().copied();
            all.filter(|&sequence| sequence <= tallied.sequence).collect()
        };
        let (least, most) = (up_to(&bounds.in_sight), up_to(&bounds.visible));
        let counted = tallied.groups.iter().map(|(_, count)| count).sum::<u64>() + tallied.others;
        expect(counted <= most.len() as u64, &format!("{counted} of {}", most.len()))?;
        expect(
            counted + tallied.newer >= least.len() as u64,
            &format!("{counted}, and {} newer, of {}", tallied.newer, least.len()),
        )?;
        let bytes = |all: &[u64]| -> u64 { all.iter().map(|&sequence| self.object(sequence).offer.length).sum() };
        expect(tallied.bytes <= bytes(&most), "more bytes")?;
        expect(bounds.filed_only || tallied.bytes >= bytes(&least), "fewer bytes")?;
        if bounds.by_size {
            let (least, most) = (self.sizes(&least), self.sizes(&most));
            for (group, count) in &tallied.groups {
                let of = |sizes: &SizeCounts| sizes.get(group).copied().unwrap_or_default();
                expect(*count <= of(&most), &format!("{count} of {group:?}"))?;
                expect(
                    bounds.filed_only || *count >= of(&least),
                    &format!("only {count} of {group:?}"),
                )?;
            }
        }
        Ok(())
    }

    /// How many of these have each schema and size.
    fn sizes(&self, all: &[u64]) -> SizeCounts {
        let mut sizes = SizeCounts::new();
        for &sequence in all {
            let group = (self.key_of(sequence).schema, self.object(sequence).offer.size);
            *sizes.entry(group).or_default() += 1;
        }
        sizes
    }
}
