//! Waiting for what is not there yet.

use std::time::{Duration, Instant};

use junctura_model::{Code, Error, Result};

use crate::query::retrieve::RetrieveResult;
use crate::query::snapshot::Snapshot;
use crate::storage::refused;
use crate::store::Store;

/// Where nobody tells of new commits, they are looked for so often.
const ROUND: Duration = Duration::from_millis(250);

impl Store {
    /// As [`Snapshot::retrieve_partial`](crate::Snapshot::retrieve_partial), of the first moment at which nothing is missing; or of now, when the time is
    /// over. In a folder of this machine it wakes when somebody commits, elsewhere it looks some times a second. As often
    /// it asks whether to go on.
    ///
    /// A timeout of zero does not wait; `None` waits for ever.
    ///
    /// # Errors
    /// As there; and what `ask` says.
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

/// What is found in the first snapshot that has it, of those that are taken as commits come; none when the time is over. It looks at least
/// once.
///
/// # Errors
/// Those of a snapshot; what `look` and `ask` say.
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
        // What comes while it looks is seen by the next look, also by the last one.
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
    /// What is there, if it is all that was asked for, and was waited for.
    ///
    /// # Errors
    /// `Timeout` that names what is missing.
    pub fn complete_in_time(self, selector: &str) -> Result<crate::Listing> {
        self.complete(selector).map_err(|error| match error.code() {
            Code::NotFound => Error::new(Code::Timeout, selector, error.cause()),
            _ => error,
        })
    }
}
