//! `junctura archiver`: from a pool into a store, for as long as the pool lasts.
//!
//! ```text
//!  pool --requirement, a window of objects--> held --archived--> the writer's file --flush--> told --> released
//! ```
//! What is to be archived stays in the pool until it is: the requirement has a name and outlives its reader. What a reader
//! that died had archived and not released comes again, and is found in the store by its version.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use clap::Args;
use junctura::{
    Archived, Code, Error, Follow, FollowOptions, Gap, Given, Item, Object, Pool, RequireOptions, Requirement, Result,
    Schema,
};
use junctura_store::{Store, Writer};
use serde_json::json;

use super::StoreArguments;
use super::sample::Sample;
use crate::attributes::{about_selector, selector};
use crate::interrupt::Interrupt;
use crate::output::Out;
use crate::size;
use crate::url::{ClientArguments, builder};

/// Bytes that are flushed together; one payload may be longer.
const TOGETHER_BYTES_MAX: u64 = 256 << 20;
/// How long a disk that has refused something is left alone.
const PAUSE: Duration = Duration::from_secs(1);
/// Looks for Ctrl-C meanwhile.
const LOOK: Duration = Duration::from_millis(50);

const EXAMPLES: &str = "Examples:
  junctura archiver unix:model '*' --store /data/archive                    until Ctrl-C
  junctura archiver unix:model 'step=0/to/240/by/6' --store /data/archive   some of it
  junctura archiver unix:model '*' --store /data/archive --until-live       what is there
  junctura archiver unix:model 'type=image' --every 10 --store /data/few    one of ten
Producers that offer with durability `durable` are answered when their objects are on the disk.";

/// Keep what a pool has in a store
///
/// A requirement with a name (--requirement) keeps what matches in the pool until it is in the store, whoever releases it: also when no
/// archiver runs. Several may share the work as long as their requirements differ. `junctura retract NAME` ends the requirement.
#[allow(
    clippy::struct_excessive_bools,
    reason = "switches of a command line are independent"
)]
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The pool with the objects
    #[arg(value_name = "POOL")]
    pool: String,
    /// Which objects: each selector must hold; '*' means all
    #[arg(required = true, value_name = "SELECTOR")]
    selectors: Vec<String>,
    #[command(flatten)]
    store: StoreArguments,
    #[command(flatten)]
    client: ClientArguments,
    /// The requirement's name
    #[arg(long, value_name = "NAME", default_value = "archive")]
    requirement: String,
    /// Archive one of so many objects that match, the first of each, and release the others. Counted by collocation: of the objects
    /// whose keys have all but the last level in common
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    every: u64,
    /// End when all that is there is archived, and leave no requirement behind
    #[arg(long)]
    until_live: bool,
    /// Write the catalogue as Parquet files after each so many commits, so that who opens the store has little to read; 0: never
    #[arg(long, value_name = "N", default_value_t = 1000)]
    checkpoint_every: u64,
    /// How many objects may be held at once
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

/// Archives.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let interrupt = Interrupt::install()?;
    let store = arguments.store.open()?;
    let name = arguments.client.or("junctura archiver");
    let pool = interrupt.watch(builder(&arguments.pool).name(&name)).open()?;
    let selector = selector(&arguments.selectors, &pool)?;
    let options = RequireOptions {
        name: Some(arguments.requirement.clone()),
        ..RequireOptions::default()
    };
    let requirement = about_selector(pool.require_with(&options, &selector), &selector)?;
    let mut archiver = Archiver::new(arguments, store, requirement)?;
    let outcome = archiver.archive_all(&pool, &interrupt);
    let outcome = archiver.finish(outcome);
    if arguments.until_live {
        pool.retract(&arguments.requirement)?;
    }
    outcome
}

/// See the module.
struct Archiver<'a> {
    arguments: &'a Arguments,
    requirement: Requirement,
    store: Store,
    writer: Writer,
    /// Schemas of the pool that the store has, too.
    agreed: Vec<String>,
    /// What is archived and not flushed, or was flushed before.
    held: Vec<Object>,
    held_bytes: u64,
    sample: Sample,
    /// What is not to be archived, and has not been released yet.
    left_out: Vec<Object>,
    /// The last commit at which a checkpoint was begun.
    checkpoint: u64,
    checkpoints: Option<JoinHandle<()>>,
    out: Out,
    objects: u64,
    bytes: u64,
    missed: u64,
    left_out_count: u64,
    began: Instant,
}

impl<'a> Archiver<'a> {
    fn new(arguments: &'a Arguments, store: Store, requirement: Requirement) -> Result<Archiver<'a>> {
        Ok(Archiver {
            arguments,
            sample: Sample::new(arguments.every),
            left_out: Vec::new(),
            requirement,
            writer: store.writer()?,
            store,
            agreed: Vec::new(),
            held: Vec::new(),
            held_bytes: 0,
            checkpoint: 0,
            checkpoints: None,
            out: Out::new(),
            objects: 0,
            bytes: 0,
            missed: 0,
            left_out_count: 0,
            began: Instant::now(),
        })
    }

    fn archive_all(&mut self, pool: &Pool, interrupt: &Interrupt) -> Result<()> {
        let options = FollowOptions {
            window: Some(self.arguments.window),
            until_live: self.arguments.until_live,
            ..FollowOptions::default()
        };
        let mut follow = self.requirement.follow_with(&options)?;
        while let Some(item) = self.next(&mut follow, interrupt)? {
            match item {
                Item::Object(object) if self.sample.takes(&object) => self.archive(object)?,
                Item::Object(object) => self.left_out.push(object),
                Item::Gap(gap) => self.miss(&gap),
                Item::Live => {}
            }
            if self.held_bytes >= TOGETHER_BYTES_MAX {
                self.flush(interrupt)?;
            }
        }
        self.flush(interrupt)?;
        if self.arguments.until_live {
            return Ok(());
        }
        Err(Error::new(Code::Closed, pool.url(), "the pool has ended"))
    }

    /// The next item; before there is a wait, what was taken is flushed.
    fn next(&mut self, follow: &mut Follow, interrupt: &Interrupt) -> Result<Option<Item>> {
        interrupt.check()?;
        if let Some(item) = follow.try_next()? {
            return Ok(Some(item));
        }
        self.flush(interrupt)?;
        if follow.is_over() { Ok(None) } else { follow.next_item() }
    }

    fn archive(&mut self, object: Object) -> Result<()> {
        if let Err(error) = self.take(&object) {
            // Released, it would count as archived: somebody else may fare better with it.
            let sequence = object.version().sequence;
            self.requirement.not_archived(&[sequence], &error.to_string())?;
            object.give_back()?;
            return Err(error);
        }
        self.held_bytes += object.payload().len() as u64;
        self.held.push(object);
        Ok(())
    }

    fn take(&mut self, object: &Object) -> Result<()> {
        self.agree(object.schema())?;
        if object.redelivered() && self.is_there(object)? {
            return Ok(());
        }
        let attributes = object.attributes().map(|(name, value)| (name, Given::Text(value)));
        let schema = object.schema().name();
        self.writer
            .archive_version(schema, attributes, object.payload(), object.version())
    }

    /// Whether another archiver has flushed it, and died before it said so.
    fn is_there(&self, object: &Object) -> Result<bool> {
        let attributes = object.attributes().map(|(name, value)| (name, Given::Text(value)));
        let snapshot = self.store.snapshot()?;
        snapshot.has_version(object.schema().name(), attributes, object.version())
    }

    /// Both must mean the same by a schema's name.
    fn agree(&mut self, schema: &Arc<Schema>) -> Result<()> {
        if self.agreed.iter().any(|name| name == schema.name()) {
            return Ok(());
        }
        let ours = self.store.schema(Some(schema.name()))?;
        if let Some(difference) = ours.first_difference(schema) {
            let cause = format!("the pool and the store mean different things by it: {difference}");
            return Err(Error::new(
                Code::SchemaMismatch,
                format!("schema {}", schema.name()),
                cause,
            ));
        }
        self.agreed.push(schema.name().to_owned());
        Ok(())
    }

    /// Makes what is held last, says so, and releases it. A disk that refuses is tried again; what waits for it is told.
    fn flush(&mut self, interrupt: &Interrupt) -> Result<()> {
        self.release_left_out()?;
        let mut is_told = false;
        while !self.held.is_empty() {
            match self.writer.flush() {
                Ok(flushed) => return self.release(flushed.commit),
                Err(error) => {
                    if !is_told {
                        self.complain(&error)?;
                    }
                    is_told = true;
                    if !self.writer.flush_is_known() || error.code() == Code::Expired {
                        return Err(error);
                    }
                    pause(interrupt)?;
                }
            }
        }
        Ok(())
    }

    /// Who waits for the disk with one of them is told that it will not be there.
    fn release_left_out(&mut self) -> Result<()> {
        if self.left_out.is_empty() {
            return Ok(());
        }
        let sequences: Vec<u64> = self.left_out.iter().map(|object| object.version().sequence).collect();
        let why = format!(
            "it is left out, since the archiver keeps one of {}",
            self.arguments.every
        );
        self.requirement.not_archived(&sequences, &why)?;
        self.left_out_count += sequences.len() as u64;
        self.left_out.clear();
        Ok(())
    }

    fn complain(&self, error: &Error) -> Result<()> {
        say!("junctura: {} objects are not archived yet: {error}", self.held.len());
        let sequences: Vec<u64> = self.held.iter().map(|object| object.version().sequence).collect();
        self.requirement.not_archived(&sequences, &error.to_string()).map(drop)
    }

    fn release(&mut self, commit: u64) -> Result<()> {
        let location = format!("{} commit {commit}", self.arguments.store.url());
        let archived = |object: &Object| Archived {
            sequence: object.version().sequence,
            location: location.clone(),
        };
        let archived: Vec<Archived> = self.held.iter().map(archived).collect();
        self.requirement.archived(&archived)?;
        for object in std::mem::take(&mut self.held) {
            self.objects += 1;
            self.bytes += object.payload().len() as u64;
            self.tell(&object, commit)?;
        }
        self.held_bytes = 0;
        self.checkpoint_if_due(commit);
        self.out.flush()
    }

    /// Beside what goes on; one at a time.
    fn checkpoint_if_due(&mut self, commit: u64) {
        let every = self.arguments.checkpoint_every;
        let is_due = every > 0 && commit.saturating_sub(self.checkpoint) >= every;
        if !is_due
            || self
                .checkpoints
                .as_ref()
                .is_some_and(|under_way| !under_way.is_finished())
        {
            return;
        }
        self.checkpoint = commit;
        let store = self.store.clone();
        self.checkpoints = Some(std::thread::spawn(move || {
            if let Err(error) = store.checkpoint() {
                say!("junctura: no checkpoint: {error}");
            }
        }));
    }

    fn tell(&mut self, object: &Object, commit: u64) -> Result<()> {
        if self.arguments.json {
            self.out.json(&json!({
                "version": object.version().to_string(),
                "key": object.key(),
                "schema": object.schema().name(),
                "bytes": object.payload().len(),
                "commit": commit,
            }))
        } else if self.arguments.verbose {
            writeln!(self.out, "archived {} {commit} {}", object.version(), object.key())
        } else {
            Ok(())
        }
    }

    fn miss(&mut self, gap: &Gap) {
        for item in &gap.items {
            say!(
                "junctura: missed {} {} ({})",
                item.version,
                item.object.key(),
                gap.reason
            );
        }
        self.missed += gap.items.len() as u64 + gap.unnamed;
    }

    /// Says what was done; returns what went wrong.
    fn finish(&mut self, outcome: Result<()>) -> Result<()> {
        // What is not known to last is somebody else's.
        let unfinished = self.held.drain(..).chain(self.left_out.drain(..));
        unfinished.for_each(|object| drop(object.give_back()));
        // It does not panic.
        self.checkpoints
            .take()
            .map(JoinHandle::join)
            .transpose()
            .unwrap_or_default();
        let (objects, bytes, missed, left_out) = (self.objects, self.bytes, self.missed, self.left_out_count);
        if self.arguments.json {
            let seconds = self.began.elapsed().as_secs_f64();
            self.out.json(&json!({
                "objects": objects,
                "bytes": bytes,
                "missed": missed,
                "left_out": left_out,
                "seconds": seconds,
            }))?;
        } else if !self.arguments.quiet {
            let s = if objects == 1 { "" } else { "s" };
            let bytes = size::bytes(bytes);
            match left_out {
                0 => writeln!(self.out, "{objects} object{s}, {bytes}")?,
                _ => writeln!(self.out, "{objects} object{s}, {bytes}; {left_out} left out")?,
            }
        }
        self.out.flush()?;
        outcome?;
        if missed > 0 {
            let subject = format!("{missed} objects that matched");
            return Err(Error::new(Code::Gone, subject, "went before they were archived"));
        }
        Ok(())
    }
}

fn pause(interrupt: &Interrupt) -> Result<()> {
    let until = Instant::now() + PAUSE;
    while Instant::now() < until {
        interrupt.check()?;
        std::thread::park_timeout(LOOK);
    }
    Ok(())
}
