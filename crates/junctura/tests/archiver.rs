//! What an archiver leaves behind where it does not go on, and what it says of what it finds in the store.

use std::time::Duration;

use junctura::{
    Archiver, ArchiverCounts, ArchiverEvent, ArchiverOptions, Code, Error, EventKind, OfferOptions, Pool,
    RequireOptions, Retention,
};
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

/// Commits by object, and those that were told as flushed; where the pool says that the objects lie.
fn told_of(pool: &Pool, store: &Store) -> (Vec<(String, u64)>, Vec<u64>, Vec<String>) {
    let mut events = pool.subscribe("", &[EventKind::Archived]).unwrap();
    let (mut objects, mut flushed) = (Vec::new(), Vec::new());
    let mut archiver = Archiver::new(pool, store, "", &what_is_there()).unwrap();
    let outcome = archiver.run(&mut |event| {
        match event {
            ArchiverEvent::Archived { object, commit } => {
                objects.push((object.get("name").unwrap().to_owned(), *commit));
            }
            ArchiverEvent::Flushed { commit } => flushed.push(*commit),
            _ => {}
        }
        Ok(())
    });
    outcome.unwrap();
    pool.sync(None).unwrap();
    let mut locations = Vec::new();
    while let Some(event) = events.try_next().unwrap() {
        locations.extend(event.location);
    }
    (objects, flushed, locations)
}

#[test]
fn what_the_store_has_already_is_said_to_lie_in_its_own_commit() {
    let pool = Pool::builder().schema("free").open().unwrap();
    let store = store_of(&pool, |_| true);
    let mut writer = store.writer().unwrap();
    writer.archive([("name", "earlier")], b"").unwrap();
    writer.flush().unwrap();
    let until_archived = || OfferOptions {
        retention: Some("released_by:archive".parse().unwrap()),
        ..OfferOptions::default()
    };
    // Somebody archives it, and dies before he says so.
    let archives_and_dies = |name: &str| {
        let named = RequireOptions {
            name: Some("archive".to_owned()),
            ..RequireOptions::default()
        };
        let requirement = pool.require_with(&named, "").unwrap();
        pool.offer_with(until_archived(), [("name", name)], b"payload").unwrap();
        let object = requirement.demand(format!("name={name}").as_str(), None).unwrap();
        let mut writer = store.writer().unwrap();
        let attributes = object.attributes();
        writer
            .archive_version("free", attributes, &object, object.version())
            .unwrap();
        assert!(writer.flush().unwrap().commit > 1);
        object.give_back().unwrap();
    };
    archives_and_dies("a");
    writer.archive([("name", "between")], b"").unwrap();
    assert_eq!(writer.flush().unwrap().commit, 3);
    let (objects, flushed, locations) = told_of(&pool, &store);
    assert_eq!((objects, flushed), (vec![("a".to_owned(), 2)], vec![2]));
    assert!(locations[0].ends_with(" commit 2"), "{locations:?}");

    archives_and_dies("b");
    pool.offer_with(until_archived(), [("name", "new")], b"payload")
        .unwrap();
    let (mut objects, flushed, locations) = told_of(&pool, &store);
    objects.sort();
    assert_eq!(objects, [("b".to_owned(), 4), ("new".to_owned(), 5)]);
    assert_eq!((flushed, locations.len()), (vec![5], 2));
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
