//! The head of an array costs what exists, not what it claims: takes under limits of bytes and steps for each call.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, and its helpers too")]

#[path = "../../../../fuzz/src/limits.rs"]
mod limits;

use std::sync::Arc;

use junctura::{ArrayPart, BundleOptions, Code, DemandedArray, Layout, OfferOptions, Pool, WholeArray};
use limits::Limits;

/// One call.
const LIMITS: Limits = Limits {
    held_bytes: 1 << 20,
    held_bytes_each: 0,
    steps: 20_000,
    steps_each: 0,
};

/// Heads that claim many ranks, small blocks or many elements.
const CLAIMS: [&str; 6] = [
    "shape=16777216 grid=16777216",
    "shape=4294967296 grid=4294967296",
    "shape=65536x65536 grid=65536x65536",
    "shape=200000000000000000 grid=3 block=1",
    "shape=500000000x400000000 grid=3x2 order=F",
    "shape=100000000000000000 cuts=0,1,2,50000000000000000,100000000000000000",
];

fn head(layout: &str) -> String {
    format!("junctura-array 1\ndtype=<f8\n{layout}\n")
}

/// Takes the first rank's part, and the array as one object.
fn refusals(pool: &Pool) -> Vec<Code> {
    let array = pool.demand_array("name=claim", None).unwrap();
    let shape = array.layout().shape().to_vec();
    let mut refusals = Vec::new();
    for wanted in [Layout::one(&shape).unwrap(), two_ranks(&shape)] {
        let wanted = Arc::new(wanted);
        refusals.push(refusal(|| array.take(&ArrayPart::of(&wanted, 0))));
    }
    // A window of a few elements.
    let window = Arc::new(Layout::one(&vec![2; shape.len()]).unwrap());
    refusals.push(refusal(|| array.take(&ArrayPart::of(&window, 0))));
    drop::<DemandedArray>(array);
    refusals.push(refusal(|| {
        WholeArray::of(pool, pool.demand("name=claim", None).unwrap())
    }));
    refusals
}

fn refusal<T>(call: impl FnOnce() -> junctura::Result<T>) -> Code {
    LIMITS.hold(0, call).map(drop).unwrap_err().code()
}

/// The first dimension over two ranks, the last one in steps of one element.
fn two_ranks(shape: &[u64]) -> Layout {
    let extents: Vec<String> = shape.iter().map(ToString::to_string).collect();
    let ranks: Vec<&str> = (0..shape.len()).map(|at| if at == 0 { "2" } else { "1" }).collect();
    format!("shape={} grid={} order=F", extents.join("x"), ranks.join("x"))
        .parse()
        .unwrap()
}

/// The pieces of ranks 0 and 1 alone exist, and are too short.
#[test]
fn a_claim_without_its_pieces_costs_no_memory() {
    for layout in CLAIMS {
        let pool = Pool::builder().schema("free").open().unwrap();
        pool.offer([("name", "claim")], head(layout).as_bytes()).unwrap();
        let piece = OfferOptions {
            schema: Some("piece"),
            ..OfferOptions::default()
        };
        for rank in ["0", "1"] {
            let named = [("piece_of", "free{space=default}{}{name=claim}"), ("rank", rank)];
            pool.offer_with(named, &[7; 8], piece.clone()).unwrap();
        }
        for code in refusals(&pool) {
            assert!(
                matches!(code, Code::Expired | Code::InvalidArgument),
                "{layout}: {code}"
            );
        }
    }
}

/// The server has counted the members of the bundle: no piece is looked up.
#[test]
fn a_claim_of_more_pieces_than_its_bundle_has_is_refused() {
    let more_claims = ["shape=4 grid=4", "shape=1024 grid=1024", "shape=6x6 cuts=0,3,6x0,2,4,6"];
    for layout in CLAIMS.into_iter().chain(more_claims) {
        let pool = Pool::builder().schema("free").open().unwrap();
        let options = BundleOptions {
            members: Some(2),
            ..BundleOptions::default()
        };
        let bundle = pool.open_bundle("claimed", [("", ""); 0], options).unwrap();
        bundle.offer([("name", "claim")], head(layout).as_bytes()).unwrap();
        bundle.offer([("name", "piece")], b"12345678").unwrap();
        assert_eq!(refusals(&pool), [Code::Corrupt; 4], "{layout}");
    }
}
