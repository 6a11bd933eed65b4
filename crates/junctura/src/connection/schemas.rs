//! The schemas of a pool. Those that are built in are read when they are first used: most programs use one.

use std::sync::{Arc, OnceLock};

use junctura_model::schema::is_name;
use junctura_model::{Code, Error, Result, Schema, nearest};

/// All schemas, by number.
#[derive(Debug)]
pub(crate) struct PoolSchemas {
    entries: Vec<PoolSchema>,
    all: OnceLock<Vec<Arc<Schema>>>,
}

#[derive(Debug)]
enum PoolSchema {
    Parsed(Arc<Schema>),
    BuiltIn {
        name: &'static str,
        parsed: OnceLock<Arc<Schema>>,
    },
}

impl PoolSchema {
    fn new(text: &str) -> Result<Self> {
        match Schema::builtin_of_text(text) {
            Some(name) => Ok(Self::BuiltIn {
                name,
                parsed: OnceLock::new(),
            }),
            None => Schema::parse_yaml(text).map(|schema| Self::Parsed(Arc::new(schema))),
        }
    }

    fn name(&self) -> &str {
        match self {
            Self::Parsed(schema) => schema.name(),
            Self::BuiltIn { name, .. } => name,
        }
    }

    fn get(&self) -> &Arc<Schema> {
        match self {
            Self::Parsed(schema) => schema,
            Self::BuiltIn { name, parsed } => parsed.get_or_init(|| {
                let schema = if *name == Schema::PIECE {
                    Schema::piece()
                } else {
                    Schema::builtin(name)
                };
                schema.unwrap_or_else(|| unreachable!("{name} is built in"))
            }),
        }
    }

    /// Only the schema of pieces is looked at: the others have other names.
    fn is_aside(&self) -> bool {
        self.name() == Schema::PIECE && self.get().is_aside()
    }
}

impl PoolSchemas {
    /// # Errors
    /// That of the first text that is no schema.
    pub(crate) fn new<'a>(texts: impl IntoIterator<Item = &'a str>) -> Result<Self> {
        Ok(Self {
            entries: texts.into_iter().map(PoolSchema::new).collect::<Result<_>>()?,
            all: OnceLock::new(),
        })
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn get(&self, number: u16) -> Option<&Arc<Schema>> {
        self.entries.get(usize::from(number)).map(PoolSchema::get)
    }

    /// Returns all schemas, which are read for that.
    pub(crate) fn all(&self) -> &[Arc<Schema>] {
        self.all
            .get_or_init(|| self.entries.iter().map(PoolSchema::get).cloned().collect())
    }

    pub(crate) fn position(&self, name: &str) -> Option<u16> {
        let found = self.entries.iter().position(|entry| entry.name() == name);
        found.map(|number| number as u16)
    }

    /// Returns whether it has the schema of pieces.
    pub(crate) fn has_pieces(&self) -> bool {
        self.entries.iter().any(PoolSchema::is_aside)
    }

    /// Returns the number of the schema with this name.
    ///
    /// # Errors
    /// `NotFound`, with the names that there are.
    pub(crate) fn find(&self, name: &str) -> Result<u16> {
        self.position(name).ok_or_else(|| {
            let own = self.entries.iter().filter(|entry| !entry.is_aside());
            let names: Vec<&str> = own.map(PoolSchema::name).collect();
            let near = nearest(names.iter().copied(), name);
            let meant = near.map_or_else(String::new, |near| format!("; did you mean {near}?"));
            let cause = format!(
                "the server has {}{meant}; to add a schema, serve the pool with --schema as well",
                names.join(", ")
            );
            Error::new(Code::NotFound, format!("schema {name}"), cause)
        })
    }

    /// Names the pool's default schema in the error of attributes that it rejects, and one that takes any attributes.
    #[cold]
    pub(crate) fn with_open_schema(&self, error: Error, number: u16, default: u16) -> Error {
        let is_of_attributes = matches!(error.code(), Code::SchemaMismatch | Code::TypeMismatch);
        let Some(own) = self.get(number).filter(|_| is_of_attributes && number == default) else {
            return error;
        };
        let mut cause = format!(
            "{}; the schema is {}, the default of the pool",
            error.cause(),
            own.name()
        );
        // An open schema refuses no attribute but one whose name no schema accepts.
        let may_help = error.code() == Code::SchemaMismatch && !own.is_open() && is_name(error.subject());
        let open = self.all().iter().find(|schema| schema.is_open());
        if let Some(open) = open.filter(|_| may_help) {
            cause.extend(["; with schema ", open.name(), " any attributes may be given"]);
        }
        error.because(cause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts() -> Vec<String> {
        let mut schemas: Vec<_> = Schema::BUILTIN_NAMES.into_iter().filter_map(Schema::builtin).collect();
        schemas.extend(Schema::piece());
        schemas.iter().map(|schema| schema.to_yaml()).collect()
    }

    #[test]
    fn built_in_schemas_are_read_when_they_are_used() {
        let texts = texts();
        let schemas = PoolSchemas::new(texts.iter().map(String::as_str)).unwrap();
        let is_read =
            |entry: &PoolSchema| matches!(entry, PoolSchema::BuiltIn { parsed, .. } if parsed.get().is_some());
        let read = || schemas.entries.iter().filter(|entry| is_read(entry)).count();
        let number = schemas.find("netcdf").unwrap();
        assert_eq!(read(), 0);
        assert_eq!(schemas.get(number).unwrap().name(), "netcdf");
        assert_eq!(read(), 1);
        assert!(schemas.has_pieces());
        assert_eq!(read(), 2);
        let all: Vec<_> = schemas.all().iter().map(|schema| schema.to_yaml()).collect();
        assert_eq!(all, texts);
    }

    #[test]
    fn a_schema_that_only_has_the_name_of_a_built_in_one_is_its_own() {
        let text =
            "{name: piece, key: {dataset: [run], collocation: [], element: []}, attributes: {run: {type: string}}}";
        let schemas = PoolSchemas::new([text]).unwrap();
        assert!(!schemas.has_pieces());
        assert_eq!(schemas.get(0).unwrap().attributes().len(), 1);
        assert!(schemas.get(1).is_none());
        assert!(PoolSchemas::new(["name: ["]).is_err());
    }
}
