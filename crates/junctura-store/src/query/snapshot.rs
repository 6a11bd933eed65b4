//! What was visible at one commit, and questions to it.

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

/// Everything that was visible at one commit. It can be read for as long as the store keeps snapshots, and says so afterwards.
#[derive(Clone, Debug)]
pub struct Snapshot {
    store: Store,
    number: u64,
    tables: Arc<Tables>,
    emptied: Arc<Emptied>,
    taken: Duration,
    damage: Option<Error>,
}

/// Which versions are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VersionChoice {
    /// Of each key the newest, if the selector matches it.
    Newest,
    /// All that the selector matches.
    All,
    /// All that the selector matches, where there are some of a later commit than this one.
    After(u64),
    /// Of each key all, if the selector matches the newest.
    OfKeys,
    /// Of those all but the newest.
    Masked,
}

/// Tables, and rows of each, which rise.
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

    /// The number of its last commit; 0 for an empty store.
    #[must_use]
    pub fn commit(&self) -> u64 {
        self.number
    }

    /// Why it shows nothing that was committed later, where that is so: see [`Store::until_damage`].
    #[must_use]
    pub fn damage(&self) -> Option<&Error> {
        self.damage.as_ref()
    }

    /// The schemas of what it shows.
    #[must_use]
    pub fn schemas(&self) -> &[Arc<Schema>] {
        self.store.schemas()
    }

    /// The newest version of each key that the selector matches, in the order in which they were committed.
    ///
    /// # Errors
    /// `InvalidSelector`, `LimitExceeded` for what is no selector; `Corrupt` that names a file of the catalogue in which some of what is
    /// asked for may have stood, and which is damaged or gone; `Expired` when the snapshot has outlived its time.
    pub fn list(&self, selector: &str) -> Result<Listing> {
        self.find(selector, VersionChoice::Newest)
    }

    /// The same with all versions, those that are masked by newer ones, too.
    ///
    /// # Errors
    /// As [`Self::list`].
    pub fn list_all(&self, selector: &str) -> Result<Listing> {
        self.find(selector, VersionChoice::All)
    }

    /// All versions that came with a later commit than this one, those that are masked by newer ones, too. As
    /// [`Self::list_all`] and [`Listing::after`], but what has nothing so new is not looked at.
    ///
    /// # Errors
    /// As [`Self::list`].
    pub fn list_after(&self, selector: &str, commit: u64) -> Result<Listing> {
        Ok(self.find(selector, VersionChoice::After(commit))?.after(commit))
    }

    /// What came with this commit, and has not been removed since, with keys and places: what a flush has brought, by the number that it
    /// returned.
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

    /// All versions of the object of a schema, by its name, whose record has this key, in the order in which they were committed.
    ///
    /// # Errors
    /// `NotFound` when the store has no such schema; `Expired` as [`Self::list`].
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

    /// The commit with which this version of an object of the schema of this name came, masked or not; `None`: it does not show it.
    ///
    /// # Errors
    /// What the schema does not allow; `NotFound` when the store has no such schema; `Expired` as [`Self::list`].
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
        // Who outstays a snapshot may find anything, and is told only that.
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

    /// The files in which objects lie.
    ///
    /// # Errors
    /// What reading the catalogue says.
    pub(crate) fn files(&self) -> Result<BTreeSet<Arc<str>>> {
        let all = self.tables.iter().flatten().map(RowOverlay::files);
        let files = all.collect::<Result<Vec<_>>>();
        self.check_age()?;
        Ok(files?.into_iter().flatten().collect())
    }

    /// The same without the segments that cannot be read, and why they cannot.
    pub(crate) fn readable(&self) -> (Self, Vec<Error>) {
        let lost = self.tables.iter().flatten().filter_map(RowOverlay::lost);
        let errors = lost.map(|lost| &lost.error).chain(&self.damage).cloned().collect();
        let left = |tables: &Vec<RowOverlay>| tables.iter().filter(|table| table.lost().is_none()).cloned().collect();
        let tables = Arc::new(self.tables.iter().map(left).collect());
        let readable = Self { tables, ..self.clone() };
        (readable, errors)
    }

    /// Since when nothing of a file is left, where that is so.
    pub(crate) fn empty_since(&self, file: &str) -> Option<Duration> {
        self.emptied.get(file).copied()
    }

    /// Whether commits behind it are cut off from it by one that is gone.
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

/// What was found of a schema.
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

/// Of these rows those that it asks for and that no newer one of the same key masks.
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

/// Of these rows all with the key of one that is asked for and that no newer one masks.
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

/// The same but the newest of each key.
fn masked(among: &Found, schema: &Schema, question: &SelectorQuestion<'_>) -> Result<Found> {
    let newest = newest(among.clone(), schema, question)?;
    let mut found = of_keys(among, schema, question)?;
    for ((_, rows), (_, newest)) in found.iter_mut().zip(&newest) {
        rows.retain(|row| newest.binary_search(row).is_err());
    }
    Ok(found)
}

/// Whether it asks for an attribute behind the first ones of a schema, so many.
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

/// Attributes in the order in which people want to see them, with those that the schema does not declare behind.
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
