//! Tokens with fewer rights: the refusals of their clients, and that a refusal has no other effect.

use junctura_wire::Request;
use junctura_wire::body::{DemandRequest, DrainRequest, TargetBody, WithdrawRequest};
use junctura_wire::rights::AccessRights;

use super::World;

fn withdraw(world: &mut World, client: u32, number: u64, name: &str) {
    let selector = format!("name={name}");
    let request = WithdrawRequest {
        target: TargetBody::selector(&selector),
        timeout_ms: Some(0),
        force: true,
    };
    world.ask(client, number, Request::WithdrawAll(request));
}

fn refusals(world: &mut World, client: u32) -> Vec<String> {
    let heard = world.heard(client);
    for line in &heard {
        assert!(line.contains("Denied") && line.contains("has"), "{line}");
    }
    heard
}

#[test]
fn a_reader_reads_and_changes_nothing() {
    let mut world = World::new();
    let p = world.join("p");
    world.offer(p, 1, "a", "one", 0);
    world.require_named(p, 2, "r", "name=b", 0);
    let viewer = world.join_with_token("viewer", AccessRights::READ, 7);
    world.demand(viewer, 1, "name=a", Some(0));
    assert_eq!(world.heard(viewer), ["1: got a v1 one"]);
    world.offer(viewer, 2, "b", "two", 0);
    world.open(viewer, 3, "bundle", 1);
    withdraw(&mut world, viewer, 4, "a");
    world.ask(viewer, 5, Request::Drain(DrainRequest { timeout_ms: Some(0) }));
    world.retract(viewer, 6, "r");
    let refused = refusals(&mut world, viewer);
    assert_eq!(refused.len(), 5, "{refused:?}");
    let missing = ["offer", "offer", "offer", "admin", "admin"];
    for (line, right) in refused.iter().zip(missing) {
        assert!(line.contains(&format!("needs the right {right}")), "{line}");
        assert!(line.contains("token 00000007 of this client has read;"), "{line}");
    }
    assert!(refused[0].contains("--rights read,offer"), "{}", refused[0]);
    assert!(refused[3].contains("--rights admin"), "{}", refused[3]);
    assert_eq!(world.core.stat().objects.visible, 1);
    world.offer(p, 3, "c", "three", 0);
    world.retract(p, 4, "r");
    assert!(world.heard(p).iter().all(|line| !line.contains("Denied")));
}

#[test]
fn a_producer_offers_and_reads_nothing() {
    let mut world = World::new();
    let producer = world.join_with_token("producer", "offer".parse().unwrap(), 8);
    world.offer(producer, 1, "a", "one", 0);
    world.heard(producer);
    world.demand(producer, 2, "name=a", Some(0));
    let stat = world.core.stat().objects.visible;
    assert_eq!((refusals(&mut world, producer).len(), stat), (1, 1));
    withdraw(&mut world, producer, 3, "a");
    assert_eq!(world.core.stat().objects.visible, 0);
}

#[test]
fn a_reader_removes_the_requirement_that_its_token_made() {
    let mut world = World::new();
    let rights = AccessRights::READ;
    let (maker, other) = (
        world.join_with_token("m", rights, 7),
        world.join_with_token("o", rights, 8),
    );
    world.require_named(maker, 1, "mine", "name=a", 0);
    world.leave(maker);
    world.require_named(other, 1, "mine", "name=a", 0);
    world.heard(other);
    world.retract(other, 2, "mine");
    world.retract(other, 3, "none");
    assert_eq!(refusals(&mut world, other).len(), 2);
    let again = world.join_with_token("m", rights, 7);
    world.retract(again, 1, "mine");
    assert_eq!(world.heard(again), ["1: done 0"]);
}

#[test]
fn a_client_without_a_token_removes_nothing_for_having_none() {
    let mut world = World::new();
    let p = world.join("p");
    world.require_named(p, 1, "r", "name=a", 0);
    let viewer = world.join_with_token("viewer", AccessRights::READ, 0);
    world.retract(viewer, 1, "r");
    assert_eq!(refusals(&mut world, viewer).len(), 1);
}

#[test]
fn a_reader_uses_a_requirement_of_others() {
    let mut world = World::new();
    let p = world.join("p");
    world.require_named(p, 1, "r", "name=a", 0);
    world.offer(p, 2, "a", "one", 1);
    let viewer = world.join_with_token("viewer", AccessRights::READ, 7);
    let selector = "name=a".to_owned();
    let demand = DemandRequest {
        target: TargetBody::selector(&selector),
        timeout_ms: Some(0),
        requirement: None,
        requirement_name: Some("r".into()),
        incomplete: false,
    };
    world.ask(viewer, 1, Request::Demand(demand));
    assert_eq!(world.heard(viewer), ["1: got a v1 one"]);
}
