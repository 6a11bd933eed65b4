//! What an archiver leaves behind where it does not go on, and what it says of what it finds in the store.

use std::time::Duration;

use junctura::{
    Archiver, ArchiverCounts, ArchiverEvent, ArchiverOptions, ArrayPiece, Code, DemandOptions, Error, EventKind,
    OfferOptions, Pool, RequireOptions, Retention,
};
use junctura_store::{Store, StoreLayout};

const OTHER: &str =
    "{name: other, key: {dataset: [name], collocation: [], element: []}, attributes: {name: {type: string}}}";

fn store_of(pool: &Pool, is_wanted: impl Fn(&str) -> bool) -> Store {
    let mut schemas = pool.schemas().unwrap();
    schemas.retain(|schema| is_wanted(schema.name()));
    Store::create_url("memory:", &schemas, &StoreLayout::default()).unwrap()
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
    pool.offer_with([("name", "a")], b"kept", once).unwrap();
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
        let requirement = pool.require_with("", named).unwrap();
        pool.offer_with([("name", name)], b"payload", until_archived()).unwrap();
        let object = requirement
            .demand(format!("name={name}").as_str(), DemandOptions::default())
            .unwrap();
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
    pool.offer_with([("name", "new")], b"payload", until_archived())
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

/// No array: one has a head without pieces, one with a piece of another length.
fn offer_unarchivable(pool: &Pool, name: &str) {
    let head = b"junctura-array 1\ndtype=<f8\nshape=200000000000000000\n";
    pool.offer([("name", name)], head).unwrap();
}

fn names_of(store: &Store) -> Vec<String> {
    let listing = store.snapshot().unwrap().list("").unwrap();
    let name = listing.schemas()[0].find("name").unwrap();
    let mut names: Vec<String> = listing
        .iter()
        .map(|object| object.value(name).unwrap().to_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn what_cannot_be_archived_keeps_nothing_else_from_it() {
    let pool = Pool::builder().schema("free").schema_yaml(OTHER).open().unwrap();
    let store = store_of(&pool, |name| name == "free");
    let other = || OfferOptions {
        schema: Some("other"),
        ..OfferOptions::default()
    };
    pool.offer_with([("name", "of no schema")], b"", other()).unwrap();
    offer_unarchivable(&pool, "bad");
    pool.offer([("name", "good")], b"payload").unwrap();
    // What begins like an array and is none is any bytes.
    let text = b"junctura-array 1\nis how such files begin\n";
    pool.offer([("name", "text")], text).unwrap();
    for round in 0..2 {
        let mut told = Vec::new();
        let mut archiver = Archiver::new(&pool, &store, "", &what_is_there()).unwrap();
        let outcome = archiver.run(&mut |event| {
            if let ArchiverEvent::Unarchived { object, error } = event {
                told.push((object.get("name").unwrap().to_owned(), error.code()));
            }
            Ok(())
        });
        told.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        let expected = [("bad", Code::Expired), ("of no schema", Code::NotFound)];
        assert_eq!(told, expected.map(|(name, code)| (name.to_owned(), code)));
        assert!(matches!(outcome.unwrap_err().code(), Code::Expired | Code::NotFound));
        assert_eq!(archived(archiver.counts()), [if round == 0 { 2 } else { 1 }, 2]);
        let all = ["good", "later", "text"];
        let there = if round == 0 { vec!["good", "text"] } else { all.to_vec() };
        assert_eq!(names_of(&store), there);
        if round == 0 {
            pool.offer([("name", "later")], b"").unwrap();
        }
    }
    let listing = store.snapshot().unwrap().list("name=text").unwrap();
    assert_eq!(listing.get(0).unwrap().read().unwrap(), text);
    // The requirement stands, and is owed both.
    assert_eq!(pool.retract("archive").unwrap(), 2);
}

/// Each of them takes up a place of the window until the archiver ends.
#[test]
fn more_may_be_set_aside_than_are_held_at_once() {
    let pool = Pool::builder().schema("free").open().unwrap();
    let store = store_of(&pool, |_| true);
    for window in [1, 3, 4] {
        let options = |until_live| ArchiverOptions {
            requirement: format!("window{window}"),
            window,
            until_live,
            ..ArchiverOptions::default()
        };
        for number in 0..10 {
            offer_unarchivable(&pool, &format!("bad{window}.{number}"));
            pool.offer([("name", format!("good{window}.{number}").as_str())], b"")
                .unwrap();
        }
        let selector = format!("name~\"^(bad|good){window}\"");
        let mut archiver = Archiver::new(&pool, &store, &selector, &options(true)).unwrap();
        assert!(archiver.run(&mut |_| Ok(())).is_err());
        assert_eq!(archived(archiver.counts()), [10, 10]);

        let live = Archiver::start(&pool, &store, &selector, &options(false)).unwrap();
        for number in 10..20 {
            offer_unarchivable(&pool, &format!("bad{window}.{number}"));
            pool.offer([("name", format!("good{window}.{number}").as_str())], b"")
                .unwrap();
        }
        assert_eq!(live.stop().unwrap_err().code(), Code::Expired);
        assert_eq!(archived(live.counts()), [10, 20], "a window of {window}");
        let good = names_of(&store)
            .iter()
            .filter(|name| name.starts_with(&format!("good{window}")))
            .count();
        assert_eq!(good, 20);
    }
}

/// An object may have so many.
const ATTRIBUTES_MAX: usize = 128;

/// As one object, an array has two attributes more.
#[test]
fn an_array_with_too_many_attributes_is_set_aside() {
    let pool = Pool::builder().schema("free").open().unwrap();
    let store = store_of(&pool, |_| true);
    let names: Vec<String> = (0..ATTRIBUTES_MAX).map(|at| format!("n{at}")).collect();
    let attributes = |count: usize| {
        let more = names[..count].iter().map(|name| (name.as_str(), "v"));
        more.chain([("name", if count == 1 { "good" } else { "bad" })])
    };
    let layout = std::sync::Arc::new("shape=3".parse().unwrap());
    for count in [1, ATTRIBUTES_MAX - 2] {
        let piece = ArrayPiece::new(&layout, "u1".parse().unwrap(), 0);
        pool.offer_piece(&piece, attributes(count), &[1, 2, 3]).unwrap();
    }
    let mut archiver = Archiver::new(&pool, &store, "", &what_is_there()).unwrap();
    assert_eq!(archiver.run(&mut |_| Ok(())).unwrap_err().code(), Code::LimitExceeded);
    assert_eq!(archived(archiver.counts()), [1, 1]);
    assert_eq!(names_of(&store), ["good"]);
}

/// A schema of one key attribute, with others as they are given.
fn schema_with(others: &str) -> String {
    format!(
        "{{name: cells, key: {{dataset: [name], collocation: [], element: []}}, \
         attributes: {{name: {{type: string}}, {others}}}}}"
    )
}

#[test]
fn records_are_those_of_the_store_also_where_it_orders_other_attributes() {
    let same = "count: {type: integer}, unit: {type: string}";
    let other = "unit: {type: string}, count: {type: integer}";
    let pool = Pool::builder().schema_yaml(schema_with(same)).open().unwrap();
    let options = || OfferOptions {
        schema: Some("cells"),
        ..OfferOptions::default()
    };
    let given = [("name", "a"), ("count", "7"), ("unit", "K, of \"air\"")];
    pool.offer_with(given, b"payload", options()).unwrap();
    pool.offer_with([("name", "b")], b"", options()).unwrap();
    let listed = |theirs: &str| {
        let with_theirs = Pool::builder().schema_yaml(schema_with(theirs)).open().unwrap();
        let store = store_of(&with_theirs, |_| true);
        let terms = ArchiverOptions {
            requirement: theirs[..4].to_owned(),
            ..what_is_there()
        };
        let mut archiver = Archiver::new(&pool, &store, "", &terms).unwrap();
        archiver.run(&mut |_| Ok(())).unwrap();
        assert_eq!(archived(archiver.counts()), [2, 0]);
        let listing = store.snapshot().unwrap().list("").unwrap();
        let shown = |row: junctura_store::StoredObject<'_>| {
            let record = row.record();
            let mut attributes: Vec<_> = row
                .schema()
                .attributes_of(record.as_ref())
                .map(|(name, value)| format!("{name}={value}"))
                .collect();
            attributes.sort();
            (row.key(), attributes)
        };
        let mut rows: Vec<_> = listing.iter().map(shown).collect();
        rows.sort();
        format!("{rows:?}")
    };
    assert_eq!(listed(same), listed(other));
    assert!(listed(other).contains("air"));
}
