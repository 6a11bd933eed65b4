//! Follows: every object that matches, first those that exist, then those that are offered.

use std::ffi::{CString, c_char, c_int};
use std::ptr;
use std::time::Duration;

use junctura::{Code, Error, Follow, FollowOptions, Gap, Group, Item, Result};

use crate::call::argument::{c_text, place, put, text, timeout as read_timeout};
use crate::call::error::{guarded, guarded_or};
use crate::call::handle::{self, OpaqueType};
use crate::call::options::OptionWords;
use crate::object::{HeldObject, ObjectHandle};
use crate::pool::{self, PoolHandle};
use crate::require::VERSIONS;

/// The item is an object.
pub const JCT_OBJECT: c_int = 1;
/// All objects that existed when the follow began were delivered; later ones are new.
pub const JCT_LIVE: c_int = 2;
/// Objects were removed before they could be delivered: see jct_follow_gap.
pub const JCT_GAP: c_int = 3;
/// The follow has ended.
pub const JCT_OVER: c_int = 4;

/// A follow: a stream of objects.
pub struct FollowHandle {
    _opaque: [u64; 0],
}

impl OpaqueType for FollowHandle {
    type Value = FollowState;
    const TAG: u64 = 0x6a63_745f_666f_6c6c;
    const NAME: &'static str = "follow";
}

/// The contents of a handle, with the texts that were lent to C.
#[doc(hidden)]
pub struct FollowState {
    follow: Follow,
    missed: u64,
    reason: CString,
    cursor: CString,
}

impl FollowState {
    pub(crate) fn new(follow: Follow) -> Self {
        Self {
            follow,
            missed: 0,
            reason: CString::default(),
            cursor: CString::default(),
        }
    }

    fn next(&mut self, timeout: f64) -> Result<Option<Item>> {
        match read_timeout(timeout)? {
            None => self.follow.next_item(),
            Some(Duration::ZERO) => match self.follow.try_next()? {
                None if !self.follow.is_over() => Err(Error::new(Code::Timeout, "follow", "no item has arrived")),
                item => Ok(item),
            },
            Some(timeout) => self.follow.next_within(timeout),
        }
    }

    fn note(&mut self, gap: &Gap) {
        self.missed = gap.items.len() as u64 + gap.unnamed;
        self.reason = c_text(&gap.reason);
    }
}

/// Follows every object that matches a selector: those that exist, then those that are offered; "" matches
/// all. Each version of each object is delivered at most once, and none is missed in between. Blocks for
/// one round trip. Close it with jct_follow_close.
///
/// Options:
///   window=N             objects that may be unreleased at once (default: 256; 8 for a member of a group)
///   only_new             omits what exists
///   until_live           ends when all that existed was delivered
///   order_by=NAME        sorts what exists by an attribute (default: by key)
///   cursor=TEXT          continues after an earlier follow: see jct_follow_cursor
///   requirement=NAME     receives what this requirement is owed; the selector must be ""
///   group=NAME           receives as a member of this consumer group, which is made where it does not exist
///   versions=all|newest, time_to_live=TIME: of a group that this call makes
///
/// Errors: JCT_INVALID_SELECTOR, JCT_EXPIRED for the cursor of an earlier server, JCT_NOT_FOUND for a
/// requirement, JCT_CONFLICT.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jct_follow(
    pool: *const PoolHandle,
    selector: *const c_char,
    options: *const c_char,
    out: *mut *mut FollowHandle,
) -> c_int {
    guarded(|| {
        // SAFETY: the caller guarantees the arguments.
        unsafe {
            handle::create_in(out, || {
                let (pool, mut words) = (pool::of(pool)?, OptionWords::read(options)?);
                let options = FollowOptions {
                    requirement: words.text("requirement")?.map(str::to_owned),
                    group: group(&mut words)?,
                    ..follow_options(&mut words)?
                };
                words.finish()?;
                let follow = pool.follow_with(text("selector", selector)?, options)?;
                Ok(FollowState::new(follow))
            })
        }
    })
}

/// Follows as one more member of a consumer group that exists, with any selector. Options: window=N,
/// until_live. As jct_follow. Errors: JCT_NOT_FOUND, JCT_CONFLICT where the name is that of a requirement
/// for one reader.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jct_join(
    pool: *const PoolHandle,
    group: *const c_char,
    options: *const c_char,
    out: *mut *mut FollowHandle,
) -> c_int {
    guarded(|| {
        // SAFETY: the caller guarantees the arguments.
        unsafe {
            handle::create_in(out, || {
                let (pool, mut words) = (pool::of(pool)?, OptionWords::read(options)?);
                let options = FollowOptions {
                    join: Some(text("group", group)?.to_owned()),
                    ..follow_options(&mut words)?
                };
                words.finish()?;
                pool.follow_with("", options).map(FollowState::new)
            })
        }
    })
}

fn group(words: &mut OptionWords<'_>) -> Result<Option<Group>> {
    let Some(name) = words.text("group")? else {
        return Ok(None);
    };
    Ok(Some(Group {
        name: name.to_owned(),
        versions: words.one_of("versions", &VERSIONS)?.unwrap_or_default(),
        time_to_live: words.time("time_to_live")?,
    }))
}

/// The options of every follow.
///
/// # Errors
/// `InvalidArgument`.
pub(crate) fn follow_options(words: &mut OptionWords<'_>) -> Result<FollowOptions> {
    Ok(FollowOptions {
        window: words.number("window")?,
        order_by: words.text("order_by")?.map(str::to_owned),
        cursor: words.text("cursor")?.filter(|text| !text.is_empty()).map(str::to_owned),
        only_new: words.flag("only_new")?,
        until_live: words.flag("until_live")?,
        ..FollowOptions::default()
    })
}

/// Takes the next item of a follow. Blocks for at most `timeout` seconds; JCT_TIMEOUT where none has
/// arrived. `kind` is JCT_OBJECT, JCT_LIVE, JCT_GAP or JCT_OVER, 0 where the call fails; `object` is NULL
/// except for JCT_OBJECT. Release the object with jct_object_release: a follow delivers no more than its
/// window of objects that are unreleased.
///
/// Errors: JCT_TIMEOUT; JCT_CORRUPT for an object whose payload was changed, after which the follow
/// continues; JCT_LIMIT_EXCEEDED where more waits for this reader than the server keeps: it has ended then;
/// JCT_DISCONNECTED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jct_follow_next(
    follow: *mut FollowHandle,
    timeout: f64,
    object: *mut *mut ObjectHandle,
    kind: *mut c_int,
) -> c_int {
    guarded(|| {
        // SAFETY: the caller guarantees the arguments.
        unsafe {
            place("object", object, ptr::null_mut())?;
            place("kind", kind, 0)?;
            let state = handle::exclusive(follow)?;
            kind.write(match state.next(timeout)? {
                Some(Item::Object(item)) => {
                    object.write(handle::create(HeldObject::new(item)));
                    JCT_OBJECT
                }
                Some(Item::Live) => JCT_LIVE,
                Some(Item::Gap(gap)) => {
                    state.note(&gap);
                    JCT_GAP
                }
                None => JCT_OVER,
            });
        }
        Ok(())
    })
}

/// Describes the last gap of a follow: how many objects were missed, and why ("withdrawn", "expired", ...).
/// Both places may be NULL. The text is valid until the next gap, or until the follow is closed; it is
/// empty where there was no gap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jct_follow_gap(
    follow: *const FollowHandle,
    objects: *mut u64,
    reason: *mut *const c_char,
) -> c_int {
    guarded(|| {
        // SAFETY: the caller guarantees the arguments.
        unsafe {
            put(objects, 0);
            put(reason, ptr::null());
            let state = handle::shared(follow)?;
            put(objects, state.missed);
            put(reason, state.reason.as_ptr());
        }
        Ok(())
    })
}

/// Returns the cursor behind the last object that a follow delivered: a text with which a later follow
/// continues, also in another process. Empty before the first object; an empty cursor is as none. The text is valid until this function
/// is called again, or until the follow is closed. NULL for an invalid handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jct_follow_cursor(follow: *mut FollowHandle) -> *const c_char {
    guarded_or(ptr::null(), || {
        // SAFETY: the caller guarantees the arguments.
        let state = unsafe { handle::exclusive(follow) }?;
        let cursor = state.follow.cursor().map(|cursor| cursor.to_string());
        state.cursor = c_text(&cursor.unwrap_or_default());
        Ok(state.cursor.as_ptr())
    })
}

/// Ends a follow and frees its handle. Objects that it delivered stay held. NULL has no effect. Blocks for
/// one round trip at most.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jct_follow_close(follow: *mut FollowHandle) {
    // SAFETY: the caller guarantees the arguments.
    guarded(|| unsafe { handle::release(follow) }.map(drop));
}
