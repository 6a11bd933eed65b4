//! Removing objects from a pool.

use std::ffi::{c_char, c_int};

use junctura::{Pool, Result, Target, WithdrawOptions};

use crate::attributes::{self, AttributesHandle};
use crate::call::argument::{put, text, timeout as read_timeout};
use crate::call::error::guarded;
use crate::call::options::OptionWords;
use crate::pool::{self, PoolHandle};

/// Removes all versions of the object with this key from the pool, and returns when they are removed.
/// Blocks for at most `timeout` seconds while requirements are owed the object. `count`, which may be NULL,
/// is the number of versions that were removed.
///
/// Options: schema=NAME; force (removes what requirements are owed, too; their readers get a gap); forget (frees
/// the key at once, also that of an object that was removed before; `count` is then the number of keys that
/// became free). Errors: JCT_NOT_FOUND, JCT_TIMEOUT.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jct_withdraw(
    pool: *const PoolHandle,
    attributes: *const AttributesHandle,
    options: *const c_char,
    timeout: f64,
    count: *mut u64,
) -> c_int {
    guarded(|| {
        // SAFETY: the caller guarantees the arguments.
        unsafe {
            put(count, 0);
            let (pool, mut words) = (pool::of(pool)?, OptionWords::read(options)?);
            let (schema, how) = (words.text("schema")?, how(&mut words, timeout)?);
            words.finish()?;
            let removed = attributes::lend(attributes, |given| {
                let key = Target::key(given.iter().copied());
                pool.withdraw(schema.into_iter().fold(key, Target::in_schema), how)
            })?;
            put(count, removed);
        }
        Ok(())
    })
}

/// Removes every object that matches a selector from the pool; "*" matches all. As jct_withdraw; it is no
/// error if nothing matches. `count`, which may be NULL, is the number of objects. Options: force,
/// forget.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jct_withdraw_all(
    pool: *const PoolHandle,
    selector: *const c_char,
    options: *const c_char,
    timeout: f64,
    count: *mut u64,
) -> c_int {
    guarded(|| {
        // SAFETY: the caller guarantees the arguments.
        unsafe {
            put(count, 0);
            let (pool, selector, mut words) = (
                pool::of(pool)?,
                text("selector", selector)?,
                OptionWords::read(options)?,
            );
            let how = how(&mut words, timeout)?;
            words.finish()?;
            put(count, withdraw_all(pool, selector, how)?);
        }
        Ok(())
    })
}

fn withdraw_all(pool: &Pool, selector: &str, how: WithdrawOptions) -> Result<u64> {
    pool.withdraw_all(selector, how)
}

fn how(words: &mut OptionWords<'_>, timeout: f64) -> Result<WithdrawOptions> {
    Ok(WithdrawOptions {
        timeout: read_timeout(timeout)?,
        force: words.flag("force")?,
        forget: words.flag("forget")?,
    })
}
