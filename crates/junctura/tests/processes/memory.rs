//! Payloads that are damaged in memory: the test looks for the bytes in every segment that this process has open.

use crate::alone;
use junctura::{Code, Pool};

/// Whether pools are reached by any detour here (see CONTRIBUTING.md).
fn is_over_network() -> bool {
    std::env::var_os("JUNCTURA_TEST_DETOUR").is_some()
}

/// Changes one byte of the payload that holds `pattern`, in the segment itself, as a stray writer would.
fn damage(pattern: &[u8]) {
    use std::os::unix::fs::FileExt;

    let segments = std::fs::read_dir("/proc/self/fd").unwrap().filter_map(|entry| {
        let path = entry.unwrap().path();
        let target = std::fs::read_link(&path).ok()?;
        target.to_string_lossy().starts_with("/memfd:junctura ").then_some(path)
    });
    for path in segments {
        let Ok(segment) = std::fs::File::options().read(true).write(true).open(&path) else {
            continue;
        };
        let bytes = std::fs::read(&path).unwrap();
        if let Some(at) = bytes.windows(pattern.len()).position(|window| window == pattern) {
            segment.write_all_at(&[!pattern[0]], at as u64).unwrap();
            return;
        }
    }
    panic!("the payload lies nowhere");
}

#[test]
fn a_payload_that_was_damaged_is_told() {
    let _alone = alone();
    if is_over_network() {
        // The bytes lie in two segments of this process; which of them is damaged is chance.
        return;
    }
    let pool = Pool::builder().schema("free").checked(true).open().unwrap();
    let payload: Vec<u8> = (0..20_000_u32)
        .flat_map(|i| i.wrapping_mul(2_654_435_761).to_ne_bytes())
        .collect();
    pool.offer([("name", "damaged")], &payload).unwrap();
    assert_eq!(pool.demand("name=damaged", None).unwrap()[..], payload[..]);
    damage(&payload[4000..4064]);
    let error = pool.demand("name=damaged", None).unwrap_err();
    assert_eq!(error.code(), Code::Corrupt);
    assert!(error.subject().contains("damaged"), "{error}");
}
