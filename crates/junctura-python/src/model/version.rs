//! Versions of objects.

use pyo3::prelude::*;

use crate::runtime::error::OrRaise;

/// Version(incarnation, sequence)
/// --
///
/// The version of an object: newer versions are greater.
///
/// It determines which of two objects is newer, and, for one incarnation of a server, which became visible first.
///
/// Parameters
/// ----------
/// incarnation : int
///     The incarnation of the server that assigned it.
/// sequence : int
///     Its position in the order in which objects became visible there.
///
/// Examples
/// --------
/// >>> junctura.Version.parse("1.42") < junctura.Version(1, 43)
/// True
/// >>> str(junctura.Version(1, 42))
/// '1.42'
#[pyclass(module = "junctura", name = "Version", frozen, eq, ord, hash)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct PyVersion(pub(crate) junctura::Version);

#[pymethods]
impl PyVersion {
    #[new]
    fn new(incarnation: u64, sequence: u64) -> Self {
        Self(junctura::Version { incarnation, sequence })
    }

    /// Reads a version as it is printed.
    ///
    /// Raises
    /// ------
    /// InvalidArgument
    ///     The text is not a version.
    #[staticmethod]
    fn parse(py: Python<'_>, text: &str) -> PyResult<Self> {
        text.parse().map(Self).or_raise(py)
    }

    /// Returns the position of the follow that returned this cursor: it had not delivered anything newer than this
    /// version. After a server crash, when a follow with the cursor fails with Expired, the version separates received
    /// objects from others.
    ///
    /// Parameters
    /// ----------
    /// cursor : str
    ///     From `Follow.cursor`. A follow that was not live yet had delivered only a part of the older objects.
    ///
    /// Raises
    /// ------
    /// InvalidArgument
    ///     The text is not a cursor.
    #[staticmethod]
    fn of_cursor(py: Python<'_>, cursor: &str) -> PyResult<Self> {
        let cursor: junctura::Cursor = cursor.parse().or_raise(py)?;
        Ok(Self(cursor.version()))
    }

    /// The incarnation of the server that assigned it.
    #[getter]
    fn incarnation(&self) -> u64 {
        self.0.incarnation
    }

    /// Its position in the order in which objects became visible there.
    #[getter]
    fn sequence(&self) -> u64 {
        self.0.sequence
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        format!("Version({}, {})", self.0.incarnation, self.0.sequence)
    }

    fn __getnewargs__(&self) -> (u64, u64) {
        (self.0.incarnation, self.0.sequence)
    }
}
