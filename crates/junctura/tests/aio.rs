//! The pool for tasks, on several runtimes, and with futures that are dropped at every stage.

mod driving;
#[path = "common/runtime.rs"]
pub(crate) mod runtime;
#[path = "common/tasks.rs"]
pub(crate) mod tasks;

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::Duration;

use futures_util::StreamExt as _;
use junctura::{
    ArrayPart, ArrayPiece, BundleOptions, Code, Consumers, DemandOptions, EventKind, FollowOptions, Item, Layout,
    ListOptions, OfferOptions, Pool, PoolBuilder, RequireOptions, Retention, Target, WantedOptions, WithdrawOptions,
    binding,
};
use runtime::{Reactor, block_on};
use rustix::event::{PollFd, PollFlags, poll};
use tasks::{listed, next_object, offer, one_thread};

const LARGE: usize = 1 << 18;

fn free() -> PoolBuilder {
    Pool::builder().schema("free")
}

/// Runs it with a pool of its own on each runtime: tokio's with one thread and with several, one of the tests with a reactor,
/// and an executor without any.
fn everywhere(body: impl AsyncFn(Pool)) {
    everywhere_with(free, body);
}

fn everywhere_with(builder: impl Fn() -> PoolBuilder, body: impl AsyncFn(Pool)) {
    let many = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    for runtime in [one_thread(), many] {
        runtime.block_on(async { body(builder().begin_open().unwrap().await.unwrap()).await });
    }
    block_on(async {
        let pool = builder().begin_open().unwrap().await.unwrap();
        let driver = pool.driver().unwrap();
        let reactor = Reactor::new(driver.descriptor());
        let driving = async move {
            reactor.readable().await;
            while driver.look() {
                reactor.readable().await;
            }
        };
        let driving = thread::spawn(|| block_on(driving));
        body(pool).await;
        driving.join().unwrap();
    });
    let pool = builder().open().unwrap();
    let driver = pool.driver().unwrap();
    let thread = thread::spawn(|| driver.run());
    block_on(body(pool));
    thread.join().unwrap();
}

fn polled_once<T>(future: Pin<&mut impl Future<Output = T>>) -> Option<T> {
    match future.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => Some(done),
        Poll::Pending => None,
    }
}

/// Polls it once; it has to sleep.
fn sleeps(future: Pin<&mut impl Future>) {
    assert!(polled_once(future).is_none());
}

fn at_once() -> DemandOptions<'static> {
    DemandOptions {
        timeout: Some(Duration::ZERO),
        ..DemandOptions::default()
    }
}

/// Demands, follows and requirements that the server knows of.
async fn standing(pool: &Pool) -> String {
    let stat = pool.begin_stat().unwrap().await.unwrap();
    let (_, rest) = stat.split_once("\"standing\":").unwrap();
    rest.split(',').next().unwrap().to_owned()
}

#[test]
fn each_verb_is_awaited() {
    everywhere(async |pool| {
        let mut events = pool.begin_subscribe("", &[EventKind::Offered]).unwrap().await.unwrap();
        assert_eq!(offer(&pool, "a", 10).await.unwrap(), 1);
        assert_eq!(offer(&pool, "b", LARGE).await.unwrap(), 2);
        let object = pool
            .begin_demand("name=b", DemandOptions::default())
            .unwrap()
            .await
            .unwrap();
        assert_eq!((object.len(), object[LARGE - 1]), (LARGE, 7));
        assert_eq!(events.begin_next().await.unwrap().unwrap().bytes, 10);
        assert_eq!(events.next().await.unwrap().unwrap().bytes, LARGE as u64);

        let twice = pool
            .begin_offer([("name", "a")], b"", OfferOptions::default())
            .unwrap()
            .await
            .unwrap_err();
        assert_eq!(twice.code(), Code::AlreadyExists);
        let absent = pool.begin_demand("name=x", at_once()).unwrap().await.unwrap_err();
        assert_eq!(absent.code(), Code::NotFound);
        let wrong = pool
            .begin_follow("name==", FollowOptions::default())
            .unwrap()
            .await
            .unwrap_err();
        assert_eq!(wrong.code(), Code::InvalidSelector);

        let names = listed(&pool).await;
        assert_eq!(names.iter().map(junctura::Entry::bytes).sum::<u64>(), 10 + LARGE as u64);
        assert_eq!(
            pool.begin_wanted([("name", "c")], WantedOptions::default())
                .unwrap()
                .await
                .unwrap(),
            0
        );
        let bundle = pool.begin_bundle().unwrap().await.unwrap();
        assert_eq!(pool.begin_bundles("", None).unwrap().await.unwrap().len(), 1);
        bundle.begin_leave().unwrap().await.unwrap();
        assert_eq!(bundle.begin_wait().await.unwrap_err().code(), Code::Closed);

        drop(object);
        pool.begin_flush().unwrap().await.unwrap();
        pool.begin_sync().unwrap().await.unwrap();
        let key = Target::key([("name", "a")]);
        assert_eq!(
            pool.begin_withdraw(key, WithdrawOptions::default())
                .unwrap()
                .await
                .unwrap(),
            1
        );
        assert_eq!(
            pool.begin_withdraw_all("", WithdrawOptions::default())
                .unwrap()
                .await
                .unwrap(),
            1
        );
        events.begin_stop().unwrap().await.unwrap();
        assert_eq!(standing(&pool).await, "0");
    });
}

#[test]
fn a_follow_that_ends_by_itself_is_left_early() {
    everywhere(async |pool| {
        for number in 0..3 {
            offer(&pool, &format!("{number}"), 100).await.unwrap();
        }
        let until_live = FollowOptions {
            until_live: true,
            ..FollowOptions::default()
        };
        for taken in 0..3 {
            let mut follow = pool.begin_follow("", until_live.clone()).unwrap().await.unwrap();
            for _ in 0..taken {
                next_object(&mut follow).await;
            }
            // The server has ended it by now.
            pool.begin_sync().unwrap().await.unwrap();
            follow.begin_stop().unwrap().await.unwrap();
        }
    });
}

#[test]
fn streams_end_and_go_on() {
    everywhere(async |pool| {
        for number in 0..20 {
            offer(&pool, &format!("{number:02}"), 100).await.unwrap();
        }
        let until_live = FollowOptions {
            until_live: true,
            ..FollowOptions::default()
        };
        let mut follow = pool.begin_follow("", until_live).unwrap().await.unwrap();
        let mut names = Vec::new();
        while let Some(item) = follow.next().await {
            if let Item::Object(object) = item.unwrap() {
                names.push(object.get("name").unwrap().to_owned());
            }
        }
        assert!(names.len() == 20 && names.is_sorted() && follow.is_over());
        assert!(follow.next().await.is_none());
        let cursor = follow.cursor().unwrap().to_string();
        let resumed = FollowOptions {
            cursor: Some(cursor),
            ..FollowOptions::default()
        };
        let mut follow = pool.begin_follow("", resumed).unwrap().await.unwrap();
        offer(&pool, "20", 100).await.unwrap();
        assert_eq!(next_object(&mut follow).await.get("name"), Some("20"));
        follow.begin_stop().unwrap().await.unwrap();
        let mut pages = pool.begin_list("", ListOptions::default()).unwrap().await.unwrap();
        let mut entries = 0;
        while let Some(page) = pages.next().await {
            entries += page.unwrap().len();
        }
        assert_eq!(entries, 21);
        assert!(pages.begin_next().await.unwrap().is_none());
    });
}

#[test]
fn a_list_has_many_pages() {
    everywhere(async |pool| {
        let names: Vec<String> = (0..8_000).map(|number| format!("{number:0200}")).collect();
        let objects = names.iter().map(|name| ([("name", name.as_str())], b""));
        assert_eq!(pool.begin_offer_many(objects).await.unwrap().len(), names.len());
        let listed = listed(&pool).await;
        assert!(listed.iter().map(|entry| entry.get("name").unwrap()).eq(&names));
    });
}

#[test]
fn what_came_and_was_not_taken_is_owed_again() {
    everywhere(async |pool| {
        let kept = pool
            .begin_require("", RequireOptions::default())
            .unwrap()
            .await
            .unwrap();
        let once = OfferOptions {
            retention: Some(Retention::Released(1)),
            ..OfferOptions::default()
        };
        {
            let mut demand = pin!(kept.begin_demand("name=a", DemandOptions::default()).unwrap());
            sleeps(demand.as_mut());
            pool.begin_offer([("name", "a")], &vec![1; LARGE], once)
                .unwrap()
                .await
                .unwrap();
            // The server answers in order: it lies here, and nobody has it in his hands.
            pool.begin_sync().unwrap().await.unwrap();
        }
        assert_eq!(
            kept.begin_demand("name=a", DemandOptions::default())
                .unwrap()
                .await
                .unwrap()
                .len(),
            LARGE
        );
    });
}

#[test]
fn a_member_that_is_cancelled_leaves_its_share_to_others() {
    everywhere(async |pool| {
        let one = FollowOptions {
            group: Some("workers".into()),
            window: Some(1),
            ..FollowOptions::default()
        };
        let mut first = pool.begin_follow("", one.clone()).unwrap().await.unwrap();
        let joins = FollowOptions {
            group: None,
            join: Some("workers".to_owned()),
            ..one
        };
        let mut second = pool.begin_follow("", joins).unwrap().await.unwrap();
        assert!(matches!(first.begin_next().await.unwrap(), Some(Item::Live)));
        assert!(matches!(second.begin_next().await.unwrap(), Some(Item::Live)));
        sleeps(pin!(first.begin_next()));
        offer(&pool, "a", 10).await.unwrap();
        offer(&pool, "b", 10).await.unwrap();
        pool.begin_sync().unwrap().await.unwrap();
        // The wait was given up, and the item is still this member's: the next wait gives it.
        let held = next_object(&mut first).await;
        assert_eq!((held.get("name"), held.redelivered()), (Some("a"), false));
        drop(held);
        assert_eq!(next_object(&mut second).await.get("name"), Some("b"));
        offer(&pool, "c", 10).await.unwrap();
        pool.begin_sync().unwrap().await.unwrap();
        drop(first);
        let moved = next_object(&mut second).await;
        assert_eq!(
            (moved.get("name"), moved.redelivered()),
            (Some("c"), false),
            "nobody had seen it"
        );
    });
}

#[test]
fn what_is_given_up_leaves_nothing() {
    everywhere(async |pool| {
        sleeps(pin!(pool.begin_demand("name=a", DemandOptions::default()).unwrap()));
        // Answered by then or not.
        drop(polled_once(pin!(
            pool.begin_follow("name=a", FollowOptions::default()).unwrap()
        )));
        drop(polled_once(pin!(
            pool.begin_require("name=a", RequireOptions::default()).unwrap()
        )));
        drop(polled_once(pin!(pool.begin_subscribe("", &[]).unwrap())));
        drop(polled_once(pin!(
            pool.begin_open_bundle("given/up", [("space", "x")], BundleOptions::default())
                .unwrap()
        )));
        drop(
            pool.begin_follow("name=a", FollowOptions::default())
                .unwrap()
                .await
                .unwrap(),
        );
        drop(
            pool.begin_require("name=a", RequireOptions::default())
                .unwrap()
                .await
                .unwrap(),
        );
        drop(pool.begin_subscribe("", &[]).unwrap().await.unwrap());
        drop(pool.begin_bundle().unwrap().await.unwrap());
        assert_eq!(standing(&pool).await, "0");
        assert!(
            pool.begin_bundles("", None)
                .unwrap()
                .await
                .unwrap()
                .iter()
                .all(|bundle| bundle.openers == 0)
        );
        assert_eq!(offer(&pool, "a", 10).await.unwrap(), 1);
    });
}

/// A future that sleeps and is not polled for a while keeps nobody from being woken.
#[test]
fn who_is_not_polled_starves_nobody() {
    everywhere(async |pool| {
        let mut forgotten = pin!(pool.begin_demand("name=a", DemandOptions::default()).unwrap());
        sleeps(forgotten.as_mut());
        offer(&pool, "a", LARGE).await.unwrap();
        offer(&pool, "b", LARGE).await.unwrap();
        assert_eq!(
            pool.begin_demand("name=b", DemandOptions::default())
                .unwrap()
                .await
                .unwrap()
                .len(),
            LARGE
        );
        assert_eq!(forgotten.await.unwrap().len(), LARGE);
    });
}

#[test]
fn an_offer_that_waits_for_memory_is_made_whole_or_not_at_all() {
    everywhere_with(
        || free().budget_bytes(8 << 20).offer_timeout(None),
        async |pool| {
            let mut offered = 0;
            loop {
                let name = offered.to_string();
                let mut offer = pin!(offer(&pool, &name, 1 << 20));
                let limit = pin!(until_it_waits(&pool));
                match first(offer.as_mut(), limit).await {
                    Some(made) => _ = made.unwrap(),
                    None => break,
                }
                offered += 1;
            }
            assert_eq!(listed(&pool).await.len(), offered, "the last one is not there");
            pool.begin_withdraw_all("name=0", WithdrawOptions::default())
                .unwrap()
                .await
                .unwrap();
            offer(&pool, "last", 1 << 20).await.unwrap();
            assert_eq!(listed(&pool).await.len(), offered);
        },
    );
}

/// Returns when a lease waits for memory.
async fn until_it_waits(pool: &Pool) {
    while !pool
        .begin_stat()
        .unwrap()
        .await
        .unwrap()
        .contains("\"leases_waiting\":1")
    {}
}

/// The outcome of the first, unless the second ends before.
async fn first<T>(
    mut one: Pin<&mut impl Future<Output = T>>,
    mut other: Pin<&mut impl Future<Output = ()>>,
) -> Option<T> {
    std::future::poll_fn(|cx| match one.as_mut().poll(cx) {
        Poll::Ready(done) => Poll::Ready(Some(done)),
        Poll::Pending => other.as_mut().poll(cx).map(|()| None),
    })
    .await
}

#[test]
fn memory_that_is_freed_is_waited_for() {
    everywhere_with(
        || free().budget_bytes(4 << 20),
        async |pool| {
            let mut kept = Vec::new();
            let mut next = Box::pin(pool.begin_allocate(1 << 20).unwrap());
            loop {
                let limit = pin!(until_it_waits(&pool));
                match first(next.as_mut(), limit).await {
                    Some(memory) => kept.push(memory.unwrap()),
                    None => break,
                }
                next = Box::pin(pool.begin_allocate(1 << 20).unwrap());
            }
            assert!(!kept.is_empty());
            kept.pop();
            assert_eq!(next.await.unwrap().len(), 1 << 20);
        },
    );
}

/// What is long in the making is made beside the runtime; to be cancelled meanwhile loses nothing.
#[test]
fn what_takes_long_is_done_beside() {
    let folder = tempfile::tempdir().unwrap();
    let spilling = || {
        free()
            .budget_bytes(2 << 20)
            .spill(folder.path(), Some(64 << 20))
            .checked(true)
    };
    everywhere_with(spilling, async |pool| {
        let _kept = pool
            .begin_require("", RequireOptions::default())
            .unwrap()
            .await
            .unwrap();
        for number in 0..16 {
            offer(&pool, &format!("{number:02}"), (1 << 20) + 1).await.unwrap();
        }
        let mut follow = pool.begin_follow("", FollowOptions::default()).unwrap().await.unwrap();
        for number in 0..16 {
            // Wherever it is when it is given up: on its way, or in the making. It may be there already.
            let made = { polled_once(pin!(follow.begin_next())) };
            let object = match made {
                Some(Ok(Some(Item::Object(object)))) => object,
                _ => next_object(&mut follow).await,
            };
            assert_eq!(object.get("name"), Some(format!("{number:02}").as_str()));
            assert!(object.len() == (1 << 20) + 1 && object.iter().all(|&byte| byte == 7));
        }
        drop(follow);
        {
            let mut given_up = pin!(pool.begin_demand("name=03", DemandOptions::default()).unwrap());
            if polled_once(given_up.as_mut()).is_none() {
                pool.begin_sync().unwrap().await.unwrap();
                polled_once(given_up.as_mut());
            }
        }
        assert_eq!(
            pool.begin_demand("name=03", DemandOptions::default())
                .unwrap()
                .await
                .unwrap()
                .len(),
            (1 << 20) + 1
        );
    });
}

#[test]
fn bundles_are_filled_sealed_waited_for_and_aborted() {
    everywhere(async |pool| {
        let bundle = pool.begin_bundle().unwrap().await.unwrap();
        let staged = bundle
            .begin_offer([("name", "b")], &vec![1; LARGE], OfferOptions::default())
            .unwrap()
            .await
            .unwrap();
        let mut pipeline = bundle.pipeline(2).unwrap();
        for name in ["c", "d", "e"] {
            pipeline
                .begin_offer([("name", name)], b"small", OfferOptions::default())
                .await
                .unwrap();
        }
        pipeline.begin_flush().await.unwrap();
        assert!(listed(&pool).await.is_empty());
        let completed = bundle.begin_seal().unwrap().await.unwrap();
        assert_eq!((completed.objects(), completed.version(staged)), (4, completed.first()));

        let two = BundleOptions {
            members: Some(2),
            ..BundleOptions::default()
        };
        let mine = pool
            .begin_open_bundle("step/6", [("space", "x")], two)
            .unwrap()
            .await
            .unwrap();
        let mut visible = Box::pin(mine.begin_wait());
        sleeps(visible.as_mut());
        mine.begin_offer([("name", "f")], b"", OfferOptions::default())
            .unwrap()
            .await
            .unwrap();
        sleeps(visible.as_mut());
        mine.begin_offer([("name", "g")], b"", OfferOptions::default())
            .unwrap()
            .await
            .unwrap();
        assert_eq!(visible.await.unwrap().objects(), 2);

        let failed = pool.begin_bundled(async |bundle| {
            bundle
                .begin_offer([("name", "h")], b"", OfferOptions::default())?
                .await?;
            bundle
                .begin_offer([("unknown space", "h")], b"", OfferOptions::default())?
                .await?;
            pool.begin_demand("name=a", at_once())?.await.map(drop)
        });
        assert!(failed.await.is_err());
        assert_eq!(listed(&pool).await.len(), 6);
    });
}

#[test]
fn a_pipeline_keeps_to_its_window_and_tells_the_first_failure() {
    everywhere(async |pool| {
        offer(&pool, "7", 1).await.unwrap();
        let mut pipeline = pool.pipeline(4).unwrap();
        let mut told = 0;
        for number in 0..200 {
            let bytes = if number % 20 == 0 { LARGE } else { 100 };
            let name = number.to_string();
            // What was not sent, since an earlier one has failed, is sent then.
            while let Err(error) = pipeline
                .begin_offer([("name", name.as_str())], &vec![7; bytes], OfferOptions::default())
                .await
            {
                assert_eq!(error.code(), Code::AlreadyExists);
                told += 1;
            }
            assert!(pipeline.outstanding() <= 4);
        }
        pipeline.begin_flush().await.unwrap();
        assert_eq!((told, listed(&pool).await.len()), (1, 200));
    });
}

#[test]
fn requirements_are_told_what_they_will_not_get() {
    everywhere(async |pool| {
        let mut requirement = pool
            .begin_require("", RequireOptions::default())
            .unwrap()
            .await
            .unwrap();
        offer(&pool, "a", 10).await.unwrap();
        let mut gap = Box::pin(requirement.begin_gap());
        sleeps(gap.as_mut());
        let force = WithdrawOptions {
            force: true,
            ..WithdrawOptions::default()
        };
        pool.begin_withdraw_all("", force).unwrap().await.unwrap();
        assert_eq!(gap.await.unwrap().reason, "withdrawn");
        requirement.begin_retract().unwrap().await.unwrap();
        let named = RequireOptions {
            name: Some("archive".to_owned()),
            ..RequireOptions::default()
        };
        let requirement = pool.begin_require("name=a/b", named).unwrap().await.unwrap();
        assert_eq!(
            (requirement.name(), requirement.selector()),
            (Some("archive"), "name=a/b")
        );
        offer(&pool, "b", 10).await.unwrap();
        let through = DemandOptions {
            requirement: Some("archive"),
            ..DemandOptions::default()
        };
        drop(pool.begin_demand("name=b", through).unwrap().await.unwrap());
        assert_eq!(pool.begin_retract("archive").unwrap().await.unwrap(), 0);
        requirement.begin_retract().unwrap().await.unwrap();
    });
}

#[test]
fn arrays_go_from_ranks_to_ranks() {
    // Pieces of 300,000 bytes, and of fewer than go without memory of their own.
    for (from, to) in [
        ("shape=600x1000 grid=2x1", "shape=600x1000 grid=1x3 order=F"),
        ("shape=6x10 grid=2x1", "shape=6x10 grid=1x3 order=F"),
    ] {
        let layout = |text: &str| -> Arc<Layout> { Arc::new(text.parse().unwrap()) };
        let (from, to) = (layout(from), layout(to));
        let value = |row: u64, column: u64| (row * 7 + column) as u8;
        let rows = from.shape()[0] / 2;
        let columns = from.shape()[1];
        let piece = |rank: u64| ArrayPiece::new(&from, "u1".parse().unwrap(), rank);
        let has = |rank: u64| -> Vec<u8> {
            let mine = rank * rows..(rank + 1) * rows;
            mine.flat_map(|row| (0..columns).map(move |column| value(row, column)))
                .collect()
        };
        everywhere(async |pool| {
            let options = || OfferOptions {
                retention: Some(Retention::ReleasedBy(Consumers::new(["reader"]).unwrap())),
                ..OfferOptions::default()
            };
            let mut early = pin!(pool.begin_demand_array("name=t", None).unwrap());
            sleeps(early.as_mut());
            let name = [("name", "t")];
            pool.begin_offer_piece(&piece(1), name, &has(1), options())
                .await
                .unwrap();
            for (timeout, code) in [(0, Code::NotFound), (1, Code::Timeout)] {
                let timeout = Some(Duration::from_millis(timeout));
                let error = pool.begin_demand_array("name=t", timeout).unwrap().await.unwrap_err();
                assert_eq!(error.code(), code);
                assert!(error.to_string().contains("of 2 pieces, rank 0 did not"), "{error}");
            }
            // The same again does no harm, before and after the array is complete; anything else does.
            for rank in [1, 0, 0, 1] {
                pool.begin_offer_piece(&piece(rank), name, &has(rank), options())
                    .await
                    .unwrap();
                let other = pool
                    .begin_offer_piece(&piece(1), name, &has(0), OfferOptions::default())
                    .await
                    .unwrap_err();
                assert_eq!(other.code(), Code::AlreadyExists);
            }
            let array = Arc::new(early.await.unwrap());
            assert_eq!(
                (array.layout().shape(), array.object().get("name")),
                (from.shape(), Some("t"))
            );
            for rank in 0..3 {
                let mine = array.begin_take(&ArrayPart::of(&to, rank)).unwrap().await.unwrap();
                let extents = to.locals(rank)[0].extents.clone();
                let first = (0..rank).map(|before| to.locals(before)[0].extents[1]).sum::<u64>();
                let expected = (0..extents[1]).flat_map(|at| (0..2 * rows).map(move |row| value(row, first + at)));
                assert!(mine.into_iter().eq(expected), "rank {rank}");
            }
            let wrong = array
                .begin_take(&ArrayPart::of(&layout("shape=700x1000"), 0))
                .unwrap()
                .await
                .unwrap_err();
            assert_eq!(wrong.code(), Code::InvalidArgument);
            let none = ArrayPiece::new(&from, "u1".parse().unwrap(), 2);
            assert_eq!(
                pool.begin_offer_piece(&none, name, &[], OfferOptions::default())
                    .await
                    .unwrap_err()
                    .code(),
                Code::InvalidArgument
            );
            let other = layout("shape=6x10 grid=1x2");
            let late = ArrayPiece::new(&other, "u1".parse().unwrap(), 0);
            let refused = pool
                .begin_offer_piece(&late, name, &vec![0; late.bytes()], OfferOptions::default())
                .await
                .unwrap_err();
            assert!(
                matches!(refused.code(), Code::Conflict | Code::AlreadyExists),
                "{refused}"
            );
        });
    }
}

#[test]
fn the_end_of_the_server_is_an_answer_for_all() {
    everywhere(async |pool| {
        let mut follow = pool.begin_follow("", FollowOptions::default()).unwrap().await.unwrap();
        assert!(matches!(follow.next().await, Some(Ok(Item::Live))));
        let mut demand = pin!(pool.begin_demand("name=a", DemandOptions::default()).unwrap());
        sleeps(demand.as_mut());
        sleeps(pin!(follow.begin_next()));
        pool.begin_stop(None).unwrap().await.unwrap();
        assert_eq!(demand.await.unwrap_err().code(), Code::Closed);
        let end = follow.next().await;
        assert!(
            matches!(&end, Some(Err(error)) if error.code() == Code::Closed),
            "{end:?}"
        );
        assert_eq!(pool.begin_sync().unwrap_err().code(), Code::Closed);
        assert_eq!(
            pool.begin_offer([("name", "a")], b"", OfferOptions::default())
                .unwrap_err()
                .code(),
            Code::Closed
        );
    });
}

#[test]
fn a_pool_that_is_closed_tells_who_waits() {
    everywhere(async |pool| {
        let mut demand = pin!(pool.begin_demand("name=a", DemandOptions::default()).unwrap());
        sleeps(demand.as_mut());
        pool.begin_close().unwrap().await.unwrap();
        assert_eq!(demand.await.unwrap_err().code(), Code::Closed);
    });
}

#[test]
fn futures_may_move_between_threads() {
    fn may_move<T: Send>(_: &T) {}
    let pool = free().open().unwrap();
    let _driver = pool.driver().unwrap();
    may_move(&pool);
    may_move(&pool.begin_demand("name=a", DemandOptions::default()).unwrap());
    may_move(&pool.begin_follow("", FollowOptions::default()).unwrap());
    may_move(&pool.begin_offer([("name", "a")], b"", OfferOptions::default()).unwrap());
    may_move(&pool.begin_offer_many([([("name", "a")], b"")]));
    may_move(&pool.begin_list("", ListOptions::default()).unwrap());
    may_move(&listed(&pool));
    may_move(&pool.begin_bundle().unwrap());
    let layout = Arc::new("shape=3".parse().unwrap());
    let piece = ArrayPiece::new(&layout, "u1".parse().unwrap(), 0);
    may_move(&pool.begin_offer_piece(&piece, [("name", "b")], &[1, 2, 3], OfferOptions::default()));
    may_move(&pool.begin_demand_array("name=b", None).unwrap());
    may_move(&pool.begin_sync().unwrap());
    may_move(&pool.begin_close().unwrap());
    let waits_for_a_follow = async || {
        let mut follow = pool.begin_follow("", FollowOptions::default())?.await?;
        follow.begin_next().await
    };
    may_move(&waits_for_a_follow());
}
