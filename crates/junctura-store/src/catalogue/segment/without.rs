//! The errors for such files in a build without Parquet.

use std::sync::Arc;

use junctura_model::selector::{AttributeQuestion, SelectorQuestion};
use junctura_model::{AttrId, Code, Error, Result, Schema};

use super::PartChecks;
use crate::catalogue::table::{PassingValues, RowColumns, RowTable, TextColumn};
use crate::log::leb128::Run;
use crate::storage::StorageFile;

/// There is none.
#[derive(Debug)]
pub(crate) enum SegmentFile {}

/// There is none.
#[derive(Debug)]
pub(crate) enum RowGroup {}

pub(crate) fn encode(_table: &RowTable, _schema: &Schema) -> Result<(Vec<u8>, PartChecks)> {
    Err(left_out())
}

pub(crate) fn decode(_file: Vec<u8>, _schema: &Arc<Schema>) -> Result<RowTable> {
    Err(left_out())
}

fn left_out() -> Error {
    let cause = "this was built without Parquet (the feature parquet)";
    Error::new(Code::Unsupported, "segment", cause)
}

impl SegmentFile {
    pub(crate) fn open(_: &str, _: Arc<dyn StorageFile>, _: u64, _: &PartChecks, _: &Arc<Schema>) -> Result<Arc<Self>> {
        Err(left_out())
    }

    pub(crate) fn groups(self: &Arc<Self>) -> std::iter::Empty<RowGroup> {
        match **self {}
    }
}

impl RowGroup {
    pub(crate) fn len(&self) -> usize {
        match *self {}
    }

    pub(crate) fn in_memory(&self) -> Option<&Arc<RowTable>> {
        match *self {}
    }

    pub(crate) fn table(&self) -> Result<Arc<RowTable>> {
        match *self {}
    }

    pub(crate) fn only(&self, _: &[u32]) -> Result<Option<RowTable>> {
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

    pub(crate) fn each_value(&self, _: &SelectorQuestion<'_>, _: impl FnMut(AttrId, &str)) -> Result<()> {
        match *self {}
    }
}

impl RowColumns for RowGroup {
    fn rows(&self) -> usize {
        match *self {}
    }

    fn passing(&self, _: AttributeQuestion<'_>) -> Result<Option<PassingValues>> {
        match *self {}
    }

    fn with_numbers(&self, _: AttributeQuestion<'_>, _: &mut dyn FnMut(&TextColumn)) -> Result<()> {
        match *self {}
    }
}
