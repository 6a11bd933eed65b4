//! The built-in schemas, from the files in `schemas/`.

use std::sync::{Arc, OnceLock};

use xxhash_rust::xxh3::xxh3_128;

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

/// The hash of each schema as [`Schema::to_yaml`] returns it, so that a schema is recognized without being parsed.
const HASHES: [(&str, u128); 7] = [
    ("mars", 0x4465_13ca_1537_a664_bbc1_be1c_177a_a5ee),
    ("record", 0x8ab1_01bd_f6d5_bba6_00e6_033d_0f30_efb1),
    ("rowcol", 0x0093_d143_d335_18a1_1ae7_04e2_438d_ba92),
    ("mesh", 0x7deb_9f63_38a8_5dc6_f736_a8d8_fd1e_885a),
    ("free", 0x5cdb_ba97_a2fe_8f22_9df7_d7b3_89bd_7e0e),
    ("netcdf", 0xfb5d_1b78_8f33_61f2_c9c8_fee2_e69f_1f81),
    (Schema::PIECE, 0x49bb_3783_9c59_dd10_2bb2_bc14_d7d3_f73f),
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

    /// Returns the name of the built-in schema whose [`Schema::to_yaml`] is this text, or of that of pieces. Does not parse it.
    ///
    /// ```
    /// # use junctura_model::Schema;
    /// let text = Schema::builtin("mars").unwrap().to_yaml();
    /// assert_eq!(Schema::builtin_of_text(&text), Some("mars"));
    /// assert_eq!(Schema::builtin_of_text("name: mars"), None);
    /// ```
    #[must_use]
    pub fn builtin_of_text(text: &str) -> Option<&'static str> {
        let hash = xxh3_128(text.as_bytes());
        HASHES.into_iter().find(|known| known.1 == hash).map(|known| known.0)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_of_the_texts() {
        let mut schemas: Vec<_> = Schema::BUILTIN_NAMES.into_iter().filter_map(Schema::builtin).collect();
        schemas.extend(Schema::piece());
        let found: Vec<(String, u128)> = schemas
            .iter()
            .map(|schema| (schema.name().to_owned(), xxh3_128(schema.to_yaml().as_bytes())))
            .collect();
        let texts: Vec<String> = found
            .iter()
            .map(|(name, hash)| format!("(\"{name}\", 0x{hash:032x})"))
            .collect();
        assert!(
            found.iter().map(|(name, hash)| (name.as_str(), *hash)).eq(HASHES),
            "a schema has changed; its hash is among these: {texts:#?}"
        );
    }
}
