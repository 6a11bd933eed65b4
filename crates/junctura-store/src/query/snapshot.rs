//! A snapshot: the state at one commit, and its queries.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use junctura_model::selector::SelectorQuestion;
use junctura_model::{AttrId, Code, Error, IntoGiven, RecordRef, Result, Schema, Selector, SelectorSet, Version};

use crate::catalogue::row_overlay::{OverlayFilter, RowOverlay};
use crate::catalogue::table::{RowTable, SeenRows, SoughtKey, TextColumn, select};
use crate::catalogue::{Emptied, Tables};
use crate::query::listing::{Listing, ListingPart};
use crate::store::Store;

/// The state at one commit. It can be read up to the store's maximum age of snapshots, and then fails with `Expired`.
#[derive(Clone, Debug)]
pub struct Snapshot {
    store: Store,
    number: u64,
    tables: Arc<Tables>,
    emptied: Arc<Emptied>,
    taken: Duration,
    damage: Option<Error>,
}

/// The versions that a query returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VersionChoice {
    /// The newest version of each key, if the selector matches it.
    Newest,
    /// All versions that the selector matches.
    All,
    /// All versions that the selector matches, in tables with a commit later than this one.
    After(u64),
    /// All versions of each key whose newest version the selector matches.
    OfKeys,
    /// As `OfKeys`, without the newest versions.
    Masked,
}

/// Tables, and their rows, ascending.
type Found = Vec<(Arc<RowTable>, Vec<u32>)>;

impl Snapshot {
    pub(crate) fn new(
        store: Store,
        number: u64,
        tables: Tables,
        emptied: Emptied,
        taken: Duration,
        damage: Option<Error>,
    ) -> Self {
        Self {
            store,
            number,
            tables: Arc::new(tables),
            emptied: Arc::new(emptied),
            taken,
            damage,
        }
    }

    /// Returns the number of its last commit; 0 for an empty store.
    #[must_use]
    pub fn commit(&self) -> u64 {
        self.number
    }

    /// Returns the error that hides all later commits, if any: see [`Store::until_damage`].
    #[must_use]
    pub fn damage(&self) -> Option<&Error> {
        self.damage.as_ref()
    }

    /// Returns the schemas of its objects.
    #[must_use]
    pub fn schemas(&self) -> &[Arc<Schema>] {
        self.store.schemas()
    }

    /// Returns the newest version of each key that the selector matches, in the order in which they were committed.
    ///
    /// # Errors
    /// `InvalidSelector`, `LimitExceeded` for an invalid selector; `Corrupt`, with the name of a file of the catalogue
    /// that is damaged or missing and may contain matching objects; `Expired` if the snapshot has expired.
    pub fn list(&self, selector: &str) -> Result<Listing> {
        self.find(selector, VersionChoice::Newest)
    }

    /// As [`Self::list`], with all versions, including masked ones.
    ///
    /// # Errors
    /// As [`Self::list`].
    pub fn list_all(&self, selector: &str) -> Result<Listing> {
        self.find(selector, VersionChoice::All)
    }

    /// Returns all versions of commits later than this one, including masked ones. As [`Self::list_all`] and
    /// [`Listing::after`], but skips tables without later commits.
    ///
    /// # Errors
    /// As [`Self::list`].
    pub fn list_after(&self, selector: &str, commit: u64) -> Result<Listing> {
        Ok(self.find(selector, VersionChoice::After(commit))?.after(commit))
    }

    /// Returns the objects of this commit that have not been removed since, with keys and locations: the objects of a
    /// flush, by the number that it returned.
    ///
    /// ```
    /// # use junctura_model::Schema;
    /// # use junctura_store::{StoreLayout, Store};
    /// # fn main() -> junctura_model::Result<()> {
    /// # let store = Store::create_url("memory:", &[Schema::builtin("free").unwrap()], &StoreLayout::default())?;
    /// # let mut writer = store.writer()?;
    /// writer.archive([("name", "a")], b"bytes")?;
    /// let flushed = writer.flush()?;
    /// for object in &store.snapshot()?.committed(flushed.commit)? {
    ///     println!("{} lies at {}", object.key(), object.location());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Self::list`].
    pub fn committed(&self, commit: u64) -> Result<Listing> {
        let since = self.list_after("", commit.saturating_sub(1))?;
        Ok(since.only(|object| object.commit() == commit))
    }

    /// Returns all versions of the object with this key, in the schema with this name, in the order in which they were
    /// committed.
    ///
    /// # Errors
    /// `NotFound` if the store has no such schema; `Expired` as [`Self::list`].
    pub fn versions_of(&self, schema: &str, key: RecordRef<'_>) -> Result<Listing> {
        let at = self.store.schema_index(schema)?;
        self.check_age()?;
        let schema = &self.store.schemas()[at];
        let (key, selector) = (SoughtKey::new(schema, key), Selector::exact_key(key, schema));
        let found = self.tables[at].iter().map(|table| table.find_key(&key, &selector));
        let found = found.collect::<Result<Found>>();
        self.check_age()?;
        let parts = non_empty(at, found?).collect();
        Ok(Listing::new(self.clone(), parts))
    }

    /// Returns the commit of this version of an object of the schema with this name, masked or not; `None` if the
    /// snapshot does not show it.
    ///
    /// # Errors
    /// Errors of the schema; `NotFound` if the store has no such schema; `Expired` as [`Self::list`].
    pub fn commit_of_version<'a, V: IntoGiven<'a>>(
        &self,
        schema: &str,
        attributes: impl IntoIterator<Item = (&'a str, V)>,
        version: Version,
    ) -> Result<Option<u64>> {
        let at = self.store.schema_index(schema)?;
        let given = attributes.into_iter().map(|(name, value)| (name, value.into_given()));
        let mut record = Vec::new();
        self.store.schemas()[at].record(given, &mut record)?;
        let found = self.versions_of(schema, RecordRef::trusted(&record))?;
        let mut objects = found.iter();
        let found = objects.find(|object| object.version() == Some(version));
        Ok(found.map(|object| object.commit()))
    }

    pub(crate) fn find(&self, selector: &str, which: VersionChoice) -> Result<Listing> {
        let set = SelectorSet::parse(selector, self.store.schemas())?;
        self.find_set(&set, which)
    }

    fn find_set(&self, set: &SelectorSet, which: VersionChoice) -> Result<Listing> {
        self.check_age()?;
        let found = self.find_parts(set, which);
        // Reads of an expired snapshot are undefined; the age is the error to report.
        self.check_age()?;
        Ok(Listing::new(self.clone(), found?))
    }

    fn find_parts(&self, set: &SelectorSet, which: VersionChoice) -> Result<Vec<ListingPart>> {
        let schemas = self.store.schemas();
        let mut parts = Vec::new();
        for (index, (schema, tables)) in schemas.iter().zip(&*self.tables).enumerate() {
            let Some(selector) = set.of(index) else { continue };
            let question = selector.question();
            let with_keys = || find(tables, &question, OverlayFilter::Key(schema.key_len()));
            let found = match which {
                VersionChoice::All => find(tables, &question, OverlayFilter::All)?,
                VersionChoice::After(commit) => {
                    let new = tables.iter().filter(|table| table.last_commit() > commit);
                    new.map(|table| table.find(&question, OverlayFilter::All))
                        .collect::<Result<_>>()?
                }
                VersionChoice::Newest => newest(with_keys()?, schema, &question)?,
                VersionChoice::OfKeys => of_keys(&with_keys()?, schema, &question)?,
                VersionChoice::Masked => masked(&with_keys()?, schema, &question)?,
            };
            parts.extend(non_empty(index, found));
        }
        Ok(parts)
    }

    /// Returns the files that contain objects.
    ///
    /// # Errors
    /// Those of reading the catalogue.
    pub(crate) fn files(&self) -> Result<BTreeSet<Arc<str>>> {
        let all = self.tables.iter().flatten().map(RowOverlay::files);
        let files = all.collect::<Result<Vec<_>>>();
        self.check_age()?;
        Ok(files?.into_iter().flatten().collect())
    }

    /// Returns the snapshot without unreadable segments, and their errors.
    pub(crate) fn readable(&self) -> (Self, Vec<Error>) {
        let lost = self.tables.iter().flatten().filter_map(RowOverlay::lost);
        let errors = lost.map(|lost| &lost.error).chain(&self.damage).cloned().collect();
        let left = |tables: &Vec<RowOverlay>| tables.iter().filter(|table| table.lost().is_none()).cloned().collect();
        let tables = Arc::new(self.tables.iter().map(left).collect());
        let readable = Self { tables, ..self.clone() };
        (readable, errors)
    }

    /// Returns since when a file has no objects left, if so.
    pub(crate) fn empty_since(&self, file: &str) -> Option<Duration> {
        self.emptied.get(file).copied()
    }

    /// Checks that no commit is missing that would hide later ones.
    pub(crate) fn check_commits(&self) -> Result<()> {
        self.store.log().check(self.number)
    }

    pub(crate) fn tables(&self) -> &Tables {
        &self.tables
    }

    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// # Errors
    /// `Expired` if other processes may have removed its objects.
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

/// Returns the non-empty results of a schema.
fn non_empty(schema: usize, found: Found) -> impl Iterator<Item = ListingPart> {
    let found = found.into_iter().filter(|(_, rows)| !rows.is_empty());
    found.map(move |(table, rows)| ListingPart::new(schema, table, rows))
}

fn find(tables: &[RowOverlay], question: &SelectorQuestion<'_>, by: OverlayFilter) -> Result<Found> {
    tables.iter().map(|table| table.find(question, by)).collect()
}

fn seen<'s>(found: &Found, schema: &'s Schema) -> SeenRows<'s> {
    let count = found.iter().map(|(_, rows)| rows.len()).sum();
    SeenRows::new(&found.iter().map(|(table, _)| &**table), schema, count)
}

/// Returns the matching rows that no newer row of the same key masks.
fn newest(among: Found, schema: &Schema, question: &SelectorQuestion<'_>) -> Result<Found> {
    let asks_beyond_key = asks_beyond(question, schema.key_len());
    let mut found = among;
    let mut seen = seen(&found, schema);
    for (table, rows) in found.iter_mut().rev() {
        seen.leave_new(table, rows);
        if asks_beyond_key && !rows.is_empty() {
            let asked = select(&**table, question)?;
            rows.retain(|&row| asked.contains(row));
        }
    }
    Ok(found)
}

/// Returns all rows with the key of a matching row that no newer one masks.
fn of_keys(among: &Found, schema: &Schema, question: &SelectorQuestion<'_>) -> Result<Found> {
    let newest = newest(among.clone(), schema, question)?;
    let mut seen = seen(&newest, schema);
    for (table, mut rows) in newest {
        seen.leave_new(&table, &mut rows);
    }
    let mut found = among.clone();
    for (table, rows) in &mut found {
        seen.leave_seen(table, rows);
    }
    Ok(found)
}

/// As [`of_keys`], without the newest row of each key.
fn masked(among: &Found, schema: &Schema, question: &SelectorQuestion<'_>) -> Result<Found> {
    let newest = newest(among.clone(), schema, question)?;
    let mut found = of_keys(among, schema, question)?;
    for ((_, rows), (_, newest)) in found.iter_mut().zip(&newest) {
        rows.retain(|row| newest.binary_search(row).is_err());
    }
    Ok(found)
}

/// Returns whether the query uses an attribute after the first `key_len` ones of a schema.
pub(crate) fn asks_beyond(question: &SelectorQuestion<'_>, key_len: usize) -> bool {
    match question {
        SelectorQuestion::Everything => false,
        SelectorQuestion::All(parts) | SelectorQuestion::Any(parts) => {
            parts.iter().any(|part| asks_beyond(part, key_len))
        }
        SelectorQuestion::Not(inner) => asks_beyond(inner, key_len),
        SelectorQuestion::Test(asked) => asked.attribute().index() >= key_len,
    }
}

/// Returns attributes in display order, undeclared ones last.
pub(crate) fn attributes<'a>(schema: &'a Schema, tables: &[&'a RowTable]) -> Vec<(AttrId, &'a str)> {
    let declared = schema.attributes().iter().enumerate();
    let mut all: Vec<(AttrId, &str)> = declared
        .map(|(at, attribute)| (AttrId(at as u8), &*attribute.name))
        .collect();
    let columns = tables.iter().flat_map(|table| table.columns());
    let mut open: Vec<&str> = columns
        .filter(|column| column.id() == AttrId::OPEN)
        .map(TextColumn::name)
        .collect();
    open.sort_unstable();
    open.dedup();
    all.extend(open.into_iter().map(|name| (AttrId::OPEN, name)));
    all
}
