//! Writes the board, and gives it to clients that ask for it.
//!
//! The board is made when it is first asked for. From then on it is written at the end of a turn, at most once in [`INTERVAL`], and
//! less often where that would take more than a hundredth of the time: what happens in between costs the objects that are handed
//! over nothing. Clients that ask for it get it when it was written since; it is written for them earlier, if that takes no more
//! than a part of the time. While the server has nothing to do, it wakes once in [`HEARTBEAT`], so that viewers can distinguish a
//! server that rests from one that hangs.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use junctura_board::{
    BOARD_BYTES, BoardCounter, BoardHistogram, BoardIdentity, BoardReader, BoardState, BoardWriter, HistogramCounts,
};
use junctura_memory::{SealedSegment, SharedWords, WrittenWords};
use junctura_model::{Code, Error, Result};
use junctura_wire::Reply;
use rustix::time::{ClockId, clock_gettime};

use super::Server;
use crate::Effects;
use crate::core::Nanoseconds;

/// The least time between two times that the board is written.
const INTERVAL: Nanoseconds = 20_000_000;
/// Without requests for it, writing it takes no more than this part of the time.
const PART: Nanoseconds = 100;
/// Writing it for clients that ask for it takes no more than this part of the time.
const PART_FOR_ASKED: Nanoseconds = 20;
/// The longest time without it.
const HEARTBEAT: Nanoseconds = 1_000_000_000;

/// The board of a server, after the first request for it.
pub(super) struct ServerBoard {
    pub(super) descriptor: Arc<OwnedFd>,
    writer: BoardWriter<WrittenWords>,
    written_at: Nanoseconds,
    /// How long that took.
    pub(super) took: Nanoseconds,
    /// The server has turned since.
    is_stale: bool,
}

/// Counts of a server for its board.
#[derive(Default)]
pub(super) struct TurnSums {
    started_wall_ns: u64,
    started_ns: u64,
    turns: u64,
    times: HistogramCounts,
}

impl TurnSums {
    /// Begins to count now.
    pub(super) fn begin() -> Self {
        Self {
            started_wall_ns: clock_ns(ClockId::Realtime),
            started_ns: clock_ns(ClockId::Monotonic),
            ..Self::default()
        }
    }

    /// The deciding thread has turned, which took so long.
    pub(super) fn add(&mut self, took: Nanoseconds) {
        self.turns += 1;
        self.times.add(took);
    }
}

impl ServerBoard {
    fn create(identity: &BoardIdentity) -> Result<Self> {
        let segment = SealedSegment::create(BOARD_BYTES)?;
        let writable = segment.writable().try_clone_to_owned().map_err(|error| io(&error))?;
        let words = WrittenWords::map(writable, BOARD_BYTES)?;
        let descriptor = segment.readonly().try_clone_to_owned().map_err(|error| io(&error))?;
        Ok(Self {
            descriptor: Arc::new(descriptor),
            writer: BoardWriter::new(words, identity),
            written_at: 0,
            took: 0,
            is_stale: true,
        })
    }

    /// When it is to be written.
    fn due_at(&self, is_asked_for: bool) -> Nanoseconds {
        let pause = match (is_asked_for, self.is_stale) {
            (true, _) => INTERVAL.min(self.took * PART_FOR_ASKED),
            (false, true) => (self.took * PART).clamp(INTERVAL, HEARTBEAT),
            (false, false) => HEARTBEAT,
        };
        self.written_at + pause
    }

    /// Notes that the server has ended in order.
    pub(super) fn end(&mut self) {
        self.writer.state(BoardState::Ended);
    }
}

impl Server {
    /// Returns the board, which stays readable whatever becomes of the server. For other threads of this process; clients get it
    /// by the request `Board`.
    ///
    /// # Errors
    /// `LimitExceeded` or `Io` when the system has no memory or descriptors for it.
    pub fn board(&mut self) -> Result<BoardReader> {
        let now = self.now();
        self.open_board()?;
        self.write_board(now);
        let board = self.board.as_ref().map(|board| board.descriptor.try_clone());
        let missing = || Err(Error::new(Code::Io, "board", "there is none"));
        let descriptor = board.map_or_else(missing, |cloned| cloned.map_err(|error| io(&error)))?;
        BoardReader::of(SharedWords::map(descriptor, BOARD_BYTES)?)
    }

    /// When the board is to be written.
    pub(super) fn board_due_at(&self) -> Option<Nanoseconds> {
        let is_asked_for = !self.world.boards_asked.is_empty();
        self.board.as_ref().map(|board| board.due_at(is_asked_for))
    }

    /// The end of a turn: writes the board if it is due, and sends it to clients that have requested it.
    pub(super) fn show(&mut self, now: Nanoseconds) {
        let is_asked_for = !self.world.boards_asked.is_empty();
        if is_asked_for && let Err(error) = self.open_board() {
            for (client, request) in std::mem::take(&mut self.world.boards_asked) {
                self.world.reply(client, request, &Reply::Failed((&error).into()));
            }
            return;
        }
        let Some(board) = &mut self.board else { return };
        if now < board.due_at(is_asked_for) {
            board.is_stale = true;
            return;
        }
        let descriptor = Arc::clone(&board.descriptor);
        self.write_board(now);
        for (client, request) in std::mem::take(&mut self.world.boards_asked) {
            self.world.send_board(client, request, Arc::clone(&descriptor));
        }
    }

    fn open_board(&mut self) -> Result<()> {
        if self.board.is_none() {
            let identity = BoardIdentity {
                incarnation: self.incarnation(),
                pid: self.options.config.pid,
                started_wall_ns: self.turns.started_wall_ns,
                started_ns: self.turns.started_ns,
            };
            self.board = Some(ServerBoard::create(&identity)?);
        }
        Ok(())
    }

    fn write_board(&mut self, now: Nanoseconds) {
        let Some(board) = &mut self.board else { return };
        let began = self.began.elapsed().as_nanos() as u64;
        let (core, world, turns) = (&self.core, &self.world, &self.turns);
        let traffic = &world.traffic;
        board.writer.publish(|edit| {
            core.write_board(edit, |client| world.backlog_bytes(client));
            let counters = [
                (BoardCounter::Wakeups, traffic.wakeups),
                (BoardCounter::Reads, traffic.reads),
                (BoardCounter::FramesRead, traffic.frames_read),
                (BoardCounter::BytesRead, traffic.bytes_read),
                (BoardCounter::Writes, traffic.writes),
                (BoardCounter::FramesWritten, traffic.frames_written),
                (BoardCounter::BytesWritten, traffic.bytes_written),
                (BoardCounter::LongestTurnNs, traffic.longest_turn_ns),
                (BoardCounter::BusyNs, clock_ns(ClockId::ThreadCPUTime)),
            ];
            for (counter, value) in counters {
                edit.counter(counter, value);
            }
            edit.histogram(BoardHistogram::TurnTime, &turns.times);
        });
        board.writer.state(if core.is_draining() {
            BoardState::Draining
        } else {
            BoardState::Serving
        });
        board.writer.turned(turns.turns, clock_ns(ClockId::Monotonic));
        board.written_at = now;
        board.took = self.began.elapsed().as_nanos() as u64 - began;
        board.is_stale = false;
    }
}

fn clock_ns(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn io(error: &std::io::Error) -> Error {
    Error::new(Code::Io, "board", error.to_string())
}
