//! Paths and URLs of stores.
//!
//! | text | location |
//! |---|---|
//! | a path, `file:PATH`, or `file:///PATH` | a folder; in the last form, `%3F` is a `?` |
//! | `memory:NAME`, `memory:` | memory of this process, freed with the last handle; without a name it is private |
//! | `s3://BUCKET/PREFIX?endpoint=URL&region=NAME` | a prefix in a bucket of an object store; credentials are read from the environment |
//!
//! Data read from a bucket are cached in a local folder if the URL has `cache=FOLDER`, or the environment
//! `JUNCTURA_STORE_CACHE`. The cache has at most about `cache_size=BYTES`, or `JUNCTURA_STORE_CACHE_SIZE`. Default: 10
//! GiB. Data read from a folder are cached only if the URL has a cache: `file:///PATH?cache=FOLDER`. Other locations of
//! a store use the cache of its URL, unless they have their own.
//!
//! With `until=damage` after the `?`, a store with damaged commits shows the state before the damage, and is read-only.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use junctura_model::command::shell_word;
use junctura_model::{Code, Error, Result};

use crate::log::Commits;
use crate::storage::{CacheDisk, LocalDisk, MemoryDisk, StorageDisk, refused};

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StoreUrl {
    Folder(PathBuf, CacheUrl),
    Memory(String),
    S3(ObjectBucket),
}

/// A prefix in an object store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ObjectBucket {
    pub(crate) name: String,
    /// The prefix of every path; empty, or without a `/` at its ends.
    pub(crate) prefix: String,
    /// The server's address. Default: from the environment, else that of Amazon.
    pub(crate) endpoint: Option<String>,
    pub(crate) region: Option<String>,
    pub(crate) cache: CacheUrl,
}

/// The cache options of a URL.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CacheUrl {
    folder: Option<PathBuf>,
    bytes_max: Option<u64>,
}

impl CacheUrl {
    const BYTES_MAX: u64 = 10 << 30;

    /// Returns the disk, behind a cache if one is configured.
    ///
    /// # Errors
    /// `InvalidArgument` for an invalid size in the environment.
    fn in_front_of(&self, disk: Arc<dyn StorageDisk>) -> Result<Arc<dyn StorageDisk>> {
        let Some(folder) = &self.folder else { return Ok(disk) };
        let bytes_max = match (self.bytes_max, environment("JUNCTURA_STORE_CACHE_SIZE")) {
            (Some(bytes), _) => bytes,
            (None, Some(text)) => size(&text.to_string_lossy())?,
            (None, None) => Self::BYTES_MAX,
        };
        Ok(Arc::new(CacheDisk::new(disk, folder, bytes_max)))
    }

    /// Returns these options, or those of the environment.
    #[cfg(feature = "s3")]
    fn or_of_environment(&self) -> Self {
        let folder = || environment("JUNCTURA_STORE_CACHE").map(PathBuf::from);
        Self {
            folder: self.folder.clone().or_else(folder),
            bytes_max: self.bytes_max,
        }
    }

    /// Sets an option of a URL; returns whether it is a cache option.
    fn set(&mut self, option: &str, value: &str) -> Result<bool> {
        match option {
            "cache" if !value.is_empty() => self.folder = Some(value.into()),
            "cache_size" => self.bytes_max = Some(size(value)?),
            _ => return Ok(false),
        }
        Ok(true)
    }
}

fn environment(name: &str) -> Option<std::ffi::OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// Parses a number of bytes: `500MiB`, `20 GiB`, `1000000`.
fn size(text: &str) -> Result<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let shift = match unit.trim() {
        "" | "B" => Some(0),
        "KiB" => Some(10),
        "MiB" => Some(20),
        "GiB" => Some(30),
        "TiB" => Some(40),
        _ => None,
    };
    let bytes = number
        .parse::<u64>()
        .ok()
        .zip(shift)
        .and_then(|(number, shift)| number.checked_mul(1 << shift));
    bytes.ok_or_else(|| {
        invalid(
            "cache_size",
            "is not a size such as 500MiB, 20GiB, or a number of bytes",
        )
    })
}

impl StoreUrl {
    /// # Errors
    /// `InvalidArgument`, without the text, which may contain a secret.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        if let Some(name) = text.strip_prefix("memory:") {
            return Ok(Self::Memory(name.to_owned()));
        }
        let url = text.split_once("://").filter(|(scheme, _)| !scheme.contains('/'));
        let Some((scheme, rest)) = url else {
            return match text.strip_prefix("file:").unwrap_or(text) {
                "" => Err(invalid("", "is empty")),
                path => Ok(Self::folder(Path::new(path))),
            };
        };
        match scheme {
            "file" if rest.starts_with('/') => cached_folder(rest),
            "file" => Err(invalid(text, "names a host: write file:///PATH")),
            "s3" => ObjectBucket::parse(rest).map(Self::S3),
            other => Err(invalid(
                other,
                "is not a place for a store: use a path, file, memory or s3",
            )),
        }
    }

    /// A folder, without a cache.
    pub(crate) fn folder(path: &Path) -> Self {
        Self::Folder(path.to_owned(), CacheUrl::default())
    }

    /// Returns the cache options of the text.
    pub(crate) fn cache(&self) -> &CacheUrl {
        static NONE: CacheUrl = CacheUrl {
            folder: None,
            bytes_max: None,
        };
        match self {
            Self::Folder(_, cache) => cache,
            Self::S3(bucket) => &bucket.cache,
            Self::Memory(_) => &NONE,
        }
    }

    /// Adds this cache, unless the location has its own.
    pub(crate) fn behind(mut self, other: &CacheUrl) -> Self {
        match &mut self {
            Self::Folder(_, cache) | Self::S3(ObjectBucket { cache, .. }) if cache.folder.is_none() => {
                other.clone_into(cache);
            }
            _ => {}
        }
        self
    }

    /// Returns the disk of the location; a folder must exist, except with `is_new`.
    ///
    /// # Errors
    /// `Unsupported` for a location that this build leaves out; errors of system calls.
    pub(crate) fn disk(&self, is_new: bool) -> Result<Arc<dyn StorageDisk>> {
        match self {
            Self::Folder(path, cache) => {
                if is_new {
                    make_folder(path)?;
                }
                cache.in_front_of(Arc::new(LocalDisk::new(path)))
            }
            Self::Memory(name) if name.is_empty() => Ok(Arc::new(MemoryDisk::default())),
            #[cfg(test)]
            Self::Memory(name) if let Some(faulty) = crate::storage::faulty::at_place(name) => Ok(faulty),
            Self::Memory(name) => Ok(Arc::new(MemoryDisk::named(name))),
            #[cfg(feature = "s3")]
            Self::S3(bucket) => {
                let cache = bucket.cache.or_of_environment();
                cache.in_front_of(Arc::new(crate::storage::S3Disk::new(bucket)?))
            }
            #[cfg(not(feature = "s3"))]
            Self::S3(_) => {
                let cause = "this was built without object stores (the feature s3)";
                Err(Error::new(Code::Unsupported, "s3", cause))
            }
        }
    }

    /// Returns the error of a location without a store. It does not cite the options of a URL, which may contain a secret.
    pub(crate) fn without_store(&self) -> Error {
        let place = match self {
            Self::Folder(path, _) => path.display().to_string(),
            Self::Memory(name) => format!("memory:{name}"),
            Self::S3(bucket) => format!("s3://{}/{}", bucket.name, bucket.prefix),
        };
        let url = match self {
            Self::Folder(..) => place.as_str(),
            _ => "URL",
        };
        let create = format!("`junctura store create --store {}`", shell_word(url));
        let cause = format!("there is no store here; {create} and `Store.create` create one");
        Error::new(Code::NotFound, format!("store {place}"), cause)
    }

    /// Returns the default order of commits at this location.
    pub(crate) fn commits(&self) -> Commits {
        match self {
            Self::Folder(..) | Self::Memory(_) => Commits::Appended,
            Self::S3(_) => Commits::Exclusive,
        }
    }

    /// Returns whether the text means the same location in every process.
    pub(crate) fn is_absolute(&self) -> bool {
        match self {
            Self::Folder(path, _) => path.is_absolute(),
            Self::Memory(name) => !name.is_empty(),
            Self::S3(_) => true,
        }
    }
}

/// Returns a URL without `until=damage`, and whether it had that option.
pub(crate) fn without_until_damage(text: &str) -> (Cow<'_, str>, bool) {
    const OPTION: &str = "until=damage";
    let url = text.split_once('?').filter(|(place, _)| place.contains("://"));
    let Some((place, query)) = url.filter(|(_, query)| query.split('&').any(|pair| pair == OPTION)) else {
        return (text.into(), false);
    };
    let others: Vec<&str> = query.split('&').filter(|pair| *pair != OPTION).collect();
    (format!("{place}?{}", others.join("&")).into(), true)
}

/// Parses the part after `file://`.
fn cached_folder(text: &str) -> Result<StoreUrl> {
    let (path, query) = text.split_once('?').unwrap_or((text, ""));
    let mut cache = CacheUrl::default();
    for (option, value) in options(query) {
        if !cache.set(option, &decoded(value)?)? {
            return Err(invalid(
                "file:///…",
                "has an option that is none of cache and cache_size; a `?` in a name is written %3F",
            ));
        }
    }
    Ok(StoreUrl::Folder(decoded(path)?.into(), cache))
}

/// Returns the options after a `?`.
fn options(query: &str) -> impl Iterator<Item = (&str, &str)> {
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")))
}

fn make_folder(path: &Path) -> Result<()> {
    let there = path.ancestors().find(|folder| folder.is_dir());
    let make = || {
        std::fs::create_dir_all(path)?;
        let new = path.ancestors().take_while(|folder| Some(*folder) != there);
        for above in new.filter_map(Path::parent) {
            let above = if above.as_os_str().is_empty() {
                Path::new(".")
            } else {
                above
            };
            match std::fs::File::open(above).and_then(|folder| folder.sync_all()) {
                // The folder may be writable and not readable.
                Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {}
                synced => synced?,
            }
        }
        Ok(())
    };
    make().map_err(|error: std::io::Error| refused(path.display().to_string(), "cannot be made", &error))
}

impl ObjectBucket {
    fn parse(text: &str) -> Result<Self> {
        let (path, query) = text.split_once('?').unwrap_or((text, ""));
        let (name, prefix) = path.split_once('/').unwrap_or((path, ""));
        if name.contains(['@', ':']) {
            return Err(invalid(
                "s3://…",
                "has credentials in it: give them by AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
            ));
        }
        let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-_".contains(&byte);
        if name.len() < 3 || !name.bytes().all(is_plain) {
            return Err(invalid(name, "is no name of a bucket"));
        }
        let prefix = decoded(prefix.trim_matches('/'))?;
        if prefix.split('/').any(|part| part == "." || part == "..") || prefix.contains("//") {
            return Err(invalid(&prefix, "is no prefix of names: it has empty parts, or dots"));
        }
        let mut bucket = Self {
            name: name.to_owned(),
            prefix,
            endpoint: None,
            region: None,
            cache: CacheUrl::default(),
        };
        for (option, value) in options(query) {
            let value = decoded(value)?;
            if !bucket.cache.set(option, &value)? {
                bucket.set(option, value)?;
            }
        }
        Ok(bucket)
    }

    fn set(&mut self, option: &str, value: String) -> Result<()> {
        match option {
            "endpoint" => {
                let host = value.strip_prefix("https://").or_else(|| value.strip_prefix("http://"));
                if host.is_none_or(|host| host.is_empty() || host.contains(['@', '?'])) {
                    return Err(invalid(
                        "endpoint",
                        "is no address: http://HOST:PORT or https://HOST, without credentials",
                    ));
                }
                self.endpoint = Some(value);
            }
            "region" => self.region = Some(value),
            // Not repeated, because it may be a key.
            _ => {
                return Err(invalid(
                    "s3://…",
                    "has an option that is none of endpoint, region, cache and cache_size",
                ));
            }
        }
        Ok(())
    }
}

/// Decodes percent-encoded characters.
fn decoded(text: &str) -> Result<String> {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(if byte == b'%' {
            let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
            let pair = digit(rest.next()).zip(digit(rest.next()));
            let (high, low) = pair.ok_or_else(|| invalid("%", "needs two hexadecimal digits behind it"))?;
            (16 * high + low) as u8
        } else {
            byte
        });
    }
    String::from_utf8(bytes).map_err(|_| invalid("%", "does not give UTF-8"))
}

#[cold]
fn invalid(subject: &str, cause: &str) -> Error {
    Error::new(Code::InvalidArgument, subject, cause)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bucket(prefix: &str, endpoint: Option<&str>, region: Option<&str>) -> StoreUrl {
        StoreUrl::S3(ObjectBucket {
            name: "fields".to_owned(),
            prefix: prefix.to_owned(),
            endpoint: endpoint.map(str::to_owned),
            region: region.map(str::to_owned),
            cache: CacheUrl::default(),
        })
    }

    #[test]
    fn a_cache_is_read() {
        let cache = |text: &str| {
            let place = StoreUrl::parse(text).unwrap();
            (place.cache().folder.clone(), place.cache().bytes_max)
        };
        assert_eq!(
            cache("file:///slow?cache=/fast&cache_size=1MiB"),
            (Some("/fast".into()), Some(1 << 20))
        );
        assert_eq!(cache("file:///slow"), (None, None));
        assert_eq!(cache("/slow?cache=/fast"), (None, None), "a path is a path");
        assert_eq!(cache("s3://fields"), (None, None));
        assert_eq!(cache("s3://fields?cache=/fast/a%20b"), (Some("/fast/a b".into()), None));
        assert_eq!(
            cache("s3://fields?cache_size=20GiB&cache=x"),
            (Some("x".into()), Some(20 << 30))
        );
        assert_eq!(size("500 MiB").unwrap(), 500 << 20);
        assert_eq!(size("12345").unwrap(), 12345);
        for wrong in ["", "GiB", "1.5GiB", "-1", "9999999999TiB", "5 parsecs"] {
            assert_eq!(size(wrong).unwrap_err().code(), Code::InvalidArgument, "{wrong}");
        }
    }

    #[test]
    fn what_lies_elsewhere_is_behind_the_same_cache() {
        let place = |text: &str| StoreUrl::parse(text).unwrap();
        let whole = place("file:///slow?cache=/fast&cache_size=1MiB");
        let data = |text: &str| place(text).behind(whole.cache());
        assert_eq!(data("/data"), place("file:///data?cache=/fast&cache_size=1MiB"));
        assert_eq!(data("s3://fields"), place("s3://fields?cache=/fast&cache_size=1MiB"));
        assert_eq!(data("s3://fields?cache=/own"), place("s3://fields?cache=/own"));
        assert_eq!(data("memory:x"), place("memory:x"));
        assert_eq!(place("/data").behind(place("/slow").cache()), place("/data"));
    }

    #[test]
    fn places_are_read() {
        let folder = |path: &str| StoreUrl::folder(Path::new(path));
        let endpoint = Some("http://127.0.0.1:7070");
        for (text, expected) in [
            ("/a/b c", folder("/a/b c")),
            ("a", folder("a")),
            ("/a/b://c", folder("/a/b://c")),
            ("file:a", folder("a")),
            ("file:/a", folder("/a")),
            ("file:///a/b%20c", folder("/a/b c")),
            ("file:///a/b%3Fc?", folder("/a/b?c")),
            ("/a/b?c", folder("/a/b?c")),
            ("memory:", StoreUrl::Memory(String::new())),
            ("memory:x", StoreUrl::Memory("x".to_owned())),
            ("s3://fields", bucket("", None, None)),
            ("s3://fields/a/b/", bucket("a/b", None, None)),
            ("s3://fields?region=eu-1", bucket("", None, Some("eu-1"))),
            (
                "s3://fields/a?endpoint=http://127.0.0.1:7070&region=x",
                bucket("a", endpoint, Some("x")),
            ),
            (
                "s3://fields/a?endpoint=http%3A%2F%2F127.0.0.1%3a7070",
                bucket("a", endpoint, None),
            ),
        ] {
            assert_eq!(StoreUrl::parse(text).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_place_is_refused_without_its_secrets() {
        for text in [
            "",
            "file://host/a",
            "ftp://a/b",
            "s3://",
            "s3://B_",
            "s3://fields/../a",
            "s3://fields/a//b",
            "s3://fields/%zz",
            "s3://fields/%ff",
            "s3://secret:secret@fields/a",
            "s3://fields?secret=secret",
            "s3://fields?endpoint=http://secret:secret@host",
            "s3://fields?endpoint=host",
            "s3://fields?cache=",
            "file:///a?cache=",
            "file:///a?b",
            "s3://fields?cache_size=secret",
        ] {
            let error = StoreUrl::parse(text).unwrap_err();
            assert_eq!(error.code(), Code::InvalidArgument, "{text}");
            assert!(!error.to_string().contains("secret"), "{error}");
        }
    }
}
