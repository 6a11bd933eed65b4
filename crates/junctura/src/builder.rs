//! Settings for opening a pool.

#[cfg(feature = "embedded")]
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

#[cfg(feature = "net")]
use junctura_link::UpstreamProxy;
use junctura_memory::SlotReuse;
use junctura_model::{Code, Error, Result, Schema};
#[cfg(feature = "embedded")]
use junctura_pool::server::{Server, ServerOptions};
#[cfg(feature = "embedded")]
use junctura_pool::{PoolConfig, SpillConfig};

use crate::connection::Hook;
#[cfg(not(feature = "embedded"))]
use crate::connection::address::lacks_feature;
#[cfg(feature = "net")]
use crate::connection::address::open_upstream;
use crate::connection::address::{PoolAddress, RemoteSettings};
use crate::connection::handshake::ClientIntroduction;
use crate::pool::{Pool, note_mistakes, open_pool};
#[cfg(feature = "embedded")]
use crate::start::{start, with_similar_pool};

/// The source of a schema.
#[derive(Clone, Debug)]
pub(crate) enum SchemaOrigin {
    Builtin(String),
    Text(String),
    File(PathBuf),
}

impl SchemaOrigin {
    /// Reads one schema, or all schemas of an FDB file.
    fn read(&self) -> Result<Vec<Arc<Schema>>> {
        let read = match self {
            SchemaOrigin::Builtin(name) => {
                return Ok(vec![Schema::builtin(name).ok_or_else(|| Schema::unknown(name))?]);
            }
            SchemaOrigin::Text(text) => Schema::parse_file(text, ""),
            SchemaOrigin::File(path) => {
                let subject = path.display().to_string();
                let text = read_schema(path)?;
                Schema::parse_file(&text, &subject).map_err(|error| {
                    let named = Error::new(error.code(), format!("{subject}: {}", error.subject()), error.cause());
                    error
                        .position()
                        .map_or_else(|| named.clone(), |at| named.clone().at(at))
                })
            }
        };
        Ok(read?.into_iter().map(Arc::new).collect())
    }
}

/// Reads a text file of at most [`junctura_transport::TEXT_BYTES_MAX`] bytes.
///
/// # Errors
/// `TooLarge`; `Io`, also for a missing file; `InvalidArgument` if the bytes are not text.
#[doc(hidden)]
pub fn read_text(path: &Path) -> Result<String> {
    junctura_transport::read_text(path).map_err(|error| match error.code() {
        Code::NotFound => Error::new(Code::Io, error.subject(), error.cause()),
        _ => error,
    })
}

/// Reads a schema file; the error for a missing one lists the built-in schemas, since the path may be a misspelled name.
///
/// # Errors
/// Those of [`read_text`]; `NotFound` for a missing file whose path is a plain name.
#[doc(hidden)]
pub fn read_schema(path: &Path) -> Result<String> {
    let text = junctura_transport::read_text(path);
    text.map_err(|error| match (error.code(), path.to_str()) {
        (Code::NotFound, Some(name)) => {
            let is_name = !name.contains(['/', '.']);
            let code = if is_name { Code::NotFound } else { Code::Io };
            let cause = format!("there is no such file, and {}", Schema::unknown(name).cause());
            Error::new(code, format!("schema {name}"), cause)
        }
        (Code::NotFound, None) => Error::new(Code::Io, error.subject(), error.cause()),
        _ => error,
    })
}

/// Settings of a server that this process starts or embeds.
#[cfg(feature = "embedded")]
#[derive(Clone, Debug, Default)]
pub(crate) struct ServerSettings {
    pub(crate) budget_bytes: Option<u64>,
    /// A directory and its limit in bytes.
    pub(crate) spill: Option<(PathBuf, Option<u64>)>,
    pub(crate) orphan_timeout: Option<Duration>,
    pub(crate) inline_bytes_max: Option<u64>,
    pub(crate) checked: bool,
    pub(crate) spin: Option<Duration>,
    pub(crate) until_gone: Vec<String>,
    /// The words that start the command.
    pub(crate) program: Vec<OsString>,
}

/// Opens a pool; every setting has a default.
///
/// ```
/// # use junctura::Pool;
/// # use std::time::Duration;
/// # fn main() -> junctura::Result<()> {
/// let pool = Pool::builder()
///     .name("model") // the name that other clients see
///     .schema("free") // the first is meant where none is named
///     .budget_bytes(64 << 20)
///     .spill("/tmp", Some(256 << 20)) // for payloads that memory has no room for
///     .checked(true)
///     .inline_bytes_max(1024)
///     .orphan_timeout(Duration::from_secs(10))
///     .offer_timeout(Some(Duration::from_secs(5)))
///     .open()?;
/// assert!(pool.payload_rules()?.checked);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default)]
pub struct PoolBuilder {
    url: Option<String>,
    name: Option<String>,
    schemas: Vec<SchemaOrigin>,
    #[cfg(feature = "embedded")]
    start: bool,
    offer_timeout: Option<Duration>,
    reuse: SlotReuse,
    visitor: bool,
    store: Option<String>,
    hook: Option<Hook>,
    remote: RemoteSettings,
    #[cfg(feature = "embedded")]
    server: ServerSettings,
}

impl PoolBuilder {
    /// Creates a builder for a pool that is embedded in this process, with the built-in schemas.
    ///
    /// ```
    /// # use junctura::{Pool, PoolBuilder};
    /// # fn main() -> junctura::Result<()> {
    /// let pool = PoolBuilder::new().schema("free").open()?; // as `Pool::builder`
    /// # drop::<Pool>(pool);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the URL of the pool: `unix:NAME`, `unix:/path/to/socket`, `unix:@NAME`, or `tcp://HOST:PORT`. Default: a
    /// pool embedded in this process. `tcp://` requires the feature `net`, an embedded pool the feature `embedded`.
    ///
    /// ```
    /// # use junctura::Pool;
    /// # fn main() -> junctura::Result<()> {
    /// # let served = Pool::builder().schema("free").open()?;
    /// # let url = served.url();
    /// let viewer = Pool::builder().url(url).name("viewer").open()?; // such as "unix:fields"
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn url(mut self, url: impl Into<String>) -> Self {
        self.url = Some(url.into());
        self
    }

    /// Sets the name of this client in events and counters. Default: `$JUNCTURA_NAME`, else the name of the program.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Adds a built-in schema by name. The first schema added is the default.
    ///
    /// A pool that is embedded or started here has the schemas that were added, or all built-in ones if none was. A
    /// running pool must agree with the added schemas; otherwise `SchemaMismatch` names the first difference.
    #[must_use]
    pub fn schema(mut self, builtin_name: impl Into<String>) -> Self {
        self.schemas.push(SchemaOrigin::Builtin(builtin_name.into()));
        self
    }

    /// Adds a schema, given as the text of a schema file.
    ///
    /// ```
    /// # use junctura::Pool;
    /// # fn main() -> junctura::Result<()> {
    /// let schema = "{name: runs, same_key: supersede, key: {dataset: [run], collocation: [], element: [step]}, \
    ///               attributes: {run: {type: string}, step: {type: integer}}}";
    /// let pool = Pool::builder().schema_yaml(schema).open()?;
    /// pool.offer([("run", "first"), ("step", "6")], b"payload")?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn schema_yaml(mut self, text: impl Into<String>) -> Self {
        self.schemas.push(SchemaOrigin::Text(text.into()));
        self
    }

    /// Adds the schemas of a file: one, or one for each rule of an FDB file.
    ///
    /// ```
    /// # use junctura::{Code, Pool};
    /// # fn main() -> junctura::Result<()> {
    /// let missing = Pool::builder().schema_file("no/such/file.yaml").open();
    /// assert_eq!(missing.unwrap_err().code(), Code::Io);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn schema_file(mut self, path: impl AsRef<Path>) -> Self {
        self.schemas.push(SchemaOrigin::File(path.as_ref().to_owned()));
        self
    }

    /// Sets whether to start a server if none is running at the URL. The server exits when it has no clients and no
    /// objects. The program is the first that is set or exists: `$JUNCTURA_PROGRAM`, [`PoolBuilder::program`],
    /// `junctura` in the directory of this program, `junctura` on the path.
    ///
    /// Requires the feature `embedded`.
    ///
    /// ```
    /// # use junctura::{Code, Pool};
    /// # fn main() -> junctura::Result<()> {
    /// let pool = Pool::builder().url("unix:fields").schema("free").start(true);
    /// # let nobody = Pool::builder().url("unix:@nobody-serves-this").start(false).open();
    /// # assert_eq!(nobody.unwrap_err().code(), Code::Unavailable);
    /// # drop(pool);
    /// // pool.open() finds the server of this name, or starts it.
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(feature = "embedded")]
    #[must_use]
    pub fn start(mut self, start: bool) -> Self {
        self.start = start;
        self
    }

    /// Sets the command that starts `junctura`: a program and its leading arguments.
    ///
    /// Requires the feature `embedded`.
    ///
    /// ```
    /// # use junctura::Pool;
    /// # fn main() -> junctura::Result<()> {
    /// // For programs that bring the command along.
    /// let pool = Pool::builder().url("unix:fields").program(["python3", "-m", "junctura"]).start(true);
    /// # drop(pool);
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(feature = "embedded")]
    #[must_use]
    pub fn program<W: Into<OsString>>(mut self, words: impl IntoIterator<Item = W>) -> Self {
        self.server.program = words.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the memory budget for payloads, in bytes. Applies to a pool that is embedded or started here.
    ///
    /// Requires the feature `embedded`.
    #[cfg(feature = "embedded")]
    #[must_use]
    pub fn budget_bytes(mut self, bytes: u64) -> Self {
        self.server.budget_bytes = Some(bytes);
        self
    }

    /// Sets the store behind the pool, by path or URL. [`Pool::demand`], [`Pool::list`] and [`Pool::follow`] then also
    /// return archived objects that have left the pool, in one order with the objects of the pool. This process reads
    /// the store itself; async tasks read it on a separate thread. An offer fails if the store has its key and the
    /// schema rejects duplicates.
    ///
    /// Requires the feature `store`.
    ///
    /// ```
    /// # use junctura::Pool;
    /// # fn main() -> junctura::Result<()> {
    /// # let served = Pool::builder().schema("free").open()?;
    /// # let (url, folder) = (served.url(), tempfile::tempdir().unwrap());
    /// # let path = folder.path().join("archive").display().to_string();
    /// # let store = junctura_store::Store::create_url(&path, &served.schemas()?, &Default::default())?;
    /// # let mut writer = store.writer()?;
    /// # writer.archive([("name", "old")], b"payload")?;
    /// # writer.flush()?;
    /// let pool = Pool::builder().url(url).store(path).open()?; // such as "s3://bucket/archive"
    /// assert_eq!(pool.demand("name=old", None)?.payload(), b"payload"); // which `junctura store archiver` has put there
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(feature = "store")]
    #[must_use]
    pub fn store(mut self, url: impl Into<String>) -> Self {
        self.store = Some(url.into());
        self
    }

    /// Sets the spill directory, on a local disk, and its limit in bytes (`None`: four times the memory budget). The
    /// directory is created if missing. Spilled payloads have no visible files, and nothing remains when the pool ends,
    /// even after a crash. Without a spill directory, offers block when memory is full. Applies to a pool that is
    /// embedded or started here.
    ///
    /// Requires the feature `embedded`.
    #[cfg(feature = "embedded")]
    #[must_use]
    pub fn spill(mut self, directory: impl Into<PathBuf>, limit_bytes: Option<u64>) -> Self {
        self.server.spill = Some((directory.into(), limit_bytes));
        self
    }

    /// Sets how long an incomplete bundle without a producer is retained before it is aborted. Default: 1 minute.
    /// Applies to a pool that is embedded or started here.
    ///
    /// Requires the feature `embedded`.
    #[cfg(feature = "embedded")]
    #[must_use]
    pub fn orphan_timeout(mut self, timeout: Duration) -> Self {
        self.server.orphan_timeout = Some(timeout);
        self
    }

    /// Sets whether payloads carry checksums, verified at delivery. Applies to a pool that is embedded or started here.
    ///
    /// Requires the feature `embedded`.
    #[cfg(feature = "embedded")]
    #[must_use]
    pub fn checked(mut self, checked: bool) -> Self {
        self.server.checked = checked;
        self
    }

    /// Sets the size in bytes up to which payloads travel inside the message. Applies to a pool that is embedded or
    /// started here.
    ///
    /// Requires the feature `embedded`.
    #[cfg(feature = "embedded")]
    #[must_use]
    pub fn inline_bytes_max(mut self, bytes: u64) -> Self {
        self.server.inline_bytes_max = Some(bytes);
        self
    }

    /// Drains and stops the server, as [`Pool::stop`] does, once clients with all these names have connected and
    /// disconnected. A crash of a client counts as a disconnect; visitors do not count. Applies to a pool that is
    /// embedded or started here.
    ///
    /// Requires the feature `embedded`.
    ///
    /// ```
    /// # use junctura::Pool;
    /// # fn main() -> junctura::Result<()> {
    /// # let pool = Pool::builder().schema("free").until_gone(["model"]).open()?;
    /// let model = Pool::builder().url(pool.url()).name("model").open()?;
    /// drop(model); // it has connected and disconnected: the pool drains and ends
    /// while pool.stat().is_ok() {}
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(feature = "embedded")]
    #[must_use]
    pub fn until_gone<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.server.until_gone = names.into_iter().map(Into::into).collect();
        self
    }

    /// Sets how long the embedded server busy-polls before it sleeps, where that pays. Default: 50 µs. A longer time
    /// reduces latency and keeps a core busy for longer.
    ///
    /// Requires the feature `embedded`.
    ///
    /// ```
    /// # use junctura::Pool;
    /// # fn main() -> junctura::Result<()> {
    /// # use std::time::Duration;
    /// let pool = Pool::builder().schema("free").spin(Duration::from_micros(200)).open()?;
    /// # pool.sync(None)?;
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(feature = "embedded")]
    #[must_use]
    pub fn spin(mut self, spin: Duration) -> Self {
        self.server.spin = Some(spin);
        self
    }

    /// Sets how long an offer or an allocation waits for memory before it fails with `PoolFull`. Default: `None`,
    /// without limit.
    #[must_use]
    pub fn offer_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.offer_timeout = timeout;
        self
    }

    /// Sets whether slots are reused in the order in which they were freed. By default the most recently freed slot,
    /// which is warm in the cache, is reused first. For measurements.
    ///
    /// ```
    /// # use junctura::Pool;
    /// # fn main() -> junctura::Result<()> {
    /// let pool = Pool::builder().schema("free").rotate_slots(true).open()?;
    /// # pool.sync(None)?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn rotate_slots(mut self, rotate: bool) -> Self {
        self.reuse = if rotate { SlotReuse::Oldest } else { SlotReuse::Latest };
        self
    }

    /// Sets whether this client only looks at the pool, or stops the server. The server accepts such a client even while
    /// it drains ([`Pool::stop`]), and serves it after others: while they are active, in about 1 % of its time.
    ///
    /// ```
    /// # use junctura::Pool;
    /// # fn main() -> junctura::Result<()> {
    /// # let pool = Pool::builder().schema("free").open()?;
    /// let monitor = Pool::builder().url(pool.url()).visitor(true).open()?;
    /// println!("{}", monitor.stat()?);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn visitor(mut self, visitor: bool) -> Self {
        self.visitor = visitor;
        self
    }

    /// Sets the allowed transports to a pool at `tcp://…`, in order of preference. Default: `$JUNCTURA_TRANSPORTS`,
    /// else `shm,tcp`. `shm` is memory that both processes map; it is used if the server runs on this machine.
    /// [`Pool::route`] returns the chosen transport and the reason.
    ///
    /// Requires the feature `net`.
    ///
    /// ```
    /// # use junctura::{Code, Pool};
    /// # fn main() -> junctura::Result<()> {
    /// let forbidden = Pool::builder().url("tcp://127.0.0.1:1").transports("carrier pigeons").open();
    /// assert_eq!(forbidden.unwrap_err().code(), Code::InvalidArgument);
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(feature = "net")]
    #[must_use]
    pub fn transports(mut self, ways: impl Into<String>) -> Self {
        self.remote.transports = Some(ways.into());
        self
    }

    /// Sets the file of the token for a pool at `tcp://…`. Default: `$JUNCTURA_TOKEN_FILE` or, beyond loopback,
    /// `~/.config/junctura/token`.
    ///
    /// Requires the feature `net`.
    ///
    /// ```
    /// # use junctura::Pool;
    /// # fn main() -> junctura::Result<()> {
    /// let remote = Pool::builder()
    ///     .url("tcp://node-7.example.org:7000")
    ///     .token_file("viewer.token")
    ///     .ca_file("secrets/ca.pem")
    ///     .mirror_bytes(256 << 20);
    /// # drop(remote);
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(feature = "net")]
    #[must_use]
    pub fn token_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.remote.token_file = Some(path.into());
        self
    }

    /// Sets the file of trusted certificate authorities (PEM). Default: `$JUNCTURA_CA_FILE` or, beyond loopback,
    /// `~/.config/junctura/ca.pem`. With a file, the connection uses TLS, also on loopback; beyond loopback TLS is
    /// mandatory. Without one, a server on loopback must be a process of this user; `none` accepts servers of all users
    /// of this host.
    ///
    /// Requires the feature `net`.
    ///
    /// ```
    /// # use junctura::{Code, Pool};
    /// # fn main() -> junctura::Result<()> {
    /// let remote = Pool::builder().url("tcp://127.0.0.1:1").ca_file("no/such/file.pem").open();
    /// assert_eq!(remote.unwrap_err().code(), Code::NotFound);
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(feature = "net")]
    #[must_use]
    pub fn ca_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.remote.ca_file = Some(path.into());
        self
    }

    /// Sets the size in bytes of the cache for payloads from a pool at `tcp://…` that no client here holds, so that
    /// they are not transferred again. Default: 1 GiB, or 25 % of this machine's memory if that is less.
    ///
    /// Requires the feature `net`.
    ///
    /// ```
    /// # use junctura::Pool;
    /// # fn main() -> junctura::Result<()> {
    /// let viewer = Pool::builder().url("tcp://node-7.example.org:7000").mirror_bytes(256 << 20);
    /// # drop(viewer);
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(feature = "net")]
    #[must_use]
    pub fn mirror_bytes(mut self, bytes: u64) -> Self {
        self.remote.mirror_bytes = Some(bytes);
        self
    }

    /// Sets the number of streams of a connection to a pool at `tcp://…`, from 1 to 8. Default: `$JUNCTURA_STREAMS`,
    /// else 1. A large payload is sent over all streams in parallel, each with its own thread at both ends. This can
    /// increase throughput for objects of several MiB if one stream, or the one core that encrypts it, is slower than
    /// the network. The streams are opened one after the other.
    ///
    /// Requires the feature `net`.
    ///
    /// ```
    /// # use junctura::{Code, Pool};
    /// # fn main() -> junctura::Result<()> {
    /// let renderer = Pool::builder().url("tcp://node-7.example.org:7000").streams(4);
    /// # drop(renderer);
    /// let none = Pool::builder().url("tcp://127.0.0.1:1").streams(0).open();
    /// assert_eq!(none.unwrap_err().code(), Code::InvalidArgument);
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(feature = "net")]
    #[must_use]
    pub fn streams(mut self, streams: usize) -> Self {
        self.remote.streams = Some(streams);
        self
    }

    /// Sets a hook that a wait calls when a signal interrupts it, and that every long wait calls periodically. An error
    /// from the hook ends the wait with that error.
    ///
    /// ```
    /// # use junctura::{Code, Error, Pool};
    /// # fn main() -> junctura::Result<()> {
    /// let hook = || Err(Error::new(Code::Interrupted, "wait", "the user has had enough"));
    /// let pool = Pool::builder().schema("free").on_interrupt(hook).open()?;
    /// assert_eq!(pool.demand("name=late", None).unwrap_err().code(), Code::Interrupted);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn on_interrupt(mut self, hook: impl Fn() -> Result<()> + Send + Sync + 'static) -> Self {
        self.hook = Some(Arc::new(hook));
        self
    }

    /// Acts as a local proxy for the pool at a `tcp://` URL: processes of this user on this machine share one
    /// connection, and a payload for several processes is transferred once. They find the proxy when they
    /// connect to the same URL, or at `address` (`unix:…`) if given. For the pool, each process is a separate client.
    /// Only [`Self::token_file`], [`Self::ca_file`], [`Self::mirror_bytes`] and [`Self::streams`] apply. The proxy
    /// stops when the returned value is dropped.
    ///
    /// Blocks until the upstream server has accepted the connection.
    ///
    /// Requires the feature `net`.
    ///
    /// ```
    /// # use junctura::{Pool, UpstreamProxy};
    /// # use junctura_link::{Gate, GateOptions, ServerIdentity};
    /// # fn main() -> junctura::Result<()> {
    /// # let pool = Pool::builder().schema("free").open()?;
    /// # let any = "tcp://127.0.0.1:0".parse()?;
    /// # let gate = Gate::open(GateOptions::new(any, pool.url().parse()?, ServerIdentity::default()))?;
    /// # let url = gate.endpoint().to_string();
    /// # let address = format!("unix:@doc-upstream-{}", std::process::id());
    /// // In one process of a machine, for all: url is "tcp://node-7:7000", or so.
    /// let upstream: UpstreamProxy = Pool::builder().url(url).upstream(Some(&address))?;
    /// // In each of the others:
    /// let viewer = Pool::connect(&upstream.address().to_string())?;
    /// # viewer.sync(None)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// - `InvalidArgument` without such a URL
    /// - `Unavailable` if no server answers there
    /// - `Denied` for an invalid token or certificate
    /// - `AlreadyExists` if the address is in use by another server
    /// - `Io` if a system call fails
    #[cfg(feature = "net")]
    pub fn upstream(self, address: Option<&str>) -> Result<UpstreamProxy> {
        let url = self.url.unwrap_or_default();
        open_upstream(&url, address, &self.remote)
    }

    /// Opens the pool. Blocks until it is connected.
    ///
    /// # Errors
    /// Those of [`Pool::connect`] and `Pool::embedded`; those of reading a schema; `SchemaMismatch` if the pool has a
    /// different schema under the same name; `Unsupported` for features that this build leaves out.
    pub fn open(self) -> Result<Pool> {
        let mut schemas: Vec<Arc<Schema>> = Vec::new();
        for source in &self.schemas {
            schemas.extend(source.read()?);
        }
        let me = ClientIntroduction {
            name: self.name.or_else(given_name).unwrap_or_else(program_name),
            schemas,
            offer_timeout: self.offer_timeout,
            reuse: self.reuse,
            visitor: self.visitor,
            hook: self.hook,
        };
        let store = self.store.as_deref();
        let Some(url) = self.url else {
            #[cfg(feature = "embedded")]
            {
                let embedded = Server::start_embedded(self.server.options(&me.schemas))?;
                let address = embedded.address().clone();
                return open_pool(PoolAddress::Here(address), me, store, &Arc::new(Some(embedded)));
            }
            #[cfg(not(feature = "embedded"))]
            return Err(lacks_feature("pool in this process", "embedded"));
        };
        let place = PoolAddress::read(&url, &self.remote)?;
        let open = || open_pool(place.clone(), me.clone(), store, &Arc::new(None));
        #[cfg(feature = "embedded")]
        if let (true, PoolAddress::Here(address)) = (self.start, &place) {
            return match open() {
                Err(error) if error.code() == Code::Unavailable => {
                    let (pool, hint) = start(address, &self.server, &self.schemas, open)?;
                    Ok(note_mistakes(pool, hint))
                }
                opened => opened.map(|pool| note_mistakes(pool, None)),
            };
        }
        let opened = open();
        #[cfg(feature = "embedded")]
        let opened = opened.map_err(|error| match &place {
            PoolAddress::Here(address) => with_similar_pool(error, address),
            #[cfg(feature = "net")]
            PoolAddress::There(_) => error,
        });
        opened.map(|pool| note_mistakes(pool, None))
    }
}

#[cfg(feature = "embedded")]
impl ServerSettings {
    fn options(&self, schemas: &[Arc<Schema>]) -> ServerOptions {
        let mut config = PoolConfig {
            checked: self.checked,
            ..PoolConfig::default()
        };
        if !schemas.is_empty() {
            config.schemas = schemas.to_vec();
        }
        if let Some(bytes) = self.budget_bytes {
            config.budget_bytes = bytes;
        }
        if let Some((directory, limit_bytes)) = self.spill.clone() {
            config.spill = Some(SpillConfig::new(directory, limit_bytes, config.budget_bytes));
        }
        if let Some(timeout) = self.orphan_timeout {
            config.orphan_timeout = timeout;
        }
        if let Some(bytes) = self.inline_bytes_max {
            config.inline_bytes_max = bytes;
        }
        config.until_gone.clone_from(&self.until_gone);
        ServerOptions {
            config,
            spin: self.spin.unwrap_or(ServerOptions::SPIN),
            ..ServerOptions::default()
        }
    }
}

/// Returns the name that the environment gives to the program.
fn given_name() -> Option<String> {
    std::env::var("JUNCTURA_NAME").ok().filter(|name| !name.is_empty())
}

fn program_name() -> String {
    let path = std::env::current_exe().ok();
    let name = path
        .as_deref()
        .and_then(Path::file_name)
        .map(|name| name.to_string_lossy().into_owned());
    name.unwrap_or_else(|| "unnamed".to_owned())
}

impl fmt::Debug for PoolBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PoolBuilder({})", self.url.as_deref().unwrap_or("embedded"))
    }
}
