//! Objects are written to the store, with the numbers of its schemas.

use std::sync::Arc;

use junctura_model::{Code, Error, Result, Schema, with_given};
use junctura_store::{Snapshot, StoreWriter};

use super::refused::{is_of_disk, is_of_objects};
use super::{AgreedSchema, Archiver, Told, schemas};
use crate::array::WholeArray;
use crate::object::Object;

impl Archiver {
    /// Writes an object; returns the commit with which the store has it already, if any. A failing disk is retried, unless
    /// the archiver is to stop; durable offers are notified. An error is returned with whether only this object causes it.
    pub(super) fn write_with_retry(
        &mut self,
        object: &Object,
        whole: Option<&WholeArray>,
        told: &mut Told<'_>,
    ) -> std::result::Result<Option<u64>, (bool, Error)> {
        let of_store = |error: Error| (false, error);
        let (mut is_flushed, mut is_reported) = (false, false);
        loop {
            let error = match self.write(object, whole) {
                Err((true, error))
                    if error.code() == Code::LimitExceeded && !is_flushed && self.writer.pending() > 0 =>
                {
                    // One flush has no more room; the next one may.
                    self.flush(told).map_err(of_store)?;
                    is_flushed = true;
                    continue;
                }
                Err((false, error)) if is_of_disk(&error) && self.writer.flush_is_known() => error,
                done => return done,
            };
            if !is_reported {
                self.complain(Some(object), &error, told).map_err(of_store)?;
            }
            is_reported = true;
            if self.progress.is_to_stop() {
                return Err((false, error));
            }
            self.pause().map_err(of_store)?;
        }
    }

    fn write(
        &mut self,
        object: &Object,
        whole: Option<&WholeArray>,
    ) -> std::result::Result<Option<u64>, (bool, Error)> {
        let schema = self.agree(object.schema()).map_err(|error| (true, error))?;
        let of_objects = |error: Error| (is_of_objects(&error), error);
        if object.redelivered() {
            let snapshot = self.store.snapshot().map_err(|error| (false, error))?;
            let commit = earlier_commit(&snapshot, object).map_err(of_objects)?;
            if commit.is_some() {
                return Ok(commit);
            }
        }
        let written = write(&mut self.writer, schema, object, whole);
        written.map(|()| None).map_err(of_objects)
    }

    /// Returns the number of the object's schema in the store, if the store can read its records as they are. Pool and
    /// store must define the schema alike.
    fn agree(&mut self, schema: &Arc<Schema>) -> Result<Option<usize>> {
        if let Some(agreed) = self.agreed.iter().find(|agreed| agreed.name == schema.name()) {
            return Ok(agreed.number);
        }
        let ours = schemas::agreed(&self.pool, &self.store, schema, &self.location())?;
        let reads_records = ours.attributes() == schema.attributes();
        let mut schemas = self.store.schemas().iter();
        let number = schemas.position(|ours| reads_records && ours.name() == schema.name());
        self.agreed.push(AgreedSchema {
            name: schema.name().to_owned(),
            number,
        });
        Ok(number)
    }
}

/// Writes the record as it is, if the store has `schema`. An array is assembled to one object with other attributes.
fn write(writer: &mut StoreWriter, schema: Option<usize>, object: &Object, whole: Option<&WholeArray>) -> Result<()> {
    let version = object.version();
    if let (Some(schema), None) = (schema, whole) {
        return writer.archive_record(schema, object.record(), object.payload(), Some(version));
    }
    let payload = whole.map_or(object.payload(), WholeArray::bytes);
    let more = whole.map(|whole| whole.attributes(object)).unwrap_or_default();
    let schema = object.schema();
    with_given(schema, object.attributes().chain(more), |given| {
        writer.archive_version(schema.name(), given.iter().copied(), payload, version)
    })
}

/// Returns the commit with which another archiver has flushed the object, before it crashed without reporting that.
fn earlier_commit(snapshot: &Snapshot, object: &Object) -> Result<Option<u64>> {
    let schema = object.schema();
    with_given(schema, object.attributes(), |given| {
        snapshot.commit_of_version(schema.name(), given.iter().copied(), object.version())
    })
}
