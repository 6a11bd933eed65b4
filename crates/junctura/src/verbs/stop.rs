//! Ending the server of a pool in good order.

use std::time::Duration;

use junctura_model::{Code, Result};
use junctura_wire::Request;
use junctura_wire::body::DrainRequest;

use crate::pending::Pending;
use crate::pool::Pool;

impl Pool {
    /// Stops the server: it takes nothing new from now on (offers, allocations, requirements: `Closed`; new clients:
    /// `Unavailable`), and ends when everything that requirements are owed was received and released. Returns when it has
    /// ended and its address is free. What only its memory held is gone then; objects that are held stay readable.
    ///
    /// `timeout` bounds the wait for those who are owed something: then it ends anyway. Zero ends it at once; `None` waits as
    /// long as it takes, which is for ever where this very client requires something and does not receive it. A second call,
    /// by whatever client, can only bring the end forward.
    ///
    /// ```
    /// # use junctura::{Code, Pool};
    /// # fn main() -> junctura::Result<()> {
    /// let pool = Pool::builder().schema("free").open()?;
    /// pool.stop(None)?;
    /// assert_eq!(pool.offer([("name", "late")], b"").unwrap_err().code(), Code::Closed);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Timeout`, saying what was left and who was owed it: the server has ended all the same. `Disconnected` when something
    /// else ended it meanwhile.
    pub fn stop(&self, timeout: Option<Duration>) -> Result<()> {
        self.begin_stop(timeout)?.wait()
    }

    /// As [`Pool::stop`], without waiting. See [`Pending`].
    ///
    /// # Errors
    /// `Disconnected` or `Closed` when there is no server any more; those of [`Pool::stop`] come with the answer.
    pub fn begin_stop(&self, timeout: Option<Duration>) -> Result<Pending<()>> {
        let connection = self.connection()?;
        let timeout_ms = timeout.map(|time| time.as_nanos().div_ceil(1_000_000) as u64);
        let asked = connection.begin_count(&Request::Drain(DrainRequest { timeout_ms }))?;
        Ok(asked.then(move |left| {
            let ended = match left {
                Err(error) if error.code() != Code::Timeout => return Err(error),
                left => left.map(drop),
            };
            // It answers nothing any more: what comes is the end of the connection, and before that the address is free.
            match connection.begin_stat() {
                Ok(end) => Ok(end.map(|end| match end {
                    Err(error) if !matches!(error.code(), Code::Disconnected | Code::Closed) => Err(error),
                    _ => ended,
                })),
                Err(_) => Ok(Pending::known(&connection, ended)),
            }
        }))
    }
}
