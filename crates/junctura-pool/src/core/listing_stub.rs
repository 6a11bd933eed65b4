//! Slots.
use junctura_model::selector::Selector;
use junctura_model::{RecordRef, Schema};
#[derive(Default)]
pub(crate) struct Objects(std::collections::BTreeSet<u32>);
impl Objects {
    pub(crate) fn insert(&mut self, slot: u32, _: RecordRef<'_>, _: &Schema) { self.0.insert(slot); }
    pub(crate) fn remove(&mut self, slot: u32, _: RecordRef<'_>, _: &Schema) { self.0.remove(&slot); }
    pub(crate) fn candidates(&self, _: &Selector) -> Vec<u32> { self.0.iter().copied().collect() }
}
