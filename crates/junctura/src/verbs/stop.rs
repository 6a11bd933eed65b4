//! Graceful shutdown of a pool's server.

use std::time::Duration;

use junctura_model::{Code, Result};
use junctura_wire::Request;
use junctura_wire::body::DrainRequest;

use crate::pending::Pending;
use crate::pool::Pool;

impl Pool {
    /// Drains and stops the server. It rejects new offers, allocations and requirements with `Closed`, and new clients
    /// with `Unavailable`, except readers of named requirements and groups with outstanding objects; it exits when all
    /// outstanding objects of requirements were received and released. Follows without a requirement receive what was
    /// visible; one whose reader releases nothing for 10 s is not waited for, and gets a gap with the reason `stopped`.
    /// Blocks until the server has exited and its address is free. Objects that only its memory held are lost; objects
    /// that are held stay readable.
    ///
    /// `timeout` limits the drain: after it the server exits in any case. Zero exits at once. `None` waits without
    /// limit, which is forever if this client itself has a requirement and does not receive its objects. A second call,
    /// by any client, can only shorten the drain.
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
    /// `Timeout`, with the objects and consumers that were outstanding: the server has exited all the same. `Gone`, with
    /// the same, if the drain has ended without the timeout, and a follow that was not waited for missed objects.
    /// `Disconnected` if something else ended the server meanwhile.
    pub fn stop(&self, timeout: Option<Duration>) -> Result<()> {
        self.begin_stop(timeout)?.wait()
    }

    /// Non-blocking version of [`Pool::stop`]. See [`Pending`].
    ///
    /// # Errors
    /// `Disconnected` or `Closed` if the connection has ended; those of [`Pool::stop`] arrive with the answer.
    pub fn begin_stop(&self, timeout: Option<Duration>) -> Result<Pending<()>> {
        let connection = self.connection()?;
        let timeout_ms = timeout.map(|time| time.as_nanos().div_ceil(1_000_000) as u64);
        let asked = connection.begin_count(&Request::Drain(DrainRequest { timeout_ms }))?;
        Ok(asked.then(move |left| {
            let ended = match left {
                Err(error) if !matches!(error.code(), Code::Timeout | Code::Gone) => return Err(error),
                left => left.map(drop),
            };
            // The server answers no more requests: the next event is the end of the connection, and the address is free
            // before that.
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
