//! The tables, read once on first use.
//!
//! They are texts inside the library (see `docs/formats/grib.md`): code tables, concepts (rows of conditions that find a
//! name), parameters, and programs that read templates and define the keys of a header. Reading them takes a few
//! milliseconds. They are made by a tool and tested, so that a line which cannot be read is skipped.

pub(crate) mod codes;
pub(crate) mod concepts;
#[rustfmt::skip]
#[allow(dead_code)]
pub(crate) mod keys;
pub(crate) mod params;
pub(crate) mod program;

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::LazyLock;

use codes::CodeTables;
use concepts::{ConceptId, ConceptTables};
use params::ParamTable;
use program::TablePrograms;

/// Numbers from here on denote texts, so that everything compares as a number.
pub(crate) const TEXT_BASE: i64 = 1 << 48;

/// ecCodes' value for a field that may be all ones and is.
pub(crate) const MISSING: i64 = 2_147_483_647;

pub(crate) struct GribTables {
    pub(crate) codes: CodeTables,
    pub(crate) concepts: ConceptTables,
    pub(crate) params: ParamTable,
    pub(crate) programs: TablePrograms,
    /// Concepts and code tables that the reader itself asks for.
    pub(crate) known: KnownTables,
    texts: Vec<&'static str>,
}

pub(crate) struct KnownTables {
    pub(crate) step_type1: ConceptId,
    pub(crate) type_of_level1: ConceptId,
    pub(crate) dataset: ConceptId,
    pub(crate) switch_by_tables: ConceptId,
    pub(crate) switch: ConceptId,
    pub(crate) type_of_level: ConceptId,
    /// Before the change of 2025, after it, with constituents apart.
    pub(crate) levtype: [ConceptId; 3],
    pub(crate) time_span: ConceptId,
    pub(crate) stat_type: ConceptId,
    pub(crate) chem: ConceptId,
    /// Centres of edition 1 and 2.
    pub(crate) centres: [u16; 2],
    pub(crate) streams: u16,
    pub(crate) levtype1: u16,
    pub(crate) levtype1_ecmf: u16,
    pub(crate) levtype1_rjtd: u16,
}

impl KnownTables {
    fn find(codes: &CodeTables, concepts: &mut ConceptTables) -> KnownTables {
        let mut id = |name| concepts.id(name);
        let table = |name| codes.table(name).unwrap_or(u16::MAX);
        KnownTables {
            step_type1: id("1.stepType"),
            type_of_level1: id("1.typeOfLevel"),
            dataset: id("datasetForLocal"),
            switch_by_tables: id("MTG2SwitchViaTablesVersionConcept"),
            switch: id("MTG2SwitchConcept"),
            type_of_level: id("typeOfLevelConcept"),
            levtype: [
                id("marsLevtypeConcept.lte33"),
                id("marsLevtypeConcept"),
                id("marsLevtypeConcept.chemsplit"),
            ],
            time_span: id("timespanConcept"),
            stat_type: id("stattypeConcept"),
            chem: id("chemId"),
            centres: [table("c1"), table("c11")],
            streams: table("stream"),
            levtype1: table("levtype1"),
            levtype1_ecmf: table("levtype1.ecmf"),
            levtype1_rjtd: table("levtype1.rjtd"),
        }
    }
}

/// Maps whose keys are from the tables only, so that a quick hash is safe.
pub(crate) type Map<K, V> = HashMap<K, V, BuildHasherDefault<QuickLookup>>;

#[derive(Default)]
pub(crate) struct QuickLookup(u64);

impl Hasher for QuickLookup {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    }

    fn write_u32(&mut self, word: u32) {
        self.write_u64(u64::from(word));
    }

    fn write_i64(&mut self, word: i64) {
        self.write_u64(word as u64);
    }

    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 29
    }
}

static TABLES: LazyLock<GribTables> = LazyLock::new(load);

pub(crate) fn tables() -> &'static GribTables {
    &TABLES
}

impl GribTables {
    /// Returns the text of a number.
    pub(crate) fn text_of(&self, number: i64) -> Option<&'static str> {
        let at = usize::try_from(number.checked_sub(TEXT_BASE)?).ok()?;
        self.texts.get(at).copied()
    }
}

/// Gives each text its number.
#[derive(Default)]
pub(crate) struct TextNumbers {
    numbers: HashMap<&'static str, i64>,
    texts: Vec<&'static str>,
}

impl TextNumbers {
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

fn load() -> GribTables {
    let mut texts = TextNumbers::default();
    for text in KNOWN {
        texts.number(text);
    }
    let codes = CodeTables::read(include_str!("tables/codes.txt"));
    let mut concepts = ConceptTables::read(include_str!("tables/concepts.txt"), &mut texts);
    let programs = TablePrograms::read(include_str!("tables/chunks.txt"), &codes, &mut concepts, &mut texts);
    let params = ParamTable::read(&mut texts);
    let known = KnownTables::find(&codes, &mut concepts);
    GribTables {
        codes,
        concepts,
        params,
        programs,
        known,
        texts: texts.texts,
    }
}
