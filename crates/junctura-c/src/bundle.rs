//! Bundles: objects that become visible together.

use std::ffi::{c_char, c_int, c_void};

use junctura::{Bundle, BundleOptions};

use crate::attributes::{self, AttributesHandle};
use crate::call::argument::{bytes as read_bytes, given_text, invalid, put, timeout as read_timeout};
use crate::call::error::guarded;
use crate::call::handle::{self, OpaqueType};
use crate::call::options::{OptionWords, offer_options};
use crate::offer::{AllocationHandle, allocate_in};
use crate::pipeline::{self, PipelineHandle};
use crate::pool::{self, PoolHandle};

/// A bundle that this program has open.
pub struct BundleHandle {
    _opaque: [u64; 0],
}

impl OpaqueType for BundleHandle {
    type Value = Bundle;
    const TAG: u64 = 0x6a63_745f_6275_6e64;
    const NAME: &'static str = "bundle";
}

/// Opens a bundle: its members become visible at one moment, or not at all. Without a `path`,
/// NULL or "", the bundle is this program's alone, and takes no attributes and no options. With a path
/// ("run/step=6") producers that open the same path share it, and `attributes`, which may be NULL, states
/// what its members have in common. Blocks for one round trip. Close it with jct_bundle_close.
///
/// Options: members=N (it becomes visible with its N-th member), orphan_timeout=TIME (it is aborted when no
/// producer has had it open for so long), schema=NAME. Errors: JCT_CONFLICT where others opened it with
/// other options, JCT_BUNDLE_CLOSED, JCT_LIMIT_EXCEEDED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jct_bundle_open(
    pool: *const PoolHandle,
    path: *const c_char,
    attributes: *const AttributesHandle,
    options: *const c_char,
    out: *mut *mut BundleHandle,
) -> c_int {
    guarded(|| {
        // SAFETY: the caller guarantees the arguments.
        unsafe {
            handle::create_in(out, || {
                let (pool, mut words) = (pool::of(pool)?, OptionWords::read(options)?);
                let Some(path) = given_text("path", path)? else {
                    if !attributes.is_null() || given_text("options", options)?.is_some() {
                        return Err(invalid(
                            "bundle",
                            "a bundle without a path has no attributes and no options",
                        ));
                    }
                    return pool.bundle();
                };
                let options = BundleOptions {
                    members: words.number("members")?,
                    orphan_timeout: words.time("orphan_timeout")?,
                    schema: words.text("schema")?,
                };
                words.finish()?;
                attributes::lend(attributes, |given| {
                    pool.open_bundle(path, given.iter().copied(), options)
                })
            })
        }
    })
}

/// Offers an object into a bundle: copies `bytes` bytes at `data`, and returns when it is staged. Options
/// and blocking: those of jct_offer, and a retention for a time counts from when the bundle is visible.
///
/// Errors: those of jct_offer; JCT_BUNDLE_FULL; JCT_BUNDLE_CLOSED; JCT_CLOSED where it was aborted;
/// JCT_POOL_FULL at once where staged members fill the memory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jct_bundle_offer(
    bundle: *const BundleHandle,
    attributes: *const AttributesHandle,
    data: *const c_void,
    bytes: usize,
    options: *const c_char,
) -> c_int {
    guarded(|| {
        // SAFETY: the caller guarantees the arguments.
        unsafe {
            let (bundle, payload) = (handle::shared(bundle)?, read_bytes("data", data, bytes)?);
            let options = offer_options(options)?;
            attributes::lend(attributes, |given| {
                bundle.offer_with(given.iter().copied(), payload, options).map(drop)
            })
        }
    })
}

/// Allocates memory for a member of a bundle, as jct_allocate. Stage it with jct_allocation_stage. Errors:
/// JCT_TOO_LARGE, JCT_POOL_FULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jct_bundle_allocate(
    bundle: *const BundleHandle,
    bytes: usize,
    out: *mut *mut AllocationHandle,
    data: *mut *mut c_void,
) -> c_int {
    // SAFETY: the caller guarantees the arguments.
    guarded(|| unsafe { allocate_in(out, data, || handle::shared(bundle)?.allocate(bytes)) })
}

/// Opens a pipeline of offers into a bundle, as jct_pipeline_open: its offers return before they are staged.
/// Call jct_pipeline_flush before jct_bundle_seal, so that all are. Options and errors: those of
/// jct_pipeline_open. Does not block. Close it with jct_pipeline_close.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jct_bundle_pipeline(
    bundle: *const BundleHandle,
    options: *const c_char,
    out: *mut *mut PipelineHandle,
) -> c_int {
    guarded(|| {
        // SAFETY: the caller guarantees the arguments.
        unsafe {
            handle::create_in(out, || {
                let (bundle, window) = (handle::shared(bundle)?, pipeline::window(options)?);
                bundle.pipeline(window)
            })
        }
    })
}

/// Makes all members of a bundle visible at one moment. `objects`, which may be NULL, is their number.
/// Blocks for one round trip. Errors: JCT_CONFLICT where its number of members was stated,
/// JCT_BUNDLE_CLOSED, JCT_CLOSED where it was aborted.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jct_bundle_seal(bundle: *const BundleHandle, objects: *mut u64) -> c_int {
    guarded(|| {
        // SAFETY: the caller guarantees the arguments.
        unsafe {
            put(objects, 0);
            put(objects, handle::shared(bundle)?.seal()?.objects());
        }
        Ok(())
    })
}

/// Waits until a bundle is visible, whichever producer completes it. Blocks for at most `timeout` seconds.
/// `objects`, which may be NULL, is the number of objects. Errors: JCT_TIMEOUT, JCT_CLOSED where it was
/// aborted.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jct_bundle_wait(bundle: *const BundleHandle, timeout: f64, objects: *mut u64) -> c_int {
    guarded(|| {
        // SAFETY: the caller guarantees the arguments.
        unsafe {
            put(objects, 0);
            let completed = handle::shared(bundle)?.wait(read_timeout(timeout)?)?;
            put(objects, completed.objects());
        }
        Ok(())
    })
}

/// Aborts a bundle for all producers: its members are freed, and no reader has seen them. Blocks for one
/// round trip. The handle must still be closed. Errors: JCT_BUNDLE_CLOSED, JCT_CLOSED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jct_bundle_abort(bundle: *const BundleHandle) -> c_int {
    // SAFETY: the caller guarantees the arguments.
    guarded(|| unsafe { handle::shared(bundle) }?.abort().map(drop))
}

/// Closes the handle of a bundle. A bundle without a path that was not sealed is aborted; one with a path
/// is left to the other producers. NULL has no effect. Blocks for one round trip at most.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jct_bundle_close(bundle: *mut BundleHandle) {
    // SAFETY: the caller guarantees the arguments.
    guarded(|| unsafe { handle::release(bundle) }.map(drop));
}
