//! Weights between grids, and courses of steps, as Python has them: buffers in and out, and threads.
//!
//! `junctura.remap` is what users see; it makes arrays of whatever it is given, and these functions take their bytes.

use std::ops::Range;
use std::thread;

use junctura::remap::{
    ApplyOptions, CourseAnswer, GridCells, NormalizeBy, TimeCourse, TimeMethod, WeightLink, Weights,
};
use junctura_model::{Code, Error, Result};
use pyo3::buffer::PyUntypedBuffer;
use pyo3::prelude::*;
use pyo3::types::PyByteArray;
use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::conversion::buffer::LentBuffer;
use crate::runtime::error::{OrRaise, invalid};

/// Fewer links than these are not worth a thread.
const LINKS_PER_THREAD: usize = 1 << 16;

/// Weights from one grid to another; `junctura.remap.Weights` is what users have.
#[pyclass(module = "junctura._native", name = "_Weights", frozen)]
pub(crate) struct GridWeights(Weights);

/// The cells of a grid in Python: areas, fractions, mask; empty if unknown.
type Known<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>, Bound<'py, PyAny>);

#[pymethods]
impl GridWeights {
    /// Of target points, source points (64-bit integers) and weights (doubles), as buffers.
    #[new]
    #[pyo3(signature = (links, source_shape, target_shape, source, target, by_fraction))]
    fn new(
        py: Python<'_>,
        links: Known<'_>,
        source_shape: Vec<u64>,
        target_shape: Vec<u64>,
        source: Known<'_>,
        target: Known<'_>,
        by_fraction: bool,
    ) -> PyResult<Self> {
        let buffers = [lent(&links.0)?, lent(&links.1)?, lent(&links.2)?];
        let [targets, sources] = [values::<i64>(py, &buffers[0])?, values(py, &buffers[1])?];
        let parts = values::<f64>(py, &buffers[2])?;
        let [source, target] = [cells(py, &source)?, cells(py, &target)?];
        let make = || {
            let links: Vec<WeightLink> = targets
                .iter()
                .zip(sources)
                .zip(parts)
                .map(|((&target, &source), &weight)| WeightLink {
                    // One that is negative is of no point, and so it is when it is read without its sign.
                    target: target as u64,
                    source: source as u64,
                    weight,
                })
                .collect();
            Weights::new(&links, &source_shape, &target_shape)?.with_cells(source, target)
        };
        let weights = py.detach(make).or_raise(py)?;
        Ok(Self(weights.by_fraction(by_fraction)))
    }

    /// The weights in the bytes of a file: `docs/formats/weights.md`.
    #[staticmethod]
    fn decode(py: Python<'_>, bytes: &Bound<'_, PyAny>) -> PyResult<Self> {
        let lent = lent(bytes)?;
        let bytes = values::<u8>(py, &lent)?;
        py.detach(|| Weights::decode(bytes)).or_raise(py).map(Self)
    }

    /// The bytes of a file.
    fn encode<'py>(&self, py: Python<'py>) -> Bound<'py, PyByteArray> {
        let bytes = py.detach(|| self.0.encode());
        PyByteArray::new(py, &bytes)
    }

    #[getter]
    fn source_shape(&self) -> Vec<u64> {
        self.0.source_shape().to_vec()
    }

    #[getter]
    fn target_shape(&self) -> Vec<u64> {
        self.0.target_shape().to_vec()
    }

    #[getter]
    fn by_fraction(&self) -> bool {
        self.0.is_by_fraction()
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| other.get().0 == self.0)
    }

    /// Target points, source points and weights, by target and then by source.
    fn links<'py>(&self, py: Python<'py>) -> [Bound<'py, PyByteArray>; 3] {
        let links: Vec<WeightLink> = self.0.links().collect();
        let bytes = |of: &dyn Fn(&WeightLink) -> [u8; 8]| {
            let all: Vec<u8> = links.iter().flat_map(of).collect();
            PyByteArray::new(py, &all)
        };
        [
            bytes(&|link| link.target.to_ne_bytes()),
            bytes(&|link| link.source.to_ne_bytes()),
            bytes(&|link| link.weight.to_ne_bytes()),
        ]
    }

    /// Areas, fractions and mask of the source, and of the target.
    fn cells<'py>(&self, py: Python<'py>) -> [[Bound<'py, PyByteArray>; 3]; 2] {
        let (source, target) = self.0.cells();
        [source, target].map(|cells| {
            let mask: Vec<u8> = cells.mask.iter().map(|&takes_part| u8::from(takes_part)).collect();
            [
                PyByteArray::new(py, cells.areas.as_bytes()),
                PyByteArray::new(py, cells.fractions.as_bytes()),
                PyByteArray::new(py, &mask),
            ]
        })
    }

    /// One field behind another, as doubles, at target points `start` to `stop`.
    #[allow(clippy::too_many_arguments, reason = "all arguments from Python")]
    fn apply<'py>(
        &self,
        py: Python<'py>,
        fields: &Bound<'py, PyAny>,
        start: usize,
        stop: usize,
        norm: &str,
        missing: Option<f64>,
        threads: usize,
    ) -> PyResult<Bound<'py, PyByteArray>> {
        let lent = lent(fields)?;
        let fields = values::<f64>(py, &lent)?;
        let how = how(py, norm, missing)?;
        let points = self.0.sources().max(1);
        if start > stop || stop > self.0.targets() || !fields.len().is_multiple_of(points) {
            let cause = format!("{} values, target points {start}..{stop}", fields.len());
            return Err(invalid(py, "weights", cause));
        }
        let count = fields.len() / points;
        let length = count * (stop - start);
        PyByteArray::new_with(py, length * size_of::<f64>(), |bytes| {
            let room = <[f64]>::mut_from_bytes(bytes).map_err(|_| invalid(py, "weights", "memory is not aligned"))?;
            let threads = self.threads(threads, count);
            py.detach(|| self.each(fields, start..stop, room, how, threads))
                .or_raise(py)
        })
    }

    /// The integral of a field, the integral on the target, and their difference.
    fn conserved(
        &self,
        py: Python<'_>,
        field: &Bound<'_, PyAny>,
        norm: &str,
        missing: Option<f64>,
    ) -> PyResult<(f64, f64, f64)> {
        let lent = lent(field)?;
        let field = values::<f64>(py, &lent)?;
        let how = how(py, norm, missing)?;
        let found = py.detach(|| self.0.conserved(field, how)).or_raise(py)?;
        Ok((found.source, found.target, found.relative_error))
    }

    /// Which stretches of the source some target points need.
    fn sources_of(&self, py: Python<'_>, start: usize, stop: usize) -> PyResult<Vec<(u64, u64)>> {
        let stretches = py.detach(|| self.0.sources_of(start..stop)).or_raise(py)?;
        Ok(stretches
            .into_iter()
            .map(|stretch| (stretch.start, stretch.end))
            .collect())
    }

    /// The rows of some target points, and the stretches of the source that they need.
    fn part(&self, py: Python<'_>, start: usize, stop: usize) -> PyResult<(Self, Vec<(u64, u64)>)> {
        let (part, stretches) = py.detach(|| self.0.part(start..stop)).or_raise(py)?;
        let pairs = stretches.into_iter().map(|stretch| (stretch.start, stretch.end));
        Ok((Self(part), pairs.collect()))
    }
}

impl GridWeights {
    /// How many threads: those that are asked for, or as many as there are cores and work for.
    fn threads(&self, asked: usize, fields: usize) -> usize {
        if asked > 0 {
            return asked;
        }
        let work = self.0.len().saturating_mul(fields) / LINKS_PER_THREAD;
        thread::available_parallelism().map_or(1, usize::from).min(work).max(1)
    }

    /// Fills `room`, which is dealt out over threads in stretches.
    fn each(
        &self,
        fields: &[f64],
        rows: Range<usize>,
        room: &mut [f64],
        how: ApplyOptions,
        threads: usize,
    ) -> Result<()> {
        let stretch = room.len().div_ceil(threads).max(1);
        let mut parts = room.chunks_mut(stretch).enumerate();
        let Some((_, first)) = parts.next() else {
            return Ok(());
        };
        thread::scope(|scope| {
            let others: Vec<_> = parts
                .map(|(number, part)| {
                    let rows = rows.clone();
                    scope.spawn(move || self.stretch(fields, rows, number * stretch, part, how))
                })
                .collect();
            self.stretch(fields, rows.clone(), 0, first, how)?;
            others.into_iter().try_for_each(|other| {
                let ended = other.join();
                ended.unwrap_or_else(|_| Err(Error::new(Code::Unavailable, "weights", "a thread has died")))
            })
        })
    }

    /// Values from one on, of whichever fields they are.
    fn stretch(
        &self,
        fields: &[f64],
        rows: Range<usize>,
        from: usize,
        mut room: &mut [f64],
        how: ApplyOptions,
    ) -> Result<()> {
        let (points, mut at) = (self.0.sources(), from);
        while !room.is_empty() {
            let (field, row) = (at / rows.len(), at % rows.len());
            let length = room.len().min(rows.len() - row);
            let (part, rest) = room.split_at_mut(length);
            let first = rows.start + row;
            let source = &fields[field * points..(field + 1) * points];
            self.0.apply(source, first..first + length, part, how)?;
            (room, at) = (rest, at + length);
        }
        Ok(())
    }
}

/// Which steps make a field at a wanted time; `junctura.remap.at_times` is what users have.
#[pyclass(module = "junctura._native", name = "_Course")]
pub(crate) struct StepCourse(TimeCourse);

#[pymethods]
impl StepCourse {
    #[new]
    fn new(py: Python<'_>, method: &str, window: i64, lag: i64) -> PyResult<Self> {
        let method = match method {
            "nearest" => TimeMethod::Nearest,
            "linear" => TimeMethod::Linear,
            "mean" => TimeMethod::Mean(window),
            "sum" => TimeMethod::Sum(window),
            other => {
                let cause = format!("{other:?} is not one of nearest, linear, mean, sum");
                return Err(invalid(py, "method", cause));
            }
        };
        Ok(Self(TimeCourse::new(method, lag).or_raise(py)?))
    }

    /// A step has arrived.
    fn push(&mut self, py: Python<'_>, time: i64) -> PyResult<u64> {
        self.0.push(time).or_raise(py)
    }

    /// No more steps will arrive.
    fn end(&mut self) {
        self.0.end();
    }

    /// The numbers of steps and how much of each, and what to divide by; None while that is not known.
    #[allow(clippy::type_complexity, reason = "a tuple for Python")]
    fn ask(&mut self, py: Python<'_>, wanted: i64) -> PyResult<Option<(Vec<(u64, f64)>, f64)>> {
        Ok(match self.0.ask(wanted).or_raise(py)? {
            CourseAnswer::NotYet => None,
            CourseAnswer::Made(uses) => Some((uses.steps, uses.divisor)),
        })
    }

    /// The first step that may still be needed.
    fn forget(&mut self, wanted: i64) -> u64 {
        self.0.forget(wanted)
    }
}

fn lent(given: &Bound<'_, PyAny>) -> PyResult<LentBuffer> {
    let buffer = PyUntypedBuffer::get(given)?;
    if !buffer.is_c_contiguous() {
        return Err(invalid(given.py(), "weights", "an array is not contiguous"));
    }
    Ok(LentBuffer::new(buffer))
}

fn values<'a, T: FromBytes + Immutable>(py: Python<'_>, lent: &'a LentBuffer) -> PyResult<&'a [T]> {
    if lent.bytes().is_empty() {
        return Ok(&[]);
    }
    <[T]>::ref_from_bytes(lent.bytes())
        .map_err(|_| invalid(py, "weights", "an array does not have 8 bytes for a value"))
}

fn cells(py: Python<'_>, known: &Known<'_>) -> PyResult<GridCells> {
    let [areas, fractions, mask] = [lent(&known.0)?, lent(&known.1)?, lent(&known.2)?];
    Ok(GridCells {
        areas: values(py, &areas)?.to_vec(),
        fractions: values(py, &fractions)?.to_vec(),
        mask: mask.bytes().iter().map(|&byte| byte != 0).collect(),
    })
}

fn how(py: Python<'_>, norm: &str, missing: Option<f64>) -> PyResult<ApplyOptions> {
    let norm = match norm {
        "whole" => NormalizeBy::Whole,
        "destarea" => NormalizeBy::Destination,
        "fracarea" => NormalizeBy::Fraction,
        other => {
            let cause = format!("{other:?} is not one of whole, destarea, fracarea");
            return Err(invalid(py, "norm", cause));
        }
    };
    Ok(ApplyOptions { norm, missing })
}
