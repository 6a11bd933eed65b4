//! An index of the visible objects of one schema by their values: a selector finds a hundred matching objects among a
//! million without a scan.
//!
//! Objects are slot numbers. Each value of each attribute has the set of its objects; a selector combines these sets:
//! lists and ranges are unions, `and` is an intersection that begins with the smallest set, `not` is a complement if
//! the negated set is exact. Operations that cost more than verification are omitted, so the result may contain false
//! candidates; it never misses a match. Smaller and denser slot numbers give smaller sets.

use std::collections::BTreeMap;

use roaring::RoaringBitmap;

use super::column::IndexColumn;
use super::posting::{SlotSet, union};
use crate::record::RecordRef;
use crate::schema::{AttrId, Schema};
use crate::selector::Selector;
use crate::selector::expr::{AttributeTest, SelectorExpr, TestCheck, TestedAttribute};
use crate::value::Type;

/// Few enough to verify instead of joining further sets.
const VERIFIED_MAX: u64 = 64;
/// Joining the set of one value costs about as much as verifying so many objects.
const VALUE_COST: u64 = 4;

/// Slots of the visible objects of one schema.
#[derive(Default)]
pub struct ObjectIndex {
    all: RoaringBitmap,
    declared: Vec<Option<IndexColumn>>,
    undeclared: BTreeMap<Box<str>, IndexColumn>,
}

/// The slots that may match; exactly those that do, if `exact`.
struct FoundSlots {
    slots: RoaringBitmap,
    exact: bool,
}

impl ObjectIndex {
    /// None yet.
    #[must_use]
    pub fn new() -> ObjectIndex {
        ObjectIndex::default()
    }

    /// Adds an object of this schema under a slot that no other one has.
    pub fn insert(&mut self, slot: u32, record: RecordRef<'_>, schema: &Schema) {
        self.all.insert(slot);
        if self.declared.is_empty() {
            self.declared.resize_with(schema.attributes().len(), || None);
        }
        for (id, name, text) in record.iter() {
            match name {
                None => {
                    let column = self.declared[id.index()].get_or_insert_with(|| {
                        let attribute = schema.attribute(id);
                        IndexColumn::new(attribute.kind.scalar, attribute.kind.list, !attribute.optional)
                    });
                    column.insert(slot, text);
                }
                Some(name) => self.undeclared_column(name).insert(slot, text),
            }
        }
    }

    fn undeclared_column(&mut self, name: &str) -> &mut IndexColumn {
        if !self.undeclared.contains_key(name) {
            self.undeclared
                .insert(name.into(), IndexColumn::new(Type::String, false, false));
        }
        self.undeclared
            .entry(name.into())
            .or_insert_with(|| IndexColumn::new(Type::String, false, false))
    }

    /// Takes out the object that was added with this record.
    pub fn remove(&mut self, slot: u32, record: RecordRef<'_>, _schema: &Schema) {
        if !self.all.remove(slot) {
            return;
        }
        for (id, name, text) in record.iter() {
            match name {
                None => {
                    if let Some(column) = self.declared.get_mut(id.index()).and_then(Option::as_mut) {
                        column.remove(slot, text);
                    }
                }
                Some(name) => {
                    if let Some(column) = self.undeclared.get_mut(name) {
                        column.remove(slot, text);
                        if column.is_empty() {
                            self.undeclared.remove(name);
                        }
                    }
                }
            }
        }
        if self.all.is_empty() {
            *self = ObjectIndex::default();
        }
    }

    /// The slots of all objects that the selector matches, and perhaps of some that it does not: verify each.
    #[must_use]
    pub fn candidates(&self, selector: &Selector) -> RoaringBitmap {
        self.find(selector.expr()).slots
    }

    /// Returns the slots of all objects that the selector matches, and perhaps of others; and whether it matches each
    /// object.
    #[must_use]
    pub fn found(&self, selector: &Selector) -> (RoaringBitmap, bool) {
        let found = self.find(selector.expr());
        (found.slots, found.exact)
    }

    /// Returns the values that objects have in an attribute, and how many of `among` have each; the name is that of an
    /// undeclared attribute. `None` where that takes long, or an object may have several values.
    #[must_use]
    pub fn value_counts(&self, id: AttrId, name: &str, among: &RoaringBitmap) -> Option<Vec<(&str, u64)>> {
        /// Sets of more objects take long to join.
        const JOINED_MAX: u64 = 65_536;
        let column = match id {
            AttrId::OPEN => self.undeclared.get(name),
            _ => self.declared.get(id.index()).and_then(Option::as_ref),
        };
        let Some(column) = column else {
            return Some(Vec::new());
        };
        let are_all = among.len() == self.len();
        if !are_all && self.len() > JOINED_MAX {
            return None;
        }
        let counts = column.counts(|posting| {
            if are_all {
                posting.len()
            } else {
                posting.len_among(among)
            }
        });
        counts.map(|counts| counts.filter(|&(_, count)| count > 0).collect())
    }

    /// Returns the number of objects.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.all.len()
    }

    /// Returns whether there are no objects.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    fn find(&self, expr: &SelectorExpr) -> FoundSlots {
        match expr {
            SelectorExpr::Everything => self.everything(true),
            SelectorExpr::Test(test) => self.test(test),
            SelectorExpr::Not(inner) => self.complement(&self.find(inner)),
            SelectorExpr::Any(parts) => parts
                .iter()
                .map(|part| self.find(part))
                .fold(FoundSlots::nothing(), FoundSlots::or),
            SelectorExpr::All(parts) => self.find_all(parts),
        }
    }

    fn everything(&self, exact: bool) -> FoundSlots {
        FoundSlots {
            slots: self.all.clone(),
            exact,
        }
    }

    /// Only what is known exactly can be turned around.
    fn complement(&self, found: &FoundSlots) -> FoundSlots {
        if found.exact {
            FoundSlots {
                slots: &self.all - &found.slots,
                exact: true,
            }
        } else {
            self.everything(false)
        }
    }

    /// Joins the smallest sets first, and stops where verifying is cheaper.
    fn find_all(&self, parts: &[SelectorExpr]) -> FoundSlots {
        let mut order: Vec<(u64, u64, &SelectorExpr)> = Vec::with_capacity(parts.len());
        for part in parts {
            let (size, cost) = self.estimate(part);
            order.push((size, cost, part));
        }
        order.sort_by_key(|&(size, cost, _)| (size, cost));
        let mut found: Option<FoundSlots> = None;
        for (size, cost, part) in order {
            found = Some(match found {
                None => self.find(part),
                Some(so_far) if so_far.slots.len() <= VERIFIED_MAX.max(cost) => FoundSlots { exact: false, ..so_far },
                // All objects have it.
                Some(so_far)
                    if size >= self.len() && matches!(part, SelectorExpr::Test(test) if self.is_common(test)) =>
                {
                    so_far
                }
                Some(so_far) => self.narrow(so_far, part),
            });
        }
        found.unwrap_or_else(|| self.everything(true))
    }

    fn narrow(&self, mut found: FoundSlots, part: &SelectorExpr) -> FoundSlots {
        if let SelectorExpr::Test(AttributeTest {
            attr,
            check: TestCheck::Among { negated: false, items },
        }) = part
            && items.len() == 1
            && let Some(posting) = self.column(attr).and_then(|column| column.value(items.iter().next()?))
        {
            posting.narrow(&mut found.slots);
            return found;
        }
        let other = self.find(part);
        FoundSlots {
            slots: found.slots & other.slots,
            exact: found.exact && other.exact,
        }
    }

    /// Returns whether it is an equality that every object passes.
    fn is_common(&self, test: &AttributeTest) -> bool {
        let TestCheck::Among { negated: false, items } = &test.check else {
            return false;
        };
        let column = self.column(&test.attr);
        column.is_some_and(|column| {
            items
                .iter()
                .any(|item| column.value(item).is_some_and(|p| p.len() == self.len()))
        })
    }

    /// At most how many objects it finds, and what joining costs.
    fn estimate(&self, expr: &SelectorExpr) -> (u64, u64) {
        let SelectorExpr::Test(test) = expr else {
            return (self.len(), VERIFIED_MAX);
        };
        let Some(column) = self.column(&test.attr) else {
            return (0, 0);
        };
        match &test.check {
            TestCheck::Among { negated: false, items } => {
                let size = items
                    .iter()
                    .filter_map(|item| column.value(item))
                    .map(SlotSet::len)
                    .sum();
                (size, items.len() as u64 * VALUE_COST)
            }
            TestCheck::Range { negated: false, range } => self.estimate_span(column, range.low(), range.high()),
            TestCheck::Compare(bound) => {
                let (low, high) = bound.span();
                self.estimate_span(column, low, high)
            }
            TestCheck::Exists => (column.present().map_or(self.len(), RoaringBitmap::len), VALUE_COST),
            _ => (self.len(), VERIFIED_MAX),
        }
    }

    fn estimate_span(&self, column: &IndexColumn, low: i128, high: i128) -> (u64, u64) {
        // Counted only as far as it stays interesting.
        const COUNTED_MAX: usize = 256;
        let (mut size, mut values) = (0, 0);
        for (_, posting) in column.between(low, high).take(COUNTED_MAX) {
            size += posting.len();
            values += 1;
        }
        if values == COUNTED_MAX as u64 {
            (self.len(), values * VALUE_COST)
        } else {
            (size, values * VALUE_COST)
        }
    }

    fn column(&self, attr: &TestedAttribute) -> Option<&IndexColumn> {
        if attr.id == AttrId::OPEN {
            return self.undeclared.get(&*attr.name);
        }
        self.declared.get(attr.id.index())?.as_ref()
    }

    fn test(&self, test: &AttributeTest) -> FoundSlots {
        let Some(column) = self.column(&test.attr) else {
            return FoundSlots::nothing();
        };
        match &test.check {
            TestCheck::Exists => FoundSlots {
                slots: self.present(column),
                exact: true,
            },
            TestCheck::Among { negated, items } => {
                let slots = union(items.iter().filter_map(|item| column.value(item)));
                self.perhaps_not(*negated, column, slots)
            }
            TestCheck::Range { negated, range } => {
                let values = column
                    .between(range.low(), range.high())
                    .filter(|(number, _)| range.contains(*number));
                self.perhaps_not(*negated, column, union(values.map(|(_, posting)| posting)))
            }
            TestCheck::Compare(bound) => {
                let (low, high) = bound.span();
                FoundSlots {
                    slots: union(column.between(low, high).map(|(_, posting)| posting)),
                    exact: true,
                }
            }
            TestCheck::Like(_) => match column.passing(|text| test.holds(text)) {
                Some(slots) => FoundSlots { slots, exact: true },
                None => FoundSlots {
                    slots: self.present(column),
                    exact: false,
                },
            },
        }
    }

    fn present(&self, column: &IndexColumn) -> RoaringBitmap {
        column.present().unwrap_or(&self.all).clone()
    }

    /// `!=`: those that have the attribute, without those that have one of the values.
    fn perhaps_not(&self, negated: bool, column: &IndexColumn, slots: RoaringBitmap) -> FoundSlots {
        FoundSlots {
            slots: if negated { self.present(column) - slots } else { slots },
            exact: true,
        }
    }
}

impl FoundSlots {
    fn nothing() -> FoundSlots {
        FoundSlots {
            slots: RoaringBitmap::new(),
            exact: true,
        }
    }

    fn or(self, other: FoundSlots) -> FoundSlots {
        FoundSlots {
            slots: self.slots | other.slots,
            exact: self.exact && other.exact,
        }
    }
}
