//! GRIB files as they may be damaged or made up: reading ends, never panics, and stays within the file.

#![no_main]

use junctura_grib::Messages;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|file: &[u8]| {
    for found in Messages::new(file) {
        match found {
            Ok(message) => {
                let start = message.offset() as usize;
                assert_eq!(&file[start..start + message.bytes().len()], message.bytes());
                let _ = message.packed();
                if let Ok(keys) = message.keys() {
                    keys.attributes()
                        .for_each(|(name, value)| drop(format!("{name}={value}")));
                }
            }
            Err(error) => drop(error.to_string()),
        }
    }
});
