//! The tokens of a pool: makes, checks, lists and revokes them.
//!
//! A directory has the key that seals tokens ([`KEY_FILE`]) and the list of the valid tokens ([`LIST_FILE`]). A token
//! is accepted if the key has sealed it, the current time is within its times, and the list has exactly its claims. To
//! revoke a token is to remove it from the list. Gates read the list again for each client.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use junctura_model::{Code, Error, Result};
use junctura_wire::rights::AccessRights;

use crate::auth::token::{ClientToken, NAME_BYTES_MAX, TokenClaims, denied, is_name, revoked};
use crate::auth::token_file::{ListVersion, TokenFile};
use crate::auth::token_key::{TokenKey, random};
use crate::refused;

/// The file of the key.
const KEY_FILE: &str = "tokens.key";
/// The file of the list.
const LIST_FILE: &str = "tokens.list";
/// The longest time that a token may be valid for.
const TIME_MAX: Duration = Duration::from_hours(10 * 366 * 24);

/// The tokens of a pool.
#[derive(Debug)]
pub struct TokenAuthority {
    key: TokenKey,
    key_path: PathBuf,
    list: TokenFile,
}

impl TokenAuthority {
    /// Reads the key in a directory.
    ///
    /// # Errors
    /// `NotFound`; `Denied` when others may read the file; `Corrupt` when no key is in it; `Unsupported` for a key of an earlier
    /// version.
    pub fn read(directory: &Path) -> Result<Self> {
        let key_path = directory.join(KEY_FILE);
        Ok(Self {
            key: TokenKey::read(&key_path)?,
            key_path,
            list: TokenFile::new(directory.join(LIST_FILE)),
        })
    }

    /// Reads the key in a directory; makes both if they do not exist.
    ///
    /// # Errors
    /// As [`Self::read`]; `Io` when they cannot be made.
    pub fn read_or_create(directory: &Path) -> Result<Self> {
        match DirBuilder::new().mode(0o700).create(directory) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                return Err(refused(
                    Code::Io,
                    directory.display().to_string(),
                    "cannot be made",
                    error,
                ));
            }
            _ => {}
        }
        match Self::read(directory) {
            Err(error) if error.code() == Code::NotFound => {
                match TokenKey::generate()?.write(&directory.join(KEY_FILE)) {
                    // Another process was quicker.
                    Err(error) if error.code() == Code::AlreadyExists => {}
                    written => written?,
                }
                Self::read(directory)
            }
            read => read,
        }
    }

    /// Makes a token that is valid from now on for `time`, and lists it. Expired tokens are removed from the list.
    ///
    /// # Errors
    /// `InvalidArgument` for no time, or more than ten years, or a name of more than 512 bytes or with control characters; `Io`;
    /// `LimitExceeded` when the list is full.
    pub fn make(&self, name: &str, rights: AccessRights, time: Duration) -> Result<(ClientToken, TokenClaims)> {
        self.make_from(name, rights, SystemTime::now(), time)
    }

    fn make_from(
        &self,
        name: &str,
        rights: AccessRights,
        from: SystemTime,
        time: Duration,
    ) -> Result<(ClientToken, TokenClaims)> {
        let invalid = |cause: String| Err(Error::new(Code::InvalidArgument, "token", cause));
        if time.is_zero() || time > TIME_MAX {
            return invalid("it is valid for more than no time, and at most ten years".to_owned());
        }
        if !is_name(name) {
            return invalid(format!(
                "its name has control characters, or more than {NAME_BYTES_MAX} bytes"
            ));
        }
        let (begin, end) = (since_epoch(from), since_epoch(from) + time);
        let mut claims = TokenClaims {
            id: 0,
            rights,
            from: begin.as_secs(),
            until: end.as_secs() + u64::from(end.subsec_nanos() > 0),
            name: name.to_owned(),
        };
        let token = self.list.change(&self.key_path, |tokens| {
            retain_valid(tokens);
            claims.id = new_id(tokens)?;
            tokens.push(claims.clone());
            self.key.seal(&claims)
        })?;
        Ok((token, claims))
    }

    /// Returns the tokens that are neither revoked nor removed since they expired, the oldest first.
    ///
    /// # Errors
    /// `Denied` when others may read the list; `Corrupt` when it is none; `Io`.
    pub fn list(&self) -> Result<Vec<TokenClaims>> {
        self.list.read()
    }

    /// Revokes the tokens with these ids: all, or none if one is unknown. Returns their claims.
    ///
    /// # Errors
    /// `NotFound` for an unknown id; as [`Self::list`].
    pub fn revoke(&self, ids: &[u32]) -> Result<Vec<TokenClaims>> {
        self.list.change(&self.key_path, |tokens| {
            let mut revoked = Vec::new();
            for &id in ids {
                let place = tokens.iter().position(|token| token.id == id).ok_or_else(|| {
                    let cause = "the list does not have it; `junctura token list FOLDER` shows all ids";
                    Error::new(Code::NotFound, format!("token {id:08x}"), cause)
                })?;
                revoked.push(tokens.remove(place));
            }
            retain_valid(tokens);
            Ok(revoked)
        })
    }

    /// Returns the claims of a valid token.
    ///
    /// # Errors
    /// `Denied`; the error states the reason, and no part of the token. As [`Self::list`], without the path of the list.
    pub(crate) fn check(&self, token: &str) -> Result<TokenClaims> {
        self.check_at(token, SystemTime::now())
    }

    fn check_at(&self, token: &str, now: SystemTime) -> Result<TokenClaims> {
        let claims = self.key.open(token)?;
        claims.check_time(since_epoch(now).as_secs())?;
        let listed = self.list.read().map_err(|error| {
            tracing::error!(%error, "the list of tokens cannot be read");
            denied("the server cannot read its list of tokens")
        })?;
        if !listed.contains(&claims) {
            return Err(revoked());
        }
        Ok(claims)
    }

    /// Returns which list there is: another one after each change.
    pub(crate) fn version(&self) -> Option<ListVersion> {
        self.list.version()
    }
}

fn retain_valid(tokens: &mut Vec<TokenClaims>) {
    let now = since_epoch(SystemTime::now()).as_secs();
    tokens.retain(|token| now < token.until);
}

/// A number that no listed token has.
fn new_id(tokens: &[TokenClaims]) -> Result<u32> {
    loop {
        let mut bytes = [0; 4];
        random(&mut bytes)?;
        let id = u32::from_le_bytes(bytes);
        if tokens.iter().all(|token| token.id != id) {
            return Ok(id);
        }
    }
}

pub(crate) fn since_epoch(time: SystemTime) -> Duration {
    time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_hours(1);
    const READ: AccessRights = AccessRights::READ;

    fn authority() -> (tempfile::TempDir, TokenAuthority) {
        let directory = tempfile::tempdir().unwrap();
        let tokens = TokenAuthority::read_or_create(&directory.path().join("secrets")).unwrap();
        (directory, tokens)
    }

    #[test]
    fn a_token_is_valid_for_its_time() {
        let (_directory, tokens) = authority();
        let begin = SystemTime::UNIX_EPOCH + Duration::from_millis(33_352_214_400_500);
        let (token, claims) = tokens
            .make_from("viewer", READ, begin, Duration::from_secs(10))
            .unwrap();
        let at = |seconds: u64| {
            let now = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
            tokens
                .check_at(token.reveal(), now)
                .map_err(|error| error.cause().to_owned())
        };
        assert_eq!(at(33_352_214_399), Err("it is not valid yet".to_owned()));
        assert_eq!(at(33_352_214_400), Ok(claims.clone()));
        assert_eq!(at(33_352_214_410), Ok(claims));
        let expired = at(33_352_214_411).unwrap_err();
        assert!(
            expired.contains("expired") && expired.contains("junctura token make"),
            "{expired}"
        );
        assert!(tokens.check_at(token.reveal(), SystemTime::UNIX_EPOCH - HOUR).is_err());
        assert_eq!(tokens.check(token.reveal()).unwrap_err().cause(), "it is not valid yet");
    }

    #[test]
    fn tokens_are_revoked_one_by_one() {
        let (directory, tokens) = authority();
        let (kept, kept_claims) = tokens.make("viewer", READ, HOUR).unwrap();
        let (lost, lost_claims) = tokens.make("model", AccessRights::ALL, HOUR).unwrap();
        assert_eq!(tokens.list().unwrap(), [kept_claims.clone(), lost_claims.clone()]);
        let unknown = tokens.revoke(&[lost_claims.id, !lost_claims.id]).unwrap_err();
        assert_eq!(unknown.code(), Code::NotFound);
        assert!(tokens.check(lost.reveal()).is_ok(), "all or none");
        assert_eq!(tokens.revoke(&[lost_claims.id]).unwrap(), [lost_claims]);
        let other = TokenAuthority::read(&directory.path().join("secrets")).unwrap();
        for tokens in [&tokens, &other] {
            let refused = tokens.check(lost.reveal()).unwrap_err();
            assert_eq!(refused.code(), Code::Denied);
            assert!(refused.cause().contains("revoked"), "{refused}");
            assert_eq!(tokens.check(kept.reveal()), Ok(kept_claims.clone()));
        }
    }

    #[test]
    fn a_token_has_the_rights_that_the_list_has() {
        let (directory, tokens) = authority();
        let (token, _) = tokens.make("viewer", READ, HOUR).unwrap();
        let list = directory.path().join("secrets").join(LIST_FILE);
        let text = std::fs::read_to_string(&list).unwrap();
        std::fs::write(&list, text.replace(" read ", " read,offer,admin ")).unwrap();
        assert_eq!(tokens.check(token.reveal()).unwrap_err().code(), Code::Denied);
        std::fs::write(&list, "nonsense").unwrap();
        assert_eq!(tokens.check(token.reveal()).unwrap_err().code(), Code::Denied);
        std::fs::remove_file(&list).unwrap();
        assert_eq!(tokens.check(token.reveal()).unwrap_err().code(), Code::Denied);
    }

    #[test]
    fn expired_tokens_leave_the_list() {
        let (_directory, tokens) = authority();
        let past = SystemTime::now() - 2 * HOUR;
        tokens.make_from("old", READ, past, HOUR).unwrap();
        assert_eq!(tokens.list().unwrap().len(), 1);
        let (_, claims) = tokens.make("new", READ, HOUR).unwrap();
        assert_eq!(tokens.list().unwrap(), [claims]);
    }

    #[test]
    fn names_and_times_have_limits() {
        let (_directory, tokens) = authority();
        let refused = |name: &str, time| tokens.make(name, READ, time).unwrap_err().code() == Code::InvalidArgument;
        assert!(refused("viewer", Duration::ZERO) && refused("viewer", TIME_MAX + Duration::from_nanos(1)));
        assert!(refused(&"n".repeat(513), HOUR) && refused("two\nlines", HOUR));
        assert!(
            tokens.make("viewer", READ, TIME_MAX).is_ok() && tokens.make("", READ, Duration::from_nanos(1)).is_ok()
        );
        assert!(tokens.list().unwrap().len() <= 2);
    }

    #[test]
    fn processes_that_make_tokens_at_once_lose_none() {
        let (directory, _) = authority();
        let secrets = directory.path().join("secrets");
        let made: Vec<TokenClaims> = std::thread::scope(|scope| {
            let makers: Vec<_> = (0..4)
                .map(|number| {
                    let secrets = &secrets;
                    scope.spawn(move || {
                        let tokens = TokenAuthority::read_or_create(secrets).unwrap();
                        (0..5)
                            .map(|_| tokens.make(&format!("maker {number}"), READ, HOUR).unwrap().1)
                            .collect::<Vec<_>>()
                    })
                })
                .collect();
            makers.into_iter().flat_map(|maker| maker.join().unwrap()).collect()
        });
        let listed = TokenAuthority::read(&secrets).unwrap().list().unwrap();
        assert_eq!(listed.len(), made.len());
        assert!(made.iter().all(|token| listed.contains(token)));
    }
}
