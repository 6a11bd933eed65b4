//! Running a program over a section.

use crate::header::edition2;
use crate::header::{DefinitionPart, HeaderState, TimeRange};
use crate::octets;
use crate::tables::program::{BuiltKey, KeyKind, TableExpr, TableOp};
use crate::tables::{MISSING, keys};

/// The largest depth of programs that call programs.
const DEPTH_MAX: u8 = 8;

impl HeaderState<'_> {
    /// Reads on from `start` to `end` next.
    pub(crate) fn enter(&mut self, start: usize, end: usize) {
        self.cursor = start;
        self.end = end.min(self.message.len());
    }

    pub(crate) fn run(&mut self, program: &'static [TableOp]) {
        self.run_at(program, 0);
    }

    fn run_at(&mut self, program: &'static [TableOp], depth: u8) {
        if depth > DEPTH_MAX {
            return;
        }
        for op in program {
            match op {
                TableOp::Read {
                    key,
                    length,
                    kind,
                    may_miss,
                } => self.read(*key, *length, *kind, *may_miss),
                TableOp::Pass(length) => self.pass(length),
                TableOp::Stop => self.cursor = self.end,
                TableOp::List(count, program) => self.list(count, program, depth),
                TableOp::If(cond, then, otherwise) => {
                    let program = if self.holds(cond) { then } else { otherwise };
                    self.run_at(program, depth + 1);
                }
                TableOp::Define(key, expr) => self.define(*key, expr),
                TableOp::Mars(name, expr) => self.put_mars(name, expr),
                TableOp::MoveMars(name, expr) => {
                    if self.mars.iter().any(|(n, _)| n == name) {
                        self.put_mars(name, expr);
                    }
                }
                TableOp::Named(family, key) => self.named(family, *key, depth),
                TableOp::NoMars(name) => self.drop_mars(name),
                TableOp::Call(at) => self.call(*at, depth),
                TableOp::Built(BuiltKey::Horizontal) => edition2::horizontal(self),
                TableOp::Built(BuiltKey::Statistical) => edition2::statistical(self),
                TableOp::Built(BuiltKey::Instant) => edition2::instant(self),
            }
        }
    }

    fn call(&mut self, program: u16, depth: u8) {
        let start = self.cursor;
        self.run_at(self.tables.programs.at(program), depth + 1);
        if self.in_product && depth == 0 {
            let end = self.cursor;
            self.parts.push(DefinitionPart { program, start, end });
        }
    }

    fn read(&mut self, key: u16, length: u8, kind: KeyKind, may_miss: bool) {
        let (at, size) = (self.cursor, usize::from(length));
        self.cursor = self.end.min(at + size);
        if at + size > self.end {
            return;
        }
        if kind == KeyKind::Characters {
            return self.set_characters(key, at, length);
        }
        let Some(raw) = octets::unsigned(self.message, at, size) else {
            return;
        };
        if may_miss && raw == octets::all_ones(size) {
            return self.set(key, MISSING);
        }
        let signed = || octets::signed(self.message, at, size).unwrap_or(0);
        let number = if kind == KeyKind::Signed {
            signed()
        } else {
            i64::try_from(raw).unwrap_or(i64::MAX)
        };
        self.set(key, number);
    }

    /// The program that a key names, by its number or by the name that its number has.
    fn named(&mut self, family: &str, key: u16, depth: u8) {
        let Some(name) = self.key_value(key, 0) else { return };
        if let Some(program) = self.tables.programs.labelled(&format!("{family}{name}")) {
            self.run_at(program, depth + 1);
        }
    }

    fn pass(&mut self, length: &'static TableExpr) {
        let length = self
            .number(length, 0)
            .and_then(|length| usize::try_from(length).ok())
            .unwrap_or(0);
        self.cursor = self.end.min(self.cursor.saturating_add(length));
    }

    fn list(&mut self, count: &'static TableExpr, program: &'static [TableOp], depth: u8) {
        let times = self.number(count, 0).unwrap_or(0);
        let of_ranges = matches!(count, TableExpr::Key(keys::NUMBER_OF_TIME_RANGES));
        for at in 0..times {
            let before = self.cursor;
            self.run_at(program, depth + 1);
            self.element(program, at);
            let range = self.time_range();
            if let Some(place) = usize::try_from(at)
                .ok()
                .and_then(|at| self.ranges.get_mut(at))
                .filter(|_| of_ranges)
            {
                *place = range;
            }
            if self.cursor == before || self.cursor >= self.end {
                break;
            }
        }
    }

    /// Keeps the first elements of the lists that rows ask for.
    fn element(&mut self, program: &'static [TableOp], at: i64) {
        for (list, count, elements) in keys::LISTS {
            let reads = program
                .iter()
                .any(|op| matches!(op, TableOp::Read { key, .. } if key == list));
            if reads && let Some(number) = self.number_in(*list) {
                self.set(*count, at + 1);
                let element = usize::try_from(at).ok().and_then(|at| elements.get(at));
                if let Some(element) = element {
                    self.set(*element, number);
                }
            }
        }
    }

    fn time_range(&self) -> TimeRange {
        let number = |key| self.number_in(key).unwrap_or(0);
        TimeRange {
            process: number(keys::TYPE_OF_STATISTICAL_PROCESSING),
            increment: number(keys::TYPE_OF_TIME_INCREMENT),
            unit: number(keys::INDICATOR_OF_UNIT_FOR_TIME_RANGE),
            length: number(keys::LENGTH_OF_TIME_RANGE),
        }
    }
}
