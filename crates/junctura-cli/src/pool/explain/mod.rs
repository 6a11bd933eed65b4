//! `junctura explain` answers why: why a request waits, why nothing matches, why an object is in memory or was removed, what fills memory.
//!
//! ```text
//!  SELECTOR --list--> nothing: nearest_miss      something: object, for the first ones
//!  --waiting, --client --waits--> chains of what waits for what, cycles (waits)     --dot (graph)
//!  --memory --keepers--> memory
//! ```

pub(crate) mod chains;
mod conditions;
mod graph;
mod memory;
mod nearest_miss;
mod object;
mod waits;
mod words;

use clap::Args;
use junctura::{Code, Error, ListOptions, Pool, Result, Target};
use junctura_terminal::interrupt::InterruptFlag;
use junctura_terminal::output::StandardOutput;
use serde_json::json;

use crate::absent::open_served;
use crate::attributes::{about_selector, note_unknown_in, selector};
use crate::url::PoolArguments;

const EXAMPLES: &str = "Examples:
  junctura explain                                       all requests that wait, with what they wait for
  junctura explain --client product-broker               requests of one client
  junctura explain param=t,step=36,levelist=85           why nothing matches, or why these objects stay
  junctura explain --key '{space=default}{}{name=a}'                  one object: what keeps it, or why it was removed
  junctura explain --memory                              what keeps memory
  junctura explain --dot | dot -Tsvg -o waits.svg        the graph of what waits for what";

/// Objects that are explained one by one; others are counted.
const OBJECTS_MAX: usize = 10;
/// Waits that are read.
const WAITS_MAX: usize = 10_000;

/// Explain why a request waits, why an object stays or was removed, and what fills memory
///
/// Without arguments, shows all requests that wait, the longest first, each with what it waits for: requirements and their readers,
/// clients, bundles. Clients that wait for each other are named.
/// With a selector that matches nothing, names the condition without which something matches, and the values that exist. With a selector
/// that matches, or with --key, states what keeps each object in memory.
/// Reads only. The exit status is 3 if there is nothing to explain, and 5 if the pool is not served.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
#[expect(clippy::struct_excessive_bools, reason = "one for each option")]
pub(crate) struct ExplainArguments {
    #[command(flatten)]
    pool: PoolArguments,
    /// Selects objects: param=t, 'levelist>=500'; all must match
    #[arg(value_name = "SELECTOR")]
    selectors: Vec<String>,
    /// Explain the object with this key, as `ls --json` prints it
    #[arg(long, value_name = "KEY", conflicts_with_all = ["selectors", "waiting", "client", "memory", "dot"])]
    key: Option<String>,
    /// Show all requests that wait (the default without a selector)
    #[arg(long, conflicts_with_all = ["selectors", "memory"])]
    waiting: bool,
    /// Only requests of clients with this name; `*` matches anything
    #[arg(long, value_name = "NAME", conflicts_with_all = ["selectors", "memory"])]
    client: Option<String>,
    /// Show what keeps memory
    #[arg(long, conflicts_with = "selectors")]
    memory: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Print the graph of what waits for what, for Graphviz
    #[arg(long, conflicts_with_all = ["selectors", "memory", "json"])]
    dot: bool,
}

/// Explains.
pub(crate) fn run(arguments: &ExplainArguments) -> Result<()> {
    let interrupt = InterruptFlag::install()?;
    let pool = arguments.open(&interrupt)?;
    let mut out = StandardOutput::new();
    if arguments.memory {
        memory::explain(&pool, arguments.json, &mut out)?;
    } else if let Some(key) = &arguments.key {
        let explained = pool.reasons().explain(Target::key_text(key.as_str()))?;
        object::write(&[explained], 0, arguments.json, &mut out)?;
    } else if arguments.selectors.is_empty() {
        arguments.explain_waits(&pool, &mut out)?;
    } else {
        arguments.explain_objects(&pool, &mut out)?;
    }
    out.flush()
}

impl ExplainArguments {
    /// # Errors
    /// `Unavailable` where no server runs.
    fn open(&self, interrupt: &InterruptFlag) -> Result<Pool> {
        let builder = self.pool.reader("junctura explain").visitor(true);
        let opened = open_served(&self.pool.pool, || interrupt.watch(builder).open());
        opened.map_err(|error| match error.code() {
            Code::NotFound => Error::new(Code::Unavailable, error.subject(), error.cause()),
            _ => error,
        })
    }

    fn explain_waits(&self, pool: &Pool, out: &mut StandardOutput) -> Result<()> {
        let requests = pool.reasons().waits(WAITS_MAX)?;
        let all = chains::WaitGraph::new(requests);
        let shown = all.of_client(self.client.as_deref());
        if self.dot {
            return graph::write(&all, &shown, out);
        }
        if self.json {
            out.json(&waits::document(&all, &shown))?;
        } else {
            waits::write(&all, &shown, out)?;
        }
        if shown.is_empty() {
            out.flush()?;
            let whose = self.client.as_deref().map_or("nothing waits".to_owned(), |name| {
                format!("nothing of a client {name} waits")
            });
            return Err(Error::new(Code::NotFound, "waits", whose));
        }
        Ok(())
    }

    fn explain_objects(&self, pool: &Pool, out: &mut StandardOutput) -> Result<()> {
        let selector = selector(&self.selectors, pool)?;
        let (mut first, mut more) = (Vec::new(), 0);
        for page in about_selector(pool.list_with(&selector, ListOptions::default()), &selector)? {
            for entry in about_selector(page, &selector)? {
                if first.len() < OBJECTS_MAX {
                    first.push((entry.key().to_owned(), entry.schema().name().to_owned()));
                } else {
                    more += 1;
                }
            }
        }
        if first.is_empty() {
            note_unknown_in(pool, &selector)?;
            return nearest_miss::explain(pool, &selector, self.json, out);
        }
        let mut objects = Vec::new();
        for (key, schema) in first {
            match pool.reasons().explain(Target::key_text(key).in_schema(schema)) {
                Ok(object) => objects.push(object),
                // It has left since it was listed.
                Err(error) if error.code() == Code::NotFound => more += 1,
                Err(error) => return Err(error),
            }
        }
        object::write(&objects, more, self.json, out)
    }
}

/// Prints a document of several parts.
fn print(out: &mut StandardOutput, name: &str, value: &impl serde::Serialize) -> Result<()> {
    let value = serde_json::to_value(value).map_err(|error| Error::new(Code::Protocol, name, error.to_string()))?;
    out.json(&json!({ name: value }))
}
