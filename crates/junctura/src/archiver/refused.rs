//! Objects that cannot be archived, each for a reason of its own. The others are archived without them.
//!
//! ```text
//!  refused --told, counted--> held here --the archiver ends--> given back, owed to the next archiver
//! ```
//! An object that is given back through a requirement is delivered to its reader again at once. So objects that were refused stay held until
//! the archiver ends. They count for the window of the follow that they came through; before half of it is full, another follow takes its
//! place (`Archiver::renew_if_due`).

use junctura_model::{Advice, Code, Error, Result};

use crate::object::Object;

/// Objects that are set aside; more of them are no longer the fault of single objects.
const OBJECTS_MAX: usize = 1 << 16;

/// See the module.
#[derive(Default)]
pub(super) struct RefusedObjects {
    objects: Vec<Object>,
    /// Of them, those that came through the present follow.
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

    /// How many were set aside, by whatever follow they came.
    pub(super) fn len(&self) -> usize {
        self.objects.len()
    }

    /// How much of the window is taken up.
    pub(super) fn in_window(&self) -> usize {
        self.in_window
    }

    /// The follow is another one.
    pub(super) fn renewed(&mut self) {
        self.in_window = 0;
    }

    pub(super) fn take_all(&mut self) -> Vec<Object> {
        std::mem::take(&mut self.objects)
    }

    /// The error that the archiver ends with: that of the first object.
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

/// Whether an array that could not be gathered is the reason, and not the pool or the connection.
pub(super) fn is_of_array(error: &Error) -> bool {
    let is_of_pool = matches!(error.code(), Code::Closed | Code::Denied | Code::Protocol);
    error.code().advice() != Advice::Retry && !is_of_pool
}

/// Whether a store refuses what it is given, and not everything: a full disk, another owner, a damaged catalogue are reasons of the store.
pub(super) fn is_of_objects(error: &Error) -> bool {
    matches!(
        error.code(),
        Code::InvalidArgument | Code::LimitExceeded | Code::SchemaMismatch | Code::TooLarge | Code::TypeMismatch
    )
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
