//! Statistics of fields, and interpolation for products: buffers in and out, while other Python threads run.

use junctura_values::{EnsembleStatistic, SparseRows, ensemble};
use pyo3::buffer::PyUntypedBuffer;
use pyo3::prelude::*;
use zerocopy::FromBytes;

use crate::conversion::buffer::{LentBuffer, LentMut, are_apart};
use crate::runtime::error::invalid;

/// Writes statistics of ensemble members, double-precision arrays of one size, each into its own array.
///
/// A statistic is `sum`, `mean`, `spread`, `min`, `max`, `percentile` (with its percent), or the percentage of members
/// that are `above`, `below`, `at_least` or `at_most` a number.
#[pyfunction]
#[pyo3(name = "_ensemble")]
pub(crate) fn of_ensemble(
    py: Python<'_>,
    members: Vec<Bound<'_, PyAny>>,
    statistics: Vec<(String, f64)>,
    made: Vec<Bound<'_, PyAny>>,
) -> PyResult<()> {
    let wanted: Option<Vec<EnsembleStatistic>> = statistics
        .iter()
        .map(|(name, number)| statistic(name, *number))
        .collect();
    let wanted = wanted.ok_or_else(|| invalid(py, "statistics", "unknown statistic"))?;
    let read: Vec<PyUntypedBuffer> = members.iter().map(PyUntypedBuffer::get).collect::<PyResult<_>>()?;
    let written: Vec<PyUntypedBuffer> = made.iter().map(PyUntypedBuffer::get).collect::<PyResult<_>>()?;
    if !are_apart(&read, &written) || read.iter().any(|buffer| !buffer.is_c_contiguous()) {
        return Err(invalid(
            py,
            "arrays",
            "expected arrays without gaps that do not overlap",
        ));
    }
    let members: Vec<LentBuffer> = read.into_iter().map(LentBuffer::new).collect();
    let mut made: Vec<LentMut> = written.into_iter().map(LentMut::new).collect::<PyResult<_>>()?;
    let doubles = || invalid(py, "arrays", "expected numbers in double precision");
    let members: Option<Vec<&[f64]>> = members
        .iter()
        .map(|one| <[f64]>::ref_from_bytes(one.bytes()).ok())
        .collect();
    let members = members.ok_or_else(doubles)?;
    let into: Option<Vec<&mut [f64]>> = made
        .iter_mut()
        .map(|one| <[f64]>::mut_from_bytes(one.bytes()).ok())
        .collect();
    let mut into = into.ok_or_else(doubles)?;
    if py.detach(|| ensemble(&members, &wanted, &mut into)) {
        return Ok(());
    }
    Err(invalid(
        py,
        "arrays",
        "expected members, and arrays for statistics, of one size",
    ))
}

/// Writes weighted sums of values with a sparse matrix: row offsets (64-bit integers), column indices (32-bit
/// integers), and weights. Missing values follow the rule of MIR.
#[pyfunction]
#[pyo3(name = "_weighted_sums")]
pub(crate) fn weighted_sums(
    py: Python<'_>,
    made: &Bound<'_, PyAny>,
    matrix: [Bound<'_, PyAny>; 3],
    values: &Bound<'_, PyAny>,
) -> PyResult<()> {
    let [starts, columns, weights] = &matrix;
    let given = [starts, columns, weights, values].map(PyUntypedBuffer::get);
    let read: Vec<PyUntypedBuffer> = given.into_iter().collect::<PyResult<_>>()?;
    let written = [PyUntypedBuffer::get(made)?];
    if !are_apart(&read, &written) || read.iter().any(|buffer| !buffer.is_c_contiguous()) {
        return Err(invalid(
            py,
            "arrays",
            "expected arrays without gaps that do not overlap",
        ));
    }
    let [written] = written;
    let (mut made, read) = (
        LentMut::new(written)?,
        read.into_iter().map(LentBuffer::new).collect::<Vec<_>>(),
    );
    let wrong = || invalid(py, "arrays", "expected 64-bit starts, 32-bit places, and doubles");
    let doubles = |number: usize| <[f64]>::ref_from_bytes(read[number].bytes()).map_err(|_| wrong());
    let rows = SparseRows {
        starts: <[i64]>::ref_from_bytes(read[0].bytes()).map_err(|_| wrong())?,
        columns: <[u32]>::ref_from_bytes(read[1].bytes()).map_err(|_| wrong())?,
        weights: doubles(2)?,
    };
    let values = doubles(3)?;
    let into = <[f64]>::mut_from_bytes(made.bytes()).map_err(|_| wrong())?;
    if py.detach(|| rows.apply(values, into)) {
        return Ok(());
    }
    Err(invalid(py, "weights", "its parts do not fit together, or the values"))
}

fn statistic(name: &str, number: f64) -> Option<EnsembleStatistic> {
    Some(match name {
        "sum" => EnsembleStatistic::Sum,
        "mean" => EnsembleStatistic::Mean,
        "spread" => EnsembleStatistic::Spread,
        "min" => EnsembleStatistic::Min,
        "max" => EnsembleStatistic::Max,
        "percentile" => EnsembleStatistic::Percentile(number),
        "above" => EnsembleStatistic::Above(number),
        "below" => EnsembleStatistic::Below(number),
        "at_least" => EnsembleStatistic::AtLeast(number),
        "at_most" => EnsembleStatistic::AtMost(number),
        _ => return None,
    })
}
