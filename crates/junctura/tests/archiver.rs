//! What an archiver leaves behind where it does not go on.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::time::Duration;

use junctura::{Archiver, ArchiverCounts, ArchiverOptions, Code, Error, OfferOptions, Pool, Retention};
use junctura_store::{Layout, Store};

const OTHER: &str =
    "{name: other, key: {dataset: [name], collocation: [], element: []}, attributes: {name: {type: string}}}";

fn store_of(pool: &Pool, is_wanted: impl Fn(&str) -> bool) -> Store {
    let mut schemas = pool.schemas().unwrap();
    schemas.retain(|schema| is_wanted(schema.name()));
    Store::create_url("memory:", &schemas, &Layout::default()).unwrap()
}

fn what_is_there() -> ArchiverOptions {
    ArchiverOptions {
        until_live: true,
        ..ArchiverOptions::default()
    }
}

fn archived(counts: ArchiverCounts) -> [u64; 2] {
    [counts.archived, counts.failed]
}

#[test]
fn what_one_could_not_archive_stays_for_the_next() {
    let pool = Pool::builder().schema("free").schema_yaml(OTHER).open().unwrap();
    let once = OfferOptions {
        schema: Some("other"),
        retention: Some(Retention::Released(1)),
        ..OfferOptions::default()
    };
    pool.offer_with(once, [("name", "a")], b"kept").unwrap();
    let (without, with) = (store_of(&pool, |name| name == "free"), store_of(&pool, |_| true));
    let archive = |store| {
        let mut archiver = Archiver::new(&pool, store, "", &what_is_there()).unwrap();
        // Nobody but the requirement keeps it from now on.
        drop(pool.demand("name=a", None).unwrap());
        pool.sync(None).unwrap();
        let outcome = archiver.run(&mut |_| Ok(()));
        (outcome.map_err(|error| error.code()), archived(archiver.counts()))
    };
    assert_eq!(archive(&without), (Err(Code::NotFound), [0, 1]));
    assert_eq!(pool.list("").unwrap().len(), 1);
    assert_eq!(archive(&with), (Ok(()), [1, 0]));
    assert!(pool.list("").unwrap().is_empty());
    assert_eq!(pool.retract("archive").unwrap_err().code(), Code::NotFound);
}

#[test]
fn what_ended_it_is_said_whatever_fails_afterwards() {
    let pool = Pool::builder().schema("free").open().unwrap();
    pool.offer([("name", "a")], b"").unwrap();
    let mut archiver = Archiver::new(&pool, &store_of(&pool, |_| true), "", &what_is_there()).unwrap();
    let outcome = archiver.run(&mut |_| {
        pool.close();
        Err(Error::new(Code::Interrupted, "archiver", "Ctrl-C"))
    });
    assert_eq!(outcome.unwrap_err().code(), Code::Interrupted);
}

#[test]
fn objects_may_be_held_for_as_long_as_anybody_can_say() {
    let pool = Pool::builder().schema("free").open().unwrap();
    let store = store_of(&pool, |_| true);
    let options = ArchiverOptions {
        flush_interval: Some(Duration::MAX),
        flush_every: Some(2),
        ..ArchiverOptions::default()
    };
    let archiver = Archiver::start(&pool, &store, "", &options).unwrap();
    for name in ["a", "b", "c"] {
        pool.offer([("name", name)], b"").unwrap();
    }
    assert_eq!(archived(archiver.stop().unwrap()), [3, 0]);
}
