//! The folder of a server's secrets: its files, their names, and their modes.

use std::fs::DirBuilder;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use junctura::{Code, Error, Result};
use junctura_link::{ServerTls, TokenAuthority};
use junctura_model::command::shell_word;

/// In place of a directory: no security, so that every user of this host can connect over loopback.
pub(crate) const NONE: &str = "none";
pub(crate) const CERTIFICATE: &str = "server.pem";
pub(crate) const PRIVATE_KEY: &str = "server.key";
pub(crate) const AUTHORITY: &str = "ca.pem";
pub(crate) const AUTHORITY_KEY: &str = "ca.key";

/// Reads the server's files from the directory.
///
/// # Errors
/// The missing file, with the command that makes it; `Denied` when others may read a secret.
pub(crate) fn read(directory: &Path) -> Result<(ServerTls, TokenAuthority)> {
    let (certificate, private) = (directory.join(CERTIFICATE), directory.join(PRIVATE_KEY));
    must_be_private(&private)?;
    let tls = ServerTls::read(&certificate, &private)?;
    let tokens = TokenAuthority::read(directory).map_err(|error| match error.code() {
        Code::NotFound => made_by(&error, &token_make(directory)),
        _ => error,
    })?;
    Ok((tls, tokens))
}

fn must_be_private(path: &Path) -> Result<()> {
    let metadata = std::fs::metadata(path).map_err(|error| {
        let error = Error::new(Code::NotFound, path.display().to_string(), error.to_string());
        let folder = path.parent().unwrap_or(path).display().to_string();
        made_by(&error, &format!("cert {} --host HOST", shell_word(&folder)))
    })?;
    let mode = metadata.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        let cause = format!("others than its owner may read it (mode {mode:03o}); to mend it: chmod 600");
        return Err(Error::new(Code::Denied, path.display().to_string(), cause));
    }
    Ok(())
}

/// Returns the command that makes the key of tokens in a folder.
pub(crate) fn token_make(directory: &Path) -> String {
    format!("token make {} --for NAME", shell_word(&directory.display().to_string()))
}

pub(crate) fn made_by(error: &Error, command: &str) -> Error {
    let cause = format!("{}; `junctura {command}` makes it", error.cause());
    Error::new(error.code(), error.subject(), cause)
}

/// Makes the directory if it is not there.
pub(crate) fn private_directory(path: &Path) -> Result<()> {
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => Err(failed(path, &error)),
        _ => Ok(()),
    }
}

/// Writes a file that only its owner may read, in one step.
pub(crate) fn write_private(path: &Path, text: &str) -> Result<()> {
    write(path, text, 0o600)
}

/// Writes a file that everybody may read, in one step.
pub(crate) fn write_public(path: &Path, text: &str) -> Result<()> {
    write(path, text, 0o644)
}

fn write(path: &Path, text: &str, mode: u32) -> Result<()> {
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(".new");
    let unfinished = Path::new(&unfinished);
    let written = std::fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(mode)
        .open(unfinished)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .and_then(|()| std::fs::rename(unfinished, path));
    written.map_err(|error| failed(path, &error))
}

fn failed(path: &Path, error: &std::io::Error) -> Error {
    Error::new(Code::Io, path.display().to_string(), error.to_string())
}
