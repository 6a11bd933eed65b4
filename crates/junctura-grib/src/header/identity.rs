//! The keys that distinguish two fields beyond the keys of MARS.
//!
//! A header that ECMWF's local section or a project's section describes (it has a `class`) names its field by mars keys.
//! Headers of other centres have no such section: member, percentile, threshold, second surface or range of time are in
//! the product definition (edition 2) or in section 1 (edition 1) only. This module turns them into additional keys:
//!
//! ```text
//!   what the parameter implies (2t: 2 m above ground)   no key
//!   what a mars key holds exactly                       no key
//!   what a mars key holds cut or not at all             levelist, levtype, number, quantile, timespan, step, date, ...
//!   what MARS has no key for                            bottomLevel, stattype, probability, process, variant
//! ```
//! `variant` collects what is rare, as `name-value` joined by dots. `docs/guide/grib.md` has the table.

use std::fmt::Write;

use crate::header::{HeaderState, StepRange, computed};
use crate::tables::keys;
use crate::tables::program::{TableExpr, TableFunction};
use crate::value::KeyValue;

mod edition1;
mod edition2;

pub(crate) use edition1::additional as edition1;
pub(crate) use edition2::additional as edition2;

static BASE_DATE: TableExpr = computed(TableFunction::DataDate);
static BASE_TIME: TableExpr = computed(TableFunction::DataTime);

/// Keys of the mars namespace that the schema `mars` has no attribute for.
const RARE: [&str; 19] = [
    "configuration",
    "coeffindex",
    "section",
    "product",
    "opttime",
    "offsettime",
    "offsetdate",
    "leadtime",
    "forcing",
    "longitude",
    "latitude",
    "range",
    "tile",
    "tileattribute",
    "tilescheme",
    "reference",
    "obstype",
    "obscutoff",
    "georef",
];

/// Texts longer than this many octets are shown by their hash.
const SHOWN_MAX: usize = 16;

/// The additional keys of one header while they are collected.
struct AdditionalKeys<'h, 'm> {
    head: &'h HeaderState<'m>,
    keys: Vec<(&'static str, KeyValue)>,
    variant: String,
}

impl<'h, 'm> AdditionalKeys<'h, 'm> {
    fn new(head: &'h HeaderState<'m>) -> Self {
        AdditionalKeys {
            head,
            keys: Vec::new(),
            variant: String::new(),
        }
    }

    /// Whether MARS describes the field.
    fn is_of_mars(&self) -> bool {
        self.has_mars("class")
    }

    fn has_mars(&self, name: &str) -> bool {
        self.head.mars.iter().any(|(known, _)| *known == name)
    }

    fn mars(&self, name: &str) -> Option<KeyValue> {
        let (_, expr) = self.head.mars.iter().find(|(known, _)| *known == name)?;
        self.head.value(expr, 0)
    }

    fn is_implied(&self, key: u16) -> bool {
        self.head.param.is_some_and(|param| param.implies(key))
    }

    fn put(&mut self, name: &'static str, value: &str) {
        self.keys.push((name, KeyValue::text(value)));
    }

    /// Adds to the key of what is rare.
    fn vary(&mut self, name: &str, value: impl std::fmt::Display) {
        let dot = if self.variant.is_empty() { "" } else { "." };
        // Writing to a String cannot fail.
        let _ = write!(self.variant, "{dot}{name}-{value}");
    }

    fn finish(mut self) -> Vec<(&'static str, KeyValue)> {
        for name in RARE {
            if let Some(value) = self.mars(name).filter(|value| value.as_str() != Some("unknown")) {
                self.vary(name, value);
            }
        }
        self.dates();
        if !self.variant.is_empty() {
            let variant = std::mem::take(&mut self.variant);
            self.put("variant", &variant);
        }
        self.keys
    }

    /// Dates have eight digits; MARS has none for a month or a day of any year, and no time for a monthly mean.
    fn dates(&mut self) {
        for name in ["date", "hdate", "refdate"] {
            match self.mars(name) {
                Some(KeyValue::Integer(date @ 1..=9_999_999)) if date > 1231 => self.put(name, &format!("{date:08}")),
                Some(KeyValue::Text(text)) if name == "date" => self.climatology(text.as_str()),
                _ => {}
            }
        }
        let base = self.head.number(&BASE_DATE, 0).filter(|date| *date > 1231);
        if let Some(date) = base.filter(|_| !self.has_mars("date")) {
            self.put("date", &format!("{date:08}"));
        }
        if let Some(time) = self.head.number(&BASE_TIME, 0).filter(|_| !self.has_mars("time")) {
            self.put("time", &format!("{time:04}"));
        }
        if let Some(second) = self
            .head
            .number_in(keys::SECOND)
            .filter(|second| !matches!(second, 0 | 255))
        {
            self.vary("second", second);
        }
    }

    /// A month or a day of any year has the year 1.
    fn climatology(&mut self, text: &str) {
        let (Some(month @ 1..=12), Some(day)) = (self.head.number_in(keys::MONTH), self.head.number_in(keys::DAY))
        else {
            return;
        };
        let day = if (1..=31).contains(&day) { day } else { 1 };
        self.put("date", &format!("0001{month:02}{day:02}"));
        let text = text.to_owned();
        self.vary("climatology", text);
    }

    /// The length of a range of time.
    fn span(&mut self, steps: Option<StepRange>) {
        let Some(StepRange { start, end, unit }) = steps.filter(|steps| steps.end > steps.start) else {
            return;
        };
        self.put("timespan", &format!("{}{unit}", end - start));
    }
}

/// `value` * 10^-`factor` * 10^`shift` as a decimal; in edition 2 the highest bit of a value or factor is its sign.
fn decimal(value: i64, factor: i64, shift: i64) -> Option<String> {
    let exponent = shift - factor;
    let digits = value.unsigned_abs().to_string();
    let sign = if value < 0 { "-" } else { "" };
    if value == 0 {
        return Some("0".to_owned());
    }
    if exponent >= 0 {
        let zeros = usize::try_from(exponent)
            .ok()
            .filter(|zeros| digits.len() + zeros <= 18)?;
        return Some(format!("{sign}{digits}{}", "0".repeat(zeros)));
    }
    let places = usize::try_from(-exponent).ok().filter(|places| *places <= 18)?;
    let digits = format!("{digits:0>width$}", width = places + 1);
    let (whole, fraction) = digits.split_at(digits.len() - places);
    let fraction = fraction.trim_end_matches('0');
    let point = if fraction.is_empty() { "" } else { "." };
    (whole.trim_start_matches('0').len() + fraction.len() <= 18).then(|| format!("{sign}{whole}{point}{fraction}"))
}

/// Octets as hexadecimal digits, or their hash (FNV-1a, 64 bits) where they are many.
fn shown(octets: &[u8]) -> String {
    if octets.len() <= SHOWN_MAX {
        return octets.iter().fold(String::new(), |mut text, octet| {
            let _ = write!(text, "{octet:02x}");
            text
        });
    }
    let hash = octets.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, octet| {
        (hash ^ u64::from(*octet)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scaled_values_are_exact() {
        for (value, factor, shift, text) in [
            (44, 2, 0, Some("0.44")),
            (440, 3, 0, Some("0.44")),
            (-2, 6, 9, Some("-2000")),
            (85_000, 0, -2, Some("850")),
            (5, 1, 0, Some("0.5")),
            (0, 99, 0, Some("0")),
            (7, -3, 0, Some("7000")),
            (7, -30, 0, None),
            (7, 30, 0, None),
        ] {
            assert_eq!(
                decimal(value, factor, shift).as_deref(),
                text,
                "{value} {factor} {shift}"
            );
        }
    }

    #[test]
    fn many_octets_are_hashed() {
        assert_eq!(shown(&[0, 255]), "00ff");
        assert_eq!(shown(&[1; 40]).len(), 16);
        assert_ne!(shown(&[1; 40]), shown(&[1; 41]));
    }
}
