//! Producers' allocators and the server's ledger together, against a model that keeps every fact in a plain list.

use std::collections::BTreeMap;

use junctura_memory::classes::slot_bytes;
use junctura_memory::ledger::{LedgerCounters, RefusalReason};
use junctura_memory::{LedgerLimits, MemoryLedger, SlotAllocator, SlotReuse};
use proptest::prelude::*;

const BUDGET: u64 = 8 << 20;
const CLIENTS: u32 = 3;

#[derive(Clone, Debug)]
enum Step {
    Place {
        client: u32,
        bytes: u64,
    },
    Offer {
        which: usize,
        length: u64,
    },
    Abandon {
        which: usize,
    },
    Vacate {
        which: usize,
    },
    Lie {
        client: u32,
        segment: u32,
        slot: u32,
        length: u64,
    },
    Tidy {
        client: u32,
    },
    Recall {
        client: u32,
    },
    Inline {
        bytes: u64,
    },
    InlineFree {
        which: usize,
    },
    Leave {
        client: u32,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let client = 0..CLIENTS;
    let bytes = prop_oneof![0_u64..300, 1_u64..20_000, 1_u64..(3 << 20)];
    prop_oneof![
        8 => (client.clone(), bytes.clone()).prop_map(|(client, bytes)| Step::Place { client, bytes }),
        6 => (any::<usize>(), any::<u64>()).prop_map(|(which, length)| Step::Offer { which, length }),
        1 => any::<usize>().prop_map(|which| Step::Abandon { which }),
        4 => any::<usize>().prop_map(|which| Step::Vacate { which }),
        2 => (client.clone(), 0_u32..12, 0_u32..5, any::<u64>())
            .prop_map(|(client, segment, slot, length)| Step::Lie { client, segment, slot, length }),
        1 => client.clone().prop_map(|client| Step::Tidy { client }),
        1 => client.clone().prop_map(|client| Step::Recall { client }),
        2 => bytes.prop_map(|bytes| Step::Inline { bytes }),
        1 => any::<usize>().prop_map(|which| Step::InlineFree { which }),
        1 => client.prop_map(|client| Step::Leave { client }),
    ]
}

/// Where a payload lies: its segment and slot.
type Place = (u32, u32);

struct Model {
    ledger: MemoryLedger,
    producers: Vec<SlotAllocator>,
    reuse: SlotReuse,
    /// Owner (none when it has left), bytes, bytes of a slot.
    segments: BTreeMap<u32, (Option<u32>, u64, u64)>,
    filling: Vec<(u32, Place, u64)>,
    offered: Vec<(Place, u64)>,
    inline: Vec<u64>,
}

impl Model {
    fn new(reuse: SlotReuse) -> Self {
        let ledger = MemoryLedger::new(LedgerLimits {
            segments_per_client: 6,
            ..LedgerLimits::new(BUDGET)
        });
        let producers = (0..CLIENTS).map(|_| SlotAllocator::with_reuse(reuse)).collect();
        let (segments, filling, offered, inline) = Default::default();
        Self {
            ledger,
            producers,
            reuse,
            segments,
            filling,
            offered,
            inline,
        }
    }

    fn run(&mut self, step: &Step) {
        match *step {
            Step::Place { client, bytes } => self.place(client, bytes),
            Step::Offer { which, length } => self.offer(which, length),
            Step::Abandon { which } => {
                if let Some((client, (segment, slot), _)) = pick(&mut self.filling, which) {
                    assert!(self.producers[client as usize].free(segment, slot));
                    assert!(!self.producers[client as usize].free(segment, slot));
                }
            }
            Step::Vacate { which } => self.vacate(which),
            Step::Lie {
                client,
                segment,
                slot,
                length,
            } => self.lie(client, segment, slot, length),
            Step::Tidy { client } => {
                for segment in self.producers[client as usize].surplus() {
                    self.give_back(client, segment);
                }
            }
            Step::Recall { client } => {
                for (owner, segment) in self.ledger.recallable(client) {
                    assert_ne!(owner, client);
                    if self.producers[owner as usize].is_idle(segment) {
                        self.give_back(owner, segment);
                    }
                }
            }
            Step::Inline { bytes } => {
                let fits = bytes <= BUDGET - self.ledger.used_bytes();
                assert_eq!(self.ledger.inline_reserve(bytes), fits);
                self.inline.extend(fits.then_some(bytes));
            }
            Step::InlineFree { which } => {
                if let Some(bytes) = pick(&mut self.inline, which) {
                    self.ledger.inline_free(bytes);
                }
            }
            Step::Leave { client } => self.leave(client),
        }
        self.check();
    }

    fn place(&mut self, client: u32, bytes: u64) {
        let producer = &mut self.producers[client as usize];
        let place = producer.allocate(bytes).or_else(|| {
            let grant = match self.ledger.lease(client, bytes) {
                Ok(grant) => grant,
                Err(full) => {
                    assert_eq!(full.reason == RefusalReason::Empty, bytes == 0);
                    return None;
                }
            };
            assert_eq!(grant.slot_bytes, slot_bytes(bytes));
            assert!(grant.bytes >= grant.slot_bytes);
            let known = (Some(client), grant.bytes, grant.slot_bytes);
            assert_eq!(
                self.segments.insert(grant.segment, known),
                None,
                "a number was used twice"
            );
            producer
                .add_segment(grant.segment, grant.slot_bytes, (grant.bytes / grant.slot_bytes) as u32)
                .unwrap();
            Some(producer.allocate(bytes).expect("a new segment has room"))
        });
        let Some((segment, slot)) = place else { return };
        let (owner, size, slot_size) = self.segments[&segment];
        assert_eq!(owner, Some(client));
        assert!(bytes <= slot_size && slot_size <= (2 * bytes).max(slot_bytes(bytes)));
        assert!((u64::from(slot) + 1) * slot_size <= size);
        let taken = self
            .filling
            .iter()
            .map(|filling| filling.1)
            .chain(self.offered.iter().map(|offered| offered.0));
        assert!(
            !taken.into_iter().any(|other| other == (segment, slot)),
            "a slot was given twice"
        );
        self.filling.push((client, (segment, slot), bytes));
    }

    fn offer(&mut self, which: usize, length: u64) {
        if let Some((client, (segment, slot), bytes)) = pick(&mut self.filling, which) {
            let length = length % (bytes + 1);
            self.ledger.occupy(client, segment, slot, length).unwrap();
            self.ledger.occupy(client, segment, slot, length).unwrap_err();
            self.offered.push(((segment, slot), length));
        }
    }

    fn vacate(&mut self, which: usize) {
        let Some(((segment, slot), _)) = pick(&mut self.offered, which) else {
            return;
        };
        let vacated = self.ledger.vacate(segment, slot);
        let owner = self.segments[&segment].0;
        assert_eq!(vacated.owner, owner);
        assert_eq!(vacated.emptied, !self.holds_objects(segment));
        assert_eq!(vacated.dropped, vacated.emptied && owner.is_none());
        if vacated.dropped {
            self.segments.remove(&segment);
        }
        if let Some(owner) = owner {
            assert!(self.producers[owner as usize].free(segment, slot));
        }
    }

    /// A client claims to have filled whatever slot; only what it may is accepted, and taken back at once.
    fn lie(&mut self, client: u32, segment: u32, slot: u32, length: u64) {
        let allowed = self.segments.get(&segment).is_some_and(|&(owner, bytes, slot_bytes)| {
            let free = !self.offered.iter().any(|(place, _)| *place == (segment, slot));
            owner == Some(client) && u64::from(slot) < bytes / slot_bytes && length <= slot_bytes && free
        });
        assert_eq!(self.ledger.occupy(client, segment, slot, length).is_ok(), allowed);
        if allowed {
            self.ledger.vacate(segment, slot);
        }
    }

    fn give_back(&mut self, client: u32, segment: u32) {
        assert!(self.producers[client as usize].remove_segment(segment));
        self.ledger.give_back(client, segment).unwrap();
        self.segments.remove(&segment).unwrap();
    }

    fn leave(&mut self, client: u32) {
        self.filling.retain(|filling| filling.0 != client);
        self.producers[client as usize] = SlotAllocator::with_reuse(self.reuse);
        let mut dropped = self.ledger.client_left(client);
        dropped.sort_unstable();
        let mine = self
            .segments
            .iter()
            .filter(|(_, segment)| segment.0 == Some(client))
            .map(|(&number, _)| number);
        let (kept, gone): (Vec<u32>, Vec<u32>) = mine.partition(|&segment| self.holds_objects(segment));
        assert_eq!(dropped, gone);
        for segment in gone {
            self.segments.remove(&segment);
        }
        for segment in kept {
            self.segments.get_mut(&segment).unwrap().0 = None;
        }
    }

    fn holds_objects(&self, segment: u32) -> bool {
        self.offered.iter().any(|(place, _)| place.0 == segment)
    }

    fn check(&self) {
        let expected = LedgerCounters {
            leased_bytes: self.segments.values().map(|segment| segment.1).sum(),
            occupied_bytes: self.offered.iter().map(|(place, _)| self.segments[&place.0].2).sum(),
            payload_bytes: self.offered.iter().map(|(_, length)| length).sum(),
            inline_bytes: self.inline.iter().sum(),
            segments: self.segments.len() as u32,
            ownerless_segments: self.segments.values().filter(|segment| segment.0.is_none()).count() as u32,
            occupied_slots: self.offered.len() as u64,
        };
        assert_eq!(self.ledger.counters(), expected);
        assert!(self.ledger.used_bytes() <= BUDGET);
        let holders = self.ledger.holders();
        assert_eq!(
            holders.iter().map(|holder| holder.leased_bytes).sum::<u64>(),
            expected.leased_bytes
        );
        assert_eq!(
            holders.iter().map(|holder| holder.occupied_slots).sum::<u64>(),
            expected.occupied_slots
        );
        assert!(holders.is_sorted_by_key(|holder| (std::cmp::Reverse(holder.leased_bytes), holder.client)));
        assert_eq!(self.ledger.largest_holders(2), holders[..holders.len().min(2)]);
        for holder in &holders {
            let segments = self.segments.values().filter(|segment| segment.0 == holder.client);
            assert_eq!(segments.map(|segment| segment.1).sum::<u64>(), holder.leased_bytes);
            let at_once = holder.client.map(|client| self.ledger.leased_bytes(client));
            assert_eq!(at_once.unwrap_or(holder.leased_bytes), holder.leased_bytes);
        }
        let in_use: u64 = self.producers.iter().map(SlotAllocator::in_use).sum();
        let owned = self
            .offered
            .iter()
            .filter(|(place, _)| self.segments[&place.0].0.is_some())
            .count();
        assert_eq!(in_use, (self.filling.len() + owned) as u64);
    }

    fn end(&mut self) {
        for client in 0..CLIENTS {
            self.leave(client);
        }
        while !self.offered.is_empty() {
            self.vacate(0);
        }
        for bytes in self.inline.drain(..) {
            self.ledger.inline_free(bytes);
        }
        self.check();
        assert_eq!(self.ledger.counters(), LedgerCounters::default());
    }
}

fn pick<T>(from: &mut Vec<T>, which: usize) -> Option<T> {
    if from.is_empty() {
        None
    } else {
        Some(from.swap_remove(which % from.len()))
    }
}

proptest! {
    #[test]
    fn no_slot_twice_no_byte_too_many(latest: bool, steps in prop::collection::vec(step(), 1..300)) {
        let mut model = Model::new(if latest { SlotReuse::Latest } else { SlotReuse::Oldest });
        for step in &steps {
            model.run(step);
        }
        model.end();
    }
}
