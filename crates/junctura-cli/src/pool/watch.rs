//! `junctura watch` prints a line for each event in the pool.

use std::fmt::Write;
use std::time::{Duration, Instant};

use clap::Args;
use clap::builder::PossibleValuesParser;
use junctura::{Code, EventKind, Pool, PoolEvent, Result};
use junctura_terminal::interrupt::InterruptFlag;
use junctura_terminal::output::StandardOutput;
use junctura_terminal::size;
use junctura_terminal::visible::printable;
use serde_json::{Map, Value, json};

use crate::attributes::{about_selector, selector};
use crate::store::query::following::FollowEnd;
use crate::url::{BehindArguments, PoolArguments};
use crate::{json, store};

const EXAMPLES: &str = "Examples:
  junctura watch                                    everything, until Ctrl-C
  junctura watch param=t --kind offered             new fields of one parameter
  junctura watch --kind left --json                 clients that disconnect, with the reason
  junctura watch --kind offered --count 10 class=od until ten were offered
  junctura watch --store /data/archive param=t      objects of a store when they are committed";

/// Watch what happens in the pool, or in a store
///
/// Events of matching objects: offered, withdrawn, expired, superseded; not offered because no client wanted them (declined), and
/// demands for those (missed). Events of clients: joined, left. Events of named requirements: required, retracted, lapsed at the
/// end of their time to live, and broken because they blocked other clients.
/// With --store: objects when they are committed (archived), with commit and location.
/// No payload is transferred. The command prints to standard error when it begins; it reports all later events.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct WatchArguments {
    #[command(flatten)]
    pool: PoolArguments,
    /// Watch this store
    #[arg(long, value_name = "URL", conflicts_with = "kinds")]
    store: Option<String>,
    /// Selects objects: param=t, 'levelist>=500'; all must match
    #[arg(value_name = "SELECTOR")]
    selectors: Vec<String>,
    /// Kinds of events, separated by commas (default: all)
    #[arg(long = "kind", visible_alias = "kinds", value_name = "KIND", value_delimiter = ',',
        value_parser = PossibleValuesParser::new(EventKind::ALL.map(EventKind::name)))]
    kinds: Vec<String>,
    /// Stop after this many events
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// Stop after this time: with exit status 0, or 4 if fewer than --count events occurred
    #[arg(long, value_name = "TIME", value_parser = size::parse_duration)]
    timeout: Option<Duration>,
    /// Print a JSON line for each event
    #[arg(long)]
    json: bool,
}

/// Watches.
pub(crate) fn run(arguments: &WatchArguments) -> Result<()> {
    let interrupt = InterruptFlag::install()?;
    if let Some(url) = &arguments.store {
        let until = FollowEnd::new(arguments.count, arguments.timeout);
        return store::query::watch::watch(url, &arguments.selectors, until, arguments.json, &interrupt);
    }
    let deadline = arguments
        .timeout
        .and_then(|timeout| Instant::now().checked_add(timeout));
    let pool = arguments
        .pool
        .connect_and_wait(&interrupt, &BehindArguments::default(), "junctura watch", deadline);
    let pool = match pool {
        Err(error) if error.code() == Code::Timeout && arguments.count.is_none() => return Ok(()),
        pool => pool?,
    };
    let mut out = StandardOutput::new();
    match write_events(arguments, &pool, deadline, &interrupt, &mut out) {
        // The server was stopped in order: there are no more events.
        Err(error) if error.code() == Code::Closed && arguments.count.is_none() => {
            say!("junctura: {}: {}", error.subject(), error.cause());
        }
        outcome => outcome?,
    }
    out.flush()
}

fn write_events(
    arguments: &WatchArguments,
    pool: &Pool,
    deadline: Option<Instant>,
    interrupt: &InterruptFlag,
    out: &mut StandardOutput,
) -> Result<()> {
    let selector = selector(&arguments.selectors, pool)?;
    let kinds: Vec<EventKind> = arguments
        .kinds
        .iter()
        .filter_map(|name| EventKind::from_name(name))
        .collect();
    let mut events = about_selector(pool.subscribe(&selector, &kinds), &selector)?;
    say!("junctura: watching {}", pool.url());
    let mut left = arguments.count.unwrap_or(u64::MAX);
    while left > 0 {
        interrupt.check()?;
        let mut event = events.try_next()?;
        if event.is_none() {
            out.flush()?;
            let waited = match deadline {
                Some(deadline) => events.next_within(deadline.saturating_duration_since(Instant::now())),
                None => events.next_event(),
            };
            event = match waited {
                Err(error) if error.code() == Code::Timeout && arguments.count.is_none() => break,
                other => other?,
            };
        }
        let Some(event) = event else { break };
        if arguments.json {
            out.json(&document(&event))?;
        } else {
            writeln!(out, "{}", line(&event))?;
        }
        left -= 1;
    }
    Ok(())
}

fn line(event: &PoolEvent) -> String {
    let mut line = event.kind.name().to_owned();
    if let Some((object, version)) = &event.object {
        let _ = write!(line, " {version} {} {}", object.key(), size::bytes(event.bytes));
    }
    if let Some((name, selector)) = &event.requirement {
        let _ = write!(line, " {name} {selector:?}");
    }
    if let Some(bundle) = &event.bundle {
        let _ = write!(line, " {}", bundle.path.as_deref().unwrap_or("(without a path)"));
        let _ = match bundle.declared {
            Some(declared) => write!(line, " {} of {declared} members", bundle.members),
            None => write!(line, " {} members", bundle.members),
        };
    }
    if let Some(client) = &event.client {
        let _ = write!(
            line,
            " by {} ({} on {}, client {})",
            client.name, client.pid, client.host, client.client
        );
    }
    if let Some(location) = &event.location {
        let _ = write!(line, " in {location}");
    }
    if !event.reason.is_empty() {
        let _ = write!(line, ": {}", event.reason);
    }
    printable(&line)
}

fn document(event: &PoolEvent) -> Value {
    let mut document = Map::new();
    let mut add = |name: &str, value: Value| drop(document.insert(name.to_owned(), value));
    add("event", event.kind.name().into());
    if let Some((object, version)) = &event.object {
        add("key", object.key().into());
        add("schema", object.schema().name().into());
        add("version", version.to_string().into());
        add("bytes", event.bytes.into());
        add("attributes", json::attributes(object.schema(), object.attributes()));
    }
    if let Some((name, selector)) = &event.requirement {
        add("requirement", json!({"name": name, "selector": selector}));
    }
    if let Some(bundle) = &event.bundle {
        let named = json!({"path": bundle.path, "members": bundle.members, "declared": bundle.declared});
        add("bundle", named);
    }
    if let Some(client) = &event.client {
        let named = json!({"client": client.client, "name": client.name, "host": client.host, "pid": client.pid, "offered": client.offered});
        add("client", named);
    }
    if let Some(location) = &event.location {
        add("location", location.as_str().into());
    }
    if !event.reason.is_empty() {
        add("reason", event.reason.as_str().into());
    }
    Value::Object(document)
}
