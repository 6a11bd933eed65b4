//! Examples of the answers about reasons.

use junctura_wire::reasons::{
    BundleReference, ClientReference, ExplainedObject, KeepersPlace, KeptByClient, KeptForName, KeptSum, MemoryKeepers,
    MemoryUse, ObjectHolder, OwedReason, ReasonReference, RequirementReference, RetentionReason, WaitPlace,
    WaitingRequest, WaitsPage,
};

use super::Words;

impl Words {
    fn client_reference(&self) -> ClientReference {
        ClientReference {
            client: self.ints[1],
            name: self.texts[0].clone(),
            host: self.texts[1].clone(),
            pid: self.ints[0],
        }
    }

    fn requirement_reference(&self) -> RequirementReference {
        RequirementReference {
            number: self.ints[2],
            name: self.texts[0].clone(),
            selector: self.texts[2].clone(),
            owed: self.longs[0],
            owed_bytes: self.longs[1],
            in_flight: self.longs[2],
            readers: vec![self.client_reference()],
            is_group: self.flags[0],
            is_broken: self.flags[1],
            idle_ms: self.maybe,
            breaks_in_ms: self.maybe,
            is_read: self.flags[0],
        }
    }

    fn bundle_reference(&self) -> BundleReference {
        BundleReference {
            number: self.longs[2],
            path: self.texts[0].clone(),
            state: self.texts[3].clone(),
            members: self.longs[0],
            declared: self.maybe,
            bytes: self.longs[1],
            openers: vec![self.client_reference()],
            ends_in_ms: self.maybe,
        }
    }

    pub(super) fn waits(&self) -> WaitsPage {
        let on = ReasonReference {
            client: Some(self.client_reference()),
            requirement: Some(self.requirement_reference()),
            bundle: Some(self.bundle_reference()),
        };
        WaitsPage {
            requests: vec![WaitingRequest {
                client: self.client_reference(),
                request: self.longs[2],
                kind: self.texts[0].clone(),
                what: self.texts[2].clone(),
                waits_ms: self.maybe,
                ends_in_ms: self.maybe,
                because: self.texts[3].clone(),
                on: vec![on, ReasonReference::default()],
                on_more: self.longs[0],
                behind_it: self.longs[1],
            }],
            next: self.maybe.map(|request| WaitPlace {
                client: self.ints[1],
                request,
            }),
        }
    }

    pub(super) fn explained(&self) -> ExplainedObject {
        ExplainedObject {
            schema: self.texts[0].clone(),
            key: self.texts[2].clone(),
            version: self.texts[1].clone(),
            state: self.texts[3].clone(),
            because: vec![self.texts[3].clone()],
            bytes: self.longs[1],
            place: self.texts[1].clone(),
            segment: Some(self.ints[2]),
            slot: Some(self.ints[3]),
            producer: Some(self.client_reference()),
            retention: Some(RetentionReason {
                rule: self.texts[3].clone(),
                releases: Some(self.ints[1]),
                ends_in_ms: self.maybe,
                names: vec![self.texts[0].clone()],
            }),
            holders: vec![ObjectHolder {
                client: self.client_reference(),
                requirement: Some(self.ints[2]),
                is_released: self.flags[0],
                held_ms: self.maybe,
            }],
            holder_count: self.longs[2],
            owed: vec![OwedReason {
                requirement: self.requirement_reference(),
                in_flight: self.longs[2],
                owed_ms: self.longs[0],
            }],
            owed_count: self.longs[2],
            bundle: Some(self.bundle_reference()),
            archived: Some(self.texts[1].clone()),
            is_spilling: self.flags[0],
            kept_versions: self.longs[0],
            reason: Some(self.texts[3].clone()),
            gone_ms: self.maybe,
            withdrawn_by: Some(self.texts[0].clone()),
        }
    }

    pub(super) fn kept(&self) -> MemoryKeepers {
        let [objects, bytes, held, budget_bytes] = self.longs;
        MemoryKeepers {
            next: self.maybe.map(|row| KeepersPlace {
                client: self.ints[1],
                row,
            }),
            memory: Some(MemoryUse {
                budget_bytes,
                used_bytes: bytes,
                segment_bytes: bytes,
                inline_bytes: objects,
                occupied_bytes: held,
                spilled_bytes: objects,
            }),
            sums: vec![KeptSum {
                because: self.texts[3].clone(),
                objects,
                bytes,
                alone_bytes: held,
            }],
            requirements: vec![self.requirement_reference()],
            clients: vec![KeptByClient {
                client: self.client_reference(),
                leased_bytes: bytes,
                unused_bytes: objects,
                held,
                held_bytes: bytes,
            }],
            bundles: vec![self.bundle_reference()],
            names: vec![KeptForName {
                name: self.texts[0].clone(),
                objects,
                bytes,
            }],
        }
    }
}
