//! What comes: follows, subscriptions, requirements, pages of lists.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use junctura_model::version::Cursor;
use junctura_model::{Code, Result};

use super::beside::{Beside, beside};
use super::tasks::until;
use crate::awaiting::Awaited;
use crate::connection::Connection;
use crate::connection::TaskPlace;
use crate::pending::Pending;
use crate::{Entry, Errand, FollowOptions, Gap, Item, Object, PoolEvent, Target};

/// A follow; dropping it ends it, without waiting. Objects that it gave stay held until they are dropped themselves.
///
/// It is a [`Stream`] of items, and ends when the follow ends. `next` of any crate of streams, and [`Follow::next_item`], may be
/// dropped while they wait: no item is lost.
///
/// ```
/// # use junctura::{Item, Pool, aio};
/// # use tokio_stream::StreamExt as _;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> junctura::Result<()> {
/// # let pool = aio::Pool::open(Pool::builder().schema("free")).await?;
/// pool.offer([("name", "early")], b"").await?;
/// let mut follow = pool.follow("").await?;
/// while let Some(item) = follow.next().await {
///     match item? {
///         Item::Object(object) => println!("{object:?}, to be resumed from {:?}", follow.cursor()),
///         Item::Gap(gap) => println!("lost: {}", gap.reason),
///         Item::Live => break, // what comes now is new
///     }
/// }
/// assert!(follow.is_live() && !follow.is_over());
/// assert_eq!((follow.snapshot_sequence(), follow.window()), (1, 256));
/// let next = follow.next_item(); // without a crate of streams
/// # drop(next);
/// follow.stop().await?; // nothing of it is on its way any more
/// # Ok(())
/// # }
/// ```
pub struct Follow {
    inner: crate::Follow,
    connection: Arc<Connection>,
    place: TaskPlace,
    /// What is done for the next item, and takes long.
    errand: Option<Beside<Option<Errand>>>,
}

enum Next {
    Item(Item),
    Errand(Errand),
    Over,
}

impl Follow {
    pub(super) fn new(connection: &Arc<Connection>, inner: crate::Follow) -> Self {
        Self {
            inner,
            connection: Arc::clone(connection),
            place: TaskPlace::default(),
            errand: None,
        }
    }

    /// Looks into the store behind the pool, if there is one.
    pub(super) async fn begin(&mut self) -> Result<()> {
        if let Some(errand) = self.inner.beginning()? {
            self.send_out(errand)?;
        }
        poll_fn(|cx| self.poll_errand(cx)).await
    }

    /// The next item; waits for it. `None`: the follow has ended.
    ///
    /// # Errors
    /// As [`crate::Follow::next_item`].
    pub async fn next_item(&mut self) -> Result<Option<Item>> {
        poll_fn(|cx| self.poll_item(cx)).await
    }

    fn poll_item(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Item>>> {
        loop {
            ready!(self.poll_errand(cx))?;
            match ready!(
                self.place
                    .poll(&self.connection, cx, &mut self.inner, Awaited::awaiting, next)
            )? {
                Next::Item(item) => return Poll::Ready(Ok(Some(item))),
                Next::Over => return Poll::Ready(Ok(None)),
                Next::Errand(errand) => self.send_out(errand)?,
            }
        }
    }

    /// It stays where a task that waited for it does not come back.
    fn poll_errand(&mut self, cx: &mut Context<'_>) -> Poll<Result<()>> {
        let Some(errand) = &mut self.errand else {
            return Poll::Ready(Ok(()));
        };
        let done = ready!(Pin::new(errand).poll(cx));
        self.errand = None;
        Poll::Ready(done.map_or(Ok(()), |errand| self.inner.finish(errand)))
    }

    fn send_out(&mut self, errand: Errand) -> Result<()> {
        let errand = Arc::new(Mutex::new(Some(errand)));
        let take = |errand: &Mutex<Option<Errand>>| errand.lock().unwrap_or_else(PoisonError::into_inner).take();
        let sent = Arc::clone(&errand);
        let run = move || {
            let mut errand = take(&sent)?;
            errand.run();
            Some(errand)
        };
        match beside(run, drop) {
            Ok(beside) => self.errand = Some(beside),
            // Without a thread it stays to be done.
            Err(error) => {
                take(&errand).map_or(Ok(()), |errand| self.inner.finish(errand))?;
                return Err(error);
            }
        }
        Ok(())
    }

    /// As [`crate::Follow::is_over`].
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.inner.is_over()
    }

    /// As [`crate::Follow::is_live`].
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.inner.is_live()
    }

    /// As [`crate::Follow::snapshot_sequence`].
    #[must_use]
    pub fn snapshot_sequence(&self) -> u64 {
        self.inner.snapshot_sequence()
    }

    /// As [`crate::Follow::window`].
    #[must_use]
    pub fn window(&self) -> u32 {
        self.inner.window()
    }

    /// As [`crate::Follow::cursor`].
    #[must_use]
    pub fn cursor(&self) -> Option<Cursor> {
        self.inner.cursor()
    }

    /// Ends it; what was on its way is given back. Returns when the server has said its last word on it.
    ///
    /// # Errors
    /// `Disconnected` or `Closed` when there is no server any more.
    pub async fn stop(mut self) -> Result<()> {
        self.errand = None;
        ended(self.inner.begin_stop()?).await
    }
}

fn next(follow: &mut crate::Follow) -> Option<Result<Next>> {
    match follow.take_next() {
        Ok(None) => match follow.take_errand() {
            Ok(None) if follow.is_over() => Some(Ok(Next::Over)),
            errand => errand.transpose().map(|errand| errand.map(Next::Errand)),
        },
        item => item.transpose().map(|item| item.map(Next::Item)),
    }
}

async fn ended(stop: Option<Pending<()>>) -> Result<()> {
    match stop {
        Some(stop) => stop.await,
        None => Ok(()),
    }
}

impl Stream for Follow {
    type Item = Result<Item>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_item(cx).map(Result::transpose)
    }
}

impl Drop for Follow {
    fn drop(&mut self) {
        // Without a server there is nothing to end.
        let _ = self.inner.begin_stop();
    }
}

impl fmt::Debug for Follow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "aio::{:?}", self.inner)
    }
}

/// A subscription; dropping it ends it, without waiting. A [`Stream`] of events.
///
/// ```
/// # use junctura::{EventKind, Pool, aio};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> junctura::Result<()> {
/// # let pool = aio::Pool::open(Pool::builder().schema("free")).await?;
/// let mut events = pool.subscribe("space=demo", &[EventKind::Offered]).await?;
/// pool.offer([("space", "demo"), ("name", "first")], b"bytes").await?;
/// let event = events.next_event().await?.expect("it has not ended");
/// assert_eq!((event.kind, event.bytes), (EventKind::Offered, 5));
/// assert!(!events.is_over());
/// events.stop().await?;
/// # Ok(())
/// # }
/// ```
pub struct Subscription {
    inner: crate::Subscription,
    connection: Arc<Connection>,
    place: TaskPlace,
}

impl Subscription {
    pub(super) fn new(connection: &Arc<Connection>, inner: crate::Subscription) -> Self {
        Self {
            inner,
            connection: Arc::clone(connection),
            place: TaskPlace::default(),
        }
    }

    /// The next event; waits for it. `None`: the subscription has ended.
    ///
    /// # Errors
    /// As [`crate::Subscription::next_event`].
    pub async fn next_event(&mut self) -> Result<Option<PoolEvent>> {
        poll_fn(|cx| self.poll_event(cx)).await
    }

    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<PoolEvent>>> {
        let take = |events: &mut crate::Subscription| match events.take_next() {
            Ok(None) if !events.is_over() => None,
            event => Some(event),
        };
        self.place
            .poll(&self.connection, cx, &mut self.inner, Awaited::awaiting, take)
    }

    /// As [`crate::Subscription::is_over`].
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.inner.is_over()
    }

    /// Ends it; returns when the server has said its last word on it.
    ///
    /// # Errors
    /// `Disconnected` or `Closed` when there is no server any more.
    pub async fn stop(mut self) -> Result<()> {
        ended(self.inner.begin_stop()?).await
    }
}

impl Stream for Subscription {
    type Item = Result<PoolEvent>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_event(cx).map(Result::transpose)
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        // Without a server there is nothing to end.
        let _ = self.inner.begin_stop();
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("aio::Subscription")
    }
}

/// The pages of a list, one at a time; a [`Stream`] of them. Dropping it ends it, without waiting.
pub struct Pages {
    inner: crate::Pages,
    connection: Arc<Connection>,
    place: TaskPlace,
}

impl Pages {
    pub(super) fn new(connection: &Arc<Connection>, inner: crate::Pages) -> Self {
        Self {
            inner,
            connection: Arc::clone(connection),
            place: TaskPlace::default(),
        }
    }

    /// The next page; waits for it. `None`: there are no more.
    ///
    /// ```
    /// # use junctura::{ListOptions, Pool, aio};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> junctura::Result<()> {
    /// # let pool = aio::Pool::open(Pool::builder().schema("free")).await?;
    /// # pool.offer([("name", "a"), ("size", "1")], b"").await?;
    /// let by_size = ListOptions { order_by: Some("name"), ..ListOptions::default() };
    /// let mut pages = pool.list_with(&by_size, "").await?;
    /// while let Some(page) = pages.next_page().await? {
    ///     for entry in page {
    ///         println!("{} {}", entry.key(), entry.version());
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`crate::Pool::list_with`].
    pub async fn next_page(&mut self) -> Result<Option<Vec<Entry>>> {
        poll_fn(|cx| self.poll_page(cx)).await
    }

    fn poll_page(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Vec<Entry>>>> {
        let take = |pages: &mut crate::Pages| {
            let was_over = pages.is_over();
            match pages.take_next() {
                Ok(None) if !was_over => None,
                page => Some(page),
            }
        };
        self.place
            .poll(&self.connection, cx, &mut self.inner, Awaited::awaiting, take)
    }
}

impl Stream for Pages {
    type Item = Result<Vec<Entry>>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_page(cx).map(Result::transpose)
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // Without a server there is nothing to end.
        let _ = self.inner.begin_stop();
    }
}

impl fmt::Debug for Pages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("aio::Pages")
    }
}

/// A requirement. Dropping one without a name retracts it; dropping one with a name ends this client's use of it; neither
/// waits.
///
/// ```
/// # use junctura::{FollowOptions, Item, Pool, WithdrawOptions, aio};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> junctura::Result<()> {
/// # let pool = aio::Pool::open(Pool::builder().schema("free")).await?;
/// let mut requirement = pool.require("space=demo").await?;
/// pool.offer([("space", "demo"), ("name", "first")], b"bytes").await?;
/// pool.offer([("space", "demo"), ("name", "second")], b"more").await?;
///
/// assert_eq!((requirement.selector(), requirement.name(), requirement.sequence()), ("space=demo", None, 0));
/// let object = requirement.demand("name=first", None).await?;
/// assert_eq!(&object[..], b"bytes");
/// let mut rest = requirement.follow().await?;
/// while let Some(item) = rest.next_item().await? {
///     let Item::Object(object) = item else { continue };
///     assert_eq!(object.get("name"), Some("second"));
///     break;
/// }
/// rest.stop().await?;
///
/// // With options: at most one at a time. What was taken away by force is told.
/// let one = FollowOptions { window: Some(1), ..FollowOptions::default() };
/// requirement.follow_with(&one).await?.stop().await?;
/// # pool.offer([("space", "demo"), ("name", "third")], b"").await?;
/// pool.retire("name=third", WithdrawOptions { force: true, ..WithdrawOptions::default() }).await?;
/// assert_eq!(requirement.gap().await?.reason, "withdrawn");
/// requirement.retract().await?; // what only it kept may go
/// # Ok(())
/// # }
/// ```
pub struct Requirement {
    inner: crate::Requirement,
    connection: Arc<Connection>,
}

impl Requirement {
    pub(super) fn new(connection: &Arc<Connection>, inner: crate::Requirement) -> Self {
        Self {
            inner,
            connection: Arc::clone(connection),
        }
    }

    /// As [`crate::Requirement::selector`].
    #[must_use]
    pub fn selector(&self) -> &str {
        self.inner.selector()
    }

    /// As [`crate::Requirement::name`].
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.inner.name()
    }

    /// As [`crate::Requirement::sequence`].
    #[must_use]
    pub fn sequence(&self) -> u64 {
        self.inner.sequence()
    }

    /// Receives everything that it requires; of a group, a share of it.
    ///
    /// # Errors
    /// As [`crate::Requirement::follow_with`].
    pub async fn follow(&self) -> Result<Follow> {
        self.follow_with(&FollowOptions::default()).await
    }

    /// As [`crate::Requirement::follow_with`].
    ///
    /// # Errors
    /// As there.
    pub async fn follow_with(&self, options: &FollowOptions) -> Result<Follow> {
        let follow = self.inner.begin_follow(options)?.await?;
        Ok(Follow::new(&self.connection, follow))
    }

    /// Receives one object through this requirement, as [`crate::Requirement::demand`].
    ///
    /// # Errors
    /// As there.
    pub async fn demand<'a>(
        &self,
        target: impl Into<Target<'a>>,
        timeout: Option<std::time::Duration>,
    ) -> Result<Object> {
        self.inner.begin_demand(target, timeout)?.await
    }

    /// What it was owed and will not get, once that is so: as [`crate::Requirement::try_gap`], and waits for it.
    ///
    /// # Errors
    /// As there.
    pub async fn gap(&mut self) -> Result<Gap> {
        let awaiting = self.inner.awaiting();
        let requirement = &mut self.inner;
        until(&self.connection, awaiting, || requirement.take_gap().transpose()).await
    }

    /// Gives it up, for all who use it: what only it kept may go.
    ///
    /// # Errors
    /// `Disconnected` or `Closed` when there is no server any more.
    pub async fn retract(mut self) -> Result<()> {
        let retracted = match self.inner.name() {
            Some(name) => self.connection.begin_retract(name)?.await.map(drop),
            None => Ok(()),
        };
        ended(self.inner.begin_stop()?).await?;
        match retracted {
            // Somebody else was faster.
            Err(error) if error.code() == Code::NotFound => Ok(()),
            retracted => retracted,
        }
    }
}

impl Drop for Requirement {
    fn drop(&mut self) {
        // Without a server there is nothing to end.
        let _ = self.inner.begin_stop();
    }
}

impl fmt::Debug for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "aio::Requirement({})", self.selector())
    }
}
