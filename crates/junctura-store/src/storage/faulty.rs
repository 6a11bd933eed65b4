//! A file system in memory that does what real ones do on bad days: it writes a part, runs full, fails at any call, and loses what
//! was not synced, torn and out of order.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use junctura_model::selector::testing::TestRandom;

use super::{FileDraft, StorageDisk, StorageFile};

/// The unit of data that is kept or lost.
const SECTOR_BYTES: usize = 512;

/// See the module.
#[derive(Debug)]
pub(crate) struct FaultyDisk(Arc<FaultyShared>);

#[derive(Debug)]
struct FaultyShared {
    state: Mutex<FaultyState>,
    unlocked: Condvar,
}

#[derive(Debug)]
struct FaultyFile {
    shared: Arc<FaultyShared>,
    inode: usize,
    opening: u64,
}

#[derive(Debug)]
struct FaultyState {
    names: BTreeMap<String, usize>,
    /// The names that would exist after a power failure.
    names_synced: BTreeMap<String, usize>,
    inodes: Vec<FaultyInode>,
    openings: u64,
    random: TestRandom,
    /// The number of calls until a fault occurs.
    fault_in: Option<u64>,
    fault: DiskFault,
    /// The machine has stopped: nothing works.
    is_down: bool,
}

#[derive(Clone, Debug, Default)]
struct FaultyInode {
    bytes: Vec<u8>,
    synced: Vec<u8>,
    /// Changes since the last sync.
    unsynced: Vec<DiskChange>,
    locked_by: Option<u64>,
    /// By the clock of the tests.
    modified: Duration,
}

#[derive(Clone, Debug)]
enum DiskChange {
    Write(usize, Vec<u8>),
    Length(usize),
}

/// The kinds of faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DiskFault {
    /// The process, or the machine, stops.
    Stop,
    /// The disk is full, once.
    Full,
    /// The disk fails, once. Data that a sync did not write are lost, although they can still be read.
    Error,
}

/// The data that a stop loses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StopLoss {
    /// Nothing that the system was given: the process was killed.
    Nothing,
    /// Data that were not synced, or a part: a power failure.
    Unsynced,
}

thread_local! {
    static PLACES: RefCell<BTreeMap<String, Arc<FaultyDisk>>> = const { RefCell::new(BTreeMap::new()) };
}

/// From now on this disk is the memory store with this name, for this thread.
pub(crate) fn be_a_place(name: &str, disk: &Arc<FaultyDisk>) {
    PLACES.with_borrow_mut(|places| places.insert(name.to_owned(), Arc::clone(disk)));
}

/// Returns the disk that is the memory store with this name.
pub(crate) fn at_place(name: &str) -> Option<Arc<FaultyDisk>> {
    PLACES.with_borrow(|places| places.get(name).cloned())
}

impl FaultyDisk {
    pub(crate) fn new(seed: u64) -> Self {
        Self::of(BTreeMap::new(), Vec::new(), TestRandom(seed))
    }

    fn of(names: BTreeMap<String, usize>, inodes: Vec<FaultyInode>, random: TestRandom) -> Self {
        let state = FaultyState {
            names_synced: names.clone(),
            names,
            inodes,
            openings: 0,
            random,
            fault_in: None,
            fault: DiskFault::Stop,
            is_down: false,
        };
        Self(Arc::new(FaultyShared {
            state: Mutex::new(state),
            unlocked: Condvar::new(),
        }))
    }

    /// Causes this fault after so many calls.
    pub(crate) fn fault_in(&self, calls: u64, fault: DiskFault) {
        let mut state = self.0.lock();
        state.fault_in = Some(calls);
        state.fault = fault;
    }

    /// Returns whether the fault has yet to occur.
    pub(crate) fn has_yet_to_fail(&self) -> bool {
        self.0.lock().fault_in.is_some()
    }

    pub(crate) fn is_down(&self) -> bool {
        self.0.lock().is_down
    }

    /// Returns the state after a restart.
    pub(crate) fn after(&self, loss: StopLoss) -> Self {
        let mut state = self.0.lock();
        let seed = state.random.number();
        let mut random = TestRandom(seed);
        let (names, mut inodes) = match loss {
            StopLoss::Nothing => (state.names.clone(), state.inodes.clone()),
            StopLoss::Unsynced => (lose_names(&state, &mut random), state.inodes.clone()),
        };
        for inode in &mut inodes {
            if loss == StopLoss::Unsynced {
                inode.bytes = lose(inode, &mut random);
                inode.unsynced.clear();
                inode.synced = inode.bytes.clone();
            }
            inode.locked_by = None;
        }
        let names_synced = if loss == StopLoss::Unsynced {
            names.clone()
        } else {
            state.names_synced.clone()
        };
        let after = Self::of(names, inodes, random);
        after.0.lock().names_synced = names_synced;
        after
    }
}

/// Names that were not synced are there or not.
fn lose_names(state: &FaultyState, random: &mut TestRandom) -> BTreeMap<String, usize> {
    let mut names = state.names_synced.clone();
    for (name, &inode) in &state.names {
        if random.once_in(2) {
            names.insert(name.clone(), inode);
        }
    }
    for name in state.names_synced.keys() {
        if !state.names.contains_key(name) && random.once_in(2) {
            names.remove(name);
        }
    }
    names
}

/// Of what was not synced, some sectors are there.
fn lose(inode: &FaultyInode, random: &mut TestRandom) -> Vec<u8> {
    let mut bytes = inode.synced.clone();
    for change in &inode.unsynced {
        match change {
            DiskChange::Length(length) if random.once_in(2) => bytes.resize(*length, 0),
            DiskChange::Length(_) => {}
            DiskChange::Write(at, written) => {
                for (piece, sector) in written.chunks(SECTOR_BYTES).enumerate() {
                    if random.once_in(2) {
                        put(&mut bytes, at + piece * SECTOR_BYTES, sector);
                    }
                }
            }
        }
    }
    bytes
}

fn put(bytes: &mut Vec<u8>, at: usize, written: &[u8]) {
    let end = at + written.len();
    if bytes.len() < end {
        bytes.resize(end, 0);
    }
    bytes[at..end].copy_from_slice(written);
}

impl FaultyShared {
    fn lock(&self) -> MutexGuard<'_, FaultyState> {
        self.state.lock().unwrap()
    }

    /// Counts a call; returns whether it fails, and how.
    fn call(&self) -> io::Result<(MutexGuard<'_, FaultyState>, Option<DiskFault>)> {
        let mut state = self.lock();
        let mut fault = None;
        if let Some(left) = state.fault_in {
            state.fault_in = left.checked_sub(1);
            if left == 0 {
                fault = Some(state.fault);
                state.is_down |= state.fault == DiskFault::Stop;
            }
        }
        // A write that is under way when the machine stops may be there in part.
        if state.is_down && fault.is_none() {
            return Err(io::Error::other("the machine has stopped"));
        }
        Ok((state, fault))
    }

    /// A call that fails as a whole.
    fn plain_call(&self) -> io::Result<MutexGuard<'_, FaultyState>> {
        match self.call()? {
            (state, None) => Ok(state),
            (_, Some(fault)) => Err(error(fault)),
        }
    }
}

fn error(fault: DiskFault) -> io::Error {
    match fault {
        DiskFault::Stop => io::Error::other("the machine has stopped"),
        DiskFault::Full => io::ErrorKind::StorageFull.into(),
        DiskFault::Error => io::Error::from_raw_os_error(5),
    }
}

fn open(shared: &Arc<FaultyShared>, state: &mut FaultyState, inode: usize) -> Arc<dyn StorageFile> {
    state.openings += 1;
    Arc::new(FaultyFile {
        shared: Arc::clone(shared),
        inode,
        opening: state.openings,
    })
}

impl StorageDisk for FaultyDisk {
    fn create(&self, path: &str) -> io::Result<Arc<dyn StorageFile>> {
        let mut state = self.0.plain_call()?;
        if state.names.contains_key(path) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let inode = state.inodes.len();
        state.inodes.push(FaultyInode {
            modified: crate::tests::crash::clock(),
            ..FaultyInode::default()
        });
        state.names.insert(path.to_owned(), inode);
        Ok(open(&self.0, &mut state, inode))
    }

    fn open(&self, path: &str) -> io::Result<Arc<dyn StorageFile>> {
        let mut state = self.0.plain_call()?;
        let inode = *state.names.get(path).ok_or(io::ErrorKind::NotFound)?;
        Ok(open(&self.0, &mut state, inode))
    }

    fn publish(&self, draft: &FileDraft, to: &str) -> io::Result<()> {
        {
            let mut state = self.0.plain_call()?;
            if state.names.contains_key(to) {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            let inode = *state.names.get(&draft.beside).ok_or(io::ErrorKind::NotFound)?;
            state.names.insert(to.to_owned(), inode);
        }
        // A call of its own, which may fail.
        let _ = self.remove(&draft.beside);
        Ok(())
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        let mut state = self.0.plain_call()?;
        state.names.remove(path).ok_or(io::ErrorKind::NotFound)?;
        Ok(())
    }

    fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        let state = self.0.plain_call()?;
        let within = |path: &String| {
            let rest = if folder.is_empty() {
                path
            } else {
                path.strip_prefix(folder)?.strip_prefix('/')?
            };
            rest.split('/').next().map(str::to_owned)
        };
        let mut names: Vec<String> = state.names.keys().filter_map(within).collect();
        names.dedup();
        Ok(names)
    }

    fn modified(&self, path: &str) -> io::Result<Duration> {
        let state = self.0.plain_call()?;
        let inode = *state.names.get(path).ok_or(io::ErrorKind::NotFound)?;
        Ok(state.inodes[inode].modified)
    }

    fn uri(&self, path: &str) -> String {
        format!("memory:faulty/{path}")
    }

    fn sync_names(&self, folder: &str) -> io::Result<()> {
        let mut guard = self.0.plain_call()?;
        let state = &mut *guard;
        // The names in the folder, or in one above it.
        let is_synced = |path: &String| {
            let within = path.rsplit_once('/').map_or("", |(within, _)| within);
            let below = folder.strip_prefix(within);
            below.is_some_and(|below| within.is_empty() || below.is_empty() || below.starts_with('/'))
        };
        state.names_synced.retain(|path, _| !is_synced(path));
        let names = state.names.iter().filter(|(path, _)| is_synced(path));
        state
            .names_synced
            .extend(names.map(|(path, inode)| (path.clone(), *inode)));
        Ok(())
    }
}

impl StorageFile for FaultyFile {
    fn len(&self) -> io::Result<u64> {
        let state = self.shared.plain_call()?;
        Ok(state.inodes[self.inode].bytes.len() as u64)
    }

    fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<usize> {
        let mut state = self.shared.plain_call()?;
        let part = if state.random.once_in(8) { 2 } else { 1 };
        let bytes = &state.inodes[self.inode].bytes;
        let rest = bytes.get(at as usize..).unwrap_or_default();
        let read = rest.len().min(into.len().div_ceil(part));
        into[..read].copy_from_slice(&rest[..read]);
        Ok(read)
    }

    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<usize> {
        let (mut state, fault) = self.shared.call()?;
        let is_short = fault.is_some() || state.random.once_in(8);
        let written = if is_short {
            state.random.below(bytes.len() + 1)
        } else {
            bytes.len()
        };
        // Nothing at all would be the end of the file.
        let written = if fault.is_some() {
            written
        } else {
            written.max(1).min(bytes.len())
        };
        let inode = &mut state.inodes[self.inode];
        inode.modified = crate::tests::crash::clock();
        put(&mut inode.bytes, at as usize, &bytes[..written]);
        inode
            .unsynced
            .push(DiskChange::Write(at as usize, bytes[..written].to_vec()));
        match fault {
            Some(fault) => Err(error(fault)),
            None => Ok(written),
        }
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        let mut state = self.shared.plain_call()?;
        let inode = &mut state.inodes[self.inode];
        inode.bytes.resize(bytes as usize, 0);
        inode.unsynced.push(DiskChange::Length(bytes as usize));
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let (mut state, fault) = self.shared.call()?;
        let inode = &mut state.inodes[self.inode];
        match fault {
            None => {
                for change in std::mem::take(&mut inode.unsynced) {
                    match change {
                        DiskChange::Write(at, bytes) => put(&mut inode.synced, at, &bytes),
                        DiskChange::Length(length) => inode.synced.resize(length, 0),
                    }
                }
                Ok(())
            }
            Some(DiskFault::Error) => {
                // The system counts as written what it could not write.
                inode.unsynced.clear();
                Err(error(DiskFault::Error))
            }
            Some(fault) => Err(error(fault)),
        }
    }

    fn lock(&self) -> io::Result<()> {
        let mut state = self.shared.plain_call()?;
        while state.inodes[self.inode]
            .locked_by
            .is_some_and(|other| other != self.opening)
        {
            state = self.shared.unlocked.wait(state).unwrap();
        }
        state.inodes[self.inode].locked_by = Some(self.opening);
        Ok(())
    }

    fn unlock(&self) -> io::Result<()> {
        let mut state = self.shared.plain_call()?;
        state.inodes[self.inode].locked_by = None;
        self.shared.unlocked.notify_all();
        Ok(())
    }
}
