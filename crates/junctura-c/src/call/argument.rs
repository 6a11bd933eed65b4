//! Reads arguments of C: texts, bytes, times, and places for results.

use std::ffi::{CStr, CString, c_char, c_void};
use std::time::Duration;

use junctura::{Code, Error, Result};

/// A longer timeout waits forever.
const FOREVER_S: f64 = 1e10;

pub(crate) fn invalid(subject: &str, cause: impl Into<String>) -> Error {
    Error::new(Code::InvalidArgument, subject, cause)
}

/// Reads a text that may be NULL.
///
/// # Errors
/// `InvalidArgument` for a text that is not UTF-8.
///
/// # Safety
/// The pointer is NULL or points to a NUL-terminated text that outlives `'a`.
pub(crate) unsafe fn optional_text<'a>(subject: &str, text: *const c_char) -> Result<Option<&'a str>> {
    if text.is_null() {
        return Ok(None);
    }
    // SAFETY: as the caller guarantees.
    let text = unsafe { CStr::from_ptr(text) };
    match text.to_str() {
        Ok(text) => Ok(Some(text)),
        Err(error) => Err(invalid(subject, "the text is not UTF-8").at(error.valid_up_to())),
    }
}

/// Reads a text that is absent where it is NULL or empty: Fortran has no NULL for a text.
///
/// # Errors
/// As [`optional_text`].
///
/// # Safety
/// As [`optional_text`].
pub(crate) unsafe fn given_text<'a>(subject: &str, text: *const c_char) -> Result<Option<&'a str>> {
    // SAFETY: as the caller guarantees.
    Ok(unsafe { optional_text(subject, text) }?.filter(|text| !text.is_empty()))
}

/// Reads a text.
///
/// # Errors
/// `InvalidArgument` for NULL and for a text that is not UTF-8.
///
/// # Safety
/// As [`optional_text`].
pub(crate) unsafe fn text<'a>(subject: &str, text: *const c_char) -> Result<&'a str> {
    // SAFETY: as the caller guarantees.
    unsafe { optional_text(subject, text) }?.ok_or_else(|| invalid(subject, "NULL"))
}

/// Reads an array; NULL is an empty one.
///
/// # Errors
/// `InvalidArgument` for NULL with a length, and for more than an array may have.
///
/// # Safety
/// The pointer is NULL or points to so many values that nothing changes during `'a`.
pub(crate) unsafe fn slice<'a, T>(subject: &str, data: *const T, count: usize) -> Result<&'a [T]> {
    check_range(subject, data, count)?;
    if count == 0 {
        return Ok(&[]);
    }
    // SAFETY: the range was checked, and the caller guarantees the values.
    Ok(unsafe { std::slice::from_raw_parts(data, count) })
}

/// Reads bytes of any type.
///
/// # Errors
/// As [`slice`].
///
/// # Safety
/// As [`slice`].
pub(crate) unsafe fn bytes<'a>(subject: &str, data: *const c_void, count: usize) -> Result<&'a [u8]> {
    // SAFETY: as the caller guarantees.
    unsafe { slice(subject, data.cast(), count) }
}

/// Memory of the caller's to write to.
///
/// # Errors
/// As [`slice`].
///
/// # Safety
/// As [`slice`], and nothing else reads it during `'a`.
pub(crate) unsafe fn bytes_mut<'a>(subject: &str, data: *mut c_void, count: usize) -> Result<&'a mut [u8]> {
    check_range(subject, data.cast_const().cast::<u8>(), count)?;
    if count == 0 {
        return Ok(&mut []);
    }
    // SAFETY: the range was checked, and the caller guarantees the memory.
    Ok(unsafe { std::slice::from_raw_parts_mut(data.cast(), count) })
}

fn check_range<T>(subject: &str, data: *const T, count: usize) -> Result<()> {
    if count == 0 {
        return Ok(());
    }
    if data.is_null() {
        return Err(invalid(subject, format!("NULL for {count} values")));
    }
    if !data.is_aligned() {
        return Err(invalid(subject, "the address is not aligned"));
    }
    match count.checked_mul(size_of::<T>()) {
        Some(bytes) if isize::try_from(bytes).is_ok() => Ok(()),
        _ => Err(invalid(subject, format!("{count} values are more than an array has"))),
    }
}

/// Reads a timeout in seconds: negative waits forever, zero does not wait.
///
/// # Errors
/// `InvalidArgument` for NaN.
pub(crate) fn timeout(seconds: f64) -> Result<Option<Duration>> {
    if seconds.is_nan() {
        return Err(invalid("timeout", "NaN is no number of seconds"));
    }
    if seconds.is_sign_negative() && seconds != 0.0 || seconds >= FOREVER_S {
        return Ok(None);
    }
    Ok(Some(Duration::from_secs_f64(seconds.abs())))
}

/// A place for a result that may be left out.
///
/// # Safety
/// The pointer is NULL or points to memory for one value.
pub(crate) unsafe fn put<T>(place: *mut T, value: T) {
    if !place.is_null() {
        // SAFETY: as the caller guarantees.
        unsafe { place.write(value) };
    }
}

/// Checks a place for a result, and puts a first value there.
///
/// # Errors
/// `InvalidArgument` for NULL.
///
/// # Safety
/// As [`put`].
pub(crate) unsafe fn place<T>(subject: &str, place: *mut T, first: T) -> Result<()> {
    if place.is_null() {
        return Err(invalid(subject, "NULL, and the result has no place"));
    }
    // SAFETY: it is not NULL, and the caller guarantees the rest.
    unsafe { place.write(first) };
    Ok(())
}

/// A text for C. It ends at the first NUL that it contains.
pub(crate) fn c_text(text: &str) -> CString {
    let end = text.find('\0').unwrap_or(text.len());
    CString::new(&text[..end]).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_seconds_and_negative_ones_wait_forever() {
        assert_eq!(timeout(-1.0), Ok(None));
        assert_eq!(timeout(f64::INFINITY), Ok(None));
        assert_eq!(timeout(0.0), Ok(Some(Duration::ZERO)));
        assert_eq!(timeout(-0.0), Ok(Some(Duration::ZERO)));
        assert_eq!(timeout(1.5), Ok(Some(Duration::from_millis(1500))));
        assert_eq!(
            timeout(f64::NAN).map_err(|error| error.code()),
            Err(Code::InvalidArgument)
        );
    }

    #[test]
    fn a_text_for_c_ends_at_its_first_nul() {
        assert_eq!(c_text("a\0b").to_bytes(), b"a");
        assert_eq!(c_text("é").to_bytes(), "é".as_bytes());
    }
}
