//! What nobody needs any more goes: files of checkpoints that are long superseded, and what writers left that have died.
//!
//! Nothing is removed that a snapshot can still need, or a flush still name: the ages of the store say how long that is, and everybody
//! keeps to them. What a commit names stays.

use std::collections::BTreeSet;
use std::time::Duration;

use junctura_model::Result;

use crate::checkpoint::{self, Checkpoint};
use crate::disk::refused;
use crate::store::{Checkpointed, Store};

/// What a compaction did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compacted {
    /// The checkpoint that it made.
    pub checkpoint: Checkpointed,
    /// Files that it removed, by their names in the store.
    pub removed: Vec<String>,
}

impl Store {
    /// Makes a [checkpoint](Self::checkpoint), and removes what nobody needs any more: checkpoints and segments that were superseded
    /// longer ago than a snapshot may be old; data files of which nothing is left since twice as long; and files that no commit and no
    /// checkpoint names. What has changed within twice the time that archived objects may wait for their flush stays. Others may read and write meanwhile, and compact, too.
    ///
    /// # Errors
    /// As [`Self::checkpoint`]; what the system refuses to remove.
    pub fn compact(&self) -> Result<Compacted> {
        let checkpoint = self.checkpoint()?;
        let mut removed = Vec::new();
        for file in self.unneeded()? {
            match self.disk().remove(&file) {
                Ok(()) => removed.push(file),
                // Another one was quicker.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(refused(file, "cannot be removed", &error)),
            }
        }
        Ok(Compacted { checkpoint, removed })
    }

    /// The files that [`Self::compact`] would remove now, if there were nothing new for a checkpoint.
    ///
    /// # Errors
    /// As [`Self::snapshot`].
    pub fn unneeded(&self) -> Result<Vec<String>> {
        let mut doomed = self.superseded()?;
        doomed.extend(self.left_behind()?);
        Ok(doomed)
    }

    /// Checkpoints that no snapshot may still begin with, and the segments that only they name; checkpoints last, so that
    /// what is interrupted is found again.
    fn superseded(&self) -> Result<Vec<String>> {
        let now = self.now();
        let names = checkpoint::names(self.disk())?;
        let mut all = Vec::new();
        for name in &names {
            match Checkpoint::read(self.disk(), name) {
                Ok(checkpoint) => all.push(checkpoint),
                Err(error) if error.code() == junctura_model::Code::NotFound => return Ok(Vec::new()),
                Err(error) => return Err(error),
            }
        }
        let is_old = |next: &Checkpoint| {
            let since = now.saturating_sub(Duration::from_millis(next.at_ms));
            since > self.ages().snapshot_max
        };
        // One may go when the next one has been there for long enough.
        let old = all.iter().skip(1).take_while(|next| is_old(next)).count();
        let segments = |checkpoints: &[Checkpoint]| -> BTreeSet<String> {
            let all = checkpoints.iter().flat_map(|checkpoint| &checkpoint.segments);
            all.map(|segment| segment.path.clone()).collect()
        };
        let (going, staying) = (segments(&all[..old]), segments(&all[old..]));
        let mut doomed: Vec<String> = going.difference(&staying).cloned().collect();
        doomed.extend_from_slice(&names[..old]);
        Ok(doomed)
    }

    /// Files that nothing names, and that nothing will.
    fn left_behind(&self) -> Result<Vec<String>> {
        let snapshot = self.snapshot()?;
        let mut unnamed = snapshot.unnamed_files()?;
        let mut named = BTreeSet::new();
        for name in checkpoint::names(self.disk())? {
            let checkpoint = Checkpoint::read(self.disk(), &name)?;
            named.extend(checkpoint.segments.into_iter().map(|segment| segment.path));
        }
        unnamed.extend(
            self.files_in("segments")?
                .into_iter()
                .filter(|path| !named.contains(path)),
        );
        let is_unfinished = |path: &String| path.starts_with("checkpoints/.") || path.starts_with("store.json.");
        let beside = [self.files_in("checkpoints")?, self.files_in("")?].concat();
        unnamed.extend(beside.into_iter().filter(is_unfinished));
        let mut left = Vec::new();
        for path in unnamed {
            // A snapshot that was taken while the removal was on its way still shows what was there.
            let since = snapshot.empty_since(&path).unwrap_or_default();
            let is_needed = self.now().saturating_sub(since) <= 2 * self.ages().snapshot_max;
            if !is_needed && self.is_given_up(&path)? {
                left.push(path);
            }
        }
        Ok(left)
    }

    fn is_given_up(&self, path: &str) -> Result<bool> {
        match self.disk().modified(path) {
            Ok(at) => Ok(self.now().saturating_sub(at) > 2 * self.ages().unflushed_max),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(refused(path, "cannot be looked at", &error)),
        }
    }

    /// Names in a folder, by their names in the store.
    pub(crate) fn files_in(&self, folder: &str) -> Result<Vec<String>> {
        let names = self
            .disk()
            .list(folder)
            .map_err(|error| refused(folder, "cannot be listed", &error))?;
        let path = |name: String| {
            if folder.is_empty() {
                name
            } else {
                format!("{folder}/{name}")
            }
        };
        Ok(names.into_iter().map(path).collect())
    }
}
