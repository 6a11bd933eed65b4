//! Consumer groups: members share what matches, each object is done once, and what nobody was done with goes to another.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use junctura::{
    Code, Consumers, DemandOptions, EventKind, Follow, FollowOptions, Group, Item, Object, OfferOptions, Pool,
    RequireOptions, Retention, Target, Versions, WithdrawOptions,
};

fn pool() -> Pool {
    Pool::builder().schema("free").open().unwrap()
}

fn offer_all(pool: &Pool, names: &str) {
    for name in names.chars() {
        let name = name.to_string();
        pool.offer([("name", name.as_str())], b"payload").unwrap();
    }
}

fn member(group: impl Into<Group>) -> FollowOptions {
    FollowOptions {
        group: Some(group.into()),
        window: Some(1),
        ..FollowOptions::default()
    }
}

fn joins(group: &str, window: Option<u32>) -> FollowOptions {
    FollowOptions {
        join: Some(group.to_owned()),
        window,
        ..FollowOptions::default()
    }
}

/// The next object; marks on the way are passed over.
fn next(follow: &mut Follow) -> Object {
    loop {
        match follow.next_item().unwrap().unwrap() {
            Item::Object(object) => return object,
            Item::Live => {}
            Item::Gap(gap) => panic!("{gap:?}"),
        }
    }
}

fn name(object: &Object) -> &str {
    object.get("name").unwrap()
}

/// What the only group is owed.
fn owed(pool: &Pool) -> u64 {
    let stat = pool.stat().unwrap();
    let (_, rest) = stat.split_once("\"owed\":").unwrap();
    rest[..rest.find(',').unwrap()].parse().unwrap()
}

#[test]
fn members_share_and_groups_each_get_all() {
    let pool = pool();
    let mut one = pool.follow_with("", member("g")).unwrap();
    let mut two = pool.follow_with("", joins("g", Some(1))).unwrap();
    let mut alone = pool.follow_with("", member("h")).unwrap();
    assert_eq!(one.window(), 1);
    assert_eq!(pool.follow_with("", joins("g", None)).unwrap().window(), 8);
    offer_all(&pool, "abcd");
    for (first, second) in [("a", "b"), ("c", "d")] {
        let (here, there) = (next(&mut one), next(&mut two));
        assert_eq!((name(&here), name(&there)), (first, second));
        assert!(!here.redelivered());
        // The first to release is the first to be given more.
        here.release().unwrap();
        pool.sync(None).unwrap();
    }
    for expected in ["a", "b", "c", "d"] {
        assert_eq!(name(&next(&mut alone)), expected);
    }
}

#[test]
fn a_withdraw_waits_for_the_group_and_a_group_outlives_its_members() {
    let pool = pool();
    let terms = Group {
        name: "g".to_owned(),
        versions: Versions::All,
        time_to_live: Some(Duration::from_hours(1)),
    };
    drop(pool.follow_with("name=a", member(terms.clone())).unwrap());
    offer_all(&pool, "a");
    let at_once = WithdrawOptions {
        timeout: Some(Duration::ZERO),
        ..WithdrawOptions::default()
    };
    let error = pool.withdraw(Target::key([("name", "a")]), at_once).unwrap_err();
    assert!(
        error.cause().contains("group g (\"name=a\"), which has no members"),
        "{error}"
    );
    let mut joined = pool.follow_with("name=a", member(terms)).unwrap();
    next(&mut joined).release().unwrap();
    assert_eq!(pool.withdraw(Target::key([("name", "a")]), at_once).unwrap(), 1);
    let conflict = pool.follow_with("name=a", member("g")).unwrap_err();
    assert_eq!(
        (conflict.code(), conflict.cause()),
        (Code::Conflict, "its time to live is 3600 s, not none")
    );
    assert_eq!(pool.retract("g").unwrap(), 0);
    assert!(
        joined.into_iter().all(|item| matches!(item, Ok(Item::Live))),
        "it has ended"
    );
}

#[test]
fn what_is_given_back_or_lost_in_a_panic_goes_out_again() {
    let pool = pool();
    let mut one = pool.follow_with("", member("g")).unwrap();
    offer_all(&pool, "a");
    next(&mut one).give_back().unwrap();
    let again = next(&mut one);
    assert!(again.redelivered());
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let _mine = again;
        panic!("this is part of the test");
    }));
    assert!(panicked.is_err());
    assert!(next(&mut one).redelivered());
    assert_eq!(owed(&pool), 0);
}

#[test]
fn who_stops_gives_back_what_it_has_not_seen() {
    let pool = pool();
    let options = FollowOptions {
        window: Some(9),
        ..member("g")
    };
    let mut one = pool.follow_with("", options).unwrap();
    offer_all(&pool, "abc");
    let first = next(&mut one);
    let mut two = pool.follow_with("", joins("g", None)).unwrap();
    one.stop().unwrap();
    drop(first);
    for expected in ["b", "c"] {
        let object = next(&mut two);
        assert_eq!((name(&object), object.redelivered()), (expected, false));
    }
    drop(two);
    assert_eq!(owed(&pool), 0);

    let requirement = pool.require("").unwrap();
    drop(requirement.follow().unwrap());
    assert_eq!(
        name(&next(&mut requirement.follow().unwrap())),
        "a",
        "it was owed it still"
    );
}

#[test]
fn until_live_takes_what_is_left() {
    let pool = pool();
    let group = RequireOptions {
        name: Some("g".to_owned()),
        group: true,
        ..RequireOptions::default()
    };
    let standing = pool.require_with("", group).unwrap();
    offer_all(&pool, "ab");
    let until_live = FollowOptions {
        until_live: true,
        ..joins("g", None)
    };
    let drained = pool.follow_with("", until_live).unwrap();
    assert_eq!(
        drained
            .into_iter()
            .filter(|item| matches!(item, Ok(Item::Object(_))))
            .count(),
        2
    );
    assert_eq!(owed(&pool), 0);
    let mut by_its_handle = standing.follow().unwrap();
    assert_eq!(by_its_handle.window(), 8);
    offer_all(&pool, "c");
    assert_eq!(name(&next(&mut by_its_handle)), "c");
    let at_once = DemandOptions {
        timeout: Some(Duration::ZERO),
        ..DemandOptions::default()
    };
    let refused = standing.demand("name=c", at_once).unwrap_err();
    assert_eq!(refused.code(), Code::Unsupported);
}

#[test]
fn what_makes_no_member_is_refused() {
    let pool = pool();
    assert_eq!(
        pool.follow_with("", joins("g", None)).unwrap_err().code(),
        Code::NotFound
    );
    drop(pool.follow_with("", member("g")).unwrap());
    let chooses = FollowOptions {
        only_new: true,
        ..member("g")
    };
    assert_eq!(pool.follow_with("", chooses).unwrap_err().code(), Code::InvalidArgument);
    let reads = FollowOptions {
        requirement: Some("g".to_owned()),
        ..FollowOptions::default()
    };
    assert_eq!(pool.follow_with("", reads).unwrap_err().code(), Code::Conflict);
    let nameless = RequireOptions {
        group: true,
        ..RequireOptions::default()
    };
    assert_eq!(
        pool.require_with("", nameless).unwrap_err().code(),
        Code::InvalidArgument
    );
    assert_eq!(
        pool.demand_with(
            "name=a",
            DemandOptions {
                requirement: Some("g"),
                ..DemandOptions::default()
            }
        )
        .unwrap_err()
        .code(),
        Code::Unsupported
    );
}

/// A producer that begins before its consumers names them.
#[test]
fn an_object_stays_until_the_groups_that_it_names_have_had_it() {
    let pool = pool();
    let mut events = pool.subscribe("", &[EventKind::Expired]).unwrap();
    let retention = Retention::ReleasedBy(Consumers::new(["products", "archive"]).unwrap());
    let options = OfferOptions {
        retention: Some(retention.clone()),
        ..OfferOptions::default()
    };
    pool.offer_with([("name", "a")], b"payload", options.clone()).unwrap();
    let slot = pool.allocate(100_000).unwrap();
    slot.offer_with([("name", "b")], options.clone()).unwrap();
    let mut pipeline = pool.pipeline(8).unwrap();
    pipeline.offer_with([("name", "c")], b"payload", options).unwrap();
    pipeline.flush().unwrap();
    let awaited = "\"awaited\":[{\"name\":\"archive\",\"objects\":3,\"bytes\":100014}";
    assert!(pool.stat().unwrap().contains(awaited), "{}", pool.stat().unwrap());
    for group in ["archive", "products"] {
        let mut follow = pool.follow_with("", member(group)).unwrap();
        for expected in ["a", "b", "c"] {
            assert_eq!(pool.list("").unwrap().len(), 3);
            let object = next(&mut follow);
            assert_eq!(name(&object), expected);
            if group == "products" && expected == "a" {
                drop(object);
                break;
            }
        }
    }
    let event = events.next_event().unwrap().unwrap();
    assert_eq!(event.object.unwrap().0.get("name"), Some("a"));
    assert_eq!(pool.list("").unwrap().len(), 2);
}

#[test]
fn joining_takes_neither_a_selector_nor_terms() {
    let pool = pool();
    let _one = pool.follow_with("", member("g")).unwrap();
    let selects = pool.follow_with("name=a", joins("g", None));
    assert_eq!(selects.unwrap_err().code(), Code::Unsupported);
    let on_terms = FollowOptions {
        join: Some("g".to_owned()),
        ..member("g")
    };
    assert_eq!(
        pool.follow_with("", on_terms).unwrap_err().code(),
        Code::InvalidArgument
    );
}

#[test]
fn a_payload_is_read_after_its_release() {
    let pool = pool();
    pool.follow_with("", member("g")).unwrap().stop().unwrap();
    let payload = |number: u8| vec![number; 100_000];
    for number in 0..40 {
        let name = number.to_string();
        pool.offer([("name", name.as_str())], &payload(number)).unwrap();
    }
    let until_live = FollowOptions {
        until_live: true,
        ..member("g")
    };
    let mut kept = Vec::new();
    for item in pool.follow_with("", until_live).unwrap() {
        if let Item::Object(mut object) = item.unwrap() {
            object.release_mapped();
            object.release_mapped();
            kept.push(object);
        }
    }
    assert_eq!((kept.len(), owed(&pool)), (40, 0));
    // Nothing is owed: the server ends, and the payloads stay.
    pool.stop(None).unwrap();
    for (number, object) in (0..).zip(&kept) {
        assert_eq!(object.payload(), payload(number));
    }
}
