//! Grids of as many ranks as large machines have; all ranks are in this process.

use std::sync::Arc;

use junctura_copy::Gather;
use junctura_layout::{Element, Layout, Plan, PlanSide};

/// Every so many ranks one is tested; fewer with `AddressSanitizer`: all of them access memory in the same way.
const STEP: usize = if cfg!(address_sanitizer) { 1031 } else { 61 };

/// The memories of all ranks of an array whose elements are their own numbers, in C order.
fn memories(layout: &Layout) -> Vec<Vec<u8>> {
    let [rows, columns] = *layout.shape() else {
        panic!("two dimensions")
    };
    let room = |rank| vec![0; 4 * layout.room(rank) as usize];
    let mut all: Vec<Vec<u8>> = (0..layout.ranks()).map(room).collect();
    for number in 0..rows * columns {
        let (rank, at) = layout.locate(&[number / columns, number % columns]).unwrap();
        let at = 4 * at as usize;
        all[rank as usize][at..at + 4].copy_from_slice(&(number as u32).to_le_bytes());
    }
    all
}

/// Redistributes an array to every `step`-th rank of the other layout; each gets its elements.
fn redistribute(from: &str, to: &str, step: usize) {
    let (from, to): (Arc<Layout>, Arc<Layout>) = (Arc::new(from.parse().unwrap()), Arc::new(to.parse().unwrap()));
    let element: Element = "u4".parse().unwrap();
    let (pieces, wanted) = (memories(&from), memories(&to));
    for (rank, wanted) in wanted.iter().enumerate().step_by(step) {
        let plan = Plan::whole(&from, &to, PlanSide::To, rank as u64).unwrap();
        let gather = Gather::new(&plan, element, element).unwrap();
        let needed: Vec<&[u8]> = gather.peers().iter().map(|&peer| &*pieces[peer as usize]).collect();
        let mut mine = vec![0; wanted.len()];
        gather.run(&needed, &mut mine, 1).unwrap();
        assert_eq!(&mine, wanted, "rank {rank}");
    }
}

#[test]
fn ranks_of_16_by_12_to_ranks_of_4_by_4() {
    redistribute("shape=960x720 grid=16x12", "shape=960x720 grid=4x4 order=F", 1);
    redistribute(
        "shape=961x719 grid=16x12 block=7x5",
        "shape=961x719 grid=4x4 block=11x13",
        1,
    );
}

#[test]
fn ranks_of_256_by_256_to_ranks_of_256_by_256() {
    redistribute(
        "shape=1024x1024 grid=256x256",
        "shape=1024x1024 grid=256x256 block=1x1",
        STEP,
    );
    redistribute(
        "shape=1031x1029 grid=256x256 block=2x3",
        "shape=1031x1029 grid=256x256 block=3x2 order=F",
        STEP,
    );
}
