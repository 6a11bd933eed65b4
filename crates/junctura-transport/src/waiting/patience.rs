//! Looking for a short time before sleeping.

use std::time::{Duration, Instant};

use junctura_model::Result;

/// One look takes less than a microsecond on a core of its own.
const LOOK_MAX: Duration = Duration::from_micros(5);

/// Whether it pays to look before sleeping, by what the last looks found.
///
/// Where the other side answers at once it does: both are spared a wake-up. Where that side has no core to answer on, looking keeps its
/// core busy: so the core is offered to other threads between two looks, and what is found after one had it does not count.
#[derive(Debug)]
pub struct LookPatience {
    /// The part of the last looks that found something in time, in 256ths.
    found: u32,
    waits: u32,
}

impl Default for LookPatience {
    fn default() -> Self {
        Self { found: 256, waits: 0 }
    }
}

impl LookPatience {
    /// Looking continues while it finds something at least one time in so many.
    const ONE_IN: u32 = 4;
    /// Else one wait in so many begins with a look.
    const SELDOM: u32 = 64;

    /// Looks for at most `time`, if that has been worth it; returns whether something was found. Called before each wait.
    ///
    /// # Errors
    /// Those of the look.
    pub fn look_for(&mut self, time: Duration, mut look: impl FnMut() -> Result<bool>) -> Result<bool> {
        if time.is_zero() || !self.has_some() {
            return Ok(false);
        }
        let began = Instant::now();
        let (mut now, mut found, mut kept_core) = (began, false, true);
        while !found && now - began < time {
            found = look()?;
            if !found {
                offer_core();
            }
            let before = std::mem::replace(&mut now, Instant::now());
            kept_core &= now - before < LOOK_MAX;
        }
        self.looked(found && kept_core);
        Ok(found)
    }

    fn has_some(&mut self) -> bool {
        self.waits = self.waits.wrapping_add(1);
        self.found * Self::ONE_IN >= 256 || self.waits.is_multiple_of(Self::SELDOM)
    }

    fn looked(&mut self, found: bool) {
        self.found = (self.found * 7 + if found { 256 } else { 0 }) / 8;
    }
}

/// Lets another thread run that waits for this core, as one that was just woken. It returns at once if there is none.
#[expect(
    clippy::disallowed_methods,
    reason = "this is no wait for a condition: the look has its own end"
)]
fn offer_core() {
    std::thread::yield_now();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looking_ends_where_it_finds_nothing_and_begins_again_where_it_does() {
        let mut patience = LookPatience::default();
        let mut looks = |found: bool| {
            let mut count = 0;
            for _ in 0..10 * LookPatience::SELDOM {
                if patience.has_some() {
                    patience.looked(found);
                    count += 1;
                }
            }
            count
        };
        assert!(looks(false) < 32);
        assert!(looks(true) > 8 * LookPatience::SELDOM);
    }

    #[test]
    fn what_is_found_after_another_thread_had_the_core_does_not_count() {
        let mut patience = LookPatience::default();
        let full = patience.found;
        let late = || {
            let began = Instant::now();
            while began.elapsed() < LOOK_MAX {}
            Ok(true)
        };
        assert_eq!(patience.look_for(Duration::from_secs(1), late), Ok(true));
        assert!(patience.found < full);
        assert_eq!(patience.look_for(Duration::ZERO, || unreachable!()), Ok(false));
    }
}
