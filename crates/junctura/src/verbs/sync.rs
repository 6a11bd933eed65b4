//! Knowing that everything that was said is in effect.

use std::time::Duration;

use junctura_model::{Code, Error, Result};
use junctura_wire::Request;

use crate::connection::in_flight::{ExchangeKind, ServerMessage};
use crate::connection::state::StreamStop;
use crate::connection::unexpected;
use crate::pending::{Pending, RequestOutcome};
use crate::pool::Pool;

impl Pool {
    /// Returns when everything that was said through this pool before is in effect, whatever becomes of this process
    /// afterwards: objects that were released or given back, by whichever thread, count as such; offers of a
    /// [`Pipeline`](crate::Pipeline) are visible, staged or refused; what was dropped has ended. One round trip, and work for
    /// the server that does not grow with the pool.
    ///
    /// Releases go without an answer, and so a process that is killed right after one, or whose network is cut then, may have
    /// released nothing: before it says elsewhere that a piece of work is done, it calls this. Offers that wait for memory
    /// are waited for, until they have room or their own timeout ends. What waits for others (a demand, a withdraw) is not:
    /// it goes on.
    ///
    /// A timeout of zero does not wait; `None` waits as long as it takes.
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
    /// pool.sync(None)?; // and nobody in the group will be given it again
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Timeout`: it may be in effect by now, or later. `Disconnected` or `Closed` when there is no server to ask any more.
    /// That an offer was refused is no error here; the pipeline says so.
    pub fn sync(&self, timeout: Option<Duration>) -> Result<()> {
        let mut told = self.begin_sync()?;
        let Some(timeout) = timeout else { return told.wait() };
        told.wait_within(timeout)?.ok_or_else(|| {
            let cause = "not everything that was said was in effect in time";
            Error::new(Code::Timeout, "sync", cause)
        })
    }

    /// As [`Pool::sync`], without waiting: the answer is that everything that was said before this call is in effect. See [`Pending`].
    ///
    /// # Errors
    /// `Disconnected` or `Closed` when there is no server to ask any more.
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
