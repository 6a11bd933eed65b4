//! Opens a pool from a task.

use std::future::Future;

use junctura_model::Result;

use crate::beside::beside;
use crate::{Pool, PoolBuilder};

impl PoolBuilder {
    /// Async version of [`PoolBuilder::open`]: a thread connects, and starts a server if requested. If the future is
    /// dropped, a pool that it has opened is closed.
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
    /// `LimitExceeded` if the system provides no thread; those of [`PoolBuilder::open`] arrive with the answer.
    pub fn begin_open(self) -> Result<impl Future<Output = Result<Pool>> + Send + use<>> {
        beside(move || self.open(), drop)
    }
}
