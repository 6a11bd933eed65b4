//! The header of edition 2: sections 0, 1 and 3 by octets, local and product sections by program.

use crate::error::MessageFault;
use crate::header::calc;
use crate::header::grid;
use crate::header::{HeaderState, StepRange, computed, is_missing};
use crate::keys::MessageKeys;
use crate::octets;
use crate::sections::{SectionSpan, SectionTable};
use crate::tables::params::{self, FoundParam};
use crate::tables::program::{TableExpr, TableFunction};
use crate::tables::{self, HPA, O2D, PA, SFC, SURFACE, UNKNOWN, keys};

static DATE: TableExpr = computed(TableFunction::DataDate);
static TIME: TableExpr = computed(TableFunction::DataTime);
static START_STEP: TableExpr = computed(TableFunction::StartStep);
static END_STEP: TableExpr = computed(TableFunction::EndStep);
static LEVEL: TableExpr = computed(TableFunction::Level);
static LEVEL_IN_HPA: TableExpr = computed(TableFunction::LevelInHpa);
static LEVTYPE: TableExpr = computed(TableFunction::Levtype);
static STAT_TYPE: TableExpr = computed(TableFunction::StatType);
static TIME_SPAN: TableExpr = computed(TableFunction::TimeSpan);
static FROM_START: TableExpr = TableExpr::Fixed(tables::FS);
static UNAVAILABLE: TableExpr = TableExpr::Fixed(tables::UNAVAILABLE);
static DIMENSION: TableExpr = TableExpr::Key(keys::DIMENSION);
static DIMENSION_TYPE: TableExpr = TableExpr::Key(keys::DIMENSION_TYPE);
static CHEM: TableExpr = TableExpr::Key(keys::CHEM_ID);

const ECMWF: i64 = 98;
/// Tables up to this version are read as before the change of 2025.
const TABLES_OLD_MAX: i64 = 33;
/// In the order of `codes::FLAGS`.
const FLAGS: [u16; 5] = [
    keys::IS_CHEMICAL,
    keys::IS_CHEMICAL_DISTFN,
    keys::IS_CHEMICAL_SRCSINK,
    keys::IS_AEROSOL,
    keys::IS_AEROSOL_OPTICAL,
];

pub(crate) fn keys(message: &[u8], sections: &SectionTable) -> Result<MessageKeys, (usize, MessageFault)> {
    for (section, least) in [(1, 21), (4, 9)] {
        let span = sections.by_number[section];
        if span.end < span.start + least {
            let length = (span.end - span.start) as u64;
            return Err((
                span.start,
                MessageFault::Section {
                    section: section as u8,
                    length,
                },
            ));
        }
    }
    let mut head = HeaderState::new(message, 2, tables::tables());
    section0_and_1(&mut head, sections.by_number[1]);
    head.put_mars("date", &DATE);
    head.put_mars("time", &TIME);
    local(&mut head, sections.by_number[2]);
    let grid = grid::edition2(message, sections);
    grid.tell(&mut head);
    product(&mut head, sections.by_number[4]);
    Ok(grid::keys(&head, &grid, sections))
}

fn section0_and_1(head: &mut HeaderState<'_>, span: SectionSpan) {
    const FIELDS: [(u16, usize, usize); 12] = [
        (keys::CENTRE, 5, 2),
        (keys::SUB_CENTRE, 7, 2),
        (keys::TABLES_VERSION, 9, 1),
        (keys::LOCAL_TABLES_VERSION, 10, 1),
        (keys::YEAR, 12, 2),
        (keys::MONTH, 14, 1),
        (keys::DAY, 15, 1),
        (keys::HOUR, 16, 1),
        (keys::MINUTE, 17, 1),
        (keys::SECOND, 18, 1),
        (keys::PRODUCTION_STATUS_OF_PROCESSED_DATA, 19, 1),
        (keys::TYPE_OF_PROCESSED_DATA, 20, 1),
    ];
    let message = head.message;
    for (key, at, length) in FIELDS {
        if let Some(number) = octets::unsigned(span.of(message), at, length) {
            head.set(key, number as i64);
        }
    }
    head.set(keys::DISCIPLINE, i64::from(message.get(6).copied().unwrap_or(255)));
    head.set(keys::IS_HINDCAST, 0);
    head.set(keys::SECTION2_USED, 0);
    head.set(keys::LOCAL_USE_PRESENT, 0);
    head.set(keys::GRIB2_LOCAL_SECTION_PRESENT, 0);
}

/// Section 2: first what projects put there, by the production status, then ECMWF's local section.
fn local(head: &mut HeaderState<'_>, span: SectionSpan) {
    if span.end <= span.start + 5 {
        return;
    }
    head.set(keys::SECTION2_USED, 1);
    head.set(keys::LOCAL_USE_PRESENT, 1);
    head.enter(span.start + 5, span.end);
    let family = match head.number_in(keys::PRODUCTION_STATUS_OF_PROCESSED_DATA) {
        Some(4 | 5) => Some("tigge"),
        Some(8 | 9) => Some("uerra"),
        Some(10 | 11) => Some("crra"),
        Some(12 | 13) => Some("destine"),
        Some(14 | 15) => Some("lcgcr"),
        Some(16 | 17) => Some("wpmip"),
        _ => None,
    };
    if let Some(family) = family {
        numbered(head, family);
    }
    let number = octets::unsigned(head.message, head.cursor, 2).filter(|number| *number != 0 && head.cursor < head.end);
    let Some(number) = number else { return };
    head.set(keys::GRIB2_LOCAL_SECTION_NUMBER, number as i64);
    head.set(keys::LOCAL_DEFINITION_NUMBER, number as i64);
    let ecmwf = [keys::CENTRE, keys::SUB_CENTRE]
        .iter()
        .any(|&key| head.number_in(key) == Some(ECMWF));
    if !ecmwf {
        return;
    }
    head.cursor += 2;
    if let Some(labels) = head.tables.programs.labelled("label/2") {
        head.run(labels);
    }
    if let Some(program) = head.tables.programs.numbered("2", number as i64) {
        head.run(program);
    }
    // A second local section may follow.
    numbered(head, "2");
}

/// Reads two octets that name a program and runs it on what follows.
fn numbered(head: &mut HeaderState<'_>, family: &'static str) {
    if head.cursor + 2 > head.end {
        return;
    }
    let number = octets::unsigned(head.message, head.cursor, 2).unwrap_or(0);
    head.cursor += 2;
    if let Some(program) = head.tables.programs.numbered(family, number as i64) {
        head.run(program);
    }
}

fn product(head: &mut HeaderState<'_>, span: SectionSpan) {
    let number = octets::unsigned(span.of(head.message), 7, 2).unwrap_or(0xffff) as i64;
    head.set(keys::PRODUCT_DEFINITION_TEMPLATE_NUMBER, number);
    head.set(keys::SECTION4_LENGTH, (span.end - span.start) as i64);
    head.set(
        keys::NV,
        octets::unsigned(span.of(head.message), 5, 2).unwrap_or(0) as i64,
    );
    let flags = head.tables.codes.product_flags(number);
    for (at, key) in FLAGS.into_iter().enumerate() {
        head.set(key, i64::from(flags >> at & 1));
    }
    let centre = head.number_in(keys::CENTRE);
    let local = number >= 0x8000 && (centre == Some(ECMWF) || head.number_in(keys::SUB_CENTRE) == Some(ECMWF));
    head.step_type = Some(tables::INSTANT);
    head.enter(span.start + 9, span.end);
    if let Some(program) = head.tables.programs.numbered(if local { "4e" } else { "4" }, number) {
        head.in_product = true;
        head.run(program);
        head.in_product = false;
    }
    settle(head);
    let (stream, kind) = (
        head.key_number(keys::MARS_STREAM, 0),
        head.key_number(keys::MARS_TYPE, 0),
    );
    if let Some(program) = stream
        .zip(kind)
        .and_then(|(stream, kind)| head.tables.programs.of_stream(stream, kind))
    {
        head.run(program);
    }
    head.param = param(head);
    chemical(head);
    let status = head.number_in(keys::PRODUCTION_STATUS_OF_PROCESSED_DATA).unwrap_or(255);
    if let Some(program) = head.tables.programs.numbered("p", status) {
        head.run(program);
    }
    extras(head);
    time_span(head);
    if let Some(program) = head.tables.programs.numbered("h", status) {
        head.run(program);
    }
}

/// Which rows apply: those of a project, else those of the centre; and whether names are those from before 2025.
fn settle(head: &mut HeaderState<'_>) {
    if head.settled {
        return;
    }
    head.settled = true;
    head.dataset = head.concept(head.tables.known.dataset, 0).unwrap_or(UNKNOWN);
    head.places = match head.tables.text_of(head.dataset) {
        Some("unknown") | None => [head.centre_name(), "master"],
        Some(dataset) => ["master", dataset],
    };
    let by_tables = head
        .concept(head.tables.known.switch_by_tables, 0)
        .is_some_and(|switch| switch != 0);
    let old = head
        .number_in(keys::TABLES_VERSION)
        .is_some_and(|version| version <= TABLES_OLD_MAX);
    // Classes mc (19) and cr (36) name chemical constituents apart from the parameter.
    let apart = matches!(head.key_number(keys::MARS_CLASS, 0), Some(19 | 36));
    let usual = match (by_tables, old, apart) {
        (true, true, _) => 0,
        (true, false, true) => 2,
        _ => 1,
    };
    head.mtg2_switch = head.concept(head.tables.known.switch, 0).unwrap_or(usual);
    head.set(keys::MTG2_SWITCH, head.mtg2_switch);
}

/// The number of a level: the value scaled, Pa as whole hPa unless there is less than one.
fn level(head: &HeaderState<'_>, kind: i64, scale: Option<i64>, value: Option<i64>) -> (i64, i64) {
    let Some(value) = value.filter(|value| !is_missing(*value)) else {
        return (0, HPA);
    };
    let tigge = matches!(head.number_in(keys::PRODUCTION_STATUS_OF_PROCESSED_DATA), Some(4 | 5));
    let mut exponent = scale.filter(|scale| !is_missing(*scale)).unwrap_or(0);
    if kind == 109 && scale.is_some_and(|scale| !is_missing(scale)) {
        exponent -= if tigge { 6 } else { 9 };
    }
    let number = value as f64 * 10_f64.powi(-exponent as i32);
    if kind != 100 {
        return ((number + 0.5) as i64, HPA);
    }
    let hpa = (number / 100.0) as i64;
    if hpa == 0 {
        ((number + 0.5) as i64, PA)
    } else {
        (hpa, HPA)
    }
}

/// After the two surfaces of a horizontal product were read: level, type of level, levtype, levelist.
pub(crate) fn horizontal(head: &mut HeaderState<'_>) {
    settle(head);
    let number = |key| head.number_in(key);
    let first = number(keys::TYPE_OF_FIRST_FIXED_SURFACE).unwrap_or(255);
    let second = number(keys::TYPE_OF_SECOND_FIXED_SURFACE).unwrap_or(255);
    let scaled = |scale, value| (number(scale), number(value));
    let (scale, value) = scaled(
        keys::SCALE_FACTOR_OF_FIRST_FIXED_SURFACE,
        keys::SCALED_VALUE_OF_FIRST_FIXED_SURFACE,
    );
    let (top, mut unit) = level(head, first, scale, value);
    let mut bottom = top;
    if second != 255 {
        let (scale, value) = scaled(
            keys::SCALE_FACTOR_OF_SECOND_FIXED_SURFACE,
            keys::SCALED_VALUE_OF_SECOND_FIXED_SURFACE,
        );
        bottom = level(head, second, scale, value).0;
        unit = HPA;
    }
    head.level = top;
    for (key, number) in [
        (keys::PRESSURE_UNITS, unit),
        (keys::LEVEL, top),
        (keys::TOP_LEVEL, top),
        (keys::BOTTOM_LEVEL, bottom),
    ] {
        head.set(key, number);
    }
    head.type_of_level = head.concept(head.tables.known.type_of_level, 0).or(Some(UNKNOWN));
    if head.key_number(keys::EXTRA_DIMENSION_PRESENT, 0) == Some(1) {
        head.put_mars("levelist", &DIMENSION);
        head.put_mars("levtype", &DIMENSION_TYPE);
    } else {
        let [old, new, apart] = head.tables.known.levtype;
        let concept = match head.mtg2_switch {
            0 => old,
            2 => apart,
            _ => new,
        };
        head.levtype = head.concept(concept, 0).or(Some(UNKNOWN));
        head.put_mars("levtype", &LEVTYPE);
        let at_surface = head.type_of_level == Some(SURFACE) || matches!(head.levtype, Some(SFC | O2D));
        if !at_surface {
            head.put_mars("levelist", if unit == PA { &LEVEL_IN_HPA } else { &LEVEL });
        }
    }
    // Layers of soil, snow, ice and ocean are called by their bottom.
    if first == second && matches!(first, 114 | 151 | 152 | 168) {
        head.level = bottom;
        head.put_mars("levelist", &LEVEL);
    }
}

fn forecast_seconds(head: &HeaderState<'_>) -> Option<i64> {
    let unit = calc::unit_seconds2(head.key_number(keys::INDICATOR_OF_UNIT_OF_TIME_RANGE, 0)?)?;
    head.key_number(keys::FORECAST_TIME, 0)?.checked_mul(unit)
}

/// A product at a point in time.
pub(crate) fn instant(head: &mut HeaderState<'_>) {
    settle(head);
    head.steps = forecast_seconds(head).map(|seconds| calc::steps(seconds, seconds));
    head.put_mars("step", &START_STEP);
}

/// A product over one or two time ranges.
pub(crate) fn statistical(head: &mut HeaderState<'_>) {
    settle(head);
    let ranges = head.number_in(keys::NUMBER_OF_TIME_RANGES);
    if !matches!(ranges, Some(1 | 2)) {
        head.step_type = Some(tables::MULTIPLE);
        return head.put_mars("step", &UNAVAILABLE);
    }
    let two = ranges == Some(2);
    let [first, second] = head.ranges;
    let last = if two { second } else { first };
    head.step_type = step_type(last.process, last.increment, head.mtg2_switch);
    head.steps = interval(head, two);
    head.put_mars("step", &END_STEP);
}

/// Returns the end of the range. With an increment of type 1 the start moves and the range does not affect the step.
fn interval(head: &HeaderState<'_>, two: bool) -> Option<StepRange> {
    let start = forecast_seconds(head)?;
    let [first, second] = head.ranges;
    let last = if two { second } else { first };
    let seconds = |range: crate::header::TimeRange| range.length.checked_mul(calc::unit_seconds2(range.unit)?);
    let length = match (two, first.increment, second.increment) {
        (false, 1, _) => 0,
        (false, ..) | (true, 2, _) => seconds(first)?,
        (true, _, 2) => seconds(second)?,
        _ => return None,
    };
    let (unit, size) = calc::common_unit(&[start, start.checked_add(seconds(last)?)?]);
    let end = start.checked_add(length)?;
    if end % size != 0 {
        return Some(calc::steps(start, end));
    }
    Some(StepRange {
        start: start / size,
        end: end / size,
        unit,
    })
}

fn step_type(process: i64, increment: i64, switch: i64) -> Option<i64> {
    Some(match process {
        0 if switch == 0 && increment == 1 => tables::AVGD,
        0 => tables::AVG,
        1 => tables::ACCUM,
        2 => tables::MAX,
        3 => tables::MIN,
        4 => tables::DIFF,
        5 => tables::RMS,
        6 => tables::SD,
        7 => tables::COV,
        8 => tables::SDIFF,
        9 => tables::RATIO,
        10 => tables::STDANOM,
        11 => tables::SUM,
        100 => tables::SEVERITY,
        101 => tables::MODE,
        102 => tables::INDEX,
        255 => tables::INSTANT,
        _ => return None,
    })
}

/// Three places in turn: those of the header, ECMWF's, and ECMWF's names of old.
fn param(head: &mut HeaderState<'_>) -> Option<FoundParam> {
    if let Some(step_type) = head.step_type {
        head.set(keys::STEP_TYPE, step_type);
    }
    let number = |key| head.number_in(key);
    let numbers = params::numbers(
        number(keys::DISCIPLINE)?,
        number(keys::PARAMETER_CATEGORY)?,
        number(keys::PARAMETER_NUMBER)?,
    );
    let mark = match head.mtg2_switch {
        0 => params::OLD,
        2 => params::APART,
        _ => params::NEW,
    };
    let get = |key| head.key_number(key, 0);
    let find = |places, mark| head.tables.params.find(2, places, mark, numbers, &get);
    let ecmf = ["ecmf", "master"];
    find(head.places, mark)
        .or_else(|| find(ecmf, mark))
        .or_else(|| find(ecmf, params::LEGACY))
}

fn chemical(head: &mut HeaderState<'_>) {
    if head.mtg2_switch == 2
        && let Some(chem) = head.concept(head.tables.known.chem, 0)
    {
        head.set(keys::CHEM_ID, chem);
        head.put_mars("chem", &CHEM);
    }
}

fn extras(head: &mut HeaderState<'_>) {
    let label = match (head.tables.text_of(head.dataset), head.number_in(keys::CENTRE)) {
        (Some("hydro"), _) => "x/hydro",
        (Some("fire"), _) => "x/fire",
        (Some("destine"), _) => "x/destine",
        (Some("unknown") | None, Some(ECMWF)) => "x/ecmf",
        _ => return,
    };
    if let Some(program) = head.tables.programs.labelled(label) {
        head.run(program);
    }
}

fn time_span(head: &mut HeaderState<'_>) {
    if head.mtg2_switch < 1 {
        return;
    }
    if let Some(number) = head.number(&STAT_TYPE, 0) {
        head.set(keys::STATTYPE, number);
        head.put_mars("stattype", &STAT_TYPE);
    }
    if let Some(time) = head.number(&TIME, 0) {
        head.set(keys::DATA_TIME, time);
    }
    match head.number(&TIME_SPAN, 0) {
        Some(tables::FROM_START) => head.put_mars("timespan", &FROM_START),
        Some(UNKNOWN) | None => {}
        Some(_) => head.put_mars("timespan", &TIME_SPAN),
    }
}
