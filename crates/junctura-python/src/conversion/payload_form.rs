//! The form of a payload: its element type and shape by its attributes, and the view of NumPy.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

use crate::conversion::data::{ArrayForm, ArrayModule, arrays};
use crate::runtime::ending::EndingCall;
use crate::runtime::interpreter::module;
use crate::runtime::lazy_value::LazyValue;

/// The end of a payload with labels (docs/formats/labels.md).
const LABELS_MAGIC: &[u8] = b"junctura-labels1";

/// The form of a payload.
pub(crate) enum PayloadForm {
    /// Its dtype is known, and its extents are numbers: the array is a view of all its bytes.
    Plain(PlainForm),
    Attributes(FormAttributes),
}

pub(crate) struct PlainForm {
    dtype: Arc<KnownDtype>,
    extents: Vec<usize>,
}

pub(crate) struct FormAttributes {
    dtype: Option<String>,
    /// Extents with `/` between them.
    shape: Option<String>,
    /// The name of a schema that cannot describe the form.
    silent: Option<String>,
    may_have_labels: bool,
}

impl PayloadForm {
    /// The form according to the attributes. Runs no code of Python.
    pub(crate) fn of<'o>(schema: &junctura::Schema, payload: &[u8], get: impl Fn(&str) -> Option<&'o str>) -> Self {
        let is_described = schema.is_open() || schema.find("dtype").is_some();
        let may_have_labels = payload.ends_with(LABELS_MAGIC);
        let (dtype, shape) = (get("dtype"), get("shape"));
        if is_described
            && !may_have_labels
            && !payload.is_empty()
            && let Some(dtype) = dtype.and_then(KnownDtype::find)
            && let Some(extents) = shape.and_then(plain_extents)
        {
            return Self::Plain(PlainForm { dtype, extents });
        }
        Self::Attributes(FormAttributes {
            dtype: dtype.map(str::to_owned),
            shape: shape.map(str::to_owned),
            silent: (!is_described).then(|| schema.name().to_owned()),
            may_have_labels,
        })
    }

    /// Returns the bytes of a buffer as their array, or in another shape.
    pub(crate) fn view<'py>(
        self,
        buffer: &Bound<'py, PyAny>,
        shape: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        match self {
            Self::Plain(form) => form.view(buffer, shape),
            Self::Attributes(form) => form.view(buffer, shape),
        }
    }
}

/// Returns all bytes of a buffer as an array of a form: a view of its elements, which its own slices do not keep alive.
pub(crate) fn view_as<'py>(buffer: &Bound<'py, PyAny>, form: &ArrayForm) -> PyResult<Bound<'py, PyAny>> {
    if !form.shape.contains(&0)
        && let Some(known) = KnownDtype::find(&form.dtype)
        && let Ok(array) = known
            .elements(buffer)
            .and_then(|elements| reshaped(&elements, &form.shape))
    {
        return Ok(array);
    }
    let arrays = arrays(buffer.py())?;
    let array = arrays.call_method1("view", (buffer, &*form.dtype, &form.shape))?;
    KnownDtype::learn(&arrays, &form.dtype)?;
    Ok(array)
}

fn reshaped<'py>(array: &Bound<'py, PyAny>, extents: &[usize]) -> PyResult<Bound<'py, PyAny>> {
    static RESHAPE: LazyValue<Py<PyString>> = LazyValue::new();
    let py = array.py();
    let _call = EndingCall::begin(py);
    let reshape = RESHAPE.get_or_make(py, || Ok(PyString::intern(py, "reshape").unbind()))?;
    array.call_method1(reshape.bind(py), (PyTuple::new(py, extents)?,))
}

fn plain_extents(shape: &str) -> Option<Vec<usize>> {
    let extents = shape.split('/').filter(|extent| !extent.is_empty());
    extents
        .map(|extent| {
            extent
                .bytes()
                .all(|byte| byte.is_ascii_digit())
                .then(|| extent.parse().ok())?
        })
        .collect()
}

impl PlainForm {
    fn view<'py>(&self, buffer: &Bound<'py, PyAny>, shape: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
        if shape.is_none()
            && let Ok(array) = self.own_view(buffer)
        {
            return Ok(array);
        }
        // Another shape, or an error that names the form.
        let extents = PyTuple::new(buffer.py(), &self.extents)?;
        let shape = shape.unwrap_or(extents.as_any());
        arrays(buffer.py())?.call_method1("view", (buffer, &self.dtype.text, shape))
    }

    fn own_view<'py>(&self, buffer: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let array = self.dtype.elements(buffer)?;
        match *self.extents {
            [extent] if extent == array.len()? => Ok(array),
            _ => reshaped(&array, &self.extents),
        }
    }
}

impl FormAttributes {
    fn view<'py>(self, buffer: &Bound<'py, PyAny>, shape: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
        let arrays = arrays(buffer.py())?;
        let array = arrays.call_method1("own", (buffer, &self.dtype, self.shape, self.silent, shape))?;
        if let Some(dtype) = self.dtype
            && !self.may_have_labels
        {
            KnownDtype::learn(&arrays, &dtype)?;
        }
        Ok(array)
    }
}

/// A value of the attribute `dtype`, with the dtype of NumPy.
struct KnownDtype {
    text: String,
    dtype: Py<PyAny>,
}

/// Locked only while no code of Python runs: another thread may need it to view its own object.
static KNOWN_DTYPES: Mutex<Vec<Arc<KnownDtype>>> = Mutex::new(Vec::new());
/// Few, because they are searched in order; a program that views more kinds of arrays uses the longer way for the others.
const KNOWN_DTYPES_MAX: usize = 16;
const DTYPE_BYTES_MAX: usize = 64;

impl KnownDtype {
    /// The elements of a buffer that is not empty, in one dimension.
    fn elements<'py>(&self, buffer: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        static FROMBUFFER: LazyValue<Py<PyAny>> = LazyValue::new();
        let py = buffer.py();
        let _call = EndingCall::begin(py);
        let frombuffer = FROMBUFFER.get_or_make(py, || Ok(module(py, "numpy")?.getattr("frombuffer")?.unbind()))?;
        frombuffer.bind(py).call1((buffer, self.dtype.bind(py)))
    }

    fn all() -> MutexGuard<'static, Vec<Arc<Self>>> {
        KNOWN_DTYPES.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(text: &str) -> Option<Arc<Self>> {
        Self::all().iter().find(|known| known.text == text).map(Arc::clone)
    }

    fn learn(arrays: &ArrayModule<'_>, text: &str) -> PyResult<()> {
        if text.len() > DTYPE_BYTES_MAX || Self::all().len() >= KNOWN_DTYPES_MAX {
            return Ok(());
        }
        let dtype = arrays.call_method1("dtype_of", (text,))?;
        if !dtype.getattr("subdtype")?.is_none() {
            // Its elements have a shape of their own.
            return Ok(());
        }
        let dtype = dtype.unbind();
        let mut all = Self::all();
        if all.len() < KNOWN_DTYPES_MAX && !all.iter().any(|known| known.text == text) {
            let text = text.to_owned();
            all.push(Arc::new(Self { text, dtype }));
        }
        Ok(())
    }
}
