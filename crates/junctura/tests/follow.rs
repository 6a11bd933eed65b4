//! Follows: what is there and what comes, each once, with gaps where something went, and requirements that keep.

use std::time::Duration;

use junctura::{
    Code, DemandOptions, EventKind, Follow, FollowOptions, Item, Object, OfferOptions, Pool, RequireOptions, Retention,
    Target, WithdrawOptions,
};

fn pool() -> Pool {
    Pool::builder().schema("free").schema("mars").open().unwrap()
}

fn offer(pool: &Pool, name: &str) {
    pool.offer([("name", name)], name.as_bytes()).unwrap();
}

fn name(object: &Object) -> String {
    assert_eq!(object.get("name").unwrap().as_bytes(), &object[..]);
    object.get("name").unwrap().to_owned()
}

/// The next items up to `count` objects, written down.
fn read(follow: &mut Follow, count: usize) -> Vec<String> {
    let mut seen = Vec::new();
    let mut objects = 0;
    while objects < count {
        seen.push(match follow.next_item().unwrap().unwrap() {
            Item::Object(object) => {
                objects += 1;
                name(&object)
            }
            Item::Live => "live".to_owned(),
            Item::Gap(gap) => format!("gap {} {}", gap.items.len(), gap.reason),
        });
    }
    seen
}

#[test]
fn what_is_there_comes_first_and_then_what_comes() {
    let pool = pool();
    for name in ["c", "a", "b"] {
        offer(&pool, name);
    }
    let mut follow = pool.follow("name!=x").unwrap();
    assert_eq!(follow.snapshot_sequence(), 3);
    for name in ["e", "x", "d"] {
        offer(&pool, name);
    }
    assert_eq!(read(&mut follow, 5), ["a", "b", "c", "live", "e", "d"]);
    assert!(follow.is_live());
    assert_eq!(
        follow.next_within(Duration::from_millis(1)).unwrap_err().code(),
        Code::Timeout
    );
    assert!(follow.try_next().unwrap().is_none());
    offer(&pool, "f");
    assert!(matches!(follow.try_next().unwrap(), Some(Item::Object(_))));
    follow.stop().unwrap();
}

#[test]
fn a_follow_until_live_ends() {
    let pool = pool();
    offer(&pool, "a");
    let options = FollowOptions {
        until_live: true,
        ..FollowOptions::default()
    };
    let mut follow = pool.follow_with("", options).unwrap();
    offer(&pool, "b");
    assert_eq!(read(&mut follow, 1), ["a"]);
    assert!(matches!(follow.next_item().unwrap(), Some(Item::Live) | None));
    assert_eq!(follow.into_iter().count(), 0);
}

#[test]
fn from_a_cursor_all_that_is_new_and_then_the_end() {
    let pool = pool();
    offer(&pool, "a");
    let mut follow = pool.follow("").unwrap();
    assert_eq!(read(&mut follow, 1), ["a"]);
    offer(&pool, "b");
    assert_eq!(read(&mut follow, 1).last().unwrap(), "b");
    let options = FollowOptions {
        cursor: Some(follow.cursor().unwrap().to_string()),
        until_live: true,
        ..FollowOptions::default()
    };
    follow.stop().unwrap();
    for name in ["d", "c"] {
        offer(&pool, name);
    }
    let mut rest = pool.follow_with("", options).unwrap();
    offer(&pool, "e");
    assert_eq!(read(&mut rest, 2), ["live", "d", "c"]);
    assert!(rest.next_item().unwrap().is_none());
    assert_eq!(rest.cursor().unwrap().version().sequence, 4);
}

#[test]
fn only_new_ones_when_so_asked() {
    let pool = pool();
    offer(&pool, "a");
    let options = FollowOptions {
        only_new: true,
        ..FollowOptions::default()
    };
    let mut follow = pool.follow_with("", options).unwrap();
    offer(&pool, "b");
    assert_eq!(read(&mut follow, 1).last().unwrap(), "b");
}

#[test]
fn a_window_bounds_what_is_held() {
    let pool = pool();
    for i in 0..10 {
        offer(&pool, &format!("n{i}"));
    }
    let options = FollowOptions {
        window: Some(3),
        ..FollowOptions::default()
    };
    let mut follow = pool.follow_with("", options).unwrap();
    let mut held = Vec::new();
    while held.len() < 3 {
        held.extend(follow.next_item().unwrap());
    }
    assert_eq!(
        follow.next_within(Duration::from_millis(1)).unwrap_err().code(),
        Code::Timeout
    );
    held.clear();
    assert_eq!(read(&mut follow, 7).first().unwrap(), "n3");
}

#[test]
fn a_cursor_resumes_in_either_phase() {
    let pool = pool();
    for name in ["a", "b", "c", "d"] {
        offer(&pool, name);
    }
    let mut follow = pool.follow("").unwrap();
    assert!(follow.cursor().is_none());
    assert_eq!(read(&mut follow, 2), ["a", "b"]);
    let cursor = follow.cursor().unwrap().to_string();
    drop(follow);
    offer(&pool, "aa");
    let resume = |cursor: String| {
        let options = FollowOptions {
            cursor: Some(cursor),
            ..FollowOptions::default()
        };
        pool.follow_with("", options).unwrap()
    };
    let mut follow = resume(cursor);
    assert_eq!(read(&mut follow, 3).join(" ").replace(" live", ""), "c d aa");
    let cursor = follow.cursor().unwrap();
    assert_eq!(follow.last_live(), cursor.to_string());
    offer(&pool, "ab");
    let mut again = resume(cursor.to_string());
    assert_eq!(read(&mut again, 1).last().unwrap(), "ab");

    let other = Pool::builder().schema("free").open().unwrap();
    let options = FollowOptions {
        cursor: Some(cursor.to_string()),
        ..FollowOptions::default()
    };
    let error = other.follow_with("", options).unwrap_err();
    assert!(
        [Code::Expired, Code::InvalidArgument].contains(&error.code()),
        "{error}"
    );
}

#[test]
fn through_a_requirement_everything_comes_or_nothing_is_begun() {
    let pool = pool();
    let requirement = pool.require("").unwrap();
    let choosing = [
        FollowOptions {
            only_new: true,
            ..FollowOptions::default()
        },
        FollowOptions {
            order_by: Some("name".to_owned()),
            ..FollowOptions::default()
        },
    ];
    for options in choosing {
        let error = requirement.follow_with(options).unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument, "{error}");
    }
    for name in ["b", "a"] {
        offer(&pool, name);
    }
    assert_eq!(read(&mut requirement.follow().unwrap(), 2), ["b", "a"]);
}

trait LastLive {
    fn last_live(&self) -> String;
}

impl LastLive for Follow {
    fn last_live(&self) -> String {
        self.cursor().unwrap().to_string()
    }
}

#[test]
fn what_is_withdrawn_before_its_turn_leaves_a_gap() {
    let pool = pool();
    for name in ["a", "b", "c"] {
        offer(&pool, name);
    }
    let options = FollowOptions {
        window: Some(1),
        ..FollowOptions::default()
    };
    let mut follow = pool.follow_with("", options).unwrap();
    let Item::Object(first) = follow.next_item().unwrap().unwrap() else {
        panic!("no object")
    };
    pool.withdraw(Target::key([("name", "b")]), WithdrawOptions::default())
        .unwrap();
    drop(first);
    let Item::Gap(gap) = follow.next_item().unwrap().unwrap() else {
        panic!("no gap")
    };
    assert_eq!(gap.items[0].object.get("name"), Some("b"));
    assert_eq!(gap.reason, "withdrawn");
    assert_eq!(read(&mut follow, 1), ["c"]);
}

#[test]
fn a_requirement_made_before_a_withdrawal_wins() {
    let pool = pool();
    let requirement = pool.require("name=a/b").unwrap();
    assert_eq!(requirement.selector(), "name=a/b");
    offer(&pool, "a");
    let patience = WithdrawOptions {
        timeout: Some(Duration::from_millis(1)),
        ..WithdrawOptions::default()
    };
    assert_eq!(
        pool.withdraw(Target::key([("name", "a")]), patience)
            .unwrap_err()
            .code(),
        Code::Timeout
    );
    for elsewhere in [
        DemandOptions {
            requirement: Some("other"),
            ..DemandOptions::default()
        },
        DemandOptions {
            incomplete: true,
            ..DemandOptions::default()
        },
    ] {
        let refused = requirement.demand("name=a", elsewhere).unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument);
    }
    let object = requirement.demand("name=a", DemandOptions::default()).unwrap();
    assert_eq!(name(&object), "a");
    drop(object);
    assert_eq!(
        pool.withdraw(Target::key([("name", "a")]), WithdrawOptions::default())
            .unwrap(),
        1
    );

    offer(&pool, "b");
    let mut follow = requirement.follow().unwrap();
    let item = loop {
        if let Item::Object(object) = follow.next_item().unwrap().unwrap() {
            break object;
        }
    };
    assert_eq!(name(&item), "b");
    drop((item, follow));
    requirement.retract().unwrap();
    assert_eq!(
        pool.withdraw(Target::key([("name", "b")]), WithdrawOptions::default())
            .unwrap(),
        1
    );
}

#[test]
fn a_requirement_learns_what_was_taken_by_force() {
    let pool = pool();
    let mut requirement = pool.require("").unwrap();
    assert!(requirement.try_gap().unwrap().is_none());
    offer(&pool, "a");
    let force = WithdrawOptions {
        force: true,
        ..WithdrawOptions::default()
    };
    assert_eq!(pool.withdraw(Target::key([("name", "a")]), force).unwrap(), 1);
    let gap = requirement.try_gap().unwrap().unwrap();
    assert_eq!(gap.items[0].object.get("name"), Some("a"));
}

#[test]
fn what_is_for_later_is_unsupported() {
    let pool = pool();
    let part = pool.follow_with("name=a", through("n")).unwrap_err();
    assert_eq!(part.code(), Code::Unsupported);
}

fn named(name: &str) -> RequireOptions {
    RequireOptions {
        name: Some(name.to_owned()),
        ..RequireOptions::default()
    }
}

fn through(name: &str) -> FollowOptions {
    FollowOptions {
        requirement: Some(name.to_owned()),
        ..FollowOptions::default()
    }
}

#[test]
fn a_requirement_with_a_name_is_anybodys() {
    let pool = pool();
    let mut events = pool
        .subscribe("name=none", &[EventKind::Required, EventKind::Retracted])
        .unwrap();
    let mut mine = pool.require_with("name=a/b", named("kept")).unwrap();
    let joined = pool.require_with("name=a/b", named("kept")).unwrap();
    let conflict = pool.require_with("name=a", named("kept")).unwrap_err();
    assert_eq!(
        (conflict.code(), conflict.subject()),
        (Code::Conflict, "requirement kept")
    );
    drop(joined);
    offer(&pool, "a");
    offer(&pool, "b");
    assert_eq!(
        pool.demand_with(
            "name=a",
            DemandOptions {
                requirement: Some("kept"),
                ..DemandOptions::default()
            }
        )
        .unwrap()
        .get("name"),
        Some("a")
    );
    let mut follow = pool.follow_with("", through("kept")).unwrap();
    let Some(Item::Object(b)) = follow.next_item().unwrap() else {
        panic!("no object");
    };
    assert_eq!(b.get("name"), Some("b"));
    assert_eq!(pool.retract("kept").unwrap(), 1);
    assert_eq!(pool.retract("kept").unwrap_err().code(), Code::NotFound);
    assert!(matches!(follow.next_item().unwrap(), Some(Item::Live)));
    assert!(follow.next_item().unwrap().is_none());
    assert_eq!(mine.try_gap().unwrap_err().code(), Code::Closed);
    mine.retract().unwrap();
    for kind in [EventKind::Required, EventKind::Retracted] {
        let event = events.next_event().unwrap().unwrap();
        assert_eq!(event.kind, kind);
        assert_eq!(event.requirement, Some(("kept".to_owned(), "name=a/b".to_owned())));
    }
}

#[test]
fn a_dropped_follow_gives_back_everything() {
    let pool = pool();
    for i in 0..20 {
        offer(&pool, &format!("n{i:02}"));
    }
    for taken in [0, 1, 5] {
        let mut follow = pool.follow("").unwrap();
        for _ in 0..taken {
            assert!(matches!(follow.next_item().unwrap(), Some(Item::Object(_))));
        }
        drop(follow);
        let stat = pool.stat().unwrap();
        assert!(stat.contains("\"held\":0") || stat.contains("\"held\": 0"), "{stat}");
    }
}

/// What was released is released for everything that is asked afterwards.
#[test]
fn a_list_after_a_release_shows_it() {
    let pool = Pool::builder().schema("free").open().unwrap();
    let options = OfferOptions {
        retention: Some(Retention::Released(1)),
        ..OfferOptions::default()
    };
    for turn in 0..20 {
        for name in 0..5 {
            let name = format!("{turn} {name}");
            pool.offer_with([("space", "s"), ("name", name.as_str())], b"x", options.clone())
                .unwrap();
        }
        let options = FollowOptions {
            until_live: true,
            ..FollowOptions::default()
        };
        let follow = pool.follow_with("space=s", options).unwrap();
        for item in follow {
            drop(item.unwrap());
        }
        assert!(pool.list("space=s").unwrap().is_empty());
    }
}
