//! Pipelined offers, and many threads on one connection.

use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use std::time::Duration;

use junctura::{Code, Item, OfferOptions, Pool, Retention, WithdrawOptions};

fn pool() -> Pool {
    Pool::builder().schema("free").open().unwrap()
}

#[test]
fn acknowledgements_come_in_order() {
    let pool = pool();
    for window in [0, 1, 7, 1024] {
        let acks = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&acks);
        let mut pipeline = pool
            .pipeline(window)
            .unwrap()
            .on_ack(move |ack| noted.lock().unwrap().push(ack));
        for i in 0..500 {
            let name = format!("{window}-{i}");
            assert_eq!(pipeline.offer([("name", name.as_str())], name.as_bytes()).unwrap(), i);
            assert!(pipeline.outstanding() <= window.max(1));
        }
        pipeline.flush().unwrap();
        let acks = acks.lock().unwrap();
        assert!(acks.iter().map(|ack| ack.number).eq(0..500));
        assert!(
            acks.windows(2)
                .all(|two| two[0].outcome.as_ref().unwrap() < two[1].outcome.as_ref().unwrap())
        );
    }
    assert_eq!(pool.list("").unwrap().len(), 2000);
}

#[test]
fn the_first_failure_is_told_and_the_others_are_carried_out() {
    let pool = pool();
    pool.offer([("name", "taken")], b"").unwrap();
    let mut pipeline = pool.pipeline(16).unwrap();
    for name in ["a", "taken", "b", "a"] {
        pipeline.offer([("name", name)], b"").unwrap();
    }
    let error = pipeline.flush().unwrap_err();
    assert_eq!(error.code(), Code::AlreadyExists);
    assert!(error.to_string().contains("taken"), "{error}");
    pipeline.flush().unwrap();
    assert_eq!(pool.list("").unwrap().len(), 3);
    let error = pool
        .offer_many([([("name", "c")], b"x"), ([("name", "c")], b"y")])
        .unwrap_err();
    assert_eq!(error.code(), Code::AlreadyExists);
}

#[test]
fn a_sync_waits_for_offers_that_wait_for_memory() {
    let pool = Pool::builder().schema("free").budget_bytes(1 << 20).open().unwrap();
    let mut pipeline = pool.pipeline(1024).unwrap();
    for number in 0..300 {
        pipeline
            .offer([("name", number.to_string().as_str())], &[7; 4000])
            .unwrap();
    }
    let late = pool.sync(Some(Duration::from_millis(10))).unwrap_err();
    assert_eq!((late.code(), late.subject()), (Code::Timeout, "sync"));
    let gone = pool.withdraw_all("", WithdrawOptions::default()).unwrap();
    pool.sync(None).unwrap();
    pipeline.poll().unwrap();
    assert_eq!(pipeline.outstanding(), 0, "the answers came before");
    assert_eq!(pool.list("").unwrap().len() as u64, 300 - gone);
}

#[test]
fn what_a_dropped_pipeline_held_is_sent() {
    let pool = pool();
    let mut pipeline = pool.pipeline(64).unwrap();
    pipeline.offer([("name", "a")], b"1").unwrap();
    drop(pipeline);
    assert_eq!(&pool.demand("name=a", None).unwrap()[..], b"1");
}

#[test]
fn allocations_of_another_pool_are_refused() {
    let (one, other) = (pool(), pool());
    let mut pipeline = one.pipeline(4).unwrap();
    let error = pipeline
        .offer_allocation(other.allocate(100_000).unwrap(), [("name", "a")])
        .unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument);
}

#[test]
fn threads_share_a_connection() {
    const THREADS: usize = 8;
    const EACH: usize = 300;
    let pool = pool();
    let begin = Arc::new(Barrier::new(2 * THREADS));
    let threads: Vec<_> = (0..THREADS)
        .flat_map(|thread| {
            let (offering, receiving) = (pool.clone(), pool.clone());
            let (start, gate) = (Arc::clone(&begin), Arc::clone(&begin));
            let produce = thread::spawn(move || {
                start.wait();
                let once = OfferOptions {
                    retention: Some(Retention::Released(1)),
                    ..OfferOptions::default()
                };
                let of = thread.to_string();
                for i in 0..EACH {
                    let name = format!("{thread}-{i}");
                    let payload = vec![i as u8; if i.is_multiple_of(3) { 10_000 } else { 100 }];
                    let attributes = [("name", name.as_str()), ("thread", of.as_str())];
                    offering.offer_with(attributes, &payload, once.clone()).unwrap();
                }
            });
            let consume = thread::spawn(move || {
                let mut follow = receiving.follow(&format!("thread={thread}")).unwrap();
                gate.wait();
                let mut seen = 0;
                while seen < EACH {
                    if let Some(Item::Object(object)) = follow.next_item().unwrap() {
                        assert_eq!(object.get("name").unwrap(), format!("{thread}-{seen}"));
                        assert!(object.iter().all(|&byte| byte == seen as u8));
                        seen += 1;
                    }
                }
            });
            [produce, consume]
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
}

#[test]
fn two_full_directions_do_not_block_each_other() {
    let pool = pool();
    let mut follow = pool
        .follow_with(
            "",
            junctura::FollowOptions {
                window: Some(100_000),
                ..Default::default()
            },
        )
        .unwrap();
    // Far more than both sockets hold, on one connection that nobody reads meanwhile.
    let mut pipeline = pool.pipeline(100_000).unwrap();
    for i in 0..20_000 {
        pipeline
            .offer([("name", format!("{i:05}").as_str())], &[1; 1000])
            .unwrap();
    }
    pipeline.flush().unwrap();
    let mut seen = 0;
    while seen < 20_000 {
        seen += usize::from(matches!(follow.next_item().unwrap(), Some(Item::Object(_))));
    }
}

#[test]
fn acknowledgements_behind_one_at_which_the_program_panics_are_not_lost() {
    let pool = pool();
    let (sender, receiver) = std::sync::mpsc::channel();
    let mut pipeline = pool.pipeline(64).unwrap().on_ack(move |ack| {
        sender.send(ack.number).unwrap();
        assert_ne!(ack.number, 1, "the program's own failure");
    });
    for name in ["a", "b", "c", "d"] {
        pipeline.offer([("name", name)], b"").unwrap();
    }
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| pipeline.flush()));
    assert!(panicked.is_err());
    pipeline.flush().unwrap();
    assert_eq!(pipeline.outstanding(), 0);
    drop(pipeline);
    assert_eq!(receiver.iter().collect::<Vec<_>>(), [0, 1, 2, 3]);
}
