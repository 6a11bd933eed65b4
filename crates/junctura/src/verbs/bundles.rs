//! The list of bundles.

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

/// The state of a bundle.
///
/// ```
/// # use junctura::{BundleOptions, BundleState, Pool};
/// # fn main() -> junctura::Result<()> {
/// # let pool = Pool::builder().schema("free").open()?;
/// let bundle = pool.open_bundle("step/6", [("space", "forecast")], BundleOptions::default())?;
/// bundle.offer([("name", "t")], b"...")?;
/// assert_eq!(pool.bundles("", None)?[0].state, BundleState::Open);
/// bundle.seal()?;
/// assert_eq!(pool.bundles("", None)?[0].state.name(), "visible");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BundleState {
    /// It lacks members.
    Open,
    /// It has all its members, and becomes visible with the enclosing bundle.
    Complete,
    /// It is visible, or was. Its path is remembered as long as one of its objects is visible, and after that as long
    /// as a removed key.
    Visible,
}

impl BundleState {
    /// Returns its name, the same in every language.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Complete => "complete",
            Self::Visible => "visible",
        }
    }
}

/// A bundle in the list.
///
/// ```
/// # use junctura::{BundleOptions, BundleState, Pool};
/// # fn main() -> junctura::Result<()> {
/// # let pool = Pool::builder().schema("free").open()?;
/// let two = BundleOptions { members: Some(2), ..BundleOptions::default() };
/// let bundle = pool.open_bundle("step/6", [("space", "forecast")], two)?;
/// bundle.offer([("name", "t")], b"...")?;
/// let entry = &pool.bundles("", None)?[0];
/// assert_eq!((entry.state, entry.members, entry.declared), (BundleState::Open, 1, Some(2)));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct BundleEntry {
    /// Its number; a bundle that was opened later has a higher number.
    pub number: u64,
    /// Its path, if it has one.
    pub path: Option<String>,
    /// Its state.
    pub state: BundleState,
    /// The declared number of members, if any.
    pub declared: Option<u64>,
    /// The current number of members: objects, and nested bundles that are complete.
    pub members: u64,
    /// The size of the payloads of its own objects in bytes, until it is visible.
    pub staged_bytes: u64,
    /// The number of handles that have it, or a bundle nested in it, open.
    pub openers: u32,
    /// The time until it is aborted if no producer opens it.
    pub orphaned_for: Option<Duration>,
    /// Its attributes, if it has any.
    pub attributes: Option<Described>,
    /// The version of its first visible object; the versions of the others are consecutive.
    pub first: Option<Version>,
    /// The number of its own objects that are visible.
    pub visible: u64,
    /// The number of the enclosing bundle.
    pub parent: Option<u64>,
}

impl Pool {
    /// Returns the bundles whose attributes match a selector, in the order in which they were opened: incomplete
    /// bundles and remembered ones. A bundle without attributes matches a selector that requires none. With a path
    /// `under`, returns only the bundle at this path and those nested in it. Blocks until the server has answered.
    ///
    /// ```
    /// # use junctura::{BundleOptions, Pool};
    /// # fn main() -> junctura::Result<()> {
    /// let pool = Pool::builder().schema("free").open()?;
    /// let bundle = pool.open_bundle("step/6", [("space", "forecast")], BundleOptions::default())?;
    /// bundle.offer([("name", "t")], b"...")?;
    /// let bundles = pool.bundles("space=forecast", None)?;
    /// assert_eq!((bundles[0].path.as_deref(), bundles[0].members), (Some("step/6"), 1));
    /// assert_eq!(pool.bundles("", Some("step/6"))?.len(), 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `InvalidSelector`, with the position of the invalid character.
    pub fn bundles(&self, selector: &str, under: Option<&str>) -> Result<Vec<BundleEntry>> {
        self.begin_bundles(selector, under)?.wait()
    }

    /// Non-blocking version of [`Pool::bundles`]. See [`Pending`].
    ///
    /// # Errors
    /// Errors that this client detects; the server's errors arrive with the answer.
    pub fn begin_bundles(&self, selector: &str, under: Option<&str>) -> Result<Pending<Vec<BundleEntry>>> {
        begin_page(&self.connection()?, under, selector, Vec::new())
    }
}

/// Requests the page after these entries, and then the next pages.
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

/// Appends a page; returns whether it was the last.
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
