//! The thread that reads selectors with regular expressions: compiling these can take some 30 ms, and others are served meanwhile.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use junctura_model::{Code, Error, Result, Schema, SelectorSet};

use super::poller;
use crate::core::PreparedSelector;

/// A selector of a client, to be read.
struct CompileTask {
    client: u32,
    text: String,
}

/// The thread, and its parsed selectors. A client has at most one selector here.
pub(super) struct SelectorCompiler {
    tasks: Option<Sender<CompileTask>>,
    done: Receiver<(u32, PreparedSelector)>,
    bell: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl SelectorCompiler {
    pub(super) fn start(schemas: Vec<Arc<Schema>>) -> Result<Self> {
        let bell = Arc::new(poller::eventfd()?);
        let ((tasks, incoming), (outgoing, done)) = (channel::<CompileTask>(), channel());
        let its_bell = Arc::clone(&bell);
        let thread = std::thread::Builder::new()
            .name("junctura-regex".to_owned())
            .spawn(move || {
                for CompileTask { client, text } in incoming {
                    let selectors = SelectorSet::parse(&text, &schemas);
                    if outgoing.send((client, PreparedSelector { text, selectors })).is_err() {
                        return;
                    }
                    let woken = rustix::io::write(&*its_bell, &1u64.to_ne_bytes());
                    debug_assert!(woken.is_ok(), "an eventfd takes it");
                }
            })
            .map_err(|error| Error::new(Code::Io, "thread", error.to_string()))?;
        Ok(Self {
            tasks: Some(tasks),
            done,
            bell,
            thread: Some(thread),
        })
    }

    /// Becomes readable when a selector was read.
    pub(super) fn bell(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    /// Orders that a client's selector is read; does not wait.
    pub(super) fn order(&self, client: u32, text: String) {
        let sent = self
            .tasks
            .as_ref()
            .map(|tasks| tasks.send(CompileTask { client, text }));
        debug_assert!(
            sent.is_some_and(|sent| sent.is_ok()),
            "the thread takes tasks until its end"
        );
    }

    /// Selectors that were read, and whose they are.
    pub(super) fn take_done(&self) -> impl Iterator<Item = (u32, PreparedSelector)> {
        let mut count = [0; 8];
        // Nothing to read: another look has taken what this ring was for.
        let _ = rustix::io::read(&*self.bell, &mut count);
        self.done.try_iter()
    }
}

impl Drop for SelectorCompiler {
    fn drop(&mut self) {
        self.tasks = None;
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            debug_assert!(ended.is_ok(), "the thread does not panic");
        }
    }
}
