//! The pool as Python users hold it.

pub(crate) mod aio;
pub(crate) mod board;
pub(crate) mod bundles;
pub(crate) mod explain;
pub(crate) mod mistakes;
pub(crate) mod offer_many;
pub(crate) mod reading;
pub(crate) mod tally;
pub(crate) mod wait;
pub(crate) mod wanted;
pub(crate) mod withdrawing;

use std::os::fd::AsRawFd;
use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use crate::conversion::data::{ArrayForm, PreparedData, arrays};
use crate::conversion::keywords::{refuse_unknown, refuse_unknown_of};
use crate::conversion::options::{
    command_words, demand_options, offer_options, own_name, settle, size, timeout as read_timeout,
};
use crate::conversion::usage::{ServerOptions, opened};
use crate::handles::allocation::PyAllocation;
use crate::handles::bundle::current;
use crate::handles::events::PySubscription;
use crate::handles::object::PyReceived;
use crate::handles::pipeline::PyPipeline;
use crate::model::schema::PySchema;
use crate::model::version::PyVersion;
use crate::pool::mistakes::CheckedForms;
use crate::pool::offer_many::offer_many;
use crate::pool::wait::{PendingDemand, wait};
use crate::runtime::error::{OrRaise, invalid};
use crate::runtime::interrupt;
use crate::store;

/// A connection to a pool, the shared space in which objects are offered and found.
///
/// Thread-safe. A forked child reconnects when it first uses the pool. A pickled pool (as `multiprocessing` makes for
/// children that it spawns) reconnects when it is unpickled. The end of its `with` block closes the connection.
///
/// Parameters
/// ----------
/// url : str, optional
///     Address of the pool: `unix:NAME` (of this user), `unix:/path/to/socket`, `tcp://HOST:PORT`, or the `Pool.url` of
///     another process. Without a URL the pool is private to this process and its children, and ends with this process.
/// name : str, optional
///     Name of this client, which events and counters show. Defaults to `JUNCTURA_NAME`, else to the name of the
///     script.
/// schema : str, path, Schema or a list of these, optional
///     The name of a built-in schema, the text of a schema file, its path, or a `Schema`. The first one is the default
///     schema. If the pool exists already, its schemas must agree with these.
/// start : bool
///     Whether to start a server if none runs at the URL. The server exits when it is idle.
/// budget : int or str, optional
///     Memory budget for payloads, in bytes or as `"4GiB"`. For a pool that this call creates.
/// spill : path, optional
///     Directory on a local disk for payloads that exceed the memory budget; created if missing. Its contents are not
///     visible as files, and nothing remains when the pool ends, even after a crash. Without a directory, offers block
///     when memory is full. For a pool that this call creates.
/// spill_size : int or str, optional
///     Size limit of the spill. Default: four times the memory budget.
/// checked : bool
///     Whether payloads carry checksums, which receivers verify. For a pool that this call creates.
/// inline_max : int, optional
///     Payloads of at most this many bytes travel inside the message. For a pool that this call creates.
/// orphan_timeout : float, optional
///     Seconds that an incomplete bundle survives while no producer has it open. For a pool that this call creates.
/// until_gone : list of str, optional
///     Names of clients. When all have connected and have disconnected, in any way, the pool drains as by
///     `stop`, and ends. For a pool that this call creates.
/// transports : str, optional
///     Transports allowed to a pool at `tcp://...`, in order of preference. Default: `JUNCTURA_TRANSPORTS`, else
///     `"shm,tcp"`. `route` reports the transport in use and the reason.
/// token_file, ca_file : path, optional
///     The token that this client presents to a pool at `tcp://...`, and the certificates of the authorities that it
///     trusts. Default: the files that `JUNCTURA_TOKEN_FILE` and `JUNCTURA_CA_FILE` name, or, beyond loopback, `token`
///     and `ca.pem` in `~/.config/junctura`. Without `ca_file` a server on loopback must be a process of this user;
///     `ca_file="none"` accepts servers of all users of this host.
/// streams : int, optional
///     Number of streams of the connection to a pool at `tcp://...`, from 1 to 8. A large payload uses all streams at
///     once. Default: `JUNCTURA_STREAMS`, else 1.
/// store : path or str, optional
///     Path or URL of the store behind the pool. `demand`, `list` and `follow` then also find objects that were
///     archived there and have left the pool, in one order with the objects of the pool. This process reads the store
///     itself; with `junctura.aio`, threads do. Offering a key that the store has fails with `AlreadyExists` if the
///     schema rejects a second object with the same key.
/// offer_timeout : float, optional
///     Seconds that an offer waits for memory before it fails with `PoolFull`; None waits without a limit.
///
/// Raises
/// ------
/// Unavailable
///     No server can be reached.
/// SchemaMismatch
///     The pool has a different schema of the same name; the error names the first difference.
/// InvalidArgument
///     The URL, a schema or another argument is invalid.
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
    checked_forms: CheckedForms,
    /// Of selectors that matched nothing.
    checked_values: CheckedForms,
}

/// The options of a connection through a gate.
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
    #[pyo3(signature = (url=None, *, name=None, schema=None, start=false, budget=None, spill=None, spill_size=None, checked=false, inline_max=None, orphan_timeout=None, until_gone=Vec::new(), transports=None, token_file=None, ca_file=None, streams=None, store=None, offer_timeout=60.0, **unknown), text_signature = "(url=None, *, name=None, schema=None, start=False, budget=None, spill=None, spill_size=None, checked=False, inline_max=None, orphan_timeout=None, until_gone=(), transports=None, token_file=None, ca_file=None, streams=None, store=None, offer_timeout=60.0)")]
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
        unknown: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        refuse_unknown(py, "Pool", unknown)?;
        // A private pool has what is given.
        let server = match url {
            Some(_) => Some(ServerOptions {
                budget: budget.map(size).transpose()?,
                spill: spill.clone(),
                spill_size: spill_size.map(size).transpose()?,
                inline_max: inline_max.map(size).transpose()?,
                checked,
                orphan_timeout,
                until_gone: until_gone.clone(),
            }),
            None => None,
        };
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
        let inner = opened(py, builder, server.as_ref())?;
        Ok(Self {
            inner,
            name,
            schema: schema.map(Bound::unbind),
            remote,
            store,
            offer_timeout,
            checked_forms: CheckedForms::default(),
            checked_values: CheckedForms::default(),
        })
    }

    /// URL with which other processes, children included, connect to this pool.
    #[getter]
    fn url(&self) -> &str {
        self.inner.url()
    }

    /// The transport to the server and the reason for its choice: `shm` (memory that both map), `tcp`, or `tcp, TLS`;
    /// and the number of streams, if there is more than one.
    #[getter]
    fn route(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| self.inner.route()).or_raise(py)
    }

    /// The incarnation of the server: the first half of every version that it assigns.
    #[getter]
    fn incarnation(&self, py: Python<'_>) -> PyResult<u64> {
        py.detach(|| self.inner.incarnation()).or_raise(py)
    }

    /// The number that the server assigned to this client.
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

    /// The schema of this name, or the default schema.
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

    /// Drains and stops the server, and returns when it has exited. From now on offers, allocations and requirements
    /// fail with `Closed`, and new clients fail with `Unavailable`. The server exits when every object that a
    /// requirement retains has been received, and follows that still read have received what was visible: at most 10 s
    /// without a release. Objects that only its memory held are then lost; objects that a client holds stay readable.
    ///
    /// Parameters
    /// ----------
    /// timeout : float, optional
    ///     Seconds after which the server exits anyway; 0 stops it at once. None waits without a limit: forever, if
    ///     this client itself has a requirement and does not receive its objects.
    ///
    /// Raises
    /// ------
    /// Timeout
    ///     Objects were left; the error names their requirements. The server has exited nevertheless.
    /// Gone
    ///     The drain has ended without the timeout, and a follow that took nothing for 10 s has missed objects.
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

    /// Waits until every earlier operation through this pool is in effect, regardless of how this process ends: one
    /// round trip.
    ///
    /// Releases are counted, and the offers of a pipeline are visible, staged or refused. A release is not
    /// acknowledged: if the process is killed right after a release, or its network fails then, the release may be
    /// lost.
    ///
    /// Parameters
    /// ----------
    /// timeout : float, optional
    ///     Seconds to wait; 0 does not wait. None waits without a limit, also for offers that wait for memory.
    ///
    /// Raises
    /// ------
    /// Timeout
    ///     The operations may be in effect already, or take effect later.
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

    /// Disconnects from the pool: later calls fail with `Closed`. Objects that are held stay readable.
    fn close(&self, py: Python<'_>) {
        py.detach(|| self.inner.close());
    }

    /// Offers an object and returns when it is visible to all clients: one round trip, and one copy of the payload.
    ///
    /// Blocks while the pool is full. `allocate` saves the copy, `offer_many` and `pipeline` the round trips. In the
    /// block of a bundle the object becomes a member of the bundle: then the call returns when the member is staged,
    /// and the sequence number of the version is 0.
    ///
    /// Parameters
    /// ----------
    /// data : bytes, numpy.ndarray or another buffer, an object with DLPack, xarray.DataArray, Allocation
    ///     The payload. An `xarray.DataArray` also supplies its name, dimensions (`dims`), units and scalar coordinates
    ///     as attributes, if the schema allows them and they are not given; its other coordinates are kept in the
    ///     payload. For arrays, type and shape are kept too if the schema has the attributes `dtype` and `shape` (the built-in ones do), so
    ///     that `Object.array` returns the same array.
    /// attributes : dict, optional
    ///     The description of the object: strings, numbers, bools, dates, times, durations, lists. None means not
    ///     given. Default: the attributes of an `Object`; keywords add to them or replace them.
    /// schema : str, optional
    ///     The schema of the object, if it is not the pool's default.
    /// retention : "withdrawn", "archived", a time as text or datetime.timedelta, Released, or "released_by:NAME,...",
    /// optional
    ///     Retention of the object: until a client withdraws it; until an archiver has written it to its store (the
    ///     same as "released_by:archive", because archivers name their requirement `archive`); for a time such as
    ///     "10min" or "1h30m" (at most 49 days) after it becomes visible; until this many consumers have released it;
    ///     or until the requirements and groups with these names have released it, including those created later.
    ///     Defaults to the retention of the schema.
    /// if_wanted : bool
    ///     Offer only if a client wants the object. Otherwise no payload is moved, the result is None, and later
    ///     demands for the key fail with `NotWanted`. Not allowed in a bundle, whose members are offered all or none.
    /// durability : "memory" or "durable", optional
    ///     With "durable" the call returns only after an archiver of the pool (`junctura store archiver`) has written the
    ///     object to a store. The object is visible at once in both cases. Defaults to the durability of the schema.
    /// **keywords
    ///     More attributes. An underscore at the end is removed: `class_="od"`. Attributes with the name of one of the
    ///     parameters above must be given in the dictionary.
    ///
    /// Returns
    /// -------
    /// Version
    ///
    /// Raises
    /// ------
    /// SchemaMismatch, TypeMismatch, TooLarge
    ///     The schema does not allow the attributes, or the payload is too large.
    /// InvalidArgument
    ///     A given `dtype` or `shape` does not fit the data, or a keyword is an option of another call.
    /// AlreadyExists
    ///     The key exists, and the schema allows one object per key.
    /// PoolFull
    ///     No memory became free in time; the error reports the use of the pool, and remedies.
    /// Io, Timeout
    ///     The offer was durable: the object is visible, but no archiver has written it to a store, or not within the
    ///     pool's offer timeout.
    ///
    /// Examples
    /// --------
    /// >>> with junctura.Pool(schema="mars") as pool:
    /// ...     version = pool.offer(b"GRIB", {"class": "od", "stream": "oper", "type": "fc", "levtype": "sfc"},
    /// ...                          date="2026-11-20", time="12:00", step=6, param="2t")
    /// ...     pool.demand("param=2t").key
    /// '{class=od,expver=0001,stream=oper,date=20261120,time=1200}{type=fc,levtype=sfc}{step=6,param=2t}'
    ///
    /// An object that expires, and the event that reports it:
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

    /// Offers many objects and returns when all are visible, or archived if they are durable: one round trip for about
    /// `window` objects.
    ///
    /// Parameters
    /// ----------
    /// objects : iterable of (data, attributes)
    ///     Each as for `offer`. A list or tuple is fastest; the items of any other iterable are offered one by one.
    /// window : int
    ///     How many offers may be unacknowledged.
    /// schema, retention, durability : optional
    ///     As for `offer`, for all objects.
    ///
    /// Returns
    /// -------
    /// list of Version
    ///
    /// Raises
    /// ------
    /// Error
    ///     The error of the first object that failed, with its position in `index`. Objects before it are visible,
    ///     later ones may be.
    ///
    /// Examples
    /// --------
    /// >>> with junctura.Pool(schema="free") as pool:
    /// ...     versions = pool.offer_many([(b"1", {"name": "a"}), (b"2", {"name": "b"})])
    /// ...     [entry["name"] for entry in pool.list()]
    /// ['a', 'b']
    #[pyo3(signature = (objects, *, window=1024, schema=None, retention=None, durability=None, **unknown), text_signature = "($self, objects, *, window=1024, schema=None, retention=None, durability=None)")]
    #[allow(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn offer_many(
        &self,
        py: Python<'_>,
        objects: &Bound<'_, PyAny>,
        window: usize,
        schema: Option<&str>,
        retention: Option<&Bound<'_, PyAny>>,
        durability: Option<&str>,
        unknown: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Vec<PyVersion>> {
        refuse_unknown(py, "Pool.offer_many", unknown)?;
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

    /// Allocates memory in the pool, to fill and offer without a copy. Blocks while the pool is full.
    ///
    /// Parameters
    /// ----------
    /// nbytes : int, optional
    ///     Number of bytes; alternative to `shape`.
    /// shape : int or tuple of int, optional
    ///     The shape of an array.
    /// dtype : optional
    ///     The type of the array's elements. Default: `float64`.
    ///
    /// Returns
    /// -------
    /// Allocation
    ///
    /// Raises
    /// ------
    /// TooLarge
    ///     The size exceeds the limit of the pool.
    /// PoolFull
    ///     No memory became free in time; the error reports the use of the pool.
    #[pyo3(signature = (nbytes=None, /, *, shape=None, dtype=None, **unknown), text_signature = "($self, nbytes=None, /, *, shape=None, dtype=None)")]
    fn allocate(
        &self,
        py: Python<'_>,
        nbytes: Option<usize>,
        shape: Option<&Bound<'_, PyAny>>,
        dtype: Option<&Bound<'_, PyAny>>,
        unknown: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyAllocation> {
        refuse_unknown_of(
            py,
            "Pool.allocate",
            unknown,
            ("Pool.offer", "give it to offer() of the allocation"),
        )?;
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

    /// Returns a pipeline, which sends offers without waiting for each acknowledgment.
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

    /// Receives one object, which is held until it is released; waits until it is available.
    ///
    /// Parameters
    /// ----------
    /// target : str or dict, optional
    ///     A selector (the newest object that matches), the text of a key, or the attributes of a key.
    /// timeout : float, optional
    ///     Seconds; 0 does not wait, None waits without a limit.
    /// schema : str, optional
    ///     The schema of the key, if it is not the pool's default.
    /// requirement : str, optional
    ///     The name of a requirement through which to receive the object; releasing it completes it for the
    ///     requirement.
    /// incomplete : bool
    ///     Whether a member of an incomplete bundle is accepted; `Object.staged` reports it.
    /// **key
    ///     Attributes of the key. An underscore at the end is removed: `class_="od"`.
    ///
    /// Returns
    /// -------
    /// Object
    ///
    /// Raises
    /// ------
    /// NotFound
    ///     The object does not exist and the timeout is 0, or no requirement has this name.
    /// Timeout
    ///     The object did not become available in time.
    /// Gone
    ///     The object with this key has been removed; the error gives the reason.
    /// InvalidSelector
    ///     The selector is invalid; the error gives the position.
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
        let target = self.checked_target(py, "Pool.demand", target, key, schema)?;
        target
            .ask(py, |target| self.inner.demand_with(target, options))
            .map(|object| PyReceived::new(object, None))
    }

    /// Starts a demand without blocking: the result arrives in the returned `PendingDemand`. For `wait`, together with
    /// other sources.
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
    ///     The selector is invalid; the error gives the position.
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
        let target = self.checked_target(py, "Pool.begin_demand", target, key, schema)?;
        target
            .ask(py, |target| self.inner.begin_demand(target, options))
            .map(PendingDemand::new)
    }

    /// A file descriptor that is readable when the pool has data, for external event loops (`loop.add_reader(pool, …)`,
    /// `selectors`, `select`). It belongs to the pool and is closed with it.
    ///
    /// When it is readable, poll every source of the loop until it is empty (`next(timeout=0)` raises `Timeout` then,
    /// `try_get()` returns None), and wait again. Data that arrive for one source while another is polled keep the
    /// descriptor readable until that source has been polled, or left out for a whole round. Do not read from the
    /// descriptor. It may be readable although there are no data.
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

    /// Waits until at least one of these sources has data. Other Python threads run meanwhile, and Ctrl-C ends the
    /// wait.
    ///
    /// Parameters
    /// ----------
    /// *on : Follow, Subscription, PendingDemand, Bundle or Timer
    ///     Sources of this pool; no other thread may use them.
    /// timeout : float, optional
    ///     Seconds; 0 does not wait, None waits without a limit.
    ///
    /// Returns
    /// -------
    /// list
    ///     The sources that have data or have ended, in the order given. Take the data with `next(timeout=0)` of a
    ///     follow or a subscription, `try_get()` of a pending demand, `ring()` of a timer. A bundle is included when it
    ///     is complete or aborted; its `wait()` distinguishes the two.
    ///
    /// Raises
    /// ------
    /// Timeout
    ///     No source had data in time.
    /// InvalidArgument
    ///     A source belongs to another pool, or no source can ever have data.
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
    ///     Selector of the objects; events about clients are always included.
    /// kinds : sequence of str, optional
    ///     Some of the values of `Event.kind`. Default: all.
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
    #[pyo3(signature = (selector="", *, kinds=None, **unknown), text_signature = "($self, selector='', *, kinds=None)")]
    fn subscribe(
        &self,
        py: Python<'_>,
        selector: &str,
        kinds: Option<Vec<String>>,
        unknown: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PySubscription> {
        refuse_unknown(py, "Pool.subscribe", unknown)?;
        let subscription = PySubscription::new(py, &self.inner, selector, kinds)?;
        self.warn_of_mistakes(py, selector)?;
        Ok(subscription)
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
