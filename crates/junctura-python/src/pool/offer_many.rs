//! Offering many objects at once.
//!
//! Lists and tuples are read in batches, so that the interpreter lock is released once for many offers. Other iterables
//! are offered object by object: a generator may be slow.

use std::sync::{Arc, Mutex, PoisonError};

use junctura::{Ack, Bundle, Error, OfferOptions, Pool};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use crate::conversion::data::{PreparedData, ReadyPayload};
use crate::conversion::given::type_name;
use crate::handles::allocation::FilledPayload;
use crate::handles::bundle::PyStaged;
use crate::model::version::PyVersion;
use crate::runtime::error::{OrRaise, invalid, raise};
use crate::runtime::patience::offering;

const BATCH: usize = 64;

#[derive(Default)]
struct OfferOutcomes {
    versions: Vec<PyVersion>,
    failure: Option<(u64, Error)>,
}

impl OfferOutcomes {
    fn note(&mut self, ack: Ack) {
        match ack.outcome {
            Ok(version) => self.versions.push(PyVersion(version)),
            Err(error) => _ = self.failure.get_or_insert((ack.number, error)),
        }
    }
}

struct ManyOffers<'a> {
    pipeline: junctura::Pipeline,
    options: OfferOptions<'a>,
    outcomes: Arc<Mutex<OfferOutcomes>>,
}

/// Offers them all and waits until all are visible, or staged in a bundle.
pub(crate) fn offer_many(
    py: Python<'_>,
    pool: &Pool,
    bundle: Option<&Bundle>,
    objects: &Bound<'_, PyAny>,
    options: OfferOptions<'_>,
    window: usize,
) -> PyResult<Vec<PyVersion>> {
    let (many, _) = offer_all(py, pool, bundle, objects, options, window)?;
    Ok(std::mem::take(
        &mut many.outcomes.lock().unwrap_or_else(PoisonError::into_inner).versions,
    ))
}

/// Offers them all into a bundle and waits until all are staged.
pub(crate) fn stage_many(
    py: Python<'_>,
    pool: &Pool,
    bundle: &Bundle,
    objects: &Bound<'_, PyAny>,
    options: OfferOptions<'_>,
    window: usize,
) -> PyResult<Vec<PyStaged>> {
    let (many, count) = offer_all(py, pool, Some(bundle), objects, options, window)?;
    Ok((0..count)
        .filter_map(|number| many.pipeline.staged(number))
        .map(PyStaged)
        .collect())
}

fn offer_all<'a>(
    py: Python<'_>,
    pool: &Pool,
    bundle: Option<&Bundle>,
    objects: &Bound<'_, PyAny>,
    options: OfferOptions<'a>,
    window: usize,
) -> PyResult<(ManyOffers<'a>, u64)> {
    let outcomes = Arc::new(Mutex::new(OfferOutcomes::default()));
    let noted = Arc::clone(&outcomes);
    let pipeline = bundle.map_or_else(|| pool.pipeline(window), |bundle| bundle.pipeline(window));
    let pipeline = pipeline.or_raise(py)?;
    let pipeline = pipeline.on_ack(move |ack| noted.lock().unwrap_or_else(PoisonError::into_inner).note(ack));
    let mut many = ManyOffers {
        pipeline,
        options: options.clone(),
        outcomes,
    };
    let in_memory = objects.is_instance_of::<PyList>() || objects.is_instance_of::<PyTuple>();
    let batch_len = if in_memory { BATCH.min(window.max(1)) } else { 1 };
    let (mut batch, mut count) = (Vec::with_capacity(batch_len), 0);
    for (at, object) in objects.try_iter()?.enumerate() {
        batch.push(prepare(pool, &object?, at, &options)?);
        count += 1;
        if batch.len() == batch_len {
            many.offer(py, pool, &batch)?;
            batch.clear();
        }
    }
    many.offer(py, pool, &batch)?;
    let flushed = offering(py, pool, || many.pipeline.flush());
    many.check(py)?;
    flushed?;
    Ok((many, count))
}

fn prepare<'py>(
    pool: &Pool,
    object: &Bound<'py, PyAny>,
    at: usize,
    options: &OfferOptions<'_>,
) -> PyResult<PreparedData<'py>> {
    let Ok((data, attributes)) = object.extract::<(Bound<'py, PyAny>, Bound<'py, PyAny>)>() else {
        let cause = format!("a pair (data, attributes) is expected, not {}", type_name(object));
        return Err(invalid(object.py(), &format!("object {at}"), cause));
    };
    PreparedData::new(pool, &data, Some(&attributes), None, options)
}

impl ManyOffers<'_> {
    fn offer(&mut self, py: Python<'_>, pool: &Pool, batch: &[PreparedData<'_>]) -> PyResult<()> {
        let lists = batch
            .iter()
            .map(|one| one.attributes.lists(py))
            .collect::<PyResult<Vec<_>>>()?;
        let mut ready = Vec::with_capacity(batch.len());
        for (one, lists) in batch.iter().zip(&lists) {
            let given = one.attributes.given(py, lists)?;
            let content = one.content(py, &given)?;
            ready.push((given, content));
        }
        let Self { pipeline, options, .. } = self;
        let sent = offering(py, pool, || {
            ready.into_iter().try_for_each(|(given, content)| {
                let given = given.into_iter();
                match content {
                    ReadyPayload::Bytes(bytes) | ReadyPayload::Filled(FilledPayload::Own(bytes)) => {
                        pipeline.offer_with(given, bytes, options.clone())
                    }
                    ReadyPayload::Filled(FilledPayload::Slot(slot)) => {
                        pipeline.offer_allocation_with(slot, given, options.clone())
                    }
                }
                .map(|_| ())
            })
        });
        self.check(py)?;
        sent
    }

    /// # Errors
    /// The first offer that failed, with its position in `index`.
    fn check(&self, py: Python<'_>) -> PyResult<()> {
        let failure = self
            .outcomes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .failure
            .take();
        let Some((number, error)) = failure else { return Ok(()) };
        let raised = raise(py, &error);
        raised.value(py).setattr("index", number)?;
        Err(raised)
    }
}
