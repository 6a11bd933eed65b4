//! Waiting on several things at once.

use std::os::fd::AsFd;
use std::thread;
use std::time::Duration;

use junctura::{Awaited, Code, DemandOptions, EventKind, Follow, Item, OfferOptions, Pool, Retention, Timer};
use junctura_transport::PollInterest;

fn pool() -> Pool {
    Pool::builder().schema("free").open().unwrap()
}

fn offer(pool: &Pool, name: &str) {
    pool.offer([("name", name)], name.as_bytes()).unwrap();
}

/// A follow that has said that it is live.
fn live(pool: &Pool, selector: &str) -> Follow {
    let mut follow = pool.follow(selector).unwrap();
    while !follow.is_live() {
        follow.next_item().unwrap();
    }
    follow
}

#[test]
fn whoever_has_something_is_named() {
    let pool = pool();
    let mut winds = live(&pool, "name=u/v");
    let mut orography = pool.begin_demand("name=orography", DemandOptions::default()).unwrap();
    let mut events = pool.subscribe("name=t", &[EventKind::Offered]).unwrap();
    assert_eq!(
        pool.wait(&[&winds, &orography, &events], Some(Duration::ZERO))
            .unwrap_err()
            .code(),
        Code::Timeout
    );

    offer(&pool, "t");
    assert_eq!(pool.wait(&[&winds, &orography, &events], None).unwrap(), [2]);
    // It stays so until it is taken.
    assert_eq!(pool.wait(&[&winds, &orography, &events], None).unwrap(), [2]);
    assert!(events.try_next().unwrap().is_some());

    assert!(orography.try_take().unwrap().is_none());
    offer(&pool, "orography");
    assert_eq!(pool.wait(&[&winds, &orography, &events], None).unwrap(), [1]);
    assert_eq!(&orography.try_take().unwrap().unwrap()[..], b"orography");
    // Its answer was taken: there is nothing to wait for.
    assert_eq!(pool.wait(&[&orography], None).unwrap(), [0]);
    assert!(orography.try_take().unwrap().is_none());
    assert_eq!(orography.wait().unwrap_err().code(), Code::NotFound);

    offer(&pool, "u");
    offer(&pool, "v");
    assert_eq!(pool.wait(&[&winds, &events], None).unwrap(), [0]);
    for name in ["u", "v"] {
        let Some(Item::Object(object)) = winds.try_next().unwrap() else {
            panic!("no object")
        };
        assert_eq!(object.get("name"), Some(name));
    }
    assert!(winds.try_next().unwrap().is_none());
}

#[test]
fn a_timer_ends_a_wait_in_which_nothing_comes() {
    let pool = pool();
    let follow = live(&pool, "name=never");
    let mut timer = Timer::after(Duration::from_millis(2));
    assert_eq!(pool.wait(&[&follow, &timer], None).unwrap(), [1]);
    assert!(timer.ring());
    assert_eq!(pool.wait(&[&timer], None).unwrap_err().code(), Code::InvalidArgument);
    assert_eq!(pool.wait(&[], None).unwrap_err().code(), Code::InvalidArgument);
}

#[test]
fn it_is_woken_while_another_thread_reads() {
    let pool = pool();
    let mut first = pool.begin_demand("name=first", DemandOptions::default()).unwrap();
    let mut second = pool.begin_demand("name=second", DemandOptions::default()).unwrap();
    thread::scope(|scope| {
        // One of both reads for both.
        let reader = scope.spawn(|| pool.demand("name=last", None).unwrap().len());
        let waiter = scope.spawn(|| {
            let mut names = Vec::new();
            while names.len() < 2 {
                for ready in pool.wait(&[&first, &second], None).unwrap() {
                    let demand = [&mut first, &mut second].into_iter().nth(ready).unwrap();
                    names.extend(
                        demand
                            .try_take()
                            .unwrap()
                            .map(|object| object.get("name").unwrap().to_owned()),
                    );
                }
            }
            names.sort();
            names.dedup();
            names
        });
        for name in ["second", "first"] {
            offer(&pool, name);
        }
        assert_eq!(waiter.join().unwrap(), ["first", "second"]);
        offer(&pool, "last");
        assert_eq!(reader.join().unwrap(), 4);
    });
}

#[test]
fn what_is_of_another_pool_is_refused() {
    let (here, there) = (pool(), pool());
    let follow = there.follow("").unwrap();
    let refused = here.wait(&[&Timer::after(Duration::ZERO), &follow.awaiting()], None);
    let error = refused.unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument);
    assert!(error.to_string().contains("number 1"), "{error}");
}

#[test]
fn a_demand_that_is_dropped_is_given_up_and_one_that_fails_says_so() {
    let pool = pool();
    drop(pool.begin_demand("name=t", DemandOptions::default()).unwrap());
    let once = OfferOptions {
        retention: Some(Retention::Released(1)),
        ..OfferOptions::default()
    };
    pool.offer_with([("name", "t")], b"", once).unwrap();
    // Nobody has taken it.
    assert_eq!(pool.list("name=t").unwrap().len(), 1);

    let at_once = DemandOptions {
        timeout: Some(Duration::ZERO),
        ..DemandOptions::default()
    };
    let mut absent = pool.begin_demand("name=absent", at_once).unwrap();
    assert_eq!(pool.wait(&[&absent], None).unwrap(), [0]);
    assert_eq!(absent.try_take().unwrap_err().code(), Code::NotFound);
    assert!(absent.try_take().unwrap().is_none());
}

#[test]
fn a_server_that_ends_ends_the_wait() {
    let pool = pool();
    let follow = pool.follow("name=never").unwrap();
    pool.close();
    let ended = pool.wait(&[&follow], Some(Duration::from_mins(1)));
    assert!(matches!(ended.unwrap_err().code(), Code::Closed | Code::Disconnected));
}

/// Takes objects in a loop that waits for the descriptor; gives how many.
fn take_in_a_loop(pool: &Pool, follow: &mut Follow, count: usize) -> usize {
    let descriptor = pool.descriptor().unwrap();
    let mut taken = 0;
    while taken < count {
        junctura_transport::wait(descriptor.as_fd(), PollInterest::READ).unwrap();
        while let Some(item) = follow.try_next().unwrap() {
            taken += usize::from(matches!(item, Item::Object(_)));
        }
    }
    taken
}

#[test]
fn a_loop_of_others_is_told_by_a_descriptor() {
    let pool = pool();
    let mut follow = live(&pool, "");
    offer(&pool, "before");
    thread::scope(|scope| {
        scope.spawn(|| (0..200).for_each(|number| offer(&Pool::connect(pool.url()).unwrap(), &number.to_string())));
        assert_eq!(take_in_a_loop(&pool, &mut follow, 201), 201);
    });
}

#[test]
fn a_loop_of_others_is_told_of_what_another_thread_has_read() {
    let pool = pool();
    let mut follow = live(&pool, "");
    thread::scope(|scope| {
        for number in 0..50 {
            let pool = &pool;
            // Each of them reads, or lets the others read, until its own object is there.
            scope.spawn(move || pool.demand(format!("name={number}").as_str(), None).unwrap().len());
        }
        scope.spawn(|| (0..50).for_each(|number| offer(&pool, &number.to_string())));
        assert_eq!(take_in_a_loop(&pool, &mut follow, 50), 50);
    });
}

#[test]
fn a_loop_of_others_is_told_of_the_end() {
    let pool = pool();
    let mut follow = live(&pool, "");
    let descriptor = pool.descriptor().unwrap();
    assert!(follow.try_next().unwrap().is_none());
    pool.close();
    junctura_transport::wait(descriptor.as_fd(), PollInterest::READ).unwrap();
    assert_eq!(follow.try_next().unwrap_err().code(), Code::Closed);
}

#[test]
fn what_comes_while_others_are_asked_is_told() {
    let pool = pool();
    let producer = Pool::connect(pool.url()).unwrap();
    let mut winds = live(&pool, "name=u1/u2/u3/u4");
    let mut waves = live(&pool, "name=swh");
    let mut events = pool.subscribe("name=none", &[EventKind::Offered]).unwrap();
    let descriptor = pool.descriptor().unwrap();
    let wait = || junctura_transport::wait(descriptor.as_fd(), PollInterest::READ).unwrap();
    let is_readable = || {
        let mut descriptors = [rustix::event::PollFd::new(&descriptor, rustix::event::PollFlags::IN)];
        rustix::event::poll(&mut descriptors, Some(&rustix::event::Timespec::default())).unwrap() == 1
    };
    for name in ["u1", "u2", "u3"] {
        while is_readable() {
            assert!(winds.try_next().unwrap().is_none());
            assert!(waves.try_next().unwrap().is_none());
            assert!(events.try_next().unwrap().is_none());
        }
        // It comes when the winds have been asked, and whoever is asked next reads it.
        offer(&producer, name);
        wait();
        assert!(waves.try_next().unwrap().is_none());
        assert!(events.try_next().unwrap().is_none());
        while winds.try_next().unwrap().is_none() {
            wait();
        }
    }

    // Whom the loop does not ask does not keep it awake.
    offer(&producer, "u4");
    wait();
    while is_readable() {
        assert!(waves.try_next().unwrap().is_none());
        assert!(events.try_next().unwrap().is_none());
    }
    offer(&producer, "swh");
    while waves.try_next().unwrap().is_none() {
        wait();
    }
    while winds.try_next().unwrap().is_none() {}
}
