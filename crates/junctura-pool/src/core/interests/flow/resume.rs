//! Follows that resume from the cursor of an earlier one.

use junctura_model::selector::SelectorSet;
use junctura_model::version::{Cursor, Phase};
use junctura_model::{Code, Error, Result};

use crate::core::clients::table::ClientTable;
use crate::core::objects::index::HiddenObjects;
use crate::core::objects::order::ResolvedOrder;
use crate::core::objects::table::ObjectTable;
use crate::core::objects::tombstone::MissedObjects;

impl ObjectTable {
    /// Parses a cursor of this incarnation.
    ///
    /// # Errors
    /// `Expired` for one of another incarnation.
    pub(in crate::core) fn own_cursor(&self, text: &str) -> Result<Cursor> {
        let cursor: Cursor = text.parse()?;
        if cursor.incarnation == self.config.incarnation {
            return Ok(cursor);
        }
        let cause = format!(
            "it belongs to incarnation {} of the server, this is {}: its objects no longer exist, and later ones than version \
             {} were not delivered; follow without a cursor",
            cursor.incarnation,
            self.config.incarnation,
            cursor.version()
        );
        Err(Error::new(Code::Expired, format!("cursor {text}"), cause))
    }

    /// Returns the objects that a follow resumed from `cursor` has yet to receive: the rest of its first phase, objects
    /// that became visible since, and gaps of objects that became visible since and are removed already.
    pub(in crate::core) fn resume(
        &mut self,
        clients: &mut ClientTable,
        sight: HiddenObjects,
        selectors: &SelectorSet,
        sorting: &ResolvedOrder,
        cursor: &Cursor,
    ) -> Result<(Vec<u32>, Vec<u32>, Vec<MissedObjects>)> {
        let since = match &cursor.phase {
            Phase::First { snapshot, .. } => *snapshot,
            Phase::Live { last } => *last,
        };
        let found = self.visible_matches(clients, sight, selectors);
        let (mut live, there): (Vec<u32>, Vec<u32>) = found.into_iter().partition(|&id| self[id].sequence > since);
        live.sort_unstable_by_key(|&id| self[id].sequence);
        let first = match &cursor.phase {
            Phase::Live { .. } => Vec::new(),
            Phase::First {
                last_key,
                last_sort_value,
                ..
            } => {
                let (schema, key) = self.parse_any_key(last_key)?;
                let mut rest = there;
                rest.retain(|&id| {
                    let object = &self[id];
                    self.compare_with(sorting, object, schema, key.as_ref(), last_sort_value.as_deref())
                        .is_gt()
                });
                rest
            }
        };
        let missed = self.missed_after(clients, sight, since, selectors);
        Ok((first, live, missed))
    }

    fn parse_any_key(&self, text: &str) -> Result<(u16, junctura_model::Record)> {
        let mut outcome = Err(Error::new(Code::InvalidArgument, "cursor", "no schema reads its key"));
        for (number, schema) in self.config.schemas.iter().enumerate() {
            outcome = schema.parse_key(text).map(|record| (number as u16, record));
            if outcome.is_ok() {
                break;
            }
        }
        outcome
    }
}
