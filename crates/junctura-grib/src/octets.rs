//! Big-endian reads that cannot leave the bytes they were given.

/// `length` bytes from `at` as an unsigned number; `None` outside the bytes or for more than eight.
pub(crate) fn unsigned(bytes: &[u8], at: usize, length: usize) -> Option<u64> {
    let field = bytes.get(at..at.checked_add(length)?)?;
    match *field {
        [a] => Some(u64::from(a)),
        [a, b] => Some(u64::from(u16::from_be_bytes([a, b]))),
        [a, b, c, d] => Some(u64::from(u32::from_be_bytes([a, b, c, d]))),
        _ if length <= 8 => Some(field.iter().fold(0, |sum, &byte| sum << 8 | u64::from(byte))),
        _ => None,
    }
}

/// The same with GRIB's sign: the highest bit means minus.
pub(crate) fn signed(bytes: &[u8], at: usize, length: usize) -> Option<i64> {
    let raw = unsigned(bytes, at, length)?;
    let sign = 1_u64.checked_shl((length as u32 * 8).checked_sub(1)?)?;
    let magnitude = (raw & (sign - 1)) as i64;
    Some(if raw & sign == 0 { magnitude } else { -magnitude })
}

/// The largest number that fits, which GRIB uses for "missing".
pub(crate) fn all_ones(length: usize) -> u64 {
    if length >= 8 { u64::MAX } else { (1 << (length * 8)) - 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_stay_inside() {
        let bytes = [0x81, 2, 3];
        assert_eq!(unsigned(&bytes, 0, 3), Some(0x81_0203));
        assert_eq!(unsigned(&bytes, 1, 3), None);
        assert_eq!(unsigned(&bytes, usize::MAX, 2), None);
        assert_eq!(signed(&bytes, 0, 1), Some(-1));
        assert_eq!(signed(&bytes, 0, 2), Some(-0x102));
        assert_eq!(signed(&bytes, 0, 0), None);
    }
}
