//! Reports what a command waits for, so that it is not silent while the pool is full or a reader is owed objects.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::Duration;

use junctura::{Pool, Result};

/// The longest wait that is not reported.
const PATIENCE: Duration = Duration::from_secs(3);

/// Reports a wait on standard error if the command makes no progress; once for each wait. Its end ends the reports.
pub(crate) struct WaitReport {
    progress: Arc<AtomicU64>,
    /// Its end is what the thread waits for.
    _end: Sender<()>,
}

impl WaitReport {
    /// `waits` returns the reasons of a wait of this command; `None` if it does not wait.
    pub(crate) fn new(pool: &Pool, command: &'static str, waits: fn(&Pool) -> Result<Option<String>>) -> Self {
        let (end, ended) = mpsc::channel::<()>();
        let (pool, progress) = (pool.clone(), Arc::<AtomicU64>::default());
        let made = Arc::clone(&progress);
        let watch = move || {
            let (mut last, mut is_reported) = (0, false);
            while ended.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                let now = made.load(Ordering::Relaxed);
                if now != last {
                    (last, is_reported) = (now, false);
                } else if !is_reported
                    // Without an answer, as from an earlier server, there is nothing to report.
                    && let Ok(Some(waits)) = waits(&pool)
                {
                    say!("junctura: {command} waits: {waits}");
                    is_reported = true;
                }
            }
        };
        // Without a thread there is no report.
        let _ = std::thread::Builder::new().name("patience".into()).spawn(watch);
        Self { progress, _end: end }
    }

    /// Notes that something was offered or acknowledged.
    pub(crate) fn progress(&self) {
        self.progress.fetch_add(1, Ordering::Relaxed);
    }
}
