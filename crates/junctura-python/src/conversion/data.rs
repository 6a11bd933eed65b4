//! Data to offer or archive: a payload from Python, with its attributes.
//!
//! Bytes and contiguous buffers are borrowed, so they are copied once, into the pool. Arrays that are not contiguous,
//! or whose elements only NumPy supports, are also copied once: by NumPy, into memory of the pool, or, for a store,
//! into memory of Python. If the schema has the attributes `dtype` and `shape`, arrays get them, so that `Object.array`
//! returns the same array.

use std::borrow::Cow;
use std::ops::Deref;
use std::sync::Arc;

use junctura::{Bundle, Code, Given, OfferOptions, Pool, Schema};
use junctura_model::{Kind, Type};
use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyDict, PyList, PyModule, PyString, PyTuple};

use crate::conversion::buffer::LentBuffer;
use crate::conversion::exchange;
use crate::conversion::given::{GivenAttributes, type_name};
use crate::conversion::options::schema_of;
use crate::conversion::usage::{OfferPlace, check_keywords, warn_of_lost_form};
use crate::handles::allocation::{FilledPayload, PyAllocation};
use crate::handles::bundle::current;
use crate::handles::object::PyReceived;
use crate::model::version::PyVersion;
use crate::runtime::ending::EndingCall;
use crate::runtime::error::{OrRaise, invalid};
use crate::runtime::interpreter::module;
use crate::runtime::lazy_value::{AttributeName, LazyValue};
use crate::runtime::patience::offering;

/// The end of a payload with labels: docs/formats/labels.md.
const LABELS_END: &[u8] = b"junctura-labels1";

static MASK: AttributeName = AttributeName::new("mask");

/// The half of this that NumPy does. Keep it no longer than for a call.
pub(crate) fn arrays(py: Python<'_>) -> PyResult<ArrayModule<'_>> {
    static ARRAYS: LazyValue<Py<PyModule>> = LazyValue::new();
    let made = ARRAYS.get_or_make(py, || {
        Ok(module(py, "junctura._array.numpy_payload")?
            .cast_into::<PyModule>()?
            .unbind())
    })?;
    Ok(ArrayModule {
        module: made.bind(py),
        _call: EndingCall::begin(py),
    })
}

/// The module, for a call.
pub(crate) struct ArrayModule<'py> {
    module: &'py Bound<'py, PyModule>,
    _call: EndingCall,
}

impl<'py> Deref for ArrayModule<'py> {
    type Target = Bound<'py, PyModule>;

    fn deref(&self) -> &Self::Target {
        self.module
    }
}

enum OfferData<'py> {
    Bytes(Bound<'py, PyBytes>),
    Lent(LentBuffer),
    Allocation(Bound<'py, PyAllocation>),
}

/// The element type and the shape of an array.
#[derive(Clone, Debug)]
pub(crate) struct ArrayForm {
    pub(crate) dtype: Cow<'static, str>,
    pub(crate) shape: Vec<usize>,
}

/// An offer, ready to be carried out.
pub(crate) struct PreparedData<'py> {
    pub(crate) attributes: GivenAttributes<'py>,
    data: OfferData<'py>,
    schema: Arc<Schema>,
    is_array: bool,
}

/// A payload, ready to be sent.
pub(crate) enum ReadyPayload<'a> {
    Bytes(&'a [u8]),
    Filled(FilledPayload<'a>),
}

impl<'py> PreparedData<'py> {
    pub(crate) fn new(
        pool: &Pool,
        data: &Bound<'py, PyAny>,
        attributes: Option<&Bound<'py, PyAny>>,
        keywords: Option<&Bound<'py, PyDict>>,
        options: &OfferOptions<'_>,
    ) -> PyResult<Self> {
        let schema = schema_of(data.py(), pool, options.schema)?;
        Self::read(OfferPlace::Pool(pool), schema, data, attributes, keywords)
    }

    pub(crate) fn read(
        place: OfferPlace<'_>,
        schema: Arc<Schema>,
        data: &Bound<'py, PyAny>,
        attributes: Option<&Bound<'py, PyAny>>,
        keywords: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Self> {
        let are_own = attributes.is_none();
        let mut attributes = GivenAttributes::read(attributes, keywords)?;
        if are_own && let Ok(object) = data.cast::<PyReceived>() {
            attributes.add_others(object.getattr("attributes")?.cast()?)?;
        }
        check_keywords(data.py(), place, &schema, keywords, &["schema"])?;
        let stated = || attributes.stated(data.py());
        let labelled = exchange::labels(data, crate::model::schema::PySchema(Arc::clone(&schema)), stated)?;
        let given = data;
        let (data, form) = match &labelled {
            Some((array, labels)) => {
                attributes.add_given(labels)?;
                read(place, array)?
            }
            None => read(place, given)?,
        };
        check_form(&attributes, &schema, form.as_ref(), given)?;
        let is_array = form.is_some();
        if let Some(form) = form {
            if let Some(lost) = form.lost(&attributes, &schema)
                && !has_labels(&data)?
            {
                warn_of_lost_form(given.py(), place, &schema, lost)?;
            }
            form.describe(&mut attributes, &schema);
        }
        Ok(Self {
            attributes,
            data,
            schema,
            is_array,
        })
    }

    /// Whether its payload is an array, and not any bytes.
    pub(crate) fn is_array(&self) -> bool {
        self.is_array
    }

    /// The payload, where it is no allocation of a pool's.
    pub(crate) fn lent(&self) -> &[u8] {
        match &self.data {
            OfferData::Bytes(bytes) => bytes.as_bytes(),
            OfferData::Lent(lent) => lent.bytes(),
            OfferData::Allocation(_) => &[],
        }
    }

    /// Returns the payload. From now on an allocation is read-only.
    ///
    /// # Errors
    /// Errors of the attributes, if an allocation would be lost with the offer.
    pub(crate) fn content(&self, py: Python<'py>, given: &[(&str, Given<'_>)]) -> PyResult<ReadyPayload<'_>> {
        Ok(match &self.data {
            OfferData::Bytes(bytes) => ReadyPayload::Bytes(bytes.as_bytes()),
            OfferData::Lent(lent) => ReadyPayload::Bytes(lent.bytes()),
            OfferData::Allocation(allocation) => {
                let mut record = Vec::new();
                self.schema.record(given.iter().copied(), &mut record).or_raise(py)?;
                ReadyPayload::Filled(allocation.get().take(py)?)
            }
        })
    }

    /// Offers it and waits until it is visible.
    /// `None`: it was offered only if wanted, and nothing wants it.
    pub(crate) fn offer(self, py: Python<'py>, pool: &Pool, options: OfferOptions<'_>) -> PyResult<Option<PyVersion>> {
        if let Some(bundle) = current(py, pool) {
            self.stage(py, pool, &bundle, options)?;
            let incarnation = py.detach(|| pool.incarnation()).or_raise(py)?;
            return Ok(Some(PyVersion(junctura::Version {
                incarnation,
                sequence: 0,
            })));
        }
        let lists = self.attributes.lists(py)?;
        let given = self.attributes.given(py, &lists)?;
        let content = self.content(py, &given)?;
        offering(py, pool, || {
            let given = given.iter().copied();
            let offered = match content {
                ReadyPayload::Bytes(bytes) | ReadyPayload::Filled(FilledPayload::Own(bytes)) => {
                    pool.offer_with(given, bytes, options)
                }
                ReadyPayload::Filled(FilledPayload::Slot(slot)) => slot.offer_with(given, options),
            };
            match offered {
                Err(error) if error.code() == Code::NotWanted => Ok(None),
                other => other.map(|version| Some(PyVersion(version))),
            }
        })
    }

    /// Hands to `run` what it is, and its payload: an allocation, or bytes.
    pub(crate) fn allocated<R: Send>(
        &self,
        py: Python<'py>,
        run: impl FnOnce(Vec<(&str, Given<'_>)>, Option<junctura::Allocation>, &[u8]) -> junctura::Result<R> + Send,
    ) -> PyResult<R> {
        let lists = self.attributes.lists(py)?;
        let given = self.attributes.given(py, &lists)?;
        let content = self.content(py, &given)?;
        py.detach(|| match content {
            ReadyPayload::Bytes(bytes) | ReadyPayload::Filled(FilledPayload::Own(bytes)) => run(given, None, bytes),
            ReadyPayload::Filled(FilledPayload::Slot(slot)) => run(given, Some(slot), &[]),
        })
        .or_raise(py)
    }

    /// Offers it into a bundle and waits until it is staged.
    pub(crate) fn stage(
        &self,
        py: Python<'py>,
        pool: &Pool,
        bundle: &Bundle,
        options: OfferOptions<'_>,
    ) -> PyResult<junctura::Staged> {
        let lists = self.attributes.lists(py)?;
        let given = self.attributes.given(py, &lists)?;
        let content = self.content(py, &given)?;
        offering(py, pool, || {
            let given = given.iter().copied();
            match content {
                ReadyPayload::Bytes(bytes) | ReadyPayload::Filled(FilledPayload::Own(bytes)) => {
                    bundle.offer_with(given, bytes, options)
                }
                ReadyPayload::Filled(FilledPayload::Slot(slot)) => bundle.offer_allocation(slot, given, options),
            }
        })
    }
}

fn read<'py>(place: OfferPlace<'_>, object: &Bound<'py, PyAny>) -> PyResult<(OfferData<'py>, Option<ArrayForm>)> {
    if let Ok(bytes) = object.cast::<PyBytes>() {
        return Ok((OfferData::Bytes(bytes.clone()), None));
    }
    if let Ok(allocation) = object.cast::<PyAllocation>() {
        let data = match place {
            OfferPlace::Pool(_) => OfferData::Allocation(allocation.clone()),
            OfferPlace::Store(_) => OfferData::Lent(LentBuffer::new(PyUntypedBuffer::get(object)?)),
        };
        return Ok((data, allocation.get().form().cloned().and_then(ArrayForm::unless_bytes)));
    }
    let py = object.py();
    match PyUntypedBuffer::get(object) {
        // The buffer of a masked array lacks its mask.
        Ok(_) if !exchange::is_numpy_array(object) && MASK.is_of(object)? => by_numpy(place, object),
        Ok(buffer) => match crate::conversion::dtype::name(&buffer) {
            Some(dtype) if buffer.is_c_contiguous() => Ok(lend(buffer, dtype)),
            _ => by_numpy(place, object),
        },
        Err(error) if error.is_instance_of::<PyMemoryError>(py) => Err(error),
        Err(_) if is_array(object)? => by_numpy(place, object),
        Err(_) => {
            let remedy = if object.is_instance_of::<PyString>() {
                ": encode the text, as in data.encode()"
            } else if object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>() {
                ": convert it, as in numpy.array(data)"
            } else {
                ""
            };
            let name = type_name(object);
            let cause = format!("bytes, an array or another buffer is expected, not {name}{remedy}");
            Err(invalid(py, "data", cause))
        }
    }
}

/// Whether type and shape are in the payload, after the array.
fn has_labels(data: &OfferData<'_>) -> PyResult<bool> {
    let (py, payload) = match data {
        OfferData::Allocation(allocation) => (allocation.py(), allocation.as_any()),
        OfferData::Bytes(bytes) => (bytes.py(), bytes.as_any()),
        OfferData::Lent(lent) => return Ok(lent.bytes().ends_with(LABELS_END)),
    };
    Ok(!arrays(py)?.call_method1("foot_of", (payload,))?.is_none())
}

fn is_array(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    for name in ["__array__", "__array_interface__", "__dlpack__"] {
        if object.hasattr(name)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn lend<'py>(buffer: PyUntypedBuffer, dtype: Cow<'static, str>) -> (OfferData<'py>, Option<ArrayForm>) {
    let form = ArrayForm {
        dtype,
        shape: buffer.shape().to_vec(),
    };
    (OfferData::Lent(LentBuffer::new(buffer)), form.unless_bytes())
}

fn by_numpy<'py>(place: OfferPlace<'_>, object: &Bound<'py, PyAny>) -> PyResult<(OfferData<'py>, Option<ArrayForm>)> {
    let py = object.py();
    let (array, nbytes, dtype, shape): (Bound<'py, PyAny>, usize, String, Vec<usize>) =
        arrays(py)?.call_method1("describe", (object,))?.extract()?;
    let form = ArrayForm {
        dtype: dtype.into(),
        shape,
    };
    let data = match place {
        OfferPlace::Pool(pool) => {
            let allocation = Bound::new(py, PyAllocation::new(py, pool, nbytes, Some(form.clone()))?)?;
            arrays(py)?.call_method1("fill", (&allocation, array))?;
            OfferData::Allocation(allocation)
        }
        OfferPlace::Store(_) => {
            let memory = PyByteArray::new_with(py, nbytes, |_| Ok(()))?;
            arrays(py)?.call_method1("fill", (&memory, array))?;
            OfferData::Lent(LentBuffer::new(PyUntypedBuffer::get(&memory)?))
        }
    };
    Ok((data, form.unless_bytes()))
}

impl ArrayForm {
    /// Plain bytes need no description.
    fn unless_bytes(self) -> Option<Self> {
        let is_bytes = self.dtype == "uint8" && self.shape.len() == 1;
        (!is_bytes).then_some(self)
    }

    /// The attribute that readers of the array need, and that no attribute of the schema holds.
    fn lost(&self, attributes: &GivenAttributes<'_>, schema: &Schema) -> Option<&'static str> {
        if !has_dtype(schema) && !attributes.states_form("dtype") {
            return Some("dtype");
        }
        let has_shape =
            schema.is_open() || attributes.states_form("shape") || takes(schema, "shape", Kind::list_of(Type::Integer));
        (!has_shape && self.shape.len() != 1).then_some("shape")
    }

    /// Adds type and shape to the attributes, if the schema has them and the caller did not give them.
    fn describe(&self, attributes: &mut GivenAttributes<'_>, schema: &Schema) {
        if has_dtype(schema) && !attributes.states_form("dtype") {
            attributes.add_text("dtype", self.dtype.to_string());
        }
        if attributes.states_form("shape") {
            return;
        }
        if takes(schema, "shape", Kind::list_of(Type::Integer)) {
            attributes.add_integers("shape", &self.shape);
        } else if schema.is_open() && schema.find("shape").is_none() {
            let extents: Vec<String> = self.shape.iter().map(ToString::to_string).collect();
            attributes.add_text("shape", extents.join("/"));
        }
    }
}

/// Refuses a given type or shape that does not fit the data: readers would see other values, or fail.
fn check_form(
    attributes: &GivenAttributes<'_>,
    schema: &Schema,
    form: Option<&ArrayForm>,
    data: &Bound<'_, PyAny>,
) -> PyResult<()> {
    if !(attributes.states_form("dtype") || attributes.states_form("shape")) || !has_dtype(schema) {
        return Ok(());
    }
    let (dtype, shape) = (attributes.text("dtype"), attributes.extents("shape"));
    let own = form.map(|form| (form.dtype.as_ref(), form.shape.as_slice()));
    arrays(data.py())?.call_method1("check_form", (dtype, shape, own, data))?;
    Ok(())
}

fn has_dtype(schema: &Schema) -> bool {
    takes(schema, "dtype", Kind::one(Type::String))
}

fn takes(schema: &Schema, name: &str, kind: Kind) -> bool {
    match schema.find(name) {
        Some(id) => schema.attribute(id).level.is_none() && schema.attribute(id).kind == kind,
        None => schema.is_open() && !kind.list,
    }
}
