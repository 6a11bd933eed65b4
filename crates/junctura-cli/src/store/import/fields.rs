//! The fields of an FDB, as its own Python package lists them.
//!
//! ```text
//!  junctura ──starts──> python, fdb_listing.py, pyfdb ──reads──> catalogue of FDB
//!     └──reads──> data files of FDB           │
//!     <────────── a JSON line for each field ─┘
//! ```
//! The format of FDB's catalogue on disk is internal to FDB and changes. FDB returns the location of each field: a file, an
//! offset, and a length.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, BufReader, Read as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};
use std::thread::JoinHandle;

use junctura::{Code, Error, Result};
use serde::Deserialize;

const PROGRAM: &str = include_str!("fdb_listing.py");
/// Maximum length of the messages of a process that are repeated when it ends.
const LAST_WORDS_MAX: usize = 400;
/// Maximum number of open data files.
const FILES_MAX: usize = 64;

/// One field: its key in three levels, and the location of its bytes.
#[derive(Debug, Deserialize)]
pub(super) struct FdbField {
    pub(super) key: [BTreeMap<String, String>; 3],
    #[serde(flatten)]
    pub(super) bytes: FieldLocation,
}

/// Location of the bytes of a field.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct FieldLocation {
    scheme: String,
    pub(super) file: String,
    offset: u64,
    pub(super) length: u64,
}

impl FdbField {
    /// Returns the attributes with their levels: FDB lists omitted ones with an empty text.
    pub(super) fn attributes(&self) -> impl Iterator<Item = (usize, &str, &str)> {
        let levels = self.key.iter().enumerate();
        let all = levels.flat_map(|(level, of_level)| of_level.iter().map(move |(name, text)| (level, name, text)));
        let given = all.filter(|(_, _, text)| !text.is_empty());
        given.map(|(level, name, text)| (level, name.as_str(), text.as_str()))
    }

    /// Returns the name for messages.
    pub(super) fn name(&self) -> String {
        let of_level = |level: usize| {
            let given = self.attributes().filter(|(at, ..)| *at == level);
            given
                .map(|(_, name, text)| format!("{name}={text}"))
                .collect::<Vec<_>>()
                .join(",")
        };
        format!("{{{}}}{{{}}}{{{}}}", of_level(0), of_level(1), of_level(2))
    }
}

/// The schema file of an FDB.
#[derive(Debug, Deserialize)]
pub(super) struct SchemaFile {
    pub(super) file: String,
    pub(super) text: String,
    /// The reason if it could not be read.
    pub(super) error: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum ListingLine {
    Schema(SchemaFile),
    Field(FdbField),
    Error { code: String, cause: String },
    End,
}

/// A listing during its output. Dropping it ends the process.
pub(super) struct FieldListing {
    child: Child,
    told: BufReader<ChildStdout>,
    last_words: Option<JoinHandle<String>>,
    root: String,
}

impl FieldListing {
    /// Starts to list, with this Python, the newest version of each field, or all versions, newest first; the schema is first.
    ///
    /// # Errors
    /// `Unsupported` without Python or FDB's package; `NotFound` if there is no FDB.
    pub(super) fn of(root: &Path, python: &OsStr, all_versions: bool) -> Result<(SchemaFile, FieldListing)> {
        let mut command = Command::new(python);
        let versions = if all_versions { "all" } else { "newest" };
        command.args(["-c", PROGRAM]).arg(root).arg(versions);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| {
            let cause =
                format!("{error}; FDB is read with its own Python package: --python selects the Python that has it");
            Error::new(Code::Unsupported, python.display().to_string(), cause)
        })?;
        let (Some(told), Some(noise)) = (child.stdout.take(), child.stderr.take()) else {
            return Err(Error::new(Code::Io, "python", "it has no output"));
        };
        let mut fields = FieldListing {
            child,
            told: BufReader::new(told),
            last_words: Some(std::thread::spawn(move || last_words(noise))),
            root: root.display().to_string(),
        };
        match fields.told()? {
            ListingLine::Schema(schema) => Ok((schema, fields)),
            _ => Err(Error::new(
                Code::Protocol,
                &fields.root,
                "the listing does not begin with a schema",
            )),
        }
    }

    /// Returns the next field, if there is one.
    pub(super) fn next(&mut self) -> Result<Option<FdbField>> {
        match self.told()? {
            ListingLine::Field(field) => Ok(Some(field)),
            ListingLine::End => Ok(None),
            _ => Err(Error::new(Code::Protocol, &self.root, "the listing has no field")),
        }
    }

    fn told(&mut self) -> Result<ListingLine> {
        let mut line = String::new();
        let read = self.told.read_line(&mut line);
        let length = read.map_err(|error| Error::new(Code::Io, &self.root, error.to_string()))?;
        if length == 0 {
            return Err(self.died());
        }
        match serde_json::from_str(&line) {
            Ok(ListingLine::Error { code, cause }) => {
                let code = Code::from_name(&code).unwrap_or(Code::Io);
                Err(Error::new(code, format!("FDB {}", self.root), cause))
            }
            Ok(told) => Ok(told),
            Err(error) => Err(Error::new(Code::Protocol, &self.root, error.to_string())),
        }
    }

    /// Returns the reason for a missing line.
    fn died(&mut self) -> Error {
        let ended = self
            .child
            .wait()
            .map_or_else(|error| error.to_string(), |status| status.to_string());
        let words = self.last_words.take().and_then(|words| words.join().ok());
        let cause = format!("the listing ended early ({ended}): {}", words.unwrap_or_default());
        Error::new(Code::Io, format!("FDB {}", self.root), cause)
    }
}

impl Drop for FieldListing {
    fn drop(&mut self) {
        // The process may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Keeps the last messages of a process.
fn last_words(mut noise: ChildStderr) -> String {
    let (mut kept, mut read) = (Vec::new(), [0; 4096]);
    while let Ok(count @ 1..) = noise.read(&mut read) {
        kept.extend_from_slice(&read[..count]);
        kept.drain(..kept.len().saturating_sub(LAST_WORDS_MAX));
    }
    String::from_utf8_lossy(&kept).trim().to_owned()
}

/// Data files, kept open.
#[derive(Default)]
pub(super) struct DataFiles {
    open: HashMap<String, File>,
}

impl DataFiles {
    /// Reads the bytes of a field.
    ///
    /// # Errors
    /// `Unsupported` for a field outside a file; errors of the system.
    pub(super) fn read(&mut self, name: &str, field: &FieldLocation, bytes: &mut Vec<u8>) -> Result<()> {
        if !matches!(field.scheme.as_str(), "" | "file") {
            let cause = format!(
                "its bytes are at {}: {}, and only files are read",
                field.scheme, field.file
            );
            return Err(Error::new(Code::Unsupported, name, cause));
        }
        let failed = |error: std::io::Error| {
            let cause = format!("{} at {}: {error}", field.file, field.offset);
            Error::new(Code::Io, name, cause)
        };
        if !self.open.contains_key(&field.file) && self.open.len() == FILES_MAX {
            self.open.clear();
        }
        let file = match self.open.entry(field.file.clone()) {
            std::collections::hash_map::Entry::Occupied(open) => open.into_mut(),
            std::collections::hash_map::Entry::Vacant(place) => place.insert(File::open(&field.file).map_err(failed)?),
        };
        bytes.clear();
        let length = usize::try_from(field.length);
        let room = length.ok().filter(|&length| bytes.try_reserve_exact(length).is_ok());
        let Some(length) = room else {
            let cause = format!("{} bytes do not fit into memory", field.length);
            return Err(Error::new(Code::TooLarge, name, cause));
        };
        bytes.resize(length, 0);
        file.read_exact_at(bytes, field.offset).map_err(failed)
    }
}
