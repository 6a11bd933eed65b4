//! The server: one thread that reads sockets and rings, asks the core, and carries out its orders.
//!
//! ```text
//!   epoll --> receive what has come --> core decides --> outboxes --> flush: deliveries first, then answers
//! ```
//! Nothing on an object's way waits or locks. A client that does not read its answers is not read either, until it does;
//! what it is owed stays bounded by its windows and limits. A client whose process has died is noticed by the end of its
//! socket, or by its pidfd when a forked child keeps the socket open.

mod board;
mod compiler;
mod connection;
mod embedded;
mod incarnation;
mod newcomers;
mod pages;
mod poller;
mod reading;
mod ready;
mod spiller;
mod traffic;
mod turn;
mod world;

use std::cell::Cell;
use std::collections::VecDeque;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use junctura_model::requirements::WrittenRequirement;
use junctura_model::{Code, Error, Result, Schema};
use junctura_transport::{Carrier, ConnectionRings, Parts, ServerAddress, ServerListener, for_clients};
use junctura_wire::Request;
use junctura_wire::body::Hello;

use crate::PoolConfig;
use crate::core::{Core, Nanoseconds, tell_undelivered};
use board::{ServerBoard, TurnSums};
use compiler::SelectorCompiler;
use connection::{ClientConnection, LastWords};
pub use embedded::{EmbeddedServer, private_address};
use newcomers::ServerNewcomers;
use poller::{EventPoller, WakeupSource};
use ready::ReadyMemory;
use spiller::SpillThread;
use turn::{ActiveClients, ClientRole, FairOrder, FairShare, SelectorPreparation};
use world::ServerEffects;

/// Clients to which messages are sent at once; others get their turn before the next ones.
const FLUSHED_MAX: usize = 256;
/// Bytes of these messages above which no further client gets any.
const FLUSHED_BYTES_MAX: u64 = 4 << 20;
/// Crashed clients whose holdings end in one turn, each a part if it has very many.
const LEFT_MAX: usize = 4;
/// Postponed work is done when no client has sent anything for so long.
const IDLE_WORK_AFTER: Nanoseconds = 20_000_000;
/// How long a server that ends waits for a client to take what is queued for it, after the client has taken something.
const SENDING_TIME_MAX: Duration = Duration::from_secs(1);
const SENT_EVERY: Duration = Duration::from_millis(1);

/// How a server runs.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// The pool's configuration. Its incarnation is set by the server.
    pub config: PoolConfig,
    /// Ends when the pool has had no client and no object for this long; `None`: serves until stopped.
    pub end_when_idle: Option<Duration>,
    /// Look for work this long before sleeping, where that pays: lower latency for a core that is busy so much longer.
    pub spin: Duration,
    /// How long [`ServerStopper::drain`] waits for objects that requirements are owed.
    pub drain_timeout: Duration,
    /// Payload memory that is made ready before it is leased: a first write into it takes a third of the time. At most a
    /// sixteenth of the budget; it is given back when clients lease nearly all of the budget.
    pub ready_bytes: u64,
    /// Named requirements that exist before the first client connects.
    pub requirements: Vec<WrittenRequirement>,
    /// Time after which other clients get their turn, for any number of requests of one client; a quarter of it while
    /// more than four are active. All clients together whose requests take long have a quarter of it. A request that
    /// has begun is completed.
    pub turn: Duration,
}

impl ServerOptions {
    /// Some hundred requests of the usual kind.
    pub const TURN: Duration = Duration::from_millis(1);
    /// About what it takes a client to be woken on a core that sleeps, and to send the next request.
    pub const SPIN: Duration = Duration::from_micros(50);
    /// Shorter than what service managers and batch systems wait between asking and killing.
    pub const DRAIN_TIMEOUT: Duration = Duration::from_secs(8);
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            config: PoolConfig::default(),
            end_when_idle: None,
            spin: Self::SPIN,
            drain_timeout: Self::DRAIN_TIMEOUT,
            ready_bytes: 0,
            requirements: Vec::new(),
            turn: Self::TURN,
        }
    }
}

/// A pool that listens.
pub struct Server {
    core: Core,
    world: ServerEffects,
    listener: ServerListener,
    poller: EventPoller,
    wakeup: Arc<OwnedFd>,
    began: Instant,
    /// The result of the last look at the clock.
    looked_at: Cell<Nanoseconds>,
    options: ServerOptions,
    deserted_since: Option<Instant>,
    newcomers: ServerNewcomers,
    compiler: SelectorCompiler,
    /// The reason of its end was logged.
    is_left: bool,
    /// Clients that wait for a turn: their data has arrived, or is left over from the last one.
    unfinished: FairOrder,
    /// Clients whose next request waits for the turn of heavy ones.
    deferred: VecDeque<u32>,
    share: FairShare,
    /// Visitors that wait for a turn.
    visitors: VecDeque<u32>,
    visitor_share: FairShare,
    crowd: ActiveClients,
    /// Clients that have left, and whose holdings the core has yet to end.
    leaving: VecDeque<LeavingClient>,
    /// The number of clients of which holdings were ended in this turn.
    left: usize,
    /// The time of the last data from a client.
    heard_at: Nanoseconds,
    turns: TurnSums,
    board: Option<ServerBoard>,
}

/// A client that has left.
struct LeavingClient {
    client: u32,
    farewell: FarewellState,
}

enum FarewellState {
    /// Its request with this number.
    Goodbye(u64),
    /// It sent none; the reason of its end.
    None(String),
}

/// Ends a server from another thread, or from a signal handler's thread. Cheap to clone.
#[derive(Clone, Debug)]
pub struct ServerStopper(Arc<OwnedFd>);

impl ServerStopper {
    /// The number added to the eventfd: so the sum shows whether the server was ever stopped at once.
    const DRAIN: u64 = 1;
    const STOP: u64 = 1 << 32;

    /// Asks the server to end at once; returns at once.
    pub fn stop(&self) {
        self.add(Self::STOP);
    }

    /// Asks the server to end in good order: it takes nothing new, and ends when all that requirements are owed was received,
    /// or when [`ServerOptions::drain_timeout`] is over. Returns at once.
    pub fn drain(&self) {
        self.add(Self::DRAIN);
    }

    fn add(&self, what: u64) {
        let woken = rustix::io::write(&*self.0, &what.to_ne_bytes());
        debug_assert!(woken.is_ok(), "an eventfd takes it");
    }

    /// Whether the server was stopped at once.
    fn is_urgent(wakeup: &OwnedFd) -> bool {
        let mut sum = [0; 8];
        rustix::io::read(wakeup, &mut sum).is_ok() && u64::from_ne_bytes(sum) >= Self::STOP
    }
}

impl Server {
    /// Binds an address; clients can connect from here on, and are served once [`Server::run`] is called.
    ///
    /// # Errors
    /// Those of [`ServerListener::bind`], `InvalidArgument` for an invalid configuration, and the error of an invalid
    /// requirement, with its line.
    pub fn bind(address: &ServerAddress, mut options: ServerOptions) -> Result<Self> {
        let listener = ServerListener::bind(address)?;
        options.config.incarnation = incarnation::next(address);
        options.config.pid = std::process::id();
        options.config.host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let schemas = &mut options.config.schemas;
        if schemas.iter().all(|schema| schema.name() != Schema::PIECE) {
            schemas.extend(Schema::piece());
        }
        let mut core = Core::new(options.config.clone())?;
        for written in &options.requirements {
            core.require_from_the_start(written)?;
        }
        let poller = EventPoller::new()?;
        let wakeup = Arc::new(poller::eventfd()?);
        poller.add(listener.as_fd(), WakeupSource::Listener)?;
        poller.add(wakeup.as_fd(), WakeupSource::Stop)?;
        let compiler = SelectorCompiler::start(options.config.schemas.clone())?;
        poller.add(compiler.bell(), WakeupSource::Compiled)?;
        let spiller = options.config.spill.as_ref().map(SpillThread::start).transpose()?;
        if let Some(spiller) = &spiller {
            poller.add(spiller.bell(), WakeupSource::Spilled)?;
        }
        let budget_bytes = options.config.budget_bytes;
        let ready = ReadyMemory::new(options.ready_bytes.min(budget_bytes / 16), budget_bytes);
        Ok(Self {
            core,
            world: ServerEffects::with(spiller, ready),
            listener,
            poller,
            wakeup,
            began: Instant::now(),
            looked_at: Cell::new(0),
            options,
            deserted_since: None,
            newcomers: ServerNewcomers::default(),
            compiler,
            is_left: false,
            unfinished: FairOrder::default(),
            deferred: VecDeque::new(),
            share: FairShare::of_heavy(),
            visitors: VecDeque::new(),
            visitor_share: FairShare::of_visitors(),
            crowd: ActiveClients::default(),
            leaving: VecDeque::new(),
            left: 0,
            heard_at: 0,
            turns: TurnSums::begin(),
            board: None,
        })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> &ServerAddress {
        self.listener.address()
    }

    /// The first half of every version that it gives.
    #[must_use]
    pub fn incarnation(&self) -> u64 {
        self.options.config.incarnation
    }

    /// Returns the handle that stops it.
    #[must_use]
    pub fn stopper(&self) -> ServerStopper {
        ServerStopper(Arc::clone(&self.wakeup))
    }

    /// Serves until it is stopped, has drained or, if configured, is deserted. The connections of remaining clients
    /// end; after that, the address can be bound again.
    ///
    /// # Errors
    /// `Io` when the system refuses a resource that every server needs.
    pub fn run(mut self) -> Result<()> {
        tracing::info!(address = %self.address(), incarnation = self.incarnation(), "serving");
        let ended = self.serve_until_the_end();
        tracing::info!(address = %self.address(), "ending");
        if ended.is_ok() {
            let left = tell_undelivered(&mut self.core, &mut self.world);
            if left > 0 {
                tracing::warn!("{left} objects were not delivered to follows");
            }
            while self.world.is_touched() {
                self.flush();
            }
            if self.core.ending().is_some() {
                self.send_rest();
            }
            self.announce_end();
        }
        if let Some(board) = &mut self.board {
            board.end();
        }
        drop(self.listener);
        ended
    }

    /// Sends what is queued for clients, as long as they take something.
    fn send_rest(&mut self) {
        let mut written_at = Instant::now();
        loop {
            let waiting: Vec<u32> = self.world.unsent().collect();
            let is_urgent = ServerStopper::is_urgent(&self.wakeup);
            if waiting.is_empty() || is_urgent || written_at.elapsed() >= SENDING_TIME_MAX {
                return;
            }
            pause(SENT_EVERY);
            let before = self.world.traffic.bytes_written;
            for client in waiting {
                self.world.touch(client);
            }
            while self.world.is_touched() {
                self.flush();
            }
            if self.world.traffic.bytes_written > before {
                written_at = Instant::now();
            }
        }
    }

    /// Sends each client the reason why its connection ends, as far as it takes it at once.
    fn announce_end(&mut self) {
        let error = Error::new(Code::Closed, "server", "the server has ended in order");
        for (&client, connection) in &mut self.world.connections {
            if self.core.has_joined(client) {
                connection.refuse(0, &error);
            }
        }
    }

    fn serve_until_the_end(&mut self) -> Result<()> {
        let mut ready = Vec::new();
        self.world.idle();
        while !self.is_over() {
            self.wait(&mut ready)?;
            let awake = self.now();
            self.crowd.look();
            self.left = 0;
            if ready == [WakeupSource::Alarm] && self.is_quiet() {
                self.core.idle();
                self.world.idle();
            }
            for wakeup in ready.drain(..) {
                match wakeup {
                    WakeupSource::Alarm => self.poller.answer_alarm(),
                    WakeupSource::Stop if ServerStopper::is_urgent(&self.wakeup) => return Ok(()),
                    WakeupSource::Stop => self.drain(),
                    WakeupSource::Listener => self.accept(),
                    WakeupSource::Client { client, ready } => self.serve(client, ready),
                    WakeupSource::Bell { client } => self.serve(client, poller::ReadyEvents::BOTH),
                    WakeupSource::Death { client } => self.died(client, "its process ended"),
                    WakeupSource::Spilled => self.note_spilled(),
                    WakeupSource::Compiled => self.note_compiled(),
                }
            }
            if self.newcomers.wait_for_room() {
                self.accept();
            }
            self.read_unfinished();
            if self.heavy_may_go_on() {
                self.flush();
                self.read_deferred();
            }
            if self.visitors_may_go_on() {
                self.flush();
                self.read_visitors();
            }
            let now = if self.see_off() { self.now() } else { self.lately() };
            self.turn_overdue_away(now);
            self.core.tick(now, &mut self.world);
            self.world.traffic.note_turn(now.saturating_sub(awake));
            self.turns.add(now.saturating_sub(awake));
            self.tell_if_left();
            self.show(now);
            self.flush();
        }
        Ok(())
    }

    fn wait(&mut self, ready: &mut Vec<WakeupSource>) -> Result<()> {
        let core_waits = !self.core.is_behind() && !self.core.is_delivering();
        let due = self.share_due().map(|due| self.began + Duration::from_nanos(due));
        let others_wait = due.is_none_or(|due| due > Instant::now());
        let is_done = self.leaving.is_empty() && !self.newcomers.wait_for_room() && !self.world.is_touched();
        if self.unfinished.is_empty() && is_done && core_waits && others_wait {
            let deadline = self.deadline().into_iter().chain(due).min();
            let slept = self.poller.wait(ready, deadline, self.options.spin)?;
            self.world.traffic.wakeups += u64::from(slept);
            Ok(())
        } else {
            self.poller.look(ready)
        }
    }

    fn now(&self) -> Nanoseconds {
        let now = self.began.elapsed().as_nanos() as u64;
        self.looked_at.set(now);
        now
    }

    /// The time of the last look at the clock: so the core gets no earlier time than it had.
    fn lately(&self) -> Nanoseconds {
        self.looked_at.get()
    }

    /// Returns when there is work, if no client sends anything.
    fn deadline(&self) -> Option<Instant> {
        let at = |nanoseconds| self.began + Duration::from_nanos(nanoseconds);
        let timer = self.core.deadline().map(at);
        let newcomer = self.newcomers.deadline().map(at);
        let has_idle_work = self.core.has_idle_work() || self.world.has_idle_work();
        let idle = has_idle_work.then(|| at(self.heard_at + IDLE_WORK_AFTER));
        let desertion = self
            .deserted_since
            .zip(self.options.end_when_idle)
            .and_then(|(since, after)| since.checked_add(after));
        let board = self.board_due_at().map(at);
        [timer, newcomer, idle, desertion, board].into_iter().flatten().min()
    }

    /// Whether there is no request now: the alarm may also have fired early, while a busy server slept for a moment.
    fn is_quiet(&self) -> bool {
        self.now() >= self.heard_at + IDLE_WORK_AFTER
    }

    fn note_spilled(&mut self) {
        let done: Vec<_> = self.world.spiller.iter().flat_map(SpillThread::take_done).collect();
        let now = self.now();
        for (job, outcome) in done {
            if let Err(error) = &outcome {
                tracing::warn!(%error, "a payload could not be spilled");
            }
            self.core.spilled(now, job, outcome, &mut self.world);
        }
    }

    /// Continues the requests of clients whose selectors were parsed.
    fn note_compiled(&mut self) {
        let done: Vec<_> = self.compiler.take_done().collect();
        for (client, prepared) in done {
            if let Some(connection) = self.world.connections.get_mut(&client) {
                connection.turn.selector = SelectorPreparation::Done(prepared);
                self.world.touch(client);
                self.read_again(client);
            }
        }
    }

    fn drain(&mut self) {
        let (now, timeout) = (self.now(), self.options.drain_timeout);
        tracing::info!("draining");
        self.core.drain(now, Some(timeout), &mut self.world);
        if self.core.ending().is_none() {
            tracing::warn!(?timeout, "draining: consumers have yet to receive objects");
        }
    }

    /// Logs, once, that the programs of the server have connected and disconnected.
    fn tell_if_left(&mut self) {
        if !self.is_left && self.core.is_left_by_its_components() {
            self.is_left = true;
            let names = self.options.config.until_gone.join(", ");
            if self.core.ending().is_some() {
                tracing::warn!("ending: {names} disconnected");
            } else {
                tracing::warn!("draining: {names} disconnected, and consumers have yet to receive objects");
            }
        }
    }

    fn is_over(&mut self) -> bool {
        if let Some(ending) = self.core.ending() {
            if let Err(left) = ending {
                tracing::warn!("{left}");
            }
            return true;
        }
        let Some(after) = self.options.end_when_idle else {
            return false;
        };
        if !self.core.is_deserted() {
            self.deserted_since = None;
            return false;
        }
        self.deserted_since.get_or_insert_with(Instant::now).elapsed() >= after
    }

    fn serve(&mut self, client: u32, ready: poller::ReadyEvents) {
        let is_unheard = |connection: &ClientConnection| !connection.is_heard();
        if ready.ended && self.world.connections.get(&client).is_some_and(is_unheard) {
            // It waits for a peer that will not read again, and its end would be signaled forever.
            return self.died(client, "its connection ended");
        }
        if ready.writable {
            self.world.touch(client);
        }
        if ready.readable {
            self.read_again(client);
        }
    }

    /// Handles the crash of a client. Its earlier data counts: objects that it has released are not redelivered. It is
    /// lost when that was read.
    fn died(&mut self, client: u32, reason: &str) {
        let Some(connection) = self.world.connections.get_mut(&client) else {
            return;
        };
        connection.is_paused = false;
        if !connection.is_heard() {
            return self.lost(client, reason);
        }
        if connection.last_words.is_none() {
            connection.last_words = Some(LastWords::new(reason));
            self.read_again(client);
        }
    }

    /// Loses a crashed client, once all its data was read.
    fn note_last_words(&mut self, client: u32, has_come: bool) {
        let connection = self.world.connections.get_mut(&client);
        let Some(words) = connection.and_then(|connection| connection.last_words.as_mut()) else {
            return;
        };
        if let Some(reason) = words.is_over(has_come) {
            self.lost(client, &reason);
        }
    }

    fn greet(&mut self, now: Nanoseconds, client: u32, number: u64, hello: Hello<'_>) {
        let is_new = !self.core.has_joined(client);
        let ring_bytes = hello.ring_bytes.filter(|_| is_new);
        let visits = hello.visits;
        // Visitors are not logged.
        let peer = (is_new && !visits && tracing::enabled!(tracing::Level::INFO)).then(|| {
            let route = hello.route.as_ref().map(ToString::to_string);
            (hello.name.to_string(), hello.host.to_string(), hello.pid, route)
        });
        // Before the client is welcome: this process may be able to open no more descriptors.
        let rings = match ring_bytes
            .map(|bytes| ConnectionRings::create(bytes as usize))
            .transpose()
        {
            Ok(rings) => rings,
            Err(error) => return self.turn_away(client, number, &for_clients(&error)),
        };
        self.core
            .request(now, client, number, &Request::Hello(hello), &mut self.world);
        if self.core.has_joined(client) {
            self.newcomers.remove(client);
            if let Some(connection) = self.world.connections.get_mut(&client) {
                if visits {
                    connection.turn.role = ClientRole::Visitor;
                }
                if let Some((name, host, pid, route)) = peer {
                    connection.is_logged = true;
                    tracing::info!(client, name, host, pid, route, "a client has connected");
                }
            }
            if let Some(rings) = rings {
                self.switch_to_rings(client, rings);
            }
        }
    }

    fn switch_to_rings(&mut self, client: u32, rings: (ConnectionRings, Parts)) {
        let Some(connection) = self.world.connections.get_mut(&client) else {
            return;
        };
        let before = connection.outbox.len();
        let switched = connection.switch_to_rings(rings);
        self.world.unread_bytes = self.world.unread_bytes + connection.outbox.len() - before;
        let switched = switched.and_then(|()| match connection.bell() {
            Some(bell) => self.poller.add(bell, WakeupSource::Bell { client }),
            None => Ok(()),
        });
        if let Err(error) = switched {
            self.lost(client, &error.to_string());
        }
    }

    fn lost(&mut self, client: u32, reason: &str) {
        self.newcomers.remove(client);
        if let Some(connection) = self.world.connections.remove(&client) {
            log_disconnect(&connection, client, reason);
            self.forget(connection);
            let farewell = FarewellState::None(reason.to_owned());
            let leaving = LeavingClient { client, farewell };
            // One that has not introduced itself has nothing.
            if self.left < LEFT_MAX || !self.core.has_joined(client) {
                self.let_leave(leaving);
            } else {
                self.leaving.push_back(leaving);
            }
        }
    }

    /// Handles the goodbye of a client with very many requests: later data is not read. Its connection ends when the
    /// pool has ended its holdings, so that a peer that sees the end finds them free.
    fn take_leave(&mut self, client: u32, number: u64) {
        if let Some(connection) = self.world.connections.get_mut(&client) {
            connection.turn.is_last = true;
            self.world.touch(client);
        }
        let farewell = FarewellState::Goodbye(number);
        self.leaving.push_back(LeavingClient { client, farewell });
    }

    /// Continues with the end of the client that has waited longest for its turn to leave. Returns whether there was one.
    fn see_off(&mut self) -> bool {
        let first = self.leaving.pop_front();
        first.map(|leaving| self.let_leave(leaving)).is_some()
    }

    /// Ends some holdings of a client; with the last one, the client has left. Until then it waits for its next turn.
    fn let_leave(&mut self, leaving: LeavingClient) {
        let (now, client) = (self.now(), leaving.client);
        self.left += 1;
        if self.core.wind_down(now, client, &mut self.world) {
            return self.leaving.push_back(leaving);
        }
        match leaving.farewell {
            FarewellState::Goodbye(number) => {
                self.core
                    .request(now, client, number, &Request::Goodbye, &mut self.world);
            }
            FarewellState::None(reason) => self.core.leave(now, client, &reason, &mut self.world),
        }
    }

    /// Sends the messages of the core: first to clients that receive objects, since they have work to do. To very many
    /// clients, or of very many bytes, some are sent in the next turn.
    fn flush(&mut self) {
        let before = self.world.traffic.bytes_written;
        for _ in 0..FLUSHED_MAX {
            let is_much = self.world.traffic.bytes_written - before >= FLUSHED_BYTES_MAX;
            let Some(client) = (!is_much).then(|| self.world.take_touched()).flatten() else {
                return;
            };
            self.flush_one(client);
        }
    }

    fn flush_one(&mut self, client: u32) {
        let Some(connection) = self.world.connections.get_mut(&client) else {
            return;
        };
        let before = connection.outbox.len();
        let flushed = connection.flush(&mut self.world.traffic);
        self.world.unread_bytes -= before - connection.outbox.len();
        match flushed {
            Ok(_) if connection.is_finished() => {
                self.newcomers.remove(client);
                if let Some(connection) = self.world.connections.remove(&client) {
                    log_disconnect(&connection, client, "goodbye");
                    self.forget(connection);
                }
            }
            Ok(is_read_again) => {
                let interest = connection.changed_interest();
                if is_read_again {
                    self.read_again(client);
                }
                let connection = self.world.connections.get(&client);
                if let Some((interest, connection)) = interest.zip(connection) {
                    let wakeup = WakeupSource::Client {
                        client,
                        ready: poller::ReadyEvents::default(),
                    };
                    let waited = self.poller.change(connection.carrier.as_fd(), wakeup, interest);
                    if let Err(error) = waited {
                        tracing::error!(%error, client, "cannot wait for a client");
                    }
                }
            }
            Err(error) => self.died(client, &error.to_string()),
        }
    }

    fn forget(&mut self, mut connection: ClientConnection) {
        self.world.unread_bytes -= connection.outbox.len();
        self.poller.remove(connection.carrier.as_fd());
        if let Some(bell) = connection.bell() {
            self.poller.remove(bell);
        }
        if let Some(death) = &connection.death {
            self.poller.remove(death.as_fd());
        }
    }
}

/// Waits: a server that ends has nothing else to do than to send.
#[expect(clippy::disallowed_methods, reason = "no request is served any more")]
fn pause(time: Duration) {
    std::thread::sleep(time);
}

/// Returns the error of a system call.
fn io(doing: &str, errno: rustix::io::Errno) -> Error {
    Error::new(Code::Io, "server", format!("{doing}: {errno}"))
}

/// Logs the end of a connection whose begin was logged.
fn log_disconnect(connection: &ClientConnection, client: u32, reason: &str) {
    if connection.is_logged {
        tracing::info!(client, reason, "a client has disconnected");
    }
}

#[cfg(test)]
mod tests;
