//! Flows: objects and bytes by component, by dataset, and from component to component.
//!
//! Plain sums, added to as objects come and go; the board shows them. A component is the folded name of clients
//! ([`junctura_board::folded_name`]), a dataset the first level of a key.

use junctura_board::layout::{COMPONENTS_MAX, DATASETS_MAX};
use junctura_board::{HistogramCounts, NameTable, folded_name};

use crate::core::engine::timers::Nanoseconds;

/// Sums of a component.
#[derive(Debug, Default)]
pub(in crate::core) struct ComponentSums {
    pub(in crate::core) clients: u64,
    pub(in crate::core) joined: u64,
    pub(in crate::core) left: u64,
    pub(in crate::core) offered: u64,
    pub(in crate::core) offered_bytes: u64,
    pub(in crate::core) delivered: u64,
    pub(in crate::core) delivered_bytes: u64,
    pub(in crate::core) released: u64,
}

/// Sums of a dataset.
#[derive(Debug, Default)]
pub(in crate::core) struct DatasetSums {
    pub(in crate::core) offered: u64,
    pub(in crate::core) offered_bytes: u64,
    pub(in crate::core) visible: u64,
    pub(in crate::core) visible_bytes: u64,
}

/// See the module's page.
pub(in crate::core) struct FlowSums {
    pub(in crate::core) components: NameTable<String, ComponentSums>,
    /// By the hash of the first level.
    pub(in crate::core) datasets: NameTable<u64, DatasetSums>,
    /// Objects and bytes from each component to each.
    edges: Vec<[u64; 2]>,
    pub(in crate::core) sizes: HistogramCounts,
    /// Nanoseconds from the time that an object is visible to its deliveries.
    pub(in crate::core) delays: HistogramCounts,
    /// Nanoseconds from deliveries to their releases.
    pub(in crate::core) holds: HistogramCounts,
    /// Nanoseconds that offers and leases waited until they had memory.
    pub(in crate::core) memory_waits: HistogramCounts,
}

impl Default for FlowSums {
    fn default() -> Self {
        Self {
            components: NameTable::new(COMPONENTS_MAX),
            datasets: NameTable::new(DATASETS_MAX),
            edges: vec![[0; 2]; COMPONENTS_MAX * COMPONENTS_MAX],
            sizes: HistogramCounts::default(),
            delays: HistogramCounts::default(),
            holds: HistogramCounts::default(),
            memory_waits: HistogramCounts::default(),
        }
    }
}

impl FlowSums {
    /// A client has introduced itself. Returns the place of its component.
    pub(in crate::core) fn join(&mut self, name: &str) -> u8 {
        let folded = folded_name(name);
        let place = self.components.place(folded.clone(), || folded);
        let sums = self.components.count(place);
        sums.clients += 1;
        sums.joined += 1;
        place as u8
    }

    /// A client that had introduced itself has left.
    pub(in crate::core) fn leave(&mut self, component: u8) {
        let sums = self.components.count(component.into());
        sums.clients -= 1;
        sums.left += 1;
    }

    /// An object of a component became visible; `name` gives the text of its dataset.
    pub(in crate::core) fn appear(&mut self, component: u8, dataset: u64, bytes: u64, name: impl FnOnce() -> String) {
        self.sizes.add(bytes);
        let sums = self.components.count(component.into());
        sums.offered += 1;
        sums.offered_bytes += bytes;
        let place = self.datasets.place(dataset, name);
        let sums = self.datasets.count(place);
        sums.offered += 1;
        sums.offered_bytes += bytes;
        sums.visible += 1;
        sums.visible_bytes += bytes;
    }

    /// An object is no longer visible.
    pub(in crate::core) fn vanish(&mut self, dataset: u64, bytes: u64) {
        let place = self.datasets.place(dataset, String::new);
        let sums = self.datasets.count(place);
        sums.visible -= 1;
        sums.visible_bytes -= bytes;
    }

    /// An object of one component was delivered to another, so long after it became visible; `None`: it is not visible.
    pub(in crate::core) fn deliver(&mut self, from: u8, to: u8, bytes: u64, delay: Option<Nanoseconds>) {
        if let Some(delay) = delay {
            self.delays.add(delay);
        }
        let sums = self.components.count(to.into());
        sums.delivered += 1;
        sums.delivered_bytes += bytes;
        let edge = &mut self.edges[usize::from(from) * COMPONENTS_MAX + usize::from(to)];
        edge[0] += 1;
        edge[1] += bytes;
    }

    /// A client of a component released an object, so long after its delivery.
    pub(in crate::core) fn release(&mut self, component: u8, hold: Nanoseconds) {
        self.holds.add(hold);
        self.components.count(component.into()).released += 1;
    }

    /// Objects and bytes that the component of one place has given to that of another.
    pub(in crate::core) fn edge(&self, from: usize, to: usize) -> [u64; 2] {
        self.edges[from * COMPONENTS_MAX + to]
    }
}
