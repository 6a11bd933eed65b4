//! The core's effects on real sockets and real memory.

use std::collections::VecDeque;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;

use hashbrown::HashMap;
use junctura_board::BOARD_BYTES;
use junctura_model::{Code, Error, Result};
use junctura_wire::Reply;
use junctura_wire::fixed::{BoardPageHead, FILE_TIER, SegmentHead};

use super::connection::ClientConnection;
use super::pages::PageThread;
use super::ready::{LeasedSegment, ReadyMemory};
use super::spiller::{SpillRequest, SpillThread};
use super::traffic::ServerTraffic;
use crate::{BrokenRequirement, Effects, SpillFrom, SpillJob};

#[derive(Default)]
pub(super) struct ServerEffects {
    pub(super) connections: HashMap<u32, ClientConnection>,
    segments: HashMap<u32, LeasedSegment>,
    ready: ReadyMemory,
    pages: PageThread,
    pub(super) spiller: Option<SpillThread>,
    pub(super) traffic: ServerTraffic,
    /// Clients that have asked for the board, and the numbers of their requests.
    pub(super) boards_asked: Vec<(u32, u64)>,
    /// Bytes in all outboxes.
    pub(super) unread_bytes: usize,
    /// Connections with something to send: first those that were given objects.
    receivers: Vec<u32>,
    others: Vec<u32>,
    /// The connections that are flushed now; later ones are flushed after them.
    flushed: VecDeque<u32>,
}

impl ServerEffects {
    pub(super) fn with(spiller: Option<SpillThread>, ready: ReadyMemory) -> Self {
        Self {
            ready,
            spiller,
            ..Self::default()
        }
    }

    /// Whether [`ServerEffects::idle`] has something to do.
    pub(super) fn has_idle_work(&self) -> bool {
        self.ready.is_due()
    }

    /// Does postponed work, in a moment without other work.
    pub(super) fn idle(&mut self) {
        self.ready.refill(&mut self.pages);
    }

    /// Notes that a connection is to be flushed.
    pub(super) fn touch(&mut self, client: u32) {
        if let Some(connection) = self.connections.get_mut(&client)
            && !connection.is_touched
        {
            connection.is_touched = true;
            self.others.push(client);
        }
    }

    /// Takes the next connection that is to be flushed.
    pub(super) fn take_touched(&mut self) -> Option<u32> {
        if self.flushed.is_empty() {
            self.flushed.extend(self.receivers.drain(..));
            self.flushed.extend(self.others.drain(..));
        }
        let client = self.flushed.pop_front()?;
        if let Some(connection) = self.connections.get_mut(&client) {
            connection.is_touched = false;
        }
        Some(client)
    }

    /// Returns the clients that have not taken everything that is queued for them.
    pub(super) fn unsent(&self) -> impl Iterator<Item = u32> {
        let unsent = self
            .connections
            .iter()
            .filter(|(_, connection)| !connection.outbox.is_empty());
        unsent.map(|(&client, _)| client)
    }

    /// Whether a connection is to be flushed.
    pub(super) fn is_touched(&self) -> bool {
        !self.flushed.is_empty() || !self.receivers.is_empty() || !self.others.is_empty()
    }

    fn descriptor(&self, head: SegmentHead) -> Option<BorrowedFd<'_>> {
        if head.segment.get() == FILE_TIER {
            return self.spiller.as_ref().map(SpillThread::readonly);
        }
        let segment = &self.segments.get(&head.segment.get())?.memory;
        Some(match head.writable.get() {
            1 => segment.writable(),
            _ => segment.readonly(),
        })
    }

    /// Sends the board.
    pub(super) fn send_board(&mut self, client: u32, request: u64, descriptor: Arc<OwnedFd>) {
        let head = BoardPageHead {
            bytes: BOARD_BYTES.into(),
        };
        self.queue(client, false, |connection| {
            connection
                .outbox
                .push_with_descriptor(descriptor, |out| Reply::BoardPage(head).encode(request, out))
        });
    }

    fn queue(&mut self, client: u32, is_delivery: bool, write: impl FnOnce(&mut ClientConnection) -> Result<()>) {
        let Some(connection) = self.connections.get_mut(&client) else {
            return;
        };
        if connection.is_closing {
            return;
        }
        let before = connection.outbox.len();
        if let Err(error) = write(connection) {
            tracing::error!(%error, client, "a reply could not be queued");
            connection.is_closing = true;
        }
        self.unread_bytes += connection.outbox.len() - before;
        self.traffic.frames_written += 1;
        if !connection.is_touched {
            connection.is_touched = true;
            let queue = if is_delivery {
                &mut self.receivers
            } else {
                &mut self.others
            };
            queue.push(client);
        }
    }
}

impl Effects for ServerEffects {
    fn reply(&mut self, client: u32, request: u64, reply: &Reply<'_>) {
        let is_delivery = matches!(reply, Reply::Delivered { .. });
        self.queue(client, is_delivery, |connection| {
            connection.outbox.push(|out| reply.encode(request, out))
        });
    }

    fn reply_segment(&mut self, client: u32, request: u64, head: SegmentHead) {
        let Some(descriptor) = self.descriptor(head) else {
            return;
        };
        let descriptor = descriptor.try_clone_to_owned();
        if head.writable.get() == 1
            && let Some(segment) = self.segments.get(&head.segment.get())
        {
            // Its producer fills the first slot meanwhile.
            let from = segment.made_bytes.max(head.slot_bytes.get());
            self.pages.prepare(&segment.memory, from);
        }
        self.queue(client, true, |connection| {
            let descriptor = descriptor.map_err(|error| Error::new(Code::Io, "segment", error.to_string()))?;
            connection
                .outbox
                .push_with_descriptor(descriptor, |out| Reply::Segment(head).encode(request, out))
        });
    }

    fn reply_board(&mut self, client: u32, request: u64) -> Result<()> {
        self.boards_asked.push((client, request));
        Ok(())
    }

    fn backlog_bytes(&self, client: u32) -> usize {
        self.connections
            .get(&client)
            .map_or(0, |connection| connection.outbox.len())
    }

    fn backlog_bytes_of_all(&self) -> usize {
        self.unread_bytes
    }

    fn create_segment(&mut self, segment: u32, bytes: u64) -> Result<()> {
        let created = self.ready.create(bytes, &mut self.pages)?;
        self.segments.insert(segment, created);
        Ok(())
    }

    fn drop_segment(&mut self, segment: u32) {
        let Some(LeasedSegment { memory, .. }) = self.segments.remove(&segment) else {
            return;
        };
        self.ready.note_end(memory.bytes());
        if let Err(error) = memory.punch_all() {
            tracing::error!(%error, "memory could not be given back");
        }
    }

    fn spill(&mut self, SpillJob { job, from, length, at }: SpillJob<'_>) {
        let Some(spiller) = &self.spiller else { return };
        match from {
            SpillFrom::Bytes(payload) => spiller.order(SpillRequest::Write {
                job,
                payload: payload.to_vec(),
                at,
            }),
            SpillFrom::Segment { segment, offset } => {
                if let Some(segment) = self.segments.get(&segment) {
                    let segment = Arc::clone(&segment.memory);
                    spiller.order(SpillRequest::Copy {
                        job,
                        segment,
                        offset,
                        length,
                        at,
                    });
                }
            }
        }
    }

    fn unspill(&mut self, at: u64, length: u64) {
        if let Some(spiller) = &self.spiller {
            spiller.order(SpillRequest::Punch { at, length });
        }
    }

    fn broken(&mut self, _requirement: BrokenRequirement<'_>, text: &str) {
        tracing::warn!("{text}");
    }

    fn disconnect(&mut self, client: u32, why: &Error) {
        tracing::debug!(client, %why, "disconnecting");
        if let Some(connection) = self.connections.get_mut(&client) {
            connection.is_closing = true;
        }
        self.touch(client);
    }

    fn figures(&self) -> Option<serde_json::Value> {
        let cpu = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        Some(serde_json::json!({
            "version": env!("CARGO_PKG_VERSION"),
            "pid": std::process::id(),
            "cpu_ns": cpu.tv_sec as u64 * 1_000_000_000 + cpu.tv_nsec as u64,
            "rss_bytes": resident_bytes(),
            "traffic": self.traffic,
            "backlog_bytes": self.connections.values().map(|connection| connection.outbox.len()).sum::<usize>(),
        }))
    }
}

/// Memory of this process that is in use now, from `/proc/self/statm` (proc(5)).
fn resident_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = text.split_ascii_whitespace().nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}
