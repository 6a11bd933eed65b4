//! Dispatches messages of the server to the mailboxes of their requests.

use std::os::fd::OwnedFd;

use junctura_model::{Code, Error, Result};
use junctura_transport::Inbox;
use junctura_wire::fixed::{DeliveredHead, INLINE, LAST, ReleasedHolding, SPILLED, SUMMED, SegmentHead};
use junctura_wire::{Reply, WireFrame};

use crate::connection::PoolConnection;
use crate::connection::in_flight::{ServerMessage, SlotId};
use crate::connection::state::ConnectionState;
use crate::explain::with_complete_commands;
use crate::object::{ArrivedObject, PayloadSource};

impl PoolConnection {
    /// Dispatches all complete frames of the inbox.
    ///
    /// # Errors
    /// The server violated the protocol: the connection is unusable.
    pub(crate) fn dispatch(&self, state: &mut ConnectionState, inbox: &mut Inbox) -> Result<()> {
        while let Some((frame, fd)) = inbox.next_frame()? {
            self.sort(state, &frame, fd)?;
        }
        Ok(())
    }

    fn sort(&self, state: &mut ConnectionState, frame: &WireFrame<'_>, fd: Option<OwnedFd>) -> Result<()> {
        let request = frame.request;
        let letter = match Reply::decode(frame) {
            Ok(Reply::Offered(sequence)) => {
                state.mail.acknowledge(request, Ok(sequence));
                return Ok(());
            }
            Ok(Reply::Delivered { head, record, inline }) => {
                ServerMessage::Delivered(self.arrived(state, &head, record, inline)?)
            }
            Ok(Reply::Freed(slots)) => {
                for slot in slots {
                    state.free_slot(SlotId {
                        segment: slot.segment.get(),
                        slot: slot.slot.get(),
                    });
                }
                return Ok(());
            }
            Ok(Reply::Failed(failure)) => {
                let error = with_complete_commands(failure.into(), &self.greeting.server);
                if request == 0 && matches!(error.code(), Code::Closed | Code::Denied) {
                    state.farewell = Some(farewell(&self.greeting.server, &error));
                    return Ok(());
                }
                if state.mail.is_unacknowledged(request) {
                    if let Some(slot) = state.mail.acknowledge(request, Err(error)) {
                        state.free_slot(slot);
                    }
                    return Ok(());
                }
                if state.mail.get(request).is_none() {
                    state.remark = Some(error);
                    return Ok(());
                }
                ServerMessage::Failed(error)
            }
            Ok(Reply::Segment(head)) => return segment(state, request, &head, fd),
            Ok(Reply::Recall(segment)) => return state.return_segment(segment),
            Ok(Reply::Dropped(segment)) => {
                state.segments.dropped(segment);
                return Ok(());
            }
            Ok(Reply::Live) => ServerMessage::Live,
            Ok(Reply::Gap(_)) => ServerMessage::Gap(frame.body.to_vec()),
            Ok(Reply::Event(_)) => ServerMessage::Event(frame.body.to_vec()),
            Ok(Reply::Listed(page)) => ServerMessage::Page {
                last: page.last,
                entries: page.entries.to_vec(),
            },
            Ok(Reply::Done(count)) => {
                if state.mail.archived(request) {
                    return Ok(());
                }
                ServerMessage::Done(count)
            }
            Ok(Reply::Completed { head, members }) => ServerMessage::Completed {
                first: head.first.get(),
                objects: head.objects.get(),
                more: head.more.get() != 0,
                versions: members
                    .iter()
                    .map(|member| (member.request.get(), member.sequence.get()))
                    .collect(),
            },
            Ok(Reply::Waiting(_) | Reply::Explained(_) | Reply::Kept(_)) => ServerMessage::Reasons(frame.body.to_vec()),
            Ok(Reply::Bundled(_)) => ServerMessage::Bundled(frame.body.to_vec()),
            Ok(Reply::Tallied(_)) => ServerMessage::Tallied(frame.body.to_vec()),
            Ok(Reply::Packed { head, bytes }) => {
                let flags = head.flags.get();
                ServerMessage::Packed {
                    last: flags & LAST != 0,
                    checksum: (flags & SUMMED != 0).then_some(head.checksum.get()),
                    bytes: bytes.to_vec(),
                }
            }
            Ok(Reply::Stats(text)) => ServerMessage::Stats(text.to_owned()),
            Ok(Reply::BoardPage(head)) => {
                let missing = || Error::new(Code::Protocol, "BoardPage frame", "it arrived without its descriptor");
                ServerMessage::BoardPage(fd.ok_or_else(missing)?, head.bytes.get())
            }
            Ok(Reply::Began(sequence)) => ServerMessage::Began(sequence),
            Ok(Reply::Ended(failure)) => {
                ServerMessage::Ended(with_complete_commands(failure.into(), &self.greeting.server))
            }
            Ok(again @ (Reply::Welcome(_) | Reply::Rings(_))) => {
                return Err(Error::new(
                    Code::Protocol,
                    format!("{:?} frame", again.kind()),
                    "it arrived twice",
                ));
            }
            // A newer server may send messages that this client does not support.
            Err(error) if error.code() == Code::Unsupported => return Ok(()),
            Err(error) => return Err(error),
        };
        if let Some(unwanted) = state.mail.deliver(request, letter) {
            state.discard([unwanted]);
        }
        Ok(())
    }

    /// Handles a delivered object; `inline` is its payload, if it was inside the message.
    fn arrived(
        &self,
        state: &mut ConnectionState,
        head: &DeliveredHead,
        record: &[u8],
        inline: &[u8],
    ) -> Result<ArrivedObject> {
        let schema = head.schema.get();
        if usize::from(schema) >= self.greeting.schemas.len() {
            return Err(Error::new(
                Code::Protocol,
                format!("schema {schema}"),
                "an object has it, but the pool does not",
            ));
        }
        let place = if head.flags.get() & INLINE != 0 {
            PayloadSource::Inline
        } else if head.length.get() == 0 {
            PayloadSource::Empty
        } else if head.flags.get() & SPILLED != 0 {
            let at = u64::from(head.segment.get()) << 32 | u64::from(head.slot.get());
            let file = state.segments.file()?;
            PayloadSource::Spilled { file, at }
        } else {
            let (mapping, offset) = state
                .segments
                .find(head.segment.get(), head.slot.get(), head.length.get())?;
            PayloadSource::Mapped { mapping, offset }
        };
        state.hold();
        let mut body = state.spare();
        body.extend_from_slice(inline);
        body.extend_from_slice(record);
        Ok(ArrivedObject {
            holding: ReleasedHolding {
                holding: head.holding,
                sequence: head.sequence,
                ..ReleasedHolding::default()
            },
            schema,
            flags: head.flags.get(),
            record_length: head.record_length.get(),
            checksum: head.checksum.get(),
            producer: head.producer.get(),
            rest: head.rest.get(),
            length: head.length.get(),
            place,
            body,
        })
    }
}

/// Maps a segment; notifies the request that has leased it.
fn segment(state: &mut ConnectionState, request: u64, head: &SegmentHead, fd: Option<OwnedFd>) -> Result<()> {
    let Some(fd) = fd else {
        return Err(Error::new(
            Code::Protocol,
            "Segment frame",
            "it arrived without its descriptor",
        ));
    };
    let added = state.segments.add(head, fd);
    if head.writable.get() == 0 {
        return added;
    }
    let letter = match added {
        Ok(()) => {
            state.note_free_slots();
            ServerMessage::Leased
        }
        Err(error) => {
            let number = state.mail.next(0);
            state.append(number, &junctura_wire::Request::Return(head.segment.get()))?;
            ServerMessage::Failed(error)
        }
    };
    let _unwanted = state.mail.deliver(request, letter);
    Ok(())
}

/// Returns the reason why a server ends a connection, with the server as its subject.
fn farewell(server: &str, error: &Error) -> Error {
    let cause = match error.code() {
        Code::Denied => format!("{}: {}", error.subject(), error.cause()),
        _ => error.cause().to_owned(),
    };
    Error::new(error.code(), server, cause)
}
