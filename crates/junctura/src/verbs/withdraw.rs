//! Taking objects out of the pool.

use std::time::Duration;

use junctura_model::Result;
use junctura_wire::Request;
use junctura_wire::body::{TargetBody as Wanted, WithdrawRequest};

use crate::pending::Pending;
use crate::pool::Pool;
use crate::target::Target;

/// How to withdraw.
#[derive(Clone, Copy, Debug, Default)]
pub struct WithdrawOptions {
    /// How long to wait for requirements that are owed the object; `None`: for ever.
    pub timeout: Option<Duration>,
    /// Do not wait: who is owed it gets a gap.
    pub force: bool,
}

impl Pool {
    /// Withdraws the object with this key; returns how many versions of it went. Waits until every requirement that is owed
    /// it has released it.
    ///
    /// ```
    /// # use junctura::{Code, Pool, Target, WithdrawOptions};
    /// # fn main() -> junctura::Result<()> {
    /// let pool = Pool::builder().schema("free").open()?;
    /// let key = [("space", "demo"), ("name", "first")];
    /// pool.offer(key, b"bytes")?;
    /// assert_eq!(pool.withdraw(Target::key(key), WithdrawOptions::default())?, 1);
    /// assert_eq!(pool.demand(Target::key(key), None).unwrap_err().code(), Code::Gone);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `NotFound` when it is not there; `Timeout`, naming who still waits: the object stays offered.
    pub fn withdraw<'a>(&self, key: impl Into<Target<'a>>, options: WithdrawOptions) -> Result<u64> {
        self.begin_withdraw(key, options)?.wait()
    }

    /// Withdraws every object that matches a selector; returns how many went.
    ///
    /// ```
    /// # use junctura::{Pool, WithdrawOptions};
    /// # fn main() -> junctura::Result<()> {
    /// # let pool = Pool::builder().schema("free").open()?;
    /// # pool.offer([("space", "old"), ("name", "a")], b"")?;
    /// # pool.offer([("space", "old"), ("name", "b")], b"")?;
    /// assert_eq!(pool.withdraw_all("space=old", WithdrawOptions::default())?, 2);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `InvalidSelector`; `Timeout`, naming who still waits.
    pub fn withdraw_all(&self, selector: &str, options: WithdrawOptions) -> Result<u64> {
        self.begin_withdraw_all(selector, options)?.wait()
    }

    /// As [`Pool::withdraw`], without waiting. See [`Pending`].
    ///
    /// # Errors
    /// Those of attributes that the schema does not take; the others come with the answer.
    pub fn begin_withdraw<'a>(&self, key: impl Into<Target<'a>>, options: WithdrawOptions) -> Result<Pending<u64>> {
        let connection = self.connection()?;
        let key = key.into();
        let target = connection.resolve(&key)?;
        connection.begin_count(&Request::Withdraw(options.of(target)))
    }

    /// As [`Pool::withdraw_all`], without waiting. See [`Pending`].
    ///
    /// # Errors
    /// `Disconnected` or `Closed` when there is no server any more; those of [`Pool::withdraw_all`] come with the answer.
    pub fn begin_withdraw_all(&self, selector: &str, options: WithdrawOptions) -> Result<Pending<u64>> {
        let target = Wanted::selector(selector);
        self.connection()?
            .begin_count(&Request::WithdrawAll(options.of(target)))
    }
}

impl WithdrawOptions {
    pub(crate) fn of(self, target: Wanted<'_>) -> WithdrawRequest<'_> {
        let timeout_ms = self.timeout.map(|time| time.as_nanos().div_ceil(1_000_000) as u64);
        WithdrawRequest {
            target,
            timeout_ms,
            force: self.force,
        }
    }
}
