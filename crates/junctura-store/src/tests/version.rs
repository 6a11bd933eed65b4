//! Files of a later version are rejected by name, and never treated as damage, or as files of this version.

use std::sync::Arc;

use junctura_model::{Code, Error, Schema};
use minicbor::bytes::{ByteArray, ByteSlice};

use crate::log::commit::{COMMIT, CommitPart, CommitRecord};
use crate::log::{CommitLog, Commits};
use crate::root::{RetentionAges, StoreRoot};
use crate::storage::{MemoryDisk, StorageDisk, write_all};
use crate::store::Store;
use crate::tests::crash::clock;

const PLACE: &str = "memory:written-by-a-later-version";

fn made(commits: Commits) -> (Arc<dyn StorageDisk>, Store) {
    let disk: Arc<dyn StorageDisk> = Arc::new(MemoryDisk::default());
    let schemas = [Schema::builtin("free").unwrap()];
    StoreRoot::create(&*disk, &schemas, commits, &RetentionAges::default().into()).unwrap();
    let store = open(&disk).unwrap();
    let mut writer = store.writer().unwrap();
    writer.archive([("name", "a")], b"bytes").unwrap();
    writer.flush().unwrap();
    (disk, store)
}

fn open(disk: &Arc<dyn StorageDisk>) -> Result<Store, Error> {
    Store::open_on(Arc::clone(disk), clock)
}

fn write(disk: &dyn StorageDisk, path: &str, text: &str) {
    disk.remove(path).unwrap();
    let file = disk.create(path).unwrap();
    write_all(&*file, text.as_bytes(), 0).unwrap();
}

/// The error for a file of a later version, whether it redefines fields of this version, or lacks them.
fn told(disk: &dyn StorageDisk, path: &str, ask: &dyn Fn() -> Error) {
    let text = String::from_utf8(disk.read(path, 1 << 20).unwrap()).unwrap();
    let later = text.replace("\"version\": 1", "\"version\": 2");
    assert_ne!(later, text, "{path}");
    let format = text.lines().find(|line| line.contains("\"format\"")).unwrap();
    for later in [later, format!("{{\n{format}\n  \"version\": 2, \"new\": [{{}}]\n}}\n")] {
        write(disk, path, &later);
        let error = ask();
        assert_eq!(error.code(), Code::Unsupported, "{path}: {error}");
        assert!(error.to_string().contains(path), "{path}: {error}");
        assert!(
            error
                .to_string()
                .contains("it is of version 2, and this is for version 1"),
            "{path}: {error}"
        );
    }
    write(disk, path, &text.replace("junctura-", "other-"));
    let error = ask();
    assert_eq!(error.code(), Code::Corrupt, "{path}: {error}");
    assert!(error.to_string().contains(path) && error.to_string().contains("its format is \"other-"));
    write(disk, path, &text);
}

#[test]
fn a_file_of_a_later_version_is_named_with_its_version() {
    let (disk, store) = made(Commits::Appended);
    store.set_schema(&Schema::builtin("mars").unwrap()).unwrap();
    let store = store.anew().unwrap();
    store.checkpoint().unwrap();
    let opening = || open(&disk).unwrap_err();
    told(&*disk, "store.json", &opening);
    told(&*disk, "schemas/00000001.json", &opening);
    let path = "checkpoints/00000000000000000001.json";
    told(&*disk, path, &|| open(&disk).unwrap().snapshot().unwrap_err());
    told(&*disk, path, &|| open(&disk).unwrap().checkpoint().unwrap_err());

    let tier: Arc<dyn StorageDisk> = Arc::new(MemoryDisk::named(&PLACE["memory:".len()..]));
    store.add_tier("cold", PLACE).unwrap();
    let moves = || open(&disk).unwrap().move_to("", "cold", |_, _| true).unwrap_err();
    told(&*disk, "tiers/cold.json", &moves);
    told(&*disk, "tiers/cold.json", &|| open(&disk).unwrap().tiers().unwrap_err());
    store.move_to("", "cold", |_, _| true).unwrap();
    // For an unreachable disk, an object returns the error.
    let owner = "tiers/cold.owner.json";
    let text = String::from_utf8(tier.read(owner, 1 << 20).unwrap()).unwrap();
    write(&*tier, owner, &text.replace("\"version\": 1", "\"version\": 2"));
    let listing = open(&disk).unwrap().snapshot().unwrap().list("").unwrap();
    let error = listing.get(0).unwrap().read().unwrap_err();
    assert!(
        error.to_string().contains(owner) && error.to_string().contains("version 2"),
        "{error}"
    );
    write(&*tier, owner, &text);
    let listing = open(&disk).unwrap().snapshot().unwrap().list("").unwrap();
    assert_eq!(listing.get(0).unwrap().read().unwrap(), b"bytes");
}

#[test]
fn a_record_of_a_later_version_is_named_with_its_commit_and_kind() {
    for commits in [Commits::Appended, Commits::Exclusive] {
        let (disk, store) = made(commits);
        let mut record = CommitLog::begin();
        record.extend_from_slice(b"what that says");
        assert_eq!(store.append(77, record, None).unwrap(), 2);
        for store in [store, open(&disk).unwrap()] {
            for error in [store.snapshot().unwrap_err(), store.compact().unwrap_err()] {
                assert_eq!(
                    (error.code(), error.subject()),
                    (Code::Unsupported, "commit 2"),
                    "{error}"
                );
                assert!(
                    error
                        .to_string()
                        .contains("it is of kind 77, which needs a later version"),
                    "{error}"
                );
            }
        }
    }
}

#[test]
fn rows_that_say_more_are_named_and_no_damage() {
    // One row of one attribute, whose object has no bytes; then what there is besides: more of each row, or a codec.
    let row = [1, 1, 0xff, 1, b'x', 1, 1, b'v', 0, 0, 0, 0, 0, 0, 0, 0, 0];
    for (more, says) in [
        (&[4][..], "they have more columns (0x04), which needs a later version"),
        (
            &[2, 9, 5],
            "an object is packed by codec 9, which needs a later version",
        ),
    ] {
        let (disk, store) = made(Commits::Appended);
        let rows = [&row[..], more].concat();
        let commit = CommitRecord {
            at: 1,
            writer: ByteArray::from([7; 16]),
            parts: vec![CommitPart {
                schema: 0,
                rows: <&ByteSlice>::from(&*rows),
                payloads: <&ByteSlice>::from(&[][..]),
            }],
        };
        let mut record = CommitLog::begin();
        commit.encode_into(&mut record);
        store.append(COMMIT, record, None).unwrap();
        let error = open(&disk).unwrap().snapshot().unwrap_err();
        assert_eq!(error.code(), Code::Unsupported, "{error}");
        assert!(
            error.to_string().contains("rows of a commit") && error.to_string().contains(says),
            "{error}"
        );
    }
}
