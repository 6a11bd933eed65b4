//! Typical mistakes in Rust: prints the name of each call, and the error that it returns.
//!
//! `tests/mistakes/rust.yaml` has what each message must contain. The first argument is the address of a pool.

use std::fmt::Debug;
use std::time::Duration;

use junctura::{FollowOptions, Layout, OfferOptions, Pool, Result};

const BUDGET: u64 = 1 << 20;

fn main() -> Result<()> {
    let url = std::env::args().nth(1).unwrap_or_default();
    let free = Pool::builder().schema("free").budget_bytes(BUDGET).open()?;
    openings();
    keys(&free)?;
    demands(&free);
    layouts();
    tell(
        "connect_with_other_schema",
        Pool::builder().url(url).schema_yaml(OTHER).open(),
    );
    Ok(())
}

/// A schema that has the name of a built-in one.
const OTHER: &str =
    "{name: free, key: {dataset: [], collocation: [], element: [name]}, attributes: {name: {type: integer}}}";

fn openings() {
    tell("connect_without_scheme", Pool::connect("model"));
    tell("connect_to_nobody", Pool::connect("unix:modle"));
    tell("unknown_schema", Pool::builder().schema("marss").open());
    tell("missing_schema_file", Pool::builder().schema_file("my.yaml").open());
    tell(
        "invalid_schema",
        Pool::builder().schema_yaml("name: x\nkey: 3\n").open(),
    );
    tell("store_without_a_store", Pool::builder().store("plain").open());
}

fn keys(free: &Pool) -> Result<()> {
    free.offer([("name", "a")], b"1")?;
    tell("offer_twice", free.offer([("name", "a")], b"2"));
    tell("offer_without_key", free.offer([("unit", "K")], b"1"));
    let options = OfferOptions {
        schema: Some("mars"),
        ..OfferOptions::default()
    };
    tell("offer_in_other_schema", free.offer_with([("name", "b")], b"1", options));
    tell("allocate_too_much", free.allocate(3 << 20));
    Ok(())
}

fn demands(free: &Pool) {
    tell("demand_nothing", free.demand("name=none", Some(Duration::ZERO)));
    tell(
        "demand_in_vain",
        free.demand("name=none", Some(Duration::from_millis(1))),
    );
    tell("demand_invalid", free.demand("name=", None));
    let options = FollowOptions {
        join: Some("workers".to_owned()),
        ..FollowOptions::default()
    };
    tell("join_no_group", free.follow_with("", options));
}

fn layouts() {
    tell("layout_without_grid", "shape=4x4 grid=3x".parse::<Layout>());
}

/// Prints the error of a call, in one line.
fn tell<T: Debug>(call: &str, outcome: Result<T>) {
    match outcome {
        Ok(_) => println!("{call}\tnothing is returned"),
        Err(error) => println!("{call}\t{}", error.to_string().replace('\n', "\\n")),
    }
}
