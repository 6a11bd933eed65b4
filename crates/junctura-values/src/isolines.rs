//! Lines of equal value on a raster, by the values of its pixels.
//!
//! A pixel is part of a line where its value differs from that of the line by less than the field changes over half the
//! line's width. So lines follow the values in every projection, and none is traced.

use crate::ink::{LineInk, put};

/// A line: the value along it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ContourLine {
    /// The value.
    pub value: f32,
    /// Crossings are as many pixels away from the edges of the raster at least.
    pub margin: usize,
    /// The drawing style.
    pub ink: LineInk,
}

/// How lines are drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LineStroke {
    /// Of a line, in pixels.
    pub width: f32,
    /// Lines that are fewer pixels apart fade.
    pub fade: f32,
    /// Where values change by no more than this from pixel to pixel, there is no line.
    pub flat: f32,
    /// How much of what is below a line covers, up to 1.
    pub strength: f32,
    /// How far the halo reaches beyond the line on either side, in pixels.
    pub halo: f32,
    /// How much of what is below the halo covers, up to 1.
    pub veil: f32,
}

/// Draws lines onto pixels of four bytes, by their values, in rows of so many; the values of the lines are in order,
/// upwards.
///
/// Returns of each line the pixels that it runs through, counted row by row, upwards. A pixel belongs to the line whose
/// value is nearest to its own. There is no line about missing values (NaN). None where there are not as many pixels as
/// values.
#[must_use]
pub fn isolines(
    colours: &mut [u8],
    values: &[f32],
    wide: usize,
    lines: &[ContourLine],
    stroke: LineStroke,
) -> Option<Vec<Vec<u64>>> {
    (colours.len() == 4 * values.len()).then(|| {
        touched(values, wide, lines, stroke, |pixel, line, cover, halo| {
            // It is there.
            let _ = put(colours, pixel, stroke.strength * cover, stroke.veil * halo, line.ink);
        })
    })
}

/// Reports for each pixel that a line touches the line, how much of the pixel the line covers, and how much its halo, up to
/// 1; returns the result of `isolines`.
fn touched(
    values: &[f32],
    wide: usize,
    lines: &[ContourLine],
    stroke: LineStroke,
    mut touch: impl FnMut(usize, ContourLine, f32, f32),
) -> Vec<Vec<u64>> {
    let mut crossings = vec![Vec::new(); lines.len()];
    let high = values.len().checked_div(wide).unwrap_or(0);
    if lines.is_empty() || wide < 2 || high < 2 {
        return crossings;
    }
    let nearest = NearestLine::of(lines);
    let apart = lines.windows(2).map(|pair| pair[1].value - pair[0].value);
    let apart = apart.fold(f32::INFINITY, f32::min);
    let reach = stroke.width / 2.0 + 0.5;
    let with_halo = reach + stroke.halo;
    for (y, row) in values.chunks_exact(wide).enumerate() {
        let (above, below) = (y.saturating_sub(1), (y + 1).min(high - 1));
        let rows = (below - above) as f32;
        let (above, below) = (&values[above * wide..][..wide], &values[below * wide..][..wide]);
        for (x, value) in row.iter().enumerate() {
            let (west, east) = (x.saturating_sub(1), (x + 1).min(wide - 1));
            let down = (below[x] - above[x]) / rows;
            let right = (row[east] - row[west]) / (east - west) as f32;
            let at = nearest.find(*value);
            let away = (value - lines[at].value).abs();
            // Most pixels are far from all lines. NaN is not near.
            let is_near = away < with_halo * (down.abs() + right.abs());
            if !is_near {
                continue;
            }
            let steep = length(down, right);
            if steep <= stroke.flat || away >= with_halo * steep {
                continue;
            }
            let pixel = y * wide + x;
            let faded = (apart / (stroke.fade * steep)).min(1.0);
            let cover = |reach: f32| ((reach - away / steep) * faded).clamp(0.0, 1.0);
            touch(pixel, lines[at], cover(reach), cover(with_halo));
            let margin = lines[at].margin;
            let is_inside = x >= margin && y >= margin && x + margin < wide && y + margin < high;
            if away < 0.5 * steep && is_inside {
                crossings[at].push(pixel as u64);
            }
        }
    }
    crossings
}

/// In double precision, so that no square is too large or too small.
fn length(down: f32, right: f32) -> f32 {
    let square = |value: f32| f64::from(value) * f64::from(value);
    (square(down) + square(right)).sqrt() as f32
}

/// Finds the line whose value is nearest.
struct NearestLine {
    /// Values in the middle between two lines.
    between: Vec<f32>,
    first: f32,
    per_line: f32,
}

impl NearestLine {
    fn of(lines: &[ContourLine]) -> Self {
        let between: Vec<f32> = lines
            .windows(2)
            .map(|pair| f32::midpoint(pair[0].value, pair[1].value))
            .collect();
        let reach = lines[lines.len() - 1].value - lines[0].value;
        Self {
            between,
            first: lines[0].value,
            per_line: if reach > 0.0 {
                (lines.len() - 1) as f32 / reach
            } else {
                0.0
            },
        }
    }

    fn find(&self, value: f32) -> usize {
        // Lines are mostly equally far apart: then this is it.
        let guess = ((value - self.first) * self.per_line + 0.5).max(0.0);
        let mut at = (guess as usize).min(self.between.len());
        while at > 0 && value <= self.between[at - 1] {
            at -= 1;
        }
        while at < self.between.len() && value > self.between[at] {
            at += 1;
        }
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const STROKE: LineStroke = LineStroke {
        width: 2.0,
        fade: 3.0,
        flat: 1e-5,
        strength: 1.0,
        halo: 0.0,
        veil: 0.0,
    };

    fn lines(values: &[f32], margin: usize) -> Vec<ContourLine> {
        let ink = LineInk {
            line: [0; 3],
            halo: [255; 3],
        };
        let line = |value: &f32| ContourLine {
            value: *value,
            margin,
            ink,
        };
        values.iter().map(line).collect()
    }

    /// Pixels, how much of each is covered, and crossings.
    fn found(values: &[f32], wide: usize, lines: &[ContourLine]) -> (Vec<usize>, Vec<f32>, Vec<Vec<u64>>) {
        let (mut pixels, mut covers) = (Vec::new(), Vec::new());
        let crossings = touched(values, wide, lines, STROKE, |pixel, _, cover, _| {
            pixels.push(pixel);
            covers.push(cover);
        });
        (pixels, covers, crossings)
    }

    #[test]
    fn a_slope_has_a_line_as_wide_as_the_stroke() {
        let values: Vec<f32> = (0..200).map(|pixel| (pixel % 20) as f32).collect();
        let (_, cover, crossings) = found(&values, 20, &lines(&[5.0, 15.0], 0));
        // Ten rows of two lines.
        let cover: f32 = cover.iter().sum();
        assert!((cover - 40.0).abs() < 1e-3, "{cover}");
        let columns = |pixels: &[u64]| pixels.iter().map(|pixel| pixel % 20).collect::<Vec<_>>();
        assert_eq!(columns(&crossings[0]), [5; 10]);
        assert_eq!(columns(&crossings[1]), [15; 10]);
    }

    #[test]
    fn a_halo_reaches_beyond_its_line_on_both_sides() {
        let values: Vec<f32> = (0..200).map(|pixel| (pixel % 20) as f32).collect();
        let stroke = LineStroke { halo: 2.5, ..STROKE };
        let mut halos = 0.0;
        let mut lines_only = 0.0;
        touched(&values, 20, &lines(&[10.0], 0), stroke, |_, _, line, halo| {
            assert!(line <= halo);
            lines_only += line;
            halos += halo;
        });
        assert!((lines_only - 20.0).abs() < 1e-3, "{lines_only}");
        assert!((halos - 70.0).abs() < 1e-3, "{halos}");
    }

    #[test]
    fn each_line_has_its_own_ink() {
        let values: Vec<f32> = (0..200).map(|pixel| (pixel % 20) as f32).collect();
        let mut lines = lines(&[5.0, 15.0], 0);
        lines[1].ink.line = [7, 8, 9];
        let mut colours = [200; 800];
        assert!(isolines(&mut colours, &values, 20, &lines, STROKE).is_some());
        assert_eq!(colours[4 * 5..][..4], [0, 0, 0, 200]);
        assert_eq!(colours[4 * 15..][..4], [7, 8, 9, 200]);
    }

    #[test]
    fn crossings_keep_their_distance_from_the_edges() {
        let values: Vec<f32> = (0..200).map(|pixel| (pixel % 20) as f32).collect();
        let (_, _, crossings) = found(&values, 20, &lines(&[2.0, 10.0], 3));
        assert!(crossings[0].is_empty());
        assert_eq!(crossings[1], [3 * 20 + 10, 4 * 20 + 10, 5 * 20 + 10, 6 * 20 + 10]);
    }

    #[test]
    fn what_has_no_slope_has_no_line() {
        let of = |values: &[f32], wide| found(values, wide, &lines(&[0.0, 5.0], 0)).0;
        assert!(of(&[5.0; 12], 4).is_empty());
        assert!(of(&[f32::NAN; 12], 4).is_empty());
        assert!(of(&[0.0, 5.0, 1.0], 3).is_empty());
        assert!(of(&[0.0, 5.0, 1.0], 1).is_empty());
        assert!(of(&[], 0).is_empty());
    }

    #[test]
    fn steep_and_huge_values_have_lines() {
        let (pixels, cover, _) = found(&[0.0, 1e30, 0.0, 1e30], 2, &lines(&[1e30], 0));
        assert_eq!(pixels, [0, 1, 2, 3]);
        assert!(cover.iter().all(|cover| cover.is_finite()));
    }

    proptest! {
        #[test]
        fn the_nearest_line_is_found(
            mut values in prop::collection::vec(-1e3_f32..1e3, 1..50),
            value in prop_oneof![-2e3_f32..2e3, Just(f32::INFINITY), Just(f32::NEG_INFINITY), Just(f32::NAN)],
        ) {
            values.sort_by(f32::total_cmp);
            values.dedup();
            let lines = lines(&values, 0);
            let at = NearestLine::of(&lines).find(value);
            prop_assert!(at < lines.len());
            if value.is_finite() {
                let nearest = values.iter().map(|one| (one - value).abs()).fold(f32::INFINITY, f32::min);
                prop_assert!((values[at] - value).abs() <= nearest * 1.001 + 1e-3);
            }
        }
    }
}
