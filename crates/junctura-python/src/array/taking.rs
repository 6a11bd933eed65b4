//! Receiving arrays, or parts, in the consumer's layout.

use std::sync::Arc;

use junctura::{ArrayPart, DemandedArray};
use pyo3::buffer::PyUntypedBuffer;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::layout;
use crate::conversion::buffer::LentMut;
use crate::conversion::data::arrays;
use crate::conversion::misspelled::check_key;
use crate::conversion::options::timeout as read_timeout;
use crate::conversion::target::PyTarget;
use crate::pool::PyPool;
use crate::runtime::error::{OrRaise, invalid};

/// The requested part of an array.
struct WantedArray {
    layout: Arc<junctura::Layout>,
    rank: u64,
    origin: Vec<u64>,
}

/// The arguments of the request.
struct TakeArguments<'a, 'py> {
    layout: Option<&'a Bound<'py, PyAny>>,
    rank: Option<i64>,
    comm: Option<&'a Bound<'py, PyAny>>,
    origin: Option<Vec<u64>>,
    slab: Option<&'a Bound<'py, PyAny>>,
}

#[pymethods]
impl PyPool {
    /// Returns an array, or one rank's part, in the requested layout, independent of the layout of the producers; waits
    /// until all pieces are available. The bytes are copied once, from the producers' memory into the returned array.
    ///
    /// Also accepts a single object that is an array.
    ///
    /// Parameters
    /// ----------
    /// target : str or dict, optional
    ///     A selector (the newest array that matches), the text of a key, or the attributes of a key.
    /// layout : Layout or str, optional
    ///     The layout of the requested part over all ranks, and in their memory. Without one, the whole array in C
    ///     order; with `comm`, its first dimension split over the ranks.
    /// rank : int, optional
    ///     The rank of the part; defaults to that of `comm`.
    /// comm : mpi4py communicator, optional
    ///     Determines the rank, and checks that the layout has as many ranks.
    /// origin : sequence of int, optional
    ///     The index of the array at which the layout begins, if the layout covers a part.
    /// slab : tuple of slice or of (start, stop), optional
    ///     A part of the array, instead of a layout.
    /// dtype : optional
    ///     The element type of the result: float32 and float64 are converted into each other, and byte orders change.
    ///     By default unchanged.
    /// out : array, optional
    ///     The array for the result: of the right shape, type and order, without gaps. Faster for large arrays that are
    ///     received repeatedly.
    /// threads : int
    ///     Number of threads that copy.
    /// timeout : float, optional
    ///     Seconds; 0 does not wait, None waits without a limit.
    /// schema : str, optional
    ///     The schema of the key, if it is not the pool's default.
    /// **key
    ///     Attributes of the key. An underscore at the end is removed: `class_="od"`.
    ///
    /// Returns
    /// -------
    /// numpy.ndarray
    ///     Of the shape `layout.extents(rank)`; one-dimensional if a rank has several slabs, or gaps.
    ///
    /// Raises
    /// ------
    /// Timeout, NotFound
    ///     The array is not available; if some pieces exist, the error names the ranks of the missing ones.
    /// InvalidArgument
    ///     The object is not an array, or the requested part is outside the array.
    /// Unsupported
    ///     The conversion between the element types is not supported.
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
        check_key(py, &self.inner, key)?;
        let target = PyTarget::read(py, "Pool.demand_array", target, key, schema)?;
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
        // Layouts have at least one dimension, arrays may have none.
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
    /// Validates arguments independently of the array, before any wait.
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

    /// The whole array for one rank, or the first dimension split over the ranks of a communicator.
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
