//! The catalogue: a process's view of the commits, as append-only tables that are updated on demand.
//!
//! Each table is more than twice as long as the next one, so that there are few tables, and a row is moved rarely. A
//! checkpoint writes the tables that are not in a file yet, and thereby compacts small commits.

pub(crate) mod checkpoint;
pub(crate) mod names;
pub(crate) mod row_overlay;
pub(crate) mod schemas;
pub(crate) mod segment;
pub(crate) mod table;
pub(crate) mod unreadable;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use hashbrown::HashSet;
use junctura_model::{Code, Error, Result, Schema};

use crate::catalogue::checkpoint::{Checkpoint, CheckpointSegment};
use crate::catalogue::names::Names;
use crate::catalogue::row_overlay::RowOverlay;
use crate::catalogue::table::{EncodedRows, JOINED_NAMES_MAX, RowTable};
use crate::data;
use crate::log::commit::{COMMIT, CommitRecord};
use crate::log::leb128::Run;
use crate::log::relocation::{RELOCATION, RelocatedRows, RelocationRecord};
use crate::log::removal::{REMOVAL, RemovalRecord};
use crate::log::{CommitLog, LogPosition, ReadRecord, first_of};
use crate::maintenance::auto_checkpoint::CheckpointBacklog;
use crate::storage::StorageDisk;

/// The tables of each schema of the store, the oldest rows first.
pub(crate) type Tables = Vec<Vec<RowOverlay>>;
/// Data files of which nothing is left, by name, and since when.
pub(crate) type Emptied = BTreeMap<Arc<str>, Duration>;

/// See the module.
#[derive(Debug)]
pub(crate) struct Catalogue {
    /// The position at which the log is read next; `None` before the first read.
    position: Option<LogPosition>,
    is_checked: bool,
    /// The newest checkpoint, by its name, when that was looked for the last time, and when that was.
    newest: Option<String>,
    looked: Duration,
    /// The rows and commits that the checkpoint covers that it began with.
    begun: CheckpointBacklog,
    held: Vec<Vec<HeldRows>>,
    /// Rows of each schema that were ever committed.
    counts: Vec<u64>,
    emptied: Emptied,
    /// Whether commits behind one that is damaged are left out, and the one that was found.
    until_damage: bool,
    damage: Option<Error>,
}

/// Consecutive rows, in one table or in a file, and the file with the same rows.
#[derive(Clone, Debug)]
pub(crate) struct HeldRows {
    pub(crate) pieces: Vec<RowOverlay>,
    pub(crate) segment: Option<Arc<CheckpointSegment>>,
}

impl HeldRows {
    fn new(rows: impl Into<RowOverlay>) -> Self {
        Self {
            pieces: vec![rows.into()],
            segment: None,
        }
    }

    fn len(&self) -> usize {
        self.pieces.iter().map(RowOverlay::len).sum()
    }

    /// Whether nothing has been removed from it.
    pub(crate) fn is_whole(&self) -> bool {
        self.pieces.iter().all(RowOverlay::is_whole)
    }

    /// Whether both are the same rows.
    pub(crate) fn is(&self, other: &Self) -> bool {
        let pieces = || self.pieces.iter().zip(&other.pieces);
        self.pieces.len() == other.pieces.len() && pieces().all(|(one, other)| one.is(other))
    }

    /// Whether both may be one table: of so many names that a file can have a column for each.
    fn may_join(&self, newer: &Self) -> bool {
        let pieces = || self.pieces.iter().chain(&newer.pieces);
        let text_bytes = pieces().map(RowOverlay::text_bytes_max).sum();
        if !RowTable::may_have(self.len() + newer.len(), text_bytes) {
            return false;
        }
        let mut names = HashSet::new();
        pieces().flat_map(RowOverlay::open_names).all(|name| {
            names.insert(name);
            names.len() <= JOINED_NAMES_MAX
        })
    }

    /// Returns the remaining rows in one table; `None` if there are none.
    ///
    /// # Errors
    /// As [`RowTable::append`]; errors of reading them.
    pub(crate) fn condensed(&self) -> Result<Option<Arc<RowTable>>> {
        let mut joined: Option<Arc<RowTable>> = None;
        for piece in &self.pieces {
            joined = match (joined, piece.condensed()?) {
                (Some(before), Some(table)) => Some(join(before, &table)?),
                (one, other) => one.or(other),
            };
        }
        Ok(joined)
    }
}

/// Returns all rows of both. If the older table is shared, it is copied; otherwise its rows stay in place.
fn join(older: Arc<RowTable>, newer: &RowTable) -> Result<Arc<RowTable>> {
    let mut rows = Arc::unwrap_or_clone(older);
    rows.append(newer)?;
    Ok(Arc::new(rows))
}

impl Catalogue {
    pub(crate) fn new(schemas: usize, until_damage: bool) -> Self {
        Self {
            position: None,
            is_checked: false,
            newest: None,
            looked: Duration::ZERO,
            begun: CheckpointBacklog { rows: 0, commits: 0 },
            held: vec![Vec::new(); schemas],
            counts: vec![0; schemas],
            emptied: Emptied::new(),
            until_damage,
            damage: None,
        }
    }

    /// As if it knew nothing yet.
    fn anew(&self) -> Self {
        Self::new(self.held.len(), self.until_damage)
    }

    /// Why it has no later commits, where some are left out.
    pub(crate) fn damage(&self) -> Option<&Error> {
        self.damage.as_ref()
    }

    /// Behind the last commit that is known.
    pub(crate) fn position(&self) -> LogPosition {
        self.position.unwrap_or_default()
    }

    /// Returns the state of all known commits.
    pub(crate) fn tables(&self) -> Tables {
        let tables = |held: &Vec<HeldRows>| held.iter().flat_map(|held| held.pieces.iter().cloned()).collect();
        self.held.iter().map(tables).collect()
    }

    /// The names of undeclared attributes that rows of each schema have.
    pub(crate) fn open_names(&self) -> Vec<Names> {
        let of_schema = |held: &Vec<HeldRows>| {
            let mut names = Names::default();
            for piece in held.iter().flat_map(|held| &held.pieces) {
                piece.each_open_name(|name| _ = names.get_or_insert_with(name, |name| name.into()));
            }
            names
        };
        self.held.iter().map(of_schema).collect()
    }

    pub(crate) fn held(&self) -> Vec<Vec<HeldRows>> {
        self.held.clone()
    }

    /// Returns the amount that was committed since the checkpoint from which it started.
    pub(crate) fn backlog(&self) -> CheckpointBacklog {
        let rows = sum(&self.counts);
        CheckpointBacklog {
            rows: rows.saturating_sub(self.begun.rows),
            commits: self.position().number.saturating_sub(self.begun.commits),
        }
    }

    /// Rows of each schema that were ever committed.
    pub(crate) fn counts(&self) -> &[u64] {
        &self.counts
    }

    pub(crate) fn emptied(&self) -> &Emptied {
        &self.emptied
    }

    /// Records that these empty files were removed; their names are never reused.
    pub(crate) fn are_gone(&mut self, files: &[Arc<str>]) {
        for file in files {
            self.emptied.remove(file);
        }
    }

    /// Reads the commits since the last call; `age_max`: the maximum age of a snapshot that is taken now.
    ///
    /// # Errors
    /// Those of the log; `Corrupt`, `Unsupported` for invalid commits. The known state is kept, or read again.
    pub(crate) fn refresh(
        &mut self,
        disk: &dyn StorageDisk,
        schemas: &[Arc<Schema>],
        log: &CommitLog,
        now: Duration,
        age_max: Duration,
    ) -> Result<()> {
        self.look_again(disk, now, age_max)?;
        if self.has_come_back(disk, schemas) {
            *self = self.anew();
        }
        loop {
            if self.position.is_none() {
                self.looked = now;
                self.position = Some(self.begin(disk, schemas)?);
            }
            let mut position = self.position();
            let mut news = LogNews::new(schemas, self.counts.clone());
            let mut is_taken = true;
            let read = log.read(&mut position, &mut |said| {
                is_taken = false;
                news.take(said)?;
                is_taken = true;
                Ok(())
            });
            let read = read.and_then(|()| self.check_once(log, position.number));
            let read = if is_taken { self.leave_out(read, disk) } else { read };
            let is_log_gone = read.as_ref().is_err_and(|error| error.code() == Code::NotFound);
            if !is_log_gone {
                read.clone()?;
            }
            let Err(error) = read.and_then(|()| self.add(news)) else {
                self.position = Some(position);
                return Ok(());
            };
            // It is not known how much of the news it has.
            let anew = self.anew();
            let begun_with = std::mem::replace(self, anew).newest;
            let is_gone = error.code() == Code::NotFound;
            // If this takes too long, its input may be removed; a newer checkpoint then has it.
            if is_gone && checkpoint::names(disk)?.pop() != begun_with {
                continue;
            }
            return Err(if is_log_gone { lost(&error) } else { error });
        }
    }

    /// Restarts from the newest checkpoint if unread files could be removed before a snapshot of now expires: files are
    /// kept for twice the maximum age after another checkpoint replaces the one that names them.
    fn look_again(&mut self, disk: &dyn StorageDisk, now: Duration, age_max: Duration) -> Result<()> {
        let mut pieces = self.held.iter().flatten().flat_map(|held| &held.pieces);
        if now.saturating_sub(self.looked) <= age_max / 2 || pieces.all(RowOverlay::is_in_memory) {
            return Ok(());
        }
        if checkpoint::names(disk)?.pop() == self.newest {
            self.looked = now;
        } else {
            *self = self.anew();
        }
        Ok(())
    }

    /// Checks once that no later commit is cut off by a missing one. The next read finds later ones itself.
    fn check_once(&mut self, log: &CommitLog, number: u64) -> Result<()> {
        if !self.is_checked {
            log.check(number)?;
            self.is_checked = true;
        }
        Ok(())
    }

    /// All is known of what was read before it failed; the rest is left out, if that is wanted.
    fn leave_out(&mut self, read: Result<()>, disk: &dyn StorageDisk) -> Result<()> {
        let Err(error) = read else { return Ok(()) };
        let damage = match error.code() {
            Code::Corrupt if self.until_damage => error,
            Code::NotFound if self.until_damage && checkpoint::names(disk)?.pop() == self.newest => lost(&error),
            _ => return Err(error),
        };
        self.damage.get_or_insert(damage);
        Ok(())
    }

    /// Whether a segment can be opened that could not be.
    fn has_come_back(&self, disk: &dyn StorageDisk, schemas: &[Arc<Schema>]) -> bool {
        let is_unopened = |piece: &RowOverlay| piece.lost().is_some_and(|lost| lost.is_unopened);
        let mut missing = self
            .held
            .iter()
            .flatten()
            .filter(|held| held.pieces.iter().any(is_unopened));
        missing.any(|held| {
            held.segment
                .as_ref()
                .is_some_and(|segment| segment.open(disk, schemas).is_ok())
        })
    }

    fn add(&mut self, news: LogNews<'_>) -> Result<()> {
        for (held, new) in self.held.iter_mut().zip(news.tables) {
            for new in new.into_iter().filter(|new| !new.is_empty()) {
                new.files().iter().for_each(|file| _ = self.emptied.remove(file));
                held.push(HeldRows::new(new));
            }
        }
        self.counts = news.counts;
        let mut left = Emptied::new();
        for (at, schema, change) in news.changes {
            self.change(schema, &change, |file| _ = left.insert(Arc::clone(file), at))?;
        }
        self.are_empty(left)?;
        self.held.iter_mut().try_for_each(join_small)
    }

    /// Removes or relocates rows. Passes their previous files to `tell`.
    fn change(&mut self, schema: usize, change: &RowChange, mut tell: impl FnMut(&Arc<str>)) -> Result<()> {
        let mut pieces = self.held[schema].iter_mut().flat_map(|held| &mut held.pieces);
        match change {
            RowChange::Removed(runs) => pieces
                .try_for_each(|piece| piece.remove(runs, |table, place| tell(&table.files()[place.file as usize]))),
            RowChange::Relocated(relocated) => {
                relocated.files.iter().for_each(|file| _ = self.emptied.remove(file));
                pieces.try_for_each(|piece| piece.relocate(relocated, &mut tell))
            }
        }
    }

    /// Of these files rows were taken, the last ones at these times: those that have no others are empty since then.
    fn are_empty(&mut self, mut left: Emptied) -> Result<()> {
        left.retain(|file, _| data::is_one(file) || first_of(file).is_some());
        for piece in self.held.iter().flatten().flat_map(|held| &held.pieces) {
            if left.is_empty() {
                return Ok(());
            }
            let files = match piece.files() {
                // Unreadable rows have unknown files; as long as they are unreadable, nothing is removed.
                Err(error) if error.code() == Code::Corrupt => continue,
                files => files?,
            };
            for file in files {
                left.remove(&file);
            }
        }
        self.emptied.extend(left);
        Ok(())
    }

    fn begin(&mut self, disk: &dyn StorageDisk, schemas: &[Arc<Schema>]) -> Result<LogPosition> {
        match self.begin_newest(disk, schemas) {
            Err(error) if self.until_damage && error.code() == Code::Corrupt => {
                self.damage.get_or_insert(error);
                self.begin_before(disk, schemas)
            }
            begun => begun,
        }
    }

    /// Begins with the newest checkpoint but the last one that can be read, or with the first commit.
    fn begin_before(&mut self, disk: &dyn StorageDisk, schemas: &[Arc<Schema>]) -> Result<LogPosition> {
        let mut names = checkpoint::names(disk)?;
        self.newest = names.pop();
        while let Some(name) = names.pop() {
            let read = Checkpoint::read(disk, &name);
            match read.and_then(|checkpoint| self.begin_with(&checkpoint, disk, schemas, true)) {
                Err(error) if matches!(error.code(), Code::Corrupt | Code::NotFound) => {}
                begun => return begun,
            }
        }
        Ok(LogPosition::default())
    }

    /// Begins with the newest checkpoint. While it is read, a newer one may be made, and this one removed.
    fn begin_newest(&mut self, disk: &dyn StorageDisk, schemas: &[Arc<Schema>]) -> Result<LogPosition> {
        let mut tried = None;
        loop {
            let Some(name) = checkpoint::names(disk)?.pop() else {
                return Ok(LogPosition::default());
            };
            let read = Checkpoint::read(disk, &name);
            // No process removes files that the newest checkpoint names: a file that was missing before this check is
            // lost.
            let is_newest = tried.as_ref() == Some(&name);
            match read.and_then(|checkpoint| self.begin_with(&checkpoint, disk, schemas, is_newest)) {
                Err(error) if error.code() == Code::NotFound && tried.as_ref() != Some(&name) => tried = Some(name),
                begun => {
                    self.newest = Some(name);
                    return begun;
                }
            }
        }
    }

    /// Starts from this checkpoint, without damaged segments; also without missing ones, if it is the newest.
    fn begin_with(
        &mut self,
        checkpoint: &Checkpoint,
        disk: &dyn StorageDisk,
        schemas: &[Arc<Schema>],
        is_newest: bool,
    ) -> Result<LogPosition> {
        let mut held = vec![Vec::new(); schemas.len()];
        for segment in &checkpoint.segments {
            let pieces = match segment.open(disk, schemas) {
                Err(error) if error.code() == Code::Corrupt || error.code() == Code::NotFound && is_newest => {
                    vec![segment.lost(schemas, checkpoint.commit, &error)?]
                }
                pieces => pieces?,
            };
            held[segment.schema].push(HeldRows {
                pieces,
                segment: Some(Arc::new(segment.clone())),
            });
        }
        self.counts = checkpoint.counts(schemas.len())?;
        self.emptied = checkpoint.emptied();
        self.held = held;
        self.begun = CheckpointBacklog {
            rows: sum(&self.counts),
            commits: checkpoint.commit,
        };
        Ok(checkpoint.position())
    }

    /// The newest checkpoint that it knows of.
    pub(crate) fn newest(&self) -> Option<&String> {
        self.newest.as_ref()
    }

    /// A checkpoint that has this name names the files of all that was held when the newest one was `before`.
    pub(crate) fn is_named_by(&mut self, checkpoint: String, before: Option<&String>) {
        if self.newest() == before {
            self.newest = Some(checkpoint);
        }
    }

    /// Records that held rows have been written: these rows, into this file.
    pub(crate) fn is_written(&mut self, held: &HeldRows, written: &Arc<RowTable>, segment: &Arc<CheckpointSegment>) {
        let all = self.held.iter_mut().flatten();
        if let Some(known) = all.into_iter().find(|known| known.is(held)) {
            known.pieces = vec![Arc::clone(written).into()];
            known.segment = Some(Arc::clone(segment));
        }
    }
}

/// Returns the error for missing commits that no checkpoint covers.
fn lost(error: &Error) -> Error {
    Error::new(
        Code::Corrupt,
        error.subject(),
        "it is missing, and no checkpoint is newer",
    )
}

/// Returns the sum of numbers that may be corrupt.
fn sum(counts: &[u64]) -> u64 {
    counts.iter().fold(0, |sum, &count| sum.saturating_add(count))
}

/// New information in the log.
struct LogNews<'s> {
    schemas: &'s [Arc<Schema>],
    /// One table for each schema, more if one is full.
    tables: Vec<Vec<RowTable>>,
    counts: Vec<u64>,
    /// When, of which schema, what has changed.
    changes: Vec<(Duration, usize, RowChange)>,
}

/// A change of existing rows.
enum RowChange {
    Removed(Vec<Run>),
    Relocated(RelocatedRows),
}

impl<'s> LogNews<'s> {
    fn new(schemas: &'s [Arc<Schema>], counts: Vec<u64>) -> Self {
        Self {
            schemas,
            tables: counts.iter().map(|_| Vec::new()).collect(),
            counts,
            changes: Vec::new(),
        }
    }

    fn take(&mut self, said: &ReadRecord<'_>) -> Result<()> {
        match said.kind {
            COMMIT => self.take_commit(said),
            REMOVAL => self.take_removal(said),
            RELOCATION => self.take_relocation(said),
            kind => {
                let cause = format!("it is of kind {kind}, which needs a later version");
                Err(Error::new(Code::Unsupported, format!("commit {}", said.number), cause))
            }
        }
    }

    fn take_commit(&mut self, said: &ReadRecord<'_>) -> Result<()> {
        let commit = CommitRecord::read(said.payload)?;
        for part in &commit.parts {
            let schema = self.known(part.schema as usize, said)?;
            let (tables, count) = (&mut self.tables[schema], &mut self.counts[schema]);
            if tables.last().is_none_or(RowTable::is_full) {
                tables.push(RowTable::default());
            }
            let Some(table) = tables.last_mut() else { continue };
            let before = table.len();
            let payloads_at = part.payloads.as_ptr().addr() - said.payload.as_ptr().addr();
            table.decode(EncodedRows {
                rows: part.rows,
                schema: &self.schemas[schema],
                file: said.file,
                payloads_at: said.at + payloads_at as u64,
            })?;
            table.committed(said.number);
            table.numbered(*count);
            *count += (table.len() - before) as u64;
        }
        Ok(())
    }

    fn take_removal(&mut self, said: &ReadRecord<'_>) -> Result<()> {
        let removal = RemovalRecord::read(said.payload)?;
        for part in removal.runs() {
            let (schema, runs) = part?;
            let schema = self.known(schema, said)?;
            self.changes
                .push((Duration::from_nanos(removal.at), schema, RowChange::Removed(runs)));
        }
        Ok(())
    }

    fn take_relocation(&mut self, said: &ReadRecord<'_>) -> Result<()> {
        let relocation = RelocationRecord::read(said.payload)?;
        for part in relocation.relocated() {
            let (schema, relocated) = part?;
            let schema = self.known(schema, said)?;
            let at = Duration::from_nanos(relocation.at);
            self.changes.push((at, schema, RowChange::Relocated(relocated)));
        }
        Ok(())
    }

    fn known(&self, schema: usize, said: &ReadRecord<'_>) -> Result<usize> {
        if schema < self.tables.len() {
            return Ok(schema);
        }
        Err(checkpoint::unknown(&format!("commit {}", said.number), schema))
    }
}

/// Each is more than twice as long as the next one, but for those that have too much to be one.
fn join_small(held: &mut Vec<HeldRows>) -> Result<()> {
    while let [.., older, newer] = &**held
        && older.len() <= 2 * newer.len()
        && older.may_join(newer)
    {
        let (older, newer) = match (older.condensed(), newer.condensed()) {
            // Unreadable rows stay unchanged, and block nothing.
            (Err(error), _) | (_, Err(error)) if error.code() == Code::Corrupt => return Ok(()),
            (older, newer) => (older?, newer?),
        };
        held.truncate(held.len() - 2);
        let joined = match (older, newer) {
            (Some(older), Some(newer)) => join(older, &newer)?,
            (one, other) => match one.or(other) {
                Some(left) => left,
                None => continue,
            },
        };
        held.push(HeldRows::new(joined));
    }
    Ok(())
}
