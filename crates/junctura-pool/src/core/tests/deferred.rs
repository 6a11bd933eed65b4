//! Very many objects that are removed at once: other clients are served meanwhile, and no client sees a hidden object.

use junctura_model::version::{Cursor, Phase};
use junctura_wire::Request;
use junctura_wire::body::{TargetBody, WithdrawRequest, events};

use super::World;

/// Two objects are removed in one event.
fn slow() -> World {
    World::with(|config| config.leaving_at_once = 2)
}

/// `p` offers `a` to `e`, for ten milliseconds.
fn offer_five(world: &mut World, p: u32) {
    for (number, name) in (1..).zip(["a", "b", "c", "d", "e"]) {
        world.offer_for(p, number, name, 10);
    }
    world.heard(p);
}

fn visible(world: &World) -> u64 {
    world.core.stat().objects.visible
}

/// Takes out whatever matches.
fn withdraw_all(world: &mut World, client: u32, number: u64, selector: &str, force: bool) {
    let withdraw = WithdrawRequest {
        target: TargetBody::selector(selector),
        timeout_ms: None,
        force,
    };
    world.ask(client, number, Request::WithdrawAll(withdraw));
}

#[test]
fn those_of_one_instant_go_a_few_at_a_time_and_in_their_order() {
    let mut world = slow();
    let (p, c) = (world.join("p"), world.join("c"));
    world.subscribe(c, 1, "", events::EXPIRED);
    offer_five(&mut world, p);
    world.pass(10);
    assert_eq!(
        world.heard(c),
        ["1: began v0", "1: expired a v1 by p", "1: expired b v2 by p"]
    );
    assert_eq!((visible(&world), world.core.is_behind()), (3, true));
    assert_eq!(world.core.deadline(), Some(10_000_000));
    world.pass(0);
    world.pass(0);
    assert_eq!(
        world.heard(c),
        ["1: expired c v3 by p", "1: expired d v4 by p", "1: expired e v5 by p"]
    );
    assert_eq!((visible(&world), world.core.is_behind()), (0, false));
}

#[test]
fn what_has_yet_to_go_is_seen_by_nobody() {
    let mut world = slow();
    let (p, c) = (world.join("p"), world.join("c"));
    world.subscribe(p, 9, "", events::EXPIRED);
    offer_five(&mut world, p);
    world.pass(10);
    world.heard(p);
    world.list(c, 1, "", "");
    world.demand(c, 2, "", Some(0));
    world.follow(c, 3, |_| {});
    world.require(c, 4, "", false);
    assert_eq!(
        world.heard(c),
        [
            "1: began v5",
            "1: listed .",
            "2: NotFound no such object is in the pool now",
            "3: began v5",
            "3: live",
            "4: began v5"
        ]
    );
    assert_eq!(visible(&world), 3, "no request has reached one");
    world.demand_key(c, 5, "e", None);
    world.withdraw(c, 6, "d", None, false);
    assert_eq!(
        world.heard(c),
        ["5: Gone version 1.5 was expired", "6: Gone version 1.4 was expired"]
    );
    assert_eq!(world.heard(p), ["9: expired e v5 by p", "9: expired d v4 by p"]);
    world.pass(0);
    assert_eq!(world.heard(p), ["9: expired c v3 by p"]);
    assert!(world.heard(c).is_empty() && !world.core.is_behind());
}

#[test]
fn another_offer_of_the_key_is_no_newer_version_of_what_has_yet_to_go() {
    let mut world = slow();
    let (p, c) = (world.join("p"), world.join("c"));
    world.subscribe(c, 1, "", events::EXPIRED | events::SUPERSEDED);
    offer_five(&mut world, p);
    world.pass(10);
    world.heard(c);
    world.offer(p, 6, "e", "", 0);
    assert_eq!(world.heard(p), ["6: offered v6"]);
    assert_eq!(world.heard(c), ["1: expired e v5 by p"]);
    world.pass(0);
    assert_eq!((visible(&world), world.core.stat().totals.superseded), (1, 0));
}

#[test]
fn a_follow_comes_upon_a_gap_before_its_turn() {
    let mut world = slow();
    let (p, c) = (world.join("p"), world.join("c"));
    world.follow(c, 1, |follow| follow.window = 1);
    offer_five(&mut world, p);
    world.pass(10);
    world.heard(c);
    world.release(c, 1);
    assert_eq!(
        world.heard(c),
        ["1: gap expired b v2 c v3 d v4 e v5"],
        "in place of all that it had yet to be given"
    );
    assert_eq!(visible(&world), 0);
}

#[test]
fn a_follow_that_goes_on_from_a_cursor_is_told_of_what_has_yet_to_go() {
    let mut world = slow();
    let (p, c) = (world.join("p"), world.join("c"));
    offer_five(&mut world, p);
    world.pass(10);
    let cursor = Cursor {
        incarnation: 1,
        phase: Phase::Live { last: 1 },
    };
    world.follow(c, 1, |follow| follow.cursor = Some(cursor.to_string().into()));
    assert_eq!(
        world.heard(c),
        ["1: began v1", "1: gap expired b v2 c v3 d v4 e v5", "1: live"]
    );
    assert_eq!(visible(&world), 3);
    world.pass(0);
    world.pass(0);
    assert!(world.heard(c).is_empty(), "it is sent once");
}

#[test]
fn a_requirement_that_is_owed_one_keeps_it() {
    let mut world = slow();
    let (p, c) = (world.join("p"), world.join("c"));
    world.require(c, 1, "name=e", false);
    offer_five(&mut world, p);
    world.pass(10);
    world.demand_key(p, 6, "e", None);
    assert_eq!(world.heard(p), ["6: got e v5 "]);
    world.pass(0);
    world.pass(0);
    assert_eq!((visible(&world), world.core.is_behind()), (1, false));
}

#[test]
fn a_retire_is_answered_when_all_has_gone_and_others_are_served_meanwhile() {
    let mut world = slow();
    let (p, c) = (world.join("p"), world.join("c"));
    offer_five(&mut world, p);
    withdraw_all(&mut world, p, 6, "", false);
    assert!(world.heard(p).is_empty());
    assert_eq!((visible(&world), world.core.is_behind()), (3, true));
    world.demand_key(c, 1, "d", None);
    world.ask(c, 2, Request::Sync);
    world.ask(p, 7, Request::Sync);
    world.offer(c, 3, "f", "", 0);
    assert_eq!(
        world.heard(c),
        ["1: Gone version 1.4 was withdrawn", "2: done 0", "3: offered v6"]
    );
    world.pass(0);
    assert_eq!(world.heard(p), ["6: done 5", "7: done 0"]);
    assert_eq!((visible(&world), world.core.stat().totals.withdrawn), (1, 5));
    world.pass(20);
    assert_eq!(world.core.stat().totals.expired, 0);
}

#[test]
fn what_is_taken_out_by_force_is_given_to_no_reader_any_more() {
    let mut world = slow();
    let (p, c, g) = (world.join("p"), world.join("c"), world.join("g"));
    world.require(c, 1, "name=a/c/e", false);
    world.follow(c, 2, |follow| (follow.requirement, follow.window) = (Some(1), 1));
    world.follow(g, 1, |follow| {
        follow.group = Some("g".into());
        follow.group_terms = Some(junctura_wire::body::GroupTerms::default());
        (follow.selector, follow.window) = ("name=b/d/e".into(), 1);
    });
    for (number, name) in (1..).zip(["a", "b", "c", "d", "e"]) {
        world.offer(p, number, name, "", 0);
    }
    world.heard(c);
    world.heard(g);
    withdraw_all(&mut world, p, 6, "", true);
    assert_eq!(visible(&world), 3);
    world.release(c, 1);
    world.release(g, 2);
    assert_eq!(world.heard(c), ["2: gap withdrawn c v3", "2: gap withdrawn e v5"]);
    assert_eq!(world.heard(g), ["1: gap withdrawn e v5", "1: gap withdrawn d v4"]);
    world.pass(0);
    assert_eq!((visible(&world), world.core.is_behind()), (0, false));
}

#[test]
fn what_a_requirement_kept_goes_in_turns_when_it_ends() {
    let mut world = slow();
    let (p, c) = (world.join("p"), world.join("c"));
    world.require_named(c, 1, "r", "", 0);
    for (number, name) in (1..).zip(["a", "b", "c", "d", "e"]) {
        world.offer_for(p, number, name, 10);
    }
    world.pass(10);
    world.pass(0);
    world.pass(0);
    world.heard(p);
    world.heard(c);
    world.retract(p, 6, "r");
    assert_eq!((visible(&world), world.core.is_behind()), (3, true));
    assert!(world.heard(p).is_empty());
    world.demand(c, 2, "", Some(0));
    world.pass(0);
    world.pass(0);
    assert_eq!(world.heard(p), ["6: done 5"]);
    assert_eq!(world.core.stat().totals.expired, 5);
    assert_eq!(world.heard(c)[1..], ["2: NotFound no such object is in the pool now"]);
}

#[test]
fn memory_of_what_a_client_held_comes_free_in_turns() {
    let mut world = slow();
    let (p, c) = (world.join("p"), world.join("c"));
    for (number, name) in (1..).zip(["a", "b", "c", "d", "e"]) {
        world.offer(p, number, name, "xxxx", 0);
    }
    world.follow(c, 1, |_| {});
    withdraw_all(&mut world, p, 6, "", false);
    world.pass(0);
    world.pass(0);
    assert_eq!((visible(&world), world.core.stat().memory.used_bytes), (0, 20));
    world.leave(c);
    assert_eq!(world.core.stat().memory.used_bytes, 12);
    world.pass(0);
    world.pass(0);
    assert!(!world.core.is_behind());
    world.leave(p);
    world.assert_empty();
}

#[test]
fn a_payload_whose_turn_has_not_come_goes_when_nobody_is_to_be_told_of_its_object_any_more() {
    let mut world = World::with(|config| config.leaving_at_once = 1);
    let (p, c, d) = (world.join("p"), world.join("c"), world.join("d"));
    world.follow(d, 1, |follow| follow.window = 1);
    for (number, name) in (1..).zip(["a", "b", "c"]) {
        world.offer(p, number, name, "xxxx", 0);
    }
    world.follow(c, 1, |_| {});
    for (number, name) in (4..).zip(["a", "b", "c"]) {
        world.withdraw(p, number, name, None, false);
    }
    world.leave(c);
    world.leave(d);
    world.pass(0);
    world.pass(0);
    world.leave(p);
    world.assert_empty();
}

#[test]
fn nobody_is_broken_for_memory_that_is_about_to_come_free() {
    let mut world = World::with(|config| {
        config.leaving_at_once = 1;
        config.budget_bytes = 8192;
    });
    let (p, c) = (world.join("p"), world.join("c"));
    let payload = "x".repeat(2000);
    world.require_with(c, 1, "name=kept", |require| require.breaks_on_full = true);
    world.offer(p, 1, "kept", &payload, 1);
    world.demand_key(p, 2, "kept", None);
    world.release(p, 1);
    for (number, name) in (3..).zip(["a", "b", "c"]) {
        let flags = junctura_wire::fixed::FOR_A_TIME;
        world.stage_or_offer(p, number, None, name, &payload, (flags, 10));
    }
    world.heard(p);
    world.pass(10);
    for (number, name) in (6..).zip(["d", "e", "f"]) {
        world.offer(p, number, name, &payload, 0);
    }
    assert_eq!(world.heard(p), ["6: offered v5"]);
    world.pass(0);
    world.pass(0);
    assert_eq!(world.heard(p), ["7: offered v6", "8: offered v7"]);
    assert_eq!(world.core.stat().totals.broken, 0);
    world.offer(p, 9, "g", &payload, 0);
    assert_eq!(world.core.stat().totals.broken, 1, "now it is in vain");
}

#[test]
fn timers_come_in_their_time_while_very_many_go() {
    let mut world = slow();
    let (p, c) = (world.join("p"), world.join("c"));
    offer_five(&mut world, p);
    world.demand(c, 1, "name=z", Some(10));
    world.pass(10);
    assert_eq!(world.heard(c), ["1: Timeout no matching object arrived in time"]);
    assert_eq!(visible(&world), 3);
}
