//! From a name or alias to the attribute: asked for every attribute of every offer, so a table with one probe, mostly.

use super::AttrId;

/// Names and aliases, in a table with open addressing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Names {
    entries: Vec<(String, AttrId)>,
    /// Index into `entries` plus one; 0 = empty. A power of two long, at most a quarter full.
    slots: Vec<u16>,
}

impl Names {
    /// The table of these names; the first that comes twice is the error.
    pub(super) fn new(entries: Vec<(String, AttrId)>) -> Result<Names, String> {
        let slots = vec![0; (entries.len() * 4).next_power_of_two().max(16)];
        let mut names = Names {
            entries: Vec::with_capacity(entries.len()),
            slots,
        };
        for (name, id) in entries {
            if names.find(&name).is_some() {
                return Err(name);
            }
            let mut slot = names.slot(&name);
            while names.slots[slot] != 0 {
                slot = (slot + 1) & (names.slots.len() - 1);
            }
            names.entries.push((name, id));
            names.slots[slot] = names.entries.len() as u16;
        }
        Ok(names)
    }

    pub(super) fn find(&self, name: &str) -> Option<AttrId> {
        let mut slot = self.slot(name);
        loop {
            let index = usize::from(self.slots[slot]).checked_sub(1)?;
            let (known, id) = &self.entries[index];
            if known == name {
                return Some(*id);
            }
            slot = (slot + 1) & (self.slots.len() - 1);
        }
    }

    /// Length and three letters tell nearly all names of a schema apart.
    fn slot(&self, name: &str) -> usize {
        let bytes = name.as_bytes();
        let letter = |at: usize| u32::from(bytes.get(at).copied().unwrap_or(0));
        let len = bytes.len();
        let mixed = letter(0) | letter(len / 2) << 8 | letter(len.saturating_sub(1)) << 16 | (len as u32) << 24;
        (mixed.wrapping_mul(0x9e37_79b1) >> 16) as usize & (self.slots.len() - 1)
    }

    /// The known name with the fewest edits, if there are few enough to call it a slip.
    pub(super) fn nearest(&self, unknown: &str) -> Option<&str> {
        let edits_max = (unknown.chars().count() / 3).clamp(1, 3);
        if unknown.len() > crate::limits::NAME_BYTES_MAX {
            return None;
        }
        let near = self
            .entries
            .iter()
            .map(|(name, _)| (edits(name, unknown), name.as_str()));
        near.filter(|&(edits, name)| edits <= edits_max && edits < name.len())
            .min()
            .map(|(_, name)| name)
    }
}

/// Letters to insert, remove or exchange to make one text the other, in any case.
fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().map(|c| c.to_ascii_lowercase()).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (above, x) in a.chars().enumerate() {
        let mut diagonal = above;
        row[0] = above + 1;
        for (left, &y) in b.iter().enumerate() {
            let exchanged = diagonal + usize::from(x.to_ascii_lowercase() != y);
            diagonal = row[left + 1];
            row[left + 1] = exchanged.min(diagonal + 1).min(row[left] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(names: &[&str]) -> Result<Names, String> {
        Names::new(
            names
                .iter()
                .enumerate()
                .map(|(at, name)| ((*name).to_owned(), AttrId(at as u8)))
                .collect(),
        )
    }

    #[test]
    fn finds_every_name_even_where_all_collide() {
        // Same length, first, middle and last letter.
        let names: Vec<String> = ('a'..='z').map(|c| format!("x{c}mx")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let table = table(&names).unwrap();
        for (at, name) in names.iter().enumerate() {
            assert_eq!(table.find(name), Some(AttrId(at as u8)));
        }
        assert_eq!(table.find("x0mx"), None);
        assert_eq!(table.find(""), None);
    }

    #[test]
    fn a_name_twice_is_refused() {
        assert_eq!(table(&["a", "b", "a"]).unwrap_err(), "a");
    }

    #[test]
    fn suggests_only_what_is_near() {
        let table = table(&["levelist", "level", "param", "time"]).unwrap();
        assert_eq!(table.nearest("levelis"), Some("levelist"));
        assert_eq!(table.nearest("Parma"), None);
        assert_eq!(table.nearest("PARAM"), Some("param"));
        assert_eq!(table.nearest("colour"), None);
        assert_eq!(table.nearest(""), None);
    }
}
