//! The values of a list in a selector: one block of text, searched by halves where it is long.

use std::collections::HashSet;

/// Longer lists are searched by halves.
const LINEAR_MAX: usize = 8;

/// Distinct texts, in the order in which they were given. Most lists have one.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum ItemList {
    One(Box<str>),
    Many(Box<ManyItems>),
}

#[derive(Clone, PartialEq, Eq)]
pub(crate) struct ManyItems {
    text: Box<str>,
    ends: Box<[u32]>,
    /// Places in order of their texts; empty for short lists.
    sorted: Box<[u32]>,
}

impl ItemList {
    /// Keeps the first of equal texts.
    pub(crate) fn new<T: AsRef<str>>(texts: &[T]) -> ItemList {
        if let [only] = texts {
            return ItemList::One(only.as_ref().into());
        }
        let mut seen = HashSet::with_capacity(texts.len());
        let (mut text, mut ends) = (String::new(), Vec::with_capacity(texts.len()));
        for item in texts.iter().map(AsRef::as_ref) {
            if seen.insert(item) {
                text.push_str(item);
                ends.push(text.len() as u32);
            }
        }
        if ends.len() == 1 {
            return ItemList::One(text.into());
        }
        let mut many = ManyItems {
            text: text.into(),
            ends: ends.into(),
            sorted: Box::default(),
        };
        if many.ends.len() > LINEAR_MAX {
            let mut sorted: Vec<u32> = (0..many.ends.len() as u32).collect();
            sorted.sort_unstable_by(|&a, &b| many.get(a as usize).cmp(many.get(b as usize)));
            many.sorted = sorted.into();
        }
        ItemList::Many(Box::new(many))
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            ItemList::One(_) => 1,
            ItemList::Many(many) => many.ends.len(),
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.len()).map(move |at| match self {
            ItemList::One(text) => &**text,
            ItemList::Many(many) => many.get(at),
        })
    }

    /// Returns whether any item has these bytes.
    pub(crate) fn contains(&self, text: &[u8]) -> bool {
        match self {
            ItemList::One(only) => only.as_bytes() == text,
            ItemList::Many(many) => many.contains(text),
        }
    }
}

impl ManyItems {
    fn get(&self, at: usize) -> &str {
        let start = if at == 0 { 0 } else { self.ends[at - 1] as usize };
        &self.text[start..self.ends[at] as usize]
    }

    fn contains(&self, text: &[u8]) -> bool {
        let bytes = self.text.as_bytes();
        if self.sorted.is_empty() {
            let mut start = 0;
            return self.ends.iter().any(|&end| {
                let item = &bytes[start..end as usize];
                start = end as usize;
                item == text
            });
        }
        self.sorted
            .binary_search_by(|&at| self.get(at as usize).as_bytes().cmp(text))
            .is_ok()
    }
}

impl std::fmt::Debug for ItemList {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_and_long_lists_find_the_same() {
        for len in [1, 8, 9, 500] {
            let texts: Vec<String> = (0..len).map(|n| (n * 7919 % 1000).to_string()).collect();
            let items = ItemList::new(&[texts.clone(), texts.clone()].concat());
            assert_eq!(items.iter().collect::<Vec<_>>(), texts);
            assert!(texts.iter().all(|text| items.contains(text.as_bytes())));
            assert!(!items.contains(b"") && !items.contains(b"x"));
        }
    }
}
