//! Results of plans are cached, since a program that changes its layout once does so each step.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use junctura_layout::Element;
use junctura_model::Result;

/// The inputs of a plan: the same for any memories.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanFingerprint {
    /// The layout of the array, as a text.
    pub from: String,
    /// How it is wanted, as a text.
    pub to: String,
    /// Where that begins.
    pub origin: Vec<u64>,
    /// Whose plan it is.
    pub rank: u64,
    /// The peer, where it is one rank.
    pub peer: Option<u64>,
    /// The types of the elements, before and after.
    pub elements: (Element, Element),
}

/// The results, by their inputs: the most recently used. Can be shared by threads.
pub struct PlanStore<T> {
    count_max: usize,
    weight_max: usize,
    all: Mutex<VecDeque<CacheEntry<T>>>,
}

struct CacheEntry<T> {
    fingerprint: PlanFingerprint,
    made: Arc<T>,
    weight: usize,
}

impl<T> PlanStore<T> {
    /// Keeps so many, which weigh so much together: runs that their plans list, or bytes.
    #[must_use]
    pub fn new(count_max: usize, weight_max: usize) -> Self {
        Self {
            count_max,
            weight_max,
            all: Mutex::default(),
        }
    }

    /// Returns the cached result, or that of `from_plan`, with its weight. Other threads do not wait for it. A result
    /// heavier than the limit for all is not cached.
    ///
    /// # Errors
    /// Those of `from_plan`.
    pub fn get(&self, fingerprint: PlanFingerprint, from_plan: impl FnOnce() -> Result<(T, usize)>) -> Result<Arc<T>> {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(one) = all.iter().position(|one| one.fingerprint == fingerprint)
            && let Some(one) = all.remove(one)
        {
            let made = Arc::clone(&one.made);
            all.push_front(one);
            return Ok(made);
        }
        drop(all);
        let (made, weight) = from_plan()?;
        let made = Arc::new(made);
        if weight > self.weight_max {
            return Ok(made);
        }
        let one = CacheEntry {
            fingerprint,
            made: Arc::clone(&made),
            weight,
        };
        all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.push_front(one);
        let mut sum = 0;
        let mut fits = |one: &CacheEntry<T>| {
            sum += one.weight;
            sum <= self.weight_max
        };
        let fitting = all.iter().take(self.count_max).take_while(|one| fits(one)).count();
        all.truncate(fitting);
        Ok(made)
    }

    /// Keeps nothing of what was made so far.
    pub fn clear(&self) {
        self.all.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

impl<T> fmt::Debug for PlanStore<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Kept({} at most)", self.count_max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use junctura_layout::ElementKind;

    fn of(rank: u64) -> PlanFingerprint {
        PlanFingerprint {
            from: "shape=3".to_owned(),
            to: "shape=3".to_owned(),
            origin: vec![0],
            rank,
            peer: None,
            elements: (ElementKind::F64.into(), ElementKind::F64.into()),
        }
    }

    #[test]
    fn what_was_used_last_is_kept_as_far_as_it_fits() {
        let kept = PlanStore::new(3, 100);
        let made = |rank, weight| {
            let mut is_made = false;
            let got = kept.get(of(rank), || {
                is_made = true;
                Ok((rank, weight))
            });
            assert_eq!(*got.unwrap(), rank);
            is_made
        };
        assert!(made(1, 10) && made(2, 10) && made(3, 10));
        assert!(!made(1, 10) && made(4, 10));
        assert!(
            !made(1, 10) && !made(3, 10) && made(2, 10),
            "the one that nobody used is gone"
        );
        assert!(made(5, 95) && made(3, 10), "they are too large together");
        assert!(made(6, 1000) && made(6, 1000), "what is too large alone is not kept");
        let failed = kept.get(of(7), || {
            Err(junctura_model::Error::new(junctura_model::Code::Io, "", ""))
        });
        assert!(failed.is_err() && made(7, 1));
        kept.clear();
        assert!(made(7, 1));
    }
}
