//! Arrays taken apart and put together element by element, in the slowest way there is: what plans are judged by.

use std::sync::Arc;

use junctura_layout::{Axis, Distribution, IndexRun, Layout, Order, Plan, PlanPart, PlanSide, Storage};

/// Every index of an array, the last dimension quickest.
pub(crate) fn indices(shape: &[u64]) -> Vec<Vec<u64>> {
    let mut all = vec![Vec::new()];
    for &extent in shape {
        all = all
            .iter()
            .flat_map(|index| (0..extent).map(|at| [&index[..], &[at]].concat()))
            .collect();
    }
    all
}

/// What nobody wrote.
pub(crate) const GAP: u64 = u64::MAX;

/// One dimension of one coordinate: for each index that it has, in which of its blocks and where in that it lies, by looking at every
/// index there is.
fn owned(axis: &Axis, extent: u64, coordinate: u64) -> Vec<(u64, u64, u64)> {
    let mut blocks = Vec::new();
    let mut found = Vec::new();
    for index in 0..extent {
        let (whose, number, within) = match axis {
            Axis::Cyclic { parts, block, offset } => {
                let position = index + offset;
                (position / block % parts, position / block, position % block)
            }
            Axis::Cuts(cuts) => {
                let owner = (0..cuts.len() - 1)
                    .find(|&at| cuts[at] <= index && index < cuts[at + 1])
                    .unwrap();
                (owner as u64, 0, index - cuts[owner])
            }
        };
        if whose == coordinate {
            if blocks.last() != Some(&number) {
                blocks.push(number);
            }
            found.push((index, blocks.len() as u64 - 1, within));
        }
    }
    found
}

/// Elements from one to the next, where these many lie without gaps.
fn dense(extents: &[u64], order: Order) -> Vec<u64> {
    let stride = |dimension: usize| match order {
        Order::C => extents[dimension + 1..].iter().product(),
        Order::F => extents[..dimension].iter().product(),
    };
    (0..extents.len()).map(stride).collect()
}

/// Where a rank's elements lie: the index, and the place.
fn places(layout: &Layout, axes: &[Axis], coordinates: &[u64]) -> Vec<(Vec<u64>, u64)> {
    let split = || axes.iter().zip(layout.shape()).zip(coordinates);
    let lists: Vec<_> = split().map(|((axis, &extent), &at)| owned(axis, extent, at)).collect();
    let counts: Vec<u64> = lists.iter().map(|list| list.len() as u64).collect();
    let rooms: Vec<u64> = split()
        .zip(&counts)
        .map(|(((axis, _), _), &count)| match axis {
            Axis::Cyclic { block, .. } => *block,
            Axis::Cuts(_) => count,
        })
        .collect();
    let blocks: Vec<u64> = lists
        .iter()
        .map(|list| list.last().map_or(0, |(_, block, _)| block + 1))
        .collect();
    let (jumps, strides) = (dense(&blocks, layout.order()), dense(&rooms, layout.order()));
    let place = |choice: &[u64]| -> u64 {
        let each = 0..choice.len();
        match layout.storage() {
            Storage::Dense => each.map(|at| choice[at] * dense(&counts, layout.order())[at]).sum(),
            Storage::Strided(strides) => each.map(|at| choice[at] * strides[at]).sum(),
            Storage::Packed => {
                let in_blocks = |at: usize| {
                    let (_, block, within) = lists[at][choice[at] as usize];
                    block * jumps[at] * rooms.iter().product::<u64>() + within * strides[at]
                };
                each.map(in_blocks).sum()
            }
        }
    };
    let index = |choice: &[u64]| {
        choice
            .iter()
            .zip(&lists)
            .map(|(&at, list)| list[at as usize].0)
            .collect()
    };
    indices(&counts)
        .iter()
        .map(|choice| (index(choice), place(choice)))
        .collect()
}

/// The memory of each rank, in which an element of `shape` at an index is the index's number in row-major order; `origin` is the index that
/// the layout begins at. By the definitions only.
pub(crate) fn memories(layout: &Layout, shape: &[u64], origin: &[u64]) -> Vec<Vec<u64>> {
    let mut memories: Vec<Vec<u64>> = (0..layout.ranks())
        .map(|rank| vec![GAP; layout.room(rank) as usize])
        .collect();
    let number = |index: &[u64]| {
        let add = |number: u64, dimension: usize| number * shape[dimension] + origin[dimension] + index[dimension];
        (0..shape.len()).fold(0, add)
    };
    match layout.distribution() {
        Distribution::Grid { axes, ranks } => {
            let mut grid: Vec<Vec<u64>> = indices(&axes.iter().map(Axis::parts).collect::<Vec<_>>());
            if *ranks == Order::F {
                grid.sort_by_key(|coordinates| coordinates.iter().rev().copied().collect::<Vec<_>>());
            }
            for (rank, coordinates) in grid.iter().enumerate() {
                for (index, position) in places(layout, axes, coordinates) {
                    assert_eq!(
                        layout.locate(&index),
                        Some((rank as u64, position)),
                        "{layout} {index:?}"
                    );
                    let at = axes.iter().zip(&index).zip(coordinates);
                    assert!(
                        at.clone()
                            .all(|((axis, &at), &coordinate)| axis.global(coordinate, axis.local(at)) == at)
                    );
                    let place = &mut memories[rank][position as usize];
                    assert_eq!(*place, GAP, "two elements lie in one place: {layout} {index:?}");
                    *place = number(&index);
                }
            }
        }
        Distribution::Slabs(slabs) => {
            for (rank, slabs) in slabs.ranks().iter().enumerate() {
                for (slab, local) in slabs.iter().zip(layout.locals(rank as u64)) {
                    for within in indices(&slab.extents()) {
                        let index: Vec<u64> = within.iter().zip(&slab.start).map(|(at, start)| at + start).collect();
                        let steps = within.iter().zip(&local.strides).map(|(at, stride)| at * stride);
                        memories[rank][(local.base + steps.sum::<u64>()) as usize] = number(&index);
                    }
                }
            }
        }
    }
    memories
}

/// Calls with each element that a part shares: its rank, its place there, its place in one's own memory.
pub(crate) fn each_element(plan: &Plan, part: &PlanPart, mut tell: impl FnMut(u64, u64, u64)) {
    let lists: Vec<Vec<IndexRun>> = part.runs.iter().map(|runs| runs.each().collect()).collect();
    for choice in indices(&lists.iter().map(|list| list.len() as u64).collect::<Vec<_>>()) {
        let runs: Vec<IndexRun> = choice.iter().zip(&lists).map(|(&at, list)| list[at as usize]).collect();
        let coordinates: Vec<u64> = runs.iter().map(|run| run.peer).collect();
        let (rank, theirs) = plan.their_local(part, &coordinates).unwrap();
        for within in indices(&runs.iter().map(|run| run.length).collect::<Vec<_>>()) {
            let mut mine = part.local.base;
            let mut there = theirs.base;
            for (dimension, (run, at)) in runs.iter().zip(&within).enumerate() {
                mine += run.mine + at * part.local.strides[dimension];
                there += run.their_block * theirs.jumps[dimension] + (run.theirs + at) * theirs.strides[dimension];
            }
            tell(rank, there, mine);
        }
    }
}

/// Does what the plans of all consumers say, and those of all producers, and compares both with the definitions.
pub(crate) fn judge(from: &Arc<Layout>, to: &Arc<Layout>, origin: &[u64]) {
    let produced = memories(from, from.shape(), &vec![0; origin.len()]);
    let wanted = memories(to, from.shape(), origin);
    let empty = || -> Vec<Vec<u64>> { wanted.iter().map(|memory| vec![GAP; memory.len()]).collect() };
    let (mut taken, mut given) = (empty(), empty());
    let mut elements = 0;
    for rank in 0..to.ranks() {
        let plan = Plan::new(from, to, origin, PlanSide::To, rank).unwrap();
        let mut count = 0;
        let mut by_rank = std::collections::BTreeMap::<u64, u64>::new();
        for part in plan.parts() {
            each_element(&plan, part, |peer, theirs, mine| {
                taken[rank as usize][mine as usize] = produced[peer as usize][theirs as usize];
                *by_rank.entry(peer).or_default() += 1;
                count += 1;
            });
        }
        assert_eq!(count, plan.elements(), "{plan}");
        let told = plan
            .partners()
            .into_iter()
            .map(|partner| (partner.rank, partner.elements));
        assert!(told.eq(by_rank), "{plan}");
        elements += count;
    }
    assert_eq!(taken, wanted, "{from} -> {to} at {origin:?}");
    for rank in 0..from.ranks() {
        let plan = Plan::new(from, to, origin, PlanSide::From, rank).unwrap();
        for part in plan.parts() {
            each_element(&plan, part, |peer, theirs, mine| {
                given[peer as usize][theirs as usize] = produced[rank as usize][mine as usize];
            });
        }
        elements -= plan.elements();
    }
    assert_eq!(given, wanted, "{from} -> {to} at {origin:?}, given");
    assert_eq!(elements, 0);
}
