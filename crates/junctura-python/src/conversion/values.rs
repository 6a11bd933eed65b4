//! Canonical texts as Python values.
//!
//! Numbers of the schema are numbers in Python: `obj.attributes["levelist"] == 500`. A decimal is an int if it is
//! whole, else a float if Python prints the float as the same text (which holds for up to 15 digits), else a
//! `decimal.Decimal`. Dates, times, steps, timestamps and durations stay texts: selectors and keys use their canonical
//! text, and offering it again results in the same key.

use junctura::Schema;
use junctura_model::{Kind, Type, list_items};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

use crate::runtime::interpreter::module;
use crate::runtime::lazy_value::LazyValue;

/// Attributes with typed values.
pub(crate) fn attributes<'py, 'a>(
    py: Python<'py>,
    schema: &Schema,
    texts: impl Iterator<Item = (&'a str, &'a str)>,
) -> PyResult<Bound<'py, PyDict>> {
    let values = PyDict::new(py);
    for (name, text) in texts {
        values.set_item(PyString::intern(py, name), value(py, schema, name, text)?)?;
    }
    Ok(values)
}

/// The typed value of one attribute.
pub(crate) fn value<'py>(py: Python<'py>, schema: &Schema, name: &str, text: &str) -> PyResult<Bound<'py, PyAny>> {
    let kind = schema
        .find(name)
        .map_or(Kind::one(Type::String), |id| schema.attribute(id).kind);
    if !kind.list {
        return scalar(py, kind.scalar, text);
    }
    let list = PyList::empty(py);
    for item in list_items(text) {
        list.append(scalar(py, kind.scalar, &item)?)?;
    }
    Ok(list.into_any())
}

fn scalar<'py>(py: Python<'py>, scalar: Type, text: &str) -> PyResult<Bound<'py, PyAny>> {
    match scalar {
        Type::Integer => number::<i64>(py, text),
        Type::Decimal => decimal(py, text),
        Type::Float => number::<f64>(py, text),
        Type::Bool => (text == "true").into_bound_py_any(py),
        _ => text.into_bound_py_any(py),
    }
}

fn number<'py, T: std::str::FromStr + IntoPyObjectExt<'py>>(
    py: Python<'py>,
    text: &str,
) -> PyResult<Bound<'py, PyAny>> {
    match text.parse::<T>() {
        Ok(number) => number.into_bound_py_any(py),
        Err(_) => text.into_bound_py_any(py),
    }
}

fn decimal<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
    static DECIMAL: LazyValue<Py<PyAny>> = LazyValue::new();
    if let Ok(whole) = text.parse::<i64>() {
        return whole.into_bound_py_any(py);
    }
    match text.parse::<f64>() {
        Ok(number) if format!("{number:?}") == text => number.into_bound_py_any(py),
        _ => DECIMAL
            .get_or_make(py, || Ok(module(py, "decimal")?.getattr("Decimal")?.unbind()))?
            .bind(py)
            .call1((text,)),
    }
}
