//! Limits besides memory that an offer may wait for, as text.

use crate::core::engine::Core;

impl Core {
    /// What else but payloads an offer may wait for, for people.
    pub(in crate::core) fn full_besides(&self) -> String {
        let (records, budget) = (self.objects.record_bytes, self.objects.record_budget_bytes());
        let (owed, limit) = (self.asked.interests.owed, self.config.limits.owed);
        let of_records = format!("; attributes and index entries of objects take {records} of {budget} bytes");
        let of_owed = format!("; requirements are owed {owed} objects, of {limit} that they may be owed together");
        let texts = [
            (self.objects.are_records_full(), of_records),
            (self.asked.interests.is_owed_as_much_as_may_be(), of_owed),
        ];
        texts
            .into_iter()
            .filter(|(is_full, _)| *is_full)
            .map(|(_, text)| text)
            .collect()
    }
}
