//! Ink on pixels of four bytes, of which the first three are red, green and blue.

/// Red, green and blue.
pub type Colour = [u8; 3];

/// The color of lines, and that of the halo beneath them, which sets them off from what they cross.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LineInk {
    /// Of the lines.
    pub line: Colour,
    /// Of their halo.
    pub halo: Colour,
}

/// Puts ink onto some pixels, of each of which the line and its halo cover a part.
///
/// Returns false, and leaves the rest as it is, where there is no such pixel.
#[must_use]
pub fn blend(colours: &mut [u8], pixels: &[u64], line: &[f32], halo: &[f32], ink: LineInk) -> bool {
    pixels.len() == line.len()
        && pixels.len() == halo.len()
        && pixels.iter().zip(line.iter().zip(halo)).all(|(pixel, (line, halo))| {
            usize::try_from(*pixel).is_ok_and(|pixel| put(colours, pixel, *line, *halo, ink).is_some())
        })
}

/// Puts the halo, and the line over it, onto parts of a pixel, if there is one.
pub(crate) fn put(colours: &mut [u8], pixel: usize, line: f32, halo: f32, ink: LineInk) -> Option<()> {
    let place = pixel.checked_mul(4)?;
    let four = colours.get_mut(place..place.checked_add(4)?)?;
    for ((under, below), above) in four.iter_mut().zip(ink.halo).zip(ink.line) {
        let with_halo = f32::from(*under) * (1.0 - halo) + f32::from(below) * halo;
        *under = (with_halo * (1.0 - line) + f32::from(above) * line) as u8;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const INK: LineInk = LineInk {
        line: [200, 0, 100],
        halo: [0, 100, 200],
    };

    #[test]
    fn a_line_covers_its_halo_and_both_a_part_of_a_pixel() {
        let mut colours = [10, 20, 30, 255, 100, 100, 100, 254, 100, 100, 100, 253];
        assert!(blend(
            &mut colours,
            &[0, 1, 2],
            &[1.0, 0.25, 0.5],
            &[1.0, 0.0, 0.5],
            INK
        ));
        // A half of the line, over a half of the halo.
        assert_eq!(colours, [200, 0, 100, 255, 125, 75, 100, 254, 125, 50, 125, 253]);
    }

    #[test]
    fn pixels_that_are_not_there_are_refused() {
        let mut colours = [0; 8];
        assert!(!blend(&mut colours, &[2], &[1.0], &[1.0], INK));
        assert!(!blend(&mut colours, &[u64::MAX], &[1.0], &[1.0], INK));
        assert!(!blend(&mut colours, &[0, 1], &[1.0], &[1.0, 1.0], INK));
        assert!(!blend(&mut colours, &[0, 1], &[1.0, 1.0], &[1.0], INK));
        assert_eq!(colours, [0; 8]);
    }
}
