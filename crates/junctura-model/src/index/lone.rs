//! Standing selectors that ask only for an order or a presence: `levelist>=500`, `made=a/to/b`, `exists(number)`.
//!
//! Half-lines are sorted by their bound, so that an object meets exactly those that hold. A range from `low` to `high` stands
//! in the one or two blocks of the next power of two that cover it; an object looks at its block of each size in use.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::filed::Filed;
use super::filing::Lone;
use super::tokens::{Dim, dimension};

use crate::record::RecordRef;
use crate::schema::AttrId;
use crate::selector::expr::raw_items;
use crate::value::Type;

type Selectors<Id> = BTreeMap<(Id, u16), Arc<Filed<Id>>>;

/// Where a selector stands.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Shelf {
    Present(u64),
    /// Holds up to the number.
    Below(Dim, i128),
    /// Holds from the number on.
    Above(Dim, i128),
    /// Numbers whose upper bits, without that many lower ones, are these.
    Block(Dim, u8, i128),
}

/// How the values of a dimension become numbers, and the sizes of blocks in use.
struct Axis {
    scalar: Type,
    list: bool,
    used: usize,
    sizes: BTreeMap<u8, usize>,
}

pub(super) struct Lones<Id> {
    shelves: BTreeMap<Shelf, Selectors<Id>>,
    axes: BTreeMap<Dim, Axis>,
    present: usize,
}

impl<Id> Default for Lones<Id> {
    fn default() -> Self {
        Lones {
            shelves: BTreeMap::new(),
            axes: BTreeMap::new(),
            present: 0,
        }
    }
}

/// The shelves of a branch, the size of its blocks if it has some.
fn shelves(lone: &Lone) -> ([Shelf; 2], Option<u8>) {
    match *lone {
        Lone::Present { seed } => ([Shelf::Present(seed); 2], None),
        Lone::Between {
            dim,
            low: i128::MIN,
            high,
            ..
        } => ([Shelf::Below(dim, high); 2], None),
        Lone::Between {
            dim,
            low,
            high: i128::MAX,
            ..
        } => ([Shelf::Above(dim, low); 2], None),
        Lone::Between { dim, low, high, .. } => {
            let size = (u128::BITS - high.abs_diff(low).leading_zeros()).min(126) as u8;
            (
                [
                    Shelf::Block(dim, size, low >> size),
                    Shelf::Block(dim, size, high >> size),
                ],
                Some(size),
            )
        }
    }
}

impl<Id: Copy + Ord> Lones<Id> {
    pub(super) fn insert(&mut self, lone: &Lone, branch: u16, filed: &Arc<Filed<Id>>) {
        let (shelves, size) = shelves(lone);
        for shelf in shelves {
            self.shelves
                .entry(shelf)
                .or_default()
                .insert((filed.id, branch), Arc::clone(filed));
        }
        match *lone {
            Lone::Present { .. } => self.present += 1,
            Lone::Between { dim, scalar, list, .. } => {
                let axis = self.axes.entry(dim).or_insert(Axis {
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

    pub(super) fn remove(&mut self, lone: &Lone, branch: u16, id: Id) -> bool {
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

    fn forget(&mut self, lone: &Lone, size: Option<u8>) {
        let Lone::Between { dim, .. } = lone else {
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
    pub(super) fn walk(&self, record: RecordRef<'_>, visit: &mut impl FnMut(&Arc<Filed<Id>>)) {
        if self.present > 0 {
            for (id, name, _) in record.iter() {
                let (_, seed) = dimension(id, name.unwrap_or_default());
                self.meet(Shelf::Present(seed), visit);
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

    fn walk_axis(&self, dim: Dim, axis: &Axis, text: &str, visit: &mut impl FnMut(&Arc<Filed<Id>>)) {
        let Some(number) = axis.scalar.order(text) else { return };
        let below = self
            .shelves
            .range(Shelf::Below(dim, number)..=Shelf::Below(dim, i128::MAX));
        let above = self
            .shelves
            .range(Shelf::Above(dim, i128::MIN)..=Shelf::Above(dim, number));
        below
            .chain(above)
            .for_each(|(_, selectors)| selectors.values().for_each(&mut *visit));
        for &size in axis.sizes.keys() {
            self.meet(Shelf::Block(dim, size, number >> size), visit);
        }
    }

    fn meet(&self, on: Shelf, visit: &mut impl FnMut(&Arc<Filed<Id>>)) {
        if let Some(selectors) = self.shelves.get(&on) {
            selectors.values().for_each(visit);
        }
    }
}
