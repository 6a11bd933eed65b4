//! The native part of `junctura.aio`: requests without waiting, and access to received data.
//!
//! Nothing here waits, and nothing is public: an event loop waits for the pool's descriptor, `_look` reads and wakes the tasks that
//! `poll` of a request or `_wake_when` has entered. An answer that is not taken is given back with its request.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use junctura::binding::{self, TaskPlace};
use junctura::{DemandOptions, EventKind, FollowOptions, Pending, WaitSource, WantedOptions, WithdrawOptions};
use junctura_cli::full_memory;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyDict, PyList, PyTuple};

use crate::conversion::data::{ArrayForm, PreparedData};
use crate::conversion::given::GivenAttributes;
use crate::conversion::options::{demand_options, offer_options, timeout as read_timeout};
use crate::conversion::target::PyTarget;
use crate::handles::allocation::PyAllocation;
use crate::handles::bundle::PyBundle;
use crate::handles::events::{PyEvent, PySubscription, read_kinds};
use crate::handles::follow::{FollowArguments, PyFollow, ShownItems};
use crate::handles::object::PyReceived;
use crate::handles::require::PyRequirement;
use crate::model::version::PyVersion;
use crate::pool::PyPool;
use crate::pool::board::PyBoard;
use crate::runtime::ending::EndingCall;
use crate::runtime::error::{OrRaise, closed};
use crate::runtime::patience::{self, WatchedCall};

/// A request whose answer may be pending.
trait PendingQuestion: Send {
    /// Returns the answer, if it has arrived; else the task is woken when it arrives.
    fn poll(&mut self, py: Python<'_>, waker: &Waker) -> PyResult<Option<Py<PyAny>>>;
}

/// A question, and what becomes of its answer in Python.
struct PyQuestion<T, S>(Pending<T>, S);

impl<T, S> PendingQuestion for PyQuestion<T, S>
where
    T: Send + 'static,
    S: FnMut(Python<'_>, junctura::Result<T>) -> PyResult<Py<PyAny>> + Send,
{
    fn poll(&mut self, py: Python<'_>, waker: &Waker) -> PyResult<Option<Py<PyAny>>> {
        let pending = Pin::new(&mut self.0);
        match py.detach(|| pending.poll(&mut Context::from_waker(waker))) {
            Poll::Pending => Ok(None),
            Poll::Ready(answer) => (self.1)(py, answer).map(Some),
        }
    }
}

/// A question of `junctura.aio`. Forgetting it gives it up.
#[pyclass(module = "junctura._native", name = "_Answer", frozen)]
pub(crate) struct PyAnswer(Mutex<Option<Box<dyn PendingQuestion>>>);

impl PyAnswer {
    /// The answer to `pending`, as `show` shows it.
    pub(crate) fn new<T: Send + 'static>(
        pending: Pending<T>,
        mut show: impl FnMut(Python<'_>, T) -> PyResult<Py<PyAny>> + Send + 'static,
    ) -> Self {
        Self::or(pending, move |py, answer| show(py, answer.or_raise(py)?))
    }

    /// The same, and what becomes of an error.
    fn or<T: Send + 'static>(
        pending: Pending<T>,
        show: impl FnMut(Python<'_>, junctura::Result<T>) -> PyResult<Py<PyAny>> + Send + 'static,
    ) -> Self {
        Self(Mutex::new(Some(Box::new(PyQuestion(pending, show)))))
    }

    /// A number.
    fn count(pending: Pending<u64>) -> Self {
        Self::new(pending, |py, count| count.into_py_any(py))
    }

    /// That something has ended.
    pub(crate) fn end(pending: Pending<()>) -> Self {
        Self::new(pending, |py, ()| Ok(py.None()))
    }

    fn lock(&self, py: Python<'_>) -> MutexGuard<'_, Option<Box<dyn PendingQuestion>>> {
        self.0.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl PyAnswer {
    /// Returns the answer in a tuple, if it has arrived; else None, and `wake` is called once when a new call may
    /// succeed.
    fn poll<'py>(&self, py: Python<'py>, wake: Py<PyAny>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let waker = Waker::from(Arc::new(PythonWaker(wake)));
        let mut asked = self.lock(py);
        let Some(question) = asked.as_mut() else {
            return Err(closed(py, "question", "it was answered, or given up"));
        };
        match question.poll(py, &waker) {
            Ok(None) => Ok(None),
            Ok(Some(answer)) => {
                *asked = None;
                PyTuple::new(py, [answer]).map(Some)
            }
            Err(error) => {
                *asked = None;
                Err(error)
            }
        }
    }

    /// Gives it up.
    fn close(&self, py: Python<'_>) {
        let asked = self.lock(py).take();
        py.detach(|| drop(asked));
    }
}

/// Calls a Python function in the thread that has read something.
struct PythonWaker(Py<PyAny>);

impl Wake for PythonWaker {
    fn wake(self: Arc<Self>) {
        // At the end of the interpreter no loop runs any more. A helper thread that is in Python then would abort the process.
        Python::try_attach(|py| {
            let _call = EndingCall::begin(py);
            if let Err(error) = self.0.call0(py) {
                error.write_unraisable(py, Some(self.0.bind(py)));
            }
        });
    }
}

/// The places of a task among those that wait on a pool.
#[pyclass(module = "junctura._native", name = "_Places", frozen)]
pub(crate) struct PyTaskPlaces(Mutex<Vec<TaskPlace>>);

#[pymethods]
impl PyTaskPlaces {
    /// Leaves them: the task does not wait any more.
    fn leave(&self, py: Python<'_>) {
        let mut places = self.0.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        places.clear();
    }
}

#[pymethods]
impl PyPool {
    /// Calls `wake` once for each of these when something has been read for it, in the thread that reads.
    #[pyo3(signature = (wake, *on))]
    fn _wake_when(&self, wake: Py<PyAny>, on: &Bound<'_, PyTuple>) -> PyResult<PyTaskPlaces> {
        let py = on.py();
        let waker = Waker::from(Arc::new(PythonWaker(wake)));
        let places = on.iter().map(|one| {
            let awaiting = crate::pool::wait::awaiting(&one)?;
            binding::wake_when(&self.inner, &awaiting, &waker).or_raise(py)
        });
        places.collect::<PyResult<_>>().map(Mutex::new).map(PyTaskPlaces)
    }

    /// Sends queued data and reads received data; returns whether the socket must become writable first.
    fn _look(&self, py: Python<'_>) -> PyResult<bool> {
        py.detach(|| binding::look(&self.inner)).or_raise(py)
    }

    /// Which of these have something that was read.
    fn _ready(&self, py: Python<'_>, on: &Bound<'_, PyList>) -> PyResult<Vec<usize>> {
        let on: Vec<WaitSource> = on
            .iter()
            .map(|one| crate::pool::wait::awaiting(&one))
            .collect::<PyResult<_>>()?;
        binding::ready(&self.inner, &on).or_raise(py)
    }

    /// Waits until queued data are sent.
    fn _flush(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.inner.flush()).or_raise(py)
    }

    /// Payloads of at most so many bytes travel inside the message.
    #[getter]
    fn _inline_max(&self, py: Python<'_>) -> PyResult<u64> {
        let rules = self.inner.payload_rules().or_raise(py)?;
        Ok(rules.inline_bytes_max)
    }

    /// `call`: the method, of which an error names the nearest option.
    #[pyo3(signature = (target, timeout, schema, requirement, incomplete, key, call="demand"))]
    #[allow(clippy::too_many_arguments, reason = "arguments of Python")]
    fn _begin_demand<'py>(
        &self,
        py: Python<'py>,
        target: Option<&Bound<'py, PyAny>>,
        timeout: Option<f64>,
        schema: Option<&str>,
        requirement: Option<&str>,
        incomplete: bool,
        key: Option<&Bound<'py, PyDict>>,
        call: &str,
    ) -> PyResult<PyAnswer> {
        let options = demand_options(py, timeout, requirement, incomplete)?;
        let call = match call {
            "demand_array" => "Pool.demand_array",
            "demand_chunks" => "Pool.demand_chunks",
            _ => "Pool.demand",
        };
        PyTarget::read(py, call, target, key, schema)?
            .ask(py, |target| self.inner.begin_demand(target, options))
            .map(|pending| object_of(pending, target))
    }

    #[pyo3(signature = (target, timeout, force, forget, schema, key))]
    #[allow(clippy::too_many_arguments, reason = "arguments of Python")]
    fn _begin_withdraw<'py>(
        &self,
        py: Python<'py>,
        target: Option<&Bound<'py, PyAny>>,
        timeout: Option<f64>,
        force: bool,
        forget: bool,
        schema: Option<&str>,
        key: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<PyAnswer> {
        let options = WithdrawOptions {
            timeout: read_timeout(py, timeout)?,
            force,
            forget,
        };
        PyTarget::read(py, "Pool.withdraw", target, key, schema)?
            .ask(py, |target| self.inner.begin_withdraw(target, options))
            .map(PyAnswer::count)
    }

    fn _begin_withdraw_all(
        &self,
        py: Python<'_>,
        selector: &str,
        timeout: Option<f64>,
        force: bool,
        forget: bool,
    ) -> PyResult<PyAnswer> {
        let options = WithdrawOptions {
            timeout: read_timeout(py, timeout)?,
            force,
            forget,
        };
        let begun = py.detach(|| self.inner.begin_withdraw_all(selector, options));
        begun.or_raise(py).map(|pending| {
            let text = selector.to_owned();
            PyAnswer::or(pending, move |py, count| {
                count.or_raise_about(py, &text)?.into_py_any(py)
            })
        })
    }

    fn _begin_retract(&self, py: Python<'_>, name: &str) -> PyResult<PyAnswer> {
        py.detach(|| self.inner.begin_retract(name))
            .or_raise(py)
            .map(PyAnswer::count)
    }

    #[pyo3(signature = (attributes, schema, keywords, declines=false))]
    fn _begin_wanted<'py>(
        &self,
        py: Python<'py>,
        attributes: Option<&Bound<'py, PyAny>>,
        schema: Option<&str>,
        keywords: Option<&Bound<'py, PyDict>>,
        declines: bool,
    ) -> PyResult<PyAnswer> {
        let attributes = GivenAttributes::read(attributes, keywords)?;
        let options = WantedOptions { schema, declines };
        let asked = attributes.ask(py, |given| self.inner.begin_wanted(given.iter().copied(), options));
        asked.map(PyAnswer::count)
    }

    fn _begin_stat(&self, py: Python<'_>) -> PyResult<PyAnswer> {
        let pending = py.detach(|| self.inner.begin_stat()).or_raise(py)?;
        Ok(PyAnswer::new(pending, |py, text| {
            Ok(py.import("json")?.call_method1("loads", (text,))?.unbind())
        }))
    }

    fn _begin_board(&self, py: Python<'_>) -> PyResult<PyAnswer> {
        let pending = py.detach(|| self.inner.begin_board()).or_raise(py)?;
        Ok(PyAnswer::new(pending, |py, board| {
            Ok(Py::new(py, PyBoard(board))?.into_any())
        }))
    }

    fn _begin_sync(&self, py: Python<'_>) -> PyResult<PyAnswer> {
        let pending = py.detach(|| self.inner.begin_sync()).or_raise(py)?;
        Ok(PyAnswer::new(pending, |py, ()| Ok(py.None())))
    }

    fn _begin_stop(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<PyAnswer> {
        let timeout = read_timeout(py, timeout)?;
        py.detach(|| self.inner.begin_stop(timeout))
            .or_raise(py)
            .map(PyAnswer::end)
    }

    /// Memory, for an array of this type and shape or for bytes.
    #[pyo3(signature = (nbytes, dtype, shape, bundle))]
    fn _begin_allocate(
        &self,
        py: Python<'_>,
        nbytes: usize,
        dtype: Option<String>,
        shape: Option<Vec<usize>>,
        bundle: Option<&Bound<'_, PyBundle>>,
    ) -> PyResult<PyAnswer> {
        let pending = match bundle {
            Some(bundle) => bundle.get().get(py)?.begin_allocate(nbytes),
            None => self.inner.begin_allocate(nbytes),
        };
        let mut form = dtype.zip(shape).map(|(dtype, shape)| ArrayForm {
            dtype: dtype.into(),
            shape,
        });
        let pool = self.inner.clone();
        Ok(PyAnswer::new(pending.or_raise(py)?, move |py, allocation| {
            PyAllocation::of(&pool, allocation, form.take()).into_py_any(py)
        }))
    }

    /// Offers an allocation, or a payload that travels inside the message.
    #[pyo3(signature = (data, attributes, schema, retention, if_wanted, durability, keywords, bundle))]
    #[allow(clippy::too_many_arguments, reason = "arguments of Python")]
    fn _begin_offer<'py>(
        &self,
        py: Python<'py>,
        data: &Bound<'py, PyAny>,
        attributes: Option<&Bound<'py, PyAny>>,
        schema: Option<&str>,
        retention: Option<&Bound<'py, PyAny>>,
        if_wanted: bool,
        durability: Option<&str>,
        keywords: Option<&Bound<'py, PyDict>>,
        bundle: Option<&Bound<'py, PyBundle>>,
    ) -> PyResult<PyAnswer> {
        let options = offer_options(schema, retention, if_wanted, durability)?;
        let bundle = bundle.map(|bundle| bundle.get().get(py)).transpose()?;
        let prepared = PreparedData::new(&self.inner, data, attributes, keywords, &options)?;
        let begun = prepared.begin(py, &self.inner, bundle.as_deref(), options)?;
        Ok(match begun {
            BegunOffer::Offered(pending) => PyAnswer::or(pending, |py, offered| match offered {
                Err(error) if error.code() == junctura::Code::NotWanted => Ok(py.None()),
                other => PyVersion(other.or_raise(py)?).into_py_any(py),
            }),
            BegunOffer::Staged(pending) => PyAnswer::new(pending, |py, staged| {
                crate::handles::bundle::PyStaged(staged).into_py_any(py)
            }),
        })
    }

    #[pyo3(signature = (selector, kinds))]
    fn _begin_subscribe(&self, py: Python<'_>, selector: &str, kinds: Option<Vec<String>>) -> PyResult<PyAnswer> {
        let kinds: Vec<EventKind> = read_kinds(py, kinds)?;
        let pending = py
            .detach(|| self.inner.begin_subscribe(selector, &kinds))
            .or_raise(py)?;
        let text = selector.to_owned();
        Ok(PyAnswer::or(pending, move |py, subscription| {
            PySubscription::of(subscription.or_raise_about(py, &text)?).into_py_any(py)
        }))
    }

    #[pyo3(signature = (selector, window, order_by, cursor, only_new, until_live, gaps, live, group, requirement, versions, time_to_live))]
    #[allow(
        clippy::too_many_arguments,
        clippy::fn_params_excessive_bools,
        reason = "arguments of Python"
    )]
    fn _begin_follow(
        &self,
        py: Python<'_>,
        selector: Option<&str>,
        window: Option<u32>,
        order_by: Option<String>,
        cursor: Option<String>,
        only_new: bool,
        until_live: bool,
        gaps: &str,
        live: &str,
        group: Option<String>,
        requirement: Option<String>,
        versions: &str,
        time_to_live: Option<f64>,
    ) -> PyResult<PyAnswer> {
        let (group, join) = crate::pool::reading::group_of(py, selector, group, versions, time_to_live)?;
        let options = FollowOptions {
            window,
            order_by,
            cursor,
            only_new,
            until_live,
            requirement,
            group,
            join,
        };
        let selector = selector.unwrap_or_default();
        let (shown, options) = FollowArguments { options, gaps, live }.shown(py)?;
        let begun = py.detach(|| self.inner.begin_follow(selector, options));
        Ok(follow_of(begun.or_raise_about(py, selector)?, shown, selector))
    }

    #[pyo3(signature = (selector, name, time_to_live, versions, group, on_full, quota, stuck_after))]
    #[allow(clippy::too_many_arguments, reason = "arguments of Python")]
    fn _begin_require(
        &self,
        py: Python<'_>,
        selector: &str,
        name: Option<String>,
        time_to_live: Option<f64>,
        versions: &str,
        group: bool,
        on_full: &str,
        quota: Option<&Bound<'_, PyAny>>,
        stuck_after: Option<f64>,
    ) -> PyResult<PyAnswer> {
        let options = crate::pool::reading::require_terms(
            py,
            (name, time_to_live, versions),
            group,
            (on_full, quota),
            stuck_after,
        )?;
        let pending = py.detach(|| self.inner.begin_require(selector, options)).or_raise(py)?;
        let text = selector.to_owned();
        Ok(PyAnswer::or(pending, move |py, requirement| {
            PyRequirement::new(requirement.or_raise_about(py, &text)?).into_py_any(py)
        }))
    }

    #[pyo3(signature = (path, attributes, members, orphan_timeout, schema, keywords))]
    #[allow(clippy::too_many_arguments, reason = "arguments of Python")]
    fn _begin_bundle(
        &self,
        py: Python<'_>,
        path: Option<String>,
        attributes: Option<&Bound<'_, PyAny>>,
        members: Option<u64>,
        orphan_timeout: Option<f64>,
        schema: Option<&str>,
        keywords: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyAnswer> {
        let attributes = self.bundle_attributes(py, attributes, schema, keywords)?;
        let options =
            crate::pool::bundles::bundle_options(py, path.as_deref(), &attributes, members, orphan_timeout, schema)?;
        let begun = attributes.ask(py, |given| match path.as_deref() {
            None => self.inner.begin_bundle(),
            Some(path) => self.inner.begin_open_bundle(path, given.iter().copied(), options),
        });
        let (pool, counts) = (self.inner.clone(), members.is_some());
        Ok(PyAnswer::new(begun?, move |py, bundle| {
            PyBundle::of(&pool, path.clone(), counts, bundle).into_py_any(py)
        }))
    }
}

/// An offer on its way.
pub(crate) enum BegunOffer {
    Offered(Pending<junctura::Version>),
    Staged(Pending<junctura::Staged>),
}

fn object_of(pending: Pending<junctura::Object>, target: Option<&Bound<'_, PyAny>>) -> PyAnswer {
    let text = target.and_then(|target| target.extract::<String>().ok());
    PyAnswer::or(pending, move |py, object| {
        let object = object.or_raise_about(py, text.as_deref().unwrap_or_default())?;
        PyReceived::new(object, None).into_py_any(py)
    })
}

fn follow_of(pending: Pending<junctura::Follow>, shown: ShownItems, selector: &str) -> PyAnswer {
    let text = selector.to_owned();
    PyAnswer::or(pending, move |py, follow| {
        PyFollow::of(follow.or_raise_about(py, &text)?, shown).into_py_any(py)
    })
}

#[pymethods]
impl PyFollow {
    /// The next item in a tuple, if it has been read; else None. The item is None when the follow has ended.
    fn _take<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        match self.taken(py)? {
            Some(item) => PyTuple::new(py, [item]).map(Some),
            None => Ok(None),
        }
    }

    /// Ends it without waiting.
    fn _begin_stop(&self, py: Python<'_>) -> PyResult<Option<PyAnswer>> {
        let Some(mut follow) = self.taken_over(py) else {
            return Ok(None);
        };
        py.detach(|| follow.begin_stop())
            .or_raise(py)
            .map(PyAnswer::end)
            .map(Some)
    }
}

#[pymethods]
impl PySubscription {
    /// The next event in a tuple, if it has been read; else None. The event is None when the subscription has ended.
    fn _take(&self, py: Python<'_>) -> PyResult<Option<(Option<PyEvent>,)>> {
        self.with(py, |events| {
            let Some(events) = events else { return Ok(Some((None,))) };
            Ok(match binding::take_event(events).or_raise(py)? {
                Some(event) => Some((Some(PyEvent::new(py, event)?),)),
                None if events.is_over() => Some((None,)),
                None => None,
            })
        })
    }

    /// Ends it without waiting.
    fn _begin_stop(&self, py: Python<'_>) -> PyResult<Option<PyAnswer>> {
        let Some(mut subscription) = self.take(py) else {
            return Ok(None);
        };
        py.detach(|| subscription.begin_stop())
            .or_raise(py)
            .map(PyAnswer::end)
            .map(Some)
    }
}

#[pymethods]
impl PyRequirement {
    #[pyo3(signature = (window, until_live, gaps, live))]
    fn _begin_follow(
        &self,
        py: Python<'_>,
        window: Option<u32>,
        until_live: bool,
        gaps: &str,
        live: &str,
    ) -> PyResult<PyAnswer> {
        let options = FollowOptions {
            window,
            until_live,
            ..FollowOptions::default()
        };
        let (shown, options) = FollowArguments { options, gaps, live }.shown(py)?;
        let requirement = self.get(py)?;
        let begun = py.detach(|| requirement.begin_follow(options)).or_raise(py)?;
        Ok(follow_of(begun, shown, requirement.selector()))
    }

    #[pyo3(signature = (target, timeout, schema, key))]
    fn _begin_demand<'py>(
        &self,
        py: Python<'py>,
        target: Option<&Bound<'py, PyAny>>,
        timeout: Option<f64>,
        schema: Option<&str>,
        key: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<PyAnswer> {
        let requirement = self.get(py)?;
        let options = DemandOptions {
            timeout: read_timeout(py, timeout)?,
            ..DemandOptions::default()
        };
        PyTarget::read(py, "Requirement.demand", target, key, schema)?
            .ask(py, |target| requirement.begin_demand(target, options))
            .map(|pending| object_of(pending, target))
    }

    /// Ends this client's use without waiting.
    fn _begin_stop(&self, py: Python<'_>) -> PyResult<Option<PyAnswer>> {
        let Some(mut requirement) = self.take(py).and_then(std::sync::Arc::into_inner) else {
            return Ok(None);
        };
        py.detach(|| requirement.begin_stop())
            .or_raise(py)
            .map(PyAnswer::end)
            .map(Some)
    }
}

#[pymethods]
impl PyBundle {
    /// Returns the result, if it has been received.
    fn _take_completed(&self, py: Python<'_>) -> PyResult<Option<crate::handles::bundle::PyCompleted>> {
        if let Some(known) = self.known(py) {
            return Ok(Some(known));
        }
        let bundle = self.get(py)?;
        let taken = py.detach(|| binding::take_completed(&bundle)).or_raise(py)?;
        Ok(taken.map(|completed| self.noted(py, completed)))
    }

    fn _begin_seal(slf: &Bound<'_, Self>) -> PyResult<PyAnswer> {
        let (py, this) = (slf.py(), slf.clone().unbind());
        let bundle = slf.get().get(py)?;
        let pending = py.detach(|| bundle.begin_seal()).or_raise(py)?;
        Ok(PyAnswer::new(pending, move |py, completed| {
            this.get().noted(py, completed).into_py_any(py)
        }))
    }

    fn _begin_abort(&self, py: Python<'_>) -> PyResult<PyAnswer> {
        let bundle = self.get(py)?;
        let pending = py.detach(|| bundle.begin_abort()).or_raise(py)?;
        Ok(PyAnswer::count(pending))
    }

    /// Leaves it without waiting.
    fn _begin_leave(&self, py: Python<'_>) -> PyResult<Option<PyAnswer>> {
        let Some(bundle) = self.take(py) else { return Ok(None) };
        py.detach(|| bundle.begin_leave())
            .or_raise(py)
            .map(PyAnswer::end)
            .map(Some)
    }
}

#[pymethods]
impl PyPool {
    /// Reports what offers wait for, or withdrawals.
    fn _report_wait(&self, py: Python<'_>, withdraws: bool) -> PyResult<()> {
        let call = if withdraws {
            WatchedCall::Withdrawal
        } else {
            WatchedCall::Offer
        };
        patience::report(py, &self.inner, call)
    }

    /// Returns the causes of a full pool, and whether memory becomes free without a withdrawal.
    fn _full_memory(&self, py: Python<'_>) -> Option<(String, bool)> {
        let memory = py.detach(|| full_memory(&self.inner)).ok()??;
        Some((memory.causes, memory.frees_itself))
    }
}

impl PreparedData<'_> {
    /// Offers it, or stages it in a bundle, without waiting.
    fn begin(
        self,
        py: Python<'_>,
        pool: &junctura::Pool,
        bundle: Option<&junctura::Bundle>,
        options: junctura::OfferOptions<'_>,
    ) -> PyResult<BegunOffer> {
        self.allocated(py, |given, slot, bytes| {
            // A payload too large for a message is in memory of its own: another thread makes the copy.
            match (slot, bundle) {
                (Some(slot), Some(bundle)) => bundle
                    .begin_offer_allocation(slot, given, options)
                    .map(BegunOffer::Staged),
                (Some(slot), None) => slot.begin_offer(given, options).map(BegunOffer::Offered),
                (None, Some(bundle)) => bundle.begin_offer(given, bytes, options).map(BegunOffer::Staged),
                (None, None) => pool.begin_offer(given, bytes, options).map(BegunOffer::Offered),
            }
        })
    }
}
