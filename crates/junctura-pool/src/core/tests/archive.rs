//! Offers that are answered when somebody has put their objects into a store.

use junctura_wire::Request;
use junctura_wire::body::{Archived, ArchivedObject, events};
use junctura_wire::fixed;

use super::World;

fn say(world: &mut World, client: u32, number: u64, sequences: &[u64], failure: Option<&str>) {
    let object = |&sequence: &u64| ArchivedObject {
        sequence,
        location: "file:///there".into(),
    };
    let archived = Archived {
        requirement: "archive".into(),
        objects: sequences.iter().map(object).collect(),
        failure: failure.map(Into::into),
    };
    world.ask(client, number, Request::Archived(archived));
}

/// A producer, and an archiver that follows its requirement.
fn world() -> (World, u32, u32) {
    let mut world = World::new();
    let (p, a) = (world.join("p"), world.join("a"));
    world.require_named(a, 1, "archive", "", 0);
    world.follow(a, 2, |follow| follow.requirement_name = Some("archive".into()));
    world.heard(a);
    (world, p, a)
}

fn offer_durable(world: &mut World, client: u32, number: u64, name: &str) {
    world.offer_with(client, number, name, fixed::DURABLE, 0);
}

#[test]
fn a_durable_offer_is_acknowledged_at_once_and_done_when_it_is_archived() {
    let (mut world, p, a) = world();
    world.subscribe(p, 9, "", events::ARCHIVED);
    offer_durable(&mut world, p, 1, "a");
    offer_durable(&mut world, p, 2, "b");
    world.offer(p, 3, "c", "", 0);
    assert_eq!(
        world.heard(p),
        ["9: began v0", "1: offered v1", "2: offered v2", "3: offered v3"]
    );
    say(&mut world, a, 3, &[1, 2, 3, 17], None);
    assert_eq!(
        world.heard(a).last().unwrap(),
        "3: done 3",
        "it is owed nothing of number 17"
    );
    let told = world.heard(p);
    assert_eq!(
        told,
        [
            "9: archived a v1 by p",
            "1: done 0",
            "9: archived b v2 by p",
            "2: done 0",
            "9: archived c v3 by p"
        ]
    );
    for sequence in 1..=3 {
        world.release(a, sequence);
    }
    assert!(world.heard(p).is_empty(), "nothing more is said");
    assert_eq!(world.core.stat().totals.archived, 3);
}

#[test]
fn what_could_not_be_archived_is_told_and_stays_until_it_is() {
    let (mut world, p, a) = world();
    world.subscribe(p, 9, "", events::ARCHIVED | events::UNARCHIVED);
    world.offer_with(p, 1, "a", fixed::DURABLE, 1);
    world.heard(p);
    say(&mut world, a, 3, &[1], Some("the disk is full"));
    let told = world.heard(p);
    assert_eq!(told[0], "9: unarchived a v1 by p why");
    assert_eq!(
        told[1],
        "1: Io the object is visible, and not archived: the disk is full"
    );
    assert_eq!(world.core.stat().objects.visible, 1);
    say(&mut world, a, 4, &[1], None);
    assert_eq!(world.heard(p), ["9: archived a v1 by p"], "its offer was answered");
    world.release(a, 1);
    assert_eq!(world.core.stat().objects.visible, 0);
}

#[test]
fn nobody_waits_for_what_nobody_archives() {
    let (mut world, p, a) = world();
    let failed = |world: &mut World, number: u64| {
        let told = world.heard(p);
        let begin = format!("{number}: Io the object is visible, and not archived");
        assert!(told.last().unwrap().starts_with(&begin), "{told:?}");
    };
    // Received and released by a reader who is no archiver.
    offer_durable(&mut world, p, 1, "a");
    world.release(a, 1);
    failed(&mut world, 1);
    // The requirement ends.
    offer_durable(&mut world, p, 2, "b");
    world.retract(a, 4, "archive");
    failed(&mut world, 2);
    // There is none.
    offer_durable(&mut world, p, 3, "c");
    failed(&mut world, 3);
    say(&mut world, a, 5, &[3], None);
    assert!(world.heard(a).last().unwrap().starts_with("5: NotFound"));
}

#[test]
fn an_archiver_that_dies_before_it_says_so_is_waited_for() {
    let (mut world, p, a) = world();
    offer_durable(&mut world, p, 1, "a");
    world.leave(a);
    assert_eq!(world.heard(p), ["1: offered v1"]);
    let next = world.join("next");
    world.follow(next, 1, |follow| follow.requirement_name = Some("archive".into()));
    assert!(
        world.heard(next)[1].ends_with("again"),
        "it was given to another before"
    );
    say(&mut world, next, 2, &[1], None);
    assert_eq!(world.heard(p), ["1: done 0"]);
}

#[test]
fn a_producer_that_leaves_or_has_waited_long_enough_is_not_answered() {
    let (mut world, _, a) = world();
    let p = world.join_with_offer_timeout("p", 1000);
    offer_durable(&mut world, p, 1, "a");
    world.pass(1000);
    let told = world.heard(p);
    assert_eq!(
        told[1],
        "1: Timeout the object is visible, and was not archived in time"
    );
    offer_durable(&mut world, p, 2, "b");
    world.leave(p);
    world.heard(p);
    say(&mut world, a, 3, &[1, 2], None);
    assert!(world.heard(p).is_empty());
}

#[test]
fn members_of_bundles_cannot_be_durable() {
    let (mut world, p, _) = world();
    world.open(p, 1, "b", 2);
    world.stage_for(p, 2, 1, "a", "", (fixed::DURABLE, 0));
    assert!(world.heard(p)[1].starts_with("2: Unsupported"));
}
