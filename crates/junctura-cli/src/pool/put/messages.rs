//! The messages of a GRIB file for others than the commands: each with what its header gives.

use std::path::Path;
use std::sync::Arc;

use junctura::{Error, Given, Result, Schema};
use junctura_terminal::interrupt::InterruptFlag;

use super::files::{FilePayload, FileTarget, FilesArguments, InputPosition, MessageArguments, zeros};
use crate::attributes::AttributePair;
use crate::pool::serve::half_of_memory;

/// Takes the schema, the attributes of a message, and its bytes.
type Take<'a> = &'a mut dyn FnMut(&Schema, &[(&str, Given<'_>)], &[u8]) -> Result<()>;

/// The receiver of messages, and their number.
struct MessageTaker<'a> {
    schemas: &'a [Arc<Schema>],
    take: Take<'a>,
    counts: FileCounts,
}

/// Options for the messages of a file.
#[derive(Clone, Copy, Debug, Default)]
pub struct FileOptions {
    /// Fail where a field has the key of an earlier field of the same file.
    pub strict: bool,
    /// Hand over a message of several fields as a whole, described by its first field.
    pub keep_messages: bool,
}

/// Counts of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileCounts {
    /// Objects that were handed over.
    pub objects: u64,
    /// The number that have the key of an earlier one of the file.
    pub replaced: u64,
    /// Fields beside the first one in messages that were handed over as a whole.
    pub hidden: u64,
}

/// Passes on each field of a GRIB file, from front to back, also the fields of one message, as messages: the attributes
/// of its header, as far as the schema has them, overridden by `set`; and its bytes. The schema is that of this name,
/// or `mars`, if it is among the schemas, or else the first. Returns their number. Reads the file with bounded memory,
/// except for large messages; from a pipe it waits. `ask` is called between reads and while it waits, and ends it with
/// an error.
///
/// # Errors
/// `Corrupt` for the first damaged message, with its number, and for a file without any; `NotFound` for an unknown
/// schema; `AlreadyExists` if it is checked and a key occurs twice; the error of `ask`; the error of `take`, with the
/// file and the number of the message; `Io`.
pub fn each_message(
    file: &Path,
    (schemas, schema): (&[Arc<Schema>], Option<&str>),
    set: &[(String, String)],
    options: FileOptions,
    ask: impl Fn() -> Result<()> + Send + Sync + 'static,
    take: Take<'_>,
) -> Result<FileCounts> {
    let pair = |(name, value): &(String, String)| AttributePair {
        name: name.clone(),
        value: value.clone(),
    };
    let messages = MessageArguments {
        strict: options.strict,
        keep_messages: options.keep_messages,
    };
    let files = FilesArguments::of_grib(file, schema, set.iter().map(pair).collect(), messages);
    let counts = FileCounts::default();
    let mut taker = MessageTaker { schemas, take, counts };
    files.read(&mut taker, &InterruptFlag::asking(Box::new(ask)))?;
    Ok(taker.counts)
}

impl FileTarget for MessageTaker<'_> {
    type Room = Vec<u8>;
    type Rooms = ();

    fn rooms(&self) {}

    fn allocate((): (), bytes: u64) -> Result<Vec<u8>> {
        zeros(bytes, "message")
    }

    fn payload_bytes_max(&self) -> Result<u64> {
        Ok(half_of_memory())
    }

    fn schemas(&self) -> Result<Vec<Arc<Schema>>> {
        Ok(self.schemas.to_vec())
    }

    fn schema_command(&self, file: &str) -> String {
        format!("open it with the schema {file}")
    }

    fn take(
        &mut self,
        place: &InputPosition,
        schema: &Schema,
        attributes: &[(&str, Given<'_>)],
        payload: FilePayload<'_, Vec<u8>>,
    ) -> Result<()> {
        (self.take)(schema, attributes, payload.bytes()).map_err(|error| place.error(&error))?;
        self.counts.objects += 1;
        Ok(())
    }

    fn idle(&mut self) -> Result<()> {
        Ok(())
    }

    fn failed(&mut self, error: Error) -> Result<()> {
        Err(error)
    }

    fn show(&mut self, _position: u64) {}

    fn repeated(&mut self, _schema: &Schema) {
        self.counts.replaced += 1;
    }

    fn hid(&mut self, fields: u32) {
        self.counts.hidden += u64::from(fields);
    }
}
