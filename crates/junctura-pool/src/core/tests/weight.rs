//! Limits of the server's own memory besides payloads.

use junctura_wire::Request;
use junctura_wire::body::{ArchivedBody, ArchivedObject, events};

use super::World;

fn records(world: &World) -> u64 {
    world.core.stat().memory.record_bytes
}

#[test]
fn offers_wait_for_room_for_their_attributes() {
    let mut world = World::with(|config| config.record_budget_bytes = Some(2000));
    let p = world.join_with_offer_timeout("p", 10);
    let mut number = 0;
    let offered = loop {
        number += 1;
        world.offer(p, number, &format!("o{number}"), "", 0);
        if world.heard(p).is_empty() {
            break number - 1;
        }
    };
    assert!((2..10).contains(&offered), "{offered}");
    assert!(records(&world) <= 2000);
    world.withdraw(p, 100, "o1", None, false);
    assert_eq!(
        world.heard(p),
        ["100: done 1".to_owned(), format!("{number}: offered v{number}")]
    );
    world.offer(p, 101, "late", "", 0);
    world.pass(10);
    let heard = world.heard(p);
    assert!(
        heard[0].starts_with("101: PoolFull") && heard[0].contains("attributes"),
        "{heard:?}"
    );
}

#[test]
fn keys_that_are_gone_make_room_for_objects() {
    let mut world = World::with(|config| config.record_budget_bytes = Some(2000));
    let p = world.join("p");
    for number in 1..=50 {
        world.offer(p, number, &format!("o{number}"), "", 0);
        world.withdraw(p, number + 100, &format!("o{number}"), None, false);
        assert_eq!(world.heard(p).len(), 2);
    }
    let stat = world.core.stat();
    assert!(
        stat.objects.tombstones > 0 && stat.memory.record_bytes <= 2000 + 300,
        "{stat:?}"
    );
    world.pass(600_000);
    assert_eq!(records(&world), 0);
}

/// A requirement, a client that follows it, and a producer.
fn with_archiver(world: &mut World) -> (u32, u32) {
    let (p, a) = (world.join("p"), world.join("a"));
    world.require_named(a, 1, "archive", "", 0);
    world.follow(a, 2, |follow| follow.requirement_name = Some("archive".into()));
    world.heard(a);
    (p, a)
}

/// The archiver reports these objects as archived in a place, and gets its answer.
fn archive(world: &mut World, archiver: u32, sequences: impl IntoIterator<Item = u64>, place: &str) {
    let object = |sequence| ArchivedObject {
        sequence,
        location: place.into(),
    };
    let objects: Vec<_> = sequences.into_iter().map(object).collect();
    let done = format!("9: done {}", objects.len());
    let claim = ArchivedBody {
        requirement: "archive".into(),
        objects,
        failure: None,
    };
    world.ask(archiver, 9, Request::Archived(claim));
    assert!(world.heard(archiver).contains(&done));
}

#[test]
fn a_place_weighs_once_as_long_as_an_object_or_a_tombstone_lies_there() {
    let mut world = World::new();
    let (p, a) = with_archiver(&mut world);
    for number in 1..=3 {
        world.offer(p, number, &format!("o{number}"), "", 0);
    }
    let before = records(&world);
    let place = "x".repeat(1000);
    archive(&mut world, a, [1, 2], &place);
    let one = records(&world) - before;
    assert!((1000..1100).contains(&one), "{one}");
    archive(&mut world, a, [3], &place);
    archive(&mut world, a, [1, 2, 3], &place);
    assert_eq!(records(&world), before + one);
    // Another place becomes the newest instead of the first, which two objects still refer to.
    let other = "y".repeat(1000);
    archive(&mut world, a, [3], &other);
    assert_eq!(records(&world), before + 2 * one);
    archive(&mut world, a, [1, 2], &other[..10]);
    assert_eq!(records(&world), before + 2 * one - 990);
    for number in 1..=3 {
        world.release(a, number);
        world.withdraw(p, 10 + number, &format!("o{number}"), None, false);
    }
    let of_tombstones = records(&world);
    world.pass(600_000);
    assert!(of_tombstones > 2 * one - 990 && records(&world) == 0);
}

#[test]
fn places_take_no_more_than_records_may_and_what_has_no_room_is_archived_without() {
    const BUDGET: u64 = 100_000;
    let mut world = World::with(|config| config.record_budget_bytes = Some(BUDGET));
    let (p, a) = with_archiver(&mut world);
    world.subscribe(p, 90, "", events::ARCHIVED);
    let objects = 20;
    for number in 1..=objects {
        world.offer(p, number, &format!("o{number}"), "", 0);
    }
    world.heard(p);
    for number in 1..=objects {
        archive(&mut world, a, [number], &format!("{number}{}", "x".repeat(20_000)));
        assert!(records(&world) <= BUDGET);
    }
    assert!(records(&world) > BUDGET - 20_100);
    assert_eq!(world.heard(p).len() as u64, objects, "each is archived");
    // One that is longer than a record may be is not kept, whatever room there is.
    let kept = records(&world);
    archive(&mut world, a, [1], &"x".repeat(1 << 20));
    assert!(records(&world) < kept);
    for number in 1..=objects {
        world.release(a, number);
        world.withdraw(p, 100 + number, &format!("o{number}"), None, false);
    }
    world.pass(600_000);
    assert_eq!(records(&world), 0);
}

#[test]
fn an_offer_that_places_leave_no_room_for_goes_on_when_one_is_forgotten() {
    let mut world = World::with(|config| config.record_budget_bytes = Some(4000));
    let (p, a) = with_archiver(&mut world);
    world.offer(p, 1, "o1", "", 0);
    archive(&mut world, a, [1], &"x".repeat(3000));
    world.heard(p);
    world.offer(p, 2, "o2", "", 0);
    world.offer(p, 3, "o3", "", 0);
    world.offer(p, 4, "o4", "", 0);
    let before = world.heard(p).len();
    assert!(before < 3, "one waits");
    archive(&mut world, a, [1], "short");
    assert_eq!(world.heard(p).len(), 3 - before);
}

#[test]
fn members_of_bundles_weigh_and_the_last_is_refused_in_place_of_waiting() {
    let mut world = World::with(|config| config.record_budget_bytes = Some(2000));
    let p = world.join("p");
    world.open(p, 1, "b", 0);
    world.heard(p);
    for number in 2..20 {
        world.stage(p, number, 1, &format!("o{number}"), "");
    }
    let heard = world.heard(p);
    assert!(
        heard.last().is_some_and(|line| line.starts_with("19: PoolFull")),
        "{heard:?}"
    );
    world.ask(p, 30, Request::Abort(1));
    assert_eq!(records(&world), 0);
}

#[test]
fn nothing_weighs_when_everything_is_gone() {
    let mut world = World::with(|config| config.tombstone_age = std::time::Duration::from_millis(5));
    let (p, c) = (world.join("p"), world.join("c"));
    for round in 0..20_u64 {
        let name = format!("o{}", round % 7);
        world.require(c, 10 * round + 1, "", round % 2 == 0);
        world.require_named(c, 10 * round + 2, &format!("r{round}"), "name=o1", 5);
        world.offer(p, 10 * round + 3, &name, "x", (round % 3) as u32);
        world.demand(
            c,
            10 * round + 4,
            &format!("name=\"{name}\" or name~\"^n{round}$\""),
            None,
        );
        world.demand(c, 10 * round + 5, "name~\"^never$\"", Some(3));
        world.follow(c, 10 * round + 6, |_| {});
        world.subscribe(c, 10 * round + 7, "", events::ALL);
        world.open(p, 10 * round + 8, &format!("b{round}"), 0);
        world.stage(p, 10 * round + 9, 10 * round + 8, &format!("m{round}"), "y");
        if round % 4 == 0 {
            world.ask(p, 10 * round + 10, Request::Seal(10 * round + 8));
        }
        world.pass(1);
    }
    let interests = world.core.stat().interests;
    assert!(records(&world) > 0 && interests.selector_bytes > 0 && interests.owed > 0);
    world.leave(c);
    world.join("q");
    world.ask(
        p,
        900,
        Request::WithdrawAll(junctura_wire::body::WithdrawRequest {
            target: junctura_wire::body::TargetBody::selector(""),
            timeout_ms: None,
            force: true,
        }),
    );
    world.leave(p);
    world.pass(600_000);
    let stat = world.core.stat();
    let left = (
        stat.memory.record_bytes,
        stat.interests.selector_bytes,
        stat.interests.owed,
    );
    assert_eq!((left, stat.memory.used_bytes), ((0, 0, 0), 0), "{stat:?}");
}

#[test]
fn a_client_may_ask_so_much_and_others_as_before() {
    let mut world = World::with(|config| config.limits.selector_bytes_per_client = 20_000);
    let (greedy, other) = (world.join("greedy"), world.join("other"));
    for number in 1..=100 {
        world.demand(greedy, number, &format!("name={number}{}", "x".repeat(900)), None);
    }
    let refused = world.heard(greedy);
    assert!((50..99).contains(&refused.len()), "{}", refused.len());
    assert!(
        refused[0].contains("LimitExceeded standing selectors"),
        "{}",
        refused[0]
    );
    world.ask(greedy, 200, Request::Cancel(1));
    world.require(greedy, 201, "name=a", false);
    world.follow(other, 1, |_| {});
    let heard = (world.heard(greedy), world.heard(other));
    assert_eq!(
        (heard.0[1].as_str(), heard.1[0].as_str()),
        ("201: began v0", "1: began v0")
    );
    for number in 1..=60 {
        world.require_named(other, number + 1, &format!("r{number}"), "name=a", 0);
    }
    let refused = world.heard(other);
    assert!(
        refused
            .last()
            .is_some_and(|line| line.contains("requirements with a name")),
        "{refused:?}"
    );
}

#[test]
fn a_client_may_make_so_many_requirements() {
    let mut world = World::with(|config| {
        config.limits.requirements_per_client = 20;
        config.limits.requirements = 30;
    });
    let (one, two, three) = (world.join("one"), world.join("two"), world.join("three"));
    let mut made = |client, from: u64, count: u64| {
        for number in from..from + count {
            world.require(client, number, "name=a", false);
        }
        let heard = world.heard(client);
        let refused: Vec<String> = heard
            .iter()
            .filter(|line| !line.ends_with("began v0"))
            .cloned()
            .collect();
        (heard.len() - refused.len(), refused)
    };
    let (count, refused) = made(one, 1, 22);
    assert_eq!((count, refused.len()), (20, 2));
    assert!(
        refused[0].contains("LimitExceeded a client may have 20 without a name"),
        "{refused:?}"
    );
    // All clients may have 30 together; each client may always have 16.
    let (count, refused) = made(two, 1, 20);
    assert_eq!((count, refused.len()), (16, 4));
    assert!(
        refused[0].contains("all clients have 30 together already"),
        "{refused:?}"
    );
    assert_eq!(made(three, 1, 20).0, 16);
    // An ended one counts no longer.
    world.ask(one, 100, Request::Stop(1));
    world.leave(two);
    world.leave(three);
    world.heard(one);
    world.require(one, 101, "name=a", false);
    world.require(one, 102, "name=a", false);
    let heard = world.heard(one);
    assert!(
        heard[0].ends_with("began v0") && heard[1].contains("LimitExceeded"),
        "{heard:?}"
    );
}

#[test]
fn lists_weigh_until_they_are_over_and_follows_until_they_are_live() {
    let mut world = World::with(|config| config.limits.selector_bytes_per_client = 10_000);
    let (p, c) = (world.join("p"), world.join("c"));
    for number in 1..=1100 {
        world.offer(p, number, &format!("o{number}"), "", 0);
    }
    let weight = |world: &World| world.core.stat().interests.selector_bytes;
    world.list(c, 1, "", "");
    world.list(c, 2, "", "");
    assert!(weight(&world) > 8800, "{}", weight(&world));
    world.heard(c);
    world.follow(c, 3, |follow| follow.window = 1);
    assert!(world.heard(c)[0].starts_with("3: LimitExceeded standing selectors and lists"));
    for page in 4..8 {
        world.ask(c, page, Request::More(1));
    }
    world.ask(c, 5, Request::Stop(2));
    assert_eq!(weight(&world), 0);
    world.follow(c, 6, |follow| follow.window = 2000);
    while world.core.is_delivering() {
        world.pass(0);
    }
    assert!((1..4400).contains(&weight(&world)), "{}", weight(&world));
    world.follow(c, 7, |follow| follow.window = 1);
    assert!(weight(&world) > 4400, "{}", weight(&world));
    world.leave(c);
    assert_eq!(weight(&world), 0);
}

#[test]
fn all_together_may_ask_so_much_and_who_asks_little_goes_on() {
    let mut world = World::with(|config| config.limits.selector_bytes = 2 << 20);
    let (greedy, other) = (world.join("greedy"), world.join("other"));
    let long = (0..60)
        .map(|n| format!("{n}{}", "x".repeat(900)))
        .collect::<Vec<_>>()
        .join("/");
    for number in 1..=100 {
        world.demand(greedy, number, &format!("name={long}"), None);
    }
    assert!(world.heard(greedy)[0].contains("of all clients"));
    world.require(other, 1, "name=a", false);
    assert_eq!(world.heard(other), ["1: began v0"]);
}

#[test]
fn who_has_much_unread_hears_no_more_when_all_have() {
    let mut world = World::with(|config| config.limits.unread_bytes = 3 << 20);
    let (p, c) = (world.join("p"), world.join("c"));
    world.subscribe(c, 1, "", events::ALL);
    world.heard(c);
    (world.fx.backlog_bytes, world.fx.backlog_bytes_of_all) = (1000, 4 << 20);
    world.offer(p, 1, "a", "", 0);
    assert_eq!(world.heard(c), ["1: offered a v1 by p"]);
    world.fx.backlog_bytes = 2 << 20;
    world.offer(p, 2, "b", "", 0);
    assert!(world.heard(c)[0].starts_with("1: LimitExceeded clients have not read"));
}

#[test]
fn requirements_may_be_owed_so_much_together() {
    let mut world = World::with(|config| config.limits.owed = 5);
    let (p, c) = (world.join("p"), world.join("c"));
    for number in 1..=3 {
        world.offer(p, number, &format!("o{number}"), "", 0);
    }
    world.require(c, 1, "", false);
    world.require(c, 2, "", false);
    let heard = world.heard(c);
    assert_eq!(heard[0], "1: began v3");
    assert!(heard[1].starts_with("2: LimitExceeded it would be owed 3"), "{heard:?}");
    world.ask(c, 3, Request::Stop(1));
    world.require(c, 4, "name=o1/o2/o3/o4/o5/o6", false);
    for number in 4..=6 {
        world.offer(p, number, &format!("o{number}"), "", 0);
    }
    assert_eq!(world.heard(p).last().unwrap(), "5: offered v5");
    // Objects that no requirement is owed are accepted all the same, and waiting ones are not lost.
    let q = world.join("q");
    world.offer(q, 1, "other", "", 0);
    assert_eq!(world.heard(q), ["1: offered v6"]);
    world.withdraw(q, 2, "o1", None, true);
    assert_eq!(world.heard(p), ["6: offered v7"]);
    assert_eq!(world.core.stat().interests.owed, 5);
}

#[test]
fn offers_that_wait_may_take_so_much() {
    let mut world = World::with(|config| {
        config.budget_bytes = 4096;
        config.limits.waiting_offer_bytes_per_client = 7000;
    });
    let p = world.join("p");
    let payload = "x".repeat(3000);
    for number in 1..=4 {
        world.offer(p, number, &format!("o{number}"), &payload, 0);
    }
    let heard = world.heard(p);
    assert!(
        heard.len() == 2 && heard[1].starts_with("4: PoolFull offers of this client"),
        "{heard:?}"
    );
    world.withdraw(p, 5, "o1", None, false);
    world.offer(p, 6, "o6", &payload, 0);
    assert_eq!(world.heard(p).len(), 2);
}

#[test]
fn offers_of_all_clients_that_wait_may_take_so_much_and_one_with_little_waits_still() {
    let mut world = World::with(|config| {
        config.budget_bytes = 4096;
        config.limits.waiting_offer_bytes = 3_000_000;
    });
    let clients = ["p", "q", "r"].map(|name| world.join(name));
    let [p, q, r] = clients;
    let payload = "x".repeat(3000);
    let waiting = |world: &World| world.core.exchange.asked.clients.waiting_offer_bytes;
    let mut refused = clients.map(|_| 0);
    for number in 1..=900 {
        for (at, client) in [p, q].into_iter().enumerate() {
            world.offer(client, number, &format!("o{client}-{number}"), &payload, 0);
            let heard = world.heard(client);
            let is_full = |line: &&String| line.contains("PoolFull offers of all clients");
            refused[at] += heard.iter().filter(is_full).count();
        }
    }
    assert!(refused[0] > 0 && refused[1] > 0, "{refused:?}");
    assert!((4_100_000..4_300_000).contains(&waiting(&world)));
    world.offer(r, 1, "late", &payload, 0);
    assert_eq!(world.heard(r), [""; 0], "it waits");
    for client in [q, r] {
        world.leave(client);
    }
    let of_one = waiting(&world);
    assert!((2_000_000..2_200_000).contains(&of_one));
    // One after the other is taken up, and weighs no more.
    world.withdraw(p, 1000, &format!("o{p}-1"), None, true);
    assert!(waiting(&world) < of_one);
    world.leave(p);
    assert_eq!(waiting(&world), 0);
}

#[test]
fn who_keeps_empty_memory_that_others_wait_for_is_disconnected() {
    let mut world = World::with(|config| {
        config.budget_bytes = 4 << 20;
        config.stuck_after = std::time::Duration::from_secs(2);
    });
    let (hoarder, p) = (world.join("hoarder"), world.join("p"));
    for number in 1..=8 {
        world.lease(hoarder, number, 1 << 20, None);
    }
    world.pass(60_000);
    world.heard(hoarder);
    world.lease(p, 1, 1 << 20, None);
    assert!(world.heard(hoarder).iter().any(|line| line.starts_with("0: recall")));
    world.pass(1999);
    assert!(world.heard(p).is_empty() && world.heard(hoarder).is_empty());
    world.pass(1);
    assert!(world.heard(hoarder).contains(&"disconnected".to_owned()));
    assert!(world.heard(p)[0].starts_with("1: leased"));
}

#[test]
fn who_fills_its_memory_or_gives_some_back_is_not() {
    let mut world = World::with(|config| {
        config.budget_bytes = 4 << 20;
        config.stuck_after = std::time::Duration::from_secs(2);
    });
    let (busy, p) = (world.join("busy"), world.join("p"));
    for number in 1..=4 {
        world.lease(busy, number, 1 << 20, None);
    }
    world.lease(p, 1, 1 << 20, Some(6500));
    for number in 0..3 {
        world.pass(1500);
        world.offer_slot(busy, 10 + number, &format!("o{number}"), 1 + number as u32, 0, 1 << 20);
    }
    assert!(!world.heard(busy).contains(&"disconnected".to_owned()));
    world.pass(1500);
    world.offer_slot(busy, 20, "last", 4, 0, 1 << 20);
    world.pass(60_000);
    assert!(!world.heard(busy).contains(&"disconnected".to_owned()));
    assert!(world.heard(p)[0].starts_with("1: PoolFull"));
}

#[test]
fn a_key_that_makes_room_for_its_own_successor_is_forgotten_once() {
    for (budget, others) in (0..8).flat_map(|others| (1000..3000).step_by(50).map(move |budget| (budget, others))) {
        let mut world = World::with(|config| config.record_budget_bytes = Some(budget));
        let p = world.join_with_offer_timeout("p", 10);
        world.offer(p, 1, "o1", "", 0);
        world.withdraw(p, 2, "o1", None, false);
        for number in 0..others {
            world.offer(p, 3 + number, &format!("other{number}"), "", 0);
        }
        world.heard(p);
        world.offer(p, 50, "o1", "", 0);
        world.pass(10);
        let heard = world.heard(p);
        let is_answered = |line: &String| line.starts_with("50: offered") || line.starts_with("50: PoolFull");
        assert!(heard.iter().any(is_answered), "{others} others: {heard:?}");
        assert!(records(&world) <= budget);
    }
}

#[test]
fn what_is_refused_for_its_selector_leaves_nothing_behind() {
    let mut world = World::with(|config| config.limits.unindexed_interests = 0);
    let (p, c) = (world.join("p"), world.join("c"));
    world.offer(p, 1, "o1", "", 0);
    world.follow(c, 1, |follow| follow.selector = "name~\"o\"".into());
    world.subscribe(c, 2, "name~\"o\"", events::ALL);
    world.demand(c, 3, "name~\"never\"", None);
    world.require(c, 4, "name~\"o\"", false);
    let refused = world.heard(c);
    let is_refused = |line: &String| line.contains("LimitExceeded 0 selectors that no index helps with");
    assert!(refused.len() == 4 && refused.iter().all(is_refused), "{refused:?}");
    world.subscribe(c, 5, "name=o1", events::WITHDRAWN);
    world.withdraw(p, 2, "o1", None, false);
    assert_eq!(world.heard(c), ["5: began v1", "5: withdrawn o1 v1 by p"]);
    let stat = world.core.stat();
    assert_eq!((stat.objects.kept, stat.interests.standing), (0, 1), "{stat:?}");
    world.leave(c);
    assert_eq!(world.core.stat().interests.selector_bytes, 0);
}

#[test]
fn an_offer_that_waits_for_what_is_owed_goes_on_when_a_requirement_ends_that_is_owed_nothing() {
    let mut world = World::with(|config| config.limits.owed = 1);
    let (p, c) = (world.join("p"), world.join("c"));
    world.require(c, 1, "name=a", false);
    world.require(c, 2, "name=a", false);
    world.offer(p, 1, "a", "", 0);
    assert!(world.heard(p).is_empty());
    world.ask(c, 3, Request::Stop(2));
    assert_eq!(world.heard(p), ["1: offered v1"]);
}

/// A pool of 4 MiB in which `busy` has one segment, which once had a payload, and `p` waits for all of the memory.
fn one_waits_for_what_another_fills() -> (World, u32, u32) {
    let mut world = World::with(|config| {
        config.budget_bytes = 4 << 20;
        config.stuck_after = std::time::Duration::from_secs(2);
    });
    let (busy, p) = (world.join("busy"), world.join("p"));
    world.lease(busy, 1, 1 << 20, None);
    world.lease(p, 1, 4 << 20, None);
    assert!(world.heard(busy).iter().any(|line| line.starts_with("0: recall")));
    (world, busy, p)
}

#[test]
fn who_computes_what_it_fills_its_memory_with_has_ten_times_as_long() {
    let (mut world, busy, p) = one_waits_for_what_another_fills();
    world.pass(19_999);
    assert!(world.heard(p).is_empty() && world.heard(busy).is_empty());
    world.offer_slot(busy, 2, "o", 1, 0, 1 << 20);
    assert_eq!(world.heard(busy), ["2: offered v1"]);
    world.pass(20_000);
    assert!(world.heard(busy).is_empty());
}

#[test]
fn who_is_silent_for_longer_is_disconnected() {
    let (mut world, busy, p) = one_waits_for_what_another_fills();
    world.pass(20_000);
    assert!(world.heard(busy).contains(&"disconnected".to_owned()));
    assert!(world.heard(p)[0].starts_with("1: leased"));
}

#[test]
fn who_asks_for_other_things_has_read_that_its_memory_is_waited_for() {
    let (mut world, busy, _) = one_waits_for_what_another_fills();
    world.demand(busy, 2, "name=none", Some(0));
    world.pass(5000);
    world.demand(busy, 3, "name=none", Some(0));
    world.heard(busy);
    world.pass(1999);
    assert!(world.heard(busy).is_empty());
    world.pass(1);
    assert!(world.heard(busy).contains(&"disconnected".to_owned()));
}

#[test]
fn who_waits_for_room_for_attributes_takes_no_payload_out_of_memory() {
    let mut world = World::with(|config| {
        config.record_budget_bytes = Some(2000);
        config.stuck_after = std::time::Duration::from_secs(2);
        config.spill = Some(crate::SpillConfig {
            directory: "/scratch".into(),
            limit_bytes: 1 << 20,
        });
    });
    let (p, c, busy) = (world.join("p"), world.join("c"), world.join("busy"));
    world.lease(busy, 1, 1 << 20, None);
    world.require_with(c, 1, "name=o1", |require| require.breaks_on_full = true);
    world.require(c, 2, "name=o2", false);
    for number in 1..=8 {
        world.offer(p, number, &format!("o{number}"), "payload", 0);
    }
    let stat = world.core.stat();
    assert!(stat.objects.visible < 8 && stat.spill.is_some_and(|spill| spill.underway == 0));
    world.heard(c);
    world.heard(busy);
    world.pass(60_000);
    assert_eq!(world.core.stat().totals.broken, 0);
    assert!(world.heard(c).is_empty() && world.heard(busy).is_empty());
}

#[test]
fn of_those_that_are_stuck_the_one_that_is_owed_most_is_broken_when_too_much_is_owed() {
    let mut world = World::with(|config| config.limits.owed = 5);
    let (p, c) = (world.join("p"), world.join("c"));
    world.require_named(c, 1, "abandoned", "name=o1/o2/o3/o4", 0);
    world.require_with(c, 2, "name=big", |require| require.breaks_on_full = true);
    world.offer(p, 1, "big", "much payload", 0);
    world.offer(p, 2, "big", "more payload", 0);
    for number in 1..=4 {
        world.offer(p, 2 + number, &format!("o{number}"), "", 0);
    }
    assert_eq!(world.heard(p).len(), 5);
    world.pass(60_000);
    assert_eq!(world.heard(p), ["6: offered v6"]);
    let broken = world.core.stat().broken_requirements;
    assert_eq!((broken.len(), broken[0].name.as_deref()), (1, Some("abandoned")));
    assert!(broken[0].why.contains("to be owed less"), "{}", broken[0].why);
}
