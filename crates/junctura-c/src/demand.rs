//! Demands: one object, which is waited for.

use std::ffi::{c_char, c_int};
use std::time::Duration;

use junctura::{Code, DemandOptions, Error, Object, Pending, Pool, Result, Target};

use crate::attributes::{self, AttributesHandle};
use crate::call::argument::{text, timeout as read_timeout};
use crate::call::error::guarded;
use crate::call::handle::{self, OpaqueType};
use crate::call::options::OptionWords;
use crate::object::{HeldObject, ObjectHandle};
use crate::pool::{self, PoolHandle};

/// A demand whose answer is awaited later.
pub struct PendingHandle {
    _opaque: [u64; 0],
}

impl OpaqueType for PendingHandle {
    type Value = BegunDemand;
    const TAG: u64 = 0x6a63_745f_7065_6e64;
    const NAME: &'static str = "pending demand";
}

/// A demand, and whether its answer was taken.
pub(crate) struct BegunDemand {
    pending: Pending<Object>,
    is_answered: bool,
}

/// Receives the newest object that matches a selector, such as "param=t,step=0/to/24,levelist>=500". Blocks
/// until one exists, for at most `timeout` seconds. Release it with jct_object_release.
///
/// Options: requirement=NAME (receives through this requirement), incomplete (also what is staged in a
/// bundle).
///
/// Errors: JCT_TIMEOUT; with a timeout of 0 JCT_NOT_FOUND; JCT_INVALID_SELECTOR; JCT_NOT_WANTED where its
/// producer did not offer it since no reader wanted it; JCT_LIMIT_EXCEEDED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jct_demand(
    pool: *const PoolHandle,
    selector: *const c_char,
    options: *const c_char,
    timeout: f64,
    out: *mut *mut ObjectHandle,
) -> c_int {
    guarded(|| {
        // SAFETY: the caller guarantees the arguments.
        unsafe {
            handle::create_in(out, || {
                let (pool, words) = (pool::of(pool)?, OptionWords::read(options)?);
                let target = Target::selector(text("selector", selector)?);
                demand(pool, target, words, timeout).map(HeldObject::new)
            })
        }
    })
}

/// Receives the object whose key has exactly these attributes, as jct_demand. Also JCT_GONE where the
/// object existed and was removed; the cause states why. Options: those of jct_demand, and schema=NAME.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jct_demand_key(
    pool: *const PoolHandle,
    attributes: *const AttributesHandle,
    options: *const c_char,
    timeout: f64,
    out: *mut *mut ObjectHandle,
) -> c_int {
    guarded(|| {
        // SAFETY: the caller guarantees the arguments.
        unsafe {
            handle::create_in(out, || {
                let (pool, mut words) = (pool::of(pool)?, OptionWords::read(options)?);
                let schema = words.text("schema")?;
                let object = attributes::lend(attributes, |given| {
                    let key = Target::key(given.iter().copied());
                    demand(pool, schema.into_iter().fold(key, Target::in_schema), words, timeout)
                })?;
                Ok(HeldObject::new(object))
            })
        }
    })
}

fn demand(pool: &Pool, target: Target<'_>, words: OptionWords<'_>, timeout: f64) -> Result<Object> {
    pool.demand_with(target, demand_options(words, timeout)?)
}

fn demand_options(mut words: OptionWords<'_>, timeout: f64) -> Result<DemandOptions<'_>> {
    let options = DemandOptions {
        timeout: read_timeout(timeout)?,
        requirement: words.text("requirement")?,
        incomplete: words.flag("incomplete")?,
        ..DemandOptions::default()
    };
    words.finish()?;
    Ok(options)
}

/// Begins a demand and does not block: jct_pending_take returns the answer later, and the program computes
/// until then. `timeout` is that of the demand. Options: those of jct_demand. Free it with
/// jct_pending_free.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jct_begin_demand(
    pool: *const PoolHandle,
    selector: *const c_char,
    options: *const c_char,
    timeout: f64,
    out: *mut *mut PendingHandle,
) -> c_int {
    guarded(|| {
        // SAFETY: the caller guarantees the arguments.
        unsafe {
            handle::create_in(out, || {
                let options = demand_options(OptionWords::read(options)?, timeout)?;
                let pending = pool::of(pool)?.begin_demand(Target::selector(text("selector", selector)?), options)?;
                Ok(BegunDemand {
                    pending,
                    is_answered: false,
                })
            })
        }
    })
}

/// Takes the object of a demand that was begun. Blocks for at most `timeout` seconds; JCT_TIMEOUT where it
/// has not arrived, and the call may be repeated. Other errors: those of jct_demand, once; JCT_NOT_FOUND
/// where the answer was taken before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jct_pending_take(
    pending: *mut PendingHandle,
    timeout: f64,
    out: *mut *mut ObjectHandle,
) -> c_int {
    guarded(|| {
        // SAFETY: the caller guarantees the arguments.
        unsafe {
            handle::create_in(out, || {
                let begun = handle::exclusive(pending)?;
                begun.take(read_timeout(timeout)?).map(HeldObject::new)
            })
        }
    })
}

impl BegunDemand {
    fn take(&mut self, timeout: Option<Duration>) -> Result<Object> {
        if self.is_answered {
            return Err(Error::new(
                Code::NotFound,
                "pending demand",
                "its answer was taken before",
            ));
        }
        let answer = match timeout {
            Some(Duration::ZERO) => self.pending.try_take(),
            timeout => self.pending.wait_within(timeout.unwrap_or(Duration::MAX)),
        };
        self.is_answered = !matches!(answer, Ok(None));
        answer?.ok_or_else(|| Error::new(Code::Timeout, "pending demand", "no answer has arrived in time"))
    }
}

/// Frees a demand that was begun, and cancels it. NULL has no effect. Does not block.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jct_pending_free(pending: *mut PendingHandle) {
    // SAFETY: the caller guarantees the arguments.
    guarded(|| unsafe { handle::release(pending) }.map(drop));
}
