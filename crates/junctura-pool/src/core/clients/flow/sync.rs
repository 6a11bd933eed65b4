//! Syncs: confirms to a client that all its earlier requests are in effect.
//!
//! A client's messages are read in order. All but offers are in effect, or registered, once they have been read. So a
//! sync is answered at once, with two exceptions: if offers of its client wait for memory, it waits behind the last of
//! them; if its requests have deferred removals ([`crate::core::deferred`]), it waits until these are done.

use junctura_model::Result;

use crate::Effects;
use crate::core::clients::client::PendingAnswer;
use crate::core::clients::requests::ClientRequests;
use crate::core::deferred::DeferredWork;

impl ClientRequests {
    /// # Errors
    /// `LimitExceeded` when it would have to wait and the client has too many requests that do.
    pub(in crate::core) fn sync(
        &mut self,
        deferred: &mut DeferredWork,
        client: u32,
        number: u64,
        fx: &mut impl Effects,
    ) -> Result<()> {
        let state = self.clients.get(client);
        if state.is_none_or(|state| state.waiting_offers.is_empty()) {
            deferred.answer_sync(&self.clients, client, number, fx);
            return Ok(());
        }
        self.clients.add_pending(client, number, PendingAnswer::Sync)?;
        let state = self.clients.get_mut(client);
        if let Some(last) = state.and_then(|state| state.waiting_offers.back_mut()) {
            last.syncs.push(number);
        }
        Ok(())
    }

    /// Answers the syncs that wait behind an offer: it is answered, and so are all before it.
    pub(in crate::core) fn answer_syncs(
        &mut self,
        deferred: &mut DeferredWork,
        client: u32,
        syncs: Vec<u64>,
        fx: &mut impl Effects,
    ) {
        // The client may have been disconnected because of its offer.
        if !self.clients.table.contains_key(&client) {
            return;
        }
        for number in syncs {
            self.settle(client, number);
            deferred.answer_sync(&self.clients, client, number, fx);
        }
    }

    /// Moves the syncs behind the offer in place `at`, which is answered out of turn, to the offer before it, if there
    /// is one.
    pub(in crate::core) fn pass_syncs_on(
        &mut self,
        deferred: &mut DeferredWork,
        client: u32,
        at: usize,
        syncs: Vec<u64>,
        fx: &mut impl Effects,
    ) {
        let before = at.checked_sub(1);
        let state = self.clients.get_mut(client);
        match before.and_then(|before| state?.waiting_offers.get_mut(before)) {
            Some(before) => before.syncs.extend(syncs),
            None => self.answer_syncs(deferred, client, syncs, fx),
        }
    }
}
