//! The thread that writes to the file tier, so that a slow disk blocks only the clients that need it.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use junctura_memory::{SealedSegment, SpillFile};
use junctura_model::{Code, Error, Result};

use super::poller;
use crate::SpillConfig;

/// A request to the thread; requests are done in order.
pub(super) enum SpillRequest {
    /// Copies a payload out of a segment.
    Copy {
        job: u32,
        segment: Arc<SealedSegment>,
        offset: u64,
        length: u64,
        at: u64,
    },
    /// Writes a payload.
    Write { job: u32, payload: Vec<u8>, at: u64 },
    /// Gives room back.
    Punch { at: u64, length: u64 },
}

/// The thread, its file, and what it has done.
pub(super) struct SpillThread {
    file: Arc<SpillFile>,
    tasks: Option<Sender<SpillRequest>>,
    done: Receiver<(u32, Result<u32>)>,
    bell: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl SpillThread {
    pub(super) fn start(spill: &SpillConfig) -> Result<Self> {
        let file = Arc::new(SpillFile::create(&spill.directory)?);
        let bell = Arc::new(poller::eventfd()?);
        let ((tasks, incoming), (outgoing, done)) = (channel(), channel());
        let (its_file, its_bell) = (Arc::clone(&file), Arc::clone(&bell));
        let thread = std::thread::Builder::new()
            .name("junctura-spill".to_owned())
            .spawn(move || {
                for task in incoming {
                    let Some((job, outcome)) = carry_out(&its_file, task) else {
                        continue;
                    };
                    if outgoing.send((job, outcome)).is_err() {
                        return;
                    }
                    let woken = rustix::io::write(&*its_bell, &1u64.to_ne_bytes());
                    debug_assert!(woken.is_ok(), "an eventfd takes it");
                }
            })
            .map_err(|error| Error::new(Code::Io, "thread", error.to_string()))?;
        Ok(Self {
            file,
            tasks: Some(tasks),
            done,
            bell,
            thread: Some(thread),
        })
    }

    /// Becomes readable when something was done.
    pub(super) fn bell(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    /// The descriptor for consumers.
    pub(super) fn readonly(&self) -> BorrowedFd<'_> {
        self.file.readonly()
    }

    pub(super) fn order(&self, task: SpillRequest) {
        let sent = self.tasks.as_ref().map(|tasks| tasks.send(task));
        debug_assert!(
            sent.is_some_and(|sent| sent.is_ok()),
            "the thread takes tasks until its end"
        );
    }

    /// Jobs that are done, with the checksums of their payloads.
    pub(super) fn take_done(&self) -> impl Iterator<Item = (u32, Result<u32>)> {
        let mut count = [0; 8];
        // Nothing to read: another look has taken what this ring was for.
        let _ = rustix::io::read(&*self.bell, &mut count);
        self.done.try_iter()
    }
}

impl Drop for SpillThread {
    fn drop(&mut self) {
        self.tasks = None;
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            debug_assert!(ended.is_ok(), "the thread does not panic");
        }
    }
}

fn carry_out(file: &SpillFile, task: SpillRequest) -> Option<(u32, Result<u32>)> {
    match task {
        SpillRequest::Copy {
            job,
            segment,
            offset,
            length,
            at,
        } => Some((job, file.copy(&segment, offset, length, at))),
        SpillRequest::Write { job, payload, at } => Some((job, file.write(&payload, at))),
        SpillRequest::Punch { at, length } => {
            if let Err(error) = file.punch(at, length) {
                tracing::warn!(%error, "room in the file tier could not be given back");
            }
            None
        }
    }
}
