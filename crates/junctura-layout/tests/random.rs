//! Random layouts of all kinds, judged element by element.

use std::sync::Arc;

use crate::common::judge;
use junctura_layout::{Axis, Distribution, Layout, Order, Slab, Storage};

/// Numbers that a seed gives: xorshift, so that a failing case can be named by its number.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D).rotate_left(29) % end
    }

    fn between(&mut self, from: u64, to: u64) -> u64 {
        from + self.below(to - from + 1)
    }

    fn order(&mut self) -> Order {
        if self.below(2) == 0 { Order::C } else { Order::F }
    }

    fn axis(&mut self, extent: u64, parts_max: u64) -> Axis {
        let parts = self.between(1, parts_max);
        if self.below(5) == 0 {
            let mut cuts: Vec<u64> = (1..parts).map(|_| self.between(0, extent)).collect();
            cuts.extend([0, extent]);
            cuts.sort_unstable();
            return Axis::Cuts(cuts);
        }
        // Now and then a block is longer than the array.
        let longest = if self.below(4) == 0 {
            2 * extent + 2
        } else {
            extent / 2 + 2
        };
        let block = self.between(1, longest);
        let offset = if self.below(3) == 0 {
            self.below(parts * block)
        } else {
            0
        };
        Axis::Cyclic { parts, block, offset }
    }

    fn grid(&mut self, shape: &[u64]) -> Layout {
        let parts_max = [6, 3, 3, 2][shape.len() - 1];
        let axes: Vec<Axis> = shape.iter().map(|&extent| self.axis(extent, parts_max)).collect();
        let layout = Layout::new(
            shape,
            Distribution::Grid {
                axes,
                ranks: self.order(),
            },
        )
        .unwrap();
        let order = self.order();
        let storage = match self.below(4) {
            0 => Storage::Packed,
            1 => self.strides(shape),
            _ => Storage::Dense,
        };
        layout.stored(order, storage).unwrap()
    }

    /// Dimensions in any order, with gaps.
    fn strides(&mut self, shape: &[u64]) -> Storage {
        let mut left: Vec<usize> = (0..shape.len()).collect();
        let mut strides = vec![0; shape.len()];
        let mut next = self.between(1, 2);
        while !left.is_empty() {
            let dimension = left.swap_remove(self.below(left.len() as u64) as usize);
            strides[dimension] = next;
            next = next * shape[dimension].max(1) + self.below(2);
        }
        Storage::Strided(strides)
    }

    /// Cut into pieces, which are dealt out.
    fn slabs(&mut self, shape: &[u64], may_overlap: bool) -> Layout {
        let mut pieces = vec![Slab::whole(shape)];
        for _ in 0..self.below(5) {
            let piece = pieces.swap_remove(self.below(pieces.len() as u64) as usize);
            let dimension = self.below(shape.len() as u64) as usize;
            let at = self.between(piece.start[dimension], piece.stop[dimension]);
            let (mut low, mut high) = (piece.clone(), piece);
            (low.stop[dimension], high.start[dimension]) = (at, at);
            pieces.extend([low, high]);
        }
        if may_overlap {
            for piece in &mut pieces {
                for (start, (stop, &extent)) in piece.start.iter_mut().zip(piece.stop.iter_mut().zip(shape)) {
                    *start = start.saturating_sub(self.below(2));
                    *stop = (*stop + self.below(2)).min(extent);
                }
            }
        }
        let mut ranks = vec![Vec::new(); self.between(1, 4) as usize];
        for piece in pieces {
            let rank = self.below(ranks.len() as u64) as usize;
            ranks[rank].push(piece);
        }
        let layout = Layout::slabs(shape, ranks).unwrap();
        layout.stored(self.order(), Storage::Dense).unwrap()
    }

    fn layout(&mut self, shape: &[u64], may_overlap: bool) -> Arc<Layout> {
        let layout = if self.below(4) == 0 {
            self.slabs(shape, may_overlap)
        } else {
            self.grid(shape)
        };
        let read: Layout = layout.to_string().parse().unwrap();
        assert_eq!(read, layout, "{layout}");
        Arc::new(layout)
    }
}

/// Also of a rank and of a dimension that there are not.
fn bounds_are_those_of_indices(layout: &Layout) {
    for rank in 0..=layout.ranks() {
        let indices = layout.indices(rank).unwrap_or_default();
        for dimension in 0..=layout.shape().len() {
            let of_dimension = indices.get(dimension);
            let expected = of_dimension.and_then(|all| Some((*all.first()?, *all.last()?)));
            assert_eq!(layout.bounds(rank, dimension), expected, "{layout}, rank {rank}");
        }
    }
}

#[test]
fn ten_thousand_random_layouts_are_planned_as_their_definitions_say() {
    for seed in 1..=10_000 {
        let mut random = Random(0x9E37_79B9_7F4A_7C15_u64.wrapping_mul(seed));
        let dimensions = random.between(1, 4);
        let longest = [40, 12, 6, 4][dimensions as usize - 1];
        let shape: Vec<u64> = (0..dimensions)
            .map(|_| random.between(u64::from(!random.0.is_multiple_of(16)), longest))
            .collect();
        let from = random.layout(&shape, false);
        from.check_cover().unwrap();
        bounds_are_those_of_indices(&from);
        // All of it, or a part.
        let is_whole = random.below(3) > 0;
        let origin: Vec<u64> = shape
            .iter()
            .map(|&extent| if is_whole { 0 } else { random.between(0, extent) })
            .collect();
        let wanted = |(extent, origin): (&u64, &u64)| {
            if is_whole {
                *extent
            } else {
                random.between(0, extent - origin)
            }
        };
        let part: Vec<u64> = shape.iter().zip(&origin).map(wanted).collect();
        let to = random.layout(&part, true);
        judge(&from, &to, &origin);
    }
}
