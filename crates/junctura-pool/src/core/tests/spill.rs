//! The file tier: which payloads are spilled and when, and their removal.

use junctura_model::{Code, Error};
use junctura_wire::Request;
use junctura_wire::body::events;

use super::World;
use crate::SpillConfig;

const KIB: usize = 1024;

/// A pool with room for two payloads of [`payload`] in memory, and four in the file tier.
fn small() -> World {
    with_limit(4 * 3072)
}

fn with_limit(limit_bytes: u64) -> World {
    World::with(|config| {
        config.budget_bytes = 8192;
        config.spill = Some(SpillConfig {
            directory: "/scratch".into(),
            limit_bytes,
        });
    })
}

fn payload() -> String {
    "x".repeat(3 * KIB)
}

fn refused() -> Error {
    Error::new(Code::Io, "file tier", "writing a payload: no space left")
}

#[test]
fn the_oldest_goes_to_the_file_when_somebody_waits_and_is_read_from_there() {
    let mut world = small();
    let (p, c) = (world.join("p"), world.join("c"));
    for (number, name) in ["a", "b", "c"].iter().enumerate() {
        world.offer(p, number as u64 + 1, name, &payload(), 0);
    }
    assert_eq!(world.heard(p), ["1: offered v1", "2: offered v2"]);
    assert_eq!(world.core.stat().spill.unwrap().underway, 1);
    world.written(Ok(7));
    assert_eq!(world.heard(p), ["3: offered v3"]);
    world.demand(c, 1, "name=a", None);
    world.demand(c, 2, "name=a", None);
    assert_eq!(
        world.heard(c),
        ["0: file", "1: got a v1  spilled", "2: got a v1  spilled"],
        "its descriptor is sent once"
    );
    let stat = world.core.stat();
    let spill = stat.spill.unwrap();
    assert_eq!((spill.objects, spill.used_bytes, spill.written), (1, 3072, 1));
    assert_eq!(stat.memory.used_bytes, 6144);
    world.ask(p, 4, Request::Goodbye);
    world.ask(c, 3, Request::Goodbye);
    assert_eq!(world.core.stat().objects.visible, 3);
}

#[test]
fn where_an_object_lies_is_listed_and_it_is_told_when_that_changes() {
    let mut world = small();
    let (p, c, d) = (world.join("p"), world.join("c"), world.join("d"));
    world.subscribe(c, 1, "name=a/c", events::SPILLED);
    world.subscribe(d, 1, "name=b", events::SPILLED);
    world.list(d, 2, "", "");
    for (number, name) in (1..).zip(["a", "b", "c"]) {
        world.offer(p, number, name, &payload(), 0);
    }
    assert_eq!(world.heard(c), ["1: began v0"], "it is being written");
    world.written(Ok(7));
    assert_eq!(world.heard(c), ["1: spilled a v1 by p"]);
    world.heard(d);
    world.list(d, 3, "", "");
    assert_eq!(world.heard(d), ["3: began v3", "3: listed a (in the file) b c."]);
}

#[test]
fn what_is_held_stays_and_goes_once_it_is_released() {
    let mut world = small();
    let (p, c) = (world.join("p"), world.join("c"));
    world.offer(p, 1, "a", &payload(), 0);
    world.demand(c, 1, "name=a", None);
    world.offer(p, 2, "b", &payload(), 0);
    world.demand(c, 2, "name=b", None);
    world.offer(p, 3, "c", &payload(), 0);
    assert!(world.fx.jobs.is_empty());
    assert_eq!(world.heard(p), ["1: offered v1", "2: offered v2"]);
    world.release(c, 2);
    assert_eq!(world.fx.jobs.len(), 1);
    world.demand(c, 3, "name=b", None);
    world.written(Ok(7));
    assert!(world.heard(p).is_empty(), "it was given out while it was written");
    assert_eq!(world.core.stat().spill.unwrap().used_bytes, 0);
    world.release(c, 2);
    world.written(Ok(7));
    assert_eq!(world.heard(p), ["3: offered v3"]);
}

#[test]
fn what_goes_while_it_is_written_is_gone_and_so_is_its_room() {
    let mut world = small();
    let p = world.join("p");
    for (number, name) in ["a", "b", "c"].iter().enumerate() {
        world.offer(p, number as u64 + 1, name, &payload(), 0);
    }
    world.withdraw(p, 4, "a", None, false);
    assert_eq!(
        world.heard(p),
        ["1: offered v1", "2: offered v2", "4: done 1", "3: offered v3"]
    );
    assert_eq!(
        world.core.stat().spill.unwrap().used_bytes,
        3072,
        "the disk is still at it"
    );
    world.written(Ok(7));
    assert_eq!(world.core.stat().spill.unwrap().used_bytes, 0);
    for name in ["b", "c"] {
        world.withdraw(p, 5, name, None, false);
    }
    world.leave(p);
    world.assert_empty();
}

#[test]
fn room_in_the_file_comes_back_with_the_object() {
    let mut world = with_limit(3072);
    let p = world.join("p");
    for (number, name) in ["a", "b", "c", "d"].iter().enumerate() {
        world.offer(p, number as u64 + 1, name, &payload(), 0);
    }
    world.written(Ok(7));
    assert!(world.fx.jobs.is_empty(), "the file is full");
    assert_eq!(world.heard(p), ["1: offered v1", "2: offered v2", "3: offered v3"]);
    world.withdraw(p, 5, "a", None, false);
    assert_eq!(world.fx.jobs.len(), 1);
    world.written(Ok(7));
    assert_eq!(world.heard(p), ["5: done 1", "4: offered v4"]);
}

#[test]
fn a_full_disk_is_a_full_pool_for_who_offers_and_is_tried_again() {
    let mut world = small();
    let p = world.core.join().unwrap();
    let hello = junctura_wire::body::Hello {
        version: junctura_wire::VERSION,
        name: "p".into(),
        offer_timeout_ms: Some(500),
        ..junctura_wire::body::Hello::default()
    };
    world.ask(p, 0, Request::Hello(hello));
    for (number, name) in ["a", "b", "c"].iter().enumerate() {
        world.offer(p, number as u64 + 1, name, &payload(), 0);
    }
    world.heard(p);
    world.written(Err(refused()));
    assert!(world.fx.jobs.is_empty(), "the disk is left alone for a second");
    world.pass(500);
    let heard = world.heard(p);
    assert!(
        heard[0].starts_with("3: PoolFull") && heard[0].contains("the file tier in /scratch holds 0 B of 12.0 KiB"),
        "{heard:?}"
    );
    assert!(heard[0].contains("no space left"), "{heard:?}");
    world.pass(499);
    world.offer(p, 4, "d", &payload(), 0);
    assert!(world.fx.jobs.is_empty());
    world.pass(1);
    world.written(Ok(7));
    assert_eq!(world.heard(p), ["4: offered v3"]);
    let spill = world.core.stat().spill.unwrap();
    assert_eq!((spill.refused, spill.written), (1, 1));
}

#[test]
fn what_only_a_requirement_keeps_goes_first_of_the_one_that_keeps_most() {
    let mut world = small();
    let (p, c, d) = (world.join("p"), world.join("c"), world.join("d"));
    world.require(c, 1, "name=b", false);
    world.offer(p, 1, "a", &payload(), 0);
    world.offer(p, 2, "b", &payload(), 1);
    world.demand(d, 1, "name=b", Some(0));
    world.release(d, 2);
    world.offer(p, 3, "c", &payload(), 0);
    world.written(Ok(7));
    world.demand(d, 2, "name=a", Some(0));
    assert_eq!(world.heard(d)[1..], ["2: got a v1 xxx".replace("xxx", &payload())]);
    world.follow(c, 2, |follow| follow.requirement = Some(1));
    assert_eq!(world.heard(c)[2..4], ["0: file", "2: got b v2  first spilled"]);
}

#[test]
fn nobody_is_broken_while_the_file_takes_it() {
    let mut world = with_limit(3072);
    let (p, c, d) = (world.join("p"), world.join("c"), world.join("d"));
    world.require_with(c, 1, "", |require| require.breaks_on_full = true);
    for name in ["a", "b", "c"] {
        world.offer(p, 1, name, &payload(), 1);
        world.demand(d, 1, &format!("name={name}"), Some(0));
        let sequence = world.core.stat().sequence;
        world.release(d, sequence);
    }
    assert_eq!(world.core.stat().totals.broken, 0);
    world.pass(120_000);
    assert_eq!(world.core.stat().totals.broken, 0, "the disk is slow");
    world.written(Ok(7));
    assert_eq!(world.core.stat().totals.broken, 0);
    world.offer(p, 1, "d", &payload(), 1);
    assert_eq!(world.core.stat().totals.broken, 1, "memory and file are full");
}

#[test]
fn memory_above_its_high_mark_goes_to_the_file_before_anybody_waits() {
    let mut world = World::with(|config| {
        config.budget_bytes = 1 << 20;
        config.spill = Some(SpillConfig::new("/scratch".into(), None, 1 << 20));
    });
    let p = world.join("p");
    world.lease(p, 1, 100_000, None);
    for slot in 0..2 {
        world.offer_slot(p, 2, &format!("s{slot}"), 1, slot, 100_000);
    }
    assert!(world.fx.jobs.is_empty());
    for number in 0..180 {
        world.offer(p, 3, &format!("i{number}"), &"y".repeat(4096), 0);
    }
    assert!(!world.fx.jobs.is_empty(), "{:?}", world.core.stat().memory);
    world.heard(p);
    world.written(Ok(7));
    assert_eq!(world.heard(p), ["0: freed 1"], "the slot is its producer's again");
}

#[test]
fn staged_members_go_to_the_file_and_fill_it() {
    let mut world = with_limit(2 * 3072);
    let (p, c) = (world.join("p"), world.join("c"));
    world.open(p, 1, "step", 5);
    for (number, name) in ["a", "b", "c", "d"].iter().enumerate() {
        world.stage(p, number as u64 + 2, 1, name, &payload());
        if !world.fx.jobs.is_empty() {
            world.written(Ok(7));
        }
    }
    let heard = world.heard(p);
    assert_eq!(heard[1..], ["2: staged", "3: staged", "4: staged", "5: staged"]);
    world.stage(p, 6, 1, "e", &payload());
    let heard = world.heard(p);
    assert!(
        heard[0].starts_with("6: PoolFull of 14.0 KiB, 12.0 KiB are taken by 4"),
        "{heard:?}"
    );
    world.stage(p, 7, 1, "e", "");
    let heard = world.heard(p);
    assert!(heard.iter().any(|line| line.starts_with("1: completed 5")), "{heard:?}");
    world.demand(c, 1, "name=a", None);
    assert_eq!(world.heard(c), ["0: file", "1: got a v1  spilled"]);
}
