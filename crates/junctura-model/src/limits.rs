//! All limits of the model: the size, count and depth of external input.

use core::time::Duration;

use crate::schema::AttributeBits;

/// Attributes that a schema, or an object of an open schema, may have.
pub const ATTRIBUTES_MAX: usize = AttributeBits::BITS as usize;
/// Bytes of one canonical value, or of one item of a list.
pub const VALUE_BYTES_MAX: usize = 1024;
/// Bytes of the canonical text of a whole list.
pub const LIST_BYTES_MAX: usize = 16 * 1024;
/// Bytes of the canonical text of a key.
pub const KEY_BYTES_MAX: usize = 4096;
/// Bytes of a record.
pub const RECORD_BYTES_MAX: usize = 64 * 1024;
/// Bytes of the name of an attribute or a schema.
pub const NAME_BYTES_MAX: usize = 64;
/// Bytes of a schema file.
pub const SCHEMA_BYTES_MAX: usize = 1024 * 1024;
/// Schemas that the rules of one file may make.
pub const SCHEMA_RULES_MAX: usize = 1024;
/// Bytes of names and values in the rules of one file, with what each rule takes from the levels around it.
pub const SCHEMA_GROWN_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Bytes that each of these names and values weighs besides its text.
pub const SCHEMA_ITEM_BYTES: usize = 32;
/// Values that an attribute of a schema may list.
pub const ALLOWED_VALUES_MAX: usize = 4096;
/// Aliases of one attribute.
pub const ALIASES_MAX: usize = 16;
/// Bytes of the printed form of a cursor.
pub const CURSOR_BYTES_MAX: usize = 16 * 1024;
/// The longest retention for a time: it travels as milliseconds in 32 bits.
pub const RETENTION_MAX: Duration = Duration::from_millis(u32::MAX as u64);
/// Bytes of the name of a requirement or a group.
pub const REQUIREMENT_NAME_BYTES_MAX: usize = 128;
/// Requirements and groups that the retention of one object may name.
pub const CONSUMERS_MAX: usize = 16;
/// Rules of a schema about the retention of its datasets.
pub const RETENTION_RULES_MAX: usize = 256;
/// Values of a range of an attribute that no schema declares.
pub const OPEN_RANGE_VALUES_MAX: usize = 1000;
/// Distinct regular expressions of one selector.
pub const PATTERNS_MAX: usize = 32;
/// Bytes of the texts of these expressions together.
pub const PATTERN_TEXT_BYTES_MAX: usize = 8 * 1024;
/// Maximum total weight of the character classes in these expressions; most classes have weight 1
/// (`selector/patterns.rs`).
pub const PATTERN_CLASSES_MAX: usize = 512;
/// Bytes of one compiled regular expression.
pub const PATTERN_BYTES_MAX: usize = 1024 * 1024;
/// Bytes of all compiled regular expressions of one selector together.
pub const PATTERNS_BYTES_MAX: usize = 2 * 1024 * 1024;
