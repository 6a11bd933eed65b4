//! A pool that ends by itself when its programs have connected and disconnected.
//!
//! ```text
//!   awaited --a client of the name joins--> here --the last of them leaves, in whatever way--> gone
//!                                             ^                                                 |
//!                                             '---------------- another joins ------------------'
//! ```
//! When all named components are gone, the pool drains, without a time limit: objects that requirements are owed are
//! still received. Visitors do not count.

use serde::Serialize;

/// The components of a pool; see the module.
#[derive(Default)]
pub(in crate::core) struct PoolLifetime {
    named: Vec<PoolComponent>,
}

struct PoolComponent {
    name: String,
    came: bool,
    here: u32,
}

/// A component of the pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ComponentStat {
    /// The name that its clients state.
    pub name: String,
    /// `awaited`, `here`, or `gone`.
    pub state: &'static str,
    /// The number of clients with this name.
    pub clients: u32,
}

impl PoolLifetime {
    pub(in crate::core) fn new(names: &[String]) -> Self {
        let component = |name: &String| PoolComponent {
            name: name.clone(),
            came: false,
            here: 0,
        };
        Self {
            named: names.iter().map(component).collect(),
        }
    }

    /// Records the name of a client; returns the component that it belongs to.
    pub(in crate::core) fn join(&mut self, name: &str) -> Option<usize> {
        let at = self.named.iter().position(|one| one.name == name)?;
        let component = &mut self.named[at];
        component.came = true;
        component.here += 1;
        Some(at)
    }

    /// Removes a client of a component.
    pub(in crate::core) fn leave(&mut self, at: usize) {
        self.named[at].here -= 1;
    }

    /// Whether the pool has components, and all have connected and disconnected.
    pub(in crate::core) fn are_gone(&self) -> bool {
        !self.named.is_empty() && self.named.iter().all(|one| one.came && one.here == 0)
    }

    pub(in crate::core) fn stat(&self) -> Vec<ComponentStat> {
        let stat = |one: &PoolComponent| ComponentStat {
            name: one.name.clone(),
            state: match (one.came, one.here) {
                (false, _) => "awaited",
                (true, 0) => "gone",
                (true, _) => "here",
            },
            clients: one.here,
        };
        self.named.iter().map(stat).collect()
    }
}
