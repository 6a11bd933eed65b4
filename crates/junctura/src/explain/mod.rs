//! Why requests wait, why an object is in memory or was removed, and what keeps memory.

mod arrays;
mod commands;
mod conditions;
mod hint;
mod near_miss;
mod selector;
mod version;

use std::sync::Arc;

use junctura_model::version::Version;
use junctura_model::{Code, Error, Result};
use junctura_wire::body::TargetBody;
use junctura_wire::{FrameKind, Reply, Request, WireFrame};

use crate::connection::in_flight::{ExchangeKind, ServerMessage};
use crate::connection::state::StreamStop;
use crate::connection::{PoolConnection, unexpected};
use crate::pending::{Pending, RequestOutcome};
use crate::pool::{Pool, opening_mistakes};
use crate::target::Target;
pub use commands::{complete_commands, with_complete_commands};
pub use hint::why_nothing_matches;
pub(crate) use hint::{hinted, is_hinted, warn_of_mistakes};
use reasons::{
    ExplainedObject, ExplainedSelector, KeepersPlace, KeptByClient, KeptSum, MemoryKeepers, WaitPlace, WaitingRequest,
    WaitsPage,
};

/// Reasons: the answers of [`PoolReasons::waits`](crate::PoolReasons::waits), [`PoolReasons::explain`](crate::PoolReasons::explain) and
/// [`PoolReasons::keepers`](crate::PoolReasons::keepers), and their codes.
///
/// The types implement `serde::Serialize`: as JSON they have the same fields. The codes are stable.
pub mod reasons {
    pub use super::selector::{ExplainedSelector, IncompleteArray, MissingPiece, NearMiss};
    pub use junctura_wire::reasons::{
        BundleReference, ClientReference, ExplainedObject, KEPT_CAUSES, KeptByClient, KeptForName, KeptSum,
        MemoryKeepers, MemoryUse, OBJECT_STATES, ObjectHolder, OwedReason, RETENTION_RULES, ReasonReference,
        RequirementReference, RetentionReason, WAIT_CAUSES, WAIT_KINDS, WaitingRequest,
    };
    pub(crate) use junctura_wire::reasons::{
        ExplainRequest, KeepersPlace, KeepersRequest, WAITS_MAX, WaitPlace, WaitsPage, WaitsRequest,
    };
}

/// Clients, requirements and bundles that keep most, as returned.
const KEEPERS_MAX: usize = 20;

/// Asks the server for reasons: see [`Pool::reasons`].
///
/// ```
/// # use junctura::{Pool, PoolReasons};
/// # fn main() -> junctura::Result<()> {
/// let pool = Pool::builder().schema("free").open()?;
/// let reasons: PoolReasons<'_> = pool.reasons();
/// assert!(reasons.waits(10)?.is_empty());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct PoolReasons<'p>(&'p Pool);

impl Pool {
    /// Returns the requests for reasons: why clients wait, why an object is in memory, and what keeps memory.
    ///
    /// ```
    /// # use junctura::Pool;
    /// # fn main() -> junctura::Result<()> {
    /// let pool = Pool::builder().schema("free").open()?;
    /// assert!(pool.reasons().keepers()?.sums.is_empty());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn reasons(&self) -> PoolReasons<'_> {
        PoolReasons(self)
    }
}

impl PoolReasons<'_> {
    /// Returns the requests of all clients that wait, and why: demands, allocations, offers that wait for memory,
    /// withdrawals, drains, durable offers, and bundles that are not visible. Returns at most `limit`, in the order of
    /// clients. Follows and subscriptions do not wait for one thing, and are not among them.
    ///
    /// Blocks until the server has answered. The server answers in parts, so that it serves other clients meanwhile.
    ///
    /// ```
    /// # use junctura::Pool;
    /// # fn main() -> junctura::Result<()> {
    /// let pool = Pool::builder().schema("free").open()?;
    /// let _demand = pool.begin_demand("name=a", Default::default())?;
    /// let waits = pool.reasons().waits(100)?;
    /// assert_eq!((waits[0].kind.as_str(), waits[0].because.as_str()), ("demand", "nothing_matches"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Unsupported` from a server of an earlier version.
    pub fn waits(&self, limit: usize) -> Result<Vec<WaitingRequest>> {
        self.begin_waits(limit)?.wait()
    }

    /// Non-blocking version of [`PoolReasons::waits`]. See [`Pending`].
    ///
    /// # Errors
    /// Errors that this client detects; the server's errors arrive with the answer.
    pub fn begin_waits(&self, limit: usize) -> Result<Pending<Vec<WaitingRequest>>> {
        begin_waits(&self.0.connection()?, limit, Vec::new(), None)
    }

    /// Returns why an object is in memory: its retention, the clients that hold it, and the requirements that are owed
    /// it. For a removed key, returns the reason. Of several versions it is about the newest.
    ///
    /// ```
    /// # use junctura::Pool;
    /// # fn main() -> junctura::Result<()> {
    /// let pool = Pool::builder().schema("free").open()?;
    /// pool.offer([("name", "a")], b"")?;
    /// let object = pool.reasons().explain("{space=default}{}{name=a}")?;
    /// assert_eq!((object.state.as_str(), object.because), ("visible", vec!["retention".to_owned()]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `NotFound` if nothing is known of the key; `InvalidArgument` for a selector.
    pub fn explain<'a>(&self, key: impl Into<Target<'a>>) -> Result<ExplainedObject> {
        self.begin_explain(key, None)?.wait()
    }

    /// Non-blocking version of [`PoolReasons::explain`], for the newest version of a key or for this one: a requirement may keep
    /// an earlier version. See [`Pending`].
    ///
    /// ```
    /// # use junctura::{Pool, reasons};
    /// # fn main() -> junctura::Result<()> {
    /// let pool = Pool::builder().schema("free").open()?;
    /// let version = pool.offer([("name", "a")], b"")?;
    /// let (object, waits) = (pool.reasons().begin_explain("{space=default}{}{name=a}", Some(version))?, pool.reasons().begin_waits(10)?);
    /// assert!(reasons::OBJECT_STATES.contains(&object.wait()?.state.as_str()) && waits.wait()?.is_empty());
    /// assert_eq!(pool.reasons().begin_keepers()?.wait()?.sums.len(), 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Errors that this client detects; the server's errors arrive with the answer.
    pub fn begin_explain<'a>(
        &self,
        key: impl Into<Target<'a>>,
        version: Option<Version>,
    ) -> Result<Pending<ExplainedObject>> {
        let connection = self.0.connection()?;
        let (key, greeting) = (key.into(), &connection.greeting);
        if let Some(other) = version.filter(|version| version.incarnation != greeting.incarnation) {
            let cause = "it is of another incarnation of the server";
            return Err(Error::new(Code::NotFound, format!("version {other}"), cause));
        }
        let target = key.resolve(&greeting.schemas, greeting.default_schema)?;
        if matches!(target, TargetBody::Selector(_)) {
            let cause = "takes a key, such as {space=default}{}{name=a}; `explain_selector` takes a selector";
            return Err(Error::new(Code::InvalidArgument, "explain", cause));
        }
        let request = Request::Explain(reasons::ExplainRequest {
            target,
            sequence: version.map(|version| version.sequence),
        });
        begin_reason(&connection, &request, FrameKind::Explained, |reply| match reply {
            Reply::Explained(explained) => Some(*explained),
            _ => None,
        })
    }

    /// As [`PoolReasons::explain`], for the visible object of a version whose key is not known. Blocks for a list of the
    /// visible objects, in parts.
    ///
    /// ```
    /// # use junctura::Pool;
    /// # fn main() -> junctura::Result<()> {
    /// let pool = Pool::builder().schema("free").open()?;
    /// let version = pool.offer([("name", "a")], b"")?;
    /// assert_eq!(pool.reasons().explain_version(version)?.key, "{space=default}{}{name=a}");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `NotFound` for a version of another incarnation of the server, and for one that no visible object has.
    pub fn explain_version(&self, version: Version) -> Result<ExplainedObject> {
        version::explain(self.0, version)
    }

    /// Non-blocking version of [`PoolReasons::explain_version`]: a thread makes the requests. See [`Pending`].
    ///
    /// ```
    /// # use junctura::Pool;
    /// # fn main() -> junctura::Result<()> {
    /// # let pool = Pool::builder().schema("free").open()?;
    /// let version = pool.offer([("name", "a")], b"")?;
    /// assert_eq!(pool.reasons().begin_explain_version(version)?.wait()?.state, "visible");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Errors that this client detects; the server's errors arrive with the answer.
    pub fn begin_explain_version(&self, version: Version) -> Result<Pending<ExplainedObject>> {
        let pool = self.0.clone();
        let connection = pool.connection()?;
        Ok(Pending::work(
            &connection,
            move || version::explain(&pool, version),
            drop,
        ))
    }

    /// Returns why objects that match a selector are in memory, for the first ten; or, if none matches, the conditions without
    /// which objects match, the values that exist there, and probable mistakes. Arrays that the selector means and that
    /// lack pieces are listed with the ranks that have yet to offer theirs.
    ///
    /// Blocks for one request for each condition or object. Objects that only a store behind the pool has are not counted.
    ///
    /// ```
    /// # use junctura::Pool;
    /// # fn main() -> junctura::Result<()> {
    /// let pool = Pool::builder().schema("free").open()?;
    /// pool.offer([("name", "a"), ("level", "850")], b"")?;
    /// let explained = pool.reasons().explain_selector("name=a,level=85")?;
    /// assert_eq!((explained.matches, explained.of), (0, 1));
    /// assert_eq!(explained.without[0].nearest.as_deref(), Some("850"));
    /// assert_eq!(explained.without[0].values_text().as_deref(), Some("level is 850"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `InvalidSelector`; `Unsupported` from a server of an earlier version.
    pub fn explain_selector(&self, selector: &str) -> Result<ExplainedSelector> {
        selector::explain(self.0, selector)
    }

    /// Non-blocking version of [`PoolReasons::explain_selector`]: a thread makes the requests. See [`Pending`].
    ///
    /// ```
    /// # use junctura::Pool;
    /// # fn main() -> junctura::Result<()> {
    /// # let pool = Pool::builder().schema("free").open()?;
    /// let explained = pool.reasons().begin_explain_selector("name=a")?;
    /// assert_eq!(explained.wait()?.of, 0);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Errors that this client detects; the server's errors arrive with the answer.
    pub fn begin_explain_selector(&self, selector: &str) -> Result<Pending<ExplainedSelector>> {
        let (pool, selector) = (self.0.clone(), selector.to_owned());
        let connection = pool.connection()?;
        Ok(Pending::work(
            &connection,
            move || selector::explain(&pool, &selector),
            drop,
        ))
    }

    /// Returns the probable mistakes in a selector, as texts: attributes that no schema declares and no object has but that resemble a
    /// declared one or one of [`PoolReasons::undeclared_attributes`], and values that no schema reads. A selector with such a mistake is valid while the pool has an open schema, and
    /// matches nothing.
    ///
    /// Needs no request if every attribute is declared, and one for each attribute that is not, with three more if one
    /// resembles no declared one.
    /// [`Pool::follow`], [`Pool::list`], [`Pool::tally`], [`Pool::require`], [`Pool::subscribe`] and [`Pool::withdraw_all`] report the
    /// mistakes of a selector
    /// that matches nothing as a warning of `tracing`.
    ///
    /// ```
    /// # use junctura::Pool;
    /// # fn main() -> junctura::Result<()> {
    /// let pool = Pool::embedded()?;
    /// let mistakes = pool.reasons().mistakes("class=od,parm=t")?;
    /// assert_eq!(mistakes, ["no object has the attribute \"parm\"; did you mean param (schema mars)?"]);
    /// assert!(pool.reasons().mistakes("class=od,param=t")?.is_empty());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Disconnected` or `Closed` if the connection has ended.
    pub fn mistakes(&self, selector: &str) -> Result<Vec<String>> {
        near_miss::mistakes(self.0, selector)
    }

    /// Non-blocking version of [`PoolReasons::mistakes`]: a thread makes the requests, if any. See [`Pending`].
    ///
    /// ```
    /// # use junctura::Pool;
    /// # fn main() -> junctura::Result<()> {
    /// # let pool = Pool::embedded()?;
    /// assert!(pool.reasons().begin_mistakes("class=od,param=t")?.wait()?.is_empty());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Disconnected` or `Closed` if the connection has ended.
    pub fn begin_mistakes(&self, selector: &str) -> Result<Pending<Vec<String>>> {
        let connection = self.0.connection()?;
        if !near_miss::is_suspect(self.0, selector)? {
            return Ok(Pending::known(&connection, Ok(Vec::new())));
        }
        let (pool, selector) = (self.0.clone(), selector.to_owned());
        Ok(Pending::work(
            &connection,
            move || near_miss::mistakes(&pool, &selector),
            drop,
        ))
    }

    /// Returns the probable mistakes in how the pool was opened, as texts: a schema of this client, other than a built-in one, that differs
    /// from the pool's schema of its name in more than documentation; and a server that was started here, while a pool with a similar name
    /// is served. [`PoolBuilder::open`](crate::PoolBuilder::open) reports them as warnings of `tracing`.
    ///
    /// ```
    /// # use junctura::Pool;
    /// # fn main() -> junctura::Result<()> {
    /// let schema = "{name: runs, key: {dataset: [run], collocation: [], element: [step]}, \
    ///               attributes: {run: {type: string}, step: {type: integer}}}";
    /// let pool = Pool::builder().schema_yaml(schema).open()?;
    /// assert!(pool.reasons().opening_mistakes().is_empty());
    /// let other = schema.replace("runs,", "runs, same_key: supersede,");
    /// let second = Pool::builder().url(pool.url()).schema_yaml(other).open()?;
    /// assert!(second.reasons().opening_mistakes()[0].ends_with("same_key: supersede here, reject there"));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn opening_mistakes(&self) -> Vec<String> {
        opening_mistakes(self.0)
    }

    /// Returns attributes that objects have and no schema declares, in the order of the alphabet: those of the first 256 objects of open
    /// schemas. Returns none if the pool has more than 100,000 such objects, or a store behind it.
    ///
    /// ```
    /// # use junctura::Pool;
    /// # fn main() -> junctura::Result<()> {
    /// let pool = Pool::builder().schema("free").open()?;
    /// pool.offer([("name", "a"), ("level", "850")], b"")?;
    /// assert_eq!(pool.reasons().undeclared_attributes()?, ["level"]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Disconnected` or `Closed` if the connection has ended.
    pub fn undeclared_attributes(&self) -> Result<Vec<String>> {
        near_miss::undeclared_attributes(self.0)
    }

    /// Returns what keeps memory: retention, requirements, clients that lease or hold it, bundles, and names that
    /// have no requirement yet. The sums are exact if nothing changes meanwhile: the server answers in parts.
    ///
    /// ```
    /// # use junctura::Pool;
    /// # fn main() -> junctura::Result<()> {
    /// let pool = Pool::builder().schema("free").open()?;
    /// pool.offer([("name", "a")], b"payload")?;
    /// let keepers = pool.reasons().keepers()?;
    /// assert_eq!((keepers.sums[0].because.as_str(), keepers.sums[0].bytes), ("until_withdrawn", 7));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Unsupported` from a server of an earlier version.
    pub fn keepers(&self) -> Result<MemoryKeepers> {
        self.begin_keepers()?.wait()
    }

    /// Non-blocking version of [`PoolReasons::keepers`]. See [`Pending`].
    ///
    /// # Errors
    /// Errors that this client detects; the server's errors arrive with the answer.
    pub fn begin_keepers(&self) -> Result<Pending<MemoryKeepers>> {
        begin_keepers(&self.0.connection()?, MemoryKeepers::default(), None)
    }
}

/// Requests the part at a place, and then the next parts.
fn begin_waits(
    connection: &Arc<PoolConnection>,
    limit: usize,
    mut found: Vec<WaitingRequest>,
    after: Option<WaitPlace>,
) -> Result<Pending<Vec<WaitingRequest>>> {
    let left = limit.saturating_sub(found.len());
    let request = Request::Waits(reasons::WaitsRequest {
        after,
        limit: left.min(reasons::WAITS_MAX as usize) as u32,
    });
    let page: Pending<WaitsPage> = begin_reason(connection, &request, FrameKind::Waiting, |reply| match reply {
        Reply::Waiting(page) => Some(page),
        _ => None,
    })?;
    let connection = Arc::clone(connection);
    Ok(page.then(move |page| {
        let page = page?;
        found.extend(page.requests);
        found.truncate(limit);
        match page.next {
            Some(next) if found.len() < limit => begin_waits(&connection, limit, found, Some(next)),
            _ => Ok(Pending::known(&connection, Ok(found))),
        }
    }))
}

/// Requests the part at a place, and then the next parts.
fn begin_keepers(
    connection: &Arc<PoolConnection>,
    mut all: MemoryKeepers,
    after: Option<KeepersPlace>,
) -> Result<Pending<MemoryKeepers>> {
    let request = Request::Keepers(reasons::KeepersRequest { after });
    let part: Pending<MemoryKeepers> = begin_reason(connection, &request, FrameKind::Kept, |reply| match reply {
        Reply::Kept(part) => Some(*part),
        _ => None,
    })?;
    let connection = Arc::clone(connection);
    Ok(part.then(move |part| {
        let part = part?;
        let next = part.next;
        add(&mut all, part);
        if next.is_some() && next != after {
            return begin_keepers(&connection, all, next);
        }
        finish(&mut all);
        Ok(Pending::known(&connection, Ok(all)))
    }))
}

fn add(all: &mut MemoryKeepers, part: MemoryKeepers) {
    all.memory = all.memory.or(part.memory);
    all.requirements.extend(part.requirements);
    all.bundles.extend(part.bundles);
    all.names.extend(part.names);
    for one in part.sums {
        match all.sums.iter_mut().find(|sum| sum.because == one.because) {
            Some(sum) => {
                sum.objects += one.objects;
                sum.bytes += one.bytes;
                sum.alone_bytes += one.alone_bytes;
            }
            None => all.sums.push(one),
        }
    }
    for one in part.clients {
        match all
            .clients
            .iter_mut()
            .find(|other| other.client.client == one.client.client)
        {
            Some(client) => {
                client.leased_bytes += one.leased_bytes;
                client.unused_bytes += one.unused_bytes;
                client.held += one.held;
                client.held_bytes += one.held_bytes;
            }
            None => all.clients.push(one),
        }
    }
}

/// Orders what was added up, the most first, and leaves out what is beyond the limits.
fn finish(all: &mut MemoryKeepers) {
    let bytes = |one: &KeptByClient| one.leased_bytes.max(one.held_bytes);
    all.next = None;
    all.sums.sort_by_key(|one: &KeptSum| std::cmp::Reverse(one.bytes));
    all.clients.sort_by_key(|one| std::cmp::Reverse(bytes(one)));
    all.clients.truncate(KEEPERS_MAX);
    all.requirements.truncate(KEEPERS_MAX);
}

/// Begins a request about reasons; `take` takes its answer out of the reply.
fn begin_reason<T: Send + 'static>(
    connection: &Arc<PoolConnection>,
    request: &Request<'_>,
    kind: FrameKind,
    take: fn(Reply<'_>) -> Option<T>,
) -> Result<Pending<T>> {
    connection.pend(
        ExchangeKind::Once,
        request,
        StreamStop::Cancel,
        move |_, _, said| match said {
            RequestOutcome::Letter(ServerMessage::Reasons(body)) => {
                let frame = WireFrame {
                    kind: kind as u8,
                    descriptors: 0,
                    request: 0,
                    body: &body,
                };
                take(Reply::decode(&frame)?).ok_or_else(|| unexpected("no reasons"))
            }
            _ => Err(unexpected("no reasons")),
        },
    )
}
