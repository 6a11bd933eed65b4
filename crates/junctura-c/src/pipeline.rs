//! Pipelines: offers that are not awaited one by one.

use std::ffi::{c_char, c_int, c_void};

use junctura::{Pipeline, Result};

use crate::attributes::{self, AttributesHandle};
use crate::call::argument::bytes as read_bytes;
use crate::call::error::guarded;
use crate::call::handle::{self, OpaqueType};
use crate::call::options::{OptionWords, offer_options};
use crate::offer::{AllocationHandle, taken};
use crate::pool::{self, PoolHandle};

/// Offers that are sent and not awaited one by one.
pub struct PipelineHandle {
    _opaque: [u64; 0],
}

impl OpaqueType for PipelineHandle {
    type Value = Pipeline;
    const TAG: u64 = 0x6a63_745f_7069_7065;
    const NAME: &'static str = "pipeline";
}

/// The window where the options state none.
const WINDOW: usize = 64;

/// Returns the window that the options of a pipeline state.
///
/// # Safety
/// `options` is NULL or a text of C.
pub(crate) unsafe fn window(options: *const c_char) -> Result<usize> {
    // SAFETY: as the caller guarantees.
    let mut words = unsafe { OptionWords::read(options) }?;
    let window = words.number("window")?.unwrap_or(WINDOW);
    words.finish()?;
    Ok(window)
}

/// Opens a pipeline: its offers return before the server has answered, so that a round trip is not awaited
/// with each. Does not block. Close it with jct_pipeline_close.
///
/// Options: window=N, offers that may be unanswered at once (default: 64). Errors: JCT_LIMIT_EXCEEDED where
/// the connection has too many requests.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jct_pipeline_open(
    pool: *const PoolHandle,
    options: *const c_char,
    out: *mut *mut PipelineHandle,
) -> c_int {
    guarded(|| {
        // SAFETY: the caller guarantees the arguments.
        unsafe {
            handle::create_in(out, || {
                let (pool, window) = (pool::of(pool)?, window(options)?);
                pool.pipeline(window)
            })
        }
    })
}

/// Offers an object: copies `bytes` bytes at `data`. The object is visible somewhat later; the memory is the
/// caller's again at once. Offers may be gathered before they are sent: see jct_pipeline_push. Blocks while
/// the window is full, and while the pool has no memory.
///
/// Options: those of jct_offer. Errors: those of jct_offer that are found without the server, and the first
/// failure of an earlier offer, after which this one was not sent and may be repeated.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jct_pipeline_offer(
    pipeline: *mut PipelineHandle,
    attributes: *const AttributesHandle,
    data: *const c_void,
    bytes: usize,
    options: *const c_char,
) -> c_int {
    guarded(|| {
        // SAFETY: the caller guarantees the arguments.
        unsafe {
            let (pipeline, payload) = (handle::exclusive(pipeline)?, read_bytes("data", data, bytes)?);
            let options = offer_options(options)?;
            attributes::lend(attributes, |given| {
                pipeline.offer_with(given.iter().copied(), payload, options).map(drop)
            })
        }
    })
}

/// Offers the memory of an allocation of the same pool, as jct_pipeline_offer. Consumes the allocation, also
/// where the call fails.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jct_pipeline_offer_allocation(
    pipeline: *mut PipelineHandle,
    allocation: *mut AllocationHandle,
    attributes: *const AttributesHandle,
    options: *const c_char,
) -> c_int {
    guarded(|| {
        // SAFETY: the caller guarantees the arguments.
        unsafe {
            let allocation = taken(allocation)?;
            let (pipeline, options) = (handle::exclusive(pipeline)?, offer_options(options)?);
            attributes::lend(attributes, |given| {
                let given = given.iter().copied();
                pipeline.offer_allocation_with(allocation, given, options).map(drop)
            })
        }
    })
}

/// Sends the offers that were gathered. Call it before the program turns to something else. Does not wait
/// for answers. Errors: JCT_DISCONNECTED, JCT_CLOSED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jct_pipeline_push(pipeline: *mut PipelineHandle) -> c_int {
    // SAFETY: the caller guarantees the arguments.
    guarded(|| unsafe { handle::exclusive(pipeline) }?.push())
}

/// Sends the offers that were gathered, and blocks until every offer is answered: all that succeeded are
/// visible. Errors: the first failure that no call has returned; the others were carried out.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jct_pipeline_flush(pipeline: *mut PipelineHandle) -> c_int {
    // SAFETY: the caller guarantees the arguments.
    guarded(|| unsafe { handle::exclusive(pipeline) }?.flush())
}

/// Closes a pipeline: sends what was gathered, and does not wait for answers. Failures that no call has
/// returned are lost: flush before. NULL has no effect.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jct_pipeline_close(pipeline: *mut PipelineHandle) {
    // SAFETY: the caller guarantees the arguments.
    guarded(|| unsafe { handle::release(pipeline) }.map(drop));
}
