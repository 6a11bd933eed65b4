//! The schema files of FDB, the field store of ECMWF: rules in three levels, each of which becomes a schema.
//!
//! ```text
//! date: Date; step: Step; levelist: Double;          types, by name
//!
//! [ class, expver, stream=enfo/efov, date            the dataset        one of these values
//!     [ type=tu, levtype, grid-                      the collocation    taken, but no part of the key
//!         [ step, levelist?, param ]]                the element        may be left out
//!     [ type, levtype
//!         [ step, number?, param ]]]                 another collocation and its element: another schema
//! ```
//!
//! The rules keep the order of the file. If several rules accept an object, FDB uses the first, and so must a program
//! that chooses among these schemas. `docs/formats/fdb.md` has the conversion rules. The parser limits the size, the
//! depth (three levels), and the expanded size, because the text of an outer level is repeated in each of its rules.

mod reader;
mod rules;
mod schemas;
mod values;

use super::{Schema, is_name};
use crate::error::{Code, Error, Result};
use crate::limits::SCHEMA_BYTES_MAX;
use reader::{FdbReader, FilePosition};
pub use values::{fdb_key, fdb_value};

/// An error and its position.
#[derive(Debug)]
struct FdbFault {
    place: FilePosition,
    why: String,
}

type Read<T> = std::result::Result<T, FdbFault>;

impl FdbFault {
    fn new(place: FilePosition, why: impl Into<String>) -> FdbFault {
        let why = why.into();
        FdbFault { place, why }
    }
}

impl Schema {
    /// Reads a schema file, whether it is one of ours, which is one schema, or one of FDB's, which is one for each of its rules:
    /// called as the file without its ending, or `fdb` where that is no name, or the usual `schema`; and if there are several
    /// `fdb-1`, `fdb-2` and so on.
    ///
    /// # Errors
    /// As [`Schema::parse_yaml`]; for FDB's files line and column are the subject.
    pub fn parse_file(text: &str, file: &str) -> Result<Vec<Schema>> {
        if text.len() <= SCHEMA_BYTES_MAX && is_fdb(text) {
            Schema::parse_fdb(text, stem(file))
        } else {
            Ok(vec![Schema::parse_yaml(text)?])
        }
    }

    /// Reads a schema file of FDB's: a schema for each of its rules, in their order.
    ///
    /// # Errors
    /// `TooLarge` for a file of more than 1 MiB; `InvalidArgument` for anything else, with line and column as the subject.
    ///
    /// ```
    /// # use junctura_model::Schema;
    /// # fn main() -> junctura_model::Result<()> {
    /// let rules = "step: Step; [ class, stream=enfo/efov [ type=tu [ step ]] [ type [ step, number? ]]]";
    /// let schemas = Schema::parse_fdb(rules, "fields")?;
    /// let names: Vec<&str> = schemas.iter().map(Schema::name).collect();
    /// assert_eq!(names, ["fields-1", "fields-2"]);
    /// assert!(schemas[0].attributes()[1].allows("efov"));
    /// assert_eq!(Schema::parse_file(rules, "/etc/fields.rules")?, schemas);
    /// # Ok(())
    /// # }
    /// ```
    pub fn parse_fdb(text: &str, name: &str) -> Result<Vec<Schema>> {
        if text.len() > SCHEMA_BYTES_MAX {
            let cause = format!("more than {SCHEMA_BYTES_MAX} bytes");
            return Err(Error::new(Code::TooLarge, "schema", cause));
        }
        let trouble = |trouble: FdbFault| {
            let FilePosition { line, column } = trouble.place;
            let subject = format!("schema line {line}, column {column}");
            Error::new(Code::InvalidArgument, subject, trouble.why)
        };
        rules::read(text)
            .and_then(|file| schemas::schemas(&file, name))
            .map_err(trouble)
    }
}

/// The name of a file without its ending, where schemas can be called so. FDB's own are often called just `schema`.
fn stem(file: &str) -> &str {
    let name = file.rsplit('/').next().unwrap_or_default();
    let stem = name.split_once('.').map_or(name, |(stem, _)| stem);
    if stem == "schema" || !is_name(stem) {
        "fdb"
    } else {
        stem
    }
}

/// Returns whether a text begins like an FDB schema file, with a rule or with `name: Type;`, which a YAML schema cannot.
fn is_fdb(text: &str) -> bool {
    let mut reader = FdbReader::new(text);
    if reader.peek() == Some('[') {
        return true;
    }
    let typed = |reader: &mut FdbReader<'_>| {
        reader.name()?;
        reader.need(':')?;
        reader.name()?;
        reader.need(';')
    };
    typed(&mut reader).is_ok()
}

#[cfg(test)]
mod tests;
