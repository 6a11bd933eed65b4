//! News of objects and events that reach some interests later: the others of very many, and those of clients that have
//! yet to receive earlier news.
//!
//! The design leaves the choice to the server. So the model receives the list of what is pending, and checks that some of
//! it is delivered in each tick, and that nothing is missing in the end. What is due stays due: a demand that
//! was met gets its object, removed or not.

use junctura_model::Code;
use junctura_pool::core::PendingNews;
use junctura_wire::body::events;

use crate::model::{Checked, Going, Model, Number, Want};

/// See the module's page.
#[derive(Clone, Debug, Default)]
pub(in crate::model) struct UntoldNews {
    /// After the event that is judged.
    pending: Vec<PendingNews>,
    /// When it began.
    before: Vec<PendingNews>,
    /// The number of the latest news, and whether this event had some: they may be delivered in it, before others.
    latest: u64,
    has_new: bool,
    /// The messages that were due before.
    late: Vec<(u32, u64, Want)>,
    /// The demands among these.
    met: Vec<Number>,
}

impl Model {
    /// Records the news that the core has yet to tell, after the event that is to be judged.
    pub fn note_untold(&mut self, pending: Vec<PendingNews>, latest: u64) {
        self.untold.has_new = latest > std::mem::replace(&mut self.untold.latest, latest);
        self.untold.before = std::mem::replace(&mut self.untold.pending, pending);
    }

    /// Expects the messages that were due before.
    pub(in crate::model) fn see_untold(&mut self, is_tick: bool) -> Checked {
        self.wants = std::mem::take(&mut self.untold.late);
        let met = self.wants.iter().filter(|(_, _, want)| is_of_demand(want));
        self.untold.met = met.map(|&(client, request, _)| (client, request)).collect();
        let untold = &self.untold;
        if is_tick && !untold.before.is_empty() && untold.before == untold.pending && !untold.has_new {
            return Err("no news are told, but some are due".to_owned());
        }
        Ok(())
    }

    /// Whether a request has yet to receive news.
    pub(in crate::model) fn is_untold(&self, (client, request): Number) -> bool {
        let of_request = |one: &PendingNews| one.client == client && one.requests.contains(&request);
        self.untold.pending.iter().any(of_request)
    }

    /// Whether a request had yet to receive such an event before this event.
    pub(in crate::model) fn was_untold(&self, (client, request): Number, event: u32) -> bool {
        let is_it = |one: &PendingNews| (one.client, one.event) == (client, event) && one.requests.contains(&request);
        self.untold.before.iter().any(is_it)
    }

    /// Whether news have yet to be delivered.
    pub(in crate::model) fn has_untold(&self) -> bool {
        !self.untold.pending.is_empty()
    }

    /// Whether interests have yet to receive a version: its payload stays.
    pub(in crate::model) fn is_pinned(&self, sequence: u64) -> bool {
        let pins = |one: &PendingNews| one.sequence == Some(sequence) && one.event == events::OFFERED;
        self.untold.pending.iter().any(pins)
    }

    /// Demands of a client that were met or refused before this event, and had yet to get their objects.
    pub(in crate::model) fn met_before(&self, client: u32) -> usize {
        self.untold.met.iter().filter(|met| met.0 == client).count()
    }

    /// Demands that were met or refused, and have yet to get their answers.
    pub(in crate::model) fn met_demands(&self) -> usize {
        let late = self.untold.late.iter();
        late.filter(|(_, _, want)| is_of_demand(want)).count()
    }

    /// Forgets the events that a subscription has yet to receive, since its client ends it.
    pub(in crate::model) fn forget_untold(&mut self, number: Number) {
        if matches!(self.going.get(&number), Some(Going::Subscribe { .. })) {
            let is_event = |want: &Want| matches!(want, Want::Event { .. });
            self.wants
                .retain(|(client, request, want)| (*client, *request) != number || !is_event(want));
        }
    }

    /// Keeps messages that are due and have yet to be delivered for later events.
    pub(in crate::model) fn put_news_off(&mut self) {
        let pending = &self.untold.pending;
        let refused = self.yet_to_be_refused();
        let is_late = |(client, request, want): &mut (u32, u64, Want)| {
            let (event, sequence) = match want {
                Want::Delivered { sequence, .. } => (events::OFFERED, Some(*sequence)),
                Want::Event { event, sequence, .. } => (*event, *sequence),
                Want::Failed(Some(Code::Closed)) => return refused.contains(&(*client, *request)),
                _ => return false,
            };
            pending.iter().any(|one| {
                (one.client, one.event, one.sequence) == (*client, event, sequence) && one.requests.contains(request)
            })
        };
        self.untold.late = self.wants.extract_if(.., is_late).collect();
    }
}

/// Whether it is the answer to a demand that was met, or refused by a pool that drains.
fn is_of_demand(want: &Want) -> bool {
    matches!(want, Want::Delivered { .. } | Want::Failed(Some(Code::Closed)))
}
