//! Wanted and declined objects, and the clients that are notified.

use junctura_wire::Request;
use junctura_wire::body::{WantedRequest, events};
use junctura_wire::fixed;

use super::World;

fn wanted(world: &mut World, client: u32, number: u64, name: &str, declines: bool) {
    let record = world.record(name, 1);
    let wanted = WantedRequest {
        schema: 0,
        record: record.into(),
        declines,
    };
    world.ask(client, number, Request::Wanted(wanted));
}

#[test]
fn demands_follows_and_requirements_want_and_subscriptions_do_not() {
    let mut world = World::new();
    let (p, c) = (world.join("p"), world.join("c"));
    world.subscribe(c, 1, "", events::OFFERED);
    wanted(&mut world, p, 1, "a", false);
    world.demand(c, 2, "name=a", None);
    world.follow(c, 3, |follow| follow.selector = "name=a/b".into());
    world.require_named(c, 4, "n", "size=1", 0);
    wanted(&mut world, p, 2, "a", false);
    wanted(&mut world, p, 3, "b", false);
    wanted(&mut world, p, 4, "c", false);
    assert_eq!(world.heard(p), ["1: done 0", "2: done 3", "3: done 2", "4: done 1"]);
}

#[test]
fn who_demands_the_key_of_what_was_declined_is_told_and_so_is_the_producer() {
    let mut world = World::new();
    let (p, c) = (world.join("p"), world.join("c"));
    world.subscribe(p, 9, "", events::DECLINED | events::MISSED);
    world.offer_with(p, 1, "a", fixed::IF_WANTED, 0);
    assert_eq!(
        world.heard(p),
        [
            "9: began v0",
            "9: declined a v0 by p",
            "1: NotWanted no client wanted it, and its producer did not offer it"
        ]
    );
    world.demand_key(c, 1, "a", None);
    world.demand(c, 2, "name=a", None);
    assert!(world.heard(c)[0].starts_with("1: NotWanted"));
    assert_eq!(world.heard(p), ["9: missed a v0 by c"]);
    world.withdraw(p, 3, "a", None, false);
    assert!(world.heard(p)[0].starts_with("3: NotFound"));
    world.offer_with(p, 4, "a", fixed::IF_WANTED, 0);
    assert_eq!(world.heard(p), ["4: offered v1"], "the demand by selector wants it");
    world.demand_key(c, 3, "a", None);
    assert_eq!(world.heard(c), ["2: got a v1 ", "3: got a v1 "]);
}

#[test]
fn a_marker_does_not_count_for_the_rule_of_equal_keys_and_is_forgotten_like_a_tombstone() {
    let mut world = World::rejecting();
    let (p, c) = (world.join("p"), world.join("c"));
    wanted(&mut world, p, 1, "a", true);
    assert_eq!(world.core.stat().totals.declined, 1);
    assert_eq!(world.core.stat().objects.tombstones, 1);
    world.offer(p, 2, "a", "", 0);
    wanted(&mut world, p, 3, "a", true);
    world.demand_key(c, 1, "a", None);
    assert_eq!(world.heard(c), ["1: got a v1 "], "an object replaces a marker");
    world.offer_with(p, 4, "a", fixed::IF_WANTED, 0);
    let heard = world.heard(p);
    assert!(heard[3].starts_with("4: AlreadyExists"), "{heard:?}");
    wanted(&mut world, p, 5, "b", true);
    world.pass(11 * 60_000);
    world.demand_key(c, 2, "b", Some(0));
    assert!(world.heard(c)[0].starts_with("2: NotFound"));
}
