//! Packs values block by block. The integers of a whole block fill whole bytes.

#![allow(
    clippy::inline_always,
    reason = "the code is compiled for each level of instructions where it is inlined"
)]

use std::mem::MaybeUninit;

use super::vectors::{VectorWork, whole};
use super::{SimplePacking, power_of_ten};

/// So many values are packed at a time; a multiple of 8.
const BLOCK: usize = 256;
/// The bytes of a block with the most bits.
const BLOCK_BYTES: usize = BLOCK * 4;
/// The most that [`append`] writes behind a block.
const SPARE_BYTES: usize = 16;
/// 2^52.
const UNIT_LAST: f64 = 4_503_599_627_370_496.0;

/// Values, and where their integers are written to.
pub(super) struct PackedBlocks<'a> {
    values: &'a [f64],
    has_missing: bool,
    into: &'a mut [MaybeUninit<u8>],
    rounding: Rounding,
    bits: u32,
}

/// From a value to its integer.
struct Rounding {
    factor: f64,
    reference: f64,
    divisor: f64,
    integer_max: f64,
}

impl<'a> PackedBlocks<'a> {
    pub(super) fn new(
        packing: &SimplePacking,
        values: &'a [f64],
        present: usize,
        into: &'a mut [MaybeUninit<u8>],
    ) -> Self {
        let rounding = Rounding {
            factor: power_of_ten(packing.decimal_scale),
            reference: packing.reference,
            divisor: 2_f64.powi(-packing.binary_scale),
            integer_max: ((1_u64 << packing.bits) - 1) as f64,
        };
        Self {
            values,
            has_missing: present < values.len(),
            into,
            rounding,
            bits: packing.bits,
        }
    }

    /// Packs values of which none is missing.
    #[inline(always)]
    fn pack_all(self, mut block: PackedBlock) -> bool {
        let places = self.into.chunks_mut(BLOCK * self.bits as usize / 8);
        for (values, place) in self.values.chunks(BLOCK).zip(places) {
            block.pack(values, &self.rounding, place);
        }
        true
    }

    /// Packs values that are not missing.
    #[inline(always)]
    fn pack_present(self, mut block: PackedBlock) -> bool {
        let mut places = self.into.chunks_mut(BLOCK * self.bits as usize / 8);
        // Twice as long, since a block's values are appended to less than a block.
        let (mut waiting, mut count) = ([0.0; 2 * BLOCK], 0);
        for values in self.values.chunks(BLOCK) {
            for value in values {
                waiting[count] = *value;
                count += usize::from(!value.is_nan());
            }
            if count >= BLOCK {
                let Some(place) = places.next() else {
                    return false;
                };
                block.pack(&waiting[..BLOCK], &self.rounding, place);
                waiting.copy_within(BLOCK..count, 0);
                count -= BLOCK;
            }
        }
        if let Some(place) = places.next() {
            block.pack(&waiting[..count], &self.rounding, place);
            count = 0;
        }
        count == 0 && places.next().is_none()
    }
}

impl VectorWork for PackedBlocks<'_> {
    type Made = bool;

    #[inline(always)]
    fn run(self) -> bool {
        let block = PackedBlock::new(self.bits);
        if self.has_missing {
            self.pack_present(block)
        } else {
            self.pack_all(block)
        }
    }
}

/// The integers of a block, and their bytes.
struct PackedBlock {
    bits: u32,
    integers: [u32; BLOCK],
    bytes: [u8; BLOCK_BYTES + SPARE_BYTES],
    append: fn(&[u32; BLOCK], &mut [u8; BLOCK_BYTES + SPARE_BYTES]),
}

impl PackedBlock {
    fn new(bits: u32) -> Self {
        Self {
            bits,
            integers: [0; BLOCK],
            bytes: [0; BLOCK_BYTES + SPARE_BYTES],
            append: append_of(bits),
        }
    }

    /// Packs a block, or less at the end: integers without a value are 0, so that the last byte is filled with zeros.
    #[inline(always)]
    fn pack(&mut self, values: &[f64], rounding: &Rounding, place: &mut [MaybeUninit<u8>]) {
        let integers = &mut self.integers[..values.len()];
        rounding.apply(values, integers);
        self.integers[values.len()..].fill(0);
        match self.bits {
            8 => octets(&self.integers, &mut self.bytes, |integer| [integer as u8]),
            16 => octets(&self.integers, &mut self.bytes, |integer| {
                (integer as u16).to_be_bytes()
            }),
            32 => octets(&self.integers, &mut self.bytes, u32::to_be_bytes),
            _ => (self.append)(&self.integers, &mut self.bytes),
        }
        let length = place.len().min(BLOCK_BYTES);
        place[..length].write_copy_of_slice(&self.bytes[..length]);
    }
}

impl Rounding {
    /// Writes whole numbers in place of values.
    #[inline(always)]
    fn apply(&self, values: &[f64], integers: &mut [u32]) {
        let Self {
            factor,
            reference,
            divisor,
            integer_max,
        } = *self;
        let wanted = |value: &f64| (value * factor - reference) * divisor + 0.5;
        if integer_max <= f64::from(i32::MAX) {
            for (integer, value) in integers.iter_mut().zip(values) {
                *integer = whole(wanted(value), integer_max);
            }
        } else {
            for (integer, value) in integers.iter_mut().zip(values) {
                *integer = whole_of_32_bits(wanted(value), integer_max);
            }
        }
    }
}

/// The whole number that is not above a value, of those from 0 to `integer_max`; 0 for NaN. Vectors of the processor do that.
#[inline(always)]
fn whole_of_32_bits(wanted: f64, integer_max: f64) -> u32 {
    // Each comparison is one instruction, `max` and `min` with their rule for NaN are several.
    let wanted = if wanted > 0.0 { wanted } else { 0.0 };
    let wanted = if wanted < integer_max { wanted } else { integer_max };
    // With 2^52 the last bit of a double is a unit: the sum is rounded, and the rest is the whole number.
    let sum = wanted + UNIT_LAST;
    (sum.to_bits() as u32).wrapping_sub(u32::from(sum - UNIT_LAST > wanted))
}

#[inline(always)]
fn octets<const N: usize>(integers: &[u32; BLOCK], bytes: &mut [u8], of: impl Fn(u32) -> [u8; N]) {
    for (place, integer) in bytes.as_chunks_mut().0.iter_mut().zip(integers) {
        *place = of(*integer);
    }
}

/// Writes integers of a fixed number of bits, eight at a time into as many bytes as they have bits: four in the highest
/// bits of a number of 128 bits, then the other four. Each number overwrites what its predecessor had too much.
fn append<const BITS: u32>(integers: &[u32; BLOCK], bytes: &mut [u8; BLOCK_BYTES + SPARE_BYTES]) {
    let (half, spare_bits) = (4 * BITS as usize / 8, 4 * BITS % 8);
    let mut at = 0;
    for eight in integers.as_chunks::<8>().0 {
        let join = |pair: &[u32; 2]| u128::from(u64::from(pair[0]) << BITS | u64::from(pair[1]));
        let pairs = [0, 1, 2, 3].map(|number| join(&eight.as_chunks().0[number]));
        let (first, second) = (pairs[0] << (2 * BITS) | pairs[1], pairs[2] << (2 * BITS) | pairs[3]);
        // With an odd number of bits, the second number begins in the last half byte of the first.
        let shared = if spare_bits == 0 { 0 } else { first << 124 };
        let numbers = [
            first << (128 - 4 * BITS),
            shared | second << (128 - 4 * BITS - spare_bits),
        ];
        for (start, number) in [at, at + half].into_iter().zip(numbers) {
            if let Some(place) = bytes[start..].first_chunk_mut() {
                *place = number.to_be_bytes();
            }
        }
        at += BITS as usize;
    }
}

/// Returns what writes integers of so many bits, from 1 to 32.
fn append_of(bits: u32) -> fn(&[u32; BLOCK], &mut [u8; BLOCK_BYTES + SPARE_BYTES]) {
    macro_rules! of {
        ($($bits:literal)*) => {
            match bits {
                $($bits => append::<$bits>,)*
                _ => append::<32>,
            }
        };
    }
    of!(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31)
}
