//! The end of objects' wait for absent names.

use junctura_model::{Code, Consumers, Error, Result};
use junctura_wire::Reply;
use junctura_wire::body;
use slab::Slab;

use crate::Effects;
use crate::core::clients::requests::ClientRequests;
use crate::core::deferred::DeferredPart;
use crate::core::deferred::DeferredWork;
use crate::core::exchange::ObjectExchange;
use crate::core::interests::interest::StandingInterest;
use crate::core::objects::retention_by_name::AwaitedNames;
use crate::core::objects::retention_by_name::RetentionByName;
use crate::core::objects::table::ObjectTable;

impl ObjectExchange {
    /// At the end of an event: objects stop waiting for names that requirements have taken, and those that neither a
    /// requirement nor anything else keeps are removed.
    pub(in crate::core) fn let_unneeded_go(&mut self, fx: &mut impl Effects) {
        let names = std::mem::take(&mut self.retention.came);
        if !names.is_empty() {
            self.retention
                .await_no_more_of_those_who_came(&mut self.objects, &mut self.deferred, names);
        }
        for id in std::mem::take(&mut self.retention.unneeded) {
            self.settle_in_turn(id, fx);
        }
    }

    /// Scans the next few of very many slots of the table. Returns whether there are more.
    pub(in crate::core) fn await_next(&mut self, coming: &mut AwaitedNames, fx: &mut impl Effects) -> bool {
        const AT_ONCE: usize = 16;
        let next = coming.places.start;
        let some = next..(next + AT_ONCE).min(coming.places.end);
        coming.places.start = some.end;
        for id in some {
            if self.retention.awaits_no_more(&mut self.objects, coming, id as u32) {
                self.settle_in_turn(id as u32, fx);
            }
        }
        !coming.places.is_empty()
    }
}

impl RetentionByName {
    /// Numbers a set of names that a client's offers may be retained for.
    pub(in crate::core) fn number_consumers(
        &mut self,
        asked: &mut ClientRequests,
        client: u32,
        request: u64,
        consumers: &body::ConsumerNames,
        fx: &mut impl Effects,
    ) -> Result<()> {
        let names = Consumers::new(consumers.names.iter().map(String::as_str))?;
        let limits = &asked.config.limits;
        let standing = &asked.interests.named;
        let Some(state) = asked.clients.get_mut(client) else {
            return Ok(());
        };
        let known = self.numbers.get(&names);
        let number = known.and_then(|known| state.consumers.iter().position(|set| set == known));
        let number = match number {
            Some(number) => number,
            None if state.consumers.len() >= limits.consumers_per_client => {
                let cause = format!("a client may name {} sets", limits.consumers_per_client);
                return Err(Error::new(Code::LimitExceeded, "retention", cause));
            }
            None => {
                let set = self.find_or_make(&names, limits.consumers, |name| {
                    standing
                        .get(name)
                        .is_some_and(|&id| has_begun(&asked.interests.table, id))
                })?;
                self.hold(set);
                state.consumers.push(set);
                state.consumers.len() - 1
            }
        };
        fx.reply(client, request, &Reply::Done(number as u64));
        Ok(())
    }

    pub(in crate::core) fn await_no_more_of_those_who_came(
        &mut self,
        objects: &mut ObjectTable,
        deferred: &mut DeferredWork,
        names: Vec<String>,
    ) {
        let coming = AwaitedNames {
            names,
            places: 0..objects.table.iter().next_back().map_or(0, |(last, _)| last + 1),
            newest: objects.sequence,
        };
        if objects.len() > objects.config.changed_at_once {
            return deferred.go_on_later(DeferredPart::Await(coming));
        }
        let all = objects
            .table
            .iter()
            .filter(|(_, object)| coming.are_awaited_by(object, self));
        let mut awaiting: Vec<(u64, u32)> = all.map(|(id, object)| (object.sequence, id as u32)).collect();
        awaiting.sort_unstable();
        for (_, id) in awaiting {
            if self.awaits_no_more(objects, &coming, id) {
                self.unneeded.push(id);
            }
        }
    }
}

/// Whether a requirement is owed all objects that were visible when it was made: then its name is taken.
fn has_begun(interests: &Slab<StandingInterest>, id: u32) -> bool {
    matches!(interests.get(id as usize), Some(StandingInterest::Requirement(one)) if one.has_begun())
}
