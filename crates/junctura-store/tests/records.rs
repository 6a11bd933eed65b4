//! Records that a writer takes as they are, beside those that it makes of attributes.

use std::sync::Arc;

use junctura_model::{Given, Record, Schema, Version};
use junctura_store::{RetentionAges, Store};

#[test]
fn records_that_are_taken_as_they_are_equal_those_made_of_attributes() {
    let mars = Schema::builtin("mars").unwrap();
    let version = |sequence| Version {
        incarnation: 1,
        sequence,
    };
    let (folders, mut stores) = (tempfile::tempdir().unwrap(), Vec::new());
    for way in ["attributes", "records"] {
        let store = Store::create(
            &folders.path().join(way),
            &[Arc::clone(&mars)],
            RetentionAges::default(),
        )
        .unwrap();
        let mut writer = store.writer().unwrap();
        for step in 0..24 {
            let step = (step * 6).to_string();
            let fields = [
                ("class", "od"),
                ("expver", "1"),
                ("stream", "oper"),
                ("date", "2026-11-20"),
            ];
            let others = [
                ("time", "0"),
                ("type", "fc"),
                ("levtype", "sfc"),
                ("param", "2t"),
                ("step", &*step),
            ];
            let given = || fields.into_iter().chain(others);
            let version = version(step.len() as u64);
            if way == "attributes" {
                writer.archive_version("mars", given(), b"field", version).unwrap();
            } else {
                let mut record = Vec::new();
                let texts = given().map(|(name, value)| (name, Given::Text(value)));
                mars.record(texts, &mut record).unwrap();
                let record = Record::trusted(record);
                writer
                    .archive_record(0, record.as_ref(), b"field", Some(version))
                    .unwrap();
            }
        }
        writer.flush().unwrap();
        stores.push(Store::open(&folders.path().join(way)).unwrap());
    }
    let records = |store: &Store| -> Vec<_> {
        let listing = store.snapshot().unwrap().list("").unwrap();
        let record = |object: junctura_store::StoredObject<'_>| object.record().as_ref().as_bytes().to_vec();
        listing.iter().map(record).collect()
    };
    assert_eq!(records(&stores[0]).len(), 24);
    assert_eq!(records(&stores[0]), records(&stores[1]));
}
