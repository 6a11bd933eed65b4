//! The file system of this machine.

use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, UNIX_EPOCH};

use hashbrown::HashSet;
use junctura_memory::FileMap;
use rustix::fs::{FlockOperation, flock};

use super::mounts::{is_mount_point, other_paths};
use super::placed::placed;
use super::{FileDraft, FolderNotices, FolderWatch, PollingPause, StorageDisk, StorageFile};

/// NFS, SMB and CIFS, as `statfs(2)` calls them.
const REMOTE: [u32; 4] = [0x6969, 0x517b, 0xff53_4d42, 0xfe53_4d42];

/// Folders of which it is remembered that files may be made there, at most: beyond, all are looked at again.
const OWN_MAX: usize = 1024;

/// A folder of a local file system.
#[derive(Debug)]
pub(crate) struct LocalDisk {
    root: Arc<Path>,
    /// Folders in which files may be made, [`OWN_MAX`] at most.
    own: Mutex<HashSet<String>>,
}

#[derive(Debug)]
struct LocalFile {
    file: fs::File,
    /// The system's error for writes, if the file could only be opened for reading.
    refused: Option<i32>,
    /// By which way it was opened; whether that leads into another store is looked at when it is first written to.
    way: RootedPath,
    stray: OnceLock<Option<StrayMount>>,
}

/// A path within a root.
#[derive(Debug)]
struct RootedPath {
    root: Arc<Path>,
    path: String,
}

/// A link or mount point on such a way, and the other store that it leads into.
#[derive(Debug)]
struct StrayMount {
    link: PathBuf,
    store: PathBuf,
}

impl RootedPath {
    /// All links and mount points.
    fn links(&self) -> impl Iterator<Item = PathBuf> {
        let parts = Path::new(&self.path).components();
        let folders = parts.scan(self.root.to_path_buf(), |above, part| {
            let path = above.join(part);
            let is_link = path.is_symlink() || is_mount_point(&path, above);
            above.clone_from(&path);
            Some(is_link.then_some(path))
        });
        folders.flatten()
    }

    fn stray(&self) -> Option<StrayMount> {
        self.links().find_map(|link| {
            let store = store_above(&link, &self.root)?;
            Some(StrayMount { link, store })
        })
    }
}

impl StrayMount {
    fn refused(&self) -> io::Error {
        let (link, store) = (self.link.display(), self.store.display());
        let cause = format!(
            "{link} leads into the store at {store}: files there are read, and none is made or changed; remove that link or mount, \
             or put a copy of what it leads to in its place"
        );
        io::Error::new(io::ErrorKind::ResourceBusy, cause)
    }
}

/// Returns the store that actually contains a path, if it is not that of the root.
fn store_above(path: &Path, root: &Path) -> Option<PathBuf> {
    let real = path.canonicalize().ok()?;
    let paths = [vec![real.clone()], other_paths(&real)].concat();
    let is_store = |folder: &&Path| crate::root::may_be_there(&LocalDisk::new(folder));
    let mut nearest = paths.iter().filter_map(|path| path.ancestors().find(is_store));
    nearest.find(|store| !is_one_file(store, root)).map(Path::to_owned)
}

impl LocalDisk {
    pub(crate) fn new(root: &Path) -> Self {
        Self {
            root: root.into(),
            own: Mutex::default(),
        }
    }

    fn way(&self, path: &str) -> RootedPath {
        RootedPath {
            root: Arc::clone(&self.root),
            path: path.to_owned(),
        }
    }

    /// Adds the path to an error.
    fn at<T>(&self, path: &str, done: io::Result<T>) -> io::Result<T> {
        done.map_err(|error| placed(&self.root.join(path), error))
    }

    /// Whether a file of this path may be made.
    ///
    /// # Errors
    /// As [`StorageDisk::check_way`].
    fn check_new(&self, path: &str) -> io::Result<()> {
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let own = || self.own.lock().unwrap_or_else(PoisonError::into_inner);
        if own().contains(folder) {
            return Ok(());
        }
        self.check_way(folder)?;
        let mut own = own();
        if own.len() >= OWN_MAX {
            own.clear();
        }
        own.insert(folder.to_owned());
        Ok(())
    }

    /// # Errors
    /// `InvalidInput` for a name outside the root: names are read from files, which other programs may have written.
    fn path(&self, path: &str) -> io::Result<PathBuf> {
        let is_within = |part| matches!(part, Component::Normal(_));
        if !Path::new(path).components().all(is_within) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it leads out of the store"));
        }
        Ok(self.root.join(path))
    }
}

fn is_one_file(one: &Path, other: &Path) -> bool {
    let identity = |path: &Path| fs::metadata(path).map(|metadata| (metadata.dev(), metadata.ino()));
    matches!((identity(one), identity(other)), (Ok(one), Ok(other)) if one == other)
}

impl StorageDisk for LocalDisk {
    fn create(&self, path: &str) -> io::Result<Arc<dyn StorageFile>> {
        let done = || -> io::Result<Arc<dyn StorageFile>> {
            let way = self.way(path);
            let path = self.path(path)?;
            self.check_new(&way.path)?;
            let create = || fs::File::options().read(true).write(true).create_new(true).open(&path);
            let created = match create() {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    fs::create_dir_all(path.parent().unwrap_or(&self.root))?;
                    create()
                }
                created => created,
            };
            Ok(Arc::new(LocalFile {
                file: created?,
                refused: None,
                way,
                stray: OnceLock::from(None),
            }))
        };
        self.at(path, done())
    }

    fn open(&self, path: &str) -> io::Result<Arc<dyn StorageFile>> {
        let done = || -> io::Result<Arc<dyn StorageFile>> {
            let way = self.way(path);
            let path = self.path(path)?;
            let (file, refused) = match fs::File::options().read(true).write(true).open(&path) {
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem
                    ) =>
                {
                    (fs::File::open(&path)?, error.raw_os_error())
                }
                opened => (opened?, None),
            };
            Ok(Arc::new(LocalFile {
                file,
                refused,
                way,
                stray: OnceLock::new(),
            }))
        };
        self.at(path, done())
    }

    fn publish(&self, draft: &FileDraft, to: &str) -> io::Result<()> {
        let done = || -> io::Result<()> {
            self.check_new(to)?;
            let (from, to) = (self.path(&draft.beside)?, self.path(to)?);
            let linked = fs::hard_link(&from, &to);
            // If a server's response is lost, the repeated request finds that the name is taken, possibly by this file.
            if let Err(error) = linked
                && !is_one_file(&from, &to)
            {
                return Err(error);
            }
            // A compaction removes the rest.
            let _ = fs::remove_file(from);
            Ok(())
        };
        self.at(to, done())
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        self.at(path, self.path(path).and_then(fs::remove_file))
    }

    fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        let done = || -> io::Result<Vec<String>> {
            let entries = match fs::read_dir(self.path(folder)?) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
                entries => entries?,
            };
            let name =
                |entry: io::Result<fs::DirEntry>| entry.map(|entry| entry.file_name().to_string_lossy().into_owned());
            entries.map(name).collect()
        };
        self.at(folder, done())
    }

    fn len(&self, path: &str) -> io::Result<u64> {
        let done = || -> io::Result<u64> { Ok(fs::metadata(self.path(path)?)?.len()) };
        self.at(path, done())
    }

    fn modified(&self, path: &str) -> io::Result<Duration> {
        let done = || -> io::Result<Duration> {
            let at = fs::metadata(self.path(path)?)?.modified()?;
            Ok(at.duration_since(UNIX_EPOCH).unwrap_or_default())
        };
        self.at(path, done())
    }

    fn uri(&self, path: &str) -> String {
        let path = self.root.join(path);
        let path = std::path::absolute(&path).unwrap_or(path);
        format!("file://{}", path.display())
    }

    fn watch(&self, folder: &str) -> Box<dyn FolderWatch> {
        let told = self.path(folder).and_then(|path| FolderNotices::of(&path));
        told.map_or_else(
            |_| Box::new(PollingPause) as Box<dyn FolderWatch>,
            |told| Box::new(told),
        )
    }

    fn is_at(&self, uri: &str) -> bool {
        uri.strip_prefix("file://")
            .is_some_and(|path| is_one_file(Path::new(path), &self.root))
    }

    fn identity(&self, path: &str) -> Option<String> {
        let file = fs::metadata(self.path(path).ok()?).ok()?;
        let folder = fs::metadata(&self.root).ok()?;
        let (file, folder) = ((file.ino(), file.mtime(), file.mtime_nsec()), folder.ino());
        Some(format!("{}-{}.{:09}@{folder}", file.0, file.1, file.2))
    }

    fn links(&self, folder: &str) -> io::Result<Vec<String>> {
        let done = || -> io::Result<Vec<String>> {
            let path = self.path(folder)?;
            let mut links = Vec::new();
            if path.is_symlink() || path.parent().is_some_and(|above| is_mount_point(&path, above)) {
                links.push(folder.to_owned());
            }
            let entries = match fs::read_dir(&path) {
                Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                    return Ok(links);
                }
                entries => entries?,
            };
            for entry in entries {
                let entry = entry?;
                let (inner, kind) = (entry.path(), entry.file_type()?);
                // A link that leads to a file is removed without what it leads to.
                if kind.is_symlink() && inner.is_dir() || kind.is_dir() && is_mount_point(&inner, &path) {
                    links.push(format!("{folder}/{}", entry.file_name().to_string_lossy()));
                }
            }
            Ok(links)
        };
        self.at(folder, done())
    }

    fn check_way(&self, path: &str) -> io::Result<bool> {
        self.path(path)?;
        let way = self.way(path);
        match way.stray() {
            Some(stray) => Err(stray.refused()),
            None => Ok(way.links().next().is_some()),
        }
    }

    fn store_above(&self, folder: &str) -> Option<String> {
        let store = store_above(&self.path(folder).ok()?, &self.root)?;
        Some(store.display().to_string())
    }

    fn replace(&self, draft: &FileDraft, to: &str) -> io::Result<()> {
        let done = || -> io::Result<()> {
            self.check_new(to)?;
            let (from, to) = (self.path(&draft.beside)?, self.path(to)?);
            self.stage(draft)?;
            fs::rename(from, to)
        };
        self.at(to, done())
    }

    fn sync_names(&self, folder: &str) -> io::Result<()> {
        let done = || -> io::Result<()> {
            let whole = self.path(folder)?;
            let above = whole.ancestors().take(1 + Path::new(folder).components().count());
            for folder in above {
                fs::File::open(folder)?.sync_all()?;
            }
            Ok(())
        };
        self.at(folder, done())
    }
}

impl LocalFile {
    /// Adds the path to an error.
    fn at<T>(&self, done: io::Result<T>) -> io::Result<T> {
        done.map_err(|error| placed(&self.way.root.join(&self.way.path), error))
    }

    /// Returns the file for writes.
    ///
    /// # Errors
    /// The reason why it is read-only, because a write itself would only report an invalid descriptor; `ResourceBusy`
    /// for a file of another store.
    fn writable(&self) -> io::Result<&fs::File> {
        match (self.refused, self.stray.get_or_init(|| self.way.stray())) {
            (_, Some(stray)) => Err(stray.refused()),
            (Some(refused), None) => Err(io::Error::from_raw_os_error(refused)),
            (None, None) => Ok(&self.file),
        }
    }
}

impl StorageFile for LocalFile {
    fn len(&self) -> io::Result<u64> {
        self.at(self.file.metadata().map(|metadata| metadata.len()))
    }

    fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<usize> {
        self.at(self.file.read_at(into, at))
    }

    fn map(&self) -> Option<FileMap> {
        // A client on another machine may remove the file, and then it cannot be read any longer.
        let system = rustix::fs::fstatfs(&self.file).ok()?.f_type;
        if REMOTE.iter().any(|&remote| i128::from(remote) == i128::from(system)) {
            return None;
        }
        FileMap::new(self.file.as_fd(), self.len().ok()?).ok()
    }

    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<usize> {
        self.at(self.writable().and_then(|file| file.write_at(bytes, at)))
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.at(self.writable().and_then(|file| file.set_len(bytes)))
    }

    fn sync(&self) -> io::Result<()> {
        self.at(self.file.sync_data())
    }

    fn lock(&self) -> io::Result<()> {
        loop {
            match flock(&self.file, FlockOperation::LockExclusive) {
                Err(rustix::io::Errno::INTR) => {}
                locked => return self.at(locked.map_err(Into::into)),
            }
        }
    }

    fn unlock(&self) -> io::Result<()> {
        self.at(flock(&self.file, FlockOperation::Unlock).map_err(Into::into))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_leads_out_of_the_root() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("other"), "of somebody").unwrap();
        let disk = LocalDisk::new(&folder.path().join("store"));
        for name in ["../other", "data/../../other", "/etc/hostname", "./../other"] {
            for error in [disk.open(name).err(), disk.remove(name).err(), disk.create(name).err()] {
                assert_eq!(error.unwrap().kind(), io::ErrorKind::InvalidInput, "{name}");
            }
        }
        assert!(folder.path().join("other").exists());
    }

    #[test]
    fn errors_have_the_whole_path() {
        let folder = tempfile::tempdir().unwrap();
        let disk = LocalDisk::new(folder.path());
        fs::create_dir(folder.path().join("log")).unwrap();
        fs::write(folder.path().join("file"), "bytes").unwrap();
        let failed = [
            (disk.open("log").err(), "log"),
            (disk.open("file/inner").err(), "file/inner"),
            (disk.create("file/inner").err(), "file/inner"),
            (disk.remove("none").err(), "none"),
            (disk.list("file").err(), "file"),
            (disk.len("none").err(), "none"),
            (disk.modified("none").err(), "none"),
            (disk.read("log", 9).err(), "log"),
            (disk.sync_names("none").err(), "none"),
        ];
        for (error, path) in failed {
            let error = super::super::refused("a path in the store", "cannot be read", &error.unwrap());
            assert_eq!(
                error.subject(),
                folder.path().join(path).display().to_string(),
                "{error}"
            );
        }
    }

    #[test]
    fn what_is_known_of_folders_is_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let disk = LocalDisk::new(folder.path());
        for number in 0..3 * OWN_MAX {
            disk.check_new(&format!("data/{number}/file")).unwrap();
            disk.check_new("data/0/file").unwrap();
            assert!(disk.own.lock().unwrap().len() <= OWN_MAX);
        }
    }

    #[test]
    fn a_mount_within_a_folder_is_a_link() {
        let folders = LocalDisk::new(Path::new("/")).links("").unwrap();
        assert!(folders.contains(&"/proc".to_owned()), "{folders:?}");
        let folders = LocalDisk::new(Path::new("/")).links("proc").unwrap();
        let own = format!("proc/{}", std::process::id());
        assert!(
            folders.contains(&"proc".to_owned()) && !folders.contains(&own),
            "{folders:?}"
        );
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("data/inner")).unwrap();
        assert!(LocalDisk::new(folder.path()).links("data").unwrap().is_empty());
    }
}
