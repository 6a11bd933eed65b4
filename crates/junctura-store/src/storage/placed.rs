//! Errors of the system with the path of their file: a path within a store does not tell a user which store it is.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// An error of the system, and the path of the file that it is about.
#[derive(Debug)]
struct PlacedError {
    path: PathBuf,
    error: io::Error,
}

impl fmt::Display for PlacedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl std::error::Error for PlacedError {}

/// Adds a path, unless the error has one.
pub(crate) fn placed(path: &Path, error: io::Error) -> io::Error {
    if path_of(&error).is_some() {
        return error;
    }
    let path = path.to_owned();
    io::Error::new(error.kind(), PlacedError { path, error })
}

/// Returns the path of an error.
pub(crate) fn path_of(error: &io::Error) -> Option<&Path> {
    Some(&inner(error)?.path)
}

/// Returns whether an error is the system's own, and not one that this crate has made.
pub(crate) fn is_of_system(error: &io::Error) -> bool {
    let own = inner(error).map_or(error, |placed| &placed.error);
    own.raw_os_error().is_some()
}

fn inner(error: &io::Error) -> Option<&PlacedError> {
    error.get_ref()?.downcast_ref()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_path_and_the_kind_stay() {
        let system = io::Error::from_raw_os_error(21);
        let text = system.to_string();
        let error = placed(Path::new("/outer"), placed(Path::new("/store/log"), system));
        assert_eq!(path_of(&error), Some(Path::new("/store/log")));
        assert_eq!((error.kind(), error.to_string()), (io::ErrorKind::IsADirectory, text));
        assert!(is_of_system(&error));
        let made = placed(
            Path::new("/store"),
            io::Error::new(io::ErrorKind::ResourceBusy, "it is another store's"),
        );
        assert!(!is_of_system(&made));
    }
}
