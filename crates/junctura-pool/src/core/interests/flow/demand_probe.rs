//! Demand probes: a producer may ask whether an object is wanted before it makes the object.
//!
//! ```text
//!            Wanted                 wanted: the producer offers
//!   record ---------> matching ----------------------------------> (an object)
//!                        |  not wanted, and declined
//!                        '-------------------------> a marker under the key, for as long as a tombstone would last
//! ```
//! An object is wanted by demands that wait, by follows, and by requirements that are not broken; not by subscriptions,
//! which receive no payload. A marker informs later demands of its key that the object will not be offered, and
//! subscribers of the probe; it is removed when the key is offered after all. It is no object: it is in no list, and
//! rules for equal keys ignore it.

use junctura_model::{Code, Error, RecordRef, Result};
use junctura_wire::Reply;
use junctura_wire::body::{EventBody, ObjectName, WantedRequest, events};

use crate::Effects;
use crate::core::clients::requests::ClientRequests;
use crate::core::engine::Core;
use crate::core::exchange::ObjectExchange;
use crate::core::objects::identity::ObjectIdentity;
use crate::core::objects::key_table::KeyEntry;

/// An object that was not offered.
#[derive(Clone, Copy)]
pub(in crate::core) struct DeclinedOffer<'a> {
    pub(in crate::core) schema: u16,
    pub(in crate::core) record: &'a [u8],
    pub(in crate::core) length: u64,
}

impl Core {
    pub(in crate::core) fn wanted(
        &mut self,
        client: u32,
        request: u64,
        wanted: &WantedRequest<'_>,
        fx: &mut impl Effects,
    ) -> Result<()> {
        let identity = self.exchange.objects.identify(wanted.schema, &wanted.record)?;
        let count = self
            .exchange
            .asked
            .interests
            .count_wanting(wanted.schema, &wanted.record);
        if count == 0 && wanted.declines {
            let declined = DeclinedOffer {
                schema: wanted.schema,
                record: &wanted.record,
                length: 0,
            };
            self.exchange.decline(client, identity, declined, fx);
        }
        fx.reply(client, request, &Reply::Done(count));
        Ok(())
    }
}

impl ObjectExchange {
    /// Records that no interest wants an object, and its producer does not offer it.
    pub(in crate::core) fn decline(
        &mut self,
        client: u32,
        ObjectIdentity { key, dataset, .. }: ObjectIdentity,
        declined: DeclinedOffer<'_>,
        fx: &mut impl Effects,
    ) {
        self.asked.count.declined += 1;
        self.asked.tell_of_declined(client, declined, events::DECLINED, fx);
        match self.objects.find_key(key) {
            None => {}
            Some(filed) if self.objects.is_marker(filed) => self.objects.forget_marker(filed),
            Some(_) => return,
        }
        self.objects.mark(self.asked.timers.now, key, dataset, declined);
    }

    /// Answers a demand for a declined object.
    pub(in crate::core) fn refuse_declined(
        &mut self,
        client: u32,
        identity: u128,
        text: &str,
        fx: &mut impl Effects,
    ) -> Result<()> {
        let Some(KeyEntry::Tombstone(id)) = self
            .objects
            .find_key(identity)
            .filter(|&filed| self.objects.is_marker(filed))
        else {
            return Ok(());
        };
        let marker = self.objects.tombstones.get(id);
        let record = self.objects.tombstones.record(marker).as_bytes().to_vec();
        let missed = DeclinedOffer {
            schema: marker.schema,
            record: &record,
            length: 0,
        };
        self.asked.tell_of_declined(client, missed, events::MISSED, fx);
        Err(not_wanted(text))
    }
}

impl ClientRequests {
    pub(in crate::core) fn tell_of_declined(
        &mut self,
        client: u32,
        what: DeclinedOffer<'_>,
        event: u32,
        fx: &mut impl Effects,
    ) {
        let mut matched = Vec::new();
        self.interests.matching[usize::from(what.schema)].matches(RecordRef::trusted(what.record), &mut matched);
        for id in matched {
            if !self.hears(id, event, fx) {
                continue;
            }
            let happened = EventBody {
                event,
                object: Some(ObjectName {
                    schema: what.schema,
                    sequence: 0,
                    record: what.record.into(),
                }),
                length: what.length,
                client: self.clients.wire_peer(client),
                ..EventBody::default()
            };
            self.count.events += u64::from(self.interests.tell(id, happened, fx));
        }
    }
}

pub(in crate::core) fn not_wanted(key: &str) -> Error {
    let cause = "no client wanted it, and its producer did not offer it";
    Error::new(Code::NotWanted, key, cause)
}
