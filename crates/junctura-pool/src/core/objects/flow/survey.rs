//! Surveys of clients: prepared a little at a time, and answered.

use junctura_model::{Code, Error, Result};
use junctura_wire::look::TallyRequest;
use junctura_wire::{Reply, Request};

use crate::Effects;
use crate::core::clients::client::{ClientRow, PendingAnswer};
use crate::core::clients::listing::OpenListing;
use crate::core::engine::Core;
use crate::core::exchange::ObjectExchange;
use crate::core::objects::order::IncrementalSort;
use crate::core::objects::survey::{OpenSurvey, SurveyFinding, survey_bytes};

/// Answers which objects match, or how many.
pub(in crate::core) fn look(
    core: &mut Core,
    client: u32,
    number: u64,
    request: &Request<'_>,
    fx: &mut impl Effects,
) -> Result<()> {
    match request {
        Request::Tally(tally) => ClientSurvey::of(&mut core.exchange, client).tally(number, tally, request, fx),
        Request::List(list) if list.limit.is_some() => {
            ClientSurvey::of(&mut core.exchange, client).list_first(number, request, fx)
        }
        Request::List(list) => core.list(client, number, list, fx),
        _ => Ok(()),
    }
}

/// The survey of a client's next request, of which there is one at most.
pub(in crate::core) struct ClientSurvey<'a> {
    exchange: &'a mut ObjectExchange,
    client: u32,
}

impl<'a> ClientSurvey<'a> {
    pub(in crate::core) fn of(exchange: &'a mut ObjectExchange, client: u32) -> Self {
        Self { exchange, client }
    }

    /// Answers how many objects match.
    fn tally(
        &mut self,
        number: u64,
        tally: &TallyRequest<'_>,
        request: &Request<'_>,
        fx: &mut impl Effects,
    ) -> Result<()> {
        let survey = self.finish(request)?;
        let objects = &self.exchange.objects;
        let filed: u64 = objects
            .listing
            .iter()
            .map(junctura_model::index::ObjectIndex::len)
            .sum();
        let newer = if tally.filed_only {
            self.exchange.asked.count.visible.saturating_sub(filed)
        } else {
            0
        };
        if let SurveyFinding::Tally { groups, .. } = &survey.finding {
            fx.reply(self.client, number, &Reply::Tallied(groups.answer(survey.since, newer)));
        }
        Ok(())
    }

    /// Lists the first objects of an order.
    fn list_first(&mut self, number: u64, request: &Request<'_>, fx: &mut impl Effects) -> Result<()> {
        self.exchange.asked.clients.may_ask(self.client, number)?;
        let survey = self.finish(request)?;
        let SurveyFinding::First(first) = survey.finding else {
            return Ok(());
        };
        let (sorting, mut entries) = first.into_parts();
        entries.reverse();
        let bytes = size_of::<OpenListing>() + entries.len() * size_of::<u32>();
        let exchange = &mut *self.exchange;
        if let Err(refusal) = exchange.asked.clients.weigh_asked(self.client, bytes) {
            for id in entries {
                exchange.objects.unwatch(id);
            }
            return Err(refusal);
        }
        let rest = IncrementalSort::merged(vec![entries], Vec::new());
        let listing = PendingAnswer::List(Box::new(OpenListing { sorting, rest, bytes }));
        exchange.asked.clients.add_pending(self.client, number, listing)?;
        fx.reply(self.client, number, &Reply::Began(survey.since));
        exchange
            .asked
            .clients
            .more(&mut exchange.objects, self.client, number, fx);
        Ok(())
    }

    /// Prepares a survey by one step. Returns whether the request may be made, as [`Core::look_ahead`].
    pub(in crate::core) fn look_ahead(&mut self, asked: Vec<u8>, request: &Request<'_>) -> bool {
        let is_known = self
            .exchange
            .asked
            .clients
            .get(self.client)
            .is_some_and(ClientRow::is_known);
        let is_little = self.exchange.asked.count.visible <= self.exchange.config.looked_at_once as u64;
        let is_another = |survey: &OpenSurvey| survey.asked != asked;
        if self
            .exchange
            .objects
            .surveys
            .get(&self.client)
            .is_some_and(|survey| is_another(survey))
        {
            self.exchange.objects.forget_ahead(
                &mut self.exchange.asked.clients,
                &mut self.exchange.deferred,
                self.client,
            );
        }
        let is_begun = self.exchange.objects.surveys.contains_key(&self.client);
        if !is_known || (is_little && !is_begun) {
            return true;
        }
        if is_begun {
            return self.go_on();
        }
        // The request itself reports the error.
        let Ok(survey) = self.begin(asked, request) else {
            return true;
        };
        self.exchange.objects.surveys.insert(self.client, Box::new(survey));
        self.go_on()
    }

    /// Returns a survey that has looked at everything, and weighs nothing any more.
    ///
    /// # Errors
    /// Why the request is refused.
    fn finish(&mut self, request: &Request<'_>) -> Result<OpenSurvey> {
        let asked = survey_bytes(request).unwrap_or_default();
        let is_it = self
            .exchange
            .objects
            .surveys
            .get(&self.client)
            .is_some_and(|survey| survey.asked == asked);
        if !is_it {
            self.exchange.objects.forget_ahead(
                &mut self.exchange.asked.clients,
                &mut self.exchange.deferred,
                self.client,
            );
            let survey = self.begin(asked, request)?;
            self.exchange.objects.surveys.insert(self.client, Box::new(survey));
        }
        while !self.go_on() {}
        let refused = self
            .exchange
            .objects
            .surveys
            .get_mut(&self.client)
            .and_then(|survey| survey.refusal.take());
        if let Some(refusal) = refused {
            return Err(refusal);
        }
        let survey = self.exchange.objects.surveys.remove(&self.client);
        let survey = survey.ok_or_else(|| Error::new(Code::Protocol, "survey", "it was not begun"))?;
        self.exchange
            .asked
            .clients
            .weigh_asked_no_more(self.client, survey.bytes);
        Ok(*survey)
    }

    /// # Errors
    /// Those of the request.
    fn begin(&self, asked: Vec<u8>, request: &Request<'_>) -> Result<OpenSurvey> {
        let selectors = self
            .exchange
            .asked
            .interests
            .selectors(request.selector().unwrap_or_default())?;
        match request {
            Request::Tally(tally) => {
                OpenSurvey::of_tally(&self.exchange.objects, asked, tally, selectors, self.exchange.sight())
            }
            Request::List(list) => OpenSurvey::of_list(&self.exchange.objects, asked, list, selectors),
            _ => Err(Error::new(Code::Protocol, "survey", "the request is none")),
        }
    }

    /// Executes one step of a client's survey. Returns whether it is complete or refused.
    fn go_on(&mut self) -> bool {
        let sight = self.exchange.sight();
        let Some(mut survey) = self.exchange.objects.surveys.remove(&self.client) else {
            return true;
        };
        let is_over = survey.refusal.is_some() || survey.step(&mut self.exchange.objects, sight);
        let more = survey.kept_bytes().saturating_sub(survey.bytes);
        match self.exchange.asked.clients.weigh_asked(self.client, more) {
            Ok(()) => survey.bytes += more,
            Err(refusal) => survey.refusal = Some(refusal),
        }
        let is_refused = survey.refusal.is_some();
        self.exchange.objects.surveys.insert(self.client, survey);
        is_over || is_refused
    }
}
