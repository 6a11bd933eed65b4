//! Bundles through the client: all or nothing, several producers, what becomes of those that are left.

use std::thread;
use std::time::Duration;

use junctura::{BundleOptions, BundleState, Code, DemandOptions, EventKind, Item, ListOptions, Pool, Result};

fn pool() -> Pool {
    Pool::builder().schema("free").open().unwrap()
}

fn code<T>(outcome: Result<T>) -> Code {
    outcome.err().unwrap().code()
}

fn shared(members: u64) -> BundleOptions<'static> {
    BundleOptions {
        members: Some(members),
        ..BundleOptions::default()
    }
}

const NOTHING: [(&str, &str); 0] = [];

#[test]
fn producers_that_share_a_bundle_are_seen_at_one_point() {
    const PRODUCERS: u64 = 4;
    const EACH: u64 = 100;
    let pool = pool();
    let mut follow = pool.follow("").unwrap();
    let large = vec![3; 20_000];
    let completed: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (0..PRODUCERS)
            .map(|producer| {
                let url = pool.url().to_owned();
                let large = &large;
                scope.spawn(move || {
                    let pool = Pool::builder().url(&url).schema("free").open().unwrap();
                    let bundle = pool.open_bundle("b", NOTHING, shared(PRODUCERS * EACH)).unwrap();
                    let members: Vec<_> = (0..EACH)
                        .map(|number| {
                            let name = format!("{number:03}-{producer}");
                            let payload = if number % 10 == 0 { large.as_slice() } else { b"small" };
                            bundle.offer([("name", name.as_str())], payload).unwrap()
                        })
                        .collect();
                    let completed = bundle.wait(None).unwrap();
                    let versions: Vec<_> = members
                        .iter()
                        .map(|&member| completed.version(member).unwrap())
                        .collect();
                    (completed.first().unwrap(), completed.objects(), versions)
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let mut names = Vec::new();
    for sequence in 1..=PRODUCERS * EACH {
        let object = loop {
            if let Item::Object(object) = follow.next_item().unwrap().unwrap() {
                break object;
            }
        };
        assert_eq!(object.version().sequence, sequence);
        names.push(object.get("name").unwrap().to_owned());
    }
    assert!(names.is_sorted());
    for (producer, (first, objects, versions)) in completed.into_iter().enumerate() {
        assert_eq!((first.sequence, objects), (1, PRODUCERS * EACH));
        for (number, version) in versions.into_iter().enumerate() {
            assert_eq!(names[version.sequence as usize - 1], format!("{number:03}-{producer}"));
        }
    }
}

#[test]
fn one_that_is_dropped_publishes_nothing() {
    let pool = pool();
    let mut events = pool.subscribe("", &[EventKind::Aborted]).unwrap();
    let bundle = pool.bundle().unwrap();
    bundle.offer([("name", "a")], &vec![1; 100_000]).unwrap();
    drop(bundle);
    let event = events.next_event().unwrap().unwrap();
    let name = event.bundle.unwrap();
    assert_eq!((name.path, name.members, name.declared), (None, 1, None));
    let failed = pool.bundled(|bundle| {
        bundle.offer([("name", "a")], b"")?;
        bundle.offer([("space", "no name")], b"").map(|_| ())
    });
    assert_eq!(code(failed), Code::SchemaMismatch);
    assert!(pool.list("").unwrap().is_empty());
    let completed = pool
        .bundled(|bundle| bundle.offer([("name", "a")], b"").map(|_| ()))
        .unwrap();
    assert_eq!(completed.objects(), 1);
    assert_eq!(pool.list("").unwrap().len(), 1);
}

#[test]
fn many_are_offered_without_awaiting_each() {
    let pool = pool();
    let bundle = pool.bundle().unwrap();
    let names: Vec<String> = (0..3000).rev().map(|number| format!("{number:04}")).collect();
    let members = bundle
        .offer_many(names.iter().map(|name| ([("name", name.as_str())], b"payload")))
        .unwrap();
    let completed = bundle.seal().unwrap();
    let versions: Vec<u64> = members
        .iter()
        .map(|&member| completed.version(member).unwrap().sequence)
        .collect();
    assert!(versions.iter().rev().copied().eq(1..=3000));
}

#[test]
fn errors_say_what_is_wrong() {
    let pool = pool();
    let bundle = pool.open_bundle("b", NOTHING, shared(2)).unwrap();
    assert_eq!(code(pool.open_bundle("b", NOTHING, shared(3))), Code::Conflict);
    assert_eq!(
        code(pool.open_bundle("b//c", NOTHING, shared(3))),
        Code::InvalidArgument
    );
    assert_eq!(code(bundle.seal()), Code::Conflict);
    assert_eq!(code(bundle.wait(Some(Duration::ZERO))), Code::Timeout);
    let inner = pool.open_bundle("b/inner", NOTHING, shared(1)).unwrap();
    bundle.offer([("name", "x")], b"").unwrap();
    assert_eq!(code(bundle.offer([("name", "y")], b"")), Code::BundleFull);
    assert_eq!(code(inner.offer([("name", "x")], b"")), Code::Conflict);
    assert_eq!(bundle.completed().unwrap(), None);
    inner.offer([("name", "z")], b"").unwrap();
    assert_eq!(inner.wait(None).unwrap().objects(), 2);
    assert_eq!(bundle.completed().unwrap().unwrap().objects(), 2);
    assert_eq!(code(bundle.offer([("name", "w")], b"")), Code::BundleClosed);
    assert_eq!(code(bundle.abort()), Code::BundleClosed);
    assert_eq!(code(pool.open_bundle("b", NOTHING, shared(2))), Code::BundleClosed);
}

#[test]
fn what_is_nested_has_versions_when_the_bundle_around_it_is_sealed() {
    let pool = pool();
    let outer = pool.open_bundle("a", NOTHING, BundleOptions::default()).unwrap();
    let inner = pool.open_bundle("a/b", NOTHING, BundleOptions::default()).unwrap();
    let member = inner.offer([("name", "x")], b"").unwrap();
    let sealed = inner.seal().unwrap();
    assert_eq!(
        (sealed.first(), sealed.objects(), sealed.version(member)),
        (None, 1, None)
    );
    assert_eq!(inner.completed().unwrap(), None);
    outer.offer([("name", "w")], b"").unwrap();
    let sealed = outer.seal().unwrap();
    let version = inner.wait(None).unwrap().version(member).unwrap();
    assert_eq!((sealed.first().unwrap().sequence, version.sequence), (1, 2));
}

#[test]
fn an_abort_is_told_to_the_others() {
    let pool = pool();
    let (mine, yours) = (
        pool.open_bundle("b", NOTHING, BundleOptions::default()).unwrap(),
        pool.open_bundle("b", NOTHING, BundleOptions::default()).unwrap(),
    );
    mine.offer([("name", "x")], &vec![0; 9000]).unwrap();
    yours.offer([("name", "y")], b"").unwrap();
    assert_eq!(mine.abort().unwrap(), 2);
    assert_eq!(code(yours.wait(None)), Code::Closed);
    assert_eq!(code(mine.wait(None)), Code::Closed);
    assert_eq!(code(yours.offer([("name", "y")], b"")), Code::Closed);
    let again = pool.open_bundle("b", NOTHING, shared(1)).unwrap();
    again.offer([("name", "x")], b"").unwrap();
    assert_eq!(again.wait(None).unwrap().objects(), 1);
}

#[test]
fn what_a_producer_leaves_behind_another_completes() {
    let pool = pool();
    let url = pool.url().to_owned();
    let first = Pool::builder().url(&url).schema("free").open().unwrap();
    let bundle = first.open_bundle("b", NOTHING, shared(2)).unwrap();
    bundle.offer([("name", "x")], &vec![8; 50_000]).unwrap();
    first.close();
    let bundle = pool.open_bundle("b", NOTHING, shared(2)).unwrap();
    bundle.offer([("name", "y")], b"").unwrap();
    assert_eq!(bundle.wait(None).unwrap().objects(), 2);
    assert_eq!(&pool.demand("name=x", None).unwrap()[..], vec![8; 50_000]);
}

#[test]
fn an_orphan_is_aborted_and_the_event_says_what_was_missing() {
    let pool = Pool::builder()
        .schema("free")
        .orphan_timeout(Duration::from_millis(1))
        .open()
        .unwrap();
    let mut events = pool.subscribe("", &[EventKind::Aborted]).unwrap();
    let bundle = pool.open_bundle("b", NOTHING, shared(5)).unwrap();
    bundle.offer([("name", "x")], b"").unwrap();
    drop(bundle);
    let name = events.next_event().unwrap().unwrap().bundle.unwrap();
    assert_eq!(
        (name.path.as_deref(), name.members, name.declared),
        (Some("b"), 1, Some(5))
    );
    assert!(pool.bundles("", None).unwrap().is_empty());
}

#[test]
fn bundles_are_found_by_what_they_are_about() {
    let pool = pool();
    let six = pool
        .open_bundle("step/6", [("space", "six")], BundleOptions::default())
        .unwrap();
    let _nine = pool.open_bundle("step/9", [("space", "nine")], shared(7)).unwrap();
    six.offer([("name", "t")], b"12345").unwrap();
    pool.offer([("name", "plain")], b"").unwrap();
    let found = pool.bundles("space=nine", None).unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].path.as_deref(), found[0].declared), (Some("step/9"), Some(7)));
    assert_eq!(found[0].attributes.as_ref().unwrap().get("space"), Some("nine"));
    let all = pool.bundles("", Some("step")).unwrap();
    assert_eq!(
        (all.len(), all[0].members, all[0].staged_bytes, all[0].openers),
        (2, 1, 5, 1)
    );
    assert_eq!(all[0].state, BundleState::Open);

    let incomplete = ListOptions {
        incomplete: true,
        ..ListOptions::default()
    };
    let entries = pool.list_with("", incomplete).unwrap().next_page().unwrap().unwrap();
    let staged: Vec<_> = entries
        .iter()
        .map(|entry| (entry.get("name").unwrap(), entry.staged_in()))
        .collect();
    assert_eq!(staged, [("plain", None), ("t", Some(all[0].number))]);
    let object = pool
        .demand_with(
            "name=t",
            DemandOptions {
                incomplete: true,
                ..DemandOptions::default()
            },
        )
        .unwrap();
    assert!(object.is_staged());
    assert_eq!(&object[..], b"12345");
    assert_eq!(code(pool.demand("name=t", Some(Duration::ZERO))), Code::NotFound);

    six.seal().unwrap();
    let of_bundle = ListOptions {
        bundle: Some("step/6"),
        ..ListOptions::default()
    };
    let entries = pool.list_with("", of_bundle).unwrap().next_page().unwrap().unwrap();
    assert_eq!((entries.len(), entries[0].staged_in()), (1, None));
    assert_eq!(
        pool.bundles("space=six", None).unwrap()[0].first,
        Some(entries[0].version())
    );
}

#[test]
fn staged_members_that_fill_the_pool_are_told_at_once() {
    let pool = Pool::builder().schema("free").budget_bytes(1 << 20).open().unwrap();
    let bundle = pool.bundle().unwrap();
    let half = vec![1; 500_000];
    bundle.offer([("name", "a")], &half).unwrap();
    let mut outcome = Ok(());
    for name in ["b", "c", "d"] {
        outcome = bundle.offer([("name", name)], &half).map(|_| ());
        if outcome.is_err() {
            break;
        }
    }
    assert_eq!(code(outcome), Code::PoolFull);
    bundle.abort().unwrap();
    pool.offer([("name", "a")], &half).unwrap();
}
