//! The parts of a schema, independent of the file format; everything else is derived from these.

use xxhash_rust::xxh3::xxh3_128;

use super::names::NameTable;
use super::{AttrId, Attribute, AttributeBits, Durability, Retention, SameKey, Schema, SchemaFingerprint};
use crate::key::HASH_NAME;

/// See the module. Attributes are in the order of their IDs.
pub(super) struct SchemaParts {
    pub(super) name: String,
    pub(super) generation: u32,
    pub(super) doc: String,
    pub(super) open: bool,
    pub(super) same_key: SameKey,
    pub(super) durability: Durability,
    pub(super) retention: Retention,
    pub(super) attributes: Vec<Attribute>,
    pub(super) level_ends: [usize; 3],
}

impl Schema {
    /// Puts a schema together. The error is a name or alias of two attributes.
    pub(super) fn of(parts: SchemaParts) -> Result<Schema, String> {
        let attributes = parts.attributes;
        let schema = Schema {
            name: parts.name,
            generation: parts.generation,
            doc: parts.doc,
            open: parts.open,
            same_key: parts.same_key,
            retention: parts.retention,
            retention_rules: Vec::new(),
            durability: parts.durability,
            names: names(&attributes)?,
            required: bits(&attributes, |a| {
                a.level.is_some() && (!a.optional || a.default.is_some())
            }),
            defaulted: bits(&attributes, |a| a.default.is_some()),
            key_frames: Vec::new(),
            key_frame_len: 0,
            hash_prefix: Vec::new(),
            fingerprint: SchemaFingerprint(0),
            level_ends: parts.level_ends,
            attributes,
        };
        Ok(schema.completed())
    }

    /// Fills in what is computed from the rest.
    fn completed(mut self) -> Schema {
        let frames = |a: &Attribute| [format!("{{{}=", a.name), format!(",{}=", a.name)];
        self.key_frames = self.attributes[..self.key_len()].iter().map(frames).collect();
        // Besides the frames: the closing braces, and `{}` for empty levels.
        self.key_frame_len = 6 + self.key_frames.iter().map(|frame| frame[0].len()).sum::<usize>();
        self.hash_prefix = format!("{HASH_NAME}\0{}\0{}\0", self.name, self.generation).into_bytes();
        self.fingerprint = SchemaFingerprint(xxh3_128(self.essence().as_bytes()));
        self
    }
}

fn bits(attributes: &[Attribute], which: impl Fn(&Attribute) -> bool) -> AttributeBits {
    attributes
        .iter()
        .enumerate()
        .filter(|(_, a)| which(a))
        .fold(0, |bits, (at, _)| bits | 1 << at)
}

fn names(attributes: &[Attribute]) -> Result<NameTable, String> {
    let mut entries = Vec::new();
    for (at, attribute) in attributes.iter().enumerate() {
        let id = AttrId(at as u8);
        entries.push((attribute.name.clone(), id));
        entries.extend(attribute.aliases.iter().map(|alias| (alias.clone(), id)));
    }
    NameTable::new(entries)
}
