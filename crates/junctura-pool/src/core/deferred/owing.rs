//! How a requirement begins to be owed visible objects, one by one.

use junctura_model::Result;
use junctura_wire::Reply;
use junctura_wire::body::{FollowRequest, events};

use super::beginning::WaitingAsker;
use crate::Effects;
use crate::core::clients::requests::ClientRequests;
use crate::core::engine::Core;
use crate::core::interests::interest_id::InterestId;
use crate::core::interests::requirement::RequirementState;
use crate::core::objects::table::ObjectTable;

impl Core {
    /// Owes a new requirement one more of the objects that were visible, if it still is. Returns whether there is more
    /// to do.
    pub(in crate::core) fn owe_next(&mut self, which: InterestId, fx: &mut impl Effects) -> bool {
        let Some(id) = self.exchange.asked.interests.still(Some(which)) else {
            return false;
        };
        if self.exchange.asked.owe_one_more(&mut self.exchange.objects, id) {
            return true;
        }
        let requirement = self.exchange.asked.interests.requirement_mut(id);
        let Some(beginning) = requirement.and_then(|one| one.beginning.take()) else {
            return false;
        };
        // An object that was retained for this name was kept so far, and is owed now.
        if let Some(named) = self
            .exchange
            .asked
            .interests
            .requirement_ref(id)
            .and_then(RequirementState::named)
        {
            let name = named.name.clone();
            self.exchange.retention.came(&name);
        }
        for asker in beginning.askers {
            self.answer_asker(&asker, id, fx);
        }
        false
    }

    /// Completes a requirement's beginning before a reader starts: first it is owed all objects that were visible.
    pub(in crate::core) fn end_beginning(&mut self, id: u32, fx: &mut impl Effects) {
        let which = self.exchange.asked.interests.refer(id);
        while self.owe_next(which, fx) {}
    }

    /// Answers a request that waited for the requirement to begin, if it still uses it.
    fn answer_asker(&mut self, asker: &WaitingAsker, id: u32, fx: &mut impl Effects) {
        let &WaitingAsker { client, request, joins } = asker;
        let state = self.exchange.asked.clients.get(client);
        if state.is_none_or(|state| !state.stands_by(request, id)) {
            return;
        }
        let Some((window, until_live)) = joins else {
            return fx.reply(client, request, &Reply::Began(self.exchange.objects.sequence));
        };
        self.exchange.asked.end_use(id, client, request);
        self.exchange.asked.settle(client, request);
        let follow = FollowRequest {
            window,
            until_live,
            ..FollowRequest::default()
        };
        if let Err(error) = self.exchange.join_group((id, false), client, request, &follow, fx) {
            self.fail(client, request, &error, fx);
        }
    }
}

impl ClientRequests {
    /// Prepares a follow through a requirement that has not begun completely by one step. Returns whether it has begun.
    pub(in crate::core) fn owe_ahead(&mut self, objects: &mut ObjectTable, id: u32, count: usize) -> bool {
        (0..count).all(|_| self.owe_one_more(objects, id));
        self.interests
            .requirement_ref(id)
            .is_none_or(|one| one.to_be_owed() == 0)
    }

    /// Returns whether the follow that has made a group joins it only when the group is owed all objects that were
    /// visible. Until then the client uses the requirement.
    ///
    /// # Errors
    /// `LimitExceeded` where the client has too many requests.
    pub(in crate::core) fn joins_later(
        &mut self,
        (id, is_new): (u32, bool),
        (client, request): (u32, u64),
        follow: &FollowRequest<'_>,
        fx: &mut impl Effects,
    ) -> Result<bool> {
        if !is_new
            || self
                .interests
                .requirement_ref(id)
                .is_none_or(RequirementState::has_begun)
        {
            return Ok(false);
        }
        self.use_named(id, client, request)?;
        let asker = WaitingAsker {
            client,
            request,
            joins: Some((follow.window, follow.until_live)),
        };
        if let Some(beginning) = self
            .interests
            .requirement_mut(id)
            .and_then(|one| one.beginning.as_mut())
        {
            beginning.askers.push(asker);
        }
        self.tell_about_requirement(id, events::REQUIRED, Some(client), "", fx);
        Ok(true)
    }

    /// Owes a requirement one more of the objects that were visible, if it still is. Returns whether there was one.
    pub(in crate::core) fn owe_one_more(&mut self, objects: &mut ObjectTable, id: u32) -> bool {
        let Some(beginning) = self
            .interests
            .requirement_mut(id)
            .and_then(|one| one.beginning.as_mut())
        else {
            return false;
        };
        let (next, newest) = (beginning.left.pop(), beginning.newest);
        let Some(object) = next else { return false };
        let was_there = objects.was_there(self.timers.now, object, newest);
        self.interests.weigh_owed_no_more();
        if was_there {
            self.owe_from_the_start(objects, id, object);
        }
        true
    }
}
