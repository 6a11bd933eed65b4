//! Drawing of maps: buffers in and out, while other Python threads run.

use junctura_values::{
    ColorBar, Colour, ContourLine, LineInk, LineStroke, PixelCorners, PixelPalette, bilinear, blend, dim, isolines,
    shade,
};
use pyo3::buffer::PyUntypedBuffer;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use zerocopy::{FromBytes, IntoBytes};

use crate::conversion::buffer::{LentBuffer, LentMut, are_apart};
use crate::runtime::error::invalid;

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
    let lines: Vec<ContourLine> = lines
        .into_iter()
        .map(|(value, margin, (line, halo))| ContourLine {
            value,
            margin,
            ink: LineInk { line, halo },
        })
        .collect();
    let (width, fade, flat, strength, halo, veil) = stroke;
    let stroke = LineStroke {
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
    if py.detach(|| blend(into, pixels, on_line, on_halo, LineInk { line, halo })) {
        return Ok(());
    }
    Err(invalid(py, "pixels", "not all are there"))
}

/// Writes the bilinear values of pixels, in single precision, of a field in double precision.
///
/// Each pixel has the places (whole numbers of 32 bits) of the values to the north-west, north-east, south-west and
/// south-east, and its distances from the northern row, and from the western column in both rows.
#[pyfunction]
#[pyo3(name = "_sample")]
pub(crate) fn sample(
    py: Python<'_>,
    made: &Bound<'_, PyAny>,
    values: &Bound<'_, PyAny>,
    places: [Bound<'_, PyAny>; 4],
    parts: [Bound<'_, PyAny>; 3],
) -> PyResult<()> {
    let [a, b, c, d] = &places;
    let [south, north_east, south_east] = &parts;
    let (mut made, read) = borrow(py, made, &[values, a, b, c, d, south, north_east, south_east])?;
    let of = |number: usize| <[u32]>::ref_from_bytes(read[number].bytes()).map_err(|_| mistyped(py));
    let part = |number: usize| <[f32]>::ref_from_bytes(read[number].bytes()).map_err(|_| mistyped(py));
    let values = <[f64]>::ref_from_bytes(read[0].bytes()).map_err(|_| mistyped(py))?;
    let corners = PixelCorners {
        places: [of(1)?, of(2)?, of(3)?, of(4)?],
        south: part(5)?,
        east: [part(6)?, part(7)?],
    };
    let into = <[f32]>::mut_from_bytes(made.bytes()).map_err(|_| mistyped(py))?;
    if py.detach(|| bilinear(values, &corners, into)) {
        return Ok(());
    }
    Err(invalid(py, "pixels", "expected places within the field"))
}

/// A color bar: the ends and the place of colors, or edges of classes and the color of each.
#[derive(FromPyObject)]
pub(crate) enum MapBar {
    Range(f32, f32, f32, f32),
    Classes(Vec<f32>, Vec<u16>),
}

/// Writes the colors of values, in single precision, into pixels of four bytes, in rows of `wide`.
///
/// `pixels` are whole numbers of 64 bits; without them there is a value for each pixel. The palette is a table of colors
/// of four bytes, the last two of which are those of missing values and of the lines of a hatch over these; `hatch` is
/// the distance and the width of these lines.
#[pyfunction]
#[pyo3(name = "_shade")]
pub(crate) fn put_colours(
    py: Python<'_>,
    colours: &Bound<'_, PyAny>,
    wide: usize,
    values: (Bound<'_, PyAny>, Option<Bound<'_, PyAny>>),
    bar: MapBar,
    palette: &Bound<'_, PyAny>,
    hatch: [usize; 2],
) -> PyResult<()> {
    let (values, pixels) = &values;
    let given: Vec<&Bound<'_, PyAny>> = [values, palette].into_iter().chain(pixels).collect();
    let (mut colours, read) = borrow(py, colours, &given)?;
    let values = <[f32]>::ref_from_bytes(read[0].bytes()).map_err(|_| mistyped(py))?;
    let palette = <[u32]>::ref_from_bytes(read[1].bytes()).map_err(|_| mistyped(py))?;
    let pixels = read.get(2).map(|one| <[u64]>::ref_from_bytes(one.bytes())).transpose();
    let pixels = pixels.map_err(|_| mistyped(py))?;
    let Some((table, missing)) = palette.split_last_chunk() else {
        return Err(mistyped(py));
    };
    let palette = PixelPalette {
        table,
        missing: *missing,
        hatch,
    };
    let bar = match &bar {
        MapBar::Range(low, factor, first, span) => ColorBar::Range {
            low: *low,
            factor: *factor,
            first: *first,
            span: *span,
        },
        MapBar::Classes(edges, entries) => ColorBar::Classes { edges, entries },
    };
    let into = <[u32]>::mut_from_bytes(colours.bytes()).map_err(|_| mistyped(py))?;
    if py.detach(|| shade(into, wide, values, pixels, &bar, &palette)) {
        return Ok(());
    }
    Err(invalid(
        py,
        "pixels",
        "expected a value for each, and a color for each class",
    ))
}

/// Multiplies red, green and blue of pixels of four bytes by 256ths, whole numbers of 16 bits.
#[pyfunction]
#[pyo3(name = "_dim")]
pub(crate) fn darken(py: Python<'_>, colours: &Bound<'_, PyAny>, light: &Bound<'_, PyAny>) -> PyResult<()> {
    let (mut colours, read) = borrow(py, colours, &[light])?;
    let light = <[u16]>::ref_from_bytes(read[0].bytes()).map_err(|_| mistyped(py))?;
    let into = colours.bytes();
    if py.detach(|| dim(into, light)) {
        return Ok(());
    }
    Err(invalid(py, "pixels", "not as many as numbers"))
}

/// The outputs and the inputs.
fn borrow<'py>(
    py: Python<'py>,
    written: &Bound<'py, PyAny>,
    read: &[&Bound<'py, PyAny>],
) -> PyResult<(LentMut, Vec<LentBuffer>)> {
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
    Ok((LentMut::new(written)?, read.into_iter().map(LentBuffer::new).collect()))
}

fn wrong(py: Python<'_>) -> PyErr {
    invalid(
        py,
        "arrays",
        "expected pixels of 64 bits, and values in single precision",
    )
}

fn mistyped(py: Python<'_>) -> PyErr {
    let cause =
        "expected places of 32 bits, pixels of 64 bits, values in single precision, and fields in double precision";
    invalid(py, "arrays", cause)
}
