//! One thread waits, and another ends what it waits for: the wait ends, and nothing else waits for it.

use std::thread;

use crate::asleep::spawn_until_asleep;
use junctura::{Awaited, BundleOptions, Code, Item, Pool, Result};

const NOTHING: [(&str, &str); 0] = [];

fn pool() -> Pool {
    Pool::builder().schema("free").open().unwrap()
}

fn code<T>(outcome: Result<T>) -> Code {
    outcome.err().unwrap().code()
}

/// What a wait for a bundle comes to while `end` is called: of the thread that reads, and of one that sleeps beside it.
fn codes_while(end: impl Fn(&Pool, junctura::Bundle) + Sync) -> Vec<Code> {
    let mut codes = Vec::new();
    for is_beside in [false, true] {
        let pool = pool();
        let bundle = pool.open_bundle("b", NOTHING, BundleOptions::default()).unwrap();
        let waiting = bundle.begin_wait();
        thread::scope(|scope| {
            let reader = is_beside.then(|| spawn_until_asleep(scope, || pool.demand("name=last", None).unwrap().len()));
            let waiter = spawn_until_asleep(scope, || code(waiting.wait()));
            end(&pool, bundle);
            codes.push(waiter.join().unwrap());
            pool.offer([("name", "last")], b"last").unwrap();
            assert!(reader.is_none_or(|reader| reader.join().unwrap() == 4));
        });
    }
    codes
}

#[test]
fn a_bundle_that_is_aborted_while_a_thread_waits_for_it() {
    let codes = codes_while(|_, bundle| {
        bundle.abort().unwrap();
    });
    assert_eq!(codes, [Code::Closed; 2]);
}

#[test]
fn a_bundle_that_is_left_while_a_thread_waits_for_it() {
    let codes = codes_while(|_, bundle| bundle.leave().unwrap());
    assert_eq!(codes, [Code::Closed; 2]);
}

#[test]
fn a_bundle_that_is_dropped_while_a_thread_waits_for_it() {
    let codes = codes_while(|_, bundle| drop(bundle));
    assert_eq!(codes, [Code::Closed; 2]);
}

#[test]
fn a_bundle_that_is_sealed_while_threads_wait_for_it() {
    let pool = pool();
    let bundle = pool.bundle().unwrap();
    bundle.offer([("name", "a")], b"").unwrap();
    thread::scope(|scope| {
        let waiters = [(); 3].map(|()| spawn_until_asleep(scope, || bundle.wait(None).unwrap().objects()));
        let beside = spawn_until_asleep(scope, || pool.wait(&[&bundle], None).unwrap());
        assert_eq!(bundle.seal().unwrap().objects(), 1);
        assert_eq!(waiters.map(|waiter| waiter.join().unwrap()), [1; 3]);
        assert_eq!(beside.join().unwrap(), [0]);
    });
}

#[test]
fn a_bundle_that_is_aborted_while_a_thread_waits_for_it_beside_others() {
    let pool = pool();
    let bundle = pool.bundle().unwrap();
    thread::scope(|scope| {
        let waiter = spawn_until_asleep(scope, || pool.wait(&[&bundle], None).unwrap());
        bundle.abort().unwrap();
        assert_eq!(waiter.join().unwrap(), [0]);
    });
}

#[test]
fn a_follow_that_is_stopped_while_a_thread_waits_for_it_beside_others() {
    let pool = pool();
    let mut follow = pool.follow("").unwrap();
    assert!(matches!(follow.next_item().unwrap(), Some(Item::Live)));
    let awaiting = follow.awaiting();
    thread::scope(|scope| {
        let waiter = spawn_until_asleep(scope, || pool.wait(&[&awaiting], None).unwrap());
        follow.stop().unwrap();
        assert_eq!(waiter.join().unwrap(), [0]);
        // What was ended stays ready, although others use its place.
        let later = pool.follow("").unwrap();
        assert_eq!(pool.wait(&[&awaiting], None).unwrap(), [0]);
        drop(later);
    });
}

#[test]
fn memory_that_comes_free_while_a_thread_reads_for_it() {
    let pool = Pool::builder().schema("free").budget_bytes(1 << 20).open().unwrap();
    let first = pool.allocate(600_000).unwrap();
    thread::scope(|scope| {
        let waiter = spawn_until_asleep(scope, || pool.allocate(600_000).unwrap().len());
        drop(first);
        assert_eq!(waiter.join().unwrap(), 600_000);
    });
}
