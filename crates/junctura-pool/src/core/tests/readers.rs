//! Demands, follows, lists, requirements, subscriptions.

use junctura_wire::body::events;

use super::World;

#[test]
fn a_demand_is_answered_now_or_when_the_object_comes() {
    let mut world = World::new();
    let (p, c) = (world.join("p"), world.join("c"));
    world.demand(c, 1, "name=a", None);
    assert!(world.heard(c).is_empty());
    world.offer(p, 7, "a", "hello", 0);
    assert_eq!(world.heard(p), ["7: offered v1"]);
    assert_eq!(world.heard(c), ["1: got a v1 hello"]);
    world.demand_key(c, 2, "a", Some(0));
    assert_eq!(world.heard(c), ["2: got a v1 hello"]);
    world.demand(c, 3, "name=b", Some(0));
    assert_eq!(
        world.heard(c),
        ["3: NotFound no object in the pool matches now; a demand with a timeout waits for one"]
    );
    world.demand(c, 4, "name=b", Some(5));
    world.pass(4);
    assert!(world.heard(c).is_empty());
    world.pass(1);
    assert_eq!(
        world.heard(c),
        ["4: Timeout no matching object arrived in time; `junctura ls` lists what is there"]
    );
}

#[test]
fn a_demand_by_selector_gets_the_newest_match() {
    let mut world = World::new();
    let p = world.join("p");
    for (number, name) in ["a", "b", "c"].iter().enumerate() {
        world.offer(p, number as u64, name, name, 0);
    }
    world.heard(p);
    world.demand(p, 9, "name=a/b", Some(0));
    assert_eq!(world.heard(p), ["9: got b v2 b"]);
}

#[test]
fn a_follow_gives_what_is_there_in_order_and_then_what_comes() {
    let mut world = World::new();
    let (p, c) = (world.join("p"), world.join("c"));
    for name in ["b", "a", "c"] {
        world.offer(p, 1, name, "", 0);
    }
    world.follow(c, 1, |_| {});
    world.offer(p, 1, "0", "", 0);
    assert_eq!(
        world.heard(c),
        [
            "1: began v3",
            "1: got a v2  first",
            "1: got b v1  first",
            "1: got c v3  first",
            "1: live",
            "1: got 0 v4 "
        ]
    );
}

#[test]
fn a_window_bounds_what_is_out_and_releases_open_it() {
    let mut world = World::new();
    let (p, c) = (world.join("p"), world.join("c"));
    world.follow(c, 1, |follow| follow.window = 1);
    for name in ["a", "b"] {
        world.offer(p, 1, name, "", 0);
    }
    assert_eq!(world.heard(c), ["1: began v0", "1: live", "1: got a v1 "]);
    world.release(c, 1);
    assert_eq!(world.heard(c), ["1: got b v2 "]);
    world.release(c, 1);
    assert_eq!(world.heard(c), ["0: Expired this client does not hold it"]);
}

#[test]
fn what_goes_before_its_turn_leaves_a_gap_and_what_is_superseded_does_not() {
    let mut world = World::new();
    let (p, c) = (world.join("p"), world.join("c"));
    world.follow(c, 1, |follow| follow.window = 1);
    for name in ["a", "b", "x", "x"] {
        world.offer(p, 1, name, "", 0);
    }
    world.withdraw(p, 2, "b", None, false);
    world.heard(c);
    world.release(c, 1);
    assert_eq!(world.heard(c), ["1: gap withdrawn b v2", "1: got x v4 "]);
}

#[test]
fn a_follow_ends_after_its_first_phase_when_asked_to() {
    let mut world = World::new();
    let p = world.join("p");
    world.offer(p, 1, "a", "", 0);
    world.heard(p);
    world.follow(p, 2, |follow| follow.until_live = true);
    assert_eq!(
        world.heard(p),
        [
            "2: began v1",
            "2: got a v1  first",
            "2: live",
            "2: Closed it was asked to end here"
        ]
    );
}

#[test]
fn a_follow_that_ends_when_it_has_caught_up_gives_what_came_meanwhile_and_nothing_later() {
    let mut world = World::new();
    let (p, c) = (world.join("p"), world.join("c"));
    for name in ["a", "b", "x"] {
        world.offer(p, 1, name, "", 0);
    }
    world.follow(c, 1, |follow| {
        follow.until_live = true;
        follow.window = 1;
    });
    assert_eq!(world.heard(c), ["1: began v3", "1: got a v1  first"]);
    // Two versions of one key, and one of a key that waits in the first phase: each is given once.
    for name in ["c", "c", "x"] {
        world.offer(p, 1, name, "", 0);
    }
    world.release(c, 1);
    assert_eq!(world.heard(c), ["1: got b v2  first"]);
    world.release(c, 2);
    assert_eq!(world.heard(c), ["1: live", "1: got c v5 "]);
    world.offer(p, 1, "d", "", 0);
    world.release(c, 5);
    let end = "1: Closed it was asked to end here";
    assert_eq!(world.heard(c), ["1: got x v6 ", end]);
    world.offer(p, 1, "e", "", 0);
    world.release(c, 6);
    assert_eq!(world.heard(c), Vec::<String>::new());
}

#[test]
fn what_is_superseded_after_the_bound_of_a_follow_leaves_a_gap() {
    let mut world = World::new();
    let (p, c) = (world.join("p"), world.join("c"));
    for name in ["a", "b"] {
        world.offer(p, 1, name, "", 0);
    }
    world.follow(c, 1, |follow| {
        follow.until_live = true;
        follow.window = 1;
    });
    for name in ["x", "x", "y", "z"] {
        world.offer(p, 1, name, "", 0);
    }
    world.release(c, 1);
    let began = ["1: began v2", "1: got a v1  first", "1: got b v2  first", "1: live"];
    assert_eq!(world.heard(c), began);
    world.offer(p, 1, "y", "", 0);
    world.withdraw(p, 2, "z", None, false);
    world.release(c, 2);
    world.release(c, 4);
    assert_eq!(
        world.heard(c),
        [
            "1: got x v4 ",
            "1: gap superseded y v5",
            "1: gap withdrawn z v6",
            "1: Closed it was asked to end here"
        ]
    );
}

#[test]
fn a_resumed_follow_that_ends_when_it_has_caught_up_gives_all_that_came_since_its_cursor() {
    use junctura_model::version::{Cursor, Phase};
    let mut world = World::new();
    let (p, c) = (world.join("p"), world.join("c"));
    for name in ["a", "b", "c"] {
        world.offer(p, 1, name, "", 0);
    }
    let resumed_at = |world: &mut World, number: u64, last: u64| {
        let phase = Phase::Live { last };
        let cursor = Cursor { incarnation: 1, phase }.to_string();
        world.follow(c, number, |follow| {
            follow.cursor = Some(cursor.into());
            follow.until_live = true;
        });
        world.heard(c)
    };
    assert_eq!(
        resumed_at(&mut world, 1, 1),
        [
            "1: began v1",
            "1: live",
            "1: got b v2 ",
            "1: got c v3 ",
            "1: Closed it was asked to end here"
        ]
    );
    assert_eq!(
        resumed_at(&mut world, 2, 3),
        ["2: began v3", "2: live", "2: Closed it was asked to end here"]
    );
}

#[test]
fn a_requirement_keeps_what_comes_after_its_reader_has_caught_up() {
    let mut world = World::new();
    let (p, c) = (world.join("p"), world.join("c"));
    world.require(c, 1, "", false);
    for name in ["a", "b"] {
        world.offer(p, 1, name, "", 0);
    }
    world.follow(c, 2, |follow| {
        follow.requirement = Some(1);
        follow.until_live = true;
        follow.window = 1;
    });
    world.offer(p, 1, "c", "", 0);
    world.release(c, 1);
    world.offer(p, 1, "d", "", 0);
    // It waits for its reader to end, and is not delivered to this one, though it was returned in time.
    world.give_back_undone(c, 2);
    let (first, rest) = (
        ["1: began v0", "2: began v2", "2: got a v1  first"],
        ["2: got b v2  first", "2: live"],
    );
    let end = ["2: got c v3 ", "2: Closed it was asked to end here"];
    assert_eq!(world.heard(c), [&first[..], &rest, &end].concat());
    world.release(c, 3);
    world.follow(c, 3, |follow| follow.requirement = Some(1));
    assert_eq!(
        world.heard(c),
        [
            "3: began v4",
            "3: got b v2  first again",
            "3: got d v4  first",
            "3: live"
        ]
    );
}

#[test]
fn a_follow_is_resumed_from_its_cursor() {
    use junctura_model::version::{Cursor, Phase};
    let mut world = World::new();
    let (p, c) = (world.join("p"), world.join("c"));
    for name in ["a", "b", "c"] {
        world.offer(p, 1, name, "", 0);
    }
    let key = |name: &str| format!("{{set=all}}{{}}{{name={name}}}");
    let first = Phase::First {
        snapshot: 2,
        last_sort_value: None,
        last_key: key("a"),
    };
    let cursor = Cursor {
        incarnation: 1,
        phase: first,
    }
    .to_string();
    world.follow(c, 1, |follow| follow.cursor = Some(cursor.into()));
    assert_eq!(
        world.heard(c),
        ["1: began v2", "1: got b v2  first", "1: live", "1: got c v3 "]
    );

    world.withdraw(p, 2, "c", None, false);
    world.offer(p, 1, "d", "", 0);
    world.heard(c);
    let cursor = Cursor {
        incarnation: 1,
        phase: Phase::Live { last: 2 },
    }
    .to_string();
    world.follow(c, 2, |follow| follow.cursor = Some(cursor.into()));
    assert_eq!(
        world.heard(c),
        ["2: began v2", "2: gap withdrawn c v3", "2: live", "2: got d v4 "]
    );

    let cursor = Cursor {
        incarnation: 7,
        phase: Phase::Live { last: 2 },
    }
    .to_string();
    world.follow(c, 3, |follow| follow.cursor = Some(cursor.into()));
    assert!(world.heard(c)[0].starts_with("3: Expired it belongs to incarnation 7"));
}

#[test]
fn a_list_is_sorted_and_paged() {
    let mut world = World::new();
    let p = world.join("p");
    for (name, payload) in [("b", "12"), ("a", "123"), ("c", "1")] {
        world.offer(p, 1, name, payload, 0);
    }
    world.heard(p);
    world.list(p, 2, "name=a/b", "");
    world.list(p, 3, "", "size");
    assert_eq!(
        world.heard(p),
        ["2: began v3", "2: listed a b.", "3: began v3", "3: listed c b a."]
    );
    for n in 0..400 {
        world.offer(p, 1, &format!("n{n:04}"), "", 0);
    }
    world.heard(p);
    world.list(p, 4, "size=0", "");
    world.withdraw(p, 5, "n0300", None, false);
    world.ask(p, 4, junctura_wire::Request::More(4));
    let heard = world.heard(p);
    assert!(heard[1].ends_with("n0255…"), "{heard:?}");
    assert!(heard[3].contains("n0300") && heard[3].ends_with("n0399."), "{heard:?}");
}

#[test]
fn what_a_requirement_is_owed_stays_until_it_was_received_and_released() {
    let mut world = World::new();
    let (p, c) = (world.join("p"), world.join("c"));
    world.require(c, 1, "name=a", false);
    world.offer(p, 1, "a", "one", 1);
    world.offer(p, 2, "a", "two", 1);
    world.heard(p);
    world.demand(p, 3, "name=a", Some(0));
    world.release(p, 2);
    world.follow(c, 2, |follow| follow.requirement = Some(1));
    assert_eq!(
        world.heard(c),
        [
            "1: began v0",
            "2: began v2",
            "2: got a v1 one first",
            "2: got a v2 two first",
            "2: live"
        ]
    );
    world.release(c, 1);
    world.release(c, 2);
    assert_eq!(world.core.stat().objects.visible, 0);
    assert_eq!(world.core.stat().memory.used_bytes, 0);
}

#[test]
fn a_requirement_for_newest_versions_gives_up_superseded_ones() {
    let mut world = World::new();
    let (p, c) = (world.join("p"), world.join("c"));
    world.require(c, 1, "name=a", true);
    world.offer(p, 1, "a", "one", 0);
    world.offer(p, 2, "a", "two", 0);
    assert_eq!(world.core.stat().objects.kept, 0);
    world.follow(c, 2, |follow| follow.requirement = Some(1));
    assert_eq!(
        world.heard(c),
        ["1: began v0", "2: began v2", "2: got a v2 two first", "2: live"]
    );
    world.follow(c, 3, |follow| follow.requirement = Some(1));
    assert_eq!(world.heard(c), ["3: Conflict a follow reads this requirement already"]);
}

#[test]
fn events_tell_of_objects_and_clients() {
    let mut world = World::new();
    let (p, c) = (world.join("p"), world.join("c"));
    world.subscribe(c, 1, "name=a", events::ALL);
    world.offer(p, 1, "a", "", 0);
    world.offer(p, 2, "b", "", 0);
    world.offer(p, 3, "a", "", 1);
    world.demand(p, 4, "name=a", None);
    world.release(p, 3);
    let q = world.join("q");
    world.leave(q);
    let never_let_in = world.core.join().unwrap();
    world.leave(never_let_in);
    assert_eq!(
        world.heard(c),
        [
            "1: began v0",
            "1: offered a v1 by p",
            "1: superseded a v1 by p",
            "1: offered a v3 by p",
            "1: expired a v3 by p",
            "1: joined by q",
            "1: left by q why",
        ]
    );
    world.fx.backlog_bytes = usize::MAX;
    world.offer(p, 5, "a", "", 0);
    assert!(world.heard(c)[0].starts_with("1: LimitExceeded"));
    world.fx.backlog_bytes = 0;
    world.offer(p, 6, "a", "", 0);
    assert!(world.heard(c).is_empty());
}
