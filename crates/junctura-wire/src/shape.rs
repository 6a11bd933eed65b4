//! Looks a CBOR body over before anything is built from it.
//!
//! A body is untrusted. Its lengths and counts are claims: an array may claim 2^64 items, or nest a million deep, or hold
//! so many empty texts that the vector made from them is far larger than the frame. One pass without recursion or
//! allocation refuses all of that, so that the decoder meets only bodies that are whole, shallow and bounded. Lengths must
//! be definite (our encoder writes no others), and nothing may follow the value.

/// Containers may nest this deep. Our own bodies nest four deep; the rest is room for what a newer peer adds.
pub const DEPTH_MAX: usize = 16;

/// A body may hold this many items, containers and their keys included.
pub const ITEMS_MAX: usize = 1 << 18;

/// Whether `body` is exactly one CBOR value within the limits; otherwise, why not.
pub fn check(body: &[u8]) -> Result<(), &'static str> {
    let mut reader = ShapeReader { rest: body };
    // How many items each open container still lacks; the outermost "container" is the body, with its one value.
    let mut open = [0_u64; DEPTH_MAX + 1];
    open[0] = 1;
    let mut depth = 0;
    let mut items = 0;
    loop {
        while open[depth] == 0 {
            if depth == 0 {
                return if reader.rest.is_empty() {
                    Ok(())
                } else {
                    Err("bytes after the value")
                };
            }
            depth -= 1;
        }
        open[depth] -= 1;
        items += 1;
        if items > ITEMS_MAX {
            return Err("too many items");
        }
        let inside = reader.item()?;
        if inside > 0 {
            if inside > reader.rest.len() as u64 {
                return Err("more items announced than bytes left");
            }
            if depth == DEPTH_MAX {
                return Err("nested too deep");
            }
            depth += 1;
            open[depth] = inside;
        }
    }
}

struct ShapeReader<'a> {
    rest: &'a [u8],
}

impl ShapeReader<'_> {
    /// Passes one item's head (and its bytes, if it is a string) and returns the number of items that it contains.
    fn item(&mut self) -> Result<u64, &'static str> {
        loop {
            let (major, value) = self.head()?;
            match major {
                2 | 3 => {
                    self.take(value)?;
                    return Ok(0);
                }
                4 => return Ok(value),
                5 => return value.checked_mul(2).ok_or("more items announced than bytes left"),
                // A tag: the item that it marks follows.
                6 => {}
                _ => return Ok(0),
            }
        }
    }

    /// Passes an item's first byte and its argument: major type and value.
    fn head(&mut self) -> Result<(u8, u64), &'static str> {
        let first = self.take(1)?[0];
        let argument_bytes = match first & 0x1f {
            small @ 0..=23 => return Ok((first >> 5, u64::from(small))),
            wide @ 24..=27 => 1_u64 << (wide - 24),
            31 => return Err("indefinite length"),
            _ => return Err("not CBOR"),
        };
        let value = self
            .take(argument_bytes)?
            .iter()
            .fold(0, |value, &byte| value << 8 | u64::from(byte));
        Ok((first >> 5, value))
    }

    fn take(&mut self, count: u64) -> Result<&[u8], &'static str> {
        let count = usize::try_from(count).map_err(|_| "ends too early")?;
        let (taken, rest) = self.rest.split_at_checked(count).ok_or("ends too early")?;
        self.rest = rest;
        Ok(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_values_pass() {
        for body in [
            &[0x00][..],
            &[0xa0],
            &[0xa1, 0x00, 0x62, b'h', b'i'],
            &[0x82, 0x01, 0xa1, 0x00, 0x42, 1, 2],
            &[0xc1, 0xd8, 0x20, 0x1a, 0, 0, 0, 1],
            &[0xfb, 0, 0, 0, 0, 0, 0, 0, 0],
            &[0xf6],
        ] {
            assert_eq!(check(body), Ok(()), "{body:02x?}");
        }
    }

    #[test]
    fn torn_or_overlong_values_are_refused() {
        assert_eq!(check(&[]), Err("ends too early"));
        assert_eq!(check(&[0x62, b'h']), Err("ends too early"));
        assert_eq!(check(&[0x19, 1]), Err("ends too early"));
        assert_eq!(check(&[0xc1]), Err("ends too early"));
        assert_eq!(check(&[0x00, 0x00]), Err("bytes after the value"));
        assert_eq!(check(&[0x1c]), Err("not CBOR"));
        assert_eq!(check(&[0xff]), Err("indefinite length"));
    }

    #[test]
    fn claims_beyond_the_frame_are_refused() {
        let mut array = vec![0x9b];
        array.extend_from_slice(&u64::MAX.to_be_bytes());
        assert_eq!(check(&array), Err("more items announced than bytes left"));
        array[0] = 0xbb;
        assert_eq!(check(&array), Err("more items announced than bytes left"));
        array[0] = 0x5b;
        assert_eq!(check(&array), Err("ends too early"));
        for indefinite in [0x9f, 0xbf, 0x5f, 0x7f] {
            assert_eq!(check(&[indefinite, 0xff]), Err("indefinite length"));
        }
    }

    #[test]
    fn depth_ends_at_its_limit() {
        let nested = |depth: usize| [vec![0x81; depth], vec![0x00]].concat();
        assert_eq!(check(&nested(DEPTH_MAX)), Ok(()));
        assert_eq!(check(&nested(DEPTH_MAX + 1)), Err("nested too deep"));
        assert_eq!(check(&nested(1 << 20)), Err("nested too deep"));
        assert_eq!(check(&[vec![0xc1; 1 << 20], vec![0x00]].concat()), Ok(()));
    }

    #[test]
    fn the_number_of_items_ends_at_its_limit() {
        let array = |count: u32| [&[0x9a][..], &count.to_be_bytes(), &vec![0x60; count as usize]].concat();
        assert_eq!(check(&array(ITEMS_MAX as u32 - 1)), Ok(()));
        assert_eq!(check(&array(ITEMS_MAX as u32)), Err("too many items"));
    }
}
