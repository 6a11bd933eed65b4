//! Durable offers that are not awaited one by one. Who archives is the test itself, and so decides when that is done.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use junctura::{
    Ack, ArchivedLocation, BundleOptions, Code, DemandOptions, Durability, Item, Object, OfferOptions, Pool,
    RequireOptions, Requirement, Retention, Version,
};

const LARGE: usize = 1 << 18;

/// A pool, and what requires all that is offered there.
fn world() -> (Pool, Requirement) {
    let pool = Pool::builder().schema("free").open().unwrap();
    let named = RequireOptions {
        name: Some("archive".to_owned()),
        ..RequireOptions::default()
    };
    let requirement = pool.require_with("", named).unwrap();
    (pool, requirement)
}

fn durable() -> OfferOptions<'static> {
    OfferOptions {
        durability: Some(Durability::Durable),
        ..OfferOptions::default()
    }
}

fn archived(requirement: &Requirement, object: Object) {
    let archived = ArchivedLocation {
        sequence: object.version().sequence,
        location: "file:///archive/1".to_owned(),
    };
    assert_eq!(requirement.archived(&[archived]).unwrap(), 1);
    drop(object);
}

fn next(requirement: &Requirement, name: &str) -> Object {
    requirement
        .demand(format!("name={name}").as_str(), DemandOptions::default())
        .unwrap()
}

#[test]
fn a_pipeline_acknowledges_what_is_archived() {
    let (pool, requirement) = world();
    let mut pipeline = pool.pipeline(8).unwrap();
    for name in ["a", "b"] {
        pipeline
            .offer_with([("name", name)], &vec![7; LARGE], durable())
            .unwrap();
    }
    pipeline.push().unwrap();
    let (a, b) = (next(&requirement, "a"), next(&requirement, "b"));
    // Both are visible, and neither is archived.
    pool.sync(None).unwrap();
    pipeline.poll().unwrap();
    assert_eq!(pipeline.outstanding(), 2);
    archived(&requirement, a);
    pipeline.wait_until(1).unwrap();
    assert_eq!(pipeline.outstanding(), 1);
    archived(&requirement, b);
    pipeline.flush().unwrap();
}

#[test]
fn acknowledgements_keep_the_order_of_the_offers() {
    let (pool, requirement) = world();
    let acks: Arc<Mutex<Vec<Ack>>> = Arc::default();
    let noted = Arc::clone(&acks);
    let mut pipeline = pool
        .pipeline(8)
        .unwrap()
        .on_ack(move |ack| noted.lock().unwrap().push(ack));
    pipeline.offer_with([("name", "a")], b"", durable()).unwrap();
    pipeline.offer_with([("name", "b")], b"", durable()).unwrap();
    pipeline.offer([("name", "a")], b"refused").unwrap();
    pipeline.offer([("name", "c")], b"in memory").unwrap();
    pipeline.push().unwrap();
    let a = next(&requirement, "a");
    archived(&requirement, next(&requirement, "b"));
    pipeline.poll().unwrap();
    assert!(acks.lock().unwrap().is_empty(), "the first one is not archived");
    archived(&requirement, a);
    pipeline.flush().unwrap();
    let acks = std::mem::take(&mut *acks.lock().unwrap());
    assert!(acks.iter().map(|ack| ack.number).eq(0..4));
    let outcomes: Vec<_> = acks
        .into_iter()
        .map(|ack| ack.outcome.map_err(|error| error.code()))
        .collect();
    let sequence = |at: usize| outcomes[at].map(|version: Version| version.sequence);
    assert_eq!(
        [sequence(0), sequence(1), sequence(2), sequence(3)],
        [Ok(1), Ok(2), Err(Code::AlreadyExists), Ok(3)]
    );
}

#[test]
fn what_cannot_be_archived_fails_and_the_others_go_on() {
    let (pool, requirement) = world();
    let mut pipeline = pool.pipeline(2).unwrap();
    for name in ["a", "b"] {
        pipeline.offer_with([("name", name)], b"", durable()).unwrap();
    }
    pipeline.push().unwrap();
    let (a, b) = (next(&requirement, "a"), next(&requirement, "b"));
    requirement
        .not_archived(&[a.version().sequence], "the disk is full")
        .unwrap();
    archived(&requirement, b);
    // The window is full, so that the answers are read here; this offer was not made.
    let error = pipeline.offer([("name", "c")], b"").unwrap_err();
    assert_eq!(error.code(), Code::Io);
    assert!(error.to_string().contains("the disk is full"), "{error}");
    pipeline.flush().unwrap();
    assert_eq!(pool.list("").unwrap().len(), 2, "it is visible, and not archived");
    // Memory of what was archived, and of what was not, is the pool's alone.
    drop(a);
    pool.pipeline(1)
        .unwrap()
        .offer([("name", "d")], &vec![1; LARGE])
        .unwrap();
}

#[test]
fn who_turns_away_from_a_pipeline_is_not_answered() {
    let (pool, requirement) = world();
    for round in 0..3 {
        let name = format!("{round}");
        let mut pipeline = pool.pipeline(2).unwrap();
        pipeline.offer_with([("name", name.as_str())], b"", durable()).unwrap();
        drop(pipeline);
        let object = next(&requirement, &name);
        if round == 1 {
            requirement.not_archived(&[object.version().sequence], "why").unwrap();
        } else {
            archived(&requirement, object);
        }
        // Its conversation is not taken for that of another.
        let other = format!("{round}-");
        let version = pool.offer([("name", other.as_str())], b"").unwrap();
        assert_eq!(version.sequence, 2 * round + 2);
    }
}

#[test]
fn many_of_a_small_window_are_archived() {
    const OBJECTS: u64 = 200;
    let (pool, requirement) = world();
    let archiver = {
        let mut follow = requirement.follow().unwrap();
        std::thread::spawn(move || {
            let mut seen = 0;
            while seen < OBJECTS {
                if let Some(Item::Object(object)) = follow.next_item().unwrap() {
                    archived(&requirement, object);
                    seen += 1;
                }
            }
        })
    };
    let mut pipeline = pool.pipeline(4).unwrap();
    let once = OfferOptions {
        retention: Some(Retention::Released(1)),
        ..durable()
    };
    for number in 0..OBJECTS {
        let bytes = if number % 10 == 0 { LARGE } else { 100 };
        pipeline
            .offer_with([("name", number.to_string().as_str())], &vec![7; bytes], once.clone())
            .unwrap();
        assert!(pipeline.outstanding() <= 4);
    }
    pipeline.flush().unwrap();
    archiver.join().unwrap();
    pool.retract("archive").unwrap();
    let error = pool.offer_with([("name", "x")], b"", durable()).unwrap_err();
    assert_eq!(error.code(), Code::Io, "nobody archives any more");
}

#[test]
fn an_offer_that_is_asked_for_is_answered_when_it_is_archived() {
    let (pool, requirement) = world();
    let memory = pool.allocate(LARGE).unwrap();
    let mut pending = memory.begin_offer([("name", "a")], durable()).unwrap();
    let object = next(&requirement, "a");
    pool.sync(Some(Duration::from_mins(1))).unwrap();
    assert!(pending.try_take().unwrap().is_none());
    archived(&requirement, object);
    pool.sync(None).unwrap();
    assert_eq!(pending.try_take().unwrap().unwrap().sequence, 1);
    let memory = pool.allocate(10).unwrap();
    let mut pending = memory.begin_offer([("name", "b")], durable()).unwrap();
    let object = next(&requirement, "b");
    drop(object);
    pool.sync(None).unwrap();
    assert_eq!(pending.try_take().unwrap_err().code(), Code::Io);
}

#[test]
fn a_bundle_is_sealed_when_its_durable_members_are_archived() {
    let (pool, requirement) = world();
    let bundle = pool.bundle().unwrap();
    // Staged: nobody waits for the disk before the bundle is there.
    let mut pipeline = bundle.pipeline(8).unwrap();
    let number = pipeline.offer_with([("name", "b")], b"two", durable()).unwrap();
    pipeline.flush().unwrap();
    let b = pipeline.staged(number).unwrap();
    let a = bundle.offer_with([("name", "a")], b"one", durable()).unwrap();
    bundle.offer([("name", "c")], b"in memory").unwrap();
    let mut sealed = bundle.begin_seal().unwrap();
    let objects = ["a", "b"].map(|name| next(&requirement, name));
    assert_eq!([2, 1], [objects[0].rest_of_bundle(), objects[1].rest_of_bundle()]);
    pool.sync(None).unwrap();
    assert!(sealed.try_take().unwrap().is_none() && bundle.completed().unwrap().is_none());
    for object in objects {
        archived(&requirement, object);
    }
    pool.sync(None).unwrap();
    let completed = sealed.try_take().unwrap().unwrap();
    assert_eq!(completed.objects(), 3);
    assert!(completed.version(a) < completed.version(b));
}

#[test]
fn the_durable_offer_that_completes_a_bundle_waits_for_all_of_it() {
    let (pool, requirement) = world();
    let two = BundleOptions {
        members: Some(2),
        ..BundleOptions::default()
    };
    let none: [(&str, &str); 0] = [];
    let bundle = pool.open_bundle("step/6", none, two).unwrap();
    bundle.offer_with([("name", "a")], b"", durable()).unwrap();
    let archiver = std::thread::spawn(move || {
        let (a, b) = (next(&requirement, "a"), next(&requirement, "b"));
        let refused = requirement.not_archived(&[a.version().sequence], "the disk is full");
        assert_eq!(refused.unwrap(), 1);
        archived(&requirement, b);
        requirement
    });
    let error = bundle.offer_with([("name", "b")], b"", durable()).unwrap_err();
    assert_eq!(error.code(), Code::Io);
    assert!(
        error
            .to_string()
            .contains("is visible, but a member is not archived: the disk is full"),
        "{error}"
    );
    assert_eq!(bundle.wait(None).unwrap_err().code(), Code::Io);
    assert_eq!(pool.list("").unwrap().len(), 2);
    drop(archiver.join().unwrap());
}

fn polled_once<T>(future: Pin<&mut impl Future<Output = T>>) -> Option<T> {
    match future.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => Some(done),
        Poll::Pending => None,
    }
}

#[test]
fn tasks_are_answered_when_their_objects_are_archived() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let pool = Pool::builder().schema("free").begin_open().unwrap().await.unwrap();
        let named = RequireOptions {
            name: Some("archive".to_owned()),
            ..RequireOptions::default()
        };
        let requirement = pool.require_with("", named).unwrap();
        let through = DemandOptions {
            requirement: Some("archive"),
            ..DemandOptions::default()
        };
        let mut offered = Box::pin(pool.begin_offer([("name", "a")], b"payload", durable()).unwrap());
        assert!(polled_once(offered.as_mut()).is_none());
        let object = pool.begin_demand("name=a", through).unwrap().await.unwrap();
        assert!(polled_once(offered.as_mut()).is_none());
        let version = object.version();
        archived(&requirement, object);
        assert_eq!(offered.await.unwrap(), version);

        let mut pipeline = pool.pipeline(4).unwrap();
        for name in ["b", "c"] {
            pipeline
                .begin_offer([("name", name)], &vec![7; LARGE], durable())
                .await
                .unwrap();
        }
        let b = pool.begin_demand("name=b", through).unwrap().await.unwrap();
        let c = pool.begin_demand("name=c", through).unwrap().await.unwrap();
        archived(&requirement, b);
        requirement
            .not_archived(&[c.version().sequence], "the disk is full")
            .unwrap();
        let error = pipeline.begin_flush().await.unwrap_err();
        assert_eq!(error.code(), Code::Io);
        assert!(error.to_string().contains("the disk is full"), "{error}");
    });
}
