//! Conformance tests for every storage of a store.

use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::faulty::FaultyDisk;
use super::{DataPlaces, FileDraft, LocalDisk, MemoryDisk, StorageDisk, StorageFile, TieredDisk, read_full, write_all};

fn draft(name: &str, bytes: &[u8]) -> FileDraft {
    FileDraft {
        beside: format!("beside/.{name}"),
        bytes: bytes.to_vec(),
    }
}

fn write(disk: &dyn StorageDisk, path: &str, bytes: &[u8]) -> Arc<dyn StorageFile> {
    let file = disk.create(path).unwrap();
    write_all(&*file, bytes, 0).unwrap();
    file.sync().unwrap();
    disk.sync_names(path.rsplit_once('/').unwrap().0).unwrap();
    file
}

fn sorted(mut names: Vec<String>) -> Vec<String> {
    names.sort();
    names
}

pub(crate) fn all(disk: &Arc<dyn StorageDisk>) {
    a_file_is_replaced(&**disk);
    a_file_reads_back(&**disk);
    names_are_listed(&**disk);
    what_is_not_there_is_told(&**disk);
    a_name_is_given_once(&**disk);
    of_many_that_race_one_gets_the_name(disk);
    some_grow(&**disk);
}

fn a_file_reads_back(disk: &dyn StorageDisk) {
    let bytes: Vec<u8> = (0..300_000_u32).map(|at| (at * 7) as u8).collect();
    for (name, length) in [("empty", 0), ("one", 1), ("many", bytes.len())] {
        let path = format!("data/reads/{name}");
        write(disk, &path, &bytes[..length]);
        assert_eq!(disk.read(&path, length as u64).unwrap(), bytes[..length]);
        let file = disk.open(&path).unwrap();
        assert_eq!(file.len().unwrap(), length as u64);
        let middle = length / 3..length / 2;
        let mut part = vec![0; middle.len()];
        assert_eq!(read_full(&*file, &mut part, middle.start as u64).unwrap(), part.len());
        assert_eq!(part, bytes[middle]);
        let mut behind = [0; 8];
        assert_eq!(file.read_at(&mut behind, length as u64).unwrap(), 0);
        disk.modified(&path).unwrap();
    }
    assert_eq!(
        disk.read("data/reads/many", 299_999).unwrap_err().kind(),
        ErrorKind::FileTooLarge
    );
}

fn a_file_is_replaced(disk: &dyn StorageDisk) {
    for bytes in [&b"of the first"[..], b"of", b""] {
        disk.replace(&draft("mark", bytes), "beside/mark").unwrap();
        disk.sync_names("beside").unwrap();
        assert_eq!(disk.read("beside/mark", 100).unwrap(), bytes);
        assert_eq!(disk.list("beside").unwrap(), ["mark"], "nothing is left beside it");
    }
    disk.remove("beside/mark").unwrap();
}

fn names_are_listed(disk: &dyn StorageDisk) {
    for path in ["lists/a/1", "lists/b", "lists/c", "lists/a/2", "lists-not/x"] {
        write(disk, path, b"bytes");
    }
    assert_eq!(sorted(disk.list("lists").unwrap()), ["a", "b", "c"]);
    assert_eq!(sorted(disk.list("lists/a").unwrap()), ["1", "2"]);
    assert_eq!(sorted(disk.list_after("lists/a", "1").unwrap()), ["2"]);
    assert!(disk.list_after("lists/a", "2").unwrap().is_empty());
    assert!(disk.list("nowhere").unwrap().is_empty());
    assert!(disk.list("").unwrap().contains(&"lists".to_owned()));
    disk.remove("lists/b").unwrap();
    assert_eq!(sorted(disk.list("lists").unwrap()), ["a", "c"]);
    let ahead = disk.ahead("lists/a", "0", 100).unwrap();
    assert!(
        ahead.is_empty() || ahead.len() == 2 && ahead.iter().all(|(path, bytes)| path.len() == 9 && bytes == b"bytes")
    );
}

fn what_is_not_there_is_told(disk: &dyn StorageDisk) {
    for error in [
        disk.open("data/nothing").err(),
        disk.read("data/nothing", 1).err(),
        disk.modified("data/nothing").err(),
    ] {
        assert_eq!(error.unwrap().kind(), ErrorKind::NotFound);
    }
}

fn a_name_is_given_once(disk: &dyn StorageDisk) {
    let (one, other) = (draft("one", b"of one"), draft("other", b"of another"));
    disk.stage(&one).unwrap();
    disk.stage(&other).unwrap();
    disk.publish(&one, "beside/1").unwrap();
    assert_eq!(
        disk.publish(&other, "beside/1").unwrap_err().kind(),
        ErrorKind::AlreadyExists
    );
    disk.publish(&other, "beside/2").unwrap();
    disk.sync_names("beside").unwrap();
    assert_eq!(disk.read("beside/1", 100).unwrap(), b"of one");
    assert_eq!(disk.read("beside/2", 100).unwrap(), b"of another");
    let third = draft("third", b"of nobody");
    disk.stage(&third).unwrap();
    disk.discard(&third);
    assert_eq!(sorted(disk.list("beside").unwrap()), ["1", "2"]);
}

fn of_many_that_race_one_gets_the_name(disk: &Arc<dyn StorageDisk>) {
    const WRITERS: u32 = 16;
    for round in 0..10 {
        let name = format!("beside/race-{round}");
        let winners = AtomicU32::new(0);
        let barrier = std::sync::Barrier::new(WRITERS as usize);
        std::thread::scope(|scope| {
            for writer in 0..WRITERS {
                let (name, winners, barrier) = (&name, &winners, &barrier);
                scope.spawn(move || {
                    let draft = draft(&format!("{round}-{writer}"), &writer.to_le_bytes());
                    disk.stage(&draft).unwrap();
                    barrier.wait();
                    match disk.publish(&draft, name) {
                        Ok(()) => {
                            winners.fetch_add(1, Ordering::Relaxed);
                            assert_eq!(disk.read(name, 4).unwrap(), writer.to_le_bytes());
                        }
                        Err(error) => {
                            assert_eq!(error.kind(), ErrorKind::AlreadyExists, "{error}");
                            disk.discard(&draft);
                        }
                    }
                });
            }
        });
        assert_eq!(winners.into_inner(), 1);
    }
}

fn some_grow(disk: &dyn StorageDisk) {
    let path = "data/grows";
    let file = write(disk, path, b"one");
    if disk.grows(path) {
        write_all(&*file, b" two", 3).unwrap();
        file.sync().unwrap();
        assert_eq!(disk.read(path, 100).unwrap(), b"one two");
    }
    assert!(disk.grows("log/00000000000000000001") || disk.probe(true).is_ok());
}

#[test]
fn on_a_file_system() {
    let folder = tempfile::tempdir().unwrap();
    all(&(Arc::new(LocalDisk::new(folder.path())) as Arc<dyn StorageDisk>));
}

#[test]
fn in_memory() {
    all(&(Arc::new(MemoryDisk::default()) as Arc<dyn StorageDisk>));
}

#[test]
fn on_the_file_system_of_the_crash_tests() {
    all(&(Arc::new(FaultyDisk::new(1)) as Arc<dyn StorageDisk>));
}

#[derive(Debug)]
struct DataOnly(Arc<MemoryDisk>);

impl DataPlaces for DataOnly {
    fn check_owner(&self, _: &dyn StorageDisk, _: &str, _: &dyn StorageDisk) -> std::io::Result<()> {
        Ok(())
    }

    fn has_data(&self) -> bool {
        true
    }

    fn open(&self, _catalogue: &dyn StorageDisk, name: &str) -> std::io::Result<Arc<dyn StorageDisk>> {
        match name {
            "data" => Ok(Arc::clone(&self.0) as Arc<dyn StorageDisk>),
            _ => Err(std::io::ErrorKind::NotFound.into()),
        }
    }
}

#[test]
fn split_over_two_places() {
    let folder = tempfile::tempdir().unwrap();
    let data = Arc::new(MemoryDisk::default());
    let catalogue = Arc::new(LocalDisk::new(folder.path()));
    let split = TieredDisk::new(catalogue, Box::new(DataOnly(Arc::clone(&data))));
    all(&(Arc::new(split) as Arc<dyn StorageDisk>));
    assert!(!folder.path().join("data").exists());
    assert_eq!(data.list("").unwrap(), ["data"]);
}

#[cfg(feature = "s3")]
#[test]
fn buckets_of_one_name_at_two_servers_are_two_places() {
    let disk = |endpoint: &str| {
        let url = format!("s3://fields/store?endpoint={endpoint}");
        crate::url::StoreUrl::parse(&url).unwrap().disk(false).unwrap()
    };
    let servers = [
        &["http://one:9000", "http://ONE:9000/"][..],
        &["http://two:9000", "http://two:9000/"],
        &["http://two", "http://two:80/"],
        &["https://two", "https://two:443"],
        &["https://two/gateway", "https://two/gateway/"],
        &["https://s3.amazonaws.com", "https://s3.eu-central-1.amazonaws.com/"],
    ];
    for (number, endpoints) in servers.iter().enumerate() {
        for (other_number, others) in servers.iter().enumerate() {
            for (endpoint, other) in endpoints
                .iter()
                .flat_map(|one| others.iter().map(move |other| (one, other)))
            {
                let is_one = disk(endpoint).is_at(&disk(other).address());
                assert_eq!(is_one, number == other_number, "{endpoint} {other}");
            }
        }
    }
    let one = disk("http://one:9000");
    assert_eq!(one.address(), "s3://fields/store?endpoint=http://one:9000");
    // Older marks name no server.
    assert!(one.is_at("s3://fields/store") && !one.is_at("s3://fields/other"));
}

#[cfg(feature = "s3")]
fn a_file_that_is_replaced_is_always_there(disk: &dyn StorageDisk) {
    const LAST: usize = 40;
    let mark = |number: usize| vec![number as u8; number + 1];
    disk.replace(&draft("mark", &mark(0)), "beside/mark").unwrap();
    std::thread::scope(|scope| {
        let reads = scope.spawn(|| {
            let read = || disk.read("beside/mark", 100).unwrap();
            std::iter::repeat_with(read).find(|read| {
                assert_eq!(*read, mark(read.len() - 1), "one or the other, and whole");
                read.len() == LAST + 1
            })
        });
        for number in 1..=LAST {
            disk.replace(&draft("mark", &mark(number)), "beside/mark").unwrap();
        }
        reads.join().unwrap();
    });
}

#[cfg(feature = "s3")]
#[test]
#[ignore = "needs a server: tests/run.py store-s3"]
fn on_s3() {
    let url = std::env::var("JUNCTURA_TEST_S3").expect("JUNCTURA_TEST_S3");
    let place = crate::url::StoreUrl::parse(&url.replace("{}", "conformance")).unwrap();
    let disk = place.disk(true).unwrap();
    disk.probe(true).unwrap();
    all(&disk);
    // More than a part, and more than are under way at once.
    let bytes: Vec<u8> = (0..(40_u32 << 20) + 5).map(|at| (at * 7 + at / 251) as u8).collect();
    write(&*disk, "data/parts", &bytes);
    assert!(disk.read("data/parts", u64::MAX).unwrap() == bytes);
    let mut read = vec![0; bytes.len() - 1];
    assert_eq!(
        read_full(&*disk.open("data/parts").unwrap(), &mut read, 1).unwrap(),
        read.len()
    );
    assert!(read == bytes[1..]);
    a_file_that_is_replaced_is_always_there(&*disk);
    // Data that were not synced are missing.
    let left = disk.create("data/left").unwrap();
    write_all(&*left, &bytes, 0).unwrap();
    drop(left);
    assert_eq!(disk.open("data/left").unwrap_err().kind(), ErrorKind::NotFound);
}
