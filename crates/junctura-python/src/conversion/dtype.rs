//! The type of a buffer's elements as the attribute `dtype`, in NumPy's words.

use std::borrow::Cow;

use pyo3::buffer::PyUntypedBuffer;

/// `float32`, `int64`, … for numbers in this machine's byte order, `>f4`, … for the other one. `None` for types other
/// than plain numbers, which NumPy describes.
pub(crate) fn name(buffer: &PyUntypedBuffer) -> Option<Cow<'static, str>> {
    let format = buffer.format().to_str().ok()?;
    let (order, code) = match format.as_bytes().first()? {
        b'<' | b'=' | b'@' | b'|' => (b'<', &format[1..]),
        b'>' | b'!' => (b'>', &format[1..]),
        _ => (b'<', format),
    };
    let kind = match code {
        "b" | "h" | "i" | "l" | "q" | "n" => 'i',
        "B" | "H" | "I" | "L" | "Q" | "N" => 'u',
        "e" | "f" | "d" | "g" => 'f',
        "Zf" | "Zd" | "Zg" => 'c',
        "?" => return Some("bool".into()),
        _ => return None,
    };
    let size = buffer.item_size();
    if order == b'>' && size > 1 {
        return Some(format!(">{kind}{size}").into());
    }
    Some(native(kind, size).map_or_else(|| format!("<{kind}{size}").into(), Cow::Borrowed))
}

fn native(kind: char, size: usize) -> Option<&'static str> {
    Some(match (kind, size) {
        ('i', 1) => "int8",
        ('i', 2) => "int16",
        ('i', 4) => "int32",
        ('i', 8) => "int64",
        ('u', 1) => "uint8",
        ('u', 2) => "uint16",
        ('u', 4) => "uint32",
        ('u', 8) => "uint64",
        ('f', 2) => "float16",
        ('f', 4) => "float32",
        ('f', 8) => "float64",
        ('f', 16) => "float128",
        ('c', 8) => "complex64",
        ('c', 16) => "complex128",
        _ => return None,
    })
}
