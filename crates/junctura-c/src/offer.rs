//! Offers: with a copy, and filled in place.

use std::ffi::{c_char, c_int, c_void};
use std::ptr;

use junctura::{Allocation, Result, WantedOptions};

use crate::attributes::{self, AttributesHandle};
use crate::bundle::BundleHandle;
use crate::call::argument::{bytes as read_bytes, place, put};
use crate::call::error::{guarded, guarded_or};
use crate::call::handle::{self, OpaqueType};
use crate::call::options::{offer_options, schema_option};
use crate::pool::{self, PoolHandle};

/// Memory in the pool for one payload, until it is offered.
pub struct AllocationHandle {
    _opaque: [u64; 0],
}

impl OpaqueType for AllocationHandle {
    type Value = Allocation;
    const TAG: u64 = 0x6a63_745f_616c_6c6f;
    const NAME: &'static str = "allocation";
}

/// Offers an object: copies `bytes` bytes at `data`, and returns when the object is visible. The memory is
/// the caller's again then. `data` may be NULL where `bytes` is 0. Blocks for one round trip, and while the
/// pool has no memory for the payload (see timeout of jct_pool_open).
///
/// Options: schema=NAME (default: that of the pool),
/// retention=withdrawn|archived|released:N|released_by:NAME|TIME, if_wanted (does not offer what no reader
/// wants), durability=memory|durable (returns when the object is archived).
///
/// Errors: JCT_SCHEMA_MISMATCH and JCT_TYPE_MISMATCH for attributes; JCT_ALREADY_EXISTS; JCT_NOT_WANTED;
/// JCT_TOO_LARGE; JCT_POOL_FULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jct_offer(
    pool: *const PoolHandle,
    attributes: *const AttributesHandle,
    data: *const c_void,
    bytes: usize,
    options: *const c_char,
) -> c_int {
    guarded(|| {
        // SAFETY: the caller guarantees the arguments.
        unsafe {
            let (pool, payload, options) = (
                pool::of(pool)?,
                read_bytes("data", data, bytes)?,
                offer_options(options)?,
            );
            attributes::lend(attributes, |given| {
                pool.offer_with(given.iter().copied(), payload, options).map(drop)
            })
        }
    })
}

/// Allocates `bytes` bytes in the pool for a payload, which is then filled in place and offered without
/// a copy. `*data` is the memory, aligned to 64 bytes where `bytes` exceeds the inline limit of the
/// pool (default: 4,096), else as by malloc; what it contains is undefined. `data` may be NULL for a program
/// that copies with jct_allocation_write. Blocks while the pool has no memory, for at most the option
/// `timeout` of jct_pool_open. Offer it with jct_allocation_offer, or free it with jct_allocation_free.
///
/// Errors: JCT_TOO_LARGE, JCT_POOL_FULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jct_allocate(
    pool: *const PoolHandle,
    bytes: usize,
    out: *mut *mut AllocationHandle,
    data: *mut *mut c_void,
) -> c_int {
    guarded(|| {
        // SAFETY: the caller guarantees the arguments.
        unsafe { allocate_in(out, data, || pool::of(pool)?.allocate(bytes)) }
    })
}

/// Puts a new allocation and the address of its memory into their places.
///
/// # Safety
/// As [`handle::create_in`].
pub(crate) unsafe fn allocate_in(
    out: *mut *mut AllocationHandle,
    data: *mut *mut c_void,
    make: impl FnOnce() -> Result<Allocation>,
) -> Result<()> {
    // SAFETY: as the caller guarantees.
    unsafe {
        place("allocation", out, ptr::null_mut())?;
        put(data, ptr::null_mut());
        handle::create_in(out, || {
            let mut allocation = make()?;
            if !data.is_null() {
                data.write(allocation.as_mut_ptr().cast());
            }
            Ok(allocation)
        })
    }
}

/// Copies `bytes` bytes at `data` into an allocation, from its byte `at` on. The first time that the pool uses
/// the memory this takes about half as long as a copy to its address. Does not block. Errors:
/// JCT_INVALID_ARGUMENT where the bytes exceed the allocation; nothing is copied then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jct_allocation_write(
    allocation: *mut AllocationHandle,
    at: usize,
    data: *const c_void,
    bytes: usize,
) -> c_int {
    guarded(|| {
        // SAFETY: the caller guarantees the arguments.
        unsafe { handle::exclusive(allocation)?.write(at, read_bytes("data", data, bytes)?) }
    })
}

/// Returns the address of an allocation's memory, and its number of bytes in `bytes`, which may be NULL. NULL
/// for an invalid handle. Does not block.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jct_allocation_data(allocation: *mut AllocationHandle, bytes: *mut usize) -> *mut c_void {
    guarded_or(ptr::null_mut(), || {
        // SAFETY: the caller guarantees the arguments.
        unsafe {
            put(bytes, 0);
            let allocation = handle::exclusive(allocation)?;
            put(bytes, allocation.len());
            Ok(allocation.as_mut_ptr().cast())
        }
    })
}

/// Offers the memory of an allocation and returns when the object is visible. Consumes the allocation, also
/// where the call fails: neither the handle nor its memory may be used afterwards. Options and errors:
/// those of jct_offer. Blocks for one round trip.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jct_allocation_offer(
    allocation: *mut AllocationHandle,
    attributes: *const AttributesHandle,
    options: *const c_char,
) -> c_int {
    guarded(|| {
        // SAFETY: the caller guarantees the arguments.
        unsafe {
            let allocation = taken(allocation)?;
            let options = offer_options(options)?;
            attributes::lend(attributes, |given| {
                allocation.offer_with(given.iter().copied(), options).map(drop)
            })
        }
    })
}

/// Stages the memory of an allocation in a bundle of the same pool. Consumes the allocation, also where the
/// call fails. Options and errors: those of jct_bundle_offer. Blocks for one round trip.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jct_allocation_stage(
    allocation: *mut AllocationHandle,
    bundle: *const BundleHandle,
    attributes: *const AttributesHandle,
    options: *const c_char,
) -> c_int {
    guarded(|| {
        // SAFETY: the caller guarantees the arguments.
        unsafe {
            let allocation = taken(allocation)?;
            let (bundle, options) = (handle::shared(bundle)?, offer_options(options)?);
            attributes::lend(attributes, |given| {
                let given = given.iter().copied();
                bundle.offer_allocation(allocation, given, options).map(drop)
            })
        }
    })
}

/// Takes an allocation out of its handle.
///
/// # Errors
/// `InvalidArgument` for NULL.
///
/// # Safety
/// As [`handle::release`].
pub(crate) unsafe fn taken(allocation: *mut AllocationHandle) -> Result<Allocation> {
    // SAFETY: the caller of the exported function guarantees the arguments.
    let taken = unsafe { handle::release(allocation) }?;
    taken.ok_or_else(|| crate::call::argument::invalid("allocation", "NULL"))
}

/// Frees an allocation that was not offered; its memory is the pool's again. NULL has no effect.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jct_allocation_free(allocation: *mut AllocationHandle) {
    // SAFETY: the caller guarantees the arguments.
    guarded(|| unsafe { handle::release(allocation) }.map(drop));
}

/// Counts the readers that want an object with these attributes: those that would receive it now. Blocks
/// for one round trip. Options: schema=NAME. `readers` is 0 where the call fails.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jct_wanted(
    pool: *const PoolHandle,
    attributes: *const AttributesHandle,
    options: *const c_char,
    readers: *mut u64,
) -> c_int {
    guarded(|| {
        // SAFETY: the caller guarantees the arguments.
        unsafe {
            place("readers", readers, 0)?;
            let (pool, schema) = (pool::of(pool)?, schema_option(options)?);
            let options = WantedOptions {
                schema,
                ..WantedOptions::default()
            };
            let count = attributes::lend(attributes, |given| pool.wanted_with(given.iter().copied(), options))?;
            put(readers, count);
        }
        Ok(())
    })
}
