//! Named requirements: their users, the objects that they keep, and their end.

use junctura_wire::Request;
use junctura_wire::body::{DemandRequest, TargetBody, events};

use super::World;

/// Follows through a requirement, by its name.
fn read(world: &mut World, client: u32, number: u64, name: &str) {
    let name = name.to_owned();
    world.follow(client, number, |follow| follow.requirement_name = Some(name.into()));
}

fn demand_through(world: &mut World, client: u32, number: u64, name: &str, object: &str) {
    let selector = format!("name={object}");
    let demand = DemandRequest {
        target: TargetBody::selector(&selector),
        timeout_ms: None,
        requirement: None,
        requirement_name: Some(name.into()),
        incomplete: false,
    };
    world.ask(client, number, Request::Demand(demand));
}

#[test]
fn it_outlives_its_client_and_keeps_what_it_is_owed() {
    let mut world = World::new();
    let (p, c) = (world.join("p"), world.join("c"));
    world.require_named(c, 1, "archive", "name=a/b", 0);
    world.leave(c);
    world.offer(p, 1, "a", "one", 1);
    world.offer(p, 2, "b", "two", 1);
    world.demand(p, 3, "name=a", Some(0));
    world.release(p, 1);
    assert_eq!(world.core.stat().objects.visible, 2);
    let d = world.join("d");
    read(&mut world, d, 1, "archive");
    world.release(d, 1);
    assert_eq!(
        world.heard(d),
        [
            "1: began v2",
            "1: got a v1 one first",
            "1: got b v2 two first",
            "1: live"
        ]
    );
    assert_eq!(world.core.stat().objects.visible, 1, "the first release completes it");
    world.release(d, 2);
    assert_eq!(world.core.stat().objects.visible, 0);
}

#[test]
fn what_a_dead_reader_had_in_flight_goes_to_the_next_and_what_it_released_is_done() {
    let mut world = World::new();
    let (p, c, d) = (world.join("p"), world.join("c"), world.join("d"));
    world.require_named(c, 1, "n", "", 0);
    for name in ["a", "b", "c"] {
        world.offer(p, 1, name, "", 1);
    }
    read(&mut world, c, 2, "n");
    world.release(c, 1);
    read(&mut world, d, 1, "n");
    assert_eq!(
        world.heard(d),
        ["1: Conflict c (pid 1 on h) reads it, and one reads at a time"]
    );
    world.leave(c);
    read(&mut world, d, 2, "n");
    assert_eq!(
        world.heard(d),
        [
            "2: began v3",
            "2: got b v2  first again",
            "2: got c v3  first again",
            "2: live"
        ]
    );
}

#[test]
fn what_another_client_held_comes_to_a_reader_that_is_there_when_it_dies() {
    let mut world = World::new();
    let (p, c, d) = (world.join("p"), world.join("c"), world.join("d"));
    world.require_named(c, 1, "n", "", 0);
    for name in ["a", "b"] {
        world.offer(p, 1, name, "", 0);
    }
    demand_through(&mut world, c, 2, "n", "b");
    demand_through(&mut world, c, 3, "n", "a");
    read(&mut world, d, 1, "n");
    assert_eq!(world.heard(d), ["1: began v2", "1: live"]);
    world.leave(c);
    assert_eq!(world.heard(d), ["1: got a v1  again", "1: got b v2  again"]);
    world.release(d, 1);
    world.release(d, 2);
    assert_eq!(world.core.stat().named_requirements[0].owed, 0);
}

#[test]
fn one_that_stops_reading_while_it_holds_keeps_what_it_holds() {
    let mut world = World::new();
    let (p, c, d) = (world.join("p"), world.join("c"), world.join("d"));
    world.require_named(p, 1, "n", "", 0);
    for name in ["a", "b"] {
        world.offer(p, 1, name, "", 1);
    }
    world.follow(c, 1, |follow| {
        follow.requirement_name = Some("n".into());
        follow.window = 1;
    });
    world.ask(c, 2, Request::Stop(1));
    read(&mut world, d, 1, "n");
    assert_eq!(world.heard(d), ["1: began v2", "1: got b v2  first", "1: live"]);
    world.release(c, 1);
    assert_eq!(world.core.stat().named_requirements[0].owed, 1);
    world.leave(c);
    assert!(world.heard(d).is_empty());
}

#[test]
fn the_same_name_joins_and_other_terms_conflict() {
    let mut world = World::new();
    let (c, d) = (world.join("c"), world.join("d"));
    world.require_named(c, 1, "n", "name=a/b", 2000);
    world.require_named(d, 1, "n", "(name=a/b)", 2000);
    world.require_named(d, 2, "n", "name=a", 2000);
    world.require_named(d, 3, "n", "name=a/b", 0);
    world.require_with(d, 4, "name=a/b", |require| {
        require.name = Some("n".into());
        require.time_to_live_ms = Some(2000);
        require.newest_only = true;
    });
    assert_eq!(
        world.heard(d),
        [
            "1: began v0",
            "2: Conflict it stands for \"name=a/b\", not \"name=a\": choose another name, or retract that requirement",
            "3: Conflict its time to live is 2 s, not none",
            "4: Conflict it keeps all versions, not the newest versions",
        ]
    );
    assert_eq!(world.core.stat().interests.requirements, 1);
    assert_eq!(world.core.stat().named_requirements[0].users, 2);
}

#[test]
fn its_time_to_live_counts_from_the_last_use() {
    let mut world = World::new();
    let (p, c) = (world.join("p"), world.join("c"));
    world.subscribe(p, 1, "name=none", events::ALL);
    world.require_named(c, 1, "n", "name=a", 10);
    world.offer(p, 2, "a", "", 1);
    world.pass(100);
    assert_eq!(world.core.stat().interests.named, 1, "its client uses it");
    world.ask(c, 2, Request::Stop(1));
    world.pass(9);
    read(&mut world, c, 3, "n");
    world.pass(100);
    world.ask(c, 4, Request::Stop(3));
    world.pass(100);
    assert_eq!(world.core.stat().interests.named, 1, "its client holds its object");
    world.leave(c);
    world.pass(9);
    assert_eq!(world.core.stat().objects.visible, 1);
    world.heard(p);
    world.withdraw(p, 3, "a", None, false);
    assert!(world.heard(p).is_empty());
    world.pass(1);
    assert_eq!(world.heard(p), ["1: lapsed n \"name=a\" why", "3: done 1"]);
    world.leave(p);
    world.assert_empty();
}

#[test]
fn a_waiting_demand_uses_it_and_what_goes_meanwhile_is_no_use() {
    let mut world = World::new();
    let (p, c) = (world.join("p"), world.join("c"));
    world.require_named(c, 1, "n", "", 10);
    demand_through(&mut world, c, 2, "n", "z");
    world.ask(c, 3, Request::Stop(1));
    world.pass(100);
    assert_eq!(world.core.stat().interests.named, 1);
    world.ask(c, 4, Request::Cancel(2));
    world.offer(p, 1, "a", "", 0);
    world.pass(5);
    world.withdraw(p, 2, "a", None, true);
    world.pass(5);
    assert_eq!(world.core.stat().interests.named, 0);
}

#[test]
fn anybody_retracts_it_and_all_who_use_it_are_told() {
    let mut world = World::new();
    let (p, c, d) = (world.join("p"), world.join("c"), world.join("d"));
    world.subscribe(p, 9, "", events::REQUIRED | events::RETRACTED);
    world.require_named(c, 1, "n", "", 0);
    world.require_named(d, 1, "n", "", 0);
    world.offer(p, 1, "a", "", 1);
    world.offer(p, 2, "b", "", 1);
    world.demand(p, 3, "name=b", None);
    world.release(p, 2);
    read(&mut world, d, 2, "n");
    demand_through(&mut world, c, 2, "n", "z");
    world.retract(p, 4, "n");
    world.retract(p, 5, "n");
    read(&mut world, c, 3, "n");
    assert_eq!(
        world.heard(p),
        [
            "9: began v0",
            "9: required n \"\" by c",
            "1: offered v1",
            "2: offered v2",
            "3: got b v2 ",
            "9: retracted n \"\" by p",
            "4: done 2",
            "5: NotFound no requirement or group has this name; `junctura pool stat` lists them",
        ]
    );
    let heard = world.heard(d);
    assert_eq!(
        heard[heard.len() - 2..],
        ["1: Closed it was retracted", "2: Closed its requirement was retracted"]
    );
    assert_eq!(
        world.heard(c),
        [
            "1: began v0",
            "1: Closed it was retracted",
            "3: NotFound no requirement or group has this name; `junctura pool stat` lists them",
        ]
    );
    assert_eq!(
        world.core.stat().objects.visible,
        1,
        "only retention keeps what is left"
    );
    world.release(d, 1);
    assert_eq!(world.core.stat().objects.visible, 0);
    world.offer(p, 6, "z", "", 0);
    assert_eq!(world.heard(c), ["2: got z v3 "]);
}

#[test]
fn withdraw_waits_for_it_and_names_it_and_its_reader() {
    let mut world = World::new();
    let (p, c) = (world.join("p"), world.join("c"));
    world.require_named(c, 1, "n", "name=a", 0);
    world.offer(p, 1, "a", "", 0);
    world.withdraw(p, 2, "a", Some(0), false);
    world.follow(c, 2, |follow| {
        follow.requirement_name = Some("n".into());
    });
    world.withdraw(p, 3, "a", Some(0), false);
    world.withdraw(p, 4, "a", None, false);
    let wanted = "Timeout still offered, since it is wanted: requirement n (\"name=a\"), which";
    assert_eq!(
        world.heard(p),
        [
            "1: offered v1".to_owned(),
            format!("2: {wanted} nobody reads; 0 withdrawn"),
            format!("3: {wanted} c (pid 1 on h) reads; 0 withdrawn"),
        ]
    );
    world.leave(c);
    assert!(world.heard(p).is_empty(), "it is owed again");
    let d = world.join("d");
    read(&mut world, d, 1, "n");
    world.release(d, 1);
    assert_eq!(world.heard(p), ["4: done 1"]);
}

#[test]
fn what_went_while_nobody_read_is_told_to_the_next_reader_and_counted_beyond_a_limit() {
    let mut world = World::with(|config| config.limits.gap_bytes_per_requirement = 200);
    let (p, c) = (world.join("p"), world.join("c"));
    world.require_named(c, 1, "n", "", 0);
    for name in ["a", "b", "c", "d"] {
        world.offer(p, 1, name, "", 0);
        world.withdraw(p, 2, name, None, true);
    }
    assert_eq!(world.core.stat().named_requirements[0].lost, 4);
    read(&mut world, c, 2, "n");
    assert_eq!(
        world.heard(c),
        [
            "1: began v0",
            "2: began v4",
            "2: gap withdrawn a v1 b v2",
            "2: gap withdrawn and 2 more",
            "2: live"
        ]
    );
    world.offer(p, 3, "e", "", 0);
    world.offer(p, 4, "e", "", 0);
    world.heard(c);
    world.withdraw(p, 5, "e", None, true);
    world.leave(c);
    let d = world.join("d");
    read(&mut world, d, 1, "n");
    assert_eq!(
        world.heard(d),
        [
            "1: began v6",
            "1: gap withdrawn e v6",
            "1: got e v5  first again",
            "1: live"
        ],
        "an object withdrawn while a crashed reader held it is lost"
    );
}

#[test]
fn what_is_kept_of_names_for_all_requirements_together_has_a_limit() {
    let mut world = World::with(|config| config.limits.gap_bytes = 200);
    let (p, c) = (world.join("p"), world.join("c"));
    world.require_named(c, 1, "m", "", 0);
    world.require_named(c, 2, "n", "", 0);
    let lose = |world: &mut World, name: &str| {
        world.offer(p, 1, name, "", 0);
        world.withdraw(p, 2, name, None, true);
    };
    lose(&mut world, "a");
    let full = world.core.stat().interests.gap_bytes;
    assert!((100..=200).contains(&full));
    lose(&mut world, "b");
    assert_eq!(world.core.stat().interests.gap_bytes, full);
    world.heard(c);
    read(&mut world, c, 3, "m");
    let said = [
        "3: began v2",
        "3: gap withdrawn a v1",
        "3: gap withdrawn and 1 more",
        "3: live",
    ];
    assert_eq!(world.heard(c), said, "it is reported as a single one");
    assert_eq!(
        world.core.stat().interests.gap_bytes,
        full / 2,
        "a reported gap is not kept"
    );
    lose(&mut world, "c");
    assert_eq!(world.core.stat().interests.gap_bytes, full, "there is room again");
    world.retract(c, 4, "n");
    assert_eq!(world.core.stat().interests.gap_bytes, 0);
}

#[test]
fn one_for_newest_versions_is_not_owed_a_superseded_one_again() {
    let mut world = World::new();
    let (p, c) = (world.join("p"), world.join("c"));
    world.require_with(c, 1, "", |require| {
        require.name = Some("n".into());
        require.newest_only = true;
    });
    world.offer(p, 1, "a", "one", 0);
    demand_through(&mut world, c, 2, "n", "a");
    world.offer(p, 2, "a", "two", 0);
    world.leave(c);
    read(&mut world, p, 3, "n");
    assert_eq!(world.heard(p)[2..], ["3: began v2", "3: got a v2 two first", "3: live"]);
    assert_eq!(world.core.stat().objects.kept, 0);
}

#[test]
fn names_and_their_number_have_limits() {
    let mut world = World::with(|config| config.limits.named_requirements = 2);
    let c = world.join("c");
    for name in ["", "-x", "a b", "a\n", &"x".repeat(129)] {
        world.require_named(c, 1, name, "", 0);
        assert!(world.heard(c)[0].starts_with("1: InvalidArgument"), "{name:?}");
    }
    world.require_with(c, 1, "", |require| require.time_to_live_ms = Some(5));
    world.require_with(c, 2, "", |require| {
        require.name = Some("n".into());
        require.time_to_live_ms = Some(0);
    });
    world.require_named(c, 3, &"x".repeat(128), "", 0);
    world.require_named(c, 4, "render/members:1", "", 0);
    world.require_named(c, 5, "c", "", 0);
    assert_eq!(
        world.heard(c),
        [
            "1: InvalidArgument only a requirement with a name outlives its client",
            "2: InvalidArgument it is 0",
            "3: began v0",
            "4: began v0",
            "5: LimitExceeded the pool keeps 2 with a name",
        ]
    );
}

#[test]
fn a_pool_with_one_is_not_deserted_and_stat_lists_it() {
    let mut world = World::new();
    let (p, c) = (world.join("p"), world.join("c"));
    world.require_named(c, 1, "n", "name=a", 60_000);
    world.offer(p, 1, "a", "12345", 0);
    world.offer(p, 2, "a", "123", 0);
    demand_through(&mut world, c, 2, "n", "a");
    world.pass(2000);
    world.release(c, 2);
    demand_through(&mut world, c, 3, "n", "a");
    read(&mut world, c, 4, "n");
    world.pass(3000);
    let stat = world.core.stat();
    let one = &stat.named_requirements[0];
    assert_eq!(
        (one.name.as_str(), one.selector.as_str(), one.versions),
        ("n", "name=a", "all")
    );
    assert_eq!((one.owed, one.owed_bytes, one.in_flight), (1, 5, 1));
    assert_eq!(one.reader.as_ref().map(|reader| reader.name.as_str()), Some("c"));
    assert!((one.age_s - 5.0).abs() < 1e-9 && one.lapses_in_s.is_none());
    assert_eq!(one.last_release_age_s, Some(3.0));
    world.leave(c);
    world.withdraw(p, 3, "a", None, true);
    world.leave(p);
    world.pass(59_999);
    assert!(!world.core.is_deserted());
    world.pass(1);
    world.assert_empty();
}
