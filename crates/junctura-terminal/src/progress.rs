//! How far long work has come, on a terminal; and that a command waits.

use std::io::IsTerminal;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// Work that takes longer than this gets a progress bar.
const PATIENCE: Duration = Duration::from_millis(500);
/// How often what turns is drawn.
const TURN: Duration = Duration::from_millis(100);

/// A bar on long work, when a person looks.
pub struct WorkProgress {
    began: Instant,
    total: Option<u64>,
    bar: Option<ProgressBar>,
    wanted: bool,
}

/// Whether a person looks.
#[must_use]
pub fn is_watched() -> bool {
    std::io::stderr().is_terminal()
}

/// Does what cannot say how far it has come, and shows how long that takes.
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
                // Nothing is sent: its end is.
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

    /// Says how many bytes there are in all, where that is known.
    pub fn expect(&mut self, bytes: Option<u64>) {
        self.total = bytes;
    }

    /// Shows how far the work has come.
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

    /// Says something beside the bar.
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

/// Something that may take long, until it is dropped: a line on standard error, so that a command that waits is not silent.
#[derive(Debug)]
pub struct SlowWork(#[expect(dead_code, reason = "its end is what the thread waits for")] Sender<()>);

impl SlowWork {
    /// Prints that the command waits for this store, if it still does after five seconds.
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
        // Without a thread there is no line.
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
        // Its thread ends without a word, and with it the last sender.
        assert!(heard.recv().is_err());
    }
}
