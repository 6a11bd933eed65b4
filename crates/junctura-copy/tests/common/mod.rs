//! Random layouts, and what they mean by definition: where each element of each rank lies, one by one.

mod guarded;

use std::sync::Arc;

use guarded::GuardedBytes;

use junctura_copy::{Gather, Pack, Unpack};
use junctura_layout::{
    Axis, ByteOrder, Distribution, Element, ElementKind, Layout, Order, Plan, PlanSide, Slab, Storage,
};

/// Numbers that a seed gives: xorshift, so that a failing case can be named by its number.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(0x9E37_79B9_7F4A_7C15_u64.wrapping_mul(seed))
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
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
            (extent / 2 + 2).min(40)
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
        let ranks = self.order();
        let layout = Layout::new(shape, Distribution::Grid { axes, ranks }).unwrap();
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
        Arc::new(if self.below(4) == 0 {
            self.slabs(shape, may_overlap)
        } else {
            self.grid(shape)
        })
    }
}

/// Two layouts, of which one is wanted out of the other: all of it, or the part that begins at `origin`.
#[derive(Debug)]
pub(crate) struct Case {
    from: Arc<Layout>,
    to: Arc<Layout>,
    origin: Vec<u64>,
}

impl Case {
    /// All of an array, by the text of its layouts.
    pub(crate) fn of(from: &str, to: &str) -> Self {
        let (from, to): (Layout, Layout) = (from.parse().unwrap(), to.parse().unwrap());
        Self {
            origin: vec![0; from.shape().len()],
            from: Arc::new(from),
            to: Arc::new(to),
        }
    }

    /// Of one to four dimensions, none longer than what `longest` says for so many.
    pub(crate) fn random(random: &mut Random, longest: [u64; 4]) -> Self {
        let dimensions = random.between(1, 4);
        let longest = longest[dimensions as usize - 1];
        let shape: Vec<u64> = (0..dimensions)
            .map(|_| random.between(u64::from(!random.0.is_multiple_of(16)), longest))
            .collect();
        let from = random.layout(&shape, false);
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
        Self { from, to, origin }
    }

    /// Copies what each rank wants, in one go and by messages, and compares with the definitions; and what is there and back again with what
    /// it was.
    pub(crate) fn judge(&self, (from, to): (Element, Element), threads: usize) {
        let shape = self.from.shape();
        let nowhere = vec![0; shape.len()];
        let number = |index: &[u64], origin: &[u64]| {
            let add = |number: u64, at: usize| number * shape[at] + origin[at] + index[at];
            (0..shape.len()).fold(0, add)
        };
        let memories = |layout: &Layout, element: Element, origin: &[u64]| -> Vec<Vec<u8>> {
            let bytes = element.kind.bytes();
            let room = |rank| vec![GAP; layout.room(rank) as usize * bytes];
            let mut memories: Vec<Vec<u8>> = (0..layout.ranks()).map(room).collect();
            for (rank, place, index) in places(layout) {
                let place = place as usize * bytes;
                memories[rank as usize][place..place + bytes].copy_from_slice(&value(element, number(&index, origin)));
            }
            memories
        };
        let has = memories(&self.from, from, &nowhere);
        let wanted = memories(&self.to, to, &self.origin);
        for (rank, wanted) in wanted.iter().enumerate() {
            let plan = Plan::new(&self.from, &self.to, &self.origin, PlanSide::To, rank as u64).unwrap();
            let gather = Gather::new(&plan, from, to).unwrap();
            assert_eq!(gather.elements(), plan.elements());
            let pieces: Vec<&[u8]> = gather.peers().iter().map(|&peer| &has[peer as usize][..]).collect();
            for (way, gather) in [gather.clone().portable(), gather.clone().streamed(), gather]
                .iter()
                .enumerate()
            {
                let mut into = Unaligned::new(wanted.len(), rank);
                gather.run(&pieces, into.bytes(), threads).unwrap();
                assert!(
                    into.bytes() == wanted,
                    "{from} -> {to}, way {way}, rank {rank} of {self:?}"
                );
                assert!(
                    into.is_clean_around(),
                    "{from} -> {to}, way {way}, rank {rank} of {self:?}"
                );
            }
            self.judge_messages(&plan, (from, to), &has, wanted);
        }
        self.judge_return(from, &has);
    }

    /// Copies what each rank wants between memories whose neighboring pages may not be touched.
    pub(crate) fn judge_guarded(&self, (from, to): (Element, Element), threads: usize) {
        let fill = |layout: &Layout, rank: u64, bytes: usize| vec![rank as u8; layout.room(rank) as usize * bytes];
        let has: Vec<Vec<u8>> = (0..self.from.ranks())
            .map(|rank| fill(&self.from, rank, from.kind.bytes()))
            .collect();
        for rank in 0..self.to.ranks() {
            let plan = Plan::new(&self.from, &self.to, &self.origin, PlanSide::To, rank).unwrap();
            let gather = Gather::new(&plan, from, to).unwrap();
            let blank = fill(&self.to, rank, to.kind.bytes());
            for is_at_end in [true, false] {
                let pieces = gather
                    .peers()
                    .iter()
                    .map(|&peer| GuardedBytes::new(&has[peer as usize], is_at_end));
                let pieces: Vec<GuardedBytes> = pieces.collect();
                let pieces: Vec<&[u8]> = pieces.iter().map(GuardedBytes::bytes).collect();
                let mut into: Vec<GuardedBytes> = (0..3).map(|_| GuardedBytes::new(&blank, is_at_end)).collect();
                gather
                    .clone()
                    .portable()
                    .run(&pieces, into[0].bytes_mut(), threads)
                    .unwrap();
                gather
                    .clone()
                    .streamed()
                    .run(&pieces, into[1].bytes_mut(), threads)
                    .unwrap();
                gather.run(&pieces, into[2].bytes_mut(), threads).unwrap();
                assert!(into.iter().all(|one| one.bytes() == into[0].bytes()), "{self:?}");
            }
        }
    }

    /// What has gone into the other layout, all of it, and from there into the first again, is what it was.
    fn judge_return(&self, element: Element, has: &[Vec<u8>]) {
        // A part does not come back as the whole, nor is what lies twice a layout of somebody who has it.
        if self.from.shape() != self.to.shape() || self.to.check_cover().is_err() {
            return;
        }
        let there = moved((&self.from, has), &self.to, element);
        let back = moved((&self.to, &there), &self.from, element);
        assert!(back == has, "{element}, there and back, {self:?}");
    }

    fn judge_messages(&self, plan: &Plan, (from, to): (Element, Element), has: &[Vec<u8>], wanted: &[u8]) {
        let mut into = [0; 3].map(|_| Unaligned::new(wanted.len(), 4));
        for partner in plan.partners() {
            let gives = Plan::new(&self.from, &self.to, &self.origin, PlanSide::From, partner.rank).unwrap();
            let pack = Pack::new(&gives, plan.rank(), from, to).unwrap();
            let unpack = Unpack::new(plan, partner.rank, to, to).unwrap();
            assert_eq!(
                (pack.elements(), unpack.elements()),
                (partner.elements, partner.elements)
            );
            let mut message = [0; 2].map(|_| Unaligned::new(partner.elements as usize * to.kind.bytes(), 5));
            let has = &has[partner.rank as usize];
            pack.run(has, message[0].bytes(), 1).unwrap();
            pack.clone().portable().run(has, message[1].bytes(), 1).unwrap();
            assert!(message.iter().all(Unaligned::is_clean_around));
            let [one, two] = &mut message;
            assert!(one.bytes() == two.bytes());
            unpack.run(one.bytes(), into[0].bytes(), 1).unwrap();
            unpack.clone().portable().run(one.bytes(), into[1].bytes(), 1).unwrap();
            // Bit by bit it is the same.
            let (elements, bytes) = (partner.elements as usize, to.kind.bytes());
            let count = (elements / 7).max(1) + self.origin.len();
            for first in (0..elements).step_by(count) {
                let count = count.min(elements - first);
                let mut part = Unaligned::new(count * bytes, first);
                pack.run_part(has, first as u64, part.bytes()).unwrap();
                assert!(part.is_clean_around());
                let whole = &one.bytes()[first * bytes..(first + count) * bytes];
                assert!(part.bytes() == whole, "{count} elements from {first} on, {self:?}");
                unpack.run_part(part.bytes(), first as u64, into[2].bytes()).unwrap();
            }
        }
        for into in &mut into {
            assert!(
                into.bytes() == wanted,
                "{from} -> {to}, rank {} of {self:?}, by messages",
                plan.rank()
            );
            assert!(into.is_clean_around());
        }
    }
}

/// The memories of all ranks, out of those of another layout.
fn moved((from, has): (&Arc<Layout>, &[Vec<u8>]), to: &Arc<Layout>, element: Element) -> Vec<Vec<u8>> {
    let one = |rank| {
        let plan = Plan::whole(from, to, PlanSide::To, rank).unwrap();
        let gather = Gather::new(&plan, element, element).unwrap();
        let pieces: Vec<&[u8]> = gather.peers().iter().map(|&peer| &has[peer as usize][..]).collect();
        let mut into = vec![GAP; to.room(rank) as usize * element.kind.bytes()];
        gather.run(&pieces, &mut into, 1).unwrap();
        into
    };
    (0..to.ranks()).map(one).collect()
}

/// What nobody wrote.
const GAP: u8 = 0xA5;

/// Bytes that begin anywhere, with others around them.
struct Unaligned {
    bytes: Vec<u8>,
    from: usize,
    length: usize,
}

impl Unaligned {
    fn new(length: usize, by: usize) -> Self {
        let from = 64 + by * 8 % 64 + usize::from(by % 4 == 3);
        Self {
            bytes: vec![GAP; from + length + 128],
            from,
            length,
        }
    }

    fn bytes(&mut self) -> &mut [u8] {
        &mut self.bytes[self.from..][..self.length]
    }

    fn is_clean_around(&self) -> bool {
        let (front, back) = (&self.bytes[..self.from], &self.bytes[self.from + self.length..]);
        front.iter().chain(back).all(|&byte| byte == GAP)
    }
}

/// A number as an element, none of whose bytes tell nothing.
fn value(element: Element, number: u64) -> Vec<u8> {
    let real = number as f32 * 0.75 + 1.0;
    let integer = (number + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mut bytes = match element.kind {
        ElementKind::F32 => real.to_le_bytes().to_vec(),
        ElementKind::F64 => f64::from(real).to_le_bytes().to_vec(),
        kind => [integer.to_le_bytes(), (!integer).to_le_bytes()].concat()[..kind.bytes()].to_vec(),
    };
    if element.order == ByteOrder::Big {
        let width = element.kind.swapped_bytes();
        bytes.chunks_exact_mut(width).for_each(<[u8]>::reverse);
    }
    bytes
}

/// Every index of an array.
fn indices(shape: &[u64]) -> Vec<Vec<u64>> {
    let mut all = vec![Vec::new()];
    for &extent in shape {
        all = all
            .iter()
            .flat_map(|index| (0..extent).map(|at| [&index[..], &[at]].concat()))
            .collect();
    }
    all
}

/// Rank, place and index of each element.
fn places(layout: &Layout) -> Vec<(u64, u64, Vec<u64>)> {
    let Distribution::Slabs(slabs) = layout.distribution() else {
        let all = indices(layout.shape()).into_iter();
        let located = all.map(|index| {
            let (rank, place) = layout.locate(&index).unwrap();
            (rank, place, index)
        });
        return located.collect();
    };
    let mut found = Vec::new();
    for (rank, slabs) in slabs.ranks().iter().enumerate() {
        for (slab, local) in slabs.iter().zip(layout.locals(rank as u64)) {
            for within in indices(&slab.extents()) {
                let place: u64 = within.iter().zip(&local.strides).map(|(at, stride)| at * stride).sum();
                let index = within.iter().zip(&slab.start).map(|(at, start)| at + start).collect();
                found.push((rank as u64, local.base + place, index));
            }
        }
    }
    found
}
