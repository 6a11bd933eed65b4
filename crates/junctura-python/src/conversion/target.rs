//! The target of a demand or a withdrawal in Python: a text, or attributes of a key.

use junctura::{Code, Given};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::conversion::given::GivenAttributes;
use crate::conversion::keywords::slip;
use crate::runtime::error::{OrRaise, invalid, raise};

/// One object, or what a selector matches.
pub(crate) struct PyTarget<'py, 'a> {
    call: &'static str,
    text: Option<Bound<'py, PyString>>,
    attributes: GivenAttributes<'py>,
    schema: Option<&'a str>,
}

impl<'py, 'a> PyTarget<'py, 'a> {
    /// Reads the target of a call, such as `Pool.demand`.
    pub(crate) fn read(
        py: Python<'py>,
        call: &'static str,
        target: Option<&Bound<'py, PyAny>>,
        key: Option<&Bound<'py, PyDict>>,
        schema: Option<&'a str>,
    ) -> PyResult<Self> {
        let text = target.and_then(|target| target.cast::<PyString>().ok()).cloned();
        let attributes = GivenAttributes::read(target.filter(|_| text.is_none()), key)?;
        match (&text, attributes.is_empty()) {
            (Some(text), false) => Err(both(py, call, text, key)),
            (None, true) => Err(invalid(
                py,
                "target",
                "a selector, a key or attributes of a key are expected",
            )),
            _ => Ok(Self {
                call,
                text,
                attributes,
                schema,
            }),
        }
    }

    fn in_schema<'t>(&self, target: junctura::Target<'t>) -> junctura::Target<'t> {
        match self.schema {
            Some(schema) => target.in_schema(schema.to_owned()),
            None => target,
        }
    }

    /// Returns the text of a selector; `None` for a key.
    pub(crate) fn selector(&self) -> PyResult<Option<&str>> {
        let text = self.text.as_ref().map(|text| text.to_str()).transpose()?;
        Ok(text.filter(|text| !text.starts_with('{')))
    }

    /// Makes a request with it, while other Python threads run.
    pub(crate) fn ask<R: Send>(
        &self,
        py: Python<'py>,
        ask: impl FnOnce(junctura::Target<'_>) -> junctura::Result<R> + Send,
    ) -> PyResult<R> {
        if let Some(text) = &self.text {
            let text = text.to_str()?;
            let target = self.in_schema(junctura::Target::from(text));
            return py.detach(|| ask(target)).or_raise_about(py, text);
        }
        let lists = self.attributes.lists(py)?;
        let given: Vec<(&str, Given<'_>)> = self.attributes.given(py, &lists)?;
        let target = self.in_schema(junctura::Target::key(given));
        py.detach(|| ask(target)).map_err(|error| {
            // An attribute that its schema refuses may be an option with a slip.
            let refused = matches!(error.code(), Code::SchemaMismatch | Code::TypeMismatch);
            let slip = (refused && self.attributes.has(error.subject())).then(|| slip(py, self.call, error.subject()));
            slip.flatten().unwrap_or_else(|| raise(py, &error))
        })
    }
}

/// A selector and keywords: an option with a slip, or conditions that belong into the selector.
fn both(py: Python<'_>, call: &str, text: &Bound<'_, PyString>, key: Option<&Bound<'_, PyDict>>) -> PyErr {
    let keys = key.iter().flat_map(|key| key.keys().iter().collect::<Vec<_>>());
    let names: Vec<String> = keys.filter_map(|name| name.extract().ok()).collect();
    if let Some(slip) = names.iter().find_map(|name| slip(py, call, name)) {
        return slip;
    }
    let name = names.first().map_or("name", String::as_str);
    let cause = format!(
        "either a text or attributes of a key, not both: write all conditions into the text, as in \"{}, {name}=VALUE\"",
        text.to_string_lossy()
    );
    invalid(py, "target", cause)
}
