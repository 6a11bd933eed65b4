//! Checks whether an object is wanted, before it is computed or sent.

use std::sync::Arc;

use junctura_model::{Code, Error, IntoGiven, RecordRef, Result};
use junctura_wire::{Request, body};

use crate::connection::PoolConnection;
use crate::pending::Pending;
use crate::pool::Pool;

impl Pool {
    /// Returns how many consumers would receive an object with these attributes if it were offered now: follows,
    /// requirements (also without a current reader) and waiting demands. Attributes outside the key count if a consumer
    /// selects by them.
    ///
    /// Blocks until the server answers. [`OfferOptions::if_wanted`](crate::OfferOptions::if_wanted) checks and offers
    /// in one request.
    ///
    /// ```
    /// # use junctura::Pool;
    /// # fn main() -> junctura::Result<()> {
    /// let pool = Pool::builder().schema("free").open()?;
    /// let _requirement = pool.require("name=a/b")?;
    /// assert_eq!(pool.wanted([("name", "a")])?, 1);
    /// assert_eq!(pool.wanted([("name", "c")])?, 0);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `SchemaMismatch`, `TypeMismatch` and `TooLarge` for attributes that the pool's default schema does not accept;
    /// `Closed` while the server drains.
    pub fn wanted<'a, V: IntoGiven<'a>>(&self, attributes: impl IntoIterator<Item = (&'a str, V)>) -> Result<u64> {
        self.wanted_with(attributes, WantedOptions::default())
    }

    /// As [`Pool::wanted`], with options.
    ///
    /// ```
    /// # use junctura::{Code, Pool, WantedOptions};
    /// # use std::time::Duration;
    /// # fn main() -> junctura::Result<()> {
    /// # let pool = Pool::builder().schema("free").open()?;
    /// let declines = WantedOptions { declines: true, ..WantedOptions::default() };
    /// assert_eq!(pool.wanted_with([("name", "a")], declines)?, 0);
    /// let declined = pool.demand(junctura::Target::key([("name", "a")]), Some(Duration::ZERO));
    /// assert_eq!(declined.unwrap_err().code(), Code::NotWanted);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Also `NotFound` for a schema that the pool does not have.
    pub fn wanted_with<'a, V: IntoGiven<'a>>(
        &self,
        attributes: impl IntoIterator<Item = (&'a str, V)>,
        options: WantedOptions<'_>,
    ) -> Result<u64> {
        self.begin_wanted(attributes, options)?.wait()
    }

    /// Non-blocking version of [`Pool::wanted_with`]. See [`Pending`].
    ///
    /// # Errors
    /// Errors that this client detects; the server's errors arrive with the answer.
    pub fn begin_wanted<'a, V: IntoGiven<'a>>(
        &self,
        attributes: impl IntoIterator<Item = (&'a str, V)>,
        options: WantedOptions<'_>,
    ) -> Result<Pending<u64>> {
        let connection = self.connection()?;
        let schema = connection.schema_number(options.schema)?;
        let mut record = Vec::new();
        connection.record_of(schema, attributes, &mut record)?;
        connection.begin_count(&probe(schema, &record, options.declines))
    }
}

/// Options of a check whether an object is wanted.
///
/// ```
/// # use junctura::{Code, Pool, WantedOptions};
/// # fn main() -> junctura::Result<()> {
/// # let pool = Pool::builder().schema("free").open()?;
/// let decline = WantedOptions { declines: true, ..WantedOptions::default() };
/// assert_eq!(pool.wanted_with([("name", "a")], decline)?, 0);
/// assert_eq!(pool.demand("name=a", None).unwrap_err().code(), Code::NotWanted);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct WantedOptions<'a> {
    /// The schema that describes the object; `None`: the pool's default.
    pub schema: Option<&'a str>,
    /// If no consumer wants the object, the pool remembers that it was declined, as an offer with
    /// [`OfferOptions::if_wanted`](crate::OfferOptions::if_wanted) does: a later demand of its key fails with
    /// `NotWanted`.
    pub declines: bool,
}

impl PoolConnection {
    /// Returns how many consumers want an object; if none does, the pool remembers that it was declined.
    pub(crate) fn begin_wanted(self: &Arc<Self>, schema: u16, record: &[u8]) -> Result<Pending<u64>> {
        self.begin_count(&probe(schema, record, true))
    }

    pub(crate) fn key_text(&self, schema: u16, record: &[u8]) -> String {
        let mut text = String::new();
        self.schema(schema).key_of(RecordRef::trusted(record), &mut text);
        text
    }
}

fn probe(schema: u16, record: &[u8], declines: bool) -> Request<'_> {
    Request::Wanted(body::WantedRequest {
        schema,
        record: record.into(),
        declines,
    })
}

pub(crate) fn not_wanted(key: &str) -> Error {
    Error::new(Code::NotWanted, key, "no client wants it")
}
