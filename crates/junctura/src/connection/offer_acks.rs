//! The offers of one conversation, from their sending until their last acknowledgement.
//!
//! ```text
//!  sent --Offered--> acknowledged: staged, or visible
//!   |  '---Offered--> visible, and to be durable --Done--> acknowledged
//!   '-----Failed------------------'---------------Failed--> failed
//! ```
//!
//! Offers are acknowledged in the order in which they were sent: an offer that waits for a disk delays those behind it.

use std::collections::VecDeque;

use junctura_model::Result;

use crate::connection::in_flight::SlotId;

/// The state of an offer.
#[derive(Debug)]
enum BundleReplies {
    Nothing,
    /// Visible under this sequence number. Its memory belongs to the pool.
    Visible(u64),
    All(Result<u64>),
}

/// An unacknowledged offer.
#[derive(Debug)]
struct SentOffer {
    request: u64,
    slot: Option<SlotId>,
    is_durable: bool,
    heard: BundleReplies,
}

/// See the module. Request numbers increase.
#[derive(Debug, Default)]
pub(crate) struct UnacknowledgedOffers {
    sent: VecDeque<SentOffer>,
}

impl UnacknowledgedOffers {
    /// Records an offer until it is acknowledged. A durable offer gets an additional answer when it is visible.
    pub(crate) fn push(&mut self, request: u64, slot: Option<SlotId>, is_durable: bool) {
        self.sent.push_back(SentOffer {
            request,
            slot,
            is_durable,
            heard: BundleReplies::Nothing,
        });
    }

    /// Handles the answer to an offer: a sequence number (0: it is staged), or an error. Returns the slot that belongs
    /// to the client again, if any.
    pub(crate) fn answer(&mut self, request: u64, outcome: Result<u64>) -> Option<SlotId> {
        let sent = self.find(request)?;
        let slot = sent.slot.take().filter(|_| outcome.is_err());
        sent.heard = match outcome {
            // A staged member becomes durable with its bundle.
            Ok(sequence) if sent.is_durable && sequence > 0 => BundleReplies::Visible(sequence),
            outcome => BundleReplies::All(outcome),
        };
        slot
    }

    /// Records that an offer's object is archived. False: no durable offer with this number is waiting.
    pub(crate) fn archived(&mut self, request: u64) -> bool {
        let Some(sent) = self.find(request) else { return false };
        let BundleReplies::Visible(sequence) = sent.heard else {
            return false;
        };
        sent.heard = BundleReplies::All(Ok(sequence));
        true
    }

    /// Returns whether an answer to this offer is outstanding.
    pub(crate) fn awaits(&mut self, request: u64) -> bool {
        self.find(request).is_some()
    }

    /// Returns the next acknowledgement, if it has arrived.
    pub(crate) fn pop(&mut self) -> Option<Result<u64>> {
        let first = self
            .sent
            .pop_front_if(|first| matches!(first.heard, BundleReplies::All(_)))?;
        match first.heard {
            BundleReplies::All(outcome) => Some(outcome),
            BundleReplies::Nothing | BundleReplies::Visible(_) => None,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.sent.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.sent.clear();
    }

    fn find(&mut self, request: u64) -> Option<&mut SentOffer> {
        // The server answers offers in order, so it is nearly always the first one.
        let at = match self.sent.front() {
            Some(first) if first.request == request => 0,
            _ => self.sent.binary_search_by_key(&request, |sent| sent.request).ok()?,
        };
        let sent = &mut self.sent[at];
        (!matches!(sent.heard, BundleReplies::All(_))).then_some(sent)
    }
}

#[cfg(test)]
mod tests {
    use junctura_model::{Code, Error};

    use super::*;

    const SLOT: SlotId = SlotId { segment: 1, slot: 2 };

    fn refused() -> Result<u64> {
        Err(Error::new(Code::Io, "durability", "the disk is full"))
    }

    #[test]
    fn acknowledgements_come_in_the_order_of_the_offers() {
        let mut offers = UnacknowledgedOffers::default();
        for request in 1..=3 {
            offers.push(request, None, request == 1);
        }
        assert_eq!(offers.answer(1, Ok(11)), None);
        offers.answer(3, refused());
        offers.answer(2, Ok(12));
        assert!(offers.pop().is_none(), "the first one waits for the disk");
        assert!(offers.archived(1));
        assert_eq!(offers.pop(), Some(Ok(11)));
        assert_eq!(offers.pop(), Some(Ok(12)));
        assert_eq!(offers.pop().unwrap().unwrap_err().code(), Code::Io);
        assert!(offers.is_empty() && offers.pop().is_none());
    }

    #[test]
    fn memory_comes_back_only_where_nothing_became_visible() {
        let mut offers = UnacknowledgedOffers::default();
        offers.push(1, Some(SLOT), true);
        offers.push(2, Some(SLOT), true);
        assert_eq!(offers.answer(1, refused()), Some(SLOT));
        assert_eq!(offers.answer(2, Ok(7)), None);
        assert!(offers.awaits(2));
        assert_eq!(offers.answer(2, refused()), None, "it is visible, and not archived");
        assert!(!offers.awaits(2));
    }

    #[test]
    fn what_is_staged_is_acknowledged_at_once() {
        let mut offers = UnacknowledgedOffers::default();
        offers.push(1, None, true);
        offers.answer(1, Ok(0));
        assert_eq!(offers.pop(), Some(Ok(0)));
    }

    #[test]
    fn what_nobody_expects_changes_nothing() {
        let mut offers = UnacknowledgedOffers::default();
        offers.push(5, None, false);
        assert!(!offers.archived(5), "it has not been acknowledged, and is not durable");
        offers.answer(4, Ok(1));
        offers.answer(5, Ok(2));
        offers.answer(5, Ok(3));
        assert_eq!(offers.pop(), Some(Ok(2)));
    }
}
