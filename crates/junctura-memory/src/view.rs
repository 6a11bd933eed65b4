//! A payload to read, in any place.
//!
//! Small payloads travel inside the message and are kept here; larger ones stay in their segment, and the view keeps its
//! map alive. Clones are cheap and share the bytes. Releases are not sent here: the owner of the views counts them.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use junctura_model::Result;

use crate::mapping::SegmentMapping;

/// The bytes of a delivered object, read-only.
#[derive(Clone)]
pub struct Payload(PayloadBytes);

#[derive(Clone)]
enum PayloadBytes {
    Empty,
    Inline(Arc<[u8]>),
    Mapped {
        mapping: Arc<SegmentMapping>,
        offset: u64,
        length: u64,
    },
}

impl Payload {
    /// No bytes at all.
    #[must_use]
    pub fn empty() -> Self {
        Self(PayloadBytes::Empty)
    }

    /// Copies bytes that arrived inside a message.
    #[must_use]
    pub fn inline(bytes: &[u8]) -> Self {
        if bytes.is_empty() {
            Self::empty()
        } else {
            Self(PayloadBytes::Inline(bytes.into()))
        }
    }

    /// Returns a view of bytes in a segment.
    ///
    /// # Errors
    /// `Corrupt` when they reach over the segment's end.
    pub fn mapped(mapping: Arc<SegmentMapping>, offset: u64, length: u64) -> Result<Self> {
        mapping.slice(offset, length)?;
        Ok(Self(PayloadBytes::Mapped {
            mapping,
            offset,
            length,
        }))
    }

    /// Returns the map that contains the bytes, if any.
    #[must_use]
    pub fn mapping(&self) -> Option<&Arc<SegmentMapping>> {
        match &self.0 {
            PayloadBytes::Mapped { mapping, .. } => Some(mapping),
            _ => None,
        }
    }
}

impl Deref for Payload {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            PayloadBytes::Empty => &[],
            PayloadBytes::Inline(bytes) => bytes,
            // The range was checked when the view was made, and a map never changes its size.
            PayloadBytes::Mapped {
                mapping,
                offset,
                length,
            } => mapping.slice(*offset, *length).unwrap_or_default(),
        }
    }
}

impl AsRef<[u8]> for Payload {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl Default for Payload {
    fn default() -> Self {
        Self::empty()
    }
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = match &self.0 {
            PayloadBytes::Empty => "empty",
            PayloadBytes::Inline(_) => "inline",
            PayloadBytes::Mapped { .. } => "mapped",
        };
        write!(f, "Payload({place}, {} bytes)", self.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::SealedSegment;

    #[test]
    fn inline_bytes_are_kept() {
        let payload = Payload::inline(b"abc");
        let other = payload.clone();
        drop(payload);
        assert_eq!(&*other, b"abc");
        assert!(other.mapping().is_none());
        assert!(Payload::inline(b"").is_empty());
        assert_eq!(format!("{other:?}"), "Payload(inline, 3 bytes)");
    }

    #[test]
    fn a_view_keeps_its_map() {
        let segment = SealedSegment::create(8192).unwrap();
        let fd = segment.readonly().try_clone_to_owned().unwrap();
        let mapping = Arc::new(SegmentMapping::readonly(fd, 8192).unwrap());
        let payload = Payload::mapped(Arc::clone(&mapping), 4096, 100).unwrap();
        assert!(Arc::ptr_eq(payload.mapping().unwrap(), &mapping));
        drop((mapping, segment));
        assert_eq!(&*payload, [0; 100]);
    }

    #[test]
    fn a_view_over_the_end_is_refused() {
        let segment = SealedSegment::create(4096).unwrap();
        let mapping =
            Arc::new(SegmentMapping::readonly(segment.readonly().try_clone_to_owned().unwrap(), 4096).unwrap());
        assert!(Payload::mapped(Arc::clone(&mapping), 0, 4096).is_ok());
        assert!(Payload::mapped(Arc::clone(&mapping), 4096, 0).unwrap().is_empty());
        for (offset, length) in [(0, 4097), (4096, 1), (u64::MAX, 1), (1, u64::MAX)] {
            let error = Payload::mapped(Arc::clone(&mapping), offset, length).unwrap_err();
            assert_eq!(error.code(), junctura_model::Code::Corrupt);
        }
    }
}
