//! Probable mistakes in selectors, as warnings of `tracing`.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use junctura::{DemandOptions, FollowOptions, ListOptions, Pool, Result, TallyOptions};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// Collects the messages of warnings.
#[derive(Clone, Default)]
struct WarningLog(Arc<Mutex<Vec<String>>>);

struct MessageText(String);

impl Visit for MessageText {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.0 = format!("{value:?}");
        }
    }
}

impl Subscriber for WarningLog {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "junctura::selector"
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut message = MessageText(String::new());
        event.record(&mut message);
        self.0.lock().unwrap().push(message.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

fn warnings(run: impl FnOnce() -> Result<()>) -> Vec<String> {
    let log = WarningLog::default();
    tracing::subscriber::with_default(log.clone(), run).unwrap();
    log.0.lock().unwrap().clone()
}

const SLIP: &str = "no object has the attribute \"parm\"; did you mean param (schema mars)?";

#[test]
fn every_verb_that_reads_by_a_selector_warns() -> Result<()> {
    let pool = Pool::embedded()?;
    let selector = "class=od,parm=t";
    assert_eq!(warnings(|| pool.follow(selector).map(drop)), [SLIP]);
    assert_eq!(warnings(|| pool.list(selector).map(drop)), [SLIP]);
    assert_eq!(warnings(|| pool.require(selector).map(drop)), [SLIP]);
    assert_eq!(warnings(|| pool.subscribe(selector, &[]).map(drop)), [SLIP]);
    assert_eq!(
        warnings(|| pool.tally(selector, TallyOptions::default()).map(drop)),
        [SLIP]
    );
    Ok(())
}

#[test]
fn a_selector_without_a_mistake_is_not_reported() -> Result<()> {
    let pool = Pool::embedded()?;
    for selector in ["", "param=t", "unit=K", "step=6"] {
        let run = || {
            pool.follow_with(selector, FollowOptions::default())?;
            pool.list(selector)?;
            Ok(())
        };
        assert!(warnings(run).is_empty(), "{selector}");
        assert!(pool.reasons().mistakes(selector)?.is_empty());
    }
    Ok(())
}

#[test]
fn pages_and_non_blocking_verbs_do_not_warn() -> Result<()> {
    let pool = Pool::embedded()?;
    let run = || {
        pool.list_with("parm=t", ListOptions::default())?;
        pool.begin_follow("parm=t", FollowOptions::default())?.wait()?;
        Ok(())
    };
    assert!(warnings(run).is_empty());
    assert_eq!(pool.reasons().begin_mistakes("parm=t")?.wait()?, [SLIP]);
    Ok(())
}

#[test]
fn attributes_of_another_schema_name_the_open_one() -> Result<()> {
    let pool = Pool::embedded()?;
    let error = pool.offer([("name", "a")], b"").unwrap_err();
    assert!(
        error
            .cause()
            .ends_with("; with schema free any attributes may be given"),
        "{error}"
    );
    let timeout = DemandOptions {
        timeout: Some(Duration::ZERO),
        ..DemandOptions::default()
    };
    let error = pool
        .demand_with(junctura::Target::key([("name", "a")]), timeout)
        .unwrap_err();
    assert!(
        error
            .cause()
            .ends_with("; with schema free any attributes may be given"),
        "{error}"
    );
    let free = Pool::builder().schema("free").open()?;
    let error = free.offer([("unit", "K")], b"").unwrap_err();
    assert!(!error.cause().contains("with schema"), "{error}");
    Ok(())
}
