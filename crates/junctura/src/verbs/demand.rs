//! Getting one object, and waiting for it if need be.

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
    /// Also `NotFound` where there is no requirement of this name, and those of reading a store: `Corrupt`, `Expired`, what the system
    /// refuses.
    pub fn demand_with<'a>(&self, target: impl Into<Target<'a>>, options: DemandOptions<'_>) -> Result<Object> {
        if self.looks_behind(&options) {
            return self.begin_demand(target, options)?.wait();
        }
        demand(&self.connection()?, &target.into(), options.timeout, &options.through())
    }

    /// As [`Pool::demand_with`], without waiting: the answer comes to what this returns. See [`Pending`].
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
    /// `InvalidSelector`, if this side can tell; the server's errors come with the answer.
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

/// How to demand, where it is not the default.
#[derive(Clone, Copy, Debug, Default)]
pub struct DemandOptions<'a> {
    /// Zero does not wait; `None` waits for ever.
    pub timeout: Option<Duration>,
    /// The name of the requirement through which it is received: releasing the object completes it there.
    pub requirement: Option<&'a str>,
    /// Also what is staged in a bundle that is not complete. A staged object has no version yet, and may never become visible:
    /// [`Object::is_staged`]. Not through a requirement.
    pub incomplete: bool,
    /// Where to look. Through a requirement, and for what is staged, it is the pool in any case.
    pub source: DemandSource,
}

/// Where a demand looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DemandSource {
    /// In the pool, then in the store behind it, if it was opened with one.
    #[default]
    PoolThenStore,
    /// In the pool alone.
    Pool,
    /// In the store alone. It does not wait for an object that is not there.
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

/// The requirement through which something is received.
pub(crate) enum DemandThrough<'a> {
    Nothing,
    /// Nothing, and what is staged will do.
    Staged,
    /// Of this connection.
    Number(u64),
    Name(&'a str),
}

/// The object, once there is one: without a detour over [`Pending`], since objects of some bytes take as long as the detour.
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
    /// Whether a demand has to ask a store.
    fn looks_behind(&self, options: &DemandOptions<'_>) -> bool {
        let is_plain = !options.incomplete && options.requirement.is_none();
        is_plain
            && match options.source {
                DemandSource::PoolThenStore => self.depot().is_some(),
                DemandSource::Pool => false,
                DemandSource::Store => true,
            }
    }

    /// What the pool has, else what the store behind it has, else what the pool will have.
    ///
    /// The wait in the pool begins before the look into the store: an object that enters the pool and leaves it in between is found.
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
                // It left the pool in between.
                Err(gone) if gone.code() == Code::Gone => {
                    let found = pool.begin_archived(&connection, target);
                    Ok(found.map(|found| found?.ok_or(gone)))
                }
                answer => Ok(Pending::known(&connection, answer)),
            })),
        }))
    }

    /// What the store behind the pool has: the newest version.
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

/// Nothing waits for it any more: as if it had never been received.
fn give_back(mut object: Object) {
    object.leave_undone();
}

/// Whether an error says that the pool does not have an object.
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
