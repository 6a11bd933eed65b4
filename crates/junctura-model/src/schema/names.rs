//! Lookup of attributes by name or alias. It runs for every attribute of every offer, so the table usually needs one
//! probe.

use super::AttrId;
use crate::nearest;

/// Names and aliases, in a table with open addressing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NameTable {
    entries: Vec<NameEntry>,
    /// Index into `entries` plus one; 0 = empty. The length is a power of two, at most a quarter is used.
    slots: Vec<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct NameEntry {
    ends: NameEnds,
    name: String,
    id: AttrId,
}

/// A name's first and last bytes and its length: three numbers that represent a short name completely, because calling
/// a function to compare a few bytes takes longer than the rest of the lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct NameEnds {
    first: u64,
    last: u64,
    len: usize,
}

impl NameEnds {
    /// Names up to this length are equal if their ends are equal.
    const WHOLE_MAX: usize = 16;

    fn of(name: &str) -> NameEnds {
        let bytes = name.as_bytes();
        let (first, last) = match (bytes.first_chunk(), bytes.last_chunk()) {
            (Some(first), Some(last)) => (u64::from_le_bytes(*first), u64::from_le_bytes(*last)),
            _ => Self::of_short(bytes),
        };
        let len = bytes.len();
        NameEnds { first, last, len }
    }

    /// For fewer than eight bytes.
    fn of_short(bytes: &[u8]) -> (u64, u64) {
        match (bytes.first_chunk(), bytes.last_chunk()) {
            (Some(first), Some(last)) => (
                u64::from(u32::from_le_bytes(*first)),
                u64::from(u32::from_le_bytes(*last)),
            ),
            _ => (bytes.iter().fold(0, |number, &byte| number << 8 | u64::from(byte)), 0),
        }
    }

    fn mixed(self) -> usize {
        let mixed = (self.first ^ self.last.rotate_left(23) ^ self.len as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 48) as usize
    }
}

impl NameTable {
    /// Creates the table of these names; the error is the first duplicate.
    pub(super) fn new(entries: Vec<(String, AttrId)>) -> Result<NameTable, String> {
        let slots = vec![0; (entries.len() * 4).next_power_of_two().max(16)];
        let mut names = NameTable {
            entries: Vec::with_capacity(entries.len()),
            slots,
        };
        for (name, id) in entries {
            if names.find(&name).is_some() {
                return Err(name);
            }
            let ends = NameEnds::of(&name);
            let mut slot = ends.mixed() & (names.slots.len() - 1);
            while names.slots[slot] != 0 {
                slot = (slot + 1) & (names.slots.len() - 1);
            }
            names.entries.push(NameEntry { ends, name, id });
            names.slots[slot] = names.entries.len() as u16;
        }
        Ok(names)
    }

    pub(super) fn find(&self, name: &str) -> Option<AttrId> {
        let ends = NameEnds::of(name);
        let mut slot = ends.mixed();
        loop {
            slot &= self.slots.len() - 1;
            let index = usize::from(self.slots[slot]).checked_sub(1)?;
            let entry = &self.entries[index];
            if entry.ends == ends && (ends.len <= NameEnds::WHOLE_MAX || entry.name == name) {
                return Some(entry.id);
            }
            slot += 1;
        }
    }

    /// Returns the known name with the fewest edits, if these are few enough for a typing error.
    pub(super) fn nearest(&self, unknown: &str) -> Option<&str> {
        nearest(self.entries.iter().map(|entry| entry.name.as_str()), unknown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(names: &[&str]) -> Result<NameTable, String> {
        NameTable::new(
            names
                .iter()
                .enumerate()
                .map(|(at, name)| ((*name).to_owned(), AttrId(at as u8)))
                .collect(),
        )
    }

    #[test]
    fn finds_every_name_whatever_its_length_and_however_alike() {
        let mut names: Vec<String> = (1..40).map(|len| "x".repeat(len)).collect();
        for len in [2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 18, 30] {
            names.extend(('a'..='h').map(|c| format!("{}{c}{}", "x".repeat(len / 2), "x".repeat(len - len / 2 - 1))));
        }
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let table = table(&names).unwrap();
        for (at, name) in names.iter().enumerate() {
            assert_eq!(table.find(name), Some(AttrId(at as u8)), "{name}");
        }
        for unknown in ["", "y", "xxxz", "xxxxxxxxxzxxxxxxxxx", &"x".repeat(40)] {
            assert_eq!(table.find(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn a_name_twice_is_refused() {
        assert_eq!(table(&["a", "b", "a"]).unwrap_err(), "a");
    }

    #[test]
    fn suggests_only_what_is_near() {
        let table = table(&["levelist", "level", "param", "time"]).unwrap();
        assert_eq!(table.nearest("levelis"), Some("levelist"));
        assert_eq!(table.nearest("Parma"), Some("param"));
        assert_eq!(table.nearest("PARAM"), Some("param"));
        assert_eq!(table.nearest("colour"), None);
        assert_eq!(table.nearest(""), None);
    }
}
