//! `junctura inspect`: where the bytes of each object lie.

use clap::Args;
use junctura::{Code, Error, Result};
use serde_json::json;

use super::{StoreArguments, VersionsArguments};
use crate::interrupt::Interrupt;
use crate::output::Out;

const EXAMPLES: &str = "Examples:
  junctura inspect --store /data/archive param=t,step=6
  junctura inspect --store /data/archive --after 41              what commits after the 41st have brought
  junctura inspect --store /data/archive --json class=od | jq -r '[.uri, .offset, .bytes] | @tsv'";

/// Show where objects of a store lie
///
/// A line for each object: the URI of its file, its first byte there, how many bytes it has, and its key. Other programs can
/// read it there, as long as the store keeps what a reader has found.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    store: StoreArguments,
    /// What to look for
    #[arg(value_name = "SELECTOR")]
    selectors: Vec<String>,
    #[command(flatten)]
    versions: VersionsArguments,
    /// Print JSON: a line for each object
    #[arg(long)]
    json: bool,
}

/// Inspects.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let interrupt = Interrupt::install()?;
    let store = arguments.store.open()?;
    let selector = super::selector(&arguments.selectors, &store)?;
    let snapshot = store.snapshot()?;
    let listing = arguments.versions.list(&snapshot, &selector)?;
    if listing.is_empty() {
        return Err(Error::new(Code::NotFound, selector, "nothing matches"));
    }
    let mut out = Out::new();
    for object in &listing {
        interrupt.check()?;
        let (place, key) = (object.location(), object.key());
        let uri = store.uri(&place.file);
        if arguments.json {
            let checksum = format!("{:08x}", object.checksum());
            out.json(&json!({
                "key": key, "schema": object.schema().name(), "uri": uri, "offset": place.offset, "bytes": place.length,
                "crc32c": checksum, "commit": object.commit(),
                "version": object.version().map(|version| version.to_string()),
            }))?;
        } else {
            writeln!(out, "{uri} {} {} {key}", place.offset, place.length)?;
        }
    }
    out.flush()
}
