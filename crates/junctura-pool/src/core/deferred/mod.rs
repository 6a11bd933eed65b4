//! What one event leaves for later: it may let a million objects go, and others are to be served meanwhile.
//!
//! ```text
//!                             the first so many
//!   an event lets objects go ------------------> gone
//!                           '---- the others ---> out of sight ----so many in each tick, in their order----> gone
//! ```
//! So it is when the time of many objects is over at once, when what many are retained for is, with a withdraw-all, and when a
//! requirement or a client ends that kept many. What is *out of sight* is given to nobody, stands in no list, is no earlier
//! version of anything, and nobody new is owed it. Whoever comes upon it all the same, by its key or in the queue of a follow,
//! lets it go first. What follows from its end comes with its turn: the events, the tombstone, the memory, the figures.
//!
//! A change of more objects than [`Config::changed_at_once`](crate::PoolConfig::changed_at_once) is itself done in parts, in the same queue: a withdraw-all, the objects that
//! a new requirement is owed, the end of a requirement or of a reader with a long queue. An object is as it was until its turn has come.
//!
//! Who asked for it, or wants to know that what it said before is in effect, is answered when that has gone. While something
//! goes, nobody is broken for want of memory.

pub(in crate::core) mod beginning;
mod owing;
mod turns;
mod unfinished;

use std::collections::{BTreeSet, VecDeque};

use junctura_wire::Reply;
use slab::Slab;

use crate::Effects;
use crate::core::clients::table::ClientTable;
use crate::core::interests::interest_id::InterestId;
use crate::core::interests::requirement::DisownedObjects;
use crate::core::memory::payload::PayloadMemory;
use crate::core::memory::spill::TierState;
use crate::core::objects::object::{ObjectRow, RemovalReason};
use crate::core::objects::retention_by_name::AwaitedNames;
use crate::core::objects::table::ObjectTable;
pub use unfinished::{UnfinishedChange, UnfinishedWork};

/// See the module's page.
#[derive(Default)]
pub(in crate::core) struct DeferredWork {
    pub(in crate::core) queue: VecDeque<DeferredItem>,
    /// So many more may go in this event.
    pub(in crate::core) may_go: usize,
    /// So many more are delivered in this event.
    pub(in crate::core) may_deliver: usize,
    /// Follows, and groups, that have more to give than this event may deliver.
    pub(in crate::core) delivering: BTreeSet<u32>,
    /// How much ever came into the queue, how much of it when this event began, and how much has left it.
    pub(in crate::core) came: u64,
    pub(in crate::core) came_before: u64,
    pub(in crate::core) went: u64,
}

/// What has yet to go: the sequence number of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DepartingObject {
    /// Out of sight.
    Object(u64),
    /// Its time is over; it goes, unless a requirement is owed it.
    Time(u64),
    /// It has gone; nobody needs its payload any more.
    Payload(u64),
    /// Something that is done in parts, by its number: see [`crate::core::Core::unfinished`].
    Part(u64),
}

/// What was left for later.
pub(in crate::core) enum DeferredItem {
    /// An object, and its number: another may have its place by then.
    Object { id: u32, sequence: u64 },
    /// The answer to a request.
    Answer { client: u32, request: u64, count: u64 },
    /// Something that is done for one object after the other: its number, and how many turns it has had.
    Part {
        number: u64,
        turns: u64,
        part: DeferredPart,
    },
}

/// See [`DeferredItem::Part`]: what is done.
pub(in crate::core) enum DeferredPart {
    /// The withdraw of this number, if it is still that of this client's request.
    TakeOut { id: u32, client: u32, request: u64 },
    /// A new requirement is owed what was there.
    Owe(InterestId),
    /// A requirement has ended that was owed these.
    Disown(DisownedObjects),
    /// A reader has ended in whose queue these stand.
    Unwatch(Vec<u32>),
    /// Names have come that objects wait for.
    Await(AwaitedNames),
}

impl DeferredWork {
    /// Whether a follow, or a group, may give more in this event. Else the rest comes in the next tick.
    pub(in crate::core) fn may_deliver(&mut self, interest: u32) -> bool {
        if self.may_deliver == 0 {
            self.delivering.insert(interest);
        }
        self.may_deliver > 0
    }

    /// One more was given.
    pub(in crate::core) fn count_delivery(&mut self) {
        self.may_deliver = self.may_deliver.saturating_sub(1);
    }

    /// Whether one more may go in this event; if so, it is counted.
    pub(in crate::core) fn take_turn(&mut self) -> bool {
        let may = self.may_go > 0;
        self.may_go -= usize::from(may);
        may
    }

    pub(in crate::core) fn push(&mut self, left: DeferredItem) {
        self.came += 1;
        self.queue.push_back(left);
    }

    /// What is next, if it takes no turn: an answer, or an object that has gone meanwhile.
    pub(in crate::core) fn pop_past(&mut self, objects: &Slab<ObjectRow>) -> Option<DeferredItem> {
        let takes_a_turn = match *self.queue.front()? {
            DeferredItem::Object { id, sequence } => objects
                .get(id as usize)
                .is_some_and(|one| one.sequence == sequence && one.departs.is_some()),
            DeferredItem::Part { .. } => true,
            DeferredItem::Answer { .. } => false,
        };
        if takes_a_turn { None } else { self.pop() }
    }

    pub(in crate::core) fn pop(&mut self) -> Option<DeferredItem> {
        self.went += u64::from(!self.queue.is_empty());
        self.queue.pop_front()
    }

    /// The entry that was taken is not done yet.
    pub(in crate::core) fn put_back(&mut self, left: DeferredItem) {
        self.went -= 1;
        self.queue.push_front(left);
    }

    pub(in crate::core) fn has_grown(&self) -> bool {
        self.came > self.came_before
    }
}

impl DeferredWork {
    /// What a client said has left something for later.
    pub(in crate::core) fn note_left(&mut self, clients: &mut ClientTable, client: u32) {
        if self.has_grown()
            && let Some(state) = clients.get_mut(client)
        {
            state.left = self.came;
        }
    }

    /// What a client said before is in effect: it is told so, when nothing that it has left is left.
    pub(in crate::core) fn answer_sync(
        &mut self,
        clients: &ClientTable,
        client: u32,
        request: u64,
        fx: &mut impl Effects,
    ) {
        let left = clients.get(client).map_or(0, |state| state.left);
        if left > self.went {
            self.push(DeferredItem::Answer {
                client,
                request,
                count: 0,
            });
        } else {
            fx.reply(client, request, &Reply::Done(0));
        }
    }

    /// A request is answered when what this event has left for later has gone.
    pub(in crate::core) fn answer_in_turn(&mut self, client: u32, request: u64, count: u64, fx: &mut impl Effects) {
        if self.has_grown() {
            self.push(DeferredItem::Answer { client, request, count });
        } else {
            fx.reply(client, request, &Reply::Done(count));
        }
    }

    pub(in crate::core) fn leave_for_later(
        &mut self,
        objects: &mut ObjectTable,
        memory: &mut PayloadMemory,
        id: u32,
        why: RemovalReason,
    ) {
        let object = &mut objects[id];
        object.departs = Some(why);
        if object.leaving != TierState::No {
            memory.give_up_writing(objects, id);
        }
        let object = &objects[id];
        let sequence = object.sequence;
        self.push(DeferredItem::Object { id, sequence });
    }

    /// A reader's queue is over: its objects are watched by one less, in turns where they are many.
    pub(in crate::core) fn release_queue(&mut self, objects: &mut ObjectTable, queue: Vec<u32>) {
        if queue.len() > objects.config.changed_at_once {
            return self.go_on_later(DeferredPart::Unwatch(queue));
        }
        for object in queue {
            objects.unwatch(object);
        }
    }

    /// Something is done in its turn, one object after the other.
    pub(in crate::core) fn go_on_later(&mut self, part: DeferredPart) {
        let number = self.came + 1;
        self.push(DeferredItem::Part { number, turns: 0, part });
    }

    /// Those whose turn has come are answered.
    pub(in crate::core) fn answer_those_in_turn(
        &mut self,
        clients: &ClientTable,
        objects: &ObjectTable,
        fx: &mut impl Effects,
    ) {
        while let Some(left) = self.pop_past(&objects.table) {
            if let DeferredItem::Answer { client, request, count } = left
                && clients.table.contains_key(&client)
            {
                fx.reply(client, request, &Reply::Done(count));
            }
        }
    }
}
