//! Sizes of arrays in pieces: the payload of an array's own object only describes its layout.

use std::collections::BTreeMap;

use junctura::{Entry, Pool, Result, TallyOptions};
use junctura_model::selector::quoted;

/// Arrays that one tally counts: their keys fit into a selector.
const ARRAYS_AT_ONCE: usize = 32;

/// Number and size of the pieces of an array.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PieceTotal {
    pub(super) pieces: u64,
    pub(super) bytes: u64,
}

/// The sizes of the arrays of a pool.
pub(super) struct ArraySizes<'p> {
    /// `None`: the pool has no pieces.
    pool: Option<&'p Pool>,
}

impl<'p> ArraySizes<'p> {
    pub(super) fn of(pool: &'p Pool) -> Self {
        // A server of an earlier version has no pieces, or does not count.
        let has_any = pool
            .tally("exists(piece_of)", TallyOptions::default())
            .is_ok_and(|all| all.objects() > 0);
        Self {
            pool: has_any.then_some(pool),
        }
    }

    /// Returns the pieces of the arrays of a page, by the position of the array.
    pub(super) fn of_page(&self, page: &[Entry]) -> Result<BTreeMap<usize, PieceTotal>> {
        let mut found = BTreeMap::new();
        let Some(pool) = self.pool else { return Ok(found) };
        let visible = page.iter().enumerate().filter(|(_, entry)| entry.staged_in().is_none());
        let names: Vec<(String, usize)> = visible
            .map(|(at, entry)| (format!("{}{}", entry.schema().name(), entry.key()), at))
            .collect();
        for some in names.chunks(ARRAYS_AT_ONCE) {
            let values: Vec<String> = some.iter().map(|(name, _)| quoted(name)).collect();
            let options = TallyOptions {
                by: &["piece_of"],
                sum_bytes: true,
                ..TallyOptions::default()
            };
            let tally = pool.tally(&format!("piece_of={}", values.join("/")), options)?;
            for group in tally.groups {
                let name = group.values.first().and_then(Option::as_deref).unwrap_or_default();
                if let Some((_, at)) = some.iter().find(|(other, _)| other == name) {
                    let total = PieceTotal {
                        pieces: group.objects,
                        bytes: group.bytes.unwrap_or_default(),
                    };
                    found.insert(*at, total);
                }
            }
        }
        Ok(found)
    }
}
