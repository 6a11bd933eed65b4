//! Clients of other machines: they send and receive the same as the others, over a [`Road`].
//!
//! Received data is compared with sent data: every frame, in order, unchanged, and each payload before the frame that
//! refers to it. Beyond that nothing changes: a client that is cut off, or crashes, is judged like a local one.

use junctura_wire::fixed::FILE_TIER;
use junctura_wire::frame::WireFrame;
use junctura_wire::{Reply, Request};

use crate::clients::network::{Heard, Road};
use crate::clients::replies::{Delivered, Said};
use crate::clients::requests::{Ask, Place};
use crate::model::Cause;
use crate::run::rng::Rng;
use crate::world::twin::Input;
use crate::world::{Checked, World, note, own_fault};

impl World {
    /// The client of a place connects over a link.
    pub(crate) fn link(&mut self, place: usize, rng: &mut Rng) -> Checked {
        let Some(client) = &mut self.clients[place] else {
            return Ok(());
        };
        let mirror_bytes = [0, 10_000, 1 << 30][rng.below(3)];
        let streams = [1, 2, 3][rng.below(3)];
        let road = Road::open(mirror_bytes, streams).map_err(|error| own_fault(&error))?;
        client.road = Some(Box::new(road));
        if let Some(line) = self.recorder.lines.get_mut(&client.id) {
            line.frames = Some(std::collections::VecDeque::new());
        }
        note!(self, "client {} connects over a link of {streams} streams", client.id);
        Ok(())
    }

    /// A client of another machine has sent a request: its payload, if there is one, is in its own memory.
    pub(crate) fn send_up(&mut self, place: usize, ask: &Ask, bytes: &[u8]) {
        let Some(client) = &mut self.clients[place] else { return };
        let Some(road) = &mut client.road else { return };
        if let Some((segment, slot, payload, length)) = slot_of(ask)
            && let Some(leased) = client.leased.get(&segment)
            && let Err(why) = road.write(segment, u64::from(slot) * leased.slot_bytes, payload, length)
        {
            self.recorder.wrong.get_or_insert(why);
        }
        if let Ask::Return(segment) = ask {
            road.unmap(*segment, true);
        }
        road.say_up(bytes);
    }

    /// Sends the core's messages for clients of other machines.
    pub(crate) fn send_down(&mut self) -> Checked {
        for client in self.clients.iter_mut().flatten() {
            let Some(road) = &mut client.road else { continue };
            let Some(line) = self.recorder.lines.get_mut(&client.id) else {
                continue;
            };
            let closed = line.closed;
            let frames = line.frames.as_mut().map(std::mem::take).unwrap_or_default();
            for bytes in frames {
                let said = Reply::decode(&frame_of(&bytes)?).map_err(|error| own_fault(&error))?;
                let descriptor = match said {
                    Reply::Segment(head) => Some(self.recorder.memory_of(&head)?),
                    _ => None,
                };
                road.say_down(&bytes, descriptor).map_err(|error| own_fault(&error))?;
                if let (Reply::Welcome(_), Some(ring_bytes)) = (said, client.ring_bytes) {
                    road.offer_rings(ring_bytes).map_err(|error| own_fault(&error))?;
                }
            }
            if closed {
                road.close();
            }
        }
        Ok(())
    }

    /// The server reads from a client of another machine.
    pub(crate) fn serve_link(&mut self, place: usize, rng: &mut Rng) -> Checked {
        for _ in 0..rng.between(1, 4) {
            let Some(client) = &mut self.clients[place] else {
                return Ok(());
            };
            let id = client.id;
            let Some(road) = &mut client.road else { return Ok(()) };
            move_on(road, self.rests, rng);
            if self.recorder.lines.get(&id).is_some_and(|line| line.closed) {
                return if client.dead {
                    self.gone_there(place, rng)
                } else {
                    Ok(())
                };
            }
            match road.hear_up().map_err(|error| format!("the server receives {error}"))? {
                Heard::Nothing => return Ok(()),
                Heard::End => return self.gone_there(place, rng),
                Heard::Frame(bytes, _) => self.arrive(place, &bytes, rng)?,
            }
        }
        Ok(())
    }

    /// The server sees the end of a link.
    fn gone_there(&mut self, place: usize, rng: &mut Rng) -> Checked {
        let Some(client) = &self.clients[place] else {
            return Ok(());
        };
        let id = client.id;
        let is_cut = client.road.as_ref().is_some_and(|road| road.is_cut);
        if !client.dead && !is_cut {
            return Err(format!("the link of client {id} has ended by itself"));
        }
        note!(self, "the server sees the end of the link of client {id}");
        self.forget_readers(place);
        self.clients[place] = None;
        self.event(&Cause::Left(id), rng, Input::Left(id))
    }

    /// A frame arrives at the server: the next that was sent, as it was.
    fn arrive(&mut self, place: usize, bytes: &[u8], rng: &mut Rng) -> Checked {
        let Some(client) = &mut self.clients[place] else {
            return Ok(());
        };
        let id = client.id;
        let Some((number, ask, sent)) = client.up.pop_front() else {
            return Err(format!("a frame arrives that client {id} has not sent"));
        };
        if let (Ask::Hello { .. }, Ok(Request::Hello(hello))) = (&ask, Request::decode(&frame_of(bytes)?)) {
            client.ring_bytes = hello.ring_bytes;
        } else if *bytes != *sent {
            return Err(format!("client {id} sent {ask:?}, and something else arrives"));
        }
        if let Some((segment, slot, payload, length)) = slot_of(&ask) {
            self.recorder
                .takes_in(segment, slot, payload, length)
                .map_err(|why| format!("client {id} sent {ask:?}: {why}"))?;
        }
        self.read(id, number, &ask, bytes, rng)
    }

    /// Returns the next message for a client of another machine, if it is one; it must be the server's next message.
    pub(crate) fn hear_link(&mut self, place: usize, rng: &mut Rng) -> Result<Hears, String> {
        let Some(client) = &mut self.clients[place] else {
            return Ok(Hears::Nothing);
        };
        let Some(road) = &mut client.road else {
            return Ok(Hears::Next);
        };
        if client.dead {
            return Ok(Hears::Nothing);
        }
        move_on(road, self.rests, rng);
        let id = client.id;
        let Some(line) = self.recorder.lines.get(&id) else {
            return Ok(Hears::Nothing);
        };
        let came = road
            .hear_down()
            .map_err(|error| format!("client {id} receives {error}"))?;
        let due = line.messages.front();
        match (came, due) {
            (Heard::Nothing, _) => Ok(Hears::Nothing),
            (Heard::Frame(bytes, descriptor), due) => {
                let (number, said) = Said::decode(&bytes).map_err(|error| error.to_string())?;
                if due.is_none_or(|(request, due, _)| (*request, &**due) != (number, &said)) {
                    // Its own end of the link reports why there is no more.
                    let is_told = road.is_cut && number == 0 && matches!(said, Said::Failed(_));
                    return if is_told {
                        Ok(Hears::Nothing)
                    } else {
                        Err(format!("client {id} receives {said:?}, but due was {due:?}"))
                    };
                }
                match (&said, descriptor) {
                    (Said::Segment(head), Some(descriptor)) => {
                        road.map(head.segment.get(), head.writable.get() == 1, descriptor);
                    }
                    (Said::Segment(_), None) => return Err(format!("client {id} receives {said:?} without memory")),
                    (Said::Dropped(segment), _) => road.unmap(*segment, false),
                    _ => {}
                }
                Ok(Hears::Next)
            }
            (Heard::End, None) if line.closed => Ok(Hears::Next),
            (Heard::End, _) if road.is_cut => Ok(Hears::Lost),
            (Heard::End, due) => Err(format!("the link of client {id} has ended by itself; due was {due:?}")),
        }
    }

    /// A client sees that its link has ended. The server may not have noticed yet.
    pub(crate) fn gone_here(&mut self, place: usize) {
        self.forget_readers(place);
        let Some(client) = &mut self.clients[place] else { return };
        note!(self, "client {} sees the end of its link", client.id);
        client.dead = true;
        if self.recorder.lines.get(&client.id).is_some_and(|line| line.closed) {
            self.recorder.lines.remove(&client.id);
            self.clients[place] = None;
        }
    }

    /// The bytes of an object are where a client of another machine reads them.
    pub(crate) fn check_mirror(&self, place: usize, delivered: &Delivered) -> Checked {
        let Some(road) = self.clients[place].as_ref().and_then(|client| client.road.as_ref()) else {
            return Ok(());
        };
        let head = &delivered.head;
        self.check_payload(road, head.segment.get(), head.slot.get(), delivered.sequence())
    }

    pub(crate) fn check_payload(&self, road: &Road, segment: u32, slot: u32, sequence: u64) -> Checked {
        let offer = &self.model.objects[sequence as usize - 1].offer;
        let at = if segment == FILE_TIER {
            u64::from(slot)
        } else {
            u64::from(slot) * self.recorder.bytes_of_slots(segment)
        };
        if road.has(segment, at, offer.payload, offer.length) {
            Ok(())
        } else {
            Err(format!("the bytes of object {sequence} are not in the mirror"))
        }
    }
}

/// The message that a client of another machine receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hears {
    /// Nothing yet.
    Nothing,
    /// The server's next message, or its end.
    Next,
    /// Its link has ended.
    Lost,
}

fn move_on(road: &mut Road, rests: bool, rng: &mut Rng) {
    if rests {
        road.settle();
    } else {
        road.stir(rng);
    }
}

fn frame_of(bytes: &[u8]) -> Result<WireFrame<'_>, String> {
    match WireFrame::split(bytes) {
        Ok(Some((frame, length))) if length == bytes.len() => Ok(frame),
        other => Err(format!("no frame: {other:?}")),
    }
}

/// Returns the place of an offer's payload: segment, slot, number, bytes.
fn slot_of(ask: &Ask) -> Option<(u32, u32, u64, u64)> {
    match ask {
        Ask::Offer(offer) | Ask::Stage { offer, .. } => match offer.place {
            Place::Slot(segment, slot) => Some((segment, slot, offer.payload, offer.length)),
            Place::Inline => None,
        },
        _ => None,
    }
}
