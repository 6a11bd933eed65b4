//! Getting one object, and waiting for it if need be.

use std::sync::Arc;
use std::time::Duration;

use junctura_model::{Code, Error, Result};
use junctura_wire::Request;
use junctura_wire::body::{self, Demand};

use crate::connection::{Connection, unexpected};
use crate::mail::{Letter, Talk};
use crate::object::{Object, Origin};
use crate::pending::{Pending, Said};
use crate::pool::Pool;
use crate::state::Stop;
use crate::target::Target;

impl Pool {
    /// The object with this key, or the newest one that matches a selector; waits until there is one.
    ///
    /// A timeout of zero does not wait; `None` waits for ever. What the pool does not have is looked for in the store behind it, if it
    /// was opened with one ([`PoolBuilder::store`](crate::PoolBuilder::store)).
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
    /// and went, with the reason; `NotWanted` when it was not offered since nobody wanted it; `InvalidSelector`; `Closed` for what is
    /// not there while the server drains; `LimitExceeded` when this client holds, or waits for, as much as it may.
    pub fn demand<'a>(&self, target: impl Into<Target<'a>>, timeout: Option<Duration>) -> Result<Object> {
        let (connection, target) = (self.connection()?, target.into());
        match self.depot() {
            None => demand(&connection, &target, timeout, &Through::Nothing),
            Some(_) => self.demand_behind(&connection, &target, timeout),
        }
    }

    /// What the store behind the pool has of it, where there is one: the newest version. The pool is not asked. Waits for the store,
    /// and for nobody else: a thread beside an event loop does it, after [`Pool::begin_demand_with`] has found that the pool does not
    /// have it ([`DemandOptions::in_pool`]).
    ///
    /// ```
    /// # use junctura::Pool;
    /// # fn main() -> junctura::Result<()> {
    /// # let pool = Pool::builder().schema("free").open()?;
    /// assert!(pool.demand_archived("name=a")?.is_none()); // without a store
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Requires the feature `store`.
    ///
    /// # Errors
    /// Those of reading the store: `Corrupt`, `Expired`, what the system refuses.
    #[cfg(feature = "store")]
    pub fn demand_archived<'a>(&self, target: impl Into<Target<'a>>) -> Result<Option<Object>> {
        let (connection, target) = (self.connection()?, target.into());
        self.archived(&connection.resolve(&target)?)
    }

    /// As [`Pool::demand`], of what is visible or staged in a bundle that is not complete. A staged object has no version
    /// yet, and may never become visible: [`Object::is_staged`].
    ///
    /// ```
    /// # use junctura::Pool;
    /// # fn main() -> junctura::Result<()> {
    /// # let pool = Pool::builder().schema("free").open()?;
    /// let bundle = pool.bundle()?;
    /// bundle.offer([("name", "a")], b"staged")?;
    /// let object = pool.demand_incomplete("name=a", None)?;
    /// assert!(object.is_staged());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Pool::demand`].
    pub fn demand_incomplete<'a>(&self, target: impl Into<Target<'a>>, timeout: Option<Duration>) -> Result<Object> {
        demand(&self.connection()?, &target.into(), timeout, &Through::Staged)
    }

    /// As [`Pool::demand`], and does not wait: the answer comes to what this returns. For [`Pool::wait`], beside others.
    ///
    /// ```
    /// # use junctura::Pool;
    /// # fn main() -> junctura::Result<()> {
    /// # let pool = Pool::builder().schema("free").open()?;
    /// let mut late = pool.begin_demand("name=late", None)?;
    /// assert!(late.try_take()?.is_none());
    /// pool.offer([("name", "late")], b"payload")?;
    /// assert_eq!(&late.wait()?[..], b"payload");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `InvalidSelector`, if this side can tell; the server's errors come with the answer.
    pub fn begin_demand<'a>(
        &self,
        target: impl Into<Target<'a>>,
        timeout: Option<Duration>,
    ) -> Result<Pending<Object>> {
        let options = DemandOptions {
            timeout,
            ..DemandOptions::default()
        };
        self.begin_demand_with(&options, target)
    }

    /// As [`Pool::demand`], through the requirement of this name: releasing the object completes it there.
    ///
    /// ```
    /// # use junctura::{Pool, RequireOptions};
    /// # fn main() -> junctura::Result<()> {
    /// # let pool = Pool::builder().schema("free").open()?;
    /// let named = RequireOptions { name: Some("archive".to_owned()), ..RequireOptions::default() };
    /// drop(pool.require_with(&named, "")?);
    /// pool.offer([("name", "a")], b"payload")?;
    /// drop(pool.demand_through("archive", "name=a", None)?); // done, as far as the archive is concerned
    /// assert_eq!(pool.retract("archive")?, 0);
    /// # Ok(())
    /// # }
    /// ```
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

/// How to demand, where it is not the default.
#[derive(Clone, Copy, Debug, Default)]
pub struct DemandOptions<'a> {
    /// Zero does not wait; `None` waits for ever.
    pub timeout: Option<Duration>,
    /// The name of the requirement through which it is received: [`Pool::demand_through`].
    pub requirement: Option<&'a str>,
    /// What is staged will do: [`Pool::demand_incomplete`]. Not through a requirement.
    pub incomplete: bool,
    /// Of what the pool has, also where a store is behind it: [`Pool::demand_archived`] asks that.
    pub in_pool: bool,
}

impl DemandOptions<'_> {
    /// Whether the store behind a pool is asked, too.
    fn looks_behind(&self) -> bool {
        !self.in_pool && !self.incomplete && self.requirement.is_none()
    }
}

impl Pool {
    /// As [`Pool::demand`], without waiting, with options.
    ///
    /// ```
    /// # use junctura::{DemandOptions, Pool};
    /// # use std::time::Duration;
    /// # fn main() -> junctura::Result<()> {
    /// # let pool = Pool::builder().schema("free").open()?;
    /// let at_once = DemandOptions { timeout: Some(Duration::ZERO), ..DemandOptions::default() };
    /// let mut answer = pool.begin_demand_with(&at_once, "name=a")?;
    /// let error = loop {
    ///     pool.look()?; // a loop of others looks when the pool's descriptor is readable
    ///     if let Err(error) = answer.take() {
    ///         break error;
    ///     }
    /// };
    /// assert_eq!(error.code(), junctura::Code::NotFound);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// What this side can tell; the server's errors come with the answer.
    pub fn begin_demand_with<'a>(
        &self,
        options: &DemandOptions<'_>,
        target: impl Into<Target<'a>>,
    ) -> Result<Pending<Object>> {
        let through = match options.requirement {
            Some(name) => Through::Name(name),
            None if options.incomplete => Through::Staged,
            None => Through::Nothing,
        };
        if options.looks_behind() {
            self.has_no_store("begin_demand")?;
        }
        begin_demand(&self.connection()?, &target.into(), options.timeout, &through)
    }
}

/// The requirement through which something is received.
pub(crate) enum Through<'a> {
    Nothing,
    /// Nothing, and what is staged will do.
    Staged,
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
    let answer = connection.call(&request(connection, target, timeout, through)?)?;
    object(connection, answer)
}

impl Pool {
    /// What the pool has, else what the store behind it has, else what the pool will have. It waits in the pool before it looks into
    /// the store: what comes to the pool and goes in between is there.
    fn demand_behind(
        &self,
        connection: &Arc<Connection>,
        target: &Target<'_>,
        timeout: Option<Duration>,
    ) -> Result<Object> {
        let missing = match demand(connection, target, Some(Duration::ZERO), &Through::Nothing) {
            Err(error) if is_missing(&error) => error,
            answer => return answer,
        };
        let mut pending = None;
        if timeout != Some(Duration::ZERO) {
            pending = Some(begin_demand(connection, target, timeout, &Through::Nothing)?);
        }
        let there = connection.resolve(target)?;
        if let Some(object) = self.archived(&there)? {
            return Ok(object);
        }
        match pending.map_or(Err(missing), Pending::wait) {
            Err(error) if error.code() == Code::Gone => self.archived(&there)?.ok_or(error),
            answer => answer,
        }
    }

    /// What the store behind the pool has.
    pub(crate) fn archived(&self, target: &body::Target<'_>) -> Result<Option<Object>> {
        let Some(depot) = self.depot() else { return Ok(None) };
        let connection = self.connection()?;
        let row = depot.find(target, &connection.greeting.schemas)?;
        row.map(|row| Object::new(&origin(&connection), row.read(false)?))
            .transpose()
    }

    /// Whether a demand has to ask a store, too.
    #[cfg(feature = "async")]
    pub(crate) fn looks_behind(&self, options: &DemandOptions<'_>) -> bool {
        self.depot().is_some() && options.looks_behind()
    }
}

#[cfg(feature = "async")]
/// Nothing waits for it any more: as if it had never been received.
pub(crate) fn give_back(object: Option<Object>) {
    if let Some(mut object) = object {
        object.leave_undone();
    }
}

/// Whether an error says that the pool does not have an object.
pub(crate) fn is_missing(error: &Error) -> bool {
    matches!(
        error.code(),
        Code::NotFound | Code::Gone | Code::NotWanted | Code::Closed
    )
}

pub(crate) fn begin_demand(
    connection: &Arc<Connection>,
    target: &Target<'_>,
    timeout: Option<Duration>,
    through: &Through<'_>,
) -> Result<Pending<Object>> {
    let request = request(connection, target, timeout, through)?;
    let pending = connection.pend(Talk::Once, &request, Stop::Cancel, |connection, _, said| match said {
        Said::Letter(letter) => object(connection, letter),
        Said::Acknowledged(_) => Err(unexpected("no object for a demand")),
    });
    #[cfg(feature = "async")]
    let pending = pending.map(|pending| pending.undone_by(|object| give_back(Some(object))));
    pending
}

fn request<'a>(
    connection: &Connection,
    target: &'a Target<'_>,
    timeout: Option<Duration>,
    through: &Through<'a>,
) -> Result<Request<'a>> {
    let (requirement, requirement_name) = match *through {
        Through::Nothing | Through::Staged => (None, None),
        Through::Number(number) => (Some(number), None),
        Through::Name(name) => (None, Some(name.into())),
    };
    Ok(Request::Demand(Demand {
        target: connection.resolve(target)?,
        timeout_ms: timeout.map(|time| time.as_nanos().div_ceil(1_000_000) as u64),
        requirement,
        requirement_name,
        incomplete: matches!(through, Through::Staged),
    }))
}

fn object(connection: &Arc<Connection>, answer: Letter) -> Result<Object> {
    let Letter::Delivered(arrived) = answer else {
        return Err(unexpected("no object for a demand"));
    };
    Object::new(&origin(connection), arrived)
}

fn origin(connection: &Arc<Connection>) -> Arc<Origin> {
    Arc::new(Origin::new(connection, 0, None))
}
