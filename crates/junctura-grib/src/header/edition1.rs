//! The header of edition 1: section 1 by octets, the local part by program.

use crate::header::calc;
use crate::header::grid;
use crate::header::{HeaderState, StepRange, computed};
use crate::keys::MessageKeys;
use crate::octets;
use crate::sections::{SectionSpan, SectionTable};
use crate::tables::program::{TableExpr, TableFunction};
use crate::tables::{self, AVGFC, AVGIA, AVGUA, INSTANT, UNKNOWN, VARINS, keys, params};

static DATE: TableExpr = computed(TableFunction::DataDate);
static TIME: TableExpr = computed(TableFunction::DataTime);
static STEP: TableExpr = computed(TableFunction::EndStep);
static LEVEL: TableExpr = computed(TableFunction::Level);
static LEVEL_IN_HPA: TableExpr = computed(TableFunction::LevelInHpa);
static LEVTYPE: TableExpr = computed(TableFunction::Levtype);
static PARAM: TableExpr = computed(TableFunction::MarsParam);
static PARAM_ID: TableExpr = computed(TableFunction::ParamId);
static SFC: TableExpr = TableExpr::Fixed(tables::SFC);

const ECMWF: i64 = 98;

/// Fields of section 1 by their place in it, one octet each.
const OCTETS: [(u16, usize); 18] = [
    (keys::TABLE2_VERSION, 3),
    (keys::CENTRE, 4),
    (keys::GENERATING_PROCESS_IDENTIFIER, 5),
    (keys::INDICATOR_OF_PARAMETER, 8),
    (keys::INDICATOR_OF_TYPE_OF_LEVEL, 9),
    (keys::TOP_LEVEL, 10),
    (keys::BOTTOM_LEVEL, 11),
    (keys::YEAR_OF_CENTURY, 12),
    (keys::MONTH, 13),
    (keys::DAY, 14),
    (keys::HOUR, 15),
    (keys::MINUTE, 16),
    (keys::INDICATOR_OF_UNIT_OF_TIME_RANGE, 17),
    (keys::P1, 18),
    (keys::P2, 19),
    (keys::TIME_RANGE_INDICATOR, 20),
    (keys::CENTURY_OF_REFERENCE_TIME_OF_DATA, 24),
    (keys::SUB_CENTRE, 25),
];

pub(crate) fn keys(message: &[u8], sections: &SectionTable) -> MessageKeys {
    let mut head = HeaderState::new(message, 1, tables::tables());
    let span = sections.by_number[1];
    section1(&mut head, span.of(message));
    head.places = [head.centre_name(), "master"];
    levels(&mut head);
    head.step_type = head
        .concept(head.tables.known.step_type1, 0)
        .or(head.number_in(keys::TIME_RANGE_INDICATOR));
    if let Some(step_type) = head.step_type {
        head.set(keys::STEP_TYPE, step_type);
    }
    head.steps = steps(&head);
    head.param = param(&head);
    for (name, expr) in [
        ("step", &STEP),
        ("date", &DATE),
        ("levtype", &LEVTYPE),
        ("time", &TIME),
        ("param", &PARAM),
    ] {
        head.put_mars(name, expr);
    }
    japanese_reanalysis(&mut head);
    let grid = grid::edition1(message, sections);
    grid.tell(&mut head);
    local(&mut head, span);
    grid::keys(&head, &grid, sections)
}

fn section1(head: &mut HeaderState<'_>, section: &[u8]) {
    for (key, at) in OCTETS {
        if let Some(&octet) = section.get(at) {
            head.set(key, i64::from(octet));
        }
    }
    head.set(keys::SECOND, 0);
}

/// Two octets are one level, or top and bottom of a layer, by the type of level.
fn levels(head: &mut HeaderState<'_>) {
    let number = |key| head.number_in(key).unwrap_or(0);
    let kind = number(keys::INDICATOR_OF_TYPE_OF_LEVEL);
    let (top, bottom) = (number(keys::TOP_LEVEL), number(keys::BOTTOM_LEVEL));
    let layer = matches!(
        kind,
        101 | 104 | 106 | 108 | 110 | 112 | 114 | 116 | 120 | 121 | 128 | 141
    );
    let one = if top << 8 | bottom == 0xffff {
        tables::MISSING
    } else {
        top << 8 | bottom
    };
    head.level = if layer { top } else { one };
    head.set(keys::LEVEL, head.level);
    if !layer {
        head.set(keys::TOP_LEVEL, one);
        head.set(keys::BOTTOM_LEVEL, one);
    }
    head.levtype = Some(kind);
    head.type_of_level = {
        let id = head.tables.known.type_of_level1;
        let in_ecmf = || {
            head.tables
                .concepts
                .evaluate(id, ["ecmf", "master"], |key| head.number_in(key))
        };
        head.concept(id, 0).or_else(in_ecmf).or(Some(UNKNOWN))
    };
    match kind {
        210 => head.put_mars("levelist", &LEVEL_IN_HPA),
        100 | 109 | 110 | 113 | 117 | 203 => head.put_mars("levelist", &LEVEL),
        _ => {}
    }
}

/// Step and range from P1, P2 and the time range indicator. ecCodes gives them in hours or fails; what is no whole
/// number of hours is given in minutes or seconds here.
fn steps(head: &HeaderState<'_>) -> Option<StepRange> {
    let number = |key| head.number_in(key);
    let (p1, p2) = (number(keys::P1)?, number(keys::P2)?);
    let (mut start, mut end) = match (number(keys::TIME_RANGE_INDICATOR)?, head.step_type?) {
        (10, _) => (p1 << 8 | p2, p1 << 8 | p2),
        (_, INSTANT) => (p1, p1),
        (0, tables::ACCUM) => (0, p1),
        _ => (p1, p2),
    };
    match head.step_type? {
        AVGFC | AVGUA | AVGIA | VARINS => end = start,
        tables::AVGD => return None,
        number if !crate::header::is_text(number) => return None,
        _ => {}
    }
    if (start, end) == (0, 0) {
        return Some(StepRange {
            start: 0,
            end: 0,
            unit: 'h',
        });
    }
    let unit = calc::unit_seconds1(number(keys::INDICATOR_OF_UNIT_OF_TIME_RANGE)?)?;
    start *= unit;
    end *= unit;
    Some(calc::steps(start, end))
}

fn param(head: &HeaderState<'_>) -> Option<params::FoundParam> {
    let (table, number) = (
        head.number_in(keys::TABLE2_VERSION)?,
        head.number_in(keys::INDICATOR_OF_PARAMETER)?,
    );
    let numbers = params::numbers(0, table, number);
    let get = |key| head.number_in(key);
    let find = |places| head.tables.params.find(1, places, params::OLD, numbers, &get);
    find(head.places).or_else(|| find(["ecmf", "master"]))
}

/// Fields of the Japanese reanalyses in MARS carry the identifier as their parameter.
fn japanese_reanalysis(head: &mut HeaderState<'_>) {
    if head.number_in(keys::CENTRE) == Some(34) && head.number_in(keys::SUB_CENTRE) == Some(241) {
        head.put_mars("param", &PARAM_ID);
        if head.levtype == Some(101) {
            head.put_mars("levtype", &SFC);
        }
    }
}

/// The local part of section 1, where ECMWF's conventions apply.
fn local(head: &mut HeaderState<'_>, span: SectionSpan) {
    let ecmwf = [keys::CENTRE, keys::SUB_CENTRE]
        .iter()
        .any(|&key| head.number_in(key) == Some(ECMWF));
    let number = octets::unsigned(head.message, span.start + 40, 1).filter(|_| span.end > span.start + 40);
    let Some(number) = number.filter(|_| ecmwf) else { return };
    head.set(keys::LOCAL_DEFINITION_NUMBER, number as i64);
    head.set(keys::LOCAL_USE_PRESENT, 1);
    head.enter(span.start + 41, span.end);
    if let Some(program) = head.tables.programs.numbered("1", number as i64) {
        head.run(program);
    }
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
}
