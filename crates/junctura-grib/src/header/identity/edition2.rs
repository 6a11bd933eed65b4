//! Additional keys of edition 2, by the parts that the product definition template is composed of.

use super::{AdditionalKeys, decimal, shown};
use crate::header::calc;
use crate::header::{DefinitionPart, HeaderState, StepRange, is_missing};
use crate::octets::{all_ones, signed, unsigned};
use crate::sections::SectionSpan;
use crate::tables::keys;
use crate::tables::program::TableOp;
use crate::value::KeyValue;

/// Parts whose content other keys hold, or which identify nothing.
const HELD: [&str; 12] = [
    "parameter",
    "generating_process",
    "forecast_time",
    "forecast_time_44",
    "point_in_time",
    "horizontal",
    "statistical",
    "wave",
    "wave_spectra_list",
    "mars.wavelength",
    "mars.quantile",
    "eps_cluster",
];

/// The layers that MARS names by their lower surface.
const BY_BOTTOM: [i64; 4] = [114, 151, 152, 168];
const MEMBERS: [&str; 4] = ["an", "fc", "cf", "pf"];

pub(crate) fn additional(head: &HeaderState<'_>, section: SectionSpan) -> Vec<(&'static str, KeyValue)> {
    let mut keys = AdditionalKeys::new(head);
    keys.parameter();
    keys.process();
    keys.levels();
    keys.parts(section);
    keys.finish()
}

/// A surface: its type and its exact value.
#[derive(Clone, Copy)]
struct FixedSurface {
    kind: i64,
    value: Option<(i64, i64)>,
}

impl FixedSurface {
    fn of(head: &HeaderState<'_>, [kind, scale, value]: [u16; 3]) -> FixedSurface {
        let number = |key| head.number_in(key).filter(|number| !is_missing(*number));
        // Regulation 92.1.5: the highest bit is the sign.
        let sign = |value: i64| {
            if value & 0x8000_0000 == 0 {
                value
            } else {
                -(value & 0x7fff_ffff)
            }
        };
        FixedSurface {
            kind: head.number_in(kind).unwrap_or(255),
            value: number(value).map(|value| (sign(value), number(scale).unwrap_or(0))),
        }
    }

    /// As MARS counts: hPa, 1e-9 of a unit of potential vorticity (1e-6 in TIGGE).
    fn text(self, head: &HeaderState<'_>) -> Option<String> {
        let tigge = matches!(head.number_in(keys::PRODUCTION_STATUS_OF_PROCESSED_DATA), Some(4 | 5));
        let (value, factor) = self.value?;
        let shift = match self.kind {
            100 => -2,
            109 if tigge => 6,
            109 => 9,
            _ => 0,
        };
        decimal(value, factor, shift).or_else(|| Some(format!("{value}e{}", shift - factor)))
    }
}

impl AdditionalKeys<'_, '_> {
    /// A parameter without a name is called by its three numbers; of two of one name the later has its identifier beside.
    fn parameter(&mut self) {
        let number = |key| self.head.number_in(key).unwrap_or(255);
        let Some(param) = self.head.param else {
            let numbers = [keys::DISCIPLINE, keys::PARAMETER_CATEGORY, keys::PARAMETER_NUMBER].map(number);
            let [discipline, category, parameter] = numbers;
            self.put("param", &format!("{discipline}.{category}.{parameter}"));
            return;
        };
        let usable = !matches!(param.short_name, "unknown" | "~");
        if usable
            && !self.is_of_mars()
            && matches!(param.id, 228_000..229_000)
            && self.head.tables.params.is_namesake(&param)
        {
            self.vary("param", param.id);
        } else if !self.has_mars("param") {
            let id = param.id.to_string();
            self.put("param", if usable { param.short_name } else { &id });
        }
    }

    fn process(&mut self) {
        let number = |key| self.head.number_in(key).filter(|number| *number != 255);
        if self.is_of_mars() {
            return;
        }
        let kind = number(keys::TYPE_OF_GENERATING_PROCESS);
        let model = number(keys::GENERATING_PROCESS_IDENTIFIER);
        if kind.is_some() || model.is_some() {
            let text = |number: Option<i64>| number.map_or(String::new(), |number| number.to_string());
            self.put("process", &format!("{}-{}", text(kind), text(model)));
        }
    }

    fn levels(&mut self) {
        let head = self.head;
        let is_horizontal = head.number_in(keys::TYPE_OF_FIRST_FIXED_SURFACE).is_some();
        if !is_horizontal || head.key_number(keys::EXTRA_DIMENSION_PRESENT, 0) == Some(1) {
            return;
        }
        let first = FixedSurface::of(
            head,
            [
                keys::TYPE_OF_FIRST_FIXED_SURFACE,
                keys::SCALE_FACTOR_OF_FIRST_FIXED_SURFACE,
                keys::SCALED_VALUE_OF_FIRST_FIXED_SURFACE,
            ],
        );
        let second = FixedSurface::of(
            head,
            [
                keys::TYPE_OF_SECOND_FIXED_SURFACE,
                keys::SCALE_FACTOR_OF_SECOND_FIXED_SURFACE,
                keys::SCALED_VALUE_OF_SECOND_FIXED_SURFACE,
            ],
        );
        let is_named = self.level_type(first.kind, second.kind);
        if first.kind == second.kind && BY_BOTTOM.contains(&first.kind) {
            return self.by_bottom(first, second);
        }
        self.first_surface(first, second, is_named);
        if second.kind != 255 && !self.is_implied(keys::SCALED_VALUE_OF_SECOND_FIXED_SURFACE) {
            let (top, bottom) = (first.text(head), second.text(head));
            if let Some(bottom) = bottom.filter(|bottom| second.kind != first.kind || top.as_ref() != Some(bottom)) {
                self.level("bottomLevel", &bottom);
            }
        }
    }

    /// The type of level where MARS has one word for several; whether another word was needed.
    fn level_type(&mut self, first: i64, second: i64) -> bool {
        let mars = self.mars("levtype");
        let word = mars.as_ref().and_then(KeyValue::as_str).unwrap_or("unknown");
        let is_usual = match word {
            "sfc" => (first, second) == (1, 255) || self.implies_surfaces(second),
            "pl" => first == 100 && matches!(second, 100 | 255),
            "ml" => matches!(first, 105 | 118) && (second == 255 || second == first),
            "pt" => first == 107 && matches!(second, 107 | 255),
            "pv" => first == 109 && matches!(second, 109 | 255),
            "sol" => self.is_of_mars() || matches!((first, second), (106, 106 | 255) | (151, 151)),
            "unknown" => false,
            _ => true,
        };
        if is_usual {
            return false;
        }
        match self
            .head
            .type_of_level
            .and_then(|number| self.head.tables.text_of(number))
        {
            Some(name) if name != "unknown" => self.put("levtype", name),
            _ if second == 255 => self.put("levtype", &format!("surface-{first}")),
            _ => self.put("levtype", &format!("surface-{first}-{second}")),
        }
        true
    }

    fn implies_surfaces(&self, second: i64) -> bool {
        self.is_implied(keys::TYPE_OF_FIRST_FIXED_SURFACE)
            && (second == 255 || self.is_implied(keys::TYPE_OF_SECOND_FIXED_SURFACE))
    }

    fn first_surface(&mut self, first: FixedSurface, second: FixedSurface, is_named: bool) {
        let Some(exact) = first.text(self.head) else { return };
        let implied = self.is_implied(keys::SCALED_VALUE_OF_FIRST_FIXED_SURFACE);
        match self.mars("levelist") {
            Some(level) if level.to_string() == exact => {}
            Some(_) => self.level("levelist", &exact),
            None if implied && !is_named => {}
            None if first.kind == 1 => {}
            None if exact != "0" || second.kind != 255 && second.value.is_some() => self.level("levelist", &exact),
            None => {}
        }
    }

    /// Layers that MARS numbers have the number of their lower surface; thicker or finer ones need both.
    fn by_bottom(&mut self, first: FixedSurface, second: FixedSurface) {
        let head = self.head;
        let Some(bottom) = second.text(head) else { return };
        if self.mars("levelist").map(|level| level.to_string()).as_ref() != Some(&bottom) {
            self.level("levelist", &bottom);
        }
        let (top, number) = (first.text(head), bottom.parse::<i64>().ok());
        let is_usual = number.is_some_and(|number| top == Some((number - 1).to_string()));
        if let Some(top) = top.filter(|_| !is_usual) {
            self.vary("top", top);
        }
    }

    /// A level as a decimal; its digits identify one that exceeds decimals.
    fn level(&mut self, name: &'static str, text: &str) {
        if text.contains('e') {
            self.vary(name, text);
        } else {
            self.put(name, text);
        }
    }

    fn parts(&mut self, section: SectionSpan) {
        let head = self.head;
        let mut at = section.start + 9;
        for part in head.parts.clone() {
            self.rest(at, part.start);
            self.part(part);
            at = at.max(part.end);
        }
        if head.parts.is_empty() {
            self.unknown_template(section);
        } else {
            self.rest(at, head.cursor.min(section.end));
        }
        self.statistics();
    }

    /// Octets of a template between its parts.
    fn rest(&mut self, start: usize, end: usize) {
        let octets = self.head.message.get(start..end).unwrap_or_default();
        if !octets.is_empty() && !self.has_mars("ident") {
            self.vary("rest", shown(octets));
        }
    }

    fn unknown_template(&mut self, section: SectionSpan) {
        let number = self
            .head
            .number_in(keys::PRODUCT_DEFINITION_TEMPLATE_NUMBER)
            .unwrap_or(0xffff);
        let octets = section.of(self.head.message).get(9..).unwrap_or_default();
        self.vary("template", format!("{number}-{}", shown(octets)));
    }

    fn part(&mut self, part: DefinitionPart) {
        let head = self.head;
        let name = head.tables.programs.name(part.program);
        let octets = head.message.get(part.start..part.end).unwrap_or_default();
        if octets.is_empty() {
            return;
        }
        match name {
            _ if HELD.contains(&name) => {}
            "eps" | "leps" => self.member(octets),
            "derived" | "lderived" => self.derived(octets),
            "percentile" => {
                if !self.has_mars("quantile") {
                    self.put("quantile", &format!("{}:100", octets.first().copied().unwrap_or(255)));
                }
            }
            "quantile" => {
                if let (false, Some(total), Some(number)) = (
                    self.has_mars("quantile"),
                    unsigned(octets, 0, 2),
                    unsigned(octets, 2, 2),
                ) {
                    self.put("quantile", &format!("{number}:{total}"));
                }
            }
            "probability" | "probability_large_ensemble" if self.implies_any_of(part) => {}
            "probability" => self.probability(octets.get(2..).unwrap_or_default()),
            "probability_large_ensemble" => self.probability(octets.get(7..).unwrap_or_default()),
            "rectangular_cluster" | "circular_cluster" => {
                if !self.has_mars("number") {
                    self.vary("cluster", octets.first().copied().unwrap_or(255));
                }
            }
            "satellite" | "satellite_30" | "satellite_extended" if self.has_mars("ident") => {}
            "chemical" if self.has_mars("chem") => {}
            "optical" if self.has_mars("wavelength") => {}
            "generalised_tile" | "tile" if self.has_mars("tile") => {}
            _ if self.is_of_mars() && self.implies_any_of(part) => {}
            "aerosol" | "aerosol_size" if self.is_of_mars() && octets.iter().all(|octet| matches!(octet, 0 | 255)) => {}
            "postproc" | "localtime" | "localtime_statistical" | "reforecast" if self.is_of_mars() => {}
            _ if self.is_implied_part(part) => {}
            _ => self.vary(name, shown(octets)),
        }
    }

    /// Whether the parameter implies all that a part has, but for what is missing.
    fn is_implied_part(&self, part: DefinitionPart) -> bool {
        let head = self.head;
        let mut at = part.start;
        for op in head.tables.programs.at(part.program) {
            match op {
                TableOp::Read { key, length, .. } => {
                    let length = usize::from(*length);
                    let raw = unsigned(head.message, at, length).unwrap_or(0);
                    if raw != all_ones(length) && !self.is_implied(*key) {
                        return false;
                    }
                    at += length;
                }
                TableOp::Define(..) | TableOp::Mars(..) | TableOp::MoveMars(..) | TableOp::If(..) => {}
                _ => return false,
            }
        }
        let rest = head.message.get(at..part.end).unwrap_or_default();
        rest.iter().all(|octet| *octet == 255)
    }

    fn implies_any_of(&self, part: DefinitionPart) -> bool {
        let program = self.head.tables.programs.at(part.program);
        program.iter().any(|op| match op {
            TableOp::Read { key, .. } | TableOp::Define(key, _) => self.is_implied(*key),
            _ => false,
        })
    }

    /// Whether the parameter implies a key, or its first element where it is a list.
    fn implies_list(&self, key: u16) -> bool {
        let elements = keys::LISTS.iter().find(|(list, ..)| *list == key);
        let elements = elements.map_or(&[][..], |(.., elements)| elements);
        self.is_implied(key) || elements.iter().any(|element| self.is_implied(*element))
    }

    /// Member: type of ensemble forecast, its number.
    fn member(&mut self, octets: &[u8]) {
        let kind = octets.first().copied().unwrap_or(255);
        let number = self.head.number_in(keys::PERTURBATION_NUMBER).unwrap_or(0);
        if self.has_mars("number") {
            return;
        }
        if !self.is_of_mars() {
            self.put("number", &number.to_string());
            // A control is member 0, and positively perturbed ones are counted from 1.
            if !matches!((kind, number), (1, 0) | (3, 1..)) {
                self.vary("ensemble", kind);
            }
        } else if number != 0 && u64::try_from(number) != Ok(all_ones(1)) {
            self.put("number", &number.to_string());
        }
    }

    /// Whether MARS has no type for a product of an ensemble.
    fn is_of_one_member(&self) -> bool {
        let kind = self.mars("type");
        let kind = kind.as_ref().and_then(KeyValue::as_str);
        !self.is_of_mars() || kind.is_some_and(|kind| MEMBERS.contains(&kind))
    }

    fn derived(&mut self, octets: &[u8]) {
        if self.is_of_one_member() {
            self.vary("derived", octets.first().copied().unwrap_or(255));
        }
    }

    /// `TYPE:LOWER:UPPER` with the type of code table 4.9, a limit that is missing left empty.
    fn probability(&mut self, octets: &[u8]) {
        let kind = octets.first().copied().unwrap_or(255);
        let limit = |at: usize| {
            let missing = unsigned(octets, at + 1, 4).is_none_or(|raw| raw == all_ones(4));
            let (factor, value) = (
                signed(octets, at, 1).unwrap_or(0),
                signed(octets, at + 1, 4).unwrap_or(0),
            );
            let factor = if octets.get(at) == Some(&255) { 0 } else { factor };
            if missing {
                String::new()
            } else {
                decimal(value, factor, 0).unwrap_or_else(|| format!("{value}e{}", -factor))
            }
        };
        let text = format!("{kind}:{}:{}", limit(1), limit(6));
        self.put("probability", &text);
    }

    fn statistics(&mut self) {
        let head = self.head;
        let Some(ranges) = head.number_in(keys::NUMBER_OF_TIME_RANGES) else {
            return;
        };
        let first = head.ranges[0];
        if ranges != 1 {
            if !self.is_of_mars() || !matches!(ranges, 1 | 2) {
                self.many_ranges(ranges);
            }
            return;
        }
        let length_implied = self.implies_list(keys::LENGTH_OF_TIME_RANGE);
        let process_implied = self.implies_list(keys::TYPE_OF_STATISTICAL_PROCESSING);
        let mars_step = self.mars("step");
        let is_range = mars_step
            .as_ref()
            .and_then(KeyValue::as_str)
            .is_some_and(|step| step.contains('-'));
        let moves = first.increment == 1;
        let steps = self.range();
        let from_start = steps.is_some_and(|steps| steps.start == 0);
        let wanted = !self.is_of_mars() || !(from_start || length_implied || is_range || moves);
        if wanted && !self.has_mars("timespan") {
            self.span(steps);
        }
        let wanted = !self.is_of_mars() || !(is_range || moves);
        if wanted && !process_implied && !self.has_mars("stattype") {
            match head.step_type.and_then(|number| head.tables.text_of(number)) {
                Some(name) => self.put("stattype", name),
                None => self.put("stattype", &format!("process-{}", first.process)),
            }
        }
        if !self.is_of_mars() && first.increment != 2 {
            self.vary("increment", first.increment);
        }
    }

    /// Start and end of the only range.
    fn range(&self) -> Option<StepRange> {
        let head = self.head;
        let unit = calc::unit_seconds2(head.key_number(keys::INDICATOR_OF_UNIT_OF_TIME_RANGE, 0)?)?;
        let start = head.key_number(keys::FORECAST_TIME, 0)?.checked_mul(unit)?;
        let range = head.ranges[0];
        let length = range.length.checked_mul(calc::unit_seconds2(range.unit)?)?;
        Some(calc::steps(start, start.checked_add(length)?))
    }

    /// Several ranges, by all their octets.
    fn many_ranges(&mut self, ranges: i64) {
        let head = self.head;
        let programs = &head.tables.programs;
        let part = head
            .parts
            .iter()
            .find(|part| programs.name(part.program) == "statistical");
        let Some(octets) = part.and_then(|part| head.message.get(part.start + 12..part.end)) else {
            return;
        };
        self.vary("ranges", format!("{ranges}-{}", shown(octets)));
        if head.steps.is_none()
            && let Some(steps) = self.range()
        {
            let unit = if steps.unit == 'h' {
                String::new()
            } else {
                steps.unit.to_string()
            };
            self.put("step", &format!("{}{unit}", steps.start));
        }
    }
}
