//! Pools: opening, closing, and what concerns a pool as a whole.

use std::env::VarError;
use std::ffi::{CString, c_char, c_int};
use std::os::fd::AsRawFd;
use std::sync::{Mutex, PoisonError};

use junctura::{Code, Error, Pool, PoolBuilder, PoolDescriptor, Result, Schema};

use crate::call::argument::{c_text, given_text, invalid, place, text as read_text, timeout as read_timeout};
use crate::call::error::{guarded, guarded_or};
use crate::call::handle::{self, OpaqueType};
use crate::call::options::OptionWords;

/// A pool that this program has open. Any number of threads may use it at the same time.
pub struct PoolHandle {
    _opaque: [u64; 0],
}

impl OpaqueType for PoolHandle {
    type Value = OpenPool;
    const TAG: u64 = 0x6a63_745f_706f_6f6c;
    const NAME: &'static str = "pool";
}

/// The contents of a handle.
#[doc(hidden)]
pub struct OpenPool {
    pub(crate) pool: Pool,
    url: CString,
    descriptor: Mutex<Option<PoolDescriptor>>,
}

/// The pool of a handle.
///
/// # Safety
/// As [`handle::shared`].
pub(crate) unsafe fn of<'a>(pool: *const PoolHandle) -> Result<&'a Pool> {
    // SAFETY: as the caller guarantees.
    unsafe { handle::shared(pool) }.map(|open| &open.pool)
}

/// Opens a pool: that at `url` ("unix:NAME", "unix:/path/of/socket", "tcp://HOST:PORT"). Without a
/// `url`, NULL or "", it opens the pool that the environment variable JUNCTURA_POOL names; where that is not set, a private
/// pool of this process and its children. Blocks until the server has answered, or is found not to exist.
///
/// Options (all optional):
///   name=NAME            the name of this client in reports of the pool
///   schema=NAME|FILE     a schema that the pool must have: built in ("free", "mars", ...) or a file;
///                        several: schema=(free,mars), the first of which is the default of a private pool
///   start                starts a server for this machine where none runs
///   timeout=TIME         how long an offer waits for memory (default: forever)
///   store=URL            a store behind the pool, which reads search, too
///   token_file=FILE, ca_file=FILE, transports=WORDS, streams=N: of connections by tcp://
///   budget=SIZE, spill=DIR, spill_size=SIZE, inline_max=SIZE, checked, orphan_timeout=TIME: of a server
///                        that this call starts
///
/// Errors: JCT_UNAVAILABLE where no server runs, JCT_DENIED, JCT_UNSUPPORTED for a URL or option that needs
/// a feature that was left out of this build, JCT_NOT_FOUND for an unknown schema, JCT_SCHEMA_MISMATCH.
/// Close the pool with jct_pool_close.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jct_pool_open(url: *const c_char, options: *const c_char, out: *mut *mut PoolHandle) -> c_int {
    guarded(|| {
        // SAFETY: the caller guarantees the arguments.
        unsafe {
            handle::create_in(out, || {
                let given = given_text("url", url)?.map(str::to_owned);
                let mut words = OptionWords::read(options)?;
                let builder = settle(address(given)?, &mut words)?;
                words.finish()?;
                let pool = builder.open()?;
                let url = c_text(pool.url());
                let descriptor = Mutex::default();
                Ok(OpenPool { pool, url, descriptor })
            })
        }
    })
}

fn address(given: Option<String>) -> Result<PoolBuilder> {
    let url = match given {
        Some(url) => Some(url),
        None => of_environment()?,
    };
    Ok(url.map_or_else(Pool::builder, |url| Pool::builder().url(url)))
}

fn of_environment() -> Result<Option<String>> {
    match std::env::var("JUNCTURA_POOL") {
        Ok(url) => Ok(Some(url).filter(|url| !url.is_empty())),
        Err(VarError::NotPresent) => Ok(None),
        Err(VarError::NotUnicode(_)) => Err(invalid("JUNCTURA_POOL", "it is not UTF-8")),
    }
}

fn settle(mut builder: PoolBuilder, words: &mut OptionWords<'_>) -> Result<PoolBuilder> {
    if let Some(name) = words.text("name")? {
        builder = builder.name(name);
    }
    for schema in words.text("schema")?.into_iter().flat_map(|all| all.split(',')) {
        builder = match schema.trim() {
            name if Schema::BUILTIN_NAMES.contains(&name) => builder.schema(name),
            file => builder.schema_file(file),
        };
    }
    if let Some(timeout) = words.time("timeout")? {
        builder = builder.offer_timeout(Some(timeout));
    }
    builder = of_store(builder, words)?;
    of_server(of_network(builder, words)?, words)
}

#[cfg(feature = "store")]
fn of_store(builder: PoolBuilder, words: &mut OptionWords<'_>) -> Result<PoolBuilder> {
    let store = words.text("store")?;
    Ok(store.into_iter().fold(builder, PoolBuilder::store))
}

#[cfg(not(feature = "store"))]
fn of_store(builder: PoolBuilder, words: &mut OptionWords<'_>) -> Result<PoolBuilder> {
    refuse(words, "store", &["store"]).map(|()| builder)
}

#[cfg(feature = "net")]
fn of_network(mut builder: PoolBuilder, words: &mut OptionWords<'_>) -> Result<PoolBuilder> {
    if let Some(ways) = words.text("transports")? {
        builder = builder.transports(ways);
    }
    if let Some(file) = words.text("token_file")? {
        builder = builder.token_file(file);
    }
    if let Some(file) = words.text("ca_file")? {
        builder = builder.ca_file(file);
    }
    let streams = words.number("streams")?;
    Ok(streams.into_iter().fold(builder, PoolBuilder::streams))
}

#[cfg(not(feature = "net"))]
fn of_network(builder: PoolBuilder, words: &mut OptionWords<'_>) -> Result<PoolBuilder> {
    refuse(words, "net", &["transports", "token_file", "ca_file", "streams"]).map(|()| builder)
}

#[cfg(feature = "embedded")]
fn of_server(builder: PoolBuilder, words: &mut OptionWords<'_>) -> Result<PoolBuilder> {
    let mut builder = builder.start(words.flag("start")?).checked(words.flag("checked")?);
    if let Some(bytes) = words.size("budget")? {
        builder = builder.budget_bytes(bytes);
    }
    let (spill, limit) = (words.text("spill")?, words.size("spill_size")?);
    builder = match (spill, limit) {
        (Some(directory), limit) => builder.spill(directory, limit),
        (None, None) => builder,
        (None, Some(_)) => {
            let cause = "spill_size lacks spill, the directory";
            return Err(crate::call::argument::invalid("options", cause));
        }
    };
    if let Some(bytes) = words.size("inline_max")? {
        builder = builder.inline_bytes_max(bytes);
    }
    let timeout = words.time("orphan_timeout")?;
    Ok(timeout.into_iter().fold(builder, PoolBuilder::orphan_timeout))
}

#[cfg(not(feature = "embedded"))]
fn of_server(builder: PoolBuilder, words: &mut OptionWords<'_>) -> Result<PoolBuilder> {
    for name in ["start", "checked"] {
        if words.flag(name)? {
            return Err(lacking(name, "embedded"));
        }
    }
    let others = ["budget", "spill", "spill_size", "inline_max", "orphan_timeout"];
    refuse(words, "embedded", &others).map(|()| builder)
}

#[cfg(not(all(feature = "store", feature = "net", feature = "embedded")))]
fn refuse(words: &mut OptionWords<'_>, feature: &str, names: &[&'static str]) -> Result<()> {
    for name in names {
        if words.text(name)?.is_some() {
            return Err(lacking(name, feature));
        }
    }
    Ok(())
}

#[cfg(not(all(feature = "store", feature = "net", feature = "embedded")))]
fn lacking(option: &str, feature: &str) -> junctura::Error {
    let cause = format!("{option} requires the feature {feature}, which was left out of this build");
    junctura::Error::new(junctura::Code::Unsupported, "options", cause)
}

/// Closes a pool and frees its handle. NULL has no effect. Objects that are held stay readable; of other
/// handles of this pool every function fails with JCT_CLOSED, and they must be freed as usual. No other
/// thread may use the pool's handle during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jct_pool_close(pool: *mut PoolHandle) {
    guarded(|| {
        // SAFETY: the caller guarantees the arguments.
        if let Some(open) = unsafe { handle::release(pool) }? {
            open.pool.close();
        }
        Ok(())
    });
}

/// Returns when every earlier call through this pool is in effect, even if this process crashes
/// afterwards: released objects count as released. Blocks for one round trip, at most `timeout` seconds.
/// Errors: JCT_TIMEOUT.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jct_pool_sync(pool: *const PoolHandle, timeout: f64) -> c_int {
    // SAFETY: the caller guarantees the arguments.
    guarded(|| unsafe { of(pool) }?.sync(read_timeout(timeout)?))
}

/// States what this client works on, for people who look at the pool: `junctura top` shows it, for example
/// "step=36, of=240". At most 1,024 bytes without control characters. The last note counts, and at most one
/// is sent in a second; an empty text removes it. Does not block. Errors: JCT_INVALID_ARGUMENT.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jct_pool_note(pool: *const PoolHandle, text: *const c_char) -> c_int {
    guarded(|| {
        // SAFETY: the caller guarantees the arguments.
        let (pool, text) = unsafe { (of(pool)?, read_text("text", text)?) };
        pool.note(text)
    })
}

/// Returns the counters of the server as a JSON text. Free it with jct_free. Blocks for one round trip.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jct_pool_stat(pool: *const PoolHandle, json: *mut *mut c_char) -> c_int {
    guarded(|| {
        // SAFETY: the caller guarantees the arguments.
        unsafe {
            place("json", json, std::ptr::null_mut())?;
            let text = of(pool)?.stat()?;
            json.write(c_text(&text).into_raw());
        }
        Ok(())
    })
}

/// Explains a selector as a JSON text: why the objects that match are in memory; if none matches, the conditions
/// without which objects match, the values that exist, and probable mistakes; and arrays that lack pieces, with
/// the ranks that are missing. For the text of a key, which begins with {, explains its object. The fields are
/// those of `junctura explain --json`. Free the text with jct_free. Blocks for one round trip for each condition
/// or object. Errors: JCT_INVALID_SELECTOR; JCT_NOT_FOUND where nothing is known of a key.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jct_pool_explain(
    pool: *const PoolHandle,
    selector: *const c_char,
    json: *mut *mut c_char,
) -> c_int {
    guarded(|| {
        // SAFETY: the caller guarantees the arguments.
        unsafe {
            place("json", json, std::ptr::null_mut())?;
            let text = explain(of(pool)?, read_text("selector", selector)?)?;
            json.write(c_text(&text).into_raw());
        }
        Ok(())
    })
}

fn explain(pool: &Pool, target: &str) -> Result<String> {
    let text = if target.starts_with('{') {
        serde_json::to_string(&pool.reasons().explain(target)?)
    } else {
        serde_json::to_string(&pool.reasons().explain_selector(target)?)
    };
    text.map_err(|error| Error::new(Code::Protocol, "explain", error.to_string()))
}

/// Returns the URL of the pool, also of a private one. The text is valid until the pool is closed. NULL for
/// an invalid handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jct_pool_url(pool: *const PoolHandle) -> *const c_char {
    // SAFETY: the caller guarantees the arguments.
    guarded_or(std::ptr::null(), || Ok(unsafe { handle::shared(pool) }?.url.as_ptr()))
}

/// Returns a file descriptor that is readable when something has arrived, for poll and epoll in a loop of
/// the caller's. When it is readable, call the functions of the follows and pending demands concerned with
/// a timeout of 0, each until it returns JCT_TIMEOUT, then poll again. Nothing is read from the descriptor
/// itself. It belongs to the pool: do not close it. It is valid until the pool is closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jct_pool_descriptor(pool: *const PoolHandle, descriptor: *mut c_int) -> c_int {
    guarded(|| {
        // SAFETY: the caller guarantees the arguments.
        unsafe {
            place("descriptor", descriptor, -1)?;
            let open = handle::shared(pool)?;
            let made = open.pool.descriptor()?;
            descriptor.write(made.as_raw_fd());
            *open.descriptor.lock().unwrap_or_else(PoisonError::into_inner) = Some(made);
        }
        Ok(())
    })
}
