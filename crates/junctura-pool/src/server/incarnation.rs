//! Incarnations: numbers of a server's lives that only rise, from the clock and from the last one known.

use std::time::{SystemTime, UNIX_EPOCH};

use junctura_transport::Address;

/// The number of the life that begins now. For an address with a directory the last one is kept beside the socket, so that
/// a clock that was set back does not bring an old number again.
pub(super) fn next(address: &Address) -> u64 {
    let clock = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_millis() as u64);
    let Some(path) = address.path().map(|path| path.with_extension("incarnation")) else {
        return clock;
    };
    let last = std::fs::read_to_string(&path)
        .ok()
        .and_then(|text| text.trim().parse::<u64>().ok())
        .unwrap_or(0);
    let next = clock.max(last + 1);
    if let Err(error) = std::fs::write(&path, next.to_string()) {
        tracing::warn!(%error, path = %path.display(), "the incarnation could not be noted");
    }
    next
}
