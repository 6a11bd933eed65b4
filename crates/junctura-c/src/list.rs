//! Lists: visible objects, without payloads.

use std::ffi::{CString, c_char, c_int};
use std::ptr;
use std::vec;

use junctura::{Entry, ListOptions, Pages, Result};

use crate::call::argument::{c_text, invalid, place, put, text};
use crate::call::error::{guarded, guarded_or};
use crate::call::handle::{self, OpaqueType};
use crate::call::options::OptionWords;
use crate::object::LentTexts;
use crate::pool::{self, PoolHandle};

/// A list of objects, read page by page.
pub struct ListHandle {
    _opaque: [u64; 0],
}

impl OpaqueType for ListHandle {
    type Value = ListState;
    const TAG: u64 = 0x6a63_745f_6c69_7374;
    const NAME: &'static str = "list";
}

/// The contents of a handle, with the texts that were lent to C.
#[doc(hidden)]
pub struct ListState {
    pages: Pages,
    page: vec::IntoIter<Entry>,
    current: Option<Entry>,
    key: CString,
    values: LentTexts,
}

impl ListState {
    fn advance(&mut self) -> Result<()> {
        self.values = LentTexts::default();
        self.current = loop {
            if let Some(entry) = self.page.next() {
                break Some(entry);
            }
            match self.pages.next_page()? {
                Some(page) => self.page = page.into_iter(),
                None => break None,
            }
        };
        let key = self.current.as_ref().map(|entry| c_text(entry.key()));
        self.key = key.unwrap_or_default();
        Ok(())
    }
}

/// Lists the objects that match a selector, in the order of their keys; "" matches all. The list is a
/// snapshot. Blocks for one round trip, and jct_list_next for one with each page. Close it with
/// jct_list_close.
///
/// Options: order_by=NAME (an attribute), incomplete (also what is staged in bundles), bundle=PATH (what is
/// staged there). Errors: JCT_INVALID_SELECTOR, JCT_NOT_FOUND for a bundle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jct_list(
    pool: *const PoolHandle,
    selector: *const c_char,
    options: *const c_char,
    out: *mut *mut ListHandle,
) -> c_int {
    guarded(|| {
        // SAFETY: the caller guarantees the arguments.
        unsafe {
            handle::create_in(out, || {
                let (pool, mut words) = (pool::of(pool)?, OptionWords::read(options)?);
                let options = ListOptions {
                    order_by: words.text("order_by")?,
                    incomplete: words.flag("incomplete")?,
                    bundle: words.text("bundle")?,
                };
                words.finish()?;
                Ok(ListState {
                    pages: pool.list_with(text("selector", selector)?, options)?,
                    page: Vec::new().into_iter(),
                    current: None,
                    key: CString::default(),
                    values: LentTexts::default(),
                })
            })
        }
    })
}

/// Takes the next object of a list: `*key` is its canonical key, and `*bytes`, which may be NULL, the
/// length of its payload. At the end `*key` is NULL. The text is valid until this function is called again,
/// or until the list is closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jct_list_next(list: *mut ListHandle, key: *mut *const c_char, bytes: *mut u64) -> c_int {
    guarded(|| {
        // SAFETY: the caller guarantees the arguments.
        unsafe {
            place("key", key, ptr::null())?;
            put(bytes, 0);
            let state = handle::exclusive(list)?;
            state.advance()?;
            if let Some(entry) = &state.current {
                put(bytes, entry.bytes());
                put(key, state.key.as_ptr());
            }
        }
        Ok(())
    })
}

/// Returns the canonical value of an attribute of the object that jct_list_next took last; NULL where it
/// has none, and for invalid arguments. Valid as its key.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jct_list_get(list: *const ListHandle, name: *const c_char) -> *const c_char {
    guarded_or(ptr::null(), || {
        // SAFETY: the caller guarantees the arguments.
        let (state, name) = unsafe { (handle::shared(list)?, text("name", name)?) };
        let entry = state.current.as_ref();
        let entry = entry.ok_or_else(|| invalid("list", "jct_list_next has not returned an object"))?;
        Ok(state.values.lend(name, || entry.get(name)))
    })
}

/// Closes a list. NULL has no effect. Blocks for one round trip at most.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jct_list_close(list: *mut ListHandle) {
    // SAFETY: the caller guarantees the arguments.
    guarded(|| unsafe { handle::release(list) }.map(drop));
}
