//! Checks by a client of the replies that it receives.

use std::fmt::Write as _;
use std::rc::Rc;

use junctura_model::Code;
use junctura_wire::fixed::SegmentHead;

use crate::INCARNATION;
use crate::clients::client::{Client, Doing, Holding, Leased};
use crate::clients::linked::Hears;
use crate::clients::replies::{Delivered, Named, Said};
use crate::clients::requests::{Ask, Place};
use crate::run::rng::Rng;
use crate::world::{Checked, World, note};

impl World {
    /// A client reads one message; false when there was none.
    ///
    /// # Errors
    /// The promise that was broken.
    pub(crate) fn receive(&mut self, place: usize, rng: &mut Rng, keeps: bool) -> Result<bool, String> {
        let Some(client) = &self.clients[place] else {
            return Ok(false);
        };
        let id = client.id;
        match self.hear_link(place, rng)? {
            Hears::Nothing => return Ok(false),
            Hears::Lost => {
                self.gone_here(place);
                return Ok(true);
            }
            Hears::Next => {}
        }
        let Some(line) = self.recorder.lines.get_mut(&id) else {
            return Ok(false);
        };
        let Some((request, said, bytes)) = line.messages.pop_front() else {
            if line.closed {
                note!(self, "client {id} sees the end of its connection");
                self.forget_readers(place);
                self.recorder.lines.remove(&id);
                self.clients[place] = None;
            }
            return Ok(false);
        };
        line.bytes -= bytes;
        note!(self, "client {id} reads {request}: {said:?}");
        self.take_in(place, request, &said, rng, keeps)
            .map_err(|why| format!("client {id} received, for {request}, {said:?}: {why}"))?;
        Ok(true)
    }

    fn client(&mut self, place: usize) -> Result<&mut Client, String> {
        self.clients[place]
            .as_mut()
            .ok_or_else(|| "no client is there".to_owned())
    }

    fn take_in(&mut self, place: usize, request: u64, said: &Rc<Said>, rng: &mut Rng, keeps: bool) -> Checked {
        match &**said {
            Said::Freed(slots) => {
                let client = self.client(place)?;
                for (segment, slot) in slots {
                    let leased = client.leased.get_mut(segment).ok_or("it does not lease it")?;
                    if !leased.give_back(*slot) {
                        return Err("the slot was free".to_owned());
                    }
                }
                return Ok(());
            }
            Said::Recall(segment) => return self.recalled(place, *segment, rng, keeps),
            Said::Dropped(segment) => return self.dropped(place, *segment),
            Said::Segment(head) if head.writable.get() == 0 => {
                let is_new = self.client(place)?.mapped.insert(head.segment.get());
                return if is_new {
                    Ok(())
                } else {
                    Err("it has it already".to_owned())
                };
            }
            _ => {}
        }
        let client = self.client(place)?;
        let doing = client.doing.get(&request).cloned().ok_or("it did not ask")?;
        match (doing, &**said) {
            (_, Said::Failed(code)) => self.failed(place, request, *code),
            (Doing::Hello, Said::Welcome { .. }) => {
                client.welcomed = true;
                client.doing.remove(&request);
                Ok(())
            }
            (Doing::Offer(_, durable), Said::Offered(sequence)) => self.offered(place, request, *sequence, durable),
            (Doing::Stage(_, _, durable), Said::Offered(sequence)) => {
                client.doing.remove(&request);
                if durable && *sequence > 0 {
                    client.doing.insert(request, Doing::Durable);
                }
                Ok(())
            }
            (Doing::Bundle, Said::Completed { versions, .. }) => self.completed(place, request, versions),
            (Doing::Bundle, Said::Ended(Some(Code::Io))) => {
                // Its members are visible, under versions that are not sent to it.
                client.doing.remove(&request);
                client.staged.retain(|_, bundle| *bundle != request);
                Ok(())
            }
            (Doing::Bundle, Said::Ended(_)) => {
                client.doing.remove(&request);
                self.completed(place, request, &[])
            }
            (Doing::Abort(which), Said::Done(_)) => {
                client.doing.remove(&request);
                client.doing.remove(&which);
                self.completed(place, which, &[])
            }
            (Doing::Lease, Said::Segment(head)) => self.leased(place, request, head),
            (Doing::Demand(wish), Said::Delivered(delivered)) => {
                client.doing.remove(&request);
                if let Some(wish) = wish {
                    self.wishes[wish].came.insert(delivered.sequence());
                }
                self.holds(place, delivered, None, rng, keeps)
            }
            (Doing::List { began, items }, said) => self.listed(place, request, began, items, said),
            (Doing::Follow(chain), said) => self.followed(place, request, chain, said, rng, keeps),
            (Doing::Require(wish), Said::Gap { items, .. }) => {
                self.wishes[wish].came.extend(items.iter().map(|item| item.sequence));
                Ok(())
            }
            (Doing::Require(_) | Doing::Use(_) | Doing::Subscribe | Doing::Bundle, Said::Began(_))
            | (Doing::Subscribe, Said::Event { .. }) => Ok(()),
            (Doing::Withdraw | Doing::Durable, Said::Done(_))
            | (Doing::Stat, Said::Stats)
            | (Doing::Subscribe | Doing::Use(_), Said::Ended(_)) => {
                client.doing.remove(&request);
                Ok(())
            }
            (Doing::Stop(which), Said::Done(_)) => self.stopped(place, request, which),
            (doing, _) => Err(format!("no answer to {doing:?}")),
        }
    }

    fn offered(&mut self, place: usize, request: u64, sequence: u64, durable: bool) -> Checked {
        let client = self.client(place)?;
        let (last_request, last_sequence) = client.acknowledged;
        if request < last_request || sequence <= last_sequence {
            return Err(format!("after {last_sequence} was acknowledged for {last_request}"));
        }
        client.acknowledged = (request, sequence);
        client.doing.remove(&request);
        if durable {
            client.doing.insert(request, Doing::Durable);
        }
        let _ = writeln!(
            client.rows,
            r#"{{"op":"offered","n":{request},"version":"{INCARNATION}.{sequence}"}}"#
        );
        Ok(())
    }

    /// A bundle has ended: these of its members are visible, the others never will be.
    fn completed(&mut self, place: usize, bundle: u64, versions: &[(u64, u64)]) -> Checked {
        let client = self.client(place)?;
        for &(request, sequence) in versions {
            if client.staged.remove(&request) != Some(bundle) {
                return Err(format!("{request} was not staged in it, or was refused"));
            }
            let _ = writeln!(
                client.rows,
                r#"{{"op":"offered","n":{request},"version":"{INCARNATION}.{sequence}"}}"#
            );
        }
        let others: Vec<u64> = client
            .staged
            .extract_if(.., |_, of| *of == bundle)
            .map(|(request, _)| request)
            .collect();
        for request in others {
            let _ = writeln!(client.rows, r#"{{"op":"refused","n":{request},"error":"Closed"}}"#);
        }
        Ok(())
    }

    fn leased(&mut self, place: usize, request: u64, head: &SegmentHead) -> Checked {
        let client = self.client(place)?;
        client.doing.remove(&request);
        let leased = Leased::new(head.bytes.get(), head.slot_bytes.get());
        if client.leased.insert(head.segment.get(), leased).is_some() {
            return Err("it leases it already".to_owned());
        }
        Ok(())
    }

    fn failed(&mut self, place: usize, request: u64, code: Option<Code>) -> Checked {
        let code = code.ok_or("no code of ours")?;
        let client = self.client(place)?;
        match client.doing.remove(&request) {
            Some(Doing::Offer(at, _) | Doing::Stage(at, ..)) => {
                client.staged.remove(&request);
                if let Place::Slot(segment, slot) = at
                    && !client
                        .leased
                        .get_mut(&segment)
                        .is_some_and(|leased| leased.give_back(slot))
                {
                    return Err("its slot was free".to_owned());
                }
                let _ = writeln!(
                    client.rows,
                    r#"{{"op":"refused","n":{request},"error":"{}"}}"#,
                    code.name()
                );
            }
            Some(Doing::Follow(chain)) => {
                let chain = &mut self.chains[chain];
                chain.interrupt();
                chain.over = true;
            }
            Some(Doing::Require(wish)) => self.wishes[wish].over = true,
            _ => {}
        }
        Ok(())
    }

    fn recalled(&mut self, place: usize, segment: u32, rng: &mut Rng, keeps: bool) -> Checked {
        let client = self.client(place)?;
        // It may have been returned while this was on its way.
        let is_idle = client.leased.get(&segment).is_some_and(|leased| leased.busy.is_empty());
        if is_idle && !client.leaving && (!keeps || rng.percent(70)) {
            client.leased.remove(&segment);
            self.ask(place, Ask::Return(segment), Doing::Loose);
        }
        Ok(())
    }

    fn dropped(&mut self, place: usize, segment: u32) -> Checked {
        let client = self.client(place)?;
        if !client.mapped.remove(&segment) {
            return Err("it never had it".to_owned());
        }
        match client
            .held
            .iter()
            .find(|held| held.slot.is_some_and(|(lies_in, ..)| lies_in == segment))
        {
            Some(held) => Err(format!("it holds {}", held.sequence)),
            None => Ok(()),
        }
    }

    /// An object arrives: its bytes must be those that were offered, now and as long as it is held.
    fn holds(
        &mut self,
        place: usize,
        delivered: &Delivered,
        chain: Option<usize>,
        rng: &mut Rng,
        keeps: bool,
    ) -> Checked {
        let payload = self.model.objects[delivered.sequence() as usize - 1].offer.payload;
        let (segment, slot) = (delivered.head.segment.get(), delivered.head.slot.get());
        let in_slot = delivered.inline.is_none();
        if in_slot && !self.client(place)?.mapped.contains(&segment) {
            return Err("it was not given the segment".to_owned());
        }
        if in_slot {
            self.check_mirror(place, delivered)?;
        }
        let held = Holding {
            holding: delivered.holding(),
            sequence: delivered.sequence(),
            slot: in_slot.then_some((segment, slot, payload)),
            chain,
            is_released: false,
        };
        let at_once = !keeps || rng.percent(self.plan.released_at_once);
        let client = self.client(place)?;
        let may_ask = !client.leaving;
        client.held.push(held);
        self.check_held(place)?;
        if at_once && may_ask {
            let client = self.client(place)?;
            let held = client.held.drain(..);
            let batch: Vec<(u32, u64)> = held.map(|held| (held.holding, held.sequence)).collect();
            self.archive(place, &batch, rng);
            self.ask(place, Ask::Release(batch), Doing::Loose);
        }
        Ok(())
    }

    /// Checks that objects that a client holds have not changed.
    pub(crate) fn check_held(&self, place: usize) -> Checked {
        // A client that sent goodbye, or was disconnected, holds nothing.
        let Some(client) = self.clients[place].as_ref().filter(|client| !client.leaving) else {
            return Ok(());
        };
        for held in &client.held {
            if let Some((segment, slot, payload)) = held.slot {
                let there = self.recorder.payload_at(segment, slot);
                if there != Some(payload) {
                    return Err(format!(
                        "object {} has changed: {there:?} and not {payload}",
                        held.sequence
                    ));
                }
                if let Some(road) = self.clients[place].as_ref().and_then(|client| client.road.as_ref()) {
                    self.check_payload(road, segment, slot, held.sequence)?;
                }
            }
        }
        Ok(())
    }

    fn listed(&mut self, place: usize, request: u64, began: bool, mut items: Vec<u64>, said: &Said) -> Checked {
        let client = self.client(place)?;
        match said {
            Said::Began(_) if !began => {
                client.doing.insert(request, Doing::List { began: true, items });
                Ok(())
            }
            Said::Listed { last, items: page } if began => {
                items.extend(page.iter().map(|item: &Named| item.sequence));
                let mut unique = items.clone();
                unique.sort_unstable();
                unique.dedup();
                if unique.len() != items.len() {
                    return Err("something is listed twice".to_owned());
                }
                if *last {
                    client.doing.remove(&request);
                    return Ok(());
                }
                client.doing.insert(request, Doing::List { began, items });
                if !client.leaving {
                    self.ask(place, Ask::More(request), Doing::Loose);
                }
                Ok(())
            }
            _ => Err("no answer to a list".to_owned()),
        }
    }

    fn followed(&mut self, place: usize, request: u64, at: usize, said: &Said, rng: &mut Rng, keeps: bool) -> Checked {
        let chain = &mut self.chains[at];
        match said {
            Said::Began(sequence) => {
                chain.begins(*sequence, &self.universe);
                Ok(())
            }
            Said::Delivered(delivered) => {
                chain.receives(delivered, &self.model, &self.universe, self.now)?;
                if let Some(wish) = chain.wish {
                    self.wishes[wish].came.insert(delivered.sequence());
                }
                self.holds(place, delivered, Some(at), rng, keeps)
            }
            Said::Gap { items, reason } => {
                let sequences: Vec<u64> = items.iter().map(|item| item.sequence).collect();
                chain.misses(&sequences, reason, &self.model);
                if let Some(wish) = chain.wish {
                    self.wishes[wish].came.extend(sequences);
                }
                Ok(())
            }
            Said::Live => chain.goes_live(&self.model),
            Said::Ended(code) => {
                let ended = if *code == Some(Code::Closed) {
                    chain.ends(&self.model)
                } else {
                    chain.interrupt();
                    Ok(())
                };
                self.client(place)?.doing.remove(&request);
                ended
            }
            _ => Err("no answer to a follow".to_owned()),
        }
    }

    fn stopped(&mut self, place: usize, request: u64, which: u64) -> Checked {
        let client = self.client(place)?;
        client.doing.remove(&request);
        match client.doing.remove(&which) {
            Some(Doing::Follow(chain)) => self.chains[chain].interrupt(),
            Some(Doing::Require(wish)) => self.wishes[wish].over = true,
            _ => {}
        }
        Ok(())
    }
}
