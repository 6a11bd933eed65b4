//! Offers that are answered when their objects are archived.

use junctura_wire::Request;
use junctura_wire::body::{ArchivedBody, ArchivedObject, events};
use junctura_wire::fixed;

use super::World;

fn say(world: &mut World, client: u32, number: u64, sequences: &[u64], failure: Option<&str>) {
    let object = |&sequence: &u64| ArchivedObject {
        sequence,
        location: "file:///there".into(),
    };
    let archived = ArchivedBody {
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
    assert!(world.heard(p).is_empty(), "no further reply");
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
    // Received and released by a reader that is no archiver.
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

fn stage_durable(world: &mut World, client: u32, number: u64, through: u64, name: &str) {
    world.stage_for(client, number, through, name, "", (fixed::DURABLE, 0));
}

#[test]
fn who_completes_or_has_open_a_durable_bundle_is_answered_when_it_is_archived() {
    let (mut world, p, a) = world();
    let (q, c) = (world.join("q"), world.join("c"));
    world.follow(c, 1, |_| {});
    world.open(p, 1, "b", 3);
    world.open(q, 1, "b", 3);
    stage_durable(&mut world, p, 2, 1, "a");
    world.stage(q, 2, 1, "m", "");
    stage_durable(&mut world, p, 3, 1, "z");
    // Visible to all at once, as any other bundle.
    assert_eq!(world.heard(c)[2..], ["1: got a v1 ", "1: got m v2 ", "1: got z v3 "]);
    assert_eq!(world.heard(p), ["1: began v0", "2: staged", "3: offered v3"]);
    assert_eq!(world.heard(q), ["1: began v0", "2: staged"]);
    say(&mut world, a, 3, &[3], None);
    assert!(world.heard(p).is_empty() && world.heard(q).is_empty());
    say(&mut world, a, 4, &[1], None);
    assert_eq!(
        world.heard(p),
        ["1: completed 3 from v1 2=v1 3=v3", "3: done 0"],
        "the other member is not durable"
    );
    assert_eq!(world.heard(q), ["1: completed 3 from v1 2=v2"]);
}

#[test]
fn a_seal_waits_for_durable_members_of_the_whole_tree() {
    let (mut world, p, a) = world();
    world.open(p, 1, "b", 0);
    world.open(p, 2, "b/c", 0);
    stage_durable(&mut world, p, 3, 2, "a");
    world.stage(p, 4, 1, "b", "");
    world.ask(p, 5, Request::Seal(2));
    world.ask(p, 6, Request::Seal(1));
    assert_eq!(world.heard(p)[2..], ["3: staged", "4: staged", "5: done 1"]);
    say(&mut world, a, 3, &[1], None);
    let told = world.heard(p);
    assert_eq!(told.last().unwrap(), "6: done 2");
    assert!(told[0].contains("completed 2 from v1") && told[1].contains("completed 2 from v1"));
}

#[test]
fn a_bundle_whose_member_is_not_archived_fails_and_is_visible() {
    let failed = |told: &str, number: u64, why: &str| {
        let begin = format!("{number}: Io the bundle is visible, but a member is not archived: {why}");
        assert!(told.starts_with(&begin), "{told}");
    };
    let (mut world, p, a) = world();
    for (round, why) in ["the disk is full", "it was received", "it was received"]
        .iter()
        .enumerate()
    {
        let at = 10 * round as u64;
        world.open(p, at + 1, "", 0);
        stage_durable(&mut world, p, at + 2, at + 1, &format!("a{round}"));
        stage_durable(&mut world, p, at + 3, at + 1, &format!("b{round}"));
        world.ask(p, at + 4, Request::Seal(at + 1));
        world.heard(p);
        let first = 2 * round as u64 + 1;
        match round {
            0 => say(&mut world, a, 100, &[first], Some("the disk is full")),
            1 => world.release(a, first + 1),
            _ => world.retract(a, 101, "archive"),
        }
        let told = world.heard(p);
        failed(&told[0], at + 1, why);
        failed(&told[1], at + 4, why);
        assert_eq!(told.len(), 2);
    }
    assert_eq!(world.core.stat().objects.visible, 6);
    // Where no requirement is owed its members, no request waits.
    world.open(p, 50, "", 0);
    stage_durable(&mut world, p, 51, 50, "z");
    world.ask(p, 52, Request::Seal(50));
    failed(world.heard(p).last().unwrap(), 52, "no requirement of an archiver");
}

#[test]
fn what_was_replaced_or_given_up_in_a_bundle_is_not_waited_for() {
    let (mut world, p, a) = world();
    world.open(p, 1, "b", 0);
    stage_durable(&mut world, p, 2, 1, "a");
    world.stage(p, 3, 1, "a", "later");
    world.ask(p, 4, Request::Seal(1));
    assert_eq!(
        world.heard(p).last().unwrap(),
        "4: done 1",
        "the later one is not durable"
    );
    world.open(p, 5, "c", 0);
    stage_durable(&mut world, p, 6, 5, "b");
    world.ask(p, 7, Request::Abort(5));
    assert_eq!(world.heard(p).last().unwrap(), "7: done 1");
    assert_eq!(world.heard(a).len(), 1, "it was given what is visible");
}

#[test]
fn who_waits_for_a_bundle_may_go_or_have_waited_long_enough() {
    let (mut world, p, a) = world();
    let slow = world.join_with_offer_timeout("slow", 1000);
    for client in [p, slow] {
        world.open(client, 1, "b", 2);
    }
    stage_durable(&mut world, p, 2, 1, "a");
    stage_durable(&mut world, slow, 2, 1, "b");
    world.pass(1000);
    let told = world.heard(slow);
    assert_eq!(told[1], "2: offered v2");
    assert_eq!(
        told[2],
        "2: Timeout the bundle is visible, and was not archived in time"
    );
    world.ask(p, 3, Request::Stop(1));
    assert_eq!(world.heard(p).last().unwrap(), "3: done 0");
    say(&mut world, a, 3, &[1, 2], None);
    assert!(world.heard(p).is_empty());
    assert_eq!(world.heard(slow), ["1: completed 2 from v1 2=v2"]);
    world.open(p, 4, "c", 1);
    stage_durable(&mut world, p, 5, 4, "c");
    world.leave(p);
    say(&mut world, a, 4, &[3], None);
}
