//! Numbers in insertion order; any number can be removed without a search.

use std::collections::BTreeMap;

/// A set of numbers in insertion order.
#[derive(Default)]
pub(in crate::core) struct OrderedIds {
    by_turn: BTreeMap<u64, u32>,
    turns: BTreeMap<u32, u64>,
    last_turn: u64,
}

impl OrderedIds {
    /// Appends a number, unless it is in the set.
    pub(in crate::core) fn insert(&mut self, id: u32) {
        if self.turns.contains_key(&id) {
            return;
        }
        self.last_turn += 1;
        self.turns.insert(id, self.last_turn);
        self.by_turn.insert(self.last_turn, id);
    }

    pub(in crate::core) fn remove(&mut self, id: u32) {
        if let Some(turn) = self.turns.remove(&id) {
            self.by_turn.remove(&turn);
        }
    }

    /// Removes and returns the newest number.
    pub(in crate::core) fn pop_last(&mut self) -> Option<u32> {
        let (_, id) = self.by_turn.pop_last()?;
        self.turns.remove(&id);
        Some(id)
    }

    pub(in crate::core) fn first(&self) -> Option<u32> {
        self.by_turn.values().next().copied()
    }

    pub(in crate::core) fn iter(&self) -> impl Iterator<Item = u32> {
        self.by_turn.values().copied()
    }

    /// Returns the place of a number in the order.
    pub(in crate::core) fn turn_of(&self, id: u32) -> Option<u64> {
        self.turns.get(&id).copied()
    }

    pub(in crate::core) fn len(&self) -> usize {
        self.turns.len()
    }

    pub(in crate::core) fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_leave_and_come_back_at_the_end() {
        let mut ids = OrderedIds::default();
        for id in [7, 3, 9, 3] {
            ids.insert(id);
        }
        assert_eq!(ids.iter().collect::<Vec<_>>(), [7, 3, 9]);
        ids.remove(7);
        ids.insert(7);
        assert_eq!((ids.first(), ids.pop_last(), ids.len()), (Some(3), Some(7), 2));
        assert!(ids.turn_of(3) < ids.turn_of(9) && ids.turn_of(7).is_none());
    }
}
