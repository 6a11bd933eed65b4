//! Objects and events that concern very many interests reach some at once, and the others in turns of their clients.

use junctura_wire::Request;
use junctura_wire::body::events;

use super::World;

/// A pool in which so many interests are reached at once.
fn telling(at_once: usize) -> World {
    World::with(|config| config.told_at_once = at_once)
}

/// Returns the number of messages with this text that a client receives in the turns until nothing is left.
fn told_in_turns(world: &mut World, client: u32, text: &str) -> Vec<usize> {
    let count = |world: &mut World| world.heard(client).iter().filter(|line| line.contains(text)).count();
    let mut told = vec![count(world)];
    while world.core.is_delivering() {
        assert!(world.core.deadline().is_some_and(|at| at <= world.now));
        world.pass(0);
        told.push(count(world));
    }
    told
}

#[test]
fn so_many_interests_get_an_object_at_once_and_the_others_in_turns() {
    let mut world = telling(3);
    let (p, c) = (world.join("p"), world.join("c"));
    for number in 1..=4 {
        world.demand(c, number, "", None);
        world.follow(c, 10 + number, |_| {});
        world.subscribe(c, 20 + number, "", events::ALL);
    }
    world.heard(c);
    world.offer(p, 1, "a", "payload", 0);
    assert_eq!(world.heard(p).last().map(String::as_str), Some("1: offered v1"));
    let told = told_in_turns(&mut world, c, "a v1");
    assert_eq!((told[0], told.iter().sum::<usize>()), (3, 12), "{told:?}");
    assert!(told.iter().all(|&count| count <= 3), "{told:?}");
    assert_eq!(world.core.stat().interests.standing, 8);
}

#[test]
fn a_client_with_many_interests_delays_only_itself() {
    let mut world = telling(2);
    let (p, many, one) = (world.join("p"), world.join("many"), world.join("one"));
    for number in 1..=100 {
        world.follow(many, number, |_| {});
    }
    world.follow(one, 1, |_| {});
    world.heard(one);
    for number in 1..=3 {
        world.offer(p, number, &format!("n{number}"), "", 0);
    }
    // The first object can have reached both of the others first. Each turn reaches every client.
    for _ in 0..4 {
        world.pass(0);
    }
    let lines = world.heard(one);
    let got: Vec<_> = lines.iter().filter(|line| line.contains("got")).collect();
    assert_eq!(got, ["1: got n1 v1 ", "1: got n2 v2 ", "1: got n3 v3 "]);
    assert!(world.core.is_delivering());
}

#[test]
fn each_follow_receives_objects_in_their_order() {
    let mut world = telling(1);
    let (p, c) = (world.join("p"), world.join("c"));
    for number in 1..=5 {
        world.follow(c, number, |_| {});
    }
    world.heard(c);
    let mut lines = Vec::new();
    for number in 1..=6 {
        world.offer(p, number, &format!("n{number}"), "", 0);
        world.pass(0);
        lines.extend(world.heard(c));
    }
    while world.core.is_delivering() {
        world.pass(0);
        lines.extend(world.heard(c));
    }
    for follow in 1..=5 {
        let got: Vec<_> = lines
            .iter()
            .filter_map(|line| line.strip_prefix(&format!("{follow}: got ")))
            .collect();
        let due: Vec<_> = (1..=6).map(|number| format!("n{number} v{number} ")).collect();
        assert_eq!(got, due);
    }
}

#[test]
fn a_met_demand_gets_its_object_whatever_happens_to_it() {
    let mut world = telling(1);
    let (p, c) = (world.join("p"), world.join("c"));
    for number in 1..=40 {
        world.demand(c, number, "", Some(5));
    }
    world.offer(p, 50, "a", "payload", 0);
    world.withdraw(p, 51, "a", None, false);
    world.offer(p, 52, "b", "payload", 0);
    // Neither a cancel nor the end of its time, nor the end of the pool, comes before its object.
    for number in 1..=40 {
        world.ask(c, 60, Request::Cancel(number));
    }
    world.heard(p);
    world.ask(p, 53, Request::Drain(junctura_wire::body::DrainRequest::default()));
    assert_eq!(world.heard(p).len(), 0, "it is not over before all have their object");
    world.now += 10_000_000;
    let told = told_in_turns(&mut world, c, "got a v1 payload");
    assert_eq!(told.iter().sum::<usize>(), 40, "{told:?}");
    assert_eq!(world.heard(p), ["53: done 0"]);
    world.leave(c);
    world.withdraw(p, 54, "b", None, true);
    world.leave(p);
    assert_eq!(world.core.stat().memory.used_bytes, 0);
}

#[test]
fn a_payload_stays_until_all_have_it_and_goes_then() {
    let mut world = telling(1);
    let (p, c) = (world.join("p"), world.join("c"));
    for number in 1..=40 {
        world.demand(c, number, "", None);
    }
    // One release suffices; another object of the same key replaces it.
    world.offer(p, 50, "a", "payload", 1);
    let holding = world.fx.holdings.get(&(c, 1)).copied();
    assert!(holding.is_some());
    world.release(c, 1);
    world.offer(p, 51, "a", "other", 0);
    assert!(world.core.stat().memory.used_bytes >= 12);
    let told = told_in_turns(&mut world, c, "got a v1 payload");
    assert_eq!(told.iter().sum::<usize>(), 40, "{told:?}");
    world.leave(c);
    assert_eq!(world.core.stat().memory.used_bytes, 5);
}

#[test]
fn events_of_objects_and_clients_keep_their_order() {
    let mut world = telling(2);
    let (p, c) = (world.join("p"), world.join("c"));
    for number in 1..=50 {
        world.subscribe(c, number, "", events::ALL);
    }
    world.heard(c);
    world.offer(p, 1, "a", "", 0);
    world.offer(p, 2, "a", "", 0);
    world.withdraw(p, 3, "a", None, false);
    world.leave(p);
    world.join("q");
    let mut lines = world.heard(c);
    while world.core.is_delivering() {
        world.pass(0);
        lines.extend(world.heard(c));
    }
    for number in 1..=50 {
        let prefix = format!("{number}: ");
        let told: Vec<_> = lines.iter().filter_map(|line| line.strip_prefix(&prefix)).collect();
        assert_eq!(told.len(), 6, "{told:?}");
        let kinds: Vec<_> = told
            .iter()
            .map(|line| line.split(' ').next().unwrap_or_default())
            .collect();
        assert_eq!(
            kinds,
            ["offered", "superseded", "offered", "withdrawn", "left", "joined"]
        );
    }
}

#[test]
fn a_follow_that_ends_when_it_has_caught_up_receives_what_was_visible() {
    let mut world = World::with(|config| {
        config.told_at_once = 1;
        config.delivered_at_once = 1;
    });
    let (p, c) = (world.join("p"), world.join("c"));
    for number in 1..=3 {
        world.offer(p, number, &format!("n{number}"), "", 0);
    }
    for number in 1..=40 {
        world.follow(c, number, |follow| follow.only_new = true);
    }
    world.follow(c, 50, |follow| follow.until_live = true);
    world.offer(p, 4, "n4", "", 0);
    let mut lines = world.heard(c);
    while world.core.is_delivering() {
        world.pass(0);
        lines.extend(world.heard(c));
    }
    let told: Vec<_> = lines.iter().filter_map(|line| line.strip_prefix("50: ")).collect();
    let due = [
        "began v3",
        "got n1 v1  first",
        "got n2 v2  first",
        "got n3 v3  first",
        "live",
        "got n4 v4 ",
    ];
    assert_eq!(told[..6], due, "{told:?}");
    assert!(told[6].starts_with("Closed"), "{told:?}");
}

#[test]
fn what_a_client_that_leaves_was_to_be_told_is_forgotten() {
    let mut world = telling(1);
    let (p, c) = (world.join("p"), world.join("c"));
    for number in 1..=5 {
        world.demand(c, number, "", None);
        world.follow(c, 10 + number, |_| {});
        world.subscribe(c, 20 + number, "", events::ALL);
    }
    for number in 1..=300 {
        world.offer(p, number, &format!("n{number}"), "payload", 1);
        world.withdraw(p, 1000, &format!("n{number}"), Some(0), true);
    }
    assert!(world.core.is_delivering());
    while world.core.wind_down(world.now, c, &mut world.fx) {}
    world.leave(c);
    assert!(!world.core.is_delivering());
    world.leave(p);
    world.assert_empty();
}

#[test]
fn a_client_whose_interests_fall_behind_too_far_is_disconnected() {
    let mut world = World::with(|config| {
        config.told_at_once = 1;
        config.limits.selector_bytes_per_client = 64 << 10;
    });
    let (p, many, one) = (world.join("p"), world.join("many"), world.join("one"));
    for number in 1..=50 {
        world.follow(many, number, |_| {});
    }
    world.follow(one, 1, |follow| follow.window = 200);
    world.heard(one);
    for number in 1..=200 {
        world.offer(p, number, &format!("n{number}"), "", 0);
    }
    assert!(world.heard(many).iter().any(|line| line == "disconnected"));
    world.leave(many);
    let told = told_in_turns(&mut world, one, "got n");
    assert_eq!(told.iter().sum::<usize>(), 200);
}

#[test]
fn a_client_with_very_much_news_leaves() {
    let mut world = telling(1);
    let (p, c) = (world.join("p"), world.join("c"));
    for number in 1..=50 {
        world.follow(c, number, |_| {});
    }
    for number in 1..=10_000 {
        world.offer(p, number, &format!("n{number}"), "", 0);
    }
    assert!(world.core.exchange.asked.clients.selector_bytes > 4 << 20);
    let mut turns = 0;
    while world.core.wind_down(world.now, c, &mut world.fx) {
        turns += 1;
        assert!(turns < 100);
    }
    world.leave(c);
    assert!(!world.core.is_delivering());
    assert_eq!(world.core.exchange.asked.clients.selector_bytes, 0);
}
