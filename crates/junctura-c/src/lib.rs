//! The C library of Junctura: the functions of `c/include/junctura.h`, over the facade, for simulation codes in C, C++
//! and Fortran.
//!
//! Each function reads its arguments, calls the facade once, and turns the result into a number and a handle; `call`
//! has the shared parts. Rules of the ABI: no struct and no callback crosses it, options are text, every handle is an
//! opaque box, no panic leaves a function, and no function starts a thread or sets a signal handler (a private pool
//! runs its server in a thread). The header is generated from this source by cbindgen, and its comments are the
//! comments here.

#![allow(
    unsafe_code,
    clippy::missing_safety_doc,
    reason = "the header states once, for all functions, what the caller guarantees"
)]
#![allow(clippy::doc_markdown, reason = "the comments are those of a header of C")]

// In the order of the header.
mod call;

mod pool;

mod attributes;

mod offer;
mod pipeline;
mod withdraw;

mod demand;
mod object;

mod follow;
mod require;
mod subscribe;

mod list;

mod bundle;

mod layout;

mod array;
mod regrid;

use std::ffi::{CString, c_char, c_void};

pub use array::*;
pub use attributes::*;
pub use bundle::*;
pub use call::codes::*;
pub use call::error::*;
pub use demand::*;
pub use follow::*;
pub use layout::*;
pub use list::*;
pub use object::*;
pub use offer::*;
pub use pipeline::*;
pub use pool::*;
pub use regrid::*;
pub use require::*;
pub use subscribe::*;
pub use withdraw::*;

/// The number of the ABI that this header describes. It is in the name of the library, too:
/// libjunctura.so.0.
pub const JCT_ABI: u32 = 0;

/// Returns the number of the ABI of the library. A program that loads the library by itself compares it
/// with JCT_ABI.
#[unsafe(no_mangle)]
pub extern "C" fn jct_abi() -> u32 {
    JCT_ABI
}

/// Returns the version of the library, such as "0.1.0". The text is static.
#[unsafe(no_mangle)]
pub extern "C" fn jct_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}

/// Frees a text that a function returned through a `char **`. The text must not have been changed. NULL has no
/// effect.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jct_free(text: *mut c_void) {
    if !text.is_null() {
        // SAFETY: the caller guarantees that it is a text of this library, which `CString::into_raw` made.
        drop(unsafe { CString::from_raw(text.cast()) });
    }
}

/// Panics, for the test that no panic leaves a function.
#[cfg(debug_assertions)]
#[doc(hidden)]
#[unsafe(no_mangle)]
pub extern "C" fn jct_test_panic() -> std::ffi::c_int {
    call::error::guarded(|| panic!("this function always panics"))
}
