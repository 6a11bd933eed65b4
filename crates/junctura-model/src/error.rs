//! One list of error codes for all languages, because callers decide by the code.
//!
//! An [`Error`] has a [`Code`] (the kind of error), a subject (an attribute, key, path or peer) and a cause in words.
//! [`Code::advice`] returns whether to retry, to fix the input, or to give up. Names and numbers are stable: they are
//! part of the wire protocol and of bindings. An error is one pointer wide, so a `Result` of a small value is small.

use core::time::Duration;
use std::fmt;

/// The result type of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// The recommended reaction to an error.
///
/// ```
/// # use junctura_model::{Advice, Code};
/// assert_eq!(Code::Disconnected.advice(), Advice::Retry);
/// assert_eq!(Code::InvalidSelector.advice(), Advice::FixInput);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// The same call may succeed later.
    Retry,
    /// The call will succeed with corrected arguments.
    FixInput,
    /// Neither waiting nor other arguments help.
    GiveUp,
}

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $advice:ident;)*) => {
        /// The kinds of error.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Code { $($(#[$doc])* $name,)* }

        impl Code {
            /// Every code, in the order of numbers.
            pub const ALL: &'static [Code] = &[$(Code::$name,)*];

            /// Returns the name, the same in every language.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Code::$name => stringify!($name),)* }
            }

            /// Returns the number of the code on the wire; numbers are never reused.
            #[must_use]
            pub fn number(self) -> u16 {
                match self { $(Code::$name => $number,)* }
            }

            /// Returns the code with this number, if there is one.
            #[must_use]
            pub fn from_number(number: u16) -> Option<Code> {
                match number { $($number => Some(Code::$name),)* _ => None }
            }

            /// Returns the recommended reaction of the caller.
            #[must_use]
            pub fn advice(self) -> Advice {
                match self { $(Code::$name => Advice::$advice,)* }
            }
        }
    };
}

codes! {
    /// The requested item does not exist.
    NotFound = 1, FixInput;
    /// The key (or name) exists, and duplicates are rejected.
    AlreadyExists = 2, FixInput;
    /// The object existed and was removed; the cause has the reason.
    Gone = 3, GiveUp;
    /// The selector is invalid, or its values do not match the types of its attributes.
    InvalidSelector = 4, FixInput;
    /// The schema does not allow it: an unknown, missing or duplicate attribute, an invalid value or range, or two
    /// schemas that differ.
    SchemaMismatch = 5, FixInput;
    /// A value cannot be parsed as the type of its attribute.
    TypeMismatch = 6, FixInput;
    /// An argument other than an attribute is invalid.
    InvalidArgument = 7, FixInput;
    /// The caller's timeout has passed.
    Timeout = 8, Retry;
    /// Memory and spill are full, and nothing was released in time.
    PoolFull = 9, Retry;
    /// The bundle has its declared number of members already.
    BundleFull = 10, FixInput;
    /// The bundle is complete or aborted.
    BundleClosed = 11, FixInput;
    /// Two callers require different values of a shared property.
    Conflict = 12, FixInput;
    /// No consumer wants the object, and the offer required one.
    NotWanted = 13, GiveUp;
    /// The lease, membership or cursor has expired.
    Expired = 14, GiveUp;
    /// The pool, connection or handle was closed by its owner.
    Closed = 15, GiveUp;
    /// The connection to the server was lost; data that were only in its memory may be lost too.
    Disconnected = 16, Retry;
    /// The server cannot be reached, or accepts no work now.
    Unavailable = 17, Retry;
    /// The caller lacks the permission.
    Denied = 18, GiveUp;
    /// Data are corrupt.
    Corrupt = 19, GiveUp;
    /// An item exceeds its size limit.
    TooLarge = 20, FixInput;
    /// The number of items exceeds a limit.
    LimitExceeded = 21, FixInput;
    /// This build, server or machine does not support the operation.
    Unsupported = 22, GiveUp;
    /// The peer violated the protocol.
    Protocol = 23, GiveUp;
    /// The wait was interrupted from outside.
    Interrupted = 24, Retry;
    /// A read, write or map of the operating system failed.
    Io = 25, Retry;
}

impl Code {
    /// Returns the code with this name, if there is one.
    ///
    /// ```
    /// # use junctura_model::Code;
    /// assert_eq!(Code::from_name("Timeout"), Some(Code::Timeout));
    /// assert_eq!(Code::from_name(Code::Gone.name()), Some(Code::Gone));
    /// ```
    #[must_use]
    pub fn from_name(name: &str) -> Option<Code> {
        Self::ALL.iter().copied().find(|code| code.name() == name)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// An error: its kind, its subject, and its cause.
///
/// ```
/// # use junctura_model::{Advice, Code, Error};
/// # fn main() -> junctura_model::Result<()> {
/// let error = Error::new(Code::TypeMismatch, "levelist", "\"abc\" is no decimal").at(7);
/// assert_eq!((error.code(), error.subject(), error.position()), (Code::TypeMismatch, "levelist", Some(7)));
/// assert_eq!(error.code().advice(), Advice::FixInput);
/// assert_eq!(error.to_string(), format!("TypeMismatch: levelist: {} (at byte 7)", error.cause()));
/// assert_eq!(Code::from_name("Timeout"), Some(Code::Timeout));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Error(Box<ErrorInner>);

#[derive(Clone, PartialEq, Eq)]
struct ErrorInner {
    code: Code,
    subject: String,
    cause: String,
    position: Option<usize>,
    waited: Option<Duration>,
}

/// Removes the number that `std::io::Error` prints after the text of an error of the system: ` (os error 2)`. The text names the
/// error already.
fn without_system_number(mut cause: String) -> String {
    const BEGIN: &str = " (os error ";
    while let Some(start) = cause.find(BEGIN) {
        let number = &cause[start + BEGIN.len()..];
        let digits = number.bytes().take_while(u8::is_ascii_digit).count();
        if digits == 0 || !number[digits..].starts_with(')') {
            break;
        }
        cause.replace_range(start..=start + BEGIN.len() + digits, "");
    }
    cause
}

impl Error {
    /// Creates an error about `subject` (an attribute, key, path, peer; may be empty) because of `cause`.
    pub fn new(code: Code, subject: impl Into<String>, cause: impl Into<String>) -> Error {
        Error(Box::new(ErrorInner {
            code,
            subject: subject.into(),
            cause: without_system_number(cause.into()),
            position: None,
            waited: None,
        }))
    }

    /// Adds a position: a byte offset in the text or record that was parsed.
    #[must_use]
    pub fn at(mut self, byte_offset: usize) -> Error {
        self.0.position = Some(byte_offset);
        self
    }

    /// Adds the duration of the wait that failed.
    #[must_use]
    pub fn after(mut self, waited: Duration) -> Error {
        self.0.waited = Some(waited);
        self
    }

    /// Replaces the cause.
    #[must_use]
    pub fn because(mut self, cause: impl Into<String>) -> Error {
        self.0.cause = without_system_number(cause.into());
        self
    }

    /// Returns the kind of error.
    #[must_use]
    pub fn code(&self) -> Code {
        self.0.code
    }

    /// Returns the subject; may be empty.
    #[must_use]
    pub fn subject(&self) -> &str {
        &self.0.subject
    }

    /// Returns the cause, in words.
    #[must_use]
    pub fn cause(&self) -> &str {
        &self.0.cause
    }

    /// Returns the byte offset in the input, if known.
    #[must_use]
    pub fn position(&self) -> Option<usize> {
        self.0.position
    }

    /// Returns the duration of the wait, if known.
    #[must_use]
    pub fn waited(&self) -> Option<Duration> {
        self.0.waited
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.code.name())?;
        for part in [&self.0.subject, &self.0.cause] {
            if !part.is_empty() {
                write!(f, ": {part}")?;
            }
        }
        if let Some(waited) = self.0.waited {
            write!(f, ", after {:.1} s", waited.as_secs_f64())?;
        }
        match self.0.position {
            Some(position) => write!(f, " (at byte {position})"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_round_trip_and_are_distinct() {
        for (at, &code) in Code::ALL.iter().enumerate() {
            assert_eq!(Code::from_name(code.name()), Some(code));
            assert_eq!(Code::from_number(code.number()), Some(code));
            assert_eq!(usize::from(code.number()), at + 1);
        }
        assert_eq!(Code::from_name("notfound"), None);
        assert_eq!(Code::from_number(0), None);
    }

    #[test]
    fn an_error_says_what_with_what_why_and_where() {
        let error = Error::new(Code::TypeMismatch, "levelist", "\"abc\" is no decimal").at(7);
        assert_eq!(
            error.to_string(),
            "TypeMismatch: levelist: \"abc\" is no decimal (at byte 7)"
        );
        assert_eq!(Error::new(Code::Closed, "", "").to_string(), "Closed");
        let missing = std::io::Error::from_raw_os_error(2).to_string();
        let error = Error::new(Code::Io, "f", format!("{missing}; {missing} (os error ab)"));
        assert_eq!(
            error.cause(),
            "No such file or directory; No such file or directory (os error ab)"
        );
        let late = Error::new(Code::Timeout, "a", "1 piece is missing").after(Duration::from_millis(1250));
        assert_eq!(late.to_string(), "Timeout: a: 1 piece is missing, after 1.2 s");
        assert_eq!(late.waited(), Some(Duration::from_millis(1250)));
        assert_eq!(size_of::<Error>(), size_of::<usize>());
    }
}
