//! Standing subscriptions of other clients: nearly all match nothing, and each offer has to find that out.
//!
//! 90 % are lists of keys, 9 % ranges, 1 % a regular expression beside an equality. Each shares all but one attribute
//! with the load; the differing attribute is spread over all attributes of the key. One in a thousand matches.

use std::time::Duration;

use junctura::{Code, EventKind, Pool, Result, Subscription};

use crate::load::LoadNames;
use crate::messages::OrderReader;
use crate::pool::plan::WorkerPlan;
use crate::pool::report::WorkerFigures;

/// The process that holds them.
pub(crate) struct LoadSubscriber {
    subscriptions: Vec<Subscription>,
}

impl LoadSubscriber {
    pub(crate) fn new(plan: &WorkerPlan, pool: &Pool) -> Result<Self> {
        let mut names = LoadNames::new(&plan.space, plan.life);
        let fields = u64::from(plan.space.members)
            * u64::from(plan.space.steps)
            * u64::from(plan.space.levels)
            * u64::from(plan.space.params);
        let subscriptions = (0..plan.subscriptions)
            .map(|i| {
                let n = u64::from(i).wrapping_mul(0x9e37_79b9_7f4a_7c15) % fields;
                let field = plan.space.field(n, 0, 1);
                pool.subscribe(&selector(i, &names.attributes(&field)), &[EventKind::Offered])
            })
            .collect::<Result<_>>()?;
        Ok(Self { subscriptions })
    }

    /// Reads events until the run is over.
    pub(crate) fn run(&mut self, orders: &OrderReader) -> Result<WorkerFigures> {
        let mut figures = WorkerFigures::default();
        while !orders.is_over() {
            for subscription in self.subscriptions.iter_mut().step_by(1000) {
                while subscription.try_next()?.is_some() {
                    figures.events += 1;
                }
            }
            match self
                .subscriptions
                .first_mut()
                .map(|first| first.next_within(Duration::from_millis(50)))
            {
                Some(Ok(Some(_))) => figures.events += 1,
                Some(Err(error)) if error.code() != Code::Timeout => return Err(error),
                _ => {}
            }
        }
        Ok(figures)
    }
}

/// The i-th selector, near this object of the load.
fn selector(i: u32, attributes: &[(&'static str, junctura::Given<'_>)]) -> String {
    let count = attributes.len() as u32;
    let matching = i.is_multiple_of(1000);
    let odd = (!matching).then_some((i / 7) % count);
    let kind = i % 100;
    let tests = attributes.iter().enumerate().map(|(at, (name, value))| {
        let value = text(value);
        let is_odd = odd == Some(at as u32);
        let strange = || strange(name);
        match (kind, *name) {
            (90..=98, "step") if !is_odd => "step=0/to/240/by/6".to_owned(),
            (90..=98, "levelist") if !is_odd => "levelist=0/to/1000/by/10".to_owned(),
            (99, "param") if !is_odd => format!("param~\"^{value}$\""),
            (_, "param" | "levelist") if is_odd => format!("{name}={}/{}", strange(), strange()),
            _ if is_odd => format!("{name}={}", strange()),
            _ => format!("{name}={value}"),
        }
    });
    tests.collect::<Vec<_>>().join(",")
}

fn text(value: &junctura::Given<'_>) -> String {
    match value {
        junctura::Given::Integer(number) => number.to_string(),
        junctura::Given::Text(text) => (*text).to_owned(),
        other => format!("{other:?}"),
    }
}

/// A value that no object of the load has.
fn strange(name: &str) -> &'static str {
    match name {
        "date" => "19990101",
        "time" => "0300",
        "step" => "999",
        "number" => "9999",
        "levelist" => "1",
        _ => "xx",
    }
}
