//! Compares the announcements of a GRIB message with its bytes, before ecCodes reads the message.

use std::mem::MaybeUninit;
use std::sync::OnceLock;

use junctura_grib::{GribError, Message, MessageFault, SimpleOutline, SimplePacked};
use junctura_model::{Code, Error, InstructionSet};
use junctura_values::{SimplePacking, ValueExtent, ValuesMut, bitmap_of};
use pyo3::buffer::PyUntypedBuffer;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use zerocopy::FromBytes;

use crate::conversion::buffer::{LentBuffer, LentMut, filled_bytes};
use crate::runtime::error::{invalid, raise};

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
    let packed = message.simple_packed();
    Ok(packed.and_then(|packed| packing(&packed).is_supported().then_some(packed.points)))
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
    let into = match width {
        8 => <[f64]>::mut_from_bytes(lent.bytes()).ok().map(ValuesMut::Double),
        4 => <[f32]>::mut_from_bytes(lent.bytes()).ok().map(ValuesMut::Single),
        _ => None,
    };
    let both = message.simple_packed().zip(into);
    if both.is_some_and(|(packed, into)| unpack_into(py, &packed, into)) {
        return Ok(());
    }
    let cause = "expected a message in simple packing, and memory for its points in single or double precision";
    Err(invalid(py, "array", cause))
}

/// False if there is no memory for as many values as there are points, or the packing is not supported.
fn unpack_into(py: Python<'_>, packed: &SimplePacked<'_>, into: ValuesMut<'_>) -> bool {
    if into.count() as u64 != packed.points {
        return false;
    }
    let is_short = into.count() < POINTS_DETACHED;
    let run = || packing(packed).unpack(packed.data, packed.bitmap, into);
    if is_short { run() } else { py.detach(run) }
}

fn packing(packed: &SimplePacked<'_>) -> SimplePacking {
    SimplePacking {
        reference: packed.reference,
        binary_scale: packed.binary_scale,
        decimal_scale: packed.decimal_scale,
        bits: packed.bits,
    }
}

/// A message of edition 2 with other values: doubles, of which NaN is missing, in simple packing of so many bits. None
/// if the message, or the values, have no such packing: constants, for example.
#[pyfunction]
#[pyo3(name = "_with_values")]
pub(crate) fn with_values<'py>(
    py: Python<'py>,
    message: &[u8],
    values: &Bound<'py, PyAny>,
    bits: u32,
) -> PyResult<Option<Bound<'py, PyBytes>>> {
    let message = Message::new(message).map_err(|error| corrupt(py, &error))?;
    let buffer = PyUntypedBuffer::get(values)?;
    if !buffer.is_c_contiguous() {
        return Err(invalid(py, "values", "expected an array without gaps"));
    }
    let lent = LentBuffer::new(buffer);
    let values = <[f64]>::ref_from_bytes(lent.bytes());
    let values = values.map_err(|_| invalid(py, "values", "expected numbers in double precision"))?;
    let Some(new) = py.detach(|| NewMessage::plan(&message, values, bits)) else {
        return Ok(None);
    };
    filled_bytes(py, new.length(), |into| new.write(into))
}

/// A message whose integers are not written yet.
struct NewMessage<'a> {
    values: &'a [f64],
    extent: ValueExtent,
    packing: SimplePacking,
    head: Vec<u8>,
    nbytes: usize,
}

impl<'a> NewMessage<'a> {
    fn plan(message: &Message<'_>, values: &'a [f64], bits: u32) -> Option<Self> {
        let extent = ValueExtent::new(instructions(), values);
        let packing = SimplePacking::of_extent(&extent, bits)?;
        let nbytes = packing.nbytes(extent.present)?;
        let bitmap = (extent.present < values.len()).then(|| bitmap_of(values));
        let head = message.head_of_simple(&SimpleOutline {
            points: values.len() as u64,
            present: extent.present as u64,
            reference: packing.reference,
            binary_scale: packing.binary_scale,
            decimal_scale: packing.decimal_scale,
            bits: packing.bits,
            bitmap: bitmap.as_deref(),
            nbytes,
        })?;
        Some(Self {
            values,
            extent,
            packing,
            head,
            nbytes,
        })
    }

    fn length(&self) -> usize {
        self.head.len() + self.nbytes + Message::END.len()
    }

    /// Returns whether all of `into`, which has the length of the message, is written.
    fn write(&self, into: &mut [MaybeUninit<u8>]) -> bool {
        let (head, rest) = into.split_at_mut(self.head.len());
        let (integers, end) = rest.split_at_mut(self.nbytes);
        head.write_copy_of_slice(&self.head);
        end.write_copy_of_slice(Message::END);
        self.packing
            .pack(instructions(), self.values, self.extent.present, integers)
    }
}

/// The instructions that packing may use: `JUNCTURA_ISA`, a variable for tests, limits them.
fn instructions() -> InstructionSet {
    static SET: OnceLock<InstructionSet> = OnceLock::new();
    *SET.get_or_init(|| {
        let limit = std::env::var("JUNCTURA_ISA").ok();
        InstructionSet::of_this_machine().at_most(limit.as_deref())
    })
}

fn corrupt(py: Python<'_>, error: &GribError) -> PyErr {
    let code = match error.fault {
        MessageFault::Parallels(1..) => Code::TooLarge,
        _ => Code::Corrupt,
    };
    raise(py, &Error::new(code, "GRIB message", error.to_string()))
}
