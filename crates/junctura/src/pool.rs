//! The pool as its users hold it: cheap to clone, shared by threads, surviving a fork.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use junctura_model::{Result, Schema};

use crate::array::{OpenArrays, PlanCache};
use crate::builder::PoolBuilder;
use crate::connection::PoolConnection;
use crate::connection::address::PoolAddress;
use crate::connection::handshake::{ClientIntroduction, Home, connect};
use crate::pending::Pending;
use crate::store_fallback::StoreReader;
use crate::target::find_schema;

/// The shared space in which objects are offered and found.
///
/// Clones share one connection; it ends with the last clone and the last handle made from it. Any thread may use it. In a
/// forked child the pool connects anew when it is first used; other handles that the child inherited stay its parent's.
///
/// What a pool is and how it is reached:
/// ```
/// # use junctura::Pool;
/// # fn main() -> junctura::Result<()> {
/// # let pool = Pool::builder().schema("free").open()?;
/// println!("{} by {}, client {}", pool.url(), pool.route()?, pool.client()?);
/// assert_eq!(pool.offer([("name", "a")], b"")?.incarnation, pool.incarnation()?);
/// assert_eq!(pool.schema(None)?.name(), pool.schemas()?[0].name());
/// assert!(pool.inline_bytes_max()? > 0 && !pool.is_checked()?);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Pool {
    shared: Arc<SharedPool>,
}

struct SharedPool {
    place: PoolAddress,
    url: String,
    introduction: ClientIntroduction,
    depot: Option<Arc<StoreReader>>,
    arrays: OpenArrays,
    plans: PlanCache,
    /// Of the process that opened the pool.
    connection: Arc<PoolConnection>,
    /// Of a forked child; untouched in the process that opened the pool, so no fork finds it locked.
    anew: Mutex<Option<Arc<PoolConnection>>>,
}

impl Pool {
    /// A pool that is private to this process and its children, with the built-in schemas. Its server runs on a thread of
    /// this process and ends with the last handle.
    ///
    /// ```
    /// # use junctura::Pool;
    /// # fn main() -> junctura::Result<()> {
    /// let pool = Pool::embedded()?;
    /// assert_eq!(pool.schemas()?.len(), 4); // all that are built in
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Requires the feature `embedded`.
    ///
    /// # Errors
    /// `LimitExceeded` or `Io` when the system gives no descriptor or thread.
    #[cfg(feature = "embedded")]
    pub fn embedded() -> Result<Pool> {
        PoolBuilder::new().open()
    }

    /// Connects to the pool at `url`: `unix:NAME` (of this user), `unix:/path/to/socket`, `tcp://HOST:PORT`, or what
    /// [`Pool::url`] said in another process.
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
    /// `Unavailable` when no server is there (see `PoolBuilder::start`) or it drains (see [`Pool::stop`]), `Denied` when it is another user's,
    /// `InvalidArgument` for a URL that cannot be read, `Unsupported` for one at `tcp://` without the feature `net`.
    pub fn connect(url: &str) -> Result<Pool> {
        PoolBuilder::new().url(url).open()
    }

    /// Everything that can be set before a pool is opened.
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

    pub(crate) fn open(
        place: PoolAddress,
        introduction: ClientIntroduction,
        store: Option<&str>,
        home: Home,
    ) -> Result<Pool> {
        Self::open_with(place, introduction, store, &Arc::new(home))
    }

    fn open_with(
        place: PoolAddress,
        introduction: ClientIntroduction,
        store: Option<&str>,
        home: &Arc<Home>,
    ) -> Result<Pool> {
        let connection = Arc::new(connect(&place, &introduction, home)?);
        let open = |url| StoreReader::open(url, &connection.greeting.schemas).map(Arc::new);
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
                connection,
                anew: Mutex::new(None),
            }),
        })
    }

    /// Another client of the same server, by the same way: a thread that has its own waits for nobody else's. It has neither
    /// the interrupt hook nor the store behind the pool, and keeps an embedded server as this one does.
    #[cfg(feature = "store")]
    pub(crate) fn beside(&self, role: &str) -> Result<Pool> {
        let shared = &*self.shared;
        let introduction = ClientIntroduction {
            name: format!("{} {role}", shared.introduction.name),
            hook: None,
            ..shared.introduction.clone()
        };
        let home = self.connection()?.home();
        Self::open_with(shared.place.clone(), introduction, None, &home)
    }

    /// What the interrupt hook says.
    #[cfg(feature = "store")]
    pub(crate) fn ask_hook(&self) -> Result<()> {
        self.connection()?.ask_hook()
    }

    /// Whether both are clones of one pool.
    ///
    /// ```
    /// # use junctura::Pool;
    /// # fn main() -> junctura::Result<()> {
    /// # let pool = Pool::builder().schema("free").open()?;
    /// assert!(pool.clone().is_same(&pool));
    /// assert!(!Pool::connect(pool.url())?.is_same(&pool)); // another client
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn is_same(&self, other: &Pool) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// What other processes, children among them, give to [`Pool::connect`].
    #[must_use]
    pub fn url(&self) -> &str {
        &self.shared.url
    }

    /// The server's incarnation: the first half of every version that it gives.
    ///
    /// # Errors
    /// Only in a forked child, which connects anew: those of [`Pool::connect`].
    pub fn incarnation(&self) -> Result<u64> {
        Ok(self.connection()?.greeting.incarnation)
    }

    /// How the server is reached, and why so: `shm` (memory that both map), `tcp`, or `tcp, TLS`; and how many
    /// streams, where it is more than one.
    ///
    /// # Errors
    /// Only in a forked child, which connects anew: those of [`Pool::connect`].
    pub fn route(&self) -> Result<String> {
        Ok(self.connection()?.route())
    }

    /// The number that the server gave this client.
    ///
    /// # Errors
    /// Only in a forked child, which connects anew: those of [`Pool::connect`].
    pub fn client(&self) -> Result<u32> {
        Ok(self.connection()?.greeting.client)
    }

    /// Bytes of the largest payload that the pool takes: an offer of more fails with `TooLarge`.
    ///
    /// ```
    /// # use junctura::Pool;
    /// # fn main() -> junctura::Result<()> {
    /// # let pool = Pool::builder().schema("free").open()?;
    /// assert!(pool.payload_bytes_max()? >= 1 << 20);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Only in a forked child, which connects anew: those of [`Pool::connect`].
    pub fn payload_bytes_max(&self) -> Result<u64> {
        Ok(self.connection()?.greeting.payload_bytes_max)
    }

    /// The pool's schemas, but that of pieces of arrays.
    ///
    /// # Errors
    /// Only in a forked child, which connects anew: those of [`Pool::connect`].
    pub fn schemas(&self) -> Result<Vec<Arc<Schema>>> {
        let mut schemas = self.connection()?.greeting.schemas.clone();
        schemas.retain(|schema| !schema.is_aside());
        Ok(schemas)
    }

    /// The schema of this name, or the one that is meant where none is named.
    ///
    /// # Errors
    /// `NotFound` when the pool has no such schema.
    pub fn schema(&self, name: Option<&str>) -> Result<Arc<Schema>> {
        let connection = self.connection()?;
        let number = match name {
            None => connection.greeting.default_schema,
            Some(name) => find_schema(&connection.greeting.schemas, name)?,
        };
        Ok(Arc::clone(connection.schema(number)))
    }

    /// Payloads of at most this many bytes travel inside the message.
    ///
    /// # Errors
    /// Only in a forked child, which connects anew: those of [`Pool::connect`].
    pub fn inline_bytes_max(&self) -> Result<u64> {
        Ok(self.connection()?.greeting.inline_bytes_max)
    }

    /// Whether payloads carry checksums (mode `checked`).
    ///
    /// # Errors
    /// Only in a forked child, which connects anew: those of [`Pool::connect`].
    pub fn is_checked(&self) -> Result<bool> {
        Ok(self.connection()?.greeting.checked)
    }

    /// The server's counters, as a JSON document.
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
    /// `Disconnected` or `Closed` when there is no server any more.
    pub fn stat(&self) -> Result<String> {
        self.begin_stat()?.wait()
    }

    /// As [`Pool::stat`], without waiting. See [`Pending`].
    ///
    /// # Errors
    /// `Disconnected` or `Closed` when there is no server any more.
    pub fn begin_stat(&self) -> Result<Pending<String>> {
        self.connection()?.begin_stat()
    }

    /// Sends what has gathered (releases, pipelined offers) now, without waiting for answers.
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
    /// `Disconnected` or `Closed` when there is no server any more.
    pub fn flush(&self) -> Result<()> {
        self.connection()?.flush()
    }

    /// As [`Pool::flush`], without waiting for room in the socket. See [`Pending`].
    ///
    /// # Errors
    /// `Disconnected` or `Closed` when there is no server any more.
    pub fn begin_flush(&self) -> Result<Pending<()>> {
        let connection = self.connection()?;
        if connection.lock()?.send()? {
            return Ok(Pending::known(&connection, Ok(())));
        }
        let there = Arc::clone(&connection);
        Ok(Pending::work(&connection, move || there.flush(), drop))
    }

    /// Leaves the pool, for all clones: every call fails with `Closed` from now on, and everybody who waits learns it.
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

    /// As [`Pool::close`], without waiting. See [`Pending`].
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
    /// Only in a forked child, which connects anew: those of [`Pool::connect`].
    pub fn begin_close(&self) -> Result<Pending<()>> {
        let connection = self.connection()?;
        let there = Arc::clone(&connection);
        let close = move || {
            there.close();
            Ok(())
        };
        Ok(Pending::work(&connection, close, drop))
    }

    /// The arrays of which this process has offered pieces, and that are not complete.
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
        if !shared.connection.is_inherited() {
            return Ok(Arc::clone(&shared.connection));
        }
        let mut anew = shared.anew.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(connection) = &*anew
            && !connection.is_inherited()
        {
            return Ok(Arc::clone(connection));
        }
        let connection = Arc::new(connect(&shared.place, &shared.introduction, &Arc::new(None))?);
        connection.put_before(self.depot());
        *anew = Some(Arc::clone(&connection));
        Ok(connection)
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pool({})", self.shared.url)
    }
}
