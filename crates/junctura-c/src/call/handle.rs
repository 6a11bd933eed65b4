//! Handles: opaque boxes with a tag word.
//!
//! ```text
//!  create ──► tag of the type, value ──release──► tag RELEASED, no value
//! ```
//! With debug assertions a released handle stays allocated as a tombstone: a later use, or a second release, finds the tag and
//! fails with `InvalidArgument`. Without them its memory is freed. A handle of another type is refused in both.

use std::cell::UnsafeCell;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use junctura::{Error, Result};

use crate::call::argument::{invalid, place};

/// The tag of a handle that was released.
const RELEASED: u64 = 0x6a63_745f_6672_6565;
/// The tombstones. They are linked, so that tools for leaks find them.
static TOMBSTONES: AtomicPtr<HandleHeader> = AtomicPtr::new(ptr::null_mut());

/// A type that C has a pointer to.
pub(crate) trait OpaqueType {
    /// The content of the handle.
    type Value;
    /// The first word of a handle of this type.
    const TAG: u64;
    /// The subject of errors.
    const NAME: &'static str;
}

#[repr(C)]
struct HandleHeader {
    tag: AtomicU64,
    next: AtomicPtr<HandleHeader>,
}

#[repr(C)]
struct HandleBody<V> {
    header: HandleHeader,
    value: UnsafeCell<Option<V>>,
}

/// Makes a handle.
pub(crate) fn create<O: OpaqueType>(value: O::Value) -> *mut O {
    let header = HandleHeader {
        tag: AtomicU64::new(O::TAG),
        next: AtomicPtr::new(ptr::null_mut()),
    };
    let body = HandleBody {
        header,
        value: UnsafeCell::new(Some(value)),
    };
    Box::into_raw(Box::new(body)).cast()
}

/// Puts a new handle into `out`, which is NULL if `make` fails.
///
/// # Errors
/// Those of `make`; `InvalidArgument` where `out` is NULL.
///
/// # Safety
/// `out` is NULL or points to memory for one pointer.
pub(crate) unsafe fn create_in<O: OpaqueType>(out: *mut *mut O, make: impl FnOnce() -> Result<O::Value>) -> Result<()> {
    // SAFETY: as the caller guarantees.
    unsafe { place(O::NAME, out, ptr::null_mut()) }?;
    let handle = create(make()?);
    // SAFETY: it is not NULL, as `place` checked.
    unsafe { out.write(handle) };
    Ok(())
}

/// The contents of a handle that threads may share.
///
/// # Errors
/// `InvalidArgument` for NULL, a handle of another type, and, with debug assertions, a released one.
///
/// # Safety
/// The pointer is NULL or a handle that is not released during `'a`.
pub(crate) unsafe fn shared<'a, O: OpaqueType>(handle: *const O) -> Result<&'a O::Value> {
    // SAFETY: as the caller guarantees.
    let body = unsafe { checked::<O>(handle) }?;
    // SAFETY: only `exclusive` and `release` write, which the caller does not call meanwhile.
    unsafe { &*body.value.get() }.as_ref().ok_or_else(released::<O>)
}

/// The contents of a handle that one thread uses.
///
/// # Errors
/// As [`shared`].
///
/// # Safety
/// As [`shared`], and no other thread uses the handle during `'a`.
pub(crate) unsafe fn exclusive<'a, O: OpaqueType>(handle: *mut O) -> Result<&'a mut O::Value> {
    // SAFETY: as the caller guarantees.
    let body = unsafe { checked::<O>(handle) }?;
    // SAFETY: nothing else uses the value, as the caller guarantees.
    unsafe { &mut *body.value.get() }.as_mut().ok_or_else(released::<O>)
}

/// Takes the contents out of a handle, which is released; `None` for NULL.
///
/// # Errors
/// As [`shared`], except for NULL.
///
/// # Safety
/// The pointer is NULL or a handle that nothing else uses.
pub(crate) unsafe fn release<O: OpaqueType>(handle: *mut O) -> Result<Option<O::Value>> {
    if handle.is_null() {
        return Ok(None);
    }
    // SAFETY: as the caller guarantees.
    let body = unsafe { checked::<O>(handle) }?;
    let was = body
        .header
        .tag
        .compare_exchange(O::TAG, RELEASED, Ordering::AcqRel, Ordering::Acquire);
    if was.is_err() {
        return Err(released::<O>());
    }
    // SAFETY: the exchange succeeds once, so this is the only access.
    let value = unsafe { &mut *body.value.get() }.take();
    let body = handle.cast::<HandleBody<O::Value>>();
    if cfg!(debug_assertions) {
        bury(body.cast());
    } else {
        // SAFETY: `create` made the box, and its tag shows that it was not freed.
        drop(unsafe { Box::from_raw(body) });
    }
    Ok(value)
}

/// Keeps a released handle.
fn bury(handle: *mut HandleHeader) {
    let mut first = TOMBSTONES.load(Ordering::Acquire);
    loop {
        // SAFETY: the box lives on, and its header is only changed by atomic operations.
        unsafe { &*handle }.next.store(first, Ordering::Release);
        match TOMBSTONES.compare_exchange_weak(first, handle, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => return,
            Err(now) => first = now,
        }
    }
}

unsafe fn checked<'a, O: OpaqueType>(handle: *const O) -> Result<&'a HandleBody<O::Value>> {
    if handle.is_null() {
        return Err(invalid(O::NAME, "NULL"));
    }
    // SAFETY: every handle begins with a header, whatever its type.
    let header = unsafe { &*handle.cast::<HandleHeader>() };
    match header.tag.load(Ordering::Acquire) {
        // SAFETY: the tag identifies the type that `create` made.
        tag if tag == O::TAG => Ok(unsafe { &*handle.cast::<HandleBody<O::Value>>() }),
        RELEASED => Err(released::<O>()),
        _ => Err(invalid(O::NAME, "the pointer is a handle of another type")),
    }
}

fn released<O: OpaqueType>() -> Error {
    invalid(O::NAME, "the handle was released")
}

#[cfg(test)]
mod tests {
    use super::*;

    struct FirstType {
        _opaque: [u64; 0],
    }
    struct SecondType {
        _opaque: [u64; 0],
    }
    impl OpaqueType for FirstType {
        type Value = String;
        const TAG: u64 = 1;
        const NAME: &'static str = "first";
    }
    impl OpaqueType for SecondType {
        type Value = u8;
        const TAG: u64 = 2;
        const NAME: &'static str = "second";
    }

    #[test]
    fn a_handle_is_used_as_what_it_is_until_it_is_released() {
        let first: *mut FirstType = create("text".to_owned());
        // SAFETY: the handle is used by this thread alone; tombstones are kept in this build.
        unsafe {
            assert_eq!(shared(first).unwrap(), "text");
            exclusive(first).unwrap().push('s');
            assert!(shared(first.cast::<SecondType>()).is_err());
            assert_eq!(release(first).unwrap().as_deref(), Some("texts"));
            if cfg!(debug_assertions) {
                assert!(shared(first).is_err() && exclusive(first).is_err() && release(first).is_err());
            }
            assert_eq!(release(ptr::null_mut::<FirstType>()), Ok(None));
            assert!(shared(ptr::null::<FirstType>()).is_err());
        }
    }
}
