//! What of a follow takes long, apart from the follow: a disk is read for it, or a large payload's checksum is verified.
//!
//! ```text
//!   take_errand --> Errand --run, wherever one may wait--> finish --> take_next gives what came of it
//! ```
//! One errand of a follow is out at a time, and until it comes back the follow gives nothing: so all stays in its order. The
//! follow itself is never away, and can be asked, or stopped, meanwhile.

use std::fmt;
use std::mem;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Instant;

use junctura_model::Result;

use super::{Follow, Gap, Item, StoreFollow};
use crate::connection::in_flight::ServerMessage;
use crate::connection::unexpected;
use crate::object::{Object, UnreadObject};
use crate::pending::Pending;
use crate::store_fallback::{FollowTurn, LookupResult, ReadAhead, StoreLookup};

/// Of the store behind the pool, at one go.
const AHEAD: ReadAhead = ReadAhead {
    rows: 64,
    bytes: 1 << 20,
};
/// Whoever waits reads what he takes.
const NOTHING_AHEAD: ReadAhead = ReadAhead { rows: 1, bytes: 0 };

/// What comes next in a follow, and takes long: [`binding::take_errand`](crate::binding::take_errand).
///
/// Dropping it without giving it back leaves out what it was for.
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
#[must_use = "what it is for comes once it was run and given back"]
pub struct BlockingStep {
    state: StepState,
    _out: Arc<()>,
}

enum StepState {
    ToDo(StepWork),
    Done(StepOutcome),
    /// It has panicked.
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

/// An object that is in nobody's hands yet: dropped so, it has not been received.
pub(super) struct UnseenObject(Option<Object>);

/// What can be done at once.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FollowStep {
    /// An object is there that was made elsewhere.
    Unseen,
    /// One that was read from the store.
    Read,
    /// Something that neither the pool nor the store has.
    Gap,
    Letter,
    Errand,
    Nothing,
    Over,
}

/// Errands of a follow, and what came of them.
#[derive(Default)]
pub(super) struct BlockingSteps {
    out: Weak<()>,
    /// One that came back as it went.
    undone: Option<StepWork>,
    unseen: Option<Result<UnseenObject>>,
}

impl BlockingStep {
    /// Does it, once. Waits for a disk, or computes.
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
    /// The next item, if it has been read: as [`Pending::take`]. Waits for nothing. `None`: none has, or it takes long
    /// ([`Follow::take_errand`]), or the follow has ended ([`Follow::is_over`]).
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

    /// What comes next, if it takes long, since a disk is read for it or a large payload's checksum is verified: to be
    /// [run](BlockingStep::run) where one may wait, and given back with [`Follow::finish`]. Until then the follow gives nothing. `None`: it
    /// is nothing of that kind, or an errand is out.
    ///
    /// With a store behind the pool, the first one looks there for what has left the pool.
    ///
    /// # Errors
    /// As [`Follow::next_item`].
    pub(crate) fn take_errand(&mut self) -> Result<Option<BlockingStep>> {
        self.errand(AHEAD)
    }

    /// Takes back an errand of this follow. What came of it comes with [`Follow::take_next`]; one that was not run is given out again.
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
                self.origin.at_hand.store(self.stream.at_hand(), Ordering::Relaxed);
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

    /// What the pool answers to questions of the store's.
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

    /// An item of the pool, if the store behind it has not given it.
    fn unless_given(&mut self, item: Item) -> Option<Item> {
        let was_given = match (&item, &mut self.replay) {
            (Item::Object(object), Some(replay)) => replay.has_given(object.version().sequence),
            _ => false,
        };
        (!was_given).then_some(item)
    }

    /// Whether an object that takes long comes before all that was not read.
    #[cfg(feature = "async")]
    pub(crate) fn has_errands(&self) -> bool {
        self.errands.undone.is_some() || self.errands.unseen.is_some()
    }

    /// The first errand of a follow with a store behind the pool.
    fn beginning(&mut self) -> Result<Option<BlockingStep>> {
        match &self.replay {
            Some(replay) if replay.is_to_begin() => self.take_errand(),
            _ => Ok(None),
        }
    }

    /// Looks into the store behind the pool, before it is given out.
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

    /// The next item, with a store behind the pool; waits for both.
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

    /// Whether something can be done without a letter of the pool's. `None`: not while an errand is out.
    pub(super) fn is_due(&self) -> Option<bool> {
        if self.errands.out.strong_count() > 0 {
            return None;
        }
        let replay_is_due = || self.replay.as_ref().is_some_and(|replay| replay.is_due(self.live));
        Some(self.errands.undone.is_some() || self.errands.unseen.is_some() || replay_is_due())
    }
}

/// What the pool has next, where nothing goes before.
fn of_pool(letter: Option<&ServerMessage>, is_over: bool) -> FollowStep {
    match letter {
        Some(letter) if letter.is_slow() => FollowStep::Errand,
        Some(_) => FollowStep::Letter,
        None if is_over => FollowStep::Over,
        None => FollowStep::Nothing,
    }
}
