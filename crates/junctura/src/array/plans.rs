//! Plans are kept, since what changes its layout once does so each step.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use junctura_copy::Gather;
use junctura_layout::{Element, Layout, Plan, Side};
use junctura_model::Result;

/// So many are kept.
const KEPT_MAX: usize = 32;

/// What a plan is made from: it is the same wherever these are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fingerprint {
    from: String,
    to: String,
    origin: Vec<u64>,
    rank: u64,
    elements: (Element, Element),
}

/// See the module.
#[derive(Default)]
pub(crate) struct Plans(Mutex<VecDeque<(Fingerprint, Arc<Gather>)>>);

impl Plans {
    /// What `rank` of `to` takes from the ranks of `from`.
    ///
    /// # Errors
    /// As [`Plan::new`] and [`Gather::new`].
    pub(crate) fn gather(
        &self,
        from: &Arc<Layout>,
        to: &Arc<Layout>,
        origin: &[u64],
        rank: u64,
        elements: (Element, Element),
    ) -> Result<Arc<Gather>> {
        let fingerprint = Fingerprint {
            from: from.to_string(),
            to: to.to_string(),
            origin: origin.to_vec(),
            rank,
            elements,
        };
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, gather)) = kept.iter().find(|(known, _)| *known == fingerprint) {
            return Ok(Arc::clone(gather));
        }
        drop(kept);
        let plan = Plan::new(from, to, origin, Side::To, rank)?;
        let gather = Arc::new(Gather::new(&plan, elements.0, elements.1)?);
        kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.truncate(KEPT_MAX - 1);
        kept.push_front((fingerprint, Arc::clone(&gather)));
        Ok(gather)
    }
}

impl fmt::Debug for Plans {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Plans")
    }
}
