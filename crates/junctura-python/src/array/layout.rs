//! Layouts: the decomposition of an array over ranks, and the order of elements in memory.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

use crate::runtime::error::{OrRaise, invalid};

/// A layout: the decomposition of an array over ranks, and the order of elements in the memory of each rank.
///
/// Parameters
/// ----------
/// text : str, optional
///     A layout in one line, such as `"shape=8192x8192 grid=4x2 block=256x256 order=C"`, or in YAML.
/// **parts
///     The same as separate parts: `shape`, `grid`, `block`, `offset`, `strides` (numbers for each dimension), `cuts`,
///     `slabs`, `ranks`, `order`, `storage` (texts). `junctura layout --help` and the page on layouts describe the
///     parts.
///
/// Raises
/// ------
/// InvalidArgument
///     A part is invalid; the error names it: gaps, overlaps, negative or inconsistent numbers.
/// LimitExceeded
///     More than 8 dimensions, 2^32 ranks or 2^58 elements.
///
/// Examples
/// --------
/// >>> layout = junctura.Layout(shape=(100, 60), grid=(2, 3))
/// >>> print(layout, layout.ranks, layout.extents(4), layout.locate((99, 0)))
/// shape=100x60 grid=2x3 block=50x20 order=C 6 [(50, 20)] (3, 980)
#[pyclass(module = "junctura", name = "Layout", frozen)]
pub(crate) struct PyLayout(pub(crate) Arc<junctura::Layout>);

#[pymethods]
impl PyLayout {
    #[new]
    #[pyo3(signature = (text=None, /, **parts))]
    fn new(py: Python<'_>, text: Option<&str>, parts: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let mut line = text.unwrap_or_default().to_owned();
        if let Some(text) = text
            && text.contains(':')
            && !text.contains('=')
        {
            return Ok(Self(Arc::new(junctura::Layout::from_yaml(text).or_raise(py)?)));
        }
        for (name, value) in parts.into_iter().flatten() {
            if value.is_none() {
                continue;
            }
            let name: String = name.extract()?;
            line.extend([" ", &name, "=", &part(&value)?]);
        }
        Ok(Self(Arc::new(line.trim().parse().or_raise(py)?)))
    }

    /// Extents of the array.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.0.shape())
    }

    /// Number of ranks.
    #[getter]
    fn ranks(&self) -> u64 {
        self.0.ranks()
    }

    /// Order of a rank's elements: "C", row-major, or "F", column-major.
    #[getter]
    fn order(&self) -> &'static str {
        match self.0.order() {
            junctura::Order::C => "C",
            junctura::Order::F => "F",
        }
    }

    /// extents(rank)
    /// --
    ///
    /// Returns the shapes of a rank's part: one in a grid, one for each of its slabs.
    fn extents<'py>(&self, py: Python<'py>, rank: i64) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        let locals = self.0.locals(self.known(py, rank)?);
        locals.iter().map(|local| PyTuple::new(py, &local.extents)).collect()
    }

    /// indices(rank)
    /// --
    ///
    /// Returns the indices of a rank's part in each dimension, as arrays: `field[np.ix_(*layout.indices(rank))]` is its
    /// part. InvalidArgument if it has several slabs.
    fn indices<'py>(&self, py: Python<'py>, rank: i64) -> PyResult<Bound<'py, PyTuple>> {
        let indices = self.0.indices(self.known(py, rank)?);
        let indices = indices.ok_or_else(|| invalid(py, "rank", format!("rank {rank} has not one slab")))?;
        let arrays = indices
            .into_iter()
            .map(|one| crate::conversion::data::arrays(py)?.call_method1("numbers", (one,)));
        PyTuple::new(py, arrays.collect::<PyResult<Vec<_>>>()?)
    }

    /// own(rank)
    /// --
    ///
    /// Returns the number of elements of a rank's part.
    fn own(&self, py: Python<'_>, rank: i64) -> PyResult<u64> {
        Ok(self.0.own(self.known(py, rank)?))
    }

    /// room(rank)
    /// --
    ///
    /// Returns the size of a rank's memory in elements, including gaps.
    fn room(&self, py: Python<'_>, rank: i64) -> PyResult<u64> {
        Ok(self.0.room(self.known(py, rank)?))
    }

    /// locate(index)
    /// --
    ///
    /// Returns the rank of an element and its position in the rank's memory; None if no rank has it.
    fn locate(&self, index: Vec<u64>) -> Option<(u64, u64)> {
        self.0.locate(&index)
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        format!("Layout({:?})", self.0.to_string())
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| other.get().0 == self.0)
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.0.to_string().hash(&mut hasher);
        hasher.finish()
    }

    fn __getnewargs__(&self) -> (String,) {
        (self.0.to_string(),)
    }
}

impl PyLayout {
    fn known(&self, py: Python<'_>, rank: i64) -> PyResult<u64> {
        known(py, &self.0, rank)
    }
}

/// A layout, or the text of one.
pub(super) fn read(given: &Bound<'_, PyAny>) -> PyResult<Arc<junctura::Layout>> {
    if let Ok(layout) = given.cast::<PyLayout>() {
        return Ok(Arc::clone(&layout.get().0));
    }
    let Ok(text) = given.cast::<PyString>() else {
        return Err(PyTypeError::new_err("a Layout, or the text of one, is expected"));
    };
    Ok(PyLayout::new(given.py(), Some(text.to_str()?), None)?.0)
}

/// A rank that the layout has.
pub(super) fn known(py: Python<'_>, layout: &junctura::Layout, rank: i64) -> PyResult<u64> {
    let ranks = layout.ranks();
    let found = u64::try_from(rank).ok().filter(|rank| *rank < ranks);
    found.ok_or_else(|| {
        invalid(
            py,
            "rank",
            format!("there is no rank {rank} of {ranks}, which are counted from 0"),
        )
    })
}

/// One rank of a layout, as given or from the MPI communicator.
pub(super) fn rank_of(
    py: Python<'_>,
    layout: &junctura::Layout,
    rank: Option<i64>,
    comm: Option<&Bound<'_, PyAny>>,
) -> PyResult<u64> {
    let Some(comm) = comm else {
        return match rank {
            Some(rank) => known(py, layout, rank),
            None if layout.ranks() == 1 => Ok(0),
            None => Err(invalid(py, "rank", "which rank, or a communicator, is expected")),
        };
    };
    let (mine, size): (i64, u64) = (comm.call_method0("Get_rank")?.extract()?, size_of(comm)?);
    if size != layout.ranks() {
        let cause = format!(
            "the layout is over {} ranks, and the communicator has {size}",
            layout.ranks()
        );
        return Err(invalid(py, "comm", cause));
    }
    known(py, layout, rank.unwrap_or(mine))
}

pub(super) fn size_of(comm: &Bound<'_, PyAny>) -> PyResult<u64> {
    comm.call_method0("Get_size")?.extract()
}

/// One part of a layout, as in its text.
fn part(value: &Bound<'_, PyAny>) -> PyResult<String> {
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(text.to_str()?.to_owned());
    }
    if let Ok(one) = value.extract::<i64>() {
        return Ok(one.to_string());
    }
    let numbers: Vec<i64> = value.extract()?;
    let numbers: Vec<String> = numbers.iter().map(ToString::to_string).collect();
    Ok(numbers.join("x"))
}
