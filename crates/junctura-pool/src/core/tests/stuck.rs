//! Requirements that block others: when they are broken, their gaps, and their recovery.

use junctura_wire::Request;
use junctura_wire::body::events;

use super::World;

const MINUTE: u64 = 60_000;

/// A pool with room for two payloads of [`payload`].
fn small() -> World {
    World::with(|config| config.budget_bytes = 8192)
}

fn payload() -> String {
    "x".repeat(3000)
}

/// Follows through the requirement of this client that a request has made; holds `window` objects.
fn read(world: &mut World, client: u32, number: u64, requirement: u64, window: u32) {
    world.follow(client, number, |follow| {
        follow.requirement = Some(requirement);
        follow.window = window;
    });
}

/// `p` offers `names`, each until its first release, which `d` sees to.
fn offer_and_release(world: &mut World, (p, d): (u32, u32), names: &[&str]) {
    for name in names {
        world.offer(p, 1, name, &payload(), 1);
        world.demand(d, 1, &format!("name={name}"), Some(0));
        let sequence = world.core.stat().sequence;
        world.release(d, sequence);
    }
    world.heard(p);
    world.heard(d);
}

#[test]
fn one_that_released_nothing_for_a_minute_while_others_wait_is_broken_and_all_are_told() {
    let mut world = small();
    let (p, c, d) = (world.join("p"), world.join("c"), world.join("d"));
    world.subscribe(d, 9, "name=none", events::ALL);
    world.require(c, 1, "", false);
    read(&mut world, c, 2, 1, 1);
    offer_and_release(&mut world, (p, d), &["a", "b"]);
    world.heard(c);
    world.offer(p, 3, "c", &payload(), 0);
    world.pass(MINUTE - 1);
    assert!(world.heard(p).is_empty() && world.heard(c).is_empty());
    world.pass(1);
    assert_eq!(world.heard(c), ["2: gap broken b v2"]);
    assert_eq!(world.heard(d), ["9: stuck  \"\" by c why", "9: broken  \"\" by c why"]);
    assert_eq!(
        world.heard(p),
        ["3: offered v3"],
        "c still holds its object, waiting ones are free"
    );
    let stat = world.core.stat();
    assert_eq!(stat.totals.broken, 1);
    let broken = &stat.broken_requirements[0];
    assert_eq!(broken.client.as_ref().map(|client| client.name.as_str()), Some("c"));
    assert_eq!(
        broken.why,
        "it released nothing for 60 s while others waited for memory"
    );
    assert_eq!(broken.lost, 1, "the object offered meanwhile");
}

#[test]
fn a_stuck_one_is_reported_once_at_half_of_its_time() {
    let mut world = small();
    let (p, c, d) = (world.join("p"), world.join("c"), world.join("d"));
    world.subscribe(d, 9, "name=none", events::STUCK);
    world.require(c, 1, "", false);
    read(&mut world, c, 2, 1, 1);
    offer_and_release(&mut world, (p, d), &["a", "b"]);
    world.pass(MINUTE / 2);
    assert!(world.heard(d).is_empty(), "nobody waits");
    world.offer(p, 3, "c", &payload(), 0);
    world.pass(1);
    assert_eq!(world.heard(d), ["9: stuck  \"\" by c why"]);
    world.release(c, 1);
    assert_eq!(world.heard(p), ["3: offered v3"]);
    world.offer(p, 4, "e", &payload(), 0);
    world.pass(MINUTE / 2 - 1);
    assert!(world.heard(d).is_empty(), "it has released something");
    world.pass(1);
    assert_eq!(world.heard(d), ["9: stuck  \"\" by c why"]);
    world.pass(MINUTE);
    assert!(world.heard(d).is_empty(), "it was broken, and is reported once");
}

#[test]
fn a_broken_one_is_whole_again_with_the_next_release_and_hears_what_it_missed() {
    let mut world = small();
    let (p, c, d) = (world.join("p"), world.join("c"), world.join("d"));
    world.require(c, 1, "", false);
    read(&mut world, c, 2, 1, 1);
    offer_and_release(&mut world, (p, d), &["a", "b"]);
    world.offer(p, 3, "c", "", 0);
    world.offer(p, 4, "d", &payload(), 0);
    world.pass(MINUTE);
    world.offer(p, 5, "e", "", 0);
    world.heard(c);
    world.release(c, 1);
    assert_eq!(world.heard(c), ["2: gap broken d v4 e v5"]);
    world.offer(p, 6, "f", "", 0);
    assert_eq!(world.heard(c), ["2: got f v6 "]);
    assert!(world.core.stat().broken_requirements.is_empty());
}

#[test]
fn a_slow_reader_is_not_stuck() {
    let mut world = small();
    let (p, c, d) = (world.join("p"), world.join("c"), world.join("d"));
    world.require(c, 1, "", false);
    read(&mut world, c, 2, 1, 1);
    offer_and_release(&mut world, (p, d), &["a", "b"]);
    world.heard(c);
    world.offer(p, 3, "c", &payload(), 0);
    world.offer(p, 4, "d", &payload(), 0);
    for (sequence, next) in [(1, "2: got b v2"), (2, "2: got c v3")] {
        world.pass(MINUTE - 1);
        world.release(c, sequence);
        assert!(world.heard(c)[0].starts_with(next));
    }
    assert_eq!(world.heard(p), ["3: offered v3", "4: offered v4"]);
    assert_eq!(world.core.stat().totals.broken, 0);
}

#[test]
fn nobody_is_broken_whose_objects_stay_anyway() {
    let mut world = small();
    let (p, c) = (world.join("p"), world.join("c"));
    world.require(c, 1, "", false);
    for (number, name) in [(1, "a"), (2, "b"), (3, "c")] {
        world.offer(p, number, name, &payload(), 0);
    }
    world.pass(10 * MINUTE);
    assert_eq!(world.heard(p), ["1: offered v1", "2: offered v2"]);
    assert_eq!(world.core.stat().totals.broken, 0);
}

#[test]
fn of_two_stuck_ones_on_the_same_objects_both_are_broken() {
    let mut world = small();
    let (p, c, d) = (world.join("p"), world.join("c"), world.join("d"));
    world.require_named(c, 1, "one", "", 0);
    world.require_named(c, 2, "two", "name=a/b", 0);
    offer_and_release(&mut world, (p, d), &["a", "b"]);
    world.offer(p, 3, "c", &payload(), 0);
    world.pass(MINUTE);
    assert_eq!(world.heard(p), ["3: offered v3"]);
    assert_eq!(world.core.stat().totals.broken, 2);
    world.heard(c);
    world.follow(c, 4, |follow| follow.requirement_name = Some("one".into()));
    assert_eq!(
        world.heard(c),
        ["4: began v3", "4: gap broken a v1 b v2 c v3", "4: live"]
    );
}

#[test]
fn the_one_that_keeps_most_is_broken_first_and_the_rest_only_if_need_be() {
    let mut world = World::with(|config| config.budget_bytes = 10_000);
    let (p, c, d) = (world.join("p"), world.join("c"), world.join("d"));
    world.require_named(c, 1, "few", "name=a", 0);
    world.require_named(c, 2, "many", "name=b/c", 0);
    offer_and_release(&mut world, (p, d), &["a", "b", "c"]);
    world.offer(p, 3, "d", &payload(), 0);
    world.pass(MINUTE);
    let broken = world.core.stat().broken_requirements;
    assert_eq!(broken.len(), 1);
    assert_eq!(broken[0].name.as_deref(), Some("many"));
}

#[test]
fn one_that_breaks_does_so_over_its_quota_and_makes_nobody_wait() {
    let mut world = small();
    let (p, c, d) = (world.join("p"), world.join("c"), world.join("d"));
    world.require_with(c, 1, "", |require| {
        require.breaks_on_full = true;
        require.quota_bytes = Some(3000);
    });
    read(&mut world, c, 2, 1, 1);
    offer_and_release(&mut world, (p, d), &["a"]);
    assert_eq!(world.core.stat().totals.broken, 0);
    offer_and_release(&mut world, (p, d), &["b"]);
    assert_eq!(world.core.stat().totals.broken, 1);
    assert!(world.heard(c).contains(&"2: gap broken b v2".to_owned()));
    world.offer(p, 3, "c", &payload(), 0);
    assert_eq!(world.heard(p), ["3: offered v3"]);
    world.release(c, 1);
    assert_eq!(world.heard(c), ["2: gap broken c v3"]);
}

#[test]
fn one_that_breaks_without_a_quota_does_so_when_memory_is_full() {
    let mut world = small();
    let (p, c, d) = (world.join("p"), world.join("c"), world.join("d"));
    world.require_with(c, 1, "", |require| require.breaks_on_full = true);
    offer_and_release(&mut world, (p, d), &["a", "b"]);
    assert_eq!(world.core.stat().totals.broken, 0);
    world.offer(p, 3, "c", &payload(), 0);
    assert_eq!(world.heard(p), ["3: offered v3"]);
    assert_eq!(world.core.stat().broken_requirements[0].why, "memory is full");
}

#[test]
fn a_superseded_version_counts_on_the_quota() {
    let mut world = small();
    let (p, c) = (world.join("p"), world.join("c"));
    world.require_with(c, 1, "", |require| {
        require.breaks_on_full = true;
        require.quota_bytes = Some(0);
    });
    world.offer(p, 1, "a", "1", 0);
    assert_eq!(world.core.stat().totals.broken, 0);
    world.offer(p, 2, "a", "2", 0);
    assert_eq!(world.core.stat().totals.broken, 1);
    assert_eq!(world.heard(c), ["1: began v0", "1: gap broken a v1 a v2"]);
}

#[test]
fn what_a_reader_of_a_broken_one_held_when_it_died_is_a_gap() {
    let mut world = small();
    let (p, c, d) = (world.join("p"), world.join("c"), world.join("d"));
    world.require_named(d, 1, "n", "", 0);
    world.follow(c, 2, |follow| {
        follow.requirement_name = Some("n".into());
        follow.window = 1;
    });
    offer_and_release(&mut world, (p, d), &["a", "b"]);
    world.offer(p, 3, "c", &payload(), 0);
    world.pass(MINUTE);
    world.withdraw(p, 4, "c", Some(0), false);
    assert_eq!(
        world.heard(p),
        ["3: offered v3", "4: done 1"],
        "no request waits for a broken one"
    );
    world.leave(c);
    world.follow(d, 2, |follow| follow.requirement_name = Some("n".into()));
    assert_eq!(
        world.heard(d),
        ["2: began v3", "2: gap broken c v3 a v1", "2: live"],
        "the crashed reader had received b"
    );
}

#[test]
fn terms_that_make_no_sense_are_refused_and_other_terms_conflict() {
    let mut world = small();
    let c = world.join("c");
    world.require_with(c, 1, "", |require| require.quota_bytes = Some(1));
    world.require_with(c, 2, "", |require| require.stuck_after_ms = Some(0));
    world.require_named(c, 3, "n", "", 0);
    world.require_with(c, 4, "", |require| {
        require.name = Some("n".into());
        require.breaks_on_full = true;
        require.quota_bytes = Some(5);
    });
    assert_eq!(
        world.heard(c),
        [
            "1: InvalidArgument only a requirement that breaks on full has one",
            "2: InvalidArgument it is 0",
            "3: began v0",
            "4: Conflict it lets offers wait and is stuck after 60 s; this would be one that breaks beyond 5 bytes and is \
             stuck after 60 s",
        ]
    );
}

#[test]
fn one_that_waits_for_a_lease_counts_as_one_that_waits() {
    let mut world = World::with(|config| config.budget_bytes = 1 << 20);
    let (p, c, d) = (world.join("p"), world.join("c"), world.join("d"));
    world.require_with(c, 1, "", |require| require.stuck_after_ms = Some(5));
    world.lease(p, 1, 900_000, None);
    world.offer_slot(p, 2, "a", 1, 0, 900_000);
    world.offer(p, 3, "a", "", 0);
    world.lease(d, 2, 900_000, None);
    world.heard(p);
    world.pass(5);
    assert_eq!(world.heard(c), ["1: began v0", "1: gap broken a v1 a v2"]);
    assert_eq!(world.heard(p), ["0: freed 1", "0: recall 1"]);
    world.ask(p, 4, Request::Return(1));
    assert!(world.heard(d).contains(&"2: leased 2".to_owned()));
}
