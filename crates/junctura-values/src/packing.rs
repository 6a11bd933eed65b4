//! Simple packing: a value Y is packed as an integer X of some bits, with Y = (R + X * 2^E) / 10^D.
//!
//! Source: WMO, Manual on Codes (WMO-No. 306), Volume I.2, FM 92 GRIB, regulation 92.9.4, and data template 7.0. The
//! operations and their order are those of ecCodes, so that values have the same bits: (X * 2^E + R) * 10^-D in double
//! precision, the power of ten by repeated division or multiplication.

use std::mem::MaybeUninit;

use junctura_model::InstructionSet;

mod blocks;
mod extent;
mod vectors;

use blocks::PackedBlocks;
pub use extent::ValueExtent;
use vectors::vectorized;

/// Where unpacked values are written to.
#[derive(Debug)]
pub enum ValuesMut<'a> {
    /// In single precision: the nearest number to the value in double precision.
    Single(&'a mut [f32]),
    /// In double precision.
    Double(&'a mut [f64]),
}

impl ValuesMut<'_> {
    /// How many values there is memory for.
    #[must_use]
    pub fn count(&self) -> usize {
        match self {
            Self::Single(values) => values.len(),
            Self::Double(values) => values.len(),
        }
    }
}

/// The mapping between integers and values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SimplePacking {
    /// R, the value of the integer 0 before it is divided by the power of ten.
    pub reference: f64,
    /// E, the binary scale factor.
    pub binary_scale: i32,
    /// D, the decimal scale factor.
    pub decimal_scale: i32,
    /// Of one integer: 1 to 32.
    pub bits: u32,
}

impl SimplePacking {
    /// The most bits of an integer.
    pub const BITS_MAX: u32 = 32;
    /// The largest scale factor that is unpacked, of either sign.
    pub const SCALE_MAX: i32 = 1022;
    /// The largest binary scale factor that values are packed with, of either sign.
    const PACKED_SCALE_MAX: i32 = 126;

    /// Packs values of this extent with so many bits, as finely as they allow: the reference is the largest number in single precision
    /// that is not above the least value, the binary scale factor the least with which all integers fit. That is what
    /// ecCodes chooses, too.
    ///
    /// None if there are fewer than two distinct values, one is infinite, or they are too close together or too far apart.
    #[must_use]
    pub fn of_extent(extent: &ValueExtent, bits: u32) -> Option<Self> {
        let (least, greatest) = extent.limits()?;
        let reference = f64::from(single_below(least));
        let range = greatest - reference;
        if !(1..=Self::BITS_MAX).contains(&bits) || greatest <= least || !range.is_finite() {
            return None;
        }
        let integer_max = (1_u64 << bits) - 1;
        let fits = |scale: i32| range * 2_f64.powi(-scale) + 0.5 < integer_max as f64 + 1.0;
        // Within two of the logarithm, and then exactly.
        let near = (range / integer_max as f64).log2().floor() as i32 - 2;
        let binary_scale = (near..near + 5).find(|&scale| fits(scale))?;
        (binary_scale.abs() <= Self::PACKED_SCALE_MAX).then_some(Self {
            reference,
            binary_scale,
            decimal_scale: 0,
            bits,
        })
    }

    /// Whether the number of bits and the scale factors are within the limits.
    #[must_use]
    pub fn is_supported(&self) -> bool {
        (1..=Self::BITS_MAX).contains(&self.bits)
            && self.binary_scale.abs() <= Self::SCALE_MAX
            && self.decimal_scale.abs() <= Self::SCALE_MAX
    }

    /// How many bytes so many integers take.
    #[must_use]
    pub fn nbytes(&self, values: usize) -> Option<usize> {
        values.checked_mul(self.bits as usize).map(|bits| bits.div_ceil(8))
    }

    /// Unpacks an integer for each value; with a bitmap for each value whose bit is 1, the highest of a byte first, and
    /// the others are NaN. Returns false, and leaves `into` in an unspecified state, if `data` is too short or the packing
    /// is not supported.
    #[must_use]
    pub fn unpack(&self, data: &[u8], bitmap: Option<&[u8]>, into: ValuesMut<'_>) -> bool {
        match into {
            ValuesMut::Single(values) => self.unpack_at(data, bitmap, values),
            ValuesMut::Double(values) => self.unpack_at(data, bitmap, values),
        }
    }

    fn unpack_at<T: UnpackedValue>(&self, data: &[u8], bitmap: Option<&[u8]>, into: &mut [T]) -> bool {
        let Some(bitmap) = bitmap else {
            return self.unpack_all(data, into);
        };
        let mut left = ones(bitmap, into.len());
        if !self.unpack_all(data, &mut into[..left]) {
            return false;
        }
        // From the end, so that each value is moved before its place is taken.
        for point in (0..into.len()).rev() {
            if is_present(bitmap, point) {
                left -= 1;
                into[point] = into[left];
            } else {
                into[point] = T::MISSING;
            }
        }
        true
    }

    fn unpack_all<T: UnpackedValue>(&self, data: &[u8], into: &mut [T]) -> bool {
        let is_whole = self.nbytes(into.len()).is_some_and(|nbytes| nbytes <= data.len());
        if !is_whole || !self.is_supported() {
            return false;
        }
        let (scale, factor) = (2_f64.powi(self.binary_scale), power_of_ten(-self.decimal_scale));
        let reference = self.reference;
        let value = |packed: u32| T::nearest((f64::from(packed) * scale + reference) * factor);
        match self.bits {
            8 => fill(into, data.iter(), |byte| value(u32::from(*byte))),
            16 => fill(into, data.as_chunks().0.iter(), |pair| {
                value(u32::from(u16::from_be_bytes(*pair)))
            }),
            24 => fill(into, data.as_chunks().0.iter(), |&[a, b, c]| {
                value(u32::from_be_bytes([0, a, b, c]))
            }),
            32 => fill(into, data.as_chunks().0.iter(), |four| value(u32::from_be_bytes(*four))),
            bits => unpack_bits(bits, data, into, value),
        }
        true
    }

    /// Writes the integers of all values but those that are NaN, one after the other; the last byte is filled with zeros.
    /// Values beyond what the packing can state become its ends.
    ///
    /// `present` is the number of values that are not NaN, `into` has the bytes of as many integers. Returns whether all of
    /// `into` is written; false, too, if the packing is not supported.
    #[must_use]
    pub fn pack(&self, set: InstructionSet, values: &[f64], present: usize, into: &mut [MaybeUninit<u8>]) -> bool {
        let fits = present <= values.len() && self.nbytes(present) == Some(into.len());
        fits && self.is_supported() && vectorized(set, PackedBlocks::new(self, values, present, into))
    }
}

/// The number type of unpacked values.
trait UnpackedValue: Copy {
    const MISSING: Self;

    fn nearest(value: f64) -> Self;
}

impl UnpackedValue for f64 {
    const MISSING: Self = f64::NAN;

    fn nearest(value: f64) -> Self {
        value
    }
}

impl UnpackedValue for f32 {
    const MISSING: Self = f32::NAN;

    fn nearest(value: f64) -> Self {
        value as f32
    }
}

/// A bit for each value, the highest of a byte first: 0 where it is NaN.
#[must_use]
pub fn bitmap_of(values: &[f64]) -> Vec<u8> {
    let byte = |eight: &[f64]| {
        let bits = eight.iter().enumerate();
        bits.fold(0_u8, |sum, (at, value)| sum | u8::from(!value.is_nan()) << (7 - at))
    };
    values.chunks(8).map(byte).collect()
}

/// The largest number in single precision that is not above a value.
fn single_below(value: f64) -> f32 {
    let near = value as f32;
    if f64::from(near) > value {
        near.next_down()
    } else {
        near
    }
}

fn fill<T, P>(into: &mut [T], packed: impl Iterator<Item = P>, value: impl Fn(P) -> T) {
    for (one, packed) in into.iter_mut().zip(packed) {
        *one = value(packed);
    }
}

/// Integers of any number of bits up to 32, each taken from the eight bytes that it begins in.
fn unpack_bits<T>(bits: u32, data: &[u8], into: &mut [T], value: impl Fn(u32) -> T) {
    let width = bits as usize;
    let at = |bytes: &[u8; 8], offset: usize| (u64::from_be_bytes(*bytes) << offset >> (64 - bits)) as u32;
    for (number, one) in into.iter_mut().enumerate() {
        let (byte, offset) = (number * width / 8, number * width % 8);
        let packed = match data[byte..].first_chunk() {
            Some(eight) => at(eight, offset),
            None => at(&padded(&data[byte..]), offset),
        };
        *one = value(packed);
    }
}

fn padded(bytes: &[u8]) -> [u8; 8] {
    let mut eight = [0; 8];
    for (to, from) in eight.iter_mut().zip(bytes) {
        *to = *from;
    }
    eight
}

fn is_present(bitmap: &[u8], point: usize) -> bool {
    bitmap
        .get(point / 8)
        .is_some_and(|byte| byte << (point % 8) & 0x80 != 0)
}

/// How many of the first points are present.
fn ones(bitmap: &[u8], points: usize) -> usize {
    let whole = (points / 8).min(bitmap.len());
    let count: u32 = bitmap[..whole].iter().map(|byte| byte.count_ones()).sum();
    count as usize + (whole * 8..points).filter(|&point| is_present(bitmap, point)).count()
}

/// 10^exponent with the roundings of ecCodes.
fn power_of_ten(exponent: i32) -> f64 {
    let steps = 0..exponent.unsigned_abs();
    if exponent < 0 {
        steps.fold(1.0, |power, _| power / 10.0)
    } else {
        steps.fold(1.0, |power, _| power * 10.0)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::float_cmp, reason = "the same bits are expected")]

    use super::*;
    use proptest::prelude::*;

    const SETS: [InstructionSet; 3] = [InstructionSet::Portable, InstructionSet::Avx2, InstructionSet::Avx512];

    const WHOLE: SimplePacking = SimplePacking {
        reference: 0.0,
        binary_scale: 0,
        decimal_scale: 0,
        bits: 8,
    };

    /// Bit by bit.
    fn packed(numbers: &[u32], bits: u32) -> Vec<u8> {
        let each = |number: &u32| (0..bits).rev().map(|bit| number >> bit & 1).collect::<Vec<_>>();
        let all: Vec<u32> = numbers.iter().flat_map(each).collect();
        let byte = |bits: &[u32]| (0..8).fold(0, |sum, at| sum << 1 | bits.get(at).copied().unwrap_or(0) as u8);
        all.chunks(8).map(byte).collect()
    }

    /// The integers of values by each level of instructions that this processor has: all are the same.
    fn packed_by_each(packing: &SimplePacking, values: &[f64]) -> Vec<u8> {
        let present = extent(values).present;
        let by = |set| {
            let mut into = vec![MaybeUninit::new(0xaa); packing.nbytes(present).unwrap()];
            assert!(packing.pack(set, values, present, &mut into));
            into.into_iter().map(written).collect::<Vec<u8>>()
        };
        let [portable, others @ ..] = SETS.map(by);
        assert!(others.iter().all(|other| *other == portable));
        portable
    }

    #[allow(unsafe_code)]
    fn written(byte: MaybeUninit<u8>) -> u8 {
        // SAFETY: the bytes of a test have a value from the beginning.
        unsafe { byte.assume_init() }
    }

    fn extent(values: &[f64]) -> ValueExtent {
        let [portable, others @ ..] = SETS.map(|set| ValueExtent::new(set, values));
        assert!(others.iter().all(|other| *other == portable));
        portable
    }

    proptest! {
        #[test]
        fn integers_of_every_width_are_read_and_written(
            bits in 1_u32..=32,
            numbers in prop::collection::vec(any::<u32>(), 0..40),
        ) {
            let numbers: Vec<u32> = numbers.iter().map(|number| number >> (32 - bits)).collect();
            let data = packed(&numbers, bits);
            let mut values = vec![-1.0; numbers.len()];
            let packing = SimplePacking { bits, ..WHOLE };
            prop_assert!(packing.unpack(&data, None, ValuesMut::Double(&mut values)));
            prop_assert_eq!(&values, &numbers.iter().map(|&number| f64::from(number)).collect::<Vec<_>>());
            prop_assert_eq!(packed_by_each(&packing, &values), &*data);
            if let Some((_, short)) = data.split_last() {
                prop_assert!(!packing.unpack(short, None, ValuesMut::Double(&mut values)));
            }
        }

        #[test]
        fn points_without_a_bit_are_missing(present in prop::collection::vec(any::<bool>(), 0..70), bits in 1_u32..=32) {
            let numbers: Vec<u32> = (0..present.iter().filter(|&&is| is).count() as u32).map(|number| number % 2).collect();
            let bitmap = packed(&present.iter().map(|&is| u32::from(is)).collect::<Vec<_>>(), 1);
            let mut values = vec![0_f32; present.len()];
            let packing = SimplePacking { bits, ..WHOLE };
            let data = packed(&numbers, bits);
            prop_assert!(packing.unpack(&data, Some(&bitmap), ValuesMut::Single(&mut values)));
            let mut left = numbers.iter();
            for (value, is_present) in values.iter().zip(present) {
                if is_present {
                    prop_assert_eq!(*value, *left.next().unwrap() as f32);
                } else {
                    prop_assert!(value.is_nan());
                }
            }
            let doubles: Vec<f64> = values.iter().map(|&value| f64::from(value)).collect();
            prop_assert_eq!(packed_by_each(&packing, &doubles), &*data);
            prop_assert_eq!(bitmap_of(&doubles), bitmap);
        }

        #[test]
        fn blocks_of_values_are_packed_one_after_the_other(
            values in prop::collection::vec(prop_oneof![8 => -1e5_f64..1e5, 1 => Just(f64::NAN)], 0..1200),
            has_missing: bool,
            bits in 1_u32..=32,
            decimal_scale in -2..3,
        ) {
            let values: Vec<f64> = values.into_iter().filter(|value| has_missing || !value.is_nan()).collect();
            let found = extent(&values);
            let present: Vec<f64> = values.iter().copied().filter(|value| !value.is_nan()).collect();
            prop_assert_eq!(found.present, present.len());
            prop_assume!(present.len() > 1);
            let packing = SimplePacking { decimal_scale, ..SimplePacking::of_extent(&found, bits).unwrap() };
            let (factor, divisor) = (power_of_ten(decimal_scale), 2_f64.powi(-packing.binary_scale));
            let integer = |value: &f64| {
                let wanted = ((value * factor - packing.reference) * divisor + 0.5).floor();
                wanted.clamp(0.0, 2_f64.powi(bits as i32) - 1.0) as u32
            };
            let expected = packed(&present.iter().map(integer).collect::<Vec<_>>(), bits);
            prop_assert_eq!(packed_by_each(&packing, &values), expected);
        }

        #[test]
        fn values_come_back_within_half_a_step(
            values in prop::collection::vec(-1e20_f64..1e20, 2..60),
            size in -25_i32..25,
            bits in 1_u32..=32,
        ) {
            let values: Vec<f64> = values.iter().map(|value| value * 2_f64.powi(size)).collect();
            let packing = SimplePacking::of_extent(&extent(&values), bits).unwrap();
            let mut found = vec![0.0; values.len()];
            prop_assert!(packing.unpack(&packed_by_each(&packing, &values), None, ValuesMut::Double(&mut found)));
            let step = 2_f64.powi(packing.binary_scale);
            for (value, found) in values.iter().zip(found) {
                prop_assert!((value - found).abs() <= step * (0.5 + 1e-6), "{} {} {:?}", value, found, packing);
            }
            // With the next finer scale, an integer would be too large.
            let greatest = values.iter().fold(f64::MIN, |most, value| most.max(*value));
            let largest = (greatest - packing.reference) / step * 2.0 + 0.5;
            prop_assert!(largest.floor() > 2_f64.powi(bits as i32) - 1.0);
        }
    }

    #[test]
    fn a_value_is_scaled_after_the_reference_is_added() {
        let packing = SimplePacking {
            reference: 250.5,
            binary_scale: -2,
            decimal_scale: -1,
            bits: 8,
        };
        let mut values = [0.0; 2];
        assert!(packing.unpack(&[0, 6], None, ValuesMut::Double(&mut values)));
        assert_eq!(values, [2505.0, 2520.0]);
    }

    #[test]
    fn nothing_beyond_the_limits_is_unpacked() {
        let refused = [
            SimplePacking { bits: 0, ..WHOLE },
            SimplePacking { bits: 33, ..WHOLE },
            SimplePacking {
                binary_scale: 1023,
                ..WHOLE
            },
            SimplePacking {
                decimal_scale: -1023,
                ..WHOLE
            },
        ];
        let unpacks = |packing: &SimplePacking| packing.unpack(&[0; 8], None, ValuesMut::Double(&mut [0.0]));
        assert!(!refused.iter().any(unpacks));
        assert!(!WHOLE.unpack(&[], Some(&[0x80]), ValuesMut::Double(&mut [0.0])));
    }

    #[test]
    fn another_number_of_values_is_refused() {
        let values: Vec<f64> = (0..600)
            .map(|number| if number % 3 == 0 { f64::NAN } else { 1.0 })
            .collect();
        let packs = |present: usize, nbytes: usize| {
            let mut into = vec![MaybeUninit::uninit(); nbytes];
            WHOLE.pack(InstructionSet::Avx512, &values, present, &mut into)
        };
        assert!(packs(400, 400));
        for (present, nbytes) in [(400, 399), (400, 401), (100, 100), (513, 513), (601, 601)] {
            assert!(!packs(present, nbytes), "{present} {nbytes}");
        }
    }

    #[test]
    fn some_values_have_no_packing() {
        let nan = f64::NAN;
        for values in [
            &[][..],
            &[1.0],
            &[2.0, 2.0],
            &[nan, nan],
            &[0.0, f64::INFINITY],
            &[0.0, 1e300],
            &[0.0, 1e-300],
        ] {
            assert_eq!(SimplePacking::of_extent(&extent(values), 16), None, "{values:?}");
        }
        assert!(SimplePacking::of_extent(&extent(&[nan, 1.0, 2.0]), 16).is_some());
        assert_eq!(SimplePacking::of_extent(&extent(&[1.0, 2.0]), 0), None);
    }
}
