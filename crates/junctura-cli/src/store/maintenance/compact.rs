//! `junctura store checkpoint` and `junctura store compact` write the catalogue as Parquet files and remove unneeded files.

use clap::Args;
use junctura::Result;
use junctura_store::Checkpointed;
use junctura_terminal::output::StandardOutput;
use junctura_terminal::progress::timed;
use serde_json::{Value, json};

use crate::store::StoreArguments;

const CHECKPOINT_EXAMPLES: &str = "Examples:
  junctura store checkpoint --store /data/archive
  duckdb -c \"set variable files = (select ['/data/archive/' || file for file in files]
                from read_json('/data/archive/checkpoints/*.json') order by commit desc limit 1);
             select param, count(*) from read_parquet(getvariable('files'), union_by_name = true) group by param\"
Only the files that the newest list names: others in segments/ may have the same rows.";
const COMPACT_EXAMPLES: &str = "Examples:
  junctura store compact --store /data/archive
  junctura store compact --store /data/archive --dry-run    report only
  junctura store compact --store /data/archive --gather     also free the space of purged objects in data files";

/// Write the catalogue of a store as Parquet files
///
/// The newest list in checkpoints/ names files with every visible object, each version once. The next client that opens the store
/// starts from there. Other clients can write at the same time.
#[derive(Args, Debug)]
#[command(after_help = CHECKPOINT_EXAMPLES)]
pub(crate) struct CheckpointArguments {
    #[command(flatten)]
    store: StoreArguments,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Remove unneeded files of a store
///
/// Writes a checkpoint, which merges small files, and removes files that were superseded, or left by a writer that crashed
/// before its flush. Files that a reader may still need stay for the snapshot age of the store. Other clients can read and write
/// at the same time. A data file is removed when it has no object any more: --gather moves the objects of mostly empty files.
#[derive(Args, Debug)]
#[command(after_help = COMPACT_EXAMPLES)]
pub(crate) struct CompactArguments {
    #[command(flatten)]
    store: StoreArguments,
    /// First move the objects of data files that are less than half used, and of old commits, to new files; the old files are removed as soon as no reader can need them
    #[arg(long)]
    gather: bool,
    /// Report what would be removed, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Runs `checkpoint`.
pub(crate) fn checkpoint(arguments: &CheckpointArguments) -> Result<()> {
    let store = arguments.store.open()?;
    let checkpoint = timed("making a checkpoint", || store.checkpoint())?;
    let mut out = StandardOutput::new();
    if arguments.json {
        out.json(&document(&checkpoint))?;
    } else {
        tell(&checkpoint, &mut out)?;
    }
    out.flush()
}

/// Runs `compact`.
pub(crate) fn compact(arguments: &CompactArguments) -> Result<()> {
    let store = arguments.store.open()?;
    let mut gathered = Ok(());
    if arguments.gather && arguments.dry_run {
        crate::store::maintenance::tier::would_gather(&store, arguments.json)?;
    } else if arguments.gather {
        gathered = crate::store::maintenance::tier::gather(&store, arguments.json, arguments.store.url())?;
    }
    let mut out = StandardOutput::new();
    let (checkpoint, files) = if arguments.dry_run {
        (None, timed("looking", || store.unneeded())?)
    } else {
        let compacted = timed("compacting", || store.compact())?;
        (Some(compacted.checkpoint), compacted.removed)
    };
    if arguments.json {
        let name = if arguments.dry_run { "would_remove" } else { "removed" };
        let mut said = checkpoint.as_ref().map_or_else(|| json!({}), document);
        said[name] = files.into();
        out.json(&said)?;
        return out.flush().and(gathered);
    }
    if let Some(checkpoint) = &checkpoint {
        tell(checkpoint, &mut out)?;
    }
    let verb = if arguments.dry_run { "would remove" } else { "removed" };
    for file in &files {
        writeln!(out, "{verb} {file}")?;
    }
    let s = if files.len() == 1 { "" } else { "s" };
    writeln!(out, "{verb} {} file{s}", files.len())?;
    out.flush().and(gathered)
}

fn document(checkpoint: &Checkpointed) -> Value {
    json!({
        "commit": checkpoint.commit, "segments": checkpoint.segments, "rows": checkpoint.rows,
        "written_rows": checkpoint.written_rows,
    })
}

fn tell(checkpoint: &Checkpointed, out: &mut StandardOutput) -> Result<()> {
    let Checkpointed {
        commit,
        segments,
        rows,
        written_rows,
    } = checkpoint;
    let s = if *segments == 1 { "" } else { "s" };
    writeln!(
        out,
        "checkpoint at commit {commit}: {rows} rows in {segments} file{s}, {written_rows} written now"
    )
}
