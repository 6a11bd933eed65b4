//! Incarnations: numbers of a server's lives that only rise, from the clock and from the last one known.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use junctura_transport::ServerAddress;

/// Returns the number of a new incarnation, in microseconds of the clock: pools that begin at almost the same time
/// differ, so that one refuses a cursor of the other. Within a process all numbers differ. For an address with a
/// directory the last one is stored beside the socket, so that a clock that was set back does not repeat a number.
pub(super) fn next(address: &ServerAddress) -> u64 {
    let clock = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_micros() as u64);
    let Some(path) = address.path().map(|path| path.with_extension("incarnation")) else {
        return after_all_here(clock);
    };
    let last = std::fs::read_to_string(&path)
        .ok()
        .and_then(|text| text.trim().parse::<u64>().ok())
        .unwrap_or(0);
    let next = after_all_here(clock.max(last + 1));
    if let Err(error) = std::fs::write(&path, next.to_string()) {
        tracing::warn!(%error, path = %path.display(), "the incarnation could not be noted");
    }
    next
}

/// `wanted`, or the first number after those that this process gave.
fn after_all_here(wanted: u64) -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let next = |last: u64| wanted.max(last + 1);
    let last = LAST.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(next(last)));
    next(last.unwrap_or_else(|last| last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pools_that_begin_together_are_told_apart() {
        let address: ServerAddress = "unix:@incarnations".parse().unwrap();
        let many: Vec<u64> = (0..1000).map(|_| next(&address)).collect();
        assert!(many.is_sorted_by(|a, b| a < b), "{many:?}");
    }
}
