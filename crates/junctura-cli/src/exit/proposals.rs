//! Commands that errors propose: they name the pool and the store of this command, so that they can be pasted.

use std::cell::RefCell;

use junctura::Error;
use junctura::binding::{complete_commands, with_complete_commands};
use junctura_model::command::shell_word;

thread_local! {
    static POOL: RefCell<Option<String>> = const { RefCell::new(None) };
    static STORE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Notes the pool that the command uses.
pub(crate) fn note_pool(url: &str) {
    POOL.set(Some(url.to_owned()));
}

/// Notes the store that the command uses. A URL with options may contain a secret, and is not repeated.
pub(crate) fn note_store(url: &str) {
    STORE.set((!url.contains(['?', '@'])).then(|| url.to_owned()));
}

/// Completes the commands of a message about the pool.
pub(crate) fn complete_message(message: &str) -> String {
    let url = POOL.with_borrow(Clone::clone);
    url.map_or_else(
        || message.to_owned(),
        |url| complete_commands(message, &url).into_owned(),
    )
}

/// Completes the commands of an error.
pub(crate) fn complete(error: Error) -> Error {
    let error = match POOL.with_borrow(Clone::clone) {
        Some(url) => with_complete_commands(error, &url),
        None => error,
    };
    match STORE.with_borrow(Clone::clone) {
        Some(url) if error.cause().contains(" --store URL") => {
            let cause = error
                .cause()
                .replace(" --store URL", &format!(" --store {}", shell_word(&url)));
            error.because(cause)
        }
        _ => error,
    }
}
