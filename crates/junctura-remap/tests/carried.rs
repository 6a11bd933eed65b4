//! Values between ranks: wherever sums are made, the field has the bits of one sum over the whole source.

use junctura_model::Code;
use junctura_remap::{ApplyOptions, ApplySide, CarriedPlan, CarriedTarget, WeightLink, Weights};
use proptest::prelude::*;

use crate::random::{Case, NORMS, bits, cases, fields};

const RANKS: u32 = 3;
const SIDES: [ApplySide; 3] = [ApplySide::Source, ApplySide::Target, ApplySide::Fewer];

fn split() -> impl Strategy<Value = (Case, Vec<u32>, Vec<f64>)> {
    cases().prop_flat_map(|case| {
        let owners = prop::collection::vec(0..RANKS, case.0 as usize);
        let field = fields(case.0);
        (Just(case), owners, field)
    })
}

/// Values by their positions, as ranks of the source make them.
fn sent(plan: &CarriedPlan, weights: &Weights, field: &[f64], how: ApplyOptions) -> Vec<f64> {
    let mut values = Vec::new();
    for rank in 0..RANKS as usize {
        assert_eq!(plan.positions(rank).start, values.len() as u64);
        let (sums, sources) = plan.of_rank(rank);
        let part = weights
            .arranged(sums, field.len() as u64, |source| Some(u64::from(source)))
            .unwrap();
        let mut made = vec![0.0; sums.len()];
        part.apply(field, 0..sums.len(), &mut made, how).unwrap();
        values.extend(made);
        values.extend(sources.iter().map(|&source| field[source as usize]));
    }
    assert_eq!(plan.values(), values.len() as u64);
    values
}

/// The field, as ranks of the target make it.
fn received(plan: &CarriedPlan, weights: &Weights, values: &[f64], how: ApplyOptions) -> Vec<f64> {
    let one = |target: usize| match plan.target(weights, target) {
        CarriedTarget::Missing => how.missing.unwrap_or(f64::NAN),
        CarriedTarget::Sum(position) => values[position as usize],
        CarriedTarget::Sources => {
            let row = weights
                .arranged(&[target as u32], values.len() as u64, |source| plan.source(source))
                .unwrap();
            let mut made = [0.0];
            row.apply(values, 0..1, &mut made, how).unwrap();
            made[0]
        }
    };
    (0..weights.targets()).map(one).collect()
}

proptest! {
    #[test]
    fn sums_have_the_same_bits_on_either_side(((sources, targets, links), owners, field) in split()) {
        let weights = Weights::new(&links, &[sources], &[targets]).unwrap();
        for how in NORMS.map(|norm| ApplyOptions { norm, missing: None }) {
            let mut whole = vec![0.0; targets as usize];
            weights.apply(&field, 0..targets as usize, &mut whole, how).unwrap();
            let mut counts = Vec::new();
            for side in SIDES {
                let plan = CarriedPlan::new(&weights, owners.clone(), RANKS, side).unwrap();
                let values = sent(&plan, &weights, &field, how);
                prop_assert_eq!(bits(&received(&plan, &weights, &values, how)), bits(&whole));
                counts.push(plan.values());
            }
            prop_assert_eq!(counts[2], counts[0].min(counts[1]));
        }
    }
}

#[test]
fn a_mean_of_four_points_travels_as_one_value() {
    let links: Vec<WeightLink> = (0..16)
        .map(|at| WeightLink {
            target: at / 4,
            source: at,
            weight: 0.25,
        })
        .collect();
    let weights = Weights::new(&links, &[16], &[4]).unwrap();
    let owners: Vec<u32> = (0..16).map(|at| at / 8).collect();
    let plan = |side| CarriedPlan::new(&weights, owners.clone(), 2, side).unwrap();
    assert_eq!(
        (plan(ApplySide::Fewer).values(), plan(ApplySide::Target).values()),
        (4, 16)
    );
    let fingerprint = |side| plan(side).fingerprint(&weights, ApplyOptions::default());
    assert_eq!(fingerprint(ApplySide::Fewer), fingerprint(ApplySide::Source));
    assert_ne!(fingerprint(ApplySide::Source), fingerprint(ApplySide::Target));
}

#[test]
fn a_source_point_that_no_rank_has_is_refused_where_it_is_needed() {
    let links = [WeightLink {
        target: 0,
        source: 1,
        weight: 1.0,
    }];
    let weights = Weights::new(&links, &[3], &[1]).unwrap();
    let plan = |owners: &[u32]| CarriedPlan::new(&weights, owners.to_vec(), 1, ApplySide::Fewer).map(|_| ());
    assert_eq!(plan(&[u32::MAX, 0, u32::MAX]), Ok(()));
    for owners in [&[0, u32::MAX, 0][..], &[0, 0]] {
        assert_eq!(plan(owners).unwrap_err().code(), Code::InvalidArgument);
    }
}
