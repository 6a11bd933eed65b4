//! Options among the attributes of an offer: an open schema takes any keyword as an attribute, so an option of another call, or a
//! misspelled one, would be stored in silence.

use std::collections::HashSet;
use std::ffi::CString;
use std::sync::{LazyLock, Mutex, PoisonError};

use junctura::{Pending, Pool, PoolBuilder, Schema, TallyOptions};
use junctura_model::nearest;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::conversion::target::PyTarget;
use crate::runtime::error::{OrRaise, invalid};
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

/// Names that are remembered as checked; later ones are not checked.
const NAMES_MAX: usize = 4096;

/// Checks the keywords of an offer that its schema does not declare. `own`: options of the call that are not among [`OPTIONS`].
///
/// # Errors
/// `InvalidArgument` for an option of another call; the `UsageWarning` for a name that resembles an option and that no object of the
/// pool has as an attribute, if the program treats warnings as errors.
pub(crate) fn check_keywords(
    py: Python<'_>,
    pool: Option<&Pool>,
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
            && is_new(schema.name(), name)
            && let Some(option) = nearest(
                own.iter().copied().chain(OPTIONS.iter().map(|(option, _)| *option)),
                name,
            )
            && !pool.is_some_and(|pool| py.detach(|| has_attribute(pool, name)))
        {
            warn(py, name, option)?;
        }
    }
    Ok(())
}

/// Reads a target, and checks the keywords of a key.
///
/// # Errors
/// Those of [`check_key`], and of a target that is neither a text nor a key.
pub(crate) fn key_target<'py, 'a>(
    py: Python<'py>,
    pool: &Pool,
    target: Option<&Bound<'py, PyAny>>,
    key: Option<&Bound<'py, PyDict>>,
    schema: Option<&'a str>,
) -> PyResult<PyTarget<'py, 'a>> {
    check_key(py, pool, key)?;
    PyTarget::read(py, target, key, schema)
}

/// Options of calls that take a key as keywords.
const OPTIONS_OF_KEYS: [&str; 6] = ["timeout", "schema", "requirement", "incomplete", "force", "forget"];

/// Checks the keywords of a key: an open schema takes any, and one that is no part of the key has no effect.
///
/// # Errors
/// The `UsageWarning` for a name that resembles an option and that no schema of the pool declares, if the program treats warnings as
/// errors.
pub(crate) fn check_key(py: Python<'_>, pool: &Pool, key: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
    for (name, _) in key.into_iter().flatten() {
        let name = name.cast::<PyString>()?.to_str()?;
        let is_declared = || {
            let schemas = pool.schemas().unwrap_or_default();
            schemas.iter().any(|schema| schema.find(name).is_some())
        };
        if !name.ends_with('_')
            && is_new("", name)
            && let Some(option) = nearest(OPTIONS_OF_KEYS, name)
            && !is_declared()
        {
            let mistake = format!("{name} is no part of the key, and has no effect; did you mean the option {option}?");
            warn_of_usage(py, &mistake)?;
        }
    }
    Ok(())
}

/// Whether an object of the pool has an attribute.
fn has_attribute(pool: &Pool, name: &str) -> bool {
    // `tally` reports mistakes of the selector.
    let tally = pool.begin_tally(&format!("exists({name})"), TallyOptions::default());
    tally.and_then(Pending::wait).is_ok_and(|tally| tally.objects() > 0)
}

fn warn(py: Python<'_>, name: &str, option: &str) -> PyResult<()> {
    let mistake = format!(
        "{name} is stored as an attribute; did you mean the option {option}? {name}_= gives an attribute of that name without this warning"
    );
    warn_of_usage(py, &mistake)
}

/// Opens a pool, and issues a `UsageWarning` for each probable mistake in how it is opened.
///
/// # Errors
/// Those of opening; the warning, if the program treats warnings as errors.
pub(crate) fn opened(py: Python<'_>, builder: PoolBuilder) -> PyResult<Pool> {
    let pool = py.detach(|| builder.open()).or_raise(py)?;
    let mistakes = pool.reasons().opening_mistakes();
    mistakes.iter().try_for_each(|mistake| warn_of_usage(py, mistake))?;
    Ok(pool)
}

/// Issues a `UsageWarning`.
///
/// # Errors
/// The warning, if the program treats warnings as errors.
fn warn_of_usage(py: Python<'_>, mistake: &str) -> PyResult<()> {
    static CATEGORY: LazyValue<Py<PyAny>> = LazyValue::new();
    let category = CATEGORY.get_or_make(py, || {
        Ok(py.import("junctura.errors")?.getattr("UsageWarning")?.unbind())
    })?;
    PyErr::warn(py, category.bind(py), &CString::new(mistake)?, 1)
}

static CHECKED: LazyLock<Mutex<HashSet<u64>>> = LazyLock::new(Mutex::default);

/// Whether no keyword of this name was checked before: each is checked once in a process.
fn is_new(schema: &str, name: &str) -> bool {
    let bytes = schema.bytes().chain([0]).chain(name.bytes());
    // FNV-1a.
    let form = bytes.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let mut checked = CHECKED.lock().unwrap_or_else(PoisonError::into_inner);
    checked.len() < NAMES_MAX && checked.insert(form)
}
