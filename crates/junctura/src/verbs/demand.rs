//! Demands: one object, waiting for it if necessary.

use std::sync::Arc;
use std::time::Duration;

use junctura_model::{Code, Result};
use junctura_wire::Request;
use junctura_wire::body::{self, DemandRequest};

use crate::connection::in_flight::{ExchangeKind, ServerMessage};
use crate::connection::state::StreamStop;
use crate::connection::{PoolConnection, unexpected};
use crate::explain::{hinted, is_hinted};
use crate::object::{Object, ObjectOrigin};
use crate::pending::{Pending, RequestOutcome};
use crate::pool::Pool;
use crate::store_fallback::StoreDemand;
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
        if options.asks_store(self.depot().is_some()) {
            return self.begin_demand(target, options)?.wait();
        }
        let (connection, target) = (self.connection()?, target.into());
        let met = demand(&connection, &target, options.timeout, &options.through());
        met.map_err(|error| match connection.resolve(&target) {
            Ok(target) if is_hinted(options.timeout) => hinted(self, &target, error),
            _ => error,
        })
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
        if !options.asks_store(self.depot().is_some()) {
            let demand = begin_demand(&connection, &target, options.timeout, &options.through())?;
            if !is_hinted(options.timeout) {
                return Ok(demand);
            }
            let (pool, target) = (self.clone(), owned(connection.resolve(&target)?));
            return Ok(demand.then(move |object| match object {
                Err(error) if error.code() == Code::Timeout => {
                    let hint = move || Err(hinted(&pool, &target, error));
                    Ok(Pending::work(&connection, hint, give_back))
                }
                object => Ok(Pending::known(&connection, object)),
            }));
        }
        let demand = StoreDemand {
            target: owned(connection.resolve(&target)?),
            timeout: options.timeout,
            depot: self.depot().map(Arc::clone),
            connection,
        };
        match options.source {
            DemandSource::Store => Ok(demand.begin_in_store()),
            DemandSource::PoolThenStore | DemandSource::Pool => demand.begin(),
        }
    }
}

/// Options of a demand.
///
/// ```
/// # use junctura::{Code, DemandOptions, Pool};
/// # fn main() -> junctura::Result<()> {
/// # let pool = Pool::builder().schema("free").open()?;
/// # use std::time::Duration;
/// let options = DemandOptions { timeout: Some(Duration::ZERO), ..DemandOptions::default() };
/// let error = pool.demand_with("name=a", options).unwrap_err();
/// assert_eq!(error.code(), Code::NotFound);
/// # Ok(())
/// # }
/// ```
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
///
/// ```
/// # use junctura::{DemandOptions, DemandSource, Pool};
/// # fn main() -> junctura::Result<()> {
/// # let pool = Pool::builder().schema("free").open()?;
/// pool.offer([("name", "a")], b"payload")?;
/// let options = DemandOptions { source: DemandSource::Pool, ..DemandOptions::default() };
/// assert_eq!(&pool.demand_with("name=a", options)?[..], b"payload");
/// # Ok(())
/// # }
/// ```
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
    /// Returns whether the demand may need a store.
    fn asks_store(&self, has_store: bool) -> bool {
        let is_plain = !self.incomplete && self.requirement.is_none();
        is_plain
            && match self.source {
                DemandSource::PoolThenStore => has_store,
                DemandSource::Pool => false,
                DemandSource::Store => true,
            }
    }

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

/// Gives an object back that no caller waits for any more, as if it had never been received.
pub(crate) fn give_back(mut object: Object) {
    object.leave_undone();
}

pub(crate) fn begin_demand(
    connection: &Arc<PoolConnection>,
    target: &Target<'_>,
    timeout: Option<Duration>,
    through: &DemandThrough<'_>,
) -> Result<Pending<Object>> {
    begin(connection, connection.resolve(target)?, timeout, through)
}

pub(crate) fn begin(
    connection: &Arc<PoolConnection>,
    target: body::TargetBody<'_>,
    timeout: Option<Duration>,
    through: &DemandThrough<'_>,
) -> Result<Pending<Object>> {
    let number = connection.post(ExchangeKind::Once, &request(target, timeout, through))?;
    Ok(pending(connection, number))
}

/// As [`begin_demand`], sent with the next request.
pub(crate) fn begin_with_next(
    connection: &Arc<PoolConnection>,
    target: &Target<'_>,
    timeout: Option<Duration>,
    through: &DemandThrough<'_>,
) -> Result<Pending<Object>> {
    let request = request(connection.resolve(target)?, timeout, through);
    let (state, number) = connection.ask(ExchangeKind::Once, &request)?;
    drop(state);
    Ok(pending(connection, number))
}

fn pending(connection: &Arc<PoolConnection>, number: u64) -> Pending<Object> {
    let pending = connection.pending(number, StreamStop::Cancel, |connection, _, said| match said {
        RequestOutcome::Letter(letter) => object(connection, letter),
        RequestOutcome::Acknowledged(_) => Err(unexpected("no object for a demand")),
    });
    pending.undone_by(give_back)
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

pub(crate) fn origin(connection: &Arc<PoolConnection>) -> Arc<ObjectOrigin> {
    Arc::new(ObjectOrigin::of_demand(connection))
}
