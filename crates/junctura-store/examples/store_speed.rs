//! How fast a store finds and reads, for `benches/store.py` and `benches/store_scale.py`; prints its figures as JSON.
//!
//! `fill FOLDER OBJECTS BYTES EVERY` makes a store, and `checkpoint FOLDER` a checkpoint of it; `open FOLDER` opens it and takes a snapshot, `one FOLDER` opens it and retrieves one object, `keys FOLDER OBJECTS` looks up single keys of so many, one and then thousands, `axes FOLDER` asks for the axes of all, `catalogue FOLDER`
//! reads the files in which a checkpoint lies, each in a process that has just begun, and says how much memory that took; `pack FOLDER CODEC` archives and reads fields, packed or not; `list FOLDER SELECTOR` lists it in a process that has just begun, with the memory that it took, and then again;
//! `read FOLDER` reads it one by one and together, and maps it both ways, beside a plain `pread` of the same bytes, turn by turn; `beside FOLDER` reads while a thread of another
//! store's writer flushes ten fields every 100 ms, and while nobody does.

#![allow(clippy::unwrap_used, reason = "an example")]

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use junctura_model::{Given, RecordRef, Result, Schema};
use junctura_store::{
    Compression, Listing, MappedPayload, PackingRule, ReadBuffer, RetentionAges, Store, StoreLayout, StoreWriter,
    StoredObject,
};

const PARAMS: [&str; 10] = ["t", "u", "v", "q", "z", "w", "r", "d", "vo", "o3"];
const LEVELS: [i64; 10] = [1000, 925, 850, 700, 600, 500, 400, 300, 250, 200];
const MEMBERS: usize = 50;
/// Lists by one who has listed before, and reads of everything.
const AGAIN: usize = 5;
const READ_FOR: Duration = Duration::from_millis(1500);
const FLUSH_EVERY: Duration = Duration::from_millis(100);
const FIELD_BYTES: usize = 804 << 10;
/// Keys that are looked up, one by one.
const KEYS: usize = 20_000;
/// Fields that are packed.
const PACKED: usize = 500;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let number = |word: &str| word.parse::<usize>().unwrap();
    let figures = match words[..] {
        ["fill", folder, objects, bytes, every] => fill(folder, number(objects), number(bytes), number(every)),
        ["checkpoint", folder] => checkpoint(folder),
        ["list", folder, selector] => list(folder, selector),
        ["open", folder] => asked(|| open(folder)),
        ["one", folder] => asked(|| one(folder)),
        ["keys", folder, objects] => keys_by_one(folder, number(objects)),
        ["axes", folder] => asked(|| axes(folder)),
        ["catalogue", folder] => asked(|| catalogue(folder)),
        ["pack", folder, codec] => pack(folder, codec),
        ["read", folder] => read(folder),
        ["beside", folder] => beside(folder),
        _ => panic!("fill, checkpoint, list, open, one, keys, axes, catalogue, pack, read or beside: see the source"),
    };
    println!("{figures}");
}

/// A field of an ensemble forecast, in the order in which a model writes them.
fn field(number: usize) -> [(&'static str, Given<'static>); 11] {
    let (rest, param) = (number / PARAMS.len(), number % PARAMS.len());
    let (rest, level) = (rest / LEVELS.len(), rest % LEVELS.len());
    let (step, member) = (rest / MEMBERS, rest % MEMBERS);
    [
        ("class", Given::Text("od")),
        ("expver", Given::Text("0001")),
        ("stream", Given::Text("enfo")),
        ("date", Given::Text("20261120")),
        ("time", Given::Text("0000")),
        ("type", Given::Text("pf")),
        ("levtype", Given::Text("pl")),
        ("step", Given::Integer(step as i64)),
        ("number", Given::Integer(member as i64)),
        ("levelist", Given::Integer(LEVELS[level])),
        ("param", Given::Text(PARAMS[param])),
    ]
}

fn archive(writer: &mut StoreWriter, number: usize, payload: &[u8]) {
    writer.archive(field(number), payload).unwrap();
}

fn create(folder: &Path) -> Store {
    Store::create(folder, &[Schema::builtin("mars").unwrap()], RetentionAges::default()).unwrap()
}

/// Without a checkpoint when there are few objects a flush: what is listed then are commits.
fn fill(folder: &str, objects: usize, bytes: usize, every: usize) -> String {
    let store = create(folder.as_ref());
    let (mut writer, payload) = (store.writer().unwrap(), vec![7; bytes]);
    writer.set_upkeep(false);
    for number in 0..objects {
        archive(&mut writer, number, &payload);
        if writer.pending() >= every as u64 {
            writer.flush().unwrap();
        }
    }
    writer.flush().unwrap();
    if every >= 1000 {
        store.checkpoint().unwrap();
    }
    "{}".to_owned()
}

fn checkpoint(folder: &str) -> String {
    let done = Store::open(folder.as_ref()).unwrap().checkpoint().unwrap();
    format!(r#"{{"commit": {}, "rows": {}}}"#, done.commit, done.rows)
}

/// How long a question took, of how many objects, and how much memory this process had at most.
fn asked(question: impl FnOnce() -> usize) -> String {
    let began = Instant::now();
    let objects = question();
    let took = began.elapsed().as_secs_f64() * 1e3;
    let peak = peak_kib() as f64 / 1024.0;
    format!(r#"{{"objects": {objects}, "first_ms": {took:.4}, "peak_mib": {peak:.1}}}"#)
}

fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    peak.and_then(|peak| peak.trim().trim_end_matches("kB").trim().parse().ok())
        .unwrap_or_default()
}

/// Gives how many commits it shows.
fn open(folder: &str) -> usize {
    let store = Store::open(folder.as_ref()).unwrap();
    store.snapshot().unwrap().commit() as usize
}

/// Retrieves one by its key.
fn one(folder: &str) -> usize {
    let store = Store::open(folder.as_ref()).unwrap();
    let key = "class=od,expver=0001,stream=enfo,date=20261120,time=0000,type=pf,levtype=pl,step=3,number=7,levelist=500,param=t";
    let listing = store.snapshot().unwrap().retrieve(key).unwrap();
    listing.get(0).unwrap().read().unwrap();
    listing.len()
}

/// Looks single keys up, here and there among all of them: the first, and then many.
fn keys_by_one(folder: &str, objects: usize) -> String {
    let store = Store::open(folder.as_ref()).unwrap();
    let schema = Schema::builtin("mars").unwrap();
    let snapshot = store.snapshot().unwrap();
    let mut number = 0;
    let mut look_up = |count: usize| {
        let mut records = Vec::new();
        for _ in 0..count {
            number = (number + 7_654_321) % objects;
            let mut record = Vec::new();
            schema.record(field(number), &mut record).unwrap();
            records.push(record);
        }
        let began = Instant::now();
        for record in &records {
            let found = snapshot.versions_of("mars", RecordRef::trusted(record)).unwrap();
            assert_eq!(found.len(), 1);
        }
        began.elapsed().as_secs_f64() / count as f64
    };
    let first = look_up(1);
    // Until every part of the catalogue has been asked for a few.
    look_up(KEYS);
    let again = (0..AGAIN).map(|_| look_up(KEYS)).fold(f64::MAX, f64::min);
    let peak = peak_kib() as f64 / 1024.0;
    format!(
        r#"{{"first_ms": {:.4}, "key_us": {:.4}, "peak_mib": {peak:.1}}}"#,
        first * 1e3,
        again * 1e6
    )
}

fn axes(folder: &str) -> usize {
    let store = Store::open(folder.as_ref()).unwrap();
    let axes = store.snapshot().unwrap().axes("").unwrap();
    axes.iter().map(|axis| axis.values.len()).sum()
}

/// What any reader of the files of the newest checkpoint has to do at least, if it asks for all.
fn catalogue(folder: &str) -> usize {
    let segments = std::fs::read_dir(Path::new(folder).join("segments")).unwrap();
    let mut piece = vec![0; 1 << 20];
    let mut bytes = 0;
    for segment in segments {
        let file = File::open(segment.unwrap().path()).unwrap();
        let mut at = 0;
        loop {
            match file.read_at(&mut piece, at).unwrap() {
                0 => break,
                read => at += read as u64,
            }
        }
        bytes += at as usize;
    }
    bytes
}

/// Values of a field as a model has them in memory, of which 16 bits say something.
fn values(seed: usize) -> Vec<u8> {
    let value = |at: usize| {
        let x = at as f32 / 700.0 + seed as f32;
        let smooth = x.sin() * 20.0 + (x * 7.3).sin() * 3.0 + (x * 61.0).cos();
        let step = 60.0 / 65_536.0;
        280.0 + (smooth / step).round() * step
    };
    (0..FIELD_BYTES / 4).flat_map(|at| value(at).to_le_bytes()).collect()
}

/// Archives fields, ten a flush, and reads them together, verified.
fn pack(folder: &str, codec: &str) -> String {
    let compression: Vec<PackingRule> = match codec {
        "none" => Vec::new(),
        codec => vec![codec.parse::<Compression>().unwrap().into()],
    };
    let layout = StoreLayout {
        compression,
        ..StoreLayout::default()
    };
    let store = Store::create(folder.as_ref(), &[Schema::builtin("mars").unwrap()], layout).unwrap();
    let fields: Vec<Vec<u8>> = (0..10).map(values).collect();
    let mut writer = store.writer().unwrap();
    let began = Instant::now();
    for (number, field) in (0..PACKED).zip(fields.iter().cycle()) {
        archive(&mut writer, number, field);
        if writer.pending() == 10 {
            writer.flush().unwrap();
        }
    }
    let written = began.elapsed();
    let listing = store.snapshot().unwrap().list("").unwrap();
    let read = (0..3).map(|_| {
        let began = Instant::now();
        listing.for_each_payload(|_, payload| payload.map(|_| ())).unwrap();
        began.elapsed()
    });
    let rate = |took: Duration| listing.bytes() as f64 / took.as_secs_f64() / f64::from(1 << 30);
    format!(
        r#"{{"write_gib_per_s": {:.4}, "gib_per_s": {:.4}, "stored_share": {:.4}}}"#,
        rate(written),
        rate(read.min().unwrap()),
        listing.stored_bytes() as f64 / listing.bytes() as f64,
    )
}

/// Makes the text of each key; says how many.
fn keys(listing: &Listing) -> usize {
    let (mut count, mut bytes) = (0, 0);
    listing.for_each_key(|key, _| {
        count += 1;
        bytes += key.len();
    });
    assert!(bytes >= count);
    count
}

fn list(folder: &str, selector: &str) -> String {
    let began = Instant::now();
    let store = Store::open(folder.as_ref()).unwrap();
    let count = keys(&store.snapshot().unwrap().list(selector).unwrap());
    let first = began.elapsed();
    let peak = peak_kib() as f64 / 1024.0;
    let again = (0..AGAIN).map(|_| {
        let began = Instant::now();
        keys(&store.snapshot().unwrap().list(selector).unwrap());
        began.elapsed()
    });
    let again = again.min().unwrap();
    format!(
        r#"{{"objects": {count}, "first_ms": {:.4}, "again_ms": {:.4}, "peak_mib": {peak:.1}, "objects_per_s": {:.1}}}"#,
        first.as_secs_f64() * 1e3,
        again.as_secs_f64() * 1e3,
        count as f64 / first.as_secs_f64(),
    )
}

/// Reads everything, verified; says how many bytes that were.
fn read_all(listing: &Listing, buffer: &mut ReadBuffer) -> u64 {
    for object in listing.by_location() {
        object.read_into(buffer).unwrap();
    }
    listing.bytes()
}

fn read_together(listing: &Listing) {
    let verified = |_: StoredObject<'_>, payload: Result<&[u8]>| payload.map(|_| ());
    listing.for_each_payload(verified).unwrap();
}

fn map_all(listing: &Listing) {
    let maps: Vec<MappedPayload> = listing.iter().map(|object| object.map().unwrap()).collect();
    assert!(maps.iter().all(MappedPayload::is_mapped));
}

fn map_together(listing: &Listing) {
    assert!(listing.map().unwrap().iter().all(MappedPayload::is_mapped));
}

fn read_plainly(listing: &Listing, folder: &str, buffer: &mut [u8]) {
    for object in listing.by_location() {
        let place = object.location();
        let file = File::open(Path::new(folder).join(&*place.file)).unwrap();
        file.read_exact_at(&mut buffer[..place.length as usize], place.offset)
            .unwrap();
    }
}

fn read(folder: &str) -> String {
    let open = || Store::open(folder.as_ref()).unwrap();
    let list = |store: &Store| store.snapshot().unwrap().list("").unwrap();
    let gib = list(&open()).bytes() as f64 / f64::from(1 << 30);
    let (mut buffer, mut memory) = (ReadBuffer::new(), vec![0; FIELD_BYTES + 64]);
    let aligned = memory.as_ptr().align_offset(64);
    let known = open();
    map_all(&list(&known));
    let mut rates = [0.0_f64; 7];
    for _ in 0..AGAIN {
        let mut timed = |at: usize, store: &Store, way: &mut dyn FnMut(&Listing)| {
            let listing = list(store);
            let began = Instant::now();
            way(&listing);
            let rate: &mut f64 = &mut rates[at];
            *rate = rate.max(gib / began.elapsed().as_secs_f64());
        };
        // Each way has a store that has not opened or mapped a file yet, but those that come again.
        timed(0, &open(), &mut |listing| _ = read_all(listing, &mut buffer));
        timed(1, &open(), &mut read_together);
        timed(2, &open(), &mut map_all);
        timed(3, &open(), &mut map_together);
        timed(4, &known, &mut map_all);
        timed(5, &known, &mut map_together);
        timed(6, &open(), &mut |listing| {
            read_plainly(listing, folder, &mut memory[aligned..]);
        });
    }
    let names = [
        "gib_per_s",
        "together_gib_per_s",
        "mapped_gib_per_s",
        "mapped_together_gib_per_s",
        "mapped_again_gib_per_s",
        "mapped_again_together_gib_per_s",
        "pread_gib_per_s",
    ];
    let figure = |(name, rate)| format!(r#""{name}": {rate:.4}"#);
    let figures: Vec<String> = names.iter().zip(rates).map(figure).collect();
    format!("{{{}}}", figures.join(", "))
}

/// Bytes read a second.
fn read_for_a_while(listing: &Listing) -> f64 {
    let (mut buffer, mut bytes) = (ReadBuffer::new(), 0);
    let began = Instant::now();
    while began.elapsed() < READ_FOR {
        bytes += read_all(listing, &mut buffer);
    }
    bytes as f64 / began.elapsed().as_secs_f64()
}

fn beside(folder: &str) -> String {
    let store = Store::open(folder.as_ref()).unwrap();
    let listing = store.snapshot().unwrap().list("").unwrap();
    let alone = read_for_a_while(&listing);
    let is_over = AtomicBool::new(false);
    let (beside, written) = std::thread::scope(|scope| {
        let writing = scope.spawn(|| write_at_a_pace(&store, &is_over));
        let beside = read_for_a_while(&listing);
        is_over.store(true, Ordering::Relaxed);
        (beside, writing.join().unwrap())
    });
    let gib = f64::from(1 << 30);
    format!(
        r#"{{"alone_gib_per_s": {:.4}, "gib_per_s": {:.4}, "written_gib_per_s": {:.4}}}"#,
        alone / gib,
        beside / gib,
        written / gib
    )
}

/// Ten fields and a flush every 100 ms; gives bytes a second.
fn write_at_a_pace(store: &Store, is_over: &AtomicBool) -> f64 {
    let (mut writer, payload) = (store.writer().unwrap(), vec![7; FIELD_BYTES]);
    let (began, mut fields) = (Instant::now(), 0);
    let mut next = began;
    while !is_over.load(Ordering::Relaxed) {
        for _ in 0..10 {
            archive(&mut writer, fields, &payload);
            fields += 1;
        }
        writer.flush().unwrap();
        next += FLUSH_EVERY;
        #[expect(clippy::disallowed_methods, reason = "a load has a pace")]
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
    }
    (fields * FIELD_BYTES) as f64 / began.elapsed().as_secs_f64()
}
