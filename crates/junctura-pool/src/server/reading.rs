//! Takes what clients have sent, and answers it in turns ([`super::turn`]).

use std::time::Duration;

use junctura_model::{Result, selector};
use junctura_transport::{Inbox, ReceiveResult};
use junctura_wire::Request;
use junctura_wire::fixed::ReleasedHolding;
use junctura_wire::frame::HEADER_BYTES;

use super::Server;
use super::connection::LastWords;
use super::turn::{ClientTurn, ReadTurn, SelectorPreparation, TurnClock, is_quick};
use crate::core::Nanoseconds;

/// Clients that get another turn between two looks at sockets and timers, at most.
const UNFINISHED_MAX: usize = 64;

/// Objects of one release that are released between two looks at the clock.
const RELEASED_AT_ONCE: usize = 128;

/// The time of a turn of visitors while others are at work.
const VISITORS_TURN: Duration = Duration::from_micros(200);

/// The outcome of the frames of an inbox.
enum ReadOutcomes {
    All,
    /// The turn was over before.
    Leftover,
}

impl Server {
    /// Reads the data of a client, for one turn: others get theirs before it is read again.
    #[cfg(test)]
    pub(super) fn read(&mut self, client: u32, turn: ClientTurn) {
        let now = self.now();
        self.read_from(now, client, turn);
    }

    /// Reads no more than one message of a client.
    pub(super) fn read_one(&mut self, client: u32) {
        let now = self.now();
        self.read_for(now, client, ClientTurn::Light, Some(Duration::ZERO));
    }

    fn read_from(&mut self, now: Nanoseconds, client: u32, turn: ClientTurn) {
        self.read_for(now, client, turn, None);
    }

    fn read_for(&mut self, now: Nanoseconds, client: u32, turn: ClientTurn, limit: Option<Duration>) {
        let Some(connection) = self.world.connections.get_mut(&client) else {
            return;
        };
        if connection.turn.waits_for_selector() {
            return;
        }
        connection.turn.next = ClientTurn::Light;
        if !connection.is_heard() {
            if let Some(reason) = connection.last_words.take().map(LastWords::reason) {
                self.lost(client, &reason);
            }
            return;
        }
        let mut inbox = std::mem::take(&mut connection.inbox);
        let received = connection.receive(&mut inbox);
        if let Ok(ReceiveResult::Bytes(bytes)) = received {
            self.world.traffic.read(bytes);
        }
        let quick_at_once = connection.turn.quick_at_once;
        if turn != ClientTurn::Visitor {
            self.crowd.note();
        }
        let limit = limit.unwrap_or_else(|| self.time_of(turn));
        let mut clock = TurnClock::start(now, limit, quick_at_once);
        let done = self.answer_all(now, client, &mut inbox, turn, &mut clock);
        let took = Duration::from_nanos(self.now().saturating_sub(now));
        let spent = self.unfinished.spent(took, limit);
        let has_come = matches!(received, Ok(ReceiveResult::Bytes(_) | ReceiveResult::Full));
        if has_come {
            self.heard_at = now;
        }
        if let Some(connection) = self.world.connections.get_mut(&client) {
            connection.inbox = inbox;
            connection.turn.quick_at_once = clock.quick_at_once;
            if turn == ClientTurn::Light {
                connection.turn.spent = spent;
            }
            connection.turn.has_leftover = matches!(done, Ok(ReadOutcomes::Leftover));
            let goes_on = connection.has_more() || connection.last_words.is_some();
            if goes_on && !connection.turn.waits_for_selector() {
                self.read_again(client);
            }
        }
        match (done, received) {
            // An end is met again when nothing is left over.
            (Ok(ReadOutcomes::Leftover), _) => {}
            (Err(error), _) => self.core.garbage(now, client, 0, &error, &mut self.world),
            (Ok(ReadOutcomes::All), Ok(ReceiveResult::End)) => self.lost(client, "its connection ended"),
            (Ok(ReadOutcomes::All), Err(error)) => self.lost(client, &error.to_string()),
            (Ok(ReadOutcomes::All), Ok(_)) => self.note_last_words(client, has_come),
        }
    }

    /// Gives a client another turn, without waiting for new data.
    pub(super) fn read_again(&mut self, client: u32) {
        if let Some(connection) = self.world.connections.get_mut(&client)
            && !std::mem::replace(&mut connection.turn.is_noted, true)
        {
            match connection.turn.next {
                _ if connection.turn.is_visitor() => self.visitors.push_back(client),
                ClientTurn::Light => self.unfinished.push(client, connection.turn.spent),
                ClientTurn::Heavy | ClientTurn::Visitor => self.deferred.push_back(client),
            }
        }
    }

    /// Gives turns to light clients that wait for one, together for the time of one: sockets and timers wait no longer.
    pub(super) fn read_unfinished(&mut self) {
        if self.unfinished.is_empty() {
            return;
        }
        let clock = TurnClock::start(self.now(), self.time_of(ClientTurn::Light), 1);
        for _ in 0..self.unfinished.len().min(UNFINISHED_MAX) {
            if let Some(client) = self.unfinished.pop() {
                self.read_next(client, ClientTurn::Light);
            }
            if clock.is_over(self.lately()) {
                return;
            }
        }
    }

    /// Gives turns to heavy clients, together for the time of one, when it is theirs.
    pub(super) fn read_deferred(&mut self) {
        if !self.heavy_may_go_on() {
            return;
        }
        let began = self.now();
        let clock = TurnClock::start(began, self.time_of(ClientTurn::Heavy), 1);
        for _ in 0..self.deferred.len().min(UNFINISHED_MAX) {
            if let Some(client) = self.deferred.pop_front() {
                self.read_next(client, ClientTurn::Heavy);
            }
            if clock.is_over(self.lately()) {
                break;
            }
        }
        self.share.note_turn(began, self.lately());
    }

    /// Gives turns to visitors, together for the time of one, when it is theirs.
    pub(super) fn read_visitors(&mut self) {
        let began = self.now();
        let clock = TurnClock::start(began, self.time_of(ClientTurn::Visitor), 1);
        for _ in 0..self.visitors.len().min(UNFINISHED_MAX) {
            if let Some(client) = self.visitors.pop_front() {
                self.read_next(client, ClientTurn::Visitor);
            }
            if clock.is_over(self.lately()) {
                break;
            }
        }
        self.visitor_share.note_turn(began, self.lately());
    }

    /// Returns whether a visitor waits and the turn of visitors is due.
    pub(super) fn visitors_may_go_on(&self) -> bool {
        !self.visitors.is_empty() && self.now() >= self.visitor_share.due_at()
    }

    /// When heavy clients that wait, or visitors, get their turn.
    pub(super) fn share_due(&self) -> Option<Nanoseconds> {
        let heavy = (!self.deferred.is_empty()).then(|| self.share.due_at());
        let visitors = (!self.visitors.is_empty()).then(|| self.visitor_share.due_at());
        heavy.into_iter().chain(visitors).min()
    }

    /// Whether a heavy client waits, and heavy clients have their turn.
    pub(super) fn heavy_may_go_on(&self) -> bool {
        !self.deferred.is_empty() && self.now() >= self.share.due_at()
    }

    pub(super) fn time_of(&self, turn: ClientTurn) -> Duration {
        match turn {
            ClientTurn::Light => {
                let waiting = self.unfinished.len() + self.deferred.len();
                self.crowd.turn(self.options.turn, waiting)
            }
            ClientTurn::Visitor if self.visitor_share.has_others(self.now()) => self.options.turn.min(VISITORS_TURN),
            ClientTurn::Heavy | ClientTurn::Visitor => self.options.turn / 4,
        }
    }

    /// Reads the data of a client whose turn begins when the last one has ended.
    fn read_next(&mut self, client: u32, turn: ClientTurn) {
        if let Some(its) = self.turn_of(client) {
            its.is_noted = false;
        }
        self.read_from(self.lately(), client, turn);
    }

    /// Answers the frames of an inbox, or as many as one turn has time for.
    fn answer_all(
        &mut self,
        now: Nanoseconds,
        client: u32,
        inbox: &mut Inbox,
        turn: ClientTurn,
        clock: &mut TurnClock,
    ) -> Result<ReadOutcomes> {
        while let Some(frame) = inbox.peek()? {
            let request = Request::decode(&frame);
            let quick = request.as_ref().is_ok_and(is_quick);
            let is_hello = matches!(request, Ok(Request::Hello(_)));
            if let Ok(request) = &request
                && !quick
                && !self.may_answer(client, request, turn, clock)
            {
                if let Some(its) = self.turn_of(client) {
                    its.next = ClientTurn::Heavy;
                }
                return Ok(ReadOutcomes::Leftover);
            }
            match turn {
                ClientTurn::Light => {
                    self.share.note_others(now);
                    self.visitor_share.note_others(now);
                }
                ClientTurn::Heavy => self.visitor_share.note_others(now),
                ClientTurn::Visitor => {}
            }
            match &request {
                Ok(Request::Hello(hello)) => self.greet(now, client, frame.request, hello.clone()),
                Ok(Request::Goodbye) if self.core.wind_down(now, client, &mut self.world) => {
                    self.take_leave(client, frame.request);
                    return Ok(ReadOutcomes::All);
                }
                Ok(Request::Release(holdings)) if holdings.len() > RELEASED_AT_ONCE => {
                    if !self.release_in_parts(now, client, frame.request, holdings, clock) {
                        return Ok(ReadOutcomes::Leftover);
                    }
                }
                Ok(request) if quick => self.core.request(now, client, frame.request, request, &mut self.world),
                Ok(request) => self.answer_at_length(now, client, frame.request, request),
                Err(error) => self.core.garbage(now, client, frame.request, error, &mut self.world),
            }
            match (quick, frame.descriptors) {
                (true, 0) => {
                    let frame_bytes = HEADER_BYTES + frame.body.len();
                    inbox.skip(frame_bytes);
                }
                _ => drop(inbox.next_frame()?),
            }
            self.world.traffic.frames_read += 1;
            if is_hello && !inbox.is_empty() && self.turn_of(client).is_some_and(|its| its.is_visitor()) {
                // The rest of what it has sent waits for the turn of visitors.
                return Ok(ReadOutcomes::Leftover);
            }
            if clock.counts(quick) && !inbox.is_empty() && clock.look(self.now()) {
                return Ok(ReadOutcomes::Leftover);
            }
        }
        // Descriptors that no frame announces are an error.
        inbox.next_frame().map(|_| ReadOutcomes::All)
    }

    /// Releases objects until its client's turn is over; whether all are.
    fn release_in_parts(
        &mut self,
        now: Nanoseconds,
        client: u32,
        number: u64,
        holdings: &[ReleasedHolding],
        clock: &mut TurnClock,
    ) -> bool {
        let before = self
            .turn_of(client)
            .map_or(0, |turn| std::mem::take(&mut turn.released));
        let mut parts = holdings[before..].chunks(RELEASED_AT_ONCE);
        while let Some(part) = parts.next() {
            let request = Request::Release(part);
            self.core.request(now, client, number, &request, &mut self.world);
            let left: usize = parts.clone().map(<[_]>::len).sum();
            if left > 0 && clock.is_over(self.now()) {
                if let Some(turn) = self.turn_of(client) {
                    turn.released = holdings.len() - left;
                }
                return false;
            }
        }
        true
    }

    /// Whether a request that is not quick is answered in this turn. One whose selector takes long to read waits for that, and one
    /// that looks at very many objects is prepared, as far as there is time.
    fn may_answer(&mut self, client: u32, request: &Request<'_>, turn: ClientTurn, clock: &TurnClock) -> bool {
        let Some(connection) = self.world.connections.get_mut(&client) else {
            return true;
        };
        if !connection.turn.takes(request, turn) {
            return false;
        }
        let is_prepared = matches!(connection.turn.selector, SelectorPreparation::Done(_));
        let costly = request
            .selector()
            .filter(|text| !is_prepared && selector::is_costly(text));
        if let Some(text) = costly {
            connection.turn.selector = SelectorPreparation::Ordered;
            self.compiler.order(client, text.to_owned());
            // Its socket is not looked at meanwhile.
            self.world.touch(client);
            return false;
        }
        self.look_ahead(client, request, clock)
    }

    /// Prepares a request until its client's turn is over; whether it was ready before.
    fn look_ahead(&mut self, client: u32, request: &Request<'_>, clock: &TurnClock) -> bool {
        let prepared = self.turn_of(client).and_then(ReadTurn::take_prepared);
        let before = self.core.prepare(prepared);
        debug_assert!(before.is_none(), "it is of one request");
        let is_ready = self.core.look_ahead(client, request);
        if !is_ready {
            if let Some(turn) = self.turn_of(client) {
                turn.note_request(Nanoseconds::MAX);
            }
            // Its client's turn was light until here: the rest is prepared in heavy ones, which are shorter.
            let heavy = TurnClock::start(self.now(), self.time_of(ClientTurn::Heavy), 1);
            let is_over = |now| clock.is_over(now) || heavy.is_over(now);
            // An answer that becomes ready is given in the next turn: with its preparation it would take longer than one.
            while !is_over(self.now()) && !self.core.look_ahead(client, request) {}
        }
        if let Some(prepared) = self.core.prepare(None)
            && let Some(turn) = self.turn_of(client)
        {
            turn.selector = SelectorPreparation::Done(prepared);
        }
        is_ready
    }

    fn turn_of(&mut self, client: u32) -> Option<&mut ReadTurn> {
        Some(&mut self.world.connections.get_mut(&client)?.turn)
    }

    /// Answers a request that may take long, and notes how long it took.
    fn answer_at_length(&mut self, now: Nanoseconds, client: u32, number: u64, request: &Request<'_>) {
        let prepared = self.turn_of(client).and_then(ReadTurn::take_prepared);
        let began = self.now();
        self.core.prepare(prepared);
        self.core.request(now, client, number, request, &mut self.world);
        self.core.prepare(None);
        let took = self.now().saturating_sub(began);
        if let Some(turn) = self.turn_of(client) {
            turn.note_request(took);
        }
    }
}
