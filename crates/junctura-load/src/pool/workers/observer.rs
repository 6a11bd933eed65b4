//! Records which objects were removed from the pool, and why: without this, a judge cannot know the losses of a late
//! consumer.

use std::time::Duration;

use junctura::{Code, EventKind, OfferOptions, Pool, Result, Retention, Subscription, Version};
use serde_json::json;

use crate::history::LoadHistory;
use crate::load::LoadNames;
use crate::messages::OrderReader;
use crate::pool::plan::WorkerPlan;
use crate::pool::report::WorkerFigures;

/// The process that watches.
pub(crate) struct LoadObserver<'a> {
    plan: &'a WorkerPlan,
    pool: &'a Pool,
    events: Subscription,
    history: LoadHistory,
}

impl<'a> LoadObserver<'a> {
    pub(crate) fn new(plan: &'a WorkerPlan, pool: &'a Pool) -> Result<Self> {
        Ok(Self {
            plan,
            pool,
            events: pool.subscribe("", &[EventKind::Withdrawn, EventKind::Expired])?,
            history: LoadHistory::begin(plan.history.as_deref(), "observer", &plan.name(), None)?,
        })
    }

    /// Records events until the run is over, completely: up to an event of its own.
    pub(crate) fn run(&mut self, orders: &OrderReader) -> Result<WorkerFigures> {
        let mut figures = WorkerFigures::default();
        let mut last = None;
        loop {
            if last.is_none() && orders.is_over() {
                last = Some(self.make_the_last()?);
            }
            let event = match self.events.next_within(Duration::from_millis(100)) {
                Ok(Some(event)) => event,
                Ok(None) => break,
                Err(error) if error.code() == Code::Timeout => continue,
                Err(error) => return Err(error),
            };
            let Some((object, version)) = &event.object else {
                continue;
            };
            if last == Some(*version) {
                break;
            }
            figures.events += 1;
            self.history.note(
                || json!({"op": "gone", "id": object.key(), "version": version.to_string(), "why": event.kind.name()}),
            )?;
        }
        self.history.note(|| json!({"op": "end", "through": null}))?;
        Ok(figures)
    }

    /// Offers an object that is none of the load's and soon expires.
    fn make_the_last(&self) -> Result<Version> {
        let mut names = LoadNames::new(&self.plan.space, 0);
        let mut attributes = names.attributes(&self.plan.space.field(0, 0, 1));
        for (name, value) in &mut attributes {
            if *name == "class" {
                *value = junctura::Given::Text("rd");
            }
        }
        let options = OfferOptions {
            schema: Some("mars"),
            retention: Some(Retention::For(Duration::from_millis(1))),
            ..OfferOptions::default()
        };
        self.pool.offer_with(attributes, b"", options)
    }
}
