//! Demands: one object, now or when it becomes visible.

use junctura_model::selector::SelectorSet;
use junctura_model::{Code, Error, Result};
use junctura_wire::Reply;
use junctura_wire::body::{DemandRequest, WireFailure};

use crate::Effects;
use crate::core::clients::client::{DeliveredVia, PendingAnswer, milliseconds};
use crate::core::clients::flow::deliver::ObjectDelivery;
use crate::core::clients::requests::ClientRequests;
use crate::core::engine::Core;
use crate::core::engine::timers::TimerEvent;
use crate::core::exchange::ObjectExchange;
use crate::core::interests::demand::WaitingDemand;
use crate::core::interests::interest::{InterestAim, StandingInterest};
use crate::core::memory::payload::PayloadMemory;
use crate::core::objects::table::ObjectTable;

impl Core {
    pub(in crate::core) fn demand(
        &mut self,
        client: u32,
        request: u64,
        demand: &DemandRequest<'_>,
        fx: &mut impl Effects,
    ) -> Result<()> {
        if !self.exchange.asked.clients.may_hold_more(client) {
            let limit = self.config.limits.held_per_client;
            return Err(Error::new(
                Code::LimitExceeded,
                "held objects",
                format!("a client may hold at most {limit} unreleased objects"),
            ));
        }
        let requirement = self.exchange.asked.interests.requirement_of(
            &self.exchange.asked.clients,
            client,
            demand.requirement,
            demand.requirement_name.as_deref(),
        )?;
        if demand.incomplete && requirement.is_some() {
            let cause = "a requirement has only visible objects; demand the object without it";
            return Err(Error::new(Code::InvalidArgument, "incomplete", cause));
        }
        if requirement.is_some_and(|id| self.exchange.asked.interests.group_ref(id).is_some()) {
            let cause = "the group decides which member receives an object; follow the group";
            return Err(Error::new(Code::Unsupported, "demand through a group", cause));
        }
        if let Some(requirement) = requirement {
            self.end_beginning(requirement, fx);
            self.exchange.asked.note_progress(requirement, fx);
        }
        let (found, selectors, subject) = self.exchange.find_demanded(client, demand, fx)?;
        if let Some(id) = found {
            let via = requirement.map(|id| DeliveredVia {
                follow: None,
                requirement: Some(self.exchange.asked.interests.refer(id)),
            });
            self.exchange.asked.deliver(
                &mut self.exchange.objects,
                &mut self.exchange.memory,
                ObjectDelivery {
                    client,
                    request,
                    object: id,
                    flags: 0,
                    via,
                },
                fx,
            );
            return Ok(());
        }
        if demand.timeout_ms == Some(0) {
            return Err(Error::new(
                Code::NotFound,
                subject,
                "no object in the pool matches now; a demand with a timeout waits for one",
            ));
        }
        self.drain.may_come()?;
        let waiting = WaitingDemand {
            client,
            request,
            requirement: requirement.map(|id| self.exchange.asked.interests.refer(id)),
            selectors,
            incomplete: demand.incomplete,
            since: self.exchange.asked.timers.now,
        };
        self.exchange.asked.add_interest(
            client,
            request,
            StandingInterest::Demand(waiting),
            PendingAnswer::Demand,
        )?;
        if let Some(timeout) = demand.timeout_ms {
            self.exchange.asked.timers.set(
                self.exchange.asked.timers.now.saturating_add(milliseconds(timeout)),
                client,
                request,
                TimerEvent::Demand { client, request },
            );
        }
        Ok(())
    }
}

impl ObjectExchange {
    /// Returns the object of a demand, if it exists, its target, and the target's text.
    pub(in crate::core) fn find_demanded(
        &mut self,
        client: u32,
        demand: &DemandRequest<'_>,
        fx: &mut impl Effects,
    ) -> Result<(Option<u32>, SelectorSet, String)> {
        match self.asked.interests.aim(&demand.target)? {
            InterestAim::Key {
                identity,
                text,
                selectors,
            } => {
                self.see_off_key(identity, fx);
                let staged = if demand.incomplete {
                    self.bundles.staged_of(identity)
                } else {
                    None
                };
                let found = match self.objects.look_up(identity, &text) {
                    Ok(Some(id)) => Some(id),
                    Err(gone) if staged.is_none() => return Err(gone),
                    Ok(None) | Err(_) => staged,
                };
                if found.is_none() {
                    self.refuse_declined(client, identity, &text, fx)?;
                }
                Ok((found, selectors, text))
            }
            InterestAim::Selectors(selectors) => {
                let text = selectors.text().to_owned();
                let sight = self.sight();
                let newest = self.objects.newest_match(&mut self.asked.clients, sight, &selectors);
                let staged = || {
                    demand
                        .incomplete
                        .then(|| self.bundles.staged_matches(&self.objects, &selectors).pop())
                        .flatten()
                };
                Ok((newest.or_else(staged), selectors, text))
            }
        }
    }
}

impl ClientRequests {
    pub(in crate::core) fn demand_timed_out(&mut self, client: u32, request: u64, fx: &mut impl Effects) {
        let Some(PendingAnswer::Demand(id)) = self.clients.pending(client, request) else {
            return;
        };
        let id = *id;
        let Some(StandingInterest::Demand(waiting)) = self.interests.get(id).filter(|_| !self.interests.is_met(id))
        else {
            return;
        };
        let error = Error::new(
            Code::Timeout,
            waiting.selectors.text(),
            "no matching object arrived in time; `junctura ls` lists what is there",
        );
        _ = self.end_interest(id);
        self.settle(client, request);
        fx.reply(client, request, &Reply::Failed(WireFailure::from(&error)));
    }

    pub(in crate::core) fn demand_meets(
        &mut self,
        objects: &mut ObjectTable,
        memory: &mut PayloadMemory,
        id: u32,
        object: u32,
        fx: &mut impl Effects,
    ) {
        let Some(StandingInterest::Demand(waiting)) = self.interests.get(id) else {
            return;
        };
        let (client, request, requirement) = (waiting.client, waiting.request, waiting.requirement);
        // A demand has no queue.
        _ = self.end_interest(id);
        self.settle(client, request);
        let via = self.interests.still(requirement).map(|_| DeliveredVia {
            follow: None,
            requirement,
        });
        self.deliver(
            objects,
            memory,
            ObjectDelivery {
                client,
                request,
                object,
                flags: 0,
                via,
            },
            fx,
        );
    }
}
