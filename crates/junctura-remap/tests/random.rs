//! Random matrices and grids, judged by the definition.

#![allow(clippy::float_cmp, reason = "tests")]

use junctura_remap::{ApplyOptions, GridCells, NormalizeBy, WeightLink, Weights};
use proptest::prelude::*;

pub(crate) type Case = (u64, u64, Vec<WeightLink>);

pub(crate) fn cases() -> impl Strategy<Value = Case> {
    (1_u64..40, 1_u64..40).prop_flat_map(|(sources, targets)| {
        let link = (0..targets, 0..sources, -1.0..1.0_f64).prop_map(|(target, source, weight)| WeightLink {
            target,
            source,
            weight,
        });
        (Just(sources), Just(targets), prop::collection::vec(link, 0..200))
    })
}

/// Values, of which some are missing.
pub(crate) fn fields(length: u64) -> impl Strategy<Value = Vec<f64>> {
    let value = prop_oneof![9 => -1e3..1e3_f64, 1 => Just(f64::NAN)];
    prop::collection::vec(value, length as usize)
}

fn with_field() -> impl Strategy<Value = (Case, Vec<f64>)> {
    cases().prop_flat_map(|case| (Just(case.clone()), fields(case.0)))
}

pub(crate) fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|value| value.to_bits()).collect()
}

/// Matrices whose target points all have as many links, and fields for them.
fn uniform() -> impl Strategy<Value = (Case, Vec<f64>)> {
    let sizes = (6_u64..30, 1_usize..20, 1_usize..7, any::<bool>());
    let rows = sizes.prop_flat_map(|(sources, targets, links, is_one_weight)| {
        let all: Vec<u64> = (0..sources).collect();
        let row = prop::sample::subsequence(all, links);
        let weights = prop::collection::vec(0.1..1.0_f64, if is_one_weight { 1 } else { 7 });
        (prop::collection::vec(row, targets), weights, fields(sources))
    });
    rows.prop_map(|(rows, weights, field)| {
        let targets = rows.len() as u64;
        let links = (0..)
            .zip(rows)
            .flat_map(|(target, row)| row.into_iter().map(move |source| (target, source)));
        let links = links.zip(weights.iter().cycle());
        let link = |((target, source), &weight): ((u64, u64), _)| WeightLink { target, source, weight };
        ((field.len() as u64, targets, links.map(link).collect()), field)
    })
}

fn split(weights: &Weights, field: &[f64], parts: usize, how: ApplyOptions) -> Vec<f64> {
    let mut all = vec![0.0; weights.targets()];
    for part in 0..parts {
        let rows = all.len() * part / parts..all.len() * (part + 1) / parts;
        weights.apply(field, rows.clone(), &mut all[rows], how).unwrap();
    }
    all
}

pub(crate) const NORMS: [NormalizeBy; 3] = [NormalizeBy::Whole, NormalizeBy::Destination, NormalizeBy::Fraction];

proptest! {
    #[test]
    fn a_field_is_what_the_definition_says(((sources, targets, links), field) in with_field()) {
        let weights = Weights::new(&links, &[sources], &[targets]).unwrap();
        for norm in NORMS {
            let found = split(&weights, &field, 1, ApplyOptions { norm, missing: None });
            for (row, found) in found.iter().enumerate() {
                let mut dense = vec![0.0; sources as usize];
                links.iter().filter(|link| link.target == row as u64).for_each(|link| {
                    dense[link.source as usize] += link.weight;
                });
                let there: Vec<_> = dense.iter().zip(&field).filter(|(part, value)| **part != 0.0 && !value.is_nan()).collect();
                let lost = dense.iter().zip(&field).any(|(part, value)| *part != 0.0 && value.is_nan());
                let sum: f64 = there.iter().map(|(part, value)| *part * *value).sum();
                let size: f64 = there.iter().map(|(part, value)| (*part * *value).abs()).sum();
                let parts: f64 = there.iter().map(|(part, _)| *part).sum();
                if there.is_empty() || (norm == NormalizeBy::Whole && lost) {
                    prop_assert!(found.is_nan());
                } else if norm == NormalizeBy::Fraction {
                    prop_assert!((found * parts - sum).abs() <= 1e-9 * (1.0 + size));
                } else {
                    prop_assert!((found - sum).abs() <= 1e-9 * (1.0 + size));
                }
            }
        }
    }

    #[test]
    fn uniform_target_points_have_the_bits_of_others(((sources, targets, links), field) in uniform(), parts in 1_usize..5) {
        let uniform = Weights::new(&links, &[sources], &[targets]).unwrap();
        // One more target point, which has no links.
        let others = Weights::new(&links, &[sources], &[targets + 1]).unwrap();
        for norm in NORMS {
            let how = ApplyOptions { norm, missing: None };
            let expected = split(&others, &field, 1, how);
            let found = split(&uniform, &field, parts, how);
            prop_assert_eq!(bits(&found), bits(&expected[..targets as usize]));
        }
    }

    #[test]
    fn bits_do_not_depend_on_how_the_target_is_split(
        ((sources, targets, links), field) in with_field(),
        parts in 1_usize..9,
        missing in prop_oneof![Just(None), Just(Some(0.0))],
    ) {
        let weights = Weights::new(&links, &[sources], &[targets]).unwrap();
        for norm in NORMS {
            let how = ApplyOptions { norm, missing };
            let whole = bits(&split(&weights, &field, 1, how));
            for parts in [2, 3, 7, parts] {
                prop_assert_eq!(&whole, &bits(&split(&weights, &field, parts, how)));
            }
        }
    }

    #[test]
    fn the_order_of_links_does_not_matter((sources, targets, links) in cases(), turn in 0_usize..200) {
        let mut turned = links.clone();
        turned.reverse();
        if let Some(by) = turn.checked_rem(turned.len()) {
            turned.rotate_left(by);
        }
        let weights = Weights::new(&links, &[sources], &[targets]).unwrap();
        prop_assert_eq!(&weights, &Weights::new(&turned, &[sources], &[targets]).unwrap());
        let again: Vec<WeightLink> = weights.links().collect();
        prop_assert_eq!(&weights, &Weights::new(&again, &[sources], &[targets]).unwrap());
    }

    #[test]
    fn a_part_gives_the_bits_of_the_whole(((sources, targets, links), field) in with_field(), cut in 0_usize..40) {
        let weights = Weights::new(&links, &[sources], &[targets]).unwrap();
        let whole = split(&weights, &field, 1, ApplyOptions::default());
        let cut = cut.min(whole.len());
        for rows in [0..cut, cut..whole.len()] {
            let (part, stretches) = weights.part(rows.clone()).unwrap();
            for pair in stretches.windows(2) {
                prop_assert!(pair[0].end < pair[1].start);
            }
            let taken: Vec<f64> = stretches
                .iter()
                .flat_map(|stretch| field[stretch.start as usize..stretch.end as usize].to_vec())
                .collect();
            let mut needed: Vec<u64> = links_of(&weights, &rows);
            needed.sort_unstable();
            needed.dedup();
            prop_assert_eq!(needed, stretches.into_iter().flatten().collect::<Vec<_>>());
            prop_assert_eq!(bits(&split(&part, &taken, 1, ApplyOptions::default())), bits(&whole[rows]));
        }
    }

    #[test]
    fn overlaps_conserve(nx in 2_u64..30, ny in 2_u64..20, mx in 2_u64..30, my in 2_u64..20, gone in 0_usize..40) {
        let weights = overlaps((nx, ny), (mx, my));
        let mut field = smooth(nx, ny);
        for norm in NORMS {
            let kept = weights.conserved(&field, ApplyOptions { norm, missing: None }).unwrap();
            prop_assert!(kept.relative_error < 1e-12, "{:?}", kept);
        }
        let ones = split(&weights, &vec![1.0; field.len()], 1, ApplyOptions::default());
        prop_assert!(ones.iter().all(|one| (one - 1.0).abs() < 1e-12));
        for at in 0..gone.min(field.len()) {
            field[at] = f64::NAN;
        }
        for norm in [NormalizeBy::Destination, NormalizeBy::Fraction] {
            let kept = weights.conserved(&field, ApplyOptions { norm, missing: None }).unwrap();
            prop_assert!(kept.relative_error < 1e-12, "{:?}", kept);
        }
    }
}

fn links_of(weights: &Weights, rows: &std::ops::Range<usize>) -> Vec<u64> {
    let within = |link: &WeightLink| rows.contains(&(link.target as usize));
    weights.links().filter(within).map(|link| link.source).collect()
}

/// Where cells of a lon-lat grid from pole to pole begin and end: longitudes, and sines of latitudes.
fn edges(nx: u64, ny: u64) -> (Vec<f64>, Vec<f64>) {
    let lon = (0..=nx).map(|at| std::f64::consts::TAU * at as f64 / nx as f64);
    let lat = (0..=ny).map(|at| (std::f64::consts::PI * (at as f64 / ny as f64 - 0.5)).sin());
    (lon.collect(), lat.collect())
}

fn smooth(nx: u64, ny: u64) -> Vec<f64> {
    let points = (0..ny).flat_map(|y| (0..nx).map(move |x| (x as f64 + 0.5, y as f64 + 0.5)));
    points
        .map(|(x, y)| {
            let lon = std::f64::consts::TAU * x / nx as f64;
            let lat = std::f64::consts::PI * (y / ny as f64 - 0.5);
            2.0 + lat.cos().powi(2) * (2.0 * lon).cos()
        })
        .collect()
}

/// First-order conservative weights between two such grids: shares of the target's cells.
fn overlaps(from: (u64, u64), to: (u64, u64)) -> Weights {
    let (source, target) = (edges(from.0, from.1), edges(to.0, to.1));
    let shared = |one: &[f64], other: &[f64], at: usize, of: usize| {
        (one[at + 1].min(other[of + 1]) - one[at].max(other[of])).max(0.0)
    };
    let area = |(lon, lat): &(Vec<f64>, Vec<f64>), x: usize, y: usize| (lon[x + 1] - lon[x]) * (lat[y + 1] - lat[y]);
    let mut links = Vec::new();
    for (ty, tx, sy, sx) in pairs(from, to) {
        let overlap = shared(&target.0, &source.0, tx, sx) * shared(&target.1, &source.1, ty, sy);
        links.push(WeightLink {
            target: ty as u64 * to.0 + tx as u64,
            source: sy as u64 * from.0 + sx as u64,
            weight: overlap / area(&target, tx, ty),
        });
    }
    let cells = |edges: &(Vec<f64>, Vec<f64>), (nx, ny): (u64, u64)| GridCells {
        areas: (0..ny as usize)
            .flat_map(|y| (0..nx as usize).map(move |x| (x, y)))
            .map(|(x, y)| area(edges, x, y))
            .collect(),
        ..GridCells::default()
    };
    Weights::new(&links, &[from.1, from.0], &[to.1, to.0])
        .unwrap()
        .with_cells(cells(&source, from), cells(&target, to))
        .unwrap()
}

fn pairs(from: (u64, u64), to: (u64, u64)) -> impl Iterator<Item = (usize, usize, usize, usize)> {
    let all = |nx: u64, ny: u64| (0..ny as usize).flat_map(move |y| (0..nx as usize).map(move |x| (y, x)));
    all(to.0, to.1).flat_map(move |(ty, tx)| all(from.0, from.1).map(move |(sy, sx)| (ty, tx, sy, sx)))
}
