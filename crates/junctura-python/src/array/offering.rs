//! Offering pieces from Python.

use std::sync::Arc;

use junctura::{ArrayPiece, Bundle, Element, Given, OfferOptions, Pool};
use pyo3::buffer::PyUntypedBuffer;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::layout;
use crate::conversion::buffer::LentBuffer;
use crate::conversion::data::arrays;
use crate::conversion::given::GivenAttributes;
use crate::conversion::options::{offer_options, schema_of};
use crate::conversion::usage::{OfferPlace, check_keywords};
use crate::handles::allocation::{FilledPayload, PyAllocation};
use crate::handles::bundle::{PyBundle, current};
use crate::pool::PyPool;
use crate::runtime::error::{OrRaise, invalid};
use crate::runtime::patience::offering;

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
    ///     Other ranks have offered pieces in another layout or of another type.
    /// AlreadyExists
    ///     The array is complete in another layout or type, or the rank has offered other bytes of it, or the array was
    ///     removed: `withdraw` with `forget` frees its key.
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
        let own = schema_of(py, &self.inner, schema)?;
        check_keywords(py, OfferPlace::Pool(&self.inner), &own, keywords, &OPTIONS)?;
        let given = GivenPiece {
            data,
            layout,
            rank,
            attributes: GivenAttributes::read(attributes, keywords)?,
            comm,
            epoch,
            dtype,
            options: offer_options(schema, retention, false, None)?,
        };
        match current(py, &self.inner) {
            Some(bundle) => given.offer(py, &self.inner, PieceTarget::Bundle(&bundle)),
            None => given.offer(py, &self.inner, PieceTarget::Pool(&self.inner)),
        }
    }
}

#[pymethods]
impl PyBundle {
    /// Offers one rank's part of a distributed array into the bundle; returns when the piece is staged. The array is
    /// one member: it becomes visible with the other members, when all ranks have offered their parts.
    ///
    /// Every rank opens the same path. A bundle without a path has no pieces.
    ///
    /// Parameters
    /// ----------
    /// data, layout, rank, attributes, comm, epoch, dtype, schema, retention, **keywords
    ///     As for `Pool.offer_piece`. The time of a retention starts when the bundle becomes visible.
    ///
    /// Raises
    /// ------
    /// InvalidArgument
    ///     The bundle has no path, or the data do not fit the layout.
    /// BundleFull, BundleClosed, Closed, PoolFull
    ///     As for `Bundle.offer`.
    /// Conflict, AlreadyExists
    ///     As for `Pool.offer_piece`.
    ///
    /// Examples
    /// --------
    /// >>> layout = junctura.Layout(shape=(4, 6), grid=(2, 1))
    /// >>> with junctura.Pool(schema="free") as pool:
    /// ...     with pool.bundle("step/6") as step:
    /// ...         for rank in range(2):
    /// ...             step.offer_piece(numpy.full((2, 6), rank), layout, rank, name="t")
    /// ...         staged = step.offer(b"6", name="time")
    /// ...         print(len(pool.list()))
    /// ...     print([entry["name"] for entry in pool.list()])
    /// 0
    /// ['t', 'time']
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
        let own = schema_of(py, self.pool(), schema)?;
        check_keywords(py, OfferPlace::Pool(self.pool()), &own, keywords, &OPTIONS)?;
        let given = GivenPiece {
            data,
            layout,
            rank,
            attributes: GivenAttributes::read(attributes, keywords)?,
            comm,
            epoch,
            dtype,
            options: offer_options(schema, retention, false, None)?,
        };
        given.offer(py, self.pool(), PieceTarget::Bundle(&*self.get(py)?))
    }
}

/// Options of an offer of a piece, besides those of other offers.
const OPTIONS: [&str; 4] = ["schema", "comm", "epoch", "dtype"];

/// The arguments of an offer of a piece.
struct GivenPiece<'a, 'py> {
    data: &'a Bound<'py, PyAny>,
    layout: &'a Bound<'py, PyAny>,
    rank: Option<i64>,
    attributes: GivenAttributes<'py>,
    comm: Option<&'a Bound<'py, PyAny>>,
    epoch: Option<i64>,
    dtype: Option<&'a Bound<'py, PyAny>>,
    options: OfferOptions<'a>,
}

/// The destination of pieces.
#[derive(Clone, Copy)]
enum PieceTarget<'a> {
    Pool(&'a Pool),
    Bundle(&'a Bundle),
}

impl PieceTarget<'_> {
    fn offer(
        self,
        piece: &ArrayPiece<'_>,
        given: &[(&str, Given<'_>)],
        mine: FilledPayload<'_>,
        options: OfferOptions<'_>,
    ) -> junctura::Result<()> {
        let given = given.iter().copied();
        match (self, mine) {
            (Self::Pool(pool), FilledPayload::Own(mine)) => pool.offer_piece_with(piece, given, mine, options),
            (Self::Pool(pool), FilledPayload::Slot(mine)) => pool.offer_piece_allocation(piece, given, mine, options),
            (Self::Bundle(bundle), FilledPayload::Own(mine)) => bundle.offer_piece_with(piece, given, mine, options),
            (Self::Bundle(bundle), FilledPayload::Slot(mine)) => {
                bundle.offer_piece_allocation(piece, given, mine, options)
            }
        }
    }
}

impl GivenPiece<'_, '_> {
    fn offer(self, py: Python<'_>, pool: &Pool, target: PieceTarget<'_>) -> PyResult<()> {
        let layout = layout::read(self.layout)?;
        let rank = layout::rank_of(py, &layout, self.rank, self.comm)?;
        let piece = |element: Element| ArrayPiece {
            layout: &layout,
            element,
            rank,
            epoch: self.epoch,
        };
        let lists = self.attributes.lists(py)?;
        let given = self.attributes.given(py, &lists)?;
        if let Ok(allocation) = self.data.cast::<PyAllocation>() {
            let piece = piece(element_of(py, allocation.get(), self.dtype)?);
            let filled = allocation.get().take(py)?;
            return offering(py, pool, || target.offer(&piece, &given, filled, self.options));
        }
        let (flat, dtype) = flat(self.data, &layout, rank, self.dtype)?;
        let lent = LentBuffer::new(PyUntypedBuffer::get(&flat)?);
        let piece = piece(dtype.parse().or_raise(py)?);
        let mine = FilledPayload::Own(lent.bytes());
        offering(py, pool, || target.offer(&piece, &given, mine, self.options))
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
