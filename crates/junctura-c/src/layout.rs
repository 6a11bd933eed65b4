//! Layouts: how an array is distributed over ranks.

use std::ffi::{c_char, c_int};
use std::sync::Arc;

use junctura::{Code, Error, Layout, Order, Result};
use junctura_layout::{SLABS_MAX, Slab};

use crate::call::argument::{invalid, place, slice, text};
use crate::call::error::guarded;
use crate::call::handle::{self, OpaqueType};

/// Row-major: the last index varies fastest, as in C.
pub const JCT_ORDER_C: c_int = 0;
/// Column-major: the first index varies fastest, as in Fortran.
pub const JCT_ORDER_F: c_int = 1;

/// How an array is distributed over ranks, and stored in the memory of each.
pub struct LayoutHandle {
    _opaque: [u64; 0],
}

impl OpaqueType for LayoutHandle {
    type Value = Arc<Layout>;
    const TAG: u64 = 0x6a63_745f_6c61_796f;
    const NAME: &'static str = "layout";
}

/// Reads a layout, such as "shape=360x180 grid=1x4 order=F": an array of 360 by 180 elements, its columns
/// distributed over 4 ranks, column-major. Every rank that has the same text has the same layout. Does not
/// block. Free it with jct_layout_free. Errors: JCT_INVALID_ARGUMENT, JCT_LIMIT_EXCEEDED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jct_layout_parse(layout: *const c_char, out: *mut *mut LayoutHandle) -> c_int {
    guarded(|| {
        // SAFETY: the caller guarantees the arguments.
        unsafe { handle::create_in(out, || Ok(Arc::new(text("layout", layout)?.parse()?))) }
    })
}

/// Makes a layout of blocks: block i has the indices from `starts[i]` to `starts[i] + counts[i]` of
/// each dimension, and is stored by rank `ranks[i]`. `shape` has one number for each dimension,
/// `starts` and `counts` have `dimensions` numbers for each of `blocks` blocks, `ranks` has one for
/// each block. All arrays are copied. A rank that has several blocks stores them one behind the other.
/// `order` is JCT_ORDER_C or JCT_ORDER_F. Does not block. Free it with jct_layout_free. Blocks of
/// consumers may overlap and leave out elements; those of producers must cover the array once. Errors:
/// JCT_INVALID_ARGUMENT, JCT_LIMIT_EXCEEDED.
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments, reason = "arrays of C")]
pub unsafe extern "C" fn jct_layout_blocks(
    dimensions: usize,
    shape: *const u64,
    blocks: usize,
    ranks: *const u64,
    starts: *const u64,
    counts: *const u64,
    order: c_int,
    out: *mut *mut LayoutHandle,
) -> c_int {
    guarded(|| {
        // SAFETY: the caller guarantees the arguments.
        unsafe {
            handle::create_in(out, || {
                let numbers = dimensions
                    .checked_mul(blocks)
                    .ok_or_else(|| invalid("blocks", "too many"))?;
                let shape = slice("shape", shape, dimensions)?;
                let ranks = slice("ranks", ranks, blocks)?;
                let starts = slice("starts", starts, numbers)?;
                let counts = slice("counts", counts, numbers)?;
                of_blocks(shape, ranks, (starts, counts), order).map(Arc::new)
            })
        }
    })
}

fn of_blocks(shape: &[u64], ranks: &[u64], (starts, counts): (&[u64], &[u64]), order: c_int) -> Result<Layout> {
    let order = match order {
        JCT_ORDER_C => Order::C,
        JCT_ORDER_F => Order::F,
        other => {
            return Err(invalid(
                "order",
                format!("{other} is neither JCT_ORDER_C nor JCT_ORDER_F"),
            ));
        }
    };
    let dimensions = shape.len().max(1);
    let last = ranks.iter().max().copied().unwrap_or(0);
    if last >= RANKS_MAX {
        let cause = format!("rank {last}; at most {RANKS_MAX} ranks are possible");
        return Err(Error::new(Code::LimitExceeded, "ranks", cause));
    }
    let mut slabs: Vec<Vec<Slab>> = vec![Vec::new(); last as usize + 1];
    for ((rank, start), count) in ranks
        .iter()
        .zip(starts.chunks(dimensions))
        .zip(counts.chunks(dimensions))
    {
        let stop: Option<Vec<u64>> = start
            .iter()
            .zip(count)
            .map(|(start, count)| start.checked_add(*count))
            .collect();
        let stop = stop.ok_or_else(|| invalid("counts", "a block ends beyond all numbers"))?;
        slabs[*rank as usize].push(Slab::new(start, stop)?);
    }
    let layout = Layout::slabs(shape, slabs)?;
    let storage = layout.storage().clone();
    layout.stored(order, storage)
}

/// Ranks without a block are allowed; this is the limit of layouts.
const RANKS_MAX: u64 = SLABS_MAX as u64;

/// Frees a layout. NULL has no effect. Exchanges that were opened with it are not affected.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jct_layout_free(layout: *mut LayoutHandle) {
    // SAFETY: the caller guarantees the arguments.
    guarded(|| unsafe { handle::release(layout) }.map(drop));
}

/// Returns the number of ranks of a layout.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jct_layout_ranks(layout: *const LayoutHandle, ranks: *mut u64) -> c_int {
    guarded(|| {
        // SAFETY: the caller guarantees the arguments.
        unsafe {
            place("ranks", ranks, 0)?;
            ranks.write(handle::shared(layout)?.ranks());
        }
        Ok(())
    })
}

/// Returns the number of elements that the memory of a rank has room for: the length of the arrays that it
/// passes to jct_offer_piece, jct_demand_array, jct_exchange_put and jct_exchange_get. Errors:
/// JCT_INVALID_ARGUMENT where there is no such rank.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jct_layout_elements(layout: *const LayoutHandle, rank: u64, elements: *mut u64) -> c_int {
    guarded(|| {
        // SAFETY: the caller guarantees the arguments.
        unsafe {
            place("elements", elements, 0)?;
            let layout = handle::shared(layout)?;
            check_rank(layout, rank)?;
            elements.write(layout.room(rank));
        }
        Ok(())
    })
}

/// Returns how many indices a rank has in a dimension, counted from 0. Errors: JCT_INVALID_ARGUMENT where
/// there is no such rank or dimension, and where the rank has several blocks.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jct_layout_extent(
    layout: *const LayoutHandle,
    rank: u64,
    dimension: usize,
    extent: *mut u64,
) -> c_int {
    guarded(|| {
        // SAFETY: the caller guarantees the arguments.
        unsafe {
            place("extent", extent, 0)?;
            extent.write(extent_of(handle::shared(layout)?, rank, dimension)?);
        }
        Ok(())
    })
}

fn extent_of(layout: &Layout, rank: u64, dimension: usize) -> Result<u64> {
    check_rank(layout, rank)?;
    if dimension >= layout.shape().len() {
        let cause = format!("there is no dimension {dimension} of {}", layout.shape().len());
        return Err(invalid("layout", cause));
    }
    match &*layout.locals(rank) {
        [] => Ok(0),
        [only] => Ok(only.extents[dimension]),
        several => {
            let cause = format!("rank {rank} has {} blocks, and no one extent", several.len());
            Err(invalid("layout", cause))
        }
    }
}

/// Returns the first index of the whole array that a rank has in a dimension, counted from 0. Does not
/// block. Errors: JCT_INVALID_ARGUMENT where there is no such rank or dimension, where the rank has several
/// blocks or no index, and where its indices are not contiguous.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jct_layout_start(
    layout: *const LayoutHandle,
    rank: u64,
    dimension: usize,
    start: *mut u64,
) -> c_int {
    guarded(|| {
        // SAFETY: the caller guarantees the arguments.
        unsafe {
            place("start", start, 0)?;
            start.write(start_of(handle::shared(layout)?, rank, dimension)?);
        }
        Ok(())
    })
}

fn start_of(layout: &Layout, rank: u64, dimension: usize) -> Result<u64> {
    let extent = extent_of(layout, rank, dimension)?;
    let cause = match layout.bounds(rank, dimension) {
        Some((first, last)) if last - first + 1 == extent => return Ok(first),
        Some(_) => format!("the indices of rank {rank} are not contiguous"),
        None => format!("rank {rank} has no index in dimension {dimension}"),
    };
    Err(invalid("layout", cause))
}

fn check_rank(layout: &Layout, rank: u64) -> Result<()> {
    if rank < layout.ranks() {
        return Ok(());
    }
    Err(invalid(
        "layout",
        format!("there is no rank {rank} of {}", layout.ranks()),
    ))
}
