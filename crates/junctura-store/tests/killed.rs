//! Writers, and those who tidy up, that are killed at any moment, as real processes, in a folder and in an object store: what writers said
//! was flushed is there, and nothing is there in part.
//!
//! When each of them is killed a seed says: so long after it has begun its work, in the middle of whatever it does then.

use crate::processes;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use junctura_model::selector::testing::TestRandom;
use junctura_model::{Code, Given, Result, Schema};
use junctura_store::{Commits, Listing, RetentionAges, Store, StoreLayout, StoredObject};
use tempfile::TempDir;

const OBJECTS: u32 = 3;
/// Of which all runs of tests are; `soak_` has others.
const SEEDS: [u64; 4] = [1, 2, 3, 4];
const SOAK_SEEDS: u64 = 100;

fn payload(writer: &str, flush: u32, object: u32) -> Vec<u8> {
    let word = format!("{writer} {flush} {object} ");
    // Within commits, and in files.
    let length = if flush.is_multiple_of(3) { 40_000 * object } else { 100 };
    word.bytes().cycle().take(length as usize).collect()
}

/// What a started process does: it flushes on and on, and says so each time. Each flush has objects of its own, and one that masks that
/// of the flush before.
#[test]
#[ignore = "is started by the tests below"]
fn write_until_killed() {
    let Some((url, name)) = processes::told() else { return };
    let store = Store::open_url(&url).unwrap();
    let mut writer = store.writer().unwrap();
    let mut out = std::io::stdout().lock();
    for flush in 0.. {
        for object in 0..=OBJECTS {
            let is_head = object == OBJECTS;
            let (kind, step, number) = if is_head { ("cf", 0, 0) } else { ("pf", flush, object) };
            let (step, number) = (step.to_string(), number.to_string());
            let attributes = [
                ("class", "od"),
                ("expver", &name),
                ("stream", "enfo"),
                ("date", "20261120"),
                ("time", "0000"),
                ("type", kind),
                ("levtype", "sfc"),
                ("step", &step),
                ("number", &number),
                ("param", "2t"),
            ];
            let given = attributes.map(|(name, value)| (name, Given::Text(value)));
            writer.archive(given, &payload(&name, flush, object)).unwrap();
        }
        writer.flush().unwrap();
        writeln!(out, "flushed {flush}").unwrap();
    }
}

/// What a started process does: it moves, gathers, purges, writes checkpoints and compacts, on and on, and says so before it begins.
#[test]
#[ignore = "is started by the tests below"]
fn tidy_until_killed() {
    let Some((url, first)) = processes::told() else { return };
    let store = Store::open_url(&url).unwrap();
    let mut out = std::io::stdout().lock();
    for number in first.parse::<u32>().unwrap().. {
        writeln!(out, "begun {number}").unwrap();
        let done = match number % 6 {
            0 => store.move_to("number=0", "cold", |_, _| true).map(drop),
            1 => store.checkpoint().map(drop),
            2 => store.purge("").map(drop),
            3 => store.move_to("number=0", "data", |_, _| true).map(drop),
            4 => store.gather(|_, _| true).map(drop),
            _ => store.compact().map(drop),
        };
        // Others were quicker, or what it looked at was too old meanwhile: it will be done another time.
        if let Err(error) = done {
            assert!(matches!(error.code(), Code::Expired | Code::Conflict), "{error}");
        }
    }
}

/// Another process, and what it says with this word.
fn start(test: impl Fn(), url: &str, name: &str, word: &'static str) -> (Child, impl Iterator<Item = String>) {
    let mut child = processes::itself(test, url, name)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let said = lines.map_while(std::result::Result::ok);
    (child, said.filter(move |line| line.starts_with(word)))
}

/// Kills a process so long after it has begun its work; says how often it has said its word.
fn killed_after(started: (Child, impl Iterator<Item = String>), after: Duration) -> u32 {
    let (mut child, mut said) = started;
    assert!(said.next().is_some(), "it has ended by itself");
    let began = Instant::now();
    while began.elapsed() < after {
        std::hint::spin_loop();
    }
    assert!(child.try_wait().unwrap().is_none(), "it has ended by itself");
    child.kill().unwrap();
    child.wait().unwrap();
    // What it said before it was killed is still in the pipe.
    1 + said.count() as u32
}

/// Where a store lies, and another place for its objects.
struct Place {
    url: String,
    cold: String,
    layout: StoreLayout,
    /// A process is killed sooner than this after it has begun its work.
    within: Duration,
    _keeps: Option<TempDir>,
}

impl Place {
    fn folder(commits: Commits) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| folder.path().join(name).display().to_string();
        Self {
            url: place("store"),
            cold: place("cold"),
            layout: StoreLayout {
                commits: Some(commits),
                ..StoreLayout::from(RetentionAges {
                    snapshot_max: Duration::from_secs(1),
                    ..RetentionAges::default()
                })
            },
            within: Duration::from_millis(150),
            _keeps: Some(folder),
        }
    }

    /// In the object store that the runner of these tests has started.
    #[cfg(feature = "s3")]
    fn bucket() -> Self {
        let url = std::env::var("JUNCTURA_TEST_S3").expect("JUNCTURA_TEST_S3");
        let place = || url.replace("{}", &format!("killed-{}-{}", std::process::id(), unique()));
        Self {
            url: place(),
            cold: place(),
            layout: StoreLayout::from(RetentionAges {
                // Time enough to read all of it.
                snapshot_max: Duration::from_secs(3),
                ..RetentionAges::default()
            }),
            within: Duration::from_millis(400),
            _keeps: None,
        }
    }

    fn create(&self) -> Store {
        let schemas = [Schema::builtin("mars").unwrap()];
        let store = Store::create_url(&self.url, &schemas, &self.layout).unwrap();
        store.add_tier("cold", &self.cold).unwrap();
        store
    }

    /// Any moment.
    fn moment(&self, random: &mut TestRandom) -> Duration {
        Duration::from_nanos(random.number() % self.within.as_nanos() as u64)
    }
}

/// A number that no other story has.
fn unique() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

#[test]
fn whatever_was_flushed_survives_a_kill() {
    for seed in SEEDS {
        survives(&Place::folder(Commits::Appended), seed);
    }
}

#[test]
fn whatever_was_flushed_survives_a_kill_where_each_has_an_object() {
    for seed in SEEDS {
        survives(&Place::folder(Commits::Exclusive), seed);
    }
}

#[test]
#[cfg(feature = "s3")]
#[ignore = "needs a server: tests/run.py store-s3"]
fn s3_whatever_was_flushed_survives_a_kill() {
    for seed in SEEDS {
        survives(&Place::bucket(), seed);
    }
}

#[test]
fn whatever_was_flushed_survives_a_kill_of_those_who_tidy_up() {
    for seed in SEEDS {
        tidied(&Place::folder(Commits::Appended), seed);
    }
}

#[test]
fn whatever_was_flushed_survives_a_kill_of_those_who_tidy_up_where_each_has_an_object() {
    for seed in SEEDS {
        tidied(&Place::folder(Commits::Exclusive), seed);
    }
}

#[test]
#[cfg(feature = "s3")]
#[ignore = "needs a server: tests/run.py store-s3"]
fn s3_whatever_was_flushed_survives_a_kill_of_those_who_tidy_up() {
    for seed in &SEEDS[..2] {
        tidied(&Place::bucket(), *seed);
    }
}

#[test]
#[ignore = "long: make soak"]
fn soak_kills_at_any_moment() {
    let first = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    for seed in first..first + SOAK_SEEDS {
        for commits in [Commits::Appended, Commits::Exclusive] {
            survives(&Place::folder(commits), seed);
            tidied(&Place::folder(commits), seed);
        }
    }
}

/// Three write until each of them is killed; so it goes on.
fn survives(place: &Place, seed: u64) {
    const ROUNDS: u32 = 2;
    const WRITERS: u32 = 3;
    let reader = place.create();
    let mut random = TestRandom(seed);
    for round in 0..ROUNDS {
        let said = together(
            place,
            (0..WRITERS).map(|number| (format!("w{round}{number}"), place.moment(&mut random))),
        );
        for store in [&reader, &Store::open_url(&place.url).unwrap()] {
            for said in &said {
                check(store, said, seed);
            }
        }
    }
    is_whole(&reader, seed);
}

/// Two write and two tidy up, until each of them is killed; so it goes on.
fn tidied(place: &Place, seed: u64) {
    const ROUNDS: u32 = 2;
    const LIVES: u32 = 3;
    let store = place.create();
    let mut random = TestRandom(seed);
    let mut said = Vec::new();
    for round in 0..ROUNDS {
        std::thread::scope(|scope| {
            for _ in 0..2 {
                // Each life begins with other work.
                let lives: Vec<_> = (0..LIVES)
                    .map(|_| (random.below(6).to_string(), place.moment(&mut random)))
                    .collect();
                scope.spawn(move || {
                    for (first, after) in lives {
                        killed_after(start(tidy_until_killed, &place.url, &first, "begun"), after);
                    }
                });
            }
            let writers = (0..2).map(|number| (format!("w{round}{number}"), place.moment(&mut random)));
            said.extend(together(place, writers));
        });
        for said in &said {
            check(&store, said, seed);
        }
    }
    for done in [store.purge("").map(drop), store.compact().map(drop)] {
        unless_expired(done);
    }
    is_whole(&store, seed);
    for said in &said {
        check(&store, said, seed);
    }
}

/// Writers that work side by side, each until it is killed; how many flushes each has said.
fn together(place: &Place, writers: impl Iterator<Item = (String, Duration)>) -> Vec<(String, u32)> {
    std::thread::scope(|scope| {
        let writers: Vec<_> = writers
            .map(|(name, after)| {
                scope.spawn(move || {
                    let said = killed_after(start(write_until_killed, &place.url, &name, "flushed"), after);
                    (name, said)
                })
            })
            .collect();
        writers.into_iter().map(|writer| writer.join().unwrap()).collect()
    })
}

/// The only error that anybody is told: what is read may have been found too long ago.
fn unless_expired<T>(done: Result<T>) -> Option<T> {
    done.map_err(|error| assert_eq!(error.code(), Code::Expired, "{error}"))
        .ok()
}

fn is_whole(store: &Store, seed: u64) {
    let check = || {
        unless_expired(
            store
                .snapshot()
                .and_then(|snapshot| snapshot.check("", None, |_, _| true)),
        )
    };
    let checked = std::iter::repeat_with(check).find_map(|checked| checked).unwrap();
    assert_eq!(checked.damaged_count, 0, "seed {seed}: {:?}", checked.damaged);
}

/// All flushes that were said, and at most one that was not; each whole.
fn check(store: &Store, said: &(String, u32), seed: u64) {
    while unless_expired(check_now(store, said, seed)).is_none() {}
}

fn check_now(store: &Store, (name, said): &(String, u32), seed: u64) -> Result<()> {
    let told = format!("seed {seed}, {name}");
    let snapshot = store.snapshot()?;
    let listing: Listing = snapshot.list(&format!("expver={name},type=pf"))?;
    let count = listing.len() as u32;
    assert!(count.is_multiple_of(OBJECTS), "{told}: a flush in part");
    let flushes = count / OBJECTS;
    assert!(
        flushes == *said || flushes == said + 1,
        "{told}: {said} were said, {flushes} are there"
    );
    listing.for_each_payload(|object, read| {
        assert!(
            read? == payload(name, number(&object, "step"), number(&object, "number")),
            "{told}"
        );
        Ok(())
    })?;
    let heads = snapshot.list(&format!("expver={name},type=cf"))?;
    assert_eq!(heads.len(), 1, "{told}");
    assert!(
        heads.get(0).unwrap().read()? == payload(name, flushes - 1, OBJECTS),
        "{told}: not the head of flush {}",
        flushes - 1
    );
    Ok(())
}

fn number(object: &StoredObject<'_>, name: &str) -> u32 {
    let id = object.schema().find(name).unwrap();
    object.value(id).unwrap().parse().unwrap()
}
