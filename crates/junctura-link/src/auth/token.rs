//! Tokens as text, and the files that hold secrets.
//!
//! A token grants rights in a pool to clients of other machines, for a limited time. It is a prefix with the version of the format,
//! then a nonce and sealed [`TokenClaims`] in lower-case hexadecimal; `docs/formats/link.md` describes it. Nothing here encrypts:
//! [`TokenAuthority`](crate::TokenAuthority) does. Parsed text and files are untrusted: lengths are limited before anything is allocated,
//! and each token has exactly one text.
//!
//! Errors contain nothing of a token or a key, and the memory of both is overwritten when it is freed.

use std::fmt;
use std::io::{Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use junctura_model::{Code, Error, Result};
use junctura_wire::rights::AccessRights;
use zeroize::Zeroizing;

/// The prefix of a token.
const PREFIX: &str = "junctura-token-2.";
/// The beginning of tokens of any version.
const TOKEN_BEGINNING: &str = "junctura-token-";
/// The prefix of tokens that earlier versions made. They state no rights.
const OLD_PREFIX: &str = "junctura-token-1.";
/// The maximum length of a token's text, in bytes.
pub(crate) const TOKEN_BYTES_MAX: usize = 2 << 10;
/// The maximum length of a file with a token or a key, in bytes.
const FILE_BYTES_MAX: u64 = 4 << 10;
pub(crate) const NONCE_BYTES: usize = 12;
pub(crate) const TAG_BYTES: usize = 16;
/// Two times, the id and the rights in front of the name.
const FIXED_BYTES: usize = 21;
/// The maximum length of the name in a token, in bytes.
pub(crate) const NAME_BYTES_MAX: usize = 512;

/// A client's token.
#[derive(Clone)]
pub struct ClientToken(Zeroizing<String>);

/// A token that has been parsed and not decrypted.
pub(crate) struct SealedToken {
    pub(crate) nonce: [u8; NONCE_BYTES],
    /// The encrypted claims, then the tag.
    pub(crate) claims: Vec<u8>,
}

/// The claims of a token: the rights that it grants, and when. They contain no secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenClaims {
    /// Its number among the tokens of a pool.
    pub id: u32,
    /// The rights of its clients.
    pub rights: AccessRights,
    /// The first second at which it is valid, since the Unix epoch.
    pub from: u64,
    /// The first second at which it is expired.
    pub until: u64,
    /// The label that it was made with.
    pub name: String,
}

impl ClientToken {
    /// Reads a token from its file.
    ///
    /// # Errors
    /// `NotFound`; `Denied` when others may read the file; `Corrupt` when it is longer than a token.
    pub fn read(path: &Path) -> Result<Self> {
        read_secret(path).map(Self)
    }

    /// Takes a token as it is.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(Zeroizing::new(text.into()))
    }

    /// Writes the token into a new file that only its owner may read.
    ///
    /// # Errors
    /// `AlreadyExists` when the file is there; `Io` otherwise.
    pub fn write(&self, path: &Path) -> Result<()> {
        write_secret(path, &self.0)
    }

    /// The token itself: a secret.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ClientToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

impl SealedToken {
    /// Parses the text of a token.
    ///
    /// # Errors
    /// `Denied`, without any part of the text.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        if text.len() > TOKEN_BYTES_MAX {
            return Err(denied("it is too long"));
        }
        if text.starts_with(OLD_PREFIX) {
            let cause = "an earlier version of Junctura made it, in a format without rights that is no longer supported; \
                         make a new one with `junctura token make FOLDER --for NAME`";
            return Err(denied(cause));
        }
        let no_token = || denied("it is not a token");
        let digits = text.strip_prefix(PREFIX).ok_or_else(no_token)?;
        let bytes = from_hex(digits).ok_or_else(no_token)?;
        let (nonce, claims) = bytes.split_first_chunk().ok_or_else(no_token)?;
        let lengths = FIXED_BYTES + TAG_BYTES..=FIXED_BYTES + NAME_BYTES_MAX + TAG_BYTES;
        if !lengths.contains(&claims.len()) {
            return Err(no_token());
        }
        Ok(Self {
            nonce: *nonce,
            claims: claims.to_vec(),
        })
    }

    /// The only text of this token.
    pub(crate) fn to_text(&self) -> String {
        let mut text = PREFIX.to_owned();
        to_hex(&self.nonce, &mut text);
        to_hex(&self.claims, &mut text);
        text
    }
}

impl TokenClaims {
    /// Reads decrypted claims.
    ///
    /// # Errors
    /// `Denied` where they are not as this version writes them.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self> {
        let read = || {
            let (from, rest) = bytes.split_first_chunk()?;
            let (until, rest) = rest.split_first_chunk()?;
            let (id, rest) = rest.split_first_chunk()?;
            let (&rights, name) = rest.split_first()?;
            let name = std::str::from_utf8(name).ok()?;
            is_name(name).then_some(Self {
                id: u32::from_le_bytes(*id),
                rights: AccessRights::from_bits(rights)?,
                from: u64::from_le_bytes(*from),
                until: u64::from_le_bytes(*until),
                name: name.to_owned(),
            })
        };
        read().ok_or_else(|| denied("its claims cannot be read"))
    }

    /// Checks that the token is valid at a second since the Unix epoch.
    ///
    /// # Errors
    /// `Denied` before its time and after it.
    pub(crate) fn check_time(&self, now: u64) -> Result<()> {
        if now < self.from {
            return Err(denied("it is not valid yet"));
        }
        if now >= self.until {
            return Err(denied(
                "its time to live has expired; the operator of the pool makes a new one with `junctura token make FOLDER --for NAME`",
            ));
        }
        Ok(())
    }

    /// The claims as bytes to be encrypted.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(FIXED_BYTES + self.name.len() + TAG_BYTES);
        bytes.extend(self.from.to_le_bytes());
        bytes.extend(self.until.to_le_bytes());
        bytes.extend(self.id.to_le_bytes());
        bytes.push(self.rights.bits());
        bytes.extend(self.name.as_bytes());
        bytes
    }
}

/// Whether a text may be the name in a token: it is shown in lists and logs, on one line.
pub(crate) fn is_name(text: &str) -> bool {
    text.len() <= NAME_BYTES_MAX && !text.chars().any(char::is_control)
}

/// Returns the error for a token that the list of the pool does not have.
pub(crate) fn revoked() -> Error {
    denied("it was revoked; the operator of the pool makes a new one with `junctura token make FOLDER --for NAME`")
}

/// Returns the error for a refused token; `cause` is the reason, without any part of the token.
pub(crate) fn denied(cause: &str) -> Error {
    Error::new(Code::Denied, "token", cause)
}

/// Appends bytes as lower-case hexadecimal digits.
pub(crate) fn to_hex(bytes: &[u8], text: &mut String) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for byte in bytes {
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
}

/// Reads lower-case hexadecimal digits, and nothing else.
pub(crate) fn from_hex(text: &str) -> Option<Zeroizing<Vec<u8>>> {
    let digit = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else {
        return None;
    };
    let mut bytes = Zeroizing::new(Vec::with_capacity(pairs.len()));
    for &[high, low] in pairs {
        bytes.push(digit(high)? << 4 | digit(low)?);
    }
    Some(bytes)
}

/// Reads a file with a token or a key, without white space at its ends.
pub(crate) fn read_secret(path: &Path) -> Result<Zeroizing<String>> {
    read_private(path, FILE_BYTES_MAX).map(|text| Zeroizing::new(text.trim().to_owned()))
}

/// Reads a file that only its owner may read, of at most so many bytes.
pub(crate) fn read_private(path: &Path, bytes_max: u64) -> Result<Zeroizing<String>> {
    let named = |code, cause: String| Error::new(code, path.display().to_string(), cause);
    if path
        .as_os_str()
        .as_encoded_bytes()
        .starts_with(TOKEN_BEGINNING.as_bytes())
    {
        // The path is a secret itself.
        let cause = "this is a token; give the name of the file that has it, which only you can read";
        return Err(Error::new(Code::InvalidArgument, "token file", cause));
    }
    let io = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::NotFound => named(Code::NotFound, "there is no such file".to_owned()),
        _ => named(Code::Io, error.to_string()),
    };
    let file = std::fs::File::open(path).map_err(io)?;
    let mode = file.metadata().map_err(io)?.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        let cause = format!("users other than its owner may read it (mode {mode:03o}); run: chmod 600");
        return Err(named(Code::Denied, cause));
    }
    // With room for all of a secret: a buffer that grows leaves copies behind.
    let mut text = Zeroizing::new(String::with_capacity(FILE_BYTES_MAX as usize + 64));
    file.take(bytes_max + 1).read_to_string(&mut text).map_err(io)?;
    if text.len() as u64 > bytes_max {
        let cause = format!("it is longer than {bytes_max} bytes: it is not a file of tokens");
        return Err(named(Code::Corrupt, cause));
    }
    Ok(text)
}

/// Writes a new file of mode 600.
pub(crate) fn write_secret(path: &Path, text: &str) -> Result<()> {
    let named = |error: std::io::Error| {
        let code = match error.kind() {
            std::io::ErrorKind::AlreadyExists => Code::AlreadyExists,
            _ => Code::Io,
        };
        Error::new(code, path.display().to_string(), error.to_string())
    };
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .map_err(named)?;
    writeln!(file, "{text}").map_err(named)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A well-formed token; no key has made it.
    fn text(claims: usize) -> String {
        let sealed = SealedToken {
            nonce: [7; NONCE_BYTES],
            claims: vec![0xab; claims],
        };
        sealed.to_text()
    }

    #[test]
    fn a_token_has_one_text() {
        for claims in [37, 38, 37 + NAME_BYTES_MAX] {
            let text = text(claims);
            let sealed = SealedToken::parse(&text).unwrap();
            assert_eq!((sealed.nonce, sealed.claims.len()), ([7; NONCE_BYTES], claims));
            assert_eq!(sealed.to_text(), text);
            assert!(text.len() <= TOKEN_BYTES_MAX);
        }
    }

    #[test]
    fn other_texts_are_refused_and_not_repeated() {
        let good = text(40);
        let bad = [
            String::new(),
            PREFIX.to_owned(),
            good[..good.len() - 1].to_owned(),
            good.to_uppercase(),
            good.replace("junctura-token-2", "junctura-token-3"),
            good.replace("junctura-token", "junctura-key"),
            good.replace("ab", "AB"),
            good.replacen("ab", "é", 1),
            format!(" {good}"),
            format!("{good}\n"),
            format!("{good}+f"),
            text(36),
            text(38 + NAME_BYTES_MAX),
            text(TOKEN_BYTES_MAX),
            format!("{PREFIX}{}", "0".repeat(TOKEN_BYTES_MAX)),
        ];
        for bad in bad {
            let error = SealedToken::parse(&bad).map(drop).unwrap_err();
            assert_eq!(error.code(), Code::Denied, "{bad:?}");
            assert!(bad.is_empty() || !error.to_string().contains(&bad), "{bad:?}");
        }
    }

    #[test]
    fn a_token_of_the_old_format_is_named_as_such() {
        let error = SealedToken::parse("junctura-token-1.AAAAAAAA").map(drop).unwrap_err();
        assert_eq!(error.code(), Code::Denied);
        assert!(error.cause().contains("earlier version") && error.cause().contains("junctura token"));
    }

    #[test]
    fn claims_are_read_as_they_were_written() {
        let longest = "n".repeat(NAME_BYTES_MAX);
        for name in ["", "viewer", "Größe", longest.as_str()] {
            let claims = TokenClaims {
                id: 0x1a2b_3c4d,
                rights: AccessRights::READ,
                from: 1,
                until: u64::MAX,
                name: name.to_owned(),
            };
            assert_eq!(TokenClaims::read(&claims.to_bytes()).unwrap(), claims);
        }
        let good = [&[0; FIXED_BYTES - 1][..], &[3], b"n"].concat();
        let long = [&good[..FIXED_BYTES], &[b'n'; NAME_BYTES_MAX + 1]].concat();
        assert!(TokenClaims::read(&good).is_ok());
        let with = |at: usize, byte| {
            let mut bytes = good.clone();
            bytes[at] = byte;
            bytes
        };
        let others = [
            with(FIXED_BYTES, b'\n'),
            with(FIXED_BYTES, 0xff),
            with(FIXED_BYTES - 1, 4),
            with(FIXED_BYTES - 1, 0),
        ];
        for bad in [&[][..], &good[..FIXED_BYTES - 1], &long]
            .into_iter()
            .chain(others.iter().map(Vec::as_slice))
        {
            assert_eq!(TokenClaims::read(bad).unwrap_err().code(), Code::Denied);
        }
    }

    #[test]
    fn long_files_hold_no_secret() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("token");
        let longest = "t".repeat(FILE_BYTES_MAX as usize - 1);
        write_secret(&path, &longest).unwrap();
        assert_eq!(ClientToken::read(&path).unwrap().reveal(), longest);
        std::fs::remove_file(&path).unwrap();
        write_secret(&path, &format!("{longest}t")).unwrap();
        assert_eq!(ClientToken::read(&path).unwrap_err().code(), Code::Corrupt);
    }
}
