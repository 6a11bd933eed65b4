//! `junctura store check` verifies the contents of a store.

use clap::Args;
use junctura::{Code, Error, Result};
use junctura_terminal::interrupt::InterruptFlag;
use junctura_terminal::output::StandardOutput;
use junctura_terminal::progress::WorkProgress;
use junctura_terminal::size;
use serde_json::json;

use crate::attributes::about_selector;
use crate::store::StoreArguments;

const EXAMPLES: &str = "Examples:
  junctura store check --store /data/archive                     everything
  junctura store check --store /data/archive date=20261120       a part
  junctura store check --store /data/archive --sample 1000       a random thousand";

/// Verify the objects of a store
///
/// Reads every matching object, including masked versions, and compares it with its checksum. Damaged objects are reported (exit
/// status 1), and so are data files that no commit refers to, which `junctura store compact` removes later.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CheckArguments {
    #[command(flatten)]
    store: StoreArguments,
    /// Selects objects: all selectors must match; default: all objects
    #[arg(value_name = "SELECTOR")]
    selectors: Vec<String>,
    /// Read only a sample of N objects
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    sample: Option<u64>,
    /// Print JSON: a line for each damaged object, then a summary
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(arguments: &CheckArguments) -> Result<()> {
    let interrupt = InterruptFlag::install()?;
    let store = arguments.store.open()?;
    let selector = crate::store::selector(&arguments.selectors, &store)?;
    let snapshot = store.snapshot()?;
    let mut progress = WorkProgress::new();
    if arguments.sample.is_none() {
        let listing = about_selector(snapshot.list_all(&selector), &selector)?;
        progress.expect(Some(listing.bytes()));
    }
    let checked = snapshot.check(&selector, arguments.sample, |objects, bytes| {
        progress.show(bytes, objects);
        interrupt.check().is_ok()
    });
    progress.end();
    let checked = about_selector(checked, &selector)?;
    let mut out = StandardOutput::new();
    for (key, error) in &checked.damaged {
        if arguments.json {
            out.json(&json!({"key": key, "code": error.code().to_string(), "cause": error.to_string()}))?;
        } else {
            writeln!(out, "damaged: {error}")?;
        }
    }
    if arguments.json {
        out.json(&json!({
            "objects": checked.objects, "bytes": checked.bytes, "damaged": checked.damaged_count,
            "unnamed": checked.unnamed,
        }))?;
    } else {
        for file in &checked.unnamed {
            writeln!(out, "no commit names {file}")?;
        }
        let s = if checked.objects == 1 { "" } else { "s" };
        let (objects, bytes) = (checked.objects, size::bytes(checked.bytes));
        writeln!(out, "{objects} object{s}, {bytes}, {} damaged", checked.damaged_count)?;
    }
    out.flush()?;
    if checked.damaged_count > 0 {
        let cause = format!("{} of {} objects are damaged", checked.damaged_count, checked.objects);
        return Err(Error::new(Code::Corrupt, arguments.store.url(), cause));
    }
    Ok(())
}
