//! Copies a product in the order of what is written, run by run: on any machine, with any strides, and what the quicker ways are judged by.

use std::ops::Range;

use crate::elements::ElementOperation;
use crate::product::{Each, IndexSegment, ListProduct, PeerSource};
use crate::work::SharedTarget;

/// The indices `within` of the slowest dimension, with all of the others.
///
/// # Safety
/// All places of the product are within `pieces` and `into`, in elements of `O`, and no other thread writes those of these
/// indices.
pub(crate) unsafe fn copy<O: ElementOperation>(
    product: &ListProduct,
    pieces: &[&[u8]],
    into: SharedTarget,
    within: Range<u64>,
) {
    let walk = PortableWalk { product, pieces, into };
    let mut at = SlowOffsets::default();
    let mut index = 0;
    for seg in product.dims[0].each() {
        let (from, to) = (within.start.max(index), within.end.min(index + seg.length));
        if from < to {
            let clipped = seg.part(from - index, to - index, product.dims[0].stride);
            // SAFETY: a part of what the caller vouches for.
            unsafe { walk.seg::<O>(0, clipped, &mut at, product.base, 0) };
        }
        index += seg.length;
        if index >= within.end {
            break;
        }
    }
}

struct PortableWalk<'a> {
    product: &'a ListProduct,
    pieces: &'a [&'a [u8]],
    into: SharedTarget,
}

/// Where the slower dimensions are.
#[derive(Clone, Default)]
pub(crate) struct SlowOffsets {
    pub(crate) blocks: Each,
    pub(crate) withins: Each,
    /// How many indices of each are meant, where several are.
    pub(crate) counts: Each,
}

impl SlowOffsets {
    pub(crate) fn offset(&self, source: &PeerSource, dims: usize) -> u64 {
        let each = 0..dims;
        let offsets = each.map(|dim| self.blocks[dim] * source.jumps[dim] + self.withins[dim] * source.strides[dim]);
        source.base + offsets.sum::<u64>()
    }
}

impl PortableWalk<'_> {
    /// Copies one entry of a dimension.
    ///
    /// # Safety
    /// As of [`copy`].
    unsafe fn seg<O: ElementOperation>(
        &self,
        dim: usize,
        seg: IndexSegment,
        at: &mut SlowOffsets,
        into: u64,
        number: usize,
    ) {
        let dims = &self.product.dims;
        let number = number * dims[dim].coordinates + seg.source;
        (at.blocks[dim], at.withins[dim]) = (seg.block, seg.within);
        if dim + 1 == dims.len() {
            let source = &self.product.sources[number];
            let from = at.offset(source, dims.len()) as usize * O::FROM;
            let steps = (source.strides[dim] as usize, dims[dim].stride as usize);
            // SAFETY: these are places of the product, which the caller vouches for.
            unsafe {
                let from = self.pieces[source.piece].as_ptr().add(from);
                let into = self.into.0.add((into + seg.into) as usize * O::TO);
                run::<O>(from, into, steps, seg.length as usize);
            }
            return;
        }
        for index in 0..seg.length {
            at.withins[dim] = seg.within + index;
            let into = into + seg.into + index * dims[dim].stride;
            for next in dims[dim + 1].each() {
                // SAFETY: as of this function.
                unsafe { self.seg::<O>(dim + 1, next, at, into, number) };
            }
        }
    }
}

/// # Safety
/// `count` elements, so many elements apart, can be read and written there.
unsafe fn run<O: ElementOperation>(from: *const u8, into: *mut u8, steps: (usize, usize), count: usize) {
    // SAFETY: the caller guarantees all places.
    unsafe {
        if steps == (1, 1) {
            return O::run(from, into, count);
        }
        for at in 0..count {
            O::one(from.add(at * steps.0 * O::FROM), into.add(at * steps.1 * O::TO));
        }
    }
}
