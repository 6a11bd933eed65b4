//! The built-in schemas, from the files in `schemas/`.

use std::sync::{Arc, OnceLock};

use super::Schema;
use crate::slip::nearest;
use crate::{Code, Error};

const FILES: [(&str, &str); 6] = [
    ("mars", include_str!("../../schemas/mars.yaml")),
    ("record", include_str!("../../schemas/record.yaml")),
    ("rowcol", include_str!("../../schemas/rowcol.yaml")),
    ("mesh", include_str!("../../schemas/mesh.yaml")),
    ("free", include_str!("../../schemas/free.yaml")),
    ("netcdf", include_str!("../../schemas/netcdf.yaml")),
];

static PARSED: [OnceLock<Option<Arc<Schema>>>; 6] = [const { OnceLock::new() }; 6];

impl Schema {
    /// The names of the built-in schemas: meteorological fields, records of many producers, cells of a table, meshes of
    /// simulations, objects with a name and any attributes, and variables of netCDF files.
    pub const BUILTIN_NAMES: [&'static str; 6] =
        [FILES[0].0, FILES[1].0, FILES[2].0, FILES[3].0, FILES[4].0, FILES[5].0];

    /// Returns a built-in schema by name.
    #[must_use]
    pub fn builtin(name: &str) -> Option<Arc<Schema>> {
        let at = Self::BUILTIN_NAMES.iter().position(|&known| known == name)?;
        PARSED[at]
            .get_or_init(|| Schema::parse_yaml(FILES[at].1).ok().map(Arc::new))
            .clone()
    }

    /// Returns the error for a name that no built-in schema has.
    #[must_use]
    pub fn unknown(name: &str) -> Error {
        let near = nearest(Self::BUILTIN_NAMES, name);
        let meant = near.map_or_else(String::new, |near| format!("; did you mean {near}?"));
        let cause = format!("the built-in schemas are {}{meant}", Self::BUILTIN_NAMES.join(", "));
        Error::new(Code::NotFound, format!("schema {name}"), cause)
    }

    /// The name of the schema of pieces.
    pub const PIECE: &'static str = "piece";

    /// Returns the schema of array pieces, which each pool has in addition: it is never named explicitly, and only
    /// selectors with `piece_of` match its objects.
    #[must_use]
    pub fn piece() -> Option<Arc<Schema>> {
        static PARSED: OnceLock<Option<Arc<Schema>>> = OnceLock::new();
        let text = include_str!("../../schemas/piece.yaml");
        PARSED
            .get_or_init(|| Schema::parse_yaml(text).ok().map(Arc::new))
            .clone()
    }

    /// Whether selectors mean its objects only if they name what only it has.
    #[must_use]
    pub fn is_aside(&self) -> bool {
        // A user may have a different schema of this name.
        let is_piece = |piece: Arc<Schema>| piece.fingerprint() == self.fingerprint();
        self.name() == Self::PIECE && Self::piece().is_some_and(is_piece)
    }
}
