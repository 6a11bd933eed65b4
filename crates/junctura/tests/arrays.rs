//! Arrays from M ranks to N ranks through a pool: whatever the layouts are, each gets what is his.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use junctura::{
    ArrayPart, ArrayPiece, BundleOptions, Code, Element, Error, EventKind, Exchange, Given, Layout, ListOptions,
    OfferOptions, Pool, Retention, WholeArray,
};

const SUPERSEDING: &str = "{name: fields, same_key: supersede, key: {dataset: [run], collocation: [], element: [param]}, \
                           attributes: {run: {type: string}, param: {type: string}}}";

fn pool() -> Pool {
    Pool::builder().schema("free").schema_yaml(SUPERSEDING).open().unwrap()
}

fn layout(text: &str) -> Arc<Layout> {
    Arc::new(text.parse().unwrap())
}

fn element(name: &str) -> Element {
    name.parse().unwrap()
}

/// The memory of one rank of an array whose elements are their own numbers, in C order; gaps are zeros.
fn numbers(layout: &Layout, rank: u64) -> Vec<u8> {
    let mut memory = vec![0_u32; layout.room(rank) as usize];
    each_index(layout.shape(), |index, number| {
        if let Some((owner, at)) = layout.locate(index)
            && owner == rank
        {
            memory[at as usize] = number;
        }
    });
    memory.iter().flat_map(|number| number.to_le_bytes()).collect()
}

fn each_index(shape: &[u64], mut tell: impl FnMut(&[u64], u32)) {
    let count: u64 = shape.iter().product();
    for number in 0..count {
        let mut rest = number;
        let mut index = vec![0; shape.len()];
        for (at, extent) in index.iter_mut().zip(shape).rev() {
            (*at, rest) = (rest % extent, rest / extent);
        }
        tell(&index, number as u32);
    }
}

const LAYOUTS: [&str; 6] = [
    "shape=30x41 grid=2x3 block=4x5",
    "shape=30x41 grid=3x1 order=F",
    "shape=30x41 grid=2x2 block=7x3 ranks=F storage=packed",
    "shape=30x41 grid=5x40 block=9x2",
    "shape=30x41",
    "shape=30x41 slabs=0:30x0:20;;0:10x20:41,10:30x20:41",
];

#[test]
fn each_rank_gets_its_part_in_its_layout() {
    let pool = pool();
    for (number, from) in LAYOUTS.iter().enumerate() {
        let from = layout(from);
        let name = format!("array {number}");
        thread::scope(|scope| {
            for to in LAYOUTS {
                for rank in 0..layout(to).ranks() {
                    let (pool, name) = (&pool, &name);
                    scope.spawn(move || {
                        let to = layout(to);
                        let array = pool.demand_array(&format!("name=\"{name}\""), None).unwrap();
                        assert_eq!(
                            array.take(&ArrayPart::of(&to, rank)).unwrap(),
                            numbers(&to, rank),
                            "{to} {rank}"
                        );
                    });
                }
            }
            for rank in 0..from.ranks() {
                let (pool, from, name) = (&pool, &from, &name);
                scope.spawn(move || {
                    let pool = Pool::connect(pool.url()).unwrap();
                    let piece = ArrayPiece::new(from, element("u4"), rank);
                    pool.offer_piece(&piece, [("name", &**name)], &numbers(from, rank))
                        .unwrap();
                    let visible = format!("name=\"{name}\"");
                    pool.demand(&visible, None).unwrap();
                });
            }
        });
    }
    // One object for each, whoever does not ask for pieces.
    assert_eq!(pool.list("").unwrap().len(), LAYOUTS.len());
    assert!(pool.follow("").unwrap().next_item().unwrap().is_some());
    let owners: u64 = LAYOUTS.iter().map(|text| layout(text).owners()).sum();
    assert_eq!(pool.list("exists(piece_of)").unwrap().len() as u64, owners);
}

#[test]
fn a_part_of_an_array_may_be_wanted_and_other_elements() {
    let pool = pool();
    let from = layout("shape=20x30 grid=2x2 block=3x4");
    for rank in 0..4 {
        let doubles: Vec<u8> = numbers(&from, rank)
            .chunks_exact(4)
            .flat_map(|number| f64::from(u32::from_le_bytes(number.try_into().unwrap())).to_le_bytes())
            .collect();
        let piece = ArrayPiece::new(&from, element("<f8"), rank);
        pool.offer_piece(&piece, [("name", "t")], &doubles).unwrap();
    }
    let array = pool.demand_array("name=t", None).unwrap();
    let to = layout("shape=5x7 grid=1x2");
    for rank in 0..2 {
        let part = ArrayPart {
            origin: &[13, 21],
            element: Some(element(">f4")),
            ..ArrayPart::of(&to, rank)
        };
        let mut expected = Vec::new();
        each_index(&[20, 30], |index, number| {
            let [row, column] = [index[0].wrapping_sub(13), index[1].wrapping_sub(21)];
            if row < 5 && column < 7 && column / 4 == rank {
                expected.extend_from_slice(&(number as f32).to_be_bytes());
            }
        });
        assert_eq!(array.take(&part).unwrap(), expected);
    }
    // An object that is an array by itself.
    let row: Vec<u8> = (0..60).collect();
    let attributes = [
        ("name", Given::Text("plain")),
        ("dtype", Given::Text("uint8")),
        ("shape", Given::List(&[Given::Integer(6), Given::Integer(10)])),
    ];
    pool.offer(attributes, &row).unwrap();
    let plain = pool.demand_array("name=plain", None).unwrap();
    let columns = layout("shape=6x2 order=F");
    let part = ArrayPart {
        origin: &[0, 4],
        ..ArrayPart::of(&columns, 0)
    };
    assert_eq!(
        plain.take(&part).unwrap(),
        [4, 14, 24, 34, 44, 54, 5, 15, 25, 35, 45, 55]
    );
    let outside = ArrayPart {
        origin: &[0, 9],
        ..ArrayPart::of(&columns, 0)
    };
    assert_eq!(plain.take(&outside).unwrap_err().code(), Code::InvalidArgument);
    pool.offer([("name", "bytes")], b"bytes").unwrap();
    assert_eq!(
        pool.demand_array("name=bytes", None).unwrap_err().code(),
        Code::InvalidArgument
    );
}

fn offer(pool: &Pool, from: &Arc<Layout>, rank: u64) -> Result<(), Error> {
    pool.offer_piece(
        &ArrayPiece::new(from, element("u4"), rank),
        [("name", "t")],
        &numbers(from, rank),
    )
}

#[test]
fn who_waits_in_vain_is_told_whose_pieces_are_missing() {
    let pool = pool();
    let from = layout("shape=30x41 grid=2x3");
    let wait = || {
        pool.demand_array("name~\"^t\"", Some(Duration::from_millis(1)))
            .unwrap_err()
    };
    assert_eq!(wait().code(), Code::Timeout);
    for rank in [0, 2, 5] {
        offer(&pool, &from, rank).unwrap();
    }
    let error = wait();
    assert_eq!(error.code(), Code::Timeout);
    assert!(
        error
            .to_string()
            .contains("of 6 pieces, ranks 1, 3, 4 did not offer theirs"),
        "{error}"
    );
    assert!(error.to_string().contains("name=t"), "{error}");
    // A reader of something else gets no hint.
    let other = pool.demand_array("name=u", Some(Duration::ZERO)).unwrap_err();
    assert!(!other.to_string().contains("pieces"), "{other}");
    // A producer that dies before its piece leaves the others as they are.
    let dying = Pool::connect(pool.url()).unwrap();
    offer(&dying, &from, 1).unwrap();
    drop(dying);
    offer(&pool, &from, 3).unwrap();
    assert!(wait().to_string().contains("rank 4 did not"), "{}", wait());
    assert!(pool.list("").unwrap().is_empty());
    offer(&pool, &from, 4).unwrap();
    assert_eq!(
        pool.demand_array("name=t", None)
            .unwrap()
            .take(&ArrayPart::of(&from, 3))
            .unwrap(),
        numbers(&from, 3)
    );
}

#[test]
fn a_piece_that_does_not_fit_its_siblings_is_refused_to_that_rank_alone() {
    let pool = pool();
    let other = Pool::connect(pool.url()).unwrap();
    let from = layout("shape=30x41 grid=2x3");
    offer(&pool, &from, 0).unwrap();
    for pool in [&pool, &other] {
        for wrong in [
            "shape=30x42 grid=2x3",
            "shape=30x41 grid=3x2",
            "shape=30x41 grid=2x3 order=F",
        ] {
            let error = offer(pool, &layout(wrong), 1).unwrap_err();
            assert_eq!(
                (error.code(), error.subject()),
                (Code::Conflict, "{space=default}{}{name=t}"),
                "{wrong}"
            );
        }
        let piece = ArrayPiece::new(&from, element("f4"), 1);
        let error = pool
            .offer_piece(&piece, [("name", "t")], &numbers(&from, 1))
            .unwrap_err();
        assert_eq!(error.code(), Code::Conflict);
        // The same again does no harm; anything else of the same rank does.
        offer(pool, &from, 0).unwrap();
        let piece = ArrayPiece::new(&from, element("u4"), 0);
        let others = vec![7; piece.bytes()];
        let error = pool.offer_piece(&piece, [("name", "t")], &others).unwrap_err();
        assert_eq!(error.code(), Code::AlreadyExists, "{error}");
        assert!(error.to_string().contains("rank 0"), "{error}");
        let error = pool.offer_piece(&piece, [("name", "t")], &others[1..]).unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument, "{error}");
        let none = ArrayPiece::new(&from, element("u4"), 6);
        assert_eq!(
            pool.offer_piece(&none, [("name", "t")], &[]).unwrap_err().code(),
            Code::InvalidArgument
        );
    }
    for rank in 1..6 {
        offer(&other, &from, rank).unwrap();
    }
    // Complete: as before.
    offer(&pool, &from, 3).unwrap();
    offer(&other, &from, 3).unwrap();
    let piece = ArrayPiece::new(&from, element("u4"), 3);
    let error = pool
        .offer_piece(&piece, [("name", "t")], &vec![7; piece.bytes()])
        .unwrap_err();
    assert_eq!(error.code(), Code::AlreadyExists, "{error}");
    let array = pool.demand_array("name=t", None).unwrap();
    assert_eq!(array.take(&ArrayPart::of(&from, 3)).unwrap(), numbers(&from, 3));
}

#[test]
fn an_array_leaves_as_it_came() {
    let pool = pool();
    let from = layout("shape=30x41 grid=2x3");
    let options = || OfferOptions {
        retention: Some(Retention::Released(2)),
        ..OfferOptions::default()
    };
    for rank in 0..6 {
        let piece = ArrayPiece::new(&from, element("u4"), rank);
        pool.offer_piece_with(&piece, [("name", "t")], &numbers(&from, rank), options())
            .unwrap();
    }
    for (client, left) in [
        (Pool::connect(pool.url()).unwrap(), 6),
        (Pool::connect(pool.url()).unwrap(), 0),
    ] {
        let array = client.demand_array("name=t", None).unwrap();
        array.take(&ArrayPart::of(&from, 1)).unwrap();
        drop(array);
        client.sync(None).unwrap();
        assert_eq!(pool.list("exists(piece_of)").unwrap().len(), left);
    }
    // What is withdrawn takes its pieces along; a piece that somebody withdraws does not take the others.
    for rank in 0..6 {
        pool.offer_piece(
            &ArrayPiece::new(&from, element("u4"), rank),
            [("name", "u")],
            &numbers(&from, rank),
        )
        .unwrap();
    }
    let held = pool.demand_array("name=u", None).unwrap();
    assert_eq!(
        pool.withdraw_all("exists(piece_of),rank=2", junctura::WithdrawOptions::default())
            .unwrap(),
        1
    );
    assert_eq!(pool.list("exists(piece_of)").unwrap().len(), 5);
    assert_eq!(held.take(&ArrayPart::of(&from, 2)).unwrap_err().code(), Code::Expired);
    held.take(&ArrayPart::of(&from, 3)).unwrap();
    drop(held);
    pool.withdraw_all("name=u", junctura::WithdrawOptions::default())
        .unwrap();
    assert!(pool.list("exists(piece_of)").unwrap().is_empty());
}

/// The key of the array, and options that free it.
fn forgetting() -> junctura::WithdrawOptions {
    junctura::WithdrawOptions {
        forget: true,
        ..junctura::WithdrawOptions::default()
    }
}

#[test]
fn an_array_whose_key_is_freed_is_offered_again() {
    let pool = pool();
    let whole = |from: &Arc<Layout>| {
        let array = pool.demand_array("name=t", None).unwrap();
        for rank in 0..from.ranks() {
            assert_eq!(array.take(&ArrayPart::of(from, rank)).unwrap(), numbers(from, rank));
        }
    };
    // More pieces than one event removes; then another decomposition, since nothing is left of the one before.
    for (from, by_key) in [
        (layout("shape=30x41 grid=2x3"), false),
        (layout("shape=30x41 grid=30x41 block=1x1"), false),
        (layout("shape=30x41 grid=30x41 block=1x1"), true),
        (layout("shape=41x30 grid=3x2"), true),
    ] {
        for rank in 0..from.ranks() {
            offer(&pool, &from, rank).unwrap();
        }
        whole(&from);
        let freed = if by_key {
            pool.withdraw(junctura::Target::key([("name", "t")]), forgetting())
        } else {
            pool.withdraw_all("", forgetting())
        };
        assert_eq!(freed.unwrap(), 1, "pieces are not counted");
    }
    // A key alone frees its own array, and no other.
    let from = layout("shape=30x41 grid=1x2");
    for name in ["t", "u"] {
        for rank in 0..2 {
            let piece = ArrayPiece::new(&from, element("u4"), rank);
            pool.offer_piece(&piece, [("name", name)], &numbers(&from, rank))
                .unwrap();
        }
    }
    pool.withdraw_all("", junctura::WithdrawOptions::default()).unwrap();
    pool.withdraw(junctura::Target::key([("name", "u")]), forgetting())
        .unwrap();
    assert_eq!(offer(&pool, &from, 0).unwrap_err().code(), Code::AlreadyExists);
    for rank in 0..2 {
        let piece = ArrayPiece::new(&from, element("u4"), rank);
        pool.offer_piece(&piece, [("name", "u")], &numbers(&from, rank))
            .unwrap();
    }
    assert_eq!(pool.list("").unwrap().len(), 1);
}

#[test]
fn every_epoch_is_offered_again_when_the_key_is_freed() {
    let pool = pool();
    let from = layout("shape=30x41 grid=2x1");
    let offer_all = || {
        for (epoch, rank) in [(1, 0), (1, 1), (2, 0), (2, 1)] {
            let mut piece = ArrayPiece::new(&from, element("u4"), rank);
            piece.epoch = Some(epoch);
            let options = OfferOptions {
                schema: Some("fields"),
                ..OfferOptions::default()
            };
            pool.offer_piece_with(&piece, [("run", "1"), ("param", "t")], &numbers(&from, rank), options)
                .unwrap();
        }
        pool.withdraw_all("run=1", forgetting()).unwrap()
    };
    assert_eq!([offer_all(), offer_all()], [1, 1]);
}

#[test]
fn a_whole_array_takes_no_other_piece() {
    let pool = pool();
    let from = layout("shape=4 grid=3");
    for rank in 0..2 {
        offer(&pool, &from, rank).unwrap();
    }
    // The last rank has no elements.
    offer(&pool, &from, 2).unwrap();
    let zeros = [0; 8];
    for (layout, kind, rank) in [
        ("shape=4 grid=3", "f4", 0),
        ("shape=4 grid=1x2", "u4", 0),
        ("shape=4 grid=4", "u4", 3),
        ("shape=2 grid=3", "u4", 2),
        ("shape=4 grid=3", "i4", 2),
    ] {
        let Ok(layout) = layout.parse::<Layout>().map(Arc::new) else {
            continue;
        };
        let piece = ArrayPiece::new(&layout, element(kind), rank);
        let mine = &zeros[..piece.bytes().min(8)];
        let error = pool.offer_piece(&piece, [("name", "t")], mine).unwrap_err();
        assert_eq!(error.code(), Code::AlreadyExists, "{layout} {kind} {rank}: {error}");
        assert!(error.cause().contains("the array is complete"), "{error}");
        assert_eq!(error.subject(), "{space=default}{}{name=t}");
    }
}

#[test]
fn epochs_tell_versions_apart_where_they_supersede_each_other() {
    let pool = pool();
    let from = layout("shape=30x41 grid=2x3");
    let attributes = [("run", "1"), ("param", "t")];
    let options = || OfferOptions {
        schema: Some("fields"),
        ..OfferOptions::default()
    };
    let offer = |epoch, rank| {
        let mut piece = ArrayPiece::new(&from, element("u4"), rank);
        piece.epoch = epoch;
        let mut mine = numbers(&from, rank);
        for byte in &mut mine {
            *byte ^= epoch.unwrap_or(0) as u8;
        }
        pool.offer_piece_with(&piece, attributes, &mine, options())
    };
    assert_eq!(offer(None, 0).unwrap_err().code(), Code::InvalidArgument);
    let mut piece = ArrayPiece::new(&from, element("u4"), 0);
    piece.epoch = Some(1);
    let error = pool
        .offer_piece(&piece, [("name", "t")], &numbers(&from, 0))
        .unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument);

    for rank in 0..6 {
        offer(Some(1), rank).unwrap();
        offer(Some(2), 5 - rank).unwrap();
        let one = pool.demand_array("param=t", Some(Duration::ZERO));
        assert_eq!(one.is_ok(), rank == 5);
    }
    let array = pool.demand_array("param=t", None).unwrap();
    let mut expected = numbers(&from, 4);
    for byte in &mut expected {
        *byte ^= 2;
    }
    assert_eq!(array.take(&ArrayPart::of(&from, 4)).unwrap(), expected);
    // Of the one before nothing is left.
    assert_eq!(pool.list("exists(piece_of)").unwrap().len(), 6);
}

#[test]
fn an_array_without_elements_is_one() {
    let pool = pool();
    let from = layout("shape=0x41 grid=2x3");
    for rank in [3, 0] {
        assert!(pool.list("").unwrap().is_empty());
        offer(&pool, &from, rank).unwrap();
    }
    let array = pool.demand_array("name=t", None).unwrap();
    assert!(array.take(&ArrayPart::of(&layout("shape=0x41"), 0)).unwrap().is_empty());
    let incomplete = ListOptions {
        incomplete: true,
        ..ListOptions::default()
    };
    assert_eq!(pool.list_with("", incomplete).unwrap().into_iter().count(), 1);
}

#[test]
fn an_array_may_have_more_pieces_than_are_asked_for_at_a_time() {
    let pool = pool();
    let from = layout("shape=600 grid=600");
    for rank in 0..600 {
        let piece = ArrayPiece::new(&from, element("u4"), rank);
        pool.offer_piece(&piece, [("name", "t")], &numbers(&from, rank))
            .unwrap();
    }
    let array = pool.demand_array("name=t", None).unwrap();
    let all = layout("shape=600");
    assert_eq!(array.take(&ArrayPart::of(&all, 0)).unwrap(), numbers(&all, 0));
}

/// Larger than the memory of any machine.
const HUGE: &str = "200000000000000000";

#[test]
fn a_head_that_claims_a_huge_array_costs_no_memory() {
    let pool = pool();
    let whole = || WholeArray::of(&pool, pool.demand("name=t", None).unwrap()).unwrap_err();
    let head = format!("junctura-array 1\ndtype=<f8\nshape={HUGE}\n");
    pool.offer([("name", "t")], head.as_bytes()).unwrap();
    assert_eq!(whole().code(), Code::Expired, "it has no pieces");
    let piece = OfferOptions {
        schema: Some("piece"),
        ..OfferOptions::default()
    };
    let named = [("piece_of", "free{space=default}{}{name=t}"), ("rank", "0")];
    pool.offer_with(named, &[7; 8], piece).unwrap();
    assert_eq!(whole().code(), Code::InvalidArgument, "its piece is shorter");
    let shape = [Given::Text(HUGE)];
    let plain = [
        ("name", Given::Text("plain")),
        ("dtype", Given::Text("f8")),
        ("shape", Given::List(&shape)),
    ];
    pool.offer(plain, &[7; 8]).unwrap();
    let array = pool.demand_array("name=plain", None).unwrap();
    let all = layout(&format!("shape={HUGE}"));
    assert_eq!(
        array.take(&ArrayPart::of(&all, 0)).unwrap_err().code(),
        Code::InvalidArgument
    );
}

#[test]
fn who_wants_an_array_in_more_memory_than_there_is_is_told_so() {
    let pool = pool();
    offer(&pool, &layout("shape=2"), 0).unwrap();
    let array = pool.demand_array("name=t", None).unwrap();
    let apart = layout(&format!("shape=2 strides={HUGE}"));
    assert_eq!(
        array.take(&ArrayPart::of(&apart, 0)).unwrap_err().code(),
        Code::TooLarge
    );
    let side_by_side = layout("shape=2");
    assert_eq!(
        array.take(&ArrayPart::of(&side_by_side, 0)).unwrap(),
        numbers(&side_by_side, 0)
    );
}

#[test]
fn what_stays_the_same_is_said_once() {
    let pool = pool();
    let (from, to) = (layout("shape=30x41 grid=2x3"), layout("shape=30x41 grid=1x2 order=F"));
    let given: Vec<Exchange> = (0..6)
        .map(|rank| Exchange::new(&pool, &from, rank, element("u4")).unwrap())
        .map(|side| {
            side.common([("space", "run"), ("name", "1")])
                .retention(Retention::Released(2))
        })
        .collect();
    for (rank, side) in given.iter().enumerate() {
        assert_eq!(side.bytes(), numbers(&from, rank as u64).len());
        let none: [(&str, &str); 0] = [];
        side.put(none, &numbers(&from, rank as u64)).unwrap();
        side.put([("name", "2")], &vec![7; side.bytes()]).unwrap();
        assert_eq!(
            side.put([("name", "2")], &[7]).unwrap_err().code(),
            Code::InvalidArgument
        );
    }
    for rank in 0..2 {
        let client = Pool::connect(pool.url()).unwrap();
        let side = Exchange::new(&client, &to, rank, element("u4")).unwrap();
        let side = side.common([("space", "run")]);
        assert_eq!(side.get([("name", "1")], None).unwrap(), numbers(&to, rank));
        let mut mine = vec![0; side.bytes()];
        let error = side.get_into([("name", "2")], None, &mut mine[1..]).unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument);
        side.get_into([("name", "2")], None, &mut mine).unwrap();
        assert_eq!(mine, vec![7; side.bytes()]);
        client.sync(None).unwrap();
    }
    assert!(pool.list("").unwrap().is_empty());
    let error = Exchange::new(&pool, &to, 2, element("u4")).unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument);

    let one = layout("shape=3");
    let side = Exchange::new(&pool, &one, 0, element("u1")).unwrap();
    let side = side.schema("fields").common([("run", "1"), ("param", "t")]);
    let none: [(&str, &str); 0] = [];
    assert_eq!(side.put(none, &[1, 2, 3]).unwrap_err().code(), Code::InvalidArgument);
    side.put_epoch(1, none, &[1, 2, 3]).unwrap();
    side.put_epoch(2, none, &[4, 5, 6]).unwrap();
    assert_eq!(side.get(none, None).unwrap(), [4, 5, 6]);
}

#[test]
fn ranks_of_16_by_12_offer_what_ranks_of_4_by_4_take() {
    let pool = pool();
    let (from, to) = (
        layout("shape=193x145 grid=16x12 block=5x4"),
        layout("shape=193x145 grid=4x4 order=F"),
    );
    for rank in 0..16 * 12 {
        let piece = ArrayPiece::new(&from, element("u4"), rank);
        pool.offer_piece(&piece, [("name", "t")], &numbers(&from, rank))
            .unwrap();
    }
    for rank in 0..4 * 4 {
        let client = Pool::connect(pool.url()).unwrap();
        let array = client.demand_array("name=t", Some(Duration::ZERO)).unwrap();
        assert_eq!(
            array.take(&ArrayPart::of(&to, rank)).unwrap(),
            numbers(&to, rank),
            "rank {rank}"
        );
    }
}

/// Opens the bundle of a step, as a client of its own.
fn step_of(pool: &Pool, path: &str, members: Option<u64>) -> junctura::Bundle {
    let client = Pool::connect(pool.url()).unwrap();
    let options = BundleOptions {
        members,
        ..BundleOptions::default()
    };
    client.open_bundle(path, [("space", "model")], options).unwrap()
}

fn put(bundle: &junctura::Bundle, from: &Arc<Layout>, rank: u64, name: &str) -> Result<(), Error> {
    let piece = ArrayPiece::new(from, element("u4"), rank);
    bundle.offer_piece(&piece, [("name", name)], &numbers(from, rank))
}

#[test]
fn arrays_of_a_bundle_become_visible_with_its_other_members() {
    let pool = pool();
    let (rows, columns) = (layout("shape=30x41 grid=3x1"), layout("shape=30x41 grid=1x3 order=F"));
    let ranks: Vec<_> = (0..3).map(|_| step_of(&pool, "run/step=6", None)).collect();
    for (rank, bundle) in ranks.iter().enumerate() {
        put(bundle, &rows, rank as u64, "t").unwrap();
        put(bundle, &columns, rank as u64, "u").unwrap();
        // The same again does no harm.
        put(bundle, &rows, rank as u64, "t").unwrap();
        if rank == 0 {
            assert_eq!(bundle.seal().unwrap_err().code(), Code::Conflict);
        }
    }
    put(&ranks[1], &rows, 0, "t").unwrap();
    ranks[2].offer([("name", "time")], b"6").unwrap();
    assert!(pool.list("").unwrap().is_empty());
    let error = pool.demand_array("name=t", Some(Duration::ZERO)).unwrap_err();
    assert_eq!(error.code(), Code::NotFound);
    assert_eq!(ranks[0].seal().unwrap().objects(), 2 * 4 + 1);
    for bundle in &ranks {
        assert_eq!(bundle.wait(None).unwrap().objects(), 9);
    }
    for (name, from) in [("t", &rows), ("u", &columns)] {
        let array = pool
            .demand_array(&format!("name={name}"), Some(Duration::ZERO))
            .unwrap();
        for to in LAYOUTS {
            let to = layout(to);
            assert_eq!(
                array.take(&ArrayPart::of(&to, 0)).unwrap(),
                numbers(&to, 0),
                "{name} {from} {to}"
            );
        }
    }
    // An array is removed with its pieces alone.
    pool.withdraw_all("name=t", junctura::WithdrawOptions::default())
        .unwrap();
    assert_eq!(pool.list("exists(piece_of)").unwrap().len(), 3);
    // Neither the path nor the key is open any more.
    let error = put(&ranks[0], &rows, 0, "late").unwrap_err();
    assert_eq!(
        (error.code(), error.subject()),
        (Code::BundleClosed, "bundle run/step=6"),
        "{error}"
    );
}

#[test]
fn an_array_counts_as_one_member_of_a_bundle() {
    let pool = pool();
    let from = layout("shape=30x41 grid=2x1");
    let options = BundleOptions {
        members: Some(2),
        ..BundleOptions::default()
    };
    let bundle = pool.open_bundle("step", [("space", "model")], options).unwrap();
    let allocated = |rank| {
        let piece = ArrayPiece::new(&from, element("u4"), rank);
        let mut mine = bundle.allocate(piece.bytes()).unwrap();
        mine.copy_from_slice(&numbers(&from, rank));
        bundle.offer_piece_allocation(&piece, [("name", "t")], mine, OfferOptions::default())
    };
    allocated(1).unwrap();
    allocated(0).unwrap();
    assert_eq!(allocated(0).unwrap_err().code(), Code::AlreadyExists);
    put(&bundle, &from, 0, "u").unwrap();
    assert_eq!(put(&bundle, &from, 0, "v").unwrap_err().code(), Code::BundleFull);
    assert!(bundle.completed().unwrap().is_none());
    put(&bundle, &from, 1, "u").unwrap();
    assert_eq!(bundle.wait(None).unwrap().objects(), 6);
    // One without a path is no bundle of several ranks.
    let error = put(&pool.bundle().unwrap(), &from, 0, "w").unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument, "{error}");
}

#[test]
fn nothing_of_a_bundle_that_ended_early_becomes_visible() {
    let pool = pool();
    let from = layout("shape=30x41 grid=2x1");
    let (one, other) = (step_of(&pool, "step", None), step_of(&pool, "step", None));
    put(&one, &from, 0, "t").unwrap();
    put(&one, &from, 0, "u").unwrap();
    put(&other, &from, 1, "t").unwrap();
    one.abort().unwrap();
    assert_eq!(other.wait(None).unwrap_err().code(), Code::Closed);
    // Whether its array is open here or not: none becomes visible by itself.
    for (rank, name) in [(1, "u"), (1, "t"), (1, "new"), (0, "new")] {
        assert_eq!(
            put(&other, &from, rank, name).unwrap_err().code(),
            Code::Closed,
            "{name}"
        );
    }
    assert_eq!(put(&one, &from, 0, "new").unwrap_err().code(), Code::Closed);
    assert!(pool.list("").unwrap().is_empty() && pool.bundles("", None).unwrap().is_empty());

    // The path is free again. Its producers leave in mid-step: another one completes it.
    let (one, other) = (step_of(&pool, "step", None), step_of(&pool, "step", None));
    put(&one, &from, 0, "t").unwrap();
    drop(one);
    put(&other, &from, 1, "t").unwrap();
    assert_eq!(other.seal().unwrap().objects(), 3);

    // No rank opens it again.
    let hurry = BundleOptions {
        orphan_timeout: Some(Duration::from_millis(1)),
        ..BundleOptions::default()
    };
    let client = Pool::connect(pool.url()).unwrap();
    let left = client.open_bundle("left", [("space", "model")], hurry).unwrap();
    put(&left, &from, 0, "v").unwrap();
    put(&left, &from, 1, "v").unwrap();
    put(&left, &from, 0, "w").unwrap();
    let mut events = pool.subscribe("", &[EventKind::Aborted]).unwrap();
    drop(left);
    // The step, its complete array, and the other one.
    for _ in 0..3 {
        events.next_event().unwrap();
    }
    assert!(pool.list("name=v/w").unwrap().is_empty());
    assert!(pool.list("exists(piece_of),rank=0/1").unwrap().len() == 2);
}
