//! Versions of objects.

use pyo3::prelude::*;

use crate::error::OrRaise;

/// Version(incarnation, sequence)
/// --
///
/// Which version of an object: newer ones are greater.
///
/// It tells two things with one number: which of two objects is newer, and, on one server, which became visible first.
///
/// Parameters
/// ----------
/// incarnation : int
///     The life of the server that gave it.
/// sequence : int
///     Its place among everything that became visible there.
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
    ///     The text is none.
    #[staticmethod]
    fn parse(py: Python<'_>, text: &str) -> PyResult<Self> {
        text.parse().map(Self).or_raise(py)
    }

    /// Where a follow was that had this cursor: what is newer than this version it had not given yet. After a server has died,
    /// and a follow with the cursor fails with Expired, that is how to tell what was received from what was not.
    ///
    /// Parameters
    /// ----------
    /// cursor : str
    ///     As `Follow.cursor` gave it. From a follow that was not live yet, only a part of what is older was given.
    ///
    /// Raises
    /// ------
    /// InvalidArgument
    ///     The text is no cursor.
    #[staticmethod]
    fn of_cursor(py: Python<'_>, cursor: &str) -> PyResult<Self> {
        let cursor: junctura::Cursor = cursor.parse().or_raise(py)?;
        Ok(Self(cursor.version()))
    }

    /// The life of the server that gave it.
    #[getter]
    fn incarnation(&self) -> u64 {
        self.0.incarnation
    }

    /// Its place among everything that became visible there.
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
