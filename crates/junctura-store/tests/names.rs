//! Undeclared attributes of very many names: a store takes so many, and reads any number.

use std::path::Path;

use junctura_model::{Code, Result, Schema};
use junctura_store::{RetentionAges, Snapshot, Store, StoreWriter};

/// Names that objects of one schema may have.
const NAMES_MAX: usize = 4096;
/// Names of one object.
const OF_ONE: usize = 60;

fn created(folder: &Path) -> Store {
    Store::create(folder, &[Schema::builtin("free").unwrap()], RetentionAges::default()).unwrap()
}

fn archive(writer: &mut StoreWriter, object: usize, names: std::ops::Range<usize>) -> Result<()> {
    let names: Vec<String> = names.map(|name| format!("n{name}")).collect();
    let attributes = names.iter().map(|name| (&**name, "v"));
    writer.archive(attributes.chain([("name", &*format!("o{object}"))]), b"x")
}

/// An object for each, all in commits of their own, by writers that are there at once: none of them knows of the others' names.
fn crowd(store: &Store, objects: usize) {
    let mut writers: Vec<StoreWriter> = (0..objects).map(|_| store.writer().unwrap()).collect();
    for (object, writer) in writers.iter_mut().enumerate() {
        archive(writer, object, object * OF_ONE..(object + 1) * OF_ONE).unwrap();
    }
    for writer in &mut writers {
        writer.flush().unwrap();
    }
}

fn check_reads(snapshot: &Snapshot, objects: usize) {
    let listing = snapshot.list("").unwrap();
    assert_eq!(listing.len(), objects);
    for object in &listing {
        assert_eq!(object.read().unwrap(), b"x");
    }
    assert_eq!(snapshot.list("n61=v").unwrap().len(), usize::from(objects > 1));
    assert_eq!(snapshot.list("name=o7").unwrap().len(), 1);
    let batch = listing.to_arrow().unwrap();
    assert_eq!(batch.num_rows(), objects);
    assert!(batch.num_columns() >= objects * OF_ONE);
    assert_eq!(
        listing.column("@n61").unwrap().1.iter().filter(|&&at| at == 0).count(),
        1
    );
}

#[test]
fn a_name_too_many_is_refused_with_its_object_and_all_else_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    created(&path);
    let mut taken = 0;
    let refused = loop {
        // Each knows of the others only what they have committed.
        let store = Store::open(&path).unwrap();
        let mut writer = store.writer().unwrap();
        match archive(&mut writer, taken, taken * OF_ONE..(taken + 1) * OF_ONE) {
            Ok(()) => writer.flush().unwrap(),
            Err(error) => break error,
        };
        taken += 1;
    };
    assert_eq!(taken, NAMES_MAX / OF_ONE);
    assert_eq!(refused.code(), Code::LimitExceeded);
    assert!(refused.to_string().contains(&format!("o{taken}")), "{refused}");

    let store = Store::open(&path).unwrap();
    let mut writer = store.writer().unwrap();
    let (used, left) = (taken * OF_ONE, NAMES_MAX - taken * OF_ONE);
    archive(&mut writer, taken, used..NAMES_MAX).unwrap();
    for names in [NAMES_MAX..NAMES_MAX + 1, NAMES_MAX - 1..NAMES_MAX + 1] {
        assert_eq!(
            archive(&mut writer, 9999, names).unwrap_err().code(),
            Code::LimitExceeded
        );
    }
    archive(&mut writer, taken + 1, 0..left).unwrap();
    archive(&mut writer, taken + 2, 0..0).unwrap();
    assert_eq!(writer.flush().unwrap().objects, 3);
    assert_eq!(store.snapshot().unwrap().list("").unwrap().len(), taken + 3);

    // What is wiped leaves room for other names, also for a writer that was refused.
    assert!(archive(&mut writer, 9999, NAMES_MAX..NAMES_MAX + OF_ONE).is_err());
    Store::open(&path).unwrap().wipe("name=o3").unwrap();
    archive(&mut writer, 9999, NAMES_MAX..NAMES_MAX + OF_ONE).unwrap();
    writer.flush().unwrap();
    store.checkpoint().unwrap();
    let reopened = Store::open(&path).unwrap();
    let mut writer = reopened.writer().unwrap();
    assert!(archive(&mut writer, 1, 9000..9001).is_err());
    archive(&mut writer, 1, NAMES_MAX..NAMES_MAX + OF_ONE).unwrap();
}

#[test]
fn a_store_of_more_names_is_read_and_kept_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let (store, objects) = (created(&path), 3 * NAMES_MAX / OF_ONE);
    crowd(&store, objects);
    check_reads(&store.snapshot().unwrap(), objects);
    let opened = Store::open(&path).unwrap();
    check_reads(&opened.snapshot().unwrap(), objects);

    let checkpointed = opened.checkpoint().unwrap();
    assert_eq!(checkpointed.rows, objects as u64);
    assert!(
        checkpointed.segments > 1 && checkpointed.segments < 20,
        "{checkpointed:?}"
    );
    opened.compact().unwrap();
    let opened = Store::open(&path).unwrap();
    check_reads(&opened.snapshot().unwrap(), objects);
    let mut writer = opened.writer().unwrap();
    archive(&mut writer, 7, 0..OF_ONE).unwrap();
    writer.flush().unwrap();
    assert!(archive(&mut writer, 8, 1_000_000..1_000_001).is_err());

    opened.wipe("not name=o1/o7").unwrap();
    opened.checkpoint().unwrap();
    let opened = Store::open(&path).unwrap();
    assert_eq!(opened.snapshot().unwrap().list("").unwrap().len(), 2);
    archive(&mut opened.writer().unwrap(), 8, 1_000_000..1_000_001).unwrap();
}

#[test]
fn writers_that_archive_at_once_have_as_many_names_each_and_no_more() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let store = created(&path);
    let mut writers = [store.writer().unwrap(), Store::open(&path).unwrap().writer().unwrap()];
    for object in 0..NAMES_MAX / 32 {
        for (number, writer) in writers.iter_mut().enumerate() {
            let first = number * NAMES_MAX + object * 32;
            archive(writer, number * NAMES_MAX + object, first..first + 32).unwrap();
        }
    }
    for writer in &mut writers {
        assert_eq!(archive(writer, 1, 9000..9001).unwrap_err().code(), Code::LimitExceeded);
        writer.flush().unwrap();
    }
    let refused = |writer: &mut StoreWriter| archive(writer, 1, 9000..9001).unwrap_err().code();
    for writer in &mut writers {
        assert_eq!(refused(writer), Code::LimitExceeded);
        // Names that are there are taken, whoever has committed them.
        archive(writer, 1, 0..32).unwrap();
        archive(writer, 2, NAMES_MAX..NAMES_MAX + 32).unwrap();
        writer.flush().unwrap();
    }
    assert_eq!(store.snapshot().unwrap().list("").unwrap().len(), 2 * NAMES_MAX / 32);
    store.wipe("").unwrap();
    for writer in &mut writers {
        archive(writer, 1, 9000..9001).unwrap();
        writer.flush().unwrap();
    }
}
