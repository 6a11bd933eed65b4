//! Lengths of time: forecast steps (single or a range) and durations.

use super::{Given, ScalarType, TextSink, put_digits, read_digits};

/// Seconds since the base time of the forecast: of a moment, or from `first` to `last`. A moment before it is negative.
pub(super) struct ForecastStep {
    first: i128,
    last: Option<i128>,
}

const HOUR: u64 = 3600;
const HOURS: i128 = HOUR as i128;

/// The two ends of a range of steps, none of a single step. A minus sign before a number is no separator.
pub(crate) fn step_ends(text: &str) -> Option<(&str, &str)> {
    let sign = usize::from(text.starts_with('-'));
    let at = sign + text.get(sign..)?.find('-')?;
    Some((&text[..at], &text[at + 1..]))
}

impl ForecastStep {
    fn read_text(text: &str) -> Option<ForecastStep> {
        let (first, last) = match step_ends(text) {
            Some((first, last)) => (step_seconds(first)?, Some(step_seconds(last)?)),
            None => (step_seconds(text)?, None),
        };
        last.is_none_or(|last| first <= last)
            .then_some(ForecastStep { first, last })
    }
}

/// Hours unless a unit is given; numbers with units add up.
fn step_seconds(text: &str) -> Option<i128> {
    let unsigned = text.strip_prefix('-').unwrap_or(text).as_bytes();
    let size = if unsigned.last()?.is_ascii_digit() {
        read_digits(unsigned)?.checked_mul(HOUR)?
    } else {
        let mut total = 0_u64;
        for part in unsigned.split_inclusive(u8::is_ascii_lowercase) {
            let unit = match part.last()? {
                b's' => 1,
                b'm' => 60,
                b'h' => HOUR,
                b'd' => 24 * HOUR,
                _ => return None,
            };
            let amount = read_digits(&part[..part.len() - 1])?.checked_mul(unit)?;
            total = total.checked_add(amount)?;
        }
        total
    };
    let size = i128::from(size);
    Some(if text.starts_with('-') { -size } else { size })
}

fn put_step(seconds: i128, out: &mut (impl TextSink + ?Sized)) {
    if seconds < 0 {
        out.put_ascii(b'-');
    }
    put_digits(seconds.unsigned_abs(), 1, out);
}

impl ScalarType for ForecastStep {
    const EXPECTED: &'static str = "a step or a range of steps, such as 6, 90m, -6 or 0-24";
    const QUICK: bool = true;

    fn read(given: Given<'_>) -> Option<Self> {
        match given {
            Given::Text(text) => Self::read_text(text),
            Given::Integer(hours) => {
                hours.unsigned_abs().checked_mul(HOUR)?;
                let first = i128::from(hours) * HOURS;
                Some(ForecastStep { first, last: None })
            }
            _ => None,
        }
    }

    /// In hours where both ends are whole hours, else in minutes, else in seconds.
    fn write(&self, out: &mut (impl TextSink + ?Sized)) {
        let whole = |unit: i128| self.first % unit == 0 && self.last.unwrap_or(0) % unit == 0;
        let (unit, suffix) = if whole(HOURS) {
            (HOURS, "")
        } else if whole(60) {
            (60, "m")
        } else {
            (1, "s")
        };
        put_step(self.first / unit, out);
        out.put(suffix);
        if let Some(last) = self.last {
            out.put_ascii(b'-');
            put_step(last / unit, out);
            out.put(suffix);
        }
    }

    fn order(&self) -> Option<i128> {
        self.last.is_none().then_some(self.first)
    }

    fn is_canonical(text: &str) -> bool {
        let bytes = text.as_bytes();
        // Hours of a moment, by far the most common; few enough digits not to overflow.
        let hours = (1..=12).contains(&bytes.len()) && bytes.iter().all(u8::is_ascii_digit);
        if hours {
            return bytes.len() == 1 || bytes[0] != b'0';
        }
        Self::read_text(text).is_some_and(|value| super::writes(text, |out| value.write(out)))
    }
}

/// Nanoseconds.
pub(super) struct TimeSpan(i128);

/// The units, largest first.
const UNITS: [(&str, i128); 7] = [
    ("d", 86_400_000_000_000),
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

/// The largest unit that divides it; of nothing, seconds.
fn unit_of(total: i128) -> (&'static str, i128) {
    let divides = |&&(_, nanos): &&(&str, i128)| total != 0 && total % nanos == 0;
    *UNITS.iter().find(divides).unwrap_or(&UNITS[3])
}

impl ScalarType for TimeSpan {
    const EXPECTED: &'static str = "a length of time such as 90m, 1h30m or 1500ms";

    fn read(given: Given<'_>) -> Option<Self> {
        let Given::Text(mut text) = given else { return None };
        if text.is_empty() {
            return None;
        }
        let mut total = 0i128;
        while !text.is_empty() {
            let digits = text.bytes().take_while(u8::is_ascii_digit).count();
            let letters = text.bytes().skip(digits).take_while(u8::is_ascii_lowercase).count();
            let (amount, unit) = text[..digits + letters].split_at(digits);
            let (_, nanos) = UNITS.iter().find(|(name, _)| *name == unit)?;
            let part = i128::from(read_digits(amount.as_bytes())?) * nanos;
            total = total.checked_add(part)?;
            text = &text[digits + letters..];
        }
        // A sum may have more digits than any of its parts: only what reads back is a length of time.
        let (_, nanos) = unit_of(total);
        u64::try_from(total / nanos).ok()?;
        Some(TimeSpan(total))
    }

    /// In the largest unit that divides it.
    fn write(&self, out: &mut (impl TextSink + ?Sized)) {
        let (unit, nanos) = unit_of(self.0);
        put_digits((self.0 / nanos) as u128, 1, out);
        out.put(unit);
    }

    fn order(&self) -> Option<i128> {
        Some(self.0)
    }
}
