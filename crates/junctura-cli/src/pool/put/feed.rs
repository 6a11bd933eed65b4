//! Pending offers of files: their acknowledgments and failures.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

use junctura::{Ack, Allocation, Bundle, Code, Error, Given, OfferOptions, Pipeline, Pool, Result, Retention, Schema};
use junctura_model::SameKey;
use junctura_model::command::shell_word;

use super::files::{FilePayload, FileTarget, InputPosition};
use super::tally::{OfferOrigin, PutTally};
use crate::pool::explain::own::waits_of_offers;
use crate::pool::patience::WaitReport;

/// Objects on their way.
pub(super) struct OfferFeed<'a> {
    room: OfferTarget<'a>,
    retention: Option<Retention>,
    if_wanted: bool,
    pipeline: Pipeline,
    acks: Receiver<Ack>,
    unacknowledged: VecDeque<OfferOrigin>,
    /// Members of the bundle, which are reported when it is visible.
    staged: Vec<(u64, OfferOrigin)>,
    acknowledged: u64,
    not_wanted: u64,
    tally: PutTally,
    waits: WaitReport,
}

/// Destination of the objects: a pool, or a bundle.
#[derive(Clone, Copy)]
pub(super) struct OfferTarget<'a> {
    pool: &'a Pool,
    bundle: Option<&'a Bundle>,
}

/// The end of the bundle when all members are staged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BundleEnding {
    Seal,
    Leave,
    Wait,
}

impl<'a> OfferFeed<'a> {
    pub(super) fn new(
        pool: &'a Pool,
        bundle: Option<&'a Bundle>,
        window: usize,
        tally: PutTally,
    ) -> Result<OfferFeed<'a>> {
        let (sender, acks) = channel();
        // The receiver lives as long as the pipeline.
        let pipeline = bundle.map_or_else(|| pool.pipeline(window), |bundle| bundle.pipeline(window));
        let pipeline = pipeline?.on_ack(move |ack| drop(sender.send(ack)));
        Ok(OfferFeed {
            room: OfferTarget { pool, bundle },
            retention: None,
            if_wanted: false,
            pipeline,
            acks,
            unacknowledged: VecDeque::new(),
            staged: Vec::new(),
            acknowledged: 0,
            not_wanted: 0,
            tally,
            waits: WaitReport::new(pool, "put", waits_of_offers),
        })
    }

    /// How long the objects stay.
    pub(super) fn retain(&mut self, retention: Option<Retention>) {
        self.retention = retention;
    }

    /// Whether only wanted objects are offered.
    pub(super) fn if_wanted(&mut self, if_wanted: bool) {
        self.if_wanted = if_wanted;
    }

    /// Waits for pending offers and prints the summary; returns the first failure.
    pub(super) fn finish(mut self, outcome: Result<()>, ending: BundleEnding) -> Result<()> {
        let outcome = outcome.and(self.idle());
        let ended = if outcome.is_ok() && !self.tally.has_failures() {
            self.end_bundle(ending)
        } else {
            Ok(())
        };
        self.tally
            .finish(outcome.and(ended), &[("not wanted", self.not_wanted)])
    }

    /// Receives the acknowledgments so far.
    fn note(&mut self) -> Result<()> {
        while let Ok(ack) = self.acks.try_recv() {
            self.acknowledged += 1;
            self.waits.progress();
            let Some(origin) = self.unacknowledged.pop_front() else {
                break;
            };
            match ack.outcome {
                Ok(version) => {
                    self.tally.count(&origin);
                    if self.room.bundle.is_none() {
                        self.tally.tell(&origin, Some(&version.to_string()))?;
                    } else if self.tally.tells() {
                        self.staged.push((self.acknowledged - 1, origin));
                    }
                }
                Err(error) if error.code() == Code::NotWanted => self.not_wanted += 1,
                Err(error) => self.tally.failed(origin.place.error(&error))?,
            }
        }
        Ok(())
    }

    /// Seals the bundle, or waits for it, and reports its members.
    fn end_bundle(&mut self, ending: BundleEnding) -> Result<()> {
        let Some(bundle) = self.room.bundle else {
            return Ok(());
        };
        let completed = match (ending, bundle.completed()?) {
            (_, Some(completed)) => Some(completed),
            (BundleEnding::Seal, None) => Some(bundle.seal()?),
            (BundleEnding::Wait, None) => Some(bundle.wait(None)?),
            (BundleEnding::Leave, None) => None,
        };
        for (number, origin) in std::mem::take(&mut self.staged) {
            let member = self.pipeline.staged(number);
            let version = completed
                .as_ref()
                .zip(member)
                .and_then(|(all, member)| all.version(member));
            let version = version.map(|version| version.to_string());
            self.tally.tell(&origin, version.as_deref())?;
        }
        if completed.is_none() {
            let path = bundle.path().unwrap_or_default();
            self.tally.say(&format_args!("bundle {path} is not complete yet"));
        }
        Ok(())
    }
}

impl<'a> FileTarget for OfferFeed<'a> {
    type Room = Allocation;
    type Rooms = OfferTarget<'a>;

    fn rooms(&self) -> OfferTarget<'a> {
        self.room
    }

    fn allocate(room: OfferTarget<'a>, bytes: u64) -> Result<Allocation> {
        let too_large = |_| {
            let cause = format!("{bytes} bytes do not fit into memory");
            Error::new(Code::TooLarge, "payload", cause)
        };
        let bytes = usize::try_from(bytes).map_err(too_large)?;
        match room.bundle {
            None => room.pool.allocate(bytes),
            Some(bundle) => bundle.allocate(bytes),
        }
    }

    fn payload_bytes_max(&self) -> Result<u64> {
        Ok(self.room.pool.payload_rules()?.bytes_max)
    }

    fn schemas(&self) -> Result<Vec<Arc<Schema>>> {
        self.room.pool.schemas()
    }

    fn schema_command(&self, file: &str) -> String {
        format!(
            "a server has those of its command line: `junctura pool serve --schema {}`",
            shell_word(file)
        )
    }

    fn take(
        &mut self,
        place: &InputPosition,
        schema: &Schema,
        attributes: &[(&str, Given<'_>)],
        payload: FilePayload<'_, Allocation>,
    ) -> Result<()> {
        let bytes = payload.bytes().len();
        let given = attributes.iter().copied();
        let options = OfferOptions {
            schema: Some(schema.name()),
            retention: self.retention.clone(),
            if_wanted: self.if_wanted,
            ..OfferOptions::default()
        };
        let offered = match payload {
            FilePayload::Bytes(bytes) => self.pipeline.offer_with(given, bytes, options),
            FilePayload::Placed(allocation) => self.pipeline.offer_allocation_with(allocation, given, options),
        };
        offered.map_err(|error| place.error(&error))?;
        self.waits.progress();
        let origin = self.tally.origin(place, schema, attributes, bytes)?;
        self.unacknowledged.push_back(origin);
        self.note()
    }

    /// Waits until everything that was offered is visible.
    fn idle(&mut self) -> Result<()> {
        self.pipeline.flush()?;
        self.note()?;
        self.tally.flush()
    }

    fn failed(&mut self, error: Error) -> Result<()> {
        self.tally.failed(error)
    }

    fn file_failed(&mut self, error: Error) -> Result<()> {
        self.tally.file_failed(error)
    }

    fn show(&mut self, position: u64) {
        self.tally.show(position);
    }

    fn repeated(&mut self, schema: &Schema) {
        if schema.on_same_key() == SameKey::Supersede {
            self.tally.repeated();
        }
    }

    fn hid(&mut self, fields: u32) {
        self.tally.hid(fields);
    }
}
