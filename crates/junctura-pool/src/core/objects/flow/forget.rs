//! Freeing of keys: tombstones are forgotten before their time.
//!
//! An object may have left more behind than its own tombstone. The pieces of an array have tombstones of their own, and
//! a complete bundle its path: both are free with the key of the array, or of the bundle's first object. Otherwise a
//! producer that runs again could offer the key, and not the array or the bundle.

use std::collections::BTreeMap;

use junctura_model::{Given, RecordRef, Result, Schema};
use junctura_wire::body::{ForgetRequest, TargetBody};

use crate::Effects;
use crate::core::deferred::DeferredItem;
use crate::core::engine::Core;
use crate::core::exchange::ObjectExchange;
use crate::core::interests::interest::InterestAim;
use crate::core::objects::identity::{dataset, identity};
use crate::core::objects::table::ObjectTable;

impl Core {
    /// Frees the keys of removed objects: their tombstones are forgotten, as when they are too old. Visible objects
    /// keep their keys.
    pub(in crate::core) fn forget(
        &mut self,
        client: u32,
        request: u64,
        forget: &ForgetRequest<'_>,
        fx: &mut impl Effects,
    ) -> Result<()> {
        let exchange = &mut self.exchange;
        let (gone, array) = match exchange.asked.interests.aim(&forget.target)? {
            InterestAim::Key { identity, text, .. } => {
                let gone = exchange.objects.tombstone_of(identity).into_iter().collect();
                (gone, Some((identity, text)))
            }
            InterestAim::Selectors(selectors) => (exchange.objects.tombstones_after(0, &selectors), None),
        };
        exchange.objects.dig_up_all(&gone);
        let arrays = match (&forget.target, array) {
            (TargetBody::Key { schema, .. }, Some((identity, key))) => {
                ArrayDatasets::of_key(&exchange.objects, *schema, identity, &key)
            }
            _ => ArrayDatasets::of_all(&exchange.objects),
        };
        if let Some(arrays) = arrays {
            arrays.forget(exchange, fx);
        }
        exchange.bundles.forget_free_paths(&exchange.objects);
        exchange.deferred.answer_in_turn(client, request, gone.len() as u64, fx);
        Ok(())
    }
}

/// The datasets of pieces whose array has a free key. The pieces of an array are a dataset of their own.
struct ArrayDatasets {
    /// The number of the schema of pieces.
    pieces: u16,
    /// Known datasets, and whether the key of their array is free.
    known: BTreeMap<u64, bool>,
    /// Whether `known` has all that are of interest.
    is_one: bool,
}

impl ArrayDatasets {
    fn of_all(objects: &ObjectTable) -> Option<Self> {
        let pieces = objects.config.schemas.iter().rposition(|schema| schema.is_aside())?;
        Some(Self {
            pieces: pieces as u16,
            known: BTreeMap::new(),
            is_one: false,
        })
    }

    /// The one of the array with this key.
    fn of_key(objects: &ObjectTable, schema: u16, array: u128, key: &str) -> Option<Self> {
        let all = Self::of_all(objects)?;
        let schemas = &objects.config.schemas;
        let piece_of = format!("{}{key}", schemas.get(usize::from(schema))?.name());
        let (piece, mut record) = (&schemas[usize::from(all.pieces)], Vec::new());
        piece
            .partial_record([("piece_of", Given::Text(&piece_of))], &mut record)
            .ok()?;
        let level = RecordRef::trusted(&record).key_bytes(piece.level_ends()[0]);
        Some(Self {
            known: BTreeMap::from([(dataset(all.pieces, level), objects.is_free(array))]),
            is_one: true,
            ..all
        })
    }

    /// Forgets their pieces. Pieces that have yet to be removed are removed first.
    fn forget(mut self, exchange: &mut ObjectExchange, fx: &mut impl Effects) {
        let mut hidden = Vec::new();
        for left in &exchange.deferred.queue {
            if let DeferredItem::Object { id, sequence } = *left
                && let Some(object) = exchange.objects.get(id)
                && object.sequence == sequence
                && object.schema == self.pieces
                && self.include(&exchange.objects, object.dataset, object.record())
            {
                hidden.push(id);
            }
        }
        for id in hidden {
            exchange.see_off(id, fx);
        }
        for dataset in self.of_tombstones(&exchange.objects) {
            let pieces = exchange.objects.tombstones.oldest_of(dataset, usize::MAX);
            exchange.objects.dig_up_all(&pieces);
        }
    }

    /// Whether a piece belongs to them.
    fn include(&mut self, objects: &ObjectTable, dataset: u64, piece: RecordRef<'_>) -> bool {
        if self.is_one {
            return self.known.get(&dataset).is_some_and(|&is_free| is_free);
        }
        let pieces = &objects.config.schemas[usize::from(self.pieces)];
        *self
            .known
            .entry(dataset)
            .or_insert_with(|| array_of(objects, pieces, piece).is_some_and(|array| objects.is_free(array)))
    }

    /// Returns those with tombstones.
    fn of_tombstones(&mut self, objects: &ObjectTable) -> Vec<u64> {
        if !self.is_one {
            let datasets = &objects.tombstones.datasets;
            let firsts = datasets
                .iter()
                .filter_map(|(&dataset, of)| Some((dataset, of.by_age.first()?)));
            for (dataset, first) in firsts {
                let first = objects.tombstones.get(first);
                if first.schema == self.pieces {
                    self.include(objects, dataset, objects.tombstones.record(first));
                }
            }
        }
        let free = self.known.iter().filter(|(_, is_free)| **is_free);
        free.map(|(&dataset, _)| dataset).collect()
    }
}

/// Returns the identity of the array of a piece.
fn array_of(objects: &ObjectTable, pieces: &Schema, piece: RecordRef<'_>) -> Option<u128> {
    let piece_of = piece.get(pieces.find("piece_of")?)?;
    let (name, key) = piece_of.split_at(piece_of.find('{')?);
    let number = objects.config.schemas.iter().position(|schema| schema.name() == name)?;
    let schema = &objects.config.schemas[number];
    let key = schema.parse_key(key).ok()?.into_bytes();
    let key = RecordRef::trusted(&key).key_bytes(schema.key_len());
    Some(identity(number as u16, key))
}
