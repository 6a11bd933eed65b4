//! A part of a message: so can a large one be made and taken bit by bit, and no memory has to hold it whole.
//!
//! Consecutive elements of a dense array are few boxes: the rest of a row, whole rows, the beginning of one; and so in each
//! dimension. A box of a product is a product again, with shorter lists.

use std::ops::Range;

use crate::product::{EntryList, IndexSegment, ListProduct, ProductDim};

/// On which side of a product the message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MessageSide {
    Read,
    Written,
}

impl MessageSide {
    /// Elements of the message in front of a product.
    fn base(self, product: &ListProduct) -> u64 {
        match self {
            Self::Read => product.sources.first().map_or(0, |source| source.base),
            Self::Written => product.base,
        }
    }

    /// Restricts the work to these elements of the message, for a memory that begins with the first element. `products` are
    /// in the order of the message.
    pub(crate) fn part(self, products: &[impl AsRef<ListProduct>], part: &Range<u64>) -> Vec<ListProduct> {
        let ends_before = |product: &_| {
            let product = AsRef::<ListProduct>::as_ref(product);
            self.base(product) + product.elements() <= part.start
        };
        let first = products.partition_point(ends_before);
        let mut cut = Vec::new();
        for product in products[first..].iter().map(AsRef::as_ref) {
            if self.base(product) >= part.end {
                break;
            }
            self.add_boxes(product, part, &mut cut);
        }
        cut
    }

    fn add_boxes(self, product: &ListProduct, part: &Range<u64>, cut: &mut Vec<ListProduct>) {
        let counts: Vec<u64> = product.dims.iter().map(ProductDim::elements).collect();
        let mut steps = vec![1; counts.len()];
        for dim in (1..counts.len()).rev() {
            steps[dim - 1] = steps[dim] * counts[dim];
        }
        let whole = counts[0] * steps[0];
        let base = self.base(product);
        let end = (part.end - base).min(whole);
        let mut at = part.start.saturating_sub(base);
        while at < end {
            // The slowest dimension of which a whole index begins here, and is within the part.
            let fits = |dim: &usize| at.is_multiple_of(steps[*dim]) && end - at >= steps[*dim];
            let dim = (0..counts.len()).find(fits).unwrap_or(counts.len() - 1);
            let indices = |other: usize| {
                let index = at / steps[other] % counts[other];
                let count = match other.cmp(&dim) {
                    std::cmp::Ordering::Less => 1,
                    std::cmp::Ordering::Equal => (counts[dim] - index).min((end - at) / steps[dim]),
                    std::cmp::Ordering::Greater => counts[other],
                };
                index..index + count
            };
            let ranges: Vec<Range<u64>> = (0..counts.len()).map(indices).collect();
            let count = ranges[dim].end - ranges[dim].start;
            cut.push(self.one(product, &ranges, base + at - part.start));
            at += count * steps[dim];
        }
    }

    /// These indices of each dimension, `base` elements behind the beginning of the part.
    fn one(self, product: &ListProduct, ranges: &[Range<u64>], base: u64) -> ListProduct {
        let dims = product.dims.iter().zip(ranges).map(|(dim, range)| self.cut(dim, range));
        let mut one = ListProduct {
            dims: dims.collect(),
            sources: product.sources.clone(),
            base: product.base,
            is_by_block: product.is_by_block,
        };
        match self {
            Self::Read => one.sources.iter_mut().for_each(|source| source.base = base),
            Self::Written => one.base = base,
        }
        one
    }

    /// Restricts a dimension to these indices. On the message's side they are counted from the first index.
    fn cut(self, dim: &ProductDim, range: &Range<u64>) -> ProductDim {
        if *range == (0..dim.elements()) {
            return dim.clone();
        }
        let lists = dim.lists.iter().filter_map(|list| {
            let start = range.start.saturating_sub(list.before);
            let end = range.end.saturating_sub(list.before);
            let begins_within = |(index, _): &(u64, IndexSegment)| *index < end;
            let clip = |(index, seg): (u64, IndexSegment)| {
                let (from, to) = (start.max(index), end.min(index + seg.length));
                let mut seg = seg.part(from - index, to - index, dim.stride);
                match self {
                    Self::Read => seg.within -= range.start,
                    Self::Written => seg.into -= range.start * dim.stride,
                }
                seg
            };
            let cut = EntryList {
                before: list.before.saturating_sub(range.start),
                tail: list.from(start).take_while(begins_within).map(clip).collect(),
                ..EntryList::default()
            };
            (!cut.tail.is_empty()).then_some(cut)
        });
        ProductDim {
            coordinates: dim.coordinates,
            stride: dim.stride,
            lists: lists.collect(),
        }
    }
}
