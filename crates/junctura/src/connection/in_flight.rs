//! Requests in flight: a mailbox for every conversation with the server.
//!
//! A request number is `counter << 20 | mailbox`. The counter increases with every request of the connection, so
//! numbers increase and are never reused; the mailbox is found without a search. Mailboxes are reused for later
//! conversations: a late message for an earlier conversation is recognized by its smaller counter.
//!
//! ```text
//!  vacant --open--> open --close--> vacant             whoever asked has taken the answer
//!                    |  abandon
//!                    v
//!                 draining ----last answer----> vacant  nobody takes it any more; what comes is given back
//! ```

use std::collections::VecDeque;
use std::mem;
use std::os::fd::OwnedFd;
use std::task::Waker;

use junctura_model::{Code, Error, Result};

use crate::connection::TaskWakers;
use crate::connection::offer_acks::UnacknowledgedOffers;
use crate::object::ArrivedObject;

const BOX_BITS: u32 = 20;
const BOXES_MAX: usize = 1 << BOX_BITS;

/// A server message in one conversation, apart from acknowledgements of offers.
#[derive(Debug)]
pub(crate) enum ServerMessage {
    Delivered(ArrivedObject),
    Live,
    /// The body of the frame.
    Gap(Vec<u8>),
    Page {
        last: bool,
        entries: Vec<u8>,
    },
    /// The body of the frame.
    Event(Vec<u8>),
    Done(u64),
    Completed {
        first: u64,
        objects: u64,
        more: bool,
        /// Requests and sequence numbers.
        versions: Vec<(u64, u64)>,
    },
    /// The body of the frame.
    Bundled(Vec<u8>),
    /// The body of the frame.
    Tallied(Vec<u8>),
    /// The body of an answer about reasons.
    Reasons(Vec<u8>),
    /// Packed elements of an array.
    Packed {
        last: bool,
        checksum: Option<u32>,
        bytes: Vec<u8>,
    },
    Stats(String),
    /// The page of the server's numbers, and its bytes.
    BoardPage(OwnedFd, u64),
    Began(u64),
    Leased,
    Ended(Error),
    Failed(Error),
}

impl ServerMessage {
    /// Returns whether converting it takes long: see [`ArrivedObject::is_slow`].
    pub(crate) fn is_slow(&self) -> bool {
        matches!(self, ServerMessage::Delivered(arrived) if arrived.is_slow())
    }

    /// Returns whether it is the last message in a conversation of this kind.
    fn is_last(&self, kind: ExchangeKind) -> bool {
        match self {
            ServerMessage::Ended(_) | ServerMessage::Failed(_) | ServerMessage::Page { last: true, .. } => true,
            ServerMessage::Packed { last, .. } => *last,
            _ => kind == ExchangeKind::Once,
        }
    }
}

/// The kinds of conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExchangeKind {
    /// One request, one answer.
    Once,
    /// Answers until one side ends it.
    Stream,
    /// Any number of offers, each acknowledged.
    Offers,
}

/// A slot of a segment that this client leases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlotId {
    pub(crate) segment: u32,
    pub(crate) slot: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RequestState {
    Vacant,
    Open,
    Draining,
}

#[derive(Debug)]
pub(crate) struct RequestSlot {
    state: RequestState,
    talk: ExchangeKind,
    /// The number of the conversation's first request.
    first: u64,
    letters: VecDeque<ServerMessage>,
    offers: UnacknowledgedOffers,
    acks: VecDeque<Result<u64>>,
    /// Tasks that wait for messages.
    pub(crate) wakers: TaskWakers,
    /// The conversation that ends together with this one.
    stops: Option<u64>,
    /// The poll after which a message arrived that no poll has returned; see [`RequestTable::asked`].
    untold: Option<u64>,
    /// Whether it is listed in [`RequestTable::untold`].
    is_listed: bool,
    /// The last poll.
    asked: u64,
}

impl RequestSlot {
    fn vacant() -> Self {
        Self {
            state: RequestState::Vacant,
            talk: ExchangeKind::Once,
            first: 0,
            letters: VecDeque::new(),
            offers: UnacknowledgedOffers::default(),
            acks: VecDeque::new(),
            wakers: TaskWakers::default(),
            stops: None,
            untold: None,
            is_listed: false,
            asked: 0,
        }
    }

    /// Takes the next message.
    pub(crate) fn take(&mut self) -> Option<ServerMessage> {
        self.untold = None;
        self.letters.pop_front()
    }

    /// Returns the next message without taking it.
    pub(crate) fn peek(&self) -> Option<&ServerMessage> {
        self.letters.front()
    }

    /// Swaps all messages with `batch`, which is empty; returns whether there are any.
    pub(crate) fn take_all(&mut self, batch: &mut VecDeque<ServerMessage>) -> bool {
        self.untold = None;
        mem::swap(&mut self.letters, batch);
        !batch.is_empty()
    }

    /// Swaps all acknowledgements with `batch`, which is empty; returns whether there are any.
    pub(crate) fn take_acks(&mut self, batch: &mut VecDeque<Result<u64>>) -> bool {
        self.untold = None;
        mem::swap(&mut self.acks, batch);
        !batch.is_empty()
    }

    /// Records an offer until it is acknowledged.
    pub(crate) fn sent(&mut self, request: u64, slot: Option<SlotId>, is_durable: bool) {
        self.offers.push(request, slot, is_durable);
    }

    fn has_mail(&self) -> bool {
        !self.letters.is_empty() || !self.acks.is_empty()
    }
}

/// All mailboxes of a connection.
#[derive(Debug, Default)]
pub(crate) struct RequestTable {
    boxes: Vec<RequestSlot>,
    vacant: Vec<usize>,
    counter: u64,
    /// An event loop waits for the descriptor, and is notified of messages.
    is_watched: bool,
    /// Mailboxes with messages that may not have been reported to the event loop.
    untold: Vec<usize>,
    /// The number of polls that found nothing.
    questions: u64,
    /// Tasks to be woken when no lock is held.
    pub(crate) woken: Vec<Waker>,
}

impl RequestTable {
    /// Begins a conversation; its number is that of its first request.
    pub(crate) fn open(&mut self, talk: ExchangeKind) -> Result<u64> {
        let index = match self.vacant.pop() {
            Some(index) => index,
            None => self.build()?,
        };
        let number = self.next(index as u64);
        let mailbox = &mut self.boxes[index];
        mailbox.state = RequestState::Open;
        mailbox.talk = talk;
        mailbox.first = number;
        mailbox.stops = None;
        mailbox.untold = None;
        mailbox.asked = 0;
        Ok(number)
    }

    fn build(&mut self) -> Result<usize> {
        if self.boxes.len() >= BOXES_MAX {
            let cause = format!("{BOXES_MAX} are waiting for answers on this connection");
            return Err(Error::new(Code::LimitExceeded, "requests", cause));
        }
        if self.boxes.is_empty() {
            // Never opened: requests without an answer have its number.
            self.boxes.push(RequestSlot::vacant());
        }
        self.boxes.push(RequestSlot::vacant());
        Ok(self.boxes.len() - 1)
    }

    /// Returns the number of another request in a conversation (0: of a request without an answer).
    pub(crate) fn next(&mut self, conversation: u64) -> u64 {
        self.counter += 1;
        self.counter << BOX_BITS | index(conversation) as u64
    }

    /// Returns the mailbox for an answer to `request`.
    pub(crate) fn get(&mut self, request: u64) -> Option<&mut RequestSlot> {
        let mailbox = self.boxes.get_mut(index(request));
        mailbox.filter(|mailbox| mailbox.state != RequestState::Vacant && request >= mailbox.first)
    }

    /// Returns whether a wait for this conversation ends: the mailbox has a message, or no more can arrive.
    pub(crate) fn is_due(&self, conversation: u64) -> bool {
        let mailbox = self.boxes.get(index(conversation));
        let is_open = |mailbox: &&RequestSlot| mailbox.state == RequestState::Open && mailbox.first <= conversation;
        mailbox.filter(is_open).is_none_or(RequestSlot::has_mail)
    }

    /// Delivers a message to its mailbox; returns it if the request is no longer waited for.
    pub(crate) fn deliver(&mut self, request: u64, letter: ServerMessage) -> Option<ServerMessage> {
        let Some(mailbox) = self.get(request) else {
            return Some(letter);
        };
        if mailbox.state == RequestState::Open {
            mailbox.letters.push_back(letter);
            self.came(index(request));
            return None;
        }
        if letter.is_last(mailbox.talk) {
            self.close(request);
        }
        Some(letter)
    }

    /// Handles the answer to an offer; returns the slot that belongs to the client again, if any.
    pub(crate) fn acknowledge(&mut self, request: u64, outcome: Result<u64>) -> Option<SlotId> {
        let slot = self.get(request)?.offers.answer(request, outcome);
        self.pass_acks_on(request);
        slot
    }

    /// Handles a completion; true: the object of a durable offer was archived.
    pub(crate) fn archived(&mut self, request: u64) -> bool {
        let is_archived = self
            .get(request)
            .is_some_and(|mailbox| mailbox.talk == ExchangeKind::Offers && mailbox.offers.archived(request));
        if is_archived {
            self.pass_acks_on(request);
        }
        is_archived
    }

    fn pass_acks_on(&mut self, request: u64) {
        let Some(mailbox) = self.get(request) else { return };
        let is_open = mailbox.state == RequestState::Open;
        let mut came = false;
        while let Some(ack) = mailbox.offers.pop() {
            came = true;
            if is_open {
                mailbox.acks.push_back(ack);
            }
        }
        if is_open && came {
            self.came(index(request));
        } else if !is_open && mailbox.offers.is_empty() {
            self.close(request);
        }
    }

    /// Records that an event loop waits from now on.
    pub(crate) fn watch(&mut self) {
        self.is_watched = true;
        for at in 0..self.boxes.len() {
            if self.boxes[at].has_mail() {
                self.came(at);
            }
        }
    }

    fn came(&mut self, at: usize) {
        let mailbox = &mut self.boxes[at];
        if !mailbox.wakers.is_empty() {
            mailbox.wakers.wake_into(&mut self.woken);
        }
        if self.is_watched {
            mailbox.untold.get_or_insert(self.questions);
            if !mem::replace(&mut mailbox.is_listed, true) {
                self.untold.push(at);
            }
        }
    }

    /// Records that an event loop has polled here (`None`: takes all messages now) and found nothing. Returns whether
    /// it may wait again: messages that arrived meanwhile for other conversations that it polls must be reported first.
    /// It polls in rounds, so a conversation that it has not polled since its last poll here does not belong to it.
    pub(crate) fn asked(&mut self, request: Option<u64>) -> bool {
        self.questions += 1;
        let now = self.questions;
        match request.map(|request| self.get(request)) {
            None => self.keep_untold(|_| false),
            Some(None) => self.keep_untold(|_| true),
            Some(Some(mailbox)) => {
                let before = mem::replace(&mut mailbox.asked, now);
                self.keep_untold(|came| came >= before)
            }
        }
    }

    fn keep_untold(&mut self, keeps: impl Fn(u64) -> bool) -> bool {
        let Self { boxes, untold, .. } = self;
        untold.retain(|&at| {
            let mailbox = &mut boxes[at];
            mailbox.untold = mailbox.untold.filter(|&came| keeps(came));
            mailbox.is_listed = mailbox.untold.is_some();
            mailbox.is_listed
        });
        untold.is_empty()
    }

    /// Returns whether an answer to this offer is outstanding.
    pub(crate) fn is_unacknowledged(&mut self, request: u64) -> bool {
        self.get(request).is_some_and(|mailbox| mailbox.offers.awaits(request))
    }

    /// Closes a conversation that has ended on both sides.
    pub(crate) fn close(&mut self, request: u64) {
        let Some(mailbox) = self.get(request) else { return };
        mailbox.state = RequestState::Vacant;
        let has_tasks = !mailbox.wakers.is_empty();
        mailbox.letters.clear();
        mailbox.acks.clear();
        mailbox.offers.clear();
        mailbox.untold = None;
        let stops = mailbox.stops.take();
        if has_tasks {
            self.wake_tasks_of(request);
        }
        self.vacant.push(index(request));
        if let Some(stopped) = stops {
            self.close(stopped);
        }
    }

    /// Abandons a conversation. Returns its messages, whose objects must be given back, and whether the server has more
    /// to send.
    pub(crate) fn abandon(&mut self, request: u64) -> (VecDeque<ServerMessage>, bool) {
        let Some(mailbox) = self.get(request) else {
            return (VecDeque::new(), false);
        };
        mailbox.state = RequestState::Draining;
        let has_tasks = !mailbox.wakers.is_empty();
        mailbox.acks.clear();
        mailbox.untold = None;
        let letters = mem::take(&mut mailbox.letters);
        let talk = mailbox.talk;
        let over = match talk {
            ExchangeKind::Offers => mailbox.offers.is_empty(),
            ExchangeKind::Once | ExchangeKind::Stream => letters.back().is_some_and(|letter| letter.is_last(talk)),
        };
        if has_tasks {
            self.wake_tasks_of(request);
        }
        if over {
            self.close(request);
        }
        (letters, !over)
    }

    /// Wakes tasks of a conversation that gets no more messages, so that they find the reason.
    fn wake_tasks_of(&mut self, request: u64) {
        let Self { boxes, woken, .. } = self;
        boxes[index(request)].wakers.wake_into(woken);
    }

    /// Marks all tasks to be woken.
    pub(crate) fn wake_all_tasks(&mut self) {
        for mailbox in &mut self.boxes {
            mailbox.wakers.wake_into(&mut self.woken);
        }
    }

    /// Abandons all conversations; returns all their messages.
    pub(crate) fn abandon_all(&mut self) -> Vec<ServerMessage> {
        self.boxes
            .iter_mut()
            .flat_map(|mailbox| {
                mailbox.untold = None;
                mailbox.letters.drain(..)
            })
            .collect()
    }

    /// Begins the conversation that ends `stopped`: both close together.
    pub(crate) fn open_stop(&mut self, stopped: u64) -> Result<u64> {
        let number = self.open(ExchangeKind::Once)?;
        if let Some(mailbox) = self.get(number) {
            mailbox.stops = Some(stopped);
        }
        Ok(number)
    }
}

fn index(request: u64) -> usize {
    (request & (BOXES_MAX as u64 - 1)) as usize
}
