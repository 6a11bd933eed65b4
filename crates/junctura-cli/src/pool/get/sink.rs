//! Where payloads go: standard output, one file, or a file each.
//!
//! A file is there whole or not at all: it is written beside its place and then moved there.

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

/// Where payloads go.
pub(crate) enum PayloadSink {
    Standard(StandardOutput),
    One {
        path: PathBuf,
        file: BufWriter<NamedTempFile>,
    },
    /// Something that is no regular file and cannot be replaced, such as a named pipe.
    Special {
        path: PathBuf,
        file: BufWriter<File>,
    },
    Each {
        folder: PathBuf,
        template: NameTemplate,
        /// Which key each name was given to, both as hashes: a follow may go on for months.
        names: HashMap<u64, u64>,
    },
}

/// What became of a payload.
#[derive(Debug)]
pub(crate) enum WrittenPayload {
    /// It is written: to the file of this name, if it has one.
    There(Option<PathBuf>),
    /// No file can have the object's name, or another object has it. Others may have one.
    Nameless(Error),
}

impl PayloadSink {
    /// Decides by what was asked for.
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
                // A newer version of an object takes the place of the one before.
                let key = hash(&(object.schema().name(), object.key()));
                if *names.entry(hash(&path)).or_insert(key) != key {
                    let cause = format!(
                        "two objects would have this name, {} the second: --template can tell them apart",
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

    /// What was written so far can be read, where that is possible before the end.
    pub(crate) fn flush(&mut self) -> Result<()> {
        match self {
            PayloadSink::Standard(out) => out.flush(),
            PayloadSink::Special { path, file } => file.flush().map_err(|error| io(path, &error)),
            PayloadSink::One { .. } | PayloadSink::Each { .. } => Ok(()),
        }
    }

    /// Puts what was written into its place.
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

/// A folder, or meant to be one.
pub(super) fn is_folder(path: &Path) -> bool {
    path.is_dir() || path.as_os_str().as_encoded_bytes().ends_with(b"/")
}

/// A regular file, or meant to be one.
pub(crate) fn is_regular(path: &Path) -> bool {
    path.as_os_str() != "-" && !is_folder(path) && fs::metadata(path).map_or(true, |about| about.is_file())
}

/// A file that will be moved to this path: with the permissions that a new file gets.
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

/// Whether a name is the reason, and not the folder or the disk.
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
    Error::new(Code::Io, path.display().to_string(), error.to_string())
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
