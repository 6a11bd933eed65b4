//! Commands that messages propose: they name the pool, unless the environment does.

use std::borrow::Cow;

use junctura_model::{Error, command};

/// The variable that names the pool of a command, and the pool without it.
const VARIABLE: &str = "JUNCTURA_POOL";
const DEFAULT: &str = "unix:default";

/// Completes the commands of a message about the pool at this URL: a shell of this environment runs them as they are.
#[must_use]
pub fn complete_commands<'m>(message: &'m str, url: &str) -> Cow<'m, str> {
    if url == std::env::var(VARIABLE).as_deref().unwrap_or(DEFAULT) {
        return Cow::Borrowed(message);
    }
    command::with_pool(message, url)
}

/// As [`complete_commands`], for the cause of an error.
#[must_use]
pub fn with_complete_commands(error: Error, url: &str) -> Error {
    match complete_commands(error.cause(), url) {
        Cow::Borrowed(_) => error,
        Cow::Owned(cause) => error.because(cause),
    }
}
