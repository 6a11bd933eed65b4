//! Values of a field at the pixels of a map, and their colors.

/// The four values around each of some pixels, and the place of the pixel between them.
#[derive(Clone, Copy, Debug)]
pub struct PixelCorners<'a> {
    /// North-west, north-east, south-west and south-east of each pixel, as places in the field.
    pub places: [&'a [u32]; 4],
    /// The distance from the northern row, as a part of the distance between both rows.
    pub south: &'a [f32],
    /// The distance from the western column, likewise, in the northern and in the southern row.
    pub east: [&'a [f32]; 2],
}

/// Writes the bilinear value of each pixel, in single precision.
///
/// Where one of the four is missing (NaN), the value is the nearest one, missing or not.
///
/// Returns false if the parts do not fit together: `made` is then not complete.
#[must_use]
pub fn bilinear(values: &[f64], corners: &PixelCorners<'_>, made: &mut [f32]) -> bool {
    let count = made.len();
    let [a, b, c, d] = corners.places;
    let [north, south] = corners.east;
    let are_places = [a, b, c, d].iter().all(|one| one.len() == count);
    let are_parts = [north, south, corners.south].iter().all(|one| one.len() == count);
    are_places
        && are_parts
        && made.iter_mut().enumerate().all(|(pixel, into)| {
            let four = [a[pixel], b[pixel], c[pixel], d[pixel]].map(|place| values.get(place as usize));
            let [Some(a), Some(b), Some(c), Some(d)] = four else {
                return false;
            };
            let four = [*a as f32, *b as f32, *c as f32, *d as f32];
            *into = between(four, corners.south[pixel], [north[pixel], south[pixel]]);
            true
        })
}

fn between(four: [f32; 4], south: f32, east: [f32; 2]) -> f32 {
    let [a, b, c, d] = four;
    let above = (b - a) * east[0] + a;
    let below = (d - c) * east[1] + c;
    let value = (below - above) * south + above;
    if !value.is_nan() {
        return value;
    }
    let above = if east[0] < 0.5 { a } else { b };
    let below = if east[1] < 0.5 { c } else { d };
    if south < 0.5 { above } else { below }
}

/// The way from a value to its place in a table of colors.
#[derive(Clone, Copy, Debug)]
pub enum ColorBar<'a> {
    /// Evenly over a part of the table; values beyond the ends have the colors of the ends.
    Range {
        /// The value at the lower end.
        low: f32,
        /// One divided by the distance of the ends.
        factor: f32,
        /// The place of the lower end in the table, 0 to 1.
        first: f32,
        /// The distance of the ends in the table.
        span: f32,
    },
    /// A color for each class.
    Classes {
        /// The value at which each class but the lowest begins.
        edges: &'a [f32],
        /// The entry of the table of each class: one more than edges.
        entries: &'a [u16],
    },
}

/// Colors of pixels, as the four bytes of each.
#[derive(Clone, Copy, Debug)]
pub struct PixelPalette<'a> {
    /// From the lowest value to the highest.
    pub table: &'a [u32],
    /// Of missing values, and of the lines of the hatch over them.
    pub missing: [u32; 2],
    /// The distance of these lines in pixels along a row, and their width.
    pub hatch: [usize; 2],
}

/// Writes the colors of values into their pixels, of a picture in rows of `wide` pixels.
///
/// `pixels` are their numbers, row by row; without them there is a value for each pixel.
///
/// Returns false if the parts do not fit together: the picture is then not complete.
#[must_use]
pub fn shade(
    picture: &mut [u32],
    wide: usize,
    values: &[f32],
    pixels: Option<&[u64]>,
    bar: &ColorBar<'_>,
    palette: &PixelPalette<'_>,
) -> bool {
    let colors = palette.table.len();
    if colors == 0 || wide == 0 || palette.hatch[0] == 0 {
        return false;
    }
    match *bar {
        ColorBar::Range {
            low,
            factor,
            first,
            span,
        } => paint(picture, wide, values, pixels, palette, |value| {
            let place = ((value - low) * factor).clamp(0.0, 1.0) * span + first;
            (place * colors as f32).min((colors - 1) as f32) as usize
        }),
        ColorBar::Classes { edges, entries } => {
            entries.len() == edges.len() + 1
                && paint(picture, wide, values, pixels, palette, |value| {
                    usize::from(entries[edges.partition_point(|edge| *edge <= value)])
                })
        }
    }
}

/// As `shade`, by the entry of each value in the table.
fn paint(
    picture: &mut [u32],
    wide: usize,
    values: &[f32],
    pixels: Option<&[u64]>,
    palette: &PixelPalette<'_>,
    entry: impl Fn(f32) -> usize,
) -> bool {
    let color = |value: f32, pixel: usize| {
        if value.is_nan() {
            let is_line = (pixel % wide + pixel / wide) % palette.hatch[0] < palette.hatch[1];
            Some(palette.missing[usize::from(is_line)])
        } else {
            palette.table.get(entry(value)).copied()
        }
    };
    let Some(pixels) = pixels else {
        let places = picture.iter_mut().zip(values).enumerate();
        return places.len() == values.len()
            && places
                .into_iter()
                .all(|(pixel, (place, value))| color(*value, pixel).map(|found| *place = found).is_some());
    };
    pixels.len() == values.len()
        && pixels.iter().zip(values).all(|(pixel, value)| {
            let pixel = usize::try_from(*pixel).unwrap_or(usize::MAX);
            let (place, found) = (picture.get_mut(pixel), color(*value, pixel));
            place.zip(found).map(|(place, found)| *place = found).is_some()
        })
}

/// Multiplies red, green and blue of each pixel of four bytes by a number of 256ths.
///
/// Returns false, and does nothing, if there are not as many numbers as pixels.
#[must_use]
pub fn dim(picture: &mut [u8], light: &[u16]) -> bool {
    if picture.len() != 4 * light.len() {
        return false;
    }
    for (pixel, light) in picture.chunks_exact_mut(4).zip(light) {
        for part in &mut pixel[..3] {
            *part = ((u32::from(*part) * u32::from(*light)) >> 8) as u8;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    const BAR: ColorBar<'static> = ColorBar::Range {
        low: 10.0,
        factor: 0.1,
        first: 0.0,
        span: 1.0,
    };
    const PALETTE: PixelPalette<'static> = PixelPalette {
        table: &[1, 2, 3, 4],
        missing: [8, 9],
        hatch: [4, 2],
    };

    fn sampled(values: [f64; 4], south: f32, east: f32) -> f32 {
        let corners = PixelCorners {
            places: [&[0], &[1], &[2], &[3]],
            south: &[south],
            east: [&[east], &[east]],
        };
        let mut made = [0.0];
        assert!(bilinear(&values, &corners, &mut made));
        made[0]
    }

    #[test]
    #[allow(clippy::float_cmp, reason = "the sums are exact")]
    fn a_pixel_is_between_four_values() {
        assert_eq!(sampled([0.0, 4.0, 8.0, 16.0], 0.5, 0.25), 5.5);
        assert_eq!(sampled([f64::NAN, 4.0, 8.0, 16.0], 0.25, 0.75), 4.0);
        assert!(sampled([f64::NAN, 4.0, 8.0, 16.0], 0.25, 0.25).is_nan());
        assert_eq!(sampled([f64::NAN, 4.0, 8.0, 16.0], 0.5, 0.0), 8.0);
    }

    #[test]
    fn colors_are_even_over_a_range_and_missing_values_are_hatched() {
        let mut picture = [0; 6];
        let values = [9.0, 12.6, f32::NAN, f32::NAN, 20.0, f32::INFINITY];
        assert!(shade(&mut picture, 3, &values, None, &BAR, &PALETTE));
        assert_eq!(picture, [1, 2, 8, 9, 4, 4]);
    }

    #[test]
    fn classes_begin_at_their_edges_and_other_pixels_stay() {
        let bar = ColorBar::Classes {
            edges: &[0.0, 1.0],
            entries: &[0, 2, 3],
        };
        let mut picture = [7; 4];
        assert!(shade(
            &mut picture,
            4,
            &[-1.0, 0.0, 1.0],
            Some(&[3, 0, 1]),
            &bar,
            &PALETTE
        ));
        assert_eq!(picture, [3, 4, 7, 1]);
    }

    #[test]
    fn parts_that_do_not_fit_are_refused() {
        let corners = PixelCorners {
            places: [&[0], &[0], &[0], &[1]],
            south: &[0.0],
            east: [&[0.0], &[0.0]],
        };
        assert!(!bilinear(&[1.0], &corners, &mut [0.0]));
        assert!(!bilinear(&[1.0, 2.0], &corners, &mut [0.0, 0.0]));
        assert!(!shade(&mut [0; 2], 2, &[1.0], Some(&[2]), &BAR, &PALETTE));
        assert!(!shade(&mut [0; 2], 0, &[1.0], None, &BAR, &PALETTE));
        let bar = ColorBar::Classes {
            edges: &[0.0],
            entries: &[0, 9],
        };
        assert!(!shade(&mut [0; 2], 2, &[1.0], None, &bar, &PALETTE));
        assert!(!dim(&mut [0; 4], &[1, 2]));
    }

    #[test]
    fn light_is_a_part_of_256() {
        let mut picture = [255, 128, 1, 200];
        assert!(dim(&mut picture, &[128]));
        assert_eq!(picture, [127, 64, 0, 200]);
    }
}
