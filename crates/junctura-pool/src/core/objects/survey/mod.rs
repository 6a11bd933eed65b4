//! Surveys: requests that look at all objects that match, and keep little of each: counts, or the first of an order.
//!
//! ```text
//!   begin: candidates of the index, and whether they are exact        finish: a count of each group, or the first objects
//!     |      those that are counted by length are counted at once                               ^
//!     '----> left ----- so many in each step: match, count or compare --------------------------'
//!            not filed yet --'
//! ```
//! A survey looks at objects up to the newest number of its beginning. It does not complete the listing index: objects that are not filed are
//! looked at where they are. An object that leaves between two steps is subtracted. The first objects of an order are watched, as
//! those of a list are, so they stay until they were sent.

mod first_entries;
mod steps;
mod tally_groups;

use junctura_model::selector::SelectorSet;
use junctura_model::{Code, Error, Result, Schema};
use junctura_wire::Request;
use junctura_wire::body::ListRequest;
use junctura_wire::look::{ListPosition, TallyRequest};
use roaring::RoaringBitmap;

pub(in crate::core) use first_entries::FirstEntries;
pub(in crate::core) use tally_groups::TallyGroups;

use crate::core::interests::interest::typed;
use crate::core::objects::index::HiddenObjects;
use crate::core::objects::object::ObjectRow;
use crate::core::objects::table::ObjectTable;

/// A survey that is not over.
pub(in crate::core) struct OpenSurvey {
    /// The request's bytes: it is known by them.
    pub(in crate::core) asked: Vec<u8>,
    selectors: SelectorSet,
    /// Objects that are looked at in one step.
    objects_at_once: usize,
    /// The newest number when it began.
    pub(in crate::core) since: u64,
    /// Up to this number, objects that are not filed were looked at.
    looked_until: u64,
    /// Objects that are not filed are only counted.
    filed_only: bool,
    /// Filed objects that have yet to be looked at.
    left: RoaringBitmap,
    /// Objects that entered the index since then, and have yet to be looked at.
    late: RoaringBitmap,
    /// Per schema: those that are left match.
    is_exact: Vec<bool>,
    pub(in crate::core) finding: SurveyFinding,
    /// The bytes that count against its client.
    pub(in crate::core) bytes: usize,
    /// Why the request is refused.
    pub(in crate::core) refusal: Option<Error>,
}

/// The results of a survey so far.
pub(in crate::core) enum SurveyFinding {
    Tally {
        groups: TallyGroups,
        /// The slots of the counted objects.
        counted: RoaringBitmap,
    },
    First(FirstEntries),
}

/// Returns the bytes of a request that is a survey.
pub(in crate::core) fn survey_bytes(request: &Request<'_>) -> Option<Vec<u8>> {
    let is_survey = match request {
        Request::Tally(_) => true,
        Request::List(list) => list.limit.is_some(),
        _ => false,
    };
    is_survey.then(|| {
        let mut bytes = Vec::new();
        request.encode(0, &mut bytes);
        bytes
    })
}

impl OpenSurvey {
    /// # Errors
    /// `InvalidArgument` for an attribute that no schema has, and for numbers out of their limits.
    pub(in crate::core) fn of_tally(
        objects: &ObjectTable,
        asked: Vec<u8>,
        tally: &TallyRequest<'_>,
        selectors: SelectorSet,
        sight: HiddenObjects,
    ) -> Result<Self> {
        let groups = TallyGroups::new(&objects.config.schemas, tally)?;
        let finding = SurveyFinding::Tally {
            groups,
            counted: RoaringBitmap::new(),
        };
        let mut survey = Self::new(objects, asked, selectors, finding);
        if tally.filed_only {
            survey.looked_until = survey.since;
            survey.filed_only = true;
        }
        survey.find(objects, sight.departed_by.is_none());
        Ok(survey)
    }

    /// # Errors
    /// `InvalidArgument` for an order that no schema has, a limit out of bounds, and options that exclude a limit.
    pub(in crate::core) fn of_list(
        objects: &ObjectTable,
        asked: Vec<u8>,
        list: &ListRequest<'_>,
        selectors: SelectorSet,
    ) -> Result<Self> {
        let limit = list.limit.unwrap_or_default();
        if !(1..=ListPosition::OBJECTS_MAX).contains(&limit) {
            let cause = format!("it is from 1 to {}", ListPosition::OBJECTS_MAX);
            return Err(Error::new(Code::InvalidArgument, "limit", cause));
        }
        if list.incomplete || list.bundle.is_some() {
            let cause = "a list of bundles' members has none";
            return Err(Error::new(Code::InvalidArgument, "limit", cause));
        }
        if let Some(after) = &list.after {
            schema_of(objects, after.schema)?.check(&after.record)?;
        }
        let sorting = objects.sorting(&list.order)?;
        let first = FirstEntries::new(sorting, limit as usize, list.after.as_ref());
        let mut survey = Self::new(objects, asked, selectors, SurveyFinding::First(first));
        // Each may be compared with many others.
        survey.objects_at_once = survey.objects_at_once.div_ceil(2);
        survey.find(objects, false);
        Ok(survey)
    }

    fn new(objects: &ObjectTable, asked: Vec<u8>, selectors: SelectorSet, finding: SurveyFinding) -> Self {
        Self {
            asked,
            objects_at_once: objects.looked_at_in_a_step(&selectors),
            selectors,
            since: objects.sequence,
            looked_until: 0,
            filed_only: false,
            left: RoaringBitmap::new(),
            late: RoaringBitmap::new(),
            is_exact: vec![false; objects.listing.len()],
            finding,
            bytes: 0,
            refusal: None,
        }
    }

    /// Finds the candidates. Those that can be counted by lengths are, where all are in sight.
    fn find(&mut self, objects: &ObjectTable, are_all_in_sight: bool) {
        for (schema, selector) in typed(&self.selectors, objects.listing.len()) {
            let index = &objects.listing[schema];
            let (slots, is_exact) = index.found(selector);
            self.is_exact[schema] = is_exact;
            if are_all_in_sight
                && is_exact
                && let SurveyFinding::Tally { groups, counted } = &mut self.finding
                && groups.add_lengths(schema, index, &slots)
            {
                *counted |= slots;
            } else {
                self.left |= slots;
            }
        }
    }

    /// Bytes of what it keeps.
    pub(in crate::core) fn kept_bytes(&self) -> usize {
        // The sets of counted and of late objects together are about as large as the candidates at the beginning.
        match &self.finding {
            SurveyFinding::Tally { groups, counted } => {
                groups.bytes() + (self.left.serialized_size() + counted.serialized_size()) + self.asked.len()
            }
            SurveyFinding::First(first) => first.bytes() + 2 * self.left.serialized_size() + self.asked.len(),
        }
    }

    /// An object has entered the index.
    pub(in crate::core) fn note_indexed(&mut self, id: u32, sequence: u64) {
        let is_unseen = self.filed_only || self.looked_until < sequence;
        if is_unseen && sequence <= self.since {
            self.late.insert(id);
        }
    }

    /// An object is not visible any more.
    pub(in crate::core) fn note_hidden(&mut self, id: u32, object: &ObjectRow) {
        self.left.remove(id);
        self.late.remove(id);
        if let SurveyFinding::Tally { groups, counted } = &mut self.finding
            && counted.remove(id)
        {
            groups.subtract(object);
        }
    }

    /// The objects that it watches.
    pub(in crate::core) fn watched(&self) -> &[u32] {
        match &self.finding {
            SurveyFinding::Tally { .. } => &[],
            SurveyFinding::First(first) => first.entries(),
        }
    }
}

/// # Errors
/// `SchemaMismatch` for a number that no schema has.
fn schema_of(objects: &ObjectTable, number: u16) -> Result<&Schema> {
    let schema = objects.config.schemas.get(usize::from(number));
    schema.map(AsRef::as_ref).ok_or_else(|| {
        let cause = "the pool has no schema of this number";
        Error::new(Code::SchemaMismatch, format!("schema {number}"), cause)
    })
}
