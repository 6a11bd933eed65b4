//! Keywords that a call does not have: the error names the nearest option, as Python itself does for its own functions.

use junctura_model::nearest;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

/// Refuses keywords that the call does not have.
///
/// # Errors
/// `TypeError`: there are such keywords. The error names the nearest option of the call, or else all options.
pub(crate) fn refuse_unknown(py: Python<'_>, call: &str, unknown: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
    match first_name(unknown)? {
        Some(name) => Err(unexpected(py, call, &name, None)),
        None => Ok(()),
    }
}

/// Refuses keywords that the call does not have, of which `elsewhere` names those of another call, and `advice` states how to make
/// that call.
///
/// # Errors
/// `TypeError`: there are such keywords.
pub(crate) fn refuse_unknown_of(
    py: Python<'_>,
    call: &str,
    unknown: Option<&Bound<'_, PyDict>>,
    (elsewhere, advice): (&str, &str),
) -> PyResult<()> {
    let Some(name) = first_name(unknown)? else {
        return Ok(());
    };
    let options = options(py, elsewhere).unwrap_or_default();
    let advice = options.contains(&name).then_some(advice);
    Err(unexpected(py, call, &name, advice))
}

fn first_name(unknown: Option<&Bound<'_, PyDict>>) -> PyResult<Option<String>> {
    let first = unknown.and_then(|unknown| unknown.keys().iter().next());
    first.map(|name| name.extract()).transpose()
}

fn unexpected(py: Python<'_>, call: &str, name: &str, advice: Option<&str>) -> PyErr {
    let options = options(py, call).unwrap_or_default();
    let near = nearest(options.iter().map(String::as_str), name);
    let remedy = match (advice, near) {
        (Some(advice), _) => advice.to_owned(),
        (None, Some(near)) => format!("did you mean {near}?"),
        // An attribute, of a call that takes conditions as a text.
        (None, None) if options.iter().any(|option| option == "selector") => {
            let example = format!("as in \"{name}=VALUE\"");
            format!(
                "conditions are part of the selector, {example}; it has {}",
                options.join(", ")
            )
        }
        (None, None) => format!("it has {}", options.join(", ")),
    };
    PyTypeError::new_err(format!("{call}() has no option {name:?}: {remedy}"))
}

/// The option of the call that a keyword may have meant; `None` if the keyword is far from all, or is an option.
pub(crate) fn slip(py: Python<'_>, call: &str, name: &str) -> Option<PyErr> {
    let options = options(py, call).unwrap_or_default();
    let near = nearest(options.iter().map(String::as_str), name)?;
    (near != name).then(|| unexpected(py, call, name, None))
}

/// The names of the arguments of a call, such as `Pool.list`, or `Pool` for its constructor, as its signature shows them.
fn options(py: Python<'_>, call: &str) -> PyResult<Vec<String>> {
    let module = py.import("junctura._native")?.into_any();
    let found = call.split('.').try_fold(module, |place, name| place.getattr(name))?;
    let signature = found.getattr("__text_signature__")?;
    let signature = signature.cast::<PyString>()?.to_str()?.trim_matches(['(', ')']);
    let names = signature.split(", ").map(|part| part.split('=').next().unwrap_or(part));
    let is_name = |name: &&str| name.starts_with(|c: char| c.is_ascii_alphabetic()) && *name != "self";
    Ok(names.filter(is_name).map(str::to_owned).collect())
}
