//! Starts a server when a pool is opened for which none is running.
//!
//! The server is the `junctura` program, a separate process that outlives this one and exits when idle. If several
//! processes find no server, one starts it: they queue on a lock beside the socket, and the process that gets the lock
//! checks again before it starts a server. The program reports on its standard output that it listens, so no process
//! polls or sleeps.

use std::ffi::OsString;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use junctura_model::{Code, Error, Result, nearest};
use junctura_transport::{ServerAddress, is_served, served_in};
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::retry_on_intr;

use crate::builder::{SchemaOrigin, ServerSettings};

/// The environment variable that names the program.
const PROGRAM_VARIABLE: &str = "JUNCTURA_PROGRAM";
/// Variables that programs set for their numerical libraries. They are not passed on: a server outlives the program
/// that starts it and serves other programs.
const OF_THE_PROGRAM: [&str; 3] = ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"];
/// How long a server that was started here runs without clients and objects.
const IDLE_TIME: &str = "10s";
/// A server that exits at the same time makes the start of the next one fail; a few attempts suffice.
const ATTEMPTS: usize = 3;

/// Starts a server unless another process has, and calls `connect`. Returns a hint, too, if a server was started here and a pool with a
/// similar name is served.
///
/// # Errors
/// `Unavailable` if no program is found or it did not start; those of `connect`.
pub(crate) fn start<T>(
    address: &ServerAddress,
    settings: &ServerSettings,
    schemas: &[SchemaOrigin],
    connect: impl Fn() -> Result<T>,
) -> Result<(T, Option<String>)> {
    let _turn = take_turn(address)?;
    let mut hint = None;
    for _ in 1..ATTEMPTS {
        match connect() {
            Err(error) if error.code() == Code::Unavailable => {
                hint = similar_name(address);
                run(address, settings, schemas)?;
            }
            other => return other.map(|opened| (opened, hint)),
        }
    }
    connect().map(|opened| (opened, hint))
}

/// Returns a hint if a pool with a similar name is served: the name may be misspelled.
fn similar_name(address: &ServerAddress) -> Option<String> {
    let near = similar_pool(address)?;
    Some(format!(
        "no pool {address} was served, so one was started; did you mean {near}?"
    ))
}

/// Adds the pool that is probably meant to an error about one that is not served.
pub(crate) fn with_similar_pool(error: Error, address: &ServerAddress) -> Error {
    let is_absent = |address: &&ServerAddress| {
        error.code() == Code::Unavailable && !address.path().is_some_and(|socket| is_served(&socket))
    };
    let near = Some(address).filter(is_absent).and_then(similar_pool);
    match near {
        Some(near) => Error::new(
            error.code(),
            error.subject(),
            format!("{}; did you mean {near}?", error.cause()),
        ),
        None => error,
    }
}

/// Returns the URL of a pool that is served and has a similar name.
fn similar_pool(address: &ServerAddress) -> Option<String> {
    let socket = address.path().filter(|_| matches!(address, ServerAddress::Named(_)))?;
    let name = socket.file_stem()?.to_str()?;
    let served = served_in(socket.parent()?);
    nearest_name(served.iter().map(String::as_str), name).map(|near| format!("unix:{near}"))
}

/// Names that differ in digits alone are those of a series: `member-1`, `member-2`.
fn nearest_name<'a>(served: impl Iterator<Item = &'a str>, name: &str) -> Option<&'a str> {
    let letters = |name: &str| name.replace(|c: char| c.is_ascii_digit(), "");
    nearest(served.filter(|other| letters(other) != letters(name)), name)
}

/// Waits until no other process is about to start this server. Closing the file releases the lock.
fn take_turn(address: &ServerAddress) -> Result<File> {
    let Some(socket) = address.path() else {
        let cause = "a server for an abstract name is not started by its clients: there is no place for a lock";
        return Err(Error::new(Code::Unsupported, address.to_string(), cause));
    };
    let io = |error: std::io::Error| Error::new(Code::Io, socket.display().to_string(), error.to_string());
    if let (ServerAddress::Named(_), Some(directory)) = (address, socket.parent())
        && !directory.exists()
    {
        // Another process may create it meanwhile. The server checks whether it is safe.
        let _ = DirBuilder::new().mode(0o700).create(directory);
    }
    let lock = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(OFlags::NOFOLLOW.bits() as i32)
        .open(socket.with_extension("start"))
        .map_err(io)?;
    retry_on_intr(|| flock(&lock, FlockOperation::LockExclusive)).map_err(|errno| io(errno.into()))?;
    Ok(lock)
}

/// Runs the program and waits until it listens or fails.
fn run(address: &ServerAddress, settings: &ServerSettings, schemas: &[SchemaOrigin]) -> Result<()> {
    let (program, before) = program(settings);
    let failed = |cause: String| Error::new(Code::Unavailable, address.to_string(), cause);
    let mut command = Command::new(&program);
    for name in OF_THE_PROGRAM {
        command.env_remove(name);
    }
    let mut server = command
        .args(before)
        .args(arguments(address, settings, schemas)?)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .map_err(|error| {
            failed(format!(
                "no server runs there, and {} could not be started: {error}",
                program.display()
            ))
        })?;
    let mut line = String::new();
    if let Some(stdout) = server.stdout.take() {
        // It prints one line when it, or a server that was started first, listens; the end of the output without a line
        // means that neither does.
        let _ = BufReader::new(stdout).read_line(&mut line);
    }
    if !line.is_empty() {
        // It has ended if another server was started first.
        let _ = server.try_wait();
        return Ok(());
    }
    match server.wait() {
        // Another server was started first, which serves the same purpose.
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(failed(format!(
            "{} did not start a server ({status}); to see why: junctura pool serve --pool {address}",
            program.display()
        ))),
        Err(error) => Err(failed(error.to_string())),
    }
}

fn arguments(address: &ServerAddress, settings: &ServerSettings, schemas: &[SchemaOrigin]) -> Result<Vec<String>> {
    let mut arguments = vec![
        "pool".to_owned(),
        "serve".to_owned(),
        "--pool".to_owned(),
        address.to_string(),
        "--end-when-idle".to_owned(),
        IDLE_TIME.to_owned(),
        "--announce".to_owned(),
    ];
    let mut add = |name: &str, value: String| arguments.extend([name.to_owned(), value]);
    if let Some(bytes) = settings.budget_bytes {
        add("--budget", bytes.to_string());
    }
    if let Some((directory, limit_bytes)) = &settings.spill {
        add("--spill", absolute(directory)?);
        if let Some(bytes) = limit_bytes {
            add("--spill-size", bytes.to_string());
        }
    }
    if let Some(timeout) = settings.orphan_timeout {
        add("--orphan-timeout", format!("{}ms", timeout.as_millis()));
    }
    if let Some(bytes) = settings.inline_bytes_max {
        add("--inline-max", bytes.to_string());
    }
    if !settings.until_gone.is_empty() {
        add("--until-gone", settings.until_gone.join(","));
    }
    for schema in schemas {
        match schema {
            SchemaOrigin::Builtin(name) => add("--schema", name.clone()),
            SchemaOrigin::File(path) => add("--schema", absolute(path)?),
            SchemaOrigin::Text(_) => {
                let cause = "a server can only be started with schemas that are built in or files";
                return Err(Error::new(Code::Unsupported, address.to_string(), cause));
            }
        }
    }
    if settings.checked {
        arguments.push("--checked".to_owned());
    }
    Ok(arguments)
}

fn absolute(path: &Path) -> Result<String> {
    let path = std::path::absolute(path);
    path.map(|path| path.to_string_lossy().into_owned())
        .map_err(|error| Error::new(Code::Io, "path", error.to_string()))
}

/// Returns the program and its leading arguments: from the variable, else from the builder, else the program in this
/// program's directory, else the one on the path.
fn program(settings: &ServerSettings) -> (PathBuf, &[OsString]) {
    if let Some(program) = std::env::var_os(PROGRAM_VARIABLE) {
        return (program.into(), &[]);
    }
    if let Some((program, before)) = settings.program.split_first() {
        return (program.into(), before);
    }
    let beside = std::env::current_exe().ok().map(|path| path.with_file_name("junctura"));
    let program = beside.filter(|path| path.is_file());
    (program.unwrap_or_else(|| "junctura".into()), &[])
}
