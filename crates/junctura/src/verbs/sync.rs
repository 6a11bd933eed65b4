//! Synchronization: all earlier requests are in effect.

use std::time::Duration;

use junctura_model::{Code, Error, Result};
use junctura_wire::Request;

use crate::connection::in_flight::{ExchangeKind, ServerMessage};
use crate::connection::state::StreamStop;
use crate::connection::unexpected;
use crate::pending::{Pending, RequestOutcome};
use crate::pool::Pool;

impl Pool {
    /// Blocks until all earlier requests through this pool are in effect, independent of what happens to this process
    /// afterwards: objects that any thread released or gave back are released or given back at the server; offers of a
    /// [`Pipeline`](crate::Pipeline) are visible, staged or rejected; dropped handles have ended. Cost: one round trip,
    /// and work in the server that does not depend on the size of the pool.
    ///
    /// Releases are not acknowledged. If a process is killed, or its network is cut, right after a release, the release
    /// may be lost: call this before you report elsewhere that a piece of work is done. The call waits for offers that
    /// wait for memory, until they succeed or time out. It does not wait for requests that depend on other clients (a
    /// demand, a withdraw); these continue.
    ///
    /// A timeout of zero does not wait; `None` waits without limit.
    ///
    /// ```
    /// # use junctura::{FollowOptions, Item, Pool};
    /// # fn main() -> junctura::Result<()> {
    /// let pool = Pool::builder().schema("free").open()?;
    /// let options = FollowOptions { group: Some("workers".into()), ..FollowOptions::default() };
    /// let mut work = pool.follow_with("space=work", options)?;
    /// pool.offer([("space", "work"), ("name", "1")], b"...")?;
    ///
    /// for item in &mut work {
    ///     let Item::Object(object) = item? else { continue };
    ///     drop(object); // done with it: it is released
    ///     break;
    /// }
    /// pool.sync(None)?; // no member of the group gets it again
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Timeout`: the requests may be in effect by now, or later. `Disconnected` or `Closed` if the connection has
    /// ended. A rejected offer is no error here; the pipeline reports it.
    pub fn sync(&self, timeout: Option<Duration>) -> Result<()> {
        let mut told = self.begin_sync()?;
        let Some(timeout) = timeout else { return told.wait() };
        told.wait_within(timeout)?.ok_or_else(|| {
            let cause = "not all earlier requests were in effect in time";
            Error::new(Code::Timeout, "sync", cause)
        })
    }

    /// Non-blocking version of [`Pool::sync`]: when the answer arrives, all requests before this call are in effect.
    /// See [`Pending`].
    ///
    /// # Errors
    /// `Disconnected` or `Closed` if the connection has ended.
    pub fn begin_sync(&self) -> Result<Pending<()>> {
        let connection = self.connection()?;
        connection.pend(
            ExchangeKind::Once,
            &Request::Sync,
            StreamStop::Cancel,
            |_, _, said| match said {
                RequestOutcome::Letter(ServerMessage::Done(_)) => Ok(()),
                _ => Err(unexpected("no answer to a sync")),
            },
        )
    }
}
