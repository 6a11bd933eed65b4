//! The world of a run: a core, its clients, the lines between them, and a clock that moves when the run moves it.
//!
//! ```text
//!   client ──(bytes, first in first out)──► server ──► Core ──► Recorder ──(bytes)──► client
//!                                              │          │
//!                                              ├─► Model ◄┤ judge each event
//!                                              └─► Twin ◄─┘
//! ```
//! One step is one of: a client sends a request, the server reads from a client, a client reads from the server, time
//! passes, a client crashes. The kind and the client are random; so a message may be in flight for as long as the run
//! lasts.

pub mod recorder;
pub(crate) mod twin;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use junctura_model::{Error, Result};
use junctura_pool::core::{Core, latest_news, pending_news};
use junctura_wire::{Request, frame::WireFrame};

use crate::clients::client::{Client, Doing};
use crate::clients::group_checks::Shares;
use crate::clients::reader::{Chain, Wish};
use crate::clients::requests::{Ask, Offer, Place, Stays, Terms};
use crate::model::{Cause, Model};
use crate::run::plan::{Plan, Turn};
use crate::run::rng::Rng;
use crate::run::universe::{Order, Universe};
use crate::world::recorder::{Line, Recorder};
use crate::world::twin::{Input, Twin};

pub(crate) type Checked = std::result::Result<(), String>;

/// See the module's page.
pub struct World {
    pub(crate) plan: Plan,
    pub(crate) universe: Rc<Universe>,
    pub(crate) core: Core,
    twin: Twin,
    pub(crate) recorder: Recorder,
    pub(crate) model: Model,
    pub(crate) now: u64,
    pub(crate) clients: Vec<Option<Client>>,
    pub(crate) chains: Vec<Chain>,
    pub(crate) wishes: Vec<Wish>,
    pub(crate) shares: Shares,
    /// The usual terms of each requirement with a name.
    pub(crate) terms: Vec<Terms>,
    pub(crate) payloads: u64,
    pub(crate) events: u64,
    /// The events in words, if they are recorded.
    pub trace: Option<Vec<String>>,
    /// Histories of disconnected clients: name and rows.
    pub(crate) histories: Vec<(String, String)>,
    pub(crate) recorded: bool,
    /// Everybody reads until nothing is on its way.
    pub(crate) rests: bool,
}

/// Notes what happens, when a run is to be read.
macro_rules! note {
    ($world:expr, $($format:tt)*) => {
        if let Some(trace) = &mut $world.trace {
            trace.push(format!($($format)*));
        }
    };
}
pub(crate) use note;

impl World {
    /// The world of a seed, without clients.
    ///
    /// # Errors
    /// An invalid configuration of the pool; a fault of this crate.
    pub fn new(seed: u64, recorded: bool) -> Result<Self> {
        let plan = Plan::of(seed, recorded);
        let universe = Rc::new(Universe::new(plan.times, plan.numbers)?);
        let terms = Terms::of_names(seed, &universe);
        Self::of(plan, universe, terms, recorded)
    }

    /// A world with the given settings.
    pub(crate) fn of(plan: Plan, universe: Rc<Universe>, terms: Vec<Terms>, recorded: bool) -> Result<Self> {
        Ok(Self {
            core: Core::new(plan.config(&universe))?,
            twin: Twin::new(plan.config(&universe))?,
            recorder: Recorder::default(),
            model: Model::new(plan.rules.clone(), Rc::clone(&universe)),
            now: 1_000_000,
            clients: (0..plan.clients).map(|_| None).collect(),
            chains: Vec::new(),
            wishes: Vec::new(),
            shares: Shares::default(),
            terms,
            payloads: 0,
            events: 0,
            trace: None,
            histories: Vec::new(),
            recorded,
            rests: false,
            universe,
            plan,
        })
    }

    /// Makes the objects that exist before the run begins: those of a client that has disconnected.
    ///
    /// # Errors
    /// The promise that was broken.
    pub fn populate(&mut self, rng: &mut Rng) -> Checked {
        if self.plan.crowd == 0 {
            return Ok(());
        }
        self.connect(0)?;
        self.ask(
            0,
            Ask::Hello {
                wrong_version: false,
                offer_timeout_ms: None,
                visits: false,
                component: None,
            },
            Doing::Hello,
        );
        let universe = Rc::clone(&self.universe);
        for (key, one) in universe.keys.iter().enumerate().take(self.plan.crowd) {
            let size = rng.percent(60).then(|| rng.below(4) as i64);
            let record = universe.record(one, size).map_err(|error| own_fault(&error))?;
            self.payloads += 1;
            let offer = Offer {
                key,
                size,
                record,
                payload: self.payloads,
                length: 8,
                place: Place::Inline,
                checksum: None,
                stays: Stays::UntilWithdrawn,
                if_wanted: false,
                durable: false,
                malformed: false,
            };
            self.ask(0, Ask::Offer(offer), Doing::Offer(Place::Inline, false));
        }
        self.come_to_rest(rng)?;
        self.ask(0, Ask::Goodbye, Doing::Loose);
        self.come_to_rest(rng)
    }

    /// One random step.
    ///
    /// # Errors
    /// The promise that was broken.
    pub fn step(&mut self, rng: &mut Rng) -> Checked {
        let place = rng.below(self.clients.len());
        if self.clients[place].is_none() {
            return self.join(place, rng);
        }
        match self.plan.turn(rng) {
            Turn::Act => self.act(place, rng),
            Turn::Serve => self.serve(place, rng),
            Turn::Receive => {
                let count = rng.between(1, 6);
                (0..count).try_for_each(|_| self.receive(place, rng, true).map(|_| ()))
            }
            Turn::Wait => self.wait(rng),
            Turn::Crash => {
                self.crash(place, rng);
                Ok(())
            }
            Turn::Idle => {
                self.core.idle();
                self.twin.idle();
                Ok(())
            }
            Turn::Disk => {
                let works = !rng.percent(self.plan.disk_refuses);
                self.write_spilled(works, rng)
            }
        }
    }

    /// How many events the core has seen.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Connects a client.
    pub(crate) fn join(&mut self, place: usize, rng: &mut Rng) -> Checked {
        self.connect(place)?;
        if rng.percent(self.plan.links) {
            self.link(place, rng)?;
        }
        let hello = Ask::Hello {
            wrong_version: rng.percent(1),
            offer_timeout_ms: self.plan.offer_timeout_ms,
            visits: rng.percent(20),
            component: (self.plan.rules.components > 0).then(|| rng.below(self.plan.rules.components)),
        };
        if !rng.percent(1) {
            self.ask(place, hello, Doing::Hello);
        }
        Ok(())
    }

    pub(crate) fn connect(&mut self, place: usize) -> Checked {
        let id = self.core.join().map_err(|error| error.to_string())?;
        self.twin.join(id)?;
        note!(self, "client {id} connects");
        self.recorder.lines.insert(id, Line::default());
        self.model.join(id);
        self.clients[place] = Some(Client {
            id,
            ..Client::default()
        });
        Ok(())
    }

    /// A client sends a request.
    pub(crate) fn ask(&mut self, place: usize, ask: Ask, doing: Doing) -> u64 {
        let Some(client) = &mut self.clients[place] else {
            return 0;
        };
        client.numbers += 1;
        let number = client.numbers;
        note!(self, "client {} sends {number}: {ask:?}", client.id);
        let bytes = ask.encode(number, &self.universe);
        if let Doing::Stage(_, bundle, _) = doing {
            client.staged.insert(number, bundle);
        }
        client.doing.insert(number, doing);
        self.send_up(place, &ask, &bytes);
        if let Some(client) = &mut self.clients[place] {
            client.up.push_back((number, ask, bytes));
        }
        number
    }

    /// The server reads from a client: some of its messages, or its disconnect.
    pub(crate) fn serve(&mut self, place: usize, rng: &mut Rng) -> Checked {
        if self.clients[place].as_ref().is_some_and(|client| client.road.is_some()) {
            return self.serve_link(place, rng);
        }
        for _ in 0..rng.between(1, 4) {
            let Some(client) = &mut self.clients[place] else {
                return Ok(());
            };
            let id = client.id;
            if let Some((number, ask, bytes)) = client.up.pop_front() {
                self.read(id, number, &ask, &bytes, rng)?;
            } else if client.dead {
                self.clients[place] = None;
                note!(self, "the server sees the disconnect of client {id}");
                return self.event(&Cause::Left(id), rng, Input::Left(id));
            }
        }
        Ok(())
    }

    pub(crate) fn read(&mut self, id: u32, number: u64, ask: &Ask, bytes: &[u8], rng: &mut Rng) -> Checked {
        note!(self, "the server reads {number} of client {id}");
        self.look_ahead()?;
        self.note_beginnings(id, number, ask);
        let frame = match WireFrame::split(bytes) {
            Ok(Some((frame, length))) if length == bytes.len() => frame,
            other => return Err(format!("{ask:?} reads back as {other:?}")),
        };
        self.event(&Cause::Request(id, number, ask), rng, Input::Message(id, &frame))
    }

    /// The server prepares the next requests of all clients by one step each.
    fn look_ahead(&mut self) -> Checked {
        for client in self.clients.iter().flatten() {
            let next = client.up.front().map(|(_, _, bytes)| WireFrame::split(bytes));
            if let Some(Ok(Some((frame, _)))) = next
                && let Ok(request) = Request::decode(&frame)
            {
                let is_ready = self.core.look_ahead(client.id, &request);
                self.twin.look_ahead(client.id, &request, is_ready)?;
            }
        }
        Ok(())
    }

    /// Records the visible objects when the server begins to answer: its reader is owed them.
    fn note_beginnings(&mut self, id: u32, number: u64, ask: &Ask) {
        let newest = self.model.sequence;
        if let Ask::Follow {
            cursor, group: None, ..
        } = ask
            && let Some(chain) = self.chains.iter_mut().find(|chain| {
                chain
                    .session
                    .as_ref()
                    .is_some_and(|session| (session.client, session.request) == (id, number))
            })
        {
            chain.is_answered(newest);
            if let Some(cursor) = cursor {
                chain.excused.extend(self.model.forgotten(&chain.query, cursor.since));
            } else {
                let there = self.model.visible_matches(&chain.query, Order::Key);
                chain.began = Some((self.model.sequence, there.into_iter().collect()));
            }
        }
        if let Ask::Require { terms, name: None } = ask
            && let Some(wish) = self
                .wishes
                .iter_mut()
                .find(|wish| (wish.client, wish.request) == (id, number))
        {
            let there = self.model.visible_matches(&terms.query, Order::Key);
            wish.began = Some((self.model.sequence, there.into_iter().collect()));
            wish.made = self.model.next_event();
        }
    }

    /// The file tier writes the next payload, or fails to; nothing where it has nothing to do.
    pub(crate) fn write_spilled(&mut self, works: bool, rng: &mut Rng) -> Checked {
        let Some(job) = self.recorder.work(works) else {
            return Ok(());
        };
        note!(
            self,
            "the file tier, {}: {job:?}",
            if works { "writing" } else { "failing" }
        );
        let checksum = works.then(|| spilled_checksum(job.payload));
        self.event(&Cause::Spilled(job, works), rng, Input::Spilled(job.job, checksum))
    }

    /// Passes an event to the core; the model and the twin judge its effects.
    pub(crate) fn event(&mut self, cause: &Cause<'_>, rng: &mut Rng, input: Input<'_>) -> Checked {
        self.events += 1;
        self.recorder.begin();
        self.recorder.refuse_segments = self.plan.refuses_one_in > 0 && rng.below(self.plan.refuses_one_in) == 0;
        if let Cause::Left(id) = cause {
            self.recorder.lines.remove(id);
        }
        self.model.see_ahead(&self.core.unfinished());
        let (core, now, recorder) = (&mut self.core, self.now, &mut self.recorder);
        catch_unwind(AssertUnwindSafe(|| input.tell(core, now, recorder)))
            .map_err(|panic| format!("the core panicked: {}", text_of(panic.as_ref())))?;
        if self.trace.is_some() {
            for (client, request, said) in &self.recorder.said {
                note!(self, "    to client {client}, request {request}: {said:?}");
            }
        }
        let departing = self.core.departing();
        if !departing.is_empty() {
            note!(self, "    yet to be removed: {departing:?}");
        }
        let unfinished = self.core.unfinished();
        if !unfinished.is_empty() {
            note!(self, "    in parts: {unfinished:?}");
        }
        self.model.note_departing(departing);
        self.model.note_unfinished(unfinished);
        let untold = pending_news(&self.core);
        if !untold.is_empty() {
            note!(self, "    yet to be told: {untold:?}");
        }
        self.model.note_untold(untold, latest_news(&self.core));
        self.model.note_first_lease(self.core.first_lease_blocks());
        self.model.judge(self.now, cause, &self.recorder)?;
        self.twin.follow(input, self.now, &self.recorder.tape, &self.core)?;
        self.shares.see(cause, &self.recorder, &self.model, &self.terms)?;
        self.send_down()?;
        self.after_event(cause)
    }

    fn after_event(&mut self, cause: &Cause<'_>) -> Checked {
        for id in self.recorder.ended.clone() {
            note!(self, "the server has ended the connection of client {id}");
            if let Some(client) = self.clients.iter_mut().flatten().find(|client| client.id == id) {
                client.up.clear();
                client.leaving = true;
            }
        }
        let deadline = self.core.deadline();
        if let Some(due) = self.model.deadline()
            && deadline.is_none_or(|deadline| deadline > due)
        {
            return Err(format!(
                "something is due at {due}, the core wants to be called at {deadline:?}"
            ));
        }
        let is_late = deadline.is_some_and(|deadline| deadline <= self.now);
        if matches!(cause, Cause::Tick) && is_late && !self.is_behind() && !self.model.ends_next() {
            return Err(format!(
                "it is {}, and the core still wants to be called at {deadline:?}",
                self.now
            ));
        }
        if self.events.is_multiple_of(16) {
            self.model.compare(&self.core.stat())
        } else {
            Ok(())
        }
    }

    /// Time passes: a little, or until something is due.
    pub(crate) fn wait(&mut self, rng: &mut Rng) -> Checked {
        let until = match self.core.deadline() {
            // Judges of histories know of gaps by what tombstones remember: in a recorded run these do not age.
            Some(deadline) if rng.percent(30) && !(self.recorded && deadline > self.now + 1_000_000_000) => deadline,
            _ => self.now + rng.between(0, 10_000_000),
        };
        while let Some(deadline) = self.core.deadline().filter(|&deadline| deadline <= until) {
            self.tick_at(deadline, rng)?;
            // Events of other clients may happen in between.
            if self.is_behind() && rng.percent(70) {
                return Ok(());
            }
        }
        self.now = self.now.max(until);
        Ok(())
    }

    fn tick_at(&mut self, deadline: u64, rng: &mut Rng) -> Checked {
        self.now = self.now.max(deadline);
        note!(self, "it is {}", self.now);
        self.event(&Cause::Tick, rng, Input::Tick)
    }

    /// Whether the core has deferred work.
    pub(crate) fn is_behind(&self) -> bool {
        self.core.is_behind() || self.core.is_delivering()
    }

    /// Does the deferred work of the core.
    pub(crate) fn let_go(&mut self, rng: &mut Rng) -> Checked {
        while self.is_behind() {
            self.tick_at(self.now, rng)?;
        }
        Ok(())
    }

    /// Time passes. A core that is called late does what was due as if it had been called in time; so it is called in time
    /// here.
    pub(crate) fn pass_until(&mut self, until: u64, rng: &mut Rng) -> Checked {
        while let Some(deadline) = self.core.deadline().filter(|&deadline| deadline <= until) {
            self.tick_at(deadline, rng)?;
        }
        self.now = self.now.max(until);
        Ok(())
    }

    /// Crashes a client: unread messages to the server may be lost, messages in flight to the client are.
    fn crash(&mut self, place: usize, rng: &mut Rng) {
        let Some(client) = &mut self.clients[place] else {
            return;
        };
        if client.dead {
            return;
        }
        if rng.percent(20) && client.welcomed && !client.leaving {
            client.leaving = true;
            self.ask(place, Ask::Goodbye, Doing::Loose);
            return;
        }
        let is_cut = rng.percent(50);
        match self.clients[place].as_mut().and_then(|client| client.road.as_mut()) {
            Some(road) if is_cut => {
                road.cut(rng);
                note!(self, "the link at place {place} is cut");
            }
            _ => self.die(place, rng),
        }
    }

    pub(crate) fn die(&mut self, place: usize, rng: &mut Rng) {
        let Some(client) = &mut self.clients[place] else { return };
        let arrived = rng.below(client.up.len() + 1);
        let was_ended = self.recorder.lines.get(&client.id).is_some_and(|line| line.closed);
        note!(
            self,
            "client {} dies; the server gets {arrived} of its last {} messages",
            client.id,
            client.up.len()
        );
        match &mut client.road {
            Some(road) => road.die(rng),
            None => client.up.truncate(arrived),
        }
        client.dead = true;
        let id = client.id;
        // Bytes behind a link are still sent to it.
        if client.road.is_none() || was_ended {
            self.recorder.lines.remove(&id);
        }
        self.forget_readers(place);
        if was_ended {
            self.clients[place] = None;
        }
    }

    /// The follows and requirements of a client are over for it.
    pub(crate) fn forget_readers(&mut self, place: usize) {
        let Some(client) = &mut self.clients[place] else { return };
        let id = client.id;
        let name = format!("producer{id}");
        if self.recorded {
            self.histories.push((name, std::mem::take(&mut client.rows)));
        }
        for chain in &mut self.chains {
            if chain.session.as_ref().is_some_and(|session| session.client == id) {
                chain.interrupt();
            }
        }
        for wish in self.wishes.iter_mut().filter(|wish| wish.client == id) {
            wish.over = true;
        }
    }
}

/// The checksum of a payload that the file tier reports.
#[must_use]
pub fn spilled_checksum(payload: u64) -> u32 {
    payload as u32 ^ 0xc4ec_0000
}

fn text_of(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|&text| text.to_owned()))
        .unwrap_or_default()
}

/// A fault of this crate, not of the core.
#[must_use]
pub fn own_fault(error: &Error) -> String {
    format!("the simulation itself: {error}")
}
