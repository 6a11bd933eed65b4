//! The board of a pool's server, as clients on its machine see it.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use junctura_board::{BOARD_BYTES, BoardHead, BoardReader, BoardSnapshot};
use junctura_memory::SharedWords;
use junctura_model::{Code, Error, Result};
use junctura_transport::{Carrier, ServerAddress, UnixCarrier};
use junctura_wire::Request;
use rustix::time::{ClockId, clock_gettime};

use crate::connection::in_flight::{ExchangeKind, ServerMessage};
use crate::connection::state::StreamStop;
use crate::connection::{PoolConnection, unexpected};
use crate::pending::{Pending, RequestOutcome};

/// The numbers of a pool's server on a page of shared memory; see [`crate::Pool::board`]. Reading it costs the server nothing, and
/// works while the server hangs and after it has ended. Cheap to clone.
///
/// ```
/// # use junctura::{BoardCounter, BoardState, Pool};
/// # fn main() -> junctura::Result<()> {
/// # let pool = Pool::builder().schema("free").open()?;
/// let board = pool.board()?;
/// assert_eq!(board.head().state, BoardState::Serving);
/// let numbers: junctura::board::BoardSnapshot = board.snapshot();
/// assert_eq!(numbers.counter(BoardCounter::Offered), 0);
/// assert!(numbers.components.iter().all(|component| component.clients == 1));
/// assert!(board.turn_age().as_secs() < 3); // else the server hangs
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct PoolBoard(Arc<BoardReader>);

impl PoolBoard {
    pub(crate) fn begin(connection: &Arc<PoolConnection>) -> Result<Pending<Self>> {
        connection.pend(
            ExchangeKind::Once,
            &Request::Board,
            StreamStop::Cancel,
            |_, _, said| match said {
                RequestOutcome::Letter(ServerMessage::BoardPage(fd, bytes)) => {
                    BoardReader::of(SharedWords::map(fd, bytes)?).map(Self::from)
                }
                _ => Err(unexpected("no board")),
            },
        )
    }

    /// Returns the board of the server at a Unix socket without a request, among the descriptors of the server's process: for a
    /// server that does not answer. A server has a board after the first request for it. Does not block.
    ///
    /// ```
    /// # use junctura::{Code, PoolBoard};
    /// let error = PoolBoard::of_silent_server("unix:@no-server-listens-here").unwrap_err();
    /// assert_eq!(error.code(), Code::Unavailable);
    /// ```
    ///
    /// # Errors
    /// `Unavailable` if no server listens there; `NotFound` if it has no board, if its process serves several pools, or if this
    /// process may not inspect it;
    /// `InvalidArgument` if the URL is not that of a Unix socket.
    pub fn of_silent_server(url: &str) -> Result<Self> {
        let carrier = UnixCarrier::connect(&url.parse::<ServerAddress>()?)?;
        let not_found = |cause: &str| Error::new(Code::NotFound, format!("board of {url}"), cause);
        let hidden = "the process of the server is not visible to this process";
        let pid = carrier.peer().pid.ok_or_else(|| not_found(hidden))?;
        let entries = fs::read_dir(format!("/proc/{pid}/fd")).map_err(|_| not_found(hidden))?;
        let boards = entries.flatten().filter_map(|entry| board_at(&entry.path(), pid));
        let boards: BTreeMap<u64, BoardReader> = boards.map(|board| (board.head().incarnation, board)).collect();
        if boards.len() > 1 {
            return Err(not_found(
                "its process serves several pools, which only a server that answers distinguishes",
            ));
        }
        let board = boards.into_values().next();
        board
            .map(Self::from)
            .ok_or_else(|| not_found("the server has not made one"))
    }

    /// Copies the board: numbers of one moment, while the server is busy at most 20 ms old, or 100 times what writing it takes.
    #[must_use]
    pub fn snapshot(&self) -> BoardSnapshot {
        self.0.snapshot()
    }

    /// Reads the head alone.
    #[must_use]
    pub fn head(&self) -> BoardHead {
        self.0.head()
    }

    /// Returns the time since the deciding thread of the server was last seen to turn: about a second at most, or the server hangs
    /// or has ended.
    #[must_use]
    pub fn turn_age(&self) -> Duration {
        let now = clock_gettime(ClockId::Monotonic);
        let now_ns = now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64;
        Duration::from_nanos(self.head().turn_age_ns(now_ns))
    }
}

impl From<BoardReader> for PoolBoard {
    fn from(reader: BoardReader) -> Self {
        Self(Arc::new(reader))
    }
}

impl fmt::Debug for PoolBoard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PoolBoard(of process {})", self.head().pid)
    }
}

/// Maps the descriptor of another process, if it is the board that this process writes.
fn board_at(descriptor: &Path, pid: u32) -> Option<BoardReader> {
    let target = fs::read_link(descriptor).ok()?;
    if !target.to_str()?.starts_with("/memfd:junctura") {
        return None;
    }
    let file = File::open(descriptor).ok()?;
    if file.metadata().ok()?.len() != BOARD_BYTES {
        return None;
    }
    let board = BoardReader::of(SharedWords::map(file.into(), BOARD_BYTES).ok()?).ok()?;
    (board.head().pid == pid).then_some(board)
}
