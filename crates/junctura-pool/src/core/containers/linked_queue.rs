//! Queues of numbers: each number links to its neighbors, so that any number can be removed without a search.
//!
//! The links of all numbers are in an array of their own, beside the table that the numbers are places in: neighbors are
//! found one after the other, and eight share a line of the processor's cache.

/// The place of no number.
const NONE: u32 = u32::MAX;

/// The neighbors of a number in its queue.
#[derive(Clone, Copy)]
struct QueueNeighbors {
    before: u32,
    after: u32,
}

/// The links of numbers, each of which is in one queue at most.
#[derive(Default)]
pub(in crate::core) struct QueueLinks(Vec<QueueNeighbors>);

/// The ends of a queue.
#[derive(Clone, Copy)]
pub(in crate::core) struct LinkedQueue {
    first: u32,
    last: u32,
}

impl Default for LinkedQueue {
    fn default() -> Self {
        Self {
            first: NONE,
            last: NONE,
        }
    }
}

impl LinkedQueue {
    /// Returns the oldest number.
    pub(in crate::core) fn first(self) -> Option<u32> {
        (self.first != NONE).then_some(self.first)
    }

    /// Iterates over all numbers, from the oldest.
    pub(in crate::core) fn iter(self, links: &QueueLinks) -> impl Iterator<Item = u32> {
        std::iter::successors(self.first(), |&id| {
            let after = links.0[id as usize].after;
            (after != NONE).then_some(after)
        })
    }

    /// Appends a number that is in no queue of these links, and is less than [`u32::MAX`].
    pub(in crate::core) fn push(&mut self, links: &mut QueueLinks, id: u32) {
        let links = &mut links.0;
        let neighbors = QueueNeighbors {
            before: self.last,
            after: NONE,
        };
        match links.get_mut(id as usize) {
            Some(its) => *its = neighbors,
            None => links.resize(id as usize + 1, neighbors),
        }
        match self.last {
            NONE => self.first = id,
            last => links[last as usize].after = id,
        }
        self.last = id;
    }

    /// Removes a number of the queue from any position.
    pub(in crate::core) fn remove(&mut self, links: &mut QueueLinks, id: u32) {
        let links = &mut links.0;
        let QueueNeighbors { before, after } = links[id as usize];
        match before {
            NONE => self.first = after,
            before => links[before as usize].after = after,
        }
        match after {
            NONE => self.last = before,
            after => links[after as usize].before = before,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_number_can_leave() {
        for leaving in [[0, 1, 2, 3], [3, 2, 1, 0], [1, 2, 0, 3], [2, 0, 3, 1]] {
            let (mut links, mut queue) = (QueueLinks::default(), LinkedQueue::default());
            (0..4).for_each(|id| queue.push(&mut links, id));
            let mut left = vec![0, 1, 2, 3];
            for id in leaving {
                assert_eq!(queue.iter(&links).collect::<Vec<_>>(), left);
                queue.remove(&mut links, id);
                left.retain(|&other| other != id);
            }
            assert!(queue.first().is_none() && queue.last == NONE);
            queue.push(&mut links, 2);
            assert_eq!(queue.iter(&links).collect::<Vec<_>>(), [2]);
        }
    }

    #[test]
    fn queues_share_links() {
        let (mut links, mut even, mut odd) = Default::default();
        for id in 0..6 {
            LinkedQueue::push(if id % 2 == 0 { &mut even } else { &mut odd }, &mut links, id);
        }
        even.remove(&mut links, 2);
        odd.push(&mut links, 2);
        assert_eq!(even.iter(&links).collect::<Vec<_>>(), [0, 4]);
        assert_eq!(odd.iter(&links).collect::<Vec<_>>(), [1, 3, 5, 2]);
    }
}
