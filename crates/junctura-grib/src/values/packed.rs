//! A message's claims about its values, compared with its bytes.
//!
//! Decoders trust a header: for missing values they read beyond the message. So the claim is checked here first, by the
//! layout of each packing (WMO, Manual on Codes, FM 92 GRIB: edition 1, sections 2 to 4; edition 2, templates 5 and 7). For
//! a packing that only its decoder understands, [`PackedValues::is_proven`] reports that nothing is known.
//!
//! The cost is a pass over the bitmap and over the groups that the message has, whatever it claims.

use crate::error::MessageFault;
use crate::header::grid::{self, MISSING4};
use crate::octets::unsigned;
use crate::sections::SectionTable;
use crate::values::ccsds::StreamLayout;
use crate::values::templates;

/// The values of a message's first field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PackedValues {
    /// Points of the grid, or coefficients; 0 where the header does not state them.
    pub points: u64,
    /// Values in the message: points that are not missing.
    pub values: u64,
    /// Whether all values are in the message for certain. If not, decode it in a process that may crash.
    pub is_proven: bool,
    /// Whether places of the values, if they have any, are those of rows and columns of a regular grid. Decoders compute
    /// the places of other grids, and trust the header's description of the grid.
    pub is_regular: bool,
}

type Checked<T> = Result<T, (usize, MessageFault)>;

/// No decoder supports more bits per value.
const BITS_MAX: u64 = 64;
/// Parallels between a pole and the equator: finding their latitudes takes time with the square of their number.
pub(crate) const PARALLELS_MAX: u64 = 8000;

/// Edition 1: with this binary scale factor, -32767, ecCodes takes the values for absent, and counts them without an end.
const NO_PACKING1: u64 = 0xffff;

pub(crate) fn check(message: &[u8], sections: &SectionTable) -> Checked<PackedValues> {
    let mut packed = if sections.edition == 1 {
        edition1(message, sections)
    } else {
        edition2(message, sections)
    }?;
    // Decoders differ in which of several fields they take the sections of.
    packed.is_proven &= sections.fields == 1;
    Ok(packed)
}

/// Checks the number of parallels of a Gaussian grid.
fn parallels(grid: SectionPart<'_>, at: usize, octets: usize) -> Checked<()> {
    let parallels = grid.unsigned(at, octets)?;
    if !(1..=PARALLELS_MAX).contains(&parallels) {
        return Err((grid.start + at, MessageFault::Parallels(parallels)));
    }
    Ok(())
}

/// One section and its place, for faults.
#[derive(Clone, Copy)]
struct SectionPart<'a> {
    number: u8,
    start: usize,
    bytes: &'a [u8],
}

impl<'a> SectionPart<'a> {
    fn of(message: &'a [u8], sections: &SectionTable, number: u8) -> Self {
        let span = sections.by_number[usize::from(number)];
        let bytes = span.of(message);
        Self {
            number,
            start: span.start,
            bytes,
        }
    }

    fn unsigned(&self, at: usize, length: usize) -> Checked<u64> {
        unsigned(self.bytes, at, length).ok_or((
            self.start,
            MessageFault::Section {
                section: self.number,
                length: self.bytes.len() as u64,
            },
        ))
    }

    fn octet(&self, at: usize) -> Checked<u64> {
        self.unsigned(at, 1)
    }

    /// Returns the octets after the first `at`.
    fn behind(&self, at: usize) -> &'a [u8] {
        self.bytes.get(at..).unwrap_or_default()
    }

    /// Checks that `bits` of values follow the first `at` octets.
    fn holds(&self, at: usize, bits: u128) -> Checked<()> {
        let present = self.behind(at).len() as u64;
        let needed = bits.div_ceil(8);
        if needed <= u128::from(present) {
            return Ok(());
        }
        let needed = u64::try_from(needed).unwrap_or(u64::MAX);
        Err((self.start, self.short(needed, present)))
    }

    fn short(&self, needed: u64, present: u64) -> MessageFault {
        MessageFault::Values {
            section: self.number,
            needed,
            present,
        }
    }

    /// The width of one value.
    fn bits(&self, at: usize) -> Checked<u64> {
        let bits = self.octet(at)?;
        if bits > BITS_MAX {
            return Err((self.start + at, MessageFault::Bits(bits)));
        }
        Ok(bits)
    }
}

fn all(values: u64, bits: u64) -> u128 {
    u128::from(values) * u128::from(bits)
}

fn edition2(message: &[u8], sections: &SectionTable) -> Checked<PackedValues> {
    let part = |number| SectionPart::of(message, sections, number);
    let (about, data) = (part(5), part(7));
    let points = part(3).unsigned(6, 4)?;
    let values = about.unsigned(5, 4)?;
    let has_all_rows = rows2(part(3), points)?;
    bitmap2(part(6), points, values)?;
    let is_whole = templates::are_whole(part(3).bytes, part(4).bytes, about.bytes);
    let is_proven = is_whole
        & has_all_rows
        & match about.unsigned(9, 2)? {
            // Simple packing, and the same of logarithms.
            0 | 61 => {
                data.holds(5, all(values, about.bits(19)?))?;
                true
            }
            2 => groups(about, data, values, 0)?,
            3 => {
                let (order, octets) = (about.octet(47)?, about.octet(48)?);
                groups(about, data, values, (order + 1) * octets)?
            }
            4 => {
                let bits = ieee(about, 11)?;
                data.holds(5, all(values, bits))?;
                true
            }
            42 => ccsds(about, data, values)?,
            // Spectral: the first value is in section 5.
            50 => {
                data.holds(5, all(values.saturating_sub(1), about.bits(19)?))?;
                true
            }
            51 => {
                let subset = about.unsigned(30, 4)?;
                spectral2(part(3), about, values, subset)?;
                let bits = all(subset, ieee(about, 34)?) + all(values - subset, about.bits(19)?);
                data.holds(5, bits)?;
                true
            }
            200 => {
                runs(about, data, values)?;
                true
            }
            _ => false,
        };
    let template = part(3).unsigned(12, 2)?;
    let has_rows = template == 0 || template == 40;
    Ok(PackedValues {
        points,
        values,
        is_proven,
        is_regular: matches!(template, 50..=53)
            || has_rows && part(3).octet(10)? == 0 && part(3).octet(71)? & 0x10 == 0,
    })
}

/// Checks that rows and columns make as many points as are announced; where rows differ, each has its length.
///
/// False for an area of a grid whose rows differ, as ecCodes writes it: its rows have the lengths of whole circles, and only
/// its decoder counts the points within the area.
fn rows2(grid: SectionPart<'_>, points: u64) -> Checked<bool> {
    let octets = grid.octet(10)? as usize;
    let template = grid.unsigned(12, 2)?;
    if template == 40 {
        parallels(grid, 67, 4)?;
    }
    if octets == 0 && matches!(template, 0..=3 | 10 | 12 | 20 | 30..=33 | 40..=43 | 90 | 110 | 140 | 204) {
        return columns2(grid, points).map(|()| true);
    }
    let start = match template {
        0 | 40 => 72,
        1 | 2 | 41 | 42 => 84,
        3 | 43 => 96,
        _ => return Ok(true),
    };
    if octets == 0 {
        return Ok(true);
    }
    let rows = grid.unsigned(34, 4)?;
    grid.holds(start, all(rows, octets as u64 * 8))?;
    let lengths = grid.behind(start).chunks_exact(octets).take(rows as usize);
    let present = lengths
        .map(|length| unsigned(length, 0, octets).unwrap_or(u64::MAX))
        .fold(0, u64::saturating_add);
    if present < points {
        return Err((grid.start, MessageFault::Points { points, present }));
    }
    Ok(present == points)
}

/// Checks that rows of equal length make as many points as are announced.
fn columns2(grid: SectionPart<'_>, points: u64) -> Checked<()> {
    let (columns, rows) = (grid.unsigned(30, 4)?, grid.unsigned(34, 4)?);
    let present = columns.saturating_mul(rows);
    if present == points || columns == MISSING4 || rows == MISSING4 {
        return Ok(());
    }
    Err((grid.start, MessageFault::Points { points, present }))
}

/// Checks that a bitmap has a bit for each point, and as many ones as there are values.
fn bitmap2(bitmap: SectionPart<'_>, points: u64, values: u64) -> Checked<()> {
    match bitmap.octet(5)? {
        0 => {
            bitmap.holds(6, u128::from(points))?;
            let ones = ones(bitmap.behind(6), points);
            if ones == values {
                return Ok(());
            }
            Err((bitmap.start, MessageFault::Count { values, present: ones }))
        }
        255 => Ok(()),
        // One of a field before, or of the centre: not in this message.
        other => Err((bitmap.start + 5, MessageFault::Bitmap(other as u8))),
    }
}

fn ones(bytes: &[u8], bits: u64) -> u64 {
    let whole = (bits / 8) as usize;
    let count = |bytes: &[u8]| bytes.iter().map(|byte| u64::from(byte.count_ones())).sum::<u64>();
    let rest = bits % 8;
    let last = bytes
        .get(whole)
        .filter(|_| rest > 0)
        .map_or(0, |byte| byte >> (8 - rest));
    count(&bytes[..whole.min(bytes.len())]) + u64::from(last.count_ones())
}

/// Bits of a floating-point number, by code table 5.7.
fn ieee(about: SectionPart<'_>, at: usize) -> Checked<u64> {
    match about.octet(at)? {
        1 => Ok(32),
        2 => Ok(64),
        3 => Ok(128),
        other => Err((about.start + at, MessageFault::Bits(other))),
    }
}

/// Of pentagonal truncations that are triangles the numbers of coefficients are known: decoders count by these.
fn spectral2(grid: SectionPart<'_>, about: SectionPart<'_>, values: u64, subset: u64) -> Checked<()> {
    let whole = triangle([grid.unsigned(14, 4)?, grid.unsigned(18, 4)?, grid.unsigned(22, 4)?]);
    let inner = triangle([about.unsigned(24, 2)?, about.unsigned(26, 2)?, about.unsigned(28, 2)?]);
    if whole != Some(values) {
        let present = whole.unwrap_or(0);
        return Err((grid.start, MessageFault::Count { values, present }));
    }
    if inner != Some(subset) || subset > values {
        let present = inner.unwrap_or(0);
        return Err((
            about.start,
            MessageFault::Count {
                values: subset,
                present,
            },
        ));
    }
    Ok(())
}

/// Real and imaginary parts of a triangular truncation.
fn triangle([j, k, m]: [u64; 3]) -> Option<u64> {
    (j == k && k == m).then(|| (j + 1).checked_mul(j + 2)).flatten()
}

/// Complex packing, templates 5.2 and 5.3: groups, each with a reference, a width and a length of its own.
///
/// Returns whether that is enough to know; of no groups at all it is not.
fn groups(about: SectionPart<'_>, data: SectionPart<'_>, values: u64, extra: u64) -> Checked<bool> {
    let count = about.unsigned(31, 4)?;
    if count == 0 {
        return Ok(false);
    }
    let reference_bits = about.bits(19)?;
    let (width_least, width_bits) = (about.octet(35)?, about.bits(36)?);
    let (shortest, length_step) = (about.unsigned(37, 4)?, about.octet(41)?);
    let (last_length, length_bits) = (about.unsigned(42, 4)?, about.bits(46)?);
    let octets = |bits: u64| all(count, bits).div_ceil(8);
    let head = u128::from(extra) + octets(reference_bits) + octets(width_bits) + octets(length_bits);
    data.holds(5, head * 8)?;
    // Each of these places is within the section, since the whole list is.
    let widths = 5 + extra as usize + octets(reference_bits) as usize;
    let lengths = widths + octets(width_bits) as usize;
    let start = lengths + octets(length_bits) as usize;
    let (mut widths, mut lengths) = (
        PaddedBits::new(data.behind(widths)),
        PaddedBits::new(data.behind(lengths)),
    );
    let (mut sum, mut bits) = (0_u128, 0_u128);
    if width_bits == 0 && length_bits == 0 {
        sum = all(count - 1, shortest) + u128::from(last_length);
        bits = sum.saturating_mul(u128::from(width_least));
    } else {
        for group in 1..=count {
            let width = width_least.saturating_add(widths.take(width_bits));
            let length = shortest.saturating_add(lengths.take(length_bits).saturating_mul(length_step));
            let length = if group == count { last_length } else { length };
            sum = sum.saturating_add(u128::from(length));
            bits = bits.saturating_add(all(length, width));
        }
    }
    if sum != u128::from(values) {
        let present = u64::try_from(sum).unwrap_or(u64::MAX);
        return Err((data.start, MessageFault::Count { values, present }));
    }
    data.holds(start, bits)?;
    Ok(true)
}

/// Run lengths of levels, template 5.200: a level, then digits of its count, as long as there are some.
fn runs(about: SectionPart<'_>, data: SectionPart<'_>, values: u64) -> Checked<()> {
    let (bits, level_max) = (about.bits(11)?, about.unsigned(12, 2)?);
    if bits == 0 {
        return Ok(());
    }
    let base = ((1_u128 << bits) - 1).saturating_sub(u128::from(level_max));
    let bytes = data.behind(5);
    let mut symbols = PaddedBits::new(bytes);
    let (mut present, mut weight) = (0_u128, 1_u128);
    for _ in 0..bytes.len() as u64 * 8 / bits {
        let symbol = u128::from(symbols.take(bits));
        match symbol.checked_sub(u128::from(level_max) + 1) {
            None => (present, weight) = (present.saturating_add(1), 1),
            Some(digit) => {
                present = present.saturating_add(digit.saturating_mul(weight));
                weight = weight.saturating_mul(base);
            }
        }
    }
    if present >= u128::from(values) {
        return Ok(());
    }
    Err((
        data.start,
        MessageFault::Count {
            values,
            present: present as u64,
        },
    ))
}

/// CCSDS, template 5.42. Without bits all values are the same.
fn ccsds(about: SectionPart<'_>, data: SectionPart<'_>, values: u64) -> Checked<bool> {
    let stream = StreamLayout {
        bits: about.bits(19)?,
        flags: about.octet(21)? as u8,
        block: about.octet(22)?,
        interval: about.unsigned(23, 2)?,
    };
    if stream.bits == 0 {
        return Ok(true);
    }
    match stream.samples(data.behind(5), values) {
        None => Ok(false),
        Some(present) if present < values => Err((data.start, MessageFault::Count { values, present })),
        Some(_) => Ok(true),
    }
}

fn edition1(message: &[u8], sections: &SectionTable) -> Checked<PackedValues> {
    let part = |number| SectionPart::of(message, sections, number);
    let (grid, bitmap, data) = (part(2), part(3), part(4));
    if grid.bytes.get(5) == Some(&4) {
        parallels(grid, 25, 2)?;
    }
    let flags = data.octet(3)?;
    let (is_spectral, is_complex) = (flags & 0x80 != 0, flags & 0x40 != 0);
    let points = if is_spectral {
        triangle([grid.unsigned(6, 2)?, grid.unsigned(8, 2)?, grid.unsigned(10, 2)?])
    } else {
        grid::edition1(message, sections).points
    };
    let values = match points {
        Some(points) if !bitmap.bytes.is_empty() => Some(bitmap1(bitmap, points)?),
        other => other,
    };
    let (Some(points), Some(values)) = (points, values) else {
        return Ok(PackedValues {
            points: 0,
            values: 0,
            is_proven: false,
            is_regular: false,
        });
    };
    let bits = data.bits(10)?;
    let kind = grid.octet(5)?;
    let is_reduced = grid::is_reduced1(grid.bytes);
    // More flags denote packings that only decoders know; a missing number of columns has no meaning in other grids.
    let is_known = flags & 0x10 == 0
        && data.unsigned(4, 2)? != NO_PACKING1
        && is_measured1(message, data)
        && templates::is_whole1(grid.bytes)
        && (!is_reduced || matches!(kind, 0 | 4));
    // Decoders count values by the section's length, less the bits that it announces as unused.
    let unused = u128::from(flags & 0x0f);
    let has = |at, bits| data.holds(at, bits).map(|()| data.holds(at, bits + unused).is_ok());
    let is_proven = is_known
        & match (is_spectral, is_complex) {
            // A part of a grid with rows of different lengths has fewer points than declared: only its decoder counts them.
            (false, false) if is_reduced => has(11, all(values, bits)).unwrap_or(false),
            (false, false) => has(11, all(values, bits))?,
            // The first value is before the others.
            (true, false) => has(15, all(values.saturating_sub(1), bits))?,
            (true, true) => {
                let subset = triangle([data.octet(15)?, data.octet(16)?, data.octet(17)?]);
                let Some(subset) = subset.filter(|subset| *subset <= values) else {
                    return Err((data.start, MessageFault::Count { values, present: 0 }));
                };
                // Octets 12 and 13 give the start of the rest, in some messages from the beginning of the message: directly
                // after the subset.
                has(18, all(subset, 32) + all(values - subset, bits))?
            }
            // Many forms of groups, which only decoders know.
            (false, true) => false,
        };
    Ok(PackedValues {
        points,
        values,
        is_proven,
        is_regular: kind == 50 || matches!(kind, 0 | 4) && !is_reduced && grid.octet(27)? & 0x10 == 0,
    })
}

/// Whether section 4 of edition 1 announces the length that it has, or the excess of a large message's units.
fn is_measured1(message: &[u8], data: SectionPart<'_>) -> bool {
    let announced = unsigned(data.bytes, 0, 3);
    let is_large = message.get(4).is_some_and(|octet| octet & 0x80 != 0) && announced < Some(120);
    is_large || announced == Some(data.bytes.len() as u64)
}

/// Ones of a bitmap that has a bit for each point.
fn bitmap1(bitmap: SectionPart<'_>, points: u64) -> Checked<u64> {
    if bitmap.unsigned(4, 2)? != 0 {
        return Err((bitmap.start + 4, MessageFault::Bitmap(0)));
    }
    bitmap.holds(6, u128::from(points))?;
    Ok(ones(bitmap.behind(6), points))
}

/// Reads numbers of some bits, one after the other; behind the end all bits are 0.
struct PaddedBits<'a> {
    bytes: &'a [u8],
    at: u64,
}

impl<'a> PaddedBits<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// The next number, of 64 bits at most.
    fn take(&mut self, bits: u64) -> u64 {
        let (mut number, mut left) = (0_u64, bits);
        while left > 0 {
            let byte = u64::from(self.bytes.get((self.at / 8) as usize).copied().unwrap_or(0));
            let (offset, here) = (self.at % 8, (8 - self.at % 8).min(left));
            let part = byte >> (8 - offset - here) & ((1 << here) - 1);
            number = number << here | part;
            self.at += here;
            left -= here;
        }
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_read_across_bytes() {
        let mut bits = PaddedBits::new(&[0b1010_0000, 0xff, 0b0000_1111]);
        assert_eq!(
            [3, 5, 9, 3, 4, 4].map(|count| bits.take(count)),
            [5, 0, 0x1fe, 0, 15, 0]
        );
        assert_eq!(PaddedBits::new(&[0xff; 9]).take(64), u64::MAX);
        assert_eq!(PaddedBits::new(&[]).take(64), 0);
    }

    #[test]
    fn ones_of_a_bitmap_end_with_its_points() {
        let bytes = [0xff, 0b1100_0000];
        assert_eq!(
            [0, 7, 8, 9, 10, 16].map(|bits| ones(&bytes, bits)),
            [0, 7, 8, 9, 10, 10]
        );
    }

    #[test]
    fn only_triangles_are_counted() {
        assert_eq!(triangle([1, 1, 1]), Some(6));
        assert_eq!(triangle([1, 1, 2]), None);
        assert_eq!(triangle([u64::from(u32::MAX); 3]), None, "too many to count");
    }
}
