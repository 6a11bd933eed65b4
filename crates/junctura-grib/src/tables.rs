//! The tables, read once on first use.
//!
//! They are texts inside the library (see `docs/formats/grib.md`): code tables, concepts (rows of conditions that find a
//! name), parameters, and programs that read templates and say which keys a header has. Reading them takes a few
//! milliseconds. They are made by a tool and tested, so that a line which cannot be read is passed over.

pub(crate) mod codes;
pub(crate) mod concepts;
#[rustfmt::skip]
#[allow(dead_code)]
pub(crate) mod keys;
pub(crate) mod params;
pub(crate) mod program;

use std::collections::HashMap;
use std::sync::LazyLock;

use codes::Codes;
use concepts::Concepts;
use params::Params;
use program::Programs;

/// Numbers from here on stand for texts, so that everything compares as a number.
pub(crate) const TEXT_BASE: i64 = 1 << 48;

/// What ecCodes gives for a field that is all ones and may be.
pub(crate) const MISSING: i64 = 2_147_483_647;

pub(crate) struct Tables {
    pub(crate) codes: Codes,
    pub(crate) concepts: Concepts,
    pub(crate) params: Params,
    pub(crate) programs: Programs,
    texts: Vec<&'static str>,
}

static TABLES: LazyLock<Tables> = LazyLock::new(load);

pub(crate) fn tables() -> &'static Tables {
    &TABLES
}

impl Tables {
    /// The text that a number stands for.
    pub(crate) fn text_of(&self, number: i64) -> Option<&'static str> {
        let at = usize::try_from(number.checked_sub(TEXT_BASE)?).ok()?;
        self.texts.get(at).copied()
    }
}

/// Gives each text its number.
#[derive(Default)]
pub(crate) struct Texts {
    numbers: HashMap<&'static str, i64>,
    texts: Vec<&'static str>,
}

impl Texts {
    pub(crate) fn number(&mut self, text: &'static str) -> i64 {
        *self.numbers.entry(text).or_insert_with(|| {
            self.texts.push(text);
            TEXT_BASE + self.texts.len() as i64 - 1
        })
    }

    /// A value as the tables write them: a number, or a text.
    pub(crate) fn value(&mut self, text: &'static str) -> i64 {
        text.parse().unwrap_or_else(|_| self.number(text.trim_matches('"')))
    }
}

/// Texts that the reader itself compares with; they get the first numbers.
macro_rules! known_texts {
    ($($name:ident = $text:literal),* $(,)?) => {
        known_texts!(@count 0; $($name = $text),*);
        const KNOWN: &[&str] = &[$($text),*];
    };
    (@count $n:expr; $name:ident = $text:literal $(, $rest:ident = $more:literal)*) => {
        pub(crate) const $name: i64 = TEXT_BASE + $n;
        known_texts!(@count $n + 1; $($rest = $more),*);
    };
    (@count $n:expr;) => {};
}

known_texts! {
    HPA = "hPa", PA = "Pa", SFC = "sfc", O2D = "o2d", SURFACE = "surface", UNKNOWN = "unknown", FROM_START = "fromstart",
    INSTANT = "instant", AVG = "avg", AVGD = "avgd", ACCUM = "accum", MAX = "max", MIN = "min", DIFF = "diff", RMS = "rms",
    SD = "sd", COV = "cov", SDIFF = "sdiff", RATIO = "ratio", STDANOM = "stdanom", SUM = "sum", SEVERITY = "severity",
    MODE = "mode", INDEX = "index", AVGFC = "avgfc", AVGUA = "avgua", AVGIA = "avgia", VARINS = "varins",
    FS = "fs", UNAVAILABLE = "unavailable", MULTIPLE = "multiple steps",
}

fn load() -> Tables {
    let mut texts = Texts::default();
    for text in KNOWN {
        texts.number(text);
    }
    let codes = Codes::read(include_str!("tables/codes.txt"));
    let mut concepts = Concepts::read(include_str!("tables/concepts.txt"), &mut texts);
    let programs = Programs::read(include_str!("tables/chunks.txt"), &codes, &mut concepts, &mut texts);
    let params = Params::read(&mut texts);
    Tables { codes, concepts, params, programs, texts: texts.texts }
}
