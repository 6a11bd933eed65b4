//! Whatever the bytes: reading ends, does not panic, and stays inside them.

use crate::limits::Limits;
use crate::made;
use junctura_grib::{GribError, Messages};
use proptest::prelude::*;
use std::sync::Once;

/// Nothing is made of a payload; keys are some dozen short texts.
const LIMITS: Limits = Limits {
    held_bytes: 8 << 10,
    held_bytes_each: 1,
    steps: 200,
    steps_each: 2,
};

fn read_all(bytes: &[u8]) -> Result<(), TestCaseError> {
    // The tables of keys are made once.
    static TABLES: Once = Once::new();
    TABLES.call_once(|| read_messages(&made::some()[0]).expect("it is sound"));
    LIMITS.hold(bytes.len(), || read_messages(bytes))
}

fn read_messages(bytes: &[u8]) -> Result<(), TestCaseError> {
    for found in Messages::new(bytes) {
        match found.and_then(|message| Ok((message, message.keys()?))) {
            Ok((message, keys)) => {
                let _ = message.packed();
                for field in message.split().into_iter().flatten().take(4) {
                    prop_assert!(junctura_grib::Message::new(&field).is_ok_and(|field| field.fields() == 1));
                }
                prop_assert!(keys.additional().all(|(_, value)| value.to_string().len() < 1000));
                let start = message.offset() as usize;
                prop_assert_eq!(bytes.get(start..start + message.bytes().len()), Some(message.bytes()));
                let names: Vec<_> = keys.mars().map(|(name, _)| name).collect();
                prop_assert!(
                    (1..names.len()).all(|at| !names[at..].contains(&names[at - 1])),
                    "twice: {names:?}"
                );
                prop_assert!(keys.attributes().all(|(_, value)| value.to_string().len() < 300));
            }
            Err(GribError { start, offset, .. }) => {
                prop_assert!(start <= offset && offset <= bytes.len() as u64);
            }
        }
    }
    Ok(())
}

/// A change: where, relative to the length, and what to.
fn changes() -> impl Strategy<Value = Vec<(usize, u8)>> {
    let byte = prop_oneof![any::<u8>(), Just(0), Just(255), 0_u8..16];
    prop::collection::vec((0_usize..600, byte), 0..12)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn changed_messages(which in 0_usize..5, changes in changes(), cut in 0_usize..2000) {
        let mut bytes = made::some()[which].clone();
        bytes.extend(made::edition1());
        for (at, byte) in changes {
            let at = at % bytes.len();
            bytes[at] = byte;
        }
        bytes.truncate(cut.max(bytes.len() / 2));
        read_all(&bytes)?;
    }

    /// Only what the keys are read from changes, so that most messages stay sound.
    #[test]
    fn changed_headers(which in 0_usize..5, changes in changes()) {
        let mut bytes = made::some()[which].clone();
        let range = if bytes[7] == 1 { 11..60 } else { 21..bytes.len() - 60 };
        for (at, byte) in changes {
            let at = range.start + at % range.len();
            bytes[at] = byte;
        }
        read_all(&bytes)?;
    }

    /// Every product template and local section of the tables, over bytes of any kind.
    #[test]
    fn any_template(template in any::<u16>(), local in 0_u16..600, more in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut bytes = made::edition2(true, &[made::product(template, 100, 50_000, 6, &more)]);
        bytes[42..44].copy_from_slice(&local.to_be_bytes());
        read_all(&bytes)?;
    }

    #[test]
    fn any_local_definition(number in any::<u8>(), stream in any::<u16>(), kind in any::<u8>(), rest in prop::collection::vec(any::<u8>(), 200)) {
        let mut bytes = made::edition1();
        let (head, tail) = bytes.split_at(60);
        let mut longer = [head, &rest[..], tail].concat();
        longer[8..11].copy_from_slice(&[0, 0, 252]);
        let length = longer.len() as u32;
        longer[4..7].copy_from_slice(&length.to_be_bytes()[1..]);
        longer[48] = number;
        longer[50] = kind;
        longer[51..53].copy_from_slice(&stream.to_be_bytes());
        bytes = longer;
        read_all(&bytes)?;
    }

    #[test]
    fn any_bytes(start in prop::sample::select(vec![&b"GRIB"[..], b"GRIB\0\0\x40\x01", b"GRIB\0\0\0\x02", b""]), bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        read_all(&[start, &bytes].concat())?;
    }
}
