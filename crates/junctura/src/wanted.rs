//! Asking what is wanted, before it is computed or sent.

#[cfg(feature = "async")]
use std::sync::Arc;

use junctura_model::{Code, Error, IntoGiven, RecordRef, Result};
use junctura_wire::{Request, body};

use crate::connection::{Connection, unexpected};
use crate::mail::Letter;
use crate::offer::OfferOptions;
use crate::pending::Pending;
use crate::pool::Pool;

impl Pool {
    /// How many would be given an object with these attributes, were it offered now: follows, requirements (also those that
    /// nobody reads at the moment) and demands that wait. Attributes beside the key count, where somebody asks for them.
    ///
    /// Waits for the server's answer. [`OfferOptions::if_wanted`] asks and offers in one.
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
    /// `SchemaMismatch`, `TypeMismatch` and `TooLarge` for attributes that the pool's default schema does not take; `Closed`
    /// while the server drains.
    pub fn wanted<'a, V: IntoGiven<'a>>(&self, attributes: impl IntoIterator<Item = (&'a str, V)>) -> Result<u64> {
        self.wanted_with(None, attributes)
    }

    /// As [`Pool::wanted`], of an object that this schema describes.
    ///
    /// ```
    /// # use junctura::Pool;
    /// # fn main() -> junctura::Result<()> {
    /// # let pool = Pool::builder().schema("free").open()?;
    /// let _requirement = pool.require("name=a")?;
    /// assert_eq!(pool.wanted_with(Some("free"), [("name", "a")])?, 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Also `NotFound` for a schema that the pool does not have.
    pub fn wanted_with<'a, V: IntoGiven<'a>>(
        &self,
        schema: Option<&str>,
        attributes: impl IntoIterator<Item = (&'a str, V)>,
    ) -> Result<u64> {
        let connection = self.connection()?;
        let terms = connection.terms(OfferOptions {
            schema,
            ..OfferOptions::default()
        })?;
        let mut record = Vec::new();
        connection.record(terms, attributes, &mut record)?;
        connection.wanted(terms.schema(), &record, false)
    }
}

impl Pool {
    /// As [`Pool::wanted_with`], without waiting. With `declines`, and where nothing wants it, the pool remembers that it was
    /// declined, as an offer with [`OfferOptions::if_wanted`] does. See [`Pending`].
    ///
    /// # Errors
    /// What this side can tell; the server's errors come with the answer.
    pub fn begin_wanted<'a, V: IntoGiven<'a>>(
        &self,
        schema: Option<&str>,
        attributes: impl IntoIterator<Item = (&'a str, V)>,
        declines: bool,
    ) -> Result<Pending<u64>> {
        let connection = self.connection()?;
        let terms = connection.terms(OfferOptions {
            schema,
            ..OfferOptions::default()
        })?;
        let mut record = Vec::new();
        connection.record(terms, attributes, &mut record)?;
        let wanted = body::Wanted {
            schema: terms.schema(),
            record: record.as_slice().into(),
            declines,
        };
        connection.begin_count(&Request::Wanted(wanted))
    }
}

#[cfg(feature = "async")]
impl Connection {
    /// How many want an object; where nobody does, the pool remembers that it was declined.
    pub(crate) fn begin_wanted(self: &Arc<Self>, schema: u16, record: &[u8]) -> Result<Pending<u64>> {
        self.begin_count(&Request::Wanted(body::Wanted {
            schema,
            record: record.into(),
            declines: true,
        }))
    }
}

impl Connection {
    /// How many want an object; where nobody does, the pool may remember that it was declined.
    pub(crate) fn wanted(&self, schema: u16, record: &[u8], declines: bool) -> Result<u64> {
        let wanted = body::Wanted {
            schema,
            record: record.into(),
            declines,
        };
        match self.call(&Request::Wanted(wanted))? {
            Letter::Done(count) => Ok(count),
            _ => Err(unexpected("no count of those who want it")),
        }
    }

    pub(crate) fn key_text(&self, schema: u16, record: &[u8]) -> String {
        let mut text = String::new();
        self.schema(schema).key_of(RecordRef::trusted(record), &mut text);
        text
    }
}

pub(crate) fn not_wanted(key: &str) -> Error {
    Error::new(Code::NotWanted, key, "nothing wants it")
}
