//! How much there is: objects, by schema; files, by what they are for; and what of them nobody needs.

use std::collections::BTreeSet;

use junctura_model::Result;

use crate::catalogue::checkpoint::Checkpoint;
use crate::catalogue::table::datasets;
use crate::data;
use crate::data::inventory::FileInventory;
use crate::maintenance::tier;
use crate::query::listing::Listing;
use crate::query::snapshot::Snapshot;

/// What a snapshot shows, and what the store's files take.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreStats {
    /// The last commit.
    pub commit: u64,
    /// How many objects there are of each schema.
    pub schemas: Vec<SchemaStats>,
    /// Data files.
    pub data: ObjectAmount,
    /// Bytes of them that belong to objects, newest or masked ones.
    pub used_bytes: u64,
    /// Where the objects lie that are not within commits: the store itself first, and then its tiers.
    pub tiers: Vec<TierStats>,
    /// The log, or the objects of exclusive commits.
    pub commits: ObjectAmount,
    /// The last commit that the newest checkpoint covers; 0 without one.
    pub checkpoint: u64,
    /// Its segments.
    pub segments: ObjectAmount,
    /// Files that [`Store::compact`](crate::Store::compact) would remove now.
    pub unneeded: ObjectAmount,
}

/// Objects of one schema.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SchemaStats {
    /// The schema.
    pub name: String,
    /// Objects that a selector finds: the newest of each key.
    pub newest: ObjectAmount,
    /// Versions that newer ones mask: what [`Store::purge`](crate::Store::purge) would remove.
    pub masked: ObjectAmount,
    /// Different first levels of their keys.
    pub datasets: u64,
}

/// Objects that lie in one place, newest or masked ones, with the bytes that they have there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TierStats {
    /// Its name: `data` is that of the store itself.
    pub name: String,
    /// How many objects, and their bytes.
    pub used: ObjectAmount,
}

/// So many of them, with so many bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ObjectAmount {
    /// How many.
    pub count: u64,
    /// Bytes of all of them together.
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
    /// The newest objects of all schemas.
    #[must_use]
    pub fn newest(&self) -> ObjectAmount {
        self.schemas.iter().map(|schema| schema.newest).sum()
    }

    /// The masked versions of all schemas.
    #[must_use]
    pub fn masked(&self) -> ObjectAmount {
        self.schemas.iter().map(|schema| schema.masked).sum()
    }
}

impl Snapshot {
    /// How much there is. Asks for the size of each file.
    ///
    /// # Errors
    /// As [`Self::list`]; what the system refuses.
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

/// The objects of one schema.
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
