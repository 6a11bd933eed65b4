//! Which rows have the same key, and the keys' texts; each value is looked at once, not once a row.

use std::collections::BTreeSet;
use std::hash::BuildHasherDefault;

use hashbrown::{HashMap, HashSet};
use junctura_model::{AttrId, Schema};
use xxhash_rust::xxh3::xxh3_128_with_seed;

use super::{RowTable, TextColumn};

/// Keys that have been seen, in however many tables of one schema.
pub(crate) struct SeenRows<'a> {
    schema: &'a Schema,
    by: KeySource,
}

enum KeySource {
    /// Keys fill a good part of the cube that their values span: a bit for each place in it, and the values of each attribute.
    Cube(Vec<u64>, Vec<KeyAxis>),
    /// Hashes of keys: 128 bits that are equal for equal keys, and for different keys only with negligible probability.
    Prints(HashSet<u128, BuildHasherDefault<AsItIs>>),
}

/// The values of an attribute of the key in all tables.
struct KeyAxis {
    places: HashMap<Box<str>, u64>,
    /// From one place to the next; the first is for keys without the attribute.
    stride: u64,
}

impl<'a> SeenRows<'a> {
    /// For so many rows, of these tables.
    pub(crate) fn new<'t>(
        tables: &(impl Iterator<Item = &'t RowTable> + Clone),
        schema: &'a Schema,
        rows: usize,
    ) -> Self {
        // A bit for each place is small beside 16 bytes for each key.
        let places_max = 64 * rows as u64;
        let by = match cube(tables, schema, places_max) {
            Some((places, axes)) => KeySource::Cube(vec![0; places.div_ceil(64) as usize], axes),
            None => KeySource::Prints(HashSet::with_capacity_and_hasher(rows, BuildHasherDefault::default())),
        };
        Self { schema, by }
    }

    /// Leaves those rows whose keys were not seen before, the last of each key; and sees them.
    pub(crate) fn leave_new(&mut self, table: &RowTable, rows: &mut Vec<u32>) {
        let mut is_new = match &mut self.by {
            KeySource::Cube(bits, axes) => {
                let places = places(table, self.schema, axes, rows);
                let see = |&place: &u64| {
                    let (word, bit) = (&mut bits[(place / 64) as usize], 1 << (place % 64));
                    let is_new = *word & bit == 0;
                    *word |= bit;
                    is_new
                };
                places.iter().rev().map(see).collect::<Vec<bool>>()
            }
            KeySource::Prints(seen) => {
                let prints = prints(table, self.schema.key_len(), rows);
                prints.iter().rev().map(|&print| seen.insert(print)).collect()
            }
        };
        rows.retain(|_| is_new.pop().unwrap_or_default());
    }
    /// Leaves those rows whose keys were seen.
    pub(crate) fn leave_seen(&self, table: &RowTable, rows: &mut Vec<u32>) {
        let mut is_seen = match &self.by {
            KeySource::Cube(bits, axes) => {
                let places = places(table, self.schema, axes, rows);
                let is_set = |&place: &u64| bits[(place / 64) as usize] >> (place % 64) & 1 == 1;
                places.iter().rev().map(is_set).collect::<Vec<bool>>()
            }
            KeySource::Prints(seen) => {
                let prints = prints(table, self.schema.key_len(), rows);
                prints.iter().rev().map(|print| seen.contains(print)).collect()
            }
        };
        rows.retain(|_| is_seen.pop().unwrap_or_default());
    }
}

/// The values that keys have, and how many places their cube has, if those are no more than so many.
fn cube<'t>(
    tables: &(impl Iterator<Item = &'t RowTable> + Clone),
    schema: &Schema,
    places_max: u64,
) -> Option<(u64, Vec<KeyAxis>)> {
    let mut places = 1_u64;
    let mut axes = Vec::new();
    for index in 0..schema.key_len() {
        let mut values = KeyAxis {
            places: HashMap::new(),
            stride: places,
        };
        for column in tables.clone().filter_map(|table| table.column(AttrId(index as u8), "")) {
            // Reading a million values does not pay for few rows.
            if column.values_len() as u64 > places_max {
                return None;
            }
            for text in column.values() {
                if !values.places.contains_key(text) {
                    values.places.insert(text.into(), values.places.len() as u64 + 1);
                }
            }
        }
        places = places.checked_mul(values.places.len() as u64 + 1)?;
        if places > places_max {
            return None;
        }
        axes.push(values);
    }
    Some((places, axes))
}

fn places(table: &RowTable, schema: &Schema, axes: &[KeyAxis], rows: &[u32]) -> Vec<u64> {
    let mut places = vec![0; rows.len()];
    for ((_, column), axis) in table.key_columns(schema.key_len()).zip(axes) {
        if let Some(column) = column {
            let place = |text: &str| axis.stride * axis.places.get(text).copied().unwrap_or_default();
            column.add(rows, &mut places, place, |sum, place| sum + place);
        }
    }
    places
}

/// The prints of some rows' keys.
pub(super) fn prints(table: &RowTable, key_len: usize, rows: &[u32]) -> Vec<u128> {
    let mut prints = vec![0; rows.len()];
    for (id, column) in table.key_columns(key_len) {
        if let Some(column) = column {
            column.add(rows, &mut prints, |text| print_of(id, text), u128::wrapping_add);
        }
    }
    prints
}

/// Returns the contribution of a value to the hash of a key.
pub(super) fn print_of(id: AttrId, text: &str) -> u128 {
    xxh3_128_with_seed(text.as_bytes(), u64::from(id.0) + 1)
}

/// Takes a part of a print for its hash.
#[derive(Default)]
pub(crate) struct AsItIs(u64);

impl std::hash::Hasher for AsItIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.0 ^= u64::from_le_bytes(word);
        }
    }

    fn write_u128(&mut self, print: u128) {
        self.0 = print as u64 ^ (print >> 64) as u64;
    }
}

/// Writes keys: the text of each value with its name is made once.
pub(crate) struct KeyTexts<'a> {
    levels: [Vec<KeyPart<'a>>; 3],
}

struct KeyPart<'a> {
    column: &'a TextColumn,
    /// By the value's number, where it is the first of its level.
    first: Vec<Box<str>>,
    /// And where it is not.
    later: Vec<Box<str>>,
}

impl<'a> KeyTexts<'a> {
    pub(crate) fn new(table: &'a RowTable, schema: &'a Schema) -> Self {
        Self::without(table, schema, &[])
    }

    /// As if the keys had not these attributes.
    pub(crate) fn without(table: &'a RowTable, schema: &'a Schema, left_out: &[AttrId]) -> Self {
        let mut levels = [const { Vec::new() }; 3];
        for (id, column) in table.key_columns(schema.key_len()) {
            let Some(column) = column.filter(|_| !left_out.contains(&id)) else {
                continue;
            };
            let parts = |is_first: bool| {
                let part = |text| {
                    let mut part = String::new();
                    schema.key_part(id, is_first, text, &mut part);
                    part.into_boxed_str()
                };
                std::iter::once(Box::default())
                    .chain(column.values().map(part))
                    .collect()
            };
            let level = schema.level_ends().iter().take_while(|&&end| end <= id.index()).count();
            levels[level].push(KeyPart {
                column,
                first: parts(true),
                later: parts(false),
            });
        }
        Self { levels }
    }

    /// Appends the canonical text of a row's key.
    pub(crate) fn write(&self, row: u32, out: &mut String) {
        for level in &self.levels {
            let mut is_first = true;
            for part in level {
                let number = part.column.number(row) as usize;
                if number > 0 {
                    out.push_str(if is_first {
                        &part.first[number]
                    } else {
                        &part.later[number]
                    });
                    is_first = false;
                }
            }
            out.push_str(if is_first { "{}" } else { "}" });
        }
    }
}

/// Adds the canonical texts of the first level of some rows' keys.
pub(crate) fn datasets(table: &RowTable, schema: &Schema, rows: &[u32], found: &mut BTreeSet<String>) {
    let columns: Vec<Option<&TextColumn>> = table
        .key_columns(schema.key_len())
        .take(schema.level_ends()[0])
        .map(|(_, column)| column)
        .collect();
    let mut seen: HashSet<Vec<u32>> = HashSet::new();
    let mut numbers = Vec::new();
    for &row in rows {
        numbers.clear();
        numbers.extend(
            columns
                .iter()
                .map(|column| column.map_or(0, |column| column.number(row))),
        );
        if !seen.contains(&numbers) {
            seen.insert(numbers.clone());
            let mut text = String::new();
            schema.dataset_of(table.record(row).as_ref(), &mut text);
            found.insert(text);
        }
    }
}
