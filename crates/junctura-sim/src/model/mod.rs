//! The reference model: the promises of the design, implemented a second time and as plainly as possible.
//!
//! It shares no code with the core: no index, no slab, no incremental sorting, no counters that are kept up to date; it
//! scans everything each time. For each event (a request that the server read, a connection that ended, time that passed)
//! it first changes its own state as the design requires, then reads the core's messages and objects to each that is not
//! due, and at last objects to each due message that is missing.
//!
//! ```text
//!   apply the event ──► what follows from it ──► each thing said: is it due? ──► is anything due and not said?
//!                       (retention, withdraws,   (follow queues, answers,        (stalled follows, waiting offers,
//!                        payloads given back)     gaps, events, memory)           payloads not given back)
//! ```
//! Where the design leaves the server free (which of two clients that wait for memory is first, how many objects one gap
//! names), the model accepts the core's message as the answer.

mod apply;
mod drain;
mod finish;
mod memory;
mod objects;
mod observe;
mod readers;
mod sync;
mod tally;
mod untold;

pub use memory::spill::DISK_PAUSE;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

use junctura_model::Code;

use crate::clients::requests::{Ask, Offer, Place, Terms};
use crate::run::universe::{Key, Order, Query, Universe};
use crate::world::recorder::{Job, Recorder};

/// A client and the number of one of its requests.
pub type Number = (u32, u64);

/// The parts of a pool's configuration that matter here.
#[derive(Clone, Debug)]
pub struct Rules {
    /// Bytes of all payload memory.
    pub budget_bytes: u64,
    /// Bytes of the file tier, if there is one.
    pub spill_bytes: Option<u64>,
    /// The largest payload inside a message.
    pub inline_bytes_max: u64,
    /// Segments of one client.
    pub segments_per_client: usize,
    /// Unreleased deliveries of one client.
    pub held_per_client: usize,
    /// Unanswered requests of one client.
    pub requests_per_client: usize,
    /// Offers of one client that wait for memory.
    pub waiting_offers_per_client: usize,
    /// The most undelivered objects of one follow.
    pub queued_per_follow: usize,
    /// Bytes of events that a client has not read.
    pub event_backlog_bytes: usize,
    /// Bad requests of one client.
    pub errors_per_client: u32,
    /// Requirements with a name.
    pub named_requirements: usize,
    /// How long a requirement may do nothing while others wait.
    pub stuck_after_ns: u64,
    /// How long a lease that waits keeps later ones waiting, after smaller ones have passed it.
    pub lease_first_for_ns: u64,
    /// How long bundles stay without an opener.
    pub orphan_timeout_ns: u64,
    /// How many objects are removed in one event before others get their turn.
    pub leaving_at_once: usize,
    /// How many interests an object reaches at once.
    pub told_at_once: usize,
    /// A change of more objects is done in parts.
    pub changed_at_once: usize,
    /// In a pool with more visible objects, requests that look at them are prepared.
    pub looked_at_once: usize,
    /// The pool is for so many programs, and ends with them; 0: it does not.
    pub components: usize,
    /// Keys with a tombstone.
    pub tombstones: usize,
    /// The same, of one dataset.
    pub tombstones_per_dataset: usize,
    /// How long they are remembered.
    pub tombstone_age_ns: u64,
}

/// The leases that have overtaken a waiting one.
#[derive(Clone, Copy, Debug)]
struct Passed {
    lease: Number,
    bytes: u64,
    /// When the last one passed it.
    since: u64,
}

/// Leases that pass the first one that waits.
#[derive(Clone, Copy, Debug, Default)]
struct Passing {
    passed: Option<Passed>,
    /// The core lets none pass any more, after the event that is judged.
    is_over: bool,
}

/// The final state of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It can be found.
    Visible,
    /// A newer one took its place.
    Superseded,
    /// It was withdrawn.
    Withdrawn,
    /// Its retention ended.
    Expired,
    /// It left before that: a store has it, and memory was short.
    Archived,
}

impl Fate {
    /// Returns the name in gaps.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Visible => "visible",
            Self::Superseded => "superseded",
            Self::Withdrawn => "withdrawn",
            Self::Expired => "expired",
            Self::Archived => "archived",
        }
    }
}

/// One version of one object, from its offer to the end of the run.
#[derive(Clone, Debug)]
pub struct Object {
    /// Its number.
    pub sequence: u64,
    /// The offer.
    pub offer: Offer,
    /// The client that offered it.
    pub producer: u32,
    /// Its fate.
    pub fate: Fate,
    /// The event in which it stopped being visible, or owed to some requirement; 0 before.
    touched_in: u64,
    /// A client has reported that a store has it.
    is_archived: bool,
    releases_left: Option<u32>,
    /// Bits of the names that it waits for and that do not exist yet.
    absent: u8,
    /// When its time is over, if it has one and the server has not noticed yet.
    until: Option<u64>,
    released_by: BTreeSet<u32>,
    holders: u32,
    owed: u32,
    freed: bool,
}

/// A key with a tombstone.
#[derive(Clone, Debug)]
struct Tombstone {
    key: usize,
    /// 0: it was never offered, since nothing wanted it.
    sequence: u64,
    buried: u64,
    /// Attribute `size` of what was not offered.
    size: Option<i64>,
}

#[derive(Clone, Debug)]
struct Held {
    sequence: u64,
    follow: Option<u64>,
    requirement: Option<Number>,
    /// It was released, and its payload is still read.
    is_released: bool,
}

#[derive(Clone, Debug)]
struct WaitingOffer {
    number: u64,
    /// The request that has its bundle open.
    bundle: Option<u64>,
    offer: Offer,
    deadline: Option<u64>,
}

#[derive(Clone, Debug, Default)]
struct Client {
    known: bool,
    /// It joined while the pool drained.
    is_newcomer: bool,
    /// The program that it belongs to.
    component: Option<usize>,
    offer_timeout: Option<u64>,
    waiting: VecDeque<WaitingOffer>,
    /// The names to which it gave a number: their bits.
    consumers: Vec<u8>,
    errors: u32,
}

#[derive(Clone, Debug)]
struct Segment {
    owner: Option<u32>,
    bytes: u64,
    slot_bytes: u64,
    occupied: BTreeMap<u32, u64>,
}

/// A follow.
#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is another property of a follow")]
struct Following {
    query: Query,
    window: u32,
    in_flight: u32,
    /// When its reader released something last.
    progress: u64,
    via: Option<Number>,
    /// The newest number when it became a member of the group through which it receives.
    joined: Option<u64>,
    until_live: bool,
    said_live: bool,
    /// It was to end after catching up, and is live: it ends with the contents of its queue.
    is_closing: bool,
    /// Objects returned to it in the event in which it became live: before or after that.
    perhaps: BTreeSet<u64>,
    /// It is ended in this event; replies sent to it before that are judged later.
    is_over: bool,
    /// Gaps of objects that were removed while its reader was not connected: sent before anything else.
    missed: VecDeque<u64>,
    first: VecDeque<u64>,
    live: VecDeque<u64>,
    given: BTreeSet<u64>,
}

impl Following {
    /// Whether objects wait for their turn.
    fn has_queue(&self) -> bool {
        !(self.first.is_empty() && self.live.is_empty())
    }
}

/// A requirement: of a client's request, or of no client ([`NOBODY`]) where it has a name.
#[derive(Clone, Debug)]
struct Requirement {
    terms: Terms,
    /// The objects that it is owed, and how many clients hold each.
    owed: BTreeMap<u64, u32>,
    /// The part that a client held when it was lost, or returned unprocessed.
    again: BTreeSet<u64>,
    reader: Option<Number>,
    /// Of a group: its members, in the order in which they joined.
    members: Vec<Number>,
    /// The event in which it was made.
    made: u64,
    /// The gap for the next reader.
    lost: Vec<(u64, &'static str)>,
    /// When its readers did something last, or when it was owed nothing last.
    progress: u64,
    broken: bool,
    /// Objects still held by clients that it was owed until it was broken.
    forfeited: BTreeMap<u64, u32>,
    /// The last event in which it was owed less after half of the time until it is stuck.
    was_late_in: u64,
    /// Since when it could be broken as stuck.
    stuck_since: Option<u64>,
    /// When it ends, if no client uses it until then; and the event in which that was settled.
    lapses: Option<(u64, u64)>,
    /// It has yet to be owed what was there when it was made.
    beginning: Option<objects::unfinished::LateBeginning>,
}

/// No client has this number: a named requirement continues under it and the place of its name.
const NOBODY: u32 = 0;

/// An open request.
#[derive(Clone, Debug)]
enum Going {
    Demand {
        aim: crate::clients::requests::Aim,
        requirement: Option<Number>,
        deadline: Option<u64>,
    },
    Lease {
        bytes: u64,
        /// For a member of a bundle.
        staged: bool,
        deadline: Option<u64>,
    },
    Withdraw {
        waits: BTreeMap<u64, BTreeSet<Number>>,
        done: u64,
        deadline: Option<u64>,
        /// The event in which it was made.
        began: u64,
        /// It has yet to look at some objects.
        retiring: Option<objects::unfinished::LateRetire>,
    },
    List {
        rest: VecDeque<u64>,
    },
    Follow(Box<Following>),
    Require(Box<Requirement>),
    /// A client keeps the `require` of a named requirement open.
    Use(Number),
    Subscribe {
        query: Query,
        events: u32,
    },
    /// A request to stop waits for the end.
    Drain,
    /// A sync waits for the answers to these offers.
    Sync(BTreeSet<u64>),
    /// A durable offer waits until its object is archived.
    Durable {
        sequence: u64,
        deadline: Option<u64>,
    },
    /// A request has completed a tree of bundles, and waits until its durable members are archived.
    Lasting {
        root: u64,
        answer: u64,
        deadline: Option<u64>,
    },
    /// A client has a bundle open, or had when it became visible.
    Bundle(u64),
}

/// A message that is due in this event.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Want {
    Welcome,
    /// `None`: with whatever code.
    Failed(Option<Code>),
    Offered(u64),
    Done(u64),
    Began(u64),
    Stats,
    Delivered {
        sequence: u64,
        requirement: Option<Number>,
    },
    Gap(u64, &'static str),
    Event {
        event: u32,
        sequence: Option<u64>,
        client: Option<u32>,
        name: Option<usize>,
        bundle: Option<(Option<String>, u64, Option<u64>)>,
    },
    Completed {
        first: u64,
        objects: u64,
        versions: Vec<(u64, u64)>,
    },
    Ended(Code),
    Tallied(Box<tally::TallyBounds>),
    Page,
    Segment(u64),
    Freed(u32, u32),
}

/// An event.
#[derive(Debug)]
pub enum Cause<'a> {
    /// The server read a client's request.
    Request(u32, u64, &'a Ask),
    /// A client's connection ended.
    Left(u32),
    /// Time passed.
    Tick,
    /// The file tier has written a payload, or has failed to.
    Spilled(Job, bool),
}

/// See the module's page.
pub struct Model {
    /// The options of the pool.
    pub rules: Rules,
    universe: Rc<Universe>,
    now: u64,
    event: u64,
    /// The newest number.
    pub sequence: u64,
    /// All that was ever offered: the version with number `n` is at `n - 1`.
    pub objects: Vec<Object>,
    /// The newest number when the event began.
    newest_before: u64,
    unfreed: BTreeSet<u64>,
    visible: BTreeMap<usize, u64>,
    tombstones: VecDeque<Tombstone>,
    held: BTreeMap<(u32, u32), Held>,
    clients: BTreeMap<u32, Client>,
    going: BTreeMap<Number, Going>,
    segments: BTreeMap<u32, Segment>,
    newest_segment: u32,
    inline_bytes: u64,
    leases: VecDeque<Number>,
    passing: Passing,
    disk: memory::spill::Disk,
    draining: Option<drain::Draining>,
    departing: objects::deferred_removal::Departings,
    parts: objects::unfinished::UnfinishedParts,
    untold: untold::UntoldNews,
    leaving_early: memory::eviction::Leaving,
    /// Programs that have connected.
    came: BTreeSet<usize>,
    bundles: BTreeMap<u64, objects::bundles::Bundle>,
    bundles_made: u64,
    /// Members of aborted bundles that still take memory.
    dropped: Vec<objects::bundles::Staged>,
    /// The most that was pinned by staged members in this event.
    pinned_most: u64,
    wants: Vec<(u32, u64, Want)>,
    /// Follows that ended in this event, each after the requirement through which it received.
    readers_ended: Vec<(Number, u64)>,
    /// Versions that requirements are not owed any more since this event, in that order.
    disowned: Vec<u64>,
    /// Among these, those that no requirement was owed any more, at least for a while.
    unrequired: BTreeSet<u64>,
    /// Objects that requirements are owed again since this event.
    came_back: BTreeSet<u64>,
    /// Deliveries of this event that were not examined yet: their objects are held.
    arriving: Vec<(Number, u64)>,
    /// Requirements with a name whose time to live was over in this event.
    lapsed: Vec<Number>,
    /// Effects of time alternated with requests that waited for memory.
    in_turns: bool,
    /// A request waited for memory when the event began.
    somebody_waited: bool,
    /// Trees of bundles that are visible and not archived, by their roots.
    lasting: BTreeMap<u64, objects::durable_bundles::Lasting>,
    /// Versions that the core reported in this event as no longer to be archived.
    forsaken: Vec<u64>,
    /// The most requests of each client that were open in this event: some may end in it after one was refused.
    went_on: BTreeMap<u32, usize>,
    /// Clients that left in this event.
    leaving: BTreeSet<u32>,
    /// A client left in the middle of the event: its returned objects may have followed another message.
    left_midway: bool,
    /// Versions that were removed, in order: for the histories.
    pub gone: Vec<u64>,
    totals: Totals,
}

#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    delivered: u64,
    released: u64,
    superseded: u64,
    withdrawn: u64,
    expired: u64,
    dropped_archived: u64,
    broken: u64,
    declined: u64,
    completed: u64,
    aborted: u64,
}

type Checked = std::result::Result<(), String>;

impl Model {
    /// An empty pool.
    #[must_use]
    pub fn new(rules: Rules, universe: Rc<Universe>) -> Self {
        Self {
            rules,
            universe,
            now: 0,
            event: 0,
            sequence: 0,
            objects: Vec::new(),
            newest_before: 0,
            unfreed: BTreeSet::new(),
            visible: BTreeMap::new(),
            tombstones: VecDeque::new(),
            held: BTreeMap::new(),
            clients: BTreeMap::new(),
            going: BTreeMap::new(),
            segments: BTreeMap::new(),
            newest_segment: 0,
            inline_bytes: 0,
            leases: VecDeque::new(),
            passing: Passing::default(),
            disk: memory::spill::Disk::default(),
            draining: None,
            departing: objects::deferred_removal::Departings::default(),
            parts: objects::unfinished::UnfinishedParts::default(),
            untold: untold::UntoldNews::default(),
            leaving_early: memory::eviction::Leaving::default(),
            came: BTreeSet::new(),
            bundles: BTreeMap::new(),
            bundles_made: 0,
            dropped: Vec::new(),
            pinned_most: 0,
            wants: Vec::new(),
            readers_ended: Vec::new(),
            disowned: Vec::new(),
            unrequired: BTreeSet::new(),
            came_back: BTreeSet::new(),
            arriving: Vec::new(),
            lapsed: Vec::new(),
            in_turns: false,
            somebody_waited: false,
            lasting: BTreeMap::new(),
            forsaken: Vec::new(),
            went_on: BTreeMap::new(),
            leaving: BTreeSet::new(),
            left_midway: false,
            gone: Vec::new(),
            totals: Totals::default(),
        }
    }

    /// A client connected.
    pub fn join(&mut self, client: u32) {
        self.clients.insert(client, Client::default());
    }

    /// Judges what the core did with an event.
    ///
    /// # Errors
    /// A message that it must not have sent, or is missing.
    pub fn judge(&mut self, now: u64, cause: &Cause<'_>, recorder: &Recorder) -> Checked {
        if let Some(wrong) = &recorder.wrong {
            return Err(wrong.clone());
        }
        self.event += 1;
        self.now = now;
        self.newest_before = self.sequence;
        self.somebody_waited = self.somebody_waits();
        self.in_turns = recorder.has_broken() || (self.somebody_waited && self.some_lapse());
        self.pinned_most = self.pinned_bytes();
        self.see_untold(matches!(cause, Cause::Tick))?;
        self.see_dropped();
        self.forsaken.clear();
        self.count_requests();
        self.leaving.clear();
        self.lapsed.clear();
        self.readers_ended.clear();
        self.disowned.clear();
        self.unrequired.clear();
        self.came_back.clear();
        let delivery = |(client, request, said): &(u32, u64, Rc<crate::clients::replies::Said>)| {
            said.delivers().map(|sequence| ((*client, *request), sequence))
        };
        self.arriving = recorder.said.iter().filter_map(delivery).collect();
        self.note_leaving(recorder);
        // A retraction finds nothing: removals of the same event follow it.
        let goes_after = matches!(cause, Cause::Request(_, _, Ask::Retract(_)));
        if !goes_after {
            self.catch_up(matches!(cause, Cause::Tick))?;
        }
        if let Cause::Request(_, _, Ask::Follow { .. } | Ask::Demand { .. }) = cause {
            self.see_ahead(&self.parts.all_told());
        }
        if matches!(cause, Cause::Request(..) | Cause::Tick) {
            self.forget_last_follows();
        }
        match cause {
            Cause::Request(client, number, ask) => self.apply(*client, *number, ask, recorder),
            Cause::Left(client) => self.leave(*client),
            Cause::Spilled(job, works) => self.spilled(job, *works)?,
            Cause::Tick => {
                self.end_pause();
                self.end_times();
                if self.drain_deadline().is_some_and(|until| until <= now) {
                    self.settle();
                    self.end_drain();
                }
                self.time_out(recorder);
            }
        }
        if goes_after {
            self.catch_up(false)?;
        }
        self.settle();
        self.make_room(matches!(cause, Cause::Tick), recorder)?;
        self.drain_without_components(recorder);
        self.end_drain();
        self.answer_syncs(recorder)?;
        self.left_midway = !self.leaving.is_empty() && !matches!(cause, Cause::Left(_));
        for (client, request, said) in &recorder.said {
            if self.leaving.contains(client) {
                if let Some(sequence) = said.delivers() {
                    self.totals.delivered += 1;
                    self.lose(*request, sequence);
                }
            } else {
                self.observe(*client, *request, said, recorder)
                    .map_err(|why| format!("client {client}, request {request}: {said:?}: {why}"))?;
            }
        }
        self.arriving.clear();
        self.settle();
        if matches!(cause, Cause::Tick) {
            self.forget_old_tombstones();
        }
        self.forget_bundles(matches!(cause, Cause::Tick));
        self.note_ordered(recorder)?;
        self.finish(recorder)?;
        self.check_parts()?;
        self.departing.see_all();
        Ok(())
    }

    fn object(&self, sequence: u64) -> &Object {
        &self.objects[sequence as usize - 1]
    }

    fn object_mut(&mut self, sequence: u64) -> &mut Object {
        &mut self.objects[sequence as usize - 1]
    }

    /// The key of a version.
    #[must_use]
    pub fn key_of(&self, sequence: u64) -> &Key {
        &self.universe.keys[self.object(sequence).offer.key]
    }

    /// Whether a selector matches a version.
    #[must_use]
    pub fn matches(&self, query: &Query, sequence: u64) -> bool {
        query.matches(self.key_of(sequence), self.object(sequence).offer.size)
    }

    /// Returns the visible objects that match, sorted.
    #[must_use]
    pub fn visible_matches(&self, query: &Query, order: Order) -> Vec<u64> {
        let mut found: Vec<u64> = self
            .visible
            .values()
            .copied()
            .filter(|&seq| self.matches(query, seq) && !self.is_out_of_sight(seq))
            .collect();
        found.sort_by(|&a, &b| {
            let sort = |sequence| {
                let key = self.key_of(sequence);
                (key, order.value(key, self.object(sequence).offer.size))
            };
            order.compare(sort(a), sort(b))
        });
        found
    }

    /// Whether a selector matches the newest version of a version's key.
    fn newest_matches(&self, query: &Query, sequence: u64) -> bool {
        let key = self.object(sequence).offer.key;
        let newest = self.objects.iter().rev().find(|object| object.offer.key == key);
        newest.is_some_and(|newest| self.matches(query, newest.sequence))
    }

    /// Returns versions that match, are removed, and have no tombstone with a number above `since`: a reader that resumes
    /// there gets no gap for them. Likewise those whose newest version does not match.
    #[must_use]
    pub fn forgotten(&self, query: &Query, since: u64) -> Vec<u64> {
        let is_remembered =
            |sequence: u64| sequence > since && self.tombstones.iter().any(|stone| stone.sequence == sequence);
        self.objects
            .iter()
            .filter(|object| match object.fate {
                Fate::Visible => object.sequence <= since && self.is_out_of_sight(object.sequence),
                Fate::Superseded => !self.newest_matches(query, object.sequence),
                Fate::Withdrawn | Fate::Expired | Fate::Archived => !is_remembered(object.sequence),
            })
            .map(|object| object.sequence)
            .filter(|&sequence| self.matches(query, sequence))
            .collect()
    }

    fn want(&mut self, client: u32, request: u64, want: Want) {
        self.wants.push((client, request, want));
    }

    fn take_want(&mut self, client: u32, request: u64, is_it: impl Fn(&Want) -> bool) -> Option<Want> {
        let at = self
            .wants
            .iter()
            .position(|(c, r, want)| (*c, *r) == (client, request) && is_it(want))?;
        Some(self.wants.remove(at).2)
    }

    /// A request fails; too many bad ones, and its client is given up.
    fn fail(&mut self, client: u32, number: u64, code: Option<Code>) {
        self.want(client, number, Want::Failed(code));
        let limit = self.rules.errors_per_client;
        let Some(state) = self.clients.get_mut(&client) else {
            return;
        };
        if matches!(code, Some(Code::Protocol | Code::Denied | Code::Expired)) {
            state.errors += 1;
        }
        if !state.known || state.errors > limit {
            self.leave(client);
        }
    }
}

fn is_slot(place: Place) -> bool {
    matches!(place, Place::Slot(..))
}
