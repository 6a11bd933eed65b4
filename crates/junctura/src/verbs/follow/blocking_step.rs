//! The slow steps of a follow, separated from the follow: disk reads, and checksums of large payloads.
//!
//! ```text
//!   take_errand --> BlockingStep --run, where blocking is allowed--> finish --> take_next returns its result
//! ```
//!
//! At most one blocking step of a follow is outstanding, and the follow returns nothing until the step is finished:
//! this preserves the order. The follow itself stays available, and can be polled or stopped meanwhile.

use std::fmt;
use std::mem;
use std::sync::{Arc, Weak};
use std::time::Instant;

use junctura_model::Result;

use super::{Follow, Gap, Item, StoreFollow};
use crate::connection::in_flight::ServerMessage;
use crate::connection::unexpected;
use crate::object::{Object, UnreadObject};
use crate::pending::Pending;
use crate::store_fallback::{FollowTurn, LookupResult, ReadAhead, StoreLookup};

/// Amount read from the store behind the pool at once.
const AHEAD: ReadAhead = ReadAhead {
    rows: 64,
    bytes: 1 << 20,
};
/// A blocking caller reads only what it takes.
const NOTHING_AHEAD: ReadAhead = ReadAhead { rows: 1, bytes: 0 };

/// The next slow step of a follow: [`binding::take_errand`](crate::binding::take_errand).
///
/// Dropping it without [`binding::finish`](crate::binding::finish) omits its item.
///
/// ```
/// # use junctura::{Pool, binding};
/// # fn main() -> junctura::Result<()> {
/// # let pool = Pool::builder().schema("free").open()?;
/// # let mut follow = pool.follow("")?;
/// if let Some(mut errand) = binding::take_errand(&mut follow)? {
///     errand.run(); // in another thread
///     binding::finish(&mut follow, errand)?;
/// }
/// # Ok(())
/// # }
/// ```
#[must_use = "it must be run and given back"]
pub struct BlockingStep {
    state: StepState,
    _out: Arc<()>,
}

enum StepState {
    ToDo(StepWork),
    Done(StepOutcome),
    /// The step has panicked.
    Failed,
}

pub(super) enum StepWork {
    Make(UnreadObject),
    Look(StoreLookup),
}

enum StepOutcome {
    Made(Result<UnseenObject>),
    Found(LookupResult),
}

/// An object that no caller has received: if it is dropped, it counts as not received.
pub(super) struct UnseenObject(Option<Object>);

/// A step that can be done at once.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FollowStep {
    /// An object that was made elsewhere.
    Unseen,
    /// An object that was read from the store.
    Read,
    /// An object that neither the pool nor the store has.
    Gap,
    Letter,
    Errand,
    Nothing,
    Over,
}

/// Blocking steps of a follow, and their results.
#[derive(Default)]
pub(super) struct BlockingSteps {
    out: Weak<()>,
    /// A step that was returned without being run.
    undone: Option<StepWork>,
    unseen: Option<Result<UnseenObject>>,
}

impl BlockingStep {
    /// Runs the step, once. Blocks on a disk, or computes.
    pub fn run(&mut self) {
        if let StepState::ToDo(_) = self.state
            && let StepState::ToDo(work) = mem::replace(&mut self.state, StepState::Failed)
        {
            self.state = StepState::Done(match work {
                StepWork::Make(unmade) => StepOutcome::Made(unmade.make().map(|object| UnseenObject(Some(object)))),
                StepWork::Look(lookup) => StepOutcome::Found(lookup.run()),
            });
        }
    }
}

impl fmt::Debug for BlockingStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.state {
            StepState::ToDo(_) => "Errand(to do)",
            StepState::Done(_) => "Errand(done)",
            StepState::Failed => "Errand(failed)",
        })
    }
}

impl UnseenObject {
    fn take(mut self) -> Option<Object> {
        self.0.take()
    }
}

impl Drop for UnseenObject {
    fn drop(&mut self) {
        if let Some(object) = &mut self.0 {
            object.leave_undone();
        }
    }
}

impl Follow {
    /// Returns the next item if it has been read, as [`Pending::take`]. Does not block. `None`: none has been read, or
    /// it is slow ([`Follow::take_errand`]), or the follow has ended ([`Follow::is_over`]).
    ///
    /// # Errors
    /// As [`Follow::next_item`].
    pub(crate) fn take_next(&mut self) -> Result<Option<Item>> {
        loop {
            let item = match self.turn()? {
                FollowStep::Errand | FollowStep::Nothing | FollowStep::Over => return Ok(None),
                FollowStep::Unseen => self.take_unseen()?,
                FollowStep::Read => self.take_read()?,
                FollowStep::Gap => self.replay.as_mut().and_then(|replay| replay.take_gap()).map(Item::Gap),
                FollowStep::Letter => self.take_letter()?,
            };
            if item.is_some() {
                return Ok(item);
            }
        }
    }

    /// Returns the next step if it is slow, because it reads a disk or verifies a large checksum. The caller
    /// [runs](BlockingStep::run) it where it may block, and passes it to [`Follow::finish`]. Until then the follow
    /// returns nothing. `None`: the next step is not slow, or a step is outstanding.
    ///
    /// With a store behind the pool, the first step searches the store for objects that have left the pool.
    ///
    /// # Errors
    /// As [`Follow::next_item`].
    pub(crate) fn take_errand(&mut self) -> Result<Option<BlockingStep>> {
        self.errand(AHEAD)
    }

    /// Accepts a finished step of this follow. [`Follow::take_next`] returns its result; a step that was not run is
    /// issued again.
    ///
    /// # Errors
    /// Those of reading the store behind the pool.
    pub(crate) fn finish(&mut self, errand: BlockingStep) -> Result<()> {
        let outcome = match errand.state {
            StepState::ToDo(work) => {
                self.errands.undone = Some(work);
                return Ok(());
            }
            StepState::Failed => return self.stream.fuse(Err(unexpected("an errand that has failed"))),
            StepState::Done(outcome) => outcome,
        };
        match (outcome, &mut self.replay) {
            (StepOutcome::Made(made), _) => self.errands.unseen = Some(made),
            (StepOutcome::Found(found), Some(replay)) => return replay.was_found(found, self.live),
            (StepOutcome::Found(_), None) => return self.stream.fuse(Err(unexpected("another follow's errand"))),
        }
        Ok(())
    }

    fn errand(&mut self, ahead: ReadAhead) -> Result<Option<BlockingStep>> {
        if self.turn()? != FollowStep::Errand {
            return Ok(None);
        }
        let work = match self.errands.undone.take() {
            Some(work) => work,
            None => self.work(ahead)?,
        };
        let out = Arc::new(());
        self.errands.out = Arc::downgrade(&out);
        Ok(Some(BlockingStep {
            state: StepState::ToDo(work),
            _out: out,
        }))
    }

    fn work(&mut self, ahead: ReadAhead) -> Result<StepWork> {
        let letter = self.stream.look_at()?;
        if let Some(replay) = &mut self.replay
            && replay.turn(letter, self.live) == FollowTurn::Lookup
        {
            return Ok(StepWork::Look(replay.lookup(letter, self.live, ahead)));
        }
        match (self.stream.take()?, &self.replay) {
            (Some(ServerMessage::Delivered(arrived)), _) => {
                Ok(StepWork::Make(UnreadObject::new(&self.origin, arrived)))
            }
            (Some(ServerMessage::Gap(body)), Some(replay)) => {
                let gap = Gap::read(&self.origin.connection, &body);
                Ok(StepWork::Look(replay.look_for(self.stream.fuse(gap)?)))
            }
            _ => self.stream.fuse(Err(unexpected("in a follow"))),
        }
    }

    fn turn(&mut self) -> Result<FollowStep> {
        if self.stream.has_failed() {
            return Ok(FollowStep::Over);
        }
        if self.errands.out.strong_count() > 0 {
            return Ok(FollowStep::Nothing);
        }
        if self.errands.undone.is_some() {
            return Ok(FollowStep::Errand);
        }
        if self.errands.unseen.is_some() {
            return Ok(FollowStep::Unseen);
        }
        if self.replay.as_ref().is_some_and(|replay| replay.has_read()) {
            return Ok(FollowStep::Read);
        }
        self.hear_answers()?;
        let is_over = self.stream.is_over();
        let letter = self.stream.look_at()?;
        let Some(replay) = &mut self.replay else {
            return Ok(of_pool(letter, is_over));
        };
        Ok(match replay.turn(letter, self.live) {
            FollowTurn::Lookup => FollowStep::Errand,
            FollowTurn::Gap => FollowStep::Gap,
            FollowTurn::Pool if matches!(letter, Some(ServerMessage::Gap(_))) => FollowStep::Errand,
            FollowTurn::Pool => of_pool(letter, is_over),
            FollowTurn::Nobody if is_over => FollowStep::Over,
            FollowTurn::Nobody => {
                if self.live {
                    let asked = replay.ask(self.window);
                    self.stream.fuse(asked)?;
                }
                FollowStep::Nothing
            }
        })
    }

    /// Handles the pool's answers to requests that the store replay needs.
    fn hear_answers(&mut self) -> Result<()> {
        while let (Some(ServerMessage::Done(_)), Some(replay)) = (self.stream.look_at()?, &mut self.replay) {
            replay.was_answered();
            self.stream.take()?;
        }
        Ok(())
    }

    fn take_unseen(&mut self) -> Result<Option<Item>> {
        let unseen = self.errands.unseen.take().transpose()?;
        let Some(object) = unseen.and_then(UnseenObject::take) else {
            return Ok(None);
        };
        self.note(&object);
        Ok(self.unless_given(Item::Object(object)))
    }

    fn take_read(&mut self) -> Result<Option<Item>> {
        let read = self.replay.as_mut().and_then(|replay| replay.take_read());
        let object = read.transpose()?;
        Ok(object.map(|object| {
            self.note(&object);
            Item::Object(object)
        }))
    }

    fn take_letter(&mut self) -> Result<Option<Item>> {
        let letter = self.stream.take()?;
        let item = letter.map(|letter| self.item(letter)).transpose()?.flatten();
        Ok(item.and_then(|item| self.unless_given(item)))
    }

    /// Returns an item of the pool, unless the store behind it has provided it.
    fn unless_given(&mut self, item: Item) -> Option<Item> {
        let was_given = match (&item, &mut self.replay) {
            (Item::Object(object), Some(replay)) => replay.has_given(object.version().sequence),
            _ => false,
        };
        (!was_given).then_some(item)
    }

    /// Returns whether a slow object precedes all messages that have not been read.
    #[cfg(feature = "async")]
    pub(crate) fn has_errands(&self) -> bool {
        self.errands.undone.is_some() || self.errands.unseen.is_some()
    }

    /// Returns the first blocking step of a follow with a store behind the pool.
    fn beginning(&mut self) -> Result<Option<BlockingStep>> {
        match &self.replay {
            Some(replay) if replay.is_to_begin() => self.take_errand(),
            _ => Ok(None),
        }
    }

    /// Searches the store behind the pool, before the follow is returned.
    pub(super) fn begin_behind(mut self, behind: StoreFollow) -> Result<Pending<Follow>> {
        self.begin_in(behind);
        let connection = Arc::clone(&self.origin.connection);
        let Some(mut errand) = self.beginning()? else {
            return Ok(Pending::known(&connection, Ok(self)));
        };
        let look = move || {
            errand.run();
            self.finish(errand)?;
            Ok(self)
        };
        Ok(Pending::work(&connection, look, drop))
    }

    /// Returns the next item, with a store behind the pool; blocks on both.
    pub(super) fn next_behind(&mut self, deadline: Option<Instant>) -> Result<Option<Item>> {
        loop {
            if let Some(item) = self.take_next()? {
                return Ok(Some(item));
            }
            if let Some(mut errand) = self.errand(NOTHING_AHEAD)? {
                errand.run();
                self.finish(errand)?;
                continue;
            }
            if self.is_over() {
                return Ok(None);
            }
            if self.stream.peek(deadline)?.is_none() {
                return Err(super::too_late());
            }
        }
    }

    /// Returns whether a step is possible without a message from the pool. `None` while a blocking step is outstanding.
    pub(super) fn is_due(&self) -> Option<bool> {
        if self.errands.out.strong_count() > 0 {
            return None;
        }
        let replay_is_due = || self.replay.as_ref().is_some_and(|replay| replay.is_due(self.live));
        Some(self.errands.undone.is_some() || self.errands.unseen.is_some() || replay_is_due())
    }
}

/// Returns the pool's next step, if nothing precedes it.
fn of_pool(letter: Option<&ServerMessage>, is_over: bool) -> FollowStep {
    match letter {
        Some(letter) if letter.is_slow() => FollowStep::Errand,
        Some(_) => FollowStep::Letter,
        None if is_over => FollowStep::Over,
        None => FollowStep::Nothing,
    }
}
