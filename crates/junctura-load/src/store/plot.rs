//! The rows of the table as a picture, which Python draws with matplotlib.
//!
//! The program is started before the first row is measured, so that a missing matplotlib shows before an hour of load.
//! If it crashes later, the next row and the exit status report that, and the load continues: the rows are worth more
//! than their picture.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use junctura::{Code, Error, Result};
use junctura_terminal::say;

use super::row::RateRow;

const PROGRAM: &str = include_str!("plot.py");

/// A picture that waits for its rows.
pub(super) struct RatePlot {
    file: PathBuf,
    child: Child,
    rows: Option<ChildStdin>,
    told: BufReader<ChildStdout>,
    /// Why there will be no picture.
    lost: Option<Error>,
}

impl RatePlot {
    /// Begins one, with this Python.
    ///
    /// # Errors
    /// `Unsupported` without Python or matplotlib; `InvalidArgument` for a file that can be none.
    pub(super) fn begin(file: &Path, python: &OsStr) -> Result<Self> {
        let mut command = Command::new(python);
        command.args(["-c", PROGRAM]).arg(file);
        let spawned = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = spawned.map_err(|error| {
            let cause = format!("{error}; Python draws the picture: --python selects it");
            Error::new(Code::Unsupported, python.display().to_string(), cause)
        })?;
        let (Some(rows), Some(told)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Error::new(Code::Io, "python", "it has no input and output"));
        };
        let mut plot = Self {
            file: file.to_owned(),
            child,
            rows: Some(rows),
            told: BufReader::new(told),
            lost: None,
        };
        match plot.told()? {
            told if told == "ready" => Ok(plot),
            told if told.contains("pip install") => Err(plot.failed(Code::Unsupported, told)),
            told => Err(plot.failed(Code::InvalidArgument, told)),
        }
    }

    /// Adds a row, as long as the program runs.
    pub(super) fn add(&mut self, row: &RateRow) {
        let line = serde_json::to_string(row).unwrap_or_default();
        let rows = self.rows.as_mut();
        if let Err(error) = rows.map_or(Ok(()), |rows| writeln!(rows, "{line}")) {
            let error = self.failed(Code::Io, format!("the program that draws it has died: {error}"));
            say!("junctura: {error}; the load continues");
            self.rows = None;
            self.lost = Some(error);
        }
    }

    /// Draws what was added.
    ///
    /// # Errors
    /// `Io` when that cannot be, also since the program has died before.
    pub(super) fn draw(mut self) -> Result<()> {
        self.rows = None;
        if let Some(error) = self.lost.take() {
            return Err(error);
        }
        match self.told()? {
            told if told == "drawn" => Ok(()),
            told => Err(self.failed(Code::Io, told)),
        }
    }

    fn told(&mut self) -> Result<String> {
        let mut line = String::new();
        match self.told.read_line(&mut line) {
            Ok(0) => Err(self.failed(Code::Io, "the program that draws it has died".to_owned())),
            Ok(_) => Ok(line.trim_end().to_owned()),
            Err(error) => Err(self.failed(Code::Io, error.to_string())),
        }
    }

    fn failed(&self, code: Code, cause: String) -> Error {
        Error::new(code, format!("--plot {}", self.file.display()), cause)
    }
}

impl Drop for RatePlot {
    fn drop(&mut self) {
        // It may have ended by itself.
        self.rows = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
