//! Retention for a time, and retention set by schemas and offers.

use junctura_wire::body::events;
use junctura_wire::fixed;

use super::World;

#[test]
fn an_object_goes_when_its_time_is_over_and_is_remembered_as_expired() {
    let mut world = World::new();
    let (p, c) = (world.join("p"), world.join("c"));
    world.subscribe(c, 1, "", events::EXPIRED);
    world.pass(7);
    world.offer_for(p, 1, "a", 10);
    world.pass(9);
    assert_eq!(world.core.stat().objects.visible, 1);
    assert_eq!(world.core.deadline(), Some(17_000_000));
    world.pass(1);
    assert_eq!(world.heard(c), ["1: began v0", "1: expired a v1 by p"]);
    world.demand_key(c, 2, "a", None);
    assert_eq!(world.heard(c), ["2: Gone version 1.1 was expired"]);
    assert_eq!(world.core.stat().totals.expired, 1);
}

#[test]
fn holders_keep_what_they_hold_and_releases_do_not_end_a_time() {
    let mut world = World::new();
    let (p, c) = (world.join("p"), world.join("c"));
    world.offer_for(p, 1, "a", 10);
    for (number, client) in [(1, c), (2, p), (3, c)] {
        world.demand(client, number, "name=a", Some(0));
        if number < 3 {
            world.release(client, 1);
        }
    }
    world.pass(10);
    let stat = world.core.stat();
    assert_eq!((stat.objects.visible, stat.objects.kept), (0, 1));
    world.release(c, 1);
    assert_eq!(world.core.stat().objects.kept, 0);
}

#[test]
fn who_is_owed_an_object_keeps_it_beyond_its_time_and_only_until_it_was_received() {
    let mut world = World::new();
    let (p, c, d) = (world.join("p"), world.join("c"), world.join("d"));
    world.require(c, 1, "name=a", false);
    world.require(d, 1, "name=b", false);
    world.offer_for(p, 1, "a", 10);
    world.offer_for(p, 2, "b", 10);
    world.offer_for(p, 3, "z", 10);
    world.pass(50);
    assert_eq!(world.core.stat().objects.visible, 2);
    world.follow(c, 2, |follow| follow.requirement = Some(1));
    world.release(c, 1);
    assert_eq!(world.core.stat().objects.visible, 1);
    world.leave(d);
    assert_eq!(world.core.stat().objects.visible, 0);
    assert_eq!(world.core.stat().totals.expired, 3);
}

#[test]
fn a_follow_that_has_yet_to_receive_it_gets_a_gap() {
    let mut world = World::new();
    let (p, c) = (world.join("p"), world.join("c"));
    world.follow(c, 1, |follow| follow.window = 1);
    for name in ["a", "b", "c"] {
        world.offer_for(p, 1, name, if name == "b" { 5 } else { 50 });
    }
    world.pass(5);
    world.heard(c);
    world.release(c, 1);
    assert_eq!(world.heard(c), ["1: gap expired b v2", "1: got c v3 "]);
}

#[test]
fn what_goes_before_its_time_leaves_nothing_behind() {
    let mut world = World::new();
    let p = world.join("p");
    world.offer_for(p, 1, "a", 10);
    world.offer_for(p, 2, "b", 20);
    world.offer(p, 3, "a", "", 0);
    assert_eq!(world.core.exchange.objects.expiries.next(), Some(20_000_000));
    world.withdraw(p, 4, "b", None, false);
    assert_eq!(world.core.exchange.objects.expiries.next(), None);
    world.pass(100);
    assert_eq!(world.core.stat().objects.visible, 1);
    assert_eq!(world.core.stat().totals.expired, 0);
}

#[test]
fn an_object_that_is_offered_again_and_again_takes_one_place_in_the_queue() {
    let mut world = World::new();
    let p = world.join("p");
    world.offer_for(p, 1, "first", 1);
    for number in 2..1000 {
        world.offer_for(p, number, "a", 1_000_000);
        world.heard(p);
        assert!(world.core.exchange.objects.expiries.len() <= 4);
    }
    world.pass(1);
    assert_eq!(world.core.stat().objects.visible, 1);
}

#[test]
fn those_of_one_instant_go_in_the_order_in_which_they_came() {
    let mut world = World::new();
    let (p, c) = (world.join("p"), world.join("c"));
    world.subscribe(c, 1, "", events::EXPIRED);
    for (name, time) in [("a", 7), ("b", 5), ("c", 7), ("d", 6)] {
        world.offer_for(p, 1, name, time);
    }
    world.heard(c);
    world.pass(7);
    let heard = world.heard(c);
    let names: Vec<_> = heard.iter().map(|line| &line["1: expired ".len()..][..1]).collect();
    assert_eq!(names, ["b", "d", "a", "c"]);
}

#[test]
fn an_object_whose_time_ends_makes_room_for_an_offer_that_waits() {
    let mut world = World::with(|config| config.budget_bytes = 4096);
    let p = world.join("p");
    let payload = "x".repeat(3000);
    let record = world.record("a", 0);
    let head = fixed::OfferHead {
        flags: (fixed::INLINE | fixed::FOR_A_TIME).into(),
        releases: 10.into(),
        record_length: (record.len() as u32).into(),
        length: 3000.into(),
        ..fixed::OfferHead::default()
    };
    let request = junctura_wire::Request::Offer {
        head,
        record: &record,
        inline: payload.as_bytes(),
    };
    world.ask(p, 1, request);
    world.offer(p, 2, "b", &payload, 0);
    assert_eq!(world.heard(p), ["1: offered v1"]);
    world.pass(10);
    assert_eq!(world.heard(p), ["2: offered v2"]);
}

#[test]
fn an_offer_goes_before_its_schema_and_a_schema_before_nothing() {
    let mut world = World::retaining("{for: 10ms}");
    let p = world.join("p");
    world.offer_with(p, 1, "default", fixed::DEFAULT_RETENTION, 0);
    world.offer_with(
        p,
        2,
        "default, whatever else is set",
        fixed::DEFAULT_RETENTION | fixed::FOR_A_TIME,
        99,
    );
    world.offer_with(p, 3, "until withdrawn", 0, 0);
    world.offer_with(p, 4, "released", 0, 1);
    world.offer_for(p, 5, "longer", 20);
    world.pass(10);
    world.heard(p);
    world.list(p, 6, "", "");
    assert_eq!(world.heard(p)[1], "6: listed longer released until withdrawn.");
}

#[test]
fn a_time_of_nothing_is_refused_and_changes_nothing() {
    let mut world = World::new();
    let p = world.join("p");
    world.offer(p, 1, "a", "", 0);
    world.offer_for(p, 2, "a", 0);
    assert_eq!(
        world.heard(p),
        [
            "1: offered v1",
            "2: InvalidArgument for no time: no consumer could receive it"
        ]
    );
    assert_eq!(world.core.stat().objects.visible, 1);
    assert_eq!(world.core.exchange.objects.expiries.len(), 0);
}

#[test]
fn what_is_given_back_was_not_completed_and_counts_as_no_release() {
    let mut world = World::new();
    let (p, c, d) = (world.join("p"), world.join("c"), world.join("d"));
    world.offer(p, 1, "a", "", 2);
    world.follow(c, 1, |follow| follow.window = 1);
    world.demand(d, 1, "name=a", Some(0));
    world.give_back_undone(c, 1);
    world.give_back_undone(d, 1);
    // The follow continues.
    world.offer(p, 2, "b", "", 0);
    assert!(world.heard(c).contains(&"1: got b v2 ".to_owned()));
    // Two clients release it, each after it has given it back once more.
    for client in [d, p] {
        world.demand(client, 2, "name=a", Some(0));
        world.give_back_undone(client, 1);
        assert_eq!(world.core.stat().objects.visible, 2);
        world.demand(client, 3, "name=a", Some(0));
        world.release(client, 1);
    }
    assert_eq!(
        (world.core.stat().objects.visible, world.core.stat().totals.released),
        (1, 2)
    );
    // Its memory is held until its views end.
    world.offer(p, 3, "c", "", 1);
    world.demand(d, 6, "name=c", Some(0));
    world.release_mapped(d, 3, junctura_wire::fixed::UNDONE);
    assert_eq!(
        (world.core.stat().objects.visible, world.core.stat().objects.held),
        (2, 2)
    );
    world.release(d, 3);
    assert_eq!(
        (world.core.stat().objects.visible, world.core.stat().objects.held),
        (2, 1)
    );
}
