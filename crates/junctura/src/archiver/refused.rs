//! Objects that cannot be archived, each for a reason of its own. The others are archived.
//!
//! ```text
//!  refused --told, counted--> held here --the archiver ends--> given back, owed to the next archiver
//! ```
//!
//! An object that is given back through a requirement is redelivered to its reader at once. Rejected objects therefore
//! stay held until the archiver ends. They count for the window of the follow that delivered them; before they fill
//! half of the window, another follow replaces it (`Archiver::renew_if_due`).

use junctura_model::{Advice, Code, Error, Result};

use crate::object::Object;

/// Maximum number of objects that are set aside; more indicate a general fault.
const OBJECTS_MAX: usize = 1 << 16;

/// See the module.
#[derive(Default)]
pub(super) struct RefusedObjects {
    objects: Vec<Object>,
    /// The number of objects that the present follow delivered.
    in_window: usize,
    first: Option<Error>,
}

impl RefusedObjects {
    /// # Errors
    /// `LimitExceeded` for more objects than may be set aside.
    pub(super) fn add(&mut self, object: Object, error: &Error) -> Result<()> {
        let first = || {
            let subject = format!("object {} {}", object.version(), object.key());
            Error::new(error.code(), subject, error.to_string())
        };
        self.first.get_or_insert_with(first);
        self.objects.push(object);
        self.in_window += 1;
        if self.objects.len() < OBJECTS_MAX {
            return Ok(());
        }
        let cause = format!("{OBJECTS_MAX} objects could not be archived; the last: {error}");
        Err(Error::new(Code::LimitExceeded, "archiver", cause))
    }

    /// Returns the number of objects that were set aside, delivered by any follow.
    pub(super) fn len(&self) -> usize {
        self.objects.len()
    }

    /// Returns the number of these that count for the present window.
    pub(super) fn in_window(&self) -> usize {
        self.in_window
    }

    /// Records that another follow has begun.
    pub(super) fn renewed(&mut self) {
        self.in_window = 0;
    }

    pub(super) fn take_all(&mut self) -> Vec<Object> {
        std::mem::take(&mut self.objects)
    }

    /// Returns the error with which the archiver ends: that of the first object.
    pub(super) fn outcome(&self, failed: u64) -> Result<()> {
        match &self.first {
            None => Ok(()),
            Some(first) => {
                let cause = format!("{}; {failed} not archived in all: they stay in the pool", first.cause());
                Err(Error::new(first.code(), first.subject(), cause))
            }
        }
    }
}

/// Returns whether the cause is an array that could not be assembled, and not the pool or the connection.
pub(super) fn is_of_array(error: &Error) -> bool {
    let is_of_pool = matches!(error.code(), Code::Closed | Code::Denied | Code::Protocol);
    error.code().advice() != Advice::Retry && !is_of_pool
}

/// Returns whether a store rejects single objects, and not everything: a full disk, another owner, a damaged catalogue
/// are faults of the store.
pub(super) fn is_of_objects(error: &Error) -> bool {
    matches!(
        error.code(),
        Code::InvalidArgument | Code::LimitExceeded | Code::SchemaMismatch | Code::TooLarge | Code::TypeMismatch
    )
}

/// Returns whether a disk fails or refuses access, or a bucket cannot be reached: this may be repaired while the archiver waits.
pub(super) fn is_of_disk(error: &Error) -> bool {
    matches!(error.code(), Code::Io | Code::Denied | Code::Unavailable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_of_the_pool_and_of_the_store_are_none_of_an_object() {
        let of = |code| Error::new(code, "", "");
        for code in [
            Code::Closed,
            Code::Disconnected,
            Code::Io,
            Code::Interrupted,
            Code::Protocol,
        ] {
            assert!(!is_of_array(&of(code)) && !is_of_objects(&of(code)), "{code}");
        }
        for code in [
            Code::Conflict,
            Code::Corrupt,
            Code::Denied,
            Code::Expired,
            Code::NotFound,
        ] {
            assert!(!is_of_objects(&of(code)), "{code}");
        }
        for code in [
            Code::Corrupt,
            Code::Expired,
            Code::InvalidArgument,
            Code::LimitExceeded,
            Code::TooLarge,
        ] {
            assert!(is_of_array(&of(code)), "{code}");
        }
        for code in [Code::LimitExceeded, Code::SchemaMismatch, Code::TooLarge] {
            assert!(is_of_objects(&of(code)), "{code}");
        }
    }
}
