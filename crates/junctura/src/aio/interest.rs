//! What tasks want: demands, follows, requirements, lists, events.

use std::time::Duration;

use junctura_model::{Code, Result};
use junctura_wire::body;

use super::Pool;
use super::beside::beside;
use super::reading::{Follow, Pages, Requirement, Subscription};
use crate::demand::{give_back, is_missing};
use crate::target::owned;
use crate::{DemandOptions, Entry, EventKind, FollowOptions, IntoGiven, ListOptions, Object, RequireOptions, Target};

impl Pool {
    /// The object with this key, or the newest one that matches a selector; waits until there is one. As
    /// [`crate::Pool::demand`].
    ///
    /// ```
    /// # use junctura::{Code, Pool, aio};
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> junctura::Result<()> {
    /// # let pool = aio::Pool::open(Pool::builder().schema("free")).await?;
    /// let late = pool.demand("name=late", Some(Duration::from_millis(1))).await;
    /// assert_eq!(late.unwrap_err().code(), Code::Timeout);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As there.
    pub async fn demand<'a>(&self, target: impl Into<Target<'a>>, timeout: Option<Duration>) -> Result<Object> {
        let options = DemandOptions {
            timeout,
            ..DemandOptions::default()
        };
        self.demand_with(&options, target).await
    }

    /// As [`Pool::demand`], with options: through a requirement, or of what is staged.
    ///
    /// ```
    /// # use junctura::{DemandOptions, Pool, RequireOptions, aio};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> junctura::Result<()> {
    /// # let pool = aio::Pool::open(Pool::builder().schema("free")).await?;
    /// let named = RequireOptions { name: Some("archive".to_owned()), ..RequireOptions::default() };
    /// pool.require_with(&named, "").await?;
    /// pool.offer([("name", "a")], b"payload").await?;
    /// let through = DemandOptions { requirement: Some("archive"), ..DemandOptions::default() };
    /// assert_eq!(&pool.demand_with(&through, "name=a").await?[..], b"payload");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Also `NotFound` where there is no requirement of this name.
    pub async fn demand_with<'a>(&self, options: &DemandOptions<'_>, target: impl Into<Target<'a>>) -> Result<Object> {
        let target = target.into();
        if self.inner.looks_behind(options) {
            return self.demand_behind(&target, options.timeout).await;
        }
        let pending = self.inner.begin_demand_with(options, target)?;
        pending.await
    }

    /// What the pool has, else what the store behind it has, else what the pool will have: as [`crate::Pool::demand`].
    async fn demand_behind(&self, target: &Target<'_>, timeout: Option<Duration>) -> Result<Object> {
        let pool = &self.inner;
        let begin = |timeout| {
            let options = DemandOptions {
                timeout,
                in_pool: true,
                ..DemandOptions::default()
            };
            pool.begin_demand_with(&options, target.clone())
        };
        let missing = match begin(Some(Duration::ZERO))?.await {
            Err(error) if is_missing(&error) => error,
            answer => return answer,
        };
        let waits = timeout != Some(Duration::ZERO);
        let pending = waits.then(|| begin(timeout)).transpose()?;
        let there = owned(pool.connection()?.resolve(target)?);
        if let Some(object) = self.archived(&there).await? {
            return Ok(object);
        }
        let Some(pending) = pending else { return Err(missing) };
        match pending.await {
            Err(error) if error.code() == Code::Gone => self.archived(&there).await?.ok_or(error),
            answer => answer,
        }
    }

    async fn archived(&self, target: &body::Target<'static>) -> Result<Option<Object>> {
        let (pool, target) = (self.inner.clone(), target.clone());
        beside(move || pool.archived(&target), |found| give_back(found.ok().flatten()))?.await
    }

    /// Follows what matches a selector, as [`crate::Pool::follow`]: what is there, then what comes.
    ///
    /// # Errors
    /// As there.
    pub async fn follow(&self, selector: &str) -> Result<Follow> {
        self.follow_with(&FollowOptions::default(), selector).await
    }

    /// As [`crate::Pool::follow_with`].
    ///
    /// ```
    /// # use junctura::{FollowOptions, Item, Pool, aio};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> junctura::Result<()> {
    /// # let pool = aio::Pool::open(Pool::builder().schema("free")).await?;
    /// pool.offer([("name", "a")], b"payload").await?;
    /// let what_is_there = FollowOptions { until_live: true, ..FollowOptions::default() };
    /// let mut follow = pool.follow_with(&what_is_there, "").await?;
    /// let mut objects = 0;
    /// while let Some(item) = follow.next_item().await? {
    ///     objects += usize::from(matches!(item, Item::Object(_)));
    /// }
    /// assert_eq!(objects, 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As there.
    pub async fn follow_with(&self, options: &FollowOptions, selector: &str) -> Result<Follow> {
        let pending = self.inner.begin_follow(options, selector)?;
        let mut follow = Follow::new(&self.inner.connection()?, pending.await?);
        follow.begin().await?;
        Ok(follow)
    }

    /// Follows as one more member of a group that stands, as [`crate::Pool::join`].
    ///
    /// # Errors
    /// As there.
    pub async fn join(&self, group: &str) -> Result<Follow> {
        self.join_with(&FollowOptions::default(), group).await
    }

    /// As [`crate::Pool::join_with`].
    ///
    /// ```
    /// # use junctura::{FollowOptions, Pool, RequireOptions, aio};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> junctura::Result<()> {
    /// # let pool = aio::Pool::open(Pool::builder().schema("free")).await?;
    /// let group = RequireOptions { name: Some("workers".to_owned()), group: true, ..RequireOptions::default() };
    /// pool.require_with(&group, "space=work").await?;
    /// let _other = pool.join("workers").await?;
    /// let one_at_a_time = FollowOptions { window: Some(1), ..FollowOptions::default() };
    /// let work = pool.join_with(&one_at_a_time, "workers").await?;
    /// assert_eq!(work.window(), 1);
    /// # work.stop().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As there.
    pub async fn join_with(&self, options: &FollowOptions, group: &str) -> Result<Follow> {
        let follow = self.inner.begin_join(options, group)?.await?;
        Ok(Follow::new(&self.inner.connection()?, follow))
    }

    /// Requires everything that matches a selector, as [`crate::Pool::require`].
    ///
    /// # Errors
    /// As there.
    pub async fn require(&self, selector: &str) -> Result<Requirement> {
        self.require_with(&RequireOptions::default(), selector).await
    }

    /// As [`crate::Pool::require_with`].
    ///
    /// # Errors
    /// As there.
    pub async fn require_with(&self, options: &RequireOptions, selector: &str) -> Result<Requirement> {
        let pending = self.inner.begin_require(options, selector)?;
        let requirement = pending.await?;
        Ok(Requirement::new(&self.inner.connection()?, requirement))
    }

    /// Ends a requirement that has a name, as [`crate::Pool::retract`].
    ///
    /// ```
    /// # use junctura::{Code, Pool, aio};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> junctura::Result<()> {
    /// # let pool = aio::Pool::open(Pool::builder().schema("free")).await?;
    /// assert_eq!(pool.retract("nobody").await.unwrap_err().code(), Code::NotFound);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As there.
    pub async fn retract(&self, name: &str) -> Result<u64> {
        self.inner.begin_retract(name)?.await
    }

    /// How many would be given an object with these attributes, as [`crate::Pool::wanted`].
    ///
    /// # Errors
    /// As there.
    pub async fn wanted<'a, V: IntoGiven<'a>>(
        &self,
        attributes: impl IntoIterator<Item = (&'a str, V)>,
    ) -> Result<u64> {
        self.wanted_with(None, attributes).await
    }

    /// As [`crate::Pool::wanted_with`].
    ///
    /// ```
    /// # use junctura::{Pool, aio};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> junctura::Result<()> {
    /// # let pool = aio::Pool::open(Pool::builder().schema("free")).await?;
    /// let _requirement = pool.require("name=a/b").await?;
    /// assert_eq!(pool.wanted_with(Some("free"), [("name", "a")]).await?, 1);
    /// assert_eq!(pool.wanted([("name", "c")]).await?, 0);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As there.
    pub async fn wanted_with<'a, V: IntoGiven<'a>>(
        &self,
        schema: Option<&str>,
        attributes: impl IntoIterator<Item = (&'a str, V)>,
    ) -> Result<u64> {
        let pending = self.inner.begin_wanted(schema, attributes, false)?;
        pending.await
    }

    /// All visible objects that match a selector, as [`crate::Pool::list`].
    ///
    /// # Errors
    /// As there.
    pub async fn list(&self, selector: &str) -> Result<Vec<Entry>> {
        let mut pages = self.list_with(&ListOptions::default(), selector).await?;
        let mut entries = Vec::new();
        while let Some(page) = pages.next_page().await? {
            entries.extend(page);
        }
        Ok(entries)
    }

    /// As [`crate::Pool::list_with`]: page by page, with options.
    ///
    /// ```
    /// # use junctura::{ListOptions, Pool, aio};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> junctura::Result<()> {
    /// # let pool = aio::Pool::open(Pool::builder().schema("free")).await?;
    /// pool.offer([("name", "a")], b"payload").await?;
    /// let mut pages = pool.list_with(&ListOptions::default(), "").await?;
    /// while let Some(page) = pages.next_page().await? {
    ///     assert_eq!(page[0].bytes(), 7);
    /// }
    /// # assert_eq!(pool.list("").await?.len(), 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As there.
    pub async fn list_with(&self, options: &ListOptions<'_>, selector: &str) -> Result<Pages> {
        let pool = &self.inner;
        let pages = if pool.depot().is_some() && options.bundle.is_none() {
            list_behind(pool.clone(), options, selector).await?
        } else {
            pool.begin_list(options, selector)?.await?
        };
        Ok(Pages::new(&self.inner.connection()?, pages))
    }

    /// Subscribes to events, as [`crate::Pool::subscribe`].
    ///
    /// # Errors
    /// As there.
    pub async fn subscribe(&self, selector: &str, kinds: &[EventKind]) -> Result<Subscription> {
        let pending = self.inner.begin_subscribe(selector, kinds)?;
        let subscription = pending.await?;
        Ok(Subscription::new(&self.inner.connection()?, subscription))
    }
}

/// A list that a thread has begun, since it has looked into the store behind the pool.
async fn list_behind(pool: crate::Pool, options: &ListOptions<'_>, selector: &str) -> Result<crate::Pages> {
    let (order_by, incomplete) = (options.order_by.map(str::to_owned), options.incomplete);
    let selector = selector.to_owned();
    let begin = move || {
        let options = ListOptions {
            order_by: order_by.as_deref(),
            incomplete,
            bundle: None,
        };
        pool.list_with(&options, &selector)
    };
    beside(begin, drop)?.await
}
