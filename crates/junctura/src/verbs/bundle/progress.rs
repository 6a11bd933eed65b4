//! How far a bundle is: its handle has this, and so do the requests that wait for it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use junctura_model::version::Version;
use junctura_model::{Code, Error, Result};

use super::Completed;
use crate::awaiting::{Awaited, Awaiting};
use crate::connection::in_flight::Letter;
use crate::connection::stream::Stream;
use crate::connection::{Connection, unexpected};
use crate::pending::{Ask, Pending, Watched};

/// What the server has said of a bundle.
pub(super) struct BundleProgress {
    connection: Arc<Connection>,
    path: Option<String>,
    heard: Mutex<Heard>,
}

struct Heard {
    stream: Stream,
    /// The versions of a bundle that is becoming visible.
    versions: HashMap<u64, Version>,
    outcome: Option<Result<Completed>>,
}

impl BundleProgress {
    pub(super) fn new(connection: &Arc<Connection>, path: Option<String>, stream: Stream) -> Self {
        Self {
            connection: Arc::clone(connection),
            path,
            heard: Mutex::new(Heard {
                stream,
                versions: HashMap::new(),
                outcome: None,
            }),
        }
    }

    pub(super) fn path(&self) -> Option<&str> {
        self.path.as_deref()
    }

    pub(super) fn subject(&self) -> String {
        format!("bundle {}", self.path.as_deref().unwrap_or("without a path"))
    }

    /// Reads what has come.
    pub(super) fn completed(&self) -> Result<Option<Completed>> {
        let mut heard = self.lock();
        while heard.outcome.is_none() && !heard.stream.is_over() {
            match heard.stream.try_next()? {
                Some(letter) => self.take(&mut heard, letter)?,
                None => break,
            }
        }
        heard.outcome.clone().transpose()
    }

    /// Blocks; `None`: the time is over.
    pub(super) fn wait(&self, deadline: Option<Instant>) -> Result<Option<Completed>> {
        self.until(|stream| stream.next(deadline))
    }

    /// What came of it, if that has been read.
    pub(super) fn take_completed(&self) -> Result<Option<Completed>> {
        self.until(Stream::take)
    }

    fn until(&self, mut next: impl FnMut(&mut Stream) -> Result<Option<Letter>>) -> Result<Option<Completed>> {
        let mut heard = self.lock();
        while heard.outcome.is_none() {
            if heard.stream.is_over() {
                return Err(Error::new(Code::Closed, self.subject(), "this handle has left it"));
            }
            match next(&mut heard.stream)? {
                Some(letter) => self.take(&mut heard, letter)?,
                None => break,
            }
        }
        heard.outcome.clone().transpose()
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

    /// Notes that this program has aborted it: nothing more comes.
    pub(super) fn aborted(&self) {
        let mut heard = self.lock();
        let cause = "this program gave it up";
        heard.outcome = Some(Err(Error::new(Code::Closed, self.subject(), cause)));
        heard.stream.was_ended();
    }

    pub(super) fn begin_leave(&self) -> Result<Pending<()>> {
        self.lock().stream.begin_stop()
    }

    fn take(&self, heard: &mut Heard, letter: Letter) -> Result<()> {
        match letter {
            Letter::Completed {
                first,
                objects,
                more,
                versions,
            } => {
                let version = |(request, sequence)| (request, self.connection.version(sequence));
                heard.versions.extend(versions.into_iter().map(version));
                if !more {
                    heard.outcome = Some(Ok(Completed {
                        first: (first > 0).then(|| self.connection.version(first)),
                        objects,
                        versions: std::mem::take(&mut heard.versions),
                    }));
                }
                Ok(())
            }
            Letter::Ended(error) | Letter::Failed(error) => {
                heard.outcome = Some(Err(error));
                Ok(())
            }
            _ => Err(unexpected("for a bundle")),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Awaited for BundleProgress {
    fn awaiting(&self) -> Awaiting {
        let heard = self.lock();
        if heard.outcome.is_some() {
            Awaiting::ready()
        } else {
            heard.stream.awaiting()
        }
    }
}

impl Watched<Completed> for Arc<BundleProgress> {
    fn get(&mut self, ask: Ask) -> Result<Option<Completed>> {
        match ask {
            Ask::Wait(deadline) => self.wait(deadline),
            Ask::Take | Ask::TakeQuickly => self.take_completed(),
        }
    }

    fn awaiting(&self) -> Awaiting {
        Awaited::awaiting(&**self)
    }
}
