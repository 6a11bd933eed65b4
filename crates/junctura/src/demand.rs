//! Getting one object, and waiting for it if need be.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use junctura_model::Result;
use junctura_wire::Request;
use junctura_wire::body::Demand;

use crate::connection::{Connection, unexpected};
use crate::mail::Letter;
use crate::object::{Object, Origin};
use crate::pool::Pool;
use crate::target::Target;

impl Pool {
    /// The object with this key, or the newest one that matches a selector; waits until there is one.
    ///
    /// A timeout of zero does not wait; `None` waits for ever.
    ///
    /// ```
    /// # use junctura::{Pool, Target};
    /// # fn main() -> junctura::Result<()> {
    /// let pool = Pool::builder().schema("free").open()?;
    /// pool.offer([("space", "demo"), ("name", "first")], b"bytes")?;
    ///
    /// let by_selector = pool.demand("space=demo", None)?;
    /// let by_key = pool.demand(Target::key([("space", "demo"), ("name", "first")]), None)?;
    /// assert_eq!(by_key.key(), by_selector.key());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `NotFound` when it is not there and the timeout is zero; `Timeout`; `Gone` when the object with this key was there
    /// and went, with the reason; `InvalidSelector`.
    pub fn demand<'a>(&self, target: impl Into<Target<'a>>, timeout: Option<Duration>) -> Result<Object> {
        demand(&self.connection()?, &target.into(), timeout, &Through::Nothing)
    }

    /// As [`Pool::demand`], through the requirement of this name: releasing the object completes it there.
    ///
    /// # Errors
    /// Also `NotFound` where there is no requirement of this name.
    pub fn demand_through<'a>(
        &self,
        requirement: &str,
        target: impl Into<Target<'a>>,
        timeout: Option<Duration>,
    ) -> Result<Object> {
        demand(
            &self.connection()?,
            &target.into(),
            timeout,
            &Through::Name(requirement),
        )
    }
}

/// The requirement through which something is received.
pub(crate) enum Through<'a> {
    Nothing,
    /// Of this connection.
    Number(u64),
    Name(&'a str),
}

pub(crate) fn demand(
    connection: &Arc<Connection>,
    target: &Target<'_>,
    timeout: Option<Duration>,
    through: &Through<'_>,
) -> Result<Object> {
    let timeout_ms = timeout.map(|time| time.as_nanos().div_ceil(1_000_000) as u64);
    let target = connection.resolve(target)?;
    let (requirement, requirement_name) = match *through {
        Through::Nothing => (None, None),
        Through::Number(number) => (Some(number), None),
        Through::Name(name) => (None, Some(name.into())),
    };
    match connection.call(&Request::Demand(Demand {
        target,
        timeout_ms,
        requirement,
        requirement_name,
    }))? {
        Letter::Delivered(arrived) => {
            let origin = Arc::new(Origin {
                connection: Arc::clone(connection),
                follow: None,
                at_hand: AtomicUsize::new(0),
            });
            Object::new(&origin, arrived)
        }
        _ => Err(unexpected("no object for a demand")),
    }
}
