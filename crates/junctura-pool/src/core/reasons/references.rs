//! References: clients and requirements as reasons name them.

use junctura_wire::reasons::{BundleReference, ClientReference, ReasonReference, RequirementReference};

use super::{short, to_milliseconds};
use crate::core::clients::requests::ClientRequests;
use crate::core::clients::table::ClientTable;
use crate::core::interests::requirement::{RequirementOwner, RequirementState};

/// Readers of a requirement that are named.
const READERS_MAX: usize = 3;

impl ClientTable {
    pub(in crate::core) fn client_reference(&self, client: u32) -> ClientReference {
        let peer = self
            .get(client)
            .and_then(|state| state.peer.clone())
            .unwrap_or_default();
        ClientReference {
            client,
            name: peer.name,
            host: peer.host,
            pid: peer.pid,
        }
    }
}

impl ClientRequests {
    /// Returns a requirement; `is_short` if a request waits for memory that it may keep.
    pub(super) fn requirement_reference(&self, id: u32, is_short: bool) -> Option<RequirementReference> {
        let one = self.interests.requirement_ref(id)?;
        let is_owed = one.owed_len() > 0;
        let may_break = is_short && is_owed && one.broken.is_none();
        Some(RequirementReference {
            number: id,
            name: one.named().map(|named| named.name.clone()).unwrap_or_default(),
            selector: short(one.selectors.text()),
            owed: (one.owed_len() + one.to_be_owed()) as u64,
            owed_bytes: one.owed_bytes,
            in_flight: one.in_flight,
            readers: self.readers_of(one),
            is_group: one.group.is_some(),
            is_broken: one.broken.is_some(),
            idle_ms: is_owed.then(|| to_milliseconds(self.timers.now.saturating_sub(one.progress))),
            breaks_in_ms: may_break.then(|| to_milliseconds(one.stuck_at().saturating_sub(self.timers.now))),
            is_read: one.is_read(),
        })
    }

    fn readers_of(&self, requirement: &RequirementState) -> Vec<ClientReference> {
        let members = requirement.group.iter().flat_map(|group| group.members.iter());
        let follows = requirement.reader.into_iter().chain(members);
        let mut readers: Vec<u32> = follows
            .filter_map(|follow| self.interests.following_ref(follow))
            .map(|following| following.client)
            .take(READERS_MAX)
            .collect();
        if let (true, RequirementOwner::Client { client, .. }) = (readers.is_empty(), &requirement.whose) {
            readers.push(*client);
        }
        readers
            .into_iter()
            .map(|client| self.clients.client_reference(client))
            .collect()
    }

    /// Returns requirements as reasons.
    pub(super) fn on_requirements(&self, ids: &[u32], is_short: bool) -> Vec<ReasonReference> {
        let found = ids.iter().filter_map(|&id| self.requirement_reference(id, is_short));
        found.map(on_requirement).collect()
    }
}

fn on_requirement(requirement: RequirementReference) -> ReasonReference {
    ReasonReference {
        requirement: Some(requirement),
        ..ReasonReference::default()
    }
}

pub(super) fn on_client(client: ClientReference) -> ReasonReference {
    ReasonReference {
        client: Some(client),
        ..ReasonReference::default()
    }
}

pub(super) fn on_bundle(bundle: BundleReference) -> ReasonReference {
    ReasonReference {
        bundle: Some(bundle),
        ..ReasonReference::default()
    }
}
