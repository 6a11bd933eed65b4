//! The least lengths of sections, by their templates (WMO, Manual on Codes, FM 92 GRIB).
//!
//! Decoders apply the octets of a template to a section of any length, and continue after the template: for a section that
//! is shorter, they find the next one at a wrong place.

use crate::header::grid::is_reduced1;
use crate::octets::unsigned;

/// Whether sections 3, 4 and 5 of edition 2 have all octets of their templates; false for templates that are not known here.
pub(crate) fn are_whole(grid: &[u8], product: &[u8], packing: &[u8]) -> bool {
    let has = |section: &[u8], least: Option<u64>| least.is_some_and(|least| section.len() as u64 >= least);
    has(grid, least3(grid)) && has(product, least4(product)) && has(packing, least5(packing))
}

/// The list of the rows' lengths is checked with the number of points.
fn least3(grid: &[u8]) -> Option<u64> {
    Some(match unsigned(grid, 12, 2)? {
        0 | 10 | 40 => 72,
        1 | 2 | 12 | 41 | 42 => 84,
        3 | 43 => 96,
        20 => 65,
        30 | 31 => 81,
        50 => 28,
        90 => 80,
        101 => 35,
        140 => 64,
        _ => return None,
    })
}

/// With the time ranges that the section announces, and the vertical coordinates behind the template.
fn least4(product: &[u8]) -> Option<u64> {
    let (least, ranges_at) = match unsigned(product, 7, 2)? {
        0 | 7 => (34, None),
        1 | 15 => (37, None),
        2 | 6 | 40 => (36, None),
        5 => (47, None),
        8 => (58, Some(41)),
        9 => (71, Some(54)),
        10 => (59, Some(42)),
        11 => (61, Some(44)),
        12 => (60, Some(43)),
        _ => return None,
    };
    let ranges = match ranges_at {
        Some(at) => unsigned(product, at, 1)?.max(1),
        None => 1,
    };
    Some(least + 12 * (ranges - 1) + 4 * unsigned(product, 5, 2)?)
}

fn least5(packing: &[u8]) -> Option<u64> {
    Some(match unsigned(packing, 9, 2)? {
        0 => 21,
        2 => 47,
        3 => 49,
        4 => 12,
        42 => 25,
        50 | 61 => 24,
        51 => 35,
        200 => 17 + 2 * unsigned(packing, 14, 2)?,
        _ => return None,
    })
}

/// The same of section 2 of edition 1, with its vertical coordinates or lengths of rows.
///
/// Decoders take any octets after the coordinates for lengths of rows if there are enough octets. They abort at a row of
/// one point.
pub(crate) fn is_whole1(grid: &[u8]) -> bool {
    let least = match grid.get(5) {
        Some(0 | 1 | 3 | 4 | 5 | 50) => 32,
        Some(10 | 14) => 42,
        _ => return false,
    };
    let numbers = [unsigned(grid, 3, 1), unsigned(grid, 4, 1), unsigned(grid, 8, 2)];
    let [Some(coordinates), Some(place), Some(rows)] = numbers else {
        return false;
    };
    let start = least + coordinates * 4;
    let length = grid.len() as u64;
    // 255: no coordinates in some messages.
    if coordinates == 255 || length < start {
        return false;
    }
    if grid.get(5) == Some(&50) {
        return true;
    }
    if !is_reduced1(grid) {
        return length == start || length < start + 2 * rows;
    }
    let lengths = grid.get(start as usize..).unwrap_or_default().chunks_exact(2);
    place == least + 1
        && lengths.len() as u64 >= rows
        && lengths.take(rows as usize).all(|row| unsigned(row, 0, 2) > Some(1))
}
