//! The pool handle: cheap to clone, shared by threads, usable after a fork.

use std::fmt;
use std::sync::{Arc, OnceLock};

use junctura_model::{Result, Schema};

use crate::array::{OpenArrays, PlanCache};
use crate::builder::PoolBuilder;
use crate::connection::PoolConnection;
use crate::connection::address::PoolAddress;
use crate::connection::after_fork::ProcessConnection;
use crate::connection::handshake::{ClientIntroduction, Home, connect};
use crate::connection::note::state_note;
use crate::pending::Pending;
use crate::pool_board::PoolBoard;
use crate::store_fallback::StoreReader;

/// A handle to the shared space in which objects are offered and found.
///
/// Clones share one connection, which closes when the last clone and the last handle made from it are dropped. The
/// handle is thread-safe. In a forked child the pool reconnects at its first use; other handles that the child
/// inherited belong to the parent.
///
/// Identity and route of a pool:
/// ```
/// # use junctura::Pool;
/// # fn main() -> junctura::Result<()> {
/// # let pool = Pool::builder().schema("free").open()?;
/// println!("{} by {}, client {}", pool.url(), pool.route()?, pool.client()?);
/// assert_eq!(pool.offer([("name", "a")], b"")?.incarnation, pool.incarnation()?);
/// assert_eq!(pool.schema(None)?.name(), pool.schemas()?[0].name());
///
/// assert!(pool.clone() == pool); // one pool
/// assert!(Pool::connect(pool.url())? != pool); // another client
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Pool {
    shared: Arc<SharedPool>,
}

/// How a server treats payloads.
///
/// ```
/// # use junctura::{Code, Pool};
/// # fn main() -> junctura::Result<()> {
/// # let pool = Pool::builder().schema("free").open()?;
/// let rules = pool.payload_rules()?;
/// assert!(!rules.checked && rules.inline_bytes_max < rules.bytes_max);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PayloadRules {
    /// The largest payload that the pool accepts, in bytes. A larger offer fails with `TooLarge`.
    pub bytes_max: u64,
    /// The size in bytes up to which a payload travels inside the message.
    pub inline_bytes_max: u64,
    /// Payloads carry checksums (mode `checked`).
    pub checked: bool,
}

struct SharedPool {
    place: PoolAddress,
    url: String,
    introduction: ClientIntroduction,
    depot: Option<Arc<StoreReader>>,
    arrays: OpenArrays,
    plans: PlanCache,
    connection: ProcessConnection,
    /// See [`crate::PoolReasons::opening_mistakes`].
    mistakes: OnceLock<Vec<String>>,
}

impl Pool {
    /// Opens a pool that is private to this process and its children, with the built-in schemas. Its server runs on a
    /// thread of this process and ends with the last handle.
    ///
    /// ```
    /// # use junctura::Pool;
    /// # fn main() -> junctura::Result<()> {
    /// let pool = Pool::embedded()?;
    /// assert_eq!(pool.schemas()?.len(), junctura::Schema::BUILTIN_NAMES.len()); // all that are built in
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Requires the feature `embedded`.
    ///
    /// # Errors
    /// `LimitExceeded` or `Io` if the system provides no descriptor or thread.
    #[cfg(feature = "embedded")]
    pub fn embedded() -> Result<Pool> {
        PoolBuilder::new().open()
    }

    /// Connects to the pool at `url`: `unix:NAME` (of this user), `unix:/path/to/socket`, `tcp://HOST:PORT`, or the
    /// result of [`Pool::url`] in another process.
    ///
    /// ```
    /// # use junctura::Pool;
    /// # fn main() -> junctura::Result<()> {
    /// # let served = Pool::builder().schema("free").open()?;
    /// # let url = served.url();
    /// let pool = Pool::connect(url)?; // such as "unix:fields", or "tcp://node-7:7000"
    /// pool.offer([("name", "a")], b"payload")?;
    /// # assert_eq!(served.list("")?.len(), 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// - `Unavailable` if no server is running there (see `PoolBuilder::start`) or the server drains (see
    ///   [`Pool::stop`])
    /// - `Denied` if the server belongs to another user
    /// - `InvalidArgument` for an invalid URL
    /// - `Unsupported` for a `tcp://` URL without the feature `net`
    pub fn connect(url: &str) -> Result<Pool> {
        PoolBuilder::new().url(url).open()
    }

    /// Returns a builder with all settings for opening a pool.
    ///
    /// ```
    /// # use junctura::Pool;
    /// # fn main() -> junctura::Result<()> {
    /// let pool = Pool::builder().schema("free").budget_bytes(64 << 20).open()?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn builder() -> PoolBuilder {
        PoolBuilder::new()
    }

    /// Opens another connection to the same server over the same route, for a thread that must not share a connection.
    /// The new client has neither the interrupt hook nor the store behind the pool. It keeps an embedded server
    /// running, as this client does.
    #[cfg(feature = "store")]
    pub(crate) fn beside(&self, role: &str) -> Result<Pool> {
        let shared = &*self.shared;
        let introduction = ClientIntroduction {
            name: format!("{} {role}", shared.introduction.name),
            hook: None,
            ..shared.introduction.clone()
        };
        let home = self.connection()?.home();
        open_pool(shared.place.clone(), introduction, None, &home)
    }

    /// Returns the URL that other processes, including children, pass to [`Pool::connect`].
    #[must_use]
    pub fn url(&self) -> &str {
        &self.shared.url
    }

    /// Returns the server's incarnation: the first half of every version that the server assigns.
    ///
    /// # Errors
    /// Only in a forked child, which reconnects: those of [`Pool::connect`].
    pub fn incarnation(&self) -> Result<u64> {
        Ok(self.connection()?.greeting.incarnation)
    }

    /// Returns the route to the server and the reason for its choice: `shm` (memory that both processes map), `tcp`, or
    /// `tcp, TLS`; also the number of streams if there is more than one.
    ///
    /// # Errors
    /// Only in a forked child, which reconnects: those of [`Pool::connect`].
    pub fn route(&self) -> Result<String> {
        Ok(self.connection()?.route())
    }

    /// Returns the number that the server assigned to this client.
    ///
    /// # Errors
    /// Only in a forked child, which reconnects: those of [`Pool::connect`].
    pub fn client(&self) -> Result<u32> {
        Ok(self.connection()?.greeting.client)
    }

    /// Returns how the server treats payloads: limits, and whether they carry checksums.
    ///
    /// ```
    /// # use junctura::Pool;
    /// # fn main() -> junctura::Result<()> {
    /// # let pool = Pool::builder().schema("free").open()?;
    /// let rules = pool.payload_rules()?;
    /// assert!(rules.bytes_max >= 1 << 20 && rules.inline_bytes_max < rules.bytes_max && !rules.checked);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Only in a forked child, which reconnects: those of [`Pool::connect`].
    pub fn payload_rules(&self) -> Result<PayloadRules> {
        let connection = self.connection()?;
        Ok(PayloadRules {
            bytes_max: connection.greeting.payload_bytes_max,
            inline_bytes_max: connection.greeting.inline_bytes_max,
            checked: connection.greeting.checked,
        })
    }

    /// Returns the pool's schemas, except the internal one for pieces of arrays.
    ///
    /// # Errors
    /// Only in a forked child, which reconnects: those of [`Pool::connect`].
    pub fn schemas(&self) -> Result<Vec<Arc<Schema>>> {
        let mut schemas = self.connection()?.greeting.schemas.all().to_vec();
        schemas.retain(|schema| !schema.is_aside());
        Ok(schemas)
    }

    /// Returns the schema with this name, or the default schema for `None`.
    ///
    /// # Errors
    /// `NotFound` if the pool has no such schema.
    pub fn schema(&self, name: Option<&str>) -> Result<Arc<Schema>> {
        let connection = self.connection()?;
        let number = match name {
            None => connection.greeting.default_schema,
            Some(name) => connection.greeting.schemas.find(name)?,
        };
        Ok(Arc::clone(connection.schema(number)))
    }

    /// Returns the server's counters as a JSON document. Blocks until the server answers.
    ///
    /// ```
    /// # use junctura::Pool;
    /// # fn main() -> junctura::Result<()> {
    /// # let pool = Pool::builder().schema("free").open()?;
    /// assert!(pool.stat()?.contains("\"clients\""));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Disconnected` or `Closed` if the connection has ended.
    pub fn stat(&self) -> Result<String> {
        self.begin_stat()?.wait()
    }

    /// Non-blocking version of [`Pool::stat`]. See [`Pending`].
    ///
    /// # Errors
    /// `Disconnected` or `Closed` if the connection has ended.
    pub fn begin_stat(&self) -> Result<Pending<String>> {
        self.connection()?.begin_stat()
    }

    /// Maps the board of the server: its numbers on a page of shared memory. Blocks until the server answers; reading the board
    /// needs no answer, and works while the server hangs.
    ///
    /// ```
    /// # use junctura::Pool;
    /// # fn main() -> junctura::Result<()> {
    /// # let pool = Pool::builder().schema("free").open()?;
    /// pool.offer([("name", "a")], b"")?;
    /// let board = pool.board()?;
    /// assert_eq!(board.snapshot().counter(junctura::BoardCounter::Offered), 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Unsupported` for a pool of another machine; `Denied` if the client's token lacks the right `read`; `Disconnected` or
    /// `Closed` if the connection has ended.
    pub fn board(&self) -> Result<PoolBoard> {
        self.begin_board()?.wait()
    }

    /// Non-blocking version of [`Pool::board`]. See [`Pending`].
    ///
    /// ```
    /// # use junctura::Pool;
    /// # fn main() -> junctura::Result<()> {
    /// # let pool = Pool::builder().schema("free").open()?;
    /// let board = pool.begin_board()?.wait()?;
    /// assert_eq!(board.head().pid, std::process::id()); // this pool is embedded
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Disconnected` or `Closed` if the connection has ended.
    pub fn begin_board(&self) -> Result<Pending<PoolBoard>> {
        PoolBoard::begin(&self.connection()?)
    }

    /// States what this client works on, for people looking at the pool: `junctura top`, `stat` and the board show it. The last note
    /// counts; at most one is sent in a second, so a program can state each of its steps. An empty text removes the note. Does
    /// not block, and has no answer.
    ///
    /// ```
    /// # use junctura::Pool;
    /// # fn main() -> junctura::Result<()> {
    /// # let pool = Pool::builder().schema("free").open()?;
    /// pool.note("step=36, of=240")?;
    /// pool.sync(None)?;
    /// assert!(pool.stat()?.contains("step=36, of=240"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` for a text of more than 1,024 bytes or with a control character; `Disconnected` or `Closed` if the
    /// connection has ended.
    pub fn note(&self, text: impl AsRef<str>) -> Result<()> {
        state_note(&self.connection()?, text.as_ref())
    }

    /// Sends buffered releases and pipelined offers now. Blocks while the socket is full, but does not wait for
    /// answers.
    ///
    /// ```
    /// # use junctura::Pool;
    /// # fn main() -> junctura::Result<()> {
    /// # let pool = Pool::builder().schema("free").open()?;
    /// # pool.offer([("name", "a")], b"")?;
    /// drop(pool.demand("name=a", None)?);
    /// pool.flush()?; // the release has left this process; `sync` waits until the server has it
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Disconnected` or `Closed` if the connection has ended.
    pub fn flush(&self) -> Result<()> {
        self.connection()?.flush()
    }

    /// Non-blocking version of [`Pool::flush`]: does not wait for space in the socket. See [`Pending`].
    ///
    /// # Errors
    /// `Disconnected` or `Closed` if the connection has ended.
    pub fn begin_flush(&self) -> Result<Pending<()>> {
        let connection = self.connection()?;
        if connection.lock()?.send()? {
            return Ok(Pending::known(&connection, Ok(())));
        }
        let there = Arc::clone(&connection);
        Ok(Pending::work(&connection, move || there.flush(), drop))
    }

    /// Closes the connection of all clones. Every later call, and every call that is waiting, fails with `Closed`.
    /// Objects that are held stay readable.
    ///
    /// ```
    /// # use junctura::{Code, Pool};
    /// # fn main() -> junctura::Result<()> {
    /// # let pool = Pool::builder().schema("free").open()?;
    /// # pool.offer([("name", "a")], b"payload")?;
    /// let held = pool.demand("name=a", None)?;
    /// pool.close();
    /// assert_eq!(pool.list("").unwrap_err().code(), Code::Closed);
    /// assert_eq!(&held[..], b"payload");
    /// # Ok(())
    /// # }
    /// ```
    pub fn close(&self) {
        if let Ok(connection) = self.connection() {
            connection.close();
        }
    }

    /// Non-blocking version of [`Pool::close`]. See [`Pending`].
    ///
    /// ```
    /// # use junctura::Pool;
    /// # fn main() -> junctura::Result<()> {
    /// # let pool = Pool::builder().schema("free").open()?;
    /// pool.begin_close()?.wait()?;
    /// assert!(pool.list("").is_err());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Only in a forked child, which reconnects: those of [`Pool::connect`].
    pub fn begin_close(&self) -> Result<Pending<()>> {
        let connection = self.connection()?;
        let there = Arc::clone(&connection);
        let close = move || {
            there.close();
            Ok(())
        };
        Ok(Pending::work(&connection, close, drop))
    }

    /// Arrays for which this process has offered pieces and which are incomplete.
    pub(crate) fn arrays(&self) -> &OpenArrays {
        &self.shared.arrays
    }

    /// Plans that may be needed again.
    pub(crate) fn plans(&self) -> &PlanCache {
        &self.shared.plans
    }

    /// The store behind the pool.
    pub(crate) fn depot(&self) -> Option<&Arc<StoreReader>> {
        self.shared.depot.as_ref()
    }

    /// The connection of this process.
    pub(crate) fn connection(&self) -> Result<Arc<PoolConnection>> {
        let shared = &*self.shared;
        shared.connection.get(|| {
            let connection = Arc::new(connect(&shared.place, &shared.introduction, &Arc::new(None))?);
            connection.put_before(self.depot());
            Ok(connection)
        })
    }
}

/// Connects to the pool at a place.
pub(crate) fn open_pool(
    place: PoolAddress,
    introduction: ClientIntroduction,
    store: Option<&str>,
    home: &Arc<Home>,
) -> Result<Pool> {
    let connection = Arc::new(connect(&place, &introduction, home)?);
    let open = |url| StoreReader::open(url, connection.greeting.schemas.all()).map(Arc::new);
    let depot = store.map(open).transpose()?;
    connection.put_before(depot.as_ref());
    let url = place.to_string();
    Ok(Pool {
        shared: Arc::new(SharedPool {
            place,
            url,
            introduction,
            depot,
            arrays: OpenArrays::default(),
            plans: PlanCache::default(),
            connection: ProcessConnection::new(connection),
            mistakes: OnceLock::new(),
        }),
    })
}

/// Notes the probable mistakes in how a pool was opened, and reports them as warnings of `tracing`. `hint`: that of the start of a server.
pub(crate) fn note_mistakes(pool: Pool, hint: Option<String>) -> Pool {
    let differing = differing_schemas(&pool).unwrap_or_default();
    let mistakes = pool
        .shared
        .mistakes
        .get_or_init(|| hint.into_iter().chain(differing).collect());
    for mistake in mistakes {
        tracing::warn!(target: "junctura::open", pool = pool.url(), "{mistake}");
    }
    pool
}

/// Returns the differences between the client's schemas and those of the server.
fn differing_schemas(pool: &Pool) -> Result<Vec<String>> {
    let connection = pool.connection()?;
    let schemas = &connection.greeting.schemas;
    let own = pool.shared.introduction.schemas.iter();
    // A name alone means the pool's schema of this name.
    let own = own.filter(|own| Schema::builtin(own.name()).is_none_or(|builtin| builtin != **own));
    let differing = own.filter_map(|own| {
        let served = schemas.get(schemas.position(own.name())?)?;
        let differences = own.differences(served);
        (!differences.is_empty()).then(|| {
            format!(
                "schema {} of this client (here) differs from that of the pool (there), which applies: {}",
                own.name(),
                differences.join("; ")
            )
        })
    });
    Ok(differing.collect())
}

/// See [`crate::PoolReasons::opening_mistakes`].
pub(crate) fn opening_mistakes(pool: &Pool) -> Vec<String> {
    pool.shared.mistakes.get().cloned().unwrap_or_default()
}

/// Clones of one pool are equal. Two pools that were opened separately differ: they are two clients.
impl PartialEq for Pool {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }
}

impl Eq for Pool {}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pool({})", self.shared.url)
    }
}
