//! Schemas that were added or changed after the root was created. No object is moved for this.
//!
//! `schemas/NUMBER.json` has all schemas of the store from then on; the highest number applies, and no file is ever
//! changed. Stored objects stay unchanged, so a schema may only be extended: attributes after the existing ones,
//! values, names, documentation. Units, and allowed values that no longer include the old ones, change what stored
//! objects mean: this must be requested. A process that has the store open keeps the schemas with which it was opened. It
//! continues as long as these suffice, and gets `SchemaMismatch` when another process has flushed objects that need
//! newer ones.

use std::sync::Arc;

use junctura_model::{Attribute, Code, Error, Result, Schema};
use serde::{Deserialize, Serialize};

use crate::root::check;
use crate::storage::{FileDraft, StorageDisk, check_readable, publish_new, read_whole, refused};
use crate::store::Store;
use crate::version;

pub(crate) const FOLDER: &str = "schemas";
/// Eight digits.
const NUMBER_MAX: u32 = 99_999_999;
const FORMAT: &str = "junctura-schemas";
const VERSION: u32 = 1;
const BYTES_MAX: u64 = if cfg!(test) { 4 << 20 } else { 64 << 20 };

#[derive(Deserialize, Serialize)]
struct WrittenSchemas {
    format: String,
    version: u32,
    /// The store, by the ID in its root.
    owner: String,
    schemas: Vec<String>,
}

/// The schemas after the last change, and its number.
pub(crate) struct NewestSchema {
    number: u32,
    pub(crate) schemas: Vec<Arc<Schema>>,
}

impl NewestSchema {
    /// # Errors
    /// `Corrupt`, `Unsupported` for an invalid file; errors of system calls.
    pub(crate) fn read(disk: &dyn StorageDisk, owner: &str) -> Result<Option<Self>> {
        let names = disk
            .list(FOLDER)
            .map_err(|error| refused(FOLDER, "cannot be listed", &error))?;
        let Some(number) = names.iter().filter_map(|name| number_of(name)).max() else {
            return Ok(None);
        };
        let path = path(number);
        let text = read_whole(disk, &path, BYTES_MAX)?;
        version::check(&path, &text, FORMAT, VERSION)?;
        let corrupt = |cause: &str| Error::new(Code::Corrupt, &path, cause);
        let written: WrittenSchemas = serde_json::from_slice(&text).map_err(|error| corrupt(&error.to_string()))?;
        if written.owner != owner {
            return Err(corrupt("it is not of this store"));
        }
        let schemas = parse(&written.schemas)?;
        Ok(Some(Self { number, schemas }))
    }

    fn write(&self, disk: &dyn StorageDisk, owner: &str) -> Result<()> {
        let written = WrittenSchemas {
            format: FORMAT.to_owned(),
            version: VERSION,
            owner: owner.to_owned(),
            schemas: self.schemas.iter().map(|schema| schema.to_yaml()).collect(),
        };
        let path = path(self.number);
        let mut bytes =
            serde_json::to_vec_pretty(&written).map_err(|error| Error::new(Code::Io, &path, error.to_string()))?;
        bytes.push(b'\n');
        check_readable(&path, &bytes, BYTES_MAX)?;
        parse(&written.schemas)?;
        let beside = format!("{FOLDER}/.{}", crate::hex(&crate::random()?));
        publish_new(disk, &FileDraft { beside, bytes }, &path).map_err(|error| refused(&path, "cannot be made", &error))
    }
}

/// Parses schemas.
pub(crate) fn parse(texts: &[String]) -> Result<Vec<Arc<Schema>>> {
    let schemas = texts.iter().map(|text| Schema::parse_yaml(text).map(Arc::new));
    schemas.collect()
}

/// Returns the number in a name: eight digits.
fn number_of(name: &str) -> Option<u32> {
    let digits = name.strip_suffix(".json")?;
    let is_number = digits.len() == 8 && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().ok())?
}

fn path(number: u32) -> String {
    format!("{FOLDER}/{number:08}.json")
}

impl Store {
    /// Adds a schema, or replaces the one with its name, for all processes that open the store later; returns the
    /// store, opened again. No object is moved or written. A new version of a schema may add attributes outside the
    /// key, after the existing ones, allow more values, and change aliases and documentation.
    ///
    /// A process that has the store open keeps the schemas with which it was opened, until another process has flushed
    /// objects that need newer ones: its snapshots then fail with `SchemaMismatch`, and it must open the store again.
    ///
    /// ```
    /// use junctura_model::Schema;
    /// use junctura_store::{RetentionAges, Store};
    /// # fn main() -> junctura_model::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// let schema = "name: runs\nkey: {dataset: [], collocation: [], element: [run]}\nattributes:\n  run: {type: integer}\n";
    /// let store = Store::create(folder.path(), &[Schema::parse_yaml(schema)?.into()], RetentionAges::default())?;
    /// let more = format!("{schema}  owner: {{type: string}}\n");
    /// let store = store.set_schema(&Schema::parse_yaml(&more)?)?;
    /// store.writer()?.archive([("run", "1"), ("owner", "ada")], b"")?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `SchemaMismatch`, with the first difference, if the schema is incompatible with stored objects, or changes what
    /// they mean ([`Self::redefine_schema`]), and for names that cannot be columns; `LimitExceeded` if all schemas together
    /// exceed 64 MiB, or have changed 99,999,999 times; errors of system calls.
    pub fn set_schema(&self, schema: &Schema) -> Result<Self> {
        self.replace_schema(schema, false)
    }

    /// As [`Self::set_schema`], also if the schema changes what stored objects mean: a unit, or allowed values that no
    /// longer include the old ones. Stored objects keep their values, which are then read by the new definition.
    ///
    /// # Errors
    /// As [`Self::set_schema`].
    pub fn redefine_schema(&self, schema: &Schema) -> Result<Self> {
        self.replace_schema(schema, true)
    }

    fn replace_schema(&self, schema: &Schema, redefines: bool) -> Result<Self> {
        loop {
            let newest = NewestSchema::read(self.disk(), &self.root().id)?;
            let mut next = NewestSchema {
                number: newest.as_ref().map_or(1, |newest| newest.number + 1),
                schemas: newest.map_or_else(|| self.schemas().to_vec(), |newest| newest.schemas),
            };
            let known = next.schemas.iter().find(|known| known.name() == schema.name());
            let changed = known.map_or_else(Vec::new, |known| changed_meanings(known, schema));
            if !redefines && !changed.is_empty() && self.has_objects_of(schema.name())? {
                return Err(changes_meaning(schema, &changed));
            }
            if !put(&mut next.schemas, schema)? {
                let same = self.anew()?;
                same.make_last()?;
                return Ok(same);
            }
            check(&next.schemas)?;
            if next.number > NUMBER_MAX {
                let cause = format!("the schemas of a store change {NUMBER_MAX} times at most: copy it into a new one");
                return Err(Error::new(Code::LimitExceeded, FOLDER, cause));
            }
            match next.write(self.disk(), &self.root().id) {
                // Another process was first: retry after its change.
                Err(error) if error.code() == Code::AlreadyExists => {}
                written => return written.and_then(|()| self.anew()),
            }
        }
    }

    /// Returns whether an object of this schema is visible. Objects that this client cannot read count: they need
    /// another schema.
    fn has_objects_of(&self, name: &str) -> Result<bool> {
        let snapshot = self.anew()?.snapshot()?;
        let listed = snapshot.list("")?;
        Ok(listed.iter().any(|object| object.schema().name() == name))
    }
}

fn changes_meaning(schema: &Schema, changed: &[String]) -> Error {
    let cause = format!(
        "objects in the store follow the old definition, and would mean something else: {}; declare another attribute, \
         or another schema, for new objects; if the old definition was wrong, `junctura schema set FILE --store URL --redefine` or `redefine_schema` replaces it",
        changed.join("; ")
    );
    Error::new(Code::SchemaMismatch, format!("schema {}", schema.name()), cause)
}

/// Returns, in words, the definitions of attributes that stored objects may contradict: another unit, and allowed values that
/// do not include the old ones.
fn changed_meanings(known: &Schema, schema: &Schema) -> Vec<String> {
    let mut changed = Vec::new();
    for old in known.attributes() {
        let Some(new) = schema.attributes().iter().find(|new| new.name == old.name) else {
            continue;
        };
        let mut differ = |what: &str, before: String, now: String| {
            changed.push(format!("{what} of {} was {before}, and would be {now}", old.name));
        };
        if !old.unit.is_empty() && old.unit != new.unit {
            differ("the unit", old.unit.clone(), or_none(&new.unit));
        }
        let lacks = |value: &String| !new.values.contains(value);
        if !new.values.is_empty() && (old.values.is_empty() || old.values.iter().any(lacks)) {
            differ("the set of values", list(&old.values), list(&new.values));
        }
        let range = |attribute: &Attribute| {
            let ends = attribute.range.as_ref();
            ends.map_or_else(|| "unlimited".to_owned(), |(first, last)| format!("{first} to {last}"))
        };
        let is_inside = old
            .range
            .as_ref()
            .is_some_and(|(first, last)| new.is_in_range(first) && new.is_in_range(last));
        if new.range.is_some() && !is_inside {
            differ("the range", range(old), range(new));
        }
    }
    changed
}

fn or_none(text: &str) -> String {
    if text.is_empty() {
        "none".to_owned()
    } else {
        text.to_owned()
    }
}

fn list(values: &[String]) -> String {
    if values.is_empty() {
        "unlimited".to_owned()
    } else {
        values.join("/")
    }
}

/// Returns whether anything changes.
fn put(schemas: &mut Vec<Arc<Schema>>, schema: &Schema) -> Result<bool> {
    let same_name = schemas.iter_mut().find(|known| known.name() == schema.name());
    let Some(known) = same_name else {
        schemas.push(Arc::new(schema.clone()));
        return Ok(true);
    };
    if let Some(difference) = misfit(known, schema) {
        let subject = format!("schema {}", schema.name());
        return Err(Error::new(Code::SchemaMismatch, subject, difference));
    }
    let changes = known.to_yaml() != schema.to_yaml();
    *known = Arc::new(schema.clone());
    Ok(changes)
}

/// Returns why objects in a store cannot be read with another schema.
fn misfit(known: &Schema, schema: &Schema) -> Option<String> {
    if let Some(difference) = schema.first_difference_between(known, ["the new schema", "the store"]) {
        return Some(format!("the key has to stay as it is ({difference})"));
    }
    let (before, now) = (known.attributes(), schema.attributes());
    for (at, old) in before.iter().enumerate() {
        match now.get(at) {
            Some(new) if new.name == old.name && new.kind == old.kind => {}
            Some(new) if new.name == old.name => {
                return Some(format!(
                    "{} has been of type {}, and would be of type {}",
                    old.name, old.kind, new.kind
                ));
            }
            _ => {
                let cause = "attributes keep their order, and new ones are appended";
                return Some(format!("{} is not where it was: {cause}", old.name));
            }
        }
    }
    // Undeclared attributes with its name would no longer be found.
    let new = now.get(before.len()).filter(|_| known.is_open());
    new.map(|new| format!("an open schema takes {} as it is, undeclared", new.name))
}
