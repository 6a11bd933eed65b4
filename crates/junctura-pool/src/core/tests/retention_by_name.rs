//! Retention by named requirements and groups, existing and absent.

use std::collections::BTreeMap;

use junctura_wire::Request;
use junctura_wire::body::{ConsumerNames, events};
use junctura_wire::fixed;
use proptest::prelude::*;

use super::World;
use crate::core::objects::object::RetainedUntil;

/// Numbers names for a client's offers.
fn number(world: &mut World, client: u32, request: u64, names: &[&str]) {
    let names = names.iter().map(|&name| name.to_owned()).collect();
    world.ask(client, request, Request::Consumers(ConsumerNames { names }));
}

/// Offers an object that stays until those of a number have had it.
fn offer(world: &mut World, client: u32, request: u64, name: &str, number: u32) {
    world.offer_with(client, request, name, fixed::BY_CONSUMERS, number);
}

/// Follows as the only member of a group, which exists or is made.
fn join(world: &mut World, client: u32, request: u64, group: &'static str, selector: &'static str) {
    world.follow(client, request, |follow| {
        follow.selector = selector.into();
        follow.group = Some(group.into());
        follow.group_terms = Some(junctura_wire::body::GroupTerms::default());
    });
}

fn visible(world: &World) -> u64 {
    world.core.stat().objects.visible
}

/// The names that objects wait for, and how many.
fn awaited(world: &World) -> Vec<(String, u64)> {
    let stat = world.core.stat().awaited;
    stat.into_iter().map(|one| (one.name, one.objects)).collect()
}

#[test]
fn an_object_stays_until_each_of_its_names_has_had_it_in_whatever_order_they_come() {
    let mut world = World::new();
    let (p, a, b) = (world.join("p"), world.join("a"), world.join("b"));
    number(&mut world, p, 1, &["archive", "products"]);
    join(&mut world, a, 1, "archive", "");
    offer(&mut world, p, 2, "x", 0);
    assert_eq!(world.heard(p), ["1: done 0", "2: offered v1"]);
    assert_eq!(awaited(&world), [("products".to_owned(), 1)]);
    world.release(a, 1);
    assert_eq!(visible(&world), 1, "products does not exist yet");
    join(&mut world, b, 1, "products", "");
    assert_eq!(awaited(&world), []);
    assert_eq!(visible(&world), 1, "products is owed it");
    world.release(b, 1);
    assert_eq!(visible(&world), 0);
    assert_eq!(world.core.stat().totals.expired, 1);
    offer(&mut world, p, 3, "y", 0);
    world.release(b, 2);
    world.release(a, 2);
    assert_eq!(visible(&world), 0, "both existed from the beginning");
}

#[test]
fn releases_of_others_count_for_nothing() {
    let mut world = World::new();
    let (p, c) = (world.join("p"), world.join("c"));
    number(&mut world, p, 1, &["archive"]);
    offer(&mut world, p, 2, "x", 0);
    world.require_named(c, 1, "other", "", 0);
    world.follow(c, 2, |follow| follow.requirement_name = Some("other".into()));
    world.release(c, 1);
    world.demand(c, 3, "name=x", Some(0));
    world.release(c, 1);
    assert_eq!(visible(&world), 1);
}

#[test]
fn who_does_not_want_an_object_is_not_waited_for() {
    let mut world = World::new();
    let (p, c) = (world.join("p"), world.join("c"));
    world.subscribe(c, 9, "", events::EXPIRED);
    number(&mut world, p, 1, &["archive"]);
    for name in ["x", "y", "z"] {
        offer(&mut world, p, 2, name, 0);
    }
    world.require_named(c, 1, "archive", "name=y", 0);
    offer(&mut world, p, 3, "w", 0);
    let heard = world.heard(c);
    assert_eq!(
        heard[2..],
        ["9: expired x v1 by p", "9: expired z v3 by p", "9: expired w v4 by p"]
    );
    assert_eq!(world.heard(p).last().unwrap(), "3: offered v4");
    assert_eq!(visible(&world), 1);
}

#[test]
fn very_many_are_kept_until_those_who_come_are_owed_them() {
    for selector in ["", "not name=a/b"] {
        let mut world = World::with(|config| {
            config.changed_at_once = 2;
            config.leaving_at_once = 1;
        });
        let (p, c) = (world.join("p"), world.join("c"));
        number(&mut world, p, 1, &["archive"]);
        for name in ["a", "b", "x", "y", "z"] {
            offer(&mut world, p, 2, name, 0);
        }
        world.require_named(c, 1, "archive", selector, 0);
        let mut seen = Vec::new();
        while world.core.is_behind() {
            seen.push(visible(&world));
            world.pass(0);
        }
        let wanted = if selector.is_empty() { 5 } else { 3 };
        assert_eq!((visible(&world), seen[0]), (wanted, 5), "{selector}");
        assert_eq!(world.heard(c), ["1: began v5"]);
        assert!(awaited(&world).is_empty() && world.core.exchange.asked.interests.owed == wanted as usize);
        world.retract(c, 2, "archive");
        while world.core.is_behind() {
            world.pass(0);
        }
        assert_eq!((visible(&world), world.core.exchange.asked.interests.owed), (0, 0));
    }
}

#[test]
fn a_name_that_comes_and_goes_is_waited_for_no_more_by_any_of_very_many() {
    let mut world = World::with(|config| {
        config.changed_at_once = 1;
        config.leaving_at_once = 1;
    });
    let (p, c, q) = (world.join("p"), world.join("c"), world.join("q"));
    number(&mut world, p, 1, &["archive"]);
    for name in ["a", "b", "x"] {
        offer(&mut world, p, 2, name, 0);
    }
    world.require_named(c, 1, "archive", "", 0);
    // Its name is taken only when it is owed all.
    number(&mut world, q, 1, &["archive", "other"]);
    offer(&mut world, q, 2, "y", 0);
    assert_eq!(awaited(&world), [("archive".to_owned(), 4), ("other".to_owned(), 1)]);
    while world.heard(c).is_empty() {
        world.pass(0);
    }
    world.retract(c, 2, "archive");
    while world.core.is_behind() {
        world.pass(0);
    }
    assert_eq!((visible(&world), awaited(&world)), (1, vec![("other".to_owned(), 1)]));
}

#[test]
fn a_look_gets_what_goes_at_once_if_it_waited_for_it() {
    let mut world = World::new();
    let (p, c, d) = (world.join("p"), world.join("c"), world.join("d"));
    world.require_named(c, 1, "archive", "name=none", 0);
    world.demand(d, 1, "name=x", None);
    number(&mut world, p, 1, &["archive"]);
    offer(&mut world, p, 2, "x", 0);
    assert_eq!(world.heard(d), ["1: got x v1 "]);
    assert_eq!((visible(&world), world.core.stat().objects.kept), (0, 1));
}

#[test]
fn who_is_retracted_is_not_waited_for_but_what_comes_later_waits_for_another() {
    let mut world = World::new();
    let (p, c) = (world.join("p"), world.join("c"));
    number(&mut world, p, 1, &["archive"]);
    world.require_named(c, 1, "archive", "", 0);
    offer(&mut world, p, 2, "x", 0);
    world.retract(c, 2, "archive");
    assert_eq!(visible(&world), 0);
    offer(&mut world, p, 3, "y", 0);
    assert_eq!(awaited(&world), [("archive".to_owned(), 1)]);
    world.require_named(c, 3, "archive", "", 20);
    world.leave(c);
    assert_eq!(visible(&world), 1);
    world.pass(20);
    assert_eq!(visible(&world), 0, "its time to live is over");
}

#[test]
fn a_broken_one_counts_as_one_that_released() {
    let mut world = World::with(|config| config.budget_bytes = 8192);
    let (p, c) = (world.join("p"), world.join("c"));
    number(&mut world, p, 1, &["viewer"]);
    world.require_with(c, 1, "", |require| {
        require.name = Some("viewer".into());
        require.breaks_on_full = true;
        require.quota_bytes = Some(4000);
    });
    for name in ["x", "y"] {
        let payload = "x".repeat(3000);
        world.stage_or_offer(p, 2, None, name, &payload, (fixed::BY_CONSUMERS, 0));
    }
    assert_eq!(visible(&world), 0, "kept by the viewer alone, and more than its quota");
    offer(&mut world, p, 3, "z", 0);
    assert_eq!(visible(&world), 0, "it receives that, too");
}

#[test]
fn a_withdraw_does_not_wait_for_those_who_are_not_there() {
    let mut world = World::new();
    let p = world.join("p");
    number(&mut world, p, 1, &["archive"]);
    offer(&mut world, p, 2, "x", 0);
    world.withdraw(p, 3, "x", None, false);
    offer(&mut world, p, 4, "y", 0);
    offer(&mut world, p, 5, "y", 0);
    assert_eq!(world.heard(p)[2..], ["3: done 1", "4: offered v2", "5: offered v3"]);
    assert_eq!(awaited(&world), [("archive".to_owned(), 1)]);
}

#[test]
fn members_of_a_bundle_wait_from_when_they_are_visible() {
    let mut world = World::new();
    let (p, c) = (world.join("p"), world.join("c"));
    number(&mut world, p, 1, &["early", "late"]);
    world.open(p, 2, "b", 0);
    world.stage_for(p, 3, 2, "x", "one", (fixed::BY_CONSUMERS, 0));
    world.stage_for(p, 4, 2, "x", "two", (fixed::BY_CONSUMERS, 0));
    assert_eq!(awaited(&world), []);
    world.require_named(c, 1, "early", "name=none", 0);
    world.require_named(c, 2, "late", "name=none", 0);
    world.retract(c, 3, "late");
    world.ask(p, 5, Request::Seal(2));
    assert_eq!(awaited(&world), [("late".to_owned(), 1)]);
    world.require_named(c, 4, "late", "name=none", 0);
    assert_eq!(visible(&world), 0);
    world.open(p, 6, "c", 0);
    world.stage_for(p, 7, 6, "y", "", (fixed::BY_CONSUMERS, 0));
    world.ask(p, 8, Request::Abort(6));
    world.leave(p);
    assert_eq!(world.core.exchange.retention.len(), 0);
}

#[test]
fn a_schema_can_name_them_for_some_of_its_datasets() {
    let mut world = World::retaining(
        "{released_by: [b]}\nretention_by_dataset:\n- {where: set=all, retention: {released_by: [a]}}",
    );
    let p = world.join("p");
    world.offer_with(p, 1, "x", fixed::DEFAULT_RETENTION, 0);
    assert_eq!(awaited(&world), [("a".to_owned(), 1)]);
    world.leave(p);
    assert_eq!(world.core.exchange.retention.len(), 2, "its schema keeps them");
}

#[test]
fn names_are_numbered_for_each_client_and_what_nobody_has_is_forgotten() {
    let mut world = World::with(|config| {
        config.limits.consumers_per_client = 2;
        config.limits.consumers = 3;
    });
    let (p, q) = (world.join("p"), world.join("q"));
    number(&mut world, p, 1, &["b", "a", "b"]);
    number(&mut world, p, 2, &["b"]);
    number(&mut world, p, 3, &["a", "b"]);
    number(&mut world, p, 4, &["c"]);
    number(&mut world, p, 5, &[]);
    number(&mut world, p, 6, &["no name"]);
    offer(&mut world, p, 7, "x", 2);
    assert_eq!(
        world.heard(p),
        [
            "1: done 0",
            "2: done 1",
            "3: done 0",
            "4: LimitExceeded a client may name 2 sets",
            "5: InvalidArgument released_by names no requirement",
            "6: InvalidArgument ASCII letters, digits and ._+:-/ are allowed, and the first must be a letter or digit",
            "7: InvalidArgument this client has named no consumer under the number 2",
        ]
    );
    offer(&mut world, p, 8, "y", 1);
    world.leave(p);
    assert_eq!(world.core.exchange.retention.len(), 1, "an object waits for b");
    number(&mut world, q, 1, &["c"]);
    number(&mut world, q, 2, &["d"]);
    let r = world.join("r");
    number(&mut world, r, 1, &["e"]);
    assert_eq!(world.heard(q), ["1: done 0", "2: done 1"]);
    assert_eq!(world.heard(r), ["1: LimitExceeded the pool keeps 3 sets of names"]);
    world.withdraw(r, 2, "y", None, false);
    world.leave(q);
    assert_eq!(world.core.exchange.retention.len(), 0);
}

#[test]
fn who_waits_for_memory_is_told_whom_objects_wait_for() {
    let mut world = World::with(|config| config.budget_bytes = 8192);
    let p = world.join("p");
    number(&mut world, p, 1, &["archive"]);
    world.stage_or_offer(p, 2, None, "x", &"x".repeat(3000), (fixed::BY_CONSUMERS, 0));
    world.lease(p, 3, 8000, Some(1));
    world.pass(1);
    let heard = world.heard(p);
    assert!(heard[2].contains("wait for \"archive\""), "{heard:?}");
}

/// The names that objects wait for, with the number and the bytes of these objects, by a new count.
fn counted_anew(world: &World) -> Vec<(String, u64, u64)> {
    let (objects, retention) = (&world.core.exchange.objects, &world.core.exchange.retention);
    let mut sums: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for (_, object) in objects.table.iter().filter(|(_, object)| object.is_visible()) {
        if let RetainedUntil::Awaited { consumers, absent } = object.until {
            for name in retention.names_of(consumers, absent) {
                let sum = sums.entry(name).or_default();
                *sum = (sum.0 + 1, sum.1 + object.length);
            }
        }
    }
    let all = sums.into_iter();
    all.map(|(name, (objects, bytes))| (name, objects, bytes)).collect()
}

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

#[derive(Clone, Debug)]
enum Step {
    Number(u8),
    Offer { name: char, bytes: usize, number: u32 },
    Stage { name: char, bytes: usize, number: u32 },
    Seal,
    Come { name: usize, selector: usize },
    Go(usize),
    Withdraw(char),
    Leave,
    Pass,
}

fn step() -> impl Strategy<Value = Step> {
    let offer = || (proptest::char::range('a', 'f'), 0usize..9, 0u32..4);
    prop_oneof![
        2 => (1u8..16).prop_map(Step::Number),
        6 => offer().prop_map(|(name, bytes, number)| Step::Offer { name, bytes, number }),
        2 => offer().prop_map(|(name, bytes, number)| Step::Stage { name, bytes, number }),
        1 => Just(Step::Seal),
        2 => (0..NAMES.len(), 0usize..3).prop_map(|(name, selector)| Step::Come { name, selector }),
        2 => (0..NAMES.len()).prop_map(Step::Go),
        2 => proptest::char::range('a', 'f').prop_map(Step::Withdraw),
        1 => Just(Step::Leave),
        1 => Just(Step::Pass),
    ]
}

proptest! {
    #[test]
    fn sums_of_waiting_objects_are_what_a_count_gives(
        steps in proptest::collection::vec(step(), 1..80),
        is_in_parts: bool,
    ) {
        let mut world = World::with(|config| {
            if is_in_parts {
                (config.changed_at_once, config.leaving_at_once) = (2, 1);
            }
        });
        let c = world.join("c");
        let mut p = world.join("p");
        let mut bundle = 0;
        for (request, step) in (10..).zip(steps) {
            match step {
                Step::Number(bits) => {
                    let names: Vec<_> = (0..NAMES.len()).filter(|at| bits & 1 << at != 0).map(|at| NAMES[at]).collect();
                    number(&mut world, p, request, &names);
                }
                Step::Offer { name, bytes, number } => {
                    let payload = "x".repeat(bytes);
                    world.stage_or_offer(p, request, None, &name.to_string(), &payload, (fixed::BY_CONSUMERS, number));
                }
                Step::Stage { name, bytes, number } => {
                    if bundle == 0 {
                        bundle = 1_000_000 + request;
                        world.open(p, bundle, "", 0);
                    }
                    let payload = "x".repeat(bytes);
                    let retention = (fixed::BY_CONSUMERS, number);
                    world.stage_for(p, request, bundle, &name.to_string(), &payload, retention);
                }
                Step::Seal => world.ask(p, request, Request::Seal(std::mem::take(&mut bundle))),
                Step::Come { name, selector } => {
                    world.require_named(c, request, NAMES[name], ["", "name=a/b", "name=none"][selector], 0);
                }
                Step::Go(name) => world.retract(c, request, NAMES[name]),
                Step::Withdraw(name) => world.withdraw(p, request, &name.to_string(), Some(0), true),
                Step::Leave => {
                    world.leave(p);
                    (p, bundle) = (world.join("p"), 0);
                }
                Step::Pass => world.pass(1),
            }
            let stat = world.core.stat().awaited.into_iter();
            let sums: Vec<_> = stat.map(|one| (one.name, one.objects, one.bytes)).collect();
            prop_assert_eq!(sums, counted_anew(&world));
        }
        world.leave(p);
        for (number, name) in (1000..).zip(NAMES) {
            world.retract(c, number, name);
        }
        for (number, name) in (2000..).zip('a'..='f') {
            world.withdraw(c, number, &name.to_string(), Some(0), true);
        }
        while world.core.is_behind() {
            world.pass(0);
        }
        prop_assert_eq!(world.core.exchange.retention.len(), 0);
        prop_assert!(world.core.exchange.retention.has_no_names());
    }
}

#[test]
fn a_stat_reads_the_names_that_it_shows_and_no_others() {
    let reads = |sets: u32| {
        let mut world = World::with(|config| config.limits.consumers_per_client = 1000);
        let p = world.join("p");
        for set in 0..sets {
            let names: Vec<String> = (0..16).map(|name| format!("n{set:03}.{name:02}")).collect();
            number(&mut world, p, 1, &names.iter().map(String::as_str).collect::<Vec<_>>());
        }
        offer(&mut world, p, 2, "x", 7);
        let before = world.core.exchange.retention.reads.get();
        assert_eq!(awaited(&world).len(), 16);
        world.core.exchange.retention.reads.get() - before
    };
    assert_eq!((reads(10), reads(900)), (16, 16));
}
