//! Looking ahead: a request that concerns very many objects is prepared a little at a time, and others are served meanwhile.
//!
//! ```text
//!            look_ahead, again and again                        request
//!   left ------------------------------> those that match, -----------------> the answer, as if nothing had been prepared
//!     ^                                  in sorted runs
//!     '-- what enters the index          '-- what leaves it is noted
//! ```
//! The candidates of a selector are verified a few at a time, watched where the request reads them, and sorted in runs.
//! Changes in the pool meanwhile are tracked, so the request finds exactly what it would have found without a
//! preparation. Its client blocks and sends nothing else; a caller of the core may leave out [`Core::look_ahead`] at
//! any time.

use junctura_model::Error;
use junctura_model::selector::{self, SelectorSet};
use junctura_wire::Request;
use junctura_wire::body::ListOrder;
use roaring::RoaringBitmap;

use crate::core::clients::requests::ClientRequests;
use crate::core::clients::table::ClientTable;
use crate::core::deferred::DeferredWork;
use crate::core::engine::Core;
use crate::core::objects::flow::survey::ClientSurvey;
use crate::core::objects::look_ahead::{LookPurpose, PreparedRequest, concern};
use crate::core::objects::survey::survey_bytes;
use crate::core::objects::table::ObjectTable;

/// The maximum number of objects verified in one step: with their sorting, some of these take a tenth of a millisecond.
const STEP_OBJECTS_MAX: usize = 128;
/// For each such number of bytes of a selector, verifying an object counts as one more object. Regular expressions are
/// large.
const LOOK_BYTES: usize = 1024;
/// A selector whose text is shorter than this, and has no slow expressions, counts as one look.
const QUICK_TEXT_BYTES: usize = 256;

impl Core {
    /// Prepares the next request of a client by one step. Returns whether the request may be sent: nothing is left to
    /// prepare, or so little that the request does it.
    #[must_use]
    pub fn look_ahead(&mut self, client: u32, request: &Request<'_>) -> bool {
        if let Some(asked) = survey_bytes(request) {
            return ClientSurvey::of(&mut self.exchange, client).look_ahead(asked, request);
        }
        let (asked, objects) = (&mut self.exchange.asked, &mut self.exchange.objects);
        if let Some(id) = asked.read_through(client, request) {
            let is_owed_all = asked.owe_ahead(objects, id, self.config.looked_at_once.clamp(1, STEP_OBJECTS_MAX));
            if !is_owed_all || matches!(request, Request::Follow(_)) {
                return is_owed_all;
            }
        }
        let Some((text, order)) = concern(request) else {
            return true;
        };
        if objects.ahead.get(&client).is_some_and(|ahead| !ahead.is_for(request)) {
            objects.forget_ahead(&mut asked.clients, &mut self.exchange.deferred, client);
        }
        let purpose = LookPurpose::of(request);
        if !objects.ahead.contains_key(&client) && !objects.begin_to_look(asked, client, (text, order), purpose) {
            return true;
        }
        let Some(mut ahead) = objects.ahead.remove(&client) else {
            return true;
        };
        let is_ready = objects.step(&mut asked.clients, client, &mut ahead);
        objects.ahead.insert(client, ahead);
        is_ready
    }
}

/// Returns the number of objects that the verification of one object counts as: more than one for a large selector.
fn looks(selectors: &SelectorSet) -> usize {
    1 + selectors.standing_bytes() / LOOK_BYTES
}

impl ObjectTable {
    /// Returns the number of objects that are verified in one step.
    pub(in crate::core) fn looked_at_in_a_step(&self, selectors: &SelectorSet) -> usize {
        let objects_max = self.config.looked_at_once.min(STEP_OBJECTS_MAX);
        (objects_max / looks(selectors)).max(1)
    }

    /// Starts a preparation if there are enough objects to be worth it.
    pub(in crate::core) fn begin_to_look(
        &mut self,
        asked: &ClientRequests,
        client: u32,
        (text, order): (&str, Option<&ListOrder<'_>>),
        purpose: LookPurpose,
    ) -> bool {
        let is_known = asked
            .clients
            .get(client)
            .is_some_and(crate::core::clients::client::ClientRow::is_known);
        let is_little =
            |looks: usize| asked.count.visible.saturating_mul(looks as u64) <= self.config.looked_at_once as u64;
        let is_quick = text.len() < QUICK_TEXT_BYTES && !selector::is_costly(text);
        if !is_known || (is_quick && is_little(1)) {
            return false;
        }
        // An invalid selector is refused by the request itself.
        let Ok(selectors) = asked.interests.selectors(text) else {
            return false;
        };
        let looks = looks(&selectors);
        if is_little(looks) {
            return false;
        }
        let Ok(sorting) = order.map(|order| self.sorting(order)).transpose() else {
            return false;
        };
        let order = order.map(|order| match order {
            ListOrder::Key => ListOrder::Key,
            ListOrder::Attribute(name) => ListOrder::Attribute(name.clone().into_owned().into()),
        });
        let ahead = PreparedRequest {
            objects_at_once: self.looked_at_in_a_step(&selectors),
            selectors,
            order,
            sorting,
            left: None,
            purpose,
            runs: Vec::new(),
            run_ends: Vec::new(),
            late: RoaringBitmap::new(),
            bytes: 0,
            refusal: None,
        };
        self.ahead.insert(client, ahead);
        true
    }

    pub(in crate::core) fn step(
        &mut self,
        clients: &mut ClientTable,
        client: u32,
        ahead: &mut PreparedRequest,
    ) -> bool {
        let count = ahead.objects_at_once;
        let Some(left) = &mut ahead.left else {
            for _ in 0..self.config.looked_at_once.clamp(1, STEP_OBJECTS_MAX) {
                self.index_next();
            }
            if self.unindexed.is_empty() {
                let left = self.candidates(&ahead.selectors);
                // The set of late objects is of about the same size at most.
                let bytes = 2 * left.serialized_size();
                if let Err(refusal) = clients.weigh_asked(client, bytes) {
                    ahead.refusal = Some(refusal);
                    return true;
                }
                ahead.bytes += bytes;
                ahead.left = Some(left);
            }
            return false;
        };
        let some: Vec<u32> = left.iter().take(count).collect();
        if let (Some(&first), Some(&last)) = (some.first(), some.last()) {
            left.remove_range(first..=last);
        }
        let is_last = left.is_empty();
        let bytes = ahead.verify(self, &some) * size_of::<u32>();
        match clients.weigh_asked(client, bytes) {
            Ok(()) => {
                ahead.bytes += bytes;
                is_last
            }
            Err(refusal) => {
                ahead.refusal = Some(refusal);
                true
            }
        }
    }

    /// Begins a client's request; returns the error that its preparation has found.
    pub(in crate::core) fn use_ahead(&mut self, client: u32, request: &Request<'_>) -> Option<Error> {
        let ahead = self.ahead.get_mut(&client).filter(|ahead| ahead.is_for(request))?;
        self.ahead_of = Some(client);
        ahead.refusal.take()
    }

    /// Forgets a preparation: the client's request is over, or the client leaves.
    pub(in crate::core) fn forget_ahead(
        &mut self,
        clients: &mut ClientTable,
        deferred: &mut DeferredWork,
        client: u32,
    ) {
        self.ahead_of = None;
        if let Some(ahead) = self.ahead.remove(&client) {
            clients.weigh_asked_no_more(client, ahead.bytes);
            if ahead.purpose == LookPurpose::Read {
                deferred.release_queue(self, ahead.into_found());
            }
        }
        if let Some(survey) = self.surveys.remove(&client) {
            clients.weigh_asked_no_more(client, survey.bytes);
            for &id in survey.watched() {
                self.unwatch(id);
            }
        }
    }

    /// Takes the completed preparation of the current request, if it is for this selector and purpose. The index is
    /// complete.
    pub(in crate::core) fn take_ahead(
        &mut self,
        clients: &mut ClientTable,
        selectors: &SelectorSet,
        purpose: LookPurpose,
    ) -> Option<PreparedRequest> {
        let client = self.ahead_of?;
        let ahead = self.ahead.get(&client)?;
        if ahead.selectors.text() != selectors.text() || ahead.purpose != purpose || ahead.left.is_none() {
            return None;
        }
        let mut ahead = self.ahead.remove(&client)?;
        clients.weigh_asked_no_more(client, std::mem::take(&mut ahead.bytes));
        let left = ahead.left.take().unwrap_or_default();
        ahead.verify(self, &left.iter().collect::<Vec<_>>());
        Some(ahead)
    }
}

impl ClientRequests {
    /// Returns the requirement through which a request receives.
    pub(in crate::core) fn read_through(&self, client: u32, request: &Request<'_>) -> Option<u32> {
        let (number, name) = match request {
            Request::Follow(follow) => {
                let name = follow.requirement_name.as_deref().or(follow.group.as_deref());
                (follow.requirement, name)
            }
            Request::Demand(demand) => (demand.requirement, demand.requirement_name.as_deref()),
            _ => return None,
        };
        self.interests
            .requirement_of(&self.clients, client, number, name)
            .ok()
            .flatten()
    }
}
