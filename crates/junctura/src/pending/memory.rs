//! Requests for memory: a free slot, or a segment that is leased, whichever is first.

use std::sync::Arc;
use std::time::Instant;

use junctura_memory::classes::slot_bytes;
use junctura_model::{Code, Result};

use crate::awaiting::{WaitKind, WaitSource};
use crate::connection::in_flight::{RequestSlot, ServerMessage};
use crate::connection::state::{ConnectionState, StandingLease, StreamStop};
use crate::connection::{PoolConnection, ThreadWait};
use crate::verbs::allocation::Allocation;

/// A payload for which memory is requested.
pub(super) struct MemoryRequest {
    bytes: usize,
    staged: bool,
    lease: Option<RequestedLease>,
    /// Count of freed slots at the time when none was free.
    frees: u64,
}

struct RequestedLease {
    standing: StandingLease,
    /// The lease request was made for another payload; its timeout does not end this request.
    is_taken_over: bool,
}

impl MemoryRequest {
    pub(super) fn new(bytes: usize, staged: bool) -> Self {
        Self {
            bytes,
            staged,
            lease: None,
            frees: 0,
        }
    }

    /// Waits for a slot, or for the answer to the lease request. Before the lease is requested, it may be ready.
    pub(super) fn awaiting(&self, connection: &Arc<PoolConnection>) -> WaitSource {
        self.lease_number().map_or_else(WaitSource::ready, |number| {
            WaitSource(WaitKind::Memory(Arc::clone(connection), number, self.frees))
        })
    }

    /// Returns the conversation about a segment, if one was requested.
    pub(super) fn lease_number(&self) -> Option<u64> {
        self.lease.as_ref().map(|lease| lease.standing.number)
    }

    /// Returns the memory if it is available. Does not block.
    pub(super) fn take(&mut self, connection: &Arc<PoolConnection>) -> Result<Option<Allocation>> {
        if connection.goes_inline(self.bytes) {
            return Ok(Some(Allocation::of_heap(connection, self.bytes)));
        }
        connection.must_take(self.bytes as u64)?;
        let mut state = connection.lock()?;
        self.take_under_lock(connection, &mut state)
    }

    /// Waits for the memory; `None` at the deadline.
    pub(super) fn wait(
        &mut self,
        connection: &Arc<PoolConnection>,
        deadline: Option<Instant>,
    ) -> Result<Option<Allocation>> {
        loop {
            if let Some(taken) = self.take(connection)? {
                return Ok(Some(taken));
            }
            let Some(number) = self.lease_number() else { continue };
            let what = ThreadWait {
                requests: &[number],
                for_slots: true,
                for_room: false,
                deadline,
            };
            let waited = connection.wait(connection.lock()?, what, |state| {
                match self.take_under_lock(connection, state) {
                    // Another segment was requested.
                    Ok(None) if self.lease_number() != Some(number) => Some(Ok(None)),
                    taken => taken.transpose().map(|taken| taken.map(Some)),
                }
            })?;
            match waited {
                None => return Ok(None),
                Some(Ok(None)) => {}
                Some(taken) => return taken,
            }
        }
    }

    fn take_under_lock(
        &mut self,
        connection: &Arc<PoolConnection>,
        state: &mut ConnectionState,
    ) -> Result<Option<Allocation>> {
        state.stay_in_process()?;
        loop {
            state.alive()?;
            self.frees = state.frees();
            if let Some(taken) = state.segments.take(self.bytes as u64) {
                self.leave_behind(state);
                return taken.map(|(segment, slot)| Some(Allocation::of_slot(connection, segment, slot)));
            }
            let Some(lease) = &self.lease else {
                self.lease = Some(self.ask(connection, state)?);
                continue;
            };
            let (number, is_taken_over) = (lease.standing.number, lease.is_taken_over);
            match state.mail.get(number).and_then(RequestSlot::take) {
                None => return state.send().map(|_| None),
                Some(letter) => {
                    state.mail.close(number);
                    self.lease = None;
                    match letter {
                        ServerMessage::Failed(error) if is_taken_over && error.code() == Code::PoolFull => {}
                        ServerMessage::Failed(error) => return Err(error),
                        // A segment arrived; other threads may have taken its slots.
                        _ => {}
                    }
                }
            }
        }
    }

    fn ask(&self, connection: &PoolConnection, state: &mut ConnectionState) -> Result<RequestedLease> {
        let bytes = self.bytes as u64;
        let taken_over = state
            .standing_lease
            .take_if(|lease| lease.slot_bytes == slot_bytes(bytes) && lease.staged == self.staged);
        let is_taken_over = taken_over.is_some();
        let timeout = connection.offer_timeout;
        let standing = taken_over.map_or_else(|| state.ask_for_segment(bytes, timeout, self.staged), Ok)?;
        Ok(RequestedLease {
            standing,
            is_taken_over,
        })
    }

    /// Leaves the outstanding lease request to the next payload that needs memory.
    fn leave_behind(&mut self, state: &mut ConnectionState) {
        let Some(lease) = self.lease.take() else { return };
        if state.standing_lease.is_none() {
            state.standing_lease = Some(lease.standing);
        } else {
            state.abandon_now(lease.standing.number, StreamStop::Cancel);
        }
    }

    pub(super) fn give_up(&self, connection: &PoolConnection) {
        if let Some(number) = self.lease_number() {
            connection.give_up(number, StreamStop::Cancel);
        }
    }
}
