//! Named requirements are made, used and ended.

use junctura_model::requirements::WrittenRequirement;
use junctura_model::{Code, Error, Result};
use junctura_wire::Reply;
use junctura_wire::body::{RequireRequest, WireFailure, events};

use crate::Effects;
use crate::core::clients::client::PendingAnswer;
use crate::core::clients::requests::ClientRequests;
use crate::core::engine::Core;
use crate::core::engine::timers::NOBODY;
use crate::core::exchange::ObjectExchange;
use crate::core::interests::named_requirement::subject;
use crate::core::interests::requirement::RequirementState;

impl Core {
    /// Makes a named requirement, or joins the existing one. The client's request represents its use.
    pub(in crate::core) fn require_named(
        &mut self,
        client: u32,
        request: u64,
        name: &str,
        require: &RequireRequest<'_>,
        fx: &mut impl Effects,
    ) -> Result<()> {
        let exchange = &mut self.exchange;
        let asked = exchange
            .asked
            .interests
            .named_requirement(&exchange.asked.timers, name, require)?;
        let (id, is_new) = exchange.find_or_file(client, request, name, asked)?;
        exchange.asked.use_named(id, client, request)?;
        if !exchange.asked.interests.begins_later(id, (client, request)) {
            fx.reply(client, request, &Reply::Began(exchange.objects.sequence));
        }
        if is_new {
            exchange
                .asked
                .tell_about_requirement(id, events::REQUIRED, Some(client), "", fx);
        }
        Ok(())
    }

    /// Makes a named requirement before there is any client.
    ///
    /// # Errors
    /// The fault of its definition, with its line in the file; `Conflict` if another requirement of the name exists on
    /// other terms.
    pub fn require_from_the_start(&mut self, written: &WrittenRequirement) -> Result<()> {
        let exchange = &mut self.exchange;
        let milliseconds = |time: u64| time.div_ceil(1_000_000);
        let require = RequireRequest {
            selector: written.selector.as_str().into(),
            newest_only: written.newest_only,
            name: Some(written.name.as_str().into()),
            time_to_live_ms: written.time_to_live_ns.map(milliseconds),
            breaks_on_full: written.breaks_on_full,
            quota_bytes: written.quota_bytes,
            stuck_after_ms: written.stuck_after_ns.map(milliseconds),
            group: written.is_group,
        };
        let asked = exchange
            .asked
            .interests
            .named_requirement(&exchange.asked.timers, &written.name, &require);
        let made = asked.and_then(|asked| exchange.find_or_file(NOBODY, 0, &written.name, asked));
        let (id, _) = made.map_err(|error| {
            let subject = format!("requirements line {}: {}", written.line, error.subject());
            Error::new(error.code(), subject, error.cause())
        })?;
        exchange.asked.wind(id);
        Ok(())
    }

    pub(in crate::core) fn retract_named(
        &mut self,
        client: u32,
        request: u64,
        name: &str,
        fx: &mut impl Effects,
    ) -> Result<()> {
        let id = self.exchange.asked.interests.find_named(name)?;
        let owed = self.exchange.end_named(id, events::RETRACTED, Some(client), fx);
        self.exchange.deferred.answer_in_turn(client, request, owed, fx);
        Ok(())
    }
}

impl ObjectExchange {
    /// Returns the requirement of a name, if it exists on these terms; if none exists, makes this one. Also whether it
    /// is new.
    ///
    /// A client that may not start another request makes none.
    pub(in crate::core) fn find_or_file(
        &mut self,
        client: u32,
        request: u64,
        name: &str,
        asked: RequirementState,
    ) -> Result<(u32, bool)> {
        if let Some(&id) = self.asked.interests.named.get(name) {
            self.asked.interests.agree_on_requirement(id, &asked)?;
            return Ok((id, false));
        }
        let limit = self.config.limits.named_requirements;
        if self.asked.interests.named.len() >= limit {
            let cause = format!("the pool keeps {limit} with a name");
            return Err(Error::new(Code::LimitExceeded, "requirements", cause));
        }
        self.asked.clients.may_ask(client, request)?;
        let id = self.file_requirement(asked)?;
        self.asked.interests.named.insert(name.to_owned(), id);
        let made_by = self.asked.clients.get(client).and_then(|made_by| made_by.access.token);
        if let Some(named) = self.asked.interests.named_mut(id) {
            named.made_by = made_by;
        }
        if self
            .asked
            .interests
            .requirement_ref(id)
            .is_some_and(RequirementState::has_begun)
        {
            self.retention.came(name);
        }
        Ok((id, true))
    }

    pub(in crate::core) fn end_named(&mut self, id: u32, event: u32, by: Option<u32>, fx: &mut impl Effects) -> u64 {
        let Some(named) = self
            .asked
            .interests
            .requirement_ref(id)
            .and_then(RequirementState::named)
        else {
            return 0;
        };
        let name = named.name.clone();
        let why = if event == events::LAPSED {
            "no client used it for its time to live"
        } else {
            ""
        };
        self.asked.tell_about_requirement(id, event, by, why, fx);
        self.unmake_named(id, &name, fx)
    }

    /// Removes a named requirement. No event was sent for one whose client was refused.
    pub(in crate::core) fn unmake_named(&mut self, id: u32, name: &str, fx: &mut impl Effects) -> u64 {
        self.asked.interests.named.remove(name);
        self.retention.went(name);
        self.asked.end_uses(id, name, fx);
        let owed = self.retract(id, "its requirement was retracted", fx);
        self.asked.timers.cancel(NOBODY, u64::from(id));
        owed
    }
}

impl ClientRequests {
    /// Records that a client's request uses a named requirement.
    pub(in crate::core) fn use_named(&mut self, id: u32, client: u32, request: u64) -> Result<()> {
        self.clients.add_pending(client, request, PendingAnswer::Use(id))?;
        if let Some(named) = self.interests.named_mut(id) {
            named.users.insert((client, request));
        }
        self.wind(id);
        Ok(())
    }

    pub(in crate::core) fn end_uses(&mut self, id: u32, name: &str, fx: &mut impl Effects) {
        let users = self
            .interests
            .named_mut(id)
            .map(|named| std::mem::take(&mut named.users));
        let error = Error::new(Code::Closed, subject(name), "it was retracted");
        for (client, request) in users.into_iter().flatten() {
            self.settle(client, request);
            fx.reply(client, request, &Reply::Ended(WireFailure::from(&error)));
        }
    }
}
