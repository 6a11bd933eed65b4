//! A pool that ends in good order.

use std::time::Duration;

use junctura_model::Code;
use junctura_wire::Request;
use junctura_wire::body::{DrainRequest, Hello, RequireRequest};

use super::World;
use crate::core::tell_undelivered;

const REFUSED: &str = "Closed draining: it takes nothing new, and ends when what is owed has been received";

fn drain(world: &mut World, client: u32, number: u64, timeout_ms: Option<u64>) {
    world.ask(client, number, Request::Drain(DrainRequest { timeout_ms }));
}

#[test]
fn where_nothing_is_owed_it_is_over_at_once() {
    let mut world = World::new();
    let (p, c) = (world.join("p"), world.join("c"));
    world.offer(p, 1, "a", "", 0);
    world.demand(c, 1, "name=a", None);
    world.follow(c, 2, |_| {});
    assert!(world.core.ending().is_none());
    drain(&mut world, p, 2, None);
    assert_eq!(world.core.ending(), Some(&Ok(())));
    assert_eq!(world.heard(p), ["1: offered v1", "2: done 0"]);
}

#[test]
fn very_many_demands_are_refused_in_turns() {
    let mut world = World::with(|config| {
        config.changed_at_once = 4;
        config.leaving_at_once = 3;
    });
    let (p, c) = (world.join("p"), world.join("c"));
    for number in 1..=10 {
        world.demand(c, number, "name=a", Some(5));
    }
    drain(&mut world, p, 2, None);
    assert_eq!((world.heard(c).len(), world.core.ending()), (0, None));
    // One that its client cancels is refused at once, as are those whose time ends.
    world.ask(c, 20, Request::Cancel(10));
    assert_eq!(world.heard(c), [format!("10: {REFUSED}")]);
    let mut refused = Vec::new();
    while world.core.is_behind() {
        assert_eq!(world.core.ending(), None);
        world.pass(0);
        refused.push(world.heard(c).iter().filter(|line| line.contains(REFUSED)).count());
    }
    assert_eq!((refused, world.core.ending()), (vec![3, 3, 3, 0], Some(&Ok(()))));
    assert_eq!(world.heard(p), ["2: done 0"]);
    let mut world = World::with(|config| config.changed_at_once = 0);
    let (p, c) = (world.join("p"), world.join("c"));
    world.demand(c, 1, "name=a", Some(5));
    drain(&mut world, p, 2, None);
    world.pass(5);
    assert_eq!(world.heard(c), [format!("1: {REFUSED}")]);
    assert_eq!(world.core.ending(), Some(&Ok(())));
}

#[test]
fn what_requirements_are_owed_is_received_first() {
    let mut world = World::new();
    let (p, c) = (world.join("p"), world.join("c"));
    world.require(c, 1, "", false);
    world.offer(p, 1, "a", "one", 0);
    world.offer(p, 2, "b", "two", 0);
    drain(&mut world, p, 3, None);
    assert_eq!(world.core.stat().draining.unwrap().owed, 2);
    world.follow(c, 2, |follow| follow.requirement = Some(1));
    world.release(c, 1);
    assert!(world.core.ending().is_none());
    world.heard(p);
    world.release(c, 2);
    assert_eq!(world.core.ending(), Some(&Ok(())));
    assert_eq!(world.heard(p), ["3: done 0"]);
}

#[test]
fn a_withdraw_that_waited_is_answered_before_the_end() {
    let mut world = World::new();
    let (p, c) = (world.join("p"), world.join("c"));
    world.require(c, 1, "", false);
    world.offer(p, 1, "a", "", 0);
    world.withdraw(p, 2, "a", None, false);
    drain(&mut world, p, 3, None);
    world.heard(p);
    world.leave(c);
    assert_eq!(world.heard(p), ["2: done 1", "3: done 0"]);
}

#[test]
fn nothing_new_is_taken_and_who_waits_is_told() {
    let mut world = World::with(|config| config.budget_bytes = 4096);
    let (p, c) = (world.join("p"), world.join("c"));
    world.require(c, 1, "name=a", false);
    let payload = "x".repeat(3000);
    world.offer(p, 1, "a", &payload, 0);
    world.offer(p, 2, "b", &payload, 0);
    world.offer(p, 3, "c", "", 0);
    world.lease(p, 4, 4000, None);
    world.demand(c, 2, "name=z", None);
    world.demand_key(c, 3, "z", Some(50));
    world.heard(p);
    world.heard(c);
    drain(&mut world, p, 5, None);
    let (mut heard_p, mut heard_c) = (world.heard(p), world.heard(c));
    heard_p.sort();
    heard_c.sort();
    assert_eq!(heard_p, [2, 3, 4].map(|number| format!("{number}: {REFUSED}")));
    assert_eq!(heard_c, [2, 3].map(|number| format!("{number}: {REFUSED}")));
    world.offer(p, 6, "d", "", 0);
    world.lease(p, 7, 100, None);
    world.require(c, 6, "", false);
    world.demand(c, 7, "name=z", None);
    world.demand(c, 8, "name=z", Some(0));
    assert_eq!(world.heard(p), [6, 7].map(|number| format!("{number}: {REFUSED}")));
    let heard = world.heard(c);
    assert_eq!(heard[..2], [6, 7].map(|number| format!("{number}: {REFUSED}")));
    assert_eq!(
        heard[2],
        "8: NotFound no object in the pool matches now; a demand with a timeout waits for one"
    );
    // Existing objects can be read, and no refused one returns.
    world.list(c, 9, "", "");
    assert_eq!(world.heard(c)[1], "9: listed a.");
    world.pass(100);
    assert!(world.heard(c).is_empty());
}

#[test]
fn nobody_new_is_let_in_but_visitors() {
    let mut world = World::new();
    let c = world.join("c");
    world.require(c, 1, "", false);
    world.offer(c, 2, "a", "", 0);
    world.core.drain(world.now, None, &mut world.fx);
    for (visits, said) in [(false, 2), (true, 1)] {
        let client = world.core.join().unwrap();
        let hello = Hello {
            version: junctura_wire::VERSION,
            visits,
            ..Hello::default()
        };
        world.ask(client, 0, Request::Hello(hello));
        let heard = world.heard(client);
        assert_eq!(heard.len(), said, "{heard:?}");
        if visits {
            drain(&mut world, client, 1, Some(0));
        } else {
            assert!(heard[0].starts_with("0: Unavailable draining") && heard[1] == "disconnected");
        }
    }
    assert!(world.core.ending().is_some());
}

fn connect(world: &mut World) -> (u32, Vec<String>) {
    let client = world.core.join().unwrap();
    let hello = Hello {
        version: junctura_wire::VERSION,
        ..Hello::default()
    };
    world.ask(client, 0, Request::Hello(hello));
    let heard = world.heard(client);
    (client, heard)
}

#[test]
fn whoever_reads_what_a_name_is_owed_may_connect_and_do_nothing_else() {
    let mut world = World::new();
    let p = world.join("p");
    let group = |name: &'static str| {
        Request::Require(RequireRequest {
            name: Some(name.into()),
            group: true,
            ..RequireRequest::default()
        })
    };
    world.ask(p, 1, group("g"));
    world.offer(p, 2, "a", "", 0);
    drain(&mut world, p, 3, None);
    let (c, heard) = connect(&mut world);
    assert_eq!(heard.len(), 1, "{heard:?}");
    world.offer(c, 1, "b", "", 0);
    world.follow(c, 2, |_| {});
    world.demand(c, 3, "name=a", Some(0));
    world.list(c, 4, "", "");
    world.ask(c, 5, group("other"));
    let heard = world.heard(c);
    assert_eq!(heard.len(), 5, "{heard:?}");
    assert!(
        heard.iter().all(|line| line.contains("Unavailable draining")),
        "{heard:?}"
    );
    world.ask(c, 6, group("g"));
    world.follow(c, 7, |follow| follow.group = Some("g".into()));
    assert_eq!(world.heard(c)[2], "7: got a v1  first");
    assert!(world.core.ending().is_none());
    world.release(c, 1);
    assert_eq!(world.core.ending(), Some(&Ok(())));
    let (_, heard) = connect(&mut world);
    assert!(
        heard[0].starts_with("0: Unavailable draining"),
        "nothing is owed: {heard:?}"
    );
}

#[test]
fn after_its_time_it_ends_and_says_what_was_left() {
    let mut world = World::new();
    let (p, c) = (world.join("p"), world.join("c"));
    world.require(c, 1, "name=a/b", false);
    world.require(c, 2, "name=c", false);
    for name in ["a", "b", "d"] {
        world.offer(p, 1, name, "", 0);
    }
    world.heard(p);
    drain(&mut world, p, 2, Some(10));
    world.pass(9);
    assert!(world.core.ending().is_none());
    assert_eq!(world.core.deadline(), Some(10_000_000));
    world.pass(1);
    let cause = "ended before all was received; left: 2, c (pid 1 on h) requires \"name=a/b\" (2)";
    assert_eq!(world.heard(p), [format!("2: Timeout {cause}")]);
    let left = world.core.ending().unwrap().as_ref().unwrap_err();
    assert_eq!((left.code(), left.cause()), (Code::Timeout, cause));
}

#[test]
fn a_second_word_can_only_bring_the_end_forward() {
    let mut world = World::new();
    let (p, c) = (world.join("p"), world.join("c"));
    world.require(c, 1, "", false);
    world.offer(p, 1, "a", "", 0);
    world.core.drain(0, Some(Duration::from_millis(50)), &mut world.fx);
    drain(&mut world, p, 2, None);
    drain(&mut world, c, 2, Some(100));
    assert_eq!(world.core.deadline(), Some(50_000_000));
    world.ask(p, 3, Request::Cancel(2));
    world.heard(c);
    world.heard(p);
    drain(&mut world, p, 4, Some(0));
    assert!(world.heard(p)[0].starts_with("4: Timeout ended before"));
    assert!(world.heard(c)[0].starts_with("2: Timeout ended before"));
}

/// A client follows with a window of one object, and three are visible.
fn follows_slowly(world: &mut World) -> (u32, u32) {
    let (p, c) = (world.join("p"), world.join("c"));
    world.follow(c, 1, |follow| follow.window = 1);
    for name in ["a", "b", "d"] {
        world.offer(p, 1, name, "", 0);
    }
    (p, c)
}

#[test]
fn a_follow_receives_what_was_visible_before_the_end() {
    let mut world = World::new();
    let (p, c) = follows_slowly(&mut world);
    drain(&mut world, p, 2, None);
    assert_eq!(world.core.stat().draining.unwrap().undelivered, 2);
    assert_eq!(world.reasons(), ["p drain: followers c"]);
    world.release(c, 1);
    world.release(c, 2);
    assert!(
        world.core.ending().is_none(),
        "the last delivery is sent before the end"
    );
    assert_eq!(world.core.deadline(), Some(0));
    world.pass(0);
    assert_eq!(world.core.ending(), Some(&Ok(())));
    assert_eq!(world.heard(c)[2..], ["1: got a v1 ", "1: got b v2 ", "1: got d v3 "]);
    assert_eq!(tell_undelivered(&mut world.core, &mut world.fx), 0);
}

#[test]
fn a_reader_that_releases_nothing_holds_the_end_for_a_time_and_learns_what_it_missed() {
    let mut world = World::new();
    let (p, c) = follows_slowly(&mut world);
    world.pass(60_000);
    drain(&mut world, p, 2, None);
    world.pass(9_000);
    world.release(c, 1);
    world.pass(9_999);
    assert!(world.core.ending().is_none());
    world.pass(1);
    let cause = "ended before all was received; left: 1, c (pid 1 on h) follows \"\" (1)";
    assert_eq!(world.heard(p).last().unwrap(), &format!("2: Gone {cause}"));
    world.heard(c);
    assert_eq!(tell_undelivered(&mut world.core, &mut world.fx), 1);
    assert_eq!(world.heard(c), ["1: gap stopped d v3"]);
}

#[test]
fn a_requirement_that_is_stuck_earlier_shortens_the_time_of_follows() {
    let mut world = World::with(|config| config.stuck_after = Duration::from_millis(5));
    let (p, _) = follows_slowly(&mut world);
    drain(&mut world, p, 2, None);
    world.pass(4);
    assert!(world.core.ending().is_none());
    world.pass(1);
    let left = world.core.ending().unwrap().as_ref().unwrap_err();
    assert_eq!(left.code(), Code::Gone);
}

#[test]
fn a_stalled_reader_that_continues_before_the_end_loses_nothing() {
    let mut world = World::new();
    let (p, c, r) = (world.join("p"), world.join("c"), world.join("r"));
    world.require(r, 1, "name=a", false);
    world.follow(c, 1, |follow| follow.window = 1);
    for name in ["a", "b", "d"] {
        world.offer(p, 1, name, "", 0);
    }
    drain(&mut world, p, 2, None);
    world.pass(10_000);
    assert!(world.core.ending().is_none());
    world.release(c, 1);
    world.release(c, 2);
    world.leave(r);
    world.pass(0);
    assert_eq!(world.core.ending(), Some(&Ok(())));
}

#[test]
fn a_time_or_the_end_of_the_reader_ends_the_wait_for_a_follow() {
    let mut world = World::new();
    let (p, _) = follows_slowly(&mut world);
    drain(&mut world, p, 2, Some(0));
    let left = world.core.ending().unwrap().as_ref().unwrap_err();
    let cause = "ended before all was received; left: 2, c (pid 1 on h) follows \"\" (2)";
    assert_eq!((left.code(), left.cause()), (Code::Timeout, cause));

    let mut world = World::new();
    let (p, c) = follows_slowly(&mut world);
    drain(&mut world, p, 2, None);
    world.leave(c);
    world.pass(0);
    assert_eq!(world.core.ending(), Some(&Ok(())));
}

#[test]
fn a_follow_that_begins_during_the_drain_does_not_delay_the_end() {
    let mut world = World::new();
    let (p, c) = follows_slowly(&mut world);
    drain(&mut world, p, 2, None);
    world.follow(p, 3, |follow| follow.window = 1);
    world.release(c, 1);
    world.release(c, 2);
    world.pass(0);
    assert_eq!(world.core.ending(), Some(&Ok(())));
    assert_eq!(tell_undelivered(&mut world.core, &mut world.fx), 2);
}

#[test]
fn of_very_many_undelivered_objects_some_are_named() {
    let mut world = World::new();
    let (p, c) = (world.join("p"), world.join("c"));
    world.follow(c, 1, |follow| follow.window = 1);
    for number in 0..1003 {
        world.offer(p, 1, &format!("n{number}"), "", 0);
    }
    world.heard(c);
    assert_eq!(tell_undelivered(&mut world.core, &mut world.fx), 1002);
    let heard = world.heard(c);
    assert_eq!(heard.len(), 2);
    assert!(heard[0].starts_with("1: gap stopped n1 v2 n2 v3 "));
    assert_eq!(heard[1], "1: gap stopped and 2 more");
}

#[test]
fn follows_that_have_yet_to_be_told_of_an_object_delay_the_end() {
    for timeout in [None, Some(0)] {
        let mut world = World::with(|config| config.told_at_once = 1);
        let (p, c) = (world.join("p"), world.join("c"));
        for number in 1..=40 {
            world.follow(c, number, |follow| follow.window = 1);
        }
        world.offer(p, 1, "a", "", 0);
        world.offer(p, 2, "b", "", 0);
        drain(&mut world, p, 3, timeout);
        if timeout.is_some() {
            let left = world.core.ending().unwrap().as_ref().unwrap_err();
            assert!(left.cause().contains("left: 79, "), "{left:?}");
            assert_eq!(tell_undelivered(&mut world.core, &mut world.fx), 79);
            continue;
        }
        assert_eq!(world.core.stat().draining.unwrap().undelivered, 79);
        while world.core.is_delivering() {
            assert_eq!(world.core.ending(), None);
            world.pass(0);
        }
        assert_eq!(world.core.stat().draining.unwrap().undelivered, 40);
        world.pass(9_999);
        assert_eq!(world.core.ending(), None);
        world.pass(1);
        let left = world.core.ending().unwrap().as_ref().unwrap_err();
        assert_eq!(left.code(), Code::Gone);
        assert!(left.cause().contains("left: 40, "), "{left:?}");
        world.heard(c);
        assert_eq!(tell_undelivered(&mut world.core, &mut world.fx), 40);
        let gaps = world
            .heard(c)
            .iter()
            .filter(|line| line.ends_with("gap stopped b v2"))
            .count();
        assert_eq!(gaps, 40);
    }
}

#[test]
fn very_many_follows_that_delay_the_end_are_found_and_given_up_in_turns() {
    let mut world = World::with(|config| {
        config.changed_at_once = 4;
        config.leaving_at_once = 3;
        config.due_at_once = 3;
    });
    let (p, c) = (world.join("p"), world.join("c"));
    for number in 1..=10 {
        world.follow(c, number, |follow| follow.window = 1);
    }
    world.offer(p, 1, "a", "", 0);
    world.offer(p, 2, "b", "", 0);
    drain(&mut world, p, 3, None);
    world.follow(p, 4, |follow| follow.window = 1);
    let undelivered = |world: &World| world.core.stat().draining.unwrap().undelivered;
    let mut found = Vec::new();
    while world.core.is_behind() {
        found.push(undelivered(&world));
        world.pass(0);
    }
    assert_eq!(found, [0, 3, 6, 9]);
    assert_eq!(undelivered(&world), 10);
    world.pass(10_000);
    let mut turns = 0;
    while world.core.ending().is_none() {
        assert!(world.core.deadline().is_some_and(|at| at <= world.now));
        world.pass(0);
        turns += 1;
    }
    assert_eq!(turns, 3);
}

#[test]
fn members_of_many_bundles_are_dropped_in_turns() {
    let mut world = World::with(|config| (config.changed_at_once, config.leaving_at_once) = (4, 1));
    let p = world.join("p");
    for bundle in 1..=3 {
        world.open(p, bundle, &format!("b{bundle}"), 10);
        for member in 0..3 {
            world.stage(p, 10 * bundle + member, bundle, &format!("n{bundle}{member}"), "x");
        }
    }
    drain(&mut world, p, 9, None);
    assert_eq!(
        (world.core.stat().bundles.staged, world.core.stat().memory.used_bytes),
        (0, 6)
    );
    while world.core.is_behind() {
        world.pass(0);
    }
    assert_eq!(world.core.stat().memory.used_bytes, 0);
}

#[test]
fn a_drain_without_time_answers_all_demands_and_names_all_follows() {
    let mut world = World::with(|config| (config.changed_at_once, config.leaving_at_once) = (0, 1));
    let (p, c) = follows_slowly(&mut world);
    for number in 2..=5 {
        world.demand(c, number, "name=absent", None);
    }
    world.heard(c);
    drain(&mut world, p, 2, Some(0));
    let left = world.core.ending().unwrap().as_ref().unwrap_err();
    assert!(left.cause().contains("left: 2, c"), "{left:?}");
    assert_eq!(
        world.heard(c),
        [2, 3, 4, 5].map(|number| format!("{number}: {REFUSED}"))
    );
}
