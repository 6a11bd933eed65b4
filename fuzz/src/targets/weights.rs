//! A file of weights that another program may have written: reading never panics, needs little more memory than the file, and what was
//! read is written as the same bytes. The fuzzer cannot find a checksum, so each file has its own put in.

use crate::{Limits, within};
use junctura_remap::{HEADER_BYTES, Weights};
use xxhash_rust::xxh3::xxh3_64;

/// The file and its copy, and lists of which the largest has 8 bytes for 4 of the file.
const LIMITS: Limits = Limits {
    held_bytes: 64 << 10,
    held_bytes_each: 16,
    steps: 10_000,
    steps_each: 64,
};

pub(crate) fn run(bytes: &[u8]) {
    within(LIMITS, bytes, || fuzz(bytes));
}

fn fuzz(bytes: &[u8]) {
    let mut bytes = bytes.to_vec();
    if bytes.len() >= HEADER_BYTES {
        let sum = xxh3_64(&[&bytes[..24], &bytes[32..]].concat());
        bytes[24..32].copy_from_slice(&sum.to_le_bytes());
    }
    if let Ok(weights) = Weights::decode(&bytes) {
        assert_eq!(weights.encode(), bytes);
    }
}
