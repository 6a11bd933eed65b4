//! Cached plans: a program that redistributes an array once does so in each step.

use std::sync::Arc;

use junctura_copy::{Gather, PlanFingerprint, PlanStore, Unpack};
use junctura_layout::{Element, Layout, Plan, PlanSide};
use junctura_model::Result;

/// Maximum number of cached plans, of each kind.
const KEPT_MAX: usize = 32;
/// Maximum number of runs in all cached plans.
const LISTED_MAX: usize = 1 << 24;

/// The part that one rank requests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WantedPart<'l> {
    /// The layout of the producers.
    pub(crate) from: &'l Arc<Layout>,
    /// The requested layout.
    pub(crate) to: &'l Arc<Layout>,
    pub(crate) origin: &'l [u64],
    pub(crate) rank: u64,
    /// The element type of the producers, and the requested one.
    pub(crate) elements: (Element, Element),
}

impl WantedPart<'_> {
    pub(crate) fn plan(&self) -> Result<Plan> {
        Plan::new(self.from, self.to, self.origin, PlanSide::To, self.rank)
    }

    fn fingerprint(&self) -> PlanFingerprint {
        PlanFingerprint {
            from: self.from.to_string(),
            to: self.to.to_string(),
            origin: self.origin.to_vec(),
            rank: self.rank,
            peer: None,
            elements: self.elements,
        }
    }
}

/// The elements that a rank takes from messages: one message from each peer.
pub(crate) type Messages = Vec<(u64, Unpack)>;

/// See the module.
#[derive(Debug)]
pub(crate) struct PlanCache {
    gathers: PlanStore<Gather>,
    messages: PlanStore<Messages>,
}

impl Default for PlanCache {
    fn default() -> Self {
        Self {
            gathers: PlanStore::new(KEPT_MAX, LISTED_MAX),
            messages: PlanStore::new(KEPT_MAX, LISTED_MAX),
        }
    }
}

impl PlanCache {
    /// Returns the plan to copy from whole pieces. A plan costs as much as the layout claims, so a new one is made only
    /// after `check` has compared the claim with the existing pieces.
    ///
    /// # Errors
    /// Those of `check`, and as [`Plan::new`] and [`Gather::new`].
    pub(crate) fn gather(&self, wanted: &WantedPart<'_>, check: impl FnOnce() -> Result<()>) -> Result<Arc<Gather>> {
        self.gathers.get(wanted.fingerprint(), || {
            check()?;
            let plan = wanted.plan()?;
            let gather = Gather::new(&plan, wanted.elements.0, wanted.elements.1)?;
            Ok((gather, plan.listed()))
        })
    }

    /// Returns the plan to copy from messages; `check` as for [`Self::gather`].
    ///
    /// # Errors
    /// Those of `check`, and as [`Plan::new`] and [`Unpack::new`].
    pub(crate) fn messages(
        &self,
        wanted: &WantedPart<'_>,
        check: impl FnOnce() -> Result<()>,
    ) -> Result<Arc<Messages>> {
        self.messages.get(wanted.fingerprint(), || {
            check()?;
            let plan = wanted.plan()?;
            let unpack = |partner: junctura_layout::PlanPartner| {
                let unpack = Unpack::new(&plan, partner.rank, wanted.elements.0, wanted.elements.1)?;
                Ok((partner.rank, unpack))
            };
            let messages = plan.partners().into_iter().map(unpack).collect::<Result<_>>()?;
            Ok((messages, plan.listed()))
        })
    }
}
