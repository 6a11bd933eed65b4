//! What a GRIB message announces, compared with what it has: before ecCodes is asked.

use junctura_grib::{Fault, GribError, Message};
use junctura_model::{Code, Error};
use pyo3::prelude::*;

use crate::error::raise;

/// Of the message that `message` begins with: bytes, fields; of its first field: points or coefficients, whether all
/// values are in the message for certain, and whether their places are those of a regular grid.
#[pyfunction]
#[pyo3(name = "_packed")]
pub(crate) fn packed(py: Python<'_>, message: &[u8]) -> PyResult<(usize, u32, u64, bool, bool)> {
    let found = Message::new(message).and_then(|message| Ok((message, message.packed()?)));
    let (message, packed) = found.map_err(|error| corrupt(py, &error))?;
    let points = packed.points.max(packed.values);
    let nbytes = message.bytes().len();
    Ok((nbytes, message.fields(), points, packed.is_proven, packed.is_regular))
}

/// Number and first byte of each section of a message's first field.
#[pyfunction]
#[pyo3(name = "_sections")]
pub(crate) fn sections(py: Python<'_>, message: &[u8]) -> PyResult<Vec<(u8, usize)>> {
    let found = Message::new(message).map_err(|error| corrupt(py, &error))?;
    Ok(found.sections().collect())
}

fn corrupt(py: Python<'_>, error: &GribError) -> PyErr {
    let code = match error.fault {
        Fault::Parallels(1..) => Code::TooLarge,
        _ => Code::Corrupt,
    };
    raise(py, &Error::new(code, "GRIB message", error.to_string()))
}
