//! Copies into slots, used and unused, against a model in private memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use junctura_memory::{SealedSegment, SegmentMapping, SlotMut, WritableMapping};
use junctura_model::Code;
use proptest::prelude::*;

const SLOT: usize = 48 << 10;
const SLOTS: usize = 4;

#[derive(Clone, Debug)]
enum Step {
    Take { slot: usize, length: usize },
    Write { which: usize, at: usize, length: usize },
    Access { which: usize, at: usize },
    Shorten { which: usize, length: usize },
    Drop { which: usize },
}

fn step() -> impl Strategy<Value = Step> {
    let length = prop_oneof![0..SLOT, Just(16 << 10), Just(SLOT)];
    prop_oneof![
        3 => (0..SLOTS, length.clone()).prop_map(|(slot, length)| Step::Take { slot, length }),
        5 => (any::<usize>(), 0..SLOT, length.clone())
            .prop_map(|(which, at, length)| Step::Write { which, at: at & !7, length }),
        2 => (any::<usize>(), 0..SLOT).prop_map(|(which, at)| Step::Access { which, at }),
        1 => (any::<usize>(), length).prop_map(|(which, length)| Step::Shorten { which, length }),
        2 => any::<usize>().prop_map(|which| Step::Drop { which }),
    ]
}

fn segment() -> (SealedSegment, Arc<WritableMapping>, SegmentMapping) {
    let segment = SealedSegment::create((SLOT * SLOTS) as u64).unwrap();
    let copy = |fd: std::os::fd::BorrowedFd<'_>| fd.try_clone_to_owned().unwrap();
    let writer = SegmentMapping::writable(copy(segment.writable()), segment.bytes(), SLOT as u64).unwrap();
    let reader = SegmentMapping::readonly(copy(segment.readonly()), segment.bytes()).unwrap();
    (segment, Arc::new(writer), reader)
}

struct Model {
    writer: Arc<WritableMapping>,
    reader: SegmentMapping,
    expected: Vec<u8>,
    taken: BTreeMap<usize, SlotMut>,
    writes: u8,
}

/// Chooses one of the taken slots; returns where it begins, too.
fn choose(taken: &mut BTreeMap<usize, SlotMut>, which: usize) -> Option<(usize, &mut SlotMut)> {
    let place = which.checked_rem(taken.len())?;
    let (number, slot) = taken.iter_mut().nth(place)?;
    Some((number * SLOT, slot))
}

impl Model {
    fn run(&mut self, step: &Step) {
        self.writes = self.writes.wrapping_add(1);
        let value = self.writes;
        match *step {
            Step::Take { slot, length } => match self.writer.take(slot as u32, length as u64) {
                Ok(taken) => drop(self.taken.insert(slot, taken)),
                Err(error) => {
                    assert_eq!(error.code(), Code::Conflict);
                    assert!(self.taken.contains_key(&slot));
                }
            },
            Step::Write { which, at, length } => {
                let Some((start, slot)) = choose(&mut self.taken, which) else {
                    return;
                };
                let (bytes, fits) = (vec![value; length], at + length <= slot.len());
                let written = slot.write(at, &bytes);
                assert_eq!(written.is_ok(), fits);
                if fits {
                    assert_eq!(slot[at..at + length], bytes);
                    self.expected[start + at..][..length].copy_from_slice(&bytes);
                }
            }
            Step::Access { which, at } => {
                let Some((start, slot)) = choose(&mut self.taken, which) else {
                    return;
                };
                if let Some(byte) = slot.get_mut(at) {
                    *byte = value;
                    self.expected[start + at] = value;
                }
            }
            Step::Shorten { which, length } => {
                if let Some((_, slot)) = choose(&mut self.taken, which) {
                    slot.truncate(length);
                }
            }
            Step::Drop { which } => {
                if let Some((start, _)) = choose(&mut self.taken, which) {
                    self.taken.remove(&(start / SLOT));
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn a_consumer_reads_what_was_written_in_any_way(steps in prop::collection::vec(step(), 1..40)) {
        let (_segment, writer, reader) = segment();
        let (expected, taken) = (vec![0; SLOT * SLOTS], BTreeMap::new());
        let mut model = Model { writer, reader, expected, taken, writes: 0 };
        for step in &steps {
            model.run(step);
            prop_assert!(model.reader.slice(0, (SLOT * SLOTS) as u64).unwrap() == model.expected);
        }
    }
}

#[test]
fn a_write_to_an_unused_slot_makes_its_own_pages_and_access_makes_all() {
    let (segment, writer, _reader) = segment();
    let mut slot = writer.take(1, SLOT as u64).unwrap();
    assert_eq!(segment.resident_bytes().unwrap(), 0, "taking a slot takes no memory");
    slot.write(4096, &[1; 16 << 10]).unwrap();
    assert_eq!(segment.resident_bytes().unwrap(), 16 << 10);
    slot[0] = 1;
    assert_eq!(segment.resident_bytes().unwrap(), SLOT as u64);
}

#[test]
fn the_descriptor_is_closed_when_the_last_slot_was_filled() {
    let segment = SealedSegment::create((SLOT * SLOTS) as u64).unwrap();
    let inode = rustix::fs::fstat(segment.writable()).unwrap().st_ino;
    let open = || {
        let descriptors = std::fs::read_dir("/proc/self/fd").unwrap();
        let of = |entry: std::io::Result<std::fs::DirEntry>| std::fs::metadata(entry.unwrap().path()).ok();
        let inode_of = |meta: &std::fs::Metadata| std::os::unix::fs::MetadataExt::ino(meta);
        descriptors
            .filter_map(of)
            .filter(|meta| inode_of(meta) == inode)
            .count()
    };
    // Two of the server.
    assert_eq!(open(), 2);
    let given = segment.writable().try_clone_to_owned().unwrap();
    let writer = Arc::new(SegmentMapping::writable(given, segment.bytes(), SLOT as u64).unwrap());
    let slots: Vec<SlotMut> = (0..SLOTS as u32).map(|slot| writer.take(slot, 1).unwrap()).collect();
    assert_eq!(open(), 3);
    drop(slots);
    assert_eq!(open(), 2, "the map needs none");
    let given = segment.writable().try_clone_to_owned().unwrap();
    let small = SegmentMapping::writable(given, segment.bytes(), 8192).unwrap();
    assert_eq!(open(), 2, "small slots are copied to");
    drop(small);
}
