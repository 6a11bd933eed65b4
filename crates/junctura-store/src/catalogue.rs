//! What a process knows of the commits: tables that only ever gain rows, brought up to date when somebody asks.
//!
//! Each table is more than twice as long as the next one, so that there are few, and a row is moved few times. A checkpoint
//! writes those that are not in a file yet, and by that compacts what was committed in many small pieces.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use hashbrown::HashSet;
use junctura_model::{Code, Error, Result, Schema};

use crate::checkpoint::{self, Checkpoint, Segment};
use crate::commit::{COMMIT, Commit};
use crate::commits::{Log, Position, Said};
use crate::data;
use crate::disk::Disk;
use crate::removal::{REMOVAL, Removal, Run};
use crate::table::{Encoded, Live, Table};

/// The tables of each schema of the store, the oldest rows first.
pub(crate) type Tables = Vec<Vec<Live>>;
/// Data files of which nothing is left, by name, and since when.
pub(crate) type Emptied = BTreeMap<Arc<str>, Duration>;

/// See the module.
#[derive(Debug)]
pub(crate) struct Catalogue {
    /// Where the log is read on; nothing was read yet without it.
    position: Option<Position>,
    held: Vec<Vec<Held>>,
    /// Rows of each schema that were ever committed.
    counts: Vec<u64>,
    emptied: Emptied,
}

/// A table, and the file that has the same rows.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    pub(crate) table: Live,
    pub(crate) segment: Option<Arc<Segment>>,
}

impl Catalogue {
    pub(crate) fn new(schemas: usize) -> Self {
        Self {
            position: None,
            held: vec![Vec::new(); schemas],
            counts: vec![0; schemas],
            emptied: Emptied::new(),
        }
    }

    /// Behind the last commit that is known.
    pub(crate) fn position(&self) -> Position {
        self.position.unwrap_or_default()
    }

    /// What all known commits say.
    pub(crate) fn tables(&self) -> Tables {
        let tables = |held: &Vec<Held>| held.iter().map(|held| held.table.clone()).collect();
        self.held.iter().map(tables).collect()
    }

    pub(crate) fn held(&self) -> Vec<Vec<Held>> {
        self.held.clone()
    }

    /// Rows of each schema that were ever committed.
    pub(crate) fn counts(&self) -> &[u64] {
        &self.counts
    }

    pub(crate) fn emptied(&self) -> &Emptied {
        &self.emptied
    }

    /// Reads what was committed since.
    ///
    /// # Errors
    /// Those of the log; `Corrupt`, `Unsupported` for what cannot be read. What was known before stays known.
    pub(crate) fn refresh(&mut self, disk: &dyn Disk, schemas: &[Arc<Schema>], log: &Log) -> Result<()> {
        let mut position = match self.position {
            Some(position) => position,
            None => self.begin(disk, schemas)?,
        };
        let mut news = News::new(schemas, self.counts.clone());
        log.read(&mut position, &mut |said| news.take(said))?;
        self.add(news)?;
        self.position = Some(position);
        Ok(())
    }

    fn add(&mut self, news: News<'_>) -> Result<()> {
        for (held, new) in self.held.iter_mut().zip(news.tables) {
            if new.is_empty() {
                continue;
            }
            new.files().iter().for_each(|file| _ = self.emptied.remove(file));
            held.push(Held {
                table: new.into(),
                segment: None,
            });
        }
        self.counts = news.counts;
        for (at, schema, runs) in news.removals {
            self.remove(at, schema, &runs);
        }
        self.held.iter_mut().try_for_each(join_small)
    }

    /// Takes rows out. Files that had some of them and have no others are empty since then.
    fn remove(&mut self, at: Duration, schema: usize, runs: &[Run]) {
        let mut files = HashSet::new();
        for held in &mut self.held[schema] {
            let table = Arc::clone(held.table.table());
            held.table.remove(runs, |place| {
                _ = files.insert(Arc::clone(&table.files()[place.file as usize]));
            });
        }
        if files.is_empty() {
            return;
        }
        for held in self.held.iter().flatten() {
            held.table.files().for_each(|file| _ = files.remove(file));
        }
        let data = files.into_iter().filter(|file| data::is_one(file));
        self.emptied.extend(data.map(|file| (file, at)));
    }

    /// Begins with the newest checkpoint. While it is read, a newer one may be made, and this one removed.
    fn begin(&mut self, disk: &dyn Disk, schemas: &[Arc<Schema>]) -> Result<Position> {
        let mut tried = None;
        loop {
            let Some(name) = checkpoint::names(disk)?.pop() else {
                return Ok(Position::default());
            };
            let read = Checkpoint::read(disk, &name);
            match read.and_then(|checkpoint| self.begin_with(&checkpoint, disk, schemas)) {
                Err(error) if error.code() == Code::NotFound && tried.as_ref() != Some(&name) => tried = Some(name),
                begun => return begun,
            }
        }
    }

    fn begin_with(&mut self, checkpoint: &Checkpoint, disk: &dyn Disk, schemas: &[Arc<Schema>]) -> Result<Position> {
        let mut held = vec![Vec::new(); schemas.len()];
        for segment in &checkpoint.segments {
            let table = segment.read(disk, schemas)?;
            held[segment.schema].push(Held {
                table: table.into(),
                segment: Some(Arc::new(segment.clone())),
            });
        }
        self.counts = checkpoint.counts(schemas.len());
        self.emptied = checkpoint.emptied();
        self.held = held;
        Ok(checkpoint.position())
    }

    /// A table has been written, as these rows in this file.
    pub(crate) fn is_written(&mut self, table: &Live, written: &Live, segment: &Arc<Segment>) {
        let held = self.held.iter_mut().flatten();
        if let Some(held) = held.into_iter().find(|held| held.table.is(table)) {
            held.table = written.clone();
            held.segment = Some(Arc::clone(segment));
        }
    }
}

/// What the log says that was not known before.
struct News<'s> {
    schemas: &'s [Arc<Schema>],
    tables: Vec<Table>,
    counts: Vec<u64>,
    /// When, of which schema, which rows.
    removals: Vec<(Duration, usize, Vec<Run>)>,
}

impl<'s> News<'s> {
    fn new(schemas: &'s [Arc<Schema>], counts: Vec<u64>) -> Self {
        Self {
            schemas,
            tables: counts.iter().map(|_| Table::default()).collect(),
            counts,
            removals: Vec::new(),
        }
    }

    fn take(&mut self, said: &Said<'_>) -> Result<()> {
        match said.kind {
            COMMIT => self.take_commit(said),
            REMOVAL => self.take_removal(said),
            kind => {
                let cause = format!("it is of kind {kind}, which a later version knows");
                Err(Error::new(Code::Unsupported, format!("commit {}", said.number), cause))
            }
        }
    }

    fn take_commit(&mut self, said: &Said<'_>) -> Result<()> {
        let commit = Commit::read(said.payload)?;
        for part in &commit.parts {
            let schema = self.known(part.schema as usize, said)?;
            let (table, count) = (&mut self.tables[schema], &mut self.counts[schema]);
            let before = table.len();
            let payloads_at = part.payloads.as_ptr().addr() - said.payload.as_ptr().addr();
            table.decode(Encoded {
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

    fn take_removal(&mut self, said: &Said<'_>) -> Result<()> {
        let removal = Removal::read(said.payload)?;
        for part in removal.runs() {
            let (schema, runs) = part?;
            let schema = self.known(schema, said)?;
            self.removals.push((Duration::from_nanos(removal.at), schema, runs));
        }
        Ok(())
    }

    fn known(&self, schema: usize, said: &Said<'_>) -> Result<usize> {
        if schema < self.tables.len() {
            return Ok(schema);
        }
        let cause = format!("the store has no schema {schema}");
        Err(Error::new(Code::Corrupt, format!("commit {}", said.number), cause))
    }
}

/// Each is more than twice as long as the next one.
fn join_small(held: &mut Vec<Held>) -> Result<()> {
    while let [.., older, newer] = &**held
        && older.table.table().len() <= 2 * newer.table.table().len()
    {
        let (older, newer) = (older.table.condensed()?, newer.table.condensed()?);
        held.truncate(held.len() - 2);
        let joined = match (older, newer) {
            (Some(older), Some(newer)) => {
                // Others may hold the older one; where nobody does, its rows stay where they are.
                let mut rows = Arc::unwrap_or_clone(older.into_table());
                rows.append(newer.table())?;
                rows.into()
            }
            (one, other) => match one.or(other) {
                Some(left) => left,
                None => continue,
            },
        };
        held.push(Held {
            table: joined,
            segment: None,
        });
    }
    Ok(())
}
