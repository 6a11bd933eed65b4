//! The conversion of an element: a copy, another byte order, another kind of number.

use junctura_layout::{ByteOrder, Element, ElementKind};
use junctura_model::{Code, Error, Result};

use crate::rows::ElementScale;

/// The conversions, with the relevant widths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ElementChange {
    /// Bytes of an element.
    None(usize),
    /// Bytes of an element, and the size of the groups that are byte-swapped.
    Swap(usize, usize),
    /// `f64` into `f32`, either of which may be in the other byte order than the machine's.
    Narrow { swap_from: bool, swap_to: bool },
    /// `f32` into `f64`.
    Widen { swap_from: bool, swap_to: bool },
}

impl ElementChange {
    pub(crate) fn new(from: Element, to: Element) -> Result<Self> {
        let bytes = from.kind.bytes();
        let (swap_from, swap_to) = (from.order != ByteOrder::NATIVE, to.order != ByteOrder::NATIVE);
        match (from.kind, to.kind) {
            (one, two) if one == two && (from.order == to.order || bytes == 1) => Ok(Self::None(bytes)),
            (one, two) if one == two => Ok(Self::Swap(bytes, one.swapped_bytes())),
            (ElementKind::F64, ElementKind::F32) => Ok(Self::Narrow { swap_from, swap_to }),
            (ElementKind::F32, ElementKind::F64) => Ok(Self::Widen { swap_from, swap_to }),
            _ => Err(Error::new(
                Code::Unsupported,
                "type",
                format!("{from} cannot be converted to {to}: only f4 and f8, and byte orders, are converted"),
            )),
        }
    }
}

impl ElementChange {
    /// Units of an element: those that become others, or its bytes.
    pub(crate) fn scale(self) -> ElementScale {
        let (units, from, to) = match self {
            Self::None(bytes) | Self::Swap(bytes, _) => (bytes, 1, 1),
            Self::Narrow { .. } => (1, 8, 4),
            Self::Widen { .. } => (1, 4, 8),
        };
        ElementScale { units, from, to }
    }

    /// Whether elements of both sides have so many bytes, which is what can be turned in registers.
    pub(crate) fn is_of_four_or_eight(self) -> bool {
        match self {
            Self::None(bytes) | Self::Swap(bytes, _) => bytes == 4 || bytes == 8,
            Self::Narrow { .. } | Self::Widen { .. } => true,
        }
    }

    /// The alignment with which an element is within a line of 64 bytes, if it matters.
    pub(crate) fn alignment(self) -> usize {
        match self {
            Self::None(_) => 1,
            Self::Swap(_, width) => width,
            Self::Narrow { .. } => 4,
            Self::Widen { .. } => 8,
        }
    }
}

/// The operation on each element.
pub(crate) trait ElementOperation {
    /// Bytes of a source element.
    const FROM: usize;
    /// Bytes of a destination element.
    const TO: usize;

    /// # Safety
    /// `FROM` bytes can be read at `from`, `TO` bytes written at `to`; they do not overlap.
    unsafe fn one(from: *const u8, to: *mut u8);

    /// Converts elements that are contiguous on both sides.
    ///
    /// # Safety
    /// As of [`Self::one`], for `count` elements.
    unsafe fn run(from: *const u8, to: *mut u8, count: usize) {
        for at in 0..count {
            // SAFETY: the caller guarantees `count` elements.
            unsafe { Self::one(from.add(at * Self::FROM), to.add(at * Self::TO)) }
        }
    }
}

/// A copy of elements of `N` bytes.
pub(crate) struct SameElement<const N: usize>;

impl<const N: usize> ElementOperation for SameElement<N> {
    const FROM: usize = N;
    const TO: usize = N;

    unsafe fn one(from: *const u8, to: *mut u8) {
        // SAFETY: the caller vouches for both.
        unsafe {
            to.cast::<[u8; N]>()
                .write_unaligned(from.cast::<[u8; N]>().read_unaligned());
        }
    }

    unsafe fn run(from: *const u8, to: *mut u8, count: usize) {
        // SAFETY: the caller vouches for both.
        unsafe { from.copy_to_nonoverlapping(to, count * N) };
    }
}

/// Elements of `N` bytes, of which each `W` are reversed.
pub(crate) struct SwappedElement<const N: usize, const W: usize>;

impl<const N: usize, const W: usize> ElementOperation for SwappedElement<N, W> {
    const FROM: usize = N;
    const TO: usize = N;

    unsafe fn one(from: *const u8, to: *mut u8) {
        // SAFETY: the caller vouches for both.
        unsafe {
            let mut bytes = from.cast::<[u8; N]>().read_unaligned();
            bytes.chunks_exact_mut(W).for_each(<[u8]>::reverse);
            to.cast::<[u8; N]>().write_unaligned(bytes);
        }
    }
}

/// `f64` into `f32`, rounded to the nearest.
pub(crate) struct NarrowedElement<const SWAP_FROM: bool, const SWAP_TO: bool>;

impl<const SWAP_FROM: bool, const SWAP_TO: bool> ElementOperation for NarrowedElement<SWAP_FROM, SWAP_TO> {
    const FROM: usize = 8;
    const TO: usize = 4;

    unsafe fn one(from: *const u8, to: *mut u8) {
        // SAFETY: the caller vouches for both.
        unsafe {
            let bits = from.cast::<u64>().read_unaligned();
            let value = f64::from_bits(if SWAP_FROM { bits.swap_bytes() } else { bits });
            let bits = (value as f32).to_bits();
            to.cast::<u32>()
                .write_unaligned(if SWAP_TO { bits.swap_bytes() } else { bits });
        }
    }
}

/// `f32` into `f64`.
pub(crate) struct WidenedElement<const SWAP_FROM: bool, const SWAP_TO: bool>;

impl<const SWAP_FROM: bool, const SWAP_TO: bool> ElementOperation for WidenedElement<SWAP_FROM, SWAP_TO> {
    const FROM: usize = 4;
    const TO: usize = 8;

    unsafe fn one(from: *const u8, to: *mut u8) {
        // SAFETY: the caller vouches for both.
        unsafe {
            let bits = from.cast::<u32>().read_unaligned();
            let value = f32::from_bits(if SWAP_FROM { bits.swap_bytes() } else { bits });
            let bits = f64::from(value).to_bits();
            to.cast::<u64>()
                .write_unaligned(if SWAP_TO { bits.swap_bytes() } else { bits });
        }
    }
}

/// Calls `$call::<ElementOperation>(…)` with the [`ElementOperation`] of a change.
macro_rules! with_op {
    ($change:expr, $op:ident => $call:expr) => {{
        use $crate::elements::{ElementChange, NarrowedElement, SameElement, SwappedElement, WidenedElement};
        macro_rules! by {
            ($type:ty) => {{
                type $op = $type;
                $call
            }};
        }
        match $change {
            ElementChange::None(1) => by!(SameElement<1>),
            ElementChange::None(2) => by!(SameElement<2>),
            ElementChange::None(4) => by!(SameElement<4>),
            ElementChange::None(8) => by!(SameElement<8>),
            ElementChange::None(_) => by!(SameElement<16>),
            ElementChange::Swap(2, _) => by!(SwappedElement<2, 2>),
            ElementChange::Swap(4, _) => by!(SwappedElement<4, 4>),
            ElementChange::Swap(8, 4) => by!(SwappedElement<8, 4>),
            ElementChange::Swap(8, _) => by!(SwappedElement<8, 8>),
            ElementChange::Swap(..) => by!(SwappedElement<16, 8>),
            ElementChange::Narrow { swap_from, swap_to } => match (swap_from, swap_to) {
                (false, false) => by!(NarrowedElement<false, false>),
                (false, true) => by!(NarrowedElement<false, true>),
                (true, false) => by!(NarrowedElement<true, false>),
                (true, true) => by!(NarrowedElement<true, true>),
            },
            ElementChange::Widen { swap_from, swap_to } => match (swap_from, swap_to) {
                (false, false) => by!(WidenedElement<false, false>),
                (false, true) => by!(WidenedElement<false, true>),
                (true, false) => by!(WidenedElement<true, false>),
                (true, true) => by!(WidenedElement<true, true>),
            },
        }
    }};
}
pub(crate) use with_op;
