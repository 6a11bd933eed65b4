//! Gaps of requirements: objects that a requirement will not receive. They are sent to its reader, or to its client, or
//! stored for its next reader.
//!
//! Stored gaps have names up to [`Limits::gap_bytes_per_requirement`](crate::PoolLimits), and `gap_bytes` of all
//! requirements together; beyond, they are counted, as a client can make many requirements and read none. A requirement
//! that has reached its maximum counts from there on, at almost no cost: a broken one, which misses everything, hardly
//! slows the others.

use junctura_wire::body::ObjectName;

/// The gaps that the next reader is to receive.
#[derive(Default)]
pub(in crate::core) struct LostObjects {
    pub(in crate::core) items: Vec<LostObject>,
    pub(in crate::core) bytes: usize,
    /// It has as many names as it may: further gaps are counted.
    pub(in crate::core) is_full: bool,
    /// The number of further objects, by reason.
    pub(in crate::core) unnamed: Vec<(&'static str, u64)>,
}

pub(in crate::core) struct LostObject {
    pub(in crate::core) schema: u16,
    pub(in crate::core) sequence: u64,
    pub(in crate::core) record: Vec<u8>,
    pub(in crate::core) reason: &'static str,
}

impl LostObject {
    pub(in crate::core) fn name(&self) -> ObjectName<'_> {
        ObjectName {
            schema: self.schema,
            sequence: self.sequence,
            record: self.record.as_slice().into(),
        }
    }
}

impl LostObjects {
    pub(in crate::core) fn len(&self) -> u64 {
        self.items.len() as u64 + self.unnamed.iter().map(|(_, count)| count).sum::<u64>()
    }

    /// Whether further gaps are counted without names.
    pub(in crate::core) fn is_counted(&self) -> bool {
        self.is_full
    }

    /// Counts one object without a name.
    pub(in crate::core) fn count(&mut self, reason: &'static str) {
        let is_it = |known: &str| std::ptr::eq(known, reason) || known == reason;
        match self.unnamed.iter_mut().find(|(known, _)| is_it(known)) {
            Some((_, count)) => *count += 1,
            None => self.unnamed.push((reason, 1)),
        }
    }
}
