//! What users of a store see: objects that are found by meaning, and errors that say what is wrong.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use junctura_model::text::quote;
use junctura_model::{Code, Error, Given, Schema};
use junctura_store::{MappedPayload, RetentionAges, Store, StoreWriter};

struct World {
    _folder: tempfile::TempDir,
    path: PathBuf,
    store: Store,
}

fn world() -> World {
    world_with(RetentionAges::default())
}

fn world_with(ages: RetentionAges) -> World {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let store = Store::create(&path, &[mars()], ages).unwrap();
    World {
        _folder: folder,
        path,
        store,
    }
}

fn mars() -> Arc<Schema> {
    Schema::builtin("mars").unwrap()
}

/// Archives a field of some step and parameter.
fn archive(writer: &mut StoreWriter, step: u32, param: &str, payload: &[u8]) {
    archive_in("0001", writer, step, param, payload);
}

/// The same in the dataset of another experiment.
fn archive_in(expver: &str, writer: &mut StoreWriter, step: u32, param: &str, payload: &[u8]) {
    let step = step.to_string();
    let attributes = [
        ("class", "od"),
        ("expver", expver),
        ("stream", "oper"),
        ("date", "20261120"),
        ("time", "0000"),
        ("type", "fc"),
        ("levtype", "sfc"),
        ("step", &*step),
        ("param", param),
    ];
    let given = attributes.map(|(name, value)| (name, Given::Text(value)));
    writer.archive(given, payload).unwrap();
}

fn payload(seed: u32, length: usize) -> Vec<u8> {
    (0..length as u32)
        .map(|at| (at.wrapping_mul(2_654_435_761) ^ seed) as u8)
        .collect()
}

fn keys(store: &Store, selector: &str) -> Vec<String> {
    let mut keys = Vec::new();
    store
        .snapshot()
        .unwrap()
        .list(selector)
        .unwrap()
        .for_each_key(|key, object| {
            assert_eq!(key, object.key());
            keys.push(key.rsplit_once('{').unwrap().1.trim_end_matches('}').to_owned());
        });
    keys
}

fn only(store: &Store, selector: &str) -> Result<Vec<u8>, Error> {
    let listing = store.snapshot()?.retrieve(selector)?;
    assert_eq!(listing.len(), 1);
    listing.iter().next().unwrap().read()
}

fn data_files(path: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for dataset in fs::read_dir(path.join("data")).into_iter().flatten() {
        for file in fs::read_dir(dataset.unwrap().path()).unwrap() {
            files.push(file.unwrap().path());
        }
    }
    files
}

#[test]
fn who_leaves_without_a_flush_leaves_nothing() {
    let world = world();
    let mut writer = world.store.writer().unwrap();
    archive(&mut writer, 6, "2t", &payload(1, 5_000_000));
    drop(writer);
    assert!(keys(&world.store, "").is_empty());
    let checked = world.store.snapshot().unwrap().check("", None, |_, _| true).unwrap();
    assert_eq!((checked.objects, checked.unnamed.len()), (0, 0));
}

#[test]
fn what_is_masked_is_not_found_by_what_it_said_outside_its_key() {
    let text = "name: notes\nkey:\n  dataset: [run]\nattributes:\n  run: {type: string}\n  state: {type: string}\n";
    let schema = Arc::new(Schema::parse_yaml(text).unwrap());
    let folder = tempfile::tempdir().unwrap();
    let store = Store::create(folder.path(), &[schema], RetentionAges::default()).unwrap();
    let mut writer = store.writer().unwrap();
    for state in ["old", "new"] {
        let attributes = [("run", "a"), ("state", state)];
        writer
            .archive(
                attributes.map(|(name, value)| (name, Given::Text(value))),
                state.as_bytes(),
            )
            .unwrap();
        writer.flush().unwrap();
    }
    let snapshot = store.snapshot().unwrap();
    assert_eq!(snapshot.list("state=old").unwrap().len(), 0);
    assert_eq!(snapshot.list_all("state=old").unwrap().len(), 1);
    assert_eq!(snapshot.list("not(state=old)").unwrap().len(), 1);
    assert_eq!(snapshot.list("state=new").unwrap().len(), 1);
}

#[test]
fn a_snapshot_that_is_too_old_says_so() {
    let ages = RetentionAges {
        snapshot_max: Duration::ZERO,
        ..RetentionAges::default()
    };
    let world = world_with(ages);
    let mut writer = world.store.writer().unwrap();
    archive(&mut writer, 6, "2t", b"field");
    writer.flush().unwrap();
    let snapshot = world.store.snapshot().unwrap();
    let expired = (0..1000).find_map(|_| snapshot.list("").err());
    assert_eq!(expired.unwrap().code(), Code::Expired);
}

#[test]
fn what_is_too_old_is_not_flushed() {
    let ages = RetentionAges {
        unflushed_max: Duration::ZERO,
        ..RetentionAges::default()
    };
    let world = world_with(ages);
    let mut writer = world.store.writer().unwrap();
    archive(&mut writer, 6, "2t", b"field");
    archive(&mut writer, 6, "msl", b"field");
    assert_eq!(writer.flush().unwrap_err().code(), Code::Expired);
    assert_eq!((writer.pending(), keys(&world.store, "").len()), (0, 0));
}

#[test]
fn what_is_missing_is_named() {
    let world = world();
    let mut writer = world.store.writer().unwrap();
    for (step, param) in [(0, "2t"), (6, "2t"), (6, "msl")] {
        archive(&mut writer, step, param, b"");
    }
    writer.flush().unwrap();
    let snapshot = world.store.snapshot().unwrap();
    assert_eq!(snapshot.retrieve("step=0/6,param=2t").unwrap().len(), 2);
    let error = snapshot.retrieve("step=0/6,param=2t/msl").unwrap_err();
    assert_eq!(error.code(), Code::NotFound);
    assert!(error.cause().contains("{step=0,param=msl}"), "{error}");
    let found = snapshot.retrieve_partial("step=0/6/12,param=2t/msl").unwrap();
    assert_eq!(found.listing.len(), 3);
    assert_eq!(
        found.missing,
        ["{step=0,param=msl}", "{step=12,param=2t}", "{step=12,param=msl}"]
    );
    assert_eq!(snapshot.retrieve("step=0/to/6/by/6,param=2t").unwrap().len(), 2);
    let lacks = |selector: &str| snapshot.retrieve_partial(selector).unwrap().missing;
    assert_eq!(lacks("step=0/to/12/by/6,param=2t"), ["{step=12,param=2t}"]);
    assert_eq!(lacks("step=12/to/6/by/6,step=0/12,param=2t"), ["{step=12,param=2t}"]);
    assert_eq!(lacks("date=20261119/to/20261121,param=msl").len(), 2);
    assert_eq!(lacks("step!=1/to/3,step>=0,param=2t"), [""; 0]);
    let error = snapshot.retrieve("number=0/to/99999999").unwrap_err();
    assert_eq!(error.code(), Code::LimitExceeded);
    for nothing in ["step=99", "step>99", "class=rd"] {
        assert_eq!(
            snapshot.retrieve(nothing).unwrap_err().code(),
            Code::NotFound,
            "{nothing}"
        );
    }
    assert_eq!(snapshot.retrieve("step=0/").unwrap_err().code(), Code::InvalidSelector);
}

#[test]
fn damage_is_named_and_everything_else_is_served() {
    let world = world();
    let mut writer = world.store.writer().unwrap();
    for step in 0..3 {
        archive(&mut writer, step, "2t", &payload(step, 300_000));
    }
    writer.flush().unwrap();
    let [file] = &data_files(&world.path)[..] else {
        panic!("one file");
    };
    let mut bytes = fs::read(file).unwrap();
    bytes[450_000] ^= 1;
    fs::write(file, &bytes).unwrap();
    let read = |step: u32| only(&Store::open(&world.path).unwrap(), &format!("step={step}"));
    assert!(read(0).is_ok() && read(2).is_ok());
    let error = read(1).unwrap_err();
    assert_eq!(error.code(), Code::Corrupt);
    assert!(error.subject().contains("step=1"), "{error}");
    fs::write(file, &bytes[..600_100]).unwrap();
    assert!(read(0).is_ok());
    assert_eq!(read(2).unwrap_err().code(), Code::Corrupt);
    fs::remove_file(file).unwrap();
    let error = read(0).unwrap_err();
    assert_eq!(error.code(), Code::Corrupt);
    assert!(error.cause().contains("missing"), "{error}");
    let checked = Store::open(&world.path)
        .unwrap()
        .snapshot()
        .unwrap()
        .check("", None, |_, _| true)
        .unwrap();
    assert_eq!((checked.objects, checked.damaged_count), (3, 3));
}

#[test]
fn a_torn_log_is_read_up_to_where_it_is_whole_and_written_on() {
    let world = world();
    let mut writer = world.store.writer().unwrap();
    let log = world.path.join("log/00000000000000000001");
    let mark = log.with_extension("synced");
    let mut marks = Vec::new();
    for step in 0..3 {
        archive(&mut writer, step, "2t", b"field");
        writer.flush().unwrap();
        marks.push(fs::read(&mark).unwrap());
    }
    let whole = fs::read(&log).unwrap();
    for cut in 1..60 {
        fs::write(&log, &whole[..whole.len() - cut]).unwrap();
        // As it was before the last one was synced.
        fs::write(&mark, &marks[1]).unwrap();
        let store = Store::open(&world.path).unwrap();
        assert_eq!(keys(&store, "").len(), 2);
        let mut writer = store.writer().unwrap();
        archive(&mut writer, 9, "2t", b"again");
        assert_eq!(writer.flush().unwrap().commit, 3);
        assert_eq!(keys(&store, "").len(), 3);
    }
}

#[test]
fn a_wipe_takes_out_all_versions_and_a_purge_those_that_are_masked() {
    let world = world();
    let mut writer = world.store.writer().unwrap();
    for round in 0..3_u8 {
        for step in [0, 6] {
            archive(&mut writer, step, "2t", &[round]);
            archive(&mut writer, step, "msl", &[round]);
        }
        writer.flush().unwrap();
    }
    let snapshot = world.store.snapshot().unwrap();
    assert_eq!(snapshot.masked("param=2t").unwrap().len(), 4);
    assert_eq!(snapshot.versions("param=2t,step=6").unwrap().len(), 3);
    let all = || world.store.snapshot().unwrap().list_all("").unwrap().len();
    let purged = world.store.purge("param=2t").unwrap();
    assert_eq!((purged.objects, purged.bytes, purged.commit), (4, 4, 4));
    assert_eq!(all(), 8);
    assert_eq!(only(&world.store, "param=2t,step=6").unwrap(), [2]);
    assert_eq!(world.store.wipe("step=6").unwrap().objects, 4);
    assert_eq!(all(), 4);
    assert_eq!(
        only(&world.store, "param=msl,step=6").unwrap_err().code(),
        Code::NotFound
    );
    assert_eq!(world.store.wipe("step=6").unwrap().commit, 0);
    assert_eq!(snapshot.list_all("").unwrap().len(), 12, "a snapshot stays as it is");
}

#[test]
fn what_is_of_another_store_is_not_removed() {
    let (world, other) = (world(), world());
    for store in [&world.store, &other.store] {
        let mut writer = store.writer().unwrap();
        archive(&mut writer, 6, "2t", b"field");
        writer.flush().unwrap();
    }
    let listing = world.store.snapshot().unwrap().list("").unwrap();
    let error = other.store.remove(&listing).unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument, "{error}");
    assert_eq!(keys(&other.store, "").len(), 1);
    assert_eq!(Store::open(&world.path).unwrap().remove(&listing).unwrap().objects, 1);
}

#[test]
fn what_masked_older_versions_takes_them_along() {
    let world = world();
    let mut writer = world.store.writer().unwrap();
    let attributes = |units| {
        let text = format!(
            "class=od,expver=1,stream=oper,date=20261120,time=0,type=fc,levtype=sfc,step=0,param=2t,units={units}"
        );
        text.split(',')
            .map(|pair| pair.split_once('=').unwrap())
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect::<Vec<_>>()
    };
    for units in ["C", "K"] {
        let attributes = attributes(units);
        writer
            .archive(attributes.iter().map(|(name, value)| (name.as_str(), value)), b"")
            .unwrap();
        writer.flush().unwrap();
    }
    assert_eq!(world.store.wipe("units=C").unwrap().objects, 0, "it is masked");
    assert_eq!(world.store.wipe("units=K").unwrap().objects, 2);
    assert!(keys(&world.store, "").is_empty());
}

#[test]
fn a_damaged_segment_is_named() {
    let world = world();
    let mut writer = world.store.writer().unwrap();
    archive(&mut writer, 0, "2t", b"field");
    writer.flush().unwrap();
    world.store.checkpoint().unwrap();
    let segment = fs::read_dir(world.path.join("segments"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let mut bytes = fs::read(&segment).unwrap();
    bytes[40] ^= 1;
    fs::write(&segment, bytes).unwrap();
    let snapshot = Store::open(&world.path).unwrap().snapshot().unwrap();
    let error = snapshot.list("").unwrap_err();
    assert_eq!(error.code(), Code::Corrupt);
    assert!(error.subject().contains("segments/"), "{error}");
}

#[test]
fn a_missing_segment_is_named_and_everything_else_is_served() {
    let world = world();
    let mut writer = world.store.writer().unwrap();
    archive(&mut writer, 0, "2t", b"old");
    writer.flush().unwrap();
    world.store.checkpoint().unwrap();
    let mut segments = fs::read_dir(world.path.join("segments")).unwrap();
    let segment = segments.next().unwrap().unwrap().path();
    let bytes = fs::read(&segment).unwrap();
    let is_named = |error: Error| {
        assert_eq!(error.code(), Code::Corrupt, "{error}");
        assert!(segment.ends_with(error.subject()), "{error}");
    };
    // Gone, or cut off.
    for left in [None, Some(&bytes[..bytes.len() / 2])] {
        match left {
            None => fs::remove_file(&segment).unwrap(),
            Some(left) => fs::write(&segment, left).unwrap(),
        }
        let store = Store::open(&world.path).unwrap();
        let before = keys(&store, "expver=0002").len();
        let seen = store.snapshot().unwrap().commit();
        for asks in ["", "expver=0001", "step=0", "not expver=0002"] {
            is_named(store.snapshot().unwrap().list(asks).unwrap_err());
            is_named(store.snapshot().unwrap().axes(asks).unwrap_err());
        }
        is_named(only(&store, "expver=0001,step=0").unwrap_err());
        // What was committed later, and is committed now, is found; what was there is not in its way.
        let mut writer = store.writer().unwrap();
        for (step, param) in [(0, "2t"), (6, "2t"), (6, "msl")] {
            archive_in("0002", &mut writer, step, param, b"new");
        }
        let commit = writer.flush().unwrap().commit;
        let snapshot = store.snapshot().unwrap();
        assert_eq!(keys(&store, "expver=0002,step=6").len(), 2);
        assert_eq!(only(&store, "expver=0002,step=0").unwrap(), b"new");
        assert_eq!(snapshot.list_after("", seen).unwrap().len(), 3);
        let axes = snapshot.axes("expver=0002").unwrap();
        assert!(axes.iter().any(|axis| axis.name == "expver" && axis.values == ["0002"]));
        let checked = snapshot.check("", None, |_, _| true).unwrap();
        assert_eq!((checked.objects as usize, checked.damaged_count), (before + 3, 1));
        is_named(checked.damaged[0].1.clone());
        // Others open it, too, and nothing is removed as long as nobody knows what is needed.
        if left.is_none() {
            assert_eq!(store.checkpoint().unwrap().commit, commit);
        }
        is_named(store.compact().unwrap_err());
        store.wipe("expver=0002,param=msl").unwrap();
        assert_eq!(keys(&store, "expver=0002").len(), 2);
        assert_eq!(keys(&Store::open(&world.path).unwrap(), "expver=0002").len(), 2);
        is_named(store.snapshot().unwrap().list("expver=0001").unwrap_err());
        // It returns.
        fs::write(&segment, &bytes).unwrap();
        assert_eq!(keys(&store, "").len(), 3);
        assert_eq!(only(&store, "expver=0001").unwrap(), b"old");
    }
    assert_eq!(keys(&world.store, "").len(), 3);
    let checked = world.store.snapshot().unwrap().check("", None, |_, _| true).unwrap();
    assert_eq!(checked.damaged_count, 0);
}

#[test]
fn a_long_log_goes_on_in_another_file() {
    let world = world();
    let other = Store::open(&world.path).unwrap();
    let mut writers = [world.store.writer().unwrap(), other.writer().unwrap()];
    let payload = vec![7; 60_000];
    let logs = || {
        let names = fs::read_dir(world.path.join("log")).unwrap();
        names
            .filter(|name| name.as_ref().unwrap().path().extension().is_none())
            .count()
    };
    let mut commits = 0;
    while logs() < 2 || commits % 50 != 0 {
        archive(&mut writers[commits % 2], commits as u32, "2t", &payload);
        commits += 1;
        assert_eq!(writers[(commits + 1) % 2].flush().unwrap().commit, commits as u64);
        if commits % 250 == 0 {
            assert_eq!(keys(&other, "").len(), commits);
        }
    }
    assert!(commits as u64 * 60_000 > 64 << 20);
    for store in [&world.store, &other, &Store::open(&world.path).unwrap()] {
        assert_eq!(keys(store, "").len(), commits);
        let checked = store.snapshot().unwrap().check("step>1100", None, |_, _| true).unwrap();
        assert_eq!(checked.damaged_count, 0);
    }
    let stats = other.snapshot().unwrap().stats().unwrap();
    assert_eq!(stats.commits.count, 2);
}

#[test]
fn a_log_that_became_shorter_is_told() {
    let world = world();
    let mut writer = world.store.writer().unwrap();
    archive(&mut writer, 0, "2t", b"field");
    writer.flush().unwrap();
    assert_eq!(keys(&world.store, "").len(), 1);
    fs::write(world.path.join("log/00000000000000000001"), b"").unwrap();
    assert_eq!(world.store.snapshot().unwrap_err().code(), Code::Corrupt);
}

#[test]
fn a_damaged_record_of_the_log_is_told_and_nothing_is_cut_off() {
    let world = world();
    let path = world.path.join("log/00000000000000000001");
    let mut writer = world.store.writer().unwrap();
    let mut ends = vec![0];
    for step in 0..3 {
        archive(&mut writer, step, "2t", b"field");
        writer.flush().unwrap();
        ends.push(fs::metadata(&path).unwrap().len() as usize);
    }
    let whole = fs::read(&path).unwrap();
    // In each record, the last one, too; and where the file ends too early.
    let damages = (0..3).map(|record| {
        let mut damaged = whole.clone();
        damaged[ends[record] + 30] ^= 4;
        (record, damaged)
    });
    for (record, damaged) in damages.chain([(1, whole[..ends[1]].to_vec()), (0, Vec::new())]) {
        fs::write(&path, &damaged).unwrap();
        let store = Store::open(&world.path).unwrap();
        let error = store.snapshot().unwrap_err();
        assert_eq!(error.code(), Code::Corrupt);
        assert!(error.cause().contains(&format!("behind commit {record},")), "{error}");
        let mut writer = store.writer().unwrap();
        archive(&mut writer, 9, "2t", b"field");
        assert_eq!(writer.flush().unwrap_err().code(), Code::Corrupt);
        assert_eq!(fs::read(&path).unwrap(), damaged);
    }
    fs::write(&path, &whole).unwrap();
    assert_eq!(keys(&Store::open(&world.path).unwrap(), "").len(), 3);
}

#[test]
fn until_its_damage_a_store_shows_everything_and_takes_nothing() {
    let world = world();
    let path = world.path.join("log/00000000000000000001");
    let mut writer = world.store.writer().unwrap();
    let mut ends = Vec::new();
    // It lies in a file of its own, and the others within the log.
    let first = vec![1; 100_000];
    for step in 0..4 {
        let payload = if step == 0 { &*first } else { b"field" };
        archive(&mut writer, step, "2t", payload);
        writer.flush().unwrap();
        ends.push(fs::metadata(&path).unwrap().len() as usize);
        if step == 0 {
            world.store.checkpoint().unwrap();
        }
    }
    let whole = fs::read(&path).unwrap();
    let url = format!("file://{}?until=damage", world.path.display());
    let shown = |expected: usize, damage: Option<&str>| {
        let store = Store::open_url(&url).unwrap();
        for _ in 0..2 {
            let snapshot = store.snapshot().unwrap();
            let listing = snapshot.list("").unwrap();
            assert_eq!(listing.len(), expected);
            for object in &listing {
                let expected = if object.commit() == 1 { &*first } else { b"field" };
                assert!(object.read().unwrap() == expected);
            }
            let found = snapshot.damage().map(Error::subject);
            let is_expected = |found: &str| damage.is_some_and(|damage| found.ends_with(damage));
            assert_eq!(found.map(is_expected), damage.map(|_| true));
            let checked = snapshot.check("", None, |_, _| true).unwrap();
            assert_eq!(checked.damaged.len(), usize::from(damage.is_some()));
        }
        store
    };
    // It goes without saying for one that is whole.
    shown(4, None);
    let mut damaged = whole.clone();
    damaged[ends[2] - 10] ^= 1;
    fs::write(&path, &damaged).unwrap();
    assert_eq!(
        Store::open(&world.path).unwrap().snapshot().unwrap_err().code(),
        Code::Corrupt
    );
    let store = shown(2, Some("log/00000000000000000001"));
    let mut writer = store.writer().unwrap();
    archive(&mut writer, 9, "2t", b"field");
    assert_eq!(writer.flush().unwrap_err().code(), Code::Denied);
    assert_eq!(store.checkpoint().unwrap_err().code(), Code::Denied);
    assert_eq!(store.wipe("").unwrap_err().code(), Code::Denied);
    assert_eq!(fs::read(&path).unwrap(), damaged);
    // Without the log there is what the checkpoint has.
    fs::remove_file(&path).unwrap();
    shown(1, Some("log/00000000000000000001"));
    // Without the checkpoint there is what the log has.
    fs::write(&path, &whole).unwrap();
    let checkpoint = world.path.join("checkpoints/00000000000000000001.json");
    let text = fs::read_to_string(&checkpoint).unwrap();
    fs::write(&checkpoint, &text[..text.len() / 2]).unwrap();
    assert_eq!(
        Store::open(&world.path).unwrap().snapshot().unwrap_err().code(),
        Code::Corrupt
    );
    shown(4, Some("checkpoints/00000000000000000001.json"));
}

#[test]
fn a_checkpoint_that_says_what_cannot_be_is_refused() {
    let world = world();
    let mut writer = world.store.writer().unwrap();
    archive(&mut writer, 0, "2t", b"field");
    writer.flush().unwrap();
    world.store.checkpoint().unwrap();
    let path = world.path.join("checkpoints/00000000000000000001.json");
    let text = fs::read_to_string(&path).unwrap();
    let counts = text.replace("\"counts\": [\n    1", "\"counts\": [\n    18446744073709551615");
    for other in [text.replace("\"commit\": 1", "\"commit\": 2"), counts] {
        assert_ne!(other, text);
        fs::write(&path, other).unwrap();
        let error = Store::open(&world.path).unwrap().snapshot().unwrap_err();
        assert_eq!(error.code(), Code::Corrupt, "{error}");
    }
    fs::write(&path, text).unwrap();
    assert_eq!(keys(&Store::open(&world.path).unwrap(), "").len(), 1);
}

#[test]
fn what_is_no_store_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let code = |path: &Path| Store::open(path).unwrap_err().code();
    assert_eq!(code(folder.path()), Code::NotFound);
    assert_eq!(code(&folder.path().join("nowhere")), Code::NotFound);
    let root = folder.path().join("store.json");
    fs::write(&root, "{}").unwrap();
    assert_eq!(code(folder.path()), Code::Corrupt);
    fs::remove_file(&root).unwrap();
    let store = Store::create(folder.path(), &[mars()], RetentionAges::default()).unwrap();
    drop(store);
    let again = Store::create(folder.path(), &[mars()], RetentionAges::default()).unwrap_err();
    assert_eq!(again.code(), Code::AlreadyExists);
    let text = fs::read_to_string(&root).unwrap();
    fs::write(&root, text.replace("\"version\": 1", "\"version\": 2")).unwrap();
    assert_eq!(code(folder.path()), Code::Unsupported);
    assert_eq!(
        Store::create(&folder.path().join("b"), &[], RetentionAges::default())
            .unwrap_err()
            .code(),
        Code::InvalidArgument
    );
}

#[test]
fn bytes_are_looked_at_where_they_lie() {
    let world = world();
    let mut writer = world.store.writer().unwrap();
    for (step, bytes) in [(0, 300_000), (6, 0), (12, 70_000)] {
        archive(&mut writer, step, "2t", &vec![step as u8; bytes]);
    }
    writer.flush().unwrap();
    let listing = world.store.snapshot().unwrap().list("").unwrap();
    let maps: Vec<_> = listing.iter().map(|object| object.map().unwrap()).collect();
    assert_eq!(
        maps.iter().map(MappedPayload::is_mapped).collect::<Vec<_>>(),
        [true, false, true]
    );
    assert!(*maps[0] == vec![0; 300_000] && maps[1].is_empty() && *maps[2] == vec![12; 70_000]);
    // A file that has grown since is mapped anew where that is needed.
    archive(&mut writer, 18, "2t", &vec![18; 100_000]);
    writer.flush().unwrap();
    let later = world.store.snapshot().unwrap().list("step=18").unwrap();
    assert!(*later.get(0).unwrap().map().unwrap() == vec![18; 100_000]);
    // What is mapped outlives its listing and its file's name.
    let location = listing.get(0).unwrap().location();
    drop(listing);
    fs::remove_file(world.path.join(&*location.file)).unwrap();
    assert!(*maps[0] == vec![0; 300_000]);
}

#[test]
fn what_is_mapped_is_verified() {
    let world = world();
    let mut writer = world.store.writer().unwrap();
    archive(&mut writer, 0, "2t", &vec![1; 200_000]);
    writer.flush().unwrap();
    let listing = world.store.snapshot().unwrap().list("").unwrap();
    let object = listing.get(0).unwrap();
    let path = world.path.join(&*object.location().file);
    let mut bytes = fs::read(&path).unwrap();
    bytes[object.location().offset as usize + 5] ^= 1;
    fs::write(&path, &bytes).unwrap();
    assert_eq!(object.map().unwrap_err().code(), Code::Corrupt);
    fs::write(&path, &bytes[..1000]).unwrap();
    let again = world.store.snapshot().unwrap().list("").unwrap();
    assert_eq!(again.map().unwrap_err().code(), Code::Corrupt);
    assert_eq!(again.get(0).unwrap().map().unwrap_err().code(), Code::Corrupt);
}

/// Texts that are in somebody's way, each of them whole: quotes, separators, control characters, of several bytes, as long as any.
fn values() -> Vec<String> {
    let mut values: Vec<String> = [
        "",
        " ",
        "it's \"quoted\"",
        "two\nlines\r\n\tand\u{0}more",
        "a=b,c={d}/e;*?%",
        "\\u{41}",
        "or",
        "\u{1f30d}\u{1f468}\u{200d}\u{1f469}",
        "e\u{301}",
        "\u{e9}",
        "日本語",
        "\u{202e}left",
        "00",
        "0",
    ]
    .map(str::to_owned)
    .to_vec();
    values.extend(["x".repeat(1024), "\u{1f30d}".repeat(256), "\n".repeat(1024)]);
    values
}

#[test]
fn values_of_any_length_and_unicode_are_what_they_were() {
    let text = "name: notes\nkey:\n  dataset: [run]\n  element: [name]\nattributes:\n  run: {type: string}\n  \
                name: {type: string}\n  note: {type: string}\nopen: true\n";
    let schema = Arc::new(Schema::parse_yaml(text).unwrap());
    let folder = tempfile::tempdir().unwrap();
    let store = Store::create(folder.path(), &[schema], RetentionAges::default()).unwrap();
    let mut writer = store.writer().unwrap();
    let values = values();
    for (number, value) in values.iter().enumerate() {
        let next = &values[(number + 1) % values.len()];
        let attributes = [("run", value), ("name", next), ("note", value), ("other", next)];
        let given = attributes.map(|(name, value)| (name, Given::Text(value)));
        writer.archive(given, value.as_bytes()).unwrap();
    }
    writer.flush().unwrap();
    let mut sorted = values.clone();
    sorted.sort();
    // In a commit, and in a segment, read for one and for all.
    for is_written in [false, true] {
        if is_written {
            store.checkpoint().unwrap();
        }
        let snapshot = Store::open(folder.path()).unwrap().snapshot().unwrap();
        for (number, value) in values.iter().enumerate() {
            let next = &values[(number + 1) % values.len()];
            let mut quoted = [String::new(), String::new()];
            quote(value, &mut quoted[0]);
            quote(next, &mut quoted[1]);
            let [value_quoted, next_quoted] = quoted;
            let key = format!("{{run={value_quoted}}}{{}}{{name={next_quoted}}}");
            for selector in [
                format!("run={value_quoted}"),
                format!("note={value_quoted}"),
                format!("other={next_quoted},run={value_quoted}"),
            ] {
                let listing = snapshot.retrieve(&selector).unwrap();
                assert_eq!(listing.len(), 1, "{selector}");
                let object = listing.get(0).unwrap();
                assert_eq!(
                    (object.key(), object.read().unwrap()),
                    (key.clone(), value.clone().into_bytes())
                );
                let described = object.describe();
                let attributes: Vec<(&str, &str)> = described.attributes().collect();
                let expected = [("run", value), ("name", next), ("note", value), ("other", next)];
                assert_eq!(attributes, expected.map(|(name, value)| (name, value.as_str())));
            }
        }
        let axes = snapshot.axes("").unwrap();
        assert_eq!(
            axes.iter().map(|axis| &*axis.name).collect::<Vec<_>>(),
            ["run", "name", "note", "other"]
        );
        for axis in axes {
            let mut values = axis.values;
            values.sort();
            assert_eq!(values, sorted, "{}", axis.name);
        }
    }
    let longer = "x".repeat(1025);
    let given = [("run", &*longer), ("name", "")].map(|(name, value)| (name, Given::Text(value)));
    assert_eq!(writer.archive(given, b"").unwrap_err().code(), Code::TooLarge);
}

/// Whose length and offsets no 32 bits can say: archived, checked, mapped, read in a part and moved.
#[test]
#[ignore = "5 GiB of memory and 13 of a disk: make soak"]
fn soak_an_object_of_more_than_four_gib() {
    const BYTES: usize = (4 << 30) + 12_345;
    let (world, cold) = (world(), tempfile::tempdir().unwrap());
    let mut payload = vec![0; BYTES];
    for (number, byte) in payload.iter_mut().step_by(4096).enumerate() {
        *byte = number as u8;
    }
    let mut writer = world.store.writer().unwrap();
    archive(&mut writer, 0, "t", &payload);
    archive(&mut writer, 6, "t", b"behind it");
    writer.flush().unwrap();
    world.store.add_tier("cold", cold.path().to_str().unwrap()).unwrap();
    for tier in ["cold", "data"] {
        world.store.move_to("param=t", tier, |_, _| true).unwrap();
        let listing = world.store.snapshot().unwrap().list("step=0").unwrap();
        let object = listing.iter().next().unwrap();
        let mapped = object.map().unwrap();
        assert!(mapped.is_mapped() && payload == *mapped);
    }
    let listing = world.store.snapshot().unwrap().list("step=6").unwrap();
    assert_eq!(listing.iter().next().unwrap().read().unwrap(), b"behind it");
}
