//! Clients whose offers wait, by the resource that they wait for.
//!
//! The resource decides how it is freed: spilling frees memory only; evicting archived objects frees memory and room
//! for records; neither reduces what requirements are owed.

use std::collections::VecDeque;

use hashbrown::HashMap;

/// The resource that an offer waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::core) enum MemoryShortage {
    /// Memory for payloads.
    Payload,
    /// Room for attributes, keys and index entries.
    Records,
    /// Requirements to be owed less.
    Owed,
}

impl MemoryShortage {
    pub(in crate::core) const ALL: [Self; 3] = [Self::Payload, Self::Records, Self::Owed];
}

/// Clients whose offers wait; see the module.
#[derive(Default)]
pub(in crate::core) struct StalledOffers {
    /// In the order in which they began to wait.
    clients: VecDeque<u32>,
    /// The resource that the first waiting offer of each client waits for.
    shortages: HashMap<u32, MemoryShortage>,
    /// The number of clients that wait for each resource.
    counts: [usize; 3],
}

impl StalledOffers {
    pub(in crate::core) fn is_empty(&self) -> bool {
        self.clients.is_empty()
    }

    /// Returns the clients in the order in which they began to wait.
    pub(in crate::core) fn clients(&self) -> Vec<u32> {
        self.clients.iter().copied().collect()
    }

    pub(in crate::core) fn shortage_of(&self, client: u32) -> Option<MemoryShortage> {
        self.shortages.get(&client).copied()
    }

    /// Whether an offer waits for this resource.
    pub(in crate::core) fn wait_for(&self, shortage: MemoryShortage) -> bool {
        self.counts[shortage as usize] > 0
    }

    /// Whether a client other than this one waits for this resource.
    pub(in crate::core) fn others_wait_for(&self, shortage: MemoryShortage, client: u32) -> bool {
        let own = usize::from(self.shortage_of(client) == Some(shortage));
        self.counts[shortage as usize] > own
    }

    /// Records that a client waits for this resource, instead of an earlier one. Returns whether that is new.
    pub(in crate::core) fn note(&mut self, client: u32, shortage: MemoryShortage) -> bool {
        let before = self.shortages.insert(client, shortage);
        match before {
            Some(before) => self.counts[before as usize] -= 1,
            None => self.clients.push_back(client),
        }
        self.counts[shortage as usize] += 1;
        before != Some(shortage)
    }

    pub(in crate::core) fn remove(&mut self, client: u32) {
        if let Some(shortage) = self.shortages.remove(&client) {
            self.counts[shortage as usize] -= 1;
            self.clients.retain(|&stalled| stalled != client);
        }
    }
}
