//! `junctura wait-for` waits until a number of objects is visible. It transfers no payload and receives nothing.
//!
//! The subscription to events begins before the list, so no object is missed. An object in both is counted once, by its
//! key; a newer version of an object is not counted again.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use clap::Args;
use junctura::{Code, Described, Error, EventKind, ListOptions, Result};
use junctura_terminal::interrupt::InterruptFlag;
use junctura_terminal::output::StandardOutput;
use junctura_terminal::size;
use serde_json::json;

use crate::attributes::{about_selector, selector, why_nothing};
use crate::store;
use crate::url::{BehindArguments, PoolArguments};

const EXAMPLES: &str = "Examples:
  junctura wait-for step=24 --count 400 --timeout 1h && ./products.sh
  junctura wait-for name=plume                                    until it exists
  junctura wait-for class=od step=0/6/12 --count 1200 --timeout 0s --quiet || echo not yet
  junctura wait-for --store /data/archive step=24 --count 400     until a store has 400";

/// Wait until a number of objects is visible, in the pool or in a store
///
/// Counts objects that are visible now or become visible later, each key once; an object counts even if it is removed again.
/// The command transfers no payload and receives nothing. The exit status is 0 if the number was reached, and 4 after the
/// timeout.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct WaitForArguments {
    #[command(flatten)]
    pool: PoolArguments,
    /// Wait for objects of this store
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    /// Selects objects: param=t, 'levelist>=500'; all must match
    #[arg(required = true, value_name = "SELECTOR")]
    selectors: Vec<String>,
    /// Number of objects
    #[arg(long, value_name = "N", default_value_t = 1)]
    count: u64,
    /// Maximum wait (default: no limit; 0s: check once)
    #[arg(long, value_name = "TIME", value_parser = size::parse_duration)]
    timeout: Option<Duration>,
    /// Print nothing if the number was reached
    #[arg(short, long, conflicts_with = "json")]
    quiet: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Waits.
pub(crate) fn run(arguments: &WaitForArguments) -> Result<()> {
    let began = Instant::now();
    let deadline = arguments.timeout.and_then(|timeout| began.checked_add(timeout));
    let interrupt = InterruptFlag::install()?;
    let counted = match &arguments.store {
        Some(url) => arguments.wait_for_store(url, deadline, &interrupt)?,
        None => arguments.wait_for_pool(deadline, &interrupt)?,
    };
    arguments.say(&counted, began.elapsed())
}

/// The number of objects that a selector matched.
struct CountedObjects {
    selector: String,
    seen: u64,
    /// The end of the error for too few.
    advice: String,
}

const ADVICE: &str = "`junctura ls` lists what is there";

impl WaitForArguments {
    fn wait_for_pool(&self, deadline: Option<Instant>, interrupt: &InterruptFlag) -> Result<CountedObjects> {
        let behind = BehindArguments::default();
        let pool = match self
            .pool
            .connect_and_wait(interrupt, &behind, "junctura wait-for", deadline)
        {
            Err(error) if error.code() == Code::Timeout => {
                say!("junctura: {}: {}", error.subject(), error.cause());
                return Ok(CountedObjects {
                    selector: self.selectors.join(","),
                    seen: 0,
                    advice: ADVICE.to_owned(),
                });
            }
            pool => pool?,
        };
        let selector = selector(&self.selectors, &pool)?;
        let mut events = about_selector(pool.subscribe(&selector, &[EventKind::Offered]), &selector)?;
        let mut seen = SeenKeys::default();
        for page in about_selector(pool.list_with(&selector, ListOptions::default()), &selector)? {
            interrupt.check()?;
            about_selector(page, &selector)?
                .iter()
                .for_each(|entry| seen.note(entry));
            if seen.count() >= self.count {
                break;
            }
        }
        while seen.count() < self.count {
            interrupt.check()?;
            let next = match deadline {
                Some(deadline) => events.next_within(deadline.saturating_duration_since(Instant::now())),
                None => events.next_event(),
            };
            match next {
                Ok(Some(event)) => {
                    if let Some((object, _)) = &event.object {
                        seen.note(object);
                    }
                }
                Err(error) if error.code() == Code::Timeout => break,
                Ok(None) => {
                    return Err(Error::new(
                        Code::Closed,
                        selector,
                        "the pool ended before there were enough",
                    ));
                }
                Err(error) => return Err(error),
            }
        }
        let advice = if seen.count() == 0 && self.count > 0 {
            why_nothing(&pool, &selector, ADVICE)
        } else {
            ADVICE.to_owned()
        };
        Ok(CountedObjects {
            selector,
            seen: seen.count(),
            advice,
        })
    }

    /// Counts the newest version of each key, then new commits.
    fn wait_for_store(
        &self,
        url: &str,
        deadline: Option<Instant>,
        interrupt: &InterruptFlag,
    ) -> Result<CountedObjects> {
        let store = store::open(url)?;
        let selector = store::selector_of_coming(&self.selectors, &store)?;
        let mut seen = SeenKeys::default();
        let mut follow = store.follow(&selector, None);
        while seen.count() < self.count {
            let timeout = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            let new = follow.next_within(timeout, || interrupt.check());
            let Some(listing) = about_selector(new, &selector)? else {
                break;
            };
            listing.for_each_key(|key, object| seen.note_key(object.schema().name(), key));
        }
        Ok(CountedObjects {
            selector,
            seen: seen.count(),
            advice: format!("`junctura ls --store {url}` lists what is there"),
        })
    }

    fn say(&self, counted: &CountedObjects, time: Duration) -> Result<()> {
        let seen = counted.seen;
        let is_enough = seen >= self.count;
        let mut out = StandardOutput::new();
        if self.json {
            let seconds = (time.as_secs_f64() * 1e6).round() / 1e6;
            out.json(&json!({"objects": seen, "count": self.count, "reached": is_enough, "seconds": seconds}))?;
        } else if is_enough && !self.quiet {
            let s = if seen == 1 { "" } else { "s" };
            writeln!(out, "{seen} object{s}")?;
        }
        out.flush()?;
        if is_enough {
            return Ok(());
        }
        let cause = format!("{seen} of {} objects arrived in time; {}", self.count, counted.advice);
        Err(Error::new(Code::Timeout, counted.selector.as_str(), cause))
    }
}

/// The keys so far.
#[derive(Default)]
struct SeenKeys(HashSet<(String, String)>);

impl SeenKeys {
    fn note(&mut self, object: &Described) {
        self.note_key(object.schema().name(), object.key());
    }

    fn note_key(&mut self, schema: &str, key: &str) {
        self.0.insert((schema.to_owned(), key.to_owned()));
    }

    fn count(&self) -> u64 {
        self.0.len() as u64
    }
}
