//! Subscriptions to events, without payloads.

use std::ffi::{CString, c_char, c_int};
use std::ptr;
use std::time::Duration;

use junctura::{Code, Error, EventKind, PoolEvent, Result, Subscription};

use crate::call::argument::{c_text, invalid, place, text, timeout as read_timeout};
use crate::call::error::{guarded, guarded_or};
use crate::call::handle::{self, OpaqueType};
use crate::call::options::OptionWords;
use crate::object::LentTexts;
use crate::pool::{self, PoolHandle};

/// A subscription to the events of a pool, with the event that was taken last.
pub struct SubscriptionHandle {
    _opaque: [u64; 0],
}

impl OpaqueType for SubscriptionHandle {
    type Value = SubscriptionState;
    const TAG: u64 = 0x6a63_745f_7375_6273;
    const NAME: &'static str = "subscription";
}

/// The contents of a handle, with the texts that were lent to C.
#[doc(hidden)]
pub struct SubscriptionState {
    events: Subscription,
    event: Option<PoolEvent>,
    kind: CString,
    fields: LentTexts,
    values: LentTexts,
}

impl SubscriptionState {
    fn next(&mut self, timeout: f64) -> Result<()> {
        self.event = None;
        (self.fields, self.values) = (LentTexts::default(), LentTexts::default());
        self.event = match read_timeout(timeout)? {
            None => self.events.next_event()?,
            Some(Duration::ZERO) => match self.events.try_next()? {
                None if !self.events.is_over() => {
                    return Err(Error::new(Code::Timeout, "subscription", "no event has arrived"));
                }
                event => event,
            },
            Some(timeout) => self.events.next_within(timeout)?,
        };
        self.kind = self
            .event
            .as_ref()
            .map_or_else(CString::default, |event| c_text(event.kind.name()));
        Ok(())
    }

    fn event(&self) -> Result<&PoolEvent> {
        let event = self.event.as_ref();
        event.ok_or_else(|| invalid("subscription", "jct_subscription_next has not returned an event"))
    }
}

/// Subscribes to events that concern objects which match a selector; "" matches all. Events of clients,
/// requirements and bundles are independent of the selector. Blocks for one round trip. Close it with
/// jct_subscription_close.
///
/// Options: kinds=(offered,withdrawn,...), the events (default: all): offered, withdrawn, expired, joined,
/// left, superseded, required, retracted, lapsed, broken, declined, missed, completed, aborted, spilled,
/// archived, unarchived, stuck. Errors: JCT_INVALID_SELECTOR, JCT_LIMIT_EXCEEDED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jct_subscribe(
    pool: *const PoolHandle,
    selector: *const c_char,
    options: *const c_char,
    out: *mut *mut SubscriptionHandle,
) -> c_int {
    guarded(|| {
        // SAFETY: the caller guarantees the arguments.
        unsafe {
            handle::create_in(out, || {
                let (pool, mut words) = (pool::of(pool)?, OptionWords::read(options)?);
                let kinds = words.text("kinds")?.map_or_else(|| Ok(Vec::new()), kinds)?;
                words.finish()?;
                Ok(SubscriptionState {
                    events: pool.subscribe(text("selector", selector)?, &kinds)?,
                    event: None,
                    kind: CString::default(),
                    fields: LentTexts::default(),
                    values: LentTexts::default(),
                })
            })
        }
    })
}

fn kinds(text: &str) -> Result<Vec<EventKind>> {
    let kind = |name: &str| {
        EventKind::from_name(name.trim()).ok_or_else(|| {
            let names: Vec<&str> = EventKind::ALL.iter().map(|kind| kind.name()).collect();
            invalid("options", format!("kinds: {name:?} is none of {}", names.join(", ")))
        })
    };
    text.split(',').map(kind).collect()
}

/// Takes the next event: `*kind` is its kind, such as "offered"; NULL where the subscription has ended. The
/// text is valid until this function is called again, or until the subscription is closed. Blocks until
/// there is an event, for at most `timeout` seconds; see jct_pool_descriptor for a loop of the caller's.
/// Errors: JCT_TIMEOUT; JCT_LIMIT_EXCEEDED where events arrived faster than they were read and some were
/// lost. The subscription ends after other errors than JCT_TIMEOUT and JCT_INTERRUPTED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jct_subscription_next(
    subscription: *mut SubscriptionHandle,
    timeout: f64,
    kind: *mut *const c_char,
) -> c_int {
    guarded(|| {
        // SAFETY: the caller guarantees the arguments.
        unsafe {
            place("kind", kind, ptr::null())?;
            let state = handle::exclusive(subscription)?;
            state.next(timeout)?;
            if state.event.is_some() {
                kind.write(state.kind.as_ptr());
            }
        }
        Ok(())
    })
}

/// Returns a text of the event that was taken last; NULL where it has none, and for invalid arguments. Valid
/// as its kind. `field`:
///   key          the canonical key of the object
///   client       the name of the client that joined, left, offered, created or retracted; host: its host
///   requirement  the name of the requirement; selector: its selector
///   bundle       the path of the bundle
///   location     the location of the object in a store
///   reason       the reason, such as that of an end
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jct_event_text(
    subscription: *const SubscriptionHandle,
    field: *const c_char,
) -> *const c_char {
    guarded_or(ptr::null(), || {
        // SAFETY: the caller guarantees the arguments.
        let (state, field) = unsafe { (handle::shared(subscription)?, text("field", field)?) };
        let found = text_of(state.event()?, field)?;
        Ok(state.fields.lend(field, || found))
    })
}

fn text_of<'e>(event: &'e PoolEvent, field: &str) -> Result<Option<&'e str>> {
    let requirement = event.requirement.as_ref();
    Ok(match field {
        "key" => event.object.as_ref().map(|(object, _)| object.key()),
        "client" => event.client.as_ref().map(|peer| &*peer.name),
        "host" => event.client.as_ref().map(|peer| &*peer.host),
        "requirement" => requirement.map(|(name, _)| &**name),
        "selector" => requirement.map(|(_, selector)| &**selector),
        "bundle" => event.bundle.as_ref().and_then(|bundle| bundle.path.as_deref()),
        "location" => event.location.as_deref(),
        "reason" => Some(&*event.reason).filter(|reason| !reason.is_empty()),
        other => {
            let fields = "key, client, host, requirement, selector, bundle, location, reason";
            return Err(invalid("field", format!("{other:?} is none of {fields}")));
        }
    })
}

/// Returns the canonical value of an attribute of the object of the event that was taken last; NULL where
/// there is none, and for invalid arguments. Valid as its kind.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jct_event_get(subscription: *const SubscriptionHandle, name: *const c_char) -> *const c_char {
    guarded_or(ptr::null(), || {
        // SAFETY: the caller guarantees the arguments.
        let (state, name) = unsafe { (handle::shared(subscription)?, text("name", name)?) };
        let object = state.event()?.object.as_ref();
        Ok(state
            .values
            .lend(name, || object.and_then(|(object, _)| object.get(name))))
    })
}

/// Returns a number of the event that was taken last. `field`: bytes, of the object's payload; version, of
/// the object; client, the number of the client; pid, of the client; members, of the bundle; declared, those
/// that complete the bundle. Errors: JCT_NOT_FOUND where the event has no such number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jct_event_number(
    subscription: *const SubscriptionHandle,
    field: *const c_char,
    number: *mut u64,
) -> c_int {
    guarded(|| {
        // SAFETY: the caller guarantees the arguments.
        unsafe {
            place("number", number, 0)?;
            let (state, field) = (handle::shared(subscription)?, text("field", field)?);
            let found = number_of(state.event()?, field)?;
            number.write(found.ok_or_else(|| Error::new(Code::NotFound, "event", format!("it has no {field}")))?);
        }
        Ok(())
    })
}

fn number_of(event: &PoolEvent, field: &str) -> Result<Option<u64>> {
    let (object, client, bundle) = (event.object.as_ref(), event.client.as_ref(), event.bundle.as_ref());
    Ok(match field {
        "bytes" => object.map(|_| event.bytes),
        "version" => object.map(|(_, version)| version.sequence),
        "client" => client.map(|peer| u64::from(peer.client)),
        "pid" => client.map(|peer| u64::from(peer.pid)),
        "members" => bundle.map(|bundle| bundle.members),
        "declared" => bundle.and_then(|bundle| bundle.declared),
        other => {
            let fields = "bytes, version, client, pid, members, declared";
            return Err(invalid("field", format!("{other:?} is none of {fields}")));
        }
    })
}

/// Ends a subscription. NULL has no effect. Blocks for one round trip at most.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jct_subscription_close(subscription: *mut SubscriptionHandle) {
    // SAFETY: the caller guarantees the arguments.
    guarded(|| unsafe { handle::release(subscription) }.map(drop));
}
