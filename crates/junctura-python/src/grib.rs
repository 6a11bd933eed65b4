//! What a GRIB message announces, compared with what it has: before ecCodes is asked.

use junctura_grib::{Fault, GribError, Message, SimplePacked};
use junctura_model::{Code, Error};
use junctura_values::{SimplePacking, Value};
use pyo3::buffer::PyUntypedBuffer;
use pyo3::prelude::*;
use zerocopy::{FromBytes, IntoBytes};

use crate::buffer::LentMut;
use crate::error::{invalid, raise};

/// Other threads of Python's run while so many values are unpacked.
const POINTS_DETACHED: usize = 1 << 12;

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

/// How many points a message in simple packing has; None if it has another packing, or its values are not in it for
/// certain.
#[pyfunction]
#[pyo3(name = "_simple_points")]
pub(crate) fn simple_points(py: Python<'_>, message: &[u8]) -> PyResult<Option<u64>> {
    let message = Message::new(message).map_err(|error| corrupt(py, &error))?;
    Ok(message.simple_packed().map(|packed| packed.points))
}

/// Unpacks the values of a message in simple packing into an array in single or double precision that has an element
/// for each point; missing values are NaN.
#[pyfunction]
#[pyo3(name = "_unpack")]
pub(crate) fn unpack(py: Python<'_>, message: &[u8], into: &Bound<'_, PyAny>) -> PyResult<()> {
    let message = Message::new(message).map_err(|error| corrupt(py, &error))?;
    let array = PyUntypedBuffer::get(into)?;
    let width = array.item_size();
    let mut lent = LentMut::new(array)?;
    let is_unpacked = message.simple_packed().is_some_and(|packed| match width {
        8 => unpack_as::<f64>(py, &packed, lent.bytes()),
        4 => unpack_as::<f32>(py, &packed, lent.bytes()),
        _ => false,
    });
    if is_unpacked {
        return Ok(());
    }
    let cause = "expected a message in simple packing, and memory for its points in single or double precision";
    Err(invalid(py, "array", cause))
}

/// False if `bytes` are not memory for as many values as there are points.
fn unpack_as<T>(py: Python<'_>, packed: &SimplePacked<'_>, bytes: &mut [u8]) -> bool
where
    T: Value + FromBytes + IntoBytes + Send,
{
    let Ok(into) = <[T]>::mut_from_bytes(bytes) else {
        return false;
    };
    if into.len() as u64 != packed.points {
        return false;
    }
    let packing = SimplePacking {
        reference: packed.reference,
        binary_scale: packed.binary_scale,
        decimal_scale: packed.decimal_scale,
        bits: packed.bits,
    };
    let is_short = into.len() < POINTS_DETACHED;
    let mut run = || match packed.bitmap {
        Some(bitmap) => packing.unpack_by_bitmap(packed.data, bitmap, into),
        None => packing.unpack(packed.data, into),
    };
    if is_short { run() } else { py.detach(run) }
}

fn corrupt(py: Python<'_>, error: &GribError) -> PyErr {
    let code = match error.fault {
        Fault::Parallels(1..) => Code::TooLarge,
        _ => Code::Corrupt,
    };
    raise(py, &Error::new(code, "GRIB message", error.to_string()))
}
