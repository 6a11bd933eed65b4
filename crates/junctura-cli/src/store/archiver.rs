//! `junctura store archiver` archives the objects of a pool in a store, by [`junctura::Archiver`]. This module prints its reports.

use std::time::{Duration, Instant};

use clap::Args;
use junctura::{Archiver, ArchiverCounts, ArchiverEvent, ArchiverOptions, Gap, Object, Result};
use junctura_terminal::interrupt::InterruptFlag;
use junctura_terminal::output::StandardOutput;
use junctura_terminal::size;
use serde_json::json;

use crate::attributes::{about_selector, selector};
use crate::store::StoreArguments;
use crate::url::PoolArguments;

const EXAMPLES: &str = "Examples:
  junctura store archiver '*' --pool unix:model --store /data/archive                    until Ctrl-C
  junctura store archiver 'step=0/to/240/by/6' --pool unix:model --store /data/archive   some objects
  junctura store archiver '*' --pool unix:model --store /data/archive --until-live       existing objects
  junctura store archiver 'type=image' --pool unix:model --every 10 --store /data/few    one of ten
  junctura store archiver '*' --pool unix:model --store /data/archive --flush-interval 5s   large commits
Producers that offer with durability `durable` are answered when their objects are on the disk.";

/// Archive the objects of a pool in a store
///
/// A named requirement (--requirement) retains matching objects in the pool until they are archived, whichever client releases them, also when no
/// archiver runs. Several archivers can share the work if their requirements differ. `junctura pool retract NAME` ends the requirement. An object
/// that cannot be archived because of its own content is reported and stays in the pool. All others are archived, and the exit status reports it.
#[allow(
    clippy::struct_excessive_bools,
    reason = "switches of a command line are independent"
)]
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ArchiverArguments {
    #[command(flatten)]
    pool: PoolArguments,
    /// Selects objects: all selectors must match; '*' means all objects
    #[arg(required = true, value_name = "SELECTOR")]
    selectors: Vec<String>,
    #[command(flatten)]
    store: StoreArguments,
    /// The name of the requirement
    #[arg(long, value_name = "NAME", default_value = "archive")]
    requirement: String,
    /// Archive one of N matching objects, the first of each N, and release the others. Counted for each collocation: objects
    /// whose keys are equal in all levels but the last
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    every: u64,
    /// Flush at the latest when N objects are pending; default: those that became visible together, up to the window
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    flush_every: Option<u64>,
    /// Collect objects for this time before a flush; default: until no more objects are ready. Pending objects stay in the
    /// pool's memory, and durable offers wait for the flush
    #[arg(long, value_name = "TIME", value_parser = size::parse_duration)]
    flush_interval: Option<Duration>,
    /// Exit when all existing objects are archived, and remove the requirement
    #[arg(long)]
    until_live: bool,
    /// Write the catalogue as Parquet files after each N commits, so that opening the store reads less; 0: never
    #[arg(long, value_name = "N", default_value_t = 1000)]
    checkpoint_every: u64,
    /// Maximum number of pending objects. A bundle with at most so many is archived in one commit
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    window: u32,
    /// Print version, key and commit of each object once it is archived
    #[arg(short, long, conflicts_with = "json")]
    verbose: bool,
    /// Print JSON: a line for each object, then a summary
    #[arg(long)]
    json: bool,
    /// Print no summary
    #[arg(short, long, conflicts_with_all = ["json", "verbose"])]
    quiet: bool,
}

/// Runs the command.
pub(crate) fn run(arguments: &ArchiverArguments) -> Result<()> {
    let interrupt = InterruptFlag::install()?;
    let store = arguments.store.open()?;
    let name = "junctura store archiver";
    let pool = interrupt.watch(arguments.pool.builder(name)).open()?;
    let selector = selector(&arguments.selectors, &pool)?;
    let archiver = Archiver::new(&pool, &store, &selector, &arguments.options());
    let mut archiver = about_selector(archiver, &selector)?;
    let mut teller = ArchiverOutput::new(arguments);
    let outcome = archiver.run(&mut |event| teller.tell(event));
    teller.sum_up(archiver.counts())?;
    outcome
}

impl ArchiverArguments {
    fn options(&self) -> ArchiverOptions {
        ArchiverOptions {
            requirement: self.requirement.clone(),
            every: self.every,
            flush_every: self.flush_every,
            flush_interval: self.flush_interval,
            until_live: self.until_live,
            checkpoint_every: self.checkpoint_every,
            window: self.window,
            location: Some(self.store.url().to_owned()),
        }
    }
}

/// Prints the reports of an archiver.
struct ArchiverOutput<'a> {
    arguments: &'a ArchiverArguments,
    out: StandardOutput,
    began: Instant,
}

impl<'a> ArchiverOutput<'a> {
    fn new(arguments: &'a ArchiverArguments) -> Self {
        Self {
            arguments,
            out: StandardOutput::new(),
            began: Instant::now(),
        }
    }

    fn tell(&mut self, event: &ArchiverEvent<'_>) -> Result<()> {
        match event {
            ArchiverEvent::Archived { object, commit } => return self.archived(object, *commit),
            ArchiverEvent::Flushed { .. } => return self.out.flush(),
            ArchiverEvent::Missed(gap) => missed(gap),
            ArchiverEvent::Refused { objects, error } => {
                let (s, are) = if *objects == 1 { ("", "is") } else { ("s", "are") };
                say!("junctura: {objects} object{s} {are} not archived yet: {error}");
            }
            ArchiverEvent::Unarchived { object, error } => {
                say!("junctura: not archived: {} {}: {error}", object.version(), object.key());
            }
            ArchiverEvent::NoCheckpoint(error) => say!("junctura: no checkpoint: {error}"),
            _ => {}
        }
        Ok(())
    }

    fn archived(&mut self, object: &Object, commit: u64) -> Result<()> {
        if self.arguments.json {
            self.out.json(&json!({
                "version": object.version().to_string(),
                "key": object.key(),
                "schema": object.schema().name(),
                "bytes": object.payload().len(),
                "commit": commit,
            }))?;
        } else if self.arguments.verbose {
            writeln!(self.out, "archived {} {commit} {}", object.version(), object.key())?;
        }
        Ok(())
    }

    fn sum_up(&mut self, counts: ArchiverCounts) -> Result<()> {
        let ArchiverCounts { archived, left_out, .. } = counts;
        if self.arguments.json {
            self.out.json(&json!({
                "objects": archived,
                "bytes": counts.bytes,
                "missed": counts.missed,
                "left_out": left_out,
                "failed": counts.failed,
                "seconds": self.began.elapsed().as_secs_f64(),
            }))?;
        } else if !self.arguments.quiet {
            let s = if archived == 1 { "" } else { "s" };
            let bytes = size::bytes(counts.bytes);
            write!(self.out, "{archived} object{s}, {bytes}")?;
            for (count, what) in [(left_out, "left out"), (counts.failed, "not archived")] {
                if count > 0 {
                    write!(self.out, "; {count} {what}")?;
                }
            }
            writeln!(self.out)?;
        }
        self.out.flush()
    }
}

fn missed(gap: &Gap) {
    for item in &gap.items {
        say!(
            "junctura: missed {} {} ({})",
            item.version,
            item.object.key(),
            gap.reason
        );
    }
}
