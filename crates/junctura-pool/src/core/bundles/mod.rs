//! Bundles: objects that become visible together.
//!
//! ```text
//!            offers into it                 the declared number is there, or it is sealed
//!   open ---------------------> open -------------------------------------------------> visible
//!     |                           |  nested in another: complete, and waits for that one --'
//!     |  no client has it open, and its orphan timeout is over; or a client aborts it
//!     '---------------------------'----------------------------------------------------> aborted: no trace
//! ```
//! An object offered into a bundle is *staged*: it has no sequence number, and no index or reader finds it. When the
//! bundle is complete all its objects, and those of the bundles nested in it, become visible in one event, under
//! consecutive numbers in the order of their keys ([`completion`]). A tree of bundles has its staged objects by their
//! keys at its root, so a key is staged once in a tree.
//!
//! A bundle with a path belongs to the clients that have it open; the last one may disconnect or crash, and another one
//! may open it again before its orphan timeout is over. A bundle without a path belongs to one client, and is aborted
//! when the client disconnects. A bundle that became visible is remembered by its path: while one of its objects is
//! visible, and then as long as a tombstone.

mod completion;
pub(in crate::core) mod dropped;
mod durability;
mod inspect;
mod open;
mod path;
mod reasons;
mod stage;
mod staging;

pub(in crate::core) use stage::staged_flag;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use junctura_model::{Code, Error, Result};
use junctura_wire::body;

use crate::PoolConfig;
use crate::core::clients::client::{PendingAnswer, milliseconds};
use crate::core::clients::table::ClientTable;
use crate::core::engine::timers::Nanoseconds;
use crate::core::engine::timers::TimerEvent;
use crate::core::engine::timers::TimerQueue;
use crate::core::objects::key_table::ByKey;
use crate::core::objects::object::ObjectRetention;
use crate::core::objects::order::ResolvedOrder;
use crate::core::objects::table::ObjectTable;

/// No client has this number: it separates timers of bundles from those of requirements.
const NOBODY: u32 = 0;
const TIMERS_OF_BUNDLES: u64 = 1 << 63;

/// The state of a bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::core) enum BundlePhase {
    Open,
    /// It has all its members, but the enclosing bundle has not.
    Complete,
    Visible,
}

/// A bundle.
pub(in crate::core) struct BundleRow {
    path: Option<String>,
    /// The enclosing bundle, and the root: itself, unless it is nested.
    parent: Option<u64>,
    root: u64,
    phase: BundlePhase,
    terms: BundleTerms,
    /// Clients that have it open, with their requests.
    openers: BTreeSet<(u32, u64)>,
    /// The same count, with openers of nested bundles.
    openers_below: u32,
    /// The time at which it is aborted, unless it is opened before.
    orphaned: Option<Nanoseconds>,
    /// The number of objects staged in itself, and bytes of their payloads.
    objects: u64,
    bytes: u64,
    nested: BTreeSet<u64>,
    nested_complete: u64,
    /// Of a root: the staged objects of its tree.
    members: ByKey<StagedMember>,
    /// Of a root: the sorted keys of its members, as far as bytes can express their order.
    sorted: BTreeMap<Box<[u8]>, u128>,
    /// The first sequence number of its tree, once it is visible.
    first: u64,
    /// The key of the first of its own objects, once it is visible.
    first_key: Option<u128>,
    /// The number of its own objects that are still visible.
    visible: u64,
    /// The members that stay as long as the others, with their numbers.
    together: BTreeMap<u64, u32>,
}

/// The terms on which clients open a bundle. A term that one client leaves out can be given by another.
#[derive(Clone, Default, PartialEq, Eq)]
pub(in crate::core) struct BundleTerms {
    declared: Option<u64>,
    orphan_timeout: Option<Nanoseconds>,
    attributes: Option<BundleRecord>,
}

#[derive(Clone, PartialEq, Eq)]
pub(in crate::core) struct BundleRecord {
    schema: u16,
    record: Vec<u8>,
}

/// A staged object.
pub(in crate::core) struct StagedMember {
    pub(in crate::core) object: u32,
    pub(in crate::core) bundle: u64,
    /// The client that staged it, and the client's request that has the bundle open.
    pub(in crate::core) by: (u32, u64),
    /// The request with which it was staged.
    pub(in crate::core) request: u64,
    pub(in crate::core) keep: ObjectRetention,
    pub(in crate::core) is_durable: bool,
}

impl BundleRow {
    /// Returns the number of its present members: objects, and complete nested bundles.
    fn there(&self) -> u64 {
        self.objects + self.nested_complete
    }

    /// Returns the number of taken places, including those of incomplete nested bundles.
    fn taken(&self) -> u64 {
        self.objects + self.nested.len() as u64
    }

    fn is_whole(&self) -> bool {
        self.terms.declared == Some(self.there())
    }

    fn name(&self) -> body::BundlePeer<'_> {
        body::BundlePeer {
            path: self.path.as_deref().map(Into::into),
            members: self.there(),
            declared: self.terms.declared,
        }
    }

    fn subject(&self) -> String {
        subject(self.path.as_deref())
    }
}

/// All bundles of a pool.
pub(in crate::core) struct BundleTable {
    config: Arc<PoolConfig>,
    /// By number: open bundles, and remembered ones.
    table: BTreeMap<u64, BundleRow>,
    made: u64,
    paths: BTreeMap<String, u64>,
    /// The number of bundles that are not visible.
    open: usize,
    /// Keys that no other client may offer, since their schema rejects a second object, with the bundles in which they
    /// are staged. An aborted bundle reserves nothing.
    reserved: ByKey<u64>,
    pinned: stage::PinnedMemory,
    /// The part that belongs to aborted bundles.
    dropped: dropped::DroppedSums,
    /// Bundles without a visible object, with the time since which they have none.
    past: VecDeque<(Nanoseconds, u64)>,
    /// Bundles of which only objects remain that stay as long as the others.
    abandoned: Vec<u64>,
    completed: u64,
    aborted: u64,
}

impl BundleTable {
    pub(in crate::core) fn new(config: &Arc<PoolConfig>) -> Self {
        Self {
            config: Arc::clone(config),
            table: BTreeMap::new(),
            made: 0,
            paths: BTreeMap::new(),
            open: 0,
            reserved: ByKey::default(),
            pinned: stage::PinnedMemory::default(),
            dropped: dropped::DroppedSums::default(),
            past: VecDeque::new(),
            abandoned: Vec::new(),
            completed: 0,
            aborted: 0,
        }
    }

    /// Whether a key is staged under a schema that rejects a second object.
    pub(in crate::core) fn reserve(&self, key: u128) -> bool {
        let bundle = self.reserved.get(key).filter(|_| !self.reserved.is_empty());
        bundle.is_some_and(|bundle| self.table.contains_key(bundle))
    }

    /// Returns the number of objects staged in a bundle and in its nested bundles.
    fn objects_within(&self, number: u64) -> u64 {
        let tree = self.tree(number);
        let bundles = tree.iter().filter_map(|&one| self.get(one));
        bundles.map(|one| one.objects).sum()
    }

    /// Whether there is a bundle that is not visible yet.
    pub(in crate::core) fn has_open(&self) -> bool {
        self.open > 0
    }

    fn get(&self, number: u64) -> Option<&BundleRow> {
        self.table.get(&number)
    }

    /// Returns the bundle and all nested ones, outer ones first.
    fn tree(&self, number: u64) -> Vec<u64> {
        let mut found = vec![number];
        let mut at = 0;
        while let Some(&next) = found.get(at) {
            found.extend(self.table.get(&next).into_iter().flat_map(|bundle| &bundle.nested));
            at += 1;
        }
        found
    }

    /// Returns a bundle, its enclosing bundle, and so on to the root.
    fn upwards(&self, number: u64) -> Vec<u64> {
        std::iter::successors(Some(number), |at| self.table.get(at)?.parent).collect()
    }
}

impl BundleRow {
    /// # Errors
    /// `BundleFull` when all its places are taken.
    fn room_for_one(&self) -> Result<()> {
        match self.terms.declared.filter(|&declared| self.taken() >= declared) {
            None => Ok(()),
            Some(declared) => {
                let cause = format!("it has all its {declared} members");
                Err(Error::new(Code::BundleFull, self.subject(), cause))
            }
        }
    }
}

fn subject(path: Option<&str>) -> String {
    format!("bundle {}", path.unwrap_or("without a path"))
}

fn closed(subject: &str) -> Error {
    Error::new(
        Code::BundleClosed,
        subject,
        "it is complete; open another path, or declare more members",
    )
}

impl BundleTable {
    pub(in crate::core) fn bundle_terms(&self, asked: &body::BundleRequest<'_>) -> Result<BundleTerms> {
        let limits = &self.config.limits;
        if asked.members == Some(0) {
            let cause = "a bundle with a number of members has at least one";
            return Err(Error::new(Code::InvalidArgument, "members", cause));
        }
        if asked.members > Some(limits.members_per_bundle) {
            let cause = format!("a bundle has {} at most", limits.members_per_bundle);
            return Err(Error::new(Code::LimitExceeded, "members", cause));
        }
        let attributes = asked.attributes.as_ref().map(|given| self.bundle_attributes(given));
        Ok(BundleTerms {
            declared: asked.members,
            orphan_timeout: asked.orphan_timeout_ms.map(milliseconds),
            attributes: attributes.transpose()?,
        })
    }

    pub(in crate::core) fn bundle_attributes(&self, given: &body::BundleAttributes<'_>) -> Result<BundleRecord> {
        let limit = self.config.limits.bundle_attribute_bytes;
        if given.record.len() > limit {
            let cause = format!("{} bytes; {limit} are allowed", given.record.len());
            return Err(Error::new(Code::TooLarge, "attributes of the bundle", cause));
        }
        let schema = self.config.schemas.get(usize::from(given.schema)).ok_or_else(|| {
            let subject = format!("schema {}", given.schema);
            Error::new(Code::SchemaMismatch, subject, "the pool has no schema of this number")
        })?;
        schema.check_partial(&given.record)?;
        Ok(BundleRecord {
            schema: given.schema,
            record: given.record.to_vec(),
        })
    }

    /// Returns the terms of a bundle after another client has opened it on these terms.
    pub(in crate::core) fn agree_on_bundle(&self, number: u64, asked: &BundleTerms) -> Result<BundleTerms> {
        let Some(bundle) = self.get(number) else {
            return Ok(asked.clone());
        };
        let conflict = |cause: String| Err(Error::new(Code::Conflict, bundle.subject(), cause));
        let ours = &bundle.terms;
        // Before all else: a complete bundle of other attributes is another one.
        if let (Some(ours), Some(theirs)) = (&ours.attributes, &asked.attributes)
            && ours != theirs
        {
            if bundle.phase != BundlePhase::Open && self.is_of_array(theirs) {
                let cause = "it is complete, and its pieces have another layout or type";
                return Err(Error::new(Code::AlreadyExists, bundle.subject(), cause));
            }
            return conflict("it has other attributes".to_owned());
        }
        if bundle.phase != BundlePhase::Open {
            return Err(closed(&bundle.subject()));
        }
        if let (Some(ours), Some(theirs)) = (ours.declared, asked.declared)
            && ours != theirs
        {
            return conflict(format!("it was opened with {ours} members, not {theirs}"));
        }
        if let Some(theirs) = asked.declared.filter(|&theirs| theirs < bundle.taken()) {
            return conflict(format!("it has {} members already, not {theirs}", bundle.taken()));
        }
        if let (Some(ours), Some(theirs)) = (ours.orphan_timeout, asked.orphan_timeout)
            && ours != theirs
        {
            let (ours, theirs) = (ours / 1_000_000, theirs / 1_000_000);
            return conflict(format!("its orphan timeout is {ours} ms, not {theirs} ms"));
        }
        Ok(BundleTerms {
            declared: ours.declared.or(asked.declared),
            orphan_timeout: ours.orphan_timeout.or(asked.orphan_timeout),
            attributes: ours.attributes.clone().or_else(|| asked.attributes.clone()),
        })
    }

    /// Whether a bundle with these attributes has the pieces of an array.
    fn is_of_array(&self, attributes: &BundleRecord) -> bool {
        let schema = self.config.schemas.get(usize::from(attributes.schema));
        schema.is_some_and(|schema| schema.is_aside())
    }

    pub(in crate::core) fn make_bundle(
        &mut self,
        clients: &mut ClientTable,
        client: u32,
        request: u64,
        path: Option<&str>,
        terms: BundleTerms,
    ) -> Result<u64> {
        let limit = self.config.limits.bundles_open;
        if self.open >= limit {
            let cause = format!("the pool has {limit} that are not complete");
            return Err(Error::new(Code::LimitExceeded, "bundles", cause));
        }
        let parent = path.map_or(Ok(None), |path| self.bundle_above(path))?;
        let number = self.made + 1;
        clients.add_pending(client, request, PendingAnswer::Bundle(number))?;
        self.made = number;
        self.open += 1;
        let above = parent.and_then(|parent| self.table.get_mut(&parent));
        let root = above.map_or(number, |parent| {
            parent.nested.insert(number);
            parent.root
        });
        if let Some(path) = path {
            self.paths.insert(path.to_owned(), number);
        }
        let bundle = BundleRow {
            path: path.map(str::to_owned),
            parent,
            root,
            phase: BundlePhase::Open,
            terms,
            openers: BTreeSet::new(),
            openers_below: 0,
            orphaned: None,
            objects: 0,
            bytes: 0,
            nested: BTreeSet::new(),
            nested_complete: 0,
            members: ByKey::default(),
            sorted: BTreeMap::new(),
            first: 0,
            first_key: None,
            visible: 0,
            together: BTreeMap::new(),
        };
        self.table.insert(number, bundle);
        Ok(number)
    }

    /// Returns the open bundle that encloses this path.
    pub(in crate::core) fn bundle_above(&self, path: &str) -> Result<Option<u64>> {
        // A client that opens the outer bundle too late gets an error: the inner ones would not be its members.
        let inner = self.paths.range(format!("{path}/")..);
        for (inner, number) in inner.take_while(|(inner, _)| path::is_under(inner, path)) {
            let is_open = self
                .get(*number)
                .is_some_and(|bundle| bundle.phase != BundlePhase::Visible);
            if is_open && path::parent(inner) == Some(path) {
                let cause = format!("{inner} was opened before it, and is independent");
                return Err(Error::new(Code::Conflict, subject(Some(path)), cause));
            }
        }
        let above = path::parent(path).and_then(|parent| self.paths.get(parent).copied());
        let Some((number, parent)) = above.and_then(|number| Some((number, self.get(number)?))) else {
            return Ok(None);
        };
        if parent.phase != BundlePhase::Open {
            return Err(closed(&parent.subject()));
        }
        parent.room_for_one()?;
        Ok(Some(number))
    }

    /// Adjusts the number of openers of a bundle. While it is zero, the orphan timeout runs.
    pub(in crate::core) fn count_openers(&mut self, timers: &mut TimerQueue, number: u64, more: i32) {
        for number in self.upwards(number) {
            if let Some(bundle) = self.table.get_mut(&number) {
                bundle.openers_below = bundle.openers_below.wrapping_add_signed(more);
            }
            self.watch_bundle(timers, number);
        }
    }

    pub(in crate::core) fn watch_bundle(&mut self, timers: &mut TimerQueue, number: u64) {
        let Some(bundle) = self.table.get_mut(&number) else {
            return;
        };
        let timer = TIMERS_OF_BUNDLES | number;
        if bundle.openers_below > 0 || bundle.phase != BundlePhase::Open {
            if bundle.orphaned.take().is_some() {
                timers.cancel(NOBODY, timer);
            }
        } else if bundle.orphaned.is_none() {
            let usual = self.config.orphan_timeout.as_nanos() as u64;
            let at = timers.now.saturating_add(bundle.terms.orphan_timeout.unwrap_or(usual));
            bundle.orphaned = Some(at);
            timers.set(at, NOBODY, timer, TimerEvent::Bundle(number));
        }
    }

    /// Returns the bundle of this number, if it accepts members.
    pub(in crate::core) fn open_one(&self, number: u64) -> Result<&BundleRow> {
        match self.get(number) {
            // A bundle without a path is forgotten once it is visible.
            None => Err(closed(&subject(None))),
            Some(bundle) if bundle.phase != BundlePhase::Open => Err(closed(&bundle.subject())),
            Some(bundle) => Ok(bundle),
        }
    }

    pub(in crate::core) fn forget_aborted(&mut self, timers: &mut TimerQueue, number: u64) {
        let Some(bundle) = self.table.remove(&number) else {
            return;
        };
        self.open -= 1;
        self.aborted += 1;
        if bundle.orphaned.is_some() {
            timers.cancel(NOBODY, TIMERS_OF_BUNDLES | number);
        }
        if let Some(path) = &bundle.path {
            self.paths.remove(path);
        }
    }

    /// Records that an object of a bundle is no longer visible; it may have been one that stays as long as the others.
    pub(in crate::core) fn one_fewer_of(
        &mut self,
        objects: &ObjectTable,
        timers: &TimerQueue,
        number: u64,
        id: u32,
        was_together: bool,
    ) {
        let sequence = objects[id].sequence;
        if let Some(bundle) = self.table.get_mut(&number) {
            bundle.visible -= 1;
            if was_together {
                bundle.together.remove(&sequence);
            }
            // While its tree is being made visible, a newer version may replace one that has just become so.
            if bundle.visible == 0 && bundle.phase == BundlePhase::Visible {
                self.past.push_back((timers.now, number));
            }
            if !bundle.together.is_empty() && bundle.visible == bundle.together.len() as u64 {
                self.abandoned.push(number);
            }
        }
    }

    /// Returns a bundle of which only objects remain that stay as long as the others.
    pub(in crate::core) fn next_abandoned(&mut self) -> Option<u64> {
        self.abandoned.pop()
    }

    /// Returns when the next remembered path is to be forgotten.
    pub(in crate::core) fn next_past_bundle(&self) -> Option<Nanoseconds> {
        let (since, _) = self.past.front()?;
        Some(since.saturating_add(self.config.tombstone_age.as_nanos() as u64))
    }

    /// Forgets remembered paths whose time is over, of which so many may be forgotten now.
    pub(in crate::core) fn forget_past_bundles(&mut self, timers: &TimerQueue, may: &mut usize) {
        while *may > 0
            && self.next_past_bundle().is_some_and(|at| at <= timers.now)
            && let Some((_, number)) = self.past.pop_front()
        {
            self.forget_bundle(number);
            *may -= 1;
        }
    }

    /// Forgets remembered bundles beyond the maximum: first those with no objects left, then the oldest.
    pub(in crate::core) fn forget_surplus_bundles(&mut self) {
        let limit = self.config.limits.bundles_remembered;
        while self.table.len() - self.open > limit {
            let past = self.past.pop_front().map(|(_, number)| number);
            let table = &self.table;
            let oldest = || {
                table
                    .iter()
                    .find(|(_, one)| one.phase == BundlePhase::Visible && one.together.is_empty())
                    .map(|(&number, _)| number)
            };
            let Some(number) = past.or_else(oldest) else { return };
            self.forget_bundle(number);
        }
    }

    /// Forgets the paths of complete bundles of which no object is visible, and whose first key is free: the bundle can be
    /// offered again. A bundle is remembered while one that was nested in it is.
    pub(in crate::core) fn forget_free_paths(&mut self, objects: &ObjectTable) {
        let mut past: Vec<u64> = self.past.iter().map(|&(_, number)| number).collect();
        // Nested ones first.
        past.sort_unstable_by_key(|&number| Reverse(number));
        for number in past {
            let is_free = self.get(number).is_some_and(|bundle| {
                bundle.first_key.is_none_or(|key| objects.is_free(key))
                    && bundle.nested.iter().all(|nested| !self.table.contains_key(nested))
            });
            if is_free {
                self.forget_bundle(number);
            }
        }
        let table = &self.table;
        self.past.retain(|(_, number)| table.contains_key(number));
    }

    pub(in crate::core) fn forget_bundle(&mut self, number: u64) {
        let path = self.table.remove(&number).and_then(|bundle| bundle.path);
        if let Some(path) = path {
            self.paths.remove(&path);
        }
    }

    /// Takes the members of a root, in the order of their keys.
    pub(in crate::core) fn members_in_order(&mut self, objects: &ObjectTable, root: u64) -> Vec<(u128, StagedMember)> {
        let Some(root) = self.table.get_mut(&root) else {
            return Vec::new();
        };
        let (mut members, sorted) = (std::mem::take(&mut root.members), std::mem::take(&mut root.sorted));
        let keys = sorted.into_values();
        let mut in_order: Vec<_> = keys.filter_map(|key| Some((key, members.remove(key)?))).collect();
        if !members.is_empty() {
            in_order.extend(members.into_entries());
            let by_key = ResolvedOrder::default();
            in_order.sort_unstable_by(|(_, a), (_, b)| objects.compare(&by_key, a.object, b.object));
        }
        in_order
    }
}
