//! Waits for objects that are not committed yet.

use std::time::{Duration, Instant};

use junctura_model::{Code, Error, Result};

use crate::query::retrieve::RetrieveResult;
use crate::query::snapshot::Snapshot;
use crate::storage::refused;
use crate::store::Store;

/// The polling interval if there are no notifications of new commits.
const ROUND: Duration = Duration::from_millis(250);

impl Store {
    /// As [`Snapshot::retrieve_partial`](crate::Snapshot::retrieve_partial), at the first moment at which nothing is
    /// missing, or at the deadline. Blocks until then. For a local folder, a commit wakes it; elsewhere it polls
    /// several times per second. It calls `ask` as often, to check whether to continue.
    ///
    /// A timeout of zero does not wait; `None` waits without limit.
    ///
    /// # Errors
    /// As [`Snapshot::retrieve_partial`](crate::Snapshot::retrieve_partial); errors of `ask`.
    ///
    /// ```
    /// # use junctura_model::Schema;
    /// # use junctura_store::{StoreLayout, Store};
    /// # use std::time::Duration;
    /// # fn main() -> junctura_model::Result<()> {
    /// # let store = Store::create_url("memory:", &[Schema::builtin("free").unwrap()], &StoreLayout::default())?;
    /// # let mut writer = store.writer()?;
    /// writer.archive([("name", "a")], b"")?;
    /// writer.flush()?;
    /// let found = store.retrieve_within("name=a/b", Some(Duration::from_millis(1)), || Ok(()))?;
    /// assert!(!found.is_complete());
    /// assert_eq!(found.missing, ["{name=b}"]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn retrieve_within(
        &self,
        selector: &str,
        timeout: Option<Duration>,
        ask: impl FnMut() -> Result<()>,
    ) -> Result<RetrieveResult> {
        let mut last = None;
        let complete = wait_within(self, timeout, ask, |snapshot| {
            let found = snapshot.retrieve_partial(selector)?;
            if found.is_complete() {
                return Ok(Some(found));
            }
            last = Some(found);
            Ok(None)
        })?;
        match complete.or(last) {
            Some(found) => Ok(found),
            None => self.snapshot()?.retrieve_partial(selector),
        }
    }
}

/// Calls `look` with a snapshot after each commit, at least once, until it returns a result; `None` at the deadline.
///
/// # Errors
/// Those of a snapshot; errors of `look` and `ask`.
pub(crate) fn wait_within<T>(
    store: &Store,
    timeout: Option<Duration>,
    mut ask: impl FnMut() -> Result<()>,
    mut look: impl FnMut(&Snapshot) -> Result<Option<T>>,
) -> Result<Option<T>> {
    let folder = store.commits().folder();
    let mut watch = store.disk().watch(folder);
    let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    let left = || deadline.map_or(ROUND, |deadline| deadline.saturating_duration_since(Instant::now()));
    let mut seen = None;
    loop {
        ask()?;
        // A commit during a call of `look` causes another call, also after the deadline.
        let left = left();
        let snapshot = store.snapshot()?;
        if seen.replace(snapshot.commit()) != Some(snapshot.commit())
            && let Some(found) = look(&snapshot)?
        {
            return Ok(Some(found));
        }
        if left.is_zero() {
            return Ok(None);
        }
        let waited = watch.wait(left.min(ROUND));
        waited.map_err(|error| refused(folder, "cannot be watched", &error))?;
    }
}

impl RetrieveResult {
    /// Returns the objects found, if nothing is missing, after a wait.
    ///
    /// # Errors
    /// `Timeout`, with the missing combinations.
    pub fn complete_in_time(self, selector: &str) -> Result<crate::Listing> {
        self.complete(selector).map_err(|error| match error.code() {
            Code::NotFound => Error::new(Code::Timeout, selector, error.cause()),
            _ => error,
        })
    }
}
