//! Counts and the first objects of a list, prepared or not, are those of looking at each object.

use std::collections::BTreeMap;

use junctura_model::selector::SelectorSet;
use junctura_wire::Request;
use junctura_wire::body::{ListOrder, ListRequest};
use junctura_wire::look::{ListPosition, TallyRequest};
use proptest::prelude::*;

use super::World;

const SELECTORS: [&str; 6] = [
    "",
    "name=a/b/c/d",
    "size>1",
    "not name=a",
    "name~\"^[b-e]\"",
    "size=1/2,name!=c",
];
const GROUPINGS: [&[&str]; 5] = [&[], &["size"], &["name"], &["size", "name"], &["set", "size"]];

fn tally<'a>(selector: &'a str, by: &[&'a str]) -> TallyRequest<'a> {
    TallyRequest {
        selector: selector.into(),
        by: by.iter().map(|&name| name.into()).collect(),
        limit: 1000,
        ..TallyRequest::default()
    }
}

fn first(selector: &str, limit: u64) -> ListRequest<'_> {
    ListRequest {
        selector: selector.into(),
        limit: Some(limit),
        ..ListRequest::default()
    }
}

/// Returns names, sizes and lengths of the matching objects that are visible, up to a number.
fn matching(world: &World, selector: &str, newest: u64) -> Vec<(String, i64, u64)> {
    let objects = &world.core.exchange.objects;
    let selectors = SelectorSet::parse(selector, &objects.config.schemas).unwrap();
    let schema = &objects.config.schemas[0];
    let mut found = Vec::new();
    for (_, object) in &objects.table {
        if object.is_visible() && object.sequence <= newest && selectors.of(0).unwrap().matches(object.record()) {
            let text = |name| object.record().get(schema.find(name).unwrap()).unwrap();
            found.push((text("name").to_owned(), text("size").parse().unwrap(), object.length));
        }
    }
    found.sort();
    found
}

/// The answer to a tally with one group for each combination.
fn counted(world: &World, request: &TallyRequest<'_>, newest: u64) -> String {
    let mut groups: BTreeMap<Vec<(i64, String)>, (u64, u64)> = BTreeMap::new();
    for (name, size, length) in matching(world, &request.selector, newest) {
        let value = |attribute: &str| match attribute {
            "name" => (0, name.clone()),
            "size" => (size, size.to_string()),
            _ => (0, "all".to_owned()),
        };
        let values = request.by.iter().map(|attribute| value(attribute)).collect();
        let group = groups.entry(values).or_default();
        *group = (group.0 + 1, group.1 + length);
    }
    let line = |(values, (objects, bytes)): (Vec<(i64, String)>, (u64, u64))| {
        let values: Vec<String> = values.into_iter().map(|(_, text)| text).collect();
        let bytes = if request.bytes {
            format!(":{bytes}")
        } else {
            String::new()
        };
        format!(" {}={objects}{bytes}", values.join("/"))
    };
    groups.into_iter().map(line).collect()
}

#[derive(Clone, Debug)]
enum Step {
    Offer {
        name: char,
        length: usize,
    },
    Withdraw(char),
    /// Objects enter the index.
    Look,
    /// The next question is prepared by one step.
    Prepare,
    Ask,
    Choose {
        selector: usize,
        grouping: usize,
        bytes: bool,
        limit: Option<u64>,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let name = || proptest::char::range('a', 'h');
    let limit = proptest::option::of(1u64..5);
    prop_oneof![
        6 => (name(), 0usize..4).prop_map(|(name, length)| Step::Offer { name, length }),
        2 => name().prop_map(Step::Withdraw),
        1 => Just(Step::Look),
        6 => Just(Step::Prepare),
        1 => Just(Step::Ask),
        1 => (0..SELECTORS.len(), 0..GROUPINGS.len(), any::<bool>(), limit)
            .prop_map(|(selector, grouping, bytes, limit)| Step::Choose { selector, grouping, bytes, limit }),
    ]
}

/// Sends the request and compares the answer. A prepared list may have objects that have left since.
fn compare(world: &mut World, client: u32, number: u64, question: &Request<'_>, is_prepared: bool) {
    world.ask(client, number, question.clone());
    let heard = world.heard(client);
    match question {
        Request::Tally(request) => {
            let [text] = heard.as_slice() else { panic!("{heard:?}") };
            let (range, groups) = text.split_once(" |").unwrap();
            let newest: u64 = range
                .split_once(" v")
                .unwrap()
                .1
                .split(' ')
                .next()
                .unwrap()
                .parse()
                .unwrap();
            assert!(range.contains("newer 0 others 0"), "{range}");
            assert_eq!(groups, counted(world, request, newest), "{question:?}");
        }
        Request::List(list) => {
            assert!(heard[0].contains("began"), "{heard:?}");
            let listed = heard[1].split_once("listed ").unwrap().1.trim_end_matches('.');
            let names: Vec<&str> = listed.split_whitespace().collect();
            assert!(
                names.is_sorted() && names.len() <= list.limit.unwrap() as usize,
                "{heard:?}"
            );
            if !is_prepared {
                let all = matching(world, &list.selector, u64::MAX);
                let expected = all.iter().map(|(name, ..)| name).take(list.limit.unwrap() as usize);
                assert!(expected.eq(&names), "{heard:?}");
            }
        }
        _ => unreachable!("it is one of these"),
    }
}

proptest! {
    #[test]
    fn a_tally_and_a_short_list_are_those_of_looking_at_each(
        is_prepared: bool,
        steps in proptest::collection::vec(step(), 1..120),
    ) {
        let mut world = World::with(|config| config.looked_at_once = if is_prepared { 0 } else { usize::MAX });
        let (p, c) = (world.join("p"), world.join("c"));
        let mut question = Request::Tally(tally("", &[]));
        for (number, step) in (10..).zip(steps.into_iter().chain([Step::Ask])) {
            match step {
                Step::Offer { name, length } => world.offer(p, number, &name.to_string(), &"x".repeat(length), 0),
                Step::Withdraw(name) => world.withdraw(p, number, &name.to_string(), Some(0), true),
                Step::Look => world.core.exchange.objects.index_all(),
                Step::Prepare => _ = world.core.look_ahead(c, &question),
                Step::Ask => {
                    let unfiled = world.core.exchange.objects.unindexed.len();
                    compare(&mut world, c, number, &question, is_prepared);
                    prop_assert_eq!(world.core.exchange.objects.unindexed.len(), unfiled);
                    let objects = &world.core.exchange.objects;
                    prop_assert!(objects.surveys.is_empty());
                    prop_assert!(objects.table.iter().all(|(_, object)| object.watchers == 0));
                }
                Step::Choose { selector, limit: Some(limit), .. } => {
                    question = Request::List(first(SELECTORS[selector], limit));
                }
                Step::Choose { selector, grouping, bytes, limit: None } => {
                    let request = tally(SELECTORS[selector], GROUPINGS[grouping]);
                    question = Request::Tally(TallyRequest { bytes, ..request });
                }
            }
        }
    }
}

/// A pool with the names `n0` to `n19`, of sizes 0 to 3 in turn, and two clients.
fn twenty(looked_at_once: usize) -> (World, u32, u32) {
    let mut world = World::with(|config| config.looked_at_once = looked_at_once);
    let (p, c) = (world.join("p"), world.join("c"));
    for number in 0..20 {
        world.offer(p, number, &format!("n{number}"), &"x".repeat(number as usize % 4), 0);
    }
    (world, p, c)
}

fn steps(world: &mut World, client: u32, question: &Request<'_>) -> usize {
    let steps = std::iter::repeat_with(|| world.core.look_ahead(client, question));
    steps.take_while(|is_ready| !is_ready).count() + 1
}

#[test]
fn what_the_index_counts_takes_one_step() {
    let (mut world, _, c) = twenty(3);
    world.core.exchange.objects.index_all();
    for (by, answer) in [
        (&[][..], " =20"),
        (&["size"], " 0=5 1=5 2=5 3=5"),
        (&["set"], " all=20"),
    ] {
        let question = Request::Tally(tally("", by));
        assert_eq!(steps(&mut world, c, &question), 1, "{by:?}");
        world.ask(c, 1, question);
        assert_eq!(world.heard(c), [format!("1: to v20 newer 0 others 0 |{answer}")]);
    }
    let question = Request::Tally(tally("size=1/2", &["size"]));
    assert_eq!(steps(&mut world, c, &question), 1);
    // Others are looked at, three in a step.
    for question in [
        tally("", &["size", "set"]),
        TallyRequest {
            bytes: true,
            ..tally("", &[])
        },
    ] {
        assert_eq!(steps(&mut world, c, &Request::Tally(question)), 7);
    }
    // The first of an order are compared with each other: half as many are looked at.
    assert_eq!(steps(&mut world, c, &Request::List(first("", 5))), 10);
}

#[test]
fn what_is_not_filed_is_counted_where_it_is_or_said_to_be_newer() {
    let (mut world, p, c) = twenty(3);
    let all = Request::Tally(tally("", &[]));
    assert_eq!(steps(&mut world, c, &all), 7);
    world.ask(c, 1, all);
    assert_eq!(world.heard(c), ["1: to v20 newer 0 others 0 | =20"]);
    let filed = |selector| {
        Request::Tally(TallyRequest {
            filed_only: true,
            ..tally(selector, &[])
        })
    };
    world.ask(c, 2, filed("size=1"));
    assert_eq!(world.heard(c), ["2: to v20 newer 20 others 0 |"]);
    world.core.exchange.objects.index_all();
    world.offer(p, 99, "late", "x", 0);
    world.ask(c, 3, filed("size=1"));
    assert_eq!(world.heard(c), ["3: to v21 newer 1 others 0 | =5"]);
}

#[test]
fn what_comes_while_it_counts_is_beyond_its_number_and_what_goes_is_not_counted() {
    let (mut world, p, c) = twenty(3);
    world.core.exchange.objects.index_all();
    let question = Request::Tally(tally("", &["size", "set"]));
    assert!(!world.core.look_ahead(c, &question) && !world.core.look_ahead(c, &question));
    for name in ["n0", "n1", "n19"] {
        world.withdraw(p, 1, name, Some(0), true);
    }
    world.offer(p, 2, "late", "x", 0);
    world.core.exchange.objects.index_all();
    world.ask(c, 3, question);
    assert_eq!(
        world.heard(c),
        ["3: to v20 newer 0 others 0 | 0/all=4 1/all=4 2/all=5 3/all=4"]
    );
}

#[test]
fn groups_beyond_the_limit_are_counted_together() {
    let (mut world, p, c) = twenty(3);
    let question = Request::Tally(TallyRequest {
        limit: 2,
        bytes: true,
        ..tally("", &["size"])
    });
    assert!(!world.core.look_ahead(c, &question) && !world.core.look_ahead(c, &question));
    // An object of a listed group, and one of the others.
    world.withdraw(p, 1, "n1", Some(0), true);
    world.withdraw(p, 2, "n3", Some(0), true);
    world.ask(c, 3, question);
    assert_eq!(world.heard(c), ["3: to v20 newer 0 others 9:22 | 0=5:0 1=4:4"]);
}

#[test]
fn a_short_list_goes_on_behind_a_place() {
    let (mut world, p, c) = twenty(1000);
    let after = |world: &World, name: &str, size| {
        Some(ListPosition {
            schema: 0,
            record: world.record(name, size).into(),
        })
    };
    let by_size = ListOrder::Attribute("size".into());
    let position = after(&world, "n13", 1);
    world.ask(
        c,
        1,
        Request::List(ListRequest {
            order: by_size.clone(),
            after: position,
            ..first("", 4)
        }),
    );
    assert_eq!(world.heard(c), ["1: began v20", "1: listed n17 n5 n9 n10."]);
    // The object at the position may have left, or never have existed.
    world.withdraw(p, 2, "n9", Some(0), true);
    for (name, size) in [("n9", 1), ("n8888", 1)] {
        let position = after(&world, name, size);
        world.ask(
            c,
            3,
            Request::List(ListRequest {
                order: by_size.clone(),
                after: position,
                ..first("", 1)
            }),
        );
        assert_eq!(world.heard(c)[1], "3: listed n10.");
    }
    let position = after(&world, "n99", 0);
    world.ask(
        c,
        4,
        Request::List(ListRequest {
            after: position,
            ..first("", 4)
        }),
    );
    assert_eq!(world.heard(c), ["4: began v20", "4: listed ."]);
}

#[test]
fn an_object_that_was_found_stays_until_it_was_listed() {
    let (mut world, p, c) = twenty(3);
    world.core.exchange.objects.index_all();
    let question = Request::List(first("", 2));
    while !world.core.look_ahead(c, &question) {}
    world.withdraw(p, 1, "n0", Some(0), true);
    assert_eq!(world.core.exchange.objects.len(), 20, "it is watched");
    world.ask(c, 2, question.clone());
    assert_eq!(world.heard(c), ["2: began v20", "2: listed n0 n1."]);
    assert_eq!(world.core.exchange.objects.len(), 19);
    // A client that leaves watches nothing.
    while !world.core.look_ahead(c, &question) {}
    world.withdraw(p, 3, "n1", Some(0), true);
    world.leave(c);
    assert_eq!(
        (
            world.core.exchange.objects.len(),
            world.core.stat().interests.selector_bytes
        ),
        (18, 0)
    );
}

#[test]
fn claims_are_checked() {
    let (mut world, _, c) = twenty(1000);
    let name = "name";
    let refused = [
        (
            Request::Tally(TallyRequest {
                limit: 0,
                ..tally("", &[])
            }),
            "from 1 to 1000",
        ),
        (
            Request::Tally(TallyRequest {
                limit: 1001,
                ..tally("", &[])
            }),
            "from 1 to 1000",
        ),
        (Request::Tally(tally("", &[name; 9])), "at most 8 attributes"),
        (
            Request::Tally(tally("", &["color"])),
            "no schema has an attribute color",
        ),
        (Request::List(first("", 0)), "from 1 to 1000"),
        (Request::List(first("", 1001)), "from 1 to 1000"),
        (
            Request::List(ListRequest {
                incomplete: true,
                ..first("", 1)
            }),
            "members has none",
        ),
        (
            Request::List(ListRequest {
                bundle: Some("a".into()),
                ..first("", 1)
            }),
            "members has none",
        ),
        (
            Request::List(ListRequest {
                after: Some(ListPosition::default()),
                limit: None,
                ..first("", 1)
            }),
            "has a limit",
        ),
    ];
    for (request, cause) in refused {
        assert!(world.core.look_ahead(c, &request));
        world.ask(c, 1, request);
        let heard = world.heard(c);
        assert!(
            heard[0].starts_with("1: InvalidArgument") && heard[0].contains(cause),
            "{heard:?}"
        );
    }
    for (schema, record) in [(7, Vec::new()), (0, vec![1, 2, 3])] {
        let after = Some(ListPosition {
            schema,
            record: record.into(),
        });
        world.ask(c, 1, Request::List(ListRequest { after, ..first("", 1) }));
        assert!(!world.heard(c)[0].contains("began"));
    }
}

#[test]
fn a_survey_is_weighed() {
    let mut world = World::with(|config| {
        config.looked_at_once = 0;
        config.limits.selector_bytes_per_client = 10;
    });
    let (p, c) = (world.join("p"), world.join("c"));
    world.offer(p, 1, "a", "", 0);
    for question in [Request::Tally(tally("", &["name"])), Request::List(first("", 1000))] {
        while !world.core.look_ahead(c, &question) {}
        world.ask(c, 1, question);
        let heard = world.heard(c);
        assert!(heard[0].starts_with("1: LimitExceeded"), "{heard:?}");
        assert!(world.core.exchange.objects.surveys.is_empty());
        assert_eq!(world.core.stat().interests.selector_bytes, 0);
    }
}
