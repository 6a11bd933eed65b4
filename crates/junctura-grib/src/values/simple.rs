//! Values in simple packing, found in a message whose claims have been checked.
//!
//! WMO, Manual on Codes, FM 92 GRIB: edition 1, sections 1, 3 and 4 without flags; edition 2, templates 5.0 and 7.0,
//! section 6. A decoder of all packings reads messages of any other form.

use crate::messages::Message;
use crate::octets::{signed, unsigned};
use crate::sections::SectionTable;

/// The values of a message in simple packing: `(reference + X * 2^binary_scale) / 10^decimal_scale`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SimplePacked<'a> {
    /// Points of the grid: values, and those that are missing.
    pub points: u64,
    /// The value of the integer 0 before it is divided by the power of ten.
    pub reference: f64,
    /// An exponent of 2.
    pub binary_scale: i32,
    /// An exponent of 10.
    pub decimal_scale: i32,
    /// Of one integer: 1 to 64.
    pub bits: u32,
    /// A bit for each point, the highest of a byte first: 1 where a value is present. None: all are.
    pub bitmap: Option<&'a [u8]>,
    /// The integers, one after the other.
    pub data: &'a [u8],
}

/// Values in simple packing that a message is to have: all but their integers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SimpleOutline<'a> {
    /// Points of the grid: values, and those that are missing.
    pub points: u64,
    /// How many of the points have a value.
    pub present: u64,
    /// The value of the integer 0 before it is divided by the power of ten.
    pub reference: f64,
    /// An exponent of 2.
    pub binary_scale: i32,
    /// An exponent of 10.
    pub decimal_scale: i32,
    /// Of one integer.
    pub bits: u32,
    /// A bit for each point, the highest of a byte first: 1 where a value is present. None: all are.
    pub bitmap: Option<&'a [u8]>,
    /// The bytes of all integers.
    pub nbytes: usize,
}

impl<'a> Message<'a> {
    /// The last bytes of a message.
    pub const END: &'static [u8] = b"7777";

    /// The values of a message of one field in simple packing, all of which are in the message; None for another one.
    #[must_use]
    pub fn simple_packed(&self) -> Option<SimplePacked<'a>> {
        let found = match self.edition() {
            1 => edition1(self.bytes(), self.all_sections()),
            _ => edition2(self.bytes(), self.all_sections()),
        }?;
        let packed = self.packed().ok().filter(|packed| packed.is_proven)?;
        let has_all = found.bitmap.is_some() || packed.values == packed.points;
        let is_counted = self.edition() == 2 || packed.values.checked_mul(u64::from(found.bits)) == self.bits1(&found);
        (has_all && is_counted && found.bits > 0).then_some(SimplePacked {
            points: packed.points,
            ..found
        })
    }

    /// The message with other values in simple packing, and all else of its header, up to the integers; the integers and
    /// [`Message::END`] follow.
    ///
    /// Returns None if it is not one field of edition 2 in simple packing, or the values are too many for a section.
    #[must_use]
    pub fn head_of_simple(&self, values: &SimpleOutline<'_>) -> Option<Vec<u8>> {
        let sections = self.all_sections();
        let [identity, local, grid, product, about] =
            [1, 2, 3, 4, 5].map(|number| sections.by_number[number].of(self.bytes()));
        let is_simple = self.edition() == 2 && self.fields() == 1 && unsigned(about, 9, 2)? == 0;
        if !is_simple || about.len() < 21 || grid.len() < 14 {
            return None;
        }
        let (points, present) = (u32::try_from(values.points).ok()?, u32::try_from(values.present).ok()?);
        let mut new = Vec::with_capacity(self.bytes().len() + values.bitmap.map_or(0, <[u8]>::len));
        for octets in [self.bytes().get(..16)?, identity, local] {
            new.extend_from_slice(octets);
        }
        for octets in [&grid[..6], &points.to_be_bytes(), &grid[10..], product] {
            new.extend_from_slice(octets);
        }
        let scales = [values.binary_scale, values.decimal_scale].map(sign_and_magnitude);
        let reference = (values.reference as f32).to_be_bytes();
        for octets in [
            &about[..5],
            &present.to_be_bytes(),
            &[0, 0],
            &reference,
            &scales[0]?,
            &scales[1]?,
        ] {
            new.extend_from_slice(octets);
        }
        new.push(u8::try_from(values.bits).ok()?);
        new.extend_from_slice(&about[20..]);
        let bitmap = values.bitmap.unwrap_or_default();
        section(&mut new, 6, 1 + bitmap.len())?;
        new.push(if values.bitmap.is_some() { 0 } else { 255 });
        new.extend_from_slice(bitmap);
        section(&mut new, 7, values.nbytes)?;
        let length = (new.len() + values.nbytes + Self::END.len()) as u64;
        new[8..16].copy_from_slice(&length.to_be_bytes());
        Some(new)
    }

    /// The bits by which decoders of edition 1 count values: all but those that are announced as unused.
    fn bits1(&self, found: &SimplePacked<'_>) -> Option<u64> {
        let section = self.all_sections().by_number[4].of(self.bytes());
        (found.data.len() as u64 * 8).checked_sub(unsigned(section, 3, 1)? & 0x0f)
    }
}

fn edition1<'a>(message: &'a [u8], sections: &SectionTable) -> Option<SimplePacked<'a>> {
    let [about, bitmap, data] = [1, 3, 4].map(|number| sections.by_number[number].of(message));
    if unsigned(data, 3, 1)? & 0xf0 != 0 {
        return None;
    }
    Some(SimplePacked {
        points: 0,
        reference: ibm(unsigned(data, 6, 4)? as u32),
        binary_scale: signed(data, 4, 2)? as i32,
        decimal_scale: signed(about, 26, 2)? as i32,
        bits: unsigned(data, 10, 1)? as u32,
        bitmap: bitmap.get(6..),
        data: data.get(11..)?,
    })
}

fn edition2<'a>(message: &'a [u8], sections: &SectionTable) -> Option<SimplePacked<'a>> {
    let [about, bitmap, data] = [5, 6, 7].map(|number| sections.by_number[number].of(message));
    if unsigned(about, 9, 2)? != 0 {
        return None;
    }
    Some(SimplePacked {
        points: 0,
        reference: f64::from(f32::from_bits(unsigned(about, 11, 4)? as u32)),
        binary_scale: signed(about, 15, 2)? as i32,
        decimal_scale: signed(about, 17, 2)? as i32,
        bits: unsigned(about, 19, 1)? as u32,
        bitmap: if unsigned(bitmap, 5, 1)? == 0 {
            bitmap.get(6..)
        } else {
            None
        },
        data: data.get(5..)?,
    })
}

/// Appends the beginning of a section with so many bytes of content.
fn section(message: &mut Vec<u8>, number: u8, nbytes: usize) -> Option<()> {
    let length = u32::try_from(5 + nbytes).ok()?;
    message.extend_from_slice(&length.to_be_bytes());
    message.push(number);
    Some(())
}

/// GRIB's form of a negative number: the highest of 16 bits means minus.
fn sign_and_magnitude(number: i32) -> Option<[u8; 2]> {
    let magnitude = u16::try_from(number.unsigned_abs())
        .ok()
        .filter(|magnitude| *magnitude < 0x8000)?;
    let sign = if number < 0 { 0x8000 } else { 0 };
    Some((magnitude | sign).to_be_bytes())
}

/// A floating-point number of edition 1: sign, exponent of 16 plus 64, a fraction of 24 bits.
fn ibm(bits: u32) -> f64 {
    let (exponent, fraction) = ((bits >> 24 & 0x7f) as i32 - 64, f64::from(bits & 0x00ff_ffff));
    let magnitude = fraction * 2_f64.powi(4 * exponent - 24);
    if bits >> 31 == 0 { magnitude } else { -magnitude }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::float_cmp, reason = "the same bits are expected")]

    use super::*;

    #[test]
    fn ibm_numbers_have_their_value() {
        // The second is the example of IBM's manuals.
        assert_eq!(ibm(0), 0.0);
        assert_eq!(ibm(0xc276_a000), -118.625);
        assert_eq!(ibm(0x4110_0000), 1.0);
    }
}
