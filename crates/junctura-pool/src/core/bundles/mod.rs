//! Bundles: objects that become visible together.
//!
//! ```text
//!            offers into it                 the declared number is there, or it is sealed
//!   open ---------------------> open -------------------------------------------------> visible
//!     |                           |  nested in another: complete, and waits for that one --'
//!     |  nobody has it open any more, and its orphan timeout is over; or somebody aborts it
//!     '---------------------------'----------------------------------------------------> aborted: no trace
//! ```
//! What is offered into a bundle is *staged*: an object without a sequence number, in no index and no reader's way. When the
//! bundle is complete all its objects, and those of the bundles nested in it, become visible in one event, under consecutive
//! numbers in the order of their keys ([`completion`]). A tree of bundles knows its staged objects by their keys at its root, so a
//! key is staged once in a tree.
//!
//! A bundle with a path belongs to whoever has it open; the last one may leave, or die, and another take it up again before
//! its orphan timeout is over. One without a path belongs to one client, and goes with it. A bundle that became visible is
//! remembered by its path: while one of its objects is visible, and then as long as a tombstone.

mod completion;
mod durability;
mod inspect;
mod open;
mod path;
mod reasons;
mod stage;
mod staging;

pub(in crate::core) use stage::staged_flag;

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

/// No client has this number: timers of bundles are filed under it, apart from those of requirements.
const NOBODY: u32 = 0;
const TIMERS_OF_BUNDLES: u64 = 1 << 63;

/// Where a bundle stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::core) enum BundlePhase {
    Open,
    /// It has all its members, and the bundle that it is nested in has not.
    Complete,
    Visible,
}

/// One bundle.
pub(in crate::core) struct BundleRow {
    path: Option<String>,
    /// The one that it is nested in, and the one at the top: itself, unless it is nested.
    parent: Option<u64>,
    root: u64,
    phase: BundlePhase,
    terms: BundleTerms,
    /// Clients that have it open, with their requests.
    openers: BTreeSet<(u32, u64)>,
    /// The same, counted with those of nested ones.
    openers_below: u32,
    /// When it is aborted, unless somebody opens it before.
    orphaned: Option<Nanoseconds>,
    /// Objects staged in itself, and bytes of their payloads.
    objects: u64,
    bytes: u64,
    nested: BTreeSet<u64>,
    nested_complete: u64,
    /// Of a root: what is staged in its tree.
    members: ByKey<StagedMember>,
    /// Of a root: their keys in their order, of those whose order bytes can say.
    sorted: BTreeMap<Box<[u8]>, u128>,
    /// Once it is visible: the first sequence number of its tree.
    first: u64,
    /// Objects of its own that are still visible.
    visible: u64,
    /// Those of them that stay as long as the others, and their numbers.
    together: BTreeMap<u64, u32>,
}

/// What those who open a bundle say of it. What one leaves out another may say.
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
    /// Who staged it: the client and its request that has the bundle open.
    pub(in crate::core) by: (u32, u64),
    /// The request with which it was staged.
    pub(in crate::core) request: u64,
    pub(in crate::core) keep: ObjectRetention,
    pub(in crate::core) is_durable: bool,
}

impl BundleRow {
    /// How many of its members are there: objects, and nested bundles that are complete.
    fn there(&self) -> u64 {
        self.objects + self.nested_complete
    }

    /// How many places are taken, also by nested bundles that are not complete.
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
    /// By number: open ones, and those that are remembered.
    table: BTreeMap<u64, BundleRow>,
    made: u64,
    paths: BTreeMap<String, u64>,
    /// How many are not visible.
    open: usize,
    /// Keys that nobody else may offer, since their schema rejects a second object.
    reserved: ByKey<()>,
    pinned: stage::PinnedMemory,
    /// Those of which no object is visible any more, and since when.
    past: VecDeque<(Nanoseconds, u64)>,
    /// Those of which nothing is left but what stays as long as the others.
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
            past: VecDeque::new(),
            abandoned: Vec::new(),
            completed: 0,
            aborted: 0,
        }
    }

    /// Whether a key is staged under a schema that rejects a second object.
    pub(in crate::core) fn reserve(&self, key: u128) -> bool {
        !self.reserved.is_empty() && self.reserved.get(key).is_some()
    }

    /// How many objects are staged in a bundle and in those nested in it.
    fn objects_within(&self, number: u64) -> u64 {
        let tree = self.tree(number);
        let bundles = tree.iter().filter_map(|&one| self.get(one));
        bundles.map(|one| one.objects).sum()
    }

    /// Whether a bundle is not visible yet, with members or without.
    pub(in crate::core) fn has_open(&self) -> bool {
        self.open > 0
    }

    fn get(&self, number: u64) -> Option<&BundleRow> {
        self.table.get(&number)
    }

    /// The bundle and all that are nested in it, outer ones first.
    fn tree(&self, number: u64) -> Vec<u64> {
        let mut found = vec![number];
        let mut at = 0;
        while let Some(&next) = found.get(at) {
            found.extend(self.table.get(&next).into_iter().flat_map(|bundle| &bundle.nested));
            at += 1;
        }
        found
    }

    /// A bundle, the one that it is nested in, and so on to the top.
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
    Error::new(Code::BundleClosed, subject, "it is complete")
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

    /// What holds for a bundle once another has opened it on these terms.
    pub(in crate::core) fn agree_on_bundle(&self, number: u64, asked: &BundleTerms) -> Result<BundleTerms> {
        let Some(bundle) = self.get(number) else {
            return Ok(asked.clone());
        };
        if bundle.phase != BundlePhase::Open {
            return Err(closed(&bundle.subject()));
        }
        let conflict = |cause: String| Err(Error::new(Code::Conflict, bundle.subject(), cause));
        let ours = &bundle.terms;
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
        if let (Some(ours), Some(theirs)) = (&ours.attributes, &asked.attributes)
            && ours != theirs
        {
            return conflict("it has other attributes".to_owned());
        }
        Ok(BundleTerms {
            declared: ours.declared.or(asked.declared),
            orphan_timeout: ours.orphan_timeout.or(asked.orphan_timeout),
            attributes: ours.attributes.clone().or_else(|| asked.attributes.clone()),
        })
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
            visible: 0,
            together: BTreeMap::new(),
        };
        self.table.insert(number, bundle);
        Ok(number)
    }

    /// The open bundle that one of this path is to be nested in.
    pub(in crate::core) fn bundle_above(&self, path: &str) -> Result<Option<u64>> {
        // Who opens the outer one too late must learn it: what is inside would not be a member.
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

    /// So many more, or fewer, have a bundle open. While nobody has, its orphan timeout counts.
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

    /// The bundle of this number, if it takes members.
    pub(in crate::core) fn open_one(&self, number: u64) -> Result<&BundleRow> {
        match self.get(number) {
            // One without a path is forgotten once it is visible.
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

    /// An object of a bundle is not visible any more, which may have been one that stays as long as the others.
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
            // While its tree is being made visible, a newer version may take the place of one that has just appeared.
            if bundle.visible == 0 && bundle.phase == BundlePhase::Visible {
                self.past.push_back((timers.now, number));
            }
            if !bundle.together.is_empty() && bundle.visible == bundle.together.len() as u64 {
                self.abandoned.push(number);
            }
        }
    }

    /// A bundle of which nothing is left but what stays as long as the others.
    pub(in crate::core) fn next_abandoned(&mut self) -> Option<u64> {
        self.abandoned.pop()
    }

    /// When the next path of the past is to be forgotten.
    pub(in crate::core) fn next_past_bundle(&self) -> Option<Nanoseconds> {
        let (since, _) = self.past.front()?;
        Some(since.saturating_add(self.config.tombstone_age.as_nanos() as u64))
    }

    /// Forgets paths whose time is over.
    pub(in crate::core) fn forget_past_bundles(&mut self, timers: &TimerQueue) {
        while self.next_past_bundle().is_some_and(|at| at <= timers.now)
            && let Some((_, number)) = self.past.pop_front()
        {
            self.forget_bundle(number);
        }
    }

    /// More are remembered than may be: those go first of which nothing is left, then the oldest.
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

    pub(in crate::core) fn forget_bundle(&mut self, number: u64) {
        let path = self.table.remove(&number).and_then(|bundle| bundle.path);
        if let Some(path) = path {
            self.paths.remove(&path);
        }
    }

    /// Takes the members of a root out, in the order of their keys.
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
