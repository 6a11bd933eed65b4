//! Prepared look-ups of requests for very many objects: candidates of a selector, verified a few at a time.
//!
//! The matching objects of a list or a follow are watched as soon as they are found, as the request would do. An object
//! that leaves the index leaves the preparation, so a prepared request never keeps an object.

use junctura_model::Error;
use junctura_model::selector::SelectorSet;
use junctura_wire::Request;
use junctura_wire::body::{ListOrder, TargetBody};
use roaring::RoaringBitmap;

use crate::core::objects::order::{IncrementalSort, ResolvedOrder};
use crate::core::objects::table::ObjectTable;

/// The preparation of a client's next request.
pub(in crate::core) struct PreparedRequest {
    pub(in crate::core) selectors: SelectorSet,
    /// The number of objects verified in one step.
    pub(in crate::core) objects_at_once: usize,
    pub(in crate::core) order: Option<ListOrder<'static>>,
    pub(in crate::core) sorting: Option<ResolvedOrder>,
    /// Unverified candidates; `None` before there are any.
    pub(in crate::core) left: Option<RoaringBitmap>,
    /// The use of the matching objects.
    pub(in crate::core) purpose: LookPurpose,
    /// The matching objects, one run for each step.
    pub(in crate::core) runs: Vec<Vec<u32>>,
    /// For each run, the last slot that its step has verified: later runs have later slots.
    pub(in crate::core) run_ends: Vec<u32>,
    /// The matching objects in slots that were verified before with another object in them.
    pub(in crate::core) late: RoaringBitmap,
    /// The bytes that count toward its client's limit.
    pub(in crate::core) bytes: usize,
    /// The error of the request.
    pub(in crate::core) refusal: Option<Error>,
}

/// The use that a request makes of the objects that match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::core) enum LookPurpose {
    /// All, in an order, and watched: each run is sorted, its first object last.
    Read,
    /// The newest: each run is sorted by sequence numbers.
    Newest,
    /// All, in any order.
    Find,
}

impl LookPurpose {
    pub(in crate::core) fn of(request: &Request<'_>) -> Self {
        match request {
            Request::List(_) => Self::Read,
            Request::Follow(follow) if follow.cursor.is_none() && follow.group.is_none() => Self::Read,
            Request::Demand(_) => Self::Newest,
            _ => Self::Find,
        }
    }
}

/// Returns the selector of a request and the order of its results.
pub(in crate::core) fn concern<'a>(request: &'a Request<'_>) -> Option<(&'a str, Option<&'a ListOrder<'a>>)> {
    fn text<'a>(target: &'a TargetBody<'_>) -> Option<&'a str> {
        match target {
            TargetBody::Selector(text) => Some(text),
            TargetBody::Key { .. } => None,
        }
    }
    match request {
        Request::List(list) => Some((&list.selector, Some(&list.order))),
        Request::Follow(follow) => {
            let is_elsewhere = follow.requirement.is_some() || follow.requirement_name.is_some() || follow.only_new;
            let order = follow.cursor.is_none().then_some(&follow.order);
            (!is_elsewhere).then_some((&*follow.selector, order))
        }
        Request::Demand(demand) => text(&demand.target).map(|text| (text, None)),
        Request::WithdrawAll(withdraw) => text(&withdraw.target).map(|text| (text, None)),
        Request::Require(require) => Some((&require.selector, None)),
        _ => None,
    }
}

impl PreparedRequest {
    /// Adds an object that has entered the index, if it matches.
    pub(in crate::core) fn enter(&mut self, id: u32) {
        if let Some(left) = &mut self.left {
            left.insert(id);
        }
    }

    /// Removes an object that has left the index. Returns whether it was watched.
    #[must_use]
    pub(in crate::core) fn leave(&mut self, id: u32) -> bool {
        let Some(left) = &mut self.left else { return false };
        if left.remove(id) {
            return false;
        }
        let was_there = self.late.remove(id) || self.leave_run(id);
        was_there && self.purpose == LookPurpose::Read
    }

    /// Removes an object from the run that has it, if one does.
    fn leave_run(&mut self, id: u32) -> bool {
        let run = self.run_ends.partition_point(|&end| end < id);
        let Some(run) = self.runs.get_mut(run) else {
            return false;
        };
        let Some(place) = run.iter().position(|&one| one == id) else {
            return false;
        };
        run.remove(place);
        true
    }

    /// Verifies some objects, and keeps the matching ones: in a run, or among the late ones. Returns the number of objects
    /// in the run.
    pub(in crate::core) fn verify(&mut self, objects: &mut ObjectTable, some: &[u32]) -> usize {
        #[cfg(test)]
        objects.work.set(objects.work.get() + some.len() as u64);
        let mut run = Vec::new();
        let verified = self.run_ends.last().copied();
        for &id in some {
            let object = objects.get(id).filter(|object| object.is_indexed);
            let matches = object.is_some_and(|object| {
                let selector = self.selectors.of(usize::from(object.schema));
                selector.is_some_and(|selector| selector.matches(object.record()))
            });
            if !matches {
                continue;
            }
            if self.purpose == LookPurpose::Read {
                objects[id].watchers += 1;
            }
            if verified.is_some_and(|last| id <= last) {
                self.late.insert(id);
            } else {
                run.push(id);
            }
        }
        match (self.purpose, &self.sorting) {
            (LookPurpose::Newest, _) => run.sort_unstable_by_key(|&id| objects[id].sequence),
            (_, Some(sorting)) => run.sort_unstable_by(|&a, &b| objects.compare(sorting, b, a)),
            (_, None) => {}
        }
        // The memory counts toward a limit.
        run.shrink_to_fit();
        let found = run.len();
        if let Some(&last) = some.last().filter(|&&last| verified.is_none_or(|before| before < last)) {
            self.runs.push(run);
            self.run_ends.push(last);
        }
        found
    }

    pub(in crate::core) fn is_for(&self, request: &Request<'_>) -> bool {
        concern(request) == Some((self.selectors.text(), self.order.as_ref()))
    }

    /// Returns the matching objects, in no order.
    pub(in crate::core) fn into_found(self) -> Vec<u32> {
        let mut found: Vec<u32> = self.runs.into_iter().flatten().collect();
        found.extend(&self.late);
        found
    }

    /// Returns the same objects in the order of the request.
    pub(in crate::core) fn into_sorted(self) -> IncrementalSort {
        IncrementalSort::merged(self.runs, self.late.iter().collect())
    }

    /// Returns the newest of those that pass, if the request asks for one.
    pub(in crate::core) fn newest(&self, objects: &ObjectTable, passes: impl Fn(u32) -> bool) -> Option<u32> {
        let of_runs = self
            .runs
            .iter()
            .filter_map(|run| run.iter().rev().copied().find(|&id| passes(id)));
        let late = self.late.iter().filter(|&id| passes(id));
        of_runs.chain(late).max_by_key(|&id| objects[id].sequence)
    }
}
