//! Removal of objects: versions, retention, withdraw, tombstones, disconnects.

use junctura_wire::Request;
use junctura_wire::body::{ForgetRequest, TargetBody};

use super::World;

#[test]
fn a_newer_version_takes_the_place_and_holders_keep_theirs() {
    let mut world = World::new();
    let (p, c) = (world.join("p"), world.join("c"));
    world.offer(p, 1, "a", "one", 0);
    world.demand(c, 1, "name=a", None);
    world.offer(p, 2, "a", "two", 0);
    assert_eq!(world.core.stat().objects.kept, 1);
    world.demand(c, 2, "name=a", None);
    assert_eq!(world.heard(c), ["1: got a v1 one", "2: got a v2 two"]);
    world.release(c, 1);
    assert_eq!(world.core.stat().objects.kept, 0);
}

#[test]
fn where_a_schema_rejects_the_key_stays_taken_as_long_as_it_is_remembered() {
    let mut world = World::rejecting();
    let p = world.join("p");
    world.offer(p, 1, "a", "one", 0);
    world.offer(p, 2, "a", "two", 0);
    world.withdraw(p, 3, "a", None, false);
    world.offer(p, 4, "a", "three", 0);
    let heard = world.heard(p);
    assert_eq!((heard[0].as_str(), heard[2].as_str()), ("1: offered v1", "3: done 1"));
    assert!(heard[1].starts_with("2: AlreadyExists") && heard[3].starts_with("4: AlreadyExists"));
    world.demand_key(p, 5, "a", None);
    assert_eq!(world.heard(p), ["5: Gone version 1.1 was withdrawn"]);
    world.withdraw(p, 6, "a", None, false);
    assert_eq!(world.heard(p), ["6: Gone version 1.1 was withdrawn"]);
    world.pass(600_000);
    world.demand_key(p, 7, "a", None);
    world.offer(p, 8, "a", "four", 0);
    assert_eq!(world.heard(p), ["7: got a v2 four", "8: offered v2"]);
}

#[test]
fn a_key_is_free_when_its_object_is_forgotten() {
    let mut world = World::rejecting();
    let p = world.join("p");
    for name in ["a", "b", "c"] {
        world.offer(p, 1, name, "", 0);
    }
    for name in ["a", "b"] {
        world.withdraw(p, 2, name, None, false);
    }
    world.heard(p);
    let forget = |target| Request::Forget(ForgetRequest { target });
    world.ask(p, 3, forget(TargetBody::selector("name=a/c")));
    assert_eq!(world.heard(p), ["3: done 1"], "visible objects stay");
    world.offer(p, 4, "a", "again", 0);
    world.offer(p, 5, "b", "again", 0);
    world.offer(p, 6, "c", "again", 0);
    let heard = world.heard(p);
    assert_eq!(heard[0], "4: offered v4");
    assert!(
        heard[1].starts_with("5: AlreadyExists") && heard[2].starts_with("6: AlreadyExists"),
        "{heard:?}"
    );
    assert!(heard[1].contains("--schema letters --forget`"), "{heard:?}");
    world.ask(p, 7, forget(TargetBody::selector("")));
    world.demand_key(p, 8, "b", Some(0));
    let heard = world.heard(p);
    assert_eq!(heard[0], "7: done 1");
    assert!(heard[1].starts_with("8: NotFound"), "{heard:?}");
}

#[test]
fn tombstones_have_a_count() {
    let mut world = World::with(|config| config.tombstones_per_dataset = 2);
    let p = world.join("p");
    for name in ["a", "b", "c"] {
        world.offer(p, 1, name, "", 0);
        world.withdraw(p, 2, name, None, false);
    }
    world.heard(p);
    world.demand_key(p, 3, "a", Some(0));
    world.demand_key(p, 4, "b", Some(0));
    let heard = world.heard(p);
    assert!(
        heard[0].starts_with("3: NotFound") && heard[1].starts_with("4: Gone"),
        "{heard:?}"
    );
}

#[test]
fn retention_counts_releases_of_different_consumers() {
    let mut world = World::new();
    let (p, c, d) = (world.join("p"), world.join("c"), world.join("d"));
    world.offer(p, 1, "a", "", 2);
    for client in [c, c, d] {
        world.demand(client, 1, "name=a", Some(0));
        assert_eq!(world.heard(client), ["1: got a v1 "]);
        world.release(client, 1);
    }
    world.demand_key(c, 2, "a", Some(0));
    assert_eq!(world.heard(c), ["2: Gone version 1.1 was expired"]);
}

#[test]
fn withdraw_waits_for_requirements_that_came_before_it() {
    let mut world = World::new();
    let (p, c) = (world.join("p"), world.join("c"));
    world.offer(p, 1, "a", "", 0);
    world.require(c, 1, "name=a", false);
    world.withdraw(p, 2, "a", Some(10), false);
    world.pass(10);
    assert_eq!(
        world.heard(p),
        [
            "1: offered v1",
            "2: Timeout still offered, since it is wanted: c (pid 1 on h) requires \"name=a\"; 0 withdrawn"
        ]
    );
    world.withdraw(p, 3, "a", None, false);
    world.require(c, 2, "name=a", false);
    world.follow(c, 3, |follow| follow.requirement = Some(1));
    world.release(c, 1);
    assert_eq!(world.heard(p), ["3: done 1"]);
    assert_eq!(
        world.heard(c),
        [
            "1: began v1",
            "2: began v1",
            "3: began v1",
            "3: got a v1  first",
            "3: live",
            "2: gap withdrawn a v1"
        ]
    );
}

#[test]
fn a_forced_withdraw_leaves_gaps_and_an_ended_requirement_delays_nobody() {
    let mut world = World::new();
    let (p, c) = (world.join("p"), world.join("c"));
    world.require(c, 1, "", false);
    world.offer(p, 1, "a", "", 0);
    world.offer(p, 2, "b", "", 0);
    world.withdraw(p, 3, "a", None, true);
    world.withdraw(p, 4, "b", None, false);
    assert_eq!(world.heard(c), ["1: began v0", "1: gap withdrawn a v1"]);
    world.leave(c);
    assert_eq!(
        world.heard(p),
        ["1: offered v1", "2: offered v2", "3: done 1", "4: done 1"]
    );
    world.leave(p);
    world.assert_empty();
}

#[test]
fn whoever_leaves_holds_wants_and_leases_nothing_and_what_it_offered_stays() {
    let mut world = World::new();
    let (p, c) = (world.join("p"), world.join("c"));
    world.lease(p, 1, 10_000, None);
    world.offer_slot(p, 2, "a", 1, 0, 10_000);
    world.follow(c, 1, |_| {});
    world.demand(c, 2, "name=z", None);
    world.require(c, 3, "", false);
    world.subscribe(c, 4, "", 1);
    world.list(c, 5, "", "");
    world.leave(p);
    assert_eq!(world.core.stat().objects.visible, 1);
    world.leave(c);
    assert_eq!(world.core.stat().interests.standing, 0);
    let d = world.join("d");
    world.withdraw(d, 1, "a", None, false);
    world.leave(d);
    world.assert_empty();
}

#[test]
fn a_path_is_free_when_the_keys_of_its_bundle_are() {
    for new in [World::rejecting, World::new] {
        let mut world = new();
        let p = world.join("p");
        let forget = |selector| {
            Request::Forget(ForgetRequest {
                target: TargetBody::selector(selector),
            })
        };
        let offer_both = |world: &mut World, number| {
            world.open(p, number, "outer", 2);
            world.open(p, number + 1, "outer/inner", 2);
            world.stage(p, number + 2, number, "b", "");
            world.stage(p, number + 3, number + 1, "a", "");
            world.stage(p, number + 4, number + 1, "c", "");
            world.heard(p)
        };
        offer_both(&mut world, 1);
        world.withdraw(p, 6, "a", None, false);
        world.withdraw(p, 7, "b", None, false);
        world.ask(p, 8, forget(""));
        world.heard(p);
        // One of the inner bundle's objects is visible, and the outer bundle has the inner one.
        world.open(p, 9, "outer", 2);
        world.open(p, 10, "outer/inner", 2);
        for heard in world.heard(p) {
            assert!(heard.contains("BundleClosed"), "{heard}");
        }
        world.withdraw(p, 11, "c", None, false);
        world.ask(p, 12, forget("name=c"));
        assert_eq!(world.heard(p), ["11: done 1", "12: done 1"]);
        let heard = offer_both(&mut world, 13).join("\n");
        assert!(heard.contains("13: completed 3 from v4"), "{heard}");
    }
}

#[test]
fn the_path_of_a_superseded_bundle_is_free_with_the_newer_keys() {
    let mut world = World::new();
    let p = world.join("p");
    for (number, path) in [(1, "first"), (3, "second")] {
        world.open(p, number, path, 1);
        world.stage(p, number + 1, number, "a", "");
    }
    world.heard(p);
    let forget = |world: &mut World, number, selector| {
        let target = TargetBody::selector(selector);
        world.ask(p, number, Request::Forget(ForgetRequest { target }));
        world.open(p, number + 1, "first", 1);
        world.heard(p).pop().unwrap_or_default()
    };
    assert!(forget(&mut world, 5, "").contains("BundleClosed"));
    world.withdraw(p, 7, "a", None, false);
    assert!(forget(&mut world, 8, "name=z").contains("BundleClosed"));
    assert_eq!(forget(&mut world, 10, "name=a"), "11: began v2");
}
