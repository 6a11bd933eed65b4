//! The files of a store, by what they are for.

use junctura_model::Result;

use crate::catalogue::checkpoint;
use crate::data;
use crate::log::{Commits, first_of};
use crate::maintenance::tier;
use crate::query::stats::ObjectAmount;
use crate::storage::{UnfinishedFile, files_in, refused};
use crate::store::Store;

/// Lists the files of a store.
pub(crate) struct FileInventory<'a>(&'a Store);

impl<'a> FileInventory<'a> {
    pub(crate) fn of(store: &'a Store) -> Self {
        Self(store)
    }

    /// The files of which commits name parts, or will.
    pub(crate) fn data_files(&self) -> Result<Vec<String>> {
        let mut files = Vec::new();
        for folder in self.data_folders()? {
            for dataset in files_in(self.0.disk(), &folder)?
                .into_iter()
                .filter(|path| data::is_dataset(path))
            {
                files.extend(files_in(self.0.disk(), &dataset)?);
            }
        }
        files.retain(|path| data::is_named(path));
        Ok(files)
    }

    /// Returns uploads that were begun and not completed.
    pub(crate) fn unfinished_files(&self) -> Result<Vec<UnfinishedFile>> {
        let mut files = Vec::new();
        for folder in self
            .data_folders()?
            .iter()
            .map(String::as_str)
            .chain([checkpoint::SEGMENTS])
        {
            let found = self.0.disk().unfinished(folder);
            files.extend(
                found.map_err(|error| refused(folder, "cannot be looked through for unfinished files", &error))?,
            );
        }
        files.retain(|file| data::is_named(&file.path) || checkpoint::is_segment(&file.path));
        Ok(files)
    }

    /// Returns the folders of data files, and of the drafts of ownership marks.
    fn data_folders(&self) -> Result<Vec<String>> {
        let mut folders = vec![data::FOLDER.to_owned()];
        if self.0.root().data.is_some() {
            folders.push(tier::folder(tier::OWN));
        }
        for tier in self.0.tiers()? {
            folders.push(tier::folder(&tier.name));
        }
        Ok(folders)
    }

    /// Files of commits, without the marks beside a log.
    pub(crate) fn commit_files(&self) -> Result<Vec<String>> {
        let mut files = files_in(self.0.disk(), self.0.commits().folder())?;
        // A log has marks beside its files.
        files.retain(|file| self.0.commits() == Commits::Exclusive || first_of(file).is_some());
        Ok(files)
    }

    /// Returns the number of these files that exist, and their bytes. Other processes may remove some meanwhile.
    pub(crate) fn amount(&self, files: &[String]) -> Result<ObjectAmount> {
        let mut amount = ObjectAmount::default();
        for file in files {
            match self.0.disk().len(file) {
                Ok(bytes) => amount.add(bytes),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(refused(&**file, "cannot be looked at", &error)),
            }
        }
        Ok(amount)
    }
}
