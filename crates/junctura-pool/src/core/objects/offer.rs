//! Offers: an object comes in, is checked, becomes visible whole, and goes to everyone who wants it.

use junctura_model::Error;
use junctura_wire::fixed::OfferHead;

use crate::core::engine::timers::Nanoseconds;
use crate::core::memory::shortage::MemoryShortage;
use crate::core::objects::identity::ObjectIdentity;
use crate::core::objects::object::ObjectRetention;

/// What a client offers.
#[derive(Clone, Copy)]
pub(in crate::core) struct OfferContent<'a> {
    pub(in crate::core) head: OfferHead,
    pub(in crate::core) record: &'a [u8],
    pub(in crate::core) inline: &'a [u8],
}

/// An offer that waits for memory. Later offers of the same client wait behind it, so that their order is kept.
pub(in crate::core) struct WaitingOffer {
    pub(in crate::core) number: u64,
    /// The request of its client that has its bundle open, if it is for one.
    pub(in crate::core) bundle: Option<u64>,
    pub(in crate::core) head: OfferHead,
    pub(in crate::core) record: Vec<u8>,
    pub(in crate::core) inline: Vec<u8>,
    /// Requests that wait until this offer and all before it are answered.
    pub(in crate::core) syncs: Vec<u64>,
    /// When it began to wait.
    pub(in crate::core) since: Nanoseconds,
}

/// What an offer that waits takes.
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
    /// 0: it is staged.
    pub(in crate::core) sequence: u64,
}

/// What an offer says of itself.
pub(in crate::core) struct ExaminedOffer {
    pub(in crate::core) identity: ObjectIdentity,
    pub(in crate::core) keep: ObjectRetention,
}

pub(in crate::core) enum OfferRefusal {
    /// It waits until there is enough of this.
    Wait(MemoryShortage),
    Failed(Error),
}

impl From<Error> for OfferRefusal {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}
