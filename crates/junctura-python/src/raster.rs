//! What maps are drawn of: buffers in and out, while other threads of Python's run.

use junctura_values::{Colour, Ink, Line, Stroke, blend, isolines};
use pyo3::buffer::PyUntypedBuffer;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use zerocopy::{FromBytes, IntoBytes};

use crate::buffer::{Lent, LentMut, are_apart};
use crate::error::invalid;

/// Draws lines of equal value onto pixels of four bytes, by the values of these in single precision, in rows of so many:
/// light where the second colors are dark, and dark where they are light.
///
/// Lines are values, upwards, each with how far crossings are from the edges at least; the stroke is its width, at which
/// distance lines fade, how small a change is none, and how much of what is below lines cover. Returns of each line the
/// pixels that it runs through, as whole numbers of 64 bits.
#[pyfunction]
#[pyo3(name = "_isolines")]
pub(crate) fn draw_lines<'py>(
    py: Python<'py>,
    pixels: (Bound<'py, PyAny>, Bound<'py, PyAny>),
    values: &Bound<'py, PyAny>,
    wide: usize,
    lines: Vec<(f32, usize)>,
    stroke: (f32, f32, f32, f32),
    inks: (Colour, Colour),
) -> PyResult<Vec<Bound<'py, PyBytes>>> {
    let ((colours, against), (light, dark)) = (pixels, inks);
    let (mut colours, read) = borrow(py, &colours, [Some(values), Some(&against), None])?;
    let values = <[f32]>::ref_from_bytes(read[0].bytes()).map_err(|_| wrong(py))?;
    let lines: Vec<Line> = lines
        .into_iter()
        .map(|(value, margin)| Line { value, margin })
        .collect();
    let (width, fade, flat, strength) = stroke;
    let stroke = Stroke {
        width,
        fade,
        flat,
        strength,
    };
    let ink = Ink::Contrast {
        against: read[1].bytes(),
        light,
        dark,
    };
    let into = colours.bytes();
    let crossings = py.detach(|| isolines(into, values, wide, &lines, stroke, ink));
    let crossings = crossings.ok_or_else(|| invalid(py, "pixels", "not as many as values"))?;
    Ok(crossings.iter().map(|one| PyBytes::new(py, one.as_bytes())).collect())
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
    let (mut colours, read) = borrow(py, colours, [Some(pixels), Some(cover), against])?;
    let pixels = <[u64]>::ref_from_bytes(read[0].bytes()).map_err(|_| wrong(py))?;
    let cover = <[f32]>::ref_from_bytes(read[1].bytes()).map_err(|_| wrong(py))?;
    let (light, dark) = inks;
    let ink = match read.get(2) {
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

/// What is written to, and what is read.
fn borrow<'py>(
    py: Python<'py>,
    written: &Bound<'py, PyAny>,
    read: [Option<&Bound<'py, PyAny>>; 3],
) -> PyResult<(LentMut, Vec<Lent>)> {
    let written = [PyUntypedBuffer::get(written)?];
    let read = read.into_iter().flatten().map(PyUntypedBuffer::get);
    let read: Vec<PyUntypedBuffer> = read.collect::<PyResult<_>>()?;
    if !are_apart(&read, &written) || read.iter().any(|buffer| !buffer.is_c_contiguous()) {
        return Err(invalid(
            py,
            "arrays",
            "expected arrays without gaps that do not overlap",
        ));
    }
    let [written] = written;
    Ok((LentMut::new(written)?, read.into_iter().map(Lent::new).collect()))
}

fn wrong(py: Python<'_>) -> PyErr {
    invalid(
        py,
        "arrays",
        "expected pixels of 64 bits, and values in single precision",
    )
}
