//! Warnings about probable mistakes in selectors, such as a misspelled attribute: an open schema reads any attribute, so the
//! selector is valid, and nothing matches it.

use std::collections::HashSet;
use std::ffi::CString;
use std::sync::{Mutex, PoisonError};

use junctura::reasons::{ExplainedSelector, NearMiss};
use pyo3::prelude::*;
use pyo3::types::PyDict;

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

    /// Warns of probable mistakes in a selector that matches nothing: those of [`Self::warn_of_mistakes`], and a value that no object
    /// has and that resembles one; once for each form.
    ///
    /// # Errors
    /// The warning, if the program treats warnings as errors.
    pub(crate) fn warn_of_nothing(&self, py: Python<'_>, selector: &str) -> PyResult<()> {
        self.warn_of_mistakes(py, selector)?;
        if selector.is_empty() || !self.checked_values.is_new(selector) {
            return Ok(());
        }
        let Ok(explained) = py.detach(|| self.inner.reasons().explain_selector(selector)) else {
            return Ok(());
        };
        let hints = value_hints(&explained);
        hints.iter().try_for_each(|mistake| warn(py, selector, mistake))
    }

    /// Warns of an attribute that no object has and that resembles a declared one; once.
    ///
    /// # Errors
    /// The warning, if the program treats warnings as errors.
    pub(crate) fn warn_of_absent(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        self.warn_of_mistakes(py, &format!("exists({name})"))
    }

    /// The number of withdrawn objects. Warns of probable mistakes in the selector if there are none.
    pub(crate) fn withdrawn(&self, py: Python<'_>, selector: &str, count: u64) -> PyResult<u64> {
        if count == 0 {
            self.warn_of_nothing(py, selector)?;
        }
        Ok(count)
    }

    /// The target of a call, such as `Pool.demand`. Warns of probable mistakes in a selector.
    pub(crate) fn checked_target<'py, 'a>(
        &self,
        py: Python<'py>,
        call: &'static str,
        target: Option<&Bound<'py, PyAny>>,
        key: Option<&Bound<'py, PyDict>>,
        schema: Option<&'a str>,
    ) -> PyResult<PyTarget<'py, 'a>> {
        let target = PyTarget::read(py, call, target, key, schema)?;
        if let Some(selector) = target.selector()? {
            self.warn_of_mistakes(py, selector)?;
        }
        Ok(target)
    }
}

/// The values of a selector that matches nothing which resemble existing ones, and not only in their digits: those are other
/// members of a series.
fn value_hints(explained: &ExplainedSelector) -> Vec<String> {
    let letters = |text: &str| text.replace(|c: char| !c.is_alphabetic(), "");
    let hint = |miss: &NearMiss| {
        let (attribute, near) = (miss.attribute.as_ref()?, miss.nearest.as_ref()?);
        let (_, value) = miss.condition.split_once('=')?;
        let is_other = letters(value) != letters(near);
        is_other.then(|| format!("nothing matches {}; did you mean {attribute}={near}?", miss.condition))
    };
    // Mistakes are reported by themselves.
    let misses = explained
        .without
        .iter()
        .filter(|_| explained.matches == 0 && explained.mistakes.is_empty());
    misses.filter_map(hint).collect()
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
    /// None: no values of selectors of this form have to be checked.
    fn _begin_value_hints(&self, py: Python<'_>, selector: &str) -> PyResult<Option<PyAnswer>> {
        if selector.is_empty() || !self.checked_values.is_new(selector) {
            return Ok(None);
        }
        let pending = py.detach(|| self.inner.reasons().begin_explain_selector(selector));
        Ok(Some(PyAnswer::new(pending.or_raise(py)?, |py, explained| {
            Ok(value_hints(&explained).into_pyobject(py)?.into_any().unbind())
        })))
    }

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
