//! The description of an object without its payload: the attributes in lists, gaps and events.

use std::fmt;
use std::sync::{Arc, OnceLock};

use crate::given::IntoGiven;
use crate::{AttrId, Record, RecordRef, Result, Schema};

/// An object's attributes.
///
/// ```
/// # use junctura_model::{Described, Schema};
/// # fn main() -> junctura_model::Result<()> {
/// let free = Schema::builtin("free").unwrap();
/// let entry = Described::of(&free, [("space", "demo"), ("name", "a"), ("unit", "K")])?;
/// assert_eq!(entry.key(), "{space=demo}{}{name=a}");
/// assert_eq!((entry.schema().name(), entry.get("unit")), ("free", Some("K")));
/// let attributes: Vec<_> = entry.attributes().collect();
/// assert_eq!(attributes[..2], [("space", "demo"), ("name", "a")]);
/// # Ok(())
/// # }
/// ```
pub struct Described {
    schema: Arc<Schema>,
    record: Record,
    key: OnceLock<String>,
}

impl Described {
    /// Describes an object by a record of the schema.
    ///
    /// ```
    /// # use junctura_model::{Described, Given, Record, Schema};
    /// # fn main() -> junctura_model::Result<()> {
    /// let free = Schema::builtin("free").unwrap();
    /// let mut bytes = Vec::new();
    /// free.record([("name", Given::Text("a"))], &mut bytes)?;
    /// assert_eq!(Described::new(&free, Record::trusted(bytes)).get("name"), Some("a"));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn new(schema: &Arc<Schema>, record: Record) -> Self {
        Self {
            schema: Arc::clone(schema),
            record,
            key: OnceLock::new(),
        }
    }

    /// Describes an object of this schema by attributes.
    ///
    /// # Errors
    /// Those of attributes that the schema does not accept.
    pub fn of<'a, V: IntoGiven<'a>>(
        schema: &Arc<Schema>,
        attributes: impl IntoIterator<Item = (&'a str, V)>,
    ) -> Result<Self> {
        let mut record = Vec::new();
        let given = attributes.into_iter().map(|(name, value)| (name, value.into_given()));
        schema.record(given, &mut record)?;
        Ok(Self::new(schema, Record::trusted(record)))
    }

    /// Returns its canonical key.
    #[must_use]
    pub fn key(&self) -> &str {
        self.key.get_or_init(|| self.schema.key_text(self.record()))
    }

    /// Returns the schema that describes it.
    #[must_use]
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// Iterates over the names and canonical values of its attributes, key attributes first.
    pub fn attributes(&self) -> impl Iterator<Item = (&str, &str)> {
        self.schema.attributes_of(self.record())
    }

    /// Returns the canonical value of an attribute, by name or alias.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.schema.value_in(self.record(), name)
    }

    /// Returns the record of its attributes.
    #[must_use]
    pub fn record(&self) -> RecordRef<'_> {
        self.record.as_ref()
    }
}

impl fmt::Debug for Described {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.key())
    }
}

impl Schema {
    /// Returns the canonical text of a record's key.
    ///
    /// ```
    /// # use junctura_model::{Given, Schema};
    /// # fn main() -> junctura_model::Result<()> {
    /// let free = Schema::builtin("free").unwrap();
    /// let mut bytes = Vec::new();
    /// free.record([("name", Given::Text("a")), ("unit", Given::Text("K"))], &mut bytes)?;
    /// let record = free.check(&bytes)?;
    /// assert_eq!(free.key_text(record), "{space=default}{}{name=a}");
    /// assert_eq!(free.value_in(record, "unit"), Some("K"));
    /// let attributes: Vec<_> = free.attributes_of(record).collect();
    /// assert_eq!(attributes[1..], [("name", "a"), ("unit", "K")]);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn key_text(&self, record: RecordRef<'_>) -> String {
        let mut key = String::new();
        self.key_of(record, &mut key);
        key
    }

    /// Iterates over the names and canonical values of a record's attributes, key attributes first.
    pub fn attributes_of<'a>(&'a self, record: RecordRef<'a>) -> impl Iterator<Item = (&'a str, &'a str)> {
        record
            .iter()
            .map(move |(id, open_name, text)| (open_name.unwrap_or_else(|| self.name_of(id)), text))
    }

    /// Returns the canonical value of an attribute in a record, by name or alias.
    #[must_use]
    pub fn value_in<'a>(&self, record: RecordRef<'a>, name: &str) -> Option<&'a str> {
        match self.find(name) {
            Some(id) => record.get(id),
            None => record.get_open(name),
        }
    }

    fn name_of(&self, id: AttrId) -> &str {
        let attribute = self.attributes().get(id.index());
        attribute.map_or("", |attribute| attribute.name.as_str())
    }
}
