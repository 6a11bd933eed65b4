//! Bytes of strangers: greetings, records and tokens cost what their bytes cost to read.

use crate::limits::Limits;
use junctura_link::record::{HEADER_BYTES, LinkRecord};
use junctura_link::{Endpoint, read_greeting, read_token};
use proptest::prelude::*;

/// A text or an error; no body of a record is allocated before it comes.
const LIMITS: Limits = Limits {
    held_bytes: 2048,
    held_bytes_each: 16,
    steps: 100,
    steps_each: 1,
};

/// Headers with any length, and bytes behind them.
fn records() -> impl Strategy<Value = Vec<u8>> {
    let record = (0_u8..16, any::<[u32; 3]>(), any::<u64>(), 0_usize..40);
    prop::collection::vec(record, 0..6).prop_map(|records| {
        let mut bytes = Vec::new();
        for (kind, numbers, offset, body) in records {
            bytes.extend([kind, 0, 0, 0]);
            bytes.extend(numbers.map(u32::to_le_bytes).concat());
            bytes.extend(offset.to_le_bytes());
            bytes.resize(bytes.len() + body, 7);
        }
        bytes
    })
}

/// A map of CBOR whose items claim any length, behind the head of a greeting.
fn greeting() -> impl Strategy<Value = Vec<u8>> {
    let heads = prop::sample::select(vec![0x5a_u8, 0x7a, 0x9a, 0xba]);
    let items = prop::collection::vec((heads, any::<u32>(), prop::collection::vec(any::<u8>(), 0..8)), 0..6);
    (items, any::<Option<u16>>()).prop_map(|(items, claimed)| {
        let mut body = vec![0xa0 + items.len() as u8];
        for (key, (head, length, bytes)) in items.iter().enumerate() {
            body.extend([key as u8, *head]);
            body.extend(length.to_be_bytes());
            body.extend(bytes);
        }
        let length = claimed.unwrap_or(body.len() as u16);
        [b"JUNCTURA", &1_u16.to_le_bytes()[..], &length.to_le_bytes(), &body].concat()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn claims_of_records_cost_nothing(bytes in records()) {
        LIMITS.hold(bytes.len(), || {
            let mut rest = &bytes[..];
            while let Ok(Some(record)) = LinkRecord::read(rest) {
                assert_eq!(record.to_bytes(), rest[..HEADER_BYTES]);
                let Some(next) = rest.get(HEADER_BYTES + record.body_bytes() as usize..) else { break };
                rest = next;
            }
        });
    }

    #[test]
    fn claims_of_greetings_cost_nothing(bytes in prop_oneof![greeting(), prop::collection::vec(any::<u8>(), 0..200)]) {
        LIMITS.hold(bytes.len(), || drop(read_greeting(&bytes)));
    }

    #[test]
    fn texts_of_strangers_are_read_or_refused(text in r"junctura-token-[12]\.([0-9a-f][0-9a-f]){0,120}|junctura-tokens-1\n([0-9a-f]{8} (read|read,offer|admin) [0-9]{1,20} [0-9]{1,20} \PC{0,20}\n){0,3}|tcp://.{0,40}|\PC{0,60}") {
        LIMITS.hold(text.len(), || {
            let _ = read_token(&text, text.as_bytes());
            let _ = text.parse::<Endpoint>();
        });
    }
}
