//! Progress of long work on a terminal, and reports of waits.

use std::io::IsTerminal;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// Work that takes longer gets a progress bar.
const PATIENCE: Duration = Duration::from_millis(500);
/// Interval between redraws.
const TURN: Duration = Duration::from_millis(100);

/// A bar for long work on a terminal.
pub struct WorkProgress {
    began: Instant,
    total: Option<u64>,
    bar: Option<ProgressBar>,
    wanted: bool,
}

/// Whether standard error is a terminal.
#[must_use]
pub fn is_watched() -> bool {
    std::io::stderr().is_terminal()
}

/// Runs work without a measurable progress, and shows its duration.
pub fn timed<T>(what: &'static str, work: impl FnOnce() -> T) -> T {
    if !is_watched() {
        return work();
    }
    std::thread::scope(|scope| {
        let (done, ended) = mpsc::channel::<()>();
        scope.spawn(move || {
            if ended.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                let bar = with_template(ProgressBar::no_length(), "{spinner} {msg} {elapsed}").with_message(what);
                bar.enable_steady_tick(TURN);
                // The channel has no messages; its end is the signal.
                let _ = ended.recv();
                bar.finish_and_clear();
            }
        });
        let made = work();
        drop(done);
        made
    })
}

fn with_template(bar: ProgressBar, template: &str) -> ProgressBar {
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

impl Default for WorkProgress {
    fn default() -> WorkProgress {
        WorkProgress::new()
    }
}

impl WorkProgress {
    /// A bar that appears when the work takes long, on a terminal.
    #[must_use]
    pub fn new() -> WorkProgress {
        WorkProgress {
            began: Instant::now(),
            total: None,
            bar: None,
            wanted: is_watched(),
        }
    }

    /// Sets the total number of bytes, if it is known.
    pub fn expect(&mut self, bytes: Option<u64>) {
        self.total = bytes;
    }

    /// Shows the progress.
    pub fn show(&mut self, position: u64, objects: u64) {
        if !self.wanted || self.began.elapsed() < PATIENCE {
            return;
        }
        let total = self.total;
        let bar = self.bar.get_or_insert_with(|| Self::bar(total));
        bar.set_position(position);
        bar.set_message(format!("{objects} objects"));
    }

    fn bar(total: Option<u64>) -> ProgressBar {
        let (bar, template) = match total {
            Some(bytes) => (
                ProgressBar::new(bytes),
                "{wide_bar} {binary_bytes}/{binary_total_bytes} {binary_bytes_per_sec} eta {eta} {msg}",
            ),
            None => (
                ProgressBar::no_length(),
                "{spinner} {binary_bytes} {binary_bytes_per_sec} {msg}",
            ),
        };
        with_template(bar, template)
    }

    /// Prints beside the bar.
    pub fn suspend(&self, say: impl FnOnce()) {
        match &self.bar {
            Some(bar) => bar.suspend(say),
            None => say(),
        }
    }

    /// Removes the bar.
    pub fn end(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

/// The longest wait that is not reported.
const SLOW: Duration = Duration::from_secs(5);

/// Reports a wait on standard error, unless dropped before, so that a waiting command is not silent.
#[derive(Debug)]
pub struct SlowWork(#[expect(dead_code, reason = "its end is what the thread waits for")] Sender<()>);

impl SlowWork {
    /// Reports that the command waits for this store, after five seconds.
    #[must_use]
    pub fn store(url: &str) -> SlowWork {
        let text = format!("junctura: waiting for the store {url}, which has not answered for 5 s");
        Self::after(SLOW, move || say!("{text}"))
    }

    fn after(time: Duration, tell: impl FnOnce() + Send + 'static) -> SlowWork {
        let (sender, receiver) = mpsc::channel::<()>();
        let watch = move || {
            if receiver.recv_timeout(time) == Err(RecvTimeoutError::Timeout) {
                tell();
            }
        };
        // Without a thread there is no report.
        let _ = std::thread::Builder::new().name("slow".into()).spawn(watch);
        SlowWork(sender)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_takes_long_is_reported() {
        let (told, heard) = mpsc::channel();
        let slow = SlowWork::after(Duration::ZERO, {
            let told = told.clone();
            move || told.send("slow").unwrap()
        });
        assert_eq!(heard.recv(), Ok("slow"));
        drop(slow);
        let quick = SlowWork::after(Duration::from_hours(1), move || told.send("quick").unwrap());
        drop(quick);
        // The thread ends without a message, and so does the last sender.
        assert!(heard.recv().is_err());
    }
}
