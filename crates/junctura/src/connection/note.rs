//! Notes of a client: what it works on. The last one counts, and at most one is sent in [`NOTED_EVERY`], so that a program may state
//! each of its steps.

use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use junctura_model::{Code, Error, Result};
use junctura_wire::Request;
use junctura_wire::body::NoteRequest;

use super::PoolConnection;
use crate::connection::state::ConnectionState;

/// The shortest time between two notes that are sent.
const NOTED_EVERY: Duration = Duration::from_secs(1);

/// The note of a client that is not sent yet.
#[derive(Debug, Default)]
pub(crate) struct NoteState {
    waiting: Option<String>,
    sent_at: Option<Instant>,
    /// A thread sends the waiting one; it ends when this is dropped.
    timer: Option<Sender<()>>,
}

impl NoteState {
    /// Returns how long the next note waits.
    fn left(&self) -> Duration {
        let age = self.sent_at.map_or(NOTED_EVERY, |sent| sent.elapsed());
        NOTED_EVERY.saturating_sub(age)
    }
}

/// States what this client works on: now, or when the time since the last note is over. Does not block.
pub(crate) fn state_note(connection: &Arc<PoolConnection>, text: &str) -> Result<()> {
    if let Some(cause) = NoteRequest::refusal(text) {
        return Err(Error::new(Code::InvalidArgument, "note", cause));
    }
    let mut state = connection.lock()?;
    state.stay_in_process()?;
    state.alive()?;
    state.note.waiting = Some(text.to_owned());
    let left = state.note.left();
    if left.is_zero() {
        return state.send_note();
    }
    if state.note.timer.is_none() {
        state.note.timer = send_later(connection, left);
    }
    Ok(())
}

/// Starts a thread that sends the waiting note after this time, unless the connection ends before. `None`: there is no thread; the next
/// note is sent instead.
fn send_later(connection: &Arc<PoolConnection>, left: Duration) -> Option<Sender<()>> {
    let connection = Arc::downgrade(connection);
    let (timer, dropped) = mpsc::channel();
    let send = move || {
        if dropped.recv_timeout(left) != Err(RecvTimeoutError::Timeout) {
            return;
        }
        let Some(connection) = connection.upgrade() else { return };
        if let Ok(mut state) = connection.lock() {
            state.note.timer = None;
            // A connection that has ended has no note.
            let _ = state.send_note();
        }
    };
    let started = std::thread::Builder::new().name("junctura-note".to_owned()).spawn(send);
    started.ok().map(|_| timer)
}

impl ConnectionState {
    fn send_note(&mut self) -> Result<()> {
        let Some(text) = self.note.waiting.take() else {
            return Ok(());
        };
        let number = self.mail.next(0);
        self.append(number, &Request::Note(NoteRequest { text: text.into() }))?;
        self.note.sent_at = Some(Instant::now());
        self.send().map(|_| ())
    }
}
