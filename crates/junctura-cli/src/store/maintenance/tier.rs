//! `junctura store tier` and `junctura store move` manage other locations for the objects of a store.

use clap::Args;
use junctura::{Code, Error, Result};
use junctura_store::{Moved, Store};
use junctura_terminal::interrupt::InterruptFlag;
use junctura_terminal::output::StandardOutput;
use junctura_terminal::progress::WorkProgress;
use junctura_terminal::size;
use serde_json::json;

use crate::attributes::about_selector;
use crate::store::StoreArguments;

const TIER_EXAMPLES: &str = "Examples:
  junctura store tier --store /data/archive                                 list the tiers
  junctura store tier --store /data/archive cold /big/slow/disk             add a tier
  junctura store tier --store /data/archive tape 's3://fields/cold?endpoint=https://s3.example.org'
  junctura store tier --store /new/archive --adopt                          this copy is the store now, not the original";
const MOVE_EXAMPLES: &str = "Examples:
  junctura store move --store /data/archive --to cold date=2025-01-01/to/2025-12-31
  junctura store move --store /data/archive --to cold class=rd --dry-run       what would be moved
  junctura store move --store /data/archive --to data class=rd                 and back
The room is there again after `junctura store compact --store URL`, when no reader can need it any more.";

/// Add a location for objects of a store, or list the locations
///
/// A tier is a folder or a prefix of an object store to which `junctura store move` moves objects, usually slower and larger.
/// It is a property of the store: it applies to all clients, permanently.
#[derive(Args, Debug)]
#[command(after_help = TIER_EXAMPLES)]
pub(crate) struct TierArguments {
    #[command(flatten)]
    store: StoreArguments,
    /// Name of a new tier: a-z, 0-9, - and _
    #[arg(requires = "place")]
    name: Option<String>,
    /// Its location: an absolute path, or a URL of an object store
    #[arg(value_name = "URL")]
    place: Option<String>,
    /// State that this folder is the store from now on
    ///
    /// Data outside the folder, its tiers, and folders behind links in it then belong to this folder, and no longer to the one that it was
    /// copied or restored from. The original becomes read-only: it can neither archive there nor compact. Do not do this for a copy that is only a
    /// backup or a test: it would remove data of the original.
    #[arg(long, conflicts_with_all = ["name", "place"])]
    adopt: bool,
    /// Print a JSON line for each tier
    #[arg(long)]
    json: bool,
}

/// Move objects of a store to another place
///
/// Copies and verifies all matching objects, including masked versions; all clients find them there afterwards. The command can be interrupted
/// and repeated: objects that are there already are skipped.
#[derive(Args, Debug)]
#[command(after_help = MOVE_EXAMPLES)]
pub(crate) struct MoveArguments {
    #[command(flatten)]
    store: StoreArguments,
    /// The target: the name of a tier (`junctura store tier` lists them), or data, the original location
    #[arg(long, value_name = "TIER")]
    to: String,
    /// Selects objects: all selectors must match
    #[arg(required = true, value_name = "SELECTOR")]
    selectors: Vec<String>,
    /// Report what would be moved, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Print JSON: a line for each damaged object, then a summary
    #[arg(long)]
    json: bool,
}

/// Runs `tier`.
pub(crate) fn tier(arguments: &TierArguments) -> Result<()> {
    let store = arguments.store.open()?;
    if let (Some(name), Some(place)) = (&arguments.name, &arguments.place) {
        return store.add_tier(name, place);
    }
    if arguments.adopt {
        store.adopt()?;
    }
    let mut out = StandardOutput::new();
    for tier in store.tiers()? {
        if arguments.json {
            out.json(&json!({"name": tier.name, "place": tier.place}))?;
        } else {
            writeln!(out, "{:<16} {}", tier.name, tier.place)?;
        }
    }
    out.flush()
}

/// Runs `move`.
pub(crate) fn move_to(arguments: &MoveArguments) -> Result<()> {
    let store = arguments.store.open()?;
    let selector = crate::store::selector(&arguments.selectors, &store)?;
    let movable = about_selector(store.movable(&selector, &arguments.to), &selector)?;
    let (objects, bytes) = (movable.len() as u64, movable.stored_bytes());
    let mut out = StandardOutput::new();
    if arguments.dry_run {
        if arguments.json {
            out.json(&json!({"objects": objects, "bytes": bytes, "commit": null, "damaged": 0, "dry_run": true}))?;
        } else {
            writeln!(out, "would move {}", amount(objects, bytes))?;
        }
        return out.flush();
    }
    // The selection is repeated, so that objects that another client has moved since are not moved again.
    drop(movable);
    let moved = with_progress(Some(bytes), |progress| {
        store.move_to(&selector, &arguments.to, progress)
    })?;
    tell(&moved, "moved", arguments.json, arguments.store.url(), &mut out)
}

/// Reports what [`gather`] would do.
pub(crate) fn would_gather(store: &Store, as_json: bool) -> Result<()> {
    let (objects, bytes) = store.scattered()?;
    let mut out = StandardOutput::new();
    if as_json {
        out.json(&json!({"would_gather": {"objects": objects, "bytes": bytes}}))?;
    } else {
        writeln!(out, "would gather {}", amount(objects, bytes))?;
    }
    out.flush()
}

/// Gathers, for `junctura store compact --store URL`: damaged objects do not stop the compaction.
pub(crate) fn gather(store: &Store, as_json: bool, url: &str) -> Result<Result<()>> {
    let gathered = with_progress(None, |progress| store.gather(progress))?;
    Ok(tell(&gathered, "gathered", as_json, url, &mut StandardOutput::new()))
}

fn with_progress(
    bytes: Option<u64>,
    work: impl FnOnce(&mut dyn FnMut(u64, u64) -> bool) -> Result<Moved>,
) -> Result<Moved> {
    let interrupt = InterruptFlag::install()?;
    let mut progress = WorkProgress::new();
    progress.expect(bytes);
    let moved = work(&mut |objects, bytes| {
        progress.show(bytes, objects);
        interrupt.check().is_ok()
    });
    progress.end();
    moved
}

fn tell(moved: &Moved, verb: &str, as_json: bool, url: &str, out: &mut StandardOutput) -> Result<()> {
    for (key, error) in &moved.damaged {
        if as_json {
            out.json(&json!({"key": key, "code": error.code().to_string(), "cause": error.to_string()}))?;
        } else {
            writeln!(out, "damaged: {error}")?;
        }
    }
    if as_json {
        out.json(&json!({
            "objects": moved.objects, "bytes": moved.bytes, "commit": moved.commit, "damaged": moved.damaged_count,
            "dry_run": false,
        }))?;
    } else {
        writeln!(out, "{verb} {}", amount(moved.objects, moved.bytes))?;
    }
    out.flush()?;
    if moved.damaged_count > 0 {
        let cause = format!("{} objects are damaged, and stay where they are", moved.damaged_count);
        return Err(Error::new(Code::Corrupt, url, cause));
    }
    Ok(())
}

fn amount(objects: u64, bytes: u64) -> String {
    let s = if objects == 1 { "" } else { "s" };
    format!("{objects} object{s}, {}", size::bytes(bytes))
}
