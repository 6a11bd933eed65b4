//! A claim of a layout costs no memory: plans and the copies prepared from them, under a limit of bytes for each call.

#![allow(clippy::unwrap_used, reason = "tests")]
#![allow(unsafe_code, reason = "an allocator that counts")]

mod allocations;

use std::sync::Arc;

use allocations::{Counting, peak_of};
use junctura_copy::{Gather, Pack, Unpack};
use junctura_layout::{ELEMENTS_MAX, Element, Kind, Layout, Plan, Side};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Runs that a plan may list here.
const LISTED_MAX: usize = 1 << 14;
/// Bytes for one call: some hundred for each run that is listed, and what is made of runs that repeat.
const BYTES_MAX: usize = 64 << 20;

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
        (Kind::U8.into(), Kind::U8.into()),
        (Kind::F64.into(), Kind::F64.into()),
        (Kind::F64.into(), Kind::F32.into()),
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
            for side in [Side::To, Side::From] {
                make_ready(&from, &to, side, elements);
            }
        }
    }
}

/// All steps of a reader and a gate with a layout, up to the first access to memory.
fn make_ready(from: &Arc<Layout>, to: &Arc<Layout>, side: Side, (lies, wanted): (Element, Element)) {
    let within = |what: &str, bytes: usize| assert!(bytes <= BYTES_MAX, "{what} of {from} to {to}: {bytes} bytes");
    let origin = vec![0; to.shape().len()];
    let (plan, bytes) = peak_of(|| Plan::limited(from, to, &origin, side, 0, LISTED_MAX));
    within("a plan", bytes);
    let Ok(plan) = plan else { return };
    let peers: u64 = plan.parts()[0]
        .runs
        .iter()
        .map(|runs| runs.peers().len() as u64)
        .product();
    if peers > LISTED_MAX as u64 {
        return;
    }
    if side == Side::To {
        let (gather, bytes) = peak_of(|| Gather::new(&plan, lies, wanted));
        within("a gather", bytes);
        let gather = gather.unwrap();
        let (refused, bytes) = peak_of(|| gather.run(&vec![&[7; 8][..]; gather.peers().len()], &mut [0; 8], 2));
        assert!(refused.is_err());
        within("a run of a gather", bytes);
    }
    let peer = plan.partners().first().map_or(0, |partner| partner.rank);
    let bytes = match side {
        Side::To => peak_of(|| Unpack::new(&plan, peer, lies, wanted).unwrap()).1,
        Side::From => peak_of(|| Pack::new(&plan, peer, lies, wanted).unwrap()).1,
    };
    within("a message", bytes);
}
