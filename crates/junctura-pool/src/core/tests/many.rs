//! Many of a kind: removing an item costs as much as the item, and a later owner of its number is a different item.

use junctura_wire::Request;
use junctura_wire::body::{DemandRequest, GroupTerms, TargetBody, events};

use super::World;

fn demand_through(world: &mut World, client: u32, number: u64, selector: &str, requirement: u64) {
    let demand = DemandRequest {
        target: TargetBody::selector(selector),
        timeout_ms: None,
        requirement: Some(requirement),
        requirement_name: None,
        incomplete: false,
    };
    world.ask(client, number, Request::Demand(demand));
}

#[test]
fn a_requirement_is_not_fulfilled_by_what_came_through_another_that_had_its_number() {
    let mut world = World::new();
    let (p, c) = (world.join("p"), world.join("c"));
    world.require(c, 1, "name=a", false);
    world.offer(p, 1, "a", "one", 1);
    demand_through(&mut world, c, 2, "name=a", 1);
    world.ask(c, 3, Request::Stop(1));
    world.require(c, 4, "name=a", false);
    world.heard(c);
    // A consumer is the only one that has to release it, and the second requirement is owed it.
    world.release(c, 1);
    assert_eq!(world.core.stat().objects.visible, 1);
    demand_through(&mut world, c, 5, "name=a", 4);
    assert_eq!(world.heard(c), ["5: got a v1 one"]);
    world.release(c, 1);
    assert_eq!(world.core.stat().objects.visible, 0);
    world.leave(p);
    world.leave(c);
    world.assert_empty();
}

#[test]
fn a_demand_goes_on_without_its_requirement_and_beside_another_of_its_number() {
    let mut world = World::new();
    let (p, c) = (world.join("p"), world.join("c"));
    world.require(c, 1, "name=a", false);
    demand_through(&mut world, c, 2, "name=a", 1);
    world.ask(c, 3, Request::Stop(1));
    world.require(c, 4, "name=a", false);
    world.heard(c);
    world.offer(p, 1, "a", "one", 1);
    assert_eq!(world.heard(c), ["2: got a v1 one"]);
    world.release(c, 1);
    assert_eq!(
        world.core.stat().objects.visible,
        1,
        "the second requirement is still owed it"
    );
}

#[test]
fn many_requirements_are_told_in_their_order_what_goes() {
    let mut world = World::new();
    let (p, c) = (world.join("p"), world.join("c"));
    for number in 1..=40 {
        let selector = ["name=a", "name=b"][usize::from(number % 2 == 0)];
        world.require(c, number, selector, number % 4 == 1);
    }
    world.offer(p, 1, "a", "", 0);
    world.offer(p, 2, "a", "", 0);
    world.heard(c);
    world.withdraw(p, 3, "a", None, true);
    // Those for the newest version only are not owed the first.
    let first = (3..=40)
        .step_by(4)
        .map(|number| format!("{number}: gap withdrawn a v1"));
    let second = (1..=40)
        .step_by(2)
        .map(|number| format!("{number}: gap withdrawn a v2"));
    assert_eq!(world.heard(c), first.chain(second).collect::<Vec<_>>());
}

#[test]
fn what_goes_is_compared_with_the_requirements_that_are_owed_it() {
    let looks = |requirements: u64| {
        let mut world = World::new();
        let (p, c) = (world.join("p"), world.join("c"));
        for number in 0..requirements {
            world.require(c, number + 1, &format!("name=other{number}"), false);
        }
        world.require(c, 10_000, "name=a", false);
        world.offer(p, 1, "a", "", 0);
        let before = world.core.exchange.asked.interests.looks.get();
        world.withdraw(p, 2, "a", None, true);
        world.core.exchange.asked.interests.looks.get() - before
    };
    assert_eq!(looks(100), looks(5000));
}

#[test]
fn a_client_with_much_of_everything_leaves_nothing() {
    let mut world = World::with(|config| config.budget_bytes = 1 << 20);
    let (p, c) = (world.join("p"), world.join("c"));
    world.offer(p, 1, "a", "", 0);
    world.lease(p, 2, 900_000, None);
    let mut number = 0;
    let mut next = || {
        number += 1;
        number
    };
    for _ in 0..200 {
        let requirement = next();
        world.require(c, requirement, "", false);
        demand_through(&mut world, c, next(), "name=a", requirement);
        demand_through(&mut world, c, next(), "name=b", requirement);
        world.follow(c, next(), |follow| follow.requirement = Some(requirement));
        world.subscribe(c, next(), "", events::ALL);
        world.lease(c, next(), 900_000, None);
        world.withdraw(c, next(), "a", None, false);
    }
    let group = |world: &mut World, number| world.follow(c, number, |follow| follow.group = Some("g".into()));
    (0..50).for_each(|_| group(&mut world, next()));
    world.leave(c);
    world.retract(p, 3, "g");
    world.withdraw(p, 4, "a", None, true);
    world.leave(p);
    world.assert_empty();
    assert!(world.core.exchange.withdrawals.by_object.is_empty() && world.core.exchange.memory.mapping.is_empty());
}

#[test]
fn a_client_with_very_many_requests_leaves_in_parts() {
    let mut world = World::new();
    let (p, c, other) = (world.join("p"), world.join("c"), world.join("other"));
    assert!(!world.core.wind_down(world.now, other, &mut world.fx));
    world.offer(p, 1, "a", "", 0);
    for number in 1..=1000 {
        world.require(c, number, "", false);
    }
    let mut parts = 0;
    while world.core.wind_down(world.now, c, &mut world.fx) {
        parts += 1;
        let left = world.core.stat().interests.requirements;
        assert_eq!(left, 1000 - 251 * parts, "each is owed one object");
        world.demand(other, parts, "name=a", None);
        assert!(world.heard(other)[0].contains("got a v1"));
        world.release(other, 1);
    }
    assert_eq!(parts, 3);
    world.leave(c);
    world.withdraw(p, 2, "a", None, false);
    world.leave(p);
    world.leave(other);
    world.assert_empty();
}

#[test]
fn the_requests_of_a_client_that_leaves_end_in_their_order() {
    let mut world = World::new();
    let c = world.join("c");
    for number in 1..=600_u64 {
        world.demand(c, number * 7919 % 601, "name=a", None);
    }
    assert!(world.core.wind_down(world.now, c, &mut world.fx));
    let mut left: Vec<u64> = world.core.exchange.asked.clients.table[&c]
        .pending
        .keys()
        .copied()
        .collect();
    left.sort_unstable();
    assert_eq!(left, (257..=600).collect::<Vec<_>>());
}

#[test]
fn a_follow_gives_so_many_in_one_event_and_the_rest_in_the_next() {
    let mut world = World::with(|config| config.delivered_at_once = 2);
    let (p, c, d) = (world.join("p"), world.join("c"), world.join("d"));
    for (number, name) in (1..).zip(["a", "b", "c", "d", "e"]) {
        world.offer(p, number, name, "", 0);
    }
    world.follow(c, 1, |follow| follow.until_live = true);
    assert_eq!(
        world.heard(c),
        ["1: began v5", "1: got a v1  first", "1: got b v2  first"]
    );
    assert!(world.core.is_delivering() && world.core.deadline() == Some(0));
    // An object offered in between keeps its place.
    world.withdraw(p, 9, "d", Some(0), true);
    let mut events = vec![world.heard(c)];
    world.offer(p, 10, "f", "", 0);
    events.push(world.heard(c));
    while world.core.is_delivering() {
        world.pass(0);
        events.push(world.heard(c));
    }
    let got = |lines: &Vec<String>| lines.iter().filter(|line| line.contains("got")).count();
    assert!(events.iter().all(|event| got(event) <= 2), "{events:?}");
    assert_eq!(
        events.concat()[..5],
        [
            "1: got c v3  first",
            "1: gap withdrawn d v4",
            "1: got e v5  first",
            "1: live",
            "1: got f v6 "
        ]
    );
    // One that ends meanwhile gives nothing more.
    world.follow(d, 1, |_| {});
    world.leave(d);
    world.pass(0);
    assert!(!world.core.is_delivering());
}

#[test]
fn a_group_gives_so_many_in_one_event_and_the_rest_in_the_next() {
    let mut world = World::with(|config| config.delivered_at_once = 2);
    let (p, c) = (world.join("p"), world.join("c"));
    for (number, name) in (1..).zip(["a", "b", "c", "d", "e"]) {
        world.offer(p, number, name, "", 0);
    }
    world.follow(c, 1, |follow| {
        follow.group = Some("g".into());
        follow.group_terms = Some(GroupTerms::default());
    });
    let mut given = world.heard(c);
    while world.core.is_delivering() {
        assert!(
            given.iter().filter(|line| line.contains("got")).count() <= 2,
            "{given:?}"
        );
        world.pass(0);
        given = world.heard(c);
    }
    assert_eq!(world.core.stat().totals.delivered, 5);
}

#[test]
fn a_client_that_many_requirements_kept_much_for_leaves_in_turns() {
    let mut world = World::new();
    let (p, c) = (world.join("p"), world.join("c"));
    for number in 0..300 {
        world.offer(p, number, &format!("n{number}"), "", 1);
    }
    for number in 0..10 {
        world.require(c, number, "", false);
    }
    let mut turns = 0;
    while world.core.wind_down(world.now, c, &mut world.fx) {
        turns += 1;
    }
    assert_eq!(turns, 11, "ten are owed less, some end; the rest is little");
    world.leave(c);
    assert_eq!(world.core.stat().interests.owed, 0);
}

#[test]
fn a_client_that_one_requirement_kept_much_for_leaves_in_turns() {
    let mut world = World::new();
    let (p, c) = (world.join("p"), world.join("c"));
    world.require(c, 1, "", false);
    for number in 0..2500 {
        world.offer(p, number, &format!("n{number}"), "", 1);
    }
    world.follow(c, 2, |follow| {
        follow.requirement = Some(1);
        follow.window = 10;
    });
    world.release(c, 1);
    let owed = |world: &World| world.core.stat().interests.owed;
    assert_eq!(owed(&world), 2499);
    for left in (1..=9).rev().map(|steps| 250 * steps - 1) {
        assert!(world.core.wind_down(world.now, c, &mut world.fx));
        assert_eq!(owed(&world), left);
    }
    assert!(!world.core.wind_down(world.now, c, &mut world.fx));
    world.leave(c);
    assert_eq!(owed(&world), 0);
}

#[test]
fn versions_of_a_key_that_requirements_keep_are_found_by_the_key() {
    let mut world = World::new();
    let (p, c) = (world.join("p"), world.join("c"));
    world.require(c, 1, "", false);
    for number in 0..6 {
        world.offer(p, number, ["a", "b"][number as usize % 2], "", 0);
    }
    world.withdraw(p, 9, "a", Some(0), true);
    assert_eq!(world.core.exchange.objects.superseded.len(), 2, "those of b");
    world.withdraw(p, 10, "b", Some(0), true);
    assert!(world.core.exchange.objects.superseded.is_empty());
    let done: Vec<_> = world
        .heard(p)
        .into_iter()
        .filter(|line| line.contains("done"))
        .collect();
    assert_eq!(done, ["9: done 3", "10: done 3"]);
}

#[test]
fn a_client_that_holds_very_much_lets_go_of_it_in_parts() {
    let mut world = World::new();
    let (p, c, d) = (world.join("p"), world.join("c"), world.join("d"));
    let join = |world: &mut World, client, window| {
        world.follow(client, 1, |follow| {
            follow.group = Some("g".into());
            follow.group_terms = Some(GroupTerms::default());
            follow.window = window;
        });
    };
    join(&mut world, c, 1000);
    for number in 0..700 {
        world.offer(p, number, &format!("n{number:03}"), "", 0);
        world.pass(0);
    }
    assert_eq!(world.core.stat().objects.held, 700);
    join(&mut world, d, 1000);
    world.heard(d);
    let mut given = Vec::new();
    let mut held = Vec::new();
    while world.core.wind_down(world.now, c, &mut world.fx) {
        held.push(world.core.exchange.asked.clients.table[&c].held.len());
        while world.core.is_delivering() {
            world.pass(0);
        }
        given.extend(world.heard(d).into_iter().filter(|line| line.contains("got")));
    }
    assert_eq!(held, [700, 444, 188], "its follow ends first");
    world.leave(c);
    world.pass(0);
    given.extend(world.heard(d).into_iter().filter(|line| line.contains("got")));
    assert_eq!(given.len(), 700);
    assert!(
        given.is_sorted_by_key(|line| line.split(' ').nth(2).map(str::to_owned)),
        "the oldest first"
    );
    assert_eq!(world.core.stat().objects.held, 700);
}
