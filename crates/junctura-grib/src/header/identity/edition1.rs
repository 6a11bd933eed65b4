//! Additional keys of edition 1, from section 1. A header that MARS describes needs few: its parameters name levels and
//! ranges of time.

use super::{AdditionalKeys, shown};
use crate::header::{HeaderState, is_missing};
use crate::sections::SectionSpan;
use crate::tables::{self, keys};
use crate::value::KeyValue;

const NCEP: i64 = 7;
/// Layers of code table 3: the two octets of a level are top and bottom.
const LAYERS: [i64; 12] = [101, 104, 106, 108, 110, 112, 114, 116, 120, 121, 128, 141];
/// Levels that MARS calls `sfc`, but which are neither the surface, the sea nor soil.
const NO_SURFACE: [i64; 7] = [2, 3, 4, 5, 8, 105, 200];

pub(crate) fn additional(head: &HeaderState<'_>, section: SectionSpan) -> Vec<(&'static str, KeyValue)> {
    let mut keys = AdditionalKeys::new(head);
    keys.levels1();
    if !keys.is_of_mars() {
        keys.process1();
        keys.ranges1();
        keys.member1(section);
    }
    keys.finish()
}

impl AdditionalKeys<'_, '_> {
    fn levels1(&mut self) {
        let head = self.head;
        let number = |key| head.number_in(key).filter(|number| !is_missing(*number));
        let kind = number(keys::INDICATOR_OF_TYPE_OF_LEVEL).unwrap_or(255);
        let (top, bottom) = (number(keys::TOP_LEVEL), number(keys::BOTTOM_LEVEL));
        let is_layer = LAYERS.contains(&kind);
        let mars = self.mars("levtype");
        let word = mars.as_ref().and_then(KeyValue::as_str).unwrap_or("unknown");
        let is_implied = self.is_implied(keys::INDICATOR_OF_TYPE_OF_LEVEL);
        let is_usual = match word {
            "sfc" if self.is_of_mars() => is_implied || !NO_SURFACE.contains(&kind),
            "sfc" => kind == 1 || is_implied,
            "unknown" => false,
            _ => true,
        };
        if !is_usual {
            match head.type_of_level.and_then(|number| head.tables.text_of(number)) {
                Some(name) if name != "unknown" => self.put("levtype", name),
                _ => self.put("levtype", &format!("surface-{kind}")),
            }
        }
        let level = top.filter(|top| is_layer || *top != 0);
        let is_level_implied = is_implied && self.is_implied(keys::LEVEL);
        if let Some(level) = level.filter(|_| !self.has_mars("levelist") && kind != 1)
            && !is_level_implied
            && !(self.is_of_mars() && is_usual)
        {
            self.put("levelist", &level.to_string());
        }
        let is_thin = bottom == top.map(|top| top + 1);
        if let Some(bottom) = bottom.filter(|_| is_layer)
            && !(self.is_of_mars() && (is_thin || !self.has_mars("levelist") && is_usual))
        {
            self.put("bottomLevel", &bottom.to_string());
        }
    }

    fn process1(&mut self) {
        let model = self.head.number_in(keys::GENERATING_PROCESS_IDENTIFIER);
        if let Some(model) = model.filter(|model| !matches!(model, 0 | 255)) {
            self.put("process", &model.to_string());
        }
    }

    /// Entries of code table 5 other than a moment: a range, its length and the process over it.
    fn ranges1(&mut self) {
        let head = self.head;
        let number = |key| head.number_in(key).unwrap_or(0);
        let indicator = number(keys::TIME_RANGE_INDICATOR);
        self.span(head.steps);
        match head.step_type.and_then(|number| head.tables.text_of(number)) {
            Some("instant") => {}
            Some(name) => self.put("stattype", name),
            None => self.put("stattype", &format!("range-{indicator}")),
        }
        match indicator {
            0 | 10 | 3..=5 => {}
            1 | 2 => self.vary("range", indicator),
            _ => {
                let unit = number(keys::INDICATOR_OF_UNIT_OF_TIME_RANGE);
                let (p1, p2) = (number(keys::P1), number(keys::P2));
                let section = head.message.get(8..).unwrap_or_default();
                let count = crate::octets::unsigned(section, 21, 2).unwrap_or(0);
                self.vary("range", format!("{indicator}-{p1}-{p2}-{unit}-{count}"));
            }
        }
        if head.steps.is_none() && head.step_type != Some(tables::INSTANT) {
            self.put("step", "0");
        }
    }

    /// NCEP's extension for ensembles: octet 41 application, 42 type, 43 number, 44 product, 45 smoothing, 46 on probability.
    fn member1(&mut self, section: SectionSpan) {
        let octets = section.of(self.head.message).get(40..).unwrap_or_default();
        let &[1, kind, number, product, smoothing, ref more @ ..] = octets else {
            return;
        };
        if self.head.number_in(keys::CENTRE) != Some(NCEP) {
            return;
        }
        match (kind, number) {
            // The control of low resolution is member 0, as its pair of edition 2.
            (1, 2) => self.put("number", "0"),
            _ => self.put("number", &number.to_string()),
        }
        if !matches!((kind, product, smoothing), (1 | 3, 1, 255 | 0)) || (kind, number) == (1, 1) {
            self.vary("ensemble", shown(&[kind, product, smoothing]));
        }
        if more.first().is_some_and(|octet| *octet != 0) {
            self.vary("probability", shown(more));
        }
    }
}
