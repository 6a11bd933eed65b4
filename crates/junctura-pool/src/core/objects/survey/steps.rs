//! The steps of a survey: each looks at some objects.

use crate::core::objects::index::HiddenObjects;
use crate::core::objects::survey::{OpenSurvey, SurveyFinding};
use crate::core::objects::table::ObjectTable;

impl OpenSurvey {
    /// Looks at some more objects. Returns whether all were looked at.
    pub(in crate::core) fn step(&mut self, objects: &mut ObjectTable, sight: HiddenObjects) -> bool {
        for id in self.next_unfiled(objects) {
            self.look_at(objects, sight, id, false);
        }
        for (id, is_filed) in self.next_filed() {
            self.look_at(objects, sight, id, is_filed);
        }
        self.looked_until == self.since && self.left.is_empty() && self.late.is_empty()
    }

    /// Takes the next objects that are not filed.
    fn next_unfiled(&mut self, objects: &ObjectTable) -> Vec<u32> {
        if self.looked_until == self.since {
            return Vec::new();
        }
        let start = objects
            .unindexed
            .partition_point(|&(_, sequence)| sequence <= self.looked_until);
        let due = objects.unindexed.range(start..);
        let due = due.take_while(|&&(_, sequence)| sequence <= self.since);
        let some: Vec<(u32, u64)> = due.take(self.objects_at_once).copied().collect();
        self.looked_until = match some.last() {
            Some(&(_, sequence)) if some.len() == self.objects_at_once => sequence,
            _ => self.since,
        };
        let are_there = some
            .into_iter()
            .filter(|&(id, sequence)| objects.is_unindexed(id, sequence));
        are_there.map(|(id, _)| id).collect()
    }

    /// Takes the next objects of the index, each with whether it was a candidate at the beginning.
    fn next_filed(&mut self) -> Vec<(u32, bool)> {
        let count = self.objects_at_once;
        let mut some: Vec<(u32, bool)> = self.left.iter().take(count).map(|id| (id, true)).collect();
        if let (Some(&(first, _)), Some(&(last, _))) = (some.first(), some.last()) {
            self.left.remove_range(first..=last);
        }
        let more = self.late.iter().take(count - some.len());
        let more: Vec<(u32, bool)> = more.map(|id| (id, false)).collect();
        for &(id, _) in &more {
            self.late.remove(id);
        }
        some.extend(more);
        some
    }

    fn look_at(&mut self, objects: &mut ObjectTable, sight: HiddenObjects, id: u32, is_candidate: bool) {
        let Some(object) = objects.get(id) else { return };
        let schema = usize::from(object.schema);
        let is_known = is_candidate && self.is_exact[schema];
        let selector = self.selectors.of(schema);
        if !selector.is_some_and(|selector| is_known || selector.matches(object.record())) {
            return;
        }
        if sight.departed_by.is_some_and(|now| object.is_out_of_sight(now)) {
            return;
        }
        match &mut self.finding {
            SurveyFinding::Tally { groups, counted } => {
                groups.add(object);
                counted.insert(id);
            }
            SurveyFinding::First(first) => first.add(objects, id),
        }
    }
}
