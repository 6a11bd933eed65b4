//! Buckets of S3 and compatible object stores.
//!
//! Objects are written once: a synced file is an object, and cannot be appended to. A name that must be free uses a
//! conditional put (`If-None-Match: *`), which fails for all but one writer; [`probe`] checks that a server implements
//! this before a store relies on it. The library retries requests where that is safe; if the response to a conditional
//! put is lost, the outcome is determined by reading the object with that name.
//!
//! The library is asynchronous. [`runtime`] hides that: callers block, on any thread.

mod probe;
mod runtime;
mod unfinished;
mod upload;

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_core::Stream;
use junctura_model::{Code, Error, Result};
use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey};
use object_store::client::{HttpError, HttpErrorKind};
use object_store::path::Path;
use object_store::{
    BackoffConfig, ClientOptions, ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, PutPayload, RetryConfig,
};

use super::{FileDraft, StorageDisk, StorageFile, UnfinishedFile, check_size};
use crate::url::ObjectBucket;
use upload::PartUpload;

/// Size of one request for a large object; several parts are requested in parallel.
const PART_BYTES: usize = 8 << 20;
const PARTS_AT_ONCE: usize = 8;
/// Objects, or runs, that are read in parallel, because each read waits for its response.
const READS_AT_ONCE: usize = 16;
/// Objects that are read ahead, and their bytes, if it is not one that has more.
const AHEAD: usize = 256;
const AHEAD_BYTES_MAX: u64 = 64 << 20;
const AHEAD_AT_ONCE: usize = 32;
/// Attempts of a conditional put with unknown outcome.
const TRIES: u32 = 4;
/// How often a request is tried again that failed, and may not have been understood.
const RETRIES_MAX: usize = 8;
/// A request takes no longer, and is not tried again after so long.
const REQUEST_TIME_MAX: Duration = Duration::from_mins(2);
const RETRY_TIME_MAX: Duration = Duration::from_secs(20);
/// Maximum length of a server's error text that is reported.
const TOLD_MAX: usize = 300;
/// The server where nothing names another one.
const AMAZON: &str = "https://s3.amazonaws.com";
/// Values that must not be reported.
const SECRETS: [&str; 3] = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"];

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct S3Disk {
    store: Arc<AmazonS3>,
    bucket: ObjectBucket,
    /// The server, as [`server_of`] names it.
    server: String,
}

/// An object that is read.
#[derive(Debug)]
struct ObjectReader {
    disk: S3Disk,
    path: Path,
    bytes: u64,
}

impl S3Disk {
    /// Creates a disk for an existing bucket. Sends no request yet.
    ///
    /// # Errors
    /// `InvalidArgument` for invalid environment variables.
    pub(crate) fn new(bucket: &ObjectBucket) -> Result<Self> {
        Self::with(bucket, RETRIES_MAX)
    }

    /// The same, which asks everything once.
    fn once(&self) -> Result<Self> {
        Self::with(&self.bucket, 0)
    }

    fn with(bucket: &ObjectBucket, retries_max: usize) -> Result<Self> {
        runtime::install_tls();
        let client = ClientOptions::new().with_timeout(REQUEST_TIME_MAX);
        let retry = RetryConfig {
            backoff: BackoffConfig::default(),
            max_retries: retries_max,
            retry_timeout: RETRY_TIME_MAX,
        };
        let mut builder = AmazonS3Builder::from_env()
            .with_bucket_name(&bucket.name)
            .with_client_options(client)
            .with_retry(retry)
            // Not all that speak like S3 know it.
            .with_disable_bulk_delete(true);
        if let Some(endpoint) = &bucket.endpoint {
            builder = builder
                .with_endpoint(endpoint)
                // A URL takes precedence over both variables of the environment.
                .with_config(AmazonS3ConfigKey::S3Endpoint, endpoint)
                .with_allow_http(endpoint.starts_with("http://"));
        }
        if let Some(region) = &bucket.region {
            builder = builder.with_region(region);
        }
        let endpoint = [AmazonS3ConfigKey::S3Endpoint, AmazonS3ConfigKey::Endpoint]
            .iter()
            .find_map(|key| builder.get_config_value(key));
        let built = builder.build();
        let store = built.map_err(|error| Error::new(Code::InvalidArgument, &*bucket.name, told(error.to_string())))?;
        Ok(Self {
            store: Arc::new(store),
            bucket: bucket.clone(),
            server: server_of(endpoint.as_deref().unwrap_or(AMAZON)),
        })
    }

    /// # Errors
    /// `InvalidInput` for an invalid name: names are read from files, which other programs may have written.
    fn path(&self, path: &str) -> io::Result<Path> {
        let is_plain = |part: &str| !part.is_empty() && part != "." && part != "..";
        if !path.is_empty() && !path.split('/').all(is_plain) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it leads out of the store"));
        }
        let parts = [&*self.bucket.prefix, path];
        let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        Path::parse(parts.join("/")).map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error.to_string()))
    }

    /// Waits for what is asked of the store.
    fn wait<T, F>(&self, ask: impl FnOnce(Arc<AmazonS3>) -> F) -> io::Result<T>
    where
        T: Send + 'static,
        F: Future<Output = object_store::Result<T>> + Send + 'static,
    {
        runtime::wait(ask(Arc::clone(&self.store)))?.map_err(|error| refused(&error))
    }

    fn put_new(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let (path, payload) = (path.clone(), PutPayload::from(bytes.to_vec()));
        self.wait(|store| async move { store.put_opts(&path, payload, PutMode::Create.into()).await })?;
        Ok(())
    }

    fn get(&self, path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
        let path = path.clone();
        let got = self.wait(|store| async move {
            let got = store.get(&path).await?;
            let bytes = got.meta.size;
            if bytes > bytes_max {
                return Ok(Err(bytes));
            }
            Ok(Ok(got.bytes().await?))
        })?;
        match got {
            Ok(bytes) => Ok(bytes.into()),
            Err(bytes) => check_size(bytes, bytes_max).map(|()| Vec::new()),
        }
    }

    /// Objects right in a folder whose names are greater than this one, in their order; `count_max` at most.
    fn after(&self, folder: &str, name: &str, count_max: usize) -> io::Result<Vec<ObjectMeta>> {
        let (folder, after) = (self.path(folder)?, self.path(&format!("{folder}/{name}"))?);
        self.wait(move |store| async move {
            let mut listed = store.list_with_offset(Some(&folder), &after);
            let mut found = Vec::new();
            while let Some(object) = next(&mut listed).await {
                let object = object?;
                if object.location.parts_count() == folder.parts_count() + 1 && object.location > after {
                    found.push(object);
                }
                if found.len() == count_max {
                    break;
                }
            }
            Ok(found)
        })
    }

    /// Returns several objects at once, up to the first missing one.
    fn get_all(&self, objects: Vec<ObjectMeta>) -> io::Result<Vec<(String, Vec<u8>)>> {
        let mut found = Vec::new();
        let mut objects = objects.into_iter().peekable();
        while objects.peek().is_some() {
            let asked: Vec<ObjectMeta> = objects.by_ref().take(AHEAD_AT_ONCE).collect();
            let under_way: Vec<_> = asked
                .into_iter()
                .map(|object| {
                    let (store, path) = (Arc::clone(&self.store), object.location);
                    let name = path.filename().unwrap_or_default().to_owned();
                    (
                        name,
                        runtime::begin(async move { store.get(&path).await?.bytes().await }),
                    )
                })
                .collect();
            for (name, begun) in under_way {
                match begun
                    .and_then(runtime::BegunTask::wait)?
                    .map_err(|error| refused(&error))
                {
                    Ok(bytes) => found.push((name, bytes.into())),
                    Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(found),
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(found)
    }
}

async fn next<S: Stream + Unpin>(stream: &mut S) -> Option<S::Item> {
    std::future::poll_fn(|context| Pin::new(&mut *stream).poll_next(context)).await
}

impl StorageDisk for S3Disk {
    fn reads_at_once(&self, _path: &str) -> usize {
        READS_AT_ONCE
    }

    fn probe(&self, is_exclusive: bool) -> Result<()> {
        probe::probe(self, &self.bucket.name, is_exclusive)
    }

    fn create(&self, path: &str) -> io::Result<Arc<dyn StorageFile>> {
        Ok(Arc::new(PartUpload::new(self.clone(), self.path(path)?)))
    }

    fn open(&self, path: &str) -> io::Result<Arc<dyn StorageFile>> {
        let path = self.path(path)?;
        let asked = path.clone();
        let bytes = self.wait(|store| async move { store.head(&asked).await })?.size;
        let disk = self.clone();
        Ok(Arc::new(ObjectReader { disk, path, bytes }))
    }

    fn stage(&self, _draft: &FileDraft) -> io::Result<()> {
        Ok(())
    }

    fn publish(&self, draft: &FileDraft, to: &str) -> io::Result<()> {
        let path = self.path(to)?;
        let mut last = io::Error::from(io::ErrorKind::TimedOut);
        for _ in 0..TRIES {
            match self.put_new(&path, &draft.bytes) {
                Ok(()) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Err(error),
                Err(error) => last = error,
            }
            // Taken, perhaps by a put of this very draft whose answer was lost; or refused since another one was under way.
            match self.get(&path, u64::MAX) {
                Ok(bytes) if bytes == draft.bytes => return Ok(()),
                Ok(_) => return Err(io::ErrorKind::AlreadyExists.into()),
                Err(_) => {}
            }
        }
        // An attempt of before may still arrive.
        Err(io::Error::new(io::ErrorKind::TimedOut, last))
    }

    fn discard(&self, _draft: &FileDraft) {}

    fn remove(&self, path: &str) -> io::Result<()> {
        let path = self.path(path)?;
        self.wait(|store| async move { store.delete(&path).await })
    }

    fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        let folder = self.path(folder)?;
        let listed = self.wait(|store| async move { store.list_with_delimiter(Some(&folder)).await })?;
        let objects = listed.objects.iter().map(|object| &object.location);
        let paths = objects.chain(&listed.common_prefixes);
        Ok(paths.filter_map(|path| path.filename()).map(str::to_owned).collect())
    }

    fn list_after(&self, folder: &str, name: &str) -> io::Result<Vec<String>> {
        let found = self.after(folder, name, usize::MAX)?;
        let names = found.iter().filter_map(|object| object.location.filename());
        Ok(names.map(str::to_owned).collect())
    }

    fn read(&self, path: &str, bytes_max: u64) -> io::Result<Vec<u8>> {
        self.get(&self.path(path)?, bytes_max)
    }

    fn ahead(&self, folder: &str, name: &str, bytes_max: u64) -> io::Result<Vec<(String, Vec<u8>)>> {
        let mut bytes = 0;
        let mut objects = Vec::new();
        for object in self.after(folder, name, AHEAD)? {
            bytes += object.size;
            check_size(object.size, bytes_max)?;
            if !objects.is_empty() && bytes > AHEAD_BYTES_MAX {
                break;
            }
            objects.push(object);
        }
        let found = self.get_all(objects)?;
        let path = |(name, bytes)| (format!("{folder}/{name}"), bytes);
        Ok(found.into_iter().map(path).collect())
    }

    fn grows(&self, _path: &str) -> bool {
        false
    }

    fn modified(&self, path: &str) -> io::Result<Duration> {
        let path = self.path(path)?;
        let at = self.wait(|store| async move { store.head(&path).await })?.last_modified;
        Ok(Duration::from_millis(
            u64::try_from(at.timestamp_millis()).unwrap_or_default(),
        ))
    }

    fn uri(&self, path: &str) -> String {
        let parts = [&*self.bucket.name, &*self.bucket.prefix, path];
        let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        format!("s3://{}", parts.join("/"))
    }

    fn address(&self) -> String {
        format!("{}?endpoint={}", self.uri(""), self.server)
    }

    /// Older marks name no server.
    fn is_at(&self, address: &str) -> bool {
        address == self.address() || address == self.uri("")
    }

    /// One put: there is no moment without the one or the other.
    fn replace(&self, draft: &FileDraft, to: &str) -> io::Result<()> {
        let (path, payload) = (self.path(to)?, PutPayload::from(draft.bytes.clone()));
        self.wait(|store| async move { store.put(&path, payload).await })?;
        Ok(())
    }

    fn sync_names(&self, _folder: &str) -> io::Result<()> {
        Ok(())
    }

    fn unfinished(&self, folder: &str) -> io::Result<Vec<UnfinishedFile>> {
        unfinished::list(self, folder)
    }

    fn end_unfinished(&self, one: &UnfinishedFile) -> io::Result<()> {
        unfinished::end(self, one)
    }
}

impl StorageFile for ObjectReader {
    fn len(&self) -> io::Result<u64> {
        Ok(self.bytes)
    }

    fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<usize> {
        let left = usize::try_from(self.bytes.saturating_sub(at)).unwrap_or(usize::MAX);
        let wanted = into.len().min(left).min(PARTS_AT_ONCE * PART_BYTES);
        let begin = |start: usize| {
            let (store, path) = (Arc::clone(&self.disk.store), self.path.clone());
            let range = at + start as u64..at + wanted.min(start + PART_BYTES) as u64;
            runtime::begin(async move { store.get_range(&path, range).await })
        };
        let parts: io::Result<Vec<_>> = (0..wanted).step_by(PART_BYTES).map(begin).collect();
        for (part, into) in parts?.into_iter().zip(into[..wanted].chunks_mut(PART_BYTES)) {
            let bytes = part.wait()?.map_err(|error| refused(&error))?;
            if bytes.len() != into.len() {
                return Err(io::Error::other("it is not as long as it was"));
            }
            into.copy_from_slice(&bytes);
        }
        Ok(wanted)
    }

    fn write_at(&self, _bytes: &[u8], _at: u64) -> io::Result<usize> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn set_len(&self, _bytes: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn lock(&self) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn unlock(&self) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// One text for all endpoints of a server that differ only in case, a default port, or a `/` at the end. All endpoints of Amazon
/// are one server, where a name of a bucket is given once. Without credentials: the text is written into marks.
fn server_of(endpoint: &str) -> String {
    let lower = endpoint.to_ascii_lowercase();
    let (scheme, rest) = lower.split_once("://").unwrap_or(("https", &lower));
    let rest = rest.split(['?', '#']).next().unwrap_or_default().trim_end_matches('/');
    let (host, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    let default_port = if scheme == "http" { ":80" } else { ":443" };
    let host = host.strip_suffix(default_port).unwrap_or(host);
    if host.ends_with(".amazonaws.com") {
        return AMAZON.to_owned();
    }
    format!("{scheme}://{host}{path}")
}

/// Converts an error of a server, or a missing response.
fn refused(error: &object_store::Error) -> io::Error {
    use object_store::Error as Refused;
    let http = http_error(error);
    let kind = match error {
        Refused::NotFound { .. } => io::ErrorKind::NotFound,
        Refused::AlreadyExists { .. } | Refused::Precondition { .. } => io::ErrorKind::AlreadyExists,
        Refused::PermissionDenied { .. } | Refused::Unauthenticated { .. } => io::ErrorKind::PermissionDenied,
        Refused::InvalidPath { .. } => io::ErrorKind::InvalidInput,
        _ if http.is_some_and(is_unreachable) => io::ErrorKind::ConnectionRefused,
        _ => io::ErrorKind::Other,
    };
    let text = match http {
        Some(http) if is_unreachable(http) => format!(
            "the object store does not answer: {}; check its endpoint, the network and proxies",
            root_of(http)
        ),
        Some(http) => format!("the connection to the object store broke: {}; try again", root_of(http)),
        None => error.to_string(),
    };
    io::Error::new(kind, told(text))
}

/// The error of HTTP that is its cause, if one is.
fn http_error(error: &object_store::Error) -> Option<&HttpError> {
    let mut source = std::error::Error::source(error);
    while let Some(error) = source {
        if let Some(http) = error.downcast_ref::<HttpError>() {
            return Some(http);
        }
        source = error.source();
    }
    None
}

fn is_unreachable(error: &HttpError) -> bool {
    matches!(error.kind(), HttpErrorKind::Connect | HttpErrorKind::Timeout)
}

/// The first cause, in the words of the system where it is one of the system's.
fn root_of(error: &HttpError) -> String {
    let mut root: &dyn std::error::Error = error;
    while let Some(source) = root.source() {
        root = source;
    }
    root.to_string()
}

/// Returns the text of an error without secrets.
fn told(mut text: String) -> String {
    for secret in SECRETS.iter().filter_map(|name| std::env::var(name).ok()) {
        if !secret.is_empty() {
            text = text.replace(&secret, "…");
        }
    }
    text.chars().take(TOLD_MAX).collect()
}
