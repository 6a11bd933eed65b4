//! The state while a header is read: key numbers, definitions, mars keys so far.

pub(crate) mod calc;
pub(crate) mod edition1;
pub(crate) mod edition2;
pub(crate) mod eval;
pub(crate) mod grid;
pub(crate) mod identity;
pub(crate) mod run;

use crate::tables::concepts::ConceptId;
use crate::tables::params::FoundParam;
use crate::tables::program::{TableExpr, TableFunction};
use crate::tables::{GribTables, MISSING, TEXT_BASE, keys};

/// Slots below this hold no number.
const NOTHING: i64 = i64::MIN;
/// Slots from here up to half way to zero hold the place of a definition.
const DEFINED: i64 = i64::MIN + 1;
const DEFINED_MAX: i64 = 1 << 16;
/// Slots from here on hold characters of the message: where (times 256) and how many.
const CHARACTERS: i64 = 1 << 56;

/// The content of a slot.
#[derive(Clone, Copy)]
pub(crate) enum KeySlot {
    Nothing,
    Number(i64),
    Defined(&'static TableExpr),
    Characters { at: usize, length: usize },
}

/// A step or a range of steps in hours (`h`), minutes (`m`) or seconds (`s`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StepRange {
    pub(crate) start: i64,
    pub(crate) end: i64,
    pub(crate) unit: char,
}

/// One of the time ranges that a statistic is made over.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TimeRange {
    pub(crate) process: i64,
    pub(crate) increment: i64,
    pub(crate) unit: i64,
    pub(crate) length: i64,
}

/// A part of a product definition template: its program, and its octets in the message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DefinitionPart {
    pub(crate) program: u16,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

pub(crate) struct HeaderState<'m> {
    pub(crate) tables: &'static GribTables,
    pub(crate) message: &'m [u8],
    pub(crate) edition: u8,
    slots: [i64; keys::COUNT],
    definitions: Vec<&'static TableExpr>,
    pub(crate) mars: Vec<(&'static str, &'static TableExpr)>,
    /// Where the next field is read, and where the section ends.
    pub(crate) cursor: usize,
    pub(crate) end: usize,
    pub(crate) ranges: [TimeRange; 2],
    /// The parts that the product definition template is composed of, in order.
    pub(crate) parts: Vec<DefinitionPart>,
    /// Whether the product definition template is being read.
    pub(crate) in_product: bool,
    /// Filled by the edition's reader as soon as they are known.
    pub(crate) steps: Option<StepRange>,
    pub(crate) level: i64,
    pub(crate) places: [&'static str; 2],
    pub(crate) dataset: i64,
    pub(crate) mtg2_switch: i64,
    /// Whether dataset and switch are known; they depend on fields of section 4.
    pub(crate) settled: bool,
    pub(crate) param: Option<FoundParam>,
    pub(crate) levtype: Option<i64>,
    pub(crate) type_of_level: Option<i64>,
    pub(crate) step_type: Option<i64>,
}

impl<'m> HeaderState<'m> {
    pub(crate) fn new(message: &'m [u8], edition: u8, tables: &'static GribTables) -> HeaderState<'m> {
        let mut head = HeaderState {
            tables,
            message,
            edition,
            slots: [NOTHING; keys::COUNT],
            definitions: Vec::with_capacity(16),
            mars: Vec::with_capacity(20),
            cursor: 0,
            end: 0,
            ranges: [TimeRange::default(); 2],
            parts: Vec::new(),
            in_product: false,
            steps: None,
            level: 0,
            places: ["", "master"],
            dataset: 0,
            mtg2_switch: 0,
            settled: false,
            param: None,
            levtype: None,
            type_of_level: None,
            step_type: None,
        };
        head.set(keys::EDITION, i64::from(edition));
        head.set(keys::DUMMY, 1);
        head.set(keys::TRUE, 1);
        head
    }

    pub(crate) fn slot(&self, key: u16) -> KeySlot {
        match self.slots.get(usize::from(key)).copied().unwrap_or(NOTHING) {
            NOTHING => KeySlot::Nothing,
            place if place < DEFINED + DEFINED_MAX => {
                let definition = usize::try_from(place - DEFINED)
                    .ok()
                    .and_then(|at| self.definitions.get(at));
                definition.map_or(KeySlot::Nothing, |definition| KeySlot::Defined(definition))
            }
            place if place >= CHARACTERS => {
                let place = (place - CHARACTERS) as usize;
                KeySlot::Characters {
                    at: place >> 8,
                    length: place & 0xff,
                }
            }
            number => KeySlot::Number(number),
        }
    }

    /// A key that was read as a number.
    pub(crate) fn number_in(&self, key: u16) -> Option<i64> {
        match self.slot(key) {
            KeySlot::Number(number) => Some(number),
            _ => None,
        }
    }

    pub(crate) fn set(&mut self, key: u16, number: i64) {
        if let Some(slot) = self.slots.get_mut(usize::from(key)) {
            *slot = number.clamp(-(1 << 55), CHARACTERS - 1);
        }
    }

    pub(crate) fn set_characters(&mut self, key: u16, at: usize, length: u8) {
        let place = i64::try_from(at)
            .ok()
            .filter(|at| *at < 1 << 40)
            .map(|at| CHARACTERS + (at << 8 | i64::from(length)));
        if let (Some(slot), Some(place)) = (self.slots.get_mut(usize::from(key)), place) {
            *slot = place;
        }
    }

    pub(crate) fn define(&mut self, key: u16, expr: &'static TableExpr) {
        let at = self.definitions.len() as i64;
        // A key that is defined as itself keeps what it had.
        if at >= DEFINED_MAX || matches!(expr, TableExpr::Key(same) if *same == key) {
            return;
        }
        self.definitions.push(expr);
        if let Some(slot) = self.slots.get_mut(usize::from(key)) {
            *slot = DEFINED + at;
        }
    }

    pub(crate) fn put_mars(&mut self, name: &'static str, expr: &'static TableExpr) {
        match self.mars.iter_mut().find(|(n, _)| *n == name) {
            Some(entry) => entry.1 = expr,
            None => self.mars.push((name, expr)),
        }
    }

    pub(crate) fn drop_mars(&mut self, name: &str) {
        self.mars.retain(|(n, _)| *n != name);
    }

    /// The short name of the centre, which is also the name of its set of rows.
    pub(crate) fn centre_name(&self) -> &'static str {
        let table = self.tables.known.centres[usize::from(self.edition == 2)];
        let code = self.number_in(keys::CENTRE);
        code.and_then(|code| self.tables.codes.name(table, code)).unwrap_or("")
    }

    /// A concept in the sets that apply to this header.
    pub(crate) fn concept(&self, id: ConceptId, depth: u8) -> Option<i64> {
        self.tables
            .concepts
            .evaluate(id, self.places, |key| self.key_number(key, depth))
    }

    /// A concept in the sets of the centre and of the project.
    pub(crate) fn concept_of_centre(&self, id: ConceptId, depth: u8) -> Option<i64> {
        let places = [self.centre_name(), self.places[1]];
        self.tables
            .concepts
            .evaluate(id, places, |key| self.key_number(key, depth))
    }
}

/// Whether a number denotes a text.
pub(crate) fn is_text(number: i64) -> bool {
    number >= TEXT_BASE
}

pub(crate) fn is_missing(number: i64) -> bool {
    number == MISSING
}

/// A value computed from the header without arguments.
pub(crate) const fn computed(function: TableFunction) -> TableExpr {
    TableExpr::Call(function, Vec::new())
}
