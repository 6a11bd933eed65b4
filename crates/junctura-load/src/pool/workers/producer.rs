//! A producer of a load.

use std::collections::VecDeque;
use std::io::Read as _;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hashbrown::HashSet;
use junctura::{Ack, Allocation, Code, Error, Given, OfferOptions, Pipeline, Pool, Result, Retention, Schema, Version};
use serde_json::{Value, json};

use crate::history::{LoadHistory, digest};
use crate::load::LoadNames;
use crate::messages::{Word, say, sleep};
use crate::pool::TouchMode;
use crate::pool::plan::WorkerPlan;
use crate::pool::report::{LatencyHistogram, WorkerFigures};
use crate::pool::workers::bundled::{LoadBundles, SealedBundle};
use crate::stamp::{self, PayloadStamp, now_ns};

const PROGRESS_EVERY_NS: u64 = 500_000_000;

pub(crate) struct LoadProducer<'a> {
    plan: &'a WorkerPlan,
    pipeline: Pipeline,
    bundles: Option<LoadBundles>,
    notes: ProducerNotes,
    names: LoadNames,
    in_slots: bool,
    ring: VecDeque<Allocation>,
    /// Slots whose pages are resident.
    touched: HashSet<usize>,
    grib: Option<Vec<u8>>,
    /// By the share of the members that an object is in.
    retentions: Vec<Retention>,
}

/// The records of a producer about its offers and their acknowledgements.
#[derive(Clone)]
struct ProducerNotes {
    schema: Arc<Schema>,
    acked: Arc<Mutex<AckFigures>>,
    /// `None`: nothing is recorded.
    history: Option<Arc<Mutex<LoadHistory>>>,
}

/// The figures of acknowledgements.
struct AckFigures {
    /// When the offers that are not acknowledged were made, oldest first.
    made: VecDeque<u64>,
    /// When the current batch of acknowledgements arrived.
    came_ns: Option<u64>,
    times: LatencyHistogram,
    /// Offers made before are not measured.
    from_ns: u64,
    failure: Option<Error>,
}

impl<'a> LoadProducer<'a> {
    pub(crate) fn new(plan: &'a WorkerPlan, pool: &Pool) -> Result<Self> {
        let acked = AckFigures {
            made: VecDeque::new(),
            came_ns: None,
            times: LatencyHistogram::default(),
            from_ns: u64::MAX,
            failure: None,
        };
        let history = LoadHistory::begin(plan.history.as_deref(), "producer", &plan.name(), None)?;
        let notes = ProducerNotes {
            schema: pool.schema(Some("mars"))?,
            acked: Arc::new(Mutex::new(acked)),
            history: history.is_kept().then(|| Arc::new(Mutex::new(history))),
        };
        let pipeline = pool.pipeline(plan.window as usize)?.on_ack({
            let notes = notes.clone();
            move |ack| notes.acknowledged(&ack)
        });
        let bundles = plan.bundle.map(|size| {
            let notes = notes.clone();
            LoadBundles::new(pool, plan.window as usize, size, move |ack| notes.staged(ack))
        });
        let grib = plan.grib.as_ref().map(|path| first_message(path)).transpose()?;
        let inline_bytes_max = pool.payload_rules()?.inline_bytes_max;
        let in_slots = plan.mode != TouchMode::Metadata && plan.payload_bytes as u64 > inline_bytes_max;
        let mut producer = Self {
            plan,
            pipeline,
            bundles,
            notes,
            names: LoadNames::new(&plan.space, plan.life),
            in_slots,
            ring: VecDeque::new(),
            touched: HashSet::new(),
            grib,
            retentions: plan.retentions()?,
        };
        producer.take_slots()?;
        Ok(producer)
    }

    /// Offers until the time is over; gives what was measured.
    pub(crate) fn run(&mut self, start_ns: u64) -> Result<WorkerFigures> {
        let measure_from = start_ns + self.plan.warmup_ns;
        let end = measure_from + self.plan.duration_ns;
        with(&self.notes.acked, |acked| acked.from_ns = measure_from);
        let mut figures = WorkerFigures {
            done: vec![0; self.plan.sharers.max(1) as usize],
            ..WorkerFigures::default()
        };
        let mut buffer = vec![0; self.plan.payload_bytes.max(stamp::BYTES_MIN)];
        let mut n = 0u64;
        let mut next_word = start_ns;
        let mut now = now_ns();
        // A later replacement does not make up for the missing offers of the killed producer.
        let began = start_ns.max(now);
        while now < end {
            if let Some(rate) = self.plan.rate {
                self.pace(began + (n as f64 * 1e9 / rate) as u64)?;
            }
            let field = self.plan.space.field(n, self.plan.share, self.plan.producers);
            now = self.offer(n, &field, &mut buffer)?;
            figures.done[self.plan.share_of(field.member)] += 1;
            figures.measured += u64::from(now >= measure_from);
            n += 1;
            self.seal(false)?;
            if now >= next_word {
                next_word = now + PROGRESS_EVERY_NS;
                say(&Word::Progress { done: n })?;
                self.notes.check()?;
            }
        }
        self.ring.clear();
        self.await_all()?;
        self.seal(true)?;
        self.notes.check()?;
        self.notes
            .record(|history| history.note(|| json!({"op": "end", "through": null})))?;
        figures.times = with(&self.notes.acked, |acked| std::mem::take(&mut acked.times));
        Ok(figures)
    }

    /// Takes all slots that the run will need and makes their pages resident, so that no page is made during the
    /// measurement; then keeps the slots that the load reuses.
    fn take_slots(&mut self) -> Result<()> {
        if !self.in_slots || !self.plan.takes_ahead {
            return Ok(());
        }
        let mut taken = VecDeque::new();
        for _ in 0..self.plan.slots() {
            let mut allocation = self.pipeline.allocate(self.plan.payload_bytes)?;
            allocation.fill(0);
            self.touched.insert(allocation.as_ptr() as usize);
            taken.push_back(allocation);
        }
        taken.truncate(self.plan.slots_in_rotation());
        self.ring = taken;
        Ok(())
    }

    /// Offers an object; gives the time at which it did.
    fn offer(&mut self, n: u64, field: &crate::load::LoadField, buffer: &mut [u8]) -> Result<u64> {
        let options = OfferOptions {
            schema: Some("mars"),
            retention: self.retentions.get(self.plan.share_of(field.member)).cloned(),
            ..OfferOptions::default()
        };
        let mut stamp = PayloadStamp {
            producer: u64::from(self.plan.index),
            number: n,
            offered_ns: 0,
        };
        let attributes = self.names.attributes(field);
        if self.in_slots {
            let mut next = self.pipeline.allocate(self.plan.payload_bytes)?;
            if self.touched.insert(next.as_ptr() as usize) {
                next.fill(0);
            }
            self.ring.push_back(next);
            let Some(mut allocation) = self.ring.pop_front() else {
                return Ok(now_ns());
            };
            write(self.plan.mode, self.grib.as_deref(), &mut allocation, n);
            stamp.offered_ns = self.notes.begin();
            stamp.write(&mut allocation);
            self.notes
                .offering(n, &attributes, &allocation, self.bundles.is_some())?;
            let pipeline = match &mut self.bundles {
                None => &mut self.pipeline,
                Some(bundles) => bundles.pipeline(n)?,
            };
            pipeline.offer_allocation_with(allocation, attributes, options)?;
        } else {
            write(self.plan.mode, self.grib.as_deref(), buffer, n);
            stamp.offered_ns = self.notes.begin();
            stamp.write(buffer);
            self.notes.offering(n, &attributes, buffer, self.bundles.is_some())?;
            let pipeline = match &mut self.bundles {
                None => &mut self.pipeline,
                Some(bundles) => bundles.pipeline(n)?,
            };
            pipeline.offer_with(attributes, buffer, options)?;
        }
        Ok(stamp.offered_ns)
    }

    /// Awaits what was offered, then the time of the next offer.
    fn pace(&mut self, at_ns: u64) -> Result<()> {
        self.await_all()?;
        if let Some(left) = at_ns.checked_sub(now_ns()).filter(|&left| left > 0) {
            sleep(Duration::from_nanos(left));
        }
        Ok(())
    }

    /// Awaits all acknowledgements, as they arrive.
    fn await_all(&mut self) -> Result<()> {
        let bundled = self.bundles.as_mut().and_then(LoadBundles::outstanding);
        let pipeline = bundled.unwrap_or(&mut self.pipeline);
        while let Some(most) = pipeline.outstanding().checked_sub(1) {
            with(&self.notes.acked, |acked| acked.came_ns = None);
            pipeline.wait_until(most)?;
        }
        Ok(())
    }

    /// Makes a complete bundle visible; at the end, an incomplete one, too.
    fn seal(&mut self, is_end: bool) -> Result<()> {
        let Some(bundles) = &mut self.bundles else {
            return Ok(());
        };
        if let Some(sealed) = bundles.seal(is_end)? {
            self.notes.sealed(&sealed)?;
        }
        Ok(())
    }
}

impl ProducerNotes {
    /// Records the start of an offer. Called before the payload is written: a lock waits until all earlier writes have
    /// reached memory.
    fn begin(&self) -> u64 {
        let now = now_ns();
        with(&self.acked, |acked| {
            acked.came_ns = None;
            acked.made.push_back(now);
        });
        now
    }

    fn offering(
        &self,
        n: u64,
        attributes: &[(&'static str, Given<'_>)],
        payload: &[u8],
        is_bundled: bool,
    ) -> Result<()> {
        self.record(|history| {
            let mut record = Vec::new();
            self.schema.record(attributes.iter().copied(), &mut record)?;
            let mut key = String::new();
            self.schema.key_of(self.schema.check(&record)?, &mut key);
            // These bundles have no path: their versions identify them.
            let bundle = is_bundled.then_some("-");
            history.note(|| json!({"op": "offering", "n": n, "id": key, "sum": digest(payload), "bundle": bundle}))
        })
    }

    fn acknowledged(&self, ack: &Ack) {
        self.staged(ack);
        if let Ok(version) = &ack.outcome {
            self.offered(ack.number, version);
        }
    }

    /// Takes note that an offer was taken: visible, or staged in a bundle. Or that it was refused.
    fn staged(&self, ack: &Ack) {
        with(&self.acked, |acked| {
            let came = *acked.came_ns.get_or_insert_with(now_ns);
            let made = acked.made.pop_front().unwrap_or(came);
            if made >= acked.from_ns {
                acked.times.record(came - made);
            }
            if let Err(error) = &ack.outcome {
                acked.failure.get_or_insert_with(|| error.clone());
            }
        });
        if let Err(error) = &ack.outcome {
            let code = error.code().name();
            self.note(|| json!({"op": "refused", "n": ack.number, "error": code}));
        }
    }

    fn offered(&self, n: u64, version: &Version) {
        self.note(|| json!({"op": "offered", "n": n, "version": version.to_string()}));
    }

    /// The members of a bundle are visible.
    fn sealed(&self, sealed: &SealedBundle) -> Result<()> {
        for (number, version) in (sealed.first..).zip(&sealed.versions) {
            match version {
                Some(version) => self.offered(number, version),
                None => {
                    return Err(Error::new(
                        Code::Corrupt,
                        "bundle",
                        format!("no version of offer {number}"),
                    ));
                }
            }
        }
        Ok(())
    }

    /// Writes a line into the history; that it cannot is a failure of the load.
    fn note(&self, line: impl FnOnce() -> Value) {
        if let Err(error) = self.record(|history| history.note(line)) {
            with(&self.acked, |acked| acked.failure = Some(error));
        }
    }

    /// Writes into the history, if there is one.
    fn record(&self, write: impl FnOnce(&mut LoadHistory) -> Result<()>) -> Result<()> {
        self.history.as_ref().map_or(Ok(()), |history| with(history, write))
    }

    /// The first failure, if there was one.
    fn check(&self) -> Result<()> {
        with(&self.acked, |acked| acked.failure.take()).map_or(Ok(()), Err)
    }
}

fn write(mode: TouchMode, grib: Option<&[u8]>, payload: &mut [u8], n: u64) {
    match (mode, grib) {
        (TouchMode::Metadata | TouchMode::Transfer, _) => {}
        (TouchMode::Touch | TouchMode::Verify, None) => stamp::fill(payload, n),
        (TouchMode::Touch | TouchMode::Verify, Some(message)) => payload.copy_from_slice(message),
    }
}

/// The bytes of a GRIB file that are read to find its first message.
const MESSAGE_BYTES_MAX: u64 = 1 << 30;

/// The first message of a GRIB file; its ends will be stamped over.
pub(crate) fn first_message(path: &std::path::Path) -> Result<Vec<u8>> {
    let failed = |cause: String| Error::new(Code::Io, path.display().to_string(), cause);
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(|error| failed(error.to_string()))?;
    let read = file.take(MESSAGE_BYTES_MAX).read_to_end(&mut bytes);
    read.map_err(|error| failed(error.to_string()))?;
    let message = junctura_grib::Messages::new(&bytes)
        .next()
        .ok_or_else(|| failed("there is no GRIB message in it".to_owned()))?
        .map_err(|error| failed(error.to_string()))?;
    Ok(message.bytes().to_vec())
}

fn with<T, R>(mutex: &Mutex<T>, f: impl FnOnce(&mut T) -> R) -> R {
    f(&mut mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
}
