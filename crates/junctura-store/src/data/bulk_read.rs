//! Bulk reads of many objects: adjacent objects are read at once, and several reads run in parallel.

use std::collections::BTreeMap;
use std::iter::Peekable;
use std::ops::Range;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use junctura_model::{Code, Error, Result};

use crate::data::buffer::ReadBuffer;
use crate::data::read_exact;
use crate::query::listing::{Listing, StoredObject};

/// Maximum number of bytes in a read of several objects; their number is limited, too.
const READ_BYTES_MAX: u64 = 4 << 20;
const READ_OBJECTS_MAX: usize = 4096;
/// The same limit after unpacking.
const UNPACKED_BYTES_MAX: u64 = 4 * READ_BYTES_MAX;
/// Maximum gap between two objects in one read.
const GAP_BYTES_MAX: u64 = 64 << 10;
/// Maximum number of bytes that are read ahead.
const AHEAD_BYTES_MAX: u64 = 256 << 20;
/// Completed and running reads, as a multiple of the parallel reads.
const AHEAD: usize = 2;

impl Listing {
    /// Passes each object with its verified payload, or with an error, in the order of the listing. Blocks until the
    /// last object. Adjacent objects are read at once, and several reads run in parallel, on threads that end with this
    /// call; each reads a few megabytes, or one larger object. Faster than single reads, in particular from remote
    /// storage. The payload is borrowed for the call of `take`.
    ///
    /// ```
    /// # use junctura_model::Schema;
    /// # use junctura_store::{StoreLayout, Store};
    /// # fn main() -> junctura_model::Result<()> {
    /// # let store = Store::create_url("memory:", &[Schema::builtin("free").unwrap()], &StoreLayout::default())?;
    /// # let mut writer = store.writer()?;
    /// # writer.archive([("name", "a")], b"one")?;
    /// # writer.archive([("name", "b")], b"other")?;
    /// # writer.flush()?;
    /// let mut all = Vec::new();
    /// store.snapshot()?.list("")?.for_each_payload(|object, payload| {
    ///     all.push(format!("{}: {} bytes", object.key(), payload?.len()));
    ///     Ok(())
    /// })?;
    /// assert_eq!(all[1], "{space=default}{}{name=b}: 5 bytes");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Errors of `take`, which end the call. For a single object: those of [`StoredObject::read`].
    pub fn for_each_payload(&self, take: impl FnMut(StoredObject<'_>, Result<&[u8]>) -> Result<()>) -> Result<()> {
        for_each_payload(self.iter(), self.reads_at_once(), ByteRange::Archived, take)
    }

    /// As [`Self::for_each_payload`], for some of the objects, in this order. Objects that are adjacent in their file
    /// should be adjacent in this order.
    ///
    /// ```
    /// # use junctura_model::Schema;
    /// # use junctura_store::{StoreLayout, StoredObject, Store};
    /// # fn main() -> junctura_model::Result<()> {
    /// # let store = Store::create_url("memory:", &[Schema::builtin("free").unwrap()], &StoreLayout::default())?;
    /// # let mut writer = store.writer()?;
    /// # for name in ["a", "b", "c"] {
    /// #     writer.archive([("name", name)], name.as_bytes())?;
    /// # }
    /// # writer.flush()?;
    /// let listing = store.snapshot()?.list("")?;
    /// let mut last: Vec<StoredObject<'_>> = listing.iter().skip(1).collect();
    /// last.reverse();
    /// let mut all = Vec::new();
    /// listing.for_each_payload_of(&last, |_, payload| {
    ///     all.extend_from_slice(payload?);
    ///     Ok(())
    /// })?;
    /// assert_eq!(all, b"cb");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Self::for_each_payload`].
    pub fn for_each_payload_of(
        &self,
        objects: &[StoredObject<'_>],
        take: impl FnMut(StoredObject<'_>, Result<&[u8]>) -> Result<()>,
    ) -> Result<()> {
        for_each_payload(objects.iter().copied(), self.reads_at_once(), ByteRange::Archived, take)
    }
}

/// The requested bytes of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ByteRange {
    /// The bytes that were archived.
    Archived,
    /// The stored bytes, which may be packed. They are verified all the same.
    Stored,
    /// None: the bytes are only verified, piece by piece for large objects.
    None,
}

/// As [`Listing::for_each_payload`], for some objects, with so many parallel reads.
///
/// # Errors
/// As [`Listing::for_each_payload`].
pub(crate) fn for_each_payload<'a>(
    objects: impl Iterator<Item = StoredObject<'a>> + Clone + Send,
    reads_at_once: usize,
    which: ByteRange,
    mut take: impl FnMut(StoredObject<'_>, Result<&[u8]>) -> Result<()>,
) -> Result<()> {
    let mut runs = ReadRuns(objects.peekable());
    if reads_at_once == 1 || !runs.are_several() {
        let mut buffer = ReadBuffer::new();
        for run in &mut runs {
            buffer = ObjectRead::of(run, which, buffer).hand_over(&mut take)?;
        }
        return Ok(());
    }
    let queue = ReadQueue::new(runs, which, AHEAD * reads_at_once);
    std::thread::scope(|scope| {
        // Ends all waits in any case.
        let _end = EndOnDrop(&queue);
        let begun = (0..reads_at_once).map(|_| std::thread::Builder::new().spawn_scoped(scope, || queue.work()));
        if begun.flatten().count() == 0 {
            let cause = "the system gives no thread to read with";
            return Err(Error::new(Code::LimitExceeded, "listing", cause));
        }
        while let Some(read) = queue.next() {
            let buffer = read.hand_over(&mut take)?;
            queue.give_back(buffer);
        }
        Ok(())
    })
}

/// Groups objects, in order, into adjacent runs.
struct ReadRuns<'a, I: Iterator<Item = StoredObject<'a>>>(Peekable<I>);

impl<'a, I: Iterator<Item = StoredObject<'a>> + Clone> ReadRuns<'a, I> {
    /// Returns whether more than one read is needed.
    fn are_several(&self) -> bool {
        let mut runs = ReadRuns(self.0.clone());
        runs.next();
        runs.next().is_some()
    }
}

impl<'a, I: Iterator<Item = StoredObject<'a>>> Iterator for ReadRuns<'a, I> {
    type Item = Vec<StoredObject<'a>>;

    fn next(&mut self) -> Option<Vec<StoredObject<'a>>> {
        let first = self.0.next()?;
        let (start, mut end) = (first.place().offset, first.place().offset + first.place().length);
        let mut run = vec![first];
        let mut unpacked = first.bytes();
        while run.len() < READ_OBJECTS_MAX {
            let next = self.0.next_if(|next| {
                let place = next.place();
                if unpacked.saturating_add(place.object_length()) > UNPACKED_BYTES_MAX {
                    return false;
                }
                let gap = place.offset.checked_sub(end);
                gap.is_some_and(|gap| gap <= GAP_BYTES_MAX)
                    && place.offset + place.length - start <= READ_BYTES_MAX
                    && next.file_name() == first.file_name()
            });
            let Some(next) = next else { break };
            end = next.place().offset + next.place().length;
            unpacked += next.bytes();
            run.push(next);
        }
        Some(run)
    }
}

/// Objects, and their bytes.
struct ObjectRead<'a> {
    bytes: u64,
    objects: Vec<(StoredObject<'a>, Result<ReadObject>)>,
    /// The bytes that were read.
    buffer: ReadBuffer,
}

/// The bytes of one object.
enum ReadObject {
    /// The bytes in the buffer.
    Read(Range<usize>),
    Unpacked(Vec<u8>),
}

impl<'a> ObjectRead<'a> {
    fn of(run: Vec<StoredObject<'a>>, which: ByteRange, mut buffer: ReadBuffer) -> Self {
        let bytes = bytes_of(&run);
        if let (ByteRange::None, [object]) = (which, &run[..])
            && object.place().length > READ_BYTES_MAX
        {
            let age = object.snapshot().check_age();
            let found = object.verify_stored().and(age).map(|()| ReadObject::Read(0..0));
            let objects = vec![(*object, found)];
            return Self { bytes, objects, buffer };
        }
        let read = read_run(&run, &mut buffer);
        let age = run.first().map_or(Ok(()), |object| object.snapshot().check_age());
        let objects = match (age, read) {
            // Reads of an expired snapshot are undefined; the age is the error to report.
            (Err(expired), _) => run.into_iter().map(|object| (object, Err(expired.clone()))).collect(),
            (Ok(()), Some(ranges)) => {
                let verified = |(object, range): (StoredObject<'a>, Range<usize>)| {
                    (object, verified(&object, &buffer[range.clone()], range, which))
                };
                run.into_iter().zip(ranges).map(verified).collect()
            }
            (Ok(()), None) => read_each(run, which, &mut buffer),
        };
        Self { bytes, objects, buffer }
    }

    /// Returns the buffer.
    fn hand_over(self, take: &mut impl FnMut(StoredObject<'_>, Result<&[u8]>) -> Result<()>) -> Result<ReadBuffer> {
        for (object, bytes) in self.objects {
            match bytes {
                Ok(ReadObject::Read(range)) => take(object, Ok(&self.buffer[range]))?,
                Ok(ReadObject::Unpacked(bytes)) => take(object, Ok(&bytes))?,
                Err(error) => take(object, Err(error))?,
            }
        }
        Ok(self.buffer)
    }
}

/// Verifies the bytes of an object in this range of the buffer, and unpacks them if requested.
fn verified(object: &StoredObject<'_>, read: &[u8], range: Range<usize>, which: ByteRange) -> Result<ReadObject> {
    if object.place().packed.is_none() {
        return object.verify(read).map(|()| ReadObject::Read(range));
    }
    match which {
        ByteRange::Archived => object.unpacked(read).map(ReadObject::Unpacked),
        ByteRange::Stored | ByteRange::None => object.verify_packed(read).map(|()| ReadObject::Read(range)),
    }
}

/// Returns the range of each object in the buffer, if one read succeeded for all.
fn read_run(run: &[StoredObject<'_>], buffer: &mut ReadBuffer) -> Option<Vec<Range<usize>>> {
    let (first, last) = (run.first()?.place(), run.last()?.place());
    let length = usize::try_from(last.offset + last.length - first.offset).ok()?;
    if length > 0 {
        // No memory is reserved for a file that is too short.
        let (file, name) = run.last()?.file().ok()?;
        read_exact(&*file, name, buffer.room(length).ok()?, first.offset).ok()?;
    } else {
        buffer.room(0).ok()?;
    }
    let range = |object: &StoredObject<'_>| {
        let place = object.place();
        let start = (place.offset - first.offset) as usize;
        start..start + place.length as usize
    };
    Some(run.iter().map(range).collect())
}

/// Reads the objects one by one, to get an error for each.
fn read_each<'a>(
    run: Vec<StoredObject<'a>>,
    which: ByteRange,
    buffer: &mut ReadBuffer,
) -> Vec<(StoredObject<'a>, Result<ReadObject>)> {
    buffer.clear();
    let read = |object: StoredObject<'a>| {
        let start = buffer.len();
        // An empty object may have no file.
        let read = match object.place().length {
            0 => Ok(()),
            _ => object.read_stored(|length| buffer.more_room(length)).map(|_| ()),
        };
        let range = start..buffer.len();
        let found = read.and_then(|()| verified(&object, &buffer[range.clone()], range, which));
        (object, found)
    };
    run.into_iter().map(read).collect()
}

/// A queue of reads from the reading threads to the caller, in order.
struct ReadQueue<'a, I: Iterator<Item = StoredObject<'a>>> {
    state: Mutex<ReadState<'a, I>>,
    which: ByteRange,
    ahead_max: usize,
    done: Condvar,
    room: Condvar,
}

struct ReadState<'a, I: Iterator<Item = StoredObject<'a>>> {
    runs: ReadRuns<'a, I>,
    begun: usize,
    read: BTreeMap<usize, ObjectRead<'a>>,
    taken: usize,
    /// Bytes of reads that were started and not taken.
    ahead_bytes: u64,
    is_over: bool,
    has_panicked: bool,
    spare: Vec<ReadBuffer>,
}

impl<'a, I: Iterator<Item = StoredObject<'a>>> ReadQueue<'a, I> {
    fn new(runs: ReadRuns<'a, I>, which: ByteRange, ahead_max: usize) -> Self {
        Self {
            state: Mutex::new(ReadState {
                runs,
                begun: 0,
                read: BTreeMap::new(),
                taken: 0,
                ahead_bytes: 0,
                is_over: false,
                has_panicked: false,
                spare: Vec::new(),
            }),
            which,
            ahead_max,
            done: Condvar::new(),
            room: Condvar::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, ReadState<'a, I>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads until nothing is left, or the caller has ended.
    fn work(&self) {
        let _end = EndOfPanic(self);
        loop {
            let mut state = self.state();
            while !state.is_over && state.is_ahead(self.ahead_max) {
                state = self.room.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            let run = if state.is_over { None } else { state.runs.next() };
            let Some(run) = run else {
                state.is_over = true;
                self.done.notify_one();
                return;
            };
            let (number, buffer) = (state.begun, state.spare.pop().unwrap_or_default());
            state.begun += 1;
            state.ahead_bytes = state.ahead_bytes.saturating_add(bytes_of(&run));
            drop(state);
            let read = ObjectRead::of(run, self.which, buffer);
            self.state().read.insert(number, read);
            self.done.notify_one();
        }
    }

    /// Returns the next read; `None` after the last one.
    fn next(&self) -> Option<ObjectRead<'a>> {
        let mut state = self.state();
        loop {
            let number = state.taken;
            if let Some(read) = state.read.remove(&number) {
                state.taken += 1;
                state.ahead_bytes = state.ahead_bytes.saturating_sub(read.bytes);
                self.room.notify_one();
                return Some(read);
            }
            if state.is_over && (state.begun == state.taken || state.has_panicked) {
                return None;
            }
            state = self.done.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn give_back(&self, buffer: ReadBuffer) {
        if buffer.len() as u64 <= READ_BYTES_MAX {
            self.state().spare.push(buffer);
        }
    }
}

impl<'a, I: Iterator<Item = StoredObject<'a>>> ReadState<'a, I> {
    fn is_ahead(&self, ahead_max: usize) -> bool {
        let ahead = self.begun - self.taken;
        ahead >= ahead_max || ahead > 0 && self.ahead_bytes >= AHEAD_BYTES_MAX
    }
}

/// Returns the bytes of a read, including gaps and unpacked bytes.
fn bytes_of(run: &[StoredObject<'_>]) -> u64 {
    let (Some(first), Some(last)) = (run.first(), run.last()) else {
        return 0;
    };
    let read = last.place().offset + last.place().length - first.place().offset;
    let unpacked = |object: &StoredObject<'_>| Some(object.place().packed?.length);
    run.iter().filter_map(unpacked).fold(read, u64::saturating_add)
}

/// Ends the work on drop.
struct EndOnDrop<'q, 'a, I: Iterator<Item = StoredObject<'a>>>(&'q ReadQueue<'a, I>);

impl<'a, I: Iterator<Item = StoredObject<'a>>> Drop for EndOnDrop<'_, 'a, I> {
    fn drop(&mut self) {
        self.0.state().is_over = true;
        self.0.room.notify_all();
    }
}

/// Ends the waits of other threads if one panics; the scope propagates the panic.
struct EndOfPanic<'q, 'a, I: Iterator<Item = StoredObject<'a>>>(&'q ReadQueue<'a, I>);

impl<'a, I: Iterator<Item = StoredObject<'a>>> Drop for EndOfPanic<'_, 'a, I> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.state().has_panicked = true;
            self.0.state().is_over = true;
            self.0.done.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use junctura_model::Schema;
    use junctura_model::selector::testing::TestRandom;

    use super::*;
    use crate::root::StoreRoot;
    use crate::storage::{MemoryDisk, StorageDisk};
    use crate::{Commits, Store, StoreLayout};

    /// Creates objects of several datasets, adjacent and not, empty ones and large ones.
    fn filled(random: &mut TestRandom) -> (Arc<dyn StorageDisk>, Listing) {
        let disk: Arc<dyn StorageDisk> = Arc::new(MemoryDisk::default());
        let schemas = [Schema::builtin("free").unwrap()];
        StoreRoot::create(&*disk, &schemas, Commits::Appended, &StoreLayout::default()).unwrap();
        let store = Store::open_on(Arc::clone(&disk), || std::time::Duration::ZERO).unwrap();
        let mut writer = store.writer().unwrap();
        for number in 0..400 {
            let bytes = match random.below(100) {
                0 => READ_BYTES_MAX as usize + random.below(1000),
                1..=9 => 0,
                _ => random.below(100_000),
            };
            let payload = vec![number as u8; bytes];
            let space = ["a", "b", "c"][random.below(3)];
            let name = number.to_string();
            writer.archive([("space", space), ("name", &name)], &payload).unwrap();
            if random.below(50) == 0 {
                writer.flush().unwrap();
            }
        }
        writer.flush().unwrap();
        let listing = store.snapshot().unwrap().list("").unwrap();
        (disk, listing)
    }

    fn indices(listing: &Listing, reads_at_once: usize) -> Vec<(usize, std::result::Result<(), Code>)> {
        let mut found = Vec::new();
        for_each_payload(listing.iter(), reads_at_once, ByteRange::Archived, |object, payload| {
            let is_right = |payload: &[u8]| assert!(payload == object.read().unwrap(), "{}", object.key());
            found.push((object.index(), payload.map(is_right).map_err(|error| error.code())));
            Ok(())
        })
        .unwrap();
        found
    }

    #[test]
    fn each_comes_once_and_in_order() {
        for seed in 0..3 {
            let (_, listing) = filled(&mut TestRandom(seed));
            for reads_at_once in [1, 2, 5] {
                let expected: Vec<_> = (0..listing.len()).map(|index| (index, Ok(()))).collect();
                assert_eq!(indices(&listing, reads_at_once), expected);
            }
        }
    }

    #[test]
    fn what_is_damaged_is_told_of_each_and_of_no_other() {
        let (disk, listing) = filled(&mut TestRandom(7));
        let mut large = listing.iter().filter(|object| object.bytes() > 50_000);
        let changed = large.next().unwrap();
        let gone = large.find(|object| object.file_name() != changed.file_name()).unwrap();
        let file = disk.open(changed.file_name()).unwrap();
        file.write_at(b"x", changed.location().offset + 1).unwrap();
        disk.remove(gone.file_name()).unwrap();
        for reads_at_once in [1, 3] {
            for (index, found) in indices(&listing, reads_at_once) {
                let object = listing.get(index).unwrap();
                let is_gone = object.file_name() == gone.file_name() && object.bytes() > 0;
                let is_damaged = is_gone || index == changed.index();
                assert_eq!(found, if is_damaged { Err(Code::Corrupt) } else { Ok(()) }, "{index}");
            }
        }
    }

    #[test]
    fn who_takes_them_may_end_it() {
        let (_, listing) = filled(&mut TestRandom(8));
        for reads_at_once in [1, 4] {
            let mut left = 100;
            let ended = for_each_payload(listing.iter(), reads_at_once, ByteRange::Archived, |_, _| {
                left -= 1;
                let error = Error::new(Code::Interrupted, "test", "it was enough");
                if left == 0 { Err(error) } else { Ok(()) }
            });
            assert_eq!(ended.unwrap_err().code(), Code::Interrupted);
            let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                for_each_payload(listing.iter(), reads_at_once, ByteRange::Archived, |_, _| {
                    panic!("of who takes it")
                })
            }));
            assert!(panicked.is_err());
        }
    }
}
