//! Schemas describe the objects of a pool: the attributes, their types and allowed values, and the key, which has three
//! levels.
//!
//! A schema is parsed from a YAML file ([`Schema::parse_yaml`]) or from a rule of FDB ([`Schema::parse_fdb`]), or is
//! built in ([`Schema::builtin`]), and is immutable. Attributes have small numbers ([`AttrId`]), key attributes first,
//! so that the key is a prefix of every record. Client and server compare [`Schema::fingerprint`]s when they connect. A
//! fingerprint covers only what identity depends on: documentation, aliases, default retention, and attributes added
//! outside the key do not make schemas incompatible.

mod builtin;
mod compatible;
mod default_retention;
mod fdb;
mod file;
mod names;
mod order;
mod parts;
mod print;
mod retention;

use std::fmt;

use crate::value::Kind;
pub use fdb::{fdb_key, fdb_value};
use names::NameTable;
use parts::SchemaParts;
pub use retention::{Consumers, Retention};

/// The number of an attribute in a schema: key attributes first, in key order, then the others in schema order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AttrId(pub u8);

/// One bit for each attribute of a schema, up to the maximum number of attributes.
pub(crate) type AttributeBits = u128;

impl AttrId {
    /// An attribute that an open schema does not declare: a string outside the key, stored with its name.
    pub const OPEN: AttrId = AttrId(0xff);

    /// Returns the index into [`Schema::attributes`].
    #[must_use]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// The reaction to an offer whose key exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SameKey {
    /// Rejects the offer.
    Reject,
    /// Adds a new version.
    Supersede,
}

/// The guarantee when an offer returns, set by the offer, or else by its schema. A schema may name any, so that one
/// file serves differently configured pools.
///
/// ```
/// # use junctura_model::Durability;
/// // An offer that returns when its object is archived.
/// let durability = Some(Durability::Durable);
/// assert_ne!(durability, Some(Durability::Memory));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// The payload is in the memory of the server.
    Memory,
    /// Also in the memory of a second server. Not implemented in this version: such offers fail with `Unsupported`.
    Replicated,
    /// Archived and flushed in the store.
    Durable,
}

/// A value that client and server compare when they connect: equal if keys have the same meaning.
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
    /// The unit of its numbers; empty if there is none.
    pub unit: String,
    /// The allowed values, canonical; empty: all.
    pub values: Vec<String>,
    /// The minimum and maximum value, canonical.
    pub range: Option<(String, String)>,
    /// Other names for it.
    pub aliases: Vec<String>,
    /// The canonical value of an offer without one; only for key attributes.
    pub default: Option<String>,
    /// One line of documentation.
    pub doc: String,
    /// Its level in the key (0, 1, 2); `None` outside the key.
    pub level: Option<usize>,
    /// Whether it may be omitted. Always true outside the key.
    pub optional: bool,
    /// `range` as numbers.
    bounds: Option<(i128, i128)>,
}

impl Attribute {
    /// Returns whether the allowed values and the range include this canonical value. Both ends of a range of steps
    /// must be included.
    #[must_use]
    pub fn allows(&self, canonical: &str) -> bool {
        let listed = self.values.is_empty() || self.values.iter().any(|value| value == canonical);
        listed && self.is_in_range(canonical)
    }

    /// Returns whether the range, if there is one, includes this canonical value.
    #[must_use]
    pub fn is_in_range(&self, canonical: &str) -> bool {
        self.bounds.is_none_or(|bounds| self.is_inside(bounds, canonical))
    }

    /// Returns whether there are allowed values or a range.
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

/// A description of the objects of a pool. Immutable; share it in an `Arc`.
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
/// // As above for something that is not an object: attributes may be missing.
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
    /// Retention rules for datasets, which take precedence: the first matching rule applies.
    retention_rules: Vec<default_retention::RetentionRule>,
    durability: Durability,
    attributes: Vec<Attribute>,
    level_ends: [usize; 3],
    names: NameTable,
    /// One bit for each attribute that every record has.
    required: AttributeBits,
    /// One bit for each attribute with a default.
    defaulted: AttributeBits,
    /// The prefix of each value of a key, for the first value of its level and for others: `{name=`, `,name=`.
    key_frames: Vec<[String; 2]>,
    /// Maximum number of bytes of a key's text outside values.
    key_frame_len: usize,
    /// The prefix of a key's text in its hash.
    hash_prefix: Vec<u8>,
    fingerprint: SchemaFingerprint,
}

impl Schema {
    /// Returns its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the generation of its key: a change of the key's attributes is a new generation.
    #[must_use]
    pub fn generation(&self) -> u32 {
        self.generation
    }

    /// Returns its documentation, in one line.
    #[must_use]
    pub fn doc(&self) -> &str {
        &self.doc
    }

    /// Returns the value that client and server compare when they connect: covers the name, the generation, whether the
    /// schema is open, and the key's attributes with their levels, types, defaults, and whether they may be omitted.
    #[must_use]
    pub fn fingerprint(&self) -> SchemaFingerprint {
        self.fingerprint
    }

    /// Returns whether objects may have attributes that the schema does not declare.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.open
    }

    /// Returns all attributes, by ID.
    #[must_use]
    pub fn attributes(&self) -> &[Attribute] {
        &self.attributes
    }

    /// Returns the attribute with this name or alias. Names are case-sensitive.
    #[must_use]
    pub fn find(&self, name_or_alias: &str) -> Option<AttrId> {
        self.names.find(name_or_alias)
    }

    /// Returns the known name that is most similar to an unknown one.
    #[must_use]
    pub fn nearest_name(&self, unknown: &str) -> Option<&str> {
        self.names.nearest(unknown)
    }

    /// Returns the attribute with this ID.
    ///
    /// # Panics
    /// If the ID is not one of this schema's.
    #[must_use]
    pub fn attribute(&self, id: AttrId) -> &Attribute {
        &self.attributes[id.index()]
    }

    /// Returns the number of key attributes: IDs below it are the key.
    #[must_use]
    pub fn key_len(&self) -> usize {
        self.level_ends[2]
    }

    /// Returns the end of each level of the key, in IDs.
    #[must_use]
    pub fn level_ends(&self) -> [usize; 3] {
        self.level_ends
    }

    /// Returns the reaction to an offer whose key exists.
    #[must_use]
    pub fn on_same_key(&self) -> SameKey {
        self.same_key
    }

    /// Returns the default guarantee when an offer returns.
    #[must_use]
    pub fn default_durability(&self) -> Durability {
        self.durability
    }

    /// Returns the bits of the attributes that every record has, including defaults.
    pub(crate) fn required(&self) -> AttributeBits {
        self.required
    }

    /// Returns the bits of the attributes with a default.
    pub(crate) fn defaulted(&self) -> AttributeBits {
        self.defaulted
    }

    /// Returns the prefix of a value of the key.
    pub(crate) fn key_frame(&self, id: AttrId, is_first: bool) -> &str {
        &self.key_frames[id.index()][usize::from(!is_first)]
    }

    /// Returns the maximum number of bytes of a key's text outside values.
    pub(crate) fn key_frame_len(&self) -> usize {
        self.key_frame_len
    }

    /// Returns the prefix of a key's text in its hash.
    pub(crate) fn hash_prefix(&self) -> &[u8] {
        &self.hash_prefix
    }
}

/// Returns whether this is a valid name of an attribute or schema: an ASCII letter or `_`, then letters, digits, `_`,
/// `.`, `:`, `-`; not a keyword of selectors.
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
