//! Warnings about probable mistakes in selectors, such as a misspelled attribute: an open schema reads any attribute, so the
//! selector is valid, and nothing matches it.

use std::collections::HashSet;
use std::ffi::CString;
use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::conversion::misspelled::key_target;
use crate::conversion::target::PyTarget;
use crate::pool::PyPool;
use crate::pool::aio::PyAnswer;
use crate::runtime::error::OrRaise;
use crate::runtime::lazy_value::LazyValue;

/// Forms that are remembered; later ones are not checked.
const FORMS_MAX: usize = 1024;

/// The forms of the selectors that were checked. The form of a selector is its text without digits: a program that waits for one
/// step after another uses one form.
#[derive(Default)]
pub(crate) struct CheckedForms(Mutex<HashSet<u64>>);

impl CheckedForms {
    /// Whether no selector of this form was checked before.
    fn is_new(&self, selector: &str) -> bool {
        let bytes = selector.bytes().filter(|byte| !byte.is_ascii_digit());
        // FNV-1a.
        let form = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let mut forms = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        forms.len() < FORMS_MAX && forms.insert(form)
    }
}

impl PyPool {
    /// Warns of probable mistakes in a selector; once for each form.
    ///
    /// # Errors
    /// The warning, if the program treats warnings as errors.
    pub(crate) fn warn_of_mistakes(&self, py: Python<'_>, selector: &str) -> PyResult<()> {
        if selector.is_empty() || !self.checked_forms.is_new(selector) {
            return Ok(());
        }
        // An error is that of the request itself.
        let mistakes = py
            .detach(|| self.inner.reasons().mistakes(selector))
            .unwrap_or_default();
        mistakes.iter().try_for_each(|mistake| warn(py, selector, mistake))
    }

    /// The number of withdrawn objects. Warns of probable mistakes in the selector if there are none.
    pub(crate) fn withdrawn(&self, py: Python<'_>, selector: &str, count: u64) -> PyResult<u64> {
        if count == 0 {
            self.warn_of_mistakes(py, selector)?;
        }
        Ok(count)
    }

    /// The target of a demand. Warns of probable mistakes in a selector.
    pub(crate) fn checked_target<'py, 'a>(
        &self,
        py: Python<'py>,
        target: Option<&Bound<'py, PyAny>>,
        key: Option<&Bound<'py, PyDict>>,
        schema: Option<&'a str>,
    ) -> PyResult<PyTarget<'py, 'a>> {
        let target = key_target(py, &self.inner, target, key, schema)?;
        if let Some(selector) = target.selector()? {
            self.warn_of_mistakes(py, selector)?;
        }
        Ok(target)
    }
}

pub(crate) fn warn(py: Python<'_>, selector: &str, mistake: &str) -> PyResult<()> {
    static CATEGORY: LazyValue<Py<PyAny>> = LazyValue::new();
    let category = CATEGORY.get_or_make(py, || {
        Ok(py.import("junctura.errors")?.getattr("SelectorWarning")?.unbind())
    })?;
    let message = CString::new(format!("{selector}: {mistake}"))?;
    PyErr::warn(py, category.bind(py), &message, 1)
}

#[pymethods]
impl PyPool {
    /// None: no selector of this form has to be checked.
    fn _begin_mistakes(&self, py: Python<'_>, selector: &str) -> PyResult<Option<PyAnswer>> {
        if selector.is_empty() || !self.checked_forms.is_new(selector) {
            return Ok(None);
        }
        let pending = py
            .detach(|| self.inner.reasons().begin_mistakes(selector))
            .or_raise(py)?;
        Ok(Some(PyAnswer::new(pending, |py, mistakes: Vec<String>| {
            Ok(mistakes.into_pyobject(py)?.into_any().unbind())
        })))
    }
}
