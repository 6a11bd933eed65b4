//! Simple packing: a value Y is packed as an integer X of some bits, with Y = (R + X * 2^E) / 10^D.
//!
//! Source: WMO, Manual on Codes (WMO-No. 306), Volume I.2, FM 92 GRIB, regulation 92.9.4, and data template 7.0. The
//! operations and their order are those of ecCodes, so that values have the same bits: (X * 2^E + R) * 10^-D in double
//! precision, the power of ten by repeated division or multiplication.

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

    /// Packs values with so many bits, as finely as they allow: the reference is the largest number in single precision
    /// that is not above the least value, the binary scale factor the least with which all integers fit. That is what
    /// ecCodes chooses, too.
    ///
    /// None if there are fewer than two distinct values, one is infinite, or they are too close together or too far apart.
    #[must_use]
    pub fn of_values(values: &[f64], bits: u32) -> Option<Self> {
        let (least, greatest) = extremes(values)?;
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

    /// The integers of all values but those that are NaN, one after the other; the last byte is filled with zeros.
    /// Values beyond what the packing can state become its ends. Returns nothing if the packing is not supported.
    #[must_use]
    pub fn pack(&self, values: &[f64]) -> Vec<u8> {
        if !self.is_supported() {
            return Vec::new();
        }
        let mut written = BitWriter::new(self.bits, self.nbytes(values.len()).unwrap_or(0));
        let (mut integers, mut compacted) = ([0; BLOCK], [0.0; BLOCK]);
        for block in values.chunks(BLOCK) {
            let mut present = block;
            if block.iter().fold(false, |any, value| any | value.is_nan()) {
                let mut count = 0;
                for value in block.iter().filter(|value| !value.is_nan()) {
                    compacted[count] = *value;
                    count += 1;
                }
                present = &compacted[..count];
            }
            let integers = &mut integers[..present.len()];
            self.round(present, integers);
            written.append(integers);
        }
        written.finish()
    }

    /// Whole numbers in place of values.
    fn round(&self, values: &[f64], integers: &mut [u32]) {
        let (divisor, factor) = (2_f64.powi(-self.binary_scale), power_of_ten(self.decimal_scale));
        let (reference, integer_max) = (self.reference, ((1_u64 << self.bits) - 1) as f64);
        for (integer, value) in integers.iter_mut().zip(values) {
            let wanted = (value * factor - reference) * divisor + 0.5;
            // Each comparison is one instruction, `max` and `min` with their rule for NaN are several.
            let wanted = if wanted > 0.0 { wanted } else { 0.0 };
            let wanted = if wanted < integer_max { wanted } else { integer_max };
            // With 2^52 the last bit of a double is a unit: the sum is rounded, and the rest is the whole number. Vectors of
            // the processor do that; a conversion with its check of limits they do not.
            let sum = wanted + UNIT_LAST;
            *integer = (sum.to_bits() as u32).wrapping_sub(u32::from(sum - UNIT_LAST > wanted));
        }
    }
}

/// So many values are packed at a time.
const BLOCK: usize = 256;
/// 2^52.
const UNIT_LAST: f64 = 4_503_599_627_370_496.0;

/// Integers of some bits, one after the other.
struct BitWriter {
    bits: u32,
    data: Vec<u8>,
    /// Bits that do not fill a word of 32 yet, at the end of `waiting`.
    count: u32,
    waiting: u64,
}

impl BitWriter {
    fn new(bits: u32, nbytes: usize) -> Self {
        Self {
            bits,
            data: Vec::with_capacity(nbytes + 4),
            count: 0,
            waiting: 0,
        }
    }

    fn append(&mut self, integers: &[u32]) {
        match self.bits {
            8 => self.data.extend(integers.iter().map(|integer| *integer as u8)),
            16 => self.append_octets(integers, |integer| (integer as u16).to_be_bytes()),
            32 => self.append_octets(integers, u32::to_be_bytes),
            bits => self.append_bits(bits, integers),
        }
    }

    fn append_octets<const N: usize>(&mut self, integers: &[u32], octets: impl Fn(u32) -> [u8; N]) {
        let start = self.data.len();
        self.data.resize(start + N * integers.len(), 0);
        let places = self.data[start..].as_chunks_mut().0;
        for (place, integer) in places.iter_mut().zip(integers) {
            *place = octets(*integer);
        }
    }

    fn append_bits(&mut self, bits: u32, integers: &[u32]) {
        let (mut waiting, mut count) = (self.waiting, self.count);
        for integer in integers {
            waiting = waiting << bits | u64::from(*integer);
            count += bits;
            if count >= 32 {
                count -= 32;
                self.data.extend_from_slice(&((waiting >> count) as u32).to_be_bytes());
            }
        }
        (self.waiting, self.count) = (waiting, count);
    }

    fn finish(mut self) -> Vec<u8> {
        let last = ((self.waiting << (32 - self.count)) as u32).to_be_bytes();
        self.data.extend_from_slice(&last[..self.count.div_ceil(8) as usize]);
        self.data
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

/// How many values are not NaN.
#[must_use]
pub fn present(values: &[f64]) -> usize {
    values.iter().filter(|value| !value.is_nan()).count()
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

/// The least and the greatest value; None if there is none, or one is infinite.
fn extremes(values: &[f64]) -> Option<(f64, f64)> {
    const LANES: usize = 8;
    // Comparisons are false for NaN.
    let less = |one: f64, other: f64| if one < other { one } else { other };
    let greater = |one: f64, other: f64| if one > other { one } else { other };
    let (mut least, mut greatest) = ([f64::INFINITY; LANES], [f64::NEG_INFINITY; LANES]);
    let (chunks, rest) = values.as_chunks::<LANES>();
    for chunk in chunks {
        for ((least, greatest), value) in least.iter_mut().zip(&mut greatest).zip(chunk) {
            (*least, *greatest) = (less(*value, *least), greater(*value, *greatest));
        }
    }
    for &value in rest {
        (least[0], greatest[0]) = (less(value, least[0]), greater(value, greatest[0]));
    }
    let least = least.into_iter().fold(f64::INFINITY, f64::min);
    let greatest = greatest.into_iter().fold(f64::NEG_INFINITY, f64::max);
    (least.is_finite() && greatest.is_finite()).then_some((least, greatest))
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
            prop_assert_eq!(packing.pack(&values), &*data);
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
            prop_assert_eq!(packing.pack(&doubles), &*data);
            prop_assert_eq!(bitmap_of(&doubles), bitmap);
        }

        #[test]
        fn values_come_back_within_half_a_step(
            values in prop::collection::vec(-1e20_f64..1e20, 2..60),
            size in -25_i32..25,
            bits in 1_u32..=32,
        ) {
            let values: Vec<f64> = values.iter().map(|value| value * 2_f64.powi(size)).collect();
            let packing = SimplePacking::of_values(&values, bits).unwrap();
            let mut found = vec![0.0; values.len()];
            prop_assert!(packing.unpack(&packing.pack(&values), None, ValuesMut::Double(&mut found)));
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
            assert_eq!(SimplePacking::of_values(values, 16), None, "{values:?}");
        }
        assert!(SimplePacking::of_values(&[nan, 1.0, 2.0], 16).is_some());
        assert_eq!(SimplePacking::of_values(&[1.0, 2.0], 0), None);
    }
}
