//! Bytes from a network before the peer is trusted, and the records behind these: reading never panics, and a record that is
//! read is written back as it was. So are a token, before decryption, and a list of tokens; cryptography itself is left out of this build.

use crate::{Limits, within};
use junctura_link::record::{HEADER_BYTES, LinkRecord};
use junctura_link::{Endpoint, read_greeting, read_token};

/// A text of what is read, or an error that quotes it; no body before it arrives.
const LIMITS: Limits = Limits {
    held_bytes: 2 << 10,
    held_bytes_each: 8,
    steps: 100,
    steps_each: 1,
};

pub(crate) fn run(bytes: &[u8]) {
    within(LIMITS, bytes, || fuzz(bytes));
}

fn fuzz(bytes: &[u8]) {
    let _ = read_greeting(bytes);
    let mut rest = bytes;
    while let Ok(Some(record)) = LinkRecord::read(rest) {
        assert_eq!(record.to_bytes(), rest[..HEADER_BYTES]);
        let length = HEADER_BYTES + record.body_bytes() as usize;
        let Some(next) = rest.get(length..) else { break };
        rest = next;
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        if let Ok(canonical) = read_token(text, bytes) {
            assert_eq!(canonical, text);
        }
        if let Ok(endpoint) = text.parse::<Endpoint>() {
            assert_eq!(endpoint.to_string().parse::<Endpoint>().as_ref(), Ok(&endpoint));
        }
    }
}
