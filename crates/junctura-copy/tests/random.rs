//! Random layouts of all kinds, copied and compared element by element with what their definitions say.

use std::sync::Arc;

use crate::common::{Case, Random};
use junctura_copy::{Gather, Pack, Unpack};
use junctura_layout::{ByteOrder, Element, ElementKind, Layout, Order, Plan, PlanSide, Storage};

const LITTLE: ByteOrder = ByteOrder::Little;
const BIG: ByteOrder = ByteOrder::Big;

fn element(kind: ElementKind, order: ByteOrder) -> Element {
    Element { kind, order }
}

/// All pairs of elements of which one becomes the other.
fn changes() -> Vec<(Element, Element)> {
    let kinds = [
        ElementKind::U8,
        ElementKind::I16,
        ElementKind::U32,
        ElementKind::F64,
        ElementKind::C64,
        ElementKind::C128,
    ];
    let mut all = Vec::new();
    for (from, to) in [(LITTLE, LITTLE), (LITTLE, BIG), (BIG, LITTLE), (BIG, BIG)] {
        all.extend(kinds.map(|kind| (element(kind, from), element(kind, to))));
        all.push((element(ElementKind::F64, from), element(ElementKind::F32, to)));
        all.push((element(ElementKind::F32, from), element(ElementKind::F64, to)));
    }
    all
}

/// The number of random copies. Fewer with `AddressSanitizer`: all access memory in a few ways.
fn copies(most: u64) -> u64 {
    if cfg!(address_sanitizer) { most.min(60) } else { most }
}

#[test]
fn random_layouts_become_each_other() {
    let changes = changes();
    for seed in 1..=copies(2000) {
        let mut random = Random::new(seed);
        let case = Case::random(&mut random, [40, 12, 6, 4]);
        // Mostly numbers of eight bytes, which have ways of their own.
        let change = match random.below(3) {
            0 => changes[random.below(changes.len() as u64) as usize],
            _ => (element(ElementKind::F64, LITTLE), element(ElementKind::F64, LITTLE)),
        };
        case.judge(change, 1 + random.below(3) as usize);
    }
}

#[test]
fn no_byte_outside_of_the_memories_is_touched() {
    let changes = changes();
    for seed in 1..=copies(300) {
        let mut random = Random::new(seed + 90_000);
        let case = Case::random(&mut random, [2000, 70, 20, 9]);
        let change = changes[random.below(changes.len() as u64) as usize];
        case.judge_guarded(change, 1 + random.below(3) as usize);
        case.judge_guarded(
            (element(ElementKind::F64, LITTLE), element(ElementKind::F64, LITTLE)),
            1,
        );
    }
}

#[test]
fn longer_rows_become_each_other() {
    let changes = changes();
    for seed in 1..=copies(200) {
        let mut random = Random::new(seed + 50_000);
        let case = Case::random(&mut random, [3000, 90, 24, 9]);
        let change = changes[random.below(changes.len() as u64) as usize];
        case.judge(change, 1 + random.below(2) as usize);
    }
}

#[test]
fn many_periods_come_again() {
    for (from, to) in [
        ("shape=9001 grid=3 block=1", "shape=9001 grid=2 block=1"),
        ("shape=9001 grid=2 block=3 offset=1 storage=packed", "shape=9001 grid=1"),
        ("shape=9001 grid=1", "shape=9001 grid=3 block=2 storage=packed"),
        ("shape=3x4000 grid=1x5 block=1x1", "shape=3x4000 grid=2x1 block=1x7"),
    ] {
        for change in [
            (ElementKind::F64, ElementKind::F64),
            (ElementKind::F64, ElementKind::F32),
            (ElementKind::U8, ElementKind::U8),
        ] {
            Case::of(from, to).judge((change.0.into(), change.1.into()), 2);
        }
    }
}

#[test]
fn more_rows_and_columns_are_turned_than_a_buffer_holds() {
    let (f4, f8, u4) = (ElementKind::F32, ElementKind::F64, ElementKind::U32);
    let packed = "shape=600x100 grid=1x2 block=7x50 order=F storage=packed";
    for (from, to, kinds) in [
        ("shape=1100x70", "shape=1100x70 order=F", (f8, f8)),
        (
            "shape=70x1100 grid=2x2 block=16x64 order=F",
            "shape=70x1100 grid=1x3 block=1x37",
            (f4, f8),
        ),
        ("shape=600x100 grid=2x1 block=300x100 storage=packed", packed, (f8, f4)),
        (
            "shape=3x40x600 grid=1x2x1 block=1x9x1",
            "shape=3x40x600 strides=1x1801x3",
            (u4, u4),
        ),
        (
            "shape=3x40x600 grid=1x2x1 block=1x9x1",
            "shape=3x40x600 strides=1x3x120",
            (f8, f8),
        ),
    ] {
        Case::of(from, to).judge((kinds.0.into(), kinds.1.into()), 2);
    }
}

#[test]
fn another_order_is_a_transpose() {
    let shape = [35_usize, 22];
    let rows = Arc::new(Layout::one(&[35, 22]).unwrap());
    let columns = Layout::one(&[35, 22])
        .unwrap()
        .stored(Order::F, Storage::Dense)
        .unwrap();
    let plan = Plan::whole(&rows, &Arc::new(columns), PlanSide::To, 0).unwrap();
    let gather = Gather::new(&plan, ElementKind::F64.into(), ElementKind::F64.into()).unwrap();
    assert_eq!((gather.peers(), gather.elements()), (&[0][..], 35 * 22));
    let from: Vec<u8> = (0..35 * 22).flat_map(|at| f64::from(at).to_ne_bytes()).collect();
    let mut into = vec![0; from.len()];
    gather.run(&[&from], &mut into, 1).unwrap();
    for row in 0..shape[0] {
        for column in 0..shape[1] {
            let at = |number: usize| number * 8..number * 8 + 8;
            assert_eq!(into[at(column * shape[0] + row)], from[at(row * shape[1] + column)]);
        }
    }
}

#[test]
fn wrong_arguments_are_named_and_nothing_is_written() {
    let from = Arc::new(Layout::cyclic(&[10], &[2], &[3]).unwrap());
    let to = Arc::new(Layout::one(&[10]).unwrap());
    let (f8, i8, c16) = (
        ElementKind::F64.into(),
        ElementKind::I64.into(),
        ElementKind::C128.into(),
    );
    let takes = Plan::whole(&from, &to, PlanSide::To, 0).unwrap();
    let gives = Plan::whole(&from, &to, PlanSide::From, 1).unwrap();
    let gather = Gather::new(&takes, f8, f8).unwrap();
    assert_eq!(gather.peers(), [0, 1]);
    let (long, short, mut into) = (vec![1; 48], vec![1; 32], vec![7; 80]);
    let told = |pieces: &[&[u8]], into: &mut [u8]| gather.run(pieces, into, 1).unwrap_err().to_string();
    assert!(told(&[&long], &mut into).contains("1 for 2 ranks"));
    let error = told(&[&long, &long], &mut into);
    assert!(
        error.contains("rank 1 has 4 elements of 8 bytes; 48 bytes were given"),
        "{error}"
    );
    let error = told(&[&long, &short], &mut [7; 72]);
    assert!(error.contains("rank 0 has 10 elements of 8 bytes; 72 bytes"), "{error}");
    assert_eq!(into, vec![7; 80]);
    let error = Gather::new(&takes, f8, i8).unwrap_err().to_string();
    assert!(
        error.contains("Unsupported") && error.contains("<f8 cannot be converted to <i8"),
        "{error}"
    );
    assert!(Gather::new(&takes, c16, f8).is_err());
    assert!(Gather::new(&gives, f8, f8).is_err() && Unpack::new(&gives, 0, f8, f8).is_err());
    assert!(Pack::new(&takes, 0, f8, f8).is_err() && Pack::new(&gives, 1, f8, f8).is_err());
    let pack = Pack::new(&gives, 0, f8, f8).unwrap();
    assert!(pack.run(&long, &mut [0; 32], 1).is_err() && pack.run(&short, &mut [0; 33], 1).is_err());
}

#[test]
fn nothing_wanted_is_nothing_done() {
    let from = Arc::new(Layout::one(&[0, 4]).unwrap());
    let to = Arc::new(Layout::cyclic(&[0, 4], &[1, 2], &[1, 1]).unwrap());
    let plan = Plan::whole(&from, &to, PlanSide::To, 1).unwrap();
    let gather = Gather::new(&plan, ElementKind::F32.into(), ElementKind::F64.into()).unwrap();
    assert_eq!((gather.peers().len(), gather.elements()), (0, 0));
    gather.run(&[], &mut [], 4).unwrap();
    let unpack = Unpack::new(&plan, 0, ElementKind::F32.into(), ElementKind::F64.into()).unwrap();
    unpack.run(&[], &mut [], 1).unwrap();
}
