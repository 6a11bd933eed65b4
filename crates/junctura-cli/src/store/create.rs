//! `junctura store create` creates a store.

use std::time::Duration;

use clap::{Args, ValueEnum};
use junctura::Result;
use junctura_store::{Commits, PackingRule, RetentionAges, Store, StoreLayout};
use junctura_terminal::size;

use crate::model::schema_files;
use crate::store::StoreArguments;

/// Maximum number of schemas that are named one by one.
const SCHEMAS_TOLD: usize = 12;

const EXAMPLES: &str = "Examples:
  junctura store create --store /data/archive                      for the built-in schemas, mars before the others
  junctura store create --store /data/archive --schema mine.yaml   mine is the default
  junctura store create --store scratch --keep-snapshots 1h        compaction frees space soon
  junctura store create --store catalogue --data /big/data         the catalogue on a fast disk, the bytes on a large one
  junctura store create --store scratch --compression 'zstd:9 class=rd' --compression lz4   strong compression for research, fast for the rest
  junctura store create --store 's3://fields/archive?endpoint=https://s3.example.org'   in an existing bucket";

/// Create a store
///
/// A store is a folder, or two with --data, or a prefix of an object store. An object store must support conditional puts, which the order
/// of commits needs: this is checked first. The options are properties of the store: they apply to all its clients, permanently.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CreateArguments {
    #[command(flatten)]
    store: StoreArguments,
    /// A schema of the store: the name of a built-in one or a file, in YAML or with rules of FDB. The first one is the default; the built-in ones
    /// follow
    #[arg(long, value_name = "NAME|FILE")]
    schema: Vec<String>,
    /// Time for which an object that a reader has found stays readable, during writes, purges and compactions
    #[arg(long, value_name = "TIME", default_value = "24h", value_parser = size::parse_duration)]
    keep_snapshots: Duration,
    /// Maximum time between archiving an object and its flush
    #[arg(long, value_name = "TIME", default_value = "24h", value_parser = size::parse_duration)]
    keep_unflushed: Duration,
    /// Another location for the bytes of large flushes, without a catalogue: an absolute path, or a URL of an object store
    #[arg(long, value_name = "URL")]
    data: Option<String>,
    /// How writers agree on the order of commits: by a lock on one file (the default in a folder), or by exclusively created files, for file
    /// systems without reliable locks and for object stores
    #[arg(long, value_name = "HOW")]
    commits: Option<CommitsOption>,
    /// Compress objects without loss, transparently for readers: zstd, zstd:LEVEL (1 to 19) or lz4, optionally followed by a blank and a
    /// selector of datasets with attributes of the first key level; the first selector that matches applies
    #[arg(long, value_name = "CODEC [SELECTOR]", value_parser = packing)]
    compression: Vec<PackingRule>,
    /// Print nothing
    #[arg(short, long)]
    quiet: bool,
}

/// A `CODEC`, or `CODEC SELECTOR`.
fn packing(text: &str) -> Result<PackingRule> {
    let (codec, datasets) = text.trim().split_once(' ').unwrap_or((text.trim(), ""));
    Ok(PackingRule {
        datasets: datasets.trim().to_owned(),
        compression: codec.parse()?,
    })
}

/// [`Commits`], as an option.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum CommitsOption {
    Appended,
    Exclusive,
}

/// Runs the command.
pub(crate) fn run(arguments: &CreateArguments) -> Result<()> {
    let layout = StoreLayout {
        ages: RetentionAges {
            snapshot_max: arguments.keep_snapshots,
            unflushed_max: arguments.keep_unflushed,
        },
        commits: arguments.commits.map(|order| match order {
            CommitsOption::Appended => Commits::Appended,
            CommitsOption::Exclusive => Commits::Exclusive,
        }),
        data: arguments.data.clone(),
        compression: arguments.compression.clone(),
    };
    let store = Store::create_url(
        arguments.store.url(),
        &schema_files::with_builtin(&arguments.schema)?,
        &layout,
    )?;
    if !arguments.quiet {
        let names = store.schemas().iter().map(|schema| schema.name());
        let told: Vec<&str> = names.take(SCHEMAS_TOLD).collect();
        let more = match store.schemas().len() - told.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        say!("{}: a store for {}{more}", arguments.store.url(), told.join(", "));
    }
    Ok(())
}
