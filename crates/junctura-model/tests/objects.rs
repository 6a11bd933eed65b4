//! The index for listing against looking at every object, while objects come and go.

use std::collections::BTreeMap;
use std::sync::Arc;

use junctura_model::index::ObjectIndex;
use junctura_model::selector::testing::{TestRandom, random_record, random_selector};
use junctura_model::{Record, Schema, Selector};
use proptest::prelude::*;
use roaring::RoaringBitmap;

fn schemas() -> Vec<Arc<Schema>> {
    ["mars", "free", "record"]
        .map(|name| Schema::builtin(name).unwrap())
        .into()
}

fn verified(objects: &ObjectIndex, held: &BTreeMap<u32, Record>, selector: &Selector) -> Vec<u32> {
    objects
        .candidates(selector)
        .iter()
        .filter(|slot| selector.matches(held[slot].as_ref()))
        .collect()
}

/// The numbers of each attribute's values are those of looking at each object.
fn counted(objects: &ObjectIndex, held: &BTreeMap<u32, Record>, schema: &Schema, among: &RoaringBitmap) {
    for (at, attribute) in schema.attributes().iter().enumerate() {
        let id = schema.find(&attribute.name).unwrap();
        assert_eq!(id.index(), at);
        let Some(mut counts) = objects.value_counts(id, &attribute.name, among) else {
            assert!(attribute.kind.list);
            continue;
        };
        let mut expected = BTreeMap::new();
        for text in among.iter().filter_map(|slot| held[&slot].as_ref().get(id)) {
            *expected.entry(text).or_insert(0) += 1;
        }
        counts.sort_unstable();
        assert_eq!(counts, expected.into_iter().collect::<Vec<_>>());
    }
}

fn churn(seed: u64, rounds: usize) {
    for schema in schemas() {
        let mut random = TestRandom(seed);
        let (mut held, mut objects) = (BTreeMap::new(), ObjectIndex::new());
        for round in 0..rounds {
            for _ in 0..8 {
                let slot = random.below(400) as u32;
                if let Some(record) = held.remove(&slot) {
                    let record: Record = record;
                    objects.remove(slot, record.as_ref(), &schema);
                    objects.remove(slot, record.as_ref(), &schema);
                } else {
                    let record = random_record(&mut random, &schema);
                    objects.insert(slot, record.as_ref(), &schema);
                    held.insert(slot, record);
                }
            }
            assert_eq!(objects.len(), held.len() as u64);
            let text = random_selector(&mut random, &schema);
            let selector = Selector::parse(&text, &schema).unwrap();
            let expected: Vec<u32> = held
                .iter()
                .filter(|(_, record)| selector.matches(record.as_ref()))
                .map(|(&slot, _)| slot)
                .collect();
            assert_eq!(
                verified(&objects, &held, &selector),
                expected,
                "seed {seed}, round {round}: {text:?}"
            );
            let (found, is_exact) = objects.found(&selector);
            assert!(
                !is_exact || found.iter().eq(expected.iter().copied()),
                "seed {seed}: {text:?}"
            );
            counted(&objects, &held, &schema, &found);
        }
        for (slot, record) in held {
            objects.remove(slot, record.as_ref(), &schema);
        }
        assert!(objects.is_empty() && objects.candidates(&Selector::everything()).is_empty());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn finds_what_looking_at_each_finds(seed: u64) {
        churn(seed, 100);
    }
}

#[test]
#[ignore = "long; make soak"]
fn soak_objects() {
    for seed in 0..100 {
        churn(seed, 1_000);
    }
}

#[test]
fn an_exact_key_finds_few() {
    let schema = &schemas()[0];
    let mut random = TestRandom(5);
    let records: Vec<Record> = (0..1_000).map(|_| random_record(&mut random, schema)).collect();
    let mut objects = ObjectIndex::new();
    for (slot, record) in records.iter().enumerate() {
        objects.insert(slot as u32, record.as_ref(), schema);
    }
    for (slot, record) in records.iter().enumerate() {
        let candidates = objects.candidates(&Selector::exact_key(record.as_ref(), schema));
        assert!(candidates.contains(slot as u32) && candidates.len() < 100);
    }
}
