//! `junctura explain` answers why: why a request waits, why nothing matches, why an object is in memory or was removed, what fills memory.
//!
//! ```text
//!  SELECTOR --tally, list--> matched: the conditions without which something matches, or object, for the first ones
//!  --waiting, --client --waits--> chains of what waits for what, cycles (waits)     --dot (graph)
//!  --memory --keepers--> memory
//! ```

pub(crate) mod chains;
mod graph;
mod matched;
mod memory;
mod object;
pub(crate) mod own;
mod waits;
mod words;

use clap::Args;
use junctura::{Code, Error, Pool, Result, Target, Version};
use junctura_terminal::interrupt::InterruptFlag;
use junctura_terminal::output::StandardOutput;
use serde::Serialize;
use serde_json::{Value, json};

use crate::absent::open_served;
use crate::attributes::{about_selector, note_unknown_in, selector};
use crate::url::PoolArguments;

const EXAMPLES: &str = "Examples:
  junctura explain                                       all requests that wait, with what they wait for
  junctura explain --client product-broker               requests of one client
  junctura explain param=t,step=36,levelist=85           why nothing matches, or why these objects stay
  junctura explain --key '{space=default}{}{name=a}'                  one object: what keeps it, or why it was removed
  junctura explain --version 1795271438931.4711          the same, by its version
  junctura explain --memory                              what keeps memory
  junctura explain --dot | dot -Tsvg -o waits.svg        the graph of what waits for what";

/// Waits that are read.
const WAITS_MAX: usize = 10_000;

/// Explain why a request waits, why an object stays or was removed, and what fills memory
///
/// Without arguments, shows all requests that wait, the longest first, each with what it waits for: requirements and their readers,
/// clients, bundles. Clients that wait for each other are named.
/// With a selector that matches nothing, names the condition without which something matches, and the values that exist. With a selector
/// that matches, or with --key, states what keeps each object in memory. Of arrays that lack pieces, names the ranks that are missing.
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
    /// Explain the visible object of this version, as `ls --long`, a cursor or an error names it
    #[arg(long, value_name = "VERSION", conflicts_with_all = ["selectors", "key", "waiting", "client", "memory", "dot"])]
    version: Option<Version>,
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
    } else if let Some(version) = arguments.version {
        let explained = pool.reasons().explain_version(version)?;
        object::write(&[explained], 0, arguments.json, &mut out)?;
    } else if arguments.selectors.is_empty() {
        arguments.explain_waits(&pool, &mut out)?;
    } else {
        arguments.explain_selector(&pool, &mut out)?;
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
            if waits::lacks_memory(&shown) {
                memory::write_causes(pool, out)?;
            } else if waits::is_full(&shown) {
                for holder in memory::holders(&pool.reasons().keepers()?) {
                    writeln!(out, "{holder}")?;
                }
            }
        }
        if shown.is_empty() {
            out.flush()?;
            let whose = self.client.as_deref().map_or(
                "nothing waits; a selector explains objects, --memory what keeps memory".to_owned(),
                |name| format!("no request of a client called {name} waits; `junctura pool stat` lists the clients"),
            );
            return Err(Error::new(Code::NotFound, "waits", whose));
        }
        Ok(())
    }

    fn explain_selector(&self, pool: &Pool, out: &mut StandardOutput) -> Result<()> {
        let selector = selector(&self.selectors, pool)?;
        let explained = about_selector(pool.reasons().explain_selector(&selector), &selector)?;
        if explained.matches == 0 {
            note_unknown_in(pool, &selector)?;
        }
        if self.json {
            return out.json(&value("selector", &explained)?);
        }
        matched::write(&explained, out)
    }
}

/// Prints a document of several parts.
fn print(out: &mut StandardOutput, name: &str, document: &impl Serialize) -> Result<()> {
    out.json(&json!({ name: value(name, document)? }))
}

fn value(name: &str, document: &impl Serialize) -> Result<Value> {
    serde_json::to_value(document).map_err(|error| Error::new(Code::Protocol, name, error.to_string()))
}
