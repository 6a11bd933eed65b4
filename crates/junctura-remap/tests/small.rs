//! Cases that can be worked out by hand.

#![allow(clippy::float_cmp, clippy::single_range_in_vec_init, reason = "tests")]

use junctura_model::Code;
use junctura_remap::{ApplyOptions, GridCells, NormalizeBy, WeightLink, Weights};

const NOTHING: f64 = f64::NAN;

fn links(of: &[(u64, u64, f64)]) -> Vec<WeightLink> {
    of.iter()
        .map(|&(target, source, weight)| WeightLink { target, source, weight })
        .collect()
}

/// Four cells of width 1 onto cells of width 1.5, 2.5 and, outside, 1.
fn coarse() -> Weights {
    let of = [
        (0, 0, 1.0 / 1.5),
        (0, 1, 0.5 / 1.5),
        (1, 3, 1.0 / 2.5),
        (1, 2, 1.0 / 2.5),
        (1, 1, 0.5 / 2.5),
    ];
    let areas = |areas: &[f64]| GridCells {
        areas: areas.to_vec(),
        ..GridCells::default()
    };
    Weights::new(&links(&of), &[4], &[3])
        .unwrap()
        .with_cells(areas(&[1.0; 4]), areas(&[1.5, 2.5, 1.0]))
        .unwrap()
}

fn field(weights: &Weights, source: &[f64], how: ApplyOptions) -> Vec<f64> {
    let mut into = vec![0.0; weights.targets()];
    weights.apply(source, 0..weights.targets(), &mut into, how).unwrap();
    into
}

fn by(norm: NormalizeBy) -> ApplyOptions {
    ApplyOptions { norm, missing: None }
}

fn same(one: &[f64], other: &[f64]) -> bool {
    let near = |(one, other): (&f64, &f64)| (one - other).abs() < 1e-14 || (one.is_nan() && other.is_nan());
    one.len() == other.len() && one.iter().zip(other).all(near)
}

fn is_about(result: junctura_model::Result<impl std::fmt::Debug>, code: Code, words: &str) {
    let error = result.unwrap_err();
    assert_eq!(error.code(), code, "{error}");
    assert!(error.to_string().contains(words), "{error}");
}

#[test]
fn a_field_is_the_sum_of_its_links() {
    let weights = coarse();
    let found = field(&weights, &[1.0, 2.0, 3.0, 4.0], ApplyOptions::default());
    assert!(same(&found, &[2.0 / 1.5, 8.0 / 2.5, NOTHING]), "{found:?}");
    assert_eq!((weights.sources(), weights.targets(), weights.len()), (4, 3, 5));
}

#[test]
fn what_is_missing_counts_as_the_norm_says() {
    let weights = coarse();
    let source = [1.0, NOTHING, 3.0, 4.0];
    let whole = field(&weights, &source, by(NormalizeBy::Whole));
    assert!(same(&whole, &[NOTHING; 3]), "{whole:?}");
    let destination = field(&weights, &source, by(NormalizeBy::Destination));
    assert!(same(&destination, &[1.0 / 1.5, 7.0 / 2.5, NOTHING]), "{destination:?}");
    let fraction = field(&weights, &source, by(NormalizeBy::Fraction));
    assert!(same(&fraction, &[1.0, 3.5, NOTHING]), "{fraction:?}");
    let nothing = field(&weights, &[NOTHING; 4], by(NormalizeBy::Fraction));
    assert!(same(&nothing, &[NOTHING; 3]), "{nothing:?}");
}

#[test]
fn a_value_may_say_that_there_is_none() {
    let weights = coarse();
    let how = ApplyOptions {
        norm: NormalizeBy::Fraction,
        missing: Some(-9999.0),
    };
    let found = field(&weights, &[1.0, -9999.0, NOTHING, 4.0], how);
    assert!(same(&found, &[1.0, 4.0, -9999.0]), "{found:?}");
}

#[test]
fn what_a_mask_leaves_out_has_no_links() {
    let masked = GridCells {
        mask: vec![true, false, true, true],
        ..GridCells::default()
    };
    let target = GridCells {
        mask: vec![true, true, false],
        ..GridCells::default()
    };
    let weights = coarse().with_cells(masked, target).unwrap();
    assert_eq!(weights.len(), 3);
    let found = field(&weights, &[1.0, 1e9, 3.0, 4.0], by(NormalizeBy::Fraction));
    assert!(same(&found, &[1.0, 3.5, NOTHING]), "{found:?}");
    assert!(same(
        &field(&weights, &[1.0, 1e9, 3.0, 4.0], by(NormalizeBy::Whole))[..1],
        &[1.0 / 1.5]
    ));
}

#[test]
fn the_order_in_which_links_are_given_does_not_matter() {
    let tenths = [(0, 0, 0.1), (0, 0, 0.7), (0, 1, 0.2), (0, 0, 0.2)];
    let mut turned = tenths;
    turned.reverse();
    let one = Weights::new(&links(&tenths), &[2], &[1]).unwrap();
    assert_eq!(one, Weights::new(&links(&turned), &[2], &[1]).unwrap());
    assert_eq!(one.len(), 2);
}

#[test]
fn what_has_no_weight_is_no_link() {
    let weights = Weights::new(
        &links(&[(0, 0, 1.0), (0, 1, 0.0), (1, 1, 0.5), (1, 1, -0.5)]),
        &[2],
        &[2],
    )
    .unwrap();
    assert_eq!(weights.len(), 1);
    let found = field(&weights, &[2.0, NOTHING], ApplyOptions::default());
    assert!(same(&found, &[2.0, NOTHING]), "{found:?}");
}

#[test]
fn endless_values_are_values() {
    let weights = Weights::new(&links(&[(0, 0, 0.5), (0, 1, 0.5)]), &[2], &[1]).unwrap();
    assert_eq!(
        field(&weights, &[f64::INFINITY, 1.0], ApplyOptions::default()),
        [f64::INFINITY]
    );
    let neither = field(&weights, &[f64::INFINITY, f64::NEG_INFINITY], ApplyOptions::default());
    assert!(neither[0].is_nan());
}

#[test]
fn a_part_knows_what_it_needs() {
    let weights = coarse();
    assert_eq!(weights.sources_of(0..1).unwrap(), [0..2]);
    assert_eq!(weights.sources_of(1..3).unwrap(), [1..4]);
    assert_eq!(weights.sources_of(2..3).unwrap(), []);
    let (part, stretches) = weights.part(1..3).unwrap();
    assert_eq!(stretches, [1..4]);
    assert_eq!((part.sources(), part.targets()), (3, 2));
    assert_eq!(part.cells().1.areas, [2.5, 1.0]);
    let found = field(&part, &[2.0, 3.0, 4.0], ApplyOptions::default());
    assert!(same(&found, &[8.0 / 2.5, NOTHING]), "{found:?}");
}

#[test]
fn stretches_do_not_touch() {
    let weights = Weights::new(
        &links(&[(0, 7, 1.0), (0, 1, 1.0), (1, 2, 1.0), (1, 1, 1.0)]),
        &[9],
        &[2],
    )
    .unwrap();
    assert_eq!(weights.sources_of(0..2).unwrap(), [1..3, 7..8]);
    let (part, _) = weights.part(0..1).unwrap();
    assert_eq!(field(&part, &[5.0, 6.0], ApplyOptions::default()), [11.0]);
}

#[test]
fn an_amount_is_conserved_or_not() {
    let weights = coarse();
    let source = [1.0, 2.0, 3.0, 4.0];
    let kept = weights.conserved(&source, ApplyOptions::default()).unwrap();
    assert!(
        (kept.source - 10.0).abs() < 1e-14 && kept.relative_error < 1e-15,
        "{kept:?}"
    );
    // A missing source is no amount; a target point that is missing for it loses what else it had.
    let missing = [1.0, NOTHING, 3.0, 4.0];
    for norm in [NormalizeBy::Destination, NormalizeBy::Fraction] {
        let kept = weights.conserved(&missing, by(norm)).unwrap();
        assert!(
            (kept.source - 8.0).abs() < 1e-14 && kept.relative_error < 1e-15,
            "{kept:?}"
        );
    }
    assert_eq!(
        weights
            .conserved(&missing, by(NormalizeBy::Whole))
            .unwrap()
            .relative_error,
        1.0
    );
    assert_eq!(
        weights
            .conserved(&[0.0; 4], ApplyOptions::default())
            .unwrap()
            .relative_error,
        0.0
    );
}

#[test]
fn weights_by_fraction_count_the_covered_part() {
    // One source cell of area 1 covers half of a target cell of area 2.
    let cells = |area, fraction| GridCells {
        areas: vec![area],
        fractions: vec![fraction],
        mask: vec![],
    };
    let weights = |weight| Weights::new(&links(&[(0, 0, weight)]), &[1], &[1]).unwrap();
    for (weight, is_by_fraction) in [(0.5, false), (1.0, true)] {
        let weights = weights(weight)
            .with_cells(cells(1.0, 1.0), cells(2.0, 0.5))
            .unwrap()
            .by_fraction(is_by_fraction);
        let kept = weights.conserved(&[3.0], ApplyOptions::default()).unwrap();
        assert_eq!((kept.source, kept.target), (3.0, 3.0));
    }
}

#[test]
fn grids_may_be_empty() {
    let weights = Weights::new(&[], &[0, 4], &[0]).unwrap();
    assert!(weights.is_empty());
    weights.apply(&[], 0..0, &mut [], ApplyOptions::default()).unwrap();
    let nowhere = Weights::new(&[], &[0], &[2]).unwrap();
    assert!(same(&field(&nowhere, &[], ApplyOptions::default()), &[NOTHING; 2]));
}

#[test]
fn what_is_wrong_is_named() {
    let new = |of, from: &[u64], to: &[u64]| Weights::new(&links(of), from, to);
    is_about(
        new(&[(0, 2, 1.0)], &[2], &[1]),
        Code::InvalidArgument,
        "link 0 is of source point 2",
    );
    is_about(
        new(&[(1, 0, 1.0)], &[2], &[1]),
        Code::InvalidArgument,
        "link 0 is of target point 1",
    );
    is_about(
        new(&[(0, 0, NOTHING)], &[1], &[1]),
        Code::InvalidArgument,
        "has the weight NaN",
    );
    is_about(
        new(&[(0, 0, f64::MAX), (0, 0, f64::MAX)], &[1], &[1]),
        Code::InvalidArgument,
        "2 links of one pair",
    );
    is_about(
        new(&[], &[], &[1]),
        Code::InvalidArgument,
        "the source has 0 dimensions",
    );
    is_about(
        new(&[], &[1], &[1; 9]),
        Code::InvalidArgument,
        "the target has 9 dimensions",
    );
    is_about(
        new(&[], &[1 << 33], &[1]),
        Code::LimitExceeded,
        "more than 4294967296 points",
    );
    is_about(new(&[], &[u64::MAX, 2], &[1]), Code::LimitExceeded, "the source");
    let weights = coarse();
    let apply = |source: &[f64], rows, room| weights.apply(source, rows, &mut vec![0.0; room], ApplyOptions::default());
    is_about(apply(&[1.0], 0..3, 3), Code::InvalidArgument, "the field has 1 values");
    is_about(
        apply(&[1.0; 4], 0..4, 4),
        Code::InvalidArgument,
        "target points 0..4 of 3",
    );
    is_about(apply(&[1.0; 4], 0..3, 2), Code::InvalidArgument, "into 2 values");
    is_about(weights.sources_of(2..4), Code::InvalidArgument, "2..4 of 3");
    is_about(
        weights.conserved(&[1.0], ApplyOptions::default()),
        Code::InvalidArgument,
        "1 values",
    );
    let bare = new(&[(0, 0, 1.0)], &[1], &[1]).unwrap();
    is_about(
        bare.conserved(&[1.0], ApplyOptions::default()),
        Code::InvalidArgument,
        "areas of the source",
    );
    let areas = |areas: &[f64]| GridCells {
        areas: areas.to_vec(),
        ..GridCells::default()
    };
    is_about(
        bare.clone().with_cells(areas(&[1.0, 2.0]), GridCells::default()),
        Code::InvalidArgument,
        "the source has 1 points, and its areas 2",
    );
    is_about(
        bare.with_cells(GridCells::default(), areas(&[-1.0])),
        Code::InvalidArgument,
        "area 0 of the target is -1",
    );
}
