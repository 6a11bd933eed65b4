//! `junctura wait-for`: until so many objects are there. No payload moves, and nothing counts as received.
//!
//! Events and list overlap, so that nothing falls between them: the events begin first. What both tell is counted once, by its
//! key; a newer version of an object is not another one.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use clap::Args;
use junctura::{Code, Described, Error, EventKind, ListOptions, Result};
use junctura_store::Store;
use junctura_terminal::interrupt::InterruptFlag;
use junctura_terminal::output::StandardOutput;
use junctura_terminal::size;
use serde_json::json;

use crate::attributes::{about_selector, selector};
use crate::store;
use crate::url::{BehindArguments, PoolArguments};

const EXAMPLES: &str = "Examples:
  junctura wait-for step=24 --count 400 --timeout 1h && ./products.sh
  junctura wait-for name=plume                                    until there is one
  junctura wait-for class=od step=0/6/12 --count 1200 --timeout 0s --quiet || echo not yet
  junctura wait-for --store /data/archive step=24 --count 400     until so many are kept in a store";

/// Wait until so many objects are there, in the pool or in a store
///
/// Counts what is visible now and what becomes visible from now on, each key once; what has been counted counts even if it goes
/// again meanwhile. No payload moves, and nothing counts as received. The exit status says whether there were enough: 0, or 4
/// when the time was over.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct WaitForArguments {
    #[command(flatten)]
    pool: PoolArguments,
    /// Wait for what is committed to this store instead
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    /// Which objects: param=t, 'levelist>=500'; each must hold
    #[arg(required = true, value_name = "SELECTOR")]
    selectors: Vec<String>,
    /// How many
    #[arg(long, value_name = "N", default_value_t = 1)]
    count: u64,
    /// How long to wait (default: as long as it takes; 0s: only look)
    #[arg(long, value_name = "TIME", value_parser = size::parse_duration)]
    timeout: Option<Duration>,
    /// Say nothing when there were enough
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
    let (selector, seen) = match &arguments.store {
        Some(url) => arguments.wait_for_store(&store::open(url)?, deadline, &interrupt)?,
        None => arguments.wait_for_pool(deadline, &interrupt)?,
    };
    arguments.say(&selector, seen, began.elapsed())
}

impl WaitForArguments {
    fn wait_for_pool(&self, deadline: Option<Instant>, interrupt: &InterruptFlag) -> Result<(String, u64)> {
        let behind = BehindArguments::default();
        let pool = match self
            .pool
            .connect_and_wait(interrupt, &behind, "junctura wait-for", deadline)
        {
            Err(error) if error.code() == Code::Timeout => {
                say!("junctura: {}: {}", error.subject(), error.cause());
                return Ok((self.selectors.join(","), 0));
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
        Ok((selector, seen.count()))
    }

    /// The newest version of each key that is there, and then what is committed.
    fn wait_for_store(
        &self,
        store: &Store,
        deadline: Option<Instant>,
        interrupt: &InterruptFlag,
    ) -> Result<(String, u64)> {
        let selector = store::selector_of_coming(&self.selectors, store)?;
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
        Ok((selector, seen.count()))
    }

    fn say(&self, selector: &str, seen: u64, time: Duration) -> Result<()> {
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
        let cause = format!("{seen} of {} objects came in time", self.count);
        Err(Error::new(Code::Timeout, selector, cause))
    }
}

/// The keys that were seen.
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
