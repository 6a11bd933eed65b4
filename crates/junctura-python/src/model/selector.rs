//! Selectors, independent of a pool.

use std::sync::Arc;

use junctura_model::RecordRef;
use junctura_model::selector::{Selector as Model, SelectorContext};
use pyo3::prelude::*;
use pyo3::types::{PyDate, PyDateAccess, PyDict};

use crate::conversion::given::{GivenAttributes, text_of};
use crate::model::schema::PySchema;
use crate::runtime::error::OrRaise;

/// A selector: a condition on attributes, with a canonical text.
///
/// Pools accept selectors as texts; this class inspects or evaluates a selector without a pool.
///
/// Parameters
/// ----------
/// text : str
///     A selector, or a MARS request.
/// schema : Schema or str, optional
///     The schema of the attributes; defaults to `mars`.
/// today : datetime.date, optional
///     The reference of relative dates (`date=-1`); without it they are rejected.
///
/// Raises
/// ------
/// InvalidSelector
///     The selector is invalid; the error gives the position.
///
/// Examples
/// --------
/// >>> selector = junctura.Selector("levelist = 500.0 / 850 and param=t")
/// >>> str(selector)
/// 'levelist=500/850,param=t'
/// >>> print(junctura.Selector("step=0/to/12/by/6").explain())
/// step=0/6/12
#[pyclass(module = "junctura", name = "Selector", frozen)]
pub(crate) struct PySelector {
    selector: Model,
    schema: Arc<junctura::Schema>,
}

#[pymethods]
impl PySelector {
    #[new]
    #[pyo3(signature = (text, schema=None, *, today=None))]
    fn new(
        py: Python<'_>,
        text: &str,
        schema: Option<&Bound<'_, PyAny>>,
        today: Option<&Bound<'_, PyDate>>,
    ) -> PyResult<Self> {
        let schema = match schema {
            None => PySchema::named(py, "mars")?,
            Some(given) => match given.cast::<PySchema>() {
                Ok(schema) => Arc::clone(&schema.get().0),
                Err(_) => PySchema::named(py, &text_of(given, "schema")?)?,
            },
        };
        let today = today
            .map(|day| day.get_year() as u32 * 10_000 + u32::from(day.get_month()) * 100 + u32::from(day.get_day()));
        let selector = Model::parse_with(text, &schema, &SelectorContext { today }).or_raise_about(py, text)?;
        Ok(Self { selector, schema })
    }

    /// Whether an object with these attributes matches. The attributes must be complete.
    ///
    /// Raises
    /// ------
    /// SchemaMismatch, TypeMismatch, TooLarge
    ///     The schema does not allow the attributes.
    #[pyo3(signature = (attributes=None, /, **keywords))]
    fn matches<'py>(
        &self,
        py: Python<'py>,
        attributes: Option<&Bound<'py, PyAny>>,
        keywords: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<bool> {
        let attributes = GivenAttributes::read(attributes, keywords)?;
        let record = PySchema(Arc::clone(&self.schema)).record(py, &attributes)?;
        Ok(self.selector.matches(RecordRef::trusted(&record)))
    }

    /// Returns its text with expanded ranges, for display.
    fn explain(&self) -> String {
        self.selector.explain()
    }

    /// The schema of the selector.
    #[getter]
    fn schema(&self) -> PySchema {
        PySchema(Arc::clone(&self.schema))
    }

    fn __str__(&self) -> String {
        self.selector.to_string()
    }

    fn __repr__(&self) -> String {
        format!("Selector({:?}, {:?})", self.selector.to_string(), self.schema.name())
    }

    fn __eq__(&self, other: &Self) -> bool {
        self.selector == other.selector && self.schema == other.schema
    }

    fn __hash__(&self) -> u64 {
        use std::hash::{DefaultHasher, Hash, Hasher};
        let mut hasher = DefaultHasher::new();
        self.selector.to_string().hash(&mut hasher);
        hasher.finish()
    }

    fn __getnewargs__(&self) -> (String, PySchema) {
        (self.selector.to_string(), self.schema())
    }
}
