//! Opening a pool from a task.

use std::future::Future;

use junctura_model::Result;

use crate::beside::beside;
use crate::{Pool, PoolBuilder};

impl PoolBuilder {
    /// As [`PoolBuilder::open`], for a task: a thread connects, and starts a server where that is asked for. A pool that was opened
    /// for a future that is dropped is closed again.
    ///
    /// Requires the feature `async`.
    ///
    /// ```
    /// # use junctura::Pool;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> junctura::Result<()> {
    /// let pool = Pool::builder().schema("free").begin_open()?.await?;
    /// pool.begin_sync()?.await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `LimitExceeded` when the system gives no thread; those of [`PoolBuilder::open`] come with the answer.
    pub fn begin_open(self) -> Result<impl Future<Output = Result<Pool>> + Send + use<>> {
        beside(move || self.open(), drop)
    }
}
