//! Repeated exchanges of arrays, on one grid and between two.

#![allow(clippy::float_cmp, reason = "tests")]

use std::sync::Arc;
use std::time::Duration;

use junctura::remap::{ApplyOptions, ApplySide, WeightLink, Weights};
use junctura::{
    ArrayPiece, Code, Element, Exchange, Given, Layout, Pool, RegridSource, RegridTarget, RegridTerms, Retention,
    WithdrawOptions, regrid_field,
};

const SCHEMA: &str = "{name: fields, same_key: supersede, key: {dataset: [run], collocation: [], element: [param]}, \
                      attributes: {run: {type: string}, param: {type: string}, note: {type: string}}}";

fn pool() -> Pool {
    Pool::builder().schema("free").schema_yaml(SCHEMA).open().unwrap()
}

fn layout(text: &str) -> Arc<Layout> {
    Arc::new(text.parse().unwrap())
}

fn element(name: &str) -> Element {
    name.parse().unwrap()
}

/// One list of numbers, `first` and those after it, of which a rank of `layout` has its part.
fn part(layout: &Layout, rank: u64, first: u8) -> Vec<u8> {
    let mut mine = vec![0; layout.room(rank) as usize];
    for index in 0..layout.shape()[0] {
        if let Some((owner, at)) = layout.locate(&[index])
            && owner == rank
        {
            mine[at as usize] = first + index as u8;
        }
    }
    mine
}

fn offer(pool: &Pool, text: &str, name: &str, first: u8) {
    let layout = layout(text);
    for rank in 0..layout.ranks() {
        let piece = ArrayPiece::new(&layout, element("u1"), rank);
        let once = junctura::OfferOptions {
            retention: Some(Retention::Released(1)),
            ..Default::default()
        };
        pool.offer_piece_with(&piece, [("name", name)], &part(&layout, rank, first), once)
            .unwrap();
    }
}

#[test]
fn producers_may_have_another_layout_with_every_step() {
    let (pool, near) = (pool(), layout("shape=24"));
    let side = Exchange::new(&pool, &near, 0, element("u1")).unwrap();
    let producers = Pool::connect(pool.url()).unwrap();
    let layouts = [
        "shape=24 grid=2",
        "shape=24 grid=2",
        "shape=24 grid=5",
        "shape=24",
        "shape=24 grid=3 block=2",
        "shape=24 grid=2",
    ];
    for (step, text) in layouts.into_iter().enumerate() {
        let name = format!("t{step}");
        offer(&producers, text, &name, step as u8);
        let mine = side.get([("name", name.as_str())], None).unwrap();
        assert_eq!(mine, part(&near, 0, step as u8), "{text}");
    }
    // Pieces that were expected and not needed were given back.
    pool.sync(None).unwrap();
    assert!(pool.list("").unwrap().is_empty());
    let pieces = pool.list("piece_of!=none").unwrap();
    assert!(pieces.is_empty(), "{pieces:?}");
}

#[test]
fn an_array_that_is_waited_for_arrives_with_its_pieces() {
    let (pool, bands) = (pool(), layout("shape=24 grid=2"));
    let near = layout("shape=24");
    let consumer = Pool::connect(pool.url()).unwrap();
    let received = std::thread::spawn(move || {
        let side = Exchange::new(&consumer, &near, 0, element("u1")).unwrap();
        (0..20)
            .map(|step| side.get([("name", format!("t{step}").as_str())], None).unwrap())
            .collect::<Vec<_>>()
    });
    for step in 0..20 {
        offer(&pool, "shape=24 grid=2", &format!("t{step}"), step);
    }
    let received = received.join().unwrap();
    let whole = layout("shape=24");
    for (step, mine) in (0..).zip(received) {
        assert_eq!(mine, part(&whole, 0, step));
    }
    assert_eq!(bands.ranks(), 2);
}

#[test]
fn an_array_that_lacks_an_expected_piece_is_gone_at_once() {
    let (pool, near) = (pool(), layout("shape=24"));
    let side = Exchange::new(&pool, &near, 0, element("u1")).unwrap();
    offer(&pool, "shape=24 grid=2", "a", 0);
    side.get([("name", "a")], None).unwrap();

    offer(&pool, "shape=24 grid=2", "b", 0);
    let forget = WithdrawOptions {
        forget: true,
        ..WithdrawOptions::default()
    };
    pool.withdraw_all("piece_of=\"free{space=default}{}{name=b}\",rank=1", forget)
        .unwrap();
    let error = side.get([("name", "b")], None).unwrap_err();
    assert_eq!(error.code(), Code::Expired, "{error}");
}

#[test]
fn nothing_is_left_of_a_step_that_did_not_come() {
    let (pool, near) = (pool(), layout("shape=24"));
    let side = Exchange::new(&pool, &near, 0, element("u1")).unwrap();
    offer(&pool, "shape=24 grid=2", "a", 0);
    side.get([("name", "a")], None).unwrap();
    for timeout in [Duration::ZERO, Duration::from_millis(1)] {
        let error = side.get([("name", "b")], Some(timeout)).unwrap_err();
        let expected = if timeout.is_zero() {
            Code::NotFound
        } else {
            Code::Timeout
        };
        assert_eq!(error.code(), expected, "{error}");
    }
    // Its pieces are not delivered to a request that is over.
    offer(&pool, "shape=24 grid=2", "b", 3);
    assert_eq!(side.get([("name", "b")], None).unwrap(), part(&near, 0, 3));
    pool.sync(None).unwrap();
    assert!(pool.list("").unwrap().is_empty());
}

#[test]
fn epochs_and_plain_arrays_follow_arrays_in_pieces() {
    let (pool, near) = (pool(), layout("shape=24"));
    let side = Exchange::new(&pool, &near, 0, element("u1")).unwrap();
    offer(&pool, "shape=24 grid=2", "a", 0);
    side.get([("name", "a")], None).unwrap();
    let whole = part(&near, 0, 9);
    let shape = [Given::Integer(24)];
    let about = [
        ("name", Given::Text("b")),
        ("dtype", Given::Text("u1")),
        ("shape", Given::List(&shape)),
    ];
    pool.offer(about, &whole).unwrap();
    assert_eq!(side.get([("name", "b")], None).unwrap(), whole);

    let side = side.schema("fields").common([("run", "1"), ("param", "t")]);
    let none: [(&str, &str); 0] = [];
    for epoch in 1..4 {
        side.put_epoch(epoch, none, &[epoch as u8; 24]).unwrap();
        assert_eq!(side.get(none, None).unwrap(), [epoch as u8; 24]);
    }
}

#[test]
fn a_refused_piece_does_not_change_the_description_of_its_array() {
    let (pool, bands) = (pool(), layout("shape=24 grid=2"));
    let other = Pool::connect(pool.url()).unwrap();
    let offer = |pool: &Pool, rank, note, first| {
        let piece = ArrayPiece::new(&bands, element("u1"), rank);
        pool.offer_piece(&piece, [("name", "t"), ("note", note)], &part(&bands, rank, first))
    };
    offer(&pool, 0, "first", 1).unwrap();
    let error = offer(&other, 0, "second", 2).unwrap_err();
    assert_eq!(error.code(), Code::AlreadyExists, "{error}");
    offer(&other, 1, "second", 1).unwrap();
    let array = pool.demand_array("name=t", None).unwrap();
    assert_eq!(array.object().get("note"), Some("first"));
}

#[test]
fn the_same_piece_again_states_its_array_again() {
    let (pool, bands) = (pool(), layout("shape=24 grid=2"));
    let offer = |pool: &Pool, rank, note| {
        let piece = ArrayPiece::new(&bands, element("u1"), rank);
        pool.offer_piece(&piece, [("name", "t"), ("note", note)], &part(&bands, rank, 1))
    };
    offer(&pool, 0, "first").unwrap();
    // A rank that was started again has another connection.
    let again = Pool::connect(pool.url()).unwrap();
    offer(&again, 0, "second").unwrap();
    offer(&again, 1, "second").unwrap();
    offer(&Pool::connect(pool.url()).unwrap(), 0, "third").unwrap();
    let array = pool.demand_array("name=t", None).unwrap();
    assert_eq!(array.object().get("note"), Some("second"));
}

/// Each of 12 target points has two of 24 source points, or `scattered` ones.
fn weights(scattered: bool) -> Weights {
    let source = |target: u64, link: u64| {
        if scattered {
            (7 * target + 11 * link) % 24
        } else {
            2 * target + link
        }
    };
    let links = (0..12).flat_map(|target| {
        (0..2).map(move |link| WeightLink {
            target,
            source: source(target, link),
            weight: 0.25 + link as f64 / 2.0,
        })
    });
    Weights::new(&links.collect::<Vec<_>>(), &[24], &[12]).unwrap()
}

fn bytes(values: impl Iterator<Item = f64>, kind: &str) -> Vec<u8> {
    values
        .flat_map(|value| match kind {
            "f4" => (value as f32).to_ne_bytes().to_vec(),
            _ => value.to_ne_bytes().to_vec(),
        })
        .collect()
}

#[test]
fn a_part_is_the_same_where_it_is_read_in_place_and_where_it_is_copied() {
    let pool = pool();
    let mut number = 0;
    for (scattered, kind) in [(false, "f8"), (true, "f8"), (false, "f4"), (true, "f4")] {
        let weights = weights(scattered);
        let field = bytes((0..24).map(|at| 1.5 * f64::from(at * at)), kind);
        let mut expected = vec![0; 12 * field.len() / 24];
        regrid_field(&weights, element(kind), &field, &mut expected, ApplyOptions::default()).unwrap();
        // On 2 ranks each part of the target is a stretch of one piece; on 3 and 5 it is not.
        for (from, to) in [("2", "2"), ("1", "4"), ("3", "2"), ("5", "1"), ("2", "6")] {
            for side in [ApplySide::Source, ApplySide::Target, ApplySide::Fewer] {
                number += 1;
                let name = number.to_string();
                let (from, to) = (
                    layout(&format!("shape=24 grid={from}")),
                    layout(&format!("shape=12 grid={to}")),
                );
                let terms = RegridTerms {
                    side,
                    ..RegridTerms::new(&weights, &from)
                };
                let width = field.len() / 24;
                let mut begin = 0;
                for rank in 0..from.ranks() {
                    let mut put = RegridSource::new(&pool, &terms, rank, element(kind)).unwrap();
                    let end = begin + put.bytes();
                    put.put([("name", name.as_str())], &field[begin..end]).unwrap();
                    begin = end;
                }
                let mut found = Vec::new();
                for rank in 0..to.ranks() {
                    let mut get = RegridTarget::new(&pool, &terms, &to, rank, element(kind)).unwrap();
                    // Memory at an address that is no multiple of the elements' size is written, too.
                    for shift in [0, 1] {
                        let mut memory = vec![7; get.bytes() + width];
                        let length = get.bytes();
                        let mine = &mut memory[shift..shift + length];
                        get.get_into([("name", name.as_str())], None, mine).unwrap();
                        if shift == 0 {
                            found.extend_from_slice(mine);
                        } else {
                            assert_eq!(*mine, found[found.len() - length..]);
                        }
                    }
                }
                assert_eq!(found, expected, "{kind} {from} {to} {side:?}");
            }
        }
    }
}

#[test]
fn other_weights_are_a_conflict_in_place_too() {
    let (pool, from) = (pool(), layout("shape=24 grid=2"));
    let to = layout("shape=12 grid=2");
    let (mine, yours) = (weights(false), weights(true));
    let halved = Weights::new(
        &mine
            .links()
            .map(|link| WeightLink {
                weight: link.weight / 2.0,
                ..link
            })
            .collect::<Vec<_>>(),
        &[24],
        &[12],
    )
    .unwrap();
    for rank in 0..2 {
        let mut put = RegridSource::new(&pool, &RegridTerms::new(&mine, &from), rank, element("f8")).unwrap();
        put.put([("name", "t")], &vec![0; put.bytes()]).unwrap();
    }
    for other in [yours, halved] {
        let mut get = RegridTarget::new(&pool, &RegridTerms::new(&other, &from), &to, 0, element("f8")).unwrap();
        let mut memory = vec![0; get.bytes()];
        let error = get.get_into([("name", "t")], None, &mut memory).unwrap_err();
        assert_eq!(error.code(), Code::Conflict, "{error}");
    }
}
