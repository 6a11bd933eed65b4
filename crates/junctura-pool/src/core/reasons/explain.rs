//! Explain: why one object is in memory, or why it was removed.

use junctura_model::{Code, Error, Result};
use junctura_wire::reasons::{ExplainRequest, ExplainedObject, ObjectHolder, OwedReason, RetentionReason};

use super::{HELD_MAX, LookBudget, NAMED_MAX, PoolReasons, ROWS_MAX, to_milliseconds};
use crate::core::interests::interest::InterestAim;
use crate::core::memory::spill::TierState;
use crate::core::objects::key_table::KeyEntry;
use crate::core::objects::object::{ObjectRow, ObjectState, PayloadLocation, RetainedUntil};

/// What is known of a key.
enum KnownObject {
    Here(u32),
    Gone(u32),
}

impl PoolReasons<'_> {
    /// Returns why an object is in memory, or why it was removed.
    ///
    /// # Errors
    /// `NotFound` for an unknown key or version.
    pub fn explain(&self, asked: &ExplainRequest<'_>) -> Result<ExplainedObject> {
        let objects = &self.exchange.objects;
        let InterestAim::Key { identity, text, .. } = self.exchange.asked.interests.aim(&asked.target)? else {
            let cause = "takes a key; a list returns the keys that a selector matches";
            return Err(Error::new(Code::InvalidArgument, "explain", cause));
        };
        match self.known_object(identity, asked.sequence) {
            Some(KnownObject::Here(id)) => Ok(self.explained_object(id, identity)),
            Some(KnownObject::Gone(id)) => {
                let tombstone = objects.tombstones.get(id);
                let is_declined = tombstone.why.is_none();
                let gone_for = self.exchange.asked.timers.now.saturating_sub(tombstone.buried);
                Ok(ExplainedObject {
                    schema: self.schema_name(tombstone.schema),
                    key: text,
                    version: self.version_text(tombstone.sequence),
                    state: if is_declined { "declined" } else { "gone" }.to_owned(),
                    place: "freed".to_owned(),
                    archived: tombstone.place.as_deref().map(str::to_owned),
                    reason: tombstone.why.map(|why| why.name().to_owned()),
                    gone_ms: Some(to_milliseconds(gone_for)),
                    withdrawn_by: tombstone.by.and_then(|place| self.component_name(place)),
                    ..ExplainedObject::default()
                })
            }
            None => Err(Error::new(Code::NotFound, text, "nothing is known of this key")),
        }
    }

    fn known_object(&self, key: u128, sequence: Option<u64>) -> Option<KnownObject> {
        let objects = &self.exchange.objects;
        let filed = match objects.find_key(key) {
            Some(KeyEntry::Object(id)) => Some(KnownObject::Here(id)),
            Some(KeyEntry::Tombstone(id)) => Some(KnownObject::Gone(id)),
            None => None,
        };
        let Some(sequence) = sequence else {
            let staged = || self.exchange.bundles.staged_of(key).map(KnownObject::Here);
            return match filed {
                Some(KnownObject::Here(id)) => Some(KnownObject::Here(id)),
                gone => staged().or(gone),
            };
        };
        let is_it = |known: &KnownObject| match *known {
            KnownObject::Here(id) => objects[id].sequence == sequence,
            KnownObject::Gone(id) => objects.tombstones.get(id).sequence == sequence,
        };
        let kept = || {
            let versions = objects.superseded.range((key, 0)..=(key, u32::MAX)).take(ROWS_MAX);
            let mut kept = versions.map(|&(_, id)| KnownObject::Here(id));
            kept.find(is_it)
        };
        filed.filter(is_it).or_else(kept)
    }

    fn explained_object(&self, id: u32, key: u128) -> ExplainedObject {
        let exchange = &self.exchange;
        let (objects, asked) = (&exchange.objects, &exchange.asked);
        let object = &objects[id];
        let (segment, slot) = match object.place {
            PayloadLocation::Slot { segment, slot } => (Some(segment), Some(slot)),
            PayloadLocation::Inline | PayloadLocation::File { .. } | PayloadLocation::Freed => (None, None),
        };
        let versions = objects.superseded.range((key, 0)..=(key, u32::MAX)).take(ROWS_MAX);
        ExplainedObject {
            schema: self.schema_name(object.schema),
            key: objects.key_text(object.schema, &object.record),
            version: self.version_text(object.sequence),
            state: self.state_of(object).to_owned(),
            because: self.kept_by(object),
            bytes: object.length,
            place: place_name(object.place).to_owned(),
            segment,
            slot,
            producer: Some(asked.clients.client_reference(object.producer)),
            retention: Some(self.retention_reason(object)),
            holders: self.holders_of(id, object.holders as usize),
            holder_count: u64::from(object.holders),
            owed: self.owed_reasons(id),
            owed_count: u64::from(object.owed),
            bundle: Some(object.bundle)
                .filter(|&bundle| bundle > 0)
                .and_then(|bundle| exchange.bundles.bundle_reference(&asked.clients, &asked.timers, bundle)),
            archived: object
                .archived
                .as_ref()
                .map(|copy| copy.place.as_deref().unwrap_or_default().to_owned()),
            is_spilling: matches!(object.leaving, TierState::Underway(_)),
            kept_versions: versions.filter(|&&(_, other)| other != id).count() as u64,
            reason: None,
            gone_ms: None,
            withdrawn_by: None,
        }
    }

    fn state_of(&self, object: &ObjectRow) -> &'static str {
        match object.state {
            ObjectState::Visible if object.is_out_of_sight(self.exchange.asked.timers.now) => "leaving",
            ObjectState::Visible => "visible",
            ObjectState::Superseded => "superseded",
            ObjectState::Staged => "staged",
            ObjectState::Gone(_) | ObjectState::Dropped => "gone",
        }
    }

    fn kept_by(&self, object: &ObjectRow) -> Vec<String> {
        let is_leaving = object.is_out_of_sight(self.exchange.asked.timers.now);
        let causes = [
            ("retention", object.is_kept_by_retention() && !is_leaving),
            ("owed", object.owed > 0),
            ("held", object.holders > 0),
            ("staged", object.is_staged()),
            ("leaving", is_leaving),
        ];
        let true_ones = causes.into_iter().filter(|(_, is_true)| *is_true);
        true_ones.map(|(because, _)| because.to_owned()).collect()
    }

    fn retention_reason(&self, object: &ObjectRow) -> RetentionReason {
        let now = self.exchange.asked.timers.now;
        let mut reason = RetentionReason {
            rule: retention_rule(object.until).to_owned(),
            ..RetentionReason::default()
        };
        match object.until {
            RetainedUntil::Released(left) => reason.releases = Some(left),
            RetainedUntil::Time(at) if !object.is_staged() => {
                reason.ends_in_ms = Some(to_milliseconds(at.saturating_sub(now)));
            }
            RetainedUntil::Awaited { consumers, absent } => {
                reason.names = self.exchange.retention.names_of(consumers, absent);
            }
            RetainedUntil::Time(_) | RetainedUntil::Withdrawn | RetainedUntil::Together | RetainedUntil::Over => {}
        }
        reason
    }

    /// Clients that hold an object, as far as a bounded look finds them.
    fn holders_of(&self, id: u32, holders: usize) -> Vec<ObjectHolder> {
        let asked = &self.exchange.asked;
        let mut found = Vec::new();
        let mut looks = HELD_MAX;
        for client in asked.clients.numbers_from(0) {
            if found.len() >= holders.min(NAMED_MAX) || looks == 0 {
                break;
            }
            let held = asked.clients.get(client).map(|state| &state.held);
            for (_, delivery) in held.into_iter().flatten().take(looks) {
                looks -= 1;
                if delivery.object == id && found.len() < NAMED_MAX {
                    found.push(ObjectHolder {
                        client: asked.clients.client_reference(client),
                        requirement: asked.interests.still(delivery.via.and_then(|via| via.requirement)),
                        is_released: delivery.is_released,
                        held_ms: Some(to_milliseconds(asked.timers.now.saturating_sub(delivery.since))),
                    });
                }
            }
        }
        found
    }

    fn owed_reasons(&self, id: u32) -> Vec<OwedReason> {
        let asked = &self.exchange.asked;
        let (now, sequence) = (asked.timers.now, self.exchange.objects[id].sequence);
        let is_short = self.exchange.memory.somebody_waits_for_memory();
        let mut budget = LookBudget { left: ROWS_MAX };
        let reason = |of: u32| {
            let owed = asked.interests.requirement_ref(of)?.owed.get(&sequence)?;
            Some(OwedReason {
                requirement: asked.requirement_reference(of, is_short)?,
                in_flight: u64::from(owed.in_flight),
                owed_ms: to_milliseconds(now.saturating_sub(owed.since)),
            })
        };
        let owing = self.owing(id, NAMED_MAX, &mut budget);
        owing.into_iter().filter_map(reason).collect()
    }

    fn component_name(&self, place: u8) -> Option<String> {
        let mut components = self.exchange.asked.flows.components.iter();
        components.nth(place.into()).map(|(name, _)| name.to_owned())
    }

    fn schema_name(&self, schema: u16) -> String {
        let schema = self.config.schemas.get(usize::from(schema));
        schema.map_or_else(String::new, |schema| schema.name().to_owned())
    }

    fn version_text(&self, sequence: u64) -> String {
        if sequence == 0 {
            return String::new();
        }
        format!("{}.{sequence}", self.config.incarnation)
    }
}

fn place_name(place: PayloadLocation) -> &'static str {
    match place {
        PayloadLocation::Slot { .. } => "slot",
        PayloadLocation::Inline => "message",
        PayloadLocation::File { .. } => "file",
        PayloadLocation::Freed => "freed",
    }
}

/// The name of a rule of retention.
pub(super) fn retention_rule(until: RetainedUntil) -> &'static str {
    match until {
        RetainedUntil::Withdrawn => "until_withdrawn",
        RetainedUntil::Released(_) => "released",
        RetainedUntil::Time(_) => "for",
        RetainedUntil::Awaited { .. } => "released_by",
        RetainedUntil::Together => "together",
        RetainedUntil::Over => "over",
    }
}
