//! Zero-copy access to the bytes of objects: their files are mapped.

use std::ops::{Deref, Range};
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread;

use junctura_memory::FileMap;
use junctura_model::Result;

use crate::query::listing::{Listing, StoredObject};

/// A thread verifies fewer bytes than this alone.
const SHARE_BYTES_MIN: u64 = 4 << 20;

/// The bytes of an object, mapped from its file, or read if the file cannot be mapped.
#[derive(Debug)]
pub struct MappedPayload(MappedBytes);

#[derive(Debug)]
enum MappedBytes {
    Map(Arc<FileMap>, Range<u64>),
    Read(Vec<u8>),
}

impl MappedPayload {
    /// Returns whether the bytes are mapped, without a copy.
    #[must_use]
    pub fn is_mapped(&self) -> bool {
        matches!(self.0, MappedBytes::Map(..))
    }
}

impl Deref for MappedPayload {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            // The range was looked at when it was made.
            MappedBytes::Map(map, range) => map.slice(range.start, range.end - range.start).unwrap_or_default(),
            MappedBytes::Read(bytes) => bytes,
        }
    }
}

impl StoredObject<'_> {
    /// Maps its bytes, without a copy if the file is on a local file system. The bytes are verified by the checksum, as
    /// [`Self::read`] does. Packed objects, and objects on other storage, are read. The map covers the file and is
    /// shared by all of its mapped objects. The store keeps the map for later calls, which are several times as fast:
    /// the system enters a page into the map at its first access.
    ///
    /// A disk failure during an access kills the process, while a read would return an error; so does truncation of the
    /// file by another program (this library never truncates committed data).
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn map(&self) -> Result<MappedPayload> {
        let mapped = self.map_verified();
        self.snapshot().check_age()?;
        mapped
    }

    fn map_verified(&self) -> Result<MappedPayload> {
        let Some((map, range)) = self.place_in_map()? else {
            return Ok(MappedPayload(MappedBytes::Read(self.read()?)));
        };
        let mapped = MappedPayload(MappedBytes::Map(map, range));
        self.verify(&mapped)?;
        Ok(mapped)
    }
}

impl Listing {
    /// The bytes of each object, in the order of the listing, as [`StoredObject::map`] shows them. Of many, all cores verify some: a page
    /// is entered into the map when it is first looked at, and that takes as long as looking at it.
    ///
    /// Takes the address space of each file that an object is in, and memory for what cannot be mapped; with
    /// [`Self::for_each_payload`] only a few objects are in memory at a time.
    ///
    /// # Errors
    /// Those of [`StoredObject::map`], for the first object that has one.
    pub fn map(&self) -> Result<Vec<MappedPayload>> {
        let objects: Vec<StoredObject<'_>> = self.iter().collect();
        let shares = shares(&objects, thread::available_parallelism().map_or(1, usize::from));
        let Some((last, others)) = shares.split_last() else {
            return Ok(Vec::new());
        };
        thread::scope(|scope| {
            let start = |&share| thread::Builder::new().spawn_scoped(scope, move || map_each(share));
            let threads: Vec<_> = others.iter().map(start).collect();
            let last = map_each(last);
            let mut all = Vec::with_capacity(objects.len());
            for (thread, share) in threads.into_iter().zip(others) {
                all.extend(match thread {
                    Ok(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic))?,
                    // The system gives no more threads.
                    Err(_) => map_each(share)?,
                });
            }
            all.extend(last?);
            Ok(all)
        })
    }
}

fn map_each(objects: &[StoredObject<'_>]) -> Result<Vec<MappedPayload>> {
    objects.iter().map(StoredObject::map).collect()
}

/// Splits objects into at most so many consecutive parts of about equal size; at least one.
fn shares<'o, 'l>(objects: &'o [StoredObject<'l>], count_max: usize) -> Vec<&'o [StoredObject<'l>]> {
    let total: u64 = objects.iter().map(StoredObject::bytes).sum();
    let share = (total / count_max.max(1) as u64).max(SHARE_BYTES_MIN);
    let (mut found, mut left) = (Vec::new(), objects);
    while found.len() + 1 < count_max {
        let mut bytes = 0;
        let is_in = |object: &&StoredObject<'_>| {
            bytes += object.bytes();
            bytes <= share
        };
        let (one, others) = left.split_at(left.iter().take_while(is_in).count().max(1).min(left.len()));
        if others.is_empty() {
            break;
        }
        found.push(one);
        left = others;
    }
    found.push(left);
    found
}

#[cfg(test)]
mod tests {
    use junctura_model::Schema;

    use super::*;
    use crate::{Store, StoreLayout};

    fn listing(sizes: &[usize]) -> Listing {
        let schema = Schema::builtin("free").unwrap();
        let store = Store::create_url("memory:", &[schema], &StoreLayout::default()).unwrap();
        let mut writer = store.writer().unwrap();
        for (number, &size) in sizes.iter().enumerate() {
            let payload = vec![number as u8; size];
            writer
                .archive([("name", format!("{number:03}").as_str())], &payload)
                .unwrap();
        }
        writer.flush().unwrap();
        store.snapshot().unwrap().list("").unwrap()
    }

    fn lengths(sizes: &[usize], count_max: usize) -> Vec<usize> {
        let listing = listing(sizes);
        let objects: Vec<_> = listing.iter().collect();
        shares(&objects, count_max).iter().map(|share| share.len()).collect()
    }

    #[test]
    fn few_bytes_are_one_share() {
        assert_eq!(lengths(&[], 4), [0]);
        assert_eq!(lengths(&[10, 0, 10], 4), [3]);
        assert_eq!(lengths(&[3 << 20, 3 << 20, 3 << 20], 1), [3]);
    }

    #[test]
    fn shares_have_about_as_many_bytes_and_all_objects() {
        assert_eq!(lengths(&[3 << 20; 4], 2), [2, 2]);
        assert_eq!(lengths(&[9 << 20, 1, 1, 1], 4), [1, 3]);
        assert_eq!(lengths(&[1, 1, 1, 9 << 20], 4), [3, 1]);
        assert_eq!(lengths(&[5 << 20; 7], 3), [2, 2, 3]);
    }

    #[test]
    fn all_objects_come_in_their_order() {
        let sizes = [3 << 20, 0, 2 << 20, 7, 6 << 20, 5 << 20];
        let all = listing(&sizes).map().unwrap();
        assert_eq!(all.len(), sizes.len());
        for (number, (mapped, size)) in all.iter().zip(sizes).enumerate() {
            assert!(mapped.len() == size && mapped.iter().all(|&byte| byte == number as u8));
        }
    }
}
