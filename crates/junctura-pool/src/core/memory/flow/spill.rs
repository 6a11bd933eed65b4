//! Moves of payloads to the file tier.

use junctura_model::Result;
use junctura_wire::body::events;

use crate::Effects;
use crate::core::engine::Core;
use crate::core::engine::timers::Nanoseconds;
use crate::core::exchange::ObjectExchange;
use crate::core::memory::spill::TierState;
use crate::core::objects::object::PayloadLocation;

impl Core {
    /// Takes the result of writing a payload to the file tier: its checksum (CRC-32C), or the error.
    pub fn spilled(&mut self, now: Nanoseconds, job: u32, outcome: Result<u32>, fx: &mut impl Effects) {
        self.exchange.begin(now);
        let Some(done) = self
            .exchange
            .memory
            .tier
            .as_mut()
            .and_then(|tier| tier.jobs.try_remove(job as usize))
        else {
            return;
        };
        if let Some(tier) = &mut self.exchange.memory.tier {
            tier.bytes_underway -= done.length;
        }
        let mut has_moved = false;
        match (done.object, outcome) {
            (Some(id), Ok(checksum)) if self.exchange.objects[id].holders == 0 => {
                self.exchange.move_out(id, done.at, checksum, fx);
                has_moved = true;
            }
            (Some(id), outcome) => {
                self.exchange.objects[id].leaving = TierState::No;
                self.exchange
                    .memory
                    .pause_after(&mut self.exchange.asked.timers, outcome);
                self.exchange.memory.may_be_spilled(&mut self.exchange.objects, id);
            }
            (None, outcome) => self
                .exchange
                .memory
                .pause_after(&mut self.exchange.asked.timers, outcome),
        }
        if !has_moved {
            self.exchange.memory.give_room_back(done.at, done.length, fx);
        }
        self.follow_up(fx);
    }
}

impl ObjectExchange {
    /// Moves an object's payload to the file tier.
    pub(in crate::core) fn move_out(&mut self, id: u32, at: u64, checksum: u32, fx: &mut impl Effects) {
        let object = &mut self.objects[id];
        object.leaving = TierState::No;
        object.checksum.get_or_insert(checksum);
        let (from, length, is_staged) = (object.place, object.length, object.is_staged());
        let to = PayloadLocation::File { at };
        object.place = to;
        if is_staged {
            self.bundles.pin(&self.memory, from, length, false);
            self.bundles.pin(&self.memory, to, length, true);
            // Others may wait for memory that only its bundle could free now.
            self.memory.came_free = true;
        }
        self.memory.vacate(
            &mut self.objects,
            &mut self.asked.clients,
            &self.asked.timers,
            id,
            from,
            fx,
        );
        if let Some(tier) = &mut self.memory.tier {
            tier.count.objects += 1;
            tier.count.written += 1;
            tier.count.written_bytes += length;
        }
        if !is_staged {
            self.asked.tell_about_object(&mut self.objects, id, events::SPILLED, fx);
        }
    }
}
