//! Objects as they are committed.

use std::time::Duration;

use junctura_model::Result;

use crate::query::listing::Listing;
use crate::query::wait::wait_within;
use crate::store::Store;

/// What a selector matches, as it is committed: see [`Store::follow`].
#[derive(Debug)]
pub struct StoreFollower {
    store: Store,
    selector: String,
    /// Everything up to this commit was given; nothing was, without it.
    given: Option<u64>,
}

impl Store {
    /// What a selector matches: first the newest version of each key that is there, then every version as it is committed, by whomever.
    /// With `after`, every version that came with a later commit than that one, and so on; who keeps
    /// [`StoreFollower::commit`] goes on there in another life. A version that is purged or wiped before it was given is not given.
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
    /// Up to which commit everything was given; 0 before the first.
    #[must_use]
    pub fn commit(&self) -> u64 {
        self.given.unwrap_or(0)
    }

    /// Waits for what is new, and gives all of it, of each schema in the order in which it was committed; none when the time is over. How it
    /// waits, and how often it asks whether to go on, is said at [`Store::retrieve_within`].
    ///
    /// # Errors
    /// `InvalidSelector`, `LimitExceeded` for what is no selector; those of [`Store::snapshot`] and [`Snapshot::list`](crate::Snapshot::list);
    /// and what `ask` says. What was not given then is given by the next call.
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
