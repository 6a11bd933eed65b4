//! Vectors that were made by other code, element by element: `../shared/vectors/vectors.json`, where it is.

#![allow(clippy::disallowed_methods, reason = "tests, and one file that has the vectors")]

use std::path::PathBuf;
use std::sync::Arc;

use crate::common::{GAP, each_element, judge, memories};
use junctura_layout::{Axis, Distribution, Layout, Order, Plan, PlanSide, Storage};
use serde_json::Value;

fn numbers(value: &Value) -> Vec<u64> {
    value
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one.as_u64().unwrap())
        .collect()
}

fn order(value: &Value) -> Order {
    if value == "F" { Order::F } else { Order::C }
}

fn layout(shape: &[u64], said: &Value) -> Arc<Layout> {
    let (grid, block) = (numbers(&said["grid"]), numbers(&said["block"]));
    let dealt = |(parts, block)| Axis::Cyclic {
        parts,
        block,
        offset: 0,
    };
    let axes = grid.into_iter().zip(block).map(dealt).collect();
    let ranks = order(&said["rank_order"]);
    let layout = Layout::new(shape, Distribution::Grid { axes, ranks }).unwrap();
    Arc::new(layout.stored(order(&said["data_order"]), Storage::Dense).unwrap())
}

#[test]
fn all_cases_agree() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/vectors/vectors.json");
    let Ok(text) = std::fs::read_to_string(path) else {
        println!("skipped: there are no shared vectors");
        return;
    };
    let all: Value = serde_json::from_str(&text).unwrap();
    let cases = all["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 42);
    for case in cases {
        let name = &case["name"];
        let shape = numbers(&case["shape"]);
        let (from, to) = (layout(&shape, &case["producer"]), layout(&shape, &case["consumer"]));
        for (layout, shapes) in [
            (&from, &case["producer_local_shapes"]),
            (&to, &case["consumer_local_shapes"]),
        ] {
            let told = (0..layout.ranks()).map(|rank| layout.locals(rank)[0].extents.clone());
            assert!(told.eq(shapes.as_array().unwrap().iter().map(numbers)), "{name}");
        }
        for rank in 0..from.ranks() {
            let plan = Plan::whole(&from, &to, PlanSide::From, rank).unwrap();
            let mut counts = vec![0; to.ranks() as usize];
            plan.partners()
                .iter()
                .for_each(|partner| counts[partner.rank as usize] = partner.elements);
            assert_eq!(counts, numbers(&case["counts"][rank as usize]), "{name}");
        }
        if case["full"] == true {
            full(case, &from, &to);
        }
    }
}

/// Those whose elements are all listed.
fn full(case: &Value, from: &Arc<Layout>, to: &Arc<Layout>) {
    let data = |name: &str| -> Vec<Vec<u64>> { case[name].as_array().unwrap().iter().map(numbers).collect() };
    let (produced, wanted) = (data("producer_data"), data("consumer_data"));
    let origin = vec![0; from.shape().len()];
    assert_eq!(memories(from, from.shape(), &origin), produced, "{}", case["name"]);
    judge(from, to, &origin);
    for rank in 0..to.ranks() {
        let plan = Plan::whole(from, to, PlanSide::To, rank).unwrap();
        let mut memory = vec![GAP; to.room(rank) as usize];
        for part in plan.parts() {
            each_element(&plan, part, |peer, theirs, mine| {
                memory[mine as usize] = produced[peer as usize][theirs as usize];
            });
        }
        assert_eq!(memory, wanted[rank as usize], "{}", case["name"]);
    }
}
