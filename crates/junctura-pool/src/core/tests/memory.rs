//! Leases, slots, payloads inside messages, and what happens when memory is short.

use junctura_wire::Request;
use junctura_wire::body::DrainRequest;

use super::World;

#[test]
fn a_slot_is_free_again_when_its_object_is_gone_and_nobody_holds_it() {
    let mut world = World::new();
    let (p, c) = (world.join("p"), world.join("c"));
    world.lease(p, 1, 10_000, None);
    world.offer_slot(p, 2, "a", 1, 0, 10_000);
    world.offer_slot(p, 3, "b", 1, 0, 10_000);
    world.offer_slot(c, 4, "b", 1, 1, 10_000);
    world.demand(c, 5, "name=a", None);
    world.withdraw(p, 6, "a", None, false);
    assert_eq!(
        world.heard(p),
        [
            "1: leased 1",
            "2: offered v1",
            "3: Conflict an object is in the slot",
            "6: done 1"
        ]
    );
    assert_eq!(
        world.heard(c),
        ["4: Denied the client does not lease it", "0: mapped 1", "5: got a v1 "]
    );
    world.release(c, 1);
    assert_eq!(world.heard(p), ["0: freed 1"]);
    world.leave(p);
    assert_eq!(world.heard(c), ["0: dropped 1"]);
    world.leave(c);
    world.assert_empty();
}

#[test]
fn a_lease_waits_for_memory_and_asks_others_for_what_they_do_not_use() {
    let mut world = World::with(|config| config.budget_bytes = 1 << 20);
    let (p, q) = (world.join("p"), world.join("q"));
    world.lease(p, 1, 900_000, None);
    world.lease(q, 1, 900_000, Some(5));
    assert_eq!(world.heard(p), ["1: leased 1", "0: recall 1"]);
    world.pass(5);
    let heard = world.heard(q);
    assert!(
        heard[0].starts_with("1: PoolFull") && heard[0].contains("p (pid 1 on h)"),
        "{heard:?}"
    );
    world.lease(q, 2, 900_000, None);
    world.ask(p, 2, junctura_wire::Request::Return(1));
    assert_eq!(world.heard(q), ["2: leased 2"]);
    world.lease(q, 3, 2_000_000, None);
    assert!(world.heard(q)[0].starts_with("3: TooLarge"));
}

#[test]
fn smaller_leases_pass_one_that_does_not_fit_until_they_have_taken_as_much() {
    let mut world = World::with(|config| config.budget_bytes = 1 << 20);
    let (p, q, r) = (world.join("p"), world.join("q"), world.join("r"));
    world.lease(p, 1, 200_000, None);
    world.lease(q, 1, 900_000, None);
    assert!(world.heard(q).is_empty());
    let mut segments = 2..;
    // Each takes twelve kibibytes at least.
    let mut give = |world: &mut World, request: u64, timeout: Option<u64>| {
        world.lease(r, request, 10_000, timeout);
        let heard = world.heard(r);
        let is_leased = heard.iter().any(|one| one.contains(": leased"));
        if is_leased {
            world.ask(r, request, Request::Return(segments.next().unwrap()));
        }
        is_leased
    };
    let passed = (2..900)
        .take_while(|&request| give(&mut world, request, Some(0)))
        .count();
    assert!((1..=900_000 / 12_288 + 8).contains(&passed), "{passed}");
    // From now on it is alone, for ten seconds.
    world.lease(r, 1, 10_000, None);
    assert!(!give(&mut world, 1000, Some(0)));
    world.pass(9_999);
    assert!(world.heard(r).is_empty());
    world.pass(1);
    let heard = world.heard(r);
    assert!(heard[0].starts_with("1: leased"), "{heard:?}");
    let newest = heard[0].rsplit(' ').next().unwrap().parse().unwrap();
    world.ask(r, 1001, Request::Return(newest));
    assert!(world.heard(q).is_empty());
    world.ask(p, 2, Request::Return(1));
    assert!(world.heard(q)[0].starts_with("1: leased"));
}

#[test]
fn offers_wait_for_memory_in_their_order_and_releases_go_on() {
    let mut world = World::with(|config| config.budget_bytes = 4096);
    let p = world.join("p");
    let payload = "x".repeat(3000);
    world.offer(p, 1, "a", &payload, 1);
    world.offer(p, 2, "b", &payload, 0);
    world.offer(p, 3, "c", "", 0);
    assert_eq!(world.heard(p), ["1: offered v1"]);
    world.demand(p, 4, "name=a", None);
    world.heard(p);
    world.release(p, 1);
    assert_eq!(world.heard(p), ["2: offered v2", "3: offered v3"]);
}

#[test]
fn an_offer_that_waited_too_long_fails_and_those_behind_it_go_on() {
    let mut world = World::with(|config| config.budget_bytes = 4096);
    let p = world.join_with_offer_timeout("p", 10);
    let payload = "x".repeat(3000);
    world.offer(p, 1, "a", &payload, 0);
    world.offer(p, 2, "b", &payload, 0);
    world.offer(p, 3, "c", "", 0);
    world.heard(p);
    world.pass(10);
    let heard = world.heard(p);
    assert!(heard[0].starts_with("2: PoolFull"), "{heard:?}");
    assert_eq!(heard[1], "3: offered v2");
}

#[test]
fn a_sync_is_answered_behind_the_offers_before_it() {
    let mut world = World::with(|config| config.budget_bytes = 4096);
    let (p, q) = (world.join("p"), world.join("q"));
    let payload = "x".repeat(3000);
    world.ask(p, 1, Request::Sync);
    world.offer(p, 2, "a", &payload, 1);
    world.ask(p, 3, Request::Sync);
    assert_eq!(world.heard(p), ["1: done 0", "2: offered v1", "3: done 0"]);
    world.offer(p, 4, "b", &payload, 0);
    world.ask(p, 5, Request::Sync);
    world.ask(p, 6, Request::Sync);
    world.offer(p, 7, "c", "", 0);
    world.ask(p, 8, Request::Sync);
    // Others do not wait for them, and a cancelled request gets no later reply.
    world.ask(q, 1, Request::Sync);
    world.ask(p, 9, Request::Cancel(5));
    assert_eq!(world.heard(q), ["1: done 0"]);
    assert_eq!(world.heard(p), ["5: Interrupted cancelled by its client"]);
    world.withdraw(q, 2, "a", None, false);
    assert_eq!(
        world.heard(p),
        ["4: offered v2", "6: done 0", "7: offered v3", "8: done 0"]
    );
    world.leave(p);
    world.leave(q);
}

#[test]
fn a_sync_is_answered_when_the_offers_before_it_fail() {
    let mut world = World::with(|config| config.budget_bytes = 4096);
    let p = world.join_with_offer_timeout("p", 10);
    let payload = "x".repeat(3000);
    world.offer(p, 1, "a", &payload, 0);
    world.offer(p, 2, "b", &payload, 0);
    world.ask(p, 3, Request::Sync);
    world.pass(5);
    world.offer(p, 4, "c", &payload, 0);
    world.ask(p, 5, Request::Sync);
    world.heard(p);
    for [offer, sync] in [["2: PoolFull", "3: done 0"], ["4: PoolFull", "5: done 0"]] {
        world.pass(5);
        let heard = world.heard(p);
        assert!(
            heard.len() == 2 && heard[0].starts_with(offer) && heard[1] == sync,
            "{heard:?}"
        );
    }
    world.offer(p, 6, "b", &payload, 0);
    world.ask(p, 7, Request::Sync);
    world.ask(p, 8, Request::Drain(DrainRequest { timeout_ms: None }));
    let heard = world.heard(p);
    assert!(heard[0].starts_with("6: Closed"), "{heard:?}");
    assert_eq!(heard[1..], ["7: done 0", "8: done 0"]);
    world.ask(p, 9, Request::Sync);
    assert_eq!(world.heard(p), ["9: done 0"]);
}

#[test]
fn a_sync_that_waits_is_one_of_few_and_goes_with_its_client() {
    let mut world = World::with(|config| {
        config.budget_bytes = 4096;
        config.limits.requests_per_client = 1;
    });
    let (p, q) = (world.join("p"), world.join("q"));
    let payload = "x".repeat(3000);
    world.offer(q, 1, "a", &payload, 0);
    world.offer(p, 1, "b", &payload, 0);
    world.ask(p, 2, Request::Sync);
    world.ask(p, 3, Request::Sync);
    assert_eq!(
        world.heard(p),
        ["3: LimitExceeded a client may have at most 1 unanswered requests"]
    );
    world.leave(p);
    world.withdraw(q, 2, "a", None, false);
    assert!(world.heard(p).is_empty());
    world.leave(q);
    world.assert_empty();
}

#[test]
fn a_client_that_does_not_say_hello_is_sent_away() {
    let mut world = World::new();
    let stranger = world.core.join().unwrap();
    world.ask(stranger, 1, junctura_wire::Request::Stat);
    assert_eq!(
        world.heard(stranger),
        ["1: Protocol the first request is Hello", "disconnected"]
    );
    world.ask(stranger, 2, junctura_wire::Request::Stat);
    assert!(world.heard(stranger).is_empty());
}
