//! The type of an array's elements.

use std::fmt;
use std::str::FromStr;

use junctura_model::{Code, Error, Result};

/// The kinds of number, each in the byte order of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ElementKind {
    /// One byte, no sign.
    U8,
    /// One byte, with a sign.
    I8,
    /// Two bytes, no sign.
    U16,
    /// Two bytes, with a sign.
    I16,
    /// Four bytes, no sign.
    U32,
    /// Four bytes, with a sign.
    I32,
    /// Eight bytes, no sign.
    U64,
    /// Eight bytes, with a sign.
    I64,
    /// IEEE 754 binary16.
    F16,
    /// IEEE 754 binary32.
    F32,
    /// IEEE 754 binary64.
    F64,
    /// Two of `F32`: real part, imaginary part.
    C64,
    /// Two of `F64`: real part, imaginary part.
    C128,
    /// One byte: 0 is false, 1 is true.
    Bool,
}

/// The order of the bytes of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ByteOrder {
    /// The least significant first.
    Little,
    /// The most significant first.
    Big,
}

impl ByteOrder {
    /// The order of this machine.
    pub const NATIVE: Self = if cfg!(target_endian = "little") {
        Self::Little
    } else {
        Self::Big
    };
}

/// An element: a kind of number, and the order of its bytes.
///
/// ```
/// # use junctura_layout::{Element, ElementKind};
/// # fn main() -> junctura_model::Result<()> {
/// let element: Element = "f8".parse()?;
/// assert_eq!((element.kind, element.kind.bytes()), (ElementKind::F64, 8));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Element {
    /// The kind of number.
    pub kind: ElementKind,
    /// Its byte order in memory.
    pub order: ByteOrder,
}

const NAMES: [(ElementKind, &str); 14] = [
    (ElementKind::U8, "u1"),
    (ElementKind::I8, "i1"),
    (ElementKind::U16, "u2"),
    (ElementKind::I16, "i2"),
    (ElementKind::U32, "u4"),
    (ElementKind::I32, "i4"),
    (ElementKind::U64, "u8"),
    (ElementKind::I64, "i8"),
    (ElementKind::F16, "f2"),
    (ElementKind::F32, "f4"),
    (ElementKind::F64, "f8"),
    (ElementKind::C64, "c8"),
    (ElementKind::C128, "c16"),
    (ElementKind::Bool, "b1"),
];

impl ElementKind {
    /// Returns the bytes of one element.
    #[must_use]
    pub fn bytes(self) -> usize {
        match self {
            Self::U8 | Self::I8 | Self::Bool => 1,
            Self::U16 | Self::I16 | Self::F16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::U64 | Self::I64 | Self::F64 | Self::C64 => 8,
            Self::C128 => 16,
        }
    }

    /// Returns the bytes that are swapped together when the byte order changes: those of each part of a complex number.
    #[must_use]
    pub fn swapped_bytes(self) -> usize {
        match self {
            Self::C64 => 4,
            Self::C128 => 8,
            other => other.bytes(),
        }
    }
}

impl From<ElementKind> for Element {
    fn from(kind: ElementKind) -> Self {
        let order = ByteOrder::NATIVE;
        Self { kind, order }
    }
}

impl fmt::Display for Element {
    /// Prints the type as the array interface of `NumPy` does: `<f8`, `>i4`, `|u1`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let order = match self.order {
            _ if self.kind.bytes() == 1 => '|',
            ByteOrder::Little => '<',
            ByteOrder::Big => '>',
        };
        let name = NAMES.iter().find(|(kind, _)| *kind == self.kind);
        write!(formatter, "{order}{}", name.map_or("", |(_, name)| name))
    }
}

impl FromStr for Element {
    type Err = Error;

    /// Parses `<f8`, `>i4`, `|u1`, and names without an order, which is then this machine's: `f8`, `float64`, `f64`.
    ///
    /// # Errors
    /// `InvalidArgument` for any other name.
    fn from_str(text: &str) -> Result<Self> {
        let (order, name) = match text.as_bytes().first() {
            Some(b'<') => (ByteOrder::Little, &text[1..]),
            Some(b'>') => (ByteOrder::Big, &text[1..]),
            Some(b'|' | b'=') => (ByteOrder::NATIVE, &text[1..]),
            _ => (ByteOrder::NATIVE, text),
        };
        let name = match name {
            "float16" => "f2",
            "float32" | "f32" => "f4",
            "float64" | "f64" => "f8",
            "complex64" => "c8",
            "complex128" => "c16",
            "uint8" => "u1",
            "int8" => "i1",
            "uint16" | "u16" => "u2",
            "int16" | "i16" => "i2",
            "uint32" | "u32" => "u4",
            "int32" | "i32" => "i4",
            "uint64" | "u64" => "u8",
            "int64" | "i64" => "i8",
            "bool" => "b1",
            other => other,
        };
        let kind = NAMES.iter().find(|(_, known)| *known == name);
        let &(kind, _) = kind.ok_or_else(|| {
            let cause = format!("'{text}' is not an element type; valid: b1, f2, f4, f8, c8, c16, i1 to i8, u1 to u8, with < or > for their byte order");
            Error::new(Code::InvalidArgument, "type", cause)
        })?;
        Ok(Self { kind, order })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back() {
        for (kind, name) in NAMES {
            for order in [ByteOrder::Little, ByteOrder::Big] {
                let element = Element { kind, order };
                let read: Element = element.to_string().parse().unwrap();
                assert_eq!((read.kind, read.kind.bytes()), (kind, kind.bytes()));
                assert!(read.order == order || kind.bytes() == 1);
            }
            assert_eq!(name.parse::<Element>().unwrap(), kind.into());
            assert_eq!(kind.bytes() % kind.swapped_bytes(), 0);
        }
        let numpy = [
            ("float64", ElementKind::F64),
            ("int32", ElementKind::I32),
            ("=f4", ElementKind::F32),
            ("float16", ElementKind::F16),
            ("uint8", ElementKind::U8),
            ("bool", ElementKind::Bool),
        ];
        assert!(
            numpy
                .iter()
                .all(|(name, kind)| name.parse::<Element>().unwrap().kind == *kind)
        );
        assert!(
            ["", "f16", "<", "double", "<é"]
                .iter()
                .all(|name| name.parse::<Element>().is_err())
        );
    }
}
