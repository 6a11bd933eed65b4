//! Members of bundles that are removed with the others, and members that are delivered once.

use junctura_model::{Given, Schema};
use junctura_wire::body::BundleAttributes;
use junctura_wire::fixed;

use super::World;

#[test]
fn pieces_in_another_layout_conflict_while_their_array_is_filled_and_exist_when_it_is_complete() {
    let mut world = World::with(|config| config.schemas.extend(Schema::piece()));
    let p = world.join("p");
    let open = |world: &mut World, number: u64, (path, schema): (&'static str, u16), value: &str| {
        let name = ["name", "layout"][usize::from(schema)];
        let mut record = Vec::new();
        let given = [(name, Given::Text(value))];
        world.core.config.schemas[usize::from(schema)]
            .partial_record(given, &mut record)
            .unwrap();
        world.open_with(p, number, |bundle| {
            bundle.path = Some(path.into());
            bundle.members = Some(1);
            bundle.attributes = Some(BundleAttributes {
                schema,
                record: record.into(),
            });
        });
        world.heard(p).pop().unwrap()
    };
    let (array, nested, other) = (("array.1", 1), ("step/array.1", 1), ("b", 0));
    world.open(p, 1, "step", 2);
    for (number, one) in [(10, array), (20, nested), (30, other)] {
        assert!(open(&mut world, number, one, "shape=4 grid=2").contains("began"));
        assert!(open(&mut world, number + 1, one, "shape=4 grid=4").contains("Conflict it has other attributes"));
        world.stage(p, number + 2, number, &format!("n{number}"), "");
    }
    world.heard(p);
    let refused =
        |text: &str| text.ends_with("AlreadyExists it is complete, and its pieces have another layout or type");
    for one in [array, nested] {
        let answers = ["shape=4 grid=4", "shape=4 grid=2"].map(|layout| open(&mut world, 40, one, layout));
        assert!(
            refused(&answers[0]) && answers[1].contains("BundleClosed"),
            "{answers:?}"
        );
    }
    assert!(open(&mut world, 41, other, "shape=4 grid=4").contains("Conflict it has other attributes"));
    world.withdraw(p, 42, "n10", None, false);
    assert!(
        refused(&open(&mut world, 43, array, "shape=4 grid=4")),
        "its path is remembered"
    );
}

#[test]
fn what_stays_together_leaves_with_the_others() {
    let mut world = World::new();
    let (p, c) = (world.join("p"), world.join("c"));
    world.open(p, 1, "b", 5);
    for (number, name) in [(2, "one"), (3, "two"), (4, "three")] {
        world.stage_for(p, number, 1, name, "", (fixed::TOGETHER, 0));
    }
    world.stage_for(p, 5, 1, "head", "", (0, 1));
    world.stage_for(p, 6, 1, "other", "", (0, 1));
    // Some members may be removed before, without the others.
    world.withdraw(p, 7, "one", None, false);
    for (name, sequence, left) in [("head", 1, "other three two"), ("other", 3, "")] {
        world.demand_key(c, sequence, name, None);
        world.release(c, sequence);
        world.heard(c);
        world.list(c, 10 + sequence, "", "");
        let heard = world.heard(c).pop().unwrap_or_default();
        let listed = heard.split_once("listed ").map_or("", |(_, names)| names);
        assert_eq!(listed.trim_end_matches('.'), left);
    }
    for client in [p, c] {
        world.leave(client);
    }
    world.assert_empty();
}

#[test]
fn what_stays_together_stays_while_others_do() {
    let mut world = World::new();
    let (p, c) = (world.join("p"), world.join("c"));
    world.open(p, 1, "b", 2);
    world.stage_for(p, 2, 1, "piece", "", (fixed::TOGETHER, 0));
    world.stage_for(p, 3, 1, "array", "", (0, 0));
    world.demand_key(c, 1, "piece", None);
    world.release(c, 2);
    world.demand_key(c, 2, "piece", None);
    assert!(world.heard(c)[1].contains("got piece"));
    // A holder keeps its object until it releases it.
    world.withdraw(p, 4, "array", None, false);
    world.list(c, 3, "", "");
    assert_eq!(world.heard(c).last().map(String::as_str), Some("3: listed ."));
    world.release(c, 2);
    // Outside of a bundle there is nothing to stay with.
    world.offer_with(p, 5, "alone", fixed::TOGETHER, 0);
    assert!(
        world
            .heard(p)
            .last()
            .is_some_and(|last| last.contains("InvalidArgument"))
    );
    for client in [p, c] {
        world.leave(client);
    }
    world.assert_empty();
}

#[test]
fn a_member_that_comes_once_is_not_replaced() {
    let mut world = World::new();
    let p = world.join("p");
    world.open(p, 1, "b", 2);
    world.stage_for(p, 2, 1, "a", "first", (fixed::ONCE, 0));
    world.stage_for(p, 3, 1, "a", "second", (fixed::ONCE, 0));
    let heard = world.heard(p);
    assert!(heard[2].contains("AlreadyExists"), "{heard:?}");
    world.stage_for(p, 4, 1, "b", "", (fixed::ONCE, 0));
    assert!(world.heard(p).iter().any(|heard| heard.contains("completed 2")));
}

#[test]
fn packing_is_not_for_the_server() {
    let mut world = World::new();
    let c = world.join("c");
    world.ask(
        c,
        1,
        junctura_wire::Request::Pack(junctura_wire::body::PackBody::default()),
    );
    world.demand(c, 2, "name=a", Some(0));
    let heard = world.heard(c);
    assert!(heard[0].starts_with("1: Unsupported a client that shares"), "{heard:?}");
    assert!(heard[1].starts_with("2: NotFound"), "{heard:?}");
}
