//! The store of one process: the open store, and its only writer.
//!
//! After a fork both processes would write to the same files with the same writer. Therefore a child reopens the store,
//! and unflushed objects of the parent stay with the parent:
//!
//! ```text
//!   Home of the parent ──after_fork──► Home of the child ──after_fork──► …
//! ```
//! Each process follows the chain to its own entry, and creates it if missing, without locks that another thread of the
//! parent may have held.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, OnceLock, PoisonError};

use junctura::{Code, Error, Result};
use junctura_store::{Store, StoreWriter};

use super::place::StorePlace;
use crate::conversion::usage::{CheckedNames, OfferPlace};

/// See the module.
pub(crate) struct ProcessStore {
    place: StorePlace,
    process: u32,
    store: Store,
    /// Acquired only while the interpreter lock is released.
    writer: Mutex<Option<StoreWriter>>,
    /// Hashes of the keys of arrays that were archived and not flushed.
    arrays: Mutex<HashSet<u64>>,
    hashes: RandomState,
    checked_names: CheckedNames,
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
            checked_names: CheckedNames::default(),
            after_fork: OnceLock::new(),
        }
    }

    /// The place of what is archived, for the checks of its keywords.
    pub(crate) fn place_of_offers(&self) -> OfferPlace<'_> {
        OfferPlace::Store(&self.checked_names)
    }

    pub(crate) fn place(&self) -> &StorePlace {
        &self.place
    }

    /// Returns the store of this process.
    ///
    /// # Errors
    /// The error of reopening the store, in a child.
    pub(crate) fn here(&self) -> Result<&Self> {
        let process = std::process::id();
        let mut home = self;
        while home.process != process {
            if home.after_fork.get().is_none() {
                let store = home.place.open()?;
                // Another thread of this process may have created it first.
                let _ = home.after_fork.set(Box::new(Self::new(home.place.clone(), store)));
            }
            match home.after_fork.get() {
                Some(next) => home = next,
                None => break,
            }
        }
        Ok(home)
    }

    /// Returns the unflushed objects of this process, once there are no other users.
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

    /// Runs an operation with the writer, in order of arrival.
    ///
    /// # Errors
    /// The errors of the operation; `Io` if the system has no random numbers.
    pub(crate) fn write<R>(&self, work: impl FnOnce(&mut StoreWriter) -> Result<R>) -> Result<R> {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        if writer.is_none() {
            *writer = Some(self.store.writer()?);
        }
        writer
            .as_mut()
            .map_or_else(|| Err(Error::new(Code::Closed, "store", "it has no writer")), work)
    }

    /// Records the key of an archived array; returns whether it is the first with this key since the last flush.
    pub(crate) fn note_array(&self, schema: &str, key: &[u8]) -> bool {
        let hash = self.hashes.hash_one((schema, key));
        self.arrays.lock().unwrap_or_else(PoisonError::into_inner).insert(hash)
    }

    /// Flushes: everything that was archived before becomes visible.
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

    /// Discards unflushed objects; returns their number.
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
