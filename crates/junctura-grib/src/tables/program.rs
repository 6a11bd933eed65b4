//! Programs: the fields to read from a template or local section, and the mars keys that they give.
//!
//! A program is a text of operations, made from the definition file of the same name:
//!
//! ```text
//! (r KEY LENGTH u|s|a[m])   read a field: unsigned, signed, characters; m: may be missing
//! (p LENGTH)                pass over bytes            (z)  the rest cannot be followed
//! (l COUNT OPERATIONS)      do so many times           (i CONDITION (OPERATIONS) (OPERATIONS))
//! (d KEY VALUE)             a key is that value        (a NAME VALUE)  a mars key is that value
//! (u NAME)                  no such mars key           (s NAME VALUE)  a mars key, if there is one, is that value
//! (c PROGRAM)               do that program here       (x FAMILY KEY)  do the program of a family that a key names
//! (b WORD)                  what only code can do: horizontal, statistical, instant
//! ```
//! A value is a number, `k12` (the key 12), `"text"`, `@concept`, `(f FUNCTION VALUES)` or `(+ VALUE VALUE)`.

use super::codes::CodeTables;
use super::concepts::{ConceptId, ConceptTables};
use super::{Map, TextNumbers};

pub(crate) type Program = Vec<TableOp>;

#[derive(Debug)]
pub(crate) enum TableOp {
    Read {
        key: u16,
        length: u8,
        kind: KeyKind,
        may_miss: bool,
    },
    Pass(TableExpr),
    Stop,
    List(TableExpr, Program),
    If(TableCondition, Program, Program),
    Define(u16, TableExpr),
    Mars(&'static str, TableExpr),
    MoveMars(&'static str, TableExpr),
    NoMars(&'static str),
    Named(&'static str, u16),
    Call(u16),
    Built(BuiltKey),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyKind {
    Unsigned,
    Signed,
    Characters,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BuiltKey {
    Horizontal,
    Statistical,
    Instant,
}

#[derive(Debug)]
pub(crate) enum TableExpr {
    /// A number, or a text by its number.
    Fixed(i64),
    Key(u16),
    Concept(ConceptId),
    /// A concept of which the sets are the centre's and the project's.
    ConceptOfCentre(ConceptId),
    Call(TableFunction, Vec<TableExpr>),
    Arithmetic(u8, Box<[TableExpr; 2]>),
}

#[derive(Debug)]
pub(crate) enum TableCondition {
    Compare(u8, TableExpr, TableExpr),
    In(TableExpr, Vec<TableExpr>),
    Defined(TableExpr),
    Not(Box<TableCondition>),
    And(Box<[TableCondition; 2]>),
    Or(Box<[TableCondition; 2]>),
}

macro_rules! functions {
    ($($name:ident = $text:literal),* $(,)?) => {
        /// The functions that a table may call.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum TableFunction { $($name),* }

        impl TableFunction {
            fn named(text: &str) -> Option<TableFunction> {
                match text { $($text => Some(TableFunction::$name),)* _ => None }
            }
        }
    };
}

functions! {
    StepRange = "stepRange", StartStep = "startStep", EndStep = "endStep", DataDate = "dataDate", DataTime = "dataTime",
    ParamId = "paramId", MarsParam = "marsParam", Level = "level", LevelInHpa = "levelInHpa", Levtype = "levtype", TypeOfLevel = "typeOfLevel", StepType = "stepType",
    Mtg2Switch = "MTG2Switch", GlobalDomain = "globalDomain", StatType = "stattype", TimeSpan = "timeSpan",
    Dataset = "datasetForLocal", Sprintf = "sprintf", G2Date = "g2date", Time = "time", VerificationDate = "g1verificationdate",
    MonthlyDate = "g1monthlydate", ValidityDate = "validity_date", ValidityTime = "validity_time", ForecastPeriod = "g1fcperiod",
    ForecastMonth = "g1forecastmonth", Scaled = "from_scale_factor_scaled_value", Scale = "scale", Round = "round",
    Divide = "divdouble", Max = "max", DayOfTheYear = "g1day_of_the_year_date", G1Date = "g1date",
    Multiply = "multdouble", Concept = "concept",
}

#[derive(Default)]
pub(crate) struct TablePrograms {
    all: Vec<Program>,
    by_number: Map<(&'static str, u32), u16>,
    by_label: Map<&'static str, u16>,
    labels: Vec<&'static str>,
    by_stream: Map<(i64, i64), u16>,
}

impl TablePrograms {
    pub(crate) fn read(
        text: &'static str,
        codes: &CodeTables,
        concepts: &mut ConceptTables,
        texts: &mut TextNumbers,
    ) -> TablePrograms {
        let lines: Vec<_> = text.lines().filter_map(|line| line.split_once('\t')).collect();
        let mut labels: Map<_, _> = lines
            .iter()
            .enumerate()
            .map(|(at, (label, _))| (*label, at as u16))
            .collect();
        for (label, body) in &lines {
            if let Some(&same) = body.strip_prefix('=').and_then(|same| labels.get(same)) {
                labels.insert(label, same);
            }
        }
        let mut programs = TablePrograms::default();
        for (_, body) in &lines {
            let mut reader = ProgramReader {
                rest: body,
                labels: &labels,
                concepts,
                texts,
            };
            programs.all.push(if body.starts_with('=') {
                Vec::new()
            } else {
                reader.program()
            });
        }
        for (&label, &at) in &labels {
            let Some((family, name)) = label.split_once('/') else {
                continue;
            };
            let code = |table: &str, name| codes.table(table).and_then(|table| codes.code(table, name));
            if let (Ok(number), true) = (name.parse(), family != "m") {
                programs.by_number.insert((family, number), at);
            } else if let Some((stream, kind)) = name.split_once('.').filter(|_| family == "m")
                && let Some(key) = code("stream", stream).zip(code("type", kind))
            {
                programs.by_stream.insert(key, at);
            }
        }
        programs.by_label = labels;
        programs.labels = lines.iter().map(|(label, _)| *label).collect();
        programs
    }

    pub(crate) fn at(&self, at: u16) -> &[TableOp] {
        self.all.get(usize::from(at)).map_or(&[], Vec::as_slice)
    }

    /// The name of a program after its family: `eps` of `t/eps`.
    pub(crate) fn name(&self, at: u16) -> &'static str {
        let label = self.labels.get(usize::from(at)).copied().unwrap_or_default();
        label.split_once('/').map_or(label, |(_, name)| name)
    }

    /// The program of a family (`4` for product templates, ...) and number.
    pub(crate) fn numbered(&self, family: &'static str, number: i64) -> Option<&[TableOp]> {
        let number = u32::try_from(number).ok()?;
        self.by_number.get(&(family, number)).map(|&at| self.at(at))
    }

    pub(crate) fn labelled(&self, label: &str) -> Option<&[TableOp]> {
        self.by_label.get(label).map(|&at| self.at(at))
    }

    pub(crate) fn of_stream(&self, stream: i64, kind: i64) -> Option<&[TableOp]> {
        self.by_stream.get(&(stream, kind)).map(|&at| self.at(at))
    }
}

struct ProgramReader<'r> {
    rest: &'static str,
    labels: &'r Map<&'static str, u16>,
    concepts: &'r mut ConceptTables,
    texts: &'r mut TextNumbers,
}

impl ProgramReader<'_> {
    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_start_matches(' ');
    }

    fn take(&mut self, mark: char) -> bool {
        self.skip_blanks();
        let rest = self.rest.strip_prefix(mark);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn word(&mut self) -> &'static str {
        self.skip_blanks();
        let end = match self.rest.strip_prefix('"').and_then(|rest| rest.find('"')) {
            Some(end) => end + 2,
            None => self.rest.find([' ', '(', ')']).unwrap_or(self.rest.len()),
        };
        let (word, rest) = self.rest.split_at_checked(end).unwrap_or((self.rest, ""));
        self.rest = rest;
        word
    }

    fn number<T: std::str::FromStr + Default>(&mut self) -> T {
        self.word().parse().unwrap_or_default()
    }

    /// Operations up to the closing bracket or the end.
    fn program(&mut self) -> Program {
        let mut program = Vec::new();
        while self.take('(') {
            let op = self.operation();
            self.close();
            program.extend(op);
        }
        program
    }

    /// Passes over what is left before the bracket that closes this level.
    fn close(&mut self) {
        while !self.take(')') && !self.rest.is_empty() {
            if self.take('(') {
                self.close();
            } else {
                self.word();
            }
        }
    }

    fn bracketed(&mut self) -> Program {
        self.take('(');
        let program = self.program();
        self.take(')');
        program
    }

    fn operation(&mut self) -> Option<TableOp> {
        Some(match self.word() {
            "r" => {
                let (key, length, kind) = (self.number(), self.number(), self.word());
                let may_miss = kind.ends_with('m');
                let kind = match kind.as_bytes().first() {
                    Some(b's') => KeyKind::Signed,
                    Some(b'a') => KeyKind::Characters,
                    _ => KeyKind::Unsigned,
                };
                TableOp::Read {
                    key,
                    length,
                    kind,
                    may_miss,
                }
            }
            "p" => TableOp::Pass(self.value()?),
            "z" => TableOp::Stop,
            "l" => TableOp::List(self.value()?, self.program()),
            "i" => TableOp::If(self.condition()?, self.bracketed(), self.bracketed()),
            "d" => TableOp::Define(self.number(), self.value()?),
            "a" => TableOp::Mars(self.word(), self.value()?),
            "s" => TableOp::MoveMars(self.word(), self.value()?),
            "x" => TableOp::Named(self.word(), self.number()),
            "u" => TableOp::NoMars(self.word()),
            "c" => TableOp::Call(self.labels.get(self.word()).copied()?),
            "b" => TableOp::Built(match self.word() {
                "horizontal" => BuiltKey::Horizontal,
                "statistical" => BuiltKey::Statistical,
                _ => BuiltKey::Instant,
            }),
            _ => return None,
        })
    }

    fn value(&mut self) -> Option<TableExpr> {
        if self.take('(') {
            let expr = self.call();
            self.close();
            return expr;
        }
        let word = self.word();
        if let Some(concept) = word.strip_prefix("@+") {
            return Some(TableExpr::ConceptOfCentre(self.concepts.id(concept)));
        }
        if let Some(concept) = word.strip_prefix('@') {
            return Some(TableExpr::Concept(self.concepts.id(concept)));
        }
        match word.strip_prefix('k').and_then(|key| key.parse().ok()) {
            Some(key) => Some(TableExpr::Key(key)),
            None if word.is_empty() => None,
            None if word.starts_with('"') => Some(TableExpr::Fixed(self.texts.number(word.trim_matches('"')))),
            None => Some(TableExpr::Fixed(word.parse().ok()?)),
        }
    }

    fn values(&mut self) -> Option<Vec<TableExpr>> {
        let mut values = Vec::new();
        loop {
            self.skip_blanks();
            if self.rest.starts_with(')') || self.rest.is_empty() {
                return Some(values);
            }
            values.push(self.value()?);
        }
    }

    fn call(&mut self) -> Option<TableExpr> {
        match self.word() {
            "f" => {
                let name = self.word();
                if name == "element" {
                    return self.element();
                }
                Some(TableExpr::Call(TableFunction::named(name)?, self.values()?))
            }
            sign => Some(TableExpr::Arithmetic(
                *sign.as_bytes().first()?,
                Box::new([self.value()?, self.value()?]),
            )),
        }
    }

    /// An element of a list: not kept, so the value is unknown, and what depends on it is left out.
    fn element(&mut self) -> Option<TableExpr> {
        self.values()?;
        Some(TableExpr::Arithmetic(
            b'?',
            Box::new([TableExpr::Fixed(0), TableExpr::Fixed(0)]),
        ))
    }

    fn condition(&mut self) -> Option<TableCondition> {
        if !self.take('(') {
            return None;
        }
        let sign = self.word();
        let cond = match sign {
            "&" => TableCondition::And(Box::new([self.condition()?, self.condition()?])),
            "|" => TableCondition::Or(Box::new([self.condition()?, self.condition()?])),
            "!" => TableCondition::Not(Box::new(self.condition()?)),
            "D" => TableCondition::Defined(self.value()?),
            "in" => TableCondition::In(self.value()?, self.values()?),
            "<=" => TableCondition::Compare(b'l', self.value()?, self.value()?),
            ">=" => TableCondition::Compare(b'g', self.value()?, self.value()?),
            _ => TableCondition::Compare(*sign.as_bytes().first()?, self.value()?, self.value()?),
        };
        self.close();
        Some(cond)
    }
}
