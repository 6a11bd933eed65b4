//! Exit statuses: one meaning each, documented in `--help`.

pub(crate) mod proposals;

use junctura::{Code, Result};
use junctura_terminal::visible::shortened;

use self::proposals::complete;

/// Meanings of the exit statuses, for every help text.
pub(crate) const STATUSES: &str =
    "Exit status: 0 done; 1 failed; 2 wrong arguments or input; 3 nothing there (not found, gone);
4 timed out; 5 the pool cannot be reached; 6 the pool is full or a limit was reached; 130 interrupted.";

/// The end of `junctura --help`.
pub(crate) const HELP: &str =
    "Exit status: 0 done; 1 failed; 2 wrong arguments or input; 3 nothing there (not found, gone);
4 timed out; 5 the pool cannot be reached; 6 the pool is full or a limit was reached; 130 interrupted.
The pool is the one that --pool or JUNCTURA_POOL names (default: unix:default).
Is something wrong with this machine? `junctura doctor` looks.";

/// Prints an error, if there is one, and returns its exit status.
pub(crate) fn status(outcome: Result<()>) -> u8 {
    let Err(error) = outcome.map_err(complete) else {
        return 0;
    };
    say!("junctura: {}", shortened(&error.to_string()));
    match error.code() {
        Code::NotFound | Code::Gone | Code::NotWanted => 3,
        Code::InvalidSelector | Code::SchemaMismatch | Code::TypeMismatch | Code::InvalidArgument | Code::TooLarge => 2,
        Code::Timeout => 4,
        Code::Disconnected | Code::Unavailable | Code::Closed => 5,
        Code::PoolFull | Code::LimitExceeded | Code::BundleFull => 6,
        Code::Interrupted => 130,
        _ => 1,
    }
}
