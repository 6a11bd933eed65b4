//! Descriptive keys of a field: its grid, its packing, and the other keys that are not mars keys.

use md5::{Digest, Md5};

use crate::header::identity;
use crate::header::{HeaderState, computed};
use crate::keys::MessageKeys;
use crate::octets::{signed, unsigned};
use crate::sections::SectionTable;
use crate::tables::keys;
use crate::tables::program::{TableExpr, TableFunction};
use crate::value::KeyValue;

static CENTRE: TableExpr = TableExpr::Key(keys::CENTRE);
static TYPE_OF_LEVEL: TableExpr = computed(TableFunction::TypeOfLevel);
static STEP_TYPE: TableExpr = computed(TableFunction::StepType);

/// Grid and packing of one message.
#[derive(Debug, Default)]
pub(crate) struct GridPacking {
    kind: Option<&'static str>,
    packing: Option<&'static str>,
    ni: Option<u64>,
    nj: Option<u64>,
    pub(crate) points: Option<u64>,
    /// First latitude and longitude, last latitude and longitude, as coded.
    corners: [Option<i64>; 4],
    numbers: [(u16, Option<i64>); 3],
}

impl GridPacking {
    /// Sets the keys that rows and programs may ask for.
    pub(crate) fn tell(&self, head: &mut HeaderState<'_>) {
        let corners = [
            keys::LATITUDE_OF_FIRST_GRID_POINT,
            keys::LONGITUDE_OF_FIRST_GRID_POINT,
            keys::LATITUDE_OF_LAST_GRID_POINT,
            keys::LONGITUDE_OF_LAST_GRID_POINT,
        ];
        for (key, number) in corners.into_iter().zip(self.corners).chain(self.numbers) {
            if let Some(number) = number {
                head.set(key, number);
            }
        }
    }
}

/// Everything that was found, in the order that `MessageKeys` promises.
pub(crate) fn keys(head: &HeaderState<'_>, grid: &GridPacking, sections: &SectionTable) -> MessageKeys {
    let mars = head
        .mars
        .iter()
        .filter_map(|(name, expr)| Some((*name, head.value(expr, 0)?)))
        .collect();
    let number = |number: u64| KeyValue::Integer(i64::try_from(number).unwrap_or(i64::MAX));
    let known = [
        ("edition", Some(KeyValue::Integer(i64::from(sections.edition)))),
        ("centre", head.value(&CENTRE, 0)),
        (
            "shortName",
            Some(KeyValue::fixed(head.param.map_or("unknown", |param| param.short_name))),
        ),
        (
            "paramId",
            Some(KeyValue::Integer(head.param.map_or(0, |param| param.id))),
        ),
        (
            "units",
            Some(KeyValue::fixed(head.param.map_or("unknown", |param| param.units))),
        ),
        ("typeOfLevel", head.value(&TYPE_OF_LEVEL, 0)),
        ("stepType", head.value(&STEP_TYPE, 0)),
        ("gridType", grid.kind.map(KeyValue::fixed)),
        ("md5GridSection", fingerprint(sections, head.message)),
        ("packingType", grid.packing.map(KeyValue::fixed)),
        ("Ni", grid.ni.map(number)),
        ("Nj", grid.nj.map(number)),
        ("numberOfDataPoints", grid.points.map(number)),
        ("messageLength", Some(number(head.message.len() as u64))),
        ("fields", Some(KeyValue::Integer(i64::from(sections.fields)))),
    ];
    MessageKeys::new(
        mars,
        known
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?)))
            .collect(),
        if sections.edition == 1 {
            identity::edition1(head, sections.by_number[1])
        } else {
            identity::edition2(head, sections.by_number[4])
        },
    )
}

/// The MD5 of the section that states the grid, as ecCodes' key `md5GridSection`; none where the grid has a number of a list.
fn fingerprint(sections: &SectionTable, message: &[u8]) -> Option<KeyValue> {
    let number = if sections.edition == 1 { 2 } else { 3 };
    let section = sections.by_number[number].of(message);
    (!section.is_empty()).then(|| {
        let digits = |byte: u8| [byte >> 4, byte & 15].map(|digit| char::from(b"0123456789abcdef"[usize::from(digit)]));
        let text: String = Md5::digest(section).into_iter().flat_map(digits).collect();
        KeyValue::text(&text)
    })
}

const MISSING2: u64 = 0xffff;
pub(crate) const MISSING4: u64 = 0xffff_ffff;

pub(crate) fn edition1(message: &[u8], sections: &SectionTable) -> GridPacking {
    let section = sections.by_number[2].of(message);
    let mut grid = GridPacking {
        packing: packing1(sections.by_number[4].of(message)),
        ..GridPacking::default()
    };
    let Some(&code) = section.get(5) else { return grid };
    let two = |at| unsigned(section, at, 2);
    let reduced = is_reduced1(section);
    grid.kind = match code {
        0 if reduced => Some("reduced_ll"),
        0 => Some("regular_ll"),
        1 => Some("mercator"),
        3 => Some("lambert"),
        4 if reduced => Some("reduced_gg"),
        4 => Some("regular_gg"),
        5 => Some("polar_stereographic"),
        10 => Some("rotated_ll"),
        13 => Some("albers"),
        14 if reduced => Some("reduced_rotated_gg"),
        14 => Some("rotated_gg"),
        50 => Some("sh"),
        60 => Some("rotated_sh"),
        70 => Some("stretched_sh"),
        80 => Some("stretched_rotated_sh"),
        90 => Some("space_view"),
        _ => None,
    };
    if matches!(code, 50 | 60 | 70 | 80) || grid.kind.is_none() {
        return grid;
    }
    grid.ni = two(6).filter(|_| !reduced);
    grid.nj = two(8);
    grid.corners = [(10, 3), (13, 3), (17, 3), (20, 3)].map(|(at, length)| signed(section, at, length));
    grid.points = if reduced {
        row_points1(section, grid.nj)
    } else {
        grid.ni.zip(grid.nj).map(|(ni, nj)| ni * nj)
    };
    grid
}

/// Whether its rows have different lengths.
pub(crate) fn is_reduced1(section: &[u8]) -> bool {
    unsigned(section, 6, 2) == Some(MISSING2)
}

/// The points of a reduced grid: the sum of its rows' lengths, which follow the vertical coordinates.
fn row_points1(section: &[u8], nj: Option<u64>) -> Option<u64> {
    let (vertical, place) = (usize::from(*section.get(3)?), usize::from(*section.get(4)?));
    let start = (place.checked_sub(1)?).checked_add(vertical * 4)?;
    (0..nj? as usize).map(|row| unsigned(section, start + row * 2, 2)).sum()
}

fn packing1(section: &[u8]) -> Option<&'static str> {
    let flags = *section.get(3)?;
    let (spectral, complex, integers, more) = (
        flags & 0x80 != 0,
        flags & 0x40 != 0,
        flags & 0x20 != 0,
        flags & 0x10 != 0,
    );
    Some(match (spectral, complex) {
        (true, true) => "spectral_complex",
        (true, false) => "spectral_simple",
        (false, false) if more && integers => "grid_ieee",
        (false, false) if more => "grid_simple_matrix",
        (false, false) => "grid_simple",
        (false, true) => second_order(*section.get(13)?),
    })
}

/// The kinds of second-order packing, by the extended flags.
fn second_order(flags: u8) -> &'static str {
    let (bitmap, widths, general) = (flags & 0x20 != 0, flags & 0x10 != 0, flags & 0x08 != 0);
    match (general, flags & 3) {
        (true, 0) => "grid_second_order_no_SPD",
        (true, 1) => "grid_second_order_SPD1",
        (true, 2) => "grid_second_order",
        (true, _) => "grid_second_order_SPD3",
        (false, _) if bitmap && widths => "grid_second_order_general_grib1",
        (false, _) if bitmap => "grid_second_order_constant_width",
        (false, _) => "grid_second_order_row_by_row",
    }
}

pub(crate) fn edition2(message: &[u8], sections: &SectionTable) -> GridPacking {
    let section = sections.by_number[3].of(message);
    let template = unsigned(section, 12, 2);
    let lists_rows = section.get(10).is_some_and(|octets| *octets > 0);
    let four = |at| unsigned(section, at, 4);
    let mut grid = GridPacking {
        kind: template.map(|template| grid_type2(template, lists_rows)),
        packing: packing2(sections.by_number[5].of(message)),
        points: four(6),
        ..GridPacking::default()
    };
    grid.numbers[0] = (
        keys::GRID_DEFINITION_TEMPLATE_NUMBER,
        template.map(|number| number as i64),
    );
    match template {
        Some(0..=5 | 10 | 12 | 13 | 20 | 23 | 30 | 31 | 33 | 40..=43 | 61..=63 | 90 | 140) => {
            grid.ni = four(30).filter(|ni| *ni != MISSING4);
            grid.nj = four(34);
        }
        Some(101) => {
            grid.numbers[1] = (
                keys::NUMBER_OF_GRID_USED,
                unsigned(section, 15, 3).map(|number| number as i64),
            );
            grid.numbers[2] = (
                keys::NUMBER_OF_GRID_IN_REFERENCE,
                section.get(18).map(|number| i64::from(*number)),
            );
        }
        _ => {}
    }
    if matches!(template, Some(0..=3 | 40..=43)) {
        grid.corners = [46, 50, 55, 59].map(|at| signed(section, at, 4));
    }
    grid
}

fn grid_type2(template: u64, lists_rows: bool) -> &'static str {
    match (template, lists_rows) {
        (0, false) => "regular_ll",
        (0, true) => "reduced_ll",
        (1, false) => "rotated_ll",
        (2, false) => "stretched_ll",
        (3, false) => "stretched_rotated_ll",
        (4, false) => "varres_ll",
        (5, false) => "varres_rotated_ll",
        (10, false) => "mercator",
        (12, false) => "transverse_mercator",
        (13, false) => "mercator_lam",
        (20, false) => "polar_stereographic",
        (23, false) => "polar_stereographic_lam",
        (30, false) => "lambert",
        (31, false) => "albers",
        (33, false) => "lambert_lam",
        (40, false) => "regular_gg",
        (40, true) => "reduced_gg",
        (41, false) => "rotated_gg",
        (41, true) => "reduced_rotated_gg",
        (42, false) => "stretched_gg",
        (42, true) => "reduced_stretched_gg",
        (43, false) => "stretched_rotated_gg",
        (43, true) => "reduced_stretched_rotated_gg",
        (50, false) => "sh",
        (51, false) => "rotated_sh",
        (52, false) => "stretched_sh",
        (53, false) => "stretched_rotated_sh",
        (61, false) => "mercator_bf",
        (62, false) => "polar_stereographic_bf",
        (63, false) => "lambert_bf",
        (90, false) => "space_view",
        (100, false) => "triangular_grid",
        (101, false) => "unstructured_grid",
        (110, false) => "equatorial_azimuthal_equidistant",
        (120, false) => "azimuth_range",
        (130, false) => "irregular_latlon",
        (140, false) => "lambert_azimuthal_equal_area",
        (150, false) => "healpix",
        (1000, false) => "cross_section",
        (1100, false) => "Hovmoller",
        (1200, false) => "time_section",
        (_, true) => "unknown_PLPresent",
        _ => "unknown",
    }
}

fn packing2(section: &[u8]) -> Option<&'static str> {
    Some(match unsigned(section, 9, 2)? {
        0 => "grid_simple",
        1 => "grid_simple_matrix",
        2 => "grid_complex",
        3 => "grid_complex_spatial_differencing",
        4 => "grid_ieee",
        40 | 40_000 => "grid_jpeg",
        41 | 40_010 => "grid_png",
        42 => "grid_ccsds",
        50 => "spectral_simple",
        51 => "spectral_complex",
        53 => "bifourier_complex",
        61 => "grid_simple_log_preprocessing",
        200 => "grid_run_length",
        50_000 => "spectral_ieee",
        50_001 | 50_002 => "grid_second_order",
        _ => "unknown",
    })
}
