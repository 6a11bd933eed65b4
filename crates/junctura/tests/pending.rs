//! Asking without waiting, as programs do whose thread serves a loop of its own.

use std::os::fd::AsFd;
use std::time::Duration;

use junctura::{
    Awaited, BundleOptions, Code, DemandOptions, Error, EventKind, FollowOptions, Item, OfferOptions, Pending, Pool,
    RequireOptions, Result, Retention, Target, WantedOptions, WithdrawOptions, binding,
};
use junctura_transport::PollInterest;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::asleep::spawn_until_asleep;

const LARGE: usize = 1 << 18;

fn pool() -> Pool {
    Pool::builder().schema("free").open().unwrap()
}

/// Looks whenever the descriptor says so, until `take` gives something.
fn until<T>(pool: &Pool, mut take: impl FnMut() -> Result<Option<T>>) -> Result<T> {
    let descriptor = pool.descriptor()?;
    loop {
        // What was read before the end of the connection is there to be taken.
        let looked = binding::look(pool);
        if let Some(taken) = take()? {
            return Ok(taken);
        }
        looked?;
        junctura_transport::wait(descriptor.as_fd(), PollInterest::READ)?;
    }
}

fn answer<T: Send + 'static>(pool: &Pool, mut pending: Pending<T>) -> Result<T> {
    until(pool, || pending.try_take())
}

fn offer(pool: &Pool, name: &str, bytes: usize) -> Result<u64> {
    let mut memory = pool.begin_allocate(bytes)?;
    let mut allocation = until(pool, || memory.try_take())?;
    allocation.fill(7);
    let offered = allocation.begin_offer([("name", name)], OfferOptions::default())?;
    Ok(answer(pool, offered)?.sequence)
}

#[test]
fn each_question_has_its_answer() {
    let pool = pool();
    let demand = pool.begin_demand("name=b", DemandOptions::default()).unwrap();
    let mut follow = answer(&pool, pool.begin_follow("", FollowOptions::default()).unwrap()).unwrap();
    let mut events = answer(&pool, pool.begin_subscribe("", &[EventKind::Offered]).unwrap()).unwrap();
    assert_eq!(offer(&pool, "a", 10).unwrap(), 1);
    assert_eq!(offer(&pool, "b", LARGE).unwrap(), 2);
    let object = answer(&pool, demand).unwrap();
    assert_eq!((object.len(), object[LARGE - 1]), (LARGE, 7));
    let mut names = Vec::new();
    while names.len() < 2 {
        let item = until(&pool, || binding::take_item(&mut follow)).unwrap();
        if let Item::Object(object) = item {
            names.push(object.get("name").unwrap().to_owned());
        }
    }
    assert_eq!(names, ["a", "b"]);
    assert_eq!(until(&pool, || binding::take_event(&mut events)).unwrap().bytes, 10);
    assert!(answer(&pool, pool.begin_stat().unwrap()).unwrap().contains("objects"));
    assert_eq!(
        answer(
            &pool,
            pool.begin_wanted([("name", "c")], WantedOptions::default()).unwrap()
        )
        .unwrap(),
        1
    );
    answer(&pool, follow.begin_stop().unwrap()).unwrap();
    assert!(follow.is_over());
    follow.begin_stop().unwrap().wait().unwrap(); // it has ended
    let target = Target::key([("name", "a")]);
    let withdrawn = pool.begin_withdraw(target, WithdrawOptions::default()).unwrap();
    assert_eq!(answer(&pool, withdrawn).unwrap(), 1);
    drop(object);
    let withdrawn = pool.begin_withdraw_all("", WithdrawOptions::default()).unwrap();
    assert_eq!(answer(&pool, withdrawn).unwrap(), 1);
    answer(&pool, events.begin_stop().unwrap()).unwrap();
}

#[test]
fn errors_come_once_with_the_answer() {
    let pool = pool();
    let wrong = pool
        .begin_demand("name==", DemandOptions::default())
        .and_then(|pending| answer(&pool, pending));
    assert_eq!(wrong.unwrap_err().code(), Code::InvalidSelector);
    let timeout = Some(Duration::from_millis(1));
    let options = DemandOptions {
        timeout,
        ..DemandOptions::default()
    };
    let mut late = pool.begin_demand("name=a", options).unwrap();
    let said: Error = until(&pool, || late.try_take()).unwrap_err();
    assert_eq!(said.code(), Code::Timeout);
    assert!(late.try_take().unwrap().is_none(), "it was answered");
    offer(&pool, "a", 1).unwrap();
    assert_eq!(offer(&pool, "a", 1).unwrap_err().code(), Code::AlreadyExists);
    assert_eq!(offer(&pool, "b", usize::MAX / 4).unwrap_err().code(), Code::TooLarge);
}

#[test]
fn what_came_and_was_not_taken_is_owed_again() {
    let pool = pool();
    let kept = answer(&pool, pool.begin_require("", RequireOptions::default()).unwrap()).unwrap();
    let pending = kept.begin_demand("name=a", DemandOptions::default()).unwrap();
    let options = OfferOptions {
        retention: Some(Retention::Released(1)),
        ..OfferOptions::default()
    };
    pool.offer_with([("name", "a")], &vec![1; LARGE], options).unwrap();
    until(&pool, || {
        Ok((binding::ready(&pool, &[pending.awaiting()])? == [0]).then_some(()))
    })
    .unwrap();
    // It lies here, and nobody has it in his hands.
    drop(pending);
    assert_eq!(kept.demand("name=a", DemandOptions::default()).unwrap().len(), LARGE);
}

#[test]
fn what_is_given_up_leaves_nothing() {
    let pool = pool();
    let before = pool.stat().unwrap();
    drop(pool.begin_demand("name=a", DemandOptions::default()).unwrap());
    drop(pool.begin_follow("name=a", FollowOptions::default()).unwrap());
    drop(pool.begin_require("name=a", RequireOptions::default()).unwrap());
    drop(pool.begin_subscribe("", &[]).unwrap());
    let standing = |stat: &str| stat.split("\"interests\"").nth(1).unwrap()[..40].to_owned();
    assert_eq!(standing(&pool.stat().unwrap()), standing(&before));
    assert_eq!(pool.offer([("name", "a")], b"").unwrap().sequence, 1);
}

#[test]
fn a_bundle_is_sealed_aborted_and_left() {
    let pool = pool();
    let open = |path: Option<&str>| {
        let none: [(&str, &str); 0] = [];
        let opened = match path {
            None => pool.begin_bundle(),
            Some(path) => pool.begin_open_bundle(path, none, BundleOptions::default()),
        };
        answer(&pool, opened.unwrap()).unwrap()
    };
    let bundle = open(None);
    for (name, bytes) in [("b", LARGE), ("a", 3)] {
        let mut memory = bundle.begin_allocate(bytes).unwrap();
        let allocation = until(&pool, || memory.try_take()).unwrap();
        let staged = bundle.begin_offer_allocation(allocation, [("name", name)], OfferOptions::default());
        answer(&pool, staged.unwrap()).unwrap();
    }
    assert!(binding::take_completed(&bundle).unwrap().is_none());
    let completed = answer(&pool, bundle.begin_seal().unwrap()).unwrap();
    assert_eq!(completed.objects(), 2);
    assert_eq!(answer(&pool, bundle.begin_wait()).unwrap(), completed);
    let given_up = open(Some("given/up"));
    assert_eq!(answer(&pool, given_up.begin_abort().unwrap()).unwrap(), 0);
    assert_eq!(binding::take_completed(&given_up).unwrap_err().code(), Code::Closed);
    let left = open(Some("left"));
    answer(&pool, left.begin_leave().unwrap()).unwrap();
    assert_eq!(binding::take_completed(&left).unwrap_err().code(), Code::Closed);
}

#[test]
fn memory_that_is_freed_here_is_memory() {
    let pool = Pool::builder().schema("free").budget_bytes(8 << 20).open().unwrap();
    let mut kept = Vec::new();
    let mut memory = pool.begin_allocate(1 << 20).unwrap();
    loop {
        binding::look(&pool).unwrap();
        // Until the server has answered every lease that it can: the last one stays.
        match memory.try_take().unwrap() {
            Some(allocation) => {
                kept.push(allocation);
                memory = pool.begin_allocate(1 << 20).unwrap();
            }
            None if kept.len() == 8 => break,
            None => junctura_transport::wait(pool.descriptor().unwrap().as_fd(), PollInterest::READ)
                .map(|_| ())
                .unwrap(),
        }
    }
    kept.pop();
    assert_eq!(until(&pool, || memory.try_take()).unwrap().len(), 1 << 20);
}

#[test]
fn the_end_of_the_server_is_an_answer() {
    let pool = pool();
    let mut demand = pool.begin_demand("name=a", DemandOptions::default()).unwrap();
    let stop = pool.begin_stop(Some(Duration::ZERO)).unwrap();
    answer(&pool, stop).unwrap();
    // It takes nothing new, and says so; then it is gone.
    assert_eq!(until(&pool, || demand.try_take()).unwrap_err().code(), Code::Closed);
    let told = loop {
        if let Err(error) = binding::look(&pool) {
            break error;
        }
        junctura_transport::wait(pool.descriptor().unwrap().as_fd(), PollInterest::READ).unwrap();
    };
    assert_eq!(told.code(), Code::Closed);
    assert_eq!(pool.begin_stat().unwrap_err().code(), Code::Closed);
}

/// Whether the descriptor is readable now.
fn is_readable(pool: &Pool) -> bool {
    let descriptor = pool.descriptor().unwrap();
    let mut readable = [PollFd::new(&descriptor, PollFlags::IN)];
    poll(&mut readable, Some(&Timespec::default())).unwrap() > 0
}

#[test]
fn a_loop_that_waits_for_a_bundle_sleeps_until_something_comes() {
    let pool = pool();
    let bundle = pool.bundle().unwrap();
    let mut visible = bundle.begin_wait();
    assert!(is_readable(&pool), "what came before is to be found");
    assert!(visible.try_take().unwrap().is_none());
    assert!(!is_readable(&pool));
    assert!(bundle.completed().unwrap().is_none() && !is_readable(&pool));
    bundle.seal().unwrap();
    assert!(is_readable(&pool));
    assert_eq!(visible.try_take().unwrap().unwrap().objects(), 0);
}

#[test]
fn memory_is_waited_for_beside_others_until_some_comes_free() {
    let pool = Pool::builder().schema("free").budget_bytes(1 << 20).open().unwrap();
    let first = pool.allocate(600_000).unwrap();
    let mut second = pool.begin_allocate(600_000).unwrap();
    assert!(second.try_take().unwrap().is_none());
    assert_eq!(
        pool.wait(&[&second], Some(Duration::ZERO)).unwrap_err().code(),
        Code::Timeout
    );
    let _descriptor = pool.descriptor().unwrap();
    assert!(second.try_take().unwrap().is_none() && !is_readable(&pool));
    drop(first);
    assert!(is_readable(&pool));
    assert_eq!(pool.wait(&[&second], None).unwrap(), [0]);
    assert_eq!(second.try_take().unwrap().unwrap().len(), 600_000);
}

#[test]
fn memory_that_another_thread_frees_ends_a_wait_for_it() {
    let pool = Pool::builder().schema("free").budget_bytes(1 << 20).open().unwrap();
    let first = pool.allocate(600_000).unwrap();
    let mut second = pool.begin_allocate(600_000).unwrap();
    assert!(second.try_take().unwrap().is_none());
    let awaiting = second.awaiting();
    std::thread::scope(|scope| {
        let waiter = spawn_until_asleep(scope, || pool.wait(&[&awaiting], None).unwrap());
        drop(first);
        assert_eq!(waiter.join().unwrap(), [0]);
    });
    assert_eq!(second.wait().unwrap().len(), 600_000);
}

#[test]
fn an_answer_that_takes_long_is_made_by_a_thread_where_the_caller_must_not_block() {
    const BYTES: usize = 32 << 20;
    let pool = Pool::builder().schema("free").checked(true).open().unwrap();
    pool.offer([("name", "a")], &vec![7; BYTES]).unwrap();
    let demand = || pool.begin_demand("name=a", DemandOptions::default()).unwrap();

    let mut beside_others = demand();
    let object = loop {
        assert_eq!(pool.wait(&[&beside_others], None).unwrap(), [0]);
        if let Some(object) = beside_others.try_take().unwrap() {
            break object;
        }
    };
    assert_eq!(object.len(), BYTES);
    assert!(beside_others.try_take().unwrap().is_none(), "it was taken");
    assert_eq!(answer(&pool, demand()).unwrap().len(), BYTES);
    assert_eq!(
        demand().wait_within(Duration::from_mins(10)).unwrap().unwrap().len(),
        BYTES
    );
}
