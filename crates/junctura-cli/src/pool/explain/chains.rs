//! Chains: which client waits for which. A client waits for the readers of a requirement, for the clients that have a bundle open, and for other clients.

use std::collections::{BTreeMap, BTreeSet};

use junctura::reasons::{ClientReference, ReasonReference, WaitingRequest};

/// Clients that a chain follows.
pub(super) const DEPTH_MAX: usize = 8;
/// Cycles that are named.
const CYCLES_MAX: usize = 20;

/// The requests that wait, and their clients.
pub(crate) struct WaitGraph {
    pub(super) requests: Vec<WaitingRequest>,
    of_client: BTreeMap<u32, Vec<usize>>,
}

impl WaitGraph {
    pub(crate) fn new(requests: Vec<WaitingRequest>) -> Self {
        let mut of_client: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for (at, request) in requests.iter().enumerate() {
            of_client.entry(request.client.client).or_default().push(at);
        }
        Self { requests, of_client }
    }

    /// Returns the requests of clients with this name, in which `*` is any text, or all: the longest wait first.
    pub(super) fn of_client(&self, name: Option<&str>) -> Vec<&WaitingRequest> {
        let is_its = |request: &&WaitingRequest| name.is_none_or(|name| is_named(&request.client.name, name));
        let mut shown: Vec<&WaitingRequest> = self.requests.iter().filter(is_its).collect();
        shown.sort_by_key(|request| std::cmp::Reverse(request.waits_ms.unwrap_or_default()));
        shown
    }

    /// Returns what a client waits for.
    pub(super) fn waits_of(&self, client: u32) -> impl Iterator<Item = &WaitingRequest> {
        let places = self.of_client.get(&client).into_iter().flatten();
        places.map(|&at| &self.requests[at])
    }

    /// Returns clients that wait for each other: each for the next, the last for the first.
    pub(crate) fn cycles(&self) -> Vec<Vec<ClientReference>> {
        let mut found = BTreeSet::new();
        for &client in self.of_client.keys() {
            self.look_for_cycles(&mut vec![client], &mut found);
        }
        let cycles = found.into_iter().take(CYCLES_MAX);
        cycles
            .map(|cycle| cycle.iter().map(|&client| self.reference(client)).collect())
            .collect()
    }

    /// Follows a path; a cycle is found where its smallest number is first.
    fn look_for_cycles(&self, path: &mut Vec<u32>, found: &mut BTreeSet<Vec<u32>>) {
        let (Some(&first), Some(&last)) = (path.first(), path.last()) else {
            return;
        };
        for next in self.nexts(last) {
            if found.len() >= CYCLES_MAX {
                return;
            }
            if next == first {
                found.insert(path.clone());
            } else if next > first && path.len() < DEPTH_MAX && !path.contains(&next) {
                path.push(next);
                self.look_for_cycles(path, found);
                path.pop();
            }
        }
    }

    /// Returns the clients that a client waits for and that wait themselves. A client that has a bundle open does not wait for the
    /// others that have it open, and its sync waits for its own offers.
    fn nexts(&self, client: u32) -> BTreeSet<u32> {
        let references = self
            .waits_of(client)
            .filter(|request| request.kind != "bundle" && request.kind != "sync");
        let clients = references.flat_map(|request| request.on.iter().flat_map(clients_of));
        clients
            .map(|client| client.client)
            .filter(|client| self.of_client.contains_key(client))
            .collect()
    }

    fn reference(&self, client: u32) -> ClientReference {
        let request = self.waits_of(client).next();
        request.map(|request| request.client.clone()).unwrap_or_default()
    }
}

/// Whether a name is one of a pattern, in which `*` is any text.
fn is_named(name: &str, pattern: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else {
        return name == pattern;
    };
    let Some(mut name) = name.strip_prefix(first) else {
        return false;
    };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        let Some(at) = name.find(part) else { return false };
        name = &name[at + part.len()..];
    }
    name.ends_with(last)
}

/// Returns the clients behind one thing that a request waits for.
pub(super) fn clients_of(reference: &ReasonReference) -> Vec<&ClientReference> {
    let readers = reference.requirement.iter().flat_map(|one| &one.readers);
    let openers = reference.bundle.iter().flat_map(|one| &one.openers);
    reference.client.iter().chain(readers).chain(openers).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(pairs: &[(u32, u32)]) -> WaitGraph {
        let client = |client| ClientReference {
            client,
            ..ClientReference::default()
        };
        let request = |&(from, to): &(u32, u32)| WaitingRequest {
            client: client(from),
            on: vec![ReasonReference {
                client: Some(client(to)),
                ..ReasonReference::default()
            }],
            ..WaitingRequest::default()
        };
        WaitGraph::new(pairs.iter().map(request).collect())
    }

    fn cycles(pairs: &[(u32, u32)]) -> Vec<Vec<u32>> {
        let found = waits(pairs).cycles();
        found
            .iter()
            .map(|cycle| cycle.iter().map(|one| one.client).collect())
            .collect()
    }

    #[test]
    fn each_cycle_is_found_once() {
        assert_eq!(cycles(&[(1, 2), (2, 3)]), [[0; 0]; 0]);
        assert_eq!(cycles(&[(1, 2), (2, 1)]), [[1, 2]]);
        assert_eq!(cycles(&[(5, 5)]), [[5]]);
        assert_eq!(cycles(&[(3, 1), (1, 2), (2, 3), (2, 1)]), [vec![1, 2], vec![1, 2, 3]]);
    }

    #[test]
    fn a_pattern_names_clients() {
        for (name, pattern) in [
            ("a", "a"),
            ("member-17", "member-*"),
            ("a1b22", "a*b*"),
            ("x", "*"),
            ("aba", "a*a"),
        ] {
            assert!(is_named(name, pattern), "{name} {pattern}");
        }
        for (name, pattern) in [
            ("a", "b"),
            ("member", "member-*"),
            ("ab", "a*c"),
            ("a", "a*a"),
            ("abc", "a*b*b"),
        ] {
            assert!(!is_named(name, pattern), "{name} {pattern}");
        }
    }

    #[test]
    fn a_cycle_beyond_the_depth_is_not_followed() {
        let ring = |length: u32| -> Vec<(u32, u32)> { (0..length).map(|at| (at + 1, (at + 1) % length + 1)).collect() };
        assert_eq!(cycles(&ring(8)).len(), 1);
        assert_eq!(cycles(&ring(9)).len(), 0);
    }
}
