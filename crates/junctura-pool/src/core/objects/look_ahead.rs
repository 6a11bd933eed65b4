//! Prepared look-ups of requests for very many objects: candidates of a selector, verified a few at a time.

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
    /// The matching objects, sorted if there is an order, one run for each step.
    pub(in crate::core) runs: Vec<Vec<u32>>,
    /// Slots of objects that were removed since; they are skipped in the runs.
    pub(in crate::core) gone: RoaringBitmap,
    /// The matching objects in slots of removed ones.
    pub(in crate::core) late: RoaringBitmap,
    /// The bytes that count toward its client's limit.
    pub(in crate::core) bytes: usize,
    /// The error of the request.
    pub(in crate::core) refusal: Option<Error>,
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

    /// Removes an object that has left the index.
    pub(in crate::core) fn leave(&mut self, id: u32) {
        if let Some(left) = &mut self.left
            && !left.remove(id)
        {
            self.gone.insert(id);
            self.late.remove(id);
        }
    }

    /// Returns the matching ones of some objects, in order.
    pub(in crate::core) fn verify(&mut self, objects: &ObjectTable, some: &[u32]) -> Vec<u32> {
        #[cfg(test)]
        objects.work.set(objects.work.get() + some.len() as u64);
        let mut run = Vec::new();
        for &id in some {
            let object = objects.get(id).filter(|object| object.is_indexed);
            let matches = object.is_some_and(|object| {
                let selector = self.selectors.of(usize::from(object.schema));
                selector.is_some_and(|selector| selector.matches(object.record()))
            });
            if matches && self.gone.contains(id) {
                self.late.insert(id);
            } else if matches {
                run.push(id);
            }
        }
        if let Some(sorting) = &self.sorting {
            run.sort_unstable_by(|&a, &b| objects.compare(sorting, b, a));
        }
        // The memory counts toward a limit.
        run.shrink_to_fit();
        run
    }

    pub(in crate::core) fn is_for(&self, request: &Request<'_>) -> bool {
        concern(request) == Some((self.selectors.text(), self.order.as_ref()))
    }

    /// Returns the matching objects, in no order.
    pub(in crate::core) fn into_found(self) -> Vec<u32> {
        let mut found: Vec<u32> = self.runs.into_iter().flatten().collect();
        if !self.gone.is_empty() {
            found.retain(|&id| !self.gone.contains(id));
        }
        found.extend(&self.late);
        found
    }

    /// Returns the same objects in the order of the request.
    pub(in crate::core) fn into_sorted(mut self) -> IncrementalSort {
        if !self.gone.is_empty() {
            for run in &mut self.runs {
                run.retain(|&id| !self.gone.contains(id));
            }
        }
        IncrementalSort::merged(self.runs, self.late.iter().collect())
    }

    pub(in crate::core) fn is_sorted(&self) -> bool {
        self.sorting.is_some()
    }
}
