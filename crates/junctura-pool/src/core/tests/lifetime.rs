//! A pool that ends when its programs have connected and disconnected, and requirements that exist before any client.

use junctura_model::requirements::parse_yaml;
use junctura_wire::body::Hello;
use junctura_wire::{Request, VERSION};

use super::World;

fn world(names: &[&str]) -> World {
    let names = names.iter().map(|&name| name.to_owned()).collect();
    World::with(|config| config.until_gone = names)
}

fn is_over(world: &World) -> bool {
    world.core.ending().is_some()
}

#[test]
fn it_ends_with_the_last_client_of_the_last_name() {
    let mut world = world(&["model", "viewer"]);
    let other = world.join("other");
    let (one, two) = (world.join("model"), world.join("model"));
    world.offer(other, 1, "a", "no requirement is owed it", 0);
    world.leave(one);
    world.leave(two);
    assert!(!is_over(&world), "the viewer has not connected");
    let again = world.join("model");
    let viewer = world.join("viewer");
    world.leave(viewer);
    assert!(!is_over(&world), "a model is here again");
    let states: Vec<_> = world
        .core
        .stat()
        .until_gone
        .into_iter()
        .map(|one| (one.state, one.clients))
        .collect();
    assert_eq!(states, [("here", 1), ("gone", 0)]);
    world.ask(again, 1, Request::Goodbye);
    assert!(is_over(&world));
    assert!(world.core.is_left_by_its_components());
}

#[test]
fn what_requirements_are_owed_is_received_first() {
    let mut world = world(&["model"]);
    let (archive, model) = (world.join("archive"), world.join("model"));
    world.require(archive, 1, "", false);
    world.offer(model, 1, "a", "", 0);
    world.leave(model);
    world.demand(archive, 2, "name=never", None);
    let closed = "2: Closed draining: it takes nothing new, and ends when what is owed has been received";
    assert_eq!(world.heard(archive)[1..], [closed]);
    world.follow(archive, 3, |follow| follow.requirement = Some(1));
    world.release(archive, 1);
    assert!(is_over(&world));
}

#[test]
fn strangers_and_visitors_do_not_count() {
    let mut world = world(&["model"]);
    let stranger = world.core.join().unwrap();
    world.leave(stranger);
    let visitor = world.core.join().unwrap();
    let hello = Hello {
        version: VERSION,
        name: "model".into(),
        visits: true,
        ..Hello::default()
    };
    world.ask(visitor, 1, Request::Hello(hello));
    world.leave(visitor);
    assert!(!is_over(&world));
    let other = World::new();
    assert!(
        !other.core.is_left_by_its_components(),
        "a pool without components does not end"
    );
}

#[test]
fn requirements_can_stand_before_the_first_client() {
    let mut world = World::new();
    let file =
        "requirements:\n  archive: {selector: name=a}\n  short: {selector: '', time_to_live: 10ms, group: true}\n";
    for written in parse_yaml(file).unwrap() {
        world.core.require_from_the_start(&written).unwrap();
        world.core.require_from_the_start(&written).unwrap();
    }
    let p = world.join("p");
    world.offer(p, 1, "a", "", 1);
    let owed = |world: &World| -> Vec<_> {
        let named = world.core.stat().named_requirements;
        named.into_iter().map(|one| (one.name, one.owed)).collect()
    };
    assert_eq!(owed(&world), [("archive".to_owned(), 1), ("short".to_owned(), 1)]);
    world.pass(10);
    assert_eq!(
        owed(&world),
        [("archive".to_owned(), 1)],
        "the other was unused for its time to live"
    );
    for (wrong, said) in [("{selector: 'a='}", "line 2"), ("{selector: name=b}", "it stands for")] {
        let written = parse_yaml(&format!("requirements:\n  archive: {wrong}\n")).unwrap();
        let error = world.core.require_from_the_start(&written[0]).unwrap_err();
        assert!(error.to_string().contains(said), "{error}");
    }
}
