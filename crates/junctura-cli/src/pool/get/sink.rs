//! Destinations of payloads: standard output, one file, or a file for each object.
//!
//! A file appears complete or not at all: it is written to a temporary name and then renamed.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use junctura::{Code, Error, Result};
use junctura_terminal::output::{self, StandardOutput};
use tempfile::{Builder, NamedTempFile};

use super::got::ReceivedObject;
use super::template::{self, NameTemplate};

/// A destination of payloads.
pub(crate) enum PayloadSink {
    Standard(StandardOutput),
    One {
        path: PathBuf,
        file: BufWriter<NamedTempFile>,
    },
    /// A special file that cannot be replaced, such as a named pipe.
    Special {
        path: PathBuf,
        file: BufWriter<File>,
    },
    Each {
        folder: PathBuf,
        template: NameTemplate,
        /// The key of each name, both as hashes: a follow can last for months.
        names: HashMap<u64, u64>,
    },
}

/// Outcome of a write.
#[derive(Debug)]
pub(crate) enum WrittenPayload {
    /// The payload was written, to the file of this name if it has one.
    There(Option<PathBuf>),
    /// No file can have the object's name, or another object has it. Other objects may still be written.
    Nameless(Error),
}

impl PayloadSink {
    /// Selects the destination by the options.
    pub(crate) fn open(output: Option<&Path>, template: Option<&NameTemplate>) -> Result<PayloadSink> {
        match (output, template) {
            (None, None) if output::is_terminal() => {
                let cause = "the payload is not for a terminal: name a file with -o, or insist with -o -";
                Err(Error::new(Code::InvalidArgument, "standard output", cause))
            }
            (None, None) => Ok(PayloadSink::Standard(StandardOutput::new())),
            (Some(path), None) if path.as_os_str() == "-" => Ok(PayloadSink::Standard(StandardOutput::new())),
            (Some(path), _) if path.as_os_str() == "-" => Err(Error::new(
                Code::InvalidArgument,
                "-o -",
                "standard output needs no names of files",
            )),
            (Some(path), None) if !is_folder(path) => PayloadSink::one(path),
            (folder, template) => {
                let template = match template {
                    Some(template) => template.clone(),
                    None => NameTemplate::parse(template::DEFAULT)
                        .map_err(|error| Error::new(Code::InvalidArgument, "template", error))?,
                };
                Ok(PayloadSink::Each {
                    folder: folder.unwrap_or(Path::new(".")).to_owned(),
                    template,
                    names: HashMap::new(),
                })
            }
        }
    }

    fn one(path: &Path) -> Result<PayloadSink> {
        let failed = |error: std::io::Error| io(path, &error);
        if fs::metadata(path).is_ok_and(|about| !about.is_file()) {
            let file = OpenOptions::new().write(true).open(path).map_err(failed)?;
            return Ok(PayloadSink::Special {
                path: path.to_owned(),
                file: BufWriter::new(file),
            });
        }
        let file = beside(path).map_err(failed)?;
        Ok(PayloadSink::One {
            path: path.to_owned(),
            file: BufWriter::with_capacity(256 << 10, file),
        })
    }

    /// Writes an object's payload.
    pub(crate) fn write(&mut self, object: &impl ReceivedObject) -> Result<WrittenPayload> {
        match self {
            PayloadSink::Standard(out) => out.bytes(object.payload()).map(|()| WrittenPayload::There(None)),
            PayloadSink::One { path, file } => {
                file.write_all(object.payload()).map_err(|error| io(path, &error))?;
                Ok(WrittenPayload::There(Some(path.clone())))
            }
            PayloadSink::Special { path, file } => {
                file.write_all(object.payload()).map_err(|error| io(path, &error))?;
                Ok(WrittenPayload::There(Some(path.clone())))
            }
            PayloadSink::Each {
                folder,
                template,
                names,
            } => {
                let path = match template.name(object) {
                    Ok(name) => folder.join(name),
                    Err(error) => return Ok(WrittenPayload::Nameless(error)),
                };
                // A newer version of an object replaces the older one.
                let key = hash(&(object.schema().name(), object.key()));
                if *names.entry(hash(&path)).or_insert(key) != key {
                    let cause = format!(
                        "two objects would have this name, {} the second: distinguish them with --template",
                        object.key()
                    );
                    let error = Error::new(Code::Conflict, path.display().to_string(), cause);
                    return Ok(WrittenPayload::Nameless(error));
                }
                match write_whole(&path, object.payload()) {
                    Ok(()) => Ok(WrittenPayload::There(Some(path))),
                    Err(error) if is_of_name(&error) => Ok(WrittenPayload::Nameless(io(&path, &error))),
                    Err(error) => Err(io(&path, &error)),
                }
            }
        }
    }

    /// Flushes the output so far, if it is readable before the end.
    pub(crate) fn flush(&mut self) -> Result<()> {
        match self {
            PayloadSink::Standard(out) => out.flush(),
            PayloadSink::Special { path, file } => file.flush().map_err(|error| io(path, &error)),
            PayloadSink::One { .. } | PayloadSink::Each { .. } => Ok(()),
        }
    }

    /// Renames the written file to its name.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.flush()?;
        if let PayloadSink::One { path, file } = self {
            let file = file.into_inner().map_err(|error| io(&path, error.error()))?;
            file.persist(&path).map_err(|error| io(&path, &error.error))?;
        }
        Ok(())
    }
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// Whether the path is a folder, or must become one.
pub(super) fn is_folder(path: &Path) -> bool {
    path.is_dir() || path.as_os_str().as_encoded_bytes().ends_with(b"/")
}

/// Whether the path is a regular file, or must become one.
pub(crate) fn is_regular(path: &Path) -> bool {
    path.as_os_str() != "-" && !is_folder(path) && fs::metadata(path).map_or(true, |about| about.is_file())
}

/// Creates a file that will be renamed to this path, with the permissions of a new file.
fn beside(path: &Path) -> std::io::Result<NamedTempFile> {
    use std::os::unix::fs::PermissionsExt;
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    Builder::new()
        .prefix(".junctura-")
        .permissions(fs::Permissions::from_mode(0o666))
        .tempfile_in(folder)
}

fn write_whole(path: &Path, payload: &[u8]) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut file = beside(path)?;
    file.write_all(payload)?;
    file.persist(path)?;
    Ok(())
}

/// Whether the name is the reason of an error, and not the folder or the disk.
fn is_of_name(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{
        AlreadyExists, DirectoryNotEmpty, InvalidFilename, InvalidInput, IsADirectory, NotADirectory,
    };
    matches!(
        error.kind(),
        AlreadyExists | DirectoryNotEmpty | InvalidFilename | InvalidInput | IsADirectory | NotADirectory
    )
}

fn io(path: &Path, error: &std::io::Error) -> Error {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty() && !folder.exists());
    let cause = match folder {
        Some(folder) => format!("the folder {} does not exist; create it first", folder.display()),
        // The error of a temporary file names it; its source does not.
        None => std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string),
    };
    Error::new(Code::Io, path.display().to_string(), cause)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_only_when_it_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("field.grib");
        fs::write(&path, "old").unwrap();
        let PayloadSink::One { mut file, .. } = PayloadSink::open(Some(&path), None).unwrap() else {
            panic!("not one file")
        };
        file.write_all(b"half").unwrap();
        drop(file);
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);

        let mut sink = PayloadSink::open(Some(&path), None).unwrap();
        let PayloadSink::One { file, .. } = &mut sink else {
            panic!("not one file")
        };
        file.write_all(b"whole").unwrap();
        sink.finish().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"whole");
    }

    #[test]
    fn what_is_meant_shows_in_the_path() {
        let folder = tempfile::tempdir().unwrap();
        let template = NameTemplate::parse("{param}").unwrap();
        let each = |output: Option<&Path>, template| {
            matches!(PayloadSink::open(output, template), Ok(PayloadSink::Each { .. }))
        };
        assert!(each(Some(folder.path()), None));
        assert!(each(Some(Path::new("new/")), None));
        assert!(each(None, Some(&template)));
        assert!(PayloadSink::open(Some(Path::new("-")), Some(&template)).is_err());
        assert!(matches!(
            PayloadSink::open(Some(Path::new("/dev/null")), None),
            Ok(PayloadSink::Special { .. })
        ));
        assert!(PayloadSink::open(Some(&folder.path().join("no/such/folder")), None).is_err());
    }
}
