//! The store as one process has it: what is open, and the one writer.
//!
//! After a fork both processes would write to the same files by the same writer. So a child opens the store anew, and what its
//! parent had not flushed is its parent's:
//!
//! ```text
//!   Home of the parent ──after_fork──► Home of the child ──after_fork──► …
//! ```
//! Each process goes along until it finds its own, and makes it where there is none: no lock is taken that another thread of the
//! parent may have held.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, OnceLock, PoisonError};

use junctura::{Code, Error, Result};
use junctura_store::{Store, StoreWriter};

use super::place::StorePlace;

/// See the module.
pub(crate) struct ProcessStore {
    place: StorePlace,
    process: u32,
    store: Store,
    /// Waited for without the interpreter only.
    writer: Mutex<Option<StoreWriter>>,
    /// Hashes of the keys of arrays that were archived and not flushed.
    arrays: Mutex<HashSet<u64>>,
    hashes: RandomState,
    after_fork: OnceLock<Box<ProcessStore>>,
}

impl ProcessStore {
    pub(crate) fn new(place: StorePlace, store: Store) -> Self {
        Self {
            place,
            process: std::process::id(),
            store,
            writer: Mutex::new(None),
            arrays: Mutex::default(),
            hashes: RandomState::new(),
            after_fork: OnceLock::new(),
        }
    }

    pub(crate) fn place(&self) -> &StorePlace {
        &self.place
    }

    /// That of this process.
    ///
    /// # Errors
    /// What opening it again says, in a child.
    pub(crate) fn here(&self) -> Result<&Self> {
        let process = std::process::id();
        let mut home = self;
        while home.process != process {
            if home.after_fork.get().is_none() {
                let store = home.place.open()?;
                // Another thread of this process may have been quicker.
                let _ = home.after_fork.set(Box::new(Self::new(home.place.clone(), store)));
            }
            match home.after_fork.get() {
                Some(next) => home = next,
                None => break,
            }
        }
        Ok(home)
    }

    /// What this process has archived and not flushed, when nobody else uses it any more.
    pub(crate) fn left(&self) -> u64 {
        let mut home = Some(self);
        while let Some(other) = home.filter(|home| home.process != std::process::id()) {
            home = other.after_fork.get().map(|next| &**next);
        }
        home.map_or(0, Self::pending)
    }

    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// Does something with the writer, after those who were here before.
    ///
    /// # Errors
    /// Those of the work; `Io` when the system has no random numbers.
    pub(crate) fn write<R>(&self, work: impl FnOnce(&mut StoreWriter) -> Result<R>) -> Result<R> {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        if writer.is_none() {
            *writer = Some(self.store.writer()?);
        }
        writer
            .as_mut()
            .map_or_else(|| Err(Error::new(Code::Closed, "store", "it has no writer")), work)
    }

    /// Notes the key of an array that was archived; whether it is the first with it since the last flush.
    pub(crate) fn note_array(&self, schema: &str, key: &[u8]) -> bool {
        let hash = self.hashes.hash_one((schema, key));
        self.arrays.lock().unwrap_or_else(PoisonError::into_inner).insert(hash)
    }

    /// Everything that was archived before is visible.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub(crate) fn flush(&self) -> Result<junctura_store::Flushed> {
        let flushed = self.write(StoreWriter::flush)?;
        self.forget_arrays();
        Ok(flushed)
    }

    fn forget_arrays(&self) {
        self.arrays.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Forgets what was archived and not flushed; says how many objects that were.
    pub(crate) fn discard(&self) -> u64 {
        self.forget_arrays();
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        writer.take().map_or(0, |writer| writer.pending())
    }

    pub(crate) fn pending(&self) -> u64 {
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        writer.as_ref().map_or(0, StoreWriter::pending)
    }
}
