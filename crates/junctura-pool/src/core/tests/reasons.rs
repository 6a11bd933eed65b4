//! Reasons: each kind of request that waits is returned with its cause; objects and memory with what keeps them.

use std::collections::BTreeMap;

use junctura_model::{Code, Error};
use junctura_wire::Request;
use junctura_wire::body::{DrainRequest, NoteRequest, TargetBody};
use junctura_wire::fixed;
use junctura_wire::reasons::{
    ExplainRequest, ExplainedObject, KEPT_CAUSES, KeepersRequest, KeptSum, MemoryKeepers, OBJECT_STATES,
    RETENTION_RULES, WAIT_CAUSES, WAIT_KINDS, WaitingRequest, WaitsRequest,
};

use super::World;

impl World {
    /// All requests that wait, read so many at a time.
    fn waits(&self, limit: u32) -> Vec<WaitingRequest> {
        let mut asked = WaitsRequest { after: None, limit };
        let mut found = Vec::new();
        loop {
            let page = self.core.reasons().waits(&asked);
            assert!(page.requests.len() <= limit as usize);
            found.extend(page.requests);
            asked.after = page.next;
            if asked.after.is_none() {
                break;
            }
        }
        for one in &found {
            assert!(WAIT_KINDS.contains(&one.kind.as_str()), "{one:?}");
            assert!(WAIT_CAUSES.contains(&one.because.as_str()), "{one:?}");
        }
        found
    }

    /// The same as lines: client, kind, cause, and what it waits for.
    pub(super) fn reasons(&self) -> Vec<String> {
        let line = |one: &WaitingRequest| {
            let on = one.on.iter().map(|on| match (&on.requirement, &on.bundle, &on.client) {
                (Some(one), _, _) => {
                    let readers: Vec<&str> = one.readers.iter().map(|reader| reader.name.as_str()).collect();
                    format!(" {}[{}]", one.name, readers.join(" "))
                }
                (None, Some(one), _) => format!(" {}:{}", one.path, one.members),
                (None, None, Some(one)) => format!(" {}", one.name),
                (None, None, None) => " nothing".to_owned(),
            });
            format!(
                "{} {}: {}{}",
                one.client.name,
                one.kind,
                one.because,
                on.collect::<String>()
            )
        };
        self.waits(100).iter().map(line).collect()
    }

    fn explained(&self, name: &str, sequence: Option<u64>) -> Result<ExplainedObject, Error> {
        let key = self.key(name);
        let asked = ExplainRequest {
            target: TargetBody::key(0, &key),
            sequence,
        };
        let explained = self.core.reasons().explain(&asked)?;
        assert!(OBJECT_STATES.contains(&explained.state.as_str()), "{explained:?}");
        let causes = explained.because.iter();
        assert!(causes.clone().all(|because| KEPT_CAUSES.contains(&because.as_str())));
        Ok(explained)
    }

    /// State and causes of an object.
    fn why(&self, name: &str) -> String {
        match self.explained(name, None) {
            Ok(one) => format!("{} {}", one.state, one.because.join("+")),
            Err(error) => error.code().name().to_owned(),
        }
    }

    /// What keeps memory: all parts together.
    fn keepers(&self) -> (MemoryKeepers, BTreeMap<String, KeptSum>) {
        let first = self.core.reasons().keepers(&KeepersRequest::default());
        let (mut sums, mut clients) = (BTreeMap::<String, KeptSum>::new(), first.clients.clone());
        let mut part = first.clone();
        loop {
            for one in part.sums {
                let is_known = [&RETENTION_RULES[..], &KEPT_CAUSES]
                    .concat()
                    .contains(&one.because.as_str());
                assert!(is_known, "{one:?}");
                let sum = sums.entry(one.because.clone()).or_default();
                sum.objects += one.objects;
                sum.bytes += one.bytes;
                sum.alone_bytes += one.alone_bytes;
            }
            let Some(after) = part.next else { break };
            part = self.core.reasons().keepers(&KeepersRequest { after: Some(after) });
            clients.extend(part.clients.clone());
        }
        (MemoryKeepers { clients, ..first }, sums)
    }
}

fn payload() -> String {
    "x".repeat(3000)
}

#[test]
fn a_demand_waits_since_nothing_matches() {
    let mut world = World::new();
    let c = world.join("c");
    assert!(world.waits(100).is_empty());
    world.demand(c, 7, "name=a", Some(5_000));
    world.pass(2_000);
    let waits = world.waits(100);
    let one = &waits[0];
    assert_eq!((one.request, one.what.as_str()), (7, "name=a"));
    assert_eq!((one.waits_ms, one.ends_in_ms), (Some(2_000), Some(3_000)));
    assert_eq!(world.reasons(), ["c demand: nothing_matches"]);
    let p = world.join("p");
    world.offer(p, 1, "a", "", 0);
    assert!(world.waits(100).is_empty());
}

#[test]
fn a_demand_waits_for_a_bundle_that_has_a_match() {
    let mut world = World::new();
    let (p, c) = (world.join("p"), world.join("c"));
    world.open(p, 1, "step/6", 2);
    world.stage(p, 2, 1, "a", "");
    world.demand_key(c, 1, "a", None);
    assert_eq!(
        world.reasons(),
        ["p bundle: members step/6:1", "c demand: staged step/6:1"]
    );
    world.stage(p, 3, 1, "b", "");
    assert!(world.waits(100).is_empty());
}

#[test]
fn bundles_wait_for_members_seals_and_other_bundles() {
    let mut world = World::new();
    let p = world.join("p");
    world.open(p, 1, "a", 0);
    world.open(p, 2, "a/b", 1);
    assert_eq!(world.reasons(), ["p bundle: nested a/b:0", "p bundle: members a/b:0"]);
    world.stage(p, 3, 2, "x", "");
    assert_eq!(world.reasons(), ["p bundle: unsealed a:1", "p bundle: enclosing a:1"]);
    world.ask(p, 4, Request::Seal(1));
    assert!(world.waits(100).is_empty());
}

#[test]
fn an_offer_waits_for_the_requirement_that_keeps_most() {
    let mut world = World::with(|config| config.budget_bytes = 8192);
    let (p, c) = (world.join("p"), world.join("c"));
    world.require_named(c, 1, "slow", "", 0);
    world.follow(c, 2, |follow| {
        follow.requirement_name = Some("slow".into());
        follow.window = 1;
    });
    for name in ["a", "b", "d", "e"] {
        world.offer(p, 1, name, &payload(), 1);
    }
    world.pass(1_000);
    let waits = world.waits(100);
    assert_eq!(world.reasons(), ["p offer: memory slow[c]"]);
    assert_eq!((waits[0].what.contains("name=d"), waits[0].behind_it), (true, 1));
    let requirement = waits[0].on[0].requirement.clone().unwrap();
    assert_eq!((requirement.owed, requirement.in_flight), (2, 1));
    assert_eq!(requirement.breaks_in_ms, Some(59_000));
    // The reader waits for what the offer would bring: a cycle.
    world.demand(c, 3, "name=d", None);
    assert_eq!(world.reasons(), ["p offer: memory slow[c]", "c demand: offer_waits p"]);
    world.release(c, 1);
    world.release(c, 2);
    assert!(world.waits(100).is_empty(), "{:?}", world.reasons());
}

#[test]
fn an_offer_waits_since_the_one_before_it_was_accepted() {
    let mut world = World::with(|config| config.budget_bytes = 4096);
    let p = world.join("p");
    for (number, name) in [(1, "a"), (2, "b"), (3, "c")] {
        world.offer(p, number, name, &payload(), 0);
    }
    world.pass(5_000);
    assert_eq!(world.waits(100)[0].waits_ms, Some(5_000));
    world.withdraw(p, 4, "a", None, false);
    world.pass(2_000);
    let waits = world.waits(100);
    assert!(waits[0].what.contains("name=c"), "{waits:?}");
    assert_eq!(waits[0].waits_ms, Some(2_000));
}

#[test]
fn a_sync_waits_for_offers_and_a_lease_for_unused_memory() {
    let mut world = World::with(|config| config.budget_bytes = 1 << 20);
    let (p, q) = (world.join("p"), world.join("q"));
    world.lease(p, 1, 1 << 20, None);
    world.lease(q, 1, 4096, None);
    world.offer(q, 2, "a", &payload(), 0);
    world.ask(q, 3, Request::Sync);
    assert_eq!(
        world.reasons(),
        ["q lease: memory p", "q sync: offers q", "q offer: memory p"]
    );
}

#[test]
fn withdraws_and_drains_wait_for_what_is_owed() {
    let mut world = World::new();
    let (p, c) = (world.join("p"), world.join("c"));
    world.require_named(c, 1, "archive", "", 0);
    world.offer(p, 1, "a", "", 0);
    world.withdraw(p, 2, "a", Some(10_000), false);
    assert_eq!(world.reasons(), ["p withdraw: owed archive[]"]);
    assert!(world.waits(100)[0].what.contains("name=a"));
    world.ask(
        p,
        3,
        Request::Drain(DrainRequest {
            timeout_ms: Some(60_000),
        }),
    );
    world.pass(1_000);
    assert_eq!(
        world.reasons(),
        ["p withdraw: owed archive[]", "p drain: owed archive[]"]
    );
    let drain = &world.waits(100)[1];
    assert_eq!((drain.waits_ms, drain.ends_in_ms), (Some(1_000), Some(59_000)));
}

#[test]
fn a_durable_offer_waits_for_those_who_could_archive_it() {
    let mut world = World::new();
    let (p, c) = (world.join("p"), world.join("c"));
    world.require_named(c, 1, "archive", "", 0);
    world.offer_with(p, 1, "a", fixed::DURABLE, 0);
    assert_eq!(world.reasons(), ["p durable: unarchived archive[]"]);
    world.retract(c, 2, "archive");
    assert!(world.waits(100).is_empty());
}

#[test]
fn waits_are_read_in_parts() {
    let mut world = World::new();
    let clients: Vec<u32> = (0..7).map(|n| world.join(&format!("c{n}"))).collect();
    for &client in &clients {
        for number in 1..=3 {
            world.demand(client, number, "name=a", None);
        }
        world.follow(client, 9, |_| {});
    }
    let whole: Vec<_> = world
        .waits(500)
        .iter()
        .map(|one| (one.client.client, one.request))
        .collect();
    assert_eq!(whole.len(), 21);
    for limit in [1, 2, 20, 21, 22] {
        let parts = world.waits(limit);
        let parts: Vec<_> = parts.iter().map(|one| (one.client.client, one.request)).collect();
        assert_eq!(parts, whole, "{limit} at a time");
    }
}

#[test]
fn an_object_is_explained_by_all_that_keeps_it() {
    let mut world = World::new();
    let (p, c, d) = (world.join("p"), world.join("c"), world.join("d"));
    assert_eq!(world.why("a"), "NotFound");
    world.offer(p, 1, "a", "payload", 2);
    assert_eq!(world.why("a"), "visible retention");
    world.require_named(c, 1, "archive", "", 0);
    world.demand(d, 1, "name=a", Some(0));
    let object = world.explained("a", None).unwrap();
    assert_eq!(object.because, ["retention", "owed", "held"]);
    assert_eq!((object.bytes, object.place.as_str()), (7, "message"));
    assert_eq!(object.producer.as_ref().map(|one| one.name.as_str()), Some("p"));
    assert_eq!(object.retention.as_ref().and_then(|one| one.releases), Some(2));
    assert_eq!((object.holders[0].client.name.as_str(), object.holder_count), ("d", 1));
    assert_eq!(
        (object.owed[0].requirement.name.as_str(), object.owed_count),
        ("archive", 1)
    );
    world.release(d, 1);
    let releases = |world: &World| {
        world
            .explained("a", None)
            .unwrap()
            .retention
            .and_then(|one| one.releases)
    };
    assert_eq!(releases(&world), Some(1));
    world.demand(c, 2, "name=a", Some(0));
    world.release(c, 1);
    assert_eq!(world.why("a"), "visible owed");
    world.retract(c, 3, "archive");
    let gone = world.explained("a", None).unwrap();
    assert_eq!((gone.state.as_str(), gone.reason.as_deref()), ("gone", Some("expired")));
    world.pass(3_000);
    assert_eq!(world.explained("a", None).unwrap().gone_ms, Some(3_000));
}

#[test]
fn times_names_and_bundles_keep_objects() {
    let mut world = World::retaining("{released_by: [plots]}");
    let p = world.join("p");
    world.offer_for(p, 1, "a", 5_000);
    world.offer_with(p, 2, "b", fixed::DEFAULT_RETENTION, 0);
    world.open(p, 3, "x", 2);
    world.stage(p, 4, 3, "c", "");
    world.pass(1_000);
    let retention = |name: &str| world.explained(name, None).unwrap().retention.unwrap();
    assert_eq!(
        (retention("a").rule.as_str(), retention("a").ends_in_ms),
        ("for", Some(4_000))
    );
    assert_eq!(
        (retention("b").rule.as_str(), retention("b").names),
        ("released_by", vec!["plots".to_owned()])
    );
    let staged = world.explained("c", None).unwrap();
    assert_eq!((staged.state.as_str(), staged.version.as_str()), ("staged", ""));
    assert_eq!(
        staged.bundle.map(|bundle| (bundle.path, bundle.members)),
        Some(("x".to_owned(), 1))
    );
}

#[test]
fn an_earlier_version_is_explained_by_its_number() {
    let mut world = World::new();
    let (p, c) = (world.join("p"), world.join("c"));
    world.require_named(c, 1, "all", "", 0);
    world.offer(p, 1, "a", "1", 0);
    world.offer(p, 2, "a", "2", 0);
    let newest = world.explained("a", None).unwrap();
    assert_eq!((newest.bytes, newest.kept_versions), (1, 1));
    let earlier = world.explained("a", Some(1)).unwrap();
    assert_eq!(
        (earlier.state.as_str(), earlier.because.join("+").as_str()),
        ("superseded", "owed")
    );
    assert_eq!(world.explained("a", Some(7)).unwrap_err().code(), Code::NotFound);
}

#[test]
fn keepers_are_the_sums_of_what_is_kept() {
    let mut world = World::new();
    let (p, c, d) = (world.join("p"), world.join("c"), world.join("d"));
    world.require_named(c, 1, "archive", "name=a/b", 0);
    world.offer(p, 1, "a", "12345678", 1);
    world.offer(p, 2, "b", "1234", 0);
    world.offer(p, 3, "e", "12", 1);
    world.open(p, 4, "x", 2);
    world.stage(p, 5, 4, "f", "1");
    world.demand(d, 1, "name=a", Some(0));
    world.demand(d, 2, "name=e", Some(0));
    world.release(d, 1);
    let (first, sums) = world.keepers();
    let sum = |because: &str| sums.get(because).map(|sum| (sum.objects, sum.bytes, sum.alone_bytes));
    assert_eq!(sum("owed"), Some((1, 8, 8)), "its retention is over");
    assert_eq!(sum("until_withdrawn"), Some((1, 4, 0)), "the requirement keeps it, too");
    assert_eq!(sum("released"), Some((1, 2, 0)), "d holds it, too");
    assert_eq!(sum("staged"), Some((1, 1, 1)));
    let memory = first.memory.unwrap();
    assert_eq!((memory.used_bytes, memory.inline_bytes), (15, 15));
    assert_eq!(sums.values().map(|sum| sum.bytes).sum::<u64>(), memory.used_bytes);
    assert_eq!((first.requirements[0].owed, first.requirements[0].owed_bytes), (2, 12));
    assert_eq!((first.bundles[0].path.as_str(), first.bundles[0].bytes), ("x", 1));
    let holding: Vec<_> = first
        .clients
        .iter()
        .map(|one| (one.client.name.as_str(), one.held, one.held_bytes))
        .collect();
    assert_eq!(holding, [("d", 1, 2)]);
}

#[test]
fn the_last_note_of_a_client_counts() {
    let mut world = World::new();
    let client = world.join_with_token("p", "offer".parse().unwrap(), 7);
    for text in ["first", "second"] {
        world.ask(client, 1, Request::Note(NoteRequest { text: text.into() }));
    }
    assert!(world.heard(client).is_empty());
    assert_eq!(world.core.stat().clients[0].note, "second");
    for text in ["x".repeat(NoteRequest::BYTES_MAX + 1), "a\u{7}".to_owned()] {
        world.ask(client, 2, Request::Note(NoteRequest { text: text.into() }));
        let heard = world.heard(client);
        assert!(heard[0].contains("InvalidArgument"), "{heard:?}");
    }
    assert_eq!(world.core.stat().clients[0].note, "second");
}

#[test]
fn a_client_without_the_right_to_read_asks_for_no_reasons() {
    let mut world = World::new();
    let client = world.join_with_token("p", "offer".parse().unwrap(), 7);
    world.ask(client, 1, Request::Waits(WaitsRequest::default()));
    world.ask(client, 2, Request::Keepers(KeepersRequest::default()));
    let heard = world.heard(client);
    assert!(
        heard.iter().all(|line| line.contains("Denied it needs the right read")),
        "{heard:?}"
    );
    let reader = world.join_with_token("c", "read".parse().unwrap(), 8);
    world.ask(reader, 1, Request::Waits(WaitsRequest::default()));
    world.ask(reader, 2, Request::Keepers(KeepersRequest::default()));
    assert_eq!(world.heard(reader), ["1: 0 wait", "2: kept"]);
}
