//! Parameters: from the numbers in a header to identifier, short name and unit.

use super::concepts::{ConceptCondition, conditions, count};
use super::{Map, TextNumbers};

/// A parameter that was found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FoundParam {
    pub(crate) id: i64,
    pub(crate) short_name: &'static str,
    pub(crate) units: &'static str,
    conditions: &'static [ConceptCondition],
}

impl FoundParam {
    /// Whether the parameter is defined by a value of this key, so that its name implies the value.
    pub(crate) fn implies(&self, key: u16) -> bool {
        self.conditions.iter().any(|condition| condition.is_about(key))
    }
}

#[derive(Debug)]
struct ParamRow {
    /// Which of a header's three numbers (edition 2) or two (edition 1) this row is about.
    numbers: u32,
    marks: u8,
    id: u32,
    /// Where a centre calls a parameter otherwise, or gives it another unit.
    short_name: &'static str,
    units: Option<u16>,
    conditions: Box<[ConceptCondition]>,
}

#[derive(Debug)]
struct ParamName {
    id: u32,
    short: &'static str,
    units: u16,
}

#[derive(Default)]
pub(crate) struct ParamTable {
    names: Vec<ParamName>,
    units: Vec<&'static str>,
    editions: [Map<&'static str, Vec<ParamRow>>; 2],
}

/// Which rows of edition 2 apply: before the change of 2025, after it, after it with constituents apart, or the legacy.
pub(crate) const OLD: u8 = b'o';
pub(crate) const NEW: u8 = b'n';
pub(crate) const APART: u8 = b'c';
pub(crate) const LEGACY: u8 = b'l';

pub(crate) fn numbers(first: i64, second: i64, third: i64) -> u32 {
    (first as u32 & 0xff) << 16 | (second as u32 & 0xff) << 8 | (third as u32 & 0xff)
}

fn mark_bits(marks: &str) -> u8 {
    marks.bytes().fold(0, |bits, mark| bits | mark_bit(mark))
}

fn mark_bit(mark: u8) -> u8 {
    match mark {
        OLD => 1,
        NEW => 2,
        APART => 4,
        _ => 8,
    }
}

impl ParamTable {
    pub(crate) fn read(texts: &mut TextNumbers) -> ParamTable {
        let mut params = ParamTable::default();
        params.read_names(include_str!("params.txt"));
        params.read_rows(1, include_str!("g1params.txt"), texts);
        params.read_rows(2, include_str!("g2params.txt"), texts);
        params
    }

    fn read_names(&mut self, text: &'static str) {
        let mut lines = text.lines().skip(1);
        self.units = lines.next().unwrap_or_default().split('\t').collect();
        let mut id = 0_u32;
        for line in lines {
            let mut words = line.split(' ');
            let Some(Ok(step)) = words.next().map(str::parse::<u32>) else {
                continue;
            };
            id = id.saturating_add(step);
            let short = words.next().unwrap_or_default();
            let units = words.next().and_then(|word| word.parse().ok()).unwrap_or(0);
            self.names.push(ParamName { id, short, units });
        }
    }

    /// Lines are `numbers identifier conditions`: numbers begin with those of the line before unless they give others, and
    /// an empty identifier is the usual one, category (or table) * 1000 + number. `id:name:unit` gives a row its own name
    /// and unit.
    fn read_rows(&mut self, edition: usize, text: &'static str, texts: &mut TextNumbers) {
        let mut place = ("", 0);
        let mut lead = (0, 0);
        for line in text.lines().skip(1) {
            if let Some(head) = line.strip_prefix('@') {
                let (name, marks) = head.split_once(' ').unwrap_or((head, "o"));
                place = (name, mark_bits(marks));
                continue;
            }
            let mut words = line.splitn(3, ' ');
            let head = words.next().unwrap_or_default();
            let parts: Vec<i64> = head.split('.').filter_map(|word| word.parse().ok()).collect();
            let number = match *parts.as_slice() {
                [a, b, number] => {
                    lead = (a, b);
                    number
                }
                [b, number] => {
                    lead = (0, b);
                    number
                }
                [number] => number,
                _ => continue,
            };
            let usual = if lead.1 == 128 { number } else { lead.1 * 1000 + number };
            let id = words.next().unwrap_or_default();
            let mut own = id.split(':');
            let id = own.next().unwrap_or_default();
            let row = ParamRow {
                numbers: numbers(lead.0, lead.1, number),
                marks: place.1,
                id: id.parse().unwrap_or(usual as u32),
                short_name: own.next().unwrap_or_default(),
                units: own.next().and_then(|units| units.parse().ok()),
                conditions: conditions(words.next().unwrap_or_default(), texts),
            };
            let Some(sets) = self.editions.get_mut(edition - 1) else {
                return;
            };
            sets.entry(place.0).or_default().push(row);
        }
        // A stable sort keeps the order in which rows of the same numbers win.
        self.editions
            .iter_mut()
            .flat_map(Map::values_mut)
            .for_each(|rows| rows.sort_by_key(|row| row.numbers));
    }

    /// Finds the row with most conditions in two places, of which the second wins between equals.
    pub(crate) fn find(
        &'static self,
        edition: usize,
        places: [&str; 2],
        mark: u8,
        numbers: u32,
        get: &impl Fn(u16) -> Option<i64>,
    ) -> Option<FoundParam> {
        let sets = self.editions.get(edition.checked_sub(1)?)?;
        let mut best: Option<(u32, &'static ParamRow)> = None;
        for rows in places.iter().filter_map(|place| sets.get(*place)) {
            let from = rows.partition_point(|row| row.numbers < numbers);
            let rows = rows
                .get(from..)
                .unwrap_or_default()
                .iter()
                .take_while(|row| row.numbers == numbers);
            for row in rows.filter(|row| row.marks & mark_bit(mark) != 0) {
                if let Some(count) = count(&row.conditions, get)
                    && best.is_none_or(|(most, _)| count >= most)
                {
                    best = Some((count, row));
                }
            }
        }
        best.map(|(_, row)| self.param(row))
    }

    /// Whether an earlier parameter has the same short name.
    pub(crate) fn is_namesake(&self, param: &FoundParam) -> bool {
        let earlier = self.names.iter().take_while(|name| i64::from(name.id) < 1000);
        earlier.into_iter().any(|name| name.short == param.short_name)
    }

    fn param(&self, row: &'static ParamRow) -> FoundParam {
        let at = self.names.binary_search_by_key(&row.id, |name| name.id).ok();
        let name = at.and_then(|at| self.names.get(at));
        let units = row
            .units
            .or(name.map(|name| name.units))
            .and_then(|units| self.units.get(usize::from(units)));
        let own = Some(row.short_name).filter(|own| !own.is_empty());
        let short_name = own.or(name.map(|name| name.short)).unwrap_or("unknown");
        FoundParam {
            id: i64::from(row.id),
            short_name,
            units: units.copied().unwrap_or_default(),
            conditions: &row.conditions,
        }
    }
}
