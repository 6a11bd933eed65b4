//! `junctura token`: who may use a pool from another machine.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use junctura::{Code, Result};
use junctura_link::TokenKey;
use junctura_terminal::output::StandardOutput;
use junctura_terminal::size;

use crate::admin::security::{TOKEN_KEY, private_directory};

/// Make a token: with it a client may use a pool that is served over TCP (`junctura pool serve --security`)
///
/// The token is made with the key in DIRECTORY/tokens.key, which is made, too, if it is not there yet. Whoever has the token may
/// do what any client may, until its time is over; a new key ends all tokens. A client takes it from the file that
/// `JUNCTURA_TOKEN_FILE` names, or from ~/.config/junctura/token.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  junctura token ~/pool-security --for viewer --valid 30d --out viewer.token")]
pub(crate) struct TokenArguments {
    /// Where the server's secrets are; only its owner may read them
    #[arg(value_name = "DIRECTORY")]
    security: PathBuf,
    /// Who the token is for; shown in the server's log
    #[arg(long = "for", value_name = "NAME")]
    name: String,
    /// How long it is valid
    #[arg(long, value_name = "TIME", value_parser = size::parse_duration, default_value = "30d")]
    valid: Duration,
    /// Write it into this new file, which only you may read, instead of to standard output
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Makes a token.
pub(crate) fn run(arguments: &TokenArguments) -> Result<()> {
    private_directory(&arguments.security)?;
    let key = key(&arguments.security.join(TOKEN_KEY))?;
    let token = key.token(&arguments.name, arguments.valid)?;
    if let Some(path) = &arguments.out {
        return token.write(path);
    }
    let mut out = StandardOutput::new();
    writeln!(out, "{}", token.reveal())?;
    out.flush()
}

/// The key in a file, or a new one.
fn key(path: &Path) -> Result<TokenKey> {
    match TokenKey::read(path) {
        Err(error) if error.code() == Code::NotFound => {
            let key = TokenKey::generate()?;
            match key.write(path) {
                // Somebody else was quicker.
                Err(error) if error.code() == Code::AlreadyExists => TokenKey::read(path),
                written => written.map(|()| key),
            }
        }
        read => read,
    }
}
