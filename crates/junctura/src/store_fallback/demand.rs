//! Demands that need the store: the pool without waiting, then the store, then the wait in the pool.

use std::sync::Arc;
use std::time::Duration;

use junctura_model::{Code, Error, Result};
use junctura_wire::body::TargetBody;

use super::StoreReader;
use crate::connection::PoolConnection;
use crate::object::Object;
use crate::pending::Pending;
use crate::verbs::demand::{DemandThrough, begin, give_back, origin};

/// A demand of an object that the pool or the store behind it has.
pub(crate) struct StoreDemand {
    pub(crate) connection: Arc<PoolConnection>,
    /// The store behind the pool, if there is one.
    pub(crate) depot: Option<Arc<StoreReader>>,
    pub(crate) target: TargetBody<'static>,
    /// Of the wait in the pool.
    pub(crate) timeout: Option<Duration>,
}

impl StoreDemand {
    /// Demands the object from the pool, else from the store behind it, else waits for the pool.
    ///
    /// The wait in the pool begins before the store is read: an object that enters the pool and is removed in between
    /// is found.
    pub(crate) fn begin(self) -> Result<Pending<Object>> {
        let probe = self.begin_in_pool(Some(Duration::ZERO))?;
        Ok(probe.then(move |answer| match answer {
            Err(missing) if is_missing(&missing) => self.begin_after_pool(missing),
            answer => Ok(Pending::known(&self.connection, answer)),
        }))
    }

    /// Demands the newest version in the store.
    pub(crate) fn begin_in_store(self) -> Pending<Object> {
        let missing = || Error::new(Code::NotFound, "demand", "the store behind the pool does not have it");
        self.begin_archived().map(move |found| found?.ok_or_else(missing))
    }

    fn begin_after_pool(self, missing: Error) -> Result<Pending<Object>> {
        let waits = self.timeout != Some(Duration::ZERO);
        let later = waits.then(|| self.begin_in_pool(self.timeout)).transpose()?;
        Ok(self.begin_archived().then(move |found| match (found?, later) {
            (Some(object), _) => Ok(Pending::known(&self.connection, Ok(object))),
            (None, None) => Err(missing),
            (None, Some(later)) => Ok(later.then(move |answer| match answer {
                // The object was removed from the pool in between.
                Err(gone) if gone.code() == Code::Gone => Ok(self.begin_archived().map(|found| found?.ok_or(gone))),
                answer => Ok(Pending::known(&self.connection, answer)),
            })),
        }))
    }

    fn begin_in_pool(&self, timeout: Option<Duration>) -> Result<Pending<Object>> {
        begin(&self.connection, self.target.clone(), timeout, &DemandThrough::Nothing)
    }

    fn begin_archived(&self) -> Pending<Option<Object>> {
        let Some(depot) = self.depot.as_ref().map(Arc::clone) else {
            return Pending::known(&self.connection, Ok(None));
        };
        let (there, target) = (Arc::clone(&self.connection), self.target.clone());
        let look = move || {
            let row = depot.find(&target, there.greeting.schemas.all())?;
            row.map(|row| Object::new(&origin(&there), row.read(false)?))
                .transpose()
        };
        Pending::work(&self.connection, look, |found| found.into_iter().for_each(give_back))
    }
}

/// Returns whether an error means that the pool does not have an object.
fn is_missing(error: &Error) -> bool {
    matches!(
        error.code(),
        Code::NotFound | Code::Gone | Code::NotWanted | Code::Closed
    )
}
