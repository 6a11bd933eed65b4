//! A rate that is not exceeded.

use std::time::{Duration, Instant};

use junctura::Result;

/// Maximum wait before Ctrl-C is noticed.
const SLICE: Duration = Duration::from_millis(50);

/// So many bytes a second, from the first one on.
pub(super) struct ByteRate {
    bytes_per_second: u64,
    /// Earliest time of the next bytes.
    due: Instant,
}

impl ByteRate {
    pub(super) fn new(bytes_per_second: u64) -> ByteRate {
        ByteRate {
            bytes_per_second,
            due: Instant::now(),
        }
    }

    /// Waits until these bytes fit the rate. `meanwhile` is called before each wait, and can end it with an error.
    pub(super) fn wait(&mut self, bytes: u64, meanwhile: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        loop {
            let now = Instant::now();
            if now >= self.due {
                self.due = next(self.due, now, bytes, self.bytes_per_second);
                return Ok(());
            }
            meanwhile()?;
            sleep(self.due.saturating_duration_since(Instant::now()).min(SLICE));
        }
    }
}

/// A pause is not compensated: an idle copy is not faster afterwards.
fn next(due: Instant, now: Instant, bytes: u64, bytes_per_second: u64) -> Instant {
    let takes = Duration::try_from_secs_f64(bytes as f64 / bytes_per_second as f64).unwrap_or(Duration::MAX);
    let since = if now.saturating_duration_since(due) > SLICE {
        now
    } else {
        due
    };
    since.checked_add(takes).unwrap_or(since)
}

#[expect(clippy::disallowed_methods, reason = "a rate is what sleeping is for")]
fn sleep(time: Duration) {
    std::thread::sleep(time);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_take_their_time_and_pauses_are_not_made_up_for() {
        let now = Instant::now();
        assert_eq!(next(now, now, 500, 1000), now + Duration::from_millis(500));
        let late = now + Duration::from_millis(1);
        assert_eq!(next(now, late, 500, 1000), now + Duration::from_millis(500));
        let idle = now + Duration::from_secs(9);
        assert_eq!(next(now, idle, 500, 1000), idle + Duration::from_millis(500));
    }
}
