//! Requests for very many objects are done in parts, with the same result.

use junctura_wire::Request;
use junctura_wire::body::{TargetBody, WithdrawRequest, events};
use proptest::prelude::*;

use super::World;

/// More than two objects are too many for one event, and one is changed in each.
fn in_parts() -> World {
    World::with(|config| {
        config.changed_at_once = 2;
        config.leaving_at_once = 1;
    })
}

fn at_once() -> World {
    World::with(|config| config.changed_at_once = usize::MAX)
}

fn withdraw_all(world: &mut World, client: u32, number: u64, selector: &str, (force, timeout_ms): (bool, Option<u64>)) {
    let withdraw = WithdrawRequest {
        target: TargetBody::selector(selector),
        timeout_ms,
        force,
    };
    world.ask(client, number, Request::WithdrawAll(withdraw));
}

/// Events pass until all is done. How many.
fn finish(world: &mut World) -> usize {
    let events = std::iter::from_fn(|| world.core.is_behind().then(|| world.pass(0)));
    events.count()
}

fn offer_all(world: &mut World, client: u32, names: &str) {
    for (number, name) in (1..).zip(names.chars()) {
        world.offer(client, number, &name.to_string(), "", 0);
    }
    world.heard(client);
}

fn owed(world: &World) -> usize {
    world.core.exchange.asked.interests.owed
}

#[test]
fn a_retire_takes_out_one_after_the_other_and_others_are_served() {
    let mut world = in_parts();
    let (p, c) = (world.join("p"), world.join("c"));
    offer_all(&mut world, p, "abcd");
    world.require(c, 1, "name=c", false);
    finish(&mut world);
    world.heard(c);
    withdraw_all(&mut world, p, 9, "", (false, Some(5)));
    world.pass(0);
    assert!(world.heard(p).is_empty());
    // The last object of the index is first. Objects offered meanwhile stay, also under a key that was found.
    world.offer(c, 2, "e", "", 0);
    world.offer(c, 3, "a", "newer", 0);
    assert_eq!(world.heard(c), ["2: offered v5", "3: offered v6"]);
    finish(&mut world);
    assert!(world.heard(p).is_empty(), "it waits for the requirement");
    world.pass(5);
    let heard = world.heard(p);
    assert!(
        heard[0].starts_with("9: Timeout") && heard[0].contains("2 withdrawn"),
        "{heard:?}"
    );
    world.list(c, 4, "", "");
    let listed = world.heard(c).join(" ");
    assert!(listed.contains("listed a c e."), "{listed}");
}

#[test]
fn a_retire_that_is_cancelled_leaves_the_rest() {
    let mut world = in_parts();
    let p = world.join("p");
    offer_all(&mut world, p, "abcdef");
    withdraw_all(&mut world, p, 9, "", (false, None));
    world.pass(0);
    world.ask(p, 10, Request::Cancel(9));
    assert_eq!(finish(&mut world), 1, "it finds that there is nothing to do");
    assert_eq!(world.core.stat().objects.visible, 5);
    let heard = world.heard(p);
    assert!(heard[0].starts_with("9: Interrupted"), "{heard:?}");
    withdraw_all(&mut world, p, 11, "", (true, None));
    world.pass(0);
    world.leave(p);
    finish(&mut world);
    assert_eq!(world.core.stat().objects.visible, 4);
}

#[test]
fn a_requirement_is_owed_what_is_there_one_after_the_other() {
    let mut world = in_parts();
    let (p, c) = (world.join("p"), world.join("c"));
    offer_all(&mut world, p, "abcde");
    world.require(c, 1, "", false);
    assert_eq!((world.heard(c).len(), owed(&world)), (0, 5), "its place is taken");
    world.pass(0);
    // An object removed before its turn is not owed, one removed after its turn is; later objects are.
    world.withdraw(p, 6, "a", Some(0), false);
    world.withdraw(p, 7, "e", Some(0), false);
    world.offer(p, 8, "f", "", 0);
    let heard = world.heard(p);
    assert!(
        heard[0] == "6: done 1" && heard[1].starts_with("7: Timeout"),
        "{heard:?}"
    );
    assert!(finish(&mut world) >= 4);
    assert_eq!((world.heard(c), owed(&world)), (vec!["1: began v6".to_owned()], 5));
    world.follow(c, 2, |follow| follow.requirement = Some(1));
    let got: Vec<String> = world.heard(c).into_iter().filter(|one| one.contains("got")).collect();
    assert_eq!(got.len(), 5);
    assert!(
        got.is_sorted_by_key(|one| one.split(" v").nth(1).map(str::to_owned)),
        "{got:?}"
    );
}

#[test]
fn who_reads_before_its_requirement_has_begun_reads_all() {
    let mut world = in_parts();
    let (p, c, d) = (world.join("p"), world.join("c"), world.join("d"));
    offer_all(&mut world, p, "abcde");
    world.require(c, 1, "", false);
    world.follow(c, 2, |follow| follow.requirement = Some(1));
    let heard = world.heard(c);
    assert!(
        heard[0] == "1: began v5" && heard.iter().filter(|one| one.contains("got")).count() == 5,
        "{heard:?}"
    );
    assert_eq!(finish(&mut world), 1);

    // The server prepares such a follow instead.
    world.require_named(c, 3, "r", "", 0);
    let follow = junctura_wire::body::FollowRequest {
        window: 10,
        requirement_name: Some("r".into()),
        ..junctura_wire::body::FollowRequest::default()
    };
    world.core.change_config(|config| config.looked_at_once = 1);
    let request = Request::Follow(follow);
    let steps = std::iter::repeat_with(|| world.core.look_ahead(d, &request));
    assert_eq!(steps.take_while(|is_ready| !is_ready).count(), 4);
    world.ask(d, 1, request);
    assert_eq!(world.heard(d).iter().filter(|one| one.contains("got")).count(), 5);
}

#[test]
fn who_makes_a_group_of_very_many_joins_it_when_it_has_begun() {
    let mut world = in_parts();
    let (p, c, d) = (world.join("p"), world.join("c"), world.join("d"));
    let make = |world: &mut World, client: u32, number: u64, group: &'static str| {
        world.follow(client, number, |follow| {
            follow.group = Some(group.into());
            follow.group_terms = Some(junctura_wire::body::GroupTerms::default());
        });
    };
    offer_all(&mut world, p, "abcde");
    make(&mut world, c, 1, "g");
    make(&mut world, c, 2, "h");
    make(&mut world, c, 3, "i");
    // One of these is stopped; another client joins another one before.
    world.ask(c, 4, Request::Stop(2));
    world.follow(d, 1, |follow| {
        follow.group = Some("i".into());
        follow.window = 1;
    });
    let heard = world.heard(c);
    assert!(heard[0] == "4: done 0" && heard[1] == "3: began v5", "{heard:?}");
    assert_eq!(heard.len(), 2 + 5 + 1, "it receives all, and is live: {heard:?}");
    assert_eq!(world.heard(d).len(), 2, "began, and live");
    finish(&mut world);
    let heard = world.heard(c);
    let got: Vec<&str> = heard.iter().filter_map(|one| one.split("got ").nth(1)).collect();
    assert_eq!(heard[0], "1: began v5");
    assert!(
        got.len() == 5 && got.is_sorted(),
        "in order, though it was owed them in another: {heard:?}"
    );
    assert_eq!(owed(&world), 15, "the stopped one has no reader");
}

#[test]
fn who_demands_before_its_requirement_has_begun_gets_each_once() {
    let mut world = in_parts();
    let (p, c) = (world.join("p"), world.join("c"));
    offer_all(&mut world, p, "abc");
    world.require(c, 1, "", false);
    let demand = junctura_wire::body::DemandRequest {
        target: TargetBody::selector("name=b"),
        timeout_ms: None,
        requirement: Some(1),
        requirement_name: None,
        incomplete: false,
    };
    world.ask(c, 2, Request::Demand(demand));
    assert_eq!(world.heard(c), ["1: began v3", "2: got b v2 "]);
    world.release(c, 2);
    finish(&mut world);
    assert_eq!(owed(&world), 2, "it is not owed again");
}

#[test]
fn who_joins_a_requirement_that_begins_is_answered_when_it_has() {
    let mut world = in_parts();
    let (p, c, d, e) = (world.join("p"), world.join("c"), world.join("d"), world.join("e"));
    offer_all(&mut world, p, "abc");
    for client in [c, d, e] {
        world.require_named(client, 1, "r", "", 0);
    }
    world.ask(c, 2, Request::Stop(1));
    world.leave(e);
    assert!(world.heard(d).is_empty());
    finish(&mut world);
    // A client that no longer uses the requirement is not answered.
    assert_eq!(world.heard(d), ["1: began v3"]);
    assert_eq!(
        (world.heard(c), world.heard(e).len()),
        (vec!["2: done 0".to_owned()], 0)
    );
}

#[test]
fn a_pool_whose_time_to_drain_is_over_says_what_was_still_to_be_owed() {
    let mut world = in_parts();
    let (p, c) = (world.join("p"), world.join("c"));
    offer_all(&mut world, p, "abcde");
    world.require(c, 1, "", false);
    let drain = junctura_wire::body::DrainRequest { timeout_ms: Some(0) };
    world.ask(p, 9, Request::Drain(drain));
    let heard = world.heard(p);
    assert!(
        heard[0].starts_with("9: Timeout") && heard[0].contains("left: 5"),
        "{heard:?}"
    );
}

#[test]
fn a_withdraw_does_not_wait_for_a_requirement_that_has_the_number_of_one_that_has_ended() {
    let mut world = in_parts();
    let (p, c) = (world.join("p"), world.join("c"));
    offer_all(&mut world, p, "abc");
    world.require(c, 1, "", false);
    finish(&mut world);
    world.withdraw(p, 9, "b", None, false);
    world.ask(c, 2, Request::Stop(1));
    world.require(c, 3, "", false);
    world.follow(c, 4, |follow| follow.requirement = Some(3));
    finish(&mut world);
    assert_eq!(world.heard(p), ["9: done 1"]);
}

#[test]
fn what_goes_before_it_is_owed_makes_room_for_an_offer_that_waits_for_it() {
    let mut world = in_parts();
    let (p, c) = (world.join("p"), world.join("c"));
    offer_all(&mut world, p, "abcde");
    world.core.change_config(|config| config.limits.owed = 5);
    world.require(c, 1, "", false);
    world.offer(p, 8, "f", "", 0);
    world.withdraw(c, 2, "a", Some(0), false);
    assert!(world.heard(p).is_empty());
    finish(&mut world);
    assert_eq!((world.heard(p), owed(&world)), (vec!["8: offered v6".to_owned()], 5));
}

#[test]
fn a_requirement_that_ends_before_it_has_begun_gives_its_place_back() {
    let mut world = in_parts();
    let (p, c) = (world.join("p"), world.join("c"));
    offer_all(&mut world, p, "abcde");
    world.core.change_config(|config| config.limits.owed = 7);
    world.require(c, 1, "", false);
    world.require(c, 2, "", false);
    assert!(world.heard(c)[0].starts_with("2: LimitExceeded"));
    world.pass(0);
    world.ask(c, 3, Request::Stop(1));
    finish(&mut world);
    assert_eq!((world.heard(c), owed(&world)), (vec!["3: done 0".to_owned()], 0));
}

#[test]
fn a_requirement_that_ends_lets_go_of_one_after_the_other() {
    let mut world = in_parts();
    let (p, c) = (world.join("p"), world.join("c"));
    world.require_named(c, 1, "r", "", 0);
    for (number, name) in (1..).zip(["a", "b", "c", "d"]) {
        world.offer(p, number, name, "", 1);
    }
    world.demand(p, 9, "name=a", None);
    world.release(p, 1);
    world.heard(p);
    world.retract(p, 10, "r");
    world.ask(p, 11, Request::Sync);
    assert_eq!((world.heard(p).len(), owed(&world)), (0, 4));
    // Another requirement can take the name at once, and a withdraw does not wait.
    world.require_named(c, 2, "r", "name=none", 0);
    world.withdraw(p, 12, "b", Some(0), false);
    assert_eq!(world.heard(p), ["12: done 1"]);
    assert!(finish(&mut world) >= 4);
    assert_eq!(world.heard(p), ["10: done 4", "11: done 0"]);
    let stat = world.core.stat().objects;
    assert_eq!((owed(&world), stat.visible), (0, 2), "only retention keeps the others");
}

#[test]
fn a_long_queue_of_a_reader_that_ends_goes_in_parts() {
    let mut world = in_parts();
    let (p, c) = (world.join("p"), world.join("c"));
    offer_all(&mut world, p, "abcdef");
    world.follow(c, 1, |follow| follow.window = 1);
    world.ask(c, 2, Request::Stop(1));
    withdraw_all(&mut world, p, 9, "", (true, None));
    finish(&mut world);
    assert_eq!(world.heard(p), ["9: done 6"]);
    world.leave(c);
    world.leave(p);
    finish(&mut world);
    world.assert_empty();
}

#[derive(Clone, Debug)]
enum Step {
    Offer(char, u32),
    OfferFor(char, u32),
    Withdraw(char),
    Pass(u64),
    Require(usize, bool),
    Named(usize),
    Retract,
    Stop(u64),
    WithdrawAll(usize, bool),
    Follow(u64),
    Release(u64),
}

const SELECTORS: [&str; 3] = ["", "name=a/b/c/d", "not name=a"];

fn step() -> impl Strategy<Value = Step> {
    let name = || proptest::char::range('a', 'h');
    prop_oneof![
        8 => (name(), 0u32..3).prop_map(|(name, releases)| Step::Offer(name, releases)),
        2 => (name(), 1u32..4).prop_map(|(name, milliseconds)| Step::OfferFor(name, milliseconds)),
        1 => name().prop_map(Step::Withdraw),
        1 => (1u64..3).prop_map(Step::Pass),
        2 => (0..SELECTORS.len(), any::<bool>()).prop_map(|(selector, newest)| Step::Require(selector, newest)),
        1 => (0..SELECTORS.len()).prop_map(Step::Named),
        1 => Just(Step::Retract),
        2 => (10u64..100).prop_map(Step::Stop),
        1 => (0..SELECTORS.len(), any::<bool>()).prop_map(|(selector, force)| Step::WithdrawAll(selector, force)),
        2 => (10u64..100).prop_map(Step::Follow),
        2 => (1u64..30).prop_map(Step::Release),
    ]
}

fn take(world: &mut World, (p, c): (u32, u32), number: u64, step: &Step) {
    match *step {
        Step::Offer(name, releases) => world.offer(p, number, &name.to_string(), "", releases),
        Step::OfferFor(name, milliseconds) => world.offer_for(p, number, &name.to_string(), milliseconds),
        Step::Withdraw(name) => world.withdraw(p, number, &name.to_string(), Some(0), false),
        Step::Pass(milliseconds) => world.pass(milliseconds),
        Step::Require(selector, newest) => world.require(c, number, SELECTORS[selector], newest),
        Step::Named(selector) => world.require_named(c, number, "r", SELECTORS[selector], 0),
        Step::Retract => world.retract(p, number, "r"),
        Step::Stop(which) => world.ask(c, number, Request::Stop(which)),
        Step::WithdrawAll(selector, force) => withdraw_all(world, p, number, SELECTORS[selector], (force, Some(0))),
        Step::Follow(which) => world.follow(c, number, |follow| follow.requirement = Some(which)),
        Step::Release(sequence) => world.release(c, sequence),
    }
}

proptest! {
    #[test]
    fn what_is_done_in_parts_comes_to_the_same(steps in proptest::collection::vec(step(), 1..90)) {
        let mut worlds = [in_parts(), at_once()];
        let clients = worlds.each_mut().map(|world| {
            let (p, c, s) = (world.join("p"), world.join("c"), world.join("s"));
            world.subscribe(s, 1, "", events::ALL);
            (p, c, s)
        });
        let (p, c, s) = clients[0];
        for (number, step) in (10..).zip(&steps) {
            for world in &mut worlds {
                take(world, (p, c), number, step);
                finish(world);
            }
            for client in [p, c, s] {
                let [parts, whole] = worlds.each_mut().map(|world| {
                    let heard = world.heard(client);
                    // Objects removed together may be removed in another order, and of several matching ones another
                    // one is named.
                    let told = |one: String| {
                        let text = one.split(", since it is wanted").next().unwrap_or_default();
                        let mut words: Vec<String> = text.split(' ').map(str::to_owned).collect();
                        words.sort_unstable();
                        words
                    };
                    let mut heard: Vec<_> = heard.into_iter().map(told).collect();
                    heard.sort_unstable();
                    heard
                });
                prop_assert_eq!(parts, whole, "{:?}", step);
            }
            let [parts, whole] = worlds.each_ref().map(|world| (world.core.stat().to_json(), owed(world)));
            prop_assert_eq!(parts, whole, "{:?}", step);
        }
        for world in &mut worlds {
            for client in [c, p, s] {
                world.leave(client);
                finish(world);
            }
        }
        prop_assert_eq!(owed(&worlds[0]), owed(&worlds[1]));
    }
}

#[test]
fn an_aborted_bundle_has_ended_at_once_and_frees_its_members_in_turns() {
    let mut world = in_parts();
    let (p, q) = (world.join("p"), world.join("q"));
    world.open(p, 1, "b", 10);
    world.open(p, 2, "b/inner", 10);
    for (number, name) in (10..).zip(["a", "b", "c"]) {
        world.stage(p, number, 1, name, "payload");
        world.stage(p, 10 + number, 2, &name.repeat(2), "payload");
    }
    world.heard(p);
    // The inner one first: its keys are free in the outer one.
    world.ask(p, 30, Request::Abort(2));
    assert_eq!(world.heard(p), ["30: done 3"]);
    world.stage(p, 31, 1, "aa", "payload");
    assert_eq!(world.heard(p), ["31: staged"]);
    let stat = world.core.stat();
    assert_eq!((stat.bundles.staged, stat.bundles.staged_bytes), (4, 28));
    assert_eq!((stat.bundles.open, stat.memory.used_bytes), (1, 49));
    world.ask(p, 32, Request::Abort(1));
    assert_eq!(world.heard(p), ["32: done 4"]);
    let stat = world.core.stat();
    assert_eq!(
        (stat.bundles.staged, stat.bundles.open, stat.bundles.aborted),
        (0, 0, 2)
    );
    // The same again, while its members have yet to be freed.
    world.open(q, 1, "b", 2);
    world.stage(q, 2, 1, "a", "new");
    world.stage(q, 3, 1, "aa", "new");
    assert!(world.heard(q).contains(&"1: completed 2 from v1 2=v1 3=v2".to_owned()));
    assert_eq!(world.core.stat().memory.used_bytes, 49 + 6);
    assert!(finish(&mut world) >= 7);
    assert_eq!(world.core.stat().memory.used_bytes, 6);
    for name in ["a", "aa"] {
        world.withdraw(q, 9, name, None, false);
    }
    world.leave(p);
    world.leave(q);
    world.pass(600_000);
    finish(&mut world);
    world.assert_empty();
}

#[test]
fn a_key_of_an_aborted_bundle_is_free_where_a_schema_rejects_a_second_object() {
    let mut world = World::rejecting();
    world
        .core
        .change_config(|config| (config.changed_at_once, config.leaving_at_once) = (0, 1));
    let p = world.join("p");
    world.open(p, 1, "b", 10);
    world.stage(p, 2, 1, "a", "");
    world.stage(p, 3, 1, "c", "");
    world.ask(p, 4, Request::Abort(1));
    world.offer(p, 5, "a", "", 0);
    world.open(p, 6, "d", 10);
    world.stage(p, 7, 6, "c", "");
    finish(&mut world);
    world.heard(p);
    world.offer(p, 8, "c", "", 0);
    assert!(world.heard(p)[0].starts_with("8: AlreadyExists"));
    world.ask(p, 9, Request::Abort(6));
    world.offer(p, 10, "c", "", 0);
    assert_eq!(world.heard(p).last().map(String::as_str), Some("10: offered v2"));
}

#[test]
fn members_of_aborted_bundles_do_not_fill_a_pool() {
    let mut world = World::with(|config| {
        (config.changed_at_once, config.leaving_at_once) = (0, 1);
        config.budget_bytes = 4096;
    });
    let (p, q) = (world.join("p"), world.join("q"));
    world.open(p, 1, "b", 10);
    for number in 2..=5 {
        world.stage(p, number, 1, &format!("n{number}"), &"x".repeat(1000));
    }
    world.open(q, 1, "c", 10);
    world.stage(q, 2, 1, "q2", &"x".repeat(1000));
    assert!(world.heard(q)[1].starts_with("2: PoolFull"));
    world.ask(p, 6, Request::Abort(1));
    for number in 3..=6 {
        world.stage(q, number, 1, &format!("q{number}"), &"x".repeat(1000));
    }
    finish(&mut world);
    assert_eq!(world.heard(q), ["3: staged", "4: staged", "5: staged", "6: staged"]);
    assert_eq!(world.core.stat().memory.used_bytes, 4000);
}
