//! `junctura create`: a store where there is none.

use std::time::Duration;

use clap::Args;
use junctura::Result;
use junctura_store::{Ages, Store};

use super::{StoreArguments, folder};
use crate::{serve, size};

const EXAMPLES: &str = "Examples:
  junctura create --store /data/archive                      for the built-in schemas, mars before the others
  junctura create --store /data/archive --schema mine.yaml   mine first
  junctura create --store scratch --keep-snapshots 1h        room that compaction frees is there soon";

/// Make a store
///
/// A store is a folder. What is said here holds for everybody who uses it, and stays.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    store: StoreArguments,
    /// A schema of what it keeps: the name of a built-in one or a YAML file; the first given is the default, the built-in ones
    /// are there in any case
    #[arg(long, value_name = "NAME|FILE")]
    schema: Vec<String>,
    /// How long what a reader has found stays readable, whatever is written, purged and compacted meanwhile
    #[arg(long, value_name = "TIME", default_value = "24h", value_parser = size::parse_duration)]
    keep_snapshots: Duration,
    /// How long what was archived may wait for its flush
    #[arg(long, value_name = "TIME", default_value = "24h", value_parser = size::parse_duration)]
    keep_unflushed: Duration,
    /// Say nothing
    #[arg(short, long)]
    quiet: bool,
}

/// Creates.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let ages = Ages {
        snapshot_max: arguments.keep_snapshots,
        unflushed_max: arguments.keep_unflushed,
    };
    let store = Store::create(folder(arguments.store.url()), &serve::schemas(&arguments.schema)?, ages)?;
    if !arguments.quiet {
        let names: Vec<&str> = store.schemas().iter().map(|schema| schema.name()).collect();
        say!("{}: a store for {}", arguments.store.url(), names.join(", "));
    }
    Ok(())
}
