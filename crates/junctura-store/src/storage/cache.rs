//! A read cache on a fast local disk in front of slower storage.
//!
//! ```text
//! FOLDER/junctura-store/PLACE/FILE/length     how long a file is that never changes, or at least is
//! FOLDER/junctura-store/PLACE/FILE/NUMBER     one of its blocks of a mebibyte, or its beginning, and behind it what that has to be
//! ```
//!
//! The cache stores blocks of data files and segments, whose bytes never change once they are named. In a data file
//! that is still appended to, as in a folder, only committed bytes never change: the bytes after those may be half
//! written by another writer, or rewritten after an error. Of such a file, only bytes that are known to be committed
//! when it is opened are cached ([`StorageDisk::open_committed`]). Each block is written under a temporary name and
//! renamed; a block with a checksum mismatch is ignored. Several processes may share a folder, and any process or user
//! may remove files from it at any time. If the folder is not writable, reads bypass the cache.

use std::fs;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};

use junctura_model::Result;
use xxhash_rust::xxh3::xxh3_128;

use super::{FileDraft, FolderWatch, StorageDisk, StorageFile, UnfinishedFile, read_full};

const BLOCK_BYTES: u64 = 1 << 20;
/// Behind each block.
const CHECKSUM_BYTES: usize = 4;
/// A block that was used is not noted as used again for so long.
const NOTED_FOR: Duration = Duration::from_mins(1);
/// A process looks how much there is when it has added so much of what there may be.
const LOOK_PARTS: u64 = 32;
/// When there is too much, so much of what there may be is left.
const LEFT_PERCENT: u64 = 90;

/// See the module.
#[derive(Debug)]
pub(crate) struct CacheDisk {
    slow: Arc<dyn StorageDisk>,
    room: Arc<CacheRoom>,
}

/// The part of a cache that belongs to one place.
#[derive(Debug)]
struct CacheRoom {
    /// That of all places.
    cache: PathBuf,
    folder: PathBuf,
    bytes_max: u64,
    /// Bytes that were added since the last check of the size.
    added: AtomicU64,
}

#[derive(Debug)]
struct CachedFile {
    path: String,
    disk: Arc<dyn StorageDisk>,
    /// The file in the slower place, when it was needed.
    slow: OnceLock<Arc<dyn StorageFile>>,
    room: Arc<CacheRoom>,
    folder: PathBuf,
    /// How long it is, where that does not change.
    length: Option<u64>,
    /// Up to here its bytes stay what they are.
    fixed: u64,
    /// How long it is at least, where it grows.
    least: u64,
    /// The block that was read last, for small sequential reads.
    last: Mutex<Option<(u64, Arc<[u8]>)>>,
}

impl CacheDisk {
    /// With no more than about so many bytes below `folder`, which is made when it is needed.
    pub(crate) fn new(slow: Arc<dyn StorageDisk>, folder: &Path, bytes_max: u64) -> Self {
        let cache = folder.join("junctura-store");
        let room = CacheRoom {
            folder: cache.join(named(&slow.uri(""))),
            cache,
            bytes_max,
            // The existing size is determined first.
            added: AtomicU64::new(bytes_max),
        };
        Self {
            slow,
            room: Arc::new(room),
        }
    }
}

fn named(text: &str) -> String {
    format!("{:032x}", xxh3_128(text.as_bytes()))
}

/// Whether a file's bytes stay what they are, as far as there are any.
fn is_kept(path: &str) -> bool {
    let is_of_tier = path.strip_prefix("tiers/").is_some_and(|rest| rest.contains('/'));
    path.starts_with("data/") || is_segment(path) || is_of_tier
}

/// It is written once, and named afterwards.
fn is_segment(path: &str) -> bool {
    path.starts_with("segments/")
}

impl StorageDisk for CacheDisk {
    fn open(&self, path: &str) -> io::Result<Arc<dyn StorageFile>> {
        self.open_committed(path, 0)
    }

    fn open_committed(&self, path: &str, end: u64) -> io::Result<Arc<dyn StorageFile>> {
        if !is_kept(path) {
            return self.slow.open(path);
        }
        let folder = self.room.folder.join(named(path));
        let grows = self.slow.grows(path) && !is_segment(path);
        let is_enough = |&bytes: &u64| !grows || end > 0 && bytes >= end;
        let known = kept_length(&folder).filter(is_enough);
        let mut file = CachedFile {
            path: path.to_owned(),
            disk: Arc::clone(&self.slow),
            slow: OnceLock::new(),
            room: Arc::clone(&self.room),
            folder,
            length: None,
            fixed: end,
            least: 0,
            last: Mutex::default(),
        };
        let bytes = match known {
            Some(bytes) => bytes,
            None => file.ask_length()?,
        };
        if !grows {
            (file.length, file.fixed) = (Some(bytes), bytes);
        } else if end > 0 {
            // A caller without a committed length may need the current length.
            file.least = bytes;
        }
        Ok(Arc::new(file))
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        self.slow.remove(path)?;
        // The file is not read any more; the rest is evicted when the cache is full.
        let _ = fs::remove_dir_all(self.room.folder.join(named(path)));
        Ok(())
    }

    fn probe(&self, is_exclusive: bool) -> Result<()> {
        self.slow.probe(is_exclusive)
    }

    fn create(&self, path: &str) -> io::Result<Arc<dyn StorageFile>> {
        self.slow.create(path)
    }

    fn stage(&self, draft: &FileDraft) -> io::Result<()> {
        self.slow.stage(draft)
    }

    fn publish(&self, draft: &FileDraft, to: &str) -> io::Result<()> {
        self.slow.publish(draft, to)
    }

    fn discard(&self, draft: &FileDraft) {
        self.slow.discard(draft);
    }

    fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        self.slow.list(folder)
    }

    fn list_after(&self, folder: &str, name: &str) -> io::Result<Vec<String>> {
        self.slow.list_after(folder, name)
    }

    fn read(&self, path: &str, bytes_max: u64) -> io::Result<Vec<u8>> {
        self.slow.read(path, bytes_max)
    }

    fn ahead(&self, folder: &str, name: &str, bytes_max: u64) -> io::Result<Vec<(String, Vec<u8>)>> {
        self.slow.ahead(folder, name, bytes_max)
    }

    fn grows(&self, path: &str) -> bool {
        self.slow.grows(path)
    }

    fn len(&self, path: &str) -> io::Result<u64> {
        self.slow.len(path)
    }

    fn modified(&self, path: &str) -> io::Result<Duration> {
        self.slow.modified(path)
    }

    fn uri(&self, path: &str) -> String {
        self.slow.uri(path)
    }

    fn address(&self) -> String {
        self.slow.address()
    }

    fn is_at(&self, uri: &str) -> bool {
        self.slow.is_at(uri)
    }

    fn identity(&self, path: &str) -> Option<String> {
        self.slow.identity(path)
    }

    fn links(&self, folder: &str) -> io::Result<Vec<String>> {
        self.slow.links(folder)
    }

    fn check_way(&self, path: &str) -> io::Result<bool> {
        self.slow.check_way(path)
    }

    fn store_above(&self, folder: &str) -> Option<String> {
        self.slow.store_above(folder)
    }

    fn replace(&self, draft: &FileDraft, to: &str) -> io::Result<()> {
        self.slow.replace(draft, to)
    }

    fn unfinished(&self, folder: &str) -> io::Result<Vec<UnfinishedFile>> {
        self.slow.unfinished(folder)
    }

    fn end_unfinished(&self, one: &UnfinishedFile) -> io::Result<()> {
        self.slow.end_unfinished(one)
    }

    fn reads_at_once(&self, path: &str) -> usize {
        self.slow.reads_at_once(path)
    }

    fn watch(&self, folder: &str) -> Box<dyn FolderWatch> {
        self.slow.watch(folder)
    }

    fn sync_names(&self, folder: &str) -> io::Result<()> {
        self.slow.sync_names(folder)
    }
}

impl CachedFile {
    fn slow(&self) -> io::Result<&Arc<dyn StorageFile>> {
        if let Some(file) = self.slow.get() {
            return Ok(file);
        }
        let file = self.disk.open(&self.path)?;
        Ok(self.slow.get_or_init(|| file))
    }

    /// How long it is in the slower place; kept.
    fn ask_length(&self) -> io::Result<u64> {
        let bytes = self.slow()?.len()?;
        self.room.keep(&self.folder, "length", &bytes.to_le_bytes());
        Ok(bytes)
    }

    /// A block that is kept.
    fn block(&self, number: u64) -> Option<Arc<[u8]>> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, block)) = last.as_ref().filter(|(last, _)| *last == number) {
            return Some(Arc::clone(block));
        }
        let block: Arc<[u8]> = kept(&self.folder.join(number.to_string()))?.into();
        *last = Some((number, Arc::clone(&block)));
        Some(block)
    }

    /// Reads whole blocks from the slower place into `into`, where the first byte is the first one of the first block, and keeps them.
    /// How many bytes there were.
    fn fetch(&self, blocks: Range<u64>, into: &mut Vec<u8>) -> io::Result<usize> {
        into.clear();
        into.resize(((blocks.end - blocks.start) * BLOCK_BYTES) as usize, 0);
        let read = read_full(&**self.slow()?, into, blocks.start * BLOCK_BYTES)?;
        for (block, bytes) in blocks.zip(into[..read].chunks(BLOCK_BYTES as usize)) {
            let fixed = self.fixed.saturating_sub(block * BLOCK_BYTES);
            let fixed = bytes.len().min(usize::try_from(fixed).unwrap_or(usize::MAX));
            if fixed > 0 {
                self.room.keep(&self.folder, &block.to_string(), &bytes[..fixed]);
            }
        }
        // It may have been the beginning of one that is longer now.
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = None;
        Ok(read)
    }
}

/// Copies the available bytes from an offset on; returns their number.
fn copy(from: &[u8], start: usize, into: &mut [u8]) -> usize {
    let bytes = from.get(start..).unwrap_or_default();
    let count = bytes.len().min(into.len());
    into[..count].copy_from_slice(&bytes[..count]);
    count
}

impl StorageFile for CachedFile {
    fn len(&self) -> io::Result<u64> {
        match self.length {
            Some(length) => Ok(length),
            None if self.least > 0 => Ok(self.least),
            None => self.slow()?.len(),
        }
    }

    fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<usize> {
        let wanted = match self.length {
            Some(length) => into
                .len()
                .min(usize::try_from(length.saturating_sub(at)).unwrap_or(usize::MAX)),
            None => into.len(),
        };
        if wanted == 0 {
            return Ok(0);
        }
        let first = at / BLOCK_BYTES;
        let within = (at % BLOCK_BYTES) as usize;
        if let Some(block) = self.block(first)
            && let count @ 1.. = copy(&block, within, &mut into[..wanted])
        {
            return Ok(count);
        }
        // Up to the next cached block, so that one request reads all missing bytes in between.
        let end = (at + wanted as u64).div_ceil(BLOCK_BYTES);
        let behind = (first + 1..end)
            .find(|&block| self.folder.join(block.to_string()).exists())
            .unwrap_or(end);
        let mut fetched = Vec::new();
        let read = self.fetch(first..behind, &mut fetched)?;
        Ok(copy(&fetched[..read], within, &mut into[..wanted]))
    }

    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<usize> {
        self.slow()?.write_at(bytes, at)
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.slow()?.set_len(bytes)
    }

    fn sync(&self) -> io::Result<()> {
        self.slow()?.sync()
    }

    fn lock(&self) -> io::Result<()> {
        self.slow()?.lock()
    }

    fn unlock(&self) -> io::Result<()> {
        self.slow()?.unlock()
    }
}

/// Returns the checksum after the bytes: of their origin and content.
fn mark(path: &Path, bytes: &[u8]) -> u32 {
    let place: PathBuf = path.components().rev().take(3).collect();
    crate::checksum(bytes) ^ crate::checksum(place.as_os_str().as_encoded_bytes())
}

/// Returns cached bytes, if they are intact.
fn kept(path: &Path) -> Option<Vec<u8>> {
    let mut bytes = fs::read(path).ok()?;
    let checksum = bytes.split_off(bytes.len().checked_sub(CHECKSUM_BYTES)?);
    if mark(path, &bytes).to_le_bytes() != *checksum {
        let _ = fs::remove_file(path);
        return None;
    }
    note(path);
    Some(bytes)
}

fn kept_length(folder: &Path) -> Option<u64> {
    let bytes = kept(&folder.join("length"))?;
    bytes.try_into().ok().map(u64::from_le_bytes)
}

impl CacheRoom {
    /// Caches bytes if possible, and evicts the least recently used ones if the cache is full.
    fn keep(&self, folder: &Path, name: &str, bytes: &[u8]) {
        let Ok(random) = crate::random() else { return };
        let (draft, path) = (folder.join(format!(".{}", crate::hex(&random))), folder.join(name));
        let write = || {
            fs::create_dir_all(folder)?;
            fs::write(&draft, [bytes, &mark(&path, bytes).to_le_bytes()].concat())?;
            fs::rename(&draft, &path)
        };
        if write().is_err() {
            let _ = fs::remove_file(&draft);
            return;
        }
        let kept = (bytes.len() + CHECKSUM_BYTES) as u64;
        if self.added.fetch_add(kept, Ordering::Relaxed) + kept >= self.bytes_max / LOOK_PARTS {
            self.added.store(0, Ordering::Relaxed);
            self.make_room();
        }
    }

    /// Removes what was not used for longest, if there is too much.
    fn make_room(&self) {
        let mut files: Vec<CacheEntries> = kept_files(&self.cache).collect();
        files.sort_by_key(|file| file.used);
        let mut left: u64 = files.iter().map(|file| file.bytes).sum();
        if left <= self.bytes_max {
            return;
        }
        for file in files {
            if left <= self.bytes_max / 100 * LEFT_PERCENT {
                break;
            }
            if fs::remove_file(&file.path).is_ok() {
                left -= file.bytes;
                // If it was the last one there.
                let _ = file.path.parent().map(fs::remove_dir);
            }
        }
    }
}

/// Notes that it was used.
fn note(path: &Path) {
    let now = SystemTime::now();
    let is_noted = |at: SystemTime| now.duration_since(at).is_ok_and(|since| since < NOTED_FOR);
    let modified = fs::metadata(path).and_then(|metadata| metadata.modified());
    if !modified.is_ok_and(is_noted) {
        let _ = fs::File::open(path).and_then(|file| file.set_modified(now));
    }
}

/// A file of the cache.
struct CacheEntries {
    used: SystemTime,
    bytes: u64,
    path: PathBuf,
}

/// Returns whether a file may belong to a cache.
fn is_ours(path: &Path) -> bool {
    let is_hash = |name: &str| name.len() == 32 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let is_number = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
    name == "length" || is_number || name.strip_prefix('.').is_some_and(is_hash)
}

/// All files of a cache: those of each file of each place.
fn kept_files(cache: &Path) -> impl Iterator<Item = CacheEntries> {
    let within = |folder: &Path| {
        fs::read_dir(folder)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
    };
    let files = within(cache)
        .flat_map(move |place| within(&place))
        .flat_map(move |file| within(&file));
    files.filter(|path| is_ours(path)).filter_map(|path| {
        let metadata = fs::metadata(&path).ok()?;
        Some(CacheEntries {
            used: metadata.modified().ok()?,
            bytes: metadata.len(),
            path,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::super::conformance;
    use super::super::{LocalDisk, MemoryDisk, write_all};
    use super::*;

    const PATH: &str = "data/a/file";

    fn bytes_of(length: usize, seed: usize) -> Vec<u8> {
        (0..length).map(|at| ((at >> 3) * 7 + seed) as u8).collect()
    }

    /// A place whose files do not grow, with one of these.
    fn slow(path: &str, bytes: &[u8]) -> Arc<dyn StorageDisk> {
        let disk: Arc<dyn StorageDisk> = Arc::new(MemoryDisk::still());
        add(&*disk, path, bytes);
        disk
    }

    fn add(disk: &dyn StorageDisk, path: &str, bytes: &[u8]) {
        write_all(&*disk.create(path).unwrap(), bytes, 0).unwrap();
    }

    fn read(disk: &dyn StorageDisk, path: &str) -> Vec<u8> {
        let file = disk.open(path).unwrap();
        let mut bytes = vec![0; file.len().unwrap() as usize];
        assert_eq!(read_full(&*file, &mut bytes, 0).unwrap(), bytes.len());
        bytes
    }

    fn cached(slow: &Arc<dyn StorageDisk>, folder: &Path, bytes_max: u64) -> CacheDisk {
        CacheDisk::new(Arc::clone(slow), folder, bytes_max)
    }

    #[test]
    fn it_is_a_place_as_any_other() {
        for slow in [MemoryDisk::default(), MemoryDisk::still()] {
            let folder = tempfile::tempdir().unwrap();
            let disk: Arc<dyn StorageDisk> = Arc::new(CacheDisk::new(Arc::new(slow), folder.path(), 1 << 30));
            conformance::all(&disk);
        }
        let (folder, slow) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let slow = Arc::new(LocalDisk::new(slow.path()));
        let disk: Arc<dyn StorageDisk> = Arc::new(CacheDisk::new(slow, folder.path(), 1 << 30));
        conformance::all(&disk);
    }

    #[test]
    fn what_was_read_once_is_read_from_the_cache() {
        let (folder, bytes) = (tempfile::tempdir().unwrap(), bytes_of(2_700_000, 0));
        let slow = slow(PATH, &bytes);
        let disk = cached(&slow, folder.path(), 1 << 30);
        let mut middle = vec![0; 10];
        let file = disk.open(PATH).unwrap();
        file.read_at(&mut middle, BLOCK_BYTES - 5).unwrap();
        assert_eq!(middle[..5], bytes[BLOCK_BYTES as usize - 5..][..5]);
        assert_eq!(read(&disk, PATH), bytes);
        slow.remove(PATH).unwrap();
        assert_eq!(read(&disk, PATH), bytes);
        // For another process, too.
        assert_eq!(read(&cached(&slow, folder.path(), 1 << 30), PATH), bytes);
        assert_eq!(disk.open("data/a/other").unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    fn read_committed(disk: &dyn StorageDisk, path: &str, bytes: usize) -> Vec<u8> {
        let file = disk.open_committed(path, bytes as u64).unwrap();
        assert!(file.len().unwrap() >= bytes as u64);
        let mut read = vec![0; bytes];
        assert_eq!(read_full(&*file, &mut read, 0).unwrap(), bytes);
        read
    }

    #[test]
    fn of_what_grows_all_is_kept_that_is_committed_and_nothing_else() {
        let (folder, mut bytes) = (tempfile::tempdir().unwrap(), bytes_of(2_700_000, 1));
        let slow: Arc<dyn StorageDisk> = Arc::new(MemoryDisk::default());
        add(&*slow, PATH, &bytes);
        let disk = cached(&slow, folder.path(), 1 << 30);
        let committed = 1_500_000;
        assert_eq!(read(&disk, PATH), bytes, "of what nothing is said of");
        assert_eq!(read_committed(&disk, PATH, committed), bytes[..committed]);

        // The bytes after it were half written, and are rewritten.
        bytes.truncate(committed);
        bytes.extend(bytes_of(1_900_000, 2));
        write_all(&*slow.open(PATH).unwrap(), &bytes[committed..], committed as u64).unwrap();
        let open = disk.open_committed(PATH, committed as u64).unwrap();
        let mut first = [0; 10];
        assert_eq!(open.read_at(&mut first, 1_100_000).unwrap(), 10);
        assert_eq!(read_committed(&disk, PATH, bytes.len()), bytes);
        assert_eq!(read(&disk, PATH), bytes);

        // All bytes are cached now, for a caller without further information.
        slow.remove(PATH).unwrap();
        for committed in [1, committed, bytes.len()] {
            assert_eq!(read_committed(&disk, PATH, committed), bytes[..committed]);
        }
        let more = disk.open_committed(PATH, bytes.len() as u64 + 1);
        assert_eq!(more.unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn one_opening_reads_on_in_a_block_whose_beginning_was_kept() {
        let (folder, bytes) = (tempfile::tempdir().unwrap(), bytes_of(900_000, 5));
        let slow: Arc<dyn StorageDisk> = Arc::new(MemoryDisk::default());
        add(&*slow, PATH, &bytes);
        let disk = cached(&slow, folder.path(), 1 << 30);
        read_committed(&disk, PATH, 1000);
        let file = disk.open_committed(PATH, 900_000).unwrap();
        let mut read = vec![0; 500_000];
        for at in [0, 700, 300_000] {
            assert_eq!(read_full(&*file, &mut read, at).unwrap(), 500_000);
            assert_eq!(read, bytes[at as usize..][..500_000]);
        }
        slow.remove(PATH).unwrap();
        assert_eq!(read_committed(&disk, PATH, 900_000), bytes);
    }

    #[test]
    fn what_is_damaged_in_the_cache_is_read_anew() {
        let (folder, bytes) = (tempfile::tempdir().unwrap(), bytes_of(1_200_000, 3));
        let slow = slow(PATH, &bytes);
        let disk = cached(&slow, folder.path(), 1 << 30);
        assert_eq!(read(&disk, PATH), bytes);
        for kept in kept_files(&folder.path().join("junctura-store")) {
            let mut damaged = fs::read(&kept.path).unwrap();
            let length = damaged.len();
            damaged[length / 2] ^= 1;
            fs::write(&kept.path, &damaged[..length - usize::from(length > 200_000)]).unwrap();
        }
        assert_eq!(read(&disk, PATH), bytes);
        slow.remove(PATH).unwrap();
        assert_eq!(read(&disk, PATH), bytes);
    }

    #[test]
    fn there_is_not_much_more_than_there_may_be() {
        let (folder, allowed) = (tempfile::tempdir().unwrap(), 5 << 20);
        let slow = slow("data/a/0", &bytes_of(1 << 20, 0));
        let disk = cached(&slow, folder.path(), allowed);
        for number in 0..20 {
            let path = format!("data/a/{number}");
            if number > 0 {
                add(&*slow, &path, &bytes_of(1 << 20, number));
            }
            assert_eq!(read(&disk, &path), bytes_of(1 << 20, number));
            let bytes: u64 = kept_files(&folder.path().join("junctura-store"))
                .map(|file| file.bytes)
                .sum();
            assert!(bytes <= allowed, "{bytes}");
        }
        slow.remove("data/a/19").unwrap();
        assert_eq!(read(&disk, "data/a/19"), bytes_of(1 << 20, 19), "what was used last");
    }

    #[test]
    fn without_a_folder_to_write_to_everything_is_read() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("file"), b"").unwrap();
        let bytes = bytes_of(1_100_000, 4);
        let slow = slow(PATH, &bytes);
        let disk = cached(&slow, &folder.path().join("file/cache"), 1 << 30);
        assert_eq!(read(&disk, PATH), bytes);
        assert_eq!(read(&disk, PATH), bytes);
    }
}
