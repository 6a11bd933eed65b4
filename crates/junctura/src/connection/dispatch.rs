//! Sorts what the server says into the mailboxes of those who asked.

use std::os::fd::OwnedFd;

use junctura_model::{Code, Error, Result};
use junctura_transport::Inbox;
use junctura_wire::fixed::{DeliveredHead, Holding, INLINE, LAST, SPILLED, SUMMED, SegmentHead};
use junctura_wire::{Frame, Reply};

use crate::connection::Connection;
use crate::connection::in_flight::{Letter, SlotId};
use crate::connection::state::State;
use crate::object::{Arrived, Place};

impl Connection {
    /// Sorts all whole frames of the inbox.
    ///
    /// # Errors
    /// The server broke the protocol: the connection cannot go on.
    pub(crate) fn dispatch(&self, state: &mut State, inbox: &mut Inbox) -> Result<()> {
        while let Some((frame, fd)) = inbox.next_frame()? {
            self.sort(state, &frame, fd)?;
        }
        Ok(())
    }

    fn sort(&self, state: &mut State, frame: &Frame<'_>, fd: Option<OwnedFd>) -> Result<()> {
        let request = frame.request;
        let letter = match Reply::decode(frame) {
            Ok(Reply::Offered(sequence)) => {
                state.mail.acknowledge(request, Ok(sequence));
                return Ok(());
            }
            Ok(Reply::Delivered { head, record, inline }) => {
                Letter::Delivered(self.arrived(state, &head, record, inline)?)
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
                let error = Error::from(failure);
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
                Letter::Failed(error)
            }
            Ok(Reply::Segment(head)) => return segment(state, request, &head, fd),
            Ok(Reply::Recall(segment)) => return state.return_segment(segment),
            Ok(Reply::Dropped(segment)) => {
                state.segments.dropped(segment);
                return Ok(());
            }
            Ok(Reply::Live) => Letter::Live,
            Ok(Reply::Gap(_)) => Letter::Gap(frame.body.to_vec()),
            Ok(Reply::Event(_)) => Letter::Event(frame.body.to_vec()),
            Ok(Reply::Listed(page)) => Letter::Page {
                last: page.last,
                entries: page.entries.to_vec(),
            },
            Ok(Reply::Done(count)) => {
                if state.mail.archived(request) {
                    return Ok(());
                }
                Letter::Done(count)
            }
            Ok(Reply::Completed { head, members }) => Letter::Completed {
                first: head.first.get(),
                objects: head.objects.get(),
                more: head.more.get() != 0,
                versions: members
                    .iter()
                    .map(|member| (member.request.get(), member.sequence.get()))
                    .collect(),
            },
            Ok(Reply::Bundled(_)) => Letter::Bundled(frame.body.to_vec()),
            Ok(Reply::Packed { head, bytes }) => {
                let flags = head.flags.get();
                Letter::Packed {
                    last: flags & LAST != 0,
                    checksum: (flags & SUMMED != 0).then_some(head.checksum.get()),
                    bytes: bytes.to_vec(),
                }
            }
            Ok(Reply::Stats(text)) => Letter::Stats(text.to_owned()),
            Ok(Reply::Began(sequence)) => Letter::Began(sequence),
            Ok(Reply::Ended(failure)) => Letter::Ended(failure.into()),
            Ok(again @ (Reply::Welcome(_) | Reply::Rings(_))) => {
                return Err(Error::new(
                    Code::Protocol,
                    format!("{:?} frame", again.kind()),
                    "it came twice",
                ));
            }
            // A newer server may say more than we understand.
            Err(error) if error.code() == Code::Unsupported => return Ok(()),
            Err(error) => return Err(error),
        };
        if let Some(unwanted) = state.mail.deliver(request, letter) {
            state.discard([unwanted]);
        }
        Ok(())
    }

    /// A delivered object; `inline` is its payload, if it travelled inside the message.
    fn arrived(&self, state: &mut State, head: &DeliveredHead, record: &[u8], inline: &[u8]) -> Result<Arrived> {
        let schema = head.schema.get();
        if usize::from(schema) >= self.greeting.schemas.len() {
            return Err(Error::new(
                Code::Protocol,
                format!("schema {schema}"),
                "an object has it, but the pool does not",
            ));
        }
        let place = if head.flags.get() & INLINE != 0 {
            Place::Inline
        } else if head.length.get() == 0 {
            Place::Empty
        } else if head.flags.get() & SPILLED != 0 {
            let at = u64::from(head.segment.get()) << 32 | u64::from(head.slot.get());
            let file = state.segments.file()?;
            Place::Spilled { file, at }
        } else {
            let (mapping, offset) = state
                .segments
                .find(head.segment.get(), head.slot.get(), head.length.get())?;
            Place::Mapped { mapping, offset }
        };
        state.hold();
        let mut body = state.spare();
        body.extend_from_slice(inline);
        body.extend_from_slice(record);
        Ok(Arrived {
            holding: Holding {
                holding: head.holding,
                sequence: head.sequence,
                ..Holding::default()
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

/// Maps a segment; one that was leased is told to who asked for it.
fn segment(state: &mut State, request: u64, head: &SegmentHead, fd: Option<OwnedFd>) -> Result<()> {
    let Some(fd) = fd else {
        return Err(Error::new(
            Code::Protocol,
            "Segment frame",
            "it came without its descriptor",
        ));
    };
    let added = state.segments.add(head, fd);
    if head.writable.get() == 0 {
        return added;
    }
    let letter = match added {
        Ok(()) => {
            state.note_free_slots();
            Letter::Leased
        }
        Err(error) => {
            let number = state.mail.next(0);
            state.append(number, &junctura_wire::Request::Return(head.segment.get()))?;
            Letter::Failed(error)
        }
    };
    let _unwanted = state.mail.deliver(request, letter);
    Ok(())
}
