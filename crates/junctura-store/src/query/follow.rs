//! Follows new commits.

use std::time::Duration;

use junctura_model::Result;

use crate::query::listing::Listing;
use crate::query::wait::wait_within;
use crate::store::Store;

/// Objects that a selector matches, as they are committed: see [`Store::follow`].
#[derive(Debug)]
pub struct StoreFollower {
    store: Store,
    selector: String,
    /// The last commit whose objects were returned; `None` at the beginning.
    given: Option<u64>,
}

impl Store {
    /// Follows a selector: first the newest version of each existing key, then every version as it is committed, by any
    /// process. With `after`, only versions of later commits; a consumer that stores [`StoreFollower::commit`] can
    /// continue there after a restart. Versions that are purged or wiped before they were returned are skipped.
    ///
    /// ```
    /// # use junctura_model::Schema;
    /// # use junctura_store::{StoreLayout, Store};
    /// # use std::time::Duration;
    /// # fn main() -> junctura_model::Result<()> {
    /// # let store = Store::create_url("memory:", &[Schema::builtin("free").unwrap()], &StoreLayout::default())?;
    /// # let mut writer = store.writer()?;
    /// writer.archive([("name", "a")], b"first")?;
    /// writer.flush()?;
    /// let mut follow = store.follow("name=a", None);
    /// writer.archive([("name", "a")], b"second")?;
    /// writer.flush()?;
    /// let patience = Some(Duration::from_millis(1));
    /// while let Some(listing) = follow.next_within(patience, || Ok(()))? {
    ///     for object in &listing {
    ///         println!("{} lies at {}", object.key(), object.location());
    ///     }
    /// }
    /// assert_eq!(follow.commit(), 2);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn follow(&self, selector: &str, after: Option<u64>) -> StoreFollower {
        StoreFollower {
            store: self.clone(),
            selector: selector.to_owned(),
            given: after,
        }
    }
}

impl StoreFollower {
    /// Returns the last commit whose objects were all returned; 0 before the first.
    #[must_use]
    pub fn commit(&self) -> u64 {
        self.given.unwrap_or(0)
    }

    /// Blocks until there are new objects, and returns them, for each schema in the order of their commits; an empty
    /// listing at the deadline. [`Store::retrieve_within`] describes how it waits, and how often it calls `ask`.
    ///
    /// # Errors
    /// `InvalidSelector`, `LimitExceeded` for an invalid selector; those of [`Store::snapshot`] and
    /// [`Snapshot::list`](crate::Snapshot::list); errors of `ask`. The next call returns the objects that were not
    /// returned.
    pub fn next_within(
        &mut self,
        timeout: Option<Duration>,
        ask: impl FnMut() -> Result<()>,
    ) -> Result<Option<Listing>> {
        wait_within(&self.store.clone(), timeout, ask, |snapshot| {
            let new = match self.given {
                None => snapshot.list(&self.selector)?,
                Some(given) => snapshot.list_after(&self.selector, given)?,
            };
            self.given = Some(snapshot.commit().max(self.commit()));
            Ok((!new.is_empty()).then_some(new))
        })
    }
}
