//! Many of a kind: what leaves costs what it had, and what gets its number later is another.

use junctura_wire::Request;
use junctura_wire::body::{Demand, Target, events};

use super::World;

fn demand_through(world: &mut World, client: u32, number: u64, selector: &str, requirement: u64) {
    let demand = Demand {
        target: Target::selector(selector),
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
        let before = world.core.looks.get();
        world.withdraw(p, 2, "a", None, true);
        world.core.looks.get() - before
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
    assert!(world.core.withdrawing.is_empty() && world.core.mapping.is_empty());
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
        assert_eq!(left, 1000 - 256 * parts);
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
    let mut left: Vec<u64> = world.core.clients[&c].pending.keys().copied().collect();
    left.sort_unstable();
    assert_eq!(left, (257..=600).collect::<Vec<_>>());
}
