//! Selectors with only a comparison or a presence: `levelist>=500`, `made=a/to/b`, `exists(number)`.
//!
//! Half-lines are sorted by their bound, so that an object finds exactly the matching ones. A range from `low` to
//! `high` is filed in the one or two blocks of the next power of two that cover it; an object looks up its block of
//! each size in use.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::filed::FiledSelector;
use super::filing::LoneCondition;
use super::tokens::{Dim, dimension};

use crate::record::RecordRef;
use crate::schema::AttrId;
use crate::selector::expr::raw_items;
use crate::value::Type;

type Selectors<Id> = BTreeMap<(Id, u16), Arc<FiledSelector<Id>>>;

/// The location of a selector.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum LoneShelf {
    Present(u64),
    /// Holds up to the number.
    Below(Dim, i128),
    /// Holds from the number on.
    Above(Dim, i128),
    /// Numbers whose upper bits, without that many lower ones, are these.
    Block(Dim, u8, i128),
}

/// How the values of a dimension become numbers, and the sizes of blocks in use.
struct DimensionAxis {
    scalar: Type,
    list: bool,
    used: usize,
    sizes: BTreeMap<u8, usize>,
}

pub(super) struct LoneSelectors<Id> {
    shelves: BTreeMap<LoneShelf, Selectors<Id>>,
    axes: BTreeMap<Dim, DimensionAxis>,
    present: usize,
}

impl<Id> Default for LoneSelectors<Id> {
    fn default() -> Self {
        LoneSelectors {
            shelves: BTreeMap::new(),
            axes: BTreeMap::new(),
            present: 0,
        }
    }
}

/// The shelves of a branch, the size of its blocks if it has some.
fn shelves(lone: &LoneCondition) -> ([LoneShelf; 2], Option<u8>) {
    match *lone {
        LoneCondition::Present { seed } => ([LoneShelf::Present(seed); 2], None),
        LoneCondition::Between {
            dim,
            low: i128::MIN,
            high,
            ..
        } => ([LoneShelf::Below(dim, high); 2], None),
        LoneCondition::Between {
            dim,
            low,
            high: i128::MAX,
            ..
        } => ([LoneShelf::Above(dim, low); 2], None),
        LoneCondition::Between { dim, low, high, .. } => {
            let size = (u128::BITS - high.abs_diff(low).leading_zeros()).min(126) as u8;
            (
                [
                    LoneShelf::Block(dim, size, low >> size),
                    LoneShelf::Block(dim, size, high >> size),
                ],
                Some(size),
            )
        }
    }
}

impl<Id: Copy + Ord> LoneSelectors<Id> {
    pub(super) fn insert(&mut self, lone: &LoneCondition, branch: u16, filed: &Arc<FiledSelector<Id>>) {
        let (shelves, size) = shelves(lone);
        for shelf in shelves {
            self.shelves
                .entry(shelf)
                .or_default()
                .insert((filed.id, branch), Arc::clone(filed));
        }
        match *lone {
            LoneCondition::Present { .. } => self.present += 1,
            LoneCondition::Between { dim, scalar, list, .. } => {
                let axis = self.axes.entry(dim).or_insert(DimensionAxis {
                    scalar,
                    list,
                    used: 0,
                    sizes: BTreeMap::new(),
                });
                axis.used += 1;
                if let Some(size) = size {
                    *axis.sizes.entry(size).or_default() += 1;
                }
            }
        }
    }

    pub(super) fn remove(&mut self, lone: &LoneCondition, branch: u16, id: Id) -> bool {
        let (shelves, size) = shelves(lone);
        let mut found = false;
        for shelf in shelves {
            if let Some(selectors) = self.shelves.get_mut(&shelf) {
                found |= selectors.remove(&(id, branch)).is_some();
                if selectors.is_empty() {
                    self.shelves.remove(&shelf);
                }
            }
        }
        if found {
            self.forget(lone, size);
        }
        found
    }

    fn forget(&mut self, lone: &LoneCondition, size: Option<u8>) {
        let LoneCondition::Between { dim, .. } = lone else {
            return self.present -= 1;
        };
        let Some(axis) = self.axes.get_mut(dim) else { return };
        axis.used -= 1;
        if let Some(size) = size
            && let Some(count) = axis.sizes.get_mut(&size)
        {
            *count -= 1;
            if *count == 0 {
                axis.sizes.remove(&size);
            }
        }
        if axis.used == 0 {
            self.axes.remove(dim);
        }
    }

    /// Shows every selector that the record may match, some perhaps twice.
    pub(super) fn walk(&self, record: RecordRef<'_>, visit: &mut impl FnMut(&Arc<FiledSelector<Id>>)) {
        if self.present > 0 {
            for (id, name, _) in record.iter() {
                let (_, seed) = dimension(id, name.unwrap_or_default());
                self.meet(LoneShelf::Present(seed), visit);
            }
        }
        for (&dim, axis) in &self.axes {
            let Some(text) = record.get(AttrId(dim)) else { continue };
            if axis.list {
                raw_items(text).for_each(|item| self.walk_axis(dim, axis, item, visit));
            } else {
                self.walk_axis(dim, axis, text, visit);
            }
        }
    }

    fn walk_axis(&self, dim: Dim, axis: &DimensionAxis, text: &str, visit: &mut impl FnMut(&Arc<FiledSelector<Id>>)) {
        let Some(number) = axis.scalar.order(text) else { return };
        let below = self
            .shelves
            .range(LoneShelf::Below(dim, number)..=LoneShelf::Below(dim, i128::MAX));
        let above = self
            .shelves
            .range(LoneShelf::Above(dim, i128::MIN)..=LoneShelf::Above(dim, number));
        below
            .chain(above)
            .for_each(|(_, selectors)| selectors.values().for_each(&mut *visit));
        for &size in axis.sizes.keys() {
            self.meet(LoneShelf::Block(dim, size, number >> size), visit);
        }
    }

    fn meet(&self, on: LoneShelf, visit: &mut impl FnMut(&Arc<FiledSelector<Id>>)) {
        if let Some(selectors) = self.shelves.get(&on) {
            selectors.values().for_each(visit);
        }
    }
}
