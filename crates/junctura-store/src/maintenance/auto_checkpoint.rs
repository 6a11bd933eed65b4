//! Automatic checkpoints: when much has been written since the last checkpoint, a writer's process makes one in the
//! background, so that the next process that opens the store does not read a long log.
//!
//! The checkpoint uses a separate opening of the store, which is closed afterwards: a process that only writes keeps no
//! catalogue in memory, and readers do not wait.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Instant;

use junctura_model::Result;

use crate::store::Store;

/// The amount that a process commits between two checks of the backlog.
const LOOK_AFTER: CheckpointBacklog = CheckpointBacklog {
    rows: 25_000,
    commits: 1000,
};
/// More of either justifies a checkpoint: reading that much takes some hundredths of a second.
const BACKLOG_MAX: CheckpointBacklog = CheckpointBacklog {
    rows: 100_000,
    commits: 10_000,
};
/// The pause after a checkpoint, as a multiple of its duration.
const REST: u32 = 4;

/// The amount that no checkpoint covers, or that was committed since the last check.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CheckpointBacklog {
    pub(crate) rows: u64,
    pub(crate) commits: u64,
}

impl CheckpointBacklog {
    fn reaches(self, other: Self) -> bool {
        self.rows >= other.rows || self.commits >= other.commits
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct AutoCheckpoint {
    rows: AtomicU64,
    commits: AtomicU64,
    is_busy: AtomicBool,
    state: Mutex<UpkeepState>,
}

#[derive(Debug, Default)]
struct UpkeepState {
    rest_until: Option<Instant>,
    work: Option<JoinHandle<()>>,
}

impl AutoCheckpoint {
    /// Records that so many rows of `store` were committed. Checks the backlog, if a check is due, on a separate
    /// thread. If the checkpoint fails, the next explicit one reports the error.
    pub(crate) fn committed(&self, rows: u64, store: &Store) {
        let since = CheckpointBacklog {
            rows: self.rows.fetch_add(rows, Ordering::Relaxed) + rows,
            commits: self.commits.fetch_add(1, Ordering::Relaxed) + 1,
        };
        if !since.reaches(LOOK_AFTER) || self.is_busy.swap(true, Ordering::Acquire) {
            return;
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let is_resting = state.rest_until.is_some_and(|until| Instant::now() < until);
        let store = store.clone();
        let work = || {
            Builder::new()
                .name("checkpoint".to_owned())
                .spawn(move || store.upkeep().work(&store))
        };
        match (!is_resting).then(work) {
            Some(Ok(work)) => state.work = Some(work),
            _ => self.is_busy.store(false, Ordering::Release),
        }
    }

    fn work(&self, store: &Store) {
        self.rows.store(0, Ordering::Relaxed);
        self.commits.store(0, Ordering::Relaxed);
        let began = Instant::now();
        let _told_when_asked_for = look(store);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.rest_until = Some(Instant::now() + REST * began.elapsed());
        drop(state);
        self.is_busy.store(false, Ordering::Release);
    }
}

fn look(store: &Store) -> Result<()> {
    let apart = store.apart();
    if apart.catalogue()?.backlog().reaches(BACKLOG_MAX) {
        apart.checkpoint()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use junctura_model::Schema;

    use super::*;
    use crate::StoreLayout;
    use crate::catalogue::checkpoint;

    fn settle(store: &Store) {
        let work = store.upkeep().state.lock().unwrap().work.take();
        work.map_or(Ok(()), JoinHandle::join).unwrap();
        store.upkeep().state.lock().unwrap().rest_until = None;
    }

    /// Writes so many rows, with a commit for each `every`, and waits for background work. Returns the number of
    /// checkpoints.
    fn write(store: &Store, rows: u64, every: u64) -> usize {
        let mut writer = store.writer().unwrap();
        for row in 1..=rows {
            writer.archive([("name", "one")], b"").unwrap();
            if row % every == 0 {
                writer.flush().unwrap();
                settle(store);
            }
        }
        checkpoint::names(store.disk()).unwrap().len()
    }

    #[test]
    fn processes_that_write_make_checkpoints() {
        let free = [Schema::builtin("free").unwrap()];
        let one = Store::create_url("memory:upkeep", &free, &StoreLayout::default()).unwrap();
        let other = one.apart();
        // Neither writer alone has written enough for a checkpoint.
        assert_eq!(write(&one, 75_000, 25_000), 0);
        assert_eq!(write(&other, 25_000, 25_000), 1);
        assert_eq!(write(&one, 75_000, 25_000), 1);
        assert_eq!(write(&one, 25_000, 25_000), 2);
        let snapshot = one.snapshot().unwrap();
        assert_eq!(snapshot.list_all("").unwrap().len(), 200_000);
        assert_eq!(one.checkpoint().unwrap().commit, snapshot.commit());
    }

    #[test]
    fn many_commits_are_worth_one() {
        let free = [Schema::builtin("free").unwrap()];
        let store = Store::create_url("memory:", &free, &StoreLayout::default()).unwrap();
        assert_eq!(write(&store, 9_999, 1), 0);
        assert_eq!(write(&store, 1_001, 1), 1);
    }

    #[test]
    fn a_writer_may_be_told_not_to() {
        let free = [Schema::builtin("free").unwrap()];
        let store = Store::create_url("memory:", &free, &StoreLayout::default()).unwrap();
        let mut writer = store.writer().unwrap();
        writer.set_upkeep(false);
        for _ in 0..BACKLOG_MAX.rows {
            writer.archive([("name", "one")], b"").unwrap();
        }
        writer.flush().unwrap();
        settle(&store);
        assert!(checkpoint::names(store.disk()).unwrap().is_empty());
    }
}
