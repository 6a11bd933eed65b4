//! Which bundles there are.

use std::sync::Arc;
use std::time::Duration;

use junctura_model::version::Version;
use junctura_model::{Described, RecordRef, Result};
use junctura_wire::body::{BundleStatus, BundlesRequest};
use junctura_wire::{FrameKind, Reply, Request, WireFrame};

use crate::connection::in_flight::{ExchangeKind, ServerMessage};
use crate::connection::state::StreamStop;
use crate::connection::{PoolConnection, unexpected};
use crate::pending::{Pending, RequestOutcome};
use crate::pool::Pool;

/// Where a bundle stands.
///
/// ```
/// # use junctura::{BundleOptions, BundleState, Pool};
/// # fn main() -> junctura::Result<()> {
/// # let pool = Pool::builder().schema("free").open()?;
/// let bundle = pool.open_bundle("step/6", [("space", "forecast")], BundleOptions::default())?;
/// bundle.offer([("name", "t")], b"...")?;
/// assert_eq!(pool.bundles("")?[0].state, BundleState::Open);
/// bundle.seal()?;
/// assert_eq!(pool.bundles("")?[0].state.name(), "visible");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BundleState {
    /// It lacks members.
    Open,
    /// It has all its members, and becomes visible with the bundle around it.
    Complete,
    /// It is visible, or was: its path is remembered as long as an object of it is visible, and then as long as a key that
    /// is gone.
    Visible,
}

impl BundleState {
    /// Its name, the same in every language.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Complete => "complete",
            Self::Visible => "visible",
        }
    }
}

/// What is known of a bundle.
#[derive(Debug)]
pub struct BundleEntry {
    /// Its number: one that was opened later has a higher one.
    pub number: u64,
    /// Its path; `None`: it has none.
    pub path: Option<String>,
    /// Where it stands.
    pub state: BundleState,
    /// How many members make it complete, where that was said.
    pub declared: Option<u64>,
    /// How many are there: objects, and nested bundles that are complete.
    pub members: u64,
    /// Bytes of its own objects' payloads, until it is visible.
    pub staged_bytes: u64,
    /// How many have it, or one nested in it, open.
    pub openers: u32,
    /// After what time it is aborted, if nobody opens it.
    pub orphaned_for: Option<Duration>,
    /// What it is about, where that was said.
    pub attributes: Option<Described>,
    /// The version of the first object that became visible with it; those of the others follow.
    pub first: Option<Version>,
    /// Objects of its own that are visible.
    pub visible: u64,
    /// The number of the bundle that it is nested in.
    pub parent: Option<u64>,
}

impl Pool {
    /// The bundles whose attributes match a selector, in the order in which they were opened: those that are not complete,
    /// and those that are remembered. One without attributes matches what asks for none.
    ///
    /// ```
    /// # use junctura::{BundleOptions, Pool};
    /// # fn main() -> junctura::Result<()> {
    /// let pool = Pool::builder().schema("free").open()?;
    /// let bundle = pool.open_bundle("step/6", [("space", "forecast")], BundleOptions::default())?;
    /// bundle.offer([("name", "t")], b"...")?;
    /// let bundles = pool.bundles("space=forecast")?;
    /// assert_eq!((bundles[0].path.as_deref(), bundles[0].members), (Some("step/6"), 1));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `InvalidSelector`, pointing at the character.
    pub fn bundles(&self, selector: &str) -> Result<Vec<BundleEntry>> {
        self.bundles_under(None, selector)
    }

    /// As [`Pool::bundles`], of one path and what is nested in it.
    ///
    /// ```
    /// # use junctura::{BundleOptions, Pool};
    /// # fn main() -> junctura::Result<()> {
    /// # let pool = Pool::builder().schema("free").open()?;
    /// # let bundle = pool.open_bundle("step/6", [("space", "forecast")], BundleOptions::default())?;
    /// let of_step_6 = pool.bundles_under(Some("step/6"), "")?;
    /// assert_eq!(of_step_6[0].path.as_deref(), Some("step/6"));
    /// # drop(bundle);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Pool::bundles`].
    pub fn bundles_under(&self, path: Option<&str>, selector: &str) -> Result<Vec<BundleEntry>> {
        self.begin_bundles(path, selector)?.wait()
    }

    /// As [`Pool::bundles_under`], without waiting. See [`Pending`].
    ///
    /// # Errors
    /// What this side can tell; the server's errors come with the answer.
    pub fn begin_bundles(&self, path: Option<&str>, selector: &str) -> Result<Pending<Vec<BundleEntry>>> {
        begin_page(&self.connection()?, path, selector, Vec::new())
    }
}

/// Asks for the bundles after these, and for those after them.
fn begin_page(
    connection: &Arc<PoolConnection>,
    path: Option<&str>,
    selector: &str,
    mut entries: Vec<BundleEntry>,
) -> Result<Pending<Vec<BundleEntry>>> {
    let request = after(&entries, path, selector);
    let page = connection.pend(
        ExchangeKind::Once,
        &request,
        StreamStop::Cancel,
        |connection, _, said| match said {
            RequestOutcome::Letter(ServerMessage::Bundled(body)) => {
                let is_last = read(connection, &body, &mut entries)?;
                Ok((entries, is_last))
            }
            _ => Err(unexpected("no bundles")),
        },
    )?;
    let connection = Arc::clone(connection);
    let (path, selector) = (path.map(str::to_owned), selector.to_owned());
    Ok(page.then(move |page| match page? {
        (entries, true) => Ok(Pending::known(&connection, Ok(entries))),
        (entries, false) => begin_page(&connection, path.as_deref(), &selector, entries),
    }))
}

fn after<'a>(entries: &[BundleEntry], path: Option<&'a str>, selector: &'a str) -> Request<'a> {
    Request::Bundles(BundlesRequest {
        selector: selector.into(),
        path: path.map(Into::into),
        after: entries.last().map_or(0, |entry| entry.number),
    })
}

/// Appends a page; true when it was the last.
fn read(connection: &PoolConnection, body: &[u8], entries: &mut Vec<BundleEntry>) -> Result<bool> {
    let frame = WireFrame {
        kind: FrameKind::Bundled as u8,
        descriptors: 0,
        request: 0,
        body,
    };
    let Reply::Bundled(page) = Reply::decode(&frame)? else {
        return Err(unexpected("no page of bundles"));
    };
    let is_last = page.last || page.items.is_empty();
    for item in page.items {
        entries.push(entry(connection, item)?);
    }
    Ok(is_last)
}

fn entry(connection: &PoolConnection, item: BundleStatus<'_>) -> Result<BundleEntry> {
    let attributes: Option<Result<Described>> = item.attributes.map(|about| {
        let schema = connection.known_schema(about.schema)?;
        Ok(Described::new(schema, RecordRef::trusted(&about.record).to_owned()))
    });
    Ok(BundleEntry {
        number: item.number,
        path: item.path.map(std::borrow::Cow::into_owned),
        state: match item.state {
            0 => BundleState::Open,
            1 => BundleState::Complete,
            _ => BundleState::Visible,
        },
        declared: item.declared,
        members: item.members,
        staged_bytes: item.bytes,
        openers: item.openers,
        orphaned_for: item.orphaned_for_ms.map(Duration::from_millis),
        attributes: attributes.transpose()?,
        first: Some(item.first)
            .filter(|&first| first > 0)
            .map(|first| connection.version(first)),
        visible: item.visible,
        parent: item.parent,
    })
}
