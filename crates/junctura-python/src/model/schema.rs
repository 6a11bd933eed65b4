//! Schemas, and the keys that they make.

use std::sync::Arc;

use junctura_model::RecordRef;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::conversion::given::GivenAttributes;
use crate::conversion::values;
use crate::runtime::error::{OrRaise, raise};

/// The schema of objects: their attributes, the types of attributes, and the attributes of the key.
///
/// Examples
/// --------
/// >>> mars = junctura.Schema.builtin("mars")
/// >>> mars.key({"class": "od", "stream": "oper", "date": "2026-11-20", "time": 12, "type": "fc", "levtype": "pl",
/// ...           "level": 500.0, "param": "t", "step": "6h"})
/// '{class=od,expver=0001,stream=oper,date=20261120,time=1200}{type=fc,levtype=pl}{step=6,levelist=500,param=t}'
#[pyclass(module = "junctura", name = "Schema", frozen)]
pub(crate) struct PySchema(pub(crate) Arc<junctura::Schema>);

impl PySchema {
    /// The built-in schema of this name.
    pub(crate) fn named(py: Python<'_>, name: &str) -> PyResult<Arc<junctura::Schema>> {
        junctura::Schema::builtin(name).ok_or_else(|| raise(py, &junctura::Schema::unknown(name)))
    }

    /// The canonical record of some attributes.
    pub(crate) fn record(&self, py: Python<'_>, attributes: &GivenAttributes<'_>) -> PyResult<Vec<u8>> {
        let lists = attributes.lists(py)?;
        let given = attributes.given(py, &lists)?;
        let mut record = Vec::new();
        self.0.record(given, &mut record).or_raise(py)?;
        Ok(record)
    }

    fn key_text(&self, py: Python<'_>, attributes: &GivenAttributes<'_>) -> PyResult<String> {
        let record = self.record(py, attributes)?;
        let mut key = String::new();
        self.0.key_of(RecordRef::trusted(&record), &mut key);
        Ok(key)
    }
}

#[pymethods]
impl PySchema {
    /// Names of the built-in schemas.
    #[classattr]
    #[allow(non_snake_case)]
    fn BUILTIN_NAMES() -> Vec<&'static str> {
        junctura::Schema::BUILTIN_NAMES.to_vec()
    }

    /// A built-in schema, by its name.
    ///
    /// Raises
    /// ------
    /// NotFound
    ///     No built-in schema has this name.
    #[staticmethod]
    fn builtin(py: Python<'_>, name: &str) -> PyResult<Self> {
        Self::named(py, name).map(Self)
    }

    /// Parses the text of a schema file.
    ///
    /// Raises
    /// ------
    /// InvalidArgument
    ///     The text is invalid; the error gives the reason and the position.
    #[staticmethod]
    fn from_yaml(py: Python<'_>, text: &str) -> PyResult<Self> {
        junctura::Schema::parse_yaml(text)
            .map(|schema| Self(Arc::new(schema)))
            .or_raise(py)
    }

    /// Its name.
    #[getter]
    fn name(&self) -> &str {
        self.0.name()
    }

    /// The generation of its key.
    #[getter]
    fn generation(&self) -> u32 {
        self.0.generation()
    }

    /// Its purpose, in one line.
    #[getter]
    fn doc(&self) -> &str {
        self.0.doc()
    }

    /// The fingerprint that client and server compare at connect, as 32 hexadecimal digits.
    #[getter]
    fn fingerprint(&self) -> String {
        self.0.fingerprint().to_string()
    }

    /// Whether objects may have undeclared attributes.
    #[getter]
    fn is_open(&self) -> bool {
        self.0.is_open()
    }

    /// Names and types of its attributes, those of the key first, in key order.
    #[getter]
    fn attributes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let types = PyDict::new(py);
        for attribute in self.0.attributes() {
            types.set_item(&attribute.name, attribute.kind.to_string())?;
        }
        Ok(types)
    }

    /// Names and units of the attributes that have a unit.
    #[getter]
    fn units<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let units = PyDict::new(py);
        for attribute in self
            .0
            .attributes()
            .iter()
            .filter(|attribute| !attribute.unit.is_empty())
        {
            units.set_item(&attribute.name, &attribute.unit)?;
        }
        Ok(units)
    }

    /// Names of the attributes of the key, in its order.
    #[getter]
    fn key_attributes(&self) -> Vec<&str> {
        self.0.attributes()[..self.0.key_len()]
            .iter()
            .map(|attribute| attribute.name.as_str())
            .collect()
    }

    /// Returns the canonical key of an object with these attributes.
    ///
    /// Raises
    /// ------
    /// SchemaMismatch, TypeMismatch, TooLarge
    ///     The schema does not allow the attributes.
    #[pyo3(signature = (attributes=None, /, **keywords))]
    fn key<'py>(
        &self,
        py: Python<'py>,
        attributes: Option<&Bound<'py, PyAny>>,
        keywords: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<String> {
        self.key_text(py, &GivenAttributes::read(attributes, keywords)?)
    }

    /// Returns the hash of such a key, as 32 hexadecimal digits.
    #[pyo3(signature = (attributes=None, /, **keywords))]
    fn key_hash<'py>(
        &self,
        py: Python<'py>,
        attributes: Option<&Bound<'py, PyAny>>,
        keywords: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<String> {
        let key = self.key_text(py, &GivenAttributes::read(attributes, keywords)?)?;
        Ok(self.0.key_hash(&key).to_string())
    }

    /// Returns the attributes in the text of a key, typed.
    fn parse_key<'py>(&self, py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyDict>> {
        let record = self.0.parse_key(text).or_raise_about(py, text)?;
        let named = record
            .as_ref()
            .iter()
            .map(|(id, open, text)| (open.unwrap_or_else(|| self.0.attribute(id).name.as_str()), text));
        values::attributes(py, &self.0, named)
    }

    /// Returns the text of its file.
    fn to_yaml(&self) -> String {
        self.0.to_yaml()
    }

    fn __eq__(&self, other: &Self) -> bool {
        self.0 == other.0
    }

    fn __hash__(&self) -> u64 {
        self.0.fingerprint().0 as u64
    }

    fn __repr__(&self) -> String {
        format!("<junctura.Schema {}>", self.0.name())
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (String,))> {
        Ok((py.get_type::<Self>().getattr("from_yaml")?, (self.0.to_yaml(),)))
    }
}
