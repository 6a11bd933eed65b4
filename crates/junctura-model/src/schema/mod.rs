//! What the objects of a pool are described by: which attributes exist, their types and allowed values, and which of them,
//! in three levels, are the key.
//!
//! A schema is read from a YAML file ([`Schema::parse_yaml`]), from a rule of FDB's ([`Schema::parse_fdb`]), or comes with Junctura ([`Schema::builtin`]), and never changes
//! after that. Attributes have small numbers ([`AttrId`]): those of the key first, so that the key is a prefix of every
//! record. Two sides that connect compare [`Schema::fingerprint`]s, which cover what identity depends on and nothing else:
//! documentation, aliases, defaults of retention, and attributes added outside the key do not part old from new.

mod builtin;
mod compatible;
mod fdb;
mod file;
mod names;
mod order;
mod parts;
mod print;
mod retaining;
mod retention;

use std::fmt;

use crate::value::Kind;
pub use fdb::{fdb_key, fdb_value};
use names::NameTable;
use parts::SchemaParts;
pub use retention::{Consumers, Retention};

/// Which attribute of a schema: those of the key first, in key order, then the others in schema order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AttrId(pub u8);

/// One bit for each attribute of a schema: as many as a schema may have.
pub(crate) type AttributeBits = u128;

impl AttrId {
    /// An attribute that an open schema does not declare: a string outside the key, stored with its name.
    pub const OPEN: AttrId = AttrId(0xff);

    /// As an index into [`Schema::attributes`].
    #[must_use]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// What to do with an offer of a key that is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SameKey {
    /// Refuse it.
    Reject,
    /// It becomes a new version.
    Supersede,
}

/// What has happened when an offer returns, as it says itself, or else its schema. A schema may name any, so that one file serves
/// pools of different make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// The payload is in the memory of the server.
    Memory,
    /// Also in that of a second server. No version does this yet: such offers are refused (`Unsupported`).
    Replicated,
    /// Archived and flushed in the store.
    Durable,
}

/// What two sides compare at connect: equal where keys mean the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SchemaFingerprint(pub u128);

impl fmt::Display for SchemaFingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// One attribute of a schema.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Attribute {
    /// Its name.
    pub name: String,
    /// Its type.
    pub kind: Kind,
    /// The unit its numbers are in; empty where there is none.
    pub unit: String,
    /// The only values allowed, canonical; empty = all.
    pub values: Vec<String>,
    /// The smallest and the largest value allowed, canonical.
    pub range: Option<(String, String)>,
    /// Other names for it.
    pub aliases: Vec<String>,
    /// The canonical value that an offer without one gets; only in the key.
    pub default: Option<String>,
    /// One line of documentation.
    pub doc: String,
    /// Which level of the key it belongs to (0, 1, 2); None outside the key.
    pub level: Option<usize>,
    /// May it be left out? Always true outside the key.
    pub optional: bool,
    /// `range` as numbers.
    bounds: Option<(i128, i128)>,
}

impl Attribute {
    /// Do the allowed values and the range admit this canonical value? Of a range of steps both ends must lie inside.
    #[must_use]
    pub fn allows(&self, canonical: &str) -> bool {
        let listed = self.values.is_empty() || self.values.iter().any(|value| value == canonical);
        listed && self.bounds.is_none_or(|bounds| self.is_inside(bounds, canonical))
    }

    /// Are there allowed values or a range at all?
    pub(crate) fn is_restricted(&self) -> bool {
        !self.values.is_empty() || self.bounds.is_some()
    }

    fn is_inside(&self, (smallest, largest): (i128, i128), canonical: &str) -> bool {
        let inside = |text| {
            self.kind
                .scalar
                .order(text)
                .is_some_and(|number| (smallest..=largest).contains(&number))
        };
        match crate::value::step_ends(canonical) {
            Some((first, last)) if self.kind.scalar == crate::value::Type::Step => inside(first) && inside(last),
            _ => inside(canonical),
        }
    }
}

/// The names of the three levels of a key.
pub const LEVELS: [&str; 3] = ["dataset", "collocation", "element"];

/// What the objects of a pool are described by. Immutable; share it in an `Arc`.
///
/// ```
/// # use junctura_model::{Given, RecordRef, Retention, SameKey, Schema};
/// # fn main() -> junctura_model::Result<()> {
/// let schema = Schema::parse_yaml(
///     "{name: runs, doc: runs of a model, same_key: supersede, retention: {for: 10min}, \
///       key: {dataset: [run], collocation: [], element: [step]}, \
///       attributes: {run: {type: string}, step: {type: step, aliases: [leadtime]}, size: {type: integer}}}",
/// )?;
/// assert_eq!((schema.name(), schema.doc(), schema.generation()), ("runs", "runs of a model", 1));
/// assert_eq!((schema.on_same_key(), schema.is_open()), (SameKey::Supersede, false));
/// assert_eq!(schema.default_retention(), &"10min".parse::<Retention>()?);
/// assert_eq!(schema.default_retentions().count(), 1);
/// println!("{:?}, objects are kept in {:?}", schema.fingerprint(), schema.default_durability());
///
/// // Attributes, by name or alias; the first are those of the key, level by level.
/// let step = schema.find("leadtime").expect("an alias");
/// assert_eq!((schema.attribute(step).name.as_str(), schema.attributes().len()), ("step", 3));
/// assert_eq!((schema.key_len(), schema.level_ends()), (2, [1, 1, 2]));
/// assert_eq!(schema.nearest_name("stepp"), Some("step"));
///
/// // An object's attributes, checked and canonical: a record.
/// let mut record = Vec::new();
/// schema.record([("run", Given::Text("first")), ("step", Given::Text("1d"))], &mut record)?;
/// let read: RecordRef<'_> = schema.check(&record)?;
/// let mut key = String::new();
/// schema.key_of(read, &mut key);
/// assert_eq!(key, "{run=first}{}{step=24}");
/// assert_eq!(schema.parse_key(&key)?.into_bytes(), record);
/// println!("{key} is filed as {}", schema.key_hash(&key));
/// assert_eq!(schema.retention_of(read), schema.default_retention());
///
/// // The same of something that is no object: what is missing may be missing.
/// let (mut partial, mut dataset) = (Vec::new(), String::new());
/// schema.partial_record([("run", Given::Text("first"))], &mut partial)?;
/// schema.dataset_of(schema.check_partial(&partial)?, &mut dataset);
/// assert_eq!(dataset, "{run=first}");
///
/// // Two sides agree where keys mean the same.
/// let same = Schema::parse_yaml(&schema.to_yaml())?;
/// assert_eq!(schema.first_difference(&same), None);
/// assert!(Schema::builtin("mars").is_some_and(|mars| schema.first_difference(&mars).is_some()));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schema {
    name: String,
    generation: u32,
    doc: String,
    open: bool,
    same_key: SameKey,
    retention: Retention,
    /// What goes before it for some datasets: the first that matches.
    retention_rules: Vec<retaining::RetentionRule>,
    durability: Durability,
    attributes: Vec<Attribute>,
    level_ends: [usize; 3],
    names: NameTable,
    /// One bit for each attribute that every record has.
    required: AttributeBits,
    /// One bit for each attribute with a default.
    defaulted: AttributeBits,
    /// What stands in front of each value of a key, where it is the first of its level and where not: `{name=`, `,name=`.
    key_frames: Vec<[String; 2]>,
    /// Bytes of a key's text that are not values, at most.
    key_frame_len: usize,
    /// What stands in front of a key's text where it is hashed.
    hash_prefix: Vec<u8>,
    fingerprint: SchemaFingerprint,
}

impl Schema {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The generation of its key: a change of the key's attributes is a new one.
    #[must_use]
    pub fn generation(&self) -> u32 {
        self.generation
    }

    /// What it is for, in a line.
    #[must_use]
    pub fn doc(&self) -> &str {
        &self.doc
    }

    /// What two sides compare at connect: covers the name, the generation, whether it is open, and the key's attributes
    /// with their levels, types, defaults, and whether they may be left out.
    #[must_use]
    pub fn fingerprint(&self) -> SchemaFingerprint {
        self.fingerprint
    }

    /// May objects carry attributes that the schema does not declare?
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.open
    }

    /// All attributes, by id.
    #[must_use]
    pub fn attributes(&self) -> &[Attribute] {
        &self.attributes
    }

    /// The attribute of that name or alias. Names are case-sensitive.
    #[must_use]
    pub fn find(&self, name_or_alias: &str) -> Option<AttrId> {
        self.names.find(name_or_alias)
    }

    /// The name that the writer of an unknown one most likely meant.
    #[must_use]
    pub fn nearest_name(&self, unknown: &str) -> Option<&str> {
        self.names.nearest(unknown)
    }

    /// The attribute with that id.
    ///
    /// # Panics
    /// When the id is not one of this schema's.
    #[must_use]
    pub fn attribute(&self, id: AttrId) -> &Attribute {
        &self.attributes[id.index()]
    }

    /// How many attributes the key has: ids below it are the key.
    #[must_use]
    pub fn key_len(&self) -> usize {
        self.level_ends[2]
    }

    /// Where each level of the key ends, in ids.
    #[must_use]
    pub fn level_ends(&self) -> [usize; 3] {
        self.level_ends
    }

    /// What an offer of a key that is there means.
    #[must_use]
    pub fn on_same_key(&self) -> SameKey {
        self.same_key
    }

    /// What has happened when an offer returns, by default.
    #[must_use]
    pub fn default_durability(&self) -> Durability {
        self.durability
    }

    /// Bits of the attributes that every record has, defaults filled in.
    pub(crate) fn required(&self) -> AttributeBits {
        self.required
    }

    /// Bits of the attributes with a default.
    pub(crate) fn defaulted(&self) -> AttributeBits {
        self.defaulted
    }

    /// What stands in front of a value of the key.
    pub(crate) fn key_frame(&self, id: AttrId, is_first: bool) -> &str {
        &self.key_frames[id.index()][usize::from(!is_first)]
    }

    /// At most how many bytes of a key's text are not values.
    pub(crate) fn key_frame_len(&self) -> usize {
        self.key_frame_len
    }

    /// What stands in front of a key's text where it is hashed.
    pub(crate) fn hash_prefix(&self) -> &[u8] {
        &self.hash_prefix
    }
}

/// May this be the name of an attribute, or of a schema? An ASCII letter or `_`, then letters, digits, `_`, `.`, `:`, `-`; not a
/// word that selectors use.
#[must_use]
pub fn is_name(text: &str) -> bool {
    let begins = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let goes_on = text
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b':' | b'-'));
    begins && goes_on && text.len() <= crate::limits::NAME_BYTES_MAX && !crate::text::is_reserved(text)
}

#[cfg(test)]
mod tests;
