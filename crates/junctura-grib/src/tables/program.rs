//! Programs: what to read from a template or local section, and which mars keys that gives.
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

use super::codes::Codes;
use super::concepts::{ConceptId, Concepts};
use super::{Map, Texts};

pub(crate) type Program = Vec<Op>;

#[derive(Debug)]
pub(crate) enum Op {
    Read {
        key: u16,
        length: u8,
        kind: Kind,
        may_miss: bool,
    },
    Pass(Expr),
    Stop,
    List(Expr, Program),
    If(Cond, Program, Program),
    Define(u16, Expr),
    Mars(&'static str, Expr),
    MoveMars(&'static str, Expr),
    NoMars(&'static str),
    Named(&'static str, u16),
    Call(u16),
    Built(Built),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Unsigned,
    Signed,
    Characters,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Built {
    Horizontal,
    Statistical,
    Instant,
}

#[derive(Debug)]
pub(crate) enum Expr {
    /// A number, or a text by its number.
    Fixed(i64),
    Key(u16),
    Concept(ConceptId),
    /// A concept of which the sets are the centre's and the project's.
    ConceptOfCentre(ConceptId),
    Call(Function, Vec<Expr>),
    Arithmetic(u8, Box<[Expr; 2]>),
}

#[derive(Debug)]
pub(crate) enum Cond {
    Compare(u8, Expr, Expr),
    In(Expr, Vec<Expr>),
    Defined(Expr),
    Not(Box<Cond>),
    And(Box<[Cond; 2]>),
    Or(Box<[Cond; 2]>),
}

macro_rules! functions {
    ($($name:ident = $text:literal),* $(,)?) => {
        /// What a table may ask the reader to compute.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Function { $($name),* }

        impl Function {
            fn named(text: &str) -> Option<Function> {
                match text { $($text => Some(Function::$name),)* _ => None }
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
pub(crate) struct Programs {
    all: Vec<Program>,
    by_number: Map<(&'static str, u32), u16>,
    by_label: Map<&'static str, u16>,
    labels: Vec<&'static str>,
    by_stream: Map<(i64, i64), u16>,
}

impl Programs {
    pub(crate) fn read(text: &'static str, codes: &Codes, concepts: &mut Concepts, texts: &mut Texts) -> Programs {
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
        let mut programs = Programs::default();
        for (_, body) in &lines {
            let mut reader = Reader {
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

    pub(crate) fn at(&self, at: u16) -> &[Op] {
        self.all.get(usize::from(at)).map_or(&[], Vec::as_slice)
    }

    /// The name of a program after its family: `eps` of `t/eps`.
    pub(crate) fn name(&self, at: u16) -> &'static str {
        let label = self.labels.get(usize::from(at)).copied().unwrap_or_default();
        label.split_once('/').map_or(label, |(_, name)| name)
    }

    /// The program of a family (`4` for product templates, ...) and number.
    pub(crate) fn numbered(&self, family: &'static str, number: i64) -> Option<&[Op]> {
        let number = u32::try_from(number).ok()?;
        self.by_number.get(&(family, number)).map(|&at| self.at(at))
    }

    pub(crate) fn labelled(&self, label: &str) -> Option<&[Op]> {
        self.by_label.get(label).map(|&at| self.at(at))
    }

    pub(crate) fn of_stream(&self, stream: i64, kind: i64) -> Option<&[Op]> {
        self.by_stream.get(&(stream, kind)).map(|&at| self.at(at))
    }
}

struct Reader<'r> {
    rest: &'static str,
    labels: &'r Map<&'static str, u16>,
    concepts: &'r mut Concepts,
    texts: &'r mut Texts,
}

impl Reader<'_> {
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

    fn operation(&mut self) -> Option<Op> {
        Some(match self.word() {
            "r" => {
                let (key, length, kind) = (self.number(), self.number(), self.word());
                let may_miss = kind.ends_with('m');
                let kind = match kind.as_bytes().first() {
                    Some(b's') => Kind::Signed,
                    Some(b'a') => Kind::Characters,
                    _ => Kind::Unsigned,
                };
                Op::Read {
                    key,
                    length,
                    kind,
                    may_miss,
                }
            }
            "p" => Op::Pass(self.value()?),
            "z" => Op::Stop,
            "l" => Op::List(self.value()?, self.program()),
            "i" => Op::If(self.condition()?, self.bracketed(), self.bracketed()),
            "d" => Op::Define(self.number(), self.value()?),
            "a" => Op::Mars(self.word(), self.value()?),
            "s" => Op::MoveMars(self.word(), self.value()?),
            "x" => Op::Named(self.word(), self.number()),
            "u" => Op::NoMars(self.word()),
            "c" => Op::Call(self.labels.get(self.word()).copied()?),
            "b" => Op::Built(match self.word() {
                "horizontal" => Built::Horizontal,
                "statistical" => Built::Statistical,
                _ => Built::Instant,
            }),
            _ => return None,
        })
    }

    fn value(&mut self) -> Option<Expr> {
        if self.take('(') {
            let expr = self.call();
            self.close();
            return expr;
        }
        let word = self.word();
        if let Some(concept) = word.strip_prefix("@+") {
            return Some(Expr::ConceptOfCentre(self.concepts.id(concept)));
        }
        if let Some(concept) = word.strip_prefix('@') {
            return Some(Expr::Concept(self.concepts.id(concept)));
        }
        match word.strip_prefix('k').and_then(|key| key.parse().ok()) {
            Some(key) => Some(Expr::Key(key)),
            None if word.is_empty() => None,
            None if word.starts_with('"') => Some(Expr::Fixed(self.texts.number(word.trim_matches('"')))),
            None => Some(Expr::Fixed(word.parse().ok()?)),
        }
    }

    fn values(&mut self) -> Option<Vec<Expr>> {
        let mut values = Vec::new();
        loop {
            self.skip_blanks();
            if self.rest.starts_with(')') || self.rest.is_empty() {
                return Some(values);
            }
            values.push(self.value()?);
        }
    }

    fn call(&mut self) -> Option<Expr> {
        match self.word() {
            "f" => {
                let name = self.word();
                if name == "element" {
                    return self.element();
                }
                Some(Expr::Call(Function::named(name)?, self.values()?))
            }
            sign => Some(Expr::Arithmetic(
                *sign.as_bytes().first()?,
                Box::new([self.value()?, self.value()?]),
            )),
        }
    }

    /// An element of a list: not kept, so the value is unknown, and what depends on it is left out.
    fn element(&mut self) -> Option<Expr> {
        self.values()?;
        Some(Expr::Arithmetic(b'?', Box::new([Expr::Fixed(0), Expr::Fixed(0)])))
    }

    fn condition(&mut self) -> Option<Cond> {
        if !self.take('(') {
            return None;
        }
        let sign = self.word();
        let cond = match sign {
            "&" => Cond::And(Box::new([self.condition()?, self.condition()?])),
            "|" => Cond::Or(Box::new([self.condition()?, self.condition()?])),
            "!" => Cond::Not(Box::new(self.condition()?)),
            "D" => Cond::Defined(self.value()?),
            "in" => Cond::In(self.value()?, self.values()?),
            "<=" => Cond::Compare(b'l', self.value()?, self.value()?),
            ">=" => Cond::Compare(b'g', self.value()?, self.value()?),
            _ => Cond::Compare(*sign.as_bytes().first()?, self.value()?, self.value()?),
        };
        self.close();
        Some(cond)
    }
}
