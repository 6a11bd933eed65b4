//! The index of standing selectors against checking each of them, while they come and go.

use std::collections::BTreeMap;
use std::sync::Arc;

use junctura_model::index::{FilingKind, InterestIndex};
use junctura_model::selector::testing::{TestRandom, random_record, random_selector};
use junctura_model::{Schema, Selector};
use proptest::prelude::*;

fn schemas() -> Vec<Arc<Schema>> {
    ["mars", "free", "record"]
        .map(|name| Schema::builtin(name).unwrap())
        .into()
}

/// Selectors come and go at random; `repeated` draws from so few that most of them are equal.
fn churn(seed: u64, rounds: usize, repeated: bool) {
    for schema in schemas() {
        let mut random = TestRandom(seed);
        let texts: Vec<String> = (0..if repeated { 6 } else { 300 })
            .map(|_| random_selector(&mut random, &schema))
            .collect();
        let selectors: Vec<Selector> = texts
            .iter()
            .map(|text| Selector::parse(text, &schema).unwrap())
            .collect();
        let (mut standing, mut interests) = (BTreeMap::new(), InterestIndex::new());
        let mut unindexed = 0;
        for round in 0..rounds {
            let grows = round < rounds / 2;
            if random.below(4) > 0 && grows || random.once_in(4) {
                let selector = selectors[random.below(selectors.len())].clone();
                unindexed += usize::from(interests.insert(round as u32, &selector) == FilingKind::Unindexed);
                standing.insert(round as u32, selector);
            } else if let Some((&id, _)) = standing.iter().nth(random.below(standing.len().max(1))) {
                let selector = standing.remove(&id).unwrap();
                assert!(interests.remove(id, &selector), "{selector}");
                assert!(!interests.remove(id, &selector), "{selector}");
                unindexed = interests.unindexed_len();
            }
            assert_eq!(interests.len(), standing.len());
            assert_eq!(interests.unindexed_len(), unindexed);
            let record = random_record(&mut random, &schema);
            let mut found = Vec::new();
            interests.matches(record.as_ref(), &mut found);
            found.sort_unstable();
            let expected: Vec<u32> = standing
                .iter()
                .filter(|(_, selector)| selector.matches(record.as_ref()))
                .map(|(&id, _)| id)
                .collect();
            assert_eq!(found, expected, "seed {seed}, round {round}, schema {}", schema.name());
        }
        for (id, selector) in standing {
            assert!(interests.remove(id, &selector));
        }
        assert!(interests.is_empty() && interests.unindexed_len() == 0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn finds_what_checking_each_finds(seed: u64, repeated: bool) {
        churn(seed, 150, repeated);
    }
}

#[test]
fn many_of_few_kinds() {
    churn(7, 700, true);
    churn(8, 500, false);
}

#[test]
#[ignore = "long; make soak"]
fn soak_interests() {
    for seed in 0..100 {
        churn(seed, 2_000, seed % 3 == 0);
    }
}

#[test]
fn what_has_nothing_to_be_filed_under_is_counted() {
    let schema = &schemas()[0];
    let filing = |text: &str| InterestIndex::new().insert(1, &Selector::parse(text, schema).unwrap());
    for text in [
        "",
        "param=t",
        "step=0/to/240/by/6",
        "levelist>=500",
        "exists(number)",
        "param~x,class=od",
    ] {
        assert_eq!(filing(text), FilingKind::Indexed, "{text}");
    }
    for text in [
        "param=t or levelist>5",
        "not number=1,class=od",
        "(class=od or class=rd),not number=1",
    ] {
        assert_eq!(filing(text), FilingKind::Indexed, "{text}");
    }
    for text in [
        "param~x",
        "param!=t",
        "not param=t",
        "param~x or class=od",
        "not exists(number)",
    ] {
        assert_eq!(filing(text), FilingKind::Unindexed, "{text}");
    }
}
