//! The world as the core sees it: its orders are recorded, and queued for the clients as bytes.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::File;
use std::os::fd::OwnedFd;
use std::rc::Rc;

use junctura_memory::segment::SealedSegment;
use junctura_model::{Code, Error, Result};
use junctura_pool::{BrokenRequirement, Effects, SpillFrom, SpillJob};
use junctura_wire::Reply;
use junctura_wire::fixed::{FILE_TIER, SegmentHead};

use crate::clients::network;
use crate::clients::replies::Said;
use crate::world::own_fault;
use crate::world::twin::{Order, Tape, no_descriptors};

/// The data in flight to one client.
#[derive(Default)]
pub struct Line {
    /// Request, message, bytes.
    pub messages: VecDeque<(u64, Rc<Said>, usize)>,
    /// Bytes of all frames.
    pub bytes: usize,
    /// The server sends nothing after them.
    pub closed: bool,
    /// Over a link: frames that are still to be sent, as bytes.
    pub frames: Option<VecDeque<Vec<u8>>>,
}

/// A segment's memory: which payload was written into which slot.
pub type Memory = BTreeMap<u32, u64>;

/// A payload that the file tier has yet to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// By this number the core knows it.
    pub job: u32,
    /// The payload that it was ordered to write.
    pub payload: u64,
    /// Its bytes.
    pub length: u64,
    /// Its place in the file.
    pub at: u32,
    /// The slot that it is read from; `None`: it is part of the order.
    from: Option<(u32, u32)>,
}

/// Carries out, and remembers, what the core orders.
#[derive(Default)]
pub struct Recorder {
    /// Messages to living clients.
    pub lines: BTreeMap<u32, Line>,
    /// The messages since the last [`Recorder::begin`].
    pub said: Vec<(u32, u64, Rc<Said>)>,
    /// The memory of each segment that there is.
    pub segments: BTreeMap<u32, Memory>,
    /// Bytes of each segment.
    pub segment_bytes: BTreeMap<u32, u64>,
    /// The jobs of the file tier.
    pub jobs: VecDeque<Job>,
    /// The core's orders to it since the last [`Recorder::begin`].
    pub ordered: Vec<Job>,
    /// The contents of the file, by place: payloads and their lengths.
    pub file: BTreeMap<u32, (u64, u64)>,
    slot_bytes: BTreeMap<u32, u64>,
    /// Clients whose connection the core ended since the last [`Recorder::begin`].
    pub ended: BTreeSet<u32>,
    /// The next segments cannot be made.
    pub refuse_segments: bool,
    /// Segments that could not be made since the last [`Recorder::begin`].
    pub refused: usize,
    /// An order of the core that is invalid.
    pub wrong: Option<String>,
    /// All that the core ordered since the last [`Recorder::begin`], for its twin.
    pub(crate) tape: Tape,
    scratch: Vec<u8>,
    /// Real memory of segments, and of the file, as far as clients of other machines know them.
    real: BTreeMap<u32, File>,
}

impl Recorder {
    /// A new event begins.
    pub fn begin(&mut self) {
        self.said.clear();
        self.ended.clear();
        self.ordered.clear();
        self.tape.clear();
        self.refused = 0;
    }

    /// Returns the number of the first object announced as offered after the message `at`.
    #[must_use]
    pub fn offered_next(&self, at: usize) -> Option<u64> {
        self.said[at..].iter().find_map(|(.., said)| match **said {
            Said::Offered(sequence) => Some(sequence),
            _ => None,
        })
    }

    /// Whether a lease was granted since the last [`Recorder::begin`].
    #[must_use]
    pub fn has_granted(&self, (client, request): (u32, u64)) -> bool {
        let grants = |said: &Said| matches!(said, Said::Segment(head) if head.writable.get() != 0);
        let mut said = self.said.iter();
        said.any(|(to, about, said)| (*to, *about) == (client, request) && grants(said))
    }

    /// Some requirement was broken since the last [`Recorder::begin`].
    #[must_use]
    pub fn has_broken(&self) -> bool {
        self.said.iter().any(|(.., said)| matches!(**said, Said::Broken { .. }))
    }

    /// A lease was granted, or refused for what it is, since the last [`Recorder::begin`].
    #[must_use]
    pub fn has_settled_lease(&self, (client, request): (u32, u64)) -> bool {
        let settles = |said: &Said| match said {
            Said::Segment(head) => head.writable.get() != 0,
            Said::Failed(code) => *code != Some(Code::Closed),
            _ => false,
        };
        let mut said = self.said.iter();
        said.any(|(to, about, said)| (*to, *about) == (client, request) && settles(said))
    }

    /// Returns the payload in a slot, or at a place of the file tier.
    #[must_use]
    pub fn payload_at(&self, segment: u32, slot: u32) -> Option<u64> {
        if segment == FILE_TIER {
            return self.file.get(&slot).map(|&(payload, _)| payload);
        }
        self.segments.get(&segment)?.get(&slot).copied()
    }

    /// The file tier does the next of its jobs, if there is one; only if it `works` the file contains the payload then.
    pub fn work(&mut self, works: bool) -> Option<Job> {
        let job = self.jobs.pop_front()?;
        if works {
            // The owner may have changed or dropped the payload's memory.
            let payload = match job.from {
                Some((segment, slot)) => self.payload_at(segment, slot).unwrap_or(0),
                None => job.payload,
            };
            let (at, end) = (u64::from(job.at), u64::from(job.at) + job.length);
            let lies_there = |&(&other, &(_, length)): &(&u32, &(u64, u64))| {
                u64::from(other) < end && at < u64::from(other) + length
            };
            if let Some(other) = self.file.iter().find(lies_there).map(|(&other, _)| other) {
                self.blame(format!("{job:?} overwrites the payload at {other}"));
            }
            self.file.insert(job.at, (payload, job.length));
            if let Some(file) = self.real.get(&FILE_TIER)
                && let Err(why) = network::write(file, u64::from(job.at), payload, job.length)
            {
                self.blame(why);
            }
        }
        Some(job)
    }

    /// The memory of a segment, or of the file, for the gate of a client of another machine.
    ///
    /// # Errors
    /// The system gives none.
    pub fn memory_of(&mut self, head: &SegmentHead) -> std::result::Result<OwnedFd, String> {
        let number = head.segment.get();
        if let Entry::Vacant(entry) = self.real.entry(number) {
            let bytes = if number == FILE_TIER { 1 << 32 } else { head.bytes.get() };
            let made = SealedSegment::create(bytes).map_err(|error| own_fault(&error))?;
            let file = made
                .writable()
                .try_clone_to_owned()
                .map_err(|error| error.to_string())?;
            let file = entry.insert(File::from(file));
            let slot_bytes = head.slot_bytes.get();
            for (&slot, &payload) in self.segments.get(&number).into_iter().flatten() {
                network::write(file, u64::from(slot) * slot_bytes, payload, slot_bytes)?;
            }
            if number == FILE_TIER {
                for (&at, &(payload, length)) in &self.file {
                    network::write(file, u64::from(at), payload, length)?;
                }
            }
        }
        let file = self.real[&number].try_clone();
        file.map(OwnedFd::from).map_err(|error| error.to_string())
    }

    /// Bytes of a segment's slots.
    #[must_use]
    pub fn bytes_of_slots(&self, segment: u32) -> u64 {
        self.slot_bytes.get(&segment).copied().unwrap_or(0)
    }

    /// A client of this machine writes a payload.
    pub fn writes(&mut self, segment: u32, slot: u32, payload: u64, is_linked: bool) {
        let slot_bytes = self.bytes_of_slots(segment);
        if let Some(file) = self.real.get(&segment).filter(|_| !is_linked)
            && let Err(why) = network::write(file, u64::from(slot) * slot_bytes, payload, slot_bytes)
        {
            self.blame(why);
        }
    }

    /// An offer has arrived over a link: its payload must have arrived before it.
    ///
    /// # Errors
    /// It has not.
    pub fn takes_in(&mut self, segment: u32, slot: u32, payload: u64, length: u64) -> std::result::Result<(), String> {
        let at = u64::from(slot) * self.bytes_of_slots(segment);
        // One that was returned meanwhile takes nothing.
        let (Some(file), Some(memory)) = (self.real.get(&segment), self.segments.get_mut(&segment)) else {
            return Ok(());
        };
        if !network::has(file, at, payload, length) {
            return Err("its payload has not arrived".to_owned());
        }
        memory.insert(slot, payload);
        Ok(())
    }

    fn blame(&mut self, text: String) {
        self.wrong.get_or_insert(text);
    }

    fn send(&mut self, client: u32, request: u64, reply: &Reply<'_>) {
        self.scratch.clear();
        reply.encode(request, &mut self.scratch);
        let said = match Said::decode(&self.scratch) {
            Ok((number, said)) if number == request => Rc::new(said),
            other => return self.blame(format!("reply {reply:?} reads back as {other:?}")),
        };
        self.said.push((client, request, Rc::clone(&said)));
        if let Some(line) = self.lines.get_mut(&client)
            && !line.closed
        {
            line.bytes += self.scratch.len();
            line.messages.push_back((request, said, self.scratch.len()));
            if let Some(frames) = &mut line.frames {
                frames.push_back(self.scratch.clone());
            }
        }
    }
}

impl Effects for Recorder {
    fn reply(&mut self, client: u32, request: u64, reply: &Reply<'_>) {
        self.send(client, request, reply);
        self.tape.note(Order::reply(client, request, &self.scratch));
    }

    fn reply_segment(&mut self, client: u32, request: u64, head: SegmentHead) {
        if head.writable.get() == 1 {
            self.slot_bytes.insert(head.segment.get(), head.slot_bytes.get());
        }
        let is_file = head.segment.get() == FILE_TIER;
        if !is_file && self.segment_bytes.get(&head.segment.get()) != Some(&head.bytes.get()) {
            self.blame(format!(
                "client {client} is sent segment {head:?}, of which there is none"
            ));
        }
        self.send(client, request, &Reply::Segment(head));
        self.tape.note(Order::Segment { client, request, head });
    }

    fn backlog_bytes(&self, client: u32) -> usize {
        let bytes = self.lines.get(&client).map_or(0, |line| line.bytes);
        self.tape.note_answer(Order::BacklogBytes(client), bytes);
        bytes
    }

    fn create_segment(&mut self, segment: u32, bytes: u64) -> Result<()> {
        let order = Order::CreateSegment { segment, bytes };
        self.tape.note_answer(order, self.refuse_segments.into());
        if self.refuse_segments {
            self.refused += 1;
            return Err(no_descriptors());
        }
        if self.segment_bytes.insert(segment, bytes).is_some() {
            self.blame(format!("segment {segment} is made twice"));
        }
        self.segments.insert(segment, Memory::new());
        Ok(())
    }

    fn drop_segment(&mut self, segment: u32) {
        self.tape.note(Order::DropSegment(segment));
        self.segments.remove(&segment);
        self.real.remove(&segment);
        if self.segment_bytes.remove(&segment).is_none() {
            self.blame(format!("segment {segment} is dropped, but there is none"));
        }
    }

    fn spill(&mut self, job: SpillJob<'_>) {
        self.tape.note(Order::spill(&job));
        let (from, payload) = match job.from {
            SpillFrom::Bytes(bytes) => {
                let number = bytes.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
                if bytes.len() as u64 != job.length {
                    self.blame(format!("{job:?}: its length is wrong"));
                }
                (None, number)
            }
            SpillFrom::Segment { segment, offset } => {
                let slot = self.slot_bytes.get(&segment).map_or(0, |bytes| (offset / bytes) as u32);
                (Some((segment, slot)), self.payload_at(segment, slot).unwrap_or(0))
            }
        };
        let job = Job {
            job: job.job,
            payload,
            length: job.length,
            at: job.at as u32,
            from,
        };
        self.jobs.push_back(job);
        self.ordered.push(job);
    }

    fn unspill(&mut self, at: u64, length: u64) {
        self.tape.note(Order::Unspill { at, length });
        self.file.remove(&(at as u32));
    }

    fn broken(&mut self, requirement: BrokenRequirement<'_>, why: &str) {
        self.tape.note(Order::Broken(format!("{requirement:?}: {why}")));
        let (of, name) = match requirement {
            BrokenRequirement::Of { client, request } => ((client, request), None),
            BrokenRequirement::Named(name) => ((0, 0), Some(name.to_owned())),
        };
        self.said.push((0, 0, Rc::new(Said::Broken { of, name })));
    }

    fn left_for_store(&mut self, sequence: u64) {
        self.tape.note(Order::LeftForStore(sequence));
        self.said.push((0, 0, Rc::new(Said::Left(sequence))));
    }

    fn disconnect(&mut self, client: u32, why: &Error) {
        self.tape.note(Order::Disconnect(client, why.clone()));
        self.ended.insert(client);
        if let Some(line) = self.lines.get_mut(&client) {
            line.closed = true;
        }
    }
}
