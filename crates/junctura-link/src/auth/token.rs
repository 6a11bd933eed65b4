//! Tokens as text, and the files that hold secrets.
//!
//! A token grants the use of a pool from another machine for a limited time. It is a prefix with the version of the format,
//! then a nonce and sealed [`TokenClaims`] in lower-case hexadecimal; `docs/formats/link.md` describes it. Nothing here encrypts:
//! [`TokenKey`](crate::TokenKey) does. Parsed text and files are untrusted: lengths are limited before anything is allocated,
//! and each token has exactly one text.
//!
//! Errors contain nothing of a token or a key, and the memory of both is overwritten when it is freed.

use std::fmt;
use std::io::{Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use junctura_model::{Code, Error, Result};
use zeroize::Zeroizing;

/// The prefix of a token.
const PREFIX: &str = "junctura-token-1.";
/// The prefix of tokens that earlier versions made (PASETO).
const OLD_PREFIX: &str = "v4.local.";
/// The maximum length of a token's text, in bytes.
pub(crate) const TOKEN_BYTES_MAX: usize = 2 << 10;
/// The maximum length of a file with a token or a key, in bytes.
const FILE_BYTES_MAX: u64 = 4 << 10;
pub(crate) const NONCE_BYTES: usize = 12;
pub(crate) const TAG_BYTES: usize = 16;
/// Two times in front of the name.
const TIMES_BYTES: usize = 16;
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

/// The claims of a token: the name of the client, and the time of validity.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TokenClaims<'a> {
    /// The first second at which it is valid, since the Unix epoch.
    pub(crate) from: u64,
    /// The first second at which it is expired.
    pub(crate) until: u64,
    pub(crate) name: &'a str,
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
            let cause = "an earlier version of Junctura made it, in a format that is no longer supported; \
                         make a new one with `junctura token`";
            return Err(denied(cause));
        }
        let no_token = || denied("it is not a token");
        let digits = text.strip_prefix(PREFIX).ok_or_else(no_token)?;
        let bytes = from_hex(digits).ok_or_else(no_token)?;
        let (nonce, claims) = bytes.split_first_chunk().ok_or_else(no_token)?;
        let lengths = TIMES_BYTES + TAG_BYTES..=TIMES_BYTES + NAME_BYTES_MAX + TAG_BYTES;
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

impl<'a> TokenClaims<'a> {
    /// Reads decrypted claims.
    ///
    /// # Errors
    /// `Denied` where they are not as this version writes them.
    pub(crate) fn read(bytes: &'a [u8]) -> Result<Self> {
        let read = || {
            let (from, rest) = bytes.split_first_chunk()?;
            let (until, name) = rest.split_first_chunk()?;
            let name = std::str::from_utf8(name).ok()?;
            (name.len() <= NAME_BYTES_MAX).then(|| Self {
                from: u64::from_le_bytes(*from),
                until: u64::from_le_bytes(*until),
                name,
            })
        };
        read().ok_or_else(|| denied("its claims cannot be read"))
    }

    /// The claims as bytes to be encrypted.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(TIMES_BYTES + self.name.len() + TAG_BYTES);
        bytes.extend(self.from.to_le_bytes());
        bytes.extend(self.until.to_le_bytes());
        bytes.extend(self.name.as_bytes());
        bytes
    }
}

/// Makes the error for a refused token; `cause` gives the reason, and no part of the token.
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

/// Reads a file that only its owner may read, without white space at its ends.
pub(crate) fn read_secret(path: &Path) -> Result<Zeroizing<String>> {
    let named = |code, cause: String| Error::new(code, path.display().to_string(), cause);
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
    // With room for the whole file: a buffer that grows leaves copies behind.
    let mut text = Zeroizing::new(String::with_capacity(FILE_BYTES_MAX as usize + 64));
    file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text).map_err(io)?;
    if text.len() as u64 > FILE_BYTES_MAX {
        let cause = format!("it is longer than {FILE_BYTES_MAX} bytes: it contains no secret of a pool");
        return Err(named(Code::Corrupt, cause));
    }
    Ok(Zeroizing::new(text.trim().to_owned()))
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
        for claims in [32, 33, 32 + NAME_BYTES_MAX] {
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
            good.replace("junctura-token-1", "junctura-token-2"),
            good.replace("junctura-token", "junctura-key"),
            good.replace("ab", "AB"),
            good.replacen("ab", "é", 1),
            format!(" {good}"),
            format!("{good}\n"),
            format!("{good}+f"),
            text(31),
            text(33 + NAME_BYTES_MAX),
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
        let error = SealedToken::parse("v4.local.AAAAAAAA").map(drop).unwrap_err();
        assert_eq!(error.code(), Code::Denied);
        assert!(error.cause().contains("earlier version") && error.cause().contains("junctura token"));
    }

    #[test]
    fn claims_are_read_as_they_were_written() {
        let longest = "n".repeat(NAME_BYTES_MAX);
        for name in ["", "viewer", "Größe", longest.as_str()] {
            let claims = TokenClaims {
                from: 1,
                until: u64::MAX,
                name,
            };
            assert_eq!(TokenClaims::read(&claims.to_bytes()).unwrap(), claims);
        }
        let long = [b'n'; TIMES_BYTES + NAME_BYTES_MAX + 1];
        for bad in [&[][..], &[0; TIMES_BYTES - 1], &[0xff; TIMES_BYTES + 1], &long] {
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
