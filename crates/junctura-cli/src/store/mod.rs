//! The commands about stores, in the terms of [`junctura_store`].

pub(crate) mod archive;
pub(crate) mod archiver;
pub(crate) mod create;
pub(crate) mod import;
pub(crate) mod maintenance;
pub(crate) mod query;

use clap::{Args, Subcommand};
use junctura::{Code, Error, Result};
use junctura_store::{Listing, Snapshot, Store};
use junctura_terminal::program::ProgramWords;
use junctura_terminal::progress::SlowWork;

use crate::attributes::{about_selector, note_slips, note_unknown, refuse_slips, selector_for};
use crate::exit::proposals::note_store;

const EXAMPLES: &str = "Examples:
  junctura store create --store /data/archive --schema mars
  junctura store archive fields.grib --store /data/archive
  junctura store retrieve 'param=2t,step=0' --store /data/archive -o 2t.grib
  junctura store stat --store /data/archive";

/// Create, fill, read and maintain stores
///
/// `ls`, `watch` and `wait-for` also read stores, with their option --store.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct StoreCommandArguments {
    #[command(subcommand)]
    command: StoreCommand,
}

#[derive(Subcommand, Debug)]
enum StoreCommand {
    Create(create::CreateArguments),
    Archive(archive::ArchiveArguments),
    Archiver(archiver::ArchiverArguments),
    Import(import::ImportArguments),
    Retrieve(query::retrieve::RetrieveArguments),
    Axes(query::axes::AxesArguments),
    Inspect(query::inspect::InspectArguments),
    Stat(query::stat::StatArguments),
    Compare(query::compare::CompareArguments),
    Check(maintenance::check::CheckArguments),
    Purge(maintenance::remove::PurgeArguments),
    Wipe(maintenance::remove::WipeArguments),
    Tier(maintenance::tier::TierArguments),
    Move(maintenance::tier::MoveArguments),
    Checkpoint(maintenance::compact::CheckpointArguments),
    Compact(maintenance::compact::CompactArguments),
}

/// Runs a command about a store.
pub(crate) fn run(arguments: &StoreCommandArguments, program: &ProgramWords) -> Result<()> {
    match &arguments.command {
        StoreCommand::Create(arguments) => create::run(arguments),
        StoreCommand::Archive(arguments) => archive::run(arguments),
        StoreCommand::Archiver(arguments) => archiver::run(arguments),
        StoreCommand::Import(arguments) => import::run(arguments, program),
        StoreCommand::Retrieve(arguments) => query::retrieve::run(arguments),
        StoreCommand::Axes(arguments) => query::axes::run(arguments),
        StoreCommand::Inspect(arguments) => query::inspect::run(arguments),
        StoreCommand::Stat(arguments) => query::stat::run(arguments),
        StoreCommand::Compare(arguments) => query::compare::run(arguments, program),
        StoreCommand::Check(arguments) => maintenance::check::run(arguments),
        StoreCommand::Purge(arguments) => maintenance::remove::purge(arguments),
        StoreCommand::Wipe(arguments) => maintenance::remove::wipe(arguments),
        StoreCommand::Tier(arguments) => maintenance::tier::tier(arguments),
        StoreCommand::Move(arguments) => maintenance::tier::move_to(arguments),
        StoreCommand::Checkpoint(arguments) => maintenance::compact::checkpoint(arguments),
        StoreCommand::Compact(arguments) => maintenance::compact::compact(arguments),
    }
}

/// The store of a command.
#[derive(Args, Clone, Debug)]
pub(crate) struct StoreArguments {
    #[arg(
        help = "The store: a folder, file:///FOLDER, or s3://BUCKET/PREFIX?endpoint=URL&region=NAME of an object store, with credentials \
                from the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY)",
        long = "store",
        env = "JUNCTURA_STORE",
        value_name = "URL"
    )]
    url: String,
}

impl StoreArguments {
    pub(crate) fn open(&self) -> Result<Store> {
        open(&self.url)
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }
}

/// Versions of a store's objects.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct VersionsArguments {
    /// Also show versions that newer ones mask (of a store)
    #[arg(long)]
    all_versions: bool,
    /// Only objects of later commits than this one (of a store)
    #[arg(long, value_name = "COMMIT")]
    after: Option<u64>,
}

impl VersionsArguments {
    pub(crate) fn list(self, snapshot: &Snapshot, selector: &str) -> Result<Listing> {
        let listing = match (self.all_versions, self.after) {
            (false, None) => snapshot.list(selector),
            (false, Some(commit)) => snapshot.list(selector).map(|listing| listing.after(commit)),
            (true, None) => snapshot.list_all(selector),
            (true, Some(commit)) => snapshot.list_after(selector, commit),
        };
        about_selector(listing, selector)
    }

    /// Returns the commit after which objects are shown.
    pub(crate) fn after(self) -> Option<u64> {
        self.after
    }

    /// # Errors
    /// `InvalidArgument` for a pool.
    pub(crate) fn are_of_no_pool(self) -> Result<()> {
        let cause = "it is about a store: a pool has one version of each key, and no commits";
        let refused = |name: &str| Err(Error::new(Code::InvalidArgument, name, cause));
        match self {
            Self { all_versions: true, .. } => refused("--all-versions"),
            Self { after: Some(_), .. } => refused("--after"),
            _ => Ok(()),
        }
    }
}

/// The cause of an error for a selector that matches nothing.
pub(crate) const NOTHING_MATCHES: &str =
    "nothing matches; `junctura store axes --store URL` lists the values of each attribute";

/// Opens a store.
///
/// # Errors
/// `NotFound` with the command that creates the store; `Corrupt`, `Unsupported`, `Denied` if it cannot be opened.
pub(crate) fn open(url: &str) -> Result<Store> {
    let _slow = SlowWork::store(url);
    note_store(url);
    Store::open_url(url).map_err(|error| {
        if error.code() == Code::InvalidArgument {
            // The error does not repeat the URL, which may contain a secret.
            return error;
        }
        if error.code() != Code::NotFound {
            let subject = if error.subject().contains(url) {
                error.subject().to_owned()
            } else {
                format!("store {url}: {}", error.subject())
            };
            return Error::new(error.code(), subject, error.cause());
        }
        let cause = "there is no store here; `junctura store create --store URL` creates one";
        Error::new(Code::NotFound, format!("store {url}"), cause)
    })
}

/// Returns one selector of all arguments, as [`crate::attributes::selector_of_present`] for a pool.
pub(crate) fn selector(arguments: &[String], store: &Store) -> Result<String> {
    let selector = selector_for(arguments, || Ok(store.schemas().to_vec()))?;
    refuse_slips(
        &selector,
        store.schemas(),
        |exists| is_in_store(store, exists),
        Vec::new,
    )?;
    Ok(selector)
}

/// Returns one selector of all arguments for future commits, as [`crate::attributes::selector`] for a pool.
pub(crate) fn selector_of_coming(arguments: &[String], store: &Store) -> Result<String> {
    let selector = selector_for(arguments, || Ok(store.schemas().to_vec()))?;
    note_slips(
        &selector,
        store.schemas(),
        |exists| is_in_store(store, exists),
        Vec::new,
    );
    Ok(selector)
}

/// As [`note_unknown`], for a store.
pub(crate) fn note_unknown_in(store: &Store, selector: &str) {
    note_unknown(selector, store.schemas(), |exists| is_in_store(store, exists), Vec::new);
}

fn is_in_store(store: &Store, selector: &str) -> Result<bool> {
    Ok(!store.snapshot()?.list(selector)?.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_no_store_is_the_error_says_how_to_make_one() {
        let folder = tempfile::tempdir().unwrap();
        let url = folder.path().display().to_string();
        let error = open(&url).unwrap_err();
        assert_eq!(error.code(), Code::NotFound);
        assert!(error.cause().contains("junctura store create"), "{error}");
    }

    #[test]
    fn a_secret_in_a_url_is_not_repeated() {
        let error = open("s3://key:secret@bucket/store").unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument);
        assert!(!error.to_string().contains("secret"), "{error}");
    }
}
