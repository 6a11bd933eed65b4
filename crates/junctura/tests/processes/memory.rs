//! Payloads that are damaged in memory: the test looks for the bytes in every segment that this process has open.

use crate::alone;
use junctura::{Archiver, ArchiverEvent, ArchiverOptions, Code, Pool};
use junctura_store::{Store, StoreLayout};

/// Whether pools are reached by any detour here (see CONTRIBUTING.md).
fn is_over_network() -> bool {
    std::env::var_os("JUNCTURA_TEST_DETOUR").is_some()
}

/// Changes one byte of the payload that holds `pattern`, in the segment itself, as a stray writer would.
fn damage(pattern: &[u8]) {
    use std::os::unix::fs::FileExt;

    let segments = std::fs::read_dir("/proc/self/fd").unwrap().filter_map(|entry| {
        let path = entry.unwrap().path();
        let target = std::fs::read_link(&path).ok()?;
        target.to_string_lossy().starts_with("/memfd:junctura ").then_some(path)
    });
    for path in segments {
        let Ok(segment) = std::fs::File::options().read(true).write(true).open(&path) else {
            continue;
        };
        let bytes = std::fs::read(&path).unwrap();
        if let Some(at) = bytes.windows(pattern.len()).position(|window| window == pattern) {
            segment.write_all_at(&[!pattern[0]], at as u64).unwrap();
            return;
        }
    }
    panic!("the payload lies nowhere");
}

#[test]
fn a_payload_that_was_damaged_is_told() {
    let _alone = alone();
    if is_over_network() {
        // The bytes lie in two segments of this process; which of them is damaged is chance.
        return;
    }
    let pool = Pool::builder().schema("free").checked(true).open().unwrap();
    let payload: Vec<u8> = (0..20_000_u32)
        .flat_map(|i| i.wrapping_mul(2_654_435_761).to_ne_bytes())
        .collect();
    pool.offer([("name", "damaged")], &payload).unwrap();
    assert_eq!(pool.demand("name=damaged", None).unwrap()[..], payload[..]);
    damage(&payload[4000..4064]);
    let error = pool.demand("name=damaged", None).unwrap_err();
    assert_eq!(error.code(), Code::Corrupt);
    assert!(error.subject().contains("damaged"), "{error}");
}

#[test]
fn a_payload_that_was_damaged_keeps_no_other_from_the_store() {
    let _alone = alone();
    if is_over_network() {
        return;
    }
    let pool = Pool::builder().schema("free").checked(true).open().unwrap();
    let store = Store::create_url("memory:", &pool.schemas().unwrap(), &StoreLayout::default()).unwrap();
    let payload: Vec<u8> = (0..20_000_u32)
        .flat_map(|i| i.wrapping_mul(2_246_822_519).to_ne_bytes())
        .collect();
    pool.offer([("name", "damaged")], &payload).unwrap();
    damage(&payload[4000..4064]);
    for name in ["a", "z"] {
        pool.offer([("name", name)], b"sound").unwrap();
    }
    let options = ArchiverOptions {
        until_live: true,
        ..ArchiverOptions::default()
    };
    let mut archiver = Archiver::new(&pool, &store, "", &options).unwrap();
    let mut told = Vec::new();
    let outcome = archiver.run(&mut |event| {
        if let ArchiverEvent::Unarchived { object, error } = event {
            told.push((object.get("name").unwrap().to_owned(), error.code()));
        }
        Ok(())
    });
    assert_eq!(outcome.unwrap_err().code(), Code::Corrupt);
    assert_eq!(told, [("damaged".to_owned(), Code::Corrupt)]);
    assert_eq!((archiver.counts().archived, archiver.counts().failed), (2, 1));
    // It is still owed.
    assert_eq!(pool.retract("archive").unwrap(), 1);
}

/// Payloads of one pool that cannot be read and the names of others, in one window.
fn unreadable_among(names: &[&str], bad: u32) -> (Pool, Store) {
    let pool = Pool::builder().schema("free").checked(true).open().unwrap();
    let store = Store::create_url("memory:", &pool.schemas().unwrap(), &StoreLayout::default()).unwrap();
    for number in 0..bad {
        let payload: Vec<u8> = (0..20_000_u32)
            .flat_map(|i| (i + 1).wrapping_mul(3_266_489_917 + 2 * number).to_ne_bytes())
            .collect();
        pool.offer([("name", format!("damaged{number}").as_str())], &payload)
            .unwrap();
        damage(&payload[4000..4064]);
    }
    for &name in names {
        pool.offer([("name", name)], b"sound").unwrap();
    }
    (pool, store)
}

#[test]
fn payloads_that_fill_the_window_keep_no_other_from_the_store() {
    let _alone = alone();
    if is_over_network() {
        return;
    }
    for (window, bad) in [(1, 1), (1, 3), (2, 2), (4, 6)] {
        let (pool, store) = unreadable_among(&["a", "z"], bad);
        let options = ArchiverOptions {
            window,
            until_live: true,
            ..ArchiverOptions::default()
        };
        let mut archiver = Archiver::new(&pool, &store, "", &options).unwrap();
        assert_eq!(archiver.run(&mut |_| Ok(())).unwrap_err().code(), Code::Corrupt);
        let counts = archiver.counts();
        assert_eq!((counts.archived, counts.failed), (2, u64::from(bad)), "{window} {bad}");
    }
}

#[test]
fn what_is_owed_at_a_stop_is_archived_behind_payloads_that_fill_the_window() {
    let _alone = alone();
    if is_over_network() {
        return;
    }
    for (window, bad) in [(1, 1), (1, 3), (2, 2), (4, 6)] {
        let (pool, store) = unreadable_among(&["a", "z"], bad);
        let options = ArchiverOptions {
            window,
            ..ArchiverOptions::default()
        };
        let archiver = Archiver::start(&pool, &store, "", &options).unwrap();
        assert_eq!(archiver.stop().unwrap_err().code(), Code::Corrupt);
        let counts = archiver.counts();
        assert_eq!((counts.archived, counts.failed), (2, u64::from(bad)), "{window} {bad}");
    }
}
