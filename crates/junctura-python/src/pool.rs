//! The pool as Python users hold it.

use std::os::fd::AsRawFd;
use std::path::PathBuf;

use junctura::WithdrawOptions;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use crate::allocation::PyAllocation;
use crate::bundle::current;
use crate::data::{ArrayForm, PreparedData, arrays};
use crate::error::{OrRaise, invalid};
use crate::events::PySubscription;
use crate::interrupt;
use crate::object::PyReceived;
use crate::offer_many::offer_many;
use crate::options::{command_words, demand_options, offer_options, own_name, settle, timeout as read_timeout};
use crate::pipeline::PyPipeline;
use crate::schema::PySchema;
use crate::store;
use crate::target::PyTarget;
use crate::version::PyVersion;
use crate::wait::{PendingDemand, wait};

/// The shared space in which objects are offered and found.
///
/// Threads may share it. A forked child connects anew when it first uses it; a pickled one (as `multiprocessing` does for
/// children that it spawns) connects anew where it is read. It is left at the end of its `with` block.
///
/// Parameters
/// ----------
/// url : str, optional
///     Where the pool is: `unix:NAME` (of this user), `unix:/path/to/socket`, `tcp://HOST:PORT`, or what `Pool.url` says
///     elsewhere. Without it the pool is private to this process and its children, and ends with it.
/// name : str, optional
///     What this client calls itself; others see it in events and counters. By default what `JUNCTURA_NAME` says, else the
///     name of the script.
/// schema : str, path, Schema or a list of these, optional
///     The name of a built-in schema, the text of a schema file, its path, or a `Schema`. The first one is meant where none
///     is named. A pool that is there already must agree with them.
/// start : bool
///     Whether to start a server where none runs at the URL. It ends itself when it is idle.
/// budget : int or str, optional
///     Memory for payloads, in bytes or as `"4GiB"`, of a pool that is made here.
/// spill : path, optional
///     A directory on a local disk for payloads that memory has no room for, in a pool that is made here; it is made if it is
///     not there. Nothing is seen of them there, and nothing is left when the pool ends, however it ends. Without one, offers
///     wait when memory is full.
/// spill_size : int or str, optional
///     How much may go there; four times the memory unless told.
/// checked : bool
///     Whether payloads carry checksums, verified when they are received, in a pool that is made here.
/// inline_max : int, optional
///     Payloads of at most so many bytes travel inside the message, in a pool that is made here.
/// orphan_timeout : float, optional
///     Seconds that a bundle which is not complete stays when no producer has it open, in a pool that is made here.
/// until_gone : list of str, optional
///     Names of clients: when all of them have come and gone, by whatever end, the pool that is made here drains, as by
///     `stop`, and ends.
/// transports : str, optional
///     Which ways to a pool at `tcp://...` may be taken, in their order: `"shm,tcp"` unless told here or by
///     `JUNCTURA_TRANSPORTS`. `route` says what was chosen and why.
/// token_file, ca_file : path, optional
///     What is shown to, and who is believed of, a pool at `tcp://...`; by default the files that `JUNCTURA_TOKEN_FILE` and
///     `JUNCTURA_CA_FILE` name, or, beyond loopback, `token` and `ca.pem` in `~/.config/junctura`. Without `ca_file` a server
///     on loopback must be a process of this user; `ca_file="none"` accepts servers of all users of this host.
/// streams : int, optional
///     How many streams the connection to a pool at `tcp://...` has, from 1 to 8, by default `JUNCTURA_STREAMS` or one: large
///     payloads go over all of them at once.
/// store : path or str, optional
///     The store behind the pool, by its path or URL: what was archived there and has left the pool is found by `demand`, `list`
///     and `follow` all the same, in one order with what the pool has. This process reads it itself; for
///     `junctura.aio`, threads do. An offer of a key that the store has is `AlreadyExists` where its schema rejects another.
/// offer_timeout : float, optional
///     Seconds that an offer waits for memory before it fails with `PoolFull`; None waits for ever.
///
/// Raises
/// ------
/// Unavailable
///     No server is there.
/// SchemaMismatch
///     The pool has another schema of the same name; the first difference is named.
/// InvalidArgument
///     What is wrong with the URL, a schema or another argument.
///
/// Examples
/// --------
/// >>> with junctura.Pool(schema="free") as pool:
/// ...     version = pool.offer(numpy.arange(3), name="three numbers")
/// ...     pool.demand(name="three numbers").array()
/// array([0, 1, 2])
#[pyclass(module = "junctura", name = "Pool", frozen, weakref)]
pub(crate) struct PyPool {
    pub(crate) inner: junctura::Pool,
    name: Option<String>,
    schema: Option<Py<PyAny>>,
    remote: RemoteOptions,
    pub(crate) store: Option<store::StorePlace>,
    offer_timeout: Option<f64>,
}

/// What was said of the way to a pool behind a gate.
struct RemoteOptions {
    transports: Option<String>,
    token_file: Option<PathBuf>,
    ca_file: Option<PathBuf>,
    streams: Option<usize>,
}

impl RemoteOptions {
    fn settle(&self, mut builder: junctura::PoolBuilder) -> junctura::PoolBuilder {
        if let Some(ways) = &self.transports {
            builder = builder.transports(ways);
        }
        if let Some(path) = &self.token_file {
            builder = builder.token_file(path);
        }
        if let Some(path) = &self.ca_file {
            builder = builder.ca_file(path);
        }
        if let Some(streams) = self.streams {
            builder = builder.streams(streams);
        }
        builder
    }
}

#[pymethods]
impl PyPool {
    #[new]
    #[pyo3(signature = (url=None, *, name=None, schema=None, start=false, budget=None, spill=None, spill_size=None, checked=false, inline_max=None, orphan_timeout=None, until_gone=Vec::new(), transports=None, token_file=None, ca_file=None, streams=None, store=None, offer_timeout=60.0))]
    #[allow(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn new(
        py: Python<'_>,
        url: Option<String>,
        name: Option<String>,
        schema: Option<Bound<'_, PyAny>>,
        start: bool,
        budget: Option<&Bound<'_, PyAny>>,
        spill: Option<PathBuf>,
        spill_size: Option<&Bound<'_, PyAny>>,
        checked: bool,
        inline_max: Option<&Bound<'_, PyAny>>,
        orphan_timeout: Option<f64>,
        until_gone: Vec<String>,
        transports: Option<String>,
        token_file: Option<PathBuf>,
        ca_file: Option<PathBuf>,
        streams: Option<usize>,
        store: Option<Bound<'_, PyAny>>,
        offer_timeout: Option<f64>,
    ) -> PyResult<Self> {
        let mut builder = junctura::Pool::builder()
            .start(start)
            .checked(checked)
            .until_gone(until_gone)
            .offer_timeout(read_timeout(py, offer_timeout)?)
            .on_interrupt(interrupt::check)
            .program(command_words(py)?)
            .name(name.clone().map_or_else(|| own_name(py), Ok)?);
        if let Some(url) = url {
            builder = builder.url(url);
        }
        if let Some(timeout) = read_timeout(py, orphan_timeout)? {
            builder = builder.orphan_timeout(timeout);
        }
        let store = store.as_ref().map(store::StorePlace::of).transpose()?;
        if let Some(store) = &store {
            builder = builder.store(store.text().or_raise(py)?);
        }
        let remote = RemoteOptions {
            transports,
            token_file,
            ca_file,
            streams,
        };
        let builder = remote.settle(builder);
        let builder = settle(builder, schema.as_ref(), budget, (spill, spill_size), inline_max)?;
        let inner = py.detach(|| builder.open()).or_raise(py)?;
        Ok(Self {
            inner,
            name,
            schema: schema.map(Bound::unbind),
            remote,
            store,
            offer_timeout,
        })
    }

    /// Where other processes, children among them, find this pool.
    #[getter]
    fn url(&self) -> &str {
        self.inner.url()
    }

    /// By which way the server is reached, and why: `shm` (memory that both map), `tcp`, or `tcp, TLS`; and how many streams, where
    /// it is more than one.
    #[getter]
    fn route(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| self.inner.route()).or_raise(py)
    }

    /// The life of the server: the first half of every version that it gives.
    #[getter]
    fn incarnation(&self, py: Python<'_>) -> PyResult<u64> {
        py.detach(|| self.inner.incarnation()).or_raise(py)
    }

    /// The number that the server gave this client.
    #[getter]
    fn client(&self, py: Python<'_>) -> PyResult<u32> {
        py.detach(|| self.inner.client()).or_raise(py)
    }

    /// The pool's schemas; the first one is its default.
    #[getter]
    fn schemas(&self, py: Python<'_>) -> PyResult<Vec<PySchema>> {
        let schemas = py.detach(|| self.inner.schemas()).or_raise(py)?;
        Ok(schemas.into_iter().map(PySchema).collect())
    }

    /// The schema of this name, or the one that is meant where none is named.
    #[pyo3(signature = (name=None))]
    fn schema(&self, py: Python<'_>, name: Option<&str>) -> PyResult<PySchema> {
        py.detach(|| self.inner.schema(name)).or_raise(py).map(PySchema)
    }

    /// The server's counters: one round trip.
    ///
    /// Returns
    /// -------
    /// dict
    fn stat<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let text = py.detach(|| self.inner.stat()).or_raise(py)?;
        py.import("json")?.call_method1("loads", (text,))
    }

    /// Stops the server: it takes nothing new from now on (offers, allocations, requirements: `Closed`; new clients:
    /// `Unavailable`), and ends when everything that requirements are owed was received. Returns when it has ended. What only
    /// its memory held is gone then; objects that are held stay readable.
    ///
    /// Parameters
    /// ----------
    /// timeout : float, optional
    ///     Seconds after which it ends anyway; 0 ends it at once. None waits as long as it takes: for ever, where this very
    ///     client requires something and does not receive it.
    ///
    /// Raises
    /// ------
    /// Timeout
    ///     Something was left, and who was owed it; the server has ended all the same.
    ///
    /// Examples
    /// --------
    /// >>> with junctura.Pool(schema="free") as pool:
    /// ...     requirement = pool.require("name=a")
    /// ...     version = pool.offer(b"owed", name="a")
    /// ...     try:
    /// ...         pool.stop(timeout=0)
    /// ...     except junctura.Timeout as error:
    /// ...         "left: 1" in str(error)
    /// True
    #[pyo3(signature = (timeout=None))]
    fn stop(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<()> {
        let timeout = read_timeout(py, timeout)?;
        py.detach(|| self.inner.stop(timeout)).or_raise(py)
    }

    /// Returns when everything that was said through this pool before is in effect, whatever becomes of this process
    /// afterwards: one round trip.
    ///
    /// What was released counts as released, offers of a pipeline are visible, staged or refused. A release goes without an
    /// answer: a process that is killed right after one, or whose network is cut then, may have released nothing.
    ///
    /// Parameters
    /// ----------
    /// timeout : float, optional
    ///     Seconds to wait; 0 does not wait. None waits as long as it takes: offers that wait for memory are waited for.
    ///
    /// Raises
    /// ------
    /// Timeout
    ///     It may be in effect by now, or later.
    ///
    /// Examples
    /// --------
    /// >>> with junctura.Pool(schema="free") as pool:
    /// ...     _ = pool.offer(b"...", name="work")
    /// ...     with pool.demand("name=work", timeout=10) as obj:
    /// ...         pass
    /// ...     pool.sync()
    #[pyo3(signature = (timeout=None))]
    fn sync(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<()> {
        let timeout = read_timeout(py, timeout)?;
        py.detach(|| self.inner.sync(timeout)).or_raise(py)
    }

    /// Leaves the pool: every call fails with `Closed` from now on. Objects that are held stay readable.
    fn close(&self, py: Python<'_>) {
        py.detach(|| self.inner.close());
    }

    /// Offers an object and returns when it is visible to all: one round trip, and one copy of the payload.
    ///
    /// It waits for memory where the pool is full. `allocate` saves the copy, `offer_many` and `pipeline` the round trips. In
    /// the block of a bundle it goes there: then it returns when it is staged, and the version's sequence number is 0.
    ///
    /// Parameters
    /// ----------
    /// data : bytes, numpy.ndarray or another buffer, what speaks DLPack, xarray.DataArray, Allocation
    ///     The payload. An array of xarray's brings its name, dimensions (`dims`), units and scalar coordinates as attributes too, as
    ///     far as the schema takes them and they are not given; coordinates that are arrays are not kept. Of arrays, type and shape are kept too, where the schema has the attributes `dtype` and `shape` (the
    ///     built-in ones have), so that `Object.array` gives back the same array.
    /// attributes : dict, optional
    ///     What it is: texts, numbers, bools, dates, times, lengths of time, lists. None means not given.
    /// schema : str, optional
    ///     The schema that describes it, where it is not the pool's default.
    /// retention : "withdrawn", "archived", a time as text or datetime.timedelta, Released, or "released_by:NAME,...", optional
    ///     Until when it stays: until somebody withdraws it, until an archiver has it in its store ("released_by:archive" in another
    ///     word: `archive` is what archivers call their requirement), for a time such as "10min" or "1h30m" (at most 49 days) from when
    ///     it is visible, until so many consumers have released it, or until the requirements and groups of these names have
    ///     had it, those included that are still to come. By default as its schema says.
    /// if_wanted : bool
    ///     Only if somebody wants it: else nothing is moved, the result is None, and who demands its key later is told
    ///     NotWanted. Not for a bundle, of which either all is offered or nothing.
    /// durability : "memory" or "durable", optional
    ///     What has happened when it returns: with "durable" an archiver of the pool (`junctura archiver`) has put the object into
    ///     a store. It is visible at once in any case. By default as its schema says.
    /// **keywords
    ///     More attributes. An underscore at the end is left out: `class_="od"`. Attributes that are called like one of the
    ///     parameters above go into the dictionary.
    ///
    /// Returns
    /// -------
    /// Version
    ///
    /// Raises
    /// ------
    /// SchemaMismatch, TypeMismatch, TooLarge
    ///     For attributes that the schema does not take, or a payload that is too large.
    /// AlreadyExists
    ///     The key is taken, and the schema says that it may be used once.
    /// PoolFull
    ///     There was no memory in time; it says what fills the pool.
    /// Io, Timeout
    ///     It was to be durable and is visible, but nobody has archived it, or not in the pool's time for offers.
    ///
    /// Examples
    /// --------
    /// >>> with junctura.Pool(schema="mars") as pool:
    /// ...     version = pool.offer(b"GRIB", {"class": "od", "stream": "oper", "type": "fc", "levtype": "sfc"},
    /// ...                          date="2026-11-20", time="12:00", step=6, param="2t")
    /// ...     pool.demand("param=2t").key
    /// '{class=od,expver=0001,stream=oper,date=20261120,time=1200}{type=fc,levtype=sfc}{step=6,param=2t}'
    ///
    /// An object that goes by itself, which whoever wants to know of it is told:
    ///
    /// >>> with junctura.Pool(schema="free") as pool:
    /// ...     events = pool.subscribe(kinds=["expired"])
    /// ...     version = pool.offer(b"soon gone", name="a", retention="20ms")
    /// ...     next(events).kind
    /// 'expired'
    #[pyo3(signature = (data, attributes=None, /, *, schema=None, retention=None, if_wanted=false, durability=None, **keywords))]
    #[allow(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn offer<'py>(
        &self,
        py: Python<'py>,
        data: &Bound<'py, PyAny>,
        attributes: Option<&Bound<'py, PyAny>>,
        schema: Option<&str>,
        retention: Option<&Bound<'py, PyAny>>,
        if_wanted: bool,
        durability: Option<&str>,
        keywords: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Option<PyVersion>> {
        let options = offer_options(schema, retention, if_wanted, durability)?;
        PreparedData::new(&self.inner, data, attributes, keywords, &options)?.offer(py, &self.inner, options)
    }

    /// Offers many objects and returns when all are visible, or archived where they are to be durable: a round trip for about
    /// `window` of them.
    ///
    /// Parameters
    /// ----------
    /// objects : iterable of (data, attributes)
    ///     Each as for `offer`. A list or tuple is quickest; of anything else each object is offered as it comes.
    /// window : int
    ///     How many offers may be unacknowledged.
    /// schema, retention, durability : optional
    ///     As for `offer`, for all of them.
    ///
    /// Returns
    /// -------
    /// list of Version
    ///
    /// Raises
    /// ------
    /// Error
    ///     That of the first object that failed; its `index` says which. Those before it are visible, later ones may be.
    ///
    /// Examples
    /// --------
    /// >>> with junctura.Pool(schema="free") as pool:
    /// ...     versions = pool.offer_many([(b"1", {"name": "a"}), (b"2", {"name": "b"})])
    /// ...     [entry["name"] for entry in pool.list()]
    /// ['a', 'b']
    #[pyo3(signature = (objects, *, window=1024, schema=None, retention=None, durability=None))]
    fn offer_many(
        &self,
        py: Python<'_>,
        objects: &Bound<'_, PyAny>,
        window: usize,
        schema: Option<&str>,
        retention: Option<&Bound<'_, PyAny>>,
        durability: Option<&str>,
    ) -> PyResult<Vec<PyVersion>> {
        let bundle = current(py, &self.inner);
        offer_many(
            py,
            &self.inner,
            bundle.as_deref(),
            objects,
            offer_options(schema, retention, false, durability)?,
            window,
        )
    }

    /// Memory in the pool, to be filled and offered without a copy. Waits for memory where the pool is full.
    ///
    /// Parameters
    /// ----------
    /// nbytes : int, optional
    ///     How many bytes; or instead of it
    /// shape : int or tuple of int, optional
    ///     The shape of an array,
    /// dtype : optional
    ///     and the type of its elements, by default `float64`.
    ///
    /// Returns
    /// -------
    /// Allocation
    ///
    /// Raises
    /// ------
    /// TooLarge
    ///     For more than the pool takes.
    /// PoolFull
    ///     There was no memory in time; it says what fills the pool.
    #[pyo3(signature = (nbytes=None, /, *, shape=None, dtype=None))]
    fn allocate(
        &self,
        py: Python<'_>,
        nbytes: Option<usize>,
        shape: Option<&Bound<'_, PyAny>>,
        dtype: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyAllocation> {
        match (nbytes, shape) {
            (Some(nbytes), None) if dtype.is_none() => PyAllocation::new(py, &self.inner, nbytes, None),
            (None, Some(shape)) => {
                let (nbytes, dtype, shape): (usize, String, Vec<usize>) =
                    arrays(py)?.call_method1("measure", (shape, dtype))?.extract()?;
                PyAllocation::new(
                    py,
                    &self.inner,
                    nbytes,
                    Some(ArrayForm {
                        dtype: dtype.into(),
                        shape,
                    }),
                )
            }
            _ => Err(invalid(
                py,
                "allocate",
                "a number of bytes is expected, or a shape with the dtype",
            )),
        }
    }

    /// Offers that are not awaited one by one.
    ///
    /// Parameters
    /// ----------
    /// window : int
    ///     How many offers may be unacknowledged.
    ///
    /// Returns
    /// -------
    /// Pipeline
    #[pyo3(signature = (window=64))]
    fn pipeline(&self, py: Python<'_>, window: usize) -> PyResult<PyPipeline> {
        PyPipeline::new(py, &self.inner, window)
    }

    /// One object, which is held until it is released; waits until it is there.
    ///
    /// Parameters
    /// ----------
    /// target : str or dict, optional
    ///     A selector (the newest object that matches is meant), the text of a key, or the attributes of a key.
    /// timeout : float, optional
    ///     Seconds; 0 does not wait, None waits for ever.
    /// schema : str, optional
    ///     The schema of the key, where it is not the pool's default.
    /// requirement : str, optional
    ///     The name of the requirement through which it is received: its release completes it there.
    /// incomplete : bool
    ///     Whether a member of a bundle that is not complete will do, too: `Object.staged` tells.
    /// **key
    ///     Attributes of the key. An underscore at the end is left out: `class_="od"`.
    ///
    /// Returns
    /// -------
    /// Object
    ///
    /// Raises
    /// ------
    /// NotFound
    ///     It is not there, and the timeout is 0; or there is no requirement of this name.
    /// Timeout
    ///     It did not come in time.
    /// Gone
    ///     The object with this key was there and went; the reason is named.
    /// InvalidSelector
    ///     Pointing at the character.
    #[pyo3(signature = (target=None, /, *, timeout=None, schema=None, requirement=None, incomplete=false, **key))]
    #[allow(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn demand<'py>(
        &self,
        py: Python<'py>,
        target: Option<&Bound<'py, PyAny>>,
        timeout: Option<f64>,
        schema: Option<&str>,
        requirement: Option<&str>,
        incomplete: bool,
        key: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<PyReceived> {
        let options = demand_options(py, timeout, requirement, incomplete)?;
        let target = PyTarget::read(py, target, key, schema)?;
        target
            .ask(py, |target| self.inner.demand_with(target, options))
            .map(|object| PyReceived::new(object, None))
    }

    /// As `demand`, and does not wait: the answer comes to what this returns. For `wait`, beside others.
    ///
    /// Parameters
    /// ----------
    /// target, timeout, schema, **key
    ///     As `demand`.
    ///
    /// Returns
    /// -------
    /// PendingDemand
    ///
    /// Raises
    /// ------
    /// InvalidSelector
    ///     Pointing at the character.
    #[pyo3(signature = (target=None, /, *, timeout=None, schema=None, **key))]
    fn begin_demand<'py>(
        &self,
        py: Python<'py>,
        target: Option<&Bound<'py, PyAny>>,
        timeout: Option<f64>,
        schema: Option<&str>,
        key: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<PendingDemand> {
        let options = demand_options(py, timeout, None, false)?;
        let target = PyTarget::read(py, target, key, schema)?;
        target
            .ask(py, |target| self.inner.begin_demand(target, options))
            .map(PendingDemand::new)
    }

    /// A descriptor that is readable when something has come: for event loops of others (`loop.add_reader(pool, …)`,
    /// `selectors`, `select`). It is the pool's and ends with it.
    ///
    /// When it is readable, ask everything that the loop looks after, each until it has nothing (`next(timeout=0)` raises
    /// `Timeout` then, `try_get()` gives None); then wait for it again. What comes for one while another is asked makes it
    /// readable, until that one was asked or left out in a whole round. Nothing is read from the descriptor itself, and it may
    /// be readable although nothing is there.
    ///
    /// Examples
    /// --------
    /// >>> import select
    /// >>> with junctura.Pool(schema="free") as pool, pool.begin_demand("name=a") as demand:
    /// ...     _ = demand.try_get()
    /// ...     version = pool.offer(b"payload", name="a")
    /// ...     while (obj := demand.try_get()) is None:
    /// ...         _ = select.select([pool], [], [])
    /// ...     bytes(obj)
    /// b'payload'
    fn fileno(&self, py: Python<'_>) -> PyResult<i32> {
        Ok(self.inner.descriptor().or_raise(py)?.as_raw_fd())
    }

    /// Waits until at least one of these has something; other Python threads run meanwhile, and Ctrl-C ends the wait.
    ///
    /// Parameters
    /// ----------
    /// *on : Follow, Subscription, PendingDemand, Bundle or Timer
    ///     Of this pool; each used by no other thread.
    /// timeout : float, optional
    ///     Seconds; 0 does not wait, None waits for ever.
    ///
    /// Returns
    /// -------
    /// list
    ///     Those that have something, or have ended, in the order given: `next(timeout=0)` of a follow or a subscription,
    ///     `try_get()` of a pending demand, `ring()` of a timer take it. A bundle is among them when it is complete or aborted:
    ///     its `wait()` tells which.
    ///
    /// Raises
    /// ------
    /// Timeout
    ///     When nothing came in time.
    /// InvalidArgument
    ///     For what is of another pool, or where nothing could ever come.
    ///
    /// Examples
    /// --------
    /// >>> with junctura.Pool(schema="free") as pool:
    /// ...     events, demand = pool.subscribe("name=wind"), pool.begin_demand("name=orography")
    /// ...     version = pool.offer(b"heights", name="orography")
    /// ...     assert pool.wait(events, demand) == [demand]
    /// ...     bytes(demand.get())
    /// b'heights'
    #[pyo3(signature = (*on, timeout=None))]
    fn wait<'py>(
        &self,
        py: Python<'py>,
        on: &Bound<'py, PyTuple>,
        timeout: Option<f64>,
    ) -> PyResult<Bound<'py, PyList>> {
        wait(py, &self.inner, on, timeout)
    }

    /// Subscribes to events.
    ///
    /// Parameters
    /// ----------
    /// selector : str
    ///     Which objects; events of clients come in any case.
    /// kinds : sequence of str, optional
    ///     Some of those that `Event.kind` can be; by default all.
    ///
    /// Returns
    /// -------
    /// Subscription
    ///
    /// Examples
    /// --------
    /// >>> with junctura.Pool(schema="free") as pool, pool.subscribe(kinds=["offered"]) as events:
    /// ...     version = pool.offer(b"payload", name="a")
    /// ...     event = events.next()
    /// ...     print(event.kind, event.object["name"], event.nbytes)
    /// offered a 7
    #[pyo3(signature = (selector="", *, kinds=None))]
    fn subscribe(&self, py: Python<'_>, selector: &str, kinds: Option<Vec<String>>) -> PyResult<PySubscription> {
        PySubscription::new(py, &self.inner, selector, kinds)
    }

    /// Withdraws one object; waits until every requirement that is owed it has released it.
    ///
    /// Parameters
    /// ----------
    /// target : str or dict, optional
    ///     The text of a key, or its attributes.
    /// timeout : float, optional
    ///     Seconds; None waits for ever.
    /// force : bool
    ///     Whether to withdraw at once: who is owed it gets a gap.
    /// schema : str, optional
    ///     The schema of the key, where it is not the pool's default.
    /// **key
    ///     Attributes of the key.
    ///
    /// Returns
    /// -------
    /// int
    ///     How many versions went.
    ///
    /// Raises
    /// ------
    /// NotFound
    ///     It is not there.
    /// Timeout
    ///     Names who still waits; the object stays offered.
    #[pyo3(signature = (target=None, /, *, timeout=None, force=false, schema=None, **key))]
    fn withdraw<'py>(
        &self,
        py: Python<'py>,
        target: Option<&Bound<'py, PyAny>>,
        timeout: Option<f64>,
        force: bool,
        schema: Option<&str>,
        key: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<u64> {
        let options = WithdrawOptions {
            timeout: read_timeout(py, timeout)?,
            force,
        };
        PyTarget::read(py, target, key, schema)?.ask(py, |target| self.inner.withdraw(target, options))
    }

    /// Withdraws everything that matches a selector, as `withdraw`; returns how many objects went.
    #[pyo3(signature = (selector, *, timeout=None, force=false))]
    fn withdraw_all(&self, py: Python<'_>, selector: &str, timeout: Option<f64>, force: bool) -> PyResult<u64> {
        let options = WithdrawOptions {
            timeout: read_timeout(py, timeout)?,
            force,
        };
        py.detach(|| self.inner.withdraw_all(selector, options))
            .or_raise_about(py, selector)
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __exit__(&self, py: Python<'_>, _type: &Bound<'_, PyAny>, _value: &Bound<'_, PyAny>, _trace: &Bound<'_, PyAny>) {
        self.close(py);
    }

    fn __repr__(&self) -> String {
        format!("<junctura.Pool {}>", self.inner.url())
    }

    fn __getnewargs_ex__<'py>(&self, py: Python<'py>) -> PyResult<((&str,), Bound<'py, PyDict>)> {
        let keywords = PyDict::new(py);
        keywords.set_item("name", &self.name)?;
        keywords.set_item("schema", &self.schema)?;
        keywords.set_item("transports", &self.remote.transports)?;
        keywords.set_item("token_file", &self.remote.token_file)?;
        keywords.set_item("ca_file", &self.remote.ca_file)?;
        keywords.set_item("streams", self.remote.streams)?;
        keywords.set_item("store", &self.store)?;
        keywords.set_item("offer_timeout", self.offer_timeout)?;
        Ok(((self.inner.url(),), keywords))
    }
}
