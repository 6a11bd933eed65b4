//! Attributes as Python gives them: a dictionary, keyword arguments, or both.
//!
//! Texts are not copied: the strings are kept alive while the facade reads them, also without the interpreter. Besides
//! texts and numbers it takes what people have at hand: NumPy scalars, dates, times, lengths of time, decimals, lists,
//! tuples and arrays. `None` means that the attribute is not given. A keyword may end in an underscore, for names that
//! Python keeps for itself: `class_="od"`.

use junctura::{Code, Error, Given};
use pyo3::PyTypeCheck;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyDate, PyDateTime, PyDelta, PyDict, PyFloat, PyInt, PyList, PyMapping, PyString, PyTime, PyTuple,
};

use crate::conversion::data::arrays;
use crate::runtime::error::{OrRaise, invalid, raise};
use crate::runtime::lazy_value::AttributeName;

/// Attributes of one offer, or of one key.
#[derive(Default)]
pub(crate) struct GivenAttributes<'py> {
    items: Vec<GivenItem<'py>>,
    /// Whether the type or the shape of an array may be among them. To look for a name takes longer than to read one.
    may_state_form: bool,
}

/// The attributes that state the form of an array; as keywords also with an underscore.
static FORM: [AttributeName; 4] = [
    AttributeName::new("dtype"),
    AttributeName::new("shape"),
    AttributeName::new("dtype_"),
    AttributeName::new("shape_"),
];

struct GivenItem<'py> {
    name: GivenName<'py>,
    value: GivenValue<'py>,
}

enum GivenName<'py> {
    Given(Bound<'py, PyString>),
    Keyword(Bound<'py, PyString>),
    Ours(&'static str),
}

enum GivenValue<'py> {
    Text(Bound<'py, PyString>),
    Owned(String),
    Integer(i64),
    Float(f64),
    Bool(bool),
    List(Vec<GivenValue<'py>>),
}

impl<'py> GivenAttributes<'py> {
    /// Reads a mapping and keyword arguments.
    pub(crate) fn read(given: Option<&Bound<'py, PyAny>>, keywords: Option<&Bound<'py, PyDict>>) -> PyResult<Self> {
        let mut attributes = Self {
            items: Vec::with_capacity(16),
            may_state_form: false,
        };
        if let Some(given) = given {
            if let Ok(dict) = given.cast::<PyDict>() {
                attributes.look_for_form(dict, &FORM[..2])?;
                attributes.add_all(dict, GivenName::Given)?;
            } else {
                attributes.may_state_form = true;
                attributes.add_mapping(given)?;
            }
        }
        if let Some(keywords) = keywords {
            attributes.look_for_form(keywords, &FORM)?;
            attributes.add_all(keywords, GivenName::Keyword)?;
        }
        Ok(attributes)
    }

    fn look_for_form(&mut self, dict: &Bound<'py, PyDict>, names: &[AttributeName]) -> PyResult<()> {
        for name in names {
            self.may_state_form |= name.is_key_of(dict)?;
        }
        Ok(())
    }

    /// Whether an attribute that states the form of an array was given: `dtype` or `shape`.
    pub(crate) fn states_form(&self, name: &str) -> bool {
        self.may_state_form && self.has(name)
    }

    fn add_all(&mut self, dict: &Bound<'py, PyDict>, name: fn(Bound<'py, PyString>) -> GivenName<'py>) -> PyResult<()> {
        for (key, value) in dict.iter() {
            self.add(name, key, &value)?;
        }
        Ok(())
    }

    fn add_mapping(&mut self, given: &Bound<'py, PyAny>) -> PyResult<()> {
        let Ok(mapping) = given.cast::<PyMapping>() else {
            let cause = format!("a dictionary is expected, not {}", type_name(given));
            return Err(invalid(given.py(), "attributes", cause));
        };
        for item in mapping.items()?.iter() {
            let (key, value) = item.extract::<(Bound<'py, PyAny>, Bound<'py, PyAny>)>()?;
            self.add(GivenName::Given, key, &value)?;
        }
        Ok(())
    }

    fn add(
        &mut self,
        name: fn(Bound<'py, PyString>) -> GivenName<'py>,
        key: Bound<'py, PyAny>,
        value: &Bound<'py, PyAny>,
    ) -> PyResult<()> {
        let key = match key.cast_into::<PyString>() {
            Ok(key) => name(key),
            Err(other) => {
                let cause = format!(
                    "the name of an attribute is a text, not {}",
                    type_name(&other.into_inner())
                );
                return Err(invalid(value.py(), "attributes", cause));
            }
        };
        if !value.is_none() {
            let value = GivenValue::read(value, true).map_err(|failed| failed.name(value, &key))?;
            self.items.push(GivenItem { name: key, value });
        }
        Ok(())
    }

    /// The attributes that were given, as a dictionary; the value of a list is None.
    pub(crate) fn stated(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let stated = PyDict::new(py);
        for GivenItem { name, value } in &self.items {
            let name = name.text()?;
            match value {
                GivenValue::Text(text) => stated.set_item(name, text)?,
                GivenValue::Owned(text) => stated.set_item(name, text)?,
                GivenValue::Integer(number) => stated.set_item(name, number)?,
                GivenValue::Float(number) => stated.set_item(name, number)?,
                GivenValue::Bool(truth) => stated.set_item(name, truth)?,
                GivenValue::List(_) => stated.set_item(name, py.None())?,
            }
        }
        Ok(stated)
    }

    /// Adds those of a dictionary.
    pub(crate) fn add_given(&mut self, given: &Bound<'py, PyDict>) -> PyResult<()> {
        self.look_for_form(given, &FORM[..2])?;
        self.add_all(given, GivenName::Given)
    }

    /// Adds those of a dictionary whose names were not given.
    pub(crate) fn add_others(&mut self, others: &Bound<'py, PyDict>) -> PyResult<()> {
        self.look_for_form(others, &FORM[..2])?;
        for (key, value) in others.iter() {
            if !self.has(key.cast::<PyString>()?.to_str()?) {
                self.add(GivenName::Given, key, &value)?;
            }
        }
        Ok(())
    }

    /// Whether nothing was given.
    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Whether an attribute of this name was given.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.items
            .iter()
            .any(|item| item.name.text().is_ok_and(|given| given == name))
    }

    /// The text of an attribute; `None` if it was not given as a text.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        match self.value(name)? {
            GivenValue::Text(text) => text.to_str().ok(),
            GivenValue::Owned(text) => Some(text),
            _ => None,
        }
    }

    /// The numbers of an attribute, given as a number, a list, or a text with slashes or commas; else `None`.
    pub(crate) fn extents(&self, name: &str) -> Option<Vec<i64>> {
        match self.value(name)? {
            GivenValue::Integer(number) => Some(vec![*number]),
            GivenValue::List(items) => {
                let number = |item: &GivenValue<'_>| match item {
                    GivenValue::Integer(number) => Some(*number),
                    _ => None,
                };
                items.iter().map(number).collect()
            }
            _ => {
                let numbers = self.text(name)?.split(['/', ',']);
                numbers.map(|number| number.trim().parse().ok()).collect()
            }
        }
    }

    fn value(&self, name: &str) -> Option<&GivenValue<'py>> {
        let mut items = self.items.iter();
        let item = items.find(|item| item.name.text().is_ok_and(|given| given == name))?;
        Some(&item.value)
    }

    /// Adds an attribute of ours.
    pub(crate) fn add_text(&mut self, name: &'static str, text: String) {
        self.items.push(GivenItem {
            name: GivenName::Ours(name),
            value: GivenValue::Owned(text),
        });
    }

    /// Adds a list of integers of ours.
    pub(crate) fn add_integers(&mut self, name: &'static str, numbers: &[usize]) {
        let list = numbers
            .iter()
            .map(|&number| GivenValue::Integer(number as i64))
            .collect();
        self.items.push(GivenItem {
            name: GivenName::Ours(name),
            value: GivenValue::List(list),
        });
    }

    /// The items of the lists among them, for [`Self::given`].
    pub(crate) fn lists(&self, py: Python<'py>) -> PyResult<Vec<Vec<Given<'_>>>> {
        let lists = self.items.iter().filter_map(|item| match &item.value {
            GivenValue::List(items) => Some(items.iter().map(|item| item.lend(py)).collect()),
            _ => None,
        });
        lists.collect()
    }

    /// The attributes as the facade reads them.
    pub(crate) fn given<'a>(
        &'a self,
        py: Python<'py>,
        lists: &'a [Vec<Given<'a>>],
    ) -> PyResult<Vec<(&'a str, Given<'a>)>> {
        let mut lists = lists.iter();
        let mut given = Vec::with_capacity(self.items.len());
        for GivenItem { name, value } in &self.items {
            let value = match value {
                GivenValue::List(_) => Given::List(lists.next().map_or(&[], Vec::as_slice)),
                value => value.lend(py)?,
            };
            given.push((name.text().map_err(|_| not_unicode(py, "attributes"))?, value));
        }
        Ok(given)
    }

    /// Calls the facade with these, without the interpreter lock.
    pub(crate) fn ask<T: Send>(
        &self,
        py: Python<'py>,
        ask: impl FnOnce(&[(&str, Given<'_>)]) -> junctura::Result<T> + Send,
    ) -> PyResult<T> {
        let lists = self.lists(py)?;
        let given = self.given(py, &lists)?;
        py.detach(|| ask(&given)).or_raise(py)
    }
}

impl GivenName<'_> {
    fn text(&self) -> PyResult<&str> {
        match self {
            GivenName::Given(name) => name.to_str(),
            GivenName::Keyword(name) => name.to_str().map(|name| name.strip_suffix('_').unwrap_or(name)),
            GivenName::Ours(name) => Ok(name),
        }
    }
}

/// Why a value could not be read.
enum ReadFailure {
    /// Attributes do not support its type.
    Type,
    Raised(PyErr),
}

impl From<PyErr> for ReadFailure {
    fn from(raised: PyErr) -> Self {
        Self::Raised(raised)
    }
}

impl ReadFailure {
    fn name(self, value: &Bound<'_, PyAny>, name: &GivenName<'_>) -> PyErr {
        match self {
            ReadFailure::Raised(raised) => raised,
            ReadFailure::Type => {
                let cause = format!("{} is nothing that an attribute can hold", type_name(value));
                let name = name.text().unwrap_or("attributes");
                raise(value.py(), &Error::new(Code::TypeMismatch, name, cause))
            }
        }
    }
}

impl<'py> GivenValue<'py> {
    /// Reads a value; lists hold no lists.
    fn read(value: &Bound<'py, PyAny>, list: bool) -> Result<Self, ReadFailure> {
        // From the most frequent to the least. A bool is an int to Python.
        if let Ok(text) = value.cast::<PyString>() {
            return Ok(Self::Text(text.clone()));
        }
        if value.is_exact_instance_of::<PyInt>() {
            return Self::integer(value);
        }
        if let Ok(number) = value.cast::<PyFloat>() {
            return Ok(Self::Float(number.value()));
        }
        if let Ok(truth) = value.cast::<PyBool>() {
            return Ok(Self::Bool(truth.is_true()));
        }
        if PyList::type_check(value) || PyTuple::type_check(value) {
            return Self::list(value, list);
        }
        Self::read_rare(value, list)
    }

    fn integer(value: &Bound<'py, PyAny>) -> Result<Self, ReadFailure> {
        // A value out of range is passed as a text, for which the model reports the error.
        Ok(match value.extract::<i64>() {
            Ok(number) => Self::Integer(number),
            Err(_) => Self::Owned(value.str()?.to_str()?.to_owned()),
        })
    }

    fn list(value: &Bound<'py, PyAny>, list: bool) -> Result<Self, ReadFailure> {
        if !list {
            return Err(ReadFailure::Type);
        }
        let items = value.try_iter()?.map(|item| Self::read(&item?, false));
        items.collect::<Result<_, _>>().map(Self::List)
    }

    fn read_rare(value: &Bound<'py, PyAny>, list: bool) -> Result<Self, ReadFailure> {
        if PyInt::type_check(value) {
            return Self::integer(value);
        }
        if let Ok(length) = value.cast::<PyDelta>() {
            return Ok(Self::Owned(length_of_time(length)?));
        }
        if PyDateTime::type_check(value) || PyDate::type_check(value) || PyTime::type_check(value) {
            return Ok(Self::Owned(iso(value)?));
        }
        if is_decimal(value)? {
            return Ok(Self::Owned(value.call_method1("__format__", ("f",))?.extract()?));
        }
        // Scalars and arrays of NumPy, and of compatible libraries.
        if value.hasattr("dtype")? {
            let plain = arrays(value.py())?.call_method1("plain", (value,))?;
            if !plain.hasattr("dtype")? {
                return Self::read(&plain, list);
            }
        }
        Err(ReadFailure::Type)
    }

    fn lend(&self, py: Python<'py>) -> PyResult<Given<'_>> {
        Ok(match self {
            GivenValue::Text(text) => Given::Text(text.to_str().map_err(|_| not_unicode(py, "attributes"))?),
            GivenValue::Owned(text) => Given::Text(text),
            GivenValue::Integer(number) => Given::Integer(*number),
            GivenValue::Float(number) => Given::Float(*number),
            GivenValue::Bool(truth) => Given::Bool(*truth),
            GivenValue::List(_) => Given::List(&[]),
        })
    }
}

fn is_decimal(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    let class = value.get_type();
    Ok(class.name()? == "Decimal" && class.module()? == "decimal")
}

/// A time of day in minutes needs no seconds; everything else is written in full.
fn iso(value: &Bound<'_, PyAny>) -> PyResult<String> {
    let text: String = value.call_method0("isoformat")?.extract()?;
    let is_time = PyTime::type_check(value);
    Ok(text
        .strip_suffix(":00")
        .filter(|_| is_time)
        .map_or_else(|| text.clone(), str::to_owned))
}

fn length_of_time(length: &Bound<'_, PyDelta>) -> PyResult<String> {
    let field = |name: &str| length.getattr(name)?.extract::<i64>();
    let seconds = field("days")? * 86_400 + field("seconds")?;
    let micros = field("microseconds")?;
    Ok(if micros == 0 {
        format!("{seconds}s")
    } else {
        format!("{}us", i128::from(seconds) * 1_000_000 + i128::from(micros))
    })
}

fn not_unicode(py: Python<'_>, subject: &str) -> PyErr {
    raise(
        py,
        &Error::new(
            Code::TypeMismatch,
            subject,
            "a text with half a surrogate pair is no Unicode",
        ),
    )
}

/// The name of a value's type, for messages.
pub(crate) fn type_name(value: &Bound<'_, PyAny>) -> String {
    value
        .get_type()
        .name()
        .map_or_else(|_| "an object".to_owned(), |name| format!("a {name}"))
}

/// Refuses what is no text.
pub(crate) fn text_of(value: &Bound<'_, PyAny>, what: &str) -> PyResult<String> {
    value
        .extract()
        .map_err(|_| PyTypeError::new_err(format!("{what} is a text, not {}", type_name(value))))
}
