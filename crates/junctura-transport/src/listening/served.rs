//! The servers of a folder with sockets.

use std::io::ErrorKind;
use std::os::unix::net::UnixStream;
use std::path::Path;

/// Returns whether a server accepts connections at this socket.
///
/// ```
/// assert!(!junctura_transport::is_served(std::path::Path::new("/no/such.sock")));
/// ```
#[must_use]
pub fn is_served(socket: &Path) -> bool {
    !matches!(UnixStream::connect(socket), Err(error)
        if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused))
}

/// Returns the names of the sockets in a folder that are served, in alphabetical order.
///
/// ```
/// let folder = tempfile::tempdir().unwrap();
/// let _model = std::os::unix::net::UnixListener::bind(folder.path().join("model.sock")).unwrap();
/// assert_eq!(junctura_transport::served_in(folder.path()), ["model"]);
/// ```
#[must_use]
pub fn served_in(folder: &Path) -> Vec<String> {
    let Ok(entries) = folder.read_dir() else {
        return Vec::new();
    };
    let mut served: Vec<String> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "sock") && is_served(path))
        .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
        .collect();
    served.sort_unstable();
    served
}
