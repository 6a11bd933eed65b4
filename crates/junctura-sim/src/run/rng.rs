//! Random choices that follow from a seed: the same on every machine and with every version of every library.

/// A small generator (splitmix64).
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// The choices of one step of one run. A step's choices do not depend on how many choices the steps before it made, so
    /// that steps can be left out of a failing run and the others stay what they were.
    #[must_use]
    pub fn of_step(seed: u64, step: u64) -> Self {
        let mut rng = Self(seed ^ step.wrapping_mul(0xd1b5_4a32_d192_ed03));
        rng.next();
        rng
    }

    /// 64 random bits.
    #[expect(clippy::should_implement_trait, reason = "numbers without end are no iterator")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `count`; 0 when there is none.
    pub fn below(&mut self, count: usize) -> usize {
        if count == 0 {
            return 0;
        }
        ((u128::from(self.next()) * count as u128) >> 64) as usize
    }

    /// A number from `low` up to and including `high`.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below((high - low + 1) as usize) as u64
    }

    /// True in so many of a hundred cases.
    pub fn percent(&mut self, chance: usize) -> bool {
        self.below(100) < chance
    }

    /// One of these.
    pub fn pick<T: Clone>(&mut self, among: &[T]) -> Option<T> {
        among.get(self.below(among.len())).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::Rng;

    #[test]
    fn numbers_stay_within_bounds_and_repeat() {
        let mut rng = Rng::of_step(7, 3);
        let first: Vec<u64> = (0..100).map(|_| rng.between(2, 5)).collect();
        assert!(first.iter().all(|number| (2..=5).contains(number)));
        assert!((2..=5).all(|number| first.contains(&number)));
        let mut again = Rng::of_step(7, 3);
        assert!(first.iter().all(|&number| again.between(2, 5) == number));
        assert_eq!(rng.below(0), 0);
    }
}
