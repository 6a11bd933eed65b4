//! A file that becomes an object: its parts are sent while it is written, several at once, and its sync ends it.

use std::collections::VecDeque;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use object_store::path::Path;
use object_store::{MultipartUpload, ObjectStoreExt, PutPayload};

use super::{PART_BYTES, S3Disk, refused, runtime};
use crate::storage::StorageFile;

/// Parts that are under way at once, each of which is in memory until it has arrived.
const UNDER_WAY_MAX: usize = 4;

/// See the module.
#[derive(Debug)]
pub(super) struct PartUpload {
    disk: S3Disk,
    path: Path,
    state: Mutex<UploadState>,
}

#[derive(Debug, Default)]
struct UploadState {
    /// Data that are not sent yet.
    buffer: Vec<u8>,
    /// How much was sent.
    sent: u64,
    /// `None` while all data fit into one part.
    parts: Option<Box<dyn MultipartUpload>>,
    under_way: VecDeque<runtime::BegunTask<object_store::Result<()>>>,
    end: UploadEnd,
}

#[derive(Debug, Default, PartialEq)]
enum UploadEnd {
    #[default]
    Open,
    /// It is an object.
    Done,
    /// Some data were not received.
    Failed,
}

impl PartUpload {
    pub(super) fn new(disk: S3Disk, path: Path) -> Self {
        Self {
            disk,
            path,
            state: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, UploadState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends what is gathered as one more part.
    fn send(&self, state: &mut UploadState) -> io::Result<()> {
        if state.parts.is_none() {
            let path = self.path.clone();
            let parts = self
                .disk
                .wait(|store| async move { store.put_multipart(&path).await })?;
            state.parts = Some(parts);
        }
        while state.under_way.len() >= UNDER_WAY_MAX {
            state.wait_for_one()?;
        }
        let bytes = std::mem::take(&mut state.buffer);
        let length = bytes.len() as u64;
        if let Some(parts) = &mut state.parts {
            let part = parts.put_part(PutPayload::from(bytes));
            state.under_way.push_back(runtime::begin(part)?);
            state.sent += length;
        }
        Ok(())
    }

    fn end(&self, state: &mut UploadState) -> io::Result<()> {
        if state.parts.is_none() {
            let (path, payload) = (self.path.clone(), PutPayload::from(state.buffer.clone()));
            self.disk.wait(|store| async move { store.put(&path, payload).await })?;
            state.sent = state.buffer.len() as u64;
            state.buffer = Vec::new();
            return Ok(());
        }
        if !state.buffer.is_empty() {
            self.send(state)?;
        }
        while !state.under_way.is_empty() {
            state.wait_for_one()?;
        }
        if let Some(mut parts) = state.parts.take() {
            self.disk.wait(|_| async move { parts.complete().await })?;
        }
        Ok(())
    }
}

impl UploadState {
    fn wait_for_one(&mut self) -> io::Result<()> {
        match self.under_way.pop_front() {
            Some(part) => part.wait()?.map_err(|error| refused(&error)),
            None => Ok(()),
        }
    }

    fn length(&self) -> u64 {
        self.sent + self.buffer.len() as u64
    }

    fn check_open(&self) -> io::Result<()> {
        match self.end {
            UploadEnd::Open => Ok(()),
            UploadEnd::Done => Err(io::Error::new(io::ErrorKind::Unsupported, "an object is written once")),
            UploadEnd::Failed => Err(io::Error::other("a part did not arrive")),
        }
    }

    /// Parts that arrived, and belong to nothing, are given up.
    fn abandon(&mut self) {
        if let Some(mut parts) = self.parts.take() {
            let _ = runtime::begin(async move { parts.abort().await });
        }
    }
}

impl Drop for UploadState {
    fn drop(&mut self) {
        self.abandon();
    }
}

impl StorageFile for PartUpload {
    fn len(&self) -> io::Result<u64> {
        Ok(self.state().length())
    }

    fn read_at(&self, _into: &mut [u8], _at: u64) -> io::Result<usize> {
        Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "an object is read after it was opened again",
        ))
    }

    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<usize> {
        let mut state = self.state();
        state.check_open()?;
        if at != state.length() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "objects are written from their first byte on",
            ));
        }
        let taken = bytes.len().min(PART_BYTES - state.buffer.len());
        state.buffer.extend_from_slice(&bytes[..taken]);
        if state.buffer.len() == PART_BYTES
            && let Err(error) = self.send(&mut state)
        {
            state.end = UploadEnd::Failed;
            state.abandon();
            return Err(error);
        }
        Ok(taken)
    }

    fn set_len(&self, _bytes: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.state();
        if state.end == UploadEnd::Done {
            return Ok(());
        }
        state.check_open()?;
        let ended = self.end(&mut state);
        // One part is still here, and may be sent again.
        let is_lost = ended.is_err() && (state.parts.is_some() || state.sent > 0);
        state.end = match &ended {
            Ok(()) => UploadEnd::Done,
            Err(_) if is_lost => UploadEnd::Failed,
            Err(_) => UploadEnd::Open,
        };
        if is_lost {
            state.abandon();
        }
        ended
    }

    fn lock(&self) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn unlock(&self) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
