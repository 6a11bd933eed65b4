//! Files for people, such as schemas, requirements and certificates: read up to a limit, since a path may name a device or a pipe without end.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

use junctura_model::{Code, Error, Result, nearest};

/// A file for people has no more bytes.
pub const TEXT_BYTES_MAX: u64 = 4 << 20;

/// Reads a file for people: at most [`TEXT_BYTES_MAX`] bytes. May wait, where the path names a pipe.
///
/// # Errors
/// As [`read_text_of`].
pub fn read_text(path: &Path) -> Result<String> {
    read_text_of(path, TEXT_BYTES_MAX)
}

/// Reads a text of at most so many bytes.
///
/// # Errors
/// `TooLarge` for a longer file, of which no more was read; `NotFound`; `InvalidArgument` for bytes that are not UTF-8; `Io`.
pub fn read_text_of(path: &Path, bytes_max: u64) -> Result<String> {
    let bytes = read_bytes_of(path, bytes_max)?;
    let invalid = |cause: String| Error::new(Code::InvalidArgument, path.display().to_string(), cause);
    String::from_utf8(bytes).map_err(|error| invalid(error.utf8_error().to_string()))
}

/// Reads a file for people, such as one of certificates, that need not be a text: at most [`TEXT_BYTES_MAX`] bytes.
///
/// # Errors
/// `TooLarge` for a longer file, of which no more was read; `NotFound`; `Io`.
pub fn read_bytes(path: &Path) -> Result<Vec<u8>> {
    read_bytes_of(path, TEXT_BYTES_MAX)
}

/// Names in a folder that are compared with a misspelled one.
const NAMES_MAX: usize = 4096;

/// Returns a hint for a file that does not exist: the most similar name in its folder. Empty if there is none.
#[must_use]
pub fn near_file(path: &Path) -> String {
    let near = || {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let names = std::fs::read_dir(folder.unwrap_or(Path::new("."))).ok()?;
        let names: Vec<String> = names
            .take(NAMES_MAX)
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok())
            .collect();
        let near = nearest(names.iter().map(String::as_str), path.file_name()?.to_str()?)?;
        let near = folder.map_or_else(|| Path::new(near).to_path_buf(), |folder| folder.join(near));
        Some(format!("; did you mean {}?", near.display()))
    };
    near().unwrap_or_default()
}

/// Reads a file of at most so many bytes.
///
/// # Errors
/// `TooLarge` for a longer file, of which no more was read; `NotFound`; `Io`.
fn read_bytes_of(path: &Path, bytes_max: u64) -> Result<Vec<u8>> {
    let named = |code, cause: String| Error::new(code, path.display().to_string(), cause);
    let io = |error: std::io::Error| match error.kind() {
        ErrorKind::NotFound => named(Code::NotFound, format!("{error}{}", near_file(path))),
        _ => named(Code::Io, error.to_string()),
    };
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(io)?;
    file.take(bytes_max.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(io)?;
    if bytes.len() as u64 > bytes_max {
        let cause = format!("it has more than {bytes_max} bytes, the most for such a file");
        return Err(named(Code::TooLarge, cause));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_read_up_to_its_limit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("text");
        let code = |outcome: Result<String>| outcome.unwrap_err().code();
        assert_eq!(code(read_text(&path)), Code::NotFound);
        std::fs::write(&path, "four").unwrap();
        assert_eq!(read_text(&path).unwrap(), "four");
        assert_eq!(read_text_of(&path, 4).unwrap(), "four");
        assert_eq!(code(read_text_of(&path, 3)), Code::TooLarge);
        std::fs::write(&path, [0xff]).unwrap();
        assert_eq!(code(read_text(&path)), Code::InvalidArgument);
        assert_eq!(read_bytes(&path).unwrap(), [0xff]);
        let endless = read_text(Path::new("/dev/zero")).unwrap_err();
        assert_eq!((endless.code(), endless.subject()), (Code::TooLarge, "/dev/zero"));
    }
}
