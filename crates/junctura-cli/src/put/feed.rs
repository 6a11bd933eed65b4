//! Objects on their way into the pool: what was offered, what is acknowledged, and what went wrong with which.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

use junctura::{Ack, Allocation, Bundle, Code, Error, Given, OfferOptions, Pipeline, Pool, Result, Retention, Schema};
use serde_json::json;

use crate::output::Out;
use crate::progress::Progress;
use crate::size;

/// Failures that are told one by one when others go on.
const FAILURES_TOLD: u64 = 10;
/// Failures that say nothing about the next object.
const OF_ONE_OBJECT: [Code; 6] = [
    Code::AlreadyExists,
    Code::SchemaMismatch,
    Code::TypeMismatch,
    Code::InvalidArgument,
    Code::TooLarge,
    Code::Corrupt,
];

/// Objects on their way.
pub(crate) struct Feed<'a> {
    room: Room<'a>,
    retention: Option<Retention>,
    pipeline: Pipeline,
    acks: Receiver<Ack>,
    unacknowledged: VecDeque<Origin>,
    /// Members of the bundle, which are told of when it is visible.
    staged: Vec<(u64, Origin)>,
    acknowledged: u64,
    tally: Tally,
    told: Told,
    out: Out,
    progress: Progress,
    keep_going: bool,
    if_wanted: bool,
    failure: Option<Error>,
}

/// Where objects go: into a pool, or a bundle of it.
#[derive(Clone, Copy)]
pub(crate) struct Room<'a> {
    pool: &'a Pool,
    bundle: Option<&'a Bundle>,
}

impl Room<'_> {
    /// Memory for a payload.
    pub(crate) fn allocate(&self, bytes: u64) -> Result<Allocation> {
        let too_large = |_| {
            let cause = format!("{bytes} bytes do not fit into memory");
            Error::new(Code::TooLarge, "payload", cause)
        };
        let bytes = usize::try_from(bytes).map_err(too_large)?;
        match self.bundle {
            None => self.pool.allocate(bytes),
            Some(bundle) => bundle.allocate(bytes),
        }
    }
}

/// What is done with the bundle when all is staged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Seal,
    Leave,
    Wait,
}

/// What is said about each object that has become visible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    Nothing,
    Lines,
    Json,
}

/// Where an object comes from.
struct Origin {
    file: Arc<str>,
    message: Option<u64>,
    bytes: u64,
    key: String,
}

#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    objects: u64,
    bytes: u64,
    not_wanted: u64,
    failed: u64,
}

/// What the payload is.
pub(crate) enum Payload<'p> {
    Bytes(&'p [u8]),
    Placed(Allocation),
}

/// A place in the input, for messages.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) file: Arc<str>,
    /// Which message of it.
    pub(crate) message: Option<u64>,
}

impl Place {
    /// An error about this place.
    pub(crate) fn error(&self, error: &Error) -> Error {
        let message = self
            .message
            .map_or(String::new(), |number| format!(": message {number}"));
        let subject = if error.subject().is_empty() {
            String::new()
        } else {
            format!(": {}", error.subject())
        };
        Error::new(error.code(), format!("{}{message}{subject}", self.file), error.cause())
    }
}

impl<'a> Feed<'a> {
    pub(crate) fn new(
        pool: &'a Pool,
        bundle: Option<&'a Bundle>,
        retention: Option<Retention>,
        window: usize,
        told: Told,
    ) -> Result<Feed<'a>> {
        let (sender, acks) = channel();
        // The receiver lives as long as the pipeline.
        let pipeline = bundle.map_or_else(|| pool.pipeline(window), |bundle| bundle.pipeline(window));
        let pipeline = pipeline?.on_ack(move |ack| drop(sender.send(ack)));
        Ok(Feed {
            room: Room { pool, bundle },
            retention,
            pipeline,
            acks,
            unacknowledged: VecDeque::new(),
            staged: Vec::new(),
            acknowledged: 0,
            tally: Tally::default(),
            told,
            out: Out::new(),
            progress: Progress::new(),
            keep_going: false,
            if_wanted: false,
            failure: None,
        })
    }

    /// Whether failures are told at once and only counted.
    pub(crate) fn keep_going(&mut self, keep_going: bool) {
        self.keep_going = keep_going;
    }

    /// Whether only what somebody wants is offered.
    pub(crate) fn if_wanted(&mut self, if_wanted: bool) {
        self.if_wanted = if_wanted;
    }

    /// Says how many bytes there are in all, where that is known.
    pub(crate) fn expect(&mut self, bytes: Option<u64>) {
        self.progress.expect(bytes);
    }

    /// Where the objects go.
    pub(crate) fn pool(&self) -> &'a Pool {
        self.room.pool
    }

    /// The same, as a place for payloads.
    pub(crate) fn room(&self) -> Room<'a> {
        self.room
    }

    /// Offers one object.
    ///
    /// # Errors
    /// What is wrong with it or, when not to be kept going, with an earlier one.
    pub(crate) fn offer(
        &mut self,
        place: &Place,
        schema: &Schema,
        attributes: &[(&str, Given<'_>)],
        payload: Payload<'_>,
    ) -> Result<()> {
        let bytes = match &payload {
            Payload::Bytes(bytes) => bytes.len(),
            Payload::Placed(allocation) => allocation.len(),
        } as u64;
        let given = attributes.iter().copied();
        let options = OfferOptions {
            schema: Some(schema.name()),
            retention: self.retention.clone(),
            if_wanted: self.if_wanted,
        };
        let offered = match payload {
            Payload::Bytes(bytes) => self.pipeline.offer_with(options, given, bytes),
            Payload::Placed(allocation) => self.pipeline.offer_allocation_with(options, allocation, given),
        };
        offered.map_err(|error| place.error(&error))?;
        let key = if self.told == Told::Nothing {
            String::new()
        } else {
            key(schema, attributes)?
        };
        let Place { file, message } = place.clone();
        self.unacknowledged.push_back(Origin {
            file,
            message,
            bytes,
            key,
        });
        self.note()
    }

    /// Waits until everything that was offered is visible.
    pub(crate) fn flush(&mut self) -> Result<()> {
        self.pipeline.flush()?;
        self.note()?;
        self.out.flush()
    }

    /// Takes note of a failure: an error, unless only this object is concerned and the others are to go on.
    pub(crate) fn failed(&mut self, error: Error) -> Result<()> {
        self.tally.failed += 1;
        if !self.keep_going || !OF_ONE_OBJECT.contains(&error.code()) {
            return Err(error);
        }
        match self.tally.failed {
            ..=FAILURES_TOLD => self.progress.suspend(|| say!("junctura: {error}")),
            number if number == FAILURES_TOLD + 1 => {
                self.progress
                    .suspend(|| say!("junctura: more failures are only counted"));
            }
            _ => {}
        }
        self.failure.get_or_insert(error);
        Ok(())
    }

    /// Shows how far the reading has come.
    pub(crate) fn show(&mut self, position: u64) {
        self.progress.show(position, self.tally.objects);
    }

    /// Waits for the rest and says what was done; returns what went wrong.
    pub(crate) fn finish(mut self, outcome: Result<()>, ending: Ending, began: Instant, summary: bool) -> Result<()> {
        let outcome = outcome.and(self.flush());
        let ended = if outcome.is_ok() && self.failure.is_none() {
            self.end_bundle(ending)
        } else {
            Ok(())
        };
        self.progress.end();
        let Tally {
            objects,
            bytes,
            not_wanted,
            failed,
        } = self.tally;
        let seconds = began.elapsed().as_secs_f64();
        let outcome = outcome.and(ended);
        if self.told == Told::Json {
            let failed = failed.max(u64::from(outcome.is_err()));
            let seconds = (seconds * 1e6).round() / 1e6;
            self.out.json(&json!({
                "objects": objects, "bytes": bytes, "seconds": seconds, "not_wanted": not_wanted, "failed": failed,
            }))?;
        } else if summary {
            let s = if objects == 1 { "" } else { "s" };
            let left = if self.if_wanted {
                format!(", {not_wanted} not wanted")
            } else {
                String::new()
            };
            writeln!(
                self.out,
                "{objects} object{s}, {}, {seconds:.2} s{left}",
                size::bytes(bytes)
            )?;
        }
        self.out.flush()?;
        outcome?;
        self.failure.map_or(Ok(()), |first| {
            let cause = format!("{} ({failed} failed in all, {objects} are there)", first.cause());
            Err(Error::new(first.code(), first.subject(), cause))
        })
    }

    /// Takes the acknowledgements that have come.
    fn note(&mut self) -> Result<()> {
        while let Ok(ack) = self.acks.try_recv() {
            self.acknowledged += 1;
            let Some(origin) = self.unacknowledged.pop_front() else {
                break;
            };
            match ack.outcome {
                Ok(version) => {
                    self.tally.objects += 1;
                    self.tally.bytes += origin.bytes;
                    if self.room.bundle.is_none() {
                        self.tell(&origin, Some(&version.to_string()))?;
                    } else if self.told != Told::Nothing {
                        self.staged.push((self.acknowledged - 1, origin));
                    }
                }
                Err(error) if error.code() == Code::NotWanted => self.tally.not_wanted += 1,
                Err(error) => {
                    let place = Place {
                        file: origin.file,
                        message: origin.message,
                    };
                    self.failed(place.error(&error))?;
                }
            }
        }
        Ok(())
    }

    /// Seals the bundle, or waits for it, and tells of its members.
    fn end_bundle(&mut self, ending: Ending) -> Result<()> {
        let Some(bundle) = self.room.bundle else {
            return Ok(());
        };
        let completed = match (ending, bundle.completed()?) {
            (_, Some(completed)) => Some(completed),
            (Ending::Seal, None) => Some(bundle.seal()?),
            (Ending::Wait, None) => Some(bundle.wait(None)?),
            (Ending::Leave, None) => None,
        };
        for (number, origin) in std::mem::take(&mut self.staged) {
            let member = self.pipeline.staged(number);
            let version = completed
                .as_ref()
                .zip(member)
                .and_then(|(all, member)| all.version(member));
            self.tell(&origin, version.map(|version| version.to_string()).as_deref())?;
        }
        if completed.is_none() {
            let path = bundle.path().unwrap_or_default();
            self.progress
                .suspend(|| say!("junctura: bundle {path} is not complete yet"));
        }
        Ok(())
    }

    fn tell(&mut self, origin: &Origin, version: Option<&str>) -> Result<()> {
        match self.told {
            Told::Nothing => Ok(()),
            Told::Lines => writeln!(self.out, "{} {}", version.unwrap_or("staged"), origin.key),
            Told::Json => self.out.json(&json!({
                "key": origin.key, "version": version, "bytes": origin.bytes, "file": &*origin.file,
                "message": origin.message,
            })),
        }
    }
}

fn key(schema: &Schema, attributes: &[(&str, Given<'_>)]) -> Result<String> {
    let mut record = Vec::new();
    schema.record(attributes.iter().copied(), &mut record)?;
    let mut key = String::new();
    schema.key_of(junctura_model::RecordRef::trusted(&record), &mut key);
    Ok(key)
}
