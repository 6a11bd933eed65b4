//! The head of an array: the payload of its own object, which describes the layout of the pieces.
//!
//! ```text
//!   junctura-array 1
//!   dtype=<f8
//!   epoch=7
//!   shape=8192x8192 grid=4x2 block=256x256 order=C
//! ```

use std::fmt::Write;
use std::sync::Arc;

use junctura_layout::{Element, Layout};
use junctura_model::{Code, Error, Kind, RecordRef, Result, Schema, Type};

use super::whole::takes;

/// The first line of the payload of every head.
const MAGIC: &str = "junctura-array 1\n";
/// Maximum length of an attribute value in bytes.
const VALUE_BYTES_MAX: usize = 1024;

/// The head of an array.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ArrayHead {
    pub(crate) layout: Arc<Layout>,
    pub(crate) element: Element,
    pub(crate) epoch: Option<i64>,
}

impl ArrayHead {
    pub(crate) fn to_text(&self) -> String {
        let mut text = format!("{MAGIC}dtype={}\n", self.element);
        if let Some(epoch) = self.epoch {
            let _ = writeln!(text, "epoch={epoch}");
        }
        let _ = writeln!(text, "{}", self.layout);
        text
    }

    /// Returns whether a payload is a head. A payload that only begins like one, and cannot be parsed, is plain bytes.
    pub(crate) fn is_one(payload: &[u8]) -> bool {
        matches!(Self::read(payload), Ok(Some(_)))
    }

    /// Parses a head; `None` for a payload without one.
    ///
    /// # Errors
    /// `Corrupt` for a payload that begins as a head and is invalid.
    pub(crate) fn read(payload: &[u8]) -> Result<Option<Self>> {
        let Some(rest) = payload.strip_prefix(MAGIC.as_bytes()) else {
            return Ok(None);
        };
        let corrupt = |cause: String| Error::new(Code::Corrupt, "array", cause);
        let rest = std::str::from_utf8(rest).map_err(|error| corrupt(error.to_string()))?;
        let mut lines = rest.lines().peekable();
        let dtype = lines.next().and_then(|line| line.strip_prefix("dtype="));
        let element = dtype
            .ok_or_else(|| corrupt("it does not state its type".to_owned()))?
            .parse();
        let epoch = lines.next_if(|line| line.starts_with("epoch="));
        let epoch = epoch.map(|line| line["epoch=".len()..].parse());
        let layout: Result<Layout> = lines.next().unwrap_or_default().parse();
        let read = |error: Error| corrupt(format!("{}: {}", error.subject(), error.cause()));
        Ok(Some(Self {
            layout: Arc::new(layout.map_err(read)?),
            element: element.map_err(read)?,
            epoch: epoch
                .transpose()
                .map_err(|error: std::num::ParseIntError| corrupt(error.to_string()))?,
        }))
    }

    /// Refuses attributes that state another type or another number of elements than the array has. Texts that are no type are not
    /// compared.
    ///
    /// # Errors
    /// `InvalidArgument`, which names both.
    pub(crate) fn check_attributes(&self, schema: &Schema, record: &[u8]) -> Result<()> {
        let record = RecordRef::trusted(record);
        let given = schema.value_in(record, "dtype");
        let given = given.filter(|_| takes(schema, "dtype", Kind::one(Type::String)));
        if let Some(given) = given
            && given.parse::<Element>().is_ok_and(|given| given != self.element)
        {
            let cause = format!(
                "{given} is given for an array of {}: leave dtype out, or convert the data",
                self.element
            );
            return Err(Error::new(Code::InvalidArgument, "dtype", cause));
        }
        let is_list = takes(schema, "shape", Kind::list_of(Type::Integer));
        let given = schema.value_in(record, "shape").filter(|_| is_list);
        let extents = given.map(|given| given.split('/').filter(|extent| !extent.is_empty()).map(str::parse));
        let elements: Option<u64> = extents
            .and_then(|mut extents| extents.try_fold(1_u64, |product, extent| product.checked_mul(extent.ok()?)));
        if let (Some(given), Some(elements)) = (given, elements)
            && elements != self.layout.elements()
        {
            let cause = format!(
                "{given} is given for an array of the layout {}: leave shape out",
                self.layout
            );
            return Err(Error::new(Code::InvalidArgument, "shape", cause));
        }
        Ok(())
    }

    /// Returns the layout as an attribute value.
    pub(crate) fn layout_value(&self) -> String {
        let text = self.layout.to_string();
        if text.len() <= VALUE_BYTES_MAX {
            return text;
        }
        Schema::piece().map_or(text.clone(), |piece| piece.key_hash(&text).to_string())
    }
}

/// Returns the text by which the pieces of an array refer to it.
///
/// # Errors
/// `TooLarge` for a key that is too long for this.
pub(crate) fn piece_of(schema: &str, key: &str) -> Result<String> {
    let name = format!("{schema}{key}");
    if name.len() <= VALUE_BYTES_MAX {
        return Ok(name);
    }
    let cause = format!(
        "{} bytes, and the key of an array has {VALUE_BYTES_MAX} at most",
        name.len()
    );
    Err(Error::new(Code::TooLarge, key, cause))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_read() {
        for epoch in [None, Some(-3), Some(7)] {
            let head = ArrayHead {
                layout: Arc::new("shape=10x7 grid=2x3 block=4x2 order=F".parse().unwrap()),
                element: ">f4".parse().unwrap(),
                epoch,
            };
            assert!(ArrayHead::is_one(head.to_text().as_bytes()));
            assert_eq!(ArrayHead::read(head.to_text().as_bytes()).unwrap(), Some(head));
        }
        assert_eq!(ArrayHead::read(b"any bytes").unwrap(), None);
        assert!(!ArrayHead::is_one(b"any bytes"));
        for broken in [
            "",
            "dtype=<f8\n",
            "dtype=f99\nshape=3\n",
            "dtype=<f8\nepoch=x\nshape=3",
            "shape=3\n",
        ] {
            let error = ArrayHead::read(format!("{MAGIC}{broken}").as_bytes()).unwrap_err();
            assert_eq!(error.code(), Code::Corrupt, "{broken}");
            assert!(!ArrayHead::is_one(format!("{MAGIC}{broken}").as_bytes()), "{broken}");
        }
    }
}
