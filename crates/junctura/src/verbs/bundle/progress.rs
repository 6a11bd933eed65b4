//! The progress of a bundle, shared by its handle and by the requests that wait for it, in any thread.
//!
//! A message from the server stays in the connection's mailbox until a thread takes it and records it under the
//! connection's lock. Every waiting thread therefore finds either the message or the record. No wait holds the lock of
//! the record.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use junctura_model::version::Version;
use junctura_model::{Code, Error, Result};

use super::Completed;
use crate::awaiting::{WaitKind, WaitSource};
use crate::connection::in_flight::{RequestSlot, ServerMessage};
use crate::connection::state::{ConnectionState, StreamStop};
use crate::connection::{PoolConnection, ThreadWait, unexpected};
use crate::pending::{AnswerMode, Pending, WatchedValue};

/// The progress that the server has reported for a bundle.
pub(crate) struct BundleProgress {
    connection: Arc<PoolConnection>,
    number: u64,
    path: Option<String>,
    /// Locked briefly, and only within the connection's lock, so that no forked child finds it locked.
    noted: Mutex<NotedProgress>,
}

#[derive(Default)]
struct NotedProgress {
    /// The versions of a bundle that is becoming visible.
    versions: HashMap<u64, Version>,
    outcome: Option<Result<Completed>>,
    /// The server, or this program, has ended the conversation: no more messages arrive.
    is_over: bool,
}

impl BundleProgress {
    pub(super) fn new(connection: &Arc<PoolConnection>, path: Option<String>, number: u64) -> Self {
        Self {
            connection: Arc::clone(connection),
            number,
            path,
            noted: Mutex::default(),
        }
    }

    pub(crate) fn connection(&self) -> &Arc<PoolConnection> {
        &self.connection
    }

    /// The server's number for the bundle.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    pub(super) fn path(&self) -> Option<&str> {
        self.path.as_deref()
    }

    pub(super) fn subject(&self) -> String {
        format!("bundle {}", self.path.as_deref().unwrap_or("without a path"))
    }

    /// Reads messages that have arrived, without waiting.
    pub(super) fn completed(&self) -> Result<Option<Completed>> {
        if let Some(completed) = self.wait(Some(Instant::now()))? {
            return Ok(Some(completed));
        }
        let (mut state, armed) = self.connection.arm_for(self.number)?;
        // This call also cleared the readiness of messages that another thread read in between.
        let settled = self.settled(&mut state);
        drop(state);
        armed.and(settled.transpose())
    }

    /// Blocks until the bundle is settled; `None` at the deadline.
    pub(super) fn wait(&self, deadline: Option<Instant>) -> Result<Option<Completed>> {
        let what = ThreadWait::letters_until(std::slice::from_ref(&self.number), deadline);
        let settled = self
            .connection
            .wait(self.connection.lock()?, what, |state| self.settled(state))?;
        settled.transpose()
    }

    /// Returns the completed bundle, if its message has been read.
    pub(super) fn take_completed(&self) -> Result<Option<Completed>> {
        let mut state = self.connection.lock()?;
        let settled = self.settled(&mut state);
        if settled.is_none() {
            state.stay_in_process()?;
            state.alive()?;
        }
        settled.transpose()
    }

    /// Returns the result, or the reason why there is none. Records messages that have been read.
    fn settled(&self, state: &mut ConnectionState) -> Option<Result<Completed>> {
        let mut noted = self.noted(state);
        while noted.outcome.is_none()
            && let Some(letter) = state.mail.get(self.number).and_then(RequestSlot::take)
        {
            self.note(&mut noted, letter);
            if noted.is_over {
                state.mail.close(self.number);
            }
        }
        let left = || Error::new(Code::Closed, self.subject(), "this handle has left it");
        noted.outcome.clone().or_else(|| noted.is_over.then(|| Err(left())))
    }

    /// Returns whether a wait for the bundle ends.
    pub(crate) fn is_due(&self, state: &ConnectionState) -> bool {
        let noted = self.noted(state);
        noted.outcome.is_some() || noted.is_over || state.mail.is_due(self.number)
    }

    /// Returns the visible objects, after the answer to the seal.
    pub(super) fn sealed(&self, objects: u64) -> Result<Completed> {
        // The versions arrive before the answer, unless the bundle waits for the enclosing one.
        Ok(self.take_completed()?.unwrap_or_else(|| Completed {
            first: None,
            objects,
            versions: HashMap::new(),
        }))
    }

    /// Records that this program has aborted the bundle: no more messages arrive. Waiting threads find the record.
    pub(super) fn aborted(&self) {
        let error = Error::new(Code::Closed, self.subject(), "this program aborted it");
        let Ok(state) = self.connection.lock() else { return };
        let mut noted = self.noted(&state);
        noted.outcome = Some(Err(error));
        let was_over = std::mem::replace(&mut noted.is_over, true);
        drop(noted);
        drop(state);
        if !was_over {
            self.connection.finished(self.number);
        }
    }

    /// Ends the conversation of a complete bundle, which needs no answer: no other client can notice it. The message is
    /// sent with the next request. Returns whether there is nothing more to leave.
    pub(super) fn leave_if_complete(&self) -> bool {
        let Ok(mut state) = self.connection.lock() else {
            return true;
        };
        let mut noted = self.noted(&state);
        if !matches!(noted.outcome, Some(Ok(_))) {
            return false;
        }
        let was_over = std::mem::replace(&mut noted.is_over, true);
        drop(noted);
        if !was_over {
            // Without a server there is nothing to leave.
            let _ = state.abandon(self.number, StreamStop::End);
            state.rouse(self.number);
            drop(self.connection.wake_tasks(state));
        }
        true
    }

    pub(super) fn begin_leave(&self) -> Result<Pending<()>> {
        let state = self.connection.lock()?;
        let was_over = std::mem::replace(&mut self.noted(&state).is_over, true);
        drop(state);
        let begun = if was_over {
            None
        } else {
            self.connection.begin_stop(self.number, VecDeque::new())?
        };
        Ok(begun.unwrap_or_else(|| Pending::known(&self.connection, Ok(()))))
    }

    fn note(&self, noted: &mut NotedProgress, letter: ServerMessage) {
        match letter {
            ServerMessage::Completed {
                first,
                objects,
                more,
                versions,
            } => {
                let version = |(request, sequence)| (request, self.connection.version(sequence));
                noted.versions.extend(versions.into_iter().map(version));
                if !more {
                    noted.outcome = Some(Ok(Completed {
                        first: (first > 0).then(|| self.connection.version(first)),
                        objects,
                        versions: std::mem::take(&mut noted.versions),
                    }));
                }
            }
            ServerMessage::Ended(error) | ServerMessage::Failed(error) => {
                noted.outcome = Some(Err(error));
                noted.is_over = true;
            }
            _ => noted.outcome = Some(Err(unexpected("for a bundle"))),
        }
    }

    fn noted(&self, _locked: &ConnectionState) -> MutexGuard<'_, NotedProgress> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WatchedValue<Completed> for Arc<BundleProgress> {
    fn get(&mut self, ask: AnswerMode) -> Result<Option<Completed>> {
        match ask {
            AnswerMode::Wait(deadline) => self.wait(deadline),
            AnswerMode::Take | AnswerMode::TakeQuickly | AnswerMode::Glance => self.take_completed(),
        }
    }

    fn number(&self) -> u64 {
        self.number
    }

    fn awaiting(&self) -> WaitSource {
        WaitSource(WaitKind::Bundle(Self::clone(self)))
    }
}
