//! The names of undeclared attributes: a store has so many of each schema, since a table and a file have a column for each.
//!
//! A writer counts them before it takes an object, with those that others have committed by then. Writers that take objects at the same
//! time may have as many each, and stores of earlier versions had any number: readers have no such limit.

use std::sync::Arc;

use hashbrown::HashSet;
use junctura_model::{AttrId, Code, Error, RecordRef, Result, Schema};

use crate::catalogue::table::JOINED_NAMES_MAX;
use crate::store::Store;

/// Names that the objects of one schema may have, in all of a store.
pub(crate) const NAMES_MAX: usize = JOINED_NAMES_MAX;

/// Names of one schema.
pub(crate) type Names = HashSet<Arc<str>>;

/// The names of undeclared attributes that a writer has seen, for each schema.
#[derive(Debug, Default)]
pub(crate) struct OpenNames {
    /// Committed names, and those of unflushed objects.
    known: Vec<Names>,
    /// Names that are in no commit yet.
    pending: Vec<(usize, Arc<str>)>,
    /// Whether the committed ones were read since the last flush.
    are_read: bool,
}

impl OpenNames {
    /// Discards pending names; others may have committed more, and some may have been removed.
    pub(crate) fn look_again(&mut self) {
        self.pending.clear();
        self.are_read = false;
    }

    /// Admits the names of a record.
    ///
    /// # Errors
    /// `LimitExceeded` if the store would exceed its limit of names: none is then admitted.
    pub(crate) fn admit(&mut self, store: &Store, schema: usize, record: RecordRef<'_>) -> Result<()> {
        if open_names(record).all(|name| self.is_known(schema, name)) {
            return Ok(());
        }
        self.read(store);
        let is_new = |name: &&str| !self.is_known(schema, name);
        let new: Vec<Arc<str>> = open_names(record).filter(is_new).map(Arc::from).collect();
        if let Some(name) = new.first()
            && self.known[schema].len() + new.len() > NAMES_MAX
        {
            // Some may have been removed before the next object.
            self.are_read = false;
            return Err(too_many(&store.schemas()[schema], record, name));
        }
        self.pending.extend(new.iter().map(|name| (schema, Arc::clone(name))));
        self.known[schema].extend(new);
        Ok(())
    }

    fn is_known(&self, schema: usize, name: &str) -> bool {
        self.known.get(schema).is_some_and(|known| known.contains(name))
    }

    /// Reads those that are committed, once between two flushes. Where the catalogue cannot be read, those that were known stay.
    fn read(&mut self, store: &Store) {
        self.known.resize_with(store.schemas().len(), Names::default);
        if !std::mem::replace(&mut self.are_read, true)
            && let Ok(committed) = store.catalogue().map(|catalogue| catalogue.open_names())
        {
            self.known = committed;
            for (schema, name) in &self.pending {
                self.known[*schema].insert(Arc::clone(name));
            }
        }
    }
}

fn too_many(schema: &Schema, record: RecordRef<'_>, name: &str) -> Error {
    let cause = format!(
        "its undeclared attribute {name} would be one more than the {NAMES_MAX} names that the objects of schema {} may have: put \
         what changes into a value, or wipe objects",
        schema.name()
    );
    Error::new(Code::LimitExceeded, schema.key_text(record), cause)
}

fn open_names(record: RecordRef<'_>) -> impl Iterator<Item = &str> {
    let open = record.iter().filter(|(id, ..)| *id == AttrId::OPEN);
    open.filter_map(|(_, name, _)| name)
}
