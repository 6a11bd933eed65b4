//! A packed object costs what its frame has, not what the catalogue claims: reads under a limit of bytes for each call.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, and its helpers too")]

#[path = "../../../../fuzz/src/limits.rs"]
mod limits;

use std::fs;
use std::path::Path;

use junctura_model::{Code, Schema};
use junctura_store::{Compression, PayloadCodec, ReadBuffer, Store, StoreLayout};

/// Bytes for one call.
const BYTES_MAX: usize = 12 << 20;

/// The result of a call, and the most bytes that it held.
fn peak_of<T>(call: impl FnOnce() -> T) -> (T, usize) {
    let (result, cost) = limits::cost_of(call);
    (result, cost.held_bytes)
}

const CODECS: [Compression; 2] = [Compression::Zstd { level: 1 }, Compression::Lz4];

fn create(folder: &Path, with: Compression) -> Store {
    let layout = StoreLayout {
        compression: vec![with.into()],
        ..StoreLayout::default()
    };
    Store::create(folder, &[Schema::builtin("free").unwrap()], layout).unwrap()
}

fn archive(store: &Store, payload: &[u8]) {
    let mut writer = store.writer().unwrap();
    writer.set_upkeep(false);
    writer.archive([("name", "large")], payload).unwrap();
    // So that it does not lie within the commit.
    writer.archive([("name", "other")], &noise(100_000)).unwrap();
    writer.flush().unwrap();
}

/// Bytes that no codec packs.
fn noise(count: usize) -> Vec<u8> {
    let mut state = 1_u64;
    let next = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 56) as u8
    };
    (0..count).map(next).collect()
}

/// Bytes of a frame's header, behind which blocks follow.
fn header_bytes(codec: PayloadCodec, frame: &[u8]) -> usize {
    match codec {
        PayloadCodec::Lz4 => 15,
        PayloadCodec::Zstd => {
            let is_single = frame[4] & 0x20 != 0;
            5 + usize::from(!is_single) + [usize::from(is_single), 2, 4, 8][usize::from(frame[4] >> 6)]
        }
    }
}

#[test]
fn an_object_that_its_frame_does_not_have_is_refused_before_memory_is_reserved() {
    for with in CODECS {
        let folder = tempfile::tempdir().unwrap();
        let store = create(folder.path(), with);
        archive(&store, &vec![0; 200 << 20]);
        let listing = store.snapshot().unwrap().list("name=large").unwrap();
        let object = listing.get(0).unwrap();
        let location = object.location();
        let path = folder.path().join(&*location.file);
        let mut file = fs::read(&path).unwrap();
        let frame = &mut file[location.offset as usize..][..location.length as usize];
        let header = header_bytes(location.codec.unwrap(), frame);
        frame[header..].fill(0);
        fs::write(&path, file).unwrap();

        let mut refusals = Vec::new();
        let mut refused = |call: &mut dyn FnMut() -> junctura_model::Result<()>| {
            let (outcome, bytes) = peak_of(call);
            assert!(bytes <= BYTES_MAX, "{with}: {bytes} bytes were held");
            refusals.push(outcome.unwrap_err().code());
        };
        refused(&mut || object.read().map(drop));
        refused(&mut || object.read_into(&mut ReadBuffer::new()));
        refused(&mut || object.map().map(drop));
        refused(&mut || object.read_range(0, &mut [0; 10]).map(drop));
        refused(&mut || listing.for_each_payload(|_, payload| payload.map(drop)));
        refused(&mut || object.check_length());
        refused(&mut || object.check());
        assert_eq!(refusals, [Code::Corrupt; 7], "{with}");
    }
}

#[test]
fn a_large_packed_object_is_read_as_a_stream() {
    let (half, length) = (600 << 20, (1 << 30) + 5);
    for with in CODECS {
        let folder = tempfile::tempdir().unwrap();
        let store = create(folder.path(), with);
        let mut payload = vec![0; length];
        payload[half] = 1;
        payload[length - 1] = 2;
        archive(&store, &payload);
        drop(payload);
        let listing = store.snapshot().unwrap().list("name=large").unwrap();
        let object = listing.get(0).unwrap();
        let (outcome, bytes) = peak_of(|| {
            object.check_length()?;
            object.check()?;
            let mut piece = vec![9; 1 << 20];
            // On, behind a gap, to the end, behind it, and back.
            for (from, count, at, found) in [
                (0, 1 << 20, 0, 0),
                (1 << 20, 1 << 20, 5, 0),
                (half - 3, 1 << 20, 3, 1),
                (length - 2, 2, 1, 2),
                (length, 0, 0, 9),
                (half, 1 << 20, 0, 1),
            ] {
                piece[at] = 9;
                assert_eq!(object.read_range(from as u64, &mut piece)?, count, "{with} {from}");
                assert_eq!(piece[at], found, "{with} {from}");
            }
            Ok::<_, junctura_model::Error>(())
        });
        outcome.unwrap();
        assert!(bytes <= BYTES_MAX, "{with}: {bytes} bytes were held");
    }
}

#[test]
fn packed_objects_that_are_kept_for_ranges_have_a_limit_of_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let store = create(folder.path(), Compression::Zstd { level: 1 });
    let mut writer = store.writer().unwrap();
    writer.set_upkeep(false);
    let mut payload = vec![0; 400 << 20];
    for name in ["0", "1", "2"] {
        payload[7] += 1;
        writer.archive([("name", name)], &payload).unwrap();
        writer.flush().unwrap();
    }
    drop(payload);
    let listing = store.snapshot().unwrap().list("").unwrap();
    let (firsts, bytes) = peak_of(|| {
        let first = |object: junctura_store::StoredObject<'_>| {
            let mut byte = [0];
            object.read_range(7, &mut byte).unwrap();
            byte[0]
        };
        listing.iter().chain(&listing).map(first).collect::<Vec<_>>()
    });
    assert_eq!(firsts, [1, 2, 3, 1, 2, 3]);
    // Two, and one that is being unpacked.
    assert!(bytes < 3 * (400 << 20) + BYTES_MAX, "{bytes} bytes were held");
}
