//! Withdrawal of objects from the pool.

use std::sync::Arc;
use std::time::Duration;

use junctura_model::{Code, Result};
use junctura_wire::Request;
use junctura_wire::body::{ForgetRequest, TargetBody as Wanted, WithdrawRequest};

use crate::connection::PoolConnection;
use crate::explain::warn_of_mistakes;
use crate::pending::Pending;
use crate::pool::Pool;
use crate::target::Target;

/// Options of a withdrawal.
///
/// ```
/// # use junctura::{Pool, WithdrawOptions};
/// # fn main() -> junctura::Result<()> {
/// # let pool = Pool::builder().schema("free").open()?;
/// pool.offer([("name", "a")], b"")?;
/// let required = pool.require("name=a")?;
/// let force = WithdrawOptions { force: true, ..WithdrawOptions::default() };
/// assert_eq!(pool.withdraw_all("name=a", force)?, 1);
/// # required.retract()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct WithdrawOptions {
    /// How long to wait for requirements to which the object is outstanding; `None`: without limit.
    pub timeout: Option<Duration>,
    /// Does not wait: consumers to which the object is outstanding get a gap.
    pub force: bool,
    /// Also frees the keys, including those of objects that were removed before: a schema that rejects a second object
    /// accepts them again at once. With them, the pieces of arrays can be offered again, and bundles of which no object is
    /// visible be opened again. The result is then the number of keys that became free, without those of pieces.
    pub forget: bool,
}

impl Pool {
    /// Withdraws the object with this key; returns the number of versions removed. Blocks until every requirement to
    /// which it is outstanding has released it.
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
    /// `NotFound` if there is no such object; `Timeout`, with the consumers that still wait: the object stays in the
    /// pool.
    pub fn withdraw<'a>(&self, key: impl Into<Target<'a>>, options: WithdrawOptions) -> Result<u64> {
        self.begin_withdraw(key, options)?.wait()
    }

    /// Withdraws every object that matches a selector; returns the number of objects removed. Blocks as
    /// [`Pool::withdraw`] does.
    ///
    /// ```
    /// # use junctura::{Pool, WithdrawOptions};
    /// # fn main() -> junctura::Result<()> {
    /// # let pool = Pool::builder().schema("free").open()?;
    /// # pool.offer([("space", "old"), ("name", "a")], b"")?;
    /// # pool.offer([("space", "old"), ("name", "b")], b"")?;
    /// assert_eq!(pool.withdraw_all("space=old", WithdrawOptions::default())?, 2);
    /// // Their keys are free after ten minutes, or now.
    /// let forget = WithdrawOptions { forget: true, ..WithdrawOptions::default() };
    /// assert_eq!(pool.withdraw_all("space=old", forget)?, 2);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `InvalidSelector`; `Timeout`, with the consumers that still wait.
    pub fn withdraw_all(&self, selector: &str, options: WithdrawOptions) -> Result<u64> {
        let withdrawn = self.begin_withdraw_all(selector, options)?.wait()?;
        if withdrawn == 0 {
            warn_of_mistakes(self, selector);
        }
        Ok(withdrawn)
    }

    /// Non-blocking version of [`Pool::withdraw`]. See [`Pending`].
    ///
    /// # Errors
    /// Those of attributes that the schema does not accept; the server's errors arrive with the answer.
    pub fn begin_withdraw<'a>(&self, key: impl Into<Target<'a>>, options: WithdrawOptions) -> Result<Pending<u64>> {
        let connection = self.connection()?;
        let key = key.into();
        let target = connection.resolve(&key)?;
        let withdrawn = connection.begin_count(&Request::Withdraw(options.of(target.clone())))?;
        Ok(options.forgotten(&connection, withdrawn, target))
    }

    /// Non-blocking version of [`Pool::withdraw_all`]. See [`Pending`].
    ///
    /// # Errors
    /// `Disconnected` or `Closed` if the connection has ended; those of [`Pool::withdraw_all`] arrive with the answer.
    pub fn begin_withdraw_all(&self, selector: &str, options: WithdrawOptions) -> Result<Pending<u64>> {
        let target = Wanted::selector(selector);
        let connection = self.connection()?;
        let withdrawn = connection.begin_count(&Request::WithdrawAll(options.of(target.clone())))?;
        Ok(options.forgotten(&connection, withdrawn, target))
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

    /// After the withdrawal, frees the keys.
    fn forgotten(self, connection: &Arc<PoolConnection>, withdrawn: Pending<u64>, target: Wanted<'_>) -> Pending<u64> {
        if !self.forget {
            return withdrawn;
        }
        let (connection, target) = (Arc::clone(connection), into_owned(target));
        withdrawn.then(move |withdrawn| match withdrawn {
            Err(error) if error.code() != Code::Gone => Err(error),
            _ => connection.begin_count(&Request::Forget(ForgetRequest { target })),
        })
    }
}

fn into_owned(target: Wanted<'_>) -> Wanted<'static> {
    match target {
        Wanted::Key { schema, record } => Wanted::Key {
            schema,
            record: record.into_owned().into(),
        },
        Wanted::Selector(text) => Wanted::Selector(text.into_owned().into()),
    }
}
