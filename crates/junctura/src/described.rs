//! What an object is, without its payload: the attributes that lists, gaps and events tell.

use std::fmt;
use std::sync::{Arc, OnceLock};

use junctura_model::{AttrId, RecordRef, Result, Schema};

use crate::given::IntoGiven;

/// An object's attributes.
///
/// ```
/// # use junctura::{Described, Pool};
/// # fn main() -> junctura::Result<()> {
/// # let pool = Pool::builder().schema("free").open()?;
/// let entry = Described::of(&pool.schema(None)?, [("space", "demo"), ("name", "a"), ("unit", "K")])?;
/// assert_eq!(entry.key(), "{space=demo}{}{name=a}");
/// assert_eq!((entry.schema().name(), entry.get("unit")), ("free", Some("K")));
/// let attributes: Vec<_> = entry.attributes().collect();
/// assert_eq!(attributes[..2], [("space", "demo"), ("name", "a")]);
/// # Ok(())
/// # }
/// ```
pub struct Described {
    schema: Arc<Schema>,
    record: Box<[u8]>,
    key: OnceLock<String>,
}

impl Described {
    pub(crate) fn new(schema: &Arc<Schema>, record: &[u8]) -> Self {
        Self {
            schema: Arc::clone(schema),
            record: record.into(),
            key: OnceLock::new(),
        }
    }

    /// What an object of this schema with these attributes is.
    ///
    /// # Errors
    /// Those of attributes that the schema does not take.
    pub fn of<'a, V: IntoGiven<'a>>(
        schema: &Arc<Schema>,
        attributes: impl IntoIterator<Item = (&'a str, V)>,
    ) -> Result<Self> {
        let mut record = Vec::new();
        let given = attributes.into_iter().map(|(name, value)| (name, value.into_given()));
        schema.record(given, &mut record)?;
        Ok(Self::new(schema, &record))
    }

    /// Its canonical key.
    #[must_use]
    pub fn key(&self) -> &str {
        self.key.get_or_init(|| key(&self.schema, self.record()))
    }

    /// The schema that describes it.
    #[must_use]
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// Names and canonical values of its attributes, those of the key first.
    pub fn attributes(&self) -> impl Iterator<Item = (&str, &str)> {
        attributes(&self.schema, self.record())
    }

    /// The canonical value of an attribute, by its name or an alias.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        get(&self.schema, self.record(), name)
    }

    fn record(&self) -> RecordRef<'_> {
        RecordRef::trusted(&self.record)
    }
}

impl fmt::Debug for Described {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.key())
    }
}

pub(crate) fn key(schema: &Schema, record: RecordRef<'_>) -> String {
    let mut key = String::new();
    schema.key_of(record, &mut key);
    key
}

pub(crate) fn attributes<'a>(schema: &'a Schema, record: RecordRef<'a>) -> impl Iterator<Item = (&'a str, &'a str)> {
    record
        .iter()
        .map(move |(id, open_name, text)| (open_name.unwrap_or_else(|| name(schema, id)), text))
}

fn name(schema: &Schema, id: AttrId) -> &str {
    schema
        .attributes()
        .get(id.index())
        .map_or("", |attribute| attribute.name.as_str())
}

pub(crate) fn get<'a>(schema: &Schema, record: RecordRef<'a>, name: &str) -> Option<&'a str> {
    match schema.find(name) {
        Some(id) => record.get(id),
        None => record.get_open(name),
    }
}
