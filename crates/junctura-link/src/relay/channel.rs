//! One client's connection within this machine, and what its frames mean for a link.
//!
//! A client that dials a gate has a link of its own, with a single channel. The clients of a machine that connect through
//! an [`Upstream`](crate::UpstreamProxy) share one link: each has a channel, all share one mirror, and a payload for
//! several clients is sent once. The bytes that one end sends on such a channel before the other has passed them on are
//! limited ([`ROOM_BYTES`]): a slow reader blocks no other client.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use hashbrown::HashSet;
use junctura_model::{Code, Error, Result};
use junctura_transport::{Carrier, Inbox, LocalCarrier, Outbox, RING_BYTES, ReceiveResult, ReceivedRings};
use junctura_wire::fixed::{
    DeliveredHead, INLINE, MAPPED, OfferHead, ReleasedHolding, RingsHead, SPILLED, SegmentHead,
};
use junctura_wire::frame::FrameHeader;
use junctura_wire::{FrameKind, Reply, Request, WireFrame};
use rustix::event::{PollFd, PollFlags};
use zerocopy::{FromBytes, IntoBytes};

use crate::mirror::LinkMemory;
use crate::mirror::gather::{ChannelPacking, LinkPacking, PackStep};
use crate::mirror::mirror_index::{self, MirrorIndex};
use crate::record::{LinkRecord, PayloadOffset};
use crate::relay::link_origin::LinkOrigin;
use crate::relay::queue::SendQueue;
use crate::stream::LinkStream;

/// Bytes of frames that may be in flight to the local end of a channel of several. One frame may exceed it.
pub(crate) const ROOM_BYTES: u32 = 1 << 20;
/// On a link of one channel nothing more is taken from the other end from here on, until this side has read.
const LOCAL_BYTES_MAX: usize = 1 << 20;

/// Bytes of this end's own answers beyond a full queue, from which on nothing more is taken from the other end.
const ANSWERED_BYTES_MAX: usize = 1 << 20;

/// Which end of a link this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LinkSide {
    /// The local connections are clients'.
    Client,
    /// The local connections are to the server.
    Server,
}

/// The state that all channels of an end share.
pub(crate) struct ChannelShared {
    pub(crate) side: LinkSide,
    /// The origin of the clients, as the server's end sees it.
    pub(crate) origin: Option<LinkOrigin>,
    pub(crate) queue: SendQueue,
    pub(crate) memory: LinkMemory,
    pub(crate) shadow: MirrorIndex,
    /// Layouts and plans that were read for clients that want parts of arrays.
    packing: LinkPacking,
    /// The server's end: bytes of answers of its own that were queued since the queue had room.
    answered_bytes: usize,
    /// The channel that the frames in the queue's end belong to.
    said: u32,
}

impl ChannelShared {
    pub(crate) fn new(side: LinkSide, mirror_bytes: u64) -> Self {
        Self {
            side,
            origin: None,
            queue: SendQueue::default(),
            memory: LinkMemory::default(),
            shadow: MirrorIndex::new(mirror_bytes),
            packing: LinkPacking::default(),
            answered_bytes: 0,
            said: 0,
        }
    }

    /// Declares that the next frames are of this channel.
    pub(crate) fn speak_on(&mut self, channel: u32) {
        if self.said != channel {
            self.said = channel;
            self.queue.record(LinkRecord::Channel(channel));
        }
    }

    /// Whether the other end has requested more from this end than it has read: then its requests wait until it reads.
    pub(crate) fn owes_answers(&self) -> bool {
        self.answered_bytes > ANSWERED_BYTES_MAX && self.queue.is_full()
    }

    /// Sends what is queued, as far as the stream takes it.
    pub(crate) fn flush(&mut self, stream: &mut LinkStream) -> Result<bool> {
        let has_moved = self.queue.flush(stream)?;
        if !self.queue.is_full() {
            self.answered_bytes = 0;
        }
        Ok(has_moved)
    }

    fn say(&mut self, channel: u32, parts: [&[u8]; 2]) {
        self.speak_on(channel);
        self.queue.frame(parts);
    }

    /// The server's end: makes the mirror forget payloads beyond its limit.
    fn forget_overdue(&mut self) {
        while let Some((at, length)) = self.shadow.overdue() {
            self.queue.record(LinkRecord::Forget(at, length));
        }
    }

    /// Frames of a channel that is over at this end: their effect on the shared memory is applied, since a payload for
    /// another client may use it. Returns the bytes of the whole frames.
    ///
    /// # Errors
    /// `Protocol` when they are none.
    pub(crate) fn pass_over(&mut self, bytes: &[u8]) -> Result<usize> {
        let mut at = 0;
        while let Some((frame, length)) = WireFrame::split(&bytes[at..])? {
            at += length;
            if self.side == LinkSide::Server {
                continue;
            }
            match Reply::decode(&frame) {
                Ok(Reply::Segment(head)) => drop(self.memory.announce(&head)?),
                Ok(Reply::Dropped(segment)) => self.memory.dropped(segment),
                _ => {}
            }
        }
        Ok(at)
    }

    /// Sends the client of a channel, at the other end, an error.
    pub(crate) fn say_failure(&mut self, channel: u32, error: &Error) {
        let mut bytes = Vec::new();
        Reply::Failed(error.into()).encode(0, &mut bytes);
        self.say(channel, [&bytes, &[]]);
    }
}

/// See the module.
#[allow(clippy::struct_excessive_bools, reason = "each states another property of a channel")]
pub(crate) struct RelayChannel {
    number: u32,
    local: LocalCarrier,
    inbox: Inbox,
    outbox: Outbox,
    /// Segments that were announced to its client.
    segments: HashSet<u32>,
    /// The server's end: parts of the rings, until all have arrived.
    gathered: Option<ReceivedRings>,
    /// The server's end: its client's requests for pieces of arrays.
    packing: ChannelPacking,
    /// The server's end: the pieces are on this machine.
    packs: bool,
    /// The client has sent its greeting.
    is_introduced: bool,
    /// The client's end: bytes of the rings that it asked for.
    asked: Option<u32>,
    /// One of several: how much it may still send, and the received bytes that the other end does not know to be passed on.
    room: Option<ReceiveRoom>,
    local_ended: bool,
    /// The other end sends no more on it.
    is_closed: bool,
    /// Its socket may be readable, perhaps with the end.
    is_called: bool,
}

struct ReceiveRoom {
    left: i64,
    heard: u32,
}

impl RelayChannel {
    /// The only one of a link.
    pub(crate) fn alone(side: LinkSide, local: LocalCarrier) -> Self {
        Self {
            number: 0,
            local,
            inbox: Inbox::new(),
            outbox: Outbox::new(),
            segments: HashSet::new(),
            gathered: (side == LinkSide::Server).then(ReceivedRings::default),
            packing: ChannelPacking::default(),
            packs: true,
            is_introduced: false,
            asked: None,
            room: None,
            local_ended: false,
            is_closed: false,
            is_called: true,
        }
    }

    /// One of several.
    pub(crate) fn numbered(number: u32, side: LinkSide, local: LocalCarrier) -> Self {
        let room = ReceiveRoom {
            left: i64::from(ROOM_BYTES),
            heard: 0,
        };
        Self {
            number,
            room: Some(room),
            ..Self::alone(side, local)
        }
    }

    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    /// Whether its local end has closed, and everything that it sent was passed on.
    pub(crate) fn has_ended(&self) -> bool {
        self.local_ended
    }

    /// Whether everything that the other end will ever send on it has been passed on.
    pub(crate) fn is_done(&self) -> bool {
        self.is_closed && (self.outbox.is_empty() || self.local_ended)
    }

    /// Whether its client has sent its greeting.
    pub(crate) fn is_introduced(&self) -> bool {
        self.is_introduced
    }

    /// Whether the other end sends no more on it.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Nothing more is taken from its local end.
    pub(crate) fn end(&mut self) {
        self.local_ended = true;
    }

    /// Records that the other end sends no more on it.
    pub(crate) fn close(&mut self) {
        self.is_closed = true;
    }

    /// The other end has passed on so much.
    pub(crate) fn gains_room(&mut self, bytes: u32) {
        if let Some(room) = &mut self.room {
            room.left = (room.left + i64::from(bytes)).min(i64::from(ROOM_BYTES));
        }
    }

    /// Ends it: payloads that the mirror has for it alone are forgotten. The server's end decides that, in the order of its
    /// records; the client's end keeps everything until a record removes it.
    pub(crate) fn leave(&self, common: &mut ChannelShared) {
        if common.side == LinkSide::Client {
            return;
        }
        common.shadow.left(self.number);
        common.forget_overdue();
        for &segment in &self.segments {
            if common.memory.leave(segment) {
                common.shadow.dropped(segment);
                common.queue.record(LinkRecord::Drop(segment));
            }
        }
    }

    /// Whether this side's rings are not ready yet: the server's own frames precede a client's next ones.
    fn is_settling(&self) -> bool {
        self.is_introduced && self.gathered.is_some()
    }

    /// Whether more can arrive from the other end.
    pub(crate) fn takes_stream(&self) -> bool {
        self.local_ended || !self.is_settling() && (self.room.is_some() || self.outbox.len() < LOCAL_BYTES_MAX)
    }

    fn takes_local(&self, common: &ChannelShared) -> bool {
        let has_room = self.room.as_ref().is_none_or(|room| room.left > 0);
        has_room && !self.local_ended && !common.queue.is_full()
    }

    /// Receives frames from its local end, as far as they can be passed on.
    ///
    /// # Errors
    /// `Protocol` when it sends invalid frames.
    pub(crate) fn take_local(&mut self, common: &mut ChannelShared) -> Result<bool> {
        let mut has_moved = self.pack(common)?;
        while self.takes_local(common) {
            // To look for the end takes a call of the system: not each time.
            let received = if self.is_called {
                self.local.receive(&mut self.inbox)
            } else {
                self.local.incoming().glance(&mut self.inbox)
            };
            let mut inbox = std::mem::take(&mut self.inbox);
            let passed = self.pass_on(&mut inbox, common);
            self.inbox = inbox;
            has_moved |= passed?;
            match received {
                Ok(ReceiveResult::Bytes(_)) => has_moved = true,
                Ok(ReceiveResult::Full) => {}
                Ok(ReceiveResult::Nothing) => {
                    self.is_called = false;
                    break;
                }
                // Its last frames stay in the inbox until there is room; then the end is found again.
                Ok(ReceiveResult::End) | Err(_) if !self.takes_local(common) => break,
                Ok(ReceiveResult::End) | Err(_) => {
                    self.local_ended = true;
                    has_moved = true;
                }
            }
        }
        Ok(has_moved)
    }

    /// Its socket is to be looked at.
    pub(crate) fn call(&mut self) {
        self.is_called = true;
    }

    /// Appends its local end's frames to the queue, as far as there is room.
    fn pass_on(&mut self, inbox: &mut Inbox, common: &mut ChannelShared) -> Result<bool> {
        let mut has_moved = false;
        while self.takes_local(common)
            && let Some((frame, descriptor)) = inbox.next_frame()?
        {
            has_moved = true;
            match common.side {
                LinkSide::Client => self.send_for_client(&frame, common)?,
                LinkSide::Server => self.send_for_server(&frame, descriptor, common)?,
            }
        }
        Ok(has_moved)
    }

    fn queue_frame(&mut self, frame: &WireFrame<'_>, common: &mut ChannelShared) {
        let header = FrameHeader::of(frame);
        self.queue_bytes([header.as_bytes(), frame.body], common);
    }

    fn queue_bytes(&mut self, parts: [&[u8]; 2], common: &mut ChannelShared) {
        if let Some(room) = &mut self.room {
            room.left -= parts.iter().map(|part| part.len() as i64).sum::<i64>();
        }
        common.say(self.number, parts);
    }

    fn send_for_client(&mut self, frame: &WireFrame<'_>, common: &mut ChannelShared) -> Result<()> {
        match FrameKind::from_number(frame.kind) {
            Some(FrameKind::Hello) => {
                if let Request::Hello(mut hello) = Request::decode(frame)? {
                    self.is_introduced = true;
                    // The rings are an affair of each machine.
                    self.asked = hello.ring_bytes.take();
                    let mut bytes = Vec::new();
                    Request::Hello(hello).encode(frame.request, &mut bytes);
                    self.queue_bytes([&bytes, &[]], common);
                }
                return Ok(());
            }
            Some(FrameKind::Offer) => self.send_offered(frame.body, common)?,
            // The number of the bundle is first.
            Some(FrameKind::Stage) => self.send_offered(frame.body.get(8..).unwrap_or_default(), common)?,
            Some(FrameKind::Return) => {
                if let Request::Return(segment) = Request::decode(frame)?
                    && self.segments.contains(&segment)
                {
                    common.memory.returned(segment);
                }
            }
            _ => {}
        }
        self.queue_frame(frame, common);
        Ok(())
    }

    fn send_offered(&mut self, body: &[u8], common: &mut ChannelShared) -> Result<()> {
        let Ok((head, _)) = OfferHead::read_from_prefix(body) else {
            return Ok(());
        };
        let segment = head.segment.get();
        if head.flags.get() & INLINE != 0 || !self.segments.contains(&segment) {
            return Ok(());
        }
        let at = PayloadOffset {
            segment,
            slot: head.slot.get(),
            offset: 0,
        };
        send_payload(at, head.length.get(), common)
    }

    fn send_for_server(
        &mut self,
        frame: &WireFrame<'_>,
        descriptor: Option<OwnedFd>,
        common: &mut ChannelShared,
    ) -> Result<()> {
        match (FrameKind::from_number(frame.kind), descriptor) {
            (Some(FrameKind::Rings), Some(descriptor)) => return self.gather(frame, descriptor),
            (Some(FrameKind::Segment), Some(descriptor)) => {
                if let Reply::Segment(head) = Reply::decode(frame)? {
                    let is_new = self.segments.insert(head.segment.get());
                    common.memory.learn(&head, descriptor, is_new)?;
                }
            }
            (Some(FrameKind::Welcome), _) => return self.send_welcome(frame, common),
            (Some(FrameKind::Delivered | FrameKind::Failed), _) if self.packing.expects(frame.request) => {
                return self.hear_of_piece(frame, common);
            }
            (Some(FrameKind::Delivered), _) => self.send_delivered(frame.body, common)?,
            (Some(FrameKind::Dropped), _) => {
                if let Reply::Dropped(segment) = Reply::decode(frame)? {
                    self.segments.remove(&segment);
                    common.memory.dropped(segment);
                    common.shadow.dropped(segment);
                }
            }
            _ => {}
        }
        self.queue_frame(frame, common);
        Ok(())
    }

    fn send_delivered(&mut self, body: &[u8], common: &mut ChannelShared) -> Result<()> {
        let Ok((head, _)) = DeliveredHead::read_from_prefix(body) else {
            return Ok(());
        };
        let flags = head.flags.get();
        if flags & INLINE != 0 || head.length.get() == 0 {
            return Ok(());
        }
        if flags & SPILLED == 0 && common.memory.is_leased(head.segment.get()) {
            // A client of that machine wrote it there itself.
            return Ok(());
        }
        if common.shadow.delivered(self.number, &head) {
            send_payload(mirror_index::at(&head), head.length.get(), common)?;
            common.forget_overdue();
        }
        Ok(())
    }

    /// Announces that parts of arrays can be requested, which the server does not know. Where it is announced already, the
    /// pieces are behind another gate, which is asked.
    fn send_welcome(&mut self, frame: &WireFrame<'_>, common: &mut ChannelShared) -> Result<()> {
        if let Reply::Welcome(mut welcome) = Reply::decode(frame)? {
            self.packs = !welcome.packs;
            welcome.packs = true;
            self.answer(frame.request, &Reply::Welcome(welcome), common);
        }
        Ok(())
    }

    fn answer(&mut self, request: u64, reply: &Reply<'_>, common: &mut ChannelShared) {
        let mut bytes = Vec::new();
        reply.encode(request, &mut bytes);
        common.answered_bytes += bytes.len();
        self.queue_bytes([&bytes, &[]], common);
    }

    /// The server has answered this end itself.
    fn hear_of_piece(&mut self, frame: &WireFrame<'_>, common: &mut ChannelShared) -> Result<()> {
        match Reply::decode(frame)? {
            Reply::Delivered { head, inline, .. } => {
                let step = self
                    .packing
                    .delivered(&head, inline, &common.memory, &mut common.packing);
                self.take_step(step, common)
            }
            _ if self.packing.failed() => {
                self.queue_frame(frame, common);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Packs a part, if something is to be packed and there is room for it. Whether it did.
    fn pack(&mut self, common: &mut ChannelShared) -> Result<bool> {
        if !self.takes_local(common) {
            return Ok(false);
        }
        let mut packing = std::mem::take(&mut self.packing);
        let step = packing.step(&mut common.packing);
        let has_moved = !matches!(step, PackStep::Nothing);
        let taken = self.take_step(step, common);
        self.packing = packing;
        taken.map(|()| has_moved)
    }

    fn take_step(&mut self, step: PackStep<'_>, common: &mut ChannelShared) -> Result<()> {
        let given_back = match step {
            PackStep::Nothing => None,
            PackStep::Ask(demand) => return self.outbox.push(|out| out.extend_from_slice(&demand)),
            PackStep::Part(request, head, bytes, holding) => {
                let length = size_of_val(&head) + bytes.len();
                let header = FrameHeader::new(FrameKind::Packed, request, length);
                let front = [header.as_bytes(), head.as_bytes()].concat();
                self.queue_bytes([&front, bytes], common);
                holding
            }
            PackStep::Failed(request, error, holding) => {
                self.answer(request, &Reply::Failed((&error).into()), common);
                holding
            }
            PackStep::GiveBack(holding) => Some(holding),
        };
        self.give_back(given_back)
    }

    fn give_back(&mut self, holding: Option<ReleasedHolding>) -> Result<()> {
        holding.map_or(Ok(()), |holding| {
            self.outbox.push(|out| Request::Release(&[holding]).encode(0, out))
        })
    }

    /// The client wants parts of arrays.
    fn hear_pack(&mut self, frame: &WireFrame<'_>, common: &mut ChannelShared) {
        let asked = match Request::decode(frame) {
            Ok(Request::Pack(pack)) => self.packing.ask(frame.request, &pack, &common.packing),
            Ok(_) => Ok(()),
            Err(error) => Err(error),
        };
        if let Err(error) = asked {
            self.answer(frame.request, &Reply::Failed((&error).into()), common);
        }
    }

    fn gather(&mut self, frame: &WireFrame<'_>, descriptor: OwnedFd) -> Result<()> {
        let (Some(gathered), Ok(head)) = (&mut self.gathered, RingsHead::read_from_bytes(frame.body)) else {
            return Err(Error::new(Code::Protocol, "rings", "they were not requested"));
        };
        if let Some(rings) = gathered.add(head, descriptor)? {
            self.local.switch(rings, 0);
            self.gathered = None;
        }
        Ok(())
    }

    /// Passes the whole frames among `bytes` to its local end, and returns the number of their bytes.
    ///
    /// # Errors
    /// `Protocol` when they are none, or more than there was room for.
    pub(crate) fn pass_in(&mut self, bytes: &[u8], common: &mut ChannelShared) -> Result<usize> {
        let mut at = 0;
        while let Some((frame, length)) = WireFrame::split(&bytes[at..])? {
            let whole = &bytes[at..at + length];
            match common.side {
                LinkSide::Client => self.tell_client(&frame, whole, common)?,
                LinkSide::Server => self.tell_server(&frame, whole, common)?,
            }
            at += length;
        }
        if let Some(room) = &mut self.room {
            room.heard = room.heard.saturating_add(at as u32);
            if room.heard > 4 * ROOM_BYTES {
                let cause = "more arrived than there was room for";
                return Err(Error::new(Code::Protocol, "channel of a link", cause));
            }
        }
        Ok(at)
    }

    fn tell_client(&mut self, frame: &WireFrame<'_>, whole: &[u8], common: &mut ChannelShared) -> Result<()> {
        match FrameKind::from_number(frame.kind) {
            Some(FrameKind::Segment) => {
                if let Reply::Segment(head) = Reply::decode(frame)? {
                    return self.announce(frame.request, head, &mut common.memory);
                }
            }
            Some(FrameKind::Dropped) => {
                if let Reply::Dropped(segment) = Reply::decode(frame)? {
                    self.segments.remove(&segment);
                    common.memory.dropped(segment);
                }
            }
            Some(FrameKind::Welcome) => {
                self.outbox.push(|out| out.extend_from_slice(whole))?;
                if let Some(bytes) = self.asked.take() {
                    self.local.offer_rings(&mut self.outbox, bytes as usize)?;
                }
                return Ok(());
            }
            _ => {}
        }
        self.outbox.push(|out| out.extend_from_slice(whole))
    }

    fn announce(&mut self, request: u64, head: SegmentHead, memory: &mut LinkMemory) -> Result<()> {
        self.segments.insert(head.segment.get());
        let descriptor = memory.announce(&head)?;
        self.outbox
            .push_with_descriptor(descriptor, |out| Reply::Segment(head).encode(request, out))
    }

    fn tell_server(&mut self, frame: &WireFrame<'_>, whole: &[u8], common: &mut ChannelShared) -> Result<()> {
        match FrameKind::from_number(frame.kind) {
            Some(FrameKind::Hello) => {
                if let Request::Hello(mut hello) = Request::decode(frame)? {
                    hello.ring_bytes = Some(RING_BYTES as u32);
                    if let Some(origin) = &common.origin {
                        origin.state_in(&mut hello)?;
                    }
                    self.is_introduced = true;
                    return self.outbox.push(|out| Request::Hello(hello).encode(frame.request, out));
                }
            }
            Some(FrameKind::Return) => {
                if let Request::Return(segment) = Request::decode(frame)?
                    && self.segments.contains(&segment)
                {
                    common.memory.returned(segment);
                }
            }
            Some(FrameKind::Pack) if self.packs => {
                self.hear_pack(frame, common);
                return Ok(());
            }
            Some(FrameKind::Board) => {
                let cause = "the board is memory of the server's machine; over a network `stat` reads the counters";
                let refused = Error::new(Code::Unsupported, "board", cause);
                self.answer(frame.request, &Reply::Failed((&refused).into()), common);
                return Ok(());
            }
            Some(FrameKind::Stop) => {
                if let Request::Stop(which) = Request::decode(frame)?
                    && let Some(step) = self.packing.stop(which)
                {
                    self.answer(frame.request, &Reply::Done(0), common);
                    return self.take_step(step, common);
                }
            }
            Some(FrameKind::Release) => {
                if let Ok(released) = <[ReleasedHolding]>::ref_from_bytes(frame.body) {
                    // A client that still reads a payload keeps its copy.
                    for one in released.iter().filter(|one| one.flags.get() & MAPPED == 0) {
                        common
                            .shadow
                            .released(self.number, one.holding.get(), one.sequence.get());
                    }
                    common.forget_overdue();
                }
            }
            _ => {}
        }
        self.outbox.push(|out| out.extend_from_slice(whole))
    }

    /// Sends a local client an error.
    pub(crate) fn tell_failure(&mut self, error: &Error) {
        let _ = self.outbox.push(|out| Reply::Failed(error.into()).encode(0, out));
    }

    /// The server's end: sends the client at the other end an error that concerns its whole connection.
    pub(crate) fn tell_other_end(&mut self, error: &Error, common: &mut ChannelShared) {
        self.answer(0, &Reply::Failed(error.into()), common);
    }

    /// Passes on data from the other end, as far as its local end takes it.
    ///
    /// # Errors
    /// `Protocol` when the rings' words cannot be.
    pub(crate) fn flush_local(&mut self, queue: &mut SendQueue) -> Result<bool> {
        let has_moved = self.push_out()?;
        if let Some(room) = &mut self.room
            && room.heard >= ROOM_BYTES / 4
            && (self.local_ended || self.outbox.len() <= ROOM_BYTES as usize / 2)
        {
            queue.record(LinkRecord::Room(self.number, room.heard));
            room.heard = 0;
        }
        Ok(has_moved)
    }

    fn push_out(&mut self) -> Result<bool> {
        let before = self.outbox.len();
        if before == 0 {
            return Ok(false);
        }
        if self.local_ended {
            self.outbox.clear();
            return Ok(false);
        }
        match self.local.send(&mut self.outbox) {
            Ok(_) => Ok(self.outbox.len() < before),
            // Frames that it sent before it closed are still taken.
            Err(error) if error.code() == Code::Disconnected => {
                self.outbox.clear();
                self.is_called = true;
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Passes on the rest at the end; its local end's frames are no longer read. False when nothing can be sent now, and
    /// something is left.
    pub(crate) fn says_last_words(&mut self) -> bool {
        loop {
            if self.outbox.is_empty() {
                return true;
            }
            match self.local.receive(&mut self.inbox) {
                Ok(ReceiveResult::End) | Err(_) => return true,
                Ok(ReceiveResult::Nothing) => {}
                Ok(_) => while let Ok(Some(_)) = self.inbox.next_frame() {},
            }
            if !self.push_out().unwrap_or(false) {
                return self.outbox.is_empty();
            }
        }
    }

    /// Called before sleeping: whether something would wake a waiting thread. If not, take what has arrived.
    pub(crate) fn may_sleep(&mut self, common: &ChannelShared) -> bool {
        !self.takes_local(common) || self.local.incoming().may_sleep()
    }

    /// Returns the bell that rings for it.
    pub(crate) fn bell(&mut self, common: &ChannelShared) -> Option<std::sync::Arc<OwnedFd>> {
        let hears = self.takes_local(common) || !self.outbox.is_empty();
        self.local.incoming().shared_bell().filter(|_| hears)
    }

    /// Returns the events to wait for at its socket.
    pub(crate) fn socket_flags(&mut self, common: &ChannelShared) -> PollFlags {
        let mut flags = PollFlags::empty();
        flags.set(PollFlags::IN, self.takes_local(common));
        flags.set(
            PollFlags::OUT,
            !self.outbox.is_empty() && self.local.outgoing().waits_for_socket(),
        );
        flags
    }

    pub(crate) fn socket(&self) -> BorrowedFd<'_> {
        self.local.socket().as_fd()
    }

    /// Checks both directions after a wake-up.
    pub(crate) fn woke(&mut self) {
        let _ = self.local.incoming().arm();
    }

    #[cfg(test)]
    pub(crate) fn segments(&mut self) -> &mut HashSet<u32> {
        &mut self.segments
    }
}

fn send_payload(at: PayloadOffset, length: u64, common: &mut ChannelShared) -> Result<()> {
    let memory = &common.memory;
    common.queue.payload(at, |at, length| memory.source(at, length), length)
}

/// Returns the events to wait for at these channels, and the channel of each entry; `None` for a bell.
pub(crate) fn watch<'a>(
    channels: &'a mut [RelayChannel],
    bells: &'a mut Vec<std::sync::Arc<OwnedFd>>,
    common: &ChannelShared,
) -> (Vec<PollFd<'a>>, Vec<Option<usize>>) {
    let mut flags = Vec::with_capacity(channels.len());
    for channel in channels.iter_mut() {
        bells.extend(channel.bell(common));
        flags.push(channel.socket_flags(common));
    }
    let (mut all, mut whose) = (Vec::new(), Vec::new());
    for (place, (channel, flags)) in channels.iter().zip(flags).enumerate() {
        if !flags.is_empty() {
            all.push(PollFd::from_borrowed_fd(channel.socket(), flags));
            whose.push(Some(place));
        }
    }
    for bell in bells.iter() {
        all.push(PollFd::from_borrowed_fd(bell.as_fd(), PollFlags::IN));
        whose.push(None);
    }
    (all, whose)
}
