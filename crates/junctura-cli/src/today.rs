//! Today's date, for requests with relative dates (`date=-1`).

use std::time::{SystemTime, UNIX_EPOCH};

/// Returns today's date in UTC as the number `YYYYMMDD`.
pub(crate) fn today() -> Option<u32> {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).ok()?.as_secs();
    Some(date(seconds / 86_400))
}

/// Returns the date of a day counted from 1970-01-01, in the Gregorian calendar: years of 400 that begin in March.
fn date(days: u64) -> u32 {
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let (month, carry) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    ((era * 400 + year + carry) * 10_000 + month * 100 + day) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_dates() {
        let dates = [
            (0, 19_700_101),
            (11_016, 20_000_229),
            (11_017, 20_000_301),
            (19_782, 20_240_229),
            (20_819, 20_270_101),
        ];
        for (day, expected) in dates {
            assert_eq!(date(day), expected);
        }
    }
}
