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
mod path;
mod stage;

pub(in crate::core) use durability::Lasting;
pub(in crate::core) use stage::staged_flag;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use junctura_model::{Code, Error, Result};
use junctura_wire::Reply;
use junctura_wire::body;

use crate::Effects;
use crate::core::clients::client::{Pending, milliseconds};
use crate::core::engine::Core;
use crate::core::engine::timers::Nanoseconds;
use crate::core::engine::timers::Timer;
use crate::core::objects::key_table::ByKey;
use crate::core::objects::object::Keep;

/// No client has this number: timers of bundles are filed under it, apart from those of requirements.
const NOBODY: u32 = 0;
const TIMERS_OF_BUNDLES: u64 = 1 << 63;

/// Where a bundle stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::core) enum Phase {
    Open,
    /// It has all its members, and the bundle that it is nested in has not.
    Complete,
    Visible,
}

/// One bundle.
pub(in crate::core) struct Bundle {
    path: Option<String>,
    /// The one that it is nested in, and the one at the top: itself, unless it is nested.
    parent: Option<u64>,
    root: u64,
    phase: Phase,
    terms: Terms,
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
    members: ByKey<Member>,
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
struct Terms {
    declared: Option<u64>,
    orphan_timeout: Option<Nanoseconds>,
    attributes: Option<Attributes>,
}

#[derive(Clone, PartialEq, Eq)]
struct Attributes {
    schema: u16,
    record: Vec<u8>,
}

/// A staged object.
struct Member {
    object: u32,
    bundle: u64,
    /// Who staged it: the client and its request that has the bundle open.
    by: (u32, u64),
    /// The request with which it was staged.
    request: u64,
    keep: Keep,
    is_durable: bool,
}

impl Bundle {
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

    fn name(&self) -> body::BundleName<'_> {
        body::BundleName {
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
#[derive(Default)]
pub(in crate::core) struct Bundles {
    /// By number: open ones, and those that are remembered.
    table: BTreeMap<u64, Bundle>,
    made: u64,
    paths: BTreeMap<String, u64>,
    /// How many are not visible.
    open: usize,
    /// Keys that nobody else may offer, since their schema rejects a second object.
    reserved: ByKey<()>,
    pinned: stage::Pinned,
    /// Demands that take what is staged.
    lookers: BTreeSet<u32>,
    /// Those of which no object is visible any more, and since when.
    past: VecDeque<(Nanoseconds, u64)>,
    /// Those of which nothing is left but what stays as long as the others.
    abandoned: Vec<u64>,
    completed: u64,
    aborted: u64,
}

impl Bundles {
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

    fn get(&self, number: u64) -> Option<&Bundle> {
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

impl Core {
    /// Opens a bundle, or joins those who have it open.
    pub(in crate::core) fn open_bundle(
        &mut self,
        client: u32,
        request: u64,
        asked: &body::Bundle<'_>,
        fx: &mut impl Effects,
    ) -> Result<()> {
        let terms = self.bundle_terms(asked)?;
        if let Some(path) = &asked.path {
            path::check_path(path, &self.config.limits)?;
        }
        let standing = asked
            .path
            .as_deref()
            .and_then(|path| self.bundles.paths.get(path).copied());
        let number = match standing {
            Some(number) => {
                let agreed = self.agree_on_bundle(number, &terms)?;
                self.clients.add_pending(client, request, Pending::Bundle(number))?;
                if let Some(bundle) = self.bundles.table.get_mut(&number) {
                    bundle.terms = agreed;
                }
                number
            }
            None => self.make_bundle(client, request, asked.path.as_deref(), terms)?,
        };
        if let Some(bundle) = self.bundles.table.get_mut(&number) {
            bundle.openers.insert((client, request));
        }
        self.count_openers(number, 1);
        fx.reply(client, request, &Reply::Began(self.objects.sequence));
        self.complete_if_whole(number, Some(client), fx);
        Ok(())
    }

    fn bundle_terms(&self, asked: &body::Bundle<'_>) -> Result<Terms> {
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
        Ok(Terms {
            declared: asked.members,
            orphan_timeout: asked.orphan_timeout_ms.map(milliseconds),
            attributes: attributes.transpose()?,
        })
    }

    fn bundle_attributes(&self, given: &body::BundleAttributes<'_>) -> Result<Attributes> {
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
        Ok(Attributes {
            schema: given.schema,
            record: given.record.to_vec(),
        })
    }

    /// What holds for a bundle once another has opened it on these terms.
    fn agree_on_bundle(&self, number: u64, asked: &Terms) -> Result<Terms> {
        let Some(bundle) = self.bundles.get(number) else {
            return Ok(asked.clone());
        };
        if bundle.phase != Phase::Open {
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
        Ok(Terms {
            declared: ours.declared.or(asked.declared),
            orphan_timeout: ours.orphan_timeout.or(asked.orphan_timeout),
            attributes: ours.attributes.clone().or_else(|| asked.attributes.clone()),
        })
    }

    fn make_bundle(&mut self, client: u32, request: u64, path: Option<&str>, terms: Terms) -> Result<u64> {
        let limit = self.config.limits.bundles_open;
        if self.bundles.open >= limit {
            let cause = format!("the pool has {limit} that are not complete");
            return Err(Error::new(Code::LimitExceeded, "bundles", cause));
        }
        let parent = path.map_or(Ok(None), |path| self.bundle_above(path))?;
        let number = self.bundles.made + 1;
        self.clients.add_pending(client, request, Pending::Bundle(number))?;
        self.bundles.made = number;
        self.bundles.open += 1;
        let above = parent.and_then(|parent| self.bundles.table.get_mut(&parent));
        let root = above.map_or(number, |parent| {
            parent.nested.insert(number);
            parent.root
        });
        if let Some(path) = path {
            self.bundles.paths.insert(path.to_owned(), number);
        }
        let bundle = Bundle {
            path: path.map(str::to_owned),
            parent,
            root,
            phase: Phase::Open,
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
        self.bundles.table.insert(number, bundle);
        Ok(number)
    }

    /// The open bundle that one of this path is to be nested in.
    fn bundle_above(&self, path: &str) -> Result<Option<u64>> {
        // Who opens the outer one too late must learn it: what is inside would not be a member.
        let inner = self.bundles.paths.range(format!("{path}/")..);
        for (inner, number) in inner.take_while(|(inner, _)| path::is_under(inner, path)) {
            let is_open = self
                .bundles
                .get(*number)
                .is_some_and(|bundle| bundle.phase != Phase::Visible);
            if is_open && path::parent(inner) == Some(path) {
                let cause = format!("{inner} was opened before it, and stands by itself");
                return Err(Error::new(Code::Conflict, subject(Some(path)), cause));
            }
        }
        let above = path::parent(path).and_then(|parent| self.bundles.paths.get(parent).copied());
        let Some((number, parent)) = above.and_then(|number| Some((number, self.bundles.get(number)?))) else {
            return Ok(None);
        };
        if parent.phase != Phase::Open {
            return Err(closed(&parent.subject()));
        }
        parent.room_for_one()?;
        Ok(Some(number))
    }

    /// So many more, or fewer, have a bundle open. While nobody has, its orphan timeout counts.
    fn count_openers(&mut self, number: u64, more: i32) {
        for number in self.bundles.upwards(number) {
            if let Some(bundle) = self.bundles.table.get_mut(&number) {
                bundle.openers_below = bundle.openers_below.wrapping_add_signed(more);
            }
            self.watch_bundle(number);
        }
    }

    fn watch_bundle(&mut self, number: u64) {
        let Some(bundle) = self.bundles.table.get_mut(&number) else {
            return;
        };
        let timer = TIMERS_OF_BUNDLES | number;
        if bundle.openers_below > 0 || bundle.phase != Phase::Open {
            if bundle.orphaned.take().is_some() {
                self.timers.cancel(NOBODY, timer);
            }
        } else if bundle.orphaned.is_none() {
            let usual = self.config.orphan_timeout.as_nanos() as u64;
            let at = self
                .timers
                .now
                .saturating_add(bundle.terms.orphan_timeout.unwrap_or(usual));
            bundle.orphaned = Some(at);
            self.timers.set(at, NOBODY, timer, Timer::Bundle(number));
        }
    }

    /// A client does not have a bundle open any more. Its request is the caller's to settle.
    pub(in crate::core) fn leave_bundle(&mut self, client: u32, request: u64, number: u64, fx: &mut impl Effects) {
        self.durable.forget_opener(client, request);
        let Some(bundle) = self.bundles.table.get_mut(&number) else {
            return;
        };
        if !bundle.openers.remove(&(client, request)) {
            return;
        }
        if bundle.path.is_none() {
            return self.abort_bundle(number, None, "its producer has left it", fx);
        }
        self.count_openers(number, -1);
    }

    /// The bundle of this number, if it takes members.
    fn open_one(&self, number: u64) -> Result<&Bundle> {
        match self.bundles.get(number) {
            // One without a path is forgotten once it is visible.
            None => Err(closed(&subject(None))),
            Some(bundle) if bundle.phase != Phase::Open => Err(closed(&bundle.subject())),
            Some(bundle) => Ok(bundle),
        }
    }
}

impl Bundle {
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
