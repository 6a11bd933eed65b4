//! A claim of a layout costs no memory: plans and the copies prepared from them, under limits of bytes and steps for each call.

#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "../../../../fuzz/src/limits.rs"]
mod limits;

use std::sync::Arc;

use junctura_copy::{Gather, Pack, Unpack};
use junctura_layout::{ELEMENTS_MAX, Element, ElementKind, Layout, Plan, PlanSide};
use limits::{Limits, cost_of};

/// Runs that a plan may list here.
const LISTED_MAX: usize = 1 << 14;
/// One call: some hundred bytes for each run that is listed, and what is made of runs that repeat.
const LIMITS: Limits = Limits {
    held_bytes: 64 << 20,
    held_bytes_each: 0,
    steps: 1 << 20,
    steps_each: 0,
};

/// Layouts with the largest claims that the format allows. Each pair is a source and a destination.
const CLAIMS: [(&str, &str); 16] = [
    // More bytes than any machine has, in one run, which a fast way could cut into many.
    ("shape=200000000000000000", "shape=200000000000000000"),
    ("shape=200000000000000000 grid=2", "shape=200000000000000000"),
    ("shape=288230376151711744", "shape=288230376151711744"),
    // Rows become columns.
    ("shape=536870912x268435456", "shape=536870912x268435456 order=F"),
    ("shape=3x70000000000000000", "shape=3x70000000000000000 order=F"),
    (
        "shape=70000000000000000x3 grid=2x1",
        "shape=70000000000000000x3 order=F",
    ),
    // The largest number of ranks.
    ("shape=4294967296 grid=4294967296", "shape=4294967296"),
    ("shape=65536x65536 grid=65536x65536", "shape=65536x65536"),
    ("shape=16777216 grid=16777216", "shape=16777216 grid=2"),
    // Small blocks, dealt out again and again.
    ("shape=200000000000000000 grid=2 block=1", "shape=200000000000000000"),
    (
        "shape=200000000000000000 grid=2 block=1",
        "shape=200000000000000000 grid=3 block=7",
    ),
    (
        "shape=100000000000000007 grid=4099 block=1",
        "shape=100000000000000007 grid=4093 block=1",
    ),
    (
        "shape=100000000000000007 grid=3 block=5 storage=packed",
        "shape=100000000000000007 grid=2 block=3 storage=packed",
    ),
    // Packed blocks that lie behind each other join.
    (
        "shape=100000000000000007 block=5 storage=packed",
        "shape=99999999999999 grid=16777216",
    ),
    (
        "shape=100000000000000007 block=5 storage=packed",
        "shape=100000000000000007",
    ),
    (
        "shape=1000000007x100000007 grid=3x2 block=5x7",
        "shape=1000000007x100000007 grid=2x5 block=3x2 order=F",
    ),
];

#[test]
fn claims_cost_no_memory() {
    let elements: [(Element, Element); 3] = [
        (ElementKind::U8.into(), ElementKind::U8.into()),
        (ElementKind::F64.into(), ElementKind::F64.into()),
        (ElementKind::F64.into(), ElementKind::F32.into()),
    ];
    for (from, to) in CLAIMS {
        let read = |text: &str| {
            text.parse::<Layout>()
                .map(Arc::new)
                .map_err(|error| format!("{text}: {error}"))
        };
        let (from, to) = (read(from).unwrap(), read(to).unwrap());
        assert!(from.shape().iter().product::<u64>() <= ELEMENTS_MAX);
        for elements in elements {
            for side in [PlanSide::To, PlanSide::From] {
                make_ready(&from, &to, side, elements);
            }
        }
    }
}

/// All steps of a reader and a gate with a layout, up to the first access to memory.
fn make_ready(from: &Arc<Layout>, to: &Arc<Layout>, side: PlanSide, (lies, wanted): (Element, Element)) {
    let origin = vec![0; to.shape().len()];
    let plan = LIMITS.hold(0, || Plan::limited(from, to, &origin, side, 0, LISTED_MAX));
    let Ok(plan) = plan else { return };
    let peers: u64 = plan.parts()[0]
        .runs
        .iter()
        .map(|runs| runs.peers().len() as u64)
        .product();
    if peers > LISTED_MAX as u64 {
        return;
    }
    if side == PlanSide::To {
        let gather = LIMITS.hold(0, || Gather::new(&plan, lies, wanted).unwrap());
        let pieces = vec![&[7; 8][..]; gather.peers().len()];
        assert!(LIMITS.hold(0, || gather.run(&pieces, &mut [0; 8], 2)).is_err());
    }
    let peer = plan.partners().first().map_or(0, |partner| partner.rank);
    LIMITS.hold(0, || match side {
        PlanSide::To => drop(Unpack::new(&plan, peer, lies, wanted).unwrap()),
        PlanSide::From => drop(Pack::new(&plan, peer, lies, wanted).unwrap()),
    });
}

/// A text of slabs is as long as they are many: what acts on them costs no more than their number, in plans and in copies.
#[test]
fn slabs_cost_as_much_as_they_are_many() {
    let costs = [1 << 10, 1 << 12].map(|count: u64| {
        let slabs: Vec<String> = (0..count).map(|at| format!("{at}:{}", at + 1)).collect();
        let read = |text: String| Arc::new(text.parse::<Layout>().unwrap());
        let slabs = read(format!("shape={count} slabs={}", slabs.join(",")));
        let whole = read(format!("shape={count}"));
        let (u8, steps) = (Element::from(ElementKind::U8), |call: &dyn Fn()| cost_of(call).1.steps);
        let gives = Plan::whole(&whole, &slabs, PlanSide::From, 0).unwrap();
        let takes = Plan::whole(&slabs, &whole, PlanSide::To, 0).unwrap();
        [
            steps(&|| drop(Plan::whole(&slabs, &whole, PlanSide::To, 0).unwrap())),
            steps(&|| drop(Gather::new(&takes, u8, u8).unwrap())),
            steps(&|| drop(Unpack::new(&takes, 0, u8, u8).unwrap())),
            steps(&|| drop(Pack::new(&gives, 0, u8, u8).unwrap())),
        ]
    });
    for (few, many) in costs[0].into_iter().zip(costs[1]) {
        assert!(many <= 5 * few, "{costs:?}");
    }
}

/// Layouts of slabs, where each run has a part of its own, and of grids, where one part lists them all.
#[test]
fn what_is_prepared_states_the_bytes_that_it_takes() {
    let read = |text: String| Arc::new(text.parse::<Layout>().unwrap());
    let boxes = |of: &str| vec![of; 4096].join(",");
    let cuts: Vec<String> = (0..4096).map(|at| format!("{}:{}", 2 * at, 2 * at + 1)).collect();
    let cases = [
        (
            read("shape=8192".into()),
            read(format!("shape=8192 slabs={}", cuts.join(","))),
        ),
        (read("shape=8".into()), read(format!("shape=8 slabs={}", boxes("0:1")))),
        (
            read("shape=8192 grid=1 block=2".into()),
            read("shape=8192 grid=2 block=1".into()),
        ),
        (
            read("shape=8x8x8x8".into()),
            read(format!("shape=8x8x8x8 slabs={}", boxes("0:1x0:2x0:1x0:3"))),
        ),
    ];
    for (from, to) in cases {
        let origin = vec![0; to.shape().len()];
        let (plan, planned) =
            cost_of(|| Plan::with_peer(&from, &to, &origin, PlanSide::From, (0, 0), 1 << 20).unwrap());
        let u8 = Element::from(ElementKind::U8);
        let (pack, cost) = cost_of(|| Pack::new(&plan, 0, u8, u8).unwrap());
        let stated = pack.bytes();
        assert!(
            (cost.kept_bytes..=cost.kept_bytes + 1000).contains(&stated),
            "{stated}, {cost:?}"
        );
        let each = (planned.held_bytes + cost.held_bytes) / plan.listed();
        assert!(
            each < 1000 && (cost.held_bytes < 2 * cost.kept_bytes),
            "{planned:?}, {cost:?}"
        );
    }
}
