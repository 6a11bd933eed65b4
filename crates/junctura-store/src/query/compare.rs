//! Compares two listings: objects by their keys, and for equal keys the attributes outside the key, and the bytes.
//!
//! The listings may belong to two stores, or to two selectors in one store; attributes that distinguish their keys are
//! then omitted (`expver`). No payload is read: two payloads count as equal if their lengths and checksums are equal.
//! Damaged payloads differ; other different payloads match with a probability of one in four thousand million. Values
//! are not decoded: the same values in another encoding are different bytes.

use hashbrown::HashMap;
use junctura_model::{AttrId, Code, Error, Result, Schema};
use xxhash_rust::xxh3::xxh3_128;

use crate::catalogue::table::KeyTexts;
use crate::query::listing::{Listing, StoredObject};

/// The number of compared objects and of differences.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ComparedObjects {
    /// Keys in both listings.
    pub both: u64,
    /// Keys only in the first listing.
    pub only_first: u64,
    /// Keys only in the second listing.
    pub only_second: u64,
    /// Keys in both listings with different attributes outside the key.
    pub attributes: u64,
    /// Keys in both listings with different bytes.
    pub bytes: u64,
}

impl ComparedObjects {
    /// Returns whether there is no difference.
    #[must_use]
    pub fn is_same(&self) -> bool {
        self.only_first + self.only_second + self.attributes + self.bytes == 0
    }
}

/// One difference.
#[derive(Clone, Debug)]
pub struct ObjectDifference<'a> {
    /// The key, without omitted attributes.
    pub key: &'a str,
    /// The kind of difference.
    pub what: DifferenceKind<'a>,
}

/// The kind of difference.
#[derive(Clone, Debug)]
pub enum DifferenceKind<'a> {
    /// The object is only in the first listing.
    OnlyFirst(StoredObject<'a>),
    /// The object is only in the second listing.
    OnlySecond(StoredObject<'a>),
    /// Attributes outside the key differ: the name of each, and its values, if any, in both listings.
    Attributes(Vec<(String, Option<String>, Option<String>)>),
    /// The bytes differ.
    Bytes(StoredObject<'a>, StoredObject<'a>),
}

/// Objects by hashes of their schemas and keys.
type ByKey = HashMap<u128, usize>;

impl Listing {
    /// Compares these objects with others, without the attributes of these names (in keys, too), and passes each
    /// difference to `tell`: differences of this listing in its order, then objects that only the other has. Reads no
    /// payload.
    ///
    /// # Errors
    /// `InvalidArgument` for an unknown attribute name, and if several objects of a listing have the same key without
    /// the omitted attributes (also in listings with masked versions); errors of `tell`.
    pub fn compare(
        &self,
        other: &Self,
        left_out: &[&str],
        mut tell: impl FnMut(&ObjectDifference<'_>) -> Result<()>,
    ) -> Result<ComparedObjects> {
        if let Some(name) = left_out.iter().find(|name| !self.knows(name) && !other.knows(name)) {
            return Err(Error::new(
                Code::InvalidArgument,
                *name,
                "no object has such an attribute",
            ));
        }
        let (mut theirs, _) = (other.by_key(left_out)?, self.by_key(left_out)?);
        let mut compared = ComparedObjects::default();
        self.each_key(left_out, &mut |_, key, first| {
            let Some(index) = theirs.remove(&print(&first, key)) else {
                compared.only_first += 1;
                let what = DifferenceKind::OnlyFirst(first);
                return tell(&ObjectDifference { key, what });
            };
            let Some(second) = other.get(index) else { return Ok(()) };
            compared.both += 1;
            let attributes = differing(&first, &second, left_out);
            if !attributes.is_empty() {
                compared.attributes += 1;
                let what = DifferenceKind::Attributes(attributes);
                tell(&ObjectDifference { key, what })?;
            }
            if (first.bytes(), first.checksum()) != (second.bytes(), second.checksum()) {
                compared.bytes += 1;
                let what = DifferenceKind::Bytes(first, second);
                tell(&ObjectDifference { key, what })?;
            }
            Ok(())
        })?;
        compared.only_second = theirs.len() as u64;
        other.each_key(left_out, &mut |_, key, second| {
            if !theirs.contains_key(&print(&second, key)) {
                return Ok(());
            }
            let what = DifferenceKind::OnlySecond(second);
            tell(&ObjectDifference { key, what })
        })?;
        Ok(compared)
    }

    /// Returns whether an attribute has this name, declared or not.
    fn knows(&self, name: &str) -> bool {
        let is_declared = self.schemas().iter().any(|schema| schema.find(name).is_some());
        let mut tables = self.parts().map(|(_, table, _)| table);
        is_declared || tables.any(|table| table.column(AttrId::OPEN, name).is_some())
    }

    fn by_key(&self, left_out: &[&str]) -> Result<ByKey> {
        let mut by_key = ByKey::with_capacity(self.len());
        self.each_key(left_out, &mut |index, key, object| {
            if by_key.insert(print(&object, key), index).is_none() {
                return Ok(());
            }
            let cause = format!("several objects have this key without {}", left_out.join(", "));
            Err(Error::new(Code::InvalidArgument, key, cause))
        })?;
        Ok(by_key)
    }

    /// Passes each object's number, its key without some attributes, and the object.
    fn each_key<'a>(
        &'a self,
        left_out: &[&str],
        take: &mut dyn FnMut(usize, &str, StoredObject<'a>) -> Result<()>,
    ) -> Result<()> {
        let mut text = String::new();
        let mut index = 0;
        for part in self.whole_parts() {
            let (schema, table) = (self.schema(part), part.table());
            let ids = ids_of(schema, left_out);
            let keys = KeyTexts::without(table, schema, &ids);
            for object in self.objects_of(part) {
                text.clear();
                keys.write(object.row(), &mut text);
                take(index, &text, object)?;
                index += 1;
            }
        }
        Ok(())
    }
}

fn ids_of(schema: &Schema, names: &[&str]) -> Vec<AttrId> {
    names.iter().filter_map(|name| schema.find(name)).collect()
}

fn print(object: &StoredObject<'_>, key: &str) -> u128 {
    let schema = xxh3_128(object.schema().name().as_bytes());
    schema.wrapping_mul(3).wrapping_add(xxh3_128(key.as_bytes()))
}

/// Returns attributes outside the key that differ.
fn differing(
    first: &StoredObject<'_>,
    second: &StoredObject<'_>,
    left_out: &[&str],
) -> Vec<(String, Option<String>, Option<String>)> {
    let [first, second] = [first, second].map(|object| outside_key(object, left_out));
    if first == second {
        return Vec::new();
    }
    let mut names: Vec<&String> = first.keys().chain(second.keys()).collect();
    names.sort_unstable();
    names.dedup();
    let value = |all: &Attributes, name: &String| all.get(name).cloned();
    let each = names
        .into_iter()
        .map(|name| (name, value(&first, name), value(&second, name)));
    each.filter(|(_, first, second)| first != second)
        .map(|(name, first, second)| (name.clone(), first, second))
        .collect()
}

type Attributes = std::collections::BTreeMap<String, String>;

fn outside_key(object: &StoredObject<'_>, left_out: &[&str]) -> Attributes {
    let (schema, record) = (object.schema(), object.record());
    let ids = ids_of(schema, left_out);
    let mut outside = Attributes::new();
    for (id, name, text) in record.as_ref().iter() {
        let is_left_out = name.map_or_else(|| ids.contains(&id), |name| left_out.contains(&name));
        let name = name.unwrap_or_else(|| &schema.attribute(id).name);
        if id.index() >= schema.key_len() && !is_left_out {
            outside.insert(name.to_owned(), text.to_owned());
        }
    }
    outside
}
