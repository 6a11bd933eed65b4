//! What can be set before a pool is opened.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use junctura_memory::Reuse;
use junctura_model::{Code, Error, Result, Schema};
use junctura_pool::server::{Server, ServerOptions};
use junctura_pool::{Config, Spill};
use junctura_transport::Address;

use crate::connection::Hook;
use crate::handshake::Introduction;
use crate::pool::Pool;
use crate::start::start;

/// Where a schema comes from.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    Builtin(String),
    Text(String),
    File(PathBuf),
}

impl Source {
    fn read(&self) -> Result<Arc<Schema>> {
        match self {
            Source::Builtin(name) => Schema::builtin(name).ok_or_else(|| {
                let cause = format!("built in are {}", Schema::BUILTIN_NAMES.join(", "));
                Error::new(Code::NotFound, format!("schema {name}"), cause)
            }),
            Source::Text(text) => Schema::parse_yaml(text).map(Arc::new),
            Source::File(path) => {
                let subject = path.display().to_string();
                let text = std::fs::read_to_string(path)
                    .map_err(|error| Error::new(Code::Io, subject.as_str(), error.to_string()))?;
                Schema::parse_yaml(&text).map(Arc::new).map_err(|error| {
                    let named = Error::new(error.code(), format!("{subject}: {}", error.subject()), error.cause());
                    error
                        .position()
                        .map_or_else(|| named.clone(), |at| named.clone().at(at))
                })
            }
        }
    }
}

/// How a server that this process starts or embeds is to be.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServerSettings {
    pub(crate) schemas: Vec<Source>,
    pub(crate) budget_bytes: Option<u64>,
    /// A directory, and how many bytes may go there.
    pub(crate) spill: Option<(PathBuf, Option<u64>)>,
    pub(crate) orphan_timeout: Option<Duration>,
    pub(crate) inline_bytes_max: Option<u64>,
    pub(crate) checked: bool,
    pub(crate) spin: Option<Duration>,
}

/// Opens a pool; every setting has a default.
#[derive(Clone, Default)]
pub struct PoolBuilder {
    url: Option<String>,
    name: Option<String>,
    start: bool,
    offer_timeout: Option<Duration>,
    reuse: Reuse,
    visitor: bool,
    hook: Option<Hook>,
    server: ServerSettings,
}

impl PoolBuilder {
    /// A pool that is embedded in this process, with the built-in schemas.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Where the pool is: `unix:NAME`, `unix:/path/to/socket`, `unix:@NAME`. Without one it is embedded in this process.
    #[must_use]
    pub fn url(mut self, url: impl Into<String>) -> Self {
        self.url = Some(url.into());
        self
    }

    /// What this client calls itself; others see it in events and counters. By default the name of the program.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Adds a built-in schema, by its name. The first schema that is added is meant where none is named.
    ///
    /// A pool that is embedded or started here knows the schemas that were added, or all built-in ones if none was. One
    /// that is there already must agree with them: `SchemaMismatch` names the first difference.
    #[must_use]
    pub fn schema(mut self, builtin_name: impl Into<String>) -> Self {
        self.server.schemas.push(Source::Builtin(builtin_name.into()));
        self
    }

    /// Adds a schema, as the text of a schema file.
    #[must_use]
    pub fn schema_yaml(mut self, text: impl Into<String>) -> Self {
        self.server.schemas.push(Source::Text(text.into()));
        self
    }

    /// Adds a schema from a file.
    #[must_use]
    pub fn schema_file(mut self, path: impl AsRef<Path>) -> Self {
        self.server.schemas.push(Source::File(path.as_ref().to_owned()));
        self
    }

    /// Whether to start a server where none runs at the URL. It ends itself when nobody is there and nothing lies in it.
    /// The program is `$JUNCTURA_PROGRAM`, else the `junctura` beside this program, else the one on the path.
    #[must_use]
    pub fn start(mut self, start: bool) -> Self {
        self.start = start;
        self
    }

    /// Bytes of payload memory that the pool may take. For a pool that is embedded or started here.
    #[must_use]
    pub fn budget_bytes(mut self, bytes: u64) -> Self {
        self.server.budget_bytes = Some(bytes);
        self
    }

    /// Where payloads go that memory has no room for: a directory on a local disk, which is made if it is not there, and how many
    /// bytes may go there (`None`: four times the memory). Nothing is seen of them there, and nothing is left when the pool
    /// ends, however it ends. Without one, offers wait when memory is full. For a pool that is embedded or started here.
    #[must_use]
    pub fn spill(mut self, directory: impl Into<PathBuf>, limit_bytes: Option<u64>) -> Self {
        self.server.spill = Some((directory.into(), limit_bytes));
        self
    }

    /// How long a bundle that is not complete stays when no producer has it open, before it is aborted; a minute unless told.
    /// For a pool that is embedded or started here.
    #[must_use]
    pub fn orphan_timeout(mut self, timeout: Duration) -> Self {
        self.server.orphan_timeout = Some(timeout);
        self
    }

    /// Whether payloads carry checksums, verified at delivery. For a pool that is embedded or started here.
    #[must_use]
    pub fn checked(mut self, checked: bool) -> Self {
        self.server.checked = checked;
        self
    }

    /// Payloads of at most so many bytes travel inside the message. For a pool that is embedded or started here.
    #[must_use]
    pub fn inline_bytes_max(mut self, bytes: u64) -> Self {
        self.server.inline_bytes_max = Some(bytes);
        self
    }

    /// How long the embedded server looks for work before it sleeps, where that pays; 20 microseconds unless told. Longer is
    /// lower latency for a core that is busy so much longer.
    #[must_use]
    pub fn spin(mut self, spin: Duration) -> Self {
        self.server.spin = Some(spin);
        self
    }

    /// How long an offer or an allocation may wait for memory before it fails with `PoolFull`; `None`, the default: for ever.
    #[must_use]
    pub fn offer_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.offer_timeout = timeout;
        self
    }

    /// Whether every slot comes round, the one that was freed first being used next; by default it is the one that was freed
    /// last, which is warm in the cache. For measurements.
    #[must_use]
    pub fn rotate_slots(mut self, rotate: bool) -> Self {
        self.reuse = if rotate { Reuse::Oldest } else { Reuse::Latest };
        self
    }

    /// Whether this client only looks at the counters or stops the server: such a client is let in even while the server
    /// drains ([`Pool::stop`]).
    #[must_use]
    pub fn visitor(mut self, visitor: bool) -> Self {
        self.visitor = visitor;
        self
    }

    /// Called by a wait that a signal interrupts, and now and then by every long one; an error ends the wait with it.
    #[must_use]
    pub fn on_interrupt(mut self, hook: impl Fn() -> Result<()> + Send + Sync + 'static) -> Self {
        self.hook = Some(Arc::new(hook));
        self
    }

    /// Opens the pool.
    ///
    /// # Errors
    /// Those of [`Pool::connect`] and [`Pool::embedded`]; what is wrong with a schema; `SchemaMismatch` where the pool has
    /// another schema under the same name.
    pub fn open(self) -> Result<Pool> {
        let schemas: Vec<Arc<Schema>> = self.server.schemas.iter().map(Source::read).collect::<Result<_>>()?;
        let me = Introduction {
            name: self.name.unwrap_or_else(program_name),
            schemas,
            offer_timeout: self.offer_timeout,
            reuse: self.reuse,
            visitor: self.visitor,
            hook: self.hook,
        };
        let Some(url) = self.url else {
            let embedded = Server::start_embedded(self.server.options(&me.schemas))?;
            let address = embedded.address().clone();
            return Pool::open(address, me, Some(embedded));
        };
        let address: Address = url.parse()?;
        match Pool::open(address.clone(), me.clone(), None) {
            Err(error) if error.code() == Code::Unavailable && self.start => {
                start(&address, &self.server, || Pool::open(address.clone(), me.clone(), None))
            }
            other => other,
        }
    }
}

impl ServerSettings {
    fn options(&self, schemas: &[Arc<Schema>]) -> ServerOptions {
        let mut config = Config {
            checked: self.checked,
            ..Config::default()
        };
        if !schemas.is_empty() {
            config.schemas = schemas.to_vec();
        }
        if let Some(bytes) = self.budget_bytes {
            config.budget_bytes = bytes;
        }
        if let Some((directory, limit_bytes)) = self.spill.clone() {
            config.spill = Some(Spill::new(directory, limit_bytes, config.budget_bytes));
        }
        if let Some(timeout) = self.orphan_timeout {
            config.orphan_timeout = timeout;
        }
        if let Some(bytes) = self.inline_bytes_max {
            config.inline_bytes_max = bytes;
        }
        ServerOptions {
            config,
            end_when_idle: None,
            spin: self.spin.unwrap_or(ServerOptions::SPIN),
            drain_timeout: ServerOptions::DRAIN_TIMEOUT,
        }
    }
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
