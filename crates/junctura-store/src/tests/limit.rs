//! Limits of a store, reached and exceeded: a rejected operation leaves the store unchanged and usable.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use junctura_model::{Code, Schema};

use crate::catalogue::Emptied;
use crate::catalogue::checkpoint::{self, Checkpoint, CheckpointRest};
use crate::data::FILE_BYTES_MAX;
use crate::log::commit::PARTS_MAX;
use crate::log::frame;
use crate::log::{CommitLog, Commits, LogPosition};
use crate::maintenance::ownership;
use crate::maintenance::tier;
use crate::maintenance::verify::DAMAGES_MAX;
use crate::query::retrieve::EXPECTED_MAX;
use crate::root::{self, StoreLayout, StoreRoot};
use crate::storage::{FileDraft, MemoryDisk, StorageDisk, StorageFile, publish_new, write_all};
use crate::store::Store;
use crate::writer::StoreWriter;

fn store(schema: &Schema) -> Store {
    Store::create_url("memory:", &[Arc::new(schema.clone())], &StoreLayout::default()).unwrap()
}

#[test]
fn a_flush_has_objects_of_so_many_datasets() {
    let text = "name: runs\nkey: {dataset: [run], collocation: [], element: []}\nattributes:\n  run: {type: integer}\n";
    let store = store(&Schema::parse_yaml(text).unwrap());
    let mut writer = store.writer().unwrap();
    writer.set_upkeep(false);
    let archive = |writer: &mut StoreWriter, run: usize| writer.archive([("run", &*run.to_string())], b"x");
    for run in 0..PARTS_MAX {
        archive(&mut writer, run).unwrap();
    }
    let refused = archive(&mut writer, PARTS_MAX).unwrap_err();
    assert_eq!(refused.code(), Code::LimitExceeded, "{refused}");
    assert_eq!(writer.flush().unwrap().objects, PARTS_MAX as u64);
    archive(&mut writer, PARTS_MAX).unwrap();
    writer.flush().unwrap();
    let listed = store.apart().snapshot().unwrap().list("").unwrap();
    assert_eq!(listed.len(), PARTS_MAX + 1);
}

#[test]
fn a_flush_that_is_too_large_is_forgotten_and_the_writer_goes_on() {
    let store = store(&Schema::builtin("free").unwrap());
    let mut writer = store.writer().unwrap();
    // Numbers of a column take a byte for each row before and after the only row with a value.
    let names: Vec<String> = (0..60).map(|name| format!("n{name}")).collect();
    let value = "v".repeat(900);
    for number in 0..5_000 {
        let unlike = format!("{number}{value}");
        let attributes = names.iter().map(|name| (&**name, &*unlike));
        writer.archive(attributes.chain([("name", "a")]), b"").unwrap();
    }
    let refused = writer.flush().unwrap_err();
    assert_eq!(refused.code(), Code::TooLarge, "{refused}");
    assert_eq!(writer.pending(), 0);
    writer.archive([("name", "b")], b"b").unwrap();
    assert_eq!(writer.flush().unwrap().objects, 1);
    assert_eq!(store.snapshot().unwrap().list("").unwrap().len(), 1);
}

#[test]
fn a_checkpoint_that_nobody_would_read_is_not_made() {
    let disk = MemoryDisk::default();
    let name = |number: u32| Arc::from(format!("data/{number:016x}/{number:016x}-{number}"));
    let emptied: Emptied = (0..1_200_000)
        .map(|number| (name(number), Duration::from_secs(1)))
        .collect();
    let (position, log) = (LogPosition::default(), "log/00000000000000000001".to_owned());
    let checkpoint = Checkpoint::new(position, log, 1, Vec::new(), CheckpointRest::new(&[0], emptied));
    let refused = checkpoint.publish(&disk).unwrap_err();
    assert_eq!(refused.code(), Code::LimitExceeded, "{refused}");
    assert!(disk.list(checkpoint::FOLDER).unwrap().is_empty());
}

/// Memory with so much room, which counts the files that are open.
#[derive(Debug, Default)]
struct SmallDisk {
    inner: MemoryDisk,
    room: Arc<Room>,
}

#[derive(Debug, Default)]
struct Room {
    /// Of no limit: 0.
    bytes_max: AtomicU64,
    files: Mutex<BTreeMap<String, Arc<dyn StorageFile>>>,
    open: AtomicUsize,
    open_max: AtomicUsize,
}

#[derive(Debug)]
struct SmallFile(Arc<dyn StorageFile>, Arc<Room>);

impl Room {
    fn used(&self) -> u64 {
        self.files
            .lock()
            .unwrap()
            .values()
            .map(|file| file.len().unwrap())
            .sum()
    }

    fn opened(self: &Arc<Self>, file: Arc<dyn StorageFile>) -> Arc<dyn StorageFile> {
        let open = self.open.fetch_add(1, Ordering::Relaxed) + 1;
        self.open_max.fetch_max(open, Ordering::Relaxed);
        Arc::new(SmallFile(file, Arc::clone(self)))
    }
}

impl Drop for SmallFile {
    fn drop(&mut self) {
        self.1.open.fetch_sub(1, Ordering::Relaxed);
    }
}

impl StorageFile for SmallFile {
    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }
    fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<usize> {
        self.0.read_at(into, at)
    }
    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<usize> {
        let free = match self.1.bytes_max.load(Ordering::Relaxed) {
            0 => u64::MAX,
            bytes_max => bytes_max.saturating_sub(self.1.used()),
        };
        let room = (self.0.len()?.saturating_add(free))
            .saturating_sub(at)
            .min(bytes.len() as u64);
        if room == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.0.write_at(&bytes[..room as usize], at)
    }
    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.0.set_len(bytes)
    }
    fn sync(&self) -> io::Result<()> {
        self.0.sync()
    }
    fn lock(&self) -> io::Result<()> {
        self.0.lock()
    }
    fn unlock(&self) -> io::Result<()> {
        self.0.unlock()
    }
}

impl StorageDisk for SmallDisk {
    fn create(&self, path: &str) -> io::Result<Arc<dyn StorageFile>> {
        let file = self.inner.create(path)?;
        self.room
            .files
            .lock()
            .unwrap()
            .insert(path.to_owned(), Arc::clone(&file));
        Ok(self.room.opened(file))
    }
    fn open(&self, path: &str) -> io::Result<Arc<dyn StorageFile>> {
        Ok(self.room.opened(self.inner.open(path)?))
    }
    fn stage(&self, draft: &FileDraft) -> io::Result<()> {
        let file = self.create(&draft.beside)?;
        write_all(&*file, &draft.bytes, 0)
    }
    fn publish(&self, draft: &FileDraft, to: &str) -> io::Result<()> {
        self.inner.publish(draft, to)?;
        self.remove(&draft.beside)?;
        let file = self.inner.open(to)?;
        self.room.files.lock().unwrap().insert(to.to_owned(), file);
        Ok(())
    }
    fn remove(&self, path: &str) -> io::Result<()> {
        self.room.files.lock().unwrap().remove(path);
        self.inner.remove(path)
    }
    fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        self.inner.list(folder)
    }
    fn modified(&self, path: &str) -> io::Result<Duration> {
        self.inner.modified(path)
    }
    fn uri(&self, path: &str) -> String {
        self.inner.uri(path)
    }
    fn sync_names(&self, folder: &str) -> io::Result<()> {
        self.inner.sync_names(folder)
    }
}

thread_local! {
    /// Seconds of this test's clock.
    static NOW: Cell<u64> = const { Cell::new(1 << 30) };
}

fn clock() -> Duration {
    Duration::from_secs(NOW.get())
}

fn on_small_disk() -> (Store, Arc<Room>) {
    let disk = SmallDisk {
        inner: MemoryDisk::with_clock(clock),
        room: Arc::default(),
    };
    let room = Arc::clone(&disk.room);
    let disk: Arc<dyn StorageDisk> = Arc::new(disk);
    let schemas = [Schema::builtin("free").unwrap()];
    StoreRoot::create(&*disk, &schemas, Commits::Appended, &StoreLayout::default()).unwrap();
    (Store::open_on(disk, clock).unwrap(), room)
}

fn archive(writer: &mut StoreWriter, space: &str, bytes: usize) -> junctura_model::Result<()> {
    writer.archive([("space", space), ("name", "a")], &vec![1; bytes])
}

#[test]
fn what_a_full_disk_refused_leaves_nothing_and_room_can_be_made() {
    let (store, room) = on_small_disk();
    let mut writer = store.writer().unwrap();
    archive(&mut writer, "one", 1 << 20).unwrap();
    writer.flush().unwrap();
    let used = room.used();
    room.bytes_max.store(used + (700 << 10), Ordering::Relaxed);
    // In a file that has objects, and in a new one.
    for space in ["one", "two"] {
        assert_eq!(archive(&mut writer, space, 1 << 20).unwrap_err().code(), Code::Io);
        assert_eq!(room.used(), used);
    }
    // Objects that were accepted before can still be flushed; unflushed objects leave no files in any location.
    for space in ["one", "two", "three"] {
        let mut other = store.writer().unwrap();
        archive(&mut other, space, 300 << 10).unwrap();
        archive(&mut other, "one", 300 << 10).unwrap();
        assert!(room.used() > used);
        archive(&mut other, "more", 300 << 10).unwrap_err();
        drop(other);
        assert_eq!(room.used(), used);
    }
    archive(&mut writer, "one", 300 << 10).unwrap();
    archive(&mut writer, "two", 1 << 20).unwrap_err();
    assert_eq!(writer.flush().unwrap().objects, 1);
    let listing = store.snapshot().unwrap().list_all("").unwrap();
    assert!(
        listing
            .iter()
            .all(|object| object.read().unwrap().iter().all(|&byte| byte == 1))
    );
    drop(listing);

    store.wipe("").unwrap();
    NOW.set(NOW.get() + 10 * 86_400);
    room.bytes_max.store(room.used(), Ordering::Relaxed);
    assert_eq!(store.checkpoint().unwrap_err().code(), Code::Io);
    store.compact().unwrap();
    assert!(room.used() < 100 << 10, "{}", room.used());
}

#[test]
fn objects_of_many_datasets_take_few_descriptors() {
    for (datasets, bytes) in [(1000, 100), (300, 256 << 10)] {
        let (store, room) = on_small_disk();
        let mut writer = store.writer().unwrap();
        writer.set_upkeep(false);
        for _ in 0..2 {
            for number in 0..datasets {
                archive(&mut writer, &number.to_string(), bytes).unwrap();
            }
        }
        assert_eq!(writer.flush().unwrap().objects, 2 * datasets);
        assert!(room.open_max.load(Ordering::Relaxed) < 270, "{:?}", room.open_max);
        let listing = store.snapshot().unwrap().list_all("").unwrap();
        assert_eq!(listing.len() as u64, 2 * datasets);
        for object in listing.iter().step_by(17) {
            assert_eq!(object.read().unwrap(), vec![1; bytes]);
        }
    }
}

/// Reaches a limit and exceeds it: the smallest number that is refused, and what the store does afterwards.
fn reach(limit: u64, mut call: impl FnMut(u64) -> junctura_model::Result<()>, expected: Code) {
    call(limit).unwrap();
    let refused = call(limit + 1).unwrap_err();
    assert_eq!(refused.code(), expected, "{refused}");
    call(limit).unwrap();
}

fn in_memory(name: &str, data: &str) -> junctura_model::Result<Store> {
    let layout = StoreLayout {
        data: Some(format!("memory:{data}")),
        ..StoreLayout::default()
    };
    Store::create_url(&format!("memory:{name}"), &[Schema::builtin("free").unwrap()], &layout)
}

#[test]
fn the_root_of_a_store_has_so_many_bytes() {
    let first = in_memory("root-0", "x").unwrap();
    let own_bytes = first.disk().len(root::NAME).unwrap() - 1;
    let mut count = 0;
    let create = |bytes: u64| {
        count += 1;
        let name = format!("root-{count}");
        let created = in_memory(
            &name,
            &format!("{count}{}", "x".repeat((bytes - own_bytes) as usize - 1)),
        );
        assert_eq!(created.is_ok(), Store::open_url(&format!("memory:{name}")).is_ok());
        let mut writer = created?.writer()?;
        archive(&mut writer, "a", 100 << 10)?;
        writer.flush().map(|_| ())
    };
    reach(root::BYTES_MAX, create, Code::LimitExceeded);
}

#[test]
fn the_text_of_a_tier_has_so_many_bytes_and_its_name_too() {
    let store = in_memory("tier-bytes", "tier-bytes-data").unwrap();
    store.add_tier("t0", "memory:x").unwrap();
    let own_bytes = store.disk().len("tiers/t0.json").unwrap() - 1;
    let mut count = 0;
    let add = |bytes: u64| {
        count += 1;
        let (name, text) = (format!("t{count}"), "x".repeat((bytes - own_bytes) as usize));
        let added = store.add_tier(&name, &format!("memory:{text}"));
        assert_eq!(
            store.tiers().unwrap().iter().any(|tier| tier.name == name),
            added.is_ok()
        );
        if added.is_err() {
            store.add_tier(&name, "memory:y").unwrap();
        }
        added
    };
    reach(ownership::BYTES_MAX, add, Code::LimitExceeded);

    let mut letters = ('a'..='z').cycle();
    let add = |bytes: u64| {
        let name = letters.next().unwrap().to_string().repeat(bytes as usize);
        store.add_tier(&name, "memory:z")
    };
    reach(tier::NAME_BYTES_MAX as u64, add, Code::InvalidArgument);
    for name in ["", "data", "A", "a/b", "..", "a.json", "ä"] {
        assert_eq!(
            store.add_tier(name, "memory:z").unwrap_err().code(),
            Code::InvalidArgument
        );
    }
    let mut writer = store.writer().unwrap();
    archive(&mut writer, "a", 100 << 10).unwrap();
    writer.flush().unwrap();
    for tier in store.tiers().unwrap() {
        assert_eq!(store.move_to("", &tier.name, |_, _| true).unwrap().objects, 1);
    }
    assert_eq!(store.compact().unwrap().checkpoint.rows, 1);
}

#[test]
fn schemas_have_so_many_bytes_and_change_so_often() {
    let schema = |number: usize, doc: usize| {
        let doc = "x".repeat(doc);
        let text = format!(
            "name: s{number}\ndoc: {doc}\nkey: {{dataset: [], collocation: [], element: [a]}}\nattributes:\n  a: {{type: string}}\n"
        );
        Schema::parse_yaml(&text).unwrap()
    };
    let mut store = store(&schema(0, 1));
    let refused = (1..).find_map(|number| match store.set_schema(&schema(number, 1_000_000)) {
        Ok(more) => {
            store = more;
            None
        }
        Err(refused) => Some((number, refused)),
    });
    let (number, refused) = refused.unwrap();
    assert_eq!((number, refused.code()), (5, Code::LimitExceeded), "{refused}");
    store = store.set_schema(&schema(number, 10_000)).unwrap();
    store.writer().unwrap().archive_in("s5", [("a", "b")], b"").unwrap();

    let disk = store.disk();
    let bytes = disk.read("schemas/00000005.json", u64::MAX).unwrap();
    let beside = "schemas/.last".to_owned();
    publish_new(disk, &FileDraft { beside, bytes }, "schemas/99999998.json").unwrap();
    store = store.set_schema(&schema(6, 1)).unwrap();
    let refused = store.set_schema(&schema(7, 1)).unwrap_err();
    assert_eq!(refused.code(), Code::LimitExceeded, "{refused}");
    let mut writer = store.writer().unwrap();
    writer.archive_in("s6", [("a", "b")], b"").unwrap();
    writer.flush().unwrap();
    assert_eq!(store.apart().snapshot().unwrap().list("").unwrap().len(), 1);
}

#[test]
fn a_record_of_the_log_has_so_many_bytes() {
    let store = store(&Schema::builtin("free").unwrap());
    let append = |bytes: u64| {
        let mut record = CommitLog::begin();
        record.resize(record.len() + bytes as usize, 0);
        frame::close(&mut record, 0, 9, 0)?;
        assert!(
            matches!(frame::read(&record, 0), frame::FrameState::Whole(whole) if whole.payload.len() as u64 == bytes)
        );
        Ok(())
    };
    reach(frame::PAYLOAD_BYTES_MAX as u64, append, Code::TooLarge);
    let too_long = vec![0; frame::FRAME_BYTES + frame::PAYLOAD_BYTES_MAX + 1];
    assert_eq!(store.append(9, too_long, None).unwrap_err().code(), Code::TooLarge);
    let mut writer = store.writer().unwrap();
    archive(&mut writer, "a", 1).unwrap();
    assert_eq!(writer.flush().unwrap().commit, 1);
}

#[test]
fn a_data_file_has_so_many_bytes_and_another_one_goes_on() {
    let (store, _) = on_small_disk();
    let mut writer = store.writer().unwrap();
    writer.set_upkeep(false);
    let objects = (2 * FILE_BYTES_MAX) >> 20;
    for number in 0..=objects {
        let payload = vec![number as u8; 1 << 20];
        writer.archive([("name", &*number.to_string())], &payload).unwrap();
        if number % 5 == 4 {
            writer.flush().unwrap();
        }
    }
    writer.flush().unwrap();
    let listing = store.apart().snapshot().unwrap().list("").unwrap();
    let mut files: Vec<_> = listing.iter().map(|object| object.location().file).collect();
    files.sort();
    files.dedup();
    assert_eq!((listing.len() as u64, files.len()), (objects + 1, 2));
    for object in &listing {
        let number: usize = object.record().as_ref().iter().last().unwrap().2.parse().unwrap();
        assert!(object.read().unwrap().iter().all(|&byte| byte == number as u8));
        assert!(object.location().offset < FILE_BYTES_MAX + (5 << 20));
    }
}

#[test]
fn a_request_names_so_many_combinations() {
    let text = "name: runs\nkey: {dataset: [run], collocation: [], element: [step]}\nattributes:\n  run: {type: integer}\n  step: {type: integer}\n";
    let store = store(&Schema::parse_yaml(text).unwrap());
    let mut writer = store.writer().unwrap();
    writer.archive([("run", "1"), ("step", "1")], b"").unwrap();
    writer.flush().unwrap();
    let snapshot = store.snapshot().unwrap();
    let request = |selector: &str, count: u64| {
        // Data that are not requested as a whole have no limit.
        assert_eq!(snapshot.list(selector)?.len(), 1);
        let found = snapshot.retrieve_partial(selector)?;
        assert_eq!((found.listing.len(), found.missing.len() as u64), (1, count - 1));
        Ok(())
    };
    let of_one = |count: u64| request(&format!("step=1/to/{count}"), count);
    reach(EXPECTED_MAX as u64, of_one, Code::LimitExceeded);
    let of_two = |half: u64| request(&format!("run=1/to/2,step=1/to/{half}"), 2 * half);
    reach(EXPECTED_MAX as u64 / 2, of_two, Code::LimitExceeded);
}

#[test]
fn a_check_names_so_many_damaged_objects_and_counts_all() {
    let (store, room) = on_small_disk();
    let mut writer = store.writer().unwrap();
    let count = DAMAGES_MAX + 1;
    for number in 0..count {
        writer.archive([("name", &*format!("{number:04}"))], &[1; 100]).unwrap();
    }
    writer.flush().unwrap();
    let (name, file) = room
        .files
        .lock()
        .unwrap()
        .iter()
        .find(|(name, _)| name.starts_with("data/"))
        .map(|(name, file)| (name.clone(), Arc::clone(file)))
        .unwrap();
    let check = || store.snapshot().unwrap().check("", None, |_, _| true).unwrap();
    for damaged in [1, DAMAGES_MAX, count] {
        write_all(&*file, &vec![2; damaged * 100], 0).unwrap();
        let checked = check();
        assert_eq!(
            (checked.damaged_count, checked.damaged.len()),
            (damaged as u64, damaged.min(DAMAGES_MAX)),
            "{name}"
        );
    }
    store.wipe("").unwrap();
    assert_eq!(check().damaged_count, 0);
}

#[cfg(feature = "parquet")]
#[test]
fn a_table_has_so_many_values_that_objects_do_not_have() {
    let store = store(&Schema::builtin("free").unwrap());
    let mut writer = store.writer().unwrap();
    let side = crate::query::columns::OPEN_VALUES_MAX.isqrt();
    for row in 0..=side {
        let (name, own) = (format!("{row:04}"), format!("n{:04}", row.min(side - 1)));
        writer.archive([("name", &*name), (&*own, "x")], b"").unwrap();
    }
    writer.flush().unwrap();
    let snapshot = store.snapshot().unwrap();
    let table = |rows: u64| {
        let selector = if rows > side {
            String::new()
        } else {
            format!("not name={side:04}")
        };
        let batch = snapshot.list(&selector)?.to_arrow()?;
        assert_eq!(batch.num_rows() as u64, rows);
        Ok(())
    };
    reach(side, table, Code::LimitExceeded);
}
