//! Limits besides memory that an offer may wait for, as text.

use junctura_model::size;

use crate::core::clients::requests::ClientRequests;
use crate::core::objects::table::ObjectTable;

impl ClientRequests {
    /// Describes, for people, the resources other than payload memory that an offer may wait for.
    pub(in crate::core) fn full_besides(&self, objects: &ObjectTable) -> String {
        let (records, budget) = (objects.record_bytes, objects.record_budget_bytes());
        let (owed, limit) = (self.interests.owed, self.config.limits.owed);
        let of_records = format!(
            "; attributes and index entries of objects take {} of {}",
            size::bytes(records),
            size::bytes(budget)
        );
        let of_owed = format!("; requirements are owed {owed} objects, of {limit} that they may be owed together");
        let texts = [
            (objects.are_records_full(), of_records),
            (self.interests.is_owed_as_much_as_may_be(), of_owed),
        ];
        texts
            .into_iter()
            .filter(|(is_full, _)| *is_full)
            .map(|(_, text)| text)
            .collect()
    }
}
