//! The file with the list of tokens: read for each client, and replaced as a whole by one process at a time.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use junctura_model::{Code, Error, Result};

use crate::auth::token::{TokenClaims, read_private};
use crate::auth::token_list::{parse, to_text};
use crate::refused;

/// The maximum length of the file, in bytes: about 50,000 tokens.
const LIST_BYTES_MAX: u64 = 4 << 20;

/// The file.
#[derive(Debug)]
pub(crate) struct TokenFile {
    path: PathBuf,
}

/// Which file it is, and how it was written last: another one after each change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ListVersion {
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
}

impl TokenFile {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Returns the tokens in the file; none where there is no file.
    ///
    /// # Errors
    /// `Denied` when others may read the file; `Corrupt` for another text; `Io`.
    pub(crate) fn read(&self) -> Result<Vec<TokenClaims>> {
        match read_private(&self.path, LIST_BYTES_MAX) {
            Err(error) if error.code() == Code::NotFound => Ok(Vec::new()),
            read => parse(&read?).map_err(|error| self.named(error.code(), error.cause())),
        }
    }

    /// Returns which file it is now; `None` where there is none.
    pub(crate) fn version(&self) -> Option<ListVersion> {
        let metadata = std::fs::metadata(&self.path).ok()?;
        Some(ListVersion {
            inode: metadata.ino(),
            bytes: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
        })
    }

    /// Changes the list while no other process does. All processes lock the file `lock`.
    ///
    /// # Errors
    /// As [`Self::read`], and as `change`.
    pub(crate) fn change<T>(&self, lock: &Path, change: impl FnOnce(&mut Vec<TokenClaims>) -> Result<T>) -> Result<T> {
        let locked = OpenOptions::new().read(true).write(true).open(lock);
        let locked =
            locked.map_err(|error| refused(Code::Io, lock.display().to_string(), "cannot be locked", error))?;
        locked
            .lock()
            .map_err(|error| refused(Code::Io, lock.display().to_string(), "cannot be locked", error))?;
        let mut tokens = self.read()?;
        let changed = change(&mut tokens)?;
        self.write(&to_text(&tokens))?;
        Ok(changed)
    }

    fn write(&self, text: &str) -> Result<()> {
        if text.len() as u64 > LIST_BYTES_MAX {
            return Err(self.named(Code::LimitExceeded, "the list is full; revoke tokens that are not used"));
        }
        let mut unfinished = self.path.clone().into_os_string();
        unfinished.push(".new");
        let replace = || {
            let mut options = OpenOptions::new();
            let mut file = options
                .write(true)
                .create(true)
                .truncate(true)
                .mode(0o600)
                .open(&unfinished)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            std::fs::rename(&unfinished, &self.path)?;
            let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
            File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
        };
        replace().map_err(|error: std::io::Error| self.named(Code::Io, &error.to_string()))
    }

    fn named(&self, code: Code, cause: &str) -> Error {
        Error::new(code, self.path.display().to_string(), cause)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use junctura_wire::rights::AccessRights;

    use super::*;

    fn token(id: u32) -> TokenClaims {
        TokenClaims {
            id,
            rights: AccessRights::READ,
            from: 5,
            until: 10,
            name: "n".to_owned(),
        }
    }

    #[test]
    fn a_list_is_replaced_as_a_whole() {
        let directory = tempfile::tempdir().unwrap();
        let lock = directory.path().join("lock");
        std::fs::write(&lock, "").unwrap();
        let list = TokenFile::new(directory.path().join("tokens.list"));
        assert_eq!((list.read().unwrap(), list.version()), (Vec::new(), None));
        let add = |id| {
            list.change(&lock, |tokens| {
                tokens.push(token(id));
                Ok(())
            })
        };
        add(1).unwrap();
        let first = list.version();
        add(2).unwrap();
        assert_ne!(list.version(), first);
        assert_eq!(list.read().unwrap().len(), 2);
        let fails = list.change(&lock, |tokens| {
            tokens.clear();
            Err::<(), _>(Error::new(Code::NotFound, "", ""))
        });
        assert_eq!(fails.unwrap_err().code(), Code::NotFound);
        assert_eq!(list.read().unwrap().len(), 2);
        std::fs::set_permissions(&list.path, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(list.read().unwrap_err().code(), Code::Denied);
    }
}
