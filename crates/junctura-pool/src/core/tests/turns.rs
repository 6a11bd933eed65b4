//! What is due at once, or may be served at once, is done in turns, and with the same end.

use junctura_board::{BOARD_BYTES, BoardIdentity, BoardWriter, ReadableWords, WritableWords};
use junctura_wire::Request;
use junctura_wire::body::{ListOrder, ListRequest, events};
use proptest::prelude::*;

use super::World;

#[test]
fn so_many_timers_are_handled_in_a_tick() {
    let mut world = World::with(|config| config.due_at_once = 3);
    let c = world.join("c");
    for number in 1..=8 {
        world.demand(c, number, "name=none", Some(5));
    }
    world.pass(10);
    for left in [5, 2] {
        assert_eq!(world.heard(c).len(), 3);
        assert_eq!(world.core.stat().interests.standing, left);
        assert!(world.core.deadline().is_some_and(|at| at <= world.now));
        world.pass(0);
    }
    assert_eq!((world.heard(c).len(), world.core.deadline()), (2, None));
}

#[test]
fn timers_whose_answers_name_what_fills_the_pool_count_more() {
    let mut world = World::with(|config| {
        config.budget_bytes = 8192;
        config.due_at_once = 40;
    });
    let (p, c) = (world.join("p"), world.join("c"));
    world.lease(p, 1, 8192, None);
    for number in 1..=8 {
        world.lease(c, number, 8192, Some(5));
    }
    for count in [3, 3, 2] {
        world.pass(5);
        assert_eq!(world.heard(c).len(), count);
    }
}

#[test]
fn so_many_tombstones_and_paths_of_bundles_are_forgotten_in_a_tick() {
    let mut world = World::with(|config| config.due_at_once = 4);
    let p = world.join("p");
    for number in 0..6 {
        let name = format!("n{number}");
        world.offer(p, number, &name, "", 0);
        world.withdraw(p, 10, &name, None, false);
        world.open(p, 100 + number, &format!("b{number}"), 1);
        world.stage(p, 20, 100 + number, &format!("m{number}"), "");
        world.withdraw(p, 30, &format!("m{number}"), None, false);
    }
    let left = |world: &World| world.core.stat().objects.tombstones + world.core.stat().bundles.remembered;
    assert_eq!(left(&world), 12 + 6);
    world.pass(600_000);
    for count in [14, 10, 6, 2] {
        assert_eq!(left(&world), count);
        world.pass(0);
    }
    assert_eq!((left(&world), world.core.deadline()), (0, None));
}

#[test]
fn so_many_leases_and_offers_are_served_when_memory_is_free() {
    let mut world = World::with(|config| {
        config.budget_bytes = 64 << 20;
        config.served_at_once = 3;
    });
    let (p, c, d) = (world.join("p"), world.join("c"), world.join("d"));
    world.lease(p, 1, 64 << 20, None);
    for number in 1..=5 {
        world.lease(c, number, 4096, None);
    }
    for number in 1..=7 {
        world.offer(d, number, &format!("n{number}"), "payload", 0);
    }
    world.heard(c);
    world.heard(d);
    world.leave(p);
    let mut served = Vec::new();
    loop {
        served.push((world.heard(c).len(), world.heard(d).len()));
        if !world.core.is_delivering() {
            break;
        }
        assert_eq!(world.core.deadline(), Some(world.now));
        world.pass(0);
    }
    assert_eq!(served, [(3, 0), (2, 1), (0, 3), (0, 3)]);
    assert_eq!(
        (
            world.core.stat().memory.leases_waiting,
            world.core.stat().objects.visible
        ),
        (0, 7)
    );
}

#[test]
fn nothing_is_broken_for_requests_that_are_served_in_the_next_turn() {
    let mut world = World::with(|config| {
        config.budget_bytes = 64 << 10;
        config.served_at_once = 1;
    });
    let (p, c, d) = (world.join("p"), world.join("c"), world.join("d"));
    world.require_with(c, 1, "", |require| {
        require.name = Some("r".into());
        require.breaks_on_full = true;
    });
    world.lease(p, 1, 64 << 10, None);
    for number in 1..=4 {
        world.offer(d, number, &format!("n{number}"), &"x".repeat(4000), 1);
    }
    assert_eq!(world.core.stat().objects.visible, 0);
    world.leave(p);
    assert!(world.core.stat().objects.visible == 1 && world.core.is_delivering());
    // From now on, only the requirement keeps it, while others wait and memory is free.
    world.demand(d, 9, "name=n1", None);
    world.release(d, 1);
    assert_eq!(world.core.exchange.asked.interests.owed, 1);
    while world.core.is_delivering() {
        world.pass(0);
    }
    let stat = world.core.stat();
    assert_eq!(
        (stat.totals.broken, stat.totals.offers_waited, stat.interests.owed),
        (0, 4, 4)
    );
}

#[test]
fn follows_deliver_in_turn() {
    let mut world = World::with(|config| config.delivered_at_once = 2);
    let p = world.join("p");
    let clients: Vec<u32> = (0..4).map(|number| world.join(&format!("c{number}"))).collect();
    for number in 0..6 {
        world.offer(p, number, &format!("n{number}"), "", 0);
    }
    for &client in &clients {
        world.follow(client, 1, |_| {});
        world.heard(client);
    }
    // Each has had two; four are left of each.
    let mut given = Vec::new();
    while world.core.is_delivering() {
        world.pass(0);
        let got = |client: &u32| world.heard(*client).iter().filter(|line| line.contains("got")).count();
        given.push(clients.iter().map(got).collect::<Vec<_>>());
    }
    let first: Vec<usize> = (0..4)
        .filter_map(|at| given.iter().position(|turn| turn[at] > 0))
        .collect();
    assert_eq!(first, [0, 1, 2, 3], "{given:?}");
    assert!(given.iter().all(|turn| turn.iter().sum::<usize>() <= 2), "{given:?}");
    assert_eq!(given.iter().flatten().sum::<usize>(), 16);
}

#[derive(Clone, Debug)]
enum Step {
    Offer { name: char, bytes: usize },
    Lease(u64),
    Demand(u64),
    Withdraw(char),
    GiveUp,
    Pass(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let name = || proptest::char::range('a', 'h');
    prop_oneof![
        4 => (name(), 0usize..3000).prop_map(|(name, bytes)| Step::Offer { name, bytes }),
        3 => (1u64..5000).prop_map(Step::Lease),
        3 => (1u64..4).prop_map(Step::Demand),
        3 => name().prop_map(Step::Withdraw),
        1 => Just(Step::GiveUp),
        3 => (0u64..4).prop_map(Step::Pass),
    ]
}

proptest! {
    #[test]
    fn what_is_done_in_turns_comes_to_an_end_and_leaves_nothing(
        steps in proptest::collection::vec(step(), 1..100),
        (served_at_once, due_at_once, delivered_at_once) in (1usize..4, 1usize..4, 1usize..4),
    ) {
        let mut world = World::with(|config| {
            config.budget_bytes = 16 << 10;
            (config.served_at_once, config.due_at_once) = (served_at_once, due_at_once);
            config.delivered_at_once = delivered_at_once;
        });
        let (mut p, c, s) = (world.join_with_offer_timeout("p", 3), world.join("c"), world.join("s"));
        world.subscribe(s, 1, "", events::ALL);
        for (number, step) in (10..).zip(steps) {
            match step {
                Step::Offer { name, bytes } => world.offer(p, number, &name.to_string(), &"x".repeat(bytes), 0),
                Step::Lease(bytes) => world.lease(p, number, bytes, Some(2)),
                Step::Demand(timeout) => world.demand(c, number, "name=none", Some(timeout)),
                Step::Withdraw(name) => world.withdraw(c, number, &name.to_string(), Some(0), true),
                Step::GiveUp => {
                    world.leave(p);
                    p = world.join_with_offer_timeout("p", 3);
                }
                Step::Pass(milliseconds) => world.pass(milliseconds),
            }
        }
        world.withdraw(c, 5, "a", Some(0), true);
        world.leave(p);
        // All timeouts are over, and turns follow until nothing is left to do.
        world.pass(10);
        let mut turns = 0;
        while world.core.deadline().is_some_and(|at| at <= world.now) {
            world.pass(0);
            turns += 1;
            prop_assert!(turns < 1000);
        }
        prop_assert_eq!(world.core.stat().memory.leases_waiting, 0);
        prop_assert_eq!(world.core.stat().interests.standing, 1, "the subscription");
    }
}

/// Words that count how often each is written.
struct CountedWords(Vec<u64>);

impl ReadableWords for CountedWords {
    fn load(&self, index: usize) -> u64 {
        self.0[index]
    }
}

impl WritableWords for CountedWords {
    fn store(&mut self, index: usize, _: u64) {
        self.0[index] += 1;
    }
}

#[test]
fn a_board_writes_each_word_once_however_many_clients_there_are() {
    let mut world = World::with(|config| config.limits.clients = 10_000);
    for number in 0..5000 {
        let client = world.join(&format!("component{}", number % 200));
        if number < 1000 {
            world.require_named(client, 1, &format!("r{number}"), "name=none", 0);
        }
    }
    let mut board = BoardWriter::new(
        CountedWords(vec![0; BOARD_BYTES as usize / 8]),
        &BoardIdentity::default(),
    );
    let before = board.words().0.clone();
    board.publish(|edit| world.core.write_board(edit, |_| 0));
    let stores = board
        .words()
        .0
        .iter()
        .zip(&before)
        .map(|(after, before)| after - before);
    // The generation, before and after.
    assert_eq!(stores.filter(|&count| count > 1).collect::<Vec<_>>(), [2]);
}

#[test]
fn a_page_of_a_list_and_a_step_to_it_compare_no_more_than_the_objects_of_a_page() {
    let most = |objects: u64| {
        let mut world = World::new();
        let (p, c) = (world.join("p"), world.join("c"));
        for number in 0..objects {
            // In another order than that of their keys.
            world.offer(
                p,
                number,
                &format!("n{:08}", number.wrapping_mul(7919) % objects),
                "",
                0,
            );
        }
        world.heard(p);
        let list = Request::List(ListRequest {
            selector: "".into(),
            order: ListOrder::Key,
            ..ListRequest::default()
        });
        let work = |world: &World| world.core.exchange.objects.work.get();
        let mut most = 0;
        let mut note = |world: &World, before: u64| most = most.max(work(world) - before);
        loop {
            let before = work(&world);
            let is_ready = world.core.look_ahead(c, &list);
            note(&world, before);
            if is_ready {
                break;
            }
        }
        let before = work(&world);
        world.ask(c, 1, list);
        note(&world, before);
        let mut listed = 0;
        while let Some(page) = world.heard(c).pop() {
            listed += page.matches(" n").count() as u64;
            if page.ends_with('.') {
                break;
            }
            let before = work(&world);
            world.ask(c, 2, Request::More(1));
            note(&world, before);
        }
        assert_eq!(listed, objects);
        most
    };
    // A step verifies 256 objects and sorts them into a run. The first page heaps the runs; each entry passes two of each level.
    for objects in [2_000, 32_000] {
        let runs: u64 = objects / 256 + 1;
        let page = 256 * (2 * u64::from(runs.ilog2() + 1) + 2) + 2 * runs;
        let step = 256 + 256 * 10;
        assert!(most(objects) <= page.max(step), "{objects} objects: {}", most(objects));
    }
}
