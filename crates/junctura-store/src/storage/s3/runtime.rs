//! One small asynchronous runtime for a process, hidden from callers.
//!
//! A caller blocks on a channel, so it may also be a thread of another runtime. A forked process has its own runtime
//! for stores that it opens; stores that were opened before belong to its parent. It finds the runtime without a lock
//! that another thread of its parent may have held.

use std::io;
use std::sync::{Once, OnceLock, mpsc};

use tokio::runtime::{Builder, Runtime};

/// Threads that move bytes; the rest of their work is small.
const THREADS: usize = 2;

/// That of a process, and then that of a process that was forked from it; none is ever dropped.
#[derive(Debug)]
struct ProcessRuntime {
    process: u32,
    runtime: Runtime,
    after_fork: OnceLock<Box<ProcessRuntime>>,
}

static FIRST: OnceLock<Box<ProcessRuntime>> = OnceLock::new();

/// Something that is under way.
#[derive(Debug)]
pub(super) struct BegunTask<T>(mpsc::Receiver<T>);

impl<T> BegunTask<T> {
    /// Waits for its end.
    pub(super) fn wait(self) -> io::Result<T> {
        self.0.recv().map_err(|_| io::Error::other("it was cancelled"))
    }
}

/// Begins something.
///
/// # Errors
/// What the system refuses: threads.
pub(super) fn begin<T: Send + 'static>(future: impl Future<Output = T> + Send + 'static) -> io::Result<BegunTask<T>> {
    let (tell, told) = mpsc::sync_channel(1);
    runtime()?.spawn(async move {
        // The receiver may have ended.
        let _ = tell.send(future.await);
    });
    Ok(BegunTask(told))
}

/// Runs a future, and blocks until its end.
///
/// # Errors
/// As [`begin`].
pub(super) fn wait<T: Send + 'static>(future: impl Future<Output = T> + Send + 'static) -> io::Result<T> {
    begin(future)?.wait()
}

fn runtime() -> io::Result<&'static Runtime> {
    let process = std::process::id();
    let mut place = &FIRST;
    loop {
        match place.get() {
            Some(made) if made.process == process => return Ok(&made.runtime),
            Some(made) => place = &made.after_fork,
            None => {
                if let Err(late) = place.set(Box::new(make(process)?)) {
                    // Another thread was quicker.
                    late.runtime.shutdown_background();
                }
            }
        }
    }
}

fn make(process: u32) -> io::Result<ProcessRuntime> {
    let runtime = Builder::new_multi_thread()
        .worker_threads(THREADS)
        .thread_name("junctura-s3")
        .enable_all()
        .build()?;
    Ok(ProcessRuntime {
        process,
        runtime,
        after_fork: OnceLock::new(),
    })
}

/// TLS by ring, unless the process has chosen another already.
pub(super) fn install_tls() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
}
