//! Reports what `put` waits for, so that it is not silent while the pool is full.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::Duration;

use junctura::Pool;

use crate::pool::explain::own::waits_of_offers;

/// The longest wait that is not reported.
const PATIENCE: Duration = Duration::from_secs(3);

/// Reports a wait on standard error if the command makes no progress; once for each wait. Its end ends the reports.
pub(super) struct WaitReport {
    progress: Arc<AtomicU64>,
    /// Its end is what the thread waits for.
    _end: Sender<()>,
}

impl WaitReport {
    pub(super) fn new(pool: &Pool) -> Self {
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
                    && let Ok(Some(waits)) = waits_of_offers(&pool)
                {
                    say!("junctura: put waits: {waits}");
                    is_reported = true;
                }
            }
        };
        // Without a thread there is no report.
        let _ = std::thread::Builder::new().name("patience".into()).spawn(watch);
        Self { progress, _end: end }
    }

    /// Notes that something was offered or acknowledged.
    pub(super) fn progress(&self) {
        self.progress.fetch_add(1, Ordering::Relaxed);
    }
}
