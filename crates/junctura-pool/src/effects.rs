//! What the core orders to be done.

use junctura_model::{Code, Error, Result};
use junctura_wire::Reply;
use junctura_wire::fixed::SegmentHead;

/// Which requirement was broken.
#[derive(Clone, Copy, Debug)]
pub enum BrokenRequirement<'a> {
    /// One with a name.
    Named(&'a str),
    /// One that belongs to a client's request.
    Of {
        /// Whose it is.
        client: u32,
        /// The request that made it.
        request: u64,
    },
}

/// A payload to be copied to the file tier.
#[derive(Clone, Copy, Debug)]
pub struct SpillJob<'a> {
    /// What [`crate::core::Core::spilled`] is to be told.
    pub job: u32,
    /// Where it lies.
    pub from: SpillFrom<'a>,
    /// Bytes of the payload.
    pub length: u64,
    /// Where in the file it goes.
    pub at: u64,
}

/// Where a payload lies that is to be copied to the file tier.
#[derive(Clone, Copy, Debug)]
pub enum SpillFrom<'a> {
    /// In shared memory. The bytes change, or the segment goes, before the copy is done, only where nobody needs it any more.
    Segment {
        /// Which segment.
        segment: u32,
        /// Where in it, in bytes.
        offset: u64,
    },
    /// With the core.
    Bytes(&'a [u8]),
}

/// The world as the core sees it. The server carries these out on sockets and memory; a simulation records them.
pub trait Effects {
    /// Sends a reply to a client. Never waits: what a client does not read yet is queued, and [`Effects::backlog_bytes`]
    /// tells how much.
    fn reply(&mut self, client: u32, request: u64, reply: &Reply<'_>);

    /// Sends a segment's description and its descriptor: the writable one when `head.writable` says so; or that of the file
    /// tier.
    fn reply_segment(&mut self, client: u32, request: u64, head: SegmentHead);

    /// Bytes queued for a client that it has not read.
    fn backlog_bytes(&self, client: u32) -> usize;

    /// The same, of all clients together.
    fn backlog_bytes_of_all(&self) -> usize {
        0
    }

    /// Makes a segment.
    ///
    /// # Errors
    /// What the system says when it has no memory or descriptors for it.
    fn create_segment(&mut self, segment: u32, bytes: u64) -> Result<()>;

    /// Copies a payload to the file tier, some time later and in the order in which it is told to; the core is told when that
    /// is done, or that it failed. Only where the configuration has such a tier.
    fn spill(&mut self, job: SpillJob<'_>);

    /// Nothing that is needed lies in this part of the file tier: its room goes back to the disk, before anything is copied
    /// there again.
    fn unspill(&mut self, at: u64, length: u64);

    /// Gives a segment's memory back to the system; no client looks at it any more.
    fn drop_segment(&mut self, segment: u32);

    /// Figures of the process, for `stat`.
    fn figures(&self) -> Option<serde_json::Value> {
        None
    }

    /// Sends the page of the server's numbers, with its descriptor.
    ///
    /// # Errors
    /// `Unsupported` where there is no such page, and what the system says when it has no memory or descriptors for it.
    fn reply_board(&mut self, client: u32, request: u64) -> Result<()> {
        let _ = (client, request);
        let cause = "this pool has no board; `junctura pool stat` reads its counters";
        Err(Error::new(Code::Unsupported, "board", cause))
    }

    /// A requirement was broken, since it kept others waiting; `text` says so for the server's log.
    fn broken(&mut self, requirement: BrokenRequirement<'_>, text: &str) {
        let _ = (requirement, text);
    }

    /// A visible object leaves before its retention is over, since a store has it and memory is short; for those who check.
    fn left_for_store(&mut self, sequence: u64) {
        let _ = sequence;
    }

    /// Ends a client's connection after what is queued for it was sent. The core has already forgotten the client.
    fn disconnect(&mut self, client: u32, why: &Error);
}
