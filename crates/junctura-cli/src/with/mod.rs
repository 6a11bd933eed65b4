//! `junctura with`: runs a program that does not know Junctura, with libraries that intercept its files.
//!
//! It sets the environment of the program: rules, the pool, the libraries that the dynamic linker loads first, and a folder
//! in which each process reports at its end. Programs that these libraries cannot reach are refused before the start.

mod children;
mod libraries;
mod mapping;
mod programs;
mod summary;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;
use junctura::{Code, Error, Result};
use junctura_terminal::interrupt::InterruptFlag;
use junctura_terminal::program::ProgramWords;

use crate::url::PoolArguments;
use libraries::MpiFamily;

const EXAMPLES: &str = "Examples:
  junctura with --netcdf 'wrfout*=pool' -- mpirun -n 4 ./wrf.exe      history goes into the pool, and into no file
  junctura with --netcdf 'hist*.nc=tee' -- ./model                    into the file and into the pool
  junctura with --netcdf 'wrfout*=pool' -- ncdump wrfout_d01          a reader waits for the file
  junctura with --netcdf 'out*.nc=stub' -- cdo -s fldmean out.nc m.nc for readers that look for the file first
  junctura with --mpi-io 'snap*=array,*.h5=bytes' -- mpirun -n 8 ./solver
The first rule that matches a file decides; a file that no rule matches is left alone. Modes of --netcdf: pool, tee (file and
pool), stub (pool, and a file without data), file. Modes of --mpi-io: array, bytes, file.
The exit status is that of the program; 128 and the number of a signal that ended it.";

const NETCDF_MODES: [&str; 4] = ["pool", "tee", "stub", "file"];
const MPI_IO_MODES: [&str; 3] = ["array", "bytes", "file"];

/// Run a program that writes or reads netCDF files or files of MPI-IO, with these files in the pool
///
/// The program is not changed: libraries that are loaded before its own intercept the calls for files that match a rule. They reach
/// programs that are dynamically linked.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
#[allow(clippy::doc_markdown, reason = "the comments are the text of the help")]
pub(crate) struct WithArguments {
    /// Rules for netCDF files: PATTERN=MODE, separated by commas
    #[arg(long, value_name = "RULES", required_unless_present = "mpi_io")]
    netcdf: Option<String>,
    /// Rules for files of MPI-IO: PATTERN=MODE, separated by commas
    #[arg(long, value_name = "RULES")]
    mpi_io: Option<String>,
    /// A file that maps variables to attributes, and to the schema of their objects
    #[arg(long, value_name = "FILE", requires = "netcdf")]
    map: Option<PathBuf>,
    /// The MPI of the program (default: that of its libraries, or of its launcher)
    #[arg(long, value_name = "FAMILY", requires = "mpi_io")]
    mpi: Option<MpiFamily>,
    /// Print no report of the intercepted files
    #[arg(long, short)]
    quiet: bool,
    /// The program and its arguments
    #[arg(
        value_name = "COMMAND",
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    command: Vec<OsString>,
    #[command(flatten)]
    pool: PoolArguments,
}

/// Runs the program and returns its exit status.
pub(crate) fn run(arguments: &WithArguments, program: &ProgramWords) -> Result<u8> {
    check_rules("--netcdf", arguments.netcdf.as_deref(), &NETCDF_MODES)?;
    check_rules("--mpi-io", arguments.mpi_io.as_deref(), &MPI_IO_MODES)?;
    let found = programs::programs_of(&arguments.command);
    programs::refuse_static(&found)?;
    let folder = libraries::folder(program)?;
    let mut preloaded = Vec::new();
    if arguments.netcdf.is_some() {
        preloaded.push(libraries::find(&folder, "netcdf")?);
    }
    if arguments.mpi_io.is_some() {
        programs::refuse_static_mpi(&found)?;
        let family = match arguments.mpi {
            Some(family) => family,
            None => libraries::family_of(&found, &arguments.command[0])?,
        };
        preloaded.push(libraries::find(&folder, family.library())?);
    }
    let map = arguments.map.as_deref().map(existing).transpose()?;
    // The server of the pool is started, and stays while the program runs.
    let pool = arguments.pool.connect(&InterruptFlag::never(), "junctura with")?;
    if let Some(map) = &map {
        mapping::check(map, &pool)?;
    }
    let reports = tempfile::tempdir().map_err(|error| failed("a folder for reports", &error))?;
    let mut command = Command::new(&arguments.command[0]);
    command.args(&arguments.command[1..]);
    command.env("JUNCTURA_POOL", pool.url());
    command.env("JUNCTURA_INTERCEPT_REPORT", reports.path());
    command.env(
        "LD_PRELOAD",
        joined(&preloaded, std::env::var_os("LD_PRELOAD").as_deref()),
    );
    for (name, rules) in [
        ("JUNCTURA_NETCDF", &arguments.netcdf),
        ("JUNCTURA_MPI_IO", &arguments.mpi_io),
    ] {
        if let Some(rules) = rules {
            command.env(name, rules);
        }
    }
    if let Some(map) = &map {
        command.env("JUNCTURA_NETCDF_MAP", map);
    }
    if std::env::var_os(libraries::FORWARDED).is_none() {
        let names: Vec<&OsStr> = command.get_envs().map(|(name, _)| name).collect();
        command.env(libraries::FORWARDED, names.join(OsStr::new(";")));
    }
    let status = children::run_to_end(command)?;
    if !arguments.quiet {
        summary::print(reports.path());
    }
    drop(pool);
    Ok(status)
}

/// Checks rules as the libraries read them.
fn check_rules(option: &str, rules: Option<&str>, modes: &[&str]) -> Result<()> {
    for rule in rules.into_iter().flat_map(|rules| rules.split(',')) {
        let is_valid = rule
            .rsplit_once('=')
            .is_some_and(|(pattern, mode)| !pattern.is_empty() && modes.contains(&mode));
        if !is_valid {
            let cause = format!(
                "expected PATTERN=MODE, where MODE is one of {}, found {rule:?}",
                modes.join(", ")
            );
            return Err(Error::new(Code::InvalidArgument, option, cause));
        }
    }
    Ok(())
}

/// Returns the whole path of a file that must exist: the program may run in another folder.
fn existing(path: &Path) -> Result<PathBuf> {
    path.canonicalize()
        .map_err(|error| Error::new(Code::NotFound, path.display().to_string(), error.to_string()))
}

/// Returns the value of `LD_PRELOAD`: these libraries before those of the user.
fn joined(libraries: &[PathBuf], given: Option<&OsStr>) -> OsString {
    let mut all = OsString::new();
    for library in libraries {
        if !all.is_empty() {
            all.push(":");
        }
        all.push(library);
    }
    if let Some(given) = given.filter(|given| !given.is_empty()) {
        all.push(":");
        all.push(given);
    }
    all
}

fn failed(subject: &str, error: &std::io::Error) -> Error {
    Error::new(Code::Io, subject, error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_have_a_pattern_and_a_known_mode() {
        for valid in ["a*=pool", "a=b*=tee,*=file", "wrfout*=stub"] {
            check_rules("--netcdf", Some(valid), &NETCDF_MODES).unwrap();
        }
        for invalid in ["a*", "=pool", "a=both", "a=pool,", ""] {
            let error = check_rules("--netcdf", Some(invalid), &NETCDF_MODES).unwrap_err();
            assert_eq!((error.code(), error.subject()), (Code::InvalidArgument, "--netcdf"));
        }
        check_rules("--netcdf", None, &NETCDF_MODES).unwrap();
    }

    #[test]
    fn libraries_of_the_user_are_loaded_too() {
        let own = [PathBuf::from("/a.so"), PathBuf::from("/b.so")];
        assert_eq!(joined(&own, None), "/a.so:/b.so");
        assert_eq!(joined(&own[..1], Some(OsStr::new("/c.so"))), "/a.so:/c.so");
        assert_eq!(joined(&own[..1], Some(OsStr::new(""))), "/a.so");
    }
}
