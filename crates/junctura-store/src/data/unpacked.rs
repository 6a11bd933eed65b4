//! Packed objects that are read piece by piece: a listing keeps the bytes of some, and streams of others.

use std::collections::VecDeque;
use std::fmt;
use std::io::{self, BufReader, Read};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::catalogue::table::ObjectLocation;
use crate::data::packing::{PayloadCodec, StreamUnpacker};
use crate::storage::StorageFile;

/// A larger object is unpacked as a stream, and those that are kept have no more together.
pub(crate) const WHOLE_BYTES_MAX: u64 = 1 << 30;
/// Objects that are kept.
const KEPT_MAX: usize = 4;
/// Bytes of a frame that a stream reads at once.
pub(crate) const FRAME_BYTES: usize = 1 << 20;

/// The cache of a listing, by the index of the object; newest first.
#[derive(Debug, Default)]
pub(crate) struct UnpackedCache(Mutex<VecDeque<(usize, Arc<KeptBytes>)>>);

/// The cached data of an object.
#[derive(Debug)]
pub(crate) enum KeptBytes {
    Whole(Vec<u8>),
    Stream(StreamLock),
}

/// A stream that threads share.
#[derive(Debug, Default)]
pub(crate) struct StreamLock(Mutex<Option<UnpackStream>>);

impl StreamLock {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Option<UnpackStream>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KeptBytes {
    pub(crate) fn stream() -> Self {
        Self::Stream(StreamLock::default())
    }

    fn bytes(&self) -> u64 {
        match self {
            Self::Whole(bytes) => bytes.len() as u64,
            Self::Stream(_) => 0,
        }
    }
}

impl UnpackedCache {
    pub(crate) fn get(&self, index: usize) -> Option<Arc<KeptBytes>> {
        find(&self.all(), index)
    }

    /// Keeps one, and returns that of another thread that was quicker.
    pub(crate) fn keep(&self, index: usize, kept: KeptBytes) -> Arc<KeptBytes> {
        let mut all = self.all();
        if let Some(known) = find(&all, index) {
            return known;
        }
        let kept = Arc::new(kept);
        all.push_front((index, Arc::clone(&kept)));
        all.truncate(KEPT_MAX);
        while all.len() > 1 && all.iter().map(|(_, kept)| kept.bytes()).sum::<u64>() > WHOLE_BYTES_MAX {
            all.pop_back();
        }
        kept
    }

    fn all(&self) -> MutexGuard<'_, VecDeque<(usize, Arc<KeptBytes>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn find(all: &VecDeque<(usize, Arc<KeptBytes>)>, index: usize) -> Option<Arc<KeptBytes>> {
    let known = all.iter().find(|(of, _)| *of == index);
    known.map(|(_, kept)| Arc::clone(kept))
}

/// An object that is unpacked as it is read.
pub(crate) struct UnpackStream {
    unpacker: StreamUnpacker<BufReader<FilePieces>>,
    at: u64,
}

impl fmt::Debug for UnpackStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream").field("at", &self.at).finish_non_exhaustive()
    }
}

impl UnpackStream {
    pub(crate) fn new(codec: PayloadCodec, frame: FilePieces) -> io::Result<Self> {
        let unpacker = StreamUnpacker::new(codec, BufReader::with_capacity(FRAME_BYTES, frame))?;
        Ok(Self { unpacker, at: 0 })
    }

    /// Which byte is the next one.
    pub(crate) fn at(&self) -> u64 {
        self.at
    }

    /// Reads bytes from this one on, which is not before the next one.
    pub(crate) fn read_exact_at(&mut self, from: u64, into: &mut [u8]) -> io::Result<()> {
        let skipped = io::copy(&mut (&mut self.unpacker).take(from - self.at), &mut io::sink())?;
        self.at += skipped;
        if self.at < from {
            return Err(io::Error::other(format!("its frame has {} bytes", self.at)));
        }
        self.unpacker.read_exact(into)?;
        self.at += into.len() as u64;
        Ok(())
    }

    /// Why its file could not be read.
    pub(crate) fn refused(&self) -> Option<&io::Error> {
        self.unpacker.source().get_ref().refused()
    }
}

/// The bytes of a file between two offsets.
pub(crate) struct FilePieces {
    file: Arc<dyn StorageFile>,
    at: u64,
    end: u64,
    /// Why a read failed first.
    refused: Option<io::Error>,
}

impl FilePieces {
    pub(crate) fn new(file: Arc<dyn StorageFile>, place: &ObjectLocation) -> Self {
        Self {
            file,
            at: place.offset,
            end: place.offset + place.length,
            refused: None,
        }
    }

    pub(crate) fn refused(&self) -> Option<&io::Error> {
        self.refused.as_ref()
    }
}

impl Read for FilePieces {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end - self.at)
            .unwrap_or(usize::MAX)
            .min(into.len());
        let read = self.file.read_at(&mut into[..left], self.at).map_err(|error| {
            let told = io::Error::from(error.kind());
            self.refused.get_or_insert(error);
            told
        })?;
        self.at += read as u64;
        Ok(read)
    }
}
