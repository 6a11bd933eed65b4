//! Bundles, as the design has them: no member is visible before all members are.

use std::collections::{BTreeMap, BTreeSet};

use junctura_model::Code;
use junctura_wire::body::events;

use crate::clients::requests::{BUNDLE_PATHS, Offer, Place};
use crate::model::memory::Verdict;
use crate::model::{Going, Model, Number, WaitingOffer, Want};
use crate::run::universe::ONCE;

/// The state of a bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::model) enum Phase {
    Open,
    /// Within another that is not.
    Complete,
    Visible,
}

/// An object offered into a bundle.
#[derive(Clone, Debug)]
pub(in crate::model) struct Staged {
    offer: Offer,
    producer: u32,
    /// The client's request that has the bundle open.
    by: Number,
    request: u64,
}

/// A bundle that is not forgotten.
#[derive(Clone, Debug)]
pub(in crate::model) struct Bundle {
    path: Option<usize>,
    parent: Option<u64>,
    phase: Phase,
    declared: Option<u64>,
    orphan_ms: Option<u64>,
    openers: BTreeSet<Number>,
    /// By key.
    staged: BTreeMap<usize, Staged>,
    nested: BTreeSet<u64>,
    /// When it is given up.
    orphaned: Option<u64>,
    /// Its versions; and the time since which none is visible.
    versions: BTreeSet<u64>,
    past: Option<u64>,
    members: u64,
}

impl Staged {
    pub(in crate::model) fn offer(&self) -> &Offer {
        &self.offer
    }

    /// The request that has the bundle open, and its own.
    pub(in crate::model) fn asked(&self) -> (Number, u64) {
        (self.by, self.request)
    }
}

impl Bundle {
    /// The offers staged in it.
    pub(in crate::model) fn staged_offers(&self) -> impl Iterator<Item = &Offer> {
        self.staged.values().map(|staged| &staged.offer)
    }
}

impl Model {
    fn tree(&self, top: u64) -> Vec<u64> {
        let mut found = vec![top];
        for nested in self.bundles.get(&top).map(|one| &one.nested).into_iter().flatten() {
            found.extend(self.tree(*nested));
        }
        found
    }

    fn root(&self, number: u64) -> u64 {
        let parent = self.bundles.get(&number).and_then(|one| one.parent);
        parent.map_or(number, |parent| self.root(parent))
    }

    fn phase(&self, number: u64) -> Option<Phase> {
        self.bundles.get(&number).map(|one| one.phase)
    }

    /// Members that are there.
    fn there(&self, number: u64) -> u64 {
        let Some(one) = self.bundles.get(&number) else { return 0 };
        let complete = one
            .nested
            .iter()
            .filter(|nested| self.phase(**nested) != Some(Phase::Open));
        (one.staged.len() + complete.count()) as u64
    }

    fn taken(&self, number: u64) -> u64 {
        self.bundles
            .get(&number)
            .map_or(0, |one| (one.staged.len() + one.nested.len()) as u64)
    }

    fn is_full(&self, number: u64) -> bool {
        let declared = self.bundles.get(&number).and_then(|one| one.declared);
        declared.is_some_and(|declared| self.taken(number) >= declared)
    }

    fn of_path(&self, path: &str) -> Option<u64> {
        let has_it = |one: &Bundle| one.path.is_some_and(|at| BUNDLE_PATHS[at] == path);
        self.bundles
            .iter()
            .find(|(_, one)| has_it(one))
            .map(|(&number, _)| number)
    }

    pub(in crate::model) fn open_bundle(
        &mut self,
        client: u32,
        number: u64,
        path: Option<usize>,
        declared: Option<u64>,
        orphan_ms: Option<u64>,
    ) {
        if declared == Some(0) {
            return self.fail(client, number, Some(Code::InvalidArgument));
        }
        let standing = path.and_then(|path| self.of_path(BUNDLE_PATHS[path]));
        let outcome = match standing {
            Some(standing) => self.may_join(standing, declared, orphan_ms).map(|()| None),
            None => path.map_or(Ok(None), |path| self.above(BUNDLE_PATHS[path])),
        };
        let parent = match outcome {
            Ok(parent) => parent,
            Err(code) => return self.fail(client, number, Some(code)),
        };
        let which = standing.unwrap_or(self.bundles_made + 1);
        if !self.go_on(client, number, Going::Bundle(which)) {
            return;
        }
        if standing.is_none() {
            self.bundles_made += 1;
            self.bundles.insert(
                which,
                Bundle {
                    path,
                    parent,
                    phase: Phase::Open,
                    declared: None,
                    orphan_ms: None,
                    openers: BTreeSet::new(),
                    staged: BTreeMap::new(),
                    nested: BTreeSet::new(),
                    orphaned: None,
                    versions: BTreeSet::new(),
                    past: None,
                    members: 0,
                },
            );
            if let Some(parent) = parent.and_then(|parent| self.bundles.get_mut(&parent)) {
                parent.nested.insert(which);
            }
        }
        if let Some(one) = self.bundles.get_mut(&which) {
            one.declared = one.declared.or(declared);
            one.orphan_ms = one.orphan_ms.or(orphan_ms);
            one.openers.insert((client, number));
        }
        self.want(client, number, Want::Began(self.sequence));
        self.watch_bundles();
        self.complete_if_whole(which, Some(client));
    }

    fn may_join(&self, standing: u64, declared: Option<u64>, orphan_ms: Option<u64>) -> Result<(), Code> {
        let Some(one) = self.bundles.get(&standing) else {
            return Ok(());
        };
        let differ = |ours: Option<u64>, theirs: Option<u64>| ours.is_some() && theirs.is_some() && ours != theirs;
        if one.phase != Phase::Open {
            return Err(Code::BundleClosed);
        }
        let too_few = declared.is_some_and(|declared| declared < self.taken(standing));
        if differ(one.declared, declared) || differ(one.orphan_ms, orphan_ms) || too_few {
            return Err(Code::Conflict);
        }
        Ok(())
    }

    /// The bundle that a new one of this path is a member of.
    fn above(&self, path: &str) -> Result<Option<u64>, Code> {
        let stands_inside = self.bundles.values().any(|one| {
            let inner = one.path.and_then(|at| BUNDLE_PATHS[at].rsplit_once('/'));
            one.phase != Phase::Visible && inner.is_some_and(|(parent, _)| parent == path)
        });
        if stands_inside {
            return Err(Code::Conflict);
        }
        let Some(parent) = path.rsplit_once('/').and_then(|(parent, _)| self.of_path(parent)) else {
            return Ok(None);
        };
        match self.phase(parent) {
            Some(Phase::Open) if self.is_full(parent) => Err(Code::BundleFull),
            Some(Phase::Open) => Ok(Some(parent)),
            _ => Err(Code::BundleClosed),
        }
    }

    /// The bundle of a client's request.
    fn opened(&self, client: u32, through: u64) -> Result<u64, Code> {
        match self.going.get(&(client, through)) {
            Some(&Going::Bundle(which)) if self.phase(which) == Some(Phase::Open) => Ok(which),
            Some(Going::Bundle(_)) => Err(Code::BundleClosed),
            _ => Err(Code::Closed),
        }
    }

    /// Whether a key is staged, and a second object with it would be rejected.
    pub(in crate::model) fn is_reserved(&self, key: usize) -> bool {
        self.universe.keys[key].schema == ONCE && self.bundles.values().any(|one| one.staged.contains_key(&key))
    }

    /// Bytes that only the end of a bundle can free.
    pub(in crate::model) fn pinned_bytes(&self) -> u64 {
        let all = || self.bundles.values().flat_map(|one| one.staged.values());
        let staged = || all().filter(|staged| !self.is_in_file(&staged.offer));
        let in_file: u64 = all()
            .filter(|staged| self.is_in_file(&staged.offer))
            .map(|staged| staged.offer.length)
            .sum();
        let inline: u64 = staged()
            .filter(|staged| staged.offer.place == Place::Inline)
            .map(|staged| staged.offer.length)
            .sum();
        let segments: BTreeSet<u32> = staged()
            .filter_map(|staged| match staged.offer.place {
                Place::Slot(segment, _) => Some(segment),
                Place::Inline => None,
            })
            .collect();
        in_file + inline + segments.iter().map(|number| self.segments[number].bytes).sum::<u64>()
    }

    /// The outcome of an offer into a bundle, if it is served now.
    pub(in crate::model) fn verdict_staged(&self, client: u32, through: u64, offer: &Offer) -> Verdict {
        if let Some(flaw) = self.flaw(offer) {
            return flaw;
        }
        if offer.if_wanted {
            return Verdict::Fails(Some(Code::InvalidArgument));
        }
        let which = match self.opened(client, through) {
            Ok(which) => which,
            Err(code) => return Verdict::Fails(Some(code)),
        };
        let holder = self.tree(self.root(which)).into_iter().find(|number| {
            let one = self.bundles.get(number);
            one.is_some_and(|one| one.staged.contains_key(&offer.key))
        });
        match holder {
            Some(holder) if holder != which => return Verdict::Fails(Some(Code::Conflict)),
            None if self.is_taken(offer.key) => return Verdict::Fails(Some(Code::AlreadyExists)),
            None if self.is_full(which) => return Verdict::Fails(Some(Code::BundleFull)),
            Some(_) | None => {}
        }
        match self.verdict_of_place(client, offer) {
            Verdict::Waits if self.dropped.is_empty() && self.pinned_bytes() + offer.length > self.all_bytes() => {
                Verdict::Fails(Some(Code::PoolFull))
            }
            other => other,
        }
    }

    /// Stages an object; gives the number that it has afterwards.
    pub(in crate::model) fn stage(&mut self, client: u32, number: u64, through: u64, offer: &Offer) -> u64 {
        let Ok(which) = self.opened(client, through) else {
            return 0;
        };
        self.occupy(0, offer);
        let staged = Staged {
            offer: offer.clone(),
            producer: client,
            by: (client, through),
            request: number,
        };
        let one = self.bundles.get_mut(&which);
        if let Some(earlier) = one.and_then(|one| one.staged.insert(offer.key, staged)) {
            self.give_back_place(&earlier.offer);
        }
        self.pinned_most = self.pinned_most.max(self.pinned_bytes());
        let before = self.sequence;
        self.complete_if_whole(which, Some(client));
        let its_own = self.objects[before as usize..]
            .iter()
            .find(|object| object.offer.payload == offer.payload);
        its_own.map_or(0, |object| object.sequence)
    }

    fn complete_if_whole(&mut self, which: u64, by: Option<u32>) {
        let declared = self.bundles.get(&which).and_then(|one| one.declared);
        if self.phase(which) == Some(Phase::Open) && declared == Some(self.there(which)) {
            self.complete(which, by);
        }
    }

    fn complete(&mut self, which: u64, by: Option<u32>) {
        let Some(one) = self.bundles.get_mut(&which) else {
            return;
        };
        one.phase = Phase::Complete;
        match one.parent {
            Some(parent) => self.complete_if_whole(parent, by),
            None => self.reveal(which, by),
        }
        self.watch_bundles();
    }

    /// All of a tree becomes visible, in the order of keys.
    fn reveal(&mut self, root: u64, by: Option<u32>) {
        let tree = self.tree(root);
        let mut all = Vec::new();
        for &which in &tree {
            let there = self.there(which);
            if let Some(one) = self.bundles.get_mut(&which) {
                one.members = there;
                all.extend(
                    std::mem::take(&mut one.staged)
                        .into_values()
                        .map(|staged| (which, staged)),
                );
            }
        }
        all.sort_by_key(|(_, staged)| {
            let key = &self.universe.keys[staged.offer.key];
            (key.schema, key.dataset, key.time, key.number)
        });
        let (first, objects) = (if all.is_empty() { 0 } else { self.sequence + 1 }, all.len() as u64);
        let mut told: BTreeMap<Number, Vec<(u64, u64)>> = BTreeMap::new();
        let (mut durable, mut waiting) = (BTreeSet::new(), Vec::new());
        for (which, staged) in all {
            let sequence = self.appear(staged.producer, &staged.offer);
            told.entry(staged.by).or_default().push((staged.request, sequence));
            durable.extend(staged.offer.durable.then_some(sequence));
            if let Some(one) = self.bundles.get_mut(&which) {
                one.versions.insert(sequence);
            }
        }
        for which in tree.clone() {
            self.tell_of_bundle(events::COMPLETED, which, by);
            self.totals.completed += 1;
            let Some(one) = self.bundles.get_mut(&which) else {
                continue;
            };
            one.phase = Phase::Visible;
            let openers = std::mem::take(&mut one.openers);
            if one.path.is_none() {
                self.bundles.remove(&which);
            }
            for opener in openers {
                let versions = told.remove(&opener).unwrap_or_default();
                let want = Want::Completed {
                    first,
                    objects,
                    versions,
                };
                waiting.push((opener, want));
            }
        }
        self.await_members(root, tree, durable, waiting);
    }

    pub(in crate::model) fn seal(&mut self, client: u32, number: u64, through: u64) {
        let which = match self.opened(client, through) {
            Ok(which) => which,
            Err(code) => return self.fail(client, number, Some(code)),
        };
        let one = &self.bundles[&which];
        if one.declared.is_some() || one.nested.iter().any(|nested| self.phase(*nested) == Some(Phase::Open)) {
            return self.fail(client, number, Some(Code::Conflict));
        }
        let objects = self.staged_in(which);
        self.complete(which, Some(client));
        self.answer_completing(client, number, which, objects);
    }

    fn staged_in(&self, top: u64) -> u64 {
        let tree = self.tree(top);
        tree.iter().map(|which| self.bundles[which].staged.len() as u64).sum()
    }

    pub(in crate::model) fn abort(&mut self, client: u32, number: u64, through: u64) {
        let which = match self.opened(client, through) {
            Ok(which) => which,
            Err(code) => return self.fail(client, number, Some(code)),
        };
        let objects = self.staged_in(which);
        self.give_up(which, Some((client, through)));
        self.want(client, number, Want::Done(objects));
    }

    fn give_up(&mut self, top: u64, by: Option<Number>) {
        let tree = self.tree(top);
        for &which in &tree {
            self.tell_of_bundle(events::ABORTED, which, by.map(|(client, _)| client));
        }
        for which in tree {
            let Some(one) = self.bundles.remove(&which) else {
                continue;
            };
            self.totals.aborted += 1;
            let later = self.yet_to_be_dropped();
            for staged in one.staged.into_values() {
                if later.contains(&(staged.by, staged.request)) {
                    self.dropped.push(staged);
                } else {
                    self.give_back_place(&staged.offer);
                }
            }
            for opener in one.openers {
                self.going.remove(&opener);
                if Some(opener) != by {
                    self.want(opener.0, opener.1, Want::Ended(Code::Closed));
                }
            }
        }
        for one in self.bundles.values_mut() {
            one.nested.remove(&top);
        }
        self.watch_bundles();
    }

    /// Members of aborted bundles that were dropped since give back their places.
    pub(in crate::model) fn see_dropped(&mut self) {
        let later = self.yet_to_be_dropped();
        let is_gone = |staged: &mut Staged| !later.contains(&(staged.by, staged.request));
        for staged in self.dropped.extract_if(.., is_gone).collect::<Vec<_>>() {
            self.give_back_place(&staged.offer);
        }
    }

    pub(in crate::model) fn give_up_all(&mut self) {
        let roots = self
            .bundles
            .iter()
            .filter(|(_, one)| one.phase != Phase::Visible && one.parent.is_none());
        for which in roots.map(|(&which, _)| which).collect::<Vec<_>>() {
            self.give_up(which, None);
        }
    }

    /// A client does not have a bundle open any more.
    pub(in crate::model) fn leave_bundle(&mut self, which: u64, opener: Number) {
        self.forget_opener(opener);
        let Some(one) = self.bundles.get_mut(&which) else {
            return;
        };
        if one.openers.remove(&opener) && one.path.is_none() {
            return self.give_up(which, None);
        }
        self.watch_bundles();
    }

    /// Starts the orphan timeout of a bundle that no client has open, nor one within it.
    fn watch_bundles(&mut self) {
        for which in self.bundles.keys().copied().collect::<Vec<_>>() {
            let is_open = |number: &u64| self.bundles.get(number).is_some_and(|one| !one.openers.is_empty());
            let has_opener = self.tree(which).iter().any(is_open);
            let (now, usual) = (self.now, self.rules.orphan_timeout_ns);
            let Some(one) = self.bundles.get_mut(&which) else {
                continue;
            };
            if has_opener || one.phase != Phase::Open {
                one.orphaned = None;
            } else if one.orphaned.is_none() {
                one.orphaned = Some(now + one.orphan_ms.map_or(usual, |ms| ms * 1_000_000));
            }
        }
    }

    /// Time passed: the next bundle whose time is over is given up.
    pub(in crate::model) fn end_next_orphan(&mut self) -> bool {
        let now = self.now;
        let due = self.bundles.iter();
        let due = due.filter_map(|(&which, one)| Some((one.orphaned.filter(|&at| at <= now)?, which)));
        let Some((_, which)) = due.min() else {
            return false;
        };
        self.give_up(which, None);
        true
    }

    /// The outcome of a waiting offer. When time has passed, bundles may have been aborted before its turn, or after:
    /// the replies show which.
    pub(in crate::model) fn verdict_in_turn(
        &mut self,
        client: u32,
        waiting: &WaitingOffer,
        time_passed: bool,
        is_it: impl Fn(Verdict) -> bool,
    ) -> Verdict {
        loop {
            let verdict = self.verdict_of(client, waiting.bundle, &waiting.offer);
            if is_it(verdict) || !(time_passed && self.end_next_orphan()) {
                return verdict;
            }
        }
    }

    /// Forgets paths: they are remembered as long as one of their objects is visible, and then as long as a tombstone.
    pub(in crate::model) fn forget_bundles(&mut self, is_tick: bool) {
        let (now, age) = (self.now, self.rules.tombstone_age_ns);
        let visible: BTreeSet<u64> = self.visible.values().copied().collect();
        for one in self.bundles.values_mut().filter(|one| one.phase == Phase::Visible) {
            if one.past.is_none() && one.versions.is_disjoint(&visible) {
                one.past = Some(now);
            }
        }
        if is_tick {
            self.bundles
                .retain(|_, one| one.past.is_none_or(|since| since + age > now));
        }
    }

    /// Keys were freed: so are the paths of bundles of which no object is visible and the first key is free. A bundle is
    /// remembered while one within it is.
    pub(in crate::model) fn free_paths(&mut self) {
        let past = self.bundles.iter().rev().filter(|(_, one)| one.past.is_some());
        for which in past.map(|(&which, _)| which).collect::<Vec<_>>() {
            let one = &self.bundles[&which];
            let first = one.versions.first().map(|&first| self.object(first).offer.key);
            let is_free = first.is_none_or(|key| !self.visible.contains_key(&key) && !self.is_gone(key));
            if is_free && one.nested.iter().all(|nested| !self.bundles.contains_key(nested)) {
                self.bundles.remove(&which);
            }
        }
    }

    /// When a bundle is to be given up, or a path forgotten.
    pub(in crate::model) fn bundle_deadlines(&self) -> impl Iterator<Item = u64> {
        let age = self.rules.tombstone_age_ns;
        let bundles = self.bundles.values();
        bundles.flat_map(move |one| one.orphaned.into_iter().chain(one.past.map(|since| since + age)))
    }

    /// The time at which the next bundle is aborted that no client has open.
    #[must_use]
    pub fn next_orphan(&self) -> Option<u64> {
        self.bundles.values().filter_map(|one| one.orphaned).min()
    }

    fn tell_of_bundle(&mut self, event: u32, which: u64, client: Option<u32>) {
        let Some(one) = self.bundles.get(&which) else { return };
        let members = if one.members > 0 {
            one.members
        } else {
            self.there(which)
        };
        let path = one.path.map(|at| BUNDLE_PATHS[at].to_owned());
        // A disconnected client is not named.
        let want = Want::Event {
            event,
            sequence: None,
            client,
            name: None,
            bundle: Some((path, members, one.declared)),
        };
        self.want_of_watchers(event, &want);
    }

    /// Name, and what is due.
    pub(in crate::model) fn bundle_figures(&self) -> [(&'static str, u64); 5] {
        let staged = || self.bundles.values().flat_map(|one| one.staged.values());
        let visible = self.bundles.values().filter(|one| one.phase == Phase::Visible).count();
        [
            ("bundles.open", (self.bundles.len() - visible) as u64),
            ("bundles.remembered", visible as u64),
            ("bundles.staged", staged().count() as u64),
            ("bundles.staged_bytes", staged().map(|one| one.offer.length).sum()),
            ("bundles.ended", self.totals.completed + self.totals.aborted),
        ]
    }
}
