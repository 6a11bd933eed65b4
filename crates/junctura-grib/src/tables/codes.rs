//! Code tables: the short names for the numbers in a header.

use std::collections::BTreeMap;

use super::keys;

/// Tables by their number, and which one a key is printed with.
#[derive(Default)]
pub(crate) struct CodeTables {
    tables: Vec<(&'static str, Vec<(i64, &'static str)>)>,
    of_key: Vec<Option<u16>>,
    flags: Vec<(i64, u8)>,
}

/// Tables that list product templates of a kind.
const FLAGS: [&str; 5] = [
    "is_chemical",
    "is_chemical_distfn",
    "is_chemical_srcsink",
    "is_aerosol",
    "is_aerosol_optical",
];

impl CodeTables {
    pub(crate) fn read(text: &'static str) -> CodeTables {
        let mut codes = CodeTables {
            tables: Vec::new(),
            of_key: vec![None; keys::COUNT],
            flags: Vec::new(),
        };
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            if let Some(head) = line.strip_prefix('@') {
                let mut words = head.split(' ');
                let number = codes.tables.len() as u16;
                codes.tables.push((words.next().unwrap_or_default(), Vec::new()));
                for key in words.filter_map(|word| word.parse::<usize>().ok()) {
                    if let Some(slot) = codes.of_key.get_mut(key) {
                        *slot = Some(number);
                    }
                }
            } else if let (Some((code, name)), Some((_, rows))) = (line.split_once(' '), codes.tables.last_mut()) {
                rows.extend(code.parse().ok().map(|code: i64| (code, name)));
            }
        }
        for (_, rows) in &mut codes.tables {
            rows.sort_by_key(|(code, _)| *code);
        }
        let mut flags = BTreeMap::<i64, u8>::new();
        for (name, rows) in &codes.tables {
            if let Some(bit) = FLAGS.iter().position(|flag| flag == name) {
                for (number, _) in rows {
                    *flags.entry(*number).or_default() |= 1 << bit;
                }
            }
        }
        codes.flags = flags.into_iter().collect();
        codes
    }

    pub(crate) fn table(&self, name: &str) -> Option<u16> {
        self.tables.iter().position(|(n, _)| *n == name).map(|at| at as u16)
    }

    pub(crate) fn of_key(&self, key: u16) -> Option<u16> {
        self.of_key.get(usize::from(key)).copied().flatten()
    }

    pub(crate) fn name(&self, table: u16, code: i64) -> Option<&'static str> {
        let (_, rows) = self.tables.get(usize::from(table))?;
        rows.binary_search_by_key(&code, |(c, _)| *c)
            .ok()
            .and_then(|at| rows.get(at))
            .map(|(_, name)| *name)
    }

    pub(crate) fn code(&self, table: u16, name: &str) -> Option<i64> {
        let (_, rows) = self.tables.get(usize::from(table))?;
        rows.iter().find(|(_, n)| *n == name).map(|(code, _)| *code)
    }

    /// Returns the kinds of product that a template is for, as bits.
    pub(crate) fn product_flags(&self, template: i64) -> u8 {
        let at = self.flags.binary_search_by_key(&template, |(number, _)| *number).ok();
        at.and_then(|at| self.flags.get(at)).map_or(0, |(_, flags)| *flags)
    }
}
