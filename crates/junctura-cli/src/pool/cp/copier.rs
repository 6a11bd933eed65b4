//! Objects on their way from one pool into another: held until the other has them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

use junctura::{
    Ack, Code, Error, Gap, Object, OfferOptions, Pipeline, Pool, Result, Retention, Schema, Target, Version, WholeArray,
};
use junctura_model::with_given;
use junctura_terminal::output::StandardOutput;
use junctura_terminal::progress::WorkProgress;
use junctura_terminal::size;
use serde_json::json;

/// Failures that do not affect the next object.
const OF_ONE_OBJECT: [Code; 6] = [
    Code::AlreadyExists,
    Code::Conflict,
    Code::SchemaMismatch,
    Code::TypeMismatch,
    Code::InvalidArgument,
    Code::TooLarge,
];

/// Failures that concern one array in pieces, and neither FROM nor the connection.
const OF_ONE_ARRAY: [Code; 6] = [
    Code::Corrupt,
    Code::Expired,
    Code::InvalidArgument,
    Code::LimitExceeded,
    Code::TooLarge,
    Code::Unsupported,
];

/// Reports about each copied object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CopyNotice {
    Nothing,
    Lines,
    Json,
}

#[derive(Clone, Copy, Debug, Default)]
struct CopyTally {
    taken: u64,
    taken_bytes: u64,
    copied: u64,
    bytes: u64,
    identical: u64,
    refused: u64,
}

/// An object being copied; for an array in pieces, with all its pieces.
struct CopiedObject {
    object: Object,
    whole: Option<WholeArray>,
}

impl CopiedObject {
    fn payload(&self) -> &[u8] {
        self.whole.as_ref().map_or(self.object.payload(), WholeArray::bytes)
    }

    fn attributes(&self) -> impl Iterator<Item = (&str, &str)> {
        let more = self.whole.as_ref().map(|whole| whole.attributes(&self.object));
        self.object.attributes().chain(more.unwrap_or_default())
    }
}

/// Copies objects and counts the outcomes.
pub(super) struct PoolCopier<'a> {
    from: &'a Pool,
    to: &'a Pool,
    retention: Option<Retention>,
    pipeline: Pipeline,
    acks: Receiver<Ack>,
    /// Objects that TO has not acknowledged, in the order of the offers.
    held: VecDeque<CopiedObject>,
    /// Schemas of FROM that TO has, too.
    agreed: Vec<String>,
    told: CopyNotice,
    out: StandardOutput,
    progress: WorkProgress,
    tally: CopyTally,
    missed: Vec<String>,
    keep_going: bool,
    failure: Option<Error>,
    began: Instant,
}

impl<'a> PoolCopier<'a> {
    pub(super) fn new(
        from: &'a Pool,
        to: &'a Pool,
        retention: Option<Retention>,
        window: usize,
        told: CopyNotice,
    ) -> Result<PoolCopier<'a>> {
        let (sender, acks) = channel();
        // The receiver lives as long as the pipeline.
        let pipeline = to.pipeline(window)?.on_ack(move |ack| drop(sender.send(ack)));
        Ok(PoolCopier {
            from,
            to,
            retention,
            pipeline,
            acks,
            held: VecDeque::new(),
            agreed: Vec::new(),
            told,
            out: StandardOutput::new(),
            progress: WorkProgress::new(),
            tally: CopyTally::default(),
            missed: Vec::new(),
            keep_going: false,
            failure: None,
            began: Instant::now(),
        })
    }

    /// Whether refused objects are reported immediately, or only counted.
    pub(super) fn keep_going(&mut self, keep_going: bool) {
        self.keep_going = keep_going;
    }

    /// Sets the total number of bytes.
    pub(super) fn expect(&mut self, bytes: u64) {
        self.progress.expect(Some(bytes));
    }

    /// How many objects were taken from FROM.
    pub(super) fn taken(&self) -> u64 {
        self.tally.taken
    }

    /// Copies one object. Waits only for room.
    pub(super) fn copy(&mut self, object: Object) -> Result<()> {
        self.tally.taken += 1;
        let (object, whole) = WholeArray::gather(self.from, object);
        let held = match whole {
            Ok(whole) => CopiedObject { object, whole },
            Err(error) => return self.pass_over(CopiedObject { object, whole: None }, error),
        };
        self.tally.taken_bytes += held.payload().len() as u64;
        match self.offer(&held) {
            Ok(()) => self.held.push_back(held),
            Err(error) => self.refuse(held, error)?,
        }
        self.note()?;
        self.progress.show(self.tally.taken_bytes, self.tally.copied);
        Ok(())
    }

    fn offer(&mut self, held: &CopiedObject) -> Result<()> {
        let schema = held.object.schema();
        self.agree(schema)?;
        let options = OfferOptions {
            schema: Some(schema.name()),
            retention: self.retention.clone(),
            ..OfferOptions::default()
        };
        let pipeline = &mut self.pipeline;
        with_given(schema, held.attributes(), |given| {
            pipeline.offer_with(given.iter().copied(), held.payload(), options)
        })
        .map(drop)
    }

    /// TO must mean the same by a schema's name.
    fn agree(&mut self, schema: &Schema) -> Result<()> {
        if self.agreed.iter().any(|name| name == schema.name()) {
            return Ok(());
        }
        let there = self.to.schema(Some(schema.name()))?;
        if there.fingerprint() != schema.fingerprint() {
            let subject = format!("schema {}", schema.name());
            return Err(Error::new(
                Code::Conflict,
                subject,
                "the two pools mean different things by it",
            ));
        }
        self.agreed.push(schema.name().to_owned());
        Ok(())
    }

    /// Waits until TO has everything that was taken.
    pub(super) fn flush(&mut self) -> Result<()> {
        self.pipeline.flush()?;
        self.note()?;
        self.out.flush()
    }

    /// Receives the acknowledgments so far.
    fn note(&mut self) -> Result<()> {
        while let Ok(ack) = self.acks.try_recv() {
            let Some(held) = self.held.pop_front() else { break };
            match ack.outcome {
                Ok(version) => {
                    self.tally.copied += 1;
                    self.tally.bytes += held.payload().len() as u64;
                    self.tell(&held, Some(version), "copied", None)?;
                }
                Err(error) if error.code() == Code::AlreadyExists => self.compare(held, &error)?,
                Err(error) => self.refuse(held, error)?,
            }
        }
        Ok(())
    }

    /// Something has this key already in TO: the same thing?
    fn compare(&mut self, held: CopiedObject, refusal: &Error) -> Result<()> {
        let object = &held.object;
        let target = Target::key_text(object.key()).in_schema(object.schema().name());
        let there = match self.to.demand(target, Some(std::time::Duration::ZERO)) {
            Ok(there) => there,
            // It was there, and is remembered.
            Err(error)
                if matches!(
                    error.code(),
                    Code::Gone | Code::NotFound | Code::Timeout | Code::NotWanted
                ) =>
            {
                return self.refuse(held, refusal.clone());
            }
            Err(error) => return Err(error),
        };
        let differs = if there.payload() != held.payload() {
            "payload"
        } else if there.attributes().collect::<BTreeMap<_, _>>() != held.attributes().collect() {
            "attributes"
        } else {
            self.tally.identical += 1;
            return self.tell(&held, Some(there.version()), "identical", None);
        };
        let cause = format!(
            "{} has it with another {differs}, version {}",
            self.to.url(),
            there.version()
        );
        let error = Error::new(Code::Conflict, object.key(), cause);
        self.refuse(held, error)
    }

    /// Whether an error is that of one payload, which was changed after its offer, or for which there is no memory:
    /// then it is reported, and the next object follows.
    pub(super) fn passes_over(&mut self, error: &Error) -> bool {
        let is_of_payload = matches!(error.code(), Code::Corrupt | Code::TooLarge);
        if is_of_payload {
            self.tally.refused += 1;
            self.progress.suspend(|| say!("junctura: not copied: {error}"));
            self.failure.get_or_insert_with(|| error.clone());
        }
        is_of_payload
    }

    /// An array that cannot be gathered is named, and the others are copied.
    fn pass_over(&mut self, held: CopiedObject, error: Error) -> Result<()> {
        if !OF_ONE_ARRAY.contains(&error.code()) {
            self.tally.refused += 1;
            held.object.give_back()?;
            return Err(error);
        }
        self.note_refused(&held, error)
    }

    /// Handles an object that TO refuses: an error, unless the others shall continue.
    fn refuse(&mut self, held: CopiedObject, error: Error) -> Result<()> {
        if !self.keep_going || !OF_ONE_OBJECT.contains(&error.code()) {
            self.tally.refused += 1;
            // Another consumer may succeed with it.
            held.object.give_back()?;
            return Err(error);
        }
        self.note_refused(&held, error)
    }

    fn note_refused(&mut self, held: &CopiedObject, error: Error) -> Result<()> {
        self.tally.refused += 1;
        if self.told != CopyNotice::Json {
            let (version, key) = (held.object.version(), held.object.key());
            self.progress
                .suspend(|| say!("junctura: not copied: {version} {key}: {error}"));
        }
        self.tell(held, None, "refused", Some(&error))?;
        self.failure.get_or_insert(error);
        Ok(())
    }

    /// Records objects that were removed before they were copied.
    pub(super) fn miss(&mut self, gap: &Gap) {
        for item in &gap.items {
            let missed = format!("{} {} ({})", item.version, item.object.key(), gap.reason);
            self.progress.suspend(|| say!("junctura: missed {missed}"));
            self.missed.push(missed);
        }
        if gap.unnamed > 0 {
            self.missed.push(format!("{} more ({})", gap.unnamed, gap.reason));
        }
    }

    fn tell(
        &mut self,
        held: &CopiedObject,
        version: Option<Version>,
        outcome: &str,
        why: Option<&Error>,
    ) -> Result<()> {
        let object = &held.object;
        let version = version.map(|version| version.to_string());
        match self.told {
            CopyNotice::Nothing => Ok(()),
            CopyNotice::Lines => writeln!(
                self.out,
                "{outcome} {} {} {}",
                object.version(),
                version.as_deref().unwrap_or("-"),
                object.key()
            ),
            CopyNotice::Json => self.out.json(&json!({
                "outcome": outcome,
                "key": object.key(),
                "schema": object.schema().name(),
                "bytes": held.payload().len(),
                "from_version": object.version().to_string(),
                "version": version,
                "error": why.map(ToString::to_string),
            })),
        }
    }

    /// Waits for pending copies and prints the summary; returns the first failure.
    pub(super) fn finish(mut self, outcome: Result<()>, summary: bool) -> Result<()> {
        let outcome = outcome.and(self.flush());
        self.progress.end();
        // An object that TO has not acknowledged is not done.
        self.held.drain(..).for_each(|held| drop(held.object.give_back()));
        let seconds = self.began.elapsed().as_secs_f64();
        let CopyTally {
            copied,
            bytes,
            identical,
            refused,
            ..
        } = self.tally;
        let gib_per_s = bytes as f64 / f64::from(1 << 30) / seconds.max(1e-9);
        if self.told == CopyNotice::Json {
            let seconds = (seconds * 1e6).round() / 1e6;
            self.out.json(&json!({
                "objects": copied, "bytes": bytes, "identical": identical, "refused": refused,
                "missed": self.missed, "seconds": seconds, "gib_per_s": gib_per_s,
            }))?;
        } else if summary {
            let s = if copied == 1 { "" } else { "s" };
            let volume = size::bytes(bytes);
            write!(
                self.out,
                "{copied} object{s}, {volume}, {seconds:.2} s, {gib_per_s:.2} GiB/s"
            )?;
            if identical > 0 {
                write!(self.out, "; {identical} were there already")?;
            }
            writeln!(self.out)?;
        }
        self.out.flush()?;
        outcome?;
        if let Some(first) = self.failure {
            let cause = format!("{} ({refused} refused in all, {copied} copied)", first.cause());
            return Err(Error::new(first.code(), first.subject(), cause));
        }
        match self.missed.len() {
            0 => Ok(()),
            missed => Err(Error::new(
                Code::Gone,
                format!("{missed} objects that matched"),
                "were removed before they were copied",
            )),
        }
    }
}
