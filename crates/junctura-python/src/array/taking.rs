//! Taking arrays, or parts of them, in a layout of one's own.

use std::sync::Arc;

use junctura::{ArrayPart, DemandedArray};
use pyo3::buffer::PyUntypedBuffer;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::layout;
use crate::buffer::LentMut;
use crate::data::arrays;
use crate::error::{OrRaise, invalid};
use crate::options::timeout as read_timeout;
use crate::pool::PyPool;
use crate::target::PyTarget;

/// What is wanted of an array.
struct WantedArray {
    layout: Arc<junctura::Layout>,
    rank: u64,
    origin: Vec<u64>,
}

/// What was said of it.
struct TakeArguments<'a, 'py> {
    layout: Option<&'a Bound<'py, PyAny>>,
    rank: Option<i64>,
    comm: Option<&'a Bound<'py, PyAny>>,
    origin: Option<Vec<u64>>,
    slab: Option<&'a Bound<'py, PyAny>>,
}

#[pymethods]
impl PyPool {
    /// An array, or one rank's part of it, in the layout that is asked for, whatever the one is that it was offered in; waits until all its
    /// pieces are there. The bytes are copied once, from where the producers put them into the array that is returned.
    ///
    /// Also of a plain object that is an array.
    ///
    /// Parameters
    /// ----------
    /// target : str or dict, optional
    ///     A selector (the newest array that matches is meant), the text of a key, or the attributes of a key.
    /// layout : Layout or str, optional
    ///     How what all ranks want lies over them, and in their memory. Without one, all of the array in C order; with
    ///     `comm`, its first dimension split over the ranks.
    /// rank : int, optional
    ///     Whose part; by default that of `comm`.
    /// comm : mpi4py communicator, optional
    ///     Says the rank, and that the layout has as many ranks as it.
    /// origin : sequence of int, optional
    ///     The index of the array where the layout begins, where that is a part of it.
    /// slab : tuple of slice or of (start, stop), optional
    ///     A part of the array, instead of a layout.
    /// dtype : optional
    ///     What the elements are to be: float32 and float64 become each other, byte orders change. By default as they are.
    /// out : array, optional
    ///     Where to put it: of the right shape, type and order, without gaps. Quicker for large arrays that are taken again and again.
    /// threads : int
    ///     How many copy.
    /// timeout : float, optional
    ///     Seconds; 0 does not wait, None waits for ever.
    /// schema : str, optional
    ///     The schema of the key, where it is not the pool's default.
    /// **key
    ///     Attributes of the key. An underscore at the end is left out: `class_="od"`.
    ///
    /// Returns
    /// -------
    /// numpy.ndarray
    ///     Of the shape that `layout.extents(rank)` says; in one dimension where a rank has several slabs, or gaps.
    ///
    /// Raises
    /// ------
    /// Timeout, NotFound
    ///     It is not there; where some of its pieces are, it is said whose are missing.
    /// InvalidArgument
    ///     It is no array, or what is wanted is no part of it.
    /// Unsupported
    ///     The elements are not converted into each other.
    ///
    /// Examples
    /// --------
    /// >>> with junctura.Pool(schema="free") as pool:
    /// ...     version = pool.offer(numpy.arange(24.0).reshape(4, 6), name="t")
    /// ...     pool.demand_array(name="t", slab=(slice(1, 3), slice(2, 4)), dtype="f4")
    /// array([[ 8.,  9.],
    ///        [14., 15.]], dtype=float32)
    #[pyo3(signature = (target=None, layout=None, rank=None, /, *, comm=None, origin=None, slab=None, dtype=None, out=None, threads=1, timeout=None, schema=None, **key))]
    #[allow(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn demand_array<'py>(
        &self,
        py: Python<'py>,
        target: Option<&Bound<'py, PyAny>>,
        layout: Option<&Bound<'py, PyAny>>,
        rank: Option<i64>,
        comm: Option<&Bound<'py, PyAny>>,
        origin: Option<Vec<u64>>,
        slab: Option<&Bound<'py, PyAny>>,
        dtype: Option<&Bound<'py, PyAny>>,
        out: Option<&Bound<'py, PyAny>>,
        threads: usize,
        timeout: Option<f64>,
        schema: Option<&str>,
        key: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let timeout = read_timeout(py, timeout)?;
        let target = PyTarget::read(py, target, key, schema)?;
        let said = TakeArguments {
            layout,
            rank,
            comm,
            origin,
            slab,
        };
        said.check(py)?;
        let array = target.ask(py, |target| self.inner.demand_array(target, timeout))?;
        let wanted = said.of(py, &array)?;
        let dtype = dtype.map(|dtype| arrays(py)?.call_method1("dtype_text", (dtype,))?.extract::<String>());
        let element = dtype.transpose()?.map(|dtype| dtype.parse().or_raise(py)).transpose()?;
        let part = ArrayPart {
            layout: &wanted.layout,
            rank: wanted.rank,
            origin: &wanted.origin,
            element,
        };
        let taken = take(py, &array, &part, out, threads)?;
        // Layouts have a dimension, and an array need not.
        let is_scalar = array.object().get("shape").is_some_and(str::is_empty);
        if is_scalar && layout.is_none() && slab.is_none() && out.is_none() {
            return taken.call_method1("reshape", (PyTuple::empty(py),));
        }
        Ok(taken)
    }
}

fn take<'py>(
    py: Python<'py>,
    array: &DemandedArray,
    part: &ArrayPart<'_>,
    out: Option<&Bound<'py, PyAny>>,
    threads: usize,
) -> PyResult<Bound<'py, PyAny>> {
    let dtype = part.element.unwrap_or_else(|| array.element()).to_string();
    let locals = part.layout.locals(part.rank);
    let boxes = locals.iter().map(|local| PyTuple::new(py, &local.extents));
    let boxes = boxes.collect::<PyResult<Vec<_>>>()?;
    let order = match part.layout.order() {
        junctura::Order::C => "C",
        junctura::Order::F => "F",
    };
    let room = (dtype, boxes, order, part.layout.room(part.rank), out);
    let (local, flat): (Bound<'py, PyAny>, Bound<'py, PyAny>) = arrays(py)?.call_method1("local", room)?.extract()?;
    let mut lent = LentMut::new(PyUntypedBuffer::get(&flat)?)?;
    let mine = lent.bytes();
    py.detach(|| array.take_into(part, mine, threads)).or_raise(py)?;
    Ok(local)
}

impl TakeArguments<'_, '_> {
    /// What is wrong whatever the array is, before anybody waits for it.
    fn check(&self, py: Python<'_>) -> PyResult<()> {
        if let Some(layout) = self.layout {
            layout::rank_of(py, &*layout::read(layout)?, self.rank, self.comm)?;
        }
        if self.slab.is_some() && (self.layout.is_some() || self.origin.is_some()) {
            return Err(invalid(py, "slab", "either a slab, or a layout and where it begins"));
        }
        Ok(())
    }

    fn of(&self, py: Python<'_>, array: &DemandedArray) -> PyResult<WantedArray> {
        let shape = array.layout().shape();
        if let Some(slab) = self.slab {
            let whole = PyTuple::new(py, shape)?;
            let (origin, extents): (Vec<u64>, Vec<u64>) = arrays(py)?.call_method1("slab", (slab, whole))?.extract()?;
            let layout = self.split(py, &extents)?;
            return self.wanted(py, layout, origin);
        }
        let layout = match self.layout {
            Some(layout) => layout::read(layout)?,
            None => self.split(py, shape)?,
        };
        self.wanted(py, layout, self.origin.clone().unwrap_or_default())
    }

    fn wanted(&self, py: Python<'_>, layout: Arc<junctura::Layout>, origin: Vec<u64>) -> PyResult<WantedArray> {
        let rank = layout::rank_of(py, &layout, self.rank, self.comm)?;
        Ok(WantedArray { layout, rank, origin })
    }

    /// All for one, or the first dimension split over the ranks of a communicator.
    fn split(&self, py: Python<'_>, shape: &[u64]) -> PyResult<Arc<junctura::Layout>> {
        let one = junctura::Layout::one(shape).or_raise(py)?;
        let Some(comm) = self.comm else {
            return Ok(Arc::new(one));
        };
        let mut grid = vec![1; shape.len()];
        grid[0] = layout::size_of(comm)?;
        let blocks: Vec<u64> = shape
            .iter()
            .zip(&grid)
            .map(|(extent, parts): (&u64, &u64)| extent.div_ceil(*parts).max(1))
            .collect();
        junctura::Layout::cyclic(shape, &grid, &blocks)
            .map(Arc::new)
            .or_raise(py)
    }
}
