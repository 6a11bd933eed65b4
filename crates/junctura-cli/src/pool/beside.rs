//! Work with a limit of time, on a thread of its own.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use junctura::{Code, Error, Result};

/// Does this on another thread, and waits for it this long. `None`: it has not ended; the thread ends with the process.
pub(crate) fn within<T: Send + 'static>(
    timeout: Duration,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<Option<T>> {
    let (send, received) = mpsc::channel();
    std::thread::Builder::new()
        .spawn(move || drop(send.send(work())))
        .map_err(|error| Error::new(Code::Io, "thread", error.to_string()))?;
    match received.recv_timeout(timeout) {
        Ok(done) => done.map(Some),
        Err(RecvTimeoutError::Timeout) => Ok(None),
        Err(RecvTimeoutError::Disconnected) => Err(Error::new(Code::Io, "thread", "it ended without an answer")),
    }
}
