//! What a process knows of the commits: tables that only ever gain rows, brought up to date when somebody asks.
//!
//! Each table is more than twice as long as the next one, so that there are few, and a row is moved few times. A checkpoint
//! writes those that are not in a file yet, and by that compacts what was committed in many small pieces.

use std::sync::Arc;

use junctura_model::{Code, Error, Result, Schema};

use crate::checkpoint::{self, Checkpoint, Segment};
use crate::commit::{COMMIT, Commit};
use crate::commits::{Log, Position, Said};
use crate::disk::Disk;
use crate::table::{Encoded, Table};

/// The tables of each schema of the store, the oldest rows first.
pub(crate) type Tables = Vec<Vec<Arc<Table>>>;

/// See the module.
#[derive(Debug)]
pub(crate) struct Catalogue {
    /// Where the log is read on; nothing was read yet without it.
    position: Option<Position>,
    held: Vec<Vec<Held>>,
}

/// A table, and the file that has the same rows.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    pub(crate) table: Arc<Table>,
    pub(crate) segment: Option<Arc<Segment>>,
}

impl Catalogue {
    pub(crate) fn new(schemas: usize) -> Self {
        Self {
            position: None,
            held: vec![Vec::new(); schemas],
        }
    }

    /// Behind the last commit that is known.
    pub(crate) fn position(&self) -> Position {
        self.position.unwrap_or_default()
    }

    /// What all known commits say.
    pub(crate) fn tables(&self) -> Tables {
        let tables = |held: &Vec<Held>| held.iter().map(|held| Arc::clone(&held.table)).collect();
        self.held.iter().map(tables).collect()
    }

    pub(crate) fn held(&self) -> Vec<Vec<Held>> {
        self.held.clone()
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
        let mut news: Vec<Table> = self.held.iter().map(|_| Table::default()).collect();
        log.read(&mut position, &mut |said| take(&mut news, said))?;
        for (held, new) in self.held.iter_mut().zip(news) {
            if !new.is_empty() {
                held.push(Held {
                    table: Arc::new(new),
                    segment: None,
                });
                join_small(held)?;
            }
        }
        self.position = Some(position);
        Ok(())
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
                table: Arc::new(table),
                segment: Some(Arc::new(segment.clone())),
            });
        }
        self.held = held;
        Ok(checkpoint.position())
    }

    /// A table has been written.
    pub(crate) fn is_written(&mut self, table: &Arc<Table>, segment: &Arc<Segment>) {
        let held = self.held.iter_mut().flatten();
        if let Some(held) = held.into_iter().find(|held| Arc::ptr_eq(&held.table, table)) {
            held.segment = Some(Arc::clone(segment));
        }
    }
}

fn take(news: &mut [Table], said: &Said<'_>) -> Result<()> {
    if said.kind != COMMIT {
        let cause = format!("it is of kind {}, which a later version knows", said.kind);
        return Err(Error::new(Code::Unsupported, format!("commit {}", said.number), cause));
    }
    let commit = Commit::read(said.payload)?;
    for part in &commit.parts {
        let table = news.get_mut(part.schema as usize).ok_or_else(|| {
            let cause = format!("the store has no schema {}", part.schema);
            Error::new(Code::Corrupt, format!("commit {}", said.number), cause)
        })?;
        let payloads_at = part.payloads.as_ptr().addr() - said.payload.as_ptr().addr();
        table.decode(Encoded {
            rows: part.rows,
            file: said.file,
            payloads_at: said.at + payloads_at as u64,
        })?;
        table.committed(said.number);
    }
    Ok(())
}

fn join_small(held: &mut Vec<Held>) -> Result<()> {
    while let [.., older, newer] = &mut **held
        && older.table.len() <= 2 * newer.table.len()
    {
        let newer = Arc::clone(&newer.table);
        Arc::make_mut(&mut older.table).append(&newer)?;
        older.segment = None;
        held.pop();
    }
    Ok(())
}
