//! The common part of [`Gather`](crate::Gather), [`Pack`](crate::Pack) and [`Unpack`](crate::Unpack): products, and the
//! sizes of the memories that they read and write.

use std::sync::OnceLock;

use junctura_model::{Code, Error, InstructionSet, Result};

use crate::elements::{ElementChange, with_op};
use crate::part::MessageSide;
use crate::portable;
use crate::product::ListProduct;
use crate::rows::{ProductRows, RowWalk};
#[cfg(target_arch = "x86_64")]
use crate::tiles::TilePlan;

/// Smaller results stay in the caches, for their next reader.
const CACHED_MAX: u64 = 1 << 20;

/// More would only wait for each other.
const THREADS_MAX: usize = 256;

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct CopyWork {
    parts: Vec<ReadyProduct>,
    change: ElementChange,
    way: CopyMethod,
    /// Larger results bypass the caches, in bytes.
    cached_max: u64,
    /// The rank of each memory that is read, and its elements.
    read: Vec<(u64, u64)>,
    /// The same of what is written.
    written: (u64, u64),
}

/// A product, and the lists that the quick ways walk. These lists grow with the elements, which a layout only claims: so they are made
/// by the first run, after it has compared the claim with the memories that it was given.
#[derive(Clone, Debug)]
struct ReadyProduct {
    product: ListProduct,
    quick: OnceLock<QuickLists>,
}

impl AsRef<ListProduct> for ReadyProduct {
    fn as_ref(&self) -> &ListProduct {
        &self.product
    }
}

#[derive(Clone, Debug)]
enum QuickLists {
    Rows(ProductRows),
    #[cfg(target_arch = "x86_64")]
    Tiles(TilePlan),
    None,
}

/// The capabilities of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CopyMethod {
    Portable,
    Lines,
}

/// A memory that is written by several threads, each its own elements.
#[derive(Clone, Copy)]
pub(crate) struct SharedTarget(pub(crate) *mut u8);

// SAFETY: a pointer does nothing by itself; threads get different elements.
unsafe impl Send for SharedTarget {}

impl CopyWork {
    /// # Errors
    /// Those of [`ListProduct::check`].
    pub(crate) fn new(
        products: Vec<ListProduct>,
        change: ElementChange,
        read: Vec<(u64, u64)>,
        written: (u64, u64),
    ) -> Result<Self> {
        let rooms: Vec<u64> = read.iter().map(|(_, room)| *room).collect();
        for product in &products {
            product.check(&rooms, written.1)?;
        }
        let ready = |product| ReadyProduct {
            product,
            quick: OnceLock::new(),
        };
        Ok(Self {
            parts: products.into_iter().map(ready).collect(),
            change,
            way: CopyMethod::of_this_machine(),
            cached_max: CACHED_MAX,
            read,
            written,
        })
    }

    pub(crate) fn elements(&self) -> u64 {
        self.parts.iter().map(|part| part.product.elements()).sum()
    }

    /// Bytes of memory, but for the lists of quick ways.
    pub(crate) fn bytes(&self) -> usize {
        let of_parts = self.parts.iter().map(|part| part.product.bytes()).sum::<usize>();
        let (parts, read) = (self.parts.capacity(), self.read.capacity());
        size_of::<Self>() + parts * size_of::<ReadyProduct>() + read * size_of::<(u64, u64)>() + of_parts
    }

    /// Restricts the work to so many elements of a message, from `first` on: the same work with a message of these alone.
    ///
    /// # Errors
    /// `InvalidArgument` when the message has not so many.
    pub(crate) fn part(&self, side: MessageSide, first: u64, count: u64) -> Result<Self> {
        let message = match side {
            MessageSide::Read => self.read[0].1,
            MessageSide::Written => self.written.1,
        };
        let end = first.checked_add(count).filter(|&end| end <= message);
        let Some(end) = end else {
            let cause = format!("{count} elements from {first} on, of a message of {message}");
            return Err(Error::new(Code::InvalidArgument, "message", cause));
        };
        let (mut read, mut written) = (self.read.clone(), self.written);
        match side {
            MessageSide::Read => read[0].1 = count,
            MessageSide::Written => written.1 = count,
        }
        Self::new(side.part(&self.parts, &(first..end)), self.change, read, written)
    }

    /// Bytes of an element that is read, and of one that is written.
    pub(crate) fn widths(&self) -> (usize, usize) {
        with_op!(self.change, O => (<O as crate::elements::ElementOperation>::FROM, <O as crate::elements::ElementOperation>::TO))
    }

    pub(crate) fn check(&self, pieces: &[&[u8]]) -> Result<()> {
        let (from_bytes, _) = self.widths();
        if pieces.len() != self.read.len() {
            let cause = format!("{} for {} ranks", pieces.len(), self.read.len());
            return Err(Error::new(Code::InvalidArgument, "pieces", cause));
        }
        for (piece, &read) in pieces.iter().zip(&self.read) {
            check_length(read, from_bytes, piece.len())?;
        }
        Ok(())
    }

    pub(crate) fn run(&self, pieces: &[&[u8]], into: &mut [u8], threads: usize) -> Result<()> {
        self.check(pieces)?;
        let (_, to_bytes) = self.widths();
        check_length(self.written, to_bytes, into.len())?;
        let into = SharedTarget(into.as_mut_ptr());
        let can_line = self.way == CopyMethod::Lines && (into.0 as usize).is_multiple_of(self.change.alignment());
        if can_line {
            self.parts.iter().for_each(|part| part.prepare(self.change));
        }
        let threads = threads.clamp(1, THREADS_MAX) as u64;
        std::thread::scope(|scope| {
            let mut started = Vec::new();
            for share in 1..threads {
                let work = move || self.share(pieces, (into, can_line), (share, threads));
                // Where there can be no more threads, this one does it.
                match std::thread::Builder::new().spawn_scoped(scope, work) {
                    Ok(thread) => started.push(thread),
                    Err(_) => work(),
                }
            }
            self.share(pieces, (into, can_line), (0, threads));
            // A scope waits for the work; this waits for the threads, too, so that none is left when the process ends.
            for thread in started {
                if let Err(panic) = thread.join() {
                    std::panic::resume_unwind(panic);
                }
            }
        });
        Ok(())
    }

    /// One thread's share: of each product, that part of the indices of one dimension.
    fn share(&self, pieces: &[&[u8]], (into, can_line): (SharedTarget, bool), share: (u64, u64)) {
        let is_large = self.elements() * self.change.scale().written() as u64 > self.cached_max;
        for part in &self.parts {
            // SAFETY: `ListProduct::check` compared all places with the rooms, and `run` those with the lengths. No two shares have an
            // index in common, and no two products of a plan an element.
            unsafe {
                match part.quick.get().filter(|_| can_line) {
                    Some(QuickLists::Rows(rows)) => {
                        lines(self.change, is_large, (&part.product, rows), pieces, into, share);
                    }
                    #[cfg(target_arch = "x86_64")]
                    Some(QuickLists::Tiles(quick)) => {
                        tiles(self.change, is_large, (&part.product, quick), pieces, into, share);
                    }
                    _ => {
                        with_op!(self.change, O => portable::copy::<O>(&part.product, pieces, into, part.product.share(0, share)));
                    }
                }
            }
        }
    }

    /// Without what only some machines can do.
    pub(crate) fn portable(mut self) -> Self {
        self.way = CopyMethod::Portable;
        self
    }

    /// Past the caches, however small.
    pub(crate) fn streamed(mut self) -> Self {
        self.cached_max = 0;
        self
    }
}

/// # Safety
/// As of [`portable::copy`]; this machine has what [`lines`](crate::lines) need, and `into` is aligned for the change.
#[cfg(target_arch = "x86_64")]
unsafe fn lines(
    change: ElementChange,
    is_large: bool,
    (product, rows): (&ListProduct, &ProductRows),
    pieces: &[&[u8]],
    into: SharedTarget,
    share: (u64, u64),
) {
    use crate::lines::{LineRows, NarrowFloats, PlainBytes, ReversedBytes, WidenFloats};
    let Some(split) = product.split(share) else { return };
    let mut walk = RowWalk::new((product, rows), pieces, into.0, split);
    macro_rules! by {
        ($($fill:tt)*) => {
            // SAFETY: as of this function.
            unsafe {
                if is_large {
                    LineRows::<$($fill)*, true>::new(rows.ahead).all(&mut walk);
                } else {
                    LineRows::<$($fill)*, false>::new(rows.ahead).all(&mut walk);
                }
            }
        };
    }
    match change {
        ElementChange::None(_) => by!(PlainBytes),
        ElementChange::Swap(_, 2) => by!(ReversedBytes<2>),
        ElementChange::Swap(_, 4) => by!(ReversedBytes<4>),
        ElementChange::Swap(..) => by!(ReversedBytes<8>),
        ElementChange::Narrow { swap_from, swap_to } => match (swap_from, swap_to) {
            (false, false) => by!(NarrowFloats<false, false>),
            (false, true) => by!(NarrowFloats<false, true>),
            (true, false) => by!(NarrowFloats<true, false>),
            (true, true) => by!(NarrowFloats<true, true>),
        },
        ElementChange::Widen { swap_from, swap_to } => match (swap_from, swap_to) {
            (false, false) => by!(WidenFloats<false, false>),
            (false, true) => by!(WidenFloats<false, true>),
            (true, false) => by!(WidenFloats<true, false>),
            (true, true) => by!(WidenFloats<true, true>),
        },
    }
}

/// # Safety
/// Never called: no other machine has this way.
#[cfg(not(target_arch = "x86_64"))]
unsafe fn lines(
    _: ElementChange,
    _: bool,
    _: (&ListProduct, &ProductRows),
    _: &[&[u8]],
    _: SharedTarget,
    _: (u64, u64),
) {
}

/// # Safety
/// As of [`lines`].
#[cfg(target_arch = "x86_64")]
unsafe fn tiles(
    change: ElementChange,
    is_large: bool,
    (product, tiles): (&ListProduct, &TilePlan),
    pieces: &[&[u8]],
    into: SharedTarget,
    share: (u64, u64),
) {
    use crate::tiles::{EightBytes, FourBytes, NarrowingTile, TileWalk, WideningTile};
    let mut walk = TileWalk::new((product, tiles), pieces, into, is_large);
    // SAFETY: as of this function.
    unsafe {
        match change {
            ElementChange::None(4) => walk.run::<FourBytes<false>>(share),
            ElementChange::Swap(4, _) => walk.run::<FourBytes<true>>(share),
            ElementChange::None(_) => walk.run::<EightBytes<0>>(share),
            ElementChange::Swap(_, 4) => walk.run::<EightBytes<4>>(share),
            ElementChange::Swap(..) => walk.run::<EightBytes<8>>(share),
            ElementChange::Narrow { swap_from, swap_to } => match (swap_from, swap_to) {
                (false, false) => walk.run::<NarrowingTile<false, false>>(share),
                (false, true) => walk.run::<NarrowingTile<false, true>>(share),
                (true, false) => walk.run::<NarrowingTile<true, false>>(share),
                (true, true) => walk.run::<NarrowingTile<true, true>>(share),
            },
            ElementChange::Widen { swap_from, swap_to } => match (swap_from, swap_to) {
                (false, false) => walk.run::<WideningTile<false, false>>(share),
                (false, true) => walk.run::<WideningTile<false, true>>(share),
                (true, false) => walk.run::<WideningTile<true, false>>(share),
                (true, true) => walk.run::<WideningTile<true, true>>(share),
            },
        }
    }
}

impl ReadyProduct {
    fn prepare(&self, change: ElementChange) {
        self.quick.get_or_init(|| QuickLists::new(&self.product, change));
    }
}

impl QuickLists {
    fn new(product: &ListProduct, change: ElementChange) -> Self {
        if let Some(rows) = ProductRows::new(product, change.scale()) {
            return Self::Rows(rows);
        }
        #[cfg(target_arch = "x86_64")]
        if change.is_of_four_or_eight()
            && let Some(tiles) = TilePlan::new(product)
        {
            return Self::Tiles(tiles);
        }
        Self::None
    }
}

impl CopyMethod {
    /// `JUNCTURA_ISA`, a variable for tests, can forbid the quick way.
    fn of_this_machine() -> Self {
        let limit = std::env::var("JUNCTURA_ISA").ok();
        match InstructionSet::of_this_machine().at_most(limit.as_deref()) {
            InstructionSet::Avx512 => Self::Lines,
            InstructionSet::Portable | InstructionSet::Avx2 => Self::Portable,
        }
    }
}

fn check_length((rank, room): (u64, u64), bytes: usize, length: usize) -> Result<()> {
    if u128::from(room) * bytes as u128 == length as u128 {
        return Ok(());
    }
    let cause = format!("rank {rank} has {room} elements of {bytes} bytes; {length} bytes were given");
    Err(Error::new(Code::InvalidArgument, "length", cause))
}
