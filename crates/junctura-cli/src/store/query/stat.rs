//! `junctura store stat` shows the size of a store.

use clap::Args;
use junctura::Result;
use junctura_store::{ObjectAmount, StoreStats};
use junctura_terminal::output::StandardOutput;
use junctura_terminal::size;
use serde_json::{Value, json};

use crate::store::StoreArguments;

const EXAMPLES: &str = "Examples:
  junctura store stat --store /data/archive               objects, and the size of the files
  junctura store stat --store /data/archive --json | jq .objects";

/// Show the size of a store
///
/// Shows objects by schema, masked versions, files, and the files that a compaction would remove.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct StatArguments {
    #[command(flatten)]
    store: StoreArguments,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(arguments: &StatArguments) -> Result<()> {
    let stats = arguments.store.open()?.snapshot()?.stats()?;
    let mut out = StandardOutput::new();
    if arguments.json {
        out.json(&document(&stats))?;
    } else {
        write(arguments.store.url(), &stats, &mut out)?;
    }
    out.flush()
}

/// The document of `junctura store stat --json`.
#[must_use]
pub fn document(stats: &StoreStats) -> Value {
    let schemas = stats.schemas.iter().map(|schema| {
        json!({
            "name": schema.name, "datasets": schema.datasets,
            "objects": schema.newest.count, "bytes": schema.newest.bytes,
            "masked": schema.masked.count, "masked_bytes": schema.masked.bytes,
        })
    });
    let files = |amount: ObjectAmount| json!({"files": amount.count, "bytes": amount.bytes});
    let mut data = files(stats.data);
    data["used_bytes"] = stats.used_bytes.into();
    let tiers = stats.tiers.iter();
    data["tiers"] = tiers
        .map(|tier| {
            (
                tier.name.clone(),
                json!({"objects": tier.used.count, "bytes": tier.used.bytes}),
            )
        })
        .collect();
    let mut segments = files(stats.segments);
    segments["checkpoint"] = stats.checkpoint.into();
    json!({
        "commit": stats.commit,
        "objects": stats.newest().count, "bytes": stats.newest().bytes,
        "masked": stats.masked().count, "masked_bytes": stats.masked().bytes,
        "schemas": schemas.collect::<Vec<_>>(),
        "data": data, "commits": files(stats.commits), "segments": segments, "unneeded": files(stats.unneeded),
    })
}

fn write(url: &str, stats: &StoreStats, out: &mut StandardOutput) -> Result<()> {
    let files = |amount: ObjectAmount| {
        let s = if amount.count == 1 { "" } else { "s" };
        format!("{} file{s}, {}", amount.count, size::bytes(amount.bytes))
    };
    let (newest, masked) = (stats.newest(), stats.masked());
    writeln!(out, "store         {url}")?;
    writeln!(out, "commits       {}, in {}", stats.commit, files(stats.commits))?;
    writeln!(
        out,
        "objects       {}, {}; {} masked versions, {}",
        newest.count,
        size::bytes(newest.bytes),
        masked.count,
        size::bytes(masked.bytes)
    )?;
    writeln!(
        out,
        "data          {}, {} in use",
        files(stats.data),
        size::bytes(stats.used_bytes)
    )?;
    for tier in stats.tiers.iter().skip(1) {
        let (count, bytes) = (tier.used.count, size::bytes(tier.used.bytes));
        writeln!(out, "  {:<11} {count} objects, {bytes}", tier.name)?;
    }
    let checkpoint = if stats.checkpoint == 0 {
        "none".to_owned()
    } else {
        format!("at commit {}: {}", stats.checkpoint, files(stats.segments))
    };
    writeln!(out, "checkpoint    {checkpoint}")?;
    writeln!(
        out,
        "not needed    {}, which a compaction removes",
        files(stats.unneeded)
    )?;
    writeln!(out)?;
    out.heading(&format!(
        "{:<16} {:>10} {:>11} {:>10} {:>11} {:>9}",
        "schema", "objects", "bytes", "masked", "bytes", "datasets"
    ))?;
    for schema in &stats.schemas {
        writeln!(
            out,
            "{:<16} {:>10} {:>11} {:>10} {:>11} {:>9}",
            schema.name,
            schema.newest.count,
            size::bytes(schema.newest.bytes),
            schema.masked.count,
            size::bytes(schema.masked.bytes),
            schema.datasets
        )?;
    }
    Ok(())
}
