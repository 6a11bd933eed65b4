//! `junctura store retrieve`: payloads out of a store, all that a selector asks for.

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
use crate::store::StoreArguments;
use crate::store::query::following::{FollowEnd, FollowedStep, follow};
use crate::store::query::order::{OrderedObject, order};

/// Missing objects that are named one by one.
const NAMED_MAX: usize = 20;

const EXAMPLES: &str = "Examples:
  junctura store retrieve --store /data/archive param=t/u/v levelist=500 step=0/to/24/by/6 -o winds.grib
  junctura store retrieve --store /data/archive 'levelist>=500' -o fields/ --template '{step}/{param}{ext}'
  junctura store retrieve --store /data/archive step=0/to/240/by/6 param=t --timeout 2h -o t.grib   when all are there
  junctura store retrieve --store /data/archive --partial step=0/6/12 -o some.grib   those that are there
  junctura store retrieve --store /data/archive param=msl --count 50 --timeout 10m -o -   those that are there, then those that come
  junctura store retrieve --store /data/archive name=plume --all-versions -o plumes/      those that newer ones mask, too
What a selector names value by value is expected in every combination.";

/// Get payloads from a store
///
/// The newest version of everything that matches, as it was at one moment. What is asked for and not there is an error that names
/// it (exit status 3), and then no file is written. Several selectors must all hold.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RetrieveArguments {
    #[command(flatten)]
    store: StoreArguments,
    /// What to retrieve: param=t, step=0/to/24/by/6, 'levelist>=500', a MARS request, or a key as `ls --json` prints it
    #[arg(required = true, value_name = "SELECTOR")]
    selectors: Vec<String>,
    /// Retrieve the versions that are masked by newer ones, too; files of their own are called by key and version (the commit)
    #[arg(long)]
    all_versions: bool,
    /// Retrieve what is there, and then what is committed, until this many were retrieved; nothing else is expected
    #[arg(long, value_name = "N", conflicts_with_all = ["partial", "wait"])]
    count: Option<u64>,
    /// Order what is there by this attribute, then by key
    #[arg(long, value_name = "ATTRIBUTE")]
    sort: Option<String>,
    /// Retrieve what is there, and say what is missing
    #[arg(long)]
    partial: bool,
    /// Wait until nothing is missing
    #[arg(long, conflicts_with = "timeout")]
    wait: bool,
    /// Wait until nothing is missing, but no longer than this (exit status 4)
    #[arg(long, value_name = "TIME", value_parser = size::parse_duration)]
    timeout: Option<Duration>,
    #[command(flatten)]
    into: IntoArguments,
}

/// Retrieves.
pub(crate) fn run(arguments: &RetrieveArguments) -> Result<()> {
    let interrupt = InterruptFlag::install()?;
    let store = arguments.store.open()?;
    let selector = crate::store::selector(&arguments.selectors, &store)?;
    if arguments.count.is_some() {
        return arguments.retrieve_count(&store, &selector, &interrupt);
    }
    let listing = arguments.find(&store, &selector, &interrupt)?;
    if listing.is_empty() {
        return Err(Error::new(Code::NotFound, selector, "nothing matches"));
    }
    let mut retrieval = PayloadRetrieval::new(arguments, &interrupt)?;
    retrieval.progress.expect(Some(listing.bytes()));
    retrieval.take(&listing, &listing.iter().collect::<Vec<_>>())?;
    retrieval.finish()
}

impl RetrieveArguments {
    /// All that was asked for, at one moment.
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

    /// Those that are there, then those that come.
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

/// Payloads on their way out of a store.
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
