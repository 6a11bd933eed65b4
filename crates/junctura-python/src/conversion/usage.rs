//! Valid calls with a probable mistake, which are a `UsageWarning`: a misspelled option among the attributes of an offer, as an open
//! schema takes any keyword as an attribute; an array whose schema has no place for its type; how a pool is opened.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::CString;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use junctura::{Pool, PoolBuilder, Schema, TallyOptions};
use junctura_model::nearest;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::runtime::error::{OrRaise, invalid};
use crate::runtime::interpreter::module;
use crate::runtime::lazy_value::LazyValue;

/// Options of other calls, and where they belong.
const OPTIONS: [(&str, &str); 12] = [
    (
        "timeout",
        "Pool(offer_timeout=SECONDS) limits how long an offer waits for memory",
    ),
    ("offer_timeout", "it is an option of Pool"),
    (
        "time_to_live",
        "it is an option of follow and require; retention= states how long an object stays",
    ),
    ("until_live", "it is an option of follow"),
    ("only_new", "it is an option of follow"),
    ("order_by", "it is an option of list and follow"),
    ("on_full", "it is an option of require"),
    ("stuck_after", "it is an option of require"),
    (
        "same_key",
        "it is part of a schema: `same_key: supersede` lets an object replace an earlier one",
    ),
    ("retention", "it is an option of Pool.offer"),
    ("if_wanted", "it is an option of Pool.offer"),
    ("durability", "it is an option of Pool.offer"),
];

/// Names that a pool or store remembers as checked; later ones are not checked.
const NAMES_MAX: usize = 1024;
/// Pools whose checked names are remembered. Beyond it, all are forgotten.
const POOLS_MAX: usize = 256;

/// The names of keywords that were checked: each is checked once.
#[derive(Default)]
pub(crate) struct CheckedNames(Mutex<NameHashes>);

#[derive(Default)]
struct NameHashes(BTreeSet<u64>);

impl NameHashes {
    /// Whether no keyword of this name was checked before.
    fn is_new(&mut self, schema: &str, name: &str) -> bool {
        let bytes = schema.bytes().chain([0]).chain(name.bytes());
        // FNV-1a.
        let form = bytes.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        self.0.len() < NAMES_MAX && self.0.insert(form)
    }
}

/// The names that were checked, by the URL of the pool.
static OF_POOLS: Mutex<BTreeMap<String, NameHashes>> = Mutex::new(BTreeMap::new());

/// Where the attributes of an offer are kept.
#[derive(Clone, Copy)]
pub(crate) enum OfferPlace<'a> {
    Pool(&'a Pool),
    Store(&'a CheckedNames),
}

impl OfferPlace<'_> {
    fn is_new(self, schema: &str, name: &str) -> bool {
        match self {
            Self::Pool(pool) => {
                let mut pools = OF_POOLS.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(names) = pools.get_mut(pool.url()) {
                    return names.is_new(schema, name);
                }
                if pools.len() == POOLS_MAX {
                    pools.clear();
                }
                pools.entry(pool.url().to_owned()).or_default().is_new(schema, name)
            }
            Self::Store(CheckedNames(names)) => {
                let mut names = names.lock().unwrap_or_else(PoisonError::into_inner);
                names.is_new(schema, name)
            }
        }
    }

    /// Whether an object there has an attribute.
    fn has_attribute(self, py: Python<'_>, name: &str) -> bool {
        let Self::Pool(pool) = self else { return false };
        // `tally` reports mistakes of the selector.
        let tally = || {
            pool.begin_tally(&format!("exists({name})"), TallyOptions::default())?
                .wait()
        };
        py.detach(tally).is_ok_and(|tally| tally.objects() > 0)
    }
}

/// Checks the keywords of an offer that its schema does not declare. `own`: options of the call that are not among [`OPTIONS`].
///
/// # Errors
/// `InvalidArgument` for an option of another call; the `UsageWarning` for a name that resembles an option and that no object of the
/// pool has as an attribute, if the program treats warnings as errors.
pub(crate) fn check_keywords(
    py: Python<'_>,
    place: OfferPlace<'_>,
    schema: &Schema,
    keywords: Option<&Bound<'_, PyDict>>,
    own: &[&str],
) -> PyResult<()> {
    let Some(keywords) = keywords else { return Ok(()) };
    for (name, _) in keywords.iter() {
        let name = name.cast::<PyString>()?.to_str()?;
        if schema.find(name).is_some() {
            continue;
        }
        if let Some((_, remedy)) = OPTIONS.iter().find(|(option, _)| *option == name) {
            let cause = format!(
                "this call has no option {name}, and schema {} has no such attribute: {remedy}; {name}_= gives an attribute of \
                 that name",
                schema.name()
            );
            return Err(invalid(py, name, cause));
        }
        if !name.ends_with('_')
            && place.is_new(schema.name(), name)
            && let Some(option) = nearest(
                own.iter().copied().chain(OPTIONS.iter().map(|(option, _)| *option)),
                name,
            )
            && !place.has_attribute(py, name)
        {
            warn(py, name, option)?;
        }
    }
    Ok(())
}

fn warn(py: Python<'_>, name: &str, option: &str) -> PyResult<()> {
    let mistake = format!(
        "{name} is stored as an attribute; did you mean the option {option}? {name}_= gives an attribute of that name without this warning"
    );
    warn_of_usage(py, &mistake)
}

/// Warns that readers do not get the form of an array: its schema lacks the attribute `lost`. Once for each schema.
///
/// # Errors
/// The warning, if the program treats warnings as errors.
pub(crate) fn warn_of_lost_form(py: Python<'_>, place: OfferPlace<'_>, schema: &Schema, lost: &str) -> PyResult<()> {
    // No attribute has the name.
    if !place.is_new(schema.name(), "array: ") {
        return Ok(());
    }
    let effect = if lost == "dtype" {
        "readers get bytes instead of the array, unless they pass its type and shape"
    } else {
        "readers get an array of one dimension, unless they pass its shape"
    };
    let mistake = format!(
        "schema {} declares no attribute {lost}: {effect}; declare `dtype: {{type: string}}` and `shape: {{type: list of integer}}` \
         among its attributes",
        schema.name()
    );
    warn_of_usage(py, &mistake)
}

/// Options of a server, as a call states them that opens a pool at a URL.
pub(crate) struct ServerOptions {
    pub(crate) budget: Option<u64>,
    pub(crate) spill: Option<PathBuf>,
    pub(crate) spill_size: Option<u64>,
    pub(crate) inline_max: Option<u64>,
    pub(crate) checked: bool,
    pub(crate) orphan_timeout: Option<f64>,
    pub(crate) until_gone: Vec<String>,
}

impl ServerOptions {
    fn is_empty(&self) -> bool {
        let sizes = [self.budget, self.inline_max];
        sizes.iter().all(Option::is_none)
            && self.spill.is_none()
            && self.orphan_timeout.is_none()
            && self.until_gone.is_empty()
            && !self.checked
    }

    fn dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let options = PyDict::new(py);
        options.set_item("budget", self.budget)?;
        options.set_item("spill", self.spill.as_deref())?;
        options.set_item("spill_size", self.spill_size)?;
        options.set_item("inline_max", self.inline_max)?;
        options.set_item("checked", self.checked)?;
        options.set_item("orphan_timeout", self.orphan_timeout)?;
        options.set_item("until_gone", &self.until_gone)?;
        Ok(options)
    }
}

/// Opens a pool, and issues a `UsageWarning` for each probable mistake in how it is opened.
///
/// # Errors
/// Those of opening; the warning, if the program treats warnings as errors.
pub(crate) fn opened(py: Python<'_>, builder: PoolBuilder, server: Option<&ServerOptions>) -> PyResult<Pool> {
    let began_ns: u64 = py.import("time")?.call_method0("monotonic_ns")?.extract()?;
    let pool = py.detach(|| builder.open()).or_raise(py)?;
    let mut pools = OF_POOLS.lock().unwrap_or_else(PoisonError::into_inner);
    pools.remove(pool.url());
    drop(pools);
    let mut mistakes = pool.reasons().opening_mistakes();
    if let Some(server) = server.filter(|server| !server.is_empty()) {
        mistakes.extend(ignored(py, &pool, server, began_ns)?);
    }
    mistakes.iter().try_for_each(|mistake| warn_of_usage(py, mistake))?;
    Ok(pool)
}

/// The options of a server that ran before the pool was opened, and has other ones.
fn ignored(py: Python<'_>, pool: &Pool, stated: &ServerOptions, began_ns: u64) -> PyResult<Option<String>> {
    let (stat, board, rules) = py.detach(|| (pool.stat(), pool.board(), pool.payload_rules()));
    let (Ok(stat), Ok(rules)) = (stat, rules) else {
        // The next request reports the error.
        return Ok(None);
    };
    // The board is that of a server of this machine.
    let board = board.ok().map(|board| board.snapshot().to_json());
    let own = (rules.inline_bytes_max, rules.checked);
    let about = (pool.url(), stat, board, own, stated.dict(py)?, began_ns);
    let options = module(py, "junctura._pool_options")?;
    options.call_method1("ignored", about)?.extract()
}

/// Issues a `UsageWarning`.
///
/// # Errors
/// The warning, if the program treats warnings as errors.
pub(crate) fn warn_of_usage(py: Python<'_>, mistake: &str) -> PyResult<()> {
    static CATEGORY: LazyValue<Py<PyAny>> = LazyValue::new();
    let category = CATEGORY.get_or_make(py, || {
        Ok(py.import("junctura.errors")?.getattr("UsageWarning")?.unbind())
    })?;
    PyErr::warn(py, category.bind(py), &CString::new(mistake)?, 1)
}
