//! Which points of a grid the ranks of a layout have, and where.

use junctura_layout::{Distribution, Layout, Local, Order, Storage};
use junctura_model::{Code, Error, Result};

use super::invalid;

/// A point of the grid, and its element in the memory of a rank.
pub(super) type PlacedPoint = (u64, u64);

/// Returns the rank that has each point of the grid; `u32::MAX` where no rank has it.
pub(super) fn owners(layout: &Layout, grid: &[u64]) -> Result<Vec<u32>> {
    check(layout, grid)?;
    let points = grid.iter().product::<u64>() as usize;
    let mut owners = vec![u32::MAX; points];
    for rank in 0..layout.ranks() {
        for (point, _) in placed(layout, rank) {
            owners[point as usize] = rank as u32;
        }
    }
    Ok(owners)
}

/// Returns the points of a rank, in an order that is the same for the same layout.
pub(super) fn of_rank(layout: &Layout, grid: &[u64], rank: u64) -> Result<Vec<PlacedPoint>> {
    check(layout, grid)?;
    if rank >= layout.ranks() {
        return Err(invalid(format!("there is no rank {rank} of {}", layout.ranks())));
    }
    Ok(placed(layout, rank))
}

/// Points count in the order of the layout: the shape of a column-major one is the reverse of the grid's.
fn check(layout: &Layout, grid: &[u64]) -> Result<()> {
    if *layout.storage() == Storage::Packed {
        let cause = "a layout with packed blocks has no weights";
        return Err(Error::new(Code::Unsupported, "regrid", cause));
    }
    let mut shape = layout.shape().to_vec();
    if layout.order() == Order::F {
        shape.reverse();
    }
    let is_list = shape.len() == 1 && layout.elements() == grid.iter().product::<u64>();
    if shape != grid && !is_list {
        let order = if layout.order() == Order::F {
            "column-major"
        } else {
            "row-major"
        };
        let cause = format!(
            "the {order} layout has the shape {:?}, and the grid of the weights {grid:?} in row-major order",
            layout.shape()
        );
        return Err(invalid(cause));
    }
    Ok(())
}

fn placed(layout: &Layout, rank: u64) -> Vec<PlacedPoint> {
    let steps = Local::dense(layout.shape().to_vec(), layout.order()).strides;
    match layout.distribution() {
        Distribution::Grid { .. } => {
            let indices = layout.indices(rank).unwrap_or_default();
            let locals = layout.locals(rank);
            locals
                .first()
                .map(|local| product(&indices, local, (&steps, layout.order())))
                .unwrap_or_default()
        }
        Distribution::Slabs(slabs) => {
            let slabs = slabs.ranks().get(rank as usize).into_iter().flatten();
            let each = slabs.zip(layout.each_local(rank)).flat_map(|(slab, local)| {
                let bounds = slab.start.iter().zip(&slab.stop);
                let indices: Vec<Vec<u64>> = bounds.map(|(&start, &stop)| (start..stop).collect()).collect();
                product(&indices, &local, (&steps, layout.order()))
            });
            each.collect()
        }
    }
}

/// The points of all combinations of indices, those of the fastest dimension behind each other.
fn product(indices: &[Vec<u64>], local: &Local, (steps, order): (&[u64], Order)) -> Vec<PlacedPoint> {
    let mut points = vec![(0, local.base)];
    for at in 0..indices.len() {
        let dimension = if order == Order::C { at } else { indices.len() - 1 - at };
        let (step, stride) = (steps[dimension], local.strides[dimension]);
        let of = |&(point, slot): &PlacedPoint| {
            let numbered = indices[dimension].iter().zip(0_u64..);
            numbered.map(move |(index, number)| (point + index * step, slot + number * stride))
        };
        points = points.iter().flat_map(of).collect();
    }
    points
}
