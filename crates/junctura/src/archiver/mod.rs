//! Archives objects of a pool in a store, for as long as the pool exists.
//!
//! ```text
//!  pool --requirement, a window of objects--> held --archived--> the writer's file --flush--> told --> released
//! ```
//!
//! An object stays in the pool until it is archived: the requirement has a name and outlives its reader. Objects that a
//! crashed archiver had archived and not released are redelivered, and are found in the store by their version. The
//! members of a bundle, which became visible together, are archived with one commit, as far as the window permits. An
//! object that cannot be archived is set aside (`refused.rs`), and the others are archived.

mod gathering;
mod options;
mod refused;
mod sample;
mod schemas;
mod thread;
mod writing;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use junctura_model::{Code, Error, Result};
use junctura_store::{Flushed, Store, StoreWriter};

use self::gathering::GatheredBundles;
use self::refused::{RefusedObjects, is_of_array, is_of_objects};
use self::sample::CollocationSample;
use self::thread::ArchiverProgress;
use crate::array::WholeArray;
use crate::object::Object;
use crate::pool::Pool;
use crate::verbs::follow::{Follow, Gap, Item};
use crate::verbs::require::{ArchivedLocation, Requirement};
use crate::wait::Timer;

pub use self::options::{ArchiverCounts, ArchiverEvent, ArchiverOptions};
pub use self::thread::ArchiverThread;

/// Bytes that are flushed together; one payload may be larger.
const TOGETHER_BYTES_MAX: u64 = 256 << 20;
/// The pause after a disk has failed.
const PAUSE: Duration = Duration::from_secs(1);
/// The interval at which a pause checks whether to end.
const LOOK: Duration = Duration::from_millis(50);

/// Archives the objects of a pool in a store: all that match a selector, or a sample.
///
/// It follows a named requirement, which retains matching objects in the pool until they are in the store, independent
/// of other consumers, also while no archiver runs. [`Pool::retract`] ends the requirement. Several archivers may share
/// the work if their requirements differ. An offer with durability [`Durable`](crate::Durability::Durable) returns when
/// its object is on disk.
///
/// [`Archiver::run`] works in the calling thread, [`Archiver::start`] in a thread of its own:
/// ```
/// # use junctura::{Archiver, ArchiverOptions, Pool};
/// # fn main() -> junctura::Result<()> {
/// let pool = Pool::builder().schema("free").open()?;
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("archive").display().to_string();
/// let store = junctura_store::Store::create_url(&path, &pool.schemas()?, &Default::default())?;
///
/// let images = ArchiverOptions { every: 2, ..ArchiverOptions::default() };
/// let archiver = Archiver::start(&pool, &store, "type=image", &images)?;
/// for name in ["a", "b", "c"] {
///     pool.offer([("type", "image"), ("name", name)], b"pixels")?;
/// }
/// let counts = archiver.stop()?; // when all that was offered before is archived, or left out
/// assert_eq!((counts.archived, counts.left_out), (2, 1));
/// # pool.retract("archive")?;
///
/// // The snapshot, in this thread.
/// let rest = ArchiverOptions { requirement: "rest".to_owned(), until_live: true, ..ArchiverOptions::default() };
/// let mut archiver = Archiver::new(&pool, &store, "name=b", &rest)?;
/// archiver.run(&mut |event| Ok(println!("{event:?}")))?;
/// assert_eq!(archiver.counts().archived, 1);
/// # Ok(())
/// # }
/// ```
pub struct Archiver {
    pool: Pool,
    requirement: Requirement,
    /// Present until it runs.
    follow: Option<Follow>,
    options: ArchiverOptions,
    store: Store,
    writer: StoreWriter,
    /// As [`StoreWriter::flush`]; tests replace it.
    flush_writer: fn(&mut StoreWriter) -> Result<Flushed>,
    agreed: Vec<AgreedSchema>,
    /// Objects that are written and not flushed, or were flushed before.
    held: Vec<GatheredObject>,
    held_bytes: u64,
    /// When the first of these objects was received.
    since: Instant,
    /// Members that wait for the rest of their bundle.
    gathering: GatheredBundles,
    sample: CollocationSample,
    /// Objects that are not to be archived, and have not been released yet.
    left_out: Vec<Object>,
    /// Objects that cannot be archived.
    aside: RefusedObjects,
    /// The last commit at which a checkpoint was begun.
    checkpoint: u64,
    checkpoints: Option<JoinHandle<Result<()>>>,
    progress: Arc<ArchiverProgress>,
}

/// A schema that the pool and the store share.
struct AgreedSchema {
    name: String,
    /// Its number in the store, if both have the same attributes: the store then reads the records as they are.
    number: Option<usize>,
}

struct GatheredObject {
    object: Object,
    bytes: u64,
    /// The commit with which another archiver has flushed it, before it crashed without reporting that.
    commit: Option<u64>,
}

/// Receives events while the archiver runs.
type Told<'a> = dyn FnMut(&ArchiverEvent<'_>) -> Result<()> + 'a;

impl Archiver {
    /// Creates the requirement, or joins it, and begins to follow it; archives nothing before [`Archiver::run`]. Blocks
    /// until the server has answered.
    ///
    /// # Errors
    /// `NotFound` or `SchemaMismatch` if the store lacks the default schema of the pool or has another one of its name (a
    /// built-in one only if no other schema is in both); `InvalidSelector`; `InvalidArgument` for counts of 0, or more objects per flush than may be held; `Conflict` if
    /// the requirement's name exists with another selector, or another archiver reads it; `Io` if the system has no
    /// random numbers.
    pub fn new(pool: &Pool, store: &Store, selector: &str, options: &ArchiverOptions) -> Result<Self> {
        options.check()?;
        schemas::check(pool, store, selector, &location_of(store, options))?;
        let requirement = pool.require_with(selector, options.terms())?;
        let follow = requirement.follow_with(options.follow())?;
        Ok(Self {
            pool: pool.clone(),
            requirement,
            follow: Some(follow),
            writer: store.writer()?,
            store: store.clone(),
            flush_writer: StoreWriter::flush,
            agreed: Vec::new(),
            held: Vec::new(),
            held_bytes: 0,
            since: Instant::now(),
            gathering: GatheredBundles::default(),
            sample: CollocationSample::new(options.every),
            left_out: Vec::new(),
            aside: RefusedObjects::default(),
            checkpoint: 0,
            checkpoints: None,
            progress: Arc::default(),
            options: options.clone(),
        })
    }

    /// Starts to archive in a thread, with a connection of its own, so that no user of the pool waits for the disk.
    ///
    /// # Errors
    /// As [`Archiver::new`] and [`Pool::connect`]; `Io` if the system provides no thread. [`ArchiverThread::stop`] and
    /// [`ArchiverThread::wait`] return later errors.
    pub fn start(pool: &Pool, store: &Store, selector: &str, options: &ArchiverOptions) -> Result<ArchiverThread> {
        options.check()?;
        let beside = pool.beside("archiver")?;
        ArchiverThread::begin(Self::new(&beside, store, selector, options)?, beside)
    }

    /// Returns its counters.
    #[must_use]
    pub fn counts(&self) -> ArchiverCounts {
        self.progress.counts()
    }

    /// Archives until the pool ends or, with [`ArchiverOptions::until_live`], until the snapshot is archived. Blocks.
    /// `told` receives every event; an error from it ends the work. A failing disk is retried without limit. An object
    /// that cannot be archived for a reason of its own ([`ArchiverEvent::Unarchived`]) is set aside, and the others are
    /// archived.
    ///
    /// # Errors
    /// - `Closed` if the pool has ended, or the archiver has run before
    /// - `Gone` if a matching object was removed before it was archived
    /// - at the end, the error of the first object that was set aside, such as `SchemaMismatch` or `NotFound` for a
    ///   schema that the store does not have or has differently, `Corrupt` or `Expired` for an array without its pieces
    /// - `LimitExceeded` if 65,536 objects were set aside
    /// - `Unavailable` or `Expired` for a flush that cannot be retried
    /// - `Disconnected`
    ///
    /// Objects that were not archived stay in the pool, and so does the requirement.
    pub fn run(&mut self, told: &mut Told<'_>) -> Result<()> {
        let outcome = self.archive_all(told);
        self.finish(outcome, told)?;
        if self.options.until_live {
            self.pool.retract(&self.options.requirement)?;
        }
        Ok(())
    }

    fn archive_all(&mut self, told: &mut Told<'_>) -> Result<()> {
        let Some(mut follow) = self.follow.take() else {
            return Err(Error::new(Code::Closed, "archiver", "it has run already"));
        };
        let outcome = self.archive_from(&mut follow, told);
        // The next archiver finds all outstanding objects. Without a server there is nothing to end.
        let _ = follow.end();
        outcome
    }

    fn archive_from(&mut self, follow: &mut Follow, told: &mut Told<'_>) -> Result<()> {
        while let Some(item) = self.next(follow, told)? {
            self.take(item, told)?;
        }
        if self.progress.is_to_stop() && !follow.is_over() {
            return self.drain(follow, told);
        }
        self.archive_gathered(told)?;
        self.flush(told)?;
        if self.options.until_live {
            return Ok(());
        }
        Err(Error::new(Code::Closed, self.pool.url(), "the pool has ended"))
    }

    /// Returns the next item; before it waits, it flushes what is due. `None`: there is none, or the archiver is to
    /// stop.
    fn next(&mut self, follow: &mut Follow, told: &mut Told<'_>) -> Result<Option<Item>> {
        loop {
            self.pool.connection()?.ask_hook()?;
            if self.progress.is_to_stop() {
                return Ok(None);
            }
            self.renew_if_due(follow, told)?;
            if let Some(item) = self.read(follow, told)? {
                return Ok(Some(item));
            }
            if self.is_to_renew(follow) {
                continue;
            }
            if !self.gathering.is_empty() {
                if let Some(item) = self.rest_of_bundle(follow, told)? {
                    return Ok(Some(item));
                }
                continue;
            }
            self.release_left_out()?;
            let left = self.time_left();
            if left.is_none_or(|left| left.is_zero()) {
                self.flush(told)?;
            }
            if follow.is_over() {
                return Ok(None);
            }
            let left = left.filter(|_| !self.held.is_empty());
            let timer = Timer::after(left.unwrap_or(Duration::MAX));
            self.pool.wait(&[&*follow, &*self.progress, &timer], None)?;
        }
    }

    /// Returns the rest of a bundle whose last members have not arrived. If nothing arrives, the other members do not
    /// match, or exceed the window.
    fn rest_of_bundle(&mut self, follow: &mut Follow, told: &mut Told<'_>) -> Result<Option<Item>> {
        // All objects that the server had for this reader have arrived when it answers.
        self.pool.sync(None)?;
        let item = self.read(follow, told)?;
        if item.is_none() {
            if self.keeps_the_rest_away() {
                self.flush(told)?;
            } else {
                self.archive_gathered(told)?;
            }
        }
        Ok(item)
    }

    /// Begins another follow if objects that are set aside fill half of the window. Deliveries that were not read are
    /// redelivered.
    fn renew_if_due(&mut self, follow: &mut Follow, told: &mut Told<'_>) -> Result<()> {
        if !self.is_to_renew(follow) {
            return Ok(());
        }
        self.archive_gathered(told)?;
        self.flush(told)?;
        // A requirement has one reader at a time.
        follow.end()?;
        *follow = self.requirement.follow_with(self.options.follow())?;
        self.aside.renewed();
        Ok(())
    }

    /// Returns whether the objects that are set aside take up so much of the window that the follow would deliver too
    /// little, or nothing.
    fn is_to_renew(&self, follow: &Follow) -> bool {
        !follow.is_over() && self.aside.in_window() * 2 >= self.options.window as usize
    }

    /// Returns whether the objects held leave the window no room for the rest of a bundle.
    fn keeps_the_rest_away(&self) -> bool {
        let others = self.held.len() + self.left_out.len();
        others > 0 && others + self.gathering.len() + self.aside.in_window() >= self.options.window as usize
    }

    /// Returns how long the objects held may wait for more; `None`: without limit.
    fn time_left(&self) -> Option<Duration> {
        let interval = self.options.flush_interval;
        interval.map(|time| time.saturating_sub(self.since.elapsed()))
    }

    /// Returns whether the objects held must be flushed although more have arrived.
    fn is_full(&self) -> bool {
        let held = self.held.len() as u64;
        held >= self.options.flush_every.unwrap_or(u64::MAX)
            || held + self.left_out.len() as u64 > 0 && self.in_window() >= self.options.window as usize
            || self.held_bytes >= TOGETHER_BYTES_MAX
            || held > 0 && self.time_left().is_some_and(|left| left.is_zero())
    }

    /// Returns the number of objects held, without those that wait for the rest of their bundle.
    fn in_window(&self) -> usize {
        self.held.len() + self.left_out.len() + self.aside.in_window()
    }

    fn take(&mut self, item: Item, told: &mut Told<'_>) -> Result<()> {
        match item {
            Item::Object(object) if self.sample.takes(&object) => {
                let complete = self.gathering.add(object);
                self.archive(complete, told)?;
            }
            Item::Object(object) => {
                let complete = self.gathering.before(&object);
                self.archive(complete, told)?;
                self.left_out.push(object);
            }
            Item::Gap(gap) => self.miss(&gap, told)?,
            Item::Live => self.archive_gathered(told)?,
        }
        if self.is_full() { self.flush(told) } else { Ok(()) }
    }

    /// Archives everything that was outstanding at the stop; later objects are left to the next archiver.
    fn drain(&mut self, follow: &mut Follow, told: &mut Told<'_>) -> Result<()> {
        let again = self
            .pool
            .require_with(self.requirement.selector(), self.options.terms())?;
        let last = again.sequence();
        loop {
            let mut came = false;
            let aside = self.aside.len();
            self.renew_if_due(follow, told)?;
            while let Some(item) = self.drained(follow, told)? {
                match item {
                    // For a renewed follow the snapshot is in another order, and objects are redelivered.
                    Item::Object(object) if object.version().sequence > last && object.in_snapshot() => {
                        object.give_back()?;
                    }
                    Item::Object(object) if object.version().sequence > last => {
                        object.give_back()?;
                        self.archive_gathered(told)?;
                        return self.flush(told);
                    }
                    item => self.take(item, told)?,
                }
                came = true;
            }
            let may_come = self.keeps_the_rest_away();
            if !may_come {
                self.archive_gathered(told)?;
            }
            self.flush(told)?;
            // Objects that were set aside took room in the window, too.
            came |= self.aside.len() > aside;
            if !came && !may_come {
                return Ok(());
            }
        }
    }

    /// Returns the next item that the server has for this reader by now.
    fn drained(&mut self, follow: &mut Follow, told: &mut Told<'_>) -> Result<Option<Item>> {
        if let Some(item) = self.read(follow, told)? {
            return Ok(Some(item));
        }
        // When this is answered, the rest has arrived.
        self.pool.sync(None)?;
        self.read(follow, told)
    }

    /// Returns the next item that has arrived. An object whose payload cannot be read, because it is corrupt or its
    /// disk fails, is set aside.
    fn read(&mut self, follow: &mut Follow, told: &mut Told<'_>) -> Result<Option<Item>> {
        while let Some((item, unread)) = follow.try_next_unread()? {
            match (item, unread) {
                (Item::Object(object), Some(error)) => self.set_aside(object, &error, told)?,
                (item, _) => return Ok(Some(item)),
            }
        }
        Ok(None)
    }

    fn archive_gathered(&mut self, told: &mut Told<'_>) -> Result<()> {
        let gathered = self.gathering.take_all();
        self.archive(gathered, told)
    }

    /// After an error the remaining objects are given back: a release would count as archived.
    fn archive(&mut self, objects: Vec<Object>, told: &mut Told<'_>) -> Result<()> {
        let mut objects = objects.into_iter();
        while let Some(object) = objects.next() {
            if let Err(error) = self.archive_one(object, told) {
                self.give_back(objects)?;
                return Err(error);
            }
        }
        Ok(())
    }

    fn give_back(&self, mut objects: impl ExactSizeIterator<Item = Object>) -> Result<()> {
        let others = objects.len() as u64;
        self.progress.count(|counts| counts.failed += others);
        objects.try_for_each(Object::give_back)
    }

    fn archive_one(&mut self, object: Object, told: &mut Told<'_>) -> Result<()> {
        let (object, whole) = WholeArray::gather(&self.pool, object);
        let outcome = whole.map_err(|error| (is_of_array(&error), error)).and_then(|whole| {
            let commit = self.write_with_retry(&object, whole.as_ref(), told)?;
            Ok((commit, whole.map_or(object.len(), |whole| whole.bytes().len()) as u64))
        });
        match outcome {
            Ok((commit, bytes)) => {
                self.hold(GatheredObject { object, bytes, commit });
                Ok(())
            }
            Err((true, error)) => self.set_aside(object, &error, told),
            Err((false, error)) => {
                self.progress.count(|counts| counts.failed += 1);
                let sequence = sequence(&object);
                object.give_back()?;
                self.requirement.not_archived(&[sequence], &error.to_string())?;
                Err(error)
            }
        }
    }

    /// Reports the error to durable offers of the object; the object stays in the pool, and the others are archived.
    fn set_aside(&mut self, object: Object, error: &Error, told: &mut Told<'_>) -> Result<()> {
        self.progress.count(|counts| counts.failed += 1);
        let heard = told(&ArchiverEvent::Unarchived { object: &object, error });
        let noted = self.requirement.not_archived(&[sequence(&object)], &error.to_string());
        let added = self.aside.add(object, error);
        heard.and(noted.map(drop)).and(added)
    }

    fn hold(&mut self, held: GatheredObject) {
        if self.held.is_empty() {
            self.since = Instant::now();
        }
        self.held_bytes += held.bytes;
        self.held.push(held);
    }

    /// Flushes the objects held, reports them as archived, and releases them. A failing disk is retried, unless the
    /// archiver is to stop; durable offers are notified.
    fn flush(&mut self, told: &mut Told<'_>) -> Result<()> {
        self.release_left_out()?;
        let mut is_told = false;
        while !self.held.is_empty() {
            let error = match (self.flush_writer)(&mut self.writer) {
                Ok(flushed) => return self.release(flushed.commit, told),
                Err(error) if is_of_objects(&error) && self.writer.flush_is_known() => {
                    return self.flush_apart(&error, told);
                }
                Err(error) => error,
            };
            if !is_told {
                self.complain(None, &error, told)?;
            }
            is_told = true;
            let is_final = !self.writer.flush_is_known() || error.code() == Code::Expired;
            if is_final || self.progress.is_to_stop() {
                return Err(error);
            }
            self.pause()?;
        }
        Ok(())
    }

    /// Flushes objects that the store has rejected together in two halves, recursively, until the rejected objects are
    /// found.
    fn flush_apart(&mut self, error: &Error, told: &mut Told<'_>) -> Result<()> {
        let (written, there): (Vec<GatheredObject>, Vec<GatheredObject>) =
            self.held.drain(..).partition(|held| held.commit.is_none());
        self.held = there;
        self.held_bytes = self.held.iter().map(|held| held.bytes).sum();
        let mut first: Vec<Object> = written.into_iter().map(|held| held.object).collect();
        // Dropping the old writer discards what it has not flushed.
        match self.store.writer() {
            Ok(writer) => self.writer = writer,
            Err(error) => {
                self.give_back(first.into_iter())?;
                return Err(error);
            }
        }
        if first.len() < 2 {
            let alone = first.pop();
            alone.map_or(Ok(()), |object| self.set_aside(object, error, told))?;
            return self.flush(told);
        }
        let second = first.split_off(first.len() / 2);
        let flushed = self.archive(first, told).and_then(|()| self.flush(told));
        match flushed {
            Ok(()) => self.archive(second, told).and_then(|()| self.flush(told)),
            Err(error) => {
                self.give_back(second.into_iter())?;
                Err(error)
            }
        }
    }

    fn pause(&self) -> Result<()> {
        let until = Instant::now() + PAUSE;
        while Instant::now() < until && !self.progress.is_to_stop() {
            self.pool.connection()?.ask_hook()?;
            std::thread::park_timeout(LOOK);
        }
        Ok(())
    }

    /// Releases objects that are not to be archived; durable offers of these fail.
    fn release_left_out(&mut self) -> Result<()> {
        if self.left_out.is_empty() {
            return Ok(());
        }
        let why = format!("it is left out, since the archiver keeps one of {}", self.options.every);
        let sequences: Vec<u64> = self.left_out.iter().map(sequence).collect();
        // Before the report: a producer that has received it finds them counted.
        self.progress.count(|counts| counts.left_out += sequences.len() as u64);
        self.requirement.not_archived(&sequences, &why)?;
        self.left_out.clear();
        Ok(())
    }

    /// Reports that the disk fails, to durable offers of the objects held and of the next one, too.
    fn complain(&self, next: Option<&Object>, error: &Error, told: &mut Told<'_>) -> Result<()> {
        let objects = self.held.iter().map(|held| &held.object).chain(next);
        let sequences: Vec<u64> = objects.map(sequence).collect();
        let objects = sequences.len() as u64;
        told(&ArchiverEvent::Refused { objects, error })?;
        self.requirement.not_archived(&sequences, &error.to_string()).map(drop)
    }

    /// Returns the location of the store.
    fn location(&self) -> Cow<'_, str> {
        location_of(&self.store, &self.options)
    }

    fn release(&mut self, flushed: u64, told: &mut Told<'_>) -> Result<()> {
        let commit_of = |held: &GatheredObject| held.commit.unwrap_or(flushed);
        let place = self.location();
        let archived = |held: &GatheredObject| ArchivedLocation {
            sequence: sequence(&held.object),
            location: format!("{place} commit {}", commit_of(held)),
        };
        let archived: Vec<ArchivedLocation> = self.held.iter().map(archived).collect();
        self.requirement.archived(&archived)?;
        // If all objects were in the store already, nothing was flushed now.
        let newest = self.held.iter().map(commit_of).max().unwrap_or(flushed);
        let (objects, bytes) = (self.held.len() as u64, self.held_bytes);
        self.progress.count(|counts| {
            counts.archived += objects;
            counts.bytes += bytes;
        });
        self.held_bytes = 0;
        for held in std::mem::take(&mut self.held) {
            told(&ArchiverEvent::Archived {
                object: &held.object,
                commit: commit_of(&held),
            })?;
        }
        told(&ArchiverEvent::Flushed { commit: newest })?;
        self.checkpoint_if_due(newest, told)
    }

    /// Begins a checkpoint in the background; one at a time.
    fn checkpoint_if_due(&mut self, commit: u64, told: &mut Told<'_>) -> Result<()> {
        let every = self.options.checkpoint_every;
        let is_due = every > 0 && commit.saturating_sub(self.checkpoint) >= every;
        if !is_due
            || self
                .checkpoints
                .as_ref()
                .is_some_and(|under_way| !under_way.is_finished())
        {
            return Ok(());
        }
        self.checkpoint = commit;
        self.end_checkpoint(told)?;
        let store = self.store.clone();
        self.checkpoints = Some(std::thread::spawn(move || store.checkpoint().map(drop)));
        Ok(())
    }

    /// Handles the end of the last checkpoint.
    fn end_checkpoint(&mut self, told: &mut Told<'_>) -> Result<()> {
        // The thread does not panic.
        let ended = self.checkpoints.take().and_then(|thread| thread.join().ok());
        match ended {
            Some(Err(error)) => told(&ArchiverEvent::NoCheckpoint(&error)),
            _ => Ok(()),
        }
    }

    fn miss(&mut self, gap: &Gap, told: &mut Told<'_>) -> Result<()> {
        let missed = gap.items.len() as u64 + gap.unnamed;
        self.progress.count(|counts| counts.missed += missed);
        told(&ArchiverEvent::Missed(gap))
    }

    /// Gives back the objects that are not known to be durable; returns the error.
    fn finish(&mut self, outcome: Result<()>, told: &mut Told<'_>) -> Result<()> {
        let gathered = self.gathering.take_all();
        let failed = (self.held.len() + gathered.len()) as u64;
        self.progress.count(|counts| counts.failed += failed);
        let held = self.held.drain(..).map(|held| held.object);
        let unfinished = held.chain(gathered).chain(self.left_out.drain(..));
        let unfinished = unfinished.chain(self.aside.take_all());
        unfinished.for_each(|object| drop(object.give_back()));
        let told = self.end_checkpoint(told);
        let aside = self.aside.outcome(self.counts().failed);
        match outcome.and(told) {
            // The end of the pool is normal: objects that were not archived are the relevant error.
            Err(ended) if ended.code() == Code::Closed => return aside.and(Err(ended)),
            outcome => outcome.and(aside)?,
        }
        match self.counts().missed {
            0 => Ok(()),
            missed => {
                let subject = format!("{missed} objects that matched");
                let cause = "were removed before they were archived";
                Err(Error::new(Code::Gone, subject, cause))
            }
        }
    }
}

fn location_of<'a>(store: &Store, options: &'a ArchiverOptions) -> Cow<'a, str> {
    let given = options.location.as_deref().map(Cow::Borrowed);
    given.unwrap_or_else(|| store.uri("").into())
}

fn sequence(object: &Object) -> u64 {
    object.version().sequence
}

impl fmt::Debug for Archiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (from, to) = (self.pool.url(), self.location());
        write!(f, "Archiver({from} {:?} -> {to})", self.requirement.selector())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns an archiver of nine objects, and its store.
    fn archiver(flush_writer: fn(&mut StoreWriter) -> Result<Flushed>) -> (Archiver, Store) {
        let pool = Pool::builder().schema("free").open().unwrap();
        let schemas = pool.schemas().unwrap();
        let store = Store::create_url("memory:", &schemas, &junctura_store::StoreLayout::default()).unwrap();
        for number in 0..9 {
            pool.offer([("name", format!("{number}").as_str())], b"payload")
                .unwrap();
        }
        let options = ArchiverOptions {
            until_live: true,
            ..ArchiverOptions::default()
        };
        let mut archiver = Archiver::new(&pool, &store, "", &options).unwrap();
        archiver.flush_writer = flush_writer;
        (archiver, store)
    }

    fn objects(store: &Store) -> usize {
        store.snapshot().unwrap().list("").unwrap().len()
    }

    #[test]
    fn a_flush_that_is_refused_together_is_done_in_parts() {
        let (mut archiver, store) = archiver(|writer| match writer.pending() {
            0..=2 => writer.flush(),
            _ => Err(Error::new(Code::TooLarge, "commit", "more than two")),
        });
        archiver.run(&mut |_| Ok(())).unwrap();
        let counts = archiver.counts();
        assert_eq!((counts.archived, counts.bytes, counts.failed), (9, 63, 0));
        assert_eq!(objects(&store), 9);
    }

    #[test]
    fn objects_whose_flush_is_refused_alone_are_set_aside() {
        let (mut archiver, store) = archiver(|_| Err(Error::new(Code::LimitExceeded, "commit", "full")));
        let mut told = 0;
        let outcome = archiver.run(&mut |event| {
            told += u64::from(matches!(event, ArchiverEvent::Unarchived { .. }));
            Ok(())
        });
        assert_eq!(outcome.unwrap_err().code(), Code::LimitExceeded);
        assert_eq!((archiver.counts().archived, archiver.counts().failed, told), (0, 9, 9));
        assert_eq!(objects(&store), 0);
        assert_eq!(archiver.pool.retract("archive").unwrap(), 9);
    }

    #[test]
    fn a_disk_that_fails_while_an_object_is_written_is_retried() {
        let folder = tempfile::tempdir().unwrap();
        let (place, data) = (folder.path().join("archive"), folder.path().join("archive/data"));
        let pool = Pool::builder().schema("free").open().unwrap();
        let schemas = pool.schemas().unwrap();
        let layout = junctura_store::StoreLayout::default();
        let store = Store::create_url(&place.display().to_string(), &schemas, &layout).unwrap();
        // Large payloads are written at once, before any flush.
        for name in ["a", "b"] {
            pool.offer([("name", name)], &vec![1; 4 << 20]).unwrap();
        }
        let options = ArchiverOptions {
            until_live: true,
            ..ArchiverOptions::default()
        };
        let mut archiver = Archiver::new(&pool, &store, "", &options).unwrap();
        _ = std::fs::remove_dir_all(&data);
        std::fs::write(&data, b"a file where the folder was").unwrap();
        let mut refused = Vec::new();
        archiver
            .run(&mut |event| {
                if let ArchiverEvent::Refused { objects, error } = event {
                    refused.push((*objects, error.code()));
                    std::fs::remove_file(&data).unwrap();
                    std::fs::create_dir(&data).unwrap();
                }
                Ok(())
            })
            .unwrap();
        assert_eq!((refused, archiver.counts().archived), (vec![(1, Code::Io)], 2));
        assert_eq!(objects(&store), 2);
    }

    #[test]
    fn a_store_that_fails_as_a_whole_sets_nothing_aside() {
        let (mut archiver, _store) = archiver(|writer| {
            writer.flush()?;
            Err(Error::new(Code::Expired, "9 objects", "too late"))
        });
        let outcome = archiver.run(&mut |event| {
            assert!(!matches!(event, ArchiverEvent::Unarchived { .. }));
            Ok(())
        });
        assert_eq!(outcome.unwrap_err().code(), Code::Expired);
        assert_eq!(archiver.counts().failed, 9);
    }
}
