//! The objects of a row: their names, their lanes, and their content.

use std::sync::Arc;

use hashbrown::HashMap;
use junctura::{Given, Result, Schema};
use junctura_model::Described;
use serde::{Deserialize, Serialize};

use crate::load::{LoadNames, LoadSpace, begin_of};
use crate::stamp::{self, PayloadStamp};

/// Their schema.
pub(super) const SCHEMA: &str = "mars";

/// See the module.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct RowObjects {
    pub(super) space: LoadSpace,
    /// How many of the space.
    pub(super) count: u64,
    pub(super) payload_bytes: usize,
    /// A writer flushes after so many.
    pub(super) every: u64,
    /// Writers, and readers: processes times threads.
    pub(super) lanes: u64,
    /// All objects are in one dataset; else those of each lane are in one of their own.
    pub(super) is_contended: bool,
    /// Which forecast they are of.
    pub(super) row: u64,
    /// The part that is unique to this run.
    pub(super) run: u64,
}

impl RowObjects {
    /// The numbers of a lane's objects.
    pub(super) fn of_lane(&self, lane: u64) -> impl Iterator<Item = u64> + use<> {
        (lane..self.count).step_by(self.lanes as usize)
    }

    /// Asks for all objects of the row.
    pub(super) fn selector(&self) -> String {
        let (date, time) = begin_of(self.row);
        format!("class=od,stream=enfo,date={date},time={time}")
    }

    pub(super) fn names(&self, lane: u64) -> LoadNames {
        LoadNames::new(&self.space, if self.is_contended { 0 } else { lane as u32 })
    }

    pub(super) fn attributes<'a>(&self, n: u64, names: &'a mut LoadNames) -> [(&'static str, Given<'a>); 11] {
        let mut field = self.space.field(n, 0, 1);
        field.forecast = self.row;
        names.attributes(&field)
    }

    /// The keys of a lane's objects, with their numbers.
    pub(super) fn keys(&self, lane: u64, schema: &Arc<Schema>) -> Result<HashMap<String, u64>> {
        let mut names = self.names(lane);
        let key = |n| -> Result<(String, u64)> {
            let described = Described::of(schema, self.attributes(n, &mut names))?;
            Ok((described.key().to_owned(), n))
        };
        self.of_lane(lane).map(key).collect()
    }

    /// Bytes that are there before the load begins: an object differs in its stamps alone.
    pub(super) fn payload(&self, lane: u64) -> Vec<u8> {
        let mut payload = vec![0; self.payload_bytes];
        stamp::fill(&mut payload, lane);
        payload
    }

    pub(super) fn stamp(&self, n: u64, version: u64, payload: &mut [u8]) {
        let stamp = PayloadStamp {
            producer: self.run,
            number: n,
            offered_ns: version,
        };
        stamp.write(payload);
    }

    /// Which version of the n-th object this is; none, if it is not the n-th object of this run.
    pub(super) fn version(&self, n: u64, payload: &[u8]) -> Option<u64> {
        let stamp = PayloadStamp::read(payload).filter(|_| payload.len() == self.payload_bytes)?;
        (stamp.producer == self.run && stamp.number == n).then_some(stamp.offered_ns)
    }
}

#[cfg(test)]
mod tests {
    use hashbrown::HashSet;

    use super::*;

    fn objects(lanes: u64, is_contended: bool) -> RowObjects {
        let space = LoadSpace {
            members: 3,
            steps: 2,
            levels: 101,
            params: 2,
        };
        RowObjects {
            space,
            count: 1000,
            payload_bytes: 100,
            every: 10,
            lanes,
            is_contended,
            row: 5,
            run: 7,
        }
    }

    #[test]
    fn lanes_share_all_objects_and_each_has_a_key_of_its_own() {
        let mars = Schema::builtin(SCHEMA).unwrap();
        for (lanes, is_contended) in [(1, true), (1, false), (3, true), (3, false), (64, false)] {
            let objects = objects(lanes, is_contended);
            let keys: Vec<_> = (0..lanes).map(|lane| objects.keys(lane, &mars).unwrap()).collect();
            let all: HashSet<&String> = keys.iter().flat_map(HashMap::keys).collect();
            let numbers: HashSet<u64> = keys.iter().flat_map(HashMap::values).copied().collect();
            assert_eq!((all.len(), numbers.len()), (1000, 1000), "{lanes} {is_contended}");
            let datasets: HashSet<&str> = all
                .iter()
                .filter_map(|key| key.split_once('}'))
                .map(|key| key.0)
                .collect();
            assert_eq!(datasets.len() as u64, if is_contended { 1 } else { lanes });
            assert!(
                all.iter().all(|key| key.contains("date=20000102,time=0600")),
                "of the row alone"
            );
        }
    }

    #[test]
    fn a_payload_says_whose_it_is() {
        let objects = objects(2, true);
        let mut payload = objects.payload(1);
        objects.stamp(17, 3, &mut payload);
        assert_eq!(objects.version(17, &payload), Some(3));
        assert_eq!(objects.version(18, &payload), None);
        assert_eq!(objects.version(17, &payload[..99]), None);
        let other = RowObjects { run: 8, ..objects };
        assert_eq!(other.version(17, &payload), None);
    }
}
