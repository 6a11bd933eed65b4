//! Bundles: all or nothing, at one point, in the order of keys; their openers, and their end.

use junctura_wire::Request;
use junctura_wire::body::{
    BundleAttributes, BundlesRequest, DemandRequest, LeaseRequest, ListRequest, TargetBody, events,
};
use junctura_wire::fixed;

use super::World;

fn list_bundles(world: &mut World, client: u32, number: u64, selector: &str, path: Option<&'static str>) {
    let bundles = BundlesRequest {
        selector: selector.into(),
        path: path.map(Into::into),
        after: 0,
    };
    world.ask(client, number, Request::Bundles(bundles));
}

fn look(world: &mut World, client: u32, number: u64, bundle: Option<&'static str>) {
    let list = ListRequest {
        incomplete: true,
        bundle: bundle.map(Into::into),
        ..ListRequest::default()
    };
    world.ask(client, number, Request::List(list));
}

fn demand_staged(world: &mut World, client: u32, number: u64, name: &str, timeout_ms: Option<u64>) {
    let key = world.key(name);
    let demand = DemandRequest {
        target: TargetBody::key(0, &key),
        timeout_ms,
        requirement: None,
        requirement_name: None,
        incomplete: true,
    };
    world.ask(client, number, Request::Demand(demand));
}

#[test]
fn members_become_visible_together_in_the_order_of_their_keys() {
    let mut world = World::new();
    let (p, c) = (world.join("p"), world.join("c"));
    world.follow(c, 1, |_| {});
    world.open(p, 1, "b", 3);
    for (number, name) in [(2, "z"), (3, "a")] {
        world.stage(p, number, 1, name, name);
    }
    world.offer(p, 4, "plain", "x", 0);
    assert_eq!(world.heard(c), ["1: began v0", "1: live", "1: got plain v1 x"]);
    world.list(c, 2, "", "");
    assert_eq!(world.heard(c), ["2: began v1", "2: listed plain."]);
    world.stage(p, 5, 1, "m", "m");
    assert_eq!(world.heard(c), ["1: got a v2 a", "1: got m v3 m", "1: got z v4 z"]);
    assert_eq!(
        world.heard(p),
        [
            "1: began v0",
            "2: staged",
            "3: staged",
            "4: offered v1",
            "1: completed 3 from v2 3=v2 5=v3 2=v4",
            "5: offered v3"
        ]
    );
}

#[test]
fn a_seal_completes_one_without_a_number() {
    let mut world = World::new();
    let (p, c) = (world.join("p"), world.join("c"));
    world.open(p, 1, "", 0);
    world.stage(p, 2, 1, "b", "");
    world.stage(p, 3, 1, "a", "");
    world.heard(p);
    world.demand(c, 1, "name=b", None);
    world.ask(p, 4, Request::Seal(1));
    assert_eq!(world.heard(p), ["1: completed 2 from v1 3=v1 2=v2", "4: done 2"]);
    assert_eq!(world.heard(c), ["1: got b v2 "]);
    world.stage(p, 5, 1, "c", "");
    world.ask(p, 6, Request::Seal(1));
    let closed = "BundleClosed it is complete; open another path, or declare more members";
    assert_eq!(world.heard(p), [format!("5: {closed}"), format!("6: {closed}")]);
}

#[test]
fn an_empty_one_can_be_sealed() {
    let mut world = World::new();
    let p = world.join("p");
    world.open(p, 1, "b", 0);
    world.ask(p, 2, Request::Seal(1));
    assert_eq!(world.heard(p), ["1: began v0", "1: completed 0 from v0", "2: done 0"]);
    world.leave(p);
    world.pass(600_000);
    world.assert_empty();
}

#[test]
fn one_too_many_is_refused_and_an_early_seal_too() {
    let mut world = World::new();
    let p = world.join("p");
    world.open(p, 1, "a", 2);
    world.open(p, 2, "a/b", 0);
    world.stage(p, 3, 1, "x", "");
    world.stage(p, 4, 1, "y", "");
    world.open(p, 5, "a/c", 0);
    world.ask(p, 6, Request::Seal(1));
    assert_eq!(
        world.heard(p),
        [
            "1: began v0",
            "2: began v0",
            "3: staged",
            "4: BundleFull it has all its 2 members",
            "5: BundleFull it has all its 2 members",
            "6: Conflict 1 of 2 members are there"
        ]
    );
    world.ask(p, 7, Request::Seal(2));
    assert_eq!(
        world.heard(p),
        ["1: completed 1 from v1 3=v1", "2: completed 1 from v1", "7: done 0"]
    );
    world.open(p, 8, "a", 2);
    world.open(p, 9, "a/d", 0);
    let closed = "BundleClosed it is complete; open another path, or declare more members";
    assert_eq!(world.heard(p), [format!("8: {closed}"), format!("9: {closed}")]);
}

#[test]
fn openers_must_agree_where_both_say_something() {
    let mut world = World::new();
    let (p, q) = (world.join("p"), world.join("q"));
    let about = |world: &World, name: &str| {
        let mut record = Vec::new();
        let given = [("name", junctura_model::Given::Text(name))];
        world.core.config.schemas[0].partial_record(given, &mut record).unwrap();
        record
    };
    let (x, y) = (about(&world, "x"), about(&world, "y"));
    world.open(p, 1, "b", 0);
    world.stage(p, 2, 1, "one", "");
    world.stage(p, 3, 1, "two", "");
    world.open_with(q, 1, |bundle| {
        bundle.path = Some("b".into());
        bundle.orphan_timeout_ms = Some(5);
        bundle.attributes = Some(BundleAttributes {
            schema: 0,
            record: x.clone().into(),
        });
    });
    world.open(q, 2, "b", 1);
    world.open(q, 3, "b", 4);
    world.open(p, 4, "b", 5);
    world.open_with(p, 5, |bundle| {
        bundle.path = Some("b".into());
        bundle.orphan_timeout_ms = Some(6);
    });
    world.open_with(p, 6, |bundle| {
        bundle.path = Some("b".into());
        bundle.attributes = Some(BundleAttributes {
            schema: 0,
            record: y.clone().into(),
        });
    });
    assert_eq!(
        world.heard(q),
        [
            "1: began v0",
            "2: Conflict it has 2 members already, not 1",
            "3: began v0"
        ]
    );
    assert_eq!(
        world.heard(p)[3..],
        [
            "4: Conflict it was opened with 4 members, not 5",
            "5: Conflict its orphan timeout is 5 ms, not 6 ms",
            "6: Conflict it has other attributes"
        ]
    );
    list_bundles(&mut world, q, 4, "name=x", None);
    list_bundles(&mut world, q, 5, "name=y", None);
    assert_eq!(world.heard(q), ["4: bundles b:open:2/4", "5: bundles"]);
}

#[test]
fn a_number_that_comes_late_may_complete_it() {
    let mut world = World::new();
    let (p, q) = (world.join("p"), world.join("q"));
    world.open(p, 1, "b", 0);
    world.stage(p, 2, 1, "one", "");
    world.heard(p);
    world.open(q, 1, "b", 1);
    assert_eq!(world.heard(p), ["1: completed 1 from v1 2=v1"]);
    assert_eq!(world.heard(q), ["1: began v0", "1: completed 1 from v1"]);
}

#[test]
fn the_same_key_counts_once_and_the_later_stands() {
    let mut world = World::rejecting();
    let p = world.join("p");
    world.open(p, 1, "b", 2);
    world.stage(p, 2, 1, "k", "old");
    world.stage(p, 3, 1, "k", "newer");
    assert_eq!(world.core.stat().bundles.staged_bytes, 5);
    assert_eq!(
        world.core.stat().memory.used_bytes,
        5,
        "the earlier one is freed at once"
    );
    world.stage(p, 4, 1, "l", "");
    assert_eq!(
        world.heard(p),
        [
            "1: began v0",
            "2: staged",
            "3: staged",
            "1: completed 2 from v1 3=v1 4=v2",
            "4: offered v2"
        ]
    );
}

#[test]
fn under_reject_staging_reserves_the_key() {
    let mut world = World::rejecting();
    let p = world.join("p");
    world.offer(p, 1, "there", "", 0);
    world.open(p, 2, "a", 0);
    world.open(p, 3, "b", 0);
    world.stage(p, 4, 2, "k", "");
    world.heard(p);
    world.offer(p, 5, "k", "", 0);
    world.stage(p, 6, 3, "k", "");
    world.stage(p, 7, 3, "there", "");
    let staged = "AlreadyExists an object with this key is staged in a bundle, and its schema rejects another";
    assert_eq!(
        world.heard(p),
        [
            format!("5: {staged}"),
            format!("6: {staged}"),
            "7: AlreadyExists an object with this key is in the pool; its key is free at once with `junctura pool withdraw \
             '{set=all}{}{name=there}' --schema letters --forget`; with `same_key: supersede` in its schema another replaces it"
                .to_owned()
        ]
    );
    world.ask(p, 8, Request::Abort(2));
    world.stage(p, 9, 3, "k", "");
    assert_eq!(world.heard(p), ["8: done 1", "9: staged"]);
}

#[test]
fn a_key_that_is_gone_is_free_in_a_stated_time() {
    let mut world = World::rejecting();
    let p = world.join("p");
    world.offer(p, 1, "k", "", 0);
    world.withdraw(p, 2, "k", None, false);
    world.heard(p);
    world.pass(100_000);
    world.offer(p, 3, "k", "", 0);
    let heard = world.heard(p);
    assert!(
        heard[0].starts_with("3: AlreadyExists an object with this key was in the pool, and was withdrawn 100 s ago"),
        "{heard:?}"
    );
    assert!(heard[0].contains("its key is free in 500 s"), "{heard:?}");
}

#[test]
fn under_supersede_each_bundle_brings_its_own_version() {
    let mut world = World::new();
    let (p, c) = (world.join("p"), world.join("c"));
    world.require(c, 1, "", false);
    world.open(p, 1, "a", 0);
    world.open(p, 2, "b", 0);
    world.stage(p, 3, 1, "k", "from a");
    world.stage(p, 4, 2, "k", "from b");
    world.offer(p, 5, "k", "plain", 0);
    world.ask(p, 6, Request::Seal(2));
    world.ask(p, 7, Request::Seal(1));
    world.demand(c, 2, "name=k", None);
    assert_eq!(world.heard(c), ["1: began v0", "2: got k v3 from a"]);
    assert_eq!(world.core.stat().totals.superseded, 2);
    assert_eq!(world.core.stat().interests.requirements, 1);
}

#[test]
fn a_key_is_staged_once_in_a_tree() {
    let mut world = World::new();
    let p = world.join("p");
    world.open(p, 1, "a", 0);
    world.open(p, 2, "a/b", 0);
    world.stage(p, 3, 1, "k", "");
    world.stage(p, 4, 2, "k", "");
    assert_eq!(
        world.heard(p)[3..],
        ["4: Conflict it is staged in bundle a, which becomes visible with this one"]
    );
}

#[test]
fn a_nested_one_is_a_member_and_the_whole_tree_is_visible_at_once() {
    let mut world = World::new();
    let (p, q, c) = (world.join("p"), world.join("q"), world.join("c"));
    world.open(p, 1, "a", 2);
    world.open(q, 1, "a/b", 2);
    world.stage(q, 2, 1, "3", "");
    world.stage(q, 3, 1, "1", "");
    world.stage(q, 4, 1, "5", "");
    world.ask(q, 5, Request::Seal(1));
    list_bundles(&mut world, c, 1, "", Some("a"));
    assert_eq!(world.heard(c), ["1: bundles a:open:1/2 a/b:complete:2/2"]);
    let closed = "BundleClosed it is complete; open another path, or declare more members";
    assert_eq!(
        world.heard(q),
        [
            "1: began v0",
            "2: staged",
            "3: staged",
            &format!("4: {closed}"),
            &format!("5: {closed}")
        ]
    );
    world.subscribe(c, 2, "", events::OFFERED | events::COMPLETED);
    world.stage(p, 2, 1, "2", "");
    assert_eq!(
        world.heard(c),
        [
            "2: began v0",
            "2: offered 1 v1 by q",
            "2: offered 2 v2 by p",
            "2: offered 3 v3 by q",
            "2: completed a 2 of 2 by p",
            "2: completed a/b 2 of 2 by p"
        ]
    );
    assert_eq!(world.heard(q), ["1: completed 3 from v1 3=v1 2=v3"]);
    list_bundles(&mut world, c, 3, "", Some("a/b"));
    assert_eq!(world.heard(c), ["3: bundles a/b:visible:2/2"]);
}

#[test]
fn what_is_inside_must_be_opened_after_what_is_outside() {
    let mut world = World::new();
    let p = world.join("p");
    world.open(p, 1, "a/b", 0);
    world.open(p, 2, "a", 0);
    world.open(p, 3, "a/b/c", 0);
    world.ask(p, 4, Request::Seal(1));
    world.ask(p, 5, Request::Seal(3));
    world.ask(p, 6, Request::Seal(1));
    world.open(p, 7, "a", 0);
    assert_eq!(
        world.heard(p),
        [
            "1: began v0",
            "2: Conflict a/b was opened before it, and is independent",
            "3: began v0",
            "4: Conflict bundle a/b/c is nested in it and is not complete",
            "5: done 0",
            "1: completed 0 from v0",
            "3: completed 0 from v0",
            "6: done 0",
            "7: began v0"
        ]
    );
}

#[test]
fn it_survives_its_producer_as_long_as_another_has_it_open() {
    let mut world = World::new();
    let (p, q) = (world.join("p"), world.join("q"));
    world.open(p, 1, "b", 2);
    world.open(q, 1, "b", 0);
    world.lease(p, 2, 8192, None);
    world.offer_slot(p, 3, "unrelated", 1, 0, 10);
    world.stage(p, 4, 1, "from-p", "");
    world.leave(p);
    world.pass(3_600_000);
    world.stage(q, 2, 1, "from-q", "");
    assert_eq!(
        world.heard(q),
        ["1: began v0", "1: completed 2 from v2 2=v3", "2: offered v3"]
    );
}

#[test]
fn an_orphan_can_be_adopted_until_its_timeout_and_is_aborted_then() {
    let mut world = World::new();
    let (p, c) = (world.join("p"), world.join("c"));
    world.subscribe(c, 1, "", events::ABORTED | events::COMPLETED | events::OFFERED);
    world.open(p, 1, "b", 3);
    world.stage(p, 2, 1, "x", "payload");
    world.leave(p);
    world.pass(59_999);
    let q = world.join("q");
    world.open(q, 1, "b", 3);
    world.stage(q, 2, 1, "y", "payload");
    world.pass(600_000);
    world.ask(q, 3, Request::Stop(1));
    world.pass(59_999);
    assert_eq!(world.heard(c), ["1: began v0"]);
    assert_eq!(world.core.stat().bundles.staged, 2);
    world.pass(1);
    assert_eq!(world.heard(c), ["1: aborted b 2 of 3 why"]);
    world.demand_key(c, 2, "x", Some(0));
    assert_eq!(
        world.heard(c),
        ["2: NotFound no object in the pool matches now; a demand with a timeout waits for one"],
        "and not Gone"
    );
    world.open(q, 4, "b", 7);
    world.ask(q, 5, Request::Abort(4));
    assert_eq!(
        world.heard(q),
        ["1: began v0", "2: staged", "3: done 0", "4: began v0", "5: done 0"]
    );
    world.leave(c);
    world.leave(q);
    world.assert_empty();
}

#[test]
fn a_pool_is_not_deserted_while_a_bundle_is_open_even_an_empty_one() {
    let mut world = World::new();
    let p = world.join("p");
    world.open(p, 1, "b", 3);
    world.leave(p);
    assert!(!world.core.is_deserted());
    world.pass(60_000);
    assert!(world.core.is_deserted());
}

#[test]
fn its_own_orphan_timeout_counts() {
    let mut world = World::new();
    let p = world.join("p");
    world.open_with(p, 1, |bundle| {
        bundle.path = Some("b".into());
        bundle.orphan_timeout_ms = Some(5);
    });
    world.stage(p, 2, 1, "x", "");
    world.leave(p);
    world.pass(4);
    assert_eq!(world.core.stat().bundles.open, 1);
    world.pass(1);
    world.assert_empty();
}

#[test]
fn whoever_works_inside_keeps_what_is_outside() {
    let mut world = World::new();
    let (p, q) = (world.join("p"), world.join("q"));
    world.open(p, 1, "a", 0);
    world.open(q, 1, "a/b", 0);
    world.leave(p);
    world.pass(3_600_000);
    assert_eq!(world.core.stat().bundles.open, 2);
    world.leave(q);
    world.pass(60_000);
    world.assert_empty();
}

#[test]
fn an_orphan_inside_frees_its_place() {
    let mut world = World::new();
    let (p, q) = (world.join("p"), world.join("q"));
    world.open(p, 1, "a", 1);
    world.open(q, 1, "a/b", 0);
    world.stage(q, 2, 1, "lost", "");
    world.leave(q);
    world.stage(p, 2, 1, "x", "");
    world.pass(60_000);
    world.stage(p, 3, 1, "x", "");
    assert_eq!(
        world.heard(p),
        [
            "1: began v0",
            "2: BundleFull it has all its 1 members",
            "1: completed 1 from v1 3=v1",
            "3: offered v1"
        ]
    );
}

#[test]
fn one_without_a_path_goes_with_its_client() {
    let mut world = World::new();
    let (p, c) = (world.join("p"), world.join("c"));
    world.subscribe(c, 1, "", events::ABORTED);
    world.open(p, 1, "", 0);
    world.lease(p, 2, 8192, None);
    world.heard(p);
    world.stage(p, 3, 1, "x", "bytes");
    world.leave(p);
    assert_eq!(world.heard(c), ["1: began v0", "1: aborted - 1 why"]);
    world.leave(c);
    world.assert_empty();
}

#[test]
fn an_abort_ends_it_for_all_and_frees_what_is_nested() {
    let mut world = World::new();
    let (p, q) = (world.join("p"), world.join("q"));
    world.open(p, 1, "a", 0);
    world.open(q, 1, "a", 0);
    world.open(q, 2, "a/b", 1);
    world.stage(q, 3, 2, "inside", "");
    world.stage(p, 2, 1, "outside", "");
    world.ask(p, 3, Request::Abort(1));
    world.stage(q, 4, 1, "late", "");
    assert_eq!(world.heard(p), ["1: began v0", "2: staged", "3: done 2"]);
    assert_eq!(
        world.heard(q),
        [
            "1: began v0",
            "2: began v0",
            "3: staged",
            "1: Closed it was aborted: a producer aborted it",
            "2: Closed it was aborted: a producer aborted it",
            "4: Closed this client has not opened it, or it was aborted"
        ]
    );
    assert_eq!(world.core.stat().memory.used_bytes, 0);
    assert_eq!(world.core.stat().bundles.open, 0);
}

#[test]
fn a_path_is_remembered_as_long_as_its_objects_and_then_as_a_tombstone() {
    let mut world = World::with(|config| config.tombstone_age = std::time::Duration::from_secs(5));
    let p = world.join("p");
    world.open(p, 1, "b", 1);
    world.stage(p, 2, 1, "x", "");
    world.pass(3_600_000);
    world.open(p, 3, "b", 1);
    world.withdraw(p, 4, "x", None, false);
    world.pass(4999);
    world.open(p, 5, "b", 1);
    world.pass(1);
    world.open(p, 6, "b", 1);
    assert_eq!(
        world.heard(p)[3..],
        [
            "3: BundleClosed it is complete; open another path, or declare more members",
            "4: done 1",
            "5: BundleClosed it is complete; open another path, or declare more members",
            "6: began v1"
        ]
    );
}

#[test]
fn no_more_paths_are_remembered_than_may_be() {
    let mut world = World::with(|config| config.limits.bundles_remembered = 2);
    let p = world.join("p");
    for (number, path) in [(10, "a"), (20, "b"), (30, "c")] {
        world.open(p, number, path, 1);
        world.stage(p, number + 1, number, path, "");
    }
    world.heard(p);
    list_bundles(&mut world, p, 40, "", None);
    assert_eq!(world.heard(p), ["40: bundles b:visible:1/1 c:visible:1/1"]);
    world.withdraw(p, 41, "a", None, false);
    world.withdraw(p, 42, "c", None, false);
    world.open(p, 50, "d", 1);
    world.stage(p, 51, 50, "d", "");
    world.heard(p);
    list_bundles(&mut world, p, 60, "", None);
    assert_eq!(
        world.heard(p),
        ["60: bundles b:visible:1/1 d:visible:1/1"],
        "first those without objects"
    );
}

#[test]
fn a_time_of_retention_counts_from_visibility() {
    let mut world = World::new();
    let p = world.join("p");
    world.open(p, 1, "b", 0);
    world.stage_for(p, 2, 1, "x", "", (fixed::FOR_A_TIME, 10));
    world.pass(1000);
    world.ask(p, 3, Request::Seal(1));
    world.pass(9);
    assert_eq!(world.core.stat().objects.visible, 1);
    world.pass(1);
    assert_eq!(world.core.stat().objects.visible, 0);
}

#[test]
fn staged_members_that_fill_the_memory_fail_at_once() {
    let mut world = World::with(|config| config.budget_bytes = 10);
    let (p, c) = (world.join("p"), world.join("c"));
    world.offer(p, 1, "kept", "four", 0);
    world.open(p, 2, "b", 0);
    world.stage(p, 3, 2, "x", "sixsix");
    world.stage(p, 4, 2, "waits", "four");
    assert_eq!(world.heard(p), ["1: offered v1", "2: began v1", "3: staged"]);
    world.stage(p, 5, 2, "behind", "");
    world.withdraw(c, 1, "kept", None, false);
    assert_eq!(world.heard(p), ["4: staged", "5: staged"]);
    world.stage(p, 6, 2, "y", "z");
    world.offer(p, 7, "plain", "z", 0);
    let full = "PoolFull of 10 B, 10 B are taken by 3 members of bundles that are not complete, and only those could free them";
    assert_eq!(world.heard(p), [format!("6: {full}")]);
    world.ask(p, 8, Request::Abort(2));
    assert_eq!(world.heard(p), ["8: done 3", "7: offered v2"]);
}

#[test]
fn a_lease_for_a_member_does_not_wait_in_vain() {
    let mut world = World::with(|config| config.budget_bytes = 1 << 20);
    let (p, q) = (world.join("p"), world.join("q"));
    world.lease(p, 1, 1 << 20, None);
    world.open(p, 2, "b", 0);
    let lease = |staged| {
        Request::Lease(LeaseRequest {
            payload_bytes: 1 << 20,
            timeout_ms: None,
            staged,
        })
    };
    world.ask(q, 1, lease(true));
    assert!(world.heard(q).is_empty(), "the staged object may still be aborted");
    let record = world.record("big", 0);
    let place = fixed::OfferHead {
        segment: 1.into(),
        record_length: (record.len() as u32).into(),
        length: (1u64 << 20).into(),
        ..fixed::OfferHead::default()
    };
    let stage = Request::Stage {
        bundle: 2,
        head: place,
        record: &record,
        inline: &[],
    };
    world.ask(p, 3, stage);
    world.ask(q, 2, lease(true));
    world.ask(q, 3, lease(false));
    let heard = world.heard(q);
    assert_eq!(heard.len(), 2, "{heard:?}");
    assert!(
        heard[0].starts_with("1: PoolFull") && heard[1].starts_with("2: PoolFull"),
        "{heard:?}"
    );
    world.ask(p, 4, Request::Abort(2));
    world.ask(p, 5, Request::Return(1));
    assert_eq!(world.heard(q), ["3: leased 2"]);
}

#[test]
fn only_who_asks_for_it_sees_what_is_staged() {
    let mut world = World::new();
    let (p, c) = (world.join("p"), world.join("c"));
    world.open(p, 1, "b", 0);
    world.offer(p, 2, "plain", "", 0);
    demand_staged(&mut world, c, 1, "x", None);
    world.stage_for(p, 3, 1, "x", "one", (0, 1));
    world.demand_key(c, 2, "x", Some(0));
    demand_staged(&mut world, c, 3, "x", Some(0));
    look(&mut world, c, 4, None);
    look(&mut world, c, 5, Some("b"));
    look(&mut world, c, 6, Some("nothing"));
    assert_eq!(
        world.heard(c),
        [
            "1: got x v0 one",
            "2: NotFound no object in the pool matches now; a demand with a timeout waits for one",
            "3: got x v0 one",
            "4: began v1",
            "4: listed plain x.",
            "5: began v1",
            "5: listed x.",
            "6: NotFound no bundle has this path, or it ended long ago; `junctura pool bundle list` lists them"
        ]
    );
    world.ask(p, 4, Request::Seal(1));
    world.release(c, 0);
    assert_eq!(world.core.stat().objects.visible, 2, "a look before is no release");
    world.demand_key(c, 7, "x", None);
    world.release(c, 2);
    assert_eq!(world.core.stat().objects.visible, 1);
}

#[test]
fn what_was_looked_at_stays_readable_after_an_abort() {
    let mut world = World::new();
    let (p, c) = (world.join("p"), world.join("c"));
    world.open(p, 1, "b", 0);
    world.stage(p, 2, 1, "x", "bytes");
    demand_staged(&mut world, c, 1, "x", None);
    world.ask(p, 3, Request::Abort(1));
    assert_eq!(world.core.stat().memory.used_bytes, 5);
    world.release(c, 0);
    assert_eq!(world.core.stat().memory.used_bytes, 0);
}

#[test]
fn a_list_shows_what_came_in_a_bundle() {
    let mut world = World::new();
    let (p, c) = (world.join("p"), world.join("c"));
    world.offer(p, 1, "plain", "", 0);
    world.open(p, 2, "a", 0);
    world.open(p, 3, "a/b", 0);
    world.stage(p, 4, 2, "x", "");
    world.stage(p, 5, 3, "y", "");
    world.ask(p, 6, Request::Seal(3));
    world.ask(p, 7, Request::Seal(2));
    look(&mut world, c, 1, Some("a"));
    look(&mut world, c, 2, Some("a/b"));
    assert_eq!(
        world.heard(c),
        ["1: began v3", "1: listed x y.", "2: began v3", "2: listed y."]
    );
}

#[test]
fn requirements_are_owed_each_member() {
    let mut world = World::new();
    let (p, c) = (world.join("p"), world.join("c"));
    world.require_named(c, 1, "n", "", 0);
    world.open(p, 1, "b", 2);
    world.stage_for(p, 2, 1, "x", "", (0, 1));
    assert_eq!(world.core.stat().named_requirements[0].owed, 0);
    world.stage_for(p, 3, 1, "y", "", (0, 1));
    assert_eq!(world.core.stat().named_requirements[0].owed, 2);
}

#[test]
fn a_drain_aborts_what_is_not_complete() {
    let mut world = World::new();
    let (p, c) = (world.join("p"), world.join("c"));
    world.require(c, 1, "", false);
    world.offer(p, 1, "owed", "", 0);
    world.open(p, 2, "b", 0);
    world.stage(p, 3, 2, "x", "bytes");
    world.heard(p);
    world.core.drain(world.now, None, &mut world.fx);
    world.stage(p, 4, 2, "y", "");
    world.open(p, 5, "c", 0);
    let heard = world.heard(p);
    assert_eq!(heard[0], "2: Closed it was aborted: the pool drains");
    assert!(
        heard[1].starts_with("4: Closed") && heard[2].starts_with("5: Closed"),
        "{heard:?}"
    );
    assert_eq!(world.core.stat().memory.used_bytes, 0);
}

#[test]
fn limits_are_kept() {
    let mut world = World::with(|config| {
        config.limits.bundles_open = 1;
        config.limits.members_per_bundle = 2;
        config.limits.bundle_attribute_bytes = 3;
    });
    let p = world.join("p");
    world.open(p, 1, "a", 3);
    world.open_with(p, 2, |bundle| bundle.members = Some(0));
    let record = world.key("x");
    world.open_with(p, 3, |bundle| {
        bundle.attributes = Some(BundleAttributes {
            schema: 0,
            record: record.clone().into(),
        });
    });
    world.open(p, 4, "a//b", 0);
    world.open(p, 5, "a", 0);
    world.open(p, 6, "b", 0);
    for (number, name) in [(7, "x"), (8, "y"), (9, "z")] {
        world.stage(p, number, 5, name, "");
    }
    world.stage(p, 10, 77, "x", "");
    let heard = world.heard(p);
    let codes: Vec<&str> = heard.iter().map(|line| line.split(' ').nth(1).unwrap()).collect();
    assert_eq!(
        codes,
        [
            "LimitExceeded",
            "InvalidArgument",
            "TooLarge",
            "InvalidArgument",
            "began",
            "LimitExceeded",
            "staged",
            "staged",
            "LimitExceeded",
            "Closed"
        ]
    );
}
