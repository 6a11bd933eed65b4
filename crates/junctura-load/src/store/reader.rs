//! Lists what is in a store, reads a lane's objects, and finds out whether they are what was written.

use std::sync::Arc;
use std::time::Duration;

use hashbrown::HashMap;
use junctura::{Code, Result};
use junctura_store::{Listing, ReadBuffer, StoredObject};
use junctura_terminal::say;

use super::objects::{RowObjects, SCHEMA};
use super::{LaneFigures, LaneStart, LoadLane, OpenedStore, StorePlan, StoreRole};
use crate::messages::sleep;
use crate::stamp::now_ns;

/// How long a reader that has found nothing new lets others work.
const PAUSE: Duration = Duration::from_millis(5);

pub(super) struct ReadingLane {
    role: StoreRole,
    objects: RowObjects,
    opened: Arc<OpenedStore>,
    /// By its key, what is known of each object that it is to read.
    wanted: HashMap<String, WantedObjects>,
    /// The version that each has in the end.
    last: u64,
    figures: LaneFigures,
    buffer: ReadBuffer,
}

#[derive(Clone, Copy, Debug)]
struct WantedObjects {
    n: u64,
    /// The version that was read last.
    seen: Option<u64>,
}

impl ReadingLane {
    pub(super) fn new(plan: &StorePlan, lane: u64, opened: &Arc<OpenedStore>) -> Result<Self> {
        let mars = junctura::Schema::builtin(SCHEMA).unwrap_or_else(|| unreachable!("it is built in"));
        let share = if plan.role == StoreRole::ReaderBack {
            plan.read_back
        } else {
            1.0
        };
        let keys = plan.objects.keys(lane, &mars)?.into_iter();
        let lanes = plan.objects.lanes;
        let wanted = keys.filter(|(_, n)| is_of_share(n / lanes, share));
        let reader = Self {
            role: plan.role,
            objects: plan.objects.clone(),
            opened: Arc::clone(opened),
            wanted: wanted.map(|(key, n)| (key, WantedObjects { n, seen: None })).collect(),
            last: plan.versions.end.saturating_sub(1),
            figures: LaneFigures::default(),
            buffer: ReadBuffer::new(),
        };
        if plan.role.follows() {
            opened.get()?;
        }
        Ok(reader)
    }

    fn list(&mut self) -> Result<(Listing, Vec<(usize, String)>)> {
        let began = now_ns();
        let listing = self.opened.get()?.snapshot()?.list(&self.objects.selector())?;
        let (mut place, mut found) = (0, Vec::new());
        let reads_once = self.role != StoreRole::ReaderAgain;
        listing.for_each_key(|key, _| {
            let wanted = self.wanted.get(key);
            if wanted.is_some_and(|wanted| !(reads_once && wanted.seen.is_some())) {
                found.push((place, key.to_owned()));
            }
            place += 1;
        });
        self.figures.listed += place as u64;
        self.figures.list_ns += now_ns() - began;
        Ok((listing, found))
    }

    /// Reads all existing objects of its share; returns their number.
    fn pass(&mut self, start: &LaneStart) -> Result<usize> {
        let (listing, found) = self.list()?;
        let began = now_ns();
        let mut found: Vec<(StoredObject<'_>, String)> = found
            .into_iter()
            .filter_map(|(place, key)| Some((listing.get(place)?, key)))
            .collect();
        found.sort_by_cached_key(|(object, _)| {
            let place = object.location();
            (place.file, place.offset)
        });
        for (object, key) in &found {
            self.read(object, key)?;
            start.did_one()?;
        }
        self.figures.read += found.len() as u64;
        self.figures.read_ns += now_ns() - began;
        Ok(found.len())
    }

    fn read(&mut self, object: &StoredObject<'_>, key: &str) -> Result<()> {
        let Some(wanted) = self.wanted.get_mut(key) else {
            return Ok(());
        };
        let version = match object.read_into(&mut self.buffer) {
            Ok(()) => self.objects.version(wanted.n, &self.buffer),
            Err(error) if error.code() == Code::Corrupt => None,
            Err(error) => return Err(error),
        };
        // An older version than before, or one that was never written, is as bad as a damaged one.
        let sound = version.filter(|&version| version <= self.last && Some(version) >= wanted.seen);
        if sound.is_none() {
            say!("junctura: damaged: {key} at {}", object.location());
            self.figures.damaged += 1;
        }
        wanted.seen = sound.or(Some(self.last));
        Ok(())
    }

    /// Those that are not there, or not in their last version.
    fn lost(&self) -> u64 {
        let is_lost = |wanted: &&WantedObjects| wanted.seen != Some(self.last);
        self.wanted.values().filter(is_lost).count() as u64
    }

    /// Until the writers are done, and once more for what they did last.
    fn follow(&mut self, start: &LaneStart) -> Result<()> {
        loop {
            let (is_over, before) = (start.orders.is_over(), self.figures);
            let read = self.pass(start)?;
            if self.role == StoreRole::ReaderBack && read > 0 {
                self.figures.read_ns = start.elapsed_ns();
            }
            if is_over {
                // No writer is left: this pass is no measurement of reading beside writers.
                if self.role == StoreRole::ReaderAgain && before.read > 0 {
                    self.figures = LaneFigures {
                        damaged: self.figures.damaged,
                        ..before
                    };
                }
                return Ok(());
            }
            if read == 0 {
                sleep(PAUSE);
            }
        }
    }
}

impl LoadLane for ReadingLane {
    fn run(&mut self, start: &LaneStart) -> Result<LaneFigures> {
        if self.role.follows() {
            self.follow(start)?;
        } else {
            self.pass(start)?;
        }
        self.figures.lost = self.lost();
        Ok(self.figures)
    }
}

/// Whether the n-th is one of such a share of all, evenly spread.
fn is_of_share(n: u64, share: f64) -> bool {
    let before = |n: u64| (n as f64 * share).round();
    before(n + 1) > before(n)
}

#[cfg(test)]
mod tests {
    use std::ops::Range;
    use std::path::Path;

    use junctura_store::{RetentionAges, Store};

    use super::*;
    use crate::load::LoadSpace;
    use crate::store::writer::WritingLane;

    const OBJECTS: u64 = 24;
    const BYTES: usize = 100 << 10;

    fn plan(role: StoreRole, folder: &Path, versions: Range<u64>) -> StorePlan {
        let space = LoadSpace {
            members: 2,
            steps: 3,
            levels: 2,
            params: 2,
        };
        let objects = RowObjects {
            space,
            count: OBJECTS,
            payload_bytes: BYTES,
            every: 5,
            lanes: 1,
            is_contended: true,
            row: 0,
            run: 7,
        };
        StorePlan {
            role,
            index: 0,
            threads: 1,
            url: folder.join("store").display().to_string(),
            folder: folder.to_owned(),
            objects,
            versions,
            read_back: 0.5,
        }
    }

    fn quiet() -> LaneStart {
        LaneStart {
            next_word_ns: u64::MAX.into(),
            ..LaneStart::default()
        }
    }

    fn create(folder: &Path) -> Store {
        let mars = junctura::Schema::builtin(SCHEMA).unwrap();
        Store::create(&folder.join("store"), &[mars], RetentionAges::default()).unwrap()
    }

    fn write(folder: &Path, versions: Range<u64>) {
        let plan = plan(StoreRole::Writer, folder, versions);
        let written = WritingLane::new(&plan, 0, &OpenedStore::new(&plan.url))
            .unwrap()
            .run(&quiet())
            .unwrap();
        assert_eq!(written.written % OBJECTS, 0);
    }

    fn read(role: StoreRole, folder: &Path, versions: Range<u64>) -> LaneFigures {
        let plan = plan(role, folder, versions);
        let mut reader = ReadingLane::new(&plan, 0, &Arc::new(OpenedStore::new(&plan.url))).unwrap();
        let start = quiet();
        start.orders.end();
        reader.run(&start).unwrap()
    }

    #[test]
    fn all_is_read_and_each_once() {
        let folder = tempfile::tempdir().unwrap();
        create(folder.path());
        write(folder.path(), 0..1);
        for (role, read_objects) in [
            (StoreRole::Reader, 24),
            (StoreRole::ReaderBack, 12),
            (StoreRole::ReaderAgain, 24),
        ] {
            let figures = read(role, folder.path(), 0..1);
            assert_eq!((figures.lost, figures.damaged), (0, 0));
            assert_eq!((figures.read, figures.listed), (read_objects, OBJECTS));
        }
    }

    #[test]
    fn what_is_not_there_is_lost() {
        let folder = tempfile::tempdir().unwrap();
        let store = create(folder.path());
        assert_eq!(read(StoreRole::Reader, folder.path(), 0..1).lost, OBJECTS);
        write(folder.path(), 0..1);
        store
            .remove(&store.snapshot().unwrap().list("step=6").unwrap())
            .unwrap();
        assert_eq!(read(StoreRole::Reader, folder.path(), 0..1).lost, OBJECTS / 3);
    }

    #[test]
    fn an_older_version_than_the_last_is_as_good_as_lost() {
        let folder = tempfile::tempdir().unwrap();
        create(folder.path());
        write(folder.path(), 0..2);
        assert_eq!(read(StoreRole::ReaderAgain, folder.path(), 1..2).lost, 0);
        let figures = read(StoreRole::ReaderAgain, folder.path(), 1..3);
        assert_eq!((figures.lost, figures.damaged), (OBJECTS, 0));
    }

    #[test]
    fn bytes_that_changed_are_damaged() {
        let folder = tempfile::tempdir().unwrap();
        let store = create(folder.path());
        write(folder.path(), 0..1);
        let place = store.snapshot().unwrap().list("").unwrap().get(3).unwrap().location();
        let path = folder.path().join("store").join(&*place.file);
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[place.offset as usize + 1000] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        let figures = read(StoreRole::Reader, folder.path(), 0..1);
        assert_eq!((figures.lost, figures.damaged), (0, 1));
    }

    #[test]
    fn bytes_of_another_object_are_damaged() {
        let folder = tempfile::tempdir().unwrap();
        let store = create(folder.path());
        write(folder.path(), 0..1);
        let objects = plan(StoreRole::Writer, folder.path(), 0..1).objects;
        let (mut names, mut payload) = (objects.names(0), objects.payload(0));
        objects.stamp(4, 0, &mut payload);
        let mut writer = store.writer().unwrap();
        writer
            .archive_in(SCHEMA, objects.attributes(5, &mut names), &payload)
            .unwrap();
        writer.flush().unwrap();
        let figures = read(StoreRole::Reader, folder.path(), 0..1);
        assert_eq!((figures.lost, figures.damaged), (0, 1));
    }

    #[test]
    fn a_share_is_spread_evenly() {
        for (share, expected) in [(0.0, 0), (0.1, 100), (0.7, 700), (1.0, 1000)] {
            let of_share: Vec<u64> = (0..1000).filter(|&n| is_of_share(n, share)).collect();
            assert_eq!(of_share.len(), expected);
            let tenth = of_share.iter().filter(|&&n| n < 100).count();
            assert_eq!(tenth, expected / 10);
        }
    }
}
