//! What maps are drawn of: buffers in and out, while other threads of Python's run.

use junctura_values::{Colour, Ink, Line, Stroke, blend, isolines};
use pyo3::buffer::PyUntypedBuffer;
use pyo3::prelude::*;
use pyo3::types::PyByteArray;
use zerocopy::{FromBytes, IntoBytes};

use crate::buffer::{Lent, LentMut, are_apart};
use crate::error::invalid;

/// Pixels that lines touch, and how much of each is covered; of each line the pixels that it runs through.
type Found<'py> = (
    Bound<'py, PyByteArray>,
    Bound<'py, PyByteArray>,
    Vec<Bound<'py, PyByteArray>>,
);

/// Lines of equal value on a raster in single precision, in rows of so many pixels.
///
/// Lines are values, upwards, each with how far crossings are from the edges at least; the stroke is its width, at which
/// distance lines fade, and how small a change is none. Pixels are whole numbers of 64 bits.
#[pyfunction]
#[pyo3(name = "_isolines")]
pub(crate) fn lines_of<'py>(
    py: Python<'py>,
    values: &Bound<'py, PyAny>,
    wide: usize,
    lines: Vec<(f32, usize)>,
    stroke: (f32, f32, f32),
) -> PyResult<Found<'py>> {
    let buffer = PyUntypedBuffer::get(values)?;
    if !buffer.is_c_contiguous() {
        return Err(wrong(py));
    }
    let values = Lent::new(buffer);
    let values = <[f32]>::ref_from_bytes(values.bytes()).map_err(|_| wrong(py))?;
    let lines: Vec<Line> = lines
        .into_iter()
        .map(|(value, margin)| Line { value, margin })
        .collect();
    let (width, fade, flat) = stroke;
    let found = py.detach(|| isolines(values, wide, &lines, Stroke { width, fade, flat }));
    let crossings = found.crossings.iter().map(|one| PyByteArray::new(py, one.as_bytes()));
    Ok((
        PyByteArray::new(py, found.pixels.as_bytes()),
        PyByteArray::new(py, found.cover.as_bytes()),
        crossings.collect(),
    ))
}

/// Puts ink onto pixels of four bytes: in one color, or in a light one where the colors of `against` are dark, and in a
/// dark one where they are light.
#[pyfunction]
#[pyo3(name = "_blend", signature = (colours, pixels, cover, inks, against=None))]
pub(crate) fn put_ink(
    py: Python<'_>,
    colours: &Bound<'_, PyAny>,
    pixels: &Bound<'_, PyAny>,
    cover: &Bound<'_, PyAny>,
    inks: (Colour, Colour),
    against: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let written = [PyUntypedBuffer::get(colours)?];
    let read = [Some(pixels), Some(cover), against];
    let read: Vec<PyUntypedBuffer> = read
        .into_iter()
        .flatten()
        .map(PyUntypedBuffer::get)
        .collect::<PyResult<_>>()?;
    if !are_apart(&read, &written) || read.iter().any(|buffer| !buffer.is_c_contiguous()) {
        return Err(invalid(
            py,
            "arrays",
            "expected arrays without gaps that do not overlap",
        ));
    }
    let [colours] = written;
    let mut colours = LentMut::new(colours)?;
    let read: Vec<Lent> = read.into_iter().map(Lent::new).collect();
    let (pixels, cover, against) = (&read[0], &read[1], read.get(2));
    let pixels = <[u64]>::ref_from_bytes(pixels.bytes()).map_err(|_| wrong(py))?;
    let cover = <[f32]>::ref_from_bytes(cover.bytes()).map_err(|_| wrong(py))?;
    let (light, dark) = inks;
    let ink = match against {
        None => Ink::One(light),
        Some(against) => Ink::Contrast {
            against: against.bytes(),
            light,
            dark,
        },
    };
    let into = colours.bytes();
    if py.detach(|| blend(into, pixels, cover, ink)) {
        return Ok(());
    }
    Err(invalid(py, "pixels", "not all are there"))
}

fn wrong(py: Python<'_>) -> PyErr {
    invalid(
        py,
        "arrays",
        "expected pixels of 64 bits, and values in single precision without gaps",
    )
}
