//! `junctura store create`: a store where there is none.

use std::time::Duration;

use clap::{Args, ValueEnum};
use junctura::Result;
use junctura_store::{Commits, PackingRule, RetentionAges, Store, StoreLayout};
use junctura_terminal::size;

use crate::model::schema_files;
use crate::store::StoreArguments;

/// Schemas that are named one by one.
const SCHEMAS_TOLD: usize = 12;

const EXAMPLES: &str = "Examples:
  junctura store create --store /data/archive                      for the built-in schemas, mars before the others
  junctura store create --store /data/archive --schema mine.yaml   mine first
  junctura store create --store scratch --keep-snapshots 1h        room that compaction frees is there soon
  junctura store create --store catalogue --data /big/data         the catalogue on a fast disk, the bytes on a large one
  junctura store create --store scratch --compression 'zstd:9 class=rd' --compression lz4   research packed well, all else quickly
  junctura store create --store 's3://fields/archive?endpoint=https://s3.example.org'   in a bucket that is there";

/// Make a store
///
/// A store is a folder, or two: --data. Or it is a part of an object store, which is asked first whether it keeps what the order
/// of commits needs: that of several who create one object at once exactly one is told that it did. What is said here holds for everybody who uses it, and stays.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CreateArguments {
    #[command(flatten)]
    store: StoreArguments,
    /// A schema of what it keeps: the name of a built-in one or a file, in YAML or with rules of FDB's; the first given is the default, the built-in ones
    /// are there in any case
    #[arg(long, value_name = "NAME|FILE")]
    schema: Vec<String>,
    /// How long what a reader has found stays readable, whatever is written, purged and compacted meanwhile
    #[arg(long, value_name = "TIME", default_value = "24h", value_parser = size::parse_duration)]
    keep_snapshots: Duration,
    /// How long what was archived may wait for its flush
    #[arg(long, value_name = "TIME", default_value = "24h", value_parser = size::parse_duration)]
    keep_unflushed: Duration,
    /// Another place for the bytes of large flushes, which holds no catalogue: an absolute path, or a URL of an object store
    #[arg(long, value_name = "URL")]
    data: Option<String>,
    /// How writers agree on an order: by the lock of one file (the default in a folder), or by names that are given once, for file
    /// systems without locks and object stores
    #[arg(long, value_name = "HOW")]
    commits: Option<CommitsOption>,
    /// Pack objects, without loss and so that no reader notices: zstd, zstd:LEVEL (1 to 19) or lz4, and behind a blank a selector of
    /// datasets, which asks for nothing but attributes of the first level of a key; of several that match, the first
    #[arg(long, value_name = "CODEC [SELECTOR]", value_parser = packing)]
    compression: Vec<PackingRule>,
    /// Say nothing
    #[arg(short, long)]
    quiet: bool,
}

/// `CODEC`, or `CODEC SELECTOR`.
fn packing(text: &str) -> Result<PackingRule> {
    let (codec, datasets) = text.trim().split_once(' ').unwrap_or((text.trim(), ""));
    Ok(PackingRule {
        datasets: datasets.trim().to_owned(),
        compression: codec.parse()?,
    })
}

/// [`Commits`], on a command line.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum CommitsOption {
    Appended,
    Exclusive,
}

/// Creates.
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
