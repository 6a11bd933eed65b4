//! The values of expressions: as a number, to compare and compute with, or as what is printed.

use std::fmt::Write;

use crate::header::calc;
use crate::header::{HeaderState, KeySlot, StepRange, is_missing, is_text};
use crate::tables::program::{TableCondition, TableExpr, TableFunction};
use crate::tables::{UNKNOWN, keys};
use crate::value::{KeyText, KeyValue};

/// Definitions refer to each other; deeper than this they are circular.
const DEPTH_MAX: u8 = 24;

const MONTHS: [&str; 12] = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];

impl HeaderState<'_> {
    pub(crate) fn key_number(&self, key: u16, depth: u8) -> Option<i64> {
        match self.slot(key) {
            KeySlot::Number(number) => Some(number),
            KeySlot::Defined(expr) => self.number(expr, depth + 1),
            KeySlot::Nothing if key == keys::TYPE_OF_LEVEL => self.type_of_level,
            KeySlot::Nothing | KeySlot::Characters { .. } => None,
        }
    }

    /// Returns the value as a number; texts by their number.
    pub(crate) fn number(&self, expr: &'static TableExpr, depth: u8) -> Option<i64> {
        if depth > DEPTH_MAX {
            return None;
        }
        match expr {
            TableExpr::Fixed(number) => Some(*number),
            TableExpr::Key(key) => self.key_number(*key, depth),
            TableExpr::Concept(id) => self.concept(*id, depth + 1),
            TableExpr::ConceptOfCentre(id) => self.concept_of_centre(*id, depth + 1),
            TableExpr::Call(function, arguments) => self.call_number(*function, arguments, depth + 1),
            TableExpr::Arithmetic(sign, sides) => {
                let [left, right] = &**sides;
                arithmetic(*sign, self.number(left, depth + 1)?, self.number(right, depth + 1)?)
            }
        }
    }

    fn argument(&self, arguments: &'static [TableExpr], at: usize, depth: u8) -> Option<i64> {
        self.number(arguments.get(at)?, depth)
    }

    fn call_number(&self, function: TableFunction, arguments: &'static [TableExpr], depth: u8) -> Option<i64> {
        let argument = |at| self.argument(arguments, at, depth);
        match function {
            TableFunction::StartStep => self.steps.map(|steps| steps.start),
            TableFunction::EndStep | TableFunction::StepRange => self.steps.map(|steps| steps.end),
            TableFunction::DataDate | TableFunction::DayOfTheYear => self.data_date(),
            TableFunction::DataTime => Some(calc::time_of(
                self.number_in(keys::HOUR)?,
                self.number_in(keys::MINUTE)?,
            )),
            TableFunction::ParamId => Some(self.param.map_or(0, |param| param.id)),
            TableFunction::Level => Some(self.level),
            TableFunction::Levtype => self.levtype,
            TableFunction::TypeOfLevel => self.type_of_level,
            TableFunction::StepType => self.step_type,
            TableFunction::Mtg2Switch => (self.edition == 2).then_some(self.mtg2_switch),
            TableFunction::Dataset => Some(self.dataset),
            TableFunction::StatType => self.stat_type(depth),
            TableFunction::TimeSpan => self.time_span(depth),
            TableFunction::G2Date => Some(argument(0)? * 10_000 + argument(1)? * 100 + argument(2)?),
            TableFunction::Time => Some(calc::time_of(argument(0)?, argument(1)?)),
            TableFunction::VerificationDate => {
                Some(calc::moved(argument(0)?, argument(1)? / 100 * 100, hours(argument(2)?)).0)
            }
            TableFunction::MonthlyDate => Some(argument(0)? / 100 * 100 + 1),
            TableFunction::ValidityDate => Some(self.validity(arguments, depth)?.0),
            TableFunction::ValidityTime => Some(self.validity(arguments, depth)?.1),
            TableFunction::ForecastMonth => self.forecast_month(arguments, depth),
            TableFunction::Max => Some(argument(0)?.max(argument(1)?)),
            TableFunction::Scaled
            | TableFunction::Scale
            | TableFunction::Round
            | TableFunction::Divide
            | TableFunction::Multiply => Some(self.real_call(function, arguments, depth)? as i64),
            TableFunction::Concept => argument(0).or_else(|| argument(1)),
            TableFunction::G1Date => {
                Some(((argument(0)? - 1) * 100 + argument(1)?) * 10_000 + argument(2)? * 100 + argument(3)?)
            }
            TableFunction::MarsParam
            | TableFunction::LevelInHpa
            | TableFunction::GlobalDomain
            | TableFunction::Sprintf
            | TableFunction::ForecastPeriod => None,
        }
    }

    fn data_date(&self) -> Option<i64> {
        let (month, day) = (self.number_in(keys::MONTH)?, self.number_in(keys::DAY)?);
        if self.edition == 2 {
            return Some(self.number_in(keys::YEAR)? * 10_000 + month * 100 + day);
        }
        let (century, year) = (
            self.number_in(keys::CENTURY_OF_REFERENCE_TIME_OF_DATA)?,
            self.number_in(keys::YEAR_OF_CENTURY)?,
        );
        Some(match (year, month, day) {
            (255, 1..=12, 255) => month,
            (255, 1..=12, _) => month * 100 + day,
            _ => ((century - 1) * 100 + year) * 10_000 + month * 100 + day,
        })
    }

    fn validity(&self, arguments: &'static [TableExpr], depth: u8) -> Option<(i64, i64)> {
        let argument = |at| self.argument(arguments, at, depth);
        let minutes = match argument(3) {
            Some(unit) => argument(2)?.checked_mul(calc::unit_seconds2(unit)?)? / 60,
            // Without a unit ecCodes does not move the time.
            None => 0,
        };
        Some(calc::moved(argument(0)?, argument(1)?, minutes))
    }

    /// Which month of the forecast it is: the first whole one is 1.
    fn forecast_month(&self, arguments: &'static [TableExpr], depth: u8) -> Option<i64> {
        let argument = |at| self.argument(arguments, at, depth);
        let months = |date: i64| date / 10_000 * 12 + date / 100 % 100;
        if self.edition == 1 {
            let (verifying, base) = (argument(0)?, argument(1)?);
            let first = i64::from(argument(2)? == 1 && argument(3)? == 0);
            let month = months(verifying.checked_mul(100)?) - months(base) + first;
            let coded = argument(4)?;
            return Some(if coded == 0 { month } else { coded });
        }
        let (date, hour) = (self.data_date()?, self.number_in(keys::HOUR)?);
        let forecast = self.number_in(keys::FORECAST_TIME)?;
        let (verifying, _) = calc::moved(date, hour * 100 + self.number_in(keys::MINUTE)?, hours(forecast));
        Some(months(verifying) - months(date) + i64::from(date % 100 == 1 && hour == 0))
    }

    fn stat_type(&self, depth: u8) -> Option<i64> {
        if let KeySlot::Defined(expr) = self.slot(keys::STATTYPE) {
            return self.number(expr, depth + 1);
        }
        let stream = self.key_number(keys::MARS_STREAM, depth)?;
        let name = self.tables.codes.name(self.tables.known.streams, stream)?;
        let asked = self.mtg2_switch > 0 && ["sttd", "stte", "ldst", "ldsb", "sfmd", "shmd", "eest"].contains(&name);
        if !asked {
            return None;
        }
        Some(self.concept(self.tables.known.stat_type, depth + 1).unwrap_or(UNKNOWN))
    }

    fn time_span(&self, depth: u8) -> Option<i64> {
        let span = || self.concept(self.tables.known.time_span, depth + 1).unwrap_or(UNKNOWN);
        (self.mtg2_switch > 0).then(span)
    }

    /// A value with its fraction.
    fn real(&self, expr: &'static TableExpr, depth: u8) -> Option<f64> {
        match expr {
            _ if depth > DEPTH_MAX => None,
            TableExpr::Call(function, arguments) => self.real_call(*function, arguments, depth + 1),
            TableExpr::Key(key) => match self.slot(*key) {
                KeySlot::Defined(expr) => self.real(expr, depth + 1),
                _ => self.number(expr, depth).map(|number| number as f64),
            },
            _ => self.number(expr, depth).map(|number| number as f64),
        }
    }

    fn real_call(&self, function: TableFunction, arguments: &'static [TableExpr], depth: u8) -> Option<f64> {
        let real = |at| self.real(arguments.get(at)?, depth);
        Some(match function {
            TableFunction::Scaled => {
                let (factor, value) = (real(0)?, real(1)?);
                if is_missing(value as i64) {
                    0.0
                } else {
                    value / 10_f64.powf(factor)
                }
            }
            TableFunction::Scale => real(0)? * real(1)? / real(2)?,
            TableFunction::Divide => real(0)? / real(1)?,
            TableFunction::Multiply => real(0)? * real(1)?,
            TableFunction::Round => (real(0)? * real(1)?).round() / real(1)?,
            _ => self.call_number(function, arguments, depth)? as f64,
        })
    }

    pub(crate) fn holds(&self, cond: &'static TableCondition) -> bool {
        match cond {
            TableCondition::And(both) => both.iter().all(|cond| self.holds(cond)),
            TableCondition::Or(either) => either.iter().any(|cond| self.holds(cond)),
            TableCondition::Not(cond) => !self.holds(cond),
            TableCondition::Defined(expr) => match expr {
                TableExpr::Key(key) => !matches!(self.slot(*key), KeySlot::Nothing),
                _ => self.number(expr, 0).is_some(),
            },
            TableCondition::In(expr, values) => self
                .number(expr, 0)
                .is_some_and(|n| values.iter().any(|value| self.number(value, 0) == Some(n))),
            TableCondition::Compare(sign, left, right) => match (self.number(left, 0), self.number(right, 0)) {
                (Some(left), Some(right)) => match sign {
                    b'=' => left == right,
                    b'<' => left < right,
                    b'>' => left > right,
                    b'l' => left <= right,
                    b'g' => left >= right,
                    _ => false,
                },
                _ => false,
            },
        }
    }

    /// The value as it is printed.
    pub(crate) fn value(&self, expr: &'static TableExpr, depth: u8) -> Option<KeyValue> {
        if depth > DEPTH_MAX {
            return None;
        }
        match expr {
            TableExpr::Key(key) => self.key_value(*key, depth),
            TableExpr::Call(function, arguments) => self.call_value(*function, arguments, depth + 1),
            _ => self.number(expr, depth).map(|number| self.plain(number)),
        }
    }

    fn plain(&self, number: i64) -> KeyValue {
        match self.tables.text_of(number).filter(|_| is_text(number)) {
            Some(text) => KeyValue::fixed(text),
            None => KeyValue::Integer(number),
        }
    }

    pub(crate) fn key_value(&self, key: u16, depth: u8) -> Option<KeyValue> {
        if let KeySlot::Characters { at, length } = self.slot(key) {
            let bytes = self.message.get(at..at.checked_add(length)?)?;
            let bytes = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
            return Some(KeyValue::text(&String::from_utf8_lossy(bytes)));
        }
        let table = match key {
            keys::CENTRE if self.edition == 2 => Some(self.tables.known.centres[1]),
            _ => self.tables.codes.of_key(key),
        };
        if let Some(table) = table {
            let number = self.key_number(key, depth)?;
            let name = self.tables.codes.name(table, number).map(KeyValue::fixed);
            return Some(name.unwrap_or_else(|| self.plain(number)));
        }
        match self.slot(key) {
            KeySlot::Number(number) if is_missing(number) => Some(KeyValue::fixed("MISSING")),
            KeySlot::Number(number) => Some(self.plain(number)),
            KeySlot::Defined(expr) => self.value(expr, depth + 1),
            KeySlot::Nothing | KeySlot::Characters { .. } => None,
        }
    }

    fn call_value(&self, function: TableFunction, arguments: &'static [TableExpr], depth: u8) -> Option<KeyValue> {
        match function {
            TableFunction::StepRange => self.steps.map(range_text),
            TableFunction::StartStep => self.steps.map(|steps| step_text(steps.start, steps.unit)),
            TableFunction::EndStep => self.steps.map(|steps| step_text(steps.end, steps.unit)),
            TableFunction::DataTime | TableFunction::Time | TableFunction::ValidityTime => {
                let time = self.call_number(function, arguments, depth)?;
                Some(formatted(|out| write!(out, "{time:04}")))
            }
            TableFunction::DataDate | TableFunction::DayOfTheYear if self.edition == 1 => self.date_value(),
            TableFunction::GlobalDomain => Some(KeyValue::fixed("g")),
            TableFunction::MarsParam => {
                let (param, table) = (
                    self.number_in(keys::INDICATOR_OF_PARAMETER)?,
                    self.number_in(keys::TABLE2_VERSION)?,
                );
                Some(formatted(|out| write!(out, "{param}.{table}")))
            }
            TableFunction::Level if is_missing(self.level) => Some(KeyValue::fixed("MISSING")),
            TableFunction::LevelInHpa => Some(real_value(self.level as f64 / 100.0)),
            TableFunction::ForecastPeriod => {
                let steps = self.steps?;
                Some(formatted(|out| write!(out, "{}-{}", steps.start / 24, steps.end / 24)))
            }
            TableFunction::Sprintf => self.sprintf(arguments, depth),
            TableFunction::Scaled
            | TableFunction::Scale
            | TableFunction::Round
            | TableFunction::Divide
            | TableFunction::Multiply => self.real_call(function, arguments, depth).map(real_value),
            TableFunction::Levtype => self.levtype.map(|number| self.levtype_value(number)),
            _ => self
                .call_number(function, arguments, depth)
                .map(|number| self.plain(number)),
        }
    }

    fn levtype_value(&self, number: i64) -> KeyValue {
        if self.edition == 2 {
            return self.plain(number);
        }
        let local = match self.places.first() {
            Some(&"ecmf") => Some(self.tables.known.levtype1_ecmf),
            Some(&"rjtd") => Some(self.tables.known.levtype1_rjtd),
            _ => None,
        };
        let tables = [local, Some(self.tables.known.levtype1)];
        let name = tables
            .into_iter()
            .flatten()
            .find_map(|table| self.tables.codes.name(table, number));
        name.map_or(KeyValue::Integer(number), KeyValue::fixed)
    }

    /// A date of edition 1 may be a month or a day of any year.
    fn date_value(&self) -> Option<KeyValue> {
        let (month, day) = (self.number_in(keys::MONTH)?, self.number_in(keys::DAY)?);
        let name = usize::try_from(month - 1).ok().and_then(|at| MONTHS.get(at));
        match (self.number_in(keys::YEAR_OF_CENTURY)?, name, day) {
            (255, Some(name), 255) => Some(KeyValue::fixed(name)),
            (255, Some(name), _) => Some(formatted(|out| write!(out, "{name}-{day:02}"))),
            _ => self.data_date().map(KeyValue::Integer),
        }
    }

    /// The few conversions that the definitions use: `%d`, `%s` and `%g`, with a width for `%d`.
    fn sprintf(&self, arguments: &'static [TableExpr], depth: u8) -> Option<KeyValue> {
        let (format, arguments) = arguments.split_first()?;
        let format = self.tables.text_of(self.number(format, depth)?)?;
        let mut arguments = arguments.iter();
        let mut pieces = format.split('%');
        let mut out = String::from(pieces.next()?);
        for piece in pieces {
            let end = piece.find(|c: char| c.is_ascii_alphabetic() && c != 'l')?;
            let width = piece
                .get(..end)?
                .trim_matches(|c| c == '.' || c == 'l' || c == '0')
                .parse()
                .unwrap_or(0);
            let argument = arguments.next()?;
            match piece.as_bytes().get(end) {
                Some(b'd') => write!(out, "{:0width$}", self.number(argument, depth)?).ok()?,
                _ => write!(out, "{}", self.value(argument, depth)?).ok()?,
            }
            out.push_str(piece.get(end + 1..)?);
        }
        Some(KeyValue::text(&out))
    }
}

fn arithmetic(sign: u8, left: i64, right: i64) -> Option<i64> {
    match sign {
        b'+' => left.checked_add(right),
        b'-' => left.checked_sub(right),
        b'*' => left.checked_mul(right),
        b'/' => left.checked_div(right),
        b'%' => left.checked_rem(right),
        _ => None,
    }
}

fn hours(hours: i64) -> i64 {
    hours.saturating_mul(60)
}

/// Steps in hours are bare numbers.
fn step_text(step: i64, unit: char) -> KeyValue {
    if unit == 'h' {
        KeyValue::Integer(step)
    } else {
        formatted(|out| write!(out, "{step}{unit}"))
    }
}

fn range_text(steps: StepRange) -> KeyValue {
    let StepRange { start, end, unit } = steps;
    match unit {
        _ if start == end => step_text(end, unit),
        'h' => formatted(|out| write!(out, "{start}-{end}")),
        _ => formatted(|out| write!(out, "{start}{unit}-{end}{unit}")),
    }
}

/// A number with a fraction, up to six digits as C's `%g` prints them.
fn real_value(value: f64) -> KeyValue {
    if value.fract() == 0.0 && value.abs() < 1e15 {
        return KeyValue::Integer(value as i64);
    }
    let digits = (5 - value.abs().log10().floor() as i32).clamp(0, 12) as usize;
    let text = format!("{value:.digits$}");
    KeyValue::text(text.trim_end_matches('0').trim_end_matches('.'))
}

/// Formats without allocating: the text is short.
fn formatted(write: impl FnOnce(&mut ShortBuffer) -> std::fmt::Result) -> KeyValue {
    let mut short = ShortBuffer {
        bytes: [0; 48],
        length: 0,
    };
    _ = write(&mut short);
    let text = short
        .bytes
        .get(..short.length)
        .and_then(|bytes| std::str::from_utf8(bytes).ok());
    KeyValue::Text(KeyText::from(text.unwrap_or_default()))
}

struct ShortBuffer {
    bytes: [u8; 48],
    length: usize,
}

impl Write for ShortBuffer {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let room = self
            .bytes
            .get_mut(self.length..self.length + text.len())
            .ok_or(std::fmt::Error)?;
        room.copy_from_slice(text.as_bytes());
        self.length += text.len();
        Ok(())
    }
}
