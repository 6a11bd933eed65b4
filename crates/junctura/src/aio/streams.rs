//! Follows, subscriptions, pages and gaps for tasks: streams and single items.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use futures_core::Stream;
use junctura_model::Result;

use super::tasks::until;
use crate::awaiting::Awaited;
use crate::beside::{ThreadAnswer, beside};
use crate::connection::TaskPlace;
use crate::verbs::follow::{BlockingStep, Follow, Gap, Item, too_late};
use crate::verbs::list::{Entry, Pages};
use crate::verbs::require::Requirement;
use crate::verbs::subscribe::{PoolEvent, Subscription};

/// The task that waits for a follow.
#[derive(Default)]
pub(crate) struct FollowTask {
    place: TaskPlace,
    /// A step that a thread runs for the follow.
    errand: Option<ThreadAnswer<BlockingStep>>,
}

/// The result of a poll of a follow.
enum PolledItem {
    Item(Item),
    Errand(BlockingStep),
    Over,
}

impl Follow {
    /// Async version of [`Follow::next_item`]; `None` when the follow has ended. If the future is dropped, the item is
    /// not lost.
    ///
    /// Requires the feature `async`.
    ///
    /// ```
    /// # use junctura::{FollowOptions, Item, Pool};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> junctura::Result<()> {
    /// # let pool = Pool::builder().schema("free").open()?;
    /// let mut follow = pool.begin_follow("", FollowOptions::default())?.await?;
    /// assert!(matches!(follow.begin_next().await?, Some(Item::Live)));
    /// follow.begin_stop()?.await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Follow::next_item`].
    pub async fn begin_next(&mut self) -> Result<Option<Item>> {
        poll_fn(|cx| self.poll_item(cx)).await
    }

    fn poll_item(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Item>>> {
        loop {
            ready!(self.poll_errand(cx))?;
            let mut place = std::mem::take(&mut self.task.place);
            let connection = Arc::clone(self.connection());
            let polled = place.poll(&connection, cx, self, Awaited::awaiting, |follow| found(follow).map(Ok));
            self.task.place = place;
            let found = self.fuse(ready!(polled))?;
            match found? {
                PolledItem::Item(item) => return Poll::Ready(Ok(Some(item))),
                PolledItem::Over => return Poll::Ready(Ok(None)),
                PolledItem::Errand(errand) => {
                    let sent = self.send_out(errand);
                    self.fuse(sent)?;
                }
            }
        }
    }

    fn poll_errand(&mut self, cx: &mut Context<'_>) -> Poll<Result<()>> {
        let Some(errand) = &mut self.task.errand else {
            return Poll::Ready(Ok(()));
        };
        let done = ready!(Pin::new(errand).poll(cx));
        self.task.errand = None;
        Poll::Ready(self.finish(done))
    }

    /// Whether a dropped task may have left an item.
    pub(crate) fn is_left_by_task(&self) -> bool {
        self.task.errand.is_some() || self.has_errands()
    }

    /// Returns the item that a dropped task left: the result of the thread that reads for the follow is first.
    ///
    /// # Errors
    /// Also `Timeout` if the thread takes longer than this.
    pub(crate) fn left_by_task(&mut self, deadline: Option<Instant>) -> Result<Option<Item>> {
        if !self.is_left_by_task() {
            return Ok(None);
        }
        let connection = Arc::clone(self.connection());
        if let Some(errand) = &mut self.task.errand {
            let done = errand.wait_on(&connection, deadline)?.ok_or_else(too_late)?;
            self.task.errand = None;
            self.finish(done)?;
        }
        if !self.has_errands() {
            return Ok(None);
        }
        if let Some(mut errand) = self.take_errand()? {
            errand.run();
            self.finish(errand)?;
        }
        self.take_next()
    }

    fn send_out(&mut self, mut errand: BlockingStep) -> Result<()> {
        let run = move || {
            errand.run();
            errand
        };
        self.task.errand = Some(beside(run, drop)?);
        Ok(())
    }
}

fn found(follow: &mut Follow) -> Option<Result<PolledItem>> {
    match follow.take_next() {
        Ok(None) => match follow.take_errand() {
            Ok(None) if follow.is_over() => Some(Ok(PolledItem::Over)),
            errand => errand.transpose().map(|errand| errand.map(PolledItem::Errand)),
        },
        item => item.transpose().map(|item| item.map(PolledItem::Item)),
    }
}

impl Stream for Follow {
    type Item = Result<Item>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_item(cx).map(Result::transpose)
    }
}

impl Subscription {
    /// Async version of [`Subscription::next_event`]; `None` when the subscription has ended. If the future is dropped,
    /// the event is not lost.
    ///
    /// Requires the feature `async`.
    ///
    /// ```
    /// # use junctura::Pool;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> junctura::Result<()> {
    /// # let pool = Pool::builder().schema("free").open()?;
    /// let mut events = pool.begin_subscribe("", &[])?.await?;
    /// pool.offer([("name", "a")], b"payload")?;
    /// assert!(events.begin_next().await?.is_some());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Subscription::next_event`].
    pub async fn begin_next(&mut self) -> Result<Option<PoolEvent>> {
        poll_fn(|cx| self.poll_event(cx)).await
    }

    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<PoolEvent>>> {
        let take = |events: &mut Self| match events.take_next() {
            Ok(None) if !events.is_over() => None,
            event => Some(event),
        };
        let (mut place, connection) = (std::mem::take(&mut self.place), Arc::clone(&self.connection));
        let polled = place.poll(&connection, cx, self, Awaited::awaiting, take);
        self.place = place;
        Poll::Ready(self.fuse(ready!(polled)))
    }
}

impl Stream for Subscription {
    type Item = Result<PoolEvent>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_event(cx).map(Result::transpose)
    }
}

impl Pages {
    /// Async version of [`Pages::next_page`]; `None` after the last page.
    ///
    /// Requires the feature `async`.
    ///
    /// ```
    /// # use junctura::{ListOptions, Pool};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> junctura::Result<()> {
    /// # let pool = Pool::builder().schema("free").open()?;
    /// let mut pages = pool.begin_list("", ListOptions::default())?.await?;
    /// assert_eq!(pages.begin_next().await?.map(|page| page.len()), Some(0));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Pages::next_page`].
    pub async fn begin_next(&mut self) -> Result<Option<Vec<Entry>>> {
        poll_fn(|cx| self.poll_page(cx)).await
    }

    /// Async version of [`Pages::entries`].
    ///
    /// Requires the feature `async`.
    ///
    /// ```
    /// # use junctura::{ListOptions, Pool};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> junctura::Result<()> {
    /// # let pool = Pool::builder().schema("free").open()?;
    /// # pool.offer([("name", "a")], b"")?;
    /// let pages = pool.begin_list("", ListOptions::default())?.await?;
    /// assert_eq!(pages.begin_entries().await?.len(), 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Pages::next_page`].
    pub async fn begin_entries(mut self) -> Result<Vec<Entry>> {
        let mut entries = Vec::new();
        while let Some(page) = self.begin_next().await? {
            entries.extend(page);
        }
        Ok(entries)
    }

    fn poll_page(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Vec<Entry>>>> {
        let take = |pages: &mut Self| {
            let was_over = pages.is_over();
            match pages.take_next() {
                Ok(None) if !was_over => None,
                page => Some(page),
            }
        };
        let (mut place, connection) = (std::mem::take(&mut self.place), Arc::clone(&self.connection));
        let polled = place.poll(&connection, cx, self, Awaited::awaiting, take);
        self.place = place;
        Poll::Ready(self.fuse(ready!(polled)))
    }
}

impl Stream for Pages {
    type Item = Result<Vec<Entry>>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_page(cx).map(Result::transpose)
    }
}

impl Requirement {
    /// Async version of [`Requirement::try_gap`]: waits for the next gap.
    ///
    /// Requires the feature `async`.
    ///
    /// ```
    /// # use junctura::{Pool, WithdrawOptions};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> junctura::Result<()> {
    /// # let pool = Pool::builder().schema("free").open()?;
    /// let mut requirement = pool.require("")?;
    /// pool.offer([("name", "a")], b"payload")?;
    /// pool.withdraw_all("", WithdrawOptions { force: true, ..Default::default() })?;
    /// assert_eq!(requirement.begin_gap().await?.reason, "withdrawn");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Requirement::try_gap`].
    pub async fn begin_gap(&mut self) -> Result<Gap> {
        let (awaiting, connection) = (self.awaiting(), Arc::clone(self.connection()));
        until(&connection, awaiting, || self.take_gap().transpose()).await
    }
}
