//! Integers, exact decimals and floating point numbers.

use std::fmt::Write as _;

use super::{Given, ScalarType, TextSink, put_digits, read_digits};

/// The factor by which `order` multiplies integers and decimals, so that both share one scale.
const SCALE: i128 = 1_000_000_000_000_000_000;
const DIGITS_MAX: usize = 18;

pub(super) struct Integer(i64);

impl ScalarType for Integer {
    const EXPECTED: &'static str = "a whole number of 64 bits, such as 12 or -3";
    const QUICK: bool = true;

    fn read(given: Given<'_>) -> Option<Self> {
        match given {
            Given::Integer(number) => Some(Integer(number)),
            Given::Text(text) => text.parse().ok().map(Integer),
            _ => None,
        }
    }

    fn write(&self, out: &mut (impl TextSink + ?Sized)) {
        put_sign(self.0 < 0, out);
        put_digits(u128::from(self.0.unsigned_abs()), 1, out);
    }

    fn order(&self) -> Option<i128> {
        Some(i128::from(self.0) * SCALE)
    }

    fn is_canonical(text: &str) -> bool {
        let digits = text.strip_prefix('-').unwrap_or(text);
        is_plain_whole(digits.as_bytes()) && text != "-0" && (digits.len() <= DIGITS_MAX || text.parse::<i64>().is_ok())
    }
}

fn put_sign(negative: bool, out: &mut (impl TextSink + ?Sized)) {
    if negative {
        out.put_ascii(b'-');
    }
}

/// Digits without a needless zero in front.
fn is_plain_whole(digits: &[u8]) -> bool {
    digits.iter().all(u8::is_ascii_digit) && (digits.first().is_some_and(|&first| first != b'0') || digits == b"0")
}

/// A decimal as its parts without needless zeros: the value is ± whole . fraction.
pub(super) struct Decimal {
    negative: bool,
    whole: u64,
    fraction: u64,
    /// The number of fraction digits, with leading and without trailing zeros.
    places: usize,
}

impl ScalarType for Decimal {
    const EXPECTED: &'static str = "an exact number of up to 18 digits, such as 500 or 0.5";
    const QUICK: bool = true;

    fn read(given: Given<'_>) -> Option<Self> {
        match given {
            Given::Text(text) => Self::read_text(text),
            Given::Integer(number) => {
                let whole = number.unsigned_abs();
                let fits = u128::from(whole) < SCALE as u128;
                fits.then_some(Decimal {
                    negative: number < 0,
                    whole,
                    fraction: 0,
                    places: 0,
                })
            }
            Given::Float(number) => {
                let text = repr(number)?;
                Self::read_text(text.as_str()).filter(Self::is_of_exact_float)
            }
            _ => None,
        }
    }

    fn write(&self, out: &mut (impl TextSink + ?Sized)) {
        put_sign(self.negative, out);
        put_digits(u128::from(self.whole), 1, out);
        if self.places > 0 {
            out.put_ascii(b'.');
            put_digits(u128::from(self.fraction), self.places, out);
        }
    }

    fn order(&self) -> Option<i128> {
        let fraction = i128::from(self.fraction) * 10i128.pow((DIGITS_MAX - self.places) as u32);
        let size = i128::from(self.whole) * SCALE + fraction;
        Some(if self.negative { -size } else { size })
    }

    fn is_canonical(text: &str) -> bool {
        let short_whole = text.len() <= DIGITS_MAX && is_plain_whole(text.as_bytes());
        short_whole || Self::read_text(text).is_some_and(|value| super::writes(text, |out| value.write(out)))
    }
}

/// Decimal digits that every float keeps. More digits are those of a rounding error, such as 0.1 * 3: two computations of
/// one value would differ in them.
const FLOAT_DIGITS_MAX: usize = 15;

/// Returns whether a number is no decimal only because it has more digits than floats keep.
pub(super) fn is_inexact(number: f64) -> bool {
    let text = repr(number);
    text.and_then(|text| Decimal::read_text(text.as_str()))
        .is_some_and(|decimal| !decimal.is_of_exact_float())
}

/// Digits of a decimal that probably has a rounding error, once it is rounded.
const ROUNDED_DIGITS_MAX: usize = 12;

/// Returns the decimal that is meant by the text of a float with a rounding error: 0.3 for 0.30000000000000004.
pub(crate) fn without_rounding_error(text: &str) -> Option<String> {
    let number: f64 = text.parse().ok().filter(|&number| is_inexact(number))?;
    let rounded: f64 = format!("{number:.*e}", FLOAT_DIGITS_MAX - 1).parse().ok()?;
    let (given, meant) = (repr(number)?, repr(rounded)?);
    let decimal = Decimal::read_text(meant.as_str())?;
    let mut out = String::new();
    decimal.write(&mut out);
    (given.as_str() == text && decimal.significant() <= ROUNDED_DIGITS_MAX).then_some(out)
}

impl Decimal {
    fn is_of_exact_float(&self) -> bool {
        self.places == 0 || self.significant() <= FLOAT_DIGITS_MAX
    }

    /// The number of its digits from the first one that is not zero.
    fn significant(&self) -> usize {
        let digits = |number: u64| number.checked_ilog10().map_or(0, |log| log as usize + 1);
        if self.whole == 0 {
            digits(self.fraction)
        } else {
            digits(self.whole) + self.places
        }
    }

    fn read_text(text: &str) -> Option<Decimal> {
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
        let (whole, fraction) = match unsigned.split_once('.') {
            Some((_, "")) => return None,
            Some(parts) => parts,
            None => (unsigned, ""),
        };
        if whole.is_empty() || !whole.bytes().chain(fraction.bytes()).all(|b| b.is_ascii_digit()) {
            return None;
        }
        let (whole, fraction) = (whole.trim_start_matches('0'), fraction.trim_end_matches('0'));
        let significant = if whole.is_empty() {
            fraction.trim_start_matches('0').len()
        } else {
            whole.len() + fraction.len()
        };
        if significant > DIGITS_MAX || fraction.len() > DIGITS_MAX {
            return None;
        }
        Some(Decimal {
            negative: text.starts_with('-') && significant > 0,
            whole: read_digits(whole.as_bytes()).unwrap_or(0),
            fraction: read_digits(fraction.as_bytes()).unwrap_or(0),
            places: fraction.len(),
        })
    }
}

pub(super) struct Float(f64);

impl ScalarType for Float {
    const EXPECTED: &'static str = "a finite number, such as 0.5 or 1e-05";

    fn read(given: Given<'_>) -> Option<Self> {
        let number = match given {
            Given::Text(text) => read_float(text)?,
            Given::Integer(number) => number as f64,
            Given::Float(number) => number,
            _ => return None,
        };
        // Adding a zero makes a negative zero a plain one.
        number.is_finite().then_some(Float(number + 0.0))
    }

    fn write(&self, out: &mut (impl TextSink + ?Sized)) {
        if let Some(text) = repr(self.0) {
            out.put(text.as_str());
        }
    }

    fn order(&self) -> Option<i128> {
        let bits = self.0.to_bits() as i64;
        // Below zero a larger pattern of bits is a smaller number.
        Some(i128::from(if bits < 0 { bits ^ i64::MAX } else { bits }))
    }
}

/// Reads what Python's `float()` reads, ASCII digits only: surrounding blanks and `_` between digits are allowed.
fn read_float(text: &str) -> Option<f64> {
    let text = text.trim();
    if !text.contains('_') {
        return text.parse().ok();
    }
    let bytes = text.as_bytes();
    let digit_at = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let between = |at: usize| at > 0 && digit_at(at - 1) && digit_at(at + 1);
    let well_placed = bytes.iter().enumerate().all(|(at, &byte)| byte != b'_' || between(at));
    well_placed.then(|| text.replace('_', "").parse().ok())?
}

/// A short text on the stack.
struct ShortText {
    bytes: [u8; 32],
    len: usize,
}

impl ShortText {
    fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..self.len]).unwrap_or_default()
    }

    fn push(&mut self, text: &str) -> Option<()> {
        let end = self.len + text.len();
        self.bytes.get_mut(self.len..end)?.copy_from_slice(text.as_bytes());
        self.len = end;
        Some(())
    }
}

impl std::fmt::Write for ShortText {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.push(text).ok_or(std::fmt::Error)
    }
}

/// The shortest digits that read back as this number, as `d.ddde±x`; of two equally near, the even one, as Python has it.
fn shortest(number: f64) -> Option<ShortText> {
    /// Fewer digits than this are never those of two numbers.
    const TIE_DIGITS_MIN: usize = 16;
    let mut text = ShortText { bytes: [0; 32], len: 0 };
    write!(text, "{number:e}").ok()?;
    let digits = text
        .as_str()
        .bytes()
        .take_while(|&byte| byte != b'e')
        .filter(u8::is_ascii_digit)
        .count();
    if digits < TIE_DIGITS_MIN {
        return Some(text);
    }
    // Rounded to this number of digits, ties to even.
    let mut even = ShortText { bytes: [0; 32], len: 0 };
    write!(even, "{number:.*e}", digits - 1).ok()?;
    Some(if even.as_str().parse() == Ok(number) {
        even
    } else {
        text
    })
}

/// The shortest text that reads back as this finite number, laid out as Python's `repr` does: `0.5`, `7.0`, `1e-05`, `1e+16`.
/// The longest is 24 bytes.
fn repr(number: f64) -> Option<ShortText> {
    const ZEROS: &str = "0000000000000000";
    let scientific = shortest(number)?;
    let (mantissa, exponent) = scientific.as_str().split_once('e')?;
    let exponent: i32 = exponent.parse().ok()?;
    let (sign, mantissa) = if let Some(unsigned) = mantissa.strip_prefix('-') {
        ("-", unsigned)
    } else {
        ("", mantissa)
    };
    let (first, rest) = mantissa.split_once('.').unwrap_or((mantissa, ""));

    let mut out = ShortText { bytes: [0; 32], len: 0 };
    out.push(sign)?;
    match exponent {
        0..16 => {
            let places = exponent as usize;
            out.push(first)?;
            out.push(&rest[..places.min(rest.len())])?;
            out.push(&ZEROS[..places.saturating_sub(rest.len())])?;
            out.push(".")?;
            out.push(if places < rest.len() { &rest[places..] } else { "0" })?;
        }
        -4..0 => {
            out.push("0.")?;
            out.push(&ZEROS[..(-exponent - 1) as usize])?;
            out.push(first)?;
            out.push(rest)?;
        }
        _ => {
            out.push(mantissa)?;
            write!(out, "e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs()).ok()?;
        }
    }
    Some(out)
}
