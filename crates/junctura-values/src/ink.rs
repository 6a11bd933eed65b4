//! Ink on pixels of four bytes, of which the first three are red, green and blue.

/// Red, green and blue.
pub type Colour = [u8; 3];

/// The color of ink.
#[derive(Clone, Copy, Debug)]
pub enum Ink<'a> {
    /// The same everywhere.
    One(Colour),
    /// The first where the colors of `against`, pixel by pixel, are dark, the second where they are light.
    Contrast {
        /// As many pixels as there are.
        against: &'a [u8],
        /// On what is dark.
        light: Colour,
        /// On what is light.
        dark: Colour,
    },
}

impl Ink<'_> {
    /// Whether it has a color for each of so many pixels.
    pub(crate) fn covers(self, pixels: usize) -> bool {
        match self {
            Self::One(_) => true,
            Self::Contrast { against, .. } => against.len() == 4 * pixels,
        }
    }
}

/// Brightness, in thousandths of 255, below which a color is dark: there light and dark ink have the same contrast
/// (WCAG 2).
const DARK_BELOW: u32 = 118_000;

/// Whether a color looks dark.
#[must_use]
pub fn is_dark([red, green, blue]: Colour) -> bool {
    299 * u32::from(red) + 587 * u32::from(green) + 114 * u32::from(blue) < DARK_BELOW
}

/// Puts ink onto some pixels, of each of which it covers a part.
///
/// Returns false, and leaves the rest as it is, where there is no such pixel.
#[must_use]
pub fn blend(colours: &mut [u8], pixels: &[u64], cover: &[f32], ink: Ink<'_>) -> bool {
    pixels.len() == cover.len()
        && pixels
            .iter()
            .zip(cover)
            .all(|(pixel, cover)| usize::try_from(*pixel).is_ok_and(|pixel| put(colours, pixel, *cover, ink).is_some()))
}

/// Puts ink onto a part of a pixel, if there is one.
pub(crate) fn put(colours: &mut [u8], pixel: usize, cover: f32, ink: Ink<'_>) -> Option<()> {
    let place = pixel.checked_mul(4)?;
    let under = colour_at(colours, place)?;
    let ink = match ink {
        Ink::One(colour) => colour,
        Ink::Contrast { against, light, dark } => {
            if is_dark(colour_at(against, place)?) {
                light
            } else {
                dark
            }
        }
    };
    for (channel, (under, ink)) in under.into_iter().zip(ink).enumerate() {
        colours[place + channel] = (f32::from(under) * (1.0 - cover) + f32::from(ink) * cover) as u8;
    }
    Some(())
}

fn colour_at(colours: &[u8], place: usize) -> Option<Colour> {
    let four: &[u8] = colours.get(place..place.checked_add(4)?)?;
    Some([four[0], four[1], four[2]])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ink_covers_a_part_of_a_pixel() {
        let mut colours = [10, 20, 30, 255, 100, 100, 100, 255];
        assert!(blend(&mut colours, &[0, 1], &[1.0, 0.25], Ink::One([200, 0, 100])));
        assert_eq!(colours, [200, 0, 100, 255, 125, 75, 100, 255]);
    }

    #[test]
    fn ink_is_light_on_what_is_dark() {
        let against = [0, 0, 0, 255, 255, 255, 255, 255];
        let ink = Ink::Contrast {
            against: &against,
            light: [250; 3],
            dark: [5; 3],
        };
        let mut colours = [9; 8];
        assert!(blend(&mut colours, &[0, 1], &[1.0, 1.0], ink));
        assert_eq!(colours, [250, 250, 250, 9, 5, 5, 5, 9]);
        assert!(is_dark([117; 3]) && !is_dark([118; 3]));
    }

    #[test]
    fn pixels_that_are_not_there_are_refused() {
        let mut colours = [0; 8];
        let ink = Ink::One([255; 3]);
        assert!(!blend(&mut colours, &[2], &[1.0], ink));
        assert!(!blend(&mut colours, &[u64::MAX], &[1.0], ink));
        assert!(!blend(&mut colours, &[0, 1], &[1.0], ink));
        let against = Ink::Contrast {
            against: &[0; 4],
            light: [0; 3],
            dark: [0; 3],
        };
        assert!(!blend(&mut colours, &[1], &[1.0], against));
        assert_eq!(colours, [0; 8]);
    }
}
