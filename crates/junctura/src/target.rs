//! The target of a demand or a withdrawal: one key, or a selector.

use std::borrow::Cow;

use junctura_model::{Code, Error, Given, IntoGiven, Result, Schema};
use junctura_wire::body;

use crate::connection::schemas::PoolSchemas;

/// One object by its key, or the objects that match a selector.
///
/// A text that begins with `{` is a key as [`crate::Object::key`] prints it; any other text is a selector.
///
/// ```
/// use junctura::Target;
///
/// let by_key = Target::key([("space", "demo"), ("name", "hello")]);
/// let by_selector = Target::from("space=demo,name=hello/bye");
/// ```
#[derive(Clone, Debug)]
pub struct Target<'a> {
    what: TargetKind<'a>,
    schema: Option<Cow<'a, str>>,
}

#[derive(Clone, Debug)]
enum TargetKind<'a> {
    Attributes(Vec<(&'a str, Given<'a>)>),
    Key(Cow<'a, str>),
    Selector(Cow<'a, str>),
}

impl<'a> Target<'a> {
    /// Targets the object whose key has these attributes.
    pub fn key<V: IntoGiven<'a>>(attributes: impl IntoIterator<Item = (&'a str, V)>) -> Self {
        let attributes = attributes
            .into_iter()
            .map(|(name, value)| (name, value.into_given()))
            .collect();
        Self {
            what: TargetKind::Attributes(attributes),
            schema: None,
        }
    }

    /// Targets objects that match this selector; the empty one matches everything.
    ///
    /// ```
    /// # use junctura::{Pool, Target};
    /// # fn main() -> junctura::Result<()> {
    /// # let pool = Pool::builder().schema("free").open()?;
    /// pool.offer([("space", "demo"), ("name", "hello")], b"payload")?;
    /// for target in [
    ///     Target::selector("space=demo"),
    ///     Target::key_text("{space=demo}{}{name=hello}"),
    ///     Target::key([("space", "demo"), ("name", "hello")]).in_schema("free"),
    /// ] {
    ///     assert_eq!(pool.demand(target, None)?.len(), 7);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn selector(text: impl Into<Cow<'a, str>>) -> Self {
        Self {
            what: TargetKind::Selector(text.into()),
            schema: None,
        }
    }

    /// Targets the object with this key, written as [`crate::Object::key`] prints it.
    pub fn key_text(text: impl Into<Cow<'a, str>>) -> Self {
        Self {
            what: TargetKind::Key(text.into()),
            schema: None,
        }
    }

    /// Uses this schema instead of the pool's default.
    #[must_use]
    pub fn in_schema(mut self, name: impl Into<Cow<'a, str>>) -> Self {
        self.schema = Some(name.into());
        self
    }

    /// Returns the target in the form of a request.
    pub(crate) fn resolve(&self, schemas: &PoolSchemas, default: u16) -> Result<body::TargetBody<'_>> {
        match &self.what {
            TargetKind::Selector(text) => Ok(body::TargetBody::selector(text)),
            TargetKind::Attributes(attributes) => {
                let number = match self.schema.as_deref() {
                    None => default,
                    Some(name) => schemas.find(name)?,
                };
                let schema = schemas.get(number).ok_or_else(no_schema)?;
                let mut record = Vec::new();
                let written = schema.record(attributes.iter().copied(), &mut record);
                written.map_err(|error| schemas.with_open_schema(error, number, default))?;
                Ok(key_target(number, schema, record))
            }
            TargetKind::Key(text) => self.resolve_text(text, schemas),
        }
    }

    /// A key's text does not name its schema: the first schema that can parse it is used.
    fn resolve_text(&self, text: &str, schemas: &PoolSchemas) -> Result<body::TargetBody<'static>> {
        if let Some(name) = self.schema.as_deref() {
            let number = schemas.find(name)?;
            let schema = schemas.get(number).ok_or_else(no_schema)?;
            return Ok(key_target(number, schema, schema.parse_key(text)?.into_bytes()));
        }
        let mut first_error = None;
        for (number, schema) in schemas.all().iter().enumerate() {
            match schema.parse_key(text) {
                Ok(record) => return Ok(key_target(number as u16, schema, record.into_bytes())),
                Err(error) => _ = first_error.get_or_insert(error),
            }
        }
        Err(first_error.unwrap_or_else(no_schema))
    }
}

fn no_schema() -> Error {
    Error::new(Code::NotFound, "schema", "the pool has none")
}

/// Returns an owned copy, for a separate thread.
pub(crate) fn owned(target: body::TargetBody<'_>) -> body::TargetBody<'static> {
    match target {
        body::TargetBody::Key { schema, record } => body::TargetBody::Key {
            schema,
            record: Cow::Owned(record.into_owned()),
        },
        body::TargetBody::Selector(text) => body::TargetBody::Selector(Cow::Owned(text.into_owned())),
    }
}

fn key_target(number: u16, schema: &Schema, mut record: Vec<u8>) -> body::TargetBody<'static> {
    let key = junctura_model::RecordRef::trusted(&record)
        .key_bytes(schema.key_len())
        .len();
    record.truncate(key);
    body::TargetBody::Key {
        schema: number,
        record: Cow::Owned(record),
    }
}

impl<'a> From<&'a str> for Target<'a> {
    fn from(text: &'a str) -> Self {
        if text.starts_with('{') {
            Self::key_text(text)
        } else {
            Self::selector(text)
        }
    }
}

impl<'a> From<&'a String> for Target<'a> {
    fn from(text: &'a String) -> Self {
        Self::from(text.as_str())
    }
}
