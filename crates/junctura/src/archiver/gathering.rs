//! Objects that became visible as members of a bundle.

use std::collections::BTreeMap;

use crate::object::Object;

/// Members of incomplete bundles, to be archived with one commit: by the last number of their bundle.
#[derive(Default)]
pub(super) struct GatheredBundles {
    bundles: BTreeMap<u64, Vec<Object>>,
}

impl GatheredBundles {
    /// Adds an object; returns the objects that are complete with it: the object itself, if it is outside a bundle or
    /// the last of its bundle, and all members of a bundle whose last members do not match the selector.
    pub(super) fn add(&mut self, object: Object) -> Vec<Object> {
        let (sequence, rest) = (object.version().sequence, u64::from(object.rest_of_bundle()));
        let mut complete = self.before(&object);
        let last = sequence + rest;
        if rest > 0 {
            self.bundles.entry(last).or_default().push(object);
        } else {
            complete.extend(self.bundles.remove(&last).into_iter().flatten());
            complete.push(object);
        }
        complete
    }

    /// Returns bundles that are complete when this object arrives. The snapshot is in another order.
    pub(super) fn before(&mut self, object: &Object) -> Vec<Object> {
        if self.bundles.is_empty() || object.in_snapshot() {
            return Vec::new();
        }
        let later = self.bundles.split_off(&object.version().sequence);
        let over = std::mem::replace(&mut self.bundles, later);
        over.into_values().flatten().collect()
    }

    /// Returns everything, complete or not.
    pub(super) fn take_all(&mut self) -> Vec<Object> {
        std::mem::take(&mut self.bundles).into_values().flatten().collect()
    }

    pub(super) fn len(&self) -> usize {
        self.bundles.values().map(Vec::len).sum()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bundles.is_empty()
    }
}
