//! A store as a pool reads it.

use std::sync::Arc;

use junctura_model::version::Version;
use junctura_model::{Code, Described, Error, Record, RecordRef, Result, Schema};
use junctura_store::{Listing, Snapshot, Store};
use junctura_wire::body;
use junctura_wire::fixed::{FIRST_PHASE, ReleasedHolding};

use crate::object::{ArrivedObject, PayloadSource, StoredPart};
use crate::verbs::follow::Gap;

/// A store, seen from a pool.
#[derive(Debug)]
pub(crate) struct StoreReader {
    store: Store,
    /// Which schema of the pool each of the store's is, if the pool has it.
    numbers: Vec<Option<u16>>,
}

/// An object in the store, unread.
#[derive(Debug)]
pub(crate) struct StoredRow {
    /// Of its schema, in the pool.
    number: u16,
    record: Record,
    version: Version,
    listing: Arc<Listing>,
    at: usize,
}

impl StoreReader {
    /// # Errors
    /// Those of opening a store; `SchemaMismatch` where a schema of the pool has another key there.
    pub(crate) fn open(url: &str, schemas: &[Arc<Schema>]) -> Result<Self> {
        let store = Store::open_url(url).map_err(|error| match error.code() {
            // The URL may have what others must not read.
            Code::NotFound => Error::new(
                Code::NotFound,
                "store behind the pool",
                format!("there is none ({error}); `junctura create --store …` makes one"),
            ),
            _ => error,
        })?;
        let numbers = store.schemas().iter().map(|there| {
            let Some(number) = schemas.iter().position(|here| here.name() == there.name()) else {
                return Ok(None);
            };
            match schemas[number].first_difference(there) {
                None => Ok(Some(number as u16)),
                Some(difference) => {
                    let subject = format!("schema {}", there.name());
                    let cause = format!("the store {url} has another one: {difference}");
                    Err(Error::new(Code::SchemaMismatch, subject, cause))
                }
            }
        });
        let numbers = numbers.collect::<Result<_>>()?;
        Ok(Self { store, numbers })
    }

    /// Of each key that a selector of the pool matches, the newest version.
    ///
    /// # Errors
    /// Those of reading the store.
    pub(crate) fn newest(&self, selector: &str) -> Result<Vec<StoredRow>> {
        let listing = self.listing(selector)?;
        let rows = listing.iter().flat_map(|listing| {
            let objects = listing.iter().enumerate();
            objects.filter_map(|(at, object)| self.row(listing, at, &object))
        });
        Ok(rows.collect())
    }

    /// `None`: it asks for what no schema of the store knows; the pool has taken it.
    fn listing(&self, selector: &str) -> Result<Option<Arc<Listing>>> {
        match self.store.snapshot()?.list(selector) {
            Ok(listing) => Ok(Some(Arc::new(listing))),
            Err(error) if error.code() == Code::InvalidSelector => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// An object of a listing, if the pool has its schema.
    fn row(&self, listing: &Arc<Listing>, at: usize, object: &junctura_store::StoredObject<'_>) -> Option<StoredRow> {
        Some(StoredRow {
            number: self.numbers[object.schema_index()]?,
            record: object.record(),
            version: object.version().unwrap_or(BY_HAND),
            listing: Arc::clone(listing),
            at,
        })
    }

    /// The two kinds of demand: the object with this key, or the newest that a selector matches.
    ///
    /// # Errors
    /// Those of reading the store.
    pub(crate) fn find(&self, target: &body::TargetBody<'_>, schemas: &[Arc<Schema>]) -> Result<Option<StoredRow>> {
        let listing = match target {
            body::TargetBody::Selector(selector) => self.listing(selector)?,
            body::TargetBody::Key { schema, record } => {
                let key = RecordRef::trusted(record);
                versions(&self.store.snapshot()?, &schemas[usize::from(*schema)], key)?
            }
        };
        let Some(listing) = listing else { return Ok(None) };
        let known = |object: &junctura_store::StoredObject<'_>| self.numbers[object.schema_index()].is_some();
        let objects = listing.iter().enumerate().filter(|(_, object)| known(object));
        let newest = objects.max_by_key(|(at, object)| (object.commit(), *at));
        Ok(newest.and_then(|(at, object)| self.row(&listing, at, &object)))
    }

    /// Refuses another object of a key that the store has. It is looked for before the offer, and not while it is under way: what leaves
    /// the pool in between is remembered there.
    ///
    /// # Errors
    /// `AlreadyExists`, and where it lies; those of reading the store.
    pub(crate) fn refuse_second(&self, schema: &Schema, record: RecordRef<'_>) -> Result<()> {
        let Some(listing) = versions(&self.store.snapshot()?, schema, record)? else {
            return Ok(());
        };
        let Some(there) = listing.iter().last() else {
            return Ok(());
        };
        let uri = self.store.uri(&there.location().file);
        let commit = there.commit();
        let cause = format!(
            "an object with this key is in the store behind the pool (commit {commit}, {uri}), and its schema rejects another"
        );
        Err(Error::new(Code::AlreadyExists, schema.key_text(record), cause))
    }

    /// For each item of a gap, its row, if the store has it.
    ///
    /// # Errors
    /// Those of reading the store.
    pub(super) fn find_gap(&self, gap: &Gap) -> Result<Vec<Option<StoredRow>>> {
        if gap.items.is_empty() {
            return Ok(Vec::new());
        }
        let snapshot = self.store.snapshot()?;
        let rows = gap.items.iter().map(|item| {
            let schema = item.object.schema();
            let key = schema.parse_key(item.object.key())?;
            self.version(&snapshot, schema, key.as_ref(), item.version)
        });
        rows.collect()
    }

    /// This version of a key.
    fn version(
        &self,
        snapshot: &Snapshot,
        schema: &Schema,
        key: RecordRef<'_>,
        version: Version,
    ) -> Result<Option<StoredRow>> {
        let Some(listing) = versions(snapshot, schema, key)? else {
            return Ok(None);
        };
        let mut objects = listing.iter().enumerate();
        let found = objects.find(|(_, object)| object.version() == Some(version));
        Ok(found.and_then(|(at, object)| self.row(&listing, at, &object)))
    }
}

/// All versions of a key; `None` where the store does not have its schema.
fn versions(snapshot: &Snapshot, schema: &Schema, key: RecordRef<'_>) -> Result<Option<Arc<Listing>>> {
    match snapshot.versions_of(schema.name(), key) {
        Ok(listing) => Ok(Some(Arc::new(listing))),
        Err(error) if error.code() == Code::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// An object that was put into a store without a pool has no version.
const BY_HAND: Version = Version {
    incarnation: 0,
    sequence: 0,
};

impl StoredRow {
    /// The number of its schema in the pool.
    pub(crate) fn number(&self) -> u16 {
        self.number
    }

    pub(crate) fn record(&self) -> RecordRef<'_> {
        self.record.as_ref()
    }

    pub(crate) fn version(&self) -> Version {
        self.version
    }

    /// Whether a pool of this incarnation that had reached this number had not made it visible.
    pub(crate) fn is_after(&self, incarnation: u64, sequence: u64) -> bool {
        self.version.incarnation == incarnation && self.version.sequence > sequence
    }

    fn object(&self) -> Result<junctura_store::StoredObject<'_>> {
        let found = self.listing.get(self.at);
        found.ok_or_else(|| Error::new(Code::NotFound, "object", "its listing is shorter"))
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.object().map_or(0, |object| object.bytes())
    }

    pub(crate) fn describe(&self) -> Result<Described> {
        Ok(self.object()?.describe())
    }

    /// Reads it. Waits for the store.
    ///
    /// # Errors
    /// `Corrupt` where its bytes are not what they were, `Expired` when the snapshot that it is of has outlived its time.
    pub(crate) fn read(&self, in_snapshot: bool) -> Result<ArrivedObject> {
        let object = self.object()?;
        let payload = object.read()?;
        let body = self.record.as_ref().as_bytes().to_vec();
        Ok(ArrivedObject {
            holding: ReleasedHolding::default(),
            schema: self.number,
            flags: if in_snapshot { FIRST_PHASE } else { 0 },
            record_length: body.len() as u32,
            checksum: object.checksum(),
            rest: 0,
            producer: 0,
            length: payload.len() as u64,
            place: PayloadSource::Archived(Box::new(StoredPart {
                schema: Arc::clone(object.describe().schema()),
                version: self.version,
                payload,
            })),
            body,
        })
    }
}
