//! The objects of a load: fields of one forecast after the other.

use junctura::Given;
use serde::{Deserialize, Serialize};

/// How many objects a forecast has, and how they are named.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct LoadSpace {
    pub(crate) members: u32,
    pub(crate) steps: u32,
    pub(crate) levels: u32,
    pub(crate) params: u32,
}

/// One object's place in the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LoadField {
    /// Which forecast: each has a date and a time of its own.
    pub(crate) forecast: u64,
    pub(crate) member: u32,
    pub(crate) step: u32,
    pub(crate) level: u32,
    pub(crate) param: u32,
}

/// Forecasts begin every six hours from 2000-01-01 on.
const FORECASTS_PER_DAY: u64 = 4;
/// From 1000 hPa up in tens; more are levels of the model.
const PRESSURE_LEVELS_MAX: u32 = 100;
const PRESSURE_LEVELS: &str = "pl";
const MODEL_LEVELS: &str = "ml";

impl LoadSpace {
    /// Objects of a forecast.
    pub(crate) fn objects(&self) -> u64 {
        [self.members, self.steps, self.levels, self.params]
            .map(u64::from)
            .into_iter()
            .fold(1, u64::saturating_mul)
    }

    /// The n-th object among those of `every`-th members from `first` on.
    pub(crate) fn field(&self, n: u64, first: u32, every: u32) -> LoadField {
        let own_members = u64::from((self.members - first).div_ceil(every));
        let (rest, param) = (n / u64::from(self.params), n % u64::from(self.params));
        let (rest, level) = (rest / u64::from(self.levels), rest % u64::from(self.levels));
        let (rest, member) = (rest / own_members, rest % own_members);
        let (forecast, step) = (rest / u64::from(self.steps), rest % u64::from(self.steps));
        LoadField {
            forecast,
            member: first + member as u32 * every,
            step: step as u32,
            level: level as u32,
            param: param as u32,
        }
    }

    /// The names of the parameters, for as many as there are.
    pub(crate) fn param_names(&self) -> Vec<String> {
        const USUAL: [&str; 10] = ["t", "u", "v", "q", "z", "w", "r", "d", "vo", "pv"];
        (0..self.params)
            .map(|i| {
                USUAL
                    .get(i as usize)
                    .map_or_else(|| format!("p{i}"), |name| (*name).to_owned())
            })
            .collect()
    }
}

/// The texts that attributes of a field need, made once for each forecast.
pub(crate) struct LoadNames {
    params: Vec<String>,
    forecast: Option<u64>,
    date: String,
    time: &'static str,
    expver: String,
    levtype: &'static str,
}

impl LoadNames {
    /// Each incarnation of a producer makes an experiment of its own: its objects have keys of their own.
    pub(crate) fn new(space: &LoadSpace, life: u32) -> Self {
        Self {
            expver: format!("{:04}", life + 1),
            params: space.param_names(),
            forecast: None,
            date: String::new(),
            time: "0000",
            levtype: if space.levels <= PRESSURE_LEVELS_MAX {
                PRESSURE_LEVELS
            } else {
                MODEL_LEVELS
            },
        }
    }

    /// The attributes of a field: the eleven of a MARS key.
    pub(crate) fn attributes(&mut self, field: &LoadField) -> [(&'static str, Given<'_>); 11] {
        if self.forecast != Some(field.forecast) {
            self.forecast = Some(field.forecast);
            (self.date, self.time) = begin_of(field.forecast);
        }
        let level = match self.levtype {
            PRESSURE_LEVELS => 1000 - i64::from(field.level) * 10,
            _ => i64::from(field.level) + 1,
        };
        [
            ("class", Given::Text("od")),
            ("expver", Given::Text(&self.expver)),
            ("stream", Given::Text("enfo")),
            ("date", Given::Text(&self.date)),
            ("time", Given::Text(self.time)),
            ("type", Given::Text("pf")),
            ("levtype", Given::Text(self.levtype)),
            ("step", Given::Integer(i64::from(field.step) * 6)),
            ("number", Given::Integer(i64::from(field.member))),
            ("levelist", Given::Integer(level)),
            ("param", Given::Text(&self.params[field.param as usize])),
        ]
    }
}

/// When a forecast begins: its date and time.
pub(crate) fn begin_of(forecast: u64) -> (String, &'static str) {
    let time = ["0000", "0600", "1200", "1800"][(forecast % FORECASTS_PER_DAY) as usize];
    (date(forecast / FORECASTS_PER_DAY), time)
}

/// The date so many days after 2000-01-01, as `YYYYMMDD`.
fn date(days: u64) -> String {
    let (mut year, mut left) = (2000, days);
    loop {
        let length = if is_leap(year) { 366 } else { 365 };
        if left < length {
            break;
        }
        left -= length;
        year += 1;
    }
    let february = if is_leap(year) { 29 } else { 28 };
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if left < length {
            break;
        }
        left -= length;
        month += 1;
    }
    format!("{year:04}{month:02}{:02}", left + 1)
}

fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn dates_follow_the_calendar() {
        assert_eq!(date(0), "20000101");
        assert_eq!(date(59), "20000229");
        assert_eq!(date(366), "20010101");
        assert_eq!(date(366 + 58), "20010228");
        assert_eq!(date(36524), "20991231");
    }

    #[test]
    fn producers_share_the_members_and_no_object_comes_twice() {
        let space = LoadSpace {
            members: 5,
            steps: 2,
            levels: 2,
            params: 3,
        };
        let mut seen = HashSet::new();
        for (producer, count) in [(0, 3 * 12), (1, 2 * 12)] {
            for n in 0..count * 2 {
                let field = space.field(n, producer, 2);
                assert_eq!(field.member % 2, producer);
                assert_eq!(field.forecast, n / count);
                assert!(seen.insert((field.forecast, field.member, field.step, field.level, field.param)));
            }
        }
        assert_eq!(seen.len(), 2 * 60);
    }
}
