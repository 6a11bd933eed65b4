//! Eviction of archived objects when memory is short.

use junctura_wire::Request;
use junctura_wire::body::{ArchivedBody, ArchivedObject, ConsumerNames, events};
use junctura_wire::fixed;

use super::World;
use crate::{PoolConfig, SpillConfig};

const WHERE: &str = "/store commit 1";

/// A pool of 8 KiB with room for two payloads of [`payload`], a producer, and an archiver that follows its requirement.
fn world() -> (World, u32, u32) {
    with(|_| {})
}

fn with(change: impl FnOnce(&mut PoolConfig)) -> (World, u32, u32) {
    let mut world = World::with(|config| {
        config.budget_bytes = 8192;
        change(config);
    });
    let (p, a) = (world.join("p"), world.join("a"));
    world.require_named(a, 1, "archive", "", 0);
    world.follow(a, 2, |follow| follow.requirement_name = Some("archive".into()));
    world.heard(a);
    (world, p, a)
}

fn payload() -> String {
    "x".repeat(3072)
}

fn say_archived(world: &mut World, archiver: u32, sequence: u64) {
    let objects = vec![ArchivedObject {
        sequence,
        location: WHERE.into(),
    }];
    let saying = ArchivedBody {
        requirement: "archive".into(),
        objects,
        failure: None,
    };
    world.ask(archiver, 9, Request::Archived(saying));
}

fn archive(world: &mut World, archiver: u32, sequence: u64) {
    say_archived(world, archiver, sequence);
    world.release(archiver, sequence);
}

fn visible(world: &mut World, client: u32) -> String {
    world.heard(client);
    world.list(client, 99, "", "");
    world.heard(client).pop().unwrap()
}

#[test]
fn the_oldest_that_a_store_has_makes_room_and_is_told_to_be_there() {
    let (mut world, p, a) = world();
    let c = world.join("c");
    world.subscribe(c, 1, "", events::EXPIRED);
    world.offer(p, 1, "a", &payload(), 0);
    world.offer(p, 2, "b", &payload(), 0);
    archive(&mut world, a, 1);
    archive(&mut world, a, 2);
    assert!(visible(&mut world, c).ends_with("a b."), "memory is not short");
    world.heard(p);
    world.offer(p, 3, "c", &payload(), 0);
    assert_eq!(world.heard(p), ["3: offered v3"], "it does not wait");
    assert_eq!(world.heard(c), ["1: expired a v1 by p why"]);
    world.demand_key(c, 2, "a", None);
    let told = "2: Gone version 1.1 was evicted: it is archived, and memory was short; a store has it: /store commit 1";
    assert_eq!(world.heard(c), [told]);
    assert!(visible(&mut world, c).ends_with("b c."));
    let totals = world.core.stat().totals;
    assert_eq!((totals.dropped_archived, totals.expired, totals.broken), (1, 0, 0));
}

#[test]
fn what_a_store_has_makes_room_for_attributes_too() {
    let (mut world, p, a) = with(|config| config.record_budget_bytes = Some(2000));
    let d = world.join("d");
    world.require(d, 1, "name=o1", false);
    for number in 1..=30 {
        world.offer(p, number, &format!("o{number}"), "payload", 0);
        archive(&mut world, a, number);
        if number == 1 {
            continue;
        }
        assert_eq!(world.heard(p).last().unwrap(), &format!("{number}: offered v{number}"));
    }
    let stat = world.core.stat();
    assert!(
        stat.totals.dropped_archived > 20 && stat.memory.record_bytes <= 2000,
        "{stat:?}"
    );
    assert_eq!(stat.totals.broken, 0, "spare objects are evicted first");
}

#[test]
fn what_anybody_needs_stays() {
    let (mut world, p, a) = world();
    let (c, d) = (world.join("c"), world.join("d"));
    world.require(d, 1, "name=b", false);
    for (number, name) in (1..).zip(["a", "b"]) {
        world.offer(p, number, name, &payload(), 0);
    }
    world.demand(c, 1, "name=a", None);
    archive(&mut world, a, 1);
    archive(&mut world, a, 2);
    world.heard(p);
    world.offer(p, 3, "c", &payload(), 0);
    assert!(world.heard(p).is_empty(), "a is held, b is owed");
    world.release(c, 1);
    assert_eq!(world.heard(p), ["3: offered v3"]);
    world.offer(p, 4, "d", &payload(), 0);
    world.follow(d, 2, |follow| follow.requirement = Some(1));
    assert!(world.heard(p).is_empty());
    world.release(d, 2);
    assert_eq!(world.heard(p), ["4: offered v4"]);
    world.offer(p, 5, "e", &payload(), 0);
    assert!(world.heard(p).is_empty(), "c and d are not archived");
    say_archived(&mut world, a, 3);
    assert!(
        world.heard(p).is_empty(),
        "its archiver is owed it until it releases it"
    );
    world.release(a, 3);
    assert_eq!(world.heard(p), ["5: offered v5"]);
}

#[test]
fn what_waits_for_a_name_that_is_to_come_stays_until_that_has_had_it() {
    let (mut world, p, a) = world();
    let c = world.join("c");
    let names = vec!["products".to_owned()];
    world.ask(p, 1, Request::Consumers(ConsumerNames { names }));
    world.stage_or_offer(p, 2, None, "a", &payload(), (fixed::BY_CONSUMERS, 0));
    world.offer(p, 3, "b", &payload(), 0);
    archive(&mut world, a, 1);
    archive(&mut world, a, 2);
    world.offer(p, 4, "c", &payload(), 0);
    assert!(
        visible(&mut world, c).ends_with("a c."),
        "b was archived later, and is evicted first"
    );
}

#[test]
fn a_look_that_has_yet_to_be_given_it_is_told_that_it_is_gone_and_why() {
    let (mut world, p, a) = world();
    let c = world.join("c");
    world.offer(p, 1, "a", "", 0);
    world.offer(p, 2, "b", &payload(), 0);
    world.offer(p, 3, "c", &payload(), 0);
    world.follow(c, 1, |follow| follow.window = 1);
    archive(&mut world, a, 2);
    world.offer(p, 4, "d", &payload(), 0);
    world.heard(c);
    world.release(c, 1);
    assert_eq!(world.heard(c)[0], "1: gap archived b v2");
    world.follow(c, 2, |follow| {
        follow.cursor = Some(world_cursor());
    });
    assert!(world.heard(c).iter().any(|line| line == "2: gap archived b v2"));
}

fn world_cursor() -> std::borrow::Cow<'static, str> {
    let phase = junctura_model::Phase::Live { last: 1 };
    let cursor = junctura_model::Cursor { incarnation: 1, phase };
    cursor.to_string().into()
}

#[test]
fn above_the_high_mark_so_many_leave_that_it_is_not() {
    let (mut world, p, a) = with(|config| config.budget_bytes = 64 << 10);
    for number in 1..=56 {
        world.offer(p, number, &format!("o{number:02}"), &"y".repeat(1024), 0);
        archive(&mut world, a, number);
    }
    assert_eq!(world.core.stat().objects.visible, 56);
    for number in 57..=100 {
        world.offer(p, number, &format!("o{number:02}"), &"y".repeat(1024), 0);
        archive(&mut world, a, number);
        assert_eq!(world.core.stat().objects.visible, 56);
    }
    assert_eq!(world.core.stat().totals.dropped_archived, 44);
    assert_eq!(world.core.stat().totals.offers_waited, 0);
    assert!(visible(&mut world, p).contains(" o45 o46 "), "the newest are there");
}

#[test]
fn nothing_goes_to_the_file_tier_while_a_store_has_something() {
    let (mut world, p, a) = with(|config| {
        config.spill = Some(SpillConfig {
            directory: "/scratch".into(),
            limit_bytes: 3072,
        });
    });
    world.offer(p, 1, "a", &payload(), 0);
    world.offer(p, 2, "b", &payload(), 0);
    archive(&mut world, a, 2);
    world.heard(p);
    world.offer(p, 3, "c", &payload(), 0);
    assert_eq!(world.heard(p), ["3: offered v3"], "b has left, though a is older");
    assert!(world.fx.jobs.is_empty());
    // Nothing is left that a store has: now one is spilled, and then the tier is full.
    world.offer(p, 4, "d", &payload(), 0);
    world.release(a, 1);
    world.written(Ok(7));
    assert_eq!(world.heard(p), ["4: offered v4"]);
    world.offer(p, 5, "e", &payload(), 0);
    assert!(world.heard(p).is_empty() && world.fx.jobs.is_empty());
    let stat = world.core.stat();
    assert_eq!((stat.spill.unwrap().objects, stat.totals.dropped_archived), (1, 1));
}

#[test]
fn what_lies_in_a_full_file_tier_leaves_it_when_a_store_has_it() {
    let (mut world, p, a) = with(|config| {
        config.spill = Some(SpillConfig {
            directory: "/scratch".into(),
            limit_bytes: 3072,
        });
    });
    let c = world.join("c");
    // The archiver holds none of the objects yet, or they could not be spilled.
    world.ask(a, 3, Request::Stop(2));
    for (number, name) in (1..).zip(["a", "b", "c"]) {
        world.offer(p, number, name, &payload(), 0);
    }
    world.written(Ok(7));
    world.follow(a, 4, |follow| follow.requirement_name = Some("archive".into()));
    archive(&mut world, a, 1);
    assert!(
        visible(&mut world, c).contains("a (in the file)"),
        "the tier is not needed"
    );
    world.release(a, 2);
    world.release(a, 3);
    world.heard(p);
    world.offer(p, 4, "d", &payload(), 0);
    assert_eq!(world.fx.jobs.len(), 1, "a has made room for b");
    world.written(Ok(7));
    assert_eq!(world.heard(p), ["4: offered v4"]);
    assert_eq!(world.core.stat().totals.dropped_archived, 1);
}

const SLOT: u64 = 256 << 10;

/// A pool of eight slots, all leased by its producer; seven of them, which is not above the high-water mark, hold
/// archived objects.
fn with_slots() -> (World, u32, u32) {
    let (mut world, p, a) = with(|config| config.budget_bytes = 8 * SLOT);
    while !world.heard(p).iter().any(|line| line.contains("PoolFull")) {
        world.lease(p, 1, SLOT, Some(0));
    }
    assert_eq!(world.core.stat().memory.used_bytes, 8 * SLOT);
    let segments = world.fx.segments.clone();
    let slots = segments
        .iter()
        .flat_map(|(&segment, bytes)| (0..bytes / SLOT).map(move |slot| (segment, slot as u32)));
    for (number, (segment, slot)) in (1..8).zip(slots) {
        world.offer_slot(p, 2, &format!("o{number}"), segment, slot, SLOT);
        archive(&mut world, a, number);
    }
    world.heard(p);
    assert_eq!(dropped(&world), 0);
    (world, p, a)
}

fn dropped(world: &World) -> u64 {
    world.core.stat().totals.dropped_archived
}

#[test]
fn a_producer_that_has_slots_to_go_on_with_makes_little_leave() {
    let (mut world, p, a) = with_slots();
    // It fills the eighth slot when it asks for another.
    world.lease(p, 3, SLOT, None);
    assert_eq!(world.heard(p), ["0: freed 1"], "its lease still waits");
    assert_eq!(dropped(&world), 1);
    let (&segment, bytes) = world.fx.segments.last_key_value().unwrap();
    let last = (bytes / SLOT - 1) as u32;
    world.offer_slot(p, 4, "o8", segment, last, SLOT);
    archive(&mut world, a, 8);
    assert_eq!(dropped(&world), 2, "it has offered one, and may be waiting for another");
    world.pass(99);
    assert_eq!(dropped(&world), 2);
    world.pass(1);
    assert_eq!(dropped(&world), 3, "a long wait is served while slots are being filled");
    world.pass(199);
    assert_eq!(dropped(&world), 3, "but it may be that he does something else");
    world.pass(1);
    assert_eq!(dropped(&world), 4);
    world.ask(p, 5, Request::Cancel(3));
    world.pass(1000);
    assert_eq!(dropped(&world), 4);
}

#[test]
fn who_has_nothing_gets_an_eighth_at_a_time_until_segments_come_back() {
    let (mut world, p, _) = with_slots();
    let q = world.join("q");
    world.lease(q, 1, SLOT, None);
    let mut rounds = 1;
    let recalled = loop {
        assert_eq!(dropped(&world), rounds);
        let told = world.heard(p);
        let recalled = told.iter().find_map(|line| line.strip_prefix("0: recall "));
        if let Some(segment) = recalled {
            break segment.parse().unwrap();
        }
        world.pass(100);
        rounds += 1;
    };
    world.ask(p, 5, Request::Return(recalled));
    assert!(world.heard(q)[0].starts_with("1: leased"));
    world.pass(1000);
    assert_eq!(dropped(&world), rounds, "and no more than was needed");
    assert!(rounds < 7);
}

#[test]
fn a_lease_that_does_not_wait_gets_what_a_store_has() {
    let (mut world, p, _) = with_slots();
    world.leave(p);
    let q = world.join("q");
    while world.core.stat().totals.segments_made < 20 {
        world.lease(q, 1, SLOT, Some(0));
        world.pass(0);
        if world.heard(q)[0].starts_with("1: PoolFull") {
            break;
        }
    }
    assert!(dropped(&world) > 0);
}
