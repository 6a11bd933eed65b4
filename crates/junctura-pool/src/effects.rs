//! The effects of the core on the world: replies, segments, and the file tier.

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
    /// The number to pass to [`crate::core::Core::spilled`].
    pub job: u32,
    /// The place of the payload.
    pub from: SpillFrom<'a>,
    /// Bytes of the payload.
    pub length: u64,
    /// The offset in the file, in bytes.
    pub at: u64,
}

/// The place of a payload to be copied to the file tier.
#[derive(Clone, Copy, Debug)]
pub enum SpillFrom<'a> {
    /// In shared memory. The bytes change, or the segment is dropped, before the copy is done only if the payload is no
    /// longer needed.
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
    /// Sends a reply to a client. Does not block: replies that the client has not read are queued, and
    /// [`Effects::backlog_bytes`] returns how many bytes they are.
    fn reply(&mut self, client: u32, request: u64, reply: &Reply<'_>);

    /// Sends a segment's description and its descriptor: the writable one if `head.writable` is set; or that of the
    /// file tier.
    fn reply_segment(&mut self, client: u32, request: u64, head: SegmentHead);

    /// Bytes queued for a client that it has not read.
    fn backlog_bytes(&self, client: u32) -> usize;

    /// The same, of all clients together.
    fn backlog_bytes_of_all(&self) -> usize {
        0
    }

    /// The error of the system when it has no memory or descriptors for it.
    fn create_segment(&mut self, segment: u32, bytes: u64) -> Result<()>;

    /// Starts to copy a payload to the file tier. Copies are made in the order of the calls;
    /// [`crate::core::Core::spilled`] is called when one is done or has failed. Only called where the configuration has
    /// such a tier.
    fn spill(&mut self, job: SpillJob<'_>);

    /// Returns a range of the file tier to the disk before anything is copied there again: no payload needs it.
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
    /// `Unsupported` where there is no such page, and the error of the system when it has no memory or descriptors for it.
    fn reply_board(&mut self, client: u32, request: u64) -> Result<()> {
        let _ = (client, request);
        let cause = "this pool has no board; `junctura pool stat` reads its counters";
        Err(Error::new(Code::Unsupported, "board", cause))
    }

    /// Reports a requirement that was broken since it blocked others; `text` is the reason for the server's log.
    fn broken(&mut self, requirement: BrokenRequirement<'_>, text: &str) {
        let _ = (requirement, text);
    }

    /// Reports a visible object that was evicted before the end of its retention, as it is archived and memory is
    /// short; for checks.
    fn left_for_store(&mut self, sequence: u64) {
        let _ = sequence;
    }

    /// Ends a client's connection after what is queued for it was sent. The core has already forgotten the client.
    fn disconnect(&mut self, client: u32, why: &Error);
}
