//! Statistics: objects by schema, files by purpose, and unneeded files.

use std::collections::BTreeSet;

use junctura_model::Result;

use crate::catalogue::checkpoint::Checkpoint;
use crate::catalogue::table::datasets;
use crate::data;
use crate::data::inventory::FileInventory;
use crate::maintenance::tier;
use crate::query::listing::Listing;
use crate::query::snapshot::Snapshot;

/// Statistics of a snapshot, and of the store's files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreStats {
    /// The last commit.
    pub commit: u64,
    /// The objects of each schema.
    pub schemas: Vec<SchemaStats>,
    /// The data files.
    pub data: ObjectAmount,
    /// Their bytes that belong to objects, newest or masked.
    pub used_bytes: u64,
    /// The tiers of objects outside commits: the store itself first.
    pub tiers: Vec<TierStats>,
    /// The log, or the objects of exclusive commits.
    pub commits: ObjectAmount,
    /// The last commit that the newest checkpoint covers; 0 without one.
    pub checkpoint: u64,
    /// The segments of the newest checkpoint.
    pub segments: ObjectAmount,
    /// Files that [`Store::compact`](crate::Store::compact) would remove now.
    pub unneeded: ObjectAmount,
}

/// Objects of one schema.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SchemaStats {
    /// The name of the schema.
    pub name: String,
    /// Objects that a selector finds: the newest of each key.
    pub newest: ObjectAmount,
    /// Masked versions: those that [`Store::purge`](crate::Store::purge) would remove.
    pub masked: ObjectAmount,
    /// The number of datasets: distinct first levels of their keys.
    pub datasets: u64,
}

/// Objects in one tier, newest or masked, with their stored bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TierStats {
    /// Its name; `data` is the store itself.
    pub name: String,
    /// The number of objects, and their bytes.
    pub used: ObjectAmount,
}

/// A number of objects or files, and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ObjectAmount {
    /// The number.
    pub count: u64,
    /// Their total size in bytes.
    pub bytes: u64,
}

impl ObjectAmount {
    pub(crate) fn add(&mut self, bytes: u64) {
        self.count += 1;
        self.bytes += bytes;
    }
}

impl std::iter::Sum for ObjectAmount {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, one| Self {
            count: sum.count + one.count,
            bytes: sum.bytes + one.bytes,
        })
    }
}

impl StoreStats {
    /// Returns the newest objects of all schemas.
    #[must_use]
    pub fn newest(&self) -> ObjectAmount {
        self.schemas.iter().map(|schema| schema.newest).sum()
    }

    /// Returns the masked versions of all schemas.
    #[must_use]
    pub fn masked(&self) -> ObjectAmount {
        self.schemas.iter().map(|schema| schema.masked).sum()
    }
}

impl Snapshot {
    /// Returns statistics. Reads the size of each file.
    ///
    /// # Errors
    /// As [`Self::list`]; errors of system calls.
    pub fn stats(&self) -> Result<StoreStats> {
        let store = self.store();
        let inventory = FileInventory::of(store);
        let all = self.list_all("")?;
        let tiers = self.tiers_stats(&all)?;
        let checkpoint = Checkpoint::newest(store.disk())?;
        Ok(StoreStats {
            commit: self.commit(),
            used_bytes: tiers.iter().map(|tier| tier.used.bytes).sum(),
            tiers,
            schemas: self.schemas_stats(&all)?,
            data: inventory.amount(&inventory.data_files()?)?,
            commits: inventory.amount(&inventory.commit_files()?)?,
            checkpoint: checkpoint.as_ref().map_or(0, |checkpoint| checkpoint.commit),
            segments: checkpoint.map_or(ObjectAmount::default(), |checkpoint| segments(&checkpoint)),
            unneeded: inventory.amount(&store.unneeded()?)?,
        })
    }

    fn tiers_stats(&self, all: &Listing) -> Result<Vec<TierStats>> {
        let tiers = self.store().tiers()?;
        let names = std::iter::once(tier::OWN).chain(tiers.iter().map(|tier| &*tier.name));
        let mut used: Vec<(&str, ObjectAmount)> = names.map(|name| (name, ObjectAmount::default())).collect();
        for object in all.iter().filter(|object| data::is_one(object.file_name())) {
            let name = tier::of(object.file_name());
            if let Some((_, amount)) = used.iter_mut().find(|(tier, _)| *tier == name) {
                amount.add(object.place().length);
            }
        }
        let stats = used.into_iter().map(|(name, used)| TierStats {
            name: name.to_owned(),
            used,
        });
        Ok(stats.collect())
    }

    fn schemas_stats(&self, all: &Listing) -> Result<Vec<SchemaStats>> {
        let schemas = self.schemas().iter().enumerate();
        let newest = self.list("")?;
        let stats = schemas.map(|(index, schema)| {
            let total = amount(all, index);
            let newest = amount(&newest, index);
            let mut found = BTreeSet::new();
            for (_, table, rows) in all.parts().filter(|(of, ..)| *of == index) {
                datasets(table, schema, rows, &mut found);
            }
            SchemaStats {
                name: schema.name().to_owned(),
                newest,
                masked: ObjectAmount {
                    count: total.count - newest.count,
                    bytes: total.bytes - newest.bytes,
                },
                datasets: found.len() as u64,
            }
        });
        Ok(stats.collect())
    }
}

/// Returns the objects of one schema.
fn amount(listing: &Listing, schema: usize) -> ObjectAmount {
    let mut amount = ObjectAmount::default();
    for (_, table, rows) in listing.parts().filter(|(of, ..)| *of == schema) {
        for &row in rows {
            amount.add(table.place(row).object_length());
        }
    }
    amount
}

fn segments(checkpoint: &Checkpoint) -> ObjectAmount {
    let one = |bytes| ObjectAmount { count: 1, bytes };
    checkpoint.segments.iter().map(|segment| one(segment.bytes)).sum()
}
