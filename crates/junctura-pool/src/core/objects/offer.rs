//! Offers: an object is received, checked, made visible as a whole, and delivered to all matching interests.

use junctura_model::Error;
use junctura_wire::fixed::OfferHead;

use crate::core::engine::timers::Nanoseconds;
use crate::core::memory::shortage::MemoryShortage;
use crate::core::objects::identity::ObjectIdentity;
use crate::core::objects::object::ObjectRetention;

/// The content of an offer.
#[derive(Clone, Copy)]
pub(in crate::core) struct OfferContent<'a> {
    pub(in crate::core) head: OfferHead,
    pub(in crate::core) record: &'a [u8],
    pub(in crate::core) inline: &'a [u8],
}

/// An offer that waits for memory. Later offers of the same client wait behind it, so that their order is kept.
pub(in crate::core) struct WaitingOffer {
    pub(in crate::core) number: u64,
    /// The request of its client that has its bundle open, if the offer is for one.
    pub(in crate::core) bundle: Option<u64>,
    pub(in crate::core) head: OfferHead,
    pub(in crate::core) record: Vec<u8>,
    pub(in crate::core) inline: Vec<u8>,
    /// Syncs that wait until this offer and all earlier ones are answered.
    pub(in crate::core) syncs: Vec<u64>,
    /// When it began to wait.
    pub(in crate::core) since: Nanoseconds,
}

/// Returns the bytes that a waiting offer takes.
pub(in crate::core) fn waiting_bytes(record: &[u8], inline: &[u8]) -> usize {
    size_of::<WaitingOffer>() + record.len() + inline.len()
}

impl WaitingOffer {
    pub(in crate::core) fn bytes(&self) -> usize {
        waiting_bytes(&self.record, &self.inline)
    }

    pub(in crate::core) fn content(&self) -> OfferContent<'_> {
        OfferContent {
            head: self.head,
            record: &self.record,
            inline: &self.inline,
        }
    }
}

/// The outcome of an offer.
#[derive(Clone, Copy)]
pub(in crate::core) struct OfferOutcome {
    pub(in crate::core) object: u32,
    /// 0 if it is staged.
    pub(in crate::core) sequence: u64,
}

/// The attributes and options of an offer, checked.
pub(in crate::core) struct ExaminedOffer {
    pub(in crate::core) identity: ObjectIdentity,
    pub(in crate::core) keep: ObjectRetention,
    /// The place of its producer's component.
    pub(in crate::core) component: u8,
}

pub(in crate::core) enum OfferRefusal {
    /// It waits for this resource.
    Wait(MemoryShortage),
    Failed(Error),
}

impl From<Error> for OfferRefusal {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}
