//! The key of a pool: makes tokens and verifies them.
//!
//! A token is sealed with ChaCha20-Poly1305 (RFC 8439, by `ring`) under the 256-bit key of the pool. The nonce is random, and
//! the associated data is the purpose, so that a token for anything else is refused. Verification is that of the AEAD, which
//! compares in constant time. A key may make 2^32 tokens before a repeated nonce becomes likely enough to matter.

use std::fmt;
use std::path::Path;

use junctura_model::{Code, Error, Result};
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use ring::rand::{SecureRandom, SystemRandom};
use zeroize::Zeroizing;

use crate::auth::token::{
    ClientToken, NONCE_BYTES, SealedToken, TAG_BYTES, TokenClaims, denied, from_hex, read_secret, to_hex, write_secret,
};

/// The prefix of a key's text.
const PREFIX: &str = "junctura-key-1.";
/// The prefix of keys that earlier versions wrote (PASERK).
const OLD_PREFIX: &str = "k4.local.";
const KEY_BYTES: usize = 32;
/// The purpose to which every token is bound: a token for another purpose is refused.
const PURPOSE: &[u8] = b"junctura-link-1";

/// Seals tokens and opens them.
pub(crate) struct TokenKey(Zeroizing<[u8; KEY_BYTES]>);

impl TokenKey {
    /// A new key.
    ///
    /// # Errors
    /// `Io` when the system gives no random numbers.
    pub(crate) fn generate() -> Result<Self> {
        let mut key = Self(Zeroizing::new([0; KEY_BYTES]));
        random(&mut *key.0)?;
        Ok(key)
    }

    /// Reads a key from its file.
    ///
    /// # Errors
    /// `NotFound`; `Denied` when others may read the file; `Corrupt` when no key is in it; `Unsupported` for a key of an earlier
    /// version.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let text = read_secret(path)?;
        let named = |code, cause| Error::new(code, path.display().to_string(), cause);
        if text.starts_with(OLD_PREFIX) {
            let cause = "an earlier version of Junctura wrote this key, in a format that is no longer supported; \
                         remove the file and make a new key and new tokens with `junctura token make FOLDER --for NAME`";
            return Err(named(Code::Unsupported, cause));
        }
        let no_key = || named(Code::Corrupt, "it contains no token key");
        let bytes = text.strip_prefix(PREFIX).and_then(from_hex).ok_or_else(no_key)?;
        let mut key = Self(Zeroizing::new([0; KEY_BYTES]));
        if bytes.len() != KEY_BYTES {
            return Err(no_key());
        }
        key.0.copy_from_slice(&bytes);
        Ok(key)
    }

    /// Writes the key into a new file that only its owner may read.
    ///
    /// # Errors
    /// `AlreadyExists` when the file is there; `Io` otherwise.
    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        let mut text = Zeroizing::new(String::with_capacity(PREFIX.len() + 2 * KEY_BYTES));
        text.push_str(PREFIX);
        to_hex(&*self.0, &mut text);
        write_secret(path, &text)
    }

    /// Makes the token of these claims.
    ///
    /// # Errors
    /// `Io` when the system gives no random numbers.
    pub(crate) fn seal(&self, claims: &TokenClaims) -> Result<ClientToken> {
        self.seal_for(PURPOSE, claims.to_bytes())
            .map(|sealed| ClientToken::new(sealed.to_text()))
    }

    fn seal_for(&self, purpose: &[u8], mut claims: Vec<u8>) -> Result<SealedToken> {
        let mut nonce = [0; NONCE_BYTES];
        random(&mut nonce)?;
        let sealing = Nonce::assume_unique_for_key(nonce);
        self.cipher()?
            .seal_in_place_append_tag(sealing, Aad::from(purpose), &mut claims)
            .map_err(|_| Error::new(Code::InvalidArgument, "token", "it cannot be encrypted"))?;
        Ok(SealedToken { nonce, claims })
    }

    /// Returns the claims of a token that this key has made. Checks no times.
    ///
    /// # Errors
    /// `Denied` with the reason, without any part of the token.
    pub(crate) fn open(&self, token: &str) -> Result<TokenClaims> {
        let SealedToken { nonce, claims } = SealedToken::parse(token)?;
        let mut claims = Zeroizing::new(claims);
        let plain = self
            .cipher()?
            .open_in_place(Nonce::assume_unique_for_key(nonce), Aad::from(PURPOSE), &mut claims)
            .map_err(|_| {
                denied(
                    "it was not made with the key of this pool: `junctura token make FOLDER --for NAME` makes one \
                     with the key of the folder that its server has in `--security`",
                )
            })?;
        TokenClaims::read(plain)
    }

    fn cipher(&self) -> Result<LessSafeKey> {
        let unusable = |_| Error::new(Code::InvalidArgument, "key", "it cannot be used");
        UnboundKey::new(&CHACHA20_POLY1305, &*self.0)
            .map(LessSafeKey::new)
            .map_err(unusable)
    }
}

impl fmt::Debug for TokenKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenKey(…)")
    }
}

// The allowance in `token.rs` equals what the cipher appends and takes.
const _: () = assert!(NONCE_BYTES == ring::aead::NONCE_LEN && TAG_BYTES == 16);

pub(crate) fn random(bytes: &mut [u8]) -> Result<()> {
    SystemRandom::new()
        .fill(bytes)
        .map_err(|_| Error::new(Code::Io, "random numbers", "the system returns none"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use junctura_wire::rights::AccessRights;

    use super::*;

    fn claims(name: &str) -> TokenClaims {
        TokenClaims {
            id: 7,
            rights: AccessRights::READ,
            from: 0,
            until: u64::MAX,
            name: name.to_owned(),
        }
    }

    fn refusal(key: &TokenKey, token: &str) -> String {
        let error = key.open(token).unwrap_err();
        assert_eq!(error.code(), Code::Denied);
        assert!(token.len() < 16 || !error.to_string().contains(token));
        error.cause().to_owned()
    }

    #[test]
    fn a_token_names_its_owner_to_its_key_alone() {
        let (key, other) = (TokenKey::generate().unwrap(), TokenKey::generate().unwrap());
        for name in ["viewer", "", "Größe", "n".repeat(512).as_str()] {
            let token = key.seal(&claims(name)).unwrap();
            assert_eq!(key.open(token.reveal()).unwrap(), claims(name));
            assert!(refusal(&other, token.reveal()).contains("not made with the key"));
        }
        let twice = [
            key.seal(&claims("viewer")).unwrap(),
            key.seal(&claims("viewer")).unwrap(),
        ];
        assert_ne!(twice[0].reveal(), twice[1].reveal());
    }

    #[test]
    fn a_token_that_was_changed_anywhere_is_refused() {
        let key = TokenKey::generate().unwrap();
        let token = key.seal(&claims("viewer")).unwrap();
        let text = token.reveal();
        for at in 0..text.len() {
            let mut bytes = text.as_bytes().to_vec();
            bytes[at] = if bytes[at] == b'0' { b'1' } else { b'0' };
            refusal(&key, std::str::from_utf8(&bytes).unwrap());
            refusal(&key, &text[..at]);
        }
        refusal(&key, &format!("{text}00"));
        refusal(&key, "junctura-token-1.AAAA");
    }

    #[test]
    fn a_token_for_another_purpose_or_with_other_claims_is_refused() {
        let key = TokenKey::generate().unwrap();
        let for_purpose = |purpose: &[u8], claims| key.seal_for(purpose, claims).unwrap().to_text();
        let good = claims("viewer");
        assert_eq!(key.open(&for_purpose(PURPOSE, good.to_bytes())).unwrap(), good);
        let other = for_purpose(b"junctura-link-2", good.to_bytes());
        assert!(refusal(&key, &other).contains("not made with the key"));
        let not_text = [0xff; 30].to_vec();
        assert!(refusal(&key, &for_purpose(PURPOSE, not_text)).contains("cannot be read"));
    }

    #[test]
    fn secrets_are_their_owners() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("key");
        let key = TokenKey::generate().unwrap();
        key.write(&path).unwrap();
        assert_eq!(key.write(&path).unwrap_err().code(), Code::AlreadyExists);
        let token = key.seal(&claims("viewer")).unwrap();
        assert!(TokenKey::read(&path).unwrap().open(token.reveal()).is_ok());
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        assert_eq!(TokenKey::read(&path).unwrap_err().code(), Code::Denied);
        let none = ClientToken::read(&directory.path().join("none"));
        assert_eq!(none.unwrap_err().code(), Code::NotFound);
        let shown = format!("{token:?} {key:?}");
        assert_eq!(shown, "Token(…) TokenKey(…)");
    }

    #[test]
    fn what_is_no_key_is_refused_and_an_old_one_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let read = |text: &str| {
            let path = directory.path().join("key");
            let _ = std::fs::remove_file(&path);
            write_secret(&path, text).unwrap();
            TokenKey::read(&path).map(drop)
        };
        let good = format!("{PREFIX}{}", "0f".repeat(KEY_BYTES));
        read(&good).unwrap();
        read(&format!("  {good}\n")).unwrap();
        let bad = [
            "nonsense".to_owned(),
            String::new(),
            PREFIX.to_owned(),
            good.to_uppercase(),
            good.replace("0f", "0F"),
            format!("{good}0f"),
            good[..good.len() - 2].to_owned(),
            good.replace("key", "token"),
        ];
        for text in bad {
            let error = read(&text).unwrap_err();
            assert_eq!(error.code(), Code::Corrupt, "{text:?}");
            assert!(text.is_empty() || !error.to_string().contains(&text), "{text:?}");
        }
        let old = read("k4.local.cHVyZSByYW5kb20gYnl0ZXM").unwrap_err();
        assert_eq!(old.code(), Code::Unsupported);
        assert!(old.cause().contains("earlier version") && old.cause().contains("junctura token"));
    }
}
