//! What maps are drawn of: buffers in and out, while other threads of Python's run.

use junctura_values::{Colour, Ink, Line, Stroke, blend, isolines};
use pyo3::buffer::PyUntypedBuffer;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use zerocopy::{FromBytes, IntoBytes};

use crate::buffer::{Lent, LentMut, are_apart};
use crate::error::invalid;

/// Draws lines of equal value, each with a halo, onto pixels of four bytes, by the values of these in single precision, in
/// rows of so many.
///
/// Lines are values, upwards, each with how far crossings are from the edges at least, and the inks of the line and its
/// halo; the stroke is its width, at which distance lines fade, how small a change is none, how much of what is below
/// lines cover, how far the halo reaches beyond them, and how much of what is below the halo covers. Returns of each line
/// the pixels that it runs through, as whole numbers of 64 bits.
#[pyfunction]
#[pyo3(name = "_isolines")]
pub(crate) fn draw_lines<'py>(
    py: Python<'py>,
    colours: &Bound<'py, PyAny>,
    values: &Bound<'py, PyAny>,
    wide: usize,
    lines: Vec<(f32, usize, (Colour, Colour))>,
    stroke: (f32, f32, f32, f32, f32, f32),
) -> PyResult<Vec<Bound<'py, PyBytes>>> {
    let (mut colours, read) = borrow(py, colours, &[values])?;
    let values = <[f32]>::ref_from_bytes(read[0].bytes()).map_err(|_| wrong(py))?;
    let lines: Vec<Line> = lines
        .into_iter()
        .map(|(value, margin, (line, halo))| Line {
            value,
            margin,
            ink: Ink { line, halo },
        })
        .collect();
    let (width, fade, flat, strength, halo, veil) = stroke;
    let stroke = Stroke {
        width,
        fade,
        flat,
        strength,
        halo,
        veil,
    };
    let into = colours.bytes();
    let crossings = py.detach(|| isolines(into, values, wide, &lines, stroke));
    let crossings = crossings.ok_or_else(|| invalid(py, "pixels", "not as many as values"))?;
    Ok(crossings.iter().map(|one| PyBytes::new(py, one.as_bytes())).collect())
}

/// Puts lines and their halos onto pixels of four bytes, of each of which both cover a part, in their inks.
#[pyfunction]
#[pyo3(name = "_blend")]
pub(crate) fn put_ink(
    py: Python<'_>,
    colours: &Bound<'_, PyAny>,
    pixels: &Bound<'_, PyAny>,
    covers: (Bound<'_, PyAny>, Bound<'_, PyAny>),
    inks: (Colour, Colour),
) -> PyResult<()> {
    let (mut colours, read) = borrow(py, colours, &[pixels, &covers.0, &covers.1])?;
    let pixels = <[u64]>::ref_from_bytes(read[0].bytes()).map_err(|_| wrong(py))?;
    let cover = |number: usize| <[f32]>::ref_from_bytes(read[number].bytes()).map_err(|_| wrong(py));
    let (on_line, on_halo) = (cover(1)?, cover(2)?);
    let (line, halo) = inks;
    let into = colours.bytes();
    if py.detach(|| blend(into, pixels, on_line, on_halo, Ink { line, halo })) {
        return Ok(());
    }
    Err(invalid(py, "pixels", "not all are there"))
}

/// What is written to, and what is read.
fn borrow<'py>(
    py: Python<'py>,
    written: &Bound<'py, PyAny>,
    read: &[&Bound<'py, PyAny>],
) -> PyResult<(LentMut, Vec<Lent>)> {
    let written = [PyUntypedBuffer::get(written)?];
    let read: Vec<PyUntypedBuffer> = read
        .iter()
        .map(|one| PyUntypedBuffer::get(one))
        .collect::<PyResult<_>>()?;
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
