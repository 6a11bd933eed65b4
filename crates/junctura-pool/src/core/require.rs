//! Requirements: what matches stays until it was received through the requirement and released.
//!
//! An unnamed requirement belongs to its connection and goes with it. It is owed what is visible when it is made and what
//! becomes visible later: every version, or with `newest_only` a version until a newer one comes.

use std::collections::BTreeMap;

use junctura_model::selector::SelectorSet;
use junctura_model::{Code, Error, Result};
use junctura_wire::Reply;
use junctura_wire::body::Require;

use super::client::Pending;
use super::follow::send_gap;
use super::interest::Interest;
use super::object::State;
use super::{Core, Nanoseconds};
use crate::Effects;

/// One requirement.
pub(super) struct Requirement {
    pub(super) client: u32,
    pub(super) request: u64,
    pub(super) selectors: SelectorSet,
    newest_only: bool,
    /// By sequence number: what it is owed.
    owed: BTreeMap<u64, Owed>,
    /// The follow that receives through it.
    reader: Option<u32>,
}

struct Owed {
    object: u32,
    in_flight: bool,
}

impl Core {
    pub(super) fn require(
        &mut self,
        client: u32,
        request: u64,
        require: &Require<'_>,
        fx: &mut impl Effects,
    ) -> Result<()> {
        if let Some(name) = &require.name {
            let cause = "requirements with a name, which outlive their client, are not there yet";
            return Err(Error::new(Code::Unsupported, name.clone(), cause));
        }
        let selectors = self.selectors(&require.selector)?;
        let there = self.visible_matches(&selectors);
        let requirement = Requirement {
            client,
            request,
            selectors,
            newest_only: require.newest_only,
            owed: BTreeMap::new(),
            reader: None,
        };
        let interest = Interest::Requirement(Box::new(requirement));
        let id = self.add_interest(client, request, interest, Pending::Requirement)?;
        self.requirements.push(id);
        for object in there {
            self.owe(id, object);
        }
        fx.reply(client, request, &Reply::Began(self.sequence));
        Ok(())
    }

    fn requirement_mut(&mut self, id: u32) -> Option<&mut Requirement> {
        match self.interests.get_mut(id as usize) {
            Some(Interest::Requirement(requirement)) => Some(requirement),
            _ => None,
        }
    }

    fn requirement_ref(&self, id: u32) -> Option<&Requirement> {
        match self.interests.get(id as usize) {
            Some(Interest::Requirement(requirement)) => Some(requirement),
            _ => None,
        }
    }

    fn owe(&mut self, id: u32, object: u32) {
        let sequence = self.objects[object as usize].sequence;
        if let Some(requirement) = self.requirement_mut(id)
            && requirement
                .owed
                .insert(
                    sequence,
                    Owed {
                        object,
                        in_flight: false,
                    },
                )
                .is_none()
        {
            self.objects[object as usize].owed += 1;
        }
    }

    /// How many versions a requirement is owed.
    pub(super) fn owed_len(&self, id: u32) -> usize {
        self.requirement_ref(id).map_or(0, |requirement| requirement.owed.len())
    }

    /// The requirement that a request number of this client names.
    pub(super) fn requirement_of(&self, client: u32, number: Option<u64>) -> Result<Option<u32>> {
        let Some(number) = number else { return Ok(None) };
        match self.clients.get(&client).and_then(|state| state.pending.get(&number)) {
            Some(Pending::Requirement(id)) => Ok(Some(*id)),
            _ => Err(Error::new(
                Code::NotFound,
                format!("requirement {number}"),
                "this client has none of this number",
            )),
        }
    }

    /// What a follow through the requirement begins with.
    pub(super) fn owed_waiting(&self, id: u32) -> Result<Vec<u32>> {
        let Some(requirement) = self.requirement_ref(id) else {
            return Ok(Vec::new());
        };
        if requirement.reader.is_some() {
            return Err(Error::new(
                Code::Conflict,
                requirement.selectors.text(),
                "a follow reads this requirement already",
            ));
        }
        Ok(requirement
            .owed
            .values()
            .filter(|owed| !owed.in_flight)
            .map(|owed| owed.object)
            .collect())
    }

    pub(super) fn read_requirement_by(&mut self, id: u32, follow: Option<u32>) {
        if let Some(requirement) = self.requirement_mut(id) {
            requirement.reader = follow;
        }
    }

    pub(super) fn is_owed(&self, id: u32, object: u32) -> bool {
        let sequence = self.objects[object as usize].sequence;
        self.requirement_ref(id)
            .is_some_and(|requirement| requirement.owed.contains_key(&sequence))
    }

    pub(super) fn mark_in_flight(&mut self, id: u32, object: u32) {
        let sequence = self.objects[object as usize].sequence;
        if let Some(owed) = self
            .requirement_mut(id)
            .and_then(|requirement| requirement.owed.get_mut(&sequence))
        {
            owed.in_flight = true;
        }
    }

    /// A new object for a requirement, and for the follow that reads it.
    pub(super) fn requirement_meets(&mut self, now: Nanoseconds, id: u32, object: u32, fx: &mut impl Effects) {
        self.owe(id, object);
        if let Some(reader) = self.requirement_ref(id).and_then(|requirement| requirement.reader) {
            self.follow_meets(now, reader, object, fx);
        }
    }

    /// An object was received through a requirement and released.
    pub(super) fn fulfil(&mut self, id: u32, object: u32) {
        self.no_longer_owed(id, object);
    }

    fn no_longer_owed(&mut self, id: u32, object: u32) {
        let sequence = self.objects[object as usize].sequence;
        let was_owed = self
            .requirement_mut(id)
            .is_some_and(|requirement| requirement.owed.remove(&sequence).is_some());
        if was_owed {
            let entry = &mut self.objects[object as usize];
            entry.owed -= 1;
            if entry.watchers > 0 && !self.withdrawals.is_empty() {
                self.unblocked.push(object);
            }
        }
    }

    /// Ends a requirement: it is owed nothing any more. Its client's request is the caller's to settle.
    pub(super) fn retract(&mut self, now: Nanoseconds, id: u32, fx: &mut impl Effects) {
        let Some(requirement) = self.requirement_mut(id) else {
            return;
        };
        let owed: Vec<u32> = requirement.owed.values().map(|owed| owed.object).collect();
        let (client, reader) = (requirement.client, requirement.reader.take());
        if let Some(reader) = reader
            && let Some(Interest::Follow(following)) = self.interests.get(reader as usize)
        {
            let request = following.request;
            let error = Error::new(Code::Closed, "follow", "its requirement was retracted");
            self.end_from_here(reader, client, request, &error, fx);
        }
        self.detach(client, |via| {
            via.requirement = via.requirement.filter(|&requirement| requirement != id);
        });
        self.demand_without(client, id);
        for object in owed {
            self.no_longer_owed(id, object);
            self.settle(now, object, fx);
        }
        self.requirements.retain(|&other| other != id);
        self.drop_interest(id);
    }

    /// Requirements that wait for an object which has gone are told; those that hold it go on holding it.
    pub(super) fn gap_requirements(&mut self, object: u32, reason: &str, fx: &mut impl Effects) {
        for id in self.requirements.clone() {
            if !self.waits_for(id, object) {
                continue;
            }
            self.no_longer_owed(id, object);
            let Some(requirement) = self.requirement_ref(id) else {
                continue;
            };
            let (client, mut request) = (requirement.client, requirement.request);
            if let Some(Interest::Follow(following)) = requirement.reader.and_then(|r| self.interests.get(r as usize)) {
                request = following.request;
            }
            let name = self.objects[object as usize].name();
            send_gap(&mut self.count, client, request, [name], reason, fx);
        }
    }

    /// Requirements for newest versions only give up what was superseded before they received it.
    pub(super) fn drop_superseded_claims(&mut self, object: u32) {
        if self.objects[object as usize].owed == 0 {
            return;
        }
        for id in self.requirements.clone() {
            if self.requirement_ref(id).is_some_and(|r| r.newest_only) && self.waits_for(id, object) {
                self.no_longer_owed(id, object);
            }
        }
    }

    fn waits_for(&self, id: u32, object: u32) -> bool {
        let sequence = self.objects[object as usize].sequence;
        self.requirement_ref(id)
            .and_then(|r| r.owed.get(&sequence))
            .is_some_and(|owed| !owed.in_flight)
    }

    /// The requirements that are owed an object.
    pub(super) fn owed_to(&self, object: u32) -> Vec<u32> {
        self.requirements
            .iter()
            .copied()
            .filter(|&id| self.is_owed(id, object))
            .collect()
    }

    /// Who made a requirement, for people.
    pub(super) fn owner_of(&self, id: u32) -> String {
        let Some(requirement) = self.requirement_ref(id) else {
            return "nobody".to_owned();
        };
        match self
            .clients
            .get(&requirement.client)
            .and_then(|state| state.peer.as_ref())
        {
            Some(peer) => format!(
                "{} (pid {} on {}) requires {:?}",
                peer.name,
                peer.pid,
                peer.host,
                requirement.selectors.text()
            ),
            None => format!("client {}", requirement.client),
        }
    }

    /// Superseded versions of a key that requirements still keep.
    pub(super) fn kept_versions(&self, key: u128) -> Vec<u32> {
        let mut kept: Vec<u32> = self
            .requirements
            .iter()
            .filter_map(|&id| self.requirement_ref(id))
            .flat_map(|requirement| requirement.owed.values().map(|owed| owed.object))
            .filter(|&id| {
                let object = &self.objects[id as usize];
                object.key == key && object.state == State::Superseded
            })
            .collect();
        kept.sort_unstable();
        kept.dedup();
        kept
    }
}
