//! `junctura put` offers files as objects.
//!
//! Each field of a GRIB file is an object, described by its own header. Any other file is one object, described by the
//! user. Files are read sequentially with bounded memory: small messages through a buffer, large ones directly into
//! the pool. Offers are pipelined.

mod feed;
pub(crate) mod files;
mod foreign;
mod grib;
mod header;
mod input;
mod messages;
pub(crate) mod tally;

use std::time::Duration;

use clap::Args;
use junctura::{Bundle, Code, Consumers, Error, Pool, Result, Retention};
use junctura_terminal::interrupt::InterruptFlag;
use junctura_terminal::size;
use serde_json::Value;

use crate::pool::bundle::TermsArguments;
use crate::url::{PoolArguments, open_noted};
use feed::{BundleEnding, OfferFeed};
use files::FilesArguments;
use tally::{PutTally, TellArguments};

pub use messages::{FileCounts, FileOptions, each_message};

const EXAMPLES: &str = "Examples:
  junctura put forecast.grib                                   each field by its header
  junctura put --set class=rd --set expver=test run/*.grib2    the same, partly renamed
  junctura put plume.png --schema free --set name=plume        any file, described here
  ssh cluster cat out.grib | junctura put -                    from a pipe, while it comes
  junctura put step24.grib --retention released:2              removed when two consumers have released it
  junctura put step24.grib --retention released_by:products    removed when the group products has released it
  junctura put step24.grib --retention archived                removed when an archiver has stored it
  junctura put step24.grib --retain 10min                      removed after ten minutes
  junctura put --bundle run/step=24 part?.grib                 all become visible together
When a file is damaged, what was good before it is in the pool, and the error names the file, the message and the byte.";

/// Put files into the pool
///
/// Each field of a GRIB file (edition 1 or 2, recognized by its content) becomes an object of the `mars` schema, with the
/// attributes of its header: class, stream, date, time, step, levelist, param and so on. Any other file becomes one
/// object with the attributes given by --set. If `name` is part of the key and not given, it is the name of the file.
#[allow(
    clippy::struct_excessive_bools,
    reason = "switches of a command line are independent"
)]
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct PutArguments {
    #[command(flatten)]
    pool: PoolArguments,
    #[command(flatten)]
    files: FilesArguments,
    /// Retention of the objects: until withdrawn, until archived, until released by N consumers, or for a time such as 10min or 1h30m
    /// (default: that of the schema)
    #[arg(long, visible_alias = "retain", value_name = "withdrawn|archived|released:N|released_by:NAME,...|TIME", value_parser = retention)]
    retention: Option<Retention>,
    /// Put an object only if a client wants it: a follow, a requirement or a waiting demand matches it
    #[arg(long, conflicts_with = "bundle")]
    if_wanted: bool,
    /// Put the objects into the bundle of this path: all become visible together. The bundle is sealed at the end, unless --members
    /// or --open is given, or an object failed
    #[arg(long, value_name = "PATH")]
    bundle: Option<String>,
    #[command(flatten)]
    terms: TermsArguments,
    /// Leave the bundle open for other producers
    #[arg(long, requires = "bundle", conflicts_with_all = ["members", "wait"])]
    open: bool,
    /// Wait until the bundle is visible, also if other producers offer the remaining members
    #[arg(long, requires_all = ["bundle", "members"])]
    wait: bool,
    /// Maximum wait for memory when the pool is full
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = size::parse_duration)]
    timeout: Duration,
    /// How many offers may be unacknowledged
    #[arg(long, value_name = "N", default_value_t = 64, hide = true)]
    window: usize,
    #[command(flatten)]
    tell: TellArguments,
}

/// Reads `withdrawn`, `released:N` or a time.
fn retention(text: &str) -> std::result::Result<Retention, String> {
    text.parse().map_err(|error: Error| error.cause().to_owned())
}

/// Puts.
pub(crate) fn run(arguments: &PutArguments) -> Result<()> {
    let interrupt = InterruptFlag::install()?;
    let tally = PutTally::new(arguments.tell, arguments.files.total_bytes()).of_files(arguments.files.count());
    let builder = arguments
        .pool
        .builder("junctura put")
        .offer_timeout(Some(arguments.timeout));
    let pool = open_noted(interrupt.watch(builder))?;
    let bundle = arguments.open_bundle(&pool)?;
    let mut feed = OfferFeed::new(&pool, bundle.as_ref(), arguments.window, tally)?;
    feed.retain(arguments.retention.clone());
    feed.if_wanted(arguments.if_wanted);
    let outcome = arguments.files.read(&mut feed, &interrupt);
    feed.finish(outcome, arguments.ending())?;
    match &arguments.retention {
        Some(Retention::ReleasedBy(names)) => check_requirements(&pool, names),
        _ => Ok(()),
    }
}

/// Fails if all requirements that objects are retained for are broken: the objects were removed at once.
fn check_requirements(pool: &Pool, names: &Consumers) -> Result<()> {
    // A token may have no right to read the counters.
    let Ok(stat) = pool.stat() else { return Ok(()) };
    let stat: Value = serde_json::from_str(&stat).unwrap_or_default();
    let all = stat["named_requirements"].as_array();
    let is_broken = |name: &str| {
        let mut requirements = all.into_iter().flatten();
        requirements.any(|one| one["name"] == name && one["broken"] == true)
    };
    if !names.iter().all(is_broken) {
        return Ok(());
    }
    let cause = "it is broken, so objects that only it retains are removed at once and reported to its next reader as lost; \
                 start its reader";
    Err(Error::new(Code::Gone, format!("requirement {names}"), cause))
}

impl PutArguments {
    fn open_bundle(&self, pool: &Pool) -> Result<Option<Bundle>> {
        let bundle = self.bundle.as_ref().map(|path| self.terms.open(pool, path, None));
        if bundle.is_none() && (self.terms.members.is_some() || !self.terms.about.is_empty()) {
            let cause = "--members and --about are about the bundle that --bundle names";
            return Err(Error::new(Code::InvalidArgument, "put", cause));
        }
        bundle.transpose()
    }

    /// Returns how the bundle ends: sealed, left open or aborted.
    fn ending(&self) -> BundleEnding {
        match (self.open || self.terms.members.is_some(), self.wait) {
            (_, true) => BundleEnding::Wait,
            (true, false) => BundleEnding::Leave,
            (false, false) => BundleEnding::Seal,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retentions_are_read() {
        assert_eq!(retention("withdrawn"), Ok(Retention::UntilWithdrawn));
        assert_eq!(retention("released:3"), Ok(Retention::Released(3)));
        let archive = junctura::Consumers::new(["archive"]).unwrap();
        assert_eq!(retention("released_by:archive"), Ok(Retention::ReleasedBy(archive)));
        assert_eq!(retention("archived"), retention("released_by:archive"));
        assert_eq!(retention("10min"), Ok(Retention::For(Duration::from_mins(10))));
        for wrong in [
            "released",
            "released:0",
            "released:-1",
            "released:",
            "0s",
            "90",
            "50d",
            "",
        ] {
            assert!(retention(wrong).is_err(), "{wrong}");
        }
    }
}
