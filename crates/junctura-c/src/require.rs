//! Requirements: objects that must stay until they were received.

use std::ffi::{c_char, c_int};

use junctura::{OnFull, RequireOptions, Requirement, Result, Versions};

use crate::call::argument::{invalid, put, text};
use crate::call::error::guarded;
use crate::call::handle::{self, OpaqueType};
use crate::call::options::OptionWords;
use crate::follow::{FollowHandle, FollowState, follow_options};
use crate::pool::{self, PoolHandle};

/// A requirement: every object that matches stays until it was received through it and released.
pub struct RequirementHandle {
    _opaque: [u64; 0],
}

impl OpaqueType for RequirementHandle {
    type Value = Requirement;
    const TAG: u64 = 0x6a63_745f_7265_7175;
    const NAME: &'static str = "requirement";
}

/// The words for which versions of a key are owed.
pub(crate) const VERSIONS: [(&str, Versions); 2] = [("all", Versions::All), ("newest", Versions::Newest)];

/// Requires every object that matches a selector, from what is visible now on: each stays until it was
/// received through this requirement and released. Blocks for one round trip. Free it with
/// jct_requirement_free, or end it with jct_requirement_retract.
///
/// Options:
///   name=NAME           a requirement that outlives this client; a later call with the name continues it
///   group               with a name: a consumer group, whose members share what it is owed
///   versions=all|newest which versions of each key are owed (default: all)
///   time_to_live=TIME   how long a named one lasts while no client uses it (default: forever)
///   on_full=wait|break  where the pool is full: offers wait for its readers (default), or it is broken
///   quota=SIZE          with on_full=break: the bytes that it may keep
///   stuck_after=TIME    how long its readers may release nothing while offers wait for them
///
/// Errors: JCT_CONFLICT where the name has other options, JCT_INVALID_SELECTOR, JCT_LIMIT_EXCEEDED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jct_require(
    pool: *const PoolHandle,
    selector: *const c_char,
    options: *const c_char,
    out: *mut *mut RequirementHandle,
) -> c_int {
    guarded(|| {
        // SAFETY: the caller guarantees the arguments.
        unsafe {
            handle::create_in(out, || {
                let (pool, mut words) = (pool::of(pool)?, OptionWords::read(options)?);
                let options = require_options(&mut words)?;
                words.finish()?;
                pool.require_with(text("selector", selector)?, options)
            })
        }
    })
}

fn require_options(words: &mut OptionWords<'_>) -> Result<RequireOptions> {
    let breaks = words.one_of("on_full", &[("wait", false), ("break", true)])?;
    let on_full = match (breaks == Some(true), words.size("quota")?) {
        (true, quota) => OnFull::Break { quota },
        (false, None) => OnFull::Wait,
        (false, Some(_)) => return Err(invalid("options", "quota requires on_full=break")),
    };
    Ok(RequireOptions {
        versions: words.one_of("versions", &VERSIONS)?.unwrap_or_default(),
        name: words.text("name")?.map(str::to_owned),
        time_to_live: words.time("time_to_live")?,
        on_full,
        stuck_after: words.time("stuck_after")?,
        group: words.flag("group")?,
    })
}

/// Follows what a requirement is owed, oldest first. Options: window=N, until_live. As jct_follow. Blocks
/// for one round trip.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jct_requirement_follow(
    requirement: *const RequirementHandle,
    options: *const c_char,
    out: *mut *mut FollowHandle,
) -> c_int {
    guarded(|| {
        // SAFETY: the caller guarantees the arguments.
        unsafe {
            handle::create_in(out, || {
                let (requirement, mut words) = (handle::shared(requirement)?, OptionWords::read(options)?);
                let options = follow_options(&mut words)?;
                words.finish()?;
                requirement.follow_with(options).map(FollowState::new)
            })
        }
    })
}

/// Ends a requirement: objects that only it kept may be removed. Consumes the handle, also where the call fails. Blocks
/// for one round trip.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jct_requirement_retract(requirement: *mut RequirementHandle) -> c_int {
    guarded(|| {
        // SAFETY: the caller guarantees the arguments.
        match unsafe { handle::release(requirement) }? {
            Some(requirement) => requirement.retract(),
            None => Err(invalid("requirement", "NULL")),
        }
    })
}

/// Frees the handle of a requirement. One without a name ends; one with a name lasts. NULL has no effect.
/// Blocks for one round trip at most.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jct_requirement_free(requirement: *mut RequirementHandle) {
    // SAFETY: the caller guarantees the arguments.
    guarded(|| unsafe { handle::release(requirement) }.map(drop));
}

/// Ends the requirement or group of a name, whichever client made it. `owed`, which may be NULL, is the
/// number of objects that it was still owed. Blocks for one round trip. Errors: JCT_NOT_FOUND.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jct_retract(pool: *const PoolHandle, name: *const c_char, owed: *mut u64) -> c_int {
    guarded(|| {
        // SAFETY: the caller guarantees the arguments.
        unsafe {
            put(owed, 0);
            put(owed, pool::of(pool)?.retract(text("name", name)?)?);
        }
        Ok(())
    })
}
