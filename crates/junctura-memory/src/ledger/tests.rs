use junctura_model::{Code, Error};

use super::*;
use crate::classes::{PAGE_BYTES, SEGMENT_BYTES_FIRST, SEGMENT_BYTES_MAX, slot_bytes};

const MIB: u64 = 1 << 20;

fn ledger(budget_bytes: u64) -> MemoryLedger {
    MemoryLedger::new(LedgerLimits {
        high_mark_bytes: budget_bytes,
        ..LedgerLimits::new(budget_bytes)
    })
}

#[test]
fn empty_accounts() {
    let mut ledger = ledger(MIB);
    assert_eq!(ledger.counters(), LedgerCounters::default());
    assert!(ledger.holders().is_empty());
    assert!(ledger.client_left(1).is_empty());
    assert_eq!(ledger.recallable(0).count(), 0);
    assert_eq!(ledger.occupy(1, 1, 0, 0), Err(SegmentError::NoSuchSegment));
    assert_eq!(ledger.give_back(1, 1), Err(SegmentError::NoSuchSegment));
    assert_eq!((ledger.offset(1, 0), ledger.grant(1)), (None, None));
}

#[test]
fn an_object_comes_and_goes() {
    let mut ledger = ledger(MIB);
    let grant = ledger.lease(7, 1000).unwrap();
    assert_eq!(
        grant,
        SegmentGrant {
            segment: 1,
            bytes: SEGMENT_BYTES_FIRST,
            slot_bytes: 1024
        }
    );
    assert_eq!(ledger.grant(1), Some(grant));
    ledger.occupy(7, 1, 3, 999).unwrap();
    let counters = ledger.counters();
    assert_eq!(
        (counters.occupied_slots, counters.occupied_bytes, counters.payload_bytes),
        (1, 1024, 999)
    );
    assert_eq!(ledger.offset(1, 3), Some(3072));
    assert_eq!(ledger.give_back(7, 1), Err(SegmentError::InUse { occupied: 1 }));
    assert_eq!(
        ledger.vacate(1, 3),
        VacatedSlot {
            owner: Some(7),
            emptied: true,
            dropped: false
        }
    );
    ledger.give_back(7, 1).unwrap();
    assert_eq!(ledger.counters(), LedgerCounters::default());
    assert_eq!(ledger.lease(7, 1).unwrap().segment, 2, "numbers are never used twice");
}

#[test]
fn free_slots_are_those_of_a_client_and_of_a_size() {
    let mut ledger = ledger(8 * MIB);
    let slots = ledger.lease(7, 1000).unwrap().bytes / 1024;
    assert_eq!(ledger.free_slots(7, 1000, u64::MAX), slots);
    ledger.occupy(7, 1, 0, 1).unwrap();
    assert_eq!(ledger.free_slots(7, 1024, u64::MAX), slots - 1);
    assert_eq!(ledger.free_slots(7, 1024, 2), 2, "no further than asked");
    assert_eq!(ledger.free_slots(7, 5000, 2), 0);
    assert_eq!(ledger.free_slots(8, 1000, 2), 0);
    let more = ledger.lease(7, 1000).unwrap().bytes / 1024;
    assert_eq!(ledger.free_slots(7, 1000, u64::MAX), slots - 1 + more);
}

#[test]
fn a_slot_may_hold_less_than_it_could_and_nothing_at_all() {
    let mut ledger = ledger(8 << 30);
    for payload in [64, 5 << 30] {
        let grant = ledger.lease(1, payload).unwrap();
        for length in [0, 1, grant.slot_bytes] {
            ledger.occupy(1, grant.segment, 0, length).unwrap();
            assert_eq!(ledger.counters().payload_bytes, length);
            assert_eq!(ledger.occupy(1, grant.segment, 0, length), Err(SegmentError::Occupied));
            assert_eq!(ledger.counters().payload_bytes, length);
            assert!(ledger.vacate(grant.segment, 0).emptied);
        }
        assert_eq!(ledger.counters().payload_bytes, 0);
    }
}

#[test]
fn false_claims_change_nothing() {
    let mut ledger = ledger(4 * MIB);
    let many = ledger.lease(1, 64).unwrap();
    let one = ledger.lease(1, MIB).unwrap();
    let before = ledger.counters();
    let slots = (many.bytes / many.slot_bytes) as u32;
    assert_eq!(ledger.occupy(1, 99, 0, 1), Err(SegmentError::NoSuchSegment));
    assert_eq!(ledger.occupy(2, many.segment, 0, 1), Err(SegmentError::NotLeased));
    assert_eq!(
        ledger.occupy(1, many.segment, slots, 1),
        Err(SegmentError::NoSuchSlot { slots })
    );
    assert_eq!(
        ledger.occupy(1, many.segment, u32::MAX, 1),
        Err(SegmentError::NoSuchSlot { slots })
    );
    assert_eq!(
        ledger.occupy(1, one.segment, 1, 1),
        Err(SegmentError::NoSuchSlot { slots: 1 })
    );
    assert_eq!(
        ledger.occupy(1, many.segment, 0, 65),
        Err(SegmentError::TooLong { slot_bytes: 64 })
    );
    assert_eq!(
        ledger.occupy(1, one.segment, 0, u64::MAX),
        Err(SegmentError::TooLong { slot_bytes: MIB })
    );
    assert_eq!(ledger.give_back(2, one.segment), Err(SegmentError::NotLeased));
    assert_eq!(ledger.counters(), before);
    assert_eq!(ledger.offset(many.segment, slots), None);
    assert_eq!(Error::from(SegmentError::NotLeased).code(), Code::Denied);
    assert_eq!(Error::from(SegmentError::Occupied).code(), Code::Conflict);
    assert_eq!(Error::from(SegmentError::NoSuchSegment).code(), Code::InvalidArgument);
}

#[test]
fn a_client_leaves() {
    let mut ledger = ledger(4 * MIB);
    let empty = ledger.lease(1, 64).unwrap().segment;
    let used = ledger.lease(1, 64).unwrap().segment;
    let other = ledger.lease(2, 64).unwrap().segment;
    ledger.occupy(1, used, 0, 10).unwrap();
    ledger.occupy(1, used, 1, 10).unwrap();
    assert_eq!(ledger.client_left(1), [empty]);
    assert!(ledger.client_left(1).is_empty());
    assert_eq!(ledger.occupy(1, used, 2, 1), Err(SegmentError::NotLeased));
    assert_eq!(ledger.recallable(9).collect::<Vec<_>>(), [(2, other)]);
    assert!(
        ledger
            .holders()
            .iter()
            .any(|holder| holder.client.is_none() && holder.occupied_slots == 2)
    );
    assert_eq!(ledger.vacate(used, 1), VacatedSlot::default());
    assert_eq!(
        ledger.vacate(used, 0),
        VacatedSlot {
            owner: None,
            emptied: true,
            dropped: true
        }
    );
    assert_eq!(ledger.occupy(1, used, 2, 1), Err(SegmentError::NoSuchSegment));
    assert_eq!(ledger.client_left(2), [other]);
    assert_eq!(ledger.counters(), LedgerCounters::default());
}

#[test]
fn segments_grow_with_use_of_their_class() {
    let mut ledger = ledger(1 << 40);
    let sizes: Vec<u64> = (0..11).map(|_| ledger.lease(1, 100).unwrap().bytes).collect();
    let expected: Vec<u64> = (0..11)
        .map(|doubling| (SEGMENT_BYTES_FIRST << doubling).min(SEGMENT_BYTES_MAX))
        .collect();
    assert_eq!(sizes, expected);
    assert_eq!(
        ledger.lease(1, 200).unwrap().bytes,
        SEGMENT_BYTES_FIRST,
        "another class"
    );
    assert_eq!(
        ledger.lease(2, 100).unwrap().bytes,
        SEGMENT_BYTES_FIRST,
        "another client"
    );
    assert_eq!(ledger.lease(2, 5 << 30).unwrap().bytes, 5 << 30);
}

#[test]
fn the_budget_holds_to_the_last_page() {
    let slot = slot_bytes(804 << 10);
    let mut ledger = ledger(3 * slot + 5);
    assert_eq!(ledger.lease(1, slot).unwrap().bytes, slot);
    assert_eq!(ledger.lease(1, slot).unwrap().bytes, 2 * slot, "as much as fits");
    let full = ledger.lease(1, slot).unwrap_err();
    assert_eq!((full.reason, full.may_wait()), (RefusalReason::Budget, true));
    assert!(ledger.inline_reserve(0));
    assert!(!ledger.inline_reserve(6));
    assert!(ledger.inline_reserve(5));
    assert_eq!(ledger.free_bytes(), 0);
    assert!(!ledger.inline_reserve(1));
    assert!(!ledger.inline_reserve(u64::MAX));
    ledger.inline_free(5);
    assert_eq!(ledger.free_bytes(), 5);
    ledger.give_back(1, 1).unwrap();
    let least = ledger.lease(2, 1).unwrap();
    assert!(least.bytes >= PAGE_BYTES && ledger.used_bytes() <= ledger.limits().budget_bytes);
}

#[test]
fn above_the_high_mark_leases_stay_small() {
    let mut ledger = MemoryLedger::new(LedgerLimits {
        high_mark_bytes: 3 * MIB,
        ..LedgerLimits::new(8 * MIB)
    });
    assert_eq!(ledger.lease(1, MIB).unwrap().bytes, MIB);
    assert_eq!(ledger.lease(1, MIB).unwrap().bytes, 2 * MIB);
    assert!(!ledger.above_high_mark());
    assert_eq!(ledger.lease(1, MIB).unwrap().bytes, MIB);
    assert!(ledger.above_high_mark());
    assert_eq!(ledger.lease(1, MIB).unwrap().bytes, MIB);
    assert_eq!(ledger.lease(2, 64).unwrap().bytes, SEGMENT_BYTES_FIRST);
}

#[test]
fn refusals_say_what_is_in_the_way() {
    let mut ledger = MemoryLedger::new(LedgerLimits {
        segments_per_client: 2,
        ..LedgerLimits::new(2 * MIB)
    });
    assert_eq!(ledger.lease(1, 0).unwrap_err().reason, RefusalReason::Empty);
    assert_eq!(
        ledger.lease(1, 2 * MIB + 1).unwrap_err().reason,
        RefusalReason::TooLarge
    );
    assert_eq!(ledger.lease(1, u64::MAX).unwrap_err().reason, RefusalReason::TooLarge);
    ledger.lease(1, 64).unwrap();
    ledger.lease(1, 64).unwrap();
    assert_eq!(ledger.lease(1, 64).unwrap_err().reason, RefusalReason::Segments);
    ledger.lease(2, MIB).unwrap();
    ledger.occupy(2, 3, 0, MIB).unwrap();
    let full = ledger.lease(2, MIB).unwrap_err();
    assert_eq!(full, ledger.full(MIB));
    let error = full.into_error(&ledger.holders(), |client| format!("model {client}"));
    assert_eq!(error.code(), Code::PoolFull);
    let expected = "most is held by model 2 (1.0 MiB leased, 1.0 MiB in use), model 1";
    assert!(error.cause().contains(expected), "{error}");
    assert_eq!(ledger.leased_bytes(2), MIB);
    ledger.client_left(2);
    assert!(
        full.into_error(&ledger.holders(), |_| String::new())
            .cause()
            .contains("clients that have left")
    );
}

#[test]
fn numbers_end() {
    let mut ledger = ledger(MIB);
    ledger.last = u32::MAX;
    assert_eq!(ledger.lease(1, 1).unwrap_err().reason, RefusalReason::Numbers);
}

#[test]
fn the_largest_idle_segment_is_recalled_first() {
    let mut ledger = ledger(64 * MIB);
    let small = ledger.lease(1, 64).unwrap().segment;
    let large = ledger.lease(2, 4 * MIB).unwrap().segment;
    let busy = ledger.lease(2, 8 * MIB).unwrap().segment;
    ledger.lease(3, 64).unwrap();
    ledger.occupy(2, busy, 0, 1).unwrap();
    assert_eq!(ledger.recallable(3).collect::<Vec<_>>(), [(2, large), (1, small)]);
}
