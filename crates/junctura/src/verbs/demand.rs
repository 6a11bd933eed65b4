//! Demands: one object, waiting for it if necessary.

use std::sync::Arc;
use std::time::Duration;

use junctura_model::{Code, Error, Result};
use junctura_wire::Request;
use junctura_wire::body::{self, DemandRequest};

use crate::connection::in_flight::{ExchangeKind, ServerMessage};
use crate::connection::state::StreamStop;
use crate::connection::{PoolConnection, unexpected};
use crate::object::{Object, ObjectOrigin};
use crate::pending::{Pending, RequestOutcome};
use crate::pool::Pool;
use crate::target::{Target, owned};

impl Pool {
    /// Returns the object with this key, or the newest object that matches a selector. Blocks until there is one.
    ///
    /// A timeout of zero does not wait; `None` waits without limit. If the pool was opened with a store behind it
    /// ([`PoolBuilder::store`](crate::PoolBuilder::store)), objects that the pool does not have are read from the
    /// store.
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
    /// - `NotFound` if there is no object and the timeout is zero
    /// - `Timeout` if there is none within the timeout
    /// - `Gone` if the object with this key was removed; the error has the reason
    /// - `NotWanted` if an offer of this key was declined because no consumer wanted it
    /// - `InvalidSelector`
    /// - `Closed` for a missing object while the server drains
    /// - `LimitExceeded` if this client has reached its limit of held or awaited objects
    pub fn demand<'a>(&self, target: impl Into<Target<'a>>, timeout: Option<Duration>) -> Result<Object> {
        let options = DemandOptions {
            timeout,
            ..DemandOptions::default()
        };
        self.demand_with(target, options)
    }

    /// As [`Pool::demand`], with options.
    ///
    /// ```
    /// # use junctura::{DemandOptions, DemandSource, Pool, RequireOptions};
    /// # fn main() -> junctura::Result<()> {
    /// # let pool = Pool::builder().schema("free").open()?;
    /// let bundle = pool.bundle()?;
    /// bundle.offer([("name", "a")], b"staged")?;
    /// let incomplete = DemandOptions { incomplete: true, ..Default::default() };
    /// assert!(pool.demand_with("name=a", incomplete)?.is_staged());
    ///
    /// let named = RequireOptions { name: Some("archive".to_owned()), ..Default::default() };
    /// drop(pool.require_with("", named)?);
    /// pool.offer([("name", "b")], b"payload")?;
    /// let through = DemandOptions { requirement: Some("archive"), ..Default::default() };
    /// drop(pool.demand_with("name=b", through)?); // done, as far as the archive is concerned
    /// assert_eq!(pool.retract("archive")?, 0);
    ///
    /// let archived = DemandOptions { source: DemandSource::Store, ..Default::default() };
    /// assert!(pool.demand_with("name=b", archived).is_err()); // there is no store behind this pool
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Also `NotFound` if there is no requirement with this name, and those of reading a store: `Corrupt`, `Expired`,
    /// errors of system calls.
    pub fn demand_with<'a>(&self, target: impl Into<Target<'a>>, options: DemandOptions<'_>) -> Result<Object> {
        if self.looks_behind(&options) {
            return self.begin_demand(target, options)?.wait();
        }
        demand(&self.connection()?, &target.into(), options.timeout, &options.through())
    }

    /// Non-blocking version of [`Pool::demand_with`]: the result receives the answer. See [`Pending`].
    ///
    /// ```
    /// # use junctura::{DemandOptions, Pool};
    /// # fn main() -> junctura::Result<()> {
    /// # let pool = Pool::builder().schema("free").open()?;
    /// let mut late = pool.begin_demand("name=late", DemandOptions::default())?;
    /// assert!(late.try_take()?.is_none());
    /// pool.offer([("name", "late")], b"payload")?;
    /// assert_eq!(&late.wait()?[..], b"payload");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `InvalidSelector` if this client detects it; the server's errors arrive with the answer.
    pub fn begin_demand<'a>(
        &self,
        target: impl Into<Target<'a>>,
        options: DemandOptions<'_>,
    ) -> Result<Pending<Object>> {
        let (connection, target) = (self.connection()?, target.into());
        if !self.looks_behind(&options) {
            return begin_demand(&connection, &target, options.timeout, &options.through());
        }
        let target = owned(connection.resolve(&target)?);
        if options.source == DemandSource::Store {
            let missing = || Error::new(Code::NotFound, "demand", "the store behind the pool does not have it");
            let found = self.begin_archived(&connection, target);
            return Ok(found.map(move |found| found?.ok_or_else(missing)));
        }
        self.begin_demand_behind(&connection, target, options.timeout)
    }
}

/// Options of a demand.
#[derive(Clone, Copy, Debug, Default)]
pub struct DemandOptions<'a> {
    /// Zero does not wait; `None` waits without limit.
    pub timeout: Option<Duration>,
    /// The name of the requirement through which the object is received: releasing the object completes it there.
    pub requirement: Option<&'a str>,
    /// Includes objects that are staged in an incomplete bundle. A staged object has no version yet and may never
    /// become visible: [`Object::is_staged`]. Not available through a requirement.
    pub incomplete: bool,
    /// The source. Demands through a requirement and of staged objects always use the pool.
    pub source: DemandSource,
}

/// The source of a demand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DemandSource {
    /// The pool, then the store behind it, if the pool was opened with one.
    #[default]
    PoolThenStore,
    /// Only the pool.
    Pool,
    /// Only the store. Does not wait for a missing object.
    Store,
}

impl<'a> DemandOptions<'a> {
    fn through(&self) -> DemandThrough<'a> {
        match self.requirement {
            Some(name) => DemandThrough::Name(name),
            None if self.incomplete => DemandThrough::Staged,
            None => DemandThrough::Nothing,
        }
    }
}

/// The requirement through which an object is received.
pub(crate) enum DemandThrough<'a> {
    Nothing,
    /// None; staged objects are included.
    Staged,
    /// A requirement of this connection.
    Number(u64),
    Name(&'a str),
}

/// Blocks until the object is there. Bypasses [`Pending`], which would double the time for small objects.
pub(crate) fn demand(
    connection: &Arc<PoolConnection>,
    target: &Target<'_>,
    timeout: Option<Duration>,
    through: &DemandThrough<'_>,
) -> Result<Object> {
    let answer = connection.call(&request(connection.resolve(target)?, timeout, through))?;
    object(connection, answer)
}

impl Pool {
    /// Returns whether a demand must query a store.
    fn looks_behind(&self, options: &DemandOptions<'_>) -> bool {
        let is_plain = !options.incomplete && options.requirement.is_none();
        is_plain
            && match options.source {
                DemandSource::PoolThenStore => self.depot().is_some(),
                DemandSource::Pool => false,
                DemandSource::Store => true,
            }
    }

    /// Demands an object from the pool, else from the store behind it, else waits for the pool.
    ///
    /// The wait in the pool begins before the store is read: an object that enters the pool and is removed in between
    /// is found.
    fn begin_demand_behind(
        &self,
        connection: &Arc<PoolConnection>,
        target: body::TargetBody<'static>,
        timeout: Option<Duration>,
    ) -> Result<Pending<Object>> {
        let (pool, there) = (self.clone(), Arc::clone(connection));
        let probe = begin(
            connection,
            target.clone(),
            Some(Duration::ZERO),
            &DemandThrough::Nothing,
        )?;
        Ok(probe.then(move |answer| match answer {
            Err(missing) if is_missing(&missing) => pool.begin_archived_or_later(&there, target, timeout, missing),
            answer => Ok(Pending::known(&there, answer)),
        }))
    }

    fn begin_archived_or_later(
        &self,
        connection: &Arc<PoolConnection>,
        target: body::TargetBody<'static>,
        timeout: Option<Duration>,
        missing: Error,
    ) -> Result<Pending<Object>> {
        let waits = timeout != Some(Duration::ZERO);
        let begin_later = || begin(connection, target.clone(), timeout, &DemandThrough::Nothing);
        let later = waits.then(begin_later).transpose()?;
        let found = self.begin_archived(connection, target.clone());
        let (pool, connection) = (self.clone(), Arc::clone(connection));
        Ok(found.then(move |found| match (found?, later) {
            (Some(object), _) => Ok(Pending::known(&connection, Ok(object))),
            (None, None) => Err(missing),
            (None, Some(later)) => Ok(later.then(move |answer| match answer {
                // The object was removed from the pool in between.
                Err(gone) if gone.code() == Code::Gone => {
                    let found = pool.begin_archived(&connection, target);
                    Ok(found.map(|found| found?.ok_or(gone)))
                }
                answer => Ok(Pending::known(&connection, answer)),
            })),
        }))
    }

    /// Demands the newest version in the store behind the pool.
    fn begin_archived(
        &self,
        connection: &Arc<PoolConnection>,
        target: body::TargetBody<'static>,
    ) -> Pending<Option<Object>> {
        let Some(depot) = self.depot().map(Arc::clone) else {
            return Pending::known(connection, Ok(None));
        };
        let there = Arc::clone(connection);
        let look = move || {
            let row = depot.find(&target, &there.greeting.schemas)?;
            row.map(|row| Object::new(&origin(&there), row.read(false)?))
                .transpose()
        };
        Pending::work(connection, look, |found| found.into_iter().for_each(give_back))
    }
}

/// Gives an object back that no caller waits for any more, as if it had never been received.
fn give_back(mut object: Object) {
    object.leave_undone();
}

/// Returns whether an error means that the pool does not have an object.
fn is_missing(error: &Error) -> bool {
    matches!(
        error.code(),
        Code::NotFound | Code::Gone | Code::NotWanted | Code::Closed
    )
}

pub(crate) fn begin_demand(
    connection: &Arc<PoolConnection>,
    target: &Target<'_>,
    timeout: Option<Duration>,
    through: &DemandThrough<'_>,
) -> Result<Pending<Object>> {
    begin(connection, connection.resolve(target)?, timeout, through)
}

fn begin(
    connection: &Arc<PoolConnection>,
    target: body::TargetBody<'_>,
    timeout: Option<Duration>,
    through: &DemandThrough<'_>,
) -> Result<Pending<Object>> {
    let request = request(target, timeout, through);
    let pending = connection.pend(
        ExchangeKind::Once,
        &request,
        StreamStop::Cancel,
        |connection, _, said| match said {
            RequestOutcome::Letter(letter) => object(connection, letter),
            RequestOutcome::Acknowledged(_) => Err(unexpected("no object for a demand")),
        },
    );
    pending.map(|pending| pending.undone_by(give_back))
}

fn request<'a>(target: body::TargetBody<'a>, timeout: Option<Duration>, through: &DemandThrough<'a>) -> Request<'a> {
    let (requirement, requirement_name) = match *through {
        DemandThrough::Nothing | DemandThrough::Staged => (None, None),
        DemandThrough::Number(number) => (Some(number), None),
        DemandThrough::Name(name) => (None, Some(name.into())),
    };
    Request::Demand(DemandRequest {
        target,
        timeout_ms: timeout.map(|time| time.as_nanos().div_ceil(1_000_000) as u64),
        requirement,
        requirement_name,
        incomplete: matches!(through, DemandThrough::Staged),
    })
}

fn object(connection: &Arc<PoolConnection>, answer: ServerMessage) -> Result<Object> {
    let ServerMessage::Delivered(arrived) = answer else {
        return Err(unexpected("no object for a demand"));
    };
    Object::new(&origin(connection), arrived)
}

fn origin(connection: &Arc<PoolConnection>) -> Arc<ObjectOrigin> {
    Arc::new(ObjectOrigin::new(connection, 0, None))
}
