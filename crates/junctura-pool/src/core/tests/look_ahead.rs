//! A request that was prepared is answered as one that was not, whatever happens between.

use junctura_wire::Request;
use junctura_wire::body::{
    DemandRequest, FollowRequest, GroupTerms, ListOrder, ListRequest, RequireRequest, TargetBody, WithdrawRequest,
    events,
};
use proptest::prelude::*;

use super::World;

/// Every request that looks at objects is prepared, one object at a time.
fn prepared() -> World {
    World::with(|config| config.looked_at_once = 0)
}

fn unprepared() -> World {
    World::with(|config| config.looked_at_once = usize::MAX)
}

fn list<'a>(selector: &'a str, order: ListOrder<'a>) -> Request<'a> {
    Request::List(ListRequest {
        selector: selector.into(),
        order,
        ..ListRequest::default()
    })
}

fn demand(selector: &str) -> Request<'_> {
    Request::Demand(DemandRequest {
        target: TargetBody::selector(selector),
        timeout_ms: Some(0),
        requirement: None,
        requirement_name: None,
        incomplete: false,
    })
}

/// A request of each kind that looks at objects.
fn question(kind: u8, selector: &str) -> Request<'_> {
    match kind {
        0 => list(selector, ListOrder::Key),
        1 => list(selector, ListOrder::Attribute("size".into())),
        2 => demand(selector),
        3 => Request::Follow(FollowRequest {
            selector: selector.into(),
            window: 100,
            ..FollowRequest::default()
        }),
        4 => Request::Require(RequireRequest {
            selector: selector.into(),
            ..RequireRequest::default()
        }),
        5 => Request::WithdrawAll(WithdrawRequest {
            target: TargetBody::selector(selector),
            timeout_ms: Some(0),
            force: true,
        }),
        6 => Request::List(ListRequest {
            selector: selector.into(),
            order: ListOrder::Key,
            incomplete: true,
            ..ListRequest::default()
        }),
        _ => Request::Follow(FollowRequest {
            selector: selector.into(),
            window: 2,
            group: Some("g".into()),
            group_terms: Some(GroupTerms::default()),
            ..FollowRequest::default()
        }),
    }
}

/// The number of objects that a reader watches, each as often as it is watched.
fn watched(world: &World) -> u32 {
    let objects = &world.core.exchange.objects.table;
    objects.iter().map(|(_, object)| object.watchers).sum()
}

const SELECTORS: [&str; 5] = ["", "name=a/b/c/d", "size>1", "not name=a", "name~\"^[b-e]\""];

#[derive(Clone, Debug)]
enum Step {
    Offer {
        name: char,
        length: usize,
        releases: u32,
    },
    OfferFor {
        name: char,
        milliseconds: u32,
    },
    Withdraw(char),
    Pass(u64),
    /// Objects enter the index.
    Look,
    /// The next question is prepared by one step.
    Prepare,
    Ask,
    /// The next question is another one.
    Choose {
        kind: u8,
        selector: usize,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let name = || proptest::char::range('a', 'h');
    prop_oneof![
        4 => (name(), 0usize..4, 0u32..2).prop_map(|(name, length, releases)| Step::Offer { name, length, releases }),
        1 => (name(), 1u32..4).prop_map(|(name, milliseconds)| Step::OfferFor { name, milliseconds }),
        2 => name().prop_map(Step::Withdraw),
        1 => (1u64..3).prop_map(Step::Pass),
        1 => Just(Step::Look),
        6 => Just(Step::Prepare),
        1 => Just(Step::Ask),
        1 => (0u8..8, 0..SELECTORS.len()).prop_map(|(kind, selector)| Step::Choose { kind, selector }),
    ]
}

proptest! {
    #[test]
    fn what_is_prepared_finds_what_it_would_have_found(steps in proptest::collection::vec(step(), 1..120)) {
        let mut worlds = [prepared(), unprepared()];
        let joined = worlds.each_mut().map(|world| {
            let (p, c, s) = (world.join("p"), world.join("c"), world.join("s"));
            world.subscribe(s, 1, "", events::ALL);
            (p, c, s)
        });
        prop_assert_eq!(joined[0], joined[1]);
        let (p, c, s) = joined[0];
        let (mut kind, mut selector) = (0, 0);
        for (number, step) in (10..).zip(steps.into_iter().chain([Step::Ask])) {
            for (is_prepared, world) in [true, false].into_iter().zip(&mut worlds) {
                match &step {
                    Step::Offer { name, length, releases } => {
                        world.offer(p, number, &name.to_string(), &"x".repeat(*length), *releases);
                    }
                    Step::OfferFor { name, milliseconds } => {
                        world.offer_for(p, number, &name.to_string(), *milliseconds);
                    }
                    Step::Withdraw(name) => world.withdraw(p, number, &name.to_string(), Some(0), true),
                    Step::Pass(milliseconds) => world.pass(*milliseconds),
                    Step::Look => world.core.exchange.objects.index_all(),
                    Step::Prepare if is_prepared => {
                        let _ = world.core.look_ahead(c, &question(kind, SELECTORS[selector]));
                    }
                    Step::Prepare => {}
                    Step::Ask => world.ask(c, number, question(kind, SELECTORS[selector])),
                    Step::Choose { kind: one, selector: other } => (kind, selector) = (*one, *other),
                }
            }
            for client in [p, c, s] {
                let [with, without] = worlds.each_mut().map(|world| world.heard(client));
                prop_assert_eq!(with, without);
            }
            if matches!(step, Step::Ask) {
                let [with, without] = worlds.each_ref().map(|world| world.core.stat().to_json());
                prop_assert_eq!(with, without);
            }
        }
        let left = worlds.each_mut().map(|world| {
            world.leave(c);
            (watched(world), world.core.exchange.objects.len())
        });
        prop_assert_eq!(left[0], left[1]);
        prop_assert_eq!(left[0].0, 0);
    }
}

#[test]
fn the_objects_of_a_reader_are_watched_before_its_request() {
    let follow = Request::Follow(FollowRequest {
        window: 1,
        ..FollowRequest::default()
    });
    for reads in [list("", ListOrder::Key), follow] {
        let mut world = prepared();
        let (p, c) = (world.join("p"), world.join("c"));
        for number in 0..300 {
            world.offer(p, number, &format!("n{number}"), "", 0);
        }
        while !world.core.look_ahead(c, &reads) {}
        // The last one is verified by the request.
        assert!(watched(&world) >= 299);
        world.withdraw(p, 300, "n7", Some(0), true);
        assert!(watched(&world) <= 299, "what leaves is not kept");
        world.ask(c, 1, reads);
        assert!(world.core.exchange.objects.ahead.is_empty());
        world.leave(c);
        assert_eq!(watched(&world), 0);
    }
}

#[test]
fn a_reader_that_is_refused_watches_nothing() {
    for reads in [0, 3] {
        let mut world = World::with(|config| {
            config.looked_at_once = 0;
            config.limits.requests_per_client = 1;
        });
        let (p, c) = (world.join("p"), world.join("c"));
        for name in ["a", "b", "c"] {
            world.offer(p, 1, name, "", 0);
        }
        world.subscribe(c, 1, "", events::ALL);
        while !world.core.look_ahead(c, &question(reads, "")) {}
        world.heard(c);
        world.ask(c, 2, question(reads, ""));
        let heard = world.heard(c);
        assert!(heard[0].starts_with("2: LimitExceeded"), "{heard:?}");
        assert_eq!(watched(&world), 0);
    }
}

#[test]
fn no_step_looks_at_more_than_it_may() {
    let mut world = World::with(|config| config.looked_at_once = 3);
    let (p, c) = (world.join("p"), world.join("c"));
    for number in 0..20 {
        world.offer(p, number, &format!("n{number}"), "", 0);
    }
    let everything = list("", ListOrder::Key);
    let steps = std::iter::repeat_with(|| world.core.look_ahead(c, &everything));
    // Seven to enter the index, seven to be verified.
    assert_eq!(steps.take_while(|is_ready| !is_ready).count(), 14 - 1);
    world.ask(c, 1, everything);
    let names = world.heard(c).join(" ");
    assert_eq!(names.matches(" n").count(), 20, "{names}");
}

#[test]
fn what_was_prepared_goes_with_its_client_and_for_another_question() {
    let mut world = prepared();
    let (p, c) = (world.join("p"), world.join("c"));
    for name in ["a", "b", "c"] {
        world.offer(p, 1, name, "", 0);
    }
    let bytes = |world: &World| world.core.stat().interests.selector_bytes;
    for _ in 0..6 {
        let _ = world.core.look_ahead(c, &list("", ListOrder::Key));
    }
    let all = bytes(&world);
    assert!(all > 3 * 4);
    let _ = world.core.look_ahead(c, &list("name=a", ListOrder::Key));
    assert!(bytes(&world) < all);
    for _ in 0..3 {
        let _ = world.core.look_ahead(c, &list("name=a", ListOrder::Key));
    }
    assert!((4..all).contains(&bytes(&world)));
    world.leave(c);
    assert_eq!((bytes(&world), world.core.exchange.objects.ahead.len()), (0, 0));
    // Only clients with the right to list prepare a list.
    let stranger = world.core.join().unwrap();
    assert!(world.core.look_ahead(stranger, &list("", ListOrder::Key)) && world.core.exchange.objects.ahead.is_empty());
}

#[test]
fn what_is_prepared_is_weighed() {
    let mut world = World::with(|config| {
        config.looked_at_once = 0;
        config.limits.selector_bytes_per_client = 10;
    });
    let (p, c) = (world.join("p"), world.join("c"));
    for name in ["a", "b", "c"] {
        world.offer(p, 1, name, "", 0);
    }
    let everything = list("", ListOrder::Key);
    while !world.core.look_ahead(c, &everything) {}
    world.ask(c, 1, everything);
    let heard = world.heard(c);
    assert!(heard[0].starts_with("1: LimitExceeded"), "{heard:?}");
    assert!(world.core.exchange.objects.ahead.is_empty());
}
