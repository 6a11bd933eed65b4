//! The server's messages, read back from their bytes and kept.

use std::fmt;

use junctura_model::{Code, Error, Result};
use junctura_wire::fixed::{self, DeliveredHead, SegmentHead};
use junctura_wire::look::{TalliedBody, TalliedGroup};
use junctura_wire::{Reply, frame::WireFrame};

/// One object of a gap or a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// Its schema.
    pub schema: u16,
    /// Its number.
    pub sequence: u64,
    /// Its record.
    pub record: Vec<u8>,
    /// Bytes of its payload, where stated.
    pub length: u64,
}

/// A delivery.
#[derive(Clone, PartialEq, Eq)]
pub struct Delivered {
    /// The head of the delivery.
    pub head: DeliveredHead,
    /// Its record.
    pub record: Vec<u8>,
    /// Its payload, if it was inside the message.
    pub inline: Option<Vec<u8>>,
}

impl fmt::Debug for Delivered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sequence, holding) = (self.sequence(), self.holding());
        let (segment, slot) = (self.head.segment, self.head.slot);
        write!(f, "{sequence} as holding {holding}")?;
        if self.inline.is_none() {
            write!(f, " in slot {slot} of segment {segment}")?;
        }
        f.write_str(if self.is_first_phase() { ", first phase" } else { "" })?;
        f.write_str(if self.is_redelivered() { ", again" } else { "" })
    }
}

impl Delivered {
    /// Its number.
    #[must_use]
    pub fn sequence(&self) -> u64 {
        self.head.sequence.get()
    }

    /// How it is released.
    #[must_use]
    pub fn holding(&self) -> u32 {
        self.head.holding.get()
    }

    /// Whether it is marked as delivered through its requirement before.
    #[must_use]
    pub fn is_redelivered(&self) -> bool {
        self.head.flags.get() & fixed::REDELIVERED != 0
    }

    /// Whether it belongs to a follow's first phase.
    #[must_use]
    pub fn is_first_phase(&self) -> bool {
        self.head.flags.get() & fixed::FIRST_PHASE != 0
    }
}

/// How many objects match, in all and by their size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tallied {
    /// The newest number that was looked at.
    pub sequence: u64,
    /// How many were not looked at.
    pub newer: u64,
    /// How many have this schema and size; `None` where sizes were not requested, or are absent.
    pub groups: Vec<((u16, Option<i64>), u64)>,
    /// How many are in further groups.
    pub others: u64,
    /// Bytes of all payloads.
    pub bytes: u64,
}

/// A reply, owned. See [`Reply`] for each.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "as in `Reply`")]
pub enum Said {
    Welcome {
        client: u32,
    },
    Failed(Option<Code>),
    Offered(u64),
    Segment(SegmentHead),
    Freed(Vec<(u32, u32)>),
    Delivered(Delivered),
    Live,
    Gap {
        items: Vec<Named>,
        reason: String,
    },
    Listed {
        last: bool,
        items: Vec<Named>,
    },
    Event {
        event: u32,
        sequence: Option<u64>,
        record: Vec<u8>,
        length: u64,
        client: Option<u32>,
        requirement: Option<String>,
        bundle: Option<(Option<String>, u64, Option<u64>)>,
    },
    Completed {
        first: u64,
        objects: u64,
        versions: Vec<(u64, u64)>,
    },
    Bundled,
    Tallied(Tallied),
    Reasons,
    Done(u64),
    Stats,
    Recall(u32),
    Dropped(u32),
    Began(u64),
    Ended(Option<Code>),
    /// Not to a client: an object left before its retention was over, since a store has it.
    Left(u64),
    /// Not to a client: a requirement was broken, of this request or of this name.
    Broken {
        of: (u32, u64),
        name: Option<String>,
    },
}

impl Tallied {
    fn of(tallied: &TalliedBody<'_>) -> Self {
        let size = |group: &TalliedGroup<'_>| group.values.first()?.as_ref()?.parse().ok();
        let sums = tallied.groups.iter().map(|group| group.bytes);
        Self {
            sequence: tallied.sequence,
            newer: tallied.newer,
            groups: tallied
                .groups
                .iter()
                .map(|group| ((group.schema, size(group)), group.objects))
                .collect(),
            others: tallied.others,
            bytes: sums.chain([tallied.other_bytes]).flatten().sum(),
        }
    }
}

impl Said {
    /// The number of the object that is delivered.
    #[must_use]
    pub fn delivers(&self) -> Option<u64> {
        if let Self::Delivered(delivered) = self {
            Some(delivered.sequence())
        } else {
            None
        }
    }

    /// The number of the object that is delivered, or that an event is about.
    #[must_use]
    pub fn speaks_of(&self) -> Option<u64> {
        match self {
            Self::Event { sequence, .. } => *sequence,
            _ => self.delivers(),
        }
    }

    /// Reads a reply back from its bytes, as a client would.
    ///
    /// # Errors
    /// The bytes are not one whole frame of a reply.
    pub fn decode(bytes: &[u8]) -> Result<(u64, Self)> {
        let torn = || Error::new(Code::Protocol, "reply", "not one whole frame");
        let (frame, length) = WireFrame::split(bytes)?.ok_or_else(torn)?;
        if length != bytes.len() {
            return Err(torn());
        }
        Ok((frame.request, Self::of(Reply::decode(&frame)?)?))
    }

    fn of(reply: Reply<'_>) -> Result<Self> {
        Ok(match reply {
            Reply::Rings(_) | Reply::Packed { .. } | Reply::BoardPage(_) => {
                let cause = "the core knows nothing of rings and boards, and packs nothing";
                return Err(Error::new(Code::Protocol, format!("{:?} frame", reply.kind()), cause));
            }
            Reply::Welcome(welcome) => Self::Welcome { client: welcome.client },
            Reply::Failed(failure) => Self::Failed(Code::from_number(failure.code)),
            Reply::Offered(sequence) => Self::Offered(sequence),
            Reply::Segment(head) => Self::Segment(head),
            Reply::Freed(slots) => Self::Freed(slots.iter().map(|s| (s.segment.get(), s.slot.get())).collect()),
            Reply::Delivered { head, record, inline } => Self::Delivered(Delivered {
                head,
                record: record.to_vec(),
                inline: (head.flags.get() & fixed::INLINE != 0).then(|| inline.to_vec()),
            }),
            Reply::Live => Self::Live,
            Reply::Gap(gap) => {
                let named = |item: junctura_wire::body::ObjectName<'_>| Named {
                    schema: item.schema,
                    sequence: item.sequence,
                    record: item.record.into_owned(),
                    length: 0,
                };
                Self::Gap {
                    items: gap.items.into_iter().map(named).collect(),
                    reason: gap.reason.into_owned(),
                }
            }
            Reply::Listed(page) => {
                let named = |entry: Result<(fixed::ListedHead, &[u8])>| {
                    entry.map(|(head, record)| Named {
                        schema: head.schema.get(),
                        sequence: head.sequence.get(),
                        record: record.to_vec(),
                        length: head.length.get(),
                    })
                };
                Self::Listed {
                    last: page.last,
                    items: page.iter().map(named).collect::<Result<_>>()?,
                }
            }
            Reply::Event(event) => Self::Event {
                event: event.event,
                sequence: event.object.as_ref().map(|object| object.sequence),
                record: event
                    .object
                    .map(|object| object.record.into_owned())
                    .unwrap_or_default(),
                length: event.length,
                client: event.client.map(|client| client.client),
                requirement: event
                    .requirement
                    .map(|requirement| requirement.name.into_owned())
                    .filter(|name| !name.is_empty()),
                bundle: event.bundle.map(|bundle| {
                    let path = bundle.path.map(std::borrow::Cow::into_owned);
                    (path, bundle.members, bundle.declared)
                }),
            },
            Reply::Completed { head, members } => Self::Completed {
                first: head.first.get(),
                objects: head.objects.get(),
                versions: members
                    .iter()
                    .map(|member| (member.request.get(), member.sequence.get()))
                    .collect(),
            },
            Reply::Bundled(_) => Self::Bundled,
            Reply::Tallied(tallied) => Self::Tallied(Tallied::of(&tallied)),
            Reply::Waiting(_) | Reply::Explained(_) | Reply::Kept(_) => Self::Reasons,
            Reply::Done(count) => Self::Done(count),
            Reply::Stats(_) => Self::Stats,
            Reply::Recall(segment) => Self::Recall(segment),
            Reply::Dropped(segment) => Self::Dropped(segment),
            Reply::Began(sequence) => Self::Began(sequence),
            Reply::Ended(failure) => Self::Ended(Code::from_number(failure.code)),
        })
    }
}
