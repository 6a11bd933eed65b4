//! What was visible at one commit, and questions to it.

use std::sync::Arc;
use std::time::Duration;

use junctura_model::selector::Question;
use junctura_model::{AttrId, Code, Error, IntoGiven, RecordRef, Result, Schema, SelectorSet, Version};

use crate::catalogue::{Emptied, Tables};
use crate::listing::Listing;
use crate::store::Store;
use crate::table::{Column, Live, Seen, Table};

/// Everything that was visible at one commit. It can be read for as long as the store keeps snapshots, and says so afterwards.
#[derive(Clone, Debug)]
pub struct Snapshot {
    store: Store,
    number: u64,
    tables: Arc<Tables>,
    emptied: Arc<Emptied>,
    taken: Duration,
}

/// The values that objects have in one attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    /// The attribute.
    pub name: String,
    /// Its values, in their canonical texts and in the order of the attribute's type.
    pub values: Vec<String>,
}

/// Which versions are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    /// Of each key the newest, if the selector matches it.
    Newest,
    /// All that the selector matches.
    All,
    /// Of each key all, if the selector matches the newest.
    OfKeys,
    /// Of those all but the newest.
    Masked,
}

/// Rows of each table, which rise.
type Found = Vec<Vec<u32>>;

impl Snapshot {
    pub(crate) fn new(store: Store, number: u64, tables: Tables, emptied: Emptied, taken: Duration) -> Self {
        Self {
            store,
            number,
            tables: Arc::new(tables),
            emptied: Arc::new(emptied),
            taken,
        }
    }

    /// The number of its last commit; 0 for an empty store.
    #[must_use]
    pub fn commit(&self) -> u64 {
        self.number
    }

    /// The schemas of what it shows.
    #[must_use]
    pub fn schemas(&self) -> &[Arc<Schema>] {
        self.store.schemas()
    }

    /// The newest version of each key that the selector matches, in the order in which they were committed.
    ///
    /// # Errors
    /// `InvalidSelector`, `LimitExceeded` for what is no selector; `Expired` when the snapshot has outlived its time.
    pub fn list(&self, selector: &str) -> Result<Listing> {
        self.find(selector, Which::Newest)
    }

    /// The same with all versions, those that are masked by newer ones, too.
    ///
    /// # Errors
    /// As [`Self::list`].
    pub fn list_all(&self, selector: &str) -> Result<Listing> {
        self.find(selector, Which::All)
    }

    /// All versions of the object of a schema, by its name, whose record has this key, in the order in which they were committed.
    ///
    /// # Errors
    /// `NotFound` when the store has no such schema; `Expired` as [`Self::list`].
    pub fn versions_of(&self, schema: &str, key: RecordRef<'_>) -> Result<Listing> {
        let at = self.store.schema_index(schema)?;
        let key = SelectorSet::exact_key(key, at, self.store.schemas());
        self.find_set(&key, Which::All)
    }

    /// Whether it shows this version of an object of the schema of this name, masked or not.
    ///
    /// # Errors
    /// What the schema does not allow; `NotFound` when the store has no such schema; `Expired` as [`Self::list`].
    pub fn has_version<'a, V: IntoGiven<'a>>(
        &self,
        schema: &str,
        attributes: impl IntoIterator<Item = (&'a str, V)>,
        version: Version,
    ) -> Result<bool> {
        let at = self.store.schema_index(schema)?;
        let given = attributes.into_iter().map(|(name, value)| (name, value.into_given()));
        let mut record = Vec::new();
        self.store.schemas()[at].record(given, &mut record)?;
        let found = self.versions_of(schema, RecordRef::trusted(&record))?;
        Ok(found.iter().any(|object| object.version() == Some(version)))
    }

    pub(crate) fn find(&self, selector: &str, which: Which) -> Result<Listing> {
        let set = SelectorSet::parse(selector, self.store.schemas())?;
        self.find_set(&set, which)
    }

    fn find_set(&self, set: &SelectorSet, which: Which) -> Result<Listing> {
        self.check_age()?;
        let schemas = self.store.schemas();
        let mut parts = Vec::new();
        for (index, (schema, tables)) in schemas.iter().zip(&*self.tables).enumerate() {
            let Some(selector) = set.of(index) else { continue };
            let question = selector.question();
            let found = match which {
                Which::All => all(tables, &question),
                Which::Newest => newest(tables, schema, &question),
                Which::OfKeys => of_keys(tables, schema, &question, &newest(tables, schema, &question)),
                Which::Masked => masked(tables, schema, &question),
            };
            let tables = tables.iter().zip(found);
            parts.extend(
                tables
                    .filter(|(_, rows)| !rows.is_empty())
                    .map(|(table, rows)| (index, Arc::clone(table.table()), rows)),
            );
        }
        Ok(Listing::new(self.clone(), parts))
    }

    /// The values of each attribute that objects have which the selector matches: the axes of the cube that they fill, or do not
    /// fill. Attributes that none has are left out; those of the key come first.
    ///
    /// # Errors
    /// As [`Self::list`].
    pub fn axes(&self, selector: &str) -> Result<Vec<Axis>> {
        Ok(self.list(selector)?.axes())
    }

    /// The files in which objects lie.
    pub(crate) fn files(&self) -> impl Iterator<Item = &str> {
        let tables = self.tables.iter().flatten();
        tables.flat_map(Live::files).map(|file| &**file)
    }

    /// Since when nothing of a file is left, where that is so.
    pub(crate) fn empty_since(&self, file: &str) -> Option<Duration> {
        self.emptied.get(file).copied()
    }

    /// Whether commits behind it are cut off from it by one that is gone.
    pub(crate) fn check_commits(&self) -> Result<()> {
        self.store.log().check(self.number)
    }

    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// # Errors
    /// `Expired` when others may have removed what it shows.
    pub(crate) fn check_age(&self) -> Result<()> {
        let age_max = self.store.ages().snapshot_max;
        let age = self.store.now().saturating_sub(self.taken);
        if age <= age_max {
            return Ok(());
        }
        let cause = format!("it was taken {age:?} ago, and this store keeps what a snapshot shows for {age_max:?}");
        Err(Error::new(Code::Expired, format!("snapshot {}", self.number), cause))
    }
}

fn all(tables: &[Live], question: &Question<'_>) -> Found {
    tables
        .iter()
        .map(|table| table.select(question).iter().collect())
        .collect()
}

/// All rows with the key of one of these.
fn of_keys(tables: &[Live], schema: &Schema, question: &Question<'_>, these: &Found) -> Found {
    let count = these.iter().map(Vec::len).sum();
    let mut seen = Seen::new(&tables.iter().map(|table| &**table.table()), schema, count);
    for (table, rows) in tables.iter().zip(these) {
        seen.leave_new(table.table(), &mut rows.clone());
    }
    let candidates = |table: &Live| {
        let mut rows = table.select_keys(question, schema.key_len()).iter().collect();
        seen.leave_seen(table.table(), &mut rows);
        rows
    };
    tables.iter().map(candidates).collect()
}

/// All rows with the key of one that it asks for, but the newest of each key.
fn masked(tables: &[Live], schema: &Schema, question: &Question<'_>) -> Found {
    let newest = newest(tables, schema, question);
    let mut found = of_keys(tables, schema, question, &newest);
    for (rows, newest) in found.iter_mut().zip(&newest) {
        rows.retain(|row| newest.binary_search(row).is_err());
    }
    found
}

/// The rows of each table that it asks for and that no newer row of the same key masks.
fn newest(tables: &[Live], schema: &Schema, question: &Question<'_>) -> Found {
    let asks_beyond_key = asks_beyond(question, schema.key_len());
    let of_keys = |table: &Live| table.select_keys(question, schema.key_len()).iter().collect();
    let mut found: Found = tables.iter().map(of_keys).collect();
    let count = found.iter().map(Vec::len).sum();
    let mut seen = Seen::new(&tables.iter().map(|table| &**table.table()), schema, count);
    for (table, rows) in tables.iter().zip(&mut found).rev() {
        seen.leave_new(table.table(), rows);
        if asks_beyond_key {
            let asked = table.select(question);
            rows.retain(|&row| asked.contains(row));
        }
    }
    found
}

fn asks_beyond(question: &Question<'_>, key_len: usize) -> bool {
    match question {
        Question::Everything => false,
        Question::All(parts) | Question::Any(parts) => parts.iter().any(|part| asks_beyond(part, key_len)),
        Question::Not(inner) => asks_beyond(inner, key_len),
        Question::Test(asked) => asked.attribute().index() >= key_len,
    }
}

/// Attributes in the order in which people want to see them, with those that the schema does not declare behind.
pub(crate) fn attributes<'a>(schema: &'a Schema, tables: &[&'a Table]) -> Vec<(AttrId, &'a str)> {
    let declared = schema.attributes().iter().enumerate();
    let mut all: Vec<(AttrId, &str)> = declared
        .map(|(at, attribute)| (AttrId(at as u8), &*attribute.name))
        .collect();
    let columns = tables.iter().flat_map(|table| table.columns());
    let mut open: Vec<&str> = columns
        .filter(|column| column.id() == AttrId::OPEN)
        .map(Column::name)
        .collect();
    open.sort_unstable();
    open.dedup();
    all.extend(open.into_iter().map(|name| (AttrId::OPEN, name)));
    all
}
