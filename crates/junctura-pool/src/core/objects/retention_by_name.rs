//! Retention by named requirements and groups, including those that do not exist yet.
//!
//! If a requirement of the name exists, it is owed the object if its selector matches: the requirement keeps the
//! object, and records when it is received, broken, retracted. So the only state to store is the set of *absent* names:
//! ```text
//!   offered --> some of its names stand for nothing --the last of them comes--> only requirements keep it --> gone
//!                                                                              (at once, where none is owed it)
//! ```
//! The names of an offer are a *set*, which a client has numbered once; an object has its set and a bit for each absent
//! name. So a release, and an offer for which all names exist, cost nothing; a new requirement of a name that objects
//! wait for scans all objects once. The objects that wait for a name are summed as they come and go.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use junctura_model::{Code, Consumers, Error, Result, Retention, Schema, size};
use serde::Serialize;
use slab::Slab;

use crate::core::clients::client::milliseconds;
use crate::core::objects::object::{ObjectRetention, ObjectRow, RetainedUntil};
use crate::core::objects::table::ObjectTable;

/// The number of names in a stat, which must fit into a message.
const NAMES_SHOWN: usize = 500;

/// Clients that wait for memory get the names of this many absent requirements.
const NAMES_TOLD: usize = 3;

/// The sets of names; see the module.
#[derive(Default)]
pub(in crate::core) struct RetentionByName {
    pub(in crate::core) sets: Slab<NameSet>,
    pub(in crate::core) numbers: BTreeMap<Consumers, u32>,
    /// The names of all sets.
    names: Slab<SetName>,
    /// The places of the names among them.
    places: BTreeMap<Arc<str>, u32>,
    /// Those that objects wait for.
    awaited: BTreeMap<Arc<str>, u32>,
    /// How often the sums of a name were read.
    #[cfg(test)]
    pub(in crate::core) reads: std::cell::Cell<u64>,
    /// Names that objects wait for, and that requirements have taken in this event.
    pub(in crate::core) came: Vec<String>,
    /// Objects that only requirements keep, since this event.
    pub(in crate::core) unneeded: Vec<u32>,
}

/// Names that requirements have taken, where very many objects are to be scanned.
pub(in crate::core) struct AwaitedNames {
    pub(in crate::core) names: Vec<String>,
    /// The slots of the table that have yet to be scanned.
    pub(in crate::core) places: Range<usize>,
    /// The newest version at that time: later ones do not wait for these names.
    pub(in crate::core) newest: u64,
}

impl AwaitedNames {
    pub(in crate::core) fn are_awaited_by(&self, object: &ObjectRow, awaited: &RetentionByName) -> bool {
        let was_there = object.is_visible() && object.sequence <= self.newest;
        was_there
            && matches!(object.until, RetainedUntil::Awaited { consumers, absent }
                if absent & awaited.sets[consumers as usize].bits_of(&self.names) != 0)
    }

    /// Returns the objects that have yet to be scanned and wait for one of these names, the next last; for checks.
    pub(in crate::core) fn left(&self, objects: &ObjectTable, retention: &RetentionByName) -> Vec<u64> {
        let there = self.places.clone().filter_map(|id| objects.table.get(id));
        let waiting = there.filter(|object| self.are_awaited_by(object, retention));
        let mut waiting: Vec<u64> = waiting.map(|object| object.sequence).collect();
        waiting.reverse();
        waiting
    }
}

/// A set of names that objects are retained for.
pub(in crate::core) struct NameSet {
    pub(in crate::core) names: Consumers,
    /// A bit for each name without a requirement.
    pub(in crate::core) absent: u16,
    /// The number of its users: objects, staged ones included, and clients and schemas that may give it to objects.
    pub(in crate::core) users: u64,
    /// For each name: its place among the names of all sets.
    places: Vec<u32>,
}

/// A name of sets.
struct SetName {
    name: Arc<str>,
    /// The sets that have it, each with its bit there.
    sets: BTreeMap<u32, u16>,
    /// The visible objects that wait for it.
    waiting: WaitingObjects,
}

impl NameSet {
    pub(in crate::core) fn place_of(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|one| one == name)
    }

    /// Returns a bit for each of the given names that the set has.
    pub(in crate::core) fn bits_of(&self, names: &[String]) -> u16 {
        let places = names.iter().filter_map(|name| self.place_of(name));
        places.fold(0, |bits, at| bits | 1 << at)
    }

    /// Iterates over the places of the names that these bits stand for.
    fn places_of(&self, bits: u16) -> impl Iterator<Item = u32> {
        let all = self.places.iter().enumerate();
        all.filter(move |(at, _)| bits & 1 << at != 0).map(|(_, &place)| place)
    }
}

#[derive(Clone, Copy, Default)]
struct WaitingObjects {
    objects: u64,
    bytes: u64,
}

/// A name that objects wait for, and that has no requirement yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AwaitedStat {
    /// The name.
    pub name: String,
    /// Visible objects that stay at least until a requirement of this name exists.
    pub objects: u64,
    /// Bytes of their payloads.
    pub bytes: u64,
}

impl RetentionByName {
    /// Returns the sets that schemas give by default.
    pub(in crate::core) fn of_schemas(schemas: &[Arc<Schema>]) -> Result<Self> {
        let mut awaited = Self::default();
        for retention in schemas.iter().flat_map(|schema| schema.default_retentions()) {
            if let Retention::ReleasedBy(names) = retention {
                let number = awaited.find_or_make(names, usize::MAX, |_| false)?;
                awaited.hold(number);
            }
        }
        Ok(awaited)
    }

    #[cfg(test)]
    pub(in crate::core) fn len(&self) -> usize {
        self.sets.len()
    }

    #[cfg(test)]
    pub(in crate::core) fn has_no_names(&self) -> bool {
        self.names.is_empty() && self.places.is_empty() && self.awaited.is_empty()
    }

    pub(in crate::core) fn find_or_make(
        &mut self,
        names: &Consumers,
        limit: usize,
        stands: impl Fn(&str) -> bool,
    ) -> Result<u32> {
        if let Some(&number) = self.numbers.get(names) {
            return Ok(number);
        }
        if self.sets.len() >= limit {
            let cause = format!("the pool keeps {limit} sets of names");
            return Err(Error::new(Code::LimitExceeded, "retention", cause));
        }
        let absent = names.iter().enumerate().filter(|(_, name)| !stands(name));
        let number = self.sets.insert(NameSet {
            names: names.clone(),
            absent: absent.fold(0, |bits, (at, _)| bits | 1 << at),
            users: 0,
            places: Vec::new(),
        }) as u32;
        let places = names
            .iter()
            .enumerate()
            .map(|(at, name)| self.add_name(name, number, 1 << at));
        self.sets[number as usize].places = places.collect();
        self.numbers.insert(names.clone(), number);
        Ok(number)
    }

    /// Records that a set has a name. Returns the place of the name.
    fn add_name(&mut self, name: &str, set: u32, bit: u16) -> u32 {
        let place = self.places.get(name).copied().unwrap_or_else(|| {
            let name: Arc<str> = name.into();
            let place = self.names.insert(SetName {
                name: Arc::clone(&name),
                sets: BTreeMap::new(),
                waiting: WaitingObjects::default(),
            }) as u32;
            self.places.insert(name, place);
            place
        });
        self.names[place as usize].sets.insert(set, bit);
        place
    }

    /// Translates a schema's retention.
    pub(in crate::core) fn keep(&self, retention: &Retention) -> ObjectRetention {
        match retention {
            Retention::UntilWithdrawn => ObjectRetention::UntilWithdrawn,
            Retention::Released(count) => ObjectRetention::Released(*count),
            Retention::For(time) => ObjectRetention::For(milliseconds(time.as_nanos().div_ceil(1_000_000) as u64)),
            Retention::ReleasedBy(names) => self
                .numbers
                .get(names)
                .map_or(ObjectRetention::UntilWithdrawn, |&set| ObjectRetention::ReleasedBy(set)),
        }
    }

    /// Those names of a set that these bits stand for.
    pub(in crate::core) fn names_of(&self, set: u32, bits: u16) -> Vec<String> {
        let names = self.sets.get(set as usize).map(|set| set.names.iter());
        let chosen = names
            .into_iter()
            .flatten()
            .enumerate()
            .filter(|(at, _)| bits & 1 << at != 0);
        chosen.map(|(_, name)| name.to_owned()).collect()
    }

    /// Adds a user of a set.
    pub(in crate::core) fn hold(&mut self, set: u32) {
        self.sets[set as usize].users += 1;
    }

    /// Removes a user of these sets.
    pub(in crate::core) fn release(&mut self, sets: &[u32]) {
        for &set in sets {
            let one = &mut self.sets[set as usize];
            one.users -= 1;
            if one.users > 0 {
                continue;
            }
            self.numbers.remove(&one.names);
            for place in self.sets.remove(set as usize).places {
                let sets = &mut self.names[place as usize].sets;
                sets.remove(&set);
                if sets.is_empty() {
                    self.places.remove(&self.names.remove(place as usize).name);
                }
            }
        }
    }

    /// Whether this event removes objects, or may.
    pub(in crate::core) fn has_news(&self) -> bool {
        !self.came.is_empty() || !self.unneeded.is_empty()
    }

    /// Records that a requirement has taken this name.
    pub(in crate::core) fn came(&mut self, name: &str) {
        let Some(&place) = self.places.get(name) else { return };
        let known = &self.names[place as usize];
        for (&set, bit) in &known.sets {
            self.sets[set as usize].absent &= !bit;
        }
        if known.waiting.objects > 0 {
            self.came.push(name.to_owned());
        }
    }

    /// Records that a name has no requirement any longer: new objects wait for the next one.
    pub(in crate::core) fn went(&mut self, name: &str) {
        let Some(&place) = self.places.get(name) else { return };
        for (&set, bit) in &self.names[place as usize].sets {
            self.sets[set as usize].absent |= bit;
        }
    }

    /// Counts a visible object that waits for these names of a set.
    fn count(&mut self, set: u32, absent: u16, length: u64) {
        for place in self.sets[set as usize].places_of(absent) {
            let SetName { name, waiting, .. } = &mut self.names[place as usize];
            if waiting.objects == 0 {
                self.awaited.insert(Arc::clone(name), place);
            }
            waiting.objects += 1;
            waiting.bytes += length;
        }
    }

    fn uncount(&mut self, set: u32, absent: u16, length: u64) {
        for place in self.sets[set as usize].places_of(absent) {
            let SetName { name, waiting, .. } = &mut self.names[place as usize];
            waiting.objects -= 1;
            waiting.bytes -= length;
            if waiting.objects == 0 {
                self.awaited.remove(name);
            }
        }
    }

    /// Returns the absent names that objects wait for; of very many, the first.
    pub(in crate::core) fn stat(&self) -> Vec<AwaitedStat> {
        self.first_awaited().take(NAMES_SHOWN).collect()
    }

    /// Iterates over the absent names that objects wait for, in their order.
    fn first_awaited(&self) -> impl Iterator<Item = AwaitedStat> {
        self.awaited.iter().map(|(name, &place)| {
            #[cfg(test)]
            self.reads.set(self.reads.get() + 1);
            let WaitingObjects { objects, bytes } = self.names[place as usize].waiting;
            AwaitedStat {
                name: name.as_ref().to_owned(),
                objects,
                bytes,
            }
        })
    }
}

impl RetentionByName {
    /// Describes the objects kept for absent names, for a client that waits for memory; empty if there are none.
    pub(in crate::core) fn kept_for_those_absent(&self) -> String {
        let told = self.first_awaited().take(NAMES_TOLD).map(|one| {
            let AwaitedStat { name, objects, bytes } = one;
            let bytes = size::bytes(bytes);
            format!("; {objects} objects, {bytes}, wait for {name:?}, which stands for no requirement yet")
        });
        told.collect()
    }

    /// Records a newly visible object: it waits for those of its names that have no requirement now.
    pub(in crate::core) fn await_those_absent(&mut self, objects: &mut ObjectTable, id: u32) {
        let object = &mut objects[id];
        let RetainedUntil::Awaited { consumers, .. } = object.until else {
            return;
        };
        let (absent, length) = (self.sets[consumers as usize].absent, object.length);
        object.until = RetainedUntil::Awaited { consumers, absent };
        if absent == 0 {
            self.await_no_more(objects, id);
            self.unneeded.push(id);
        } else {
            self.count(consumers, absent, length);
        }
    }

    /// Ends an object's wait for absent names.
    pub(in crate::core) fn await_no_more(&mut self, objects: &mut ObjectTable, id: u32) {
        let object = &mut objects[id];
        let RetainedUntil::Awaited { consumers, absent } = object.until else {
            return;
        };
        let (was_visible, length) = (object.sequence > 0, object.length);
        object.until = RetainedUntil::Over;
        if was_visible {
            self.uncount(consumers, absent, length);
        }
        self.release(&[consumers]);
    }

    /// Whether an object waited for these names, and for no others. It does not matter whether their requirements still
    /// exist.
    pub(in crate::core) fn awaits_no_more(
        &mut self,
        objects: &mut ObjectTable,
        coming: &AwaitedNames,
        id: u32,
    ) -> bool {
        let object = objects.get(id);
        let Some(object) = object.filter(|object| coming.are_awaited_by(object, self)) else {
            return false;
        };
        let RetainedUntil::Awaited { consumers, absent } = object.until else {
            return false;
        };
        let length = object.length;
        let came = absent & self.sets[consumers as usize].bits_of(&coming.names);
        let absent = absent & !came;
        objects[id].until = RetainedUntil::Awaited { consumers, absent };
        self.uncount(consumers, came, length);
        if absent == 0 {
            self.await_no_more(objects, id);
        }
        absent == 0
    }
}
