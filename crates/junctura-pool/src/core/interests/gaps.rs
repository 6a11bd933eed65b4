//! What a requirement will not get: told to whoever reads it, or to its client, or kept for the next to read it.
//!
//! What is kept is named as far as [`Limits::gap_bytes_per_requirement`](crate::PoolLimits) reaches, and `gap_bytes` of all
//! together, and counted beyond: one can make many requirements, and read none. One that names as many as it may counts from
//! there on, which costs next to nothing: so one that is broken, and misses everything, hardly slows who is not.

use junctura_wire::body::ObjectName;

/// What the next reader is to be told that it will not get.
#[derive(Default)]
pub(in crate::core) struct LostObjects {
    pub(in crate::core) items: Vec<LostObject>,
    pub(in crate::core) bytes: usize,
    /// It names as many as it may: what comes is counted.
    pub(in crate::core) is_full: bool,
    /// By reason: how many more.
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

    /// Whether what comes is counted, and not named any more.
    pub(in crate::core) fn is_counted(&self) -> bool {
        self.is_full
    }

    /// One more that is not named.
    pub(in crate::core) fn count(&mut self, reason: &'static str) {
        let is_it = |known: &str| std::ptr::eq(known, reason) || known == reason;
        match self.unnamed.iter_mut().find(|(known, _)| is_it(known)) {
            Some((_, count)) => *count += 1,
            None => self.unnamed.push((reason, 1)),
        }
    }
}
