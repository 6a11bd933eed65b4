//! Elements of a rank's memory as doubles, and back.

use std::borrow::Cow;

use junctura_layout::{Element, ElementKind};
use zerocopy::{FromBytes, IntoBytes};

/// Returns the elements as doubles; doubles that are aligned are not copied.
pub(super) fn doubles(bytes: &[u8], element: Element) -> Cow<'_, [f64]> {
    if element.kind == ElementKind::F32 {
        let floats = bytes.as_chunks::<4>().0.iter().copied().map(f32::from_ne_bytes);
        return Cow::Owned(floats.map(f64::from).collect());
    }
    match <[f64]>::ref_from_bytes(bytes) {
        Ok(aligned) => Cow::Borrowed(aligned),
        Err(_) => Cow::Owned(
            bytes
                .as_chunks::<8>()
                .0
                .iter()
                .copied()
                .map(f64::from_ne_bytes)
                .collect(),
        ),
    }
}

/// Returns the elements as doubles in place; `None`: they are of another type, or not aligned.
pub(super) fn doubles_mut(bytes: &mut [u8], element: Element) -> Option<&mut [f64]> {
    if element.kind == ElementKind::F32 {
        return None;
    }
    <[f64]>::mut_from_bytes(bytes).ok()
}

/// Returns doubles as elements; `room` is memory for those that need a conversion.
pub(super) fn bytes<'v>(values: &'v [f64], element: Element, room: &'v mut Vec<u8>) -> &'v [u8] {
    if element.kind != ElementKind::F32 {
        return values.as_bytes();
    }
    room.resize(values.len() * element.kind.bytes(), 0);
    write(values, element, room);
    room
}

/// Writes doubles as elements.
pub(super) fn write(values: &[f64], element: Element, into: &mut [u8]) {
    if element.kind == ElementKind::F32 {
        for (value, place) in values.iter().zip(into.as_chunks_mut::<4>().0) {
            *place = (*value as f32).to_ne_bytes();
        }
    } else {
        into.copy_from_slice(values.as_bytes());
    }
}

/// Writes a double as the element with this number.
pub(super) fn write_at(value: f64, element: Element, slot: usize, into: &mut [u8]) {
    let width = element.kind.bytes();
    write(&[value], element, &mut into[slot * width..][..width]);
}
