//! GRIB files as they may be damaged or made up: reading ends, never panics, and stays within the file.

use std::sync::Once;

use crate::{Limits, within};
use junctura_grib::Messages;

/// No payload is copied: an error, and the texts of the keys of one message at a time.
const LIMITS: Limits = Limits {
    held_bytes: 8 << 10,
    held_bytes_each: 1,
    steps: 200,
    steps_each: 2,
};

/// The tables of keys are made once.
static TABLES: Once = Once::new();

pub(crate) fn run(file: &[u8]) {
    TABLES.call_once(|| fuzz(include_bytes!("../../corpus/grib_header/surface_1")));
    within(LIMITS, file, || fuzz(file));
}

fn fuzz(file: &[u8]) {
    for found in Messages::new(file) {
        match found {
            Ok(message) => {
                let start = message.offset() as usize;
                assert_eq!(&file[start..start + message.bytes().len()], message.bytes());
                let _ = message.packed();
                if let Some(values) = message.simple_packed() {
                    let has_all = |bytes: &[u8], bits: u32| values.points * u64::from(bits) <= bytes.len() as u64 * 8;
                    assert!(
                        values
                            .bitmap
                            .map_or(has_all(values.data, values.bits), |bitmap| has_all(bitmap, 1))
                    );
                }
                if let Ok(keys) = message.keys() {
                    keys.attributes()
                        .for_each(|(name, value)| drop(format!("{name}={value}")));
                }
            }
            Err(error) => drop(error.to_string()),
        }
    }
}
