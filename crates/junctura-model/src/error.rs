//! One list of errors for every language, because a caller decides by the code what to do next.
//!
//! An [`Error`] carries a [`Code`] (what kind of thing went wrong), a subject (which attribute, key, path or peer) and a
//! cause in words. [`Code::advice`] says whether to try again, to mend the input, or to give up. Names and numbers are
//! fixed for good: they travel on the wire and stand in other languages' sources. An error is one pointer wide, so a
//! `Result` of a small value stays small.

use core::time::Duration;
use std::fmt;

/// The result of nearly everything here.
pub type Result<T> = std::result::Result<T, Error>;

/// What a caller should do about an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// The same call may succeed later.
    Retry,
    /// The call will succeed once its arguments are mended.
    FixInput,
    /// Neither waiting nor other arguments help here.
    GiveUp,
}

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $advice:ident;)*) => {
        /// The kinds of error, by meaning.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Code { $($(#[$doc])* $name,)* }

        impl Code {
            /// Every code, in the order of its number.
            pub const ALL: &'static [Code] = &[$(Code::$name,)*];

            /// The name, the same in every language.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Code::$name => stringify!($name),)* }
            }

            /// The number that stands for the code on the wire; never given to another code.
            #[must_use]
            pub fn number(self) -> u16 {
                match self { $(Code::$name => $number,)* }
            }

            /// The code of that number, if there is one.
            #[must_use]
            pub fn from_number(number: u16) -> Option<Code> {
                match number { $($number => Some(Code::$name),)* _ => None }
            }

            /// What the caller should do.
            #[must_use]
            pub fn advice(self) -> Advice {
                match self { $(Code::$name => Advice::$advice,)* }
            }
        }
    };
}

codes! {
    /// There is no such thing.
    NotFound = 1, FixInput;
    /// The key (or name) is taken and the rule is to refuse a second.
    AlreadyExists = 2, FixInput;
    /// It was there and is not any more; the cause says why.
    Gone = 3, GiveUp;
    /// The selector cannot be read, or asks what its attributes cannot answer.
    InvalidSelector = 4, FixInput;
    /// The schema does not allow it: unknown, missing or doubled attribute, value or range, or two schemas that differ.
    SchemaMismatch = 5, FixInput;
    /// A value cannot be read as the type of its attribute.
    TypeMismatch = 6, FixInput;
    /// An argument that is no attribute is wrong.
    InvalidArgument = 7, FixInput;
    /// The time that the caller gave is over.
    Timeout = 8, Retry;
    /// Memory and spill are full, and nobody released anything in time.
    PoolFull = 9, Retry;
    /// The bundle has its declared number of members already.
    BundleFull = 10, FixInput;
    /// The bundle is complete or aborted.
    BundleClosed = 11, FixInput;
    /// Two callers disagree about something that must be one.
    Conflict = 12, FixInput;
    /// Nobody wants the object, and the offer was made on that condition.
    NotWanted = 13, GiveUp;
    /// The lease, membership or cursor has ended.
    Expired = 14, GiveUp;
    /// The pool, connection or handle was closed by its owner.
    Closed = 15, GiveUp;
    /// The connection to the server was lost; what only its memory held may be lost too.
    Disconnected = 16, Retry;
    /// The server cannot be reached or does not take work now.
    Unavailable = 17, Retry;
    /// The caller may not do that.
    Denied = 18, GiveUp;
    /// Bytes are not what they must be.
    Corrupt = 19, GiveUp;
    /// One thing is larger than its limit.
    TooLarge = 20, FixInput;
    /// There are more things than a limit allows.
    LimitExceeded = 21, FixInput;
    /// This build, server or machine cannot do that.
    Unsupported = 22, GiveUp;
    /// The peer broke the protocol.
    Protocol = 23, GiveUp;
    /// The wait was interrupted from outside.
    Interrupted = 24, Retry;
    /// The operating system refused a read, write or map.
    Io = 25, Retry;
}

impl Code {
    /// The code of that name, if there is one.
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

/// What went wrong, with what, and why.
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

impl Error {
    /// An error about `subject` (an attribute, key, path, peer; may be empty) because of `cause`.
    pub fn new(code: Code, subject: impl Into<String>, cause: impl Into<String>) -> Error {
        Error(Box::new(ErrorInner {
            code,
            subject: subject.into(),
            cause: cause.into(),
            position: None,
            waited: None,
        }))
    }

    /// The same error, pointing at a byte of the text or record that was being read.
    #[must_use]
    pub fn at(mut self, byte_offset: usize) -> Error {
        self.0.position = Some(byte_offset);
        self
    }

    /// The same error of a wait that ended after this time.
    #[must_use]
    pub fn after(mut self, waited: Duration) -> Error {
        self.0.waited = Some(waited);
        self
    }

    /// The kind of error.
    #[must_use]
    pub fn code(&self) -> Code {
        self.0.code
    }

    /// What it is about; empty where there is nothing to name.
    #[must_use]
    pub fn subject(&self) -> &str {
        &self.0.subject
    }

    /// Why, in words.
    #[must_use]
    pub fn cause(&self) -> &str {
        &self.0.cause
    }

    /// Offset in bytes of the place in the input, where one is known.
    #[must_use]
    pub fn position(&self) -> Option<usize> {
        self.0.position
    }

    /// How long the call waited, where the error states it.
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
        let late = Error::new(Code::Timeout, "a", "1 piece is missing").after(Duration::from_millis(1250));
        assert_eq!(late.to_string(), "Timeout: a: 1 piece is missing, after 1.2 s");
        assert_eq!(late.waited(), Some(Duration::from_millis(1250)));
        assert_eq!(size_of::<Error>(), size_of::<usize>());
    }
}
