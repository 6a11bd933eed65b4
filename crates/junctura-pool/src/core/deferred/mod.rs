//! Deferred work of one event: it may remove a million objects, and other clients must be served meanwhile.
//!
//! ```text
//!                             the first so many
//!   an event lets objects go ------------------> gone
//!                           '---- the others ---> out of sight ----so many in each tick, in their order----> gone
//! ```
//! This applies when the retention of many objects ends at once, to a withdraw-all, and to the end of a requirement or
//! of a client that kept many objects. A *hidden* object is delivered to no client, is in no list, is no earlier
//! version of anything, and no new interest is owed it. If its key is requested or the queue of a follow reaches it, it
//! is removed first, before its turn. The consequences of its removal happen in its turn: the events, the tombstone,
//! the memory, the counters.
//!
//! A change of more objects than [`Config::changed_at_once`](crate::PoolConfig::changed_at_once) is itself done in
//! parts, in the same queue: a withdraw-all, the objects that a new requirement is owed, the end of a requirement or of
//! a reader with a long queue. An object is unchanged until its turn.
//!
//! The request that caused the work, and a sync after it, are answered when the work is done. While there is deferred
//! work, no requirement is broken for lack of memory.

pub(in crate::core) mod beginning;
mod owing;
mod turns;
mod unfinished;

use std::collections::{BTreeSet, VecDeque};

use junctura_wire::Reply;
use slab::Slab;

use crate::Effects;
use crate::core::bundles::dropped::DroppedMembers;
use crate::core::clients::table::ClientTable;
use crate::core::interests::interest_id::InterestId;
use crate::core::interests::requirement::DisownedObjects;
use crate::core::memory::payload::PayloadMemory;
use crate::core::memory::spill::TierState;
use crate::core::objects::object::{ObjectRow, RemovalReason};
use crate::core::objects::retention_by_name::AwaitedNames;
use crate::core::objects::table::ObjectTable;
pub use unfinished::{UnfinishedChange, UnfinishedWork};

/// The deferred work; see the module.
#[derive(Default)]
pub(in crate::core) struct DeferredWork {
    pub(in crate::core) queue: VecDeque<DeferredItem>,
    /// How many more objects may be removed in this event.
    pub(in crate::core) may_go: usize,
    /// How many more objects may be delivered in this event.
    pub(in crate::core) may_deliver: usize,
    /// Follows and groups that have more to deliver than this event may.
    pub(in crate::core) delivering: BTreeSet<u32>,
    /// The next of these, or the first one behind it, is the first to deliver.
    pub(in crate::core) delivers_next: u32,
    /// How many more waiting requests may be served in this event.
    pub(in crate::core) may_serve: usize,
    /// How many members of aborted bundles may still be dropped in this event.
    pub(in crate::core) may_drop: usize,
    /// More of them may be served in the next event.
    pub(in crate::core) serves_later: bool,
    /// How many items ever entered the queue, how many before this event began, and how many have left it.
    pub(in crate::core) came: u64,
    pub(in crate::core) came_before: u64,
    pub(in crate::core) went: u64,
}

/// An object that has yet to be removed: its sequence number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DepartingObject {
    /// It is hidden.
    Object(u64),
    /// Its retention has ended; it is removed, unless a requirement is owed it.
    Time(u64),
    /// It is removed; its payload is no longer needed.
    Payload(u64),
    /// Partial work, by its number: see [`crate::core::Core::unfinished`].
    Part(u64),
}

/// An item of deferred work.
pub(in crate::core) enum DeferredItem {
    /// An object, with its number: its slot may have another one by then.
    Object { id: u32, sequence: u64 },
    /// The answer to a request.
    Answer { client: u32, request: u64, count: u64 },
    /// Work that is done for one object after the other: its number, and its turns so far.
    Part {
        number: u64,
        turns: u64,
        part: DeferredPart,
    },
}

/// See [`DeferredItem::Part`]: the kind of work.
pub(in crate::core) enum DeferredPart {
    /// The withdraw of this number, if it still belongs to this client's request.
    TakeOut { id: u32, client: u32, request: u64 },
    /// A new requirement begins to be owed the visible objects.
    Owe(InterestId),
    /// An ended requirement releases these objects.
    Disown(DisownedObjects),
    /// Members of an aborted bundle are dropped.
    Drop(Box<DroppedMembers>),
    /// The pool drains: from this place on, demands are refused, and the last follows are found.
    Refuse(usize),
    /// A reader has ended; these objects are in its queue.
    Unwatch(Vec<u32>),
    /// Names that objects wait for are now taken by requirements.
    Await(AwaitedNames),
}

impl DeferredWork {
    /// Whether a follow or a group may deliver more in this event. Otherwise the rest is delivered in the next tick.
    pub(in crate::core) fn may_deliver(&mut self, interest: u32) -> bool {
        if self.may_deliver == 0 {
            self.delivering.insert(interest);
        }
        self.may_deliver > 0
    }

    /// Takes the follow or group whose turn it is to deliver more.
    pub(in crate::core) fn next_delivering(&mut self) -> Option<u32> {
        let next = self.delivering.range(self.delivers_next..).next();
        let next = *next.or_else(|| self.delivering.first())?;
        self.delivering.remove(&next);
        self.delivers_next = next.wrapping_add(1);
        Some(next)
    }

    /// Whether one more waiting request may be served in this event; if so, it is counted. Otherwise the rest is served in
    /// the next tick.
    pub(in crate::core) fn may_serve(&mut self) -> bool {
        self.serves_later |= self.may_serve == 0;
        self.may_serve = self.may_serve.saturating_sub(1);
        !self.serves_later
    }

    /// Whether so many members of an aborted bundle may be dropped in this event; if so, they are counted.
    pub(in crate::core) fn may_drop(&mut self, members: u64) -> bool {
        let rest = (self.may_drop as u64).checked_sub(members);
        self.may_drop = rest.map_or(self.may_drop, |rest| rest as usize);
        rest.is_some()
    }

    /// Counts a delivery.
    pub(in crate::core) fn count_delivery(&mut self) {
        self.may_deliver = self.may_deliver.saturating_sub(1);
    }

    /// Whether one more object may be removed in this event; if so, it is counted.
    pub(in crate::core) fn take_turn(&mut self) -> bool {
        let may = self.may_go > 0;
        self.may_go -= usize::from(may);
        may
    }

    pub(in crate::core) fn push(&mut self, left: DeferredItem) {
        self.came += 1;
        self.queue.push_back(left);
    }

    /// Removes and returns the next item if it takes no turn: an answer, or an object that has been removed meanwhile.
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

    /// Puts an unfinished entry back.
    pub(in crate::core) fn put_back(&mut self, left: DeferredItem) {
        self.went -= 1;
        self.queue.push_front(left);
    }

    pub(in crate::core) fn has_grown(&self) -> bool {
        self.came > self.came_before
    }
}

impl DeferredWork {
    /// Records that a client's request has deferred work.
    pub(in crate::core) fn note_left(&mut self, clients: &mut ClientTable, client: u32) {
        if self.has_grown()
            && let Some(state) = clients.get_mut(client)
        {
            state.left = self.came;
        }
    }

    /// Answers a sync: at once, or when the deferred work of the client is done.
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

    /// Answers a request when the deferred work of this event is done.
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

    /// Releases the queue of an ended reader: its objects have one watcher less; in turns if they are many.
    pub(in crate::core) fn release_queue(&mut self, objects: &mut ObjectTable, queue: Vec<u32>) {
        if queue.len() > objects.config.changed_at_once {
            return self.go_on_later(DeferredPart::Unwatch(queue));
        }
        for object in queue {
            objects.unwatch(object);
        }
    }

    /// Defers work that is done one object after the other.
    pub(in crate::core) fn go_on_later(&mut self, part: DeferredPart) {
        let number = self.came + 1;
        self.push(DeferredItem::Part { number, turns: 0, part });
    }

    /// Answers the requests whose turn has been reached.
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
