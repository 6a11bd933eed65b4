//! Tokens: who may use a pool from another machine, and until when.
//!
//! A token is a PASETO of version 4, purpose local: made and read with the one key of the pool, unreadable to others. It
//! travels within TLS alone. Key and tokens are files that nobody else may read.

use std::fmt;
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::time::{Duration, SystemTime};

use junctura_model::{Code, Error, Result};
use pasetors::claims::{Claims, ClaimsValidationRules};
use pasetors::keys::{Generate, SymmetricKey};
use pasetors::paserk::FormatAsPaserk;
use pasetors::token::UntrustedToken;
use pasetors::version4::V4;
use pasetors::{Local, local};

use crate::refused;

/// Bytes of the longest token that is looked at.
pub(crate) const TOKEN_BYTES_MAX: usize = 2 << 10;
/// What every token is bound to: one of another program is none here.
const PURPOSE: &[u8] = b"junctura-link-1";
/// The longest time that a token may be valid for.
const TIME_MAX: Duration = Duration::from_hours(10 * 366 * 24);

/// Makes tokens and tells whether one is good.
pub struct TokenKey(SymmetricKey<V4>);

/// What a client shows.
#[derive(Clone)]
pub struct Token(String);

impl TokenKey {
    /// A new key.
    ///
    /// # Errors
    /// `Io` when the system gives no random numbers.
    pub fn generate() -> Result<Self> {
        SymmetricKey::generate()
            .map(Self)
            .map_err(|error| refused(Code::Io, "key", "cannot be made", error))
    }

    /// Reads a key from its file.
    ///
    /// # Errors
    /// `NotFound`; `Denied` when others may read the file; `Corrupt` when no key is in it.
    pub fn read(path: &Path) -> Result<Self> {
        let text = read_secret(path)?;
        SymmetricKey::try_from(text.as_str())
            .map(Self)
            .map_err(|_| Error::new(Code::Corrupt, path.display().to_string(), "it holds no key for tokens"))
    }

    /// Writes the key into a new file that only its owner may read.
    ///
    /// # Errors
    /// `AlreadyExists` when the file is there; `Io` otherwise.
    pub fn write(&self, path: &Path) -> Result<()> {
        let mut text = String::new();
        self.0
            .fmt(&mut text)
            .map_err(|error| refused(Code::Io, "key", "cannot be written", error))?;
        write_secret(path, &text)
    }

    /// A token for `name`, valid from now on for `time`.
    ///
    /// # Errors
    /// `InvalidArgument` for no time, or more than ten years.
    pub fn token(&self, name: &str, time: Duration) -> Result<Token> {
        self.token_from(name, SystemTime::now(), time)
    }

    fn token_from(&self, name: &str, from: SystemTime, time: Duration) -> Result<Token> {
        if time.is_zero() || time > TIME_MAX {
            return Err(Error::new(
                Code::InvalidArgument,
                "token",
                "it is valid for more than no time, and at most ten years",
            ));
        }
        let unmade = |error: pasetors::errors::Error| refused(Code::InvalidArgument, "token", "cannot be made", error);
        let mut claims = Claims::new_expires_in(&time).map_err(unmade)?;
        claims.subject(name).map_err(unmade)?;
        let (begin, end) = (date(from), date(from + time));
        claims.issued_at(&begin).map_err(unmade)?;
        claims.not_before(&begin).map_err(unmade)?;
        claims.expiration(&end).map_err(unmade)?;
        local::encrypt(&self.0, &claims, None, Some(PURPOSE))
            .map(Token)
            .map_err(unmade)
    }

    /// Whose token it is.
    ///
    /// # Errors
    /// `Denied`; the error says why, and nothing of the token.
    pub fn check(&self, token: &str) -> Result<String> {
        let denied = |cause: &str| Error::new(Code::Denied, "token", cause);
        if token.len() > TOKEN_BYTES_MAX {
            return Err(denied("it is too long"));
        }
        let untrusted = UntrustedToken::<Local, V4>::try_from(token).map_err(|_| denied("it is no token"))?;
        let mut rules = ClaimsValidationRules::new();
        let read = local::decrypt(&self.0, &untrusted, &rules, None, Some(PURPOSE));
        let trusted = match read {
            Ok(trusted) => trusted,
            Err(pasetors::errors::Error::ClaimValidation(_)) => {
                return Err(denied("its time is over, or has not begun"));
            }
            Err(_) => return Err(denied("it was not made with the key of this pool")),
        };
        rules.disable_valid_at();
        let claims = trusted.payload_claims().ok_or_else(|| denied("it claims nothing"))?;
        let subject = claims.get_claim("sub").and_then(|subject| subject.as_str());
        Ok(subject.unwrap_or_default().to_owned())
    }
}

impl Token {
    /// Reads a token from its file.
    ///
    /// # Errors
    /// `NotFound`; `Denied` when others may read the file.
    pub fn read(path: &Path) -> Result<Self> {
        read_secret(path).map(Self)
    }

    /// Takes a token as it is.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Writes the token into a new file that only its owner may read.
    ///
    /// # Errors
    /// As [`TokenKey::write`].
    pub fn write(&self, path: &Path) -> Result<()> {
        write_secret(path, &self.0)
    }

    /// The token itself: a secret.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for TokenKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenKey(…)")
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// As RFC 3339 writes it, in whole seconds. The calendar is Howard Hinnant's `civil_from_days`
/// (<https://howardhinnant.github.io/date_algorithms.html>).
fn date(time: SystemTime) -> String {
    let seconds = time
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0, |since| since.as_secs());
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let of_era = shifted % 146_097;
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}+00:00")
}

fn read_secret(path: &Path) -> Result<String> {
    let named = |code, cause: String| Error::new(code, path.display().to_string(), cause);
    let metadata = std::fs::metadata(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => named(Code::NotFound, "there is no such file".to_owned()),
        _ => named(Code::Io, error.to_string()),
    })?;
    let mode = metadata.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        let cause = format!("others than its owner may read it (mode {mode:03o}); to mend it: chmod 600");
        return Err(named(Code::Denied, cause));
    }
    let text = std::fs::read_to_string(path).map_err(|error| named(Code::Io, error.to_string()))?;
    Ok(text.trim().to_owned())
}

/// Writes a new file of mode 600.
fn write_secret(path: &Path, text: &str) -> Result<()> {
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

    const HOUR: Duration = Duration::from_hours(1);

    #[test]
    fn a_token_is_good_for_its_key_and_its_time() {
        let (key, other) = (TokenKey::generate().unwrap(), TokenKey::generate().unwrap());
        let now = SystemTime::now();
        let token = key.token("viewer", HOUR).unwrap();
        assert_eq!(key.check(token.reveal()).unwrap(), "viewer");
        let expired = key.token_from("viewer", now - 2 * HOUR, HOUR).unwrap();
        let early = key.token_from("viewer", now + HOUR, HOUR).unwrap();
        let foreign = other.token("viewer", HOUR).unwrap();
        let mut torn = token.reveal().to_owned();
        torn.pop();
        let long = "v4.local.".to_owned() + &"A".repeat(TOKEN_BYTES_MAX);
        for bad in [
            expired.reveal(),
            early.reveal(),
            foreign.reveal(),
            &torn,
            "",
            "v4.local.",
            "v4.public.AA",
            &long,
        ] {
            let error = key.check(bad).unwrap_err();
            assert_eq!(error.code(), Code::Denied);
            assert!(bad.is_empty() || !error.to_string().contains(bad));
        }
        assert!(!format!("{token:?} {key:?}").contains(&token.reveal()[..12]));
        assert_eq!(
            key.token("viewer", Duration::ZERO).unwrap_err().code(),
            Code::InvalidArgument
        );
    }

    #[test]
    fn secrets_are_their_owners() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("key");
        let key = TokenKey::generate().unwrap();
        key.write(&path).unwrap();
        assert_eq!(key.write(&path).unwrap_err().code(), Code::AlreadyExists);
        let token = key.token("viewer", HOUR).unwrap();
        assert!(TokenKey::read(&path).unwrap().check(token.reveal()).is_ok());
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        assert_eq!(TokenKey::read(&path).unwrap_err().code(), Code::Denied);
        assert_eq!(
            Token::read(&directory.path().join("none")).unwrap_err().code(),
            Code::NotFound
        );
        let wrong = directory.path().join("wrong");
        write_secret(&wrong, "no key").unwrap();
        assert_eq!(TokenKey::read(&wrong).unwrap_err().code(), Code::Corrupt);
    }

    #[test]
    fn dates_are_dates() {
        let at = |seconds| date(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(at(0), "1970-01-01T00:00:00+00:00");
        assert_eq!(at(951_782_399), "2000-02-28T23:59:59+00:00");
        assert_eq!(at(951_868_800), "2000-03-01T00:00:00+00:00");
        assert_eq!(at(1_795_305_600), "2026-11-22T00:00:00+00:00");
    }
}
