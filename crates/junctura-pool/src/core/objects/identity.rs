//! Identity of an object within a server: a hash of its schema and its key attributes.

use junctura_model::SameKey;

/// The identity of a record's object.
#[derive(Clone, Copy)]
pub(in crate::core) struct ObjectIdentity {
    pub(in crate::core) key: u128,
    pub(in crate::core) dataset: u64,
    pub(in crate::core) on_same_key: SameKey,
}

/// The identity of an object within a server: its schema and the bytes of its key attributes.
pub(in crate::core) fn identity(schema: u16, key_bytes: &[u8]) -> u128 {
    xxhash_rust::xxh3::xxh3_128_with_seed(key_bytes, u64::from(schema))
}

/// A hash of the first level of a key, within its schema.
pub(in crate::core) fn dataset(schema: u16, level_bytes: &[u8]) -> u64 {
    xxhash_rust::xxh3::xxh3_64_with_seed(level_bytes, u64::from(schema))
}
