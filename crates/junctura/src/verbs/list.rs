//! Lists of visible objects, without payloads.

pub(crate) mod tally;

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use junctura_model::version::Version;
use junctura_model::{Code, Described, Error, RecordRef, Result};
use junctura_wire::body::ListRequest;
use junctura_wire::fixed::{SPILLED, STAGED};
use junctura_wire::look::ListPosition;
use junctura_wire::{ListedPage, Request};

use crate::awaiting::{Awaited, WaitSource};
#[cfg(feature = "async")]
use crate::connection::TaskPlace;
use crate::connection::in_flight::ServerMessage;
use crate::connection::stream::ServerStream;
use crate::connection::{PoolConnection, unexpected};
use crate::explain::warn_of_mistakes;
use crate::iter::iterable;
use crate::pending::Pending;
use crate::pool::Pool;
use crate::store_fallback::{MergeOrder, MergedList, SortPosition, StoredRow};
use crate::verbs::follow::order;

/// A visible object. It dereferences to its [`Described`] attributes.
///
/// ```
/// # use junctura::{ListOptions, Pool};
/// # fn main() -> junctura::Result<()> {
/// # let pool = Pool::builder().schema("free").open()?;
/// let version = pool.offer([("name", "a")], b"bytes")?;
/// let bundle = pool.bundle()?;
/// bundle.offer([("name", "b")], b"more bytes")?;
/// let incomplete = ListOptions { incomplete: true, ..ListOptions::default() };
/// for entry in pool.list_with("", incomplete)?.entries()? {
///     match entry.staged_in() {
///         None => {
///             assert_eq!((entry.version(), entry.bytes(), entry.get("name")), (version, 5, Some("a")));
///             assert!(!entry.is_spilled() && !entry.is_archived());
///         }
///         Some(bundle) => println!("{} of bundle {bundle} is not visible yet", entry.key()),
///     }
/// }
/// # Ok(())
/// # }
/// ```
pub struct Entry {
    object: Described,
    version: Version,
    bytes: u64,
    bundle: Option<u64>,
    is_spilled: bool,
    is_archived: bool,
}

/// Options of a list.
///
/// ```
/// # use junctura::{ListOptions, Pool};
/// # fn main() -> junctura::Result<()> {
/// # let pool = Pool::builder().schema("free").open()?;
/// let bundle = pool.bundle()?;
/// bundle.offer([("name", "a")], b"staged")?;
/// let incomplete = ListOptions { incomplete: true, ..ListOptions::default() };
/// let entries = pool.list_with("", incomplete)?.entries()?;
/// assert!(entries[0].staged_in().is_some());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct ListOptions<'a> {
    /// Orders by the value of this attribute first, then by key.
    pub order_by: Option<&'a str>,
    /// Includes members of incomplete bundles.
    pub incomplete: bool,
    /// Only objects of the bundle at this path, or of a bundle nested in it.
    pub bundle: Option<&'a str>,
    /// Only the first objects, from 1 to 1,000: the server neither collects nor keeps the others. Not with the two
    /// fields above.
    pub limit: Option<u32>,
    /// Only objects behind this one, an entry of an earlier list in the same order; with a limit.
    pub after: Option<&'a Described>,
}

impl Entry {
    /// Returns its newest version. A staged object has sequence number 0.
    #[must_use]
    pub fn version(&self) -> Version {
        self.version
    }

    /// Returns the size of its payload in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the number of the bundle in which it is staged ([`crate::BundleEntry::number`]); `None` if it is
    /// visible.
    #[must_use]
    pub fn staged_in(&self) -> Option<u64> {
        self.bundle
    }

    /// Returns whether its payload was in the server's file tier, and not in memory, when the page was made.
    #[must_use]
    pub fn is_spilled(&self) -> bool {
        self.is_spilled
    }

    /// Returns whether only the store behind the pool has it.
    #[must_use]
    pub fn is_archived(&self) -> bool {
        self.is_archived
    }

    fn archived(row: &StoredRow) -> Result<Self> {
        Ok(Self {
            object: row.describe()?,
            version: row.version(),
            bytes: row.bytes(),
            bundle: None,
            is_spilled: false,
            is_archived: true,
        })
    }
}

impl Deref for Entry {
    type Target = Described;

    fn deref(&self) -> &Described {
        &self.object
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Entry({} {}, {} bytes)", self.object.key(), self.version, self.bytes)
    }
}

/// The pages of a list, one at a time. The memory use is limited to one page. With the feature `async` this type is a
/// stream.
///
/// ```
/// # use junctura::{ListOptions, Pool};
/// # fn main() -> junctura::Result<()> {
/// # let pool = Pool::builder().schema("free").open()?;
/// pool.offer([("name", "a")], b"")?;
/// let mut pages = pool.list_with("", ListOptions::default())?;
/// let mut count = 0;
/// while let Some(page) = pages.next_page()? {
///     count += page.len();
/// }
/// assert_eq!(count, 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Pages {
    pub(crate) connection: Arc<PoolConnection>,
    stream: ServerStream,
    /// The next page has been requested; otherwise the server waits for the request.
    asked: bool,
    /// Entries that only the store behind the pool has.
    behind: Option<MergedList>,
    /// The number of entries that may follow, if limited.
    left: Option<usize>,
    #[cfg(feature = "async")]
    pub(crate) place: TaskPlace,
}

impl Pool {
    /// Returns all visible objects that match a selector, ordered by key. Blocks until the last page has arrived.
    ///
    /// ```
    /// # use junctura::Pool;
    /// # fn main() -> junctura::Result<()> {
    /// let pool = Pool::builder().schema("free").open()?;
    /// pool.offer([("space", "demo"), ("name", "first")], b"bytes")?;
    /// let entries = pool.list("space=demo")?;
    /// assert_eq!((entries.len(), entries[0].bytes()), (1, 5));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `InvalidSelector`, with the position of the invalid character.
    pub fn list(&self, selector: &str) -> Result<Vec<Entry>> {
        let entries = self.begin_list(selector, ListOptions::default())?.wait()?.entries()?;
        if entries.is_empty() {
            warn_of_mistakes(self, selector);
        }
        Ok(entries)
    }

    /// As [`Pool::list`], page by page, with options.
    ///
    /// ```
    /// # use junctura::{ListOptions, Pool};
    /// # fn main() -> junctura::Result<()> {
    /// # let pool = Pool::builder().schema("free").open()?;
    /// pool.bundled(|bundle| bundle.offer([("name", "a")], b"").map(drop))?;
    /// let bundle = pool.bundle()?;
    /// bundle.offer([("name", "b")], b"staged")?;
    /// let incomplete = ListOptions { incomplete: true, order_by: Some("name"), ..Default::default() };
    /// for page in pool.list_with("", incomplete)? {
    ///     let names: Vec<_> = page?.iter().map(|entry| entry.get("name").map(str::to_owned)).collect();
    ///     assert_eq!(names, [Some("a".to_owned()), Some("b".to_owned())]);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `InvalidSelector`; `InvalidArgument` for an attribute that no schema of the pool has; `NotFound` for the path of
    /// a bundle that does not exist or is forgotten.
    pub fn list_with(&self, selector: &str, options: ListOptions<'_>) -> Result<Pages> {
        self.begin_list(selector, options)?.wait()
    }

    /// Non-blocking version of [`Pool::list_with`]. See [`Pending`].
    ///
    /// # Errors
    /// Errors that this client detects; the server's errors arrive with the answer.
    pub fn begin_list(&self, selector: &str, options: ListOptions<'_>) -> Result<Pending<Pages>> {
        let connection = self.connection()?;
        // Only the pool has the members of a bundle.
        let Some(depot) = self.depot().filter(|_| options.bundle.is_none()) else {
            return begin_list(&connection, selector, options);
        };
        let sorting = MergeOrder::new(connection.greeting.schemas.all(), options.order_by)?;
        let request = options.request(&connection, selector)?;
        let left = options.limit.map(|limit| limit as usize);
        let after = match &request {
            Request::List(list) => list.after.as_ref().map(|after| (after.schema, after.record.to_vec())),
            _ => None,
        };
        let served = connection.begin_stream(&request, move |connection, stream, began| {
            let mut pages = Pages::of(connection, stream);
            pages.left = left;
            (pages, began)
        })?;
        let (depot, selector) = (Arc::clone(depot), selector.to_owned());
        Ok(served.then(move |served| {
            let (mut pages, began) = served?;
            let there = Arc::clone(&connection);
            let look = move || {
                let mut rows = depot.newest(&selector)?;
                rows.retain(|row| !row.is_after(there.greeting.incarnation, began));
                let mut behind = MergedList::new(sorting, rows);
                if let Some((number, record)) = &after {
                    let record = RecordRef::trusted(record);
                    let standing = SortPosition {
                        number: *number,
                        record,
                    };
                    while behind.before(standing, true).is_some() {}
                }
                pages.behind = Some(behind);
                Ok(pages)
            };
            Ok(Pending::work(&connection, look, drop))
        }))
    }
}

/// Lists without objects that only the store behind the pool has.
pub(crate) fn begin_list(
    connection: &Arc<PoolConnection>,
    selector: &str,
    options: ListOptions<'_>,
) -> Result<Pending<Pages>> {
    let request = options.request(connection, selector)?;
    connection.begin_stream(&request, |connection, stream, _| Pages::of(connection, stream))
}

impl ListOptions<'_> {
    fn request<'a>(&'a self, connection: &PoolConnection, selector: &'a str) -> Result<Request<'a>> {
        let after = self.after.map(|object| position(connection, object)).transpose()?;
        Ok(Request::List(ListRequest {
            selector: selector.into(),
            order: order(self.order_by),
            incomplete: self.incomplete,
            bundle: self.bundle.map(Into::into),
            limit: self.limit.map(u64::from),
            after,
        }))
    }
}

/// Returns the place of an object in the order of a list.
fn position<'a>(connection: &PoolConnection, object: &'a Described) -> Result<ListPosition<'a>> {
    let name = object.schema().name();
    let number = connection.greeting.schemas.position(name);
    let number = number.ok_or_else(|| {
        let cause = format!("the pool has no schema {name}");
        Error::new(Code::SchemaMismatch, object.key(), cause)
    })?;
    Ok(ListPosition {
        schema: number,
        record: object.record().as_bytes().into(),
    })
}

impl Pages {
    fn of(connection: &Arc<PoolConnection>, stream: ServerStream) -> Self {
        Self {
            connection: Arc::clone(connection),
            stream,
            asked: true,
            behind: None,
            left: None,
            #[cfg(feature = "async")]
            place: TaskPlace::default(),
        }
    }

    /// Returns the next page; `None` after the last one. Blocks until the page arrives.
    ///
    /// ```
    /// # use junctura::{ListOptions, Pool};
    /// # fn main() -> junctura::Result<()> {
    /// # let pool = Pool::builder().schema("free").open()?;
    /// # pool.offer([("name", "a")], b"")?;
    /// let mut pages = pool.list_with("", ListOptions::default())?;
    /// assert_eq!(pages.next_page()?.map(|page| page.len()), Some(1));
    /// assert!(pages.next_page()?.is_none() && pages.is_over());
    /// # pages.begin_stop()?.wait()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Pool::list_with`]; `Disconnected`. The list ends after an error, unless that is `Interrupted`.
    pub fn next_page(&mut self) -> Result<Option<Vec<Entry>>> {
        if self.stream.is_over() {
            return Ok(None);
        }
        let page = self.page();
        self.stream.fuse(page.map(Some))
    }

    /// Returns the entries of all remaining pages. Blocks until the last page arrives.
    ///
    /// ```
    /// # use junctura::{ListOptions, Pool};
    /// # fn main() -> junctura::Result<()> {
    /// # let pool = Pool::builder().schema("free").open()?;
    /// assert!(pool.list_with("", ListOptions::default())?.entries()?.is_empty());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Pages::next_page`].
    pub fn entries(mut self) -> Result<Vec<Entry>> {
        let mut entries = Vec::new();
        while let Some(page) = self.next_page()? {
            entries.extend(page);
        }
        Ok(entries)
    }

    fn page(&mut self) -> Result<Vec<Entry>> {
        self.ask()?;
        let letter = self.stream.next(None)?;
        self.read(letter)
    }

    /// Returns the next page if it has been read, as [`Pending::take`]. `None`: it has not been read, or there are no
    /// more ([`Pages::is_over`]). The first call after each page requests the next one.
    #[cfg(feature = "async")]
    pub(crate) fn take_next(&mut self) -> Result<Option<Vec<Entry>>> {
        if self.stream.is_over() {
            return Ok(None);
        }
        let page = self.taken();
        self.stream.fuse(page)
    }

    #[cfg(feature = "async")]
    fn taken(&mut self) -> Result<Option<Vec<Entry>>> {
        if !self.asked {
            self.ask()?;
            // The rest of the outbox is sent by the next poll.
            self.connection.lock()?.send()?;
        }
        match self.stream.take()? {
            None => Ok(None),
            letter => self.read(letter).map(Some),
        }
    }

    /// Ends the list after an error, other than one of a task's wait.
    #[cfg(feature = "async")]
    pub(crate) fn fuse<T>(&mut self, outcome: Result<T>) -> Result<T> {
        self.stream.fuse(outcome)
    }

    /// Returns whether the last page was returned.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.stream.is_over()
    }

    /// Ends the list without waiting for the remaining pages.
    ///
    /// # Errors
    /// `Disconnected` or `Closed` if the connection has ended.
    pub fn begin_stop(&mut self) -> Result<Pending<()>> {
        self.stream.begin_stop()
    }

    /// Requests the next page, unless it was requested already.
    fn ask(&mut self) -> Result<()> {
        if !self.asked {
            self.stream.say(&Request::More(self.stream.number()))?;
            self.asked = true;
        }
        Ok(())
    }

    fn read(&mut self, letter: Option<ServerMessage>) -> Result<Vec<Entry>> {
        self.asked = false;
        match letter {
            Some(ServerMessage::Page { last, entries }) => {
                let page = ListedPage {
                    last,
                    entries: &entries,
                };
                let mut entries = match &mut self.behind {
                    None => read(&self.connection, page)?,
                    Some(behind) => merge(&self.connection, page, behind)?,
                };
                if let Some(left) = &mut self.left {
                    entries.truncate(*left);
                    *left -= entries.len();
                }
                Ok(entries)
            }
            Some(ServerMessage::Failed(error) | ServerMessage::Ended(error)) => Err(error),
            _ => Err(unexpected("in a list")),
        }
    }
}

impl Awaited for Pages {
    fn awaiting(&self) -> WaitSource {
        self.stream.awaiting()
    }
}

/// Merges entries that only the store has into a page, in order; the last page includes all remaining ones.
fn merge(connection: &PoolConnection, page: ListedPage<'_>, behind: &mut MergedList) -> Result<Vec<Entry>> {
    let mut merged = Vec::new();
    for (listed, entry) in page.iter().zip(read(connection, page)?) {
        let (head, record) = listed?;
        let standing = SortPosition {
            number: head.schema.get(),
            record: RecordRef::trusted(record),
        };
        while let Some(row) = behind.before(standing, entry.staged_in().is_none()) {
            merged.push(Entry::archived(&row)?);
        }
        merged.push(entry);
    }
    while page.last
        && let Some(row) = behind.pop()
    {
        merged.push(Entry::archived(&row)?);
    }
    Ok(merged)
}

fn read(connection: &PoolConnection, page: ListedPage<'_>) -> Result<Vec<Entry>> {
    let entries = page.iter().map(|entry| {
        let (head, record) = entry?;
        let schema = connection.known_schema(head.schema.get())?;
        let is_staged = head.flags.get() & STAGED != 0;
        let number = head.sequence.get();
        let version = connection.version(if is_staged { 0 } else { number });
        Ok(Entry {
            bundle: is_staged.then_some(number),
            object: Described::new(schema, RecordRef::trusted(record).to_owned()),
            version,
            bytes: head.length.get(),
            is_spilled: head.flags.get() & SPILLED != 0,
            is_archived: false,
        })
    });
    entries.collect()
}

iterable!(Pages, Vec<Entry>, next_page);
