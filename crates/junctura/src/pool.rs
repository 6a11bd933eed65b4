//! The pool as its users hold it: cheap to clone, shared by threads, surviving a fork.

use std::sync::Arc;

use junctura_model::{Result, Schema};

use crate::builder::PoolBuilder;

/// The shared space in which objects are offered and found.
///
/// Clones share one connection; it ends with the last clone and the last handle made from it. Any thread may use it.
/// In a forked child the pool connects anew when it is first used.
#[derive(Clone, Debug)]
pub struct Pool {
}

impl Pool {
    /// A pool that is private to this process and its children: the server runs on a thread of this process and ends with
    /// the last handle.
    pub fn embedded() -> Result<Pool> {
        PoolBuilder::new().open()
    }

    /// Connects to the pool at `url`: `unix:NAME` (a pool of this user), `unix:/path/to/socket`, or what
    /// [`Pool::url`] of another process said.
    ///
    /// # Errors
    /// `Unavailable` when no server is there (see [`PoolBuilder::start`]), `InvalidArgument` for a URL that cannot be read.
    pub fn connect(url: &str) -> Result<Pool> {
        PoolBuilder::new().url(url).open()
    }

    /// Everything that can be set before a pool is opened.
    #[must_use]
    pub fn builder() -> PoolBuilder {
        PoolBuilder::new()
    }

    /// What other processes, children among them, give to [`Pool::connect`].
    #[must_use]
    pub fn url(&self) -> &str;

    /// The server's incarnation: the first half of every version that it gives.
    pub fn incarnation(&self) -> Result<u64>;

    /// The number that the server gave this client.
    pub fn client(&self) -> Result<u32>;

    /// The pool's schemas, in the order of their numbers.
    pub fn schemas(&self) -> Result<Vec<Arc<Schema>>>;

    /// The schema of this name, or the one that is used where none is named.
    pub fn schema(&self, name: Option<&str>) -> Result<Arc<Schema>>;

    /// Payloads of at most this many bytes travel inside the message.
    pub fn inline_bytes_max(&self) -> Result<u64>;

    /// The server's counters, as a JSON document.
    pub fn stat(&self) -> Result<String>;

    /// Sends everything that is batched (releases, pipelined offers) now, without waiting for answers.
    pub fn flush(&self) -> Result<()>;

    /// Leaves the pool: every handle made from it fails with `Closed` from now on; views of objects stay readable.
    pub fn close(&self);
}
