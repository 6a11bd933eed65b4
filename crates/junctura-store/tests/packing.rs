//! Objects that lie packed: transparent to whoever reads, and smaller on the disk.

use std::path::Path;
use std::sync::Arc;

use junctura_model::{Code, Schema};
use junctura_store::{Compression, PackingRule, PayloadCodec, ReadBuffer, Store, StoreLayout, StoreWriter};

const SCHEMA: &str = "
name: packed
key:
  dataset: [run]
  element: [step]
attributes:
  run: {type: string}
  step: {type: integer}
";

fn schema() -> Arc<Schema> {
    Schema::parse_yaml(SCHEMA).unwrap().into()
}

fn packing(datasets: &str, compression: Compression) -> PackingRule {
    let datasets = datasets.to_owned();
    PackingRule { datasets, compression }
}

/// A store whose runs `z` are packed by zstd, and `l` by lz4.
fn create(path: &Path) -> Store {
    let layout = StoreLayout {
        compression: vec![
            packing("run=z", Compression::Zstd { level: 3 }),
            packing("run=l", Compression::Lz4),
        ],
        ..StoreLayout::default()
    };
    Store::create(path, &[schema()], layout).unwrap()
}

/// A field whose neighbours differ by little.
fn smooth(count: usize) -> Vec<u8> {
    let values = (0..count).map(|at| ((at as f64 / 1000.0).sin() * 100.0).round() as i32);
    values.flat_map(i32::to_le_bytes).collect()
}

/// What nobody can pack.
fn noise(count: usize) -> Vec<u8> {
    let mut state = 1_u64;
    let next = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 56) as u8
    };
    (0..count).map(next).collect()
}

fn archive(writer: &mut StoreWriter, run: &str, step: u32, payload: &[u8]) {
    let step = step.to_string();
    writer.archive([("run", run), ("step", &step)], payload).unwrap();
}

/// Objects of each run: one within a commit, one that cannot be packed, empty and small ones, and large ones.
fn fill(store: &Store) -> Vec<Vec<u8>> {
    let payloads = vec![
        smooth(1000),
        noise(100_000),
        Vec::new(),
        b"small".to_vec(),
        smooth(300_000),
    ];
    let mut writer = store.writer().unwrap();
    for run in ["z", "l", "none"] {
        for (step, payload) in (0..).zip(&payloads) {
            archive(&mut writer, run, step, payload);
            if step == 0 {
                writer.flush().unwrap();
            }
        }
    }
    writer.flush().unwrap();
    payloads
}

/// Whatever way its bytes are asked for, they are these.
fn check(store: &Store, payloads: &[Vec<u8>]) {
    let listing = store.snapshot().unwrap().list("").unwrap();
    assert_eq!(listing.len(), 3 * payloads.len());
    let mut buffer = ReadBuffer::new();
    for object in &listing {
        let step: usize = object
            .value(object.schema().find("step").unwrap())
            .unwrap()
            .parse()
            .unwrap();
        let (payload, length) = (&payloads[step], payloads[step].len());
        assert_eq!(
            (object.bytes(), object.checksum()),
            (length as u64, junctura_store::checksum(payload))
        );
        assert!(object.read().unwrap() == *payload);
        object.read_into(&mut buffer).unwrap();
        assert!(*buffer == **payload);
        assert!(*object.map().unwrap() == **payload);
        let mut all = vec![0; length];
        object.read_exact(&mut all).unwrap();
        assert!(all == *payload);
        for from in [0, length / 3, length.saturating_sub(5), length] {
            let mut part = [0; 100];
            let count = object.read_range(from as u64, &mut part).unwrap();
            assert_eq!(count, (length - from).min(100));
            assert!(part[..count] == payload[from..from + count]);
        }
    }
    let mut count = 0;
    listing
        .for_each_payload(|object, payload| {
            assert!(payload? == object.read()?);
            count += 1;
            Ok(())
        })
        .unwrap();
    assert_eq!(count, listing.len());
}

#[test]
fn who_reads_sees_what_was_archived() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let store = create(&path);
    let payloads = fill(&store);
    check(&store, &payloads);
    check(&Store::open(&path).unwrap(), &payloads);
    store.checkpoint().unwrap();
    check(&store, &payloads);
    check(&Store::open(&path).unwrap(), &payloads);
    let checked = store.snapshot().unwrap().check("", None, |_, _| true).unwrap();
    let bytes: usize = payloads.iter().map(Vec::len).sum();
    assert_eq!(
        (checked.objects, checked.bytes, checked.damaged_count),
        (15, 3 * bytes as u64, 0)
    );
}

#[test]
fn each_dataset_lies_as_its_rule_says() {
    let folder = tempfile::tempdir().unwrap();
    let store = create(&folder.path().join("store"));
    fill(&store);
    let listing = store.snapshot().unwrap().list("").unwrap();
    for (run, codec) in [
        ("z", Some(PayloadCodec::Zstd)),
        ("l", Some(PayloadCodec::Lz4)),
        ("none", None),
    ] {
        let of_run = listing
            .iter()
            .filter(|object| object.key().contains(&format!("run={run}")));
        let codecs: Vec<_> = of_run.clone().map(|object| object.location().codec).collect();
        // What cannot be packed, and what is too small, lies as it is.
        assert_eq!(codecs, [codec, None, None, None, codec]);
        let large = of_run.last().unwrap();
        let (lies, has) = (large.location().length, large.bytes());
        assert!(
            if codec.is_some() { lies < has / 2 } else { lies == has },
            "{lies} of {has}"
        );
        let ends_so = codec.map_or(String::new(), |codec| format!(" ({})", codec.name()));
        assert!(large.location().to_string().ends_with(&format!("+{lies}{ends_so}")));
    }
    let stats = store.snapshot().unwrap().stats().unwrap();
    assert!(stats.used_bytes < stats.newest().bytes, "{stats:?}");
    assert_eq!(stats.used_bytes, stats.data.bytes);
}

#[test]
fn a_rule_asks_for_datasets() {
    let folder = tempfile::tempdir().unwrap();
    for (datasets, code) in [
        ("step=1", Code::InvalidArgument),
        ("run=a and step=1", Code::InvalidArgument),
        ("run=", Code::InvalidSelector),
        ("colour=red", Code::InvalidSelector),
    ] {
        let layout = StoreLayout {
            compression: vec![packing(datasets, Compression::Lz4)],
            ..StoreLayout::default()
        };
        let refused = Store::create(&folder.path().join("store"), &[schema()], layout).unwrap_err();
        assert_eq!(refused.code(), code, "{datasets}: {refused}");
    }
    // Of two that match, the first.
    let layout = StoreLayout {
        compression: vec![
            Compression::Zstd { level: 1 }.into(),
            packing("run=l", Compression::Lz4),
        ],
        ..StoreLayout::default()
    };
    let store = Store::create(&folder.path().join("store"), &[schema()], layout).unwrap();
    let mut writer = store.writer().unwrap();
    archive(&mut writer, "l", 0, &smooth(1000));
    writer.flush().unwrap();
    let listing = store.snapshot().unwrap().list("").unwrap();
    assert_eq!(listing.get(0).unwrap().location().codec, Some(PayloadCodec::Zstd));
}

#[test]
fn a_damaged_frame_is_told_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let store = create(&path);
    fill(&store);
    for run in ["z", "l"] {
        let listing = store.snapshot().unwrap().list(&format!("run={run},step=4")).unwrap();
        let object = listing.get(0).unwrap();
        let place = object.location();
        let file = path.join(&*place.file);
        let whole = std::fs::read(&file).unwrap();
        for at in [0, 4, 5, 9, place.length / 2, place.length - 1] {
            let mut bytes = whole.clone();
            bytes[(place.offset + at) as usize] ^= 0x55;
            std::fs::write(&file, bytes).unwrap();
            // A byte that says nothing of what is in the frame may be another.
            if let Err(error) = object.read() {
                assert_eq!(error.code(), Code::Corrupt, "{error}");
            }
            let mut told = 0;
            let all = store.snapshot().unwrap().list(&format!("run={run}")).unwrap();
            all.for_each_payload(|other, payload| {
                told += u32::from(payload.is_err());
                assert!(payload.is_ok() || other.key() == object.key());
                Ok(())
            })
            .unwrap();
            assert_eq!(told == 1, object.read().is_err());
        }
        std::fs::write(&file, whole).unwrap();
        object.read().unwrap();
    }
}

#[cfg(feature = "parquet")]
#[test]
fn tables_say_how_an_object_lies() {
    let folder = tempfile::tempdir().unwrap();
    let store = create(&folder.path().join("store"));
    fill(&store);
    let names = |selector: &str| {
        let table = store.snapshot().unwrap().list(selector).unwrap().to_arrow().unwrap();
        let fields = table.schema();
        let names = fields.fields().iter().map(|field| field.name().clone());
        (names.filter(|name| name.starts_with('_')).collect::<Vec<_>>(), table)
    };
    let (with, table) = names("run=z");
    assert_eq!(with[with.len() - 2..], ["_codec", "_unpacked"]);
    assert_eq!(table.column_by_name("_unpacked").unwrap().null_count(), 3);
    assert!(!names("run=none").0.contains(&"_codec".to_owned()));
}

#[test]
fn a_check_needs_no_memory_for_what_it_unpacks_and_finds_each_damage() {
    const LARGE: usize = 10 << 20;
    for compression in ["zstd", "lz4", ""] {
        let folder = tempfile::tempdir().unwrap();
        let layout = StoreLayout {
            compression: compression.parse().map(Compression::into).into_iter().collect(),
            ..StoreLayout::default()
        };
        let store = Store::create(folder.path(), &[Schema::builtin("free").unwrap()], layout).unwrap();
        let mut writer = store.writer().unwrap();
        // Each KiB comes twice, and has no order otherwise.
        let mut state = 1_u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 56) as u8
        };
        for (name, bytes) in [("small", 1000), ("large", LARGE), ("other", LARGE)] {
            let mut payload: Vec<u8> = (0..bytes).map(|_| random()).collect();
            for pair in payload.chunks_exact_mut(2048) {
                pair.copy_within(..1024, 1024);
            }
            writer.archive([("name", name)], &payload).unwrap();
        }
        writer.flush().unwrap();
        let check = || store.snapshot().unwrap().check("", None, |_, _| true).unwrap();
        assert_eq!((check().objects, check().damaged_count), (3, 0), "{compression}");
        let listing = store.snapshot().unwrap().list("name=large").unwrap();
        let place = listing.get(0).unwrap().location();
        assert!(place.length > 4 << 20);
        let file = std::fs::File::options()
            .write(true)
            .open(folder.path().join(&*place.file))
            .unwrap();
        std::os::unix::fs::FileExt::write_at(&file, b"damaged", place.offset + place.length / 2).unwrap();
        let checked = check();
        assert_eq!(checked.damaged_count, 1, "{compression}");
        assert!(checked.damaged[0].0.contains("large"), "{compression}");
    }
}
