//! The board of a pool's server, as clients on its machine see it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use junctura_board::{BoardHead, BoardReader, BoardSnapshot};
use junctura_memory::SharedWords;
use junctura_model::Result;
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

    /// Copies the board: numbers of one moment, at most 20 ms old while the server is busy.
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
