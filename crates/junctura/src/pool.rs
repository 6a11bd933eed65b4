//! The pool as its users hold it: cheap to clone, shared by threads, surviving a fork.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use junctura_model::{Result, Schema};
use junctura_transport::Address;
use junctura_wire::Request;

use crate::builder::PoolBuilder;
use crate::connection::{Connection, unexpected};
use crate::handshake::{Home, Introduction, connect};
use crate::mail::Letter;
use crate::target::find_schema;

/// The shared space in which objects are offered and found.
///
/// Clones share one connection; it ends with the last clone and the last handle made from it. Any thread may use it. In a
/// forked child the pool connects anew when it is first used; other handles that the child inherited stay its parent's.
#[derive(Clone)]
pub struct Pool {
    shared: Arc<Shared>,
}

struct Shared {
    address: Address,
    url: String,
    introduction: Introduction,
    /// Of the process that opened the pool.
    connection: Arc<Connection>,
    /// Of a forked child; untouched in the process that opened the pool, so no fork finds it locked.
    anew: Mutex<Option<Arc<Connection>>>,
}

impl Pool {
    /// A pool that is private to this process and its children, with the built-in schemas. Its server runs on a thread of
    /// this process and ends with the last handle.
    ///
    /// # Errors
    /// `LimitExceeded` or `Io` when the system gives no descriptor or thread.
    pub fn embedded() -> Result<Pool> {
        PoolBuilder::new().open()
    }

    /// Connects to the pool at `url`: `unix:NAME` (of this user), `unix:/path/to/socket`, or what [`Pool::url`] said in
    /// another process.
    ///
    /// # Errors
    /// `Unavailable` when no server is there (see [`PoolBuilder::start`]) or it drains (see [`Pool::stop`]), `Denied` when it is another user's,
    /// `InvalidArgument` for a URL that cannot be read.
    pub fn connect(url: &str) -> Result<Pool> {
        PoolBuilder::new().url(url).open()
    }

    /// Everything that can be set before a pool is opened.
    #[must_use]
    pub fn builder() -> PoolBuilder {
        PoolBuilder::new()
    }

    pub(crate) fn open(address: Address, introduction: Introduction, home: Home) -> Result<Pool> {
        let connection = Arc::new(connect(&address, &introduction, Arc::new(home))?);
        let url = address.to_string();
        Ok(Pool {
            shared: Arc::new(Shared {
                address,
                url,
                introduction,
                connection,
                anew: Mutex::new(None),
            }),
        })
    }

    /// Whether both are clones of one pool.
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
    pub fn incarnation(&self) -> Result<u64> {
        Ok(self.connection()?.greeting.incarnation)
    }

    /// The number that the server gave this client.
    pub fn client(&self) -> Result<u32> {
        Ok(self.connection()?.greeting.client)
    }

    /// The pool's schemas.
    pub fn schemas(&self) -> Result<Vec<Arc<Schema>>> {
        Ok(self.connection()?.greeting.schemas.clone())
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
    pub fn inline_bytes_max(&self) -> Result<u64> {
        Ok(self.connection()?.greeting.inline_bytes_max)
    }

    /// Whether payloads carry checksums (mode `checked`).
    pub fn is_checked(&self) -> Result<bool> {
        Ok(self.connection()?.greeting.checked)
    }

    /// The server's counters, as a JSON document.
    pub fn stat(&self) -> Result<String> {
        match self.connection()?.call(&Request::Stat)? {
            Letter::Stats(text) => Ok(text),
            _ => Err(unexpected("no counters")),
        }
    }

    /// Sends what has gathered (releases, pipelined offers) now, without waiting for answers.
    pub fn flush(&self) -> Result<()> {
        self.connection()?.flush()
    }

    /// Leaves the pool, for all clones: every call fails with `Closed` from now on, and everybody who waits learns it.
    /// Objects that are held stay readable.
    pub fn close(&self) {
        if let Ok(connection) = self.connection() {
            connection.close();
        }
    }

    /// The connection of this process.
    pub(crate) fn connection(&self) -> Result<Arc<Connection>> {
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
        let connection = Arc::new(connect(&shared.address, &shared.introduction, Arc::new(None))?);
        *anew = Some(Arc::clone(&connection));
        Ok(connection)
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pool({})", self.shared.url)
    }
}
