//! What snapshots may show of writers that flush and of others that remove: each is looked at by itself, and after those before it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use junctura_model::Result;
use junctura_store::{Listing, Snapshot, StoredObject};

/// Objects of a flush, besides its head and the one that all writers have.
pub(crate) const OBJECTS: u64 = 3;
/// Flushes that go into one data file before the next place's.
const AT_ONE_PLACE: u64 = 3;
const PLACES: u64 = 6;

/// One flush of one writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Flush {
    pub(crate) writer: u64,
    pub(crate) flush: u64,
}

impl fmt::Display for Flush {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.writer, self.flush)
    }
}

impl Flush {
    fn of(object: &StoredObject<'_>) -> Self {
        let of = text(object, "of").expect("of");
        let (writer, flush) = of.split_once(' ').expect("two numbers");
        let number = |text: &str| text.parse().expect("a number");
        Self {
            writer: number(writer),
            flush: number(flush),
        }
    }
}

/// Where the objects of a flush go: a data file for each place and writer.
pub(crate) fn place(flush: u64) -> String {
    let place = flush / AT_ONE_PLACE % PLACES;
    let kind = if is_wiped(flush) { "wiped" } else { "kept" };
    format!("{kind}-{place}")
}

/// Whether they may be wiped.
pub(crate) fn is_wiped(flush: u64) -> bool {
    !(flush / AT_ONE_PLACE).is_multiple_of(2)
}

/// Within the commit for some flushes, in a data file for others.
pub(crate) fn payload(flush: Flush, object: u64) -> Vec<u8> {
    let word = format!("{flush} {object} ");
    let length = if flush.flush.is_multiple_of(2) {
        40_000 * object
    } else {
        100
    };
    let mut bytes = word.repeat(length as usize / word.len() + 1).into_bytes();
    bytes.truncate(length as usize);
    bytes
}

/// What an object's bytes have to be.
pub(crate) fn bytes_of(object: &StoredObject<'_>) -> Vec<u8> {
    match text(object, "object") {
        Some(number) => payload(Flush::of(object), number.parse().expect("a number")),
        None => Flush::of(object).to_string().into_bytes(),
    }
}

fn text<'o>(object: &'o StoredObject<'_>, name: &str) -> Option<&'o str> {
    object.value(object.schema().find(name).expect("an attribute"))
}

/// Knows what was shown before.
pub(crate) struct Judge {
    flushes: u64,
    commit: u64,
    /// Of each writer the versions of its head that are there: the oldest, and the newest.
    heads: Vec<Option<(u64, u64)>>,
    /// Flushes that were wiped.
    gone: BTreeSet<Flush>,
}

/// What one snapshot shows.
#[derive(Default)]
struct Shown {
    heads: BTreeMap<u64, Vec<u64>>,
    /// Objects of each flush that are there.
    counts: BTreeMap<Flush, u64>,
}

impl Judge {
    pub(crate) fn new(writers: u64, flushes: u64) -> Self {
        Self {
            flushes,
            commit: 0,
            heads: vec![None; writers as usize],
            gone: BTreeSet::new(),
        }
    }

    /// Whether all flushes have been shown.
    pub(crate) fn is_complete(&self) -> bool {
        let is_last = |head: &Option<(u64, u64)>| head.is_some_and(|(_, newest)| newest + 1 == self.flushes);
        self.heads.iter().all(is_last)
    }

    /// Looks at a snapshot that was taken behind those before it, and gives the newest versions.
    ///
    /// # Errors
    /// `Expired`, and nothing else.
    pub(crate) fn look(&mut self, snapshot: &Snapshot) -> Result<Listing> {
        let all = snapshot.list_all("")?;
        let newest = snapshot.list("")?;
        assert!(snapshot.commit() >= self.commit, "backwards");
        self.commit = snapshot.commit();
        let mut shown = Shown::default();
        for object in &all {
            let flush = Flush::of(&object);
            match text(&object, "place").expect("a place") {
                "heads" => shown.heads.entry(flush.writer).or_default().push(flush.flush),
                "last" => {}
                _ => *shown.counts.entry(flush).or_default() += 1,
            }
        }
        for writer in 0..self.heads.len() as u64 {
            self.look_at(writer, &shown);
        }
        check_last(&newest);
        let masked: u64 = shown.heads.values().map(|versions| versions.len() as u64 - 1).sum();
        let lasts = snapshot.list_all("place=last")?.len() as u64;
        assert_eq!(all.len() as u64 - newest.len() as u64, masked + lasts.saturating_sub(1));
        Ok(newest)
    }

    /// All flushes up to that of its head, each whole or, where that may be, wiped.
    fn look_at(&mut self, writer: u64, shown: &Shown) {
        let versions = shown.heads.get(&writer).map_or(&[][..], Vec::as_slice);
        let ends = versions.first().copied().zip(versions.last().copied());
        if let (Some((oldest, newest)), Some((oldest_before, newest_before))) = (ends, self.heads[writer as usize]) {
            assert!(
                oldest >= oldest_before && newest >= newest_before,
                "{writer}: backwards"
            );
        }
        assert!(ends >= self.heads[writer as usize], "{writer}: backwards");
        self.heads[writer as usize] = ends;
        let end = ends.map_or(0, |(oldest, newest)| {
            assert!(versions.iter().copied().eq(oldest..=newest), "{writer}: {versions:?}");
            newest + 1
        });
        for flush in (0..end).map(|flush| Flush { writer, flush }) {
            match shown.counts.get(&flush).copied().unwrap_or_default() {
                OBJECTS => assert!(!self.gone.contains(&flush), "{flush} was wiped, and is there again"),
                0 if is_wiped(flush.flush) => _ = self.gone.insert(flush),
                count => panic!("{flush}: {count} of its objects"),
            }
        }
        let behind = Flush { writer, flush: end }..Flush {
            writer: writer + 1,
            flush: 0,
        };
        assert_eq!(shown.counts.range(behind).next(), None, "behind the head");
    }
}

/// The object that all writers mask came with the last of all flushes.
fn check_last(newest: &Listing) {
    let of = |place: &str| -> Vec<(u64, Flush)> {
        let objects = newest.iter().filter(|object| text(object, "place") == Some(place));
        objects.map(|object| (object.commit(), Flush::of(&object))).collect()
    };
    assert_eq!(of("last").first(), of("heads").iter().max());
}
