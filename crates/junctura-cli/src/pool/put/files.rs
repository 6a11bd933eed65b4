//! Reads files sequentially as objects: each field of a GRIB file, and the bytes of any other file.

use std::collections::HashMap;
use std::fs::Metadata;
use std::ops::DerefMut;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, ValueEnum};
use junctura::{Code, Error, Given, Result, Schema};
use junctura_grib::{GribError, Message};
use junctura_model::{KeyHash, RecordRef, nearest};
use junctura_terminal::interrupt::InterruptFlag;

use super::foreign;
use super::grib::{self, MessageSplitter, NextMessage};
use super::header;
use super::input::InputSource;
use crate::attributes::{AttributePair, pair};
use crate::model::schema_files;

/// Bytes of the first read from a pipe.
const PIPE_BYTES: usize = 1 << 20;

/// Files and the attributes of their objects.
#[derive(Args, Debug)]
pub(crate) struct FilesArguments {
    /// Files to read; - means standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// An attribute of each object; it overrides the header
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = pair)]
    set: Vec<AttributePair>,
    /// Schema of the objects: its name, or a file with it (default: mars for GRIB, else the first schema)
    #[arg(long, value_name = "NAME|FILE")]
    schema: Option<String>,
    /// Format of the files
    #[arg(long, value_enum, default_value_t = FileFormat::Auto)]
    format: FileFormat,
    #[command(flatten)]
    messages: MessageArguments,
}

/// Options for the messages of a GRIB file.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct MessageArguments {
    /// Fail if a field has the key of an earlier field of the same file, instead of replacing that field
    #[arg(long)]
    pub(crate) strict: bool,
    /// Keep a message of several fields as one object, described by its first field, instead of an object for each field
    #[arg(long)]
    pub(crate) keep_messages: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FileFormat {
    /// Detect the format from the first bytes
    Auto,
    /// GRIB messages
    Grib,
    /// One object with the bytes of the file
    Bytes,
}

/// A destination of objects: a pool or a store.
pub(crate) trait FileTarget {
    /// Memory for a payload.
    type Room: DerefMut<Target = [u8]>;
    /// Gives such memory.
    type Rooms: Copy;

    fn rooms(&self) -> Self::Rooms;
    fn allocate(rooms: Self::Rooms, bytes: u64) -> Result<Self::Room>;
    /// Returns the size of the largest payload that it accepts, in bytes.
    fn payload_bytes_max(&self) -> Result<u64>;
    fn schemas(&self) -> Result<Vec<Arc<Schema>>>;
    /// Returns how a schema in a file is added to the destination.
    fn schema_command(&self, file: &str) -> String;
    /// Writes one object.
    fn take(
        &mut self,
        place: &InputPosition,
        schema: &Schema,
        attributes: &[(&str, Given<'_>)],
        payload: FilePayload<'_, Self::Room>,
    ) -> Result<()>;
    /// Prepares for a read without a time limit.
    fn idle(&mut self) -> Result<()>;
    /// Records the failure of one object. Returns it as an error, unless the other objects shall continue.
    fn failed(&mut self, error: Error) -> Result<()>;
    /// Records the failure of one file. Returns it as an error, unless the other files shall be read.
    fn file_failed(&mut self, error: Error) -> Result<()> {
        Err(error)
    }
    /// Reports how many bytes were read.
    fn show(&mut self, position: u64);
    /// Counts an object that has the key of an earlier one of the same file.
    fn repeated(&mut self, schema: &Schema);
    /// Counts fields of a message that its object does not describe.
    fn hid(&mut self, fields: u32);
}

/// The source of a payload.
pub(crate) enum FilePayload<'p, R> {
    Bytes(&'p [u8]),
    Placed(R),
}

impl<R: DerefMut<Target = [u8]>> FilePayload<'_, R> {
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            FilePayload::Bytes(bytes) => bytes,
            FilePayload::Placed(room) => room,
        }
    }
}

/// A place in the input, for messages.
#[derive(Clone, Debug)]
pub(crate) struct InputPosition {
    pub(crate) file: Arc<str>,
    /// Number of the message in the file.
    pub(crate) message: Option<u64>,
    /// Number of the field in a message with several fields.
    pub(crate) field: Option<u32>,
}

impl InputPosition {
    fn words(&self) -> String {
        let message = self.message.map_or(String::new(), |number| format!("message {number}"));
        let field = self.field.map_or(String::new(), |number| format!(" field {number}"));
        message + &field
    }

    /// Returns the error with this position.
    pub(crate) fn error(&self, error: &Error) -> Error {
        let message = self
            .message
            .map_or(String::new(), |number| format!(": message {number}"));
        let field = self.field.map_or(String::new(), |number| format!(" field {number}"));
        let subject = if error.subject().is_empty() {
            String::new()
        } else {
            format!(": {}", error.subject())
        };
        Error::new(
            error.code(),
            format!("{}{message}{field}{subject}", self.file),
            error.cause(),
        )
    }
}

impl FilesArguments {
    /// One file of GRIB messages.
    pub(super) fn of_grib(
        file: &Path,
        schema: Option<&str>,
        set: Vec<AttributePair>,
        messages: MessageArguments,
    ) -> Self {
        Self {
            messages,
            files: vec![file.to_owned()],
            set,
            schema: schema.map(str::to_owned),
            format: FileFormat::Grib,
        }
    }

    /// Reads all files.
    ///
    /// # Errors
    /// Errors of the files and of the destination.
    pub(crate) fn read<G: FileTarget>(&self, goal: &mut G, interrupt: &InterruptFlag) -> Result<()> {
        must_be_distinct(&self.set, str::to_owned)?;
        let mut before = 0;
        for path in &self.files {
            match InputSource::open(path, interrupt) {
                Ok(input) => {
                    let bytes = input.bytes().unwrap_or(0);
                    let read = self.read_one(goal, input, path, before);
                    read.or_else(|error| match error.code() {
                        // Of the destination.
                        Code::Io => Err(error),
                        _ => goal.file_failed(error),
                    })?;
                    before += bytes;
                }
                Err(error) => goal.file_failed(error)?,
            }
            goal.show(before);
        }
        Ok(())
    }

    fn read_one<G: FileTarget>(&self, goal: &mut G, mut input: InputSource, path: &Path, before: u64) -> Result<()> {
        let is_grib = match self.format {
            FileFormat::Grib => true,
            FileFormat::Bytes => false,
            FileFormat::Auto => {
                grib::is_grib(&mut input, &mut || goal.idle())? || self.schema.is_none() && foreign::is_named_grib(path)
            }
        };
        let schema = self.schema(goal, is_grib)?;
        must_be_distinct(&self.set, |name| {
            schema
                .find(name)
                .map_or(name, |id| &schema.attribute(id).name)
                .to_owned()
        })?;
        if before == 0 {
            self.set.iter().for_each(|pair| note_option(pair, &schema));
        }
        if is_grib {
            self.put_messages(goal, &schema, MessageSplitter::new(input), before)
        } else {
            self.put_whole(goal, &schema, input, path)
        }
    }

    /// Returns the number of files.
    pub(crate) fn count(&self) -> usize {
        self.files.len()
    }

    /// Returns the total size of the files, if none is a pipe.
    pub(crate) fn total_bytes(&self) -> Option<u64> {
        self.files
            .iter()
            .map(|path| path.metadata().ok().filter(Metadata::is_file).map(|file| file.len()))
            .sum()
    }

    fn schema<G: FileTarget>(&self, goal: &G, is_grib: bool) -> Result<Arc<Schema>> {
        let schemas = goal.schemas()?;
        let of_name = |name: &str| schemas.iter().find(|schema| schema.name() == name);
        let chosen = match &self.schema {
            Some(name) => of_name(name),
            None if is_grib => of_name(header::SCHEMA).or(schemas.first()),
            None => schemas.first(),
        };
        if let Some(chosen) = chosen {
            return Ok(Arc::clone(chosen));
        }
        let names: Vec<&str> = schemas.iter().map(|schema| schema.name()).collect();
        let asked = self.schema.as_deref().unwrap_or_default();
        if Path::new(asked).is_file() {
            return schema_of_file(asked, &schemas, &goal.schema_command(asked));
        }
        let near = nearest(names.iter().copied(), asked);
        let meant = near.map_or_else(String::new, |near| format!("; did you mean {near}?"));
        let added = goal.schema_command("FILE");
        let cause = format!(
            "there is no such schema; there are {}{meant}; {added}",
            names.join(", ")
        );
        Err(Error::new(Code::NotFound, format!("schema {asked}"), cause))
    }

    fn put_messages<G: FileTarget>(
        &self,
        goal: &mut G,
        schema: &Schema,
        mut splitter: MessageSplitter,
        before: u64,
    ) -> Result<()> {
        let file: Arc<str> = splitter.input().name().into();
        let mut taken = FileObjects::default();
        loop {
            let rooms = goal.rooms();
            let next = splitter.next(&mut || goal.idle(), &mut |bytes| G::allocate(rooms, bytes));
            let place = InputPosition {
                file: Arc::clone(&file),
                message: Some(splitter.number()),
                field: None,
            };
            let put = match next {
                Ok(NextMessage::End) => break,
                Ok(NextMessage::Buffered(bytes)) => {
                    let put = self.put_buffered(goal, (schema, &mut taken), &splitter, &place, bytes);
                    splitter.take(bytes);
                    put
                }
                Ok(NextMessage::Placed(room)) => self.put_placed(goal, (schema, &mut taken), &splitter, &place, room),
                Ok(NextMessage::Damaged(error)) => Err(corrupt(&file, &error)),
                Err(error) if error.code() == Code::TooLarge => Err(place.error(&error)),
                Err(error) => return Err(error),
            };
            put.or_else(|error| goal.failed(error))?;
            goal.show(before + splitter.input().position());
        }
        if splitter.number() == 0 {
            return Err(foreign::no_message(&file, splitter.input().head()));
        }
        Ok(())
    }

    fn put_buffered<G: FileTarget>(
        &self,
        goal: &mut G,
        known: Known<'_>,
        splitter: &MessageSplitter,
        place: &InputPosition,
        bytes: usize,
    ) -> Result<()> {
        let message = splitter.message(bytes).map_err(|error| corrupt(&place.file, &error))?;
        let numbered = |error| corrupt(&place.file, &splitter.numbered(error));
        self.put_fields(goal, known, place, &message, &numbered, None)
    }

    fn put_placed<G: FileTarget>(
        &self,
        goal: &mut G,
        known: Known<'_>,
        splitter: &MessageSplitter,
        place: &InputPosition,
        room: G::Room,
    ) -> Result<()> {
        let numbered = |error| corrupt(&place.file, &splitter.numbered(error));
        let message = Message::new(&room).map_err(&numbered)?;
        if message.fields() > 1 && !self.messages.keep_messages {
            return self.put_fields(goal, known, place, &message, &numbered, None);
        }
        let keys = message.keys().map_err(&numbered)?;
        let hidden = message.fields() - 1;
        let attributes = header::attributes(&keys, known.0, &self.set).map_err(|error| place.error(&error))?;
        self.take(goal, known, place, &attributes, FilePayload::Placed(room))?;
        goal.hid(hidden);
        Ok(())
    }

    /// Writes a message: one object for each field, or one for all.
    fn put_fields<G: FileTarget>(
        &self,
        goal: &mut G,
        (schema, taken): Known<'_>,
        place: &InputPosition,
        message: &Message<'_>,
        numbered: &dyn Fn(GribError) -> Error,
        field: Option<u32>,
    ) -> Result<()> {
        if message.fields() > 1 && !self.messages.keep_messages {
            for (number, bytes) in (1..).zip(message.split().map_err(numbered)?) {
                let field = Message::new(&bytes).map_err(numbered)?;
                self.put_fields(goal, (schema, taken), place, &field, numbered, Some(number))?;
            }
            return Ok(());
        }
        let place = InputPosition { field, ..place.clone() };
        let keys = message.keys().map_err(numbered)?;
        let attributes = header::attributes(&keys, schema, &self.set).map_err(|error| place.error(&error))?;
        self.take(
            goal,
            (schema, taken),
            &place,
            &attributes,
            FilePayload::Bytes(message.bytes()),
        )?;
        goal.hid(message.fields() - 1);
        Ok(())
    }

    fn take<G: FileTarget>(
        &self,
        goal: &mut G,
        (schema, taken): Known<'_>,
        place: &InputPosition,
        attributes: &header::Attributes<'_>,
        payload: FilePayload<'_, G::Room>,
    ) -> Result<()> {
        let given = header::given(attributes);
        if !self.messages.strict && taken.places.len() >= KEYS_MAX {
            taken.places.clear();
        }
        let before = taken.note(schema, &given, place)?;
        if let Some(before) = before.as_ref().filter(|_| self.messages.strict) {
            let cause = format!("has the key of {before} of the same file, {}", taken.key);
            return Err(place.error(&Error::new(Code::AlreadyExists, "", cause)));
        }
        goal.take(place, schema, &given, payload)?;
        if before.is_some() {
            goal.repeated(schema);
        }
        Ok(())
    }

    fn put_whole<G: FileTarget>(
        &self,
        goal: &mut G,
        schema: &Schema,
        mut input: InputSource,
        path: &Path,
    ) -> Result<()> {
        let place = InputPosition {
            file: input.name().into(),
            message: None,
            field: None,
        };
        let mut set = self.set.clone();
        if let Some(name) = default_name(schema, &set, path) {
            set.push(name);
        }
        let attributes: Vec<_> = crate::attributes::given(&set).collect();
        let put = if let Some(bytes) = input.bytes() {
            let mut room = G::allocate(goal.rooms(), bytes).map_err(|error| place.error(&error))?;
            let read = input.read_into(&mut room, &mut || goal.idle())?;
            if read as u64 != bytes || !input.fill(1, &mut || goal.idle())?.is_empty() {
                let cause = "it changed its size while it was read";
                return Err(Error::new(Code::Conflict, &*place.file, cause));
            }
            goal.take(&place, schema, &attributes, FilePayload::Placed(room))
        } else {
            let bytes = read_all(&mut input, goal)?;
            goal.take(&place, schema, &attributes, FilePayload::Bytes(bytes))
        };
        put.map_err(|error| foreign::hint(error, input.head(), self.set.is_empty()))
            .map_err(|error| {
                let schemas = goal.schemas().unwrap_or_default();
                hint(
                    &with_schema(error, schema, self.schema.is_none()),
                    &schemas,
                    self.schema.is_some(),
                )
            })
            .or_else(|error| goal.failed(error))
    }
}

/// Maximum number of keys of a file that are compared, about 80 MB, since a pipe can be endless. With `--strict`, all are.
const KEYS_MAX: usize = 1 << 20;

/// The schema of a file's objects, and the keys so far.
type Known<'a> = (&'a Schema, &'a mut FileObjects);

/// The keys of the objects of one file, with their positions.
#[derive(Default)]
struct FileObjects {
    places: HashMap<KeyHash, InputPosition>,
    record: Vec<u8>,
    key: String,
}

impl FileObjects {
    /// Records a key. Returns the position of an earlier object with the same key, as text.
    fn note(&mut self, schema: &Schema, given: &[(&str, Given<'_>)], place: &InputPosition) -> Result<Option<String>> {
        schema
            .record(given.iter().copied(), &mut self.record)
            .map_err(|error| place.error(&error))?;
        self.key = schema.key_text(RecordRef::trusted(&self.record));
        let before = self.places.insert(schema.key_hash(&self.key), place.clone());
        Ok(before.map(|place| place.words()))
    }
}

/// Reads a pipe to its end.
///
/// # Errors
/// `TooLarge` if it has more than the destination accepts; the rest is not read.
fn read_all<'i, G: FileTarget>(input: &'i mut InputSource, goal: &mut G) -> Result<&'i [u8]> {
    let bytes_max = goal.payload_bytes_max()?;
    let enough = usize::try_from(bytes_max).map_or(usize::MAX, |bytes| bytes.saturating_add(1));
    let mut want = enough.min(PIPE_BYTES);
    while input.fill(want, &mut || goal.idle())?.len() >= want {
        if want == enough {
            let cause = format!(
                "it has more than {bytes_max} bytes, the largest payload; divide it, or serve the pool with a larger --budget"
            );
            return Err(Error::new(Code::TooLarge, input.name(), cause));
        }
        want = want.saturating_mul(2).min(enough);
    }
    Ok(input.buffered())
}

/// Returns zeroed memory. The system provides pages when they are written, so a size that is only claimed costs nothing.
///
/// # Errors
/// `TooLarge` if that much memory cannot be reserved.
pub(crate) fn zeros(bytes: u64, what: &str) -> Result<Vec<u8>> {
    let too_large = || Error::new(Code::TooLarge, what, format!("{bytes} bytes do not fit into memory"));
    let length = usize::try_from(bytes).map_err(|_| too_large())?;
    Vec::<u8>::new().try_reserve_exact(length).map_err(|_| too_large())?;
    Ok(vec![0; length])
}

fn corrupt(file: &str, error: &junctura_grib::GribError) -> Error {
    Error::new(Code::Corrupt, file, error.to_string())
}

/// Returns the file's name as the attribute `name`, if the key has one and the user gave none.
fn default_name(schema: &Schema, set: &[AttributePair], path: &Path) -> Option<AttributePair> {
    let id = schema.find("name").filter(|id| id.index() < schema.key_len())?;
    let is_given = set.iter().any(|pair| schema.find(&pair.name) == Some(id));
    let value = path.file_name().filter(|_| path.as_os_str() != "-" && !is_given)?;
    Some(AttributePair {
        name: "name".to_owned(),
        value: value.to_string_lossy().into_owned(),
    })
}

/// Returns the schema of the destination that is equal to the one in a file.
///
/// # Errors
/// `NotFound` if there is none of its name; `SchemaMismatch`, with the first difference, if it differs.
fn schema_of_file(file: &str, schemas: &[Arc<Schema>], added: &str) -> Result<Arc<Schema>> {
    let read = schema_files::read(file)?;
    let [own] = read.as_slice() else {
        let cause = "the file has several schemas: give the name of one";
        return Err(Error::new(Code::InvalidArgument, format!("schema {file}"), cause));
    };
    let subject = format!("schema {} of {file}", own.name());
    let Some(known) = schemas.iter().find(|schema| schema.name() == own.name()) else {
        return Err(Error::new(
            Code::NotFound,
            subject,
            format!("the schema is not there yet; {added}"),
        ));
    };
    match own.differences(known).into_iter().next() {
        None => Ok(Arc::clone(known)),
        Some(difference) => {
            let cause = format!(
                "the schema of this name differs ({difference}); --schema {} uses it",
                own.name()
            );
            Err(Error::new(Code::SchemaMismatch, subject, cause))
        }
    }
}

/// # Errors
/// `InvalidArgument` if two pairs are about one attribute, by the name that `name_of` returns.
fn must_be_distinct(set: &[AttributePair], name_of: impl Fn(&str) -> String) -> Result<()> {
    for (at, pair) in set.iter().enumerate() {
        let name = name_of(&pair.name);
        if let Some(first) = set[..at].iter().find(|first| name_of(&first.name) == name) {
            let cause = format!(
                "the attribute is given twice: --set {}={} and --set {}={}",
                first.name, first.value, pair.name, pair.value
            );
            return Err(Error::new(Code::InvalidArgument, name, cause));
        }
    }
    Ok(())
}

/// Prints that an undeclared attribute has, or nearly has, the name of an option.
fn note_option(pair: &AttributePair, schema: &Schema) {
    const OPTIONS: [&str; 5] = ["bundle", "retain", "retention", "schema", "timeout"];
    let AttributePair { name, value } = pair;
    let option = nearest(OPTIONS, name).filter(|_| schema.is_open() && schema.find(name).is_none());
    if let Some(option) = option {
        say!("junctura: --set {name}={value} adds an attribute to the object; --{option} is an option of its own");
    }
}

/// Names the schema in an error about attributes that it refuses, and why it applies.
fn with_schema(error: Error, schema: &Schema, is_default: bool) -> Error {
    let is_of_attributes = matches!(error.code(), Code::SchemaMismatch | Code::TypeMismatch);
    let name = schema.name();
    if !is_of_attributes || !is_default || error.cause().contains("; the schema is ") {
        return error;
    }
    let cause = format!(
        "{}; the schema is {name}, the first one, since --schema names none",
        error.cause()
    );
    error.because(cause)
}

/// Names a schema that accepts any attributes, if the user chose no schema.
pub(crate) fn hint(error: &Error, schemas: &[Arc<Schema>], chosen: bool) -> Error {
    let open = schemas.iter().find(|schema| schema.is_open());
    match open {
        Some(open) if error.code() == Code::SchemaMismatch && !chosen => {
            let (name, cause) = (open.name(), error.cause());
            let in_library = format!("; with schema {name} any attributes may be given");
            let cause = cause.replace(&in_library, "");
            let cause = format!("{cause}; with --schema {name} any attributes may be given");
            Error::new(error.code(), error.subject(), cause)
        }
        _ => error.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes payloads of a mebibyte and a half.
    struct Small;

    impl FileTarget for Small {
        type Room = Vec<u8>;
        type Rooms = ();

        fn rooms(&self) {}

        fn allocate((): (), bytes: u64) -> Result<Vec<u8>> {
            zeros(bytes, "payload")
        }

        fn payload_bytes_max(&self) -> Result<u64> {
            Ok(3 << 19)
        }

        fn schemas(&self) -> Result<Vec<Arc<Schema>>> {
            Ok(Vec::new())
        }

        fn schema_command(&self, _: &str) -> String {
            String::new()
        }

        fn take(
            &mut self,
            _: &InputPosition,
            _: &Schema,
            _: &[(&str, Given<'_>)],
            _: FilePayload<'_, Vec<u8>>,
        ) -> Result<()> {
            Ok(())
        }

        fn idle(&mut self) -> Result<()> {
            Ok(())
        }

        fn failed(&mut self, error: Error) -> Result<()> {
            Err(error)
        }

        fn show(&mut self, _: u64) {}

        fn repeated(&mut self, _: &Schema) {}

        fn hid(&mut self, _: u32) {}
    }

    #[test]
    fn what_has_no_end_is_read_up_to_the_largest_payload() {
        let mut endless = InputSource::open(Path::new("/dev/zero"), &InterruptFlag::never()).unwrap();
        let error = read_all(&mut endless, &mut Small).unwrap_err();
        assert_eq!(error.code(), Code::TooLarge);
        assert!(error.cause().contains("1572864 bytes"), "{error}");
        assert_eq!(endless.buffered().len(), (3 << 19) + 1);
        let mut empty = InputSource::open(Path::new("/dev/null"), &InterruptFlag::never()).unwrap();
        assert!(read_all(&mut empty, &mut Small).unwrap().is_empty());
        assert_eq!(zeros(u64::MAX, "payload").unwrap_err().code(), Code::TooLarge);
    }

    #[test]
    fn a_file_lends_its_name_where_the_key_has_one() {
        let (free, mars) = (Schema::builtin("free").unwrap(), Schema::builtin("mars").unwrap());
        let path = Path::new("a/plume.png");
        assert_eq!(
            default_name(&free, &[], path).map(|pair| pair.value),
            Some("plume.png".to_owned())
        );
        assert_eq!(default_name(&free, &[pair("name=x").unwrap()], path), None);
        assert_eq!(default_name(&free, &[], Path::new("-")), None);
        assert_eq!(default_name(&mars, &[], path), None);
    }
}
