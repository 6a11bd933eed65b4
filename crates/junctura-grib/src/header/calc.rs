//! Dates, times and steps.

use crate::header::StepRange;

/// Days since 1970-01-01 of a date in the Gregorian calendar, written 20261120.
pub(crate) fn days_of(date: i64) -> i64 {
    let (year, month, day) = (date / 10_000, date / 100 % 100, date % 100);
    let shifted = year - i64::from(month <= 2);
    let era = shifted.div_euclid(400);
    let of_era = shifted - era * 400;
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// The date of a day since 1970-01-01.
pub(crate) fn date_of(days: i64) -> i64 {
    let shifted = days.saturating_add(719_468);
    let era = shifted.div_euclid(146_097);
    let of_era = shifted - era * 146_097;
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + i64::from(month <= 2)) * 10_000 + month * 100 + day
}

/// Date and time `minutes` after a date and a time written 1230.
pub(crate) fn moved(date: i64, time: i64, minutes: i64) -> (i64, i64) {
    let total = (time / 100 * 60 + time % 100).saturating_add(minutes);
    (date_of(days_of(date).saturating_add(total.div_euclid(1440))), {
        let minutes = total.rem_euclid(1440);
        minutes / 60 * 100 + minutes % 60
    })
}

/// A time as MARS writes it: seconds are ignored, an unknown hour is noon.
pub(crate) fn time_of(hour: i64, minute: i64) -> i64 {
    match (hour, minute) {
        (255, _) => 1200,
        (_, 255) => hour * 100,
        _ => hour * 100 + minute,
    }
}

/// Seconds of a unit of code table 4.4 (edition 2).
pub(crate) fn unit_seconds2(unit: i64) -> Option<i64> {
    Some(match unit {
        0 => 60,
        1 => 3600,
        2 => 86_400,
        3 => 2_592_000,
        4 => 31_536_000,
        5 => 315_360_000,
        6 => 946_080_000,
        7 => 3_153_600_000,
        10 => 10_800,
        11 => 21_600,
        12 => 43_200,
        13 => 1,
        14 => 900,
        15 => 1800,
        _ => return None,
    })
}

/// Seconds of a unit of code table 4 (edition 1).
pub(crate) fn unit_seconds1(unit: i64) -> Option<i64> {
    match unit {
        0..=3 | 10..=12 => unit_seconds2(unit),
        13 => Some(900),
        14 => Some(1800),
        15 | 254 => Some(1),
        _ => None,
    }
}

/// The largest of hours, minutes and seconds that divides all of these without rest; zero divides by all.
pub(crate) fn common_unit(seconds: &[i64]) -> (char, i64) {
    let divides = |unit: &i64| seconds.iter().all(|s| s % unit == 0);
    [('h', 3600), ('m', 60)]
        .into_iter()
        .find(|(_, unit)| divides(unit))
        .unwrap_or(('s', 1))
}

/// The steps from a start and an end in seconds.
pub(crate) fn steps(start: i64, end: i64) -> StepRange {
    let (unit, seconds) = common_unit(&[start, end]);
    StepRange {
        start: start / seconds,
        end: end / seconds,
        unit,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_dates_agree() {
        assert_eq!(days_of(19_700_101), 0);
        assert_eq!(date_of(0), 19_700_101);
        for day in (-719_000..800_000).step_by(7) {
            assert_eq!(days_of(date_of(day)), day);
        }
        assert_eq!(moved(20_241_231, 2300, 90), (20_250_101, 30));
        assert_eq!(moved(20_240_301, 0, -1), (20_240_229, 2359));
    }

    #[test]
    fn steps_take_the_largest_unit_that_fits() {
        assert_eq!(
            steps(0, 1800),
            StepRange {
                start: 0,
                end: 30,
                unit: 'm'
            }
        );
        assert_eq!(
            steps(21_600, 86_400),
            StepRange {
                start: 6,
                end: 24,
                unit: 'h'
            }
        );
        assert_eq!(
            steps(30, 90),
            StepRange {
                start: 30,
                end: 90,
                unit: 's'
            }
        );
    }
}
