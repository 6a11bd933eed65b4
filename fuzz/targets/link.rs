//! What comes over a network before anybody is believed, and the records behind it: reading never panics, and a record that is
//! read is written back as it was.

#![no_main]

use junctura_link::record::{HEADER_BYTES, Record};
use junctura_link::{Endpoint, TokenKey, read_greeting};
use libfuzzer_sys::fuzz_target;

thread_local! {
    static KEY: TokenKey = TokenKey::generate().expect("random numbers");
}

fuzz_target!(|bytes: &[u8]| {
    let _ = read_greeting(bytes);
    let mut rest = bytes;
    while let Ok(Some(record)) = Record::read(rest) {
        assert_eq!(record.to_bytes(), rest[..HEADER_BYTES]);
        let length = HEADER_BYTES + record.body_bytes() as usize;
        let Some(next) = rest.get(length..) else { break };
        rest = next;
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        assert!(KEY.with(|key| key.check(text)).is_err());
        if let Ok(endpoint) = text.parse::<Endpoint>() {
            assert_eq!(endpoint.to_string().parse::<Endpoint>().as_ref(), Ok(&endpoint));
        }
    }
});
