//! Offering pieces from Python.

use std::sync::Arc;

use junctura::{ArrayPiece, Element, OfferOptions};
use pyo3::buffer::PyUntypedBuffer;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::layout;
use crate::conversion::buffer::LentBuffer;
use crate::conversion::data::arrays;
use crate::conversion::given::GivenAttributes;
use crate::conversion::options::offer_options;
use crate::handles::allocation::{FilledPayload, PyAllocation};
use crate::pool::PyPool;
use crate::runtime::error::{OrRaise, invalid};

#[pymethods]
impl PyPool {
    /// Offers one rank's part of a distributed array; returns when the piece is stored. The array becomes visible, as
    /// one object with the common key, when all ranks have offered their parts.
    ///
    /// Offering the same piece again, with the same bytes, is idempotent. An incomplete array is dropped after the
    /// pool's orphan timeout when all its producers have disconnected.
    ///
    /// Parameters
    /// ----------
    /// data : array or Allocation
    ///     The rank's part: an array of the shape `layout.extents(rank)`, in any order; for several slabs, or gaps, its
    ///     memory in one dimension, or a list of arrays, one for each slab. An allocation is transferred, not copied.
    /// layout : Layout or str
    ///     The layout of the whole array.
    /// rank : int, optional
    ///     The rank of this part; defaults to that of `comm`.
    /// attributes : dict, optional
    ///     The description of the array.
    /// comm : mpi4py communicator, optional
    ///     Determines the rank, and checks that the layout has as many ranks.
    /// epoch : int, optional
    ///     Distinguishes successive versions of the array if its schema lets objects supersede each other; not allowed
    ///     otherwise.
    /// dtype : optional
    ///     The element type, if `data` has none: for an allocation.
    /// schema, retention : optional
    ///     As for `offer`; apply to the array with its pieces.
    /// **keywords
    ///     More attributes. An underscore at the end is removed: `class_="od"`.
    ///
    /// Raises
    /// ------
    /// Conflict
    ///     The array has another layout or type, complete or not.
    /// AlreadyExists
    ///     The rank has offered other bytes of this array, or the array was removed: `withdraw` with `forget` frees its key.
    /// InvalidArgument
    ///     The data do not fit the layout, or an epoch is given although not allowed, or missing although required.
    /// PoolFull
    ///     No memory became free in time.
    ///
    /// Examples
    /// --------
    /// >>> layout = junctura.Layout(shape=(4, 6), grid=(2, 1))
    /// >>> with junctura.Pool(schema="free") as pool:
    /// ...     for rank in range(2):
    /// ...         pool.offer_piece(numpy.full((2, 6), rank), layout, rank, name="t")
    /// ...     pool.demand_array("name=t", "shape=4x6 grid=1x3", 1)
    /// array([[0, 0],
    ///        [0, 0],
    ///        [1, 1],
    ///        [1, 1]])
    #[pyo3(signature = (data, layout, rank=None, attributes=None, /, *, comm=None, epoch=None, dtype=None, schema=None, retention=None, **keywords))]
    #[allow(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn offer_piece<'py>(
        &self,
        py: Python<'py>,
        data: &Bound<'py, PyAny>,
        layout: &Bound<'py, PyAny>,
        rank: Option<i64>,
        attributes: Option<&Bound<'py, PyAny>>,
        comm: Option<&Bound<'py, PyAny>>,
        epoch: Option<i64>,
        dtype: Option<&Bound<'py, PyAny>>,
        schema: Option<&str>,
        retention: Option<&Bound<'py, PyAny>>,
        keywords: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<()> {
        let layout = layout::read(layout)?;
        let rank = layout::rank_of(py, &layout, rank, comm)?;
        let options = offer_options(schema, retention, false, None)?;
        let attributes = GivenAttributes::read(attributes, keywords)?;
        let piece = |element: Element| ArrayPiece {
            layout: &layout,
            element,
            rank,
            epoch,
        };
        if let Ok(allocation) = data.cast::<PyAllocation>() {
            let element = element_of(py, allocation.get(), dtype)?;
            return self.offer_allocated(py, &piece(element), &attributes, options, allocation.get());
        }
        let (flat, dtype) = flat(data, &layout, rank, dtype)?;
        let lent = LentBuffer::new(PyUntypedBuffer::get(&flat)?);
        let piece = piece(dtype.parse().or_raise(py)?);
        let lists = attributes.lists(py)?;
        let given = attributes.given(py, &lists)?;
        py.detach(|| {
            self.inner
                .offer_piece_with(&piece, given.iter().copied(), lent.bytes(), options)
        })
        .or_raise(py)
    }
}

impl PyPool {
    fn offer_allocated(
        &self,
        py: Python<'_>,
        piece: &ArrayPiece<'_>,
        attributes: &GivenAttributes<'_>,
        options: OfferOptions<'_>,
        allocation: &PyAllocation,
    ) -> PyResult<()> {
        let lists = attributes.lists(py)?;
        let given = attributes.given(py, &lists)?;
        let given = given.iter().copied();
        let filled = allocation.take(py)?;
        py.detach(|| match filled {
            FilledPayload::Own(bytes) => self.inner.offer_piece_with(piece, given, bytes, options),
            FilledPayload::Slot(slot) => self.inner.offer_piece_allocation(piece, given, slot, options),
        })
        .or_raise(py)
    }
}

/// Returns the memory of a rank in one dimension, and its element type.
fn flat<'py>(
    data: &Bound<'py, PyAny>,
    layout: &Arc<junctura::Layout>,
    rank: u64,
    dtype: Option<&Bound<'py, PyAny>>,
) -> PyResult<(Bound<'py, PyAny>, String)> {
    let py = data.py();
    let locals = layout.locals(rank);
    let boxes = locals.iter().map(|local| PyTuple::new(py, &local.extents));
    let boxes = boxes.collect::<PyResult<Vec<_>>>()?;
    let order = layout::PyLayout(Arc::clone(layout))
        .into_pyobject(py)?
        .getattr("order")?;
    let given = (data, boxes, order, layout.room(rank), dtype);
    arrays(py)?.call_method1("flat", given)?.extract()
}

fn element_of(py: Python<'_>, allocation: &PyAllocation, dtype: Option<&Bound<'_, PyAny>>) -> PyResult<Element> {
    let name = match (dtype, allocation.form()) {
        (Some(dtype), _) => arrays(py)?.call_method1("dtype_text", (dtype,))?.extract()?,
        (None, Some(form)) => form.dtype.to_string(),
        (None, None) => {
            return Err(invalid(py, "dtype", "an allocation needs the type of its elements"));
        }
    };
    name.parse().or_raise(py)
}
