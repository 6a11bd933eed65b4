//! Payloads of all sizes, memory that comes round, and views that outlive everything.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use junctura::{Code, Item, OfferOptions, Pool, Retention, Target, Transport, WithdrawOptions};

/// Whether pools are reached over TCP here (see CONTRIBUTING.md).
fn is_over_tcp() -> bool {
    std::env::var("JUNCTURA_TEST_DETOUR").is_ok_and(|way| way == "tcp")
}

fn builder() -> junctura::PoolBuilder {
    Pool::builder().schema("free")
}

#[test]
fn every_size_arrives_as_it_was() {
    let pool = builder().inline_bytes_max(4096).open().unwrap();
    for bytes in [
        0_usize,
        1,
        63,
        64,
        4096,
        4097,
        100_000,
        823_296,
        5 << 20,
        (64 << 20) + 1,
    ] {
        let name = bytes.to_string();
        let payload: Vec<u8> = (0..bytes).map(|i| (i * 31 + bytes) as u8).collect();
        if bytes.is_multiple_of(2) {
            pool.offer([("name", name.as_str())], &payload).unwrap();
        } else {
            let mut allocation = pool.allocate(bytes + 10).unwrap();
            assert_eq!(allocation.is_shared(), bytes + 10 > 4096);
            allocation[..bytes].copy_from_slice(&payload);
            allocation.truncate(bytes);
            allocation.offer([("name", name.as_str())]).unwrap();
        }
        let object = pool.demand(Target::key([("name", name.as_str())]), None).unwrap();
        assert!(object[..] == payload[..], "{bytes} bytes");
        let shared = bytes > 4096;
        assert_eq!(
            object.transport(),
            match (shared, is_over_tcp()) {
                (false, _) => Transport::Inline,
                (true, false) => Transport::Shared,
                (true, true) => Transport::Tcp,
            }
        );
    }
}

#[test]
fn a_view_outlives_its_pool() {
    let pool = builder().open().unwrap();
    pool.offer([("name", "large")], &vec![7; 100_000]).unwrap();
    pool.offer([("name", "small")], &[8; 100]).unwrap();
    let large = Arc::new(pool.demand("name=large", None).unwrap());
    let small = pool.demand("name=small", None).unwrap();
    pool.withdraw("{space=default}{}{name=large}", WithdrawOptions::default())
        .unwrap();
    pool.close();
    assert_eq!(pool.list("").unwrap_err().code(), Code::Closed);
    drop(pool);
    let also = Arc::clone(&large);
    thread::spawn(move || assert!(also.iter().all(|&byte| byte == 7)))
        .join()
        .unwrap();
    assert!(large.iter().all(|&byte| byte == 7) && small.iter().all(|&byte| byte == 8));
}

#[test]
fn slots_come_round_through_a_small_budget() {
    let pool = builder()
        .budget_bytes(4 << 20)
        .offer_timeout(Some(Duration::from_mins(1)))
        .open()
        .unwrap();
    let producer = Pool::connect(pool.url()).unwrap();
    let mut follow = pool.follow("").unwrap();
    let producing = thread::spawn(move || {
        let once = OfferOptions {
            retention: Some(Retention::Released(1)),
            ..OfferOptions::default()
        };
        let mut pipeline = producer.pipeline(64).unwrap();
        for i in 0..2000_u32 {
            let name = i.to_string();
            let mut memory = pipeline.allocate(100_000).unwrap();
            memory[..4].copy_from_slice(&i.to_le_bytes());
            memory[99_996..].copy_from_slice(&i.to_le_bytes());
            pipeline
                .offer_allocation_with(memory, [("name", name.as_str())], once.clone())
                .unwrap();
        }
        pipeline.flush().unwrap();
    });
    let mut next = 0_u32;
    while next < 2000 {
        if let Some(Item::Object(object)) = follow.next_item().unwrap() {
            assert_eq!(
                (&object[..4], &object[99_996..]),
                (&next.to_le_bytes()[..], &next.to_le_bytes()[..])
            );
            next += 1;
        }
    }
    producing.join().unwrap();
}

#[test]
fn a_full_pool_says_so_and_what_was_dropped_is_free_again() {
    let pool = builder()
        .budget_bytes(1 << 20)
        .offer_timeout(Some(Duration::from_millis(1)))
        .open()
        .unwrap();
    let half = pool.allocate(500_000).unwrap();
    let error = pool.allocate(900_000).unwrap_err();
    assert_eq!(error.code(), Code::PoolFull, "{error}");
    assert_eq!(pool.allocate((1 << 20) + 1).unwrap_err().code(), Code::TooLarge);
    drop(half);
    for _ in 0..10 {
        drop(pool.allocate(500_000).unwrap());
    }
    pool.allocate(500_000).unwrap().offer([("name", "a")]).unwrap();
}

#[test]
fn a_refused_offer_leaves_its_memory_to_the_producer() {
    let pool = builder()
        .budget_bytes(2 << 20)
        .offer_timeout(Some(Duration::from_secs(1)))
        .open()
        .unwrap();
    pool.allocate(500_000).unwrap().offer([("name", "a")]).unwrap();
    for _ in 0..20 {
        let error = pool.allocate(500_000).unwrap().offer([("name", "a")]).unwrap_err();
        assert_eq!(error.code(), Code::AlreadyExists);
    }
}

#[test]
fn waiting_for_memory_ends_when_somebody_releases() {
    let pool = builder().budget_bytes(1 << 20).open().unwrap();
    let once = OfferOptions {
        retention: Some(Retention::Released(1)),
        ..OfferOptions::default()
    };
    pool.allocate(700_000)
        .unwrap()
        .offer_with([("name", "a")], once)
        .unwrap();
    let producer = pool.clone();
    let waiting = thread::spawn(move || producer.allocate(700_000).unwrap().offer([("name", "b")]).unwrap());
    pool.demand("name=a", None).unwrap().release().unwrap();
    waiting.join().unwrap();
    assert_eq!(pool.demand("name=b", None).unwrap().len(), 700_000);
}

#[test]
fn checked_payloads_are_verified() {
    let pool = builder().checked(true).open().unwrap();
    assert!(pool.payload_rules().unwrap().checked);
    for bytes in [0, 10, 100_000] {
        let name = bytes.to_string();
        pool.offer([("name", name.as_str())], &vec![3; bytes]).unwrap();
        assert_eq!(
            pool.demand(Target::key([("name", name.as_str())]), None).unwrap().len(),
            bytes
        );
    }
}

#[test]
fn numbers_inside_a_message_are_aligned() {
    let pool = builder().inline_bytes_max(4096).open().unwrap();
    for name in ["a", "ab", "abc", "abcd", "abcde"] {
        pool.offer([("name", name)], &[0; 800]).unwrap();
        let object = pool.demand(Target::key([("name", name)]), None).unwrap();
        assert_eq!(object.payload().as_ptr().addr() % align_of::<f64>(), 0, "{name}");
    }
}
