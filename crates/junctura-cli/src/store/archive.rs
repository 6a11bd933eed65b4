//! `junctura store archive` writes files to a store as objects.

use std::sync::Arc;

use clap::Args;
use junctura::{Code, Error, Given, Result, Schema};
use junctura_model::command::shell_word;
use junctura_store::{Store, StoreLayout, StoreWriter};
use junctura_terminal::interrupt::InterruptFlag;

use crate::model::schema_files;
use crate::pool::put::files::{FilePayload, FileTarget, FilesArguments, InputPosition, zeros};
use crate::pool::put::tally::{OfferOrigin, PutTally, TellArguments};
use crate::pool::serve::half_of_memory;
use crate::store::StoreArguments;

const EXAMPLES: &str = "Examples:
  junctura store archive --store /data/archive forecast.grib          each field by its header
  junctura store archive --store /data/archive --create run/*.grib2   into a new store, if there is none
  junctura store archive --store /data/archive plume.png --schema free --set name=plume
  ssh cluster cat out.grib | junctura store archive --store /data/archive --every 1000 -
When a file is damaged nothing of this command is visible, but for what --every has flushed before.";

/// Write files to a store
///
/// Each field of a GRIB file (edition 1 or 2, recognized by its content) becomes an object of the `mars` schema, with the
/// attributes of its header. Any other file becomes one object with the attributes given by --set. If `name` is part of the key and
/// not given, it is the name of the file. All objects become visible at once, when all are on disk.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ArchiveArguments {
    #[command(flatten)]
    store: StoreArguments,
    #[command(flatten)]
    files: FilesArguments,
    /// Create the store if it does not exist
    #[arg(long)]
    create: bool,
    /// Make objects visible after each N, instead of all at the end
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    every: Option<u64>,
    #[command(flatten)]
    tell: TellArguments,
}

/// Runs the command.
pub(crate) fn run(arguments: &ArchiveArguments) -> Result<()> {
    let interrupt = InterruptFlag::install()?;
    let tally = PutTally::new(arguments.tell, arguments.files.total_bytes());
    let store = arguments.open()?;
    let mut goal = ArchiveStore {
        writer: store.writer()?,
        store,
        every: arguments.every.unwrap_or(u64::MAX),
        unflushed: Vec::new(),
        tally,
    };
    let read = arguments.files.read(&mut goal, &interrupt);
    let outcome = read.and_then(|()| goal.flush().or_else(|error| goal.tally.failed(error)));
    goal.tally.finish(outcome, &[])
}

impl ArchiveArguments {
    fn open(&self) -> Result<Store> {
        match self.store.open() {
            Err(error) if error.code() == Code::NotFound && self.create => {}
            opened => return opened,
        }
        match Store::create_url(
            self.store.url(),
            &schema_files::with_builtin(&[])?,
            &StoreLayout::default(),
        ) {
            Err(error) if error.code() == Code::AlreadyExists => self.store.open(),
            created => created,
        }
    }
}

/// A store as a destination of objects.
struct ArchiveStore {
    store: Store,
    writer: StoreWriter,
    every: u64,
    unflushed: Vec<OfferOrigin>,
    tally: PutTally,
}

impl ArchiveStore {
    fn flush(&mut self) -> Result<()> {
        let flushed = match self.writer.flush() {
            Ok(flushed) => flushed,
            Err(error) => return Err(self.forget(error)),
        };
        for origin in self.unflushed.drain(..) {
            self.tally.count(&origin);
            self.tally.tell(&origin, Some(&flushed.commit.to_string()))?;
        }
        self.tally.flush()
    }

    /// Objects that the writer has dropped are not part of the next flush; the error counts one.
    fn forget(&mut self, error: Error) -> Error {
        if self.writer.pending() == 0 {
            let others = self.unflushed.len().saturating_sub(1);
            self.tally.miss(others as u64);
            self.unflushed.clear();
        }
        error
    }
}

impl FileTarget for ArchiveStore {
    type Room = Vec<u8>;
    type Rooms = ();

    fn rooms(&self) {}

    fn allocate((): (), bytes: u64) -> Result<Vec<u8>> {
        zeros(bytes, "payload")
    }

    /// A store accepts any size that fits in memory.
    fn payload_bytes_max(&self) -> Result<u64> {
        Ok(half_of_memory())
    }

    fn schemas(&self) -> Result<Vec<Arc<Schema>>> {
        Ok(self.store.schemas().to_vec())
    }

    fn schema_command(&self, file: &str) -> String {
        format!("`junctura schema set {} --store URL` adds it", shell_word(file))
    }

    fn take(
        &mut self,
        place: &InputPosition,
        schema: &Schema,
        attributes: &[(&str, Given<'_>)],
        payload: FilePayload<'_, Vec<u8>>,
    ) -> Result<()> {
        let bytes = payload.bytes();
        let archived = self.writer.archive_in(schema.name(), attributes.iter().copied(), bytes);
        archived.map_err(|error| place.error(&error))?;
        let origin = self.tally.origin(place, schema, attributes, bytes.len())?;
        self.unflushed.push(origin);
        if self.writer.pending() >= self.every {
            self.flush()?;
        }
        Ok(())
    }

    /// Incomplete objects stay invisible.
    fn idle(&mut self) -> Result<()> {
        self.tally.flush()
    }

    fn failed(&mut self, error: Error) -> Result<()> {
        self.tally.failed(error)
    }

    fn show(&mut self, position: u64) {
        self.tally.show(position);
    }

    fn repeated(&mut self, _schema: &Schema) {
        self.tally.repeated();
    }

    fn hid(&mut self, fields: u32) {
        self.tally.hid(fields);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(clap::Parser)]
    struct Told {
        #[command(flatten)]
        arguments: TellArguments,
    }

    #[test]
    fn what_the_writer_forgot_is_not_counted_as_archived() {
        let schemas = [Schema::builtin("free").unwrap()];
        let store = Store::create_url("memory:", &schemas, &StoreLayout::default()).unwrap();
        let told: Told = clap::Parser::parse_from(["archive", "--keep-going", "--quiet"]);
        let mut goal = ArchiveStore {
            writer: store.writer().unwrap(),
            store,
            every: u64::MAX,
            unflushed: Vec::new(),
            tally: PutTally::new(told.arguments, None),
        };
        let place = InputPosition {
            file: "file".into(),
            message: None,
            field: None,
        };
        let take = |goal: &mut ArchiveStore, name: &str| {
            let attributes = [("name", Given::Text(name))];
            goal.take(&place, &schemas[0], &attributes, FilePayload::Bytes(b"payload"))
                .unwrap();
        };
        for name in ["a", "b", "c"] {
            take(&mut goal, name);
        }
        // As after a flush that exceeds the maximum size of a commit.
        goal.writer = goal.store.writer().unwrap();
        let error = goal.forget(Error::new(Code::TooLarge, "3 objects", "more than a commit has"));
        goal.failed(error).unwrap();
        take(&mut goal, "d");
        goal.flush().unwrap();
        assert_eq!(goal.tally.counts(), [1, 3]);
        // After an error that allows a retry, the writer still has them.
        take(&mut goal, "e");
        goal.forget(Error::new(Code::Io, "disk", "full"));
        goal.flush().unwrap();
        assert_eq!(goal.tally.counts(), [2, 3]);
    }
}
