//! One small asynchronous runtime for a process, which nobody sees.
//!
//! Who waits does so on a channel: so it may be a thread of another runtime, too. A process that was forked has a runtime of its
//! own for what it opens; stores that were opened before belong to its parent.

use std::io;
use std::sync::{Mutex, Once, PoisonError, mpsc};

use tokio::runtime::{Builder, Runtime};

/// Threads that move bytes: what they do not wait for is little.
const THREADS: usize = 2;

/// That of the process of this number; it is never dropped.
static RUNTIME: Mutex<Option<(u32, &'static Runtime)>> = Mutex::new(None);

/// Something that is under way.
#[derive(Debug)]
pub(super) struct Begun<T>(mpsc::Receiver<T>);

impl<T> Begun<T> {
    /// Waits for its end.
    pub(super) fn wait(self) -> io::Result<T> {
        self.0.recv().map_err(|_| io::Error::other("it was given up"))
    }
}

/// Begins something.
///
/// # Errors
/// What the system refuses: threads.
pub(super) fn begin<T: Send + 'static>(future: impl Future<Output = T> + Send + 'static) -> io::Result<Begun<T>> {
    let (tell, told) = mpsc::sync_channel(1);
    runtime()?.spawn(async move {
        // Nobody may wait for it any more.
        let _ = tell.send(future.await);
    });
    Ok(Begun(told))
}

/// Does something, and waits for its end.
///
/// # Errors
/// As [`begin`].
pub(super) fn wait<T: Send + 'static>(future: impl Future<Output = T> + Send + 'static) -> io::Result<T> {
    begin(future)?.wait()
}

fn runtime() -> io::Result<&'static Runtime> {
    let mut known = RUNTIME.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    if let Some((of, runtime)) = *known
        && of == process
    {
        return Ok(runtime);
    }
    let made = Builder::new_multi_thread()
        .worker_threads(THREADS)
        .thread_name("junctura-s3")
        .enable_all()
        .build()?;
    let runtime = Box::leak(Box::new(made));
    *known = Some((process, runtime));
    Ok(runtime)
}

/// TLS by ring, unless the process has chosen another already.
pub(super) fn install_tls() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
}
