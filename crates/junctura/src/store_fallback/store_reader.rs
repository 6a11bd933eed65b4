//! Reads a store on behalf of a pool.

use std::sync::Arc;

use junctura_model::version::Version;
use junctura_model::{Code, Described, Error, Record, RecordRef, Result, Schema};
use junctura_store::{Listing, Snapshot, Store};
use junctura_wire::body;
use junctura_wire::fixed::{FIRST_PHASE, ReleasedHolding};

use crate::object::{ArrivedObject, PayloadSource, StoredPart};
use crate::verbs::follow::Gap;

/// A store behind a pool.
#[derive(Debug)]
pub(crate) struct StoreReader {
    store: Store,
    /// For each schema of the store, its number in the pool, if the pool has it.
    numbers: Vec<Option<u16>>,
}

/// An object in the store, not read yet.
#[derive(Debug)]
pub(crate) struct StoredRow {
    /// The number of its schema in the pool.
    number: u16,
    record: Record,
    version: Version,
    listing: Arc<Listing>,
    at: usize,
}

impl StoreReader {
    /// # Errors
    /// Those of opening a store; `SchemaMismatch` if a schema of the pool has another key in the store.
    pub(crate) fn open(url: &str, schemas: &[Arc<Schema>]) -> Result<Self> {
        let store = Store::open_url(url).map_err(|error| match error.code() {
            // The URL may contain secrets.
            Code::NotFound => Error::new(
                Code::NotFound,
                "store behind the pool",
                format!("there is none ({error}); `junctura store create --store URL` makes one"),
            ),
            _ => error,
        })?;
        let numbers = store.schemas().iter().map(|there| {
            let Some(number) = schemas.iter().position(|here| here.name() == there.name()) else {
                return Ok(None);
            };
            match schemas[number].first_difference_between(there, ["the pool", "the store"]) {
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

    /// Returns the newest version of each key that a selector of the pool matches.
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

    /// `None`: the selector, which the pool has accepted, uses attributes that no schema of the store has.
    fn listing(&self, selector: &str) -> Result<Option<Arc<Listing>>> {
        match self.store.snapshot()?.list(selector) {
            Ok(listing) => Ok(Some(Arc::new(listing))),
            Err(error) if error.code() == Code::InvalidSelector => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns an object of a listing, if the pool has its schema.
    fn row(&self, listing: &Arc<Listing>, at: usize, object: &junctura_store::StoredObject<'_>) -> Option<StoredRow> {
        Some(StoredRow {
            number: self.numbers[object.schema_index()]?,
            record: object.record(),
            version: object.version().unwrap_or(BY_HAND),
            listing: Arc::clone(listing),
            at,
        })
    }

    /// Returns the object with this key, or the newest object that a selector matches.
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

    /// Rejects an object whose key the store has. The lookup precedes the offer: the pool remembers keys that leave it
    /// in between.
    ///
    /// # Errors
    /// `AlreadyExists`, with the location; those of reading the store.
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

    /// Returns, for each item of a gap, its row, if the store has it.
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

    /// Returns this version of a key.
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

/// Returns all versions of a key; `None` if the store does not have its schema.
fn versions(snapshot: &Snapshot, schema: &Schema, key: RecordRef<'_>) -> Result<Option<Arc<Listing>>> {
    match snapshot.versions_of(schema.name(), key) {
        Ok(listing) => Ok(Some(Arc::new(listing))),
        Err(error) if error.code() == Code::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The version of an object that was put into a store without a pool.
const BY_HAND: Version = Version {
    incarnation: 0,
    sequence: 0,
};

impl StoredRow {
    /// Returns the number of its schema in the pool.
    pub(crate) fn number(&self) -> u16 {
        self.number
    }

    pub(crate) fn record(&self) -> RecordRef<'_> {
        self.record.as_ref()
    }

    pub(crate) fn version(&self) -> Version {
        self.version
    }

    /// Returns whether it is newer than this sequence number of this incarnation.
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

    /// Reads it. Blocks on the store.
    ///
    /// # Errors
    /// `Corrupt` if its checksum does not match; `Expired` if the snapshot that it belongs to has expired.
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
