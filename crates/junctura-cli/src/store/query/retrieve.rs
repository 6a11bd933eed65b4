//! `junctura store retrieve` reads the payloads of a store that a selector requests.

use std::time::Duration;

use clap::Args;
use junctura::{Code, Error, Result};
use junctura_store::{Listing, Store, StoredObject};
use junctura_terminal::interrupt::InterruptFlag;
use junctura_terminal::progress::WorkProgress;
use junctura_terminal::size;

use crate::attributes::about_selector;
use crate::pool::get::got::RetrievedObject;
use crate::pool::get::taker::{IntoArguments, PayloadTaker};
use crate::store::query::following::{FollowEnd, FollowedStep, follow};
use crate::store::query::order::{OrderedObject, order};
use crate::store::{NOTHING_MATCHES, StoreArguments};

/// Maximum number of missing objects that are named one by one.
const NAMED_MAX: usize = 20;

const EXAMPLES: &str = "Examples:
  junctura store retrieve --store /data/archive param=t/u/v levelist=500 step=0/to/24/by/6 -o winds.grib
  junctura store retrieve --store /data/archive 'levelist>=500' -o fields/ --template '{step}/{param}{ext}'
  junctura store retrieve --store /data/archive step=0/to/240/by/6 param=t --timeout 2h -o t.grib   when all exist
  junctura store retrieve --store /data/archive --partial step=0/6/12 -o some.grib   those that exist
  junctura store retrieve --store /data/archive param=msl --count 50 --timeout 10m -o -   existing objects, then new ones
  junctura store retrieve --store /data/archive name=plume --all-versions -o plumes/      also masked versions
What a selector names value by value is expected in every combination.";

/// Get payloads from a store
///
/// Retrieves the newest version of every matching object, as of one commit. If a requested object is missing, the command names it,
/// fails with exit status 3, and writes no file. All selectors must match.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RetrieveArguments {
    #[command(flatten)]
    store: StoreArguments,
    /// Selects objects: param=t, step=0/to/24/by/6, 'levelist>=500', a MARS request, or a key as `ls --json` prints it
    #[arg(required = true, value_name = "SELECTOR")]
    selectors: Vec<String>,
    /// Also retrieve versions that newer ones mask; separate files are named by key and version (the commit)
    #[arg(long)]
    all_versions: bool,
    /// Retrieve existing objects, then new ones, until this many were retrieved; no other objects are required
    #[arg(long, value_name = "N", conflicts_with_all = ["partial", "wait"])]
    count: Option<u64>,
    /// Order existing objects by this attribute, then by key
    #[arg(long, value_name = "ATTRIBUTE")]
    sort: Option<String>,
    /// Retrieve existing objects, and report the missing ones
    #[arg(long)]
    partial: bool,
    /// Wait until no object is missing
    #[arg(long, conflicts_with = "timeout")]
    wait: bool,
    /// Wait until no object is missing, at most this long (then exit status 4)
    #[arg(long, value_name = "TIME", value_parser = size::parse_duration)]
    timeout: Option<Duration>,
    #[command(flatten)]
    into: IntoArguments,
}

/// Runs the command.
pub(crate) fn run(arguments: &RetrieveArguments) -> Result<()> {
    let interrupt = InterruptFlag::install()?;
    let store = arguments.store.open()?;
    let selector = crate::store::selector(&arguments.selectors, &store)?;
    if arguments.count.is_some() {
        return arguments.retrieve_count(&store, &selector, &interrupt);
    }
    let listing = arguments.find(&store, &selector, &interrupt)?;
    if listing.is_empty() {
        return Err(Error::new(Code::NotFound, selector, NOTHING_MATCHES));
    }
    let mut retrieval = PayloadRetrieval::new(arguments, &interrupt)?;
    retrieval.progress.expect(Some(listing.bytes()));
    retrieval.take(&listing, &listing.iter().collect::<Vec<_>>())?;
    retrieval.finish()
}

impl RetrieveArguments {
    /// Retrieves all requested objects as of one commit.
    fn find(&self, store: &Store, selector: &str, interrupt: &InterruptFlag) -> Result<Listing> {
        let waits = self.wait || self.timeout.is_some();
        let snapshot = store.snapshot()?;
        let found = if waits {
            store.retrieve_within(selector, self.timeout, || interrupt.check())
        } else {
            snapshot.retrieve_partial(selector)
        };
        let found = about_selector(found, selector)?;
        let newest = if self.partial {
            for missing in found.missing.iter().take(NAMED_MAX) {
                say!("junctura: missing {missing}");
            }
            if found.missing.len() > NAMED_MAX {
                say!("junctura: {} more are missing", found.missing.len() - NAMED_MAX);
            }
            found.listing
        } else if waits {
            found.complete_in_time(selector)?
        } else {
            found.complete(selector)?
        };
        match (self.all_versions, waits) {
            (false, _) => Ok(newest),
            (true, false) => snapshot.list_all(selector),
            (true, true) => store.snapshot()?.list_all(selector),
        }
    }

    /// Retrieves existing objects, then new ones.
    fn retrieve_count(&self, store: &Store, selector: &str, interrupt: &InterruptFlag) -> Result<()> {
        let until = FollowEnd::new(self.count, self.timeout);
        let after = self.all_versions.then_some(0);
        let mut retrieval = PayloadRetrieval::new(self, interrupt)?;
        follow(store, selector, after, until, interrupt, |step| match step {
            FollowedStep::Wait => retrieval.taker.flush(),
            FollowedStep::New(listing, objects) => retrieval.take(listing, objects),
        })?;
        retrieval.finish()
    }
}

/// Payloads of a store on their way to files.
struct PayloadRetrieval<'a> {
    arguments: &'a RetrieveArguments,
    interrupt: &'a InterruptFlag,
    taker: PayloadTaker,
    progress: WorkProgress,
}

impl<'a> PayloadRetrieval<'a> {
    fn new(arguments: &'a RetrieveArguments, interrupt: &'a InterruptFlag) -> Result<Self> {
        let into = if arguments.all_versions {
            arguments.into.of_versions()
        } else {
            arguments.into.clone()
        };
        Ok(Self {
            arguments,
            interrupt,
            taker: PayloadTaker::open(&into, false)?,
            progress: WorkProgress::new(),
        })
    }

    fn take(&mut self, listing: &Listing, objects: &[StoredObject<'_>]) -> Result<()> {
        let sorted;
        let objects = match &self.arguments.sort {
            None => objects,
            Some(name) => {
                let mut rows: Vec<OrderedObject<'_>> = objects
                    .iter()
                    .map(|object| OrderedObject(object.describe(), *object))
                    .collect();
                order(&mut rows, Some(name))?;
                sorted = rows
                    .into_iter()
                    .map(|OrderedObject(_, object)| object)
                    .collect::<Vec<_>>();
                &sorted
            }
        };
        listing.for_each_payload_of(objects, |object, payload| {
            self.interrupt.check()?;
            self.taker.take(&RetrievedObject {
                object: object.describe(),
                commit: object.commit(),
                payload: payload?,
            })?;
            self.progress.show(self.taker.bytes(), self.taker.objects());
            Ok(())
        })
    }

    fn finish(mut self) -> Result<()> {
        self.progress.end();
        self.taker.finish()
    }
}
