//! Metrics in a file, for the textfile collector of `node_exporter`.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use junctura::{Code, Error, PoolBoard, Result};

use crate::metrics::families::{ShownNames, metrics_text};

/// A file that is replaced as a whole, and removed in the end.
pub(super) struct MetricsFile {
    path: PathBuf,
    board: PoolBoard,
}

impl MetricsFile {
    pub(super) fn new(path: &Path, board: PoolBoard) -> Self {
        Self {
            path: path.to_owned(),
            board,
        }
    }

    /// Writes the file: a reader sees the old text or the new one.
    ///
    /// # Errors
    /// `Io` when it cannot be written.
    pub(super) fn write(&self) -> Result<()> {
        let failed = |error: std::io::Error| Error::new(Code::Io, self.path.display().to_string(), error.to_string());
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let mut file = tempfile::Builder::new()
            .prefix(".junctura-metrics-")
            .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644))
            .tempfile_in(folder.unwrap_or(Path::new(".")))
            .map_err(failed)?;
        let text = metrics_text(&self.board, ShownNames::All);
        file.write_all(text.as_bytes()).map_err(failed)?;
        file.persist(&self.path).map_err(|error| failed(error.error))?;
        Ok(())
    }
}

impl Drop for MetricsFile {
    fn drop(&mut self) {
        // Numbers of a server that has ended would look like those of one that rests.
        let _ = fs::remove_file(&self.path);
    }
}
