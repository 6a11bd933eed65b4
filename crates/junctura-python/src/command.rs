//! The command `junctura`, from the package: `python -m junctura`.

use std::ffi::OsString;
use std::io::Write;

use junctura_cli::ProgramWords;
use pyo3::prelude::*;

/// Runs a command line; returns the exit status. The caller has disabled its SIGINT handler.
///
/// `again` is how this command is started once more, where it needs further processes.
#[pyfunction]
#[pyo3(name = "_command")]
pub(crate) fn command(py: Python<'_>, arguments: Vec<OsString>, again: Vec<OsString>) -> u8 {
    py.detach(|| {
        junctura_cli::log();
        let status = junctura_cli::run(&ProgramWords::of(again), arguments);
        // A Rust program does that at exit. The output may have no reader.
        let _ = std::io::stdout().flush();
        status
    })
}
