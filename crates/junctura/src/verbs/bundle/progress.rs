//! How far a bundle is: its handle has this, and so do the requests that wait for it, in whatever threads.
//!
//! What the server sends stays in the connection's mailbox until a thread takes it, and is noted under the connection's lock. So
//! every thread that waits finds either the letter or what was noted of it. No wait holds the lock of what was noted.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use junctura_model::version::Version;
use junctura_model::{Code, Error, Result};

use super::Completed;
use crate::awaiting::{WaitKind, WaitSource};
use crate::connection::in_flight::{RequestSlot, ServerMessage};
use crate::connection::state::ConnectionState;
use crate::connection::{PoolConnection, ThreadWait, unexpected};
use crate::pending::{AnswerMode, Pending, WatchedValue};

/// What the server has said of a bundle.
pub(crate) struct BundleProgress {
    connection: Arc<PoolConnection>,
    number: u64,
    path: Option<String>,
    /// Locked for moments, and only within the connection's lock: so no forked child finds it locked.
    noted: Mutex<NotedProgress>,
}

#[derive(Default)]
struct NotedProgress {
    /// The versions of a bundle that is becoming visible.
    versions: HashMap<u64, Version>,
    outcome: Option<Result<Completed>>,
    /// Nothing more comes: the server, or this program, has ended the conversation.
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

    /// The number by which the server knows it.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    pub(super) fn path(&self) -> Option<&str> {
        self.path.as_deref()
    }

    pub(super) fn subject(&self) -> String {
        format!("bundle {}", self.path.as_deref().unwrap_or("without a path"))
    }

    /// Reads what has come, without waiting.
    pub(super) fn completed(&self) -> Result<Option<Completed>> {
        if let Some(completed) = self.wait(Some(Instant::now()))? {
            return Ok(Some(completed));
        }
        let (mut state, armed) = self.connection.arm_for(self.number)?;
        // What another thread has read in between was calmed, too.
        let settled = self.settled(&mut state);
        drop(state);
        armed.and(settled.transpose())
    }

    /// Blocks; `None`: the time is over.
    pub(super) fn wait(&self, deadline: Option<Instant>) -> Result<Option<Completed>> {
        let what = ThreadWait::letters_until(std::slice::from_ref(&self.number), deadline);
        let settled = self
            .connection
            .wait(self.connection.lock()?, what, |state| self.settled(state))?;
        settled.transpose()
    }

    /// What came of it, if that has been read.
    pub(super) fn take_completed(&self) -> Result<Option<Completed>> {
        let mut state = self.connection.lock()?;
        let settled = self.settled(&mut state);
        if settled.is_none() {
            state.stay_in_process()?;
            state.alive()?;
        }
        settled.transpose()
    }

    /// What came of it, or why nothing comes any more. Notes what has been read.
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

    /// Whether a wait for it is over.
    pub(crate) fn is_due(&self, state: &ConnectionState) -> bool {
        let noted = self.noted(state);
        noted.outcome.is_some() || noted.is_over || state.mail.is_due(self.number)
    }

    /// What became visible, after the answer to its seal.
    pub(super) fn sealed(&self, objects: u64) -> Result<Completed> {
        // The versions came before the answer, unless it waits for the bundle that it is nested in.
        Ok(self.take_completed()?.unwrap_or_else(|| Completed {
            first: None,
            objects,
            versions: HashMap::new(),
        }))
    }

    /// Notes that this program has aborted it: nothing more comes. Threads that wait for it find that.
    pub(super) fn aborted(&self) {
        let error = Error::new(Code::Closed, self.subject(), "this program gave it up");
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
