//! Queues through the entries of a table: each entry links to its neighbors, so that any entry can be removed without a
//! search.

use slab::Slab;

/// An entry's neighbors in one queue.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::core) struct QueueLinks {
    before: Option<u32>,
    after: Option<u32>,
}

/// The ends of a queue; the entries themselves are in a table.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::core) struct LinkedQueue {
    first: Option<u32>,
    last: Option<u32>,
}

impl LinkedQueue {
    /// Returns the oldest entry.
    pub(in crate::core) fn first(&self) -> Option<u32> {
        self.first
    }

    /// Iterates over all entries, from the first.
    pub(in crate::core) fn iter<T>(self, table: &Slab<T>, links: fn(&T) -> &QueueLinks) -> impl Iterator<Item = u32> {
        std::iter::successors(self.first, move |&id| links(&table[id as usize]).after)
    }

    /// Appends an entry of the table; `links` returns where entries store their neighbors in this queue.
    pub(in crate::core) fn push<T>(&mut self, table: &mut Slab<T>, id: u32, links: fn(&mut T) -> &mut QueueLinks) {
        *links(&mut table[id as usize]) = QueueLinks {
            before: self.last,
            after: None,
        };
        match self.last {
            Some(last) => links(&mut table[last as usize]).after = Some(id),
            None => self.first = Some(id),
        }
        self.last = Some(id);
    }

    /// Removes an entry from any position.
    pub(in crate::core) fn remove<T>(&mut self, table: &mut Slab<T>, id: u32, links: fn(&mut T) -> &mut QueueLinks) {
        let QueueLinks { before, after } = *links(&mut table[id as usize]);
        match before {
            Some(before) => links(&mut table[before as usize]).after = after,
            None => self.first = after,
        }
        match after {
            Some(after) => links(&mut table[after as usize]).before = before,
            None => self.last = before,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(queue: LinkedQueue, table: &Slab<QueueLinks>) -> Vec<u32> {
        queue.iter(table, |links| links).collect()
    }

    #[test]
    fn any_entry_can_leave() {
        for leaving in [[0, 1, 2, 3], [3, 2, 1, 0], [1, 2, 0, 3], [2, 0, 3, 1]] {
            let (mut table, mut queue) = (Slab::new(), LinkedQueue::default());
            for _ in 0..4 {
                let id = table.insert(QueueLinks::default()) as u32;
                queue.push(&mut table, id, |links| links);
            }
            let mut left = vec![0, 1, 2, 3];
            for id in leaving {
                assert_eq!(order(queue, &table), left);
                queue.remove(&mut table, id, |links| links);
                left.retain(|&other| other != id);
            }
            assert!(queue.first().is_none() && queue.last.is_none());
            queue.push(&mut table, 2, |links| links);
            assert_eq!(order(queue, &table), [2]);
        }
    }
}
