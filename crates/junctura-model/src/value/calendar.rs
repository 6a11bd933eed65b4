//! Days, times of day and points in time, in the calendar of ISO 8601, years 1 to 9999.

use super::{Given, ScalarType, TextSink, put_digits, read_digits};

/// Days since 1970-01-01.
#[derive(Clone, Copy)]
pub(super) struct CalendarDate(i64);

impl CalendarDate {
    /// The day of year, month and day, if the calendar has it.
    fn of(year: u64, month: u64, day: u64) -> Option<CalendarDate> {
        let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
        let days = match month {
            2 => 28 + u64::from(leap),
            4 | 6 | 9 | 11 => 30,
            1..=12 => 31,
            _ => return None,
        };
        let exists = (1..=9999).contains(&year) && (1..=days).contains(&day);
        exists.then(|| CalendarDate(days_before(year as i64, month as i64) + day as i64 - 1))
    }

    fn read_text(text: &[u8]) -> Option<CalendarDate> {
        let (year, month, day) = match *text {
            [_, _, _, _, _, _, _, _] => (&text[..4], &text[4..6], &text[6..]),
            [_, _, _, _, b'-', _, _, b'-', _, _] => (&text[..4], &text[5..7], &text[8..]),
            _ => return None,
        };
        CalendarDate::of(read_digits(year)?, read_digits(month)?, read_digits(day)?)
    }

    fn parts(self) -> (u128, u128, u128) {
        // A first guess from the mean length of a year is at most one off.
        let mut year = 1970 + self.0 * 400 / 146_097;
        while days_before(year, 1) > self.0 {
            year -= 1;
        }
        while days_before(year + 1, 1) <= self.0 {
            year += 1;
        }
        let month = (1..=12)
            .rev()
            .find(|&month| days_before(year, month) <= self.0)
            .unwrap_or(1);
        let day = self.0 - days_before(year, month) + 1;
        (year as u128, month as u128, day as u128)
    }
}

/// Returns the days from 1970-01-01 to the first of this month.
fn days_before(year: i64, month: i64) -> i64 {
    // Years begin in March, so that the leap day is last.
    let (year, months) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    year * 365 + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + (months * 153 + 2) / 5 - 719_468
}

impl ScalarType for CalendarDate {
    const EXPECTED: &'static str = "a day such as 2026-11-20 or 20261120";
    const QUICK: bool = true;

    fn read(given: Given<'_>) -> Option<Self> {
        match given {
            Given::Text(text) => Self::read_text(text.as_bytes()),
            Given::Integer(number @ 10_000_101..=99_991_231) => {
                let number = number as u64;
                CalendarDate::of(number / 10_000, number / 100 % 100, number % 100)
            }
            _ => None,
        }
    }

    fn write(&self, out: &mut (impl TextSink + ?Sized)) {
        let (year, month, day) = self.parts();
        put_digits(year * 10_000 + month * 100 + day, 8, out);
    }

    fn order(&self) -> Option<i128> {
        Some(i128::from(self.0))
    }

    fn is_canonical(text: &str) -> bool {
        text.len() == 8 && Self::read_text(text.as_bytes()).is_some()
    }
}

/// Minutes since midnight.
pub(super) struct DayTime(u64);

impl DayTime {
    fn of(hour: u64, minute: u64) -> Option<DayTime> {
        (hour < 24 && minute < 60).then_some(DayTime(hour * 60 + minute))
    }

    fn read_text(text: &[u8]) -> Option<DayTime> {
        let (hour, minute) = match *text {
            [_] | [_, _] => (text, &b"0"[..]),
            [_, b':', _, _] | [_, _, b':', _, _] => (&text[..text.len() - 3], &text[text.len() - 2..]),
            [_, _, _] | [_, _, _, _] => text.split_at(text.len() - 2),
            _ => return None,
        };
        DayTime::of(read_digits(hour)?, read_digits(minute)?)
    }
}

impl ScalarType for DayTime {
    const EXPECTED: &'static str = "a time of day such as 12, 1200 or 12:00";
    const QUICK: bool = true;

    fn read(given: Given<'_>) -> Option<Self> {
        match given {
            Given::Text(text) => Self::read_text(text.as_bytes()),
            Given::Integer(hour @ 0..=99) => DayTime::of(hour as u64, 0),
            Given::Integer(number @ 100..=9999) => DayTime::of(number as u64 / 100, number as u64 % 100),
            _ => None,
        }
    }

    fn write(&self, out: &mut (impl TextSink + ?Sized)) {
        put_digits(u128::from(self.0 / 60 * 100 + self.0 % 60), 4, out);
    }

    fn order(&self) -> Option<i128> {
        Some(i128::from(self.0))
    }

    fn is_canonical(text: &str) -> bool {
        let bytes = text.as_bytes();
        bytes.len() == 4 && bytes[1] != b':' && Self::read_text(bytes).is_some()
    }
}

/// Seconds since 1970-01-01T00:00:00Z, and nanoseconds of the second.
pub(super) struct Timestamp {
    seconds: i64,
    nanos: u64,
}

const DAY: i64 = 86_400;

impl Timestamp {
    fn read_text(text: &str) -> Option<Timestamp> {
        let (day, rest) = text.split_once(['T', 't'])?;
        let date = Some(day)
            .filter(|day| day.len() == 10)
            .and_then(|day| CalendarDate::read_text(day.as_bytes()))?;
        let (clock, rest) = rest.split_at_checked(8)?;
        let (hour, minute, second) = match clock.as_bytes() {
            [h1, h2, b':', m1, m2, b':', s1, s2] => (two(*h1, *h2)?, two(*m1, *m2)?, two(*s1, *s2)?),
            _ => return None,
        };
        if hour > 23 || minute > 59 || second > 59 {
            return None;
        }
        let (nanos, zone) = fraction(rest)?;
        let seconds = date.0 * DAY + hour * 3600 + minute * 60 + second - zone_seconds(zone)?;
        let in_range = (days_before(1, 1)..days_before(10_000, 1)).contains(&seconds.div_euclid(DAY));
        in_range.then_some(Timestamp { seconds, nanos })
    }
}

fn two(tens: u8, ones: u8) -> Option<i64> {
    read_digits(&[tens, ones]).map(|number| number as i64)
}

/// Nanoseconds of a fraction in front of `text` (0 where there is none), and what follows it.
fn fraction(text: &str) -> Option<(u64, &str)> {
    let Some(text) = text.strip_prefix('.') else {
        return Some((0, text));
    };
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let nanos = read_digits(&text.as_bytes()[..digits]).filter(|_| digits <= 9)?;
    Some((nanos * 10u64.pow(9 - digits as u32), &text[digits..]))
}

/// How far a zone is ahead of UTC.
fn zone_seconds(zone: &str) -> Option<i64> {
    match *zone.as_bytes() {
        [b'Z' | b'z'] => Some(0),
        [sign @ (b'+' | b'-'), h1, h2, b':', m1, m2] => {
            let (hour, minute) = (two(h1, h2)?, two(m1, m2)?);
            let ahead = hour * 3600 + minute * 60;
            (hour < 24 && minute < 60).then_some(if sign == b'-' { -ahead } else { ahead })
        }
        _ => None,
    }
}

impl ScalarType for Timestamp {
    const EXPECTED: &'static str = "a time with its offset, such as 2026-11-20T12:00:00Z";

    fn read(given: Given<'_>) -> Option<Self> {
        let Given::Text(text) = given else { return None };
        Self::read_text(text)
    }

    fn write(&self, out: &mut (impl TextSink + ?Sized)) {
        let (year, month, day) = CalendarDate(self.seconds.div_euclid(DAY)).parts();
        let second = self.seconds.rem_euclid(DAY) as u128;
        let parts = [
            (year, 4, b'-'),
            (month, 2, b'-'),
            (day, 2, b'T'),
            (second / 3600, 2, b':'),
            (second / 60 % 60, 2, b':'),
        ];
        for (number, width, after) in parts {
            put_digits(number, width, out);
            out.put_ascii(after);
        }
        put_digits(second % 60, 2, out);
        if self.nanos > 0 {
            let (mut fraction, mut width) = (self.nanos, 9);
            while fraction % 10 == 0 {
                fraction /= 10;
                width -= 1;
            }
            out.put_ascii(b'.');
            put_digits(u128::from(fraction), width, out);
        }
        out.put_ascii(b'Z');
    }

    fn order(&self) -> Option<i128> {
        Some(i128::from(self.seconds) * 1_000_000_000 + i128::from(self.nanos))
    }
}
