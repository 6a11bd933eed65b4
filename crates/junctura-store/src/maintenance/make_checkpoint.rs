//! Makes a checkpoint of the visible state.

use std::sync::Arc;
use std::time::Duration;

use junctura_model::{Code, Error, Result};

use crate::catalogue::checkpoint::{self, Checkpoint, CheckpointRest, CheckpointSegment};
use crate::catalogue::table::RowTable;
use crate::catalogue::{Emptied, HeldRows};
use crate::storage::{StorageDisk, may_be_there};
use crate::store::Store;

/// A table, its remaining rows, and the file into which they were written.
type Written = (HeldRows, Arc<RowTable>, Arc<CheckpointSegment>);

/// The result of a checkpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checkpointed {
    /// The last commit that it covers.
    pub commit: u64,
    /// The number of its files.
    pub segments: usize,
    /// The number of rows in all its files.
    pub rows: u64,
    /// The number of rows that were written for it; the others were in files already.
    pub written_rows: u64,
}

impl Checkpointed {
    fn of(checkpoint: &Checkpoint, written_rows: u64) -> Self {
        Self {
            commit: checkpoint.commit,
            segments: checkpoint.segments.len(),
            rows: checkpoint.segments.iter().map(|segment| segment.rows).sum(),
            written_rows,
        }
    }
}

/// Writes the files of one checkpoint.
pub(crate) struct CheckpointMaker<'a> {
    store: &'a Store,
    began: Duration,
}

impl<'a> CheckpointMaker<'a> {
    pub(crate) fn begin(store: &'a Store) -> Self {
        Self {
            store,
            began: store.now(),
        }
    }

    /// Writes the rows that no checkpoint names yet, and publishes the list of all files.
    ///
    /// # Errors
    /// As [`Store::checkpoint`].
    pub(crate) fn make(&self) -> Result<Checkpointed> {
        let (position, held, counts, emptied, before) = {
            let catalogue = self.store.catalogue()?;
            (
                catalogue.position(),
                catalogue.held(),
                catalogue.counts().to_vec(),
                catalogue.emptied().clone(),
                catalogue.newest().cloned(),
            )
        };
        // Files that the newest checkpoint names are kept for long enough to be named again; others may be removed
        // soon.
        let newest = Checkpoint::newest(self.store.disk())?;
        if let Some(newest) = newest.as_ref().filter(|newest| newest.commit >= position.number) {
            checkpoint::make_last(self.store.disk())?;
            return Ok(Checkpointed::of(newest, 0));
        }
        let named = newest.map_or(Vec::new(), |newest| newest.segments);
        let written = self.write_missing(&held, &named);
        // If this takes too long, its input may be removed; the age is the error to report.
        self.check_in_time()?;
        let (segments, written) = written?;
        let at_ms = u64::try_from(self.store.now().as_millis()).unwrap_or(u64::MAX);
        let (emptied, gone) = self.still_there(emptied);
        let rest = CheckpointRest::new(&counts, emptied);
        let checkpoint = Checkpoint::new(position, self.store.log().name(position), at_ms, segments, rest);
        let published = checkpoint.publish(self.store.disk());
        let is_known = published.as_ref().is_err_and(|error| error.code() != Code::Unavailable);
        if is_known && !may_be_there(self.store.disk(), &checkpoint.path()) {
            // They are not named elsewhere.
            remove_segments(self.store.disk(), &written);
        }
        if published? {
            let mut catalogue = self.store.known_catalogue();
            catalogue.are_gone(&gone);
            catalogue.is_named_by(checkpoint.path(), before.as_ref());
            for (held, left, segment) in &written {
                catalogue.is_written(held, left, segment);
            }
        }
        Ok(Checkpointed::of(
            &checkpoint,
            written.iter().map(|(_, _, segment)| segment.rows).sum(),
        ))
    }

    /// Returns the segments of all tables; writes a segment for tables without one in `named`.
    fn write_missing(
        &self,
        held: &[Vec<HeldRows>],
        named: &[CheckpointSegment],
    ) -> Result<(Vec<CheckpointSegment>, Vec<Written>)> {
        let (mut segments, mut written) = (Vec::new(), Vec::new());
        for (index, (schema, held)) in self.store.schemas().iter().zip(held).enumerate() {
            for held in held {
                let known = held.segment.as_deref().filter(|segment| named.contains(segment));
                if let Some(segment) = known.filter(|_| held.is_whole()) {
                    segments.push(segment.clone());
                    continue;
                }
                let made = held.condensed().and_then(|left| {
                    let left = left.map(|left| {
                        CheckpointSegment::write(self.store.disk(), index, schema, &left).map(|made| (left, made))
                    });
                    left.transpose()
                });
                match made {
                    Ok(None) => {}
                    Ok(Some((left, segment))) => {
                        written.push((held.clone(), left, Arc::new(segment.clone())));
                        segments.push(segment);
                    }
                    Err(error) => {
                        // No checkpoint will name the other segments.
                        remove_segments(self.store.disk(), &written);
                        return Err(error);
                    }
                }
            }
        }
        Ok((segments, written))
    }

    /// Splits these files into those that may still exist, and those that have been removed.
    fn still_there(&self, emptied: Emptied) -> (Emptied, Vec<Arc<str>>) {
        let mut gone = Vec::new();
        let mut there = emptied;
        there.retain(|file, _| {
            let is_there = may_be_there(self.store.disk(), file);
            gone.extend((!is_there).then(|| Arc::clone(file)));
            is_there
        });
        (there, gone)
    }

    /// Fails if the unnamed files may have been removed because of their age.
    fn check_in_time(&self) -> Result<()> {
        let (age, ages) = (self.store.now().saturating_sub(self.began), self.store.ages());
        if age <= ages.unflushed_max.min(ages.snapshot_max) {
            return Ok(());
        }
        let cause = format!("it took {age:?}, and by the ages of this store others may have removed what it needs");
        Err(Error::new(Code::Expired, "checkpoint", cause))
    }
}

/// Frees the space of files of a checkpoint that is not published.
fn remove_segments(disk: &dyn StorageDisk, written: &[Written]) {
    for (_, _, segment) in written {
        // A compaction removes the rest.
        _ = disk.remove(&segment.path);
    }
}
