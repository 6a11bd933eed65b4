//! The same stories in every place where a store can lie, and in every order of commits: what users are promised is the same.
//!
//! Of what was asked for it shows D: several back ends, the catalogue apart from the data, and masking of keys that are written again.

use std::sync::Arc;
use std::time::Duration;

use junctura_model::{Code, Error, Schema};
use junctura_store::{Commits, Compression, RetentionAges, Store, StoreLayout, StoreWriter, StoredObject};

/// A store of its own, and what keeps its place.
struct World {
    url: String,
    store: Store,
    _keeps: Box<dyn std::any::Any + Send + Sync>,
}

impl World {
    fn new(url: String, layout: &StoreLayout, keeps: impl std::any::Any + Send + Sync) -> Self {
        let store = Store::create_url(&url, &[mars()], layout).unwrap();
        Self {
            url,
            store,
            _keeps: Box::new(keeps),
        }
    }

    /// Somewhere else where objects can lie, and what keeps it.
    fn another_place(&self) -> (Box<dyn std::any::Any>, String) {
        #[cfg(feature = "s3")]
        if self.url.starts_with("s3:") {
            return (Box::new(()), url_in_bucket());
        }
        if self.url.starts_with("memory:") {
            let url = format!("memory:{}", unique());
            return (
                Box::new(Store::create_url(&url, &[mars()], &StoreLayout::default()).unwrap()),
                url,
            );
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().display().to_string();
        (Box::new(folder), path)
    }

    /// Another store in such a place, which keeps things for a moment only.
    fn short_lived(&self) -> Self {
        let age = Duration::from_millis(500);
        let layout = StoreLayout {
            ages: RetentionAges {
                snapshot_max: age,
                unflushed_max: age,
            },
            commits: Some(self.store.commits()),
            ..StoreLayout::default()
        };
        #[cfg(feature = "s3")]
        if self.url.starts_with("s3:") {
            return Self::new(url_in_bucket(), &layout, ());
        }
        if self.url.starts_with("memory:") {
            return Self::new(format!("memory:{}", unique()), &layout, ());
        }
        in_folder(&layout)
    }

    /// As another process would see it.
    fn open(&self) -> Store {
        Store::open_url(&self.url).unwrap()
    }
}

fn exclusive() -> StoreLayout {
    StoreLayout {
        commits: Some(Commits::Exclusive),
        ..StoreLayout::default()
    }
}

/// A number that no other test has.
fn unique() -> u32 {
    static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
}

fn in_folder(layout: &StoreLayout) -> World {
    let folder = tempfile::tempdir().unwrap();
    World::new(format!("file://{}/store", folder.path().display()), layout, folder)
}

fn local() -> World {
    in_folder(&StoreLayout::default())
}

fn shared() -> World {
    in_folder(&exclusive())
}

fn memory() -> World {
    World::new(format!("memory:{}", unique()), &StoreLayout::default(), ())
}

fn memory_exclusive() -> World {
    World::new(format!("memory:{}", unique()), &exclusive(), ())
}

/// Whatever can be packed is.
fn packed() -> World {
    let layout = StoreLayout {
        compression: vec![Compression::Zstd { level: 1 }.into()],
        ..exclusive()
    };
    in_folder(&layout)
}

/// The catalogue in a folder, the data elsewhere.
fn split() -> World {
    let data = tempfile::tempdir().unwrap();
    let layout = StoreLayout {
        data: Some(data.path().display().to_string()),
        ..StoreLayout::default()
    };
    let folder = tempfile::tempdir().unwrap();
    let url = folder.path().join("store").display().to_string();
    World::new(url, &layout, (folder, data))
}

/// A slow folder with a cache in front of it; so small that something has to go now and then.
fn cached() -> World {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().display();
    World::new(
        format!("file://{at}/store?cache={at}/cache&cache_size=2MiB"),
        &StoreLayout::default(),
        folder,
    )
}

/// The same, the data elsewhere.
fn cached_split() -> World {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().display();
    let layout = StoreLayout {
        data: Some(format!("file://{at}/data")),
        ..StoreLayout::default()
    };
    World::new(format!("file://{at}/store?cache={at}/cache"), &layout, folder)
}

/// A prefix of its own in the object store that the runner of these tests has started.
#[cfg(feature = "s3")]
fn url_in_bucket() -> String {
    let url = std::env::var("JUNCTURA_TEST_S3").expect("JUNCTURA_TEST_S3");
    url.replace("{}", &format!("store-{}-{}", std::process::id(), unique()))
}

#[cfg(feature = "s3")]
fn s3() -> World {
    World::new(url_in_bucket(), &StoreLayout::default(), ())
}

/// The catalogue in a folder, the data in an object store.
#[cfg(feature = "s3")]
fn s3_split() -> World {
    let layout = StoreLayout {
        data: Some(url_in_bucket()),
        ..StoreLayout::default()
    };
    let folder = tempfile::tempdir().unwrap();
    let url = folder.path().join("store").display().to_string();
    World::new(url, &layout, folder)
}

macro_rules! suite {
    ($($place:ident $(#[$how:meta])?),*) => { $(suite! { $place $(#[$how])?:
        nothing_is_visible_before_it_is_flushed,
        payloads_of_all_sizes_come_back,
        the_last_commit_masks_those_before_it_whoever_made_it,
        a_snapshot_stays_as_it_is,
        axes_are_in_the_order_of_their_values,
        a_checkpoint_says_the_same_as_all_commits,
        compaction_leaves_what_somebody_may_need,
        threads_that_flush_together_lose_nothing,
        objects_are_read_in_the_order_of_the_disk,
        openings_that_race_give_each_commit_its_number,
        a_store_is_made_once,
        what_is_moved_to_another_place_reads_as_before,
        a_schema_gains_an_attribute_and_nothing_is_moved,
        one_that_was_away_reads_on,
        old_commits_go_and_whoever_was_away_goes_on
    })* };
    ($place:ident: $($story:ident),*) => {
        mod $place {
            $(#[test]
            fn $story() {
                super::stories::$story(&super::$place());
            })*
        }
    };
    ($place:ident #[$how:meta]: $($story:ident),*) => {
        mod $place {
            $(#[test]
            #[$how]
            fn $story() {
                super::stories::$story(&super::$place());
            })*
        }
    };
}

suite!(
    local,
    shared,
    packed,
    memory,
    memory_exclusive,
    split,
    cached,
    cached_split
);
#[cfg(feature = "s3")]
suite!(s3 #[ignore = "needs a server: tests/run.py store-s3"], s3_split #[ignore = "needs a server: tests/run.py store-s3"]);

fn mars() -> Arc<Schema> {
    Schema::builtin("mars").unwrap()
}

/// What a field of some step and parameter is called.
fn field<'a>(step: &'a str, param: &'a str) -> [(&'a str, &'a str); 9] {
    [
        ("class", "od"),
        ("expver", "0001"),
        ("stream", "oper"),
        ("date", "20261120"),
        ("time", "0000"),
        ("type", "fc"),
        ("levtype", "sfc"),
        ("step", step),
        ("param", param),
    ]
}

fn archive(writer: &mut StoreWriter, step: u32, param: &str, payload: &[u8]) {
    writer.archive(field(&step.to_string(), param), payload).unwrap();
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

/// What is done again while it takes too long.
fn in_time<T>(mut ask: impl FnMut() -> Result<T, Error>) -> T {
    loop {
        match ask() {
            Ok(done) => return done,
            Err(error) => assert_eq!(error.code(), Code::Expired, "{error}"),
        }
    }
}

fn only(store: &Store, selector: &str) -> Result<Vec<u8>, Error> {
    let listing = store.snapshot()?.retrieve(selector)?;
    assert_eq!(listing.len(), 1);
    listing.iter().next().unwrap().read()
}

mod stories {
    use super::*;

    pub(super) fn nothing_is_visible_before_it_is_flushed(world: &World) {
        let mut writer = world.store.writer().unwrap();
        archive(&mut writer, 6, "2t", b"field");
        archive(&mut writer, 6, "msl", &payload(1, 300_000));
        assert_eq!(writer.pending(), 2);
        assert!(keys(&world.store, "").is_empty());
        let flushed = writer.flush().unwrap();
        assert_eq!((flushed.commit, flushed.objects, writer.pending()), (1, 2, 0));
        assert_eq!(keys(&world.store, ""), ["step=6,param=2t", "step=6,param=msl"]);
        assert_eq!(writer.flush().unwrap().objects, 0);
    }

    pub(super) fn payloads_of_all_sizes_come_back(world: &World) {
        let mut writer = world.store.writer().unwrap();
        let sizes = [0, 1, 1000, 65_536, 65_537, 262_143, 262_144, 1 << 20, 3_000_000];
        for _ in 0..2 {
            for (step, size) in (0..).zip(sizes) {
                archive(&mut writer, step, "2t", &payload(step, size));
                if size % 2 == 0 {
                    writer.flush().unwrap();
                }
            }
            writer.flush().unwrap();
        }
        let other = world.open();
        for store in [&world.store, &other] {
            for (step, size) in (0..).zip(sizes) {
                assert!(only(store, &format!("step={step}")).unwrap() == payload(step, size));
            }
        }
        let snapshot = other.snapshot().unwrap();
        assert_eq!(snapshot.list_all("").unwrap().len(), 2 * sizes.len());
        let checked = snapshot.check("", None, |_, _| true).unwrap();
        assert_eq!((checked.objects, checked.damaged_count), (2 * sizes.len() as u64, 0));
        assert!(checked.unnamed.is_empty());
    }

    pub(super) fn the_last_commit_masks_those_before_it_whoever_made_it(world: &World) {
        let (mut one, mut other) = (world.store.writer().unwrap(), world.store.writer().unwrap());
        archive(&mut one, 6, "2t", b"archived first, flushed last");
        archive(&mut other, 6, "2t", b"archived last, flushed first");
        other.flush().unwrap();
        one.flush().unwrap();
        assert_eq!(only(&world.store, "step=6").unwrap(), b"archived first, flushed last");
        // Within one flush, the later one.
        archive(&mut one, 6, "2t", b"a");
        archive(&mut one, 6, "2t", b"b");
        one.flush().unwrap();
        assert_eq!(only(&world.store, "step=6").unwrap(), b"b");
        let all = world.store.snapshot().unwrap().list_all("step=6").unwrap();
        assert_eq!(
            all.iter().map(|object| object.commit()).collect::<Vec<_>>(),
            [1, 2, 3, 3]
        );
    }

    pub(super) fn a_snapshot_stays_as_it_is(world: &World) {
        let mut writer = world.store.writer().unwrap();
        archive(&mut writer, 6, "2t", b"before");
        writer.flush().unwrap();
        let snapshot = world.store.snapshot().unwrap();
        archive(&mut writer, 6, "2t", b"after");
        archive(&mut writer, 12, "2t", b"after");
        writer.flush().unwrap();
        let listing = snapshot.list("").unwrap();
        assert_eq!(listing.len(), 1);
        assert_eq!(listing.iter().next().unwrap().read().unwrap(), b"before");
        assert_eq!(world.store.snapshot().unwrap().list("").unwrap().len(), 2);
    }

    pub(super) fn axes_are_in_the_order_of_their_values(world: &World) {
        let mut writer = world.store.writer().unwrap();
        for step in [102, 12, 6] {
            archive(&mut writer, step, "2t", b"");
            archive(&mut writer, step, "msl", b"");
        }
        writer.flush().unwrap();
        let axes = world.store.snapshot().unwrap().axes("param=2t").unwrap();
        let values = |name: &str| {
            axes.iter()
                .find(|axis| axis.name == name)
                .map(|axis| axis.values.clone())
        };
        assert_eq!(values("step").unwrap(), ["6", "12", "102"]);
        assert_eq!(values("param").unwrap(), ["2t"]);
        assert_eq!(values("number"), None);
    }

    pub(super) fn a_checkpoint_says_the_same_as_all_commits(world: &World) {
        let mut writer = world.store.writer().unwrap();
        for round in 0..5_u32 {
            for step in 0..40 {
                archive(&mut writer, step, "2t", &payload(round, 10 * step as usize));
                writer.flush().unwrap();
            }
            let done = world.store.checkpoint().unwrap();
            let all = world.store.snapshot().unwrap().list_all("").unwrap().len();
            assert_eq!((done.commit, done.rows), (u64::from(round + 1) * 40, all as u64));
            assert!(done.segments <= 5, "{done:?}");
            archive(&mut writer, 99, "2t", &payload(round, 7));
            let other = world.open();
            let (snapshot, expected) = (other.snapshot().unwrap(), world.store.snapshot().unwrap());
            let all = |listing: &junctura_store::Listing| {
                let one = |object: StoredObject<'_>| {
                    (object.key(), object.commit(), object.location(), object.read().unwrap())
                };
                listing.iter().map(one).collect::<Vec<_>>()
            };
            assert_eq!(
                all(&snapshot.list_all("").unwrap()),
                all(&expected.list_all("").unwrap())
            );
            assert_eq!(
                all(&snapshot.list("step<10").unwrap()),
                all(&expected.list("step<10").unwrap())
            );
        }
        // What is visible behind the checkpoint is found, too.
        writer.flush().unwrap();
        let other = world.open();
        assert_eq!(only(&other, "step=99").unwrap(), payload(4, 7));
        assert_eq!(other.checkpoint().unwrap().rows, 205);
        assert_eq!(other.checkpoint().unwrap().written_rows, 0, "there was nothing new");
    }

    pub(super) fn compaction_leaves_what_somebody_may_need(world: &World) {
        let mut writer = world.store.writer().unwrap();
        let mut dead = world.store.writer().unwrap();
        archive(&mut dead, 0, "2t", &payload(0, 300_000));
        for step in 0..3 {
            archive(&mut writer, step, "2t", b"field");
            writer.flush().unwrap();
            assert!(world.store.compact().unwrap().removed.is_empty());
        }
        dead.flush().unwrap();
        assert_eq!(keys(&world.store, "").len(), 3);
    }

    pub(super) fn threads_that_flush_together_lose_nothing(world: &World) {
        const WRITERS: u32 = 8;
        const FLUSHES: u32 = 50;
        std::thread::scope(|scope| {
            for number in 0..WRITERS {
                let store = world.store.clone();
                scope.spawn(move || {
                    let mut writer = store.writer().unwrap();
                    let mut last = 0;
                    for step in 0..FLUSHES {
                        archive(
                            &mut writer,
                            step,
                            &format!("p{number}"),
                            &payload(step, 100 * number as usize),
                        );
                        let flushed = writer.flush().unwrap();
                        assert!(flushed.commit > last);
                        last = flushed.commit;
                        let selector = format!("step={step},param=p{number}");
                        assert!(only(&store, &selector).unwrap() == payload(step, 100 * number as usize));
                    }
                });
            }
        });
        let snapshot = world.store.snapshot().unwrap();
        assert_eq!(snapshot.commit(), u64::from(WRITERS * FLUSHES));
        assert_eq!(snapshot.list("").unwrap().len(), (WRITERS * FLUSHES) as usize);
    }

    pub(super) fn objects_are_read_in_the_order_of_the_disk(world: &World) {
        let mut writer = world.store.writer().unwrap();
        for step in 0..20 {
            archive(&mut writer, step % 7, "2t", &payload(step, 70_000));
            writer.flush().unwrap();
        }
        let listing = world.store.snapshot().unwrap().list_all("").unwrap();
        let places: Vec<(Arc<str>, u64)> = listing
            .by_location()
            .iter()
            .map(StoredObject::location)
            .map(|location| (location.file, location.offset))
            .collect();
        assert!(places.is_sorted());
        assert_eq!(listing.bytes(), 20 * 70_000);
    }

    /// As processes would: each with an opening of its own, so that none knows what the others take.
    pub(super) fn openings_that_race_give_each_commit_its_number(world: &World) {
        const WRITERS: u32 = 16;
        const FLUSHES: u32 = 20;
        let barrier = std::sync::Barrier::new(WRITERS as usize);
        let mut commits: Vec<u64> = std::thread::scope(|scope| {
            let race = |number: u32| {
                let barrier = &barrier;
                move || {
                    let mut writer = world.open().writer().unwrap();
                    let mut commits = Vec::new();
                    for step in 0..FLUSHES {
                        let length = if step % 10 == 3 { 200_000 } else { 50 };
                        archive(&mut writer, step, &format!("p{number}"), &payload(number, length));
                        barrier.wait();
                        commits.push(writer.flush().unwrap().commit);
                    }
                    assert!(commits.is_sorted());
                    commits
                }
            };
            let racing: Vec<_> = (0..WRITERS).map(|number| scope.spawn(race(number))).collect();
            racing.into_iter().flat_map(|writer| writer.join().unwrap()).collect()
        });
        commits.sort_unstable();
        let all = u64::from(WRITERS * FLUSHES);
        assert!(commits.into_iter().eq(1..=all));
        let snapshot = world.open().snapshot().unwrap();
        assert_eq!((snapshot.commit(), snapshot.list("").unwrap().len() as u64), (all, all));
        let checked = snapshot.check("", None, |_, _| true).unwrap();
        assert_eq!((checked.damaged_count, checked.unnamed.len()), (0, 0), "{checked:?}");
    }

    pub(super) fn a_schema_gains_an_attribute_and_nothing_is_moved(world: &World) {
        let mut writer = world.store.writer().unwrap();
        archive(&mut writer, 0, "2t", &payload(0, 100_000));
        writer.flush().unwrap();
        world.store.checkpoint().unwrap();
        let place = |store: &Store| {
            let listing = store.snapshot().unwrap().list("step=0").unwrap();
            let object = listing.get(0).unwrap();
            assert!(object.read().unwrap() == payload(0, 100_000));
            (object.location().file.clone(), object.commit())
        };
        let before = place(&world.store);
        let more = format!("{}  remark: {{type: string}}\n", mars().to_yaml());
        let changed = world.store.set_schema(&Schema::parse_yaml(&more).unwrap()).unwrap();
        let mut writer = changed.writer().unwrap();
        let given = field("6", "2t").into_iter().chain([("remark", "new")]);
        writer.archive(given, b"later").unwrap();
        writer.flush().unwrap();
        for store in [&changed, &world.open()] {
            assert_eq!(place(store), before);
            assert_eq!(keys(store, "remark=new"), ["step=6,param=2t"]);
        }
        assert_eq!(world.store.snapshot().unwrap_err().code(), Code::SchemaMismatch);
        world.open().checkpoint().unwrap();
        assert_eq!(place(&world.open()), before);
        assert_eq!(keys(&world.open(), "remark=new"), ["step=6,param=2t"]);
    }

    pub(super) fn what_is_moved_to_another_place_reads_as_before(world: &World) {
        let mut writer = world.store.writer().unwrap();
        for step in 0..30 {
            archive(&mut writer, step, "2t", &payload(step, 5000 * step as usize));
            if step % 10 == 9 {
                writer.flush().unwrap();
            }
        }
        let before = world.store.snapshot().unwrap().list("").unwrap();
        let all = |store: &Store| {
            let listing = store.snapshot().unwrap().list_all("").unwrap();
            let one = |object: StoredObject<'_>| (object.key(), object.commit(), object.read().unwrap());
            listing.iter().map(one).collect::<Vec<_>>()
        };
        let expected = all(&world.store);
        let (_keeps, tier) = world.another_place();
        world.store.add_tier("cold", &tier).unwrap();
        let moved = world.store.move_to("step>=15", "cold", |_, _| true).unwrap();
        assert_eq!((moved.objects, moved.damaged_count), (15, 0));
        for store in [world.store.clone(), world.open()] {
            assert_eq!(all(&store), expected);
            let stats = store.snapshot().unwrap().stats().unwrap();
            assert_eq!((&*stats.tiers[1].name, stats.tiers[1].used.count), ("cold", 15));
            let checked = store.snapshot().unwrap().check("", None, |_, _| true).unwrap();
            assert_eq!((checked.damaged_count, checked.unnamed.len()), (0, 0));
        }
        // Who found them before reads them where they were.
        let mut count = 0;
        before
            .for_each_payload(|object, payload| {
                assert!(!object.location().file.starts_with("tiers/"));
                assert!(expected[object.index()].2 == payload?);
                count += 1;
                Ok(())
            })
            .unwrap();
        assert_eq!((count, world.store.compact().unwrap().removed.len()), (30, 0));
        assert_eq!(world.open().move_to("", "data", |_, _| true).unwrap().objects, 15);
        assert_eq!(all(&world.open()), expected);
    }

    pub(super) fn a_store_is_made_once(world: &World) {
        let again = Store::create_url(&world.url, &[mars()], &StoreLayout::default()).unwrap_err();
        assert_eq!(again.code(), Code::AlreadyExists, "{again}");
        assert_eq!(world.open().commits(), world.store.commits());
        let other = Store::open_url(&format!("{}-not", world.url.split('?').next().unwrap()));
        assert!(other.is_err());
    }

    /// Many commits behind, with and without a checkpoint to begin with.
    pub(super) fn one_that_was_away_reads_on(world: &World) {
        let (away, mut writer) = (world.open(), world.store.writer().unwrap());
        assert!(keys(&away, "").is_empty());
        for step in 0..40 {
            archive(&mut writer, step, "2t", &payload(step, 10));
            writer.flush().unwrap();
            if step == 20 {
                world.store.checkpoint().unwrap();
            }
        }
        for store in [&away, &world.open()] {
            assert_eq!(keys(store, "").len(), 40);
            assert_eq!(store.snapshot().unwrap().commit(), 40);
        }
        // A writer that has read nothing finds the end, too.
        let mut late = world.open().writer().unwrap();
        archive(&mut late, 40, "2t", b"late");
        assert_eq!(late.flush().unwrap().commit, 41);
        assert_eq!(only(&away, "step=40").unwrap(), b"late");
    }

    /// Where each has an object: files of a log are too large for this.
    pub(super) fn old_commits_go_and_whoever_was_away_goes_on(world: &World) {
        if world.store.commits() == Commits::Appended {
            return;
        }
        let world = world.short_lived();
        let flush = |writer: &mut StoreWriter, step: u32| {
            in_time(|| {
                archive(writer, step, "2t", &payload(step, 100));
                writer.flush()
            })
            .commit
        };
        let steps = |store: &Store| in_time(|| Ok(store.snapshot()?.list("")?.len()));
        let (away, mut away_writer) = (world.open(), world.open().writer().unwrap());
        assert_eq!((flush(&mut away_writer, 0), steps(&away)), (1, 1));
        let mut writer = world.store.writer().unwrap();
        for step in 1..20 {
            flush(&mut writer, step);
        }
        in_time(|| world.store.gather(|_, _| true));
        loop {
            let removed = in_time(|| world.store.compact()).removed;
            if removed.iter().any(|file| file.starts_with("commits/")) {
                break;
            }
        }
        assert_eq!((steps(&away), steps(&world.open())), (20, 20));
        // Moves are commits, too.
        let last = in_time(|| world.open().snapshot()).commit();
        assert!(last > 20);
        assert_eq!(flush(&mut away_writer, 20), last + 1);
        assert_eq!(flush(&mut world.open().writer().unwrap(), 21), last + 2);
        for store in [&away, &world.store, &world.open()] {
            assert_eq!(steps(store), 22);
            for step in 0..22 {
                assert_eq!(in_time(|| only(store, &format!("step={step}"))), payload(step, 100));
            }
        }
    }
}

/// What was read once is read where it is quick, also what lies elsewhere, and while somebody writes on.
#[test]
fn what_was_read_of_a_slow_folder_is_read_from_its_cache() {
    for data in [None, Some("data")] {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().display();
        let layout = StoreLayout {
            data: data.map(|name| format!("{at}/{name}")),
            ..StoreLayout::default()
        };
        let url = format!("file://{at}/store?cache={at}/cache");
        let store = Store::create_url(&url, &[mars()], &layout).unwrap();
        let mut writer = store.writer().unwrap();
        let reader = Store::open_url(&url).unwrap();
        let lengths = [70_000, 400_000, 3_000_000];
        for step in 0..9 {
            archive(&mut writer, step, "2t", &payload(step, lengths[step as usize % 3]));
            writer.flush().unwrap();
            // Not flushed, and behind what is read: the block of it is not kept.
            archive(&mut writer, 100 + step, "2t", &payload(step, 300_000));
            for earlier in 0..=step {
                let found = only(&reader, &format!("step={earlier}")).unwrap();
                assert_eq!(
                    found,
                    payload(earlier, lengths[earlier as usize % 3]),
                    "{step} {earlier}"
                );
            }
        }
        writer.flush().unwrap();
        drop(writer);
        let slow = folder.path().join(data.map_or("store/data", |_| "data/data"));
        std::fs::rename(&slow, folder.path().join("away")).unwrap();
        let anew = Store::open_url(&url).unwrap();
        for step in 0..9 {
            let selector = format!("step={step}");
            let listing = anew.snapshot().unwrap().list(&selector).unwrap();
            let object = listing.get(0).unwrap();
            let expected = payload(step, lengths[step as usize % 3]);
            assert_eq!(*object.map().unwrap(), expected[..]);
            assert!(!object.map().unwrap().is_mapped());
        }
        assert_eq!(
            only(&anew, "step=108").unwrap_err().code(),
            Code::Corrupt,
            "nobody has read it"
        );
    }
}
