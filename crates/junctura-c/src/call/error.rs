//! Errors of C: a number for each call, and the text of the thread's last error.

use std::any::Any;
use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int};
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use junctura::{Advice, Code, Error, Result};

use crate::call::argument::c_text;
use crate::call::codes::{JCT_FIX, JCT_GIVE_UP, JCT_OK, JCT_PANIC, JCT_RETRY};

thread_local! {
    static LAST: RefCell<LastError> = RefCell::default();
}

#[derive(Default)]
struct LastError {
    code: c_int,
    text: CString,
    subject: CString,
    cause: CString,
}

impl LastError {
    fn of(error: &Error) -> Self {
        Self {
            code: c_int::from(error.code().number()),
            text: c_text(&error.to_string()),
            subject: c_text(error.subject()),
            cause: c_text(error.cause()),
        }
    }

    fn of_panic(payload: &(dyn Any + Send)) -> Self {
        let said = payload.downcast_ref::<&str>().copied();
        let cause = said.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
        let cause = cause.unwrap_or("no text");
        Self {
            code: JCT_PANIC,
            text: c_text(&format!("Panic: {cause}")),
            subject: CString::default(),
            cause: c_text(cause),
        }
    }

    fn note(self) -> c_int {
        let code = self.code;
        // When the thread ends, its last error may be dropped before handles that the program frees then.
        let _ = LAST.try_with(|last| *last.borrow_mut() = self);
        code
    }
}

/// Runs the body of a function that returns a number. No panic leaves it.
pub(crate) fn guarded(body: impl FnOnce() -> Result<()>) -> c_int {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => JCT_OK,
        Ok(Err(error)) => LastError::of(&error).note(),
        Err(payload) => {
            let code = LastError::of_panic(&*payload).note();
            // Dropping the payload could panic, too: the second payload is not dropped.
            if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
                let _ = ManuallyDrop::new(again);
            }
            code
        }
    }
}

/// Runs the body of a function that returns a value; the fallback where it fails.
pub(crate) fn guarded_or<T>(fallback: T, body: impl FnOnce() -> Result<T>) -> T {
    let mut value = fallback;
    guarded(|| {
        value = body()?;
        Ok(())
    });
    value
}

/// Returns the number of this thread's last error, JCT_OK where none has occurred. A call that succeeds
/// does not change it.
#[unsafe(no_mangle)]
pub extern "C" fn jct_error_code() -> c_int {
    LAST.try_with(|last| last.borrow().code).unwrap_or(JCT_OK)
}

/// Returns this thread's last error as one line: "code: subject: cause". Empty where none has occurred. The
/// text is valid until the next call of this thread that fails.
#[unsafe(no_mangle)]
pub extern "C" fn jct_error_text() -> *const c_char {
    text_of(|last| &last.text)
}

/// Returns the subject of this thread's last error: an attribute, key, path or peer; may be empty. Valid as
/// jct_error_text.
#[unsafe(no_mangle)]
pub extern "C" fn jct_error_subject() -> *const c_char {
    text_of(|last| &last.subject)
}

/// Returns the cause of this thread's last error in words. Valid as jct_error_text.
#[unsafe(no_mangle)]
pub extern "C" fn jct_error_cause() -> *const c_char {
    text_of(|last| &last.cause)
}

fn text_of(part: impl FnOnce(&LastError) -> &CString) -> *const c_char {
    LAST.try_with(|last| part(&last.borrow()).as_ptr())
        .unwrap_or(c"".as_ptr())
}

/// Returns the name of a number that a function returned, such as "NotFound", the same in every language;
/// NULL for any other number. The text is static.
#[unsafe(no_mangle)]
pub extern "C" fn jct_code_name(code: c_int) -> *const c_char {
    if code == JCT_OK {
        return c"Ok".as_ptr();
    }
    if code == JCT_PANIC {
        return c"Panic".as_ptr();
    }
    let code = u16::try_from(code).ok().and_then(Code::from_number);
    code.map_or(ptr::null(), |code| c_name(code).as_ptr())
}

/// Returns what to do about an error: JCT_RETRY, JCT_FIX or JCT_GIVE_UP.
#[unsafe(no_mangle)]
pub extern "C" fn jct_code_advice(code: c_int) -> c_int {
    let code = u16::try_from(code).ok().and_then(Code::from_number);
    match code.map(Code::advice) {
        Some(Advice::Retry) => JCT_RETRY,
        Some(Advice::FixInput) => JCT_FIX,
        Some(Advice::GiveUp) | None => JCT_GIVE_UP,
    }
}

macro_rules! names {
    ($($name:ident)*) => {
        /// The name of a code for C.
        fn c_name(code: Code) -> &'static std::ffi::CStr {
            const NAMES: &[(Code, &str)] = &[$((Code::$name, concat!(stringify!($name), "\0")),)*];
            let found = NAMES.iter().find(|(one, _)| *one == code);
            found.and_then(|(_, name)| std::ffi::CStr::from_bytes_with_nul(name.as_bytes()).ok()).unwrap_or(c"")
        }
    };
}

names! {
    NotFound AlreadyExists Gone InvalidSelector SchemaMismatch TypeMismatch InvalidArgument Timeout PoolFull BundleFull
    BundleClosed Conflict NotWanted Expired Closed Disconnected Unavailable Denied Corrupt TooLarge LimitExceeded Unsupported
    Protocol Interrupted Io
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_for_c_are_those_of_the_codes() {
        for &code in Code::ALL {
            assert_eq!(c_name(code).to_str(), Ok(code.name()));
        }
    }

    #[test]
    fn an_error_and_a_panic_are_numbers_with_a_text() {
        assert_eq!(guarded(|| Ok(())), JCT_OK);
        let timeout = Error::new(Code::Timeout, "a", "late");
        assert_eq!(guarded(|| Err(timeout)), 8);
        assert_eq!(LAST.with(|last| last.borrow().text.clone()), *c"Timeout: a: late");
        assert_eq!(guarded(|| panic!("a defect")), JCT_PANIC);
        assert_eq!(LAST.with(|last| last.borrow().text.clone()), *c"Panic: a defect");
        assert_eq!(guarded_or(7, || panic!("{}", "another")), 7);
        assert_eq!(jct_error_code(), JCT_PANIC);
    }
}
