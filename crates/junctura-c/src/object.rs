//! Objects that a demand or a follow returned.

use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;
use std::ffi::{CString, c_char, c_int, c_void};
use std::sync::Arc;
use std::{mem, ptr};

use junctura::{ArrayPart, Code, DemandedArray, Element, Error, Layout, Object, Pool, Result};

use crate::array::element;
use crate::call::argument::{bytes_mut, c_text, put, text};
use crate::call::error::{guarded, guarded_or};
use crate::call::handle::{self, OpaqueType};
use crate::layout::LayoutHandle;
use crate::pool::{self, PoolHandle};

/// An object that is held: its payload stays readable until the handle is released.
pub struct ObjectHandle {
    _opaque: [u64; 0],
}

impl OpaqueType for ObjectHandle {
    type Value = HeldObject;
    const TAG: u64 = 0x6a63_745f_6f62_6a65;
    const NAME: &'static str = "object";
}

/// The contents of a handle, with the texts that were lent to C.
#[doc(hidden)]
pub struct HeldObject {
    form: HeldForm,
    key: OnceCell<CString>,
    values: LentTexts,
}

/// The object; as an array since a part was taken. Its payload stays where it is.
enum HeldForm {
    Object(Object),
    Array(DemandedArray),
    /// Only while it becomes an array.
    Changing,
}

impl HeldObject {
    pub(crate) fn new(object: Object) -> Self {
        Self {
            form: HeldForm::Object(object),
            key: OnceCell::new(),
            values: LentTexts::default(),
        }
    }

    fn object(&self) -> Result<&Object> {
        match &self.form {
            HeldForm::Object(object) => Ok(object),
            HeldForm::Array(array) => Ok(array.object()),
            HeldForm::Changing => Err(changing()),
        }
    }

    fn into_object(self) -> Option<Object> {
        match self.form {
            HeldForm::Object(object) => Some(object),
            HeldForm::Array(array) => Some(array.into_object()),
            HeldForm::Changing => None,
        }
    }

    /// Returns the array that the object is.
    fn array(&mut self, pool: &Pool) -> Result<&DemandedArray> {
        self.form = match mem::replace(&mut self.form, HeldForm::Changing) {
            HeldForm::Object(object) => match DemandedArray::of(pool, object) {
                Ok(array) => HeldForm::Array(array),
                Err(refused) => {
                    let (object, error) = *refused;
                    self.form = HeldForm::Object(object);
                    return Err(error);
                }
            },
            same => same,
        };
        match &self.form {
            HeldForm::Array(array) => Ok(array),
            HeldForm::Object(_) | HeldForm::Changing => Err(changing()),
        }
    }

    fn take_into(&mut self, pool: &Pool, layout: &Arc<Layout>, rank: u64, of: Element, mine: &mut [u8]) -> Result<()> {
        let part = ArrayPart {
            element: Some(of),
            ..ArrayPart::of(layout, rank)
        };
        self.array(pool)?.take_into(&part, mine, 1)
    }
}

fn changing() -> Error {
    Error::new(Code::InvalidArgument, ObjectHandle::NAME, "another thread uses it")
}

/// Values of attributes, kept for as long as C may read them.
#[derive(Default)]
pub(crate) struct LentTexts(RefCell<BTreeMap<String, CString>>);

impl LentTexts {
    /// The text of a name, which `value` finds the first time; NULL where there is none.
    pub(crate) fn lend<'v>(&self, name: &str, value: impl FnOnce() -> Option<&'v str>) -> *const c_char {
        let mut lent = self.0.borrow_mut();
        if let Some(text) = lent.get(name) {
            return text.as_ptr();
        }
        let Some(text) = value() else { return ptr::null() };
        // The map moves the `CString`, not the text.
        lent.entry(name.to_owned()).or_insert_with(|| c_text(text)).as_ptr()
    }
}

/// Returns the payload of an object: read-only memory, which other processes share. A write to it ends the
/// program with SIGSEGV. Valid until the object is released. `bytes`, which may be NULL, is its length.
/// NULL for an invalid handle; the address of an empty payload is not to be read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jct_object_data(object: *const ObjectHandle, bytes: *mut usize) -> *const c_void {
    guarded_or(ptr::null(), || {
        // SAFETY: the caller guarantees the arguments.
        unsafe {
            put(bytes, 0);
            let payload = handle::shared(object)?.object()?.payload();
            put(bytes, payload.len());
            Ok(payload.as_ptr().cast())
        }
    })
}

/// Returns the canonical key of an object. Valid until the object is released. NULL for an invalid handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jct_object_key(object: *const ObjectHandle) -> *const c_char {
    guarded_or(ptr::null(), || {
        // SAFETY: the caller guarantees the arguments.
        let held = unsafe { handle::shared(object) }?;
        let object = held.object()?;
        Ok(held.key.get_or_init(|| c_text(object.key())).as_ptr())
    })
}

/// Returns the canonical value of an attribute, by its name or an alias; NULL where the object has none,
/// and for invalid arguments. Valid until the object is released.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jct_object_get(object: *const ObjectHandle, name: *const c_char) -> *const c_char {
    guarded_or(ptr::null(), || {
        // SAFETY: the caller guarantees the arguments.
        let (held, name) = unsafe { (handle::shared(object)?, text("name", name)?) };
        let object = held.object()?;
        Ok(held.values.lend(name, || object.get(name)))
    })
}

/// Returns the number of an object's version; a newer version of the same key has a greater one. 0 for an
/// invalid handle, and for an object that is staged in a bundle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jct_object_version(object: *const ObjectHandle) -> u64 {
    // SAFETY: the caller guarantees the arguments.
    guarded_or(0, || {
        Ok(unsafe { handle::shared(object) }?.object()?.version().sequence)
    })
}

/// Returns 1 where the object was delivered through the same group or named requirement before, and not
/// released there; 0 otherwise, and for an invalid handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jct_object_redelivered(object: *const ObjectHandle) -> c_int {
    // SAFETY: the caller guarantees the arguments.
    guarded_or(0, || {
        Ok(c_int::from(unsafe { handle::shared(object) }?.object()?.redelivered()))
    })
}

/// Copies the part that `rank` has in `layout` of an array that is held, in any layout of its producers, to `bytes` bytes
/// at `data`; also of an object that is an array by itself. Elements are converted to `type` where it differs. The object
/// stays held: parts can be taken any number of times, and count as released with the object. Blocks for one round trip
/// where the array is in pieces. Gaps of the layout are not written.
///
/// Errors: those of jct_demand_array, without those of waiting; JCT_INVALID_ARGUMENT for an object that is no array;
/// JCT_EXPIRED if the array was removed after it was received.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jct_object_take(
    pool: *const PoolHandle,
    object: *mut ObjectHandle,
    layout: *const LayoutHandle,
    rank: u64,
    r#type: *const c_char,
    data: *mut c_void,
    bytes: usize,
) -> c_int {
    guarded(|| {
        // SAFETY: the caller guarantees the arguments.
        unsafe {
            let (pool, layout) = (pool::of(pool)?, handle::shared(layout)?);
            let mine = bytes_mut("data", data, bytes)?;
            handle::exclusive(object)?.take_into(pool, layout, rank, element(r#type)?, mine)
        }
    })
}

/// Releases an object and frees its handle; its payload and texts must not be read afterwards. The follow or
/// requirement that delivered it counts it as done. Releases may be sent together somewhat later: jct_pool_sync waits
/// for them. Does not block. NULL has no effect.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jct_object_release(object: *mut ObjectHandle) {
    // SAFETY: the caller guarantees the arguments.
    guarded(|| unsafe { handle::release(object) }.map(drop));
}

/// Frees an object's handle without completing it: the group or requirement that delivered it delivers it again. It
/// does not count as released for the retention of the object, however it was delivered. Does not block. Consumes the handle, also where the call fails.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jct_object_give_back(object: *mut ObjectHandle) -> c_int {
    guarded(|| {
        // SAFETY: the caller guarantees the arguments.
        match unsafe { handle::release(object) }? {
            Some(held) => held.into_object().map_or(Ok(()), Object::give_back),
            None => Ok(()),
        }
    })
}
