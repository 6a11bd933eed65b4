//! Numbers as commits have them: LEB128 of at most 64 bits, and bytes that follow their number.

use std::ops::Range;

use junctura_model::{Code, Error, Result};

/// Rows from one number up to another, exclusive.
pub(crate) type Run = Range<u64>;

/// Reads the output of [`put`] and similar functions; its errors name the containing record.
pub(crate) struct VarintReader<'a> {
    bytes: &'a [u8],
    what: &'static str,
}

impl<'a> VarintReader<'a> {
    pub(crate) fn new(bytes: &'a [u8], what: &'static str) -> Self {
        Self { bytes, what }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(crate) fn byte(&mut self) -> Result<u8> {
        let (&byte, rest) = self.bytes.split_first().ok_or_else(|| self.corrupt())?;
        self.bytes = rest;
        Ok(byte)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (array, rest) = self.bytes.split_first_chunk().ok_or_else(|| self.corrupt())?;
        self.bytes = rest;
        Ok(*array)
    }

    pub(crate) fn number(&mut self) -> Result<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(self.corrupt())
    }

    /// The difference to another number.
    pub(crate) fn difference(&mut self) -> Result<u64> {
        let number = self.number()?;
        Ok(((number >> 1) as i64 ^ -((number & 1) as i64)) as u64)
    }

    /// A number that is no larger than it can be.
    pub(crate) fn count(&mut self, count_max: usize) -> Result<usize> {
        let count = usize::try_from(self.number()?).ok();
        count.filter(|&count| count <= count_max).ok_or_else(|| self.corrupt())
    }

    /// A text that is no longer than it can be.
    pub(crate) fn text(&mut self, bytes_max: usize) -> Result<&'a str> {
        let length = self.count(bytes_max)?;
        let (text, rest) = self.bytes.split_at_checked(length).ok_or_else(|| self.corrupt())?;
        self.bytes = rest;
        std::str::from_utf8(text).map_err(|_| self.corrupt())
    }

    /// All runs that there are.
    pub(crate) fn runs(&mut self) -> Result<Vec<Run>> {
        let mut runs = Vec::new();
        let mut end = 0_u64;
        while !self.is_empty() {
            let (left_out, length) = (self.number()?, self.number()?);
            let start = end.checked_add(left_out).ok_or_else(|| self.corrupt())?;
            end = start.checked_add(length).ok_or_else(|| self.corrupt())?;
            runs.push(start..end);
        }
        Ok(runs)
    }

    #[cold]
    pub(crate) fn corrupt(&self) -> Error {
        Error::new(Code::Corrupt, self.what, "it is not in canonical form")
    }
}

pub(crate) fn put(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// A number, as its difference to another, which may be greater.
pub(crate) fn put_difference(number: u64, from: u64, out: &mut Vec<u8>) {
    let difference = number.wrapping_sub(from) as i64;
    put((difference << 1 ^ difference >> 63) as u64, out);
}

pub(crate) fn put_text(text: &str, out: &mut Vec<u8>) {
    put(text.len() as u64, out);
    out.extend_from_slice(text.as_bytes());
}

/// Numbers, which rise, as runs: how many are left out before each, and how many it has.
pub(crate) fn put_runs(numbers: &[u64], out: &mut Vec<u8>) {
    let mut end = 0;
    for run in numbers.chunk_by(|one, next| one + 1 == *next) {
        put(run[0] - end, out);
        put(run.len() as u64, out);
        end = run[0] + run.len() as u64;
    }
}
