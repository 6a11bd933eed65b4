//! Objects that do not come alone.

use std::collections::BTreeMap;

use crate::object::Object;

/// Members of bundles that wait for the others, to be archived with one commit: by the last number of their bundle.
#[derive(Default)]
pub(super) struct GatheredBundles {
    bundles: BTreeMap<u64, Vec<Object>>,
}

impl GatheredBundles {
    /// Takes an object; gives what is complete with it: the object itself, where it came alone or is the last of its bundle, and all of
    /// a bundle whose last members do not come, since the selector does not mean them.
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

    /// Bundles of which nothing comes any more when this object does. What was there when the archiver began comes in another order.
    pub(super) fn before(&mut self, object: &Object) -> Vec<Object> {
        if self.bundles.is_empty() || object.in_snapshot() {
            return Vec::new();
        }
        let later = self.bundles.split_off(&object.version().sequence);
        let over = std::mem::replace(&mut self.bundles, later);
        over.into_values().flatten().collect()
    }

    /// Everything, complete or not.
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
