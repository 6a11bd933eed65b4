//! A listing as columns, by its numbers, and parts of objects: all say what the objects say one by one.

use std::sync::Arc;

use junctura_model::{AttrId, Schema};
use junctura_store::{Listing, RetentionAges, Store};

/// Seven commits of two schemas; of those of one key the last masks the others.
fn filled(folder: &tempfile::TempDir, schemas: &[&str]) -> Store {
    let schemas: Vec<Arc<Schema>> = schemas.iter().map(|name| Schema::builtin(name).unwrap()).collect();
    let store = Store::create(&folder.path().join("store"), &schemas, RetentionAges::default()).unwrap();
    let mut writer = store.writer().unwrap();
    for commit in 0..7 {
        for number in 0..=commit {
            let (sequence, payload) = (number.to_string(), format!("{commit} {number}"));
            let record = [("collection", "c"), ("producer", "p"), ("sequence", &*sequence)];
            writer.archive_in("record", record, payload.as_bytes()).unwrap();
            if schemas.len() > 1 {
                let file = [("name", &*sequence), ("colour", "red")];
                writer.archive_in("free", file, payload.as_bytes()).unwrap();
            }
        }
        writer.flush().unwrap();
    }
    store
}

fn check(listing: &Listing) {
    let batch = listing.to_arrow().unwrap();
    assert_eq!(batch.num_rows(), listing.len());
    for field in batch.schema().fields() {
        assert_eq!(batch.column_by_name(field.name()).unwrap().len(), listing.len());
    }
    let (values, numbers) = listing.column("sequence").unwrap();
    let (undeclared, of_undeclared) = listing.column("@colour").unwrap();
    assert_eq!((numbers.len(), of_undeclared.len()), (listing.len(), listing.len()));
    let value = |values: &[String], number: i32| usize::try_from(number).ok().map(|at| values[at].clone());
    for (at, object) in listing.iter().enumerate() {
        let same = listing.get(at).unwrap();
        assert_eq!((same.key(), same.commit()), (object.key(), object.commit()));
        let described = object.describe();
        assert_eq!(described.get("sequence"), value(&values, numbers[at]).as_deref());
        assert_eq!(
            described.get("colour"),
            value(&undeclared, of_undeclared[at]).as_deref()
        );
    }
    assert!(listing.get(listing.len()).is_none());
}

#[test]
fn columns_say_what_the_objects_say() {
    let folder = tempfile::tempdir().unwrap();
    let store = filled(&folder, &["record", "free"]);
    let snapshot = store.snapshot().unwrap();
    let listings = [
        snapshot.list("").unwrap(),
        snapshot.list_all("").unwrap(),
        snapshot.list("sequence=2/5 or name=3").unwrap(),
        snapshot.list("name=nobody").unwrap(),
    ];
    for listing in &listings {
        check(listing);
    }
    assert_eq!(listings.each_ref().map(Listing::len), [14, 56, 3, 0]);
    assert!(listings[0].to_arrow().unwrap().column_by_name("_schema").is_some());
    let (values, numbers) = listings[0].column("nothing").unwrap();
    assert!(values.is_empty() && numbers.iter().all(|&number| number == -1));
}

#[test]
fn of_one_schema_the_columns_are_those_of_its_files() {
    let folder = tempfile::tempdir().unwrap();
    let store = filled(&folder, &["record"]);
    let batch = store
        .snapshot()
        .unwrap()
        .list("sequence=1/2")
        .unwrap()
        .to_arrow()
        .unwrap();
    let schema = batch.schema();
    let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    let own = [
        "_file",
        "_offset",
        "_length",
        "_checksum",
        "_commit",
        "_number",
        "_incarnation",
        "_sequence",
    ];
    assert_eq!(names[..3], ["collection", "producer", "sequence"]);
    assert_eq!(names[3..], own);
}

#[test]
fn a_range_is_a_part_of_the_whole_and_ends_where_that_ends() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::create(
        folder.path(),
        &[Schema::builtin("free").unwrap()],
        RetentionAges::default(),
    )
    .unwrap();
    let mut writer = store.writer().unwrap();
    let payload: Vec<u8> = (0..100_000_u32).map(|number| number as u8).collect();
    writer.archive([("name", "a")], &payload).unwrap();
    writer.archive([("name", "empty")], b"").unwrap();
    writer.flush().unwrap();
    let listing = store.snapshot().unwrap().list("").unwrap();
    let object = listing.get(0).unwrap();
    assert_eq!(object.value(AttrId(1)), Some("a"));
    for (from, length, expected) in [
        (0, 10, 10),
        (99_995, 10, 5),
        (100_000, 10, 0),
        (u64::MAX, 1, 0),
        (50_000, 0, 0),
    ] {
        let mut bytes = vec![0; length];
        assert_eq!(object.read_range(from, &mut bytes).unwrap(), expected);
        let from = from.min(100_000) as usize;
        assert_eq!(bytes[..expected], payload[from..from + expected]);
    }
    assert_eq!(listing.get(1).unwrap().read_range(0, &mut [0; 4]).unwrap(), 0);
}
