//! `junctura store checkpoint` and `junctura store compact`: the catalogue as files that anybody reads, and what nobody needs, removed.

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
  junctura store compact --store /data/archive --dry-run    what would go
  junctura store compact --store /data/archive --gather     the room between what was purged, too, after the next ones";

/// Write the catalogue of a store as Parquet files
///
/// Everything that is visible now is in the files that the newest list in checkpoints/ names, each version once. Who opens the
/// store next begins there. Others may write meanwhile.
#[derive(Args, Debug)]
#[command(after_help = CHECKPOINT_EXAMPLES)]
pub(crate) struct CheckpointArguments {
    #[command(flatten)]
    store: StoreArguments,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Remove what nobody needs in a store
///
/// Makes a checkpoint, in which small files are joined, and removes files that were superseded, or that a writer left that died
/// before its flush. What a reader may still need stays as long as the store promises. Others may read and write meanwhile.
/// A file goes when nothing of it is left: --gather moves what is left of mostly empty ones.
#[derive(Args, Debug)]
#[command(after_help = COMPACT_EXAMPLES)]
pub(crate) struct CompactArguments {
    #[command(flatten)]
    store: StoreArguments,
    /// First move what is left in data files of which less than half is used, and in old commits, into new ones: the old ones go as soon as no reader can need them
    #[arg(long)]
    gather: bool,
    /// Say what would be removed, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Makes a checkpoint.
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

/// Compacts.
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
