//! `junctura store purge` and `junctura store wipe` remove objects from a store.

use std::io::{BufRead, IsTerminal};

use clap::Args;
use junctura::{Code, Error, Result};
use junctura_store::{Listing, Store};
use junctura_terminal::output::StandardOutput;
use junctura_terminal::progress::timed;
use junctura_terminal::size;
use serde_json::json;

use crate::attributes::about_selector;
use crate::store::{NOTHING_MATCHES, StoreArguments};

const PURGE_EXAMPLES: &str = "Examples:
  junctura store purge --store /data/archive                       all masked versions
  junctura store purge --store /data/archive class=rd --dry-run    report only
The room is there again after `junctura store compact --store URL`, when no reader can need it any more.";
const WIPE_EXAMPLES: &str = "Examples:
  junctura store wipe --store /data/archive class=rd,expver=test --dry-run   report only
  junctura store wipe --store /data/archive class=rd,expver=test --yes       without a confirmation
The room is there again after `junctura store compact --store URL`, when no reader can need it any more.";

/// Keys that a dry run prints without --verbose.
const KEYS_SHOWN: usize = 20;

/// Remove masked versions from a store
///
/// Removes the masked versions of all matching objects. Readers that have found them before can still read them for the snapshot
/// age of the store.
#[derive(Args, Debug)]
#[command(after_help = PURGE_EXAMPLES)]
pub(crate) struct PurgeArguments {
    #[command(flatten)]
    store: StoreArguments,
    /// Selects objects: all selectors must match; default: all objects
    #[arg(value_name = "SELECTOR")]
    selectors: Vec<String>,
    #[command(flatten)]
    how: HowArguments,
}

/// Remove objects from a store
///
/// Removes all versions of all matching objects. Readers that have found them before can still read them for the snapshot age of
/// the store. The command shows the objects and asks for a confirmation.
#[derive(Args, Debug)]
#[command(after_help = WIPE_EXAMPLES)]
pub(crate) struct WipeArguments {
    #[command(flatten)]
    store: StoreArguments,
    /// Selects objects: all selectors must match
    #[arg(required = true, value_name = "SELECTOR")]
    selectors: Vec<String>,
    /// Do not ask
    #[arg(short, long, conflicts_with = "dry_run")]
    yes: bool,
    #[command(flatten)]
    how: HowArguments,
}

#[derive(Args, Clone, Copy, Debug)]
struct HowArguments {
    /// Report what would be removed, with the first 20 keys, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Print the keys of all objects
    #[arg(short, long, conflicts_with = "json")]
    verbose: bool,
    /// Print JSON: a line for each object, then a summary
    #[arg(long)]
    json: bool,
}

/// Runs `purge`.
pub(crate) fn purge(arguments: &PurgeArguments) -> Result<()> {
    let store = arguments.store.open()?;
    let selector = crate::store::selector(&arguments.selectors, &store)?;
    let listing = timed("looking", || store.snapshot()?.masked(&selector));
    let listing = about_selector(listing, &selector)?;
    arguments.how.remove(&store, &listing, || Ok(()))
}

/// Runs `wipe`.
pub(crate) fn wipe(arguments: &WipeArguments) -> Result<()> {
    let store = arguments.store.open()?;
    let selector = crate::store::selector(&arguments.selectors, &store)?;
    let listing = timed("looking", || store.snapshot()?.versions(&selector));
    let listing = about_selector(listing, &selector)?;
    if listing.is_empty() {
        return Err(Error::new(Code::NotFound, selector, NOTHING_MATCHES));
    }
    arguments.how.remove(&store, &listing, || {
        if arguments.yes {
            return Ok(());
        }
        ask(&listing, arguments.store.url())
    })
}

impl HowArguments {
    fn remove(self, store: &Store, listing: &Listing, ask: impl FnOnce() -> Result<()>) -> Result<()> {
        let mut out = StandardOutput::new();
        let listed = match (self.verbose || self.json, self.dry_run) {
            (true, _) => usize::MAX,
            (false, true) => KEYS_SHOWN,
            (false, false) => 0,
        };
        for object in listing.iter().take(listed) {
            if self.json {
                out.json(&json!({"key": object.key(), "commit": object.commit(), "bytes": object.bytes()}))?;
            } else {
                writeln!(out, "commit {} {}", object.commit(), object.key())?;
            }
        }
        if listed == KEYS_SHOWN && listing.len() > KEYS_SHOWN {
            writeln!(out, "and {} more: --verbose prints all", listing.len() - KEYS_SHOWN)?;
        }
        out.flush()?;
        let commit = if self.dry_run {
            None
        } else {
            ask()?;
            Some(timed("removing", || store.remove(listing))?.commit)
        };
        if self.json {
            let (objects, bytes) = (listing.len(), listing.bytes());
            out.json(&json!({"objects": objects, "bytes": bytes, "commit": commit, "dry_run": self.dry_run}))?;
        } else {
            let verb = if self.dry_run { "would remove" } else { "removed" };
            writeln!(out, "{verb} {}", amount(listing))?;
        }
        out.flush()
    }
}

fn amount(listing: &Listing) -> String {
    let s = if listing.len() == 1 { "" } else { "s" };
    format!("{} object{s}, {}", listing.len(), size::bytes(listing.bytes()))
}

/// Asks for a confirmation on a terminal.
fn ask(listing: &Listing, url: &str) -> Result<()> {
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        let cause = format!(
            "it would remove {}: confirm with --yes; `junctura ls --store URL` lists them",
            amount(listing)
        );
        return Err(Error::new(Code::InvalidArgument, "wipe", cause));
    }
    say!("Remove {} from {url}? Type yes:", amount(listing));
    let mut answer = String::new();
    let read = std::io::stdin().lock().read_line(&mut answer);
    read.map_err(|error| Error::new(Code::Io, "standard input", error.to_string()))?;
    if answer.trim() == "yes" {
        return Ok(());
    }
    Err(Error::new(Code::Interrupted, "wipe", "nothing was removed"))
}
