//! Skeleton; being filled in.

use std::fmt;
use std::sync::Arc;

use crate::error::{Code, Error, Result};
use crate::value::Kind;

/// Which attribute of a schema: those of the key first, in key order, then the others in schema order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AttrId(pub u8);

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

/// How long an object stays, unless its offer says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retention {
    /// Until somebody withdraws it.
    UntilWithdrawn,
    /// Until that many consumers released it.
    Released(u32),
}

/// What two sides compare at connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fingerprint(pub u128);

impl fmt::Display for Fingerprint {
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
}

/// What the objects of a pool are described by. Immutable; share it in an `Arc`.
#[derive(Debug)]
pub struct Schema {
    name: String,
    attributes: Vec<Attribute>,
    level_ends: [usize; 3],
}

impl Schema {
    /// The schemas that come with Junctura.
    pub const BUILTIN_NAMES: [&'static str; 4] = ["mars", "record", "rowcol", "free"];

    /// Reads a schema file.
    pub fn parse_yaml(text: &str) -> Result<Schema> {
        let _ = text;
        Err(Error::new(Code::Unsupported, "", ""))
    }

    /// A schema that comes with Junctura, by name.
    #[must_use]
    pub fn builtin(name: &str) -> Option<Arc<Schema>> {
        let _ = name;
        None
    }

    /// The schema as a file that reads back to an equal schema.
    #[must_use]
    pub fn to_yaml(&self) -> String {
        String::new()
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Generation of its key.
    #[must_use]
    pub fn generation(&self) -> u32 {
        1
    }

    /// What two sides compare at connect.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint(0)
    }

    /// The first thing in which two schemas are incompatible.
    #[must_use]
    pub fn first_difference(&self, other: &Schema) -> Option<String> {
        let _ = other;
        None
    }

    /// May objects carry attributes that the schema does not declare?
    #[must_use]
    pub fn is_open(&self) -> bool {
        false
    }

    /// All attributes, by id.
    #[must_use]
    pub fn attributes(&self) -> &[Attribute] {
        &self.attributes
    }

    /// The attribute of that name or alias.
    #[must_use]
    pub fn find(&self, name_or_alias: &str) -> Option<AttrId> {
        let _ = name_or_alias;
        None
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
        SameKey::Reject
    }

    /// How long objects stay by default.
    #[must_use]
    pub fn default_retention(&self) -> Retention {
        Retention::UntilWithdrawn
    }

    /// What has happened when an offer returns, by default.
    #[must_use]
    pub fn default_durability(&self) -> &str {
        "memory"
    }
}
