//! Replaces a store in a build without the feature `store`: types that have no values.

use std::sync::Arc;

use junctura_model::version::Version;
use junctura_model::{Described, RecordRef, Result, Schema};
use junctura_wire::body;

use crate::connection::address::lacks_feature;
use crate::object::ArrivedObject;
use crate::verbs::follow::Gap;

/// A store behind a pool. Without the feature `store` there is none.
#[derive(Debug)]
pub(crate) enum StoreReader {}

/// An object in the store. Without the feature `store` there is none.
#[derive(Debug)]
pub(crate) enum StoredRow {}

impl StoreReader {
    pub(crate) fn open(_url: &str, _schemas: &[Arc<Schema>]) -> Result<Self> {
        Err(lacks_feature("store behind the pool", "store"))
    }

    pub(crate) fn newest(&self, _selector: &str) -> Result<Vec<StoredRow>> {
        match *self {}
    }

    pub(crate) fn find(&self, _target: &body::TargetBody<'_>, _schemas: &[Arc<Schema>]) -> Result<Option<StoredRow>> {
        match *self {}
    }

    pub(crate) fn refuse_second(&self, _schema: &Schema, _record: RecordRef<'_>) -> Result<()> {
        match *self {}
    }

    pub(super) fn find_gap(&self, _gap: &Gap) -> Result<Vec<Option<StoredRow>>> {
        match *self {}
    }
}

impl StoredRow {
    pub(crate) fn number(&self) -> u16 {
        match *self {}
    }

    pub(crate) fn record(&self) -> RecordRef<'_> {
        match *self {}
    }

    pub(crate) fn version(&self) -> Version {
        match *self {}
    }

    pub(crate) fn is_after(&self, _incarnation: u64, _sequence: u64) -> bool {
        match *self {}
    }

    pub(crate) fn bytes(&self) -> u64 {
        match *self {}
    }

    pub(crate) fn describe(&self) -> Result<Described> {
        match *self {}
    }

    pub(crate) fn read(&self, _in_snapshot: bool) -> Result<ArrivedObject> {
        match *self {}
    }
}
