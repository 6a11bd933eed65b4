//! Simple packing: a value Y is packed as an integer X of some bits, with Y = (R + X * 2^E) / 10^D.
//!
//! Source: WMO, Manual on Codes (WMO-No. 306), Volume I.2, FM 92 GRIB, regulation 92.9.4, and data template 7.0. The
//! operations and their order are those of ecCodes, so that values have the same bits: (X * 2^E + R) * 10^-D in double
//! precision, the power of ten by repeated division or multiplication.

/// The number type of unpacked values.
pub trait Value: Copy {
    /// A missing value.
    const MISSING: Self;

    /// The nearest value to one in double precision.
    fn nearest(value: f64) -> Self;
}

impl Value for f64 {
    const MISSING: Self = f64::NAN;

    fn nearest(value: f64) -> Self {
        value
    }
}

impl Value for f32 {
    const MISSING: Self = f32::NAN;

    fn nearest(value: f64) -> Self {
        value as f32
    }
}

/// How integers stand for values.
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
    /// The largest scale factor, of either sign.
    pub const SCALE_MAX: i32 = 1022;

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

    /// Unpacks the first integers of `data`, one for each value of `into`. Returns false, and leaves `into` as it was,
    /// if `data` is too short or the packing is not supported.
    #[must_use]
    pub fn unpack<T: Value>(&self, data: &[u8], into: &mut [T]) -> bool {
        let is_whole = self.nbytes(into.len()).is_some_and(|nbytes| nbytes <= data.len());
        if !is_whole || !self.is_supported() {
            return false;
        }
        let (scale, factor) = (2_f64.powi(self.binary_scale), power_of_ten(-self.decimal_scale));
        let value = |packed: u32| T::nearest((f64::from(packed) * scale + self.reference) * factor);
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

    /// Unpacks an integer for each 1 of a bitmap, the highest bit of a byte first; where it has 0, or ends, a value is
    /// missing. Returns false, and leaves `into` in an unspecified state, as `unpack` does.
    #[must_use]
    pub fn unpack_by_bitmap<T: Value>(&self, data: &[u8], bitmap: &[u8], into: &mut [T]) -> bool {
        let mut left = ones(bitmap, into.len());
        if !self.unpack(data, &mut into[..left]) {
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
        fn integers_of_every_width_are_read(bits in 1_u32..=32, numbers in prop::collection::vec(any::<u32>(), 0..40)) {
            let numbers: Vec<u32> = numbers.iter().map(|number| number >> (32 - bits)).collect();
            let data = packed(&numbers, bits);
            let mut values = vec![-1.0; numbers.len()];
            let packing = SimplePacking { bits, ..WHOLE };
            prop_assert!(packing.unpack(&data, &mut values));
            prop_assert_eq!(values, numbers.iter().map(|&number| f64::from(number)).collect::<Vec<_>>());
            if let Some((_, short)) = data.split_last() {
                let mut values = vec![-1.0; numbers.len()];
                prop_assert!(!packing.unpack(short, &mut values));
                prop_assert!(values.iter().all(|&value| value == -1.0));
            }
        }

        #[test]
        fn points_without_a_bit_are_missing(present in prop::collection::vec(any::<bool>(), 0..70), bits in 1_u32..=32) {
            let numbers: Vec<u32> = (0..present.iter().filter(|&&is| is).count() as u32).map(|number| number % 2).collect();
            let bitmap = packed(&present.iter().map(|&is| u32::from(is)).collect::<Vec<_>>(), 1);
            let mut values = vec![0_f32; present.len()];
            let packing = SimplePacking { bits, ..WHOLE };
            prop_assert!(packing.unpack_by_bitmap(&packed(&numbers, bits), &bitmap, &mut values));
            let mut left = numbers.iter();
            for (value, is_present) in values.iter().zip(present) {
                if is_present {
                    prop_assert_eq!(*value, *left.next().unwrap() as f32);
                } else {
                    prop_assert!(value.is_nan());
                }
            }
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
        assert!(packing.unpack(&[0, 6], &mut values));
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
        assert!(refused.iter().all(|packing| !packing.unpack(&[0; 8], &mut [0.0])));
        assert!(!WHOLE.unpack_by_bitmap(&[], &[0x80], &mut [0.0]));
    }
}
