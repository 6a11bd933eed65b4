//! `junctura token`: makes, lists and revokes the tokens of a pool that is served over TCP.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use clap::{Args, Subcommand};
use junctura::{Code, Error, Result};
use junctura_link::{AccessRights, TokenAuthority, TokenClaims};
use serde_json::json;

use crate::admin::security::{made_by, token_make};
use junctura_terminal::output::StandardOutput;
use junctura_terminal::size;

const EXAMPLES: &str = "Examples:
  junctura token make secrets --for viewer --out viewer.token
  junctura token make secrets --for model --rights read,offer --valid 7d --out model.token
  junctura token list secrets
  junctura token revoke secrets 1a2b3c4d";

/// Make, list and revoke tokens: each grants rights in a pool that is served over TCP (`junctura pool serve --security`)
///
/// FOLDER has the secrets of the server. A token grants `read` (receive, list and watch objects; make requirements), `offer`
/// (offer and withdraw objects) or `admin` (both, and stop the server and remove requirements with a name).
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TokenArguments {
    #[command(subcommand)]
    command: TokenCommand,
}

#[derive(Subcommand, Debug)]
enum TokenCommand {
    Make(MakeToken),
    List(ListTokens),
    Revoke(RevokeTokens),
}

/// Make a token
///
/// The key in FOLDER/tokens.key seals it, and FOLDER/tokens.list lists it; both are made if they do not exist. A client
/// reads the token from the file that `JUNCTURA_TOKEN_FILE` names, or beyond loopback from ~/.config/junctura/token.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  junctura token make secrets --for model --rights read,offer --out model.token")]
struct MakeToken {
    /// The directory with the secrets of the server; only its owner may read them
    #[arg(value_name = "FOLDER")]
    security: PathBuf,
    /// A label: `junctura token list`, `junctura pool stat` and the log of the server show it
    #[arg(long = "for", value_name = "NAME")]
    name: String,
    /// Rights of its clients: read, offer, admin, or several with commas between them
    #[arg(long, value_name = "RIGHT,...", default_value = "read")]
    rights: AccessRights,
    /// How long it is valid
    #[arg(long, value_name = "TIME", value_parser = parse_valid, default_value = "30d")]
    valid: Duration,
    /// Write the token into this new file, which only you may read, instead of to standard output
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// List the valid tokens: ids, rights, ends and labels, never the tokens themselves
///
/// Expired tokens are listed until the next token is made or revoked.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  junctura token list secrets --json | jq .id")]
struct ListTokens {
    /// The directory with the secrets of the server
    #[arg(value_name = "FOLDER")]
    security: PathBuf,
    /// Print a JSON line for each token
    #[arg(long)]
    json: bool,
}

/// Revoke tokens by their ids
///
/// Servers that use FOLDER refuse new clients with these tokens at once, and end their connections within two seconds.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  junctura token revoke secrets 1a2b3c4d")]
struct RevokeTokens {
    /// The directory with the secrets of the server
    #[arg(value_name = "FOLDER")]
    security: PathBuf,
    /// The ids, as `junctura token list` prints them
    #[arg(value_name = "ID", required = true, value_parser = parse_id)]
    ids: Vec<u32>,
}

/// Makes, lists or revokes.
pub(crate) fn run(arguments: &TokenArguments) -> Result<()> {
    match &arguments.command {
        TokenCommand::Make(arguments) => make(arguments),
        TokenCommand::List(arguments) => list(arguments),
        TokenCommand::Revoke(arguments) => revoke(arguments),
    }
}

fn make(arguments: &MakeToken) -> Result<()> {
    if let Some(path) = arguments.out.as_ref().filter(|path| path.exists()) {
        let cause = "this file exists; a token is written into a new file";
        return Err(Error::new(Code::AlreadyExists, path.display().to_string(), cause));
    }
    let is_known = TokenAuthority::read(&arguments.security).is_ok();
    let tokens = TokenAuthority::read_or_create(&arguments.security)?;
    if !is_known {
        let folder = arguments.security.display();
        say!("junctura: made a new key in {folder}: only servers with `--security {folder}` accept its tokens");
    }
    let (token, claims) = tokens.make(&arguments.name, arguments.rights, arguments.valid)?;
    if let Some(path) = &arguments.out {
        token.write(path)?;
    } else {
        let mut out = StandardOutput::new();
        writeln!(out, "{}", token.reveal())?;
        out.flush()?;
    }
    say!(
        "junctura: the token {:08x} grants {} until {}",
        claims.id,
        claims.rights,
        utc(claims.until)
    );
    Ok(())
}

fn list(arguments: &ListTokens) -> Result<()> {
    let tokens = authority(&arguments.security)?.list()?;
    let now = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs();
    let mut out = StandardOutput::new();
    if !arguments.json {
        writeln!(out, "{:<8}  {:<16}  {:<20}  name", "id", "rights", "valid until")?;
    }
    for token in &tokens {
        let is_expired = now >= token.until;
        if arguments.json {
            out.json(&json!({
                "id": format!("{:08x}", token.id), "rights": token.rights.to_string(), "name": token.name,
                "from": utc(token.from), "until": utc(token.until), "expired": is_expired,
            }))?;
        } else {
            let end = if is_expired {
                "expired".to_owned()
            } else {
                utc(token.until)
            };
            writeln!(
                out,
                "{:08x}  {:<16}  {end:<20}  {}",
                token.id,
                token.rights.to_string(),
                token.name
            )?;
        }
    }
    out.flush()
}

fn revoke(arguments: &RevokeTokens) -> Result<()> {
    let mut ids = arguments.ids.clone();
    ids.sort_unstable();
    ids.dedup();
    for TokenClaims { id, name, .. } in authority(&arguments.security)?.revoke(&ids)? {
        say!("junctura: the token {id:08x} of {name} is revoked");
    }
    Ok(())
}

fn authority(directory: &std::path::Path) -> Result<TokenAuthority> {
    TokenAuthority::read(directory).map_err(|error| match error.code() {
        Code::NotFound => made_by(&error, &token_make(directory)),
        _ => error,
    })
}

/// Reads a time with its unit: a number alone would be seconds.
fn parse_valid(text: &str) -> std::result::Result<Duration, String> {
    if text.ends_with(|last: char| last.is_ascii_digit()) {
        return Err(format!(
            "{text} has no unit: {text}d are days, {text}h hours, {text}min minutes, {text}s seconds"
        ));
    }
    size::parse_duration(text)
}

/// Reads an id: eight hexadecimal digits.
fn parse_id(text: &str) -> std::result::Result<u32, String> {
    let is_id = text.len() == 8 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_id
        .then(|| u32::from_str_radix(text, 16).ok())
        .flatten()
        .ok_or_else(|| "an id has eight hexadecimal digits, as `junctura token list FOLDER` prints it".to_owned())
}

/// A second since the Unix epoch, for people and programs (ISO 8601).
pub(crate) fn utc(seconds: u64) -> String {
    let time = i64::try_from(seconds)
        .ok()
        .and_then(|seconds| time::OffsetDateTime::from_unix_timestamp(seconds).ok());
    let Some(time) = time else { return format!("@{seconds}") };
    format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z",
        time.year(),
        u8::from(time.month()),
        time.day(),
        time.hour(),
        time.minute(),
        time.second()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_as_they_are_listed() {
        assert_eq!(parse_id("1a2b3c4d"), Ok(0x1a2b_3c4d));
        assert_eq!(parse_id("0000000A"), Ok(10));
        for text in ["", "1a2b3c4", "1a2b3c4d5", "+a2b3c4d", "viewerxx"] {
            assert!(parse_id(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_time_has_a_unit() {
        assert_eq!(parse_valid("30d"), Ok(Duration::from_hours(720)));
        assert_eq!(
            parse_valid("30").unwrap_err(),
            "30 has no unit: 30d are days, 30h hours, 30min minutes, 30s seconds"
        );
    }

    #[test]
    fn ends_are_dates() {
        assert_eq!(utc(1_795_305_600), "2026-11-22T00:00:00Z");
        assert_eq!(utc(u64::MAX), format!("@{}", u64::MAX));
    }
}
