//! What a build without Parquet says of such files.

use std::sync::Arc;

use junctura_model::selector::{Asked, Question};
use junctura_model::{AttrId, Code, Error, Result, Schema};

use super::Checks;
use crate::catalogue::table::{Asking, Column, Passing, Table};
use crate::log::leb128::Run;
use crate::storage::File;

/// There is none.
#[derive(Debug)]
pub(crate) enum SegmentFile {}

/// There is none.
#[derive(Debug)]
pub(crate) enum Group {}

pub(crate) fn encode(_table: &Table, _schema: &Schema) -> Result<(Vec<u8>, Checks)> {
    Err(left_out())
}

pub(crate) fn decode(_file: Vec<u8>, _schema: &Arc<Schema>) -> Result<Table> {
    Err(left_out())
}

fn left_out() -> Error {
    let cause = "this was built without Parquet (the feature parquet)";
    Error::new(Code::Unsupported, "segment", cause)
}

impl SegmentFile {
    pub(crate) fn open(_: &str, _: Arc<dyn File>, _: u64, _: &Checks, _: &Arc<Schema>) -> Result<Arc<Self>> {
        Err(left_out())
    }

    pub(crate) fn groups(self: &Arc<Self>) -> std::iter::Empty<Group> {
        match **self {}
    }
}

impl Group {
    pub(crate) fn len(&self) -> usize {
        match *self {}
    }

    pub(crate) fn in_memory(&self) -> Option<&Arc<Table>> {
        match *self {}
    }

    pub(crate) fn table(&self) -> Result<Arc<Table>> {
        match *self {}
    }

    pub(crate) fn only(&self, _: &[u32]) -> Result<Option<Table>> {
        match *self {}
    }

    pub(crate) fn may_have(&self, _: &[Run]) -> bool {
        match *self {}
    }

    pub(crate) fn last_commit(&self) -> u64 {
        match *self {}
    }

    pub(crate) fn files(&self) -> Result<Vec<Arc<str>>> {
        match *self {}
    }

    pub(crate) fn open_names(&self) -> std::iter::Empty<&str> {
        match *self {}
    }

    pub(crate) fn has_keys_only(&self, _: usize) -> bool {
        match *self {}
    }

    pub(crate) fn each_value(&self, _: &Question<'_>, _: impl FnMut(AttrId, &str)) -> Result<()> {
        match *self {}
    }
}

impl Asking for Group {
    fn rows(&self) -> usize {
        match *self {}
    }

    fn passing(&self, _: Asked<'_>) -> Result<Option<Passing>> {
        match *self {}
    }

    fn with_numbers(&self, _: Asked<'_>, _: &mut dyn FnMut(&Column)) -> Result<()> {
        match *self {}
    }
}
